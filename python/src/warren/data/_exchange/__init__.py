"""Rows that one worker has, shared out to all; rows of all workers, brought together; predictions of all as files.

- scattering: `scatter` and `gather`, over whatever job the process is in.
- predictions: what `warren.xgboost.predict_to` does.
- transfer: pieces of rows from one rank to another.
- shares: which rows are whose. Pure functions.
- tables: a table of any kind taken apart into columns, and put together again. Nothing from there on communicates.
- columns: what a column and a tree of them can do. arrays (NumPy, SciPy's CSR), arrow, pandas, polars: the columns of each
  library, which is imported where a table is its own.
- pieces: rows of columns as bytes, and back.
"""
from warren.data._exchange.scattering import gather, scatter

__all__ = ["gather", "scatter"]
