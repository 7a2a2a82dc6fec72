"""The reports of workers under dmlc-submit: their counts, waits and progress, with and without TLS; trackers that are gone or do not
respond; and neither reports nor a thread for them if reports are off."""
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

from warren_testing import BIN, SOURCE, Tracker, without_sanitizers

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{SOURCE}/python/src", "WARREN_NATIVE": str(BIN.parent)}
LIBRARY = f"import ctypes, os, sys, threading, time, warren\nlib = ctypes.CDLL({str(BIN.parent / 'lib' / 'librabit.so')!r})\n"
CALLS = """
lib.RabitInit(0, None)
data = (ctypes.c_float * 25)()
for _ in range(7):
    lib.RabitAllreduce(data, ctypes.c_size_t(25), 6, 2, None, None)
lib.RabitBroadcast(data, ctypes.c_ulonglong(100), 0)
"""
FINALIZE = "lib.RabitFinalize()\n"
THREADS = "print('threads', len(os.listdir('/proc/self/task')), flush=True)\n"


def submit(workers, program, *options, report="0.05", **extra):
    """Runs `program` in a job. Returns the finished job, and its reports by task."""
    env = {**ENVIRONMENT, "WARREN_REPORT_SECONDS": report, **extra}
    command = [BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--log-level", "DEBUG", "--num-workers", workers, *options, "--",
               sys.executable, "-c", LIBRARY + textwrap.dedent(program)]
    done = subprocess.run(list(map(str, command)), env=env, text=True, capture_output=True, timeout=120, check=False)
    reports = {}
    for one in re.findall(r"report: (\{.*\})", done.stderr):
        report = json.loads(one)
        reports.setdefault(report["task"], []).append(report)
    return done, reports


def traffic(report):
    return {(one["collective"]): (one["calls"], one["bytes"]) for one in report.get("traffic", [])}


