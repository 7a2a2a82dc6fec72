"""The main program of each process of a job that was started from Python: calls the driver's function."""
import io
import linecache
import os
import pickle
import socket
import sys
import time
import traceback
from typing import Any, Callable, Dict, NoReturn, Optional, Tuple

from warren._engine import sealed as _sealed
from warren._jobs import pickling as _pickling
from warren._jobs.channel import Channel
from warren._launch import rank as _rank
from warren._rounds import mlflow_runs as _mlflow_runs

#: "[HOST]:PORT" of the driver; without a host, the tracker's. The driver sets it.
VARIABLE = "WARREN_DRIVER"
#: The timeout of a connection attempt, and the time for which attempts are repeated if the driver closes the connection.
_CONNECT_S = 60.0
_PAUSE_S = 0.2
#: The libraries that train separately in each process that has not joined its job.
_DISTRIBUTED = ("xgboost", "lightgbm")

_channel: Optional[Channel] = None


def channel() -> Channel:
    """The connection to the driver, for a function that sends it requests while it runs (warren._jobs.rows)."""
    assert _channel is not None
    return _channel


def main() -> NoReturn:
    """Calls the driver's function, sends the outcome, and exits: with 0, or with the code that a script would have. Exits with 1 and a
    message if there is no driver."""
    global _channel  # pylint: disable=global-statement
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    try:
        _channel = _connected()
        _channel.send({"task": int(os.environ.get("DMLC_TASK_ID", "0")), "attempt": int(os.environ.get("DMLC_NUM_ATTEMPT") or 0),
                       "host": socket.gethostname()})
        call = _channel.receive()
    except (RuntimeError, OSError, EOFError) as error:
        sys.exit(f"warren: this process cannot get its function from the program that started the job: {error}")
    process = os.getpid()
    outcome, code = _outcome(call)
    if os.getpid() != process:
        sys.exit(code)  # the function has forked, and this is the child
    try:
        _channel.send(outcome)
        _channel.receive()  # the driver's acknowledgement
    except (OSError, EOFError) as error:
        sys.exit(f"warren: the program that started the job is gone, and does not get this process's result: {error}")
    sys.exit(code)


def _connected() -> Channel:
    host, found, port = os.environ.get(VARIABLE, "").rpartition(":")
    secret = _sealed.token()
    if not found or not port.isdigit() or secret is None:
        raise RuntimeError(f"{VARIABLE} or the job's token is missing in the environment: only warren.run and warren.start start this module")
    address = (host.strip("[]") or os.environ.get("DMLC_TRACKER_URI", "127.0.0.1"), int(port))
    end = time.monotonic() + _CONNECT_S
    while True:
        why: Exception
        try:
            return Channel(socket.create_connection(address, _CONNECT_S), secret, is_driver=False)
        except (EOFError, ConnectionResetError) as error:  # for example, the driver has too many connections at the moment
            why = error
        except OSError as error:
            raise _unreachable(address, error) from None
        if time.monotonic() > end:
            raise _unreachable(address, why)
        time.sleep(_PAUSE_S)


def _unreachable(address: Tuple[str, int], error: Exception) -> RuntimeError:
    return RuntimeError(f"{address[0]} port {address[1]} cannot be reached: {error}; the hosts of a job must reach the machine that starts it at "
                        "one more port of the tracker's range (--port, --port-end)")


def _outcome(call: Dict[str, Any]) -> Tuple[Dict[str, Any], Any]:
    """Calls the function. Returns the message for the driver, and the exit code."""
    # The search path for modules becomes the driver's, in its order, followed by the rest of this interpreter's own.
    there = [place for place in call["path"] if os.path.exists(place)]
    sys.path[:] = [*there, *(place for place in sys.path if place not in there)]
    _mlflow_runs.tell(call["mlflow"])
    linecache.cache.update({name: (sum(map(len, lines)), None, lines, name) for name, lines in call["sources"].items()})
    try:
        function: Callable[..., Any]
        function, arguments = pickle.loads(call["function"])
        value = function(*arguments)
        outcome = {"kind": "returned", "value": _pickling.dumps(value, f"the result, a {type(value).__name__},")}
    except SystemExit as error:
        outcome = {"kind": "exited"}
        if not isinstance(error.code, int) and error.code is not None:
            print(error.code, file=sys.stderr)
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if code == 0:
            outcome = {"kind": "returned", "value": _pickling.dumps(None, "the result")}
        return {**outcome, **_place()}, code
    except BaseException as error:  # pylint: disable=broad-except  # the driver raises it
        # Functions that run at exit see from this that the process has failed.
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        return {**_raised(error), **_place()}, 130 if isinstance(error, KeyboardInterrupt) else 1
    return {**outcome, **_place()}, 0


def _raised(error: BaseException) -> Dict[str, Any]:
    # The first entry of the traceback is this file.
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next))
    try:
        pickled: Optional[bytes] = _pickling.exception(error)
    except TypeError:
        pickled = None
    try:
        text = str(error)
    except Exception:  # pylint: disable=broad-except  # the class's own method may raise anything
        text = "its text cannot be shown"
    return {"kind": "raised", "exception": pickled, "type": type(error).__qualname__, "text": text, "traceback": shown}


def _place() -> Dict[str, Any]:
    """This process's rank in its job, and, if it has not joined the job, the library that it may have trained with separately."""
    trained = next((name for name in _DISTRIBUTED if name in sys.modules), None)
    return {"rank": _rank.last(), "separate": trained if _rank.last() is None else None}
