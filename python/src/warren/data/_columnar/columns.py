"""The roles of a table's columns, and their values as float32. Column types are pyarrow's."""
import datetime
import decimal
import difflib
import fnmatch
import json
from typing import Any, Dict, Hashable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

Names = Union[str, Sequence[str], None]
#: The number of rows transposed from columns to rows at a time: such a block stays in the processor's cache.
_BLOCK_ROWS = 4096
#: The name of the extension type for booleans stored in one byte each.
_BOOL8 = "arrow.bool8"
#: The maximum number of columns whose problems one message lists.
_MOST_WRONG = 8


class Request(NamedTuple):
    """The columns that the caller requests, by name."""

    label: Tuple[str, ...] = ()
    weight: Optional[str] = None
    qid: Optional[str] = None
    base_margin: Tuple[str, ...] = ()
    features: Optional[Tuple[str, ...]] = None  #: names or patterns; None means all columns without another role
    exclude: Tuple[str, ...] = ()
    categorical: Tuple[str, ...] = ()  #: columns of strings or numbers to be used as categories; dictionary columns need not be named
    given: Tuple[str, ...] = ()  #: categorical columns whose values the caller passes; their type may differ between files
    present: Tuple[Tuple[str, str], ...] = ()  #: columns and those of their categories that CSV has for missing values elsewhere
    without: Tuple[str, ...] = ()  #: columns that are no features; unlike those of `exclude`, they may be missing
    as_stored: bool = False  #: whether columns of any type are accepted, for callers that take them unchanged

    def roles(self) -> List[Tuple[str, str]]:
        """The roles other than feature, each with a column that has it."""
        named = (("label", self.label), ("weight", (self.weight,)), ("qid", (self.qid,)), ("base_margin", self.base_margin))
        return [(role, name) for role, names_of_role in named for name in names_of_role if name is not None]

    def others(self) -> List[str]:
        """The columns with a role other than feature."""
        return [name for _, name in self.roles()]


class Column(NamedTuple):
    """A feature column in the form in which it is read, the same for all files."""

    name: str
    kind: str  #: "number", "integer", "bool", "category", "vector"; "any" for columns kept as they are stored
    width: int = 1  #: the number of elements of a vector
    values: str = ""  #: the kind of a category's values, such as "words", compared between files; "" if there are none, or the caller gives them


class Layout(NamedTuple):
    """The columns of a data set."""

    features: List[Column]
    request: Request
    text_queries: bool = False  #: whether qid contains words

    def read(self) -> List[str]:
        """The names of all columns to be read, without duplicates."""
        return list(dict.fromkeys([*(column.name for column in self.features), *self.request.others()]))

    def names(self) -> List[str]:
        """The names of the features; a vector has a name for each element."""
        return [name for column in self.features for name in
                ([column.name] if column.kind != "vector" else [f"{column.name}.{k}" for k in range(column.width)])]

    def types(self) -> List[str]:
        """The types of the features in XGBoost's notation: "q" number, "int" whole number, "i" Boolean, "c" category."""
        letters = {"number": "q", "integer": "int", "bool": "i", "category": "c", "vector": "q"}
        return [letters[column.kind] for column in self.features for _ in range(column.width)]


def names(given: Names, what: str) -> Tuple[str, ...]:
    """Returns one name or several as a tuple, which is empty for None. Raises TypeError for anything else."""
    if given is None:
        return ()
    found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if not all(isinstance(name, str) for name in found):
        raise TypeError(f"{what}={given!r}: expected the name of a column, or several")
    return found


