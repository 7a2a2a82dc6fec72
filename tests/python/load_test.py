"""warren.data: Parquet, Arrow and CSV files as arrays, and their errors."""
import arrow_python  # noqa: F401  # pylint: disable=unused-import,wrong-import-order
import contextlib
import dataclasses
import datetime
import io
import linecache
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

from warren import data  # noqa: E402
from warren.data import _files, _load, _peers, _progress  # noqa: E402
from warren.data._columnar import columns as _columns  # noqa: E402
from warren.data._columnar import converter as _converter  # noqa: E402
from warren.data._columnar import formats  # noqa: E402
from warren.data._columnar import source as _source  # noqa: E402
from warren.data._columnar.pieces import Piece  # noqa: E402
from warren.data._exchange import predictions as _predictions  # noqa: E402

COLUMNS = ("a", "b", "c", "t", "d")
CATEGORIES = {"c": ["x", "yy", "z"]}


def table(rows, seed=0):
    """A table with features of several types (COLUMNS: numbers, categories, booleans), a label, weights and queries."""
    rng = np.random.default_rng(seed)
    a = rng.random(rows).astype("float32")
    return pa.table({
        "a": pa.array(a, mask=rng.random(rows) < 0.1), "b": pa.array(rng.integers(-1000, 1000, rows)),
        "c": pa.array(rng.choice(["x", "yy", "z"], rows), mask=rng.random(rows) < 0.1).dictionary_encode(),
        "t": pa.array(rng.random(rows) < 0.5), "d": pa.array(np.round(rng.random(rows), 3)).cast(pa.float64()),
        "y": pa.array((a > 0.5).astype("int8")), "w": pa.array(rng.random(rows)),
        "q": pa.array(np.sort(rng.integers(0, max(1, rows // 7), rows)) + 100000 * seed)})


def expected(of, columns=COLUMNS, categories=None):
    """The features of a pyarrow.Table, computed independently: row by row, in Python."""
    codes = CATEGORIES if categories is None else categories
    rows = []
    for row in of.to_pylist():
        values = [codes[name].index(row[name]) if name in codes and row[name] is not None else row[name] for name in columns]
        rows.append([np.nan if value is None else float(value) for value in values])
    return np.array(rows, "float32").reshape(-1, len(columns))


class Numbers(unittest.TestCase):
    def test_are_those_of_pyarrow_wherever_an_array_begins_and_whatever_is_missing(self):
        rng = np.random.default_rng(1)
        for kind in (*(pa.from_numpy_dtype(f"{sign}int{bits}") for sign in ("u", "") for bits in (8, 16, 32, 64)),
                     pa.float16(), pa.float32(), pa.float64(), pa.bool_()):
            for rows, missing in ((0, 0), (1, 0), (8, 0.3), (9, 1), (100, 0), (100, 0.3)):
                whole = rng.integers(0, 2, rows) > 0 if kind == pa.bool_() else rng.integers(0, 100, rows).astype(kind.to_pandas_dtype())
                array = pa.array(whole, kind, mask=rng.random(rows) < missing if missing else None)
                for begin in (0, 1, 3, 8, 13):
                    part = array.slice(begin, max(0, rows - begin - begin % 3))
                    found, given = _columns.numbers(part), part.to_numpy(zero_copy_only=False)
                    if given.dtype == object or (kind == pa.float16() and part.null_count):
                        given = given.astype("float32" if kind == pa.bool_() else "float64")
                    with self.subTest(kind=str(kind), rows=rows, missing=missing, begin=begin):
                        self.assertEqual(found.dtype, given.dtype)
                        np.testing.assert_array_equal(found, given)

    def test_are_loaded_without_pandas(self):
        """Importing pandas would take longer than loading a small file. (With categories, pyarrow.array imports pandas anyway.)"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.parquet")
            pq.write_table(table(1000), path)
            code = (f"import sys; from warren import data; print(len(data.load({path!r}, label='y', exclude='c', progress=False)), "
                    "sys.modules.keys() & {'pandas', 'pyarrow.dataset'})")
            said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, "1000 set()\n")


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def parquet(self, name, of, rows=100):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(of, path, row_group_size=rows)
        return path

    def refused(self, words, *args, kind=ValueError, **named):
        with self.assertRaisesRegex(kind, words):
            data.load(*args, **named)


class Formats(Folder):
    def test_a_parquet_file_is_what_its_rows_say(self):
        whole = table(1234)
        found = data.load(self.parquet("a.parquet", whole), label="y", weight="w", exclude="q")
        np.testing.assert_array_equal(found.features, expected(whole))
        self.assertEqual((found.names, found.types), (list(COLUMNS), ["q", "int", "c", "i", "q"]))
        np.testing.assert_array_equal(found.label, whole["y"].to_numpy().astype("float32"))
        np.testing.assert_array_equal(found.weight, whole["w"].to_numpy().astype("float32"))
        self.assertEqual((found.qid, found.base_margin, found.categories, len(found)), (None, None, CATEGORIES, 1234))

    def test_arrow_feather_and_csv_files_are_the_same(self):
        whole = table(3000)
        pa.feather.write_feather(whole, self.folder / "a.feather", chunksize=400)
        with pa.ipc.new_file(self.folder / "b.arrow", whole.schema) as file:
            file.write_table(whole, max_chunksize=512)
        plain = whole.set_column(2, "c", whole["c"].cast(pa.string()))
        pa.csv.write_csv(plain, self.folder / "a.csv")
        import gzip
        (self.folder / "b.csv.gz").write_bytes(gzip.compress((self.folder / "a.csv").read_bytes()))
        (self.folder / "c.tsv").write_text((self.folder / "a.csv").read_text().replace(",", "\t"))
        (self.folder / "d.csv").write_text((self.folder / "a.csv").read_text().replace(",", ";").replace("\n", "\r\n"))
        for name, more in (("a.feather", {}), ("b.arrow", {}), ("a.csv", {}), ("b.csv.gz", {}), ("c.tsv", {}), ("d.csv", {"delimiter": ";"})):
            with self.subTest(name=name):
                if "sv" in name:
                    more["categorical"] = "c"
                found = data.load(self.folder / name, label="y", exclude=["q", "w"], **more)
                np.testing.assert_allclose(found.features, expected(whole), rtol=1e-6)
                np.testing.assert_array_equal(found.label, whole["y"].to_numpy())
                self.assertEqual(found.categories, CATEGORIES)

    def test_every_type_of_number(self):
        values = [1, 0, None, 100]
        kinds = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(),
                 pa.float64(), pa.decimal128(9, 3), pa.float16()]
        columns = {str(kind): pa.array(np.array([1, 0, 0, 100], "float16"), mask=np.array([0, 0, 1, 0], bool)) if kind == pa.float16()
                   else pa.array(values, kind) for kind in kinds}
        columns["bool"] = pa.array([True, False, None, True])
        columns["null"] = pa.nulls(4)
        with pa.ipc.new_file(self.folder / "a.arrow", pa.table(columns).schema) as file:
            file.write_table(pa.table(columns))
        found = data.load(self.folder / "a.arrow").features
        for at in range(len(kinds)):
            np.testing.assert_array_equal(found[:, at], [1, 0, np.nan, 100], str(kinds[at]))
        np.testing.assert_array_equal(found[:, -2], [1, 0, np.nan, 1])
        self.assertTrue(np.isnan(found[:, -1]).all())

    def test_vectors_are_a_feature_for_each_element(self):
        whole = pa.table({"v": pa.array([[1.0, 2.0], None, [5.0, None]], pa.list_(pa.float32(), 2)), "y": [1, 2, 3]})
        found = data.load(self.parquet("a.parquet", whole, 2), label="y")
        self.assertEqual(found.names, ["v.0", "v.1"])
        np.testing.assert_array_equal(found.features, [[1, 2], [np.nan, np.nan], [5, np.nan]])

    def test_extension_types_are_what_they_are_stored_as(self):
        bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None, 5], pa.int8()))
        pictures = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2, 2]),
                                                  pa.array([[1, 2, 3, 4], None, [5, 6, 7, 8], [0, 0, 0, None]], pa.list_(pa.float32(), 4)))
        whole = pa.table({"b": bools, "p": pictures, "y": [1, 2, 3, 4]})
        pa.feather.write_feather(whole, self.folder / "a.feather")
        for path in (self.parquet("a.parquet", whole), self.folder / "a.feather"):
            found = data.load(path, label="y")
            self.assertEqual((found.names, found.types), (["b", "p.0", "p.1", "p.2", "p.3"], ["i", "q", "q", "q", "q"]))
            np.testing.assert_array_equal(found.features, [[1, 1, 2, 3, 4], [0, np.nan, np.nan, np.nan, np.nan], [np.nan, 5, 6, 7, 8],
                                                           [1, 0, 0, 0, np.nan]])
            self.assertEqual(data.load(path, label="b", features="y", filters=[("y", "!=", 3)]).label.tolist(), [1, 0, 1])
            self.assertEqual(data.load(path, categorical="b", features=["b"]).categories, {"b": [False, True]})

    def test_lists_without_elements_are_named(self):
        path = self.parquet("a.parquet", pa.table({"v": pa.array([[], []], pa.list_(pa.float32(), 0)), "x": [1, 2]}))
        self.refused(r"column 'v' is fixed_size_list<.*>\[0\], whose lists have no elements: leave it out with exclude=", path)
        self.assertEqual(data.load(path, exclude="v").names, ["x"])

    def test_format_is_seen_in_the_content_of_files_without_an_ending(self):
        (self.parquet("a.parquet", table(50))).rename(self.folder / "part-0")
        self.assertEqual(len(data.load(self.folder)), 50)
        self.assertEqual(len(data.load(self.folder / "part-0", label="y")), 50)
        (self.folder / "text").mkdir()
        (self.folder / "text/a").write_text("1 0:2 3:4\n0 1:1\n")
        found = data.load(self.folder / "text")
        np.testing.assert_array_equal(found.features.toarray(), [[2, 0, 0, 4], [0, 1, 0, 0]])
        self.assertEqual((found.label.tolist(), found.names), ([1, 0], None))

    def test_text_has_its_labels_in_it(self):
        (self.folder / "a.svm").write_text("1:2 qid:1 0:2\n0:2 qid:1 1:1\n1:3 qid:2 1:1\n")
        found = data.load(self.folder / "a.svm")
        self.assertEqual((found.weight.tolist(), found.qid.tolist(), found.group_sizes.tolist(), found.query_weight.tolist()),
                         ([2, 2, 3], [0, 0, 1], [2, 1], [2, 3]))
        self.refused("neither its name nor its first bytes", self.folder / "a.svm", label="y")
        self.refused("leave label", self.folder / "a.svm", label="y", format="libsvm")


class SharesOfFiles(Folder):
    def many(self, files=5):
        tables = [table(1000 * (k + 1) + 7, k) for k in range(files)]
        for k, one in enumerate(tables):
            self.parquet(f"year={2020 + k % 2}/p{k}.parquet", one, 700)
        order = [k for k in range(files) if k % 2 == 0] + [k for k in range(files) if k % 2]
        return pa.concat_tables([tables[k].append_column("year", pa.array([2020 + k % 2] * len(tables[k]))) for k in order])

    def shares(self, world, **named):
        return [data.load(self.folder, label="y", exclude=["w"] + ["q"] * ("qid" not in named), categories=CATEGORIES,
                          rank=rank, world=world, **named) for rank in range(world)]

    def test_any_number_of_workers_reads_the_same_rows_in_the_same_order(self):
        whole = expected(self.many(), (*COLUMNS, "year"))
        for shuffle in (None, 5):
            alone = self.shares(1, shuffle=shuffle)[0]
            if shuffle is None:
                np.testing.assert_array_equal(alone.features, whole)
            else:
                self.assertFalse(np.array_equal(alone.features, whole, equal_nan=True))
                np.testing.assert_array_equal(np.sort(alone.features[:, 4]), np.sort(whole[:, 4]))
            for world in (2, 3, 40):
                shares = self.shares(world, shuffle=shuffle)
                np.testing.assert_array_equal(np.concatenate([one.features for one in shares]), alone.features)
                np.testing.assert_array_equal(np.concatenate([one.label for one in shares]), alone.label)

    def test_queries_stay_whole(self):
        self.many()
        for shuffle in (None, 5):
            alone = self.shares(1, qid="q", shuffle=shuffle)[0]
            self.assertEqual(alone.group_sizes.sum(), len(alone))
            for world in (2, 3, 7):
                shares = self.shares(world, qid="q", shuffle=shuffle)
                np.testing.assert_array_equal(np.concatenate([one.features for one in shares]), alone.features)
                self.assertEqual(sum([one.group_sizes.tolist() for one in shares], []), alone.group_sizes.tolist())

    def test_csv_is_cut_at_rows_wherever_its_ranges_end(self):
        rng = np.random.default_rng(1)
        rows = [f"{k},{'7' * rng.integers(1, 60)}" for k in range(20000)]
        (self.folder / "a.csv").write_text("id,b\n" + "\n".join(rows))
        for world in (1, 2, 5):
            shares = [data.load(self.folder / "a.csv", label="id", rank=rank, world=world) for rank in range(world)]
            np.testing.assert_array_equal(np.concatenate([one.label for one in shares]), np.arange(20000, dtype="float32"))
            self.assertTrue(all(len(one) for one in shares))

    def test_more_workers_than_rows_leave_some_without(self):
        self.parquet("a.parquet", table(3))
        shares = [data.load(self.folder, label="y", categories=CATEGORIES, rank=rank, world=5) for rank in range(5)]
        self.assertEqual(sorted(len(one) for one in shares), [0, 0, 1, 1, 1])
        self.assertEqual({(one.features.shape[1], tuple(one.names), one.features.dtype.str, one.label.shape) for one in shares if not len(one)},
                         {(7, ("a", "b", "c", "t", "d", "w", "q"), "<f4", (0,))})

    def test_filters_leave_rows_out_and_do_not_read_row_groups_without_any(self):
        whole = self.many()
        for filters, keep in (([("year", "=", 2021), ("b", ">", 500)], lambda row: row["year"] == 2021 and row["b"] > 500),
                              ([[("year", "=", 2021)], [("b", ">", 900)]], lambda row: row["year"] == 2021 or row["b"] > 900),
                              ([("q", ">", 250000)], lambda row: row["q"] > 250000), ([("c", "in", ["x", "z"])], lambda row: row["c"] in ("x", "z"))):
            with self.subTest(filters=filters):
                found = np.concatenate([one.features for one in self.shares(3, filters=filters)])
                np.testing.assert_array_equal(found, expected(pa.Table.from_pylist([row for row in whole.to_pylist() if keep(row)],
                                                                                  whole.schema), (*COLUMNS, "year")))
        read, original = [], _source.Source._batches
        self.enterContext(unittest.mock.patch.object(
            _source.Source, "_batches", lambda self, one, *args, **named: read.append(one.piece) or original(self, one, *args, **named)))
        self.shares(1, filters=[("q", ">", 400000)])
        self.assertEqual({piece.file for piece in read}, {2})  # p4 of 2020, the third file in order
        read.clear()
        self.shares(1, filters=[("year", "=", 2021)])
        self.assertEqual({piece.file for piece in read}, {3, 4})
        read.clear()
        self.shares(1, filters=[("year", "=", 2020), ("q", ">", 400000)])
        self.assertEqual({piece.file for piece in read}, {2})

    def test_categories_are_those_of_all_workers_where_they_are_said(self):
        self.parquet("a.parquet", pa.table({"c": pa.array(["b", "a", None]).dictionary_encode(), "y": [0, 1, 2]}))
        found = data.load(self.folder, label="y", categories={"c": ["z", "b", "a"]})
        np.testing.assert_array_equal(found.features[:, 0], [1, 2, np.nan])
        self.refused(r"a\.parquet, row group 0: column 'c' has the category 'a', which is not one of 'z', 'b'", self.folder, label="y",
                     categories={"c": ["z", "b"]})
        self.refused("workers that do not communicate cannot agree on the categories of 'c'", self.folder, label="y", rank=0, world=2)

    def test_dictionaries_that_differ_by_row_group_and_have_words_that_no_row_has(self):
        first = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["b", "unused"]))
        with pa.ipc.new_file(self.folder / "a.arrow", pa.schema([("c", first.type), ("y", pa.int64())]),
                             options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=False)) as file:
            file.write_batch(pa.record_batch([first, pa.array([1, 2, 3])], ["c", "y"]))
        found = data.load(self.folder, label="y")
        self.assertEqual(found.categories, {"c": ["b", "unused"]})
        (self.folder / "a.arrow").unlink()
        first = pa.DictionaryArray.from_arrays(pa.array([0, 0, None]), pa.array(["b", "unused"]))
        self.parquet("a.parquet", pa.table({"c": first, "y": [1, 2, 3]}))
        self.parquet("b.parquet", pa.table({"c": pa.array(["a", "b", "c"]).dictionary_encode(), "y": [1, 2, 3]}))
        found = data.load(self.folder, label="y")
        self.assertEqual(found.categories, {"c": ["a", "b", "c"]})
        np.testing.assert_array_equal(found.features[:, 0], [1, 1, np.nan, 0, 1, 2])


class Other(Folder):
    def test_columns_of_arrow_files_are_read_a_few_at_a_time_though_their_rows_are_not_counted(self):
        from warren._xgboost.same_model import cuts as _cuts
        pa.feather.write_feather(pa.table({f"x{k}": np.random.default_rng(k).random(10000) for k in range(8)}), self.folder / "a.feather")
        with contextlib.closing(_load.Wanted(self.folder / "a.feather").source(_peers.Alone())) as source:
            self.assertEqual([piece.rows for piece in source.pieces], [-1])
            with unittest.mock.patch.object(_cuts, "BLOCK_BYTES", 100_000):
                blocks = list(_cuts._blocks_of_files(_converter.Converter(source, None)))
        self.assertEqual(sum(len(block.types) for block in blocks), 8)
        self.assertGreater(len(blocks), 2)

    def test_only_the_columns_that_are_used_are_read_from_arrow_files(self):
        whole = pa.table({f"c{i}": np.full(50000, i, "float64") for i in range(20)})
        path = self.folder / "a.feather"
        pa.feather.write_feather(whole, path, chunksize=10000, compression="uncompressed")
        read = []

        class Counting(io.FileIO):
            def read(self, size=-1):
                found = super().read(size)
                read.append(len(found))
                return found

        with unittest.mock.patch.object(_files, "open_arrow", lambda file, **_: pa.PythonFile(Counting(file.uri), mode="r")):
            table_of_two = data.load(path, label="c3", features=["c7"])
        np.testing.assert_array_equal(table_of_two.label, np.full(50000, 3))
        np.testing.assert_array_equal(table_of_two.features, np.full((50000, 1), 7))
        # Two columns, the first one for the numbers of rows, and the metadata.
        self.assertLess(sum(read), 4 * whole["c3"].nbytes)

    def test_a_warning_refers_to_the_line_that_loads(self):
        path = self.folder / "a.svm"
        path.write_text("1 1:1\nx\n")
        uri = f"{path}?format=libsvm&bad_rows=skip"
        with self.assertWarnsRegex(UserWarning, "1 bad rows .* were skipped") as caught:
            data.load(uri)
        self.assertIn("data.load(uri)", linecache.getline(caught.filename, caught.lineno))
        with self.assertWarnsRegex(UserWarning, "1 bad rows .* were skipped") as caught:
            list(data.batches(uri))
        self.assertIn("data.batches(uri)", linecache.getline(caught.filename, caught.lineno))

    def test_a_feather_file_of_one_batch_is_shared_out_by_rows(self):
        whole = table(1000)
        pa.feather.write_feather(whole, self.folder / "a.feather", chunksize=100000)
        shares = [data.load(self.folder / "a.feather", label="y", exclude="q", categories=CATEGORIES, rank=rank, world=3) for rank in range(3)]
        self.assertEqual([len(one) for one in shares], [333, 334, 333])
        np.testing.assert_array_equal(np.concatenate([one.features for one in shares]), expected(whole, (*COLUMNS, "w")))

    def test_other_files_in_a_folder_of_parquet_are_named(self):
        self.parquet("a.parquet", table(10))
        (self.folder / "README.txt").write_text("These are flights.")
        self.refused(r"README\.txt: begins with b'Thes', which no Parquet file does: leave it out", self.folder, label="y")

    def test_rows_in_memory_are_no_files(self):
        import pandas as pd
        for rows in (pd.DataFrame({"x": [1]}), np.zeros((2, 2)), [1, 2], None):
            self.refused("expected the name of a file", rows, kind=TypeError)

    def test_home_is_where_the_tilde_is(self):
        self.parquet("a.parquet", table(10))
        (self.folder / "a.svm").write_text("1 0:1\n")
        self.enterContext(unittest.mock.patch.dict(os.environ, HOME=str(self.folder)))
        self.assertEqual([len(data.load(name)) for name in ("~/a.parquet", "~/a.svm", ["~/a.parquet"])], [10, 1, 10])
        with contextlib.chdir(self.enterContext(tempfile.TemporaryDirectory())):
            _predictions.write("~/out.npy", lambda: np.arange(3), whole=True, overwrite=False, form=None, storage_options=None)
            self.assertEqual((np.load(self.folder / "out.npy").tolist(), os.listdir()), ([0, 1, 2], []))


class Pandas(Folder):
    def test_an_index_is_no_feature_but_where_it_is_named(self):
        import pandas as pd
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
        for name, one, index in (("a", frame.iloc[[2, 0, 1]], "__index_level_0__"), ("b", frame.set_index("y"), "y"), ("c", frame, None)):
            one.to_parquet(self.folder / f"{name}.parquet")
            self.assertEqual(data.load(self.folder / f"{name}.parquet", exclude=["y"]).names, ["x"])
            if index is not None:
                self.assertEqual(data.load(self.folder / f"{name}.parquet", features=[index]).names, [index])
        self.assertEqual(data.load(self.folder / "b.parquet", label="y").label.tolist(), [0, 1, 0])
        frame.to_csv(self.folder / "a.csv")
        self.assertEqual(data.load(self.folder / "a.csv", label="y").names, ["x"])

    def test_types_with_missing_values(self):
        import pandas as pd
        frame = pd.DataFrame({"i": pd.array([1, None, 3], "Int64"), "b": pd.array([True, None, False], "boolean"),
                              "f": pd.array([0.5, None, 2.0], "Float64"), "c": pd.Categorical(["u", None, "t"]), "y": [1, 2, 3]})
        frame.to_parquet(self.folder / "a.parquet")
        found = data.load(self.folder / "a.parquet", label="y")
        np.testing.assert_array_equal(found.features, [[1, 1, 0.5, 1], [np.nan] * 4, [3, 0, 2, 0]])
        self.assertEqual((found.types, found.categories), (["int", "i", "q", "c"], {"c": ["t", "u"]}))


class Categories(Folder):
    def codes(self, values, chunks=100, **named):
        whole = pa.table({"c": values, "y": [0] * len(values)})
        path = self.folder / "a.arrow"
        with pa.ipc.new_file(path, whole.schema) as file:
            file.write_table(whole, chunks)
        found = data.load(path, label="y", categorical="c", **named)
        return found.features[:, 0].tolist(), found.categories["c"]

    def test_nan_is_missing_like_null(self):
        nan = float("nan")
        codes, values = self.codes(pa.array([2.0, nan, 1.0, nan, 0.0, None]), 2)
        np.testing.assert_array_equal(codes, [2, np.nan, 1, np.nan, 0, np.nan])
        self.assertEqual(values, [0.0, 1.0, 2.0])
        dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([nan, 5.0]))
        np.testing.assert_array_equal(self.codes(dictionary)[0], [np.nan, 0, np.nan])

    def test_words_are_compared_as_words(self):
        self.assertEqual(self.codes(pa.array(["007", "7", "7.0"])), ([0, 1, 2], ["007", "7", "7.0"]))
        self.assertEqual(self.codes(pa.array(["7", "8"]), categories={"c": [8, 7]}), ([1, 0], [8, 7]))
        self.assertEqual(self.codes(pa.array([7, 8]), categories={"c": ["8", "7"]}), ([1, 0], ["8", "7"]))
        with self.assertRaisesRegex(ValueError, "has the category '007', which is not one of '7'"):
            self.codes(pa.array(["007"]), categories={"c": [7]})
        with self.assertRaisesRegex(ValueError, "has the category 1.5, which is not one of '1', '2'"):
            self.codes(pa.array([1.0, 1.5]), categories={"c": [1, 2]})

    def test_an_unknown_one_behind_a_null_of_a_dictionary_is_refused(self):
        dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array([None, "zzz", "a"]))
        with self.assertRaisesRegex(ValueError, "has the category 'zzz', which is not one of 'a'"):
            self.codes(dictionary, categories={"c": ["a"]})
        unused = pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array([None, "zzz", "a"]))
        np.testing.assert_array_equal(self.codes(unused, categories={"c": ["a"]})[0], [np.nan, 0])

    def test_every_type_that_is_one(self):
        import decimal
        import json
        day, noon = datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 12)
        for values, words in (([True, False], None), ([3, 1], None), ([2**63 - 1, -2**63], None), ([1.5, 0.5], None), (["b", "a"], None),
                              ([b"b", b"a"], ["b'b'", "b'a'"]), ([day, day.replace(day=1)], ["2024-01-02", "2024-01-01"]),
                              ([noon, noon.replace(day=1)], ["2024-01-02 12:00:00", "2024-01-01 12:00:00"]),
                              ([noon.time(), datetime.time(1)], ["12:00:00", "01:00:00"]),
                              ([datetime.timedelta(2), datetime.timedelta(1)], ["2 days, 0:00:00", "1 day, 0:00:00"]),
                              ([decimal.Decimal("2.50"), decimal.Decimal("1.00")], ["2.5", "1"])):
            for column in (pa.array([*values, values[0]]), pa.array([*values, values[0]]).dictionary_encode()):
                with self.subTest(values=values, kind=column.type):
                    codes, found = self.codes(column)
                    self.assertEqual((codes, found), ([1, 0, 1], (words or values)[::-1]))
                    # The categories must survive a round trip through JSON, in which the docs recommend storing them with the model.
                    for given in (found, json.loads(json.dumps(found)), values[::-1], [*found, "another"]):
                        self.assertEqual(self.codes(column, categories={"c": given})[0], [1, 0, 1])
        with self.assertRaisesRegex(ValueError, r"categories\['c'\] has \[1\], expected words or numbers"):
            self.codes(pa.array([1]), categories={"c": [[1]]})
        whole = pa.table({"c": pa.array(["b", None, "a"], pa.string_view()), "y": [0, 1, 2]})
        with pa.ipc.new_file(self.folder / "a.arrow", whole.schema) as file:
            file.write_table(whole)
        found = data.load(self.folder / "a.arrow", label="y", categorical="c")
        np.testing.assert_array_equal(found.features[:, 0], [1, np.nan, 0])
        self.assertEqual(found.categories, {"c": ["a", "b"]})

    def test_times_have_nanoseconds(self):
        import json
        count = 1704110400 * 10**9
        for kind, more in ((pa.timestamp("ns"), 1000), (pa.timestamp("ns", "UTC"), 1000), (pa.time64("ns"), 1000), (pa.duration("ns"), 1000)):
            begin = count if "timestamp" in str(kind) else 3600 * 10**9
            word = {"timestamp[ns]": "2024-01-01 12:00:00{}", "timestamp[ns, tz=UTC]": "2024-01-01 12:00:00{}+00:00", "time64[ns]": "01:00:00{}",
                    "duration[ns]": "1:00:00{}"}[str(kind)]
            column = pa.array([begin + 1001, begin, None, begin + 1, begin + more], kind)
            for one in (column, column.dictionary_encode()):
                with self.subTest(kind=one.type):
                    codes, found = self.codes(one)
                    self.assertEqual(found, [word.format(rest) for rest in ("", ".000000001", ".000001", ".000001001")])
                    np.testing.assert_array_equal(codes, [3, 0, np.nan, 1, 2])
                    np.testing.assert_array_equal(self.codes(one, categories={"c": json.loads(json.dumps(found))})[0], codes)
        before = pa.array([-1], pa.timestamp("ns"))
        self.assertEqual(self.codes(before), ([0], ["1969-12-31 23:59:59.999999999"]))
        # Equal times in different units are one category, written as pandas writes it.
        stored = [pa.array([begin // scale], pa.timestamp(unit)) for unit, scale in (("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9))
                  for begin in [count]]
        for k, column in enumerate(stored):
            pq.write_table(pa.table({"c": column, "y": [0]}), self.folder / f"{k}.parquet")
        (self.folder / "a.arrow").unlink()
        found = data.load(self.folder, label="y", categorical="c")
        self.assertEqual((found.features[:, 0].tolist(), found.categories), ([0] * 4, {"c": ["2024-01-01 12:00:00"]}))

    def test_one_moment_in_several_zones_is_several_words_in_the_order_of_time(self):
        for name, zone, value in (("a", "UTC", 12), ("b", "Europe/Berlin", 12), ("c", "UTC", 11), ("d", "America/New_York", 13)):
            pq.write_table(pa.table({"c": pa.array([value * 3600], pa.timestamp("s", zone)), "y": [0]}), self.folder / f"{name}.parquet")
        found = data.load(self.folder, label="y", categorical="c")
        self.assertEqual(found.categories["c"], ["1970-01-01 11:00:00+00:00", "1970-01-01 12:00:00+00:00", "1970-01-01 13:00:00+01:00",
                                                 "1970-01-01 08:00:00-05:00"])
        self.assertEqual(found.features[:, 0].tolist(), [1, 2, 0, 3])
        again = data.load(self.folder, label="y", categories=found.categories)
        np.testing.assert_array_equal(again.features, found.features)

    def test_pandas_categories_of_numbers_are_categories_in_parquet_too(self):
        import pandas as pd
        frame = pd.DataFrame({"i": pd.Categorical([30, 10, None, 30]), "b": pd.Categorical([True, False, True, None]),
                              "f": pd.Categorical([1.5, 2.5, 1.5, 1.5]), "w": pd.Categorical(["u", "t", "u", "u"]),
                              "n": [4, 3, 2, 1], "y": [0, 1, 0, 1]})
        frame.to_parquet(self.folder / "a.parquet", row_group_size=3)
        frame.to_feather(self.folder / "a.feather")
        for name in ("a.parquet", "a.feather"):
            with self.subTest(name=name):
                found = data.load(self.folder / name, label="y")
                self.assertEqual(found.types, ["c", "c", "c", "c", "int"])
                self.assertEqual(found.categories, {"i": [10, 30], "b": [False, True], "f": [1.5, 2.5], "w": ["t", "u"]})
                np.testing.assert_array_equal(found.features[:, :4], [[1, 1, 0, 1], [0, 0, 1, 0], [np.nan, 1, 0, 1], [1, np.nan, 0, 1]])
                kept = data.load(self.folder / name, label="y", filters=[("i", ">", 10)])
                self.assertEqual(kept.features[:, 0].tolist(), [0, 0])
                # Numbers used as a label or a weight stay numbers.
                self.assertEqual(data.load(self.folder / name, label="f", weight="n", features=["w"]).label.tolist(), [1.5, 2.5, 1.5, 1.5])
                self.refused("column 'w', the label, is dictionary<.*>, expected numbers", self.folder / name, label="w")
                (batch,) = data.batches(self.folder / name, kind="arrow")
                self.assertEqual(batch["i"].to_pylist(), [30, 10, None, 30])

    def test_decimals_are_their_values_however_many_digits_a_file_stores(self):
        import decimal
        import json
        for name, kind, value in (("a", pa.decimal128(5, 2), "1.10"), ("b", pa.decimal128(9, 4), "1.1000"), ("c", pa.decimal128(9, 4), "100")):
            pq.write_table(pa.table({"c": pa.array([decimal.Decimal(value)], kind), "y": [0]}), self.folder / f"{name}.parquet")
        found = data.load(self.folder, label="y", categorical="c")
        self.assertEqual((found.features[:, 0].tolist(), found.categories), ([0, 0, 1], {"c": ["1.1", "100"]}))
        again = data.load(self.folder, label="y", categories=json.loads(json.dumps(found.categories)))
        np.testing.assert_array_equal(again.features, found.features)

    def test_zeros_of_both_signs_are_one_category(self):
        for kind in (pa.float16(), pa.float32(), pa.float64()):
            zeros = np.array([0.0, -0.0, 1.0, -0.0], kind.to_pandas_dtype())
            for column in (pa.array(zeros), pa.array(zeros[::-1]), pa.array(zeros).dictionary_encode(),
                           pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(zeros[1:]))):
                with self.subTest(kind=column.type):
                    codes, values = self.codes(column)
                    self.assertEqual(codes, [float(value.as_py()) for value in column])
                    self.assertEqual([str(value) for value in values], ["0.0", "1.0"])
                    for given in ([0.0, 1.0], [-0.0, 1.0], [0, 1], np.array([-0.0, 1], "float32")):
                        self.assertEqual(self.codes(column, categories={"c": given})[0], codes)

    def test_polars_files_are_read(self):
        import polars as pl
        frame = pl.DataFrame({"c": ["b", None, "a"], "y": [0, 1, 2]}).with_columns(pl.col("c").cast(pl.Categorical))
        for write, name in ((frame.write_parquet, "b.parquet"), (frame.write_ipc, "b.arrow")):
            write(self.folder / name)
            found = data.load(self.folder / name, label="y")
            np.testing.assert_array_equal(found.features[:, 0], [1, np.nan, 0])

    def test_folders_with_leading_zeros_are_numbers_unless_they_are_categories(self):
        for name in ("01", "1", "10"):
            self.parquet(f"k={name}/a.parquet", pa.table({"x": [1], "y": [0]}))
        for uri, numbers in ((self.folder, [1, 1, 10]), (f"{self.folder}/k=1*", [1, 10]), (f"{self.folder}/k=01*", [1])):
            found = data.load(uri, label="y")
            self.assertEqual((found.types, found.features[:, 1].tolist()), (["int", "int"], numbers))
        self.assertEqual(len(data.load(self.folder, label="y", filters=[("k", "==", 1)])), 2)
        found = data.load(self.folder, label="y", categorical="k")
        self.assertEqual((found.types, found.categories), (["int", "c"], {"k": ["01", "1", "10"]}))
        found = data.load(self.folder, label="y", categories={"k": ["10", "1", "01"]})
        self.assertEqual(found.features[:, 1].tolist(), [2, 1, 0])
        for odd in ("²", "9" * 20):
            self.parquet(f"k={odd}/a.parquet", pa.table({"x": [1], "y": [0]}))
        self.assertEqual(len(data.load(self.folder, label="y").categories["k"]), 5)


class Queries(Folder):
    def sizes(self, world=1, **named):
        shares = [data.load(self.folder, qid="q", rank=rank, world=world, **named) for rank in range(world)]
        return [one.group_sizes.tolist() for one in shares]

    def test_words_are_queries(self):
        words = ["16777216", "16777217", "007", "7", "7.0", "x", "x"]
        for values in (pa.array(words), pa.array(words).dictionary_encode()):
            self.parquet("a.parquet", pa.table({"x": range(7), "q": values}), 3)
            self.assertEqual(self.sizes(), [[1, 1, 1, 1, 1, 2]])
            for world in (2, 3, 5):
                self.assertEqual(sum(self.sizes(world), []), [1, 1, 1, 1, 1, 2])

    def test_numbers_beyond_what_floats_hold(self):
        self.parquet("a.parquet", pa.table({"x": range(4), "q": [2**62, 2**62 + 1, 2**62 + 1, 2**62 + 2]}))
        self.assertEqual(self.sizes(), [[1, 2, 1]])

    def test_files_may_number_theirs_anew(self):
        for name in "ab":
            self.parquet(f"{name}.parquet", pa.table({"x": range(20), "q": np.repeat(np.arange(10), 2)}), 6)
        for world in (1, 2, 3, 4):
            self.assertEqual(sum(self.sizes(world), []), [2] * 20)
            self.assertEqual(sum(self.sizes(world, shuffle=3), []), [2] * 20)

    def test_one_that_goes_on_in_the_next_file_is_one_but_where_files_are_shuffled(self):
        self.parquet("a.parquet", pa.table({"x": range(4), "q": [1, 1, 2, 2]}))
        self.parquet("b.parquet", pa.table({"x": range(4), "q": [2, 2, 3, 3]}))
        for world in (1, 2, 3):
            self.assertEqual(sum(self.sizes(world), []), [2, 4, 2])
            for seed in range(4):
                self.assertEqual(sum(self.sizes(world, shuffle=seed), []), [2, 2, 2, 2])

    def test_many_are_told_apart_quickly(self):
        self.parquet("a.parquet", pa.table({"x": range(300000), "q": range(300000)}), 300000)
        calls = []
        import sys
        sys.setprofile(lambda frame, event, _: calls.append(1) if event == "call" else None)
        try:
            self.assertEqual(len(data.load(self.folder, qid="q", rank=0, world=2).group_sizes), 150000)
        finally:
            sys.setprofile(None)
        self.assertLess(len(calls), 100000)


class Wrong(Folder):
    def test_columns_that_are_not_there(self):
        path = self.parquet("a.parquet", table(10))
        for named in ({"label": "yy"}, {"weight": "yy"}, {"qid": "yy"}, {"features": ["a", "yy"]}, {"exclude": "yy"}, {"categorical": "yy"},
                      {"filters": [("yy", "=", 1)]}):
            self.refused(rf"a\.parquet: {list(named)[0]}='yy': no such column; did you mean 'y'\? Its columns are 'y', ", path, **named)
        other = self.parquet("c.parquet", pa.table({f"f{k}": [1.0] for k in range(20)} | {"Target Value": [1], "weights": [1.0]}))
        for typed, meant in (("target_value", "'Target Value'"), ("Targt Value", "'Target Value'"), ("weight", "'weights'"),
                             ("f99", "'f9' or 'f19'")):
            self.refused(rf"c\.parquet: label='{typed}': no such column; did you mean {meant}\? Its columns are {meant.split(' or ')[0]}",
                         other, label=typed)
        self.refused(r"c\.parquet: label='zzz': no such column; its columns are 'f0', 'f1'", other, label="zzz")
        self.refused(r"c\.parquet: label='f77': no such column", other, label=["f1", "f77"])
        text = self.folder / "d.csv"
        text.write_text("target,a\n1,2\n")
        self.refused(r"d\.csv: label='targt': no such column; did you mean 'target'\? Its columns are 'target', 'a'", text, label="targt")
        self.refused("has no feature columns", path, features=["y"], label="y")

    def test_words_where_numbers_are_due(self):
        path = self.parquet("a.parquet", pa.table({"s": ["a", "b"], "y": [1, 2], "when": pa.array([0, 1], pa.timestamp("us")), "l": [[1], [2]]}))
        self.refused(r"a\.parquet: column 's' is string, expected numbers: name it in categorical.*\(row group 0\)$", path, label="y")
        self.parquet("many.parquet", pa.table({"s": ["a"] * 30, "y": [1] * 30}), 10)
        self.refused(r"many\.parquet: column 's' is string.* \(row groups 0 to 2\)$", self.folder / "many.parquet", label="y")
        self.refused(r"column 'when' is timestamp\[us\], expected numbers", path, label="y", exclude="s")
        self.refused(r"column 'l' is list", path, label="y", features=["l"])
        self.refused(r"column 's' is string, .*; column 'when' is timestamp.*; column 'l' is list", path, label="y")
        self.refused(r"column 's', the label, is string, expected numbers", path, label="s", features=["y"])

    def test_files_that_do_not_agree(self):
        self.parquet("a.parquet", pa.table({"x": [1.5], "y": [1]}))
        path = self.parquet("b.parquet", pa.table({"y": [1]}))
        self.refused(r"b\.parquet: has no feature columns", self.folder, label="y")
        self.parquet("b.parquet", pa.table({"x": [1], "y": [1], "z": [1]}))
        self.refused(r"b\.parquet: has the column 'z', which the first file does not have", self.folder, label="y")
        self.assertEqual(len(data.load(self.folder, label="y", features=["x"])), 2)
        self.parquet("b.parquet", pa.table({"x": ["1"], "y": [1]}))
        self.refused(r"b\.parquet: column 'x' is string", self.folder, label="y")
        self.parquet("b.parquet", pa.table({"x": pa.array(["1"]).dictionary_encode(), "y": [1]}))
        self.refused(r"b\.parquet: column 'x' is a category, and a number in the first file", self.folder, label="y")
        self.parquet("b.parquet", pa.table({"x": [7], "y": [1.0]}))
        self.assertEqual(data.load(self.folder, label="y").types, ["q"])
        path.write_bytes(b"")
        self.refused(r"b\.parquet: ", self.folder, label="y")

    def test_folders_that_name_a_column_of_the_file_with_other_values(self):
        for folder, same, other in (("2024", pa.array([2024, 2024]), pa.array([2024, 2023])),
                                    ("2024", pa.array(["2024"] * 2), pa.array(["2024", "x"])),
                                    ("20240131", pa.array([20240131] * 2), pa.array([20240131, 20240130])),
                                    ("07", pa.array([7, 7]), pa.array([7, 70])),
                                    ("a", pa.array(["a", "a"]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()),
                                    ("2024-01-31", pa.array([datetime.date(2024, 1, 31)] * 2), pa.array([datetime.date(2024, 1, 30)] * 2)),
                                    ("true", pa.array([True, True]), pa.array([True, False])), ("7", pa.array([7, 7]), pa.array([7, None])),
                                    ("__HIVE_DEFAULT_PARTITION__", pa.array([None, None], pa.int64()), pa.array([None, 1]))):
            for kind in ("parquet", "csv"):
                path = self.folder / kind / f"k={folder}" / f"x.{kind}"
                for column, good in ((same, True), (other, False)):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    written = pa.table({"k": column, "x": [1, 2], "y": [0, 1]})
                    pq.write_table(written, path) if kind == "parquet" else pa.csv.write_csv(written, path)
                    with self.subTest(folder=folder, kind=kind, column=column):
                        if good:
                            self.assertEqual(len(data.load(self.folder / kind, label="y")), 2)
                        else:
                            words = rf"k={folder}/x\.{kind}, .*: column 'k' has the value .*, but the file is in the folder k={folder}:"
                            self.refused(words, self.folder / kind, label="y")
                            if folder == "2024":
                                self.refused(words, self.folder / kind, label="y", features="x", filters=[("k", ">", 7)])
                            self.assertEqual(len(data.load(self.folder / kind, label="y", exclude="k")), 2)
                path.unlink()
                path.parent.rmdir()
        self.parquet("l/year=2024/x.parquet", pa.table({"year": [2023, 2022], "x": [1, 2]}))
        self.refused(r"column 'year' has the value '202[23]', but the file is in the folder year=2024", self.folder / "l", label="year")

    def test_values_that_are_missing_where_they_must_not_be(self):
        path = self.parquet("a.parquet", pa.table({"x": range(300), "y": [1.0] * 250 + [None] * 50, "w": [1.0] * 120 + [-1.0] * 180,
                                                   "q": [1] * 100 + [None] * 200}))
        self.refused(r"a\.parquet, row group 2, row 50: the label in column 'y' is nothing, expected a number", path, label="y")
        self.refused(r"a\.parquet, row group 1, row 20: the weight in column 'w' is -1\.0, expected a number from 0 on", path, weight="w")
        self.refused(r"a\.parquet, row group 1: 100 rows have no value in the qid column 'q'", path, qid="q")

    def test_queries_that_are_not_together_or_have_two_weights(self):
        path = self.parquet("a.parquet", pa.table({"x": range(6), "q": [1, 1, 2, 2, 1, 1], "w": [1, 1, 1, 2, 1, 1]}), 3)
        self.refused(r"a\.parquet: the rows of query 1 \(column 'q'\) are not together: sort the file by it", path, qid="q")
        path = self.parquet("b.parquet", pa.table({"x": range(4), "q": [1, 1, 2, 2], "w": [1, 1, 1, 2]}), 2)
        self.refused(r"b\.parquet, row group 1: the rows of query 2 \(column 'q'\) have different weights", path, qid="q", weight="w")

    def test_a_query_that_comes_again_is_refused_with_the_last_batch(self):
        for queries in ([1, 1, 2, 2, 1, 1], ["a", "a", "b", "b", "a", "a"]):
            path = self.parquet("a.parquet", pa.table({"x": range(6), "q": queries}), 3)
            for more in ({}, {"drop_last": True}, {"rank": 0, "world": 1}):
                rows = 0
                with self.assertRaisesRegex(ValueError, r"a\.parquet: the rows of query [1a] \(column 'q'\) are not together: sort"):
                    for batch in data.batches(path, 4, qid="q", **more):
                        rows += len(batch.features)
                self.assertEqual(rows, 4)
        path = self.parquet("b.parquet", pa.table({"x": range(6), "q": [1, 1, 1, 2, 2, 2]}), 2)
        self.assertEqual([len(batch.features) for batch in data.batches(path, 4, qid="q")], [4, 2])

    def test_a_query_that_comes_again_in_another_share_is_refused_without_a_job_too(self):
        for queries in (list(range(20)) * 2, [f"q{k}" for k in range(20)] * 2):
            path = self.parquet("a.parquet", pa.table({"x": range(400), "q": np.repeat(queries, 10)}), 50)
            for rank in range(2):
                self.refused(r"a\.parquet: the rows of query q?0 \(column 'q'\) are not together: sort the file by it", path, qid="q", rank=rank,
                             world=2)
        path = self.parquet("a.parquet", pa.table({"x": range(400), "q": np.repeat(range(40), 10)}), 50)
        self.assertEqual(sum(len(data.load(path, qid="q", rank=rank, world=3)) for rank in range(3)), 400)

    def test_weights_that_differ_in_a_query_that_goes_on_in_the_next_row_group(self):
        path = self.parquet("a.parquet", pa.table({"x": range(4), "q": [1, 1, 1, 1], "w": [1, 1, 2, 2]}), 2)
        self.refused(r"row group 1: the rows of query 1 \(column 'q'\) have different weights", path, qid="q", weight="w")

    def test_qids_of_another_kind_in_another_file(self):
        self.parquet("a.parquet", pa.table({"x": [1], "q": [1]}))
        self.parquet("b.parquet", pa.table({"x": [1], "q": ["1"]}))
        self.refused(r"b\.parquet: column 'q', the qid, has words, and numbers in the first file", self.folder, qid="q")

    def test_labels_that_float32_cannot_hold(self):
        path = self.parquet("a.parquet", pa.table({"x": [1, 2], "y": [1.0, 1e300]}))
        self.refused(r"row group 0, row 1: the label in column 'y' is 1e\+300", path, label="y")
        self.parquet("a.parquet", pa.table({"x": [1, 2, 3], "y": [float("inf"), 1, None]}))
        self.refused(r"row group 0, row 2: the label in column 'y' is nothing", path, label="y")

    def test_categories_with_missing_values_or_twice(self):
        path = self.parquet("a.parquet", pa.table({"c": ["a", "b"], "y": [1, 2]}))
        for values in (["a", "b", None], ["a", "b", float("nan")]):
            self.refused(r"categories\['c'\] has a missing value", path, label="y", categories={"c": values})
        self.refused(r"categories\['c'\] has a value twice", path, label="y", categories={"c": ["a", "b", "a"]})

    def test_types_that_are_no_categories(self):
        path = self.parquet("a.parquet", pa.table({"t": pa.array([[1], [2]]), "y": [1, 2]}))
        self.refused(r"column 't' is list<.*>, which cannot be a category", path, label="y", categorical="t")
        path = self.parquet("a.parquet", pa.table({"t": pa.array([2**50], pa.timestamp("ms")), "y": [1]}))
        self.refused(r"a\.parquet, row group 0: column 't' has a time that Python cannot show \(.*\): convert it to words", path, label="y",
                     categorical="t")

    def test_files_with_different_types_of_categories(self):
        import decimal
        day, noon = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
        utc = pa.array([noon], pa.timestamp("us", "UTC"))
        for first, other, words in ((pa.array([noon]), pa.array([day]), "has dates as categories, and times without a zone in"),
                                    (pa.array([noon]), utc, "has times with a zone as categories, and times without a zone in"),
                                    (pa.array([b"a"]), pa.array(["a"]), "has words as categories, and bytes in"),
                                    (pa.array([5]), pa.array(["5"]).dictionary_encode(), "has words as categories, and numbers in"),
                                    (pa.array([5]), pa.array([decimal.Decimal("5")]), "has decimals as categories, and numbers in"),
                                    (pa.array([noon.time()]), pa.array([datetime.timedelta(1)]), "has durations as categories, and times of day in")):
            for name, column in (("a", first), ("b", pa.nulls(1)), ("c", other)):
                self.parquet(f"{name}.parquet", pa.table({"k": column, "y": [0]}))
            with self.subTest(first=first.type, other=other.type):
                self.refused(rf"c\.parquet: column 'k' {words} the files before: convert one, or leave it out with exclude=\[\.\.\.\] "
                             r"\(row group 0\)$", self.folder, label="y", categorical="k")
        # categories= applies to words and numbers alike.
        for name, column in (("a", pa.array([7])), ("c", pa.array(["7"]))):
            self.parquet(f"{name}.parquet", pa.table({"k": column, "y": [0]}))
        np.testing.assert_array_equal(data.load(self.folder, label="y", categories={"k": ["8", "7"]}).features[:, 0], [1, np.nan, 1])
        self.parquet("a.parquet", pa.table({"k": [day], "y": [0]}))
        self.refused(r"a\.parquet, row group 0: column 'k' has the category '2024-01-01', which is not one of its "
                     r"categories: there are none$",
                     self.folder / "a.parquet", label="y", categories={"k": []})

    def test_files_with_what_pyarrow_cannot_read_are_named(self):
        path = self.parquet("a.parquet", pa.table({"x": [1], "y": [1]}))
        for error in (pa.ArrowNotImplementedError("no such type"), TypeError("no such type")):
            for method in ("contents", "batches"):
                with self.subTest(error=error, method=method), unittest.mock.patch.object(formats.Parquet, method, side_effect=error):
                    self.refused(r"a\.parquet.*: no such type", path, label="y")

    def test_damaged_files_are_named(self):
        path = self.parquet("a.parquet", table(2000), 500)
        content = bytearray(path.read_bytes())
        path.write_bytes(content[:len(content) // 2])
        self.refused(r"a\.parquet: ", path, label="y", kind=(ValueError, OSError))
        (self.folder / "c.csv").write_text("x,y\n" + "1,2\n" * 400000 + "oops,2\n")
        self.refused(r"c\.csv, bytes \d+ to \d+: .*oops", self.folder / "c.csv", label="y")
        (self.folder / "d.csv").write_text("")
        self.refused(r"d\.csv: is empty", self.folder / "d.csv", label="y")
        self.refused("no-such", self.folder / "no-such.parquet", kind=FileNotFoundError, label="y")

    def test_arguments_that_mean_nothing(self):
        path = self.parquet("a.parquet", table(10))
        self.refused("format is 'xml', expected one of", path, format="xml")
        self.refused("filters=.*expected a list of", path, filters=["y > 1"])
        self.refused("filters=.*expected a list of", path, filters=("b", ">", 1))
        self.refused("filters=.*: a list in it is empty", path, filters=[[]])
        self.refused("filters: found", path, filters=[("b", ">")])
        for name, value in (("b", "x"), ("t", "x"), ("a", "x"), ("d", 2**70)):
            self.refused(r"a\.parquet: filters cannot be applied|filters=.*too (big|large)", path, filters=[(name, ">", value)])
        self.refused("label=1: expected the name", path, label=1, kind=TypeError)


class Batches(Folder):
    def test_batches_are_the_share_in_pieces(self):
        whole = table(5000)
        path = self.parquet("a.parquet", whole, 700)
        for rows in (64, 1000, 10000):
            found = list(data.batches(path, rows, label="y", exclude="q"))
            self.assertEqual([len(one) for one in found], [rows] * (5000 // rows) + [5000 % rows] * (5000 % rows > 0))
            np.testing.assert_array_equal(np.concatenate([one.features for one in found]), expected(whole, (*COLUMNS, "w")))
        self.assertEqual(sum(len(one) for one in data.batches(path, 1024, label="y", drop_last=True)), 4096)
        arrow = pa.concat_tables(data.batches(path, 300, kind="arrow", label="y"))
        self.assertEqual((arrow.num_rows, arrow.column_names), (5000, ["a", "b", "c", "t", "d", "w", "q", "y"]))

    def test_text_comes_in_batches_too(self):
        (self.folder / "a.svm").write_text("".join(f"{k} {k % 5}:1\n" for k in range(100)))
        found = list(data.batches(self.folder / "a.svm", 30))
        self.assertEqual([one.label.tolist() for one in found], [list(range(k, min(k + 30, 100))) for k in range(0, 100, 30)])

    def test_another_seed_is_another_order_of_the_same_rows(self):
        path = self.parquet("a.parquet", pa.table({"x": range(1000)}), 100)
        orders = [[value for one in data.batches(path, 64, shuffle=seed) for value in one.features[:, 0].tolist()] for seed in (1, 2, 1)]
        self.assertEqual(orders[0], orders[2])
        self.assertNotEqual(orders[0], orders[1])
        self.assertEqual(sorted(orders[0]), sorted(orders[1]))

    def test_who_stops_in_the_middle_leaves_no_thread(self):
        path = self.parquet("a.parquet", table(20000), 500)
        before = threading.active_count()
        for _ in range(5):
            for _ in data.batches(path, 64, label="y"):
                break
        self.assertEqual(threading.active_count(), before)

    def test_a_bad_value_ends_the_iteration_with_its_place(self):
        path = self.parquet("a.parquet", pa.table({"x": range(300), "y": [1.0] * 250 + [None] * 50}))
        batches = data.batches(path, 50, label="y")
        self.assertEqual(len(next(batches)), 50)
        with self.assertRaisesRegex(ValueError, r"row group 2, row 50: the label"):
            list(batches)


class Checked(Folder):
    def test_the_table_is_shown_where_it_is_asked_for(self):
        path = self.parquet("a.parquet", table(100))
        for named, environment, shown in (({}, "", False), ({"check": True}, "", True), ({}, "1", True), ({"check": False}, "1", False)):
            os.environ["WARREN_CHECK_DATA"] = environment
            with contextlib.redirect_stderr(io.StringIO()) as said:
                data.load(path, label="y", **named)
            self.assertEqual("a.parquet: 100 rows, 7 features, 1 worker\n" in said.getvalue(), shown)
        os.environ.pop("WARREN_CHECK_DATA")

    def test_a_whole_that_all_have_is_shown_once_with_its_own_rows(self):

        class Two:
            """Stands in for one rank of a two-rank job. Has no collectives, so calling one would fail."""
            world, connected = 2, True

            def __init__(self, rank):
                self.rank = rank

        path = self.parquet("a.parquet", table(100))
        for rank in range(2):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                found = _load.Wanted(path, label="y").table(Two(rank), check=True, progress=False, whole=True)
            self.assertEqual(len(found), 100)
            self.assertEqual("a.parquet: 100 rows, 7 features, 1 worker\n" in said.getvalue(), rank == 0)
            self.assertEqual(said.getvalue() == "", rank == 1)

    def test_errors_of_files_do_not_show_keys(self):
        file = _files.File("https://h/x.parquet?sig=hush", 1, "")
        expected_words = r"^https://h/x\.parquet\?sig=\*\*\*, row group 1: wrong$"
        with self.assertRaisesRegex(ValueError, expected_words), _source._about(file, "row group 1"):
            raise ValueError("wrong")

    def test_passwords_and_keys_are_not_shown(self):
        uri = "s3://me:hush@b/x.parquet;https://h/y.parquet?sig=hush&a=1;ftp://me:hush@h/z"
        self.assertEqual(_source.shown_uri(uri), "s3://me:***@b/x.parquet;https://h/y.parquet?sig=***&a=1;ftp://me:***@h/z")
        self.assertEqual(_source.shown_uri(["s3://me:hush@b/x;y", "a"]), "s3://me:***@b/x;y; a")
        self.assertEqual(_source.shown_uri("a;s3://me:hush@b/x"), "a;s3://me:***@b/x")
        self.refused(r"s3://me:\*\*\*@b/x\.svm: LibSVM", "s3://me:hush@b/x.svm", format="libsvm", label="y")
        with self.assertRaisesRegex(ValueError, r"^https://h/x\?sig=\*\*\*: text gives"):
            data.batches("https://h/x?sig=hush", kind="arrow", format="libsvm")

        class Source:
            rows, bytes, peers = 1, 1, _peers.Alone()
        Source.uri = uri
        with unittest.mock.patch.object(_progress, "Progress") as made:
            _load.bar(Source(), True)
        self.assertNotIn("hush", made.call_args[0][0])

        class Two(_peers.Alone):
            world = 2

            def allgather(self, value, **_):
                return [value, {**value, "the data set": "another"}]
        for one in (uri, [uri]):
            with self.assertRaisesRegex(ValueError, r"rank 0 has the data set=.*s3://me:\*\*\*@b/x.*, and rank 1 the") as caught:
                _source.Source(one, _source._columns.Request(), Two(), _source.Options())
            self.assertNotIn("hush", str(caught.exception))


class TextOrColumns(Folder):
    def test_names_of_columns_are_no_text_whatever_is_behind_them(self):
        for uri in ("s3://b/x.parquet?region=x", "https://h/x.parquet?sig=a%2Fb&se=1", "/data/year=2024/a#b.parquet",
                    "?art=1/x.parquet",
                    "part?=1/x.csv", "?n=1/x.parquet", "https://h/x.parquet?part=2", "x.csv",
                    "a/x.tsv.gz", "X.CSV", "s3://b/x.csv#y"):
            self.assertFalse(_load.Wanted(uri).is_text, uri)

    def test_options_of_the_reader_of_text_make_it_text(self):
        for uri in ("x.csv?format=csv&label_column=0", "x.txt?indexing_mode=1", "x?format=libsvm#cache", "x.csv?label_column=0#c",
                    "a;b?header=1&format=csv",
                    "x.csv?delimiter=/&format=csv", "x.parquet?format=libsvm", "s3://b/x?format=libfm",
                    "no-such.svm#cache", "no-such?formt=csv"):
            self.assertTrue(_load.Wanted(uri).is_text, uri)
        self.refused("format", f"{self.folder}/x.svm?formt=libsvm")

    def test_folders_and_patterns_of_csv_are_columns_without_a_label_too(self):
        for name in ("a.csv", "b.csv"):
            (self.folder / name).write_text("x,z\n1,2\n3,4\n")
        for uri in (self.folder, f"{self.folder}/*.csv", self.folder / "a.csv"):
            found = data.load(uri)
            self.assertEqual((found.names, found.features[:2].tolist()), (["x", "z"], [[1, 2], [3, 4]]))
            self.assertEqual(next(data.batches(uri, kind="arrow")).column_names, ["x", "z"])
        self.assertEqual(data.load(f"{self.folder}?format=csv&header=1").features.shape, (4, 2))


    def test_rows_of_labels_alone_look_like_csv_unless_the_format_is_given(self):
        path = self.folder / "part-00000"
        path.write_text("1,2,3\n4,5,6\n")
        words = r"part-00000.*: read as LibSVM, it has 3 labels in a row and no features: it looks like CSV: add \?format=csv&label_col"
        for uri in (path, str(path), f"{path}?indexing_mode=0"):
            self.refused(words, uri)
            self.refused(words, uri, rank=1, world=2)
            with self.assertRaisesRegex(ValueError, words):
                data.read(uri)
        for uri, named in ((path, {"format": "libsvm"}), (f"{path}?format=libsvm", {}), (f"{path}?format=libsvm", {"format": "libsvm"})):
            found = data.load(uri, **named)
            self.assertEqual((found.features.shape, found.label.shape), ((2, 0), (2, 3)))
        self.assertEqual(data.load(f"{path}?format=csv&label_column=0").features.shape, (2, 2))
        self.assertEqual(data.load(f"{path}?format=csv&label_column=0", format="libsvm").features.shape, (2, 2))
        for text in ("1\n0\n", "1,0\n0,1 3:1\n"):  # labels alone, and several labels with a feature somewhere
            path.write_text(text)
            self.assertEqual(len(data.load(path)), 2)
            self.assertEqual(sum(len(data.load(path, rank=rank, world=2)) for rank in range(2)), 2)


class OneFileEach(Folder):
    """A Path, or an element of a list, names exactly one file."""

    def test_a_list_of_text_is_text_as_the_same_names_in_a_str_are(self):
        for name in ("a.svm", "b.svm", "c"):
            (self.folder / name).write_text("1 0:2\n")
        for names in (["a.svm", "b.svm"], ["a.svm"], ["c", "a.svm"], ["c"]):
            paths = [f"{self.folder}/{name}" for name in names]
            for uri in (";".join(paths), paths, tuple(map(pathlib.Path, paths))):
                self.assertEqual(data.load(uri).label.tolist(), [1] * len(names), uri)
        self.assertEqual(data.load(self.folder / "a.svm").label.tolist(), [1])
        self.refused("neither its name nor its first bytes", [self.folder / "a.svm"], label="y")

    def test_no_character_of_them_has_a_meaning_in_any_format(self):
        names = ("x;y", "q?format=libsvm", "h#1", "[ab]", "*", "r?", "year=1")
        whole = {name: pa.table({"a": [number], "y": [number % 2]}) for number, name in enumerate(names)}
        others = pa.table({"a": [100], "y": [0]})
        writers = {"parquet": pq.write_table, "feather": pa.feather.write_feather, "csv": pa.csv.write_csv}
        for ending, write in writers.items():
            place = self.folder / ending
            place.mkdir()
            for name, of in whole.items():
                write(of, str(place / f"{name}.{ending}"))
            for name in ("x", f"y.{ending}", "q", "h", f"a.{ending}", f"rr.{ending}"):
                write(others, str(place / name))
            for number, name in enumerate(names):
                for uri in (place / f"{name}.{ending}", [str(place / f"{name}.{ending}")]):
                    with self.subTest(uri=uri):
                        self.assertEqual(data.load(uri, label="y").features.tolist(), [[number]])
                        self.assertEqual(next(data.batches(uri, label="y")).features.tolist(), [[number]])
                        self.assertEqual(next(data.batches(uri, kind="arrow"))["a"].to_pylist(), [number])
            paths = [place / f"{name}.{ending}" for name in names]
            self.assertEqual(data.load(paths, label="y").features[:, 0].tolist(), list(range(len(names))))
            self.refused("no such file or folder; a Path or an element of a list names", [f"{place}/r?.{ending}x"], label="y",
                         kind=FileNotFoundError)
            self.refused("no such file or folder; a Path or an element of a list names", pathlib.Path(f"{place}/*.{ending}x"), label="y",
                         kind=FileNotFoundError)


class Arguments(Folder):
    def test_arguments_of_a_wrong_type_are_named_with_their_values(self):
        path = self.parquet("a.parquet", table(10))
        for named, words in (({"shuffle": "1"}, "shuffle='1': expected a whole number"),
                             ({"shuffle": True}, "shuffle=True: expected"),
                             ({"shuffle": 1.5}, "shuffle=1.5: expected"),
                             ({"weight": ["w"]}, r"weight=\['w'\]: expected the name of a column"),
                             ({"qid": 3}, "qid=3: expected the name"), ({"weight": ""}, "weight='': expected the name"),
                             ({"categories": ["c"]}, r"categories=\['c'\]: expected"),
                             ({"categories": {"c": {"x", "yy", "z"}}}, r"categories\['c'\] is a set, expected a list of values"),
                             ({"categories": {"c": "xyz"}}, r"categories\['c'\] is a str, expected a list of values"),
                             ({"rank": "0", "world": 2}, "rank='0': expected a whole number"),
                             ({"rank": 0, "world": 2.0}, "world=2.0: expected a whole number")):
            with self.subTest(named=named):
                self.refused(words, path, kind=TypeError, **named)
        for given in ("", ";;", "\n", "\u00e4", 1, b","):
            self.refused("delimiter=.*: expected one character", path, delimiter=given)
        (self.folder / "a.svm").write_text("1 0:1\n")
        self.refused("a.svm: delimiter=';' is for CSV with named columns", self.folder / "a.svm", delimiter=";")
        self.refused("rank and world are 1 and None", path, rank=1)
        self.refused("rank 2 of 2: expected a rank from 0 to 1", path, rank=2, world=2)
        with self.assertRaisesRegex(TypeError, "batch_rows='a': expected a whole number"):
            data.batches(path, "a")

    def test_an_unknown_argument_is_said_with_the_function_and_the_nearest_one(self):
        for function, named, words in ((data.load, {"lable": "y"}, r"^load\(\) got an unexpected argument 'lable'; did you mean 'label'"),
                                       (data.load, {"Rank_": 1}, r"^load\(\) .*'Rank_'; did you mean 'rank'\?$"),
                                       (data.batches, {"batchrows": 1}, r"^batches\(\) .*did you mean 'batch_rows'\?$"),
                                       (data.load, {"zzzz": 1}, r"^load\(\) .*'zzzz': expected label, weight, .*, progress$")):
            with self.assertRaisesRegex(TypeError, words):
                next(function("a.parquet", **named))

    def test_an_arrow_stream_is_called_one(self):
        path = self.folder / "a.arrow"
        with pa.ipc.new_stream(path, pa.schema([("x", pa.int64())])) as stream:
            stream.write_table(pa.table({"x": [1]}))
        self.refused(r"a\.arrow: is an Arrow stream, expected an Arrow file", path)
        path.write_bytes(b"nothing at all " * 9)
        self.refused(r"a\.arrow: Not an Arrow file", path)

    def test_sets_of_the_same_values_are_the_same_on_all_workers(self):
        code = """
from warren.data import _peers
class Two(_peers.Alone):
    world = 2
    def allgather(self, value, **_):
        print(value)
        return [value, value]
_peers.same_on_all(Two(), {"filters": [[("city", "in", {"Bonn", "Rom", "Ulm", "Wien"})], [("day", "in", (1, frozenset("abcd")))]]})
"""
        said = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                               env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2", "3")}
        self.assertEqual(len(said), 1, said)

    def test_seeds_of_numpy_are_whole_numbers(self):
        path = self.parquet("a.parquet", table(500))
        np.testing.assert_array_equal(data.load(path, shuffle=np.int32(3)).features, data.load(path, shuffle=3).features)


class OneSchema(Folder):
    """All batches have one schema, even if a column's type differs between files."""

    def test_whole_numbers_here_and_others_there_are_one_type_in_all_batches(self):
        large = pa.large_string()
        self.parquet("a.parquet", pa.table({"x": [1, 2], "d": pa.array(["u", "v"]).dictionary_encode(), "n": pa.nulls(2),
                                            "s": ["p", "q"]}))
        self.parquet("b.parquet", pa.table({"x": [1.5, None], "d": pa.array(["w", "u"], large).dictionary_encode(),
                                            "n": ["k", None], "s": pa.array(["r", None], large)}))
        parts = list(data.batches(self.folder, 1, kind="arrow"))
        self.assertEqual(len({str(part.schema) for part in parts}), 1)
        self.assertEqual([row for part in parts for row in part.to_pylist()],
                         [{"x": 1.0, "d": "u", "n": None, "s": "p"}, {"x": 2.0, "d": "v", "n": None, "s": "q"},
                          {"x": 1.5, "d": "w", "n": "k", "s": "r"}, {"x": None, "d": "u", "n": None, "s": None}])

    def test_types_without_a_common_one_are_an_error_with_the_files_name(self):
        self.parquet("a.parquet", pa.table({"x": [1, 2], "y": [1, 2]}))
        self.parquet("b.parquet", pa.table({"x": ["1", "2"], "y": [1, 2]}))
        with self.assertRaisesRegex(ValueError, r"b\.parquet: column 'x' is string, and int64 in the files before"):
            data.batches(self.folder, kind="arrow")
        self.assertEqual(len(list(data.batches(self.folder, 1, kind="arrow", exclude="x"))), 4)

    def test_a_value_that_the_common_type_has_no_place_for_is_said_with_its_file(self):
        self.parquet("a.parquet", pa.table({"x": [2**60 + 1]}))
        self.parquet("b.parquet", pa.table({"x": [0.5]}))
        with self.assertRaisesRegex(ValueError, r"a\.parquet, row group 0: .*1152921504606846977"):
            list(data.batches(self.folder, kind="arrow"))


class Threads(_peers._Job):
    """One rank of a job whose ranks are threads, with files that have other modification times on rank 0's host."""

    def __init__(self, rank, barrier, shared):
        self.rank, self.world, self._barrier, self._shared = rank, barrier.parties, barrier, shared

    def _maximum(self, values):
        self._shared[self.rank] = values
        self._barrier.wait()
        found = np.max(self._shared, axis=0)
        self._barrier.wait()
        return found

    def broadcast_bytes(self, array, root):
        self._shared[self.rank] = array
        self._barrier.wait()
        if self.rank != root:
            array[:] = self._shared[root]
        self._barrier.wait()

    def broadcast(self, value, root, **named):
        found = super().broadcast(value, root, **named)
        return [dataclasses.replace(file, tag="1 ns") for file in found] if self.rank else found


class Changes(Folder):
    """Files that a program replaces while the workers read."""

    def opened(self, path, world=3, **named):
        barrier, sources = threading.Barrier(world, timeout=60), [None] * world
        shared = [None] * world

        def open_one(rank):
            sources[rank] = _load.Wanted(path, label="y", **named).source(Threads(rank, barrier, shared))

        ranks = [threading.Thread(target=open_one, args=(rank,)) for rank in range(world)]
        for thread in ranks:
            thread.start()
        for thread in ranks:
            thread.join()
        for source in sources:
            self.addCleanup(source.close)
        return sources

    def test_a_file_that_is_replaced_by_one_of_its_size_is_an_error_on_each_worker_that_reads_it_then(self):
        for kind, write in (("csv", pa.csv.write_csv), ("parquet", lambda of, to: pq.write_table(of, to, row_group_size=16000)),
                            ("feather", lambda of, to: pa.feather.write_feather(of, str(to), chunksize=16000, compression="uncompressed"))):
            path = self.folder / f"a.{kind}"
            write(pa.table({"x": np.full(240000, 10), "y": np.zeros(240000, "int64")}), path)
            size = path.stat().st_size
            with self.subTest(kind=kind):
                sources = self.opened(path)
                before = sum(len(batch.table) for batch in sources[0].batches(["x", "y"]))
                reading = sources[1].batches(["x", "y"])
                next(reading)
                for other in (2, 3):  # a replaced one, and one that is written in place and damaged
                    if other == 2:
                        write(pa.table({"x": np.full(240000, 20), "y": np.zeros(240000, "int64")}), self.folder / "other")
                        os.replace(self.folder / "other", path)
                    else:
                        path.write_bytes(b"\x01" * size)
                    self.assertEqual(path.stat().st_size, size)
                    for read in (lambda: list(reading), lambda: list(sources[2].batches(["x", "y"])),
                                 lambda: list(sources[0].batches(["x"]))):
                        if other == 3 and reading.gi_frame is None:
                            reading = iter(sources[1].batches(["x"]))
                        with self.assertRaisesRegex(OSError, rf"a\.{kind}.*: it changed since it was listed"):
                            read()
                self.assertGreater(before, 40000)

    def test_modification_times_of_another_host_do_not_matter(self):
        path = self.parquet("a.parquet", table(1000))
        for named in ({}, {"qid": "q"}):
            sources = self.opened(path, **named)
            self.assertEqual(sum(len(batch.table) for source in sources for batch in source.batches(["y"])), 1000)

    def test_a_file_that_is_gone_when_the_workers_look_is_every_workers_error(self):
        path = self.parquet("a.parquet", table(100))
        sources = self.opened(path)
        path.unlink()
        for source in sources[:2]:
            with self.assertRaisesRegex(FileNotFoundError, r"a\.parquet.*deleted since it was listed"):
                list(source.batches(["y"]))


class OpenFiles(Folder):
    def test_to_say_where_a_piece_is_opens_no_file(self):
        path = self.parquet("a.parquet", table(50))
        with contextlib.closing(_load.Wanted(path, label="y").source(_peers.Alone())) as source:
            with unittest.mock.patch.object(formats.Opened, "__call__", side_effect=AssertionError("opened")):
                self.assertRegex(source.where(source.slices[0], 3), r"a\.parquet, row group 0, row 3$")

    def opened(self, files=5, most=2, kept=1 << 30):
        """Writes `files` Parquet files; returns an Opened that keeps at most `most` of them open and at most `kept` bytes of metadata."""
        for k in range(files):
            self.parquet(f"{k}.parquet", table(50, k), 10)
        found = _files.find(self.folder)
        result = formats.Opened(found, formats.Parquet, formats.Reading(None, "", {}, 0))
        result._MOST, result._MOST_KEPT_BYTES = most, kept
        return result

    def test_footers_are_read_once_though_files_are_closed_and_opened(self):
        footers = []
        read = pq.ParquetFile

        def reader(source, metadata=None, **how):
            footers.append(metadata is None)
            return read(source, metadata=metadata, **how)

        opened = self.opened()
        with unittest.mock.patch.object(pq, "ParquetFile", reader):
            for again in range(3):
                for number in range(5):
                    piece = Piece(number, again, 10, 1)
                    self.assertEqual(sum(len(batch) for batch in opened(number).batches(piece, ["b"])), 10)
                    self.assertLessEqual(len(opened._opened), 2)
        self.assertEqual(sum(footers), 5)
        opened.close()

    def test_footers_that_are_kept_are_bounded(self):
        opened = self.opened(most=10)
        size = opened(0).kept_bytes
        self.assertGreater(size, 500)
        opened._MOST_KEPT_BYTES = 2 * size + size // 2
        for number in range(5):
            opened(number)
            self.assertLessEqual(len(opened._kept), 2)
            self.assertEqual(set(opened._opened), set(opened._kept))
        opened.close()
        self.assertEqual(opened._opened, {})

    def test_files_that_were_read_hold_no_row_groups_in_memory(self):
        for k in range(6):
            pq.write_table(pa.table({"x": np.random.default_rng(k).random(200000)}), self.folder / f"{k}.parquet")
        opened = formats.Opened(_files.find(self.folder), formats.Parquet, formats.Reading(None, "", {}, 0))
        before = pa.total_allocated_bytes()
        for number in range(6):
            for _ in opened(number).batches(Piece(number, 0, 200000, 1), ["x"]):
                pass
        del _
        # pyarrow's threads may release their last buffers a little later.
        deadline = time.monotonic() + 10
        while pa.total_allocated_bytes() - before >= 1_000_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertLess(pa.total_allocated_bytes() - before, 1_000_000)
        opened.close()

    def test_a_file_that_cannot_be_opened_leaves_no_descriptor(self):
        (self.folder / "a.parquet").write_bytes(b"PAR1 and nothing more")
        (self.folder / "b.arrow").write_bytes(b"ARROW1 and nothing more")
        before = len(os.listdir("/proc/self/fd"))
        failures = []
        for number, kind in enumerate((formats.Parquet, formats.Arrow)):
            try:
                kind(_files.find(self.folder)[number], number, formats.Reading(None, "", {}, 0))
            except (ValueError, OSError) as error:
                failures.append(error)
        self.assertEqual(len(failures), 2)
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_where_a_piece_is_needs_no_open_file(self):
        for kind, uri, begin, said in ((formats.Parquet, "no.parquet", 0, "row group 3"), (formats.Arrow, "no.arrow", 0, "record batch 3"),
                                       (formats.Csv, "no.csv", 10, "bytes 10 to 17"), (formats.Csv, "no.CSV.gz", 0, "the file")):
            self.assertEqual(kind.place(_files.File(uri, 100, ""), Piece(0, 3, -1, 7, begin)), said)


class ElasticFiles(Folder):
    """The files of a data set for elastic training, which a worker that joins later lists again."""

    def files(self, uri, **wanted):
        from warren._elastic.rows import Files
        return Files(_load.Wanted(uri, **wanted), False, 4)

    def test_patterns_of_text_are_the_files_that_match(self):
        for name in ("part-1.svm", "part-2.svm", "part#3.svm"):
            (self.folder / name).write_text("1 0:1\n")
        for uri, names in ((f"{self.folder}/part-?.svm?format=libsvm&indexing_mode=1", ["part-1.svm", "part-2.svm"]),
                           (f"{self.folder}/part-?.svm", ["part-1.svm", "part-2.svm"]),
                           (f"{self.folder}/part-1.svm;{self.folder}/part-2.svm?indexing_mode=0", ["part-1.svm", "part-2.svm"]),
                           (self.folder / "part#3.svm", ["part#3.svm"])):
            with self.subTest(uri=uri):
                self.assertEqual([os.path.basename(name) for name, _, _ in self.files(uri).files()], names)

    def test_missing_values_that_the_cuts_would_not_know_are_refused(self):
        import warren.xgboost
        path = self.parquet("a.parquet", table(10))
        for missing in (0.0, -999):
            with self.assertRaisesRegex(ValueError, f"missing={missing} is not known when the cuts are computed"):
                warren.xgboost.Data(path, label="y", missing=missing).of_files()
        warren.xgboost.Data(path, label="y", missing=np.nan).of_files()

    def test_files_that_come_or_go_during_a_training_are_refused(self):
        self.parquet("a.parquet", table(10))
        path, listed = self.parquet("b.parquet", table(10)), self.files(self.folder, label="y")
        listed.open_alone(CATEGORIES)
        before = listed.files()
        path.rename(self.folder / "c.parquet")
        self.parquet("d.parquet", table(10))
        for change, said in ((lambda: None, "b.parquet was added or removed"),
                             (lambda: path.with_name("c.parquet").rename(path), "d.parquet was added"),
                             (lambda: path.with_name("d.parquet").unlink(), "")):
            change()
            with self.assertRaisesRegex(ValueError, f"{said}.* since the training began") if said else contextlib.nullcontext():
                self.files(self.folder, label="y").open_unchanged(CATEGORIES, before, socket.gethostname())


if __name__ == "__main__":
    unittest.main()
