"""`warren doctor`: examines this machine and every host of a host file, and reports problems with their remedies."""
import argparse
import concurrent.futures
import dataclasses
import json
import shlex
import shutil
import sys
import textwrap
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from warren._system.printable import printable
from warren._tools.doctor import model
from warren._tools.doctor.findings import diagnose
from warren._tools.doctor.hosts import Host, HostError, Probe, hosts_of, pythons_of, real_name
from warren._tools.doctor.model import Asked, Link, Survey

#: The maximum number of hosts examined concurrently.
_AT_ONCE = 64
_ROUND_TRIPS = 9
#: The time, in seconds, to wait for a host to report which connections work. A second is added for each connection: 16 are tried concurrently,
#: each of which may take three seconds to connect, and three more to be answered (probe.py).
_CONNECT_PATIENCE_S = 60.0


def parser() -> argparse.ArgumentParser:
    """The parser for `warren doctor`'s options."""
    made = argparse.ArgumentParser(prog="warren doctor",
                                   description="Checks this machine, and hosts over ssh: versions, clocks, ports between "
                                   "all pairs, memory, kernel, GPUs, packages. Exit code 1 when there is a problem.")
    made.add_argument("--host-file", "--hostfile", metavar="FILE", help="a host file in the format of dmlc-submit. Default: $HOSTFILE")
    made.add_argument("-H", "--hosts", metavar="HOSTS", help="comma-separated hosts: [user@]host[:port]")
    made.add_argument("--ssh-options",
                      metavar="WORDS",
                      action="append",
                      default=[],
                      help="options for ssh, such as '-i key -J jump'")
    made.add_argument("--python",
                      metavar="PROGRAM",
                      help="the Python on the hosts whose packages are checked. Default: that of this environment if a host has it, else "
                      "python3")
    made.add_argument("--json", action="store_true", help="print findings and facts as JSON")
    return made


def offset_of(trips: Sequence[Tuple[float, float, float]]) -> Tuple[float, float]:
    """Returns the offset of another host's clock and the uncertainty, in seconds. Each round trip is (sent, answered, received): the times of
    sending and receiving by this machine's clock, and of answering by the other host's clock. The shortest trip is the most accurate (NTP's
    filter, RFC 5905)."""
    sent, answered, back = min(trips, key=lambda trip: trip[2] - trip[0])
    return answered - (sent + back) / 2, (back - sent) / 2


class _Visit:
    """A host that is being examined."""
    def __init__(self, host: Host, ssh_options: Sequence[str], python: Optional[str]) -> None:
        self.asked = Asked(host.shown, here=not host.name)
        self.host = host
        self.probe: Any = None
        self.name = ""  # the name by which other hosts reach it
        self.ports: Dict[str, int] = {}
        try:
            self.probe = Probe(host, ssh_options, [python] if python else pythons_of(sys.executable, sys.prefix, sys.base_prefix))
            self.asked.seconds = self.probe.seconds
            self.asked.facts = {**self.probe.ask("facts"), "python_wanted": self.probe.wanted}
            self.name = real_name(host, ssh_options) if host.name else ""
            self._ask_clock()
            listening = self.probe.ask("listen", first=model.TRACKER_PORTS[0], last=model.TRACKER_PORTS[1])
            self.ports = {kind: one["port"] for kind, one in listening.items() if "port" in one}
        except HostError as error:
            self.fail(error)

    def fail(self, error: HostError) -> None:
        """Records the error and stops examining the host."""
        self.asked.trouble = (error.kind, str(error))
        self.close()

    def close(self) -> None:
        """Ends the probe."""
        if self.probe is not None:
            self.probe.close()
        self.probe = None

    def _ask_clock(self) -> None:
        trips = []
        for _ in range(_ROUND_TRIPS):
            sent = time.time()
            answered = self.probe.ask("time")
            trips.append((sent, answered, time.time()))
        self.asked.offset = offset_of(trips)


