"""Ranks under a real srun: plain, with PMI, and with both MPIs."""

import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import slurm_cluster
from mpi_case import LIMIT_S, WORKER, Ranks, environment, needs, needs_mpich, needs_openmpi
from warren_testing import BIN, SOURCE, without_sanitizers

PYTHON = "/usr/bin/python3"

why_not = slurm_cluster.why_not()


@needs(f"Slurm ({why_not})", why_not is None, "slurm-wlm munge (and be root)")
class Srun(Ranks):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.mkdtemp(prefix="warren-slurm-")
        cls.addClassCleanup(shutil.rmtree, directory, ignore_errors=True)
        # Ranks find each other by node name.
        cls.cluster = slurm_cluster.SlurmCluster(directory, nodes=[socket.gethostname().split(".")[0]], cpus=8)
        cls.addClassCleanup(cls.cluster.close)

    def srun(self, ranks, *arguments, mpi="none", **more):
        return self.run_ranks(["srun", f"--mpi={mpi}"], ranks, *arguments, **self.cluster.environment(), **more)

    def test_ranks_of_a_plain_srun_meet_at_rank_zero(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                run = self.srun(ranks, "bootstrap", "slurm")
                self.expect_well(run, ranks)
                self.assertIn(f"rank {ranks - 1} prints", run.stdout)

    def test_the_native_engine_finds_its_peers(self):
        for mpi in ("none", "pmi2"):
            with self.subTest(mpi=mpi):
                self.expect_well(self.srun(3, "join", mpi=mpi, WARREN_BOOTSTRAP="slurm"), 3)

    def test_two_jobs_at_once_on_one_host_do_not_mix(self):
        command = ["srun", "--mpi=none", "-n", "3", str(WORKER), "bootstrap", "slurm"]
        jobs = [
            subprocess.Popen(
                command,
                env=environment(**self.cluster.environment()),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(2)
        ]
        for job in jobs:
            out, _ = job.communicate(timeout=LIMIT_S)
            self.assertEqual(job.returncode, 0, out)
            self.assertEqual(out.count("of 3: well"), 3, out)

    def test_a_rank_that_never_comes_is_named_by_all_others(self):
        # One task of the step runs a different program.
        script = f'[ "$SLURM_PROCID" = 2 ] && exec sleep 30; exec {WORKER} bootstrap slurm'
        run = self.srun(4, "-c", script, program="/bin/sh", WARREN_CONNECT_TIMEOUT="3")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("1 of the other ranks did not connect in time (ranks 2)", run.stderr)
        for rank in (1, 3):
            self.assertRegex(run.stderr, f"rank {rank} of 4 .*rank 0 gave up")

    def test_a_rank_that_leaves_early_is_named_by_the_others(self):
        run = self.srun(3, "leave", "2")
        self.assertEqual(self.well(run), [])
        self.assertRegex(run.stderr, r"rank 0 of 3 .*rank 2 is lost")
        self.assertRegex(run.stderr, r"rank 1 of 3 .*rank 2 is lost")

    def test_a_rank_that_dies_before_the_first_call_is_named_by_all_others_long_before_a_timeout(self):
        # Without a tracker there are no links yet. The death is noticed over connections that are made at the start for this purpose.
        for victim in (0, 1, 3):
            for env in ({"WARREN_SHARED_MEMORY": "off"}, {}):
                with self.subTest(victim=victim, **env):
                    run = self.srun(4, "lose", str(victim), mpi="none", WARREN_BOOTSTRAP="slurm", **env)
                    seen = re.findall(r"rank (\d) lost rank (\d) after ([\d.]+) s", run.stdout)
                    self.assertEqual({(int(rank), int(lost)) for rank, lost, _ in seen},
                                     {(rank, victim) for rank in range(4) if rank != victim}, run.stdout + run.stderr)
                    self.assertLess(max(float(seconds) for _, _, seconds in seen), 10)

    def test_outside_of_srun_the_error_says_what_to_do(self):
        run = self.run_alone([WORKER, "bootstrap", "slurm"])
        self.assertEqual(run.returncode, 1)
        self.assertIn("SLURM_JOB_ID is not set", run.stderr)
        self.assertIn("start the program with srun", run.stderr)

    def test_sruns_pmi_is_taken_where_there_is_one(self):
        # Without a port for the meeting, ranks can only use PMI.
        for ranks in (1, 4):
            with self.subTest(ranks=ranks):
                run = self.srun(ranks, "bootstrap", "slurm", mpi="pmi2", WARREN_BOOTSTRAP_PORT="0")
                self.expect_well(run, ranks)

    def test_ranks_meet_at_rank_zero_where_a_program_in_between_has_closed_the_descriptor_of_sruns_pmi(self):
        starts = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"  # with close_fds=True
        self.expect_well(self.srun(2, "-c", starts, str(WORKER), "bootstrap", "slurm", mpi="pmi2", program=PYTHON), 2)

    @needs_mpich
    def test_mpich_runs_under_sruns_pmi(self):
        self.expect_well(self.srun(2, "print", "hello\n", mpi="pmi2"), 2)

    @needs_openmpi
    def test_open_mpi_runs_under_sruns_pmix(self):
        known = self.run_alone(["srun", "--mpi=list"], **self.cluster.environment())
        if "pmix" not in known.stdout + known.stderr:
            self.skipTest("SKIPPED: this Slurm has no PMIx; apt-get install slurm-wlm-basic-plugins")
        self.expect_well(self.srun(2, "print", "hello\n", mpi="pmix"), 2)

    def run_python(self, launcher, code, **more):
        return self.run_alone([*launcher, PYTHON, "-W", "ignore", "-c", code], **self.cluster.environment(),
                              WARREN_NATIVE=str(BIN.parent), PYTHONPATH=str(SOURCE / "python/src"), OMP_NUM_THREADS="1", **more)

    @without_sanitizers
    def test_programs_of_rabit_and_xgboost_join_their_step(self):
        rabit = "from warren import rabit\nwith rabit.context([]):\n    print('joined', rabit.get_rank(), rabit.get_world_size())\n"
        xgboost = ("import warren.xgboost as wx\nwith wx.communicator():\n    print('joined', wx.get_rank(), wx.get_world_size())\n")
        with_xgboost = subprocess.run([PYTHON, "-c", "import xgboost"], check=False, stderr=subprocess.DEVNULL).returncode == 0
        for code in (rabit, xgboost) if with_xgboost else (rabit,):
            for mpi in ("none", "pmi2"):
                with self.subTest(code=code, mpi=mpi):
                    run = self.run_python(["srun", f"--mpi={mpi}", "-n", "3"], code)
                    self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                    self.assertEqual(sorted(re.findall(r"joined (\d) (\d)", run.stdout)), [("0", "3"), ("1", "3"), ("2", "3")],
                                     run.stdout + run.stderr)
        run = self.run_python(["srun", "--mpi=none", "-n", "3"], rabit, WARREN_BOOTSTRAP="none")
        self.assertEqual(re.findall(r"joined (\d) (\d)", run.stdout), [("0", "1")] * 3, run.stdout + run.stderr)

    @without_sanitizers
    def test_a_program_in_an_allocation_that_srun_did_not_start_is_alone(self):
        code = ("import os\nfrom warren import rabit\nimport warren.data\nwith rabit.context([]):\n"
                "    print('joined', rabit.get_rank(), rabit.get_world_size(), os.environ['SLURM_NTASKS'])\n"
                "print(warren.data.current_peers().world)\n")
        run = self.run_python(["salloc", "-n", "3"], code)
        self.assertEqual(run.stdout, "joined 0 1 3\n1\n", run.stdout + run.stderr)

    @without_sanitizers
    def test_pytorch_runs_under_a_plain_srun_and_its_pmi(self):
        if subprocess.run([PYTHON, "-c", "import numpy, torch"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest(f"SKIPPED: {PYTHON} has no PyTorch; apt-get install python3-torch")
        worker = SOURCE / "tests/python/torch_worker.py"
        for mpi in ("none", "pmi2"):
            with self.subTest(mpi=mpi):
                run = self.srun(3, str(worker), "every_collective", mpi=mpi, program=PYTHON, WARREN_NATIVE=str(BIN.parent),
                                PYTHONPATH=str(SOURCE / "python/src"), OMP_NUM_THREADS="1")  # fmt: skip
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                self.assertEqual(run.stdout.count("well among 3"), 3, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
