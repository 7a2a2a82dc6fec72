"""warren.run: the results of the processes, errors, output, and refused calls."""
import contextlib
import gc
import io
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import numpy as np

import warren
from job_case import InFolder, is_gone, run, task, with_cloudpickle
from warren._jobs import driver as drivers
from warren_testing import free_ports, wait_for


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
        self.assertEqual(drivers.Outcome(0, 0, "host", "returned", {"rank": 1}).rank, 1)

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
            half = world.split(world.rank % 2)  # listens on a port, too
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

    def test_an_exception_keeps_its_class_and_attributes_whatever_its_class_is_called_with(self):
        class WithTwoArguments(OSError):
            def __init__(self, one, *, two):
                super().__init__(f"{one} and {two}")
                self.two = two

        def raises(error):
            raise error("here", two="there")

        found = run(raises, WithTwoArguments)[0]
        self.assertEqual((type(found).__qualname__, str(found), found.two, isinstance(found, OSError)),
                         (WithTwoArguments.__qualname__, "here and there", "there", True))

    def test_an_exception_that_cannot_be_sent_becomes_a_runtime_error_with_its_name(self):
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

    def test_a_program_that_ignores_the_end_of_its_children_gets_the_exception_or_the_story(self):
        def raising():
            raise KeyError("no such column")

        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGCHLD, before)
        self.assertEqual(repr(run(raising)[0]), "KeyError('no such column')")
        found, _, _ = run(lambda: os.kill(os.getpid(), signal.SIGKILL), num_workers=1)
        self.assertRegex(repr(found), "JobFailed.*was killed by signal 9")
        self.assertEqual(found.exit_code, 137)
        self.assertEqual(run(task)[0], [0, 1])

    def test_what_cannot_be_sent_is_named(self):
        self.assertRegex(repr(run(socket.socket)[0]), "TypeError.*the result, a socket, cannot be sent")
        self.assertRegex(repr(run(lambda _: None, socket.socket())[0]), "TypeError.*the function <lambda> cannot be sent")

    def test_options_that_dmlc_submit_does_not_know_and_those_of_no_use(self):
        for options, said in (({"prot": 1}, "ValueError.*unknown option '--prot'; did you mean --port"), ({"dry_run": True}, "ValueError.*dry_run"),
                              ({"job": "x.yaml"}, "ValueError.*job: a job that is started from Python .*: a job file names a command"),
                              ({"num_workers": 0}, "ValueError.*num_workers is 0"), ({"num_workers": (3, 2)}, "ValueError.*MIN is greater than MAX"),
                              ({"files": [object()]}, "TypeError.*files is <object"), ({"env": ["NEVER_SET"]}, "ValueError.*NEVER_SET is not set"),
                              ({"cluster": "mars"}, "ValueError.*mars"), ({"worker_cores": "many"}, "ValueError.*worker-cores.*many"),
                              ({"tls": True, "cluster": "ssh"}, "ValueError.*without encryption"),
                              ({"num-workers": 2}, "ValueError.*given twice"), ({"dry-run": True}, "ValueError.*dry_run")):  # fmt: skip
            with self.subTest(options=options):
                self.assertRegex(repr(run(task, **options)[0]), said)
        self.assertEqual(run(task, num_workers=np.int64(2), worker_cores=1, log_level="debug", quiet=False, timeout=60)[0], [0, 1])

    def test_refused_options_leave_nothing_open(self):
        def count():
            return len(os.listdir("/proc/self/fd")), sum(thread.name == "warren-driver" for thread in threading.enumerate())

        wait_for(lambda: count()[1] == 0, what="the end of the threads of other jobs")
        gc.collect()
        before = count()
        for _ in range(9):
            run(task, prot=1)
        # There may be fewer than before, if resources of an earlier job have been closed since.
        wait_for(lambda: count()[0] < before[0] + 5 and count()[1] == 0, what=f"no more descriptors and threads than before, {before}")

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


if __name__ == "__main__":
    unittest.main()
