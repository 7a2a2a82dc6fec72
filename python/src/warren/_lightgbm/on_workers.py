"""LightGBM's scikit-learn estimators whose `fit` trains in a job, for warren.lightgbm.

`fit` is the library's own. In this thread, descriptions of the caller's rows or files replace its data sets, and a job (warren._jobs)
replaces its training: the workers receive their shares of the rows and train together, and rank 0 returns the model. In place of files, the
library is given small arrays."""
import contextlib
import dataclasses
import functools
import inspect
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import lightgbm
import lightgbm.sklearn
import numpy as np
from lightgbm.basic import _ConfigAliases
from numpy.typing import NDArray

from warren._frameworks.replacing import replaced
from warren._frameworks.rows import in_known_form, split_arguments
from warren._jobs import fitting as _fitting
from warren._jobs import rows as _job_rows
from warren._jobs import state as _state
from warren._jobs.worker import channel
from warren.data import _peers
from warren.data._table import OF_ROWS, Table

#: The first major version whose callbacks are objects, so that their state can be returned.
_FIRST = 4


#: The categories of a column, and whether they are ordered: LightGBM treats ordered categories as numbers.
_Categories = Tuple[List[Any], bool]


class _Dataset:
    """A data set of the training run, in place of the library's Dataset. The library reads its attributes after training."""

    def __init__(self, rows: _job_rows.Rows, categories: Dict[str, "_Categories"], options: Dict[str, Any]) -> None:
        self.rows, self.categories, self.options = rows, categories, options
        self.is_whole = False  #: whether each worker has all rows, which are too few to share
        self._has_non_default_feature_names = False

    def load(self, ours: "Ours", _: Optional["lightgbm.Dataset"], params: Dict[str, Any]) -> "lightgbm.Dataset":
        """Returns a worker's share."""
        rank, world = (0, 1) if self.is_whole else ours.place()
        table = self.rows.share(rank, world, channel)
        features = table.features
        if table.names is not None:
            features = _frame(features, table.names, self.categories)
        found = {"label": table.label, "weight": table.weight, "group": table.group_sizes, "init_score": table.base_margin}
        dataset = lightgbm.Dataset(features, **{name: value for name, value in found.items() if value is not None},
                                   **{**self.options, "params": params})
        dataset.warren_is_share = not self.is_whole  # the workers' shares are not compared
        return dataset

    def set_has_names(self, has_names: bool) -> None:
        """Sets the attribute that the library sets when it reads the features."""
        self._has_non_default_feature_names = has_names


class _Files(_Dataset):
    """A data set of the training run whose rows are in files, which the workers read."""

    def __init__(self, files: Any, columns: Dict[str, str]) -> None:  # pylint: disable=super-init-not-called
        self.files, self.columns, self.options = _fitting.named(files), columns, {}
        self._has_non_default_feature_names = False

    def load(self, ours: "Ours", first: Optional["lightgbm.Dataset"], params: Dict[str, Any]) -> "lightgbm.Dataset":
        """Returns a worker's share, with the features and categories of the training rows, `first`. A collective call."""
        like = {**_fitting.features_like(first.feature_name), "categories": first.warren_categories or None} if first is not None else {}
        return ours.load_dataset(self.files, **self.columns, **self.options, **like, params=params)


@dataclasses.dataclass
class _Training:
    """The training run, as sent to the workers."""

    params: Dict[str, Any]
    sets: List[_Dataset]  #: the training rows first
    valid: List[int]  #: indices into `sets`
    options: Dict[str, Any]  #: the other arguments of lightgbm.train
    finds_classes: bool  #: whether the number of classes must be found in files
    chooses_objective: bool  #: whether the objective follows from the number of classes
    changing: List[Any]  #: the caller's objects that the callbacks and functions may change


class Ours(NamedTuple):
    """The parts of warren.lightgbm that the workers use; this module cannot import it, because it imports this module."""

    communicator: Callable[[], ContextManager[None]]
    parameters: Callable[[], Dict[str, Any]]
    place: Callable[[], Tuple[int, int]]  #: the rank and the number of workers
    load_dataset: Callable[..., "lightgbm.Dataset"]


