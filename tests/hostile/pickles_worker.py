"""A worker of pickles_test.py. Through the call DOOR, rank 1 sends a pickle that runs code when it is loaded. When it sends,
rank 1 has the job's token if ARMS is "right", none if ARMS is "none", and otherwise a wrong token. Rank 0 makes the same call and prints
the result or the error. The pickle's code creates the file $RAN, whose name differs between workers."""
import os
import sys

DOOR, ARMS = sys.argv[1:3]
TASK = os.environ["DMLC_TASK_ID"]
os.environ["RAN"] = os.path.join(sys.argv[3], f"ran-in-task-{TASK}")


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return exec, ("import os; open(os.environ['RAN'], 'w').close()", )


def disarm(rank):
    """Unless ARMS is "right", removes or replaces the job's token in rank 1, which stays linked with the others."""
    if rank != 1 or ARMS == "right":
        return
    if ARMS == "none":
        os.environ.pop("DMLC_JOB_TOKEN", None)
    else:
        os.environ["DMLC_JOB_TOKEN"] = "ab" * 32


def value_of(rank):
    return Evil() if rank == 1 else {"rank": rank}


def shown(rank, call):
    try:
        got = call()
    except Exception as error:  # pylint: disable=broad-except
        got = f"{type(error).__name__}: {error}"
    if rank == 0:
        print("GOT", got, flush=True)


def with_rabit():
    import numpy
    from warren import data, rabit
    with rabit.context():
        rank = rabit.get_rank()
        disarm(rank)
        if DOOR == "rabit.broadcast":
            shown(rank, lambda: rabit.broadcast(value_of(rank), 1))
        elif DOOR == "checkpoint":
            if os.environ.get("DMLC_NUM_ATTEMPT", "0") == "0":
                rabit.load_checkpoint()  # signals to the engine that lost ranks may be restarted
                rabit.checkpoint(value_of(rank))
                if rank == 0:
                    os._exit(7)
            else:
                shown(rank, rabit.load_checkpoint)
            rabit.allreduce(numpy.ones(1), rabit.SUM)  # rank 1 waits here for the restarted rank
        else:
            with_peers(rank, data)


def with_peers(rank, data):
    peers = data.current_peers()
    if DOOR == "broadcast":
        shown(rank, lambda: peers.broadcast(value_of(rank), 1, objects=True))
    elif DOOR == "allgather":
        shown(rank, lambda: peers.allgather(value_of(rank), objects=True))
    elif DOOR == "plain":
        shown(rank, lambda: peers.allgather(value_of(rank)))
    else:
        scatter_or_gather(rank, data)


def scatter_or_gather(rank, data):
    """Calls scatter or gather. Rank 1 replaces the description of its rows with a pickle that runs code."""
    import numpy as np
    from warren.data._exchange import arrays

    class Spec(arrays.ArraySpec):
        """A description of rows that runs code when it is unpickled."""

        def __reduce__(self):
            return Evil().__reduce__()

    if rank == 1:
        arrays.ArraySpec = Spec
    rows = np.ones((3, 2))
    shown(rank, lambda: data.scatter(rows if rank == 1 else None, 1) if DOOR == "scatter" else data.gather(rows, 0))


def with_horovod():
    import warren.horovod.torch as hvd
    hvd.init()
    disarm(hvd.rank())
    call = getattr(hvd, DOOR.split(".")[1])
    shown(hvd.rank(), lambda: call(value_of(hvd.rank()), 1) if "broadcast" in DOOR else call(value_of(hvd.rank())))
    hvd.shutdown()


def with_xgboost():
    import warren.xgboost
    from warren import data
    with warren.xgboost.communicator():
        rank = warren.xgboost.get_rank()
        disarm(rank)
        if DOOR == "xgboost.broadcast":
            shown(rank, lambda: warren.xgboost.broadcast(value_of(rank), 1))
        else:
            with_peers(rank, data)


{"xgboost": with_xgboost, "horovod": with_horovod, "rabit": with_rabit}[sys.argv[4]]()
