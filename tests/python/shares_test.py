"""warren.data: which rows belong to which worker, in thousands of random cases; available memory; progress output. Reads no data files."""
import gc
import io
import os
import random
import unittest
import unittest.mock
import weakref

import numpy as np

from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

from warren._elastic import session as _session  # noqa: E402
from warren._elastic import shares as _elastic  # noqa: E402
from warren.data import _check, _memory, _peers, _progress, _queries  # noqa: E402
from warren.data._columnar import pieces as _pieces  # noqa: E402
from warren.data._columnar.pieces import Cut, Piece  # noqa: E402


def some_pieces(rng, known):
    """Random pieces of several files, some without rows. Their row counts are unknown (-1) unless `known`."""
    pieces = []
    for file in range(rng.randint(1, 6)):
        for place in range(rng.randint(0, 8)):
            rows = rng.choice([0, 1, 2, rng.randint(3, 2000)])
            pieces.append(Piece(file, place, rows if known else -1, max(1, rows * rng.randint(1, 30) + rng.randint(0, 50))))
    return pieces


def rows_of(slices, rows):
    """(file, place, row) of each row of a share. `rows` maps (file, place) to the piece's row count."""
    return [(one.piece.file, one.piece.place, row) for one in slices
            for row in range(one.begin, rows[one.piece.file, one.piece.place] if one.end is None else one.end)]


