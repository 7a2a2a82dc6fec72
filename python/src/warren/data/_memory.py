"""The memory that a worker may use, and the form of a data set that fits into it."""
import os
import pathlib
import re
from typing import Dict, List, Mapping, NamedTuple, Optional

#: A cgroup's limit of at least this many bytes means that there is no limit.
_NO_LIMIT = 1 << 60
#: The fraction of the limit that is available to data; the rest is for histograms, predictions and the program.
SHARE_FOR_DATA = 0.6


class Need(NamedTuple):
    """XGBoost's peak memory for a number of rows and features, in bytes. Computed from the size of a value: a float32 in our rows, an
    8-byte entry in a DMatrix, and a bin of 1, 2 or 4 bytes in its histogram index."""

    matrix: int  #: for our rows, a DMatrix, and its histogram index
    quantile: int  #: for a QuantileDMatrix made from batches, including the batches
    batch: int  #: for the batches that are in memory at the same time

    @staticmethod
    def of(rows: int, features: int, max_bin: int, batch_rows: int) -> "Need":
        """The memory for dense rows."""
        values = rows * features
        bin_bytes = 1 if max_bin <= 256 else 2 if max_bin <= 65536 else 4
        batch = 4 * batch_rows * features * 4  # two batches read ahead, one in use, one being decoded
        return Need(values * (4 + 8 + bin_bytes), values * bin_bytes + rows * 8 + batch, batch)


def choice(need: Need, limit: int, quantile: bool) -> str:
    """Returns the form that fits into SHARE_FOR_DATA of `limit` bytes: "matrix" (made from all rows in memory), "quantile" (a QuantileDMatrix
    made from batches) or else "external" (pages on disk). `quantile`: whether a "matrix" would be a QuantileDMatrix, too."""
    room = int(limit * SHARE_FOR_DATA)
    whole = need.matrix if not quantile else need.matrix * 5 // 13  # without the 8-byte entries of a DMatrix, 5 of 13 bytes for each value
    return "matrix" if whole <= room else "quantile" if need.quantile <= room else "external"


def of_cgroup(membership: str, mounts: str, read: Mapping[str, str]) -> Optional[int]:
    """The smallest limit of the cgroups of a process, in bytes, or None. A pure function: `membership` is the text of /proc/self/cgroup,
    `mounts` that of /proc/self/mountinfo, and `read` maps the limits' files to their contents."""
    limits: List[int] = []
    for path in limit_files(membership, mounts):
        text = read.get(path, "").strip()
        if text.isdigit() and int(text) < _NO_LIMIT:
            limits.append(int(text))
    return min(limits) if limits else None


def limit_files(membership: str, mounts: str) -> List[str]:
    """The files that may contain limits: the files of the process's cgroup and of its ancestors, in cgroup versions 1 and 2."""
    places: Dict[str, str] = {}
    for line in mounts.splitlines():
        words = line.split(" ")
        if " - cgroup2 " in line:
            places["2"] = words[4]
        elif " - cgroup " in line and "memory" in line.rsplit(" ", 1)[-1].split(","):
            places["1"] = words[4]
    found = []
    for line in membership.splitlines():
        number, controllers, path = line.split(":", 2)
        version = "2" if number == "0" and not controllers else "1" if "memory" in controllers.split(",") else None
        if version is None or version not in places:
            continue
        name = "memory.max" if version == "2" else "memory.limit_in_bytes"
        parts = [part for part in path.split("/") if part]
        found += ["/".join([places[version], *parts[:count], name]) for count in range(len(parts), -1, -1)]
    return found


def _text(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def workers_here() -> int:
    """The number of workers on this host, from the launcher's environment variables; 1 if no launcher has set them."""
    for name in ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"):
        if os.environ.get(name, "").isdigit() and int(os.environ[name]) > 0:
            return int(os.environ[name])
    return _tasks_of_slurm(os.environ.get("SLURM_STEP_TASKS_PER_NODE", ""), os.environ.get("SLURM_NODEID", ""))


def _tasks_of_slurm(tasks: str, node: str) -> int:
    """The number of tasks of a node of a Slurm step; `tasks` is a list such as "4(x2),3". 1 if it does not say so. A pure function."""
    if not node.isdigit():
        return 1
    counts = [int(found[1]) for word in tasks.split(",") for found in [re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", word)] if found
              for _ in range(int(found[2] or 1))]
    return max(1, counts[int(node)]) if int(node) < len(counts) else 1


def limit() -> int:
    """The bytes that this worker may use: its part of the host's memory, or of its cgroup's limit if that is less."""
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    membership, mounts = _text("/proc/self/cgroup"), _text("/proc/self/mountinfo")
    allowed = of_cgroup(membership, mounts, {path: _text(path) for path in limit_files(membership, mounts)})
    return min(host, allowed or host) // workers_here()
