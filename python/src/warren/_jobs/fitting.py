"""The common parts of the scikit-learn estimators that fit in a job, for all libraries."""
import os
import re
from typing import Any, Callable, Dict, List, Mapping

import numpy as np

from warren._jobs import options as _options
from warren._jobs import pickling as _pickling
from warren._jobs import rows as _rows
from warren._jobs.job import Job
from warren.data._peers import Peers

#: Arguments of these estimators that are not the library's.
ARGUMENTS = ("num_workers", "cluster", "host_file", "reproducible", "job_options")


#: The maximum number of distinct labels that are accepted as classes.
_MOST_CLASSES = 10_000

#: Labels that are passed to a library's `fit` in place of the labels in files. `fit` derives the classes from them.
CLASSES = np.array([0, 1])


def is_wanted(estimator: Any, rows: Any) -> bool:
    """Whether `fit` of this estimator, with these rows, starts a job. Raises ValueError if the rows or the estimator's options need a job,
    and `num_workers` is None."""
    if estimator.num_workers is not None:
        return True
    if is_files(rows):
        raise ValueError("num_workers is missing: rows in files are read by the workers of a job, of which num_workers=1 makes one")
    if estimator.cluster not in (None, "local") or estimator.host_file is not None or estimator.job_options:
        raise ValueError("num_workers is missing: the number of workers of the job, or (MIN, MAX)")
    return False


# --- rows in files -------------------------------------------------------------------------------------------------------------------------


def is_files(rows: Any) -> bool:
    """Whether rows are given as the name of a data set, or a list of names."""
    return isinstance(rows, (str, os.PathLike)) or (isinstance(rows, (list, tuple)) and bool(rows) and
                                                    all(isinstance(one, (str, os.PathLike)) for one in rows))


def named(files: Any) -> Any:
    """The files as one object that can be compared and sent to other processes."""
    return list(files) if isinstance(files, (list, tuple)) else os.fspath(files)


def columns(given: Mapping[str, Any]) -> Dict[str, str]:
    """Returns the names of columns among these arguments of `fit`, without those that are None. Raises TypeError for arrays, and if the
    first one, the labels, is None."""
    label = next(iter(given))
    if given[label] is None:
        raise TypeError(f"the rows are in files, so {label} is the name of the column with the labels; found None")
    found = {}
    for name, value in given.items():
        if isinstance(value, str):
            found[name] = value
        elif value is not None:
            raise TypeError(f"the rows are in files, so {name} is the name of a column; found a {type(value).__name__}")
    return found


def features_like(names: Any) -> Dict[str, Any]:
    """Returns the argument `features` for a data set that must have features with these names; empty if the features have no names, or if
    they are elements of lists, whose names are not names of columns."""
    is_of_columns = isinstance(names, (list, tuple)) and names and not any(re.fullmatch(r".*\.\d+", name) for name in names)
    return {"features": list(names)} if is_of_columns else {}


def number_of_classes(labels: Any, peers: Peers) -> int:
    """The number of classes of all workers' rows, whose labels are 0, 1, ... without a gap; at least 2. A collective call. Raises ValueError
    for other labels."""
    wrong = labels[~np.isfinite(labels) | (labels < 0) | (labels != np.floor(labels))]
    found = peers.allgather((float(wrong[0]) if len(wrong) else None, [] if len(wrong) else np.unique(labels)[:_MOST_CLASSES + 1].tolist()))
    for rank, (label, _) in enumerate(found):
        if label is not None:
            raise ValueError(f"rank {rank} has read the label {label}, expected the classes 0, 1, 2, ...: number the classes in the files")
    classes = sorted({one for _, of_rank in found for one in of_rank})
    if len(classes) > _MOST_CLASSES:
        raise ValueError(f"the labels have more than {_MOST_CLASSES} values: are they classes?")
    missing = next((number for number, one in enumerate(classes) if one != number), None)
    if missing is not None:
        raise ValueError(f"the labels go up to {classes[-1]:g}, and no row has the class {missing}: number the classes in the files 0, 1, 2, ...")
    return max(2, len(classes))


# --- the job -------------------------------------------------------------------------------------------------------------------------------


class Fitting:
    """The job of one call of `fit`."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        given = {name: getattr(estimator, name) for name in ("cluster", "host_file") if getattr(estimator, name) is not None}
        self._options = {"jobname": type(estimator).__name__, "quiet": True, **(estimator.job_options or {}), **given}
        self.rows = _rows.RowsForJob(_options.cluster_of(self._options) == "local")

    def run(self, function: Callable[..., Any], argument: Any, given: Mapping[str, Any]) -> Any:
        """Calls the function on all workers, and returns the one result that is not None. `given`: the parts of the argument that the caller
        has given, for the error message if they cannot be sent."""
        try:
            job = Job(function, (argument, ), self._estimator.num_workers, self._options, is_shown=True, serve=self.rows.serve)
        except TypeError:
            for name, value in given.items():
                _require_sendable(name, value)
            raise
        job.show()
        return next(one for one in job.result() if one is not None)

    def close(self) -> None:
        """Frees the rows."""
        self.rows.close()


def _require_sendable(name: str, value: Any) -> None:
    """Raises TypeError for an argument of the training, or an element of it, that cannot be sent to other processes."""
    name = _OF_ESTIMATORS.get(name, name)
    for place, one in enumerate(value if isinstance(value, (list, tuple)) else ()):
        _pickling.dumps(one, f"{name}[{place}]" + (f", a {type(one).__name__}," if name == "callbacks" else ""))
    _pickling.dumps(value, name)


#: The names of the estimators' parameters for arguments of the training.
_OF_ESTIMATORS = {"obj": "objective", "custom_metric": "eval_metric", "feval": "eval_metric"}


def functions_of(given: Mapping[str, Any]) -> List[Any]:
    """The callbacks and functions among the arguments of a training; they run in the workers."""
    return [value for name, value in given.items() if callable(value) or name in ("callbacks", "feval")]
