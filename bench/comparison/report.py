"""The report in Markdown: our times and those of every peer, the ratios of neighboring samples, the limits and the goals. "Ours" is
Warren, or the Warren interface that --ours names."""

import collections
import os
import statistics
import time

from comparison import machine
from comparison.peers import PEERS
from comparison.text import KI, MI, bytes_text, markdown, microseconds

COLLECTIVES = tuple(dict.fromkeys(name for peer in PEERS for name in peer.collectives))
WITHOUT_BYTES = ("barrier", "split", "transformer-step", "resnet18-step")
COMPETES = {peer.key for peer in PEERS if peer.competes}
# The goals for the speed relative to the best peer: on one host, and over TCP up to this many bytes.
HOST_GOAL, TCP_GOAL, TCP_GOAL_BYTES = 1.0, 1.3, 16 * MI
# The goals for torch.distributed on one host: up to this many bytes, and above.
TORCH_GOAL_BYTES, TORCH_GOALS = 4 * KI, (10, 2)


def ratio_text(ratio):
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:,.0f}x"


class Row:
    """The measurements for one place, number of ranks, collective and size."""

    def __init__(self, records, ours="warren"):
        self.ours = ours
        self.size = records[0]["bytes"]
        self.ranks = records[0]["ranks"]
        self.records = {record["peer"]: record for record in records}

    def median(self, peer):
        """The median seconds, or None."""
        record = self.records.get(peer)
        return statistics.median(record["seconds"]) if record and record["seconds"] else None

    def text(self, peer):
        record = self.records.get(peer)
        if record is None:
            return ""
        if not record["seconds"]:
            return "failed" if record["failed"] else f"> {record['stalled_s']} s"
        few = f" (n={len(record['seconds'])})" if len(record["seconds"]) < 9 else ""
        return microseconds(self.median(peer)) + few

    def with_ratio(self, peer):
        """A peer's time, and its ratio to ours."""
        ratio = self.ratio(peer)
        return self.text(peer) + (f" ({ratio_text(ratio)})" if ratio else "")

    def best_peer(self, cores=None):
        """The key of the fastest peer that competes with ours, or None."""
        known = [(self.ratio(key, cores), key) for key in self.records if key in COMPETES and self.ratio(key, cores)]
        return min(known)[1] if known else None

    def spread(self, peer):
        """The median, with the smallest and the largest sample."""
        if self.median(peer) is None:
            return self.text(peer)
        seconds = self.records[peer]["seconds"]
        return f"{self.text(peer)} ({microseconds(min(seconds))} to {microseconds(max(seconds))})"

    def ratio(self, peer, cores=None):
        """The ratio of the peer's time to ours: the median over its samples, each divided by the mean of our samples before and after it.
        With `cores` ("near", "far" or "both"), only samples taken while the cores were at that distance. None if there are no such
        samples."""
        record = self.records.get(peer)
        ratios = [pair["theirs"] / statistics.mean(pair["ours"]) for pair in (record or {}).get("pairs", ())
                  if cores in (None, pair["cores"])]
        return statistics.median(ratios) if ratios else None


def goal_text(row, tcp_only):
    best = row.best_peer()
    is_torch = row.ours == "torch-warren"
    if best is None or (tcp_only and row.size > TCP_GOAL_BYTES) or (is_torch and (tcp_only or row.size == 0)):
        return ""
    goal = TORCH_GOALS[row.size > TORCH_GOAL_BYTES] if is_torch else TCP_GOAL if tcp_only else HOST_GOAL
    return "met" if row.ratio(best) >= goal else f"missed: {row.ratio(best):.2f} of {goal:g}"


def memory_limit_s(row, rates):
    """The minimum time, in seconds, to read and write every rank's buffer once, with a core for each rank or with all cores; None if
    unknown."""
    if row.size not in rates:
        return None
    return row.ranks * row.size / min(row.ranks, os.cpu_count()) / rates[row.size]["copy_all_cores"]


def wire_rate(row, seconds):
    """The bytes per second through all sockets together: every allreduce moves at least 2 (ranks - 1) buffers."""
    return 2 * (row.ranks - 1) * row.size / seconds


def rows_of(records, place, ranks, collective, ours="warren"):
    sizes = sorted({record["bytes"] for record in records})
    grouped = [[record for record in records if (record["place"], record["ranks"], record["collective"],
                                                 record["bytes"]) == (place, ranks, collective, size)]
               for size in sizes]
    return [Row(group, ours) for group in grouped if group]


