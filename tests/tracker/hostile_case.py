"""The base class of the tests with hostile peers."""

import random
import unittest

from warren_testing import local_tracker, start_all, threads


class HostileCase(unittest.TestCase):
    """The tracker of a job, its four well-behaved workers (of class `worker`), and connections that may misbehave."""

    worker = None  # the class of workers, constructed from the tracker's address and a task

    def setUp(self):
        self.tracker = local_tracker(4, "--admit", "any")
        self.open = []

    def tearDown(self):
        for sock in self.open:
            sock.close()
        self.tracker.__exit__()

    def connect(self, data=b""):
        sock = self.tracker.connect()
        self.open.append(sock)
        if data:
            sock.sendall(data)
        return sock

    def finish_job(self, meanwhile=lambda: None):
        """Runs a whole job of four workers. Calls `meanwhile` while three of them wait for the fourth. Returns the log."""
        workers = self.workers()
        with threads([worker.start for worker in workers[:3]]):
            for worker in workers[:3]:
                if hasattr(worker, "known"):
                    worker.known.wait(30)
            meanwhile()
            workers[3].start()
        return self.end_job(workers)

    def workers(self):
        return [type(self).worker(self.tracker.address, task) for task in range(4)]

    def started_workers(self):
        return start_all(self.workers())

    def end_job(self, workers):
        """Shuts the workers down, waits for the tracker, which must succeed, and returns its log."""
        for worker in workers:
            worker.shutdown()
        code, log = self.tracker.finish()
        self.assertEqual(code, 0, log)
        return log

    def assert_dropped(self, cases):
        """Runs a job, and meanwhile sends the bytes of each case over a connection. Each must be dropped with one line, which contains
        the case's complaint."""
        ports = []

        def misbehave():
            for data, _ in cases:
                sock = self.connect(data)
                ports.append(sock.getsockname()[1])
                # The tracker closes a dropped connection, perhaps after it has sent the magic. A reset counts as a close.
                try:
                    while sock.recv(4096):
                        pass
                except ConnectionResetError:
                    pass

        log = self.finish_job(meanwhile=misbehave)
        for (data, complaint), port in zip(cases, ports):
            with self.subTest(data=data[:80]):
                lines = [line for line in log.splitlines() if f":{port}" in line and "dropped" in line]
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(complaint, lines[0])

    def throw_nonsense(self, seed, whole, head=b""):
        """Opens 300 connections. Each sends `whole`, or `head` and random bytes, with up to three bytes changed, and stops at a
        random place."""
        random_bytes = random.Random(seed)
        for number in range(300):
            data = bytearray(whole if number % 2 else head + random_bytes.randbytes(64))
            for _ in range(random_bytes.randrange(4)):
                data[random_bytes.randrange(len(data))] = random_bytes.randrange(256)
            sock = self.connect()
            try:
                sock.sendall(bytes(data[: random_bytes.randrange(len(data) + 1)]))
            except OSError:
                pass
            sock.close()
