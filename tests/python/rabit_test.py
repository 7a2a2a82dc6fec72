"""warren.rabit: in a single process, in jobs, and after the death of a worker."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np

from collectives_jobs import BOTH_WAYS, ENVIRONMENT, LIMIT_S, PYTHON, submit
from warren_testing import AT_NIGHT, BIN, Tracker

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))


def job(workers, code, *options, expected=0, env=None):
    """Runs `code` on this many workers; returns the output. The job must exit with the code `expected`."""
    status, output = submit(workers, *options, PYTHON, "-c", "import numpy as np\nfrom warren import rabit\n" + textwrap.dedent(code),
                            env=env)
    if status != expected:
        raise AssertionError(f"exit code {status}:\n{output}")
    return output


class Alone(unittest.TestCase):
    """Without a job, every call works as in a world of size 1."""

    @classmethod
    def setUpClass(cls):
        from warren import rabit  # pylint: disable=import-outside-toplevel
        cls.rabit = rabit
        rabit.init([])

    @classmethod
    def tearDownClass(cls):
        cls.rabit.finalize()

    def test_there_is_one_rank(self):
        self.assertEqual((self.rabit.get_rank(), self.rabit.get_world_size(), self.rabit.is_distributed()), (0, 1, False))
        self.assertEqual(self.rabit.get_processor_name(), os.uname().nodename.encode())

    def test_broadcast_returns_the_object(self):
        for value in (None, b"", {"a": [1, 2.5]}, np.arange(3).tolist()):
            self.assertEqual(self.rabit.broadcast(value, 0), value)

    def test_allreduce_is_in_place(self):
        values = np.arange(4.0)
        self.assertIs(self.rabit.allreduce(values, self.rabit.SUM), values)

    def test_what_cannot_be_reduced_is_refused(self):
        rabit = self.rabit
        for wrong, op in (([1.0], rabit.SUM), (np.zeros(3, "longdouble"), rabit.SUM), (np.zeros(3, "S3"), rabit.MAX),
                          (np.zeros(3), rabit.BITOR), (np.zeros(3, "float16"), rabit.BITOR), (np.zeros(3, ">f2"), rabit.SUM)):
            self.assertRaises(TypeError, rabit.allreduce, wrong, op)

    @unittest.skipIf(sys.version_info < (3, 11), "there is no quick way before Python 3.11")
    def test_the_quick_way_takes_what_is_ready_for_it_and_leaves_all_else_alone(self):
        class Special(np.ndarray):
            pass
        quick, total = self.rabit._reduced, self.rabit.SUM
        for name in (*self.rabit._NAMES, "float16"):
            self.assertIs(quick(np.ones((2, 3), name), total), True, name)
        self.assertIs(quick(np.array(1.0), total), True)
        frozen = np.ones(3)
        frozen.flags.writeable = False
        for other in (np.ones(0), np.ones(4)[::2], np.asfortranarray(np.ones((2, 3))), frozen, np.ones(3).view(Special),
                      np.frombuffer(bytearray(17), "float64", 2, 1), bytearray(8), [1.0], None):
            self.assertIs(quick(other, total), False, other)
        self.assertIs(quick(np.zeros(3, "float16"), self.rabit.BITOR), False)
        for kind in (">f4", ">f2", "bool", "longdouble", "complex64", "S3", "M8[s]", "f4,i4", "O"):
            self.assertIs(quick(np.zeros(3, kind), total), False, kind)
        for op in (self.rabit.BITOR, 4, -1, 1 << 40):
            self.assertIs(quick(np.zeros(3), op), False, op)
        self.assertRaises(TypeError, quick, np.zeros(3), "sum")
        self.assertRaises(TypeError, quick, np.zeros(3))

    def test_what_the_prepare_function_raises_comes_out(self):
        def bad(_):
            raise KeyError("bad")
        self.assertRaises(KeyError, self.rabit.allreduce, np.zeros(3), self.rabit.SUM, bad)
        self.assertRaisesRegex(RuntimeError, "an earlier call has failed.*: the prepare function raised KeyError",
                               self.rabit.allreduce, np.zeros(3), self.rabit.SUM)
        self.rabit.abandon()
        self.rabit.init([])

    def test_checkpoints_are_kept(self):
        self.assertEqual(self.rabit.load_checkpoint(True), (0, None, None))
        self.rabit.checkpoint({"round": 1}, "mine")
        self.assertEqual(self.rabit.load_checkpoint(), (1, {"round": 1}))
        self.assertEqual(self.rabit.load_checkpoint(True), (1, {"round": 1}, "mine"))
        self.rabit.checkpoint([2], "mine")
        self.assertEqual(self.rabit.version_number(), 2)


class Jobs(unittest.TestCase):
    def test_every_type_and_operation_gives_what_numpy_gives(self):
        for way in ("", "rabit._reduced = rabit._cannot"):
            job(3, f"""
            {way}
            types = "int8 uint8 int32 uint32 int64 uint64 float16 float32 float64".split()
            with rabit.context():
                rank, size = rabit.get_rank(), rabit.get_world_size()
                for name in types:
                    each = [np.random.default_rng(r).integers(0, 40, 1000).astype(name) for r in range(size)]
                    for op, of_numpy in ((rabit.MAX, np.maximum), (rabit.MIN, np.minimum), (rabit.SUM, np.add),
                                         (rabit.BITOR, np.bitwise_or)):
                        if op == rabit.BITOR and name.startswith("float"):
                            continue
                        values = each[rank].copy()
                        np.testing.assert_array_equal(rabit.allreduce(values, op), of_numpy.reduce(each))
        """)

    def test_sums_of_float16_are_rounded_once(self):
        for way in ("", "rabit._reduced = rabit._cannot"):
            for memory in ("auto", "off"):
                job(4, f"""
                {way}
                with rabit.context():
                    each = [np.random.default_rng(r).normal(size=30000).astype("float16") for r in range(4)]
                    wide = [values.astype("float32") for values in each]
                    expected = ((wide[0] + wide[1]) + (wide[2] + wide[3])).astype("float16")
                    rounded = ((each[0] + each[1]) + (each[2] + each[3]))
                    assert (expected != rounded).any()
                    np.testing.assert_array_equal(rabit.allreduce(each[rabit.get_rank()], rabit.SUM), expected)
            """, env={"WARREN_SHARED_MEMORY": memory})

    @unittest.skipUnless(importlib.util.find_spec("ml_dtypes"), "ml_dtypes is not installed")
    def test_bfloat16_of_ml_dtypes(self):
        job(4, """
            from ml_dtypes import bfloat16
            with rabit.context():
                each = [np.random.default_rng(r).normal(size=(100, 30)).astype(bfloat16) for r in range(4)]
                wide = [values.astype("float32") for values in each]
                values = each[rabit.get_rank()].copy()
                assert rabit.allreduce(values, rabit.SUM) is values and values.dtype == bfloat16
                np.testing.assert_array_equal(values.view("uint16"), ((wide[0] + wide[1]) + (wide[2] + wide[3])).astype(bfloat16)
                                              .view("uint16"))
                columns = np.array(each[rabit.get_rank()][::2, 1::2])
                np.testing.assert_array_equal(rabit.allreduce(each[rabit.get_rank()][::2, 1::2], rabit.MAX).astype("float32"),
                                              np.max([values[::2, 1::2] for values in wide], axis=0))
                try:
                    rabit.allreduce(columns, rabit.BITOR)
                    raise AssertionError("or of bfloat16")
                except TypeError as error:
                    assert "BITOR takes integers, not bfloat16" in str(error), error
        """)

    def test_any_memory_layout(self):
        job(2, """
            with rabit.context():
                rank = rabit.get_rank()
                whole = np.arange(24, dtype="float64").reshape(4, 6) + rank
                part = whole[1:3, ::2]
                before = whole.copy()
                assert rabit.allreduce(part, rabit.SUM) is part
                expected = before
                expected[1:3, ::2] = 2 * np.arange(24).reshape(4, 6)[1:3, ::2] + 1
                np.testing.assert_array_equal(whole, expected)
                columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
                rabit.allreduce(columns, rabit.SUM)
                np.testing.assert_array_equal(columns, 2 * np.arange(6.0).reshape(2, 3))
                frozen = np.ones(3)
                frozen.flags.writeable = False
                np.testing.assert_array_equal(rabit.allreduce(frozen, rabit.SUM), [2, 2, 2])
                np.testing.assert_array_equal(frozen, [1, 1, 1])
                assert rabit.allreduce(np.zeros(0), rabit.SUM).size == 0
        """)

    def test_broadcast_of_any_object_from_any_rank(self):
        job(3, """
            with rabit.context():
                for root in range(3):
                    mine = rabit.get_rank() == root
                    assert rabit.broadcast({"from": root, "big": b"x" * 100000} if mine else None, root)["from"] == root
                    assert rabit.broadcast(None if mine else "not me", root) is None
        """)

    def test_what_is_printed_reaches_the_user(self):
        output = job(2, """
            with rabit.context():
                rabit.tracker_print(f"said by {rabit.get_rank()}\\n")
        """)
        self.assertIn("said by 0\n", output)
        self.assertIn("said by 1\n", output)

    def test_a_message_with_a_nul_is_shown_to_its_end(self):
        output = job(2, """
            with rabit.context():
                rabit.tracker_print(f"before\\0behind {rabit.get_rank()}\\n")
        """)
        self.assertIn("before\\x00behind 0\n", output)
        self.assertIn("before\\x00behind 1\n", output)

    def test_prepare_is_not_called_for_what_is_known_and_a_killed_worker_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            output = job(3, f"""
                import os, pathlib, signal
                with rabit.context():
                    rank = rabit.get_rank()
                    version, model, mine = rabit.load_checkpoint(True)
                    if version == 0:
                        model, mine = np.zeros(4), 0
                    for round in range(version, 6):
                        called = []
                        values = np.empty(4)
                        def prepare(array):
                            called.append(1)
                            array[:] = rank + round
                        rabit.allreduce(values, rabit.SUM, prepare)
                        model = model + values
                        once = pathlib.Path({folder!r}) / "killed"
                        if rank == 1 and round == 3 and not once.exists():
                            once.touch()
                            os.kill(os.getpid(), signal.SIGKILL)
                        if rank == 1 and round == 3:
                            print("called", len(called))
                        rabit.checkpoint(model, mine + rank)
                        mine += rank
                    print("model", model.tolist(), mine)
            """, "--local-num-attempt", "1")
        self.assertEqual(output.count("model [63.0, 63.0, 63.0, 63.0] "), 3, output)
        self.assertIn("starting it again", output)
        self.assertIn("called 0", output)

    def test_a_prepare_function_that_raises_in_one_rank_makes_no_sum_wrong(self):
        _, output = submit(2, PYTHON, "-c", textwrap.dedent("""
            import numpy as np
            from warren import rabit
            rabit.init()
            sums, errors = [], []
            for number, bad_rank in (1, None), (10, 1), (100, 0), (1000, None):
                def prepare(array):
                    if rabit.get_rank() == bad_rank:
                        raise KeyError("bad batch")
                    array[:] = number
                try:
                    sums.append(rabit.allreduce(np.zeros(1), rabit.SUM, prepare)[0].item())
                except (KeyError, RuntimeError) as error:
                    errors.append(type(error).__name__)
            print("sums", sums, "errors", errors, flush=True)
            rabit.abandon()
        """))
        self.assertRegex(output, r"sums \[2\.0\] errors \['(Key|Runtime)Error', ")
        self.assertNotIn("sums [2.0, ", output)

    def test_a_call_in_a_prepare_function_is_refused_where_ranks_can_be_lost_even_if_it_has_a_prepare_function_itself(self):
        job(2, """
            with rabit.context():
                rabit.load_checkpoint()
                errors = []
                def prepare(_):
                    for inner in (lambda _: None, None):
                        try:
                            rabit.allreduce(np.zeros(1), rabit.SUM, inner)
                            errors.append("no error")
                        except RuntimeError as error:
                            errors.append(str(error))
                rabit.allreduce(np.zeros(1), rabit.SUM, prepare)
                assert len(errors) == 2, errors
                assert all("it was called from the prepare function of an allreduce" in error for error in errors), errors
        """)

    def test_an_exception_is_no_end_of_work(self):
        body = """
                if rabit.get_rank() == 1:
                    raise ValueError("no such luck")
                for _ in range(3):
                    rabit.allreduce(np.zeros(3), rabit.SUM)
        """
        for code in (f"""
            with rabit.context():{body}
        """, f"""
            rabit.init()
            try:{body}
            finally:
                rabit.finalize()
        """, f"""
            from warren import collectives
            collectives.init()
            try:{body}
            finally:
                collectives.finalize()
        """):
            output = job(3, code, expected=1)
            self.assertRegex(output, r"error: worker 1 \(rank 1, .*\) exited with code 1")
            self.assertIn("ValueError: no such luck", output)
            self.assertNotIn("calls barrier", output)

    def test_the_rank_that_cannot_join_is_named_with_its_reason(self):
        for library in ("rabit", "collectives"):
            output = job(3, f"""
                import os
                from warren import {library}
                if os.environ["RANK"] == "1":
                    os.environ["WARREN_ALGORITHM"] = "foo"
                {library}.init()
            """, "-q", expected=1)
            self.assertRegex(output, r"error: worker 1 \(.*\) exited with code 1")
            self.assertIn("WARREN_ALGORITHM=foo: 'foo' is not known", output)

    def test_a_program_that_survives_its_exception_leaves_at_exit(self):
        output = job(3, """
            import sys
            rabit.init()
            try:
                try:
                    if rabit.get_rank() == 1:
                        raise ValueError("no such luck")
                    if rabit.get_rank() == 2:
                        sys.exit()  # no error
                finally:
                    rabit.finalize()
            except ValueError:
                print("survived")
        """)
        self.assertEqual((output.count("survived"), output.count("no such luck")), (1, 0), output)


class Leaving(unittest.TestCase):
    """What finalize does after an exception, in one process."""

    def test_leaving_is_postponed_only_after_an_error(self):
        from warren._launch import leaving  # pylint: disable=import-outside-toplevel
        left = []

        def leave():
            with leaving.others_report_first():
                left.append(len(left))
                raise RuntimeError("an earlier error had ended the job for this rank")

        def postponed_after(error):
            try:
                raise error
            except BaseException:  # pylint: disable=broad-except
                return leaving.postpone_after_error(leave)

        self.assertFalse(leaving.postpone_after_error(leave))
        for no_error in (SystemExit(), SystemExit(0), GeneratorExit()):
            self.assertFalse(postponed_after(no_error), no_error)
        for error in (ValueError(), KeyboardInterrupt(), SystemExit(1), SystemExit("why"), RuntimeError()):
            self.assertTrue(postponed_after(error), error)
        self.assertEqual(left, [])
        leaving.leave_postponed()
        leaving.leave_postponed()
        self.assertEqual(left, [0])


class Errors(unittest.TestCase):
    """Errors are exceptions; the interpreter keeps running."""

    def test_a_lost_peer_is_an_exception_in_every_call_and_the_program_goes_on(self):
        output = job(3, """
            import os
            rabit.init()
            rank = rabit.get_rank()
            rabit.allreduce(np.zeros(3), rabit.SUM)
            if rank == 1:
                os._exit(0)
            ways = (lambda: rabit.allreduce(np.zeros(3), rabit.SUM), lambda: rabit.allreduce(np.zeros(3)[::2], rabit.SUM),
                    lambda: rabit.broadcast("x", 0), lambda: rabit.load_checkpoint(), lambda: rabit.checkpoint(1),
                    rabit.finalize)
            for way in ways:
                try:
                    way()
                    print("no error")
                except RuntimeError as error:
                    print(f"rank {rank} was told", "rank 1" in str(error) or "earlier error" in str(error))
            print("goes on as", rabit.get_rank(), "of", rabit.get_world_size())
        """)
        self.assertEqual(output.count("was told True"), 12, output)
        self.assertEqual(output.count("goes on as 0 of 1"), 2, output)
        self.assertNotIn("no error", output)

    def test_refused_calls_end_nothing(self):
        output = job(2, """
            with rabit.context():
                for wrong in (lambda: rabit.broadcast(1, 7), lambda: rabit.broadcast(1, -1), lambda: rabit.broadcast(1, 2**32)):
                    try:
                        wrong()
                    except RuntimeError as error:
                        print(error)
                print("sum", rabit.allreduce(np.ones(1), rabit.SUM)[0])
        """)
        for root in (7, 2**32):
            self.assertEqual(output.count(f"root {root} is not a rank; ranks are 0 to 1"), 2, output)
        self.assertEqual(output.count("sum 2.0"), 2, output)

    def test_a_job_that_cannot_be_joined_is_an_exception_that_says_why(self):
        done = subprocess.run([PYTHON, "-c", "from warren import rabit\n"
                               "try:\n    rabit.init(['rabit_tracker_uri=127.0.0.1', 'rabit_tracker_port=1',"
                               " 'DMLC_WORKER_CONNECT_RETRY=1'])\n"
                               "except RuntimeError as error:\n    print('told:', error)\n"
                               "rabit.init(['rabit_tracker_uri=NULL'])\nprint(rabit.get_world_size())"],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env=ENVIRONMENT)
        self.assertRegex(done.stdout, r"told: RabitInit: the tracker at 127\.0\.0\.1:1 cannot be reached.*\n1\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Forks(unittest.TestCase):
    """A process forked from a worker is not part of the job and does not disturb it."""

    #: Few rounds, since each child shuts down a whole interpreter when it exits.
    ROUNDS = 20 if AT_NIGHT else 7

    def run_with_child(self, child, told):
        for settings in BOTH_WAYS:
            with self.subTest(**settings):
                output = job(3, f"""
                    import os, sys, multiprocessing
                    def tell(rank):
                        try:
                            rabit.allreduce(np.full(4, 1000.0), rabit.SUM)
                            print("took part")
                        except RuntimeError as error:
                            sys.stdout.write(f"child of {{rank}}, itself {{rabit.get_rank()}}: {{error}}\\n")
                            sys.stdout.flush()
                    def main():
                        rank = rabit.get_rank()
                        for round in range({self.ROUNDS}):
                            {child}
                            total = rabit.allreduce(np.full(4, rank + round * 1.0), rabit.SUM)
                            assert total.tolist() == [3.0 + 3 * round] * 4, (round, total)
                        print("sums are right")
                    with rabit.context():
                        main()
                """, env=settings)
                self.assertEqual(output.count("sums are right"), 3, output)
                self.assertNotIn("took part", output)
                if told:
                    told_by = {line.partition(":")[0] for line in output.splitlines() if "was forked from process" in line}
                    self.assertEqual({line.partition("] ")[2] for line in told_by},
                                     {f"child of {rank}, itself {rank}" for rank in range(3)}, output)

    def test_a_child_that_calls_a_collective_gets_an_error_and_may_end_in_any_way(self):
        for end in ("os._exit(0)", "sys.exit(0)", "rabit.finalize(); sys.exit(0)"):
            with self.subTest(end=end):
                self.run_with_child(f"""
                            child = os.fork()
                            if child == 0:
                                tell(rank)
                                {end}
                            os.waitpid(child, 0)""", True)

    def test_a_child_that_returns_through_the_callers_context_leaves_the_job_alone(self):
        self.run_with_child("""
                            child = os.fork() if round == 3 else 1
                            if child == 0:
                                print("child goes")
                                return
                            child == 1 or os.waitpid(child, 0)""", False)

    def test_multiprocessing_with_fork_beside_collectives(self):
        self.run_with_child("""
                            if round % 5 == 0:
                                with multiprocessing.get_context("fork").Pool(2) as pool:
                                    assert pool.map(abs, [-1, -2, -3]) == [1, 2, 3]
                                    pool.apply(tell, (rank,))""", True)

    def test_a_child_that_a_callback_forks_gets_an_error_and_is_none_of_the_call(self):
        for settings in BOTH_WAYS:
            with self.subTest(**settings):
                output = job(3, """
                    import os, sys
                    with rabit.context():
                        rank = rabit.get_rank()
                        for round in range(20):
                            child = None
                            def prepare(data):
                                global child
                                child = os.fork()
                            try:
                                total = rabit.allreduce(np.full(4, 1.0 + round), rabit.SUM, prepare)
                            except RuntimeError as error:
                                assert child == 0, error
                                sys.stdout.write(f"child: {error}\\n")
                                sys.stdout.flush()
                                os._exit(0)
                            assert child != 0, "the child took part"
                            assert total.tolist() == [3.0 * (1 + round)] * 4, total
                            os.waitpid(child, 0)
                        print("sums are right")
                """, env=settings)
                self.assertEqual(output.count("sums are right"), 3, output)
                self.assertEqual(output.count("the prepare function forked this process"), 60, output)

    def test_a_death_is_noticed_while_a_child_of_the_dead_lives(self):
        for settings in BOTH_WAYS:
            with self.subTest(**settings), Tracker("--num-workers", 3) as tracker:
                code = """
                    import os, signal, sys, time
                    import numpy as np
                    from warren import rabit
                    rabit.init(["rabit_timeout_sec=1"])
                    rank = rabit.get_rank()
                    try:  # rank 1 may be dead before others have ended the first call
                        rabit.allreduce(np.ones(4), rabit.SUM)
                        if rank == 1:
                            if os.fork() == 0:
                                os.closerange(0, 3)
                                os.read(int(sys.argv[1]), 1)  # until the test has seen enough
                                os._exit(0)
                            os.kill(os.getpid(), signal.SIGKILL)
                        rabit.allreduce(np.ones(4), rabit.SUM)
                    except RuntimeError as error:
                        print(f"told: {error}")
                """
                leave, alive = os.pipe()
                workers = [subprocess.Popen([PYTHON, "-c", textwrap.dedent(code), str(leave)], text=True, pass_fds=[leave],
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                            env={**ENVIRONMENT, **tracker.env, **settings, "DMLC_TASK_ID": str(task)})
                           for task in range(3)]
                os.close(leave)
                try:
                    output = "".join(worker.communicate(timeout=LIMIT_S)[0] for worker in workers)
                finally:
                    for worker in workers:
                        worker.kill()
                    os.close(alive)
                self.assertEqual(output.count("told:"), 2, output)
                self.assertIn("rank 1", output)


if __name__ == "__main__":
    unittest.main()
