"""The C and C++ programs of examples/rabit and examples/collectives, in jobs of 1 to 4 workers."""

import re
import unittest

from api_testing import BIN, alone, job


class Examples(unittest.TestCase):
    def lines(self, done):
        """Returns the output of the workers and of the tracker, without dmlc-submit's "[rank] " before each line."""
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [re.sub(r"^\[\d+\] ", "", line) for line in done.stdout.splitlines()]

    def jobs(self, program):
        """Runs the program in jobs of 1 to 4 workers. Yields each job's number of workers and lines."""
        for workers in (1, 2, 3, 4):
            yield workers, self.lines(job(workers, BIN / program))

    def test_basic_takes_the_maxima_and_then_the_sums(self):
        for workers, lines in self.jobs("rabit-basic"):
            top = workers - 1
            for rank in range(workers):
                self.assertIn(f"rank {rank} brings: {rank} {rank + 1} {rank + 2}", lines)
                self.assertIn(f"rank {rank} has the maxima: {top} {top + 1} {top + 2}", lines)
                self.assertIn(f"rank {rank} has the sums: {workers * top} {workers * (top + 1)} "
                              f"{workers * (top + 2)}", lines)

    def test_broadcast_gives_all_ranks_what_the_last_one_knows(self):
        for workers, lines in self.jobs("rabit-broadcast"):
            for rank in range(workers):
                self.assertIn(f"rank {rank}: good morning from the last rank, 3 weights, the last one 0.125, "
                              "seed 20140829", lines)

    def test_lazy_allreduce_prepares_once_in_each_rank(self):
        for workers, lines in self.jobs("rabit-lazy-allreduce"):
            sums = " ".join(str(sum((rank + i) ** 2 for rank in range(workers))) for i in range(4))
            for rank in range(workers):
                self.assertEqual(lines.count(f"rank {rank} computes its share"), 1)
                self.assertIn(f"rank {rank} has the sums of squares: {sums}", lines)

    def test_reducer_merges_structs_and_objects(self):
        for workers, lines in self.jobs("rabit-reducer"):
            count, total = workers * (workers + 1) // 2, 10 * workers * (workers - 1) // 2
            labels = len({0} | {rank * rank for rank in range(workers)})
            for rank in range(workers):
                self.assertIn(f"rank {rank}: {count} measurements from {50 - workers + 1} to {100 + workers - 1}, "
                              f"sum {total}", lines)
                self.assertIn(f"rank {rank}: {labels} labels, up to {(workers - 1) ** 2}", lines)

    def test_collectives_groups_adds_up_by_levels_what_one_call_adds_up(self):
        for workers, lines in self.jobs("collectives-groups"):
            total = workers * (workers + 1) // 2
            for rank in range(workers):
                self.assertIn(f"rank {rank}, {rank} of {workers} on its host: the sum is {total} by levels and {total} in one "
                              "call", lines)

    def test_collectives_transpose_turns_rows_into_columns(self):
        for workers, lines in self.jobs("collectives-transpose"):
            for row in range(2 * workers):
                self.assertIn(f"row {row}: " + " ".join(str(100 * column + row) for column in range(2 * workers)), lines)

    def test_collectives_overlap_has_the_sums_by_handles_and_by_names(self):
        for workers, lines in self.jobs("collectives-overlap"):
            total = workers * (workers + 1) // 2
            self.assertEqual(lines, [f"{workers} ranks: the sums are {total}; computed meanwhile: 1.645 and 1.645"])

    def test_collectives_named_gives_in_any_order(self):
        for workers, lines in self.jobs("collectives-named"):
            for rank in range(workers):
                self.assertIn(f"rank {rank}: gradient {workers} {2 * workers} {3 * workers}, bias {workers}, losses 0", lines)

    def test_kmeans_without_a_cluster_is_refused(self):
        for clusters in ("0", "three"):
            done = alone(BIN / "rabit-kmeans", "100", clusters)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"found clusters = {clusters}, expected a number of at least 1", done.stderr)

    def test_kmeans_finds_the_same_centres_with_any_number_of_workers(self):
        expected = self.lines(alone(BIN / "rabit-kmeans"))
        self.assertEqual(len(expected), 3)
        for crowd, line in enumerate(expected):
            x, y = map(float, line.split()[1:])
            self.assertAlmostEqual(x, 100 * crowd, delta=3)
            self.assertAlmostEqual(y, 0, delta=3)
        for _, lines in self.jobs("rabit-kmeans"):
            self.assertEqual(lines, expected)


if __name__ == "__main__":
    unittest.main()
