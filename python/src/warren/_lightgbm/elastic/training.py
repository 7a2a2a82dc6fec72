"""One training run of an elastic job, across all generations of its workers."""
import contextlib
import functools
import inspect
import operator
import socket
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import lightgbm
import lightgbm.callback
import numpy as np
from lightgbm.basic import _LIB, _safe_call
from lightgbm.callback import CallbackEnv, EarlyStopException

from warren import rabit
from warren._elastic import callbacks as _callbacks
from warren._elastic import shares as _shares
from warren._elastic.callbacks import State
from warren._elastic.rows import number_of_shares
from warren._elastic.session import Progress, Session
from warren._frameworks.replacing import replaced
from warren._lightgbm import hooks as _hooks
from warren._lightgbm.elastic import bins as _bins
from warren._lightgbm.elastic import parameters as _parameters
from warren._lightgbm.elastic.rows import Asked, Rows
from warren._rounds import sinks as _sinks
from warren._rounds import training as _rounds
from warren.data import _peers
from warren.data._peers import Peers, together

#: LightGBM's callbacks whose state follows from the evaluations so far. To restore it, they are called with these evaluations again.
_OF_EVALUATIONS = tuple(found for found in (getattr(lightgbm.callback, f"_{name}Callback", None) for name in ("EarlyStopping", "RecordEvaluation"))
                        if found is not None)

#: The results of one round's evaluation.
_Evaluations = List[Any]


class Task(NamedTuple):
    """The arguments of warren.lightgbm.train."""

    params: Mapping[str, Any]
    data: Asked
    num_boost_round: int
    valid_sets: Sequence[Asked]  #: the training rows are the same object as `data`
    options: Dict[str, Any]  #: the other arguments of lightgbm.train
    parameters: Callable[[str], Dict[str, Any]]  #: warren.lightgbm.parameters


class Kept(NamedTuple):
    """The result of a training run."""

    model: str
    best_iteration: int
    best_score: _Evaluations
    history: List[_Evaluations]
    state: State
    categories: Dict[str, Any]


class _Common(NamedTuple):
    """The values that the first generation determines and all later workers need."""

    categories: Dict[str, Any]
    files: List[List[Tuple[str, int, int]]]  #: the result of Rows.files for each data set
    host: str  #: the host on which `files` was listed
    places: List[List[int]]  #: the shares of each rank when the bins were made


def say(words: str) -> None:
    """Prints a message for the user, on rank 0 only."""
    if rabit.get_rank() == 0:
        _sinks.say(f"elastic=True: {words}")


def check(options: Mapping[str, Any]) -> None:
    """Raises TypeError for an option that lightgbm.train does not have, ValueError for one that elastic training does not support, and
    RuntimeError if LightGBM is too old."""
    known = set(inspect.signature(lightgbm.train).parameters) - {"params", "train_set", "num_boost_round", "valid_sets"}
    for name in options:
        if name not in known:
            raise TypeError(f"train() has no argument {name!r}, nor has lightgbm.train")
    if options.get("keep_training_booster"):
        raise ValueError("elastic=True: keep_training_booster=True is not possible: the model is the same on all workers, also on those that come "
                         "after the training, and these have no Booster that could train on")
    if not _bins.is_known():
        raise RuntimeError(f"elastic=True needs LightGBM 4.0 or later; found {lightgbm.__version__}")


def train(task: Task, session: Session) -> "lightgbm.Booster":
    """See warren.lightgbm.train, in an elastic job that this process has joined."""
    return _rounds.reported("lightgbm", task.params, task.num_boost_round, _hooks.PLACE, lambda: _train(task, session))


def _train(task: Task, session: Session) -> "lightgbm.Booster":
    if any(one.is_checked for one in (task.data, *task.valid_sets)):
        say("--check-data and check=True show no table: workers read their shares when they need them")
    training = _Training(task)
    return training.ended(Kept(*session.trained(_peers.current, lambda peers: training.run(peers, session), lambda kept: training.take(Kept(*kept)))))