def kind_of(kind: Any, declared: bool) -> Tuple[str, int]:
    """Returns the kind (see Column) and width of a column of the pyarrow type `kind`. For an unsupported type, returns an error message and 0;
    the message lacks the column's name, and ends with a remedy. `declared`: whether the caller declares the column categorical."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    types = pa.types
    is_bool8 = getattr(kind, "extension_name", "") == _BOOL8
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_dictionary(kind) or declared:
        value = kind.value_type if types.is_dictionary(kind) else kind
        if types.is_nested(value.storage_type if isinstance(value, pa.BaseExtensionType) else value):
            return f"is {kind}, which cannot be a category: convert it to words or numbers, or leave it out with exclude=[...]", 0
        return "category", 1
    if types.is_boolean(kind) or is_bool8:
        return "bool", 1
    if types.is_integer(kind):
        return "integer", 1
    if types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return "number", 1
    if types.is_fixed_size_list(kind) and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        if kind.list_size == 0:
            return f"is {kind}, whose lists have no elements: leave it out with exclude=[...]", 0
        return "vector", int(kind.list_size)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return f"is {kind}, expected numbers: name it in categorical=[...], or leave it out with exclude=[...]", 0
    return f"is {kind}, expected numbers, booleans or categories: convert it to one of these, or leave it out with exclude=[...]", 0


def values_of(kind: Any) -> str:
    """Returns the kind of the values in a categorical column of the pyarrow type `kind`, or "" for the null type, which has no values. Values
    of the same kind can be compared."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_dictionary(kind):
        return values_of(kind.value_type)
    if types.is_timestamp(kind):
        return "times with a zone" if kind.tz else "times without a zone"
    for found, is_so in (("", types.is_null), ("numbers", types.is_boolean), ("numbers", types.is_integer), ("numbers", types.is_floating),
                         ("words", types.is_string), ("words", types.is_large_string), ("words", types.is_string_view),
                         ("decimals", types.is_decimal), ("dates", types.is_date), ("times of day", types.is_time),
                         ("durations", types.is_duration)):
        if is_so(kind):
            return found
    return "bytes" if "binary" in str(kind) else str(kind)


def _fields(schema: Any, partition: Sequence[Tuple[str, str]]) -> Dict[str, Any]:
    """Returns the types of all columns by name, including those given by folders (`partition`). Raises ValueError if two columns of the file
    have the same name."""
    fields: Dict[str, Any] = {}
    for field in schema:
        if field.name in fields:
            raise ValueError(f"has two columns {field.name!r}: rename one")
        fields[field.name] = field.type
    fields.update(partition)  # the values of a column that the file contains, too, are the same (require_same)
    return fields


def _index_of_pandas(schema: Any) -> List[str]:
    """The columns that hold a DataFrame's index, and the column without a name, which is the index in CSV. They become features only if the
    caller names them: if the rows are sorted by the label, row numbers reveal the label."""
    try:
        said = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = said.get("index_columns") or []
    except (ValueError, RecursionError, AttributeError):
        index = []  # the metadata were not written by pandas
    return [name for name in index if isinstance(name, str)] + [""] if isinstance(index, list) else [""]


def _chosen(fields: Mapping[str, Any], request: Request, index: Sequence[str]) -> List[str]:
    """Returns the names of the features: the requested ones in the requested order, or else all in the table's order, without `index`. Raises
    ValueError if any requested name or pattern, including those for other roles, matches no column."""
    others = set(request.others())

    def matching(patterns: Sequence[str], what: str) -> List[str]:
        found: Dict[str, None] = {}
        for pattern in patterns:
            fitting = [pattern] if pattern in fields else fnmatch.filter(fields, pattern)
            if not fitting:
                raise absent(what, pattern, list(fields))
            found.update(dict.fromkeys(fitting))
        return list(found)

    for role, name in request.roles():
        if name not in fields:
            raise absent(role, name, list(fields))
    matching(request.categorical, "categorical")
    excluded = {*matching(request.exclude, "exclude"), *request.without}
    wanted = [name for name in fields if name not in index] if request.features is None else matching(request.features, "features")
    return [name for name in wanted if name not in others and name not in excluded]


