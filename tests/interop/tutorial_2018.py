# The kind of script that users of XGBoost wrote for rabit in 2018. It contains nothing specific to Warren or to newer versions.
import sys

import xgboost as xgb

xgb.rabit.init()

dtrain = xgb.DMatrix(sys.argv[1])
param = {'max_depth': 2, 'eta': 1, 'silent': 1, 'objective': 'binary:logistic', 'eval_metric': 'error'}
watchlist = [(dtrain, 'train')]
bst = xgb.train(param, dtrain, 4, watchlist, early_stopping_rounds=2)

if xgb.rabit.get_rank() == 0:
    bst.save_model(sys.argv[2])
xgb.rabit.tracker_print("Finished training\n")
xgb.rabit.finalize()
