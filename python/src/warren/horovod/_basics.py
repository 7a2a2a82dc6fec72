"""What all of Horovod's modules have, whatever their framework."""
from warren.horovod._errors import HorovodInternalError, HostsUpdatedInterrupt, elastic
from warren.horovod._job import (ProcessSet, add_process_set, barrier, cross_rank, cross_size, global_process_set, init,
                                 is_homogeneous, is_initialized, join, local_rank, local_size, rank, remove_process_set, shutdown,
                                 size, start_timeline, stop_timeline)
from warren.horovod._named import ReduceOp

Average, Sum, Adasum = ReduceOp.Average, ReduceOp.Sum, ReduceOp.Adasum
Min, Max, Product = ReduceOp.Min, ReduceOp.Max, ReduceOp.Product

__all__ = [
    "Adasum", "Average", "HorovodInternalError", "HostsUpdatedInterrupt", "Max", "Min", "ProcessSet", "Product", "Sum",
    "add_process_set", "barrier", "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic",
    "global_process_set",
    "gloo_built", "gloo_enabled", "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size", "mpi_built",
    "mpi_enabled", "mpi_threads_supported", "nccl_built", "rank", "remove_process_set", "rocm_built", "shutdown", "size",
    "start_timeline", "stop_timeline",
]


# The libraries that Horovod may have been compiled with. This engine is none of them.

def mpi_threads_supported() -> bool:
    return False


def mpi_enabled() -> bool:
    return False


def mpi_built() -> bool:
    return False


def gloo_enabled() -> bool:
    return False


def gloo_built() -> bool:
    return False


def nccl_built() -> int:
    return 0


def ddl_built() -> bool:
    return False


def ccl_built() -> bool:
    return False


def cuda_built() -> bool:
    return False


def rocm_built() -> bool:
    return False
