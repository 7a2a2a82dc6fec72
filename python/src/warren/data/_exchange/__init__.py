"""Distributes rows that one worker has, collects the rows of all workers, and writes their predictions as files.

- scattering: `scatter` and `gather`, over the job that the process has joined.
- predictions: the implementation of `warren.xgboost.predict_to`.
- transfer: sends pieces of rows from one rank to another.
- shares: assigns rows to ranks. Pure functions.
- tables: splits a table of any kind into columns, and reassembles it. This module and the following ones do not communicate.
- columns: the interfaces of a column and of a tree of columns. arrays (NumPy, SciPy's CSR), arrow, pandas, polars: the columns of each
  library, which is imported only if a table belongs to it.
- pieces: encodes rows of columns as bytes, and decodes them."""
from warren.data._exchange.scattering import gather, scatter

__all__ = ["gather", "scatter"]
