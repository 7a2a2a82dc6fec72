"""Who takes part, and how a world of each is started.

A peer may have several modes (how ranks wait, which algorithm). The comparison tries them all first and then uses,
for every size, the one that was the fastest: every peer is shown at its best.
"""

import dataclasses
import os
import shutil
import subprocess
import sys

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "namespace-agent")
XGBOOST_PYTHON = "/usr/bin/python3"  # Debian's, which has python3-xgboost


@dataclasses.dataclass(frozen=True)
class Mode:
    name: str
    options: tuple = ()
    environment: tuple = ()  # of (name, value)


class Peer:
    """Starts one process a rank, by itself."""

    key = ""
    title = ""
    collectives = ("allreduce", "broadcast", "allgather")

    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.program = os.path.join(bin_dir, f"allreduce-{self.key}")

    def missing(self):
        """Why it cannot take part, or None."""
        return None if os.access(self.program, os.X_OK) else f"{os.path.basename(self.program)} is not built"

    def version(self):
        """Its name and version, as far as known."""
        return self.title

    def modes(self, _place, _ranks):
        return [Mode("as it comes")]

    def environment(self, _place, mode):
        return dict(mode.environment)

    def command_line(self, place, ranks, mode):
        """What is started, for the reader of the report."""
        environment = [f"{name}={value}" for name, value in self.environment(place, mode).items()]
        return " ".join(environment + [os.path.basename(self.program)])

    def start(self, world, place, ranks, mode, arguments):
        environment = self.environment(place, mode)
        for rank in range(ranks):
            mine = {**environment, **self.whereabouts(world, place, rank, ranks)}
            world.start(place.enter(rank, [self.program] + arguments), mine)

    def whereabouts(self, world, place, rank, ranks):
        """How a rank finds the others: variables of its environment."""
        raise NotImplementedError


class WithTracker(Peer):
    """Ranks that find each other through a rabit tracker."""

    def tracker(self):
        return [os.path.join(self.bin_dir, "rabit-tracker")]

    def missing(self):
        tracker = self.tracker()[0]
        return super().missing() or (None if os.access(tracker, os.X_OK) else f"{tracker} is not there")

    def start(self, world, place, ranks, mode, arguments):
        command = self.tracker() + ["--num-workers", str(ranks), "--host-ip", place.tracker_address]
        world.start_tracker(place.enter_middle(command))
        super().start(world, place, ranks, mode, arguments)

    def whereabouts(self, world, _place, rank, _ranks):
        return {**world.tracker_environment, "DMLC_TASK_ID": str(rank), "DMLC_ROLE": "worker"}


class Warren(WithTracker):
    key = "warren"
    title = "ours"

    def environment(self, place, mode):
        return {**super().environment(place, mode), **({"RABIT_SHARED_MEMORY": "off"} if place.tcp_only else {})}


class WarrenTls(Warren):
    """Ours with TLS; measured beside ours by bench/tls, no peer of the comparison."""

    title = "ours with TLS"

    def tracker(self):
        return super().tracker() + ["--tls"]


class XgboostRabit(WithTracker):
    key = "xgboost"
    title = "XGBoost 1.7"
    collectives = ("allreduce", "broadcast")

    def tracker(self):
        # Its own, which decides its tree and ring.
        return [XGBOOST_PYTHON, "-m", "xgboost.tracker"]

    def missing(self):
        found = self.version().startswith("XGBoost 1.")
        return super().missing() or (None if found else "no python3-xgboost 1.x, whose tracker it takes")

    def version(self):
        return "XGBoost " + _output([XGBOOST_PYTHON, "-c", "import xgboost.tracker; print(xgboost.__version__)"])

    def modes(self, _place, _ranks):
        return [Mode("as it comes"), Mode("TCP_NODELAY", environment=(("BENCH_NO_DELAY", "1"),))]


