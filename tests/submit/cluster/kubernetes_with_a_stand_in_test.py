"""dmlc-submit --cluster kubernetes with a stand-in for Kubernetes and kubectl (stand_in_kubernetes), and a check of its manifests against
the schemas of the real API server."""

import base64
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import stand_in_kubernetes
import yaml
from kubernetes_case import NO_IMAGE, KubernetesBehaviour, KubernetesCase
from stand_in_kubernetes import StandInKubernetes
from submit_case import LIMIT_S, PROGRAM
from warren_testing import BIN, wait_for

WHY_NOT = stand_in_kubernetes.why_not()
VERSIONS = ("1.29", "1.31", "1.33", "1.35")
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
READY = "echo ready > ready-$DMLC_TASK_ID; exec sleep 600"


def own_network():
    """Moves this thread and its future children to a new network namespace: in the current one, the tracker's fixed port may be in use.
    Returns a function that moves the thread back."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "no network of its own")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    def leave():
        libc.setns(before, NEW_NETWORK)
        os.close(before)

    return leave


class StandInCase(KubernetesCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="warren-kubernetes-")
        cls.addClassCleanup(directory.cleanup)
        cls.kubernetes = StandInKubernetes(pathlib.Path(directory.name) / "cluster", directory.name)
        cls.kubernetes.image_path = f"{BIN}:{os.environ['PATH']}"
        cls.kubernetes.images_missing.add(NO_IMAGE)
        cls.addClassCleanup(cls.kubernetes.close)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class KubernetesWithAStandIn(KubernetesBehaviour, StandInCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(own_network())
        super().setUpClass()

    def test_a_train_job_runs_as_kubeflow_would_run_it(self):
        """Kubeflow is not needed: the pods' command and environment come from the manifest, and this test sets the variables that
        Kubeflow's runtime would set."""
        process = self.submit("--num-workers", 2, "--local-num-attempt", 1, "--env", "KEY=it's $HOME", "--kube-kind", "trainjob",
                              "--kube-manifest", "job.yaml", PROGRAM.replace("dmlc-submit", "training_worker"), 3, 10)  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        secret, job = yaml.safe_load_all(self.file("job.yaml").read_text())
        trainer = job["spec"]["trainer"]
        self.assertEqual(trainer["numNodes"], 2)
        content = {**secret.get("stringData", {}), **{k: base64.b64decode(v).decode() for k, v in secret.get("data", {}).items()}}
        environment = {one["name"]: content[one["valueFrom"]["secretKeyRef"]["key"]] for one in trainer["env"]}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment |= {"PATH": self.kubernetes.image_path, "DMLC_TRACKER_URI": "localhost", "DMLC_TRACKER_PORT": str(port),
                        "DMLC_NUM_WORKER": "2"}  # fmt: skip
        command = [word.replace("$$", "$") for word in trainer["command"]]
        pods = [subprocess.Popen(command, env={**environment, "DMLC_TASK_ID": str(rank)}, cwd=self.directory,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                for rank in range(2)]  # fmt: skip
        said = [pod.communicate(timeout=LIMIT_S)[0].decode() for pod in pods]
        self.assertEqual([pod.returncode for pod in pods], [0, 0], said)
        self.assertRegex("".join(said), r"rank [01] of 2")

    def test_nothing_is_lost_or_doubled_when_the_logs_break_off(self):
        code = "echo r > ready-0; i=0; while [ $i -lt 60 ]; do echo line $i; i=$((i+1)); sleep 0.05; done"
        process = self.start("--num-workers", 1, "sh", "-c", code)
        self.ready(1)
        for _ in range(3):
            time.sleep(0.7)
            self.kubernetes.break_logs()
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(out.decode(), "".join(f"[0] line {i}\n" for i in range(60)))

    def test_a_container_that_takes_too_much_memory_is_named(self):
        process = self.start("--num-workers", 2, "sh", "-c", "echo here; " + READY)
        self.ready(2)
        self.wait_for_text(process.stdout, "[1] here")
        self.kubernetes.kill_container(sorted(self.pods())[1])
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 137, err)
        self.assertRegex(err.decode().splitlines()[-1], r"worker 1 \(.*\) was killed because it used more memory than its container's")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Schemas(StandInCase):
    """Manifests are checked by kubernetes-validate, which includes the API server's schemas."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        place = tempfile.TemporaryDirectory(prefix="warren-schemas-")
        cls.addClassCleanup(place.cleanup)
        cls.program = pathlib.Path(place.name) / "bin/kubernetes-validate"
        for command in ([sys.executable, "-m", "venv", place.name],
                        [cls.program.with_name("pip"), "install", "--quiet", "kubernetes-validate"]):  # fmt: skip
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def valid(self, manifest, version):
        done = subprocess.run([self.program, "-k", version, "--strict", manifest], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        return done.returncode == 0 and "WARN" not in said, said

    def test_every_manifest_is_what_the_api_server_takes(self):
        self.file("file").write_bytes(b"\xff\0")
        self.file("template.yaml").write_text("spec: {tolerations: [{operator: Exists}]}\n")
        everything = ["--local-num-attempt", 2, "--worker-gpus", 1, "--worker-memory", "2g", "--queue", "q", "--time-limit", 60,
                      "--kube-namespace", "ml", "--files", "file", "--kube-worker-template", "template.yaml",
                      "--env", b"KEY=\xff$(X)"]  # fmt: skip
        for options in ([], everything, ["--num-servers", 2, *everything], ["--no-tracker"], ["--host-ip", "127.0.0.1"]):
            with self.subTest(options):
                process = self.submit("--num-workers", 3, *options, "--kube-manifest", "job.yaml", "train")
                self.assertEqual(process.returncode, 0, process.err)
                for version in VERSIONS:
                    good, said = self.valid(self.file("job.yaml"), version)
                    self.assertTrue(good, said)

    def test_a_mistake_would_be_found(self):
        self.submit("--num-workers", 3, "--kube-manifest", "job.yaml", "train")
        text = self.file("job.yaml").read_text()
        self.file("wrong.yaml").write_text(text.replace("completions: 3", "completion: 3"))
        self.assertFalse(self.valid(self.file("wrong.yaml"), VERSIONS[0])[0])


del KubernetesBehaviour  # not a test by itself

if __name__ == "__main__":
    unittest.main()
