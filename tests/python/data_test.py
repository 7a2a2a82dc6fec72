"""warren.data's reader for text files, local and in stores: its NumPy arrays and batches."""
import collections
import contextlib
import dataclasses
import gc
import gzip
import importlib
import importlib.util
import io
import os
import pathlib
import signal
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np
from sklearn.datasets import load_svmlight_file

from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

from warren import data  # noqa: E402
from warren.data import _files, _load, _text  # noqa: E402
from warren.data._columnar import formats  # noqa: E402

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

    def test_all_shares_have_what_the_data_set_has(self):
        ours = {"columns": (5, "?indexing_mode=-1"), "labels": (2, ""), "weights": (None, ""), "queries": (None, "")}
        for what, text in (("columns", "1 1:1\n0 2:1\n1 5:1\n"), ("columns", "# only this\n1 5:1 1:1\n"), ("labels", "1,0 0:1\n0,1 1:1\n"),
                           ("weights", "1 0:1\n0 1:1\n1:3 2:1\n"), ("queries", "1 qid:1 0:1\n0 qid:1 1:1\n1 qid:2 0:1\n"),
                           ("queries", "1:2 qid:1 0:1\n0:2 qid:1 1:1\n1 qid:2 0:1\n")):
            path, options = self.write(text), ours[what][1]
            whole = data.load(path + options)
            for shares in (2, 3, 5):
                with self.subTest(text=text, shares=shares):
                    for one_by_one in (lambda k, n: data.load(path + options, rank=k, world=n),
                                       lambda k, n: data.load(f"{path}{options}{'&' if options else '?'}part={k}&n={n}"),
                                       lambda k, n: next(data.batches(path + options, rank=k, world=n), None)):
                        found = [share for share in (one_by_one(k, shares) for k in range(shares)) if share is not None]
                        for share in found:
                            self.assertEqual(share.features.shape[1], whole.features.shape[1])
                            for name in ("label", "weight", "qid"):
                                one, of_all = getattr(share, name), getattr(whole, name)
                                self.assertEqual(None if one is None else (one.dtype, one.shape[1:], len(one)),
                                                 None if of_all is None else (of_all.dtype, of_all.shape[1:], len(share)), name)
                        np.testing.assert_array_equal(np.concatenate([share.features.toarray() for share in found]), whole.features.toarray())
                        np.testing.assert_array_equal(np.concatenate([share.label for share in found]), whole.label)
                        if whole.weight is not None:
                            np.testing.assert_array_equal(np.concatenate([share.weight for share in found]), whole.weight)
                    rows = [data.read(path + options, k, shares) for k in range(shares)]
                    self.assertEqual({one.columns for one in rows}, {whole.features.shape[1]})

    def test_a_part_of_a_stream_cannot_know_the_columns_of_all(self):
        self.assertRaisesRegex(ValueError, "-: is a stream, which can be read only once", data.read, "-", 0, 2)
        self.assertRaisesRegex(ValueError, "-: is a stream, which can be read only once", data.load, "-", rank=1, world=2)

    def test_a_path_and_an_element_of_a_list_are_one_file_whatever_characters_they_have(self):
        names = ["x;y.svm", "q?bad_rows=skip", "a?format=csv", "b#c", "[xy].svm", "*.svm", "-", "~", "s3:", "a b", "x?part=0&n=2", "%41"]
        others = ["x", "y.svm", "q", "a", "b", "x.svm"]
        for number, name in enumerate([*names, *others]):
            (self.folder / name).write_text(f"{number} 0:1\n")
        self.enterContext(contextlib.chdir(self.folder))
        for number, name in enumerate(names):
            for uri in (pathlib.Path(name), [name], (pathlib.Path(name),), pathlib.Path(self.folder / name), [f"file://{self.folder}/{name}"]):
                with self.subTest(uri=uri):
                    self.assertEqual(data.read(uri).labels.tolist(), [number])
                    self.assertEqual(data.load(uri, format="libsvm").label.tolist(), [number])
                    self.assertEqual(data.load(uri).label.tolist(), [number])
                    self.assertEqual(next(data.batches(uri)).label.tolist(), [number])
        found = data.load(list(names), shuffle=3)
        self.assertEqual(sorted(found.label), list(range(len(names))))
        self.assertEqual(sorted(data.load("x;y.svm").label), [12, 13])
        (self.folder / "folder;1").mkdir()
        (self.folder / "folder;1/a").write_text("99 0:1\n")
        self.assertEqual(data.load([pathlib.Path("folder;1"), "x"]).label.tolist(), [99, 12])
        for missing in (pathlib.Path("y.sv?"), ["x;y.sv"], ["x", "q?indexing_mode=1"]):
            self.assertRaisesRegex(ValueError, "No such file.*a Path or an element of a list names one file or folder", data.read, missing)
            self.assertRaisesRegex(ValueError, "names one file or folder", data.load, missing, format="libsvm")
        self.assertRaisesRegex(ValueError, "no file", data.read, [])
        self.assertRaisesRegex(ValueError, "null character", data.read, ["a\0b"])

    def test_options_are_said_beside_a_list(self):
        path = self.write("1,2,3\n")
        rows = data.read([path], options="format=csv&label_column=2")
        self.assertEqual((rows.labels.tolist(), rows.values.tolist()), ([3], [1, 2]))
        rows = data.read(path + "?format=csv", options="label_column=1")
        self.assertEqual(rows.labels.tolist(), [2])
        self.assertRaisesRegex(ValueError, "formt", data.read, [path], options="formt=csv")

    def test_workers_agree_on_the_columns(self):
        path = self.write("1 3:1\n")
        rows = data.read(path, allreduce_max=lambda values: np.maximum(values, np.array([9] + (len(values) - 1) * [0], "uint64")))
        self.assertEqual(rows.columns, 9)

    def test_workers_that_find_different_files_fail(self):
        words = []

        def keep(values):
            words.append(values.copy())
            return values
        path = self.write("1 3:1\n")
        data.read(path, 0, 2, allreduce_max=keep)
        data.read(path, 1, 2, allreduce_max=lambda values: np.maximum(values, words[0]))
        self.write("1 3:1\n0 3:1\n")
        with self.assertRaisesRegex(ValueError, r"a\.txt: the workers have found different files, or files of different sizes"):
            data.read(path, 1, 2, allreduce_max=lambda values: np.maximum(values, words[0]))
        # A worker that reads a whole data set of its own is not compared.
        self.assertEqual(len(data.read(path, 0, 1, allreduce_max=lambda values: np.maximum(values, words[0])).labels), 2)

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
        self.assertRaisesRegex(ValueError, r"a\.txt:1:3: found '4294967295:1', expected an index up to", data.read, self.write("1 4294967295:1\n"))

    def test_an_index_twice_in_a_row_and_a_query_that_comes_back_are_errors_as_in_columns(self):
        path = self.write("1 0:1 3:1 0:2\n0 3:1\n")
        self.assertRaisesRegex(ValueError, r"a\.txt:1:11: found '0:2', expected each index once in a row", data.load, path)
        self.assertEqual(data.read(path + "?bad_rows=skip").labels.tolist(), [0])
        path = self.write("1 qid:1 0:1\n1 qid:2 0:1\n1 qid:1 0:1\n")
        self.assertRaisesRegex(ValueError, r"a\.txt: the rows of query 1 are not together: sort the file by qid", data.load, path)

    def test_bad_rows_are_counted_when_they_may_be_left_out(self):
        rows = data.read(self.write("1 3:1\nx\n") + "?bad_rows=skip")
        self.assertEqual((rows.labels.size, rows.bad_rows), (1, 1))
        self.assertIn("a.txt:2:1: found 'x'", rows.first_bad_row)


