"""LightGBM in a job started by dmlc-submit, mpirun, srun or torchrun, over Warren's engine: no list of machines, no ports.

    import lightgbm, warren.lightgbm

    with warren.lightgbm.communicator():
        data = warren.lightgbm.load_dataset("train.svm")
        model = lightgbm.train({"objective": "binary", **warren.lightgbm.parameters()}, data, 100)

The same works for lightgbm.LGBMClassifier(**warren.lightgbm.parameters()) and the other estimators. Outside a job the same script trains
alone. `train` loads the rows itself, and can continue when workers are lost. Needs LightGBM 3.3 or later, as distributed on PyPI."""
import contextlib
import os
import sys
import threading
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import lightgbm
import numpy as np

from warren import data, rabit
from warren._elastic import callbacks as _elastic_callbacks
from warren._launch.launched import launched as _launched
from warren._lightgbm import datasets as _datasets
from warren._lightgbm import hooks as _hooks
from warren._lightgbm import network as _network
from warren._lightgbm.elastic import communicator as _elastic_communicator
from warren._lightgbm.elastic import parameters as _elastic_parameters
from warren._lightgbm.elastic import rows as _elastic_rows
from warren._lightgbm.elastic import training as _elastic
from warren.data._columnar.source import shown_uri

#: A stateful callback for elastic training (`train(..., elastic=True)`): `save()` returns the state as a picklable object, and
#: `restore(state)` sets it on a worker that continues from another worker's state. A subclass defines `__call__(env)`, as LightGBM's
#: callbacks do, and may set `order` and `before_iteration`.
ElasticCallback = _elastic_callbacks.Stateful

_TREE_LEARNERS = ("data", "voting")

#: The thread that is inside `communicator`.
_inside: Optional[int] = None
#: The rank and the number of workers at the end of the last communicator that this process has left.
_last: Optional[Tuple[int, int]] = None


def get_rank() -> int:
    """Returns this worker's rank, counted from 0; after `communicator`, the rank that it had; 0 outside a job."""
    return _last[0] if _inside is None and _last is not None else int(rabit.get_rank())


def get_world_size() -> int:
    """Returns the number of workers; after `communicator`, the number at its end; 1 outside a job."""
    return _last[1] if _inside is None and _last is not None else int(rabit.get_world_size())


def report_rounds() -> Any:
    """Returns a callback that reports the rounds of training to anyone who watches the job, and to the Kubeflow TrainJob to which this
    process belongs: `lightgbm.train(params, data, 100, callbacks=[warren.lightgbm.report_rounds()])`. The estimators, and all training inside
    `communicator`, report their rounds without it."""
    return _hooks.ReportRounds()


def parameters(tree_learner: str = "data") -> Dict[str, Any]:
    """Returns the parameters that LightGBM needs inside `communicator`; empty in a job of one worker and outside a job. `tree_learner` is
    `data` or `voting`. Raises ValueError for other learners (LightGBM's `feature` works only on its command line; its C functions refuse it),
    and RuntimeError in a job that has not been joined."""
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
    one communicator: a worker that has left cannot join again, except in an elastic job (`dmlc-submit --num-workers MIN:MAX`), where only
    `train(..., elastic=True)` trains. An error of another worker, or its loss, is raised as a LightGBMError.
    Raises RuntimeError if the job cannot be joined, or has been joined before."""
    global _inside, _last  # pylint: disable=global-statement
    if _inside is not None:
        raise RuntimeError("this process is already inside a communicator: use one communicator around all training")
    try:
        if _elastic_communicator.is_needed():
            with _elastic_communicator.joined():
                _inside = threading.get_ident()
                with _network.reporting(), _elastic_communicator.refusing():
                    yield
                left = int(rabit.get_rank()), int(rabit.get_world_size())
        else:
            with rabit.context():
                _inside = threading.get_ident()
                with _network.reporting(), _network.over_the_job():
                    yield
                left = int(rabit.get_rank()), int(rabit.get_world_size())
        _last = left
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
    cache. All workers use the same codes for categories, and categorical features are marked as such for LightGBM. As in LightGBM, an absent
    value is 0 in LibSVM and libfm, and missing in all other formats. `options` are passed to lightgbm.Dataset. The workers agree on the bins
    of the features when the Dataset is constructed.

    A collective call, inside `communicator`. Raises a ValueError or OSError that names the file, row group, line and column of the problem,
    ValueError if a worker has no rows (unless `whole`), and RuntimeError in a job that has not been joined or that is elastic."""
    _check_joined("load_dataset")
    _datasets.require_one_label(label)
    if _elastic_communicator.session() is not None:
        _elastic_communicator.refuse("load_dataset")
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
            raise ValueError(f"{shown_uri(uri)}: rank {without - 1} of {size} has no rows, and LightGBM cannot train without any: use "
                             "fewer workers")
    dataset = _datasets.of_table(_datasets.as_lightgbm_reads(table, asked), options, parameters())
    dataset.warren_is_share = not whole
    return dataset


