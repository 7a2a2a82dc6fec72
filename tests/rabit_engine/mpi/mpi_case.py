"""Helpers for the tests of this folder: they start ranks under a launcher and check the output."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from warren_testing import BIN

WORKER = BIN / "mpi_worker"
PLUGINS = BIN.parent / "lib"
# Ranks share few cores with other processes here, so MPI must not spin, and timeouts are long.
CALM = {
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "WARREN_CONNECT_TIMEOUT": "60",
}
LIMIT_S = 200
# The variables of an outer launcher must not reach the launchers started here.
FOREIGN = re.compile(r"^(OMPI_|PMI_|PMIX_|SLURM_|HYDRA_|MPI_LOCAL|DMLC_|RABIT_)")


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    return clean | CALM | more


def needs(what, available, package):
    """Returns a decorator that skips a test class unless `available`, with a message that cannot be overlooked."""
    reason = f"SKIPPED: {what} is not installed; apt-get install {package}"
    if not available:
        print(reason, file=sys.stderr)
    return unittest.skipUnless(available, reason)


needs_openmpi = needs(
    "Open MPI",
    shutil.which("mpirun.openmpi") and (PLUGINS / "librabit_mpi_openmpi.so").exists(),
    "openmpi-bin libopenmpi-dev",
)
needs_mpich = needs(
    "MPICH",
    shutil.which("mpirun.mpich") and (PLUGINS / "librabit_mpi_mpich.so").exists(),
    "mpich libmpich-dev",
)
needs_hydra = needs("MPICH's mpiexec", shutil.which("mpirun.mpich"), "mpich")

OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
MPICH = ["mpirun.mpich"]


class Ranks(unittest.TestCase):
    """Starts ranks and checks what they print."""

    def run_ranks(self, launcher, ranks, *arguments, program=WORKER, limit_s=LIMIT_S, **more):
        """Runs `program` with this number of ranks and returns the finished launcher."""
        command = [*launcher, "-n", str(ranks), str(program), *arguments]
        return self.run_alone(command, limit_s=limit_s, **more)

    def run_alone(self, command, limit_s=LIMIT_S, **more):
        return subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=limit_s)

    def well(self, run):
        """Returns the sorted pairs (rank, world size), as strings, that the ranks without faults printed."""
        return sorted(re.findall(r"rank (\d+) of (\d+): well", run.stdout))

    def expect_well(self, run, ranks):
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(
            self.well(run), sorted((str(rank), str(ranks)) for rank in range(ranks)), run.stdout + run.stderr
        )