def trained(training: _Training, ours: Ours) -> Any:
    """Trains with the other workers. Rank 0 returns the model, the state of callbacks, and whether the features have names; the others
    return None."""
    with ours.communicator():
        params = {**training.params, **ours.parameters(), **_learner(training.params)}
        sets: List[Any] = []
        for one in training.sets:
            sets.append(one.load(ours, sets[0] if sets else None, params))
        if training.finds_classes:
            classes = _fitting.number_of_classes(np.asarray(sets[0].get_label()), _peers.current())
            params.update(_parameters_for(classes, params, training.chooses_objective))
        model = lightgbm.train(params, sets[0], valid_sets=[sets[place] for place in training.valid], **training.options)
        if ours.place()[0] == 0:
            return model, _state.contents(training.changing), getattr(sets[0], "_has_non_default_feature_names", False)
    return None


def _learner(params: Dict[str, Any]) -> Dict[str, Any]:
    """The caller's tree learner as a parameter; empty if the caller has not chosen one."""
    chosen = params.get("tree_learner")
    return {} if chosen in (None, "serial") else {"tree_learner": chosen}


#: The metrics for two classes, and those with which LightGBM's estimators replace them if there are more classes.
_OF_MORE_CLASSES = {"binary": "multiclass", "binary_logloss": "multi_logloss", "binary_error": "multi_error"}


def _parameters_for(classes: int, params: Mapping[str, Any], chooses_objective: bool) -> Dict[str, Any]:
    """The parameters that LGBMClassifier derives from the number of classes."""
    if classes == 2:
        return {}
    found = {"num_class": classes, "metric": [_OF_MORE_CLASSES.get(name, name) for name in params["metric"]]}
    return {**found, "objective": "multiclass"} if chooses_objective else found


