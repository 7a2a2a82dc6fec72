"""The state of a caller's callbacks and functions after they have run in another process.

The caller's objects that can change (containers, instances, and functions with their variables) are sent with the callbacks in one pickle,
so that their copies refer to each other as the objects do. The contents of the copies come back, and the objects take them over in place,
since the caller may refer to any of them."""
import collections
import copyreg
import dis
import functools
import io
import pickle
import sys
import types
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set

from warren._jobs import pickling as _pickling

_CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter)
_OF_GLOBALS = ("LOAD_GLOBAL", "STORE_GLOBAL")
#: The flag of classes that are not part of a C program.
_IS_OF_PYTHON = 1 << 9


def reachable(roots: Iterable[Any]) -> List[Any]:
    """Returns the objects that can change, and whose contents can be replaced, among those to which `roots` refer."""
    found: List[Any] = []
    seen: Dict[int, Any] = {}  # also keeps the objects, because another one may get the id of one that is freed
    rest = list(roots)
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, types.FunctionType) and not _is_sent_whole(one):
            continue
        if _changes(one):
            found.append(one)
        rest.extend(_parts(one))
    return found


def contents(objects: List[Any]) -> Optional[bytes]:
    """Returns the contents of the objects as a pickle that refers to the objects by number. If they cannot be pickled, prints a warning and
    returns None, because the training has succeeded."""
    numbers = {id(one): number for number, one in enumerate(objects)}
    try:
        return _pickling.dumps([_contents(one) for one in objects], "the new state", lambda one: numbers.get(id(one)))
    except Exception as error:  # pylint: disable=broad-except  # any class may raise anything
        _warn(error)
        return None


def take_over(objects: List[Any], pickled: Optional[bytes]) -> None:
    """Replaces the contents of the objects by those of their copies in another process, from `contents` there. None changes nothing."""
    if pickled is None:
        return
    try:
        for one, found in zip(objects, _Unpickler(pickled, objects).load()):
            _replace(one, found)
    except Exception as error:  # pylint: disable=broad-except  # any class may raise anything
        _warn(error)


def _warn(error: Exception) -> None:
    print(f"warren: callbacks and functions have run in the workers, and their state is not taken over here: {error}", file=sys.stderr,
          flush=True)


class _Unpickler(pickle.Unpickler):
    """Finds objects by their numbers."""

    def __init__(self, pickled: bytes, objects: List[Any]) -> None:
        super().__init__(io.BytesIO(pickled))
        self._objects = objects

    def persistent_load(self, pid: Any) -> Any:
        """Called for each number."""
        return self._objects[pid]


def _changes(one: Any) -> bool:
    return type(one) in _CONTAINERS or isinstance(one, types.FunctionType) or _is_instance(one)


def _is_instance(one: Any) -> bool:
    """Whether the object is an instance of a class written in Python that is pickled in the usual way, with or without a __getstate__.
    Arrays and tables are left out, because of their size."""
    kind: Any = type(one)
    has_attributes = kind.__dictoffset__ != 0 or any("__slots__" in vars(base) for base in kind.__mro__)
    is_usual = kind not in copyreg.dispatch_table and kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
    return has_attributes and is_usual and bool(kind.__flags__ & _IS_OF_PYTHON) and not (
        isinstance(one, (type, types.ModuleType)) or hasattr(kind, "__array__"))


def _is_sent_whole(one: Any) -> bool:
    """Whether a function or class is sent with its code: other processes cannot import it."""
    found: Any = None if one.__module__ in _pickling.PROGRAMS else sys.modules.get(one.__module__)
    for name in one.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not one


def _parts(one: Any) -> Iterator[Any]:
    """Yields the objects that are sent with this one."""
    if isinstance(one, dict):
        yield from one.values()
    elif isinstance(one, (list, tuple, set, frozenset, collections.deque)):
        yield from one
    elif isinstance(one, types.CellType):
        yield from _of_cell(one)
    elif isinstance(one, types.MethodType):
        yield from (one.__self__, one.__func__)
    elif isinstance(one, functools.partial):
        yield from (one.func, one.args, one.keywords)
    elif isinstance(one, types.FunctionType):
        yield from (one.__closure__, one.__defaults__, one.__kwdefaults__, tuple(one.__dict__.values()))
        yield from (one.__globals__[name] for name in _names(one.__code__, _OF_GLOBALS) if name in one.__globals__)
    elif isinstance(one, type):
        if _is_sent_whole(one):
            for name, value in vars(one).items():
                value = getattr(value, "__func__", getattr(value, "fget", value))
                if isinstance(value, types.FunctionType) or not name.startswith("__"):
                    yield value
    if _is_instance(one):
        yield from type(one).__mro__
        if getattr(type(one), "__getstate__", None) is getattr(object, "__getstate__", None):
            yield from _attributes(one).values()


def _names(code: types.CodeType, operations: Iterable[str]) -> Set[str]:
    """The names of the variables that a function, or one inside it, uses in one of these operations of dis."""
    found = {str(one.argval) for one in dis.get_instructions(code) if one.opname in operations}
    return found.union(*(_names(inner, operations) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _of_cell(cell: Any) -> List[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []  # the variable has no value yet


def _attributes(one: Any) -> Dict[str, Any]:
    """The attributes of an object without a __getstate__, also those in __slots__."""
    slots = {name: slot for kind in type(one).__mro__ if kind.__flags__ & _IS_OF_PYTHON
             for name, slot in vars(kind).items() if isinstance(slot, types.MemberDescriptorType)}
    return {**getattr(one, "__dict__", {}), **{name: getattr(one, name) for name in slots if hasattr(one, name)}}


def _contents(one: Any) -> Any:
    """Returns the elements and the attributes of an object, without its class. Those of a function are the variables that it assigns."""
    if isinstance(one, types.FunctionType):
        cells = dict(zip(one.__code__.co_freevars, one.__closure__ or ()))
        nonlocals = {name: _of_cell(cells[name]) for name in _names(one.__code__, ("STORE_DEREF", )) if name in cells}
        assigned = _names(one.__code__, ("STORE_GLOBAL", ))
        return (nonlocals, {name: one.__globals__[name] for name in assigned if name in one.__globals__}), one.__dict__.copy()
    elements = dict(one) if isinstance(one, dict) else list(one) if isinstance(one, (list, set, collections.deque)) else None
    if not _is_instance(one):
        return elements, None
    if getattr(type(one), "__getstate__", None) is not getattr(object, "__getstate__", None):
        return elements, one.__getstate__()
    return elements, _attributes(one)


def _replace(one: Any, found: Any) -> None:
    elements, state = found
    if isinstance(one, types.FunctionType):
        nonlocals, assigned = elements
        for name, cell in zip(one.__code__.co_freevars, one.__closure__ or ()):
            for value in nonlocals.get(name, ()):
                cell.cell_contents = value
        one.__globals__.update(assigned)
        one.__dict__.update(state)
        return
    if elements is not None:
        one.clear()
        (one.extend if isinstance(one, (list, collections.deque)) else one.update)(elements)
    if state is None:
        return
    if hasattr(one, "__setstate__"):
        one.__setstate__(state)
        return
    own = getattr(one, "__dict__", {})
    for name in [name for name in own if name not in state]:
        del own[name]
    for name, value in state.items():
        if name in own or not isinstance(getattr(type(one), name, None), types.MemberDescriptorType):
            own[name] = value
        else:
            object.__setattr__(one, name, value)
