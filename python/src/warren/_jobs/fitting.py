"""What the scikit-learn estimators that fit in a job have in common, whichever library they are of."""
import os
from typing import Any, Callable, Dict, Sequence

from warren._jobs import rows as _rows
from warren._jobs.job import Job

#: Arguments of these estimators that are not the library's.
ARGUMENTS = ("num_workers", "cluster", "host_file", "reproducible", "job_options")


def is_wanted(estimator: Any) -> bool:
    """Whether `fit` of this estimator starts a job. Raises ValueError for arguments that need one, without its number of workers."""
    if estimator.num_workers is not None:
        return True
    if estimator.cluster not in (None, "local") or estimator.host_file is not None or estimator.job_options:
        raise ValueError("num_workers is missing: the number of workers of the job, or (MIN, MAX)")
    return False


class Fitting:
    """The job of one call of `fit`."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        given = {name: getattr(estimator, name) for name in ("cluster", "host_file") if getattr(estimator, name) is not None}
        self._options = {"jobname": type(estimator).__name__, "quiet": True, **(estimator.job_options or {}), **given}
        cluster = str(self._options.get("cluster") or os.environ.get("DMLC_SUBMIT_CLUSTER") or "local")
        self.rows = _rows.RowsForJob(cluster.lower() == "local")

    def run(self, function: Callable[..., Any], argument: Any) -> Any:
        """Calls the function on all workers, and returns what is not None, which one of them returns."""
        job = Job(function, (argument, ), self._estimator.num_workers, self._options, is_shown=True, serve=self.rows.serve)
        job.show()
        return next(one for one in job.result() if one is not None)

    def close(self) -> None:
        """Frees the rows."""
        self.rows.close()


def take_over(callbacks: Sequence[Any], remote: Sequence[Any]) -> None:
    """Gives callbacks the state that copies of them have after a training in another process. Dicts and lists stay the same objects, since
    others may have them, too."""
    for own, other in zip(callbacks, remote):
        state: Dict[str, Any] = getattr(own, "__dict__", {})
        for name, value in getattr(other, "__dict__", {}).items():
            known = state.get(name)
            if isinstance(known, dict) and isinstance(value, dict):
                known.clear()
                known.update(value)
            elif isinstance(known, list) and isinstance(value, list):
                known[:] = value
            else:
                state[name] = value
