"""warren.data: CSV files with named columns: lines, types, errors, compression, and number of rows."""
import arrow_python  # noqa: F401  # pylint: disable=unused-import,wrong-import-order
import bz2
import contextlib
import gzip
import importlib.util
import lzma
import os
import pathlib
import random
import re
import tempfile
import unittest
import zipfile
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

from warren import data  # noqa: E402
from warren.data import _files, _load, _peers  # noqa: E402
from warren.data._columnar import formats  # noqa: E402


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def refused(self, words, *args, kind=ValueError, **named):
        with self.assertRaisesRegex(kind, words):
            data.load(*args, **named)

    def contents(self, name, text, words=()):
        """Writes a file. Returns the formats.Contents that the CSV reader finds in it, e.g. its schema."""
        file, = _files.find(self.write(name, text))
        with contextlib.closing(formats.Csv(file, 0, formats.Reading(None, "", {}, 1 << 16, words))) as opened:
            return opened.contents(None)


class Lines(Folder):
    def test_lines_that_end_with_cr_alone_are_refused(self):
        for name, text in (("a.csv", b"a,y\r1,0\r2,1\r"), ("b.csv", b"a,y\r" + b"1,0\r" * 400000), ("c.csv", b"a,y\r1,0\r2,1\n"),
                           ("d.csv.gz", gzip.compress(b"a,y\r1,0\r2,1\r")), ("e.csv", b"a,y\r")):
            with self.subTest(name=name):
                self.refused(rf"{name}: lines end with CR: convert them to LF", self.write(name, text), label="y")

    def test_a_line_of_names_alone_is_a_file_without_rows_with_or_without_a_line_end(self):
        for name, text in (("a.csv", b"a,y"), ("b.csv", b"a,y\n"), ("c.csv", b"a,y\r\n"), ("d.csv.gz", gzip.compress(b"a,y")),
                           ("e.csv.gz", gzip.compress(b"a,y\n\n")), ("f.csv", b"\xef\xbb\xbfa,y")):
            with self.subTest(name=name):
                found = data.load(self.write(name, text), label="y")
                self.assertEqual((found.features.shape, found.names, found.label.tolist()), ((0, 1), ["a"], []))

    def test_blank_lines_before_the_names_are_passed_over(self):
        for name, text in (("a.csv", b"\n\na,y\n1,0\n2,1\n"), ("b.csv", b"\r\n  \r\na,y\r\n1,0\r\n2,1"),
                           ("c.csv.gz", gzip.compress(b"\n \na,y\n1,0\n\n2,1\n")),
                           ("d.csv", b"\xef\xbb\xbf\n\na,y\n1,0\n2,1\n"), ("e.csv", b"\n" * 100000 + b"a,y\n1,0\n2,1\n")):
            with self.subTest(name=name):
                found = data.load(self.write(name, text), label="y")
                self.assertEqual((found.names, found.features.tolist(), found.label.tolist()), (["a"], [[1], [2]], [0, 1]))

    def test_files_of_blank_lines_have_no_line_of_names(self):
        self.refused(r"a\.csv: has no header line$", self.write("a.csv", "\n \n\n"), label="y")
        self.refused(r"b\.csv: has no header line in its first 1048576 bytes", self.write("b.csv", "x" * (2 << 20)), label="y")
        self.refused(r"c\.csv\.gz: has no header line$", self.write("c.csv.gz", gzip.compress(b"\n\n")), label="y")

    def test_the_line_of_names_is_found_in_whatever_comes_before(self):
        rng = random.Random(3)
        for trial in range(2000):
            end = rng.choice(["\n", "\r\n"])
            mark = rng.choice(["", "", "\ufeff"])
            before = mark + "".join(rng.choice(["", " ", "  "]) + end for _ in range(rng.randint(0, 4)))
            names, after = "a" * rng.randint(1, 5), rng.choice(["", end, end + "1" + end])
            first = (before + names + after).encode()
            begin, stop = formats.line_of_names(first, True)
            self.assertEqual(first[begin:stop].strip(), names.encode(), trial)
            self.assertEqual(first[stop:], b"1" + end.encode() if after.endswith("1" + end) else b"", trial)


