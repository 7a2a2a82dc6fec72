"""The places where pages are run: clusters whose servers run on this machine until an exit stack is closed."""

import contextlib
import os
import pathlib
import sys
from typing import Callable, Dict, List, Tuple

import slurm_cluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "submit/cluster"))
import ssh_hosts  # noqa: E402
import stand_in_kubernetes  # noqa: E402

#: A function that turns a command line into one that runs in the place, and additional environment variables.
Place = Tuple[Callable[[List[str]], List[str]], Dict[str, str]]
PARTITION = "PartitionName=cpu Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO\n"


def here(command: List[str]) -> List[str]:
    return command


def ssh(folder: pathlib.Path, programs: pathlib.Path, until: contextlib.ExitStack) -> Place:
    """Four hosts, named as in the tutorial by an ssh configuration that `programs`/ssh uses."""
    hosts = until.enter_context(contextlib.closing(ssh_hosts.SshHosts(folder, 4)))
    until.callback(hosts.check_nothing_runs)
    with hosts.config.open("a", encoding="utf-8") as config:
        config.writelines(f"Host node{host + 1}\n  HostName {hosts.address(host)}\n" for host in range(4))
    (programs / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {hosts.config} "$@"\n', encoding="utf-8")
    (programs / "ssh").chmod(0o755)
    return hosts.inside, {"OMPI_MCA_plm": "rsh"}


def slurm(folder: pathlib.Path, _: pathlib.Path, until: contextlib.ExitStack) -> Place:
    """Three nodes in the partition that the pages name."""
    cluster = slurm_cluster.SlurmCluster(folder / "servers", nodes=3, cpus=4, memory_mb=8000, extra=PARTITION)
    return here, until.enter_context(cluster).environment()


def kubernetes(folder: pathlib.Path, programs: pathlib.Path, until: contextlib.ExitStack, image_path: str) -> Place:
    """A stand-in for a Kubernetes cluster. Its containers see this machine's files, find programs by `image_path`, and start in an
    empty folder."""
    (folder / "image").mkdir()
    cluster = stand_in_kubernetes.StandInKubernetes(folder / "cluster", str(folder / "image"))
    until.enter_context(contextlib.closing(cluster))
    cluster.image_path = f"{image_path}:{os.environ['PATH']}"
    (programs / "kubectl").symlink_to(cluster.kubectl)
    return here, {name: value for name, value in cluster.environment().items() if name != "PATH"}
