"""The rabit-data program: its output, the files it writes, and its errors."""

import bz2
import gzip
import lzma
import os
import pathlib
import subprocess
import tempfile
import unittest

from warren_testing import BIN, memory_bound

RABIT_DATA = BIN / "rabit-data"
LIMIT_S = 60


class RabitDataTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="warren-data-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def parts(self, name, count):
        """The text of each part that convert or shard has written."""
        return [(self.folder / f"{name}.part{part}-of-{count}").read_text() for part in range(count)]

    def outputs(self, code, *arguments, stdout=subprocess.PIPE, **options):
        """The program's output and errors."""
        done = subprocess.run([RABIT_DATA, *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False,
                              cwd=self.folder, **options)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return (done.stdout or b"").decode(), done.stderr.decode()

    def run_program(self, code, *arguments, **options):
        stdout, stderr = self.outputs(code, *arguments, **options)
        return stdout if code == 0 else stdout + stderr


class LongestRow(RabitDataTest):
    LIMIT_BYTES = 128 << 20

    def test_a_row_may_be_as_long_as_the_limit_and_no_byte_longer(self):
        begin = b"1 0:1 #"
        for extra in (0, 1):
            with open(self.folder / "long", "wb") as file:
                file.write(begin + b"x" * (self.LIMIT_BYTES + extra - len(begin)) + b"\n0 1:1\n")
            with open(self.folder / "long", "rb") as piped:
                for arguments, options in ((["long"], {}), (["-"], {"stdin": piped})):
                    text = self.run_program(extra, "inspect", *arguments, **options)
                    self.assertIn("expected rows of text, of at most 128 MiB" if extra else "rows:     2\n", text)

    def test_a_bomb_is_refused_in_bounded_memory_whatever_it_is_compressed_with(self):
        # Concatenated streams are one text, here 1 GiB without a line end.
        text, times = b"1" * (8 << 20), 128
        bombs = {"gzip": gzip.compress(text, 1), "bzip2": bz2.compress(text), "xz": lzma.compress(text),
                 "zstd": subprocess.run(["zstd", "-q", "-c"], input=text, capture_output=True, check=True).stdout}
        for name, bomb in bombs.items():
            path = self.write(name, bomb * times)
            with open(self.folder / "error", "wb") as error:
                process = subprocess.Popen([RABIT_DATA, "inspect", path], stdout=subprocess.DEVNULL, stderr=error)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 1, name)
            self.assertIn("expected rows of text, of at most 128 MiB", (self.folder / "error").read_text())
            self.assertLess(usage.ru_maxrss << 10, memory_bound(2 * self.LIMIT_BYTES), name)


class Inspect(RabitDataTest):
    def test_tells_what_there_is(self):
        path = self.write("a", "1:2 qid:1 1:0.5 7:1\n0:1 qid:1 2:nan\n1 qid:5 1:3\n")
        text = self.run_program(0, "inspect", path)
        for line in ("rows:     3", "entries:  4 (1.3 a row, 1 of them nan)", "labels:   0, 1", "weights:  yes",
                     "queries:  2", "indices:  1 to 7, so 8 columns counted from 0; counted from 1 (indexing_mode=1) 7"):
            self.assertIn(line + "\n", text)

    def test_reads_standard_input_and_compressed_files(self):
        text = b"1 1:2\n0 3:4\n"
        self.assertIn("rows:     2\n", self.run_program(0, "inspect", "-", input=text))
        self.assertIn("rows:     2\n", self.run_program(0, "inspect", "-", input=gzip.compress(text)))
        self.assertIn("rows:     2\n", self.run_program(0, "inspect", self.write("a.gz", gzip.compress(text))))

    def test_a_part_alone(self):
        path = self.write("a", "".join(f"{i} 1:1\n" for i in range(100)))
        rows = [int(self.run_program(0, "inspect", path, "--part", part, "--parts", 3).split("rows:")[1].split()[0])
                for part in range(3)]
        self.assertEqual(sum(rows), 100)
        self.assertGreater(min(rows), 30)

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "wb") as full:
            _, stderr = self.outputs(1, "inspect", self.write("a", "1 1:2\n"), stdout=full)
        self.assertIn("cannot write to standard output: No space left on device", stderr)


