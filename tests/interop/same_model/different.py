"""Trains with reproducible=True in a job of two workers, in ways in which the workers differ. All workers must raise the same error."""
import os
import warnings

import numpy as np

import warren.xgboost


def squares(predictions, matrix):
    """An objective function."""
    return predictions - matrix.get_label(), np.ones_like(predictions)


def main():
    warnings.simplefilter("ignore")
    with warren.xgboost.communicator():
        rank = warren.xgboost.get_rank()
        features = np.random.default_rng(rank).random((50, 2), np.float32)
        data = warren.xgboost.Data(features, label=features[:, 0])

        def train(params, **options):
            return warren.xgboost.train({"max_depth": 2, **params}, data, 2, reproducible=True, **options)

        def continued(model):
            model.set_attr(rank=str(rank))
            return [model, model.save_raw(), f"{rank}.ubj"]

        same, other = train({}), train({"eta": .5})
        for model in continued(same):
            same.save_model(f"{rank}.ubj")
            train({}, xgb_model=model)
        train({"nthread": rank + 1, "verbosity": rank, "lambda": np.float64(1) if rank else 1.0, "eval_metric": ["rmse"]})
        train({}, obj=squares)
        both = "rank 0 has {0}={1}, and rank 1 {0}={2}: all workers must give the same"
        objectives = "reg:squarederror", "reg:logistic"
        for name, values in (("eta", (.3, .1)), ("seed", (0, 1)), ("objective", objectives), ("max_bin", (256, 16))):
            expect(both.format(name, *map(repr, values)), lambda name=name, values=values: train({name: values[rank]}))
        expect("rank 0 has eta=not given, and rank 1 eta=0.1", lambda: train({"eta": .1} if rank else {"eta": None}))
        for pair in zip(continued(same), continued(other)):
            (other if rank else same).save_model(f"{rank}.ubj")
            expect("rank 0 has xgb_model='a model with the hash ", lambda pair=pair: train({}, xgb_model=pair[rank]))
        if rank == 0:
            os.unlink("0.ubj")
        expect("rank 0 has xgb_model='unreadable', and rank 1 xgb_model='a model", lambda: train({}, xgb_model=f"{rank}.ubj"))


def expect(text, work):
    """Raises AssertionError unless `work` raises a ValueError with this text."""
    try:
        work()
    except ValueError as error:
        assert text in str(error), (text, error)
        return
    raise AssertionError(f"nothing was raised, expected {text}")


main()
