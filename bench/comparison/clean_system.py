"""Sets up a minimal new Debian system in a folder with mmdebstrap, and runs commands in it. Needs root and the network."""

import os
import pathlib
import platform
import shutil
import subprocess
from typing import Dict, Sequence, Tuple

BINFMT = "/proc/sys/fs/binfmt_misc"
EMULATOR = "/usr/lib/binfmt.d/qemu-aarch64.conf"  # part of qemu-user-static
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


class Failure(Exception):
    """The setup of a system, or a command in it, failed."""


class System:
    """A root file system in `folder`, with Python's venv, CA certificates and `packages`."""
    def __init__(self, folder: pathlib.Path, suite: str, architecture: str = "", packages: Sequence[str] = ()) -> None:
        self.folder = folder
        architecture = architecture or platform.machine()
        self.emulated = architecture != platform.machine()
        wanted = ["python3-venv", "ca-certificates", *packages]
        if self.emulated:
            wanted += ["libstdc++6", "dash", "coreutils", "base-files"]
        # Packages for another processor are unpacked but not configured, because that would run their programs. The mounts are private to a
        # mount namespace: otherwise, after an interruption, deleting the folder would descend into /proc and /sys.
        made = subprocess.run(["unshare", "--mount", "mmdebstrap", f"--variant={'extract' if self.emulated else 'minbase'}",
                               f"--include={','.join(wanted)}",
                               # A mirror of sid may be some weeks old. Its signature is still checked.
                               "--mode=root", "--aptopt=Acquire::Check-Valid-Until \"false\"",
                               f"--architectures={ {'x86_64': 'amd64', 'aarch64': 'arm64'}[architecture]}", suite, str(folder)],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            errors = [line for line in made.stderr.splitlines() if line.startswith("E: ")]
            raise Failure(f"mmdebstrap: {(errors or [made.stderr.strip()])[0]}")
        for file in (CERTIFICATES, pathlib.Path("/etc/resolv.conf"), pathlib.Path("/etc/hosts")):
            if file.exists():
                (folder / str(file)[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, folder / str(file)[1:])

    def run(self, command: str, folders: Sequence[Tuple[pathlib.Path, str]] = (), limit_s: float = 1800, **environment: str) -> str:
        """Runs the command in /root and returns its standard output. Until the command ends, /proc, /dev and /dev/shm are mounted, and each
        of `folders` (a folder of this machine, e.g. /sys, and a path in the system) is mounted at its path. Raises Failure with the
        command's output, and subprocess.TimeoutExpired after `limit_s` seconds."""
        mounts = f"mount -t proc proc {self.folder}/proc; mount --rbind /dev {self.folder}/dev"
        spaces = ["--mount", "--pid", "--fork", "--kill-child"]
        if self.emulated:  # in a user namespace, which has a separate table of emulators
            mounts = f"mount -t binfmt_misc binfmt_misc {BINFMT}; cat {EMULATOR} >{BINFMT}/register; {mounts}"
            spaces += ["--user", "--map-root-user"]
        if folders:  # makes the root a mount point, which network namespaces require
            mounts = f"mount --bind {self.folder} {self.folder}; {mounts}"
        for here, there in folders:
            mounts += f"; mkdir -p {self.folder}{there}; mount --rbind {here} {self.folder}{there}"
        kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy") or name.startswith("PIP_INDEX")}
        given: Dict[str, str] = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "PIP_CERT": str(CERTIFICATES), **kept,
                                 **environment}
        done = subprocess.run(["unshare", *spaces, "sh", "-ec", f"{mounts}; exec chroot {self.folder} \"$@\"", "sh", "env", "-i",
                               *(f"{name}={value}" for name, value in given.items()), "sh", "-ec", f"cd /root; {command}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=limit_s)
        if done.returncode != 0:
            raise Failure(f"`{command.split(' && ')[-1]}`: {(done.stderr or done.stdout).strip()}")
        return done.stdout.strip()
