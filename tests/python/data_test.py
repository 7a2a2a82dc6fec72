"""warren.data: what the reader gives to NumPy."""
import gc
import os
import pathlib
import tempfile
import unittest

import numpy as np
from sklearn.datasets import load_svmlight_file

from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

from warren import data  # noqa: E402

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"


class Read(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, text):
        path = self.folder / "a.txt"
        path.write_text(text)
        return str(path)

    def test_a_file_is_what_scikit_learn_reads(self):
        rows = data.read(HEART + "?indexing_mode=1")
        expected, labels = load_svmlight_file(HEART, zero_based=False)
        np.testing.assert_array_equal(rows.offsets, expected.indptr)
        np.testing.assert_array_equal(rows.indices, expected.indices)
        np.testing.assert_array_equal(rows.values, expected.data.astype("float32"))
        np.testing.assert_array_equal(rows.labels, labels)
        self.assertEqual((rows.columns, rows.weights, rows.group_sizes, rows.bad_rows), (13, None, None, 0))

    def test_arrays_outlive_what_they_came_from(self):
        values = data.read(HEART).values
        before = values.copy()
        gc.collect()
        np.testing.assert_array_equal(values, before)

    def test_parts_are_disjoint_and_complete(self):
        path = self.write("".join(f"{row} 0:1\n" for row in range(100)))
        labels = np.concatenate([data.read(path, part, 7).labels for part in range(7)])
        np.testing.assert_array_equal(labels, np.arange(100))

    def test_parts_that_there_are_none_of_are_errors(self):
        for part, parts in ((0, 0), (5, 3), (-1, 2), (0, -1), (0, 2**32 + 1)):
            self.assertRaisesRegex(ValueError, "part", data.read, HEART, part, parts)
        for threads in (-1, 100000):
            self.assertRaisesRegex(ValueError, "threads", data.read, HEART, threads=threads)
        for wrong in ("2", 1.5):
            self.assertRaises(TypeError, data.read, HEART, threads=wrong)
        self.assertEqual(len(data.read(pathlib.Path(HEART)).labels), 270)

    def test_labels_weights_and_queries(self):
        rows = data.read(self.write("1,2:3 qid:1 0:1\n3,4:3 qid:1 0:1\n5,6:0.5 qid:2\n"))
        np.testing.assert_array_equal(rows.labels, [[1, 2], [3, 4], [5, 6]])
        np.testing.assert_array_equal(rows.weights, [3, 0.5])
        np.testing.assert_array_equal(rows.group_sizes, [2, 1])

    def test_no_rows_are_no_rows(self):
        rows = data.read(self.write("# nothing\n"))
        self.assertEqual((rows.offsets.tolist(), rows.values.size, rows.labels.size), ([0], 0, 0))

    def test_workers_agree_on_the_columns(self):
        path = self.write("1 3:1\n")
        rows = data.read(path, allreduce_max=lambda values: np.maximum(values, np.array([9, 0, 0, 0, 0], "uint64")))
        self.assertEqual(rows.columns, 9)

    def test_what_the_agreement_raises_comes_out(self):
        def bad(_):
            raise KeyError("bad")
        self.assertRaises(KeyError, data.read, self.write("1 3:1\n"), allreduce_max=bad)

    def test_errors_name_file_line_and_column(self):
        with self.assertRaisesRegex(ValueError, r"a\.txt:2:3: found '3:x', expected"):
            data.read(self.write("1 3:1\n1 3:x\n"))
        with self.assertRaisesRegex(ValueError, "/no/such: "):
            data.read("/no/such")
        with self.assertRaisesRegex(ValueError, "a cache"):
            data.read(HEART + "#cache")
        with self.assertRaisesRegex(ValueError, "labels"):
            data.read(self.write("1 3:1\n1,2 3:1\n"))

    def test_the_largest_index_and_names_that_no_file_has(self):
        rows = data.read(self.write("1 4294967294:1\n"))
        self.assertEqual((rows.indices.tolist(), rows.columns), ([4294967294], 4294967295))
        self.assertRaisesRegex(ValueError, "null character", data.read, "a\0b")

    def test_bad_rows_are_counted_when_they_may_be_left_out(self):
        rows = data.read(self.write("1 3:1\nx\n") + "?bad_rows=skip")
        self.assertEqual((rows.labels.size, rows.bad_rows), (1, 1))
        self.assertIn("a.txt:2:1: found 'x'", rows.first_bad_row)


if __name__ == "__main__":
    unittest.main()