class Data:
    """Files that `train` loads: `uri` and `options` are the arguments of `load_dataset`.

        Data("s3://bucket/train/*.parquet", label="y")

    With `whole`, for validation sets, every worker has all rows."""

    def __init__(self, uri: Any, **options: Any) -> None:
        self._uri, self._options = uri, options

    def of_files(self) -> Any:
        """Returns the description of the files for elastic training, for `train`. Raises TypeError or ValueError for options that elastic
        training does not support."""
        return _elastic_rows.asked(self._uri, self._options)

    def load(self, **options: Any) -> "lightgbm.Dataset":
        """Returns this worker's rows as a Dataset. A collective call. `options` apply unless the constructor was given others. Raises the
        errors of `load_dataset`."""
        return load_dataset(self._uri, **{**options, **self._options})


def train(params: Mapping[str, Any], data: Union["lightgbm.Dataset", Data],  # pylint: disable=redefined-outer-name
          num_boost_round: int = 100, valid_sets: Union["lightgbm.Dataset", Data, Sequence[Union["lightgbm.Dataset", Data]], None] = None,
          *, elastic: bool = False, **options: Any) -> "lightgbm.Booster":
    """Trains as `lightgbm.train` does, with `data` in place of its `train_set`, and all of its other arguments (`options`: valid_names,
    feval, init_model, callbacks, ...); loads each `Data`, and adds `parameters()`.

    `elastic`: in a job of dmlc-submit --num-workers MIN:MAX, training continues when workers are lost or join; elsewhere it runs as usual.
    `data` and `valid_sets` are `Data` whose files all workers can read. A loss costs at most the round that it interrupts, and no evaluation
    is missing or repeated. LightGBM's own callbacks, and each `ElasticCallback`, keep their state; parameters set by callbacks stay set.

    All generations of workers use the bins found by the first one. If a lost worker is replaced, and nothing is drawn at random, the model
    was identical, byte for byte, to the one without the loss in every case tried. The model differs from the next round on, and a message
    says so, if training continues with a different number of workers (LightGBM adds in another order, and estimates the number of rows in a
    leaf from other sums), if random numbers are drawn (their generators restart with other seeds), or if LightGBM may have bundled sparse
    features (it then ignores some of their values in training, but not in predictions). docs/how-to/elastic.md shows how to use it, and
    docs/explanation/same-model.md how much predictions differ.

    A collective call. With `elastic`, raises ValueError for what elastic training does not support: dart, rf, linear_tree,
    cegb_penalty_feature_*, keep_training_booster and Datasets in memory; and RuntimeError before LightGBM 4.0. Between elastic training runs,
    and after the last one, a program may make no other collective calls: a worker that joins later would miss them."""
    params = dict(params)
    sets: List[Any] = list(valid_sets) if isinstance(valid_sets, (list, tuple)) else [] if valid_sets is None else [valid_sets]
    if elastic:
        return _train_elastic(params, data, num_boost_round, sets, options)
    if _elastic_communicator.session() is not None:
        _elastic_communicator.refuse("train without elastic=True")
    return _train(params, data, num_boost_round, sets, options)


