"""warren.rabit: alone, in jobs, and through the death of a worker."""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np

from warren_testing import BIN, SOURCE

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

LIMIT_S = 60
PYTHON = "/usr/bin/python3"


def job(workers, code, *options, expected=0):
    """Runs the code on so many workers; returns what was said."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DMLC_")}
    done = subprocess.run(
        [BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", str(workers), *options, PYTHON, "-c",
         "import numpy as np\nfrom warren import rabit\n" + textwrap.dedent(code)], capture_output=True, text=True,
        timeout=LIMIT_S, check=False,
        env={**clean, "PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent)})
    output = done.stdout + done.stderr
    if done.returncode != expected:
        raise AssertionError(f"exit code {done.returncode}:\n{output}")
    return output


class Alone(unittest.TestCase):
    """Without a job everything works, for one."""

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
        for wrong, op in (([1.0], rabit.SUM), (np.zeros(3, "float16"), rabit.SUM), (np.zeros(3, "S3"), rabit.MAX),
                          (np.zeros(3), rabit.BITOR)):
            self.assertRaises(TypeError, rabit.allreduce, wrong, op)

    @unittest.skipIf(sys.version_info < (3, 11), "there is no quick way before Python 3.11")
    def test_the_quick_way_takes_what_is_ready_for_it_and_leaves_all_else_alone(self):
        class Special(np.ndarray):
            pass
        quick, total = self.rabit._reduced, self.rabit.SUM
        for name in self.rabit._NAMES:
            self.assertIs(quick(np.ones((2, 3), name), total), True, name)
        self.assertIs(quick(np.array(1.0), total), True)
        frozen = np.ones(3)
        frozen.flags.writeable = False
        for other in (np.ones(0), np.ones(4)[::2], np.asfortranarray(np.ones((2, 3))), frozen, np.ones(3).view(Special),
                      np.frombuffer(bytearray(17), "float64", 2, 1), bytearray(8), [1.0], None):
            self.assertIs(quick(other, total), False, other)
        for kind in (">f4", "bool", "float16", "longdouble", "complex64", "S3", "M8[s]", "f4,i4", "O"):
            self.assertIs(quick(np.zeros(3, kind), total), False, kind)
        for op in (self.rabit.BITOR, 4, -1, 1 << 40):
            self.assertIs(quick(np.zeros(3), op), False, op)
        self.assertRaises(TypeError, quick, np.zeros(3), "sum")
        self.assertRaises(TypeError, quick, np.zeros(3))

    def test_what_the_prepare_function_raises_comes_out(self):
        def bad(_):
            raise KeyError("bad")
        self.assertRaises(KeyError, self.rabit.allreduce, np.zeros(3), self.rabit.SUM, bad)

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
            types = "int8 uint8 int32 uint32 int64 uint64 float32 float64".split()
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

    def test_an_exception_is_no_end_of_work(self):
        output = job(2, """
            with rabit.context():
                if rabit.get_rank() == 1:
                    raise ValueError("no such luck")
                rabit.allreduce(np.zeros(3), rabit.SUM)
        """, expected=1)
        self.assertRegex(output, r"error: worker 1 \(rank 1, .*\) exited with code 1")


if __name__ == "__main__":
    unittest.main()
