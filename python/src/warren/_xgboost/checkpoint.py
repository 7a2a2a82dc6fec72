"""The checkpoint of XGBoost training: a file with the model so far and a description of the training run to which it belongs."""
import errno
import json
import os
import pathlib
import posixpath
import socket
import time
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

import xgboost as xgb

from warren._engine import sealed as _sealed
from warren._rounds.sinks import say
from warren._system import locks as _locks
from warren._xgboost import digest as _digest
from warren._xgboost.same_model.alone import alone
from warren.data import _files
from warren.data._peers import Peers, together

#: The attributes of a saved model that contain the description, as JSON, and the other state needed to resume.
_RUN, _MORE = "warren_run", "warren_state"
#: The time to wait for an earlier attempt of the same job, which is being stopped, to release the file.
_PATIENCE_S = 60.0


def _job() -> str:
    uri, port = os.environ.get("DMLC_TRACKER_URI"), os.environ.get("DMLC_TRACKER_PORT")
    return f"a worker of the job of the tracker at {uri}:{port}" if uri else "in no job"


def difference(content: bytes, run: Dict[str, Any]) -> str:
    """Describes how the training run of a checkpoint with this content differs from `run`; empty if it does not, or if `content` is not a
    checkpoint."""
    try:
        return _digest.difference(_opened(content)[1], run)
    except (xgb.core.XGBoostError, ValueError):
        return ""


def _opened(content: bytes) -> Tuple["xgb.Booster", Any]:
    """Returns the model, and the description of its training run. Raises XGBoostError or ValueError for a file that is not a checkpoint."""
    # XGBoost may read beyond the end of a truncated model.
    if not content.rstrip().endswith(b"}"):
        raise ValueError
    model = xgb.Booster(model_file=bytearray(content))
    return model, json.loads(model.attr(_RUN) or "")


class Saved(NamedTuple):
    """The contents of a checkpoint."""

    model: Any  #: a Booster
    rounds: int  #: the number of rounds of the model
    more: Any  #: the `more` argument of `save`


class _Found(NamedTuple):
    content: bytes
    rounds: int
    why: str  #: how its training run differs from the one that begins; empty if it does not


