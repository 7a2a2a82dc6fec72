"""A world whose ranks do what they are told, a sample at a time, and sleep in between: worlds of several peers stand beside each
other, and one works (allreduce/conducted.h has the other end)."""

import os
import socket
import time

from comparison.worlds import World, WorldFailed, WorldStalled

# Between two looks whether all processes are alive.
CHECK_S = 0.5


class ConductedWorld(World):
    """Use it with `with`, start its ranks with `arguments`, then `gather` them."""

    def __init__(self, description):
        super().__init__(description)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(CHECK_S)
        path = os.path.join(self.folder, "conductor")
        self._listener.bind(path)
        self._listener.listen(1024)
        self.arguments = ["--conductor", path]
        self._ranks = []

    def __exit__(self, *what):
        for connection in self._ranks + [self._listener]:
            connection.close()
        super().__exit__(*what)

    def gather(self, ranks, limit_s):
        """Returns when all ranks have joined."""
        end = time.monotonic() + limit_s
        while len(self._ranks) < ranks:
            try:
                connection, _ = self._listener.accept()
            except socket.timeout:
                self._look(end, f"{len(self._ranks)} of {ranks} ranks came within {limit_s} s")
                continue
            connection.settimeout(CHECK_S)
            self._ranks.append(connection)
        for connection in self._ranks:
            self._line(connection, end)

    def sample(self, case, block_s, limit_s):
        """Seconds of one operation, and how many were done. Raises WrongResult, WorldStalled, WorldFailed."""
        seconds, operations = self._tell(f"sample {case} {block_s}", limit_s)[0].split()
        return float(seconds), int(operations)

    def forget(self, limit_s):
        """Gives back the memory of the last case."""
        self._tell("forget", limit_s)

    def _tell(self, command, limit_s):
        end = time.monotonic() + limit_s
        try:
            for connection in self._ranks:
                connection.sendall(command.encode() + b"\n")
        except OSError:
            self._fail()
        return [self._line(connection, end) for connection in self._ranks]

    def _line(self, connection, end):
        line = b""
        while not line.endswith(b"\n"):
            try:
                data = connection.recv(256)
            except socket.timeout:
                self._look(end, "no answer in time")
                continue
            except OSError:
                data = b""
            if not data:
                self._fail()
            line += data
        return line.decode().strip()

    def _look(self, end, late):
        self.check_exit_codes()
        if time.monotonic() > end:
            raise WorldStalled(f"{self.description}: {late}")

    def _fail(self):
        """A rank has gone: its exit code says why, once there is one."""
        end = time.monotonic() + 5
        while time.monotonic() < end:
            self.check_exit_codes()
            time.sleep(0.05)
        raise WorldFailed(f"{self.description}: a rank has gone\n{self.errors()}")
