"""Any version of XGBoost in a job started by dmlc-submit, mpirun, srun or torchrun.

    import xgboost, warren.xgboost

    with warren.xgboost.communicator():
        model = xgboost.train(params, warren.xgboost.load_dmatrix("train.svm"), 100)

Outside a job, the same script trains alone. From version 2.1 on, XGBoost communicates over Warren's engine if all workers can use it;
`accelerate` does the same for communicators made by other libraries (Dask, Spark)."""
import contextlib
import os
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Union

import xgboost as xgb

from warren import data
from warren._launch import leaving as _leaving
from warren._xgboost import acceleration as _acceleration
from warren._rounds import training as _rounds
from warren._xgboost import communicator as _communicator
from warren._xgboost import hooks as _hooks
from warren._xgboost import versions as _versions
from warren._xgboost import matrices as _matrices
from warren._xgboost import rows as _rows
from warren._xgboost import training as _training
from warren._xgboost.elastic import callbacks as _elastic_callbacks
from warren._xgboost.elastic import rows as _elastic_rows
from warren._xgboost.elastic import saved as _elastic_saved
from warren._xgboost.elastic import training as _elastic
from warren._xgboost.same_model import training as _same_model
from warren.data._exchange import predictions as _predictions

#: A stateful callback for elastic training (`train(..., elastic=True)`): `save()` returns the state, a picklable object, or plain data if
#: the training has checkpoints, and `restore(state)` sets it on a worker that continues from another worker's state. It is a subclass of
#: xgboost.callback.TrainingCallback, and may override the methods of that class, too.
ElasticCallback = _elastic_callbacks.ElasticCallback

#: The checkpoints of elastic training (`train(..., checkpoint=...)`): the `folder`, on a disk or in an object store, the interval `every` in
#: rounds (default: 1), and fsspec's `storage_options` for the store (default: None).
Checkpoints = _elastic_saved.Checkpoints

#: A callback that reports the rounds of training to anyone who watches the job, and to the Kubeflow TrainJob to which this process belongs:
#: `xgboost.train(params, matrix, 100, callbacks=[ReportRounds(100)])`. `train`, the estimators, and all training inside `communicator` report
#: their rounds without it. Needs XGBoost 1.3 or later.
ReportRounds = _hooks.Progress

#: The installed XGBoost's version: (3, 0) for 3.0.5.
VERSION = _versions.VERSION


def in_job() -> bool:
    """Whether this process was started as a worker of a job with a tracker. Raises RuntimeError if DMLC_TRACKER_URI is set without a valid
    DMLC_TRACKER_PORT."""
    return _communicator.in_job()


def init(**arguments: Any) -> None:
    """Joins the job; does nothing outside a job. Processes started by mpirun, srun or torchrun form a job, with a tracker that rank 0 runs,
    unless WARREN_BOOTSTRAP is `none`. `arguments` are passed to XGBoost's own `init`: `dmlc_timeout`, `dmlc_retry`, `dmlc_nccl_path`;
    `dmlc_tracker_uri`, `dmlc_tracker_port` and `dmlc_task_id` name a job whose tracker the environment does not name. A job has one
    communicator: a worker that has left cannot join again, except in an elastic job (`dmlc-submit --num-workers MIN:MAX`). Raises
    RuntimeError if the process has already joined, or if WARREN_XGBOOST_ENGINE=warren cannot be satisfied; to leave the job after such an
    error, call `init` inside `left_in_the_end`."""
    _communicator.join(arguments)


def finalize() -> None:
    """Leaves the job; does nothing outside a job. In `finally`, after an exception, the process leaves when it ends, so that the exception is
    reported before other workers notice that this one has left."""
    if not _leaving.is_after_error():
        _communicator.leave(failed=False)


@contextlib.contextmanager
def left_in_the_end() -> Iterator[None]:
    """Leaves the job, if it was joined, when the block ends. After an exception, including sys.exit with a failure, the failure is reported
    to the tracker (XGBoost 2.1 and later) and the exception propagates."""
    with _communicator.leave_on_exit():
        yield


@contextlib.contextmanager
def communicator(**arguments: Any) -> Iterator[Dict[str, Any]]:
    """Joins the job started by dmlc-submit, mpirun, srun or torchrun, and leaves it at the end; does nothing outside a job. The arguments are
    those of `init`; `with ... as` yields them as a dict.

    After an exception, including sys.exit with a failure, this worker does not count as finished: the failure is reported to the tracker
    (XGBoost 2.1 and later), and the other workers stop."""
    with _communicator.leave_on_exit():
        init(**arguments)
        yield arguments


