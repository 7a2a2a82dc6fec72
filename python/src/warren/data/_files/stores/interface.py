"""The operations of a store."""
import os
import secrets
from typing import IO, List, NamedTuple, Optional, Tuple

CONNECT_TIMEOUT_S = 10.0  # connecting takes one or two round trips; if it takes longer than this, the host is down
# A store that sends nothing for this long is considered hung. Object stores start to respond within about a second, and under load within a
# few seconds.
READ_TIMEOUT_S = 30.0
# The maximum size of a request to a store. Requests are not larger, because pyarrow and fsspec lose the data received if a request fails
# halfway; they are not smaller, because each costs a round trip.
PIECE_BYTES = 8 << 20
_WHOLE_AT_CLOSE = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl")  # stores in which incomplete objects are never visible


class Entry(NamedTuple):
    """A file or folder."""
    name: str
    size: int
    tag: str  # like File.tag
    is_folder: bool
    identity: Tuple[int, ...] = ()  # the same for all names of a file, and different for different files; () if each file has one name


class Handle:
    """An opened file. Thread-safe."""
    etag = ""  # an ETag that listings do not contain, in addition to the tag

    def __init__(self, entry: Optional[Entry], missing: str) -> None:
        """Raises FileNotFoundError with the message `missing` if `entry` is None."""
        if entry is None:
            raise FileNotFoundError(missing)
        self.size, self.tag = entry.size, entry.tag

    def read(self, offset: int, size: int) -> bytes:
        """Returns `size` bytes from `offset` on, with one request; fewer only if the store sends fewer. May raise Cut, which contains the
        bytes received so far."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the file. Called once."""


class Store:
    """A place where names refer to files. The caller retries failed calls. Thread-safe."""
    lists = True  # whether the store can list names, with `entries` and `walk`
    writes = True  # whether `put` may be called

    def __init__(self, scheme: str, authority: str) -> None:
        self.scheme = scheme
        self.head = f"{scheme}://{authority}/" if authority else f"{scheme}://"

    def uri(self, name: str) -> str:
        """The name as a user would write it."""
        return self.head + name

    def info(self, name: str) -> Optional[Entry]:
        """The file or folder of that name, or None if there is neither."""
        raise NotImplementedError

    def entries(self, folder: str) -> List[Entry]:
        """The files and folders directly in a folder."""
        raise NotImplementedError

    def walk(self, folder: str) -> List[Entry]:
        """All files below a folder; may omit hidden ones."""
        raise NotImplementedError

    def open(self, name: str) -> Handle:
        """Opens a file for reading."""
        raise NotImplementedError

    def put(self, name: str, source: IO[bytes], size: int) -> None:
        """Creates or replaces a file, which appears with all bytes of `source` or not at all. Raises ConnectionError if the store has not
        received all `size` bytes."""
        goal = name if self.scheme in _WHOLE_AT_CLOSE else unfinished_name(name)
        self.upload(goal, source)
        written = self.info(goal)
        if written is None or written.size != size:
            raise ConnectionError(f"{written.size if written else None} of {size} bytes have arrived")
        if goal != name:
            self.move(goal, name)

    def upload(self, name: str, source: IO[bytes]) -> None:
        """For `put`: writes a file from the start; it may be visible while incomplete."""
        raise NotImplementedError

    def remove(self, name: str) -> None:
        """Removes a file. May raise FileNotFoundError if there is none."""
        raise NotImplementedError

    def move(self, name: str, goal: str) -> None:
        """For `put`: renames a file, replacing an existing one."""
        raise NotImplementedError


def unfinished_name(path: str) -> str:
    """A temporary name in the same folder for a file being written, which `find` ignores."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.{os.getpid()}.{secrets.token_hex(4)}.unfinished"
