"""Python objects exchanged between ranks: pickled, with cloudpickle if it is installed, and sealed with the job's token
(warren._engine.sealed). In a job without a token, such as one started by mpirun, all ranks are trusted: unpickling can run any code that
the sender chose."""
from typing import Any, List, Optional

import numpy as np

from warren._engine import sealed as _sealed
from warren.horovod._arrays import allgather, broadcast
from warren.horovod._job import ProcessSet, global_process_set, rank

try:
    from cloudpickle import dump as _dump
except ImportError:
    _dump = _sealed.dump


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """Returns the root's object. It is pickled, and its length is sent first. Raises TypeError on all ranks if it cannot be pickled, and
    RuntimeError if the bytes are not sealed with the job's token."""
    whole = process_set.named("broadcast_object").name_of("broadcast_object", name)
    is_root = rank() == root_rank
    message = _sealed.seal_or_refuse(obj, "broadcast_object", root_rank, write=_dump) if is_root else b""
    data = np.frombuffer(message, np.uint8) if is_root else np.empty(0, np.uint8)
    (length,) = broadcast(np.array([len(data)]), f"{whole}.length", root_rank, process_set).wait()
    sent = broadcast(data if is_root else np.empty(length, np.uint8), whole, root_rank, process_set).wait()
    return obj if is_root and not _sealed.is_refusal(message) else _sealed.loads(sent.tobytes(), "broadcast_object", root_rank)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """Returns the objects of all ranks, in rank order. Errors are as for `broadcast_object`."""
    whole = process_set.named("allgather_object").name_of("allgather_object", name)
    own = _sealed.seal_or_refuse(obj, "allgather_object", rank(), write=_dump)
    (lengths,) = allgather([np.array([len(own)])], f"{whole}.lengths", process_set).wait()
    (gathered,) = allgather([np.frombuffer(own, np.uint8)], whole, process_set).wait()
    ends = np.cumsum(lengths)
    return [_sealed.loads(gathered[end - length:end].tobytes(), "allgather_object", source)
            for source, end, length in zip(process_set.ranks or [], ends, lengths)]
