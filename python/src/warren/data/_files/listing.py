"""Finds the files that a name stands for."""
import os
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Sequence, Tuple, TypeVar, Union

from warren.data._files.names import (SCHEME, Options, Path, below, has_magic, hint_of_exact, is_hidden, matches, partition_of,
                                      segment_matches, shown, split_pattern)
from warren.data._files.retry import Retry, persist
from warren.data._files.stores import Entry, Store, locate

T = TypeVar("T")

_SHOWN_NAMES = 5
_Ask = Callable[[Callable[[str], Any], str], Any]  # calls a method of the store with a name, and retries after transient errors


@dataclass(frozen=True)
class File:
    """A file as listed by `find`. Can be pickled, so that one process can list the files and send the list to the others."""
    uri: str  #: the name as a user would write it: a path, or scheme://...
    size: int  #: in bytes
    tag: str  #: an ETag or the modification time, to detect changes; "" if the store provides neither
    partition: Tuple[Tuple[str, str], ...] = ()  #: keys and values of the folders named key=value below the given folder, URL-decoded


def in_full(name: str) -> str:
    """The name with a leading ~ expanded, unless a file has that name."""
    return name if not name.startswith("~") or os.path.lexists(name) else os.path.expanduser(name)


def find(uri: Union[Path, Sequence[Path]], *, storage_options: Options = None) -> List[File]:
    """Returns the files that a name stands for: a file, a folder (all files below it, except names that begin with "." or "_"), a pattern
    (*, ?, [..] within a segment, ** across segments; a matching folder stands for the files below it), or several of these names separated
    by ";". A Path, and each name of a sequence, is one file or folder, whatever characters it has. The files of each name are sorted by the
    bytes of their paths. Empty files are included.

    With http and https, each name must be a file, since web servers cannot list files. Thread-safe; retries after transient errors.

    Raises FileNotFoundError if a name stands for no file, ValueError for an invalid name or a file that is found twice (even by different
    links), ImportError, with the package to install, and OSError for errors of the store."""
    exact = not isinstance(uri, str)
    if isinstance(uri, str):
        items = [one for one in uri.split(";") if one]
    else:
        items = [os.fspath(one) for one in ([uri] if isinstance(uri, os.PathLike) else uri)]
    if not items or not all(isinstance(one, str) and one for one in items):
        raise ValueError(f"{uri!r}: expected the name of a file, a folder or a pattern")
    found: List[File] = []
    named: Dict[Any, Tuple[str, File]] = {}  # the user's name and the file, by identity or URI
    for item in items:
        for file, identity in _find_one(item, storage_options, exact):
            before = named.setdefault(identity or file.uri, (item, file))
            if before[1] is not file:
                raise ValueError(f"{shown(file.uri)} is named twice{_twice(*before, item, file)}; its rows would count twice. Name it once")
            found.append(file)
    return found


def _twice(item: str, file: File, again: str, other: File) -> str:
    """Returns the part of an error message with the two names of a file that was found twice."""
    if _plain(file.uri) == _plain(other.uri):
        return f", by '{shown(item)}' and by '{shown(again)}'"
    return f": {shown(file.uri)} is the same file"


def _plain(uri: str) -> str:
    return uri if SCHEME.match(uri) else os.path.normpath(uri)


def _find_one(item: str, storage_options: Options, exact: bool) -> List[Tuple[File, Tuple[int, ...]]]:
    """Returns the files that one name stands for, each with its identity (Entry.identity)."""
    store, given = locate(item, storage_options)
    name = given.rstrip("/") or ("/" if given.startswith("/") else "")
    must_be_folder = given.endswith("/")
    what, retry = shown(item), Retry()

    def ask(call: Callable[[str], T], of: str) -> T:
        return persist(lambda: call(of), what, retry)

    entry = None if must_be_folder and not store.lists else ask(store.info, name)
    if not store.lists and (must_be_folder or (entry.is_folder if entry else not exact and has_magic(name.split("?")[0]))):
        raise ValueError(f"{shown(store.uri(given))}: http and https cannot list files; name each file")
    if entry is not None and not entry.is_folder:
        if must_be_folder:
            raise FileNotFoundError(f"{what}: it is a file, but the '/' at the end asks for a folder")
        return [(File(store.uri(name), entry.size, entry.tag), entry.identity)]
    if entry is not None:
        base, files = name, _shown_files(name, ask(store.walk, name))
    elif has_magic(name) and store.lists and not exact:
        base, pattern = split_pattern(name)
        files = _expand(store, ask, base, pattern)
    else:
        raise FileNotFoundError(f"{what}: there is no such file" + (" or folder" if store.lists else " on the server")
                                + (hint_of_exact(name) if exact else ""))
    if not files:
        raise FileNotFoundError(f"{what}: no file found. {_instead(store, ask, base)}")
    # A listing may lack tags that the store returns for a single file.
    files = [one if one.tag else ask(store.info, one.name) or one for one in files]
    files.sort(key=lambda one: one.name.encode("utf-8", "surrogateescape"))
    return [(File(store.uri(one.name), one.size, one.tag, partition_of(below(base, one.name)[:-1])), one.identity) for one in files]


def as_seen_here(file: File) -> File:
    """Returns a listed file with the tag that this host has for it now. If its size differs, returns the file unchanged: reading it raises
    an error. Raises FileNotFoundError if it does not exist."""
    store, name = locate(file.uri, None)
    entry = store.info(name)
    if entry is None:
        raise FileNotFoundError(f"{shown(file.uri)}: there is no such file on this host, or it was deleted since it was listed")
    return replace(file, tag=entry.tag) if entry.size == file.size else file


def _shown_files(folder: str, files: List[Entry]) -> List[Entry]:
    """Returns the files that are neither hidden nor in a hidden folder."""
    return [one for one in files if not any(map(is_hidden, below(folder, one.name)))]


def _expand(store: Store, ask: _Ask, folder: str, pattern: List[str]) -> List[Entry]:
    """Returns the files that match a pattern. Works level by level, so that folders that do not match are not listed; from a ** on,
    everything below the folder is listed."""
    try:
        listed = ask(store.walk if pattern[:1] in ([], ["**"]) else store.entries, folder)
    except FileNotFoundError:
        ask(store.info, folder)  # a missing folder has no files; a missing bucket raises its own error
        return []
    if not pattern:
        return _shown_files(folder, listed)
    if pattern[0] == "**":
        return [one for one in listed if matches(pattern, below(folder, one.name))]
    found = []
    for one in listed:
        if segment_matches(pattern[0], below(folder, one.name)[-1]):
            if one.is_folder:
                found += _expand(store, ask, one.name, pattern[1:])
            elif not pattern[1:]:
                found.append(one)
    return found


def _instead(store: Store, ask: _Ask, folder: str) -> str:
    """Returns the part of an error message that lists the contents of a folder without matching files."""
    place = shown(store.uri(folder))
    try:
        entries = ask(store.entries, folder)
    except FileNotFoundError:
        return f"There is no folder {place or '.'}"
    names = sorted(below(folder, one.name)[-1] + ("/" if one.is_folder else "") for one in entries)
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return f"{place or 'The folder'} holds " + (", ".join(names[:_SHOWN_NAMES]) + more if names else "nothing")
