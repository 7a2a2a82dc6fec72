"""Network namespaces that are connected to one network. They act as separate hosts on one machine, with separate addresses, routes, host
names and abstract sockets. Needs root and iproute2. Used by tests and by bench/training."""

import json
import os
import pathlib
import subprocess
import sys

SLOW_WIRE = pathlib.Path(__file__).with_name("slow_wire.py")


class NetworkNamespaces:
    """Hosts numbered from 0, and one more, "middle", where trackers and launchers run."""

    INTERFACE = "eth0"

    def __init__(self, name, ipv6=False, slow_wire=None, host_name="host-{}"):
        """`name`: prefix of the namespaces' names. `slow_wire`: arguments of slow_wire.py, which then replaces the bridge. `host_name`: the
        name of each host, with {} for its number."""
        self.prefix = f"{name}-{os.getpid()}-"
        self.ipv6 = ipv6
        self.slow_wire = slow_wire
        self.host_name = host_name
        self.relay = None
        self.made = []
        self.addresses = []

    def address(self, host):
        return f"fd77::{host + 1:x}" if self.ipv6 else f"10.77.0.{host + 1}"

    @property
    def middle_address(self):
        return self.address(253)

    def add_hosts(self, count):
        """Adds hosts until there are `count`. With a slow wire, a single call must add all of them."""
        first = len(self.addresses)
        if not self.made:
            self._add("middle")
            if self.slow_wire:
                self._begin_slow_wire(count)
            else:
                self._ip("middle", "link add bridge0 type bridge")
                self._set_up("middle", "bridge0", self.middle_address)
        for host in range(first, count):
            if self.slow_wire:
                self._ip("middle", f"link set port{host} netns {self.prefix}{self._add(str(host))} name eth0")
            else:
                namespace = self.prefix + self._add(str(host))
                _run(f"ip -n {namespace} link add eth0 type veth peer name port{host} netns {self.prefix}middle")
                self._ip("middle", f"link set port{host} master bridge0 up")
            self._set_up(str(host), "eth0", self.address(host))
            self.addresses.append(self.address(host))

    def inside(self, host, command):
        """The command line that runs `command` on a host (a number or "middle"). The started process becomes `command`."""
        rename = f'hostname {self.host_name.format(host)}; exec "$@"'
        enter = ["ip", "netns", "exec", f"{self.prefix}{host}", "unshare", "--uts", "sh", "-c", rename, "sh"]
        return enter + [str(word) for word in command]

    def cut_off(self, host):
        """Disconnects a host, as if its cable had been pulled."""
        self._ip("middle", f"link set port{host} down")

    def limit(self, rate):
        """Limits what each host sends and receives, e.g. to "1gbit". Raises OSError if the kernel lacks tbf."""
        bucket = f"root tbf rate {rate} burst 128kb latency 20ms"
        for host in range(len(self.addresses)):
            _run(f"tc -n {self.prefix}{host} qdisc add dev eth0 {bucket}")
            _run(f"tc -n {self.prefix}middle qdisc add dev port{host} {bucket}")

    def bytes_sent(self):
        """The bytes that all hosts have sent so far, with the headers of Ethernet, IP and TCP."""
        links = [subprocess.run(["ip", "-n", f"{self.prefix}{host}", "-s", "-j", "link", "show", "eth0"], check=True, capture_output=True).stdout
                 for host in range(len(self.addresses))]
        return sum(json.loads(link)[0]["stats64"]["tx"]["bytes"] for link in links)

    def shape(self, netem):
        """Makes the kernel emulate a worse network on all hosts, e.g. "delay 2ms loss 1%". Raises OSError if the kernel lacks netem."""
        for host in range(len(self.addresses)):
            _run(f"tc -n {self.prefix}{host} qdisc add dev eth0 root netem {netem}")

    def close(self):
        if self.relay:
            self.relay.kill()
            self.relay.communicate()
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)
        self.made, self.addresses, self.relay = [], [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _add(self, name):
        _run(f"ip netns add {self.prefix}{name}")
        self.made.append(self.prefix + name)
        self._ip(name, "link set lo up")
        return name

    def _begin_slow_wire(self, hosts):
        command = ["ip", "netns", "exec", self.prefix + "middle", sys.executable, str(SLOW_WIRE), "--ports",
                   str(hosts + 1), *map(str, self.slow_wire)]
        self.relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if not self.relay.stdout.readline():
            raise OSError("slow_wire.py did not begin: is there a /dev/net/tun?")
        self._ip("middle", f"link set port{hosts} name eth0")
        self._set_up("middle", "eth0", self.middle_address)

    def _set_up(self, name, interface, address):
        # nodad: an IPv6 address is valid immediately, instead of after a second of duplicate detection.
        bits = "64 nodad" if self.ipv6 else "24"
        self._ip(name, f"addr add {address}/{bits} dev {interface}")
        self._ip(name, f"link set {interface} up")

    def _ip(self, name, words):
        _run(f"ip -n {self.prefix}{name} {words}")


def _run(command):
    done = subprocess.run(command.split(), stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{command}: {done.stderr.strip()}")


def why_not():
    """The reason why network namespaces cannot be used here; None if they can."""
    try:
        with NetworkNamespaces("warren-try") as network:
            network._add("entered")  # a namespace that can be made cannot always be entered
    except OSError as error:
        return f"no network namespaces here ({error}); they need root and iproute2"
    return None
