"""histgbt's CUDA backend on a stand-in for CUDA, which runs the kernels' own source on the host. The model has the same bytes as the CPU
backend's."""

import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from programs import BIN, LIMIT_S, SUBMIT, ProgramTest, environment  # noqa: E402

LIB = os.path.join(os.path.dirname(BIN), "lib")
STAND_IN = {"WARREN_CUDA_LIBRARY": os.path.join(LIB, "librabit_cuda_on_a_stand_in.so"),
            "WARREN_NCCL_PATH": os.path.join(LIB, "libstand_in_nccl.so")}


class CudaOnAStandIn(ProgramTest):
    def train(self, program, *arguments, workers=0, **variables):
        words = [os.path.join(BIN, program), "data=train.txt", "num_round=4", *arguments]
        if workers:
            words = [SUBMIT, "--cluster", "local", "--num-workers", str(workers), *words]
        return self.run_program(*words, env={**environment(), **STAND_IN, **variables}, text=True)

    def check(self, *arguments, workers=0, **variables):
        on_cpu = self.train("histgbt", "model_out=cpu.json", *arguments)
        self.assertEqual(on_cpu.returncode, 0, on_cpu.stderr)
        on_gpu = self.train("histgbt_on_a_stand_in", "model_out=gpu.json", "device=cuda", *arguments, workers=workers, **variables)
        self.assertEqual(on_gpu.returncode, 0, on_gpu.stderr)
        self.assertTrue(self.read("cpu.json") == self.read("gpu.json"), "the models differ")
        return on_cpu, on_gpu

    def test_dense_rows(self):
        self.make_data("train.txt", rows=9000, task="binary", features=28, density=0.9)
        on_cpu, on_gpu = self.check("objective=binary:logistic", "max_depth=6", "eval_train=1", "eval_metric=logloss")
        self.assertIn("train-logloss", on_gpu.stdout + on_gpu.stderr)
        self.assertEqual(on_cpu.stdout, on_gpu.stdout)

    def test_features_in_several_groups(self):
        self.make_data("train.txt", rows=5000, task="regression", features=30)
        self.check("objective=reg:squarederror", STAND_IN_GPU_SHARED_BYTES="49152")

    def test_bins_of_two_bytes(self):
        self.make_data("train.txt", rows=5000, task="regression", features=7)
        self.check("objective=reg:squarederror", "max_bin=1000")

    def test_sparse_rows(self):
        self.make_data("train.txt", rows=8000, task="binary", features=60, density=0.1)
        self.check("objective=binary:logistic")

    def test_classes_and_weights(self):
        self.make_data("train.txt", rows=4000, task="multiclass", classes=3, features=10)
        self.write("train.txt.weight", "".join(f"{1 + row % 3}\n" for row in range(4000)))
        self.check("objective=multi:softprob", "num_class=3", "max_depth=4")

    def test_settings_that_end_nodes_early(self):
        self.make_data("train.txt", rows=3000, task="binary", features=5)
        self.check("objective=binary:logistic", "max_depth=9", "min_child_weight=20", "gamma=1", "lambda=3")

    def test_workers_that_share_a_gpu(self):
        self.make_data("train.txt", rows=9000, task="binary", features=28)
        _, on_gpu = self.check("objective=binary:logistic", workers=3)
        self.assertIn("device collectives by CUDA IPC on one GPU (3 ranks share one GPU)", on_gpu.stderr)

    def test_a_gpu_for_each_worker(self):
        self.make_data("train.txt", rows=9000, task="binary", features=28)
        _, on_gpu = self.check("objective=binary:logistic", "max_depth=8", workers=2, STAND_IN_GPUS="2")
        self.assertIn("device collectives by NCCL", on_gpu.stderr)

    def test_a_worker_that_dies(self):
        self.make_data("train.txt", rows=6000, task="binary", features=28)
        arguments = ["data=train.txt", "objective=binary:logistic", "num_round=60", "eval_train=1", "eval_metric=logloss"]
        on_cpu = self.train("histgbt", "model_out=cpu.json", *arguments)
        self.assertEqual(on_cpu.returncode, 0, on_cpu.stderr)
        for gpus, path in (("1", "CUDA IPC"), ("3", "NCCL")):
            with self.subTest(path=path):
                words = [SUBMIT, "--cluster", "local", "--num-workers", "3", "--local-num-attempt", "2",
                         os.path.join(BIN, "histgbt_on_a_stand_in"), "device=cuda", "model_out=gpu.json", *arguments]
                process = subprocess.Popen(words, cwd=self.folder, env={**environment(), **STAND_IN, "STAND_IN_GPUS": gpus},
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.addCleanup(process.kill)
                self.addCleanup(process.stdout.close)
                printed = ""
                for line in process.stdout:
                    printed += line
                    if "[2]\ttrain" in line:
                        workers = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "histgbt_on_a_stand_in"], text=True,
                                                 capture_output=True, check=True).stdout.split()
                        os.kill(int(workers[-1]), signal.SIGKILL)
                self.assertEqual(process.wait(LIMIT_S), 0, printed)
                self.assertIn("was killed by signal 9", printed)
                self.assertIn(path, printed)
                self.assertTrue(self.read("cpu.json") == self.read("gpu.json"), "the models differ")

    def test_no_gpu(self):
        self.make_data("train.txt", rows=10, task="binary", features=5)
        done = self.train("histgbt_on_a_stand_in", "device=cuda", "objective=binary:logistic", STAND_IN_GPUS="none")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("either there is no NVIDIA driver, or it is too old", done.stderr)


if __name__ == "__main__":
    unittest.main()
