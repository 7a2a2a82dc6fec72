"""fsspec's file systems, for schemes that no other module handles, and for all schemes if `storage_options` are given."""
import contextlib
import datetime
import shutil
from typing import IO, Any, List, Mapping, Optional

from warren.data._files.names import shown
from warren.data._files.retry import Changed, words
from warren.data._files.stores import interface
from warren.data._files.stores.interface import Entry, Handle, Store

_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs",
             "http": "fsspec aiohttp", "https": "fsspec aiohttp", "sftp": "fsspec paramiko", "ssh": "fsspec paramiko",
             "hdfs": "fsspec pyarrow", "smb": "fsspec smbprotocol"}


def _tag(info: Mapping[str, Any]) -> str:
    """Returns the file's tag (File.tag), from the keys under which file systems store it."""
    for key in ("ETag", "etag", "e_tag"):
        if info.get(key):
            return str(info[key]).replace('"', "")  # some file systems quote the tag of a single file, but not the tags in listings
    for key in ("LastModified", "last_modified", "mtime", "updated", "modified", "modify", "created"):
        value: Any = info.get(key)
        if isinstance(value, datetime.datetime):
            return str(value.timestamp())
        if value not in (None, ""):
            return str(value)
    return ""


class _FsspecHandle(Handle):
    def __init__(self, store: "Fsspec", name: str) -> None:
        super().__init__(store.info(name), "the store does not have it")
        self._fs, self._path = store.fs, store.path(name)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._fs.cat_file(self._path, start=offset, end=offset + size))


class Fsspec(Store):
    """One of fsspec's file systems."""

    def __init__(self, scheme: str, authority: str, options: Mapping[str, Any]) -> None:
        super().__init__(scheme, authority)
        self.lists = scheme not in ("http", "https")
        package = _PACKAGES.get(scheme, "fsspec")
        try:
            import fsspec
        except ImportError as error:
            raise ImportError(f"{scheme}://{' with storage_options' if options else ''} needs fsspec: pip install {package}. "
                              f"Importing it failed: {error}") from error
        self._refusal = f"{shown(self.head)}: fsspec refuses its storage_options {', '.join(sorted(options))}"
        try:
            self.fs = self._made(fsspec, options)
        except ImportError as error:
            raise ImportError(f"{scheme}:// needs: pip install {package}. fsspec says: {words(error)}") from error
        if hasattr(self.fs, "retries"):
            self.fs.retries = 1  # for s3fs: `persist` retries instead, after a check whether the file has changed
        self._root: str = self.fs._strip_protocol(self.head).rstrip("/")

    def _made(self, fsspec: Any, given: Mapping[str, Any]) -> Any:
        try:
            kind = fsspec.get_filesystem_class(self.scheme)
        except ValueError as error:
            raise ValueError(f"{self.scheme}:// is not a scheme that fsspec knows; expected a path, s3://, gs://, hdfs://, abfs://, "
                             "https:// or one of fsspec's") from error
        options = dict(given)
        if self.scheme in ("s3", "s3a"):
            timeouts = {"connect_timeout": interface.CONNECT_TIMEOUT_S, "read_timeout": interface.READ_TIMEOUT_S}
            options["config_kwargs"] = {**timeouts, "retries": {"total_max_attempts": 1}, **options.get("config_kwargs", {})}
        if self.scheme in ("http", "https"):
            import aiohttp
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=interface.CONNECT_TIMEOUT_S,
                                            sock_read=interface.READ_TIMEOUT_S)
            options["client_kwargs"] = {"timeout": timeout, **options.get("client_kwargs", {})}
        try:
            # Cached listings do not show whether a file has changed.
            return kind(**{**kind._get_kwargs_from_urls(self.head), **options}, skip_instance_cache=True, use_listings_cache=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self._refusal}: {words(error)}") from error

    def path(self, name: str) -> str:
        """fsspec's path for a name."""
        return f"{self._root}/{name}" if name else self._root

    def _entry(self, info: Mapping[str, Any]) -> Entry:
        path = str(info["name"])
        bare = path if path.startswith(self._root) else "/" + path
        name = bare[len(self._root):].strip("/") if bare.startswith(self._root) else path
        if info.get("type") == "directory" or path.endswith("/"):
            return Entry(name, 0, "", True)
        if not isinstance(info.get("size"), int):
            raise Changed(f"{shown(self.uri(name))}: the store does not report its size. Copy the file to a store that does")
        return Entry(name, int(info["size"]), _tag(info), False)

    def info(self, name: str) -> Optional[Entry]:
        self.fs.invalidate_cache()
        try:
            return self._entry(self.fs.info(self.path(name)))._replace(name=name)
        except FileNotFoundError:
            return None
        except TypeError as error:  # some file systems check their options when they connect
            raise ValueError(f"{self._refusal}: {words(error)}") from error

    def entries(self, folder: str) -> List[Entry]:
        self.fs.invalidate_cache()
        listed = [self._entry(one) for one in self.fs.ls(self.path(folder), detail=True)]
        return [one for one in listed if one.name != folder]  # omits an object that represents the folder itself

    def walk(self, folder: str) -> List[Entry]:
        self.fs.invalidate_cache()
        every = [self._entry(one) for one in self.fs.find(self.path(folder), detail=True).values()]
        return [one for one in every if not one.is_folder]

    def open(self, name: str) -> Handle:
        return _FsspecHandle(self, name)

    def upload(self, name: str, source: IO[bytes]) -> None:
        with self.fs.open(self.path(name), "wb") as out:
            try:
                shutil.copyfileobj(source, out, interface.PIECE_BYTES)
            except BaseException:
                with contextlib.suppress(Exception):  # the original exception is raised below
                    out.discard()
                out.closed = True  # otherwise leaving the block would complete the upload
                raise

    def remove(self, name: str) -> None:
        self.fs.rm(self.path(name))

    def move(self, name: str, goal: str) -> None:
        self.fs.mv(self.path(name), self.path(goal))
