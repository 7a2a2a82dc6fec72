"""Peers that misbehave while a job of XGBoost 2.1 or later bootstraps or runs: each is dropped with one log line, and the job continues."""

import contextlib
import json
import struct
import time
import unittest

from hostile_case import HostileCase
from warren_testing import MAGIC, ClassicWorker, CollectiveWorker, start_all, string, threads, wait_for

HELLO = {"world_size": -1, "rank": 0, "task_id": "9"}


def message(*texts):
    """Returns the bytes of the magic and of these strings, bytes or objects (as JSON), each preceded by its length."""
    encoded = (text if isinstance(text, bytes) else text.encode() if isinstance(text, str) else json.dumps(text).encode() for text in texts)
    return struct.pack("@i", MAGIC) + b"".join(map(string, encoded))


class HostileCollectivePeers(HostileCase):
    worker = CollectiveWorker

    def test_bytes_that_no_worker_of_this_job_sends(self):
        wrong = (("rank", "0"), ("rank", 1.5), ("world_size", None), ("world_size", [1]), ("task_id", 9), ("rank", -2),
                 ("world_size", 2**31), ("world_size", 10**30))
        self.assert_dropped([
            (message("{\"rank\": 0,,}"), "the hello is not a JSON object"),
            # The tracker takes this for the other dialect, which this job does not use.
            (message("[1, 2, 3]"), "all workers of a job need the same version"),
            (message(b"{\xff\xfe\x80\x81" * 20), "the hello is not a JSON object"),
            *((message({**HELLO, name: value}), f'for "{name}"') for name, value in wrong),
            (message({"world_size": -1, "rank": 0}), 'has nothing for "task_id"'),
            (struct.pack("@2i", MAGIC, 0x7fffff01) + b'{"rank":0', "announces 2147483393 bytes"),
            (message(HELLO) + struct.pack("@i", 2**30), "the command announces 1073741824 bytes"),
            (message(HELLO, '{"cmd":2,"a":' + "[" * 100_000 + "]" * 100_000 + "}"), "nesting deeper than"),
            (message(HELLO, {"cmd": 9}), 'has 9 for "cmd", expected 1 to 4'),
            (message(HELLO, {"cmd": 1, "port": 0, "error_port": 1}), 'for "port"'),
            (message({**HELLO, "world_size": 5}, {"cmd": 1, "port": 1, "error_port": 2}), "it expects 5 workers"),
        ])

    def test_a_rabit_worker(self):
        def come():
            with contextlib.suppress(OSError):  # the worker may be refused before it has sent everything
                worker = ClassicWorker(self.tracker.address, 7).hello("start")
                self.assertEqual(worker.sock.recv(1), b"")
        log = self.finish_job(meanwhile=come)
        self.assertIn("it speaks the classic dialect (rabit, XGBoost up to 2.0), but the other workers", log)

    def test_a_shutdown_of_somebody_elses_rank(self):
        workers = self.started_workers()
        for rank in range(4):
            impostor = CollectiveWorker(self.tracker.address, 77)
            impostor.rank, impostor.world_size = rank, 4
            impostor.shutdown()
            impostor.fail("no good")  # does not count as that rank's failure
        log = self.end_job(workers)
        self.assertEqual(log.count("which was not assigned to it"), 4, log)

    def test_an_error_port_at_which_nobody_listens(self):
        for task in (7, 8):
            gone = CollectiveWorker(self.tracker.address, task)
            gone.command(cmd=1, port=9000, error_port=1).sock.close()
        self.finish_job()

    def test_an_error_port_that_is_never_read(self):
        workers = self.started_workers()
        workers[3].fail("bad luck")
        self.assertEqual([worker.signal() for worker in workers[1:3]], [1, 1])  # worker 0 does not read
        start_all(workers[:1] + self.workers()[1:])

    def test_the_one_place_at_an_error_port_is_the_trackers_before_all_have_come(self):
        workers = self.workers()
        with threads([workers[0].start]):
            workers[0].known.wait(30)
            workers[0].error_listener.settimeout(10)
            place, _ = workers[0].error_listener.accept()
            self.open.append(place)
            start_all(workers[1:])
        workers[1].fail("bad luck")
        place.settimeout(30)
        self.assertEqual(place.recv(4), struct.pack("@i", 1))
        self.assertEqual([worker.signal() for worker in workers[2:]], [1, 1])

    def test_one_that_closes_in_the_middle(self):
        whole = message(HELLO, '{"cmd":1,"port":1,"error_port":2}')
        for cut in (0, 2, 4, 7, 20, len(whole) - 1):
            self.connect(whole[:cut]).close()
        log = self.finish_job()
        self.assertEqual(log.count("dropped"), 6, log)

    def test_a_thousand_silent_connections_do_not_delay_a_job(self):
        for _ in range(1000):
            self.connect()
        begin = time.monotonic()
        self.finish_job()
        # This limit is far below the time after which silent peers are dropped: the job must not wait for them.
        self.assertLess(time.monotonic() - begin, 15)

    def test_random_bytes_from_many_peers_at_once(self):
        self.throw_nonsense(20261122, message({**HELLO, "task_id": "unknown"}, '{"cmd":4,"msg":"x"}'),
                            head=struct.pack("@i", MAGIC))
        self.finish_job()

    def test_what_a_worker_prints_is_shown_and_its_escape_sequences_are_not_obeyed(self):
        workers = self.started_workers()
        workers[3].print("C:\\users \x1b[31m \u00fc")
        self.assertTrue(any("C:\\users \\x1b[31m \u00fc" in line for line in self.tracker.process.stderr))


class Failures(HostileCase):
    """The handling of failed workers by a tracker without a launcher."""

    worker = CollectiveWorker

    def test_a_process_that_ends_without_a_word_is_noticed_by_its_error_port(self):
        workers = self.started_workers()
        lost, _ = workers.pop(2).error_listener.accept()
        lost.close()
        self.assertEqual([worker.signal() for worker in workers], [1, 1, 1])
        line = wait_for(lambda: next((line for line in self.tracker.process.stderr if "was lost" in line), None))
        self.assertIn("rank 2 (task 2, host 127.0.0.1) was lost: it ended without a shutdown; told 3 others to stop", line)

    def test_after_a_failure_the_same_tracker_takes_them_all_again(self):
        self.started_workers()[0].fail("bad luck")
        log = self.end_job(self.started_workers())
        self.assertIn("reported an error: bad luck", log)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
