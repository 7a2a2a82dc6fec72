"""Files in the file systems of this host."""
import os
import stat
from typing import List, Optional, Tuple

from warren.data._files.names import is_hidden, join
from warren.data._files.retry import Changed
from warren.data._files.stores.interface import Entry, Handle, Store


def _entry(name: str, status: os.stat_result) -> Entry:
    # All links to a file have the same inode. Size and time are included because some file systems make up inode numbers.
    identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return Entry(name, status.st_size, f"{status.st_mtime_ns} ns", stat.S_ISDIR(status.st_mode), identity)


class _LocalHandle(Handle):
    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # O_NONBLOCK: opening a FIFO would otherwise wait for a writer
        status = os.fstat(self._fd)
        super().__init__(_entry(path, status), "")
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise Changed(f"{path}: it is not a regular file")

    def read(self, offset: int, size: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        # fstat is cheap compared to the read, and shows whether the file has changed since it was opened.
        _, self.size, self.tag, *_ = _entry("", os.fstat(self._fd))
        return data

    def close(self) -> None:
        os.close(self._fd)


class Local(Store):
    """Local files; names are paths. `_files.output` writes them without this class."""
    writes = False

    def __init__(self) -> None:
        super().__init__("", "")

    def uri(self, name: str) -> str:
        return name

    def info(self, name: str) -> Optional[Entry]:
        try:
            status = os.stat(name or ".")
        except (FileNotFoundError, NotADirectoryError):
            return None
        return self._entry(name, status)

    @staticmethod
    def _entry(name: str, status: os.stat_result) -> Entry:
        if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
            raise Changed(f"{name}: it is not a regular file, and cannot be read by byte ranges")
        return _entry(name, status)

    def entries(self, folder: str) -> List[Entry]:
        with os.scandir(folder or ".") as listing:
            return [self._entry(join(folder, one.name), self._status(one)) for one in listing
                    if one.is_file() or one.is_dir() or (one.is_symlink() and not is_hidden(one.name))]

    @staticmethod
    def _status(one: "os.DirEntry[str]") -> os.stat_result:
        try:
            return one.stat()
        except FileNotFoundError:  # as "missing", it would seem to be the folder
            raise Changed(f"{one.path}: it is a symbolic link to a file that does not exist, or was removed while the folder was "
                          "listed") from None

    def walk(self, folder: str) -> List[Entry]:
        found: List[Entry] = []
        waiting: List[Tuple[str, Tuple[Tuple[int, int], ...]]] = [(folder, ())]
        while waiting:
            name, above = waiting.pop()
            status = os.stat(name or ".")
            here = (status.st_dev, status.st_ino)
            if here in above:
                raise Changed(f"{name}: a symbolic link to a folder that contains it, which would never end")
            for entry in self.entries(name):
                if not is_hidden(os.path.basename(entry.name)):
                    if entry.is_folder:
                        waiting.append((entry.name, above + (here,)))
                    else:
                        found.append(entry)
        return found

    def open(self, name: str) -> Handle:
        return _LocalHandle(name)

    def remove(self, name: str) -> None:
        os.unlink(name)
