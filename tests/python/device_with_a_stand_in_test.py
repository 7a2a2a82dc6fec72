"""warren.device on a stand-in for CUDA (tests/rabit_engine/device): arrays through both protocols (__cuda_array_interface__ and DLPack),
streams, groups, errors."""

import ctypes
import os
import subprocess
import sys
import unittest

from warren_testing import BIN

LIB = BIN.parent / "lib"
RANKS = 2


class Interface:
    """A device array that has __cuda_array_interface__."""

    def __init__(self, memory, count, typestr="<f4", shape=None, strides=None, read_only=False):
        self.__cuda_array_interface__ = {"shape": shape or (count,), "typestr": typestr, "data": (memory, read_only),
                                         "strides": strides, "version": 3}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]


class Packed:
    """An array that supports DLPack; bfloat16 by default."""

    def __init__(self, memory, shape, strides=None, code=4, bits=16, offset=0):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        self.tensor = Tensor(memory - offset, (2, 0), len(shape), code, bits, 1, ctypes.addressof(self.shape),
                             ctypes.addressof(self.strides) if strides else None, offset)
        self.streams = []

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


class Streamy:
    def __init__(self, address):
        self.cuda_stream = address


def rank_of_a_job():
    from warren import device, rabit

    cudart = ctypes.CDLL(str(LIB / "libstand_in_cudart.so"))
    case = unittest.TestCase()

    def floats(*values):
        pointer = ctypes.c_void_p()
        assert cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4 * len(values))) == 0
        array = (ctypes.c_float * len(values)).from_address(pointer.value)
        array[:] = values
        return pointer.value, array

    with rabit.context():
        rank = rabit.get_rank()
        case.assertEqual(device.select(), 0)
        case.assertEqual(device.describe(), "")

        memory, values = floats(1, 2, 3 + rank)
        array = Interface(memory, 3)
        case.assertIs(device.allreduce(array), array)
        case.assertEqual(values[:], [2, 4, 7])
        case.assertEqual(device.describe(), "CUDA IPC on one GPU")
        device.allreduce(Interface(memory, 3, shape=(1, 3), strides=(400, 4)), device.AVERAGE)
        case.assertEqual(values[:], [2, 4, 7])
        device.broadcast(Interface(memory + 4 * rank, 1), 1)
        case.assertEqual(values[0], [4, 2][rank])

        # In bfloat16, 1.0 is 0x3f80, 2.0 is 0x4000, and 4.0 is 0x4080.
        memory, values = floats(0, 0)
        shorts = (ctypes.c_uint16 * 4).from_address(memory)
        shorts[:] = [0x3f80] * 4
        packed = Packed(memory, (2, 2), strides=(2, 1))
        case.assertIs(device.allreduce(packed), packed)
        case.assertEqual(shorts[:], [0x4000] * 4)
        case.assertEqual(packed.streams, [1])
        device.allreduce(Packed(memory + 4, (2,), offset=4))
        case.assertEqual(shorts[:], [0x4000] * 2 + [0x4080] * 2)

        stream = ctypes.c_void_p()
        assert cudart.cudaStreamCreate(ctypes.byref(stream)) == 0
        for given in (stream.value, Streamy(stream.value)):
            packed = Packed(memory, (1,))
            shorts[0] = 0x3f80
            device.allreduce(packed, device.MAX, stream=given)
            device.synchronize(given)
            case.assertEqual(shorts[0], 0x3f80)
            case.assertEqual(packed.streams, [-1])

        memory, values = floats(rank, 10 + rank)
        everything, all_values = floats(0, 0, 0, 0)
        device.allgather(Interface(memory, 2), Interface(everything, 4))
        case.assertEqual(all_values[:], [0, 10, 1, 11])
        device.reduce_scatter(Interface(everything, 4), Interface(memory, 2))
        case.assertEqual(values[:], [[0, 20], [2, 22]][rank])
        with device.group():
            device.allreduce(Interface(memory, 1))
            device.allreduce(Interface(memory + 4, 1), device.MIN)
        case.assertEqual(values[:], [2, 20])

        for wrong, error, text in (
                (Interface(memory, 2, typestr="<c8"), TypeError, "<c8"),
                (Interface(memory, 2, shape=(2, 2), strides=(4, 8)), ValueError, "contiguous"),
                (Interface(memory, 2, read_only=True), ValueError, "read-only"),
                (Packed(memory, (2, 2), strides=(1, 2)), ValueError, "contiguous"),
                (Packed(memory, (2,), code=5, bits=64), TypeError, "type 5 of 64 bits"),
                ([1.0], TypeError, "not list")):
            with case.assertRaisesRegex(error, text):
                device.allreduce(wrong)
        with case.assertRaisesRegex(ValueError, "3 elements do not match 2 from each rank"):
            device.allgather(Interface(memory, 2), Interface(everything, 3))
        with case.assertRaisesRegex(TypeError, "the same type"):
            device.reduce_scatter(Interface(everything, 4), Interface(memory, 2, typestr="<i4"))
        with case.assertRaisesRegex(TypeError, "a CUDA stream, or its address, is expected, not str"):
            device.allreduce(Interface(memory, 2), stream="0")
        with case.assertRaisesRegex(RuntimeError, "5 is not an operation"):
            device.allreduce(Interface(memory, 2), 5)
        handles_of_a_communicator(case, floats)
        print("all fine")


