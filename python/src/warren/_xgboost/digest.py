"""Describes an XGBoost training run in a form that can be compared with another run: digests of rows and of functions, and plain values of
everything else. Digests guard against mistakes, not against forgery."""
import contextlib
import copyreg
import functools
import hashlib
import types
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from warren._xgboost.versions import WITH_CUTS
from warren.data._peers import Peers, together
from warren.data._table import Table

#: The number of entries of a matrix that are read at a time.
_ENTRIES_AT_A_TIME = 1 << 22
#: The maximum number of entries of a binned matrix that is converted back to values (12 bytes each) for the digest.
_MOST_ENTRIES_OF_BINS = 1 << 24
_FEW_ENTRIES = 1 << 16
#: The number of rows of a dense array that are digested at a time: their words stay in the cache.
_ROWS_AT_A_TIME = 1 << 13
#: The fields other than features that have a value, or several (label, base_margin), for each row.
_PER_ROW = ("label", "weight", "base_margin", "label_lower_bound", "label_upper_bound")
#: The limits for examining nested objects: depth and number.
_DEEPEST = 24
_MOST_OBJECTS = 100_000
#: The maximum length of a value in a message, in characters.
_SHORT = 60

#: An odd number, whose powers are the factors of words whose order matters.
_BASE = 0x9E3779B97F4A7C15

_Words = NDArray[np.uint64]
#: The part of a matrix's features that the digest covers. All ranks use the maximum of these constants over the ranks.
VALUES, CUTS, NOTHING = 0, 1, 2


def _mixed(words: _Words) -> _Words:
    """Applies, in place, a permutation of 64-bit words in which each bit of the result depends on many bits."""
    words ^= words >> np.uint64(32)
    words *= np.uint64(0x9FB21C651E98DF25)
    words ^= words >> np.uint64(29)
    return words


def _folded(words: _Words, more: _Words) -> _Words:
    """Mixes `more`, an array of the same size, into `words`, in place."""
    words ^= more
    words += np.uint64(0x2545F4914F6CDD1D)
    return _mixed(words)


def _bits(array: Any, rows: int) -> NDArray[np.uint32]:
    """The bits of float32 values, as a 2-D array with `rows` rows."""
    return np.ascontiguousarray(array, np.float32).reshape(rows, -1).view(np.uint32)


def _sums(words: _Words, ends: Any) -> _Words:
    """The sums of the words between adjacent positions in `ends`, modulo 2^64."""
    total: _Words = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
    found: _Words = np.diff(total[np.asarray(ends, np.int64)])
    return found


def _of_csr(part: Any) -> _Words:
    """A word for each row of a csr_matrix, independent of the order of a row's entries."""
    entries = part.indices.astype(np.uint64)
    entries <<= np.uint64(32)
    entries |= np.ascontiguousarray(part.data, np.float32).view(np.uint32)
    return _sums(_mixed(entries), part.indptr)


def _of_array(features: NDArray[np.float32]) -> _Words:
    """A word for each row of a dense array."""
    words = np.zeros(len(features), np.uint64)
    for begin in range(0, len(features), _ROWS_AT_A_TIME):
        part = words[begin:begin + _ROWS_AT_A_TIME]
        bits = np.ascontiguousarray(features[begin:begin + _ROWS_AT_A_TIME].T, np.float32).view(np.uint32)
        for column in bits:
            _folded(part, column.astype(np.uint64))
    return words


def _has_slices(matrix: Any) -> bool:
    """Whether rows can be extracted from the matrix: they cannot from binned matrices, or from pages on disk."""
    if matrix.num_row() == 0:
        return True
    try:
        matrix.slice(np.zeros(1, np.int32), allow_groups=True)
    except xgb.core.XGBoostError:
        return False
    return True


def _is_in_bins(matrix: Any) -> bool:
    """Whether the matrix is in memory and binned, so that XGBoost can convert it back to values."""
    return hasattr(xgb, "QuantileDMatrix") and isinstance(matrix, xgb.QuantileDMatrix)


