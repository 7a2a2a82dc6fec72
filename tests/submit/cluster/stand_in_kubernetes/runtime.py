"""A container's life cycle and its log."""

import json
import math
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import threading
import time

from .objects import contents, now
from .syntax import quantity

PROGRAM = pathlib.Path(__file__).with_name("container.py")
LOG_PIECE = 16 * 1024  # bytes; container runtimes split longer lines


class Log:
    """The output of a container: pieces of lines, each with its time in nanoseconds."""

    def __init__(self):
        self.changed = threading.Condition()
        self.pieces = []
        self.ended = False
        self.rest = {}

    def add(self, stream, data):
        """Adds data read from a pipe; empty data marks the pipe's end."""
        now, pieces = time.time_ns(), []
        lines = (self.rest.pop(stream, b"") + data).split(b"\n")
        for i, line in enumerate(lines):
            last = i == len(lines) - 1
            while len(line) > LOG_PIECE:
                pieces.append((now, line[:LOG_PIECE]))
                line = line[LOG_PIECE:]
            if not last:
                pieces.append((now, line + b"\n"))
            elif data:
                self.rest[stream] = line
            elif line:
                pieces.append((now, line))
        self.pieces += pieces
        with self.changed:
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self.ended = True
            self.changed.notify_all()


class Waiting(Exception):
    """Raised if the container cannot be started yet. Has a reason and a message."""


def expand(text, values):
    """Expands $(NAME) and $$ as Kubernetes does in commands and environments. Unknown names are left unchanged."""
    return re.sub(r"\$(?:\$|\(([^)]*)\))", lambda match: "$" if match[0] == "$$" else values.get(match[1], match[0]), text)