#: Another name of `communicator`, as in xgboost.collective.
CommunicatorContext = communicator


def engine() -> str:
    """Returns the engine that runs the collectives of this thread's communicator: "warren", or "own" for XGBoost's own."""
    return "warren" if _acceleration.is_on() else "own"


@contextlib.contextmanager
def accelerate(timeout: Optional[float] = None) -> Iterator[None]:
    """Runs the collectives of the block on Warren's engine, in a communicator made elsewhere (by a Dask task, a Spark barrier,
    xgboost.collective.init). All its workers enter and leave the block. If one of them cannot (WARREN_XGBOOST_ENGINE=own, an unknown
    XGBoost), all stay on XGBoost's own engine, and one line on standard error gives the reason. A call waits `timeout` seconds for a worker
    that is alive (None means half an hour; the communicator's `dmlc_timeout` is not known here). Does nothing in a communicator of one
    worker, or before XGBoost 2.1. If a worker is lost, the errors of the others name it. Raises RuntimeError if another worker of the
    communicator has not entered the block."""
    with _acceleration.accelerated(timeout):
        yield


def accelerate_all() -> None:
    """Applies `accelerate` to every communicator that Python makes in this process from now on (xgboost.collective's CommunicatorContext,
    and so those of xgboost.dask and xgboost.spark). All workers of a job must do so, including those started later: in Dask use
    `client.register_plugin(warren.xgboost.dask_plugin())` or `dask worker --preload warren.xgboost`. May be called repeatedly."""
    _acceleration.accelerate_all()


def dask_plugin() -> Any:
    """Returns a plugin for `client.register_plugin` that calls `accelerate_all` in all workers of a Dask cluster, including those that are
    started later or restarted."""
    from warren._xgboost import dask_plugin as _dask_plugin  # pylint: disable=import-outside-toplevel

    return _dask_plugin.AccelerateAll()


def dask_setup(_worker: Any) -> None:
    """The function that `dask worker --preload warren.xgboost` calls: accelerates all communicators of the worker."""
    accelerate_all()


def get_rank() -> int:
    """Returns this worker's rank, counted from 0; after `communicator`, the rank that it had; 0 outside a job."""
    return _communicator.place()[0]


def get_world_size() -> int:
    """Returns the number of workers; after `communicator`, the number at its end; 1 outside a job."""
    return _communicator.place()[1]


def tracker_print(message: Any) -> None:
    """Shows `str(message)` to the user who watches the job. A NUL, which would end the message, is shown as \\x00."""
    module = _versions.collective()
    (module.communicator_print if VERSION >= (1, 7) else module.tracker_print)(str(message).replace("\0", "\\x00"))


def broadcast(value: Any, root: int = 0) -> Any:
    """Returns the object of rank `root` on all ranks. The object is pickled and sealed with the job's token. Raises TypeError on all ranks if
    it cannot be pickled, and RuntimeError if another rank's bytes are not sealed with the token. In a communicator without a token (with
    Dask, Spark, or a third-party tracker) the other processes are trusted: a pickle runs whatever code its sender chose."""
    return _versions.peers_of_job().broadcast(value, root, objects=True)


