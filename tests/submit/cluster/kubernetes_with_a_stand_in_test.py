"""dmlc-submit --cluster kubernetes with a stand-in for Kubernetes and kubectl (stand_in_kubernetes), and a check of dmlc-submit's manifests
against the schemas of the real API server."""

import base64
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import stand_in_kubernetes
import yaml
from cluster_case import MEMBER, READY
from kubernetes_case import NO_IMAGE, KubernetesBehaviour, KubernetesCase
from stand_in_kubernetes import StandInKubernetes, own_network
from submit_case import LIMIT_S, PROGRAM
from warren_testing import BIN, wait_for

WHY_NOT = stand_in_kubernetes.why_not()
VERSIONS = ("1.29", "1.31", "1.33", "1.35")


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


#: Like MEMBER, but worker 1 kills itself once there is a file `die`, and again each time it is restarted.
DYING = [*MEMBER[:-1], MEMBER[-1].replace("member = Membership()", """
def die():
    if os.environ["DMLC_TASK_ID"] == "1" and pathlib.Path("die").exists():
        os.kill(os.getpid(), 9)
die()
member = Membership()""").replace("    time.sleep(.1)", "    time.sleep(.1)\n    die()")]


@unittest.skipIf(WHY_NOT, WHY_NOT)
class ElasticWithAStandIn(StandInCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(own_network())
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, self.kubernetes, "cpus", None)

    def test_a_pod_that_never_comes_is_not_needed(self):
        self.kubernetes.cpus = 2.5
        process = self.start("--num-workers", "2:3", *MEMBER)
        wait_for(lambda: len(list(self.directory.glob("met-*-1-of-2"))) == 2, LIMIT_S, "two workers")  # the tracker waits 30 s for the third
        one = min(self.directory.glob("met-*-1-of-2"))
        self.kill_worker(int(one.name.split("-")[1]), int(one.read_text().split()[0]))
        # The second generation does not wait for the third worker again.
        wait_for(lambda: len(list(self.directory.glob("met-*-2-of-2"))) == 2, 15, "both workers")
        self.kubernetes.cpus = 0  # the third pod stays unscheduled even when the others end
        err = self.finish(process)
        self.assertIn("is waiting: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.", err)
        self.assertRegex(err, r"worker \d has no pod that runs, and is not needed: the work of the job is done")

    def test_a_pod_that_does_not_come_again_is_not_needed(self):
        for place in ([], ["--host-ip", "127.0.0.1"]):  # the tracker runs in a pod, or in dmlc-submit
            with self.subTest(place):
                for path in [*self.directory.glob("met-*"), *self.directory.glob("end")]:
                    path.unlink()
                self.kubernetes.cpus = None
                process = self.start("--num-workers", "1:2", "--replace-within", 0.5, *place, *MEMBER)
                self.wait_for_files("met-0-1-of-2", "met-1-1-of-2")
                self.kubernetes.cpus = 0
                self.kubernetes.run("delete", "pod", self.pod_of(1), "--wait=false", capture_output=True)
                self.wait_for_files("met-0-2-of-1")
                err = self.finish(process)
                self.assertIn("worker 1 has no pod that runs, and is not needed: the work of the job is done", err)

    def test_a_pod_that_comes_later_takes_part(self):
        process = self.start("--num-workers", "1:2", "--replace-within", 0.5, *MEMBER)
        self.wait_for_files("met-0-1-of-2", "met-1-1-of-2")
        self.kubernetes.cpus = 1.5
        self.kubernetes.run("delete", "pod", self.pod_of(1), "--wait=false", capture_output=True)
        self.wait_for_files("met-0-2-of-1")
        self.kubernetes.cpus = None
        self.wait_for_files("met-0-3-of-2", "met-1-3-of-2")
        self.finish(process)

    def test_a_worker_that_is_killed_again_and_again_is_given_up(self):
        process = self.start("--num-workers", "1:2", "--replace-within", 0.5, *DYING)
        self.wait_for_files("met-0-1-of-2", "met-1-1-of-2")
        self.file("die").touch()
        self.wait_for_files("met-0-2-of-1")
        said = self.wait_for_text(process.stderr, "its place is gone")
        self.assertRegex(said, r"worker 1 \(.*\) was .*, and Kubernetes does not replace its pod: too many have failed; "
                               r"the other one goes on without it: its place is gone")  # fmt: skip
        # Three processes are killed in the first pod, two in the second, one in the third.
        self.assertEqual(said.count("(SIGKILL)"), 6, said)
        self.finish(process)

    def test_too_few_workers_end_the_job(self):
        process = self.start("--num-workers", "2:2", *DYING)
        self.wait_for_files("met-0-1-of-2", "met-1-1-of-2")
        self.file("die").touch()
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 137, err)
        self.assertIn("1 of at least 2 workers are left", err.decode().splitlines()[-1])

    def test_a_written_manifest_of_an_elastic_job_replaces_pods_by_itself(self):
        process = self.submit("--num-workers", "1:2", "--kube-manifest", "job.yaml", *MEMBER)
        self.assertEqual(process.returncode, 0, process.err)
        applied = self.kubernetes.run("apply", "--server-side", "-f", "job.yaml", cwd=self.directory, capture_output=True, text=True)
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.addCleanup(self.kubernetes.run, "delete", "-f", self.file("job.yaml"), "--wait=false", capture_output=True)
        _, other = self.wait_for_files("met-0-1-of-2", "met-1-1-of-2")
        self.kill_worker(1, int(other.split()[0]))
        self.wait_for_files("met-0-2-of-2", "met-1-2-of-2")
        self.kubernetes.run("delete", "pod", self.pod_of(1), "--wait=false", capture_output=True)
        self.wait_for_files("met-0-3-of-2", "met-1-3-of-2")
        self.file("end").touch()

        def has_ended():
            done = self.kubernetes.run("get", "jobs", "-l", "dmlc-submit/role=worker", "-o", "json", capture_output=True)
            [job] = json.loads(done.stdout)["items"]
            return any(one["type"] == "Complete" for one in job["status"].get("conditions", []))

        wait_for(has_ended, LIMIT_S, "the end of the job")


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
        everything_elastic = [*everything[2:], "--num-workers", "2:3"]
        for options in ([], everything, ["--num-servers", 2, *everything], ["--no-tracker"], ["--host-ip", "127.0.0.1"],
                        everything_elastic):  # fmt: skip
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
