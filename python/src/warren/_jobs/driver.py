"""The driver's side of the connections: sends each process of the job its function, and keeps the outcomes."""
import dataclasses
import errno
import linecache
import os
import random
import socket
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from warren._jobs.channel import Channel, Refused

_FIRST_PORT, _LAST_PORT = 9091, 9999
#: The maximum number of connections that have not proved the token yet. The job's own processes prove it at once.
_MOST_UNPROVED = 256
#: The pause after a connection could not be accepted.
_PAUSE_S = 0.1
#: The errors of a socket that was closed.
_GONE = (errno.EBADF, errno.EINVAL)


@dataclasses.dataclass
class Outcome:
    """The state of a process of the job: that it has begun, and then how its function ended."""

    task: int
    attempt: int
    host: str
    kind: str = "begun"  #: then "returned", "raised" or "exited"
    said: Dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def rank(self) -> int:
        """The rank that the process had in its job, or its task if it has not joined one."""
        rank = self.said.get("rank")
        return self.task if rank is None else int(rank)


#: A function that answers a request of a process whose function is running. Takes the request, and the channel for the answer.
Serve = Callable[[Any, Channel], None]


class Driver:
    """Listens for the processes of a job until `close`. `call` is the message that each of them receives. Thread-safe."""

    def __init__(self, call: Dict[str, Any], secret: bytes, is_local: bool, ports: Optional[range], serve: Optional[Serve]) -> None:
        """`is_local`: whether all processes are on this machine. `ports`: the ports that may be used; None means any. `serve` may be None if
        the processes make no requests. Raises OSError if no port is free."""
        self._call, self._secret, self._serve = call, secret, serve
        self._lock = threading.Lock()
        self._outcomes: Dict[int, Outcome] = {}
        self._channels: List[Channel] = []
        self._num_unproved = 0
        self._listener = _listening(is_local, ports)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="warren-driver", daemon=True).start()

    def outcomes(self) -> List[Outcome]:
        """The outcome of the newest attempt of each process, in the order of tasks."""
        with self._lock:
            return [self._outcomes[task] for task in sorted(self._outcomes)]

    def close(self) -> None:
        """Stops listening, and closes all connections."""
        with self._lock:
            channels, self._channels = self._channels, []
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # on systems other than Linux: a listener is not connected
        self._listener.close()
        for channel in channels:
            channel.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if error.errno in _GONE:
                    return
                time.sleep(_PAUSE_S)  # no descriptor or memory is left, or the peer has gone
                continue
            with self._lock:
                # A process whose connection is closed here connects again.
                is_refused = self._num_unproved >= _MOST_UNPROVED
                self._num_unproved += 0 if is_refused else 1
            if is_refused:
                connection.close()
                continue
            try:
                threading.Thread(target=self._talk, args=(connection, ), name="warren-driver-connection", daemon=True).start()
            except RuntimeError:  # no thread is left
                connection.close()
                with self._lock:
                    self._num_unproved -= 1

    def _talk(self, connection: socket.socket) -> None:
        """Serves one process."""
        try:
            channel = Channel(connection, self._secret, is_driver=True)
            hello = channel.receive()
        except (Refused, OSError, EOFError):
            connection.close()  # not a process of this job
            return
        finally:
            with self._lock:
                self._num_unproved -= 1
        outcome = Outcome(hello["task"], hello["attempt"], hello["host"])
        with self._lock:
            self._channels.append(channel)
            known = self._outcomes.get(outcome.task)
            if known is None or known.attempt <= outcome.attempt:
                self._outcomes[outcome.task] = outcome
        try:
            channel.send(self._call)
            said = channel.receive()
            while said["kind"] == "asked":
                assert self._serve is not None
                self._serve(said["request"], channel)
                said = channel.receive()
            with self._lock:
                outcome.said, outcome.kind = said, said["kind"]
            channel.send(None)
        except (Refused, OSError, EOFError):
            pass  # the process has ended without an outcome; dmlc-submit reports the reason
        finally:
            with self._lock:
                if channel in self._channels:
                    self._channels.remove(channel)
            channel.close()


def _listening(is_local: bool, ports: Optional[range]) -> socket.socket:
    """Returns a socket that listens on one of the ports: on the loopback address only, if `is_local`, or on all addresses. Raises OSError if
    no port is free."""
    last: Optional[OSError] = None
    for port in random.sample(ports, len(ports)) if ports else [0]:
        family = socket.AF_INET if is_local or not socket.has_dualstack_ipv6() else socket.AF_INET6
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind(("127.0.0.1" if is_local else "", port))
            listener.listen(1024)
            return listener
        except OSError as error:
            listener.close()
            last = error
    assert last is not None
    raise OSError(last.errno, f"no port from {_text(ports)} is free for the processes of the job: {last.strerror} (see port and port_end)")


def _text(ports: Optional[range]) -> str:
    return "any" if not ports else f"{ports[0]} to {ports[-1]}"


def ports_of(options: Dict[str, Any], is_local: bool) -> Optional[range]:
    """The ports for the driver: the tracker's range, since a firewall may block all other ports; None, for any port, if the job is local or
    `port` is 0."""
    if is_local:
        return None
    first = int(options.get("port", _FIRST_PORT))
    return None if first == 0 else range(first, max(int(options.get("port_end", max(_LAST_PORT, first))), first) + 1)


def host_for(cluster: str, options: Dict[str, Any]) -> str:
    """Returns the address at which the job's processes reach this process, on clusters where the tracker does not run on this machine; ""
    on other clusters, where the tracker's address is used."""
    if cluster not in ("kubernetes", "yarn"):
        return ""
    given = str(options.get("host_ip", "auto"))
    if given not in ("auto", "dns"):
        return given
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing
        try:
            probe.connect(("192.0.2.1", 9))  # an address reserved for documentation: packets to it would take the default route
            return str(probe.getsockname()[0])
        except OSError:
            return socket.getfqdn()


def path_here() -> List[str]:
    """This process's search path for modules."""
    return [place or os.getcwd() for place in sys.path]


#: The maximum size of the source code that is sent to the processes, in characters.
_MOST_SOURCE_BYTES = 1 << 20


def sources_here() -> Dict[str, List[str]]:
    """Returns the lines of source code that is not in files, such as a notebook's, by name, for tracebacks: the newest ones, up to a
    limit."""
    found: Dict[str, List[str]] = {}
    size = 0
    entries: List[Any] = list(linecache.cache.items())
    for name, entry in reversed(entries):
        if len(entry) < 4 or os.path.exists(name):
            continue
        size += int(entry[0])
        if size > _MOST_SOURCE_BYTES:
            break
        found[name] = list(entry[2])
    return found
