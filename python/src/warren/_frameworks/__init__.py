"""Code shared by the modules for XGBoost, LightGBM, PyTorch, Horovod and key-value stores."""
