"""A job that was started from Python."""
import contextlib
import dataclasses
import html
import json
import os
import pathlib
import pickle
import signal
import site
import subprocess
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from warren._engine import native as _native
from warren._jobs import driver as _driver
from warren._jobs import logs as _logs
from warren._jobs import options as _options
from warren._jobs import output as _output
from warren._jobs import pickling as _pickling
from warren._jobs import worker as _worker
from warren._rounds import mlflow_runs as _mlflow_runs
from warren._system import forks as _forks

#: dmlc-submit's exit code for a command line that it does not accept.
_USAGE = 2
_POLL_S = 0.1
#: The log of a job whose output is not shown, in the folder with the logs of its processes.
_LOG = "job.log"
#: JobStatus.story for a job that was interrupted so early that dmlc-submit has no record of it.
_NOT_BEGUN = "the job was interrupted before it had begun"
#: The job's page, which dmlc-submit leaves in the same folder.
_PAGE = "job.html"


class JobFailed(RuntimeError):
    """Raised for a job that failed without an exception of the function: a process was killed or exited, a host was lost, or workers were
    missing. `exit_code` is that of dmlc-submit, `id` the job's ID for `warren jobs`."""

    def __init__(self, story: str, exit_code: int, id: str = "") -> None:  # pylint: disable=redefined-builtin
        super().__init__(story)
        self.exit_code, self.id = exit_code, id

    def __reduce__(self) -> Any:
        return JobFailed, (self.args[0], self.exit_code, self.id)


class _Remote(Exception):
    """The cause of an exception that was raised in another process: contains the traceback there."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclasses.dataclass(frozen=True)
class JobStatus:
    """The status of a job."""

    state: str  #: "starting", "running", "succeeded", "failed" or "interrupted"
    seconds: float  #: the time since the start, or from start to end
    returned: List[int]  #: the tasks whose function has returned
    exit_code: Optional[int] = None  #: dmlc-submit's exit code, once the job has ended
    story: str = ""  #: how the job ended, if it failed


class Page(str):
    """The address of a job's page. A notebook shows the page itself."""

    def __new__(cls, address: str, kept: str = "") -> "Page":
        """`kept`: the content of the page, once the job has ended."""
        made = super().__new__(cls, address)
        made._kept = kept
        return made

    _kept: str

    def _repr_html_(self) -> str:
        frame = '<iframe style="width: 100%; height: 600px; border: 1px solid #8888"'
        if self._kept:
            return f'{frame} srcdoc="{html.escape(self._kept)}"></iframe>'
        place, _, token = self.partition("?token=")
        # The token is part of the path, because the page cannot set a cookie for its viewer inside a frame.
        return f'{frame} src="{html.escape(place)}in/{html.escape(token)}/"></iframe><a href="{html.escape(self)}" target="_blank">open</a>'


