"""The properties that the processes of a job are given: arguments, environment, descriptors, signals, roles."""

import json
import os
import signal
import subprocess
import unittest

from submit_case import LIMIT_S, NASTY, PROGRAM, RECORD, SubmitCase, as_bytes, python


class Passing(SubmitCase):
    def record(self, name):
        return json.loads(self.file(name).read_text())

    def variables(self, name):
        return {bytes.fromhex(k): bytes.fromhex(v) for k, v in self.record(name)["environment"].items()}

    def test_arguments_arrive_byte_for_byte(self):
        self.file("record.py").write_text(RECORD)
        self.submit("--num-workers", 2, "/usr/bin/python3", "record.py", *NASTY, exit_code=0)
        for name in ("worker-0-0", "worker-1-0"):
            arguments = [bytes.fromhex(a) for a in self.record(name)["arguments"]]
            self.assertEqual(arguments, [b"/usr/bin/python3", b"record.py", *map(as_bytes, NASTY)])
        self.assertFalse(self.file("broken").exists())

    def test_environment_arrives_byte_for_byte(self):
        options = []
        for index, value in enumerate(NASTY):
            options += ["--env", f"NASTY_{index}=".encode() + as_bytes(value)]
        self.submit(
            "--num-workers", 1, *options, "--env", "PASSED", *python(RECORD),
            environment={"PASSED": b"as it is \xff;$x", "INHERITED": "a\nb"}, exit_code=0,
        )  # fmt: skip
        variables = self.variables("worker-0-0")
        for index, value in enumerate(NASTY):
            self.assertEqual(variables[f"NASTY_{index}".encode()], as_bytes(value))
        self.assertEqual(variables[b"PASSED"], b"as it is \xff;$x")
        self.assertEqual(variables[b"INHERITED"], b"a\nb")

    def test_workers_are_told_the_job_the_tracker_and_their_task(self):
        self.submit("--num-workers", 2, *python(RECORD))
        for task in (0, 1):
            variables = self.variables(f"worker-{task}-0")
            self.assertEqual(variables[b"DMLC_NUM_WORKER"], b"2")
            self.assertEqual(variables[b"DMLC_NUM_SERVER"], b"0")
            self.assertEqual(variables[b"DMLC_TRACKER_URI"], b"127.0.0.1")
            self.assertIn(int(variables[b"DMLC_TRACKER_PORT"]), range(9091, 10000))
            self.assertEqual(variables[b"DMLC_TASK_ID"], str(task).encode())
            self.assertEqual(variables[b"DMLC_JOB_CLUSTER"], b"local")

    def test_a_process_inherits_no_descriptor_signal_setting_or_limit_but_the_users(self):
        # Some daemons start their children like this, with signals blocked and ignored and a descriptor open.
        def setting():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD})
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)

        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        self.addCleanup(os.close, write_end)
        limited = ["sh", "-c", 'ulimit -Sn 300; exec "$0" "$@"']
        process = subprocess.run(
            [*limited, PROGRAM, "--num-workers", "100", *python(RECORD)],
            cwd=self.directory, env=self.environment({"DMLC_SUBMIT_CLUSTER": "local"}), preexec_fn=setting,
            pass_fds=[write_end], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S,
        )  # fmt: skip
        self.assertEqual(process.returncode, 0, process.stderr)
        for task in (0, 99):
            record = self.record(f"worker-{task}-0")
            self.assertEqual(record["fds"], [0, 1, 2])
            self.assertEqual(record["stdin"], "/dev/null")
            self.assertTrue(record["group"])
            self.assertEqual(record["files"], 300)
            blocked, ignored = (int(line.split()[1], 16) for line in record["status"])
            self.assertEqual(blocked, 0)
            # Python itself ignores SIGPIPE and SIGXFSZ.
            self.assertEqual(ignored, 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


    def test_parameter_server_jobs_have_a_scheduler_servers_and_workers(self):
        self.submit("--num-workers", 2, "--num-servers", 2, *python(RECORD), exit_code=0)
        names = {p.name for p in self.directory.iterdir()}
        self.assertEqual(names, {"scheduler-0-0", "server-0-0", "server-1-0", "worker-0-0", "worker-1-0"})
        ports = set()
        for name in names:
            variables = self.variables(name)
            self.assertEqual(variables[b"DMLC_ROLE"].decode(), name.split("-")[0])
            self.assertEqual(variables[b"DMLC_NUM_SERVER"], b"2")
            self.assertEqual(variables[b"DMLC_NUM_WORKER"], b"2")
            self.assertEqual(variables[b"DMLC_PS_ROOT_URI"], b"127.0.0.1")
            self.assertNotIn(b"DMLC_TRACKER_URI", variables)
            ports.add(variables[b"DMLC_PS_ROOT_PORT"])
        self.assertEqual(len(ports), 1)

    def test_the_scheduler_can_bind_its_port_and_the_others_reach_it(self):
        code = r"""
import os, socket, time
address = (os.environ['DMLC_PS_ROOT_URI'], int(os.environ['DMLC_PS_ROOT_PORT']))
if os.environ['DMLC_ROLE'] == 'scheduler':
    listener = socket.create_server(address)
    for _ in range(3):
        listener.accept()[0].sendall(b'!')
else:
    while True:
        try:
            assert socket.create_connection(address).recv(1) == b'!'
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
"""
        self.submit("--num-workers", 2, "--num-servers", 1, *python(code), exit_code=0)

    def test_variables_of_an_outer_job_do_not_leak_into_this_one(self):
        outer = {"DMLC_PS_ROOT_URI": "10.0.0.1", "DMLC_TRACKER_URI": "10.0.0.2", "DMLC_TASK_ID": "7"}
        self.submit("--num-workers", 1, *python(RECORD), environment=outer)
        variables = self.variables("worker-0-0")
        self.assertNotIn(b"DMLC_PS_ROOT_URI", variables)
        self.assertEqual(variables[b"DMLC_TRACKER_URI"], b"127.0.0.1")
        self.assertEqual(variables[b"DMLC_TASK_ID"], b"0")

    def test_whoever_starts_a_job_may_choose_its_token(self):
        chosen = "0123456789abcdef" * 4
        show = ["--num-workers", 1, "--quiet", "sh", "-c", "echo $DMLC_JOB_TOKEN"]
        self.assertEqual(self.submit(*show, environment={"DMLC_JOB_TOKEN": chosen}).out, f"[0] {chosen}\n")
        inside = self.submit(*show, environment={"DMLC_JOB_TOKEN": chosen, "DMLC_TASK_ID": "3"}).out
        self.assertRegex(inside, r"^\[0\] [0-9a-f]{64}\n$")
        self.assertNotIn(chosen, inside, "that is the token of another job")
        wrong = self.submit(*show, environment={"DMLC_JOB_TOKEN": "abc"}, exit_code=1)
        self.assertIn("DMLC_JOB_TOKEN in the environment: ", wrong.err)

    def test_a_job_may_end_with_its_standard_input(self):
        process = self.start("--until-stdin-closes", "--num-workers", 2, "sh", "-c", "echo ready > ready-$DMLC_TASK_ID; exec sleep 600",
                             stdin=subprocess.PIPE)
        self.wait_for_files("ready-0", "ready-1")
        process.stdin.write(b"ignored")
        process.stdin.close()
        self.assertEqual(process.wait(LIMIT_S), 143)
        self.assertIn("its 2 processes were stopped", self.said(process))
        self.check_nothing_is_left()
        refused = self.submit("--until-stdin-closes", "--num-workers", 1, "true")  # standard input is /dev/null
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--until-stdin-closes: standard input is a file or a device", refused.err)

    def test_host_ip_is_what_workers_are_told(self):
        self.submit("--num-workers", 1, "--host-ip", "localhost", *python(RECORD))
        self.assertEqual(self.variables("worker-0-0")[b"DMLC_TRACKER_URI"], b"localhost")

    def test_300_workers_run(self):
        process = self.submit("--num-workers", 300, "sh", "-c", "echo $DMLC_TASK_ID", exit_code=0)
        self.assertEqual(sorted(process.out.split()[1::2], key=int), [str(i) for i in range(300)])


if __name__ == "__main__":
    unittest.main()
