"""A worker that dies while it joins, at any system call of it, comes back, and what comes out has the bits it would have
had. strace kills: at the n-th call of a kind, counted from the start of the process."""

import os
import re
import unittest

from training import train
from warren_testing import AT_NIGHT

RANKS = 4
VERSIONS = 10
# What a worker does until it is linked to all: it listens, asks the tracker for its rank, connects to its peers, tells
# them its addresses, hands shared memory round; then the first meeting of all. How often it does each depends on who
# comes first; the numbers are those of a job of 4, and reach a little beyond, but not to the end, where it leaves the
# job: whoever is killed after that is not started again.
CALLS = {
    "socket": 7, "bind": 3, "listen": 2, "connect": 4, "sendto": 15, "recvfrom": 40, "recvmsg": 6, "sendmsg": 1,
    "epoll_create1": 1, "epoll_ctl": 6, "eventfd2": 1, "pidfd_open": 1, "getsockname": 9, "poll": 7,
}
TRANSPORTS = {"shared memory": {}, "TCP": {"WARREN_SHARED_MEMORY": "off"}}
# Which tasks die, and at which call, stands in the environment; each does so in its first life only.
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
        """How many of the tasks died when each was to die at its point."""
        # A worker that never comes to its point ends under strace, where the leak check of a sanitizer cannot run.
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
            # By day each of the two transports has half of them.
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
