"""torch.distributed over Warren's engine: the backend "warren".

    import torch.distributed as dist
    import warren.torch

    dist.init_process_group("warren")
    dist.all_reduce(gradient)

Start it with `dmlc-submit --num-workers 4 python train.py`, torchrun, mpirun or srun, or by itself. DistributedDataParallel, FSDP, DTensor
and everything else that calls torch.distributed run on it unchanged. Ranks of one host share memory; sums have the same bits on all ranks.
If a rank dies, the ranks waiting for it report its number within a second. See docs/how-to/frameworks.md for more.

The module also has TorchMPI's features, over `warren.collectives`: `synchronize_parameters`, `synchronize_gradients`, `AllReduceSGDEngine`,
`ParameterServer`, `Downpour`, `EASGD`.

Supports PyTorch 1.13, and 2.4 or later; tensors in host memory, and for the main collectives of the backend also on GPUs."""
import datetime as _datetime
import functools as _functools
from typing import Any as _Any
from typing import Callable as _Callable

import torch.distributed as _dist

from warren._frameworks import dynamo as _dynamo
from warren.torch import _launchers
from warren.torch._process_group import ProcessGroup
from warren.torch._rendezvous import create
from warren.torch._synchronize import synchronize_gradients, synchronize_parameters
from warren.torch.parameter_server import EASGD, Downpour, ParameterServer
from warren.torch.sgd import AllReduceSGDEngine, SGDEngine

__all__ = ["AllReduceSGDEngine", "Downpour", "EASGD", "ParameterServer", "ProcessGroup", "SGDEngine", "synchronize_gradients",
           "synchronize_parameters"]


def _register() -> None:
    if hasattr(_dist.Backend, "WARREN"):
        return
    try:
        _dist.Backend.register_backend("warren", create, extended_api=True, devices=["cpu", "cuda"])
    except TypeError:  # before PyTorch 2.1 a backend had no devices
        _dist.Backend.register_backend("warren", create, extended_api=True)


def _for_our_groups(function: _Callable[..., None]) -> _Callable[..., None]:
    """Wraps torch.distributed.monitored_barrier, which PyTorch up to 2.9 refuses for all backends but gloo."""
    @_functools.wraps(function)
    def monitored_barrier(group: _Any = None, timeout: _Any = None, wait_all_ranks: bool = False) -> None:
        chosen = _dist.group.WORLD if group is None else group
        if not isinstance(chosen, ProcessGroup):
            return function(group, timeout, wait_all_ranks)
        if timeout is not None and not isinstance(timeout, _datetime.timedelta):
            timeout = _datetime.timedelta(seconds=timeout)
        return chosen.monitored_barrier(timeout, wait_all_ranks)

    return monitored_barrier


_register()
_launchers.install()
_dist.monitored_barrier = _for_our_groups(_dist.monitored_barrier)
_dynamo.leave_alone()