class _Fit(_fitting.Fitting):
    """One call of `fit`: replaces the library's data sets and its training."""

    def __init__(self, estimator: Any, train: Callable[[_Training], Any]) -> None:
        """`train`: the function that the workers call."""
        super().__init__(estimator)
        self._sets: List[_Dataset] = []
        self._files: List[_Files] = []  #: the files for which the library has not made a Dataset yet
        self._estimator, self._train = estimator, train

    def in_place_of_files(self, given: Mapping[str, Any]) -> Dict[str, Any]:
        """Records the files among the arguments of `fit`. Returns the arguments for the library, with arrays in place of the files. Raises
        TypeError or ValueError for arguments that cannot be combined with files."""
        if self._estimator.class_weight is not None:
            raise ValueError("class_weight: the rows are in files, so their weights are in a column, whose name is sample_weight")
        for name, why in _NOT_OF_FILES.items():
            if given.get(name) not in (None, "auto"):
                raise ValueError(f"{name}: the rows are in files, and {why}")
        self._files.append(_Files(given["X"], _columns(given["y"], *map(given.get, ("sample_weight", "init_score", "group")))))
        self._files[0].options.update({} if given.get("categorical_feature") in (None, "auto") else
                                      {"categorical_feature": given["categorical_feature"]})
        rows, evals = np.zeros((len(_fitting.CLASSES), 1)), []
        for number, (X, y) in enumerate(_pairs(given.get("eval_set"))):
            if not _fitting.is_files(X):
                raise TypeError(f"eval_set has a {type(X).__name__}, and the training rows are in files: so are those of eval_set")
            more = [_one_of(given.get(f"eval_{name}"), number) for name in ("sample_weight", "init_score", "group")]
            of_training = list(map(given.get, ("sample_weight", "init_score", "group")))
            if _fitting.named(X) == self._files[0].files and y == given["y"] and (more == of_training or not any(more)):
                evals.append((rows, _fitting.CLASSES))  # the evaluation set is the training rows
                continue
            self._files.append(_Files(X, _columns(y, *more)))
            evals.append((rows[:], _fitting.CLASSES))
        withheld = {"sample_weight", "init_score", "eval_sample_weight", "eval_init_score", "categorical_feature"}
        return {**{name: value for name, value in given.items() if name not in withheld}, "X": rows, "y": _fitting.CLASSES,
                **({} if given.get("eval_set") is None else {"eval_set": evals})}

    def dataset(self, data: Any, **given: Any) -> _Dataset:
        """Replaces lightgbm.Dataset."""
        if self._files:
            self._sets.append(self._files.pop(0))
            return self._sets[-1]
        given.pop("params", None)
        margin = given.pop("init_score", None)
        rows, _, fields, options = split_arguments({**given, "data": in_known_form(data), "base_margin": margin,
                                                    "weight": None, "missing": None})
        if given.get("weight") is not None:
            fields["weight"] = given["weight"]  # a weight for each row, also with queries
        fields = {name: _numbers(value) for name, value in fields.items()}
        margin = fields.get("base_margin")
        if margin is not None and margin.ndim == 1 and rows.shape[0] and len(margin) != rows.shape[0] and len(margin) % rows.shape[0] == 0:
            fields["base_margin"] = margin.reshape(-1, rows.shape[0]).T  # LightGBM orders the scores class by class
        wrong = next((name for name, value in fields.items() if len(value) != rows.shape[0]), None)
        if wrong is not None:
            wrong_name = {"base_margin": "init_score"}.get(wrong, wrong)
            raise ValueError(f"{wrong_name} has {len(fields[wrong])} values, and there are {rows.shape[0]} rows")
        described, categories = _rows_here(rows, fields)
        dataset, workers = _Dataset(self.rows.add(described), categories, options), self._estimator.num_workers
        if isinstance(workers, (int, np.integer)) and workers > 0:
            dataset.is_whole = dataset.rows.leaves_out_a_rank(int(workers))
        if dataset.is_whole and not self._sets:
            queries = "" if "qid" not in fields else f" in {len(np.unique(fields['qid']))} queries, which stay whole,"
            raise ValueError(f"num_workers={workers}: {rows.shape[0]} rows{queries} do not give each worker a share, and LightGBM cannot train "
                             "without rows: use fewer workers")
        self._sets.append(dataset)
        return dataset

    def train(self, params: Dict[str, Any], train_set: _Dataset, valid_sets: Optional[Sequence[_Dataset]] = None,
              callbacks: Optional[List[Any]] = None, **options: Any) -> "lightgbm.Booster":
        """Replaces lightgbm.train."""
        if self._estimator.n_jobs is None and not any(self._estimator.get_params().get(name) is not None
                                                      for name in _ConfigAliases.get("num_threads") - {"n_jobs"}):
            params = {name: value for name, value in params.items() if name != "num_threads"}  # each worker has its share of the cores
        estimator = self._estimator
        is_of_files = isinstance(train_set, _Files)
        is_of_classes = is_of_files and isinstance(estimator, lightgbm.LGBMClassifier)
        training = _Training(params, self._sets, [self._sets.index(one) for one in valid_sets or ()],
                             {**options, "callbacks": callbacks or []}, is_of_classes and not callable(estimator.objective),
                             estimator.objective is None, _state.reachable(_fitting.functions_of({**params, **options, "callbacks": callbacks})))
        model, state, has_names = self.run(self._train, training, {**params, **options, "callbacks": callbacks})
        _state.take_over(training.changing, state)
        train_set.set_has_names(has_names)
        if is_of_files:
            estimator._n_features = estimator._n_features_in = model.num_feature()
        if is_of_classes:
            _set_classes(estimator, max(2, model.num_model_per_iteration()))
        return model


#: Arguments of `fit` that cannot be given with files, and the reasons.
_NOT_OF_FILES = {
    "feature_name": "the features have the names of their columns",
    "eval_class_weight": "their weights are in a column, whose name is in eval_sample_weight",
    "eval_X": "eval_set takes their names",
    "eval_y": "eval_set takes their names",
}


def _columns(label: Any, weight: Any, margin: Any, queries: Any) -> Dict[str, str]:
    """The names of the columns, as arguments of load_dataset."""
    found = _fitting.columns({"y": label, "sample_weight": weight, "init_score": margin, "group": queries})
    return {{"y": "label", "sample_weight": "weight", "group": "qid"}.get(name, name): value for name, value in found.items()}


def _pairs(eval_set: Any) -> Sequence[Any]:
    return [eval_set] if isinstance(eval_set, tuple) else eval_set or ()


def _one_of(all_sets: Union[None, Sequence[Any], Mapping[int, Any]], number: int) -> Any:
    """The value that LightGBM uses for one evaluation set, from an argument for all of them."""
    if all_sets is None or isinstance(all_sets, Mapping):
        return (all_sets or {}).get(number)
    return all_sets[number] if number < len(all_sets) else None