@without_sanitizers
class Reports(unittest.TestCase):
    def check(self, workers, *options, **extra):
        done, reports = submit(workers, CALLS + FINALIZE, *options, **extra)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(reports), [str(task) for task in range(workers)], done.stderr)
        for of_task in reports.values():
            last = of_task[-1]
            self.assertEqual(traffic(last), {"allreduce": (7, 700), "broadcast": (1, 100)})
            self.assertEqual((last["call"]["number"], last["call"]["inside"]), (8, False))
            self.assertEqual(last["call"]["name"], "broadcast of 100 bytes from root 0")
            self.assertTrue(all(one["algorithm"] for one in last["traffic"]), last)
            self.assertEqual(last["every"], float(extra.get("report", 0.05)))
        self.assertEqual(sorted(of_task[-1]["rank"] for of_task in reports.values()), list(range(workers)))

    def test_the_last_report_has_the_counts_of_all_calls(self):
        self.check(3)
        self.check(3, WARREN_SHARED_MEMORY="off")
        self.check(2, report="3600")  # only the first and the last report are sent

    def test_they_come_by_tls(self):
        self.check(2, "--tls")

    def test_a_worker_that_waits_says_in_which_call_and_for_how_long(self):
        _, reports = submit(2, """
            lib.RabitInit(0, None)
            if lib.RabitGetRank() == 1:
                time.sleep(1)
            data = (ctypes.c_float * 25)()
            lib.RabitAllreduce(data, ctypes.c_size_t(25), 6, 2, None, None)
            lib.RabitFinalize()
        """)
        by_rank = {of_task[-1]["rank"]: of_task for of_task in reports.values()}
        inside = [one["call"] for one in by_rank[0] if one.get("call", {}).get("inside")]
        self.assertGreater(inside[-1]["seconds"], 0.5)
        self.assertEqual((inside[-1]["number"], inside[-1]["name"]), (1, "allreduce of 25 float, sum"))
        waits = [wait for one in by_rank[0] for wait in one.get("waits", [])]
        self.assertEqual([call for call, _ in waits], [1])
        self.assertGreater(waits[0][1], 0.5)

    def test_nothing_is_there_where_nobody_wants_reports(self):
        for wanted, expected in (("1", 2), ("0", 1), ("", 1)):
            done, reports = submit(2, CALLS + "warren.progress(1, 2)\n" + THREADS + FINALIZE, report=wanted)
            self.assertEqual(re.findall(r"threads (\d+)", done.stdout), [str(expected)] * 2, done.stderr)
            self.assertEqual(bool(reports), expected == 2)

    def test_the_calls_over_mpi_are_in_the_jobs_timeline_too(self):
        if not (BIN.parent / "lib" / "librabit_mpi_openmpi.so").exists():
            self.skipTest("SKIPPED: Open MPI is not installed; apt-get install libopenmpi-dev")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            done, _ = submit(1, CALLS + FINALIZE, "--timeline", path, WARREN_ENGINE="mpi", OMPI_ALLOW_RUN_AS_ROOT="1",
                             OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path, encoding="utf-8") as file:
                names = [event["name"] for event in json.load(file) if event["ph"] == "X" and event["pid"] == 0]
        self.assertEqual(names, ["RabitAllreduce"] * 7 + ["RabitBroadcast"])

    def test_progress_needs_no_engine(self):
        done, reports = submit(2, "warren.progress(3, 10, loss=float('nan'), **{'train-rmse': 0.25, 'ü': 1})\ntime.sleep(0.5)\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(reports), ["0", "1"])
        for of_task in reports.values():
            self.assertEqual(of_task[-1]["progress"],
                             {"round": 3, "of": 10, "metrics": [["loss", None], ["train-rmse", 0.25], ["ü", 1]]})
            self.assertEqual(of_task[-1]["rank"], -1)

    def test_progress_goes_by_the_library_under_xgboost_where_that_is_loaded(self):
        library = BIN.parent / "lib" / "librabit_xgboost.so"
        if not library.exists():
            self.skipTest("librabit_xgboost.so is not built")
        done, _ = submit(1, f"ctypes.CDLL({str(library)!r})\nwarren.progress(1)\n"
                            "print('by', os.path.basename(warren._engine.reporting._library()._name))\n")
        self.assertIn("by librabit_xgboost.so", done.stdout, done.stderr)

    def test_progress_is_told_at_once_but_not_too_often(self):
        _, reports = submit(1, "for i in range(5000): warren.progress(i + 1)\ntime.sleep(0.5)\n", report="3600")
        self.assertEqual(reports["0"][-1]["progress"]["round"], 5000)
        self.assertLess(len(reports["0"]), 20)

    def test_a_tracker_that_is_gone_or_none_hurts_nobody(self):
        program = LIBRARY + "begin = time.monotonic()\nwarren.progress(1)\nprint('called', time.monotonic() - begin < 5)\n"
        for host in ("127.0.0.1", "no.such.host.invalid", ""):
            env = {**ENVIRONMENT, "WARREN_REPORT_SECONDS": "1", "DMLC_TRACKER_URI": host, "DMLC_TRACKER_PORT": "1", "DMLC_TASK_ID": "0"}
            done = subprocess.run([sys.executable, "-c", program], env=env, text=True, capture_output=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "called True\n", ""))

    def test_who_waits_for_a_tracker_that_says_nothing_ends_well(self):
        program = LIBRARY + "warren.progress(1)\ntime.sleep(0.5)\nprint('done')\n"
        with socket.create_server(("127.0.0.1", 0), backlog=0) as tracker, contextlib.ExitStack() as stack:
            env = {**ENVIRONMENT, "WARREN_REPORT_SECONDS": "1", "DMLC_TRACKER_URI": "127.0.0.1", "DMLC_TASK_ID": "0",
                   "DMLC_TRACKER_PORT": str(tracker.getsockname()[1]), "DMLC_JOB_TOKEN": "00" * 32, "WARREN_TLS": "1"}
            for queue_is_full in (False, True):  # the worker waits for the handshake or, with a full queue, to connect
                if queue_is_full:
                    for _ in range(4):
                        client = stack.enter_context(socket.socket())
                        client.setblocking(False)
                        client.connect_ex(tracker.getsockname())
                done = subprocess.run([sys.executable, "-c", program], env=env, text=True, capture_output=True, timeout=60,
                                      check=False)  # fmt: skip
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_a_tracker_that_dies_hurts_nobody(self):
        program = LIBRARY + textwrap.dedent("""
            lib.RabitInit(0, None)
            warren.progress(1)
            print("joined", flush=True)
            sys.stdin.readline()
            data = (ctypes.c_float * 25)()
            for round in range(20):
                lib.RabitAllreduce(data, ctypes.c_size_t(25), 6, 2, None, None)
                warren.progress(round)
                time.sleep(0.02)
            print("went on", flush=True)
        """)
        with Tracker("--num-workers", 2, "--port", 0, "--host-ip", "127.0.0.1") as tracker:
            workers = [subprocess.Popen([sys.executable, "-c", program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**ENVIRONMENT, **tracker.env, "DMLC_TASK_ID": str(task),
                                                                     "WARREN_REPORT_SECONDS": "0.05"}) for task in range(2)]
            for worker in workers:
                self.assertEqual(worker.stdout.readline(), "joined\n")
            tracker.process.kill()
            tracker.process.wait()
            for worker in workers:
                worker.stdin.write("\n")
                worker.stdin.flush()
            for worker in workers:
                said, complaints = worker.communicate(timeout=60)
                self.assertEqual((worker.returncode, said, complaints), (0, "went on\n", ""))

    def test_a_fork_does_not_speak_for_its_parent(self):
        done, reports = submit(1, """
            warren.progress(1)
            time.sleep(0.3)
            child = os.fork()
            if child == 0:
                warren.progress(99)
                os._exit(0)
            os.waitpid(child, 0)
            warren.progress(2)
        """)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([one["progress"]["round"] for one in reports["0"]][-1], 2)
        self.assertNotIn(99, [one["progress"]["round"] for one in reports["0"]])
        self.assertEqual(len({one["pid"] for one in reports["0"]}), 1)


if __name__ == "__main__":
    unittest.main()
