"""This process in an elastic job: its generations, and the results of the job's completed training runs."""
import contextlib
import gc
import re
import sys
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple, Type

import numpy as np

from warren._launch import rank as _rank
from warren._launch.membership import Generation, JobIsOver, Membership
from warren._launch.preemption import EndRequest
from warren.data._peers import Peers, together

#: The time to wait for the tracker's report that another worker was lost: after a failed collective call, and after another error.
_PATIENCE_S, _SHORT_PATIENCE_S = 5.0, 0.5
#: Matches the beginning of the error message of a collective call of Warren's engine.
_OF_ENGINE = re.compile(r"rank \d+: Warren\w+: ")
#: Matches the messages of the libraries and of Warren's engine about a broken connection between workers, or a host that does not answer.
_OF_LINKS = re.compile(r"loop\.cc|channel|Encountered EOF|[Ss]ocket|Connection (reset|refused|timed out)|Broken pipe|closed the connection|"
                       "has ended|(was|is) lost|lost rank|gave up|has waited|(has|does) not answer|own communication failed")
#: The number of broken connections without progress after which the next one is an error: the network does not work.
_MOST_BROKEN_LINKS = 5
#: The number of times between two rounds that reading rows is given up because another worker is waiting. A worker that is started again and
#: again must not keep the others from training.
_MOST_INTERRUPTIONS = 3

#: The error if a worker was lost between two training runs, or after the last one, and not replaced.
_LOST = ("a worker was lost after the training, and no other one has come: what its program did then, such as saving the model, may be "
         "missing")


class Library(NamedTuple):
    """A library that trains in elastic jobs."""

    name: str  #: the library's name; its error messages may begin with it
    error: Type[Exception]
    join: Callable[[Generation], None]  #: joins the communicator of a generation
    leave: Callable[[bool], None]  #: leaves the communicator; True means after a failure, without the other members

    @property
    def package(self) -> str:
        """The name of its Python package."""
        return self.error.__module__.partition(".")[0]

    @property
    def of_collectives(self) -> Tuple[Type[Exception], ...]:
        """The exceptions that a collective call may raise when a worker is lost."""
        return self.error, RuntimeError, OSError


class Progress(NamedTuple):
    """A worker's progress in a training run. The greatest value belongs to the newest state."""

    rounds: int = 0  #: the number of complete rounds, including their evaluation
    is_updated: bool = False  #: whether the model has the next round, which has not been evaluated yet
    has_stopped: bool = False  #: whether a callback has ended the training


class Change(Exception):
    """Raised on all members of a generation, which then leave it together, because another worker is waiting, or a member was lost or has
    been requested to end."""


