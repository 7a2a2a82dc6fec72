"""The backend "warren" of torch.distributed with tensors on a stand-in GPU: the engine's code is real, but CUDA and the tensors are not.
On machines with a GPU, scripts/gpu-check does the same with PyTorch's own tensors."""
import ctypes
import os
import subprocess
import sys
import unittest

from warren_testing import BIN

LIB = BIN.parent / "lib"
PYTHON = "/usr/bin/python3"
RANKS = 2
HAS_TORCH = subprocess.run([PYTHON, "-c", "import numpy, torch"], check=False, stderr=subprocess.DEVNULL).returncode == 0
WHY_NOT = None if HAS_TORCH else f"SKIPPED: {PYTHON} has no PyTorch; apt-get install python3-torch"


def rank_of_a_job():
    import numpy as np
    import torch
    import torch.distributed as dist

    import warren.torch  # noqa: F401  pylint: disable=unused-import

    cudart = ctypes.CDLL(str(LIB / "libstand_in_cudart.so"))
    case = unittest.TestCase()

    class OnGpu(torch.Tensor):
        """A tensor in the stand-in's memory."""
        is_cuda = True
        device = torch.device("cuda:0")

    class Stream:
        """A stream of the stand-in, which records the events it waits for."""
        def __init__(self):
            address = ctypes.c_void_p()
            assert cudart.cudaStreamCreate(ctypes.byref(address)) == 0
            self.cuda_stream, self.waited = address.value, []

        def wait_event(self, event):
            self.waited.append(event.recorded)

        def synchronize(self):
            assert cudart.cudaStreamSynchronize(ctypes.c_void_p(self.cuda_stream)) == 0

    class Event:
        recorded, is_past = None, True

        def record(self, stream):
            self.recorded = stream

        def query(self):
            return self.is_past

    stream = Stream()
    torch.cuda.current_stream, torch.cuda.Event = lambda device: stream, Event

    def on_gpu(*values, dtype=np.float32):
        pointer = ctypes.c_void_p()
        data = np.array(values, dtype)
        assert cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(data.nbytes)) == 0
        place = np.ctypeslib.as_array((ctypes.c_uint8 * data.nbytes).from_address(pointer.value)).view(dtype)
        place[:] = data
        return torch.from_numpy(place).as_subclass(OnGpu), place

    dist.init_process_group("warren")
    rank = dist.get_rank()

    tensor, values = on_gpu(rank + 1, 5)
    work = dist.all_reduce(tensor, async_op=True)
    case.assertTrue(work.wait())
    case.assertEqual(stream.waited, [stream])
    stream.synchronize()
    case.assertEqual(values.tolist(), [3, 10])
    case.assertTrue(work.is_completed())
    Event.is_past = False  # the result is still being copied
    case.assertFalse(work.is_completed())
    tensor, values = on_gpu(rank, 7 - rank, dtype=np.int64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    stream.synchronize()
    case.assertEqual(values.tolist(), [1, 7])

    tensor, values = on_gpu(10 + rank, 20 + rank)
    dist.broadcast(tensor, 1)
    stream.synchronize()
    case.assertEqual(values.tolist(), [11, 21])

    group = dist.group.WORLD
    own, _ = on_gpu(rank, 3)
    everything, all_values = on_gpu(0, 0, 0, 0)
    group._allgather_base(everything, own).wait()
    stream.synchronize()
    case.assertEqual(all_values.tolist(), [0, 3, 1, 3])
    part, values = on_gpu(0, 0)
    group._reduce_scatter_base(part, everything).wait()
    stream.synchronize()
    case.assertEqual(values.tolist(), [[0, 6], [2, 6]][rank])

    # Lists of tensors that are adjacent in memory; others would be copied within device memory.
    parts, values = on_gpu(*[0] * 2 * RANKS)
    dist.all_gather(list(parts.chunk(RANKS)), on_gpu(rank, 4)[0])
    stream.synchronize()
    case.assertEqual(values.tolist(), [0, 4, 1, 4])
    part, values = on_gpu(0, 0)
    dist.reduce_scatter(part, list(parts.chunk(RANKS)))
    stream.synchronize()
    case.assertEqual(values.tolist(), [[0, 8], [2, 8]][rank])

    # Calls without a device path go through host memory: whole tensors are copied there and back.
    copied = []
    OnGpu.cpu = lambda tensor: copied.append(tensor.numel()) or tensor.as_subclass(torch.Tensor).clone()

    def is_copied(*counts):
        case.assertEqual(copied, list(counts))
        copied.clear()

    tensor, values = on_gpu(rank + 1, 5)
    dist.reduce(tensor, 1)
    is_copied(2)
    case.assertEqual(values.tolist(), [[1, 5], [3, 10]][rank])
    sizes = [1, 3]
    made = [on_gpu(*[0] * size) for size in sizes]
    dist.all_gather([tensor for tensor, _ in made], on_gpu(*[rank + 7] * sizes[rank])[0])
    is_copied(sizes[rank])
    case.assertEqual([values.tolist() for _, values in made], [[7], [8] * 3])
    made, values = on_gpu(0, 0)
    work = dist.all_to_all_single(made, on_gpu(10 * rank, 10 * rank + 1)[0], async_op=True)
    case.assertTrue(work.wait())
    is_copied(2)
    case.assertEqual(values.tolist(), [rank, 10 + rank])
    tensor, values = on_gpu(rank, rank + 1)
    if rank == 0:
        dist.send(tensor, 1)
    else:
        dist.recv(tensor, 0)
    is_copied(*[2] * (1 - rank))
    case.assertEqual(values.tolist(), [0, 1])
    on_host = torch.zeros(2 * RANKS)
    group._allgather_base(on_host, on_gpu(rank, 6)[0]).wait()
    is_copied(2)
    case.assertEqual(on_host.tolist(), [0, 6, 1, 6])

    # Refused calls; later calls still work.
    for wrong, text in ((lambda: dist.all_reduce(tensor, dist.ReduceOp.BAND), "does not support BAND of torch.float32"),
                        (lambda: dist.all_reduce(torch.zeros(2, device="meta")), "on CUDA GPUs, but this one is on meta")):
        with case.assertRaisesRegex(RuntimeError, text):
            wrong()
    host = torch.ones(1)
    dist.all_reduce(host)
    case.assertEqual(float(host), RANKS)
    dist.barrier()
    dist.destroy_process_group()
    print("all fine")


class TorchDeviceWithAStandIn(unittest.TestCase):
    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_tensors_on_a_gpu_go_by_the_paths_of_devices(self):
        environment = {**os.environ, "WARREN_NATIVE": str(BIN.parent), "OMP_NUM_THREADS": "1",
                       "WARREN_CUDA_LIBRARY": str(LIB / "librabit_cuda_on_a_stand_in.so")}
        for more in ({}, {"WARREN_DEVICE_PATH": "staged"}):
            with self.subTest(**more):
                done = subprocess.run([str(BIN / "dmlc-submit"), "--num-workers", str(RANKS), PYTHON, __file__, "rank"],
                                      env={**environment, **more}, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(done.stdout.count("all fine"), RANKS)


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        rank_of_a_job()
    else:
        unittest.main()
