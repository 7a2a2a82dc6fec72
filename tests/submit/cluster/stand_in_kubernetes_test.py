"""Tests of the stand-in for Kubernetes: it behaves as the launcher's tests assume."""

import base64
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import stand_in_kubernetes
from stand_in_kubernetes import StandInKubernetes

WHY_NOT = stand_in_kubernetes.why_not()
DOMAIN = "svc.cluster.local"
APPLY = ("apply", "--server-side")


def job_of(name, *command, container=None, pod=None, **spec):
    """A Job. A one-word command is run by a shell, with each $ doubled, since Kubernetes turns $$ into $."""
    command = ["sh", "-c", command[0].replace("$", "$$")] if len(command) == 1 else list(command)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {**spec, "template": {"spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **(pod or {}),
        "containers": [{"name": "worker", "image": "an/image", "command": command, **(container or {})}]}}}}


def indexed(count, **spec):
    return {"completionMode": "Indexed", "completions": count, "parallelism": count, **spec}


def secret_of(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "data": {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}}


def service_of(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"clusterIP": "None", **spec}}


@unittest.skipIf(WHY_NOT, WHY_NOT)
class StandInCase(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.work = self.directory / "work"
        self.work.mkdir()
        self.cluster = StandInKubernetes(self.directory / "kubernetes", self.work)
        self.addCleanup(self.check_nothing_is_left)
        self.addCleanup(self.cluster.close)
        self.cluster.backoff_s = 0.05

    def check_no_process_is_left(self):
        mark = os.fsencode(self.directory)
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    self.assertNotIn(mark, (entry / "cmdline").read_bytes(), entry)
                    self.assertFalse(os.readlink(entry / "cwd").startswith(str(self.directory)), entry)
                except OSError:
                    continue

    def check_nothing_is_left(self):
        self.check_no_process_is_left()
        self.assertNotIn(str(self.directory), pathlib.Path("/proc/self/mountinfo").read_text())
        self.assertFalse([path for path in (self.directory / "kubernetes").rglob("*") if path.name == "socket"])
        self.assertFalse((self.directory / "kubernetes" / "pods").exists())

    def kubectl(self, *words, input="", code=0):
        done = self.cluster.run(*words, input=input, capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stderr if code else done.stdout

    def apply(self, *things, code=0, manager="tests"):
        return self.kubectl(*APPLY, "--field-manager", manager, "-f", "-", code=code,
                            input="\n---\n".join(["", *map(json.dumps, things)]))

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def stored(self, kind):
        """The objects of a kind, as `get` would show them. Does not run kubectl, so frequent calls are cheap."""
        with self.cluster.changed:
            return json.loads(json.dumps([thing for (_, one, _), thing in self.cluster.store.items() if one == kind]))

    def pods(self, name="it"):
        return [pod for pod in self.stored("Pod") if pod["metadata"]["labels"]["job-name"] == name]

    def job(self, name="it"):
        return next((job for job in self.stored("Job") if job["metadata"]["name"] == name), None)

    def wait(self, condition, what, seconds=10):
        end = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > end:
                self.fail(f"{what}: {json.dumps(self.get('pods,jobs'), indent=1)}")
            time.sleep(0.03)
        return value

    def conditions(self, name="it"):
        return {one["type"]: one for one in self.job(name)["status"].get("conditions", [])}

    def wait_job(self, condition, name="it"):
        return self.wait(lambda: self.conditions(name).get(condition), condition)

    def wait_running(self, name="it", count=1):
        return self.wait(lambda: len(found := [pod for pod in self.pods(name) if pod["status"]["phase"] == "Running"]) == count
                         and found, "running")

    def ran(self, *command, **more):
        """Runs a Job to its end. Returns its only pod and the log."""
        self.apply(job_of("it", *command, backoffLimit=0, **more))
        self.wait(lambda: self.conditions().keys() & {"Complete", "Failed"}, "the end")
        [pod] = self.pods()
        return pod, self.kubectl("logs", pod["metadata"]["name"])

    def state(self, pod):
        return pod["status"]["containerStatuses"][0]["state"]

    def waits(self, reason, name="it"):
        return self.wait(lambda: [pod for pod in self.pods(name) if pod["status"].get("containerStatuses")
                                  and self.state(pod).get("waiting", {}).get("reason") == reason], reason)[0]


class Objects(StandInCase):
    def refused(self, thing, *texts):
        before = self.cluster.objects(thing["kind"])
        error = self.apply(thing, code=1)
        for text in texts:
            self.assertIn(text, error)
        self.assertEqual(self.cluster.objects(thing["kind"]), before)

    def test_what_is_applied_is_said_and_is_found_and_deleted(self):
        out = self.apply(secret_of("s", a=b"x"), service_of("h"), job_of("it", "true"))
        self.assertEqual(out, "secret/s serverside-applied\nservice/h serverside-applied\njob.batch/it serverside-applied\n")
        self.apply(secret_of("t"))
        self.assertEqual(self.kubectl("get", "secrets,svc", "-oname"), "secret/s\nsecret/t\nservice/h\n")
        self.assertEqual(self.get("secret", "s")["data"], {"a": "eA=="})
        self.assertIn('secrets "u" not found', self.kubectl("get", "secret", "u", "-o", "json", code=1))
        self.assertEqual(self.kubectl("delete", "secret/s", "svc/h"), 'secret "s" deleted\nservice "h" deleted\n')
        self.assertIn("NotFound", self.kubectl("delete", "secret", "s", code=1))
        self.assertEqual(self.kubectl("delete", "secret", "s", "--ignore-not-found"), "")
        nothing = self.get("pods", "-l", "a=b")
        self.assertEqual((nothing["kind"], nothing["items"]), ("List", []))

    def test_namespaces_are_apart_and_must_be_there(self):
        error = self.kubectl(*APPLY, "-nother", "-f-", input=json.dumps(secret_of("s")), code=1)
        self.assertIn('namespaces "other" not found', error)
        self.cluster.namespaces.add("other")
        self.kubectl("--namespace=other", *APPLY, "-f", "-", input=json.dumps(secret_of("s")))
        self.assertEqual(self.get("secrets")["items"], [])
        self.assertEqual(self.kubectl("get", "secrets", "--namespace", "other", "-o", "name"), "secret/s\n")
        thing = {**secret_of("x"), "metadata": {"name": "x", "namespace": "default"}}
        self.assertIn("does not match the namespace", self.kubectl(*APPLY, "-f-", "-nother", input=json.dumps(thing), code=1))

    def test_a_stream_of_json_has_no_separators(self):
        two = [json.dumps(secret_of(name)) for name in "ab"]
        self.assertIn("invalid character '-'", self.kubectl(*APPLY, "-f", "-", input="\n---\n".join(two), code=1))
        self.assertEqual(self.cluster.objects(), ["Secret/a"])
        self.kubectl(*APPLY, "-f", "-", input=two[1] + two[0].replace('"a"', '"c"'))
        self.assertEqual(self.cluster.objects(), ["Secret/a", "Secret/b", "Secret/c"])

    def test_what_is_there_already_stays_as_it_is(self):
        first, second = job_of("it", "true", **indexed(2)), secret_of("s", a=b"x")
        self.apply(first, second)
        self.wait_job("Complete")
        before = self.stored("Job"), self.stored("Secret")
        said = "job.batch/it serverside-applied\nsecret/s serverside-applied\n"
        self.assertEqual(self.apply(first, second), said)
        self.assertEqual(self.apply(second, manager="another"), said.splitlines(True)[1])  # another manager may apply the same value
        self.assertEqual((self.stored("Job"), self.stored("Secret")), before)
        error = self.apply(job_of("it", "true", **indexed(3)), secret_of("t"), code=1)
        self.assertIn("the stand-in does not change what there is: job.batch/it: .spec.completions, .spec.parallelism", error)
        self.assertIn(".data.a", self.apply(secret_of("s"), code=1))  # its manager now omits .data.a, which would remove it
        text = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "u"}, "stringData": {"a": "x"}}
        self.apply(text)
        self.apply(text)
        self.assertIn(".stringData.a", self.apply({**text, "stringData": {"a": "y"}}, code=1))
        self.assertEqual(self.stored("Job"), before[0])
        self.assertEqual(self.cluster.objects("Secret"), ["Secret/s", "Secret/t", "Secret/u"])

    def test_what_others_have_applied_is_a_conflict(self):
        def theirs():
            stored = self.stored("Job") + self.stored("Secret")
            return [{**thing, "status": None} for thing in stored if thing["metadata"]["name"] != "t"]

        self.apply(secret_of("s", a=b"theirs"), job_of("it", "true", parallelism=0), manager="another")
        before = theirs()
        error = self.apply(secret_of("s", a=b"mine"), secret_of("t"), code=1)
        self.assertIn('error: Apply failed with 1 conflict: conflict with "another": .data.a\nPlease review the fields', error)
        error = self.apply(job_of("it", "false", parallelism=1, container={"image": "of/mine"}), service_of("h"), code=1)
        self.assertIn('error: Apply failed with 3 conflicts: conflicts with "another":\n- .spec.parallelism\n- .spec.template.'
                      'spec.containers[name="worker"].image\n- .spec.template.spec.containers[name="worker"].command\n', error)
        self.assertEqual(theirs(), before)
        self.assertEqual(self.cluster.objects(), ["Job/it", "Secret/s", "Secret/t", "Service/h"])
        self.kubectl("delete", "secret", "s")
        self.apply(secret_of("s", a=b"mine"))
        self.assertEqual(self.get("secret", "s")["data"], {"a": base64.b64encode(b"mine").decode()})

    def test_it_is_applied_by_the_server_alone(self):
        thing = json.dumps(secret_of("s", a=b"x"))
        for words in (["-f", "-"], ["-f-", "--server-side=false"]):
            self.assertIn("the stand-in applies with --server-side only", self.kubectl("apply", *words, input=thing, code=1))
        self.assertIn("must specify one of -f and -k", self.kubectl(*APPLY, code=1))
        self.assertIn("no objects passed to apply", self.kubectl(*APPLY, "-f", "-", code=1))
        self.assertIn("does not exist", self.kubectl(*APPLY, "-f", "/no/such", code=1))
        self.assertEqual(self.cluster.objects(), [])
        self.kubectl("apply", "-f-", "--field-manager=a", "--server-side", input=thing)
        self.kubectl(*APPLY, "-f-", input=thing)
        self.assertEqual([*self.cluster.managers.values()], [{"a": {".data.a"}, "kubectl": {".data.a"}}])

    def test_fields_must_be_known_and_of_their_types(self):
        self.refused(job_of("it", "true", x=1), "Error from server: failed to create typed patch object (default/it; "
                                                "batch/v1, Kind=Job): .spec.x: field not declared in schema")
        self.refused(job_of("it", "true", container={"environment": []}),
                     '.spec.template.spec.containers[name="worker"].environment: field not declared in schema')
        self.refused(job_of("it", "true", container={"env": [{"name": "A", "value": 1}, {"value": ""}, {"name": "A"}]}),
                     '.env[name="A"].value: expected string, got', 'element 1: associative list with keys has an element that '
                     'omits key field "name"', 'env: duplicate entries for key [name="A"]')
        self.refused(job_of("it", "true", backoffLimit="1"), ".spec.backoffLimit: expected numeric")
        self.refused(job_of("it", "true", backoffLimit=2**31), "cannot unmarshal number 2147483648")
        self.refused({**job_of("it", "true"), "spec": []}, "(default/it; batch/v1, Kind=Job): .spec: expected map")
        self.refused({**secret_of("s"), "data": {"a": "%"}}, "illegal base64 data")
        self.refused({**secret_of("s"), "kind": "Deployment"}, 'no matches for kind "Deployment"')
        self.assertIn("expected string", self.kubectl(*APPLY, "-f-", code=1, input=(
            "apiVersion: v1\nkind: Secret\nmetadata: {name: c}\nstringData: {a: 1e3}")))

    def test_names_labels_and_keys_have_their_syntax(self):
        for name in ("A", "a_b", "-a", "a.", "a" * 254):
            self.refused({**secret_of("x"), "metadata": {"name": name}}, "metadata.name: Invalid value")
        self.refused(service_of("1a"), "metadata.name")
        self.refused(job_of("a" * 64, "true"), "must be no more than 63 characters")
        self.refused(job_of("a" * 62, "true", **indexed(1)), "invalid DNS label")
        self.apply(job_of("a" * 61, "true", **indexed(1)))
        self.refused(job_of("b" * 61, "true", **indexed(11)), "invalid DNS label")
        for labels in ({"a": "b c"}, {"a b": "c"}, {"a": "x" * 64}, {"a": "-"}):
            self.refused({**secret_of("x"), "metadata": {"name": "x", "labels": labels}}, "metadata.labels: Invalid value")
        self.refused({**secret_of("s"), "stringData": {"a/b": ""}}, "a valid config key")
        self.refused(secret_of("s", a=bytes(2**20 + 1)), "may not be more than 1048576 bytes")
        self.refused(job_of("x", "true", pod={"hostname": "a.b"}), "spec.template.spec.hostname")
        self.refused(job_of("x", "true", container={"env": [{"name": "1A"}]}), "env[0].name")

    def test_a_job_keeps_to_its_rules(self):
        for policy in ("Always", "OnFailure"):
            self.refused(job_of("x", "true", pod={"restartPolicy": policy}), f'Unsupported value: "{policy}"')
        self.refused(job_of("x", "true", completionMode="Indexed", parallelism=2), "spec.completions: Required")
        self.refused(job_of("x", "true", backoffLimitPerIndex=1), "requires indexed completion mode")
        self.refused(job_of("x", "true", **indexed(1, maxFailedIndexes=1)), "backoffLimitPerIndex: Required")
        self.refused(job_of("x", "true", container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]}), 'Not found: "v"')
        for codes in ({"operator": "In", "values": [0]}, {"operator": "In", "values": [2, 1]},
                      {"operator": "In", "values": [1, 1]},
                      {"operator": "In", "values": []}, {"operator": "In", "values": [1], "containerName": "x"},
                      {"operator": "In", "values": list(range(1, 257))}):  # fmt: skip
            policy = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
            self.refused(job_of("x", "true", podFailurePolicy=policy), "podFailurePolicy.rules[0].onExitCodes")
        policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
        self.refused(job_of("x", "true", podFailurePolicy=policy, podReplacementPolicy="TerminatingOrFailed"),
                     "podReplacementPolicy")
        self.apply(job_of("x", "true", podFailurePolicy=policy))
        self.assertEqual(self.get("job", "x")["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"], "True")

    def test_resources_are_quantities_within_their_limits(self):
        def resources(**amounts):
            return job_of("x", "true", container={"resources": amounts})

        self.refused(resources(limits={"memory": "1g"}), "quantities must match")
        self.refused(resources(limits={"memory": "1GB"}), "quantities must match")
        self.refused(resources(limits={"cpus": 1}), "must be a standard resource")
        self.refused(resources(limits={"cpu": "1"}, requests={"cpu": "1001m"}), "less than or equal to cpu limit")
        self.refused(resources(requests={"nvidia.com/gpu": 1}), "Limit must be set")
        self.refused(resources(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 2}),
                     "must be equal to nvidia.com/gpu limit")
        self.apply(resources(limits={"nvidia.com/gpu": 2, "memory": "1Gi"}, requests={"memory": "1e3", "cpu": 0.5}))

    def test_what_kubectl_does_not_know_is_refused(self):
        self.assertIn("error: unknown flag: --nonsense", self.kubectl("get", "pods", "--nonsense", code=1))
        self.assertIn("unknown shorthand flag: 'q'", self.kubectl("get", "pods", "-q", code=1))
        self.assertIn("flag needs an argument", self.kubectl("get", "pods", "-l", code=1))
        self.assertIn('the stand-in has no "create"', self.kubectl("create", "-f", "-", code=1))
        self.assertIn("or the stand-in has not", self.kubectl("get", "pods", "--watch", code=1))
        self.assertIn("doesn't have a resource type", self.kubectl("get", "things", "-o", "json", code=1))
        self.assertIn("no name was specified", self.kubectl("delete", "pods", code=1))
        done = self.cluster.run("get", "pods", env={stand_in_kubernetes.VARIABLE: "/no/such"}, capture_output=True, text=True)
        self.assertEqual((done.returncode, "was refused" in done.stderr), (1, True))


