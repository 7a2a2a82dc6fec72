"""Warren's engine under XGBoost 2.1 and later, for `warren.xgboost`: it runs XGBoost's collectives once all ranks of a communicator have
agreed on it (rabit_engine/xgboost/coll_engine.h).

WARREN_XGBOOST_ENGINE selects the engine: `own` is XGBoost's; `warren` is Warren's, with an error if it cannot be used; `auto` (the default)
is Warren's if it can be used. The ranks agree on one engine: if any rank cannot use Warren's or is set to `own`, no rank uses Warren's."""
import contextlib
import ctypes
import functools
import math
import os
import re
import sys
import threading
from typing import Any, Optional, Tuple

import numpy as np
import xgboost as xgb

from warren._engine import native as _native
from warren.data import _peers

_WHY_BYTES = 2000
#: The beginning of the ranks' first message, whose length no XGBoost call has. A rank that is in another call receives it as that call's
#: result, in which the first two words are invalid. (XGBoost's links do not compare calls.)
_GREETING = (-1, -1, 0x57415252, 0x454e2022, 2, 7, 1, 8, 2)
_thread = threading.local()


def serves() -> bool:
    """Whether the engine runs the collectives of this thread's communicator."""
    return getattr(_thread, "serves", False)


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    library = _native.library("librabit_xgboost.so")
    library.WarrenXGBoostCheck.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.WarrenXGBoostBegin.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    library.WarrenXGBoostEnd.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    library.WarrenXGBoostNumServed.restype = ctypes.c_uint64
    return library


def num_served() -> int:
    """The number of collective calls that the engine has run in this process."""
    return int(_library().WarrenXGBoostNumServed()) if _library.cache_info().currsize else 0


def _in_xgboost() -> Optional[int]:
    """An address inside XGBoost's library."""
    return ctypes.cast(xgb.core._LIB.XGBoostVersion, ctypes.c_void_p).value  # pylint: disable=protected-access


def _choice() -> str:
    choice = os.environ.get("WARREN_XGBOOST_ENGINE") or "auto"
    if choice not in ("own", "warren", "auto"):
        raise RuntimeError(f"WARREN_XGBOOST_ENGINE is {choice!r}, expected 'own', 'warren' or 'auto'")
    return choice


def _objection(choice: str) -> str:
    """Returns the reason why the engine cannot be used here; "" if it can."""
    why = ctypes.create_string_buffer(_WHY_BYTES)
    try:
        found = "" if _library().WarrenXGBoostCheck(_in_xgboost(), why, _WHY_BYTES) else _text(why)
    except (OSError, AttributeError) as error:
        found = str(error)
    return "WARREN_XGBOOST_ENGINE is own" if choice == "own" else found


def _text(buffer: Any) -> str:
    return str(buffer.value.decode(errors="replace"))


def begin(timeout: Any = None) -> bool:
    """Turns on the engine for the communicator that this thread has joined, if all its ranks can use it, and returns whether it is on. A
    collective call. If a rank cannot use the engine, all stay on XGBoost's own, and the lowest rank that is not set to `own` prints the
    reason on standard error. A call waits `timeout` seconds for a peer that is alive, like XGBoost's `dmlc_timeout` (None means half an
    hour). Does nothing in a communicator of one rank. Raises RuntimeError if XGBoost's own communication fails, and on all ranks if
    WARREN_XGBOOST_ENGINE of any rank demands the engine and it cannot be used: if only that rank ended, the others would report the loss of a
    peer."""
    if serves():  # the previous communicator was never left; the ranks must agree again, over the new one
        end(failed=True)
    rank, size = xgb.collective.get_rank(), xgb.collective.get_world_size()
    if size < 2:
        if "librabit_xgboost" in os.environ.get("LD_PRELOAD", ""):
            _objection("auto")  # otherwise the preloaded library would print at exit that XGBoost did not use it
        return False
    try:
        choice = _choice()
        objection = _objection(choice)
    except RuntimeError as error:
        choice, objection = "warren", str(error)
    why_not, teller, demanded = _agree_on_engine(objection, choice, rank, size)
    if not why_not:
        why = ctypes.create_string_buffer(_WHY_BYTES)
        try:
            code = _library().WarrenXGBoostBegin(_in_xgboost(), math.ceil(timeout or 0), why, _WHY_BYTES)
            _thread.serves = code > 0
        except BaseException:  # such as KeyboardInterrupt; ends the engine, so that the other ranks do not wait
            _library().WarrenXGBoostEnd(1, why, _WHY_BYTES)
            raise
        if code < 0:
            raise RuntimeError(_text(why))
        why_not = _text(why)
    if why_not and demanded:
        raise RuntimeError(f"XGBoost cannot communicate over Warren's engine: {why_not}")
    if why_not and rank == teller:
        print(f"warren: XGBoost keeps its own communication: {why_not}", file=sys.stderr, flush=True)
    return serves()