def near(name: str, columns: Sequence[str]) -> List[str]:
    """The columns that a user most likely meant by `name`, nearest first, at most three. Case, blanks, "_" and "-" are ignored."""
    def plain(text: str) -> str:
        return "".join(text.casefold().split()).replace("_", "").replace("-", "")

    same = [column for column in columns if plain(column) == plain(name)]
    if same:
        return same[:3]
    by_plain = {plain(column): column for column in columns}
    return [by_plain[one] for one in difflib.get_close_matches(plain(name), by_plain, 3, 0.6)]


def absent(what: str, name: str, columns: Sequence[str]) -> ValueError:
    """Returns the error for an argument `what` that names a missing column. The message lists similar names first."""
    nearest = near(name, columns)
    meant = " or ".join(filter(None, [", ".join(map(repr, nearest[:-1])), *map(repr, nearest[-1:])]))
    others = [column for column in columns if column not in nearest]
    return ValueError(f"{what}={name!r}: no such column" + (f"; did you mean {meant}?" if meant else "; its columns are") +
                      (" Its columns are " if meant else " ") + shown([*nearest, *others]))


def shown(columns: Sequence[str]) -> str:
    """Formats the first names of a list, for messages."""
    return ", ".join(map(repr, columns[:12])) + (f" and {len(columns) - 12} more" if len(columns) > 12 else "") or "none"


