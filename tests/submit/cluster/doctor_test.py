"""warren doctor over real sshds on separate hosts: healthy hosts, a firewall between two hosts, a host that is down, a wrong key."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import ssh_hosts
from ssh_hosts import SshHosts

WHY_NOT = ssh_hosts.why_not()
PYTHON = "/usr/bin/python3"


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Doctor(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="warren-doctor-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.hosts = SshHosts(directory.name, 2)
        self.addCleanup(self.hosts.close)
        self.addCleanup(self.hosts.check_nothing_runs)

    def doctor(self, *words, code, text=None):
        """Runs the doctor. Returns the texts of the findings that are not OK, by level, subject and hosts."""
        _, _, *host_file = self.hosts.host_file(text)
        command = [PYTHON, "-m", "warren", "doctor", *host_file, *self.hosts.options(), "--json", *words]
        done = subprocess.run([str(word) for word in self.hosts.inside(command)],
                              capture_output=True,
                              text=True,
                              timeout=120,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.found = json.loads(done.stdout)
        return {
            (one["level"], one["subject"], *one["hosts"]): f"{one['text']}; {one['advice']}"
            for one in self.found["findings"] if one["level"] != "OK" and one["subject"] not in ("packages", "memory", "limits")
        }  # findings on the excluded subjects depend on this machine

    def block(self, host, rule):
        """Adds a rule to a host's firewall."""
        namespace = f"{self.hosts.namespaces.prefix}{host}"
        rules = f"table inet doctor {{ chain input {{ type filter hook input priority 0; policy accept; {rule}; }}; }}"
        subprocess.run(["ip", "netns", "exec", namespace, "nft", "-f", "-"], input=rules, text=True, check=True)

    def test_two_healthy_hosts(self):
        self.assertEqual(self.doctor(code=0), {})
        links = self.found["links"]
        self.assertEqual(sorted({(one["source"], one["target"])
                                 for one in links}),
                         sorted((a, b) for a in ("this machine", "n0", "n1") for b in ("this machine", "n0", "n1") if a != b))
        self.assertEqual({one["error"] for one in links}, {None})
        self.assertEqual(len(links), 12)  # two per ordered pair: to a tracker port and to an ephemeral port
        self.assertEqual(self.found["names"]["n0"], {address: [address] for address in self.hosts.namespaces.addresses})
        for host in self.found["hosts"]:  # the hosts share one clock
            self.assertLess(abs(host["offset"][0]), host["offset"][1] + 0.05)

    @unittest.skipUnless(shutil.which("nft"), "SKIPPED: no nft here")
    def test_a_port_that_a_firewall_blocks_between_two_hosts(self):
        self.block(1, f"ip saddr {self.hosts.address(0)} tcp dport 32768-65535 ct state new drop")
        found = self.doctor(code=1)
        self.assertEqual(list(found), [("problem", "network", "n0")])
        self.assertRegex(found["problem", "network", "n0"],
                         r"cannot reach n1 at port \d+ \(ephemeral: no answer in 3 s\); allow TCP to n1 on")

    @unittest.skipUnless(shutil.which("nft"), "SKIPPED: no nft here")
    def test_a_firewall_that_rejects_whatever_goes_to_the_tracker(self):
        self.block("middle", "tcp dport 9091-9999 reject with tcp reset")
        found = self.doctor(code=1)
        self.assertEqual(list(found), [("problem", "network", "n0", "n1")])
        self.assertRegex(next(iter(found.values())), r"cannot reach this machine at port 9\d+ \(the tracker's: Connection refused\);")

    def test_a_host_that_is_down_hides_nothing_of_the_others(self):
        self.hosts.sshds[1].kill()
        self.hosts.sshds[1].wait()
        found = self.doctor(code=1)
        self.assertEqual(list(found), [("problem", "ssh", "n1")])
        self.assertIn("Connection refused", found["problem", "ssh", "n1"])
        self.assertEqual({one["source"] for one in self.found["links"]}, {"this machine", "n0"})

    def test_a_key_that_the_hosts_do_not_know(self):
        other = self.directory / "other"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
        self.hosts.config.write_text(self.hosts.config.read_text().replace(f"IdentityFile {self.hosts.key}",
                                                                           f"IdentityFile {other}"))
        found = self.doctor(code=1)
        self.assertEqual(list(found), [("problem", "ssh", "n0", "n1")] if len(found) == 1 else [("problem", "ssh", "n0"),
                                                                                                ("problem", "ssh", "n1")])
        self.assertIn("Permission denied", next(iter(found.values())))
        self.assertIn("ssh-copy-id", next(iter(found.values())))

    def test_a_host_without_python(self):
        found = self.doctor("--python", "no-such-python", code=1)
        self.assertEqual({key[:2] for key in found}, {("problem", "python")})
        self.assertIn("Linux", next(iter(found.values())))

    def doctor_of(self, environment, code):
        """Creates a virtual environment and runs the doctor with its Python."""
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", environment], check=True)
        with unittest.mock.patch(f"{__name__}.PYTHON", str(environment / "bin/python")):
            return self.doctor(code=code)

    def test_hosts_are_asked_about_the_environment_of_python_that_asks(self):
        environment = self.directory / "venv"
        self.assertEqual(self.doctor_of(environment, 0), {})
        self.assertEqual({host["facts"]["python_path"] for host in self.found["hosts"]}, {f"{environment}/bin/python"})

    def test_hosts_without_the_environment_that_asks_are_named(self):
        environment = self.hosts.own_directory / "venv"
        found = self.doctor_of(environment, 1)
        self.assertEqual(list(found), [("problem", "python", "n0", "n1")])
        self.assertIn(f"has no {environment}/bin/python, which `python` stands for", next(iter(found.values())))

    def test_a_name_that_only_this_machine_knows(self):
        text = self.hosts.config.read_text()
        self.hosts.config.write_text(text.replace(f"HostName {self.hosts.address(1)}", "HostName only-here"))
        self.hosts.known_hosts.write_text(
            self.hosts.known_hosts.read_text() +
            self.hosts.known_hosts.read_text().splitlines()[1].replace(f"[{self.hosts.address(1)}]", "[only-here]") + "\n")
        etc = pathlib.Path("/etc/netns") / f"{self.hosts.namespaces.prefix}middle" / "hosts"
        etc.write_text(etc.read_text() + f"{self.hosts.address(1)} only-here\n")
        found = self.doctor(code=1)
        names = {key: text for key, text in found.items() if key[1] == "names"}
        self.assertEqual(list(names), [("problem", "names", "n0", "n1")])
        self.assertIn("cannot resolve the name only-here", next(iter(names.values())))


if __name__ == "__main__":
    os.environ.pop("HOSTFILE", None)
    unittest.main()
