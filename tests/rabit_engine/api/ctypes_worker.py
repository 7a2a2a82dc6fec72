"""A rabit worker in Python that uses only the C API and checks its own results. argv[1] is librabit.so."""

import array
import ctypes
import pickle
import sys

rabit = ctypes.CDLL(sys.argv[1])
assert rabit.RabitGetRank() == 0 and rabit.RabitGetWorldSize() == 1
arguments = (ctypes.c_char_p * 1)(b"rabit_reduce_buffer=64MB")
assert rabit.RabitInit(len(arguments), arguments)
rank, world = rabit.RabitGetRank(), rabit.RabitGetWorldSize()

# The type codes of Python's `array`, in the order of rabit's type numbers.
for dtype, code in enumerate("bBiIlLfdqQ"):
    values = array.array(code, [rank, 1, 2] * 1000)
    address, _ = values.buffer_info()
    rabit.RabitAllreduce(ctypes.c_void_p(address), ctypes.c_size_t(len(values)), dtype, 2, None, None)
    assert values.tolist() == [world * (world - 1) // 2, world, 2 * world] * 1000, (code, values[:3])

value = ctypes.c_double(0)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def prepare(argument):
    assert argument == 17
    value.value = rank + 1


rabit.RabitAllreduce(ctypes.byref(value), ctypes.c_size_t(1), 7, 0, prepare, ctypes.c_void_p(17))
assert value.value == world

message = pickle.dumps({"hello": [1, 2, 3]})
buffer = ctypes.create_string_buffer(message if rank == 0 else len(message), len(message))
rabit.RabitBroadcast(buffer, ctypes.c_ulong(len(message)), 0)
assert pickle.loads(buffer.raw) == {"hello": [1, 2, 3]}

slices = (ctypes.c_double * (2 * world))()
slices[2 * rank], slices[2 * rank + 1] = rank, rank + 0.5
rabit.RabitAllgather(slices, ctypes.c_size_t(2 * world), ctypes.c_size_t(2 * rank), ctypes.c_size_t(2),
                     ctypes.c_size_t(2), 7)
assert list(slices) == [half / 2 for half in range(2 * world)]

model, length = ctypes.POINTER(ctypes.c_char)(), ctypes.c_ulong()
assert rabit.RabitLoadCheckPoint(ctypes.byref(model), ctypes.byref(length), None, None) == 0
rabit.RabitCheckPoint(message, ctypes.c_ulong(len(message)), None, ctypes.c_ulong(0))
assert rabit.RabitLoadCheckPoint(ctypes.byref(model), ctypes.byref(length), None, None) == 1
assert ctypes.string_at(model, length.value) == message
assert rabit.RabitVersionNumber() == 1
if rank == 0:
    rabit.RabitTrackerPrint(b"printed from Python\n")
print(f"worker {rank} done", flush=True)
assert rabit.RabitFinalize() == 1
