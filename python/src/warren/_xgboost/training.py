"""Training with checkpoints, for warren.xgboost."""
from typing import Any, Callable, Dict, List, Sequence

import xgboost as xgb

from warren._rounds import training as _rounds
from warren._xgboost import digest as _digest
from warren._xgboost.checkpoint import Checkpoint
from warren._xgboost.hooks import PLACE, Progress
from warren._xgboost.same_model import generator as _generator
from warren._xgboost.versions import TrainingCallback, collective, peers_of_job
from warren.data._load import whole_number


class _Saver(TrainingCallback):  # type: ignore[misc]
    """Calls `save` after every `every`-th round except the last one, and sets a separate seed for each round."""

    def __init__(self, save: Callable[["xgb.Booster"], None], every: int, last: int, seed: int) -> None:
        super().__init__()
        self._save, self._every, self._last, self._seed = save, every, last, seed

    def before_iteration(self, model: "xgb.Booster", epoch: int, evals_log: Any) -> bool:
        """Sets the round's seed. The random numbers of a round must not depend on the rounds that this process has run, because the
        generator's state is not part of the model. A changed seed takes effect immediately. Before 3.3 the column samplers had their own
        generators, which a seed does not reach; pairs for ranking are drawn from the one generator only from 3.4 on."""
        del epoch, evals_log
        if _generator.is_known():
            model.set_param({"seed": (self._seed * 1_000_003 + model.num_boosted_rounds() + 1) % 2**31})
        return False

    def after_iteration(self, model: "xgb.Booster", epoch: int, evals_log: Any) -> bool:
        """Saves the model if a checkpoint is due. Never stops the training."""
        del epoch, evals_log
        rounds = model.num_boosted_rounds()
        if rounds % self._every == 0 and rounds < self._last:
            self._save(model)
        return False


def train_with_checkpoints(params: Dict[str, Any], dtrain: "xgb.DMatrix", num_boost_round: int, path: Any, every: int,
                           callbacks: Sequence[Any], storage_options: Any, options: Dict[str, Any]) -> "xgb.Booster":
    """See warren.xgboost.train_with_checkpoints."""
    if "xgb_model" in options:
        raise TypeError("train_with_checkpoints chooses xgb_model itself")
    if whole_number("every", every, "after how many rounds to save") < 1:
        raise ValueError(f"every={every!r}: expected a number of rounds, at least 1")
    return _rounds.reported("xgboost", params, num_boost_round, PLACE,
                            lambda: _train(params, dtrain, num_boost_round, path, every, callbacks, storage_options, options))


def _train(params: Dict[str, Any], dtrain: "xgb.DMatrix", num_boost_round: int, path: Any, every: int, callbacks: Sequence[Any],
           storage_options: Any, options: Dict[str, Any]) -> "xgb.Booster":
    seed = int(params.get("seed", params.get("random_state", 0)) or 0)
    peers = peers_of_job()
    with Checkpoint(path, peers, storage_options=storage_options) as checkpoint:
        def save(model: "xgb.Booster") -> None:
            if int(collective().get_rank()) == 0:
                checkpoint.save(model)

        saved = checkpoint.load(_digest.of_training(params, dtrain, num_boost_round, options, callbacks, peers))
        begun = None if saved is None else saved.model
        if begun is not None and _generator.is_known() and "subsample" in params:
            # With constant Hessians, `approx` computes the cuts in its first round, from the rows sampled for it, and keeps them in the
            # matrix: a resumed run must compute them from the same sample.
            first = {name: options[name] for name in ("obj",) if name in options}
            xgb.train(params, dtrain, 1, callbacks=[_Saver(save, num_boost_round + 1, num_boost_round, seed),
                                                    Progress(num_boost_round)], **first)
        done = 0 if saved is None else saved.rounds
        all_callbacks: List[Any] = [*callbacks, _Saver(save, every, num_boost_round, seed), Progress(num_boost_round, done)]
        model = xgb.train(params, dtrain, num_boost_round - done, xgb_model=begun, callbacks=all_callbacks, **options)
        if int(collective().get_rank()) == 0:
            checkpoint.remove()
        return model
