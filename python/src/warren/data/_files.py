"""Files anywhere, for all readers of this package: on disks, in object stores, on web servers.

`find` says which files a name stands for, with size and tag. `Ranges` reads byte ranges of one of them, again and again
where the network fails, and checks that it is still the file that was listed. `open_arrow` gives the same to pyarrow.
`open_output` writes a file that appears whole or not at all.

- Local paths and file:// need the standard library only; so do http:// and https://.
- s3://, gs://, hdfs://, abfs:// are read by pyarrow.
- All others, and every one with `storage_options`, by fsspec, as with pandas and polars.

Names are as the store has them: nothing is percent-decoded, but by http and https, whose names are URLs. A name that exists
is that file, whatever characters it has; only other names with *, ? or [ are patterns.
"""
import concurrent.futures
import contextlib
import datetime
import errno
import fnmatch
import functools
import http.client
import io
import os
import random
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import (IO, TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, NoReturn, Optional, Protocol,
                    Sequence, Tuple, TypeVar, Union)

if TYPE_CHECKING:
    import pyarrow as pa

Path = Union[str, "os.PathLike[str]"]
Options = Optional[Mapping[str, Any]]
T = TypeVar("T")

CONNECT_TIMEOUT_S = 10.0  # a connection takes a round trip or two; more is a host that is down
# A store that sends nothing for so long is taken for hung. Object stores begin to answer within a second or so, and under load
# within some seconds.
READ_TIMEOUT_S = 30.0
# Of one request. What comes before a failure in the middle of a request is lost in pyarrow and fsspec, so requests are not
# larger; and not smaller, since each costs a round trip.
PIECE_BYTES = 8 << 20
PIECES_AT_ONCE = 4  # a connection of an object store gives some 100 MB/s; more of them use the network that there is
SHOWN_NAMES = 5
_COPY_BYTES = 1 << 20

_ARROW_SCHEMES = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
_WHOLE_AT_CLOSE = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl")  # stores in which no half object is ever seen
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs",
             "http": "fsspec aiohttp", "https": "fsspec aiohttp", "sftp": "fsspec paramiko", "ssh": "fsspec paramiko",
             "hdfs": "fsspec pyarrow", "smb": "fsspec smbprotocol"}
_S3_OPTIONS = ("endpoint_override", "scheme", "region")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# What a URI for pyarrow has after its path, with one of these keys. Other question marks belong to names and patterns.
_URI_KEYS = frozenset(("endpoint_override", "scheme", "region", "retry_limit_seconds", "project_id", "user", "replication",
                       "buffer_size", "default_block_size", "kerb_ticket", "enable_tls", "tls_verify_server",
                       "blob_storage_authority", "dfs_storage_authority", "credential_kind", "tenant_id", "client_id",
                       "client_secret"))
_URI_OPTIONS = re.compile(r"\?((?:[a-z][a-z0-9_]*=[^&?#/*\[\]]*)(?:&[a-z][a-z0-9_]*=[^&?#*\[\]]*)*)$")
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class File:
    """A file as `find` listed it. Can be pickled: one process lists, the others are sent the list."""
    uri: str  #: as a user would write it: a path, or scheme://...
    size: int  #: bytes
    tag: str  #: changes when the content does: an ETag, or the time of modification; "": the store tells neither
    partition: Tuple[Tuple[str, str], ...] = ()  #: of folders key=value below what was asked for, URL-decoded


@dataclass(frozen=True)
class Retry:
    """How often and how long a request is tried. It ends at the first of `attempts` and `total_s`."""
    attempts: int = 6
    first_wait_s: float = 0.2
    greatest_wait_s: float = 10.0
    total_s: float = 300.0  #: no attempt begins after so long

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 <= self.first_wait_s <= self.greatest_wait_s or not self.total_s > 0:
            raise ValueError(f"{self}: at least one attempt is expected, 0 <= first_wait_s <= greatest_wait_s, and total_s > 0")

    def wait_s(self, failures: int, chance: float) -> float:
        """How long to wait after the `failures`th failure, from 1: twice as long each time. `chance`, of [0, 1), takes up to
        half of it off, so that workers that failed together do not come back together."""
        doubled = self.first_wait_s * 2.0 ** min(failures - 1, 100)
        return min(self.greatest_wait_s, doubled) * (1 - chance / 2)


class _Changed(OSError):
    """The file is not the one that was listed. Never tried again."""


class _Cut(ConnectionError):
    """A read that ended early, with what had come."""

    def __init__(self, data: bytes, why: str) -> None:
        super().__init__(why)
        self.data = data


# ---- Policy: pure functions

def is_hidden(segment: str) -> bool:
    """Of a name in a folder: markers and unfinished output, such as _SUCCESS, _temporary, .crc."""
    return segment.startswith((".", "_"))


def has_magic(path: str) -> bool:
    """Whether it would be a pattern, if no file has that name."""
    return _MAGIC.search(path) is not None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> "re.Pattern[str]":
    return re.compile(fnmatch.translate(pattern), re.DOTALL)


def segment_matches(pattern: str, segment: str) -> bool:
    """One segment of a path. Hidden ones are matched only by patterns that begin with the same "." or "_"."""
    if is_hidden(segment) and not pattern.startswith(segment[0]):
        return False
    return _compiled(pattern).match(segment) is not None


def matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the pattern's segments match the path's, or those of a folder that it is in. ** stands for any number of segments,
    none of them hidden. What is below a matched folder has no hidden segment either."""
    if pattern and pattern[-1] == "**":
        pattern = [*pattern, "*"]  # what is below a folder, not the folder
    places = {0}  # in the pattern, to which the path so far may have brought us
    for count, segment in enumerate(path):
        places = _past_stars(pattern, places)
        if len(pattern) in places and not any(is_hidden(one) for one in path[count:]):
            return True
        after = set()
        for place in places:
            if place < len(pattern):
                if pattern[place] == "**":
                    if not is_hidden(segment):
                        after.add(place)
                elif segment_matches(pattern[place], segment):
                    after.add(place + 1)
        places = after
    return len(pattern) in _past_stars(pattern, places)


def _past_stars(pattern: Sequence[str], places: "set[int]") -> "set[int]":
    every = set()
    for place in places:
        every.add(place)
        while place < len(pattern) and pattern[place] == "**":
            place += 1
            every.add(place)
    return every


def partition_of(folders: Sequence[str]) -> Tuple[Tuple[str, str], ...]:
    """Those of the folders that are named key=value."""
    pairs = (folder.partition("=") for folder in folders)
    return tuple((urllib.parse.unquote(key), urllib.parse.unquote(value)) for key, equals, value in pairs if key and equals)


def pieces(offset: int, size: int, most: int) -> List[Tuple[int, int]]:
    """(offset, size) of a range cut into at most `most` bytes each, of about the same size."""
    count = -(-size // most)
    cuts = [offset + size * k // count for k in range(count + 1)] if count else []
    return [(begin, end - begin) for begin, end in zip(cuts, cuts[1:])]


def shown(uri: str) -> str:
    """For messages: without the passwords that a URI may have."""
    uri = re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/@:]*):[^/@]*@", r"\1:***@", uri)
    return re.sub(r"(?i)([?&](?:[a-z_.-]*(?:secret|password|token|signature|sig|credential)[a-z_.-]*)=)[^&#]*", r"\1***", uri)


def split_uri(uri: str) -> Tuple[str, str, str, str]:
    """scheme ("" for a local path), authority, name and options ("?key=value..." of pyarrow's). The name has no "/" before it,
    but where it is a local path."""
    found = _SCHEME.match(uri)
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
    tail = _URI_OPTIONS.search(rest) if scheme in _ARROW_SCHEMES else None
    if tail and any(pair.partition("=")[0] in _URI_KEYS for pair in tail.group(1).split("&")):
        rest, options = rest[:tail.start()], tail.group(0)
    authority, _, name = rest.partition("/")
    if not authority and scheme in ("s3", "s3a", "gs", "gcs", "http", "https"):
        raise ValueError(f"{uri}: expected {scheme}://{'BUCKET' if scheme[0] in 'sg' else 'HOST'}/NAME")
    return scheme, authority, name, options


_ALL_RIGHT_LATER = (408, 425, 429)
_NOT_FOUND = frozenset(("NO_SUCH_BUCKET", "NO_SUCH_KEY", "NO_SUCH_UPLOAD", "RESOURCE_NOT_FOUND"))
_DENIED = frozenset(("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_SIGNATURE", "EXPIRED_TOKEN",
                     "INVALID_CLIENT_TOKEN_ID", "MISSING_AUTHENTICATION_TOKEN", "UNRECOGNIZED_CLIENT", "INCOMPLETE_SIGNATURE",
                     "OPT_IN_REQUIRED", "ACCOUNT_PROBLEM", "INVALID_TOKEN"))
_WRONG = frozenset(("INVALID_ACTION", "INVALID_PARAMETER_VALUE", "INVALID_QUERY_PARAMETER", "MALFORMED_QUERY_STRING",
                    "VALIDATION", "INVALID_OBJECT_STATE", "BUCKET_ALREADY_EXISTS",
                    "MISSING_PARAMETER", "INVALID_PARAMETER_COMBINATION"))
_NO_USE = (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps."""
    following: Optional[object] = error
    for _ in range(8):
        if not isinstance(following, BaseException):
            return
        yield following
        following = getattr(following, "reason", None) if isinstance(following, urllib.error.URLError) else following.__cause__


def kind_of(error: BaseException) -> str:
    """What a storage error is: "missing", "denied", "transient" (trying again may help), "final" (it will not), or "foreign": not
    from storage at all, as a fault in a program is."""
    if isinstance(error, (_Changed, IsADirectoryError, NotADirectoryError, FileExistsError)):
        return "final"
    for one in _causes(error):
        if isinstance(one, FileNotFoundError):
            return "missing"
        if isinstance(one, PermissionError):
            return "denied"
        if isinstance(one, OSError) and isinstance(one, ValueError):  # a TLS certificate that is not valid
            return "final"
        # aiohttp gives a broken body the code 400, which no server has sent.
        status = one.code if isinstance(one, urllib.error.HTTPError) else getattr(one, "status", None)
        aws = re.search(r"AWS Error ([A-Z0-9_]+)(?: \(HTTP status (\d+)\))?", str(one))
        if aws is not None:
            word, status = aws.group(1), int(aws.group(2) or 0)
            if word in _NOT_FOUND or word in _DENIED or word in _WRONG:
                return "missing" if word in _NOT_FOUND else "denied" if word in _DENIED else "final"
        if isinstance(status, int) and status >= 300:
            if status in _ALL_RIGHT_LATER or (status >= 500 and status not in (501, 505)):
                return "transient"
            return "missing" if status in (404, 410) else "denied" if status in (401, 403, 407) else "final"
        if isinstance(one, OSError) and one.errno in _NO_USE:
            return "final"
    if isinstance(error, (OSError, EOFError, http.client.HTTPException, concurrent.futures.TimeoutError, TimeoutError)):
        return "transient"
    module = type(error).__module__
    if module.startswith(("asyncio", "aiohttp", "botocore", "aiobotocore", "fsspec", "paramiko")):
        return "transient"
    return "foreign"


def _failed(kind: str, text: str, error: BaseException) -> NoReturn:
    names = {"missing": FileNotFoundError, "denied": PermissionError}
    timed_out = any(isinstance(one, TimeoutError) for one in _causes(error)) or "curlCode: 28" in str(error)
    raise names.get(kind, TimeoutError if timed_out else OSError)(text) from error


def _words(error: BaseException) -> str:
    return shown(" ".join(str(error).split())) or type(error).__name__


def persist(step: Callable[[], T], what: str, retry: Retry, *, sleep: Callable[[float], None] = time.sleep,
            clock: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random) -> T:
    """The result of `step`, which is tried again after transient errors. `what`: the begin of messages, "s3://b/x: bytes 0-9".

    Raises FileNotFoundError, PermissionError, TimeoutError or OSError with the number of attempts and the store's words.
    """
    begin = clock()
    for attempt in range(1, retry.attempts + 1):
        try:
            return step()
        except _Changed:
            raise
        except Exception as error:  # pylint: disable=broad-except
            kind = kind_of(error)
            if kind == "foreign":
                raise
            wait_s = retry.wait_s(attempt, chance())
            spent_s = clock() - begin
            if kind == "transient" and attempt < retry.attempts and spent_s + wait_s < retry.total_s:
                last_wait = wait_s
            else:
                tries = f"{attempt} attempt{'s' if attempt > 1 else ''} in {spent_s:.1f} s"
                advice = {"missing": "it does not exist", "denied": "access is denied; check the credentials"}.get(kind, "failed")
                _failed(kind, f"{what}: {advice}, {tries}: {_words(error)}", error)
        sleep(last_wait)
    raise AssertionError("not reached: the last attempt returns or raises")


# ---- Stores: a thin layer each

class _Entry(NamedTuple):
    name: str
    size: int
    tag: str
    is_folder: bool


class _Handle(Protocol):
    """A file opened. Thread safe."""
    size: int
    tag: str

    def read(self, offset: int, size: int) -> bytes:
        """One request, of at least a byte. Gives less only where the store did."""

    def close(self) -> None:
        """Once."""


class _Store(Protocol):
    """Where names live. Each call is a request or a few, tried once. Thread safe."""
    lists: bool  # whether it can say what there is

    def uri(self, name: str) -> str:
        """What a user would write."""

    def info(self, name: str) -> Optional[_Entry]:
        """None: there is neither file nor folder of that name."""

    def entries(self, folder: str) -> List[_Entry]:
        """Files and folders right in it."""

    def walk(self, folder: str) -> List[_Entry]:
        """All files below it; may leave hidden ones out."""

    def open(self, name: str) -> _Handle:
        """For reading."""

    def put(self, name: str, source: IO[bytes], size: int) -> None:
        """Makes it a file with these bytes, whole or not at all."""


def _join(folder: str, name: str) -> str:
    return folder + name if not folder or folder.endswith("/") else f"{folder}/{name}"


def _local_tag(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns} ns"


class _LocalHandle:
    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO would wait for its writer
        status = os.fstat(self._fd)
        self.size, self.tag = status.st_size, _local_tag(status)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise _Changed(f"{path}: it is no regular file; expected one")

    def read(self, offset: int, size: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        status = os.fstat(self._fd)  # costs nothing beside a read; so no bytes of a file that changes under the reader pass
        self.size, self.tag = status.st_size, _local_tag(status)
        return data

    def close(self) -> None:
        os.close(self._fd)


class _Local:
    lists = True

    def uri(self, name: str) -> str:
        return name

    def info(self, name: str) -> Optional[_Entry]:
        try:
            status = os.stat(name or ".")
        except (FileNotFoundError, NotADirectoryError):
            return None
        return self._entry(name, status)

    def _entry(self, name: str, status: os.stat_result) -> _Entry:
        if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
            raise _Changed(f"{name}: it is no regular file, and cannot be read by byte ranges")
        return _Entry(name, status.st_size, _local_tag(status), stat.S_ISDIR(status.st_mode))

    def entries(self, folder: str) -> List[_Entry]:
        with os.scandir(folder or ".") as listing:
            return [self._entry(_join(folder, one.name), one.stat()) for one in listing
                    if one.is_file() or one.is_dir() or one.is_symlink()]

    def walk(self, folder: str) -> List[_Entry]:
        found: List[_Entry] = []
        waiting: List[Tuple[str, Tuple[Tuple[int, int], ...]]] = [(folder, ())]
        while waiting:
            name, above = waiting.pop()
            status = os.stat(name or ".")
            here = (status.st_dev, status.st_ino)
            if here in above:
                raise _Changed(f"{name}: a symbolic link to a folder that it is in; there is no end to that")
            for entry in self.entries(name):
                if not is_hidden(os.path.basename(entry.name)):
                    if entry.is_folder:
                        waiting.append((entry.name, above + (here,)))
                    else:
                        found.append(entry)
        return found

    def open(self, name: str) -> _Handle:
        return _LocalHandle(name)

    def put(self, name: str, source: IO[bytes], size: int) -> None:
        raise NotImplementedError("local files are written in place")


def _seconds_tag(seconds: float) -> str:
    # S3's listings tell fractions of a second and its answers about single objects do not, so whole seconds are compared.
    return f"{int(seconds)} s"


class _ArrowHandle:
    def __init__(self, store: "_Arrow", name: str) -> None:
        self._file = store.fs.open_input_file(store.path(name))
        self.size = int(self._file.size())
        told = {key.lower(): value for key, value in (self._file.metadata() or {}).items()}
        self.etag = told.get("etag", b"").decode(errors="replace")
        modified = told.get("last-modified", b"").decode(errors="replace")
        try:  # what opening has told, so that there is no second request
            seconds = datetime.datetime.strptime(modified, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc).timestamp()
            self.tag = _seconds_tag(seconds)
        except ValueError:
            entry = store.info(name)
            self.tag = entry.tag if entry else ""

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._file.read_at(size, offset))

    def close(self) -> None:
        self._file.close()


class _Arrow:
    """One of pyarrow's file systems."""
    lists = True

    def __init__(self, scheme: str, authority: str, options: str) -> None:
        try:
            import pyarrow.fs as pafs
        except ImportError as error:
            raise ImportError(f"{scheme}:// needs pyarrow: pip install pyarrow (or give storage_options, for fsspec). "
                              f"What was found: {error}") from error
        self._pafs = pafs
        self._head, self._options, self._scheme = f"{scheme}://{authority}/", options, scheme
        try:
            if scheme == "s3":
                self.fs, self._base = self._s3(authority, options)
            else:
                if scheme in ("gs", "gcs") and "retry_limit_seconds" not in options:
                    # By itself it would try for 15 minutes.
                    options += f"{'&' if options else '?'}retry_limit_seconds={READ_TIMEOUT_S:.0f}"
                self.fs, self._base = pafs.FileSystem.from_uri(self._head + options)
        except ImportError:
            raise
        except (OSError, ValueError, NotImplementedError) as error:
            if "libhdfs" in str(error) or "HADOOP" in str(error):
                raise ImportError(f"{shown(self._head)}: hdfs:// needs Hadoop's libhdfs: install Hadoop and Java, and set "
                                  f"JAVA_HOME, HADOOP_HOME, ARROW_LIBHDFS_DIR and CLASSPATH. pyarrow says: "
                                  f"{_words(error)}") from error
            raise ValueError(f"{shown(self._head + options)}: pyarrow cannot open this store: {_words(error)}") from error
        self._base = self._base.rstrip("/") + "/"

    def _s3(self, authority: str, text: str) -> Tuple[Any, str]:
        options = dict(urllib.parse.parse_qsl(text[1:], keep_blank_values=True))
        wrong = sorted(set(options).difference(_S3_OPTIONS))
        if wrong:
            raise ValueError(f"found the option {wrong[0]}, expected {', '.join(_S3_OPTIONS)}; for others give storage_options")
        # pyarrow reads these variables for URIs only, and those cannot have timeouts.
        endpoint = options.pop("endpoint_override", "") or os.environ.get("AWS_ENDPOINT_URL_S3", "") or os.environ.get(
            "AWS_ENDPOINT_URL", "")
        found = _SCHEME.match(endpoint)
        if found:
            options.setdefault("scheme", found.group(1).lower())
            endpoint = endpoint[found.end():]
        region = options.pop("region", "") or os.environ.get("AWS_REGION", "") or os.environ.get("AWS_DEFAULT_REGION", "")
        if region or endpoint:
            options["region"] = region or "us-east-1"  # without one pyarrow asks a cloud's metadata service
        user, at, bucket = authority.rpartition("@")
        if at:
            key, _, secret = user.partition(":")
            options.update(access_key=urllib.parse.unquote(key), secret_key=urllib.parse.unquote(secret))
        if endpoint:
            options["endpoint_override"] = endpoint.rstrip("/")
            # Amazon's client would send checksums in a way that stores other than Amazon's refuse (rclone with 411, for one).
            # It is read when a client is made, and there is no argument for it.
            os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
        fs = self._pafs.S3FileSystem(connect_timeout=CONNECT_TIMEOUT_S, request_timeout=READ_TIMEOUT_S,
                                     # Who tries again is `persist`, which checks the file first.
                                     retry_strategy=self._pafs.AwsStandardS3RetryStrategy(max_attempts=1), **options)
        return fs, bucket

    def path(self, name: str) -> str:
        """What pyarrow calls it."""
        return (self._base + name).rstrip("/") or "/"

    def uri(self, name: str) -> str:
        return self._head + name + self._options

    def _entry(self, info: Any) -> _Entry:
        name = info.path[len(self._base):] if info.path.startswith(self._base) else ""
        if info.type == self._pafs.FileType.Directory:
            return _Entry(name, 0, "", True)
        # 0: not understood. Amazon's client wants milliseconds of three digits in listings, and rclone writes .43 for .430.
        tag = "" if info.mtime_ns is None or info.mtime_ns <= 0 else _seconds_tag(info.mtime_ns // 10**9)
        return _Entry(name, int(info.size), tag, False)

    def info(self, name: str) -> Optional[_Entry]:
        info = self.fs.get_file_info(self.path(name))
        if info.type == self._pafs.FileType.NotFound:
            if name and self._scheme == "s3" and self.info("") is None:
                raise FileNotFoundError(f"there is no bucket '{self._base.rstrip('/')}'")
            return None
        return self._entry(info)._replace(name=name)

    def entries(self, folder: str) -> List[_Entry]:
        return [self._entry(info) for info in self.fs.get_file_info(self._pafs.FileSelector(self.path(folder)))]

    def walk(self, folder: str) -> List[_Entry]:
        every = self.fs.get_file_info(self._pafs.FileSelector(self.path(folder), recursive=True))
        return [self._entry(info) for info in every if info.type == self._pafs.FileType.File]

    def open(self, name: str) -> _Handle:
        return _ArrowHandle(self, name)

    def put(self, name: str, source: IO[bytes], size: int) -> None:
        path = self.path(name)
        goal = path if self._scheme in _WHOLE_AT_CLOSE else _unfinished(path)
        with self.fs.open_output_stream(goal) as out:
            shutil.copyfileobj(source, out, PIECE_BYTES)
        written = self.fs.get_file_info(goal)
        if written.size != size:
            raise ConnectionError(f"{written.size} of {size} bytes have arrived")
        if goal != path:
            self.fs.move(goal, path)


class _HttpHandle:
    def __init__(self, store: "_Http", name: str) -> None:
        self._store, self._name = store, name
        entry = store.info(name)
        if entry is None:
            raise FileNotFoundError("the server says 404")
        self.size, self.tag = entry.size, entry.tag

    def read(self, offset: int, size: int) -> bytes:
        data: List[bytes] = []
        have = 0
        with self._store.request(self._name, "GET", f"bytes={offset}-{offset + size - 1}") as response:
            told = response.headers.get("Content-Range", "")
            self.tag = _http_tag(response.headers)
            if response.status != 206 or not re.match(rf"bytes {offset}-", told):
                raise _Changed(f"{shown(self._store.uri(self._name))}: the server was asked for bytes {offset}-"
                               f"{offset + size - 1}, and answered {response.status} with the bytes '{told or 'all'}': it cannot "
                               "send byte ranges. Copy the file, or serve it with nginx, Apache or rclone")
            while have < size:
                try:
                    one = response.read1(min(_COPY_BYTES, size - have))
                except (OSError, http.client.HTTPException) as error:
                    raise _Cut(b"".join(data), f"{have} of {size} bytes, then {type(error).__name__}: {_words(error)}") from error
                if not one:
                    break
                data.append(one)
                have += len(one)
        return b"".join(data)

    def close(self) -> None:
        pass


def _http_tag(headers: Any) -> str:
    return str(headers.get("ETag") or headers.get("Last-Modified") or "")


class _Http:
    """Named files of a web server, over the standard library: unlike fsspec it keeps what came before a connection broke, and
    sees with each answer whether the file changed. Proxies are those of the environment (https_proxy)."""
    lists = False

    def __init__(self, scheme: str, authority: str) -> None:
        self._head = f"{scheme}://{authority}/"

    def uri(self, name: str) -> str:
        return self._head + name

    def request(self, name: str, method: str, byte_range: str = "") -> Any:
        """An answer to be closed. Raises urllib.error.HTTPError for each status that is no success."""
        # What is no character of a URL is encoded, what is encoded stays.
        url = urllib.parse.quote(self.uri(name).split("#")[0], safe="%/:?&=+,;@!$'()*~[]")
        headers = {"Accept-Encoding": "identity", "User-Agent": "warren"}
        if byte_range:
            headers["Range"] = byte_range
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method), timeout=READ_TIMEOUT_S)

    def info(self, name: str) -> Optional[_Entry]:
        try:
            with self.request(name, "HEAD") as response:
                if urllib.parse.urlsplit(response.geturl()).path.endswith("/"):  # where it sends who asks for a folder
                    return _Entry(name, 0, "", True)
                length = response.headers.get("Content-Length", "")
                if length.isdigit():
                    return _Entry(name, int(length), _http_tag(response.headers), False)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 410):
                return None
            if error.code not in (400, 403, 405, 501):  # signed URLs are often for GET alone
                raise
        try:
            with self.request(name, "GET", "bytes=0-0") as response:
                total = re.match(r"bytes 0-0/(\d+)$", response.headers.get("Content-Range", ""))
                if response.status == 206 and total:
                    return _Entry(name, int(total.group(1)), _http_tag(response.headers), False)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # an empty file has no first byte
                return _Entry(name, 0, _http_tag(error.headers), False)
            raise
        raise _Changed(f"{shown(self.uri(name))}: the server tells no size, neither by HEAD nor by a byte range; expected one. "
                       "Copy the file, or serve it with nginx, Apache or rclone")

    def entries(self, folder: str) -> List[_Entry]:
        raise ValueError(f"{shown(self.uri(folder))}: http and https cannot say which files there are; name each file")

    def walk(self, folder: str) -> List[_Entry]:
        return self.entries(folder)

    def open(self, name: str) -> _Handle:
        return _HttpHandle(self, name)

    def put(self, name: str, source: IO[bytes], size: int) -> None:
        raise ValueError(f"{shown(self.uri(name))}: http and https are for reading; write to a folder or an object store")


