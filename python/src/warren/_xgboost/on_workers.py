"""XGBoost's scikit-learn estimators whose `fit` trains in a job, for warren.xgboost.

`fit` is the library's own: it checks its arguments, finds the classes and the parameters, makes matrices and calls xgboost.train. In this
thread, descriptions of the caller's rows or files replace the matrices, and a job (warren._jobs) replaces the training: its workers receive
their shares of the rows and train together, and rank 0 returns the model. The library sets everything else on the fitted estimator."""
import contextlib
import dataclasses
import functools
import json
import sys
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import xgboost as xgb
import xgboost.sklearn

from warren._frameworks.replacing import replaced
from warren._frameworks.rows import in_known_form, split_arguments
from warren._jobs import fitting as _fitting
from warren._jobs import rows as _job_rows
from warren._jobs import state as _state
from warren._jobs.worker import channel
from warren._xgboost import matrices as _matrices
from warren._xgboost import rows as _rows
from warren._xgboost import vouch as _vouch
from warren._xgboost.elastic import training as _elastic
from warren._xgboost.same_model import training as _same_model
from warren._xgboost.versions import VERSION, collective
from warren.data import _peers, _table

#: The arguments that name columns, in place of arrays, if the rows are in files.
_COLUMNS = ("label", "weight", "qid", "base_margin")
#: The class of a model's categories, if this version of XGBoost has it, for isinstance.
_CATEGORIES: Any = getattr(xgb.core, "Categories", ())


@dataclasses.dataclass
class _Matrix:
    """A data set of the training run, in place of the library's matrix. Either `rows` or `files` is set."""

    options: Dict[str, Any]  #: the other arguments of the matrix
    rows: Optional[_job_rows.Rows] = None
    files: Any = None
    columns: Dict[str, str] = dataclasses.field(default_factory=dict)

    def data(self, ours: "Ours", **options: Any) -> Any:
        """The files as a warren.xgboost.Data."""
        return ours.data(self.files, **self.columns, **self.options, **options)

    def load(self, ours: "Ours", ref: Any, reproducible: bool, quantile: bool) -> Any:
        """Returns a worker's share as a matrix. A collective call."""
        how = {"reproducible": reproducible, "quantile": quantile, **({"ref": ref} if ref is not None and quantile else {})}
        if self.rows is None:
            like = {} if ref is None or quantile else {"categories": getattr(ref, "warren_categories", None) or None}
            return self.data(ours, **how, **like, **_fitting.features_like(getattr(ref, "feature_names", None))).load()
        peers = _peers.current()
        return _matrices.of_rows(self.rows.share(peers.rank, peers.world, channel), peers, {**self.options, **how})


@dataclasses.dataclass
class _Training:
    """The training run, as sent to the workers."""

    params: Dict[str, Any]
    sets: List[_Matrix]  #: the training rows first
    evals: List[Tuple[int, str]]  #: indices into `sets`, and the names of the evaluation sets
    num_boost_round: int
    options: Dict[str, Any]  #: the other arguments of xgboost.train
    reproducible: Any
    finds_classes: bool  #: whether the number of classes must be found in files
    is_elastic: bool  #: whether the job may lose workers
    config: Dict[str, Any]  #: the caller's global configuration of XGBoost
    changing: List[Any]  #: the caller's objects that the callbacks and functions may change


class Ours(NamedTuple):
    """The parts of warren.xgboost that the workers use; this module cannot import it, because it imports this module."""

    communicator: Callable[[], ContextManager[Any]]
    train: Callable[..., Any]
    data: Callable[..., Any]  #: warren.xgboost.Data


