"""LightGBM in a job that dmlc-submit started, over Warren's engine: no list of machines, no ports.

    import lightgbm, warren.lightgbm
    with warren.lightgbm.communicator():
        data = warren.lightgbm.load_dataset("train.svm")
        model = lightgbm.train({"objective": "binary", **warren.lightgbm.parameters()}, data, 100)

The same for lightgbm.LGBMClassifier(**warren.lightgbm.parameters()) and its like. Outside a job the same script trains alone.
LightGBM 3.3 and later, as PyPI has it.
"""
import contextlib
import ctypes
import os
import warnings
import weakref
from typing import Any, Callable, Dict, Iterator, List, Union

import lightgbm
import numpy as np

from warren import _native, data, rabit

_TREE_LEARNERS = ("data", "voting")


def get_rank() -> int:
    """From 0; 0 outside of a job."""
    return int(rabit.get_rank())


def get_world_size() -> int:
    """1 outside of a job."""
    return int(rabit.get_world_size())


def parameters(tree_learner: str = "data") -> Dict[str, Any]:
    """What LightGBM's parameters need to have in a job; nothing in a job of one. `tree_learner`: `data` or `voting`. Raises
    ValueError for another: LightGBM's `feature` is for its command line alone, its C functions refuse it."""
    if tree_learner not in _TREE_LEARNERS:
        raise ValueError(f"tree_learner is {tree_learner!r}, expected one of {', '.join(_TREE_LEARNERS)}"
                         + ("; LightGBM trains by features in its command line alone" if tree_learner == "feature" else ""))
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
    """What LightGBM has of a metric (of which data, its name, its value, whether more is better, perhaps more), with another
    value. From 4.7 on the tuple has names."""
    changed = (*evaluation[:2], value, *evaluation[3:])
    return type(evaluation)(*changed) if hasattr(evaluation, "_fields") else changed


def _weight(measured: "lightgbm.Dataset") -> float:
    """Of all rows: how many they are, where they have no weights."""
    weights = measured.get_weight()
    return float(measured.num_data() if weights is None else np.sum(weights, dtype=float))


def _agreed(found: List[Any], weight: float) -> List[Any]:
    """Each metric's mean over the workers, weighted as their rows are: for a metric that is a mean over rows, its value for
    all of them. Bit for bit the same on all workers. A worker without rows has no say."""
    said = np.array([one[2] * weight if weight else 0.0 for one in found] + [weight])
    try:
        total = rabit.allreduce(said, rabit.SUM)
    except RuntimeError as error:
        raise lightgbm.basic.LightGBMError(str(error)) from error
    if total[-1] == 0:
        return found
    return [_with_value(one, float(value / total[-1])) for one, value in zip(found, total)]


@contextlib.contextmanager
def _metrics_of_all() -> Iterator[None]:
    """Every worker sees the same metrics: LightGBM's own are of a worker's rows, and early stopping, which looks at them, would
    end the training of one worker while the others wait for it."""
    name = "_Booster__inner_eval"
    inner: Callable[..., List[Any]] = getattr(lightgbm.Booster, name, None)  # type: ignore[assignment]
    if inner is None:
        warnings.warn(f"LightGBM {lightgbm.__version__} evaluates in a way that is not known: metrics are those of this worker's "
                      "rows, and early stopping may differ between workers", stacklevel=4)
        yield
        return

    weights: "weakref.WeakKeyDictionary[Any, float]" = weakref.WeakKeyDictionary()

    def of_all(self: Any, data_name: str, data_idx: int, feval: Any = None) -> List[Any]:
        found = inner(self, data_name=data_name, data_idx=data_idx, feval=feval)
        measured = self.train_set if data_idx == 0 else self.valid_sets[data_idx - 1]
        if measured not in weights:
            weights[measured] = _weight(measured)
        return _agreed(found, weights[measured]) if found else found

    setattr(lightgbm.Booster, name, of_all)
    try:
        yield
    finally:
        setattr(lightgbm.Booster, name, inner)


@contextlib.contextmanager
def communicator() -> Iterator[None]:
    """Joins the job that dmlc-submit started, and leaves it at the end: what this thread trains in between, with `parameters`,
    is trained by all workers together. Metrics are those of all workers' rows, and so early stopping stops all at once (see
    docs/lightgbm.md for metrics that are no means over rows). Does nothing outside of a job. Errors of other workers, a lost
    one's among them, are LightGBMError."""
    with rabit.context():
        if get_world_size() == 1:
            yield
            return
        library = lightgbm.basic._LIB  # pylint: disable=protected-access
        _check(library.LGBM_NetworkInitWithFunctions(
            ctypes.c_int(get_world_size()), ctypes.c_int(get_rank()), _function("WarrenLightGBMReduceScatter"),
            _function("WarrenLightGBMAllgather")))
        try:
            with _metrics_of_all():
                yield
        finally:
            library.LGBM_NetworkFree()


def load_dataset(uri: Union[str, "os.PathLike[str]"], *, nthread: int = 0, whole: bool = False,
                 **options: Any) -> "lightgbm.Dataset":
    """This worker's share of a data set of LibSVM, libfm or CSV text as a Dataset, with labels, weights and queries, which stay
    whole; all of it where `whole`. `uri` as in docs/data.md, but for a cache. `nthread`:
    that read, 0 for one a core. `options` are passed on to lightgbm.Dataset. How features are binned is agreed on between the
    workers when the Dataset is made. All workers of a job have to call it. Raises ValueError with file, line and column of
    what is wrong."""
    import scipy.sparse  # pylint: disable=import-outside-toplevel

    rank, size = (0, 1) if whole else (get_rank(), get_world_size())

    def greatest(values: Any) -> Any:
        return rabit.allreduce(values, rabit.MAX)

    rows = data.read(uri, rank, size, threads=nthread, allreduce_max=greatest if size > 1 else None)
    if rows.bad_rows > 0:
        warnings.warn(f"{rows.bad_rows} bad rows of {uri} were left out, such as {rows.first_bad_row}", stacklevel=2)
    matrix = scipy.sparse.csr_matrix((rows.values, rows.indices, rows.offsets), shape=(len(rows.offsets) - 1, rows.columns))
    found = {"label": rows.labels, "weight": rows.weights, "group": rows.group_sizes}
    return lightgbm.Dataset(matrix, **{**found, **options})
