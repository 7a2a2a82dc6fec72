"""pyarrow's file systems: s3://, gs://, hdfs://, abfs://."""
import datetime
import os
import shutil
import urllib.parse
from typing import IO, Any, List, Optional, Tuple

from warren.data._files.names import SCHEME, shown
from warren.data._files.retry import words
from warren.data._files.stores import interface
from warren.data._files.stores.interface import Entry, Handle, Store

_S3_OPTIONS = ("endpoint_override", "scheme", "region")


def _seconds_tag(seconds: float) -> str:
    # S3's listings contain fractions of a second, but its responses about single objects do not, so whole seconds are compared.
    return f"{int(seconds)} s"


class _ArrowHandle(Handle):
    def __init__(self, store: "Arrow", name: str) -> None:
        self._file = store.fs.open_input_file(store.path(name))
        told = {key.lower(): value.decode(errors="replace") for key, value in (self._file.metadata() or {}).items()}
        self.etag = told.get("etag", "")
        try:  # the metadata of the opened file are used, which saves a second request
            modified = datetime.datetime.strptime(told.get("last-modified", ""), "%Y-%m-%dT%H:%M:%SZ")
            tag = _seconds_tag(modified.replace(tzinfo=datetime.timezone.utc).timestamp())
        except ValueError:
            entry = store.info(name)
            tag = entry.tag if entry else ""
        super().__init__(Entry(name, int(self._file.size()), tag, False), "")

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._file.read_at(size, offset))

    def close(self) -> None:
        self._file.close()


class Arrow(Store):
    """One of pyarrow's file systems."""

    def __init__(self, scheme: str, authority: str, options: str) -> None:
        super().__init__(scheme, authority)
        try:
            import pyarrow.fs as pafs
        except ImportError as error:
            raise ImportError(f"{scheme}:// needs pyarrow: pip install pyarrow (or give storage_options, for fsspec). "
                              f"Importing it failed: {error}") from error
        self._pafs, self._options = pafs, options
        self.head = f"{scheme}://{authority}/"
        try:
            if scheme == "s3":
                self.fs, base = self._s3(authority, options)
            else:
                if scheme in ("gs", "gcs") and "retry_limit_seconds" not in options:
                    # By default, pyarrow retries for 15 minutes.
                    options += f"{'&' if options else '?'}retry_limit_seconds={interface.READ_TIMEOUT_S:.0f}"
                self.fs, base = pafs.FileSystem.from_uri(self.head + options)
        except (OSError, ValueError, NotImplementedError) as error:
            if "libhdfs" in str(error) or "HADOOP" in str(error):
                raise ImportError(f"{shown(self.head)}: hdfs:// needs Hadoop's libhdfs: install Hadoop and Java, and set "
                                  f"JAVA_HOME, HADOOP_HOME, ARROW_LIBHDFS_DIR and CLASSPATH. pyarrow says: "
                                  f"{words(error)}") from error
            raise ValueError(f"{shown(self.head + options)}: pyarrow cannot open this store: {words(error)}") from error
        self._base = base.rstrip("/") + "/"

    def _s3(self, authority: str, text: str) -> Tuple[Any, str]:
        options = dict(urllib.parse.parse_qsl(text[1:], keep_blank_values=True))
        wrong = sorted(set(options).difference(_S3_OPTIONS))
        if wrong:
            raise ValueError(f"found the option {wrong[0]}, expected {', '.join(_S3_OPTIONS)}; for others give storage_options")

        def told(option: str, *variables: str) -> str:
            # pyarrow reads the variables for the endpoint only if it is given a URI, and a URI cannot set timeouts.
            return next(filter(None, (options.pop(option, ""), *(os.environ.get(one, "") for one in variables))), "")

        endpoint = told("endpoint_override", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        found = SCHEME.match(endpoint)
        if found:
            options.setdefault("scheme", found.group(1).lower())
            endpoint = endpoint[found.end():]
        region = told("region", "AWS_REGION", "AWS_DEFAULT_REGION")
        if region or endpoint:
            options["region"] = region or "us-east-1"  # without a region, pyarrow would send requests to a cloud's metadata service
        user, at, bucket = authority.rpartition("@")
        if at:
            key, _, secret = user.partition(":")
            options.update(access_key=urllib.parse.unquote(key), secret_key=urllib.parse.unquote(secret))
        if endpoint:
            options["endpoint_override"] = endpoint.rstrip("/")
            # Amazon's client would send checksums in a way that some other stores reject (rclone with status 411). The client reads the
            # variable when it is created; there is no argument for it.
            os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
        fs = self._pafs.S3FileSystem(connect_timeout=interface.CONNECT_TIMEOUT_S, request_timeout=interface.READ_TIMEOUT_S,
                                     # `persist` retries instead, after a check whether the file has changed.
                                     retry_strategy=self._pafs.AwsStandardS3RetryStrategy(max_attempts=1), **options)
        return fs, bucket

    def path(self, name: str) -> str:
        """pyarrow's path for a name."""
        return (self._base + name).rstrip("/") or "/"

    def uri(self, name: str) -> str:
        return self.head + name + self._options

    def _entry(self, info: Any) -> Entry:
        name = info.path[len(self._base):] if info.path.startswith(self._base) else ""
        if info.type == self._pafs.FileType.Directory:
            return Entry(name, 0, "", True)
        # pyarrow reports 0 for a time that could not be parsed: Amazon's client expects milliseconds with three digits in listings, and rclone
        # writes .43 for .430.
        tag = "" if info.mtime_ns is None or info.mtime_ns <= 0 else _seconds_tag(info.mtime_ns // 10**9)
        return Entry(name, int(info.size), tag, False)

    def info(self, name: str) -> Optional[Entry]:
        info = self.fs.get_file_info(self.path(name))
        if info.type == self._pafs.FileType.NotFound:
            if name and self.scheme == "s3" and self.info("") is None:
                raise FileNotFoundError(f"there is no bucket '{self._base.rstrip('/')}'")
            return None
        return self._entry(info)._replace(name=name)

    def entries(self, folder: str) -> List[Entry]:
        return [self._entry(info) for info in self.fs.get_file_info(self._pafs.FileSelector(self.path(folder)))]

    def walk(self, folder: str) -> List[Entry]:
        every = self.fs.get_file_info(self._pafs.FileSelector(self.path(folder), recursive=True))
        return [self._entry(info) for info in every if info.type == self._pafs.FileType.File]

    def open(self, name: str) -> Handle:
        return _ArrowHandle(self, name)

    def upload(self, name: str, source: IO[bytes]) -> None:
        with self.fs.open_output_stream(self.path(name)) as out:
            shutil.copyfileobj(source, out, interface.PIECE_BYTES)

    def remove(self, name: str) -> None:
        self.fs.delete_file(self.path(name))

    def move(self, name: str, goal: str) -> None:
        self.fs.move(self.path(name), self.path(goal))
