"""Evaluates the measurements of `warren bench`: limits, bus bandwidths, the table. Pure functions."""
import math
from typing import Any, Dict, List

#: The text that precedes the figures in the output of the first rank.
MARK = "WARREN-BENCH "
SMALLEST = 8
_STEP = 8


def sizes(largest: int) -> List[int]:
    """Returns the sizes to measure: 8 B, 64 B and so on, up to and including `largest`."""
    found = []
    size = SMALLEST
    while size < largest:
        found.append(size)
        size *= _STEP
    return [*found, largest]


def factor(collective: str, ranks: int) -> float:
    """The minimum number of bytes that a rank must send or receive for each byte of the vector: the factor of the bus bandwidth."""
    return 2 * (ranks - 1) / ranks if collective == "allreduce" else 1.0 if ranks > 1 else 0.0


def with_limits(figures: Dict[str, Any]) -> Dict[str, Any]:
    """Adds `bus_bytes_per_s`, `limit_s` and `part_of_limit` to each row. The limit is the latency of ceil(log2(hosts)) messages (one message on
    a single host), plus the time to move `factor` times the row's bytes at the measured bandwidth. With several hosts, this is the network
    bandwidth, which the ranks on a host share; on one host, it is the bandwidth of memory copies by all ranks at the same time."""
    hosts = len(figures["hosts"])
    ranks = sum(host["ranks"] for host in figures["hosts"])
    between = figures.get("between_hosts")
    message = between or figures.get("on_a_host") or {"latency_s": 0.0, "bytes_per_s": math.inf}
    bandwidth = between["bytes_per_s"] if between else figures["copy_bytes_per_s"]
    steps = math.ceil(math.log2(hosts)) if hosts > 1 else 1
    rows = []
    for row in figures["rows"]:
        moved = factor(row["collective"], ranks) * row["bytes"]
        limit = steps * message["latency_s"] + factor(row["collective"], hosts if hosts > 1 else ranks) * row["bytes"] / bandwidth
        rows.append({**row, "bus_bytes_per_s": moved / row["seconds"], "limit_s": limit, "part_of_limit": limit / row["seconds"]})
    return {**figures, "rows": rows}


def notes(figures: Dict[str, Any]) -> List[str]:
    """Returns the caveats to print with the table."""
    found = []
    for host in figures["hosts"]:
        if host["ranks"] > host["cores"]:
            found.append(
                f"{host['ranks']} ranks share the {host['cores']} core{'s' * (host['cores'] > 1)} of {host['name']}: times are mostly "
                "spent waiting for a core")
    if sum(host["ranks"] for host in figures["hosts"]) == 1:
        found.append("a single rank sends no messages: give --num-workers 2 or more")
    return found


def bytes_text(count: float) -> str:
    """Formats a size, e.g. '64 KiB'."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count:g} B"


def time_text(seconds: float) -> str:
    """Formats a time with three digits, e.g. '3.21 us'."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit or name == "us":
            value = seconds / unit
            return f"{value:.{max(0, 2 - int(math.log10(value)) if value >= 1 else 2)}f} {name}"
    raise AssertionError(seconds)


def _bandwidth(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.2f} GB/s"


def text(figures: Dict[str, Any]) -> str:
    """Returns the figures as a table for display."""
    ranks = sum(host["ranks"] for host in figures["hosts"])
    places = ", ".join(f"{host['name']} ({host['ranks']}, {host['cores']} cores)" for host in figures["hosts"][:8])
    more = f" and {len(figures['hosts']) - 8} more" if len(figures["hosts"]) > 8 else ""
    lines = [f"{ranks} rank{'s' * (ranks > 1)} on {places}{more}"]
    lines += [f"note: {note}" for note in notes(figures)]
    lines.append(f"{'memory copy':24} {'':>10}  {_bandwidth(figures['copy_bytes_per_s']):>11}   each rank, all at once")
    for name, shown in (("on_a_host", "message on a host"), ("between_hosts", "message between hosts")):
        if figures.get(name):
            lines.append(
                f"{shown:24} {time_text(figures[name]['latency_s']):>10}  {_bandwidth(figures[name]['bytes_per_s']):>11}   one pair of "
                "ranks, one way"
            )
    lines += ["", f"{'':10} {'size':>13} {'time':>10}  {'bus':>11}   of the limit"]
    for row in figures["rows"]:
        lines.append(
            f"{row['collective']:10} {bytes_text(row['bytes']):>13} {time_text(row['seconds']):>10}  "
            f"{_bandwidth(row['bus_bytes_per_s']):>11} "
            f"{row['part_of_limit'] * 100:10.0f} %")
    return "\n".join(lines) + "\n"
