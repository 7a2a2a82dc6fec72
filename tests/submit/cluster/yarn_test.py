"""dmlc-submit --cluster yarn with a stand-in for Hadoop: a program called `yarn` that records its command lines and runs the distributed
shell's script as YARN would, with bash, in containers numbered from 1. A container has its own directory only if files are shipped to
it; otherwise it runs in the test's directory, so that the test can read its files."""

import json
import os
import subprocess
import sys
import unittest

from cluster_case import ClusterBehaviour, ClusterCase

STAND_IN = r"""
import fcntl, json, os, shutil, signal, subprocess, sys, tempfile
record = os.environ["YARN_RECORD"]
with open(record, "a+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(json.dumps(sys.argv[1:]) + "\n")
    file.seek(0)
    application = "application_1700000000000_%04d" % (6 + sum(json.loads(line)[0] == "jar" for line in file))
if sys.argv[1] == "application":
    application = sys.argv[3]
pids = open(record + "." + application, "a+")  # locked while it is used; the last line of one that was killed is "killed"
if sys.argv[1:3] == ["application", "-kill"]:
    fcntl.flock(pids, fcntl.LOCK_EX)
    pids.seek(0)
    for pid in pids.read().split():
        try:
            os.killpg(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    pids.write("killed\n")
    sys.exit(0)
value = lambda option: sys.argv[sys.argv.index(option) + 1]
print("INFO impl.YarnClientImpl: Submitted application " + application, file=sys.stderr, flush=True)
script = os.path.join(os.path.dirname(record), f"ExecScript-{os.getpid()}.sh")
shutil.copy(value("-shell_script"), script)
containers = []
for number in range(1, int(value("-num_containers")) + 1):
    place = None
    if "-localize_files" in sys.argv:
        place = tempfile.mkdtemp(prefix="container-", dir=os.path.dirname(record))
        for name in value("-localize_files").split(","):
            shutil.copy(name, place)
    # Not what the client has in its environment: other machines.
    environment = {"PATH": os.environ["PATH"], "YARN_SHELL_ID": str(number)}
    fcntl.flock(pids, fcntl.LOCK_EX)
    pids.seek(0)
    if "killed" in pids.read():
        sys.exit(2)
    containers.append(subprocess.Popen(["bash", script], cwd=place, env=environment, start_new_session=True,
                                       stdin=subprocess.DEVNULL))
    pids.write(f"{containers[-1].pid}\n")
    pids.flush()
    fcntl.flock(pids, fcntl.LOCK_UN)
codes = [container.wait() for container in containers]
sys.exit(2 if any(codes) else 0)
"""


class YarnWithAStandIn(ClusterBehaviour, ClusterCase):
    CLUSTER = "yarn"

    def setUp(self):
        super().setUp()
        home = self.file("hadoop")
        (home / "share/hadoop/yarn").mkdir(parents=True)
        self.jar = home / "share/hadoop/yarn/hadoop-yarn-applications-distributedshell-3.3.6.jar"
        self.jar.write_text("")
        (home / "bin").mkdir()
        (home / "bin/yarn").write_text(f"#!{sys.executable}\n{STAND_IN}")
        (home / "bin/yarn").chmod(0o755)
        (home / "record").mkdir()

    def cluster_options(self):
        return [*super().cluster_options(), "--host-ip", "127.0.0.1", "--auto-file-cache", "off"]

    def cluster_environment(self):
        home = self.file("hadoop")
        return {"HADOOP_HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}",
                "YARN_RECORD": str(home / "record/commands")}  # fmt: skip

    def places_of_files(self):
        """Excludes the stand-in's files: whether other users can read the script that YARN's client copies depends on YARN's file system
        (docs/how-to/security.md)."""
        return [self.temporary]

    def commands(self):
        return [json.loads(line) for line in (self.file("hadoop") / "record/commands").read_text().splitlines()]

    def test_the_command_line_is_that_of_the_distributed_shell(self):
        process = self.submit("--num-workers", 2, "--queue", "prod", "--worker-memory", "2g", "--worker-cores", 3,
                              "--jobname", "a job", "--yarn-args", "-priority 5", "true")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        (words,) = self.commands()
        script = words.index("-shell_script")
        self.assertEqual(words[:script], [
            "jar", str(self.jar), "org.apache.hadoop.yarn.applications.distributedshell.Client", "-jar", str(self.jar),
            "-appname", "a_job", "-num_containers", "2", "-container_memory", "2048", "-container_vcores", "3",
            "-master_memory", "512", "-timeout", "2147483647"])  # fmt: skip
        self.assertEqual(words[script + 2 :], ["-queue", "prod", "-priority", "5"])
        self.assertIn("this is job application_1700000000000_0007 of YARN", process.err)

    def test_files_archives_and_what_the_command_names_are_shipped_into_the_containers(self):
        folder = self.file("folder")
        folder.mkdir()
        (folder / "script.sh").write_text('cat "$1" "$2" data/x; pwd\n')
        (folder / "named.txt").write_text("named\n")
        (folder / "given.txt").write_text("given\n")
        (folder / "x").write_text("packed\n")
        subprocess.run(["tar", "-cjf", "data.tar.bz2", "x"], cwd=folder, check=True)
        process = self.submit("--auto-file-cache", "on", "--num-workers", 2, "--files", "folder/given.txt", "--archives", "folder/data.tar.bz2",
                              "sh", "folder/script.sh", "folder/named.txt", "given.txt")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        for task in (0, 1):
            lines = [line for line in process.out.splitlines() if line.startswith(f"[{task}]")]
            self.assertEqual(lines[:3], [f"[{task}] {word}" for word in ("named", "given", "packed")])
            self.assertIn("record/container-", lines[3])
        self.file("tool-of-this-directory").write_text("#!/bin/sh\necho tool\n")
        self.file("tool-of-this-directory").chmod(0o755)
        process = self.submit("--auto-file-cache", "on", "--num-workers", 1, "--files", "folder/given.txt", "tool-of-this-directory")
        self.assertEqual(process.out, "[0] tool\n", process.err)
        process = self.submit("--num-workers", 1, "--dry-run", "sh", "folder/script.sh")
        self.assertNotIn("-localize_files", process.out)
        self.assertIn("folder/script.sh", process.out)

    def test_a_job_that_fails_is_killed_at_yarn(self):
        process = self.submit("--num-workers", 2, "sh", "-c", "[ $DMLC_TASK_ID = 0 ] || exit 3; exec sleep 600")
        self.assertEqual(process.returncode, 3, process.err)
        self.assertIn(["application", "-kill", "application_1700000000000_0007"], self.commands())


del ClusterBehaviour  # not a test by itself

if __name__ == "__main__":
    unittest.main()
