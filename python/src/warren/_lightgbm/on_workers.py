"""LightGBM's scikit-learn estimators whose `fit` trains in a job, for warren.lightgbm.

`fit` is the library's own. In this thread, its data sets become descriptions of the caller's rows, and its training a job (warren._jobs),
whose workers take their shares of the rows and train together; rank 0's model comes back."""
import contextlib
import dataclasses
import functools
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import lightgbm
import lightgbm.sklearn
import numpy as np
from numpy.typing import NDArray

from warren._frameworks.replacing import replaced
from warren._frameworks.rows import in_known_form, split_arguments
from warren._jobs import fitting as _fitting
from warren._jobs import rows as _job_rows
from warren._jobs.worker import channel
from warren.data._table import OF_ROWS, Table

#: The first version whose callbacks are objects, whose state can come back.
_FIRST = 4


#: The categories of a column, and whether they are ordered: LightGBM takes those that are for numbers.
_Categories = Tuple[List[Any], bool]


class _Dataset:
    """A data set of the training, where the library has its Dataset. The library looks at its attributes after the training."""

    def __init__(self, rows: _job_rows.Rows, categories: Dict[str, "_Categories"], options: Dict[str, Any]) -> None:
        self.rows, self.categories, self.options = rows, categories, options
        self._has_non_default_feature_names = False

    def load(self, rank: int, world: int, params: Dict[str, Any]) -> "lightgbm.Dataset":
        """Returns a worker's share."""
        table = self.rows.share(rank, world, channel)
        features = table.features
        if table.names is not None:
            features = _frame(features, table.names, self.categories)
        found = {"label": table.label, "weight": table.weight, "group": table.group_sizes, "init_score": table.base_margin}
        dataset = lightgbm.Dataset(features, **{name: value for name, value in found.items() if value is not None},
                                   **{**self.options, "params": params})
        dataset.warren_is_share = True  # its rows are not compared with those of the others
        return dataset

    def set_has_names(self, has_names: bool) -> None:
        """Takes over what the library sets when it reads the features."""
        self._has_non_default_feature_names = has_names


@dataclasses.dataclass
class _Training:
    """What the workers train."""

    params: Dict[str, Any]
    sets: List[_Dataset]  #: the training rows first
    valid: List[int]  #: places in `sets`
    options: Dict[str, Any]  #: the other arguments of lightgbm.train


class Ours(NamedTuple):
    """What the workers use of warren.lightgbm, which imports this module."""

    communicator: Callable[[], ContextManager[None]]
    parameters: Callable[[], Dict[str, Any]]
    place: Callable[[], Tuple[int, int]]  #: the rank and the number of workers


def trained(training: _Training, ours: Ours) -> Any:
    """Trains with the other workers. Rank 0 returns the model, the callbacks, and whether the features have names; the others return
    None."""
    with ours.communicator():
        rank, world = ours.place()
        params = {**training.params, **ours.parameters(), **_learner(training.params)}
        sets = [one.load(rank, world, params) for one in training.sets]
        model = lightgbm.train(params, sets[0], valid_sets=[sets[place] for place in training.valid], **training.options)
        if rank == 0:
            return model, training.options["callbacks"], getattr(sets[0], "_has_non_default_feature_names", False)
    return None


def _learner(params: Dict[str, Any]) -> Dict[str, Any]:
    """The tree learner that the caller has chosen."""
    chosen = params.get("tree_learner")
    return {} if chosen in (None, "serial") else {"tree_learner": chosen}


class _Fit(_fitting.Fitting):
    """One call of `fit`: what becomes of the library's data sets and of its training."""

    def __init__(self, estimator: Any, train: Callable[[_Training], Any]) -> None:
        """`train`: what the workers call."""
        super().__init__(estimator)
        self._sets: List[_Dataset] = []
        self._estimator, self._train = estimator, train

    def dataset(self, data: Any, **given: Any) -> _Dataset:
        """Takes the arguments of lightgbm.Dataset."""
        given.pop("params", None)
        margin = given.pop("init_score", None)
        rows, _, fields, options = split_arguments({**given, "data": in_known_form(data), "base_margin": margin,
                                                    "weight": None, "missing": None})
        if given.get("weight") is not None:
            fields["weight"] = given["weight"]  # a weight for each row, also with queries
        fields = {name: np.asarray(value) for name, value in fields.items()}
        margin = fields.get("base_margin")
        if margin is not None and margin.ndim == 1 and rows.shape[0] and len(margin) != rows.shape[0] and len(margin) % rows.shape[0] == 0:
            fields["base_margin"] = margin.reshape(-1, rows.shape[0]).T  # LightGBM's own order: class by class
        wrong = next((name for name, value in fields.items() if len(value) != rows.shape[0]), None)
        if wrong is not None:
            wrong_name = {"base_margin": "init_score"}.get(wrong, wrong)
            raise ValueError(f"{wrong_name} has {len(fields[wrong])} values, and there are {rows.shape[0]} rows")
        described, categories = _rows_here(rows, fields)
        dataset = _Dataset(self.rows.add(described), categories, options)
        self._sets.append(dataset)
        return dataset

    def train(self, params: Dict[str, Any], train_set: _Dataset, valid_sets: Optional[Sequence[_Dataset]] = None,
              callbacks: Optional[List[Any]] = None, **options: Any) -> "lightgbm.Booster":
        """Takes the place of lightgbm.train."""
        if self._estimator.n_jobs is None:
            params = {name: value for name, value in params.items() if name != "num_threads"}  # each worker has its share of the cores
        training = _Training(params, self._sets, [self._sets.index(one) for one in valid_sets or ()],
                             {**options, "callbacks": callbacks or []})
        model, remote, has_names = self.run(self._train, training)
        _fitting.take_over(callbacks or [], remote)
        train_set.set_has_names(has_names)
        return model