def table(rows, place, allreduce, limits):
    name = rows[0].ours
    keys = [peer.key for peer in PEERS if peer.key != name and any(peer.key in row.records for row in rows)]
    titles = {peer.key: peer.title for peer in PEERS}
    stream = limits.streams.get(place.key, {}).get("stream")
    distances = [cores for cores in ("near", "far", "both") if any(row.best_peer(cores) for row in rows)]
    head = ["bytes", f"{titles[name]} (min to max)"] + [titles[key] for key in keys]
    head += ["best peer / ours"] if distances else []
    head += [f"cores {cores}" for cores in distances if len(distances) > 1]
    if allreduce:
        head += ["of a stream"] if place.tcp_only else ["memory limit"]
    head += ["goal"] if distances else []
    lines = [head]
    for row in rows:
        best = row.best_peer()
        ours = row.median(name)
        line = [bytes_text(row.size), row.spread(name)]
        line += [f"**{row.with_ratio(key)}**" if key == best else row.with_ratio(key) for key in keys]
        ratios = [row.ratio(best)] if distances else []
        ratios += [row.ratio(row.best_peer(cores), cores) for cores in distances if len(distances) > 1]
        line += [ratio_text(ratio) if ratio else "" for ratio in ratios]
        if allreduce and place.tcp_only:
            line.append(f"{wire_rate(row, ours) / stream:.0%}" if ours and stream else "")
        elif allreduce:
            limit = memory_limit_s(row, limits.memory)
            line.append(microseconds(limit) if limit else "")
        line += [goal_text(row, place.tcp_only)] if distances else []
        lines.append(line)
    return markdown(lines)


def lines_text(lines):
    """A paragraph on the times of cache lines between cores."""
    pairs = sorted({pair for times in lines for pair in times})
    if not pairs:
        return ""
    seen = []
    for pair in pairs:
        values = sorted(times[pair] * 1e9 for times in lines)
        seen.append(f"{pair} {statistics.median(values):.0f} ns ({values[0]:.0f} to {values[-1]:.0f})")
    return (f"A cache line from core to core, before and after each case of each round: {', '.join(seen)}. Above "
            f"{machine.FAR_S * 1e9:.0f} ns cores are called far.\n")


def limits_table(rates):
    lines = [["bytes", "copy, one core", "add, one core", "copy, all cores", "add, all cores"]]
    for size, rate in rates.items():
        lines.append([bytes_text(size)] + [f"{rate[key] / 1e9:.1f}" for key in
                                           ("copy", "add", "copy_all_cores", "add_all_cores")])
    return markdown(lines)


def compose(command, comparison, places, limits):
    """The whole report without its picture (plot.draw)."""
    effort = comparison.effort
    versions = [peer.version() for peer in comparison.peers if peer.competes]
    titles = {peer.key: peer.title for peer in comparison.peers}
    parts = [f"""# Collectives

{time.strftime("%Y-%m-%d")}: `{command}`
({"; ".join([machine.description()] + versions)})

Medians in microseconds of {effort.samples} samples of each peer in each of {effort.rounds} rounds (n: where fewer than 9 were possible); float32
sums in place; ours with the fastest and the slowest sample. In brackets after a peer's time: its ratio to ours, the median of the ratios
of its samples to our samples just before and after each. The best peer is **bold**. Every result was checked. See bench/README.md.
""", lines_text(comparison.lines)]
    for place in places:
        parts.append(f"## {place.title}\n")
        stream = limits.streams.get(place.key)
        if stream:
            parts.append(f"One plain TCP stream: {stream['stream'] / 1e9:.2f} GB/s, half a round trip "
                         f"{stream['half_round_trip_s'] * 1e6:.1f} us. \"Of a stream\": what passes through all "
                         "sockets together, at least 2 (ranks - 1) buffers an allreduce, as a part of that.\n")
            exchanges = ", ".join(f"{int(size):,} B {seconds * 1e6:.1f} us" for size, seconds in
                                  stream["exchange_s"].items())
            parts.append(f"A bare exchange between two processes, with this many bytes in both directions at once: {exchanges}.\n")
        for collective in COLLECTIVES:
            parts += _collective(collective, place, comparison, limits)
    if limits.memory:
        parts.append("## Memory of this machine\n\nGB/s of payload for each core at work, buffers of the given size.\n")
        parts.append(limits_table(limits.memory))
    parts.append("## Command lines\n\nFor each mode that was the fastest in some row, with the fewest ranks.\n")
    place_titles = {place.key: place.title for place in places}
    parts.append("\n".join(f"- {place_titles[place]}, {titles[peer]}, {mode}: `{line}`"
                           for (place, peer, mode), line in comparison.command_lines.items()) + "\n")
    if comparison.notes:
        parts.append("## Failures\n")
        for note, times in collections.Counter(comparison.notes).items():
            parts.append("- " + note.replace("\n", "\n  ") + (f" ({times} times)" if times > 1 else ""))
        parts.append("")
    return "\n".join(parts)


def _collective(collective, place, comparison, limits):
    """Yields a heading and a table for each number of ranks."""
    for ranks in sorted({record["ranks"] for record in comparison.records}):
        rows = rows_of(comparison.records, place.key, ranks, collective, comparison.ours)
        if rows:
            yield f"### {collective.capitalize()}, {ranks} ranks\n"
            yield table(rows, place, collective == "allreduce", limits)