class Quotes(Folder):
    """A quoted cell ends on its line. pyarrow goes on in the lines that follow, or ends the cell at the end of the text."""

    def test_a_quoted_cell_that_does_not_end_on_its_line_is_an_error_with_the_line(self):
        head, rows = "a,y,note\n", [f"{k},{k % 2},fine\n" for k in range(20000)]
        stray = head + "".join(rows[:500]) + '500,0,"unfinished\n' + "".join(rows[501:])
        late = head + "".join(rows) + '\n500,0,"unfinished\n' + "".join(rows)
        several = head + "".join(f'{k},{k % 2},"log {k}\n{k + 1000000},5,x\n{k + 2000000},6,done"\n' for k in range(8000))
        for name, text, line in (("a", 'a,y,note\n1,0,ok\n2,1,"6 inch\n3,0,ok\n4,1,ok\n', 3), ("b", stray, 502), ("c", several, 2),
                                 ("d", 'a,y,note\n1,0,"x\r2,1,y"\n', 2), ("e", 'a,y,note\r\n1,0,x\r\n\r\n2,1,"x""', 4),
                                 ("f", 'a,y,note\n1,0,"x"\n2,1,"x\n', 3)):
            for path in (self.write(f"{name}.csv", text), self.write(f"{name}.csv.gz", gzip.compress(text.encode()))):
                with self.subTest(path=path.name):
                    self.refused(rf"{path.name}: line {line}: a quoted cell does not end on this line", path, label="y", exclude="note")
        with mock.patch.object(formats, "_CSV_FIRST_BYTES", 1 << 10), mock.patch.object(formats, "_CSV_BLOCK_BYTES", 1 << 12):
            self.refused(r"g\.csv, bytes \d+ to \d+: line \d+ of this range: a quoted cell does", self.write("g.csv", late), label="y",
                         exclude="note")
            self.refused(r"g\.csv\.gz, the file: line 20003: a quoted cell does", self.write("g.csv.gz", gzip.compress(late.encode())),
                         label="y", exclude="note")
        self.refused(r"h\.csv: a quoted name does not end on the header line", self.write("h.csv", '"a\nb",y\n1,0\n'), label="y")

    def test_a_cut_behind_the_first_line_of_a_cell_makes_no_row_of_the_second(self):
        # Each cut lies between two lines of a cell, in ranges as in blocks of text that are parsed at once.
        text = "a,y,note\n" + '1,0,"\n2,1,x"\n' * 3000
        for size in range(20, 34):
            with mock.patch.object(formats, "_CSV_PARSED_BYTES", size), mock.patch.object(formats, "_CSV_FIRST_BYTES", 14):
                for name, content in (("a.csv", text), ("a.csv.gz", gzip.compress(text.encode()))):
                    self.refused("a quoted cell does not end on this line", self.write(name, content), label="y", exclude="note")

    def test_other_quotes_line_ends_and_blank_lines_are_good(self):
        text = 'a,y,note\r\n1,0,6" pipe\r\n\r\n2,1,"a, ""b"""\r3,0,"" x\n\n4,1, "x\r\n5,0,"a"b"c\n6,1,\\"\n7,0,"x"'
        for name, content in (("a.csv", text), ("a.csv.gz", gzip.compress(text.encode()))):
            found = pa.concat_tables(data.batches(self.write(name, content), kind="arrow"))
            self.assertEqual(found["a"].to_pylist(), [1, 2, 3, 4, 5, 6, 7])
            self.assertEqual(found["note"].to_pylist()[1:3], ['a, "b"', " x"])
        rng = random.Random(5)
        for trial in range(3000):
            text = "".join(rng.choice(["", "\r", "\n", "\r\n", "x", '"', ","]) for _ in range(rng.randint(0, 12))).encode()
            lines = [line for line in re.split(rb"[\r\n]", text) if line]
            self.assertEqual(formats.rows_of(text), len(lines), (trial, text))
            self.assertEqual(text[formats.last_line(text):].rstrip(b"\r\n"), lines[-1] if lines else b"", (trial, text))