def layout(schema: Any, partition: Sequence[Tuple[str, Any]], request: Request) -> Layout:
    """Returns the layout of a file with this schema. `partition`: names and types of the columns given by its folders. Raises ValueError;
    the caller prefixes the message with the file's name."""
    fields = _fields(schema, partition)
    columns, wrong = [], []
    for name in _chosen(fields, request, [] if request.as_stored else _index_of_pandas(schema)):
        kind, width = ("any", 1) if request.as_stored else kind_of(fields[name], name in request.categorical)
        if width == 0:
            wrong.append(f"column {name!r} {kind}")
        columns.append(Column(name, kind, width, values_of(fields[name]) if kind == "category" and name not in request.given else ""))
    if wrong:
        raise ValueError("; ".join(wrong[:_MOST_WRONG]) + (f"; and {len(wrong) - _MOST_WRONG} more" if len(wrong) > _MOST_WRONG else ""))
    if not columns:
        raise ValueError(f"has no feature columns; its columns are {shown(list(fields))}")
    for role, name in request.roles() if not request.as_stored else []:
        kind, width = kind_of(fields[name], False)
        if kind == "category" and values_of(fields[name]) == "numbers" and name != request.qid:
            kind = "number"  # pandas' categories of numbers are accepted as numbers
        allowed = ("integer", "category", "bool") if name == request.qid else ("integer", "number", "bool")
        text = width == 0 and "string" in str(fields[name])
        if kind not in allowed and not (name == request.qid and text):
            expected = "whole numbers or words" if name == request.qid else "numbers"
            raise ValueError(f"column {name!r}, the {role}, is {fields[name]}, expected {expected}")
    text_queries = request.qid is not None and _is_text(fields[request.qid])
    return Layout(columns, request, text_queries)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return not (pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def agreed(first: Layout, other: Layout) -> Layout:
    """Returns a layout that fits both. If a column has two different kinds of "bool", "integer" and "number", it becomes "number". Raises
    ValueError if the layouts are incompatible; the caller prefixes the message with the name of the other layout's file."""
    ours, theirs = {column.name: column for column in first.features}, {column.name: column for column in other.features}
    missing, more = [name for name in ours if name not in theirs], [name for name in theirs if name not in ours]
    if missing:
        raise ValueError(f"has no column {shown(missing)}, which the first file has")
    if more:
        raise ValueError(f"has the column {shown(more)}, which the first file does not have: name the intended features, or exclude it")
    if first.text_queries != other.text_queries:
        words = {True: "words", False: "numbers"}
        raise ValueError(f"column {first.request.qid!r}, the qid, has {words[other.text_queries]}, and {words[first.text_queries]} in the "
                         "first file")
    columns = []
    for column in first.features:
        other_one = theirs[column.name]
        if column.kind != other_one.kind or column.width != other_one.width:
            if {column.kind, other_one.kind} - {"number", "integer", "bool"}:
                raise ValueError(f"column {column.name!r} is {_said(other_one)}, and {_said(column)} in the first file")
            column = Column(column.name, "number")
        if column.values and other_one.values and column.values != other_one.values:
            raise ValueError(f"column {column.name!r} has {other_one.values} as categories, and {column.values} in the files before: "
                             "convert one, or leave it out with exclude=[...]")
        columns.append(column._replace(values=column.values or other_one.values))
    return Layout(columns, first.request, first.text_queries)


def _said(column: Column) -> str:
    return {"number": "a number", "integer": "a whole number", "bool": "true or false", "category": "a category",
            "vector": f"a vector of {column.width}"}[column.kind]


def _storage(array: Any) -> Any:
    """Returns the storage of an extension array, as booleans for bool8; any other array unchanged."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    if not isinstance(array, pa.ExtensionArray):
        return array
    return array.storage.cast(pa.bool_()) if array.type.extension_name == _BOOL8 else array.storage


#: NumPy's names of types by pyarrow's names.
_DTYPES = {"halffloat": "float16", "float": "float32", "double": "float64",
           **{name: name for bits in (8, 16, 32, 64) for name in (f"int{bits}", f"uint{bits}")}}


def _bits(buffer: Any, offset: int, count: int) -> NDArray[np.bool_]:
    """Unpacks `count` bits of a pyarrow buffer, from bit `offset` on."""
    first = offset // 8
    found = np.unpackbits(np.frombuffer(buffer, np.uint8, -(-(offset + count) // 8) - first, first), bitorder="little")
    return found[offset - 8 * first:offset - 8 * first + count].view(np.bool_)


def _to_numpy(chunk: Any) -> NDArray[Any]:
    """Like chunk.to_numpy, but does not import pandas for numbers and booleans, since that takes longer than loading a small data set.
    Booleans with missing values become float32, and whole numbers with missing values float64."""
    name, count = str(chunk.type), len(chunk)
    if count == 0 or (name != "bool" and name not in _DTYPES) or chunk.buffers()[1] is None:
        found: NDArray[Any] = chunk.to_numpy(zero_copy_only=False)
        return found
    valid, values = chunk.buffers()
    if name == "bool":
        found = _bits(values, chunk.offset, count)
    else:
        dtype = np.dtype(_DTYPES[name])
        found = np.frombuffer(values, dtype, count, chunk.offset * dtype.itemsize)
    if chunk.null_count:
        found = found.astype("float32" if name == "bool" else found.dtype if found.dtype.kind == "f" else "float64")
        found[~_bits(valid, chunk.offset, count)] = np.nan
    return found


def numbers(chunk: Any) -> NDArray[Any]:
    """A pyarrow array as a NumPy array, with NaN for missing values, without a copy if possible."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    chunk = _storage(chunk)
    kind = chunk.type
    if pa.types.is_dictionary(kind):
        return numbers(chunk.dictionary_decode())
    if pa.types.is_null(kind):
        return np.full(len(chunk), np.nan, "float32")
    if pa.types.is_decimal(kind) or (pa.types.is_float16(kind) and chunk.null_count):
        chunk = chunk.cast(pa.float64())
    return _to_numpy(chunk)


def identifiers(chunk: Any) -> NDArray[Any]:
    """Returns values that need only be compared: whole numbers, booleans or Python objects. The chunk must have no missing values."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    if pa.types.is_integer(chunk.type) or pa.types.is_boolean(chunk.type):
        return numbers(chunk)
    found = np.empty(len(chunk), object)
    found[:] = chunk.to_pylist()
    return found


def vectors(chunk: Any, width: int) -> NDArray[Any]:
    """Like `numbers`, for a fixed_size_list: (rows, width)."""
    chunk = _storage(chunk)
    found = numbers(chunk.values)[chunk.offset * width:(chunk.offset + len(chunk)) * width].reshape(len(chunk), width)
    if chunk.null_count:
        found = found.astype("float64")
        found[_to_numpy(chunk.is_null())] = np.nan
    return found


def _plain(values: Any) -> Any:
    """The values in a type that pyarrow can compare. NaN becomes missing, and -0.0 becomes 0.0, since the two zeros are equal."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel
    import pyarrow.compute as pc  # pylint: disable=import-outside-toplevel

    values = _storage(values)
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    if pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), pc.add(values, 0.0))  # pylint: disable=no-member
    return values