class Shares(unittest.TestCase):
    def test_shares_are_the_data_set_in_one_order_for_any_number_of_workers(self):
        rng = random.Random(1)
        for trial in range(1000):
            known = rng.random() < 0.8
            given = some_pieces(rng, known)
            rows = {(one.file, one.place): max(one.rows, 0) if known else rng.randint(0, 50) for one in given}
            seed = rng.choice([None, rng.randint(0, 2**40)])
            pieces = _pieces.ordered(given, seed, rng.random() < 0.5)
            whole = rows_of(_pieces.share(pieces, Cut(0, 0), Cut(len(pieces), 0)), rows)
            self.assertEqual(sorted(whole), sorted((*key, row) for key, count in rows.items() for row in range(count)), trial)
            for world in (1, 2, 3, rng.randint(4, 60)):
                cuts = [_pieces.cut(pieces, world, number) for number in range(world + 1)]
                self.assertEqual(cuts, sorted(cuts))
                shares = [rows_of(_pieces.share(pieces, *ends), rows) for ends in zip(cuts, cuts[1:])]
                self.assertEqual([row for one in shares for row in one], whole, (trial, world))

    def test_shares_have_about_as_many_rows_where_a_row_has_about_as_many_bytes(self):
        rng = random.Random(2)
        for trial in range(500):
            pieces = [Piece(0, place, rows, rows * 10) for place, rows in enumerate(rng.randint(1, 5000) for _ in range(rng.randint(1, 40)))]
            total = sum(one.rows for one in pieces)
            world = rng.randint(1, 16)
            cuts = [_pieces.cut(pieces, world, number) for number in range(world + 1)]
            counts = [sum((one.piece.rows if one.end is None else one.end) - one.begin for one in _pieces.share(pieces, *ends))
                      for ends in zip(cuts, cuts[1:])]
            for count in counts:
                self.assertLessEqual(abs(count - total / world), 2 * _pieces.SNAP * total / world + 1, (trial, counts))

    def test_whole_row_groups_are_read_once_where_shares_are_equal_enough(self):
        pieces = [Piece(0, place, 1000, 1000) for place in range(400)]
        for world in (2, 3, 4, 5):
            self.assertEqual([_pieces.cut(pieces, world, number).row for number in range(world + 1)], [0] * (world + 1))

    def test_one_row_group_is_shared_out_by_rows(self):
        self.assertEqual([_pieces.cut([Piece(0, 0, 1000, 77)], 4, number) for number in range(5)],
                         [Cut(0, 0), Cut(0, 250), Cut(0, 500), Cut(0, 750), Cut(1, 0)])

    def test_orders_by_a_seed_are_those_of_all_versions(self):
        pieces = [Piece(file, place, 10, 10) for file in range(2) for place in range(3)]
        self.assertEqual([(one.file, one.place) for one in _pieces.ordered(pieces, 7, False)],
                         [(1, 0), (1, 2), (0, 0), (0, 2), (0, 1), (1, 1)])
        self.assertEqual([(one.file, one.place) for one in _pieces.ordered(pieces, 3, True)],
                         [(1, 0), (1, 1), (1, 2), (0, 0), (0, 1), (0, 2)])
        self.assertEqual(_pieces.rows_in_order(pieces[0], 6, 7).tolist(), [1, 2, 4, 3, 5, 0])

    def test_queries_are_never_torn(self):
        rng = random.Random(3)
        torn_before = 0
        for trial in range(2000):
            known = rng.random() < 0.7
            counts = [rng.choice([0, 1, 2, rng.randint(1, 30)]) for _ in range(rng.randint(1, 12))]
            total = sum(counts)
            sizes = []
            while sum(sizes) < total:
                sizes.append(rng.choice([1, 2, rng.randint(1, 40)]))
            queries = np.repeat(np.arange(len(sizes)), sizes)[:total]
            starts = np.cumsum([0, *counts])
            pieces = [Piece(place // 3, place, count if known else -1, max(1, count)) for place, count in enumerate(counts)]
            of_one = [queries[begin:end] for begin, end in zip(starts, starts[1:])]
            world = rng.randint(1, 9)
            cuts = [Cut(0, 0), *(_pieces.cut_between_queries(_pieces.cut(pieces, world, number), len(pieces), of_one.__getitem__)
                                 for number in range(1, world)), Cut(len(pieces), 0)]
            places = [int(starts[min(cut.piece, len(counts))]) + cut.row for cut in cuts]
            self.assertEqual(places, sorted(places))
            for place in places:
                self.assertTrue(place in (0, total) or queries[place] != queries[place - 1], (trial, places, queries))
            for number in range(1, world):
                cut = _pieces.cut(pieces, world, number)
                place = int(starts[min(cut.piece, len(counts))]) + cut.row
                torn_before += 0 < place < total and queries[place] == queries[place - 1]
        self.assertGreater(torn_before, 1000)

    def test_a_query_ends_where_a_shuffled_file_does(self):
        queries = [np.array([1, 1, 2, 2]), np.array([2, 2, 3, 3])]
        self.assertEqual(_pieces.cut_between_queries(Cut(1, 0), 2, queries.__getitem__), Cut(0, 2))
        self.assertEqual(_pieces.cut_between_queries(Cut(1, 0), 2, queries.__getitem__, lambda _: False), Cut(1, 0))

    def test_queries_begin_where_others_end(self):
        for queries, begins in (([5, 5, 3, 9, 9, 9], [0, 2, 3]), ([5, 3, 5], [0, 1, 2]), ([], [])):
            self.assertEqual(_queries.starts(np.array(queries)).tolist(), begins)


class Memory(unittest.TestCase):
    MOUNTS_2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
    MOUNTS_1 = "35 30 0:31 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"

    def test_the_least_limit_above_a_process_counts(self):
        files = {"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "4096\n", "/sys/fs/cgroup/memory.max": "9999999\n"}
        self.assertEqual(_memory.of_cgroup("0::/a/b\n", self.MOUNTS_2, files), 4096)
        self.assertIsNone(_memory.of_cgroup("0::/c\n", self.MOUNTS_2, {}))

    def test_version_1_says_a_huge_number_for_none(self):
        files = {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712\n",
                 "/sys/fs/cgroup/memory/memory.limit_in_bytes": "8192\n"}
        self.assertEqual(_memory.of_cgroup("4:memory:/job\n0::/\n", self.MOUNTS_1, files), 8192)
        files.pop("/sys/fs/cgroup/memory/memory.limit_in_bytes")
        self.assertIsNone(_memory.of_cgroup("4:memory:/job\n", self.MOUNTS_1, files))

    def test_what_does_not_fit_becomes_bins_and_then_pages(self):
        def chosen(rows, limit, quantile=False):
            return _memory.choice(_memory.Need.of(rows, 100, 256, 1000), limit, quantile)
        self.assertEqual(chosen(1_000_000, 4 << 30), "matrix")
        self.assertEqual(chosen(1_000_000, 1 << 30), "quantile")
        self.assertEqual(chosen(1_000_000, 1 << 30, True), "matrix")
        self.assertEqual(chosen(10_000_000, 1 << 30), "external")

    def test_slurm_says_how_many_tasks_of_a_step_a_node_has(self):
        for tasks, node, workers in (("4(x2),3", "0", 4), ("4(x2),3", "1", 4), ("4(x2),3", "2", 3), ("4(x2),3", "3", 1), ("8", "0", 8),
                                     ("8", "", 1), ("", "0", 1), ("0", "0", 1), ("many", "0", 1)):
            variables = {"SLURM_STEP_TASKS_PER_NODE": tasks, "SLURM_NODEID": node}
            with self.subTest(**variables), unittest.mock.patch.dict(os.environ, variables):
                self.assertEqual(_memory.workers_here(), workers)
        with unittest.mock.patch.dict(os.environ, {"SLURM_STEP_TASKS_PER_NODE": "4", "SLURM_NODEID": "0", "LOCAL_WORLD_SIZE": "2"}):
            self.assertEqual(_memory.workers_here(), 2)

    def test_this_process_has_a_limit(self):
        self.assertGreater(_memory.limit(), 1 << 20)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def test_a_line_says_rows_bytes_speed_and_what_is_left(self):
        self.assertEqual(_progress.line("reading a", 1000, 30_000_000, 2.0, 4000, 120_000_000, 200),
                         "reading a: 1,000 of 4,000 rows, 30 MB, 15 MB/s, 6 s left")
        self.assertEqual(_progress.line("reading a", 1000, 30_000_000, 2.0, None, 30_000_000, 200), "reading a: 1,000 rows, 30 MB, 15 MB/s")
        for width in range(10, 120):
            self.assertLess(len(_progress.line("reading a" * 20, 10**9, 10**12, 1e4, 10**10, 10**13, width)), width)

    def test_it_is_on_terminals_only(self):
        for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
            times = iter(np.arange(0, 100, 0.06))
            progress = _progress.Progress("reading a", 100, 100_000_000, stream=stream, clock=lambda times=times: next(times))
            for _ in range(10):
                progress(10, 10_000_000)
            self.assertEqual(stream.getvalue().count("reading a: ") == 5, shown)
            progress.close()
            self.assertEqual(stream.getvalue().endswith("\r\x1b[K"), shown)
            self.assertEqual(stream.getvalue() == "", not shown)


class Check(unittest.TestCase):
    def test_the_table_says_what_each_worker_got(self):
        def one(rows, least):
            return _check.Summary(rows, _check.Range(0, 1, rows / 4, rows), None, 3, [
                ("age", "int", _check.Range(least, 90, 50 * rows, rows)), ("same", "q", _check.Range(2, 2, 2 * rows, rows)),
                ("city", "c", _check.Range(0, 2, rows, rows - 5))], 3 * rows - 5)
        text = _check.report("s3://b/x", 3, [one(3000, 18), one(1000, 20), _check.Summary(0, None, None, 0, [
            (name, kind, _check.Range.of(np.empty(0))) for name, kind in (("age", "int"), ("same", "q"), ("city", "c"))], 0)],
            {"city": ["Bonn", "Rom", "Ulm"]})
        self.assertIn("s3://b/x: 4,000 rows, 3 features, 3 workers\n", text)
        self.assertRegex(text, r"\n  0       3,000  75.0 %  8,995   0 to 1, mean 0.25  -       3\n")
        self.assertRegex(text, r"\n  age      whole     0.0 %    18 to 90, mean 50\n")
        self.assertRegex(text, r"\n  city     category  0.2 %    3: Bonn, Rom, Ulm\n")
        self.assertIn("without rows: worker 2", text)
        self.assertIn("the same everywhere: same", text)


class ElasticShares(unittest.TestCase):
    """The shares of the workers of an elastic job, which join and leave."""

    def check(self, held, count):
        """Assigns `count` shares. Checks that each is assigned once and that workers' numbers of shares differ by at most one. Returns the shares."""
        found = _elastic.dealt(held, count)
        self.assertEqual(sorted(share for of_one in found for share in of_one), list(range(count)))
        self.assertLessEqual(max(map(len, found)) - min(map(len, found)), 1)
        return found

    def test_the_first_workers_get_the_data_set_in_order(self):
        self.assertEqual(self.check([[], [], []], 8), [[0, 1, 2], [3, 4, 5], [6, 7]])

    def test_workers_that_come_and_go_move_no_more_shares_than_necessary(self):
        rng = random.Random(2)
        for _ in range(2000):
            count, held = 16 * rng.randint(1, 6), [[] for _ in range(rng.randint(1, 6))]
            for _ in range(rng.randint(1, 6)):
                held = self.check(held, count)
                lost = [number for number in range(len(held)) if rng.random() < .3]
                kept = [of_one for number, of_one in enumerate(held) if number not in lost]
                new = rng.choice([0, 0, len(lost), rng.randint(0, 2)])
                if not kept and not new:
                    continue
                held = kept + [[] for _ in range(new)]
                after = self.check(held, count)
                for ours, now in zip(kept, after):
                    # A survivor either gives back its latest shares only, or keeps all and receives more.
                    self.assertTrue(now == ours[:len(now)] or ours == now[:len(ours)], (ours, now))
                if kept and new == len(lost):
                    self.assertEqual(after[:len(kept)], kept)  # the survivors keep their shares
                    self.assertEqual(set().union(*after[len(kept):]), set(range(count)) - set().union(*kept))

    def test_a_worker_that_comes_later_leaves_the_others_with_what_they_had_first(self):
        first = self.check([[], [], [], []], 64)
        without = self.check([first[0], first[2], first[3]], 64)
        self.assertEqual(self.check([*without, []], 64), [first[0], first[2], first[3], first[1]])

    def test_what_two_workers_hold_after_a_broken_move_is_held_once(self):
        self.assertEqual(self.check([[0, 1, 2, 3], [2, 3, 4, 5]], 6), [[0, 1, 2], [4, 5, 3]])

    def test_neighbouring_shares_are_read_as_one_range(self):
        self.assertEqual(_elastic.ranges_of([5, 1, 2, 8, 0]), [(0, 3), (5, 6), (8, 9)])


class ElasticReading(unittest.TestCase):
    """Reading that is given up because another worker is waiting."""

    def setUp(self):
        self.session = object.__new__(_session.Session)  # without a job
        self.session._interruptions, self.session._wants_change = 0, lambda: True
        self.rows = None

    def read(self, check):
        rows = np.ones(3)
        self.rows = weakref.ref(rows)
        try:
            check()
        except _session.Change as error:
            kept = error  # refers to this frame, which refers to it
            raise kept

    def test_it_is_given_up_only_so_many_times_between_two_rounds_whichever_worker_does(self):
        class Another(_peers.Alone):
            def greatest(self, values):
                return np.ones_like(values)
        for peers, read in ((_peers.Alone(), self.read), (Another(), lambda check: None)):
            for _ in range(_session._MOST_INTERRUPTIONS):
                self.assertRaises(_session.Change, self.session.read_rows, peers, read)
            self.session.read_rows(_peers.Alone(), self.read)
            self.session.has_progressed()
        self.assertRaises(_session.Change, self.session.read_rows, _peers.Alone(), self.read)

    def test_the_rows_that_were_read_are_freed(self):
        gc.disable()
        self.addCleanup(gc.enable)
        self.assertRaises(_session.Change, self.session.read_rows, _peers.Alone(), self.read)
        self.assertIsNone(self.rows())


if __name__ == "__main__":
    unittest.main()
