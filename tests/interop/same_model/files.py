"""The cases of cases.py as files, for warren.xgboost.Data."""
import numpy as np


def can_be_written(case, form):
    """Whether files of this form (parquet, arrow, csv or libsvm) can hold the case's rows."""
    # In text, the last feature with a value determines the number of features.
    no_text = "c" in case.types or case.margin is not None or np.isnan(case.features[:, -1]).all()
    return case.bounds is None and not (form == "libsvm" and no_text)


def write(case, form, folder):
    """Writes the files into a new folder."""
    folder.mkdir()
    if form == "libsvm":
        _write_text(case, folder / "rows.svm")
    else:
        _write_table(case, form, folder)


def arguments(case, form, folder):
    """The name of the data set and the other arguments of warren.xgboost.Data, which may filter or shuffle rows."""
    if form == "libsvm":
        return f"{folder}?format=libsvm&indexing_mode=0", {}
    named = {name: column for name, column, values in (("weight", "w", case.weight), ("qid", "q", case.query),
                                                       ("base_margin", "m", case.margin)) if values is not None}
    words = [f"f{number}" for number, letter in enumerate(case.types) if letter == "c"]
    how = {"shuffle": case.seed} if case.seed % 4 == 1 else {}
    if case.seed % 4 == 2 and len(case.label) >= 300:
        how["filters"] = [("y", ">", float(np.quantile(case.label, .1)) - .25)]
    return str(folder), {"label": "y", "format": form, "categorical": words, **named, **how}


def _write_text(case, path):
    """Writes LibSVM text, with the weight and the query of each row if the case has them."""
    with path.open("w", encoding="ascii") as file:
        for row, features in enumerate(case.features):
            label = np.format_float_scientific(case.label.reshape(len(case.label), -1)[row, 0])
            words = [f"{label}:{case.weight[row]!s}" if case.weight is not None else label]
            words += [f"qid:{case.query[row]}"] if case.query is not None else []
            words += [f"{number}:{value!s}" for number, value in enumerate(features) if not np.isnan(value)]
            file.write(" ".join(words) + "\n")


def _write_table(case, form, folder):
    """Writes the rows to one to three Parquet, Arrow or CSV files. Categories become words."""
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
        path = folder / f"part-{number}.{form}"
        if form == "parquet":
            pyarrow.parquet.write_table(part, path, row_group_size=int(random.choice([50, 700, 10000])))
        elif form == "arrow":
            pyarrow.feather.write_feather(part, str(path), chunksize=700, compression="uncompressed")
        else:
            pyarrow.csv.write_csv(part, path)