class Categories:
    """The values of the categorical features, and their codes, counted from 0. The same on all workers. The constructor raises ValueError for
    a duplicate, missing or unhashable value, such as a list."""

    def __init__(self, values: Mapping[str, Sequence[Any]]) -> None:
        # Adding 0.0 turns -0.0 into 0.0, which is the same category.
        self.values = {name: [value + 0.0 if isinstance(value, (float, np.floating)) else value for value in of_one]
                       for name, of_one in values.items()}
        self._codes: Dict[str, Dict[Any, int]] = {}
        self._by_word: Dict[str, Dict[str, int]] = {}  # by column; filled when a column is first compared by words
        for name, of_one in self.values.items():
            lists = [value for value in of_one if not isinstance(value, Hashable)]
            if lists:
                raise ValueError(f"categories[{name!r}] has {lists[0]!r}, expected words or numbers")
            missing = [value for value in of_one if value is None or value != value]
            if missing or len(set(of_one)) < len(of_one):
                raise ValueError(f"categories[{name!r}] has {'a missing value' if missing else 'a value twice'}: "
                                 f"{shown(list(map(str, of_one)))}")
            self._codes[name] = {value: code for code, value in enumerate(of_one)}

    def codes(self, name: str, chunk: Any) -> NDArray[Any]:
        """Returns the codes as float32, with NaN for missing values. Raises ValueError for a value that is not one of the categories; the
        caller prefixes the message with the position."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        indices = None
        chunk = _storage(chunk)
        if pa.types.is_dictionary(chunk.type):
            indices, chunk = numbers(chunk.indices), chunk.dictionary
        values = _plain(chunk)
        codes = self._looked_up(name, values)
        strange = np.isnan(codes) & _to_numpy(values.is_valid())
        places = np.arange(len(codes))
        if indices is not None:
            missing = np.isnan(indices) if indices.dtype.kind == "f" else np.zeros(len(indices), bool)
            places = np.where(missing, len(codes), indices).astype("int64")
            codes, strange = np.append(codes, np.float32(np.nan))[places], np.append(strange, False)[places]
        if strange.any():
            place = int(places[int(np.flatnonzero(strange)[0])])
            value = _values(name, values.slice(place, 1))[0]
            assert value is not None
            known = shown(list(map(str, self.values[name]))) if self.values[name] else "its categories: there are none"
            raise ValueError(f"column {name!r} has the category {value[0]!r}, which is not one of {known}")
        return codes

    def _looked_up(self, name: str, values: Any) -> NDArray[Any]:
        """Returns the code of each value, or NaN if it is missing or not a category."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        import pyarrow.compute as pc  # pylint: disable=import-outside-toplevel

        known = self._codes[name]
        try:
            if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
                raise TypeError("categories of words cannot be bytes")
            # If the data are words, the categories are compared as words: "007" does not match 7.
            text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
            value_set = pa.array([str(value) if text else value for value in known], values.type)
            codes = numbers(pc.index_in(values, value_set=value_set))  # pylint: disable=no-member
            return codes.astype("float32") if len(known) else np.full(len(values), np.nan, "float32")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError, TypeError):
            if name not in self._by_word:
                self._by_word[name] = {_word(value): code for value, code in known.items()}
                self._by_word[name].update((str(value), code) for value, code in known.items())
            by_word = self._by_word[name]
            # Values are compared as Python objects, or else as words, since one side may be a number and the other a word. Each distinct
            # value is looked up once, if Arrow can find the distinct values of this type.
            try:
                encoded = values.dictionary_encode()
                values = encoded.dictionary
                places = _to_numpy(encoded.indices.fill_null(-1))
            except pa.ArrowNotImplementedError:
                places = np.arange(len(values))

            def code_of(shown_as: Any, stored: Any) -> Optional[int]:
                code = by_word.get(str(shown_as)) if stored not in known else known[stored]
                return by_word.get(str(stored)) if code is None else code

            found = [None if value is None else code_of(*value[:2]) for value in _values(name, values)]
            codes = np.array([np.nan if code is None else code for code in [*found, None]], "float32")
            result: NDArray[Any] = codes[places]
            return result


