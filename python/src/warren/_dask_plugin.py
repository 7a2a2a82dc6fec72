"""The Dask plugin of warren.xgboost."""
from typing import Any

from distributed import WorkerPlugin  # type: ignore[import]


class AccelerateAll(WorkerPlugin):  # type: ignore[misc]
    """Enables acceleration in each worker, including restarted ones."""

    name = "warren.xgboost"

    def setup(self, worker: Any) -> None:
        """Called by Dask when the worker has started."""
        import warren.xgboost  # pylint: disable=import-outside-toplevel

        del worker
        warren.xgboost.accelerate_all()
