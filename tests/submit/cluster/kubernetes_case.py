"""Base classes for the tests of dmlc-submit --cluster kubernetes on a real Kubernetes and on the stand-in."""

import contextlib
import json
import os
import pathlib
import re
import signal
import time

import yaml
from cluster_case import MEMBER, READY, ClusterBehaviour, ClusterCase
from submit_case import LIMIT_S, PROGRAM
from warren_testing import BIN, wait_for

NO_IMAGE = "registry.invalid/none:1"


class KubernetesCase(ClusterCase):
    CLUSTER = "kubernetes"
    ERRORS_COME_APART = False
    CORES_ARE_SHARED = False

    def setUp(self):
        super().setUp()
        self.kubernetes.work = self.directory
        self.addCleanup(self.check_no_object_is_left)

    def cluster_options(self):
        return [*super().cluster_options(), "--kube-worker-image", "registry.example/xgb:1"]

    def cluster_environment(self):
        return self.kubernetes.environment()

    def threads_of_two(self):
        return 1  # the CPU limit of a worker's container

    def check_nothing_is_left(self, seconds=8):
        """Waits longer than on other clusters, since after a kill the watchdog deletes the objects twice, 2 s apart."""
        super().check_nothing_is_left(seconds)

    def check_no_object_is_left(self):
        try:
            wait_for(lambda: not self.kubernetes.objects(), 15, f"the end of {self.kubernetes.objects()}")
        finally:
            self.kubernetes.run("delete", "jobs,services,secrets", "-l", "app.kubernetes.io/managed-by=dmlc-submit", "--wait=false",
                                "--ignore-not-found", capture_output=True)

    def break_kubectl(self, condition):
        """Returns an environment in which kubectl first runs the shell code `condition`, which may exit. $verb in it is kubectl's subcommand."""
        folder = self.file("broken")
        folder.mkdir(exist_ok=True)
        (folder / "kubectl").write_text(f"#!/bin/sh\nfor verb; do case $verb in -*) ;; *) break ;; esac; done\n{condition}\n"
                                        f'exec {self.kubernetes.kubectl} "$@"\n')  # fmt: skip
        (folder / "kubectl").chmod(0o755)
        return {"PATH": f"{folder}:{self.kubernetes.environment()['PATH']}"}

    def kill_worker(self, task, pid):
        """Kills a worker's process. `pid` is its pid inside the container."""
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ids = re.search(r"^NSpid:(.*)", (path / "status").read_text(), re.MULTILINE)[1].split()
                variables = (path / "environ").read_bytes().split(b"\0")
                if ids[-1] == str(pid) and {self.mark.encode(), f"DMLC_TASK_ID={task}".encode()} <= set(variables):
                    return os.kill(int(path.name), signal.SIGKILL)
        return self.fail(f"worker {task} has no process {pid}")

    def pod_of(self, task):
        """The name of a worker's pending or running pod, the last one in kubectl's list, or None."""
        done = self.kubernetes.run("get", "pods", "-o", "json", "-l", f"dmlc-submit/role=worker,batch.kubernetes.io/job-completion-index={task}",
                                   capture_output=True)  # fmt: skip
        pods = [item["metadata"] for item in json.loads(done.stdout)["items"] if item["status"]["phase"] in ("Pending", "Running")]
        return pods[-1]["name"] if pods else None

    def pods(self, role="worker"):
        done = self.kubernetes.run("get", "pods", "-l", f"dmlc-submit/role={role}", "-o", "name", capture_output=True, text=True)
        return [line.split("/")[1] for line in done.stdout.split()]


