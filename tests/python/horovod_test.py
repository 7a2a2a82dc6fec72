"""warren.horovod.torch, Horovod's API for PyTorch, in jobs under Debian's Python or the one that WARREN_TORCH_PYTHON names."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import textwrap
import unittest

import forking
from collectives_jobs import submit
from torch_python import PYTHON, WHY_NOT
from warren_testing import BIN, SOURCE

WORKER = pathlib.Path(__file__).with_name("horovod_worker.py")
LIMIT_S = 120
SOON_S = 5.0  # limit for survivors to notice a death on a busy machine; on an idle one, 1 s is enough


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Horovod(unittest.TestCase):
    ENVIRONMENT = {**os.environ, "WARREN_NATIVE": str(BIN.parent), "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": os.pathsep.join([str(SOURCE / "python/src"), str(SOURCE / "tests")])}

    @property
    def warm(self):
        return [forking.python(PYTHON, "torch")]

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def submit(self, size, *words, python=None, **more):
        """Runs a job whose workers run Python with these arguments; returns its exit code and output. The default Python has already
        imported PyTorch."""
        with tempfile.TemporaryDirectory() as meeting:
            return submit(size, *(python or self.warm), *words, env={**self.ENVIRONMENT, "MEETING": meeting, **more}, limit_s=LIMIT_S,
                          cwd=self.folder)

    def expect_well(self, size, *functions, **more):
        code, said = self.submit(size, WORKER, *functions, **more)
        self.assertEqual(code, 0, said)
        self.assertEqual(len(re.findall(r"\] well$", said, re.MULTILINE)), size, said)

    def script(self, code):
        path = self.folder / "script.py"
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        return path

    def test_every_operation_and_gradients_through_them(self):
        self.expect_well(3, "every_operation", "any_order", "gradients")

    def test_over_tcp(self):
        self.expect_well(3, "every_operation", "any_order", "goes_on", "gradients", "optimizer", "join", "ranks_that_differ",
                         "again", WARREN_SHARED_MEMORY="off")

    def test_a_process_alone_is_one_rank(self):
        self.expect_well(1, "every_operation", "any_order", "goes_on", "gradients", "optimizer", "gradients_of_some", "state",
                         "join", "batch_norm", "again")
        done = subprocess.run([PYTHON, WORKER, "every_operation"], text=True, timeout=LIMIT_S, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**self.ENVIRONMENT, "MEETING": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(done.stdout.endswith("well\n"), done.stdout)

    def test_what_was_begun_goes_on_while_a_rank_does_something_else(self):
        self.expect_well(2, "goes_on")

    def test_training_gives_the_model_of_one_process(self):
        self.expect_well(3, "optimizer", "groups", "closures", "gradients_of_some", "later_parameters", "state", "batch_norm")

    def test_adasum_is_that_of_its_definition(self):
        for size in (1, 2, 4):
            self.expect_well(size, *(["adasum_optimizer"] if size == 1 else ["adasum", "adasum_optimizer"]))
        self.expect_well(2, "adasum", "later_parameters", WARREN_SHARED_MEMORY="off")
        self.expect_well(3, "adasum_of_three")

    def test_horovods_ranks_are_in_the_environment_before_and_after_init(self):
        self.expect_well(3, "environment")
        # If the launcher numbers ranks in another order than the engine, HOROVOD_RANK decides.
        words = shlex.join([*self.warm, str(WORKER), "environment", "every_operation", "join"])
        shell = f"export HOROVOD_RANK=$((2 - RANK)) HOROVOD_LOCAL_RANK=$((2 - RANK)); exec {words}"
        code, said = self.submit(3, "-c", f"import os; os.execvp('sh', ['sh', '-c', {shell!r}])")
        self.assertEqual((code, said.count("] well")), (0, 3), said)

    def test_process_sets_and_ranks_with_fewer_batches(self):
        self.expect_well(4, "process_sets", "join", "join")

    def test_what_is_wrong_is_said_and_ends_nothing(self):
        self.expect_well(2, "ranks_that_differ", "refused", "optimizer_errors")

    def test_it_can_be_ended_and_begun_again(self):
        self.expect_well(2, "ended_after_an_error", "again", "every_operation")

    def test_a_rank_that_dies_is_named_to_the_others(self):
        for more in ({}, {"WARREN_SHARED_MEMORY": "off"}):
            with self.subTest(**more):
                # Without the sleep, the launcher would end the other ranks before they have printed.
                shell = shlex.join([*self.warm, str(WORKER), "killed"]) + " || sleep 2"
                code, said = self.submit(3, "-c", f"import os; os.execvp('sh', ['sh', '-c', {shell!r}])", **more)
                killed = float(re.search(r"killed at ([\d.]+)", said)[1])
                known = re.findall(r"rank (\d) knows at ([\d.]+): (.*)", said)
                self.assertEqual(sorted(rank for rank, _, _ in known), ["0", "2"], said)
                for _, when, text in known:
                    self.assertIn("rank 1", text)
                    self.assertLess(float(when) - killed, SOON_S)

    def test_horovods_variables_say_how_it_works(self):
        self.expect_well(2, "any_order", HOROVOD_TIMELINE=str(self.folder / "trace.json"), HOROVOD_FUSION_THRESHOLD="0",
                         HOROVOD_CYCLE_TIME="0.5", HOROVOD_AUTOTUNE="0", HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="60")
        for rank in range(2):
            events = json.loads((self.folder / f"trace.{rank}.json").read_text(encoding="utf-8"))
            self.assertIn("allreduce.7", {event["args"]["name"] for event in events if event["name"] == "thread_name"})
            self.assertNotIn("pack", {event["name"] for event in events})
        code, said = self.submit(1, WORKER, HOROVOD_CYCLE_TIME="soon")
        self.assertNotEqual(code, 0)
        self.assertIn("HOROVOD_CYCLE_TIME in the environment: 'soon' is not a number", said)
        late = self.script("""
            import time, torch
            import warren.horovod.torch as hvd
            hvd.init()
            if hvd.rank() == 1:
                time.sleep(3)
            try:
                hvd.allreduce(torch.ones(1), name="late")
            except hvd.HorovodInternalError as error:
                print(error)
        """)
        code, said = self.submit(2, late, HOROVOD_STALL_CHECK_TIME_SECONDS="0.5", HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="1.5")
        self.assertRegex(said, r"\[0\] .*'allreduce.late' .* has been ready on rank 0 but not on rank 1")

    def test_run_calls_a_function_in_new_processes(self):
        script = self.script("""
            import horovod
            import horovod.torch as hvd
            import torch

            def train(factor, more=0):
                hvd.init()
                total = hvd.allreduce(torch.ones(1) * factor, op=hvd.Sum).item()
                return hvd.rank(), hvd.size(), total + more

            print(horovod.run(train, args=(3,), kwargs={"more": 1}, np=2, verbose=2))
            print(horovod.run(train, args=(3,), np=1))
            from warren.horovod.runner import _line
            print([_line(host) for host in ("node1:2", " node2", "me@node3:10")])
        """)
        done = subprocess.run([PYTHON, "-m", "warren.compat", script], env=self.ENVIRONMENT, text=True, timeout=LIMIT_S, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("[(0, 2, 7.0), (1, 2, 7.0)]", done.stdout)
        self.assertIn("[(0, 1, 3.0)]", done.stdout)
        self.assertIn(repr(["node1 slots=2\n", "node2\n", "me@node3 slots=10\n"]), done.stdout)
        self.assertIn("UserWarning: horovod.run: verbose without effect", done.stdout)

    def test_a_script_for_horovod_runs_as_it_is(self):
        script = self.script("""
            import sys
            import torch
            import horovod
            import horovod.torch as hvd
            from horovod.torch.mpi_ops import synchronize
            from horovod.common.exceptions import HorovodInternalError
            assert HorovodInternalError is hvd.HorovodInternalError
            from horovod.common.process_sets import ProcessSet
            from horovod.common.util import check_extension, env, extension_available, gpu_available, num_rank_is_power_2, split_list
            assert ProcessSet is hvd.ProcessSet and check_extension is hvd.check_extension
            assert (extension_available("torch"), extension_available("mxnet"), gpu_available("torch")) == (True, False, False)
            assert [num for num in range(-1, 9) if num_rank_is_power_2(num)] == [1, 2, 4, 8]
            assert split_list([1, 2, 3, 4, 5], 3) == [[1, 2], [3, 4], [5]] and split_list([1], 3) == [[1]]
            import os
            with env(WARREN_TEST_VARIABLE="1", PATH=None):
                assert os.environ["WARREN_TEST_VARIABLE"] == "1" and "PATH" not in os.environ
            assert "WARREN_TEST_VARIABLE" not in os.environ and "PATH" in os.environ
            from horovod.runner import run
            assert run is horovod.run
            import warren.horovod.torch
            assert hvd is warren.horovod.torch and "xgboost" not in sys.modules
            hvd.init()
            model = torch.nn.Linear(2, 1)
            hvd.broadcast_parameters(model.state_dict(), root_rank=0)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            print("sum", synchronize(hvd.allreduce_async(torch.ones(1), op=hvd.Sum)).item(), sys.argv[1:])
            try:
                import horovod.spark
            except ImportError as error:
                print(error)
        """)
        code, said = self.submit(2, "-m", "warren.compat", script, "an argument", python=[PYTHON])
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("sum 2.0 ['an argument']"), 2, said)
        self.assertIn("horovod.spark is not part of warren.horovod", said)

    def test_a_script_that_fails_is_the_one_that_the_job_names(self):
        for end, status in (("sys.exit(7)", 7), ("raise ValueError('no such luck')", 1)):
            script = self.script(f"""
                import sys
                import torch
                import horovod.torch as hvd
                hvd.init()
                if hvd.rank() == 1:
                    {end}
                for _ in range(100000):
                    hvd.allreduce(torch.ones(1))
            """)
            code, said = self.submit(2, "-m", "warren.compat", script)
            self.assertEqual(code, status, said)
            self.assertIn(f"exited with code {status}", said)


if __name__ == "__main__":
    unittest.main()
