"""Converts Python objects to bytes for other processes of the job, and back.

Unpickling can run arbitrary code, so a job with a token (`DMLC_JOB_TOKEN`) unpickles only bytes from processes that have the token: a
pickle carries an HMAC-SHA-256, with a key derived from the token, over the message's kind, the name of the call, the sender's rank and the
body. The HMAC is verified first. Without a token (Dask, Spark, a third-party tracker), a call with `objects` sends pickles and trusts every
peer of the communicator; a call without `objects` sends only plain data, as JSON.

The key is derived as in wire/job_token.h, with its own purpose string. A message consists of one byte for its kind (JSON, or a pickle or
refusal with or without a seal), the seal (32 bytes, if there is a token), and the body."""
import base64
import hashlib
import hmac
import io
import json
import os
import pickle
from typing import Any, Callable, List, Optional, Union

import numpy as np
from numpy.typing import NDArray

_VARIABLE = "DMLC_JOB_TOKEN"
_SEAL_BYTES = 32
_PICKLE, _JSON, _REFUSAL, _SEALED_PICKLE, _SEALED_REFUSAL = b"P", b"J", b"E", b"p", b"e"

Bytes = Union[bytes, bytearray, memoryview]


def dump(value: Any, file: Any) -> None:
    """Pickles the value into a file."""
    pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)


def token() -> Optional[bytes]:
    """Returns the job's token, or None if the process has none. Raises RuntimeError, whose message does not quote the token, if the token
    is malformed."""
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return None
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise RuntimeError(f"{_VARIABLE} is malformed: a job token has 64 hexadecimal digits")
    return found


def _derived(secret: bytes, purpose: bytes) -> bytes:
    """Returns the key for one purpose, derived as by JobToken::Derive in wire/job_token.h."""
    return hmac.new(secret, b"warren " + purpose + b"\0", hashlib.sha256).digest()


def _code(secret: bytes, form: bytes, call: str, source: int, body: Bytes) -> bytes:
    code = hmac.new(_derived(secret, b"python objects"), form + f"{call}\0{source}\0".encode(), hashlib.sha256)
    code.update(body)
    return code.digest()


def seal(value: Any, call: str, source: int, *, objects: bool = True, write: Callable[[Any, Any], None] = dump,
         secret: Optional[bytes] = None) -> memoryview:
    """Returns the message from which `loads` restores `value`, sent by rank `source` in the call named `call`. Raises any exception of
    `write`, which pickles the value into a file. `secret`: the token to use in place of this process's. Without a token and without
    `objects`, raises TypeError for anything but None, bool, int, float, str, bytes, tuple, list, dict, and NumPy's scalars, dtypes and
    arrays without objects and fields."""
    secret = secret or token()
    buffer = io.BytesIO()
    if secret is None and not objects:
        try:
            buffer.write(_JSON + to_text(value).encode())
        except TypeError as error:
            raise TypeError(f"{error}, and without the job's token ({_VARIABLE}) this call sends only plain data") from None
        return buffer.getbuffer()
    if secret is None:
        buffer.write(_PICKLE)
        write(value, buffer)
        return buffer.getbuffer()
    buffer.write(_SEALED_PICKLE + bytes(_SEAL_BYTES))
    write(value, buffer)
    return _with_seal(buffer, secret, call, source)


def _with_seal(buffer: io.BytesIO, secret: bytes, call: str, source: int) -> memoryview:
    message = buffer.getbuffer()
    message[1:1 + _SEAL_BYTES] = _code(secret, bytes(message[:1]), call, source, message[1 + _SEAL_BYTES:])
    return message


def seal_or_refuse(value: Any, call: str, source: int, *, objects: bool = True, write: Callable[[Any, Any], None] = dump) -> memoryview:
    """Like `seal`, for a collective call: an object that cannot be sent becomes a message for which `loads` raises TypeError on all ranks."""
    try:
        return seal(value, call, source, objects=objects, write=write)
    except Exception as error:  # pylint: disable=broad-except
        why, secret = f"{type(error).__name__}: {error}".encode(errors="replace"), token()
        if secret is None:
            return memoryview(bytearray(_REFUSAL + why))
        return _with_seal(io.BytesIO(_SEALED_REFUSAL + bytes(_SEAL_BYTES) + why), secret, call, source)


def is_refusal(message: Bytes) -> bool:
    """Whether `seal_or_refuse` made the message for an object that cannot be sent."""
    return bytes(message[:1]) in (_REFUSAL, _SEALED_REFUSAL)


def loads(message: Bytes, call: str, source: int, *, objects: bool = True, secret: Optional[bytes] = None) -> Any:
    """Returns the value that rank `source` passed to `seal` for this call, with the same `secret`. Raises RuntimeError, without unpickling
    anything, unless the message is sealed with the token of this process; in a process without a token, unless the message is unsealed and,
    without `objects`, not a pickle. Raises TypeError if the object could not be sent."""
    view = memoryview(message)
    form, secret = bytes(view[:1]), secret or token()
    refused = f"{call}: the message of rank {source} was refused and not unpickled: "
    if secret is not None:
        body = view[1 + _SEAL_BYTES:]
        if form not in (_SEALED_PICKLE, _SEALED_REFUSAL) or len(view) <= _SEAL_BYTES:
            raise RuntimeError(f"{refused}it is not sealed with the job's token; that rank does not belong to this job, or {_VARIABLE} is "
                               "missing there")
        if not hmac.compare_digest(_code(secret, form, call, source, body), view[1:1 + _SEAL_BYTES]):
            raise RuntimeError(f"{refused}its seal does not match; that rank has another {_VARIABLE}, or was in another call, or the "
                               "message was changed on its way")
    else:
        body = view[1:]
        if form in (_SEALED_PICKLE, _SEALED_REFUSAL):
            raise RuntimeError(f"{refused}it is sealed with the job's token, and this process has none; {_VARIABLE} must be set to the "
                               "same value for all workers")
        if form == _PICKLE and not objects or form not in (_PICKLE, _JSON, _REFUSAL):
            raise RuntimeError(f"{refused}it is not the plain data that this call takes; that rank does not belong to this job, or its "
                               "version of Warren differs")
    if form in (_REFUSAL, _SEALED_REFUSAL):
        raise TypeError(f"rank {source}'s object cannot be sent to the other ranks: {bytes(body).decode(errors='replace')}")
    if form == _JSON:
        try:
            return from_text(bytes(body))
        except ValueError as error:
            raise RuntimeError(f"{refused}it is malformed ({error})") from None
    return pickle.loads(body)


