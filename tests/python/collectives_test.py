"""warren.collectives: every call, in one process and in jobs; errors; a rank that dies."""
import os
import pathlib
import re
import subprocess
import tempfile
import textwrap
import unittest

from collectives_jobs import BOTH_WAYS, ENVIRONMENT, LIMIT_S, PYTHON, JobTest, run, submit
from warren_testing import BIN, SOURCE

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

EVERY_CALL = """
    me, size = world.rank, world.size
    total = size * (size + 1) // 2
    for name in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"):
        same(world.allreduce(np.full((2, 3), me + 1, name)), np.full((2, 3), total, name))
    same(world.allreduce(me + 1.0), float(total))
    same(world.allreduce(np.full(3, me + 1.0)[::2]), [total] * 2)
    in_place = np.full(3, me + 1, "int32")
    assert world.allreduce(in_place, Op.PROD, out=in_place) is in_place
    same(in_place, [np.prod(np.arange(1, size + 1))] * 3)
    same(world.allreduce(np.array([me]), Op.MAX), [size - 1])
    same(world.allreduce(np.full(2, me, "float32"), Op.AVG), np.full(2, (size - 1) / 2, "float32"))
    same(world.allreduce(np.array([60000], "float16"), Op.AVG), np.array([60000], "float16"))
    same(world.allreduce(np.array([me, 7]), lambda lower, higher: lower), [0, 7])
    same(world.allreduce(np.array([me, 7]), lambda lower, higher: higher), [size - 1, 7])

    got = world.reduce(np.array([me, 1.0]), root=size - 1)
    if me == size - 1:
        same(got, [total - size, size])
    else:
        assert got is None

    rows = np.arange(size * 2 * 3).reshape(size * 2, 3)
    same(world.reduce_scatter(rows), rows[2 * me:2 * me + 2] * size)
    counts = list(range(size))
    ragged = np.arange(sum(counts) * 2, dtype="float32").reshape(-1, 2)
    begin = sum(counts[:me])
    same(world.reduce_scatter(ragged, Op.SUM, counts), ragged[begin:begin + me] * size)
    same(world.reduce_scatter(ragged, np.maximum, counts), ragged[begin:begin + me])

    same(world.broadcast(np.full((2, 2), me), root=size - 1), np.full((2, 2), size - 1))
    same(world.allgather(np.array([[me, -me]])), [[i, -i] for i in range(size)])
    same(world.allgather(me), np.arange(size))
    same(world.allgather(np.full(me, me), counts), np.repeat(np.arange(size), counts))
    same(world.allgather(np.array(["rank %d" % me])), ["rank %d" % i for i in range(size)])
    got = world.gather(np.full(me, me), 0, counts if me == 0 else None)
    if me == 0:
        same(got, np.repeat(np.arange(size), counts))
    same(world.scatter(np.arange(2 * size) if me == 0 else None, 0, np.zeros(2, int)), [2 * me, 2 * me + 1])
    same(world.scatter(np.repeat(np.arange(size), counts) if me == 0 else None, 0, np.zeros(me, int),
                       counts if me == 0 else None), [me] * me)
    same(world.all_to_all(np.arange(size) + 10 * me), np.arange(size) * 10 + me)
    same(world.all_to_all(np.repeat(np.arange(size), counts), counts, [me] * size), [me] * me * size)
    world.barrier()

    if size > 1:
        following, before = (me + 1) % size, (me - 1) % size
        same(world.sendrecv(np.array([me]), following, np.zeros(1, int), before), [before])
        if me == 0:
            world.send(np.arange(100000.0), 1)
        elif me == 1:
            same(world.recv(np.zeros(100000), 0), np.arange(100000.0))

    half = world.split(me % 2, -me)
    assert half.size == (size + 1 - me % 2) // 2 and half.rank_in_world(half.size - 1) == me % 2, half
    same(half.allreduce(np.array([me])), [sum(range(me % 2, size, 2))])
    none = world.split(-1)
    assert not none and none.size == 0
    some = world.create([size - 1] if size < 3 else [size - 1, 0])
    assert bool(some) == (me == size - 1 or (size >= 3 and me == 0))
    if some:
        same(some.allgather(me), [size - 1] if size < 3 else [size - 1, 0])
    host, across = world.local(), world.cross()
    same([host.size, across.size], [size, 1])
"""