class KubernetesBehaviour(ClusterBehaviour, KubernetesCase):
    """Tests that run both on a real Kubernetes and on the stand-in, in a derived class for each."""

    def test_kubernetes_is_asked_about_a_job_whose_launcher_is_lost_and_ends_it(self):
        name = self.lose_launcher("--num-workers", 1, "sh", "-c", READY, files=["ready-0"])
        status = self.warren("status", name)
        self.assertEqual(status.returncode, 1, status.stderr)
        (pod,) = self.pods()
        self.assertRegex(status.stdout, rf"kept +the objects of job \S+ on Kubernetes: .*{pod} +Running")
        cancelled = self.warren("cancel", name)
        self.assertEqual(cancelled.returncode, 0, cancelled.stderr)
        self.assertIn(" ended the objects of job", cancelled.stdout)

    def test_the_others_go_on_while_a_lost_pod_is_replaced(self):
        for way, story in ((lambda pod: self.kubernetes.run("delete", "pod", pod, "--wait=false", capture_output=True),
                            r"was told to end: its pod \S+ was deleted"),
                           (self.kubernetes.fail_pod, r"was ended by Kubernetes \(Evicted: .*\)")):  # fmt: skip
            with self.subTest(story):
                for path in self.directory.glob("met-*"):
                    path.unlink()
                self.file("end").unlink(missing_ok=True)
                *options, code = MEMBER
                process = self.start("--num-workers", "1:2", *options, code.replace("\nmeet()\n", "\nmeet()\nprint('here', flush=True)\n"))
                self.wait_for_text(process.stdout, "[1] here")
                way(self.pod_of(1))
                self.wait_for_files("met-0-2-of-2", "met-1-2-of-2")
                err = self.finish(process)
                self.assertRegex(err, rf"worker 1 \(.*\) {story}; the other one goes on, and it is started again")
                self.assertIn("generation 2 begins with 2 workers (task 0, 1)", err)

    def test_an_error_of_a_worker_ends_an_elastic_job(self):
        process = self.submit("--num-workers", "1:2", "sh", "-c", "[ $DMLC_TASK_ID = 0 ] || exit 3; exec sleep 600")
        self.assertEqual(process.returncode, 3, process.err)
        self.assertRegex(self.last_line(process), r"worker 1 \(.*\) exited with code 3")
        self.assertNotIn("started again", process.err)

    def test_a_train_job_has_a_fixed_number_of_workers(self):
        process = self.submit("--num-workers", "1:2", "--kube-kind", "trainjob", "--kube-manifest", "-", "true")
        self.assertEqual(process.returncode, 2, process.err)
        self.assertIn("--num-workers 1:2: --kube-kind trainjob cannot go on without a worker", process.err)

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
        code = "[ $DMLC_NUM_ATTEMPT = 1 ] || exit 3; sleep 6; echo survived"  # longer than the wait for the first attempt's end
        process = self.submit("--num-workers", 2, "--max-restarts", 1, "sh", "-c", code)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(process.out.count("survived"), 2)

    def test_what_a_process_leaves_in_its_container_is_gone_before_it_is_started_again(self):
        code = "[ $DMLC_NUM_ATTEMPT = 1 ] || { sleep 777 & until pgrep -cx sleep; do :; done; exit 1; }; pgrep -cx sleep"
        process = self.submit("--num-workers", 1, "--local-num-attempt", 1, "sh", "-c", code)
        self.assertRegex(process.out, r"\A(\[0\] 0\n)*\[0\] 1\n\[0\] 0\n\Z", process.err)  # 0 until the forked shell has exec'd sleep

    def test_a_worker_has_as_many_threads_as_its_container_has_cores(self):
        self.file("template.yaml").write_text("spec: {containers: [{resources: {limits: {cpu: 1500m}}}]}\n")
        for words, threads in (((), 1), (("--kube-worker-template", "template.yaml"), 2), (("--env", "OMP_NUM_THREADS=5"), 5)):
            process = self.submit("--num-workers", 1, *words, "sh", "-c", "echo $OMP_NUM_THREADS")
            self.assertEqual((process.returncode, process.out), (0, f"[0] {threads}\n"), process.err)

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
        self.interrupt(process, signal.SIGTERM)
        self.assertLess(time.monotonic() - began, 12)  # dmlc-submit does not wait for kubectl to exit

    def test_pods_that_are_not_made_are_told(self):
        none = '[ "$verb" != get ] || { echo \'{"items": []}\'; exit 0; }'
        process = self.start("--num-workers", 1, "true", environment=self.break_kubectl(none))
        self.wait_for_text(process.stderr, "Kubernetes has created 0 of 1 pods")
        self.interrupt(process, signal.SIGTERM)

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

    def test_what_pods_wait_for_is_told(self):
        process = self.start("--num-workers", 1, "--no-tracker", "--kube-worker-image", NO_IMAGE, "true")
        self.wait_for_text(process.stderr, "is waiting: ErrImagePull")
        self.interrupt(process)

    def test_a_cluster_without_room_is_told(self):
        process = self.start("--num-workers", 1, "--no-tracker", "--worker-memory", "1000g", "true")
        self.assertRegex(self.wait_for_text(process.stderr, "is waiting: Unschedulable: "), r"0/\d nodes are available: \d Insufficient")
        self.interrupt(process, signal.SIGTERM)

    def test_a_job_that_takes_too_long_is_told(self):
        process = self.submit("--num-workers", 1, "--time-limit", 5, "sleep", "600")
        self.assertEqual(process.returncode, 1, process.err)
        self.assertIn("of Kubernetes has ended: DeadlineExceeded", self.last_line(process))

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
        """Another client creates a Job with the job's random name just before dmlc-submit does."""
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
        self.assertIn("kubectl is not on PATH", process.err)

    def separate(self):
        """Makes the processes run in a different directory from dmlc-submit."""
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
        self.assertIn("at most 1 MiB of files", self.last_line(process))
        process = self.submit("--num-workers", 1, "wc", "-c", "big")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn("[0] 1048577 big", process.out)
        self.assertIn("'big' is too big to ship", process.err)

    def test_the_environment_is_on_no_command_line(self):
        process = self.start("--num-workers", 1, "--env", "TOKEN=s3cr3t-token", "sh", "-c", READY)
        self.ready(1)
        lines = [(entry / "cmdline").read_bytes() for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()
                 if (entry / "cmdline").exists() and entry.name != str(process.pid)]
        self.assertEqual([line for line in lines if b"s3cr3t-token" in line and not line.startswith(PROGRAM.encode())], [])
        pods = self.kubernetes.run("get", "pods,jobs", "-o", "json", capture_output=True).stdout
        self.assertNotIn(b"s3cr3t-token", pods)
        self.interrupt(process, signal.SIGTERM)

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
