"""LightGBM in a job started by dmlc-submit, mpirun, srun or torchrun, over Warren's engine: no list of machines, no ports.

    import lightgbm, warren.lightgbm

    with warren.lightgbm.communicator():
        data = warren.lightgbm.load_dataset("train.svm")
        model = lightgbm.train({"objective": "binary", **warren.lightgbm.parameters()}, data, 100)

The same works for lightgbm.LGBMClassifier(**warren.lightgbm.parameters()) and the other estimators. Outside a job the same script trains
alone. Needs LightGBM 3.3 or later, as distributed on PyPI."""
import contextlib
import ctypes
import hashlib
import os
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import lightgbm
import numpy as np

from warren import _launched, _native, _same_rows, data, rabit
from warren._replacing import replaced

_TREE_LEARNERS = ("data", "voting")
_INSTEAD = ("give each worker its own rows, with warren.lightgbm.load_dataset for files, or with warren.data.scatter for a DataFrame "
            "that one worker has")

#: The thread that is inside `communicator`, and whether this process has left one.
_inside: Optional[int] = None
_left = False


def get_rank() -> int:
    """Returns this worker's rank, counted from 0; 0 outside a job."""
    return int(rabit.get_rank())


def get_world_size() -> int:
    """Returns the number of workers; 1 outside a job."""
    return int(rabit.get_world_size())


def _check_joined(what: str) -> None:
    """Raises RuntimeError if this process was started as one of several workers and is not inside `communicator`: it would train alone, on
    its share of the job's rows."""
    if _inside is not None:
        return
    workers = os.environ.get("DMLC_NUM_WORKER", "1")
    if os.environ.get("DMLC_TRACKER_URI") and workers != "1":
        raise RuntimeError(f"{what}: this process is one of {workers} workers of a job and has "
                           f"{'left it' if _left else 'not joined it'}; call it inside `with warren.lightgbm.communicator():`")
    found = _launched.launched()
    if found is not None:
        raise RuntimeError(f"{what}: {found.story()} and has {'left' if _left else 'not joined'} their job; call it inside `with "
                           "warren.lightgbm.communicator():`, or set WARREN_BOOTSTRAP=none if they are separate programs")


def parameters(tree_learner: str = "data") -> Dict[str, Any]:
    """Returns the parameters that LightGBM needs in a job, inside `communicator`; empty in a job of one worker. `tree_learner` is `data` or
    `voting`. Raises ValueError for any other (LightGBM's `feature` works only on its command line; its C functions refuse it), and
    RuntimeError in a job that has not been joined."""
    _check_joined("parameters")
    if tree_learner not in _TREE_LEARNERS:
        raise ValueError(f"tree_learner is {tree_learner!r}, expected one of {', '.join(_TREE_LEARNERS)}"
                         + ("; LightGBM supports feature-parallel training only in its command line" if tree_learner == "feature" else ""))
    if get_world_size() == 1:
        return {}
    return {"num_machines": get_world_size(), "tree_learner": tree_learner, "pre_partition": True}


def _function(name: str) -> ctypes.c_void_p:
    return ctypes.cast(getattr(_native.library("librabit.so"), name), ctypes.c_void_p)


def _check(code: int) -> None:
    if code != 0:
        library = lightgbm.basic._LIB  # pylint: disable=protected-access
        raise lightgbm.basic.LightGBMError(library.LGBM_GetLastError().decode(errors="replace"))


def _with_value(evaluation: Any, value: float) -> Any:
    """Returns LightGBM's tuple for a metric (data name, metric name, value, whether higher is better, perhaps more) with another value.
    From 4.7 on it is a named tuple."""
    changed = (*evaluation[:2], value, *evaluation[3:])
    return type(evaluation)(*changed) if hasattr(evaluation, "_fields") else changed


