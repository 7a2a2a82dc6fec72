"""warren doctor: its findings for many kinds of problems; host files; and a run on this machine."""
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from warren._tools import doctor as _doctor
from warren._tools.doctor import findings, hosts, model
from warren._tools.doctor.model import OK, Asked, Link, Survey
from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))  # to find dmlc-submit, which parses the host files

FACTS = {
    "host_name": "a",
    "system": "Linux",
    "kernel_release": "6.1",
    "machine": "x86_64",
    "python": "3.11.2",
    "python_path": "/usr/bin/python3",
    "python_wanted": "python3",
    "cores": 8,
    "dmlc_submit": None,
    "packages": {
        "warren-train": "0.1.0",
        "xgboost": "3.4.1",
        "numpy": "2.0"
    },
    "shared_memory": {
        "size": 8 << 30,
        "free": 8 << 30,
        "writable": True
    },
    "memlock": [None, None],
    "nofile": [1024, 1 << 20],
    "memory_limit": None,
    "kernel": {
        "pidfd_open": True,
        "memfd_create": True,
        "process_vm_readv": True,
        "futex": True
    },
    "ptrace_scope": "0",
    "gpus": None, "cuda": None,
    "nccl": None
}
GPU = {"found": [["H100", "550.1", "80 GB"]]}


def asked(name, here=False, offset=(0.0, 0.001), **changes):
    return Asked(name, None, 0.2, {**copy.deepcopy(FACTS), **changes}, offset, here)


def survey(*others, **fields):
    """A survey of this machine, two healthy hosts, and `others`."""
    all_hosts = [asked("this machine", True), asked("a"), asked("b"), *others]
    links = [
        Link(one.name, other.name, kind, port) for one in all_hosts for other in all_hosts if one is not other
        for kind, port in (("tracker", 9091), ("ephemeral", 40000))
    ]
    return Survey(
        all_hosts, **{
            "links": links,
            "names": {
                host.name: {
                    "a": ["10.0.0.1"],
                    "b": ["10.0.0.2"]
                }
                for host in all_hosts
            },
            **fields
        })


def troubles(of):
    return [one for one in findings.diagnose(of) if one.level != OK]


