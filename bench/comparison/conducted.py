"""A world whose ranks take samples on command, one at a time, and sleep in between, so that the worlds of several peers can run at the same
time while only one of them works (bench/allreduce/conducted.h is the other end)."""

import os
import socket
import time

from comparison.worlds import World, WorldFailed, WorldStalled

# Seconds between two checks that all processes are alive.
CHECK_S = 0.5


class ConductedWorld(World):
    """Use it in a `with` statement, start its ranks with `arguments`, then `gather` them."""

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
        """Waits until all ranks have joined. Raises WorldStalled after `limit_s` seconds."""
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
        """Returns the seconds of one operation. Raises WrongResult, WorldStalled, WorldFailed."""
        return float(self._tell(f"sample {case} {block_s}", limit_s)[0])

    def forget(self, limit_s):
        """Frees the memory of the last case."""
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
        """Raises the error that a rank's exit code indicates, or WorldFailed if all exit codes stay 0 or unknown for 5 s."""
        end = time.monotonic() + 5
        while time.monotonic() < end:
            self.check_exit_codes()
            time.sleep(0.05)
        raise WorldFailed(f"{self.description}: a rank has ended\n{self.errors()}")
