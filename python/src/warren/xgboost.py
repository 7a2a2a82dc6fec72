"""XGBoost of any version in a job started by dmlc-submit, mpirun, srun or torchrun.

    import xgboost, warren.xgboost

    with warren.xgboost.communicator():
        model = xgboost.train(params, warren.xgboost.load_dmatrix("train.svm"), 100)

Outside a job, the same script trains alone. XGBoost 2.1 and later communicates over Warren's engine if all workers can; `accelerate` does
the same for communicators made by others (Dask, Spark)."""
import contextlib
import errno
import os
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import xgboost as xgb

from warren import _launched, _leaving, _vouch
from warren import _xgboost_checkpoint as _checkpoint
from warren import _xgboost_data, data
from warren import _xgboost_digest as _digest
from warren import _xgboost_hooks as _hooks
from warren.data import _peers
from warren.data._exchange import predictions as _predictions

if hasattr(xgb, "collective"):
    from warren import _xgboost_engine as _engine

#: The installed XGBoost's version: (3, 0) for 3.0.5.
VERSION = tuple(int(part) for part in xgb.__version__.split(".")[:2])


#: Files that XGBoost opens to join a job, in addition to one for each worker (measured with 3.2.0, 2 to 8 workers).
_FILES_TO_JOIN = 6

#: The first version that draws all random numbers from one generator, which a new seed restarts (pairs of a ranking: from 3.4 on).
_ONE_GENERATOR = (3, 3)

_joined = False
#: The address of the tracker whose job this process last joined or tried to join.
_tracker: Optional[Tuple[str, str]] = None


def in_job() -> bool:
    """Whether this process was started as a worker of a job with a tracker. Raises RuntimeError if DMLC_TRACKER_URI is set without a valid
    DMLC_TRACKER_PORT."""
    if not os.environ.get("DMLC_TRACKER_URI") or os.environ.get("DMLC_ROLE", "worker") != "worker":
        return False
    if not os.environ.get("DMLC_TRACKER_PORT", "").isdigit():
        raise RuntimeError("DMLC_TRACKER_URI is set, and DMLC_TRACKER_PORT is "
                           f"{os.environ.get('DMLC_TRACKER_PORT')!r}: expected the number of the tracker's port")
    return True


def _collective() -> Any:
    """The module with rank, world size, broadcast and allreduce: `collective`, or `rabit` before 1.7."""
    return xgb.collective if VERSION >= (1, 7) else xgb.rabit


