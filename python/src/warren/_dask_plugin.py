"""What warren.xgboost gives a Dask cluster."""
from typing import Any

from distributed import WorkerPlugin  # type: ignore[import]


class AccelerateAll(WorkerPlugin):  # type: ignore[misc]
    """Of each worker, also one that is started again."""

    name = "warren.xgboost"

    def setup(self, worker: Any) -> None:
        """Dask calls it when the worker is there."""
        import warren.xgboost  # pylint: disable=import-outside-toplevel

        del worker
        warren.xgboost.accelerate_all()
