"""A real Grid Engine (Debian: gridengine-master, gridengine-exec, gridengine-client) on one machine, for tests: sge_qmaster and one
sge_execd, started as root without systemd, with all files in one directory."""

import os
import pathlib
import pwd
import socket

from cluster_daemons import ClusterOfDaemons
from warren_testing import free_ports

LIBRARY = pathlib.Path("/usr/lib/gridengine")
SHARE = pathlib.Path("/usr/share/gridengine")
PROGRAMS = ["sge_qmaster", "sge_execd", "sge_shepherd", "qsub", "qstat", "qdel", "qconf", "qacct"]

BOOTSTRAP = """\
admin_user              {admin}
default_domain          none
ignore_fqdn             true
spooling_method         classic
spooling_lib            libspoolc
spooling_params         {root}/default/common;{root}/qmaster
binary_path             /usr/lib/gridengine
qmaster_spool_dir       {root}/qmaster
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
jvm_threads             0
"""

QUEUE = """\
qname                 all.q
hostlist              {host}
seq_no                0
load_thresholds       NONE
suspend_thresholds    NONE
nsuspend              1
suspend_interval      00:05:00
priority              0
min_cpu_interval      00:05:00
processors            UNDEFINED
qtype                 BATCH INTERACTIVE
ckpt_list             NONE
pe_list               {pe_list}
rerun                 FALSE
slots                 {slots}
tmpdir                /tmp
shell                 /bin/sh
prolog                NONE
epilog                NONE
shell_start_mode      {shell_start_mode}
starter_method        NONE
suspend_method        NONE
resume_method         NONE
terminate_method      NONE
notify                {notify}
owner_list            NONE
user_lists            NONE
xuser_lists           NONE
subordinate_list      NONE
complex_values        NONE
projects              NONE
xprojects             NONE
calendar              NONE
initial_state         default
s_rt                  INFINITY
h_rt                  INFINITY
s_cpu                 INFINITY
h_cpu                 INFINITY
s_fsize               INFINITY
h_fsize               INFINITY
s_data                INFINITY
h_data                INFINITY
s_stack               INFINITY
h_stack               INFINITY
s_core                INFINITY
h_core                INFINITY
s_rss                 INFINITY
h_rss                 INFINITY
s_vmem                INFINITY
h_vmem                INFINITY
"""

PARALLEL_ENVIRONMENT = """\
pe_name            smp
slots              999
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    $pe_slots
control_slaves     FALSE
job_is_first_task  TRUE
urgency_slots      min
accounting_summary FALSE
qsort_args         NONE
"""


