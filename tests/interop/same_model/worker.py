"""A worker of same_model_test.py: trains the cases of the seeds from FIRST up to, but not including, LAST. Rank 0 writes digests of the
models, and the evaluations.

    worker.py FORM FIRST LAST FOLDER

FORM: `rows` gives each worker random rows of each case, as an array or a CSR matrix; `exact` is the same with exact sums; with `parquet`,
`arrow`, `csv` and `libsvm`, the workers read files, which the job of one worker writes."""
import json
import pathlib
import sys
import warnings

import numpy as np
import scipy.sparse

import cases
import files
import warren.xgboost
from warren._xgboost.same_model import cuts
from warren._xgboost.same_model.gradients import OF_OBJECTIVES

FORM, FIRST, LAST, FOLDER = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4])


def may_be_empty(case):
    """Whether this case can be trained in this form if a worker has no rows."""
    return warren.xgboost.VERSION >= (3, 2) and FORM != "exact" and (warren.xgboost.VERSION < (3, 4) or case.function is None)


def rows_of(case, workers):
    """This worker's rows in memory; None if there are too few, or if FORM is "exact" and the objective does not support it."""
    cuts = case.cuts(workers, may_be_empty(case))
    if cuts is None or (FORM == "exact" and case.function is None and case.params["objective"] not in OF_OBJECTIVES):
        return None
    rank = warren.xgboost.get_rank()
    mine = slice(cuts[rank], cuts[rank + 1])
    features = case.features[mine]
    if case.seed % 3 == 0:
        has_value = ~np.isnan(features)
        begins = np.append(0, np.cumsum(has_value.sum(axis=1)))
        features = scipy.sparse.csr_matrix((features[has_value], np.nonzero(has_value)[1], begins), shape=features.shape)
    given = {name: values[mine] for name, values in (("label", case.label), ("weight", case.weight), ("qid", case.query),
                                                     ("base_margin", case.margin)) if values is not None}
    if case.bounds is not None:
        given.update(label_lower_bound=case.bounds[0][mine], label_upper_bound=case.bounds[1][mine])
    if "c" in case.types:
        given.update(feature_types=case.types, enable_categorical=True)
    return warren.xgboost.Data(features, **given)


def file_of(case, workers):
    """The files, which a job of one worker writes first. None if the case cannot be written in this form, or if a worker might get no rows
    but needs some."""
    if not files.can_be_written(case, FORM):
        return None
    if not may_be_empty(case) and workers > 1 and len(case.label) < 300:
        return None  # the reader may leave a worker without rows
    place = FOLDER / f"{FORM}-{case.seed}"
    if workers == 1:
        files.write(case, FORM, place)
    name, how = files.arguments(case, FORM, place)
    if case.seed % 5 == 0 and warren.xgboost.VERSION >= (3, 0) and FORM != "libsvm":
        how["external_memory"] = True
    return warren.xgboost.Data(name, **how)


def set_blocks(seed):
    """Varies how columns are read. Odd seeds use small blocks, as if the data set were large. Every third seed reads the blocks of files
    anew in each pass."""
    cuts.BLOCK_BYTES = 30_000 if seed % 2 else 64 << 20
    cuts._PART_OF_MEMORY = 1 << 40 if seed % 3 == 0 else 8  # pylint: disable=protected-access


def main():
    """Trains all cases."""
    warnings.simplefilter("ignore")
    results = {}
    with warren.xgboost.communicator():
        workers = warren.xgboost.get_world_size()
        for seed in range(FIRST, LAST):
            case = cases.make(seed)
            set_blocks(seed)
            data = rows_of(case, workers) if FORM in ("rows", "exact") else file_of(case, workers)
            if data is not None:
                results[seed] = cases.trained(case, data, case.rounds, reproducible="exact" if FORM == "exact" else True)
        if warren.xgboost.get_rank() == 0:
            (FOLDER / f"{FORM}-{FIRST}-{workers}.json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
