"""Trains on a folder of Parquet files, each worker on its share of the rows, and writes predictions.

    python make_data.py flights
    dmlc-submit --num-workers 4 python train.py flights predictions.parquet
    dmlc-submit --num-workers 4 --check-data python train.py s3://bucket/flights predictions.parquet
"""
import sys

import xgboost

import warren.xgboost

data, output = sys.argv[1:]
with warren.xgboost.communicator():
    train = warren.xgboost.load_dmatrix(f"{data}/train", label="late", quantile=True, external_memory="auto")
    # Use the training set's category codes, regardless of which carriers occur in this worker's rows.
    valid = warren.xgboost.load_dmatrix(f"{data}/valid", label="late", categories=train.warren_categories)
    model = xgboost.train({"objective": "binary:logistic", "tree_method": "hist", "eval_metric": "auc", "max_depth": 4}, train, 50,
                          evals=[(valid, "valid")], early_stopping_rounds=5, verbose_eval=10)
    if warren.xgboost.get_rank() == 0:
        model.save_model("model.json")
        print(f"{warren.xgboost.get_world_size()} workers: AUC {model.best_score:.3f} after {model.best_iteration + 1} rounds")
    warren.xgboost.predict_to(output, model, valid, whole=True, overwrite=True)