def trained(training: _Training, ours: Ours) -> Any:
    """Trains with the other workers. Rank 0 returns the model, the evaluations, the state of callbacks, and the categories of files; the
    others return None."""
    params, options = dict(training.params), dict(training.options)
    evals_result: Dict[str, Any] = {}

    def params_of(labels: Any, peers: _peers.Peers) -> Dict[str, Any]:
        return _parameters_for(_fitting.number_of_classes(labels, peers), params)

    with xgb.config_context(**training.config), _vouch.joining_quietly(), ours.communicator():
        if training.is_elastic and training.reproducible and not any(one.rows for one in training.sets):
            files = [one.data(ours).of_files() for one in training.sets]
            for one in files:  # the labels and weights of the training rows are no features of the evaluation sets
                one.wanted.request = one.wanted.request._replace(without=tuple(training.sets[0].columns.values()))
            model = _elastic.train(_elastic.Task(
                params, files[0], training.num_boost_round, [(files[place], name) for place, name in training.evals],
                training.reproducible == "exact", None, {**options, "evals_result": evals_result},
                params_of if training.finds_classes else None), ours.communicator)
            categories = model.warren_categories
        else:
            is_hist = params.get("tree_method") in (None, "auto", "hist") and params.get("booster") != "gblinear"
            sets: List[Any] = []
            for one in training.sets:
                _check_columns(one, sets)
                sets.append(one.load(ours, sets[0] if sets else None, bool(training.reproducible), is_hist))
            if training.finds_classes:
                params.update(params_of(sets[0].get_label(), _peers.current()))
            model = ours.train(params, sets[0], training.num_boost_round, evals=[(sets[place], name) for place, name in training.evals],
                               reproducible=training.reproducible, evals_result=evals_result, **options)
            categories = getattr(sets[0], "warren_categories", None) if training.sets[0].rows is None else None
        return (model, evals_result, _state.contents(training.changing), categories) if int(collective().get_rank()) == 0 else None


def _check_columns(one: _Matrix, sets: Sequence[Any]) -> None:
    """Raises ValueError if a column of an evaluation set, such as its weights, is a feature of the training rows, sets[0]."""
    known = (sets[0].feature_names or ()) if sets else ()
    for what, name in one.columns.items():
        if name in known:
            raise ValueError(f"column {name!r} is the {what} of an evaluation set, and a feature of the training rows: name it as their "
                             f"{what}, too, or leave it out of the files")


def _parameters_for(classes: int, params: Mapping[str, Any]) -> Dict[str, Any]:
    """The parameters that XGBClassifier derives from the number of classes."""
    if classes == 2:
        return {}
    objective = params.get("objective")
    return {"objective": objective if objective == "multi:softmax" else "multi:softprob", "num_class": classes}


