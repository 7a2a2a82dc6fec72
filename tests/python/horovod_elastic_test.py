"""hvd.elastic with PyTorch, in jobs of dmlc-submit --num-workers MIN:MAX. See horovod_test.py for the choice of Python and PyTorch."""
import collections
import pathlib
import re
import unittest

import horovod_test

WORKER = pathlib.Path(__file__).with_name("horovod_elastic_worker.py")
EPOCHS, ROWS = 3, 40


@unittest.skipIf(horovod_test.WHY_NOT, horovod_test.WHY_NOT)
class Elastic(unittest.TestCase):
    ENVIRONMENT, setUp, submit, warm = (getattr(horovod_test.Horovod, name) for name in ("ENVIRONMENT", "setUp", "submit", "warm"))

    def job(self, workers, *events, options=(), code=0, **more):
        """Runs a job, after removing the files of earlier jobs. Returns its output."""
        for path in self.folder.glob("*-*"):
            path.unlink()
        found, text = self.submit(workers, WORKER, str(EPOCHS), *events, python=[*options, *self.warm], **more)
        self.assertEqual(found, code, text)
        return text

    def models(self, text):
        """For each worker that finished, as strings: the digest of its model, the number of batches, and the number of workers."""
        return re.findall(r"model ([0-9a-f]{64}) after (\d+) of (\d+)", text)

    def times_seen(self, epoch):
        """Maps each row to the number of the epoch's committed batches that contained it."""
        return collections.Counter(map(int, (self.folder / f"seen-{epoch}").read_text(encoding="ascii").split()))

    def test_a_lost_worker_is_replaced_and_the_training_goes_on_from_the_last_commit(self):
        undisturbed = self.job("2:2")
        self.assertEqual({self.times_seen(epoch)[row] for epoch in range(EPOCHS) for row in range(ROWS)}, {1})
        self.assertEqual(len(set(self.models(undisturbed))), 1, undisturbed)
        for task in ("0", "1"):
            with self.subTest(task=task):
                text = self.job("1:2", "kill", "7", task)
                self.assertEqual(set(self.models(text)), set(self.models(undisturbed)), text)
                self.assertEqual(text.count("resets [2]"), 1, text)  # by the survivor: the new process has had no reset
                self.assertGreaterEqual(min(self.times_seen(1)[row] for row in range(ROWS)), 1)
                self.assertLessEqual(sum(self.times_seen(1).values()), ROWS + 8)  # at most one batch is repeated

    def test_two_are_lost_one_after_the_other_and_one_before_it_has_joined(self):
        text = self.job("1:3", "kill", "3", "0", "kill", "6", "2", "early", "0", "1")
        self.assertEqual(len(set(self.models(text))), 1, text)
        self.assertEqual(len(self.models(text)), 3, text)
        for epoch in range(EPOCHS):
            self.assertEqual(set(self.times_seen(epoch)), set(range(ROWS)))

    def test_a_worker_that_comes_later_takes_part_from_the_next_commit_on(self):
        text = self.job("1:2", "kill", "2", "1", "late", "8", "1", options=["--replace-within", "0"])
        self.assertIn("generation 2 begins with 1 worker", text)
        self.assertRegex(text, r"generation 3 begins with 2 workers \(task 0, 1\), \d+\.\d s after task 1 came")
        self.assertEqual(len(set(self.models(text))), 1, text)
        self.assertIn("resets [1, 2]", text)
        for epoch in range(EPOCHS):
            self.assertEqual(set(self.times_seen(epoch)), set(range(ROWS)))

    def test_a_worker_that_is_lost_while_the_ranks_meet_is_replaced(self):
        text = self.job("1:2", "joining", "0", "1")
        self.assertIn("generation 2 begins with 2 workers", text)
        self.assertEqual(len(self.models(text)), 2, text)
        self.assertEqual(len(set(self.models(text))), 1, text)

    def test_an_optimizer_created_by_a_worker_alone_reduces_gradients_once_another_one_has_come(self):
        text = self.job("1:2", "joining", "0", "1", "late", "3", "1", options=["--replace-within", "0"], NUM_GROUPS="2")
        self.assertRegex(text, r"generation 2 begins with 1 worker\b")
        self.assertIn("generation 3 begins with 2 workers", text)
        self.assertEqual(len(self.models(text)), 2, text)
        self.assertEqual(len(set(self.models(text))), 1, text)

    def test_a_worker_that_is_asked_to_end_leaves_at_a_commit(self):
        text = self.job("1:2", "term", "4", "0")
        self.assertEqual(set(self.models(text)), set(self.models(self.job("2:2"))), text)
        self.assertRegex(text, r"task 0 left")
        self.assertIn("exited with code 143", text)

    def test_an_error_of_the_program_and_a_loss_after_the_training_end_the_job(self):
        text = self.job("1:2", "wrong", "4", "1", code=1)
        self.assertIn("an error of the program", text)
        self.assertNotIn("generation 2", text)
        self.assertIn("was killed by signal 9", self.job("1:2", "after", "0", "0", code=137))

    def test_a_job_with_a_fixed_number_of_workers_trains_once(self):
        self.assertEqual(set(self.models(self.job("2"))), set(self.models(self.job("2:2"))))


if __name__ == "__main__":
    unittest.main()
