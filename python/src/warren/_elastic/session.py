"""This process in an elastic job: its generations, and the trainings that the job has ended."""
import contextlib
import re
import sys
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple, Type

import numpy as np

from warren._launch.membership import Generation, JobIsOver, Membership
from warren._launch.preemption import EndRequest
from warren.data._peers import Peers

#: How long a worker waits to hear from the tracker that another one is lost: after a failed collective call, and after another error.
_PATIENCE_S, _SHORT_PATIENCE_S = 5.0, 0.5
#: How an error of a collective call of Warren's engine begins.
_OF_ENGINE = re.compile(r"rank \d+: Warren\w+: ")
#: How the libraries and Warren's engine describe a connection between workers that broke, or a host that does not answer.
_OF_LINKS = re.compile(r"loop\.cc|channel|Encountered EOF|[Ss]ocket|Connection (reset|refused|timed out)|Broken pipe|closed the connection|"
                       "has ended|was lost|lost rank|gave up|has waited|(has|does) not answer|own communication failed")
#: A network that does not work is an error in the end.
_MOST_BROKEN_LINKS = 5


class Library(NamedTuple):
    """A library that trains in elastic jobs."""

    name: str  #: its name, with which messages of its errors may begin
    error: Type[Exception]
    join: Callable[[Generation], None]  #: joins the communicator of a generation
    leave: Callable[[bool], None]  #: leaves it; with True, because of a failure, without the other members

    @property
    def package(self) -> str:
        """The name of its Python package."""
        return self.error.__module__.partition(".")[0]

    @property
    def of_collectives(self) -> Tuple[Type[Exception], ...]:
        """What a collective call may raise when a worker is lost."""
        return self.error, RuntimeError, OSError


class Change(Exception):
    """All members of the generation leave it together: another worker waits, or one has been asked to end."""


