"""Processes started by a launcher other than dmlc-submit form one job, or fail with an error that names what was detected; they never form
several separate jobs.

Uses Debian's XGBoost and PyTorch, or those of the Python that WARREN_LAUNCHERS_PYTHON names."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import forking
from warren._launch import launched as _launched
from warren_testing import BIN, SOURCE, at_night, free_ports

PYTHON = os.environ.get("WARREN_LAUNCHERS_PYTHON", "/usr/bin/python3")
LIMIT_S = 120
FOREIGN = re.compile(r"(OMPI_|PMI_|PMIX_|SLURM_|HYDRA_|DMLC_|RABIT_|WARREN_BOOTSTRAP|RANK$|WORLD_SIZE$|LOCAL_|MASTER_)")
OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "3"]
MPICH = ["mpirun.mpich", "-n", "3"]
#: The variables of one of two processes of mpirun, srun and torchrun.
ONE_OF_TWO = ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
              {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
              {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"})

RABIT = """
import numpy
from warren import rabit
with rabit.context([]):
    print(f"joined {rabit.get_rank()} {rabit.get_world_size()} {rabit.allreduce(numpy.ones(1), rabit.SUM)[0]}\\n", end="")
"""
COLLECTIVES = """
import numpy
from warren import collectives
with collectives.context([]) as world:
    print(f"joined {world.rank} {world.size} {world.allreduce(numpy.ones(1))[0]}\\n", end="")
"""
XGBOOST = """
import warnings
warnings.simplefilter("ignore")
import numpy, xgboost, warren.xgboost
with warren.xgboost.communicator():
    rank, size = warren.xgboost.get_rank(), warren.xgboost.get_world_size()
    matrix = warren.xgboost.load_dmatrix("rows.svm", progress=False)
    model = xgboost.train({"base_score": 0.5, "nthread": 1}, matrix, 2)
    count = getattr(xgboost, "collective", None) or xgboost.rabit
    rows = float(count.allreduce(numpy.array([float(matrix.num_row())]), count.Op.SUM)[0])
    print(f"joined {rank} {size} {rows}\\n", end="")
"""
LOAD = """
import warren.data
print(f"alone with {len(warren.data.load('rows.svm', format='libsvm', progress=False))} rows")
"""
READ = """
import warren.data
assert len(warren.data.read("rows.svm", 1, 3).labels) == 30  # says itself which rows
print(f"alone with {len(warren.data.read('rows.svm').labels)} rows")
"""
XGBOOST_ALONE = """
import warnings
warnings.simplefilter("ignore")
import warren.xgboost, xgboost
for function in (lambda: warren.xgboost.broadcast(1), lambda: warren.xgboost.train_with_checkpoints({}, None, 3, "c.json")):
    try:
        function()
    except RuntimeError as error:
        print("refused", error)
"""
READ_IN_A_JOB = """
import warren.data
from warren import rabit
with rabit.context([]):
    print(f"joined {rabit.get_rank()} {rabit.get_world_size()} {float(len(warren.data.read('rows.svm').labels))}\\n", end="")
try:
    warren.data.read("rows.svm")
except RuntimeError as error:
    print(f"{error}\\n", end="")
try:
    rabit.init([])
except RuntimeError as error:
    print(f"{error}\\n", end="")
"""
WITHOUT_A_TRACKER = """
import os, time
from warren import rabit
try:
    rabit.init([])
except RuntimeError as error:
    print(error, flush=True)
open(os.environ["RANK"], "w").close()
while not os.path.exists("1"):  # rank 0 serves PyTorch's store
    time.sleep(0.01)