def _addresses_here(visits: Sequence[_Visit]) -> Dict[str, str]:
    """Returns, for each other host, this machine's address on the route to that host, as dmlc-submit determines it."""
    found: Dict[str, str] = {}
    for here in (visit for visit in visits if visit.asked.here):
        for visit in visits:
            try:
                found.update({visit.asked.name: here.probe.ask("route", to=visit.name)} if visit is not here else {})
            except HostError:
                continue
    return found


def _try_links(visit: _Visit, visits: Sequence[_Visit], here_from: Dict[str, str], survey: Survey) -> None:
    """Tries connections from one host to all others, and records how that host resolves the names of all hosts."""
    targets = []
    for other in visits:
        address = here_from.get(visit.asked.name) if other.asked.here else other.name
        if other is not visit and address:
            targets += [(other.asked.name, kind, address, port) for kind, port in other.ports.items()]
    try:
        errors = visit.probe.ask("connect", targets=[[address, port] for _, _, address, port in targets],
                                 patience_s=_CONNECT_PATIENCE_S + len(targets))
        for (target, kind, _, port), error in zip(targets, errors):
            survey.links.append(Link(visit.asked.name, target, kind, port, error))
        survey.names[visit.asked.name] = visit.probe.ask("resolve", names=[other.name for other in visits if other.name])
    except HostError as error:
        visit.fail(error)


def survey_of(hosts: Sequence[Host], ssh_options: Sequence[str], python: Optional[str]) -> Survey:
    """Examines all hosts, at most _AT_ONCE at a time."""
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        visits = list(pool.map(lambda host: _Visit(host, ssh_options, python), hosts))
        survey = Survey([visit.asked for visit in visits])
        there = [visit for visit in visits if visit.probe is not None]
        try:
            here_from = _addresses_here(there)
            list(pool.map(lambda visit: _try_links(visit, there, here_from, survey), there))
        finally:
            list(pool.map(_Visit.close, visits))
    order = {visit.asked.name: at for at, visit in enumerate(visits)}
    survey.links.sort(key=lambda link: (order[link.source], order[link.target]))
    survey.names = dict(sorted(survey.names.items(), key=lambda item: order[item[0]]))
    return survey


def table(found: Sequence[model.Finding], width: int) -> str:
    """Returns the findings as text, wrapped to `width` columns."""
    lines: List[str] = []
    for one in found:
        hosts = f"{', '.join(one.hosts)}: " if one.hosts else ""
        head = f"{one.level:8} {one.subject:9} "
        lines += textwrap.wrap(printable(" ".join((hosts + one.text).split())),
                               width,
                               initial_indent=head,
                               subsequent_indent=" " * len(head),
                               break_on_hyphens=False)
        if one.advice:
            indent = " " * len(head)
            lines += textwrap.wrap(printable(" ".join(one.advice.split())),
                                   width,
                                   initial_indent=indent + "-> ",
                                   subsequent_indent=indent + "   ",
                                   break_on_hyphens=False,
                                   break_long_words=False)
    counts = [(level, sum(one.level == level for one in found)) for level in (model.PROBLEM, model.WARNING)]
    said = " and ".join(f"{count} {level}{'s' * (count > 1)}" for level, count in counts if count)
    return "\n".join(lines) + f"\n{said or 'no problems found'}\n"


def run(words: Sequence[str]) -> int:
    """Runs `warren doctor ...`; returns the exit code: 1 if there is a problem, 2 if the options or the host file are invalid."""
    options = parser().parse_args(words)
    try:
        hosts = hosts_of(options.host_file, options.hosts)
        ssh_options = [word for text in options.ssh_options for word in shlex.split(text)]
    except (OSError, ValueError) as error:
        print(f"warren doctor: {error}", file=sys.stderr)
        return 2
    survey = survey_of(hosts, ssh_options, options.python)
    found = diagnose(survey)
    if options.json:
        print(
            json.dumps(
                {
                    "findings": [dataclasses.asdict(one) for one in found],
                    "hosts": [dataclasses.asdict(one) for one in survey.hosts],
                    "links": [dataclasses.asdict(one) for one in survey.links],
                    "names": survey.names
                },
                indent=2))
    else:
        print(table(found, min(shutil.get_terminal_size().columns, 130)), end="")
    return 1 if any(one.level == model.PROBLEM for one in found) else 0
