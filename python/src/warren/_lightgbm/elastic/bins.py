"""Serializes the bins of a Dataset, for workers that join after the first generation and bin their rows in the same way."""
import ctypes
from typing import Any, Mapping

import lightgbm
from lightgbm.basic import _LIB, _safe_call


def is_known() -> bool:
    """Whether this version of LightGBM has the functions that this module calls (4.0 and later)."""
    return hasattr(_LIB, "LGBM_DatasetSerializeReferenceToBinary")


def to_bytes(dataset: "lightgbm.Dataset") -> bytes:
    """Returns the bins of a constructed Dataset."""
    buffer, size = ctypes.c_void_p(), ctypes.c_int32()
    _safe_call(_LIB.LGBM_DatasetSerializeReferenceToBinary(dataset._handle, ctypes.byref(buffer), ctypes.byref(size)))  # pylint: disable=protected-access
    try:
        # LightGBM has no function that copies several bytes. This takes about 1 s for 700 features with 255 bins.
        found, one = bytearray(size.value), ctypes.c_uint8()
        for place in range(size.value):
            _safe_call(_LIB.LGBM_ByteBufferGetAt(buffer, ctypes.c_int32(place), ctypes.byref(one)))
            found[place] = one.value
    finally:
        _safe_call(_LIB.LGBM_ByteBufferFree(buffer))
    return bytes(found)


def from_bytes(content: bytes, params: Mapping[str, Any]) -> "lightgbm.Dataset":
    """Returns a Dataset with these bins, to be passed as `reference=`."""
    # LightGBM 3 has these functions under other names.
    from lightgbm.basic import _c_str, _param_dict_to_str  # pylint: disable=import-outside-toplevel

    handle = ctypes.c_void_p()
    _safe_call(_LIB.LGBM_DatasetCreateFromSerializedReference(
        content, ctypes.c_int32(len(content)), ctypes.c_int64(1), ctypes.c_int32(1), _c_str(_param_dict_to_str(dict(params))),
        ctypes.byref(handle)))
    reference = lightgbm.Dataset(None, params=dict(params))
    reference._handle = handle  # pylint: disable=protected-access
    return reference
