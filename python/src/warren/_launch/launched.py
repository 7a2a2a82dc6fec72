"""Detects processes started by mpirun, srun or torchrun instead of dmlc-submit. WARREN_BOOTSTRAP=none declares that they are separate
programs, and not one job."""
import os
from typing import NamedTuple, Optional


class Launched(NamedTuple):
    """One of several processes started by a launcher."""

    launcher: str  #: "mpirun", "srun" or "torchrun"
    evidence: str  #: the environment variables that show this, such as "OMPI_COMM_WORLD_SIZE=2"
    rank: int
    size: int

    def description(self) -> str:
        """Describes the process, its launcher and the evidence, for error messages."""
        return f"this is rank {self.rank} of {self.size} processes that {self.launcher} started ({self.evidence})"


def number(name: str) -> Optional[int]:
    """Returns the number in an environment variable; None if the variable is unset or not a non-negative integer."""
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def _of_torch() -> Optional[Launched]:
    """Detects torchrun, or any program that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. WORLD_SIZE alone is no evidence."""
    rank, size = number("RANK"), number("WORLD_SIZE")
    address, port = os.environ.get("MASTER_ADDR"), number("MASTER_PORT")
    # dmlc-submit sets the same variables, even if it runs no tracker.
    if rank is None or size is None or not address or port is None or "DMLC_JOB_CLUSTER" in os.environ or not rank < size:
        return None
    return Launched("torchrun", f"RANK={rank}, WORLD_SIZE={size}, MASTER_ADDR={address}, MASTER_PORT={port}", rank, size)


def _of_launcher() -> Optional[Launched]:
    """Detects mpirun and srun by the rules of rabit_engine/engine/join.cc. SLURM_NTASKS does not suffice for srun: it is also set in the
    shell of salloc, which is one process. Only tasks that srun started belong to a step."""
    for launcher, rank_name, size_name in (("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                           ("mpirun", "PMI_RANK", "PMI_SIZE"), ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")):
        rank, size = number(rank_name), number(size_name)
        if launcher == "srun" and "SLURM_STEP_ID" not in os.environ:
            continue
        if rank is not None and size is not None:
            return Launched("srun" if "SLURM_STEP_ID" in os.environ and rank_name == "PMI_RANK" else launcher, f"{size_name}={size}", rank,
                            size)
    return None


def launched() -> Optional[Launched]:
    """Describes this process if a launcher started it as one of several that must find each other without a tracker. Returns None if the
    environment names a tracker or the scheduler of parameter servers, if WARREN_BOOTSTRAP is `none` or `tracker`, or if the process is
    alone."""
    tracker = os.environ.get("DMLC_TRACKER_URI")
    if (tracker and tracker != "NULL") or "DMLC_PS_ROOT_URI" in os.environ:
        return None
    # Same order as in librabit: the new name, then the old one.
    if next(filter(None, (os.environ.get(f"{prefix}_BOOTSTRAP") for prefix in ("WARREN", "RABIT"))), "auto") in ("none", "tracker"):
        return None
    torch, launcher = _of_torch(), _of_launcher()
    # If torchrun runs in each srun task, the world sizes differ, and torchrun's are the right ones. If they are equal, a script has passed
    # the launcher's rank and size on to PyTorch, and the job is the launcher's.
    if torch is not None and torch.size > 1 and (launcher is None or launcher.size != torch.size):
        return torch
    return launcher if launcher is not None and launcher.size > 1 else None
