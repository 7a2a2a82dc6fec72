"""The device collectives on a stand-in for CUDA and NCCL: every path, every call, lost and stuck ranks, recovery. This tests the logic
around GPUs only, not real GPUs."""

import time
import unittest

from devices import run, run_one_by_one
from warren_testing import AT_NIGHT, at_night

NCCL, IPC, STAGED = "NCCL 2.28.9", "CUDA IPC on one GPU", "pinned memory and the engine on the host"
# For each path, the number of GPUs for 4 ranks and the environment that selects the path.
PATHS = {NCCL: (4, {}), IPC: (1, {}), STAGED: (4, {"WARREN_DEVICE_PATH": "staged"})}
CALLS = 6  # per version, in mode `train`
VERSIONS = 2


class DeviceCase(unittest.TestCase):
    def fine(self, result, path):
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(result.paths, {path}, str(result))

    def failed(self, result, *regexes):
        self.assertNotEqual(result.code, 0, str(result))
        for regex in regexes:
            self.assertRegex(result.errors, regex)


class PathTest(DeviceCase):
    def check(self, num_workers, path, gpus=1, words=(), env=None):
        result = run(num_workers, "check", *words, gpus=gpus, env=env)
        self.fine(result, path)
        self.assertEqual(len(set(result.digests)), 1, str(result))
        self.assertEqual(result.output.count("order "), num_workers)
        if path != NCCL:
            self.assertNotIn("order differs", result.output)
        return result

    def test_one_rank(self):
        self.check(1, "copies (one rank)")

    def test_one_rank_on_nccl(self):
        self.check(1, NCCL, env={"WARREN_DEVICE_PATH": "nccl"})

    def test_nccl_that_blocks(self):
        self.check(3, NCCL, gpus=3, env={"NCCL_COMM_BLOCKING": "1"})

    def test_a_gpu_for_each_rank(self):
        result = self.check(3, NCCL, gpus=3)
        self.assertRegex(result.errors, r"rabit: device collectives by NCCL 2\.28\.9 \(3 ranks, one GPU each\); 3 ranks on 3 "
                                        r"GPUs \(stand-in for a GPU\)")

    def test_two_share_a_gpu(self):
        self.check(2, IPC)

    @at_night
    def test_five_share_a_gpu(self):
        self.check(5, IPC)

    def test_eight_share_a_gpu(self):
        result = run(8, "large")
        self.fine(result, IPC)
        self.assertEqual(result.output.count("order same"), 8, str(result))

    def test_memory_that_cannot_be_mapped(self):
        self.check(3, IPC, words=("pool",))

    def test_by_way_of_the_host(self):
        self.check(3, STAGED, gpus=3, env={"WARREN_DEVICE_PATH": "staged"})

    def test_where_ranks_may_be_lost(self):
        for path, (gpus, env) in PATHS.items():
            with self.subTest(path=path):
                self.check(3 if AT_NIGHT else 2, path, gpus=gpus, words=("recovering",), env=env)

    def test_handles_on_any_communicator(self):
        for path, (gpus, env) in PATHS.items():
            for ranks in (1, 4) if AT_NIGHT else (2,):
                with self.subTest(path=path, ranks=ranks):
                    result = run(ranks, "handles", gpus=gpus, env=env)
                    self.assertEqual(result.code, 0, str(result))
                    self.assertRegex(result.output + result.errors,
                                     r"rank 0: WarrenDeviceAllreduce: there is no operation 3 on devices")

    def test_a_handle_knows_of_a_loss(self):
        for path, (_, env) in PATHS.items():
            with self.subTest(path=path):
                ended = run_one_by_one(3, "die-by-handle", 1, gpus=3 if path == NCCL else 1, env=env)
                self.assertEqual(sorted(code for _, code in ended), [1, 1, 9], ended)
                for errors, code in ended:
                    if code == 1:
                        self.assertRegex(errors, r"rank [02]: WarrenDeviceAllreduce: .*rank 1\b")

    def test_pieces_by_way_of_the_host(self):
        result = run(3, "large", env={"WARREN_DEVICE_PATH": "staged"})
        self.fine(result, STAGED)
        self.assertEqual(result.output.count("order same"), 3, str(result))

    def test_some_share_and_some_do_not(self):
        result = run(3, "large", gpus=2)
        self.fine(result, STAGED)
        self.assertRegex(result.errors, r"3 ranks share 2 GPUs, and rank 0 on .* and rank 1 on .* have different GPUs")

    def test_no_nccl(self):
        result = run(2, "large", gpus=2, env={"WARREN_NCCL_PATH": "/no/such/libnccl.so.2"})
        self.fine(result, STAGED)
        self.assertRegex(result.errors, r"rank 0 on .* could not load NCCL: /no/such/libnccl.so.2: cannot open .*"
                         "WARREN_NCCL_PATH")

    def test_gpus_that_cannot_be_shared(self):
        result = run(2, "large", env={"STAND_IN_GPU_IPC": "no"})
        self.fine(result, STAGED)
        self.assertIn("cannot export memory or events of its GPU (CUDA IPC)", result.errors)

    def test_mig(self):
        result = run(2, "large", gpus=2, env={"STAND_IN_GPU_NAME": "NVIDIA H200 MIG 1g.18gb"})
        self.fine(result, STAGED)
        self.assertIn("has a MIG slice, which NCCL does not support", result.errors)


