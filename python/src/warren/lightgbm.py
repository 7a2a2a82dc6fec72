"""LightGBM in a job started by dmlc-submit, mpirun, srun or torchrun, over Warren's engine: no list of machines, no ports.

    import lightgbm, warren.lightgbm

    with warren.lightgbm.communicator():
        data = warren.lightgbm.load_dataset("train.svm")
        model = lightgbm.train({"objective": "binary", **warren.lightgbm.parameters()}, data, 100)

The same works for lightgbm.LGBMClassifier(**warren.lightgbm.parameters()) and the other estimators. Outside a job the same script trains
alone. Needs LightGBM 3.3 or later, as distributed on PyPI."""
import contextlib
import os
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

import lightgbm
import numpy as np

from warren import data, rabit
from warren._launch.launched import launched as _launched
from warren._lightgbm import hooks as _hooks
from warren._lightgbm.network import network as _network

_TREE_LEARNERS = ("data", "voting")

#: The thread that is inside `communicator`, and whether this process has left a communicator.
_inside: Optional[int] = None
_left = False


def get_rank() -> int:
    """Returns this worker's rank, counted from 0; 0 outside a job."""
    return int(rabit.get_rank())


def get_world_size() -> int:
    """Returns the number of workers; 1 outside a job."""
    return int(rabit.get_world_size())


def report_rounds() -> Any:
    """Returns a callback that reports the rounds of a training to those who watch the job, and to the TrainJob of Kubeflow that this
    process is part of: `lightgbm.train(params, data, 100, callbacks=[warren.lightgbm.report_rounds()])`. The estimators, and all trainings
    inside `communicator`, report without it."""
    return _hooks.ReportRounds()


def parameters(tree_learner: str = "data") -> Dict[str, Any]:
    """Returns the parameters that LightGBM needs in a job, inside `communicator`; empty in a job of one worker. `tree_learner` is `data` or
    `voting`. Raises ValueError for other learners (LightGBM's `feature` works only on its command line; its C functions refuse it), and
    RuntimeError in a job that has not been joined."""
    _check_joined("parameters")
    if tree_learner not in _TREE_LEARNERS:
        raise ValueError(f"tree_learner is {tree_learner!r}, expected one of {', '.join(_TREE_LEARNERS)}"
                         + ("; LightGBM supports feature-parallel training only in its command line" if tree_learner == "feature" else ""))
    if get_world_size() == 1:
        return {}
    return {"num_machines": get_world_size(), "tree_learner": tree_learner, "pre_partition": True}


@contextlib.contextmanager
def communicator() -> Iterator[None]:
    """Joins the job started by dmlc-submit, mpirun, srun or torchrun, and leaves it at the end. Everything that this thread trains inside
    the block with `parameters` is trained by all workers together. Metrics cover the rows of all workers, so early stopping stops all
    workers at the same round (see docs/how-to/lightgbm.md for metrics that are not means over rows). Does nothing outside a job. A job has
    one communicator: a worker that has left cannot join again. An error of another worker, or its loss, is raised as a LightGBMError.
    Raises RuntimeError if the job cannot be joined, or has been joined before."""
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
    `init_score` as its `base_margin`: Parquet, Arrow and CSV with named columns, and text as in docs/how-to/data-text.md, but without a
    cache. All workers number categories alike, and LightGBM is told which features are categorical. An absent value is 0 in LibSVM and
    libfm and missing in all other formats, as in LightGBM. `options` are passed to lightgbm.Dataset. The workers agree on the bins of the
    features when the Dataset is constructed.

    All workers of a job call it, inside `communicator`. Raises a ValueError or OSError that names the file, row group, line and column of
    the problem, ValueError if a worker has no rows, and RuntimeError in a job that has not been joined."""
    _check_joined("load_dataset")
    asked = data.Wanted(uri, label=label, weight=weight, qid=qid, base_margin=init_score, features=features, exclude=exclude,
                        categorical=categorical, categories=categories, filters=filters, shuffle=shuffle, format=format,
                        delimiter=delimiter, storage_options=storage_options, nthread=nthread)
    rank, size = get_rank(), get_world_size()
    peers = data.current_peers()
    table = asked.table(peers, check=check, progress=progress, whole=whole)
    if size > 1 and not whole:
        # The highest rank without rows, plus 1; 0 if all ranks have rows.
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


def _check_joined(what: str) -> None:
    """Raises RuntimeError if this process was started as one of several workers and is not inside `communicator`: it would train alone, on
    its share of the job's rows."""
    if _inside is not None:
        return
    workers = os.environ.get("DMLC_NUM_WORKER", "1")
    if os.environ.get("DMLC_TRACKER_URI") and workers != "1":
        raise RuntimeError(f"{what}: this process is one of {workers} workers of a job and has "
                           f"{'left it' if _left else 'not joined it'}; call it inside `with warren.lightgbm.communicator():`")
    found = _launched()
    if found is not None:
        raise RuntimeError(f"{what}: {found.description()} and has {'left' if _left else 'not joined'} their job; call it inside `with "
                           "warren.lightgbm.communicator():`, or set WARREN_BOOTSTRAP=none if they are separate programs")


def _whole_matrix(rows: Any) -> Any:
    """A csr_matrix as a dense float32 array, with NaN for missing entries."""
    matrix = np.full(rows.shape, np.nan, "float32")
    matrix[np.repeat(np.arange(len(matrix)), np.diff(rows.indptr)), rows.indices] = rows.data
    return matrix


#: Scikit-learn's estimators with workers. They are made on demand: other programs need no scikit-learn.
_ESTIMATORS = ("LGBMClassifier", "LGBMRegressor", "LGBMRanker")


def _train_share(training: Any) -> Any:
    """What each worker of an estimator calls."""
    from warren._lightgbm import on_workers as _on_workers  # pylint: disable=import-outside-toplevel

    return _on_workers.trained(training, _on_workers.Ours(communicator, parameters, lambda: (get_rank(), get_world_size()), load_dataset))


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        why = "; it is lightgbm's own, for rows that this worker has; load_dataset reads this worker's share of files" if hasattr(lightgbm, name) else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why}")
    from warren._lightgbm import on_workers as _on_workers  # pylint: disable=import-outside-toplevel

    return _on_workers.estimator(name, _train_share)
