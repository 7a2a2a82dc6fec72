"""The checkpoint of an elastic training run: its newest state in a file, in case all workers are lost at once."""
import contextlib
import hashlib
import json
import os
import posixpath
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Union

from warren._elastic.callbacks import State
from warren._engine import sealed as _sealed
from warren._rounds.sinks import say
from warren._xgboost import checkpoint as _checkpoint
from warren._xgboost.checkpoint import Checkpoint
from warren.data import _files
from warren.data._peers import Peers, together

_SUFFIX = ".ubj"


class Checkpoints(NamedTuple):
    """See warren.xgboost.Checkpoints."""

    folder: Union[str, "os.PathLike[str]"]
    every: int = 1
    storage_options: Optional[Mapping[str, Any]] = None


class More(NamedTuple):
    """The contents of a checkpoint other than the model."""

    rounds: int  #: the number of rounds made so far
    history: Dict[str, Dict[str, Any]]  #: the values of each evaluation set and metric
    state: State  #: the states of the callbacks
    random: str  #: the state of the model's random number generator; empty if no numbers are drawn, or if XGBoost does not expose it


def checked(given: Any) -> Optional[Checkpoints]:
    """Returns the caller's `checkpoint` argument as Checkpoints; a folder alone is short for Checkpoints(folder). Raises TypeError or
    ValueError for invalid arguments."""
    if given is None or isinstance(given, Checkpoints):
        found = given
    elif isinstance(given, (str, os.PathLike)):
        found = Checkpoints(given)
    else:
        raise TypeError(f"checkpoint is {given!r}, expected a folder or a warren.xgboost.Checkpoints")
    if found is not None and (isinstance(found.every, bool) or not isinstance(found.every, int) or found.every < 1):
        raise ValueError(f"checkpoint: every is {found.every!r}, expected a number of rounds")
    if found is not None and not os.fspath(found.folder):
        raise ValueError("checkpoint is empty, expected a folder")
    return found if found is None else found._replace(folder=_files.in_full(os.fspath(found.folder)))


@contextlib.contextmanager
def opened(where: Optional[Checkpoints], run: Optional[Dict[str, Any]], peers: Peers) -> Iterator[Optional[Checkpoint]]:
    """Yields the checkpoint of the training run that `run` describes (see warren._xgboost.digest.of_training); None if `where` or `run` is
    None. Each training run has its own file in the folder, named by a hash of its description. A collective call. Creates a missing folder.
    Raises OSError if the folder is not writable, and RuntimeError if another process is using the file."""
    if where is None or run is None:
        yield None
        return
    folder = os.fspath(where.folder).rstrip("/") or "/"
    path = f"{folder}/{hashlib.blake2b(json.dumps(run, sort_keys=True).encode(), digest_size=8).hexdigest()}{_SUFFIX}"

    def make_folder() -> None:
        place = _files.on_disk(folder)
        if peers.rank == 0 and place is not None:
            try:
                os.makedirs(place, exist_ok=True)
            except OSError as error:
                raise type(error)(f"checkpoint={folder!r} is to be a folder, which rank 0 cannot create: {error.strerror}; give another "
                                  "folder") from error

    together(peers, make_folder)
    with Checkpoint(path, peers, storage_options=where.storage_options, is_everywhere=True) as found:
        yield found


def require_plain(state: State) -> None:
    """Raises TypeError if the state of the callbacks cannot be saved."""
    try:
        _sealed.to_text(state)
    except TypeError as error:
        raise TypeError(f"checkpoint: the state that an ElasticCallback has saved cannot be written to a file: {error}; expected numbers, "
                        "strings, bytes, NumPy arrays, and lists, tuples and dicts of them") from None


def tell_of_others(where: Checkpoints, run: Dict[str, Any]) -> None:
    """Prints a message if the folder, which has no checkpoint of `run`, has checkpoints of other training runs: the user may have expected
    this run to resume from one."""
    folder = os.fspath(where.folder)
    with contextlib.suppress(OSError):
        names = [file.uri for file in _files.find([folder], storage_options=where.storage_options) if file.uri.endswith(_SUFFIX)]
        if names:
            _tell_of(folder, names[-1], _files.read_whole(names[-1], storage_options=where.storage_options), run)


def _tell_of(folder: str, name: str, content: Optional[bytes], run: Dict[str, Any]) -> None:
    why = _checkpoint.difference(content, run) if content else ""
    say(f"{folder} has no checkpoint of this training, which starts from the beginning; {posixpath.basename(name)} there "
        f"{why[len('it '):] if why else 'cannot be read'}")