class Checkpoint:
    """A file that rank 0 writes, for one training run at a time: from __enter__ to __exit__ it is protected by a lock on `.NAME.lock` in
    the same folder, which the kernel releases when the process ends. Object stores do not support locks: there, the last writer wins.
    __enter__ and `load` are collective calls; only rank 0 calls `save` and `remove`."""

    def __init__(self, path: Any, peers: Peers, *, storage_options: Optional[Mapping[str, Any]] = None, is_everywhere: bool = False) -> None:
        """`is_everywhere`: whether all ranks read the file, because another rank may have saved it on its own host's disk. Raises
        ValueError for a name that does not end in .json or .ubj."""
        self._shown, self._peers, self._options = _files.in_full(os.fspath(path)), peers, storage_options
        place = _files.on_disk(self._shown)
        self._is_in_store = place is None
        # Another path to the same file, through a symbolic link, is the same checkpoint.
        self._file = pathlib.Path(os.path.realpath(place or self._shown))
        self._uri = self._shown if self._is_in_store else str(self._file)
        self._form = posixpath.splitext(self._uri.partition("?")[0] if self._is_in_store else self._uri)[1]
        if self._form not in (".json", ".ubj"):
            raise ValueError(f"{self._shown}: expected a name that ends in .json or .ubj")
        self._reads = peers.rank == 0 or is_everywhere and not self._is_in_store
        self._run: Dict[str, Any] = {}
        self._lock: Optional[_locks.Lock] = None
        self._saved: Optional[int] = None  # the number of rounds of the saved model
        self._fails = False
        self._next_attempt = 0.0  # the time before which `save` does nothing, after a failed attempt

    def __enter__(self) -> "Checkpoint":
        """Raises RuntimeError on all ranks if another training run uses the file, and OSError if its folder is not writable."""
        together(self._peers, lambda: self._take() if self._peers.rank == 0 else None)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._lock is not None:
            self._lock.release()

    def _take(self) -> None:
        if self._is_in_store:
            return
        if not self._file.parent.is_dir():
            raise FileNotFoundError(f"{self._shown}: there is no folder {self._file.parent}; create it first")
        process = f"host {socket.gethostname()}, pid {os.getpid()}"
        owner = f"{process}, {_job()}, since {time.strftime('%Y-%m-%d %H:%M:%S %z')}"
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self._lock = _locks.Lock(str(self._file.with_name(f".{self._file.name}.lock")), owner)
                break
            except _locks.InUse as other:
                attempt_before = self._is_of_this_job(other.owner) and process not in other.owner
                if not attempt_before or time.monotonic() > until:
                    raise RuntimeError(f"{self._shown}: another training is using this checkpoint ({other.owner}): give each training its "
                                       "own path, or start this one when the other has ended") from None
                time.sleep(0.2)
            except OSError as error:
                raise type(error)(f"{self._shown}: the checkpoint's folder {self._file.parent} is not writable on rank 0: "
                                  f"{error.strerror}; give another folder") from error
        if not self._lock.is_locked:
            say(f"{self._shown}: its file system has no locks; make sure that no other training uses this checkpoint at the same time")
        elif self._lock.before and f"host {socket.gethostname()}," not in self._lock.before and not self._is_of_this_job(self._lock.before):
            say(f"{self._shown}: a training on another host has not released this checkpoint ({self._lock.before}); if it is still "
                 "running, stop one of the two: on some file systems, locks do not reach other hosts")

    @staticmethod
    def _is_of_this_job(owner: str) -> bool:
        """Whether the owner of a lock is or was a worker of this process's job."""
        return f", {_job()}," in owner and _job() != "in no job"

    def load(self, run: Dict[str, Any]) -> Optional[Saved]:
        """Returns the content of the file if it belongs to this `run` (see warren._xgboost.digest.of_training; rank 0's run counts), else
        None. Rank 0 prints where training resumes, or how the two training runs differ. Raises ValueError if the file is not a checkpoint."""
        self._run = json.loads(self._peers.broadcast(json.dumps(run), 0))
        found = together(self._peers, self._look)
        told = self._peers.allgather(None if found is None else (found.rounds, found.why))
        same = [rank for rank, one in enumerate(told) if one is not None and not one[1]]
        root = max(same, key=lambda rank: int(told[rank][0])) if same else 0
        if told[root] is None:
            return None
        rounds, why = told[root]
        if self._peers.rank == 0:
            say(f"{self._shown}: this checkpoint of {rounds} rounds is ignored, and will be replaced when the next one is saved: "
                 f"{why}" if why else
                 f"going on from round {rounds} of {self._shown}")
        if why:
            return None
        self._saved = rounds
        # All ranks load the model from the same bytes, because querying a model may be a collective call.
        model, _ = self._opened(self._peers.broadcast(None if found is None else found.content, root))
        more = model.attr(_MORE)
        model.set_attr(**{_RUN: None, _MORE: None})
        return Saved(model, rounds, None if more is None else _sealed.from_text(more))

    def _look(self) -> Optional["_Found"]:
        """Returns the checkpoint that this rank has read; None if there is no file, or if this rank does not read it."""
        content = _files.read_whole(self._uri, storage_options=self._options) if self._reads else None
        if not content:
            return None
        model, of_run = self._opened(content)
        return _Found(content, int(alone(model.num_boosted_rounds)), _digest.difference(of_run, self._run))

    def _opened(self, content: bytes) -> Tuple["xgb.Booster", Any]:
        try:
            return _opened(content)
        except (xgb.core.XGBoostError, ValueError):
            raise ValueError(f"{self._shown} exists and is not a checkpoint, and would be overwritten: choose another path, or remove "
                             "it") from None

    def save(self, model: "xgb.Booster", more: Any = None) -> None:
        """Replaces the file atomically; `more` is plain data for `Saved.more`. An error (such as a full disk) is reported once, but does not
        stop the training; the file then stays unchanged. Failed attempts, for which the other workers wait, take at most a tenth of the
        time."""
        begin = time.monotonic()
        if begin < self._next_attempt:
            return
        rounds = model.num_boosted_rounds()
        model.set_attr(**{_RUN: json.dumps(self._run), **({} if more is None else {_MORE: _sealed.to_text(more)})})
        # save_model is not used: it does not notice a full disk when it closes the file.
        content = bytes(model.save_raw(raw_format=self._form[1:]))
        model.set_attr(**{_RUN: None, _MORE: None})
        try:
            with _files.open_output(self._uri, storage_options=self._options) as file:
                file.write(content)
                file.seek(0)
                if file.read() != content:
                    raise OSError(errno.EIO, "the bytes on the disk differ from those written", self._uri)
        except OSError as error:
            if not self._fails:
                kept = "there is no checkpoint" if self._saved is None else f"the checkpoint of round {self._saved} is kept"
                say(f"the checkpoint after round {rounds} could not be saved: {error}; {kept}, training continues, and saving is retried "
                     "after later rounds")
            self._fails, end = True, time.monotonic()
            self._next_attempt = end + 9 * (end - begin)
            return
        if self._fails:
            say(f"{self._shown}: checkpoints can be saved again, from round {rounds} on")
        self._saved, self._fails = rounds, False

    def remove(self) -> None:
        """Removes the file; called when training is done."""
        _files.remove(self._uri, storage_options=self._options)
