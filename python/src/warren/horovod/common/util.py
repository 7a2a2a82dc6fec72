"""The functions of `horovod.common.util` that scripts use."""
import contextlib
import os
from typing import Any, Iterator, List, Optional, Sequence, TypeVar

from warren.horovod import _basics
from warren.horovod._adasum import is_power_of_two as num_rank_is_power_2
from warren.horovod._basics import check_extension, extension_available

__all__ = [
    "ccl_built", "check_extension", "ddl_built", "env", "extension_available", "gloo_built", "gpu_available", "is_iterable", "mpi_built",
    "nccl_built", "num_rank_is_power_2", "split_list",
]

T = TypeVar("T")


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:  # pylint: disable=unused-argument
    """Returns False: operations take tensors in host memory."""
    return False


# Unlike the functions of the same names in the frameworks' modules, these have a parameter.

def mpi_built(verbose: bool = False) -> bool:  # pylint: disable=unused-argument
    return _basics.mpi_built()


def gloo_built(verbose: bool = False) -> bool:  # pylint: disable=unused-argument
    return _basics.gloo_built()


def nccl_built(verbose: bool = False) -> int:  # pylint: disable=unused-argument
    return _basics.nccl_built()


def ddl_built(verbose: bool = False) -> bool:  # pylint: disable=unused-argument
    return _basics.ddl_built()


def ccl_built(verbose: bool = False) -> bool:  # pylint: disable=unused-argument
    return _basics.ccl_built()


@contextlib.contextmanager
def env(**variables: Optional[str]) -> Iterator[None]:
    """Sets environment variables within the block; None removes a variable."""
    before = {name: os.environ.get(name) for name in variables}
    _set_environment(variables)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: Any) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def split_list(items: Sequence[T], n: int) -> List[Sequence[T]]:
    """Splits the list into at most n parts, in order; if they cannot be equal, the first parts have one more element."""
    each, more = divmod(len(items), n)
    ends = [each * (index + 1) + min(index + 1, more) for index in range(n)]
    return [items[begin:end] for begin, end in zip([0, *ends], ends) if end > begin]


def is_iterable(value: Any) -> bool:
    try:
        iter(value)
    except TypeError:
        return False
    return True