@dataclasses.dataclass(frozen=True)
class StoredFile:
    uri: str
    size: int
    tag: str = ""


class StoreInMemory:
    """Stands in for warren.data._files: files are bytes in a dictionary, and requests are recorded."""

    def __init__(self, files):
        self.files = files
        self.lock = threading.Lock()
        self.requests = []
        self.opened = collections.Counter()
        self.most_open = 0
        self.options = []
        self.before_a_range = lambda uri, offset: None
        store = self

        class Ranges(contextlib.AbstractContextManager):
            def __init__(self, file, *, storage_options=None):
                store.options.append(storage_options)
                self.content = store.files[file.uri]
                self.uri = file.uri
                with store.lock:
                    store.opened[file.uri] += 1
                    store.most_open = max(store.most_open, sum(store.opened.values()))

            def read_at(self, offset, size):
                with store.lock:
                    assert store.opened[self.uri] > 0, "read after it was closed"
                    store.requests.append((self.uri, offset, size))
                store.before_a_range(self.uri, offset)
                return self.content[offset:offset + size]

            def close(self):
                with store.lock:
                    store.opened[self.uri] -= 1

            def __exit__(self, *_):
                self.close()

        self.Ranges = Ranges
        self.in_full = _files.in_full

    def find(self, uri, *, storage_options=None):
        self.options.append(storage_options)
        (uri,) = [uri] if isinstance(uri, str) else uri
        found = [StoredFile(name, len(content)) for name, content in sorted(self.files.items())
                 if name == uri or name.startswith(uri.rstrip("/") + "/")]
        if not found:
            raise FileNotFoundError(f"{uri}: the store has no such file")
        return found


