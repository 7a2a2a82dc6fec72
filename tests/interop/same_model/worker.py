"""A worker of same_model_test.py: trains the cases of the seeds FIRST to LAST, and rank 0 writes digests of their models and evaluations.

    worker.py FORM FIRST LAST FOLDER

FORM: `rows` gives each worker random rows of each case, as an array or a CSR matrix; `exact` the same, with exact sums; `parquet`, `arrow`,
`csv` and `libsvm` are files, which the job of one worker writes."""
import hashlib
import json
import pathlib
import sys
import warnings

import numpy as np
import scipy.sparse
import xgboost

import cases
import warren.xgboost
from warren._xgboost.same_model import cuts
from warren._xgboost.same_model.gradients import OF_OBJECTIVES

VERSION = tuple(int(part) for part in xgboost.__version__.split(".")[:2])
FORM, FIRST, LAST, FOLDER = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4])


def may_be_empty(case):
    """Whether XGBoost can train this case if a worker has no rows."""
    return VERSION >= (3, 2) and FORM != "exact" and (VERSION < (3, 4) or case.function is None)


def rows_of(case, workers):
    """This worker's rows in memory; None if there are too few."""
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


def write_text(case, path):
    """Writes LibSVM text, with a weight for each row, or a query."""
    with path.open("w", encoding="ascii") as file:
        for row, features in enumerate(case.features):
            label = np.format_float_scientific(case.label.reshape(len(case.label), -1)[row, 0])
            words = [f"{label}:{case.weight[row]!s}" if case.weight is not None else label]
            words += [f"qid:{case.query[row]}"] if case.query is not None else []
            words += [f"{number}:{value!s}" for number, value in enumerate(features) if not np.isnan(value)]
            file.write(" ".join(words) + "\n")


def write_table(case, folder):
    """Writes Parquet, Arrow or CSV files, the categories as words."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    random = np.random.RandomState(case.seed)
    columns = {}
    for number, letter in enumerate(case.types):
        values = case.features[:, number]
        if letter == "c":
            columns[f"f{number}"] = pyarrow.array([None if np.isnan(value) else f"word {int(value)}" for value in values])
        else:
            columns[f"f{number}"] = pyarrow.array(values, mask=np.isnan(values))
    columns["y"] = case.label.reshape(len(case.label), -1)[:, 0]
    columns.update({name: values for name, values in (("w", case.weight), ("q", case.query), ("m", case.margin)) if values is not None})
    table = pyarrow.table(columns)
    files = random.randint(1, 4)
    places = np.linspace(0, len(table), files + 1).astype(int)
    for number in range(files):
        part = table.slice(places[number], places[number + 1] - places[number])
        path = folder / f"part-{number}.{FORM}"
        if FORM == "parquet":
            pyarrow.parquet.write_table(part, path, row_group_size=int(random.choice([50, 700, 10000])))
        elif FORM == "arrow":
            pyarrow.feather.write_feather(part, str(path), chunksize=700, compression="uncompressed")
        else:
            pyarrow.csv.write_csv(part, path)


def file_of(case, workers):
    """This worker's share of the files; None if the case cannot be written in this form."""
    is_text = FORM == "libsvm"
    # Text has as many features as the last one with a value says.
    no_text = "c" in case.types or case.margin is not None or np.isnan(case.features[:, -1]).all()
    if case.bounds is not None or (is_text and no_text):
        return None
    if not may_be_empty(case) and workers > 1 and len(case.label) < 300:
        return None  # the reader may leave a worker without rows
    place = FOLDER / f"{FORM}-{case.seed}"
    if workers == 1:
        place.mkdir()
        if is_text:
            write_text(case, place / "rows.svm")
        else:
            write_table(case, place)
    if is_text:
        return warren.xgboost.Data(f"{place}?format=libsvm&indexing_mode=0")
    named = {name: column for name, column, values in (("weight", "w", case.weight), ("qid", "q", case.query),
                                                       ("base_margin", "m", case.margin)) if values is not None}
    words = [f"f{number}" for number, letter in enumerate(case.types) if letter == "c"]
    how = {"shuffle": case.seed} if case.seed % 4 == 1 else {}
    if case.seed % 4 == 2 and len(case.label) >= 300:
        how["filters"] = [("y", ">", float(np.quantile(case.label, .1)) - .25)]
    if case.seed % 5 == 0 and VERSION >= (3, 0):
        how["external_memory"] = True
    return warren.xgboost.Data(str(place), label="y", format=FORM, categorical=words, **named, **how)


def set_blocks(seed):
    """Makes blocks of columns as small as those of large data sets are in proportion, and lets some be read in each pass."""
    cuts.BLOCK_BYTES = 30_000 if seed % 2 else 64 << 20
    cuts._PART_OF_MEMORY = 1 << 40 if seed % 3 == 0 else 8  # pylint: disable=protected-access


def trained(case, data):
    """The digest of a model, its evaluations, or the kind of the error that XGBoost raises for all numbers of workers."""
    values = {}
    try:
        model = warren.xgboost.train(case.params, data, case.rounds, evals=[(data, "train")] if case.is_evaluated else [],
                                     evals_result=values, reproducible="exact" if FORM == "exact" else True, obj=case.function, early_stopping_rounds=case.stop_after,
                                     verbose_eval=False)
    except (ValueError, xgboost.core.XGBoostError) as error:
        if "base_score must be in (0,1)" not in str(error):
            raise
        return ["an intercept that XGBoost refuses"]
    return [hashlib.sha256(bytes(model.save_raw("json"))).hexdigest(), values]


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
                results[seed] = trained(case, data)
        if warren.xgboost.get_rank() == 0:
            (FOLDER / f"{FORM}-{FIRST}-{workers}.json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
