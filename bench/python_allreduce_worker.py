"""A rank of bench/python_allreduce: `warren` (warren.rabit, and the C API in a loop of C, in turn) or `xgboost`
(xgboost.collective). Rank 0 prints a line of JSON: microseconds of one allreduce, by way and size."""
import ctypes
import json
import os
import statistics
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")

BLOCK_S = 0.02  # what one sample should take
SAMPLES = 7


def count_for(run, agree):
    """How many calls make a sample, the same in all ranks."""
    run(3)
    begin = time.perf_counter()
    run(3)
    one = (time.perf_counter() - begin) / 3
    return int(agree(np.array([max(1.0, min(2000.0, BLOCK_S / one))]))[0])


def measure(ways, agree):
    """Median microseconds of each way, in turn."""
    counts = {name: count_for(run, agree) for name, run in ways.items()}
    samples = {name: [] for name in ways}
    for _ in range(SAMPLES):
        for name, run in ways.items():
            begin = time.perf_counter()
            run(counts[name])
            samples[name].append((time.perf_counter() - begin) / counts[name] * 1e6)
    return {name: statistics.median(found) for name, found in samples.items()}


def with_warren(sizes, loop):
    from warren import rabit

    in_c = ctypes.CDLL(loop).loop
    in_c.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
    function = ctypes.cast(rabit._LIB.RabitAllreduce, ctypes.c_void_p)
    def in_python(count, data):
        for _ in range(count):
            rabit.allreduce(data, rabit.MAX)

    results = {}
    with rabit.context():
        for size in sizes:
            data = np.ones(size // 4, "float32")
            ways = {"warren.rabit": lambda count, data=data: in_python(count, data),
                    "C": lambda count, data=data: in_c(function, data.ctypes.data, data.size, count)}
            results[size] = measure(ways, lambda value: rabit.allreduce(value, rabit.MAX))
        if rabit.get_rank() == 0:
            print(json.dumps(results), flush=True)


def with_xgboost(sizes):
    import xgboost
    from xgboost import collective

    def in_python(count, data):
        for _ in range(count):
            collective.allreduce(data, collective.Op.MAX)

    results = {}
    arguments = {"dmlc_tracker_uri": os.environ["DMLC_TRACKER_URI"], "dmlc_task_id": os.environ["DMLC_TASK_ID"],
                 "dmlc_tracker_port": int(os.environ["DMLC_TRACKER_PORT"])}
    with collective.CommunicatorContext(**arguments):
        for size in sizes:
            data = np.ones(size // 4, "float32")
            results[size] = measure({f"xgboost.collective {xgboost.__version__}": lambda count, data=data: in_python(count, data)},
                                    lambda value: collective.allreduce(value, collective.Op.MAX))
        if collective.get_rank() == 0:
            print(json.dumps(results), flush=True)


if __name__ == "__main__":
    wanted = [int(size) for size in sys.argv[2].split(",")]
    if sys.argv[1] == "warren":
        with_warren(wanted, sys.argv[3])
    else:
        with_xgboost(wanted)