def numbered_rows(first, count, words=3):
    return "".join(f"{row}" + "".join(f" {word}:{row % 97}" for word in range(words)) + "\n"
                   for row in range(first, first + count)).encode()


class Batches(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "a.svm"
        self.path.write_text("".join(f"{k}:2 qid:{k // 4} {k % 5}:{k}\n" for k in range(100)))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "SKIPPED: python3-torch is not installed")
    def test_tensors_are_the_rows_in_order(self):
        import torch
        batches = list(data.batches(self.path, 30, kind="torch"))
        self.assertEqual([len(one) for one in batches], [30, 30, 30, 10])
        self.assertTrue(all(isinstance(getattr(one, name), torch.Tensor) for one in batches for name in ("features", "label", "weight", "qid")))
        self.assertEqual(torch.cat([one.label for one in batches]).tolist(), list(range(100)))
        self.assertEqual(torch.cat([one.features for one in batches]).max(1).values.tolist(), list(range(100)))
        self.assertEqual(torch.cat([one.qid for one in batches]).tolist(), [k // 4 for k in range(100)])

    def test_text_has_no_arrow_tables(self):
        self.assertRaisesRegex(ValueError, "numpy' or 'torch'", data.batches, self.path, kind="arrow")
        self.assertRaisesRegex(ValueError, "kind is 'x'", data.batches, self.path, kind="x")
        self.assertRaisesRegex(ValueError, "batch_rows is 0", data.batches, self.path, 0)

    def test_the_table_of_what_workers_got_is_shown_for_text_too(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            data.load(self.path, check=True, rank=0, world=2)
        self.assertRegex(said.getvalue(), r"a\.svm: \d+ rows, 5 features, 1 worker\n")
        self.assertRegex(said.getvalue(), r"\n  0  +\d\d +100\.0 % .*2 to 2, mean 2 +1\d\n")


class Remote(unittest.TestCase):
    def use(self, files):
        store = StoreInMemory(files)
        for module in (_text, _load, formats):
            self.enterContext(mock.patch.object(module, "_files", store))
        self.addCleanup(lambda: self.assertEqual(sum(store.opened.values()), 0, "files that were left open"))
        return store

    def test_remote_files_are_read_as_local_ones_are(self):
        text = numbered_rows(0, 10_000)
        self.use({"mem://b/day1.svm": text})
        with tempfile.NamedTemporaryFile() as local:
            local.write(text)
            local.flush()
            for part, parts in ((0, 1), (0, 3), (2, 3)):
                there, here = data.read("mem://b/day1.svm", part, parts), data.read(local.name, part, parts)
                for name in ("offsets", "indices", "values", "labels"):
                    np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
                self.assertEqual(there.columns, here.columns)

    def test_parts_of_a_folder_and_a_list_are_disjoint_and_complete(self):
        store = self.use({"mem://b/set/1": numbered_rows(0, 3000), "mem://b/set/2.gz": gzip.compress(numbered_rows(3000, 3000)),
                          "mem://b/set/_SUCCESS": b"no rows", "other://c": numbered_rows(6000, 3000)})
        for parts in (1, 2, 5):
            labels = np.concatenate([data.read("mem://b/set;other://c?format=libsvm", part, parts,
                                               storage_options={"key": "K"}).labels for part in range(parts)])
            np.testing.assert_array_equal(labels, np.arange(9000))
        self.assertEqual(set(map(str, store.options)), {"{'key': 'K'}"})

    def test_an_element_of_a_list_is_one_file_of_a_store_whatever_characters_it_has(self):
        names = ("mem://b/x;y", "mem://b/q?part=0&n=2", "mem://b/h#c", "mem://b/*")
        self.use({**{name: numbered_rows(10 * at, 10) for at, name in enumerate(names)}, "mem://b/q": numbered_rows(90, 10), "y": b""})
        for at, name in enumerate(names):
            np.testing.assert_array_equal(data.read([name]).labels, np.arange(10 * at, 10 * at + 10))
        np.testing.assert_array_equal(data.read(list(names), options="shuffle=1").labels.shape, [40])
        with tempfile.TemporaryDirectory() as folder:
            local = pathlib.Path(folder) / "s;mem:"
            local.write_bytes(numbered_rows(0, 5))
            np.testing.assert_array_equal(data.read([local, names[0]]).labels, [*range(5), *range(10)])
            np.testing.assert_array_equal(data.read([f"file://{local}"]).labels, range(5))

    def test_local_and_remote_paths_go_together(self):
        self.use({"mem://a": numbered_rows(0, 10)})
        with tempfile.NamedTemporaryFile() as local:
            local.write(numbered_rows(10, 10))
            local.flush()
            for path in (local.name, f"file://{local.name}"):
                np.testing.assert_array_equal(data.read(f"mem://a;{path}").labels, np.arange(20))
                np.testing.assert_array_equal(data.read(path).labels, np.arange(10, 20))
                with self.assertRaisesRegex(ValueError, "storage_options are given, but no path has a scheme"):
                    data.read(path, storage_options={"key": "K"})

    def test_a_chunk_takes_one_request(self):
        text = numbered_rows(0, 700_000)
        store = self.use({"mem://a": text})
        self.assertEqual(len(data.read("mem://a").labels), 700_000)
        self.assertGreater(len(text), 12 << 20)
        self.assertLessEqual(len(store.requests), 3 + len(text) // (4 << 20))
        self.assertLess(sum(size for _, _, size in store.requests), len(text) + (1 << 20))

    def test_a_file_is_opened_once_and_takes_two_requests(self):
        store = self.use({f"mem://set/{number:03}": numbered_rows(100 * number, 100) for number in range(300)})
        np.testing.assert_array_equal(data.read("mem://set", threads=4).labels, np.arange(30_000))
        self.assertEqual(len(store.options), 1 + 300)
        self.assertLessEqual(len(store.requests), 2 * 300 + 2)

    def test_no_more_files_are_open_than_may_be(self):
        with mock.patch.object(data._text, "_MOST_OPEN_FILES", 20):
            store = self.use({f"mem://set/{number:03}": numbered_rows(100 * number, 100) for number in range(300)})
            np.testing.assert_array_equal(data.read("mem://set", threads=4).labels, np.arange(30_000))
        self.assertLessEqual(store.most_open, 20 + 16)

    def test_what_a_store_raises_comes_out_as_it_is(self):
        class Burnt(OSError):
            pass

        def burn(uri, offset):
            if uri == "mem://set/b":
                raise Burnt(f"{uri}: at byte {offset}, after 6 attempts")
        store = self.use({"mem://set/a": numbered_rows(0, 100), "mem://set/b": numbered_rows(0, 100)})
        self.assertRaisesRegex(FileNotFoundError, "mem://none: the store", data.read, "mem://none")
        store.before_a_range = burn
        for threads in (1, 4):
            self.assertRaisesRegex(Burnt, "mem://set/b: at byte 0, after 6", data.read, "mem://set", threads=threads)
        store.before_a_range = lambda uri, offset: {}[uri]
        self.assertRaises(KeyError, data.read, "mem://set")

    def test_ranges_that_come_short_are_errors(self):
        store = self.use({"mem://a": numbered_rows(0, 100)})
        whole = store.find
        store.find = lambda *arguments, **more: [StoredFile(file.uri, file.size + 7) for file in whole(*arguments, **more)]
        self.assertRaisesRegex(OSError, r"mem://a: got \d+ bytes at byte 0, expected", data.read, "mem://a")

    def test_bad_rows_are_named_by_their_uri(self):
        self.use({"mem://b/a.svm": b"1 3:1\n1 3:x\n"})
        self.assertRaisesRegex(ValueError, r"mem://b/a\.svm:2:3: found '3:x'", data.read, "mem://b/a.svm")

    def test_passwords_are_in_no_message(self):
        self.use({"mem://me:secret@b/a": b"1 3:1\nx\n", "mem://me:secret@b/labels": b"1 3:1\n1,2 3:1\n"})
        for name, message in (("a", r"mem://me:\*\*\*@b/a:2:1: found 'x'"), ("labels", r"mem://me:\*\*\*@b/labels: ")):
            self.assertRaisesRegex(ValueError, message, data.read, f"mem://me:secret@b/{name}")
        self.assertIn("mem://me:***@b/a:2:1", data.read("mem://me:secret@b/a?bad_rows=skip").first_bad_row)

    def test_the_agreement_is_called_in_the_callers_thread(self):
        self.use({"mem://a": b"1 3:1\n"})
        callers = []

        def greatest(values):
            callers.append(threading.get_ident())
            return np.maximum(values, np.array([9] + (len(values) - 1) * [0], "uint64"))

        def bad(_):
            raise KeyError("bad")
        self.assertEqual(data.read("mem://a", allreduce_max=greatest).columns, 9)
        self.assertEqual(set(callers), {threading.get_ident()})
        self.assertRaises(KeyError, data.read, "mem://a", allreduce_max=bad)

    def test_an_interrupt_does_not_wait_for_the_store(self):
        store = self.use({"mem://a": numbered_rows(0, 2_000_000, 1)})
        answer = threading.Event()
        self.addCleanup(self.wait_for_reads)
        self.addCleanup(answer.set)

        def hang(_, offset):
            if offset > 0:
                os.kill(os.getpid(), signal.SIGINT)
                answer.wait(60)
        store.before_a_range = hang
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with self.assertRaises(KeyboardInterrupt), contextlib.ExitStack() as after:
            # After the interrupt, requests only block. Otherwise, a request of another reader thread would send a second interrupt.
            after.callback(setattr, store, "before_a_range", lambda uri, offset: answer.wait(60))
            data.read("mem://a", threads=1)
        self.assertFalse(answer.is_set())
        asked = len(store.requests)
        answer.set()
        self.wait_for_reads()
        self.assertEqual(len(store.requests), asked)

    @staticmethod
    def wait_for_reads():
        for thread in threading.enumerate():
            if thread.name == "warren.data.read":
                thread.join(30)
                assert not thread.is_alive()

    def test_several_threads_read_at_once(self):
        self.use({f"mem://{number}": numbered_rows(number, 20_000) for number in range(4)})
        results = [None] * 4

        def read(number):
            results[number] = data.read(f"mem://{number}", threads=2)
        threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for number in range(4):
            np.testing.assert_array_equal(results[number].labels, np.arange(number, number + 20_000))

    def test_xgboost_and_lightgbm_hand_the_options_on(self):
        store = self.use({"mem://a": numbered_rows(0, 50)})
        given = {"key": "K"}
        for package, load in (("xgboost", lambda module: module.load_dmatrix("mem://a", storage_options=given).num_row()),
                              ("lightgbm", lambda module: module.load_dataset("mem://a", storage_options=given,
                                                                              params={"verbose": -1}).construct().num_data())):
            with self.subTest(package):
                if importlib.util.find_spec(package) is None:
                    print(f"SKIPPED: {sys.executable} has no {package}", file=sys.stderr)
                    continue
                self.assertEqual(load(importlib.import_module(f"warren.{package}")), 50)
                self.assertTrue(store.options and all(options == given for options in store.options))
                store.options.clear()


if __name__ == "__main__":
    unittest.main()
