"""A worker that dies at any of its system calls while it joins is restarted, and the results are bit-identical to those of a run without faults.
strace kills the worker at its n-th call of a kind, counted from the start of the process."""

import os
import re
import unittest

from training import train
from warren_testing import AT_NIGHT

RANKS = 4
VERSIONS = 10
# The system calls that a worker makes until it is linked to all others, and the number of each: it listens, asks the tracker for its rank,
# connects to its peers, sends them its addresses, and passes shared memory around; then all ranks meet for the first time. The numbers
# depend on which worker joins first. These are for a job of 4 and include a few later calls, but none after the worker has left the job:
# a worker that is killed then is not restarted.
CALLS = {
    "socket": 7, "bind": 3, "listen": 2, "connect": 4, "sendto": 15, "recvfrom": 40, "recvmsg": 6, "sendmsg": 1,
    "epoll_create1": 1, "epoll_ctl": 6, "eventfd2": 1, "pidfd_open": 1, "getsockname": 9, "poll": 7,
}
TRANSPORTS = {"shared memory": {}, "TCP": {"WARREN_SHARED_MEMORY": "off"}}
# DIE_<task> in the environment is the call at which the first process of that task dies, as NAME:NUMBER.
DIE_ONCE = """
point=$(eval echo "\\$DIE_$DMLC_TASK_ID")
[ "$DMLC_NUM_ATTEMPT" = 0 ] && [ -n "$point" ] || exec "$@"
exec strace -o /dev/zero -e "inject=${point%:*}:signal=KILL:when=${point#*:}" "$@"
"""


class BootstrapDeathTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        undisturbed = train(RANKS, versions=VERSIONS)
        assert undisturbed.code == 0, undisturbed.errors
        cls.expected = undisturbed.digests

    def deaths(self, points, env):
        """Runs a job and checks its results. `points`: the system calls at which tasks die, by task. Returns how many tasks died."""
        # A worker that never reaches its point exits under strace, where LeakSanitizer cannot run.
        quiet = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        die = {f"DIE_{task}": point for task, point in points.items()}
        result = train(RANKS, attempts=3, versions=VERSIONS, env={**env, **die, **quiet},
                       under=["sh", "-c", DIE_ONCE, "worker"])
        self.assertEqual(result.code, 0, result.errors)
        self.assertEqual(result.digests, self.expected, result.errors)
        return len(re.findall(r"killed by signal 9", result.errors))

    def test_one_at_every_call(self):
        points = [f"{call}:{number}" for call, count in CALLS.items() for number in range(1, count + 1)]
        for number, (name, env) in enumerate(TRANSPORTS.items()):
            died = 0
            # Except in nightly runs, each of the two transports gets half of the points.
            chosen = points if AT_NIGHT else points[number::len(TRANSPORTS)]
            for point in chosen:
                with self.subTest(transport=name, point=point):
                    died += self.deaths({1: point}, env)
            self.assertGreater(died, len(chosen) // 2)

    def test_several_at_different_calls(self):
        for name, env in TRANSPORTS.items():
            for points in ({0: "connect:1", 2: "recvfrom:12"}, {1: "sendto:4", 3: "sendto:5"},
                           {0: "recvfrom:2", 1: "recvfrom:20", 2: "connect:2"}, dict.fromkeys(range(RANKS), "sendto:3")):
                with self.subTest(transport=name, points=points):
                    self.assertEqual(self.deaths(points, env), len(points))


if __name__ == "__main__":
    unittest.main()
