"""Warren for Python: rabit's API over Warren's engine, and XGBoost of every version under dmlc-submit.

`warren.rabit` is rabit's Python API; `warren.xgboost` joins XGBoost to the job that dmlc-submit started;
`warren.compat` gives old scripts `xgboost.rabit` back; `warren.tracker` and `warren.submit` start the programs.
"""
__version__ = "0.1.0"
