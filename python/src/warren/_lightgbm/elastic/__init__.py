"""Training that continues when workers are lost or join, for warren.lightgbm.train(..., elastic=True).

Each worker holds some shares of the rows (warren/_elastic/shares.py), both as they were read and as LightGBM's Dataset (rows.py). The first
generation of workers agrees on the bins of the features, which all later Datasets use (bins.py). After a loss, the survivors leave LightGBM's
network and join the next generation (communicator.py, warren/_elastic/session.py). There they agree on the newest round that any of them has,
distribute the shares that no worker holds, and continue with a Booster that has the trees so far and whose rows start from the predictions of
these trees (training.py). parameters.py refuses parameters with which training cannot continue in this way."""
