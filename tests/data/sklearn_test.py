"""The reader returns the same matrices as scikit-learn's load_svmlight_file, and the same rows with every instruction set."""

import io
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import sklearn.datasets
from warren_testing import BIN

HEART_SCALE = pathlib.Path("/usr/share/doc/liblinear-tools/examples/heart_scale")
TYPES = {"offsets": numpy.uint64, "indices": numpy.uint32, "values": numpy.float32, "labels": numpy.float32,
         "qids": numpy.uint64}


def read_with_warren(uri, **env):
    done = subprocess.run([BIN / "dump_rows", uri], capture_output=True, check=False, env={**os.environ, **env})
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    out = io.BytesIO(done.stdout)
    arrays = {}
    for name, kind in TYPES.items():
        word, count = out.readline().split()
        assert word.decode() == name
        arrays[name] = numpy.frombuffer(out.read(int(count) * numpy.dtype(kind).itemsize), dtype=kind)
    return arrays


class ScikitLearn(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="warren-sklearn-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "data.svm"

    def compare(self, path, zero_based=True, query_id=False):
        loaded = sklearn.datasets.load_svmlight_file(str(path), zero_based=zero_based, query_id=query_id,
                                                     dtype=numpy.float64)
        matrix, labels = loaded[:2]
        ours = read_with_warren(f"{path}?indexing_mode={0 if zero_based else 1}")
        numpy.testing.assert_array_equal(ours["offsets"], matrix.indptr)
        numpy.testing.assert_array_equal(ours["indices"], matrix.indices)
        # scikit-learn parses doubles, Warren the nearest floats. Rounding twice differs from rounding once only for numbers very close to
        # the midpoint of two floats, which do not occur in these data.
        numpy.testing.assert_array_equal(ours["values"], matrix.data.astype(numpy.float32))
        numpy.testing.assert_array_equal(ours["labels"], labels.astype(numpy.float32))
        if query_id:
            numpy.testing.assert_array_equal(ours["qids"], loaded[2])
        self.assertGreater(len(ours["values"]), 0)

    def test_its_own_data_sets(self):
        for load in (sklearn.datasets.load_iris, sklearn.datasets.load_digits, sklearn.datasets.load_wine,
                     sklearn.datasets.load_breast_cancer, sklearn.datasets.load_diabetes):
            data, labels = load(return_X_y=True)
            for zero_based in (True, False):
                with self.subTest(data=load.__name__, zero_based=zero_based):
                    sklearn.datasets.dump_svmlight_file(data, labels, str(self.path), zero_based=zero_based)
                    self.compare(self.path, zero_based)

    def test_a_real_file(self):
        if not HEART_SCALE.exists():
            self.skipTest(f"{HEART_SCALE} is not installed")
        self.compare(HEART_SCALE)

    def test_random_matrices_with_comments_and_queries(self):
        chance = numpy.random.default_rng(3)
        for _ in range(10):
            data = chance.normal(size=(200, 30)) * 10.0 ** chance.integers(-20, 20, size=(200, 30))
            data[chance.random(data.shape) < 0.6] = 0
            sklearn.datasets.dump_svmlight_file(data, chance.normal(size=200), str(self.path), comment="by hand",
                                                query_id=numpy.sort(chance.integers(0, 20, size=200)))
            self.compare(self.path, query_id=True)

    def test_every_set_of_instructions(self):
        data, labels = sklearn.datasets.load_digits(return_X_y=True)
        sklearn.datasets.dump_svmlight_file(data, labels, str(self.path))
        expected = read_with_warren(str(self.path), WARREN_SIMD="plain")
        tried = []
        for simd in ("avx2", "sse4.1", "neon"):
            try:
                arrays = read_with_warren(str(self.path), WARREN_SIMD=simd)
            except AssertionError as error:
                self.assertIn(f"WARREN_SIMD={simd}: this machine supports plain", str(error))
                continue
            tried.append(simd)
            for name, array in arrays.items():
                numpy.testing.assert_array_equal(array, expected[name])
        self.assertTrue(tried)


if __name__ == "__main__":
    unittest.main()
