"""`warren submit ...`, `warren jobs ...` and so on: the package's programs under one name."""
import difflib
import sys
from typing import List, NoReturn, Optional

import warren
from warren._tools import commands as _commands


def usage() -> str:
    """The text of --help."""
    rows = "".join(f"  {command.name:9} {command.summary}\n" for command in _commands.COMMANDS)
    return ("usage: warren COMMAND ...\n"
            f"{rows}"
            "warren help COMMAND shows its options; warren --version; warren --completion bash|zsh|fish; warren --help-man\n")


def unknown(name: str) -> str:
    """The error message for an unknown command."""
    if name in _commands.ELSEWHERE:
        return f"warren: there is no command '{name}'; {_commands.ELSEWHERE[name]}"
    near = difflib.get_close_matches(name, [command.name for command in _commands.COMMANDS], 1, 0.6)
    return f"warren: there is no command '{name}'" + (f"; did you mean {near[0]}?" if near else "")


def _find(name: str) -> Optional[_commands.Command]:
    return next((command for command in _commands.COMMANDS if command.name == name), None)


def _answer(words: List[str]) -> int:
    """Handles --help, --version and similar options, and reports unknown commands. Returns the exit code."""
    if words[0] in ("-h", "--help", "help"):
        if len(words) == 1:
            print(usage(), end="")
            return 0
        command = _find(words[1])
        if command is not None:
            return command.run([*words[2:], "--help"])
        words = words[1:]
    if words[0] in ("-V", "--version"):
        print(f"warren {warren.__version__}")
        return 0
    if words[0] == "--completion":
        from warren._tools import completion as _completion  # pylint: disable=import-outside-toplevel
        return _completion.run(words[1:])
    if words[0] == "--help-man":
        from warren._tools import man as _man  # pylint: disable=import-outside-toplevel
        print(_man.page(warren.__version__), end="")
        return 0
    print(unknown(words[0]), usage(), sep="\n", end="", file=sys.stderr)
    return 2


def main() -> NoReturn:
    """Runs the command named by the first argument with the remaining ones."""
    words = sys.argv[1:]
    if not words:
        print(usage(), end="", file=sys.stderr)
        sys.exit(2)
    command = _find(words[0])
    try:
        sys.exit(command.run(words[1:]) if command else _answer(words))
    except FileNotFoundError as error:  # e.g. the command's program is not installed
        print(f"warren: {error}", file=sys.stderr)
        sys.exit(127)
    except BrokenPipeError:
        if sys.stderr is not None:
            sys.stderr.close()  # the reader closed the pipe
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
