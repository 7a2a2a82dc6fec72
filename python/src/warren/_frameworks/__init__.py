"""Parts that several of the modules for frameworks share (XGBoost, LightGBM, PyTorch, Horovod, key-value stores)."""
