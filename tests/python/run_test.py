"""warren.run and warren.start: jobs of real processes, from a program, a notebook and pytest."""
import contextlib
import io
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import urllib.parse
import urllib.request
from unittest import mock

import numpy as np

import warren
from warren._engine import sealed
from warren._frameworks.replacing import replaced
from warren._jobs import channel as channels
from warren._jobs import driver as drivers
from warren._jobs import job as jobs
from warren._jobs import output as outputs
from warren._jobs import rows as job_rows
from warren._jobs import worker
from warren.data._table import Table
from warren_testing import BIN, free_ports, wait_for

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

try:
    import cloudpickle
except ImportError:
    cloudpickle = None
with_cloudpickle = unittest.skipIf(cloudpickle is None, "SKIPPED: no cloudpickle (Debian: python3-cloudpickle)")


#: What dmlc-submit starts.
WORKER = [sys.executable, "-c", "from warren._jobs import worker; worker.main()"]


def task():
    return int(os.environ["DMLC_TASK_ID"])


def run(function, *args, num_workers=2, **options):
    """Runs a job; returns its results, or its exception, and what it has shown on standard output and standard error."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            found = warren.run(function, *args, num_workers=num_workers, **{"port": 0, **options})
        except BaseException as raised:  # pylint: disable=broad-except
            found = raised
    return found, out.getvalue(), error.getvalue()


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class InFolder(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)

    def script(self, text, name="script.py"):
        """Writes a script; returns the command that runs it."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return [sys.executable, str(path)]

    def pids(self, count):
        """The processes of a job whose function calls `sleep` of SLEEPER with this folder."""
        wait_for(lambda: len(list(self.folder.glob("[0-9]*"))) == count, what=f"{count} processes")
        return [int(path.name) for path in self.folder.glob("[0-9]*")]


#: For scripts: the function leaves a file with the name of its pid, and sleeps.
SLEEPER = """
import os, pathlib, sys, time
import warren
folder = pathlib.Path(sys.argv[1])

def sleep(folder):
    (folder / str(os.getpid())).touch()
    time.sleep(600)
"""


