"""Runs completion scripts in shells: in bash by calling the completion function with the words that bash would pass, in fish with the
`complete` command, and in any shell by typing at a terminal."""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

LIMIT_S = 60


def have(shell):
    return shutil.which(shell) is not None


def _words(line):
    """The words of a line as in COMP_WORDS; bash also splits the line at `=` and `:`."""
    words = []
    for word in line.split(" "):
        words += [part for part in re.split("([=:]+)", word) if part] or [""]
    return words


def _output(directory, *command, **environment):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, check=True,
                          env={**os.environ, **environment})
    assert not done.stderr, done.stderr
    return done.stdout


def bash(script, function, line, directory):
    """The completions that bash offers for the end of the line."""
    program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' + f'{function}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    found = _output(directory, "bash", "--norc", "-c", program, "bash", script, *_words(line))
    return sorted(found.split("\n")[:-1]) if found != "\n" else []


def fish(script, line, directory):
    """The completions that fish offers for the line, without their descriptions."""
    found = _output(directory, "fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line, HOME=str(directory))
    return sorted(shown.partition("\t")[0] for shown in found.splitlines())


class Terminal:
    """An interactive shell in a terminal."""

    def __init__(self, command, directory):
        self.seen = ""
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            environment = {**os.environ, "HOME": str(directory), "PS1": "$ ", "TERM": "dumb", "LANG": "C"}
            os.execvpe(command[0], command, environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.end)

    def type(self, text):
        os.write(self.end, text.encode())

    def run(self, line):
        """Types a whole line and waits until it has been executed."""
        mark = f"done-{time.monotonic_ns()}"
        self.type(f"{line}; echo '{mark[:5]}''{mark[5:]}'\n")
        self.wait_for(f"{mark}\r\n")

    def wait_for(self, expected):
        """Waits until the output since the last call contains this text. Blanks and control sequences are ignored, since the shell may
        draw the text in pieces and move the cursor between them. Raises AssertionError after LIMIT_S seconds."""
        end = time.monotonic() + LIMIT_S
        squeezed = "".join(expected.split(" "))
        while squeezed not in "".join(re.sub("\x1b\\[[0-9;?]*[a-zA-Z]|\x07", "", self.seen).split(" ")):
            if time.monotonic() > end:
                raise AssertionError(f"{expected!r} was not shown: {self.seen!r}")
            if select.select([self.end], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.end, 65536).decode(errors="replace")
        self.seen = ""


def zsh(script, directory):
    """A terminal in which zsh has read the script."""
    terminal = Terminal(["zsh", "-f", "-i"], directory)
    try:
        terminal.run("unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null; autoload -U compinit")
        terminal.run(f"compinit -u -D; source {script}")
    except BaseException:
        terminal.__exit__()
        raise
    return terminal
