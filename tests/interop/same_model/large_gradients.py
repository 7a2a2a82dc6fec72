"""A worker whose gradients differ by many orders of magnitude: large_gradients.py True|exact"""
import sys

import numpy as np

import warren.xgboost

with warren.xgboost.communicator():
    random = np.random.RandomState(warren.xgboost.get_rank())
    features = random.randn(2000, 3).astype("float32")
    label = np.exp(4 * features[:, 0] + random.randn(2000)).astype("float32")
    params = {"objective": "reg:gamma", "nthread": 1}
    how = sys.argv[1] if sys.argv[1] == "exact" else True
    warren.xgboost.train(params, warren.xgboost.Data(features, label=label), 5, reproducible=how)
