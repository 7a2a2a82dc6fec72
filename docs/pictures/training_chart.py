"""Makes training.svg, the chart in README, from the first table of bench/results/training.md: python3 docs/pictures/training_chart.py"""

import pathlib
from typing import Dict, List, Tuple

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TABLE = SOURCE / "bench/results/training.md"
BOOSTERS = {"xgboost-3.4.1": "XGBoost 3.4.1", "lightgbm": "LightGBM 4.7.0"}
TRAINING = "20,000 x 50, depth 8, 30 rounds"
WORKERS = (2, 4, 8)
#: The table's columns to draw, with the class and the label of their bars.
BARS = {"one process, s": ("one", "one process, two threads"), "own, s": ("own", "workers over the library's own communication"),
        "over Warren, s": ("ours", "workers over Warren")}
LEFT, RIGHT, BAR, GAP = 216, 40, 16, 20
STYLE = """
    .ink { fill: #1f2328 } .soft { fill: #59636e } .one { fill: #afb8c1 } .own { fill: #6e7781 } .ours { fill: #0969da }
    @media (prefers-color-scheme: dark) {
      .ink { fill: #f0f6fc } .soft { fill: #a7b0ba } .one { fill: #484f58 } .own { fill: #8b949e } .ours { fill: #58a6ff }
    }
  """


def read(text: str) -> Dict[Tuple[str, int], Dict[str, float]]:
    """Returns the medians of the first table, in seconds. (The second table was measured on another day.)"""
    found: Dict[Tuple[str, int], Dict[str, float]] = {}
    table = text[text.index("| booster"):].split("\n\n")[0].splitlines()
    names = [name.strip() for name in table[0].strip("|").split("|")]
    for line in table[2:]:
        row = dict(zip(names, (cell.strip() for cell in line.strip("|").split("|"))))
        if row["place"] == "host" and row["training"] == TRAINING and row["booster"] in BOOSTERS and int(row["workers"]) in WORKERS:
            found[row["booster"], int(row["workers"])] = {name: float(row[name].split()[0]) for name in BARS}
    return found


def draw(found: Dict[Tuple[str, int], Dict[str, float]]) -> str:
    longest = max(seconds for bars in found.values() for seconds in bars.values())
    scale = (820 - LEFT - RIGHT) / longest
    lines: List[str] = []
    y = 46
    for (booster, workers), bars in found.items():
        lines.append(f'  <text class="ink" x="8" y="{y + 1.5 * BAR + 5:g}">{BOOSTERS[booster]}</text>')
        lines.append(f'  <text class="soft" x="{LEFT - 12}" y="{y + 1.5 * BAR + 5:g}" text-anchor="end">{workers} workers</text>')
        for name, (kind, _) in BARS.items():
            width = bars[name] * scale
            lines.append(f'  <rect class="{kind}" x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 2}" rx="2"/>')
            lines.append(f'  <text class="ink" x="{LEFT + width + 5:.1f}" y="{y + 11}" font-size="12">{bars[name]:.2f}</text>')
            y += BAR
        y += GAP
    legend, x = [], 8
    for kind, words in BARS.values():
        legend.append(f'  <rect class="{kind}" x="{x}" y="12" width="14" height="14" rx="2"/>')
        legend.append(f'  <text class="ink" x="{x + 20}" y="24">{words}</text>')
        x += 40 + round(7.1 * len(words))
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {y}" role="img" aria-labelledby="title" '
            'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="14">\n'
            f"  <title id=\"title\">Seconds of a training of {TRAINING}, on one host with 2 cores; shorter is better</title>\n"
            f"  <style>{STYLE}</style>\n")
    return head + "\n".join([*legend, *lines]) + "\n</svg>\n"


if __name__ == "__main__":
    (SOURCE / "docs/pictures/training.svg").write_text(draw(read(TABLE.read_text(encoding="utf-8"))), encoding="utf-8")