class ChoiceOfGpuTest(DeviceCase):
    def test_by_local_rank_and_round_again(self):
        result = run(5, "select", gpus=2)
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual((result.output.count("gpu 0"), result.output.count("gpu 1")), (3, 2))

    def test_each_rank_says_which_with_debug(self):
        result = run(2, "check", "rabit_debug=1", gpus=2)
        self.fine(result, NCCL)
        self.assertRegex(result.errors, r"rabit: rank 1 uses GPU 1 on \S+ \(stand-in for a GPU\)")


class ErrorTest(DeviceCase):
    def test_no_driver(self):
        self.failed(run(2, "check", env={"STAND_IN_GPUS": "none"}),
                    r"rank \d: RabitDeviceSelect: counting GPUs: CUDA reported 'CUDA driver version is insufficient.*"
                    r"either there is no NVIDIA driver, or it is too old.*rabit::Allreduce needs no GPU")

    def test_no_gpu(self):
        self.failed(run(1, "check", env={"STAND_IN_GPUS": "0", "CUDA_VISIBLE_DEVICES": "7"}),
                    r"there is none, or this process may not use it \(CUDA_VISIBLE_DEVICES is '7'\)")

    def test_host_memory(self):
        for path, (gpus, env) in PATHS.items():
            with self.subTest(path=path):
                self.failed(run(2, "host-memory", gpus=gpus, env=env), r"the buffer is host memory; rabit::Allreduce takes that")

    def test_a_path_that_cannot_be(self):
        self.failed(run(2, "check", gpus=2, env={"WARREN_DEVICE_PATH": "shared"}),
                    r"WARREN_DEVICE_PATH=shared: rank 0 on \S+ and rank 1 on \S+ have different GPUs")
        for name in ("WARREN_DEVICE_PATH", "RABIT_DEVICE_PATH"):
            self.failed(run(2, "check", env={name: "fast"}), f'{name} is "fast", expected auto, nccl, shared or staged')

    def test_ranks_that_call_different_things(self):
        self.failed(run(3, "differ"), r"this rank called allreduce of \d+ float32 .*, and rank \d allreduce of \d+ float32")
        self.failed(run(3, "differ", env={"WARREN_DEVICE_PATH": "staged"}), "allreduce")

    def test_wrong_arguments_end_nothing(self):
        result = run(2, "misuse")
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(result.output.count("still alive"), 2, str(result))
        for text in ("RabitDeviceAllreduce: a buffer of 10 elements is NULL", "12 is not an element type",
                     "5 is not an operation; 0 is sum", "root 99 is not a rank; ranks are 0 to 1", "there is no group to end"):
            self.assertEqual(result.output.count(text), 2, str(result))


