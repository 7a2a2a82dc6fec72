"""Tests of dmlc-submit that every cluster must pass. Each cluster's test file runs them."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from submit_case import LIMIT_S, NASTY, PROGRAM, RECORD, SubmitCase, as_bytes, kill_at_once, str_or_bytes
from warren_testing import BIN, SOURCE, wait_for

READY = "echo ready > ready-$DMLC_TASK_ID; exec sleep 600"
GONE_LIMIT_S = 5.0  # the grace time of 0.6 s, plus delays on a busy machine
RESULT = "x" * 60
PYTHON = ["/usr/bin/python3", "-c"]  # installed on every host
#: The options and the command of an elastic job. In each generation, every worker writes its pid and host to the file
#: met-TASK-GENERATION-of-SIZE. The workers end once there is a file `end`.
MEMBER = ["--env", f"PYTHONPATH={SOURCE / 'python/src'}", "--env", f"WARREN_NATIVE={BIN.parent}", *PYTHON, """
import os, pathlib, time
from warren._launch.membership import JobIsOver, Membership

def meet():
    try:
        found = member.next_generation(lambda: True)
    except JobIsOver:
        raise SystemExit(0)
    path = pathlib.Path(f"met-{os.environ['DMLC_TASK_ID']}-{found.number}-of-{found.size}")
    path.write_text(f"{os.getpid()} {os.environ.get('DMLC_NODE_HOST', '')}")

member = Membership()
meet()
while not pathlib.Path("end").exists():
    time.sleep(.1)
    if member.wants_change():
        member.come_again()
        meet()
member.done()
member.close()
"""]

#: A program that runs a function as a job of two workers, each of which takes a share of some rows. Its arguments are the job's options as
#: JSON and the name of the cluster.
DRIVER = """
import json, os, sys
import numpy as np
from warren._jobs import job, rows, worker
from warren.data._table import Table

def function(given):
    print("in the function")
    task = int(os.environ["DMLC_TASK_ID"])
    return task, os.environ["DMLC_JOB_CLUSTER"], given.share(task, 2, worker.channel).features.tolist()

