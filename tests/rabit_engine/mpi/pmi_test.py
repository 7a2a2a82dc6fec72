"""Ranks that find each other through hydra's PMI, without an MPI in the process."""

import sys
import unittest

from mpi_case import MPICH, WORKER, Ranks, needs_hydra


@needs_hydra
class Hydra(Ranks):
    def test_records_of_all_lengths_go_around(self):
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                run = self.run_ranks(MPICH, ranks, "bootstrap", "slurm")
                self.expect_well(run, ranks)
                self.assertIn(f"rank {ranks - 1} prints", run.stdout)

    def test_the_native_engine_finds_its_peers(self):
        self.expect_well(self.run_ranks(MPICH, 3, "join", WARREN_BOOTSTRAP="slurm"), 3)

    def test_no_mpi_is_loaded(self):
        run = self.run_ranks(MPICH, 2, "bootstrap", "slurm", WARREN_MPI_LIBRARY="/nowhere", LD_DEBUG="libs")
        self.expect_well(run, 2)
        self.assertIn("libstdc++", run.stderr)
        self.assertNotIn("libmpi", run.stderr)

    def test_a_descriptor_that_a_program_in_between_has_closed_is_an_error_that_names_it(self):
        starts = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"  # with close_fds=True
        run = self.run_ranks(MPICH, 2, "-c", starts, str(WORKER), "bootstrap", "slurm", program=sys.executable)
        self.assertEqual(self.well(run), [], run.stdout)
        self.assertRegex(run.stderr, r"the launcher has started 2 processes, and its descriptor PMI_FD=\d+ is not open in this one")

    def test_a_rank_that_leaves_early_takes_the_others_with_it(self):
        # The launcher treats the end of a process that has not finalized PMI as a failure.
        run = self.run_ranks(MPICH, 3, "leave", "1")
        self.assertEqual(self.well(run), [])

    def test_a_second_life_after_the_goodbye_is_refused_with_the_reason(self):
        run = self.run_ranks(MPICH, 2, "again")
        self.expect_well(run, 2)


if __name__ == "__main__":
    unittest.main()