class Session:
    """The membership of this process, which trains with `library`, in an elastic job."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._end = EndRequest()
        self._end.may_wait = True
        self._broken_links = 0  # the number of broken connections since the last round
        self._interruptions = 0  # the number of interruptions of reading since the last round
        self._end.begin()
        self._membership = Membership(library.package)
        #: The results of the job's training runs, as far as this process has them: tuples returned by `run` (see `trained`).
        self.kept: List[Tuple[Any, ...]] = []
        #: The number of results that have been returned to this process's program.
        self.returned = 0
        self._left = 0  # the number of times the program has left the communicator
        self._stays = False  # whether this process did not leave it the last time, because the others had already entered it again
        self._size_at_result = 0  # the number of members when the last training run ended
        self._begun = 0  # the number of training runs at whose beginning all members have met
        self._has_finished = False
        self._take_part()
        self._end.may_wait = False

    @property
    def library(self) -> str:
        """The name of the library with which this process trains."""
        return self._library.name

    def enter_again(self, library: Library) -> None:
        """To be called when the program enters the communicator again. `library` may differ from the first one in the arguments with which it
        joins."""
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
        """Joins the next generation. Raises SystemExit if the job has no work left."""
        try:
            self._next_generation()
        except JobIsOver:
            self._has_finished = True
            sys.stderr.write("warren: the job's work was done before this worker could take part in it\n")
            raise SystemExit(0) from None

    def _next_generation(self) -> None:
        """Joins the next generation. Raises JobIsOver, or SystemExit if this process has been requested to end."""
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
        """Raises the error of a collective call, unless the generation is known to be ending, or a connection between workers broke (up to
        _MOST_BROKEN_LINKS times without progress)."""
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
        """A collective call between two rounds. Returns whether any member stops the training. If none does, raises Change on all members
        if another worker is waiting, or if a member was lost or has been requested to end."""
        one_wants, one_stops = peers.greatest(np.array([self._wants_change(), stops], np.uint64))
        if one_wants and not one_stops:
            raise Change
        return bool(one_stops)

    def _wants_change(self) -> bool:
        return self._membership.wants_change() or self._end.is_there

    def read_rows(self, peers: Peers, read: Callable[[Callable[[], None]], None]) -> None:
        """Calls `read`, which reads rows and meanwhile calls its argument often. A collective call. If another worker is waiting, or a member
        has been requested to end, that argument raises Change, and then this method does on all members: with another worker there are other
        rows to read. Raises the errors of `read`, the same on all members."""
        def check() -> None:
            if self._interruptions < _MOST_INTERRUPTIONS and self._wants_change():
                raise Change

        def is_interrupted() -> bool:
            try:
                read(check)
                return False
            except Change:
                pass
            gc.collect()  # the frames of the exception, which may refer to it, hold the rows that were read
            return True

        if peers.greatest(np.array([together(peers, is_interrupted)], np.uint64))[0]:
            self._interruptions += 1  # on all members, so that they do not interrupt one after the other
            raise Change

    def has_progressed(self) -> None:
        """To be called at the end of each round."""
        self._broken_links = self._interruptions = 0

    def _recovering(self, work: Callable[[], None]) -> None:
        """Calls `work`, and again in the next generation after a loss or a change. Other errors are raised. If this process is requested to
        end, it ends at the next change."""
        self._end.may_wait = True
        while True:
            try:
                work()
                self._end.may_wait = False
                return
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
        """Returns the result of the program's next training run: the result of `run`, which trains with the workers of a generation, or the
        result that other workers already have, which is passed to `take`."""
        def work() -> None:
            peers = peers_of_job()
            if self.behind(peers):
                take(self.kept[self.returned])
            else:
                self._require_no_loss(peers)
                self.kept.append(tuple(run(peers)))

        self._recovering(work)
        found = self.kept[self.returned]
        self.returned += 1
        self._size_at_result = self._membership.size
        return found

    def _require_no_loss(self, peers: Peers) -> None:
        """A collective call at the beginning of a training run. Raises RuntimeError on all members if a worker was lost between the
        previous run and this one, and not replaced. A loss after the first such call of a run belongs to the run itself."""
        begun, size = (int(one) for one in peers.greatest(np.array([self._begun, self._size_at_result], np.uint64)))
        if begun <= self.returned and self._membership.size < size:
            raise RuntimeError(_LOST)
        self._begun = self.returned + 1

    def behind(self, peers: Peers, is_at_end: bool = False) -> bool:
        """A collective call before each training run, and, with `is_at_end`, when the program is about to leave the communicator. Returns
        true if this worker is behind: the others have completed the training run that it is about to begin, whose result is then in `kept`;
        or, with `is_at_end`, they have left the communicator and entered it again. Workers that are ahead wait for those that are behind.
        Raises ValueError if the workers do not make the same training runs in the same order."""
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
        """To be called when the program leaves the communicator. Waits until all members have reached this point. Returns whether this
        process is to leave it, too: it stays if the others have already entered it again. Raises RuntimeError if a worker was lost after the
        last training run and not replaced."""
        self._end.may_wait = True
        while not self._has_finished:
            try:
                self._stays = self.behind(peers_of_job(), is_at_end=True)
                if self._stays:
                    break
                self._has_finished = True
                if self._membership.size < self._size_at_result:
                    raise RuntimeError(_LOST)
                self._membership.done()
            except self._library.of_collectives as error:
                self._broken_links += 1
                if self._has_finished or self._broken_links > _MOST_BROKEN_LINKS:
                    raise
                # The lost worker may have reached this point, too. In that case, another worker reports that the job is done, and
                # _next_generation raises JobIsOver. First, this waits up to _PATIENCE_S for the report of the loss.
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
        self._size_at_result = 0
        return not self._stays

    def abandon(self) -> None:
        """Leaves the communicator without the others; otherwise, the library's threads could crash the process at exit."""
        with contextlib.suppress(Exception):
            self._library.leave(True)

    def rest(self) -> None:
        """Restores the signal handlers of the program, which has left the communicator. The tracker is not notified: it detects the end of
        the process."""
        self._end.close()


_current: Optional[Session] = None  # the session of a program that is in the communicator
_resting: Optional[Session] = None  # the session of a program that has left the communicator


def current(library: str) -> Optional[Session]:
    """The session of this process, if it has joined an elastic job. Raises RuntimeError if it trains there with another library."""
    if _current is not None:
        _require_one_library(_current, library)
    return _current


def _require_one_library(session: Session, library: str) -> None:
    """Raises RuntimeError if the session uses another library: a worker that joins later would begin with the first library, while the others
    communicate through the second one."""
    if session.library != library:
        raise RuntimeError(f"an elastic job trains with one library: this program has trained with {session.library}, and now begins with "
                           f"{library}; make two jobs of it, or use a fixed number of workers")


def begin(library: Library) -> None:
    """Joins the elastic job of this process, for the first time or again. Raises RuntimeError if this process is already in the job, or has
    trained there with another library."""
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
    """Ends the session, if there is one, around the block in which this process leaves the library's communicator. Yields whether the process
    is to leave the communicator, which one that was forked from the worker is not."""
    global _current, _resting  # pylint: disable=global-statement
    if _rank.is_forked():
        yield False
        return
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
