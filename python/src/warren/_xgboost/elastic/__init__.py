"""Training that continues when workers are lost or join, for warren.xgboost.train(..., elastic=True).

The rows of each data set are divided into shares (warren/_elastic/shares.py); each worker holds some of them in a matrix (rows.py). The cuts,
the intercept and the categories are computed once, by the first generation of workers, and passed on to later workers (training.py). After
a loss, the survivors leave the communicator and join the next generation's (warren/_elastic/session.py). There they restore the newest
state that any of them has, distribute the shares that no worker holds, and continue."""
