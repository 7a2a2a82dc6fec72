"""warren.data.scatter and gather, and warren.xgboost.predict_to: where shares begin, errors, and real jobs with every library, under
/usr/bin/python3 and under the Python with pyarrow, pandas and polars that WARREN_ARROW_PYTHON names."""
import os
import pathlib
import queue
import random
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

import forking
from collectives_jobs import PYTHON, submit
from warren_testing import BIN, nightly

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))
from warren import data  # noqa: E402  pylint: disable=wrong-import-position
from warren.data import _peers  # noqa: E402  pylint: disable=wrong-import-position
from warren.data._exchange import arrays, pieces, scattering, shares, tables  # noqa: E402  pylint: disable=wrong-import-position

WORKERS = pathlib.Path(__file__).resolve().parent
ARROW_PYTHON = os.environ.get("WARREN_ARROW_PYTHON", "")


LIBRARIES = ("numpy", "scipy.sparse", "xgboost", "pyarrow.parquet", "pandas", "polars", "torch.distributed")
FIND = """
import importlib.util, os
for name in %r:
    package, _, module = name.partition(".")
    found = importlib.util.find_spec(package)
    places = found.submodule_search_locations if found else []
    if found and not module or any(os.path.exists(f"{place}/{module}{end}") for place in places for end in ("", ".py")):
        print(name)
"""


