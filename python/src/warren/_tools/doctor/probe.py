"""The program that `warren doctor` runs on each host, over ssh: answers each line of JSON with another, until its input ends.

Needs only Python 3.6. It is sent as text, so it imports nothing from Warren and must stay small. Facts that it cannot determine are null or
missing; on_hosts.py interprets the facts."""
import concurrent.futures
import ctypes
import json
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Sequence

#: The packages that determine the behavior of training, and packages that could be mistaken for them.
PACKAGES = ("warren-train", "warren", "xgboost", "xgboost-cpu", "lightgbm", "torch", "pyarrow", "numpy")
#: System call numbers by machine: pidfd_open, memfd_create, process_vm_readv, futex.
CALLS = {"x86_64": (434, 319, 310, 202), "aarch64": (434, 279, 270, 98)}
CONNECT_S = 3.0
CONNECTIONS_AT_ONCE = 16


def first_line_of(*command: str) -> Optional[str]:
    """Returns the first line that a program prints; None if there is no such program, it fails, or it takes longer than 10 s."""
    try:
        done = subprocess.run(command,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL,
                              timeout=10,
                              check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip().partition("\n")[0]


def file(path: str) -> Optional[str]:
    """Returns the text of a short file; None if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as opened:
            return opened.read().strip()
    except OSError:
        return None


def call(number: int, *arguments: Any) -> int:
    """Makes a system call; returns its result, or minus errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(ctypes.c_long(number), *arguments))
    return result if result >= 0 else -ctypes.get_errno()


def kernel() -> Optional[Dict[str, Any]]:
    """Returns, for each kernel feature, true or the reason why it is unavailable; None on an unsupported system."""
    numbers = CALLS.get(platform.machine())
    if sys.platform != "linux" or numbers is None:
        return None
    pidfd_open, memfd_create, process_vm_readv, futex = numbers

    def opened(result: int) -> int:
        if result >= 0:
            os.close(result)
        return result

    results = {
        "pidfd_open": opened(call(pidfd_open, os.getpid(), 0)),
        "memfd_create": opened(call(memfd_create, ctypes.c_char_p(b"warren-doctor"), ctypes.c_uint(1))),
        "process_vm_readv": read_of_another(process_vm_readv),
        "futex": call(futex, ctypes.byref(ctypes.c_int(0)), 1, 1, None, None, 0)
    }
    return {name: result >= 0 or os.strerror(-result) for name, result in results.items()}


def read_of_another(process_vm_readv: int) -> int:
    """Makes a child process read this process's memory, and returns the result of the system call. As in MPI libraries, the reader has not
    started the process whose memory it reads, so Yama may forbid it."""
    source, target = ctypes.create_string_buffer(b"warren"), ctypes.create_string_buffer(6)

    class Vector(ctypes.Structure):
        """struct iovec"""
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    here, there = Vector(ctypes.addressof(target), 6), Vector(ctypes.addressof(source), 6)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # the child has a copy of both buffers at the same addresses
        try:
            result = call(process_vm_readv, os.getppid(), ctypes.byref(here), ctypes.c_ulong(1), ctypes.byref(there),
                          ctypes.c_ulong(1), ctypes.c_ulong(0))
            os.write(writing, b"%d" % result)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return int(text or b"-1")


