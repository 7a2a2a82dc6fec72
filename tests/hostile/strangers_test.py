"""Strangers that speak XGBoost's and rabit's protocols to the tracker of a job with a token. They connect before the first worker, try to
take a task's place before its worker joins, or send messages in the name of a worker on their host that has already joined. Jobs of
warren.xgboost are not disturbed, with any value of --admit. A program that joins with XGBoost's own functions is admitted if it runs as the
tracker's user."""
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import unittest
from pathlib import Path

import forking
from warren_testing import BIN, MAGIC, classic_hello, local_tracker, package_environment, string, wait_for

PYTHON = os.environ.get("XGBOOST_PYTHON", "/usr/bin/python3")
XGBOOST_PATH = os.environ.get("XGBOOST_PATH", "")
LIMIT_S = 100
NOBODY = 65534

WORKER = """
import os, sys
sys.path.insert(0, os.environ["WORKER_PATH"])
import numpy as np, xgboost, warren.xgboost
from warren._xgboost.versions import collective
with warren.xgboost.communicator():
    rank, module = warren.xgboost.get_rank(), collective()
    print("JOINED", rank, "of", warren.xgboost.get_world_size(), "task", os.environ["DMLC_TASK_ID"], flush=True)
    sys.stdin.readline()
    print("SUM", module.allreduce(np.array([float(rank + 1)]), module.Op.SUM)[0], warren.xgboost.broadcast("from 0", 0), flush=True)
"""
STOCK = """
import os, sys
sys.path.insert(0, os.environ["WORKER_PATH"])
import xgboost
keys = ("dmlc_tracker_uri", "dmlc_tracker_port", "dmlc_task_id")
new = tuple(int(part) for part in xgboost.__version__.split(".")[:2]) >= (2, 1)
found = {key: os.environ[key.upper()] for key in keys} if new else {}
if new:
    found["dmlc_tracker_port"] = int(found["dmlc_tracker_port"])
with xgboost.collective.CommunicatorContext(**found):
    print("JOINED", xgboost.collective.get_rank(), flush=True)
"""
# Sends each message that it reads to a port, over a new connection, and prints the answer.
STRANGER = """
import json, socket, sys
for line in sys.stdin:
    port, message = json.loads(line)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        got = b""
        try:
            sock.sendall(bytes.fromhex(message))
            while piece := sock.recv(4096):
                got += piece
        except ConnectionResetError:
            pass
    print(got.hex() or "nothing", flush=True)
"""


def classic(command, rank=-1, task=b"0", more=b""):
    return classic_hello(command, rank, task=task) + more


def collective(command, rank=0, world=-1, task="0"):
    hello = json.dumps({"world_size": world, "rank": rank, "task_id": task}).encode()
    return struct.pack("@i", MAGIC) + string(hello) + string(json.dumps(command).encode())


def wishes(task="0"):
    """Returns requests for a rank, in the protocols of rabit and of XGBoost."""
    return [classic(b"start", task=task.encode()), classic(b"start", 0, task.encode()),
            collective({"cmd": 1, "port": 9000, "error_port": 0}, task=task)]


def words(rank, world, task):
    """Returns messages that only the worker of that rank may send, and requests for the rank."""
    name = task.encode()
    return [classic(b"shutdown", rank, name), classic(b"recover", rank, name), classic(b"print", rank, name, string(b"boo\n")),
            collective({"cmd": 2}, rank, world, task), collective({"cmd": 3, "msg": "boo", "code": 1}, rank, world, task),
            collective({"cmd": 4, "msg": "boo"}, rank, world, task), *wishes(task)]


def python():
    """Returns the path of a Python that has already imported XGBoost."""
    return forking.python(PYTHON, "numpy", "xgboost", path=XGBOOST_PATH)


def taken_ports(pid):
    """Returns the ports on which process `pid` listens and that have an established connection."""
    own = set()
    for descriptor in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            own.add(os.readlink(descriptor.path).removeprefix("socket:[").removesuffix("]"))
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    listening = {row[1].rsplit(":", 1)[1] for row in rows if row[3] == "0A" and row[9] in own}
    connected = {row[1].rsplit(":", 1)[1] for row in rows if row[3] == "01"}
    return [int(port, 16) for port in listening & connected]