class SgeCluster(ClusterOfDaemons):
    """A cluster whose only execution host is this machine, with `slots` slots in the queue all.q and a parallel environment smp."""

    def __init__(self, directory, slots=4, shell_start_mode="posix_compliant", notify="00:00:02", timeout=60):
        super().__init__(directory, timeout)
        self.ports = free_ports(2)
        self._begin(lambda: self._start(slots, shell_start_mode, notify))

    def environment(self):
        """The variables that the clients (qsub, qstat, ...) need, in addition to the usual environment."""
        return {"SGE_ROOT": str(self.directory), "SGE_CELL": "default", "SGE_QMASTER_PORT": str(self.ports[0]),
                "SGE_EXECD_PORT": str(self.ports[1])}

    @property
    def accounting(self):
        return self.directory / "default" / "common" / "accounting"

    def _end_jobs(self):
        self.run("qdel", "-f", "-u", "*", timeout=5, capture_output=True)
        self._kill_jobs()  # the jobs' processes run in their own sessions

    def _start(self, slots, shell_start_mode, notify):
        admin = "root"
        common = self.directory / "default" / "common"
        for path in [common, self.directory / "qmaster" / "job_scripts", self.directory / "execd"]:
            path.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o755)
        for name in ["util", "lib", "utilbin", "bin"]:
            source = pathlib.Path("/var/lib/gridengine") / name
            if source.exists() and not (self.directory / name).exists():
                (self.directory / name).symlink_to(source)
        host = socket.gethostname()
        (common / "bootstrap").write_text(BOOTSTRAP.format(admin=admin, root=self.directory))
        (common / "act_qmaster").write_text(host + "\n")
        # If the host's name resolves to an address with several names (e.g. 127.0.0.1, which is also localhost), qmaster and its clients
        # disagree on the name: "local host name error". In host_aliases, the first name on each line is the canonical one.
        canonical, others, _ = socket.gethostbyaddr(socket.gethostbyname(host))
        names = [host] + [name for name in dict.fromkeys([canonical, *others]) if name != host]
        if len(names) > 1:
            (common / "host_aliases").write_text(" ".join(names) + "\n")
        # The default min_uid of 1000 would forbid root's jobs.
        configuration = (SHARE / "default-configuration").read_text()
        changes = {"execd_spool_dir": str(self.directory / "execd"), "min_uid": "0", "min_gid": "0", "mailer": "/bin/true",
                   "load_report_time": "00:00:01", "shell_start_mode": shell_start_mode,
                   "reporting_params": "accounting=true reporting=false flush_time=00:00:01 "
                                       "accounting_flush_time=00:00:00 joblog=false sharelog=00:00:00",
                   "execd_params": "NONE", "qmaster_params": "NONE"}
        lines = [f"{line.split()[0]} {changes.pop(line.split()[0], ' '.join(line.split()[1:]))}"
                 for line in configuration.splitlines() if line.split()]
        lines += [f"{key} {value}" for key, value in changes.items()]
        (self.directory / "configuration").write_text("\n".join(lines) + "\n")
        self._open_log()
        self._need(LIBRARY / "spoolinit", "classic", "libspoolc", f"{common};{self.directory / 'qmaster'}", "init")
        default = LIBRARY / "spooldefaults"
        self._need(default, "configuration", self.directory / "configuration")
        self._need(default, "complexes", SHARE / "util" / "resources" / "centry")
        self._need(default, "usersets", SHARE / "util" / "resources" / "usersets")
        self._need(default, "managers", "root")
        self._need(default, "operators", "root")
        self._serve("sge_qmaster")
        self._await(lambda: self.run("qconf", "-sh", capture_output=True, timeout=20).returncode == 0, "qmaster answers")
        self.run("qconf", "-ah", host, capture_output=True)
        self._need("qconf", "-as", host)
        for option, name, text in [("-Ap", "pe", PARALLEL_ENVIRONMENT),
                                   ("-Aq", "queue", QUEUE.format(host=host, slots=slots, pe_list="smp", notify=notify,
                                                                 shell_start_mode=shell_start_mode)),
                                   ("-Msconf", "scheduler", None)]:
            if text is None:
                text = self.run("qconf", "-ssconf", capture_output=True, text=True).stdout
                text = "\n".join(f"{line.split()[0]} 0:0:1" if line.startswith("schedule_interval") else
                                 f"{line.split()[0]} 1" if line.startswith("flush_") else line
                                 for line in text.splitlines()) + "\n"
            path = self.directory / name
            path.write_text(text)
            self._need("qconf", option, path)
        self._serve("sge_execd")
        self._await(self._ready, "the queue is ready")

    def _need(self, *words):
        done = self.run(*words, capture_output=True, text=True, timeout=30)
        self.log.write(f"{words}: {done.returncode}: {done.stdout}{done.stderr}\n".encode())
        self.log.flush()
        if done.returncode != 0:
            raise OSError(f"{words}: {done.stdout}{done.stderr}")

    def _serve(self, name):
        # Jobs run in login shells. An empty home directory keeps them from reading the user's startup files.
        empty_home = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"',
                      pwd.getpwuid(os.getuid()).pw_dir]  # fmt: skip
        # SGE_ND keeps the daemon in the foreground, as a child of this process.
        self._daemon(*empty_home, LIBRARY / name, SGE_ND="1")

    def _ready(self):
        done = self.run("qstat", "-f", capture_output=True, text=True, timeout=20)
        words = [line.split() for line in done.stdout.splitlines() if line.startswith("all.q@")]
        return bool(words) and len(words[0]) == 5  # a sixth word is a state such as "au"

    def _is_of_a_job(self, entry):
        """Whether the process is a shepherd or was started by one, even if the shepherd has ended since."""
        mark = f"SGE_JOB_SPOOL_DIR={self.directory}/".encode()
        return (any(one.startswith(mark) for one in (entry / "environ").read_bytes().split(b"\0"))
                or b"sge_shepherd" in (entry / "cmdline").read_bytes()
                and os.readlink(entry / "cwd").startswith(f"{self.directory}/"))

    def _logs(self):
        return [self.directory / "daemons.log", *sorted(self.directory.rglob("messages"))]


def why_not():
    """The reason why Grid Engine cannot run here; None if it can."""
    if os.geteuid() != 0:
        return "a Grid Engine is started as root"
    for program in PROGRAMS:
        if not (LIBRARY / program).exists():
            return f"there is no {program} here (Debian: gridengine-master, gridengine-exec, gridengine-client)"
    return None