class _Fit(_fitting.Fitting):
    """One call of `fit`: replaces the library's matrices and its training."""

    def __init__(self, estimator: Any, label: Any, train: Callable[[_Training], Any]) -> None:
        """`label`: the labels passed to `fit`. `train`: the function that the workers call."""
        super().__init__(estimator)
        self._estimator, self._label, self._train = estimator, label, train
        self._sets: List[_Matrix] = []
        self._first_row: Any = None  #: a one-row frame with the categories of the training rows, if there are any
        self._continued: Any = None  #: the categories of the model that training continues, in XGBoost's form

    def matrix(self, ref: Any, given: Dict[str, Any]) -> _Matrix:
        """Replaces XGBModel._create_dmatrix, whose arguments are `ref` and `given`."""
        data, estimator = given["data"], self._estimator
        made = {"max_bin": estimator.max_bin, "nthread": estimator.n_jobs}
        if _fitting.is_files(data):
            matrix = self._of_files(data, given)
        else:
            if hasattr(data, "to_frame") and not hasattr(data, "columns"):
                data = data.to_frame()  # a Series
            rows, missing, fields, options = split_arguments({**given, "data": in_known_form(data)})
            has_categories = "category" in map(str, getattr(rows, "dtypes", ()))
            if has_categories and not given.get("enable_categorical", True):
                raise ValueError("the rows have columns of categories: pass enable_categorical=True, or leave these columns out")
            if "weight" in fields and "qid" in fields and estimator.reproducible:
                raise ValueError(_same_model.WEIGHTS_OF_QUERIES)
            if self._first_row is not None:
                rows = _renumbered(rows, self._first_row, "the training rows have" if self._sets else "the model in xgb_model has")
            if isinstance(options.get("feature_types"), _CATEGORIES):
                del options["feature_types"]  # those of the continued model; the types are the frame's
            matrix = _Matrix(options, self.rows.add(_rows_here(rows, missing, fields)))
            if not self._sets and has_categories and self._first_row is None:
                self._first_row = rows.iloc[:1]
        matrix.options.pop("ref", None)
        matrix.options.update({name: value for name, value in made.items() if value is not None})
        self._sets.append(matrix)
        return matrix

    def _of_files(self, data: Any, given: Dict[str, Any]) -> _Matrix:
        columns = _fitting.columns({name: self._label if given.get(name) is _fitting.CLASSES else given.get(name) for name in _COLUMNS})
        if given.get("group") is not None:
            raise TypeError("the rows are in files: name the column of the queries with qid=, in place of group=")
        missing = given.get("missing")
        if missing is not None and not np.isnan(missing):
            raise ValueError(f"missing={missing!r}: the missing values of files are empty ones or NaN")
        options = {name: given[name] for name in ("feature_weights", ) if given.get(name) is not None}
        return _Matrix(options, files=_fitting.named(data), columns=columns)

    def train(self, params: Dict[str, Any], dtrain: _Matrix, num_boost_round: int = 10, *,
              evals: Optional[Sequence[Tuple[_Matrix, str]]] = None, evals_result: Optional[Dict[str, Any]] = None,
              **options: Any) -> "xgb.Booster":
        """Replaces xgboost.train."""
        if not self._sets or dtrain is not self._sets[0]:
            raise RuntimeError(f"{type(self._estimator).__name__}.fit: the training rows are not those of this call; report this error")
        estimator = self._estimator
        if self._continued is not None:  # like the matrices of the workers, which have only codes
            options["xgb_model"] = _with_categories(options["xgb_model"], _NO_CATEGORIES)
        is_elastic = isinstance(estimator.num_workers, (tuple, list))
        is_of_classes = dtrain.rows is None and isinstance(estimator, xgb.XGBClassifier)
        training = _Training(params, self._sets, [(_place(self._sets, one), name) for one, name in evals or ()], num_boost_round,
                             {name: value for name, value in options.items() if value is not None}, estimator.reproducible,
                             is_of_classes and not callable(estimator.objective), is_elastic, xgb.get_config(),
                             _state.reachable(_fitting.functions_of(options)))
        model, found, state, categories = self.run(self._train, training, {**params, **options})
        if evals_result is not None:
            evals_result.update(found)
        _state.take_over(training.changing, state)
        if is_of_classes:
            estimator.n_classes_ = max(2, int(json.loads(model.save_config())["learner"]["learner_model_param"]["num_class"]))
            if training.finds_classes:
                params.update(_parameters_for(estimator.n_classes_, params))
        if categories:
            self._first_row = _frame_with(model, categories)
        if self._first_row is None or VERSION < (3, 1):
            return model
        return _with_categories(model, self._continued or _categories_of(self._first_row))

    def continued(self, inner: Callable[..., Any], rows: Any, model: Any, types: Any) -> Any:
        """Replaces get_model_categories of XGBoost 3.1 and later, which finds the categories of the model that training continues."""
        model, types = inner(rows, model, types)
        if isinstance(model, xgb.Booster) and isinstance(types, _CATEGORIES):
            self._continued = _booster_of(json.loads(model.save_raw("json")))["model"]["cats"]
            self._first_row = _frame_with(model, _decoded(model.feature_names, self._continued))
        return model, types


def _decoded(names: Sequence[str], categories: Dict[str, Any]) -> Dict[str, List[Any]]:
    """Returns the categories of a model, from its JSON, by the names of features."""
    found: Dict[str, List[Any]] = {}
    for name, one in zip(names, categories["enc"]):
        values, ends = one["values"], one.get("offsets")
        if values:
            found[name] = values if ends is None else [bytes(values[begin:end]).decode() for begin, end in zip(ends, ends[1:])]
    return found


