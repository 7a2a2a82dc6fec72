"""A worker for tests of warren.data.scatter and gather: `scatter_worker.py LIBRARY WORLD`. It joins the job through LIBRARY. If all checks
pass, it prints "all right" and the kinds of tables it tested.

Every rank makes the same tables. A rank's expected share is its part in the result of numpy.array_split."""
import contextlib
import sys
import tracemalloc

import numpy as np

from refusals import refused
from warren import data
from warren.data import _peers


@contextlib.contextmanager
def joined(library):
    if library == "rabit":
        from warren import rabit
        with rabit.context([]):
            yield
    elif library == "collectives":
        from warren import collectives
        with collectives.context([]):
            yield
    elif library == "xgboost":
        import warren.xgboost as wx
        with wx.communicator():
            yield
    else:
        import torch.distributed
        if library == "warren":
            import warren.torch
            assert warren.torch
        torch.distributed.init_process_group(library)
        yield
        torch.distributed.destroy_process_group()


def numpy_tables(random, rows):
    record = np.dtype([("a", "<i2"), ("b", ">f8")])
    yield "vector", random.normal(size=rows)
    yield "matrix", random.normal(size=(rows, 3)).astype(np.float32)
    yield "Fortran", np.asfortranarray(random.integers(0, 9, size=(rows, 4)).astype(np.int8))
    yield "cube", random.integers(0, 2, size=(rows, 2, 3)).astype(bool)
    yield "strided", random.normal(size=(2 * rows, 6)).astype(">f4")[::2, 1:5]
    yield "no columns", np.zeros((rows, 0))
    yield "texts", np.array([f"row {row}" for row in range(rows)], "U8")
    yield "times", np.arange(rows).astype("datetime64[ms]")
    yield "records", np.array([(row, row / 3) for row in range(rows)], record)
    yield "tuple", (random.normal(size=(rows, 2)), np.arange(rows), None)
    yield "list", [np.arange(rows, dtype=np.float16)]
    yield "dict", {"X": random.normal(size=(rows, 2)), "more": {"weight": np.arange(rows)}}


def scipy_tables(random, rows):
    import scipy.sparse
    matrix = scipy.sparse.random(rows, 9, 0.4, format="csr", dtype=np.float32, random_state=rows)
    yield "csr_matrix", matrix
    if hasattr(scipy.sparse, "csr_array"):
        yield "csr_array", scipy.sparse.csr_array(matrix)
    wide = scipy.sparse.csr_matrix(matrix, copy=True)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    yield "CSR and labels", (wide, random.normal(size=rows))


WORDS = ["", "a", "bc", "ä" * 9, None]


