"""Features of XGBoost 0.7 to 1.x that newer versions removed: `xgboost.rabit`, DMatrix from a text file, and arguments such as `feval` and
`ntree_limit`; docs/how-to/xgboost.md has a complete list."""
import contextlib
import enum
import functools
import inspect
import os
import sys
import types
import warnings
from typing import Any, Callable, Iterable, Optional, Union

import numpy as np
from numpy.typing import NDArray
import xgboost as xgb

from warren import xgboost as wxgb  # may itself still be importing xgboost, and then has no contents yet
from warren._system import callers as _callers
from warren._xgboost import communicator as _communicator
from warren._xgboost.versions import VERSION
from warren.compat import _training_1x

#: From this version on, XGBoost reads text files only if their format is given, or not at all.
_TEXT_WAS_READ_BEFORE = (2, 0)
#: From this version on, `xgboost.rabit` is a remnant over `xgboost.collective`, or missing.
_COLLECTIVE_SINCE = (1, 7)
#: From this version on, `collective.init` finds the tracker by its arguments alone, and no longer by the environment.
_ARGUMENTS_SINCE = (2, 1)
#: From this version on, callbacks must be objects; other features were removed later.
_ALL_WAS_THERE_BEFORE = (1, 6)
#: The magic number of a file written by DMatrix.save_binary.
_SAVED_MATRIX = b"\x01\xab\xff\xff"


class _Op(enum.IntEnum):
    """XGBoost 1.x's reduction operations."""

    MAX = 0
    MIN = 1
    SUM = 2
    OR = 3


def _init(args: Optional[Iterable[Union[str, bytes]]] = None) -> None:
    """Joins the job. From XGBoost 2.1 on, `key=value` arguments take precedence over the environment; in earlier versions, only the tracker's
    address is taken from the arguments, and only if the environment has none."""
    names = {"DMLC_TRACKER_URI": "dmlc_tracker_uri", "DMLC_TRACKER_PORT": "dmlc_tracker_port",
             "DMLC_TASK_ID": "dmlc_task_id", "rabit_tracker_uri": "dmlc_tracker_uri",
             "rabit_tracker_port": "dmlc_tracker_port", "rabit_task_id": "dmlc_task_id"}
    given = {}
    for arg in args or []:
        name, found, value = (arg.decode() if isinstance(arg, bytes) else arg).partition("=")
        if found and name in names:
            given[names[name]] = int(value) if "port" in names[name] else value
    if "dmlc_tracker_uri" in given:
        os.environ.setdefault("DMLC_TRACKER_URI", str(given["dmlc_tracker_uri"]))
        os.environ.setdefault("DMLC_TRACKER_PORT", str(given.get("dmlc_tracker_port", "")))
    wxgb.init(**(given if VERSION >= _ARGUMENTS_SINCE else {}))


def _finalize() -> None:
    wxgb.finalize()


def _tracker_print(message: Any) -> None:
    wxgb.tracker_print(message)


def _allreduce(data: NDArray[Any], op: int, prepare_fun: Optional[Callable[[NDArray[Any]], None]] = None) -> NDArray[Any]:
    if prepare_fun is not None:
        prepare_fun(data)
    operations = xgb.collective.Op
    if int(op) == _Op.OR and not hasattr(operations, "BITWISE_OR"):  # 1.7 lacks it: the maximum of each bit is the same
        bits = np.unpackbits(np.ascontiguousarray(data).view(np.uint8))
        whole: NDArray[Any] = np.packbits(xgb.collective.allreduce(bits, operations.MAX))
        return whole.view(data.dtype).reshape(data.shape)
    # Bitwise OR has a different number in newer versions.
    wanted = operations.BITWISE_OR if int(op) == _Op.OR else operations(int(op))
    result: NDArray[Any] = xgb.collective.allreduce(data, wanted)
    return result


class _RabitContext:
    def __init__(self, args: Optional[Iterable[Union[str, bytes]]] = None) -> None:
        self._args = args

    def __enter__(self) -> None:
        _init(self._args)

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        _communicator.leave_after(error)


