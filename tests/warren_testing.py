"""Shared by the process tests: the paths of the programs, a running tracker, and workers in Python."""

import contextlib
import hashlib
import hmac
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import random
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

BIN = pathlib.Path(os.environ["WARREN_BIN"])
SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
MAGIC = 0xFF99
INTRODUCTION_MAGIC = 0x494A5257
_HANDSHAKE = (SOURCE / "rabit_engine/transport/tcp/handshake.h").read_text(encoding="utf-8")
HELLO_VERSION = int(re.search(r"kVersion = (\d+);", _HANDSHAKE)[1])
HELLO_BYTES = int(re.search(r"sizeof\(Hello\) == (\d+)", _HANDSHAKE)[1])
HELD, RELEASED, NOTED = 2, 3, 4  # our tracker's answers to Warren's workers: wire/classic.h
#: at_night marks a test that only scripts/nightly runs, because a shorter test finds the same kind of fault or because the tested code
#: rarely changes.
AT_NIGHT = os.environ.get("WARREN_NIGHTLY") == "1"
at_night = unittest.skipUnless(AT_NIGHT, "runs at night: WARREN_NIGHTLY=1")


def nightly(*cases):
    """The further cases of a test that only scripts/nightly runs: `cases` at night, else none."""
    return cases if AT_NIGHT else ()


#: Marks tests that load librabit into Python. They are skipped with a sanitizer, whose runtime would have to be loaded before Python.
without_sanitizers = unittest.skipIf(os.environ.get("WARREN_SANITIZE"), "SKIPPED: Python cannot load a library with a sanitizer")


def memory_bound(limit_bytes):
    """The memory limit in bytes for this build that corresponds to `limit_bytes` without a sanitizer. The thread sanitizer keeps a shadow of all
    memory; the address sanitizer needs about half as much again, and keeps 256 MiB of freed memory."""
    sanitizers = os.environ.get("WARREN_SANITIZE", "").split(",")
    if "thread" in sanitizers:
        return 5 * limit_bytes
    return limit_bytes * 3 // 2 + (256 << 20) if "address" in sanitizers else limit_bytes


def load_script(path):
    """The module in a Python program of this tree whose file name has no suffix."""
    name = pathlib.Path(path).name
    loader = importlib.machinery.SourceFileLoader(name, str(SOURCE / path))
    module = sys.modules[name] = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def wait_for(condition, seconds=30.0, what="the condition", interval_s=0.01):
    """Polls until `condition()` is true, and returns its value. Raises AssertionError, naming `what`, after `seconds`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        time.sleep(interval_s)
    return value


def processes_with(mark):
    """Returns the ids of the running processes with `mark` in their environment. The engine's sockets and segments need no check: they have
    no names, so they disappear with their process."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def free_ports(count):
    """Free ports of this host, below those that the kernel assigns, so that no other program is given one of them before it is used."""
    ports = []
    for port in random.sample(range(20_000, 32_000), 4 * count):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            ports.append(port)
    return ports[:count]


