"""Checks of each host's facts: versions, memory, kernels and GPUs. Pure functions."""
import os
from typing import Dict, List, Optional, Sequence

from warren._tools.doctor.model import OK, PROBLEM, WARNING, Asked, Finding, Survey, by_value, differing, size

#: Docker's default size of /dev/shm, which is too small for many programs.
_SMALL_SHARED_MEMORY = 64 << 20
_FEW_DESCRIPTORS = 1024


def versions(survey: Survey) -> List[Finding]:
    """Checks processors, Python and packages."""
    found: List[Finding] = []
    hosts = survey.answered
    machines = by_value(hosts, lambda host: host.facts["machine"])
    if len(machines) > 1:
        found.append(
            Finding(WARNING, "machine", f"hosts have different processors: {differing(machines)}",
                    "programs and wheels are needed for each; sums may differ in their last bits"))
    lacking = by_value([host for host in hosts if _lacks_environment(host)], lambda host: str(host.facts["python_wanted"]))
    for wanted, names in lacking.items():
        found.append(
            Finding(PROBLEM, "python", f"has no {wanted}, which `python` stands for in a job started from here",
                    "create this environment there, too, or give the path of the hosts' own interpreter in the command; python3 was "
                    "checked instead",
                    names))
    pythons = by_value(hosts, lambda host: ".".join(host.facts["python"].split(".")[:2]))
    old = [host.name for host in hosts if tuple(map(int, host.facts["python"].split(".")[:2])) < (3, 9)]
    if old:
        found.append(
            Finding(WARNING, "python", "is older than 3.9, which Warren's package needs",
                    "install a newer one, or give --python PROGRAM", old))
    if len(pythons) > 1:
        found.append(
            Finding(
                WARNING, "python", f"versions differ: {differing(pythons)}", "pickled objects and wheels may be incompatible: use one "
                "version, such as that of a virtual environment that all hosts share (check it here with --python PROGRAM)"))
    elif pythons and not old and not lacking:
        found.append(Finding(OK, "python", next(iter(pythons)) + " everywhere"))
    return found + _packages(hosts)


def _lacks_environment(host: Asked) -> bool:
    """Whether the host has no interpreter at the wanted path, so that another one was used."""
    return os.path.isabs(host.facts.get("python_wanted") or "") and host.facts["python_path"] != host.facts["python_wanted"]


def _pip_of(hosts: Sequence[Asked]) -> str:
    """The pip command of the hosts' interpreters if they all have the same path, else "pip"."""
    paths = {host.facts["python_path"] for host in hosts}
    return f"{paths.pop()} -m pip" if len(paths) == 1 else "pip"


def _packages(hosts: Sequence[Asked]) -> List[Finding]:
    found = [
        Finding(WARNING, "packages", f"has a package 'warren' ({host.facts['packages']['warren']}), which is another project's: one of the "
                "two is what `import warren` finds", "pip uninstall warren, then pip install --force-reinstall warren-train", [host.name])
        for host in hosts if host.facts["packages"].get("warren")
    ]
    same, nowhere = [], []
    for package in ("warren-train", "xgboost", "lightgbm", "torch", "pyarrow", "numpy"):

        def version(host: Asked, package: str = package) -> Optional[str]:
            packages: Dict[str, Optional[str]] = host.facts["packages"]
            program = str(host.facts["dmlc_submit"] or "").rpartition(" ")[2] if package == "warren-train" else ""  # installed without a wheel
            return packages.get(package) or packages.get(f"{package}-cpu") or program or None

        versions = by_value(hosts, version)
        if set(versions) == {None}:
            nowhere.append(package)
        elif len(versions) == 1:
            same.append(f"{package} {next(iter(versions))}")
        else:
            wanted = max((str(one) for one in versions if one), key=lambda one: len(versions[one]))
            others = [host for host in hosts if version(host) != wanted]
            found.append(
                Finding(WARNING, "packages", f"{package}: {differing(versions, lambda one: one or 'not installed')}",
                        f"install the same everywhere: {_pip_of(others)} install {package}=={wanted}"))
    if same or nowhere:
        found.append(
            Finding(OK, "packages",
                    "; ".join(filter(None, [", ".join(same), f"not installed: {', '.join(nowhere)}" * bool(nowhere)]))))
    return found