def memory_limit() -> Optional[int]:
    """Returns the smallest memory limit of the control groups of this process, in bytes; None without a limit."""
    least: Optional[int] = None
    for line in (file("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        roots = {"": ("/sys/fs/cgroup", "memory.max"), "memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")}
        if controllers not in roots:
            continue
        root, name = roots[controllers]
        while True:
            value = file(root + path.rstrip("/") + "/" + name)
            if value and value.isdigit() and int(value) < 1 << 60:
                least = int(value) if least is None else min(least, int(value))
            if path in ("", "/"):
                break
            path = os.path.dirname(path)
    return least


def limit(which: int) -> List[Optional[int]]:
    """Returns the soft and the hard limit of a resource; None means unlimited."""
    return [None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(which)]


def shared_memory() -> Optional[Dict[str, Any]]:
    """Returns the total and the free bytes of /dev/shm, and whether it is writable; None if it does not exist."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return None
    return {
        "size": found.f_blocks * found.f_frsize,
        "free": found.f_bavail * found.f_frsize,
        "writable": os.access("/dev/shm", os.W_OK)
    }


def version_of(package: str) -> Optional[str]:
    """Returns the version of an installed Python package; None if it is not installed."""
    try:
        from importlib import metadata  # pylint: disable=import-outside-toplevel
    except ImportError:  # before Python 3.8
        return first_line_of(sys.executable, "-c",
                             "import pkg_resources, sys; print(pkg_resources.get_distribution(sys.argv[1]).version)", package)
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def nccl() -> Optional[int]:
    """Returns the version of NCCL as a number; None if it is not found."""
    for name in ("libnccl.so.2", "libnccl.so"):
        try:
            version = ctypes.c_int()
            ctypes.CDLL(name).ncclGetVersion(ctypes.byref(version))
            return version.value
        except (OSError, AttributeError):
            continue
    return None


def cuda() -> Optional[int]:
    """Returns the CUDA version that the driver supports, as a number; None without a driver."""
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return version.value


def gpus() -> Optional[Dict[str, Any]]:
    """Returns nvidia-smi's description of each GPU, or its error message; None if there is no nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return None
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                              check=False,
                              timeout=20,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": str(error)}
    text = done.stdout.decode("utf-8", "replace").strip()
    return {"error": text.partition("\n")[0]} if done.returncode else {"found": [line.split(", ") for line in text.splitlines()]}


def facts() -> Dict[str, Any]:
    """Returns all facts about this host."""
    return {
        "host_name": socket.gethostname(),
        "system": platform.system(),
        "kernel_release": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "python_path": sys.executable,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "dmlc_submit": first_line_of("dmlc-submit", "--version"),
        "packages": {
            name: version_of(name)
            for name in PACKAGES
        },
        "shared_memory": shared_memory(),
        "memlock": limit(resource.RLIMIT_MEMLOCK),
        "nofile": limit(resource.RLIMIT_NOFILE),
        "memory_limit": memory_limit(),
        "kernel": kernel(),
        "ptrace_scope": file("/proc/sys/kernel/yama/ptrace_scope"),
        "gpus": gpus(),
        "cuda": cuda(),
        "nccl": nccl()
    }


class Ports:
    """Listening sockets, which answer every connection."""
    def __init__(self) -> None:
        self.sockets: List[socket.socket] = []

    def listen(self, first: int, last: int) -> Dict[str, Any]:
        """Listens on a free port from first to last, and on one chosen by the kernel. Returns the port numbers, or the reasons for
        failure."""
        return {"tracker": self._one(range(first, last + 1)), "ephemeral": self._one([0])}

    def _one(self, ports: Sequence[int]) -> Dict[str, Any]:
        error = "all ports from %d to %d are taken" % (ports[0], ports[-1])
        for port in ports:
            for family, anywhere in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
                try:
                    listener = socket.socket(family, socket.SOCK_STREAM)
                    if family == socket.AF_INET6:
                        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                    listener.bind((anywhere, port))
                    listener.listen(64)
                except OSError as failed:
                    if port == 0:
                        error = failed.strerror
                    continue
                self.sockets.append(listener)
                threading.Thread(target=self._serve, args=(listener, ), daemon=True).start()
                return {"port": listener.getsockname()[1]}
        return {"error": error}

    @staticmethod
    def _serve(listener: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listener.accept()
                accepted.sendall(b"warren")
                accepted.close()
            except OSError:
                return


def connect(target: List[Any]) -> Optional[str]:
    """Returns None if a probe answers at [host, port], else the error."""
    try:
        with socket.create_connection((target[0], target[1]), CONNECT_S) as made:
            made.settimeout(CONNECT_S)
            return None if made.recv(6) == b"warren" else "another program answers"
    except socket.timeout:
        return "no answer in %d s" % CONNECT_S
    except OSError as error:
        return error.strerror or str(error)


def resolve(name: str) -> List[str]:
    """Returns the addresses of a name, as resolved on this host; an empty list if it cannot be resolved."""
    try:
        return sorted({str(entry[4][0]) for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})
    except OSError:
        return []


def route(name: str) -> Optional[str]:
    """Returns this host's address on the route to another host; None without a route. Raises OSError if the name cannot be resolved."""
    for family, kind, protocol, _, address in socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind, protocol) as asked:
                asked.connect(address)
                return str(asked.getsockname()[0])
        except OSError:
            continue
    return None


def answer(request: Dict[str, Any], ports: Ports) -> Any:
    """Returns the answer to one request."""
    what = request["do"]
    if what == "facts":
        return facts()
    if what == "time":
        return time.time()
    if what == "listen":
        return ports.listen(request["first"], request["last"])
    if what == "connect":
        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS_AT_ONCE) as pool:
            return list(pool.map(connect, request["targets"]))
    if what == "resolve":
        return {name: resolve(name) for name in request["names"]}
    if what == "route":
        return route(request["to"])
    raise ValueError(what)


def main() -> None:
    """Answers requests until the input ends, which happens when the ssh connection or `warren doctor` ends."""
    ports = Ports()
    for line in sys.stdin:
        try:
            said = {"answer": answer(json.loads(line), ports)}
        except Exception as error:  # pylint: disable=broad-except
            said = {"error": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
