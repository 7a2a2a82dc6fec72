"""dmlc-submit --cluster kubernetes on a real Kubernetes whose only node is this machine (see real_kubernetes). WARREN_TEST_KUBECONFIG is an
administrator's kubeconfig for it. The image registry.example/xgb:1, made from this machine's Debian, has Python, procps, the libraries
that xgb-train is linked with, and Warren's wheel in /usr/local. The build's programs and the directory of each test are mounted into the
pods. dmlc-submit uses an account that has only the rights listed in docs/how-to/clusters.md."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml
from kubernetes_case import KubernetesBehaviour
from submit_case import LIMIT_S
from warren_testing import BIN, SOURCE, wait_for

KUBECONFIG = os.environ.get("WARREN_TEST_KUBECONFIG")
NAMESPACE = "warren-test"
IMAGE_PATH = "/usr/local/bin:/usr/bin:/bin"
KINDS = "jobs,services,secrets,pods"


def documented_role():
    """The Role in docs/how-to/clusters.md."""
    page = (SOURCE / "docs/how-to/clusters.md").read_text()
    return yaml.safe_load(re.search(r"```yaml\n(kind: Role\n.*?)```", page, re.DOTALL)[1])


class RealKubernetes:
    """Offers the part of StandInKubernetes's interface that KubernetesBehaviour uses. Tests may change `work` and `image_path`."""

    def __init__(self, directory):
        self.directory, self.kubectl = directory, shutil.which("kubectl")
        self.work, self.image_path = directory, f"{BIN}:{IMAGE_PATH}"
        self.run("delete", "namespace", NAMESPACE, "--ignore-not-found", capture_output=True)
        for words in (["create", "namespace", NAMESPACE], ["create", "serviceaccount", "submitter"]):
            self.run(*words, capture_output=True).check_returncode()
        self.apply(documented_role())
        self.run("create", "rolebinding", "submitter", "--role=dmlc-submit", f"--serviceaccount={NAMESPACE}:submitter",
                 capture_output=True).check_returncode()  # fmt: skip
        token = self.run("create", "token", "submitter", "--duration=24h", capture_output=True, text=True).stdout.strip()
        config = yaml.safe_load(pathlib.Path(KUBECONFIG).read_text())
        config["users"] = [{"name": "submitter", "user": {"token": token}}]
        for context in config["contexts"]:
            context["context"] = {**context["context"], "user": "submitter", "namespace": NAMESPACE}
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(config))
        account = ["get", "serviceaccount", "default"]
        wait_for(lambda: self.run(*account, capture_output=True).returncode == 0, LIMIT_S, "an account")

    def environment(self):
        return {"PATH": os.environ["PATH"], "KUBECONFIG": str(self.kubeconfig)}

    def run(self, *words, env=None, **settings):
        """Runs kubectl as the administrator."""
        environment = {**os.environ, "KUBECONFIG": KUBECONFIG, **(env or {})}
        command = [self.kubectl, "--namespace", NAMESPACE, *map(str, words)]
        return subprocess.run(command, env=environment, check=False, **settings)

    def apply(self, thing):
        self.run("apply", "--server-side", "-f", "-", input=json.dumps(thing), capture_output=True, text=True).check_returncode()

    def objects(self, kind=None):
        found = json.loads(self.run("get", KINDS, "-o", "json", capture_output=True).stdout)["items"]
        return sorted(f"{one['kind']}/{one['metadata']['name']}" for one in found if kind in (None, one["kind"]))

    def fail_pod(self, name):
        """Makes the kubelet fail the pod, by writing a file larger than the pod's ephemeral-storage limit."""
        command = ["dd", "if=/dev/zero", "of=/job/file", "bs=1M", "count=64"]
        self.run("exec", name, "--", *command, capture_output=True).check_returncode()

    def evict(self, name):
        """Evicts the pod as `kubectl drain` does."""
        eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
        self.run("create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction", "-f", "-", input=eviction, text=True,
                 capture_output=True).check_returncode()  # fmt: skip

    def template(self):
        """Writes a pod template that mounts this machine's working and build directories. Returns its path."""
        places = {"work": str(self.work), "build": str(BIN.parent)}
        container = {"workingDir": str(self.work), "env": [{"name": "PATH", "value": self.image_path}],
                     "volumeMounts": [{"name": name, "mountPath": path} for name, path in places.items()],
                     "resources": {"requests": {"cpu": "10m"}, "limits": {"ephemeral-storage": "50Mi"}}}  # fmt: skip
        volumes = [{"name": name, "hostPath": {"path": path}} for name, path in places.items()]
        path = self.directory / "template.yaml"
        path.write_text(json.dumps({"spec": {"volumes": volumes, "containers": [container]}}))
        return path


@unittest.skipUnless(KUBECONFIG, "SKIPPED: no real Kubernetes: WARREN_TEST_KUBECONFIG names none")
class Kubernetes(KubernetesBehaviour):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="warren-kubernetes-")
        cls.addClassCleanup(directory.cleanup)
        cls.kubernetes = RealKubernetes(pathlib.Path(directory.name))

    def cluster_options(self):
        options, path = super().cluster_options(), self.kubernetes.template()
        for role in ("worker", "server", "tracker"):
            options += [f"--kube-{role}-template", path]
        return options

    def test_a_container_that_takes_too_much_memory_is_named(self):
        code = "echo here; [ $DMLC_TASK_ID = 0 ] && exec sleep 600; exec python3 -c 'x = bytearray(1 << 30)'"
        process = self.submit("--num-workers", 2, "--worker-memory", "64m", "sh", "-c", code)
        self.assertEqual(process.returncode, 137, process.err)
        self.assertRegex(self.last_line(process), r"worker 1 \(.*\) was killed because it used more memory than its container's")

    def test_a_pod_that_is_evicted_is_replaced_and_said_to_be(self):
        code = "echo attempt $DMLC_NUM_ATTEMPT; [ $DMLC_NUM_ATTEMPT = 1 ] || exec sleep 600"
        process = self.start("--num-workers", 1, "--local-num-attempt", 1, "sh", "-c", code)
        self.wait_for_text(process.stdout, "[0] attempt 0")
        self.kubernetes.evict(*self.pods())
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out.decode()), (0, "[0] attempt 1\n"), err)
        self.assertIn("was ended by Kubernetes (EvictionByEvictionAPI: Eviction API: evicting) on attempt 1 of 2", err.decode())


del KubernetesBehaviour  # not a test by itself

if __name__ == "__main__":
    unittest.main()