class Session:
    """The membership of this process, which trains with `library`."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._end = EndRequest()
        self._end.may_wait = True
        self._broken_links = 0  # since the last round
        self._end.begin()
        self._membership = Membership(library.package)
        #: The results of the job's trainings that this process knows, each a tuple that the library's training has made.
        self.kept: List[Tuple[Any, ...]] = []
        #: How many of them this process has returned to its program.
        self.returned = 0
        self._left = 0  # how often its program has left the communicator
        self._stays = False  # whether this process did not leave it then, because the others had left it long before
        self._size_at_result = 0
        self._has_finished = False
        self._take_part()
        self._end.may_wait = False

    @property
    def library(self) -> str:
        """The name of the library that it trains with."""
        return self._library.name

    def enter_again(self, library: Library) -> None:
        """To be called when the program enters the communicator once more. XGBoost's may have other arguments then."""
        self._library = library
        self._end.begin()
        if self._stays:
            self._stays = False
            return
        self._end.may_wait, self._has_finished = True, False
        self._membership.come_again()
        self._take_part()
        self._end.may_wait = False

    def _take_part(self) -> None:
        """Joins the next generation. Ends the program if the job has no work left."""
        try:
            self._next_generation()
        except JobIsOver:
            self._has_finished = True
            sys.stderr.write("warren: the job's work was done before this worker could take part in it\n")
            raise SystemExit(0) from None

    def _next_generation(self) -> None:
        """Joins the next generation. Raises JobIsOver, or SystemExit if this process has been asked to end."""
        while True:
            generation = self._membership.next_generation(lambda: not self._end.is_there)
            if self._end.is_there:
                self._membership.leave()
                raise SystemExit(EndRequest.STATUS)
            try:
                self._library.join(generation)
                return self._membership.joined()
            except self._library.of_collectives as error:
                self._require_end(error)
                with contextlib.suppress(Exception):
                    self._library.leave(True)
                self._membership.come_again()

    def _require_end(self, error: BaseException) -> None:
        """Raises the error of a collective call, unless the reason is that the generation ends, or that a connection between workers
        broke."""
        of_call = isinstance(error, self._library.error) or isinstance(error, RuntimeError) and (
            str(error).startswith(self._library.name) or _OF_ENGINE.match(str(error)) is not None)
        if self._membership.is_known_to_end(_PATIENCE_S if of_call else _SHORT_PATIENCE_S):
            return
        self._broken_links += 1
        if not of_call or not _OF_LINKS.search(str(error)) or self._broken_links > _MOST_BROKEN_LINKS:
            raise error
        words = str(error).strip().splitlines()
        sys.stderr.write(f"warren: a connection between workers broke, so they meet again ({words[-1] if words else ''})\n")

    def at_boundary(self, peers: Peers, stops: bool) -> bool:
        """To be called by all members between two rounds. Returns whether one of them stops the training. Raises Change on all of them if
        one has heard that another worker waits, or has been asked to end."""
        wants = self._membership.wants_change() or self._end.is_there
        one_wants, one_stops = peers.greatest(np.array([wants, stops], np.uint64))
        if one_wants and not one_stops:
            raise Change
        return bool(one_stops)

    def has_progressed(self) -> None:
        """To be called at the end of a round."""
        self._broken_links = 0

    def _recovering(self, work: Callable[[], Any]) -> Any:
        """Returns the result of `work`, which is called again in the next generation after a loss or a change. Other errors are raised. If
        this process is asked to end, it does so at the next change."""
        self._end.may_wait = True
        while True:
            try:
                found = work()
                self._end.may_wait = False
                return found
            except Change:
                failed = False
            except self._library.of_collectives as error:
                self._require_end(error)
                failed = True
            with contextlib.suppress(Exception):
                self._library.leave(failed)
            if self._end.is_there and not failed:
                self._membership.leave()
                raise SystemExit(EndRequest.STATUS)
            self._membership.come_again()
            self._take_part()

    def trained(self, peers_of_job: Callable[[], Peers], run: Callable[[Peers], Tuple[Any, ...]], take: Callable[[Tuple[Any, ...]], None]
                ) -> Tuple[Any, ...]:
        """Returns the result of the program's next training: what `run` returns with the workers of a generation, or what others have had,
        which `take` is told."""
        def work() -> None:
            peers = peers_of_job()
            if self.behind(peers):
                take(self.kept[self.returned])
            else:
                self.kept.append(tuple(run(peers)))

        self._recovering(work)
        found = self.kept[self.returned]
        self.returned += 1
        self._size_at_result = self._membership.size
        return found

    def behind(self, peers: Peers, is_at_end: bool = False) -> bool:
        """To be called by all members before a training, and when they are about to leave the communicator. Returns true if the others have
        ended the training that this worker is to begin, and `kept` then has its result; or have left the communicator, and entered it
        again. Workers that are ahead wait for those that are behind."""
        ours = self._left, self.returned, is_at_end
        while True:
            told = [tuple(one) for one in peers.allgather(ours)]
            furthest = max(told)
            if min(told) == furthest:
                return False
            self.kept = [tuple(one) for one in peers.broadcast(self.kept, told.index(furthest), objects=True)]
            if self.returned < furthest[1] and not is_at_end or self._left < furthest[0] and is_at_end:
                return True
            if ours < furthest:
                raise ValueError(f"the other workers have left the communicator after {furthest[1]} trainings, and this one begins another, "
                                 "or leaves it before: all workers make the same trainings in the same order")

    def finish(self, peers_of_job: Callable[[], Peers]) -> bool:
        """To be called when the program leaves the communicator. Waits until all members have come so far. Returns whether this process is
        to leave it, too: it stays if the others have entered it again already. Raises RuntimeError if a worker was lost after the last
        training, and not replaced."""
        self._end.may_wait = True
        while not self._has_finished:
            try:
                self._stays = self.behind(peers_of_job(), is_at_end=True)
                if self._stays:
                    break
                self._has_finished = True
                if self._membership.size < self._size_at_result:
                    raise RuntimeError("a worker was lost after the training, and no other one has come: what its program did then, such as "
                                       "saving the model, may be missing")
                self._membership.done()
            except self._library.of_collectives as error:
                self._broken_links += 1
                if self._has_finished or self._broken_links > _MOST_BROKEN_LINKS:
                    raise
                # If a worker is lost now, another one may have seen all come so far.
                self._membership.is_known_to_end(_PATIENCE_S)
                with contextlib.suppress(Exception):
                    self._library.leave(True)
                self._membership.come_again()
                try:
                    self._next_generation()
                except JobIsOver:
                    self._has_finished = True
                except self._library.of_collectives:
                    raise error from None
        self._left += 1
        return not self._stays

    def abandon(self) -> None:
        """Leaves the communicator without the others: a library's threads could crash the process at its exit."""
        with contextlib.suppress(Exception):
            self._library.leave(True)

    def rest(self) -> None:
        """Gives the signals back to the program, which has left the communicator. The tracker learns from the end of the process that it
        does not come again."""
        self._end.close()


_current: Optional[Session] = None  # while the program is in the communicator
_resting: Optional[Session] = None  # when it has left it


def current(library: str) -> Optional[Session]:
    """The session of this process, if it has joined an elastic job. Raises RuntimeError if it trains there with another library."""
    if _current is not None:
        _require_one_library(_current, library)
    return _current


def _require_one_library(session: Session, library: str) -> None:
    """A worker that comes later would begin with the first library, while the others communicate by the second one."""
    if session.library != library:
        raise RuntimeError(f"an elastic job trains with one library: this program has trained with {session.library}, and now begins with "
                           f"{library}; make two jobs of it, or use a fixed number of workers")


def begin(library: Library) -> None:
    """Joins the elastic job of this process, for the first time or again. Raises RuntimeError if it has joined it, or has trained with another
    library."""
    global _current, _resting  # pylint: disable=global-statement
    if _current is not None:
        raise RuntimeError("this worker has already joined its job: use one communicator around all trainings")
    if _resting is not None:
        _require_one_library(_resting, library.name)
    session, _resting = _resting, None
    if session is None:
        session = Session(library)
    else:
        session.enter_again(library)
    _current = session


@contextlib.contextmanager
def ended(peers_of_job: Callable[[], Peers], failed: bool) -> Iterator[bool]:
    """Ends the session, if there is one, around the block in which this process leaves the library's communicator. Yields whether it is to
    leave it."""
    global _current, _resting  # pylint: disable=global-statement
    session, _current = _current, None
    if session is None:
        yield True
        return
    try:
        leaves = True
        if not failed:
            try:
                leaves = session.finish(peers_of_job)
            except BaseException:
                session.abandon()
                raise
            _resting = session
        yield leaves
    finally:
        session.rest()
