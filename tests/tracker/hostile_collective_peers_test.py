"""Peers that misbehave while a job of XGBoost 2.1 or later bootstraps or runs: each is dropped with one log line, and the job continues."""

import contextlib
import json
import struct
import time
import unittest

from hostile_case import HostileCase
from warren_testing import MAGIC, ClassicWorker, CollectiveWorker, start_all, threads, wait_for

HELLO = {"world_size": -1, "rank": 0, "task_id": "9"}


def message(*texts):
    """Returns the bytes of the magic and of these strings, each preceded by its length."""
    data = struct.pack("@i", MAGIC)
    for text in texts:
        raw = text if isinstance(text, bytes) else text.encode()
        data += struct.pack("@i", len(raw)) + raw
    return data


class HostileCollectivePeers(HostileCase):
    worker = CollectiveWorker

    def assert_refused(self, complaint, *texts):
        self.assert_dropped(message(*[json.dumps(text) if isinstance(text, dict) else text for text in texts]), complaint)

    def test_broken_json(self):
        self.assert_refused("the hello is not a JSON object", "{\"rank\": 0,,}")

    def test_something_else_than_an_object(self):
        # The tracker takes this for the other dialect, which this job does not use.
        self.assert_refused("all workers of a job need the same version", "[1, 2, 3]")

    def test_bytes_that_are_no_text(self):
        self.assert_refused("the hello is not a JSON object", b"{\xff\xfe\x80\x81" * 20)

    def test_wrong_types(self):
        for name, value in (("rank", "0"), ("rank", 1.5), ("world_size", None), ("world_size", [1]), ("task_id", 9)):
            self.setUp()
            self.assert_refused(f'for "{name}"', {**HELLO, name: value})
            self.tracker.__exit__()
        self.setUp()

    def test_numbers_out_of_range(self):
        for name, value in (("rank", -2), ("world_size", 2**31), ("world_size", 10**30)):
            self.setUp()
            self.assert_refused(f'for "{name}"', {**HELLO, name: value})
            self.tracker.__exit__()
        self.setUp()

    def test_a_missing_field(self):
        self.assert_refused('has nothing for "task_id"', {"world_size": -1, "rank": 0})

    def test_a_huge_length(self):
        self.assert_dropped(struct.pack("@2i", MAGIC, 0x7fffff01) + b'{"rank":0', "announces 2147483393 bytes")

    def test_a_huge_command(self):
        self.assert_dropped(message(json.dumps(HELLO)) + struct.pack("@i", 2**30), "the command announces 1073741824 bytes")

    def test_deep_nesting(self):
        self.assert_refused("nesting deeper than", json.dumps(HELLO), '{"cmd":2,"a":' + "[" * 100_000 + "]" * 100_000 + "}")

    def test_an_unknown_command(self):
        self.assert_refused('has 9 for "cmd", expected 1 to 4', HELLO, {"cmd": 9})

    def test_a_port_that_is_none(self):
        self.assert_refused('for "port"', HELLO, {"cmd": 1, "port": 0, "error_port": 1})

    def test_another_world(self):
        self.assert_refused("it expects 5 workers", {**HELLO, "world_size": 5}, {"cmd": 1, "port": 1, "error_port": 2})

    def test_a_rabit_worker(self):
        def come():
            with contextlib.suppress(OSError):  # the worker may be refused before it has sent everything
                worker = ClassicWorker((self.tracker.host, self.tracker.port), 7).hello("start")
                self.assertEqual(worker.sock.recv(1), b"")
        log = self.finish_job(meanwhile=come)
        self.assertIn("it speaks the classic dialect (rabit, XGBoost up to 2.0), but the other workers", log)

    def test_a_shutdown_of_somebody_elses_rank(self):
        workers = start_all([CollectiveWorker((self.tracker.host, self.tracker.port), task) for task in range(4)])
        for rank in range(4):
            impostor = CollectiveWorker((self.tracker.host, self.tracker.port), 77)
            impostor.rank, impostor.world_size = rank, 4
            impostor.shutdown()
            impostor.fail("no good")  # does not count as that rank's failure
        for worker in workers:
            worker.shutdown()
        code, log = self.tracker.finish()
        self.assertEqual(code, 0, log)
        self.assertEqual(log.count("which was not assigned to it"), 4, log)

    def test_an_error_port_at_which_nobody_listens(self):
        for task in (7, 8):
            gone = CollectiveWorker((self.tracker.host, self.tracker.port), task)
            gone.command(cmd=1, port=9000, error_port=1).sock.close()
        self.finish_job()

    def test_an_error_port_that_is_never_read(self):
        workers = start_all([CollectiveWorker((self.tracker.host, self.tracker.port), task) for task in range(4)])
        workers[3].fail("bad luck")
        self.assertEqual([worker.signal() for worker in workers[1:3]], [1, 1])  # worker 0 does not read
        start_all(workers[:1] + [CollectiveWorker((self.tracker.host, self.tracker.port), task) for task in range(1, 4)])

    def test_the_one_place_at_an_error_port_is_the_trackers_before_all_have_come(self):
        workers = [CollectiveWorker((self.tracker.host, self.tracker.port), task) for task in range(4)]
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
        whole = message(json.dumps(HELLO), '{"cmd":1,"port":1,"error_port":2}')
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
        self.throw_nonsense(20261122, message(json.dumps({**HELLO, "task_id": "unknown"}), '{"cmd":4,"msg":"x"}'),
                            head=struct.pack("@i", MAGIC))
        self.finish_job()

    def test_what_a_worker_prints_is_shown_and_its_escape_sequences_are_not_obeyed(self):
        workers = start_all([CollectiveWorker((self.tracker.host, self.tracker.port), task) for task in range(4)])
        workers[3].print("C:\\users \x1b[31m \u00fc")
        self.assertTrue(any("C:\\users \\x1b[31m \u00fc" in line for line in self.tracker.process.stderr))


class Failures(unittest.TestCase):
    """The handling of failed workers by a tracker without a launcher."""

    def setUp(self):
        self.case = HostileCollectivePeers()
        self.case.setUp()
        self.tracker = self.case.tracker
        self.workers = start_all([CollectiveWorker((self.tracker.host, self.tracker.port), task) for task in range(4)])

    def tearDown(self):
        self.case.tearDown()

    def test_a_process_that_ends_without_a_word_is_noticed_by_its_error_port(self):
        lost, _ = self.workers[2].error_listener.accept()
        lost.close()
        self.assertEqual([worker.signal() for worker in self.workers if worker is not self.workers[2]], [1, 1, 1])
        line = wait_for(lambda: next((line for line in self.tracker.process.stderr if "was lost" in line), None))
        self.assertIn("rank 2 (task 2, host 127.0.0.1) was lost: it ended without a shutdown; told 3 others to stop", line)

    def test_after_a_failure_the_same_tracker_takes_them_all_again(self):
        self.workers[0].fail("bad luck")
        again = start_all([CollectiveWorker((self.tracker.host, self.tracker.port), task) for task in range(4)])
        for worker in again:
            worker.shutdown()
        code, log = self.tracker.finish()
        self.assertEqual(code, 0, log)
        self.assertIn("reported an error: bad luck", log)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