def _word(value: Any) -> str:
    """The value as a word. Decimals lose their trailing zeros, the number of which may differ between files."""
    return format(value.normalize(), "f") if isinstance(value, decimal.Decimal) else str(value)


#: A category's value in three forms: for JSON (words and numbers unchanged, all others as words; `Categories` accepts both), as a Python
#: object (the word again if Python cannot represent the time), and as a sort key among values of the same kind (values_of).
_Value = Tuple[Any, Any, Any]


def _values(name: str, array: Any) -> List[Optional[_Value]]:
    """Returns the values of `array`, which belongs to column `name` and must not be a dictionary array, with None for missing values. Raises
    ValueError for times that Python cannot represent, except that nanoseconds are allowed."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    types, kind = pa.types, array.type
    if values_of(kind) in ("numbers", "words"):
        return [None if value is None else (value, value, value) for value in array.to_pylist()]
    if not (types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind)):
        return [None if value is None else (_word(value), value, value) for value in array.to_pylist()]
    counts: List[Optional[int]] = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    if kind.unit == "ns":
        # Python's times have microsecond resolution.
        whole = pa.duration("us") if types.is_duration(kind) else pa.time64("us") if types.is_time(kind) else pa.timestamp("us", kind.tz)
        array = pa.array([None if count is None else count // 1000 for count in counts], pa.int64()).cast(whole)
    try:
        moments = array.to_pylist()
    except (OverflowError, ValueError, KeyError) as error:
        raise ValueError(f"column {name!r} has a time that Python cannot show ({error}): convert it to words or numbers, or leave it out "
                         "with exclude=[...]") from None
    if kind.unit == "ns":
        words = [str(moment) if not count or count % 1000 == 0 else _with_nanoseconds(moment, count % 1000) for moment, count in zip(moments, counts)]
        return [None if count is None else (word, word if count % 1000 else moment, count) for word, moment, count in zip(words, moments, counts)]
    scale = {"s": 10**9, "ms": 10**6, "us": 1000}[kind.unit]
    return [None if count is None else (str(moment), moment, count * scale) for moment, count in zip(moments, counts)]


def _with_nanoseconds(moment: Any, nanoseconds: int) -> str:
    """The word for a Python time plus 1 to 999 nanoseconds."""
    word, zone = str(moment), ""
    if isinstance(moment, datetime.datetime):
        plain = str(moment.replace(tzinfo=None))
        word, zone = plain, word[len(plain):]
    microseconds = moment.microseconds if isinstance(moment, datetime.timedelta) else moment.microsecond
    return f"{word}{'' if microseconds else '.000000'}{nanoseconds:03d}{zone}"


def used(column: Any) -> Iterator[Any]:
    """Yields pyarrow arrays with the values of a chunked array. Duplicates within a chunk are removed if Arrow supports this for the type."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        chunk = _storage(chunk)
        if pa.types.is_dictionary(chunk.type):
            # A dictionary may contain unused values, such as those of rows that were filtered out.
            used = chunk.indices.unique().drop_null()
            chunk = _plain(chunk.dictionary).take(used)
        chunk = _plain(chunk)
        try:
            chunk = chunk.unique()
        except pa.ArrowNotImplementedError:
            pass
        yield chunk


