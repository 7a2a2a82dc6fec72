"""The order of samples: the worlds of all peers run at the same time, only one of them works, and every sample of a peer lies between two
of ours."""

import contextlib
import dataclasses
import statistics
import sys
import time

from comparison import machine
from comparison.conducted import ConductedWorld
from comparison.worlds import WorldFailed, WorldStalled, WrongResult

# Modes are compared with cases up to this size; larger cases use the mode chosen for the largest of them.
TRIAL_BYTES = 16 << 20
TRIAL_SAMPLES = 3
# A world that does not answer for this long is stopped. Its mode then skips this case and larger cases of the same collective.
STALL_S = 90
# The maximum size of a rank's buffer and a peer's scratch space together, in units of the buffer.
BUFFERS_A_RANK = 2.5
# The buffers of a finished case are kept if they are at most this large, over all ranks of a world.
KEPT_BYTES = 64 << 20


@dataclasses.dataclass(frozen=True, order=True)
class Case:
    collective: str
    size: int  # bytes

    def __str__(self):
        return f"{self.collective}:{self.size}"


@dataclasses.dataclass(frozen=True)
class Effort:
    rounds: int
    samples: int  # per peer and round
    limit_s: float = 1.5  # time limit of a peer's samples of a case in a round; at least one sample is taken
    block_s: float = 0.005


class Player:
    """One mode of a peer at one place with one number of ranks. Starts its world when needed."""

    def __init__(self, peer, place, ranks, mode, stack, notes):
        self.peer = peer
        self.mode = mode
        self.place = place
        self.ranks = ranks
        self.hopeless = []  # cases that took too long
        self.failure = None
        self._stack = stack.enter_context(contextlib.ExitStack())
        self._notes = notes
        self._world = None
        self._starts = 0

    def __str__(self):
        return f"{self.peer.title} ({self.mode.name}), {self.place.title}, {self.ranks} ranks"

    def can(self, case):
        return self.failure is None and case.collective in self.peer.collectives and not any(
            case.collective == bad.collective and case.size >= bad.size for bad in self.hopeless)

    def sample(self, case, block_s):
        """Returns the seconds of one operation, or None if the peer cannot do it."""
        while self.can(case):
            try:
                return self._standing().sample(case, block_s, STALL_S)
            except WorldStalled as stalled:
                self.hopeless.append(case)
                self._notes.append(f"{stalled} (at {case})")
                self.leave()
            except WorldFailed as failure:
                last = self._starts > 1 or isinstance(failure, WrongResult)
                self._notes.append(f"{'given up' if last else 'tried again'}: {failure}")
                print(f"  failed: {failure}", file=sys.stderr)
                if last:
                    self.failure = str(failure)
                self.leave()
        return None

    def forget(self):
        """Frees the buffers of the last case."""
        try:
            if self._world is not None:
                self._world.forget(STALL_S)
        except WorldFailed:  # the next sample tries to start the world again
            self.leave()

    def leave(self):
        self._world = None
        self._stack.close()

    def _standing(self):
        if self._world is None:
            self._starts += 1
            world = self._stack.enter_context(ConductedWorld(str(self)))
            self.peer.start(world, self.place, self.ranks, self.mode, world.arguments)
            world.gather(self.ranks, STALL_S)
            self._world = world
        return self._world


