"""The files of a data set for elastic training, and the rows of some of its shares."""
import contextlib
import dataclasses
import os
import re
import socket
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from warren._elastic.shares import Range
from warren._launch.membership import is_elastic, most_workers
from warren.data import _files, _load, _peers, _table
from warren.data._columnar import converter as _converter
from warren.data._columnar.source import Source
from warren.data._peers import Peers
from warren.data._table import Table

#: The number of shares of a data set per worker, for the job's maximum number of workers. With several shares, a lost worker's rows can be
#: distributed evenly.
_SHARES_PER_WORKER = 16
#: Matches the start of the options of a text data set; any other "?" is a wildcard (see warren.data._text).
_OPTIONS = re.compile(r"\?[a-z_]+=")


def number_of_shares() -> int:
    """The number of shares of each data set in this process's job."""
    return _SHARES_PER_WORKER * (most_workers() if is_elastic() else 1)


class Files:
    """The files of a data set with `count` shares."""

    def __init__(self, wanted: _load.Wanted, progress: bool, count: int) -> None:
        self._wanted, self._progress, self._count = wanted, progress, count
        self._source: Optional[Source] = None
        self._converter: Optional[_converter.Converter] = None

    def open_together(self, peers: Peers) -> None:
        """Opens the data set. A collective call, in which the workers agree on the categories unless the caller has given them. Raises the
        errors of warren.data.load, the same on all workers."""
        if not self._wanted.is_text:
            self._source = self._wanted.source(peers)
            self._converter = _converter.Converter(self._source, self._wanted.categories)

    def open_alone(self, categories: Mapping[str, Any]) -> None:
        """Opens the data set without the other workers, with the categories on which the workers have agreed."""
        if not self._wanted.is_text:
            self._source = self._wanted.source(_peers.of(0, self._count))
            self._converter = _converter.Converter(self._source, categories)

    def files(self) -> List[Tuple[str, int, int]]:
        """Returns the files' names, sizes and modification times (in ns; 0 for files that are not on a disk of this host)."""
        if self._source is not None:
            found = self._source.files
        else:
            uri = self._wanted.uri
            found = _files.find(_OPTIONS.split(uri.partition("#")[0], maxsplit=1)[0] if isinstance(uri, str) else uri,
                                storage_options=self._wanted.options.storage_options)
        return [(one.uri, one.size, _changed(one.uri)) for one in found]

    def open_unchanged(self, categories: Mapping[str, Any], files: Sequence[Any], host: str) -> None:
        """Opens the data set without the other workers, unless it is open. Raises ValueError if the files have changed since `files` was
        listed on `host`, since old and new rows would be mixed. On another host, modification times are not compared."""
        if self._converter is None:
            self.open_alone(categories)
        now = self.files()
        different = {name for name, _, _ in now} ^ {name for name, _, _ in files}
        if different:
            raise ValueError(f"{_files.shown(min(different))} was added or removed since the training began, and a worker was to read the "
                             "rows anew: start the job again")
        for (name, size, changed), (_, other_size, other_changed) in zip(now, files):
            if size != other_size or (host == socket.gethostname() and changed != other_changed):
                raise ValueError(f"{_files.shown(name)} has changed since the training began, and a worker was to read it anew: start the "
                                 "job again")

    @property
    def categories(self) -> Dict[str, Any]:
        """The values of categorical features."""
        return dict(self._converter.categories.values) if self._converter is not None else {}

    def tables(self, ranges: Sequence[Range], check: Callable[[], None] = lambda: None) -> List[Table]:
        """The rows of each range, read without the other workers. `check` is called often, and may raise an exception to end the reading."""
        if self._source is None:
            return [joined([self._text(share, check) for share in range(*one)]) for one in ranges]
        assert self._converter is not None
        found = []
        for one in ranges:
            self._source.slices = self._source.between(*one, self._count)
            self._converter.start()
            with contextlib.closing(_load.bar(self._source, self._progress)) as shown:
                found.append(_converter.filled(self._converter, _checking(shown, check)))
            self._converter.check_own_queries()
        return found

    def _text(self, share: int, check: Callable[[], None]) -> Table:
        check()
        return self._wanted.text(_peers.of(share, self._count))


def _checking(progress: Callable[[int, int], None], check: Callable[[], None]) -> Callable[[int, int], None]:
    """Returns a function that calls `check`, and then `progress` with its own arguments."""
    def call(rows: int, size: int) -> None:
        check()
        progress(rows, size)

    return call


def _changed(name: str) -> int:
    try:
        return os.stat(_files.on_disk(name) or name).st_mtime_ns
    except OSError:  # the file is in a store
        return 0


def joined(tables: Sequence[Table]) -> Table:
    """The rows of all tables. Each table's queries are numbered after those of the tables before it."""
    if len(tables) == 1:
        return tables[0]
    numbered, count = [], 0
    for table in tables:
        if table.qid is not None and len(table):
            count, table = count + int(table.qid[-1]) + 1, dataclasses.replace(table, qid=table.qid + count)
        numbered.append(table)
    return _table.concatenated(numbered)
