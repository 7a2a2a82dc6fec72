"""Converts rows in memory to a table."""
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from warren._frameworks.rows import in_known_form, queries
from warren.data._peers import Peers
from warren.data._table import Table


def table(rows: Any, *, label: Any = None, weight: Any = None, qid: Any = None, base_margin: Any = None, missing: float = np.nan) -> Table:
    """Returns rows as a table. `rows` are of any kind that warren.xgboost.Data takes; a value equal to `missing` becomes NaN. Raises
    TypeError for rows of other kinds, and ValueError for columns and fields that cannot be used."""
    names: Optional[List[str]] = None
    types: Optional[List[str]] = None
    categories: Dict[str, List[Any]] = {}
    rows = in_known_form(rows)
    if hasattr(rows, "columns") and hasattr(rows, "dtypes") and hasattr(rows, "iloc"):
        features, names, types, categories = _of_pandas(rows)
    elif hasattr(rows, "tocsr"):
        # SciPy's own conversion would sum entries of the same place, which XGBoost keeps.
        features = type(rows)((rows.data.astype(np.float32, copy=False), rows.indices, rows.indptr), shape=rows.shape)
    elif is_array(rows):
        features = np.ascontiguousarray(rows, np.float32)
    else:
        raise TypeError(f"Data: found a {type(rows).__name__}{_shape(rows)}, expected files, a NumPy array of numbers with two dimensions, a "
                        "sparse matrix of SciPy, or a table of pandas, polars or Arrow")
    if not np.isnan(missing):
        features = features.copy()  # the array may belong to the caller
        values = features if isinstance(features, np.ndarray) else features.data
        values[values == np.float32(missing)] = np.nan
    count = features.shape[0]
    return Table(features, names, types, _field("label", label, count), _field("weight", weight, count), queries(qid, count),
                 _field("base_margin", base_margin, count), categories)


def is_array(rows: Any) -> bool:
    """Whether the rows are an array of numbers; these may be Python's."""
    return isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "biufO"


def names_of(frame: Any) -> List[str]:
    """The names that XGBoost gives the features of a pandas DataFrame."""
    return [" ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in frame.columns]


def require_whole_queries(qid: Any, peers: Peers) -> None:
    """A collective call. Raises ValueError on all workers if only some of them have a `qid`, or if a query begins on one worker and continues
    on the next worker that has rows."""
    if peers.world == 1:
        return
    queries = np.asarray(() if qid is None else qid)
    ends = peers.allgather(None if qid is None else [str(queries[0]), str(queries[-1])] if len(queries) else [])
    without = [rank for rank, of_one in enumerate(ends) if of_one is None]
    if len(without) == peers.world:
        return
    if without:
        raise ValueError(f"Data: rank {without[0]} has no qid, and others have one: give it on all workers, or on none")
    last: Optional[str] = None
    for rank, of_one in enumerate(ends):
        if of_one and of_one[0] == last:
            raise ValueError(f"Data: query {last} begins before the rows of rank {rank}, and goes on there: a query's rows must be on one worker")
        last = of_one[1] if of_one else last


def _shape(rows: Any) -> str:
    return f" of {rows.dtype} with the shape {rows.shape}" if isinstance(rows, np.ndarray) else ""


def _of_pandas(frame: Any) -> Tuple[NDArray[Any], List[str], List[str], Dict[str, List[Any]]]:
    names = names_of(frame)
    types: List[str] = []
    categories: Dict[str, List[Any]] = {}
    features = np.empty(frame.shape, np.float32)
    for number, name in enumerate(names):
        column = frame.iloc[:, number]
        if hasattr(column, "cat"):
            codes = column.cat.codes.to_numpy()
            features[:, number] = np.where(codes < 0, np.nan, codes)
            categories[name] = column.cat.categories.tolist()
            types.append("c")
            continue
        kind = getattr(column.dtype, "kind", "O")
        if kind not in "biuf":
            raise ValueError(f"Data: column {name!r} is {column.dtype}, expected numbers, booleans or categories")
        features[:, number] = column.to_numpy(dtype=np.float32, na_value=np.nan)
        types.append({"b": "i", "f": "q"}.get(kind, "int"))
    return features, names, types, categories


def _field(name: str, values: Any, rows: int) -> Optional[NDArray[Any]]:
    if values is None:
        return None
    found: NDArray[Any] = np.asarray(values, np.float32)
    if name == "base_margin" and found.ndim == 1 and rows and len(found) != rows and len(found) % rows == 0:
        found = found.reshape(rows, -1)
    if found.ndim not in (1, 2) or len(found) != rows:
        raise ValueError(f"Data: {name} has the shape {found.shape}, expected a value for each of {rows} rows")
    return found
