"""Processes that join through trackers (ours, XGBoost's, dmlc-core's, and faulty simulated ones) and detect each other's death."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

from warren_testing import BIN, HELD, MAGIC, NOTED, RELEASED, ClassicWorker, Tracker, Wire, let_in

# The path of a dmlc-core clone, because no package provides dmlc-core's tracker. If it is empty, the test with that tracker is skipped.
DMLC_CORE = os.environ.get("WARREN_DMLC_CORE", "")
XGBOOST_TRACKER = "/usr/lib/python3/dist-packages/xgboost/tracker.py"
TOKEN = "ab" * 32


def stock_tracker(script, workers):
    """Returns a tracker that runs `script` instead of our tracker and ends with this process, as ours does."""
    options = ("--num-workers", workers, "--host-ip", "127.0.0.1")
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, script, *map(str, options)]
    return Tracker(*options, enter=lambda _: [*command, "--log-level", "DEBUG"])


def our_tracker(workers):
    return Tracker("--num-workers", workers, "--port", 0, "--host-ip", "127.0.0.1")


class Ranks:
    """Processes that run the program tracker_ranks."""

    def __init__(self, tracker_env, count, *arguments, **settings):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("DMLC_", "RABIT_", "WARREN_", "rabit_"))}
        environment.update(tracker_env)
        environment.update(settings)
        self.processes = [
            subprocess.Popen([BIN / "tracker_ranks", *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                             env=dict(environment, DMLC_TASK_ID=str(task)))
            for task in range(count)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.stdout.close()
            process.wait()

    def by_rank(self):
        """Returns the processes by rank; waits until all have joined."""
        found = {}
        for process in self.processes:
            match = re.match(r"joined (\d+) ", process.stdout.readline())
            found[int(match.group(1))] = process
        return found

    def outputs(self, seconds=30):
        return [process.communicate(timeout=seconds)[0] for process in self.processes]


class Joining(unittest.TestCase):
    def join_and_end_well(self, tracker, count, *arguments):
        with tracker, Ranks(tracker.env, count, *arguments) as ranks:
            outputs = ranks.outputs()
            self.assertEqual([process.returncode for process in ranks.processes], [0] * count, outputs)
            self.assertEqual(sorted(int(output.split()[1]) for output in outputs), list(range(count)))
            code, log = tracker.finish()
            self.assertEqual(code, 0, log)
            return outputs, log

    def check_records(self, tracker, count):
        outputs, log = self.join_and_end_well(tracker, count, "records")
        expected = [f"record of {rank}" for rank in range(count)]
        for output in outputs:
            self.assertEqual(output.splitlines()[1:], expected)
        return log

    def test_one_to_nine_workers_learn_each_others_records_through_our_tracker(self):
        for count in range(1, 10):
            with self.subTest(workers=count):
                self.check_records(our_tracker(count), count)

    def test_a_hundred_workers_learn_each_others_records(self):
        self.check_records(our_tracker(100), 100)

    @unittest.skipUnless(os.path.exists(XGBOOST_TRACKER), "python3-xgboost 1.7 is not installed")
    def test_xgboosts_own_tracker_serves_them_too(self):
        for count in range(1, 10):
            with self.subTest(workers=count):
                log = self.check_records(stock_tracker(XGBOOST_TRACKER, count), count)
                for rank in range(count):
                    self.assertIn(f"rank {rank} was here", log)

    @unittest.skipUnless(DMLC_CORE, "WARREN_DMLC_CORE names no clone of dmlc-core")
    def test_dmlc_cores_own_tracker_serves_them_too(self):
        # This tracker writes the workers' prints to its stdout, from which the test reads only the address, so the prints are not checked.
        for count in range(1, 10):
            with self.subTest(workers=count):
                self.check_records(stock_tracker(f"{DMLC_CORE}/tracker/dmlc_tracker/tracker.py", count), count)

    def test_all_ranks_exchange_with_all_and_leave_without_being_taken_for_lost(self):
        for count in (2, 3, 8):
            with self.subTest(workers=count):
                self.join_and_end_well(our_tracker(count), count, "all", 20)

    def test_a_restarted_worker_gets_its_rank_back_while_the_others_link(self):
        # The first process of task 2 dies between hello and linking; the other workers wait for the task's second process.
        with our_tracker(3) as tracker, Ranks(tracker.env, 2, "records") as ranks:
            first = ClassicWorker((tracker.host, tracker.port), 2, token=tracker.env["DMLC_JOB_TOKEN"])
            wire = first.hello("start")
            first_rank = wire.recv_int()
            wire.sock.close()
            second = Ranks(tracker.env, 0, "records")
            second.processes.append(subprocess.Popen([BIN / "tracker_ranks", "records"], stdout=subprocess.PIPE, text=True,
                                                     env=dict(os.environ, **tracker.env, DMLC_TASK_ID="2")))
            with second:
                outputs = ranks.outputs() + second.outputs()
            self.assertEqual(int(outputs[2].split()[1]), first_rank)
            for output in outputs:
                self.assertEqual(output.splitlines()[1:], [f"record of {rank}" for rank in range(3)])


class Loss(unittest.TestCase):
    def test_a_rank_beside_in_the_ring_that_gives_up_ends_the_meeting_although_the_tree_is_silent(self):
        # In a world of 4, records reach rank 2 through rank 1, and rank 1 through rank 0, which pauses here. Rank 3 is next to rank 2 in
        # the ring only, but rank 2 must still notice that rank 3 has died.
        with our_tracker(4) as tracker, Ranks(tracker.env, 4, "records", 0, 3) as ranks:
            of = ranks.by_rank()
            of[3].kill()
            self.assertRegex(of[2].communicate(timeout=10)[0], "rank 2 .* lost rank 3 .* while the ranks exchanged records")
            self.assertRegex(of[1].communicate(timeout=10)[0], "rank 1 .* lost rank 2 .* while the ranks exchanged records")

    def test_a_killed_rank_is_named_by_all_others(self):
        count = 8
        for victim in (0, 3, 7):
            with self.subTest(victim=victim), our_tracker(count) as tracker, Ranks(tracker.env, count, "ring") as ranks:
                processes = ranks.by_rank()
                time.sleep(0.3)
                processes[victim].send_signal(signal.SIGKILL)
                for rank, process in processes.items():
                    if rank == victim:
                        continue
                    output, _ = process.communicate(timeout=10)
                    self.assertRegex(output, rf"^lost {victim} ", f"rank {rank}")

    def test_a_rank_that_only_computes_is_not_taken_for_dead(self):
        with our_tracker(3) as tracker, Ranks(tracker.env, 3, "ring") as ranks:
            processes = ranks.by_rank()
            processes[1].send_signal(signal.SIGSTOP)
            time.sleep(2)
            self.assertEqual([process.poll() for process in processes.values()], [None] * 3)
            processes[1].send_signal(signal.SIGCONT)
            time.sleep(0.3)
            self.assertEqual([process.poll() for process in processes.values()], [None] * 3)

    def test_ranks_that_call_different_collectives_all_end_with_an_error(self):
        with our_tracker(5) as tracker, Ranks(tracker.env, 5, "mismatch") as ranks:
            outputs = ranks.outputs(10)
            by_rank = {int(output.split()[1]): output for output in outputs}
            # Rank 4 compares its call with rank 3's, and rank 0 compares its call with rank 4's. At least one of the two sees the
            # difference, reports it and ends; the ranks that do not see it fail because a peer is lost.
            named = [rank for rank, output in by_rank.items() if "rank 4 calls allreduce of 2" in output]
            self.assertTrue(named and set(named) <= {0, 4}, by_rank)
            for rank in set(range(5)) - set(named):
                self.assertRegex(by_rank[rank], r"lost [04] ")


class Errors(unittest.TestCase):
    def fails_with(self, environment, pattern, **settings):
        begin = time.monotonic()
        with Ranks(environment, 1, "records", **settings) as ranks:
            output = ranks.outputs(20)[0]
        self.assertRegex(output, pattern)
        return time.monotonic() - begin

    @contextlib.contextmanager
    def listener(self, *serve):
        """Yields the environment of a worker whose tracker is a server on the loopback address. The server accepts one connection after the other
        and passes each to the next function in `serve`. At the end, checks that all functions have been called."""
        server = socket.create_server(("127.0.0.1", 0))
        server.settimeout(20)
        left = list(serve)
        def run():
            while left:
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(20)
                    left.pop(0)(connection)
        thread = threading.Thread(target=run)
        thread.start()
        yield {"DMLC_TRACKER_URI": "127.0.0.1", "DMLC_TRACKER_PORT": str(server.getsockname()[1])}
        thread.join()
        server.close()
        self.assertEqual(left, [], "nobody came")

    def test_a_tracker_that_is_not_there_is_named_with_the_number_of_tries(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        self.fails_with({"DMLC_TRACKER_URI": "127.0.0.1", "DMLC_TRACKER_PORT": str(port)},
                        rf"tracker at 127\.0\.0\.1:{port} cannot be reached, tried 2 times: .*Connection refused",
                        DMLC_WORKER_CONNECT_RETRY="2")

    def test_a_tracker_that_starts_late_is_found(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        with Ranks({"DMLC_TRACKER_URI": "127.0.0.1", "DMLC_TRACKER_PORT": str(port)}, 2, "records") as ranks:
            time.sleep(0.5)
            with Tracker("--num-workers", 2, "--port", port, "--host-ip", "127.0.0.1"):
                self.assertTrue(all("record of 1" in output for output in ranks.outputs()))

    def test_a_name_that_does_not_resolve_is_named(self):
        self.fails_with({"DMLC_TRACKER_URI": "no-such-host.invalid"}, r"no-such-host\.invalid.*cannot be resolved",
                        DMLC_WORKER_CONNECT_RETRY="1")

    def test_another_service_at_the_trackers_port_is_found_out(self):
        def http(connection):
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.recv(100)
        with self.listener(http) as environment:
            self.fails_with(environment, r"the process listening at .* is not a rabit tracker")

    def test_a_tracker_that_goes_away_is_reported(self):
        def vanish(connection):
            wire = Wire(connection)
            wire.send_int(wire.recv_int())
        with self.listener(vanish) as environment:
            self.fails_with(environment, r"closed the connection where this worker's rank was expected")

    def test_an_impossible_answer_is_reported(self):
        def nonsense(connection):
            wire = Wire(connection)
            wire.send_int(wire.recv_int())
            wire.send_int(7, -1, 3, 0, -1, -1)  # rank 7 of 3
            wire.sock.recv(1000)
        with self.listener(nonsense) as environment:
            self.fails_with(environment, r"sent an invalid message where this worker's rank was expected: the rank is 7")

    def test_a_tracker_that_ends_before_it_has_noted_the_workers_port_is_lost(self):
        """A restarted tracker could not give the other workers this worker's address."""
        with self.listener(self.link_alone) as environment:
            self.fails_with(environment, "was lost before it had noted where this worker listens: end of stream", DMLC_JOB_TOKEN=TOKEN)

    def test_a_tracker_that_ends_before_it_has_heard_that_a_worker_waits_for_the_others_is_told_again(self):
        """A restarted tracker may have no record of the shutdown, and would wait for this worker forever."""
        def leaves(connection, *words):
            wire = self.greet(connection)
            self.assertEqual(wire.command, "shutdown")
            self.assertEqual(wire.recv_int(), 1)  # the worker waits for the others
            if words:
                wire.send_int(*words)

        serve = [lambda connection: self.link_alone(connection, NOTED), leaves, lambda connection: leaves(connection, HELD, RELEASED)]
        with self.listener(*serve) as environment, Ranks(environment, 1, "together", DMLC_JOB_TOKEN=TOKEN) as ranks:
            process = ranks.by_rank()[0]
            self.assertEqual((process.wait(30), process.stdout.read()), (0, ""))

    def greet(self, connection):
        """Serves this connection as a tracker with TOKEN does, up to the worker's hello. Returns the Wire, with the worker's `command`."""
        wire = Wire(connection)
        let_in(wire, TOKEN)
        wire.send_int(wire.recv_int())
        wire.recv_int(), wire.recv_int(), wire.recv_str()  # rank, world size, task
        wire.command = wire.recv_str()
        return wire

    def link_alone(self, connection, *words):
        """Makes the worker on this connection rank 0 in a world of 1, reads the port on which it listens, and sends `words`."""
        wire = self.greet(connection)
        wire.send_int(0, -1, 1, 0, -1, -1)
        self.assertEqual(wire.recv_int(), 0)  # good links
        wire.send_int(0, 0)  # no rank to connect to or to wait for
        self.assertEqual(wire.recv_int(), 0)  # errors
        self.assertGreater(wire.recv_int(), 0)  # the port
        if words:
            wire.send_int(*words)

    def test_a_worker_of_another_engine_is_found_out(self):
        # The other engine cannot prove a token, so the job has none; with one, the tracker would refuse the worker.
        with our_tracker(2) as tracker, Ranks(dict(tracker.env, DMLC_JOB_TOKEN=""), 1, "records",
                                              WARREN_CONNECT_TIMEOUT="1") as ranks:
            other = ClassicWorker((tracker.host, tracker.port), 1).start()
            output = ranks.outputs(20)[0]
            self.assertRegex(output, r"runs a different allreduce engine")
            other.die()


