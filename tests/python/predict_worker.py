"""A worker for tests of warren.xgboost.predict_to: `predict_worker.py WORLD FOLDER SUFFIX`. Prints "all right" if all checks pass.

Rank 1, if it exists, has no rows. Every rank also predicts all rows, which gives the expected contents of the files."""
import os
import resource
import sys

import numpy as np
import xgboost as xgb

import warren.xgboost as wx
from warren import data
from refusals import refused


def read(path):
    if path.endswith(".npy"):
        return np.load(path)
    if path.endswith(".csv"):
        with open(path, encoding="ascii") as file:
            names = file.readline().strip().split(",")
            rows = np.array([line.split(",") for line in file], np.float32).reshape(-1, len(names))
    else:
        import pyarrow.parquet as pq  # pylint: disable=import-outside-toplevel
        table = pq.read_table(path)
        names = table.column_names
        rows = np.stack([column.to_numpy() for column in table.columns], axis=1)
        assert rows.dtype == np.float32, rows.dtype
    if names == ["prediction"]:
        return rows[:, 0]
    assert names == [f"prediction_{place}" for place in range(rows.shape[1])], names
    return rows


def check(folder, suffix):
    rank, world = wx.get_rank(), wx.get_world_size()
    random = np.random.default_rng(7)
    features, labels = random.normal(size=(60 * world, 4)).astype(np.float32), random.integers(0, 3, 60 * world)
    model = xgb.train({"objective": "multi:softprob", "num_class": 3, "tree_method": "approx", "max_depth": 2},
                      xgb.DMatrix(features[rank * 60:rank * 60 + 60], label=labels[rank * 60:rank * 60 + 60]), 3)
    counts = [0 if one == 1 else 5 + one for one in range(world)]
    begin = sum(counts[:rank])
    matrix = xgb.DMatrix(features[begin:begin + counts[rank]])
    every = xgb.DMatrix(features[:sum(counts)])
    for name, options in (("margin", {}), ("class", {"output_margin": True}), ("leaf", {"pred_leaf": True})):
        expected = model.predict(every, **options).astype(np.float32)
        parts = os.path.join(folder, f"{name}.{suffix}")
        wx.predict_to(parts, model, matrix, **options)
        own = read(f"{parts}/part-{rank:05d}-of-{world:05d}.{suffix}")
        assert np.array_equal(own, expected[begin:begin + counts[rank]]), (name, own)
        data.gather(np.zeros(1))  # a barrier: all files exist
        assert sorted(os.listdir(parts)) == [f"part-{one:05d}-of-{world:05d}.{suffix}" for one in range(world)], os.listdir(parts)
        whole = os.path.join(folder, f"whole-{name}.{suffix}")
        wx.predict_to(whole, model, matrix, whole=True, **options)
        assert np.array_equal(read(whole), expected), name
        refused(FileExistsError, "whole-" + name, wx.predict_to, whole, model, matrix, whole=True)
        refused(FileExistsError, f"holds {world} parts of another run, such as part-00000-of-", wx.predict_to,
                parts, model, matrix)
        data.gather(np.zeros(1))  # a barrier: all ranks have been refused
        if rank == 0:
            with open(f"{parts}/part-00007-of-00099.{suffix}", "wb"), open(f"{parts}/notes.txt", "wb"):
                pass
        data.gather(np.zeros(1))
        wx.predict_to(parts, model, matrix, overwrite=True, **options)
        wx.predict_to(whole, model, matrix, whole=True, overwrite=True, **options)
        data.gather(np.zeros(1))
        assert len(os.listdir(parts)) == world + 1, os.listdir(parts)
    refused(ValueError, "found the suffix 'txt', expected .parquet", wx.predict_to, folder + "/a.txt", model, matrix)
    if world > 1:
        refused(ValueError, "differ in path", wx.predict_to, f"{folder}/{rank}.{suffix}", model, matrix)
    if suffix != "npy":
        refused(ValueError, "3 dimensions cannot be written", wx.predict_to,
                f"{folder}/three.{suffix}", model, matrix, pred_contribs=True)
    else:
        wx.predict_to(f"{folder}/three.npy", model, matrix, whole=True, pred_contribs=True)
        assert np.array_equal(read(f"{folder}/three.npy"), model.predict(every, pred_contribs=True))
    fails_on_one_rank(folder, suffix, model, matrix)


def fails_on_one_rank(folder, suffix, model, matrix):
    """If one rank cannot write its file, no file appears, and all ranks get the error."""
    rank, last = wx.get_rank(), wx.get_world_size() - 1
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for whole, failing in ((False, last), (True, 0)):
        if rank == failing:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))  # fails as on a full disk
        path = f"{folder}/full-{whole}.{suffix}"
        refused(OSError, f"File too large: '{path}", wx.predict_to, path, model, matrix, whole=whole)
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        data.gather(np.zeros(1))
        assert not (os.path.exists(path) and (whole or os.listdir(path))), os.listdir(folder)
    wx.predict_to(f"{folder}/full-False.{suffix}", model, matrix)  # the failed call left no file that would be in the way


def main():
    world, folder, suffix = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    with wx.communicator():
        assert wx.get_world_size() == world, (wx.get_world_size(), world)
        check(folder, suffix)
        print("all right", wx.get_rank(), flush=True)


main()
