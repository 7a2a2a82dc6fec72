"""Training runs of XGBoost and LightGBM, each in the Python environment that has it.

A booster is xgboost-1.7 (Debian's python3-xgboost), xgboost-VERSION (in the environments that tests/interop/matrix makes), or lightgbm (in
an environment made here).
"""

import contextlib
import os
import socket
import subprocess
import sys

from comparison.worlds import World, WorldFailed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKER = os.path.join(ROOT, "bench", "training_workers", "booster.py")
STALL_S = 900
PYTHON = "/usr/bin/python3"
#: Debian's XGBoost. For the side "warren", LD_PRELOAD replaces its communication with Warren's.
DEBIANS = "xgboost-1.7"


class Missing(Exception):
    """A booster is missing; the message says how to install it."""


def environment_of(booster, build):
    """Returns the interpreter that has the booster, and the PYTHONPATH to use with it."""
    folder = os.path.join(build, "interop")
    warren = os.path.join(ROOT, "python", "src")
    name, _, version = booster.partition("-")
    if booster == DEBIANS:
        return PYTHON, warren
    if name == "lightgbm":
        place = os.path.join(folder, "venv-lightgbm")
        if not os.path.exists(os.path.join(place, "ready")):
            subprocess.run([PYTHON, "-m", "venv", place], check=True)
            subprocess.run([os.path.join(place, "bin/pip"), "install", "-q", "lightgbm", "scipy", "scikit-learn"], check=True)
            open(os.path.join(place, "ready"), "w", encoding="utf-8").close()
        return os.path.join(place, "bin/python"), warren
    packages = os.path.join(folder, f"packages-{version}")
    if os.path.isdir(packages):
        return PYTHON, f"{packages}:{warren}"
    python = os.path.join(folder, f"venv-{version}", "bin/python")
    if not os.path.exists(python):
        raise Missing(f"there is no XGBoost {version} in {folder}: install it with tests/interop/matrix --bin {build}/bin {version}")
    return python, warren


def version_of(booster, build):
    python, path = environment_of(booster, build)
    name = booster.partition("-")[0]
    return subprocess.run([python, "-W", "ignore", "-c", f"import {name}; print({name}.__version__)"], text=True, check=True,
                          stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}).stdout.strip()  # fmt: skip


def free_ports(number):
    """Returns `number` free ports of this host. Each training run needs new ones: LightGBM cannot listen again on a port that it has just
    closed."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def public_data(build, name):
    """Returns the path of a file with public data (public_data.py), and the numbers of its rows and columns. Downloads it first if it is
    missing."""
    path = os.path.join(build, "bench-data", f"{name}.npz")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        python, _ = environment_of("lightgbm", build)
        subprocess.run([python, os.path.join(ROOT, "bench/comparison/public_data.py"), name, path], check=True, stdout=sys.stderr)
    from comparison.public_data import load

    return path, load(path)[0].shape


def run(build, booster, side, workers, shape, network=None, environment_of_rank=lambda _rank: {"OMP_WAIT_POLICY": "passive"}, data=None):
    """Performs one training run; `shape` is (rows, columns, depth, rounds), and `data` a file of public data with this shape. Returns the
    measurements of rank 0 (training_workers/booster.py) and, as "model", the bytes of its model."""
    rows, columns, depth, rounds = shape
    python, path = environment_of(booster, build)
    name = booster.partition("-")[0]
    processes = 1 if side == "single" else workers
    addresses = network.addresses if network else ["127.0.0.1"] * workers
    environment = {"PYTHONPATH": path, "WARREN_NATIVE": build, "OMP_NUM_THREADS": str(workers if side == "single" else 1),
                   "WARREN_XGBOOST_ENGINE": side if side in ("own", "warren") else "own",
                   "BENCH_MACHINES": ",".join(f"{address}:{port}" for address, port in zip(addresses, free_ports(workers)))}  # fmt: skip
    if data:
        environment["BENCH_DATA"] = data
    preloads = booster == DEBIANS and side == "warren"
    if preloads:
        environment["LD_PRELOAD"] = os.path.join(build, "lib", "librabit_xgboost.so")
        if not os.access(environment["LD_PRELOAD"], os.R_OK):
            raise Missing(f"there is no {environment['LD_PRELOAD']}")
    if booster == DEBIANS:
        environment["WARREN_PRINT_CHOICE"] = "1"
    with World(f"{booster}, {side}, {workers} workers") as world:
        environment["BENCH_MODEL"] = os.path.join(world.folder, "model")
        if side == "warren" or (side == "own" and name == "xgboost"):
            host = network.middle_address if network else "127.0.0.1"
            tracker = [os.path.join(build, "bin", "rabit-tracker"), "--num-workers", str(workers), "--host-ip", host,
                       "--sortby", "task", "--admit", "any"]  # fmt: skip
            world.start_tracker(network.inside("middle", tracker) if network else tracker)
        for rank in range(processes):
            words = [python, WORKER, name, side, rank, workers, rows, columns, depth, rounds]
            command = network.inside(rank, words) if network else [str(word) for word in words]
            world.start(command, {**environment, **world.tracker_environment, **environment_of_rank(rank), "DMLC_TASK_ID": str(rank)})
        found = next(world.lines(1, STALL_S))
        world.wait()
        # Warren prints "rabit: allreduce" because of WARREN_PRINT_CHOICE.
        if booster == DEBIANS and workers > 1 and ("rabit: allreduce" in world.errors(1000)) != preloads:
            raise WorldFailed(f"{booster}, {side}: communicates over the other side's engine")
        with open(environment["BENCH_MODEL"], "rb") as file:
            return {**found, "model": file.read()}