def _printable(text: Any) -> str:
    return "".join(c if c.isprintable() else "?" for c in str(text))


def _version() -> int:
    """XGBoost's version as a number, such as 3002001 for 3.2.1."""
    parts = [int(part) for part in re.findall(r"\d+", xgb.__version__)[:3]]
    return sum(part * 1000 ** (2 - place) for place, part in enumerate(parts))


def _greeting() -> Tuple[int, ...]:
    """This rank's first message, without the last two words. In the maximum over all ranks, its last words are the newest version of
    XGBoost and the negated oldest one."""
    return (*_GREETING, _version(), -_version())


def _warn_of_versions(rank: int) -> None:
    """Warns on rank 0 which ranks have which version of XGBoost. A collective call."""
    versions = [_printable(one) for one in _peers.over_xgboost(xgb.collective).allgather(xgb.__version__)]
    if rank == 0:
        ranks = {one: [str(at) for at, other in enumerate(versions) if other == one] for one in sorted(set(versions))}
        said = "; ".join(f"{one} on {'ranks' if where[1:] else 'rank'} {', '.join(where)}" for one, where in ranks.items())
        print(f"warren: the workers have different versions of XGBoost, whose calls and models may differ ({said}): install one version on "
              "all hosts", file=sys.stderr, flush=True)


def _agree_on_engine(objection: str, choice: str, rank: int, size: int) -> Tuple[str, int, bool]:
    """Returns the objection of the lowest rank that has one (or ""), the lowest rank that is not set to `own` (meaningful only if no rank
    demands the engine), and whether any rank demands it. The ranks exchange these values over XGBoost's own communication. Raises
    RuntimeError if another rank is in a different call, has ended, or does not prove the job's token."""
    wants = {"own": 0, "auto": size - rank, "warren": 2 * size - rank}[choice]  # greater than `size` only if the rank demands the engine
    said = (*_greeting(), size - rank if objection else 0, wants)
    all_or_none = ("all workers of a communicator must request Warren's engine (warren.xgboost.communicator, accelerate or "
                   "accelerate_all), or none")
    try:
        *greeting, newest, oldest, objects, asks = xgb.collective.allreduce(np.array(said, np.int32), xgb.collective.Op.MAX).tolist()
    except xgb.core.XGBoostError as error:
        raise RuntimeError("XGBoost's own communication failed while the workers agreed on the engine: another worker has ended, or was "
                           f"in another call; {all_or_none}: {error}") from error
    if tuple(greeting) != _GREETING or not 0 <= objects <= size or not 0 <= asks <= 2 * size:
        raise RuntimeError(f"another worker of this communicator was in another call; {all_or_none}")
    _peers.prove_over_xgboost(xgb.collective)
    if newest != -oldest:
        _warn_of_versions(rank)
    if not objects:
        return "", size - asks, asks > size
    first = size - objects
    told = _peers.over_xgboost(xgb.collective).broadcast(f"rank {rank}: {objection}", first)
    return _printable(told), size - asks, asks > size


def end(failed: bool) -> None:
    """Turns off the engine, before the communicator is finalized. A collective call, in which the ranks wait for each other; a rank that
    `failed` does not wait, and its failure is reported to the others. Raises RuntimeError if another rank is lost."""
    if not serves():
        return
    _thread.serves = False
    why = ctypes.create_string_buffer(_WHY_BYTES)
    if _library().WarrenXGBoostEnd(int(failed), why, _WHY_BYTES) != 0:
        raise RuntimeError(_text(why))


def _before_the_communicator_changes() -> None:
    """Turns off the engine before this thread leaves its communicator or joins another one: the ranks' agreement is valid for one
    communicator only."""
    def wrap(name: str, failed: bool) -> None:
        own = getattr(xgb.collective, name)

        @functools.wraps(own)
        def wrapped(*arguments: Any, **named: Any) -> Any:
            end(failed)
            return own(*arguments, **named)

        setattr(xgb.collective, name, wrapped)

    wrap("finalize", failed=False)
    wrap("init", failed=True)  # XGBoost's second init implicitly ends the first communicator


_before_the_communicator_changes()


@contextlib.contextmanager
def served(timeout: Optional[float] = None) -> Any:
    """Runs the block's collectives on the engine, if all ranks can use it. Does nothing if this thread's collectives already run on it."""
    if serves():
        yield
        return
    begin(timeout)
    try:
        yield
    except BaseException:
        end(failed=True)
        raise
    end(failed=False)
