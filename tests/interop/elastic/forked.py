"""Starts Python programs by forking a process that has imported XGBoost already, which is most of what a worker of a small job costs.

    forked.py SOCKET SCRIPT ARGUMENTS...      (python -I -S: it imports little)

runs a script in a fork of the server of `Server`, with this process's arguments, environment, folder, input and output, and ends as the fork
does, with the same exit code or by the same signal. It passes SIGTERM on, and the fork does not outlive it."""
import os
import signal
import socket
import sys

_LARGEST = 1 << 20
_READY = b"ready\n"
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run(address: str, script: str, *arguments: str) -> None:
    """Asks the server to run the script, and ends as it does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(address)
        environment = [word for pair in os.environ.items() for word in pair]
        words = [os.getcwd(), str(len(arguments) + 1), script, *arguments, *environment]
        socket.send_fds(server, ["\0".join(words).encode(errors="surrogateescape")], [0, 1, 2])
        for number in _PASSED_ON:
            signal.signal(number, lambda which, _: server.send(str(which).encode()) and None)
        ended = server.recv(16)
    code = int(ended) if ended else 1  # the server has ended
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)


class Server:
    """The process that is forked, from the side of a test: `command` runs a script there."""

    def __init__(self, python, address, environment):
        import subprocess

        self._address = str(address)
        # It ends with this process, which holds the other end of its input.
        self._process = subprocess.Popen([python, __file__, "--serve", self._address], env=environment, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE)
        if self._process.stdout.readline() != _READY:
            raise RuntimeError(f"the server of forks has ended with exit code {self._process.wait()}")

    def command(self, script, *arguments):
        """The command that runs a script in a fork."""
        return [sys.executable, "-I", "-S", __file__, self._address, str(script), *arguments]

    def close(self):
        """Ends the server, and its forks."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve(address: str) -> None:
    """Forks for each connection. In a fork, returns the script to run, after which the process ends as usual."""
    import select

    import xgboost  # noqa: F401
    import warren.xgboost  # noqa: F401

    with open("/proc/self/task/../stat", encoding="ascii") as file:
        threads = int(file.read().rpartition(")")[2].split()[17])
    if threads != 1:
        sys.exit(f"the modules have started threads, which a fork would not have: {threads} threads")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    waker, woken = socket.socketpair()
    waker.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    forks = {}  # by connection: the process
    os.write(1, _READY)
    while True:
        readable, _, _ = select.select([0, listener, woken, *forks], [], [])
        if woken in readable:
            woken.recv(4096)
            _report_ended(forks)
        for connection in [one for one in readable if one in forks]:
            word = connection.recv(16)
            os.kill(forks[connection], int(word) if word else signal.SIGKILL)
            if not word:
                os.waitpid(forks.pop(connection), 0)
                connection.close()
        if listener in readable:
            connection, _ = listener.accept()
            text, files, _, _ = socket.recv_fds(connection, _LARGEST, 3)
            child = os.fork() if text else 0
            if text and child == 0:
                for own in [listener, waker, woken, connection, *forks]:
                    own.close()
                return _become(text.decode(errors="surrogateescape").split("\0"), files)
            for file in files:
                os.close(file)
            if text:
                forks[connection] = child
        if 0 in readable:
            for child in forks.values():
                os.kill(child, signal.SIGKILL)
            os._exit(0)


def _report_ended(forks):
    """Tells the connections whose processes have ended how."""
    for connection, child in list(forks.items()):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            del forks[connection]
            try:
                connection.send(str(os.waitstatus_to_exitcode(status)).encode())
            except OSError:  # killed in the meantime
                pass
            connection.close()


def _become(words, files):
    """Makes this fork a process with the arguments, environment, folder and files of the one that asked for it, and runs the script."""
    import runpy

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.chdir(words[0])
    number = int(words[1])
    sys.argv = words[2:2 + number]
    names = words[2 + number:]
    os.environ.clear()
    os.environ.update(zip(names[::2], names[1::2]))
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        run(*sys.argv[1:])
