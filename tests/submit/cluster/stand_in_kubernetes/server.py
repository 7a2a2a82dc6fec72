"""The stand-in's interface for tests: a cluster, the kubectl that reaches it over a socket, and functions that cause failures."""

import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import traceback

from . import client
from .cluster import Cluster
from .client import VARIABLE
from .documents import yaml
from .kubectl import Kubectl


class StandInKubernetes(Cluster):
    """`directory` is for the stand-in's files. Tests may change: `work`, the working directory of every image; `image_path`, the PATH of
    every image; `images_missing`, images that cannot be pulled; `start_delay_s`, how long a pod stays in ContainerCreating;
    `backoff_s`, the delay of the first retry (10 s in a real cluster); `cpus`, the number of CPUs that all pods together can request
    (None: unlimited); and `namespaces`, the namespaces that exist."""

    def __init__(self, directory, work):
        super().__init__(directory, work)
        self.kubectl, self.connections = self.directory / "bin" / "kubectl", set()
        for folder in ("bin", "stage"):
            (self.directory / folder).mkdir(parents=True, exist_ok=True)
        self.kubectl.write_text(f"#!{sys.executable} -IS\n{pathlib.Path(client.__file__).read_text()}")
        self.kubectl.chmod(0o755)
        (self.directory / "nsswitch.conf").write_text("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
        self.listener = socket.socket(socket.AF_UNIX)
        place = os.open(self.directory, os.O_PATH)
        try:
            self.listener.bind(f"/proc/self/fd/{place}/socket")
        finally:
            os.close(place)
        self.listener.listen(128)
        self.thread(self._accept)
        self.thread(self.control)

    def environment(self):
        """The variables that kubectl needs, in addition to the usual environment."""
        return {"PATH": f"{self.directory / 'bin'}:{os.environ.get('PATH', os.defpath)}", VARIABLE: str(self.directory)}

    def run(self, *words, **settings):
        """Runs kubectl in the cluster's environment. `settings` are those of subprocess.run."""
        environment = {**os.environ, **self.environment(), **settings.pop("env", {})}
        return subprocess.run([self.kubectl, *map(str, words)], env=environment, check=False, **settings)

    def close(self):
        """Stops everything, including running containers."""
        with self.changed:
            if self.closing:
                return
            self.closing = True
            for pod in self.pods.values():
                for container in pod.containers:
                    container.signal(signal.SIGKILL)
            connections = list(self.connections)
            self.changed.notify_all()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.break_logs()
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        while True:
            with self.changed:
                thread = self.threads.pop() if self.threads else None
            if not thread:
                break
            thread.join()
        self.listener.close()
        (self.directory / "socket").unlink(missing_ok=True)
        shutil.rmtree(self.directory / "pods", ignore_errors=True)
        for path in reversed(self.made):
            try:
                path.rmdir()
            except OSError:
                pass

    def objects(self, kind=None):
        """The stored objects of all namespaces, as Kind/name."""
        with self.changed:
            return sorted(f"{one}/{name}" for _, one, name in self.store if kind in (None, one))

    def fail_pod(self, name):
        """Fails the pod as if its node ran out of memory: the containers are terminated, but the pod is not removed."""
        with self.changed:
            self._pod(name).evict()

    def kill_container(self, name):
        """Kills the pod's first container as if it used too much memory."""
        with self.changed:
            container = self._pod(name).containers[0]
            container.oom = True
            container.signal(signal.SIGKILL)

    def break_logs(self):
        """Ends every `kubectl logs -f` with exit code 0, as a load balancer that closes idle connections does."""
        with self.changed:
            streams = list(self.streams)
        for log, over in streams:
            with log.changed:
                over.set()
                log.changed.notify_all()

    def _pod(self, name):
        for pod in self.pods.values():
            if pod.name == name:
                return pod
        raise KeyError(f"no pod {name}")

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                if self.closing:
                    connection.close()
                    return
                self.connections.add(connection)
                self.thread(self._serve, connection)

    def _serve(self, connection):
        def send(kind, data):
            connection.sendall(struct.pack("!cI", kind, len(data)) + data)

        try:
            with connection, connection.makefile("rb") as stream:
                request = json.loads(stream.read(struct.unpack("!I", stream.read(4))[0]))
                call = Kubectl(self, request, connection, send)
                try:
                    code = call.run()
                except OSError:
                    raise
                except Exception:  # an error of the stand-in must fail the test
                    code = 1
                    call.err(f"error: the stand-in broke: {traceback.format_exc()}")
                connection.sendall(struct.pack("!cI", b"x", code))
                connection.shutdown(socket.SHUT_RDWR)
        except (OSError, struct.error):
            pass
        finally:
            with self.changed:
                self.connections.discard(connection)


def why_not():
    """The reason why the stand-in cannot run here; None if it can."""
    if os.geteuid() != 0:
        return "containers are started as root"
    if yaml is None:
        return "no yaml for Python here (Debian: python3-yaml)"
    if not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "--uts", "--pid", "--fork", "true"],
                                                     capture_output=True, check=False).returncode != 0:
        return "no namespaces can be made here (unshare --mount --uts --pid --fork)"
    return None