def handles_of_a_communicator(case, floats):
    import numpy as np

    from warren import collectives

    world = collectives.world()
    for comm in (world, world.split(world.rank, 0)):
        memory, values = floats(comm.rank + 1, 5)
        array = Interface(memory, 2)
        handle = comm.allreduce_async(array, out=array)
        case.assertIs(handle.wait(), array)
        case.assertEqual(values[:], [sum(range(1, comm.size + 1)), 5 * comm.size])
        comm.broadcast(Interface(memory, 2), comm.size - 1)
        everything, all_values = floats(*[0] * 2 * comm.size)
        comm.allgather(array, out=Interface(everything, 2 * comm.size))
        case.assertEqual(all_values[:], values[:] * comm.size)
        comm.reduce_scatter(Interface(everything, 2 * comm.size), collectives.Op.AVG, out=array)
        case.assertEqual(values[:], all_values[:2])
    for wrong, error, text in (
            (lambda: world.allreduce(array), TypeError, "needs an array for its result"),
            (lambda: world.allreduce(array, lambda one, two: one, out=array), TypeError, "on a GPU takes an Op"),
            (lambda: world.allreduce(array, out=Interface(memory, 1)), ValueError, "2 elements into 1"),
            (lambda: world.allgather(array, out=array), ValueError, "equal parts"),
            (lambda: world.allreduce(array, collectives.Op.BITOR, out=array), RuntimeError, "no operation 3 on devices"),
            (lambda: world.allreduce(np.zeros(2), stream=1), TypeError, "a stream is for arrays on a GPU, not for ndarray")):
        with case.assertRaisesRegex(error, text):
            wrong()
    with world.coordinator() as named, case.assertRaisesRegex(TypeError, "take arrays in host memory"):
        named.allreduce("x", array, out=array)


class DeviceTest(unittest.TestCase):
    def test_two_ranks_that_share_a_gpu(self):
        environment = {**os.environ, "WARREN_NATIVE": str(BIN.parent),
                       "WARREN_CUDA_LIBRARY": str(LIB / "librabit_cuda_on_a_stand_in.so")}
        done = subprocess.run([str(BIN / "dmlc-submit"), "--num-workers", str(RANKS), "--", sys.executable, __file__, "rank"],
                              env=environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("all fine"), RANKS)

    def test_without_the_cuda_part(self):
        code = "from warren import device, rabit\nrabit.init([])\ntry:\n    device.select()\nexcept RuntimeError as error:\n    print(error)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "WARREN_NATIVE": str(BIN.parent), "WARREN_CUDA_LIBRARY": "/no/such.so"})
        self.assertIn("rank 0: RabitDeviceSelect: device collectives need librabit_cuda.so", done.stdout, done.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        rank_of_a_job()
    else:
        unittest.main()
