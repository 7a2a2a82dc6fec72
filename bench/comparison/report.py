"""The report in Markdown: ours beside every peer, the ratios, the limits and the goals."""

import collections
import os
import statistics
import time

from comparison import machine, plot
from comparison.peers import PEERS
from comparison.units import KI, MI, bytes_text

COLLECTIVES = ("allreduce", "broadcast", "allgather")


def microseconds(seconds):
    value = seconds * 1e6
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def ratio_text(ratio):
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:,.0f}x"


class Row:
    """What was measured for one place, number of ranks, collective and size."""

    def __init__(self, records):
        self.size = records[0]["bytes"]
        self.ranks = records[0]["ranks"]
        self.records = {record["peer"]: record for record in records}

    def median(self, peer):
        """Seconds, or None."""
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

    def best_peer(self):
        """(key, seconds) of the fastest one beside ours."""
        known = [(self.median(key), key) for key in self.records if key != "warren" and self.median(key)]
        return min(known)[::-1] if known else (None, None)

    def spread(self, peer):
        """Median, with the least and the largest."""
        if self.median(peer) is None:
            return self.text(peer)
        seconds = self.records[peer]["seconds"]
        return f"{self.text(peer)} ({microseconds(min(seconds))} to {microseconds(max(seconds))})"

    def ratio(self, peer):
        """How many times as long as ours the peer takes."""
        ours, other = self.median("warren"), self.median(peer)
        return other / ours if ours and other else None


def goals(row, tcp_only, stream_share):
    """The design's goals for allreduce as (what, wanted, reached); reached is None where it is not known."""
    if tcp_only:
        yield "Open MPI", 1.5, row.ratio("openmpi")
        yield "gloo", 1.5, row.ratio("gloo")
        if row.size >= MI:
            yield "stream", 0.9, stream_share
        return
    yield "best", 1.0, row.ratio(row.best_peer()[0])
    if row.size >= 256 * KI:
        yield "Open MPI", 2.0, row.ratio("openmpi")
    if row.size <= 4 * KI:
        yield "XGBoost", 20.0, row.ratio("xgboost")
    elif row.size > MI:
        yield "XGBoost", 5.0, row.ratio("xgboost")


def goal_text(row, tcp_only, stream_share):
    if row.median("warren") is None:
        return ""
    missed = [f"{what} {reached:.3g} of {wanted:g}" for what, wanted, reached in goals(row, tcp_only, stream_share)
              if reached is not None and reached < wanted]
    return "missed: " + ", ".join(missed) if missed else "met"


def memory_limit_s(row, rates):
    """The least time in which all cores together can read every rank's buffer once and write it once."""
    if row.size not in rates:
        return None
    return row.ranks * row.size / min(row.ranks, os.cpu_count()) / rates[row.size]["copy_all_cores"]


def wire_rate(row, seconds):
    """Bytes a second through all sockets together: every allreduce moves at least 2 (ranks - 1) buffers."""
    return 2 * (row.ranks - 1) * row.size / seconds


def markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def rows_of(records, place, ranks, collective):
    sizes = sorted({record["bytes"] for record in records})
    grouped = [[record for record in records if (record["place"], record["ranks"], record["collective"],
                                                 record["bytes"]) == (place, ranks, collective, size)]
               for size in sizes]
    return [Row(group) for group in grouped if group]


def table(rows, place, allreduce, limits):
    keys = [peer.key for peer in PEERS if peer.key != "warren" and any(peer.key in row.records for row in rows)]
    titles = {peer.key: peer.title for peer in PEERS}
    stream = limits.streams.get(place.key, {}).get("stream")
    head = ["bytes", "ours (min to max)"] + [titles[key] for key in keys] + ["best peer / ours"]
    head += [f"{titles[key]} / ours" for key in ("openmpi", "xgboost") if key in keys]
    if allreduce:
        head += ["of a stream"] if place.tcp_only else ["memory limit"]
        head += ["goal"]
    lines = [head]
    for row in rows:
        best = row.best_peer()[0]
        ours = row.median("warren")
        line = [bytes_text(row.size), row.spread("warren")]
        line += [f"**{row.text(key)}**" if key == best else row.text(key) for key in keys]
        line += [ratio_text(ratio) if ratio else "" for ratio in
                 [row.ratio(best)] + [row.ratio(key) for key in ("openmpi", "xgboost") if key in keys]]
        if allreduce:
            share = wire_rate(row, ours) / stream if ours and stream else None
            if place.tcp_only:
                line.append(f"{share:.0%}" if share else "")
            else:
                limit = memory_limit_s(row, limits.memory)
                line.append(microseconds(limit) if limit else "")
            line.append(goal_text(row, place.tcp_only, share))
        lines.append(line)
    return markdown(lines)


