"""Draws the tables of a report of bench/compare in SVG: time over bytes, both logarithmic, one panel for each number of ranks, a line for
each peer."""

import math
import os
import re

from comparison.peers import PEERS
from comparison.text import bytes_text

PANEL_WIDTH, PANEL_HEIGHT = 460, 340
MARGIN_LEFT, MARGIN_TOP, MARGIN_BOTTOM, GAP = 74, 76, 52, 40
# Colors that the color-blind can distinguish (Okabe and Ito); the marks differ, too.
STYLES = {"warren": ("#000000", 2.8, "circle"), "openmpi": ("#d55e00", 1.2, "square"),
          "openmpi5": ("#d55e00", 1.8, "diamond"), "mpich": ("#e69f00", 1.2, "diamond"),
          "mpich5": ("#e69f00", 1.8, "square"), "impi": ("#cc79a7", 1.8, "triangle"),
          "gloo": ("#0072b2", 1.2, "triangle"), "torch": ("#0072b2", 1.8, "circle"),
          "xgboost": ("#009e73", 1.6, "cross"), "xgboost.collective": ("#009e73", 1.8, "diamond"),
          "warren.rabit": ("#56b4e9", 1.8, "square"), "torch-warren": ("#000000", 1.8, "triangle")}
OTHER_STYLE = ("#999999", 1.2, "square")
INK, GRID = "#333333", "#dddddd"


class Picture:
    def __init__(self, width, height):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="{INK}">',
                      '<rect width="100%" height="100%" fill="white"/>']

    def line(self, x1, y1, x2, y2, colour=GRID, width=1):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                          f'stroke-width="{width}"/>')

    def text(self, x, y, text, anchor="middle", size=12, extra=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>'
                          f"{text}</text>")

    def curve(self, points, key):
        colour, width, mark = STYLES.get(key, OTHER_STYLE)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        for x, y in points:
            self.parts.append(_mark(x, y, mark, colour))

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.parts + ["</svg>"]) + "\n")


def _mark(x, y, mark, colour):
    r = 3.4
    corners = {"square": [(-r, -r), (r, -r), (r, r), (-r, r)], "diamond": [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
               "triangle": [(0, -r - 1), (r + 1, r), (-r - 1, r)]}
    if mark == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}"/>'
    if mark == "cross":
        return (f'<path d="M{x - r:.1f},{y - r:.1f}L{x + r:.1f},{y + r:.1f}M{x - r:.1f},{y + r:.1f}'
                f'L{x + r:.1f},{y - r:.1f}" stroke="{colour}" stroke-width="1.8"/>')
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners[mark])
    return f'<polygon points="{points}" fill="{colour}"/>'


def _decade_text(exponent):
    value, unit = (10 ** exponent, "us") if exponent < 3 else (10 ** (exponent - 3), "ms")
    if exponent >= 6:
        value, unit = 10 ** (exponent - 6), "s"
    return f"{value:g} {unit}"


def _bytes(text):
    """The inverse of text.bytes_text."""
    number, _, unit = text.partition(" ")
    return int(number) * {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "MB": 1_000_000}[unit]


