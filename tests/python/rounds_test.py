"""warren._rounds.training: rank 0 reports the rounds of a training to the sinks listed in SINKS."""
import unittest
from unittest import mock

from warren._rounds import training as rounds
from warren._rounds.sinks import Sink


class Recorded(Sink):
    def __init__(self, about):
        self.about, self.calls = about, []

    def round(self, number, of, metrics):
        self.calls.append((number, of, metrics))

    def earlier(self, number, metrics):
        self.calls.append((number, metrics))

    def end(self, model):
        self.calls.append(model)


class Rounds(unittest.TestCase):
    def setUp(self):
        self.made = []
        table = mock.patch.object(rounds, "SINKS", (self.make, lambda _: None))
        table.start()
        self.addCleanup(table.stop)

    def make(self, about):
        self.made.append(Recorded(about))
        return self.made[-1]

    def report(self, train, rank=0):
        return rounds.reported("xgboost", {"eta": 1}, 2, rounds.Place(lambda: rank, lambda: 3), train)

    @staticmethod
    def two_rounds():
        for number in (1, 2):
            rounds.current().round(number, {"train-auc": number / 2})
        return "model"

    def test_rank_0_passes_on_each_round_and_the_end(self):
        self.assertEqual(self.report(self.two_rounds), "model")
        recorded, = self.made
        self.assertEqual(recorded.calls, [(1, 2, {"train-auc": 0.5}), (2, 2, {"train-auc": 1.0}), "model"])
        self.assertEqual((recorded.about.library, recorded.about.params, recorded.about.world), ("xgboost", {"eta": 1}, 3))

    def test_a_new_rank_0_passes_on_what_came_before_it_once(self):
        def train():
            for number in (3, 4):
                rounds.current().round(number, {}, lambda: [(1, {"a": 1}), (2, {"a": 2})])

        self.report(train)
        self.assertEqual(self.made[0].calls, [(1, {"a": 1}), (2, {"a": 2}), (3, 2, {}), (4, 2, {}), None])

    def test_the_other_ranks_pass_on_nothing(self):
        self.report(self.two_rounds, rank=1)
        self.assertEqual(self.made, [])

    def test_a_training_inside_another_one_is_part_of_it(self):
        self.report(lambda: self.report(self.two_rounds))
        self.assertEqual(len(self.made), 1)
        self.assertEqual(self.made[0].calls.count("model"), 1)

    def test_a_failure_ends_the_training_without_a_model(self):
        def fails():
            rounds.current().round(1, {})
            raise ValueError("as planned")

        with self.assertRaisesRegex(ValueError, "as planned"):
            self.report(fails)
        self.assertEqual(self.made[0].calls, [(1, 2, {}), None])
        self.assertIsNone(rounds.current())

    def test_trainings_are_numbered_alike_on_all_ranks(self):
        for _ in range(2):
            self.report(self.two_rounds)
        self.report(self.two_rounds, rank=1)
        self.report(self.two_rounds)
        first, second, last = (one.about.number for one in self.made)
        self.assertEqual((second - first, last - second), (1, 2))


if __name__ == "__main__":
    unittest.main()
