"""Warren for Python: rabit's API over Warren's engine, and any version of XGBoost under dmlc-submit.

`warren.rabit` is rabit's Python API; `warren.xgboost` joins XGBoost to the job that dmlc-submit started; `warren.compat` provides
`xgboost.rabit` for old scripts; `warren.tracker` and `warren.submit` start rabit-tracker and dmlc-submit. `warren.progress` reports the
progress of a program to anyone who watches the job."""
from typing import Optional, SupportsFloat


def progress(round: int, of: Optional[int] = None, **metrics: SupportsFloat) -> None:  # noqa: A002  the usual term
    """Reports that the program has finished `round`, counted from 1, out of `of` rounds, with its metrics, to anyone who watches this job:

        for epoch in range(epochs):
            ...
            warren.progress(epoch + 1, epochs, loss=loss, accuracy=accuracy)

    Works in every worker started by dmlc-submit, whatever library it communicates with. Does nothing elsewhere, or in a process forked from
    one that has already called this function or joined the job. Returns immediately. Metrics are numbers, or anything that float() accepts;
    any text is allowed as a name with `**{"train-rmse": 0.2}`. XGBoost's own evaluation lines are reported without this function."""
    from warren._engine import reporting as _reporting  # imported on demand: programs start faster without it
    _reporting.progress(round, of, metrics)


def __getattr__(name: str) -> str:
    """`__version__` of the installed wheel, looked up on demand because programs start faster without it."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata
    try:
        return metadata.version("warren-train")
    except metadata.PackageNotFoundError:
        return "0+source"  # a source tree on PYTHONPATH
