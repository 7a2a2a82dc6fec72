"""Access to files. `interface` defines the operations of a store, each kind of store has its own module, and `locate` returns the store of
a URI."""
import os
import threading
from typing import Any, Dict, Tuple

from warren.data._files.names import ARROW_SCHEMES, Options, shown, split_uri
from warren.data._files.stores.arrow import Arrow
from warren.data._files.stores.fsspec import Fsspec
from warren.data._files.stores.http import Http
from warren.data._files.stores.interface import Entry, Handle, Store
from warren.data._files.stores.local import Local

__all__ = ["Entry", "Handle", "Local", "Store", "locate"]

#: The environment variables from which pyarrow takes the settings of an S3 store when it is made.
_OF_S3 = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
_stores: Dict[Tuple[Any, ...], Store] = {}
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    # A child forked while another thread held the lock would wait for it forever.
    def _new_lock() -> None:
        global _lock  # pylint: disable=global-statement
        _lock = threading.Lock()
    os.register_at_fork(after_in_child=_new_lock)


def locate(uri: str, storage_options: Options) -> Tuple[Store, str]:
    """Returns the store of a URI, and the name within the store. Each process has its own store objects, since connections do not survive a
    fork. Raises ValueError for an invalid name or options, and ImportError if the store needs a package that is missing. Thread-safe."""
    if "\0" in uri:
        raise ValueError(f"{uri!r}: a path cannot contain a null character")
    scheme, authority, name, options = split_uri(uri)
    if not scheme and storage_options:
        raise ValueError(f"{uri}: storage_options are for stores, but this is a local path; expected scheme://..., or no "
                         "storage_options")
    endpoint = tuple(os.environ.get(one, "") for one in _OF_S3) if scheme == "s3" else ()
    key = (os.getpid(), scheme, authority, options, endpoint, repr(sorted((storage_options or {}).items())))
    with _lock:
        if key not in _stores:
            if options and storage_options:
                raise ValueError(f"{shown(uri)}: found options in the URI and storage_options, expected only one of them")
            _stores[key] = _made(scheme, authority, options, storage_options)
        return _stores[key], name


def _made(scheme: str, authority: str, options: str, storage_options: Options) -> Store:
    if not scheme:
        return Local()
    if not storage_options and scheme in ARROW_SCHEMES:
        return Arrow(scheme, authority, options)
    if not storage_options and scheme in ("http", "https"):
        return Http(scheme, authority)
    return Fsspec(scheme, authority, storage_options or {})