def _weight(measured: "lightgbm.Dataset") -> float:
    """The sum of all rows' weights, or the number of rows if they have no weights."""
    weights = measured.get_weight()
    return float(measured.num_data() if weights is None else np.sum(weights, dtype=float))


def _summed(values: List[float]) -> List[float]:
    try:
        return list(rabit.allreduce(np.array(values), rabit.SUM))
    except RuntimeError as error:
        raise lightgbm.basic.LightGBMError(str(error)) from error


def _number_of(what: Any) -> float:
    """A 32-bit hash of a value. Sums of it over all workers are exact."""
    return float(int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:4], "big"))


def _agreed(data_name: str, found: List[Any], weight: float) -> List[Any]:
    """Returns the mean of each metric over the workers, weighted like their rows: for a metric that is a mean over rows, this is its value
    over all of them. The result is the same on all workers, bit for bit. Raises LightGBMError if the workers evaluate different metrics."""
    names = [data_name, *(one[1] for one in found)]
    *values, total, number = _summed([one[2] * weight for one in found] + [weight, _number_of(names)])
    if number != get_world_size() * _number_of(names):
        raise lightgbm.basic.LightGBMError(f"rank {get_rank()} evaluates {', '.join(names[1:])} of {data_name}, and other workers "
                                           "evaluate different ones: all need the same validation sets, names and metrics, in the same "
                                           "order")
    return [_with_value(one, float(value / total)) for one, value in zip(found, values)]


def _number_of_machines(given: Dict[str, Any]) -> int:
    return int(given.get("num_machines") or given.get("num_machine") or 0)


def _warn_of_what_trains_alone(given: Dict[str, Any]) -> None:
    if _number_of_machines(given) == 0:
        warnings.warn("trains on this worker's rows alone, without the others: its parameters lack warren.lightgbm.parameters()",
                      stacklevel=4)
    elif any(given.get(name) not in (None, False, "false", "False", 0) for name in ("linear_tree", "linear_trees")):
        warnings.warn("LightGBM trains linear trees on this worker's rows alone, without the others", stacklevel=4)


def _check_classes(labels: Any) -> None:
    """Raises ValueError unless all workers have the same classes: LGBMClassifier numbers the classes that it sees."""
    classes = np.unique(np.asarray(labels)).tolist()
    if _summed([_number_of(classes)]) != [get_world_size() * _number_of(classes)]:
        shown = ", ".join(map(repr, classes[:5])) + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")
        raise ValueError(f"rank {get_rank()} has rows of the classes {shown}, and other workers have different ones: LGBMClassifier "
                         "numbers the classes that a worker has, so all workers need rows of each; or number them yourself, and use "
                         "lightgbm.train")


def _sampling(inner: Callable[..., None]) -> Callable[..., None]:
    """Wraps Dataset.__init__ to sample a few rows, which are lost once they have been binned."""
    def make(self: Any, data: Any = None, *more: Any, **named: Any) -> None:  # pylint: disable=redefined-outer-name
        self.warren_sample = _same_rows.sample(data)
        inner(self, data, *more, **named)
    return make


def _look(rows: "lightgbm.Dataset") -> None:
    def word() -> Optional[int]:
        fields = [rows.get_label(), rows.get_weight(), rows.get_group(), rows.get_init_score()]
        if not getattr(rows, "warren_sample", None) and not _same_rows.labels_tell(fields[0]):
            return None
        return _same_rows.digest(rows.num_data(), rows.num_feature(), getattr(rows, "warren_sample", None),
                                 *(None if one is None else np.asarray(one) for one in fields))

    _same_rows.look(lambda values: rabit.allreduce(values, rabit.MAX), get_rank(), get_world_size(), rows.num_data(),
                    getattr(rows, "warren_is_share", False), word, _INSTEAD)