served = rows.RowsForJob(sys.argv[2] == "local")
given = served.add(rows.rows_of(Table(np.arange(10).reshape(5, 2), None, None, None, None, None, None, {})))
started = job.Job(function, (given, ), 2, json.loads(sys.argv[1]), is_shown=True, serve=served.serve)
started.show()
print(json.dumps(started.result()))
"""


def processes_with(mark):
    """The command lines, by pid, of all other live processes that have the value of `mark` (NAME=VALUE) in their environment."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if mark.split("=")[1].encode() in (entry / "environ").read_bytes():
                if (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return found


def command_lines():
    """The command lines of all processes on this machine. Any user can read them."""
    lines = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.add(path.read_bytes())
    return lines


def open_to_others(directory):
    """Yields the files below `directory` that the group or others could read if they had access to `directory` itself."""
    for parent, folders, names in os.walk(directory):
        parent = pathlib.Path(parent)
        with contextlib.suppress(FileNotFoundError):
            folders[:] = [name for name in folders if (parent / name).stat(follow_symlinks=False).st_mode & 0o011]
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                path = parent / name
                if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o044:
                    yield path


class ClusterCase(SubmitCase):
    """Base class of tests that run dmlc-submit on a cluster."""

    CLUSTER = ""  # the value of DMLC_JOB_CLUSTER
    WORKERS = 3
    ERRORS_COME_APART = True  # whether standard output and standard error are kept separate
    CAN_BE_LEFT = True  # whether a job keeps running after the command that started it has ended
    CORES_ARE_SHARED = True  # whether the workers on a host share its cores

    def cluster_options(self):
        """The options that choose the cluster."""
        return ["--cluster", self.CLUSTER]

    def cluster_environment(self):
        return {}

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory(prefix="warren-tmp-")
        self.addCleanup(directory.cleanup)
        self.temporary = pathlib.Path(directory.name)

    def enter(self, command):
        """The command line that runs `command` where dmlc-submit must run, e.g. in a network namespace or in an allocation."""
        return command

    def left(self):
        """The command lines, by pid, of all live processes that have the mark in their environment, except dmlc-submit's."""
        return {pid: line for pid, line in processes_with(self.mark).items() if not line.startswith(PROGRAM)}

    def start(self, *words, environment=None, **settings):
        command = self.enter([PROGRAM, *map(str, self.cluster_options()), "--env", self.mark])
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.directory, **settings}
        process = subprocess.Popen(
            [*map(os.fsencode, command), *(os.fsencode(str_or_bytes(word)) for word in words)],
            stdin=subprocess.DEVNULL,
            env=self.environment({"TMPDIR": str(self.temporary), **self.cluster_environment(), **(environment or {})}),
            **settings,
        )
        return self.note(process)

    def kill_worker(self, task, pid):
        """Kills worker `task`, whose pid on its host is `pid`."""
        del task
        os.kill(pid, signal.SIGKILL)

    def submit_pid(self):
        """The pid of dmlc-submit, which may differ from the pid of the started process: `enter` may wrap the command in another program."""
        for pid in self.marked():
            if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] == PROGRAM.encode():
                return pid
        raise AssertionError("dmlc-submit does not run")

    def interrupt(self, process, number=signal.SIGINT):
        """Sends dmlc-submit a signal, and checks that its exit code names it. Returns the output that was not read yet."""
        os.kill(self.submit_pid(), number)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + number, err)
        return out.decode()

    def finish(self, process):
        """Lets the workers of MEMBER end, and checks that the job succeeds. Returns the part of standard error that was not read yet."""
        self.file("end").touch()
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        return err.decode()

    def check_all_gone(self, seconds=GONE_LIMIT_S):
        try:
            wait_for(lambda: not self.left(), seconds, f"the end of {self.left()}")
        finally:
            for pid in self.left():
                kill_at_once(pid)

    def folders(self):
        """The folders in which dmlc-submit keeps files for its launcher."""
        return [*self.temporary.glob("dmlc-submit-*"), *self.directory.glob(".dmlc-submit-*")]

    def places_of_files(self):
        """The directories in which dmlc-submit and the cluster's programs write files for a job."""
        return [self.directory, self.temporary]

    def ready(self, tasks):
        self.wait_for_files(*(f"ready-{task}" for task in range(tasks)))
        for task in range(tasks):
            self.file(f"ready-{task}").unlink()

    def local_ranks(self, workers):
        """The local rank of each worker, and the number of workers on its host."""
        return [(0, 1)] * workers

    def threads_of_two(self):
        """OMP_NUM_THREADS of the workers in a job of two; empty if the cluster decides it."""
        return ""


class BindingBehaviour(ClusterCase):
    """Tests for clusters that bind processes to cores. Used like ClusterBehaviour."""

    OPTIONS = ()  # options that put two workers on one host, with a core for each

    def test_two_workers_of_a_host_have_a_core_each(self):
        show = [*PYTHON, "import os; print(sorted(os.sched_getaffinity(0)), os.environ.get('OMP_NUM_THREADS'))"]
        allowed = sorted(os.sched_getaffinity(0))
        threads = pathlib.Path(f"/sys/devices/system/cpu/cpu{allowed[0]}/topology/thread_siblings_list").read_text().strip()
        if len(allowed) != 2 or threads != str(allowed[0]):
            self.skipTest("is for a machine with two cores of one hardware thread")
        process = self.submit("--num-workers", 2, "--bind", "core", "--worker-cores", 1, *self.OPTIONS, *show)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(line.split("] ", 1)[1] for line in process.out.splitlines()),
                         [f"[{core}] 1" for core in allowed], process.err)  # fmt: skip
        process = self.submit("--num-workers", 2, "--bind", "none", "--worker-cores", 1, *self.OPTIONS, *show)
        self.assertEqual(process.out.count(f"] {allowed} 1\n"), 2, process.out + process.err)
        self.check_all_gone()


