"""Several hosts on one machine: network namespaces with a real sshd each, and another namespace in which dmlc-submit runs."""

import os
import pathlib
import shutil
import subprocess

import network_namespaces
from network_namespaces import NetworkNamespaces
from warren_testing import wait_for

SSHD = pathlib.Path("/usr/sbin/sshd")
PORT = 2222


def why_not():
    """The reason why such hosts cannot run here; None if they can."""
    if not SSHD.exists():
        return "no sshd here; it is in the package openssh-server"
    return network_namespaces.why_not()


def _run(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


class SshHosts:
    """`count` hosts whose sshds listen on PORT and accept one key. `own_directory` and the home directory are separate on each host; the
    rest of the file system is shared."""

    def __init__(self, directory, count, ipv6=False):
        self.directory = pathlib.Path(directory) / "ssh"
        self.directory.mkdir()
        self.own_directory = pathlib.Path(directory) / "own"
        self.own_directory.mkdir()
        self.key = self.directory / "key"
        self.known_hosts = self.directory / "known_hosts"
        self.config = self.directory / "config"
        self.sshds = {}
        self.namespaces = NetworkNamespaces("warren-ssh", ipv6=ipv6)
        try:
            self.namespaces.add_hosts(count)
            self._name_hosts()
            self._make_keys()
            for host in range(count):
                self._start(host)
        except BaseException:
            self.close()
            raise

    def address(self, host):
        return self.namespaces.addresses[host]

    def inside(self, command):
        """The command line that runs `command` in dmlc-submit's network namespace."""
        return self.namespaces.inside("middle", command)

    def options(self):
        """The options that pass ssh a configuration file with the key and the hosts."""
        return ["--ssh-options", f"-F {self.config}"]

    def host_file(self, text=None):
        """Writes a host file with `text`, by default n0, n1, ... as in the ssh configuration. Returns the options for it."""
        path = self.directory / "hosts"
        path.write_text(text if text is not None else "".join(f"n{i}\n" for i in range(len(self.sshds))))
        return ["--cluster", "ssh", "--host-file", path]

    def processes(self):
        """The command lines, by pid, of the processes on the hosts, except the listening sshds and connections that are closing."""
        found = {}
        for host, sshd in self.sshds.items():
            name = f"{self.namespaces.prefix}{host}"
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout
            for pid in map(int, pids.split()):
                try:
                    line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
                if pid != sshd.pid and line and not line.startswith("sshd: "):
                    found[pid] = line
        return found

    def check_nothing_runs(self, seconds=10):
        wait_for(lambda: not self.processes(), seconds, f"the end of {self.processes()}")

    def close(self):
        for name in self.namespaces.made:
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)
        for sshd in self.sshds.values():
            sshd.kill()
            sshd.wait()
        self.namespaces.close()

    def _name_hosts(self):
        """Lets every host resolve all others, by their host names and by their names in the ssh configuration."""
        names = {"127.0.0.1": "localhost", self.namespaces.middle_address: "host-middle"}
        names.update({address: f"host-{i} n{i} node{i + 1}" for i, address in enumerate(self.namespaces.addresses)})
        for name in self.namespaces.made:
            etc = pathlib.Path("/etc/netns") / name
            etc.mkdir(parents=True)
            (etc / "hosts").write_text("".join(f"{address} {known}\n" for address, known in names.items()))

    def _make_keys(self):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / "host_key")
        host_key = (self.directory / "host_key.pub").read_text().split()[:2]
        names = [f"[{address}]:{PORT}" for address in self.namespaces.addresses]
        self.known_hosts.write_text("".join(f"{name} {' '.join(host_key)}\n" for name in names))
        lines = [f"IdentityFile {self.key}", "IdentitiesOnly yes", f"UserKnownHostsFile {self.known_hosts}",
                 "GlobalKnownHostsFile /dev/null", f"Port {PORT}"]
        for host, address in enumerate(self.namespaces.addresses):
            lines += [f"Host n{host}", f"  HostName {address}"]
        self.config.write_text("\n".join(lines) + "\n")

    def _start(self, host):
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        config = self.directory / f"sshd{host}"
        config.write_text(
            f"Port {PORT}\nListenAddress {self.address(host)}\nHostKey {self.directory}/host_key\n"
            f"AuthorizedKeysFile {self.key}.pub\nStrictModes no\nPasswordAuthentication no\n"
            f"KbdInteractiveAuthentication no\nPermitRootLogin yes\nUsePAM no\nPidFile none\nLogLevel INFO\n"
        )
        # An empty home directory keeps shells from reading startup files.
        mount = f'mount -t tmpfs none {self.own_directory}; mount -t tmpfs none {pathlib.Path.home()}; exec "$@"'
        command = self.namespaces.inside(host, ["unshare", "--mount", "sh", "-c", mount, "sh", SSHD, "-D", "-e", "-f",
                                                config])
        with open(self.directory / f"sshd{host}.log", "wb") as log:
            # The test's mark is left out: processes must get it from dmlc-submit, not from sshd.
            environment = {"PATH": os.environ["PATH"]}
            self.sshds[host] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log, env=environment)
        wait_for(lambda: b"Server listening" in (self.directory / f"sshd{host}.log").read_bytes(), 20, "sshd")

    def in_own_directory(self, host, name):
        """The contents of a file in a host's own directory; None if there is no such file."""
        path = pathlib.Path(f"/proc/{self.sshds[host].pid}/root{self.own_directory}/{name}")
        return path.read_text() if path.exists() else None
