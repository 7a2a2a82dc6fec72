"""Peers that misbehave while a job bootstraps or runs: each is dropped with one log line, and the job continues."""

import socket
import struct
import time
import unittest

from hostile_case import HostileCase
from warren_testing import MAGIC, ClassicWorker, classic_hello, local_tracker, string

START = classic_hello(b"start", task=b"9")


class HostilePeers(HostileCase):
    worker = ClassicWorker

    def test_bytes_that_no_worker_of_this_job_sends(self):
        text = b'{"world_size":-1,"rank":-1,"task_id":"0"}'
        self.assert_dropped([
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not a worker"),
            (struct.pack("@i", 0x1234), "0x00001234"),
            (struct.pack("@4i", MAGIC, -1, -1, 2**31 - 1), "announces 2147483647 bytes"),
            (struct.pack("@4i", MAGIC, -1, -1, -7), "announces -7 bytes"),
            (classic_hello(b"reboot", task=b"9"), 'the command is "reboot"'),
            (classic_hello(b"shutdown", rank=4, task=b"9"), "shuts down as rank 4"),
            (classic_hello(b"start", rank=-2, task=b"9"), "the rank is -2"),
            (classic_hello(b"recover", rank=1, task=b"9"), "recover as rank 1"),
            (struct.pack("@i", MAGIC) + string(text), "collective dialect"),
        ])

    def test_one_that_closes_in_the_middle_of_its_hello(self):
        for cut in (0, 2, 4, 9, 14, 20):
            self.connect(START[:cut]).close()
        log = self.finish_job()
        self.assertEqual(log.count("dropped"), 6, log)

    def test_one_that_resets_the_connection(self):
        sock = self.connect(START[:9])
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        self.finish_job()

    def test_a_second_shutdown(self):
        workers = self.started_workers()
        workers[0].shutdown()
        log = self.end_job(workers)
        self.assertEqual(log.count("has already shut down"), 1, log)

    def test_a_thousand_silent_connections_do_not_delay_a_job(self):
        for _ in range(1000):
            self.connect()
        for _ in range(100):
            self.connect(struct.pack("@i", MAGIC))
        begin = time.monotonic()
        self.finish_job()
        # This limit is far below the time after which silent peers are dropped: the job must not wait for them.
        self.assertLess(time.monotonic() - begin, 15)

    def test_silent_connections_do_not_keep_workers_out_when_descriptors_run_short(self):
        self.tracker.__exit__()
        self.tracker = local_tracker(4, max_files=64)
        for _ in range(150):
            self.connect()
        log = self.finish_job()
        self.assertEqual(log.count("cannot accept more than the "), 1, log)

    def test_a_worker_that_stops_talking_in_the_middle_of_linking_does_not_block_others_or_prints(self):
        worker = ClassicWorker(self.tracker.address, 9, rank=3)
        stuck = worker.hello("start")  # never reports its good links
        worker.print("still here")
        self.assertTrue(any("still here" in line for line in self.tracker.process.stderr))
        stuck.sock.close()
        self.finish_job()

    def test_an_impostor_that_takes_a_rank_and_leaves_keeps_nobody_out(self):
        for rank in range(4):
            ClassicWorker(self.tracker.address, "impostor", rank=rank).hello("start").sock.close()
        self.finish_job()

    def test_a_false_shutdown_or_recovery_of_somebody_elses_rank(self):
        workers = self.started_workers()
        for rank in range(4):
            ClassicWorker(self.tracker.address, "impostor", rank=rank).hello("shutdown").sock.close()
            ClassicWorker(self.tracker.address, "impostor", rank=rank).hello("recover").sock.close()
        for worker in workers:
            self.assertIsNone(self.tracker.process.poll())
            worker.shutdown()
        log = self.end_job([])
        self.assertEqual(log.count("belongs to task"), 8, log)

    def test_random_bytes_from_many_peers_at_once(self):
        # Task 9 could join the job by chance, but it leaves again, as its socket is closed before the job starts.
        self.throw_nonsense(20240229, START + struct.pack("@3i", 0, 0, 9010))
        self.finish_job()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
