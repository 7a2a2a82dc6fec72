"""warren.parameter_server: the decisions of servers, tested in isolation, and jobs whose ranks send and receive in any order."""
import os
import re
import unittest

import numpy as np

from collectives_jobs import BOTH_WAYS, PYTHON, JobTest, submit
from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

from warren._parameter_server import shards as _shards  # pylint: disable=wrong-import-position
from warren._parameter_server.shards import Part, Request, RoundShard, RuleShard, UpdateShard  # pylint: disable=wrong-import-position

SOON_S = 10.0  # limit for survivors to notice a death on a busy machine


class Sharding(unittest.TestCase):
    def test_elements_are_spread_in_order_and_none_is_left_out(self):
        for count in (0, 1, 2, 3, 7, 8, 1000):
            for size in (1, 2, 3, 8):
                parts = _shards.spread(count, range(size))
                ends = [0] + [part.end for part in parts]
                self.assertEqual([part.begin for part in parts], ends[:-1])
                self.assertEqual(ends[-1], count)
                lengths = [part.end - part.begin for part in parts]
                self.assertEqual(lengths, sorted(lengths, reverse=True))
                self.assertLessEqual(max(lengths, default=0) - min(lengths, default=0), 1)
        self.assertEqual(_shards.spread(5, [4, 2]), [Part(4, 0, 3), Part(2, 3, 5)])

    def test_a_small_key_is_on_one_rank_and_a_large_one_on_all(self):
        places = [_shards.place(key, 10, range(4), 100) for key in range(100)]
        self.assertTrue(all(len(parts) == 1 and parts[0][1:] == (0, 10) for parts in places))
        self.assertEqual({parts[0].rank for parts in places}, set(range(4)))
        self.assertEqual(places[7], _shards.place("7", 10, range(4), 100))
        self.assertEqual(len(_shards.place("weight", 100, range(4), 100)), 4)


class Rules(unittest.TestCase):
    def test_a_send_is_applied_by_its_rule_and_answered(self):
        shard = RuleShard(np.arange(3.0), rank=0)
        for number, (rule, expected) in enumerate((("add", [1, 2, 3]), ("copy", [1, 1, 1]), ("zero", [0, 0, 0]))):
            request = Request(1, number)
            self.assertEqual(shard.send(request, np.ones(3), rule), [(request, None, None)])
            self.assertEqual(shard.values.tolist(), expected)
        (request, values, error), = shard.receive(Request(2, 0))
        self.assertEqual((request, values.tolist(), error), (Request(2, 0), [0, 0, 0], None))
        self.assertIsNot(values, shard.values)

    def test_a_rule_that_fails_is_told_by_name_and_the_shard_goes_on(self):
        def fails(_, incoming):
            raise KeyError(len(incoming))

        _shards.register_rule("fails", fails)
        shard = RuleShard(np.zeros(3), rank=5)
        (_, _, error), = shard.send(Request(1, 0), np.ones(3), "fails")
        self.assertEqual(error, "rank 5: the rule 'fails' failed for a send from rank 1: KeyError: 3")
        (_, _, error), = shard.send(Request(1, 1), np.ones(3), "unknown")
        self.assertRegex(error, "rank 5 has no rule 'unknown', only add, copy, .*; call register_rule on all ranks")
        self.assertEqual(shard.send(Request(1, 2), np.ones(3), "add"), [(Request(1, 2), None, None)])

    def test_names_of_rules_are_checked_and_given_once(self):
        for name in ("", "x" * 65, "a\0", 3):
            with self.assertRaisesRegex(ValueError, "the name of a rule"):
                _shards.register_rule(name, print)
        with self.assertRaisesRegex(TypeError, "the rule 'none' must be a function"):
            _shards.register_rule("none", None)
        with self.assertRaisesRegex(ValueError, "there is a rule 'add' already"):
            _shards.register_rule("add", print)


