"""The keys and values of key-value stores: NumPy arrays, PyTorch tensors, MXNet arrays (anything with `asnumpy`), and lists of these, one
for each device."""
import sys
from typing import Any, Iterable, List, Sequence, Tuple, Union

import numpy as np

from warren._parameter_server.shards import Array

Key = Union[str, int]


def pairs(keys: Any, values: Any, what: str) -> List[Tuple[Key, List[Any]]]:
    """Returns each key with its values on all devices."""
    if not isinstance(keys, (list, tuple)):
        return [(_key(keys, what), _devices(values, keys, what))]
    if not isinstance(values, (list, tuple)) or len(values) != len(keys):
        raise ValueError(f"{what} of {len(keys)} keys takes a list of as many values")
    return [(_key(key, what), _devices(value, key, what)) for key, value in zip(keys, values)]


def _key(key: Any, what: str) -> Key:
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return int(key)
    if not isinstance(key, str):
        raise TypeError(f"{what}: keys are str or int, or a list of them, not {type(key).__name__}")
    return key


def _devices(value: Any, key: Any, what: str) -> List[Any]:
    devices = list(value) if isinstance(value, (list, tuple)) else [value]
    if not devices:
        raise ValueError(f"{what}: key {key!r} has an empty list of values")
    return devices


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def read(value: Any, what: str) -> Array:
    """Returns the value as an array, without a copy if it is a NumPy array or a tensor in host memory."""
    if isinstance(value, np.ndarray):
        return value
    if _is_tensor(value):
        if value.layout != sys.modules["torch"].strided or str(value.dtype) == "torch.bfloat16":
            raise TypeError(f"{what}: a dense tensor of a type that NumPy has is expected, not {value.layout} of {value.dtype}")
        return np.asarray(value.detach().cpu().numpy())
    if getattr(value, "stype", "default") != "default":
        raise TypeError(f"{what}: dense arrays are expected, not {value.stype}; see tostype('default')")
    if hasattr(value, "asnumpy"):
        return np.asarray(value.asnumpy())
    raise TypeError(f"{what}: values are NumPy arrays, tensors, arrays of MXNet, or a list of them, not {type(value).__name__}")


def write(array: Array, targets: Iterable[Any], what: str) -> None:
    """Copies the array into each target."""
    for target in targets:
        if tuple(target.shape) != array.shape:
            raise ValueError(f"{what}: the result has the shape {array.shape}, but its output has {tuple(target.shape)}")
        if isinstance(target, np.ndarray):
            target[...] = array
        elif _is_tensor(target):
            target.detach().copy_(sys.modules["torch"].from_numpy(array))
        else:
            target[:] = array


def summed(values: Sequence[Any], what: str) -> Array:
    """Returns the sum over the devices, in a new contiguous array."""
    total = np.array(read(values[0], what), order="C")
    for value in values[1:]:
        other = read(value, what)
        if other.shape != total.shape or other.dtype != total.dtype:
            raise ValueError(f"{what}: one device has {total.shape} {total.dtype}, and another {other.shape} {other.dtype}")
        total += other
    return total


def shared(values: Sequence[Any], what: str) -> Any:
    """If there is only one value, and a result can be received into its memory, returns that memory as an array, else None."""
    if len(values) != 1 or not (isinstance(values[0], np.ndarray) or (_is_tensor(values[0]) and values[0].device.type == "cpu")):
        return None
    array = read(values[0], what)
    return array if array.flags.c_contiguous and array.flags.writeable else None
