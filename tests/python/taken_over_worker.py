"""A worker of generations_test.py: takes part in the generations of its job, and prints each generation and round, until the file `end` exists.

    taken_over_worker.py [SECONDS]

SECONDS: how long it waits for another tracker to take over."""
import contextlib
import os
import sys
import time

import numpy as np

from warren import collectives
from warren._launch import membership as _membership
from warren._launch.shared_tracker import entered_again

if len(sys.argv) > 1:
    _membership._TRACKER_PATIENCE_S = float(sys.argv[1])  # pylint: disable=protected-access


def train():
    """Runs rounds until any member is notified that the generation must end, or finds the file `end`. Returns whether a member found it."""
    while True:
        ours = np.array([membership.wants_change(), os.path.exists("end")], np.uint8)
        change, is_done = collectives.world().allreduce(ours, collectives.Op.MAX)
        print("round", flush=True)
        if change or is_done:
            return bool(is_done)
        time.sleep(.02)


membership = _membership.Membership()
while True:
    generation = membership.next_generation(lambda: True)
    entered_again()
    try:
        collectives.init([f"DMLC_TASK_ID={os.environ['DMLC_TASK_ID']}@{generation.number}", f"DMLC_NUM_WORKER={generation.size}"])
        membership.joined()
        print("generation", generation.number, "of", generation.size, flush=True)
        if train():
            break
    except RuntimeError as error:
        print("a call failed:", error, flush=True)
        if not membership.is_known_to_end(5):
            raise
    with contextlib.suppress(RuntimeError):
        collectives.finalize()
    membership.come_again()
membership.done()
collectives.finalize()