"""


def has(*modules):
    code = f"import importlib.util as found, sys; sys.exit(not all(map(found.find_spec, {modules})))"
    return subprocess.run([PYTHON, "-c", code], check=False).returncode == 0


needs_openmpi = unittest.skipUnless(shutil.which("mpirun.openmpi"), "SKIPPED: no mpirun.openmpi; apt-get install openmpi-bin")
needs_mpich = unittest.skipUnless(shutil.which("mpirun.mpich"), "SKIPPED: no mpirun.mpich; apt-get install mpich")
needs_xgboost = unittest.skipUnless(has("xgboost"), f"SKIPPED: {PYTHON} has no XGBoost; apt-get install python3-xgboost")
needs_torch = unittest.skipUnless(has("torch"), f"SKIPPED: {PYTHON} has no PyTorch; apt-get install python3-torch")


class Launchers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="warren-launchers-")))
        (self.folder / "rows.svm").write_text("".join(f"{i % 2} 0:{i} 1:{i % 7}\n" for i in range(90)))

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
        path = f"{SOURCE}/tests/interop/without_sklearn:{SOURCE}/python/src"  # XGBoost without sklearn is imported in a quarter of the time
        return {**clean, "WARREN_NATIVE": str(BIN.parent), "OMP_NUM_THREADS": "1", "PYTHONPATH": path,
                "WARREN_CONNECT_TIMEOUT": "60", "OMPI_MCA_mpi_yield_when_idle": "1", **more}

    def run_all(self, launcher, code, **more):
        """Runs `code` under the launcher, or in one process if `launcher` is empty; returns exit code and output."""
        done = subprocess.run([*launcher, PYTHON if launcher else forking.python(PYTHON, "numpy"), "-c", code], env=self.environment(**more), cwd=self.folder, timeout=LIMIT_S,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def run_as_torchrun(self, code, size=2, packages=("numpy", "torch.distributed"), **more):
        """Runs `size` processes with torchrun's environment but without torchrun, whose agent would serve PyTorch's store; returns
        each process's output and exit code."""
        port, = free_ports(1)
        place = {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **more}
        python = forking.python(PYTHON, *packages) if packages else PYTHON
        started = [subprocess.Popen([python, "-c", code], env=self.environment(RANK=str(rank), **place), cwd=self.folder, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(size)]
        try:
            return [(output, one.returncode) for one in started for output in [one.communicate(timeout=LIMIT_S)[0]]]
        finally:
            for one in started:
                one.kill()
                one.wait()

    def expect_one_job(self, output, sum_of_all=None, size=3):
        joined = sorted(re.findall(r"joined (\d) (\d) (\S+)", output))
        self.assertEqual(joined, [(str(rank), str(size), sum_of_all or f"{size}.0") for rank in range(size)], output)

    def mpirun_is_one_job(self, launcher, code, *sum_of_all):
        status, output = self.run_all(launcher, code)
        self.assertEqual(status, 0, output)
        self.expect_one_job(output, *sum_of_all)

    @needs_openmpi
    def test_processes_of_openmpi_are_one_job_of_rabit_and_of_the_collectives(self):
        for code in (RABIT, COLLECTIVES):
            self.mpirun_is_one_job(OPENMPI, code)

    @needs_mpich
    def test_processes_of_mpich_are_one_job_of_rabit_and_of_the_collectives(self):
        for code in (RABIT, COLLECTIVES):
            self.mpirun_is_one_job(MPICH, code)

    @needs_xgboost
    @needs_openmpi
    def test_processes_of_openmpi_are_one_job_of_xgboost_with_their_own_ranks(self):
        self.mpirun_is_one_job(OPENMPI, XGBOOST, "90.0")

    @needs_xgboost
    @needs_mpich
    def test_processes_of_mpich_are_one_job_of_xgboost(self):
        self.mpirun_is_one_job(MPICH, XGBOOST, "90.0")

    @needs_openmpi
    def test_an_exception_of_one_rank_ends_all_and_leaves_no_tracker(self):
        code = XGBOOST.replace("    model =", "    if rank == 0:\n        raise SystemExit(7)\n    model =") if has("xgboost") else RABIT.replace(
            "    print", "    if rabit.get_rank() == 0:\n        raise SystemExit(7)\n    print")
        status, output = self.run_all(OPENMPI, code)
        self.assertNotEqual(status, 0, output)
        self.assertNotIn("joined", output)

    @needs_torch
    def test_processes_of_torchrun_are_one_job_of_rabit_and_of_the_collectives(self):
        for code in (RABIT, COLLECTIVES):
            found = self.run_as_torchrun(code)
            self.assertEqual([status for _, status in found], [0, 0], found)
            self.expect_one_job("".join(output for output, _ in found), size=2)

    def torchrun_is_one_job_of_xgboost(self, code):
        found = self.run_as_torchrun(code, packages=())  # nothing is imported in advance, since the order of imports can matter
        self.assertEqual([status for _, status in found], [0, 0], found)
        self.expect_one_job("".join(output for output, _ in found), "90.0", 2)

    @needs_xgboost
    @needs_torch
    def test_processes_of_torchrun_are_one_job_of_xgboost_and_of_torch_at_once(self):
        self.torchrun_is_one_job_of_xgboost(XGBOOST.replace("import numpy, xgboost", "import torch.distributed\n"
                                            "torch.distributed.init_process_group('gloo')\nimport numpy, xgboost"))

    @at_night
    @needs_xgboost
    @needs_torch
    def test_processes_of_torchrun_are_one_job_of_xgboost_and_then_of_torch(self):
        # The barrier keeps rank 0, which serves PyTorch's store, alive until all ranks have left init_process_group.
        self.torchrun_is_one_job_of_xgboost(XGBOOST + "import torch.distributed\ntorch.distributed.init_process_group('gloo')\n"
                                            "torch.distributed.barrier()\n")

    def test_torchruns_processes_without_torch_are_refused(self):
        found = self.run_as_torchrun("import sys; sys.modules['torch'] = None\n" + RABIT, packages=("numpy", ))
        for rank, (output, status) in enumerate(found):
            self.assertEqual(status, 1, output)
            self.assertIn(f"this is rank {rank} of 2 processes that torchrun started (RANK={rank}, WORLD_SIZE=2, MASTER_ADDR=127.0.0.1", output)
            self.assertIn("dmlc-submit --num-workers 2", output)
            self.assertIn("WARREN_BOOTSTRAP=none", output)

    @needs_torch
    def test_all_ranks_of_torchrun_learn_that_rank_0_cannot_run_a_tracker(self):
        native = self.folder / "native"  # has no bin/rabit-tracker
        native.mkdir()
        (native / "lib").symlink_to(BIN.parent / "lib")
        for rank, (output, status) in enumerate(self.run_as_torchrun(WITHOUT_A_TRACKER, WARREN_NATIVE=str(native))):
            self.assertEqual(status, 0, output)
            self.assertIn(f"this is rank {rank} of 2 processes that torchrun started", output)
            self.assertIn("rank 0 cannot run their tracker: ", output)
            self.assertIn("bin/rabit-tracker does not exist", output)

    def test_load_outside_of_a_job_is_refused_and_says_what_was_seen(self):
        for seen in (*ONE_OF_TWO, {"PMI_RANK": "1", "PMI_SIZE": "2"}):
            status, output = self.run_all([], LOAD, **seen)
            self.assertEqual(status, 1, output)
            self.assertIn("this is rank 1 of 2 processes that", output)
            self.assertIn("=2", output)
            self.assertIn("with warren.xgboost.communicator()", output)
            status, output = self.run_all([], READ, **seen)
            self.assertEqual(status, 1, output)
            self.assertIn("this is rank 1 of 2 processes that", output)
            status, output = self.run_all([], LOAD, **seen, WARREN_BOOTSTRAP="none")
            self.assertEqual((status, output), (0, "alone with 90 rows\n"))

    @needs_xgboost
    def test_trainings_outside_of_a_job_are_refused(self):
        status, output = self.run_all([], XGBOOST_ALONE, **ONE_OF_TWO[0])
        self.assertEqual((status, output.count("refused this is rank 1 of 2 processes that mpirun started")), (0, 2), output)

    def test_text_is_shared_out_in_a_job_which_nobody_joins_again(self):
        status, output = self.run_all([str(BIN / "dmlc-submit"), "--num-workers", "3", "--quiet"], READ_IN_A_JOB)
        self.assertEqual(status, 0, output)
        self.assertEqual(sum(float(rows) for rows in re.findall(r"joined \d 3 (\S+)", output)), 90.0, output)
        self.assertEqual(output.count("this process has left its job: do this inside the `with` that joins it"), 3, output)
        self.assertEqual(output.count("this process has left its job and cannot join it again"), 3, output)

    def test_separate_programs_are_alone_where_the_environment_says_so(self):
        for seen in ONE_OF_TWO:
            for code in (RABIT, COLLECTIVES):
                status, output = self.run_all([], code, **seen, WARREN_BOOTSTRAP="none")
                self.assertEqual((status, output), (0, "joined 0 1 1.0\n"))

    def test_a_process_that_is_alone_is_not_taken_for_one_of_several(self):
        for seen in ({}, {"WORLD_SIZE": "4"}, {"RANK": "0", "WORLD_SIZE": "4"},
                     {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "n1", "MASTER_PORT": "1"},
                     {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
                     {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967290",
                      "SLURM_STEP_NUM_TASKS": "1"},
                     {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}):
            status, output = self.run_all([], RABIT + LOAD, **seen)
            self.assertEqual((status, output), (0, "joined 0 1 1.0\nalone with 90 rows\n"), seen)

    def test_dmlc_submits_separate_programs_are_separate(self):
        status, output = self.run_all([str(BIN / "dmlc-submit"), "--cluster", "local", "--num-workers", "2", "--no-tracker", "--quiet"], RABIT)
        self.assertEqual(status, 0, output)
        self.assertEqual(output.count("joined 0 1 1.0"), 2, output)

    def test_which_launcher_is_the_nearest(self):
        def found(**environment):
            with mock.patch.dict(os.environ, environment, clear=True):
                one = _launched.launched()
            return one and (one.launcher, one.rank, one.size)

        torch, step = {"RANK": "5", "WORLD_SIZE": "8", "MASTER_ADDR": "n1", "MASTER_PORT": "1"}, ONE_OF_TWO[1]
        self.assertEqual(found(**torch, **step), ("torchrun", 5, 8))
        self.assertEqual(found(**{**torch, "RANK": "1", "WORLD_SIZE": "2"}, **step), ("srun", 1, 2))
        self.assertEqual(found(**step, PMI_RANK="1", PMI_SIZE="2"), ("srun", 1, 2))
        self.assertEqual(found(**step, OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="4"), ("mpirun", 3, 4))
        self.assertIsNone(found(**torch, DMLC_TRACKER_URI="n1"))
        self.assertIsNone(found(**step, DMLC_PS_ROOT_URI="n1"))
        self.assertIsNone(found(**step, WARREN_BOOTSTRAP="none"))
        self.assertIsNone(found(**step, RABIT_BOOTSTRAP="none"))
        self.assertEqual(found(**step, WARREN_BOOTSTRAP="slurm", RABIT_BOOTSTRAP="none"), ("srun", 1, 2))
        self.assertEqual(found(**torch, DMLC_TRACKER_URI="NULL"), ("torchrun", 5, 8))


if __name__ == "__main__":
    unittest.main()
