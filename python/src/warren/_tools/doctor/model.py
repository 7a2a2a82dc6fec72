"""The data that `warren doctor` collects about hosts, and its findings."""
import dataclasses
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

OK, WARNING, PROBLEM = "OK", "warning", "problem"
TRACKER_PORTS = (9091, 9999)


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the table. `hosts`: the hosts concerned; empty means all."""
    level: str
    subject: str
    text: str
    advice: str = ""
    hosts: Sequence[str] = ()


@dataclasses.dataclass
class Asked:
    """The results for one host. `facts`: what probe.py has returned; empty if the host could not be examined."""
    name: str
    trouble: Optional[Tuple[str, str]] = None  # HostError's kind and text
    seconds: float = 0.0  # the time until its probe answered
    facts: Dict[str, Any] = dataclasses.field(default_factory=dict)
    offset: Optional[Tuple[float, float]] = None  # its clock minus this machine's, and the uncertainty, in seconds
    here: bool = False  # whether it is this machine


@dataclasses.dataclass(frozen=True)
class Link:
    """A connection that was tried from one host to another. `kind`: "tracker" or "ephemeral"; `error` is None if the connection
    succeeded."""
    source: str
    target: str
    kind: str
    port: int
    error: Optional[str] = None


@dataclasses.dataclass
class Survey:
    """The results for all hosts and connections."""
    hosts: List[Asked]
    links: List[Link] = dataclasses.field(default_factory=list)
    names: Dict[str, Dict[str, List[str]]] = dataclasses.field(default_factory=dict)  # for each host, the addresses of each name

    @property
    def answered(self) -> List[Asked]:
        """The hosts that could be examined."""
        return [host for host in self.hosts if host.facts]


def size(count: float) -> str:
    """Formats a size, e.g. '64 MiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def few(words: Iterable[str]) -> str:
    """Formats a list, e.g. 'a, b, c, d and 5 more'."""
    all_words = list(words)
    return ", ".join(all_words[:4]) + (f" and {len(all_words) - 4} more" if len(all_words) > 4 else "")


def by_value(hosts: Sequence[Asked], value: Callable[[Asked], Any]) -> Dict[Any, List[str]]:
    """Returns, for each value, the names of the hosts that have it."""
    found: Dict[Any, List[str]] = {}
    for host in hosts:
        found.setdefault(value(host), []).append(host.name)
    return found


def differing(values: Dict[Any, List[str]], shown: Callable[[Any], str] = str) -> str:
    """Formats values and their hosts, e.g. '1.7 on a, b; 2.1 on c'."""
    return "; ".join(f"{shown(value)} on {few(hosts)}" for value, hosts in sorted(values.items(), key=lambda item: -len(item[1])))


def grouped(findings: Sequence[Finding]) -> List[Finding]:
    """Merges findings that differ only in their hosts."""
    groups: Dict[Tuple[str, str, str, str], List[str]] = {}
    for one in findings:
        groups.setdefault((one.level, one.subject, one.text, one.advice), []).extend(one.hosts)
    return [Finding(*key, hosts) for key, hosts in groups.items()]