def _parts(matrix: Any) -> Iterator[Any]:
    """Yields the features as csr_matrices, in the order of rows."""
    rows = matrix.num_row()
    if rows == 0 or not _has_slices(matrix):
        yield matrix.get_data()
        return
    step = max(1, _ENTRIES_AT_A_TIME * rows // max(matrix.num_nonmissing(), rows))
    for begin in range(0, rows, step):
        yield matrix.slice(np.arange(begin, min(begin + step, rows), dtype=np.int32), allow_groups=True).get_data()


def some_rows(matrix: Any, places: NDArray[np.int32]) -> Any:
    """Returns the features of these rows as a csr_matrix. If single rows cannot be extracted, returns all rows of a small binned matrix,
    and None for other matrices. Also returns None if the matrix has no rows."""
    if matrix.num_row() == 0 or not hasattr(matrix, "get_data"):
        return None
    if _has_slices(matrix):
        return matrix.slice(places, allow_groups=True).get_data()
    return matrix.get_data() if _is_in_bins(matrix) and matrix.num_nonmissing() <= _FEW_ENTRIES else None


def _seen(matrix: Any) -> int:
    """Returns the part of this rank's features that can be examined at a cost proportional to the size of the matrix: VALUES, CUTS or
    NOTHING."""
    if hasattr(matrix, "warren_digest"):
        return VALUES
    if hasattr(matrix, "get_data") and (_has_slices(matrix) or _is_in_bins(matrix) and matrix.num_nonmissing() <= _MOST_ENTRIES_OF_BINS):
        return VALUES
    return CUTS if isinstance(matrix, WITH_CUTS) and hasattr(matrix, "get_quantile_cut") else NOTHING


def _per_row(matrix: Any, name: str) -> Any:
    if name in ("label", "weight", "base_margin"):
        return getattr(matrix, "get_" + name)()
    return matrix.get_float_info(name)


def _groups(matrix: Any) -> Any:
    """Returns the rows at which queries begin, and the end of the last query; empty without queries."""
    return matrix.get_uint_info("group_ptr")


def _of_rows(matrix: Any, with_features: bool, first: int) -> int:
    """Returns the sum of one word per row or, if there are queries, per query. The sum does not depend on their order, unless `with_features`
    is false: a row's number, counted from `first`, then takes the place of its features."""
    if hasattr(matrix, "warren_digest"):
        return int(matrix.warren_digest)
    rows = matrix.num_row()
    if with_features and rows > 0:
        words: _Words = np.concatenate([_of_csr(part) for part in _parts(matrix)])
    else:
        words = np.arange(first, first + rows, dtype=np.uint64)
    return _sum(_of_words(words, _groups(matrix), lambda name: _per_row(matrix, name)))


class OfTable(NamedTuple):
    """Digests of the rows of a table, or, if there are queries, of its queries."""

    digest: int  #: independent of their order
    in_order: int  #: for the function `in_order`
    length: int  #: the number of rows, or of queries


def of_table(table: Table) -> OfTable:
    """Returns the digests of a table's rows. `digest` is the sum, modulo 2^64, of one word per row or, if there are queries, per query. For
    dense tables it differs from the digest that `_of_rows` computes from a matrix. If it is stored in a matrix's `warren_digest` attribute,
    `of_matrices` uses it instead of reading the rows. The digests of several tables may be added, modulo 2^64, if no query spans two of
    them."""
    words = _of_array(table.features) if isinstance(table.features, np.ndarray) else _of_csr(table.features)
    sizes = table.group_sizes
    groups = np.concatenate([[0], np.cumsum(sizes)]) if sizes is not None else ()
    fields = {"label": table.label, "weight": table.query_weight if sizes is not None else table.weight, "base_margin": table.base_margin}
    words = _of_words(words, groups, lambda name: () if fields.get(name) is None else fields[name])
    powers: _Words = np.cumprod(np.full(len(words), _BASE, np.uint64), dtype=np.uint64)
    return OfTable(_sum(words), _sum(words * powers), len(words))


def in_order(tables: Sequence[Tuple[int, int]]) -> int:
    """Returns a digest of the rows of adjacent tables, which depends on the order of the rows, but not on where one table ends and the next
    one begins. `tables`: the fields `in_order` and `length` of each table, in order."""
    found = before = 0
    for words, count in tables:
        found += words * pow(_BASE, before, 2**64)
        before += count
    return found % 2**64


def _of_words(words: _Words, groups: Any, field: Callable[[str], Any]) -> _Words:
    """Mixes the other fields into the rows' words, and returns these words or, if there are queries, the queries' words.
    `field` returns the values of a field, or an empty sequence if the field is not set."""
    rows, of_queries = len(words), []
    for place, name in enumerate(_PER_ROW):
        values = field(name)
        if len(values) == 0 or rows == 0:
            continue
        if name == "weight" and len(groups) > 1:
            of_queries.append(values)
            continue
        for column in _bits(values, rows).T:
            words = _folded(words, column.astype(np.uint64) | np.uint64(place + 1 << 32))
    if len(groups) > 1:
        words = _mixed(_sums(_mixed(words), groups))
        for values in of_queries:
            words = _folded(words, _bits(values, len(groups) - 1)[:, 0].astype(np.uint64))
    return _mixed(words)


def _sum(words: _Words) -> int:
    return int(np.sum(words, dtype=np.uint64))


def _hash(*pieces: Any) -> int:
    digest = hashlib.blake2b(digest_size=8)
    for piece in pieces:
        if isinstance(piece, np.ndarray) and piece.nbytes:
            digest.update(np.ascontiguousarray(piece).view(np.uint8).data)  # an array of times itself has no buffer
        else:
            digest.update(repr(piece).encode())
    return int.from_bytes(digest.digest(), "little")


def _of_cuts(matrix: Any) -> int:
    return _hash(*map(np.asarray, matrix.get_quantile_cut()))


def of_matrices(matrices: Sequence[Any], peers: Peers) -> List[Dict[str, Any]]:
    """Describes each data set as a whole, over all ranks: the numbers of rows, columns and values, and a digest of all features, labels,
    weights, base margins, bounds and queries. A collective call with the same number of matrices on all ranks; the result is the same on
    all ranks.

    The order of the rows and their distribution over ranks do not matter: a job with another number of workers has the same result. The rows
    of a query are digested together. Quantile cuts take the place of the features for binned matrices on disk, and for those in memory with
    more than 2^24 values on a rank (before XGBoost 2.0, and for pages of a DMatrix, nothing takes their place). In these cases, the order of
    the rows matters, rank by rank."""
    told = _of_all(peers, lambda: [(_seen(matrix), matrix.num_row()) for matrix in matrices])
    most = [int(one) for one in told[:, :, 0].max(axis=0)]
    firsts = [int(one) for one in told[:peers.rank, :, 1].sum(axis=0, dtype=np.uint64)]

    @functools.lru_cache(maxsize=None)  # usually, the training rows are also an evaluation set
    def of_one(number: int, how: int, first: int) -> Tuple[int, int, int, int]:
        matrix = distinct[number]
        return (matrix.num_row(), matrix.num_nonmissing() if hasattr(matrix, "num_nonmissing") else 0,
                _of_rows(matrix, how == VALUES, first), _of_cuts(matrix) if how == CUTS else 0)

    distinct = {id(matrix): matrix for matrix in matrices}
    found = _of_all(peers, lambda: [of_one(id(matrix), how, first) for matrix, how, first in zip(matrices, most, firsts)])
    return [_described(matrix, how, found[:, place]) for place, (matrix, how) in enumerate(zip(matrices, most))]


def _of_all(peers: Peers, work: Callable[[], Any]) -> _Words:
    """Returns the numbers computed by `work` on each rank, rank by rank; all ranks compute the same number of them. An error on one rank is
    raised on all."""
    own = together(peers, work)
    # Each rank writes its own row, in which all other ranks have 0.
    places = np.zeros((peers.world, *np.shape(own)), np.uint64)
    places[peers.rank] = own
    found: _Words = peers.greatest(places.ravel()).reshape(places.shape)
    return found


def _described(matrix: Any, how: int, found: _Words) -> Dict[str, Any]:
    """Returns the description of a data set. `found`: for each rank the number of rows, the number of values, the sum of the rows' words, and
    the hash of the cuts."""
    rows, values, digest = (int(one) for one in np.sum(found[:, :3], axis=0, dtype=np.uint64))
    names = [matrix.feature_names, matrix.feature_types, getattr(matrix, "warren_categories", None) or None,
             np.asarray(matrix.get_float_info("feature_weights")).tolist()]
    return {"rows": rows, "columns": int(matrix.num_col()), "values": values, "features": ("values", "cuts", "not seen")[how],
            "digest": f"{_hash(digest, int(found[:, 3].max()), names):016x}"}


class _Code(NamedTuple):
    names: Tuple[str, ...]
    code: bytes
    constants: Any


def _of_code(code: types.CodeType) -> _Code:
    """The parts of a code object that determine its behavior, without file names and line numbers."""
    constants = [_of_code(one) if isinstance(one, types.CodeType) else sorted(map(repr, one)) if isinstance(one, frozenset) else one
                 for one in code.co_consts]
    return _Code((*code.co_names, *code.co_varnames), code.co_code, constants)


class _Plain:
    """Converts values to JSON-compatible values that are the same in every process that runs the same program."""

    def __init__(self) -> None:
        self._met: Dict[int, Tuple[int, Any]] = {}  # functions and objects by id; kept here so that the ids stay unique
        self._around: Set[int] = set()  # the containers around the current value

    def _meet(self, value: Any) -> str:
        """Returns a reference to an object or function that was seen before. Otherwise registers it and returns ""."""
        if id(value) in self._met:
            return f"the same as number {self._met[id(value)][0]}"
        self._met[id(value)] = len(self._met), value
        return ""

    def of_function(self, function: Any, depth: int = 0) -> str:
        """See the function `of_function`."""
        if met := self._meet(function):
            return met
        if isinstance(function, functools.partial):
            return f"{self.of_function(function.func, depth)} of {_hash(self.of([function.args, function.keywords], depth + 1)):016x}"
        owner = getattr(function, "__self__", None)
        name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
        if not hasattr(function, "__code__") and not isinstance(function, (type, types.BuiltinFunctionType)):
            owner, function = function, getattr(type(function), "__call__", None)
            name = f"{type(owner).__module__}.{type(owner).__qualname__}"
        code = getattr(function, "__code__", None)
        state = self._of_object(owner, depth + 1)
        if code is None:
            return name if state is None else f"{name} {_hash(state):016x}"
        values = [getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None), state]
        for cell in getattr(function, "__closure__", None) or ():
            with contextlib.suppress(ValueError):  # the variable has no value yet
                values.append(cell.cell_contents)
        return f"{name} {_hash(_of_code(code), self.of(values, depth + 1)):016x}"

    def of(self, value: Any, depth: int = 0) -> Any:
        """See the function `plain`."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value if value == value else "nan"  # pylint: disable=comparison-with-itself
        if isinstance(value, np.generic):
            return self.of(value.item(), depth)
        if isinstance(value, (bytes, bytearray)):
            return f"bytes {_hash(bytes(value)):016x}"
        if isinstance(value, (type, types.ModuleType)):
            return f"{getattr(value, '__module__', 'module')}.{getattr(value, '__qualname__', value.__name__)}"
        if depth >= _DEEPEST:
            return f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, np.ndarray):
            content = _hash(value) if not value.dtype.hasobject else _hash(self.of(value.ravel().tolist(), depth + 1))
            return f"array {value.dtype} {value.shape} {content:016x}"
        if isinstance(value, (dict, list, tuple, set, frozenset)):
            return self._of_container(value, depth)
        return self.of_function(value, depth) if callable(value) else self._meet(value) or self._of_object(value, depth)

    def _of_container(self, value: Any, depth: int) -> Any:
        if id(value) in self._around:
            return "itself"
        self._around.add(id(value))
        try:
            if isinstance(value, dict):
                return {str(key): self.of(one, depth + 1) for key, one in value.items()}
            found = [self.of(one, depth + 1) for one in value]
            return sorted(map(repr, found)) if isinstance(value, (set, frozenset)) else found
        finally:
            self._around.discard(id(value))

    def _of_object(self, value: Any, depth: int) -> Any:
        """The name of an object's type, and the state that pickle would save; for an array-like, its values. None for a module or a
        class, which may be the `__self__` of a built-in function or a class method and has no state to compare."""
        if value is None or isinstance(value, (type, types.ModuleType)):
            return None
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if depth >= _DEEPEST or len(self._met) >= _MOST_OBJECTS:
            return name
        with contextlib.suppress(Exception):  # the object's own methods may raise anything
            if hasattr(value, "__array__"):
                return [name, self.of(np.asarray(value), depth + 1)]
        try:
            registered = copyreg.dispatch_table.get(type(value))
            reduced: Any = value.__reduce_ex__(4) if registered is None else registered(value)
        except Exception:  # pylint: disable=broad-except
            return name
        parts = [reduced] if isinstance(reduced, str) else [one if index < 3 or one is None else list(one)
                                                           for index, one in enumerate(reduced[:5])]
        return [name, self.of(parts, depth + 1)]


def of_function(function: Any) -> str:
    """Returns a function's name, and a digest of its code, its defaults and its closure; for a callable object, of its class's `__call__`
    and its state. Global names that it uses are not resolved."""
    return _Plain().of_function(function)


def plain(value: Any) -> Any:
    """Returns the value in a JSON-compatible form that is the same in every process. An object of a type that is neither Python's nor NumPy's
    becomes its type's name and the state that pickle would save, or only the name if it cannot be pickled."""
    return _Plain().of(value)


