"""The part of the API that all of Horovod's framework modules share."""
import importlib.util
from typing import Any

from warren.horovod._errors import HorovodInternalError, HostsUpdatedInterrupt
from warren.horovod._job import (ProcessSet, add_process_set, barrier, cross_rank, cross_size, global_process_set, init,
                                 is_homogeneous, is_initialized, join, local_rank, local_size, rank, remove_process_set, shutdown,
                                 size, start_timeline, stop_timeline)
from warren.horovod._named import ReduceOp

Average, Sum, Adasum = ReduceOp.Average, ReduceOp.Sum, ReduceOp.Adasum
Min, Max, Product = ReduceOp.Min, ReduceOp.Max, ReduceOp.Product

__all__ = [
    "Adasum", "Average", "HorovodInternalError", "HostsUpdatedInterrupt", "Max", "Min", "ProcessSet", "Product", "Sum",
    "add_process_set", "barrier", "ccl_built", "check_extension", "cross_rank", "cross_size", "cuda_built", "ddl_built", "global_process_set",
    "gloo_built", "gloo_enabled", "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size", "mpi_built",
    "mpi_enabled", "mpi_threads_supported", "nccl_built", "rank", "remove_process_set", "rocm_built", "shutdown", "size",
    "start_timeline", "stop_timeline",
]

#: The frameworks that have a module here.
_FRAMEWORKS = ("torch", "tensorflow", "keras")


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:  # pylint: disable=unused-argument
    """Whether there is a module for the framework, and the framework is installed."""
    return ext_base_name in _FRAMEWORKS and importlib.util.find_spec(ext_base_name) is not None


def check_extension(ext_name: str, *_: Any) -> None:
    """Raises ImportError unless the module, such as `horovod.torch`, can be used. Horovod's build options do not matter here."""
    framework = ext_name.rpartition(".")[2]
    if framework not in _FRAMEWORKS:
        raise ImportError(f"{ext_name}: warren.horovod has modules for {', '.join(_FRAMEWORKS)}, not for {framework}")
    if not extension_available(framework):
        raise ImportError(f"{ext_name} needs {framework}, which is not installed")


# The libraries with which Horovod may have been built. They are reported as missing, whatever the engine uses.

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
