"""A tracker that is started from Python, for hosts that start the workers themselves."""
import subprocess
import sys
import threading
import weakref
from typing import Dict, NoReturn, Optional, Union

from warren import _native


class Tracker:
    """Warren's tracker with the methods of `xgboost.tracker.RabitTracker`; serves workers of every XGBoost version and
    of rabit.

    Parameters: `n_workers`, all of the job. `host_ip`: the address of this machine that workers are told; None: that of
    the default route. `port`: 0 takes any free one. `sortby`: "host" or "task", the order of ranks. `timeout`: seconds
    that workers may be missing; 0: for ever.

    The tracker is a process of its own (rabit-tracker); what workers print goes to this process's standard error. It
    ends with the job, with `free`, or with this process. When a worker fails it tells the others to stop, and waits for all
    to come again (as XGBoost's does), for `timeout`. Thread safe.
    """

    def __init__(self, n_workers: int, host_ip: Optional[str] = None, port: int = 0, *, sortby: str = "host",
                 timeout: float = 0) -> None:
        if n_workers < 1:
            raise ValueError(f"a job of {n_workers} workers: expected 1 or more")
        if sortby not in ("host", "task"):
            raise ValueError(f"sortby is {sortby!r}, expected 'host' or 'task'")
        self._command = [_native.program("rabit-tracker"), "--num-workers", str(n_workers), "--host-ip",
                         host_ip or "auto", "--port", str(port), "--port-end", str(port), "--sortby", sortby,
                         "--timeout", str(timeout), "--log-level", "WARNING",
                         "--until-stdin-closes"]
        self._n_workers = n_workers
        self._lock = threading.Lock()
        self._freed = False
        self._process: Optional["subprocess.Popen[str]"] = None
        self._environment: Dict[str, str] = {}

    def start(self, n_workers: Optional[int] = None) -> None:
        """Starts it; workers may connect when this returns. Raises ValueError when it cannot, for example because the
        port is taken. `n_workers` is there for callers of XGBoost 1.x, which said it a second time here."""
        with self._lock:
            if n_workers not in (None, self._n_workers):
                raise ValueError(f"a tracker of {self._n_workers} workers was started for {n_workers}")
            if self._freed:
                raise ValueError("the tracker has been freed; a new job takes a new one")
            if self._process is not None:
                return
            process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            for line in process.stdout:
                name, found, value = line.rstrip("\n").partition("=")
                if found:
                    self._environment[name] = value
                if name == "DMLC_TRACKER_ENV_END":
                    break
            else:
                code = process.wait()
                _end(process)
                raise ValueError(f"the tracker could not start (exit code {code}); its message is above")
            self._process = process
            weakref.finalize(self, _end, process)

    def wait_for(self, timeout: Optional[int] = None) -> None:
        """Waits until all workers have shut down. Raises ValueError after `timeout` seconds, or when the tracker has given
        up: workers were missing for its own `timeout`, at the start or after one had failed."""
        process = self._running()
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ValueError(f"Timeout waiting for the tracker: the job has not ended after {timeout} s") from None
        if self._freed:
            raise ValueError("the tracker was freed before the job had ended")
        if code != 0:
            raise ValueError(f"the tracker ended with code {code}; its message is above")

    def worker_args(self) -> Dict[str, Union[str, int]]:
        """For `xgboost.collective.init` (2.1 and later)."""
        self._running()
        return {"dmlc_tracker_uri": self._environment["DMLC_TRACKER_URI"],
                "dmlc_tracker_port": int(self._environment["DMLC_TRACKER_PORT"])}

    def worker_envs(self) -> Dict[str, Union[str, int]]:
        """For `xgboost.rabit.init` and `warren.rabit.init`, as arguments or in the workers' environment."""
        self._running()
        return {"DMLC_TRACKER_URI": self._environment["DMLC_TRACKER_URI"],
                "DMLC_TRACKER_PORT": int(self._environment["DMLC_TRACKER_PORT"]),
                "DMLC_NUM_WORKER": int(self._environment["DMLC_NUM_WORKER"])}

    def join(self) -> None:
        """`wait_for` under the name that it has in XGBoost up to 2.0."""
        self.wait_for()

    def alive(self) -> bool:
        """Whether it has been started and the job has not ended."""
        return self._process is not None and self._process.poll() is None

    def free(self) -> None:
        """Ends it, whatever the job does."""
        with self._lock:
            self._freed = True
            if self._process is not None:
                _end(self._process)

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise ValueError("the tracker has not been started: call start() first")
        return self._process


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def main() -> NoReturn:
    """Becomes rabit-tracker with this process's arguments."""
    _native.run("rabit-tracker", sys.argv[1:])


if __name__ == "__main__":
    main()
