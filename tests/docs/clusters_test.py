"""Runs the commands of the pages that need a cluster: ssh and Slurm, with real servers on this machine, and a stand-in for Kubernetes."""

import contextlib
import pathlib
import sys
import tempfile
import unittest

import marked
import places
import running
from warren_testing import BIN, SOURCE

sys.path[:0] = [str(SOURCE / "tests/submit/cluster"), str(SOURCE / "tests/submit")]
import slurm_cluster  # noqa: E402
import ssh_hosts  # noqa: E402
import stand_in_kubernetes  # noqa: E402


class Clusters(unittest.TestCase):
    def setUp(self):
        running.prepare()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="warren-docs-")))
        self.programs = self.folder / "programs"
        running.make_programs(self.programs)
        # Stands in for a Python that is installed on every host and finds its packages there.
        python = self.programs / "python"
        python.write_text(f"#!/bin/sh\nPYTHONPATH={SOURCE}/python/src WARREN_NATIVE={BIN.parent} "
                          f'exec {running.ENVIRONMENT}/bin/python "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        self.until = self.enterContext(contextlib.ExitStack())

    def run_pages(self, place, enter, more):
        """Runs the commands for `place` of all pages that have any. `enter` and `more` are those of running.run."""
        found = [page for page in marked.pages(SOURCE) if running.has_something_for(page, place)]
        self.assertIn(f"{place}.md", [page.name for page in found])
        for page in found:
            with self.subTest(page.name):
                self.assertGreater(running.run(page, self.folder, enter, more, place), 0)

    @unittest.skipIf(ssh_hosts.why_not(), ssh_hosts.why_not())
    def test_ssh(self):
        self.run_pages("ssh", *places.ssh(self.folder, self.programs, self.until))

    @unittest.skipIf(slurm_cluster.why_not(), slurm_cluster.why_not())
    def test_slurm(self):
        self.run_pages("slurm", *places.slurm(self.folder, self.programs, self.until))

    @unittest.skipIf(stand_in_kubernetes.why_not(), stand_in_kubernetes.why_not())
    def test_kubernetes_with_a_stand_in(self):
        self.until.callback(stand_in_kubernetes.own_network())
        image = self.folder / "python"
        image.mkdir()
        (image / "python3").symlink_to(self.programs / "python")
        self.run_pages("kubernetes", *places.kubernetes(self.folder, self.programs, self.until, f"{image}:{BIN}"))


if __name__ == "__main__":
    unittest.main()