def load_dmatrix(uri: Any, *, label: Any = None, weight: Optional[str] = None, qid: Optional[str] = None, base_margin: Any = None,
                 features: Any = None, exclude: Any = None, categorical: Any = None,
                 categories: Optional[Dict[str, Sequence[Any]]] = None, filters: Optional[Sequence[Any]] = None,
                 shuffle: Optional[int] = None, format: Optional[str] = None,  # pylint: disable=redefined-builtin
                 delimiter: Optional[str] = None, storage_options: Optional[Dict[str, Any]] = None, quantile: bool = False,
                 external_memory: Union[bool, str, None] = False, cache_dir: Optional[str] = None, check: Optional[bool] = None,
                 progress: bool = True, nthread: int = 0, reproducible: bool = False, **options: Any) -> "xgb.DMatrix":
    """Returns this worker's share of a data set as a DMatrix, with labels, weights and queries.

        load_dmatrix("s3://bucket/train/*.parquet", label="y")
        load_dmatrix("train.svm")

    `uri` and the column arguments (`label` to `storage_options`, `nthread`, `check`, `progress`) are those of warren.data.load: Parquet,
    Arrow and CSV with named columns, and text as in docs/how-to/data-text.md, but without a cache, such as "day1.gz;day2.gz?indexing_mode=1"
    or "table.csv?format=csv&label_column=0". All workers use the same codes for categories. The matrix's `warren_categories` lists the
    categories; pass it as `categories` when you load other rows for the same model.

    `quantile`: makes a QuantileDMatrix (1.7 and later), which takes less memory, for tree_method hist.

    `external_memory`, for Parquet, Arrow and CSV: "auto" chooses the form that fits into the memory of every worker (its part of the host's
    or cgroup's memory): a DMatrix, a QuantileDMatrix built from batches, of which only the bins are kept, or pages on disk in `cache_dir`
    (None means the folder for temporary files). True always uses pages: an ExtMemQuantileDMatrix from XGBoost 3.0 on; earlier versions can
    train on pages only outside a job. Batches are read again for each pass that XGBoost makes.

    `reproducible`: makes a QuantileDMatrix with the cuts that one process would make from the rows of all workers, for `train` with the same
    argument. Parquet and Arrow files are read twice: each worker reads its own rows, and some columns of all rows. Rows of other formats are
    exchanged between the workers. For evaluation sets, `ref=` takes the cuts of another reproducible matrix.

    `options` are passed to the matrix.

    A collective call. Raises a ValueError or OSError that names the file, row group, line and column of the problem."""
    asked = data.Wanted(uri, label=label, weight=weight, qid=qid, base_margin=base_margin, features=features, exclude=exclude,
                        categorical=categorical, categories=categories, filters=filters, shuffle=shuffle, format=format,
                        delimiter=delimiter, storage_options=storage_options, nthread=nthread)
    if reproducible:
        _same_model.require_version()
    peers = data.current_peers()
    matrix = _matrices.load(asked, peers, quantile=quantile, external_memory=external_memory, cache_dir=cache_dir, check=check,
                            progress=progress, reproducible=reproducible, options=options)
    if peers.world > 1:
        _versions.warn_unless_joined()
        _matrices.warn_of_workers_without_rows(uri, matrix.num_row(), len(matrix.get_weight()))
    return matrix


class Data:
    """A data set that `train` loads: files, or rows in memory.

        Data("s3://bucket/train/*.parquet", label="y")
        Data(X, label=y)

    `uri_or_rows`: files, as for `load_dmatrix`, with the arguments of that function. Or this worker's rows: a NumPy array, a SciPy sparse
    matrix, or a pandas, polars or Arrow table with numbers, booleans and categories (the same categories on all workers, as
    `warren.data.scatter` makes them); the data set consists of the rows of all workers, in rank order. Categories become their codes.
    `label`, `weight`, `qid` (the rows of a query are contiguous, on one worker) and `base_margin` are then arrays with an element for each
    row. `options` are those of `load_dmatrix`; for rows in memory, those of QuantileDMatrix."""

    def __init__(self, uri_or_rows: Any, *, label: Any = None, weight: Any = None, qid: Any = None, base_margin: Any = None,
                 **options: Any) -> None:
        self._given, self._options = uri_or_rows, options
        self._fields = {name: value for name, value in (("label", label), ("weight", weight), ("qid", qid), ("base_margin", base_margin))
                        if value is not None}

    @property
    def is_of_files(self) -> bool:
        """Whether the rows are in files rather than in this process."""
        given = self._given
        return isinstance(given, (str, os.PathLike)) or (
            isinstance(given, (list, tuple)) and all(isinstance(one, (str, os.PathLike)) for one in given))

    def of_files(self) -> Any:
        """Returns the description of the files for elastic training, for `train`. Raises TypeError or ValueError for options that elastic
        training does not support."""
        return _elastic_rows.asked(self._given, {**self._fields, **self._options})

    def load(self, **options: Any) -> "xgb.DMatrix":
        """Returns this worker's rows as a matrix. A collective call. `options` apply unless the constructor was given others. Raises the
        errors of `load_dmatrix`, and TypeError or ValueError, on that worker alone, for rows in memory that cannot be used."""
        options = {**options, **self._options}
        if self.is_of_files:
            return load_dmatrix(self._given, **self._fields, **options)
        peers = data.current_peers()
        _rows.require_whole_queries(self._fields.get("qid"), peers)
        missing = options.pop("missing", None)
        table = _rows.table(self._given, **self._fields, **({} if missing is None else {"missing": missing}))
        return _matrices.of_rows(table, peers, options)


