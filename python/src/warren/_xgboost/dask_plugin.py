"""warren.xgboost's Dask plugin."""
from typing import Any

from distributed import WorkerPlugin  # type: ignore[import]


class AccelerateAll(WorkerPlugin):  # type: ignore[misc]
    """Enables acceleration in each worker, including restarted ones."""

    name = "warren.xgboost"

    def setup(self, worker: Any) -> None:
        """Called by Dask when the worker has started."""
        # The scheduler, which may lack XGBoost, loads the plugin as well.
        from warren._xgboost import acceleration  # pylint: disable=import-outside-toplevel

        del worker
        acceleration.accelerate_all()
