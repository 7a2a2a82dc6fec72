"""The tutorials of ssh and Slurm, on real servers of this machine, and that of Kubernetes on a stand-in."""

import os
import pathlib
import sys
import tempfile
import unittest

import running
from warren_testing import BIN, SOURCE

sys.path.insert(0, str(SOURCE / "tests/submit"))
import slurm_cluster  # noqa: E402
import ssh_hosts  # noqa: E402
import stand_in_kubernetes  # noqa: E402
from kubernetes_with_a_stand_in_test import own_network  # noqa: E402

TUTORIALS = SOURCE / "docs/tutorials"


class Clusters(unittest.TestCase):
    def setUp(self):
        running.prepare()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="warren-docs-")))

    @unittest.skipIf(ssh_hosts.why_not(), ssh_hosts.why_not())
    def test_ssh(self):
        hosts = ssh_hosts.SshHosts(self.folder, 4)
        self.addCleanup(hosts.close)
        # The names of the tutorial, in a configuration of its reader.
        with hosts.config.open("a", encoding="utf-8") as config:
            config.writelines(f"Host node{host + 1}\n  HostName {hosts.address(host)}\n" for host in range(4))
        programs = self.folder / "programs"
        running.make_programs(programs)
        (programs / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {hosts.config} "$@"\n', encoding="utf-8")
        (programs / "ssh").chmod(0o755)
        self.assertGreater(running.run(TUTORIALS / "ssh.md", self.folder, hosts.inside), 2)
        hosts.check_nothing_runs()

    @unittest.skipIf(slurm_cluster.why_not(), slurm_cluster.why_not())
    def test_slurm(self):
        cluster = slurm_cluster.SlurmCluster(self.folder / "servers", nodes=3, cpus=4)
        self.addCleanup(cluster.close)
        self.assertGreater(running.run(TUTORIALS / "slurm.md", self.folder, more=cluster.environment()), 2)

    @unittest.skipIf(stand_in_kubernetes.why_not(), stand_in_kubernetes.why_not())
    def test_kubernetes_with_a_stand_in(self):
        self.addCleanup(own_network())
        cluster = stand_in_kubernetes.StandInKubernetes(self.folder / "cluster", str(self.folder))
        self.addCleanup(cluster.close)
        cluster.image_path = f"{BIN}:{os.environ['PATH']}"
        cluster.work = self.folder
        running.make_programs(self.folder / "programs")
        (self.folder / "programs/kubectl").symlink_to(cluster.kubectl)
        more = {name: value for name, value in cluster.environment().items() if name != "PATH"}
        self.assertGreater(running.run(TUTORIALS / "kubernetes.md", self.folder, more=more), 3)


if __name__ == "__main__":
    unittest.main()