def train(params: Mapping[str, Any], data: Union["xgb.DMatrix", Data],  # pylint: disable=redefined-outer-name
          num_boost_round: int = 10, *, evals: Optional[Sequence[Tuple[Union["xgb.DMatrix", Data], str]]] = None,
          reproducible: Union[bool, str] = False, elastic: Optional[bool] = None,
          checkpoint: Union[str, "os.PathLike[str]", Checkpoints, None] = None, **options: Any) -> "xgb.Booster":
    """Trains as `xgboost.train` does, with `data` in place of its `dtrain`, and all of its other arguments (`options`: obj, custom_metric,
    early_stopping_rounds, ...); loads each `Data`.

    `reproducible`: with any number of workers, and however the rows are divided among them, `save_raw` of the model is identical, byte for
    byte, to that of a model trained by one process with these parameters on all rows, and so are the values of each evaluation. `data` is a
    `Data`, or a matrix from `load_dmatrix(..., reproducible=True)`; each of `evals` is a `Data`, such a matrix, or a DMatrix. The workers
    divide the computation of the quantile cuts among themselves; rank 0 estimates the intercept and evaluates, for which it needs memory for
    the labels, weights and predictions of all rows. A custom metric is called on rank 0, with the predictions of all rows and a matrix of
    their labels, weights and queries, without features. `subsample` draws the rows of each round as one process does. Parameters for which
    XGBoost computes something from one worker's rows alone (some objectives, gblinear) raise a ValueError that names them:
    docs/how-to/xgboost.md has the list, docs/explanation/same-model.md the reasons and the costs.

    Gradients are summed as doubles, and the last bits of the sums depend on the order; the difference almost always disappears in the model,
    but there is no guarantee. With reproducible="exact", gradients are rounded so that all sums are exact: by construction, the model is the
    same for any number of workers; it differs slightly from that of xgboost.train. This is implemented for the objectives of squared error,
    logistic, softmax, Poisson, gamma, Tweedie and pseudo-Huber regression, and for the gradients of `obj`; other objectives raise a
    ValueError. With WARREN_CHECK_SUMS=1 in the environment, rank 0 reports after training whether sums may have been rounded.

    `elastic`: in a job of dmlc-submit --num-workers MIN:MAX, training continues when workers are lost or join, and the model is still that of
    one process. Implies `reproducible`. None means True in such a job if `reproducible` is given and all rows are in files. `data` and
    `evals` are `Data` of files that all workers can read. XGBoost's own callbacks keep their state, and so does an `ElasticCallback`. Random
    draws (`colsample_*`, dart) are those of one process from XGBoost 3.3 on; with earlier versions, a model with random draws depends on when
    workers were lost, and rank 0 reports this. Between elastic training runs, and after the last one, a program may make no other collective
    calls: a worker that joins later would miss them. docs/how-to/elastic.md shows how to use it.

    `checkpoint`, with `elastic`: a folder, or a `Checkpoints`. After each round, or every few, rank 0 saves the state there, in case all
    workers are lost at once: the same training run then resumes from it, with the same model and evaluations in the end. Two runs are the
    same if their parameters, rounds, rows, evaluation sets, functions and version of XGBoost are the same; a message says from which round
    training resumes, or how the run in the checkpoint differs. Each run has its own file, which is replaced atomically and removed at the end
    of the run. A failed save is reported, and training continues. Raises TypeError if the state of an `ElasticCallback` is not plain data,
    and OSError if the folder is not writable.

    A collective call. Raises RuntimeError with `reproducible` before XGBoost 2.1, and with `elastic` in a job with a fixed number of
    workers; and ValueError for arguments that cannot be combined."""
    if reproducible not in (False, True, "exact"):
        raise ValueError(f"reproducible is {reproducible!r}, expected False, True or 'exact'")
    params, checkpoints = dict(params), _elastic_saved.checked(checkpoint)
    if elastic or (elastic is None and reproducible and _elastic.is_in_job()):
        sets = [(data, "data"), *(evals or ())]
        in_memory = [name for one, name in sets if not (isinstance(one, Data) and one.is_of_files)]
        if not in_memory:
            files: Dict[int, Any] = {id(one): one.of_files() for one, _ in sets}
            task = _elastic.Task(params, files[id(data)], num_boost_round, [(files[id(one)], name) for one, name in evals or ()],
                                 reproducible == "exact", checkpoints, options)
            return _elastic.train(task, communicator)
        why = f"the rows of {', '.join(map(repr, in_memory))} are in this process, and would be lost with it: give a Data of files"
        if elastic:
            raise ValueError(f"elastic=True: {why}")
        _elastic.say(f"this training cannot go on if a worker is lost: {why}")
    if checkpoints is not None:
        raise ValueError("checkpoint= needs elastic=True and a Data of files; train_with_checkpoints saves the other trainings")
    if reproducible:
        _same_model.check(params)
    with _hooks.reporting_rounds():
        return _rounds.reported("xgboost", params, num_boost_round, _hooks.PLACE,
                                lambda: _train(params, data, num_boost_round, evals or (), reproducible, options))


