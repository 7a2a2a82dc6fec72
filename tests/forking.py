"""A Python that has already imported its packages. python(PYTHON, "numpy", "xgboost") returns the path of a program that takes the
arguments of PYTHON (-c CODE, -m MODULE or a file, possibly after -W) and runs the code in a process forked from one that has imported
these packages. This takes a few milliseconds instead of half a second for the imports. Warren's own packages are not imported in
advance. With WARREN_NIGHTLY=1, python() returns PYTHON itself.

The forked process has the environment, working directory and standard streams of the started program. The program ends with the exit
code or signal of the process; if the program ends first, the process is killed. Their process ids differ, and all forked processes begin
with the same state of NumPy's global random generator."""
import ast
import atexit
import functools
import gc
import os
import pathlib
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import warnings

import warren_testing

#: Modules of the standard library that Warren's own packages import.
STANDARD = ("contextlib", "csv", "ctypes", "dataclasses", "hashlib", "hmac", "http.client", "inspect", "json", "pickle", "secrets",
            "typing", "urllib.request", "uuid")
PROGRAM = """#!{python} -IS
import _socket, os, signal, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({address!r})
request = repr((sys.argv[1:], dict(os.environb), os.getcwdb())).encode()
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
while request:
    request = request[server.send(request):]
code = int.from_bytes(server.recv(4), "big", signed=True)
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@functools.lru_cache(maxsize=None)
def python(interpreter, *packages, path=""):
    """Returns the path of the program described above, which exists until this process ends. `path`: a folder that is searched for packages
    before the interpreter's own folders. Raises RuntimeError if a package cannot be imported."""
    if warren_testing.AT_NIGHT:
        return interpreter
    folder = pathlib.Path(tempfile.mkdtemp(prefix="warren-forking-"))
    address, program = str(folder / "socket"), folder / "python"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # OpenMP reads OMP_NUM_THREADS when a package is imported
    # The server exits when its standard input is closed, that is, when this process ends for whatever reason. It removes the folder.
    server = subprocess.Popen([interpreter, __file__, address, path, *packages],  # pylint: disable=consider-using-with
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(server.communicate)
    if server.stdout.readline() != "ready\n":
        raise RuntimeError(f"{interpreter} cannot import {', '.join(packages)}")
    program.write_text(PROGRAM.format(python=interpreter, address=address), encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def receive(connection):
    """Receives a request and its standard streams."""
    size, streams, _, _ = socket.recv_fds(connection, 4, 3)
    left, text = int.from_bytes(size, "big"), b""
    while len(text) < left:
        piece = connection.recv(left - len(text))
        if not piece:
            raise ConnectionError("the program ended while it asked")
        text += piece
    return ast.literal_eval(text.decode()), streams


def serve(listener):
    """Forks a process for each request. In the forked process, returns the request and its streams. In the server, kills the forked
    processes and returns None once the test that started the server has ended."""
    found = selectors.DefaultSelector()
    found.register(listener, selectors.EVENT_READ, None)
    found.register(sys.stdin, selectors.EVENT_READ, None)
    running = {}  # maps the descriptor of each process to its connection
    while True:
        for key, _ in found.select():
            if key.fileobj is sys.stdin:
                for process in running:
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                return None
            if key.fileobj is listener:
                connection = listener.accept()[0]
                try:
                    request, streams = receive(connection)
                except (ConnectionError, SyntaxError):
                    connection.close()
                    continue
                pid = os.fork()
                if pid == 0:
                    found.close()
                    for one in (listener, connection, *running.values()):
                        one.close()
                    for one in running:
                        os.close(one)
                    return request, streams
                for one in streams:
                    os.close(one)
                process = os.pidfd_open(pid)
                running[process] = connection
                for one in (process, connection):
                    found.register(one, selectors.EVENT_READ, (process, connection))
                continue
            process, connection = key.data
            if running.get(process) is connection:  # else an earlier event of this round has ended both
                del running[process]
                if key.fileobj is connection:  # the program was killed
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                ended = os.waitid(os.P_PIDFD, process, os.WEXITED)
                found.unregister(process)
                found.unregister(connection)
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                try:
                    connection.sendall(code.to_bytes(4, "big", signed=True))
                except OSError:
                    pass
                connection.close()
                os.close(process)


def become(request, streams):
    """Turns this process into the requested one, and runs its program."""
    words, environment, folder = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environb.clear()
    os.environb.update(environment)
    os.chdir(folder)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # pylint: disable=consider-using-with
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=unbuffered, line_buffering=stream is sys.stderr or stream.isatty())
    known = set(sys.path)
    sys.path[0:1] = [one for one in os.environ.get("PYTHONPATH", "").split(":") if one and one not in known]
    while words[0] == "-W":
        warnings.simplefilter(words[1])
        words = words[2:]
    try:
        run(words)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code and code is not end.code:
            print(end.code, file=sys.stderr)
    except BaseException as error:  # pylint: disable=broad-except
        error.__traceback__ = error.__traceback__.tb_next.tb_next
        # Python sets these for an uncaught exception, and functions that run at exit may read them.
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    # These are Python's own steps at exit, except for tearing down modules, which takes longer than all the rest.
    threading._shutdown()  # pylint: disable=protected-access
    atexit._run_exitfuncs()  # pylint: disable=protected-access
    sys.stdout.flush()
    os._exit(code & 0xff)


def run(words):
    """Runs the program that a command line names with -c, -m or a file."""
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        main_module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), main_module.__dict__)  # pylint: disable=exec-used
    elif words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, "")
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        main_module = sys.modules["__main__"] = types.ModuleType("__main__")
        main_module.__file__ = words[0]
        code = pathlib.Path(words[0]).read_bytes()
        exec(compile(code, words[0], "exec"), main_module.__dict__)  # pylint: disable=exec-used


def main():
    address, path, *packages = sys.argv[1:]
    folder = os.path.dirname(address)
    # The first process that imports one of Warren's own packages compiles it for all later ones.
    sys.dont_write_bytecode, sys.pycache_prefix = False, os.path.join(folder, "bytecode")
    if path:
        sys.path.insert(1, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in (*STANDARD, *packages):
            __import__(package)
    gc.collect()
    gc.freeze()  # keeps the memory of existing objects shared with the forked processes for as long as possible
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(100)
    print("ready", flush=True)
    os.close(1)
    os.dup2(2, 1)
    asked = serve(listener)
    if asked is not None:
        become(*asked)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
