"""warren data inspect, validate, convert and shard, as programs."""
import arrow_python  # noqa: F401  # pylint: disable=unused-import,wrong-import-order
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import forking
import object_stores
from warren_testing import BIN

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))


def table(rows=1000, seed=0):
    """A table with a text column (not a feature), integers that float32 cannot represent, and missing values."""
    rng = np.random.default_rng(seed)
    return pa.table({"id": np.arange(rows) + 2**40, "x": pa.array(rng.random(rows), mask=rng.random(rows) < 0.1),
                     "word": [f"w{k % 7}" for k in range(rows)], "city": pa.array(rng.choice(["a", "b"], rows)).dictionary_encode(),
                     "y": rng.integers(0, 2, rows), "q": np.arange(rows) // 7})


class Commands(unittest.TestCase):
    python = forking.python(sys.executable, "numpy", "pyarrow.parquet", "pyarrow.csv", "pyarrow.dataset")

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_it(self, *words, code=0, program=("-m", "warren", "data")):
        """Runs the command, which must exit with `code`; returns its standard output and standard error together."""
        done = subprocess.run([self.python, *program, *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent)}, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def parquet(self, name, of, rows=100):
        path = self.folder / name
        pq.write_table(of, path, row_group_size=rows)
        return path

    def test_inspect_shows_what_each_worker_would_read(self):
        path = self.parquet("a.parquet", table())
        said = self.run_it("inspect", path, "--label", "y", "--qid", "q", "--exclude", "word,id", "--workers", 3)
        self.assertIn("1 files, 10 pieces (parquet)", said)
        self.assertIn("a.parquet: 1,000 rows, 2 features, 3 workers", said)
        self.assertRegex(said, r"\n  2 +33\d +33\.\d % .*0 to 1, mean 0\.\d+ +- +\d\d\n")
        self.assertRegex(said, r"\n  x +number +\d+\.\d % +[0-9.e-]+ to 0\.99\d*, mean 0\.\d+\n")
        self.assertRegex(said, r"\n  city +category +0\.0 % +2: a, b\n")

    def test_a_terminal_obeys_nothing_of_a_data_set(self):
        evil = "\x1b]0;x\x07\x1b[2J"
        of = pa.table({f"x{evil}": [1.0, 2.0], "c": pa.array([evil, "b"]).dictionary_encode(), "y": [0, 1]})
        for name, pandas in (("a.parquet", b"[" * 100_000), ("b.parquet", b'{"index_columns": 7}'), ("c.parquet", b"\xff")):
            path = self.parquet(name, of.replace_schema_metadata({b"pandas": pandas}))
            with self.subTest(pandas=pandas[:20]):
                said = self.run_it("inspect", path, "--label", "y")
                self.assertIn("\n  x\\x1b]0;x\\x07\\x1b[2J ", said)
                self.assertNotIn("\x1b", said)
                self.assertNotIn("\x1b", self.run_it("inspect", path, "--label", f"z{evil}", code=1))

    def test_validate_says_all_that_is_wrong_not_just_the_first(self):
        self.parquet("a.parquet", table().drop_columns(["word", "q"]))
        self.assertIn("1,000 rows in 1 files: no problems found", self.run_it("validate", self.folder, "--label", "y"))
        self.parquet("b.parquet", table().drop_columns(["word", "q", "x"]))
        self.parquet("c.parquet", table().drop_columns(["word", "q"]).set_column(3, "y", pa.array([1] * 150 + [None] * 850)))
        (self.folder / "d.parquet").write_bytes(b"PAR1 is all")
        said = self.run_it("validate", self.folder, "--label", "y", code=1)
        self.assertRegex(said, r"b\.parquet: has no column 'x', which the first file has\n")
        self.assertRegex(said, r"c\.parquet, row group 1, row 50: the label in column 'y' is nothing")
        self.assertRegex(said, r"c\.parquet, row group 9, row 0: the label in column 'y' is nothing")
        self.assertIn("d.parquet: ", said)
        self.assertIn("in 4 files: 11 problems found", said)
        self.assertIn("and 9 more\n", self.run_it("validate", self.folder, "--label", "y", "--most", 2, code=1))

    def test_convert_keeps_columns_as_they_are_stored(self):
        whole = table()
        path = self.parquet("a.parquet", whole)
        for name, read in (("b.parquet", pq.read_table), ("b.arrow", lambda path: pa.ipc.open_file(path).read_all()),
                           ("b.csv", pyarrow.csv.read_csv)):
            with self.subTest(name=name):
                self.assertEqual(self.run_it("convert", path, self.folder / name), "")
                found = read(self.folder / name)
                self.assertEqual(found.column_names, whole.column_names)
                self.assertEqual(found.to_pydict(), whole.to_pydict())
        self.run_it("convert", self.folder / "b.csv", self.folder / "c.parquet")
        self.assertEqual(pq.read_table(self.folder / "c.parquet").drop_columns("id").to_pydict(), whole.drop_columns("id").to_pydict())

    def test_convert_keeps_dictionaries_of_every_type(self):
        counts, words = pa.array([2001, 2000, 2001]), pa.array(["b", "a", "b"])
        for of in (pa.array([1, 0, 1], pa.int8()), pa.array([True, False, True]), pa.array([1.5, 0.1, 1.5], pa.float32()), words,
                   words.cast(pa.string_view()), words.cast(pa.binary()), pa.array([1, 0, 1], pa.int32()).cast(pa.date32()),
                   counts.cast(pa.time64("ns")), counts.cast(pa.timestamp("ns", "UTC")), counts.cast(pa.duration("ns")),
                   counts.cast(pa.decimal128(21, 1))):
            column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), of[:2])
            path = self.folder / "a.arrow"
            with pa.ipc.new_file(path, pa.schema([("c", column.type), ("x", pa.int64())])) as file:
                for part in (column, column[:0]):
                    file.write_table(pa.table({"c": part, "x": np.arange(len(part))}))
            with self.subTest(kind=of.type):
                self.run_it("convert", path, self.folder / "b.arrow", "--overwrite")
                found = pa.ipc.open_file(self.folder / "b.arrow").read_all()["c"].combine_chunks()
                self.assertEqual(found.type.value_type, of.type)
                self.assertEqual(found.indices.to_pylist(), [1, 0, None, 1])
                self.assertEqual([value.as_py() if "ns" not in str(of.type) else value.value for value in found.dictionary],
                                 [value.as_py() if "ns" not in str(of.type) else value.value for value in (of[1], of[0])])

    def test_convert_to_libsvm_text_and_back(self):
        from warren import data
        path = self.parquet("a.parquet", table())
        self.run_it("convert", path, self.folder / "b.svm", "--label", "y", "--qid", "q", "--exclude", "word,id")
        expected = data.load(path, label="y", qid="q", exclude=["word", "id"])
        found = data.load(self.folder / "b.svm")
        for name in ("label", "qid"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        there = ~np.isnan(expected.features)
        np.testing.assert_array_equal(found.features.toarray(), np.where(there, expected.features, 0))
        self.assertEqual(found.features.nnz, there.sum())
        self.run_it("convert", self.folder / "b.svm", self.folder / "c.parquet")
        back = data.load(self.folder / "c.parquet", label="label", qid="qid")
        np.testing.assert_array_equal(back.features, expected.features)
        np.testing.assert_array_equal(back.label, expected.label)

    def test_shard_writes_disjoint_complete_parts_with_whole_queries(self):
        whole = table()
        path = self.parquet("a.parquet", whole)
        self.run_it("shard", path, 4, self.folder / "parts", "--qid", "q")
        parts = [pq.read_table(file) for file in sorted((self.folder / "parts").iterdir())]
        self.assertEqual([file.name for file in sorted((self.folder / "parts").iterdir())], [f"part-0000{k}-of-00004.parquet" for k in range(4)])
        together = pa.concat_tables(parts)
        self.assertEqual(sorted(together.column_names), sorted(whole.column_names))
        self.assertEqual(together.select(whole.column_names).to_pydict(), whole.to_pydict())
        self.assertTrue(all(one["q"][-1].as_py() < other["q"][0].as_py() for one, other in zip(parts, parts[1:])))
        self.run_it("shard", self.parquet("few.parquet", table(2)), 3, self.folder / "few", "--to", "csv")
        self.assertEqual(sorted(len(file.read_text().splitlines()) for file in (self.folder / "few").iterdir()), [1, 2, 2])

    def test_parts_of_text_number_their_queries_one_after_the_other(self):
        from warren import data
        path = self.parquet("a.parquet", pa.table({"x": [1.0, 2, 3, 4], "y": [0, 1, 0, 1], "q": [5, 5, 9, 9]}), 2)
        self.run_it("shard", path, 2, self.folder / "text", "--to", "libsvm", "--label", "y", "--qid", "q")
        self.assertEqual([re.findall(r"qid:(\d)", file.read_text()) for file in sorted((self.folder / "text").iterdir())],
                         [["0", "0"], ["1", "1"]])
        self.run_it("shard", self.folder / "text", 2, self.folder / "columns", "--to", "parquet")
        self.assertEqual([pq.read_table(file)["qid"].to_pylist() for file in sorted((self.folder / "columns").iterdir())], [[0, 0], [1, 1]])
        for found in (data.load(self.folder / "text"), data.load(self.folder / "columns", label="label", qid="qid")):
            self.assertEqual(found.group_sizes.tolist(), [2, 2])

    def partitioned(self):
        """Writes a data set partitioned by a word and by a value that is a number in only some folders; returns its folder."""
        for k, (word, number) in enumerate((("a", "1"), ("a", "x"), ("b", "1"))):
            (self.folder / f"set/word={word}/g={number}").mkdir(parents=True)
            self.parquet(f"set/word={word}/g={number}/p.parquet", pa.table({"x": [k, k + 10], "y": [0, 1]}))
        return self.folder / "set"

    def test_validate_knows_what_folders_say(self):
        folder = self.partitioned()
        said = self.run_it("validate", folder, "--label", "y", "--features", "x,word,g")
        self.assertIn("6 rows in 3 files: no problems found", said)
        self.parquet("set/q.parquet", pa.table({"x": [1], "y": [0]}))
        said = self.run_it("validate", folder, "--label", "y", code=1)
        self.assertRegex(said, r"^[^\n]*q\.parquet: no folder in its path gives its 'word'[^\n]*\n0 rows in 4 files: 1 problem found\n$")

    def test_validate_looks_at_the_rows_of_queries_together(self):
        (self.folder / "set").mkdir()

        def wrong(a, b, /, **weights):
            for name, q in zip("ab", (a, b)):
                self.parquet(f"set/{name}.parquet", pa.table({"x": np.arange(len(q)), "y": [0] * len(q), "q": q, **(
                    {"w": weights[name]} if weights else {})}), 2)
            words = self.run_it("validate", self.folder / "set", "--label", "y", "--qid", "q", *(["--weight", "w"] if weights else []), code=1)
            return words.replace(f"{self.folder}/set/", "").splitlines()

        unsorted = "{}.parquet: the rows of query {} (column 'q') are not together: sort the file by it"
        self.assertEqual(wrong([1, 2, 3, 1], [7, 8, 7, 9]),
                         [unsorted.format("a", 1), unsorted.format("b", 7), "8 rows in 2 files: 2 problems found"])
        # Weights that differ within one row group, across two, and across files, since a query may continue in the next file.
        words = "{}.parquet, row group {}: the rows of query {} (column 'q') have different weights; a query has only one"
        self.assertEqual(wrong([1, 1, 2, 2, 2], [2, 3], a=[1.0, 2.0, 1.0, 1.0, 3.0], b=[4.0, 4.0]),
                         [words.format("a", 0, 1), words.format("a", 2, 2), "7 rows in 2 files: 2 problems found"])
        self.assertEqual(wrong([1, 1], [1, 3], a=[1.0, 1.0], b=[4.0, 4.0]), [words.format("b", 0, 1), "4 rows in 2 files: 1 problem found"])
        # An invalid weight does not hide that the rows of a query are not together, and does not count as a different weight.
        self.assertEqual(wrong([1, 1, 2, 1], [5], a=[1.0, -1.0, 1.0, 1.0], b=[4.0]),
                         ["a.parquet, row group 0, row 1: the weight in column 'w' is -1.0, expected a number from 0 on", unsorted.format("a", 1),
                          "5 rows in 2 files: 2 problems found"])
        self.assertEqual(wrong([1, 1, 1, 1], [5], a=[1.0, -1.0, 1.0, 1.0], b=[4.0])[1:], ["5 rows in 2 files: 1 problem found"])

    def test_validate_finds_files_whose_categories_are_of_different_types(self):
        (self.folder / "set").mkdir()
        for name, column in (("a", pa.array(["u"])), ("b", pa.array([1]))):
            self.parquet(f"set/{name}.parquet", pa.table({"c": column.dictionary_encode(), "x": [1.0], "y": [0]}))
        said = self.run_it("validate", self.folder / "set", "--label", "y", code=1)
        self.assertRegex(said, r"b\.parquet: column 'c' has numbers as categories, and words in the files before: convert one.*\n1 rows in 2 files: "
                         "1 problem found")

    def test_validate_goes_on_where_categories_cannot_be_read(self):
        of = pa.table({"c": pa.array(["u", "v"] * 5000).dictionary_encode(), "x": np.random.default_rng(0).random(10000),
                       "y": [0, 1] * 5000})
        (self.folder / "two").mkdir()
        for name in "ab":
            path = self.parquet(f"two/{name}.parquet", of, 10000)
        content = bytearray((self.folder / "two/a.parquet").read_bytes())
        content[4:40] = bytes(36)
        (self.folder / "two/a.parquet").write_bytes(content)
        said = self.run_it("validate", path.parent, "--label", "y", code=1)
        self.assertRegex(said, r"a\.parquet, row group 0: ")
        self.assertIn("10,000 rows in 2 files: 1 problem found", said)

    def test_shard_gives_parts_without_rows_the_columns_of_folders_too(self):
        folder = self.partitioned()
        for kind, read in (("parquet", lambda path: pq.read_table(path, partitioning=None)),
                           ("arrow", lambda path: pa.ipc.open_file(path).read_all())):
            with self.subTest(kind=kind):
                self.run_it("shard", folder, 8, self.folder / kind, "--to", kind)
                parts = [read(file) for file in sorted((self.folder / kind).iterdir())]
                self.assertEqual(len({str(part.schema) for part in parts}), 1)
                self.assertEqual(parts[0].column_names, ["x", "y", "word", "g"])
                self.assertEqual(sum(map(len, parts)), 6)
                self.assertIn(0, map(len, parts))

    def test_convert_of_folders_that_are_words_to_arrow(self):
        self.run_it("convert", self.partitioned(), self.folder / "all.arrow")
        found = pa.ipc.open_file(self.folder / "all.arrow").read_all()
        self.assertEqual(found.to_pydict(), {"x": [0, 10, 1, 11, 2, 12], "y": [0, 1] * 3, "word": ["a"] * 4 + ["b"] * 2,
                                             "g": ["1", "1", "x", "x", "1", "1"]})

    def test_convert_of_files_with_whole_numbers_here_and_others_there(self):
        (self.folder / "two").mkdir()
        self.parquet("two/a.parquet", pa.table({"x": [1, 2], "y": [0, 0]}))
        self.parquet("two/b.parquet", pa.table({"x": [1.5, None], "y": [0, 0]}))
        for name, read in (("c.parquet", pq.read_table), ("c.arrow", lambda path: pa.ipc.open_file(path).read_all()),
                           ("c.csv", pyarrow.csv.read_csv)):
            self.run_it("convert", self.folder / "two", self.folder / name)
            self.assertEqual(read(self.folder / name).to_pydict(), {"x": [1, 2, 1.5, None], "y": [0] * 4}, name)
        self.parquet("two/d.parquet", pa.table({"x": ["word"], "y": [0]}))
        said = self.run_it("convert", self.folder / "two", self.folder / "e.parquet", code=1)
        self.assertRegex(said, r"^warren data: .*d\.parquet: column 'x' is string, and double in the files before")
        self.assertFalse((self.folder / "e.parquet").exists())

    def test_nothing_that_is_there_is_replaced_without_being_told_to(self):
        path, parts = self.parquet("a.parquet", table()), self.folder / "parts"
        before = path.read_bytes()
        self.assertIn("a.parquet: already exists: --overwrite replaces it", self.run_it("convert", path, path, code=1))
        self.assertEqual(path.read_bytes(), before)
        self.run_it("shard", path, 3, parts)
        self.assertIn("holds parts of another run, such as part-00000-of-00003.parquet: --overwrite", self.run_it("shard", path, 2, parts, code=1))
        self.run_it("shard", path, 2, parts, "--overwrite")
        self.assertEqual(sorted(file.name for file in parts.iterdir()), ["part-00000-of-00002.parquet", "part-00001-of-00002.parquet"])

    def test_nothing_that_is_there_in_a_store_is_replaced_without_being_told_to(self):
        if object_stores.rclone() is None:
            self.skipTest("SKIPPED: rclone is missing")
        path, bucket = self.parquet("a.parquet", table(10)), self.folder / "stores/bucket"
        bucket.mkdir(parents=True)
        with object_stores.S3Server(bucket.parent) as server, unittest.mock.patch.dict(os.environ, server.environment()):
            self.run_it("convert", path, "s3://bucket/b.csv")
            self.assertIn("s3://bucket/b.csv: already exists: --overwrite", self.run_it("convert", path, "s3://bucket/b.csv", code=1))
            self.run_it("shard", path, 2, "s3://bucket/parts")
            part = "part-00000-of-00002.parquet"
            for parts, words, code, said in ((2, [], 1, f"holds parts of another run, such as {part}: --overwrite replaces them"),
                                             (2, ["--overwrite"], 0, ""),
                                             (3, ["--overwrite"], 1, f"this one would not replace, such as {part}: remove them first")):
                self.assertIn(said, self.run_it("shard", path, parts, "s3://bucket/parts", *words, code=code))
        self.assertEqual(sorted(os.listdir(bucket / "parts")), ["part-00000-of-00002.parquet", "part-00001-of-00002.parquet"])

    def test_the_uri_of_a_local_folder_is_that_folder(self):
        path, place = self.parquet("a.parquet", table(10)), f"file://{self.folder}"
        self.run_it("shard", path, 3, f"{place}/parts")
        self.run_it("shard", path, 2, f"{place}/parts", "--overwrite")
        self.assertEqual(sorted(os.listdir(self.folder / "parts")), ["part-00000-of-00002.parquet", "part-00001-of-00002.parquet"])
        self.assertIn("already exists", self.run_it("convert", path, f"{place}/a.parquet", code=1))

    def test_csv_is_not_written_with_line_ends_in_cells(self):
        columns = (pa.array(["x", "two\nlines"]), pa.array(["x\r", None]).dictionary_encode(), pa.array([b"\n", b"x"]))
        for number, column in enumerate(columns):
            path = self.parquet(f"{number}.parquet", pa.table({"note": column, "y": [0, 1]}))
            for words in (("convert", path, self.folder / "o.csv"), ("shard", path, 2, self.folder / "parts", "--to", "csv")):
                self.assertRegex(self.run_it(*words, code=1), r"\.csv: column 'note' has text with a line end.* --exclude$")
        self.assertEqual((list(self.folder.glob("o.csv*")), list(self.folder.glob("parts/*"))), ([], []))
        self.run_it("convert", path, self.folder / "o.csv", "--exclude", "note")
        for name in ("o.tsv", "o.csv.gz"):
            said = self.run_it("convert", path, self.folder / name, code=1)
            self.assertRegex(said, rf"{re.escape(name)}: CSV is written uncompressed and with commas: use a name that ends in \.csv$")

    def test_whole_numbers_of_csv_that_would_lose_digits_are_refused(self):
        path, goal = self.folder / "a.csv", self.folder / "b.parquet"
        path.write_text(f"id,x,y\n{2**53 - 1},{2**53 + 1},0\n{1 - 2**53},3,1\n")
        said = self.run_it("convert", path, goal, code=1)
        self.assertRegex(said, r"a\.csv, .*: column 'x' has whole numbers from 2\^53 on, which .* would lose digits")
        self.assertFalse(goal.exists())
        self.run_it("convert", path, goal, "--exclude", "x")
        self.assertEqual(pq.read_table(goal)["id"].to_pylist(), [2**53 - 1, 1 - 2**53])

    def test_a_full_disk_is_said_with_the_name_of_the_file(self):
        path = self.parquet("a.parquet", table(5000), 1000)
        (self.folder / "out").mkdir()
        # No bytecode is written, since the file size limit would truncate it, too.
        limited = ("-c", "import resource, sys\nsys.dont_write_bytecode = True\nresource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
                   "from warren.data import _commands\nsys.exit(_commands.main(sys.argv[1:]))")
        written = [(("convert", path, self.folder / "out" / name, "--exclude", "word"), name)
                   for name in ("b.parquet", "b.arrow", "b.csv", "b.svm")]
        for words, name in (*written, (("shard", path, "2", self.folder / "out"), "part-00000-of-00002.parquet")):
            said = self.run_it(*words, program=limited, code=1)
            self.assertIn(f"File too large: '{self.folder}/out/{name}'", said)
            self.assertEqual(os.listdir(self.folder / "out"), [])

    def test_parts_of_a_run_that_fails_are_taken_away(self):
        self.parquet("a.parquet", table(300))
        path = self.parquet("b.parquet", table(300))
        content = bytearray(path.read_bytes())
        content[50:4000] = bytes(3950)
        path.write_bytes(content)
        self.run_it("shard", self.folder, 4, self.folder / "parts", code=1)
        self.assertEqual(list((self.folder / "parts").iterdir()), [])
        if object_stores.rclone() is None:
            self.skipTest("SKIPPED: rclone is missing")
        stores = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (stores / "bucket").mkdir()
        with object_stores.S3Server(stores) as server, unittest.mock.patch.dict(os.environ, server.environment()):
            self.run_it("shard", self.folder, 4, "s3://bucket/parts", code=1)
        self.assertEqual(list(stores.rglob("part-*")), [])

    def test_help_is_that_of_the_program_that_is_asked(self):
        for words in (["--help"], ["inspect", "--help"]):
            self.assertIn("--label", self.run_it(*words))
        script = "import sys; sys.argv[0] = '/x/bin/rabit-data'; from warren.data import main; main()"
        self.assertIn("Inspect, validate, convert and shard data sets of text", self.run_it("--help", program=("-c", script)))

    def test_text_is_rabit_datas(self):
        (self.folder / "a.svm").write_text("1 0:1\n")
        self.assertIn("format:   libsvm", self.run_it("inspect", self.folder / "a.svm"))
        script = "import sys; from warren.data import main; main()"
        self.assertIn("format:   libsvm", self.run_it("inspect", self.folder / "a.svm", program=("-c", script)))
        path = self.parquet("a.parquet", table().drop_columns("word"))
        self.assertIn("1,000 rows", self.run_it("inspect", path, program=("-c", script)))

    def test_the_value_of_an_option_is_not_taken_for_a_file(self):
        (self.folder / "a.csv").write_text("x,y\n1,0\n")
        for words in (("--most", 5, self.folder / "a.csv"), ("--most=5", self.folder / "a.csv"), (self.folder / "a.csv", "--most", 5)):
            self.assertIn("1 rows in 1 files: no problems found", self.run_it("validate", *words))
        self.run_it("convert", "--overwrite", self.folder / "a.csv", self.folder / "b.parquet")

    def test_bad_usage_is_said_in_a_line(self):
        path = self.parquet("a.parquet", table())
        for words, part in ((("inspect", path), "column 'word' is string"), (("inspect", path, "--workers", 0, "--label", "y"), "--workers 0"),
                            (("convert", path, self.folder / "b.xyz"), "expected a name that ends in"),
                            (("convert", path, self.folder / "b.csv.gz"), "use a name that ends in .csv"),
                            (("shard", path, "x", "y"), "expected a number of parts"),
                            (("inspect", self.folder / "no.parquet", "--label", "y"), "no.parquet")):
            said = self.run_it(*words, code=1)
            self.assertIn(part, said)
            self.assertRegex(said, r"^warren data: ")
        self.assertIn("usage: warren COMMAND", self.run_it("nonsense", program=("-m", "warren"), code=2))


if __name__ == "__main__":
    unittest.main()
