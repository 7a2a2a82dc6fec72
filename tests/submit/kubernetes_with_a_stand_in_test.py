"""dmlc-submit --cluster kubernetes with a stand-in for Kubernetes and kubectl (stand_in_kubernetes), and its manifests
against the schemas of the real API server."""

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
from cluster_case import ClusterBehaviour, ClusterCase
from stand_in_kubernetes import StandInKubernetes
from submit_case import LIMIT_S, PROGRAM
from warren_testing import BIN, wait_for

WHY_NOT = stand_in_kubernetes.why_not()
VERSIONS = ("1.29", "1.31", "1.33", "1.35")
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
READY = "echo ready > ready-$DMLC_TASK_ID; exec sleep 600"


def own_network():
    """This thread, and what it starts from now on, in a network of its own that nobody else listens in: the tracker's port is
    fixed. Returns how to leave it."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "no network of its own")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    def leave():
        libc.setns(before, NEW_NETWORK)
        os.close(before)

    return leave


class KubernetesCase(ClusterCase):
    CLUSTER = "kubernetes"
    ERRORS_COME_APART = False

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="warren-kubernetes-")
        cls.addClassCleanup(directory.cleanup)
        cls.kubernetes = StandInKubernetes(pathlib.Path(directory.name) / "cluster", directory.name)
        cls.kubernetes.image_path = f"{BIN}:{os.environ['PATH']}"
        cls.addClassCleanup(cls.kubernetes.close)

    def setUp(self):
        super().setUp()
        self.kubernetes.work = self.directory
        self.addCleanup(self.check_no_object_is_left)

    def cluster_options(self):
        return [*super().cluster_options(), "--kube-worker-image", "registry.example/xgb:1"]

    def cluster_environment(self):
        return self.kubernetes.environment()

    def check_nothing_is_left(self, seconds=8):
        """After a kill the watchdog deletes twice, with 2 s between."""
        super().check_nothing_is_left(seconds)

    def check_no_object_is_left(self):
        try:
            wait_for(lambda: not self.kubernetes.objects(), 15, f"the end of {self.kubernetes.objects()}")
        finally:
            self.kubernetes.run("delete", "jobs,services,secrets", "-l", "app.kubernetes.io/managed-by=dmlc-submit", "--wait=false",
                                "--ignore-not-found", capture_output=True)

    def break_kubectl(self, condition):
        """From now on kubectl runs these lines of a shell first, which may exit; `verb` is what it is asked to do."""
        folder = self.file("broken")
        folder.mkdir(exist_ok=True)
        (folder / "kubectl").write_text(f"#!/bin/sh\nfor verb; do case $verb in -*) ;; *) break ;; esac; done\n{condition}\n"
                                        f'exec {self.kubernetes.kubectl} "$@"\n')  # fmt: skip
        (folder / "kubectl").chmod(0o755)
        return {"PATH": f"{folder}:{self.kubernetes.environment()['PATH']}"}

    def pods(self, role="worker"):
        done = self.kubernetes.run("get", "pods", "-l", f"dmlc-submit/role={role}", "-o", "name", capture_output=True, text=True)
        return [line.split("/")[1] for line in done.stdout.split()]


@unittest.skipIf(WHY_NOT, WHY_NOT)
class KubernetesWithAStandIn(ClusterBehaviour, KubernetesCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(own_network())
        super().setUpClass()

    def test_a_pod_that_is_lost_is_replaced(self):
        code = "echo attempt $DMLC_NUM_ATTEMPT; [ $DMLC_TASK_ID.$DMLC_NUM_ATTEMPT = 0.1 ] || exec sleep 600"
        process = self.start("--num-workers", 1, "--local-num-attempt", 1, "sh", "-c", code)
        self.wait_for_text(process.stdout, "[0] attempt 0")
        (pod,) = self.pods()
        self.kubernetes.fail_pod(pod)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(b"[0] attempt 1", out)
        self.assertRegex(err.decode(), r"worker 0 \(host \S+, pid \d+\) was ended by Kubernetes \(Evicted.*on attempt 1 of 2; starting it again")

    def test_a_pod_is_lost_after_its_process_was_started_again_in_it(self):
        code = ("echo attempt $DMLC_NUM_ATTEMPT; [ ! -e failed ] && { echo x > failed; exit 5; }; "
                "[ -e lost ] || { echo x > lost; exec sleep 600; }; echo done")  # fmt: skip
        process = self.start("--num-workers", 1, "--local-num-attempt", 2, "sh", "-c", code)
        self.wait_for_files("lost")
        self.wait_for_text(process.stdout, "[0] attempt 1")
        (pod,) = self.pods()
        self.kubernetes.fail_pod(pod)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(b"[0] done", out)
        self.assertRegex(err.decode(), r"exited with code 5 on attempt 1 of 3; starting it again\n"
                                       r".*was ended by Kubernetes \(Evicted.*on attempt 2 of 3; starting it again")  # fmt: skip

    def test_a_job_that_was_started_again_lives_on(self):
        code = "[ $DMLC_NUM_ATTEMPT = 1 ] || exit 3; sleep 6; echo survived"  # longer than the first is waited for
        process = self.submit("--num-workers", 2, "--max-restarts", 1, "sh", "-c", code)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(process.out.count("survived"), 2)

    def test_what_a_process_leaves_in_its_container_is_gone_before_it_is_started_again(self):
        code = "[ $DMLC_NUM_ATTEMPT = 1 ] || { sleep 777 & until pgrep -cx sleep; do :; done; exit 1; }; pgrep -cx sleep"
        process = self.submit("--num-workers", 1, "--local-num-attempt", 1, "sh", "-c", code)
        self.assertRegex(process.out, r"\A(\[0\] 0\n)*\[0\] 1\n\[0\] 0\n\Z", process.err)  # 0 while the shell becomes sleep

    def test_odd_letters_arrive_as_they_are(self):
        odd = ["\x7f", "a\u0085b \u2028 c", "\ufeffx", "\U0001f600", "\x1e\x1b", "tab\there"]
        code = "import sys; print([word.encode() for word in sys.argv[1:]])"
        process = self.submit("--num-workers", 1, "--env", f"ODD={odd[1]}", "/usr/bin/python3", "-c", code, *odd)
        self.assertEqual(process.out, f"[0] {[word.encode() for word in odd]}\n", process.err)

    def test_a_log_that_cannot_be_read_is_told_and_fails_no_job(self):
        environment = self.break_kubectl('[ "$verb" != logs ] || { echo "Error from server (Forbidden): no logs" >&2; exit 1; }')
        process = self.submit("--num-workers", 2, "--local-num-attempt", 1, "true", environment=environment)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertRegex(process.err, "the log of pod .* cannot be read: Error from server .Forbidden.: no logs")

    def test_who_may_not_ask_for_pods_is_told(self):
        environment = self.break_kubectl('[ "$verb" != get ] || { echo "Error from server (Forbidden): pods" >&2; exit 1; }')
        process = self.submit("--num-workers", 1, "true", environment=environment)
        self.assertEqual(process.returncode, 1)
        self.assertIn("kubectl get: Error from server (Forbidden): pods", self.last_line(process))

    def test_a_delete_that_fails_is_tried_again(self):
        away = '[ "$verb" != delete ] || [ -e tried ] || { echo x > tried; echo "Unable to connect to the server" >&2; exit 1; }'
        process = self.submit("--num-workers", 1, "true", environment=self.break_kubectl(away))
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn("kubectl delete exited with code 1: Unable to connect", process.err)
        self.assertEqual([name for name in self.kubernetes.objects() if not name.startswith("Pod/")], [])

    def test_a_kubectl_that_hangs_holds_nobody_for_long(self):
        hang = '[ "$verb" != get ] || { echo x > asked; sleep 600; exit 1; }'
        process = self.start("--num-workers", 1, "true", environment=self.break_kubectl(hang))
        self.wait_for_files("asked")
        began = time.monotonic()
        os.kill(self.submit_pid(), signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 143)
        self.assertLess(time.monotonic() - began, 12)  # less than it is asked to be patient

    def test_pods_that_are_not_made_are_told(self):
        none = '[ "$verb" != get ] || { echo \'{"items": []}\'; exit 0; }'
        process = self.start("--num-workers", 1, "true", environment=self.break_kubectl(none))
        self.wait_for_text(process.stderr, "Kubernetes has made 0 of 1 pods")
        os.kill(self.submit_pid(), signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)

    def test_a_train_job_runs_as_kubeflow_would_run_it(self):
        """Without a Kubeflow: its pods' command and environment are taken from the manifest, what the runtime sets is set here."""
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

    def test_servers_find_their_scheduler_by_its_name(self):
        code = ("import os, socket, time\n"
                "address = (os.environ['DMLC_PS_ROOT_URI'], int(os.environ['DMLC_PS_ROOT_PORT']))\n"
                "if os.environ['DMLC_ROLE'] == 'scheduler':\n"
                "    with socket.create_server(('0.0.0.0', address[1])) as server:\n"
                "        for _ in range(2): server.accept()[0].sendall(b'hello')\n"
                "else:\n"
                "    for _ in range(100):\n"
                "        try: connection = socket.create_connection(address); break\n"
                "        except ConnectionError: time.sleep(0.1)\n"
                "    print(connection.recv(5).decode())\n")  # fmt: skip
        process = self.submit("--num-workers", 1, "--num-servers", 1, "/usr/bin/python3", "-c", code)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(process.out.splitlines()), ["[0] hello", "[server 0] hello"])

    def test_a_container_that_takes_too_much_memory_is_named(self):
        process = self.start("--num-workers", 2, "sh", "-c", "echo here; " + READY)
        self.ready(2)
        self.wait_for_text(process.stdout, "[1] here")
        self.kubernetes.kill_container(sorted(self.pods())[1])
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 137, err)
        self.assertRegex(err.decode().splitlines()[-1], r"worker 1 \(.*\) was killed because it took more memory than its container may")

    def test_a_pod_that_is_deleted_by_others_is_named(self):
        process = self.start("--num-workers", 2, "sh", "-c", "echo here; " + READY)
        self.ready(2)
        self.wait_for_text(process.stdout, "[0] here")
        self.kubernetes.run("delete", "pod", sorted(self.pods())[0], "--wait=false", capture_output=True)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("worker 0 ", err.decode().splitlines()[-1])

    def test_a_job_that_is_deleted_by_others_is_over(self):
        process = self.start("--num-workers", 2, "sh", "-c", READY)
        self.ready(2)
        self.kubernetes.run("delete", "jobs", "-l", "dmlc-submit/role=worker", "--wait=false", capture_output=True)
        process.communicate(timeout=LIMIT_S)
        self.assertNotEqual(process.returncode, 0)

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

    def test_what_pods_wait_for_is_told(self):
        self.kubernetes.images_missing.add("registry.example/xgb:1")
        self.addCleanup(self.kubernetes.images_missing.clear)
        process = self.start("--num-workers", 1, "--no-tracker", "true")
        self.wait_for_text(process.stderr, "waits: ErrImagePull")
        os.kill(self.submit_pid(), signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130)

    def test_a_cluster_without_room_is_told(self):
        self.kubernetes.unschedulable = True
        self.addCleanup(setattr, self.kubernetes, "unschedulable", False)
        process = self.start("--num-workers", 1, "true")
        self.wait_for_text(process.stderr, "waits: Unschedulable: 0/3 nodes are available")
        os.kill(self.submit_pid(), signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 143)

    def test_an_image_without_the_tracker_is_told(self):
        path, self.kubernetes.image_path = self.kubernetes.image_path, "/usr/bin:/bin"
        self.addCleanup(setattr, self.kubernetes, "image_path", path)
        process = self.submit("--num-workers", 1, "sleep", "600")
        self.assertEqual(process.returncode, 1, process.err)
        self.assertRegex(self.last_line(process), r"the tracker \(pod \S+\) exited with code 127.*--kube-tracker-image")

    def test_what_the_api_server_refuses_is_told(self):
        process = self.submit("--num-workers", 1, "--kube-namespace", "Not A Name", "true")
        self.assertEqual(process.returncode, 1, process.err)
        self.assertIn("kubectl apply exited with code 1", self.last_line(process))

    def test_a_name_that_others_have_taken_is_told_and_what_is_theirs_stays(self):
        """Its letters at random are guessed: others take the name just before dmlc-submit does."""
        pod = {"restartPolicy": "Never", "containers": [{"name": "worker", "image": "theirs", "command": ["theirs"]}]}
        theirs = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "NAME"},
                  "spec": {"parallelism": 0, "completions": 7, "template": {"spec": pod}}}  # fmt: skip
        self.file("theirs").write_text(json.dumps(theirs))
        take = f"""[ "$verb" != apply ] || {{
                    cat > wanted
                    exec < wanted
                    name=$(sed -n 's/^  name: \\(taken-.*-worker\\)$/\\1/p' wanted | head -1)
                    [ -z "$name" ] || sed "s/NAME/$name/" theirs |
                        {self.kubernetes.kubectl} apply --server-side --field-manager=another -f - > taken || exit 99; }}"""
        process = self.submit("--num-workers", 2, "--jobname", "taken", "sh", "-c", "echo ran",
                              environment=self.break_kubectl(take))  # fmt: skip
        (name,) = self.kubernetes.objects("Job")
        self.addCleanup(self.kubernetes.run, "delete", name.lower(), capture_output=True)
        self.assertEqual((process.returncode, process.out), (1, ""), process.err)
        self.assertRegex(self.last_line(process), r"kubectl apply exited with code 1: error: Apply failed with \d conflicts: "
                                                  r'conflicts with "another": / .*- \.spec\.completions / ')  # fmt: skip
        self.assertRegex(name, "^Job/taken-.{5}-worker$")
        self.assertEqual(self.file("taken").read_text(), f"job.batch/{name.split('/')[1]} serverside-applied\n")
        job = self.kubernetes.run("get", name.lower(), "-o", "json", capture_output=True, text=True).stdout
        spec = yaml.safe_load(job)["spec"]
        self.assertEqual((spec["completions"], spec["parallelism"]), (7, 0))
        self.assertEqual(spec["template"]["spec"]["containers"][0]["image"], "theirs")
        self.assertEqual([one for one in self.kubernetes.objects() if not one.startswith("Pod/")], [name])

    def test_without_kubectl_it_says_so(self):
        process = self.submit("--num-workers", 1, "true", environment={"PATH": "/nowhere"})
        self.assertEqual(process.returncode, 1, process.err)
        self.assertIn("there is no kubectl on PATH", process.err)

    def separate(self):
        """From now on processes run in another directory than dmlc-submit."""
        self.kubernetes.work = self.file("work")
        self.kubernetes.work.mkdir()

    def test_files_and_archives_are_where_the_processes_run(self):
        self.separate()
        super().test_files_and_archives_are_where_the_processes_run()

    def test_files_that_the_command_names_are_sent_along(self):
        self.separate()
        folder = self.file("folder")
        folder.mkdir()
        (folder / "a script.sh").write_text('cat "$1"\n')
        (folder / "named.bin").write_bytes(b"named \xff\n")
        process = self.start("--num-workers", 1, "sh", "folder/a script.sh", "folder/named.bin")
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(out, b"[0] named \xff\n")

    def test_files_that_are_too_big_are_refused_and_programs_taken_to_be_there(self):
        self.file("big").write_bytes(b"\0" * (1 << 20) + b"\0")
        process = self.submit("--num-workers", 1, "--files", "big", "true")
        self.assertEqual(process.returncode, 2, process.err)
        self.assertIn("no more than 1 MiB of files", self.last_line(process))
        process = self.submit("--num-workers", 1, "wc", "-c", "big")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn("[0] 1048577 big", process.out)
        self.assertIn("'big' is too big to be sent along", process.err)

    def test_the_environment_is_on_no_command_line(self):
        process = self.start("--num-workers", 1, "--env", "TOKEN=s3cr3t-token", "sh", "-c", READY)
        self.ready(1)
        lines = [(entry / "cmdline").read_bytes() for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()
                 if (entry / "cmdline").exists() and entry.name != str(process.pid)]
        self.assertEqual([line for line in lines if b"s3cr3t-token" in line and not line.startswith(PROGRAM.encode())], [])
        pods = self.kubernetes.run("get", "pods,jobs", "-o", "json", capture_output=True).stdout
        self.assertNotIn(b"s3cr3t-token", pods)
        os.kill(self.submit_pid(), signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)

    def test_a_written_manifest_runs_by_itself(self):
        rows = [f"{i % 2} 1:{i % 7} 2:{(i * 5) % 11}" for i in range(200)]
        self.file("train.svm").write_text("\n".join(rows) + "\n")
        process = self.submit("--num-workers", 2, "--kube-manifest", "job.yaml", BIN / "xgb-train", "/dev/null", "data=train.svm",
                              "num_round=2", "objective=binary:logistic", "model_out=model.json")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(self.kubernetes.objects(), [])
        self.assertEqual(self.file("job.yaml").stat().st_mode & 0o77, 0)
        applied = self.kubernetes.run("apply", "--server-side", "-f", "job.yaml", cwd=self.directory, capture_output=True, text=True)
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.wait_for_files("model.json")
        self.kubernetes.run("delete", "-f", "job.yaml", "--wait=false", cwd=self.directory, capture_output=True)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Schemas(KubernetesCase):
    """By kubernetes-validate, which has the API server's schemas."""

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


del ClusterBehaviour  # it is no test of its own

if __name__ == "__main__":
    unittest.main()
