"""Every algorithm over every transport with real processes: right to the bit, and the same bits everywhere.

WARREN_MATRIX=full ctest -R engine_matrix: every type with every operation at every size where something changes, and
buffers of more than 4 GiB (needs 12 GiB of memory). It takes about an hour on 2 cores.
"""

import os
import unittest

from jobs import Job

FLAT = ["tree", "recursive_doubling", "halving_doubling", "pairwise", "ring"]
SANITIZED = os.environ.get("WARREN_SANITIZED") == "1"
FULL = os.environ.get("WARREN_MATRIX") == "full"
RANKS = [int(n) for n in os.environ.get("WARREN_MATRIX_RANKS", "1 2 3 4 5 6 7 8 9").split()]

TCP = {"RABIT_SHARED_MEMORY": "off"}
COPY = {"RABIT_SHARED_COPY": "double"}
SINGLE = {"RABIT_SHARED_COPY": "single"}


class MatrixTest(unittest.TestCase):
    def checksum(self, num_workers, *arguments, seconds=240, **how):
        with Job(num_workers, *arguments, **how) as job:
            return job.checksum(self, seconds)

    def test_every_way_gives_the_bits_of_the_reference(self):
        ways = [("shared memory", COPY), ("shared memory, single copy", SINGLE), ("TCP", TCP)]
        for algorithm in FLAT:
            ways.append((f"{algorithm} over TCP", {**TCP, "RABIT_ALGORITHM": algorithm}))
            ways.append((f"{algorithm} over rings", {"RABIT_ALGORITHM": algorithm}))
        if SANITIZED:
            ways = ways[:3] + ways[3::3]
        for num_workers in RANKS:
            seen = {}
            for name, env in ways:
                with self.subTest(ranks=num_workers, way=name):
                    seen[name] = self.checksum(num_workers, "all", env=env)
                    if FULL:
                        seen[name] += self.checksum(num_workers, "every", env=env, seconds=3000)
            self.assertEqual(len(set(seen.values())), 1, f"{num_workers} ranks: {seen}")

    def test_many_ranks_of_an_ordinary_user_share_memory(self):
        # Without the privileges of root, only so many descriptors may be on their way between processes at once.
        ordinary = ["setpriv", "--bounding-set", "-sys_resource,-sys_admin", "--inh-caps", "-all"]
        if RANKS[-1] != 6:
            return  # once is enough
        with Job(30, "random", 5, env={"RABIT_PRINT_CHOICE": "1"}, enter=ordinary if os.geteuid() == 0 else []) as job:
            codes, results = job.finish()
        errors = "".join(errors for _, errors in results)
        self.assertEqual(codes, [0] * 30, errors)
        self.assertIn("30 ranks on 1 hosts: shared_memory", errors)

    def test_each_rank_says_its_place_when_asked(self):
        if RANKS[-1] != 4:
            return  # once is enough
        with Job(4, "random", 1, env={"rabit_debug": "1"},
                 env_of_task=lambda task: {"RABIT_HOST_GROUP": "aaab"[task]}) as job:
            codes, results = job.finish()
        errors = "".join(errors for _, errors in results)
        self.assertEqual(codes, [0] * 4, errors)
        self.assertRegex(errors, r"rank \d of 4 on \S+, \d of 2 hosts: shares memory with ranks \d, \d, \d \(")
        self.assertRegex(errors, r"rank \d of 4 on \S+, \d of 2 hosts: shares memory with nobody; ")
        self.assertEqual(errors.count(" of 2 hosts: "), 4, errors)

    @unittest.skipUnless(FULL, "a longer run: WARREN_MATRIX=full")
    def test_buffers_of_more_than_four_gib(self):
        if RANKS[-1] != 2:
            return
        for name, env in (("shared memory", COPY), ("single copy", SINGLE), ("TCP", TCP),
                          ("ring", {**TCP, "RABIT_ALGORITHM": "ring"})):
            with self.subTest(way=name):
                self.checksum(2, "large", 2**32 + 1_000_003, env=env, seconds=1500)

    def test_hosts_of_any_layout_give_the_same_bits(self):
        # Ranks of different RABIT_HOST_GROUPs share no memory: several hosts as far as the engine can see.
        layouts = {
            4: ["aabb", "aaab", "abab"],
            6: ["aabbcc", "aaabbb", "aaaabb", "abcabc"],
            7: ["aaaabbb", "aabbccd"],
        }
        for num_workers, texts in layouts.items():
            if num_workers > max(RANKS) or num_workers not in RANKS:
                continue
            expected = self.checksum(num_workers, "all", env=TCP)
            for text in texts:
                with self.subTest(layout=text):
                    got = self.checksum(num_workers, "all",
                                        env_of_task=lambda task, text=text: {"RABIT_HOST_GROUP": text[task]})
                    self.assertEqual(got, expected)

    def test_random_sequences_of_collectives(self):
        for num_workers in [n for n in RANKS if n in (2, 4, 5, 9)]:
            expected = self.checksum(num_workers, "random", 150, env=TCP)
            with self.subTest(ranks=num_workers):
                self.assertEqual(self.checksum(num_workers, "random", 150), expected)
                self.assertEqual(self.checksum(num_workers, "random", 150, env=SINGLE), expected)


if __name__ == "__main__":
    unittest.main()
