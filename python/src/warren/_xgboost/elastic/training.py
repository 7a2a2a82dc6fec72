"""One elastic training run, across all generations of the job's workers, or in a process without a job."""
import functools
import inspect
import os
import pathlib
import socket
from typing import Any, Callable, ContextManager, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import xgboost as xgb

from warren._elastic import session as _session
from warren._elastic import shares as _shares
from warren._elastic.callbacks import State
from warren._elastic.rows import number_of_shares
from warren._elastic.session import Progress, Session
from warren._frameworks.replacing import replaced
from warren._launch.membership import is_elastic
from warren._rounds import sinks as _sinks
from warren._rounds import training as _rounds
from warren._xgboost import digest as _digest
from warren._xgboost import hooks as _hooks
from warren._xgboost import matrices as _matrices
from warren._xgboost.checkpoint import Checkpoint, Saved
from warren._xgboost.elastic import saved as _saved
from warren._xgboost.elastic.callbacks import Callbacks, lengths_of, shorten
from warren._xgboost.elastic.rows import Asked, Rows
from warren._xgboost.elastic.saved import Checkpoints
from warren._xgboost.same_model import cuts as _cuts
from warren._xgboost.same_model import generator as _generator
from warren._xgboost.same_model import training as _same_model
from warren._xgboost.same_model.alone import alone
from warren._xgboost.versions import LIBRARY, collective, peers_of_job
from warren.data._peers import Peers, together

#: The parameters that make XGBoost sample rows or columns if they are less than 1. `booster=dart` draws trees.
_DRAWS = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")


class Kept(NamedTuple):
    """The result of a training run."""

    model: bytes
    history: Dict[str, Any]  #: the values of each evaluation set and metric
    states: Any  #: the result of Callbacks.state at the end
    categories: Dict[str, Any]  #: the values of categorical features
    params: Dict[str, Any]  #: the result of Task.params_of; empty without one


class Task(NamedTuple):
    """The arguments of warren.xgboost.train."""

    params: Mapping[str, Any]
    data: Asked
    num_boost_round: int
    evals: Sequence[Tuple[Asked, str]]  #: the training rows are the same object as `data`
    is_exact: bool
    checkpoints: Optional[Checkpoints]
    options: Dict[str, Any]  #: the other arguments of xgboost.train
    #: Returns additional parameters, which depend on the labels of all workers. A collective call, whose result is passed on to later
    #: workers.
    params_of: Optional[Callable[[Any, Peers], Dict[str, Any]]] = None

    def ended(self, kept: Kept) -> "xgb.Booster":
        """Fills the caller's `evals_result`, if there is one, and returns the model."""
        if self.options.get("evals_result") is not None:
            self.options["evals_result"].update(kept.history)
        model = xgb.Booster({**self.params, **kept.params}, model_file=bytearray(kept.model))
        model.warren_categories = kept.categories
        return model


class _Common(NamedTuple):
    """The values that the first generation computes and all later workers need."""

    categories: Dict[str, Any]
    ends: Any  #: `ends` and `values` are the fields of a _cuts.Values
    values: Any
    intercept: Optional[str]
    files: List[List[Tuple[str, int, int]]]  #: the result of Rows.files for each data set
    host: str  #: the host on which `files` was listed
    run: Optional[Dict[str, Any]]  #: the description of the training, if it has checkpoints
    params: Optional[Dict[str, Any]]  #: the result of Task.params_of


def is_in_job() -> bool:
    """Whether this process has joined an elastic job."""
    return _session.current(LIBRARY) is not None


def _draws_of(params: Mapping[str, Any]) -> List[str]:
    """The names of the parameters that cause random draws."""
    names = [name for name in _DRAWS if params.get(name) is not None and float(params[name]) != 1]
    return [*names, "booster=dart"] if params.get("booster") == "dart" else names


def say(words: str) -> None:
    """Prints a message for the user, on rank 0 only."""
    if collective().get_rank() == 0:
        _sinks.say(words)


def train(task: Task, communicator: Callable[[], ContextManager[Any]]) -> "xgb.Booster":
    """See warren.xgboost.train, with elastic=True. `communicator` returns the context that joins and leaves the job."""
    _same_model.check(task.params)
    _require_options(task.options)
    if isinstance(task.options.get("xgb_model"), xgb.Booster):
        raise ValueError("elastic=True: xgb_model is a Booster, which brings parameters along that a worker in another one's place would not have: "
                         "give its save_raw() or its file, and all parameters in params")
    if is_elastic() and not is_in_job():
        with communicator():
            return _reported(task)
    workers = os.environ.get("DMLC_NUM_WORKER", "1")
    if not is_in_job() and (collective().get_world_size() > 1 or (workers.isdigit() and int(workers) > 1)):
        raise RuntimeError("elastic=True needs a job that may lose workers: start it with dmlc-submit --num-workers MIN:MAX")
    return _reported(task)