class Gloo(Peer):
    key = "gloo"
    title = "gloo"

    def version(self):
        return "gloo " + _output(["dpkg-query", "-W", "-f=${Version}\n", "libgloo0"])

    def modes(self, _place, _ranks):
        return [Mode(name, environment=(("BENCH_GLOO_ALGORITHM", name),)) for name in
                ("ring", "bcube", "halving_doubling")]

    def whereabouts(self, world, place, rank, ranks):
        return {"BENCH_RANK": str(rank), "BENCH_WORLD_SIZE": str(ranks), "BENCH_STORE": world.folder,
                "BENCH_INTERFACE": place.interface}


class Mpi(Peer):
    """Ranks that an MPI launcher starts."""

    launcher = ""

    def missing(self):
        return super().missing() or (None if shutil.which(self.launcher) else f"{self.launcher} is not there")

    def command(self, place, ranks, mode):
        raise NotImplementedError

    def command_line(self, place, ranks, mode):
        environment = [f"{name}={value}" for name, value in self.environment(place, mode).items()]
        program = [os.path.basename(self.program)]
        words = [word.replace(AGENT, "namespace-agent") for word in self.command(place, ranks, mode)]
        return " ".join(environment + words + program)

    def start(self, world, place, ranks, mode, arguments):
        environment = self.environment(place, mode)
        if place.addresses:
            environment["BENCH_NAMESPACES"] = place.prefix
        command = self.command(place, ranks, mode) + [self.program] + arguments
        world.start(place.enter_middle(command), environment)


class OpenMpi(Mpi):
    key = "openmpi"
    title = "Open MPI"
    launcher = "mpirun.openmpi"

    def version(self):
        return "Open MPI " + _output([self.launcher, "--version"]).split(" ")[-1]

    def modes(self, place, ranks):
        idle = ("--mca", "mpi_yield_when_idle")
        yielding = Mode("yielding", ("--bind-to", "none", *idle, "1"))
        if ranks > os.cpu_count():
            return [yielding]  # spinning costs a time slice a message
        spinning = Mode("spinning", ("--bind-to", "none", *idle, "0"))
        bound = [] if place.addresses else [Mode("bound", ("--bind-to", "core", *idle, "0"))]
        return [yielding, spinning, *bound]

    def command(self, place, ranks, mode):
        words = [self.launcher, "--allow-run-as-root", "--oversubscribe", *mode.options]
        if place.tcp_only:
            words += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
                      place.interface]
        if place.addresses:
            hosts = ",".join(address + ":1" for address in place.addresses[:ranks])
            words += ["--mca", "plm_rsh_agent", AGENT, "--host", hosts]
        return words + ["-np", str(ranks)]


class Mpich(Mpi):
    key = "mpich"
    title = "MPICH"
    launcher = "mpiexec.mpich"

    def version(self):
        return "MPICH " + _output(["mpichversion"]).split("\t")[-1]  # "MPICH Version: ...\t4.0.2"

    def environment(self, place, mode):
        # Debian's MPICH moves bytes with UCX.
        tcp = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": place.interface}
        return {**super().environment(place, mode), **(tcp if place.tcp_only else {})}

    def modes(self, place, ranks):
        free = Mode("unbound", ("-bind-to", "none"))
        return [free] if place.addresses or ranks > os.cpu_count() else [free, Mode("bound", ("-bind-to", "core"))]

    def command(self, place, ranks, mode):
        words = [self.launcher, *mode.options]
        if place.addresses:
            words += ["-launcher", "ssh", "-launcher-exec", AGENT, "-localhost", place.tracker_address,
                      "-hosts", ",".join(place.addresses[:ranks])]
        return words + ["-n", str(ranks)]


PEERS = (Warren, OpenMpi, Mpich, Gloo, XgboostRabit)


def find(bin_dir, wanted=None):
    """The peers that can take part; says on standard error who can't and why."""
    present = []
    for kind in PEERS:
        if wanted and kind.key not in wanted:
            continue
        peer = kind(bin_dir)
        reason = peer.missing()
        if reason:
            print(f"without {peer.title}: {reason}", file=sys.stderr)
        else:
            present.append(peer)
    return present


def _output(command):
    """The first line that a command prints, or nothing."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        return done.stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""