class Strangers(unittest.TestCase):
    def tracker(self, *options):
        tracker = local_tracker(2, "--sortby", "task", *options)
        self.addCleanup(tracker.__exit__)
        return tracker.follow()

    def start(self, code, tracker, task, interpreter=None):
        process = subprocess.Popen([interpreter or python(), "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=package_environment(WORKER_PATH=XGBOOST_PATH, **tracker.env, DMLC_TASK_ID=str(task)))
        for clean in (process.stdout.close, process.stdin.close, process.wait, process.kill):
            self.addCleanup(clean)
        return process

    def stranger(self, tracker, user=None):
        """Returns a function that sends a message to the tracker from a process of `user` (None: the current user). The function returns
        the answer, or b"" if there is none."""
        process = subprocess.Popen([sys.executable, "-c", STRANGER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   **({} if user is None else {"user": user, "group": user, "extra_groups": [], "cwd": "/"}))
        for clean in (process.stdout.close, process.stdin.close, process.wait, process.kill):
            self.addCleanup(clean)

        def say(message):
            process.stdin.write(json.dumps([tracker.port, message.hex()]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline().strip()
            return b"" if answer == "nothing" else bytes.fromhex(answer)
        return say

    def joined(self, worker, task):
        lines = []
        while not (lines and lines[-1].startswith("JOINED")):
            lines.append(worker.stdout.readline())
            self.assertNotEqual(lines[-1], "", "".join(lines))
        # XGBoost's log shows the task's name without its ticket.
        self.assertEqual([line for line in lines if "#" in line], [])
        self.assertEqual(lines[-1], f"JOINED {task} of 2 task {task}\n")

    def end(self, tracker, workers):
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
        for worker in workers:
            output, _ = worker.communicate(timeout=LIMIT_S)
            self.assertEqual(worker.returncode, 0, output + "".join(tracker.log))
            self.assertIn("SUM 3.0 from 0", output)
        code, log = tracker.finish()
        self.assertEqual(code, 0, log)
        self.assertEqual([line for line in log.splitlines() if "boo" in line and "dropped" not in line], [])
        return log

    def magic_at_most(self, answers):
        """Checks that the tracker has sent strangers nothing, or only its magic number."""
        self.assertLessEqual(set(answers), {b"", struct.pack("@i", MAGIC)})

    def test_a_process_of_another_user_that_comes_first_gets_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("SKIPPED: only root can start a process of another user")
        for options in ((), ("--admit", "token"), ("--tls", )):
            with self.subTest(options=options):
                tracker = self.tracker(*options)
                if "--tls" in options and "WARREN_TLS" not in tracker.env:
                    self.skipTest("SKIPPED: this build has no TLS")
                say = self.stranger(tracker, NOBODY)
                self.assertEqual({say(message) for message in wishes() + words(0, 2, "0")}, {b""})
                workers = [self.start(WORKER, tracker, task) for task in range(2)]
                for task, worker in enumerate(workers):
                    self.joined(worker, task)
                log = self.end(tracker, workers)
                self.assertIn("is not a process of the tracker's user" if "token" not in options else "does not prove the job's token",
                              log)

    def test_nor_can_it_take_the_place_of_a_worker_that_is_on_its_way_or_speak_for_one_that_has_joined(self):
        """The stranger runs as the tracker's user on the workers' host, and --admit lets it in. Only the ticket distinguishes it from a
        worker."""
        for options in ((), ("--admit", "any"), ("--admit", "hosts"), ("--admit", "token")):
            with self.subTest(options=options):
                tracker = self.tracker(*options)
                say = self.stranger(tracker)
                first = self.start(WORKER, tracker, 0)
                wait_for(lambda: any("task 0 joined" in line or "task 0" in line for line in tracker.log), LIMIT_S, "task 0's start")
                answers = [say(message) for task in ("0", "1", "0#k3J9fQz81Lw-0_ab") for message in wishes(task)]
                second = self.start(WORKER, tracker, 1)
                for task, worker in enumerate((first, second)):
                    self.joined(worker, task)
                answers += [say(message) for task in ("0", "1") for message in words(int(task), 2, task)]
                self.magic_at_most(answers)
                log = self.end(tracker, (first, second))
                self.assertRegex(log, "dropped .*it does not prove the job's token")
                self.assertIn("no worker of this job has vouched for it", log)

    def test_nor_can_it_end_a_worker_that_waits_for_the_others_by_its_error_port(self):
        """An XGBoost worker accepts one connection on its error port, and ends if it receives 1. The tracker connects before anyone else
        can."""
        version = subprocess.run([python(), "-c", "import xgboost; print(xgboost.__version__)"], capture_output=True, text=True, check=True,
                                 env={**os.environ, "PYTHONPATH": XGBOOST_PATH}).stdout
        if tuple(int(part) for part in version.split(".")[:2]) < (2, 1):
            self.skipTest("SKIPPED: XGBoost up to 2.0 has no error port")
        tracker = self.tracker()
        first = self.start(WORKER, tracker, 0, PYTHON)  # not forked, so that the started process itself holds the ports
        wait_for(lambda: taken_ports(first.pid), LIMIT_S, "the tracker's connection to the error port of a worker that waits")
        for port in taken_ports(first.pid):
            stranger = socket.create_connection(("127.0.0.1", port), timeout=30)
            self.addCleanup(stranger.close)
            stranger.sendall(struct.pack("@i", 1))
        workers = [first, self.start(WORKER, tracker, 1)]
        for task, worker in enumerate(workers):
            self.joined(worker, task)
        self.end(tracker, workers)

    def test_what_a_stranger_took_before_the_first_worker_came_is_taken_back(self):
        for options in (("--admit", "any"), ("--admit", "hosts"), ()):
            for wish in wishes():
                with self.subTest(options=options, wish=wish), contextlib.ExitStack() as stack:
                    tracker = self.tracker(*options)
                    early = [stack.enter_context(tracker.connect()) for _ in range(2)]
                    early[0].sendall(wish)
                    early[1].sendall(wish.replace(b'"0"', b'"9"').replace(string(b"0"), string(b"9")))
                    for sock in early:
                        self.assertEqual(sock.recv(4), struct.pack("@i", MAGIC))
                    workers = [self.start(WORKER, tracker, task) for task in range(2)]
                    for task, worker in enumerate(workers):
                        self.joined(worker, task)
                    self.end(tracker, workers)

    def test_a_program_with_xgboosts_own_functions_is_admitted_by_its_user_or_by_admit(self):
        """Such a job cannot be protected from a stranger that --admit lets in, since the stranger is a worker like any other."""
        for options in ((), ("--admit", "hosts"), ("--admit", "any")):
            with self.subTest(options=options):
                tracker = self.tracker(*options)
                workers = [self.start(STOCK, tracker, task) for task in range(2)]
                for worker in workers:
                    output, _ = worker.communicate(timeout=LIMIT_S)
                    self.assertIn("JOINED", output)
                self.assertEqual(tracker.finish()[0], 0)
        tracker = self.tracker("--admit", "token")
        worker = self.start(STOCK, tracker, 0)
        output, _ = worker.communicate(timeout=LIMIT_S)
        self.assertNotEqual(worker.returncode, 0)
        wait_for(lambda: any("it does not prove the job's token" in line for line in tracker.log), 30, "the tracker's reason")

    def test_the_launcher_shows_why_a_worker_was_refused_and_ends_the_job(self):
        done = subprocess.run([BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", "2", "--admit", "token", python(), "-c",
                               STOCK], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env={**os.environ, "WORKER_PATH": XGBOOST_PATH, "OMP_NUM_THREADS": "1"})
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"warning: tracker: dropped .*it does not prove the job's token \(DMLC_JOB_TOKEN\).*--admit hosts")


if __name__ == "__main__":
    unittest.main()
