"""Jobs with --tls: the results are the same, nothing is sent unencrypted, a lost worker is restarted, and processes that disagree on
encryption get an error."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

import network_namespaces
import training
from jobs import Job
from network_namespaces import NetworkNamespaces
from warren_testing import BIN, HELLO_VERSION, derive, local_tracker, wait_for, without_sanitizers

WHY_NO_HOSTS = network_namespaces.why_not()
TCP = {"WARREN_SHARED_MEMORY": "off"}
OTHER_TOKEN = "ab" * 32
# A program that prints "listening" and then captures all traffic of its network namespace until its standard input is closed. At the end,
# it prints the number of captured bytes, and which of its arguments (byte strings in hexadecimal) were among them.
LISTENER = """
import socket, sys, threading
words = [bytes.fromhex(word) for word in sys.argv[1:]]
heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
heard.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
heard.settimeout(0.3)
print("listening", flush=True)
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
seen, count = set(), 0
while True:
    try:
        packet = heard.recv(1 << 17)
    except TimeoutError:
        if over.is_set():
            break
        continue
    count += len(packet)
    seen.update(word for word in words if word in packet)
print(count, *(word.hex() for word in seen))
"""


class Listener:
    """An eavesdropper that sees all packets."""

    def __init__(self, words, enter=lambda command: command):
        self.process = subprocess.Popen(enter([sys.executable, "-c", LISTENER, *(word.hex() for word in words)]), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def finish(self):
        """Returns the number of bytes seen, and the words found in them."""
        out, _ = self.process.communicate(timeout=60)
        count, *words = out.split()
        return int(count), {bytes.fromhex(word) for word in words}


def may_listen():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).close()
    except (OSError, AttributeError):
        return False
    return True


class Results(unittest.TestCase):
    def checksum(self, ranks, arguments, options):
        with Job(ranks, *arguments, env=TCP, tracker_options=options) as job:
            return job.checksum(self)

    def test_every_collective_has_the_bits_it_has_in_the_clear(self):
        for ranks, *arguments in ((3, "all"), (4, "random", 100)):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.checksum(ranks, arguments, ["--tls"]), self.checksum(ranks, arguments, []))

    def test_shared_memory_stays_shared_memory(self):
        with Job(2, "random", 20, env={"WARREN_PRINT_CHOICE": "1"}, tracker_options=["--tls"]) as job:
            codes, results = job.finish()
        self.assertEqual(codes, [0, 0])
        self.assertIn("shared_memory", "".join(errors for _, errors in results))

    def test_killed_workers_come_back(self):
        with local_tracker(4, "--sortby", "task", "--tls", "--admit", "token") as tracker:
            job = training.Job(tracker.env, 4, 30, TCP)
            self.addCleanup(job.close)
            for attempt, victim in enumerate((3, 0), 1):
                job.await_version(3 * attempt)
                job.kill(victim)
                job.start(victim, attempt)
            codes, output, errors = job.finish()
            code, log = tracker.finish()
        self.assertEqual(codes, [0] * 4, errors)
        self.assertEqual(code, 0, log)
        undisturbed = training.train(4, versions=30, env=TCP)
        self.assertEqual(training.digests(output), undisturbed.digests)

    def test_dmlc_submit_hands_it_to_its_workers_and_restarts_them(self):
        submitted = training.command(3, "kill=1,1,2,0", attempts=2)
        submitted.insert(1, "--tls")
        done = subprocess.run(submitted, env={**os.environ, **TCP}, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(training.digests(done.stdout), training.train(3).digests)


class OnTheWire(unittest.TestCase):
    # In this order: words from a classic worker's messages to its tracker, from the text that rabit-broadcast sends to the other ranks, and
    # from the first message on a link that the tracker did not name (Hello of rabit_engine/transport/tcp/handshake.h).
    WORDS = {b"shutdown", b"morning", b"WRRN" + struct.pack("@HH", HELLO_VERSION, 1)}
    RANKS = 9

    def overheard(self, options, hosts=None, enter=lambda command: command):
        listener = Listener(self.WORDS, enter)
        try:
            where = {"hosts": hosts, "host_of_task": [rank % 3 for rank in range(self.RANKS)]} if hosts else {}
            with Job(self.RANKS, program=BIN / "rabit-broadcast", tracker_options=options, env=TCP, **where) as job:
                codes, results = job.finish()
                self.assertEqual(codes, [0] * self.RANKS, results)
        finally:
            count, words = listener.finish()
        self.assertGreater(count, 5000)
        return words

    @unittest.skipUnless(may_listen(), "SKIPPED: this user may not listen to packets")
    def test_nothing_can_be_overheard_on_this_machine(self):
        self.assertEqual(self.overheard([]), self.WORDS)
        self.assertEqual(self.overheard(["--tls"]), set())

    @unittest.skipIf(WHY_NO_HOSTS, WHY_NO_HOSTS)
    @unittest.skipUnless(may_listen(), "SKIPPED: this user may not listen to packets")
    def test_nothing_can_be_overheard_between_hosts(self):
        with NetworkNamespaces("warren-test") as hosts:
            hosts.add_hosts(3)
            between = lambda command: hosts.inside("middle", command)
            self.assertEqual(self.overheard([], hosts, between), self.WORDS)
            self.assertEqual(self.overheard(["--tls"], hosts, between), set())

    @unittest.skipUnless(shutil.which("openssl"), "SKIPPED: there is no program openssl")
    def test_it_is_tls_as_others_speak_it(self):
        with local_tracker(2, "--tls") as tracker:
            token = bytes.fromhex(tracker.env["DMLC_JOB_TOKEN"])

            def connect(*words):
                return subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{tracker.port}", *words], input="",
                                      capture_output=True, text=True, timeout=20, check=False).stdout

            key = derive(token, b"tls", b"tracker").hex()
            known = connect("-tls1_3", "-psk", key, "-psk_identity", "tracker")
            self.assertRegex(known, r"Reused, TLSv1.3, Cipher is TLS_AES_128_GCM_SHA256")
            self.assertRegex(known, r"Server Temp Key|Peer Temp Key|Negotiated TLS1.3 group")  # keys depend on more than the token
            for words in (["-tls1_3"], ["-tls1_2"], ["-tls1_3", "-psk", "00" * 32, "-psk_identity", "tracker"],
                          ["-tls1_3", "-psk", key, "-psk_identity", "links"]):
                with self.subTest(words=words):
                    refused = connect(*words)
                    self.assertIn("SSL handshake has read 0 bytes", refused)


class PendingConnections(unittest.TestCase):
    @unittest.skipIf(os.environ.get("WARREN_SANITIZE"), "SKIPPED: sanitizers use memory, too")
    def test_who_has_not_sent_a_whole_record_takes_little_memory(self):
        def memory_mb():
            status = pathlib.Path(f"/proc/{tracker.process.pid}/status").read_text()
            return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024

        with local_tracker(3000, "--tls") as tracker, contextlib.ExitStack() as stack:
            before = memory_mb()
            for beginning in (b"\x16", b"\x16\x03\x01\x0f\xff" + bytes(3000)):
                for _ in range(2500):
                    stack.enter_context(tracker.connect()).sendall(beginning)
            descriptors = pathlib.Path(f"/proc/{tracker.process.pid}/fd")
            wait_for(lambda: len(list(descriptors.iterdir())) > 5000, what="all connections at the tracker")
            last = stack.enter_context(tracker.connect())  # once it has been served, so have all earlier connections
            last.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(last.recv(1), b"")
            self.assertLess(memory_mb() - before, 40)


class Disagreements(unittest.TestCase):
    """All processes exit soon and print what the user must do."""

    def refused(self, options, change):
        with local_tracker(1, *options) as tracker:
            env = {**os.environ, "DMLC_TASK_ID": "0", **TCP, **tracker.env, "DMLC_WORKER_CONNECT_RETRY": "1", **change}
            worker = subprocess.run([BIN / "rabit-broadcast"], env={name: value for name, value in env.items() if value is not None},
                                    capture_output=True, text=True, timeout=30, check=False)
            self.assertNotEqual(worker.returncode, 0)
            tracker.process.terminate()
            return worker.stderr, tracker.finish()[1]

    def test_a_worker_with_tls_and_a_tracker_without(self):
        errors, log = self.refused([], {"WARREN_TLS": "1"})
        self.assertRegex(errors, r"TLS with the tracker at 127.0.0.1:\d+ \(WARREN_TLS=1\): it closed.*started with --tls")
        self.assertRegex(log, r"dropped .*it wants TLS \(WARREN_TLS=1 .*started without --tls")

    def test_a_worker_without_tls_and_a_tracker_with_it(self):
        errors, log = self.refused(["--tls"], {"WARREN_TLS": "0"})
        self.assertRegex(errors, r"the tracker at 127.0.0.1:\d+ closed the connection")
        self.assertRegex(log, r"dropped .*unencrypted.*lacks WARREN_TLS=1")

    def test_another_token(self):
        errors, log = self.refused(["--tls"], {"DMLC_JOB_TOKEN": OTHER_TOKEN})
        self.assertRegex(errors, r"does not know this job's token \(DMLC_JOB_TOKEN\)")
        self.assertRegex(log, r"dropped .*TLS: .*; it belongs to another job.*DMLC_JOB_TOKEN is not this tracker's")

    def test_no_token(self):
        errors, _ = self.refused(["--tls"], {"DMLC_JOB_TOKEN": None})
        self.assertRegex(errors, r"WARREN_TLS=1 takes its key from the job's token, and DMLC_JOB_TOKEN is not set")

    def test_no_openssl(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libssl.so.3").write_text("no library")
            broken = {**os.environ, "LD_LIBRARY_PATH": folder}
            without = [BIN / "rabit-tracker", "--num-workers", "1", "--host-ip", "127.0.0.1"]
            done = subprocess.run([*without, "--tls"], env=broken, capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"--tls: TLS needs OpenSSL 3, .*libssl.so.3.*libssl3")
            errors, _ = self.refused(["--tls"], {"LD_LIBRARY_PATH": folder})
            self.assertRegex(errors, r"WARREN_TLS=1: TLS needs OpenSSL 3, .*libssl.so.3.*on every host")
            # Without --tls, OpenSSL is not needed.
            with Job(2, "random", 5, env={"LD_LIBRARY_PATH": folder}) as job:
                job.checksum(self)

    def test_parameter_servers(self):
        done = subprocess.run([BIN / "dmlc-submit", "--tls", "--num-servers", "1", "--num-workers", "1", "true"],
                              capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--tls: parameter servers", done.stderr)

    @without_sanitizers
    def test_a_program_that_never_says_goodbye_ends_well_all_the_same(self):
        """OpenSSL is already torn down when such a program's links are closed."""
        with local_tracker(2, "--tls") as tracker:
            script = "import ctypes; lib = ctypes.CDLL('{}'); lib.RabitInit(0, None); print(lib.RabitGetWorldSize())"
            library = BIN.parent / "lib/librabit.so"
            workers = [subprocess.Popen([sys.executable, "-c", script.format(library)], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE,
                                        env={**os.environ, **tracker.env, **TCP, "DMLC_TASK_ID": str(task)})
                       for task in range(2)]
            for worker in workers:
                out, errors = worker.communicate(timeout=30)
                self.assertEqual(out.split()[-1:], ["2"], errors)
                self.assertGreaterEqual(worker.returncode, 0, errors)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