def sorted_once(parts: Sequence[Any], kind: Any) -> Any:
    """Returns the values of arrays from `used`, sorted and without duplicates or missing values, as a pyarrow array. `kind`: the dictionary
    type of the column."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel
    import pyarrow.compute as pc  # pylint: disable=import-outside-toplevel

    values = pa.concat_arrays([*parts, _plain(pa.array([], kind.value_type))]).unique().drop_null()
    return values.take(pc.array_sort_indices(values))  # pylint: disable=no-member


def places(chunk: Any, values: Any) -> Any:
    """Returns the index of each value of a dictionary array in an array from `sorted_once`, as int32; null if missing."""
    import pyarrow.compute as pc  # pylint: disable=import-outside-toplevel

    chunk = _storage(chunk)
    return pc.index_in(_plain(chunk.dictionary), value_set=values, skip_nulls=True).take(chunk.indices)  # pylint: disable=no-member


def categories(name: str, column: Any) -> Dict[Any, Any]:
    """Returns the values of column `name`, a chunked array, as a dict from their form for JSON to their sort keys, for `in_order`. Raises
    ValueError for times that Python cannot represent."""
    return {value[0]: value[2] for chunk in used(column) for value in _values(name, chunk) if value is not None}


def require_same(name: str, column: Any, text: str, missing: bool) -> None:
    """Raises ValueError unless all values of a file's column are the value in the name of the file's folder, which means a missing value if
    `missing`."""
    def is_same(value: Any) -> bool:
        if str(value).casefold() == text.casefold():
            return True
        try:
            return decimal.Decimal(str(value)) == decimal.Decimal(text)
        except decimal.InvalidOperation:
            return False
    others = [repr(str(value)) for value in categories(name, column) if missing or not is_same(value)]
    others += ["null"] if column.null_count and not missing else []
    if others:
        raise ValueError(f"column {name!r} has the value {others[0]}, but the file is in the folder {name}={text}: rename one of them, or "
                         "leave the column out with exclude=[...]")


def in_order(orders: Mapping[Any, Any]) -> List[Any]:
    """Returns values from `categories` in ascending order, whatever their order in `orders`. A pure function."""
    values = list(orders)
    if len(set(orders.values())) < len(values):
        values.sort(key=str)  # values with equal keys are ordered by their text: one instant in several time zones, for example
    return sorted(values, key=orders.__getitem__)


def fill(out: NDArray[Any], table: Any, columns: Sequence[Column], categories: Categories) -> None:
    """Writes the features of a table into `out`, float32, (rows, features). Works on blocks of rows, which stay in the cache while their
    columns are written."""
    parts: List[Tuple[int, int, Any]] = []  # (first row, column, values)
    place = 0
    for column in columns:
        row = 0
        for chunk in table.column(column.name).chunks:
            if column.kind == "category":
                values = categories.codes(column.name, chunk)
            elif column.kind == "vector":
                values = vectors(chunk, column.width)
            else:
                values = numbers(chunk)
            parts.append((row, place, values))
            row += len(chunk)
        place += column.width
    for begin in range(0, len(out), _BLOCK_ROWS):
        end = min(begin + _BLOCK_ROWS, len(out))
        for row, at, values in parts:
            first, last = max(begin, row), min(end, row + len(values))
            if first < last:
                width = values.shape[1] if values.ndim > 1 else 0
                target = out[first:last, at:at + width] if width else out[first:last, at]
                target[...] = values[first - row:last - row]
