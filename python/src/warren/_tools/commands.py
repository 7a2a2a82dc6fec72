"""The table of `warren`'s commands, from which its help, man page and completion are made."""
import argparse
import dataclasses
import importlib
from typing import Any, Callable, Optional, Sequence


@dataclasses.dataclass(frozen=True)
class Command:
    """The command `warren <name>`. `run` takes the remaining words and returns the exit code. `parser` returns the command's parser,
    importing it on demand; None if `run` passes the words on to another parser. `program`: the program whose manual page describes the
    options. `words`: the choices for the first word."""
    name: str
    summary: str
    run: Callable[[Sequence[str]], int]
    parser: Optional[Callable[[], argparse.ArgumentParser]] = None
    program: str = ""
    words: Sequence[str] = ()


def _program(name: str) -> Callable[[Sequence[str]], int]:
    def run(words: Sequence[str]) -> int:
        from warren._engine import native as _native  # pylint: disable=import-outside-toplevel
        _native.run(name, list(words))

    return run


def _tool(name: str, summary: str) -> Command:
    """The command that the module of this name in this package implements with its functions `run` and `parser`."""
    def module() -> Any:
        return importlib.import_module(f"warren._tools.{name}")

    def parser() -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = module().parser()
        return made

    return Command(name, summary, lambda words: int(module().run(words)), parser)


def _data(words: Sequence[str]) -> int:
    return int(importlib.import_module("warren.data._commands").main(words))


#: Command names of similar programs, each with a text that names the command to use instead.
ELSEWHERE = {
    "list": "warren jobs lists running and past jobs",
    "ps": "warren jobs lists running and past jobs",
    "kill": "warren cancel NAME ends a job",
    "stop": "warren cancel NAME ends a job",
    "attach": "warren logs NAME --follow shows a job's output as it comes",
    "tail": "warren logs NAME --follow shows a job's output as it comes",
    "run": "warren submit -n N COMMAND starts a job",
    "launch": "warren submit -n N COMMAND starts a job",
    "start": "warren submit -n N COMMAND starts a job",
    "train": "warren submit -n N COMMAND starts a job",
    "check": "warren doctor checks hosts, warren data validate checks data sets",
    "version": "warren --version prints it",
}

COMMANDS = (
    Command("submit", "start a job (dmlc-submit)", _program("dmlc-submit"), program="dmlc-submit"),
    _tool("jobs", "list past jobs and how each ended"),
    _tool("status", "show how a job is doing"),
    _tool("logs", "show a job's output"),
    _tool("wait", "wait for a job's end"),
    _tool("cancel", "end a running job"),
    _tool("doctor", "check this machine and the hosts of a host file"),
    _tool("bench", "measure allreduce here or on a cluster, against memory and network limits"),
    Command("data", "inspect, validate, convert and shard data sets (rabit-data)", _data, words=("inspect", "validate", "convert", "shard")),
    Command("tracker", "run a tracker by itself (rabit-tracker)", _program("rabit-tracker"), program="rabit-tracker"),
)
