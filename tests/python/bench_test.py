"""warren bench: the conclusions it draws from measurements, and a small job."""
import json
import os
import subprocess
import sys
import unittest

from warren._tools import bench as _bench
from warren._tools.bench import report
from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))


def figures(**changes):
    """Measurements of four ranks on one host with two cores."""
    return {
        "hosts": [{
            "name": "a",
            "ranks": 4,
            "cores": 2
        }],
        "copy_bytes_per_s":
        1e9,
        "on_a_host": {
            "latency_s": 1e-6,
            "bytes_per_s": 5e9
        },
        "between_hosts":
        None,
        "rows": [{
            "collective": "allreduce",
            "bytes": 1_000_000,
            "seconds": 0.003
        }, {
            "collective": "broadcast",
            "bytes": 1_000_000,
            "seconds": 0.002
        }],
        **changes
    }


class Report(unittest.TestCase):
    def test_bus_bandwidth_counts_what_goes_through_each_rank(self):
        allreduce, broadcast = report.with_limits(figures())["rows"]
        self.assertAlmostEqual(allreduce["bus_bytes_per_s"], 1.5 * 1e6 / 0.003)
        self.assertAlmostEqual(broadcast["bus_bytes_per_s"], 1e6 / 0.002)

    def test_the_limit_on_one_host_is_memory(self):
        allreduce, _ = report.with_limits(figures())["rows"]
        self.assertAlmostEqual(allreduce["limit_s"], 1e-6 + 1.5 * 1e6 / 1e9)
        self.assertAlmostEqual(allreduce["part_of_limit"], allreduce["limit_s"] / 0.003)

    def test_the_limit_of_several_hosts_is_their_network(self):
        hosts = [{"name": name, "ranks": 2, "cores": 2} for name in "abc"]
        allreduce, _ = report.with_limits(figures(hosts=hosts, between_hosts={"latency_s": 1e-4, "bytes_per_s": 1e8}))["rows"]
        self.assertAlmostEqual(allreduce["limit_s"], 2 * 1e-4 + 2 * 2 / 3 * 1e6 / 1e8)

    def test_more_ranks_than_cores_are_said(self):
        self.assertIn("note: 4 ranks share the 2 cores of a", report.text(report.with_limits(figures())))
        self.assertEqual(report.notes(figures(hosts=[{"name": "a", "ranks": 2, "cores": 2}])), [])
        self.assertIn("a single rank sends no messages", report.notes(figures(hosts=[{"name": "a", "ranks": 1, "cores": 2}]))[0])

    def test_the_table_is_for_people(self):
        shown = report.text(report.with_limits(figures()))
        self.assertIn("allreduce    976.562 KiB    3.00 ms    0.50 GB/s         50 %", shown)
        self.assertEqual([report.time_text(value) for value in (3.214e-6, 0.0321, 2.0, 2e-8, 1.2e-4)],
                         ["3.21 us", "32.1 ms", "2.00 s", "0.02 us", "120 us"])
        self.assertEqual([report.bytes_text(value) for value in (8, 4096, 1 << 20)], ["8 B", "4 KiB", "1 MiB"])

    def test_sizes_go_up_to_the_largest(self):
        self.assertEqual(report.sizes(4096), [8, 64, 512, 4096])
        self.assertEqual(report.sizes(64 << 20)[-2:], [16 << 20, 64 << 20])


class Program(unittest.TestCase):
    def run_it(self, *words, code=0):
        done = subprocess.run([sys.executable, "-m", "warren", "bench", *words],
                              text=True,
                              capture_output=True,
                              check=False,
                              timeout=240)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def test_options_of_dmlc_submit_are_passed_on(self):
        options, rest = _bench.parser().parse_known_args(
            ["--cluster", "ssh", "--samples", "3", "-H", "hosts", "--num-workers=8", "--json"])
        command = _bench.command_of(options, rest)
        self.assertEqual(command[-11:], [
            "--cluster", "ssh", "-H", "hosts", "--num-workers=8", "--", sys.executable, "-m", "warren._tools.bench.worker",
            str(64 << 20), "3"
        ])
        self.assertNotIn("--num-workers", command)
        self.assertIn("--num-workers", _bench.command_of(options, []))
        self.assertNotIn("--num-workers", _bench.command_of(options, ["--cluster", "ssh"]))  # a cluster's cores are unknown

    def test_a_job_of_two_ranks(self):
        found = json.loads(self.run_it("--json", "--largest", "4k", "--samples", "2", "--num-workers", "2")[0])
        self.assertEqual([(row["collective"], row["bytes"]) for row in found["rows"]],
                         [(name, size) for name in ("allreduce", "broadcast") for size in (8, 64, 512, 4096)])
        self.assertEqual([host["ranks"] for host in found["hosts"]], [2])
        self.assertIsNone(found["between_hosts"])
        for value in (found["copy_bytes_per_s"], found["on_a_host"]["latency_s"], *(row["part_of_limit"]
                                                                                    for row in found["rows"])):
            self.assertGreater(value, 0)

    def test_the_table_goes_to_standard_output_and_what_the_job_says_does_not(self):
        out, err = self.run_it("--largest", "64", "--samples", "1", "--num-workers", "2", "--log-level", "debug")
        self.assertRegex(out, r"^2 ranks on ")
        self.assertNotIn("dmlc-submit", out)
        self.assertIn("dmlc-submit", err)

    def test_mistakes(self):
        self.assertIn("'64q' is not a size", self.run_it("--largest", "64q", code=2)[1])
        self.assertIn("unknown option '--no-such'", self.run_it("--no-such", code=2)[1])


if __name__ == "__main__":
    unittest.main()