class Findings(unittest.TestCase):
    def only(self, of, level, subject, text, advice="", concerned=None):
        """Checks that the survey `of` yields exactly one finding that is not OK, with this level and subject, and that its text and advice
        contain `text` and `advice`. `concerned`: the expected hosts, if given."""
        found = troubles(of)
        self.assertEqual([(one.level, one.subject) for one in found], [(level, subject)], found)
        self.assertIn(text, found[0].text)
        self.assertIn(advice, found[0].advice)
        if concerned is not None:
            self.assertEqual(list(found[0].hosts), concerned)

    def test_healthy_hosts_have_nothing_wrong(self):
        self.assertEqual(troubles(survey()), [])
        shown = _doctor.table(findings.diagnose(survey()), 100)
        self.assertIn("all 6 pairs reach each other", shown)
        self.assertTrue(shown.endswith("\nno problems found\n"), shown)

    def test_hosts_that_ssh_does_not_reach(self):
        for kind, said, advice in (("permission", "Permission denied (publickey).",
                                    "ssh-copy-id x"), ("key", "Host key verification failed.", "accept-new"),
                                   ("refused", "Connection refused", "host:PORT"), ("timeout", "timed out", "ssh -v x"),
                                   ("name", "Could not resolve hostname x", "~/.ssh/config"), ("lost", "it ended with code 1",
                                                                                               "by hand")):
            with self.subTest(kind=kind):
                self.only(survey(Asked("x", (kind, said))), "problem", "ssh", said, advice, ["x"])

    def test_a_host_without_python(self):
        self.only(survey(Asked("x", ("python", "has no python3 (Linux 6.1)"))), "problem", "python", "has no python3 (Linux "
        "6.1)", "--python",
                  ["x"])

    def test_a_clock_that_is_off_but_not_one_that_may_be_right(self):
        self.only(survey(asked("x", offset=(-2.5, 0.01))), "warning", "clock", "is 2.5 s behind this machine's", "chrony", ["x"])
        self.only(survey(asked("x", offset=(300, 0.01))), "problem", "clock", "300.0 s ahead of", "", ["x"])
        self.assertEqual(troubles(survey(asked("x", offset=(0.15, 0.1)))), [])

    def test_an_offset_comes_from_the_quickest_round_trip(self):
        random.seed(1)
        trips = []
        for _ in range(9):
            there, back = random.uniform(0.01, 0.5), random.uniform(0.01, 0.5)
            trips.append((100.0, 100 + there + 7, 100 + there + back))
        trips.append((200.0, 200.001 + 7, 200.002))
        offset, sure = _doctor.offset_of(trips)
        self.assertAlmostEqual(offset, 7)
        self.assertAlmostEqual(sure, 0.001)

    def test_ports_that_are_blocked(self):
        of = survey()
        of.links = [
            Link(link.source, link.target, link.kind, link.port, "no answer in 3 s" if
                 (link.source, link.target, link.kind) == ("a", "b", "ephemeral") else None) for link in of.links
        ]
        self.only(of, "problem", "network", "cannot reach b at port 40000 (ephemeral: no answer in 3 s)",
                  "allow TCP to b on the ephemeral ports", ["a"])
        of.links = [
            Link(link.source, link.target, link.kind, link.port, "Connection refused" if link.target == "this machine" else None)
            for link in of.links
        ]
        found = troubles(of)
        self.assertEqual([(one.level, list(one.hosts)) for one in found], [("problem", ["a", "b"])])
        self.assertIn("port 9091 (the tracker's: Connection refused) and 40000", found[0].text)

    def test_what_only_workers_here_need_is_a_warning(self):
        of = survey()
        of.links = [
            Link(link.source, link.target, link.kind, link.port,
                 "x" if link.source == "this machine" and link.target == "a" else None) for link in of.links
        ]
        self.only(of, "warning", "network", "cannot reach a", "only if workers run here, too", ["this machine"])

    def test_names_that_mean_something_else_somewhere(self):
        right = {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}
        here = {"this machine": right, "a": right}
        self.only(survey(names={
            **here, "b": {
                **right, "a": []
            }
        }), "problem", "names", "cannot resolve the name a", "/etc/hosts", ["b"])
        self.only(survey(names={
            **here, "b": {
                **right, "b": ["127.0.1.1"]
            }
        }), "warning", "names", "resolves b to a loopback address", "loopback", ["b"])
        self.only(survey(names={
            **here, "b": {
                **right, "a": ["10.9.9.9"]
            }
        }), "warning", "names", "resolves a to 10.9.9.9, and this machine to 10.0.0.1", "agree", ["b"])
        self.assertEqual(troubles(survey(names={**here, "b": {**right, "a": ["10.0.0.1", "fd00::1"]}})), [])
        self.assertEqual(troubles(survey(names={"a": {"10.0.0.7": []}})), [])

    def test_the_interpreter_is_named(self):
        wanted = "/opt/venv/bin/python"
        self.only(survey(asked("x", python_wanted=wanted)), "problem", "python", f"has no {wanted}", "create this environment", ["x"])
        self.only(survey(asked("x", python_wanted=wanted, python_path=wanted, packages={**FACTS["packages"], "xgboost": None})), "warning",
                  "packages", "not installed on x", f"{wanted} -m pip install xgboost==3.4.1")
        self.assertEqual(hosts.pythons_of("/v/bin/python", "/v", "/usr"), ["/v/bin/python", "python3"])
        self.assertEqual(hosts.pythons_of("/usr/bin/python3", "/usr", "/usr"), ["python3"])

    def test_versions_that_differ(self):
        self.only(survey(asked("x", python="3.9.1")), "warning", "python", "3.11 on this machine, a, b; 3.9 on x")
        self.only(survey(asked("x", packages={
            **FACTS["packages"], "xgboost": "1.7.4"
        })), "warning", "packages", "xgboost: 3.4.1 on this machine, a, b; "
                  "1.7.4 on x", "pip install xgboost==3.4.1")
        self.only(survey(asked("x", packages={**FACTS["packages"], "numpy": None})), "warning", "packages", "not installed on x")
        self.assertEqual(troubles(survey(asked("x", packages={
            **FACTS["packages"], "xgboost": None,
            "xgboost-cpu": "3.4.1"
        }))), [])
        self.only(survey(asked("x", packages={**FACTS["packages"], "warren": "2.1"})), "warning", "packages",
                  "another project's", "pip uninstall warren", ["x"])
        self.only(survey(asked("x", machine="aarch64")), "warning", "machine", "aarch64 on x")
        self.assertIn("older than 3.9", " ".join(one.text for one in troubles(survey(asked("x", python="3.7.1")))))

    def test_memory_and_limits(self):
        gib = 1 << 30
        self.only(survey(asked("x", shared_memory=None)), "warning", "memory", "has no writable /dev/shm", "mount", ["x"])
        self.only(survey(asked("x", shared_memory={
            "size": 64 << 20,
            "free": 60 << 20,
            "writable": True
        })), "warning", "memory", "of 64 MiB", "--shm-size")
        self.only(survey(asked("x", shared_memory={
            "size": gib,
            "free": gib // 20,
            "writable": True
        })), "warning", "memory", "51 MiB of 1.0 GiB", "ls -l")
        self.only(survey(asked("x", nofile=[256, 4096])), "warning", "limits", "256 open files", "ulimit -n 4096")
        self.only(survey(asked("x", memlock=[65536, 65536], gpus=GPU, nccl=22000)), "warning", "limits", "64 KiB of locked memory")
        self.assertEqual(troubles(survey(asked("x", memlock=[65536, 65536]))), [])
        limited = [one.text for one in findings.diagnose(survey(asked("x", memory_limit=2 * gib))) if list(one.hosts) == ["x"]]
        self.assertEqual(limited, ["a control group limits all processes together to 2.0 GiB"])

    def test_kernels_that_lack_something(self):
        def lacking(**what):
            return survey(asked("x", kernel={**FACTS["kernel"], **what}, ptrace_scope="1"))

        self.only(lacking(memfd_create="Function not implemented"), "warning", "kernel", "ranks of one host use TCP", "seccomp",
                  ["x"])
        self.only(lacking(futex="Operation not permitted"), "problem", "kernel", "futex: Operation not permitted")
        self.assertEqual(troubles(lacking(process_vm_readv="Operation not permitted", pidfd_open="Function not implemented")), [])
        self.assertIn("ptrace_scope is 1",
                      " ".join(one.text for one in findings.diagnose(lacking(process_vm_readv="Operation not permitted"))))
        self.only(survey(asked("x", kernel=None, system="Darwin")), "warning", "kernel", "is Darwin on x86_64")

    def test_the_same_of_several_hosts_is_one_line(self):
        lacking = {**FACTS["kernel"], "memfd_create": "Function not implemented"}
        self.only(survey(asked("x", kernel=lacking), asked("y", kernel=lacking)), "warning", "kernel", "memfd", "", ["x", "y"])

    def test_a_terminal_obeys_nothing_of_what_a_host_says(self):
        shown = _doctor.table([model.Finding(model.PROBLEM, "ssh", "\x1b[2Jgone\naway", "do\x07 this", ("h\x9b",))], 80)
        self.assertIn("h\\x9b: \\x1b[2Jgone away", shown)
        self.assertIn("-> do\\x07 this", shown)

    def test_an_answer_that_is_none_is_an_error_of_that_host(self):
        for line in ("hello\n", "[" * 100_000, "[]", "7", "{}"):
            probe = object.__new__(hosts.Probe)
            with mock.patch.object(probe, "_write", lambda text: None), \
                    mock.patch.object(probe, "_line", lambda patience_s, line=line: line):
                with self.assertRaisesRegex(hosts.HostError, "something else writes to the standard output"):
                    probe.ask("facts")

    def test_gpus(self):
        self.only(survey(asked("x", gpus={"error": "couldn't communicate"})), "warning", "GPUs",
                  "nvidia-smi fails: couldn't communicate", "modprobe")
        self.only(survey(asked("x", gpus=GPU)), "warning", "GPUs", "libnccl.so.2 was not found", "libnccl2")
        other = {"found": [["H100", "535.9", "80 GB"]]}
        self.only(survey(asked("x", gpus=GPU, nccl=22000), asked("y", gpus=other, nccl=22000)), "warning", "GPUs",
                  "drivers differ: 550.1 on x; 535.9 on y")
        self.only(survey(asked("x", gpus=GPU, nccl=22000), asked("y", gpus=GPU, nccl=21800)), "problem", "GPUs", "NCCL differ")
        of = survey(asked("x", gpus=GPU, cuda=12040, nccl=22005))
        self.assertEqual(troubles(of), [])
        self.assertIn("1 x H100, CUDA 12.4, NCCL 2.20.5 on x", [one.text for one in findings.diagnose(of)])