class _FsspecHandle:
    def __init__(self, store: "_Fsspec", name: str) -> None:
        self._fs, self._path = store.fs, store.path(name)
        entry = store.info(name)
        if entry is None:
            raise FileNotFoundError("the store does not have it")
        self.size, self.tag = entry.size, entry.tag

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._fs.cat_file(self._path, start=offset, end=offset + size))

    def close(self) -> None:
        pass


def fsspec_tag(info: Mapping[str, Any]) -> str:
    """Of what fsspec's file systems tell about a file, each in its own words."""
    for key in ("ETag", "etag", "e_tag"):
        if info.get(key):
            return str(info[key]).replace('"', "")  # one file system gives it with quotes in answers and without in listings
    for key in ("LastModified", "last_modified", "mtime", "updated", "modified", "modify", "created"):
        value: Any = info.get(key)
        if isinstance(value, datetime.datetime):
            return str(value.timestamp())
        if value not in (None, ""):
            return str(value)
    return ""


class _Fsspec:
    """One of fsspec's file systems."""
    lists = True

    def __init__(self, scheme: str, authority: str, options: Mapping[str, Any]) -> None:
        package = _PACKAGES.get(scheme, "fsspec")
        try:
            import fsspec
        except ImportError as error:
            raise ImportError(f"{scheme}://{' with storage_options' if options else ''} needs fsspec: pip install {package}. "
                              f"What was found: {error}") from error
        try:
            kind = fsspec.get_filesystem_class(scheme)
        except ImportError as error:
            raise ImportError(f"{scheme}:// needs: pip install {package}. fsspec says: {_words(error)}") from error
        except ValueError as error:
            raise ValueError(f"{scheme}:// is no scheme that fsspec knows; expected a path, s3://, gs://, hdfs://, abfs://, "
                             "https:// or one of fsspec's") from error
        self._given = sorted(options)
        options = dict(options)
        if scheme in ("s3", "s3a"):
            options["config_kwargs"] = {"connect_timeout": CONNECT_TIMEOUT_S, "read_timeout": READ_TIMEOUT_S,
                                        "retries": {"total_max_attempts": 1}, **options.get("config_kwargs", {})}
        if scheme in ("http", "https"):
            import aiohttp
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=READ_TIMEOUT_S)
            options["client_kwargs"] = {"timeout": timeout, **options.get("client_kwargs", {})}
        self._scheme, self._head = scheme, f"{scheme}://{authority}/" if authority else f"{scheme}://"
        self.lists = scheme not in ("http", "https")
        try:
            # What was listed a while ago is no answer to whether it changed.
            self.fs: Any = kind(**{**kind._get_kwargs_from_urls(self._head), **options},
                                skip_instance_cache=True, use_listings_cache=False)
        except ImportError as error:
            raise ImportError(f"{scheme}:// needs: pip install {package}. fsspec says: {_words(error)}") from error
        except (TypeError, ValueError) as error:
            raise ValueError(f"{shown(self._head)}: fsspec refuses its storage_options {', '.join(self._given)}: "
                             f"{_words(error)}") from error
        if hasattr(self.fs, "retries"):
            self.fs.retries = 1  # of s3fs; who tries again is `persist`, which checks the file first
        self._root: str = self.fs._strip_protocol(self._head).rstrip("/")

    def path(self, name: str) -> str:
        """What fsspec calls it."""
        return f"{self._root}/{name}" if name else self._root

    def uri(self, name: str) -> str:
        return self._head + name

    def _entry(self, info: Mapping[str, Any]) -> _Entry:
        path = str(info["name"])
        bare = path if path.startswith(self._root) else "/" + path
        name = bare[len(self._root):].strip("/") if bare.startswith(self._root) else path
        if info.get("type") == "directory" or path.endswith("/"):
            return _Entry(name, 0, "", True)
        if not isinstance(info.get("size"), int):
            raise _Changed(f"{shown(self.uri(name))}: the store tells no size; expected one. Copy the file to where it has one")
        return _Entry(name, int(info["size"]), fsspec_tag(info), False)

    def info(self, name: str) -> Optional[_Entry]:
        self.fs.invalidate_cache()
        try:
            return self._entry(self.fs.info(self.path(name)))._replace(name=name)
        except FileNotFoundError:
            return None
        except TypeError as error:  # some look at their options when they connect
            raise ValueError(f"{shown(self._head)}: fsspec refuses its storage_options {', '.join(self._given)}: "
                             f"{_words(error)}") from error

    def entries(self, folder: str) -> List[_Entry]:
        if not self.lists:
            raise ValueError(f"{shown(self.uri(folder))}: http and https cannot say which files there are; name each file")
        self.fs.invalidate_cache()
        listed = [self._entry(one) for one in self.fs.ls(self.path(folder), detail=True)]
        return [one for one in listed if one.name != folder]  # an object that stands for the folder itself

    def walk(self, folder: str) -> List[_Entry]:
        if not self.lists:
            return self.entries(folder)
        self.fs.invalidate_cache()
        every = [self._entry(one) for one in self.fs.find(self.path(folder), detail=True).values()]
        return [one for one in every if not one.is_folder]

    def open(self, name: str) -> _Handle:
        return _FsspecHandle(self, name)

    def put(self, name: str, source: IO[bytes], size: int) -> None:
        path = self.path(name)
        goal = path if self._scheme in _WHOLE_AT_CLOSE else _unfinished(path)
        with self.fs.open(goal, "wb") as out:
            try:
                shutil.copyfileobj(source, out, PIECE_BYTES)
            except BaseException:
                with contextlib.suppress(Exception):  # that one goes on
                    out.discard()
                out.closed = True  # leaving the block would complete the upload
                raise
        self.fs.invalidate_cache()
        written = self.fs.info(goal)["size"]
        if written != size:
            raise ConnectionError(f"{written} of {size} bytes have arrived")
        if goal != path:
            self.fs.mv(goal, path)


