"""warren.torch's training in the style of TorchMPI, under Debian's Python or the one that WARREN_TORCH_PYTHON names."""
import pathlib
import unittest

import forking
from collectives_jobs import submit
from torch_python import PYTHON, WHY_NOT

WORKER = pathlib.Path(__file__).with_name("torch_sgd_worker.py")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class TorchSgd(unittest.TestCase):
    def expect_well(self, function, *sizes, **env):
        for size in sizes:
            with self.subTest(function, size=size, **env):
                code, said = submit(size, forking.python(PYTHON, "torch"), WORKER, function, env=env)
                self.assertEqual(code, 0, said)
                self.assertEqual(said.count("well"), size, said)

    def test_parameters_become_the_roots_or_the_average(self):
        self.expect_well("parameters", 3)

    def test_gradients_become_the_average_or_the_sum_and_those_that_nobody_has_stay_none(self):
        self.expect_well("gradients", 3)

    def test_training_gives_the_model_of_one_process_and_the_same_bits_without_waiting(self):
        self.expect_well("training", 2)
        self.expect_well("training", 3, WARREN_SHARED_MEMORY="off")

    def test_gradients_in_flight_may_be_ready_in_any_order_and_some_on_no_rank(self):
        self.expect_well("unused", 3)

    def test_hooks_are_called_in_order(self):
        self.expect_well("hooks", 1)

    def test_batches_are_loaded_ahead_by_a_thread_whose_errors_are_raised(self):
        self.expect_well("prefetch", 1)

    def test_tensors_are_sent_to_servers_and_received(self):
        self.expect_well("tensors", 3)

    def test_updates_meet_the_servers_when_they_say(self):
        self.expect_well("schedule", 2)

    def test_downpour_learns_digits(self):
        self.expect_well("downpour", 2, WARREN_SHARED_MEMORY="off")

    def test_easgd_learns_digits(self):
        self.expect_well("easgd", 3)


if __name__ == "__main__":
    unittest.main()