def _renumbered(rows: Any, like: Any, others: str) -> Any:
    """Returns the rows with the categories in the order in which `like` has them, as XGBoost 3.1 and later number categories. Raises
    ValueError for other categories, also in another order before version 3.1. `others`: a phrase for the owner of `like`."""
    changed = {}
    columns = dict(zip(_rows.names_of(rows), rows.columns)) if hasattr(rows, "columns") else {}
    for name, own in zip(_rows.names_of(like), like.columns):
        if not hasattr(like[own], "cat") or name not in columns:
            continue
        known, column = list(like[own].cat.categories), rows[columns[name]]
        if not hasattr(column, "cat"):
            raise ValueError(_matrices.other_categories(name, None, others, known))
        values = list(column.cat.categories)
        if values == known:
            continue
        used = {values[code] for code in np.unique(column.cat.codes.to_numpy()) if code >= 0}
        if VERSION < (3, 1) or not used <= set(known):
            raise ValueError(_matrices.other_categories(name, values, others, known))
        changed[columns[name]] = column.cat.set_categories(known)
    if changed:
        rows = rows.copy(deep=False)
        for name, column in changed.items():  # names may be numbers, which `assign` does not take
            rows[name] = column
    return rows


def _frame_with(model: "xgb.Booster", categories: Mapping[str, Sequence[Any]]) -> Any:
    """Returns a one-row frame with the columns and categories of a model trained on files. Without pandas, prints a warning and returns
    None."""
    try:
        import pandas as pd  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("warren: without pandas, the model does not keep the categories of the files: predict with their numbers, in the order of "
              "the files", file=sys.stderr, flush=True)
        return None
    kinds = {"c": None, "int": "int64", "i": "bool"}
    return pd.DataFrame({name: pd.Categorical([categories[name][0]] if len(categories[name]) else [None], categories=list(categories[name]))
                         if name in categories else pd.Series([0], dtype=kinds.get(letter, "float32"))
                         for name, letter in zip(model.feature_names, model.feature_types)})


def _categories_of(frame: Any) -> Any:
    """Returns the categories of `frame`, a pandas DataFrame, in the form in which XGBoost keeps them: those of a small model that is trained
    here."""
    small = xgb.train({"max_depth": 1}, xgb.DMatrix(frame, np.zeros(1), enable_categorical=True), 1)
    return _booster_of(json.loads(small.save_raw("json")))["model"]["cats"]


#: The categories of a model without any, in the same form.
_NO_CATEGORIES: Dict[str, Any] = {"enc": [], "feature_segments": [], "sorted_idx": []}


def _with_categories(model: "xgb.Booster", categories: Any) -> "xgb.Booster":
    """Returns the model with the categories. Since version 3.1, XGBoost keeps categories in the model and uses them to number the categories
    of other frames in predictions. The workers have only seen the codes."""
    whole = json.loads(model.save_raw("json"))
    _booster_of(whole)["model"]["cats"] = categories
    found = xgb.Booster(model_file=bytearray(json.dumps(whole).encode()))
    found.load_config(model.save_config())
    return found


def _booster_of(whole: Dict[str, Any]) -> Dict[str, Any]:
    """The part of a model's JSON that contains the trees."""
    booster: Dict[str, Any] = whole["learner"]["gradient_booster"]
    return booster.get("gbtree", booster)


def _place(sets: Sequence[_Matrix], one: _Matrix) -> int:
    return next(place for place, known in enumerate(sets) if known is one)


def _rows_here(rows: Any, missing: float, fields: Dict[str, Any]) -> _job_rows.RowsHere:
    if isinstance(rows, np.ndarray) and (rows.dtype.hasobject or not _rows.is_array(rows)):
        rows = _rows.table(rows).features  # raises TypeError unless these are numbers
    count = rows.shape[0]
    if hasattr(rows, "tocsr"):
        return _job_rows.rows_of(_rows.table(rows, missing=missing, **fields))

    def part(begin: int, end: int) -> Any:
        return rows.iloc[begin:end] if hasattr(rows, "iloc") else rows[begin:end]

    def features(begin: int, end: int) -> Any:
        return _rows.table(part(begin, end), missing=missing).features
    # A table of all rows without their features.
    whole = _rows.table(np.empty((count, 0), np.float32), **fields)
    like = dataclasses.replace(_rows.table(part(0, 0)), **{name: getattr(whole, name) for name in _table.OF_ROWS})
    return _job_rows.rows_of(like, features, count)


