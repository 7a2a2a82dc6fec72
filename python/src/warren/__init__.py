"""Warren for Python: distributed training and collectives over Warren's engine.

`warren.xgboost`, `warren.lightgbm` and `warren.torch` connect these libraries to the job that dmlc-submit started; `warren.horovod` has
Horovod's API. `warren.collectives` and `warren.rabit` (rabit's Python API) are for programs that communicate themselves. `warren.data`
reads data sets. `warren.compat` provides `xgboost.rabit` and `horovod` for old scripts; `warren.tracker` and `warren.submit` start
rabit-tracker and dmlc-submit. `warren.run` and `warren.start` run a function of this program as a job. `warren.progress` reports the
progress of a program to anyone who watches the job.

Modules are imported when they are used: `import warren` suffices for `warren.xgboost`."""
from typing import TYPE_CHECKING, Any, Callable, List, Optional, SupportsFloat

if TYPE_CHECKING:
    from warren._jobs.job import Job, JobFailed, JobStatus


def progress(round: int, of: Optional[int] = None, **metrics: SupportsFloat) -> None:  # noqa: A002  the usual term
    """Reports that the program has finished `round`, counted from 1, out of `of` rounds, with its metrics, to anyone who watches this job:

        for epoch in range(epochs):
            ...
            warren.progress(epoch + 1, epochs, loss=loss, accuracy=accuracy)

    Works in every worker started by dmlc-submit, whatever library it communicates with. In a TrainJob of Kubeflow, whatever started the
    workers, rank 0's reports also go to the TrainJob's status (docs/how-to/experiment-trackers.md). Does nothing elsewhere. A process
    forked from one that has already called this function or joined the job reports only to a TrainJob. Returns immediately. Metrics are
    numbers, or anything that float() accepts; any text is allowed as a name with `**{"train-rmse": 0.2}`. XGBoost's own evaluation lines
    are reported without this function."""
    from warren._rounds import training as _rounds  # imported on demand: programs start faster without it
    _rounds.progress(round, of, metrics)


def run(function: Callable[..., Any], *args: Any, num_workers: Any, **options: Any) -> List[Any]:
    """Calls `function(*args)` in each of `num_workers` processes of a job, and returns the list of their results, in the order of ranks:

        def train():
            with warren.xgboost.communicator():
                ...
            return model if warren.xgboost.get_rank() == 0 else None

        model, *_ = warren.run(train, num_workers=4)
        model, *_ = warren.run(train, num_workers=(2, 8), cluster="ssh", host_file="hosts")

    If cloudpickle is installed, the function may be defined anywhere, even in a notebook; otherwise, it must be defined in a module. The
    worker processes run this Python interpreter and import from this process's sys.path, as far as its folders exist on their hosts.
    `options` are the long options of dmlc-submit, with underscores (docs/reference/options.md): a list for a repeated option, True for an
    option without a value, and a dict or list for `env`. A pair (MIN, MAX) as `num_workers` makes the job elastic. The hosts must be able to
    reach this machine at one more port of the tracker's range. Neither side unpickles anything before the other side has proved the job's
    token.

    The output of the job appears here, live. Raises the exception that the function raised in the process that failed first, with that
    process's traceback as its cause; JobFailed if the function raised none there (the process was killed or exited, say); ValueError and
    TypeError for options, functions and arguments that cannot be used. A KeyboardInterrupt ends the job before it propagates. The job also
    ends if this process ends."""
    from warren._jobs.job import Job as _Job  # imported on demand: programs start faster without it

    job = _Job(function, args, num_workers, options, is_shown=True)
    job.show()
    return job.result()


def start(function: Callable[..., Any], *args: Any, num_workers: Any, **options: Any) -> "Job":
    """Starts a job as `run` does, and returns it immediately as a Job with the methods `status()`, `logs(rank, follow=)`, `cancel()` and
    `result()`. The output is not shown; `logs` returns it. The job ends when this process ends; `dmlc-submit --detach` starts one that
    outlives the caller."""
    from warren._jobs.job import Job as _Job  # imported on demand, as above

    return _Job(function, args, num_workers, options, is_shown=False)


#: Modules of this package that are imported when they are used.
_MODULES = ("collectives", "compat", "config", "data", "device", "horovod", "kvstore", "lightgbm", "parameter_server", "rabit", "submit",
            "torch", "tracker", "xgboost")
_OF_JOBS = ("Job", "JobFailed", "JobStatus")


def __getattr__(name: str) -> Any:
    """Looks up modules, the classes for jobs, and the `__version__` of the installed wheel on demand, so that programs start faster."""
    import importlib
    if name in _MODULES:
        return importlib.import_module(f"warren.{name}")
    if name in _OF_JOBS:
        return getattr(importlib.import_module("warren._jobs.job"), name)
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata
    try:
        return metadata.version("warren-train")
    except metadata.PackageNotFoundError:
        return "0+source"  # a source tree on PYTHONPATH
