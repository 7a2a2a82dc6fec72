"""Named operations of warren.collectives: any order, joins, groups, errors, timelines."""
import json
import os
import re
import tempfile
import textwrap
import unittest

from collectives_jobs import PYTHON, JobTest, run, submit
from warren_testing import SOURCE


class Named(JobTest):
    def test_each_rank_gives_them_in_an_order_of_its_own(self):
        code = """
            import random
            me, size = world.rank, world.size
            gradients = {f"layer{i}.weight": np.full((2, 3), me + i, "float32") for i in range(50)}
            with world.coordinator(fusion_bytes=1 << 16, cycle_time=0.0005) as named:
                for step in range(3):
                    names = random.sample(sorted(gradients), len(gradients))
                    handles = {name: named.allreduce(name, gradients[name], Op.AVG, priority=len(name)) for name in names}
                    for name, handle in handles.items():
                        i = int(name[5:].split(".")[0])
                        assert np.array_equal(handle.wait(), np.full((2, 3), (size - 1) / 2 + i, "float32")), name
                counts = [rank + 1 for rank in range(size)]
                rows = named.allgather("rows", np.full((me + 1, 2), me), counts).wait()
                assert np.array_equal(rows, np.repeat(np.arange(size), counts)[:, None].repeat(2, 1)), rows
                model = named.broadcast("model", np.full(4, me), root=size - 1).wait()
                assert (model == size - 1).all()
                part = named.reduce_scatter("part", np.arange(size * 2.0)).wait()
                assert np.array_equal(part, np.arange(size * 2.0)[2 * me:2 * me + 2] * size)
                swapped = named.all_to_all("swapped", np.full(size, me)).wait()
                assert np.array_equal(swapped, np.arange(size))
                assert named.allreduce("own", np.array([me]), lambda lower, higher: lower).wait() == 0
                named.barrier("end").wait()
                pair = [named.allreduce(name, np.ones(3), group=("pair", 2)) for name in ("one", "two")]
                assert [total.sum() for total in collectives.wait_all(pair)] == [3 * size] * 2
            refuses(ValueError, "closed", named.barrier, "late")
        """
        self.expect(1, code)
        self.expect(3, code)

    def test_ranks_with_fewer_batches_join(self):
        self.expect(3, """
            with world.coordinator() as named:
                for batch in range(world.rank + 1):
                    total = named.allreduce("loss", np.array([1.0])).wait()
                    assert total == 3 - batch, total
                assert named.join() == 2
        """)

    def test_ranks_that_differ_are_told(self):
        said = self.expect(2, """
            with world.coordinator() as named:
                print(refuses(RuntimeError, "", named.allreduce("x", np.zeros(world.rank + 1)).wait))
                assert named.allreduce("x", np.ones(1)).wait() == 2
                refuses(RuntimeError, "no name", named.allreduce, "", np.ones(1))
        """)
        self.assertIn("the ranks use the name 'x'", said)
        self.assertRegex(said, r"on rank [01] it is an allreduce \(sum\) of [12] elements of double")

    def test_the_example_of_a_network_learns_and_leaves_a_timeline(self):
        with tempfile.TemporaryDirectory() as folder:
            status, said = submit(3, PYTHON, SOURCE / "examples/collectives/network.py",
                                  env={"WARREN_TIMELINE": os.path.join(folder, "trace.json")})
            self.assertEqual(status, 0, said)
            losses = re.search(r"loss (\S+), after 40 epochs (\S+)", said)
            self.assertLess(float(losses[2]), float(losses[1]) * 0.9)
            for rank in range(3):
                with open(os.path.join(folder, f"trace.{rank}.json"), encoding="utf-8") as file:
                    lines = {event["args"]["name"] for event in json.load(file) if event["name"] == "thread_name"}
                self.assertTrue({"layer 0", "layer 1", "layer 2"} <= lines, lines)

    def test_a_join_ends_behind_what_was_given_before_it(self):
        self.expect(2, """
            for count in (1000, 10):  # the second ones are shorter
                with world.coordinator(fusion_bytes=0) as named:
                    own = [np.ones(count) for _ in range(100)]
                    handles = [named.allreduce(str(i), own[i], out=own[i]) for i in range(100)]
                    named.join()
                    assert all(handle.done() for handle in handles)
                    again = [named.allreduce(str(i), np.full(count // 2, 3.0)) for i in range(100)]
                    assert all((total == 6).all() for total in collectives.wait_all(again))
                    assert all((total == 2).all() for total in collectives.wait_all(handles))
        """)

    def test_it_may_be_closed_while_other_threads_give(self):
        self.expect(2, """
            import threading
            for _ in range(20):
                named = world.coordinator()
                def give(thread):
                    try:
                        for i in range(10000):
                            named.allreduce(f"{thread}/{i}", np.ones(3))
                    except (RuntimeError, ValueError):
                        pass
                threads = [threading.Thread(target=give, args=(i,)) for i in range(3)]
                for thread in threads:
                    thread.start()
                named.allreduce("first", np.ones(3)).wait()
                named.close()
                for thread in threads:
                    thread.join()
        """)

    def test_counts_that_differ_are_an_error_of_that_name_alone(self):
        said = self.expect(3, """
            me = world.rank
            with world.coordinator() as named:
                sent = [1, 1, 2] if me == 0 else [1, 1, 1]
                wrong = named.all_to_all("wrong", np.zeros(sum(sent)), sent, [1, 1, 1])
                right = named.all_to_all("right", np.arange(3) + 10 * me)
                assert np.array_equal(right.wait(), [me, me + 10, me + 20])
                print(refuses(RuntimeError, "", wrong.wait))
        """)
        self.assertIn("in 'wrong', an all-to-all, rank 0 has 16 bytes for rank 2, which expects 8", said)

    def test_a_function_that_fails_is_named_and_ends_all_of_them(self):
        _, said = run(2, """
            named = world.coordinator()
            def fail(lower, higher):
                if world.rank == 1:
                    raise ValueError("no")
                return lower
            for name, op in (("bad", fail), ("next", Op.SUM)):
                try:
                    named.allreduce(name, np.zeros(60000), op).wait()
                except (ValueError, RuntimeError) as error:
                    print(f"{name}:", error)
            until_all_have_spoken()
        """)
        self.assertRegex(said, r"\[1\] bad: no")
        self.assertRegex(said, r"\[1\] next: .*'bad': ")
        self.assertRegex(said, r"\[0\] next: ")

    def test_a_process_may_exit_while_functions_are_called(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "exits.py")
            with open(program, "w", encoding="ascii") as file:
                file.write(textwrap.dedent("""
                    import sys, numpy as np
                    from warren import collectives
                    collectives.init([])
                    named = collectives.world().coordinator()
                    handles = [named.allreduce(str(i), np.ones(100000), lambda one, two: one + two) for i in range(50)]
                    collectives.world().barrier()  # from here on one may be gone when the other comes
                    try:
                        handles[0].wait()
                    except RuntimeError as error:
                        assert "rank" in str(error)
                    sys.exit(0)
                """))
            _, said = submit(2, "bash", "-c", f"{PYTHON} {program}; echo code $?; exit 0")
            self.assertEqual(said.count("code 0"), 2, said)

    def test_names_and_settings_that_make_no_sense_are_refused(self):
        self.expect(1, """
            with world.coordinator() as named:
                for name, group, error in ((b"x", None, TypeError), ("a\\0b", None, ValueError), ("x", "g", TypeError),
                                           ("x", ("g", 0), RuntimeError), ("x", ("g", 1 << 40), ValueError), ("x", (1, 2), TypeError)):
                    refuses(error, "", named.allreduce, name, np.ones(1), group=group)
            for wrong in ({"fusion_bytes": -1}, {"fusion_bytes": 1 << 64}, {"cycle_time": 1e9}):
                refuses(ValueError, "", world.coordinator, **wrong)
            world.free()
            refuses(ValueError, "", world.allgather, np.ones(1))
        """)

    def test_what_cannot_be_said_is_no_error(self):
        self.expect(2, """
            import os, time
            if world.rank == 0:
                os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
            with world.coordinator(stall_warning=0.2) as named:
                time.sleep(world.rank)
                assert named.allreduce("late", np.ones(1)).wait() == 2
        """)

    def test_a_timeline_is_whole_after_finalize_whatever_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            self.expect(2, """
                import json, os
                one, two = world.coordinator(), world.coordinator()
                handles = [named.allreduce(name, np.ones(3)) for named in (one, two) for name in ("x", "gr\u00e4dient \\"\\\\")]
                collectives.wait_all(handles)
                child = os.fork()
                if child == 0:
                    raise SystemExit(0)
                os.waitpid(child, 0)
                collectives.finalize()
                with open(os.environ["WARREN_TIMELINE"].replace(".json", f".{world.rank}.json")) as file:
                    events = json.load(file)
                names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
                assert names.count("gr\u00e4dient \\"\\\\") == 2, names
                os._exit(0)
            """, WARREN_TIMELINE=path)

    def test_finalize_ends_what_is_left(self):
        self.expect(2, """
            named = world.coordinator()
            named.allreduce("x", np.ones(1)).wait()
        """)

    def test_the_environment_says_how_they_work(self):
        status, said = run(2, "world.coordinator()", env={"WARREN_FUSION_THRESHOLD": "lots"})
        self.assertNotEqual(status, 0)
        self.assertIn('WARREN_FUSION_THRESHOLD in the environment: "lots" is not understood', said)
        self.expect(2, """
            with world.coordinator() as named:
                for step in range(2):
                    handles = [named.allreduce(str(i), np.ones(100)) for i in range(100)]
                    collectives.wait_all(handles)
        """, WARREN_FUSION_THRESHOLD="0", WARREN_CYCLE_TIME_US="0")

    def test_settings_are_found_by_trying(self):
        said = self.expect(2, """
            found = os.path.join(os.environ["MEETING"], "found")
            if world.rank == 0:  # which says on its standard error what was found
                os.dup2(os.open(found, os.O_CREAT | os.O_WRONLY), 2)
            with world.coordinator(autotune=True, cycle_time=0.0001) as named:
                end = time.monotonic() + 50
                go_on = 1
                while go_on:
                    collectives.wait_all([named.allreduce(str(i), np.ones(10000)) for i in range(20)])
                    time.sleep(0.02)  # each setting is tried for some time, and need not have all of it
                    go_on = world.broadcast(np.array([time.monotonic() < end and os.stat(found).st_size == 0]), root=0)[0]
            if world.rank == 0:
                print(open(found).read())
        """)
        self.assertRegex(said, r"named operations are packed up to \d+ bytes, in cycles of \d+ us")


if __name__ == "__main__":
    unittest.main()
