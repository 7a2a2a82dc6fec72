"""The choice of the ranks that share memory. The results have the same bits in every case."""

import os
import unittest

from jobs import TCP, Job, on_hosts
from warren_testing import AT_NIGHT

SANITIZED = os.environ.get("WARREN_SANITIZED") == "1"


class SharingTest(unittest.TestCase):
    def test_hosts_of_any_layout_give_the_same_bits(self):
        layouts = {
            4: ["aabb", "aaab", "abab"],
            6: ["aabbcc", "aaabbb", "aaaabb", "abcabc", "aaaaab"],
            7: ["aaaabbb", "aabbccd"],
            9: ["aaabbbccc", "aaabbcccc"],
        }
        by_day = [4] if SANITIZED else [4, 7]
        for num_workers in layouts if AT_NIGHT else by_day:
            with Job(num_workers, "all", env=TCP) as job:
                expected = job.checksum(self)
            for text in layouts[num_workers][None if AT_NIGHT else -1:]:
                with self.subTest(layout=text), Job(num_workers, "all", **on_hosts(text)) as job:
                    self.assertEqual(job.checksum(self), expected)

    def test_hosts_that_are_no_subtrees_reduce_inside_first(self):
        for layout in ["aaaaaabbbbbb"] if SANITIZED else ["aaabbb", "aaabbcccc", "aaaaaabbbbbb", "aaaaaaabbbbbbbccccccc"]:
            with Job(len(layout), "random", 20, env=TCP) as job:
                expected = job.checksum(self)
            with self.subTest(layout=layout), \
                    Job(len(layout), "random", 20, env={"WARREN_PRINT_CHOICE": "1"}, **on_hosts(layout)) as job:
                outputs, errors = job.succeed(self)
                self.assertEqual(outputs, [expected])
                self.assertIn("hierarchical_subtrees", errors)

    def test_many_ranks_of_an_ordinary_user_share_memory(self):
        # Without root's privileges, the number of descriptors in transit between processes is limited.
        ordinary = ["setpriv", "--bounding-set", "-sys_resource,-sys_admin", "--inh-caps", "-all"]
        with Job(30, "random", 5, env={"WARREN_PRINT_CHOICE": "1"}, enter=ordinary if os.geteuid() == 0 else []) as job:
            _, errors = job.succeed(self)
        self.assertIn("30 ranks on 1 hosts: shared_memory", errors)

    def test_ranks_spin_when_each_has_a_core_also_when_they_are_bound_to_it(self):
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) < 2:
            self.skipTest("needs two cores")
        for cores, waits in ((allowed[:2], "spinning first"), (allowed[:1] * 2, "yielding at once")):
            bind = ["sh", "-c", f'[ "$DMLC_TASK_ID" = 0 ] && core={cores[0]} || core={cores[1]}; exec taskset -c $core "$@"', "sh"]
            for env in ({}, TCP):
                with self.subTest(cores=cores, env=env), Job(2, "random", 1, env={"rabit_debug": "1", **env}, enter=bind) as job:
                    _, errors = job.succeed(self)
                    self.assertEqual(errors.count(f"; waits {waits}"), 2, errors)

    def test_each_rank_says_its_place_when_asked(self):
        with Job(4, "random", 1, env={"rabit_debug": "1"}, **on_hosts("aaab")) as job:
            _, errors = job.succeed(self)
        self.assertRegex(errors, r"rank \d of 4 on \S+, \d of 2 hosts: shares memory with ranks \d, \d, \d; ")
        self.assertRegex(errors, r"rank \d of 4 on \S+, \d of 2 hosts: shares memory with no other rank; ")
        self.assertEqual(errors.count(" of 2 hosts: "), 4, errors)


if __name__ == "__main__":
    unittest.main()
