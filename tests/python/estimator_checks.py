#!/usr/bin/env python3
"""Runs scikit-learn's estimator checks (sklearn.utils.estimator_checks) on the estimators of XGBoost and LightGBM, and on Warren's with two
workers. Warren's must pass every check that the library's own pass; otherwise lines with DIFFERENT are printed, and the exit code is 1.

    tests/python/estimator_checks.py                        all checks, about 300 jobs
    tests/python/estimator_checks.py XGBRegressor check_estimators_pickle check_dict_unchanged
"""
import contextlib
import io
import itertools
import sys
import time
import unittest
import warnings

import lightgbm
import xgboost
from sklearn.utils import estimator_checks

import warren

HOW = {"XGB": {"n_estimators": 20, "verbosity": 0}, "LGB": {"n_estimators": 20, "verbose": -1}}
KINDS = ("XGBRegressor", "XGBClassifier", "XGBRanker", "LGBMRegressor", "LGBMClassifier", "LGBMRanker")


def checks_of(estimator):
    """Yields the name (with arguments), the estimator and the function of each check."""
    if hasattr(estimator_checks, "estimator_checks_generator"):
        found = estimator_checks.estimator_checks_generator(estimator, mark=None)
    else:  # before scikit-learn 1.6
        found = estimator_checks.check_estimator(estimator, generate_only=True)
    for one, check in found:
        more = {name: value for name, value in getattr(check, "keywords", {}).items() if name not in ("estimator_orig", "name")}
        yield " ".join([getattr(check, "func", check).__name__, *(f"{name}={value}" for name, value in more.items())]), one, check


def outcome(estimator, check):
    """Runs a check. Returns the exception that it raised, or None if it passed."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            check(estimator)
        except (Exception, unittest.SkipTest) as error:  # pylint: disable=broad-except  # whatever an estimator raises
            return error
    return None


def compared(kind, only):
    """Runs the checks named in `only`, or all if it is empty. Prints a line for each check that the library's estimator passes; returns
    whether Warren's passes all of these. Raises RuntimeError if scikit-learn's checks for the two estimators differ in name or order."""
    library, ours, how = (xgboost, warren.xgboost, HOW["XGB"]) if kind.startswith("XGB") else (lightgbm, warren.lightgbm, HOW["LGB"])
    nothing = ("nothing", None, None)
    pairs = itertools.zip_longest(checks_of(getattr(library, kind)(**how)), checks_of(getattr(ours, kind)(**how, num_workers=2)), fillvalue=nothing)
    is_same = True
    for (name, alone, check), (other, with_workers, our_check) in pairs:
        if name != other:
            raise RuntimeError(f"{kind}: scikit-learn has other checks for the estimator with workers: {other}, and not {name}")
        if only and name.partition(" ")[0] not in only or outcome(alone, check) is not None:
            continue
        begin = time.monotonic()
        error = outcome(with_workers, our_check)
        is_same = is_same and error is None
        print("same" if error is None else "DIFFERENT", kind, name, f"{time.monotonic() - begin:.1f} s", "" if error is None else repr(error),
              flush=True)
    return is_same


def main():
    kinds = [word for word in sys.argv[1:] if word in KINDS]
    only = [word for word in sys.argv[1:] if word not in KINDS]
    return 0 if all([compared(kind, only) for kind in kinds or KINDS]) else 1


if __name__ == "__main__":
    sys.exit(main())