class Validate(RabitDataTest):
    def test_good_data_is_good(self):
        self.assertEqual(self.run_program(0, "validate", self.write("a", "1 1:2\n")), "1 rows, 0 bad rows\n")

    def test_what_cannot_be_loaded_is_not_good(self):
        path = self.write("a", f"1 0:1\n0 {2**32 - 2}:1\n")
        self.run_program(0, "validate", path)
        for index in (2**32 - 1, 2**32, 2**64 - 2):
            path = self.write("b", f"1 0:1\n0 {index}:1\n")
            self.assertIn(f"{path}:2:3: found '{index}:1', expected an index up to 4294967294", self.run_program(1, "validate", path))
            self.assertIn("rows:     2\n", self.run_program(0, "inspect", path))
        path = self.write("c", "1 qid:1 0:1\n1 qid:2 0:1 0:2\n1 qid:3 0:1\n")
        self.assertIn(f"{path}:2:13: found '0:2', expected each index once in a row", self.run_program(1, "validate", path))
        path = self.write("d", "1 qid:1 0:1\n1 qid:2 0:1\n1 qid:1 0:1\n")
        self.assertIn(f"{path}: the rows of query 1 are not together: sort the file by qid", self.run_program(1, "validate", path))

    def test_a_query_that_goes_on_in_the_next_file_is_refused_by_all_commands_that_parse_it(self):
        first, following = self.write("first", "1 qid:1 0:1\n1 qid:2 0:1\n"), self.write("next", "1 qid:2 0:1\n")
        for command in (["validate"], ["inspect"], ["convert"], ["convert", "--to", "cache"]):
            with self.subTest(command=command):
                said = self.run_program(1, command[0], f"{first};{following}", *(["out"] if command[0] == "convert" else []), *command[1:])
                self.assertIn(f"{following}: its query 2 comes right after query 2 of {first}", said)
                self.assertFalse((self.folder / "out").exists())

    def test_rows_that_are_good_but_not_beside_the_others_are_bad_rows(self):
        path = self.write("a", "1:2 qid:1 1:1\n1:3 qid:1 1:2\n1:3 qid:2 1:2\n1 qid:2 1:2\nx qid:3 1:1\n")
        said = self.run_program(1, "validate", path)
        self.assertIn(f"{path}: row 1 has weight 3, but its query began with 2;", said)
        self.assertIn(f"{path}: row 3 has weight 1, but its query began with 3;", said)
        self.assertIn("found 'x', expected label", said)
        self.assertIn("4 rows, 3 bad rows\n", said)
        path = self.write("b", "".join(f"{'1,2' if row % 1000 == 999 else '1'} 1:1\n" for row in range(5000)))
        said = self.run_program(1, "validate", path, "--threads", 3, "--most", 2)
        self.assertEqual(said, f"{path}: row 999 has 2 labels, but the rows before have 1; XGBoost needs the same number in every row\n"
                         f"{path}: row 1999 has 2 labels, but the rows before have 1; XGBoost needs the same number in every row\n"
                         "and 3 more\n5000 rows, 5 bad rows\n")
        self.assertEqual(self.run_program(0, "validate", self.write("c", "1,2 1:1\n3,4:2 1:1\n")), "2 rows, 0 bad rows\n")

    def test_a_fault_of_all_rows_does_not_hide_the_bad_ones(self):
        path = self.write("a", "1 qid:1 0:1\nx\n1 qid:2 0:1\n1:nan qid:2 0:1\n1 qid:1 0:1\n")
        said = self.run_program(1, "validate", path)
        self.assertIn(f"{path}:2:1: found 'x'", said)
        self.assertIn(f"{path}:4:1: found '1:nan', expected a finite weight of at least 0\n", said)
        self.assertIn(f"{path}: the rows of query 1 are not together: sort the file by qid\n"
                      "3 rows, 2 bad rows, 1 error in the data set as a whole\n", said)

    def test_every_bad_row_is_named_up_to_a_limit(self):
        path = self.write("a", "1 1:2\nx\n1 2:y\n1 :3\n1 4:5\n")
        text = self.run_program(1, "validate", path)
        for place in (f"{path}:2:1: found 'x'", f"{path}:3:3: found '2:y'", f"{path}:4:3: found ':3'"):
            self.assertIn(place, text)
        self.assertIn("2 rows, 3 bad rows\n", text)
        self.assertIn("and 2 more\n", self.run_program(1, "validate", path, "--most", 1))