def _rows_here(rows: Any, fields: Dict[str, NDArray[Any]]) -> Tuple[_job_rows.RowsHere, Dict[str, _Categories]]:
    """Describes rows, with the precision that they have here, and the categories of their columns."""
    of_rows = {name: fields.get(name) for name in OF_ROWS}
    if not hasattr(rows, "iloc"):
        return _job_rows.rows_of(Table(rows, None, None, **of_rows, categories={}), count=rows.shape[0]), {}
    names = [str(name) for name in rows.columns]
    categories = {name: (rows.iloc[:, place].cat.categories.tolist(), bool(rows.iloc[:, place].cat.ordered))
                  for place, name in enumerate(names) if hasattr(rows.iloc[:, place], "cat")}
    for place, name in enumerate(names):
        if name not in categories and getattr(rows.dtypes.iloc[place], "kind", "O") not in "biuf":
            raise ValueError(f"column {name!r} is {rows.dtypes.iloc[place]}, expected numbers, booleans or categories")

    def features(begin: int, end: int) -> NDArray[Any]:
        part = rows.iloc[begin:end]
        found = np.empty(part.shape, np.float64)
        for place, name in enumerate(names):
            column = part.iloc[:, place]
            if name in categories:
                codes = column.cat.codes.to_numpy()
                found[:, place] = np.where(codes < 0, np.nan, codes)
            else:
                found[:, place] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return found
    like = Table(features(0, 0), names, None, **of_rows, categories={})
    return _job_rows.rows_of(like, features, len(rows)), categories


def _frame(features: NDArray[Any], names: Sequence[str], categories: Dict[str, _Categories]) -> Any:
    """A frame of pandas, whose categories LightGBM keeps in the model."""
    import pandas as pd  # pylint: disable=import-outside-toplevel

    frame = pd.DataFrame(np.asarray(features), columns=list(names))
    for name, values in categories.items():
        codes = frame[name].to_numpy()
        frame[name] = pd.Categorical.from_codes(np.where(np.isnan(codes), -1, codes).astype(np.int64), categories=values[0], ordered=values[1])
    return frame


@contextlib.contextmanager
def _in_job(fit: _Fit) -> Iterator[None]:
    """Within the block, and in this thread, the library's `fit` trains in a job."""
    with contextlib.closing(fit), replaced("Dataset", lambda _: fit.dataset, lightgbm.sklearn), \
            replaced("train", lambda _: fit.train, lightgbm.sklearn):
        yield


_DOCUMENTATION = """{name} with workers: `fit` trains in a job of dmlc-submit, and everything else is the library's own.

        model = warren.lightgbm.{name}(n_estimators=100, num_workers=4)
        model.fit(X, y, eval_set=[(X_valid, y_valid)])

    The parameters are those of lightgbm.{name}, and:
    - `num_workers`: the number of processes. None means no job: the library's own `fit`, in this process.
    - `cluster`, `host_file`, and `job_options`, a dict: options of dmlc-submit as for `warren.run`. By default the workers are on this
      machine, with an equal share of its cores each.

    `fit` takes NumPy arrays, SciPy sparse matrices, and tables of pandas, polars and Arrow; the workers get their shares through shared
    memory on this machine, and otherwise in pieces. The model of several workers differs a little from that of one process, as LightGBM's
    always does. Metrics are means over the rows of all workers. Callbacks have rank 0's state afterwards. Needs LightGBM 4. Raises what the
    library raises, wherever it does, and JobFailed (warren.run)."""


@functools.lru_cache(maxsize=None)
def estimator(name: str, train: Callable[[_Training], Any]) -> Any:
    """Returns the class of one of LightGBM's estimators whose `fit` trains in a job, in which each worker calls `train`."""
    base = getattr(lightgbm, name)

    class OnWorkers(base):  # type: ignore[misc,valid-type]
        """See _DOCUMENTATION."""

        def __init__(self, *, num_workers: Any = None, cluster: Optional[str] = None, host_file: Any = None,
                     job_options: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.num_workers, self.cluster, self.host_file, self.job_options = num_workers, cluster, host_file, job_options

        def _process_params(self, stage: str) -> Dict[str, Any]:
            return {name: value for name, value in super()._process_params(stage).items() if name not in _fitting.ARGUMENTS}

        @classmethod
        def _get_param_names(cls) -> List[str]:
            return sorted({*super()._get_param_names(), *base._get_param_names()})

        @functools.wraps(base.fit)
        def fit(self, X: Any, y: Any, *more: Any, **named: Any) -> Any:  # pylint: disable=invalid-name
            """Fits the model as the library's own estimator does, with workers if there are any."""
            if not _fitting.is_wanted(self):
                return super().fit(X, y, *more, **named)
            if int(lightgbm.__version__.split(".", maxsplit=1)[0]) < _FIRST:
                raise RuntimeError(f"{type(self).__name__} with workers needs LightGBM {_FIRST}; found {lightgbm.__version__}")
            if isinstance(self.num_workers, (tuple, list)):
                raise ValueError("num_workers: LightGBM cannot go on without a lost worker; give one number")
            with _in_job(_Fit(self, train)):
                return super().fit(X, y, *more, **named)

    OnWorkers.__name__ = OnWorkers.__qualname__ = base.__name__
    OnWorkers.__module__ = "warren.lightgbm"  # where pickle looks for it
    OnWorkers.__doc__ = _DOCUMENTATION.format(name=base.__name__)
    return OnWorkers
