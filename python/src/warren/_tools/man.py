"""The manual page warren.1, made from the table of commands."""
import argparse
import sys
import textwrap
from typing import List

from warren._tools import commands as _commands


def _escaped(text: str) -> str:
    """Escapes the text for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    lines = textwrap.wrap(escaped, 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def _item(term: str, text: str) -> List[str]:
    return [".TP", f".B {_escaped(term)}", _escaped(text)]


def _action(action: argparse.Action) -> List[str]:
    choices = "|".join(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else f" {action.metavar or choices or action.dest.upper()}"
    term = ", ".join(action.option_strings) + value if action.option_strings else str(action.metavar or action.dest)
    text = (action.help or "").replace("%%", "%").rstrip(".")
    return _item(term, text[:1].upper() + text[1:] + ".")


def page(version: str) -> str:
    """Returns the page in roff."""
    lines = [
        f'.TH WARREN 1 "" "Warren {_escaped(version)}" "Warren"', ".SH NAME",
        "warren \\- start, watch and check distributed jobs", ".SH SYNOPSIS", ".B warren", "command [arguments...]",
        ".SH COMMANDS"
    ]
    for command in _commands.COMMANDS:
        program = f" Its options are those of {command.program}(1)." if command.program else ""
        lines += _item(f"warren {command.name}", command.summary[:1].upper() + command.summary[1:] + "." + program)
    for command in _commands.COMMANDS:
        if command.parser is None:
            continue
        parser = command.parser()
        lines.append(f".SH OPTIONS OF {_escaped('warren ' + command.name).upper()}")
        if parser.description:
            lines.append(_escaped(parser.description))
        for action in parser._actions:  # pylint: disable=protected-access
            lines += _action(action)
    lines += [
        ".SH OTHER OPTIONS", *_item("--help", "Lists the commands."), *_item("--version", "Prints the version."),
        *_item("--completion bash|zsh|fish", "Prints the script by which a shell completes the command line."),
        *_item("--help-man", "Prints this page."), ".SH SEE ALSO", ".BR dmlc\\-submit (1),", ".BR rabit\\-tracker (1)"
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(sys.argv[1]), end="")