class Names(Folder):
    def test_tabs_are_for_files_that_are_named_tsv_not_for_their_folders(self):
        self.assertEqual(data.load(self.write("my.tsv.d/x.csv", "a,y\n1,0\n"), label="y").names, ["a"])
        for name, text in (("a.tsv", b"a\ty\n1\t0\n"), ("B.TSV", b"a\ty\n1\t0\n"), ("c.tsv.gz", gzip.compress(b"a\ty\n1\t0\n")),
                           ("d.tsv.bz2", bz2.compress(b"a\ty\n1\t0\n"))):
            with self.subTest(name=name):
                self.assertEqual(data.load(self.write(name, text), label="y").names, ["a"])

    def test_a_delimiter_that_is_given_is_that_of_tsv_files_too(self):
        for delimiter in ";,":
            path = self.write("a.tsv", f"a{delimiter}y\n1{delimiter}0\n")
            self.assertEqual(data.load(path, label="y", delimiter=delimiter).names, ["a"])

    def test_endings_in_capitals_mean_the_same(self):
        self.assertEqual(data.load(self.write("D.CSV.GZ", gzip.compress(b"a,y\n1,0\n")), label="y").features.tolist(), [[1]])

    def test_endings_of_uris_are_seen_before_what_follows_them(self):
        for uri, name in (("https://h/x.parquet?sig=a.b", "parquet"), ("s3://b/x.CSV.gz?region=x", "csv"),
                          ("https://h/x?y=.csv2", None),
                          ("/data/x.csv?a", None), ("/data/a#b.parquet", "parquet"), ("s3://b/x#y.feather", "arrow")):
            self.assertEqual(formats.by_name(uri), name, uri)


class Errors(Folder):
    def test_a_cell_that_is_no_number_is_said_with_line_and_name(self):
        text = "x,y\n" + "1,2\n" * 300000 + "\n3,oops\n"
        self.refused(r"b\.csv, bytes \d+ to \d+: line \d+ of this range, column 'y': found 'oops', expected (float|double)$",
                     self.write("b.csv", text), label="x")
        self.refused(r"c\.csv\.gz, the file: line 300002, column 'y': found 'oops', expected (float|double)$",
                     self.write("c.csv.gz", gzip.compress(text.replace("\n\n", "\n").encode())), label="x")

    def test_a_line_with_too_few_cells_is_said_with_its_number_in_the_file_or_the_range(self):
        self.refused(r"a\.csv: line 5: Expected 2 columns, got 1: 3", self.write("a.csv", "x,y\n1,2\n\n1,2\n3\n"), label="x")
        self.refused(r"b\.csv, bytes \d+ to \d+: line \d+ of this range: Expected 2 columns",
                     self.write("b.csv", "x,y\n" + "1,2\n" * 300000 + "3\n"), label="x")

    def test_lines_are_counted_with_blank_ones(self):
        rng = random.Random(4)
        for _ in range(2000):
            lines = [rng.choice(["1,2", "", "3,x"]) for _ in range(rng.randint(1, 30))]
            rows = [number for number, line in enumerate(lines, 1) if line]
            if not rows:
                continue
            row = rng.randrange(len(rows))
            error = f"In CSV column #1: Row #{row + 1}: CSV conversion error to float: invalid value 'x\n'"
            said = formats.explained(error, ["a", "b"],
                                     rng.choice(["\n", "\r\n"]).join(lines).encode(), 10, " of this")
            self.assertEqual(said, f"line {10 + rows[row]} of this, column 'b': found 'x\n', expected float")
        self.assertEqual(formats.explained("anything else", ["a"], b"", 0, ""), "anything else")