class WatchingBehaviour(ClusterCase):
    """Tests for clusters that sample processes and collect their stacks. Used like ClusterBehaviour."""

    STATES = (r"worker 0: state R, \d+\.\d s of CPU, [1-9]\d* MB", r"worker 1: state S, 0\.\d s", r"worker 2: state T, ")

    def watched(self):
        """Starts a job with a busy, a sleeping and a stopped worker."""
        code = ("echo ready > ready-$DMLC_TASK_ID; case $DMLC_TASK_ID in 0) sh -c 'while :; do :; done' ;; 1) sleep 600 ;;"
                " 2) sh -c 'kill -STOP $$' ;; esac; true")
        process = self.start("--num-workers", 3, "--no-tracker", "--log-level", "DEBUG", "sh", "-c", code)
        self.ready(3)
        return process

    def read_samples(self, process, patterns):
        seen = ""
        while not all(re.search(pattern, seen) for pattern in patterns):
            seen += self.wait_for_text(process.stderr, "state")
        return seen

    def test_who_runs_who_sleeps_who_is_stopped_and_where_each_is(self):
        process = self.watched()
        self.read_samples(process, self.STATES)
        os.kill(self.submit_pid(), signal.SIGUSR2)
        seen = ""
        while not all(re.search(rf"stack of worker {worker} .*:\n(dmlc-submit.*\n)*process \d+ \(sh\): ", seen) for worker in range(3)):
            seen += self.wait_for_text(process.stderr, "stack of")
        if shutil.which("gdb"):
            self.assertIn("#0 ", seen + self.wait_for_text(process.stderr, "#0 ") if "#0 " not in seen else seen)
        self.interrupt(process)
        self.check_all_gone()

    def test_while_a_tool_hangs_that_looks_the_host_is_heard_of_and_it_ends_with_the_job(self):
        tools = self.file("tools")
        tools.mkdir()
        (tools / "py-spy").write_text(f"#!/bin/sh\necho x > {self.file('asked')}\nexec sleep 600\n")
        (tools / "py-spy").chmod(0o755)
        code = "import os, time; os.fork(); open('ready-0', 'w').write('x'); time.sleep(600)"  # two processes to inspect
        process = self.start("--num-workers", 1, "--no-tracker", "--log-level", "DEBUG", "--env",
                             f"PATH={tools}:{os.environ['PATH']}", *PYTHON, code)  # fmt: skip
        self.ready(1)
        os.kill(self.submit_pid(), signal.SIGUSR2)
        self.wait_for_files("asked")
        # The first of the two samples may have been taken before the request.
        self.assertNotIn("stack of", "".join(self.wait_for_text(process.stderr, "worker 0: state S") for _ in range(2)))
        self.interrupt(process)
        self.check_all_gone()

    def test_a_worker_that_is_started_again_is_watched_again(self):
        code = "[ $DMLC_NUM_ATTEMPT = 1 ] || exit 3; echo ready > ready-$DMLC_TASK_ID; exec sleep 600"
        process = self.start("--num-workers", 1, "--no-tracker", "--local-num-attempt", 1, "--log-level", "DEBUG", "sh", "-c", code)
        self.ready(1)
        self.read_samples(process, ["worker 0: state S"])
        os.kill(self.submit_pid(), signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)
        self.check_all_gone()


