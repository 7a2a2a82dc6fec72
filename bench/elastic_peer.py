"""The same training as elastic_worker.py with other software, for bench/elastic.

    elastic_peer.py dask|ray WORKERS FOLDER ROUNDS NOTES

`dask`: xgboost.dask on a LocalCluster, which restarts a killed worker; training continues from a checkpoint, which is saved after each
round. `ray`: Ray Train's XGBoostTrainer with max_failures=1, which restarts all workers from a checkpoint, which is saved after every
fourth round. The process of each rank appends lines to NOTES/RANK: its process ID, the round, and the time."""
import logging
import os
import pathlib
import sys
import time

import xgboost

SOFTWARE, WORKERS, FOLDER, ROUNDS, NOTES = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), pathlib.Path(sys.argv[5])
THREADS = max(1, len(os.sched_getaffinity(0)) // WORKERS)
PARAMS = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 8, "nthread": THREADS}
SAVED = NOTES / "checkpoint.ubj"
#: Only every fourth round is reported to Ray Train, because a report takes longer than a round, even without a checkpoint.
ROUNDS_PER_REPORT = 4
#: The number of attempts at training, including the first.
ATTEMPTS = 3


class Notes(xgboost.callback.TrainingCallback):
    """Notes the time after each round. `saved`: the file in which rank 0 saves its model after each round, or None."""

    def __init__(self, rank, notes, saved=None):
        super().__init__()
        self.rank, self.notes, self.saved = rank, notes, saved

    def after_iteration(self, model, epoch, evals_log):
        """Saves the model if this is rank 0 and a file is given, and appends a line to the notes."""
        rank = self.rank()
        if self.saved and rank == 0:
            model.save_model(self.saved.with_suffix(".new.ubj"))
            self.saved.with_suffix(".new.ubj").replace(self.saved)
        with (self.notes / str(rank)).open("a", encoding="ascii") as file:
            file.write(f"{os.getpid()} {model.num_boosted_rounds()} {time.time()}\n")
        return False


def rounds_of(model):
    """The number of rounds of a model; 0 for None."""
    return model.num_boosted_rounds() if model else 0


def with_dask():
    """Returns the model that xgboost.dask has trained."""
    import dask.dataframe
    import xgboost.collective
    import xgboost.dask
    from dask.distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with LocalCluster(n_workers=WORKERS, threads_per_worker=THREADS, dashboard_address=None, silence_logs=logging.CRITICAL,
                      memory_limit=0) as cluster, Client(cluster) as client:
        for attempt in range(ATTEMPTS):
            model = xgboost.Booster(model_file=SAVED) if SAVED.exists() else None
            try:
                client.wait_for_workers(WORKERS)
                frame = dask.dataframe.read_parquet(FOLDER).persist()
                rows = xgboost.dask.DaskQuantileDMatrix(client, frame.drop(columns="y"), frame["y"])
                found = xgboost.dask.train(client, PARAMS, rows, ROUNDS - rounds_of(model), xgb_model=model,
                                           callbacks=[Notes(xgboost.collective.get_rank, NOTES, SAVED)])
                return found["booster"]
            except Exception as error:  # pylint: disable=broad-except
                if attempt + 1 == ATTEMPTS:
                    raise
                sys.stderr.write(f"training again, as a worker was lost: {str(error).splitlines()[0]}\n")
    raise AssertionError


def with_ray():
    """Returns the model that Ray Train has trained."""
    import ray
    import ray.data
    import ray.train
    from ray.train.xgboost import RayTrainReportCallback, XGBoostTrainer

    params, rounds, notes, every = PARAMS, ROUNDS, NOTES, ROUNDS_PER_REPORT
    note = Notes  # a function that Ray sends to workers cannot refer to this module

    class Reports(RayTrainReportCallback):
        """Reports every ROUNDS_PER_REPORT-th round, with a checkpoint."""

        def after_iteration(self, model, epoch, evals_log):
            if model.num_boosted_rounds() % every == 0:
                return super().after_iteration(model, epoch, evals_log)
            return False

    def share():
        checkpoint = ray.train.get_checkpoint()
        model = RayTrainReportCallback.get_model(checkpoint) if checkpoint else None
        frame = ray.train.get_dataset_shard("train").materialize().to_pandas()
        rows = xgboost.QuantileDMatrix(frame.drop(columns="y"), frame["y"])
        xgboost.train(params, rows, rounds - (model.num_boosted_rounds() if model else 0), xgb_model=model,
                      callbacks=[Reports(frequency=1), note(lambda: ray.train.get_context().get_world_rank(), notes)])

    # One core more than there are workers: the rows are divided while the workers wait.
    ray.init(num_cpus=WORKERS + 1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    found = XGBoostTrainer(share, scaling_config=ray.train.ScalingConfig(num_workers=WORKERS), datasets={"train": ray.data.read_parquet(FOLDER)},
                           run_config=ray.train.RunConfig(storage_path=str(NOTES / "ray"),
                                                          failure_config=ray.train.FailureConfig(max_failures=1))).fit()
    model = RayTrainReportCallback.get_model(found.checkpoint)
    ray.shutdown()
    return model


if __name__ == "__main__":
    made = {"dask": with_dask, "ray": with_ray}[SOFTWARE]()
    if made.num_boosted_rounds() != ROUNDS:
        sys.exit(f"the model has {made.num_boosted_rounds()} rounds, expected {ROUNDS}")
