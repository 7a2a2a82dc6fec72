"""Converts rows in memory to the forms that the libraries take."""
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np
from numpy.typing import NDArray


def in_known_form(rows: Any) -> Any:
    """Returns rows as an array, a CSR matrix or a pandas DataFrame. Converts polars and Arrow tables, other sparse matrices, lists, tuples,
    and objects that have `__array__` but no shape; returns anything else unchanged."""
    module = type(rows).__module__.partition(".")[0]
    if module == "polars" and hasattr(rows, "collect"):
        rows = rows.collect()
    if module == "polars" and hasattr(rows, "to_arrow"):
        rows, module = rows.to_arrow(), "pyarrow"
    if module == "pyarrow" and hasattr(rows, "to_pandas"):
        return _frame_of(rows)
    if hasattr(rows, "tocsr"):
        return rows.tocsr()
    is_array_like = isinstance(rows, (list, tuple)) or (hasattr(rows, "__array__") and not hasattr(rows, "shape"))
    return np.asarray(rows) if is_array_like else rows


def _frame_of(table: Any) -> Any:
    """Returns a pandas DataFrame whose columns keep their types even if values are missing (from pandas 1.5 on); dictionary columns become pandas
    categoricals."""
    import pandas as pd  # pylint: disable=import-outside-toplevel
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    if not hasattr(pd, "ArrowDtype"):
        return table.to_pandas()
    return table.to_pandas(types_mapper=lambda kind: None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind))


def split_arguments(given: Mapping[str, Any]) -> Tuple[Any, float, Dict[str, Any], Dict[str, Any]]:
    """Splits the arguments of XGBoost's matrices that are not None into the rows, the value that marks missing values, the fields of the
    rows, and the other arguments. Groups become queries, and the weight of a query becomes the weight of each of its rows. Raises ValueError
    if weights are given and their number differs from the number of queries, or if the rows of a query are not together."""
    options = {name: value for name, value in given.items() if value is not None}
    rows, missing, group = options.pop("data"), options.pop("missing", np.nan), options.pop("group", None)
    fields = {name: options.pop(name) for name in ("label", "weight", "qid", "base_margin") if name in options}
    if group is not None:
        fields["qid"] = np.repeat(np.arange(len(group)), group)
    if "qid" in fields and "weight" in fields:
        numbers, weights = queries(fields["qid"], len(fields["qid"])), np.asarray(fields["weight"], np.float32)
        assert numbers is not None
        number = int(numbers[-1]) + 1 if len(numbers) else 0
        if weights.shape != (number, ):
            raise ValueError(f"sample_weight has the shape {weights.shape}, expected a weight for each of {number} queries")
        fields["weight"] = weights[numbers]
    if hasattr(rows, "dtypes") or "feature_types" not in options:
        options.pop("enable_categorical", None)
    return rows, missing, fields, options


def queries(qid: Any, rows: int) -> Optional[NDArray[Any]]:
    """Returns the number of each row's query, counted from 0; None without `qid`. Raises ValueError if the rows of a query are not together,
    or if `qid` does not have one value per row."""
    if qid is None:
        return None
    found = np.asarray(qid)
    if found.shape != (rows,):
        raise ValueError(f"Data: qid has the shape {found.shape}, expected a value for each of {rows} rows")
    begins = np.ones(rows, bool)
    begins[1:] = found[1:] != found[:-1]
    runs = found[begins]
    if len(np.unique(runs)) != len(runs):
        values, counts = np.unique(runs, return_counts=True)
        raise ValueError(f"Data: the rows of query {values[counts > 1][0]!s} are not together: sort the rows by qid")
    numbers: NDArray[Any] = np.cumsum(begins) - 1
    return numbers
