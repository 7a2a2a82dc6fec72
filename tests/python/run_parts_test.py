"""The parts of jobs that are started from Python: connections, rows in shared memory, replaced functions of other libraries."""
import contextlib
import functools
import io
import os
import socket
import subprocess
import sys
import threading
import types
import unittest
import warnings
from unittest import mock

import numpy as np

from job_case import InFolder, task, with_cloudpickle
from warren._engine import sealed
from warren._frameworks import replacing
from warren._frameworks.replacing import replaced
from warren._jobs import channel as channels
from warren._jobs import driver as drivers
from warren._jobs import fitting
from warren._jobs import job as jobs
from warren._jobs import rows as job_rows
from warren._jobs import state
from warren._jobs import worker
from warren.data._table import Table
from warren_testing import wait_for

#: The command of the workers that dmlc-submit starts.
WORKER = [sys.executable, "-c", "from warren._jobs import worker; worker.main()"]


class Peers(InFolder):
    """No process unpickles anything that comes from a process without the job's token."""

    def connected(self, port):
        connection = socket.create_connection(("127.0.0.1", port), 10)
        self.addCleanup(connection.close)
        return connection

    def test_strangers_get_nothing_and_disturb_nothing(self):
        call = {"function": b"secret", "path": []}
        driver = drivers.Driver(call, b"k" * 32, True, None, None)
        self.addCleanup(driver.close)
        for words in (b"GET / HTTP/1.0\r\n\r\n" * 10, bytes(32) + (1 << 40).to_bytes(8, "little"), b"x" * 100):
            with self.subTest(words=words[:20]), self.connected(driver.port) as stranger:
                found = b""
                with contextlib.suppress(ConnectionResetError):
                    stranger.sendall(words)
                    stranger.shutdown(socket.SHUT_WR)
                    while piece := stranger.recv(4096):
                        found += piece
                self.assertLessEqual(len(found), 32, "only the random number")
        with self.assertRaises((EOFError, OSError)):
            channels.Channel(self.connected(driver.port), b"o" * 32, False)
        self.assertEqual(driver.outcomes(), [])
        known = channels.Channel(self.connected(driver.port), b"k" * 32, False)
        known.send({"task": 0, "attempt": 0, "host": "h"})
        self.assertEqual(known.receive(), call)
        self.assertEqual([one.kind for one in driver.outcomes()], ["begun"])

    def test_a_driver_goes_on_when_connections_were_too_many(self):
        with mock.patch.object(drivers, "_MOST_UNPROVED", 2):
            driver = drivers.Driver({"function": b"", "path": []}, b"k" * 32, True, None, None)
            self.addCleanup(driver.close)
            silent = [self.connected(driver.port) for _ in range(2)]
            for one in silent:
                self.assertEqual(len(one.recv(64)), 32)
            self.assertEqual(self.connected(driver.port).recv(64), b"", "refused")
            for one in silent:
                one.close()
            wait_for(lambda: self.greets(driver.port), what="room for a process")

    def greets(self, port):
        try:
            return len(self.connected(port).recv(64)) == 32
        except ConnectionResetError:
            return False

    def test_a_message_cannot_be_replayed_or_left_out(self):
        ends = self.pair()
        made = []
        thread = threading.Thread(target=lambda: made.append(channels.Channel(ends[1], b"k" * 32, True)))
        thread.start()
        sender = channels.Channel(ends[0], b"k" * 32, False)
        thread.join()
        receiver = made[0]
        sender.send(1)
        self.assertEqual(receiver.receive(), 1)
        sender._sent -= 1  # repeats the bytes of the first message
        sender.send(1)
        with self.assertRaises(channels.Refused):
            receiver.receive()

    def pair(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            one = self.connected(server.getsockname()[1])
            other = server.accept()[0]
        self.addCleanup(other.close)
        return one, other

    def test_a_process_runs_nothing_for_a_driver_without_the_token(self):
        marker = self.folder / "ran"

        class Bomb:
            def __reduce__(self):
                return os.system, (f"touch {marker}", )

        with socket.create_server(("127.0.0.1", 0)) as server:
            environment = {**os.environ, worker.VARIABLE: f"127.0.0.1:{server.getsockname()[1]}", "DMLC_JOB_TOKEN": "ab" * 32}
            process = subprocess.Popen(WORKER, env=environment, stderr=subprocess.PIPE, text=True)
            connection, _ = server.accept()
            with connection:
                connection.sendall(bytes(32))
                message = sealed.seal(Bomb(), "warren job", 1, secret=b"o" * 32)
                connection.sendall(len(message).to_bytes(8, "little") + bytes(message))
                _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("cannot get its function from the program that started the job", error)
        self.assertIn("does not know the job's token", error)
        self.assertFalse(marker.exists())

    def test_without_a_driver_it_says_what_is_missing(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        for variables, said in (({}, "only warren.run and warren.start"), ({worker.VARIABLE: f"127.0.0.1:{port}"}, "one more port")):
            environment = {**os.environ, "DMLC_JOB_TOKEN": "ab" * 32, **variables}
            ended = subprocess.run(WORKER, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(said, ended.stderr)


@with_cloudpickle
class SharedRows(unittest.TestCase):
    def test_each_process_gets_its_share_of_the_rows_by_shared_memory_or_in_pieces(self):
        import scipy.sparse
        rng = np.random.default_rng(0)
        rows = 1000
        dense, qid = rng.random((rows, 5), np.float32), np.repeat(np.arange(40), 25)
        tables = [Table(dense, list("abcde"), None, dense[:, 0], None, qid, None, {}), Table(dense[:2], None, None, None, None, None, None, {}),
                  Table(scipy.sparse.random(rows, 7, 0.3, "csr", np.float32, 1), None, None, None, dense[:, 1], None, dense[:, :2], {}),
                  Table(np.empty((0, 3), np.float32), None, None, np.empty(0, np.float32), None, None, None, {})]

        def function(all_rows):
            return [one.share(task(), 3, worker.channel) for one in all_rows]

        for is_local in (True, False):
            served = job_rows.RowsForJob(is_local)
            with self.subTest(is_local=is_local), contextlib.closing(served), mock.patch.object(job_rows, "_PIECE_BYTES", 999):
                given = [served.add(job_rows.rows_of(table)) for table in tables]
                self.assertEqual([one.files is not None for one in given], [is_local] * len(tables))
                files = [path for one in given for path in (one.files or {}).values()]
                job = jobs.Job(function, (given, ), 3, {"port": 0}, is_shown=False, serve=served.serve)
                shares = job.result()
                for number, table in enumerate(tables):
                    parts = [share[number] for share in shares]
                    for name in ("label", "weight", "qid", "base_margin"):
                        expected = getattr(table, name)
                        found = [getattr(part, name) for part in parts]
                        if expected is None:
                            self.assertEqual(found, [None] * 3)
                        else:
                            np.testing.assert_array_equal(np.concatenate(found), expected)
                    whole = [part.features if isinstance(part.features, np.ndarray) else part.features.toarray() for part in parts]
                    expected = table.features if isinstance(table.features, np.ndarray) else table.features.toarray()
                    np.testing.assert_array_equal(np.concatenate(whole), expected)
                    self.assertEqual(parts[0].names, table.names)
                self.assertEqual([set(share[0].qid) & set(other[0].qid) for share, other in zip(shares, shares[1:])], [set(), set()])
            self.assertFalse(any(map(os.path.exists, files)))

    def test_too_few_rows_or_queries_are_noticed(self):
        with contextlib.closing(job_rows.RowsForJob(False)) as served:
            def given(rows, qid=None):
                return served.add(job_rows.rows_of(Table(np.ones((rows, 1), np.float32), None, None, None, None, qid, None, {})))

            found = [given(3).leaves_out_a_rank(world) for world in (1, 3, 4)]
            found += [given(4, np.array(qid)).leaves_out_a_rank(2) for qid in ([0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0])]
            self.assertEqual(found, [False, False, True, True, False, True])

    def test_without_room_in_memory_rows_come_in_pieces(self):
        with mock.patch.object(job_rows, "_fits", lambda _: False), contextlib.closing(job_rows.RowsForJob(True)) as served:
            self.assertIsNone(served.add(job_rows.rows_of(Table(np.ones((2, 2), np.float32), None, None, None, None, None, None, {}))).files)


#: Changed by the functions below.
_seen, _assigned = [], 0


def _sees(round_):
    global _assigned  # pylint: disable=global-statement
    _seen.append(round_)
    _assigned = round_ + 1


class _Log:
    """Has a lock, which it leaves out of its pickle."""

    def __init__(self):
        self.values, self.lock = [], threading.Lock()

    def __getstate__(self):
        return {"values": self.values}

    def __setstate__(self, found):
        self.__init__()
        self.values = found["values"]


class _Slots:
    __slots__ = ("count", "log")
    shared = []

    def __init__(self, log):
        self.count, self.log = 0, log

    def __call__(self, round_):
        self.count += 1
        self.log.values.append(round_)
        self.shared.append(round_)

    def also(self, round_):
        self.count += 1


@with_cloudpickle
class States(unittest.TestCase):
    """warren._jobs.state: what callbacks have changed in another process."""

    def after_a_job(self, callbacks):
        """Calls the callbacks in another process, and takes over their state; returns what the process has printed."""
        def function(given, changing):
            for round_ in range(3):
                for one in given:
                    one(round_)
            return state.contents(changing)

        changing = state.reachable(callbacks)
        job = jobs.Job(function, (callbacks, changing), 1, {"port": 0}, is_shown=False)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            state.take_over(changing, job.result()[0])
        return job.logs(0) + said.getvalue()

    def test_callers_see_what_callbacks_have_changed(self):
        appended, nested, count, by_name = [], {"a": {"b": []}}, 0, {"rounds": set()}
        inner, log, added = nested["a"]["b"], _Log(), []

        def closure(round_):
            nonlocal count
            count += 1
            appended.append(round_)
            inner.append(log)
            closure.last = round_

        slots = _Slots(log)
        own_log, lock = slots.log, log.lock
        self.assertEqual(self.after_a_job([closure, _sees, slots, slots.also, functools.partial(by_name["rounds"].__class__.add, by_name["rounds"]),
                                           functools.partial(lambda rows, round_: rows.append((nested, round_)), added)]), "")
        self.assertEqual((appended, count, closure.last, _seen, _assigned), ([0, 1, 2], 3, 2, [0, 1, 2], 3))
        self.assertEqual((slots.count, slots.shared, by_name), (6, [0, 1, 2], {"rounds": {0, 1, 2}}))
        self.assertTrue(slots.log is own_log is log and log.lock is not lock and log.values == [0, 1, 2])
        self.assertTrue(nested["a"]["b"] is inner and all(one is log for one in inner) and len(inner) == 3)
        self.assertTrue(all(one is nested for one, _ in added) and len(added) == 3)

    def test_a_state_that_cannot_be_sent_is_named_and_the_old_one_stays(self):
        kept = []

        def opening(round_):
            kept.append(open(os.devnull, "wb") if round_ else round_)  # pylint: disable=consider-using-with

        self.assertRegex(self.after_a_job([opening]), "^warren: callbacks and functions have run in the workers, and their state is not taken "
                         "over here: the new state cannot be sent .*\n$")
        self.assertEqual(kept, [])

    def test_what_a_caller_has_given_is_named_if_it_cannot_be_sent(self):
        fit = fitting.Fitting(types.SimpleNamespace(cluster=None, host_file=None, job_options=None, num_workers=1))
        for given, said in (({"callbacks": [print, _Slots(threading.Lock())]}, r"^callbacks\[1\], a _Slots, cannot be sent to other processes: "),
                            ({"eta": 1, "obj": threading.Lock().acquire}, "^objective cannot be sent"), ({}, "^the function len cannot be sent")):
            with self.subTest(given=given), self.assertRaisesRegex(TypeError, said):
                fit.run(len, [threading.Lock()], given)


class Replacements(unittest.TestCase):
    """warren._frameworks.replacing, which lets estimators in several threads each train their own model."""

    def test_threads_without_a_replacement_call_the_one_for_them_and_are_warned_once(self):
        owner = types.SimpleNamespace(function=lambda number: number)
        original, seen = owner.function, []

        def elsewhere():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                seen.append([owner.function(number) for number in (0, 1, 2)])
                seen.append([str(one.message) for one in said])

        def in_thread():
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()

        warner = replacing.warns_once(lambda number: number > 0, lambda: "alone")
        with replaced("function", lambda inner: lambda number: -inner(number), owner, elsewhere=warner):
            in_thread()
            self.assertEqual(owner.function(1), -1)
            with replaced("function", lambda inner: lambda number: inner(number) - 1, owner):
                self.assertEqual(owner.function(1), -2)
                in_thread()
        self.assertIs(owner.function, original)
        self.assertEqual(seen, [[0, 1, 2], ["alone"], [0, 1, 2], []])

    def test_threads_replace_and_restore_a_function_in_any_order(self):
        owner = types.SimpleNamespace(function=lambda: "original")
        original = owner.function
        barriers = {name: threading.Event() for name in ("first is in", "second is in", "first is out")}
        seen = {}

        def first():
            with replaced("function", lambda inner: lambda: f"first of {inner()}", owner):
                barriers["first is in"].set()
                barriers["second is in"].wait(30)
                seen["first"] = owner.function()
            barriers["first is out"].set()

        def second():
            barriers["first is in"].wait(30)
            with replaced("function", lambda inner: lambda: f"second of {inner()}", owner):
                barriers["second is in"].set()
                barriers["first is out"].wait(30)
                with replaced("function", lambda inner: lambda: f"third of {inner()}", owner):
                    seen["third"] = owner.function()
                seen["second"] = owner.function()

        threads = [threading.Thread(target=first), threading.Thread(target=second)]
        for thread in threads:
            thread.start()
        barriers["second is in"].wait(30)
        self.assertEqual(owner.function(), "original", "another thread's")
        for thread in threads:
            thread.join(30)
        self.assertEqual(seen, {"first": "first of original", "third": "third of second of original", "second": "second of original"})
        self.assertIs(owner.function, original)

    def test_what_somebody_else_has_put_there_stays(self):
        owner = types.SimpleNamespace(function=lambda: "original")
        with replaced("function", lambda _: lambda: "ours", owner):
            owner.function = lambda: "theirs"
            with replaced("function", lambda inner: lambda: f"ours of {inner()}", owner):
                self.assertEqual(owner.function(), "ours of theirs")
        self.assertEqual(owner.function(), "theirs")


if __name__ == "__main__":
    unittest.main()
