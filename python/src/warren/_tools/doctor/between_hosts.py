"""Checks of connections to and between hosts: ssh, clocks, ports and names. Pure functions."""
import ipaddress
from typing import Dict, List, Set, Tuple

from warren._tools.doctor.model import OK, PROBLEM, TRACKER_PORTS, WARNING, Finding, Link, Survey, few

_CLOCK_WARNING_S, _CLOCK_PROBLEM_S = 0.1, 60.0
_SSH_ADVICE = {
    "name": "write its address or full name into the host file, or add a Host entry to ~/.ssh/config",
    "refused": "start sshd there, or give its port: host:PORT in the host file",
    "timeout": "check that it is up, and that no firewall blocks it: ssh -v {host}",
    "key": "connect once by hand and compare the key, or dmlc-submit --ssh-host-keys accept-new",
    "permission":
    "ssh cannot ask for a password here: run ssh-copy-id {host}, or load the key into ssh-agent; `ssh -o BatchMode=yes {host} true` must "
    "work",
    "python": "install Python 3 there (or give --python PROGRAM); nothing else can be checked without it",
    "lost": "run it by hand: ssh -o BatchMode=yes {host} python3 --version"
}


def ssh(survey: Survey) -> List[Finding]:
    """Checks whether each host could be examined."""
    found = []
    for host in survey.hosts:
        if host.trouble:
            kind, text = host.trouble
            found.append(
                Finding(PROBLEM, "python" if kind == "python" else "ssh", text,
                        _SSH_ADVICE.get(kind, "try by hand: ssh -v -o BatchMode=yes {host}").format(host=host.name), [host.name]))
    answered = [host for host in survey.answered if not host.here]
    if answered:
        times = [host.seconds for host in answered]
        count = f"{len(answered)} host{'s answer' if len(answered) > 1 else ' answers'}"
        found.append(Finding(OK, "ssh", f"{count} within {min(times):.1f} to {max(times):.1f} s"))
    return found


def clock(survey: Survey) -> List[Finding]:
    """Compares the hosts' clocks with this machine's."""
    known = [(host, *host.offset) for host in survey.answered if host.offset is not None and not host.here]
    if not known:
        return []
    found = []
    for host, offset, sure in known:
        off = abs(offset) - sure
        if off >= _CLOCK_WARNING_S:
            far = off >= _CLOCK_PROBLEM_S
            found.append(
                Finding(
                    PROBLEM if far else WARNING, "clock",
                    f"is {abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} this machine's" +
                    (": certificates and signed requests to object stores will be refused" if far else ": times in logs are misleading"),
                    "synchronize it with chrony or systemd-timesyncd: timedatectl set-ntp true", [host.name]))
    if not found:
        worst = max(abs(offset) + sure for _, offset, sure in known)
        found.append(Finding(OK, "clock", f"clocks agree within {worst * 1000:.0f} ms"))
    return found


def _blocked(failed: List[Link], needed: bool) -> Finding:
    """The finding for failed connections from one host to another."""
    source, target = failed[0].source, failed[0].target
    kinds = {"tracker": ("the tracker's", f"ports {TRACKER_PORTS[0]}-{TRACKER_PORTS[1]}"),
             "ephemeral": ("ephemeral", "the ephemeral ports (sysctl net.ipv4.ip_local_port_range; dmlc-submit --worker-ports takes others)")}
    ports = " and ".join(f"{link.port} ({kinds[link.kind][0]}: {link.error})" for link in failed)
    advice = (f"allow TCP to {target} on {' and '.join(kinds[link.kind][1] for link in failed)}: check nft list ruleset or iptables "
              "-S on both, and the security groups of a cloud")
    return Finding(PROBLEM if needed else WARNING, "network", f"cannot reach {target} at port {ports}",
                   advice + ("" if needed else "; needed only if workers run here, too"), [source])


def links(survey: Survey) -> List[Finding]:
    """Checks the connections between all pairs of hosts."""
    here = {host.name for host in survey.hosts if host.here}
    pairs: Dict[Tuple[str, str], List[Link]] = {}
    for link in survey.links:
        pairs.setdefault((link.target, link.source), []).append(link)
    found: List[Finding] = []
    for (_, source), tried in sorted(pairs.items()):
        failed = [link for link in tried if link.error]
        if failed:  # connections from this machine are needed only if workers run on it: dmlc-submit makes none
            found.append(_blocked(failed, source not in here))
    if pairs and not found:
        found.append(Finding(OK, "network", f"all {len(pairs)} pairs reach each other, on a port from {TRACKER_PORTS[0]} to "
                             f"{TRACKER_PORTS[1]} and an ephemeral one"))
    return found


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def names(survey: Survey) -> List[Finding]:
    """Checks how hosts resolve each other's names."""
    found: List[Finding] = []
    all_names = [name for name in dict.fromkeys(name for seen in survey.names.values() for name in seen) if not _is_address(name)]
    for name in all_names:
        seen = {host: addresses[name] for host, addresses in survey.names.items() if name in addresses}
        without = [host for host, addresses in seen.items() if not addresses]
        if without:
            found.append(
                Finding(PROBLEM, "names", f"cannot resolve the name {name}",
                        f"add {name} to DNS or to /etc/hosts there, or use its address in the host file", without))
        loopback = [
            host for host, addresses in seen.items()
            if addresses and all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in addresses)
        ]
        if loopback and len(loopback) < len(seen) - len(without):
            found.append(
                Finding(
                    WARNING, "names",
                    f"resolve{'s' * (len(loopback) == 1)} {name} to a loopback address ({few(seen[loopback[0]])})",
                    f"set the network address of {name} in /etc/hosts there: other hosts cannot connect to a loopback address",
                    loopback))
        others = {host: set(addresses) for host, addresses in seen.items() if addresses and host not in loopback}
        first: Set[str] = next(iter(others.values()), set())
        different = [host for host, addresses in others.items() if not addresses & first]
        if different:
            found.append(
                Finding(
                    WARNING, "names", f"resolve{'s' * (len(different) == 1)} {name} to {few(sorted(others[different[0]]))}, and "
                    f"{next(iter(others))} to {few(sorted(first))}", "make DNS and /etc/hosts agree on all hosts", different))
    if all_names and not found:
        found.append(Finding(OK, "names", "resolve to the same addresses on all hosts"))
    return found