def _arguments() -> Dict[str, Any]:
    """The arguments for XGBoost 2.1 and later, which ignore the environment."""
    arguments: Dict[str, Any] = {"dmlc_task_id": os.environ.get("DMLC_TASK_ID", "")}
    if in_job():
        arguments.update(dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"], dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]))
    if "DMLC_WORKER_CONNECT_RETRY" in os.environ:
        arguments["dmlc_retry"] = int(os.environ["DMLC_WORKER_CONNECT_RETRY"])
    if "DMLC_NCCL_PATH" in os.environ:
        arguments["dmlc_nccl_path"] = os.environ["DMLC_NCCL_PATH"]
    return arguments


def init(**arguments: Any) -> None:
    """Joins the job; does nothing outside a job. Processes started by mpirun, srun or torchrun form a job, with a tracker that rank 0 runs,
    unless WARREN_BOOTSTRAP is `none`. `arguments` are passed to XGBoost's own `init`: `dmlc_timeout`, `dmlc_retry`, `dmlc_nccl_path`;
    `dmlc_tracker_uri`, `dmlc_tracker_port` and `dmlc_task_id` name a job whose tracker the environment does not name. A job has one
    communicator: a worker that has left cannot join again. Raises RuntimeError if the process has already joined, or if
    WARREN_XGBOOST_ENGINE=warren cannot be satisfied; wrap the call in `left_in_the_end`, which then leaves the job."""
    global _joined  # pylint: disable=global-statement
    if not any(name.lower() in ("dmlc_tracker_uri", "rabit_tracker_uri") for name in arguments) and not in_job():
        launched = _launched.launched()
        if launched is None:
            return
        _launched.share_tracker(launched)
    if _joined:
        raise RuntimeError("this worker has already joined its job: a job has one communicator, from start to end")
    _check_not_left(arguments)
    if VERSION >= (2, 1):
        # Also finds NCCL if it is installed as a Python package.
        found = xgb.collective.CommunicatorContext(**{**_arguments(), **arguments}).args
        _join(found, lambda: xgb.collective.init(**found))
        _joined = True
        _engine.begin(_timeout_of(found))
    else:
        # These versions accept upper-case names only, and read missing ones from the environment.
        found = {name.upper() if name.startswith("dmlc_") else name: value for name, value in arguments.items()}
        if VERSION >= (1, 7):
            _join(found, lambda: xgb.collective.init(**found))
        else:
            _join(found, lambda: xgb.rabit.init([f"{name}={value}".encode() for name, value in found.items()]))
        _joined = True
        _peers.prove_over_xgboost(_collective())


def _check_open_files() -> None:
    """Raises OSError if this process may not open enough files for XGBoost 2.1 and later, which connects every worker to every other one.
    XGBoost itself would report nothing, and the tracker would name another worker."""
    workers = os.environ.get("DMLC_NUM_WORKER", "")
    if VERSION < (2, 1) or not workers.isdigit() or not os.path.isdir("/proc/self/fd"):
        return
    import resource  # pylint: disable=import-outside-toplevel

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    used, needed = len(os.listdir("/proc/self/fd")) - 1, int(workers) + _FILES_TO_JOIN  # -1: the listing itself
    if limit != resource.RLIM_INFINITY and used + needed > limit:
        raise OSError(errno.EMFILE, f"{used} of the {limit} files that this process may open (ulimit -n) are open, and XGBoost needs about "
                                    f"{needed} to join a job of {workers} workers: raise the limit before the job, for example with "
                                    "ulimit -n 65536")


def _join(found: Dict[str, Any], join: Callable[[], Any]) -> None:
    """Calls `join`, which passes the arguments `found` to XGBoost, with a task id that makes the tracker admit this worker."""
    upper = VERSION < (2, 1)
    _check_open_files()

    def given(what: str) -> str:
        names = (f"dmlc_{what}", f"rabit_{what}")
        return str(next((value for name, value in found.items() if name.lower() in names), os.environ.get(names[0].upper(), "")))

    port = given("tracker_port")
    task_id = given("task_id") or ("NULL" if upper else "")
    joined_by = _vouch.task_id_of(task_id, given("tracker_uri"), int(port) if port.isdigit() else 0)
    if joined_by != task_id:
        found["DMLC_TASK_ID" if upper else "dmlc_task_id"] = joined_by
    with _vouch.out_of_the_log(xgb.core._LIB, joined_by, task_id):  # pylint: disable=protected-access
        join()


def _check_not_left(arguments: Mapping[str, Any]) -> None:
    """Raises RuntimeError if this process has left the job named by these arguments or the environment: its tracker would take a worker
    that comes back for a failed one, and end the job."""
    global _tracker  # pylint: disable=global-statement
    given = {name.lower().replace("rabit_", "dmlc_"): str(value) for name, value in {**os.environ, **arguments}.items()}
    _tracker = given.get("dmlc_tracker_uri", ""), given.get("dmlc_tracker_port", "")
    if _launched.has_left(_tracker):
        raise RuntimeError("this worker has left its job and cannot join it again: a job has one communicator; put one `with "
                           "warren.xgboost.communicator():` around all trainings, outside of any loop")


def _timeout_of(arguments: Dict[str, Any]) -> Any:
    """How many seconds XGBoost waits for other workers; None means its default."""
    return arguments.get("dmlc_timeout", arguments.get("DMLC_TIMEOUT"))


def finalize() -> None:
    """Leaves the job; does nothing outside a job."""
    _leave(failed=False)


def _leave(failed: bool) -> None:
    global _joined  # pylint: disable=global-statement
    if _joined:
        _joined = False
        try:
            with _leaving.after_the_others():
                _end_engine(failed=False)
        finally:
            try:
                _collective().finalize()
            finally:
                _launched.left(failed, _tracker)


def _end_engine(failed: bool) -> None:
    if VERSION >= (2, 1):
        _engine.end(failed)


@contextlib.contextmanager
def left_in_the_end() -> Iterator[None]:
    """Leaves the job, if it was joined, when the block ends. After an exception, including sys.exit with a failure, the tracker is told
    that this worker has failed (XGBoost 2.1 and later); the exception propagates."""
    try:
        with _hooks.installed():
            yield
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            finalize()
        elif _joined and VERSION >= (2, 1):
            # The tracker comes first: it must learn of this failure before the failures that follow from it on other workers.
            with contextlib.suppress(Exception):
                xgb.collective.signal_error()
            with contextlib.suppress(Exception):
                _end_engine(failed=True)
            with contextlib.suppress(Exception):
                # Ends XGBoost's threads, which could crash the process at exit. The tracker already knows of the failure.
                _leave(failed=True)
        raise
    finalize()


@contextlib.contextmanager
def communicator(**arguments: Any) -> Iterator[Dict[str, Any]]:
    """Joins the job started by dmlc-submit, mpirun, srun or torchrun, and leaves it at the end; does nothing outside a job. The arguments
    are those of `init`, and are yielded for `as`.

    After an exception, including sys.exit with a failure, the job is not left as if this worker had finished: the tracker is told (XGBoost
    2.1 and later), and the other workers stop."""
    with left_in_the_end():
        init(**arguments)
        yield arguments


#: The name in xgboost.collective, for scripts that import it from there today.
CommunicatorContext = communicator


def engine() -> str:
    """Returns the engine that runs the collectives of this thread's communicator: "warren", or "own" for XGBoost's own."""
    return "warren" if VERSION >= (2, 1) and _engine.serves() else "own"


@contextlib.contextmanager
def accelerate(timeout: Optional[float] = None) -> Iterator[None]:
    """Runs the collectives of the block on Warren's engine, in a communicator made by someone else (a Dask task, a Spark barrier,
    xgboost.collective.init). All its workers enter and leave the block. If one of them cannot (WARREN_XGBOOST_ENGINE=own, an unknown
    XGBoost), all stay on XGBoost's own engine, and one line on standard error says why. A call waits `timeout` seconds for a worker that is
    alive (None means half an hour; the communicator's `dmlc_timeout` is not known here). Does nothing in a communicator of one worker, or
    before XGBoost 2.1. If a worker is lost, the errors of the others name it. Raises RuntimeError if another worker of the communicator has
    not entered the block."""
    if VERSION < (2, 1):
        yield
        return
    with _engine.served(timeout):
        yield


def accelerate_all() -> None:
    """Applies `accelerate` to every communicator that Python makes in this process from now on (xgboost.collective's CommunicatorContext,
    and so those of xgboost.dask and xgboost.spark). All workers of a job must do so, including those started later: in Dask use
    `client.register_plugin(warren.xgboost.dask_plugin())` or `dask worker --preload warren.xgboost`. May be called repeatedly."""
    if VERSION < (2, 1) or hasattr(xgb.collective.CommunicatorContext, "_warren_contexts"):
        return
    context = xgb.collective.CommunicatorContext
    enter, leave = context.__enter__, context.__exit__

    def enter_accelerated(self: Any) -> Any:
        arguments = enter(self)
        try:
            _engine.begin(_timeout_of(self.args))
        except BaseException as error:
            leave(self, type(error), error, error.__traceback__)
            raise
        return arguments

    def leave_accelerated(self: Any, *error: Any) -> Any:
        try:
            _engine.end(failed=bool(error) and error[0] is not None)
        finally:
            result = leave(self, *error)
        return result

    context.__enter__, context.__exit__, context._warren_contexts = enter_accelerated, leave_accelerated, True


def dask_plugin() -> Any:
    """Returns a plugin for `client.register_plugin` that calls `accelerate_all` in all workers of a Dask cluster, including those that are
    started later or restarted."""
    from warren import _dask_plugin  # pylint: disable=import-outside-toplevel

    return _dask_plugin.AccelerateAll()


def dask_setup(_worker: Any) -> None:
    """Called by `dask worker --preload warren.xgboost`."""
    accelerate_all()


def get_rank() -> int:
    """Returns this worker's rank, counted from 0; 0 outside a job."""
    return int(_collective().get_rank())


def get_world_size() -> int:
    """Returns the number of workers; 1 outside a job."""
    return int(_collective().get_world_size())


def tracker_print(message: Any) -> None:
    """Shows `str(message)` to the user who watches the job. A NUL, which would end the message, is shown as \\x00."""
    module = _collective()
    (module.communicator_print if VERSION >= (1, 7) else module.tracker_print)(str(message).replace("\0", "\\x00"))


def _peers_of_job() -> _peers.Peers:
    """The ranks of XGBoost's communicator. Raises RuntimeError if this process is one of several in a job and has not joined it."""
    peers = _peers.over_xgboost(_collective())
    if peers.world == 1:
        _peers.current()
    return peers


def broadcast(value: Any, root: int = 0) -> Any:
    """Returns the object of rank `root` on all ranks. It is pickled and sealed with the job's token. Raises TypeError on all ranks if it
    cannot be pickled, and RuntimeError if another rank's bytes are not sealed with the token. In a communicator without a token (of Dask,
    Spark, or a third-party tracker) the other processes are trusted: a pickle runs whatever code its sender chose."""
    return _peers_of_job().broadcast(value, root, objects=True)


def _tell_of_workers_without_rows(uri: Any, rows: int, weights: int) -> None:
    module = _collective()
    without, weighted = (int(count) for count in module.allreduce(np.array([rows == 0, weights > 0], np.int32), module.Op.SUM))
    if without == 0 or get_rank() != 0:
        return
    consequence = "" if not weighted else ("; XGBoost computes base_score differently on workers with weights: set it (base_score=0.5), "
                                           "or start fewer workers")
    if VERSION < (2, 0):
        consequence = (f"; with tree_method=hist the workers of XGBoost {xgb.__version__} then wait for each other forever: start fewer "
                       "of them, or use approx")
    warnings.warn(f"{without} of {get_world_size()} workers have no rows of {uri}{consequence}", stacklevel=4)


def load_dmatrix(uri: Any, *, label: Any = None, weight: Optional[str] = None, qid: Optional[str] = None, base_margin: Any = None,
                 features: Any = None, exclude: Any = None, categorical: Any = None,
                 categories: Optional[Dict[str, Sequence[Any]]] = None, filters: Optional[Sequence[Any]] = None,
                 shuffle: Optional[int] = None, format: Optional[str] = None,  # pylint: disable=redefined-builtin
                 delimiter: Optional[str] = None, storage_options: Optional[Dict[str, Any]] = None, quantile: bool = False,
                 external_memory: Union[bool, str, None] = False, cache_dir: Optional[str] = None, check: Optional[bool] = None,
                 progress: bool = True, nthread: int = 0, **options: Any) -> "xgb.DMatrix":
    """Returns this worker's share of a data set as a DMatrix, with labels, weights and queries.

        load_dmatrix("s3://bucket/train/*.parquet", label="y")
        load_dmatrix("train.svm")

    `uri` and the column arguments (`label` to `storage_options`, `nthread`, `check`, `progress`) are those of warren.data.load: Parquet,
    Arrow and CSV with named columns, and text as in docs/how-to/data-text.md, except for a cache: "day1.gz;day2.gz?indexing_mode=1",
    "table.csv?format=csv&label_column=0". All workers number categories alike; the matrix's `warren_categories` lists the categories, and
    is to be passed as `categories` when other rows are loaded for the same model.

    `quantile`: makes a QuantileDMatrix (1.7 and later), which takes less memory, for tree_method hist.

    `external_memory`, for Parquet, Arrow and CSV: "auto" chooses what fits into this worker's part of the memory (of the host, or of its
    cgroup): a DMatrix, a QuantileDMatrix built from batches, of which only the bins are kept, or pages on disk in `cache_dir` (None means
    the folder for temporary files). True always uses pages: an ExtMemQuantileDMatrix from XGBoost 3.0 on; earlier versions can train on
    pages only outside a job. Batches are read again for each pass that XGBoost makes.

    `options` are passed to the matrix.

    All workers of a job call it. Raises ValueError or OSError that names the file, row group, line and column of the problem."""
    asked = data.Wanted(uri, label=label, weight=weight, qid=qid, base_margin=base_margin, features=features, exclude=exclude,
                        categorical=categorical, categories=categories, filters=filters, shuffle=shuffle, format=format,
                        delimiter=delimiter, storage_options=storage_options, nthread=nthread)
    peers = data.current_peers()
    matrix = _xgboost_data.load(asked, peers, quantile=quantile, external_memory=external_memory, cache_dir=cache_dir, check=check,
                                progress=progress, options=options)
    if peers.world > 1:
        _tell_of_workers_without_rows(uri, matrix.num_row(), len(matrix.get_weight()))
    return matrix


def read_csr(uri: Any, nthread: int = 0) -> Tuple[Any, Dict[str, Any]]:
    """Returns the data from which `load_dmatrix` makes a matrix, for text: a scipy.sparse.csr_matrix, and the arguments `label`, `weight`
    and `group`, which are None on all workers if no row of the data set has them. `uri`, the errors, and which workers call it are as for
    `load_dmatrix`."""
    peers = data.current_peers()
    table = data.Wanted(uri, format=None, nthread=nthread).text(peers)
    if peers.world > 1:
        _tell_of_workers_without_rows(uri, len(table), 0 if table.weight is None else len(table.weight))
    return table.features, {"label": table.label, "weight": table.weight if table.qid is None else table.query_weight,
                            "group": table.group_sizes}


class _Saver(xgb.callback.TrainingCallback if VERSION >= (1, 3) else object):  # type: ignore[misc]
    """Saves the model on rank 0 every `every` rounds, and gives each round its own seed."""

    def __init__(self, save: Callable[["xgb.Booster"], None], every: int, last: int, seed: int) -> None:
        if VERSION >= (1, 3):
            super().__init__()
        self._save, self._every, self._last, self._seed = save, every, last, seed

    def before_iteration(self, model: "xgb.Booster", epoch: int, evals_log: Any) -> bool:
        """Sets the round's seed. The random numbers of a round must not depend on the rounds that this process has run, because the
        generator's state is not part of the model. A changed seed takes effect immediately. Before 3.3 the column samplers had their own
        generators, which a seed does not reach."""
        del epoch, evals_log
        if VERSION >= _ONE_GENERATOR:
            model.set_param({"seed": (self._seed * 1_000_003 + model.num_boosted_rounds() + 1) % 2**31})
        return False

    def after_iteration(self, model: "xgb.Booster", epoch: int, evals_log: Any) -> bool:
        """Saves the model if it is due. Never stops the training."""
        del epoch, evals_log
        rounds = model.num_boosted_rounds()
        if rounds % self._every == 0 and rounds < self._last:
            self._save(model)
        return False


def train_with_checkpoints(params: Dict[str, Any], dtrain: "xgb.DMatrix", num_boost_round: int,
                           path: Union[str, "os.PathLike[str]"], *, every: int = 1,
                           callbacks: Optional[Sequence[Any]] = None, **options: Any) -> "xgb.Booster":
    """Works like `xgboost.train`, and resumes if the job is restarted (dmlc-submit --max-restarts).

    Rank 0 saves the model so far at `path` (.json or .ubj; on a disk that it sees again after a restart) every `every` rounds, atomically.
    A failed save (a full disk) is reported on standard error; the previous checkpoint stays, and training continues. The file is removed
    when training is done. Needs XGBoost 1.6 or later.

    At the start, each worker looks for a checkpoint. One of the same training is resumed: "going on from round 10 of FILE". One of another
    training is ignored, with a line that says what differs, and replaced by the next save. A training is identified by its parameters (all
    but nthread, verbosity and the like), the number of rounds, the rows of all workers (a digest of features, labels, weights, margins and
    queries, regardless of their order and the number of workers), the evaluation sets, `obj`, `custom_metric` (name and code, without the
    globals they refer to), early stopping, learning rates, and the version of XGBoost. Other callbacks are not compared. For a
    QuantileDMatrix of more than 2^24 values on a worker, and for an ExtMemQuantileDMatrix, the digest covers the quantiles instead of the
    features; for a DMatrix in external memory it covers neither, and the order of the rows counts. The digest costs one pass over the data:
    about a second for 20 million values, and up to 200 MB during that time.

    The model is the same, bit for bit, as without a restart. Random numbers (subsample, colsample_*, dart, gblinear's selectors): from
    XGBoost 3.3 on, each round draws them from `seed` and its own number, so they differ from those of `xgboost.train`; for randomly drawn
    pairs of a ranking (lambdarank_pair_method=mean), this is so from 3.4 on. In earlier versions a resumed training draws other numbers
    than an undisturbed one. lambdarank_unbiased keeps state outside the model: there a restart changes bits in every version. `options` are
    passed to `xgboost.train`; early stopping counts from the restart.

    Raises ValueError if the file at `path` is not a checkpoint, RuntimeError if another running training uses it (detected by a lock on
    `.NAME.lock` in the same folder; if the file system has no locks, a line says so), and OSError if its folder is not writable."""
    if "xgb_model" in options:
        raise TypeError("train_with_checkpoints chooses xgb_model itself")
    seed = int(params.get("seed", params.get("random_state", 0)) or 0)
    peers = _peers_of_job()
    with _checkpoint.Checkpoint(path, peers) as checkpoint:
        def save(model: "xgb.Booster") -> None:
            if get_rank() == 0:
                checkpoint.save(model)

        begun = checkpoint.load(_digest.of_training(params, dtrain, num_boost_round, options, callbacks or (), peers))
        if begun is not None and VERSION >= _ONE_GENERATOR and "subsample" in params:
            # With constant Hessians, `approx` computes the cuts in its first round, from the rows sampled for it, and keeps them in the
            # matrix: a resumed training must compute them from the same sample.
            first = {name: options[name] for name in ("obj",) if name in options}
            xgb.train(params, dtrain, 1, callbacks=[_Saver(save, num_boost_round + 1, num_boost_round, seed),
                                                    _hooks.Progress(num_boost_round)], **first)
        done = begun.num_boosted_rounds() if begun is not None else 0
        all_callbacks: List[Any] = [*(callbacks or []), _Saver(save, every, num_boost_round, seed), _hooks.Progress(num_boost_round, done)]
        model = xgb.train(params, dtrain, num_boost_round - done, xgb_model=begun, callbacks=all_callbacks, **options)
        if get_rank() == 0:
            checkpoint.remove()
        return model


def predict_to(path: Union[str, "os.PathLike[str]"], booster: "xgb.Booster", matrix: "xgb.DMatrix", *, whole: bool = False,
               overwrite: bool = False, format: Optional[str] = None,  # pylint: disable=redefined-builtin
               storage_options: Optional[Mapping[str, Any]] = None, **options: Any) -> None:
    """Writes `booster.predict(matrix, **options)` for every worker's rows, in the order of ranks and rows. All workers of the job call
    it.

    By default `path` becomes a folder with one file for each worker, even for one without rows: `part-00000-of-00004.parquet`. With
    `whole` it is one file, which rank 0 writes, receiving the rows in pieces. The format is given by `path`'s suffix, or by `format`:
    `.parquet` (needs pyarrow; a column `prediction`, or `prediction_0`, `prediction_1`, ... if a row has several), `.csv` (with these
    names in its first line), `.npy` (required for predictions of three or more dimensions). `path` may be in an object store, with
    `storage_options` for it.

    The files appear complete once all workers have written theirs, or not at all. If there are parts of another run (with `whole`: the
    file), FileExistsError is raised; with `overwrite` they are replaced, and leftover ones removed. An error of one worker is raised on
    all workers with the same text: OSError (a full disk), ValueError for a format or shape that cannot be written, ImportError without
    pyarrow."""
    _predictions.write(path, lambda: booster.predict(matrix, **options), whole=whole, overwrite=overwrite, form=format,
                       storage_options=storage_options)