def _reported(task: Task) -> "xgb.Booster":
    return _rounds.reported("xgboost", task.params, task.num_boost_round, _hooks.PLACE, lambda: _train(task, _session.current(LIBRARY)))


def _train(task: Task, session: Optional[Session]) -> "xgb.Booster":
    training = _Training(task)
    draws = [name for name in _draws_of(task.params) if name != "subsample"]
    if draws and not _generator.is_known() and (session is not None or task.checkpoints is not None):
        say(f"elastic=True: XGBoost {xgb.__version__} draws random numbers ({', '.join(draws)}) from generators that a new worker cannot set: "
            "the model will depend on when workers are lost, and where a checkpoint is gone on from")
    if any(one.is_checked for one in (task.data, *(data for data, _ in task.evals))):
        say("elastic=True: --check-data and check=True show no table: workers read their shares when they need them")
    if os.environ.get("WARREN_CHECK_SUMS") and session is not None:
        say("WARREN_CHECK_SUMS: only the rounds since the last change of workers are judged")
    if session is None:
        return task.ended(training.run(peers_of_job(), None))

    ours: Session = session
    return task.ended(Kept(*ours.trained(peers_of_job, lambda peers: training.run(peers, ours), lambda kept: training.take(Kept(*kept)))))


class _Training:
    """A training run in this process; it keeps its state from one generation to the next."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._count = count = number_of_shares()
        self._rows = Rows(task.data, count)
        self._evals = [(self._rows if one is task.data else Rows(one, count), name) for one, name in task.evals]
        self._all_rows = list({id(one): one for one in (self._rows, *(rows for rows, _ in self._evals))}.values())
        self._params = params = dict(task.params)
        self._draws = False  # whether random numbers are drawn and XGBoost exposes the generator's state
        self._how = _cuts.How(int(params.get("max_bin") or _matrices.DEFAULT_BINS), int(params.get("nthread") or 0))
        self._common: Optional[_Common] = None
        self._progress = Progress()
        self._has_begun = False
        self._model: Any = None
        self._callbacks = Callbacks(task.options)
        self._container: Any = None
        # The callbacks' state at _progress: a callback may fail in the middle of a round, which other callbacks have already counted.
        self._state: Optional[State] = None
        self._random = ""  # the state of the model's random number generator at _progress, if _draws

    def run(self, peers: Peers, session: Optional[Session]) -> Kept:
        """Trains with the workers of this generation. `session`: None outside an elastic job. Raises Change when Session.at_boundary does,
        and the error of a collective call when a worker is lost."""
        self._know_what_is_common(peers)
        self._hold_shares(peers, session)
        self._know_params(peers)
        task = self._task
        evals = [(rows.matrix, name) for rows, name in self._evals]
        assert self._common is not None
        known = {name: value for name, value in task.options.items() if name in ("obj", "xgb_model")}
        found = _same_model.prepared(self._params, self._rows.matrix, task.num_boost_round, evals, task.is_exact, known, peers,
                                     self._common.intercept)
        self._common = self._common._replace(intercept=found.intercept)
        # The caller's callbacks may set parameters that cause random draws.
        self._draws = _generator.is_known() and (self._callbacks.any_of_caller or bool(_draws_of(found.effective)))
        self._describe(evals, peers)
        with _saved.opened(task.checkpoints, self._common.run, peers) as checkpoint:
            self._take_newest_state(found, evals, peers, checkpoint)
            with found.training(peers, self._callbacks.any_of_caller), replaced("set_param", self._callbacks.recording(self._model), xgb.Booster):
                self._train(found, evals, peers, session, checkpoint)
            model = self._container.after_training(self._model)
            kept = Kept(_bytes_of(found.ended(model)), self._history(), self._callbacks.state(), self._common.categories,
                        self._common.params or {})
            if checkpoint is not None and peers.rank == 0:
                checkpoint.remove()
            return kept

    def _history(self) -> Dict[str, Dict[str, Any]]:
        """The values of each evaluation set and metric."""
        return {name: dict(of_one) for name, of_one in self._container.history.items()}

    def take(self, kept: Kept) -> None:
        """Sets the callbacks of this process to their state at the end of a training run that other workers have completed."""
        self._callbacks.restore(kept.states)

    # --- rows ---------------------------------------------------------------------------------------------------------------------------

    def _know_what_is_common(self, peers: Peers) -> None:
        """Computes the categories and cuts, or receives the common values from the worker that has the most of them."""
        ours = self._common
        later = (ours.params, ours.intercept, ours.run) if ours is not None else ()
        knows = peers.allgather(0 if ours is None else 1 + sum(one is not None for one in later))
        if any(knows):
            told = peers.broadcast(tuple(self._common) if self._common else None, knows.index(max(knows)), objects=True)
            self._common = _Common(*told)
            return
        self._rows.open_together(peers)
        found = self._rows.cuts(peers, self._how)
        for rows in self._all_rows[1:]:
            together(peers, functools.partial(rows.open_alone, self._rows.categories))
        self._common = _Common(*peers.broadcast((self._rows.categories, found.ends, found.values, None,
                                                 [rows.files() for rows in self._all_rows], socket.gethostname(), None, None), 0,
                                                objects=True))

    def _hold_shares(self, peers: Peers, session: Optional[Session]) -> None:
        """Reads the shares that are now assigned to this worker, unless it already holds exactly these. Raises Change as Session.read_rows
        does."""
        assert self._common is not None
        common = self._common
        held = peers.allgather(self._rows.held if all(rows.matrix is not None for rows in self._all_rows) else [])
        mine = _shares.dealt(held, self._count)[peers.rank]
        cuts = _cuts.Values(np.asarray(common.ends), np.asarray(common.values))

        def load(check: Callable[[], None]) -> None:
            for rows, files in zip(self._all_rows, common.files):
                if rows.matrix is None or rows.held != mine:
                    rows.open_unchanged(common.categories, files, common.host)
                    rows.hold(mine, cuts, self._how, self._task.checkpoints is not None and common.run is None, check)

        if session is None:
            load(lambda: None)
        else:
            session.read_rows(peers, load)

    def _know_params(self, peers: Peers) -> None:
        """Adds the parameters that depend on the labels of all workers."""
        assert self._common is not None
        if self._task.params_of is not None:
            if self._common.params is None:
                labels = np.asarray(self._rows.matrix.get_label())
                self._common = self._common._replace(params=self._task.params_of(labels, peers))
            self._params.update(self._common.params or {})

    def _describe(self, evals: Sequence[Tuple[Any, str]], peers: Peers) -> None:
        """Describes the training run for its checkpoints, unless it has none or has already been described."""
        task, common = self._task, self._common
        assert common is not None
        if task.checkpoints is None or common.run is not None:
            return
        options = {name: value for name, value in task.options.items() if name != "callbacks"}
        options["callbacks with states"] = self._callbacks.names()
        if isinstance(options.get("xgb_model"), (str, os.PathLike)):
            options["xgb_model"] = pathlib.Path(options["xgb_model"]).read_bytes()
        if "subsample" in _draws_of(self._params):
            # Rows are sampled by their position in the data set.
            parts = sorted(tuple(part) for of_rank in peers.allgather(self._rows.matrix.warren_order) for part in of_rank)
            options["order of the rows"] = f"{_digest.in_order([(words, count) for _, words, count in parts]):016x}"
        params = {**self._params, "reproducible": "exact" if task.is_exact else True}
        self._common = common._replace(run=_digest.of_training(params, self._rows.matrix, task.num_boost_round, {**options, "evals": evals},
                                                               self._callbacks.all, peers))

    # --- rounds -------------------------------------------------------------------------------------------------------------------------

    def _take_newest_state(self, found: _same_model.Prepared, evals: Sequence[Tuple[Any, str]], peers: Peers,
                           checkpoint: Optional[Checkpoint]) -> None:
        """Makes all workers continue from the newest state that any of them has, or else from the checkpoint, or else from the beginning."""
        all_progress = [Progress(*one) for one in peers.allgather(tuple(self._progress))]
        newest = max(all_progress)
        matrices = [self._rows.matrix, *(matrix for matrix, _ in evals)]
        if newest == Progress():
            saved = self._saved_before(checkpoint, peers)
            if saved is not None:
                more = _saved.More(*saved.more)
                self._go_on(_bytes_of(saved.model), found, matrices, more.history, more.state, more.random, Progress(more.rounds))
            else:
                _same_model.require_same_start(self._task.options, peers)
                self._begin(xgb.Booster(found.params, matrices, model_file=found.options.get("xgb_model")), found, self._state)
            return
        root = all_progress.index(newest)
        ours: Any = None
        if peers.rank == root:
            ours = (_bytes_of(self._model), self._history(), self._state if self._callbacks.any_of_caller else self._callbacks.state(),
                    self._random)
        raw, history, state, random = peers.broadcast(ours, root, objects=True)
        self._go_on(raw, found, matrices, history, state, random, newest)

    def _saved_before(self, checkpoint: Optional[Checkpoint], peers: Peers) -> Optional[Saved]:
        """Returns the state of this training run that an earlier attempt saved, or None."""
        run, where = self._common.run if self._common is not None else None, self._task.checkpoints
        if checkpoint is None or run is None or where is None:
            return None
        found = checkpoint.load(run)
        if found is None and peers.rank == 0:
            _saved.tell_of_others(where, run)
        return found

    def _go_on(self, raw: bytes, found: _same_model.Prepared, matrices: Sequence[Any], history: Mapping[str, Mapping[str, Any]], state: State,
               random: str, progress: Progress) -> None:
        """Continues from this state."""
        self._begin(xgb.Booster(found.params, matrices, model_file=bytearray(raw)), found, state)
        if random:
            _generator.set_state(self._model, random)
        for name, of_one in history.items():
            self._container.history[name] = {metric: list(values) for metric, values in of_one.items()}
        self._note(progress)

    def _begin(self, model: "xgb.Booster", found: _same_model.Prepared, state: Optional[State]) -> None:
        """Continues with this model and, unless `state` is None, with this state of the callbacks. Calls the callbacks' `before_training`,
        but only once in this process."""
        model.num_boosted_rounds()  # the first query of a model is a collective call, which a callback might make on some workers only
        callbacks = [*self._callbacks.all, *(found.options.get("callbacks") or ()), _hooks.Progress(self._task.num_boost_round)]
        self._container = xgb.callback.CallbackContainer(callbacks, metric=self._task.options.get("custom_metric"),
                                                         output_margin=found.has_function)
        self._model = model if self._has_begun else self._container.before_training(model)
        self._has_begun = True
        if state is not None:
            self._callbacks.restore(state)
            self._callbacks.apply_to(self._model)
        self._note(self._progress)

    def _note(self, progress: Progress) -> None:
        """Records this worker's progress, with the states of the callbacks and of the random number generator."""
        self._progress = progress
        if self._callbacks.any_of_caller:
            self._state = self._callbacks.state()
        if self._draws:
            self._random = _generator.state_of(self._model)

    def _train(self, found: _same_model.Prepared, evals: Sequence[Tuple[Any, str]], peers: Peers, session: Optional[Session],
               checkpoint: Optional[Checkpoint]) -> None:
        matrix, container = self._rows.matrix, self._container
        while self._progress.rounds < self._task.num_boost_round:
            done, stops = self._progress.rounds, self._progress.has_stopped
            if not self._progress.is_updated:
                stops = stops or bool(container.before_iteration(self._model, done, matrix, evals))
                # A callback that stops the training may do so on one worker only.
                if session is not None and session.at_boundary(peers, stops) or session is None and stops:
                    return
                self._model.update(matrix, iteration=done, fobj=found.options.get("obj"))
                self._note(self._progress._replace(is_updated=True))
            lengths = lengths_of(container.history)
            try:
                has_stopped = bool(container.after_iteration(self._model, done, matrix, evals))
            except BaseException:
                shorten(container.history, lengths)
                raise
            self._note(Progress(done + 1, False, has_stopped))
            self._save(checkpoint, peers)
            if session is not None:
                session.has_progressed()

    def _save(self, checkpoint: Optional[Checkpoint], peers: Peers) -> None:
        """Saves the state at the end of a round, on rank 0, if a checkpoint is due."""
        rounds, where = self._progress.rounds, self._task.checkpoints
        if (checkpoint is None or where is None or peers.rank != 0 or rounds % where.every != 0 or rounds >= self._task.num_boost_round
                or self._progress.has_stopped):
            return
        state = self._state if self._state is not None else self._callbacks.state()
        _saved.require_plain(state)
        more = _saved.More(rounds, {name: {metric: list(values) for metric, values in of_one.items()} for name, of_one in self._history().items()},
                           state, self._random)
        save = checkpoint.save
        alone(lambda: save(self._model, tuple(more)))


def _bytes_of(model: "xgb.Booster") -> bytes:
    """Returns the serialized model, without the collective call that a model makes when it is not configured yet."""
    return bytes(alone(lambda: model.save_raw("ubj")))


def _require_options(options: Mapping[str, Any]) -> None:
    """Raises TypeError for an option that xgboost.train does not have."""
    known = set(inspect.signature(xgb.train).parameters) - {"params", "dtrain", "num_boost_round", "evals", "feval"}
    for name in options:
        if name not in known:
            raise TypeError(f"train() has no argument {name!r}, nor has xgboost.train")
