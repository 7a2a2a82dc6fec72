"""LightGBM's network of workers, over the job that warren.rabit has joined."""
import contextlib
import ctypes
from typing import Iterator

from lightgbm.basic import _LIB, _safe_call

from warren import rabit
from warren._engine import native as _native
from warren._lightgbm.binning import of_all_rows
from warren._lightgbm.hooks import for_all_workers, reporting_rounds, same_features
from warren._rounds import mlflow_runs as _mlflow_runs


@contextlib.contextmanager
def reporting() -> Iterator[None]:
    """Within the block, training on this thread reports its rounds, and is refused validation sets with other features."""
    with same_features(), reporting_rounds(), _mlflow_runs.resting(rabit.get_world_size()):
        yield


@contextlib.contextmanager
def over_the_job() -> Iterator[None]:
    """Within the block, training on this thread runs over the job's collectives if the job has several workers."""
    if rabit.get_world_size() == 1:
        yield
        return
    _safe_call(_LIB.LGBM_NetworkInitWithFunctions(
        ctypes.c_int(rabit.get_world_size()), ctypes.c_int(rabit.get_rank()), _function("WarrenLightGBMReduceScatter"),
        _function("WarrenLightGBMAllgather")))
    try:
        with for_all_workers(), of_all_rows():
            yield
    finally:
        _LIB.LGBM_NetworkFree()


def _function(name: str) -> ctypes.c_void_p:
    return ctypes.cast(getattr(_native.library("librabit.so"), name), ctypes.c_void_p)
