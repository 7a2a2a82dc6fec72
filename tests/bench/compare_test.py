"""bench/compare: the columns and goals of its tables, plots drawn from tables, and that the plots in bench/results match their tables."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from warren_testing import SOURCE

sys.path.insert(0, str(SOURCE / "bench"))
from comparison import command, plot, report  # noqa: E402
from comparison.places import PLACES  # noqa: E402

RESULTS = SOURCE / "bench/results"


def records(place, ranks, collective, size, **microseconds):
    """Records of one sample per peer, taken between two samples of the first peer."""
    microseconds = {key.replace("_", "-"): value for key, value in microseconds.items()}
    first = next(iter(microseconds))
    ours = microseconds[first] / 1e6
    return [{"place": place, "ranks": ranks, "collective": collective, "bytes": size, "peer": peer, "failed": None, "stalled_s": 90,
             "seconds": [value / 1e6] if value else [],
             "pairs": [{"theirs": value / 1e6, "ours": [ours, ours], "cores": "near"}] if value and peer != first else []}
            for peer, value in microseconds.items()]  # fmt: skip


def composed(found, places=("host",), ours="warren"):
    comparison = mock.Mock(peers=[], records=found, ours=ours, lines=[], command_lines={}, notes=[], effort=mock.Mock(samples=1, rounds=1))
    return report.compose("bench/compare", comparison, [PLACES[key]() for key in places], mock.Mock(streams={}, memory={}))


def row(text, first):
    """The cells after `first` in the only row that begins with it."""
    found = [line[2:-2].split(" | ")[1:] for line in text.splitlines() if line.startswith(f"| {first} |")]
    assert len(found) == 1, found
    return found[0]


class Commands(unittest.TestCase):
    def test_a_report_shows_its_command_without_paths(self):
        words = "/clone/bench/compare --ranks 2,4 --python /venv/bin/python --json=/tmp/all.json --bin /clone/build/bin --quick --peers=warren"
        with mock.patch("sys.argv", words.split()):
            self.assertEqual(command.shown_command(), "bench/compare --ranks 2,4 --python PYTHON --quick --peers=warren")


class Tables(unittest.TestCase):
    def test_faces_of_warren_are_compared_and_are_not_the_best_peer(self):
        text = composed(records("host", 2, "allreduce", 8, warren=1, handles=2, openmpi=3, mpich=4))
        self.assertIn("| bytes | ours (min to max) | handles | Open MPI 4 | MPICH 4 | best peer / ours | memory limit | goal |", text)
        self.assertEqual(row(text, "8"), ["1.00 (n=1) (1.00 to 1.00)", "2.00 (n=1) (2.00x)", "**3.00 (n=1) (3.00x)**", "4.00 (n=1) (4.00x)",
                                          "3.00x", "", "met"])  # fmt: skip

    def test_without_a_competing_peer_there_is_no_best_one_and_no_goal(self):
        text = composed(records("host", 2, "1000-sums", 8, warren=1, packed=0.5))
        self.assertIn("| bytes | ours (min to max) | packed |\n", text)
        self.assertEqual(row(text, "8"), ["1.00 (n=1) (1.00 to 1.00)", "0.50 (n=1) (0.50x)"])

    def test_another_face_has_the_first_column_and_goals_of_its_own(self):
        found = [*records("host", 2, "allreduce", 8, torch_warren=10, torch=90),
                 *records("host", 2, "allreduce", 8192, torch_warren=10, torch=20)]
        text = composed(found, ours="torch-warren")
        self.assertIn("| bytes | warren.torch (min to max) | PyTorch's gloo | best peer / ours | memory limit | goal |", text)
        self.assertEqual(row(text, "8")[2:], ["9.00x", "", "missed: 9.00 of 10"])
        self.assertEqual(row(text, "8 Ki")[2:], ["2.00x", "", "met"])
        steps = composed(records("host", 2, "transformer-step", 0, torch_warren=10, torch=11), ours="torch-warren")
        self.assertEqual(row(steps, "0")[2:], ["1.10x", ""])
        over_tcp = composed(records("loopback", 2, "allreduce", 8, warren=1, mpich=1.2), ("loopback",))
        self.assertEqual(row(over_tcp, "8")[2:], ["1.20x", "", "missed: 1.20 of 1.3"])


class Pictures(unittest.TestCase):
    def test_the_first_collective_of_the_first_place_is_read_from_the_tables(self):
        text = composed([*records("host", 2, "allreduce", 4096, warren=1.5, openmpi=12345.678),
                         *records("host", 4, "allreduce", 8, warren=2, mpich=None),
                         *records("host", 4, "allreduce", 16, warren=2), *records("host", 2, "broadcast", 4096, warren=3),
                         *records("loopback", 2, "allreduce", 4096, warren=4)], ("host", "loopback"))
        title, panels = plot.read(text)
        self.assertEqual(title, "Allreduce: One host")
        self.assertEqual(panels, {2: {4096: {"warren": 1.5, "openmpi": 12346}}, 4: {8: {"warren": 2}, 16: {"warren": 2}}})

    def test_a_report_shows_its_picture_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "table.md")
            text = composed([*records("host", 2, "allreduce", 8, warren=1), *records("host", 2, "allreduce", 64, warren=2),
                             *records("loopback", 2, "broadcast", 8, warren=1)], ("host", "loopback"))
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
        self.assertEqual(len(pictures), 2)
        with tempfile.TemporaryDirectory() as folder:
            for picture in pictures:
                drawn = pathlib.Path(folder, picture.name)
                self.assertTrue(plot.draw(picture.with_suffix(".md").read_text(encoding="utf-8"), drawn))
                self.assertEqual(drawn.read_text(encoding="utf-8"), picture.read_text(encoding="utf-8"),
                                 f"draw it anew: bench/compare --redraw bench/results/{picture.stem}.md")


if __name__ == "__main__":
    unittest.main()
