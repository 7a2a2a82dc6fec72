"""Runs one way from Parquet to the end of the first round of training: python ways.py WAY FOLDER WORKERS. Prints a line of JSON for each
worker: which it is, and the peak memory of its process."""
import glob
import json
import os
import resource
import sys

way, folder, workers = (*sys.argv[1:3], int(sys.argv[3])) if len(sys.argv) == 4 else ("", "", 0)
PARAMS = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 6, "nthread": int(os.environ.get("OMP_NUM_THREADS", "0"))}


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def tell(worker, peak):
    print("loading " + json.dumps({"worker": worker, "peak_mb": peak}), flush=True)


def warren(**how):
    import xgboost as xgb
    import warren.xgboost
    with warren.xgboost.communicator():
        xgb.train(PARAMS, warren.xgboost.load_dmatrix(folder, label="y", **how), 1)
        tell(os.getpid(), peak_mb())


def pandas():
    """Reads all rows in one process; in a job, each worker reads its share of the files."""
    import pandas as pd
    import xgboost as xgb
    import warren.xgboost
    with warren.xgboost.communicator():
        mine = sorted(glob.glob(folder + "/*"))[warren.xgboost.get_rank()::warren.xgboost.get_world_size()]
        frame = pd.concat([pd.read_parquet(path) for path in mine])
        xgb.train(PARAMS, xgb.DMatrix(frame.drop(columns="y"), frame["y"]), 1)
        tell(os.getpid(), peak_mb())


def dask():
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster
    from xgboost import dask as dxgb
    with LocalCluster(n_workers=workers, threads_per_worker=PARAMS["nthread"] or os.cpu_count(), memory_limit=0, dashboard_address=None) as cluster, \
            Client(cluster) as client:
        frame = dd.read_parquet(folder).persist()  # otherwise labels and features would have different partitions
        matrix = dxgb.DaskDMatrix(client, frame.drop(columns="y"), frame["y"])
        dxgb.train(client, PARAMS, matrix, 1)
        for worker, peak in client.run(peak_mb).items():
            tell(worker, peak)


def ray():
    import ray as r
    import ray.train
    from ray.train.xgboost import XGBoostTrainer
    r.init(num_cpus=max(workers + 1, os.cpu_count()), include_dashboard=False, logging_level="ERROR")

    def loop():
        import xgboost as xgb
        frame = ray.train.get_dataset_shard("train").materialize().to_pandas()
        matrix = xgb.DMatrix(frame.drop(columns="y"), frame["y"])
        xgb.train(PARAMS, matrix, 1)
        tell(os.getpid(), peak_mb())

    XGBoostTrainer(loop, scaling_config=ray.train.ScalingConfig(num_workers=workers),
                   datasets={"train": r.data.read_parquet(folder)}).fit()


WAYS = {"warren": warren, "warren, QuantileDMatrix": lambda: warren(quantile=True), "warren, pages on disk": lambda: warren(external_memory=True),
        "pandas": pandas, "dask": dask, "ray": ray}
if __name__ == "__main__":
    WAYS[way]()