class Convert(RabitDataTest):
    def test_text_comes_out_in_one_form_and_with_the_same_numbers(self):
        path = self.write("a", "+1:2\tqid:7  3 5:1.50 # note\r\n\r\n-1e0:1 qid:8 2:0.1\r")
        self.run_program(0, "convert", path, "out")
        self.assertEqual((self.folder / "out").read_text(), "1:2 qid:7 3:1 5:1.5\n-1:1 qid:8 2:0.1\n")

    def test_csv_becomes_libsvm_and_goes_to_standard_output(self):
        path = self.write("a.csv", "y,a,b\n1,2,\n0,,3\n")
        text = self.run_program(0, "convert", path + "?format=csv&label_column=0&header=1", "-")
        self.assertEqual(text, "1 0:2\n0 1:3\n")

    def test_parts_have_files_of_their_own(self):
        path = self.write("a", "".join(f"{row} 1:{row}\n" for row in range(9)))
        for part in range(3):
            self.run_program(0, "convert", path, "out", "--part", part, "--parts", 3)
        self.assertEqual("".join(self.parts("out", 3)), (self.folder / "a").read_text())
        self.assertFalse((self.folder / "out").exists())

    def test_fields_that_are_left_out_are_spoken_of(self):
        path = self.write("a", "1 2:3:4\n")
        stdout, stderr = self.outputs(0, "convert", path + "?format=libfm", "-")
        self.assertEqual(stdout, "1 3:4\n")
        self.assertIn("libfm fields were dropped", stderr)

    def test_a_cache_has_the_name_that_was_given_or_that_of_its_part(self):
        path = self.write("a", "1 1:2\n0 3:4\n")
        self.run_program(0, "convert", path, "a.cache", "--to", "cache")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a", "a.cache"])
        before = (self.folder / "a.cache").stat().st_mtime_ns
        self.run_program(0, "convert", path, "a.cache", "--to", "cache")
        self.assertEqual((self.folder / "a.cache").stat().st_mtime_ns, before)  # unchanged: it is already the cache that a#a.cache uses
        self.run_program(0, "convert", path, "b", "--to", "cache", "--part", 1, "--parts", 2)
        self.assertEqual(sorted(p.name for p in self.folder.glob("b*")), ["b.part1-of-2"])

    def test_a_file_that_is_no_cache_is_not_overwritten_by_one(self):
        path, mine = self.write("a", "1 1:2\n"), self.write("mine", "what I wrote\n")
        message = self.run_program(1, "convert", path, mine, "--to", "cache")
        self.assertIn("mine: this file is not a cache", message)
        self.assertEqual(pathlib.Path(mine).read_text(), "what I wrote\n")

    def test_bad_data_leaves_no_file(self):
        self.run_program(1, "convert", self.write("a", "1 1:2\nx\n"), "out")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["a"])


class Shard(RabitDataTest):
    def test_parts_together_are_the_text(self):
        text = "".join(f"{i} 1:{i} # {i}\n" for i in range(1000))
        self.run_program(0, "shard", self.write("a", text), 7, "out")
        parts = self.parts("out", 7)
        self.assertEqual("".join(parts), text)
        self.assertGreater(min(map(len, parts)), len(text) // 8)

    def test_parts_of_csv_have_no_header_and_a_line_says_so(self):
        path = self.write("a", "y,x\n1,2\n3,4\n")
        _, stderr = self.outputs(0, "shard", path + "?format=csv&header=1", 1, "out")
        self.assertEqual(stderr, "rabit-data: the parts have no header line; read them without header=1\n")
        self.assertEqual(self.parts("out", 1), ["1,2\n3,4\n"])

    def test_parts_may_be_written_to_a_folder_of_the_data_set(self):
        (self.folder / "data").mkdir()
        text = "".join(f"{i} 1:{i}\n" for i in range(100))
        self.write("data/a", text)
        self.run_program(0, "shard", "data/", 3, "data/train")
        self.assertEqual("".join(self.parts("data/train", 3)), text)

    def test_queries_stay_whole(self):
        text = "".join(f"{i} qid:{i // 10} 1:1\n" for i in range(100))
        self.run_program(0, "shard", self.write("a", text), 3, "out")
        parts = self.parts("out", 3)
        self.assertEqual("".join(parts), text)
        queries = [{line.split()[1] for line in part.splitlines()} for part in parts]
        self.assertEqual(sum(map(len, queries)), 10)


class Usage(RabitDataTest):
    def test_wrong_arguments_are_exit_code_2(self):
        for arguments in ((), ("fly", "a"), ("inspect",), ("inspect", "a", "--part", "1"),
                          ("convert", "a", "b", "--to", "parquet"), ("shard", "a", "0", "b")):
            with self.subTest(arguments=arguments):
                self.run_program(2, *arguments)

    def test_options_are_taken_in_the_forms_of_argparse(self):
        self.write("a", "1 0:1\n0 1:2\n")
        expected = self.run_program(0, "inspect", "a", "--threads", "1", "--part", "1", "--parts", "2")
        self.assertEqual(self.run_program(0, "inspect", "a", "--thr=1", "--part", "1", "--parts", "2").splitlines()[:3],
                         expected.splitlines()[:3])
        self.assertIn("ambiguous option '--par': it could be --part, --parts", self.run_program(2, "inspect", "a", "--par", "1"))
        self.assertIn("unknown option '--thraeds'; did you mean --threads", self.run_program(2, "inspect", "a", "--thraeds", "1"))
        self.assertEqual(self.run_program(0, "convert", "-h"), self.run_program(0, "convert", "--help"))

    def test_missing_files_and_bad_names_are_exit_code_1(self):
        self.assertIn("nowhere: looking for it failed: No such file or directory", self.run_program(1, "inspect", "nowhere"))
        self.assertIn("expected one of csv, libfm, libsvm", self.run_program(1, "inspect", "a?format=parquet"))


if __name__ == "__main__":
    unittest.main()
