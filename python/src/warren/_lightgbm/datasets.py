"""LightGBM's Datasets of rows that warren.data has read."""
import dataclasses
from typing import Any, Dict, List, Mapping, Optional

import lightgbm
import numpy as np

from warren.data import _load
from warren.data._table import Table


def as_lightgbm_reads(table: Table, asked: _load.Wanted) -> Table:
    """Returns the table with features as LightGBM reads them: entries that are absent from CSV text are missing values, not 0."""
    if not asked.is_text or asked.text_format != "csv":
        return table
    rows = table.features
    matrix = np.full(rows.shape, np.nan, "float32")
    matrix[np.repeat(np.arange(len(matrix)), np.diff(rows.indptr)), rows.indices] = rows.data
    return dataclasses.replace(table, features=matrix)


def require_one_label(label: Any) -> None:
    """Raises ValueError for several columns of labels."""
    if isinstance(label, (list, tuple)) and len(label) > 1:
        raise ValueError(f"label={list(label)!r}: LightGBM takes one column of labels")


def categories_of(table: Table) -> Optional[List[List[Any]]]:
    """The categories of the categorical columns, in the order of the columns, as LightGBM keeps them in a model: with them it numbers the
    categories of a pandas DataFrame in predictions. None if there are none."""
    return [list(table.categories[name]) for name in table.names or () if name in (table.categories or {})] or None


def of_table(table: Table, options: Mapping[str, Any], params: Mapping[str, Any], reference: Optional["lightgbm.Dataset"] = None
             ) -> "lightgbm.Dataset":
    """Returns a Dataset of this worker's rows; `options` are those of lightgbm.Dataset. With a `reference`, the Dataset has its bins and
    parameters."""
    found: Dict[str, Any] = {"label": table.label, "weight": table.weight, "group": table.group_sizes, "init_score": table.base_margin}
    if table.names is not None:
        found["feature_name"] = table.names
        found["categorical_feature"] = [name for name, kind in zip(table.names, table.types or []) if kind == "c"] or "auto"
    all_params = {**params, **(options.get("params") or {})}
    if reference is not None:
        found["reference"], all_params = reference, dict(reference.params)
    dataset = lightgbm.Dataset(table.features, **{**found, **options, "params": all_params})
    dataset.warren_categories, dataset.warren_is_share = table.categories, True
    dataset.pandas_categorical = categories_of(table)
    dataset.warren_columns = table.names  # the caller may have given the features other names
    return dataset