@with_cloudpickle
class Results(InFolder):
    def test_results_come_in_the_order_of_ranks_and_prints_are_shown(self):
        factor = 10

        def function(offset):
            print("hello from", task())
            return task() * factor + offset

        found, out, error = run(function, 3, num_workers=3)
        self.assertEqual(found, [3, 13, 23])
        self.assertEqual(sorted(out.splitlines()), [f"[{number}] hello from {number}" for number in range(3)])
        self.assertNotIn("hello", error)

    def test_the_rank_is_the_one_under_which_the_process_joined_its_job(self):
        def function():
            from warren import collectives
            collectives.init([])
            rank = collectives.world().rank
            collectives.finalize()
            return rank

        self.assertEqual(run(function, num_workers=3)[0], [0, 1, 2])
        first, second = (drivers.Outcome(number, 0, "host", "returned", {"rank": rank}) for number, rank in ((0, 1), (1, 0)))
        self.assertEqual([one.task for one in sorted([first, second], key=lambda one: one.rank)], [1, 0])

    def test_a_job_may_start_a_job_with_a_token_of_its_own(self):
        def function():
            token = os.environ["DMLC_JOB_TOKEN"]
            return token, warren.run(lambda: os.environ["DMLC_JOB_TOKEN"], num_workers=1, port=0, quiet=True)[0]

        (outer, inner), = run(function, num_workers=1)[0]
        self.assertNotEqual(outer, inner)

    def test_secrets_are_in_no_words_of_a_process(self):
        def function():
            words = pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_bytes() + pathlib.Path("/proc/self/cmdline").read_bytes()
            return os.environ["PASSWORD"], os.environ["DMLC_JOB_TOKEN"].encode() in words or b"geheim" in words

        self.assertEqual(run(function, env={"PASSWORD": "geheim"}, num_workers=1)[0], [("geheim", False)])
        with mock.patch.dict(os.environ, {"PASSWORD": "geheim"}):
            self.assertEqual(run(function, env=["PASSWORD"], num_workers=1)[0], [("geheim", False)])

    def test_the_processes_import_from_where_this_one_does(self):
        (self.folder / "module_of_mine.py").write_text("value = 42\n", encoding="utf-8")

        def function():
            import module_of_mine
            return module_of_mine.value

        with mock.patch.object(sys, "path", [*sys.path, str(self.folder)]):
            self.assertEqual(run(function)[0], [42, 42])

    def test_modules_are_found_in_this_processs_order_and_not_in_the_current_folder(self):
        ours, there = self.folder / "ours", self.folder / "there"
        for folder, value in ((ours, "ours"), (there, "there")):
            folder.mkdir()
            (folder / "colorsys.py").write_text(f"value = {value!r}\n", encoding="utf-8")
        (there / "socket.py").write_text("raise SystemExit('the wrong socket')\n", encoding="utf-8")
        command = self.script(f"""
import os, sys, warren
sys.path.insert(0, {str(ours)!r})
os.chdir({str(there)!r})
def function():
    import colorsys
    return colorsys.value, __debug__
print(warren.run(function, num_workers=1, port=0, quiet=True))
""")
        ended = subprocess.run([command[0], "-O", *command[1:]], capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "[('ours', False)]\n", ended.stderr)

    def test_a_function_may_fork(self):
        def function():
            if os.fork() == 0:
                sys.exit(0)
            os.wait()
            return task()

        self.assertEqual(run(function)[0], [0, 1])

    def test_functions_of_a_spawned_process_are_sent(self):
        command = self.script("""
import multiprocessing, warren
def function(): return 5
def starts(): print(warren.run(function, num_workers=1, port=0, quiet=True), flush=True)
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=starts)
    process.start()
    process.join()
""")
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "[5]\n", ended.stderr)

    def test_a_restarted_job_gives_the_results_of_its_last_attempt(self):
        def function():
            attempt = int(os.environ["DMLC_NUM_ATTEMPT"])
            if attempt == 0 and task() == 1:
                raise RuntimeError("the first time")
            return attempt

        self.assertEqual(run(function, max_restarts=1)[0], [1, 1])
        self.assertRegex(str(run(function)[0]), "the first time")

    def test_an_elastic_job_gives_the_results_of_those_that_are_there_in_the_end(self):
        def function(folder):
            marker = folder / "was here"
            if task() == 0 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return task()

        self.assertEqual(run(function, self.folder, num_workers=(1, 2))[0], [0, 1])

    def test_workers_listen_at_the_ports_that_they_may(self):
        def function():
            from warren import collectives
            collectives.init([])
            world = collectives.world()
            half = world.split(world.rank % 2)  # listens, too
            half.allreduce(1.0)
            mine = {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
            rows = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{name}").read_text(
                encoding="ascii").splitlines()[1:]]
            collectives.finalize()
            return [int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in mine]

        first = free_ports(1)[0]
        env = {"WARREN_SHARED_MEMORY": "off"}
        found, _, error = run(function, num_workers=4, worker_ports=f"{first}:{first + 99}", env=env)
        self.assertTrue(all(found) and all(first <= port < first + 100 for ports in found for port in ports), (found, first, error))
        self.assertRegex(repr(run(function, num_workers=2, worker_ports=f"{first}:{first}", env=env)[0]),
                         rf"RuntimeError.*no port from {first} to {first} \(WARREN_WORKER_PORTS, dmlc-submit --worker-ports\) is free")

    def test_exits(self):
        self.assertEqual(run(sys.exit)[0], [None, None])
        found, _, error = run(sys.exit, 3)
        self.assertIsInstance(found, warren.JobFailed)
        self.assertEqual(found.exit_code, 3)
        found, _, error = run(sys.exit, "nothing to do")
        self.assertEqual(found.exit_code, 1)
        self.assertIn("nothing to do", error)
        found = run(os._exit, 0)[0]
        self.assertRegex(str(found), "2 of 2 processes sent no result")

    def test_separate_trainings_are_told(self):
        def function(joins):
            import types
            sys.modules["lightgbm"] = types.ModuleType("lightgbm")
            if joins:
                from warren import collectives
                collectives.init([])
                collectives.finalize()

        self.assertIn("2 processes used lightgbm without joining their job", run(function, False)[2])
        self.assertNotIn("without joining", run(function, True)[2])
        self.assertNotIn("without joining", run(function, False, num_workers=1)[2])