def limits_table(rates):
    lines = [["bytes", "copy, one core", "add, one core", "copy, all cores", "add, all cores"]]
    for size, rate in rates.items():
        lines.append([bytes_text(size)] + [f"{rate[key] / 1e9:.1f}" for key in
                                           ("copy", "add", "copy_all_cores", "add_all_cores")])
    return markdown(lines)


def compose(command, comparison, places, limits, folder):
    """The whole report; the pictures that it shows are drawn into `folder`, if there is one."""
    effort = comparison.effort
    versions = [peer.version() for peer in comparison.peers if peer.key != "warren"]
    titles = {peer.key: peer.title for peer in comparison.peers}
    parts = [f"""# Collectives

{time.strftime("%Y-%m-%d")}: `{command}`
({"; ".join([machine.description()] + versions)})

Medians in microseconds over {effort.rounds} rounds in which all peers have their turn, up to {effort.samples} samples a round (n: where
fewer than 9 were possible); float32 sums in place; ours with the fastest and the slowest sample. The best peer is
**bold**; a ratio above 1 says that ours is faster. Every result was checked. See bench/README.md.
"""]
    for place in places:
        parts.append(f"## {place.title}\n")
        stream = limits.streams.get(place.key)
        if stream:
            parts.append(f"One plain TCP stream: {stream['stream'] / 1e9:.2f} GB/s, half a round trip "
                         f"{stream['half_round_trip_s'] * 1e6:.1f} us. \"Of a stream\": what passes through all "
                         "sockets together, at least 2 (ranks - 1) buffers an allreduce, as a part of that.\n")
            exchanges = ", ".join(f"{int(size):,} B {seconds * 1e6:.1f} us" for size, seconds in
                                  stream["exchange_s"].items())
            parts.append(f"A bare exchange between two processes, so many bytes each way at once: {exchanges}.\n")
        for collective in COLLECTIVES:
            parts += _collective(collective, place, comparison.records, titles, limits, folder)
    if limits.memory:
        parts.append("## Memory of this machine\n\nGB/s of payload for each core at work, buffers of the given size.\n")
        parts.append(limits_table(limits.memory))
    parts.append("## Command lines\n\nOf each mode that was the fastest somewhere, with the least ranks.\n")
    place_titles = {place.key: place.title for place in places}
    parts.append("\n".join(f"- {place_titles[place]}, {titles[peer]}, {mode}: `{line}`"
                           for (place, peer, mode), line in comparison.command_lines.items()) + "\n")
    if comparison.notes:
        parts.append("## What went wrong\n")
        for note, times in collections.Counter(comparison.notes).items():
            parts.append("- " + note.replace("\n", "\n  ") + (f" ({times} times)" if times > 1 else ""))
        parts.append("")
    return "\n".join(parts)


def _collective(collective, place, records, titles, limits, folder):
    """A picture, and a table for each number of ranks."""
    panels = {ranks: rows_of(records, place.key, ranks, collective)
              for ranks in sorted({record["ranks"] for record in records})}
    panels = {ranks: rows for ranks, rows in panels.items() if rows}
    if folder and panels:
        picture = f"{collective}_{place.key}.svg"
        plot.draw(os.path.join(folder, picture), f"{collective.capitalize()}: {place.title}", panels, titles)
        yield f"![{collective}, {place.title}]({picture})\n"
    for ranks, rows in panels.items():
        yield f"### {collective.capitalize()}, {ranks} ranks\n"
        yield table(rows, place, collective == "allreduce", limits)
