"""warren.tracker: starting the tracker from Python, as programs that host workers do, e.g. xgboost.dask."""
import contextlib
import copy
import errno
import os
import pickle
import re
import signal
import subprocess
import sys
import types
import unittest
import unittest.mock

from warren_testing import BIN, ClassicWorker, start_all, wait_for

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

from warren.tracker import Tracker  # noqa: E402


class TrackerOfPython(unittest.TestCase):
    def start(self, workers, **options):
        tracker = self.make(workers, **options)
        tracker.start()
        return tracker

    def make(self, workers, port=0, **options):
        tracker = Tracker(workers, "127.0.0.1", port, **options)
        self.addCleanup(self.free, tracker)
        return tracker

    @staticmethod
    def free(tracker):
        with contextlib.suppress(ValueError):  # most of these jobs never finish
            tracker.free()

    def workers(self, tracker, count):
        arguments = tracker.worker_args()
        return [ClassicWorker((arguments["dmlc_tracker_uri"], arguments["dmlc_tracker_port"]), task) for task in range(count)]

    def test_serves_a_job_and_ends_with_it(self):
        tracker = self.start(3)
        workers = start_all(self.workers(tracker, 3))
        self.assertRaisesRegex(ValueError, "Timeout waiting for the tracker", tracker.wait_for, 0)
        for worker in workers:
            worker.shutdown()
        tracker.wait_for(30)
        tracker.join()

    def test_arguments_and_environment_say_the_same(self):
        tracker = self.start(2)
        arguments, variables = tracker.worker_args(), tracker.worker_envs()
        self.assertEqual(arguments["dmlc_tracker_port"], variables["DMLC_TRACKER_PORT"])
        self.assertEqual((arguments["dmlc_tracker_uri"], variables["DMLC_NUM_WORKER"]), ("127.0.0.1", 2))

    def test_a_taken_port_is_an_error_when_the_tracker_is_made(self):
        first = self.start(1)
        port = first.worker_args()["dmlc_tracker_port"]
        taken = f"Failed to bind socket to 127.0.0.1 port {port}: Address already in use"
        self.assertRaisesRegex(ValueError, taken, Tracker, 1, "127.0.0.1", port)
        for worker in start_all(self.workers(first, 1)):
            worker.shutdown()
        first.wait_for(30)
        self.assertRaisesRegex(ValueError, taken, Tracker, 1, "127.0.0.1", port)  # the port is taken until the tracker is freed
        first.free()
        self.make(1, port).start()

    def test_a_taken_port_is_what_hosts_of_any_xgboost_recover_from(self):
        """xgboost.dask tries its next address after an XGBoostError (2.1 and later) or an OSError with one of these errno values
        (before 2.1)."""
        port = self.make(1)._place.getsockname()[1]
        for arguments, code in ((("127.0.0.1", port), errno.EADDRINUSE), (("nonesuch.invalid", 0), errno.EADDRNOTAVAIL)):
            with self.assertRaises(OSError) as raised:
                Tracker(1, *arguments)
            self.assertIsInstance(raised.exception, ValueError)
            for error in (raised.exception, pickle.loads(pickle.dumps(raised.exception)), copy.copy(raised.exception)):
                self.assertEqual((error.errno, str(error)), (code, str(raised.exception)))

        class XGBoostError(ValueError):
            pass

        core = types.ModuleType("xgboost.core")
        core.XGBoostError = XGBoostError
        with unittest.mock.patch.dict(sys.modules, {"xgboost.core": core}):
            with self.assertRaises(XGBoostError) as raised:
                Tracker(1, "127.0.0.1", port)
            self.assertEqual((raised.exception.errno, isinstance(raised.exception, OSError)), (errno.EADDRINUSE, True))
            self.assertRaises(XGBoostError, self.make(2).wait_for, 0)  # not started
            self.assertRaises(XGBoostError, self.start(2).wait_for, 0)  # a timeout

    def test_an_ipv6_address_may_have_brackets(self):
        tracker = Tracker(1, "[::1]")
        self.addCleanup(self.free, tracker)
        tracker.start()
        self.assertEqual(tracker.worker_args()["dmlc_tracker_uri"], "::1")

    def test_one_that_has_not_started_has_its_port(self):
        port = self.make(1)._place.getsockname()[1]
        self.assertRaisesRegex(ValueError, "Failed to bind socket", Tracker, 1, "127.0.0.1", port)

    def test_an_error_says_what_it_was(self):
        tracker = self.start(2, timeout=1)
        self.assertRaisesRegex(ValueError, "ended with code 1: .*workers are missing after 1 s: 0 of 2", tracker.wait_for, 30)

    def test_freeing_a_job_that_runs_is_an_error_once(self):
        tracker = self.start(2)
        self.assertRaisesRegex(ValueError, "Failed to accept .* freed before the job had ended", tracker.free)
        self.assertFalse(tracker.alive())
        tracker.free()

    def test_freeing_one_that_never_started_or_has_ended_is_none(self):
        self.make(2).free()
        tracker = self.start(1)
        for worker in start_all(self.workers(tracker, 1)):
            worker.shutdown()
        tracker.wait_for(30)
        tracker.free()

    def test_freeing_one_that_gave_up_or_was_killed_is_an_error(self):
        for end in (lambda tracker: None, lambda tracker: tracker._process.kill()):
            tracker = self.start(2, timeout=1)
            end(tracker)
            wait_for(lambda: not tracker.alive(), what="the end of the tracker")
            self.assertRaisesRegex(ValueError, "freed before the job had ended", tracker.free)
            tracker.free()

    def test_the_token_is_among_the_environment(self):
        self.assertRegex(self.start(1).worker_envs()["DMLC_JOB_TOKEN"], "^[0-9a-f]{64}$")

    def test_wrong_arguments_are_refused(self):
        self.assertRaises(ValueError, Tracker, 0)
        self.assertRaises(ValueError, Tracker, 1, sortby="age")
        self.assertRaises(ValueError, Tracker, 1, admit="friends")
        for wrong in ({"port": 70000}, {"port": -1}, {"port": 1.5}, {"port": "a"}, {"timeout": -1}, {"timeout": None},
                      {"timeout": 1e20}, {"n_workers": 2.0}, {"n_workers": True}, {"n_workers": 2**40}):
            with self.subTest(**wrong):
                name, value = next(iter(wrong.items()))
                self.assertRaisesRegex(ValueError, re.escape(f"{name} is {value!r}, expected"), Tracker, **{"n_workers": 1, **wrong})
        self.assertRaisesRegex(ValueError, "has not been started", self.make(1).worker_args)

    def test_one_that_was_freed_is_at_its_end(self):
        tracker = self.start(1)
        self.assertRaises(ValueError, tracker.free)
        self.assertFalse(tracker.alive())
        self.assertRaisesRegex(ValueError, "has been freed", tracker.start)
        self.assertRaisesRegex(ValueError, "was freed before", tracker.wait_for)

    def test_with_tls_workers_are_told_to_use_it_and_no_other_is_served(self):
        tracker = self.make(2, tls=True)
        tracker.start()
        variables = tracker.worker_envs()
        self.assertEqual(variables["WARREN_TLS"], "1")
        self.assertRegex(variables["DMLC_JOB_TOKEN"], "^[0-9a-f]{64}$")
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}, "WARREN_SHARED_MEMORY": "off",
                       "DMLC_WORKER_CONNECT_RETRY": "1"}
        worker = [str(BIN / "training_worker"), "2", "10"]
        done = subprocess.run(worker, env={**environment, "WARREN_TLS": "0", "DMLC_TASK_ID": "0"}, capture_output=True, text=True,
                              timeout=30, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("WARREN_TLS", done.stderr)
        with contextlib.ExitStack() as stack:
            workers = [stack.enter_context(subprocess.Popen(worker, env={**environment, "DMLC_TASK_ID": str(task)},
                                                            stdout=subprocess.DEVNULL)) for task in range(2)]
            self.assertEqual([one.wait(30) for one in workers], [0, 0])
        tracker.wait_for(30)

    def test_without_tls_workers_are_told_nothing_of_it(self):
        self.assertNotIn("WARREN_TLS", self.start(1).worker_envs())

    def test_a_token_that_the_environment_tells_is_the_job_s(self):
        token = "5a" * 32
        with unittest.mock.patch.dict(os.environ, DMLC_JOB_TOKEN=token):
            self.assertEqual(self.start(1).worker_envs()["DMLC_JOB_TOKEN"], token)

    def test_callers_of_1_x_say_the_number_again(self):
        tracker = self.make(2)
        self.assertRaisesRegex(ValueError, "of 2 workers was started for 3", tracker.start, 3)
        tracker.start(2)

    def test_it_ends_with_a_host_that_is_killed(self):
        code = ("import time; from warren.tracker import Tracker; t = Tracker(1, '127.0.0.1'); t.start(); "
                "print(t._process.pid, flush=True); time.sleep(100)")
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as host:
            tracker = host.stdout.readline().strip()
            host.kill()
        wait_for(lambda: not os.path.exists(f"/proc/{tracker}"), what="the end of the tracker")

    def test_it_ends_with_a_host_that_is_killed_and_leaves_a_fork(self):
        code = ("import os, time; from warren.tracker import Tracker; t = Tracker(1, '127.0.0.1'); t.start()\n"
                "child = os.fork()\n"
                "child and print(t._process.pid, child, t.worker_args()['dmlc_tracker_port'], flush=True)\n"
                "time.sleep(100)")
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as host:
            tracker, child, port = host.stdout.readline().split()
            self.addCleanup(os.kill, int(child), signal.SIGKILL)
            host.kill()
        wait_for(lambda: not os.path.exists(f"/proc/{tracker}"), what="the end of the tracker")
        self.make(1, int(port)).start()

    def test_it_ends_with_its_host(self):
        code = ("from warren.tracker import Tracker; t = Tracker(1, '127.0.0.1'); t.start(); "
                "print(t._process.pid, flush=True)")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
        wait_for(lambda: not os.path.exists(f"/proc/{done.stdout.strip()}"), what="the end of the tracker")


if __name__ == "__main__":
    unittest.main()
