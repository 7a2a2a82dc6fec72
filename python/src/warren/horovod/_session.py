"""The membership of this process in an elastic job (warren._launch.membership), for warren.horovod."""
import contextlib
import os
import sys
from typing import Callable, Optional, TypeVar

from warren import collectives
from warren._launch import membership as _membership
from warren._launch.preemption import EndRequest
from warren._launch.shared_tracker import entered_again
from warren.collectives import Communicator

T = TypeVar("T")

#: The time, in seconds, for which a worker whose operation has failed waits for the tracker to report that another worker was lost or is
#: waiting to join.
_PATIENCE_S = 5.0


class Session:
    """This process's membership, and its current generation."""

    def __init__(self) -> None:
        self._end = EndRequest()
        self._end.may_wait = True
        self._end.begin()
        self._membership = _membership.Membership()
        self._is_done = False
        self._order: Optional[int] = None  # this process's rank in the last generation that it was a member of
        self.is_in_generation = False

    def join(self, make: Callable[[Communicator, int], T], rank_of: Callable[[T], int]) -> T:
        """Joins the next generation. Returns the result of `make`, which is called with the generation's communicator and a number by which
        ranks are sorted. `rank_of` returns this process's rank, given that result. If the generation breaks before this process has joined it,
        joins the following one. Raises SystemExit if the job's work is done, or if this process has received a notice that it must end; and
        RuntimeError for any other failure."""
        while True:
            try:
                generation = self._membership.next_generation(lambda: not self._end.is_there)
            except _membership.JobIsOver:
                sys.stderr.write("warren: the job's work was done before this worker could take part in it\n")
                self._is_done = True
                raise SystemExit(0) from None
            self._leave_job_if_asked()
            try:
                os.environ["DMLC_NUM_WORKER"] = str(generation.size)
                entered_again()
                collectives.init([f"DMLC_TASK_ID={os.environ.get('DMLC_TASK_ID', '')}@{generation.number}",
                                  f"DMLC_NUM_WORKER={generation.size}"])
                # Members of the last generation come first, so that rank 0, from which the state is copied, has a state.
                found = make(collectives.world(), generation.size if self._order is None else self._order)
                self._membership.joined()
            except RuntimeError as error:
                self.require_loss(error)
                self._leave_generation()
                self._membership.come_again()
                continue
            self._order = rank_of(found)
            _membership.set_environment(self._order, generation.size)
            self.is_in_generation = True
            return found

    def require_loss(self, error: Exception) -> None:
        """Raises the error of an operation, unless the tracker reports that a worker was lost or that another one is waiting."""
        if not self._membership.is_known_to_end(_PATIENCE_S):
            raise error

    def _leave_generation(self) -> None:
        """Leaves the communicator of this generation. Errors caused by lost ranks are ignored."""
        self.is_in_generation = False
        with contextlib.suppress(RuntimeError):
            collectives.leave()

    def _leave_job_if_asked(self) -> None:
        if self._end.is_there:
            self._membership.leave()
            self._is_done = True
            raise SystemExit(EndRequest.STATUS)

    def leave_generation(self) -> None:
        """Leaves this generation, before `join` joins the next one. Raises SystemExit if this process has received a notice that it must
        end."""
        self._leave_generation()
        self._leave_job_if_asked()
        self._membership.come_again()

    def begin_work(self) -> bool:
        """To be called when a training run begins. Returns whether this process must first leave its generation, because it has already
        reported in that generation that the work is done."""
        self._end.may_wait = True
        was_done, self._is_done = self._is_done, False
        return was_done

    def end_work(self) -> None:
        """To be called when a training run has ended on all ranks. Reports the work as done; another training run may still begin."""
        self._end.may_wait = False
        self._membership.done()
        self._is_done = True

    def wants_change(self) -> bool:
        """Whether this process has been notified that another worker is waiting, that a member was lost, or that it must end."""
        return self._membership.wants_change() or self._end.is_there

    def close(self) -> None:
        """To be called when the process ends after its work is done. Reports the work as done if `end_work` has not."""
        self._leave_generation()
        if not self._is_done:
            with contextlib.suppress(RuntimeError):
                self._membership.done()
        self._membership.close()


_session: Optional[Session] = None


def session() -> Optional[Session]:
    """The session of this process, created by the first call in an elastic job; None in other jobs."""
    global _session  # pylint: disable=global-statement
    if _session is None and _membership.is_elastic() and os.environ.get("DMLC_TRACKER_URI"):
        _session = Session()
    return _session
