"""Each test has exactly one of the labels unit, process, interop and cluster, so running the tests of each label runs every test once."""

import collections
import json
import os
import subprocess
import unittest

KINDS = {"unit", "process", "interop", "cluster"}


class Labels(unittest.TestCase):
    def test_each_test_has_exactly_one(self):
        shown = subprocess.run([os.environ["WARREN_CTEST"], "--show-only=json-v1", "--test-dir", os.environ["WARREN_BUILD"]],
                               capture_output=True, text=True, check=True).stdout
        count = collections.Counter()
        for test in json.loads(shown)["tests"]:
            labels = next((one["value"] for one in test.get("properties", []) if one["name"] == "LABELS"), [])
            kinds = KINDS.intersection(labels)
            self.assertEqual(len(kinds), 1, f"{test['name']} has the labels {labels}, and needs one of {sorted(KINDS)}")
            count.update(kinds)
        self.assertGreater(count["unit"], 0)
        print(dict(count))


if __name__ == "__main__":
    unittest.main()