@with_cloudpickle
class Failures(InFolder):
    def test_the_exception_of_the_process_that_failed_first_is_raised_with_its_traceback(self):
        def function():
            if task() == 1:
                raise KeyError("no such column")
            time.sleep(600)

        found, _, error = run(function, num_workers=3)
        self.assertEqual(repr(found), "KeyError('no such column')")
        self.assertRegex(str(found.__cause__), r'(?s)Traceback of rank 1, on .*run_test.py", line \d+, in function\n +raise KeyError')
        self.assertIn("worker 1", error)

    def test_an_exception_that_cannot_be_sent_becomes_a_runtime_error_with_its_name(self):
        class WithTwoArguments(Exception):
            def __init__(self, one, two):
                super().__init__(f"{one} and {two}")

        def raises(error):
            raise error("here", "there")

        self.assertRegex(repr(run(raises, WithTwoArguments)[0]), "RuntimeError.*WithTwoArguments on rank [01], on .*: here and there")

        def with_a_socket():
            raise ValueError("with a socket", socket.socket())

        self.assertRegex(repr(run(with_a_socket)[0]), "RuntimeError.*ValueError on rank")

        class WithoutText(Exception):
            def __str__(self):
                raise ValueError

        def without_text():
            raise WithoutText(threading.Lock())

        self.assertRegex(repr(run(without_text)[0]), "RuntimeError.*WithoutText on rank.*its text cannot be shown")

    def test_a_killed_process_is_a_failed_job_even_if_others_raise(self):
        def function():
            if task() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            from warren import collectives
            collectives.init([])

        found, _, _ = run(function)
        self.assertIsInstance(found, warren.JobFailed)
        self.assertEqual(found.exit_code, 137)
        self.assertRegex(str(found), "worker 1 .*was killed by signal 9")
        listed = subprocess.run([sys.executable, "-m", "warren", "jobs", found.id], capture_output=True, text=True, check=True).stdout
        self.assertIn("failed, code 137", listed)
        copy = pickle.loads(pickle.dumps(found))
        self.assertEqual((str(copy), copy.exit_code, copy.id), (str(found), 137, found.id))

    def test_what_cannot_be_sent_is_named(self):
        self.assertRegex(repr(run(socket.socket)[0]), "TypeError.*the result, a socket, cannot be sent")
        self.assertRegex(repr(run(lambda _: None, socket.socket())[0]), "TypeError.*the function <lambda> cannot be sent")

    def test_options_that_dmlc_submit_does_not_know_and_those_of_no_use(self):
        for options, said in (({"prot": 1}, "ValueError.*unknown option '--prot'; did you mean --port"), ({"dry_run": True}, "ValueError.*dry_run"),
                              ({"num_workers": 0}, "ValueError.*num_workers is 0"), ({"num_workers": (3, 2)}, "ValueError.*MIN is greater than MAX"),
                              ({"files": [object()]}, "TypeError.*files is <object"), ({"env": ["NEVER_SET"]}, "ValueError.*NEVER_SET is not set"),
                              ({"cluster": "mars"}, "ValueError.*mars"), ({"worker_cores": "many"}, "ValueError.*worker-cores.*many"),
                              ({"tls": True, "cluster": "ssh"}, "ValueError.*without encryption")):  # fmt: skip
            with self.subTest(options=options):
                self.assertRegex(repr(run(task, **options)[0]), said)
        self.assertEqual(run(task, worker_cores=1, log_level="debug", quiet=False, timeout=60)[0], [0, 1])

    def test_refused_options_leave_nothing_open(self):
        def count():
            return len(os.listdir("/proc/self/fd")), sum(thread.name == "warren-driver" for thread in threading.enumerate())

        wait_for(lambda: count()[1] == 0, what="the end of the threads of other jobs")
        before = count()
        for _ in range(3):
            run(task, prot=1)
        wait_for(lambda: count() == before, what=f"the same descriptors and threads as before, {before}")
        self.assertEqual(run(task, num_workers=np.int64(2))[0], [0, 1])
        self.assertRegex(repr(run(task, **{"num-workers": 2})[0]), "ValueError.*given twice")
        self.assertRegex(repr(run(task, **{"dry-run": True})[0]), "ValueError.*dry_run")

    def test_output_that_cannot_be_shown_ends_the_job(self):
        class Broken(io.StringIO):
            def write(self, _):
                raise BrokenPipeError

        def function(folder):
            (folder / str(os.getpid())).touch()
            print("shown")
            time.sleep(600)

        with contextlib.redirect_stdout(Broken()), contextlib.redirect_stderr(io.StringIO()), self.assertRaises(BrokenPipeError):
            warren.run(function, self.folder, num_workers=1, port=0)
        self.assertTrue(all(map(is_gone, self.pids(1))))

    def test_a_program_without_streams_runs_jobs(self):
        marker = self.folder / "result"
        command = self.script(f"import pathlib, warren; pathlib.Path({str(marker)!r}).write_text(str(warren.run(int, num_workers=2, port=0)))")
        subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], check=True)
        self.assertEqual(marker.read_text(encoding="utf-8"), "[0, 0]")

    def test_characters_that_are_divided_between_two_pieces_arrive(self):
        _, out, _ = run(lambda: print("€" * 100_001), num_workers=1)
        self.assertEqual((out.count("€"), out.count("\ufffd")), (100_001, 0))

    def test_a_fork_of_the_program_leaves_its_jobs_alone(self):
        command = self.script(SLEEPER + """
job = warren.start(lambda: time.sleep(1) or 7, num_workers=1, port=0)
if os.fork() == 0: sys.exit(0)
os.wait()
print(job.result(), job.logs(0))
""")
        ended = subprocess.run([*command, str(self.folder)], capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "[7] \n", ended.stderr)

    def test_ctrl_c_ends_the_job_and_is_raised(self):
        command = self.script(SLEEPER + "warren.run(sleep, folder, num_workers=2, port=0)\n")
        process = subprocess.Popen([*command, str(self.folder)], stderr=subprocess.PIPE, text=True)
        pids = self.pids(2)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertRegex(error, r"(?s)interrupted by SIGINT.*KeyboardInterrupt")
        self.assertTrue(all(map(is_gone, pids)))

    def test_the_job_ends_with_the_program(self):
        for end in ("", "os.kill(os.getpid(), 9)"):
            with self.subTest(end=end):
                command = self.script(SLEEPER + f"""
warren.start(sleep, folder, num_workers=2, port=0)
while len(list(folder.glob("[0-9]*"))) < 2: time.sleep(0.01)
if os.fork() == 0: time.sleep(600)  # which holds nothing that keeps the job alive
{end}
""")
                for path in self.folder.glob("[0-9]*"):
                    path.unlink()
                process = subprocess.Popen([*command, str(self.folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           start_new_session=True)
                self.addCleanup(lambda group=process.pid: contextlib.suppress(ProcessLookupError).__enter__() or os.killpg(group, 9))
                pids = self.pids(2)
                process.wait(60)
                wait_for(lambda: all(map(is_gone, pids)), what="the end of the job")


@with_cloudpickle
class Started(InFolder):
    @staticmethod
    def waiting(folder):
        print("begins")
        while not (folder / "go on").exists():
            time.sleep(0.01)
        print("ends")
        return task()

    def test_status_logs_and_result(self):
        job = warren.start(self.waiting, self.folder, num_workers=2, port=0)
        followed = []
        thread = threading.Thread(target=lambda: followed.extend(job.logs(follow=True)))
        thread.start()
        wait_for(lambda: job.logs().count("begins") == 2, what="its first lines")
        self.assertEqual((job.status().state, job.status().returned, job.done()), ("running", [], False))
        with self.assertRaisesRegex(TimeoutError, "has not ended after 0.01 s"):
            job.result(timeout=0.01)
        self.assertRegex(repr(job), r"<warren.Job running, [\d.]+ s, pid \d+>")
        (self.folder / "go on").touch()
        self.assertEqual(job.result(), [0, 1])
        self.assertEqual(job.result(), [0, 1], "again")
        status = job.status()
        self.assertEqual((status.state, status.returned, status.exit_code, job.done()), ("succeeded", [0, 1], 0, True))
        self.assertEqual(job.logs(1), "begins\nends\n")
        thread.join(30)
        self.assertEqual(sorted(line for line in followed if line.startswith("[")), ["[0] begins", "[0] ends", "[1] begins", "[1] ends"])
        self.assertEqual(list(job.logs(0, follow=True)), ["begins", "ends"])

    def test_the_page_is_shown_in_a_notebook_while_the_job_runs_and_afterwards(self):
        job = warren.start(self.waiting, self.folder, num_workers=1, port=0)
        page = job.page()
        self.assertRegex(page, r"^http://127\.0\.0\.1:\d+/\?token=[0-9a-f]+$")
        address = re.search(r'src="([^"]*)"', page._repr_html_())[1]
        with urllib.request.urlopen(address) as answer:
            self.assertIn(b"<script", answer.read())
        (self.folder / "go on").touch()
        job.result()
        page = job.page()
        self.assertTrue(pathlib.Path(urllib.parse.urlparse(page).path).exists())
        self.assertIn("&lt;script", page._repr_html_())
        other = warren.start(task, num_workers=1, port=0, dashboard=False)
        with self.assertRaisesRegex(ValueError, "has no page"):
            other.page()

    def test_cancel(self):
        job = warren.start(time.sleep, 600, num_workers=2, port=0)
        wait_for(lambda: job.status().state == "running", what="the start")
        job.cancel()
        self.assertEqual(job.status().state, "interrupted")
        with self.assertRaisesRegex(warren.JobFailed, "interrupted by SIGINT"):
            job.result()
        job.cancel()
        early = warren.start(time.sleep, 600, num_workers=2, port=0)
        early.cancel()
        self.assertEqual(early.status().state, "interrupted")
        with self.assertRaisesRegex(warren.JobFailed, "interrupted"):
            early.result()

    def test_a_failed_job_says_why(self):
        job = warren.start(sys.exit, 5, num_workers=1, port=0, log_dir=self.folder / "logs")
        with self.assertRaisesRegex(warren.JobFailed, "exited with code 5"):
            job.result()
        self.assertEqual((job.status().state, job.status().exit_code), ("failed", 5))
        self.assertTrue((self.folder / "logs/job.log").exists())


class Peers(InFolder):
    """Nothing is unpickled for, or by, a process that does not know the job's token."""

    def connected(self, port):
        connection = socket.create_connection(("127.0.0.1", port), 10)
        self.addCleanup(connection.close)
        return connection

    def test_strangers_get_nothing_and_disturb_nothing(self):
        call = {"function": b"secret", "path": []}
        driver = drivers.Driver(call, b"k" * 32, True, None, None)
        self.addCleanup(driver.close)
        for words in (b"GET / HTTP/1.0\r\n\r\n" * 10, bytes(32) + (1 << 40).to_bytes(8, "little"), b"x" * 100):
            with self.subTest(words=words[:20]), self.connected(driver.port) as stranger:
                found = b""
                with contextlib.suppress(ConnectionResetError):
                    stranger.sendall(words)
                    stranger.shutdown(socket.SHUT_WR)
                    while piece := stranger.recv(4096):
                        found += piece
                self.assertLessEqual(len(found), 32, "only the random number")
        with self.assertRaises((EOFError, OSError)):
            channels.Channel(self.connected(driver.port), b"o" * 32, False)
        self.assertEqual(driver.outcomes(), [])
        known = channels.Channel(self.connected(driver.port), b"k" * 32, False)
        known.send({"task": 0, "attempt": 0, "host": "h"})
        self.assertEqual(known.receive(), call)
        self.assertEqual([one.kind for one in driver.outcomes()], ["begun"])

    def test_a_driver_goes_on_when_connections_were_too_many(self):
        with mock.patch.object(drivers, "_MOST_UNPROVED", 2):
            driver = drivers.Driver({"function": b"", "path": []}, b"k" * 32, True, None, None)
            self.addCleanup(driver.close)
            silent = [self.connected(driver.port) for _ in range(2)]
            for one in silent:
                self.assertEqual(len(one.recv(64)), 32)
            self.assertEqual(self.connected(driver.port).recv(64), b"", "refused")
            for one in silent:
                one.close()
            wait_for(lambda: self.greets(driver.port), what="room for a process")

    def greets(self, port):
        try:
            return len(self.connected(port).recv(64)) == 32
        except ConnectionResetError:
            return False

    def test_a_message_cannot_be_replayed_or_left_out(self):
        ends = self.pair()
        made = []
        thread = threading.Thread(target=lambda: made.append(channels.Channel(ends[1], b"k" * 32, True)))
        thread.start()
        sender = channels.Channel(ends[0], b"k" * 32, False)
        thread.join()
        receiver = made[0]
        sender.send(1)
        self.assertEqual(receiver.receive(), 1)
        sender._sent -= 1  # as the bytes of the first message again
        sender.send(1)
        with self.assertRaises(channels.Refused):
            receiver.receive()

    def pair(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            one = self.connected(server.getsockname()[1])
            other = server.accept()[0]
        self.addCleanup(other.close)
        return one, other

    def test_a_process_runs_nothing_for_a_driver_without_the_token(self):
        marker = self.folder / "ran"

        class Bomb:
            def __reduce__(self):
                return os.system, (f"touch {marker}", )

        with socket.create_server(("127.0.0.1", 0)) as server:
            environment = {**os.environ, worker.VARIABLE: f"127.0.0.1:{server.getsockname()[1]}", "DMLC_JOB_TOKEN": "ab" * 32}
            process = subprocess.Popen(WORKER, env=environment, stderr=subprocess.PIPE, text=True)
            connection, _ = server.accept()
            with connection:
                connection.sendall(bytes(32))
                message = sealed.seal(Bomb(), "warren job", 1, secret=b"o" * 32)
                connection.sendall(len(message).to_bytes(8, "little") + bytes(message))
                _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("cannot get its function from the program that started the job", error)
        self.assertIn("does not know the job's token", error)
        self.assertFalse(marker.exists())

    def test_without_a_driver_it_says_what_is_missing(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        for variables, said in (({}, "only warren.run and warren.start"), ({worker.VARIABLE: f"127.0.0.1:{port}"}, "one more port")):
            environment = {**os.environ, "DMLC_JOB_TOKEN": "ab" * 32, **variables}
            ended = subprocess.run(WORKER, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(said, ended.stderr)


@with_cloudpickle
class SharedRows(unittest.TestCase):
    def test_each_process_gets_its_share_of_the_rows_by_shared_memory_or_in_pieces(self):
        import scipy.sparse
        rng = np.random.default_rng(0)
        rows = 1000
        dense, qid = rng.random((rows, 5), np.float32), np.repeat(np.arange(40), 25)
        tables = [Table(dense, list("abcde"), None, dense[:, 0], None, qid, None, {}), Table(dense[:2], None, None, None, None, None, None, {}),
                  Table(scipy.sparse.random(rows, 7, 0.3, "csr", np.float32, 1), None, None, None, dense[:, 1], None, dense[:, :2], {}),
                  Table(np.empty((0, 3), np.float32), None, None, np.empty(0, np.float32), None, None, None, {})]

        def function(all_rows):
            return [one.share(task(), 3, worker.channel) for one in all_rows]

        for is_local in (True, False):
            served = job_rows.RowsForJob(is_local)
            with self.subTest(is_local=is_local), contextlib.closing(served), mock.patch.object(job_rows, "_PIECE_BYTES", 999):
                given = [served.add(job_rows.rows_of(table)) for table in tables]
                self.assertEqual([one.files is not None for one in given], [is_local] * len(tables))
                files = [path for one in given for path in (one.files or {}).values()]
                job = jobs.Job(function, (given, ), 3, {"port": 0}, is_shown=False, serve=served.serve)
                shares = job.result()
                for number, table in enumerate(tables):
                    parts = [share[number] for share in shares]
                    for name in ("label", "weight", "qid", "base_margin"):
                        expected = getattr(table, name)
                        found = [getattr(part, name) for part in parts]
                        if expected is None:
                            self.assertEqual(found, [None] * 3)
                        else:
                            np.testing.assert_array_equal(np.concatenate(found), expected)
                    whole = [part.features if isinstance(part.features, np.ndarray) else part.features.toarray() for part in parts]
                    expected = table.features if isinstance(table.features, np.ndarray) else table.features.toarray()
                    np.testing.assert_array_equal(np.concatenate(whole), expected)
                    self.assertEqual(parts[0].names, table.names)
                self.assertEqual([set(share[0].qid) & set(other[0].qid) for share, other in zip(shares, shares[1:])], [set(), set()])
            self.assertFalse(any(map(os.path.exists, files)))

    def test_without_room_in_memory_rows_come_in_pieces(self):
        with mock.patch.object(job_rows, "_fits", lambda _: False), contextlib.closing(job_rows.RowsForJob(True)) as served:
            self.assertIsNone(served.add(job_rows.rows_of(Table(np.ones((2, 2), np.float32), None, None, None, None, None, None, {}))).files)


class Replacements(unittest.TestCase):
    """warren._frameworks.replacing, by which estimators that fit in threads at once train their own models."""

    def test_threads_replace_and_restore_a_function_in_any_order(self):
        owner = types.SimpleNamespace(function=lambda: "original")
        original = owner.function
        barriers = {name: threading.Event() for name in ("first is in", "second is in", "first is out")}
        seen = {}

        def first():
            with replaced("function", lambda inner: lambda: f"first of {inner()}", owner):
                barriers["first is in"].set()
                barriers["second is in"].wait(30)
                seen["first"] = owner.function()
            barriers["first is out"].set()

        def second():
            barriers["first is in"].wait(30)
            with replaced("function", lambda inner: lambda: f"second of {inner()}", owner):
                barriers["second is in"].set()
                barriers["first is out"].wait(30)
                with replaced("function", lambda inner: lambda: f"third of {inner()}", owner):
                    seen["third"] = owner.function()
                seen["second"] = owner.function()

        threads = [threading.Thread(target=first), threading.Thread(target=second)]
        for thread in threads:
            thread.start()
        barriers["second is in"].wait(30)
        self.assertEqual(owner.function(), "original", "another thread's")
        for thread in threads:
            thread.join(30)
        self.assertEqual(seen, {"first": "first of original", "third": "third of second of original", "second": "second of original"})
        self.assertIs(owner.function, original)

    def test_what_somebody_else_has_put_there_stays(self):
        owner = types.SimpleNamespace(function=lambda: "original")
        with replaced("function", lambda _: lambda: "ours", owner):
            owner.function = lambda: "theirs"
            with replaced("function", lambda inner: lambda: f"ours of {inner()}", owner):
                self.assertEqual(owner.function(), "ours of theirs")
        self.assertEqual(owner.function(), "theirs")


class WithoutCloudpickle(InFolder):
    def test_functions_of_modules_work_and_others_are_told_what_to_do(self):
        command = self.script("""
import sys
sys.modules["cloudpickle"] = None
import math, operator, warren
def mine(): pass
print(warren.run(math.sqrt, 16.0, num_workers=2, port=0, quiet=True))
for function in (mine, lambda: 3):
    try:
        warren.run(function, num_workers=1, port=0)
    except TypeError as error:
        print(error)
""")
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertRegex(out, r"\[4\.0, 4\.0\]\nthe function mine cannot be sent.*pip install cloudpickle\nthe function <lambda> cannot be sent.*pip install cloudpickle")


@with_cloudpickle
class Surroundings(InFolder):
    def test_a_notebook_shows_the_output_the_live_line_and_the_line_that_failed(self):
        try:
            import nbclient
            import nbformat
        except ImportError:
            self.skipTest("SKIPPED: no nbclient (Debian: python3-nbclient python3-ipykernel)")
        shown = self.folder / "shown"

        class Client(nbclient.NotebookClient):
            """Notes when the live line shows the round for which the function waits."""

            def process_message(self, msg, *more):
                if "round 1 of 3" in msg["content"].get("text", ""):
                    shown.touch()
                return super().process_message(msg, *more)

        cells = ["""
import os, time, warren
def function(shown):
    print("in the cell")
    warren.progress(1, 3, loss=0.5)
    while not os.path.exists(shown):
        time.sleep(0.01)
    return int(os.environ["DMLC_TASK_ID"])
""", f"warren.run(function, {str(shown)!r}, num_workers=2, port=0)", """
def fails():
    raise ValueError("here")  # this line
warren.run(fails, num_workers=1, port=0)
""", "warren.start(function, '/none', num_workers=1, port=0).cancel()"]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        with mock.patch.dict(os.environ, {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}):
            Client(notebook, timeout=120, allow_errors=True).execute()
        texts = [{name: "".join(one.get("text", "") for one in cell.outputs if one.get("name") == name) for name in ("stdout", "stderr")}
                 for cell in notebook.cells]
        self.assertEqual(sorted(texts[1]["stdout"].splitlines()), ["[0] in the cell", "[1] in the cell"])
        self.assertRegex(texts[1]["stderr"], r"[\r\n] *dmlc-submit: \d+:\d\d \| 2 of 2 workers started \| round 1 of 3 \| loss 0.5\r")
        self.assertNotIn("\x1b[J", texts[1]["stderr"])
        self.assertEqual(notebook.cells[1].outputs[-1]["data"]["text/plain"], "[0, 1]")
        error = notebook.cells[2].outputs[-1]
        self.assertEqual((error["ename"], error["evalue"]), ("ValueError", "here"))
        self.assertIn('raise ValueError("here")  # this line', "\n".join(error["traceback"]))
        self.assertEqual([one for one in notebook.cells[3].outputs if one["output_type"] == "error"], [])

    def test_pytest_captures_the_output(self):
        self.script("""
import warren
def test_job(capsys):
    assert warren.run(print, "captured", num_workers=2, port=0) == [None, None]
    assert sorted(capsys.readouterr().out.splitlines()) == ["[0] captured", "[1] captured"]
""", "test_it.py")
        ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(self.folder)], capture_output=True,
                               text=True, check=False)
        if "No module named pytest" in ended.stderr:
            self.skipTest("SKIPPED: no pytest (Debian: python3-pytest)")
        self.assertEqual(ended.returncode, 0, ended.stdout)

    def test_a_terminal_is_left_to_dmlc_submit(self):
        self.assertFalse(outputs.is_notebooks())
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertFalse(outputs.is_terminals())
        master, slave = os.openpty()
        ended = subprocess.run(self.script("import warren; warren.run(print, 'on the terminal', num_workers=1, port=0)"), stdin=slave,
                               stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"}, check=True)
        os.close(slave)
        self.assertEqual(ended.returncode, 0)
        self.assertIn(b"on the terminal", os.read(master, 1 << 16))
        os.close(master)

    def test_modules_are_imported_when_they_are_used(self):
        out = subprocess.run([sys.executable, "-c", "import sys, warren; a = set(sys.modules); warren.collectives.Op; warren.Job; print('numpy' in a); "
                              "print(hasattr(warren, 'no_such'))"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(out.split(), ["False", "False"])
        self.assertRegex(warren.__version__, ".")


if __name__ == "__main__":
    unittest.main()