class Comparison:
    """Runs and records all samples. `ours` is the key of the peer that all others are compared with."""

    def __init__(self, peers, effort, ours="warren"):
        self.peers = peers
        self.effort = effort
        self.ours = ours
        self.records = []
        self.lines = []  # measured times of a cache line between cores, each {"0-1": seconds}
        self.command_lines = {}  # {(place, peer, mode): command line for the first number of ranks}
        self.notes = []
        self.failed = False

    def run(self, place, ranks, cases):
        place.prepare(ranks)
        cases = self._that_fit(cases, place, ranks)
        with contextlib.ExitStack() as stack:
            players = {peer.key: [Player(peer, place, ranks, mode, stack, self.notes) for mode in peer.modes(place, ranks)]
                       for peer in self.peers}
            chosen = {key: self._choose(modes, cases) for key, modes in players.items()}
            for key, modes in players.items():
                for player in modes:
                    if player not in chosen[key].values():
                        player.leave()
            records = {(key, case): {"place": place.key, "ranks": ranks, "collective": case.collective, "bytes": case.size,
                                     "peer": key, "mode": player.mode.name, "seconds": [], "pairs": []}
                       for key, choice in chosen.items() for case, player in choice.items()}
            for number in range(self.effort.rounds):
                print(f"{place.title}, {ranks} ranks, round {number + 1} of {self.effort.rounds}", file=sys.stderr)
                for case in cases if number % 2 == 0 else reversed(cases):
                    self._play(case, {key: choice[case] for key, choice in chosen.items() if case in choice}, records)
            for (key, case), record in records.items():
                player = chosen[key][case]
                record["failed"] = player.failure
                record["stalled_s"] = STALL_S if not record["seconds"] and not player.can(case) else None
                self.failed |= player.failure is not None
                command = player.peer.command_line(place, ranks, player.mode)
                self.command_lines.setdefault((place.key, key, player.mode.name), command)
            self.records += records.values()

    def _play(self, case, players, records):
        """Takes the samples of one case in one round."""
        buffers = case.size * next(iter(players.values())).ranks
        tight = buffers > machine.memory_available() / BUFFERS_A_RANK / len(players)
        others = [key for key in players if key != self.ours]
        before = machine.line_times(self.peers[0].bin_dir)
        taken = []

        def sample(key):
            seconds = players[key].sample(case, self.effort.block_s)
            if tight:
                players[key].forget()
            if seconds is not None:
                records[key, case]["seconds"].append(seconds)
            return seconds

        def ours():
            return sample(self.ours) if self.ours in players else None

        mine = ours()
        spent = {key: 0.0 for key in players}
        for turn in range(self.effort.samples):
            for key in others if turn % 2 == 0 else reversed(others):
                if spent[key] > self.effort.limit_s:
                    continue
                began = time.monotonic()
                theirs = sample(key)
                spent[key] += time.monotonic() - began
                last, mine = mine, ours()
                if None not in (theirs, last, mine):
                    taken.append((key, theirs, last, mine))
            if not others:
                ours()
        if buffers > KEPT_BYTES:
            for player in players.values():
                player.forget()
        after = machine.line_times(self.peers[0].bin_dir)
        self.lines += [before, after]
        state = machine.distance(before, after)
        for key, theirs, last, mine in taken:
            records[key, case]["pairs"].append({"theirs": theirs, "ours": [last, mine], "cores": state})

    def _choose(self, players, cases):
        """Returns {case: the fastest player}."""
        cases = [case for case in cases if case.collective in players[0].peer.collectives]
        if len(players) == 1:
            return {case: players[0] for case in cases}
        tried = {}
        for case in cases:
            if case.size <= TRIAL_BYTES:
                found = {player: [player.sample(case, self.effort.block_s / 2) for _ in range(TRIAL_SAMPLES)] for player in players}
                tried[case] = {player: statistics.median(times) for player, times in found.items() if None not in times}
        choice = {}
        for case in cases:
            alike = [known for known in tried if known.collective == case.collective and tried[known]]
            nearest = max([known for known in alike if known <= case] or alike[:1], default=None)
            medians = tried[nearest] if nearest is not None else {}
            choice[case] = min(players, key=lambda player: medians.get(player, float("inf")))
        for player in players:
            player.hopeless.clear()  # stalls in the trials must not rule out the cases for which a mode was chosen
        return choice

    def _that_fit(self, cases, place, ranks):
        most = machine.memory_available() / ranks / BUFFERS_A_RANK
        for case in cases:
            if case.size > most:
                self.notes.append(f"{place.title}, {ranks} ranks: no {case}, because of too little memory")
        return [case for case in cases if case.size <= most]
