"""A pod's life cycle and its volumes."""

import signal
import time

from .objects import contents, now
from .runtime import Container
from .syntax import FIELD, quantity

ADDRESS = "127.0.0.1"
NODE_BYTES = 64 << 30  # memory of each of the three simulated nodes


class Pod:
    """A pod, which runs in its own thread. `object` is its object in the API server."""

    def __init__(self, cluster, thing):
        self.cluster, self.object, self.namespace = cluster, thing, thing["metadata"]["namespace"]
        self.name, self.uid = thing["metadata"]["name"], thing["metadata"]["uid"]
        self.hostname = (thing["spec"].get("hostname") or self.name)[:63].rstrip("-.")
        self.directory = cluster.directory / "pods" / self.uid
        self.hosts = self.directory / "hosts"
        self.containers = [Container(self, spec) for spec in thing["spec"]["containers"]]
        self.scheduled = self.over = False
        self.address = self.failed = self.kill_at = None
        self.conditions = {}
        self.update()
        cluster.thread(self._live)

    def ending(self):
        return self.cluster.closing or self.failed is not None or self.kill_at is not None

    def requested(self, resource):
        requests = [container.get("resources", {}).get("requests", {}) for container in self.object["spec"]["containers"]]
        return sum(quantity(one.get(resource, "0")) for one in requests)

    def _lacks(self):
        """The missing resource: memory if the pod requests more than any node has, cpu if the other pods leave too few CPUs, otherwise None."""
        if self.requested("memory") > NODE_BYTES:
            return "memory"
        taken = sum(pod.requested("cpu") for pod in self.cluster.pods.values() if pod is not self and pod.scheduled and not pod.over)
        return "cpu" if self.cluster.cpus is not None and taken + self.requested("cpu") > self.cluster.cpus else None

    def field(self, path):
        part, key = FIELD.fullmatch(path).groups()
        return self.object["metadata"].get(part, {}).get(key, "")

    def update(self):
        """Updates the status in the pod's object in the API server."""
        spec, states = self.object["spec"], [container.state for container in self.containers]
        codes = [state["terminated"]["exitCode"] for state in states if "terminated" in state]
        if all(container.final for container in self.containers):
            phase = "Failed" if any(codes) or self.failed or len(codes) < len(states) else "Succeeded"
        else:
            phase = "Pending" if any("waiting" in state for state in states) else "Running"
        ready = phase == "Running" and all("running" in state for state in states)
        conditions = {"PodScheduled": {"status": "True"}} if self.scheduled else {
            "PodScheduled": {"status": "False", "reason": "Unschedulable",
                             "message": f"0/3 nodes are available: 3 Insufficient {self._lacks()}."}} if self._lacks() else {}
        if self.scheduled:
            reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
            why = {} if ready else {"reason": reason}
            conditions.update({"Initialized": {"status": "True"}, "ContainersReady": {"status": str(ready), **why},
                               "Ready": {"status": str(ready), **why}})
        conditions.update(self.conditions)
        before = {(one["type"], one["status"]): one["lastTransitionTime"]
                  for one in self.object["status"].get("conditions", [])}
        status = {"phase": phase, "conditions": [
            {"type": kind, "lastProbeTime": None, "lastTransitionTime": before.get((kind, rest["status"]), now()), **rest}
            for kind, rest in conditions.items()]}
        if self.scheduled:
            spec["nodeName"] = "stand-in"
            status.update(hostIP=ADDRESS, startTime=self.object["status"].get("startTime", now()),
                          containerStatuses=[container.status() for container in self.containers])
        if self.address:
            status.update(podIP=self.address, podIPs=[{"ip": self.address}])
        if self.failed:
            status.update(reason=self.failed[0], message=self.failed[1])
        self.object["status"] = status
        self.cluster.touch()

    def evict(self):
        self.failed = ("Evicted", "The node was low on resource: memory.")
        self.conditions["DisruptionTarget"] = {"status": "True", "reason": "TerminationByKubelet", "message": self.failed[1]}
        self.update()
        self.cluster.thread(self._terminate, time.monotonic() + 1)  # the kubelet's grace period is 1 s, too

    def delete(self):
        """Sends SIGTERM, and SIGKILL after the grace period."""
        if self.kill_at is not None:
            return
        grace = self.object["spec"]["terminationGracePeriodSeconds"]
        self.kill_at = time.monotonic() + grace
        self.object["metadata"].update(deletionTimestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + grace)),
                                       deletionGracePeriodSeconds=grace)
        if self.over or not self.scheduled:
            self.cluster.forget_pod(self)
        if not self.over:
            self.cluster.thread(self._terminate)
        self.cluster.touch()

    def _terminate(self, kill_at=None):
        cluster = self.cluster
        with cluster.changed:
            for container in self.containers:
                container.signal(signal.SIGTERM)
            while not self.over and not cluster.closing and (left := (kill_at or self.kill_at) - time.monotonic()) > 0:
                cluster.changed.wait(left)
            for container in self.containers:
                container.signal(signal.SIGKILL)

    def _schedule(self):
        """Schedules the pod. Returns False if it is being deleted or requests more than is available."""
        with self.cluster.changed:
            self.scheduled = not self.ending() and not self._lacks()
            self.update()
            return self.scheduled

    def _live(self):
        cluster = self.cluster
        try:
            while not self.ending() and not self._schedule():
                cluster.sleep(0.2, self.ending)
            cluster.sleep(cluster.start_delay_s, self.ending)
            while not self.ending() and not self._make_volumes():
                cluster.sleep(0.2, self.ending)
            with cluster.changed:
                if not self.ending():
                    self.address = ADDRESS
                    cluster.write_hosts()
                    self.update()
            threads = [cluster.thread(container.live) for container in self.containers]
            for thread in threads:
                thread.join()
        finally:
            with cluster.changed:
                self.over = True
                self.update()
                if self.kill_at is not None:
                    cluster.forget_pod(self)

    def _make_volumes(self):
        """Creates the volumes. Returns False while a secret is missing: the pod then stays in ContainerCreating."""
        cluster = self.cluster
        with cluster.changed:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.hosts.touch()
            volumes = self.object["spec"].get("volumes", [])
            secrets = [cluster.find("Secret", self.namespace, volume["secret"]["secretName"]) for volume in volumes]
            if None in secrets:
                return False
            for volume, secret in zip(volumes, secrets):
                place = self.directory / "volumes" / volume["name"]
                real = place / "..2000_01_01_00_00_00.0"
                real.mkdir(parents=True)
                for key, data in contents(secret).items():
                    (real / key).write_bytes(data)
                    (real / key).chmod(0o644)
                    (place / key).symlink_to(f"..data/{key}")
                (place / "..data").symlink_to(real.name)
        return True
