"""Unauthenticated peers that connect to the tracker and the workers of a job with a token throughout its life. Whatever they send, their
connections are closed without an answer, the job has the same result, bit for bit, as an undisturbed one, and no process's memory grows
because of them."""

import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import random
import re
import socket
import ssl
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["WARREN_SOURCE"], "tests", "rabit_engine", "recovery"))

import training
from training import Job
from warren_testing import (HELLO_BYTES, HELLO_VERSION, INTRODUCTION_MAGIC, MAGIC, Wire, classic_hello, derive, local_tracker, string,
                            wait_for)

RANKS = 4
VERSIONS = 150
SEED = int(os.environ.get("HOSTILE_SEED", 1))
LINK = 0x4E525257
ENGINE = struct.pack("@II", 0x4B4C5257, 3)


def classic(command, rank=-1, world=-1, task=b"0", more=b""):
    return classic_hello(command, rank, world, task) + more


def authentication(token):
    """Returns the first bytes that a worker with this token sends."""
    nonce = os.urandom(32)
    return struct.pack("@i", INTRODUCTION_MAGIC) + nonce + hmac.new(derive(token, b"claim"), nonce, hashlib.sha256).digest()


def link_hello(kind, sender, receiver, lost=-1):
    """Returns a Hello (rabit_engine/transport/tcp/handshake.h), the first message on a link between two ranks, with random bytes as the
    proof."""
    begin = struct.pack("@IHHiiii", LINK, HELLO_VERSION, kind, sender, receiver, lost, 0)
    return begin + os.urandom(HELLO_BYTES - len(begin))


def tls_hello():
    """Returns the first bytes that a TLS client sends."""
    outgoing = ssl.MemoryBIO()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="tracker")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def attacks(rng):
    """Yields an endless sequence of messages that an unauthenticated peer may send, each split into two pieces."""
    wrong = os.urandom(32)
    tls = tls_hello()
    while True:
        rank = rng.randrange(-1, RANKS + 1)
        xgboost = json.dumps({"world_size": RANKS, "rank": rank, "task_id": str(max(rank, 0))}).encode()
        whole = rng.choice([
            classic(b"start", rank), classic(b"start", -1, 1), classic(b"start", world=100),
            classic(b"recover", rank, RANKS, str(rank).encode()), classic(b"shutdown", rank, RANKS, str(rank).encode()),
            classic(b"print", rank, RANKS, more=string(b"\x1b[2Jboo\n")),
            struct.pack("@i", MAGIC) + string(xgboost) + string(b'{"cmd":1,"port":9000,"error_port":0}'),
            struct.pack("@i", MAGIC) + string(xgboost) + string(b'{"cmd":2}'),
            struct.pack("@i", MAGIC) + string(xgboost) + string(b'{"cmd":4,"msg":"boo"}'),
            authentication(wrong), authentication(wrong) + os.urandom(32) + classic(b"shutdown", rank),
            struct.pack("@i", INTRODUCTION_MAGIC) + bytes(64), struct.pack("@i", INTRODUCTION_MAGIC) + os.urandom(4000),
            struct.pack("@i", rank), struct.pack("@i", rank) + ENGINE, struct.pack("@i", rank) + os.urandom(64) + ENGINE,
            link_hello(1, rank, 1), link_hello(2, rank, 1, 0), link_hello(1, 0, rank) + os.urandom(32),
            link_hello(rng.randrange(3, 7), rank, rng.randrange(RANKS)), link_hello(3, rank, 2)[:-1],
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01" + os.urandom(300), tls,
            tls + os.urandom(rng.randrange(20_000)), b"\x16\x03\x01\x40\x00\x01\x01\x00\x00" + bytes(60_000), os.urandom(rng.randrange(1, 5000)),
            struct.pack("@4i", MAGIC, -1, -1, 2**31 - 1), bytes(1 << 16),
        ])
        if rng.random() < 0.3:
            whole = whole[:rng.randrange(1, len(whole) + 1)]  # the rest is never sent
        cut = rng.randrange(len(whole) + 1)
        yield [whole[:cut], whole[cut:]]