class ServersCase(ClusterCase):
    """Base class of tests on a cluster with a job queue. The cluster's servers are started once per test class."""

    JOBS_END_S = 15

    @classmethod
    def make_servers(cls, directory):
        """Starts the servers. Returns an object with `directory`, run(), environment() and close()."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix=f"warren-{cls.CLUSTER}-")
        cls.addClassCleanup(directory.cleanup)
        cls.servers = cls.make_servers(pathlib.Path(directory.name) / "servers")
        cls.addClassCleanup(cls.servers.close)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.check_no_job_is_left)

    def cluster_environment(self):
        return self.servers.environment()

    def places_of_files(self):
        return [*super().places_of_files(), self.servers.directory]

    def jobs(self):
        """The numbers of the jobs in the queue."""
        raise NotImplementedError

    def cancel(self, *jobs):
        raise NotImplementedError

    def check_no_job_is_left(self):
        try:
            wait_for(lambda: not self.jobs(), self.JOBS_END_S, "the end of all jobs")
        finally:
            for job in self.jobs():
                self.cancel(job)


class QueueBehaviour(ServersCase):
    """Tests for clusters whose processes wait in a queue. Used like ClusterBehaviour."""

    REFUSAL = ""  # what dmlc-submit shows of the queue's answer to a job for a queue called nonesuch
    CANCELLED = ""  # a regular expression for the last line about a job that was cancelled
    HOLD = ()  # the options of a job that has to wait
    HELD = ""  # what dmlc-submit says of such a job

    def test_a_job_that_is_refused_tells_why(self):
        process = self.submit("--num-workers", 1, "--queue", "nonesuch", "true")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(self.REFUSAL, process.err)

    def test_a_job_that_is_cancelled_is_over_and_says_so(self):
        process = self.start("--num-workers", 2, "sh", "-c", READY)
        self.ready(2)
        self.cancel(*self.jobs())
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(err.decode().splitlines()[-1], self.CANCELLED)
        self.check_all_gone(10)

    def test_a_job_that_waits_leaves_the_queue_when_dmlc_submit_is_interrupted_or_killed(self):
        for number in (signal.SIGINT, signal.SIGKILL):
            process = self.start("--num-workers", 2, *self.HOLD, "true")
            self.wait_for_text(process.stderr, self.HELD)
            process.send_signal(number)
            process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, 130 if number == signal.SIGINT else -number)
            wait_for(lambda: not self.jobs(), 10, "the end of the job")


class ClusterBehaviour(ClusterCase):
    """Tests for every cluster. Test files derive from this class and then delete its name, so that it is not run as a test itself."""

    def test_arguments_and_environment_arrive_byte_for_byte(self):
        self.file("record.py").write_text(RECORD)
        options = []
        for index, value in enumerate(NASTY):
            options += ["--env", f"NASTY_{index}=".encode() + as_bytes(value)]
        options += ["--env", "no-shell-name=it's one", "--env", "PATH=/nowhere"]
        # Names that the wrapper scripts use themselves, and names that bash reserves.
        others = {"rank": "16", "port": "8000", "attempt": "7", "mark": "x", "agent_key": "y", "IFS": "0", "UID": "7", "RANDOM": "it's 8"}
        for name, value in others.items():
            options += ["--env", f"{name}={value}"]
        words = ["/usr/bin/python3", "record.py", *NASTY, ":", "x" * 120000]
        process = self.submit("--num-workers", 2, *options, *words)
        self.assertEqual(process.returncode, 0, process.err)
        ports = set()
        for task, (_, workers_here) in enumerate(self.local_ranks(2)):
            record = json.loads(self.file(f"worker-{task}-0").read_text())
            self.assertEqual([bytes.fromhex(a) for a in record["arguments"]], [as_bytes(word) for word in words])
            self.assertEqual(record["stdin"], "/dev/null")
            variables = {bytes.fromhex(k): bytes.fromhex(v) for k, v in record["environment"].items()}
            for index, value in enumerate(NASTY):
                self.assertEqual(variables[f"NASTY_{index}".encode()], as_bytes(value))
            self.assertEqual(variables[b"no-shell-name"], b"it's one")
            self.assertEqual(variables[b"PATH"], b"/nowhere")
            self.assertEqual({name: variables[name.encode()].decode() for name in others}, others)
            own = {b"DMLC_TASK_ID": task, b"RANK": task, b"DMLC_NUM_ATTEMPT": 0, b"LOCAL_WORLD_SIZE": workers_here}
            self.assertEqual({name: int(variables[name]) for name in own}, own)
            ports.add(variables[b"DMLC_TRACKER_PORT"])
            self.assertEqual(variables[b"DMLC_JOB_CLUSTER"], self.CLUSTER.encode())
            self.assertEqual([k for k in variables if k.startswith(b"DMLC_SUBMIT_SCRIPT")], [])
        self.assertEqual(len(ports - {b"8000"}), 1, ports)

    def test_a_program_runs_a_function_of_its_own(self):
        options = {}
        words = iter(map(str, self.cluster_options()))
        for word in words:
            options.setdefault(word[2:].replace("-", "_"), []).append(next(words))
        options = {name: values[0] if len(values) == 1 else values for name, values in options.items()}
        options["env"] = [self.mark]
        command = self.enter([*PYTHON, DRIVER, json.dumps(options), self.CLUSTER])
        environment = {"PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent), "TMPDIR": str(self.temporary)}
        process = subprocess.run(command, cwd=self.directory, env=self.environment({**self.cluster_environment(), **environment}),
                                 capture_output=True, text=True, timeout=2 * LIMIT_S, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        *lines, found = process.stdout.splitlines()
        self.assertEqual(sorted(line for line in lines if line.startswith("[")), ["[0] in the function", "[1] in the function"])
        self.assertEqual(json.loads(found), [[0, self.CLUSTER, [[0, 1], [2, 3]]], [1, self.CLUSTER, [[4, 5], [6, 7], [8, 9]]]])
        self.check_nothing_is_left()

    def warren(self, *words):
        """Runs `warren` with these arguments. Returns the completed process."""
        environment = {"PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent), **self.cluster_environment()}
        return subprocess.run(["/usr/bin/python3", "-m", "warren", *words], env=self.environment(environment), capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)

    def test_a_job_is_left_asked_and_ended(self):
        if not self.CAN_BE_LEFT:
            self.skipTest("it ends with the command that has started it")
        started = self.start("--detach", "--num-workers", 2, "sh", "-c", f"echo here; {READY}")
        out, error = started.communicate(timeout=2 * LIMIT_S)
        self.assertEqual(started.returncode, 0, error)
        name = out.decode().strip()
        self.addCleanup(self.warren, "cancel", name)
        self.wait_for_files("ready-0", "ready-1")
        status = self.warren("status", name)
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertIn("running", status.stdout)
        wait_for(lambda: self.warren("logs", name).stdout.count("here") == 2, LIMIT_S, "the output of both")
        cancelled = self.warren("cancel", name)
        self.assertEqual(cancelled.returncode, 0, cancelled.stderr)
        self.assertNotEqual(self.warren("wait", name).returncode, 0)
        self.assertIn("interrupted", self.warren("status", name).stdout)
        self.check_nothing_is_left()

    @staticmethod
    def record_of(name):
        """The path of a job's record."""
        return pathlib.Path(os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local/state", f"warren/jobs/{name}.json")

    def lose_launcher(self, *words, files=()):
        """Starts a detached job, and kills its launcher and the launcher's child processes, so that nothing cleans up, as in a power failure.
        Returns the job's ID. `words`: options and the command. `files`: the files to wait for before the kill."""
        started = self.start("--detach", *words)
        out, error = started.communicate(timeout=2 * LIMIT_S)
        self.assertEqual(started.returncode, 0, error)
        name = out.decode().strip()
        record = self.record_of(name)
        wait_for(lambda: "kept_jobs" in record.read_text(), LIMIT_S, "what the cluster keeps")
        self.wait_for_files(*files)
        launcher = int(name.rpartition("-")[2])
        os.kill(launcher, signal.SIGSTOP)
        for process in (int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()):
            with contextlib.suppress(OSError):
                if f"PPid:\t{launcher}\n" in pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace"):
                    os.kill(process, signal.SIGKILL)
        os.kill(launcher, signal.SIGKILL)
        return name

    def test_a_killed_worker_of_an_elastic_job_is_replaced(self):
        process = self.start("--num-workers", "1:2", *MEMBER)
        _, other = self.wait_for_files("met-0-1-of-2", "met-1-1-of-2")
        self.kill_worker(1, int(other.split()[0]))
        self.wait_for_files("met-0-2-of-2", "met-1-2-of-2")
        # On Kubernetes, the launcher may learn that the work is done before it learns that the worker was killed.
        self.assertRegex(self.finish(process),
                         r"killed by signal 9 \(SIGKILL\); (the other one goes on|by now the work of the job is done), "
                         "and it is started again")  # fmt: skip

    def test_no_other_user_reads_the_jobs_token(self):
        process = self.start("--num-workers", 2, "sh", "-c", READY)
        lines = set()

        def is_ready():
            lines.update(command_lines())
            return all(self.file(f"ready-{task}").exists() for task in range(2))

        wait_for(is_ready, LIMIT_S, "the workers")
        tokens = set()
        for pid in self.left():
            with contextlib.suppress(OSError):
                variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                tokens |= {word.partition(b"=")[2] for word in variables if word.startswith(b"DMLC_JOB_TOKEN=")}
        self.assertEqual([len(token) for token in tokens], [64], "the workers have one token")
        [token] = tokens
        self.assertEqual([line for line in lines | command_lines() if token in line], [])
        files = [path for place in self.places_of_files() for path in open_to_others(place)]
        self.assertEqual([str(path) for path in files if token in path.read_bytes()], [])
        self.interrupt(process, signal.SIGTERM)
        self.check_all_gone()
        wait_for(lambda: not self.folders(), LIMIT_S, f"the end of {self.folders()}")

    def test_workers_find_each_other_as_torchrun_would_have_told_them(self):
        # Worker 0 listens at MASTER_ADDR and MASTER_PORT, possibly after the others have tried to connect.
        code = """
import os, socket, time
rank, size, local_rank, local_size, port = (int(os.environ[name]) for name in (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"))
assert rank == int(os.environ["DMLC_TASK_ID"])
assert (rank, size, local_rank, local_size) == tuple(int(os.environ["HOROVOD_" + name]) for name in (
    "RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))
found = None
if rank == 0:
    listener = socket.create_server(("", port))
    found = [listener.accept()[0] for _ in range(1, size)]
while found is None:
    try:
        found = socket.create_connection((os.environ["MASTER_ADDR"], port))
    except (ConnectionRefusedError, socket.gaierror):  # the name of a pod takes a moment to be known
        time.sleep(0.05)
print(f"rank {rank} of {size}, here {local_rank} of {local_size}")
"""
        process = self.submit("--num-workers", self.WORKERS, *PYTHON, code)
        self.assertEqual(process.returncode, 0, process.err)
        here = self.local_ranks(self.WORKERS)
        self.assertEqual(sorted(line.split("] ", 1)[1] for line in process.out.splitlines()),
                         [f"rank {rank} of {self.WORKERS}, here {here[rank][0]} of {here[rank][1]}"
                          for rank in range(self.WORKERS)])  # fmt: skip
        if self.WORKERS > 1:
            chosen = self.submit("--num-workers", 2, "--env", "MASTER_ADDR=node7", "--env", "MASTER_PORT=7", "sh", "-c",
                                 "echo $MASTER_ADDR $MASTER_PORT")  # fmt: skip
            self.assertEqual(chosen.out.count("] node7 7\n"), 2, chosen.out + chosen.err)

    def test_workers_take_their_share_of_the_cores(self):
        show = ["sh", "-c", "echo threads=$OMP_NUM_THREADS $(nproc --all)"]
        process = self.submit("--num-workers", 2, *show)
        self.assertEqual(process.returncode, 0, process.err)
        expected = self.threads_of_two()
        self.assertEqual(process.out.count(f"threads={expected} "), 2, process.out)
        told = "each worker uses an equal share of its host's cores (OMP_NUM_THREADS; change it with --worker-cores)"
        self.assertEqual(process.err.count(told), 1 if expected and self.CORES_ARE_SHARED else 0, process.err)
        process = self.submit("--num-workers", 2, "--env", "OMP_NUM_THREADS=5", *show)
        self.assertEqual(process.out.count("threads=5 "), 2, process.err)
        self.assertNotIn(told, process.err)

    def test_each_rank_has_its_lines_and_its_log_however_much_all_write(self):
        # "problem" is written first: in a log of both streams, it would otherwise end up on the line of "end", which has no newline.
        code = 'echo problem >&2; i=0; while [ $i -lt 3000 ]; do echo "$DMLC_TASK_ID.$i.%s"; i=$((i+1)); done; printf end' % RESULT
        process = self.submit("--num-workers", self.WORKERS, "--log-dir", "logs", "sh", "-c", code)
        self.assertEqual(process.returncode, 0, process.err)
        for task in range(self.WORKERS):
            lines = [f"{task}.{i}.{RESULT}" for i in range(3000)]
            log = self.file(f"logs/worker-{task}.log").read_text()
            self.assertEqual(log.replace("problem\n", "").split("\n"), [*lines, "end"])
            of_task = [line for line in process.out.split("\n") if line.startswith(f"[{task}]")]
            if not self.ERRORS_COME_APART:
                of_task.remove(f"[{task}] problem")
            self.assertEqual(of_task, [f"[{task}] {line}" for line in [*lines, "end"]])
            self.assertIn(f"[{task}] problem", process.err if self.ERRORS_COME_APART else process.out)

    def test_a_failure_names_worker_host_and_code_and_stops_the_others(self):
        process = self.submit("--num-workers", self.WORKERS, "sh", "-c",
                              '[ $DMLC_TASK_ID != 1 ] || { echo "no space left"; exit 3; }; exec sleep 600')  # fmt: skip
        self.assertEqual(process.returncode, 3, process.err)
        self.assertRegex(self.last_line(process), r"worker 1 \(host \S+, pid \d+\) exited with code 3 on attempt 1 of 1; "
                                                  rf"the other {self.WORKERS - 1} processes were stopped")
        self.assertIn("  | no space left", process.err)
        self.check_all_gone()

    def test_a_signal_that_kills_a_worker_is_named(self):
        process = self.submit("--num-workers", 2, "sh", "-c", "[ $DMLC_TASK_ID = 0 ] || kill -SEGV $$; exec sleep 600")
        self.assertEqual(process.returncode, 139, process.err)
        self.assertIn("was killed by signal 11 (SIGSEGV", self.last_line(process))
        self.check_all_gone()

    def test_a_command_that_is_not_there_is_named(self):
        process = self.submit("--num-workers", 2, "./nonesuch")
        self.assertEqual(process.returncode, 127, process.err)
        self.assertIn("nonesuch", process.err)

    def test_interrupt_termination_and_the_death_of_dmlc_submit_leave_nothing(self):
        strays = "timeout 600 sleep 600 & setsid sleep 600 & " + READY
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how):
                process = self.start("--num-workers", self.WORKERS, "sh", "-c", strays)
                self.ready(self.WORKERS)
                self.assertGreaterEqual(len(self.left()), 3 * self.WORKERS)
                os.kill(self.submit_pid(), how)
                process.wait(timeout=LIMIT_S)
                self.check_all_gone()
                wait_for(lambda: not self.folders(), LIMIT_S, f"the end of {self.folders()}")
                if how != signal.SIGKILL:
                    self.assertEqual(process.returncode, 128 + how)

    def test_what_a_worker_says_when_it_is_asked_to_end_is_heard(self):
        code = "trap 'echo saved; exit 0' TERM; echo r > ready-0; while :; do sleep 0.05; done"
        process = self.start("--num-workers", 1, "sh", "-c", code)
        self.ready(1)
        self.assertIn("[0] saved", self.interrupt(process, signal.SIGTERM))

    def test_a_failed_worker_is_started_again_while_the_others_go_on(self):
        code = ('echo "attempt $DMLC_NUM_ATTEMPT of $DMLC_MAX_ATTEMPT"; echo x >> starts-$DMLC_TASK_ID; '
                "[ $DMLC_TASK_ID.$DMLC_NUM_ATTEMPT != 1.0 ] || kill -KILL $$")  # fmt: skip
        process = self.submit("--num-workers", 2, "--local-num-attempt", 1, "sh", "-c", code)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn("[1] attempt 1 of 1", process.out)
        self.assertRegex(process.err, r"worker 1 \(host \S+, pid \d+\) was killed by signal 9 \(SIGKILL\) on attempt 1 of 2; "
                                      "starting it again")  # fmt: skip
        self.assertEqual([self.file(f"starts-{task}").read_text() for task in (0, 1)], ["x\n", "x\nx\n"])

    def test_the_whole_job_is_started_again(self):
        code = 'echo "attempt $DMLC_NUM_ATTEMPT"; [ $DMLC_NUM_ATTEMPT = 1 ] || { sleep 0.2; exit $DMLC_TASK_ID; }'
        process = self.submit("--num-workers", 2, "--max-restarts", 2, "sh", "-c", code)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn("restart 1 of 2", process.err)
        self.assertEqual(process.out.count("attempt 1"), 2)
        self.check_all_gone()

    def test_parameter_servers_run_there_and_their_scheduler_here(self):
        process = self.submit("--num-workers", 2, "--num-servers", 2, "sh", "-c",
                              "echo $DMLC_ROLE $DMLC_TASK_ID $DMLC_NUM_SERVER $DMLC_PS_ROOT_URI $DMLC_PS_ROOT_PORT; "
                              "[ $DMLC_ROLE != scheduler ] || sleep 2")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        lines = sorted(line.split("] ")[1].split() for line in process.out.splitlines())
        roots = {tuple(line[3:]) for line in lines}
        self.assertEqual(len(roots), 1)
        self.assertEqual([line[:3] for line in lines], [["scheduler", "0", "2"], ["server", "0", "2"], ["server", "1", "2"],
                                                        ["worker", "0", "2"], ["worker", "1", "2"]])  # fmt: skip

    def test_files_and_archives_are_where_the_processes_run(self):
        folder = self.file("folder")
        folder.mkdir()
        (folder / "tool.sh").write_text("#!/bin/sh\necho tool\n")
        (folder / "tool.sh").chmod(0o755)
        (folder / "x").write_text("packed\n")
        subprocess.run(["tar", "-czf", "data.tar.gz", "x"], cwd=folder, check=True)
        process = self.submit("--num-workers", 2, "--files", "folder/tool.sh", "--archives", "folder/data.tar.gz",
                              "sh", "-c", "./tool.sh; cat data/x")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(process.out.splitlines()), ["[0] packed", "[0] tool", "[1] packed", "[1] tool"])
        self.assertEqual([name for name in ("tool.sh", "data") if self.file(name).exists()], [])

    def test_xgb_train_makes_one_model(self):
        rows = [f"{i % 2} 1:{i % 7} 2:{(i * 5) % 11}" for i in range(200)]
        self.file("train.svm").write_text("\n".join(rows) + "\n")
        process = self.submit("--num-workers", self.WORKERS, BIN / "xgb-train", "/dev/null", "data=train.svm",
                              "num_round=2", "objective=binary:logistic", "model_out=model.json")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertGreater(self.file("model.json").stat().st_size, 100)

    def test_a_program_that_needs_no_tracker_gets_none(self):
        process = self.submit("--num-workers", 2, "--no-tracker", "sh", "-c", "echo tracker ${DMLC_TRACKER_PORT:-none}")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(process.out.count("tracker none"), 2)

    def test_dry_run_shows_what_would_be_started_and_starts_nothing(self):
        process = self.submit("--num-workers", 2, "--dry-run", "touch", "started here")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn("'started here'", process.out.replace("'\\''", "'"))
        self.assertFalse(self.file("started here").exists())