def to_text(value: Any) -> str:
    """Returns plain data as JSON, from which `from_text` restores them without running any code. Raises TypeError for data that are not
    plain: `seal` lists those that are."""
    return json.dumps(_plain(value))


def from_text(text: Union[str, bytes]) -> Any:
    """Returns the data that were passed to `to_text`. Raises ValueError for malformed text."""
    try:
        return _restored(json.loads(text))
    except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
        raise ValueError(type(error).__name__) from None


def _plain(value: Any) -> Any:
    """Returns the value in a form that JSON can represent: None, bool, int, float and str are unchanged, and other data become lists whose
    first element names their type. Raises TypeError for data that are not plain."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (tuple, list):
        return [kind.__name__, *map(_plain, value)]
    if kind is dict:
        return ["dict", *([_plain(key), _plain(one)] for key, one in value.items())]
    if kind is bytes:
        return ["bytes", base64.b64encode(value).decode()]
    if isinstance(value, np.dtype) and value.names is None and value.itemsize and not value.hasobject:
        return ["dtype", value.str]
    if isinstance(value, (np.generic, np.ndarray)) and kind in (np.ndarray, value.dtype.type) and not value.dtype.hasobject:
        array = np.ascontiguousarray(value)
        shape: Optional[List[int]] = list(value.shape) if kind is np.ndarray else None
        return ["array", _plain(array.dtype), shape, base64.b64encode(array.tobytes()).decode()]
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not plain data")


def _restored(value: Any) -> Any:
    if not isinstance(value, list):
        if isinstance(value, dict):
            raise ValueError("not written by _plain")
        return value
    kind, rest = value[0], value[1:]
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(map(_restored, rest))
    if kind == "dict":
        return {_restored(key): _restored(one) for key, one in rest}
    if kind == "bytes":
        return base64.b64decode(rest[0])
    if kind == "dtype":
        dtype = np.dtype(str(rest[0]))
        if dtype.hasobject:
            raise ValueError("a dtype of objects")
        return dtype
    if kind == "array":
        dtype, shape, data = _restored(rest[0]), rest[1], base64.b64decode(rest[2])
        array: NDArray[Any] = np.frombuffer(data, dtype) if data else np.empty(0, dtype)
        return array[0] if shape is None else array.reshape(shape).copy()
    raise ValueError("not written by _plain")


def prove_to_each_other(rank: int, size: int, greatest: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    """Makes all ranks prove to each other that they know the job's token. A collective call, for a communicator whose ranks have not been
    verified. `greatest` returns the elementwise maximum over all ranks of an array of uint8 or uint64. Needs no proofs if no rank has a
    token. Raises RuntimeError, before any other data of the ranks are read, unless all of them have the token: the error names one rank
    that lacks it, or the ranks whose proofs are wrong.

    Each rank sends 32 random bytes, and then an HMAC-SHA-256 over its own rank and the random bytes of all ranks."""
    secret = token()
    said = np.array([size - rank if secret else 0, 0 if secret else size - rank], np.uint64)
    has, lacks = (int(number) for number in greatest(said))
    if not has and secret is None:
        return
    if lacks or secret is None:
        without = f"rank {size - lacks}" if 0 < lacks <= size else "a rank"
        raise RuntimeError(f"{without} does not have the job's token ({_VARIABLE}), and other ranks of this communicator do: it does not "
                           "belong to this job, or its environment lacks it")
    nonce = os.urandom(_SEAL_BYTES)
    nonces = _of_all(rank, size, nonce, greatest)
    key = _derived(secret, b"ranks")

    def proof(of: int) -> bytes:
        return hmac.new(key, f"{of} of {size}\0".encode() + b"".join(nonces), hashlib.sha256).digest()

    proofs = _of_all(rank, size, proof(rank), greatest)
    wrong = [of for of in range(size) if not hmac.compare_digest(proofs[of], proof(of))]
    if nonces[rank] != nonce and rank not in wrong:
        wrong.append(rank)
    if wrong:
        shown = ", ".join(map(str, wrong[:8])) + (f" and {len(wrong) - 8} more" if len(wrong) > 8 else "")
        raise RuntimeError(f"rank{'s' if len(wrong) > 1 else ''} {shown} of {size} did not prove knowledge of the job's token: a process "
                           "that does not belong to this job has taken a rank; nothing was sent to it. The tracker's log has its address")


def _of_all(rank: int, size: int, own: bytes, greatest: Callable[[NDArray[Any]], NDArray[Any]]) -> List[bytes]:
    whole = np.zeros((size, len(own)), np.uint8)
    whole[rank] = np.frombuffer(own, np.uint8)
    found = np.asarray(greatest(whole.reshape(-1))).reshape(size, len(own))
    return [row.tobytes() for row in found]
