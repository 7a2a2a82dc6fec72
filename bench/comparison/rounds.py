"""Who runs when: every peer in turn, several rounds of it, so that nobody has the machine's good minutes alone."""

import dataclasses
import statistics
import sys
import time

from comparison import machine
from comparison.worlds import World, WorldFailed, WorldStalled, WrongResult

# Modes are told apart with cases up to this size; larger ones take over the choice.
TRIAL_BYTES = 16 << 20
# No line from a world for so long: that case and larger ones are given up.
STALL_S = 90
# What a rank's buffer and the scratch memory of a peer may take together, in buffers.
BUFFERS_A_RANK = 2.5


@dataclasses.dataclass(frozen=True, order=True)
class Case:
    collective: str
    size: int  # bytes

    def __str__(self):
        return f"{self.collective}:{self.size}"


@dataclasses.dataclass(frozen=True)
class Effort:
    rounds: int
    samples: int  # in a round
    least_samples: int = 3
    limit_s: float = 1.5  # for a case in a round
    block_s: float = 0.005

    def arguments(self):
        return ["--samples", str(self.samples), "--least-samples", str(min(self.samples, self.least_samples)),
                "--limit", str(self.limit_s), "--block", str(self.block_s)]


TRIAL = Effort(rounds=1, samples=5, least_samples=1, limit_s=0.3)


class Entrant:
    """One peer in one place with so many ranks, and what has been measured of it."""

    def __init__(self, peer, place, ranks, cases):
        self.peer = peer
        self.place = place
        self.ranks = ranks
        self.cases = [case for case in cases if case.collective in peer.collectives]
        self.modes = peer.modes(place, ranks)
        self.choice = {case: self.modes[0] for case in self.cases}
        self.seconds = {case: [] for case in self.cases}
        self.stalled = set()
        self.given_up = None

    def choose(self, medians):
        """Takes for every case the mode that was the fastest at it; `medians` is {mode: {case: seconds}}."""
        for case in self.cases:
            tried = [known for known in self.cases
                     if known.collective == case.collective and any(known in of for of in medians.values())]
            nearest = max([known for known in tried if known <= case] or tried[:1], default=None)
            if nearest is not None:
                self.choice[case] = min(self.modes, key=lambda mode: medians[mode].get(nearest, float("inf")))

    def records(self):
        """For the report and for JSON: one a case."""
        for case in self.cases:
            if self.seconds[case] or case in self.stalled or self.given_up:
                yield {"place": self.place.key, "ranks": self.ranks, "collective": case.collective,
                       "bytes": case.size, "peer": self.peer.key, "mode": self.choice[case].name,
                       "seconds": self.seconds[case], "stalled_s": STALL_S if case in self.stalled else None,
                       "failed": self.given_up}


class Comparison:
    def __init__(self, peers, effort):
        self.peers = peers
        self.effort = effort
        self.records = []
        self.command_lines = {}  # (place, peer, mode): with the first number of ranks
        self.notes = []
        self.failed = False

    def run(self, place, ranks, cases):
        place.prepare(ranks)
        cases = self._that_fit(cases, place, ranks)
        entrants = [Entrant(peer, place, ranks, cases) for peer in self.peers]
        for entrant in entrants:
            self._try_modes(entrant)
        for number in range(self.effort.rounds):
            print(f"{place.title}, {ranks} ranks, round {number + 1} of {self.effort.rounds}", file=sys.stderr)
            for entrant in entrants if number % 2 == 0 else reversed(entrants):
                for mode in entrant.modes:
                    chosen = [case for case in entrant.cases if entrant.choice[case] == mode]
                    for case, seconds in self._play(entrant, mode, chosen, self.effort).items():
                        entrant.seconds[case] += seconds
        for entrant in entrants:
            self.records += entrant.records()
            for mode in (mode for mode in entrant.modes if mode in entrant.choice.values()):
                key = (place.key, entrant.peer.key, mode.name)
                self.command_lines.setdefault(key, entrant.peer.command_line(place, ranks, mode))

    def _that_fit(self, cases, place, ranks):
        most = machine.memory_available() / ranks / BUFFERS_A_RANK
        for case in cases:
            if case.size > most:
                self.notes.append(f"{place.title}, {ranks} ranks: no {case}, for want of memory")
        return [case for case in cases if case.size <= most]

    def _try_modes(self, entrant):
        if len(entrant.modes) < 2:
            return
        small = [case for case in entrant.cases if case.size <= TRIAL_BYTES] or entrant.cases[:1]
        medians = {}
        for mode in entrant.modes:
            results = self._play(entrant, mode, small, TRIAL)
            medians[mode] = {case: statistics.median(seconds) for case, seconds in results.items()}
        entrant.choose(medians)
        entrant.stalled.clear()  # some mode may have stalled where another is chosen

    def _play(self, entrant, mode, cases, effort):
        """One world; the samples of each case. Failures are tried again once; then the peer is out of this place."""
        for attempt in range(2):
            cases = [case for case in cases if not self._is_hopeless(entrant, case)]
            if entrant.given_up or not cases:
                return {}
            description = f"{entrant.peer.title} ({mode.name}), {entrant.place.title}, {entrant.ranks} ranks"
            started = time.monotonic()
            results = {}
            try:
                with World(description) as world:
                    arguments = effort.arguments() + [str(case) for case in cases]
                    entrant.peer.start(world, entrant.place, entrant.ranks, mode, arguments)
                    for line in world.lines(len(cases), STALL_S):
                        results[Case(line["collective"], line["bytes"])] = line["seconds"]
                    world.wait()
                print(f"  {description}: {time.monotonic() - started:.1f} s", file=sys.stderr)
                return results
            except WorldStalled as stalled:
                print(f"  {stalled}", file=sys.stderr)
                unfinished = [case for case in cases if case not in results]
                entrant.stalled.update(unfinished[:1])
                self.notes.append(f"{stalled}" + "".join(f" (at {case})" for case in unfinished[:1]))
                return results
            except WorldFailed as failure:
                print(f"  failed: {failure}", file=sys.stderr)
                last = attempt > 0 or isinstance(failure, WrongResult)
                self.notes.append(f"{'given up' if last else 'tried again'}: {failure}")
                if last:
                    entrant.given_up = str(failure)
                    self.failed = True
        return {}

    @staticmethod
    def _is_hopeless(entrant, case):
        return any(case.collective == bad.collective and case.size >= bad.size for bad in entrant.stalled)