def _noticing(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps Booster.update, which all ranks call for each round, and which makes collective calls itself."""
    def noticing(self: Any, *more: Any, **named: Any) -> Any:
        begins = self.current_iteration() == 0 and self.train_set is not None and _number_of_machines(self.params or {}) > 1
        result = inner(self, *more, **named)
        if begins:
            _look(self.train_set)
        return result
    return noticing


@contextlib.contextmanager
def _for_all_workers() -> Iterator[None]:
    """Makes every worker see the same metrics: LightGBM computes them over a worker's own rows, so early stopping could end the training of
    one worker while the others wait for it. Also warns of features that would train on one worker's rows only."""
    def evaluation(inner: Callable[..., List[Any]]) -> Callable[..., List[Any]]:
        def of_all(self: Any, data_name: str, data_idx: int, feval: Any = None) -> List[Any]:
            found = inner(self, data_name=data_name, data_idx=data_idx, feval=feval)
            measured = self.train_set if data_idx == 0 else self.valid_sets[data_idx - 1]
            return _agreed(data_name, found, _weight(measured)) if found else found
        return of_all

    def making(inner: Callable[..., None]) -> Callable[..., None]:
        def make(self: Any, params: Any = None, train_set: Any = None, *more: Any, **named: Any) -> None:
            if train_set is not None:
                _warn_of_what_trains_alone(params or {})
            inner(self, params, train_set, *more, **named)
        return make

    def fitting(inner: Callable[..., Any]) -> Callable[..., Any]:
        def fit(self: Any, X: Any, y: Any, *more: Any, **named: Any) -> Any:  # pylint: disable=invalid-name
            if self.get_params().get("num_machines", 1) > 1:
                _check_classes(y)
            return inner(self, X, y, *more, **named)
        return fit

    def refitting(_: Callable[..., Any]) -> Callable[..., Any]:
        def refit(*_: Any, **__: Any) -> None:
            raise lightgbm.basic.LightGBMError(
                f"rank {get_rank()}: Booster.refit fits the leaves to this worker's rows alone, and each of the {get_world_size()} workers "
                "would get another model: call it outside of communicator(), in one process that has all rows")
        return refit

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced("__init__", making, lightgbm.Booster))
        stack.enter_context(replaced("__init__", _sampling, lightgbm.Dataset))
        stack.enter_context(replaced("update", _noticing, lightgbm.Booster))
        stack.enter_context(replaced("refit", refitting, lightgbm.Booster))
        if hasattr(lightgbm, "LGBMClassifier"):
            stack.enter_context(replaced("fit", fitting, lightgbm.LGBMClassifier))
        name = "_Booster__inner_eval"
        if hasattr(lightgbm.Booster, name):
            stack.enter_context(replaced(name, evaluation, lightgbm.Booster))
        else:
            warnings.warn(f"LightGBM {lightgbm.__version__} evaluates in an unknown way: metrics are those of this "
                          "worker's rows, and early stopping may differ between workers", stacklevel=4)
        yield


@contextlib.contextmanager
def _network() -> Iterator[None]:
    """Within the block, training on this thread runs over the job's collectives if the job has several workers."""
    if get_world_size() == 1:
        yield
        return
    library = lightgbm.basic._LIB  # pylint: disable=protected-access
    _check(library.LGBM_NetworkInitWithFunctions(
        ctypes.c_int(get_world_size()), ctypes.c_int(get_rank()), _function("WarrenLightGBMReduceScatter"),
        _function("WarrenLightGBMAllgather")))
    try:
        with _for_all_workers():
            yield
    finally:
        library.LGBM_NetworkFree()


@contextlib.contextmanager
def communicator() -> Iterator[None]:
    """Joins the job started by dmlc-submit, mpirun, srun or torchrun, and leaves it at the end. Everything that this thread trains inside
    the block with `parameters` is trained by all workers together. Metrics cover the rows of all workers, so early stopping stops all of
    them at the same round (see docs/how-to/lightgbm.md for metrics that are not means over rows). Does nothing outside a job. A job has one
    communicator: a worker that has left cannot join again. Errors of other workers, including a lost one, are LightGBMErrors. Raises
    RuntimeError if the job cannot be joined, or has been joined before."""
    global _inside, _left  # pylint: disable=global-statement
    if _inside is not None:
        raise RuntimeError("this process is already inside a communicator: use one communicator around all training")
    try:
        with rabit.context():
            _inside = threading.get_ident()
            with _network():
                yield
        _left = True
    finally:
        _inside = None