class Types(Folder):
    def test_columns_without_a_value_are_guessed(self):
        for name, text, guessed in (("a.csv", "a,b\n", ("a", "b")), ("b.csv", "a,b\n1,\n", ("b",)), ("c.csv", "a,b\n1,x\n", ())):
            self.assertEqual(self.contents(name, text).guessed, guessed)

    def test_words_stay_as_they_are_written(self):
        for name, text in (("a.csv", "a,b\n007,1\n7,2\n"), ("b.csv", "a,b\n"), ("c.csv", "a,b\n,2\n")):
            found = self.contents(name, text, ("a", "c"))
            self.assertEqual((found.schema.field("a").type, "a" in found.guessed), (pa.string(), False))

    def test_what_is_guessed_gives_way_to_what_the_first_file_with_values_says(self):
        def one(guessed=(), **kinds):
            return formats.Contents(pa.schema(list(kinds.items())), [], guessed)
        given = {0: one(("a", "b", "c"), a=pa.float64(), b=pa.float64(), c=pa.float64()),
                 1: one(("b",), a=pa.int64(), b=pa.float64()),
                 2: one(a=pa.string(), b=pa.string())}
        self.assertEqual([formats.settled(given)[k].schema for k in range(3)],
                         [pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())]),
                          pa.schema([("a", pa.int64()), ("b", pa.string())]), given[2].schema])

    def test_categories_keep_their_leading_zeros(self):
        path = self.write("a.csv", "z,y\n007,0\n7,1\n10,0\n,1\n")
        found = data.load(path, label="y", categorical="z")
        self.assertEqual(found.categories, {"z": ["007", "10", "7"]})
        np.testing.assert_array_equal(found.features[:, 0], [0, 2, 1, np.nan])
        self.assertEqual(data.load(path, label="y", categorical="z", filters=[("z", "==", "007")]).features.tolist(), [[0]])
        arrow = next(data.batches(path, kind="arrow", label="y", categorical="z"))
        self.assertEqual(arrow["z"].to_pylist(), ["007", "7", "10", None])

    def test_categories_that_are_given_as_numbers_are_the_words_that_say_them(self):
        path = self.write("a.csv", "z,y\n8,0\n7,1\n,1\n")
        found = data.load(path, label="y", categories={"z": [7, 8]})
        np.testing.assert_array_equal(found.features[:, 0], [1, 0, np.nan])
        self.refused(r"a\.csv.* column 'z' has the category '8', which is not one of '7', '9'", path, label="y",
                     categories={"z": [7, 9]})

    def test_labels_may_be_true_or_false(self):
        for name, content in (("a.csv", b"y,x\nTrue,1\nfalse,2\n1,3\n"), ("a.csv.gz", gzip.compress(b"y,x\nTrue,1\nfalse,2\n1,3\n"))):
            self.assertEqual(data.load(self.write(name, content), label="y").label.tolist(), [1, 0, 1])
        self.write("t/a.csv", "y,x\ntrue,1\n")
        path = self.write("t/b.csv", "y,x\n1,1\nfalse,1\n")
        self.assertEqual(data.load(self.folder / "t", label="y", weight="y").weight.tolist(), [1, 1, 0])
        path.write_text("y,x\n0.5,1\n")
        self.refused(r"b\.csv, .*line 1 of this range, column 'y': found '0\.5', expected bool", self.folder / "t", label="y")
        self.refused(r"c\.csv, .*: the label in column 'y' is nothing", self.write("c.csv", "y,x\nTrue,1\n,1\n"), label="y")

    def test_categories_that_are_given_are_no_missing_values(self):
        text = "land,word,n,y\nNA,NA,NA,0\nDE,null,1,1\n,x,2,0\nnull,,3,1\n"
        given = {"land": ["DE", "NA"], "word": ["null", "x"]}
        for name, content in (("a.csv", text), ("a.csv.gz", gzip.compress(text.encode()))):
            path = self.write(name, content)
            found = data.load(path, label="y", categories=given)
            np.testing.assert_array_equal(found.features, [[1, np.nan, np.nan], [0, 0, 1], [np.nan, 1, 2], [np.nan, np.nan, 3]])
            arrow = pa.concat_tables(data.batches(path, kind="arrow", categories=given))
            self.assertEqual(arrow["land"].to_pylist(), ["NA", "DE", None, None])
            self.assertEqual(len(data.load(path, label="y", categories=given, filters=[("land", "==", "NA")])), 1)
        self.assertEqual(data.load(path, label="y", categorical=["land", "word"]).categories, {"land": ["DE"], "word": ["x"]})
        self.assertEqual({"", *formats.CSV_MISSING}, set(pa.csv.ConvertOptions().null_values))

    def test_files_without_rows_do_not_say_what_the_others_columns_are(self):
        self.write("s/a.csv", "w,b,n,y\n")
        self.write("s/b.csv", "w,b,n,y\nx,true,1,\n")
        self.write("s/c.csv", "w,b,n,y\nz,false,,1\n")
        found = data.load(self.folder / "s", label="y", categorical="w", features=["w", "b", "n"], filters=[("y", "==", 1)])
        np.testing.assert_array_equal(found.features, [[found.categories["w"].index("z"), 0, np.nan]])
        arrow = pa.concat_tables(data.batches(self.folder / "s", kind="arrow"))
        self.assertEqual(arrow.to_pydict(), {"w": ["x", "z"], "b": [True, False], "n": [1, None], "y": [None, 1]})
        self.write("t/a.csv", "w,y\n")
        self.assertEqual(len(data.load(self.folder / "t", label="y")), 0)

    def test_compressed_files_are_parsed_block_by_block(self):
        text = "x,y\n" + "1,2\n" * 200000 + "1.5,2\n" * 10
        with mock.patch.object(formats, "_CSV_BLOCK_BYTES", 1 << 16):
            found = data.load(self.write("a.csv.gz", gzip.compress(text.encode())), label="y")
            self.assertEqual((len(found), found.features.sum()), (200010, 200015))
            tables = list(data.batches(self.folder / "a.csv.gz", 50000, kind="arrow", label="y"))
        self.assertEqual(sum(len(table) for table in tables), 200010)


