"""The MPI engine and the MPI bootstrap under real Open MPI and MPICH."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from mpi_case import BIN, MPICH, OPENMPI, PLUGINS, WORKER, Ranks, environment, needs_mpich, needs_openmpi
from warren_testing import AT_NIGHT, Tracker

BY_LINKING = BIN / "mpi_by_linking"
NAMED = BIN / "named_worker"
FACE = BIN / "collectives_face_worker"


class AnyMpi:
    """Tests that every MPI must pass."""

    launcher = []
    own_program = None
    plugin = None
    numbers_of_ranks = (1, 2, 3, 4)
    ranks_of_cut_calls = 3

    def run_without_mpi(self, ranks, *arguments, program=WORKER, **more):
        """Runs programs that do not initialize MPI. They linger: MPICH's launcher may lose the output of programs that exit immediately."""
        linger = '"$0" "$@"; code=$?; sleep 0.5; exit $code'
        return self.run_ranks(self.launcher, ranks, "-c", linger, str(program), *arguments, program="/bin/sh", **more)

    def test_collectives_give_the_engines_results(self):
        for ranks in self.numbers_of_ranks:
            with self.subTest(ranks=ranks):
                self.expect_well(self.run_ranks(self.launcher, ranks, "collectives"), ranks)

    def test_collectives_longer_than_one_call_of_mpi_may_carry_are_cut(self):
        # With 1000 bytes per call, every buffer of 3001 elements takes several calls, and the last one is shorter.
        ranks = self.ranks_of_cut_calls
        self.expect_well(self.run_ranks(self.launcher, ranks, "collectives", "1000"), ranks)

    @unittest.skipUnless(NAMED.exists(), "SKIPPED: librabit is not built; apt-get install libdmlc-dev")
    def test_named_operations(self):
        for mode in ("wrong", "join", "leave", "give-up"):
            with self.subTest(mode=mode):
                run = self.run_ranks(self.launcher, 3, mode, program=NAMED, WARREN_ENGINE="mpi")
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    @unittest.skipUnless(FACE.exists(), "SKIPPED: librabit is not built; apt-get install libdmlc-dev")
    def test_a_call_with_a_timeout_is_refused(self):
        run = self.run_ranks(self.launcher, 2, "late", "handle", "-1", program=FACE, WARREN_ENGINE="mpi")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("WarrenAllreduceAsync 'gradients': a timeout of 0.3 s, but this engine has no timeouts", run.stdout + run.stderr)

    def test_the_bootstrap_exchanges_records(self):
        run = self.run_ranks(self.launcher, 3, "bootstrap", "mpi")
        self.expect_well(run, 3)
        for rank in range(3):
            self.assertIn(f"rank {rank} prints", run.stdout)

    def test_the_engine_is_chosen_by_the_environment(self):
        self.expect_well(self.run_ranks(self.launcher, 2, "join", WARREN_ENGINE="mpi"), 2)

    def test_settings_without_effect_are_mentioned_once(self):
        run = self.run_ranks(self.launcher, 2, "join", WARREN_ENGINE="mpi", WARREN_HOST_GROUP="a", WARREN_ALGORITHM="ring")
        self.expect_well(run, 2)
        self.assertEqual(run.stderr.count("these settings have no effect: WARREN_ALGORITHM WARREN_HOST_GROUP"), 1, run.stderr)

    @unittest.skipUnless(BY_LINKING.exists(), "SKIPPED: librabit_mpi is not built; apt-get install libdmlc-dev")
    def test_the_engine_is_chosen_by_linking(self):
        self.expect_well(self.run_ranks(self.launcher, 3, program=BY_LINKING), 3)

    @unittest.skipUnless(BY_LINKING.exists(), "SKIPPED: librabit_mpi is not built; apt-get install libdmlc-dev")
    def test_the_environment_wins_over_linking(self):
        run = self.run_without_mpi(2, program=BY_LINKING, WARREN_ENGINE="native", WARREN_BOOTSTRAP="none")
        self.assertEqual(self.well(run), [("0", "1")] * 2, run.stdout + run.stderr)

    def test_the_native_engine_finds_its_peers_through_mpi(self):
        for shared_memory in ("auto", "off"):
            with self.subTest(shared_memory=shared_memory):
                run = self.run_ranks(
                    self.launcher, 3, "join", WARREN_BOOTSTRAP="mpi", WARREN_SHARED_MEMORY=shared_memory
                )
                self.expect_well(run, 3)

    def test_and_links_with_them_by_tls(self):
        token = {"DMLC_JOB_TOKEN": "5a" * 32, "WARREN_TLS": "1"}
        run = self.run_ranks(self.launcher, 3, "join", WARREN_BOOTSTRAP="mpi", WARREN_SHARED_MEMORY="off", **token)
        if "this build does not include it" in run.stderr:
            self.skipTest("SKIPPED: no TLS")
        self.expect_well(run, 3)
        run = self.run_without_mpi(2, "join", WARREN_ENGINE="mpi", **token)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("WARREN_TLS=1 requires encryption, but with MPI", run.stdout + run.stderr)

    def test_a_program_that_began_mpi_itself_keeps_it(self):
        self.expect_well(self.run_ranks(self.launcher, 2, program=self.own_program), 2)

    def test_the_mpi_in_the_process_wins_over_what_the_environment_says(self):
        # The environment looks as if a launcher of the other MPI had started this process.
        other = {"OMPI_COMM_WORLD_SIZE": "1"} if self.launcher is MPICH else {"PMI_RANK": "0", "PMI_SIZE": "1"}
        run = self.run_alone([self.own_program], **other)
        self.expect_well(run, 1)

    def test_a_program_without_a_launcher_is_alone(self):
        run = self.run_alone([WORKER, "collectives"], WARREN_MPI_LIBRARY=str(self.plugin))
        self.expect_well(run, 1)

    def test_a_program_that_shall_use_mpi_says_so_if_no_launcher_started_it(self):
        for setting in ({"WARREN_ENGINE": "mpi"}, {"WARREN_BOOTSTRAP": "mpi"}):
            (name, value), = setting.items()
            said = f"rabit: {name}={value} is set, but neither mpirun nor srun started this process"
            alone = self.run_alone([WORKER, "join"], WARREN_MPI_LIBRARY=str(self.plugin), **setting)
            self.expect_well(alone, 1)
            self.assertEqual(alone.stderr.count(said), 1, alone.stderr)
            self.assertNotIn("is set, but", self.run_ranks(self.launcher, 1, "join", **setting).stderr)

    def test_a_program_that_is_found_in_path_finds_its_plugin(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([WORKER.name, "collectives"], env=environment(PATH=f"{WORKER.parent}:{os.environ['PATH']}"),
                                 cwd=folder, capture_output=True, text=True, timeout=60)
        self.expect_well(run, 1)

    def test_what_a_reduction_function_throws_arrives_at_the_caller(self):
        self.expect_well(self.run_ranks(self.launcher, 2, "throw"), 2)

    def test_calls_that_break_the_rules_are_refused(self):
        self.expect_well(self.run_ranks(self.launcher, 2, "misuse"), 2)

    def test_text_goes_to_stdout_without_a_tracker(self):
        run = self.run_ranks(self.launcher, 2, "print", "a line for the user\n")
        self.expect_well(run, 2)
        self.assertEqual(run.stdout.count("a line for the user"), 2)

    def test_text_goes_to_the_tracker_when_there_is_one(self):
        with Tracker("--num-workers", 2) as tracker:
            run = self.run_ranks(self.launcher, 2, "print", "a line for the user\n", **tracker.env)
            self.expect_well(run, 2)
            self.assertNotIn("a line for the user", run.stdout)
            tracker.process.terminate()
            out, log = tracker.process.communicate(timeout=60)
            self.assertEqual((out + log).count("a line for the user"), 2, out + log)

    def test_text_for_a_tracker_that_is_gone_is_not_lost(self):
        with socket.socket() as held:  # bound but not listening, so that no process answers there
            held.bind(("127.0.0.1", 0))
            env = {"DMLC_TRACKER_URI": "127.0.0.1", "DMLC_TRACKER_PORT": str(held.getsockname()[1])}
            run = self.run_ranks(self.launcher, 1, "print", "a line for the user\n", **env)
        self.expect_well(run, 1)
        self.assertIn("a line for the user", run.stdout)
        self.assertIn("cannot send the tracker at", run.stderr)

    def test_a_plugin_of_another_mpi_than_the_launchers_is_found_out(self):
        other = PLUGINS / ("librabit_mpi_openmpi.so" if self.launcher is MPICH else "librabit_mpi_mpich.so")
        if not other.exists():
            self.skipTest(f"SKIPPED: needs {other.name}, too")
        run = self.run_ranks(self.launcher, 2, "collectives", WARREN_MPI_LIBRARY=str(other))
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("the launcher started 2 processes, but", run.stderr)

    def test_a_missing_plugin_is_explained(self):
        # A copy of the program has no plugins next to it.
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "mpi_worker"
            shutil.copy(WORKER, copy)
            run = self.run_ranks(self.launcher, 1, "collectives", program=copy)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("none could be loaded", run.stderr)
        self.assertIn("dmlc-submit --cluster mpi", run.stderr)
        self.assertIn(self.plugin.name, run.stderr)

    def test_the_death_of_a_rank_ends_the_job(self):
        run = self.run_ranks(self.launcher, 3, "die", "1")
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(self.well(run), [])


@needs_openmpi
class OpenMpi(AnyMpi, Ranks):
    launcher = OPENMPI
    own_program = BIN / "own_mpi_openmpi"
    plugin = PLUGINS / "librabit_mpi_openmpi.so"


@needs_mpich
class Mpich(AnyMpi, Ranks):
    launcher = MPICH
    own_program = BIN / "own_mpi_mpich"
    plugin = PLUGINS / "librabit_mpi_mpich.so"
    # MPICH spins without yielding: with more ranks than cores, a run takes a minute.
    if not AT_NIGHT:
        numbers_of_ranks = (1, 2)
        ranks_of_cut_calls = 2


if __name__ == "__main__":
    unittest.main()