class UnauthenticatedPeers(unittest.TestCase):
    def test_unauthenticated_peers_at_a_workers_port_do_not_hold_it_up(self):
        """The test acts as both the tracker and rank 1. As the tracker, it makes rank 0 wait for one link."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            environment = {"DMLC_TRACKER_URI": "127.0.0.1", "DMLC_TRACKER_PORT": str(server.getsockname()[1])}
            with Ranks(environment, 1, "records") as ranks:
                connection, _ = server.accept()
                wire = Wire(connection)
                wire.send_int(wire.recv_int())
                wire.recv_int(), wire.recv_int(), wire.recv_str(), wire.recv_str()
                wire.send_int(0, -1, 2, 1, 1, 1, 1)  # rank 0 of 2; rank 1 is its only child and the rest of the ring
                self.assertEqual(wire.recv_int(), 0)
                wire.send_int(0, 1)
                self.assertEqual(wire.recv_int(), 0)
                port = wire.recv_int()
                connection.close()
                address = ("127.0.0.1", port)
                silent = [socket.create_connection(address) for _ in range(10)]
                wrong = socket.create_connection(address)
                wrong.sendall(struct.pack("@i", 7) + b"x" * 1000)  # rank 7 is not a neighbor
                peer = Wire(socket.create_connection(address, timeout=5))
                peer.send_int(1)
                self.assertEqual(peer.recv_int(), 0)
                peer.sock.sendall(peer.recv_exactly(8))  # rank 0's own hello, echoed
                peer.send_int(1, 1)
                peer.send_str("record of 1")
                self.assertEqual(peer.recv_int(), 2)
                for sock in (*silent, wrong, peer.sock):
                    sock.close()
                line = ranks.processes[0].stdout.readline()
                self.assertRegex(line, "joined 0 ")
                # The worker then prints and shuts down; the test's tracker accepts both.
                for command in ("print", "shutdown"):
                    connection, _ = server.accept()
                    wire = Wire(connection)
                    wire.send_int(wire.recv_int())
                    self.assertEqual((wire.recv_int(), wire.recv_int(), wire.recv_str(), wire.recv_str()),
                                     (0, 2, "0", command))
                    connection.close()
                self.assertEqual(ranks.outputs()[0].splitlines(), ["record of 0", "record of 1"])
                self.assertEqual(ranks.processes[0].returncode, 0)


if __name__ == "__main__":
    unittest.main()
