"""`warren submit ...`, `warren jobs ...` and so on: the package's programs under one name."""
import difflib
import sys
from typing import List, NoReturn

import warren
from warren import _commands


def usage() -> str:
    """The text of --help."""
    rows = "".join(f"  {command.name:9} {command.summary}\n" for command in _commands.COMMANDS)
    return ("usage: warren COMMAND ...\n"
            f"{rows}"
            "warren COMMAND --help says what it takes; warren --version; warren --completion bash|zsh|fish; warren --help-man\n")


def unknown(name: str) -> str:
    """What is said of a command that is none."""
    names = [command.name for command in _commands.COMMANDS]
    near = difflib.get_close_matches(name, names, 1, 0.4)
    return f"warren: there is no command '{name}'" + (f"; did you mean {near[0]}?" if near else "")


def _answer(words: List[str]) -> int:
    """To --help and the like."""
    if words[0] in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0
    if words[0] == "--version":
        print(f"warren {warren.__version__}")
        return 0
    if words[0] == "--completion":
        from warren import _completion  # pylint: disable=import-outside-toplevel
        return _completion.run(words[1:])
    if words[0] == "--help-man":
        from warren import _man  # pylint: disable=import-outside-toplevel
        print(_man.page(warren.__version__), end="")
        return 0
    print(unknown(words[0]), usage(), sep="\n", end="", file=sys.stderr)
    return 2


def main() -> NoReturn:
    """The command that the first argument names, with the others."""
    words = sys.argv[1:]
    if not words:
        print(usage(), end="", file=sys.stderr)
        sys.exit(2)
    command = next((one for one in _commands.COMMANDS if one.name == words[0]), None)
    try:
        sys.exit(command.run(words[1:]) if command else _answer(words))
    except FileNotFoundError as error:  # of a program that is not built
        print(f"warren: {error}", file=sys.stderr)
        sys.exit(127)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read has seen enough
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
