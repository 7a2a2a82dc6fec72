"""A real Slurm cluster on one machine, for tests: munged, slurmctld and several slurmd, all started as root, without systemd and slurmdbd,
with all files in one directory."""

import os
import shutil
import socket
import stat
import time

from cluster_daemons import ClusterOfDaemons
from warren_testing import free_ports

PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol", "squeue", "sinfo"]

CONFIGURATION = """\
ClusterName=warren
SlurmctldHost={host}({address})
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{task_plugin}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobRequeue=1
KillWait={kill_wait}
KillOnBadExit=0
MinJobAge={min_job_age}
SlurmctldTimeout=60
SlurmdTimeout=60
InactiveLimit=0
Waittime=0
DefMemPerCPU=100
{extra}
NodeName=DEFAULT CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory}{gres} State=UNKNOWN
{node_lines}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


class SlurmCluster(ClusterOfDaemons):
    """`nodes` is a list of names, or the number of nodes, which are then called node0, node1, and so on. According to Slurm, each node has
    `cpus` cores (possibly more than the machine, since slurmd gets config_overrides) and `gpus` fake GPUs."""

    def __init__(self, directory, nodes=3, cpus=4, gpus=0, kill_wait=2, min_job_age=300, extra="", timeout=60,
                 task_plugin="none", memory_mb=None):
        super().__init__(directory, timeout)
        self.nodes = nodes if isinstance(nodes, list) else [f"node{index}" for index in range(nodes)]
        self._begin(lambda: self._start(cpus, gpus, kill_wait, min_job_age, extra, task_plugin, memory_mb or cpus * 200))

    @property
    def configuration(self):
        return self.directory / "slurm.conf"

    def environment(self):
        return {"SLURM_CONF": str(self.configuration)}

    def _end_jobs(self):
        if not self.configuration.exists():
            return
        self.run("scancel", "--signal=KILL", "--full", "--user=root", timeout=5, capture_output=True)
        self.run("scancel", "--user=root", timeout=5, capture_output=True)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and self._running():
            time.sleep(0.1)

    def _start(self, cpus, gpus, kill_wait, min_job_age, extra, task_plugin, memory_mb):
        for name in ["munge", "state"]:
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        # munged refuses directories that others can write to (a sticky /tmp is fine); its socket must be reachable.
        self.directory.chmod(0o755)
        (self.directory / "munge").chmod(0o711)
        key = self.directory / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        host, address = socket.gethostname().split(".")[0], "127.0.0.1"
        ports = free_ports(1 + len(self.nodes))
        node_lines = "\n".join(f"NodeName={name} NodeHostname={host} NodeAddr={address} Port={port}"
                               for name, port in zip(self.nodes, ports[1:]))
        if gpus:
            # Copies of /dev/null (device 1, 3) stand in for the GPUs. Slurm requires devices, but opens none unless it uses cgroups.
            for index in range(gpus):
                os.mknod(self.directory / f"nvidia{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            (self.directory / "gres.conf").write_text(f"Name=gpu File={self.directory}/nvidia[0-{gpus - 1}]\n")
            extra = "GresTypes=gpu\n" + extra
        self.configuration.write_text(CONFIGURATION.format(
            host=host, address=address, directory=self.directory, controller_port=ports[0], kill_wait=kill_wait,
            min_job_age=min_job_age, task_plugin=task_plugin, cpus=cpus, memory=memory_mb, node_lines=node_lines,
            gres=f" Gres=gpu:{gpus}" if gpus else "",
            extra="SlurmdParameters=config_overrides\n" + extra))
        self._open_log()
        munge = self.directory / "munge"
        self._daemon("munged", "--foreground", "--force", "--num-threads=2", f"--socket={munge}/socket",
                     f"--key-file={key}", f"--pid-file={munge}/pid", f"--log-file={munge}/log",
                     f"--seed-file={munge}/seed")
        self._await(lambda: (munge / "socket").exists(), "munged makes its socket")
        self._daemon("slurmctld", "-D", "-i", "-f", self.configuration)
        for name in self.nodes:
            (self.directory / f"spool-{name}").mkdir(exist_ok=True)
            self._daemon("slurmd", "-D", "-N", name, "-f", self.configuration)
        self._await(self._all_idle, "all nodes are idle")

    def set_down(self, node):
        """Marks a node as failed; Slurm then kills the job processes that run there."""
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")

    def bring_back(self, node):
        """Makes a failed node usable again, and waits until all nodes are idle."""
        self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", capture_output=True)  # fails if Slurm already resumed it
        self._await(self._all_idle, "all nodes are idle")

    def _all_idle(self):
        done = self.run("sinfo", "--noheader", "--Node", "--format=%N %T", capture_output=True, text=True, timeout=30)
        # A set, because sinfo prints a line for each partition that a node is in.
        return set(done.stdout.split("\n")[:-1]) == {f"{name} idle" for name in self.nodes}

    def _running(self):
        return self.run("squeue", "--noheader", capture_output=True, text=True, timeout=5).stdout.strip()

    def _is_of_a_job(self, entry):
        """Whether the process is a slurmstepd, which leaves slurmd's process group, or a task, even one whose slurmstepd has ended.
        `entry`: its folder in /proc."""
        environment = (entry / "environ").read_bytes().split(b"\0")
        if f"SLURM_CONF={self.configuration}".encode() in environment and any(one.startswith(b"SLURMD_NODENAME=") for one in environment):
            return True
        return (entry / "cmdline").read_bytes().startswith(b"slurmstepd:") and any(
            os.readlink(link).startswith(f"{self.directory}/") for link in [entry / "cwd", *(entry / "fd").iterdir()])

    def _logs(self):
        return sorted(self.directory.rglob("*log"))


def why_not():
    """The reason why a Slurm cluster cannot run here; None if it can."""
    if os.geteuid() != 0:
        return "a Slurm cluster is started as root"
    for program in PROGRAMS:
        if not shutil.which(program):
            return f"there is no {program} here (Debian: slurm-wlm, munge)"
    return None
