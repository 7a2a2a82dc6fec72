"""How much memory a worker may use, and what of a data set fits into it."""
import os
import pathlib
from typing import Dict, List, Mapping, NamedTuple, Optional

#: Above this a limit of a cgroup says that there is none.
_NO_LIMIT = 1 << 60
#: Of the limit, what data may take: the rest is for histograms, predictions, the program.
SHARE_FOR_DATA = 0.6


class Need(NamedTuple):
    """What XGBoost takes for so many rows of so many features, in bytes, at its peak. From how it stores them: a float32 here, an
    8-byte entry in a DMatrix, a bin of 1, 2 or 4 bytes in its histogram index."""

    matrix: int  #: rows here, a DMatrix, and the index made of it
    quantile: int  #: a QuantileDMatrix made from batches
    batch: int

    @staticmethod
    def of(rows: int, features: int, max_bin: int, batch_rows: int) -> "Need":
        """Dense rows."""
        values = rows * features
        bin_bytes = 1 if max_bin <= 256 else 2 if max_bin <= 65536 else 4
        batch = 4 * batch_rows * features * 4  # two read ahead, one used, one that is decoded
        return Need(values * (4 + 8 + bin_bytes), values * bin_bytes + rows * 8 + batch, batch)


def choice(need: Need, limit: int, quantile: bool) -> str:
    """What to make: "matrix" (rows in memory first), "quantile" (a QuantileDMatrix from batches) or "external" (pages on disk)."""
    room = int(limit * SHARE_FOR_DATA)
    whole = need.matrix if not quantile else need.matrix * 5 // 13  # no DMatrix between
    return "matrix" if whole <= room else "quantile" if need.quantile <= room else "external"


def of_cgroup(membership: str, mounts: str, read: Mapping[str, str]) -> Optional[int]:
    """The least limit of the cgroups that a process is in, in bytes; None: there is none. Pure: `membership` is /proc/self/cgroup,
    `mounts` /proc/self/mountinfo, `read` what the limits' files hold."""
    limits: List[int] = []
    for path in limit_files(membership, mounts):
        text = read.get(path, "").strip()
        if text.isdigit() and int(text) < _NO_LIMIT:
            limits.append(int(text))
    return min(limits) if limits else None


def limit_files(membership: str, mounts: str) -> List[str]:
    """The files that may hold limits: of the process's cgroup and of those above it, in version 1 and 2."""
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
    """How many workers share this host's memory, as far as the job says."""
    for name in ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"):
        if os.environ.get(name, "").isdigit() and int(os.environ[name]) > 0:
            return int(os.environ[name])
    return 1


def limit() -> int:
    """The bytes that this worker may use: its part of the host's memory, or of what its cgroup allows, if that is less."""
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    membership, mounts = _text("/proc/self/cgroup"), _text("/proc/self/mountinfo")
    allowed = of_cgroup(membership, mounts, {path: _text(path) for path in limit_files(membership, mounts)})
    return min(host, allowed or host) // workers_here()
