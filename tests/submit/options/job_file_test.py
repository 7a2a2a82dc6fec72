"""Job files as users see them: jobs that start from a file, --save, error messages, and the JSON Schema."""

import json
import resource
import stat
import unittest

from submit_case import SubmitCase
from warren_testing import SOURCE

try:
    import jsonschema
    import yaml
except ImportError:
    jsonschema = yaml = None

VALID = {
    "the smallest": "num-workers: 1\ncommand: 'true'\n",
    "types": """
num-workers: "1:2"
cluster: local
tls: true
quiet: false
timeout: 0.5
port: 9100
dashboard: 127.0.0.1:0
color: never
auto-file-cache: off
host-ip: 127.0.0.1
worker-memory: 4g
time-limit: 1:30:00
jobname: 2026
files: hosts
mpirun-args: [-x A=1, -v]
env: {A: 1, B: yes, C: "", D: 1.50}
command: [echo, 1, true, a b]
""",
    "lists": "num-workers: 1\ndashboard: true\nenv: [A=1, PATH]\nfiles: [hosts]\ncommand: sh -c 'echo $A'\n",
    "an anchor": "num-workers: &n 1\nworker-cores: *n\ncommand: 'true'\n",
}
#: Invalid job files, each with the position of the error (line and column) and the beginning of the error message.
INVALID = {
    "num_worker: 1\ncommand: 'true'\n": ":1:1: num_worker: there is no such option; did you mean num-workers?",
    "num-workers: four\ncommand: 'true'\n": ":1:14: num-workers: 'four' is not a whole number",
    "num-workers: 1\ntls: 1\ncommand: 'true'\n": ":2:6: tls: expected true or false",
    "num-workers: 1\nsortby: rank\ncommand: 'true'\n": ":2:9: sortby: 'rank' is not one of host, task",
    "num-workers: 1\nport: [1]\ncommand: 'true'\n": ":2:7: port: expected one value, not a list",
    "num-workers: 1\nlog-dir: true\ncommand: 'true'\n": ":2:10: log-dir: expected a value, not true",
    "num-workers: 1\nhelp: true\ncommand: 'true'\n": ":2:1: help: this option is for command lines, not for job files",
    "num-workers: 1\nfiles: {a: b}\ncommand: 'true'\n": ":2:8: files: expected one value",
    "num-workers: 1\ncommand: []\n": ":2:10: command: the command has no words",
    "- num-workers: 1\n": ":1:1: expected options",
    '"\\e[31m": 1\n': ":1:1: \\x1b[31m: there is no such option",
}