def _whole_matrix(rows: Any) -> Any:
    """A csr_matrix as a dense float32 array, with NaN for missing entries."""
    matrix = np.full(rows.shape, np.nan, "float32")
    matrix[np.repeat(np.arange(len(matrix)), np.diff(rows.indptr)), rows.indices] = rows.data
    return matrix


def load_dataset(uri: Any, *, label: Any = None, weight: Optional[str] = None, qid: Optional[str] = None, init_score: Any = None,
                 features: Any = None, exclude: Any = None, categorical: Any = None,
                 categories: Optional[Dict[str, Sequence[Any]]] = None, filters: Optional[Sequence[Any]] = None,
                 shuffle: Optional[int] = None, format: Optional[str] = None,  # pylint: disable=redefined-builtin
                 delimiter: Optional[str] = None, storage_options: Optional[Dict[str, Any]] = None, check: Optional[bool] = None,
                 progress: bool = True, nthread: int = 0, whole: bool = False, **options: Any) -> "lightgbm.Dataset":
    """Returns this worker's share of a data set as a Dataset, with labels, weights and queries (a query is never split), or the whole data
    set if `whole`.

        load_dataset("s3://bucket/train/*.parquet", label="y")
        load_dataset("train.svm")

    `uri` and the column arguments (`label` to `storage_options`, `nthread`, `check`, `progress`) are those of warren.data.load, with
    `init_score` as its `base_margin`: Parquet, Arrow and CSV with named columns, and text as in docs/how-to/data-text.md, except for a
    cache. All workers number categories alike, and they are declared to LightGBM. An absent value is 0 in LibSVM and libfm and missing in
    all other formats, as in LightGBM. `options` are passed to lightgbm.Dataset. The workers agree on the bins of the features when the
    Dataset is constructed.

    All workers of a job call it, inside `communicator`. Raises ValueError or OSError that names the file, row group, line and column of the
    problem, ValueError if a worker has no rows, and RuntimeError in a job that has not been joined."""
    _check_joined("load_dataset")
    asked = data.Wanted(uri, label=label, weight=weight, qid=qid, base_margin=init_score, features=features, exclude=exclude,
                        categorical=categorical, categories=categories, filters=filters, shuffle=shuffle, format=format,
                        delimiter=delimiter, storage_options=storage_options, nthread=nthread)
    rank, size = get_rank(), get_world_size()
    peers = data.current_peers()
    table = asked.table(peers, check=check, progress=progress, whole=whole)
    if size > 1 and not whole:
        # The highest rank without rows, plus 1; 0 if all have rows.
        without = int(rabit.allreduce(np.array([0 if len(table) else rank + 1], "int64"), rabit.MAX)[0])
        if without:
            raise ValueError(f"{uri}: rank {without - 1} of {size} has no rows, and LightGBM cannot train without any: use fewer "
                             "workers")
    matrix = table.features
    if asked.is_text and asked.text_format == "csv":
        matrix = _whole_matrix(matrix)
    found: Dict[str, Any] = {"label": table.label, "weight": table.weight, "group": table.group_sizes, "init_score": table.base_margin}
    if table.names is not None:
        found["feature_name"] = table.names
        found["categorical_feature"] = [name for name, kind in zip(table.names, table.types or []) if kind == "c"] or "auto"
    dataset = lightgbm.Dataset(matrix, **{**found, **options, "params": {**parameters(), **(options.get("params") or {})}})
    dataset.warren_categories, dataset.warren_is_share = table.categories, not whole
    return dataset
