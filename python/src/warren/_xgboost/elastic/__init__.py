"""Trainings that go on when workers are lost or come, for warren.xgboost.train(..., elastic=True).

The rows of each data set are a list of shares (warren/_elastic/shares.py), of which each worker holds some in a matrix (rows.py). The cuts,
the intercept and the categories are computed once, by the first generation of workers, and then known to all (training.py). After a loss the
survivors leave the communicator and join that of the next generation (warren/_elastic/session.py). There they agree on the newest state that any of them has, deal
out the shares that nobody holds, and go on."""
