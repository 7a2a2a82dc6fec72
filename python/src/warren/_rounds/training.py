"""The training run of this thread, and the recipients of its reports."""
import contextlib
import functools
import inspect
import itertools
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type

from warren._engine import reporting as _reporting
from warren._frameworks.replacing import replaced
from warren._launch import rank as _rank
from warren._rounds import mlflow_runs as _mlflow_runs
from warren._rounds.sinks import About, Sink

if TYPE_CHECKING:
    from warren._rounds.kubeflow import Poster


class _Watchers(Sink):
    """The displays of dmlc-submit. They take the metrics from the lines that the library prints."""

    def round(self, number: int, of: Optional[int], metrics: Mapping[str, float]) -> None:
        _reporting.progress(number, of, {})


class _TrainJob(Sink):
    """The status of Kubeflow's TrainJob."""

    def __init__(self, poster: "Poster", about: About) -> None:
        self._poster = poster
        self._last: Tuple[int, Optional[int], Mapping[str, float]] = (about.begun, about.begun, {})
        poster.begin()

    def round(self, number: int, of: Optional[int], metrics: Mapping[str, float]) -> None:
        self._last = (number, of, metrics)
        self._poster.report(number, of, metrics)

    def end(self, model: Any) -> None:
        number, of, metrics = self._last
        if model is not None and number != of:  # the training has stopped early
            self._poster.report(number, number, metrics)


def _poster() -> "Optional[Poster]":
    if not os.environ.get("KUBEFLOW_TRAINER_SERVER_URL"):
        return None
    from warren._rounds import kubeflow  # pylint: disable=import-outside-toplevel  # importing it takes time

    return kubeflow.poster()


def _watchers(about: About) -> Optional[Sink]:
    del about
    return _Watchers() if _reporting.wanted() else None


def _train_job(about: About) -> Optional[Sink]:
    poster = _poster()
    return None if poster is None else _TrainJob(poster, about)


#: The functions that make the recipients of a training run's reports on rank 0; each returns None if its recipient does not exist.
SINKS: Tuple[Callable[[About], Optional[Sink]], ...] = (_watchers, _train_job, _mlflow_runs.run_for)


class Place(NamedTuple):
    """This process's rank and the world size. Both may change in an elastic job."""

    rank: Callable[[], int]
    world: Callable[[], int]


class Training:
    """A training run. All ranks report its rounds; rank 0 passes them on."""

    def __init__(self, about: About, place: Place) -> None:
        self._about, self._place = about, place
        self._sinks: Optional[List[Sink]] = None

    def round(self, number: int, metrics: Mapping[str, float], before: Callable[[], Iterable[Tuple[int, Mapping[str, float]]]] = tuple) -> None:
        """Reports the end of a round, counted from 1, with its metrics. `before`, called for the first report of this process, returns the
        earlier rounds and their metrics, which other processes may have reported."""
        if self._place.rank() != 0:
            return
        is_first, sinks = self._sinks is None, self._begun()
        for one in sinks:
            if is_first:
                for earlier, their_metrics in before():
                    one.earlier(earlier, their_metrics)
            one.round(number, self._about.rounds, metrics)

    def end(self, model: Any) -> None:
        """Reports the end of the training, with its model, or with None after a failure."""
        if self._sinks is None and model is None or self._place.rank() != 0:
            return
        for one in self._begun():
            one.end(model)

    def _begun(self) -> List[Sink]:
        if self._sinks is None:
            about = self._about._replace(world=self._place.world())
            self._sinks = [one for one in (make(about) for make in SINKS) if one is not None]
        return self._sinks


_thread = threading.local()
_numbers = itertools.count()


def current() -> Optional[Training]:
    """The training run that this thread is in; None between training runs."""
    found: Optional[Training] = getattr(_thread, "training", None)
    return found


@contextlib.contextmanager
def _inside(training: Training) -> Iterator[None]:
    _thread.training = training
    try:
        yield
    finally:
        _thread.training = None


def reported(library: str, params: Mapping[str, Any], rounds: Optional[int], place: Place, train: Callable[[], Any]) -> Any:
    """Calls `train`, which returns a model, and reports the end of training; `train` reports the rounds. Training inside another training run
    is part of that run."""
    if current() is not None:
        return train()
    training = begun(library, params, rounds, place)
    try:
        with _inside(training):
            model = train()
    except BaseException:
        training.end(None)
        raise
    training.end(model)
    return model


@contextlib.contextmanager
def reporting(library: str, place: Place, modules: Sequence[Any], reporter: Type[Any], make: Callable[[int], Any]) -> Iterator[None]:
    """Within the block, the function `train` of the library's modules reports its rounds in this thread: with the callback of the class
    `reporter` that it is given, or else with make(number of rounds)."""
    def wrap(train: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(train)

        @functools.wraps(train)
        def report(*arguments: Any, **named: Any) -> Any:
            try:
                given = signature.bind(*arguments, **named)
            except TypeError:
                return train(*arguments, **named)  # raises the TypeError for wrong arguments
            callbacks = list(given.arguments.get("callbacks") or ())
            rounds = int(given.arguments.get("num_boost_round", signature.parameters["num_boost_round"].default))
            if not any(isinstance(one, reporter) for one in callbacks):
                given.arguments["callbacks"] = [*callbacks, make(rounds)]
            return reported(library, given.arguments["params"], rounds, place, lambda: train(*given.args, **given.kwargs))
        return report

    with contextlib.ExitStack() as stack:
        for module in modules:
            stack.enter_context(replaced("train", wrap, module))
        yield


def begun(library: str, params: Mapping[str, Any], rounds: Optional[int], place: Place, before: int = 0) -> Training:
    """Returns a training run that begins now, after `before` rounds have already been finished."""
    return Training(About(library, params, rounds, before, next(_numbers)), place)


def progress(number: int, of: Optional[int], metrics: Mapping[str, Any]) -> None:
    """See warren.progress."""
    _reporting.progress(number, of, metrics)
    rank = _rank.last()
    if (os.environ.get("RANK") or "0") == "0" if rank is None else rank == 0:
        poster = _poster()
        if poster is not None:
            poster.report(int(number), None if of is None else int(of), {name: float(value) for name, value in metrics.items()})