class Job:
    """A job in which each process calls a function of this process; `warren.start` makes it. It ends when this process ends. Thread-safe."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any], num_workers: Any, options: Dict[str, Any], *, is_shown: bool,
                 serve: Optional[_driver.Serve] = None) -> None:
        """`is_shown`: whether the output is shown, by `show`, rather than kept for `logs`. `serve` answers the requests of the processes."""
        name = getattr(function, "__name__", type(function).__name__)
        usual = {"jobname": name if name.isidentifier() else "function", "dashboard": not is_shown}
        words, environment = _options.words_of(num_workers, {**usual, **options})
        self._is_elastic = isinstance(num_workers, (tuple, list))
        self._num_workers = int(num_workers[-1] if self._is_elastic else num_workers)
        call: Dict[str, Any] = {"path": _driver.path_here(), "sources": _driver.sources_here(),
                                "function": _pickling.dumps((function, tuple(arguments)), f"the function {name}")}
        cluster = _options.cluster_of(options)
        is_local = cluster == "local"
        call["mlflow"] = _mlflow_runs.of_driver(is_local, serve is not None, environment)
        if options.get("tls") and not is_local:
            raise ValueError("tls: a job that is started from Python sends functions and results without encryption, on this machine only: "
                             "start a script with dmlc-submit --tls")
        secret = os.urandom(32)
        self._lock = threading.Lock()
        self._logs = _logs.Folder(options.get("log_dir"))
        self._folder = self._logs.path
        self._earlier = set((self._folder / "jobs").glob("*.json"))
        with contextlib.ExitStack() as undone:
            undone.callback(self._logs.close)
            self._driver = _driver.Driver(call, secret, is_local, _driver.ports_of(options, is_local), serve)
            undone.callback(self._driver.close)
            self._start(words, environment, options, cluster, secret, is_shown)
            undone.pop_all()
        if not is_shown:
            threading.Thread(target=self._wait, args=(None, ), name="warren-job", daemon=True).start()

    def _start(self, words: List[str], environment: Dict[str, str], options: Dict[str, Any], cluster: str, secret: bytes,
               is_shown: bool) -> None:
        """Starts dmlc-submit."""
        environment[_worker.VARIABLE] = f"{_driver.host_for(cluster, options)}:{self._driver.port}"
        if "WARREN_NATIVE" in os.environ:
            environment.setdefault("WARREN_NATIVE", os.environ["WARREN_NATIVE"])
        if options.get("timeout") is None:
            words += ["--timeout", "0"]  # without a timeout, since a function may never join the job
        if options.get("log_dir") is None:
            words += [f"--log-dir={self._folder}"]
        command = [_native.program("dmlc-submit"), *words, *_options.passing(environment), "--until-stdin-closes", "--", *_command()]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DMLC_") or name == "DMLC_SUBMIT_CLUSTER"}
        variables = {**inherited, **environment, "DMLC_JOB_TOKEN": secret.hex()}
        _check(command, variables)
        self._pump = _output.Pump() if is_shown and not _output.is_terminals() else None
        streams: Dict[str, Any] = self._pump.streams() if self._pump else {}
        log = None if is_shown else open(self._folder / _LOG, "wb")
        if log is not None:
            streams = {"stdout": log, "stderr": subprocess.STDOUT}
        self._is_interrupted = False
        self._began = time.monotonic()
        self._seconds: Optional[float] = None
        more = self._pump.environment() if self._pump else {}
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        try:
            # A terminal sends the signal of Ctrl-C to a whole process group. dmlc-submit runs in another group, because `show` sends it the
            # signal.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **streams,
                                             env={**variables, **more})
        finally:
            if self._pump is not None:
                self._pump.started()
            if log is not None:
                log.close()
        _forks.closed.add(self._process.stdin)
        _running.add(self)
        self._finalizer = weakref.finalize(self, _end, self._process, self._driver, os.getpid())

    # --- while the job runs ----------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process ID of the job's dmlc-submit, by which `warren jobs` finds the job."""
        return self._process.pid

    def done(self) -> bool:
        """Whether the job has ended."""
        return self._process.poll() is not None

    def status(self) -> JobStatus:
        """Returns the current status of the job."""
        outcomes = self._driver.outcomes()
        returned = [one.task for one in outcomes if one.kind == "returned"]
        if not self.done():
            return JobStatus("running" if outcomes else "starting", time.monotonic() - self._began, returned)
        code, record = self._ended(None), self._record()
        state = record.get("how") or ("succeeded" if code == 0 else "failed")
        if not record and self._is_interrupted:
            record, state = {"story": _NOT_BEGUN}, "interrupted"
        seconds = record.get("seconds")
        return JobStatus(state, float(self._seconds or 0 if seconds is None else seconds), returned, code,
                         "" if code == 0 else str(record.get("story") or ""))

    def logs(self, rank: Optional[int] = None, *, follow: bool = False) -> Any:
        """Returns the output of the job so far, as a string: all of it or, with `rank`, the output of the task with this number, which is the
        process with this rank unless the job sorts ranks by host. With `follow`, returns an iterator over present and future lines, which
        ends with the job. Raises ValueError for a rank that the job does not have, and, without `rank`, if the output has already been
        shown."""
        if rank is not None and rank not in range(self._num_workers):
            raise ValueError(f"rank is {rank!r}, and the job has {self._num_workers} workers: expected 0 to {self._num_workers - 1}")
        path = self._folder / (_LOG if rank is None else f"worker-{rank}.log")
        if rank is None and not path.exists():
            raise ValueError("the output of this job has been shown already; logs(rank) returns that of a process")
        if follow:
            return _logs.followed(path, self.done)
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def page(self) -> "Page":
        """Returns the address of the job's page, for a browser on this machine; in a notebook, the page appears below the cell. After the end
        of the job, it is the page's final state. Raises ValueError for a job without a page (made by `warren.run`, or with
        dashboard=False)."""
        kept = self._folder / _PAGE
        while not (record := self._record()) and not self.done():
            time.sleep(_POLL_S)
        if self.done() and kept.exists():
            return Page(kept.resolve().as_uri(), kept.read_text(encoding="utf-8", errors="replace"))
        if not record.get("dashboard"):
            raise ValueError("this job has no page: only jobs of warren.start have one, unless dashboard is False")
        return Page(record["dashboard"])

    def show(self) -> None:
        """Shows the output until the job ends. A KeyboardInterrupt ends the job, as Ctrl-C ends dmlc-submit, and is raised afterwards."""
        interrupt: Optional[KeyboardInterrupt] = None
        while True:
            try:
                if self._pump is not None:
                    self._pump.copy(self._process)
                self._wait(None)
                break
            except KeyboardInterrupt as error:
                interrupt = error
                self._signal(signal.SIGINT)
            except BaseException:
                self.cancel()  # the output cannot be shown
                raise
        if self._pump is not None:
            self._pump.close()
            self._pump = None
        if interrupt is not None:
            raise interrupt

    def cancel(self) -> None:
        """Ends the job, as Ctrl-C ends dmlc-submit, and waits until its processes are gone. Does nothing if it has ended."""
        self._signal(signal.SIGINT)
        self._wait(None)

    def result(self, timeout: Optional[float] = None) -> List[Any]:
        """Waits for the job and returns the result of each rank, in the order of ranks. In an elastic job these are the results of the
        workers that took part at the end.

        Raises the exception that the function raised in the process that failed first, with that process's traceback as its cause; JobFailed
        if there is no such exception (the process was killed or exited, say), or if results are missing; TimeoutError after `timeout`
        seconds."""
        code = self._ended(timeout)
        outcomes, record = self._driver.outcomes(), self._record()
        if code == 0:
            returned = sorted((one for one in outcomes if one.kind == "returned"), key=lambda one: (one.rank, one.task))
            missing = self._num_workers - len(returned)
            if not returned or missing > 0 and not self._is_elastic:
                raise JobFailed(f"the job ended with code 0, but {missing} of {self._num_workers} processes sent no result: they ended inside the "
                                "function", code, str(record.get("id", "")))
            _say_what_was_separate(returned)
            return [pickle.loads(one.said["value"]) for one in returned]
        if not record and self._is_interrupted:
            raise JobFailed(_NOT_BEGUN, code)
        failed = _first_failed(outcomes, record)
        if failed is not None:
            raise _exception_of(failed)
        story = str(record.get("story") or "")
        raise JobFailed(f"{story or f'dmlc-submit ended with code {code}'}{'' if story else self._last_words()}", code,
                        str(record.get("id", "")))

    def __repr__(self) -> str:
        status = self.status()
        return f"<warren.Job {status.state}, {status.seconds:.1f} s, pid {self.pid}>"

    # --- inside ----------------------------------------------------------------------------------------------

    def _wait(self, timeout: Optional[float]) -> int:
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the job has not ended after {timeout} s; job.cancel() ends it") from None
        with self._lock:
            if self._seconds is None:
                self._seconds = time.monotonic() - self._began
                self._finalizer()
                _running.discard(self)
        return code

    def _ended(self, timeout: Optional[float]) -> int:
        """Waits, and returns dmlc-submit's exit code. In a program that ignores SIGCHLD, subprocess takes every exit code for 0, so that the
        record has the code."""
        return self._wait(timeout) or int(self._record().get("exit_code") or 0)

    def _signal(self, number: int) -> None:
        if self._process.poll() is None:
            self._is_interrupted = True
            self._process.send_signal(number)

    def _record(self) -> Dict[str, Any]:
        """Returns dmlc-submit's record of the job; {} if none exists."""
        # In a log_dir that an earlier job has used, another dmlc-submit may have had the same pid.
        for path in sorted(set((self._folder / "jobs").glob(f"*-{self.pid}.json")) - self._earlier, reverse=True):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            return {**record, "id": path.stem}
        return {}

    def _last_words(self) -> str:
        """Returns the last lines of the output, for an error message, or a reference to the output if it was shown."""
        path = self._folder / _LOG
        words = "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]) if path.exists() else ""
        return f": {words}" if words else "; its message is above"


