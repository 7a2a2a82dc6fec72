"""Starts a tracker from Python, for programs that start the workers themselves, such as Dask."""
import errno
import numbers
import os
import socket
import subprocess
import sys
import threading
import weakref
from typing import IO, Any, Dict, List, NoReturn, Optional, Union

from warren._engine import native as _native
from warren._system import forks as _forks

#: The longest timeout: 100 years.
_MOST_SECONDS = 3_153_600_000


class Tracker:
    """Warren's tracker with the methods of `xgboost.tracker.RabitTracker`; serves workers of every XGBoost version and of rabit.

    Parameters:
    - `n_workers`: the number of workers of the job.
    - `host_ip`: this machine's address for the workers; None means the address of the default route.
    - `port`: 0 picks any free port.
    - `sortby`: "host" or "task", the order of ranks.
    - `timeout`: seconds to wait for missing workers; 0 waits forever.
    - `admit`: the workers that may join without proving the job's token, which XGBoost's own communicator cannot do: "any", "hosts" (workers
      on this machine), "user" (workers of this user on this machine) or "token" (none).
    - `tls`: whether workers with Warren's engine encrypt their connections to the tracker and to each other, keyed by the job's token.

    The port is reserved until `free`. The tracker is a separate process (rabit-tracker); the output of workers goes to this process's
    standard error. The tracker ends with the job, with `free`, or with this process. If a worker fails, the tracker tells the others to
    stop if they run XGBoost 2.1 or later, and waits up to `timeout` for all workers to reconnect (as XGBoost's tracker does).

    Raises ValueError for invalid arguments. If the address or port is unavailable, the error is both an OSError with its errno and a
    ValueError. If xgboost is imported, all errors of the tracker itself are also XGBoostErrors, like those of XGBoost's own tracker:
    callers such as xgboost.dask catch them and try another address. Thread-safe."""

    def __init__(self, n_workers: int, host_ip: Optional[str] = None, port: int = 0, *, sortby: str = "host",
                 timeout: float = 0, admit: str = "any", tls: bool = False) -> None:
        _require("n_workers", n_workers, numbers.Integral, 1, 2**31 - 1)
        _require("port", port, numbers.Integral, 0, 2**16 - 1)
        _require("timeout", timeout, numbers.Real, 0, _MOST_SECONDS)
        if sortby not in ("host", "task"):
            raise ValueError(f"sortby is {sortby!r}, expected 'host' or 'task'")
        if admit not in ("any", "hosts", "user", "token"):
            raise ValueError(f"admit is {admit!r}, expected 'any', 'hosts', 'user' or 'token'")
        if host_ip is not None and host_ip.startswith("[") and host_ip.endswith("]"):
            host_ip = host_ip[1:-1]  # IPv6 address in the form used before a port
        self._place = _hold_port(host_ip, port)
        port = self._place.getsockname()[1]
        self._command = [_native.program("rabit-tracker"), "--num-workers", str(n_workers), "--host-ip",
                         host_ip or "auto", "--port", str(port), "--port-end", str(port), "--sortby", sortby,
                         "--timeout", str(timeout), "--admit", admit, "--log-level", "WARNING", "--until-stdin-closes",
                         *(["--tls"] if tls else [])]
        _forks.closed.add(self._place)
        self._n_workers = n_workers
        self._lock = threading.Lock()
        self._freed = False
        self._process: Optional["subprocess.Popen[str]"] = None
        self._environment: Dict[str, str] = {}
        self._errors: Optional[_Errors] = None

    def start(self, n_workers: Optional[int] = None) -> None:
        """Starts the tracker; workers may connect once this returns. Does nothing if it has already been started. Raises ValueError if it
        cannot start, has been freed, or was created for a different `n_workers`. Code written for XGBoost 1.x passes `n_workers` here
        again."""
        with self._lock:
            if n_workers not in (None, self._n_workers):
                raise ValueError(f"a tracker of {self._n_workers} workers was started for {n_workers}")
            if self._freed:
                raise ValueError("the tracker has been freed; a new job needs a new one")
            if self._process is not None:
                return
            self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, errors="replace")
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            _forks.closed.add(process.stdin)
            self._errors = _Errors(process.stderr)
            for line in process.stdout:
                name, found, value = line.rstrip("\n").partition("=")
                if found:
                    self._environment[name] = value
                if name == "DMLC_TRACKER_ENV_END":
                    break
            else:
                process.wait()
                why = self._errors.last()
                _end(process)
                raise _error(f"the tracker could not start: {why}")
            self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            self._process = process
            weakref.finalize(self, _end, process)

    def wait_for(self, timeout: Optional[int] = None) -> None:
        """Waits until all workers have shut down. Raises ValueError after `timeout` seconds, if the tracker was not started or was freed, or
        if it failed, for example because workers were missing for longer than the tracker's own `timeout`."""
        process = self._running()
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise _error(f"Timeout waiting for the tracker: the job has not ended after {timeout} s") from None
        if self._freed:
            raise _error("the tracker was freed before the job had ended")
        if code != 0:
            assert self._errors is not None
            raise _error(f"the tracker ended with code {code}: {self._errors.last()}")

    def worker_args(self) -> Dict[str, Union[str, int]]:
        """The arguments for `xgboost.collective.init` (2.1 and later)."""
        self._running()
        return {"dmlc_tracker_uri": self._environment["DMLC_TRACKER_URI"],
                "dmlc_tracker_port": int(self._environment["DMLC_TRACKER_PORT"])}

    def worker_envs(self) -> Dict[str, Union[str, int]]:
        """The settings for `xgboost.rabit.init` and `warren.rabit.init`, for their arguments or the workers' environment."""
        self._running()
        envs: Dict[str, Union[str, int]] = {
            "DMLC_TRACKER_URI": self._environment["DMLC_TRACKER_URI"],
            "DMLC_TRACKER_PORT": int(self._environment["DMLC_TRACKER_PORT"]),
            "DMLC_NUM_WORKER": int(self._environment["DMLC_NUM_WORKER"]),
            # A tracker that was given a token does not print it.
            "DMLC_JOB_TOKEN": self._environment.get("DMLC_JOB_TOKEN") or os.environ["DMLC_JOB_TOKEN"]}
        envs.update({name: self._environment[name] for name in ("WARREN_TLS", "RABIT_TLS") if name in self._environment})
        return envs

    def join(self) -> None:
        """Same as `wait_for` without a timeout; the method's name in XGBoost up to 2.0."""
        self.wait_for()

    def alive(self) -> bool:
        """Whether the tracker is running: it has been started, and the job has not ended."""
        return self._process is not None and self._process.poll() is None

    def free(self) -> None:
        """Stops the tracker and releases the port. Then raises ValueError if the tracker had been started and the job had not ended, or if
        the tracker had given up. Further calls have no effect."""
        with self._lock:
            unfinished = not self._freed and self._process is not None and not self._has_finished()
            self._freed = True
            self._place.close()
            if self._process is not None:
                _end(self._process)
        if unfinished:
            raise _error("Failed to accept any more workers: the tracker was freed before the job had ended")

    def _has_finished(self) -> bool:
        """Whether all workers have shut down; waits briefly for the tracker to exit."""
        try:
            return self._running().wait(0.2) == 0
        except subprocess.TimeoutExpired:
            return False

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise _error("the tracker has not been started: call start() first")
        return self._process


