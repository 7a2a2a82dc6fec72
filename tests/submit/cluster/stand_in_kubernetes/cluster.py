"""The stored objects, and the loop of the Job controller, the garbage collector and the DNS."""

import os
import pathlib
import shutil
import threading
import uuid

from .jobs import Job
from .kubelet import ADDRESS, Pod
from .objects import BATCH, TERMINAL, now


class Cluster:
    """`changed` protects all members and is notified of every change. StandInKubernetes documents the settings."""

    def __init__(self, directory, work):
        self.directory, self.work = pathlib.Path(directory).resolve(), pathlib.Path(work)
        self.images_missing, self.namespaces = set(), {"default"}
        self.image_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.start_delay_s, self.backoff_s, self.cpus = 0.05, 0.3, None
        self.changed = threading.Condition(threading.RLock())
        self.store, self.pods, self.jobs = {}, {}, {}  # keys: (namespace, kind, name); uid; uid
        self.managers = {}  # key: uid; value: the paths of the fields that each manager has applied
        self.closing = self.dirty = False
        self.streams, self.threads, self.made = set(), [], []  # the logs being printed; all threads; directories to remove at the end
        self.version = 0

    def thread(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        with self.changed:
            self.threads = [one for one in self.threads if one.is_alive()] + [thread]
            thread.start()
        return thread

    def touch(self):
        with self.changed:
            self.dirty = True
            self.changed.notify_all()

    def sleep(self, seconds, until):
        with self.changed:
            self.changed.wait_for(lambda: self.closing or until(), seconds)

    def find(self, kind, namespace, name):
        return self.store.get((namespace, kind, name))

    def add(self, thing):
        meta, kind = thing["metadata"], thing["kind"]
        self.version += 1
        meta.update(uid=str(uuid.uuid4()), creationTimestamp=now(), resourceVersion=str(self.version))
        if kind == "Job":
            mine = {"controller-uid": meta["uid"], "job-name": meta["name"]}
            mine.update({BATCH + key: value for key, value in mine.items()})
            thing["spec"]["template"]["metadata"]["labels"].update(mine)
            meta.setdefault("labels", dict(thing["spec"]["template"]["metadata"]["labels"]))
            thing["spec"].update(selector={"matchLabels": {BATCH + "controller-uid": meta["uid"]}}, suspend=False)
            self.jobs[meta["uid"]] = Job(self, thing)
        self.store[meta["namespace"], kind, meta["name"]] = thing
        if kind == "Pod":
            self.pods[meta["uid"]] = Pod(self, thing)
        self.touch()

    def forget(self, thing):
        meta = thing["metadata"]
        self.store.pop((meta["namespace"], thing["kind"], meta["name"]), None)
        self.jobs.pop(meta["uid"], None)
        self.managers.pop(meta["uid"], None)
        self.touch()

    def forget_pod(self, pod):
        """Counts a pod for its Job, and then removes it."""
        if pod.object["status"]["phase"] not in TERMINAL:
            pod.object["status"]["phase"] = "Failed"
        job = self.jobs.get(pod.object["metadata"]["ownerReferences"][0]["uid"])
        if job:
            job.count(pod)
        self.forget(pod.object)
        if pod.over:
            self.pods.pop(pod.uid, None)
            shutil.rmtree(pod.directory, ignore_errors=True)

    def note_directory(self, path):
        """Records the directories that starting a container will create in the working directory, to remove them at the end."""
        path, work, new = pathlib.Path(os.path.realpath(path)), pathlib.Path(os.path.realpath(self.work)), []
        while path.is_relative_to(work) and not path.exists():
            new.insert(0, path)
            path = path.parent
        self.made += [path for path in new if path not in self.made]

    def write_hosts(self):
        """Updates each pod's /etc/hosts with the pod itself and the records of the cluster's DNS. Writes in place, since the file is
        mounted. Skips pods that do not have the file yet."""
        records = []  # tuples of namespace, service name and host name (or None)
        for (namespace, kind, name), service in self.store.items():
            selector = service.get("spec", {}).get("selector", {})
            if kind != "Service" or not selector:
                continue
            for pod in self.pods.values():
                status, labels = pod.object["status"], pod.object["metadata"].get("labels", {})
                ready = pod.kill_at is None and any(
                    one["type"] == "Ready" and one["status"] == "True" for one in status["conditions"])
                if (pod.namespace == namespace and selector.items() <= labels.items() and pod.address
                        and status["phase"] not in TERMINAL and (ready or service["spec"].get("publishNotReadyAddresses"))):
                    records.append((namespace, name, None))
                    if pod.object["spec"].get("subdomain") == name and pod.object["spec"].get("hostname"):
                        records.append((namespace, name, pod.hostname))
        for pod in self.pods.values():
            lines = [f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{ADDRESS} {pod.hostname}\n"]
            subdomain = pod.object["spec"].get("subdomain")
            if subdomain:
                lines.append(f"{ADDRESS} {pod.hostname}.{subdomain}.{pod.namespace}.svc.cluster.local\n")
            for namespace, service, host in dict.fromkeys(records):
                short = f"{host}.{service}" if host else service
                names = [f"{short}.{namespace}{end}" for end in (".svc.cluster.local", ".svc", "")]
                lines.append(f"{ADDRESS} {' '.join(names + [short] * (namespace == pod.namespace))}\n")
            data = "".join(lines).encode()
            if pod.hosts.exists() and pod.hosts.read_bytes() != data:
                with open(pod.hosts, "r+b", buffering=0) as file:
                    file.write(data)
                    file.truncate()

    def control(self):
        """Runs the Job controller, the garbage collector and the DNS after every change."""
        with self.changed:
            while not self.closing:
                self.dirty = False
                delays = [delay for job in list(self.jobs.values()) if (delay := job.sync()) is not None]
                uids = {thing["metadata"]["uid"] for thing in self.store.values()}
                for pod in list(self.pods.values()):
                    if pod.object["metadata"]["ownerReferences"][0]["uid"] not in uids:
                        pod.delete()
                self.write_hosts()
                self.changed.wait_for(lambda: self.dirty or self.closing, max(0, min(delays)) if delays else None)
