"""A worker for traces_test.py: worker 1 kills itself in the first generation, and the others end the work in the second generation."""

import contextlib
import os
import signal
import time

import numpy as np

from warren import collectives
from warren._launch.membership import Membership
from warren._launch.shared_tracker import entered_again

TASK = os.environ["DMLC_TASK_ID"]

membership = Membership()
while True:
    generation = membership.next_generation(lambda: True)
    entered_again()
    collectives.init([f"DMLC_TASK_ID={TASK}@{generation.number}", f"DMLC_NUM_WORKER={generation.size}"])
    membership.joined()
    collectives.world().allreduce(np.ones(1))
    if collectives.world().rank == 0:
        print(f"[{generation.number}]\ttrain-rmse:0.5", flush=True)
    if generation.number > 1:
        break
    if TASK == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    while not membership.wants_change():
        time.sleep(0.01)
    with contextlib.suppress(RuntimeError):  # worker 1 does not take part
        collectives.finalize()
    membership.come_again()
membership.done()
collectives.finalize()