#: Parameters that influence neither the trees nor their number.
_FOR_DISPLAY = ("nthread", "n_jobs", "verbosity", "silent")
_NOT_OF_THE_RUN = ("evals", "evals_result", "verbose_eval")
#: The version of this description. A run described in another format counts as another run.
_FORMAT = 3


def _deciding(callbacks: Sequence[Any]) -> List[Any]:
    """XGBoost's own callbacks that influence the training."""
    return [{"callback": type(one).__qualname__, **plain(vars(one))} for one in callbacks
            if isinstance(one, (xgb.callback.EarlyStopping, xgb.callback.LearningRateScheduler))]


def of_training(params: Any, dtrain: Any, rounds: int, options: Dict[str, Any], callbacks: Sequence[Any], peers: Peers) -> Dict[str, Any]:
    """Returns everything that determines a training run of xgboost.train: parameters, number of rounds, data, evaluation sets, objective,
    metrics, early stopping, and the version of XGBoost. Callbacks other than XGBoost's EarlyStopping and LearningRateScheduler, and the
    number of workers, are not included. A collective call; returns values for JSON."""
    evals = list(options.get("evals") or ())
    data, *others = of_matrices([dtrain, *(one[0] for one in evals)], peers)
    given = {str(name): plain(value) for name, value in dict(params).items() if name not in _FOR_DISPLAY}
    more = {name: plain(value) for name, value in options.items() if name not in _NOT_OF_THE_RUN and value is not None}
    if stopping := _deciding(callbacks):
        more["callbacks"] = stopping
    return {"format": _FORMAT, "XGBoost": xgb.__version__, "parameters": given, "rounds": rounds, "data": data,
            "evaluation": {f"{place}, {name}": one for place, ((_, name), one) in enumerate(zip(evals, others), 1)}, "options": more}


def _changed(what: str, theirs: Any, ours: Any) -> str:
    """Describes which entries differ, with shortened values."""
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return f"{what} ({theirs} there, {ours} here)"
    names = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
    values = [tuple(str(one[name])[:_SHORT] if name in one else "not given" for one in (theirs, ours)) for name in names]
    return f"{what} (" + "; ".join(f"{name}: {there} there, {here} here" for name, (there, here) in zip(names, values)) + ")"


def difference(theirs: Any, ours: Dict[str, Any]) -> str:
    """Describes how two results of `of_training` differ; empty if they do not."""
    if not isinstance(theirs, dict) or theirs.get("format") != _FORMAT:
        return "it was saved by another version of Warren, which describes trainings differently"
    names = {"XGBoost": "another version of XGBoost", "parameters": "other parameters", "rounds": "another number of rounds",
             "data": "other data", "evaluation": "other evaluation sets", "options": "other options"}
    changed = [_changed(words, theirs.get(name), ours[name]) for name, words in names.items() if theirs.get(name) != ours[name]]
    return "it is from a training with " + ", ".join(changed) if changed else ""
