"""The places where the ranks of a world run: on this host over any transport, on this host over TCP alone, or each in its own network
namespace, as if on separate hosts."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests"))

from network_namespaces import NetworkNamespaces  # noqa: E402

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
    interface = NetworkNamespaces.INTERFACE

    def __init__(self):
        # Each namespace has its own host name, since launchers distinguish hosts by name.
        self.network = NetworkNamespaces("warren-bench", host_name="bench-{}")
        self.addresses = self.network.addresses
        self.tracker_address = self.network.middle_address

    def enter(self, rank, command):
        return self.network.inside(rank, command)

    def enter_middle(self, command):
        return self.network.inside("middle", command)

    def prepare(self, num_ranks):
        self.network.add_hosts(num_ranks)

    def close(self):
        self.network.close()


PLACES = {place.key: place for place in (Host, Loopback, Namespaces)}
