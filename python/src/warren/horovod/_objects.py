"""Objects of Python between ranks: pickled, by cloudpickle where it is installed."""
import pickle
from typing import Any, List, Optional

import numpy as np

from warren.horovod._arrays import allgather, broadcast
from warren.horovod._job import ProcessSet, global_process_set, rank

try:
    from cloudpickle import dumps as _dumps
except ImportError:
    _dumps = pickle.dumps


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """The root's. It is pickled, and its length told first."""
    whole = process_set.named("broadcast_object").name_of("broadcast_object", name)
    is_root = rank() == root_rank
    data = np.frombuffer(_dumps(obj), np.uint8) if is_root else np.empty(0, np.uint8)
    (length,) = broadcast(np.array([len(data)]), f"{whole}.length", root_rank, process_set).wait()
    sent = broadcast(data if is_root else np.empty(length, np.uint8), whole, root_rank, process_set).wait()
    return obj if is_root else pickle.loads(sent.tobytes())


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """All ranks', in their order."""
    whole = process_set.named("allgather_object").name_of("allgather_object", name)
    data = np.frombuffer(_dumps(obj), np.uint8)
    (lengths,) = allgather([np.array([len(data)])], f"{whole}.lengths", process_set).wait()
    (gathered,) = allgather([data], whole, process_set).wait()
    ends = np.cumsum(lengths)
    return [pickle.loads(gathered[end - length:end].tobytes()) for end, length in zip(ends, lengths)]
