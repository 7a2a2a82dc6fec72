"""The meaning of names: URIs, folders, patterns, hidden files, partitions. Pure functions.

A name is a local path, or the part of a URI after the scheme and authority. Its segments are separated by "/"."""
import fnmatch
import functools
import os
import re
import urllib.parse
from typing import Any, List, Mapping, Optional, Sequence, Set, Tuple, Union

Path = Union[str, "os.PathLike[str]"]
Options = Optional[Mapping[str, Any]]

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
ARROW_SCHEMES = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
# The options for pyarrow at the end of a URI have at least one of these keys. Any other question mark belongs to the name or pattern.
_URI_KEYS = frozenset(("endpoint_override", "scheme", "region", "retry_limit_seconds", "project_id", "user", "replication",
                       "buffer_size", "default_block_size", "kerb_ticket", "enable_tls", "tls_verify_server",
                       "blob_storage_authority", "dfs_storage_authority", "credential_kind", "tenant_id", "client_id",
                       "client_secret"))
_URI_OPTIONS = re.compile(r"\?((?:[a-z][a-z0-9_]*=[^&?#/*\[\]]*)(?:&[a-z][a-z0-9_]*=[^&?#*\[\]]*)*)$")
_MAGIC = re.compile(r"[*?\[]")


def on_disk(uri: str) -> Optional[str]:
    """Returns the local path of a URI, or None for a URI of a store. Raises ValueError as split_uri does."""
    scheme, _, name, _ = split_uri(uri)
    return None if scheme else name


def split_uri(uri: str) -> Tuple[str, str, str, str]:
    """Returns the scheme ("" for a local path), authority, name and options ("?key=value...", for pyarrow). The name has no leading "/",
    unless it is a local path. Raises ValueError for a file:// URI with another host, and for a URI that lacks a required bucket or host."""
    found = SCHEME.match(uri)
    if found is None:
        return "", "", uri, ""
    scheme, rest = found.group(1).lower(), uri[found.end():]
    if scheme == "file":
        authority, _, path = rest.partition("/")
        if authority not in ("", "localhost"):
            raise ValueError(f"{uri}: file:// names a file of this host, and '{authority}' is a host or a relative path; "
                             "expected file:///absolute/path, or the path alone")
        return "", "", "/" + path, ""
    options = ""
    tail = _URI_OPTIONS.search(rest) if scheme in ARROW_SCHEMES else None
    if tail and any(pair.partition("=")[0] in _URI_KEYS for pair in tail.group(1).split("&")):
        rest, options = rest[:tail.start()], tail.group(0)
    authority, _, name = rest.partition("/")
    if not authority and scheme in ("s3", "s3a", "gs", "gcs", "http", "https"):
        raise ValueError(f"{uri}: expected {scheme}://{'BUCKET' if scheme[0] in 'sg' else 'HOST'}/NAME")
    return scheme, authority, name, options


def shown(uri: str) -> str:
    """The URI for messages, without passwords, tokens and other secrets."""
    uri = re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/@:]*):[^/@]*@", r"\1:***@", uri)
    return re.sub(r"(?i)([?&](?:[a-z_.-]*(?:secret|password|token|signature|sig|credential)[a-z_.-]*)=)[^&#]*", r"\1***", uri)


def join(folder: str, name: str) -> str:
    """The name of an entry of a folder; "" is the root folder."""
    return folder + name if not folder or folder.endswith("/") else f"{folder}/{name}"


def below(folder: str, name: str) -> List[str]:
    """The segments of a name after those of the folder."""
    return name[len(join(folder, "")):].split("/")


def is_hidden(segment: str) -> bool:
    """Whether an entry of a folder is hidden, as markers and unfinished output are: _SUCCESS, _temporary, .part-0.crc."""
    return segment.startswith((".", "_"))


def partition_of(folders: Sequence[str]) -> Tuple[Tuple[str, str], ...]:
    """The keys and values of the folders named key=value, URL-decoded."""
    pairs = (folder.partition("=") for folder in folders)
    return tuple((urllib.parse.unquote(key), urllib.parse.unquote(value)) for key, equals, value in pairs if key and equals)


def has_magic(path: str) -> bool:
    """Whether the path contains special characters of patterns. If so, it is a pattern, unless a file has that name."""
    return _MAGIC.search(path) is not None


def hint_of_exact(name: str) -> str:
    """Returns a hint for messages about a missing file whose name, given as a Path or in a list, was taken literally: how to pass several
    names, patterns and options. Returns "" if the name contains neither ";" nor a pattern's special characters."""
    if not has_magic(name) and ";" not in name:
        return ""
    return ("; a Path or an element of a list names one file or folder: give several names, patterns and options as one "
            "str, such as 'a/*.svm;b.svm?indexing_mode=1'")


def split_pattern(name: str) -> Tuple[str, List[str]]:
    """Returns the folder before the first segment that is a pattern, and that segment and all following ones."""
    segments = name.split("/")
    first = next(k for k, one in enumerate(segments) if has_magic(one))
    return "/".join(segments[:first]) or ("/" if name.startswith("/") else ""), [one for one in segments[first:] if one]


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> "re.Pattern[str]":
    return re.compile(fnmatch.translate(pattern), re.DOTALL)


def segment_matches(pattern: str, segment: str) -> bool:
    """Whether a pattern matches a segment of a path. Hidden segments are matched only by patterns that begin with the same "." or "_"."""
    if is_hidden(segment) and not pattern.startswith(segment[0]):
        return False
    return _compiled(pattern).match(segment) is not None


def matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the pattern's segments match the path's segments, or the segments of a folder that contains the path. ** stands for any
    number of segments, none of them hidden. Below a matched folder, paths with a hidden segment do not match."""
    if pattern and pattern[-1] == "**":
        pattern = [*pattern, "*"]  # the contents of a folder, not the folder itself
    places = _past_stars(pattern, {0})  # the positions in the pattern that the segments examined so far can reach
    for count, segment in enumerate(path):
        if len(pattern) in places and not any(map(is_hidden, path[count:])):
            return True
        waiting = {place for place in places if place < len(pattern)}
        stay = {place for place in waiting if pattern[place] == "**" and not is_hidden(segment)}
        go_on = {place + 1 for place in waiting if pattern[place] != "**" and segment_matches(pattern[place], segment)}
        places = _past_stars(pattern, stay | go_on)
    return len(pattern) in places


def _past_stars(pattern: Sequence[str], places: Set[int]) -> Set[int]:
    """Adds the positions after each **, which may stand for no segment."""
    every = set()
    for place in places:
        every.add(place)
        while place < len(pattern) and pattern[place] == "**":
            place += 1
            every.add(place)
    return every
