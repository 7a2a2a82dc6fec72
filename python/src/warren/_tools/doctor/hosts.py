"""Reads the host file of `warren doctor`, and runs a probe on each host over ssh."""
import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import secrets
import subprocess
import sys
import threading
import time
from typing import Any, List, Optional, Sequence

from warren._engine import native as _native

PROBE = pathlib.Path(__file__).with_name("probe.py")
#: dmlc-submit's options for ssh (submit/cluster/ssh.cc), without those for keep-alive messages and for --ssh-host-keys, so that
#: dmlc-submit can reach each host that is reachable here.
_SSH = ("-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10", "-o", "RemoteCommand=none", "-o",
        "ControlMaster=no", "-o", "ClearAllForwardings=yes")
_PATIENCE_S = 60.0
#: Python code that prints its argument, then reads the length of the probe's code and the code itself from standard input, and runs it.
_LOADER = ("import sys; print(sys.argv[1], flush=True); n = int(sys.stdin.readline()); "
           "exec(compile(sys.stdin.read(n), 'probe', 'exec'), {'__name__': '__main__'})")


class HostError(Exception):
    """Raised if a host cannot be examined. `kind`: "name", "refused", "timeout", "key", "permission", "python", "lost" or "other"."""
    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclasses.dataclass(frozen=True)
class Host:
    """A line of the host file. An empty `name` means this machine."""
    name: str
    user: str = ""
    port: int = 0

    @property
    def shown(self) -> str:
        """The host as messages show it, with user and port if given."""
        if not self.name:
            return "this machine"
        name = f"[{self.name}]" if self.port and ":" in self.name else self.name
        return f"{self.user}@" * bool(self.user) + name + f":{self.port}" * bool(self.port)


def parse_hosts(text: str, source: str) -> List[Host]:
    """Returns the hosts of a host file. Runs dmlc-submit to parse it. Raises a ValueError that names `source` and the line."""
    words = [_native.program("dmlc-submit"), "--show-hosts", "--host-file", "/dev/stdin"]
    done = subprocess.run(words, input=text, capture_output=True, check=False, encoding="utf-8", errors="surrogateescape")
    if done.returncode != 0:
        raise ValueError(done.stderr.strip().replace("dmlc-submit: error: ", "", 1).replace("/dev/stdin", source, 1))
    hosts = []
    for line in done.stdout.splitlines():
        login, *settings = line.split()
        user, _, name = login.rpartition("@")
        port = dict(setting.split("=") for setting in settings).get("port", "0")
        hosts.append(Host(name, user, int(port)))
    return hosts


def ssh_words(host: Host, options: Sequence[str]) -> List[str]:
    """The ssh command and its options, without the host."""
    return ["ssh", *options, *_SSH, *(["-p", str(host.port)] if host.port else [])]


def _login(host: Host) -> str:
    return f"{host.user}@{host.name}" if host.user else host.name


