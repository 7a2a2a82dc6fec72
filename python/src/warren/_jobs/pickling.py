"""Serializes functions for other processes: with cloudpickle, if it is installed, which supports functions defined in a notebook or a script,
or else with pickle."""
import collections
import io
import pickle
import sys
import types
from typing import Any, Callable, Optional

#: The names of the main module: in the program itself, and in a process that multiprocessing has spawned from it.
PROGRAMS = ("__main__", "__mp_main__")
#: The text that cloudpickle 3 writes in place of the name of a function's file, which tracebacks show.
_NO_FILE = "<dynamic-code>"
#: The advice in the error message for objects that plain pickle cannot send.
_ADVICE = "install cloudpickle, which also sends functions defined in a notebook, in a script or in another function: pip install cloudpickle"


def dumps(value: Any, what: str, persistent_id: Optional[Callable[[Any], Any]] = None) -> bytes:
    """Pickles an object. `persistent_id`: as in pickle.Pickler. Raises TypeError, whose message begins with `what`, if it cannot be
    pickled."""
    try:
        import cloudpickle  # pylint: disable=import-outside-toplevel
    except ImportError:
        return _pickled(value, what, persistent_id)
    table = cloudpickle.CloudPickler.dispatch_table

    def code(function_code: types.CodeType) -> Any:
        make, arguments = table[types.CodeType](function_code)
        return make, tuple(function_code.co_filename if one == _NO_FILE else one for one in arguments)

    class WithFiles(cloudpickle.CloudPickler):  # type: ignore[misc]
        """Keeps the names of functions' files."""

        dispatch_table = collections.ChainMap({types.CodeType: code}, table)

    buffer = io.BytesIO()
    try:
        if "__mp_main__" in sys.modules:
            cloudpickle.register_pickle_by_value(sys.modules["__mp_main__"])
        _with(persistent_id, WithFiles)(buffer).dump(value)
    except Exception as error:  # pylint: disable=broad-except  # any class may raise anything
        raise TypeError(f"{what} cannot be sent to other processes: {error}") from error
    return buffer.getvalue()


def _with(persistent_id: Optional[Callable[[Any], Any]], kind: Any) -> Any:
    """Returns the class of picklers, with the method if there is one: it is called for each object, which takes time."""
    return kind if persistent_id is None else type(kind.__name__, (kind, ), {"persistent_id": staticmethod(persistent_id)})


def exception(error: BaseException) -> bytes:
    """Pickles an exception. If unpickling fails, for example because its class cannot be called with its `args`, it is pickled so that
    unpickling does not call `__init__`. Raises TypeError if it cannot be pickled."""
    what = "the exception"
    pickled = dumps(error, what)
    try:
        pickle.loads(pickled)
    except Exception:  # pylint: disable=broad-except  # its class may raise anything
        pickled = dumps(_WithoutInit(error), what)
    return pickled


class _WithoutInit:
    """Pickles as an exception that is unpickled without a call of its `__init__`."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> Any:
        return _made, (type(self._error), self._error.args, dict(vars(self._error)))


def _made(kind: Any, arguments: Any, attributes: Any) -> Any:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    return error


class _Pickler(pickle.Pickler):
    """Refuses functions and classes of the main module, which other processes do not have."""

    def reducer_override(self, value: Any) -> Any:
        """Called for each object."""
        if isinstance(value, (type, types.FunctionType)) and value.__module__ in PROGRAMS:
            raise pickle.PicklingError(f"{value.__qualname__} is defined in this program")
        return NotImplemented


def _pickled(value: Any, what: str, persistent_id: Optional[Callable[[Any], Any]]) -> bytes:
    buffer = io.BytesIO()
    try:
        _with(persistent_id, _Pickler)(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    except Exception as error:  # pylint: disable=broad-except
        raise TypeError(f"{what} cannot be sent to other processes: {error}; {_ADVICE}") from error
    return buffer.getvalue()
