"""dmlc-submit --cluster ssh over real sshds on separate hosts."""

import os
import pathlib
import re
import signal
import subprocess
import unittest

import ssh_hosts
from cluster_case import MEMBER, PYTHON, READY, BindingBehaviour, ClusterBehaviour, ClusterCase, WatchingBehaviour
from ssh_hosts import PORT, SshHosts
from submit_case import LIMIT_S
from warren_testing import wait_for

WHY_NOT = ssh_hosts.why_not()


class SshCase(ClusterCase):
    CLUSTER = "ssh"
    HOSTS = 2
    IPV6 = False

    def setUp(self):
        super().setUp()
        self.hosts = SshHosts(self.directory, self.HOSTS, self.IPV6)
        self.addCleanup(self.hosts.close)
        self.addCleanup(self.hosts.check_nothing_runs)
        self.host_file_text = None

    def cluster_options(self):
        return [*self.hosts.host_file(self.host_file_text), *self.hosts.options()]

    def enter(self, command):
        return self.hosts.inside(command)

    def left(self):
        return self.hosts.processes()

    def local_ranks(self, workers):
        hosts = [rank % self.HOSTS for rank in range(workers)]
        return [(hosts[:rank].count(host), hosts.count(host)) for rank, host in enumerate(hosts)]

    def threads_of_two(self):
        return len(os.sched_getaffinity(0))  # one worker per host

    def start(self, *words, hosts=None, **settings):
        """`hosts` is the text of the host file."""
        self.host_file_text = hosts
        return super().start(*words, **settings)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Ssh(ClusterBehaviour, SshCase):
    def test_processes_are_spread_over_slots_and_reach_the_tracker_by_the_route_to_the_first_host(self):
        process = self.submit("--num-workers", 6, "--log-dir", "logs", "sh", "-c",
                              "echo $DMLC_NODE_HOST $(hostname) $DMLC_TRACKER_URI; echo problem >&2",
                              hosts="n0 slots=3  # the big one\n\nn1\n")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        tracker = self.hosts.namespaces.middle_address
        logs = {task: self.file(f"logs/worker-{task}.log").read_text().splitlines() for task in range(6)}
        hosts = {task: " ".join(line for line in lines if line != "problem") for task, lines in logs.items()}
        expected = {task: f"n{host} host-{host} {tracker}" for task, host in enumerate([0, 0, 0, 1, 0, 0])}
        self.assertEqual(hosts, expected)
        self.assertIn(f"tracker address: {tracker}", process.err)
        self.assertIn("the route to n0", process.err)
        self.assertIn(f"[3] {expected[3]}", process.out)
        self.assertIn("[3] problem", process.err)

    def test_mxnets_launch_line_starts_workers_alone_in_mode_mpi(self):
        target = self.directory / "copy of the job"
        [_, _, _, hosts] = self.hosts.host_file()
        self.cluster_options = lambda: ["-n", 3, "-s", 2, "-H", hosts, "--launcher", "ssh", "--sync-dst-dir", target, "--mode", "mpi",
                                        *self.hosts.options()]  # fmt: skip
        process = self.submit("sh", "-c", 'echo "$DMLC_ROLE $RANK of $DMLC_NUM_WORKER in $(pwd)"')
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(line.split("] ")[1] for line in process.out.splitlines()),
                         [f"worker {rank} of 3 in {target}" for rank in range(3)], process.err)  # fmt: skip
        self.assertIn("no effect with --cluster ssh with --mode mpi: --num-servers", process.err)

    def test_an_ssh_that_is_killed_takes_its_worker_with_it(self):
        process = self.start("--num-workers", 1, "sh", "-c", READY)
        self.wait_for_files("ready-0")
        subprocess.run(["pkill", "-KILL", "-f", "^ssh -F .* exec sh$"], check=True)
        process.communicate(timeout=LIMIT_S)
        self.hosts.check_nothing_runs(5)

    def test_an_unreachable_host_is_named(self):
        process = self.submit("--num-workers", 2, "true", hosts="n0\n10.77.0.99\n")
        self.assertEqual(process.returncode, 255)
        self.assertRegex(self.last_line(process), r"worker 1 \(host 10.77.0.99\) could not be started on 10.77.0.99: "
                                                  r"ssh: connect to host 10.77.0.99 port 2222: No route to host")

    def test_a_wrong_key_and_an_unknown_host_are_explained(self):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.file("other")], check=True)
        process = self.submit("--num-workers", 1, "--ssh-options", f"-o IdentityFile={self.file('other')} -F none", "true",
                              hosts=f"{self.hosts.address(0)}:{PORT}")  # fmt: skip
        self.assertIn("could not be started on", self.last_line(process))
        self.hosts.config.write_text(self.hosts.config.read_text().replace(str(self.hosts.key), str(self.file("other"))))
        process = self.submit("--num-workers", 1, "true")
        self.assertIn("Permission denied", self.last_line(process))
        self.assertIn("ssh-copy-id", self.last_line(process))

    def test_unknown_hosts_are_refused_unless_they_may_be_taken_in(self):
        known = self.hosts.known_hosts.read_text()
        self.hosts.known_hosts.write_text("")
        process = self.submit("--num-workers", 2, "true")
        self.assertEqual(process.returncode, 255)
        self.assertIn("Host key verification failed", process.err)
        self.assertIn("--ssh-host-keys", self.last_line(process))
        process = self.submit("--num-workers", 2, "--ssh-host-keys", "accept-new", "true")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn(self.hosts.address(0), self.hosts.known_hosts.read_text())

        def changed(match):
            return match[1] + ("y" if match[2] == "x" else "x")

        # accept-new does not accept a key that has changed.
        self.hosts.known_hosts.write_text(re.sub(r"(AAAA\S{40})(\S)", changed, known))
        process = self.submit("--num-workers", 2, "--ssh-host-keys", "accept-new", "true")
        self.assertEqual(process.returncode, 255)
        process = self.submit("--num-workers", 2, "--ssh-host-keys", "ignore", "true")
        self.assertEqual(process.returncode, 0, process.err)

    def test_the_current_directory_is_copied_and_the_processes_run_in_the_copy(self):
        self.file("sub dir").mkdir()
        self.file("sub dir/data").write_text("the data\n")
        target = self.hosts.own_directory / "it's a copy"
        process = self.submit("--num-workers", 2, "--sync-dst-dir", target, "sh", "-c",
                              'cat "sub dir/data"; pwd; echo made > result-$DMLC_TASK_ID')  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn("[1] the data", process.out)
        self.assertIn(f"[1] {target}", process.out)
        self.assertIn("2 of 2 hosts", process.err)
        for host in (0, 1):
            self.assertEqual(self.hosts.in_own_directory(host, f"it's a copy/result-{host}"), "made\n")
            self.assertIsNone(self.hosts.in_own_directory(host, f"it's a copy/result-{1 - host}"))

    def test_a_copy_that_fails_starts_nothing(self):
        process = self.submit("--num-workers", 2, "--sync-dst-dir", "/proc/nowhere", "touch", self.file("started"))
        self.assertEqual(process.returncode, 1)
        self.assertRegex(self.last_line(process), "could not be copied to /proc/nowhere on n[01]: rsync exited with code")
        self.assertFalse(self.file("started").exists())

    def environment_of_python(self, directory):
        """Creates a virtual environment with a module `only_there`. Returns the variables that activate it."""
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", directory], check=True)
        (next(pathlib.Path(directory).glob("lib/python*/site-packages")) / "only_there.py").write_text("")
        return {"PATH": f"{directory}/bin:{os.environ['PATH']}", "VIRTUAL_ENV": str(directory)}

    def test_python_is_that_of_the_users_environment(self):
        directory = self.directory / "my venv"
        active = self.environment_of_python(directory)
        code = "import only_there, sys; print(sys.executable)"
        on_path_alone = {"PATH": active["PATH"]}
        for words, environment in ((["python", "-c", code], active), (["python3", "-c", code], on_path_alone),
                                   (["sh", "-c", f"python -c '{code}'"], active)):
            process = self.submit("--num-workers", 2, "--quiet", *words, environment=environment)
            self.assertEqual(process.returncode, 0, process.err)
            self.assertEqual({line.split("] ")[1].rpartition("/")[0] for line in process.out.splitlines()}, {f"{directory}/bin"}, process.out)
        process = self.submit("--num-workers", 1, "--quiet", "env", "python3", "-c", "import sys; print(sys.prefix)", environment=on_path_alone)
        self.assertTrue(process.out.startswith("[0] /usr"), process.out + process.err)
        process = self.submit("--num-workers", 1, "--quiet", "env", "python3", "-c", "import sys; print(sys.prefix)", environment=active)
        self.assertEqual(process.out, f"[0] {directory}\n", process.err)

    def test_an_environment_of_python_that_a_host_lacks_is_named_with_the_host(self):
        directory = self.hosts.own_directory / "venv"
        process = self.submit("--num-workers", 1, "python", "train.py", environment=self.environment_of_python(directory))
        self.assertEqual(process.returncode, 1, process.err)
        self.assertIn(f"there is no '{directory}/bin/python' on host-0", process.err)
        self.assertIn("'env python' uses the one on their PATH", process.err)

    def test_an_environment_of_python_in_the_directory_that_is_copied_is_the_copy(self):
        target = self.hosts.own_directory / "copy"
        active = self.environment_of_python(self.directory / "venv")
        code = "import only_there, sys; print(sys.executable)"
        for directory in (target, os.path.relpath(target, pathlib.Path.home())):
            for words in (["python", "-c", code], ["sh", "-c", f"cd /; python -c '{code}'"]):
                process = self.submit("--num-workers", 1, "--quiet", "--sync-dst-dir", directory, *words, environment=active)
                self.assertEqual(process.out, f"[0] {target}/venv/bin/python\n", process.err)

    def test_a_directory_that_is_not_there_is_named(self):
        here = self.hosts.own_directory / "only here"
        here.mkdir()
        process = self.start_in(here, "--num-workers", 1, "true")
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertIn(f"there is no directory '{here}' on host-0", err.decode())

    def start_in(self, directory, *words):
        saved, self.directory = self.directory, directory
        try:
            return self.start(*words)
        finally:
            self.directory = saved

    def test_parameter_servers_run_on_the_hosts_and_their_scheduler_here(self):
        process = self.submit("--num-workers", 2, "--num-servers", 2, "sh", "-c",
                              "echo $DMLC_ROLE $DMLC_TASK_ID $(hostname) $DMLC_PS_ROOT_URI")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        root = self.hosts.namespaces.middle_address
        lines = sorted(line.split("] ")[1] for line in process.out.splitlines())
        self.assertEqual(lines, [f"scheduler 0 host-middle {root}", f"server 0 host-0 {root}", f"server 1 host-1 {root}",
                                 f"worker 0 host-0 {root}", f"worker 1 host-1 {root}"])

    def test_dry_run_shows_commands_and_scripts_and_starts_nothing(self):
        process = self.submit("--num-workers", 2, "--dry-run", "touch", "started here")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(process.out.count("-- n0 'exec sh' <<"), 1)
        self.assertIn("set -- 'touch' 'started here'", process.out)
        self.assertIn("export DMLC_TASK_ID='1'", process.out)
        self.assertFalse(self.file("started here").exists())

    def test_twenty_processes_on_one_host_are_more_than_its_sshd_lets_in_at_once(self):
        process = self.submit("--num-workers", 20, "sh", "-c", "echo $DMLC_TASK_ID", hosts="n0 slots=20\n")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(process.out.split()[1::2], key=int), [str(i) for i in range(20)])

    def test_a_jump_host_of_the_configuration_is_used(self):
        config = self.hosts.config
        config.write_text(config.read_text() + f"Host behind\n  HostName {self.hosts.address(1)}\n  ProxyCommand "
                          f"ssh -F {config} -W %h:%p n0\n")  # fmt: skip
        process = self.submit("--num-workers", 1, "--host-ip", self.hosts.namespaces.middle_address, "hostname",
                              hosts="behind\n")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(process.out, "[0] host-1\n")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SshBinding(BindingBehaviour, SshCase):
    ALLOWED = sorted(os.sched_getaffinity(0))
    SHOW = [*PYTHON, "import os; print(os.uname().nodename, sorted(os.sched_getaffinity(0)), os.environ.get('OMP_NUM_THREADS'))"]

    def start(self, *words, hosts="n0 slots=2\n", **settings):
        return super().start(*words, hosts=hosts, **settings)

    def test_a_host_with_too_few_cores_is_named_once_and_others_bind(self):
        count = len(self.ALLOWED)
        process = self.submit("--num-workers", count + 2, "--bind", "core", "--worker-cores", 1, *self.SHOW,
                              hosts=f"n0 slots={count + 1}\nn1\n")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(process.out.count(f"] host-0 {self.ALLOWED} 1\n"), count + 1, process.out)
        self.assertRegex(process.out, rf"\] host-1 \[{self.ALLOWED[0]}\b.*\] 1\n")
        self.assertEqual(process.err.count("no process is bound"), 1, process.err)
        self.assertIn(f"--bind core: no process is bound on n0: {count + 1} workers of 1 thread are more than", process.err)

    @unittest.skipIf(len(ALLOWED) < 2, "needs two cores")
    def test_servers_get_cores_that_workers_are_not_counted_on(self):
        process = self.submit("--num-workers", 1, "--num-servers", 1, "--bind", "core", *self.SHOW)
        self.assertEqual(process.returncode, 0, process.err)
        worker, threads = re.search(r"(?m)^\[0\] host-0 \[(.*)\] (\d+)$", process.out).groups()
        server = re.search(r"(?m)^\[server 0\] host-0 \[(.*)\] None$", process.out)[1]
        self.assertEqual(int(threads), len(self.ALLOWED) - 1)
        self.assertEqual(sorted(map(int, f"{worker}, {server}".split(", "))), self.ALLOWED)

    @unittest.skipIf(len(ALLOWED) < 2, "needs two cores")
    def test_a_worker_that_is_started_again_has_the_same_cores(self):
        code = ("import os, sys; open('cores-%s' % os.environ['DMLC_TASK_ID'], 'a').write('%s\\n' % os.sched_getaffinity(0));"
                "sys.exit(os.environ['DMLC_NUM_ATTEMPT'] == '0' and os.environ['DMLC_TASK_ID'] == '1')")
        process = self.submit("--num-workers", 2, "--local-num-attempt", 1, "--bind", "core", *PYTHON, code)
        self.assertEqual(process.returncode, 0, process.err)
        first, second = (self.file(f"cores-{task}").read_text().splitlines() for task in range(2))
        self.assertEqual((len(first), len(second), len(set(second))), (1, 2, 1), second)
        self.assertNotEqual(first[0], second[0])

    def test_dry_run_says_that_each_host_decides(self):
        process = self.submit("--num-workers", 2, "--bind", "core", "--dry-run", "true")
        self.assertIn("# --bind core: each script reports its host's cores", process.out)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SshWatching(WatchingBehaviour, SshCase):
    def test_a_host_that_is_cut_off_is_heard_of_no_more_and_others_are(self):
        process = self.start("--num-workers", 2, "--no-tracker", "--log-level", "DEBUG", "--hang-timeout", 20, "--ssh-options",
                             "-o ServerAliveInterval=100", "sh", "-c", READY)  # fmt: skip
        self.ready(2)
        self.read_samples(process, ["worker 0: state S", "worker 1: state S"])
        self.hosts.namespaces.cut_off(1)
        self.wait_for_text(process.stderr, "worker 0: state S")  # wait until all samples in transit have arrived
        seen = "".join(self.wait_for_text(process.stderr, "worker 0: state S") for _ in range(3))
        self.assertNotIn("worker 1: state", seen)
        # A request for stacks is answered even though the lost host sends none.
        os.kill(self.submit_pid(), signal.SIGUSR2)
        seen += self.wait_for_text(process.stderr, "no further output within 30 s")
        self.assertRegex(seen, r"worker 1 \(host \S+, pid \d+\): nothing has been heard from host \S+ for \d+ s; is it down")
        self.assertNotRegex(seen, r"worker 0 \(.*\): nothing has been heard")
        self.interrupt(process)
        wait_for(lambda: not self.hosts.processes(), 90, "the end of the worker that hears no more", interval_s=0.5)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class LostHost(SshCase):
    HOSTS = 3

    def test_a_worker_whose_host_is_gone_is_started_on_another_and_ends_on_the_first(self):
        code = ('grep Cpus_allowed_list /proc/self/status >> cores-$DMLC_TASK_ID; '
                'echo "$DMLC_NODE_HOST $DMLC_NUM_ATTEMPT, local rank $LOCAL_RANK, master $MASTER_ADDR"'
                ' >> ran-$DMLC_TASK_ID; [ $DMLC_NUM_ATTEMPT = 1 ] || exec sleep 600')
        process = self.start("--num-workers", 2, "--local-num-attempt", 1, "--bind", "core", "--worker-cores", 1, "--ssh-options",
                             "-o ServerAliveInterval=1", "sh", "-c", f"[ $DMLC_TASK_ID = 0 ] || exit 0; {code}",
                             hosts="n1\nn0\nn2\n")  # fmt: skip
        self.wait_for_files("ran-0")
        on_lost_host = self.hosts.processes()
        self.hosts.namespaces.cut_off(1)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("was lost with the connection to n1", err.decode())
        addresses = [self.hosts.namespaces.addresses[host] for host in (1, 0)]
        self.assertEqual(self.file("ran-0").read_text().splitlines(),
                         [f"n1 0, local rank 0, master {addresses[0]}", f"n0 1, local rank 1, master {addresses[1]}"])  # fmt: skip
        # On its second host, the worker is not bound to cores.
        cores = self.file("cores-0").read_text().splitlines()[1]
        self.assertIn(cores + "\n", pathlib.Path("/proc/self/status").read_text())
        self.assertTrue(on_lost_host)
        wait_for(lambda: not self.hosts.processes(), 90, "the end of the worker that hears no more", interval_s=0.5)

    def test_an_elastic_job_goes_on_on_other_hosts(self):
        process = self.start("--num-workers", "1:2", "--replace-within", 60, "--ssh-options", "-o ServerAliveInterval=1", *MEMBER,
                             hosts="n0\nn1\nn2\n")  # fmt: skip
        self.wait_for_files("met-0-1-of-2", "met-1-1-of-2")
        self.hosts.namespaces.cut_off(1)
        self.wait_for_files("met-0-2-of-2", "met-1-2-of-2")
        self.assertNotEqual(self.file("met-1-2-of-2").read_text().split()[1:], ["n1"])
        self.assertRegex(self.finish(process),
                         r"worker 1 \(host n1, pid \d+\) was lost with the connection to n1 .*; the other one goes on, "
                         "and it is started again")  # fmt: skip
        wait_for(lambda: not self.hosts.processes(), 90, "the end of the worker that hears no more", interval_s=0.5)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class ChangingHosts(SshCase):
    """Elastic jobs whose hosts come and go."""

    HOSTS = 3

    def setUp(self):
        super().setUp()
        self.discovery = None

    def cluster_options(self):
        if self.discovery is None:
            return super().cluster_options()
        return ["--cluster", "ssh", "--host-discovery", self.discovery, *self.hosts.options()]

    def write(self, path, text):
        """Replaces a file by renaming another one, as editors do."""
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)

    def discover(self, text):
        """Makes the discovery script print `text` from now on."""
        self.write(self.file("known"), text)
        self.discovery = "./discover"
        self.file("discover").write_text("#!/bin/sh\n[ ! -e broken ] || { echo 'no cloud today' >&2; exit 3; }\ncat known\n")
        self.file("discover").chmod(0o755)

    def host_of(self, name):
        return self.file(name).read_text().split()[1]

    def test_workers_start_on_hosts_that_are_added_to_the_host_file(self):
        copy = self.hosts.own_directory / "copy"
        process = self.start("--num-workers", "1:3", "--sync-dst-dir", copy, *self.in_directory(), hosts="n0\n")
        self.wait_for_files("met-0-1-of-1")
        self.write(self.hosts.directory / "hosts", "n0 many\n")
        said = self.wait_for_text(process.stderr, "keeps the hosts that it knows")
        self.assertRegex(said, r"hosts:1: 'many' is not understood; .*; the job keeps the hosts that it knows")
        self.assertIn("1 of at most 3 workers start: the host file has no more slots", said)
        self.write(self.hosts.directory / "hosts", "n0\nn2 slots=2\n")
        self.wait_for_all("met-{}-*-of-3", range(3))
        text = self.finish(process)
        self.assertIn("the host file names hosts again", text)
        self.assertIn("the host file: n2 has come (2 slots)", text)
        self.assertRegex(text, r"copied the current directory to \S+ on n2\n")

    def in_directory(self):
        """MEMBER, changed so that the workers of all hosts run in the test's directory and write their local rank to local-TASK."""
        here = f"import os; os.chdir({str(self.directory)!r}); open('local-' + os.environ['DMLC_TASK_ID'], 'w').write(os.environ['LOCAL_RANK'])\n"
        return [*MEMBER[:-1], here + MEMBER[-1]]

    def wait_for_all(self, pattern, tasks):
        """Waits until there is a file for each task. Returns the names of the files. `pattern`: a glob pattern, with {} for the task."""
        found = []

        def are_there():
            found[:] = [next(iter(self.directory.glob(pattern.format(task))), None) for task in tasks]
            return all(found)

        wait_for(are_there, LIMIT_S, f"{pattern} of {list(tasks)}")
        return [path.name for path in found]

    def test_a_job_that_is_started_again_waits_for_the_end_of_its_copies(self):
        tools = self.file("tools")
        tools.mkdir()
        # The first copy to n1 does not end by itself.
        (tools / "rsync").write_text(
            "#!/bin/sh\ncase $* in *n0:*) exit 0 ;; esac\n[ ! -e first ] || { ! kill -0 $(cat first) || echo x > overlap; exit 0; }\n"
            "trap '' TERM\necho $$ > first\nexec sleep 600\n")  # fmt: skip
        (tools / "rsync").chmod(0o755)
        code = f"[ $DMLC_NUM_ATTEMPT = 1 ] || {{ while [ ! -e {self.file('first')} ]; do sleep 0.05; done; exit 3; }}"
        process = self.submit("--num-workers", "2:2", "--max-restarts", 1, "--sync-dst-dir", self.hosts.own_directory, "sh", "-c", code,
                              hosts="n0\nn1\n", environment={"PATH": f"{tools}:{os.environ['PATH']}"})  # fmt: skip
        self.assertIn("restart 1 of 1", process.err)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertFalse(self.file("overlap").exists())

    def test_workers_of_hosts_that_go_leave_and_others_come(self):
        self.discover("n0\nn1:2\n")
        process = self.start("--num-workers", "1:3", *self.in_directory())
        self.wait_for_files(*(f"met-{task}-1-of-3" for task in range(3)))
        self.assertEqual([self.file(f"local-{task}").read_text() for task in range(3)], ["0", "0", "1"])
        self.discover("n0\n")
        self.wait_for_all("met-{}-*-of-1", range(1))
        self.discover("n0\nn2\n")
        [_, name] = self.wait_for_all("met-{}-*-of-2", range(2))
        self.assertEqual(self.host_of(name), "n2")
        text = self.finish(process)
        self.assertIn("--host-discovery: n1 has gone", text)
        self.assertRegex(text, r"worker 1 \(host n1, pid \d+\) is asked to leave n1")
        self.assertRegex(text, r"worker 2 \(host n1, pid \d+\) was killed by signal 15 \(SIGTERM\), as it was asked to leave; the other")

    def test_a_script_that_fails_is_reported_once_and_the_hosts_are_kept(self):
        self.discover("n0\n")
        process = self.start("--num-workers", "1:2", *MEMBER)
        self.wait_for_files("met-0-1-of-1")
        self.file("broken").touch()
        said = self.wait_for_text(process.stderr, "keeps the hosts that it knows")
        self.assertIn("--host-discovery: './discover' exited with code 3: no cloud today; the job keeps the hosts that it knows", said)
        self.discover("n0\nn1\n")
        self.file("broken").unlink()
        [name, _] = self.wait_for_all("met-{}-*-of-2", range(2))
        self.assertEqual(self.host_of(name), "n0")
        text = self.finish(process)
        self.assertIn("--host-discovery names hosts again", text)
        self.assertNotIn("keeps the hosts", text)

    def test_a_job_waits_for_its_first_hosts(self):
        self.discover("")
        process = self.start("--num-workers", "1:1", "--host-ip", self.hosts.namespaces.middle_address, *MEMBER)
        said = self.wait_for_text(process.stderr, "waiting for hosts")
        self.assertIn("0 of at least 1 workers can run: waiting for hosts from --host-discovery (--timeout says how long)", said)
        self.discover("n1\n")
        self.wait_for_files("met-0-1-of-1")
        self.finish(process)

    def test_a_host_that_always_fails_is_named_and_left_out(self):
        fatal = ["sh", "-c", '[ "$DMLC_NODE_HOST" != n1 ] || kill -9 $$; exec "$0" "$@"']
        [*options, python, flag, program] = MEMBER
        process = self.start("--num-workers", "2:2", *options, *fatal, python, flag, program, hosts="n0\nn1\nn2\n")
        [_, name] = self.wait_for_all("met-{}-*-of-2", range(2))
        self.assertEqual(self.host_of(name), "n2")
        text = self.finish(process)
        self.assertEqual(len(re.findall("was killed by signal 9", text)), 3, text)
        self.assertEqual(text.count("n1 has lost 3 workers within 10 minutes, and gets no more until 10 minutes have passed without a loss"), 1)

    def test_a_host_that_always_kills_loses_its_worker_to_one_with_room(self):
        fatal = 'echo "$DMLC_TASK_ID on $DMLC_NODE_HOST"; [ "$DMLC_NODE_HOST" != n1 ] || kill -9 $$'
        process = self.submit("--num-workers", 2, "--no-tracker", "--local-num-attempt", 3, "sh", "-c", fatal, hosts="n0\nn1\nn2\n")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(line.split("] ")[1] for line in process.out.splitlines()), ["0 on n0", *["1 on n1"] * 3, "1 on n2"])
        self.assertIn("n1 has lost 3 workers within 10 minutes: one of them moves to n2", process.err)

    def test_what_cannot_be_is_refused_and_a_dry_run_shows_the_hosts(self):
        self.assertIn("the hosts of the host file have 1 slot; write 'slots=N'", self.submit("--num-workers", "2:3", "true", hosts="n0\n").err)
        self.discover("n0:2\n")
        process = self.submit("--num-workers", "1:3", "--dry-run", "true")
        self.assertIn("# hosts from --host-discovery, which is read again during the job:\n#   n0 slots=2\n", process.out)
        self.assertIn("# worker 2 starts when a host has room", process.out)
        self.assertEqual(process.out.count("exec sh"), 2, process.out)
        self.file("broken").touch()
        self.assertIn("--host-discovery: './discover' exited with code 3", self.submit("--num-workers", "1:3", "--dry-run", "true").err)
        self.assertIn("--host-discovery needs --num-workers MIN:MAX", self.submit("--num-workers", 2, "true").err)
        self.assertIn("--host-discovery and --host-file both name the hosts", self.submit("--num-workers", "1:2", "--host-file", "x", "true").err)
        self.discovery = "./missing"
        process = self.submit("--num-workers", "1:2", "true")
        self.assertIn("--host-discovery: './missing' exited with code 127: there is no such command, or it is not executable", process.err)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SshOverIpv6(SshCase):
    IPV6 = True

    def test_addresses_with_and_without_port_reach_their_hosts(self):
        hosts = f"[{self.hosts.address(0)}]:{PORT}\nroot@{self.hosts.address(1)}\n"
        target = self.hosts.own_directory / "copy"
        process = self.submit("--num-workers", 2, "--sync-dst-dir", target, "sh", "-c",
                              "echo $(hostname) $DMLC_TRACKER_URI", hosts=hosts)  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        tracker = self.hosts.namespaces.middle_address
        self.assertEqual(sorted(process.out.splitlines()), [f"[{i}] host-{i} {tracker}" for i in range(2)])


del ClusterBehaviour, BindingBehaviour, WatchingBehaviour  # not tests by themselves

if __name__ == "__main__":
    unittest.main()
