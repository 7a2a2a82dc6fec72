"""Joins and leaves the job of this process with XGBoost's communicator, for warren.xgboost."""
import atexit
import contextlib
import errno
import functools
import os
import socket
import sys
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

import xgboost as xgb

from warren._elastic import session as _elastic
from warren._launch import leaving as _leaving
from warren._launch import membership as _membership
from warren._launch import rank as _rank
from warren._launch.launched import launched
from warren._launch.shared_tracker import entered_again, has_left, left, share_tracker
from warren._rounds import mlflow_runs as _mlflow_runs
from warren._xgboost import acceleration as _acceleration
from warren._xgboost import forked as _forked
from warren._xgboost import hooks as _hooks
from warren._xgboost import vouch as _vouch
from warren._xgboost.versions import LIBRARY, VERSION, collective, peers_of_job
from warren._xgboost.launcher_world import exchange_of
from warren.data._peers import prove_over_xgboost

#: The number of files that XGBoost opens to join a job, in addition to one for each worker (measured with 3.2.0, 2 to 8 workers).
_FILES_TO_JOIN = 6

_joined = False
#: The rank and the number of workers when this process left its job.
_left_as: Optional[Tuple[int, int]] = None
_workers = 1  #: the number of workers of the job that was joined last
#: Closed when this process leaves its job.
_until_left = contextlib.ExitStack()
#: The address of the tracker whose job this process last joined or tried to join.
_tracker: Optional[Tuple[str, str]] = None


def in_job() -> bool:
    """See warren.xgboost.in_job."""
    if not os.environ.get("DMLC_TRACKER_URI") or os.environ.get("DMLC_ROLE", "worker") != "worker":
        return False
    if not os.environ.get("DMLC_TRACKER_PORT", "").isdigit():
        raise RuntimeError("DMLC_TRACKER_URI is set, and DMLC_TRACKER_PORT is "
                           f"{os.environ.get('DMLC_TRACKER_PORT')!r}: expected the number of the tracker's port")
    return True


def join(arguments: Dict[str, Any]) -> None:
    """See warren.xgboost.init."""
    if not any(name.lower() in ("dmlc_tracker_uri", "rabit_tracker_uri") for name in arguments) and not in_job():
        process = launched()
        if process is None:
            return
        share_tracker(process, exchange_of(process))
    is_elastic = _membership.is_elastic() and in_job()
    if _elastic.current(LIBRARY) is not None or (_joined and not is_elastic):
        raise RuntimeError("this worker has already joined its job: a job has one communicator, from start to end")
    if is_elastic:
        if VERSION < (2, 1):
            raise RuntimeError(f"--num-workers MIN:MAX needs XGBoost 2.1 or later; found {xgb.__version__}")
        _elastic.begin(_elastic.Library(LIBRARY, xgb.core.XGBoostError, lambda generation: _join_generation(arguments, generation),
                                        _leave_generation))
        entered_again()
    else:
        _check_not_left(arguments)
        _join_tracker(arguments)
    _until_left.enter_context(_mlflow_runs.resting(int(collective().get_world_size())))
    atexit.unregister(_leave_at_exit)
    atexit.register(_leave_at_exit)


def _join_generation(arguments: Dict[str, Any], generation: _membership.Generation) -> None:
    """Joins a generation of an elastic job (wire/membership.h)."""
    os.environ["DMLC_NUM_WORKER"] = str(generation.size)
    task_id = arguments.get("dmlc_task_id", os.environ.get("DMLC_TASK_ID", ""))
    _join_tracker({**arguments, "dmlc_task_id": f"{task_id}@{generation.number}"})
    _membership.set_environment(int(collective().get_rank()), generation.size)


def _leave_generation(failed: bool) -> None:
    """Leaves the current generation; if it has `failed`, without the other members."""
    global _joined  # pylint: disable=global-statement
    if _joined:
        _joined = False
        try:
            _acceleration.end(failed)
        finally:
            collective().finalize()