class Tracker:
    """A running rabit-tracker, with the environment that it printed."""

    def __init__(self, *options, max_files=None, enter=None, stderr=subprocess.PIPE):
        """`max_files`: the tracker's limit of open files. `enter`: a function that turns the command into one that runs it elsewhere,
        e.g. in a network namespace. `stderr`: where the log goes; by default, `finish` returns it."""
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))) if max_files else None
        # A pipe makes the tracker end when this process ends, for whatever reason.
        gone, self.alive = os.pipe()
        command = [BIN / "rabit-tracker", "--until-stdin-closes", "--log-level", "DEBUG", *map(str, options)]
        self.process = subprocess.Popen(
            enter(command) if enter else command,
            stdin=gone,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            preexec_fn=limit,
        )
        os.close(gone)
        self.block = []
        for line in self.process.stdout:
            self.block.append(line.rstrip("\n"))
            if line.strip() == "DMLC_TRACKER_ENV_END":
                break
        self.env = dict(line.split("=", 1) for line in self.block if "=" in line)
        self.host = self.env.get("DMLC_TRACKER_URI")
        self.port = int(self.env.get("DMLC_TRACKER_PORT", 0))
        self.address = (self.host, self.port)
        self.log, self._reading = [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._forget()

    def _forget(self):
        alive, self.alive = self.alive, None
        if alive is not None:
            os.close(alive)

    def follow(self):
        """Reads the lines of the log into `log` from now on: a tracker that logs much would block if its pipe were not read."""
        self._reading = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self._reading.start()
        return self

    def finish(self, seconds=30):
        """Waits for the tracker to end. Returns the exit code and the log."""
        if self._reading:
            self.process.wait(seconds)
            self._reading.join(seconds)
            log = "".join(self.log)
        else:
            _, log = self.process.communicate(timeout=seconds)
        self._forget()
        return self.process.returncode, log

    def connect(self):
        return socket.create_connection(self.address, timeout=30)


def local_tracker(num_workers, *options, **settings):
    """Starts a Tracker at a free port of the loopback interface."""
    return Tracker("--num-workers", num_workers, "--host-ip", "127.0.0.1", "--port", 0, *options, **settings)


def package_environment(**more):
    """The environment of a process outside of any job that imports the Python package of this tree."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DMLC_")}
    return {**clean, "OMP_NUM_THREADS": "1", "WARREN_NATIVE": str(BIN.parent), "PYTHONPATH": str(SOURCE / "python/src"), **more}


def string(data):
    """The bytes of a string in the tracker's protocol."""
    return struct.pack("@i", len(data)) + data


def classic_hello(command, rank=-1, world=-1, task=b"0"):
    """The first bytes of a rabit worker: the magic and its hello."""
    return struct.pack("@3i", MAGIC, rank, world) + string(task) + string(command)


class Wire:
    """Sends and receives integers and strings in the format of the tracker's protocol."""

    def __init__(self, sock):
        self.sock = sock

    def send_int(self, *values):
        self.sock.sendall(struct.pack(f"@{len(values)}i", *values))

    def send_str(self, text):
        self.sock.sendall(string(text.encode()))

    def recv_exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise ConnectionError("the peer closed the connection")
            data += piece
        return data

    def recv_int(self):
        return struct.unpack("@i", self.recv_exactly(4))[0]

    def recv_str(self):
        return self.recv_exactly(self.recv_int()).decode()


def derive(token, purpose, context=b""):
    """Derives the secret for one purpose from the 32 bytes of a job's token."""
    return hmac.new(token, b"warren " + purpose + b"\0" + context, hashlib.sha256).digest()


def authenticate(wire, token_hex):
    """Proves to the tracker that this worker knows the job's token, and checks the tracker's proof (protocol: wire/authentication.h)."""
    token, own = bytes.fromhex(token_hex), os.urandom(32)
    magic = struct.pack("@i", INTRODUCTION_MAGIC)
    wire.sock.sendall(magic + own + hmac.new(derive(token, b"claim"), own, hashlib.sha256).digest())
    assert wire.recv_exactly(4) == magic
    nonces = own + wire.recv_exactly(32)
    wire.sock.sendall(hmac.new(derive(token, b"worker"), nonces, hashlib.sha256).digest())
    assert wire.recv_exactly(32) == hmac.new(derive(token, b"tracker"), nonces, hashlib.sha256).digest()


def let_in(wire, token_hex):
    """The tracker's side of `authenticate`."""
    token, own = bytes.fromhex(token_hex), os.urandom(32)
    assert wire.recv_exactly(4) == struct.pack("@i", INTRODUCTION_MAGIC)
    theirs, claim = wire.recv_exactly(32), wire.recv_exactly(32)
    assert claim == hmac.new(derive(token, b"claim"), theirs, hashlib.sha256).digest()
    wire.sock.sendall(struct.pack("@i", INTRODUCTION_MAGIC) + own)
    assert wire.recv_exactly(32) == hmac.new(derive(token, b"worker"), theirs + own, hashlib.sha256).digest()
    wire.sock.sendall(hmac.new(derive(token, b"tracker"), theirs + own, hashlib.sha256).digest())


class ClassicWorker:
    """A rabit worker as seen by its tracker and its peers. Its calls block, as in a real worker. With a token, it
    authenticates to the tracker as Warren's workers do, but not to its peers."""

    def __init__(self, tracker_address, task_id, rank=-1, world_size=-1, token=None):
        self.tracker_address = tracker_address
        self.token = token
        self.task_id = str(task_id)
        self.rank = rank
        self.world_size = world_size
        self.links = {}

    def hello(self, command):
        """Opens a connection to the tracker and sends the command. Returns the connection."""
        wire = Wire(socket.create_connection(self.tracker_address, timeout=30))
        if self.token:
            authenticate(wire, self.token)
        wire.send_int(MAGIC)
        assert wire.recv_int() == MAGIC
        wire.send_int(self.rank, self.world_size)
        wire.send_str(self.task_id)
        wire.send_str(command)
        return wire

    def start(self, command="start"):
        wire = self.hello(command)
        self.rank, self.parent, self.world_size, count = (wire.recv_int() for _ in range(4))
        self.tree = [wire.recv_int() for _ in range(count)]
        self.ring_prev, self.ring_next = wire.recv_int(), wire.recv_int()
        family = wire.sock.family
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(("", 0))
        listener.listen(16)
        listener.settimeout(30)
        errors = 1
        while errors:
            wire.send_int(len(self.links), *self.links)
            connects, accepts = wire.recv_int(), wire.recv_int()
            errors = 0
            for _ in range(connects):
                host, port, rank = wire.recv_str(), wire.recv_int(), wire.recv_int()
                try:
                    self._greet(socket.create_connection((host, port), timeout=30), rank)
                except OSError:
                    errors += 1
            wire.send_int(errors)
        wire.send_int(listener.getsockname()[1])
        wire.sock.close()
        for _ in range(accepts):
            self._greet(listener.accept()[0])
        listener.close()
        return self

    def _greet(self, sock, expected=None):
        link = Wire(sock)
        link.send_int(self.rank)
        rank = link.recv_int()
        assert expected in (None, rank), f"rank {rank} answered where {expected} was expected"
        self.links[rank] = link

    def print(self, text):
        wire = self.hello("print")
        wire.send_str(text)
        wire.sock.close()

    def shutdown(self):
        for link in self.links.values():
            link.sock.close()
        self.hello("shutdown").sock.close()

    def die(self):
        """Closes all links, as the kernel does when a process is killed."""
        for link in self.links.values():
            link.sock.close()


class CollectiveWorker:
    """A worker of XGBoost 2.1 or later as seen by its tracker: it has no links, but an error port."""

    def __init__(self, tracker_address, task_id):
        self.tracker_address = tracker_address
        self.task_id = str(task_id)
        self.rank, self.world_size = 0, -1
        self.error_listener = None
        self.known = threading.Event()  # set when the tracker has answered this worker's start

    def hello(self):
        wire = Wire(socket.create_connection(self.tracker_address, timeout=30))
        wire.send_int(MAGIC)
        assert wire.recv_int() == MAGIC
        wire.send_str(json.dumps({"world_size": self.world_size, "rank": self.rank, "task_id": self.task_id}))
        return wire

    def command(self, **fields):
        wire = self.hello()
        wire.send_str(json.dumps(fields))
        return wire

    def start(self):
        self.error_listener = socket.create_server(("127.0.0.1", 0))
        self.error_listener.settimeout(30)
        wire = self.command(cmd=1, port=9000 + int(self.task_id), error_port=self.error_listener.getsockname()[1])
        self.world_size = json.loads(wire.recv_str())["world_size"]
        self.known.set()
        self.next = json.loads(wire.recv_str())
        self.rank = (self.next["rank"] - 1) % self.world_size
        wire.sock.close()
        return self

    def signal(self):
        """Returns the number that arrives at the error port, or None if the connection is closed without one."""
        sock, _ = self.error_listener.accept()
        sock.settimeout(30)
        data = sock.recv(4)
        return struct.unpack("@i", data)[0] if data else None

    def print(self, text):
        self.command(cmd=4, msg=text).sock.close()

    def fail(self, text):
        self.command(cmd=3, msg=text, code=255).sock.close()

    def shutdown(self):
        self.command(cmd=2).sock.close()


@contextlib.contextmanager
def threads(functions):
    """Runs the functions in threads and yields their futures. At the end of the block, joins the threads and raises the first error."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=max(1, len(functions))) as pool:
        futures = [pool.submit(function) for function in functions]
        yield futures
        for future in futures:
            future.result(timeout=60)


def start_all(workers):
    with threads([worker.start for worker in workers]):
        pass
    return workers
