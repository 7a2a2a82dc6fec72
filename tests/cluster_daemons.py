"""The base class of slurm_cluster.py and tests/submit/cluster/sge_cluster.py: a real cluster whose servers all run on this machine."""

import os
import pathlib
import signal
import subprocess
import time


class ClusterOfDaemons:
    """The servers of a cluster, started as root, with all files in one directory. A derived class calls `_begin` at the end of its
    constructor, and defines `environment()`, the variables that the cluster's clients and servers need in addition to the usual
    environment; `_end_jobs()`, which cancels all jobs; `_logs()`, the paths of the logs; and `_is_of_a_job(entry)`, whether a process,
    given by its folder in /proc, belongs to a job."""

    def __init__(self, directory, timeout):
        self.directory = pathlib.Path(directory).resolve()
        self.timeout = timeout
        self.processes = []
        self.log = None

    def _begin(self, start):
        """Calls `start`, which starts the servers. If `start` fails, stops everything and re-raises the error."""
        try:
            start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, *words, **more):
        """Runs a client program in the cluster's environment. Returns subprocess.run's result; does not raise if the program fails."""
        environment = {**os.environ, **self.environment(), **more.pop("env", {})}
        return subprocess.run([str(word) for word in words], env=environment, check=False, **more)

    def close(self):
        """Cancels the jobs, kills the servers, and then kills all processes of jobs that still run."""
        if self.processes:
            try:
                self._end_jobs()
            except subprocess.TimeoutExpired:
                pass
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes = []
        self._kill_jobs()
        if self.log:
            self.log.close()
            self.log = None

    def _open_log(self):
        self.log = open(self.directory / "daemons.log", "ab")

    def _daemon(self, *words, **environment):
        """Starts a server in a new session, so that SIGINT from a terminal does not reach it."""
        self.processes.append(subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                               start_new_session=True, cwd=self.directory,
                                               env={**os.environ, **self.environment(), **environment}))

    def _await(self, condition, what):
        """Waits for the condition. Raises OSError with the end of each log if a server exits or the timeout expires."""
        deadline = time.monotonic() + self.timeout
        while not condition():
            for process in self.processes:
                if process.poll() is not None:
                    raise OSError(f"{process.args[0]} ended ({process.returncode}): {self._tail()}")
            if time.monotonic() > deadline:
                raise OSError(f"not within {self.timeout} s: {what}: {self._tail()}")
            time.sleep(0.1)

    def _tail(self):
        return "".join(f"\n{path}: {path.read_text(errors='replace')[-1500:]}" for path in self._logs() if path.exists())

    def _kill_jobs(self):
        """Kills all processes of jobs and their descendants, even processes that are no longer descendants of a server."""
        for entry in processes():
            try:
                is_of_a_job = self._is_of_a_job(entry)
            except OSError:
                continue
            if is_of_a_job:
                kill_tree(int(entry.name))


def processes():
    """The folders in /proc of all processes."""
    return (entry for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())


def kill_tree(pid):
    """Sends SIGKILL to a process and all its descendants."""
    for entry in processes():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == pid:
            kill_tree(int(entry.name))
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
