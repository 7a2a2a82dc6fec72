"""Warren for Python: rabit's API over Warren's engine, and XGBoost of every version under dmlc-submit.

`warren.rabit` is rabit's Python API; `warren.xgboost` joins XGBoost to the job that dmlc-submit started;
`warren.compat` gives old scripts `xgboost.rabit` back; `warren.tracker` and `warren.submit` start the programs.
`warren.progress` tells who watches the job how far it is.
"""
from typing import Optional, SupportsFloat


def progress(round: int, of: Optional[int] = None, **metrics: SupportsFloat) -> None:  # noqa: A002  the field's word
    """Shows whoever watches this job that its program has ended `round`, counted from 1, of so many, and what it measured:

        for epoch in range(epochs):
            ...
            warren.progress(epoch + 1, epochs, loss=loss, accuracy=accuracy)

    Works in every worker that dmlc-submit has started, whatever it communicates by, and does nothing elsewhere, nor in a process
    that was forked from one that has called it or joined the job. It returns at once. Metrics are numbers, or what float() takes;
    their names can be any text by `**{"train-rmse": 0.2}`. XGBoost's own evaluation lines need no call of this."""
    from warren import _reporting  # not before it is needed: programs start without it
    _reporting.progress(round, of, metrics)


def __getattr__(name: str) -> str:
    """`__version__`, of the installed wheel: looked up when it is asked for, for programs start without it."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata
    try:
        return metadata.version("warren-train")
    except metadata.PackageNotFoundError:
        return "0+source"  # a tree on PYTHONPATH
