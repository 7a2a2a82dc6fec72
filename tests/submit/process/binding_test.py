"""dmlc-submit --bind: the cores of processes on this machine. binding_test.cc tests other machines."""

import os
import re
import shutil
import subprocess
import unittest

from submit_case import LIMIT_S, SubmitCase, python

ALLOWED = sorted(os.sched_getaffinity(0))
SHOW = python("import os; print(os.environ['DMLC_ROLE'], sorted(os.sched_getaffinity(0)), os.environ.get('OMP_NUM_THREADS'))")
TOO_FEW = "fewer workers or fewer threads (--worker-cores) would fit"


def one_numa_node():
    """Whether this machine lists at most one NUMA node."""
    nodes = [name for name in os.listdir("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)] \
        if os.path.isdir("/sys/devices/system/node") else []  # fmt: skip
    return len(nodes) < 2


class Binding(SubmitCase):
    def found(self, process):
        """The role, cores and threads of each process as printed by SHOW, in the order of the sorted output lines."""
        self.assertEqual(process.returncode, 0, process.err)
        lines = [re.fullmatch(r"\[[^]]*\] (\w+) \[(.*)\] (\S+)", line).groups() for line in sorted(process.out.splitlines())]
        return [(role, [int(core) for core in cores.split(", ")], threads) for role, cores, threads in lines]

    @unittest.skipIf(len(ALLOWED) < 2, "needs two cores")
    def test_each_worker_has_cores_of_its_own_as_many_as_its_threads(self):
        found = self.found(self.submit("--num-workers", 2, "--bind", "core", *SHOW))
        cores = [set(one) for _, one, _ in found]
        self.assertFalse(cores[0] & cores[1], found)
        self.assertLessEqual(cores[0] | cores[1], set(ALLOWED))
        for _, one, threads in found:
            self.assertGreaterEqual(len(one), int(threads))  # more if the worker gets whole physical cores
            self.assertEqual(int(threads), len(ALLOWED) // 2)

    @unittest.skipIf(len(ALLOWED) < 2, "needs two cores")
    def test_only_cores_that_dmlc_submit_may_use_are_given_away(self):
        self.program = "taskset"
        enter = ["-c", ALLOWED[-1], SubmitCase.program]
        [(_, cores, threads)] = self.found(self.submit(*enter, "--num-workers", 1, "--bind", "core", *SHOW))
        self.assertEqual((cores, threads), ([ALLOWED[-1]], "1"))
        process = self.submit(*enter, "--num-workers", 2, "--bind", "core", *SHOW)
        self.assertEqual([cores for _, cores, _ in self.found(process)], [[ALLOWED[-1]]] * 2)
        self.assertIn("dmlc-submit: warning: --bind core: no process is bound: 2 workers of 1 thread are more than the "
                      f"1 core that may be used; {TOO_FEW}\n", process.err)

    def test_more_threads_than_cores_leave_all_unbound_and_that_is_said_once(self):
        workers = len(ALLOWED) + 1
        for words, environment in (([], {}), (["--worker-cores", 2], {}), ([], {"OMP_NUM_THREADS": "2,1"}),
                                   (["--env", "OMP_NUM_THREADS=2"], {})):  # fmt: skip
            count = workers if not words and not environment else max(2, len(ALLOWED) // 2 + 1)
            process = self.submit("--num-workers", count, "--bind", "core", *words, *SHOW, environment=environment)
            self.assertEqual([cores for _, cores, _ in self.found(process)], [ALLOWED] * count)
            self.assertEqual(process.err.count(TOO_FEW), 1, process.err)

    def test_nothing_is_bound_unless_that_is_asked_for(self):
        for words in ([], ["--bind", "none"]):
            process = self.submit("--num-workers", 1, *words, *SHOW)
            self.assertEqual(self.found(process), [("worker", ALLOWED, str(len(ALLOWED)))])
            self.assertEqual(process.err, "")

    @unittest.skipIf(len(ALLOWED) < 2, "needs two cores")
    def test_a_worker_that_is_started_again_has_the_same_cores(self):
        code = ("import os, sys; open('cores-%s' % os.environ['DMLC_TASK_ID'], 'a').write('%s\\n' % os.sched_getaffinity(0));"
                "sys.exit(os.environ['DMLC_NUM_ATTEMPT'] in ('0', '1'))")
        self.submit("--num-workers", 2, "--local-num-attempt", 1, "--max-restarts", 1, "--bind", "core", *python(code), exit_code=0)
        cores = [self.file(f"cores-{task}").read_text().splitlines() for task in range(2)]
        self.assertEqual([len(set(one)) for one in cores], [1, 1], cores)
        self.assertGreaterEqual(max(len(one) for one in cores), 3)
        self.assertNotEqual(cores[0][0], cores[1][0])

    @unittest.skipIf(len(ALLOWED) < 2, "needs two cores")
    def test_servers_have_cores_too_and_the_scheduler_may_run_anywhere(self):
        found = self.found(self.submit("--num-workers", 1, "--num-servers", 1, "--bind", "core", *SHOW))
        cores = {role: set(one) for role, one, _ in found}
        self.assertEqual(cores["scheduler"], set(ALLOWED))
        self.assertFalse(cores["server"] & cores["worker"], cores)
        [threads] = [threads for role, _, threads in found if role == "worker"]
        self.assertEqual(threads, str(len(ALLOWED) - 1))

    @unittest.skipUnless(one_numa_node(), "there are several NUMA nodes here")
    def test_one_numa_node_is_said_to_be_no_choice(self):
        process = self.submit("--num-workers", 2, "--bind", "numa", *SHOW)
        self.assertEqual([cores for _, cores, _ in self.found(process)], [ALLOWED] * 2)
        said = "--bind numa: no process is bound: all cores belong to one NUMA node\n"
        self.assertIn(f"dmlc-submit: {said}", process.err)
        self.assertIn(f"# {said}", self.submit("--num-workers", 2, "--bind", "numa", "--dry-run", "true").out)

    @unittest.skipIf(len(ALLOWED) < 2, "needs two cores")
    def test_dry_run_tells_the_cores_and_can_be_pasted(self):
        words = ["--num-workers", 2, "--bind", "core", *SHOW]
        dry = self.submit("--dry-run", *words)
        told = re.findall(r"(?m)^# worker \d, bound to cores? ([\d,-]+)\ntaskset -c ([\d,-]+) env ", dry.out)
        self.assertEqual([one for one, _ in told], [other for _, other in told])
        self.assertEqual(len(set(told)), 2, dry.out)
        pasted = subprocess.run(["sh"], input=dry.out, capture_output=True, text=True, cwd=self.directory, check=True)
        real = re.sub(r"(?m)^\[\d\] ", "", self.submit(*words).out)
        self.assertEqual(sorted(pasted.stdout.splitlines()), sorted(real.splitlines()))
        too_few = self.submit("--num-workers", len(ALLOWED) + 1, "--bind", "core", "--dry-run", "true")
        self.assertRegex(too_few.out, rf"(?m)^# --bind core: no process is bound: .*; {re.escape(TOO_FEW)}$")
        self.assertNotIn("taskset", too_few.out)

    def test_clusters_that_cannot_bind_say_what_to_use(self):
        for cluster, instead in (("sge", "--sge-args '-binding linear:N'"), ("yarn", "numa-awareness"),
                                 ("kubernetes", "CPU manager policy 'static'"), ("mpi", "add --worker-cores N")):  # fmt: skip
            for bind in ("core", "numa"):
                process = self.submit("--cluster", cluster, "--num-workers", 2, "--bind", bind, "true", exit_code=2)
                self.assertIn(f"error: --bind {bind}: --cluster {cluster} ", process.err)
                self.assertIn(instead, process.err)
        process = self.submit("--num-workers", 2, "--bind", "socket", "true", exit_code=2)
        self.assertIn("--bind: 'socket' is not one of core, numa, none", process.err)


class ScriptOfAnotherHost(SubmitCase):
    """The script that dmlc-submit would give to ssh, run by a shell on this machine. The test acts as dmlc-submit."""

    def script(self, *words):
        """The script that --dry-run shows for the only worker."""
        dry = self.submit("--cluster", "ssh", "--host-ip", "127.0.0.1", "--num-workers", 1, "--dry-run", *words, *SHOW,
                          environment={"HOSTFILE": str(self.file("hosts"))}, exit_code=0)  # fmt: skip
        return re.search(r"(?s)<<'END_OF_INPUT'\n(.*)END_OF_INPUT", dry.out)[1]

    def setUp(self):
        super().setUp()
        self.file("hosts").write_text("n0\n")

    def begin(self, shell, script, **environment):
        """Starts the script and waits for its first message, which lists the host's cores if the process is to be bound. Returns the
        process and its standard error so far."""
        process = self.note(subprocess.Popen([shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                             cwd=self.directory, env=self.environment(environment)))  # fmt: skip
        self.addCleanup(process.stdin.close)
        process.stdin.write(script.encode())
        process.stdin.flush()
        return process, self.wait_for_text(process.stderr, "\036\n")

    def end_of(self, process, answer):
        """Answers the script's message and waits for the script to exit. Returns its standard output and the rest of its standard error."""
        process.stdin.write(answer.encode())
        process.stdin.flush()
        process.wait(timeout=LIMIT_S)
        return process.stdout.read().decode(), process.stderr.read().decode()

    def test_it_says_its_cores_and_binds_the_process_to_the_answer_in_any_shell(self):
        script = self.script("--bind", "core")
        for shell in filter(shutil.which, ("dash", "bash", "ksh")):
            with self.subTest(shell=shell):
                process, said = self.begin(shell, script)
                allowed = self.parse(re.search(r"\036JOB 0 cores \d+ 0 (\S+) / .* / .*\036\n", said)[1])
                self.assertEqual(allowed, ALLOWED)
                out, err = self.end_of(process, f"{ALLOWED[-1]}\n")
                self.assertIn(f"worker [{ALLOWED[-1]}] ", out, err)
                process, _ = self.begin(shell, script)
                out, err = self.end_of(process, "\n")
                self.assertIn(f"worker {ALLOWED} ", out, err)

    def parse(self, text):
        ranges = [part.split("-") for part in text.split(",")]
        return [core for one in ranges for core in range(int(one[0]), int(one[-1]) + 1)]

    def test_it_says_how_many_threads_its_host_wants(self):
        _, said = self.begin("sh", self.script("--bind", "core"), OMP_NUM_THREADS="3,2")
        self.assertRegex(said, r"\036JOB 0 cores \d+ 3 ")

    def test_it_starts_nothing_when_the_answer_does_not_come(self):
        process, _ = self.begin("sh", self.script("--bind", "core"))
        process.stdin.close()
        process.wait(timeout=LIMIT_S)
        self.assertEqual((process.returncode, process.stdout.read()), (1, b""))

    def test_a_host_without_taskset_is_named(self):
        tools = self.folder_of_programs("sh", "cat", "uname", "env", "setsid", "grep", "sed", "sort", "nproc")
        process, _ = self.begin(shutil.which("sh"), self.script("--bind", "core"), PATH=str(tools))
        out, err = self.end_of(process, f"{ALLOWED[0]}\n")
        self.assertEqual(out, "")
        self.assertIn(f"\036JOB 0 fail there is no taskset on {os.uname().nodename} (package util-linux)", err)

    def test_it_asks_nothing_when_nothing_is_to_be_bound(self):
        for words in ([], ["--bind", "none"]):
            process, said = self.begin("sh", self.script(*words))
            self.assertIn("\036JOB 0 start ", said)
            out, err = self.end_of(process, "")
            self.assertIn(f"worker {ALLOWED} ", out, err)


if __name__ == "__main__":
    unittest.main()
