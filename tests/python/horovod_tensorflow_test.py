"""warren.horovod.tensorflow and .keras, Horovod's API for TensorFlow, in jobs with the Python that WARREN_TENSORFLOW_PYTHON
names."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

from collectives_jobs import submit

WORKER = pathlib.Path(__file__).with_name("horovod_tensorflow_worker.py")
PYTHON = os.environ.get("WARREN_TENSORFLOW_PYTHON")
LIMIT_S = 300
WHY_NOT = None if PYTHON else "SKIPPED: WARREN_TENSORFLOW_PYTHON names no Python with TensorFlow (pip install tensorflow-cpu)"
if WHY_NOT:
    print(WHY_NOT, file=sys.stderr)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class HorovodTensorFlow(unittest.TestCase):
    def expect_well(self, size, *words, options=(), **more):
        with tempfile.TemporaryDirectory() as meeting:
            env = {"MEETING": meeting, "TF_CPP_MIN_LOG_LEVEL": "3", **more}
            code, said = submit(size, *options, PYTHON, *words, env=env, limit_s=LIMIT_S)
        self.assertEqual(code, 0, said)
        self.assertEqual(len(re.findall(r"\] well$", said, re.MULTILINE)), int(str(size)[-1]), said)
        return said

    def test_every_operation_eager_and_in_graphs(self):
        self.expect_well(3, WORKER, "operations", "gradients")
        self.expect_well(1, WORKER, "gradients", "tapes", "fit")

    def test_training_gives_the_model_of_one_process(self):
        self.expect_well(2, WORKER, "tapes", "local_variables", "fit")

    def test_what_is_wrong_is_said_as_tensorflow_says_it(self):
        self.expect_well(2, WORKER, "errors")

    def test_a_lost_worker_is_replaced(self):
        undisturbed = set(re.findall("model (.*) resets", self.expect_well("2:2", WORKER, "elastic")))
        text = self.expect_well("1:2", WORKER, "elastic", KILL="1")
        self.assertEqual((set(re.findall("model (.*) resets", text)), len(undisturbed)), (undisturbed, 1), text)
        self.assertIn("resets [2]", text)

    def test_a_graph_that_outlives_a_change_of_ranks_has_the_new_ranks_and_sizes(self):
        text = self.expect_well("1:2", WORKER, "graph_of_several_generations", options=["--replace-within", "0"])
        self.assertEqual(text.count("sizes [2, 1, 2]"), 2, text)

    def test_a_script_for_horovod_runs_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script.py"
            script.write_text(
                "import tensorflow as tf\nimport horovod.tensorflow as hvd, horovod.tensorflow.keras, horovod.keras.callbacks\n"
                "hvd.init()\nassert hvd.allreduce(tf.constant(1.0)).numpy() == 1\nprint('well')\n", encoding="utf-8")
            self.expect_well(2, "-m", "warren.compat", script)


if __name__ == "__main__":
    unittest.main()
