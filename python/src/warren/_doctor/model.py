"""What `warren doctor` knows of hosts, and what it says of them, as values."""
import dataclasses
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

OK, WARNING, PROBLEM = "OK", "warning", "problem"
TRACKER_PORTS = (9091, 9999)


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the table. `hosts`: those that it is about; none: all."""
    level: str
    subject: str
    text: str
    advice: str = ""
    hosts: Sequence[str] = ()


@dataclasses.dataclass
class Asked:
    """What is known of one host. `facts` are those of probe.py; none where it could not be asked."""
    name: str
    trouble: Optional[Tuple[str, str]] = None  # HostError's kind and text
    seconds: float = 0.0  # until its probe answered
    facts: Dict[str, Any] = dataclasses.field(default_factory=dict)
    offset: Optional[Tuple[float, float]] = None  # its clock before this machine's, and how sure that is, in seconds
    here: bool = False  # it is this machine


@dataclasses.dataclass(frozen=True)
class Link:
    """A connection that was tried from one host to another. `kind`: "tracker" or "ephemeral"; `error` none: it was made."""
    source: str
    target: str
    kind: str
    port: int
    error: Optional[str] = None


@dataclasses.dataclass
class Survey:
    """All that was found out."""
    hosts: List[Asked]
    links: List[Link] = dataclasses.field(default_factory=list)
    names: Dict[str, Dict[str, List[str]]] = dataclasses.field(default_factory=dict)  # by host: name and addresses

    @property
    def answered(self) -> List[Asked]:
        """Those that could be asked."""
        return [host for host in self.hosts if host.facts]


def size(count: float) -> str:
    """'64 MiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def few(words: Iterable[str]) -> str:
    """'a, b, c and 5 more'."""
    all_words = list(words)
    return ", ".join(all_words[:4]) + (f" and {len(all_words) - 4} more" if len(all_words) > 4 else "")


def by_value(hosts: Sequence[Asked], value: Callable[[Asked], Any]) -> Dict[Any, List[str]]:
    """The hosts of each value."""
    found: Dict[Any, List[str]] = {}
    for host in hosts:
        found.setdefault(value(host), []).append(host.name)
    return found


def differing(values: Dict[Any, List[str]], shown: Callable[[Any], str] = str) -> str:
    """'1.7 on a, b; 2.1 on c'."""
    return "; ".join(f"{shown(value)} on {few(hosts)}" for value, hosts in sorted(values.items(), key=lambda item: -len(item[1])))


def grouped(findings: Sequence[Finding]) -> List[Finding]:
    """Those that say the same of several hosts, as one."""
    groups: Dict[Tuple[str, str, str, str], List[str]] = {}
    for one in findings:
        groups.setdefault((one.level, one.subject, one.text, one.advice), []).extend(one.hosts)
    return [Finding(*key, hosts) for key, hosts in groups.items()]