def _check(command: List[str], variables: Dict[str, str]) -> None:
    """Raises ValueError, with dmlc-submit's message, if dmlc-submit does not accept the options."""
    checked = subprocess.run([command[0], "--dry-run", *command[1:]], env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, check=False)
    if checked.returncode == _USAGE:
        message = checked.stderr.decode(errors="replace").partition("\n")[0]
        raise ValueError(message.replace("dmlc-submit: error: ", "dmlc-submit: ", 1))


def _command() -> List[str]:
    """The command that runs warren._jobs.worker with this interpreter, and this package."""
    place = str(pathlib.Path(__file__).resolve().parents[2])
    installed = {*site.getsitepackages(), site.getusersitepackages()} if hasattr(site, "getsitepackages") else set()
    # With -c, modules are first searched for in the current directory, which may not be in the driver's path.
    here = f"sys.path[:] = {[] if place in installed else [place]!r} + [place for place in sys.path if place]"
    flags: List[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
    return [sys.executable, *flags, "-c", f"import sys; {here}; import importlib; importlib.import_module('warren._jobs.worker').main()"]


def _first_failed(outcomes: Sequence[_driver.Outcome], record: Dict[str, Any]) -> Optional[_driver.Outcome]:
    """Returns the outcome whose exception is to be raised; None if there is no exception, or if the process that failed first, according to
    dmlc-submit, raised none, since the other processes then failed as a consequence."""
    raised = [one for one in outcomes if one.kind == "raised"]
    worker = str((record.get("failed_by") or {}).get("worker", ""))
    task = worker.rpartition(" ")[2]
    if task.isdigit():
        return next((one for one in raised if one.task == int(task)), None)
    return raised[0] if raised and record.get("how") != "interrupted" else None


def _exception_of(failed: _driver.Outcome) -> BaseException:
    said = failed.said
    where = f"rank {failed.rank}, on {failed.host}"
    error: Any = None
    if said["exception"] is not None:
        with contextlib.suppress(Exception):  # its class may not exist here
            error = pickle.loads(said["exception"])
    found = error if isinstance(error, BaseException) else RuntimeError(f"{said['type']} on {where}: {said['text']}")
    found.__cause__ = _Remote(f"\nTraceback of {where}:\n{said['traceback']}")
    return found


def _say_what_was_separate(outcomes: Sequence[_driver.Outcome]) -> None:
    """Prints a message if there are several processes, and all of them have used a library for distributed training without joining their
    job."""
    separate = [one for one in outcomes if one.said.get("separate")]
    if len(outcomes) > 1 and len(separate) == len(outcomes):
        library = separate[0].said["separate"]
        print(f"warren: {len(outcomes)} processes used {library} without joining their job: each of them trained by itself, if it did; put the "
              f"training into `with warren.{library}.communicator():`", file=sys.stderr, flush=True)


#: The jobs that are not known to have ended. Because of this reference, a job continues even if the program drops its object.
_running: Set[Job] = set()


def _end(process: "subprocess.Popen[bytes]", driver: _driver.Driver, owner: int) -> None:
    """Ends the job, if it is still running, and its connections, unless this process is a fork of the one that started the job."""
    if os.getpid() != owner:
        return
    assert process.stdin is not None
    process.stdin.close()
    process.wait()
    driver.close()