class JobFile(SubmitCase):
    def setUp(self):
        super().setUp()
        self.file("hosts").write_text("localhost\n")

    def write(self, text, name="job.yaml"):
        self.file(name).parent.mkdir(exist_ok=True)
        self.file(name).write_text(text)

    def test_a_job_starts_from_a_file_whose_paths_are_relative_to_the_current_directory(self):
        self.write("num-workers: 2\nfiles: [data/rows.csv]\nlog-dir: logs\nenv: {A: 'x  y'}\n"
                   "command: sh -c 'cat rows.csv; echo \"$DMLC_TASK_ID $A\"'\n", "jobs/job.yaml")  # fmt: skip
        self.write("1,2\n", "data/rows.csv")
        self.write("not this one\n", "jobs/rows.csv")
        process = self.submit("--job", "jobs/job.yaml", exit_code=0)
        self.assertEqual(sorted(process.out.splitlines()), ["[0] 0 x  y", "[0] 1,2", "[1] 1 x  y", "[1] 1,2"])
        self.assertEqual(self.file("logs/worker-1.log").read_text(), "1,2\n1 x  y\n")

    def test_the_command_line_decides_before_the_file_and_the_file_before_the_environment(self):
        self.write("num-workers: 2\ncluster: local\nquiet: true\ncommand: echo file\n")
        elsewhere = {"DMLC_SUBMIT_CLUSTER": "kubernetes"}
        self.assertEqual(self.submit("--job", "job.yaml", environment=elsewhere).out.count("file"), 2)
        process = self.submit("--job", "job.yaml", "-n1", "echo", "line", environment=elsewhere)
        self.assertEqual((process.out, process.err), ("[0] line\n", ""))
        self.assertIn("--kube-worker-image", self.submit("--job", "job.yaml", "--cluster", "kubernetes").err)

    def test_save_starts_nothing_and_what_it_writes_starts_the_same_job(self):
        words = ["-q", "-n", 2, "--env", "A=it's\n$HOME", "sh", "-c", "touch started; printf '%s|' \"$A\" \"$@\"", "sh", "a b", "", "ü"]
        process = self.submit("--save", "saved.yaml", *words)
        self.assertEqual((process.returncode, process.err), (0, ""))
        self.assertEqual(process.out, "wrote 'saved.yaml'; start the job with: dmlc-submit --job saved.yaml\n")
        self.assertFalse(self.file("started").exists())
        self.assertEqual(stat.S_IMODE(self.file("saved.yaml").stat().st_mode), 0o600)
        self.assertEqual(self.submit("--save", "-", *words).out, self.file("saved.yaml").read_text())
        ran = self.submit("--job", "saved.yaml")
        self.assertTrue(self.file("started").exists())
        self.assertEqual(sorted(ran.out.splitlines()), sorted(self.submit(*words).out.splitlines()))

    def test_save_keeps_a_file_with_other_content(self):
        words = ["--save", "saved.yaml", "-n", 1, "true"]
        self.submit(*words, exit_code=0)
        written = self.file("saved.yaml").read_text()
        process = self.submit(*words)
        self.assertEqual((process.returncode, process.out), (0, "'saved.yaml' already contains this job\n"))
        self.file("saved.yaml").write_text("# mine\n" + written)
        process = self.submit(*words, exit_code=1)
        self.assertIn("--save: 'saved.yaml' exists and has other content, which is kept", process.err)
        self.assertEqual(self.file("saved.yaml").read_text(), "# mine\n" + written)
        full = self.submit("--save", "full.yaml", "-n", 1, "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8)),
                           exit_code=1)
        self.assertIn("cannot write 'full.yaml': File too large", full.err)
        self.assertFalse(self.file("full.yaml").exists(), "no part of it stays")
        self.assertIn("cannot write 'nowhere/saved.yaml'", self.submit("--save", "nowhere/saved.yaml", "-n", 1, "true").err)

    def test_save_says_that_the_cluster_comes_from_the_environment(self):
        note = "dmlc-submit: the job file does not name the cluster, ssh, which DMLC_SUBMIT_CLUSTER chose; --cluster ssh writes it\n"
        process = self.submit("--save", "-", "-n", 1, "true", environment={"DMLC_SUBMIT_CLUSTER": "ssh"})
        self.assertEqual((process.err, "cluster" in process.out), (note, False))
        process = self.submit("--save", "-", "--cluster", "ssh", "-n", 1, "true", environment={"DMLC_SUBMIT_CLUSTER": "local"})
        self.assertEqual((process.err, "cluster: ssh\n" in process.out), ("", True))

    def test_mistakes_start_nothing_and_have_the_place(self):
        for text, message in INVALID.items():
            with self.subTest(text):
                self.write(text)
                process = self.submit("--job", "job.yaml")
                self.assertEqual((process.returncode, process.out), (2, ""), process.err)
                self.assertTrue(process.err.startswith(f"dmlc-submit: error: job.yaml{message}"), process.err)
        process = self.submit("--job", "nowhere.yaml", exit_code=2)
        self.assertIn("--job: cannot read 'nowhere.yaml': No such file", process.err)

    def test_valid_files_are_accepted(self):
        for name, text in VALID.items():
            with self.subTest(name):
                self.write(text)
                self.submit("--job", "job.yaml", "--dry-run", exit_code=0)


class Schema(SubmitCase):
    def test_the_page_is_what_dmlc_submit_writes(self):
        page = (SOURCE / "docs/reference/job.schema.json").read_text(encoding="utf-8")
        self.assertEqual(page, self.submit("--help-schema").out, "write it anew: dmlc-submit --help-schema > docs/reference/job.schema.json")
        self.assertEqual(json.loads(page)["$schema"], "https://json-schema.org/draft/2020-12/schema")

    @unittest.skipUnless(jsonschema, "SKIPPED: no Python packages jsonschema and yaml here")
    def test_it_accepts_and_refuses_what_dmlc_submit_does(self):
        schema = json.loads(self.submit("--help-schema").out)
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        saved = self.submit("--save", "-", "-n", "2:3", "--env", "A=1", "--files", "a", "--timeout", "0.5", "--dashboard=80", "sh", "4").out
        for text in [*VALID.values(), saved]:
            self.assertEqual([error.message for error in validator.iter_errors(yaml.safe_load(text))], [], text)
        for text in INVALID:
            self.assertFalse(validator.is_valid(yaml.safe_load(text)), text)


if __name__ == "__main__":
    unittest.main()