def _unfinished(path: str) -> str:
    """A name beside it for what is being written, which `find` leaves out."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.{os.getpid()}.{secrets.token_hex(4)}.unfinished"


_stores: Dict[Tuple[Any, ...], _Store] = {}
_stores_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    # A child made while another thread held it would wait for it forever.
    def _new_lock() -> None:
        global _stores_lock  # pylint: disable=global-statement
        _stores_lock = threading.Lock()
    os.register_at_fork(after_in_child=_new_lock)


def _locate(uri: str, storage_options: Options) -> Tuple[_Store, str]:
    """The store, one for each process (connections do not survive a fork), and the name in it."""
    if "\0" in uri:
        raise ValueError(f"{uri!r}: no path has a null character")
    scheme, authority, name, options = split_uri(uri)
    if not scheme and storage_options:
        raise ValueError(f"{uri}: storage_options are for stores, and this is a local path; expected scheme://..., or no "
                         "storage_options")
    endpoint = tuple(os.environ.get(one, "") for one in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")) if scheme == "s3" else ()
    key = (os.getpid(), scheme, authority, options, endpoint, repr(sorted((storage_options or {}).items())))
    with _stores_lock:
        store = _stores.get(key)
        if store is None:
            if not scheme:
                store = _Local()
            elif storage_options:
                if options:
                    raise ValueError(f"{shown(uri)}: found options in the URI and storage_options, expected one of them")
                store = _Fsspec(scheme, authority, storage_options)
            elif scheme in _ARROW_SCHEMES:
                store = _Arrow(scheme, authority, options)
            elif scheme in ("http", "https"):
                store = _Http(scheme, authority)
            else:
                store = _Fsspec(scheme, authority, {})
            _stores[key] = store
    return store, name


# ---- What the readers use

def find(uri: Union[Path, Sequence[Path]], *, storage_options: Options = None) -> List[File]:
    """The files that a name stands for: a file, a folder (all files below it; names that begin with "." or "_" are left out), a
    pattern (*, ?, [..] within a segment, ** over segments; a folder that matches stands for what is below it), several of those
    separated by ";", or a sequence of those, whose names may have a ";". Those of each name in the order of their paths'
    bytes. Empty files are files.

    http and https name files only: they cannot list. Thread safe; tries again after transient errors.

    Raises FileNotFoundError where a name stands for no file, ValueError for a file that is named twice or a bad name, ImportError
    with what to install, and OSError for what the store says.
    """
    if isinstance(uri, (str, os.PathLike)):
        items = [one for one in os.fspath(uri).split(";") if one]
    else:
        items = [os.fspath(one) for one in uri]
    if not items or not all(isinstance(one, str) and one for one in items):
        raise ValueError(f"{uri!r}: expected the name of a file, a folder or a pattern")
    found: List[File] = []
    named: Dict[str, str] = {}
    for item in items:
        for file in _find_one(item, storage_options):
            same = os.path.normpath(file.uri) if not _SCHEME.match(file.uri) else file.uri
            if same in named:
                raise ValueError(f"{shown(file.uri)} is named twice, by '{shown(named[same])}' and by '{shown(item)}'; its "
                                 "rows would count twice. Name it once")
            named[same] = item
            found.append(file)
    return found


def _find_one(item: str, storage_options: Options) -> List[File]:
    store, given = _locate(item, storage_options)
    name = given.rstrip("/") or ("/" if given.startswith("/") else "")
    must_be_folder = given.endswith("/")
    what, retry = shown(item), Retry()
    entry = None if must_be_folder and not store.lists else persist(lambda: store.info(name), what, retry)
    if not store.lists and (must_be_folder or (entry.is_folder if entry else has_magic(name.split("?")[0]))):
        store.entries(given)  # refuses
    if entry is not None and not entry.is_folder:
        if must_be_folder:
            raise FileNotFoundError(f"{what}: a file; the '/' at the end asks for a folder")
        return [File(store.uri(name), entry.size, entry.tag)]
    if entry is not None:
        base = name
        every = persist(lambda: store.walk(name), what, retry)
        files = [one for one in every if not any(is_hidden(part) for part in _below(base, one.name))]
    elif has_magic(name) and store.lists:
        base, pattern = _split_pattern(name)
        files = _expand(store, base, pattern, what, retry)
    else:
        raise FileNotFoundError(f"{what}: there is no such file" + (" or folder" if store.lists else " on the server"))
    if not files:
        raise FileNotFoundError(f"{what}: no file found. {_instead(store, base, what, retry)}")
    for k, one in enumerate(files):
        if not one.tag:  # a listing that does not tell it; the file itself may
            files[k] = persist(functools.partial(store.info, one.name), what, retry) or one
    files.sort(key=lambda one: one.name.encode("utf-8", "surrogateescape"))
    return [File(store.uri(one.name), one.size, one.tag, partition_of(_below(base, one.name)[:-1])) for one in files]


def _below(base: str, name: str) -> List[str]:
    """The segments of a name after those of the folder."""
    return name[len(_join(base, "")):].split("/")


def _split_pattern(name: str) -> Tuple[str, List[str]]:
    """The folder before the first segment that is a pattern, and the segments from there on."""
    segments = name.split("/")
    first = next(k for k, one in enumerate(segments) if has_magic(one))
    return "/".join(segments[:first]) or ("/" if name.startswith("/") else ""), [one for one in segments[first:] if one]


def _expand(store: _Store, folder: str, pattern: List[str], what: str, retry: Retry) -> List[_Entry]:
    """Level by level, so that folders that do not match are not listed."""
    def listed(call: Callable[[str], List[_Entry]], name: str) -> List[_Entry]:
        try:
            return persist(lambda: call(name), what, retry)
        except (FileNotFoundError, NotADirectoryError):
            # A folder that is not there has no files; a bucket that is not there is an error of its own.
            persist(lambda: store.info(name), what, retry)
            return []

    if not pattern:
        return [one for one in listed(store.walk, folder) if not any(is_hidden(part) for part in _below(folder, one.name))]
    if pattern[0] == "**":
        return [one for one in listed(store.walk, folder) if matches(pattern, _below(folder, one.name))]
    found = []
    for one in listed(store.entries, folder):
        if segment_matches(pattern[0], _below(folder, one.name)[-1]):
            if one.is_folder:
                found += _expand(store, one.name, pattern[1:], what, retry)
            elif not pattern[1:]:
                found.append(one)
    return found


def _instead(store: _Store, folder: str, what: str, retry: Retry) -> str:
    try:
        entries = persist(lambda: store.entries(folder), what, retry)
    except (FileNotFoundError, NotADirectoryError):
        return f"There is no folder {shown(store.uri(folder)) or '.'}"
    names = sorted(_below(folder, one.name)[-1] + ("/" if one.is_folder else "") for one in entries)
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"{shown(store.uri(folder)) or 'The folder'} holds " + (", ".join(names[:SHOWN_NAMES]) + more if names else "nothing")


class Ranges:
    """Byte ranges of a file that `find` listed. Thread safe. Not for use after a fork: open it in the process that reads.

    Each range is tried again after transient errors, from the byte that it had got to where the store gives that (http, https,
    local), else from the last piece of PIECE_BYTES. When opened, after each failure, and with each local read and http
    answer, size and tag are compared with those listed.
    """

    def __init__(self, file: File, *, storage_options: Options = None, retry: Retry = Retry()) -> None:
        """Raises FileNotFoundError where it was deleted since, OSError where it changed since or the store fails."""
        self.file = file
        self._retry = retry
        self._store, self._name = _locate(file.uri, storage_options)
        self._lock = threading.Lock()
        self._closed = False
        self._retired: List[_Handle] = []
        self._pool: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._handle: _Handle = persist(self._open, f"{shown(file.uri)}: to open it", retry)
        self._etag = getattr(self._handle, "etag", "")

    def _open(self) -> _Handle:
        try:
            handle = self._store.open(self._name)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"it was deleted since it was listed: {_words(error)}") from error
        try:
            self._check(handle)
        except BaseException:
            handle.close()
            raise
        return handle

    def _check(self, handle: _Handle) -> None:
        listed = self.file
        if handle.size != listed.size or (listed.tag and handle.tag and handle.tag != listed.tag):
            raise _Changed(f"{shown(listed.uri)}: it changed since it was listed: was {listed.size} bytes with the tag "
                           f"'{listed.tag}', is {handle.size} bytes with the tag '{handle.tag}'. Start again, and let nothing "
                           "write to it meanwhile")
        etag, first = getattr(handle, "etag", ""), getattr(self, "_etag", "")
        if etag and first and etag != first:
            raise _Changed(f"{shown(listed.uri)}: it changed while it was read: its ETag was {first}, is {etag}. Start "
                           "again, and let nothing write to it meanwhile")

    def check(self) -> None:
        """Asks the store again whether the file is still the one listed. For after the last read: a store that overwrites an
        object between two reads of it says nothing by itself. Raises as the constructor does."""
        handle = persist(self._open, f"{shown(self.file.uri)}: to check it", self._retry)
        handle.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes from `offset` on. Raises ValueError where the file does not have them or is closed; OSError with
        file, byte range, attempts and the store's words."""
        if offset < 0 or size < 0 or offset + size > self.file.size:
            raise ValueError(f"{shown(self.file.uri)}: {size} bytes from {offset} on are not in a file of {self.file.size} bytes")
        with self._lock:
            if self._closed:
                raise ValueError(f"{shown(self.file.uri)}: closed")
        if size == 0:
            return b""
        if isinstance(self._store, _Local) or size <= PIECE_BYTES:
            return self._read_piece(offset, size)
        with self._lock:
            if self._pool is None:
                self._pool = concurrent.futures.ThreadPoolExecutor(PIECES_AT_ONCE, "warren-read")
            pool = self._pool
        futures = [pool.submit(self._read_piece, *piece) for piece in pieces(offset, size, PIECE_BYTES)]
        try:
            return b"".join(future.result() for future in futures)
        finally:
            for future in futures:
                future.cancel()

    def _read_piece(self, offset: int, size: int) -> bytes:
        parts: List[bytes] = []
        have = 0
        failed = False

        def keep(data: bytes) -> None:
            nonlocal have
            if data:
                parts.append(data)
                have += len(data)

        def step() -> None:
            nonlocal failed
            if failed:
                self._reopen()
            handle = self._handle
            failed = True
            # A local file gives at most 2 GiB at once, which is no failure.
            while have < size:
                before = have
                try:
                    keep(handle.read(offset + have, size - have))
                except _Cut as error:
                    keep(error.data)
                    raise
                self._check(handle)
                if have < size and (have == before or not isinstance(self._store, _Local)):
                    raise _Cut(b"", f"a short read: {have} of {size} bytes")

        persist(step, f"{shown(self.file.uri)}: bytes {offset}-{offset + size - 1} of {self.file.size}", self._retry)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _reopen(self) -> None:
        """After a failure: the same file, or an error. The handle before it may be in use by other threads: close() closes it."""
        handle = self._open()
        with self._lock:
            self._retired.append(self._handle)
            self._handle = handle

    def close(self) -> None:
        """May be called again. Reads under way in other threads are waited for."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._pool is not None:
            self._pool.shutdown()
        for handle in (*self._retired, self._handle):
            handle.close()

    def __enter__(self) -> "Ranges":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Raw(io.RawIOBase):
    """Ranges as Python's files are."""

    def __init__(self, ranges: Ranges) -> None:
        super().__init__()
        self._ranges, self._at = ranges, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._ranges.file.size}[whence]
        if at < 0:
            raise ValueError(f"{shown(self._ranges.file.uri)}: byte {at} is before its first")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._ranges.file.size

    def read(self, size: Optional[int] = -1) -> bytes:
        left = max(0, self._ranges.file.size - self._at)
        count = left if size is None or size < 0 else min(size, left)
        data = self._ranges.read_at(self._at, count) if count else b""
        self._at += count
        return data

    def readall(self) -> bytes:
        return self.read(-1)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[:len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._ranges.close()
        super().close()


def open_arrow(file: File, *, storage_options: Options = None) -> "pa.NativeFile":
    """The file for pyarrow's readers, to be closed. Reads are those of `Ranges`, one at a time. Read Parquet with
    pre_buffer=True: pyarrow then asks for few large ranges, not for many small ones.

    Raises ImportError without pyarrow, and as `Ranges` does.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"{shown(file.uri)}: reading it needs pyarrow: pip install pyarrow. What was found: {error}") from error
    ranges = Ranges(file, storage_options=storage_options)
    store, name = _locate(file.uri, storage_options)
    if isinstance(store, _Local):
        # Not mapped: a file that is cut while it is mapped ends the process.
        try:
            native = pa.OSFile(name, "r")
            ranges.check()  # it is still the one that was checked before it was opened by name
        finally:
            ranges.close()
        return native
    return pa.PythonFile(_Raw(ranges), mode="r")


@contextlib.contextmanager
def open_output(uri: Path, *, storage_options: Options = None) -> Iterator[IO[bytes]]:
    """A binary file to write to, which can seek. It appears under its name whole, at the end of the block; after an exception in
    the block or a failed write, whatever was there before is there still.

    Local: written beside it, flushed to the disk (fsync), renamed. Stores: written to a temporary file of this host ($TMPDIR),
    then uploaded, since pyarrow's uploads cannot be called off: closing one, even after an exception, completes it.

    Raises FileNotFoundError where the folder is missing, ValueError where it cannot be written, OSError for what the store says.
    """
    text = os.fspath(uri)
    store, name = _locate(text, storage_options)
    if not name or name.endswith("/"):
        raise ValueError(f"{shown(text)}: expected the name of a file to write, not of a folder")
    if isinstance(store, _Local):
        with _local_output(name) as file:
            yield file
        return
    if isinstance(store, _Http):
        store.put(name, io.BytesIO(), 0)  # refuses
    with tempfile.TemporaryFile() as spool:
        yield spool
        if spool.closed:
            raise ValueError(f"{shown(text)}: the file was closed inside of the block; leave that to the block's end")
        size = spool.seek(0, os.SEEK_END)

        def step() -> None:
            spool.seek(0)
            store.put(name, spool, size)

        persist(step, f"{shown(text)}: to write {size} bytes", Retry())


@contextlib.contextmanager
def _local_output(name: str) -> Iterator[IO[bytes]]:
    goal = os.path.realpath(name)  # a link stays one
    folder = os.path.dirname(goal)
    if os.path.isdir(goal):
        raise IsADirectoryError(f"{name}: a folder; expected the name of a file to write")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name}: there is no folder {folder}; make it first")
    unfinished = _unfinished(goal)
    fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(fd, "w+b") as file:
            yield file
            if file.closed:
                raise ValueError(f"{name}: the file was closed inside of the block; leave that to the block's end")
            file.flush()
            os.fsync(file.fileno())
        os.rename(unfinished, goal)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_fd)  # the name, too, is on the disk
    finally:
        os.close(folder_fd)
