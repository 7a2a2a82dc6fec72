"""New systems of Debian, each a root file system in a folder: bench/install and bench/compilers try there what a machine of somebody
else's would have. Makes them with mmdebstrap, as root."""

import os
import pathlib
import platform
import shutil
import subprocess
from typing import Sequence, Tuple

BINFMT = "/proc/sys/fs/binfmt_misc"
EMULATOR = "/usr/lib/binfmt.d/qemu-aarch64.conf"  # of qemu-user-static
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


class Failure(Exception):
    """In a system."""


class System:
    """Of a suite (bookworm) with these packages. Another processor's is emulated by qemu."""
    def __init__(self, folder: pathlib.Path, suite: str, packages: Sequence[str], architecture: str = platform.machine()) -> None:
        self.folder = folder
        self.emulated = architecture != platform.machine()
        wanted = [*packages, "ca-certificates", *(["libstdc++6", "dash", "coreutils", "base-files"] if self.emulated else [])]
        # What another processor's packages would run when they are configured is left out.
        made = subprocess.run(["mmdebstrap", f"--variant={'extract' if self.emulated else 'minbase'}", f"--include={','.join(wanted)}",
                               "--mode=root",
                               # A mirror of sid that is some weeks old will do; it is signed all the same.
                               "--aptopt=Acquire::Check-Valid-Until \"false\"",
                               f"--architectures={ {'x86_64': 'amd64', 'aarch64': 'arm64'}[architecture]}", suite, str(folder)],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            errors = [line for line in made.stderr.splitlines() if line.startswith("E: ")]
            raise Failure(f"mmdebstrap: {(errors or [made.stderr.strip()])[0]}")
        for file in (CERTIFICATES, pathlib.Path("/etc/resolv.conf"), pathlib.Path("/etc/hosts")):
            if file.exists():
                (folder / str(file)[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, folder / str(file)[1:])

    def run(self, command: str, folders: Sequence[Tuple[pathlib.Path, str]] = (), limit_s: float = 1800) -> str:
        """What it writes; in /root, with /proc, /dev and /dev/shm, and with `folders` of this machine at places in the system; all of
        these are gone afterwards. Raises Failure with its last line, TimeoutExpired."""
        mounts = f"mount -t proc proc {self.folder}/proc; mount --rbind /dev {self.folder}/dev"
        for source, place in folders:
            mounts += f"; mkdir -p {self.folder}{place}; mount --bind {source} {self.folder}{place}"
        spaces = ["--mount", "--pid", "--fork", "--kill-child"]
        if self.emulated:  # in a user namespace, whose table of emulators is its own
            mounts = f"mount -t binfmt_misc binfmt_misc {BINFMT}; cat {EMULATOR} >{BINFMT}/register; {mounts}"
            spaces += ["--user", "--map-root-user"]
        kept = [f"{name}={value}" for name, value in os.environ.items()
                if name.lower().endswith("_proxy") or name.startswith("PIP_INDEX")]
        environment = ["PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root", "LC_ALL=C.UTF-8", f"PIP_CERT={CERTIFICATES}", *kept]
        done = subprocess.run(["unshare", *spaces, "sh", "-ec", f"{mounts}; exec chroot {self.folder} \"$@\"", "sh", "env", "-i",
                               *environment, "sh", "-ec", f"cd /root; {command}"],
                              capture_output=True, text=True, check=False, timeout=limit_s)
        if done.returncode != 0:
            raise Failure(f"`{command.split(' && ')[-1]}`: {((done.stderr or done.stdout).strip().splitlines() or ['no output'])[-1]}")
        return done.stdout.strip()
