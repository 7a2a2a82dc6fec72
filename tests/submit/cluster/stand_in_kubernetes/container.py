"""Runs a container's first process. The parent of that process waits for it and exits with the code that a container runtime would report.
The arguments are a file descriptor and the stand-in's directory; standard input has the settings as JSON. Writes `pid N` to the
descriptor and, on failure, `error REASON TEXT`. The descriptor is closed once the command has begun."""

import ctypes
import errno
import json
import os
import signal
import sys

RDONLY, REMOUNT, BIND, MOVE, REC, PRIVATE = 1, 32, 4096, 8192, 16384, 1 << 18
NEWNS, NEWUTS, NEWPID = 0x20000, 0x4000000, 0x20000000
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG

libc = ctypes.CDLL(None, use_errno=True)
# `own`: the folders in which make() can create folders directly: the working directory, mounts, and folders that make() created.
# `mirrored`: the folders that mirror() has covered.
own: list[str] = []
mirrored: set[str] = set()


def check(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source, target, kind=None, flags=0, data=None):
    words = [word if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    check(libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]))


def mirror(directory, stage):
    """Covers a directory with a tmpfs that has the same entries, so that entries can be added without changing the host's directory."""
    below = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    entries = list(os.scandir(directory))
    mount("none", stage, "tmpfs", 0, f"mode={os.stat(directory).st_mode & 0o7777:o}")
    for entry in entries:
        source, target = f"/proc/self/fd/{below}/{entry.name}", f"{stage}/{entry.name}"
        try:
            if entry.is_symlink():
                os.symlink(os.readlink(source), target)
                continue
            if entry.is_dir():
                os.mkdir(target)
            else:
                os.close(os.open(target, os.O_CREAT))
            mount(source, target, None, BIND | REC)
        except FileNotFoundError:
            pass
    os.close(below)
    if directory == "/":
        os.chroot(stage)
    else:
        mount(stage, directory, None, MOVE)
    mirrored.add(directory)


def make(path, stage):
    path = first = os.path.realpath(path)
    if not os.path.isdir(path):
        while not os.path.lexists(os.path.dirname(first)):
            first = os.path.dirname(first)
        parent = os.path.dirname(first)
        if parent not in mirrored and not any((parent + "/").startswith(one.rstrip("/") + "/") for one in own):
            mirror(parent, stage)
        os.makedirs(path)
        own.append(first)
    return path


def begin(setting, place):
    """Turns this process into the container's first process."""
    libc.prctl(DIE_WITH_PARENT, signal.SIGKILL)
    os.setsid()
    os.umask(0o022)
    mount("none", "/", None, REC | PRIVATE)
    own.append(setting["work"])
    for source, target in setting["mounts"]:
        target = make(target, f"{place}/stage")
        mount(source, target, None, BIND)
        mount("none", target, None, REMOUNT | BIND | RDONLY)
        own.append(target)
    for source, target in ((setting["hosts"], "/etc/hosts"), (f"{place}/nsswitch.conf", "/etc/nsswitch.conf")):
        mount(source, os.path.realpath(target), None, BIND)
    mount("proc", "/proc", "proc")
    check(libc.sethostname(setting["hostname"].encode(), len(setting["hostname"])))
    os.chdir(setting["work"])
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for one in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(one, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def become(command, environment):
    """Executes the command. On failure, returns an error message, or exits with code 255 if the file is not in an executable format."""
    try:
        os.execvpe(command[0], command, environment)
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None) or f"invalid argument: {error}"
        number = getattr(error, "errno", None)
        if number == errno.ENOEXEC:
            os.write(2, f"exec {command[0]}: exec format error\n".encode())
            os._exit(255)
        if number in (errno.ENOENT, errno.ENOTDIR):
            text = f"stat {command[0]}: {text.lower()}" if "/" in command[0] else "executable file not found in $PATH"
        return f'exec: "{command[0]}": {text[:1].lower()}{text[1:]}'


def main(report, place):
    libc.prctl(DIE_WITH_PARENT, signal.SIGKILL)
    setting = json.load(sys.stdin)
    check(libc.unshare(NEWNS | NEWUTS | NEWPID))
    os.set_inheritable(report, False)
    pid = os.fork()
    if pid:
        os.write(report, f"pid {pid}\n".encode())
        for one in (0, 1, 2, report):
            os.close(one)
        status = os.waitpid(pid, 0)[1]
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    try:
        begin(setting, place)
        error = "StartError " + become(setting["command"], setting["environment"])
    except OSError as why:
        error = f"CreateContainerError {why}"
    os.write(report, f"error {error}".encode())
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
