"""A worker of generations_test.py: joins NUMBER generations one after another over Warren's engine. Finally prints the resources that the
process held in two of them, after a tenth of all and in the last one: open files, threads, and memory in KiB."""
import os
import sys

import numpy as np

from warren import collectives
from warren._launch.membership import Membership
from warren._launch.shared_tracker import entered_again

NUMBER = int(sys.argv[1])


def held():
    """Returns the number of open files, the number of threads, and the resident memory in KiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages * os.sysconf("SC_PAGE_SIZE") // 1024


membership = Membership()
for number in range(1, NUMBER + 1):
    generation = membership.next_generation(lambda: True)
    assert generation.number == number, (generation, number)
    entered_again()
    collectives.init([f"DMLC_TASK_ID={os.environ['DMLC_TASK_ID']}@{generation.number}", f"DMLC_NUM_WORKER={generation.size}"])
    membership.joined()
    world = collectives.world()
    total = world.allreduce(np.full(100_000, world.rank + 1.0))
    assert total[0] == total[-1] == world.size * (world.size + 1) / 2
    if number == max(1, NUMBER // 10):
        early = held()
    late = held()
    if number < NUMBER:
        collectives.finalize()
        membership.come_again()
membership.done()
collectives.finalize()
print("held", *early, *late, flush=True)