def _train_elastic(params: Dict[str, Any], rows: Any, num_boost_round: int, valid_sets: List[Any], options: Dict[str, Any]
                   ) -> "lightgbm.Booster":
    if not all(isinstance(one, Data) for one in (rows, *valid_sets)):
        raise ValueError("elastic=True: the rows of a Dataset are in this process, and would be lost with it: give a warren.lightgbm.Data of files")
    _elastic.check(options)
    _elastic_parameters.effective(params, num_boost_round)
    files = {id(one): one.of_files() for one in (rows, *valid_sets)}
    if files[id(rows)].is_whole:
        raise ValueError("elastic=True: whole=True is for validation sets: each training row would count once for each worker")
    if _elastic_communicator.is_needed() and _elastic_communicator.session() is None:
        with communicator():
            return _train_elastic(params, rows, num_boost_round, valid_sets, options)
    session = _elastic_communicator.session()
    if session is None:
        _check_joined("train")
        if get_world_size() > 1 and get_rank() == 0:
            print("warren: elastic=True is without effect: a lost worker ends this job, which has a fixed number of workers; start it with "
                  "dmlc-submit --num-workers MIN:MAX", file=sys.stderr, flush=True)
        return _train(params, rows, num_boost_round, valid_sets, options)
    return _elastic.train(_elastic.Task(params, files[id(rows)], num_boost_round, [files[id(one)] for one in valid_sets], options, parameters),
                          session)


def _train(params: Dict[str, Any], rows: Any, num_boost_round: int, valid_sets: List[Any], options: Dict[str, Any]) -> "lightgbm.Booster":
    from warren._jobs import fitting as _fitting  # pylint: disable=import-outside-toplevel

    _check_joined("train")
    own = parameters(_elastic_parameters.tree_learner(params))
    loaded = {id(rows): rows.load() if isinstance(rows, Data) else rows}
    categories = getattr(loaded[id(rows)], "warren_categories", None) or None
    # LightGBM finds features by their positions, so a validation set has the columns of the training rows, in their order.
    columns = loaded[id(rows)].warren_columns if isinstance(rows, Data) else None
    for one in valid_sets:
        if id(one) not in loaded:
            loaded[id(one)] = one.load(categories=categories, **_fitting.features_like(columns)) if isinstance(one, Data) else one
            if isinstance(one, Data) and isinstance(rows, Data) and loaded[id(one)].warren_columns != columns:
                raise ValueError(_hooks.OTHER_FEATURES)
    model = lightgbm.train({**params, **own}, loaded[id(rows)], num_boost_round,
                           valid_sets=[loaded[id(one)] for one in valid_sets] or None, **options)
    model.warren_categories = categories or {}
    return model


def _check_joined(what: str) -> None:
    """Raises RuntimeError if this process was started as one of several workers and is not inside `communicator`: it would train alone."""
    if _inside is not None:
        return
    workers = os.environ.get("DMLC_NUM_WORKER", "1")
    if os.environ.get("DMLC_TRACKER_URI") and workers != "1":
        raise RuntimeError(f"{what}: this process is one of {workers} workers of a job and has "
                           f"{'left it' if _last else 'not joined it'}; call it inside `with warren.lightgbm.communicator():`")
    found = _launched()
    if found is not None:
        raise RuntimeError(f"{what}: {found.description()} and has {'left' if _last else 'not joined'} their job; call it inside `with "
                           "warren.lightgbm.communicator():`, or set WARREN_BOOTSTRAP=none if they are separate programs")


#: The scikit-learn estimators that train on workers. They are created on demand, so that other programs do not need scikit-learn.
_ESTIMATORS = ("LGBMClassifier", "LGBMRegressor", "LGBMRanker")


def _train_share(training: Any) -> Any:
    """Trains with this worker's share, in each worker of an estimator's job."""
    from warren._lightgbm import on_workers as _on_workers  # pylint: disable=import-outside-toplevel

    return _on_workers.trained(training, _on_workers.Ours(communicator, parameters, lambda: (get_rank(), get_world_size()), load_dataset))


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        why = "; it is lightgbm's own, for rows that this worker has; load_dataset reads this worker's share of files" if hasattr(lightgbm, name) else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why}")
    from warren._lightgbm import on_workers as _on_workers  # pylint: disable=import-outside-toplevel

    return _on_workers.estimator(name, _train_share)
