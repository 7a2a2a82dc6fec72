"""warren.collectives: messages with tags; worlds and groups whose ranks find each other; callbacks of handles."""
import unittest

from collectives_jobs import BOTH_WAYS, JobTest

# over(comm) returns a function with which the ranks of a new world exchange their records over the existing communicator `comm`.
BY_ANOTHER = """
def over(comm):
    def allgather(record):
        lengths = comm.allgather(len(record))
        joined = comm.allgather(np.frombuffer(record, np.uint8), counts=lengths.tolist()).tobytes()
        ends = np.cumsum(lengths)
        return [joined[end - length:end] for length, end in zip(lengths, ends)]
    return allgather
"""


class Messages(JobTest):
    def test_every_rank_may_send_first_and_tags_need_no_order(self):
        for env in BOTH_WAYS:
            self.expect(3, """
                me, size = world.rank, world.size
                box = world.mailbox()
                right, left = (me + 1) % size, (me - 1) % size
                sent = [box.send(np.full(100_000, me * 10 + tag), right, tag) for tag in range(4)]
                for tag in reversed(range(4)):
                    got = np.empty(100_000, int)
                    assert box.recv(got, left, tag).wait() is got
                    assert (got == left * 10 + tag).all(), (me, tag, got)
                collectives.wait_all(sent)
                got = np.empty(size, int)
                handles = [box.recv(got[other:other + 1], box.ANY_RANK, 7) for other in range(size - 1)]
                for other in range(size):
                    if other != me:
                        box.send(me + 0, other, 7)
                collectives.wait_all(handles)
                assert sorted(got[:-1]) == [other for other in range(size) if other != me]
                world.barrier()
                box.free()
                """, **env)

    def test_what_makes_no_sense_is_refused_and_ends_nothing(self):
        self.expect(2, """
            box = world.mailbox()
            other = 1 - world.rank
            for function, arguments, text in ((box.send, (np.ones(1), world.rank), "is not another rank of 2"),
                                              (box.send, (np.ones(1), -1), "-1 is not another rank"),
                                              (box.recv, (np.ones(1), 2), "2 is not another rank"),
                                              (box.recv, (np.ones(1), other, 0, -1.0), "a timeout of -1 s"),
                                              (box.send, (np.array([object()]), other), "takes arrays of numbers")):
                refuses((RuntimeError, TypeError, ValueError), text, function, *arguments)
            sent = box.send(np.arange(3), other)
            refuses(RuntimeError, f"rank {other} sent 24 bytes with tag 0, but this rank expects 16", box.recv(np.empty(2, int), other).wait)
            sent.wait()
            sent = box.send(np.arange(3), other)
            assert box.recv(np.empty(3, int), other).wait().tolist() == [0, 1, 2]
            sent.wait()
            world.barrier()
            """)

    def test_a_rank_that_leaves_or_does_not_come_is_named(self):
        for env in BOTH_WAYS:
            self.expect(3, """
                box = world.mailbox()
                world.barrier()
                if world.rank == 1:
                    box.free()
                else:
                    refuses(RuntimeError, "rank 1", box.recv(np.empty(1), 1).wait)
                world.barrier()
                """, **env)
            self.expect(2, """
                box = world.mailbox()
                if world.rank == 0:
                    refuses(RuntimeError, "rank 1", box.recv(np.empty(1), 1, timeout=0.2).wait)
                world.barrier()
                """, **env)


class Meeting(JobTest):
    def test_ranks_meet_by_what_they_share_and_groups_are_their_own_ranks(self):
        for env in BOTH_WAYS:
            self.expect(4, BY_ANOTHER + """
me, size = world.rank, world.size
own = collectives.meet(me, size, over(world))
assert (own.rank, own.size) == (me, size)
assert own.allreduce(me) == 6
half = world.split(me % 2)
group = own.group([0, 2] if me % 2 == 0 else [3, 1], f"half {me % 2}", over(half if me % 2 == 0 else half.create([1, 0])))
assert group.rank_in_world(group.rank) == me
assert group.allreduce(me) == (2 if me % 2 == 0 else 4)
own.set_timeout(5)
group.free()
assert own.allreduce(1) == size
world.barrier()
own.free()
refuses(IndexError, "", collectives.meet, 0, 2, lambda record: [][0])
""", **env)

    def test_a_handle_calls_a_function_when_its_operation_has_ended(self):
        self.expect(2, """
            import threading
            told = []
            ended = threading.Event()
            handle = world.allreduce_async(np.ones(3))
            handle.when_done(lambda error: (told.append(error), ended.set()))
            handle.wait()
            assert ended.wait(10) and told == [None], told
            refuses(ValueError, "wait was already called", handle.when_done, print)
            """)

    def test_functions_that_are_called_at_the_end_may_wait_for_further_operations(self):
        self.expect(2, """
            import threading
            box, told = world.mailbox(), []
            named = world.coordinator()

            def result_of(handle):
                ended = threading.Event()
                handle.when_done(lambda error: ended.set())
                assert ended.wait(20)
                return handle.wait()

            def reduced():
                return world.allreduce_async(np.ones(3))

            def from_the_other():
                box.send(np.ones(3), 1 - world.rank)
                return box.recv(np.zeros(3), 1 - world.rank)

            def by_name():
                return named.allreduce("a name", np.ones(3))

            makers = [reduced, from_the_other, by_name]
            for first in makers:
                for second in makers:
                    ended = threading.Event()

                    def go_on(error):
                        told.append((error, float(result_of(second())[0])))
                        ended.set()

                    first().when_done(go_on)
                    assert ended.wait(60), (first, second)
            assert told == [(None, 1.0 if second is from_the_other else 2.0) for _ in makers for second in makers], told
            named.close()
            """)

    def test_functions_are_called_in_the_order_in_which_their_operations_end(self):
        self.expect(2, """
            import threading
            order, all_called = [], threading.Event()

            def call(index):
                order.append(index)
                if len(order) == 500:
                    all_called.set()

            for index in range(500):
                world.allreduce_async(np.ones(3)).when_done(lambda error, index=index: call(index))
            assert all_called.wait(60) and order == sorted(order), order
            """)

    def test_a_program_does_not_end_while_a_function_is_called(self):
        # Neither rank frees the new communicator before its program ends.
        output = self.expect(2, BY_ANOTHER + """
def slow(error):
    time.sleep(0.3)
    print("called to its end", flush=True)

own = collectives.meet(world.rank, world.size, over(world))
handle = own.allreduce_async(np.ones(3))
handle.when_done(slow)
world.barrier()
""")
        self.assertEqual(output.count("called to its end"), 2, output)


if __name__ == "__main__":
    unittest.main()