class EveryCall(JobTest):
    def all_right(self, workers, code, **env):
        """Runs `code` on this many workers, all of which must come to its end."""
        output = self.expect(workers, textwrap.dedent(code) + '\nprint("all right")', **env)
        self.assertEqual(output.count("all right"), workers, output)
        return output

    def test_gives_what_numpy_gives_with_every_number_of_ranks(self):
        for workers in (1, 2, 3, 5):
            for env in BOTH_WAYS:
                with self.subTest(workers=workers, env=env):
                    self.all_right(workers, EVERY_CALL, **env)

    def test_a_large_reduce_scatter_has_the_bits_of_an_allreduce(self):
        # The array is larger than the pieces in which it is processed; the ranks' slices end within a piece or are empty.
        for workers, env in ((2, {}), (3, {}), (3, {"WARREN_SHARED_MEMORY": "off"})):
            self.expect(workers, """
                me, size = world.rank, world.size
                random = np.random.default_rng(me)
                counts = [1_700_003, 400_001, 0][:size] if size > 2 else [1_900_003, 400_001]
                begin = sum(counts[:me])
                for dtype, op in ((np.float32, Op.SUM), (np.float32, Op.AVG), (np.float16, Op.AVG), (np.int32, Op.MAX)):
                    data = (random.normal(size=sum(counts)) * 1000).astype(dtype)
                    expected = world.allreduce(data, op)[begin:begin + counts[me]]
                    kept = data.copy()
                    got = world.reduce_scatter(data, op, counts)
                    assert got.tobytes() == expected.tobytes() and data.tobytes() == kept.tobytes(), (dtype, op)
                    # In place: the result replaces this rank's slice of the input.
                    own = data[begin:begin + counts[me]]
                    world.reduce_scatter(data, op, counts, out=own)
                    assert own.tobytes() == expected.tobytes(), (dtype, op)
                equal = (random.normal(size=(3 * size, 500_000))).astype(np.float32)
                assert world.reduce_scatter(equal).tobytes() == world.allreduce(equal)[3 * me:3 * me + 3].tobytes()
                """, **env)

    def test_a_large_reduce_scatter_of_other_sizes_is_told_to_all_in_that_call(self):
        for other in ("np.zeros(2 << 20, np.float32)", "np.zeros(100, np.float32)"):
            _, output = run(2, f"""
                data = np.zeros(4 << 20, np.float32) if world.rank == 0 else {other}
                print("told:", refuses(RuntimeError, "", world.reduce_scatter, data))
                until_all_have_spoken()
                os._exit(0)
                """)
            self.assertEqual(output.count("told:"), 2, output)

    def test_alone_there_is_one_rank(self):
        done = subprocess.run(
            [PYTHON, "-c", "from warren import collectives\nwith collectives.context([]) as world:\n"
             "    print(world.size, world.allreduce(3.0), world.split(0))"], capture_output=True, text=True, timeout=LIMIT_S,
            check=False, env=ENVIRONMENT)
        self.assertEqual(done.stdout.strip(), "1 3.0 <warren communicator, rank 0 of 1>", done.stderr)

    def test_what_makes_no_sense_is_refused_and_ends_nothing(self):
        self.all_right(2, """
            def refused(call, pattern):
                refuses((TypeError, ValueError, RuntimeError), pattern, call)

            refused(lambda: world.allreduce(np.zeros(2, "complex64")), "allreduce takes arrays of int8")
            refused(lambda: world.allreduce(np.zeros(2), Op.BITOR), "BITOR takes integers, not float64")
            refused(lambda: world.allreduce(np.zeros(2, int), Op.AVG), "AVG takes floating point, not int64")
            refused(lambda: world.allreduce(np.zeros(2, int), 9), "9 is not an operation")
            refused(lambda: world.allreduce(np.zeros(2), out=np.zeros(3)), "needs a contiguous, writable array of")
            refused(lambda: world.broadcast(np.zeros(2), 2), "root 2 is not a rank; ranks are 0 to 1")
            refused(lambda: world.reduce_scatter(np.zeros(3)), "3 rows cannot be divided equally among 2 ranks; give counts")
            refused(lambda: world.allgather(np.zeros(3), [3]), "needs 2 counts of rows")
            refused(lambda: world.allgather(np.array([None])), "takes arrays of numbers, not of object")
            refused(lambda: world.send(np.zeros(1), 5), "5 is not a rank; ranks are 0 to 1")
            refused(lambda: world.create([0, 0]), "contains 0, which is not a rank or is listed twice")
            refused(lambda: world.create([world.rank]), "ranks 0 and 1 of this communicator gave different lists")
            objects = np.empty(3, object)
            refused(lambda: world.recv(objects, 1 - world.rank), "takes arrays of numbers, not of object")
            refused(lambda: world.broadcast(objects, 1 - world.rank), "takes arrays of numbers, not of object")
            refused(lambda: world.split(2**32), "color 4294967296 does not fit into 32 bits")
            refused(lambda: world.broadcast(np.zeros(1), 2**32), "root 4294967296 does not fit into 32 bits")
            refused(lambda: world.gather(np.zeros(2), world.rank, [3, 3]), "own slice has 16 bytes, but its count says 24")
            refused(lambda: world.all_to_all(np.zeros(4), [2, 2], [3, 3]), "own slice has 16 bytes, but its count says 24")
            refused(lambda: world.broadcast_async(np.zeros(2), 77), "root 77 is not a rank")
            refused(lambda: world.send_async(np.zeros(2), 77), "77 is not a rank")
            refused(lambda: world.barrier_async(name="meeting", timeout=-1), "WarrenBarrierAsync 'meeting': a timeout of -1 s")
            refused(lambda: world.barrier_async(timeout=float("nan")), "WarrenBarrierAsync: a timeout of nan s")
            refused(lambda: world.barrier_async(name="a\\0b"), "contains a null character")
            refused(lambda: world.barrier_async(name=7), "the name of an operation must be a str, not int")
            refused(lambda: world.barrier_async(timeout="soon"), "")
            refused(lambda: world.split(-1).reduce_scatter(np.zeros(2)), "this is not a communicator, or it was freed")
            freed = world.split(0)
            freed.free()
            refused(freed.barrier, "WarrenBarrier: the communicator is null")
            assert world.allreduce(1.0) == 2.0
        """)

    def test_an_exception_in_an_operation_of_the_users_arrives(self):
        self.all_right(1, "world.allreduce(np.zeros(2), lambda low, high: 1 / 0)")  # with one rank, nothing is combined
        _, output = run(2, """
            try:
                world.allreduce(np.zeros(2), lambda low, high: 1 / 0)
            except ZeroDivisionError:
                print("all right")
        """)
        self.assertEqual(len(re.findall(r"^\[\d\] all right", output, re.MULTILINE)), 2, output)

    def test_an_operation_that_fails_on_one_rank_is_an_error_on_all(self):
        for count in (2, 60000):
            code, output = run(3, f"""
                def add(lower, higher):
                    if world.rank == 1:
                        raise ValueError("no")
                    return lower + higher
                try:
                    print("result", *set(world.allreduce(np.full({count}, world.rank + 1.0), add)))
                except (ValueError, RuntimeError) as error:
                    print("told:", type(error).__name__, flush=True)
                    until_all_have_spoken()
            """)
            # With 2 elements, a rank that received everything it needs before rank 1 failed may return a result, not an error.
            self.assertLessEqual(set(re.findall(r"result (.*)", output)), {"6.0"}, output)
            self.assertRegex(output, r"\[1\] told: ValueError")
            self.assertNotEqual(code, 0, output)
            if count == 60000:
                self.assertEqual(len(re.findall(r"^\[[02]\] told: RuntimeError", output, re.MULTILINE)), 2, output)

    def test_a_rank_that_fails_with_a_call_under_way_ends(self):
        code, output = run(2, """
            x = np.zeros(3)
            if world.rank == 1:
                handle = world.recv_async(x, 0)
                raise ValueError("my own")
            world.recv(x, 1)
        """)
        self.assertNotEqual(code, 0)
        self.assertIn("ValueError: my own", output)

    def test_a_fork_that_ends_leaves_its_parents_communicators_alone(self):
        self.all_right(3, """
            import os, sys
            group = world.split(0)
            pending = group.allreduce_async(np.ones(1000))
            child = os.fork()
            if child == 0:
                try:
                    pending.wait()
                except RuntimeError as error:
                    assert "before it forked" in str(error), error
                    group.free()
                    sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert pending.wait()[0] == 3
            assert group.allreduce(1) == 3
        """)

    def test_prints_and_questions_may_come_while_a_call_is_under_way(self):
        self.all_right(2, """
            from warren import rabit
            for i in range(300):
                handle = world.allreduce_async(np.ones(2000))
                assert world.rank_in_world(1) == 1
                if i % 100 == 0:
                    rabit.tracker_print("hello\\n")
                assert handle.wait()[0] == 2
        """)

    def test_freed_communicators_leave_no_threads_behind(self):
        self.all_right(2, """
            import os, time
            def threads():
                return len(os.listdir("/proc/self/task"))
            before = threads()
            for _ in range(100):
                group = world.split(0)
                group.allreduce_async(1).wait()
                group.free()
            for _ in range(1000):
                if threads() <= before + 1:
                    break
                time.sleep(0.01)
            assert threads() <= before + 1, (before, threads())
        """)

    def test_where_there_can_be_no_thread_who_waits_does_the_work(self):
        self.all_right(2, """
            import signal, threading
            from warren._engine.c_api import LIB
            import resource
            limits = resource.getrlimit(resource.RLIMIT_NPROC)
            import os
            if os.geteuid() == 0:
                os.setuid(65534)  # root has no such limit
            resource.setrlimit(resource.RLIMIT_NPROC, (1, limits[1]))
            group = world.split(0)
            handles = [group.allreduce_async(np.full(100, i)) for i in range(10)]
            while not handles[-1].done():
                pass
            assert [handle.wait()[0] for handle in handles] == [2 * i for i in range(10)]
            assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        """)

    def test_slices_of_other_lengths_that_join_to_the_same_are_told(self):
        for env in BOTH_WAYS:
            _, output = run(2, """
                counts = [1, 2] if world.rank == 0 else [2, 1]
                try:
                    world.allgather(np.zeros(counts[world.rank]), counts)
                except RuntimeError as error:
                    print("told:", error)
            """, env=env)
            self.assertRegex(output, r"told: .*lengths of slices")

    def test_communicators_can_be_used_by_several_threads_at_once(self):
        self.all_right(3, """
            import threading
            groups = [world.split(0), world.split(0, -world.rank), world.split(world.rank // 2)]
            results = {}
            def use(index):
                for i in range(200):
                    results[index] = groups[index].allreduce(np.full(i + 1, 1.0))[0]
            threads = [threading.Thread(target=use, args=(index,)) for index in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert results == {0: 3, 1: 3, 2: groups[2].size}, results
        """)

    def test_every_call_can_be_waited_for_later(self):
        self.all_right(3, """
            me, size = world.rank, world.size
            how = {"name": "a call", "timeout": 60}
            following, before = (me + 1) % size, (me - 1) % size
            calls = [
                (world.allreduce_async(np.full(50000, me), **how), np.full(50000, 3)),
                (world.reduce_async(np.array([me]), 0, **how), [3]),
                (world.reduce_scatter_async(np.arange(6), **how), np.arange(6)[2 * me:2 * me + 2] * 3),
                (world.broadcast_async(np.array([me]), 2, **how), [2]),
                (world.allgather_async(me, **how), [0, 1, 2]),
                (world.gather_async(me, 0, **how), [0, 1, 2]),
                (world.scatter_async(np.arange(3) if me == 1 else None, 1, np.zeros(1, int), **how), [me]),
                (world.all_to_all_async(np.arange(3), **how), [me] * 3),
                (world.barrier_async(**how), None),
                (world.sendrecv_async(np.array([me]), following, np.zeros(1, int), before, **how), [before]),
                (world.allreduce_async(np.array([me]), lambda lower, higher: higher, **how), [2]),
            ]
            if me == 0:
                calls.append((world.send_async(np.array([7]), 1, **how), None))
            if me == 1:
                calls.append((world.recv_async(np.zeros(1, int), 0, **how), [7]))
            # A blocking call runs after all asynchronous calls before it.
            assert world.allreduce(1) == 3
            assert all(handle.done() for handle, _ in calls)
            for handle, expected in reversed(calls):
                result = handle.wait()
                if expected is None or result is None:
                    assert result is None and (expected is None or me != 0), (me, expected)
                else:
                    same(result, expected)
            handles = [world.allreduce_async(np.array([i])) for i in range(100)]
            same(np.concatenate(collectives.wait_all(handles)), np.arange(100) * 3)
        """)

    def test_errors_of_calls_that_nobody_waits_for_arrive_with_their_handles(self):
        code, output = run(2, """
            first = world.allreduce_async(np.zeros(3 + world.rank))
            second = world.barrier_async()
            for handle in (first, second):
                print("told:", refuses(RuntimeError, "", handle.wait))
            until_all_have_spoken()
        """)
        self.assertNotEqual(code, 0)
        told = re.findall(r"^\[\d\] told: (.*)", output, re.MULTILINE)
        self.assertEqual(len(told), 4, output)
        both = [line for line in told if "allreduce of 3 double" in line and "allreduce of 4 double" in line]
        self.assertRegex("\n".join(both), r"^rank \d: WarrenAllreduceAsync: ")
        self.assertEqual(sum("WarrenBarrierAsync: an earlier call has failed" in line for line in told), 2, output)

    def test_a_name_is_in_errors_and_on_the_timeline(self):
        with tempfile.TemporaryDirectory() as folder:
            _, output = run(2, """
                world.allreduce_async(np.zeros(3), name="gradients").wait()
                world.barrier_async().wait()
                try:
                    world.broadcast_async(np.zeros(3 + world.rank), 0, name="weights").wait()
                except RuntimeError as error:
                    print("told:", error)
                try:  # a rank that failed would make dmlc-submit end the other one, perhaps before it has written its file
                    collectives.finalize()
                except RuntimeError:
                    pass
            """, env={"WARREN_TIMELINE": os.path.join(folder, "trace.json")})
            self.assertRegex(output, r"told: rank \d: WarrenBroadcastAsync 'weights': ")
            for rank in range(2):
                events = pathlib.Path(folder, f"trace.{rank}.json").read_text(encoding="utf-8")
                for name in ("gradients", "WarrenBarrierAsync", "weights"):
                    self.assertEqual(events.count(f'"name":"{name}"'), 1, events)

    def test_a_call_that_was_given_a_timeout_ends_when_another_rank_does_not_come(self):
        for env in BOTH_WAYS:
            output = self.expect(2, """
                group = world.split(0)
                if world.rank == 0:
                    handle = group.allreduce_async(np.zeros(3), name="gradients", timeout=0.3)
                    begin = time.monotonic()
                    print("told:", refuses(RuntimeError, "", handle.wait))
                    assert time.monotonic() - begin < 20
                until_all_have_spoken()
            """, **env)
            self.assertRegex(output, r"told: rank 0, .*: WarrenAllreduceAsync 'gradients': .* has waited \d\S* s for .*rank 1\b")

    def test_a_timeout_is_that_of_its_call_alone_and_counts_from_its_beginning(self):
        self.all_right(2, """
            group = world.split(0)
            time.sleep(3 * world.rank)
            first = group.allreduce_async(1, timeout=0)
            second = group.allreduce_async(1, timeout=2)  # on rank 0, it waits behind the first call for longer than 2 s
            assert (first.wait(), second.wait()) == (2, 2)
            time.sleep(3 * world.rank)
            assert group.allreduce(1) == 2
        """)

    def test_a_timeout_in_a_program_that_recovers_links_the_ranks_again(self):
        output = self.all_right(2, """
            from warren import rabit
            rabit.load_checkpoint()
            time.sleep(3 * world.rank)
            assert world.allreduce_async(1, timeout=1).wait() == 2
        """)
        self.assertIn("waiting to be linked again", output)

    def test_calls_of_rabit_may_stand_between(self):
        self.all_right(2, """
            from warren import rabit
            assert rabit.get_world_size() == world.size
            assert rabit.broadcast({"a": 1} if world.rank == 0 else None, 0) == {"a": 1}
            assert world.allreduce(1.0) == 2.0
            rabit.load_checkpoint()
            refuses(RuntimeError, "after LoadCheckPoint", world.split, 0)
            assert world.allreduce(1.0) == 2.0
        """)


class Example(unittest.TestCase):
    def test_ring_takes_everybodys_data_past_everybody(self):
        code, output = submit(3, PYTHON, SOURCE / "examples/collectives/ring.py")
        self.assertEqual(code, 0, output)
        self.assertIn("distances to the nearest point of another rank: 1.0 0.5 0.5 0.5 0.5 1.0", output)


class Names(unittest.TestCase):
    def test_the_types_are_those_of_the_header(self):
        from warren import collectives  # pylint: disable=import-outside-toplevel
        from warren._engine import c_api as _collectives_c  # pylint: disable=import-outside-toplevel
        text = (SOURCE / "rabit_engine/include/warren/c_api.h").read_text(encoding="utf-8")
        codes = {name.lower(): int(value) for name, value in re.findall(r"WARREN_([A-Z0-9]+) = (\d+)", text)}
        for name, code in _collectives_c.TYPES.items():
            self.assertEqual(codes[name], code)
        for op in collectives.Op:
            self.assertEqual(codes[op.name.lower()], op.value)


if __name__ == "__main__":
    unittest.main()
