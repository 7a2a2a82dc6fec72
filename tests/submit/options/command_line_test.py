"""Errors and warnings about command lines of dmlc-submit before anything is started, and --dry-run."""

import os
import re
import signal
import subprocess
import unittest

from submit_case import SubmitCase, python


class CommandLine(SubmitCase):
    def refused(self, *words, **settings):
        """Checks that these arguments are rejected with exit code 2 and start nothing. Returns the error message."""
        process = self.submit(*words, **settings, exit_code=2)
        self.assertEqual(process.out, "")
        self.assertFalse(self.file("started").exists())
        return process.err

    def test_mistakes_are_named(self):
        command = ["touch", "started"]
        self.assertIn("--num-workers N is missing", self.refused(*command))
        self.assertIn("'0' is too small", self.refused("--num-workers", 0, *command))
        self.assertIn("'-2' is too small", self.refused("--num-workers", -2, *command))
        self.assertIn("'x' is not a whole number", self.refused("--num-workers=x", *command))
        self.assertIn("is too big", self.refused("--num-workers", 10**12, *command))
        self.assertIn("the command to run is missing", self.refused("--num-workers", 2))
        self.assertIn("did you mean --num-workers", self.refused("--num-wrkers", 2, *command))
        self.assertIn("it could be --num-workers, --num-servers", self.refused("--num", 2, *command))
        self.assertIn("the -np after the command belongs to the command", self.refused(*command, "-np", 2))
        self.assertIn("not a memory size", self.refused("--num-workers", 2, "--worker-memory", "4", *command))
        self.assertIn("UNSET_ is not set", self.refused("--num-workers", 2, "--env", "UNSET_", *command))
        self.assertIn("--env DMLC_ROLE", self.refused("--num-workers", 2, "--env", "DMLC_ROLE=x", *command))
        self.assertIn("'nonesuch' does not exist", self.refused("--num-workers", 2, "--files", "nonesuch", *command))
        self.assertIn("'nonesuch' does not exist", self.refused("--num-workers", 2, "--archives=nonesuch", *command))

    def test_a_retired_cluster_and_one_that_never_was_are_refused(self):
        said = self.refused("--num-workers", 2, "touch", "started", environment={"DMLC_SUBMIT_CLUSTER": "mesos"})
        self.assertIn("Apache Mesos was retired", said)
        self.assertIn("use kubernetes, slurm or yarn", said)
        self.assertIn("is not one of local, ssh", self.refused("--cluster", "moon", "--num-workers", 2, "true"))

    def test_a_job_of_one_worker_on_this_machine_needs_no_words(self):
        self.assertEqual(self.submit("--num-workers", 1, "true", environment={"DMLC_SUBMIT_CLUSTER": ""}).err, "")

    def test_workers_share_the_cores_and_that_is_said_in_one_line(self):
        cores = len(os.sched_getaffinity(0))  # assumes that no CPU quota of a container allows fewer
        share = max(1, cores // 3)
        show = ["sh", "-c", "echo threads=$OMP_NUM_THREADS"]
        process = self.submit("--num-workers", 3, *show)
        self.assertEqual(process.out.count(f"threads={share}\n"), 3, process.out)
        self.assertEqual(process.err, f"dmlc-submit: each worker uses {share} of {cores} core{'s' * (cores > 1)} "
                                      f"(OMP_NUM_THREADS={share}; change it with --worker-cores)\n")
        for words, environment, threads in ((["--worker-cores", 7], {}, 7), (["--env", "OMP_NUM_THREADS=6"], {}, 6),
                                            ([], {"OMP_NUM_THREADS": "5"}, 5)):
            process = self.submit("--num-workers", 3, *words, *show, environment=environment)
            self.assertEqual((process.out.count(f"threads={threads}\n"), process.err), (3, ""))
        self.assertIn(f"OMP_NUM_THREADS={share} ", self.submit("--num-workers", 3, "--dry-run", *show).out)

    def test_options_without_effect_are_named_in_one_line(self):
        process = self.submit("--num-workers", 1, "--queue", "q", "--kube-namespace", "n", "true")
        self.assertEqual(process.err, "dmlc-submit: warning: no effect with --cluster local: --queue, --kube-namespace\n")

    def test_dry_run_starts_nothing(self):
        process = self.submit("--num-workers", 2, "--log-dir", "logs", "--dry-run", "touch", "started", exit_code=0)
        self.assertEqual(list(self.directory.iterdir()), [])
        self.assertIn("# worker 1, output kept in logs/worker-1.log\n", process.out)
        self.assertIn("first free one from 9091 to 9999", process.out)

    def test_dry_run_can_be_pasted_into_a_shell(self):
        show = "import os, sys; print([os.environ.get(k) for k in ('DMLC_TASK_ID', 'A', 'DMLC_ROLE')], sys.argv[1:])"
        words = ["--num-workers", 2, "--env", "A=it's\n$HOME", *python(show, "a b", "", "$x;'\"\\", "ü\n")]
        dry = self.submit("--dry-run", *words)
        pasted = subprocess.run(["sh"], input=dry.out, capture_output=True, text=True, cwd=self.directory)
        self.assertEqual(pasted.returncode, 0, pasted.stderr)
        real = self.submit(*words)
        self.assertEqual(
            sorted(pasted.stdout.splitlines()), sorted(re.sub(r"(?m)^\[\d\] ", "", real.out).splitlines())
        )

    def test_no_argument_ends_the_script_that_a_dry_run_shows(self):
        self.file("bin").mkdir()
        self.file("hosts").write_text("localhost\n")
        evil = "\n".join(("x", "END_OF_INPUT", "END_OF_SCRIPT", "END_OF_INPUT_1", "EOF", "touch broken", "'", "touch broken", ""))
        for cluster, program, last in (("slurm", "sbatch", "exec srun "), ("sge", "qsub", 'exit "$code"'), ("ssh", "ssh", "}")):
            with self.subTest(cluster=cluster):
                stand_in = self.file("bin") / program
                stand_in.write_text("#!/bin/sh\ncat >got\n")
                stand_in.chmod(0o755)
                dry = self.submit("--cluster", cluster, "--host-ip", "127.0.0.1", "--num-workers", 1, "--dry-run",
                                  *(["--host-file", "hosts"] if cluster == "ssh" else []),
                                  "echo", evil, "END_OF_INPUT", exit_code=0)  # fmt: skip
                pasted = subprocess.run(["sh"], input=dry.out, capture_output=True, text=True, cwd=self.directory,
                                        env={"PATH": f"{self.file('bin')}:/usr/bin:/bin"})  # fmt: skip
                self.assertEqual((pasted.returncode, pasted.stderr), (0, ""))
                self.assertTrue(self.file("got").read_text().splitlines()[-1].startswith(last), "the whole of it")
                self.assertFalse(self.file("broken").exists())

    def test_options_are_taken_in_the_forms_of_argparse(self):
        for words in (["-n2"], ["-np", 2], ["-np=2"], ["--num-w", 2], ["-qn2"], ["--num-workers=2"]):
            process = self.submit("-q", *words, "echo", "-n3", "-np", "4", "-h")
            self.assertEqual(process.out.count("-n3 -np 4 -h\n"), 2, (words, process.out, process.err))
        for words in (["--host-ip", "[::1]"], ["--host-ip=::1"], ["--host-i", "[::1]"]):
            process = self.submit("-qn1", *words, "printenv", "DMLC_TRACKER_URI")
            self.assertEqual((process.out, process.err), ("[0] ::1\n", ""))
        self.assertIn("has a port; give the address alone, and the port with --port",
                      self.submit("-n1", "--host-ip", "[::1]:9091", "true").err)

    def test_a_script_without_its_interpreter_is_understood(self):
        self.file("train.py").write_text("print(1)\n")
        self.file("run me.sh").write_text("echo 1\n")
        for words, meant in ((["train.py", "x"], "; did you mean: python3? train.py$"), (["./train.py"], "python3? ./train.py$"),
                             (["./run me.sh"], "did you mean: sh './run me.sh'$"),
                             (["python3 train.py"], "do not put the command and its arguments into one pair of quotes: python3 train.py$"),
                             (["A=1", "python3", "train.py"], "; did you mean --env A=1$")):
            process = self.submit("-n1", *words)
            self.assertIn(process.returncode, (126, 127))
            self.assertRegex(process.err, f"(?m){meant}")
        self.file("train.py").chmod(0o755)
        self.assertRegex(self.submit("-n1", "train.py").err, "no first line such as #!/usr/bin/env python3; did you mean: python")
        self.file("train.py").write_text("#!/bin/sh\necho ran\n")
        self.assertEqual(self.submit("-n1", "train.py").out, "[0] ran\n")

    def test_help_and_version_are_on_standard_output(self):
        self.assertIn("--local-num-attempt K", self.submit("--help").out)
        self.assertEqual(self.submit("-h").out, self.submit("--help").out)
        self.assertTrue(self.submit("--help-markdown").out.startswith("# Options of dmlc-submit"))
        self.assertRegex(self.submit("--version").out, r"^dmlc-submit \(Warren\) \d+\.\d+\.\d+\n$")

    def test_an_answer_that_cannot_be_written_is_no_success(self):
        gone, write_end = os.pipe()
        os.close(gone)
        with open("/dev/full", "wb") as full, os.fdopen(write_end, "wb") as unread:
            for words in (["--help"], ["--version"], ["--save", "-", "--num-workers", 1, "true"]):
                process = self.submit(*words, stdout=full, exit_code=1)
                self.assertEqual(process.err, "dmlc-submit: error: cannot write to standard output: No space left on device\n")
                process = self.submit(*words, stdout=unread)
                self.assertEqual((process.returncode, process.err), (128 + signal.SIGPIPE, ""))


if __name__ == "__main__":
    unittest.main()