class Container:
    """One container of a pod. live(), which runs in a thread, starts it and reads its output."""

    def __init__(self, pod, spec):
        self.pod, self.spec, self.name = pod, spec, spec["name"]
        self.log = None
        self.pidfd = None
        self.state = {"waiting": {"reason": "ContainerCreating"}}
        self.oom = False
        self.final = False

    def status(self):
        running = "running" in self.state
        return {"name": self.name, "image": self.spec["image"], "imageID": "", "state": self.state, "started": running,
                "lastState": {}, "restartCount": 0, "ready": running}

    def signal(self, number):
        if self.pidfd is not None:
            try:
                signal.pidfd_send_signal(self.pidfd, number)
            except ProcessLookupError:
                pass

    def live(self):
        pod, cluster = self.pod, self.pod.cluster
        pulls = 0
        while not pod.ending():
            try:
                if self.spec["image"] in cluster.images_missing:
                    pulls += 1
                    image = self.spec["image"]
                    if pulls % 2:
                        raise Waiting("ErrImagePull", f'failed to pull and unpack image "{image}": not found')
                    raise Waiting("ImagePullBackOff", f'Back-off pulling image "{image}"')
                with cluster.changed:
                    setting = self._setting()
                ended = self._run(setting)
            except Waiting as waiting:
                self._become({"waiting": {"reason": waiting.args[0], "message": waiting.args[1]}})
                cluster.sleep(0.2, pod.ending)
                continue
            with cluster.changed:
                self.final = True
                return self._become({"terminated": ended})
        with cluster.changed:
            self.final = True
            if "waiting" in self.state and pod.scheduled:
                self._become({"terminated": {
                    "exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None,
                    "message": "The container could not be located when the pod was terminated"}})

    def _become(self, state):
        with self.pod.cluster.changed:
            self.state = state
            self.pod.update()

    def _secret(self, name):
        thing = self.pod.cluster.find("Secret", self.pod.namespace, name)
        if thing is None:
            raise Waiting("CreateContainerConfigError", f'secret "{name}" not found')
        return contents(thing)

    def _environment(self):
        values = {}
        service = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
                   "KUBERNETES_SERVICE_PORT_HTTPS": "443", "KUBERNETES_PORT": "tcp://10.96.0.1:443"}
        for one in self.spec.get("env", []):
            source, value = one.get("valueFrom", {}), expand(one.get("value", ""), {**service, **values})
            if "fieldRef" in source:
                value = self.pod.field(source["fieldRef"]["fieldPath"])
            if "resourceFieldRef" in source:
                limit = self.spec.get("resources", {}).get("limits", {}).get("cpu")
                value = str(math.ceil(quantity(limit)) if limit else os.cpu_count())
            if "secretKeyRef" in source:
                name, key = source["secretKeyRef"]["name"], source["secretKeyRef"]["key"]
                found = self._secret(name)
                if key not in found:
                    raise Waiting("CreateContainerConfigError",
                                  f"couldn't find key {key} in Secret {self.pod.namespace}/{name}")
                value = found[key].decode("utf-8", "surrogateescape")
            values[one["name"]] = value
        return {**service, **values}

    def _setting(self):
        pod, cluster = self.pod, self.pod.cluster
        values = self._environment()
        if not self.spec.get("command"):
            raise Waiting("CreateContainerError", "failed to generate container spec: no command specified")
        command = [expand(word, values) for word in self.spec["command"]]
        try:
            for text in [*command, *values, *values.values()]:
                text.encode()
        except UnicodeEncodeError:
            raise Waiting("CreateContainerError", "rpc error: code = Internal desc = grpc: error while marshaling: "
                                                  "string field contains invalid UTF-8") from None
        mounts = [[str(pod.directory / "volumes" / one["name"]), os.path.join("/", one["mountPath"])]
                  for one in self.spec.get("volumeMounts", [])]
        for _, target in mounts:
            cluster.note_directory(target)
        values = {"PATH": cluster.image_path, "HOSTNAME": pod.hostname, "HOME": "/root", **values}
        return {"command": command, "environment": values, "mounts": sorted(mounts, key=lambda one: len(one[1])),
                "work": os.path.realpath(cluster.work), "hostname": pod.hostname, "hosts": str(pod.hosts)}

    def _run(self, setting):
        """Runs the container until it ends. Returns its state `terminated`. Raises Waiting if it cannot be created yet."""
        cluster = self.pod.cluster
        self.log, self.oom = Log(), False
        said, says = os.pipe()
        with open(said, "rb") as report:
            try:
                process = subprocess.Popen([sys.executable, "-IS", "-X", "utf8", PROGRAM, str(says), cluster.directory],
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           pass_fds=[says], env={}, cwd="/", start_new_session=True)
            finally:
                os.close(says)
            with process:
                try:
                    process.stdin.write(json.dumps(setting).encode())
                    process.stdin.close()
                except BrokenPipeError:
                    pass
                said = report.read().decode("utf-8", "replace")
                error = said.partition("error ")[2].partition(" ")
                if not said:
                    raise Waiting("CreateContainerError", process.stderr.read().decode("utf-8", "replace"))
                started = now()
                with cluster.changed:
                    try:
                        self.pidfd = os.pidfd_open(int(re.search(r"pid (\d+)", said)[1]))
                    except ProcessLookupError:
                        pass
                    if not error[0]:
                        self._become({"running": {"startedAt": started}})
                    if self.pod.ending():
                        self.signal(signal.SIGKILL if cluster.closing or self.pod.failed else signal.SIGTERM)
                pipes = [process.stdout, process.stderr]
                while pipes:
                    for pipe in select.select(pipes, [], [])[0]:
                        data = os.read(pipe.fileno(), 1 << 16)
                        self.log.add(pipe, data)
                        if not data:
                            pipes.remove(pipe)
                code = process.wait() if process.wait() >= 0 else 128 - process.returncode
        with cluster.changed:
            if self.pidfd is not None:
                os.close(self.pidfd)
                self.pidfd = None
        self.log.end()
        if error[0] == "CreateContainerError":
            raise Waiting(error[0], error[2])
        if error[0]:
            message = ("failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
                       f"failed: unable to start container process: error during container init: {error[2]}")
            return {"exitCode": 128, "reason": error[0], "message": message, "startedAt": "1970-01-01T00:00:00Z",
                    "finishedAt": now()}
        return {"exitCode": code, "reason": "OOMKilled" if self.oom else "Error" if code else "Completed",
                "startedAt": started, "finishedAt": now()}
