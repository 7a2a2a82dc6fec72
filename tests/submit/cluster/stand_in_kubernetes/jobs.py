"""The Job controller."""

import copy
import random
import time

from .objects import BATCH, TERMINAL, now


class Job:
    """The Job controller's state of one Job, in addition to the stored object."""

    def __init__(self, cluster, thing):
        self.cluster, self.object, self.spec = cluster, thing, thing["spec"]
        self.began = time.monotonic()
        self.counted, self.succeeded, self.failed_indexes = set(), set(), set()  # pod uids; indexes (pod uids if not indexed); indexes
        self.failed = self.in_a_row = 0
        self.failures, self.ignored = {}, {}  # by index; used only with backoffLimitPerIndex
        self.start_at = {}  # the earliest time of the next start, by index with backoffLimitPerIndex, otherwise by None
        self.verdict = None  # tuple of condition, reason and message
        self.ended = None
        thing["status"] = {"startTime": now()}

    indexed = property(lambda self: self.spec["completionMode"] == "Indexed")

    def pods(self):
        uid = self.object["metadata"]["uid"]
        return [pod for pod in self.cluster.pods.values()
                if pod.object["metadata"]["ownerReferences"][0]["uid"] == uid
                and self.cluster.find("Pod", pod.namespace, pod.name) is pod.object]

    def index(self, pod):
        text = pod.object["metadata"].get("annotations", {}).get(BATCH + "job-completion-index")
        return None if text is None else int(text)

    def count(self, pod):
        """Counts a pod that has ended or, unless podReplacementPolicy is Failed, is being deleted. Counts each pod only once."""
        phase = pod.object["status"]["phase"]
        gone = phase not in TERMINAL and pod.kill_at is not None and self.spec["podReplacementPolicy"] != "Failed"
        if pod.uid in self.counted or not (phase in TERMINAL or gone):
            return
        self.counted.add(pod.uid)
        index = self.index(pod)
        if phase == "Succeeded":
            self.succeeded.add(index if self.indexed else pod.uid)
            self.in_a_row = 0
            return
        action, text = self._policy(pod) if phase == "Failed" else ("Count", "")
        per_index = "backoffLimitPerIndex" in self.spec
        key = index if per_index else None
        self.in_a_row += 1
        if action == "Ignore":
            self.ignored[index] = self.ignored.get(index, 0) + 1
        else:
            self.failed += 1
            before = self.failures.get(index, 0)
            if per_index and before >= self.spec["backoffLimitPerIndex"]:
                self.failed_indexes.add(index)
            self.failures[index] = before + 1
        if action == "FailJob" and not self.verdict:
            self.verdict = ("Failed", "PodFailurePolicy", text)
        times = self.failures.get(index, 0) + self.ignored.get(index, 0) if per_index else self.in_a_row
        self.start_at[key] = time.monotonic() + self.cluster.backoff_s * min(2 ** (times - 1), 36)

    def _policy(self, pod):
        status = pod.object["status"]
        for i, rule in enumerate(self.spec.get("podFailurePolicy", {}).get("rules", [])):
            if "onExitCodes" in rule:
                codes = rule["onExitCodes"]
                for one in status.get("containerStatuses", []):
                    code = one["state"].get("terminated", {}).get("exitCode", 0)
                    if (code and codes.get("containerName", one["name"]) == one["name"]
                            and (code in codes["values"]) == (codes["operator"] == "In")):
                        return rule["action"], (f"Container {one['name']} for pod {pod.namespace}/{pod.name} failed with exit "
                                                f"code {code} matching {rule['action']} rule at index {i}")
            for wanted in rule.get("onPodConditions", []):
                if any(one["type"] == wanted["type"] and one["status"] == wanted["status"] for one in status["conditions"]):
                    return rule["action"], (f"Pod {pod.namespace}/{pod.name} has condition {wanted['type']} matching "
                                            f"{rule['action']} rule at index {i}")
        return "Count", ""

    def _judge(self, running):
        spec, done, completions = self.spec, len(self.succeeded), self.spec.get("completions")
        if self.failed > spec["backoffLimit"]:
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if "activeDeadlineSeconds" in spec and time.monotonic() >= self.began + spec["activeDeadlineSeconds"]:
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        if len(self.failed_indexes) > spec.get("maxFailedIndexes", 2**31):
            return "Failed", "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        if self.failed_indexes and done + len(self.failed_indexes) >= completions:
            return "Failed", "FailedIndexes", "Job has failed indexes"
        if done >= completions if completions is not None else done and not running:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def sync(self):
        """Does everything that is due now. Returns the seconds until the next call is due, or None if only a change makes one necessary."""
        cluster, now, pods = self.cluster, time.monotonic(), self.pods()
        for pod in pods:
            self.count(pod)
        delays = []
        if self.ended is None:
            unfinished = [pod for pod in pods if pod.object["status"]["phase"] not in TERMINAL]
            active = [pod for pod in unfinished if pod.kill_at is None]
            self.verdict = self.verdict or self._judge(active)
            if self.verdict:
                self._condition("FailureTarget" if self.verdict[0] == "Failed" else "SuccessCriteriaMet")
                for pod in active:
                    pod.delete()
                active = []
                unfinished = [pod for pod in self.pods() if pod.object["status"]["phase"] not in TERMINAL]
                if not unfinished:
                    self._condition(self.verdict[0])
                    self.ended = now
            else:
                delays += self._start_more(active, unfinished, now)
                if "activeDeadlineSeconds" in self.spec:
                    delays.append(self.began + self.spec["activeDeadlineSeconds"] - now)
            self._say(unfinished)
        if self.ended is not None and "ttlSecondsAfterFinished" in self.spec:
            delays.append(self.ended + self.spec["ttlSecondsAfterFinished"] - now)
            if delays[-1] <= 0:
                cluster.forget(self.object)
                return None
        return min(delays, default=None)

    def _condition(self, kind):
        conditions = self.object["status"].setdefault("conditions", [])
        if not any(one["type"] == kind for one in conditions):
            conditions.append({"type": kind, "status": "True", "reason": self.verdict[1], "message": self.verdict[2],
                               "lastProbeTime": now(), "lastTransitionTime": now()})
            if kind == "Complete":
                self.object["status"]["completionTime"] = now()

    def _say(self, unfinished):
        """Writes the status, omitting zeros except in `ready` and `terminating`."""
        active = [pod for pod in self.pods() if pod.kill_at is None and pod.object["status"]["phase"] not in TERMINAL]
        numbers = {"active": len(active), "succeeded": len(self.succeeded), "failed": self.failed}
        if self.indexed:
            numbers["completedIndexes"] = _intervals(self.succeeded)
            if "backoffLimitPerIndex" in self.spec:
                numbers["failedIndexes"] = _intervals(self.failed_indexes)
        status = self.object["status"]
        for name, value in numbers.items():
            status.pop(name, None)
            if value:
                status[name] = value
        status["ready"] = sum(pod.object["status"]["phase"] == "Running" for pod in active)
        status["terminating"] = sum(pod.kill_at is not None for pod in unfinished)

    def _start_more(self, active, unfinished, now):
        spec, delays = self.spec, []
        present = unfinished if spec["podReplacementPolicy"] == "Failed" else active
        completions = spec.get("completions")
        if self.indexed:
            taken = {self.index(pod) for pod in present} | self.succeeded | self.failed_indexes
            free = [index for index in range(completions) if index not in taken]
        else:
            if completions is None:
                wanted = 0 if self.succeeded else spec["parallelism"]
            else:
                wanted = completions - len(self.succeeded)
            free = [None] * max(0, wanted - len(present))
        for index in free[:max(0, spec["parallelism"] - len(present))]:
            wait = self.start_at.get(index if "backoffLimitPerIndex" in spec else None, 0) - now
            if wait > 0:
                delays.append(wait)
            else:
                self._start(index)
        return delays

    def _start(self, index):
        meta, template = self.object["metadata"], copy.deepcopy(self.spec["template"])
        thing = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"], "status": {}}
        lead, base = meta["name"], "-" if index is None else f"-{index}-"
        if index is not None:
            text, key = str(index), BATCH + "job-completion-index"
            thing["metadata"].setdefault("annotations", {})[key] = thing["metadata"]["labels"][key] = text
            if "backoffLimitPerIndex" in self.spec:
                thing["metadata"]["annotations"][BATCH + "job-index-failure-count"] = str(self.failures.get(index, 0))
                if self.ignored.get(index):
                    thing["metadata"]["annotations"][BATCH + "job-index-ignored-failure-count"] = str(self.ignored[index])
            template["spec"]["hostname"] = f"{lead}-{index}"
            for container in template["spec"]["containers"]:
                env = container.setdefault("env", [])
                if all(one["name"] != "JOB_COMPLETION_INDEX" for one in env):
                    env.append({"name": "JOB_COMPLETION_INDEX",
                                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{key}']"}}})
        name = lead[:58 - len(base)] + base + "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
        thing["metadata"].update(name=name, namespace=meta["namespace"], ownerReferences=[
            {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True,
             "blockOwnerDeletion": True}])
        self.cluster.add(thing)


def _intervals(indexes):
    parts = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
                    for first, last in parts)