def _require(name: str, value: Any, kind: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        whole = "a whole number" if kind is numbers.Integral else "a number"
        raise ValueError(f"{name} is {value!r}, expected {whole} from {least} to {most}")


def _error(text: str, code: Optional[int] = None) -> ValueError:
    """Makes an XGBoostError (a ValueError) if xgboost is imported, else a ValueError; with a `code`, it is an OSError as well."""
    kind = getattr(sys.modules.get("xgboost.core"), "XGBoostError", ValueError)
    if code is None:
        made: ValueError = kind(text)
    else:
        # Copies and pickles are rebuilt by _error, in a process that may or may not have xgboost.
        kind = type("BindError", (OSError, kind), {"__module__": __name__, "__reduce__": lambda _: (_error, (text, code))})
        made = kind(code, text)
    return made


def _hold_port(host_ip: Optional[str], port: int) -> socket.socket:
    """Returns a socket bound to the port. No other socket can bind to the port until SO_REUSEADDR is set, which admits the tracker's socket.
    Raises an OSError that is also a ValueError if the address or port is unavailable."""
    try:
        entries = socket.getaddrinfo(host_ip or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _error(f"Failed to bind socket to {host_ip} port {port}: {error.strerror}", errno.EADDRNOTAVAIL) from None
    family, kind, _, _, address = entries[0]
    place = socket.socket(family, kind)
    try:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            place.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))  # not a local address, but one that is forwarded to this machine
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except OSError as error:
        place.close()
        raise _error(f"Failed to bind socket to {host_ip or 'any address'} port {port}: {error.strerror}", error.errno) from None
    return place


class _Errors:
    """Forwards the standard error of a process, and keeps its last lines."""

    def __init__(self, pipe: IO[str]) -> None:
        self._lines: List[str] = []
        self._thread = threading.Thread(target=self._pass_on, args=(pipe,), daemon=True)
        self._thread.start()

    def _pass_on(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                print(line, end="", file=sys.stderr, flush=True)
                self._lines = [*self._lines[-20:], line.rstrip("\n")]

    def last(self) -> str:
        """The last error line, once the process has ended."""
        self._thread.join(10)
        lines = [line for line in self._lines if not line.startswith("Run with --help")]
        said = [line for line in lines if "error" in line] or lines
        return said[-1] if said else "it printed nothing"


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def main() -> NoReturn:
    """Replaces this process with rabit-tracker, with the same arguments."""
    _native.run("rabit-tracker", sys.argv[1:])


if __name__ == "__main__":
    main()
