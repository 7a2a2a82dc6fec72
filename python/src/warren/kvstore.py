"""MXNet's key-value stores: `create` and the methods of mxnet.kvstore, over allreduce or over parameter servers.

    from warren import kvstore
    kv = kvstore.create("dist_sync")
    kv.set_optimizer(kvstore.SGD(learning_rate=0.1, momentum=0.9))
    kv.init("weight", weight)                               # all workers; the value of worker 0 is stored
    ...
    kv.push("weight", gradient)
    kv.pull("weight", out=weight)

- "dist_sync_mpi": `pushpull` and `broadcast` by allreduce, without servers. The keys within one call, and the calls of different threads, may
  come in a different order on each worker. A call waits for all workers, so the calls that one thread makes for single keys must come in the
  same order on all workers.
- "dist_sync": for each key, a server sums the n-th pushes of all workers, in rank order, and applies the sum once. A pull waits for the
  worker's own earlier pushes and returns exactly their result, so all workers get the same bits.
- "dist_async": a server applies each push immediately.
- "local" and "device": the same methods in one process, without a job.

Servers are threads of the workers and start when the first key is initialized. A key is stored on one server, chosen by its hash; a value of
at least MXNET_KVSTORE_BIGARRAY_BOUND (default: 1,000,000) elements is spread over all servers. Start jobs without --num-servers: `dmlc-submit
--num-workers 4 python train.py`.

Values are NumPy arrays, PyTorch tensors in host memory or on a GPU (tensors on a GPU are copied), MXNet arrays, or a list of these, one per
device, which are summed first. `push` takes a copy and returns immediately; `pull`, `pushpull` and `broadcast` wait. All workers call `init`,
`broadcast`, `set_optimizer`, `set_updater`, `barrier` and `close`, in the same order. `priority` orders the calls of "dist_sync_mpi" (larger
first) and has no other effect.

Errors are reported to the workers that caused them: if an updater fails, the next `pull` raises a RuntimeError on every worker whose push
was part of that update. If a rank dies, all waiting calls name it within a second, and the store can no longer be used."""
import os
import sys
from typing import Any, Callable, Optional, Tuple

import numpy as np

from warren._kvstore.optimizers import Optimizer  # noqa: F401  the interface that set_optimizer takes
from warren._kvstore.stores import STORES, for_mxnet
from warren._parameter_server.shards import Array
from warren.collectives import Communicator

__all__ = ["SGD", "TorchOptimizer", "create"]


def create(name: str = "dist_sync", communicator: Optional[Communicator] = None) -> Any:
    """Creates a store. For "dist_sync_mpi", "dist_sync" (also "dist", "dist_sync_device", "dist_device_sync") and "dist_async", this is a
    collective call. The stores "local" and "device" belong to this process alone, with a warning in a job of several workers.
    `communicator` defaults to the world, which is joined if necessary. If MXNet has already been imported, its Trainer and Module accept
    the store in place of MXNet's own. Raises ValueError for an unknown name, and RuntimeError in a job that was started with servers."""
    if not isinstance(name, str) or name.lower() not in STORES:
        raise ValueError(f"there is no key-value store {name!r} here, only {', '.join(STORES)}; others are MXNet's own")
    role, num_servers = os.environ.get("DMLC_ROLE", "worker"), os.environ.get("DMLC_NUM_SERVER", "0")
    if role != "worker" or num_servers not in ("", "0"):
        raise RuntimeError(f"this process is a {role} of a job with {num_servers} servers, and here servers are threads of the "
                           "workers: start the job without --num-servers")
    return for_mxnet(STORES[name.lower()])(name.lower(), communicator)


class SGD:
    """state = momentum * state - learning_rate * (rescale_grad * grad + wd * weight); weight += state."""

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0) -> None:
        self.learning_rate, self.momentum, self.wd, self.rescale_grad = learning_rate, momentum, wd, rescale_grad

    def create_state(self, _: Any, weight: Array) -> Optional[Array]:
        return np.zeros_like(weight) if self.momentum != 0 else None

    def update(self, _: Any, weight: Array, grad: Array, state: Optional[Array]) -> None:
        step = -self.learning_rate * (self.rescale_grad * grad + self.wd * weight)
        if state is not None:
            state *= self.momentum
            state += step
            step = state
        weight += step


class TorchOptimizer:
    """Uses a torch.optim optimizer for each key: TorchOptimizer(torch.optim.Adam, lr=0.001)."""

    def __init__(self, optimizer_class: Callable[..., Any], **options: Any) -> None:
        self._class, self._options = optimizer_class, options

    def create_state(self, _: Any, weight: Array) -> Tuple[Any, Any]:
        torch = sys.modules["torch"]
        parameter = torch.nn.Parameter(torch.from_numpy(weight))  # shares the server's memory
        return parameter, self._class([parameter], **self._options)

    def update(self, _: Any, __: Array, grad: Array, state: Tuple[Any, Any]) -> None:
        parameter, optimizer = state
        parameter.grad = sys.modules["torch"].from_numpy(grad)
        optimizer.step()
