"""The places where the ranks of a world run: on this host over any transport, on this host over TCP alone, or each in its own network
namespace, as if on separate hosts."""

import os
import subprocess

LOOPBACK = "127.0.0.1"


class Host:
    """This host; shared memory is allowed."""

    key = "host"
    title = "One host"
    tcp_only = False
    interface = "lo"
    addresses = []  # one for each rank if each has a separate host
    tracker_address = LOOPBACK

    def enter(self, _rank, command):
        """The command that runs `command` at the place of a rank."""
        return command

    def enter_middle(self, command):
        """The command that runs `command` at the place of trackers and launchers."""
        return command

    def prepare(self, num_ranks):
        """Must be called before worlds of `num_ranks` ranks are started."""

    def close(self):
        """Removes everything that was set up."""


class Loopback(Host):
    """This host without shared memory."""

    key = "loopback"
    title = "TCP over loopback"
    tcp_only = True


class Namespaces(Host):
    """A network namespace for every rank, connected by a bridge in another namespace, where trackers and launchers run."""

    key = "namespaces"
    title = "TCP between network namespaces"
    tcp_only = True
    interface = "eth0"
    tracker_address = "10.77.0.254"

    def __init__(self):
        self.prefix = f"warren-bench-{os.getpid()}-"
        self.made = []
        self.addresses = []

    def enter(self, rank, command):
        return self._inside(str(rank), command)

    def enter_middle(self, command):
        return self._inside("middle", command)

    def prepare(self, num_ranks):
        if not self.made:
            self._add("middle")
            self._ip("middle", "link add bridge0 type bridge")
            self._ip("middle", f"addr add {self.tracker_address}/24 dev bridge0")
            self._ip("middle", "link set bridge0 up")
        for rank in range(len(self.addresses), num_ranks):
            self._add(str(rank))
            host, middle = self.prefix + str(rank), self.prefix + "middle"
            _run(f"ip -n {host} link add eth0 type veth peer name port{rank} netns {middle}")
            self._ip("middle", f"link set port{rank} master bridge0 up")
            self._ip(str(rank), f"addr add 10.77.0.{rank + 1}/24 dev eth0")
            self._ip(str(rank), "link set eth0 up")
            self.addresses.append(f"10.77.0.{rank + 1}")

    def close(self):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)
        self.made = []
        self.addresses = []

    def _add(self, name):
        _run(f"ip netns add {self.prefix}{name}")
        self.made.append(self.prefix + name)
        self._ip(name, "link set lo up")

    def _ip(self, name, words):
        _run(f"ip -n {self.prefix}{name} {words}")

    def _inside(self, name, command):
        # Each namespace has its own host name, since launchers distinguish hosts by name.
        rename = f'hostname bench-{name}; exec "$@"'
        return ["ip", "netns", "exec", self.prefix + name, "unshare", "--uts", "sh", "-c", rename, "sh"] + command


def _run(command):
    done = subprocess.run(command.split(), stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{command}: {done.stderr.strip()}")


PLACES = {place.key: place for place in (Host, Loopback, Namespaces)}
