"""The connection between the driver and a process of its job.

Both prove that they know the job's token (warren._engine.sealed): every message is sealed with it. The seal also covers the connection's
two random numbers, the message's direction and its place in the sequence, so that no message can be replayed, moved or left out. Nothing is
unpickled before its seal has been verified. A message consists of its length, 8 bytes in little-endian order, and the sealed bytes, which
are not encrypted."""
import os
import socket
import time
from typing import Any, Optional

from warren._engine import sealed as _sealed

_NONCE_BYTES = 32
_LENGTH_BYTES = 8
#: The maximum size of a message before the peer has proved the token, and afterwards.
_MOST_PROOF_BYTES, _MOST_BYTES = 4096, 1 << 48
#: The time in which a peer must prove the token.
_PROOF_S = 30.0
#: TCP keepalive, which detects a peer whose host is gone: the idle time and the interval of probes in seconds, and the number of probes.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


class Refused(RuntimeError):
    """Raised if the other end has not proved that it has the job's token."""


class Channel:
    """One end of a connection, for one thread. Errors: Refused, OSError, EOFError if the other end has closed the connection, and pickle's
    errors."""

    def __init__(self, connection: socket.socket, secret: bytes, is_driver: bool) -> None:
        """Both ends prove that they have the token, the process first."""
        self._socket, self._secret, self._is_driver = connection, secret, is_driver
        self._sent = self._received = 0
        self._most_bytes = _MOST_PROOF_BYTES
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE:
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._deadline: Optional[float] = time.monotonic() + _PROOF_S
        own = os.urandom(_NONCE_BYTES)
        connection.sendall(own)
        other = bytes(self._read(_NONCE_BYTES))
        self._name = f"warren job {(own + other if is_driver else other + own).hex()}"
        if not is_driver:
            self.send(None)
        self.receive()
        if is_driver:
            self.send(None)
        self._most_bytes, self._deadline = _MOST_BYTES, None
        connection.settimeout(None)

    def send(self, value: Any) -> None:
        """Sends an object."""
        message = _sealed.seal(value, f"{self._name} {self._sent}", int(self._is_driver), secret=self._secret)
        self._sent += 1
        self._socket.sendall(len(message).to_bytes(_LENGTH_BYTES, "little"))
        self._socket.sendall(message)

    def receive(self) -> Any:
        """Waits for an object."""
        size = int.from_bytes(self._read(_LENGTH_BYTES), "little")
        if size > self._most_bytes:
            raise Refused("the other end of the connection does not know the job's token")
        message = self._read(size)
        try:
            value = _sealed.loads(message, f"{self._name} {self._received}", int(not self._is_driver), secret=self._secret)
        except RuntimeError:
            raise Refused("the other end of the connection does not know the job's token") from None
        self._received += 1
        return value

    def close(self) -> None:
        """Closes the connection. A thread that is waiting in `receive` gets an error."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other end has already closed it
        self._socket.close()

    def _read(self, size: int) -> bytearray:
        message = bytearray(size)
        view = memoryview(message)
        while view:
            if self._deadline is not None:  # the time limit applies to the whole proof, not to each piece
                self._socket.settimeout(max(0.001, self._deadline - time.monotonic()))
            count = self._socket.recv_into(view)
            if not count:
                raise EOFError("the connection was closed")
            view = view[count:]
        return message