def _join_tracker(arguments: Dict[str, Any]) -> None:
    global _joined, _workers  # pylint: disable=global-statement
    if VERSION >= (2, 1):
        # CommunicatorContext also finds NCCL if it is installed as a Python package.
        found = xgb.collective.CommunicatorContext(**{**_arguments(), **_worker_port(), **arguments}).args
        _join_as(found, lambda: xgb.collective.init(**found))
        _joined = True
        _acceleration.begin(found)
    else:
        # These versions accept upper-case names only, and read missing ones from the environment.
        found = {name.upper() if name.startswith("dmlc_") else name: value for name, value in arguments.items()}
        if VERSION >= (1, 7):
            _join_as(found, lambda: xgb.collective.init(**found))
        else:
            _join_as(found, lambda: xgb.rabit.init([f"{name}={value}".encode() for name, value in found.items()]))
        _joined = True
        prove_over_xgboost(collective())
    _rank.joined_as(int(collective().get_rank()))
    _workers = int(collective().get_world_size())
    _forked.refuse_in_children()


def _arguments() -> Dict[str, Any]:
    """Returns the arguments for XGBoost 2.1 and later, from the environment, which these versions ignore."""
    arguments: Dict[str, Any] = {"dmlc_task_id": os.environ.get("DMLC_TASK_ID", "")}
    if in_job():
        arguments.update(dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"], dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]))
    if "DMLC_WORKER_CONNECT_RETRY" in os.environ:
        arguments["dmlc_retry"] = int(os.environ["DMLC_WORKER_CONNECT_RETRY"])
    if "DMLC_NCCL_PATH" in os.environ:
        arguments["dmlc_nccl_path"] = os.environ["DMLC_NCCL_PATH"]
    return arguments


def _worker_port() -> Dict[str, Any]:
    """Returns the argument for the port of XGBoost's own links, from WARREN_WORKER_PORTS; empty before XGBoost 3.3. The workers on a host
    try different ports. Raises RuntimeError for a malformed value, and OSError if no port is free."""
    text = os.environ.get("WARREN_WORKER_PORTS", "")
    if not text:
        return {}
    first, found, last = text.partition(":")
    if not found or not (first.isdigit() and last.isdigit()) or not 1 <= int(first) <= int(last) <= 65535:
        raise RuntimeError(f"WARREN_WORKER_PORTS is {text!r}, expected FIRST:LAST")
    if VERSION < (3, 3):
        if os.environ.get("RANK", "0") == "0":
            print(f"warren: --worker-ports does not bind XGBoost {xgb.__version__}'s own links, which take any free port; 3.3 and later "
                  "keep to it", file=sys.stderr)
        return {}
    ports = range(int(first), int(last) + 1)
    place, step = int(os.environ.get("LOCAL_RANK") or 0) % len(ports), max(1, int(os.environ.get("LOCAL_WORLD_SIZE") or 1))
    for port in (ports[number] for number in range(place, len(ports), step)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return {"dmlc_worker_port": port}
    raise OSError(errno.EADDRINUSE, f"no port of {text} (--worker-ports) is free for XGBoost's links of this worker: each worker of a host needs two")


def _check_open_files() -> None:
    """Raises OSError if this process may not open enough files for XGBoost 2.1 and later, which connects every worker to every other one.
    XGBoost itself would report nothing, and the tracker would report another worker as failed."""
    workers = os.environ.get("DMLC_NUM_WORKER", "")
    if VERSION < (2, 1) or not workers.isdigit() or not os.path.isdir("/proc/self/fd"):
        return
    import resource  # pylint: disable=import-outside-toplevel

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    used, needed = len(os.listdir("/proc/self/fd")) - 1, int(workers) + _FILES_TO_JOIN  # -1: os.listdir itself opens a file
    if limit != resource.RLIM_INFINITY and used + needed > limit:
        raise OSError(errno.EMFILE, f"{used} of the {limit} files that this process may open (ulimit -n) are open, and XGBoost needs about "
                                    f"{needed} to join a job of {workers} workers: raise the limit before the job, for example with "
                                    "ulimit -n 65536")


def _join_as(found: Dict[str, Any], join: Callable[[], Any]) -> None:
    """Calls `join`, which passes the arguments `found` to XGBoost, with a task id that makes the tracker admit this worker."""
    upper = VERSION < (2, 1)
    _check_open_files()

    def given(what: str) -> str:
        names = (f"dmlc_{what}", f"rabit_{what}")
        return str(next((value for name, value in found.items() if name.lower() in names), os.environ.get(names[0].upper(), "")))

    port = given("tracker_port")
    task_id = given("task_id") or ("NULL" if upper else "")
    joined_by = _vouch.task_id_of(task_id, given("tracker_uri"), int(port) if port.isdigit() else 0)
    if joined_by != task_id:
        found["DMLC_TASK_ID" if upper else "dmlc_task_id"] = joined_by
    shown = os.environ.get("DMLC_TASK_ID", task_id) if _membership.is_elastic() else task_id
    with _vouch.hidden_in_log(xgb.core._LIB, joined_by, shown):  # pylint: disable=protected-access
        join()


def _check_not_left(arguments: Mapping[str, Any]) -> None:
    """Raises RuntimeError if this process has left the job named by these arguments or the environment: the tracker would treat a
    worker that joins again as a failed one, and end the job."""
    global _tracker  # pylint: disable=global-statement
    given = {name.lower().replace("rabit_", "dmlc_"): str(value) for name, value in {**os.environ, **arguments}.items()}
    _tracker = given.get("dmlc_tracker_uri", ""), given.get("dmlc_tracker_port", "")
    if has_left(_tracker):
        raise RuntimeError("this worker has left its job and cannot join it again: a job has one communicator; put one `with "
                           "warren.xgboost.communicator():` around all trainings, outside of any loop")


def place() -> Tuple[int, int]:
    """This worker's rank and the number of workers; after it has left its job, those that it had at the end."""
    module = collective()
    if _left_as is not None and not module.is_distributed():
        return _left_as
    return int(module.get_rank()), int(module.get_world_size())


def leave(failed: bool) -> None:
    """Leaves the job; does nothing if it was not joined, or in a process forked from the worker. If this worker has `failed`, the other
    workers may never leave, so a rank 0 that runs the tracker waits for them only briefly."""
    global _joined, _left_as  # pylint: disable=global-statement
    if _rank.is_forked():
        return
    _left_as = place()
    _until_left.close()
    with _elastic.ended(peers_of_job, failed) as leaves:
        if _joined and leaves:
            _joined = False
            try:
                with _leaving.others_report_first():
                    _acceleration.end(failed=False)
            finally:
                try:
                    collective().finalize()
                finally:
                    left(failed, _tracker)


def _fail() -> None:
    """Reports this worker's failure to the tracker (XGBoost 2.1 and later), before other workers report the failures that it causes, and
    leaves the job. Does nothing if the job was not joined, or in a process forked from the worker."""
    if not _joined or VERSION < (2, 1) or _rank.is_forked():
        return
    with contextlib.suppress(Exception):
        xgb.collective.signal_error()
    with contextlib.suppress(Exception):
        _acceleration.end(failed=True)
    with contextlib.suppress(Exception):
        # Ends XGBoost's threads, which could crash the process at exit. The failure has already been reported to the tracker.
        leave(failed=True)


def _leave_at_exit() -> None:
    """Leaves the job for a program that ends without having left it: XGBoost's threads would crash the process. A program that an uncaught
    exception ends has failed."""
    if not _joined:
        return
    if hasattr(sys, "last_type"):
        _fail()
    else:
        leave(failed=False)


@contextlib.contextmanager
def leave_on_exit() -> Iterator[None]:
    """See warren.xgboost.left_in_the_end."""
    try:
        with _hooks.installed(lambda: _workers if _joined else 1):
            yield
    except BaseException as error:
        leave_after(error)
        raise
    leave(failed=False)


def leave_after(error: Optional[BaseException]) -> None:
    """Leaves the job at the end of a block that raised `error`, or None. sys.exit without a failure is no error."""
    if _rank.is_forked():
        _forked.note_end(error)
    if error is None or isinstance(error, SystemExit) and not error.code:
        leave(failed=False)
    else:
        _fail()


def is_joined() -> bool:
    """Whether this process has joined a job, and not left it."""
    return _joined


def _keep_the_communicator() -> None:
    """Makes xgboost.collective.init raise RuntimeError in the thread that has joined the job: XGBoost would replace the job's communicator,
    and each worker would train alone."""
    own = xgb.collective.init

    @functools.wraps(own)
    def init(*arguments: Any, **named: Any) -> Any:
        if _joined and collective().get_world_size() > 1:
            raise RuntimeError(
                "this worker has already joined its job, and xgboost.collective.init, or CommunicatorContext, would take it out of the job "
                "to train alone: remove that call")
        return own(*arguments, **named)

    xgb.collective.init = init


if VERSION >= (1, 7):
    _keep_the_communicator()