def arrow_tables(random, rows):
    import pyarrow as pa
    words = [WORDS[one] for one in random.integers(0, 5, rows)]
    table = pa.table({
        "number": pa.array(random.normal(size=rows)), "word": pa.array(words, pa.string()),
        "category": pa.array(words, pa.string()).dictionary_encode(),
        "list": pa.array([[1] * (row % 3) for row in range(rows)], pa.list_(pa.int32())),
        "flag": pa.array([None if row % 5 == 0 else row % 2 == 0 for row in range(rows)], pa.bool_()),
        "when": pa.array(np.arange(rows), pa.timestamp("us", "Europe/Berlin"))}, metadata={"made": "here"})
    yield "Table", table
    yield "chunks", pa.concat_tables([table.slice(0, rows // 3), table.slice(rows // 3)])
    yield "RecordBatch", table.combine_chunks().to_batches()[0] if rows else pa.RecordBatch.from_pylist([], table.schema)
    yield "ChunkedArray", table["category"]
    yield "Table and labels", (table, np.arange(rows))


def pandas_tables(random, rows):
    import pandas as pd
    words = pd.Series([WORDS[one] for one in random.integers(0, 5, rows)], dtype="str")
    frame = pd.DataFrame({
        "number": random.normal(size=rows), "category": words.astype(pd.CategoricalDtype(["bc", "", WORDS[3], "a", "no"])),
        "word": words,
        "Int": pd.Series([None if row % 4 == 0 else row for row in range(rows)], dtype="Int16"),
        "ordered": pd.Categorical(random.integers(0, 3, rows), [2, 0, 1], ordered=True),
        "when": pd.Series(np.arange(rows).astype("datetime64[ns]")).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")})
    frame["flag"] = frame["number"] > 0
    yield "DataFrame", frame
    yield "by word", frame.set_index("word")
    yield "by two", frame.set_index(["category", "Int"])
    yield "of arrays", pd.DataFrame(random.normal(size=(rows, 4)), columns=pd.Index([1, "x", "x", None]),
                                     index=range(5, 5 + 2 * rows, 2))
    yield "Series", frame["category"]
    yield "X and y", (frame, frame["when"], np.arange(rows))


def polars_tables(random, rows):
    import polars as pl
    words = [WORDS[one] for one in random.integers(0, 5, rows)]
    frame = pl.DataFrame({"number": random.normal(size=rows), "word": words, "category": words, "one_of": words,
                          "list": [[1] * (row % 3) for row in range(rows)]},
                         schema={"number": pl.Float32, "word": pl.String, "category": pl.Categorical,
                                 "one_of": pl.Enum([word for word in WORDS if word is not None]), "list": pl.List(pl.Int16)})
    yield "DataFrame", frame
    yield "Series", frame["category"]
    yield "in a dict", {"X": frame, "y": np.arange(rows)}


def sliced(table, begin, end):
    if isinstance(table, (tuple, list)):
        return type(table)(sliced(part, begin, end) for part in table)
    if isinstance(table, dict):
        return {key: sliced(part, begin, end) for key, part in table.items()}
    if table is None:
        return None
    if type(table).__module__.startswith(("pyarrow", "polars")):
        return table.slice(begin, end - begin)
    if hasattr(table, "indptr"):
        part = table[begin:end]
        part.indices, part.indptr = part.indices.astype(table.indices.dtype), part.indptr.astype(table.indices.dtype)
        return part
    return table.iloc[begin:end] if hasattr(table, "iloc") else table[begin:end]


def same(one, other, what):
    """Checks that both have the same type, including dtypes and categories, and the same rows."""
    assert type(one) is type(other), (what, type(one), type(other))
    package = type(one).__module__.split(".", maxsplit=1)[0]
    if one is None:
        return
    if isinstance(one, (tuple, list)):
        assert len(one) == len(other), what
        for parts in zip(one, other):
            same(*parts, what)
    elif isinstance(one, dict):
        assert list(one) == list(other), what
        for key, part in one.items():
            same(part, other[key], what)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other), (what, one, other)
    elif package == "scipy":
        assert one.dtype == other.dtype and one.indices.dtype == other.indices.dtype and one.shape == other.shape, what
        assert (one != other).nnz == 0 and np.array_equal(one.indptr, other.indptr), what
    elif package == "pandas":
        import pandas as pd
        check = pd.testing.assert_frame_equal if isinstance(one, pd.DataFrame) else pd.testing.assert_series_equal
        check(one, other, check_index_type="exact")
        assert isinstance(one.index, pd.RangeIndex) == isinstance(other.index, pd.RangeIndex), (what, one.index, other.index)
    elif package == "polars":
        schemas = [table.to_frame().schema if type(table).__name__ == "Series" else table.schema for table in (one, other)]
        assert one.equals(other) and schemas[0] == schemas[1], (what, one, other)
    else:
        assert one.equals(other), (what, one, other)
        if hasattr(one, "schema"):
            assert one.schema.equals(other.schema, check_metadata=True), (what, one.schema, other.schema)


KINDS = {"numpy": numpy_tables, "scipy": scipy_tables, "pyarrow": arrow_tables, "pandas": pandas_tables, "polars": polars_tables}


def has(package):
    try:
        __import__(package)
    except ImportError:
        return False
    return True


def check_kinds(kinds, rank, world):
    sizes = [0, 1, max(world - 1, 2), int(np.random.default_rng(world).integers(world, 60))]
    for kind in kinds:
        for place, rows in enumerate(sizes):
            cuts = np.cumsum([0, *(len(part) for part in np.array_split(np.arange(rows), world))])
            for number, (name, table) in enumerate(KINDS[kind](np.random.default_rng(rows), rows)):
                if world > 2 and (place + number) % 2:
                    continue  # every other case is left out, since small messages take milliseconds with XGBoost 1.7
                what = (kind, name, rows)
                root = (rows + number) % world
                piece_bytes = 50 if number // 2 % 2 else 64 << 20
                share = data.scatter(table if rank == root else None, root, piece_bytes=piece_bytes)
                same(share, sliced(table, cuts[rank], cuts[rank + 1]), what)
                whole = data.gather(share, root, piece_bytes=piece_bytes)
                if rank == root:
                    same(whole, table, what)
                else:
                    assert whole is None, what


def check_refusals(rank, world):
    last = world - 1
    mine = lambda table: table if rank == last else None  # noqa: E731
    refused(ValueError, "[1] is an array of Python objects (object)", data.scatter,
            mine((np.zeros(3), np.array([None] * 3))), last)
    refused(ValueError, "lengths differ: ['X'] has 3 rows, and ['y'] has 4", data.scatter,
            mine({"X": np.zeros(3), "y": np.zeros(4)}), last)
    refused(ValueError, "is a builtins.str, expected NumPy arrays", data.scatter, mine("rows"), last)
    refused(ValueError, "is empty", data.scatter, mine(()), last)
    refused(ValueError, "a single value", data.scatter, mine(np.array(3)), last)
    refused(ValueError, f"root is {world}, expected a rank", data.scatter, None, world)
    refused(ValueError, "piece_bytes is 0", data.scatter, mine(np.zeros(3)), last, piece_bytes=0)
    refused(ValueError, f"rank {last} is the root, but gave None", data.scatter, None, last)
    refused(ValueError, "queries of 4 rows in total, but the table has 5", data.scatter, mine(np.zeros(5)), last, group=[2, 2])
    refused(ValueError, "group[1] is -1", data.scatter, mine(np.zeros(5)), last, group=[6, -1])
    refused(ValueError, "a single value", data.gather, 3.0)
    assert data.gather(None) is None
    if world > 1:
        refused(ValueError, f"rank {last} gave a table, but the root is rank 0", data.scatter,
                np.zeros(3) if rank in (0, last) else None)
        refused(ValueError, "scatter: rank 0 has root=0, and rank 1 has root=1", data.scatter, np.zeros(3), min(rank, 1))
        refused(ValueError, f"differ in ['y']: float64 on rank 0, int32 on rank {last}", data.gather,
                {"X": np.zeros(3), "y": np.zeros(3, np.int32 if rank == last else float)})
        refused(ValueError, f"rows of the shape (2,) on rank 0, rows of the shape (3,) on rank {last}", data.gather,
                np.zeros((2, 3 if rank == last else 2)))
        refused(ValueError, "a tuple on rank 0, an array of float64 on rank", data.gather,
                np.zeros(2) if rank == last else (np.zeros(2),))
        got = data.gather(None if rank == 0 else np.full(rank, rank), last)
        if rank == last:
            same(got, np.repeat(np.arange(world), np.arange(world)), "None on a rank")


def check_queries(rank, world):
    random = np.random.default_rng(5)
    for queries in (0, 1, 3, 40):
        sizes = random.integers(0, 9, queries)
        rows = np.arange(sizes.sum())
        share, group = data.scatter(rows if rank == 0 else None, group=sizes if rank == 0 else None, piece_bytes=40)
        assert group.sum() == len(share) and group.dtype == np.int64, (group, share)
        every, groups = data.gather(share), data.gather(group)
        if rank == 0:
            assert np.array_equal(every, rows) and np.array_equal(groups, sizes), (every, groups)


def check_memory(rank, world):
    """Beyond the existing rows, scatter and gather use memory for the result and one piece, plus a little. (Tables other than arrays need
    more: each piece first becomes a separate table.)"""
    piece, rows = 4 << 20, 8 << 20  # all rows together: 64 MiB
    table = np.arange(rows, dtype=np.float64) if rank == 0 else None
    data.scatter(np.zeros(1) if rank == 0 else None)  # imports triggered here do not count
    tracemalloc.start()
    share = data.scatter(table, piece_bytes=piece)
    peak = tracemalloc.get_traced_memory()[1]
    assert share.nbytes <= -(-rows // world) * 8
    assert peak <= share.nbytes + piece + (1 << 20), (rank, peak, share.nbytes)
    assert peak >= share.nbytes, "nothing was measured"
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    whole = data.gather(share, piece_bytes=piece)
    peak = tracemalloc.get_traced_memory()[1] - before
    assert peak <= (rows * 8 if rank == 0 else 0) + piece + (1 << 20), (rank, peak)
    tracemalloc.stop()
    if rank == 0:
        assert np.array_equal(whole, table)


def check_categories(rank, world):
    """Checks that gather unifies the ranks' categories and keeps the index, and that unsuitable columns are refused."""
    own = [["a", "b", "x"][one] for one in (0, 1, 2)] if rank == 0 else ["x", f"only {rank}", None]
    every = ["a", "b", "x"] + [word for one in range(1, world) for word in ("x", f"only {one}", None)]
    if has("pandas"):
        import pandas as pd
        series = pd.Series(own, dtype="category", name="c", index=range(3 * rank, 3 * rank + 3))
        found = data.gather(series, piece_bytes=2)
        if rank == 0:
            assert list(found.cat.categories) == ["a", "b", "x"] + sorted(f"only {one}" for one in range(1, world)), found
            pd.testing.assert_series_equal(found.astype("str"), pd.Series(every, dtype="str", name="c"))
        elsewhere = data.gather(pd.Series(own, index=[9, 9, 9], dtype="str"))
        if rank == 0:
            assert list(elsewhere.index) == [9] * 3 * world, elsewhere.index
        refused(ValueError, "column 'c' has Python objects", data.scatter,
                pd.DataFrame({"c": pd.Series([{}], dtype=object)}) if rank == 0 else None)
        if world > 1:
            refused(ValueError, "differ in column 'c': float64 on rank 0, int64 on rank 1", data.gather,
                    pd.DataFrame({"c": [0.5 if rank != 1 else 1]}))
    if has("pyarrow"):
        import pyarrow as pa
        hundred = pa.array([f"{rank} {one}" for one in range(100)])
        narrow = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), hundred)
        found = data.gather(pa.table({"c": pa.array(own).dictionary_encode(), "d": narrow}), piece_bytes=2)
        if rank == 0:
            assert found["c"].to_pylist() == every, found
            assert found["d"].to_pylist() == [word for one in range(world) for word in (f"{one} 0", f"{one} 1", None)], found
            assert all(chunk.dictionary.equals(found["c"].chunk(0).dictionary) for chunk in found["c"].chunks)
        if world > 1:
            refused(ValueError, "column 'c': double on rank 0, int64 on rank 1", data.gather,
                    pa.table({"c": [0.5 if rank != 1 else 1]}))
            refused(ValueError, "columns ['c'] on rank 0, columns ['d'] on rank 1", data.gather,
                    pa.table({"d" if rank == 1 else "c": [1]}))
    if has("polars"):
        import polars as pl
        found = data.gather(pl.Series("c", own, pl.Categorical), piece_bytes=2)
        if rank == 0:
            assert found.to_list() == every and found.dtype == pl.Categorical, found


def main():
    library, world = sys.argv[1], int(sys.argv[2])
    if world > 1:
        try:
            _peers.current()
            raise SystemExit("a worker that has not joined its job was taken for alone")
        except RuntimeError as error:
            assert f"one of {world} workers of a job" in str(error), error
    with joined(library):
        peers = _peers.current()
        rank = peers.rank
        assert peers.world == world, (peers, peers.world)
        of = {"rabit": "_Warren", "collectives": "_Warren", "xgboost": "_XGBoost"}.get(library, "_Torch")
        assert type(peers).__name__ == (of if world > 1 else "Alone"), peers
        # Sizes differ a lot. With three ranks or more, the total exceeds _peers.ALLREDUCE_BYTES, so it is gathered by broadcasts.
        assert [len(one) for one in peers.allgather(b"x" * (rank * 700_000))] == [one * 700_000 for one in range(world)]
        if world > 1:
            refused(TypeError, f"rank {world - 1}'s object cannot be sent", peers.allgather,
                    (lambda: 0) if rank == world - 1 else rank)
        assert peers.broadcast([rank], world - 1) == [world - 1]
        top = np.array([2**64 - 1 - rank, rank, 2**63 - rank], np.uint64)
        assert peers.greatest(top).tolist() == [2**64 - 1, world - 1, 2**63] and top[1] == rank
        kinds = [kind for kind in KINDS if has(kind)]
        check_kinds(kinds, rank, world)
        check_refusals(rank, world)
        check_queries(rank, world)
        check_categories(rank, world)
        if world == 2:
            check_memory(rank, world)
        print("all right", rank, *kinds, flush=True)


main()