class _Training:
    """A training run in this process; it keeps its state from one generation to the next."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._given = given = _parameters.effective(task.params, task.num_boost_round)
        self._count = count = number_of_shares()
        self._rows = Rows(task.data, count)
        sets = {id(task.data): self._rows, **{id(one): Rows(one, count) for one in task.valid_sets if one is not task.data}}
        self._valid = [sets[id(one)] for one in task.valid_sets]
        self._all_rows = list(sets.values())
        callbacks = [*dict.fromkeys(task.options.get("callbacks") or ()), *([lightgbm.early_stopping(**given.stopping)] if given.stopping else ())]
        for place, one in enumerate(callbacks):
            vars(one).setdefault("order", place - len(callbacks))
        self._callbacks = _callbacks.Callbacks(callbacks)
        self._common: Optional[_Common] = None
        self._is_same_place = True  # whether each rank holds the rows that it held when the bins were made
        self._bins: Optional["lightgbm.Dataset"] = None  # a Dataset with the bins of the first generation
        begun = task.options.get("init_model")
        #: The trees so far as text; newer ones may be in _model (see _newest_trees).
        self._trees = None if begun is None else _text_of(begun)
        self._model: Optional["lightgbm.Booster"] = None
        self._begin = 0 if self._trees is None else lightgbm.Booster(model_str=self._trees).current_iteration()
        self._iterations = self._begin  # the number of iterations of the trees: LightGBM makes none in a round without a split
        self._progress = Progress()
        self._history: List[_Evaluations] = []
        self._stop: Optional[Tuple[int, _Evaluations]] = None  # the best iteration and its evaluations, from the callback that stopped training
        # The callbacks' state at _progress: a callback may fail in the middle of a round, which other callbacks have already counted.
        self._state = self._callbacks.state()

    def run(self, peers: Peers, session: Session) -> Kept:
        """Trains with the workers of this generation. Raises Change when Session.at_boundary does, and the error of a collective call when
        a worker is lost."""
        self._know_what_is_common(peers)
        params = {**self._given.params, **self._task.parameters(self._given.tree_learner)}
        self._hold_shares(params, peers, session)
        self._take_newest_state(peers)
        model, params = self._made(params, peers)
        self._call_again(model)
        with replaced("reset_parameter", self._callbacks.recording(model), lightgbm.Booster):
            self._train(model, params, peers, session)
        # A callback that stops the training may do so on one worker only.
        stops = peers.allgather(self._stop, objects=True)
        best, score = next((one for one in stops if one is not None), (-1, self._history[-1] if self._history else []))
        model.best_iteration = best + 1
        return Kept(model.model_to_string(), best + 1, score, self._history, self._callbacks.state(), self._common.categories if self._common else {})

    def take(self, kept: Kept) -> None:
        """Sets the callbacks of this process to their state at the end of a training run that other workers have completed."""
        self._history = kept.history
        self._callbacks.restore(kept.state)
        model = lightgbm.Booster(model_str=kept.model)
        model.set_train_data_name(self._name_of(self._rows))
        self._call_again(model)

    def ended(self, kept: Kept) -> "lightgbm.Booster":
        """Returns the model of the result."""
        model = lightgbm.Booster(model_str=kept.model)
        model.params = {**self._given.params, **self._callbacks.parameters}
        model.best_iteration, model.best_score = kept.best_iteration, _by_name(kept.best_score)
        model.warren_categories = kept.categories
        return model

    # --- rows ---------------------------------------------------------------------------------------------------------------------------

    def _know_what_is_common(self, peers: Peers) -> None:
        """Determines the categories, or receives them and the bins from a worker that has them. If no worker has updated its model yet, the
        bins are computed again, so that they are those of a training run that begins with these workers."""
        if max(Progress(*one) for one in peers.allgather(tuple(self._progress))) == Progress():
            self._bins = None
            for rows in self._all_rows:
                rows.dataset = None
        told = peers.allgather((self._common is not None, self._bins is not None))
        if not any(knows for knows, _ in told):
            self._rows.open_together(peers)
            for rows in self._all_rows[1:]:
                together(peers, functools.partial(rows.open_alone, self._rows.categories))
            self._common = _Common(*peers.broadcast((self._rows.categories, [rows.files() for rows in self._all_rows], socket.gethostname(), []), 0))
            return
        root = told.index(max(told, key=lambda one: (one[1], one[0])))
        self._common = _Common(*peers.broadcast(self._common and tuple(self._common), root))
        if told[root][1] and not all(has_bins for _, has_bins in told):
            content, params = peers.broadcast((_bins.to_bytes(self._bins), self._bins.params) if peers.rank == root and self._bins else None, root)
            if self._bins is None:
                self._bins = _bins.from_bytes(content, params)

    def _hold_shares(self, params: Mapping[str, Any], peers: Peers, session: Session) -> None:
        """Reads the shares that are now assigned to this worker, unless it already holds exactly these, and makes its Datasets. Raises Change as
        Session.read_rows does."""
        assert self._common is not None
        common = self._common
        places = _shares.dealt(peers.allgather(self._rows.held), self._count)

        def read(check: Callable[[], None]) -> None:
            for rows, files in zip(self._all_rows, common.files):
                mine = list(range(self._count)) if rows.is_whole else places[peers.rank]
                if rows.held != mine:
                    rows.open_unchanged(common.categories, files, common.host)
                    rows.read(mine, check)

        session.read_rows(peers, read)
        self._require_rows(peers)
        if self._bins is None:
            self._rows.make(params, None)
            self._bins, self._common = self._rows.dataset, common._replace(places=places)
        for rows in self._all_rows:
            if rows.dataset is None:
                rows.make(params, self._bins)
        self._is_same_place = [sorted(one) for one in places] == [sorted(one) for one in self._common.places]

    def _require_rows(self, peers: Peers) -> None:
        empty = [number for number, rows in enumerate(self._all_rows) if len(rows) == 0]
        for rank, found in enumerate(peers.allgather(empty)):
            if found:
                raise ValueError(f"rank {rank} of {peers.world} has no rows of {'the training rows' if found[0] == 0 else 'a validation set'}, and "
                                 "LightGBM cannot train without any: use fewer workers")
        for rows in self._all_rows[1:]:
            if rows.names != self._rows.names:
                raise ValueError(_hooks.OTHER_FEATURES)

    # --- rounds -------------------------------------------------------------------------------------------------------------------------

    def _newest_trees(self) -> Optional[str]:
        """Returns the trees up to this worker's progress."""
        if self._model is not None and self._iterations > 0:
            self._trees = self._model.model_to_string(num_iteration=self._iterations)
        return self._trees

    def _take_newest_state(self, peers: Peers) -> None:
        """Makes all workers continue from the newest state that any of them has."""
        told = [Progress(*one) for one in peers.allgather(tuple(self._progress))]
        newest = max(told)
        root = told.index(newest)
        ours: Any = None
        if peers.rank == root:
            ours = self._newest_trees(), self._iterations, self._history, self._stop, self._state
        self._trees, self._iterations, self._history, self._stop, state = peers.broadcast(ours, root, objects=True)
        self._history = list(self._history)
        self._progress, self._model, self._state = newest, None, state
        self._callbacks.restore(state)

    def _call_again(self, model: "lightgbm.Booster") -> None:
        """Restores the state of LightGBM's callbacks that follows from the evaluations so far. `model` must have the name of the training
        rows."""
        for one in self._callbacks.all:
            if isinstance(one, _OF_EVALUATIONS):
                is_shown, one.verbose = getattr(one, "verbose", False), False
                for number, found in enumerate(self._history):
                    with contextlib.suppress(EarlyStopException):
                        one(self._env(model, dict(self._given.params), number, found))
                one.verbose = is_shown

    def _name_of(self, rows: Rows) -> str:
        """The name under which these rows are evaluated."""
        given = self._task.options.get("valid_names")
        names = [given] if isinstance(given, str) else list(given or ())
        place = self._valid.index(rows) if rows in self._valid else len(names)
        return names[place] if place < len(names) else "training" if rows is self._rows else f"valid_{place}"

    def _env(self, model: Any, params: Dict[str, Any], number: int, found: Optional[_Evaluations]) -> CallbackEnv:
        return CallbackEnv(model=model, params=params, iteration=self._begin + number, begin_iteration=self._begin,
                           end_iteration=self._begin + self._given.rounds, evaluation_result_list=found)

    def _made(self, params: Dict[str, Any], peers: Peers) -> Tuple["lightgbm.Booster", Dict[str, Any]]:
        """Returns a Booster with the trees so far, and its parameters."""
        progress, common = self._progress, self._common
        assert common is not None
        rounds = progress.rounds + progress.is_updated
        params = _parameters.with_seeds_of(rounds, {**params, **self._callbacks.parameters})
        trees = None if self._trees is None else lightgbm.Booster(model_str=self._trees)
        threads = {"num_threads": found for found in (_parameters.value(params, "num_threads"),) if found is not None}
        takes_margin = self._task.options.get("init_model") is None
        if not takes_margin and rounds == 0 and self._rows.has_margin:
            say("init_score is without effect, as in lightgbm.train: the rows start from the predictions of init_model")
        for rows in self._all_rows:
            rows.start_from(trees, takes_margin, threads)
        model = lightgbm.Booster(params=dict(params), train_set=self._rows.dataset)
        if trees is not None:
            _safe_call(_LIB.LGBM_BoosterMerge(model._handle, trees._handle))  # pylint: disable=protected-access
        model.set_train_data_name(self._name_of(self._rows))
        for rows in self._valid:
            if rows is not self._rows:
                model.add_valid(rows.dataset, self._name_of(rows))
        model.best_iteration = 0
        if rounds:
            is_bundled = _parameters.bundles(params) and self._rows.may_be_bundled()
            is_bundled = bool(peers.greatest(np.array([is_bundled], np.uint64))[0])
            differs = _parameters.difference(rounds, params, self._is_same_place, len(common.places), peers.world, is_bundled)
            if differs:
                say(differs)
        self._model = model
        return model, params

    def _train(self, model: "lightgbm.Booster", params: Dict[str, Any], peers: Peers, session: Session) -> None:
        callbacks = sorted([*self._callbacks.all, _hooks.ReportRounds(lambda: self._history)], key=operator.attrgetter("order"))
        before = [one for one in callbacks if getattr(one, "before_iteration", False)]
        after = [one for one in callbacks if not getattr(one, "before_iteration", False)]
        feval, is_evaluated = self._task.options.get("feval"), bool(self._valid)
        while self._progress.rounds < self._given.rounds:
            number, stops = self._progress.rounds, self._progress.has_stopped
            if not self._progress.is_updated:
                if not stops:
                    for one in before:
                        one(self._env(model, params, number, None))
                if session.at_boundary(peers, stops):
                    return
                model.update(fobj=self._given.objective)
                self._note(self._progress._replace(is_updated=True), model)
            found: _Evaluations = []
            if self._rows in self._valid:
                found += model.eval_train(feval)
            if is_evaluated:
                found += model.eval_valid(feval)
            stop: Optional[Tuple[int, _Evaluations]] = None
            try:
                for one in after:
                    one(self._env(model, params, number, found))
            except EarlyStopException as error:
                stop = error.best_iteration, list(error.best_score)
            self._history.append(found)
            self._stop = stop
            self._note(Progress(number + 1, False, stop is not None), model)
            session.has_progressed()

    def _note(self, progress: Progress, model: "lightgbm.Booster") -> None:
        """Records this worker's progress, with the state of the callbacks."""
        self._progress, self._iterations = progress, model.current_iteration()
        self._state = self._callbacks.state()


def _text_of(model: Any) -> str:
    """The text of the trees of `init_model`: a Booster, or the name of a file."""
    found = model if isinstance(model, lightgbm.Booster) else lightgbm.Booster(model_file=model)
    return str(found.model_to_string(num_iteration=-1))


def _by_name(evaluations: _Evaluations) -> Dict[str, Dict[str, float]]:
    found: Dict[str, Dict[str, float]] = {}
    for one in evaluations:
        found.setdefault(one[0], {})[one[1]] = one[2]
    return found