class Rounds(unittest.TestCase):
    def store(self, values, incoming):
        values[:] = incoming
        self.updates = getattr(self, "updates", 0) + 1

    def answered(self, replies):
        return {reply.request: None if reply.values is None else reply.values.tolist() for reply in replies}

    def test_a_round_is_applied_once_when_all_workers_have_pushed(self):
        shard = RoundShard(np.zeros(2), "key 'w'", self.store, 3)
        incoming = np.ones(2)
        self.assertEqual(shard.send(Request(2, 0), incoming, ""), [])
        incoming[:] = 7  # the caller may reuse its buffer
        self.assertEqual(shard.send(Request(0, 0), np.full(2, 10.0), ""), [])
        replies = shard.send(Request(1, 0), np.full(2, 100.0), "")
        self.assertEqual(self.answered(replies), {Request(0, 0): None, Request(1, 0): None, Request(2, 0): None})
        self.assertEqual((shard.values.tolist(), self.updates), ([111, 111], 1))

    def test_a_pull_waits_for_the_rounds_of_its_own_pushes_alone(self):
        shard = RoundShard(np.zeros(1), "key 'w'", self.store, 2)
        self.assertEqual(self.answered(shard.receive(Request(0, 0))), {Request(0, 0): [0]})
        for number in (1, 2):  # rank 0 is two rounds ahead
            self.assertEqual(shard.send(Request(0, number), np.full(1, float(number)), ""), [])
        self.assertEqual(shard.receive(Request(0, 3)), [])
        self.assertEqual(self.answered(shard.receive(Request(1, 0))), {Request(1, 0): [0]})
        self.assertEqual(self.answered(shard.send(Request(1, 1), np.full(1, 10.0), "")),
                         {Request(0, 1): None, Request(1, 1): None})
        self.assertEqual(self.answered(shard.receive(Request(1, 2))), {Request(1, 2): [11]})
        self.assertEqual(self.answered(shard.send(Request(1, 3), np.full(1, 20.0), "")),
                         {Request(0, 2): None, Request(1, 3): None, Request(0, 3): [22]})

    def test_the_order_of_arrival_does_not_change_the_bits_of_a_sum(self):
        pushed = np.random.default_rng(0).standard_normal((4, 1000)).astype(np.float32)
        sums = []
        for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)):
            shard = RoundShard(np.zeros(1000, np.float32), "key", self.store, 4)
            for client in order:
                shard.send(Request(client, 0), pushed[client], "")
            sums.append(shard.values.tobytes())
        self.assertEqual(len(set(sums)), 1)

    def test_an_updater_that_fails_is_told_to_all_of_the_round(self):
        def fails(_values, _incoming):
            raise ValueError("too large")

        shard = RoundShard(np.zeros(1), "rank 0: the updater of key 'w' failed", fails, 2)
        shard.send(Request(0, 0), np.ones(1), "")
        errors = {reply.request.client: reply.error for reply in shard.send(Request(1, 0), np.ones(1), "")}
        self.assertEqual(errors, dict.fromkeys((0, 1), "rank 0: the updater of key 'w' failed: ValueError: too large"))
        self.assertEqual(UpdateShard(np.zeros(1), "key", fails).send(Request(0, 0), np.ones(1), "")[0].error,
                         "key: ValueError: too large")


HEAD = """
import random, threading
from warren.parameter_server import ParameterServer, register_rule
me, size = world.rank, world.size
"""


KILLED = """
import os, signal, time
import numpy as np
from warren import collectives
from warren.parameter_server import ParameterServer
collectives.init([])
world = collectives.world()
server = ParameterServer(np.zeros(100_000), servers=2)
try:
    for step in range(1_000_000):
        server.send((np.arange(100_000) == world.rank).astype(float)).wait()
        values = server.receive().wait()
        if world.rank == 1 and step >= 20 and values[[0, 2]].all():  # the others are under way
            print(f"killed at {time.time()}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
except RuntimeError as error:
    print(f"knows at {time.time()}: {error}", flush=True)
try:
    server.receive().wait()
except RuntimeError as error:
    print(f"knows again: {error}", flush=True)
"""


