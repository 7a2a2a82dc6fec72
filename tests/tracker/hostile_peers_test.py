"""Peers that misbehave while a job bootstraps or runs: each is dropped with one log line, and the job continues."""

import socket
import struct
import time
import unittest

from hostile_case import HostileCase
from warren_testing import MAGIC, ClassicWorker, Tracker, start_all


class HostilePeers(HostileCase):
    worker = ClassicWorker

    def hello(self, rank=-1, world=-1, task=b"9", command=b"start"):
        head = struct.pack("@3i", MAGIC, rank, world)
        return head + struct.pack("@i", len(task)) + task + struct.pack("@i", len(command)) + command

    def test_a_web_browser(self):
        self.assert_dropped(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not a worker")

    def test_a_wrong_magic(self):
        self.assert_dropped(struct.pack("@i", 0x1234), "0x00001234")

    def test_a_huge_length(self):
        self.assert_dropped(struct.pack("@4i", MAGIC, -1, -1, 2**31 - 1), "announces 2147483647 bytes")

    def test_a_negative_length(self):
        self.assert_dropped(struct.pack("@4i", MAGIC, -1, -1, -7), "announces -7 bytes")

    def test_an_unknown_command(self):
        self.assert_dropped(self.hello(command=b"reboot"), 'the command is "reboot"')

    def test_a_rank_out_of_range(self):
        self.assert_dropped(self.hello(rank=4, command=b"shutdown"), "shuts down as rank 4")

    def test_a_rank_below_minus_one(self):
        self.assert_dropped(self.hello(rank=-2), "the rank is -2")

    def test_a_recovery_without_a_start(self):
        self.assert_dropped(self.hello(rank=1, command=b"recover"), "recover as rank 1")

    def test_a_worker_of_the_other_dialect(self):
        text = b'{"world_size":-1,"rank":-1,"task_id":"0"}'
        self.assert_dropped(struct.pack("@2i", MAGIC, len(text)) + text, "collective dialect")

    def test_one_that_closes_in_the_middle_of_its_hello(self):
        for cut in (0, 2, 4, 9, 14, 20):
            self.connect(self.hello()[:cut]).close()
        log = self.finish_job()
        self.assertEqual(log.count("dropped"), 6, log)

    def test_one_that_resets_the_connection(self):
        sock = self.connect(self.hello()[:9])
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        self.finish_job()

    def test_a_second_shutdown(self):
        address = (self.tracker.host, self.tracker.port)
        workers = start_all([ClassicWorker(address, task) for task in range(4)])
        workers[0].shutdown()
        workers[0].shutdown()
        for worker in workers[1:]:
            worker.shutdown()
        code, log = self.tracker.finish()
        self.assertEqual(code, 0)
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
        self.tracker = Tracker("--num-workers", 4, "--host-ip", "127.0.0.1", "--port", 0, max_files=64)
        for _ in range(150):
            self.connect()
        log = self.finish_job()
        self.assertEqual(log.count("cannot accept more than the "), 1, log)

    def test_a_worker_that_stops_talking_in_the_middle_of_linking_does_not_block_others_or_prints(self):
        address = (self.tracker.host, self.tracker.port)
        worker = ClassicWorker(address, 9, rank=3)
        stuck = worker.hello("start")  # never reports its good links
        worker.print("still here")
        self.assertTrue(any("still here" in line for line in self.tracker.process.stderr))
        stuck.sock.close()
        self.finish_job()

    def test_an_impostor_that_takes_a_rank_and_leaves_keeps_nobody_out(self):
        address = (self.tracker.host, self.tracker.port)
        for rank in range(4):
            ClassicWorker(address, "impostor", rank=rank).hello("start").sock.close()
        self.finish_job()

    def test_a_false_shutdown_or_recovery_of_somebody_elses_rank(self):
        address = (self.tracker.host, self.tracker.port)
        workers = start_all([ClassicWorker(address, task) for task in range(4)])
        for rank in range(4):
            ClassicWorker(address, "impostor", rank=rank).hello("shutdown").sock.close()
            ClassicWorker(address, "impostor", rank=rank).hello("recover").sock.close()
        for worker in workers:
            self.assertIsNone(self.tracker.process.poll())
            worker.shutdown()
        code, log = self.tracker.finish()
        self.assertEqual(code, 0)
        self.assertEqual(log.count("belongs to task"), 8, log)

    def test_random_bytes_from_many_peers_at_once(self):
        # Task 9 could join the job by chance, but it leaves again, as its socket is closed before the job starts.
        self.throw_nonsense(20240229, self.hello() + struct.pack("@3i", 0, 0, 9010))
        self.finish_job()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
