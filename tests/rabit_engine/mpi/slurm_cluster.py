"""A Slurm of this machine alone: munged, slurmctld and slurmd in a scratch folder, gone with the test.

Runs as root. No cgroups, no accounting, one node that is told to have more CPUs than it has.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

NUM_CPUS = 8
LIMIT_S = 60
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")


def missing():
    """The programs of Slurm and munge that are not installed."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [name for name in PROGRAMS if not shutil.which(name, path=path)]


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for sock in held:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in held]
    for sock in held:
        sock.close()
    return ports


class SlurmCluster:
    """Use as a context manager; `env` is what srun needs in its environment."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="warren-slurm-"))
        self.folder.chmod(0o755)  # munge insists
        self.env = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons = []

    def __enter__(self):
        try:
            self._configure()
            self._start("munged", "--foreground", "--force", *self._munge_files())
            self._wait(lambda: (self.folder / "munge.socket").exists(), "munged")
            self._start("slurmctld", "-D")
            self._start("slurmd", "-D")
            self._wait(self._is_idle, "the node")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):  # each has a group of its own, with what it started
            try:
                os.killpg(daemon.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait()
        for pid in self._strays():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def _strays(self):
        """Steps live in sessions of their own and may outlive slurmd: whoever has this folder's configuration."""
        mark = f"SLURM_CONF={self.folder}/slurm.conf".encode()
        for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if int(entry.parent.name) != os.getpid() and mark in entry.read_bytes().split(b"\0"):
                    yield int(entry.parent.name)
            except OSError:
                pass  # it has ended

    def _munge_files(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        return [f"--{option}={self.folder}/munge.{name}" for option, name in files.items()]

    def _configure(self):
        host = socket.gethostname()
        controller_port, node_port = free_ports(2)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        (self.folder / "slurm.conf").write_text(
            f"""ClusterName=warren
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={NUM_CPUS} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
        )

    def _start(self, program, *arguments):
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        with open(self.folder / f"{program}.out", "wb") as out:
            self.daemons.append(
                subprocess.Popen(
                    [shutil.which(program, path=path), *arguments],
                    env=os.environ | self.env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            )

    def _is_idle(self):
        state = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env=os.environ | self.env, capture_output=True, text=True
        )
        return state.stdout.strip() == "idle"

    def _wait(self, condition, what):
        end = time.monotonic() + LIMIT_S
        while not condition():
            dead = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if dead or time.monotonic() > end:
                raise RuntimeError(f"{what} did not come up; ended: {dead or 'none'}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        texts = []
        for path in sorted(self.folder.glob("*.out")) + sorted(self.folder.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            texts.append("\n".join([f"--- {path.name}", *(re.sub(r"\x00", "", line) for line in lines)]))
        return "\n".join(texts)