def read(text):
    """Returns the contents of a report's picture, which shows the first collective at the first place: its title and {ranks: {bytes: {peer:
    microseconds}}}. ("", {}) if each table has fewer than two sizes, like those of a barrier."""
    place = re.search(r"^## (.*)\n((?:(?!## ).*\n)*)", text, re.MULTILINE)
    tables = re.findall(r"^### (\S+), (\d+) ranks\n\n((?:\|.*\n)+)", place[2], re.MULTILINE) if place else []
    panels = {}
    for collective, ranks, table in tables:
        if collective != tables[0][0]:
            continue
        head, _, *rows = ([cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines())
        for cells in rows:
            values = {name.removesuffix(" (min to max)"): re.match(r"\**([\d,.]+)", cell) for name, cell in zip(head, cells)}
            panels.setdefault(int(ranks), {})[_bytes(cells[0])] = {
                peer.key: float(values[peer.title][1].replace(",", "")) for peer in PEERS if values.get(peer.title)}
    if all(len(rows) < 2 for rows in panels.values()):
        return "", {}
    return f"{tables[0][0]}: {place[1]}", panels


def picture_of(report):
    """The path of the picture next to a report's file."""
    return os.path.splitext(report)[0] + ".svg"


def illustrated(text, report):
    """Draws the picture next to the report's file. Returns the text with the picture before the first table, or unchanged if there is
    nothing to draw."""
    if not draw(text, picture_of(report)):
        return text
    return text.replace("\n### ", f"\n![{read(text)[0]}]({os.path.basename(picture_of(report))})\n\n### ", 1)


def draw(text, path):
    """Draws the picture of a report from its tables alone, without measuring again. Returns whether the report has a picture."""
    title, panels = read(text)
    # A logarithmic axis cannot show the 0.00 of a single rank.
    panels = {ranks: {size: {key: value for key, value in row.items() if value} for size, row in rows.items()}
              for ranks, rows in panels.items()}
    panels = {ranks: rows for ranks, rows in panels.items() if any(rows.values())}
    if not panels:
        return False
    titles = {peer.key: peer.title for peer in PEERS if any(peer.key in row for rows in panels.values() for row in rows.values())}
    medians = [value for rows in panels.values() for row in rows.values() for value in row.values()]
    sizes = sorted({size for rows in panels.values() for size in rows})
    low, high = math.floor(math.log10(min(medians))), math.ceil(math.log10(max(medians)))
    high = max(high, low + 1)
    left, right = math.log2(sizes[0]) - 0.5, math.log2(sizes[-1]) + 0.5
    columns = min(2, len(panels))
    lines = math.ceil(len(panels) / columns)
    picture = Picture(columns * (PANEL_WIDTH + MARGIN_LEFT) + GAP, MARGIN_TOP + lines * (PANEL_HEIGHT + MARGIN_BOTTOM + GAP))
    picture.text(MARGIN_LEFT, 26, title, "start", 17, ' font-weight="bold"')

    x = MARGIN_LEFT
    for key, name in titles.items():
        picture.curve([(x, 46), (x + 14, 46), (x + 28, 46)], key)
        picture.text(x + 36, 50, name, "start", 13)
        x += 62 + 8 * len(name)

    for place, (ranks, rows) in enumerate(panels.items()):
        x0 = MARGIN_LEFT + (place % columns) * (PANEL_WIDTH + MARGIN_LEFT)
        y0 = MARGIN_TOP + (place // columns) * (PANEL_HEIGHT + MARGIN_BOTTOM + GAP) + 20

        def at(size, value_us, x0=x0, y0=y0):
            return (x0 + (math.log2(size) - left) / (right - left) * PANEL_WIDTH,
                    y0 + (high - math.log10(value_us)) / (high - low) * PANEL_HEIGHT)

        for exponent in range(low, high + 1):
            y = at(sizes[0], 10.0 ** exponent)[1]
            picture.line(x0, y, x0 + PANEL_WIDTH, y)
            picture.text(x0 - 8, y + 4, _decade_text(exponent), "end")
        for size in sizes:
            x = at(size, 10.0 ** low)[0]
            picture.line(x, y0, x, y0 + PANEL_HEIGHT)
            picture.text(x, y0 + PANEL_HEIGHT + 16, bytes_text(size).replace(" ", ""), size=11)
        picture.line(x0, y0, x0, y0 + PANEL_HEIGHT, INK)
        picture.line(x0, y0 + PANEL_HEIGHT, x0 + PANEL_WIDTH, y0 + PANEL_HEIGHT, INK)
        picture.text(x0 + PANEL_WIDTH / 2, y0 - 8, f"{ranks} ranks", size=14)
        picture.text(x0 + PANEL_WIDTH / 2, y0 + PANEL_HEIGHT + 36, "bytes")
        for key in reversed(titles):  # so that the first peer's curve is on top
            points = [at(size, row[key]) for size, row in rows.items() if key in row]
            if points:
                picture.curve(points, key)
    picture.save(path)
    return True