def listening_ports(pids):
    """Returns the ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                target = os.readlink(entry)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    ports = set()
    for table in ("tcp", "tcp6"):  # read once for all processes, because the kernel scans all sockets of the machine each time
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                ports.add(int(words[1].rpartition(":")[2], 16))
    return ports


def peak_memory_mb(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = [line for line in text.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) // 1024 if lines else 0


class Attacker:
    """A thread that attacks the ports that `ports` returns, 12 connections at a time, until it is stopped."""

    def __init__(self, ports, seed):
        self.ports, self.rng = ports, random.Random(seed)
        self.made = 0
        self.got = []  # answered attacks, with the answers
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def stop(self):
        self.over.set()
        self.thread.join()

    def run(self):
        source = attacks(self.rng)
        while not self.over.is_set():
            open_ones = []
            ports = sorted(self.ports())
            for _ in range(12):
                pieces = next(source)
                try:
                    sock = socket.create_connection(("127.0.0.1", self.rng.choice(ports)), timeout=2)
                    sock.sendall(pieces[0])
                    open_ones.append((sock, pieces))
                    self.made += 1
                except OSError:
                    continue  # the process has ended, or closed the connection first
            for sock, pieces in open_ones:
                try:
                    sock.sendall(pieces[1])
                    sock.settimeout(0.003)
                    if answer := sock.recv(4096):
                        self.got.append((pieces, answer))
                except OSError:
                    pass  # closed, or silent so far
            for sock, _ in open_ones:
                sock.close()
            time.sleep(0.005)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        calm = training.train(RANKS, versions=VERSIONS)
        assert calm.code == 0, calm.errors
        cls.expected = calm.digests

    def tracker(self, *options):
        tracker = local_tracker(RANKS, "--sortby", "task", *options)
        self.addCleanup(tracker.__exit__)
        return tracker.follow()  # the tracker logs a line for each dropped connection

    def job(self, *options):
        tracker = self.tracker(*options)
        return tracker, self.job_of(tracker)

    def job_of(self, tracker):
        job = Job(tracker.env, RANKS, VERSIONS, {"WARREN_SHARED_MEMORY": "off"})
        self.addCleanup(job.close)
        return job

    def attack(self, tracker, job, seed):
        def ports():
            return {tracker.port, *listening_ports(process.pid for process in list(job.processes.values()))}

        attackers = [Attacker(ports, seed * 10 + number) for number in range(2)]
        for attacker in attackers:
            self.addCleanup(attacker.stop)
        return attackers

    def check_end(self, tracker, job, attackers):
        peak = 0
        while any(process.poll() is None for process in job.processes.values()):
            pids = [tracker.process.pid, *(process.pid for process in job.processes.values())]
            peak = max(peak, *map(peak_memory_mb, pids))
            time.sleep(0.05)
        codes, output, errors = job.finish()
        for attacker in attackers:
            attacker.stop()
        self.assertEqual(codes, [0] * RANKS, errors)
        self.assertEqual(training.digests(output), self.expected)
        code, log = tracker.finish()
        self.assertEqual(code, 0, log)
        self.assertEqual([one for attacker in attackers for one in attacker.got], [])
        self.assertNotIn("boo", output + errors)
        self.assertNotIn("\x1b", log)
        self.assertEqual([line for line in log.splitlines() if "boo" in line and "dropped" not in line], [])
        made = sum(attacker.made for attacker in attackers)
        self.assertGreater(made, 100)
        self.assertLess(peak, 100, "MB")
        print(f"{made} unauthenticated connections, at most {peak} MB in a process")

    def test_unauthenticated_peers_get_nothing_from_a_running_job(self):
        tracker, job = self.job("--admit", "token")
        job.await_version(1)
        self.check_end(tracker, job, self.attack(tracker, job, SEED))

    def test_nor_from_the_first_moment_of_a_job_to_its_last(self):
        tracker, job = self.job("--admit", "token")
        self.check_end(tracker, job, self.attack(tracker, job, SEED + 1))

    def test_nor_while_a_worker_is_lost_and_comes_back(self):
        tracker, job = self.job("--admit", "token")
        job.await_version(1)
        attackers = self.attack(tracker, job, SEED + 2)
        for attempt, victim in enumerate((2, 0, 3), 1):
            told = len(re.findall("version", job.text("err")))
            job.kill(victim)
            job.start(victim, attempt)
            # A few versions later, all ranks hold their copies of each other's models again.
            wait_for(lambda before=told: len(re.findall("version", job.text("err"))) > before + 5 * RANKS, 30, "its return")
        self.check_end(tracker, job, attackers)

    def test_nor_from_a_job_with_tls_from_its_first_moment_to_its_last(self):
        tracker, job = self.job("--admit", "token", "--tls")
        if "WARREN_TLS" not in tracker.env:
            self.skipTest("SKIPPED: this build has no TLS")
        self.check_end(tracker, job, self.attack(tracker, job, SEED + 3))

    def test_a_claim_that_is_repeated_gets_a_nonce_and_no_more(self):
        """An attacker can overhear the first bytes that a worker sends."""
        tracker, job = self.job("--admit", "token")
        job.await_version(1)
        overheard = authentication(bytes.fromhex(tracker.env["DMLC_JOB_TOKEN"]))
        for more in (b"", os.urandom(32), overheard[4:36]):
            with tracker.connect() as sock:
                sock.sendall(overheard)
                Wire(sock).recv_exactly(36)
                if more:
                    self.hears_nothing(sock, more + classic(b"shutdown", 0, RANKS))
        self.check_end_calmly(tracker, job)

    def hears_nothing(self, sock, bytes_sent):
        try:
            sock.sendall(bytes_sent)
            self.assertEqual(sock.recv(1), b"")
        except (ConnectionResetError, BrokenPipeError):
            pass

    def test_who_was_admitted_before_the_first_worker_has_nothing_left_when_it_comes(self):
        for options in ((), ("--tls",)):
            with self.subTest(options=options), contextlib.ExitStack() as stack:
                tracker = self.tracker("--admit", "any", *options)
                if options and "WARREN_TLS" not in tracker.env:
                    self.skipTest("SKIPPED: this build has no TLS")
                only_magic, owner, waiting = (stack.enter_context(tracker.connect()) for _ in range(3))
                only_magic.sendall(struct.pack("@i", MAGIC))
                self.assertEqual(only_magic.recv(4), struct.pack("@i", MAGIC))
                waiting.sendall(classic(b"start", task=b"1"))
                self.assertEqual(waiting.recv(4), struct.pack("@i", MAGIC))
                owner.sendall(classic(b"start", 0, task=b"impostor") + struct.pack("@i", 0))
                # Magic number, rank, parent, world size, the number and ranks of tree neighbors, two ring neighbors, and the numbers of
                # ranks to connect to and to accept.
                Wire(owner).recv_exactly(44)
                owner.sendall(struct.pack("@2i", 0, 9))  # 0 failed links, and a listening port: this completes rank 0's start
                wait_for(lambda: owner.recv(1000) == b"", 30, "the end of its exchange")
                job = self.job_of(tracker)
                job.await_version(1)
                self.hears_nothing(only_magic, classic(b"start", task=b"1")[4:])
                self.hears_nothing(waiting, b"")
                for forged in (classic(b"print", 0, RANKS, b"impostor", string(b"boo\n")), classic(b"shutdown", 0, RANKS, b"impostor"),
                               classic(b"start", 0, RANKS, b"impostor")):
                    self.hears_nothing(stack.enter_context(tracker.connect()), forged)
                log = self.check_end_calmly(tracker, job)
                self.assertIn("had joined this job before the first one that did", log)
                self.assertEqual([line for line in log.splitlines() if "boo" in line and "dropped" not in line], [])

    def check_end_calmly(self, tracker, job):
        codes, output, errors = job.finish()
        self.assertEqual(codes, [0] * RANKS, errors)
        self.assertEqual(training.digests(output), self.expected)
        code, log = tracker.finish()
        self.assertEqual(code, 0, log)
        return log


if __name__ == "__main__":
    unittest.main(warnings="ignore")
