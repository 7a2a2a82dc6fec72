"""bench/compare: the picture of a report is drawn from its tables, and bench/results has what its tables show."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from warren_testing import SOURCE

sys.path.insert(0, str(SOURCE / "bench"))
from comparison import plot, report  # noqa: E402
from comparison.places import PLACES  # noqa: E402

RESULTS = SOURCE / "bench/results"


def records(place, ranks, collective, size, **microseconds):
    """One sample of each peer, between two of ours."""
    ours = microseconds["warren"] / 1e6
    return [{"place": place, "ranks": ranks, "collective": collective, "bytes": size, "peer": peer, "failed": None, "stalled_s": 90,
             "seconds": [value / 1e6] if value else [],
             "pairs": [{"theirs": value / 1e6, "ours": [ours, ours], "cores": "near"}] if value and peer != "warren" else []}
            for peer, value in microseconds.items()]  # fmt: skip


def composed(found, places=("host",)):
    comparison = mock.Mock(peers=[], records=found, lines=[], command_lines={}, notes=[], effort=mock.Mock(samples=1, rounds=1))
    return report.compose("bench/compare", comparison, [PLACES[key]() for key in places], mock.Mock(streams={}, memory={}))


class Pictures(unittest.TestCase):
    def test_the_first_collective_of_the_first_place_is_read_from_the_tables(self):
        text = composed([*records("host", 2, "allreduce", 4096, warren=1.5, openmpi=12345.678), *records("host", 4, "allreduce", 8, warren=2, mpich=None),
                         *records("host", 2, "broadcast", 4096, warren=3), *records("loopback", 2, "allreduce", 4096, warren=4)], ("host", "loopback"))
        title, panels = plot.read(text)
        self.assertEqual(title, "Allreduce: One host")
        self.assertEqual(panels, {2: {4096: {"warren": 1.5, "openmpi": 12346}}, 4: {8: {"warren": 2}}})

    def test_a_report_shows_its_picture_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "table.md")
            text = composed([*records("host", 2, "allreduce", 8, warren=1), *records("loopback", 2, "broadcast", 8, warren=1)], ("host", "loopback"))
            self.assertEqual(plot.illustrated(text, path).count("![Allreduce: One host](table.svg)\n\n### Allreduce, 2 ranks\n"), 1)
            self.assertIn("<polyline", path.with_suffix(".svg").read_text(encoding="utf-8"))

    def test_a_report_without_sizes_has_none(self):
        with tempfile.TemporaryDirectory() as folder:
            text = composed(records("host", 2, "barrier", 0, warren=1, openmpi=2))
            self.assertIn("### Barrier, 2 ranks", text)
            self.assertEqual(plot.illustrated(text, pathlib.Path(folder, "table.md")), text)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


class Results(unittest.TestCase):
    def test_there_are_tables_and_at_most_one_picture_of_each(self):
        for file in RESULTS.iterdir():
            self.assertIn(file.suffix, (".md", ".svg"), file)
            if file.suffix == ".svg":
                self.assertIn(f"]({file.name})", file.with_suffix(".md").read_text(encoding="utf-8"))
            else:
                self.assertLessEqual(file.read_text(encoding="utf-8").count(".svg)"), 1, file)

    def test_pictures_show_their_tables(self):
        pictures = list(RESULTS.glob("*.svg"))
        self.assertEqual(len(pictures), 3)
        with tempfile.TemporaryDirectory() as folder:
            for picture in pictures:
                drawn = pathlib.Path(folder, picture.name)
                self.assertTrue(plot.draw(picture.with_suffix(".md").read_text(encoding="utf-8"), drawn))
                self.assertEqual(drawn.read_text(encoding="utf-8"), picture.read_text(encoding="utf-8"),
                                 f"draw it anew: bench/compare --redraw bench/results/{picture.stem}.md")


if __name__ == "__main__":
    unittest.main()
