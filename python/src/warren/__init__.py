"""Warren for Python: rabit's API over Warren's engine, and XGBoost of every version under dmlc-submit.

`warren.rabit` is rabit's Python API; `warren.xgboost` joins XGBoost to the job that dmlc-submit started;
`warren.compat` gives old scripts `xgboost.rabit` back; `warren.tracker` and `warren.submit` start the programs.
"""


def __getattr__(name: str) -> str:
    """`__version__`, of the installed wheel: looked up when it is asked for, for programs start without it."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata
    try:
        return metadata.version(__name__)
    except metadata.PackageNotFoundError:
        return "0+source"  # a tree on PYTHONPATH