def memory(survey: Survey) -> List[Finding]:
    """Checks shared memory, limits and control groups."""
    found: List[Finding] = []
    hosts = survey.answered
    for host in hosts:
        shared = host.facts["shared_memory"]
        if shared is None or not shared["writable"]:
            found.append(
                Finding(
                    WARNING, "memory", "has no writable /dev/shm",
                    "mount -t tmpfs tmpfs /dev/shm: NCCL, MPI libraries and "
                    "PyTorch's data loaders need it (Warren's engine does not)", [host.name]))
        elif shared["size"] <= _SMALL_SHARED_MEMORY:
            found.append(
                Finding(
                    WARNING, "memory", f"has a /dev/shm of {size(shared['size'])}",
                    "in a container: docker run --shm-size=1g, or an "
                    "emptyDir of medium Memory; NCCL, MPI libraries and PyTorch's data loaders run out of space there", [host.name]))
        elif shared["free"] < shared["size"] / 10:
            found.append(
                Finding(WARNING, "memory", f"has only {size(shared['free'])} of {size(shared['size'])} left in /dev/shm",
                        "remove the files that killed programs left there: ls -l /dev/shm", [host.name]))
        soft, hard = host.facts["nofile"]
        if soft is not None and soft < _FEW_DESCRIPTORS:
            found.append(
                Finding(
                    WARNING, "limits", f"limits a process to {soft} open files (ulimit -n)",
                    f"ulimit -n {4096 if hard is None else min(hard, 4096)} in ~/.bashrc or /etc/security/limits.conf: "
                    "a rank needs two for each other rank of its host and one for each link", [host.name]))
        locked = host.facts["memlock"][0]
        if locked is not None and locked < _SMALL_SHARED_MEMORY and (host.facts["gpus"] or {}).get("found"):
            found.append(
                Finding(WARNING, "limits", f"limits a process to {size(locked)} of locked memory (ulimit -l)",
                        "ulimit -l unlimited: NCCL over "
                        "InfiniBand needs it (Warren's engine does not)", [host.name]))
    if hosts and not found:
        least = min(hosts, key=lambda host: int(host.facts["shared_memory"]["free"]))
        found.append(Finding(OK, "memory", f"/dev/shm has at least {size(least.facts['shared_memory']['free'])} free"))
    limited = by_value([host for host in hosts if host.facts["memory_limit"]], lambda host: size(host.facts["memory_limit"]))
    for limit, names in limited.items():
        found.append(Finding(OK, "memory", f"a control group limits all processes together to {limit}", hosts=names))
    return found


#: For each feature, the level and consequence of its absence.
_KERNEL = {
    "pidfd_open": (OK, "a pipe reports ended processes instead"),
    "memfd_create": (WARNING, "ranks of one host use TCP instead of shared memory"),
    "process_vm_readv": (OK, "only MPI libraries use it, and copy twice without it"),
    "futex": (PROBLEM, "ranks cannot wait for each other in shared memory")
}


def kernel(survey: Survey) -> List[Finding]:
    """Checks the kernel features that Warren and MPI libraries use."""
    found: List[Finding] = []
    for host in survey.answered:
        features = host.facts["kernel"]
        if features is None:
            found.append(
                Finding(WARNING, "kernel", f"is {host.facts['system']} on {host.facts['machine']}",
                        "Warren supports Linux on x86-64 and ARM64", [host.name]))
            continue
        for feature, (level, consequence) in _KERNEL.items():
            if features.get(feature) is not True:
                scope = host.facts.get("ptrace_scope")
                traced = feature == "process_vm_readv" and scope not in (None, "0")
                yama = f"; kernel.yama.ptrace_scope is {scope}" if traced else ""
                advice = "" if level == OK else "use a kernel from 5.3 on, and a container whose seccomp profile allows it"
                found.append(
                    Finding(level, "kernel", f"{feature}: {features.get(feature)}{yama}; {consequence}", advice, [host.name]))
    if survey.answered and not found:
        found.append(Finding(OK, "kernel", "has pidfd_open, memfd_create, process_vm_readv and futex"))
    return found


def _kind_of_gpus(host: Asked) -> str:
    """Describes a host's GPUs, e.g. '8 x H100, CUDA 12.4, NCCL 2.20.5'."""
    found = host.facts["gpus"]["found"]
    cuda, nccl = host.facts["cuda"], host.facts["nccl"]
    named = [f"{len(found)} x {found[0][0]}"]
    if cuda:
        named.append(f"CUDA {cuda // 1000}.{cuda % 1000 // 10}")
    if nccl:
        named.append(f"NCCL {nccl // 10000}.{nccl // 100 % 100}.{nccl % 100}")
    return ", ".join(named)


def gpus(survey: Survey) -> List[Finding]:
    """Checks GPUs, drivers and NCCL."""
    found: List[Finding] = []
    hosts = survey.answered
    for host in hosts:
        seen = host.facts["gpus"] or {}
        if "error" in seen:
            found.append(
                Finding(
                    WARNING, "GPUs", f"nvidia-smi fails: {seen['error']}",
                    "load the driver's module (modprobe nvidia), or reboot after a driver update; jobs without GPUs are not "
                    "affected", [host.name]))
        elif seen.get("found") and host.facts["nccl"] is None:
            found.append(
                Finding(
                    WARNING, "GPUs", "libnccl.so.2 was not found",
                    "install libnccl2, or add the one of PyTorch's wheel to LD_LIBRARY_PATH; without it, collectives of GPUs go through "
                    "host memory", [host.name]))
    having = [host for host in hosts if (host.facts["gpus"] or {}).get("found")]
    drivers = by_value(having, lambda host: host.facts["gpus"]["found"][0][1])
    if len(drivers) > 1:
        found.append(Finding(WARNING, "GPUs", f"drivers differ: {differing(drivers)}", "install the same on all hosts"))
    libraries = by_value([host for host in having if host.facts["nccl"]], lambda host: host.facts["nccl"])
    if len(libraries) > 1:
        found.append(
            Finding(PROBLEM, "GPUs", f"versions of NCCL differ: {differing(libraries)}",
                    "install the same on all hosts: NCCL refuses to connect different versions"))
    kinds = by_value(having, _kind_of_gpus)
    if kinds:
        found.append(Finding(OK, "GPUs", differing(kinds)))
    elif hosts and not found:
        found.append(Finding(OK, "GPUs", "none"))
    return found