def real_name(host: Host, options: Sequence[str]) -> str:
    """Returns the name to which ssh's configuration resolves the host, and by which other hosts reach it; `host.name` if ssh fails."""
    try:
        shown = subprocess.run([*ssh_words(host, options), "-G", "--", _login(host)],
                               check=True,
                               text=True,
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL,
                               timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return host.name
    return next((line.split()[1] for line in shown.splitlines() if line.startswith("hostname ")), host.name)


#: Phrases in ssh's messages, each with the kind of error that it indicates.
_SAID = (("Could not resolve hostname", "name"), ("Name or service not known", "name"), ("Host key verification failed", "key"),
         ("REMOTE HOST IDENTIFICATION", "key"), ("Permission denied", "permission"),
         ("Too many authentication failures", "permission"), ("Connection refused", "refused"), ("timed out", "timeout"),
         ("No route to host", "timeout"), ("Network is unreachable", "timeout"))


def kind_of(said: str) -> str:
    """Returns the kind of error that ssh's standard error indicates."""
    return next((kind for words, kind in _SAID if words in said), "other")


def pythons_of(executable: str, prefix: str, base_prefix: str) -> List[str]:
    """The interpreters to try on hosts, best first: the running one, if it belongs to an environment (dmlc-submit starts it on hosts
    that have it), and python3."""
    is_environment = prefix != base_prefix or os.path.isdir(os.path.join(prefix, "conda-meta"))
    return [executable, "python3"] if is_environment else ["python3"]


class Probe:
    """A probe running on a host, which answers one request at a time. Not thread-safe."""
    def __init__(self, host: Host, options: Sequence[str] = (), pythons: Sequence[str] = ("python3",)) -> None:
        """Starts the probe, with the first of `pythons` that the host has; on this machine, with this process's interpreter. Raises
        HostError."""
        self.host = host
        self.wanted = pythons[0] if host.name else sys.executable
        began = time.monotonic()
        self._lines: "queue.Queue[Optional[str]]" = queue.Queue()
        mark = f"warren-doctor-{secrets.token_hex(8)}"
        command = [*ssh_words(host, options), "--", _login(host), "exec sh"] if host.name else ["sh"]
        try:
            self._process = subprocess.Popen(command,
                                             stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE,
                                             text=True,
                                             encoding="utf-8",
                                             errors="replace")
        except OSError as error:
            raise HostError("other", f"{command[0]}: {error.strerror}; install OpenSSH's client") from None
        self._said: List[str] = []
        threading.Thread(target=self._read_lines, daemon=True).start()
        self._errors = threading.Thread(target=self._read_errors, daemon=True)
        self._errors.start()
        try:
            names = " ".join(map(_quoted, pythons if host.name else [sys.executable]))
            # One line, and nothing after it until Python is running: some shells read ahead.
            self._write(
                f"for python in {names}; do if command -v \"$python\" >/dev/null 2>&1; then exec \"$python\" -c {_quoted(_LOADER)} {mark}; "
                f"fi; done; echo {mark} no-python `uname -sr` `df -k /dev/shm 2>/dev/null | tail -1`; exit\n")
            first = self._line_with(mark)
            self.seconds = time.monotonic() - began
            if "no-python" in first:
                raise HostError("python", f"has no {self.wanted} ({first.partition('no-python ')[2].strip()})")
            code = PROBE.read_text(encoding="utf-8")
            self._write(f"{len(code)}\n{code}")
        except BaseException:
            self.close()
            raise

    def ask(self, what: str, *, patience_s: float = _PATIENCE_S, **values: Any) -> Any:
        """Sends a request and returns the answer. Raises HostError if the probe fails, is lost, or does not answer within `patience_s`
        seconds."""
        self._write(json.dumps({"do": what, **values}) + "\n")
        line = self._line(patience_s)
        try:
            answer = json.loads(line)
            if "error" not in answer:
                return answer["answer"]
        except (ValueError, RecursionError, TypeError, KeyError):
            raise HostError("other", f"the probe's answer {line[:80]!r} is malformed: something else writes to the standard "
                            "output of non-interactive shells there") from None
        raise HostError("other", str(answer["error"]))

    def close(self) -> None:
        """Ends the probe."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _write(self, text: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except OSError:
            raise self._lost() from None

    def _line(self, patience_s: float = _PATIENCE_S) -> str:
        try:
            line = self._lines.get(timeout=patience_s)
        except queue.Empty:
            raise HostError("timeout", f"it has not answered for {patience_s:.0f} s") from None
        if line is None:
            raise self._lost()
        return line

    def _line_with(self, mark: str) -> str:
        """Returns the first line that contains `mark`. Skips the login shell's output before it, such as a greeting."""
        while True:
            line = self._line()
            if mark in line:
                return line.strip()

    def _lost(self) -> HostError:
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = -1
        self._errors.join(2)
        said = "".join(self._said).strip()
        last = said.splitlines()[-1] if said else f"it ended with code {code}"
        return HostError(kind_of(said) if code == 255 else "lost", last)

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def hosts_of(host_file: Optional[str], names: Optional[str]) -> List[Host]:
    """Returns this machine, then the hosts of the host file, then those of the comma-separated `names`. Without either, $HOSTFILE names the
    host file. Raises OSError if the file cannot be read, and ValueError if a host is malformed."""
    found = [Host("")]
    path = host_file or (os.environ.get("HOSTFILE") if names is None else None)
    if path:
        found += parse_hosts(pathlib.Path(path).read_text(encoding="utf-8", errors="surrogateescape"), path)
    for name in (names or "").split(","):
        if name.strip():
            found += [host for host in parse_hosts(name, "--hosts") if host not in found]
    return found
