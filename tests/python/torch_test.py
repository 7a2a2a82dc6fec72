"""The backend "warren" of torch.distributed, under Debian's Python or the one that WARREN_TORCH_PYTHON names."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import forking
from torch_python import PYTHON, VERSION, WHY_NOT
from warren_testing import BIN, SOURCE, free_ports

WORKER = pathlib.Path(__file__).with_name("torch_worker.py")
LIMIT_S = 120
SOON_S = 1.0  # limit for survivors to notice a death


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Torch(unittest.TestCase):
    @classmethod
    def environment(cls, **more):
        return {**os.environ, "WARREN_NATIVE": str(BIN.parent), "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join([str(SOURCE / "python/src"), str(SOURCE / "tests")]), **more}

    @property
    def warm(self):
        return [forking.python(PYTHON, "torch", "torch.distributed", "torch.nn.parallel")]

    def run_ranks(self, function, size, python=None, **more):
        """Returns each rank's output and exit code. `python`: a command to use instead of a Python that has already imported PyTorch."""
        port, another = free_ports(2)
        place = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "ANOTHER_PORT": str(another),
                 **more}
        ranks = [subprocess.Popen([*(python or self.warm), WORKER, function], env=self.environment(RANK=str(rank), **place), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(size)]
        try:
            return [(rank.communicate(timeout=LIMIT_S)[0], rank.returncode) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()

    def expect_well(self, function, sizes, python=None, **more):
        for size in sizes:
            with self.subTest(function, size=size, **more):
                for said, code in self.run_ranks(function, size, python, **more):
                    self.assertEqual(code, 0, said)
                    self.assertTrue(said.endswith(f"well among {size}\n"), said)

    def test_every_collective(self):
        self.expect_well("every_collective", (1, 2, 3))
        self.expect_well("every_collective", (3,), WARREN_SHARED_MEMORY="off")

    def test_complex_numbers_are_reduced_and_moved(self):
        self.expect_well("complex_numbers", (1, 3))
        self.expect_well("complex_numbers", (2,), WARREN_SHARED_MEMORY="off")

    def test_sparse_tensors_are_added_up_and_sparse_gradients_averaged(self):
        self.expect_well("sparse_sums", (1, 3))

    def test_without_waiting(self):
        self.expect_well("without_waiting", (1, 3))

    def test_callbacks_of_futures_begin_operations_and_wait_for_them(self):
        self.expect_well("callbacks_that_wait", (1, 3))
        self.expect_well("callbacks_that_wait", (2,), WARREN_SHARED_MEMORY="off")

    def test_a_callback_that_begins_operations_while_others_are_to_come_is_warned_of(self):
        self.expect_well("callbacks_in_an_order_of_chance", (2,))

    def test_a_program_that_ends_while_a_callback_runs_ends_well(self):
        self.expect_well("ends_in_a_callback", (2,), [PYTHON])

    def test_what_a_callback_waits_for_in_vain_ends_after_the_timeout(self):
        for said, code in self.run_ranks("late_in_a_callback", 3)[:2]:
            self.assertEqual(code, 0, said)
            self.assertRegex(said, "rank [01]: (.|\n)*rank 2")

    def test_messages(self):
        self.expect_well("messages", (2, 4))
        self.expect_well("messages", (3,), WARREN_SHARED_MEMORY="off")

    def test_groups(self):
        self.expect_well("groups", (2, 4))
        self.expect_well("groups", (3,), WARREN_SHARED_MEMORY="off")

    def test_data_parallel_training_gives_the_model_of_one_process(self):
        self.expect_well("data_parallel", (2, 3))

    @unittest.skipIf(VERSION.startswith("1."), "SKIPPED: PyTorch 1.13 has no torch.compile")
    def test_compiled_models_train_as_others_do(self):
        self.expect_well("compiled", (2,))

    @unittest.skipIf(VERSION.startswith("1."), "SKIPPED: PyTorch 1.13 has no torch.compile")
    def test_a_compiled_step_with_horovods_optimizer_is_not_traced_into_the_engine(self):
        self.expect_well_of(2, BIN / "dmlc-submit", "--num-workers", "2", function="compiled_horovod")

    @unittest.skipIf(VERSION.startswith(("1.", "2.4")), "SKIPPED: FSDP2 of PyTorch 2.4 is for GPUs, and 1.13 has none")
    def test_fully_sharded_training_gives_the_model_of_one_process(self):
        self.expect_well("sharded", (2, 3))

    @unittest.skipIf(VERSION.startswith("1."), "SKIPPED: PyTorch 1.13 has no DTensor")
    def test_distributed_tensors_are_computed_and_moved(self):
        self.expect_well("distributed_tensors", (2, 3))

    def test_monitored_barrier_knows_who_did_not_come(self):
        self.expect_well("monitored", (3,))

    def test_what_makes_no_sense_is_refused_and_ends_nothing(self):
        self.expect_well("refused", (2,))

    def test_a_rank_that_dies_is_named_to_the_others_within_a_second(self):
        for more in ({}, {"WARREN_SHARED_MEMORY": "off"}):
            with self.subTest(**more):
                found = self.run_ranks("killed", 3, **more)
                self.assertEqual([code for _, code in found], [0, -9, 0], found)
                killed = float(re.search(r"killed at ([\d.]+)", found[1][0])[1])
                for rank in (0, 2):
                    known, text = re.search(r"knows at ([\d.]+): (.*)", found[rank][0]).groups()
                    self.assertIn("rank 1", text)
                    self.assertLess(float(known) - killed, SOON_S)

    def test_a_rank_that_does_not_come_is_named_after_the_timeout(self):
        found = self.run_ranks("late", 3)
        for said, code in found[:2]:
            self.assertEqual(code, 0, said)
            self.assertRegex(said, "rank [01]: .*rank 2")

    def test_ranks_that_take_different_ranks_for_the_root_are_told(self):
        for call in ("broadcast", "scatter"):
            with self.subTest(call=call):
                found = self.run_ranks("different_roots", 3, CALL=call)
                said = "".join(said for said, _ in found)
                self.assertRegex(said, rf"rank \d: .*{call} .*from root \d .* where rank \d calls {call} ")

    @unittest.skipIf(VERSION.startswith("1."), "SKIPPED: the torchrun of PyTorch 1.13 does not work with Python 3.11")
    def test_torchrun_starts_it(self):
        command = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=3", WORKER, "every_collective"]
        done = subprocess.run(command, env=self.environment(), text=True, timeout=LIMIT_S, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("well among 3"), 3, done.stdout)

    def test_horovods_api_joins_by_the_same_variables_and_ends_without_a_word(self):
        self.expect_well("horovods_api", (2,), [PYTHON])

    def expect_well_of(self, ranks, *launcher, function="every_collective", python=None):
        """Runs `function` in ranks whose only information about the job comes from `launcher`. All must succeed."""
        environment = {name: value for name, value in self.environment().items() if not name.startswith("DMLC_")}
        done = subprocess.run([*launcher, *(python or self.warm), WORKER, function], env=environment, text=True, timeout=LIMIT_S,
                              capture_output=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count(f"well among {ranks}"), ranks, done.stdout)

    def test_dmlc_submit_starts_it(self):
        self.expect_well_of(3, BIN / "dmlc-submit", "--num-workers", "3", python=[PYTHON])

    def test_a_program_that_nobody_has_launched_is_one_rank(self):
        self.expect_well_of(1, python=[PYTHON])

    @unittest.skipIf(shutil.which("mpirun.openmpi") is None, "SKIPPED: no mpirun.openmpi; apt-get install openmpi-bin")
    def test_mpirun_starts_it_as_horovods_users_write_it(self):
        with tempfile.NamedTemporaryFile("w") as hosts:
            hosts.write("localhost slots=3\n")
            hosts.flush()
            line = f"--allow-run-as-root -np 3 --hostfile {hosts.name} -bind-to none -map-by slot -mca pml ob1 -mca btl ^openib"
            self.expect_well_of(3, "mpirun.openmpi", *line.split())

    @unittest.skipIf(shutil.which("mpirun.mpich") is None, "SKIPPED: no mpirun.mpich; apt-get install mpich")
    def test_mpirun_of_mpich_starts_it(self):
        # A plain Python: a forked one would not inherit the descriptor that mpirun passes on.
        self.expect_well_of(3, "mpirun.mpich", "-n", "3", python=[PYTHON])


if __name__ == "__main__":
    unittest.main()
