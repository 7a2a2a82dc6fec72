"""Random programs of blocking and asynchronous calls give the same results over MPI as over the engine's own links."""

import os
import re
import unittest

from mpi_case import BIN, MPICH, OPENMPI, Ranks, needs_mpich, needs_openmpi

WORKER = BIN / "programs_worker"
NUM_PROGRAMS = int(os.environ.get("WARREN_RANDOM_PROGRAMS", "4"))
LIMIT_S = 200 + NUM_PROGRAMS


@unittest.skipUnless(WORKER.exists(), "SKIPPED: librabit is not built; apt-get install libdmlc-dev")
class AnyMpi:
    launcher = []

    def digests(self, ranks, **environment):
        run = self.run_ranks(self.launcher, ranks, program=WORKER, limit_s=LIMIT_S, WARREN_RANDOM_PROGRAMS=str(NUM_PROGRAMS),
                             **environment)
        self.expect_well(run, ranks)
        found = re.findall(r"^program (\d+): ([0-9a-f]{16})$", run.stdout, re.MULTILINE)
        self.assertEqual([int(seed) for seed, _ in found], list(range(1, NUM_PROGRAMS + 1)))
        return found

    def test_random_programs_give_the_same_over_mpi_as_over_the_engines_own_links(self):
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                over_mpi = self.digests(ranks, WARREN_ENGINE="mpi")
                for shared_memory in ("auto", "off"):
                    own = self.digests(ranks, WARREN_ENGINE="native", WARREN_BOOTSTRAP="mpi", WARREN_SHARED_MEMORY=shared_memory)
                    self.assertEqual(over_mpi, own)


    def test_a_program_of_rabit_joins_its_launcher_without_any_setting(self):
        own = self.digests(3)
        self.assertEqual(own, self.digests(3, WARREN_ENGINE="mpi"))
        self.assertEqual(own, self.digests(3, RANK="0", WORLD_SIZE="3", MASTER_ADDR="n1", MASTER_PORT="1"))

    def test_programs_that_are_said_to_be_separate_are(self):
        run = self.run_ranks(self.launcher, 2, program=WORKER, limit_s=LIMIT_S, WARREN_RANDOM_PROGRAMS="1", WARREN_BOOTSTRAP="none")
        self.assertEqual(self.well(run), [("0", "1"), ("0", "1")], run.stdout + run.stderr)


@needs_openmpi
class OpenMpi(AnyMpi, Ranks):
    launcher = OPENMPI


@needs_mpich
class Mpich(AnyMpi, Ranks):
    launcher = MPICH


if __name__ == "__main__":
    unittest.main()