def found_by(python):
    """The libraries that this Python can import."""
    if not python:
        return []
    done = subprocess.run([python, "-c", FIND % ((*LIBRARIES, "xgboost.collective"),)], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.split()


FOUND = {python: found_by(python) for python in (PYTHON, ARROW_PYTHON)}


def without(python, *packages):
    missing = [package for package in packages if package not in FOUND[python]]
    return f"SKIPPED: {python or 'no Python'} has no {' and no '.join(missing)}; see WARREN_ARROW_PYTHON" if missing else None


WITHOUT_XGBOOST = without(PYTHON, "xgboost", "scipy.sparse")
WITHOUT_TORCH = without(PYTHON, "torch.distributed")
WITHOUT_ARROW = without(ARROW_PYTHON, "pyarrow.parquet", "pandas", "polars")
WITHOUT_NEW_XGBOOST = WITHOUT_ARROW or without(ARROW_PYTHON, "xgboost.collective")
#: The packages that are imported before workers are forked, by interpreter. PyTorch is separate, since its thread library differs from
#: XGBoost's.
PACKAGES = {python: [package for package in LIBRARIES[:-1] if package in FOUND[python]] for python in FOUND}
PACKAGES_OF_TORCH = ("numpy", "torch.distributed")
for why in sorted(set(filter(None, (WITHOUT_XGBOOST, WITHOUT_TORCH, WITHOUT_ARROW, WITHOUT_NEW_XGBOOST)))):
    print(why, file=sys.stderr)


class Shares(unittest.TestCase):
    def test_are_contiguous_complete_and_differ_by_a_row_at_most(self):
        for _ in range(2000):
            rows, world = random.randrange(200), random.randrange(1, 50)
            cuts = shares.even_cuts(rows, world)
            sizes = np.diff(cuts)
            self.assertEqual((len(cuts), cuts[0], cuts[-1]), (world + 1, 0, rows))
            self.assertTrue(0 <= sizes.min() and sizes.max() - sizes.min() <= 1, (rows, world, cuts))

    def test_keep_queries_whole_and_cut_where_one_ends_nearest_to_an_even_share(self):
        for _ in range(2000):
            world = random.randrange(1, 12)
            sizes = np.array([random.randrange(12) for _ in range(random.randrange(40))], np.int64)
            cuts, groups = shares.group_cuts(sizes, world)
            ends = [0, *np.cumsum(sizes).tolist()]
            self.assertEqual((len(cuts), cuts[0], cuts[-1], groups[0], groups[-1]), (world + 1, 0, ends[-1], 0, len(sizes)))
            self.assertEqual(cuts, [ends[group] for group in groups])
            self.assertEqual(groups, sorted(groups))
            for cut, even in zip(cuts, shares.even_cuts(ends[-1], world)):
                self.assertEqual(abs(cut - even), min(abs(end - even) for end in ends), (sizes, world, cuts))

    def test_pieces_have_no_more_bytes_than_asked_for_or_one_row(self):
        for _ in range(300):
            rows, width, most = random.randrange(60), random.randrange(5), random.randrange(1, 200)
            table = np.random.default_rng(rows).normal(size=(rows, width))
            spec, columns = tables.flatten(table)
            begin = random.randrange(rows + 1)
            builder = pieces.TableBuilder(spec, rows - begin, [0])
            for count, piece in pieces.pieces(columns, begin, rows, most, pieces.Memory()):
                self.assertTrue(piece.size - 8 <= most or count == 1, (piece.size, count, most))
                builder.add(count, piece)
            np.testing.assert_array_equal(builder.finish(), table[begin:])


class ThreadedPeers(_peers._Job):  # pylint: disable=protected-access
    """One rank of a stand-in for a job, whose ranks are threads of this process. Records the size of each message that reaches the rank."""

    def __init__(self, rank, job):
        self.rank, self.world, self._job = rank, job.world, job

    def _exchange(self, value):
        self._job.slots[self.rank] = value
        self._job.meeting.wait()
        found = list(self._job.slots)
        self._job.meeting.wait()
        return found

    def _maximum(self, values):
        return np.max(self._exchange(values.copy()), axis=0)

    def broadcast_bytes(self, array, root):
        self._take(array, self._exchange(array.tobytes() if self.rank == root else None)[root])

    def _take(self, array, found):
        if array.flags.writeable:
            array[...] = np.frombuffer(found, np.uint8)
        else:
            assert array.tobytes() == found, "not the root, and read-only"
        self._job.sent[self.rank].append(len(found))


class DirectThreadedPeers(ThreadedPeers):
    """ThreadedPeers that can send messages to single ranks."""

    def move(self, array, source, to):
        if self.rank == source:
            self._job.mail[source, to].put(array.tobytes())
        else:
            self._take(array, self._job.mail[source, to].get(timeout=30))


class ThreadedJob:
    """A job of `world` ranks. run() calls a function on each and returns the result or error of each rank."""

    def __init__(self, world, kind):
        self.world = world
        self.meeting = threading.Barrier(world, timeout=30)
        self.slots = [None] * world
        self.sent = [[] for _ in range(world)]
        self.mail = {(source, to): queue.Queue() for source in range(world) for to in range(world)}
        self._kind = kind

    def run(self, function):
        peers, results = threading.local(), [None] * self.world

        def rank_of(rank):
            peers.mine = self._kind(rank, self)
            try:
                results[rank] = function(rank)
            except Exception as error:  # pylint: disable=broad-except
                results[rank] = error

        with mock.patch.object(_peers, "current", lambda: peers.mine):
            threads = [threading.Thread(target=rank_of, args=(rank,)) for rank in range(self.world)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return results


class BadColumn(arrays.ArrayColumn):
    """A column whose rows from the third on cannot be sent."""

    def encode(self, begin, end):
        if end > 2:
            raise ValueError("the third row is bad")
        return super().encode(begin, end)


class Errors(unittest.TestCase):
    def everywhere(self, kind, said, results):
        self.assertEqual({type(result) for result in results}, {kind}, results)
        self.assertEqual(len({str(result) for result in results}), 1, results)
        self.assertIn(said, str(results[0]))

    def test_in_the_middle_of_the_rows_are_raised_on_all_ranks_in_the_same_words(self):
        for peers in (ThreadedPeers, DirectThreadedPeers):
            for world in (2, 3, 5):
                rows = np.arange(4 * world)
                with self.subTest(peers=peers.__name__, world=world), mock.patch.object(arrays, "ArrayColumn", BadColumn):
                    results = ThreadedJob(world, peers).run(
                        lambda rank: data.scatter(rows if rank == 1 else None, 1, piece_bytes=8))
                    self.everywhere(ValueError, "rank 1: the third row is bad", results)
                    results = ThreadedJob(world, peers).run(lambda rank: data.gather(rows[:rank + 1], piece_bytes=8))
                    if world > 2:
                        self.everywhere(ValueError, "rank 2: the third row is bad", results)
                    else:
                        self.assertEqual(results[0].tolist(), [0, 0, 1])

    def test_of_a_rank_that_cannot_take_its_rows_are_raised_on_all_ranks_in_the_same_words(self):
        for peers in (ThreadedPeers, DirectThreadedPeers):
            for last in (0, 2):
                def add(self, rows, piece, last=last, inner=pieces.TableBuilder.add):
                    if threading.current_thread().name == f"rank {last}":
                        raise MemoryError("no room")
                    inner(self, rows, piece)

                def scatter(rank):
                    threading.current_thread().name = f"rank {rank}"
                    return data.scatter(np.arange(30) if rank == 1 else None, 1, piece_bytes=8)

                with self.subTest(peers=peers.__name__, last=last), mock.patch.object(pieces.TableBuilder, "add", add):
                    self.everywhere(MemoryError, f"rank {last}: no room", ThreadedJob(3, peers).run(scatter))

    def test_of_a_rank_without_a_package_are_raised_on_all_ranks(self):
        def begun(plan, root, rank, inner=scattering._begun):  # pylint: disable=protected-access
            if rank == 2:
                raise ModuleNotFoundError("No module named 'pandas'")
            return inner(plan, root, rank)

        with mock.patch.object(scattering, "_begun", begun):
            results = ThreadedJob(3, ThreadedPeers).run(lambda rank: data.scatter(np.zeros(3) if rank == 0 else None))
        self.everywhere(ImportError, "rank 2: No module named 'pandas'", results)


class Pieces(unittest.TestCase):
    def test_of_other_ranks_are_not_sent_where_ranks_can_be_told_apart(self):
        rows, world, piece_bytes = np.arange(1000.0), 4, 256
        share = rows.nbytes // world
        for peers in (ThreadedPeers, DirectThreadedPeers):
            job = ThreadedJob(world, peers)
            results = job.run(lambda rank: data.scatter(rows if rank == 0 else None, piece_bytes=piece_bytes))
            np.testing.assert_array_equal(np.concatenate(results), rows)
            for sent in job.sent[1:]:
                if peers is DirectThreadedPeers:
                    self.assertLess(sum(sent), 1.7 * share)
                else:  # broadcasts reach all ranks; the root's own share is not sent
                    self.assertGreater(sum(sent), (world - 1) * share)
                # The largest message is the table's description, which may be larger than a piece.
                self.assertLessEqual(sorted(sent)[-2], piece_bytes + 8)

    def test_of_random_tables_on_random_ranks_become_the_table_again(self):
        for _ in range(100):
            world, rows, most = random.randrange(1, 6), random.randrange(30), random.randrange(1, 100)
            table, root, other = np.arange(rows), random.randrange(world), random.randrange(world)
            job = ThreadedJob(world, random.choice([ThreadedPeers, DirectThreadedPeers]))
            shares = job.run(lambda rank, *_, table=table, root=root, most=most: data.scatter(
                table if rank == root else None, root, piece_bytes=most))
            for share, expected in zip(shares, np.array_split(table, world)):
                np.testing.assert_array_equal(share, expected)
            found = job.run(lambda rank, *_, shares=shares, other=other, most=most: data.gather(
                shares[rank] if len(shares[rank]) or random.random() < 0.5 else None, other, piece_bytes=most))
            if rows:
                np.testing.assert_array_equal(found[other], table)
            self.assertTrue(all(one is None for rank, one in enumerate(found) if rank != other))


class PeersOfAProcess(unittest.TestCase):
    def test_alone_there_is_one_rank(self):
        with mock.patch.dict(os.environ):
            os.environ.pop("DMLC_TRACKER_URI", None)
            peers = _peers.current()
        self.assertEqual((peers.rank, peers.world, peers.allgather(3), peers.broadcast("x", 0)), (0, 1, [3], "x"))
        self.assertEqual(peers.greatest(np.array([5], np.uint64)).tolist(), [5])
        self.assertRaisesRegex(ValueError, "root is 1, expected a rank from 0 to 0", peers.broadcast, 1, 1)

    def test_a_worker_that_has_not_joined_is_told_what_to_write(self):
        job = {"DMLC_TRACKER_URI": "127.0.0.1", "DMLC_TRACKER_PORT": "9", "DMLC_NUM_WORKER": "4"}
        with mock.patch.dict(os.environ, job):
            self.assertRaisesRegex(RuntimeError, r"one of 4 workers .* has not joined it: .*with warren.xgboost.communicator\(\)",
                                   _peers.current)
            self.assertRaises(RuntimeError, data.scatter, np.zeros(3))
            os.environ["DMLC_NUM_WORKER"] = "1"
            self.assertEqual(_peers.current().world, 1)

    def test_a_rank_that_is_given_by_hand_cannot_talk_to_others(self):
        peers = _peers.of(2, 3)
        self.assertEqual((peers.rank, peers.world), (2, 3))
        for call, arguments in ((peers.allgather, (1,)), (peers.broadcast, (1, 0)), (peers.greatest, (np.zeros(1, np.uint64),)),
                                (peers.broadcast_bytes, (np.empty(0, np.uint8), 0))):
            self.assertRaisesRegex(RuntimeError, "rank 2 of 3 was given explicitly.*communicator", call, *arguments)
        self.assertEqual(_peers.of(0, 1).allgather(7), [7])
        self.assertRaisesRegex(ValueError, "rank 3 of 3: expected a rank from 0 to 2", _peers.of, 3, 3)
        self.assertRaisesRegex(ValueError, "a job of 0 ranks", _peers.of, 0, 0)


class Jobs(unittest.TestCase):
    def job(self, workers, python, program, *words, kinds=""):
        with self.subTest(workers=workers, python=python, words=words):
            packages = PACKAGES_OF_TORCH if words[0] in ("gloo", "warren") else PACKAGES[python]
            code, output = submit(workers, forking.python(python, *packages), str(WORKERS / program), *words)
            self.assertEqual(code, 0, output)
            said = [line for line in output.splitlines() if "] all right " in line and kinds in line]
            self.assertEqual(len(said), workers, output)

    def scattered(self, python, library, kinds, worlds):
        for world in worlds:
            self.job(world, python, "scatter_worker.py", library, str(world), kinds=kinds)

    def test_of_warren_rabit_scatter_and_gather_arrays(self):
        self.scattered(PYTHON, "rabit", "numpy", (1, 2, 5, *nightly(3)))

    def test_of_warren_collectives_scatter_and_gather_arrays(self):
        self.scattered(PYTHON, "collectives", "numpy", (3,))

    @unittest.skipIf(WITHOUT_XGBOOST, str(WITHOUT_XGBOOST))
    def test_of_xgboost_scatter_and_gather_arrays(self):
        self.scattered(PYTHON, "xgboost", "numpy scipy", (2, *nightly(1, 3, 5)))

    @unittest.skipIf(WITHOUT_TORCH, str(WITHOUT_TORCH))
    def test_of_pytorch_scatter_and_gather_arrays(self):
        self.scattered(PYTHON, "gloo", "numpy", (2, *nightly(3)))
        self.scattered(PYTHON, "warren", "numpy", (3, *nightly(1, 2)))

    @unittest.skipIf(WITHOUT_ARROW, str(WITHOUT_ARROW))
    def test_of_warren_rabit_scatter_and_gather_tables_of_every_kind(self):
        self.scattered(ARROW_PYTHON, "rabit", "pyarrow pandas polars", (2, *nightly(1, 3, 5)))

    @unittest.skipIf(WITHOUT_NEW_XGBOOST, str(WITHOUT_NEW_XGBOOST))
    def test_of_a_new_xgboost_scatter_and_gather_tables_of_every_kind(self):
        self.scattered(ARROW_PYTHON, "xgboost", "numpy scipy pyarrow pandas polars", (3, *nightly(1, 2, 5)))

    def predicted(self, python, worlds, suffixes):
        for world in worlds:
            for suffix in suffixes:
                with tempfile.TemporaryDirectory() as folder:
                    self.job(world, python, "predict_worker.py", str(world), folder, suffix)

    @unittest.skipIf(WITHOUT_XGBOOST, str(WITHOUT_XGBOOST))
    def test_of_xgboost_write_predictions_in_the_order_of_rows(self):
        self.predicted(PYTHON, (3, *nightly(1)), ("csv", "npy"))

    @unittest.skipIf(WITHOUT_NEW_XGBOOST, str(WITHOUT_NEW_XGBOOST))
    def test_of_a_new_xgboost_write_predictions_in_the_order_of_rows(self):
        self.predicted(ARROW_PYTHON, (1, 3), ("parquet", *nightly("npy")))


if __name__ == "__main__":
    unittest.main()