def _rabit() -> types.ModuleType:
    module = types.ModuleType("xgboost.rabit", "XGBoost's rabit module as it was in 1.x, from warren.compat.")
    vars(module).update(
        init=_init, finalize=_finalize, get_rank=xgb.collective.get_rank, get_world_size=xgb.collective.get_world_size,
        is_distributed=xgb.collective.is_distributed, tracker_print=_tracker_print,
        get_processor_name=lambda: xgb.collective.get_processor_name().encode(), broadcast=xgb.collective.broadcast, allreduce=_allreduce,
        version_number=lambda: 0, Op=_Op, RabitContext=_RabitContext)
    return module


def _text(data: Any) -> Any:
    """Returns the name of the data set if `data`, the argument of DMatrix, names one; None if it is not a name, or names a matrix saved by
    XGBoost. A Path is one file, whatever characters its name contains."""
    if not isinstance(data, (str, os.PathLike)):
        return None
    name, cache, file_name = data, "", os.fspath(data)
    if isinstance(data, str):
        name, _, cache = data.partition("#")
        file_name = name.partition("?")[0]
    with contextlib.suppress(OSError):
        with open(file_name, "rb") as file:
            if file.read(len(_SAVED_MATRIX)) == _SAVED_MATRIX:
                return None
    if cache:
        warnings.warn(f"{name} is read into memory; the cache {cache} is not used", stacklevel=_callers.stacklevel())
    return name


def _reads_text() -> None:
    """Makes DMatrix("file") read this worker's share of a text file again."""
    original = xgb.DMatrix.__init__
    names = list(inspect.signature(original).parameters)[2:]

    def from_text(self: Any, data: Any, *args: Any, **options: Any) -> None:
        name = _text(data) if type(self) is xgb.DMatrix else None  # pylint: disable=unidiomatic-typecheck
        if name is None:
            original(self, data, *args, **options)
            return
        try:
            matrix, described = wxgb.read_csr(name)
        except ValueError as error:
            raise xgb.core.XGBoostError(str(error)) from error
        # The caller's arguments take precedence over the file's contents.
        given = {*names[:len(args)], *options}
        if "qid" in given:
            given.add("group")
        original(self, matrix, *args, **{key: value for key, value in described.items() if key not in given}, **options)
        self.warren_is_share = True

    xgb.DMatrix.__init__ = from_text


def _joins_by_the_environment() -> None:
    """Makes collective.init, and so CommunicatorContext, join the job that the environment names if no argument names a communicator."""
    context = xgb.collective.CommunicatorContext
    own_init, own_finalize, own_exit = xgb.collective.init, xgb.collective.finalize, context.__exit__

    def is_in_job() -> bool:
        return _communicator.is_joined() and bool(xgb.collective.is_distributed())

    @functools.wraps(own_init)
    def init(**arguments: Any) -> None:
        names = {name.lower() for name in arguments}
        if not names & {"dmlc_tracker_uri", "rabit_tracker_uri", "dmlc_communicator"}:
            wxgb.init(**arguments)
            if _communicator.is_joined():
                return
        own_init(**arguments)

    @functools.wraps(own_finalize)
    def finalize() -> None:
        if is_in_job():
            wxgb.finalize()
        else:
            own_finalize()

    @functools.wraps(own_exit)
    def leave(self: Any, kind: Any = None, error: Optional[BaseException] = None, trace: Any = None) -> Any:
        if is_in_job():
            _communicator.leave_after(error)
            return None
        return own_exit(self, kind, error, trace)

    xgb.collective.init, xgb.collective.finalize, context.__exit__ = init, finalize, leave


def install() -> None:
    """Restores the features that this version of XGBoost lacks. Called once."""
    if VERSION >= _COLLECTIVE_SINCE:
        sys.modules["xgboost.rabit"] = xgb.rabit = _rabit()
    if VERSION >= _ARGUMENTS_SINCE:
        _joins_by_the_environment()
    if VERSION >= _TEXT_WAS_READ_BEFORE:
        _reads_text()
    if VERSION >= _ALL_WAS_THERE_BEFORE:
        _training_1x.install()