class GraphTest(DeviceCase):
    FIRST = "refused: rank 0: RabitDeviceAllreduce: the first device collective connects the ranks, .* make one before the capture begins"

    def check(self, num_workers, path, **how):
        result = run(num_workers, "capture", **how)
        self.fine(result, path)
        self.assertRegex(result.output, self.FIRST)
        return result

    def test_calls_over_nccl(self):
        result = self.check(3, NCCL, gpus=3)
        self.assertEqual(result.output.count("a graph ran"), 3, str(result))

    def test_one_rank(self):
        self.assertIn("a graph ran", self.check(1, "copies (one rank)").output)

    def test_other_paths_refuse_and_go_on(self):
        for path in (IPC, STAGED):
            gpus, env = PATHS[path]
            with self.subTest(path=path):
                result = self.check(2, path, gpus=gpus, env=env)
                self.assertNotIn("a graph ran", result.output)
                self.assertRegex(result.output, f"refused: rank 0: .* device collectives use {path} here, which cannot be captured into a CUDA graph")

    def test_capture_and_checkpoints_do_not_go_together(self):
        result = run(2, "capture", "recovering", gpus=2)
        self.fine(result, NCCL)
        self.assertRegex(result.output, "refused: .* with recovery .* cannot be captured into a CUDA graph")
        self.assertNotIn("a graph ran", result.output)


class LossTest(DeviceCase):
    def check_deaths(self, mode):
        for path, (gpus, env) in PATHS.items():
            with self.subTest(path=path):
                begin = time.monotonic()
                ended = run_one_by_one(4, mode, 2, gpus=gpus, env=env)
                self.assertLess(time.monotonic() - begin, 20)
                self.assertEqual(sorted(code for _, code in ended), [1, 1, 1, 9])
                for errors, code in ended:
                    if code == 1:
                        self.assertRegex(errors, r"rank \d: RabitDevice\w+: .*\brank 2\b.*(lost|ended)")

    def test_a_rank_that_dies(self):
        self.check_deaths("die")

    def test_a_rank_that_dies_while_others_wait_for_the_stream_by_themselves(self):
        self.check_deaths("die-unwatched")

    def test_a_rank_that_dies_while_others_wait_for_one_stream_of_two(self):
        self.check_deaths("die-on-another-stream")

    def test_a_rank_that_hangs(self):
        for path, (gpus, env) in PATHS.items():
            with self.subTest(path=path):
                result = run(4, "hang", "1", "rabit_timeout=1", "rabit_timeout_sec=2", gpus=gpus, env=env)
                self.failed(result, r"rank [023]: RabitDevice\w+: .*rank 1")


class RecoveryTest(DeviceCase):
    undisturbed = None

    def check(self, path, *deaths, attempts=3, ranks=4):
        if RecoveryTest.undisturbed is None:
            result = run(4, "train", VERSIONS, gpus=4)
            self.fine(result, NCCL)
            self.assertEqual(len(result.digests), 4)
            RecoveryTest.undisturbed = result.digests
        gpus, env = PATHS[path]
        mocks = [f"mock={rank},{version},{call},{trial}" for rank, version, call, trial in deaths]
        result = run(ranks, "train", VERSIONS, *mocks, gpus=gpus, env=env, attempts=attempts)
        self.assertEqual(result.code, 0, str(result))
        # A restarted rank that makes no GPU call after it has caught up prints an empty path.
        self.assertEqual(result.paths - {""}, {path}, str(result))
        self.assertEqual(result.errors.count(" as mock="), len(deaths), str(result))
        self.assertEqual(result.digests, RecoveryTest.undisturbed, str(result))

    def sweep(self, path):
        points = [(rank, version, call) for rank in range(4) for version in range(VERSIONS) for call in range(CALLS + 1)]
        for rank, version, call in points if AT_NIGHT else points[::5]:
            with self.subTest(rank=rank, version=version, call=call):
                self.check(path, (rank, version, call, 0))

    def test_undisturbed(self):
        for path in PATHS:
            with self.subTest(path=path):
                self.check(path)

    def test_a_loss_at_any_call_on_nccl(self):
        self.sweep(NCCL)

    def test_a_loss_at_any_call_on_a_shared_gpu(self):
        self.sweep(IPC)

    def test_a_loss_at_any_call_by_way_of_the_host(self):
        self.sweep(STAGED)

    def test_two_losses_and_one_while_catching_up(self):
        self.check(NCCL, (0, 1, 2, 0), (3, 1, 2, 0), (3, 1, 1, 1))


if __name__ == "__main__":
    unittest.main()
