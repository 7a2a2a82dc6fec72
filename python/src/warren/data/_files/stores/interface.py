"""What a store can do."""
import os
import secrets
from typing import IO, List, NamedTuple, Optional, Tuple

CONNECT_TIMEOUT_S = 10.0  # a connection takes a round trip or two; more is a host that is down
# A store that sends nothing for so long is taken for hung. Object stores begin to answer within a second or so, and under load
# within some seconds.
READ_TIMEOUT_S = 30.0
# The size of one request. If a request fails half way, pyarrow and fsspec lose what had arrived, so requests are not larger;
# and not smaller, since each costs a round trip.
PIECE_BYTES = 8 << 20
_WHOLE_AT_CLOSE = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl")  # stores in which no half object is ever seen


class Entry(NamedTuple):
    """A file or folder."""
    name: str
    size: int
    tag: str  # as that of File
    is_folder: bool
    identity: Tuple[int, ...] = ()  # equal for all names of one file, different for different files; (): names tell files apart


class Handle:
    """A file opened. Thread safe."""
    etag = ""  # beside the tag, where listings do not tell it

    def __init__(self, entry: Optional[Entry], missing: str) -> None:
        """`missing`: what FileNotFoundError says where there is no entry."""
        if entry is None:
            raise FileNotFoundError(missing)
        self.size, self.tag = entry.size, entry.tag

    def read(self, offset: int, size: int) -> bytes:
        """One request, of at least a byte. Gives less only where the store did."""
        raise NotImplementedError

    def close(self) -> None:
        """Once."""


class Store:
    """Where names live. Each call is a request or a few, tried once. Thread safe."""
    lists = True  # whether it can say what there is: has `entries` and `walk`
    writes = True  # whether `put` can be called

    def __init__(self, scheme: str, authority: str) -> None:
        self.scheme = scheme
        self.head = f"{scheme}://{authority}/" if authority else f"{scheme}://"

    def uri(self, name: str) -> str:
        """What a user would write."""
        return self.head + name

    def info(self, name: str) -> Optional[Entry]:
        """The file or folder of that name, or None if there is neither."""
        raise NotImplementedError

    def entries(self, folder: str) -> List[Entry]:
        """Files and folders right in it."""
        raise NotImplementedError

    def walk(self, folder: str) -> List[Entry]:
        """All files below it; may leave hidden ones out."""
        raise NotImplementedError

    def open(self, name: str) -> Handle:
        """For reading."""
        raise NotImplementedError

    def put(self, name: str, source: IO[bytes], size: int) -> None:
        """Makes it a file with these bytes, whole or not at all."""
        goal = name if self.scheme in _WHOLE_AT_CLOSE else unfinished_name(name)
        self.upload(goal, source)
        written = self.info(goal)
        if written is None or written.size != size:
            raise ConnectionError(f"{written.size if written else None} of {size} bytes have arrived")
        if goal != name:
            self.move(goal, name)

    def upload(self, name: str, source: IO[bytes]) -> None:
        """For `put`: writes it from its first byte on; others may see it half."""
        raise NotImplementedError

    def move(self, name: str, goal: str) -> None:
        """For `put`: a file to another name, over what is there."""
        raise NotImplementedError


def unfinished_name(path: str) -> str:
    """A name beside it for what is being written, which `find` leaves out."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.{os.getpid()}.{secrets.token_hex(4)}.unfinished"