class Jobs(JobTest):
    HEAD = HEAD

    def test_a_send_that_was_waited_for_is_seen_by_all(self):
        code = """
            for count in (0, 1, 2, 1000, 300_000):
                for servers in (None, 1, size):
                    with ParameterServer(np.zeros((count, 3), "float32"), servers=servers) as server:
                        server.send(np.full((count, 3), me + 1, "float32")).wait()
                        world.barrier()
                        got = server.receive().wait()
                        assert got.shape == (count, 3) and (got == size * (size + 1) // 2).all(), got
                        out = np.empty((count, 3), "float32")
                        assert server.receive(out).wait() is out and (out == got).all()
                        world.barrier()
                        if me == size - 1:
                            server.send(np.full((count, 3), 2, "float32"), "copy", scale=0.25).wait()
                        world.barrier()
                        assert (server.receive().wait() == 0.5).all()
                        world.barrier()
                        if me == 0:
                            server.send(None, "zero").wait()
                            assert (server.receive().wait() == 0).all()
            assert threading.active_count() == 1, threading.enumerate()
            """
        for workers, env in ((1, {}), (3, {}), (4, {"WARREN_SHARED_MEMORY": "off"})):
            self.expect(workers, code, **env)

    def test_at_first_each_server_has_its_part_of_its_own_array_or_of_the_roots(self):
        self.expect(3, """
            mine = np.arange(7) + 100 * me
            with ParameterServer(mine) as own, ParameterServer(mine, root=1) as of_1, \\
                    ParameterServer(mine, servers=2, root=2) as of_2:
                mine[:] = -1  # it was copied
                assert own.receive().wait().tolist() == [0, 1, 2, 103, 104, 205, 206]
                assert of_1.receive().wait().tolist() == list(range(100, 107))
                assert of_2.receive().wait().tolist() == list(range(200, 207))
                assert sum(thread.name == "warren parameter server" for thread in threading.enumerate()) == 1
            """)

    def test_all_send_and_receive_at_random_and_nothing_is_lost(self):
        """Two threads per rank add integers to the arrays of several parameter servers concurrently, with messages of all lengths. No read
        sees half of a send."""
        for env in BOTH_WAYS:
            self.expect(3, """
                counts = (1, 5, 1000, 70_000, 400_000)
                servers = [ParameterServer(np.zeros(count, np.int64), servers=1 + i % size) for i, count in enumerate(counts)]
                totals = [[0] * len(counts) for _ in range(2)]

                def program(which):
                    choose, handles = random.Random(me * 10 + which), []
                    for _ in range(60):
                        i = choose.randrange(len(counts))
                        if choose.random() < 0.6:
                            value, scale = choose.randrange(100), choose.randrange(1, 4)
                            totals[which][i] += value * scale
                            handles.append(servers[i].send(np.full(counts[i], value), scale=scale))
                        else:
                            handles.append(servers[i].receive())
                        if choose.random() < 0.2:
                            handles.pop(choose.randrange(len(handles))).wait()
                    for handle in handles:
                        got = handle.wait()
                        if got is not None:
                            for part in servers[counts.index(got.size)]._array._parts:
                                assert (got[part.begin:part.end] == got[part.begin]).all(), "half a send was seen"

                threads = [threading.Thread(target=program, args=(which,)) for which in range(2)]
                failed = []
                threading.excepthook = lambda arguments: failed.append(arguments.exc_value)
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert not failed, failed
                expected = world.allreduce(np.array(totals).sum(0))
                world.barrier()
                for server, total in zip(servers, expected):
                    assert (server.receive().wait() == total).all(), (total, server.receive().wait())
                for server in servers:
                    server.free()
                """, **env)

    def test_the_order_of_one_ranks_sends_and_receives_is_kept(self):
        for env in BOTH_WAYS:
            self.expect(2, """
                with ParameterServer(np.zeros(200_000), root=0) as server:
                    if me == 1:
                        values = [np.full(200_000, float(value)) for value in range(20)]
                        seen = []
                        for value in values:
                            server.send(value, "copy")
                            seen.append(server.receive())
                        for value, handle in enumerate(seen):
                            assert (handle.wait() == value).all(), (value, handle.wait())
                            assert handle.done()
                """, **env)

    def test_rules_of_the_users_and_their_errors(self):
        self.expect(3, """
            register_rule("maximum", lambda shard, incoming: np.maximum(shard, incoming, out=shard))

            def moody(shard, incoming):
                if me == 1:
                    raise KeyError("moody today")
                shard[:] = incoming
            register_rule("moody", moody)
            with ParameterServer(np.zeros(30), root=0) as server:
                server.send(np.arange(30.0) * me, "maximum").wait()
                world.barrier()
                assert (server.receive().wait() == np.arange(30.0) * (size - 1)).all()
                world.barrier()
                refuses(RuntimeError, f"^rank 1: the rule 'moody' failed for a send from rank {me}: KeyError: 'moody today'$",
                        server.send(np.ones(30), "moody").wait)
                server.send(np.ones(30), "copy").wait()
                assert (server.receive().wait() == 1).all()
                world.barrier()
                if me == 2:
                    register_rule("known to one", lambda shard, incoming: None)
                    refuses(RuntimeError, "rank 0 has no rule 'known to one'.*call register_rule on all ranks",
                            server.send(np.ones(30), "known to one").wait)
            """)

    def test_an_error_that_nobody_waited_for_is_raised_by_free(self):
        self.expect(2, """
            def fails(shard, incoming):
                raise ValueError("it fails")
            register_rule("fails", fails)
            server = ParameterServer(np.zeros(2), servers=1)
            if me == 1:
                server.send(np.ones(2), "fails")
                refuses(RuntimeError, "it fails", server.free)
            else:
                server.free()
            refuses(ValueError, "this parameter server was freed", server.receive)
            refuses(ValueError, "this parameter server was freed", server.send, np.ones(2))
            """)

    def test_what_makes_no_sense_is_refused_at_once_and_ends_nothing(self):
        self.expect(2, """
            refuses(TypeError, "NumPy array of numbers, not list", ParameterServer, [1, 2])
            refuses(TypeError, "NumPy array of numbers, not an array of object", ParameterServer, np.array([{}]))
            refuses(ValueError, "3 servers of 2 ranks", ParameterServer, np.ones(1), servers=3)
            refuses(ValueError, "root 2 is not one of the 2 ranks", ParameterServer, np.ones(1), root=2)
            refuses(ValueError, "rank 0 has .*3.*, and rank 1 .*4.*; all ranks must give the same", ParameterServer, np.ones(3 + me))
            with ParameterServer(np.zeros((2, 3), "float32")) as server, ParameterServer(np.zeros(3, "uint8")) as whole:
                refuses(ValueError, r"holds an array of \\(2, 3\\), not of \\(3, 2\\)", server.send, np.ones((3, 2), "float32"))
                refuses(TypeError, "holds float32, not float64", server.send, np.ones((2, 3)))
                refuses(TypeError, "not list", server.send, [[1, 2, 3]] * 2)
                refuses(TypeError, "the rule 'add' takes an array, not None", server.send, None)
                refuses(ValueError, "has no rule 'ad'", server.send, np.ones((2, 3), "float32"), "ad")
                refuses(ValueError, "contiguous", server.receive, np.ones((3, 2), "float32").T)
                refuses(TypeError, "holds float32, not int64", server.receive, np.ones((2, 3), int))
                refuses(ValueError, "a scale of 0.5 for elements of uint8", whole.send, np.ones(3, "uint8"), scale=0.5)
                refuses(ValueError, "expected at least 0", whole.send, np.ones(3, "uint8"), scale=-1)
                server.send(np.ones((3, 2), "float32").T).wait()  # a copy
                world.barrier()
                assert (server.receive().wait() == size).all()
            """)

    def test_servers_of_a_part_of_the_ranks_and_of_several_communicators(self):
        self.expect(4, """
            half = world.split(me % 2)
            with ParameterServer(np.zeros(10), half) as own, ParameterServer(np.zeros(10)) as of_all:
                own.send(np.full(10, me + 1.0)).wait()
                of_all.send(np.full(10, me + 1.0)).wait()
                world.barrier()
                assert (own.receive().wait() == (4 if me % 2 == 0 else 6)).all()
                assert (of_all.receive().wait() == 10).all()
            """)

    def test_a_rank_that_is_killed_is_named_to_those_who_wait(self):
        for env in BOTH_WAYS:
            # The shell outlives the killed worker, so dmlc-submit does not end the others.
            _, said = submit(3, "/bin/sh", "-c", '"$@"; true', "sh", PYTHON, "-c", KILLED, env=env)
            killed = float(re.search(r"killed at ([\d.]+)", said)[1])
            known = re.findall(r"knows at ([\d.]+): (.*)", said)
            self.assertEqual(len(known), 2, said)
            for when, text in known + [("0", text) for text in re.findall("knows again: (.*)", said)]:
                self.assertIn("rank 1", text)
                self.assertLess(float(when) - killed, SOON_S)
            self.assertEqual(said.count("knows again"), 2, said)

    def test_an_idle_server_is_no_rank_that_waits(self):
        said = self.expect(2, """
            with ParameterServer(np.zeros(10)) as server:
                before = time.process_time()
                time.sleep(2)
                assert time.process_time() - before < 1, "an idle server does not sleep"
                server.send(np.ones(10)).wait()
            """, WARREN_STALL_SECONDS="1", rabit_timeout="1", rabit_timeout_sec="1")
        self.assertNotIn("has waited", said)

    def test_a_job_may_end_without_freeing_its_servers(self):
        self.expect(3, """
            server = ParameterServer(np.zeros(10))
            server.send(np.ones(10)).wait()
            """)

    def test_what_cannot_be_added_up_is_refused_and_a_rule_that_exits_is_the_senders_error(self):
        self.expect(2, """
            for array in (np.array(["a", "b"]), np.zeros(2, "m8[s]"), np.zeros(2, "M8[s]")):
                refuses(TypeError, "holds numbers", ParameterServer, array, world)
            register_rule("exits", lambda shard, incoming: sys.exit("by the rule"))
            with ParameterServer(np.zeros(4), world, root=0) as server:
                refuses(RuntimeError, "by the rule", server.send(np.ones(4), "exits").wait)
                server.send(np.ones(4)).wait()
                world.barrier()
                assert server.receive().wait().tolist() == [2.0] * 4
                world.barrier()
            """)


if __name__ == "__main__":
    unittest.main()
