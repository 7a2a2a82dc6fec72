"""The checkpoint of an XGBoost training: the model so far in a file, with a description of the training that it belongs to."""
import errno
import json
import os
import pathlib
import socket
import sys
import time
from typing import Any, Dict, Optional

import numpy as np
import xgboost as xgb

from warren._system import locks as _locks
from warren._xgboost import digest as _digest
from warren.data import _files
from warren.data._peers import Peers, together

#: The attribute of a saved model that contains the description, as JSON.
_RUN = "warren_run"
#: How long to wait until an earlier attempt of the same job, which is being stopped, releases the file.
_PATIENCE_S = 60.0


def _say(words: str) -> None:
    print(f"warren: {words}", file=sys.stderr, flush=True)


def from_root(peers: Peers, found: bytes) -> bytes:
    """Returns rank 0's bytes on all ranks."""
    if peers.world == 1:
        return found
    size = int(peers.greatest(np.array([len(found) if peers.rank == 0 else 0], np.uint64))[0])
    array = np.frombuffer(found, np.uint8) if peers.rank == 0 else np.empty(size, np.uint8)
    peers.broadcast_bytes(array, 0)
    return array.tobytes()


def _job() -> str:
    uri, port = os.environ.get("DMLC_TRACKER_URI"), os.environ.get("DMLC_TRACKER_PORT")
    return f"a worker of the job of the tracker at {uri}:{port}" if uri else "in no job"


class Checkpoint:
    """A file that rank 0 writes, for one training at a time: from __enter__ to __exit__ it is protected by a lock on `.NAME.lock` in the
    same folder, which the kernel releases when the process ends. All ranks make all calls except `save` and `remove`, which only rank 0
    makes."""

    def __init__(self, path: Any, peers: Peers) -> None:
        """Raises ValueError for a name that does not end in .json or .ubj."""
        # Another name of the same file, through a symbolic link, is the same checkpoint.
        self._file, self._shown, self._peers = pathlib.Path(os.path.realpath(path)), os.fspath(path), peers
        if self._file.suffix not in (".json", ".ubj"):
            raise ValueError(f"{self._shown}: expected a name that ends in .json or .ubj")
        self._run: Dict[str, Any] = {}
        self._lock: Optional[_locks.Lock] = None
        self._saved: Optional[int] = None  # the number of rounds in the file
        self._fails = False

    def __enter__(self) -> "Checkpoint":
        """Raises RuntimeError on all ranks if another training uses the file, and OSError if its folder is not writable."""
        together(self._peers, lambda: self._take() if self._peers.rank == 0 else None)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._lock is not None:
            self._lock.release()

    def _take(self) -> None:
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
                attempt_before = f", {_job()}," in other.owner and _job() != "in no job" and process not in other.owner
                if not attempt_before or time.monotonic() > until:
                    raise RuntimeError(f"{self._shown}: another training is using this checkpoint ({other.owner}): give each training its "
                                       "own path, or start this one when the other has ended") from None
                time.sleep(0.2)
        if not self._lock.is_locked:
            _say(f"{self._shown}: its file system has no locks; make sure that no other training uses this checkpoint at the same time")
        elif self._lock.before and f"host {socket.gethostname()}," not in self._lock.before:
            _say(f"{self._shown}: a training on another host has not released this checkpoint ({self._lock.before}); if it is still "
                 "running, stop one of the two: on some file systems, locks do not reach other hosts")

    def load(self, run: Dict[str, Any]) -> Optional["xgb.Booster"]:
        """Returns the model in the file if it belongs to this `run` (see warren._xgboost.digest.of_training; rank 0's run counts), else
        None. Rank 0 prints where the training resumes, or how the two trainings differ. Raises ValueError if the file is not a
        checkpoint."""
        # All ranks load the same bytes, rank 0's, because querying a model may be a collective call.
        self._run = json.loads(from_root(self._peers, json.dumps(run).encode()))
        found = from_root(self._peers, together(self._peers, self._read))
        if not found:
            return None
        model, of_run = self._opened(found)
        rounds = model.num_boosted_rounds()
        why = _digest.difference(of_run, self._run)
        if self._peers.rank == 0:
            _say(f"{self._shown}: this checkpoint of {rounds} rounds is ignored, and will be replaced when the next one is saved: "
                 f"{why}" if why else
                 f"going on from round {rounds} of {self._shown}")
        if why:
            return None
        self._saved = rounds
        model.set_attr(**{_RUN: None})
        return model

    def _read(self) -> bytes:
        return self._file.read_bytes() if self._peers.rank == 0 and self._file.exists() else b""

    def _opened(self, found: bytes) -> Any:
        try:
            # XGBoost may read beyond the end of a truncated model.
            if not found.rstrip().endswith(b"}"):
                raise ValueError
            model = xgb.Booster(model_file=bytearray(found))
            return model, json.loads(model.attr(_RUN) or "")
        except (xgb.core.XGBoostError, ValueError):
            raise ValueError(f"{self._shown} exists and is not a checkpoint of train_with_checkpoints, which would overwrite it: choose "
                             "another path, or remove it") from None

    def save(self, model: "xgb.Booster") -> None:
        """Replaces the file atomically. An error (such as a full disk) is reported once, but does not stop the training; the file then
        stays unchanged."""
        rounds = model.num_boosted_rounds()
        model.set_attr(**{_RUN: json.dumps(self._run)})
        # Not done by save_model, which does not notice a full disk when it closes the file.
        content = bytes(model.save_raw(raw_format=self._file.suffix[1:]))
        model.set_attr(**{_RUN: None})
        try:
            with _files.open_output(self._file) as file:
                file.write(content)
                file.seek(0)
                if file.read() != content:
                    raise OSError(errno.EIO, "the bytes on the disk differ from those written", str(self._file))
        except OSError as error:
            if not self._fails:
                kept = "there is no checkpoint" if self._saved is None else f"the checkpoint of round {self._saved} is kept"
                _say(f"the checkpoint after round {rounds} could not be saved: {error}; {kept}, training continues, and saving is retried "
                     "after later rounds")
            self._fails = True
            return
        if self._fails:
            _say(f"{self._shown}: checkpoints can be saved again, from round {rounds} on")
        self._saved, self._fails = rounds, False

    def remove(self) -> None:
        """Removes the file, because training is done."""
        self._file.unlink(missing_ok=True)