@contextlib.contextmanager
def _in_job(fit: _Fit) -> Iterator[None]:
    """Within the block, and in this thread, the library's `fit` trains in a job."""

    def creating(_: Callable[..., Any]) -> Callable[..., Any]:
        def create(_: Any, ref: Any, **given: Any) -> Any:
            return fit.matrix(ref, given)
        return create

    with contextlib.ExitStack() as stack:
        stack.callback(fit.close)
        stack.enter_context(replaced("_create_dmatrix", creating, xgb.XGBModel))
        stack.enter_context(replaced("train", lambda _: fit.train, xgboost.sklearn))
        if hasattr(xgboost.sklearn, "get_model_categories"):
            stack.enter_context(replaced("get_model_categories", lambda inner: functools.partial(fit.continued, inner), xgboost.sklearn))
        yield


_DOCUMENTATION = """{name} with workers: `fit` trains in a job of dmlc-submit, and everything else is the library's own.

        model = warren.xgboost.{name}(n_estimators=100, num_workers=4)
        model.fit(X, y, eval_set=[(X_valid, y_valid)])
        warren.xgboost.{name}(num_workers=8, cluster="ssh", host_file="hosts").fit("s3://bucket/train/*.parquet", y="label")

    The parameters are those of xgboost.{name}, and:
    - `num_workers`: the number of processes, or (MIN, MAX) of an elastic job. None means no job: the library's own `fit`, in this process.
    - `cluster`, `host_file`, and `job_options`, a dict: options of dmlc-submit as for `warren.run`. By default the workers are on this
      machine, with an equal share of its cores each.
    - `reproducible`: as for `train`; True (the default) makes the model, byte for byte, that of xgboost.{name} alone.

    `fit` takes NumPy arrays, SciPy sparse matrices, and tables of pandas, polars and Arrow; the workers get their shares through shared
    memory on this machine, and otherwise in pieces. Or it takes files, as `load_dmatrix` does, with the names of columns in place of arrays,
    also in `eval_set`; the workers read them. Callbacks and functions run in the workers, and have rank 0's state afterwards, as
    docs/how-to/python.md explains. Raises what the library raises, wherever it does, and JobFailed (warren.run)."""


@functools.lru_cache(maxsize=None)
def estimator(name: str, train: Callable[[_Training], Any]) -> Any:
    """Returns a subclass of one of XGBoost's estimators whose `fit` trains in a job. Each worker of the job calls `train`."""
    base = getattr(xgb, name)

    class OnWorkers(base):  # type: ignore[misc,valid-type]
        """See _DOCUMENTATION."""

        def __init__(self, *, num_workers: Any = None, cluster: Optional[str] = None, host_file: Any = None, reproducible: Any = True,
                     job_options: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.num_workers, self.cluster, self.host_file = num_workers, cluster, host_file
            self.reproducible, self.job_options = reproducible, job_options

        def get_xgb_params(self) -> Dict[str, Any]:
            """The library's parameters, without those of the job."""
            return {name: value for name, value in super().get_xgb_params().items() if name not in _fitting.ARGUMENTS}

        @functools.wraps(base.fit)
        def fit(self, X: Any, y: Any, *more: Any, **named: Any) -> Any:  # pylint: disable=invalid-name
            """Fits the model as the library's own estimator does, on workers if they were requested."""
            if not _fitting.is_wanted(self, X):
                return super().fit(X, y, *more, **named)
            if self.reproducible and VERSION < (2, 1):
                raise ValueError(f"reproducible=True needs XGBoost 2.1; found {xgb.__version__}: pass reproducible=False")
            with _in_job(_Fit(self, y, train)):
                is_stand_in = _fitting.is_files(X) and issubclass(base, xgb.XGBClassifier)
                return super().fit(X, _fitting.CLASSES if is_stand_in else y, *more, **named)

    OnWorkers.__name__ = OnWorkers.__qualname__ = base.__name__
    OnWorkers.__module__ = "warren.xgboost"  # the module from which pickle imports the class
    OnWorkers.__doc__ = _DOCUMENTATION.format(name=base.__name__)
    return OnWorkers
