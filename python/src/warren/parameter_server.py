"""Parameter servers: arrays whose elements are spread over the ranks of a job. Ranks send updates and receive current values.

    from warren import collectives
    from warren.parameter_server import ParameterServer

    with collectives.context() as world:
        with ParameterServer(weights, root=0) as server:        # all ranks; the weights of rank 0
            sent = server.send(gradient, "add", scale=-0.1)     # added on the servers, while this rank continues
            sent.wait()
            weights = server.receive().wait()

No rank waits for another: each rank sends and receives at any time. The interface is TorchMPI's (torchmpi.parameterserver).

Data flow: the flat array is split into one contiguous part per server; rank r serves part r. A send goes to all servers concurrently,
directly from slices of the caller's array; each server's thread applies it to its part according to the rule and confirms. A receive sends a
request to all servers, and each answer is written directly to its place in the result. See warren/_parameter_server: shard_service.py for the
messages and shards.py for the servers' logic.

Guarantees:
- A send that has been waited for has been applied on all servers: any rank that receives afterwards sees it.
- A server carries out the sends and receives of one thread in the order in which they were made, whether waited for or not. The calls of
  different threads of a rank are not ordered.
- The effect of one send on one part is visible as a whole or not at all. The parts of one receive may reflect different points in time.
- Do not touch the array of a send or receive until it has ended.

Errors: wrong shapes, types and rules are refused immediately, without side effects. If a rule raises an exception, the send raises a
RuntimeError with its text, and the server continues with the part as the rule left it. If a rank dies, all waiting calls name it within a
second, and all parameter servers and messages of the communicator end.

One thread serves all parameter servers of a communicator, and sleeps while idle. Thread-safe, except for creating and freeing."""
from typing import Any, Optional, Union

import numpy as np

from warren._frameworks.world import communicator_or_world
from warren._parameter_server.sharded_array import Handle, ShardedArray, check_alike, slice_of
from warren._parameter_server.shards import Array, RuleShard, check_numbers, register_rule, rule_of, spread
from warren.collectives import Communicator

__all__ = ["Handle", "ParameterServer", "register_rule"]


class ParameterServer:
    """An array stored on servers. All ranks create it together, with arrays of the same shape and type; `free` or the end of a `with` block
    ends it."""

    def __init__(self, array: Array, communicator: Optional[Communicator] = None, servers: Optional[int] = None,
                 root: Optional[int] = None) -> None:
        """`communicator` defaults to the world, which is joined if necessary. The first `servers` ranks serve; by default, all ranks do. Each
        server's part is initialized from its own array, or from the array of rank `root` if `root` is given; the array is copied. Raises
        TypeError or ValueError for arguments that cannot be used or that differ between ranks."""
        self._communicator = communicator_or_world(communicator, "a parameter server")
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise TypeError(f"a parameter server holds a NumPy array of numbers, not {_named(array)}")
        check_numbers(array.dtype, "a parameter server")
        size = self._communicator.size
        num_servers = size if servers is None else servers
        if not 1 <= num_servers <= size:
            raise ValueError(f"{num_servers} servers of {size} ranks; expected 1 to {size}")
        if root is not None and not 0 <= root < size:
            raise ValueError(f"root {root} is not one of the {size} ranks")
        check_alike(self._communicator, "a parameter server", (array.shape, array.dtype.str, num_servers, root))
        self.shape, self.dtype = array.shape, array.dtype
        parts = spread(array.size, range(num_servers))
        own = slice_of(self._communicator, np.ascontiguousarray(array).reshape(-1), parts, root)
        self._array = ShardedArray(self._communicator, parts, own,
                                   lambda values: RuleShard(values, self._communicator.rank))

    def send(self, array: Optional[Array], rule: str = "add", scale: Union[int, float] = 1) -> Handle[None]:
        """Makes the servers apply scale * array according to a rule: "add" adds it, "copy" replaces the elements, and "zero" sets all
        elements to 0, with None as the array; see `register_rule` for other rules. A contiguous array is not copied; do not change it until
        the send has ended."""
        self._array.check_open("send")
        rule_of(rule, self._communicator.rank)
        if array is None:
            if rule != "zero":
                raise TypeError(f"send: the rule '{rule}' takes an array, not None")
            return self._array.send(None, rule)
        self._check(array, "send")
        return self._array.send(np.ascontiguousarray(array).reshape(-1), rule, self._checked_scale(scale))

    def receive(self, out: Optional[Array] = None) -> Handle[Array]:
        """Receives the array into `out`, which must be contiguous, or into a new array; `wait` returns it."""
        self._array.check_open("receive")
        if out is None:
            out = np.empty(self.shape, self.dtype)
        self._check(out, "receive")
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise ValueError("receive needs a contiguous, writable array for its result")
        return self._array.receive(out.reshape(-1), out)

    def free(self) -> None:
        """Ends the parameter server. Collective; parameter servers are freed in the same order on all ranks. Waits for all pending
        operations, and raises the first error of this rank that no caller has received."""
        self._array.free()

    def __enter__(self) -> "ParameterServer":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        # After an exception the other ranks may never call free.
        if kind is None:
            self.free()

    def _check(self, array: Any, what: str) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{what}: this parameter server holds an array of {self.shape} {self.dtype}, not {_named(array)}")
        if array.shape != self.shape:
            raise ValueError(f"{what}: this parameter server holds an array of {self.shape}, not of {array.shape}")
        if array.dtype != self.dtype:
            raise TypeError(f"{what}: this parameter server holds {self.dtype}, not {array.dtype}; see array.astype")

    def _checked_scale(self, scale: Union[int, float]) -> float:
        number = float(scale)
        if self.dtype.kind in "iub" and not (number.is_integer() and abs(number) <= 1 << 53):
            raise ValueError(f"send: a scale of {scale} for elements of {self.dtype}; expected a whole number")
        if self.dtype.kind in "ub" and number < 0:
            raise ValueError(f"send: a scale of {scale} for elements of {self.dtype}; expected at least 0")
        return number


def _named(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