def _train(params: Mapping[str, Any], data: Any, num_boost_round: int,  # pylint: disable=redefined-outer-name
           evals: Sequence[Tuple[Any, str]], reproducible: Union[bool, str],  # pylint: disable=redefined-outer-name
           options: Dict[str, Any]) -> "xgb.Booster":
    """Trains with a fixed set of workers."""
    _versions.require_joined()
    bins = {"max_bin": int(params["max_bin"])} if params.get("max_bin") is not None else {}
    matrix = data
    is_hist = params.get("tree_method") in (None, "auto", "hist") and params.get("booster") != "gblinear"
    how = {"quantile": is_hist, "reproducible": bool(reproducible), **(bins if is_hist else {})}
    if isinstance(data, Data):
        matrix = data.load(**how)
    cuts = {"ref": matrix} if is_hist else {}
    categories = getattr(matrix, "warren_categories", None) or None

    def of_eval(one: Any) -> Any:
        if one is data or not isinstance(one, Data):
            return matrix if one is data else one
        found = one.load(**how, **cuts, **({"categories": categories} if one.is_of_files and not is_hist else {}))
        _matrices.require_same_categories(found.warren_categories, matrix)
        return found

    loaded = [(of_eval(one), name) for one, name in evals]
    if reproducible:
        return _same_model.train(params, matrix, num_boost_round, loaded, reproducible == "exact", options)
    return xgb.train(params, matrix, num_boost_round, evals=loaded, **options)


@contextlib.contextmanager
def reproducible() -> Iterator[None]:
    """Within the block, and in this thread, `fit` of XGBoost's scikit-learn estimators trains the model that one process would train on the
    rows of all workers, as `train` does with reproducible=True. X, y and `eval_set` are this worker's rows, in any of the forms that `Data`
    accepts. All workers fit the same estimators. Raises ValueError for parameters that `train` refuses, and for an XGBClassifier if the
    workers do not all have rows of the same classes."""
    from warren._xgboost.same_model import estimators as _estimators  # pylint: disable=import-outside-toplevel

    with _estimators.reproducible():
        yield


def read_csr(uri: Any, nthread: int = 0) -> Tuple[Any, Dict[str, Any]]:
    """Returns the data from which `load_dmatrix` makes a matrix of a text data set: a scipy.sparse.csr_matrix, and the arguments `label`,
    `weight` and `group`. `weight` and `group` are None on all workers if no row of the data set has them. A collective call. `uri` and the
    errors are those of `load_dmatrix`."""
    peers = data.current_peers()
    table = data.Wanted(uri, format=None, nthread=nthread).text(peers)
    if peers.world > 1:
        _matrices.warn_of_workers_without_rows(uri, len(table), 0 if table.weight is None else len(table.weight))
    return table.features, {"label": table.label, "weight": table.weight if table.qid is None else table.query_weight,
                            "group": table.group_sizes}