class HostFiles(unittest.TestCase):
    def test_lines_are_read_as_dmlc_submit_reads_them(self):
        text = "# rack\nnode1\n\n  node2 slots=4 max_slots=8  # big\nalice@node3:2222\tslots=2\r\n[fe80::1]:22\nfe80::2\nnode1 slots=2\n"
        self.assertEqual(hosts.parse_hosts(text, "h"), [
            hosts.Host("node1"),
            hosts.Host("node2"),
            hosts.Host("node3", "alice", 2222),
            hosts.Host("fe80::1", "", 22),
            hosts.Host("fe80::2")
        ])
        self.assertEqual([host.shown for host in hosts.parse_hosts(text, "h")[2:4]], ["alice@node3:2222", "[fe80::1]:22"])

    def test_errors_name_the_source_and_the_line(self):
        for line, words in (("@node", "no user"), ("node:4", "'node slots=4' or 'node port=4'"), ("nöde", "'nöde' is not a host name"),
                            ("node slot=3", "not understood"), ("\udcff", "is not a host name")):
            with self.subTest(line=line), self.assertRaisesRegex(ValueError, f"^rack.hosts:2: .*{words}"):
                hosts.parse_hosts(f"# first\n{line}\n", "rack.hosts")

    def test_names_on_the_command_line_are_read_in_the_same_way(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"HOSTFILE": ""}):
            file = pathlib.Path(folder, "hosts")
            file.write_bytes(b"\xef\xbb\xbfnode[1-2]*4\r\n")
            found = hosts.hosts_of(str(file), "node2,alice@node3:2222")
        self.assertEqual([host.shown for host in found], ["this machine", "node1", "node2", "alice@node3:2222"])
        with self.assertRaisesRegex(ValueError, "^--hosts:1: 'node1:2' may mean"):
            hosts.hosts_of(None, "node1:2")

    def test_what_ssh_says_has_a_kind(self):
        for said, kind in (("ssh: Could not resolve hostname nobody: Name or service not known",
                            "name"), ("a@b: Permission denied (publickey).",
                                      "permission"), ("ssh: connect to host h port 22: Connection timed out", "timeout"),
                           ("ssh: connect to host h port 22: Connection refused", "refused"), ("Host key verification failed.",
                                                                                               "key"), ("whatever", "other")):
            self.assertEqual(hosts.kind_of(said), kind)


class Program(unittest.TestCase):
    def run_it(self, *words, code=0):
        done = subprocess.run([sys.executable, "-m", "warren", "doctor", *words], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def test_this_machine(self):
        found = json.loads(self.run_it("--json")[0])
        (here, ) = found["hosts"]
        self.assertEqual(here["facts"]["python"], ".".join(map(str, sys.version_info[:3])))
        self.assertIs(here["facts"]["kernel"]["memfd_create"], True)
        self.assertGreater(here["facts"]["shared_memory"]["size"], 0)
        self.assertEqual({one["subject"]
                          for one in found["findings"]} & {"python", "packages", "GPUs"}, {"python", "packages", "GPUs"})

    def test_mistakes_in_options(self):
        self.assertIn("No such file", self.run_it("--host-file", "/nowhere", code=2)[1])
        self.assertIn("would be read as an option", self.run_it("--hosts=-x", code=2)[1])


if __name__ == "__main__":
    unittest.main()