@unittest.skipUnless(importlib.util.find_spec("xgboost"), "XGBoost is not installed")
class Filters(Folder):
    def test_values_are_compared_as_they_are_written_not_as_float32(self):
        path = self.write("a.csv", "a,k,y\n0.7,16777217,1\n0.1,16777216,0\n0.9,3,2\n")
        for filters, labels in (([("a", ">=", 0.7)], [1, 2]), ([("a", "==", 0.1)], [0]), ([("k", "==", 16777217)], [1]),
                                ([("k", "<", 16777217)], [0, 2])):
            with self.subTest(filters=filters):
                found = data.load(path, label="y", filters=filters)
                self.assertEqual((found.label.tolist(), found.features.dtype), (labels, np.float32))
        self.refused(r"a\.csv, bytes .*: filters cannot be applied \(k is double\): .*9007199254740993", path, label="y",
                     filters=[("k", "==", 9007199254740993)])


class Rows(Folder):
    def estimated(self, path, rank=0, world=1, **wanted):
        from warren._xgboost import matrices as _xgboost_data
        with contextlib.closing(_load.Wanted(path, label="y", **wanted).source(_peers.of(rank, world))) as source:
            return _xgboost_data._rows(source)

    def test_rows_of_csv_are_estimated_from_bytes_of_text(self):
        rng = np.random.default_rng(5)
        text = "a,y\n" + "".join(f"{value},{int(value > 0.5)}\n" for value in rng.random(400000))
        path = self.write("a.csv", text)
        for count in (path, [self.write("b/1.csv", text[:len(text) // 4].rpartition("\n")[0]), self.write("b/2.csv", text)]):
            rows = len(data.load(count, label="y"))
            self.assertLess(abs(self.estimated(count) / rows - 1), 0.05)
        of_three = [self.estimated(path, rank, 3) for rank in range(3)]
        self.assertLess(abs(sum(of_three) / 400000 - 1), 0.05)
        with mock.patch.object(formats, "csv_range", lambda total: 16 << 20):
            self.assertLess(abs(self.estimated(path) / 400000 - 1), 0.05)

    def test_rows_of_compressed_csv_are_counted(self):
        path = self.write("a.csv.gz", gzip.compress(b"a,y\n" + b"1,0\n" * 300001))
        self.assertEqual(self.estimated(path), 300001)

    def test_filters_are_regarded_and_files_without_rows_have_none(self):
        self.assertEqual(self.estimated(self.write("a.csv", "a,y\n"), categorical=None), 0)
        path = self.write("b.csv", "a,y\n" + "1,0\n3,1\n" * 50000)
        self.assertLess(abs(self.estimated(path, filters=[("a", ">", 2)]) / 50000 - 1), 0.05)


class Content(Folder):
    """The format and compression of a .csv file follow from its contents."""

    def test_compression_is_seen_in_the_content_whatever_the_name_says(self):
        text = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (row, 2 * row, row % 2) for row in range(5000))
        whole = data.load(self.write("plain.csv", text), label="y")
        for name, content in (("a.csv", gzip.compress(text)), ("b.csv", gzip.compress(text[:3000]) + gzip.compress(text[3000:])),
                              ("c.csv", bz2.compress(text)), ("d.csv", pa.compress(text, "zstd", asbytes=True)), ("e.csv.gz", text),
                              ("f.csv.zst", gzip.compress(text)), ("g.csv.gz", gzip.compress(text))):
            path = self.write(name, content)
            with self.subTest(name=name):
                for found in (data.load(path, label="y"), data.load([path], label="y", format="csv")):
                    np.testing.assert_array_equal(found.features, whole.features)
                shares = [data.load(path, label="y", rank=rank, world=3) for rank in range(3)]
                np.testing.assert_array_equal(np.concatenate([share.features for share in shares]), whole.features)
                self.assertEqual(sum(map(len, data.batches(path, 700, label="y"))), 5000)
        self.assertEqual(len(data.load([self.folder / "a.csv", self.folder / "plain.csv"], label="y")), 10000)

    def test_what_is_no_csv_is_named(self):
        pq.write_table(pa.table({"a": [1]}), self.folder / "a.csv")
        pa.feather.write_feather(pa.table({"a": [1]}), str(self.folder / "b.csv"))
        self.write("c.csv", lzma.compress(b"a,b\n1,2\n"))
        with zipfile.ZipFile(self.folder / "d.csv", "w") as file:
            file.writestr("a.csv", "a,b\n1,2\n")
        for name, words in (("a", "is a Parquet file, expected CSV"), ("b", "is an Arrow file"), ("c", "is compressed with xz"), ("d", "is a ZIP archive")):
            with self.assertRaisesRegex(ValueError, rf"{name}\.csv: {words}"):
                data.load(self.folder / f"{name}.csv")
        for name in ("PAR1", "BZh"):
            self.assertEqual(data.load(self.write("e.csv", f"{name},b\n1,2\n".encode())).names, [name, "b"])

    def test_another_delimiter_is_hinted_at(self):
        for ours, written in ((None, ";"), (None, "\t"), (None, "|"), (";", ",")):
            path = self.write("a.csv", written.join("aby").encode() + b"\n" + written.join("123").encode() + b"\n")
            for named in ({"label": "y"}, {}, {"features": ["a"]}, {"filters": [("a", ">", 0)]}):
                with self.subTest(written=written, **named):
                    with self.assertRaisesRegex(ValueError, "; the header line has no '[,;]': did you mean delimiter=") as caught:
                        data.load(path, delimiter=ours, **named)
                    self.assertIn(f"did you mean delimiter={written!r}?", str(caught.exception))
            self.assertEqual(data.load(path, label="y", delimiter=written).features.tolist(), [[1, 2]])
        with self.assertRaises(ValueError) as caught:
            data.load(self.write("a.csv", b"a;b,y\n1,2\n"), label="z")
        self.assertNotIn("delimiter", str(caught.exception))
        self.assertEqual(data.load(self.write("a.csv", b"a;b\n1\n")).names, ["a;b"])


if __name__ == "__main__":
    unittest.main()