def train_with_checkpoints(params: Dict[str, Any], dtrain: "xgb.DMatrix", num_boost_round: int,
                           path: Union[str, "os.PathLike[str]"], *, every: int = 1, callbacks: Optional[Sequence[Any]] = None,
                           storage_options: Optional[Mapping[str, Any]] = None, **options: Any) -> "xgb.Booster":
    """Works like `xgboost.train`, and resumes if the job is restarted (dmlc-submit --max-restarts).

    Rank 0 saves the model so far at `path` (.json or .ubj; in an object store, or on a disk that is still available after a restart) every
    `every` rounds, atomically. `storage_options` are fsspec's, for an object store. A failed save (a full disk) is reported on standard
    error; the previous checkpoint stays, and training continues. The file is removed when training is done. Needs XGBoost 1.6 or later.

    At the start, rank 0 reads the file, and all workers resume from a checkpoint of the same training: "going on from round 10 of FILE". A
    checkpoint of another training is ignored, with a line that names the differences, and replaced by the next save. A training is
    identified by its parameters (except nthread, n_jobs, verbosity and silent), the number of rounds, the rows of all workers (a digest of
    features, labels, weights, margins and queries, regardless of their order and the number of workers), the evaluation sets, `obj`,
    `custom_metric` (name and code, without the globals they refer to), early stopping, learning rates, and the version of XGBoost. Other
    callbacks are not compared. For a QuantileDMatrix of more than 2^24 values on a worker, and for an ExtMemQuantileDMatrix, the digest
    covers the quantile cuts instead of the features (from XGBoost 2.0 on); for a DMatrix in external memory it covers neither. In these
    cases, the order of the rows counts. The digest costs one pass over the data: about a second for 20 million values, and up to 200 MB
    during that time.

    The model is the same, bit for bit, as without a restart. Random numbers (subsample, colsample_*, dart, gblinear's selectors): from
    XGBoost 3.3 on, each round draws them from `seed` and its own number, so they differ from those of `xgboost.train`; for randomly drawn
    pairs of a ranking (lambdarank_pair_method=mean), this is so from 3.4 on. In earlier versions a resumed training run draws other numbers
    than an uninterrupted one. lambdarank_unbiased keeps state outside the model, so a restart changes bits in every version. `options` are
    passed to `xgboost.train`; early stopping counts from the restart.

    Raises ValueError if the file at `path` is not a checkpoint, or if `every` is less than 1, RuntimeError if another running training uses
    the file (detected by a lock on `.NAME.lock` in the same folder; if the file system has no locks, a line on standard error says so;
    stores have none), and OSError if its folder is not writable."""
    return _training.train_with_checkpoints(params, dtrain, num_boost_round, path, every, callbacks or (), storage_options, options)


def predict_to(path: Union[str, "os.PathLike[str]"], booster: "xgb.Booster", matrix: "xgb.DMatrix", *, whole: bool = False,
               overwrite: bool = False, format: Optional[str] = None,  # pylint: disable=redefined-builtin
               storage_options: Optional[Mapping[str, Any]] = None, **options: Any) -> None:
    """Writes `booster.predict(matrix, **options)` for every worker's rows, in the order of ranks and rows. A collective call.

    By default `path` becomes a folder with one file for each worker, even for one without rows: `part-00000-of-00004.parquet`. With
    `whole` it is one file, which rank 0 writes, receiving the rows in pieces. The format is given by `path`'s suffix, or by `format`:
    `.parquet` (needs pyarrow; a column `prediction`, or `prediction_0`, `prediction_1`, ... if a row has several), `.csv` (with these
    names in its first line), `.npy` (required for predictions of three or more dimensions). `path` may be in an object store, with
    `storage_options` for it.

    The files appear complete once all workers have written theirs, or not at all. If files of another run exist (with `whole`: the file),
    raises FileExistsError, unless `overwrite` is true: it then replaces them, and removes parts that are left over from a run with another
    number of workers; in a store, where it cannot remove parts, it raises FileExistsError. An error of one worker is raised on all workers
    with the same text: OSError (a full disk), ValueError for a format or shape that cannot be written, ImportError without pyarrow."""
    _predictions.write(path, lambda: booster.predict(matrix, **options), whole=whole, overwrite=overwrite, form=format,
                       storage_options=storage_options)


#: The scikit-learn estimators that train on workers. They are created on demand, so that other programs do not need scikit-learn.
_ESTIMATORS = ("XGBClassifier", "XGBRegressor", "XGBRanker")


def _train_share(training: Any) -> Any:
    """Trains with this worker's share, in each worker of an estimator's job."""
    from warren._xgboost import on_workers as _on_workers  # pylint: disable=import-outside-toplevel

    return _on_workers.trained(training, _on_workers.Ours(communicator, train, Data))


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        why = "; it is xgboost's own, for rows that this worker has; load_dmatrix reads this worker's share of files" if hasattr(xgb, name) else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why}")
    from warren._xgboost import on_workers as _on_workers  # pylint: disable=import-outside-toplevel

    return _on_workers.estimator(name, _train_share)
