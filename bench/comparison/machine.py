"""Describes this machine and measures its limits."""

import json
import os
import platform
import subprocess
import sys

STREAM_LIMIT_S = 120


def description():
    kernel = f"Linux {platform.release().split('-')[0]}"
    compiler = _first_line(["c++", "--version"])
    commit = _first_line(["git", "-C", os.path.dirname(__file__), "describe", "--always", "--dirty"])
    commit = commit and f"commit {commit}"
    return "; ".join(part for part in (processor(), kernel, compiler, commit) if part)


def processor() -> str:
    return f"{_cpu_model()}, {os.cpu_count()} cores"


def program(bin_dir, name):
    """Returns the path of a built program. If it is missing, exits with a hint on how to build it."""
    path = os.path.join(bin_dir, name)
    if not os.access(path, os.X_OK):
        sys.exit(f"{path} is not built: run scripts/build release all bench-programs, or name the folder with --bin")
    return path


def memory_available():
    """The bytes that can be used without swapping."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def memory_rates(bin_dir, sizes):
    """Returns, for each size, the rates of copying and of adding in place, in bytes per second and core, on one core and with all cores
    busy."""
    done = subprocess.run([program(bin_dir, "machine-limits"), "memory", *map(str, sizes)], stdout=subprocess.PIPE, text=True, check=True)
    rates = [json.loads(line) for line in done.stdout.splitlines()]
    return {line.pop("bytes"): line for line in rates}


# Two cores are far from each other if a cache line takes longer than this, in seconds, to move from one to the other. It takes about 20 to
# 80 ns on one die, and at least twice as long between dies or sockets.
FAR_S = 100e-9


def line_times(bin_dir):
    """Measures how long a cache line takes to move between each pair of cores: {"0-1": seconds}."""
    done = subprocess.run([program(bin_dir, "machine-limits"), "lines"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def distance(*line_times):
    """Returns "near" if all cores were near each other in every measurement, "far" if some were far in every measurement, otherwise
    "both"."""
    states = {"far" if max(times.values(), default=0) > FAR_S else "near" for times in line_times}
    return states.pop() if len(states) == 1 else "both"


def stream_rate(bin_dir, place):
    """Measures one plain TCP stream between two ranks' places.

    Returns {"stream": bytes per second, "half_round_trip_s": seconds, "exchange_s": {bytes: seconds}}; an exchange sends that many bytes
    each way between two processes that do nothing else and never sleep.
    """
    limits = program(bin_dir, "machine-limits")
    place.prepare(2)
    address = place.addresses[0] if place.addresses else place.tracker_address
    receive = place.enter(0, [limits, "receive", "--host", address])
    with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
        try:
            port = json.loads(receiver.stdout.readline())["port"]
            send = place.enter(1, [limits, "send", "--host", address, "--port", str(port)])
            done = subprocess.run(send, stdout=subprocess.PIPE, text=True, check=True, timeout=STREAM_LIMIT_S)
            return json.loads(done.stdout)
        finally:
            receiver.kill()


def _cpu_model() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def _first_line(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""