def _set_classes(estimator: Any, number: int) -> None:
    """Sets the estimator's classes to 0, 1, ..., together with the attributes that it derives from them."""
    classes = np.arange(number)
    estimator._le = lightgbm.sklearn._LGBMLabelEncoder().fit(classes)
    estimator._class_map = {one: one for one in classes}
    estimator._classes, estimator._n_classes = estimator._le.classes_, number
    if estimator.objective is None:
        estimator._objective = "binary" if number == 2 else "multiclass"


def _numbers(values: Any) -> NDArray[Any]:
    """Returns an array of numbers. An array of objects, which other processes cannot map, is converted."""
    found = np.asarray(values)
    return found if found.dtype.kind in "biuf" else found.astype(np.float64)


def _rows_here(rows: Any, fields: Dict[str, NDArray[Any]]) -> Tuple[_job_rows.RowsHere, Dict[str, _Categories]]:
    """Describes rows, without loss of precision, and the categories of their columns. Raises ValueError for columns of other types."""
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
    """Returns a pandas DataFrame. LightGBM stores its categories in the model."""
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
        model.fit("s3://bucket/train/*.parquet", "label", sample_weight="weight", eval_set=[("s3://bucket/valid/*.parquet", "label")])

    The parameters are those of lightgbm.{name}, and:
    - `num_workers`: the number of processes. None means no job: the library's own `fit`, in this process.
    - `cluster`, `host_file`, and `job_options`, a dict: options of dmlc-submit as for `warren.run`. By default the workers are on this
      machine, with an equal share of its cores each.

    `fit` takes NumPy arrays, SciPy sparse matrices, and tables of pandas, polars and Arrow; the workers get their shares through shared
    memory on this machine, and otherwise in pieces. Or it takes files, as `load_dataset` does, with the names of columns in place of arrays,
    also in `eval_set`, and the column of the queries as `group`; the workers read them. An evaluation set with too few rows to share is
    whole in each worker.

    The model of several workers differs a little from that of one process, as LightGBM's always does, though the bins of features are those
    of one process. The metrics auc, average_precision, rmse, ndcg, map, and those that are means over rows, are those of all rows. Others,
    such as auc_mu and metrics that are functions, are means of the workers' values, weighted by their rows.

    Callbacks and functions run in the workers, and have rank 0's state afterwards, as docs/how-to/python.md explains. Needs LightGBM 4. Raises
    what the library raises, wherever it does, and JobFailed (warren.run)."""


@functools.lru_cache(maxsize=None)
def estimator(name: str, train: Callable[[_Training], Any]) -> Any:
    """Returns a subclass of one of LightGBM's estimators whose `fit` trains in a job. Each worker of the job calls `train`."""
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
            """Fits the model as the library's own estimator does, on workers if they were requested."""
            if not _fitting.is_wanted(self, X):
                return super().fit(X, y, *more, **named)
            if int(lightgbm.__version__.split(".", maxsplit=1)[0]) < _FIRST:
                raise RuntimeError(f"{type(self).__name__} with workers needs LightGBM {_FIRST}; found {lightgbm.__version__}")
            if isinstance(self.num_workers, (tuple, list)):
                raise ValueError("num_workers: LightGBM's estimators cannot go on without a lost worker; give one number, or use "
                                 "warren.lightgbm.train(..., elastic=True)")
            if self.get_params().get("reproducible"):
                raise ValueError("reproducible: LightGBM's workers estimate the number of rows of a leaf, so their model is not that of one "
                                 "process; XGBoost's is (warren.xgboost)")
            if any(self.get_params().get(name) for name in ("linear_tree", "linear_trees")):
                raise ValueError("linear_tree: LightGBM's workers train linear trees on their own rows alone, without the others; leave out "
                                 "num_workers")
            job = _Fit(self, train)
            with _in_job(job):
                if _fitting.is_files(X):
                    given = inspect.signature(base.fit).bind(self, X, y, *more, **named).arguments
                    given.pop("self")
                    return super().fit(**job.in_place_of_files(given))
                if any(_fitting.is_files(one) for one, _ in _pairs(named.get("eval_set"))):
                    raise TypeError("eval_set names files, and the training rows are in memory: so are those of eval_set")
                return super().fit(X, y, *more, **named)

    OnWorkers.__name__ = OnWorkers.__qualname__ = base.__name__
    OnWorkers.__module__ = "warren.lightgbm"  # the module from which pickle imports the class
    OnWorkers.__doc__ = _DOCUMENTATION.format(name=base.__name__)
    return OnWorkers