class Containers(StandInCase):
    def test_the_environment_is_the_manifests(self):
        data = secret_of("s", KEY=b"$(A)")
        env = [{"name": "A", "value": "a"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "KEY"}}},
               {"name": "B", "value": "$(A) $$(A) $(LATER) $(KEY) $$x $"}, {"name": "LATER", "value": "1"},
               {"name": "I", "value": "$(JOB_COMPLETION_INDEX)"},
               {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
               {"name": "NOTE", "valueFrom": {"fieldRef": {
                   "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}]
        self.apply(data)
        code = 'printf "%s|" "$@"; env'
        _, log = self.ran("bash", "-c", code, "bash", "$(A)", "$(NO)", "$$(A)", **indexed(1), container={
            "env": env, "resources": {"limits": {"cpu": "1500m"}, "requests": {"cpu": "1"}}})
        self.assertTrue(log.startswith("a|$(NO)|$(A)|"), log)
        values = dict(line.split("=", 1) for line in log.rpartition("|")[2].splitlines())
        self.assertEqual(values["B"], "a $(A) $(LATER) $(A) $x $")
        self.assertEqual((values["KEY"], values["CORES"]), ("$(A)", "2"))
        # JOB_COMPLETION_INDEX comes after the manifest's variables, so they cannot refer to it.
        self.assertEqual((values["JOB_COMPLETION_INDEX"], values["I"], values["NOTE"]), ("0", "$(JOB_COMPLETION_INDEX)", "0"))
        self.assertEqual(values["HOSTNAME"], "it-0")
        mine = {*(one["name"] for one in env), "PATH", "HOSTNAME", "HOME", "PWD", "JOB_COMPLETION_INDEX", "OLDPWD", "SHLVL", "_"}
        self.assertEqual({name for name in values if not name.startswith("KUBERNETES_")} - mine, set())

    def test_it_is_alone_in_its_namespaces_and_works_in_work(self):
        _, log = self.ran("echo $$; hostname; pwd; readlink /proc/self/fd/0; ls -d /proc/[0-9]* | wc -l; touch made")
        self.assertEqual(log.splitlines()[0], "1")
        self.assertTrue(log.splitlines()[1].startswith("it-"))
        self.assertEqual(log.splitlines()[2:4], [str(self.work), "/dev/null"])
        self.assertLess(int(log.splitlines()[4]), 5)
        self.assertTrue((self.work / "made").exists())

    def test_nothing_outlives_the_first_process(self):
        self.ran("for i in 1 2 3; do setsid sh -c 'echo on > alive; sleep 77' & done;"
                 "while [ ! -e alive ]; do sleep 0.01; done")
        self.check_no_process_is_left()

    def test_the_end_is_as_a_runtime_says(self):
        for name, code, wanted in [("a", "exit 3", 3), ("b", "sh -c 'kill -9 $$'; exit $?", 137),
                                   ("c", "kill -9 $$; kill $$; exit 4", 4)]:
            self.apply(job_of(name, code, backoffLimit=0))
            self.wait_job("Failed", name)
            ended = self.state(self.pods(name)[0])["terminated"]
            self.assertEqual((ended["exitCode"], ended["reason"]), (wanted, "Error"), code)
        self.apply(job_of("d", "sleep 60", backoffLimit=0))
        [pod] = self.wait_running("d")
        self.cluster.kill_container(pod["metadata"]["name"])
        self.wait_job("Failed", "d")
        ended = self.state(self.pods("d")[0])["terminated"]
        self.assertEqual((ended["exitCode"], ended["reason"]), (137, "OOMKilled"))

    def test_what_is_no_program_is_a_start_error(self):
        for name, program, text in [("a", "no-such-program", 'exec: "no-such-program": executable file not found in $PATH'),
                                    ("b", "/no/such", "stat /no/such: no such file or directory"),
                                    ("c", "/etc/passwd", "permission denied")]:
            self.apply(job_of(name, program, "x", backoffLimit=0))
            self.wait_job("Failed", name)
            [pod] = self.pods(name)
            ended = self.state(pod)["terminated"]
            self.assertEqual((pod["status"]["phase"], ended["exitCode"], ended["reason"]), ("Failed", 128, "StartError"))
            self.assertIn(text, ended["message"])

    def test_what_cannot_be_made_waits(self):
        self.apply(secret_of("s", A=b"\xff"))
        self.apply(job_of("it", "echo $A", container={"env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "A"}}}]}))
        pod = self.waits("CreateContainerError")
        self.assertEqual(pod["status"]["phase"], "Pending")
        self.assertIn("UTF-8", self.state(pod)["waiting"]["message"])
        self.apply(job_of("none", "true", container={"env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "late", "key": "A"}}}]}))
        self.waits("CreateContainerConfigError", "none")
        self.apply(secret_of("late", A=b"x"))
        self.wait_job("Complete", "none")

    def test_volumes_are_mounted_without_a_trace(self):
        self.apply(secret_of("s", a_txt=b"text", b=b""))
        volumes = [{"name": "s", "secret": {"secretName": "s"}}]
        mounts = [{"name": "s", "mountPath": place} for place in ("/stand-in-new/secret", "/etc/stand-in-new/e", str(self.work / "e"))]
        code = ("cat /stand-in-new/secret/a.txt; stat -Lc %a e/a.txt; touch /stand-in-new/secret/x 2> /dev/null || echo read-only;"
                "cat /etc/stand-in-new/e/a.txt; echo kept > kept; head -1 /etc/passwd")
        _, log = self.ran(code, pod={"volumes": volumes}, container={"volumeMounts": mounts})
        self.assertIn("text644\nread-only\ntextroot:", log)
        self.assertFalse(os.path.exists("/stand-in-new") or os.path.exists("/etc/stand-in-new"))
        self.assertEqual((self.work / "kept").read_text(), "kept\n")
        self.cluster.close()
        self.assertEqual([path.name for path in self.work.iterdir()], ["kept"])

    def test_a_pod_waits_for_its_secret(self):
        self.apply(job_of("it", "cat /stand-in-new/a", pod={"volumes": [{"name": "s", "secret": {"secretName": "s"}}]},
                           container={"volumeMounts": [{"name": "s", "mountPath": "/stand-in-new"}]}))
        time.sleep(0.3)
        self.waits("ContainerCreating")
        self.apply(secret_of("s", a=b"late"))
        self.wait_job("Complete")
        self.assertEqual(self.kubectl("logs", self.pods()[0]["metadata"]["name"]), "late")

    def test_peers_are_found_by_name_once_they_are_there(self):
        code = (f"for name in it-0.group it-1.group.default.{DOMAIN} it-1.group; do "
                "until getent hosts $name; do sleep 0.02; done; done; touch seen-$JOB_COMPLETION_INDEX;"
                "until [ -e seen-0 -a -e seen-1 ]; do sleep 0.02; done")  # a pod that has ended has no DNS name
        labels = {"job-name": "it"}
        self.apply(job_of("it", code, pod={"subdomain": "group"}, **indexed(2)))
        [pod, _] = self.wait_running(count=2)
        time.sleep(0.3)
        self.assertEqual(self.kubectl("logs", pod["metadata"]["name"]), "")
        self.apply(service_of("wrong", selector=labels), service_of("group", selector=labels, publishNotReadyAddresses=True))
        self.wait_job("Complete")
        log = self.kubectl("logs", pod["metadata"]["name"])
        self.assertEqual(len(re.findall("^127.0.0.1", log, re.MULTILINE)), 3, log)


class Logs(StandInCase):
    def follow(self, pod, *words):
        stream = subprocess.Popen([self.cluster.kubectl, "logs", "-f", pod, *words], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, **self.cluster.environment()})
        self.addCleanup(stream.communicate)
        self.addCleanup(stream.kill)
        return stream

    def test_both_streams_with_times_and_in_pieces(self):
        pod, log = self.ran("echo out; sleep 0.05; echo err >&2; sleep 0.05;"
                            "head -c 40000 /dev/zero | tr '\\0' x; echo; printf end")
        lines = ["out", "err", "x" * 40000, "end"]
        self.assertEqual(log, "\n".join(lines))
        log = self.kubectl("logs", "--timestamps", pod["metadata"]["name"], "-c", "worker")
        stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z "
        self.assertRegex(log, "".join(f"{stamp}{line}\n" for line in lines)[:-1] + r"\Z")

    def test_since_has_whole_seconds(self):
        pod, log = self.ran("echo one; sleep 1.1; echo two")
        stamps = [line.split()[0] for line in self.kubectl("logs", "--timestamps=true", pod["metadata"]["name"]).splitlines()]
        since = self.kubectl("logs", f"--since-time={stamps[1]}", pod["metadata"]["name"])
        self.assertEqual(since, "two\n")
        # --since-time is rounded down to whole seconds, so the line of that time is printed again.
        self.assertIn("one", self.kubectl("logs", "--since-time", stamps[0], pod["metadata"]["name"]))

    def test_followed_until_the_end(self):
        self.apply(job_of("it", "echo a; while [ ! -e go ]; do sleep 0.02; done; printf b"))
        [pod] = self.wait_running()
        stream = self.follow(pod["metadata"]["name"])
        self.assertEqual(stream.stdout.readline(), "a\n")
        self.assertEqual(self.kubectl("logs", pod["metadata"]["name"]), "a\n")
        (self.work / "go").touch()
        self.assertEqual(stream.communicate(timeout=10)[0], "b")
        self.assertEqual(stream.returncode, 0)

    def test_a_broken_stream_ends_as_if_all_was_well(self):
        self.apply(job_of("it", "echo a; sleep 60"))
        [pod] = self.wait_running()
        stream = self.follow(pod["metadata"]["name"])
        stream.stdout.readline()
        self.cluster.break_logs()
        self.assertEqual((stream.communicate(timeout=10)[0], stream.returncode), ("", 0))
        self.assertEqual(self.pods()[0]["status"]["phase"], "Running")

    def test_a_client_that_is_killed_leaves_nothing(self):
        self.apply(job_of("it", "echo a; sleep 60"))
        [pod] = self.wait_running()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            stream = self.follow(pod["metadata"]["name"])
            stream.stdout.readline()
            self.assertEqual(len(self.cluster.streams), 1)
            stream.send_signal(number)
            self.assertEqual(stream.wait(10), -number)
            self.wait(lambda: not self.cluster.streams, "the end of the stream")

    def test_what_has_no_logs_says_why(self):
        self.assertIn('Error from server (NotFound): pods "x" not found', self.kubectl("logs", "x", code=1))
        self.cluster.start_delay_s = 2
        self.apply(job_of("it", "true"))
        pod = self.waits("ContainerCreating")["metadata"]["name"]
        self.assertEqual(self.kubectl("logs", "-f", pod, code=1), f'Error from server (BadRequest): container "worker" in pod '
                                                                  f'"{pod}" is waiting to start: ContainerCreating\n')
        self.assertIn("container x is not valid for pod", self.kubectl("logs", pod, "-c", "x", code=1))

    def test_images_that_cannot_be_pulled_and_nodes_without_room(self):
        self.cluster.images_missing.add("an/image")
        self.apply(job_of("it", "true"))
        pod = self.waits("ErrImagePull")
        self.assertEqual(pod["status"]["phase"], "Pending")
        pod = self.waits("ImagePullBackOff")["metadata"]["name"]
        self.assertIn("is waiting to start", self.kubectl("logs", pod, code=1))
        self.cluster.images_missing.clear()
        self.wait_job("Complete")
        self.apply(job_of("other", "true", container={"resources": {"requests": {"memory": "1000Gi"}}}))
        [pod] = self.wait(lambda: self.pods("other"), "a pod")
        [condition] = pod["status"]["conditions"]
        self.assertEqual((condition["type"], condition["status"], condition["reason"]),
                         ("PodScheduled", "False", "Unschedulable"))
        self.assertNotIn("containerStatuses", pod["status"])
        self.assertEqual(self.kubectl("logs", "-f", pod["metadata"]["name"]), "")
        self.kubectl("delete", "job", "other")
        self.wait(lambda: not self.pods("other"), "the pod's end")

    def test_a_pod_waits_for_the_cpus_that_others_have(self):
        self.cluster.cpus = 2.5
        self.apply(job_of("it", "exec sleep 600", **indexed(3), container={"resources": {"requests": {"cpu": "1"}}}))
        self.wait_running(count=2)
        [late] = [pod for pod in self.pods() if pod["status"]["phase"] == "Pending"]
        self.assertIn("Insufficient cpu", late["status"]["conditions"][0]["message"])
        gone = self.wait_running(count=2)[0]["metadata"]["name"]
        self.kubectl("delete", "pod", gone, "--wait=false")
        self.wait(lambda: len(names := [pod["metadata"]["name"] for pod in self.pods() if pod["status"]["phase"] == "Running"]) == 2
                  and gone not in names, "another one in its place")  # fmt: skip
        self.cluster.cpus = None
        self.wait_running(count=3)


class Jobs(StandInCase):
    def test_indexed_pods_and_their_marks(self):
        self.apply(job_of("it", "echo $JOB_COMPLETION_INDEX; hostname", **indexed(3, backoffLimitPerIndex=0, parallelism=2)))
        self.assertEqual(self.wait_job("Complete")["reason"], "CompletionsReached")
        found = {pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: pod for pod in self.pods()}
        self.assertEqual(sorted(found), ["0", "1", "2"])
        for index, pod in found.items():
            meta, uid = pod["metadata"], self.job()["metadata"]["uid"]
            self.assertRegex(meta["name"], rf"^it-{index}-[a-z0-9]{{5}}$")
            self.assertEqual(meta["labels"], {"job-name": "it", "controller-uid": uid, "batch.kubernetes.io/job-name": "it",
                                              "batch.kubernetes.io/controller-uid": uid,
                                              "batch.kubernetes.io/job-completion-index": index})
            self.assertEqual(meta["annotations"]["batch.kubernetes.io/job-index-failure-count"], "0")
            self.assertEqual(pod["spec"]["hostname"], f"it-{index}")
            self.assertEqual(self.kubectl("logs", meta["name"]), f"{index}\nit-{index}\n")
        by_name = sorted(self.pods(), key=lambda pod: pod["metadata"]["name"])
        self.assertEqual(self.get("pods", "-l", "job-name=it")["items"], by_name)
        status = self.get("job", "it")["status"]
        self.assertEqual((status["succeeded"], status["completedIndexes"]), (3, "0-2"))
        self.assertNotIn("active", status)

    def test_tries_end_with_the_backoff_limit(self):
        self.apply(job_of("it", "exit 1", backoffLimit=1), job_of("plain", "true", completions=3, parallelism=2))
        failed = self.wait_job("Failed")
        self.assertEqual(failed["reason"], "BackoffLimitExceeded")
        self.assertEqual(failed["message"], "Job has reached the specified backoff limit")
        self.assertEqual((self.job()["status"]["failed"], len(self.pods())), (2, 2))
        self.wait_job("Complete", "plain")
        self.assertEqual(len(self.pods("plain")), 3)

    def test_tries_are_counted_by_index(self):
        code = '[ $JOB_COMPLETION_INDEX = 0 ] || { echo x >> tries; exit 7; }; echo $COUNT'
        self.apply(job_of("it", code, **indexed(2, backoffLimitPerIndex=2)))
        self.assertEqual(self.wait_job("Failed")["reason"], "FailedIndexes")
        counts = [pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] for pod in self.pods()
                  if "-1-" in pod["metadata"]["name"]]
        self.assertEqual(sorted(counts), ["0", "1", "2"])
        status = self.job()["status"]
        self.assertEqual((status["failedIndexes"], status["completedIndexes"], status["failed"]), ("1", "0", 3))

    def test_a_failed_job_ends_its_other_pods_and_keeps_those_that_ended(self):
        code = ('[ $JOB_COMPLETION_INDEX = 1 ] && { while [ ! -e ready ]; do sleep 0.02; done; exit 7; };'
                'trap "sleep 0.3; touch got; exit 0" TERM; touch ready; while :; do sleep 0.02; done')
        self.apply(job_of("it", code, **indexed(2, backoffLimitPerIndex=0, maxFailedIndexes=0)))
        self.wait_job("FailureTarget")
        self.assertNotIn("Failed", self.conditions())  # this condition follows once all pods have ended
        self.assertEqual(self.wait_job("Failed")["reason"], "MaxFailedIndexesExceeded")
        self.assertTrue((self.work / "got").exists())
        # A pod that was asked to end is removed once it has ended.
        self.wait(lambda: [self.state(pod)["terminated"]["exitCode"] for pod in self.pods()] == [7], "the failed pod alone")

    def test_the_pod_failure_policy_decides(self):
        rules = [{"action": "FailJob", "onExitCodes": {"containerName": "worker", "operator": "In", "values": [42]}},
                 {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
        code = "while [ ! -e go ]; do sleep 0.02; done; exit 42"
        self.apply(job_of("it", code, backoffLimit=0, podFailurePolicy={"rules": rules}))
        [pod] = self.wait_running()
        self.cluster.fail_pod(pod["metadata"]["name"])
        found = self.wait(lambda: len(pods := self.pods()) == 2 and pods, "a second pod")
        [evicted] = [one for one in found if one["metadata"]["name"] == pod["metadata"]["name"]]
        self.assertEqual((evicted["status"]["phase"], evicted["status"]["reason"]), ("Failed", "Evicted"))
        self.assertIn(("DisruptionTarget", "True"), [(one["type"], one["status"]) for one in evicted["status"]["conditions"]])
        self.assertEqual(self.state(evicted)["terminated"]["exitCode"], 137)
        self.assertNotIn("failed", self.job()["status"])
        (self.work / "go").touch()
        failed = self.wait_job("Failed")
        self.assertEqual(failed["reason"], "PodFailurePolicy")
        self.assertRegex(failed["message"], r"^Container worker for pod default/it-\S+ failed with exit code 42 matching "
                                            r"FailJob rule at index 0$")

    def test_deadline_and_time_to_live(self):
        self.apply(job_of("it", "sleep 60", activeDeadlineSeconds=1, ttlSecondsAfterFinished=1,
                           pod={"terminationGracePeriodSeconds": 0}))
        self.assertEqual(self.wait_job("Failed")["reason"], "DeadlineExceeded")
        self.assertEqual(self.pods(), [])
        self.wait(lambda: not self.cluster.objects(), "the job's end")

    def test_deletion_is_a_request_then_force(self):
        self.apply(job_of("it", 'trap "echo asked" TERM; echo ready; while :; do sleep 0.02; done'))
        [pod] = self.wait_running()
        name = pod["metadata"]["name"]
        self.wait(lambda: self.kubectl("logs", name), "ready")
        begin = time.monotonic()
        self.kubectl("delete", "job", "it")
        self.assertEqual(self.cluster.objects("Job"), [])
        self.wait(lambda: "asked" in self.kubectl("logs", name), "SIGTERM")
        self.assertIn("deletionTimestamp", self.pods()[0]["metadata"])
        self.wait(lambda: not self.cluster.objects(), "the pod's end")
        self.assertGreater(time.monotonic() - begin, 0.9)
        self.assertIn("NotFound", self.kubectl("logs", name, code=1))

    def test_a_deleted_pod_is_replaced_and_waited_for(self):
        self.apply(job_of("it", "exec sleep 60"))
        [pod] = self.wait_running()
        begin = time.monotonic()
        # A PID 1 without a handler ignores SIGTERM, so the pod ends only with SIGKILL.
        name = pod["metadata"]["name"]
        self.assertEqual(self.kubectl("delete", "pod", name), f'pod "{name}" deleted\n')
        self.assertGreater(time.monotonic() - begin, 0.9)
        [other] = self.wait_running()
        self.assertNotEqual(other["metadata"]["name"], pod["metadata"]["name"])
        self.assertEqual(self.job()["status"]["failed"], 1)
        self.kubectl("delete", "jobs,pods", "-l", "job-name=it", "--wait=false", "--ignore-not-found=true")


class Closing(StandInCase):
    def test_close_ends_what_runs(self):
        self.apply(job_of("it", f"cd {self.work}; setsid sleep 66.5 & trap '' TERM; sleep 66.5", **indexed(3)))
        self.wait_running(count=3)
        begin = time.monotonic()
        self.cluster.close()
        self.assertLess(time.monotonic() - begin, 5)
        self.check_nothing_is_left()
        done = self.cluster.run("get", "pods", capture_output=True, text=True)
        self.assertIn("was refused", done.stderr)


if __name__ == "__main__":
    unittest.main()
