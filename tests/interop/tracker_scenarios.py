"""Scenarios from XGBoost's own tracker tests, run with warren.tracker.Tracker: one function per scenario.

    tracker_scenarios.py <address that the tracker listens on>

Needs XGBoost 2.1 or later. If a job has several workers, each is a process."""
import functools
import multiprocessing
import sys

import numpy as np
from xgboost import collective
from xgboost.core import XGBoostError

from warren.tracker import Tracker

LIMIT_S = 100
CROWD = 4
LARGE = 4 * 1024 * 1024


def raised(call, kind=XGBoostError):
    """Returns the text of the error that the call must raise."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("nothing was raised")


def one_worker(host):
    """test_rabit_tracker: a job with one worker. The tracker's port is taken until the job ends."""
    tracker = Tracker(n_workers=1, host_ip=host)
    tracker.start()
    port = tracker.worker_args()["dmlc_tracker_port"]
    another = functools.partial(Tracker, n_workers=1, host_ip=host, port=port)
    assert "Failed to bind socket" in raised(another)
    with collective.CommunicatorContext(**tracker.worker_args()):
        assert collective.broadcast("test1234", 0) == "test1234"
    assert "Failed to bind socket" in raised(another)
    tracker.wait_for(LIMIT_S)


def nobody_comes(host):
    """test_wait: wait_for has a separate timeout, and free raises an error if the job never began."""
    tracker = Tracker(n_workers=2, host_ip=host)
    tracker.start()
    assert "Timeout waiting for the tracker" in raised(functools.partial(tracker.wait_for, 1))
    assert "Failed to accept" in raised(tracker.free)
    raised(tracker.wait_for)


def workers_are_late(host):
    """The tracker ends at its own timeout."""
    tracker = Tracker(n_workers=2, host_ip=host, timeout=1)
    tracker.start()
    assert "ended with code" in raised(functools.partial(tracker.wait_for, LIMIT_S))


def wrong_port(host):
    """test_socket_error: a worker with a wrong tracker port gets an error."""
    tracker = Tracker(n_workers=2, host_ip=host)
    tracker.start()
    raised(lambda: collective.init(**{**tracker.worker_args(), "dmlc_tracker_port": 0, "dmlc_retry": 1}), Exception)
    raised(tracker.free)


def after_shutdown(host):
    """AfterShutdown: a worker that joins after the end of the job is rejected immediately."""
    tracker = Tracker(n_workers=1, host_ip=host)
    tracker.start()
    with collective.CommunicatorContext(**tracker.worker_args()):
        pass
    tracker.wait_for(LIMIT_S)
    assert "onnect" in raised(lambda: collective.init(**tracker.worker_args(), dmlc_retry=1), Exception)


def crowd(host, work, count=CROWD, **arguments):
    """Runs `work(number, count)` in `count` workers of one job, each of which is a process."""
    tracker = Tracker(n_workers=count, host_ip=host)
    tracker.start()
    given = {**tracker.worker_args(), **arguments}
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=one_of_crowd, args=(given, number, count, work)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LIMIT_S)
    assert [worker.exitcode for worker in workers] == [0] * count
    tracker.wait_for(LIMIT_S)


def one_of_crowd(arguments, number, count, work):
    with collective.CommunicatorContext(**arguments, dmlc_task_id=f"{number:02}"):
        assert collective.is_distributed()
        assert collective.get_world_size() == count
        work(number, count)


def ranks(number, _):
    """test_rank_assignment: the workers on a host are ranked in the order of their task ids."""
    assert collective.get_rank() == number


def operations(number, count):
    """test_rabit_ops, test_broadcast, Print: two allreduces, a broadcast, and a message that the tracker prints."""
    assert collective.allreduce(np.array([1]), collective.Op.SUM)[0] == count
    assert collective.allreduce(np.array([number]), collective.Op.MAX)[0] == count - 1
    assert collective.broadcast(17 + number, 0) == 17
    collective.communicator_print(f"heard from {number}\n")


def many_and_large(_, count):
    """test_allreduce: many small allreduces, then a large one."""
    for _ in range(128):
        assert collective.allreduce(np.asarray([1.0]), collective.Op.SUM)[0] == count
    assert (collective.allreduce(np.full(LARGE, 1.0), collective.Op.SUM) == count).all()


def mixed(_, count, seed):
    """test_ops_restart_comm, test_ops_reuse_comm: random sequences of operations, in consecutive jobs."""
    values = np.arange(count)
    for kind in np.random.default_rng(seed).choice(["broadcast", "sum", "max"], size=10):
        if kind == "broadcast":
            np.testing.assert_array_equal(collective.broadcast(values, 1), values)
        elif kind == "sum":
            np.testing.assert_array_equal(collective.allreduce(values, collective.Op.SUM), values * count)
        else:
            found = collective.allreduce(np.full(count, collective.get_rank()), collective.Op.MAX)
            np.testing.assert_array_equal(found, np.full(count, count - 1))


def main():
    host = sys.argv[1]
    for scenario in (one_worker, nobody_comes, workers_are_late, wrong_port, after_shutdown):
        scenario(host)
    for work in (ranks, operations, many_and_large):
        crowd(host, work)
    crowd(host, operations, dmlc_worker_port=0)  # as in XGBoost's test_worker_port; versions without this option ignore it
    for seed in (1, 2):
        crowd(host, functools.partial(mixed, seed=seed), count=8)
    print("all well")


if __name__ == "__main__":
    main()
