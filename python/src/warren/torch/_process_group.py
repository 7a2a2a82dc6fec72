"""A torch.distributed process group whose collectives run on the engine.

Data flow: each method that c10d calls makes one call of warren/c_api.h, directly on the tensors' memory if the tensors are
contiguous, else on contiguous copies, which are copied back when the call has ended. c10d's work is the engine's handle. If the caller
waits immediately (`async_op=False`, from PyTorch 2.7 on), the call runs synchronously, without a handle."""
import ctypes
import datetime
import json
import time
from typing import Any, List, Optional, Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import Work as C10dWork

from warren import collectives
from warren._engine import c_api as _c
from warren._engine.calls import c_sizes
from warren.collectives import Communicator
from warren.torch import _device
from warren.torch._tensors import (Staging, check, is_async, kind_of, materialized, num_bytes, one, op_of, reduction, root_of,
                                   row_bytes, seconds_of)
from warren.torch._work import Callbacks, Done, Receive, Several, Work

#: PyTorch 2.0 and later warn unless the caller chooses whether the indices of a sparse tensor are checked. Ours were checked when the ranks'
#: tensors were made.
_UNCHECKED = {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """The group made by init_process_group("warren") and new_group. To be used by one thread at a time."""

    def __init__(self, communicator: Communicator, store: Any, timeout: datetime.timedelta, mailbox: collectives.Mailbox,
                 ranks: Sequence[int], tags: int) -> None:
        """`ranks`: the ranks of this group, as numbered by the mailbox. `tags`: a 32-bit number that distinguishes the groups that use the
        mailbox."""
        super().__init__(communicator.rank, communicator.size)
        self._communicator, self._store = communicator, store
        self._mailbox, self._ranks, self._tags = mailbox, ranks, tags
        self._comm = communicator._comm  # pylint: disable=protected-access
        self._rank, self._size = communicator.rank, communicator.size
        self._callbacks = Callbacks(communicator.rank)
        self._num_monitored = 0
        self._name = self._description = ""
        self.set_timeout(timeout)

    @property
    def communicator(self) -> Communicator:
        """The engine's communicator; false after `shutdown`."""
        return self._communicator

    @property
    def mailbox(self) -> collectives.Mailbox:
        """The mailbox for messages; groups derived from the default group share it."""
        return self._mailbox

    # --- c10d's queries of a group ---

    def name(self) -> str:
        return "warren"

    # pylint: disable=invalid-name
    getBackendName = name

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description
    # pylint: enable=invalid-name

    # Up to PyTorch 2.6, c10d uses these instead of the methods above.
    group_name, group_desc = property(getGroupName), property(getGroupDesc)
    _set_group_name, _set_group_desc, _get_backend_name = setGroupName, setGroupDesc, name

    @property
    def _device_types(self) -> List[torch.device]:
        # No devices until the group is in this map: torch.distributed would treat them as devices of C++ backends, and install hooks in these.
        return [torch.device("cpu")] if self in dist.distributed_c10d._world.pg_map else []

    def _get_backend(self, device: Any) -> "ProcessGroup":  # pylint: disable=unused-argument
        return self

    get_backend = _get_backend

    @property
    def supports_coalescing(self) -> bool:
        return False

    @property
    def supports_splitting(self) -> bool:
        return False

    def get_group_store(self) -> Any:
        return self._store

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Sets the time for which calls wait for a rank that is alive."""
        self._timeout = timeout
        self._seconds = max(0.0, timeout.total_seconds())
        self._communicator.set_timeout(self._seconds)

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """Leaves the group; the other ranks need not call it."""
        self._comm = None
        self._communicator.free()

    abort = shutdown

    # --- reductions ---

    def _run(self, name: str, arguments: Sequence[Any], result: List[Tensor], opts: Any, staging: Optional[Staging] = None,
             kept: Any = None, timeout: Optional[float] = None) -> C10dWork:
        self._callbacks.look_at_call(name)
        call = collectives.Call(name, (self._comm, *arguments), result, kept)
        if timeout is None and not is_async(opts):
            call.run()
            if staging is not None:
                staging.copy_back()
            return Done(result)
        return Work(call.begin(timeout=timeout), result, staging or Staging(), self._callbacks)

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> C10dWork:
        if not isinstance(tensors, Tensor) and len(tensors) != 1:
            return self.allreduce_coalesced(tensors, opts)
        tensor = tensors if isinstance(tensors, Tensor) else tensors[0]
        if tensor.layout != torch.strided:
            return self._sparse_allreduce(tensor, opts)
        if check(tensor, "allreduce").is_cuda:
            return _device.allreduce(self._comm, tensor, opts)
        kind, op, width = reduction(op_of(opts), tensor.dtype, "allreduce")
        staging = Staging()
        data = staging.target(tensor, keeps=True)
        at = data.data_ptr()
        return self._run("WarrenAllreduce", (at, at, width * data.numel(), kind, op), [tensor], opts, staging, data, seconds_of(timeout))

    def allreduce_coalesced(self, tensors: List[Tensor], opts: Any = None) -> C10dWork:
        if not tensors:
            raise ValueError("allreduce_coalesced: the list of tensors is empty")
        if any(check(tensor, "allreduce_coalesced").dtype != tensors[0].dtype for tensor in tensors):
            raise RuntimeError("allreduce_coalesced: the tensors have different types")
        kind, op, width = reduction(op_of(opts), tensors[0].dtype, "allreduce_coalesced")
        staging = Staging()
        at, kept = staging.targets(tensors, keeps=True)
        count = width * sum(tensor.numel() for tensor in tensors)
        return self._run("WarrenAllreduce", (at, at, count, kind, op), list(tensors), opts, staging, kept)

    def _sparse_allreduce(self, tensor: Tensor, opts: Any) -> C10dWork:
        """Replaces the tensor with the sum of all ranks' sparse tensors. Blocks the caller. Raises RuntimeError for layouts other than COO, and
        for operations other than the sum."""
        if tensor.layout != torch.sparse_coo:
            raise RuntimeError(f"allreduce: sparse tensors must be torch.sparse_coo, but this one is {tensor.layout}; give it "
                               "tensor.to_sparse_coo()")
        if int(kind_of(op_of(opts))) != int(kind_of(dist.ReduceOp.SUM)):
            raise RuntimeError("allreduce of sparse tensors: the backend warren supports only their sum")
        own = tensor.detach().coalesce().cpu()
        counts = self._sparse_counts(own)
        indices = self._gather_rows(own.indices().t(), counts)
        values = self._gather_rows(own.values(), counts)
        total = torch.sparse_coo_tensor(indices.t(), values, own.shape, **_UNCHECKED).coalesce()
        with torch.no_grad():
            tensor.copy_(total.to(tensor.device))
        return Done([tensor])

    def _sparse_counts(self, own: Tensor) -> List[int]:
        """Returns the number of elements of each rank. Raises RuntimeError on all ranks if their tensors differ in type, shape or sparse
        dimensions."""
        about = f"{own.dtype} of shape {list(own.shape)} with {own.sparse_dim()} sparse dimensions"
        record = json.dumps([own._nnz(), about]).encode()
        lengths = self._communicator.allgather(np.array([len(record)], np.int64)).tolist()
        records = self._communicator.allgather(np.frombuffer(record, np.uint8), counts=lengths).tobytes()
        ends = np.cumsum(lengths).tolist()
        all_ranks = [json.loads(records[end - length:end]) for end, length in zip(ends, lengths)]
        for rank, (_, others) in enumerate(all_ranks):
            if others != all_ranks[0][1]:
                raise RuntimeError(f"allreduce of sparse tensors: rank 0 gives {all_ranks[0][1]}, and rank {rank} {others}; all ranks "
                                   "must give tensors of the same type and shape")
        return [count for count, _ in all_ranks]

    def _gather_rows(self, own: Tensor, counts: Sequence[int]) -> Tensor:
        """Concatenates the rows of all ranks; a rank may have none."""
        source = materialized(own)
        gathered = torch.empty((sum(counts), *own.shape[1:]), dtype=own.dtype)
        width = num_bytes(gathered) // max(1, sum(counts))
        collectives.Call("WarrenAllgatherV", (self._comm, source.data_ptr(), gathered.data_ptr(),
                                              c_sizes(count * width for count in counts), _c.BYTES), gathered, source).run()
        return gathered

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: Any = None) -> C10dWork:
        tensor = one(tensors, "reduce")
        root = root_of(opts)
        kind, operation, width = reduction(op_of(opts) if op is None else op, tensor.dtype, "reduce")
        staging = Staging()
        is_root = root == self._rank
        data = staging.target(tensor, keeps=True) if is_root else staging.source(tensor)
        at = data.data_ptr()
        return self._run("WarrenReduce", (at, at if is_root else None, width * data.numel(), kind, operation, root), [tensor],
                         opts, staging, data, seconds_of(timeout))

    def _reduce_scatter_base(self, output: Tensor, source: Tensor, opts: Any = None) -> C10dWork:
        check(output, "reduce_scatter")
        check(source, "reduce_scatter")
        if output.dtype != source.dtype or source.numel() != self._size * output.numel():
            raise ValueError(f"reduce_scatter of {source.numel()} elements of {source.dtype} to {output.numel()} of "
                             f"{output.dtype} on each of {self._size} ranks")
        if _device.has(output, source):
            return _device.reduce_scatter(self._comm, output, [source], opts)
        kind, op, width = reduction(op_of(opts), source.dtype, "reduce_scatter")
        staging = Staging()
        data, made = staging.source(source), staging.target(output)
        return self._run("WarrenReduceScatter", (data.data_ptr(), made.data_ptr(), width * made.numel(), kind, op), [output],
                         opts, staging, (data, made))

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter(self, outputs: Any, sources: Any, opts: Any = None) -> C10dWork:
        output = one(outputs, "reduce_scatter")
        parts = self._parts(sources, output, "reduce_scatter")
        if parts[self._rank].numel() != output.numel():
            raise ValueError(f"reduce_scatter: this rank's part has {parts[self._rank].numel()} elements, but its tensor has "
                             f"{output.numel()}")
        if _device.alike([*parts, output]):
            return _device.reduce_scatter(self._comm, output, list(parts), opts)
        kind, op, width = reduction(op_of(opts), output.dtype, "reduce_scatter")
        staging = Staging()
        at, kept = staging.sources(parts)
        made = staging.target(output)
        counts = c_sizes(width * part.numel() for part in parts)
        return self._run("WarrenReduceScatterV", (at, made.data_ptr(), counts, kind, op), [output], opts, staging, (kept, made))

    # --- collectives that only move data ---

    def broadcast(self, tensors: Any, opts: Any = None, timeout: Any = None) -> C10dWork:
        tensor = one(tensors, "broadcast")
        if tensor.is_cuda:
            return _device.broadcast(self._comm, tensor, opts)
        root = root_of(opts)
        staging = Staging()
        data = staging.target(tensor, keeps=True) if root != self._rank else staging.source(tensor)
        return self._run("WarrenBroadcast", (data.data_ptr(), num_bytes(data), _c.BYTES, root), [tensor], opts, staging, data,
                         seconds_of(timeout))

    def _allgather_base(self, output: Tensor, source: Tensor, opts: Any = None) -> C10dWork:
        check(output, "allgather")
        check(source, "allgather")
        if output.dtype != source.dtype or output.numel() != self._size * source.numel():
            raise ValueError(f"allgather of {source.numel()} elements of {source.dtype} from each of {self._size} ranks to "
                             f"{output.numel()} of {output.dtype}")
        if _device.has(output, source):
            return _device.allgather(self._comm, [output], source)
        staging = Staging()
        data, made = staging.source(source), staging.target(output)
        return self._run("WarrenAllgather", (data.data_ptr(), made.data_ptr(), num_bytes(data), _c.BYTES), [output], opts, staging,
                         (data, made))

    all_gather_single = _allgather_base

    def allgather(self, outputs: Any, sources: Any, opts: Any = None) -> C10dWork:
        source = one(sources, "allgather")
        parts = self._parts(outputs, source, "allgather")
        if parts[self._rank].numel() != source.numel():
            raise ValueError(f"allgather: this rank has {source.numel()} elements, but its output has {parts[self._rank].numel()}")
        if _device.alike([*parts, source]):
            return _device.allgather(self._comm, list(parts), source)
        staging = Staging()
        data = staging.source(source)
        at, kept = staging.targets(parts)
        return self._run("WarrenAllgatherV", (data.data_ptr(), at, c_sizes(num_bytes(part) for part in parts), _c.BYTES),
                         list(parts), opts, staging, (data, kept))

    def gather(self, outputs: Any, sources: Any, opts: Any = None) -> C10dWork:
        source, root = one(sources, "gather"), root_of(opts)
        staging = Staging()
        data = staging.source(source)
        own = (data.data_ptr(), num_bytes(data))
        if root != self._rank:
            if outputs and outputs != [[]]:
                raise ValueError("gather: only the root gives tensors for the result")
            return self._run("WarrenGatherV", (*own, None, None, _c.BYTES, root), [], opts, staging, data)
        parts = self._parts(outputs, source, "gather")
        at, kept = staging.targets(parts)
        return self._run("WarrenGatherV", (*own, at, c_sizes(num_bytes(part) for part in parts), _c.BYTES, root), list(parts), opts,
                         staging, (data, kept))

    def scatter(self, outputs: Any, sources: Any, opts: Any = None) -> C10dWork:
        output, root = one(outputs, "scatter"), root_of(opts)
        staging = Staging()
        made = staging.target(output)
        own = (made.data_ptr(), num_bytes(made), _c.BYTES, root)
        if root != self._rank:
            if sources and sources != [[]]:
                raise ValueError("scatter: only the root gives tensors to scatter")
            return self._run("WarrenScatterV", (None, None, *own), [output], opts, staging, made)
        parts = self._parts(sources, output, "scatter")
        at, kept = staging.sources(parts)
        return self._run("WarrenScatterV", (at, c_sizes(num_bytes(part) for part in parts), *own), [output], opts, staging,
                         (kept, made))

    def alltoall_base(self, output: Tensor, source: Tensor, output_sizes: Sequence[int], source_sizes: Sequence[int],
                      opts: Any = None) -> C10dWork:
        check(output, "all_to_all")
        check(source, "all_to_all")
        if output.dtype != source.dtype:
            raise ValueError(f"all_to_all: tensors of {source.dtype} and of {output.dtype}")
        staging = Staging()
        data, made = staging.source(source), staging.target(output)
        part = num_bytes(source) // self._size
        if not source_sizes and not output_sizes and len(source) % self._size == 0 and num_bytes(output) == num_bytes(source):
            return self._run("WarrenAllToAll", (data.data_ptr(), made.data_ptr(), part, _c.BYTES), [output], opts, staging,
                             (data, made))
        arguments = (data.data_ptr(), self._rows(source, source_sizes), made.data_ptr(), self._rows(output, output_sizes))
        return self._run("WarrenAllToAllV", (*arguments, _c.BYTES), [output], opts, staging, (data, made))

    all_to_all_single = alltoall_base

    def alltoall(self, outputs: List[Tensor], sources: List[Tensor], opts: Any = None) -> C10dWork:
        for parts in (outputs, sources):
            self._check_list(parts, sources[0] if sources else None, "all_to_all")
        staging = Staging()
        source, kept_source = staging.sources(sources)
        target, kept_target = staging.targets(outputs)
        arguments = (source, c_sizes(num_bytes(part) for part in sources), target, c_sizes(num_bytes(part) for part in outputs))
        return self._run("WarrenAllToAllV", (*arguments, _c.BYTES), list(outputs), opts, staging, (kept_source, kept_target))

    def barrier(self, opts: Any = None, timeout: Any = None) -> C10dWork:
        timeout = timeout if timeout is not None else getattr(opts, "timeout", None)
        return self._run("WarrenBarrier", (), [], opts, timeout=seconds_of(timeout))

    # --- messages ---

    def send(self, tensors: Any, to: int, tag: int = 0) -> C10dWork:
        tensor = one(tensors, "send")
        data = Staging().source(tensor)
        handle = self._mailbox.send_bytes(data.data_ptr(), num_bytes(data), self._ranks[to], self._tag(tag), self._seconds, data)
        return Work(handle, [tensor], Staging())

    def recv(self, tensors: Any, source: int, tag: int = 0) -> C10dWork:
        return self._recv(tensors, self._ranks[source], tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> C10dWork:
        return self._recv(tensors, collectives.Mailbox.ANY_RANK, tag)

    def _recv(self, tensors: Any, source: int, tag: int) -> C10dWork:
        tensor = one(tensors, "recv")
        staging = Staging()
        data = staging.target(tensor)
        found = ctypes.c_int(source)
        handle = self._mailbox.recv_bytes(data.data_ptr(), num_bytes(data), source, self._tag(tag), self._seconds, data, found)
        return Receive(handle, [tensor], staging, lambda: self._ranks.index(found.value))

    def _tag(self, tag: int) -> int:
        """Returns the mailbox's tag for a tag of this group: groups share the mailbox of the default group, so each has its own range of tags.
        Raises ValueError unless `tag` is from 0 to 2^31 - 1."""
        if not 0 <= tag < 1 << 31:
            raise ValueError(f"tag {tag}: expected 0 to {(1 << 31) - 1}")
        return self._tags << 31 | tag

    # --- several of the operations above in one call, for functional collectives and FSDP ---

    def _all(self, works: List[C10dWork], opts: Any) -> C10dWork:
        result = [tensor for work in works for tensor in work.result()]
        if not is_async(opts):
            return Done(result)
        return Several(works, result)

    def allgather_into_tensor_coalesced(self, outputs: List[Tensor], sources: List[Tensor], opts: Any = None) -> C10dWork:
        return self._all([self._allgather_base(*pair, opts) for pair in zip(outputs, sources)], opts)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def reduce_scatter_tensor_coalesced(self, outputs: List[Tensor], sources: List[Tensor], opts: Any = None) -> C10dWork:
        return self._all([self._reduce_scatter_base(*pair, opts) for pair in zip(outputs, sources)], opts)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def allgather_coalesced(self, outputs: List[List[Tensor]], sources: List[Tensor], opts: Any = None) -> C10dWork:
        """`outputs[r]`: the tensors of rank r."""
        lists = list(zip(*outputs))
        if len(outputs) != self._size or len(lists) != len(sources):
            raise ValueError(f"allgather_coalesced: {len(outputs)} lists of tensors for {len(sources)} tensors of each of "
                             f"{self._size} ranks")
        return self._all([self.allgather([list(parts)], [source], opts) for parts, source in zip(lists, sources)], opts)

    # --- methods that c10d expects of its built-in backends ---

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier over the store: rank 0 detects missing ranks, and the group stays usable. If ranks are missing, raises RuntimeError on all
        ranks that have called it; the message names all missing ranks with `wait_all_ranks`, else only the first one."""
        number, self._num_monitored = self._num_monitored, self._num_monitored + 1
        timeout = timeout if timeout is not None else self._timeout
        name = f"monitored_barrier/{number}"
        if self._rank != 0:
            self._store.set(f"{name}/{self._rank}", b"here")
            # Rank 0 waits for `timeout`, and may have started late.
            self._store.wait([name], 2 * timeout + datetime.timedelta(seconds=5))
            text = self._store.get(name).decode()
        else:
            end = time.monotonic() + timeout.total_seconds()
            missing: List[int] = []
            for rank in range(1, self._size):
                left = datetime.timedelta(seconds=max(0.001, end - time.monotonic()))
                try:
                    self._store.wait([f"{name}/{rank}"], left)
                except RuntimeError:
                    missing.append(rank)
                    if not wait_all_ranks:
                        break
            text = ""
            if missing:
                who = ("Rank " if len(missing) == 1 else "Ranks ") + ", ".join(map(str, missing))
                text = f"[Rank 0]: {who} failed to pass monitoredBarrier in {round(timeout.total_seconds() * 1000)} ms"
            self._store.set(name, text.encode())
        if text:
            raise RuntimeError(text)

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return 0

    # --- checks ---

    def _parts(self, given: Any, like: Tensor, what: str) -> Sequence[Tensor]:
        """Returns the tensors for all ranks, which are `given`, or the list in it. Raises the errors of `_check_list`."""
        parts: Sequence[Tensor] = given[0] if given and not isinstance(given[0], Tensor) else given
        self._check_list(parts, like, what)
        return parts

    def _check_list(self, tensors: Sequence[Tensor], like: Optional[Tensor], what: str) -> None:
        if len(tensors) != self._size:
            raise ValueError(f"{what}: {len(tensors)} tensors in the list, but there are {self._size} ranks")
        for tensor in tensors:
            if like is not None and check(tensor, what).dtype != like.dtype:
                raise ValueError(f"{what}: tensors of {tensor.dtype} and of {like.dtype}")

    def _rows(self, tensor: Tensor, counts: Sequence[int]) -> Any:
        """The number of bytes for each rank: counts[r] rows for rank r, or equal parts if `counts` is empty. Raises ValueError unless
        `counts` matches the ranks and the tensor's rows."""
        rows = len(tensor) if tensor.dim() > 0 else 0
        if not counts:
            if rows % self._size:
                raise ValueError(f"all_to_all: {rows} rows cannot be divided equally among {self._size} ranks")
            counts = [rows // self._size] * self._size
        if len(counts) != self._size or sum(counts) != rows:
            raise ValueError(f"all_to_all: the sizes {list(counts)} are for {len(counts)} ranks and {sum(counts)} rows; there are "
                             f"{self._size} ranks, and {rows} rows")
        return c_sizes(count * row_bytes(tensor) for count in counts)
