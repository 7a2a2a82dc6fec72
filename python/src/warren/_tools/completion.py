"""Completion of `warren` in bash, zsh and fish, made from the table of its commands; `warren submit` completes like dmlc-submit."""
import argparse
import subprocess
import sys
from typing import Dict, List, Sequence

from warren._engine import native as _native
from warren._tools import commands as _commands

SHELLS = ("bash", "zsh", "fish")

_BASH = r"""
# Completion of warren in bash, written by warren --completion bash.
_warren() {
  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  # Bash splits --name=value into three words, because = is in COMP_WORDBREAKS.
  if [[ $cur == = ]]; then cur=''; elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '@NAMES@ --help --version --completion --help-man' -- "$cur")
    return
  fi
  case ${COMP_WORDS[1]} in
    submit) _dmlc_submit_from 2; return ;;
    --completion) mapfile -t COMPREPLY < <(compgen -W 'bash zsh fish' -- "$cur"); return ;;
  esac
  case "$COMP_CWORD ${COMP_WORDS[1]}" in
@WORDS@  esac
  case "${COMP_WORDS[1]} $previous" in
@VALUES@  esac
  if [[ $cur == -* ]]; then
    case ${COMP_WORDS[1]} in
@OPTIONS@    esac
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}
complete -F _warren warren
"""

_ZSH = r"""
# Completion of warren in zsh, written by warren --completion zsh.
_warren() {
  local -a commands=(
@COMMANDS@  )
  local context state state_descr line
  typeset -A opt_args
  _arguments -C -A '-*' '(- *)--help[lists the commands]' '(- *)--version[prints the version]' \
    '(- *)--help-man[prints the manual page]' '(- *)--completion=[prints a script for a shell]:shell:(bash zsh fish)' \
    '1:command:->command' '*::arguments:->arguments'
  case $state in
    command) _describe command commands ;;
    arguments)
      case $words[1] in
        submit) _dmlc_submit ;;
@CASES@        *) _files ;;
      esac ;;
  esac
}
if [[ $funcstack[1] == _warren ]]; then
  _warren "$@"
else
  compdef _warren warren
fi
"""

_FISH = r"""
# Completion of warren in fish, written by warren --completion fish.
function __warren_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end

function __warren_submit
    set -l words (commandline -opc)
    set -l before
    test (count $words) -gt 2; and set before (string escape -- $words[3..-1])
    complete -C (string join ' ' -- dmlc-submit $before (commandline -ct))
end

complete -c warren -e
complete -c warren -f -n '__warren_is submit' -k -a '(__warren_submit)'
complete -c warren -n 'test (count (commandline -opc)) -eq 1' -l version -d 'Prints the version'
complete -c warren -n 'test (count (commandline -opc)) -eq 1' -l help -d 'Lists the commands'
complete -c warren -n 'test (count (commandline -opc)) -eq 1' -l completion -x -a 'bash zsh fish' -d 'Prints a script for a shell'
"""


def _options(command: _commands.Command) -> List[argparse.Action]:
    actions = command.parser()._actions if command.parser else []  # pylint: disable=protected-access
    return [action for action in actions if action.option_strings and action.help != argparse.SUPPRESS]


def _takes(action: argparse.Action) -> str:
    """The kind of the option's value: 'flag', 'file', 'folder', 'choice' or 'any'."""
    if action.nargs == 0:
        return "flag"
    if action.choices:
        return "choice"
    return {"FILE": "file", "DIR": "folder"}.get(str(action.metavar), "any")


def _summary(action: argparse.Action) -> str:
    return (action.help or "").split(". ", maxsplit=1)[0].split(": ", maxsplit=1)[0].rstrip(".").replace("%%", "%")


def _bash() -> str:
    words, values, options = "", "", ""
    for command in _commands.COMMANDS:
        if command.words:
            words += f"    '2 {command.name}') mapfile -t COMPREPLY < <(compgen -W '{' '.join(command.words)}' -- \"$cur\"); return ;;\n"
        names = [name for action in _options(command) for name in action.option_strings]
        if names:
            options += f"      {command.name}) mapfile -t COMPREPLY < <(compgen -W '{' '.join(names)}' -- \"$cur\") ;;\n"
        for action in _options(command):
            kind = _takes(action)
            if kind == "flag":
                continue
            reply = {
                "file": "compgen -f",
                "folder": "compgen -d",
                "any": "true",
                "choice": f"compgen -W '{' '.join(map(str, action.choices or ()))}'"
            }[kind]
            pattern = "|".join(f"'{command.name} {name}'" for name in action.option_strings)
            files = "compopt -o filenames 2>/dev/null; " if kind in ("file", "folder") else ""
            values += f"    {pattern}) {files}mapfile -t COMPREPLY < <({reply} -- \"$cur\"); return ;;\n"
    names_of_all = " ".join(command.name for command in _commands.COMMANDS)
    return _BASH.replace("@NAMES@", names_of_all).replace("@WORDS@", words).replace("@VALUES@",
                                                                                    values).replace("@OPTIONS@", options)


def _for_zsh(text: str) -> str:
    for special in "\\[]:":
        text = text.replace(special, "\\" + special)
    return text.replace("'", "'\\''")


def _zsh() -> str:
    commands = "".join(f"    '{_for_zsh(one.name)}:{_for_zsh(one.summary)}'\n" for one in _commands.COMMANDS)
    cases = ""
    for command in _commands.COMMANDS:
        lines: List[str] = []
        for action in _options(command):
            kind = _takes(action)
            does = {
                "file": "_files",
                "folder": "_directories",
                "choice": f"({' '.join(map(str, action.choices or ()))})"
            }.get(kind, " ")
            value = "" if kind == "flag" else f":{_for_zsh(str(action.metavar or action.dest))}:{does}"
            lines += [
                f"'{name}{'' if kind == 'flag' else '=' if name.startswith('--') else '+'}[{_for_zsh(_summary(action))}]{value}'"
                for name in action.option_strings
            ]
        if command.words:
            lines.append(f"'1:what:({' '.join(command.words)})'")
        cases += f"        {command.name}) _arguments {' '.join(lines)} '*:file:_files' ;;\n" if lines else ""
    return _ZSH.replace("@COMMANDS@", commands).replace("@CASES@", cases)


def _for_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish() -> str:
    lines = _FISH
    for command in _commands.COMMANDS:
        lines += (f"complete -c warren -f -n 'test (count (commandline -opc)) -eq 1' -a {command.name} "
                  f"-d {_for_fish(command.summary)}\n")
        if command.words:
            lines += (f"complete -c warren -f -n '__warren_is {command.name}; and test (count (commandline -opc)) -eq 2' "
                      f"-a {_for_fish(' '.join(command.words))}\n")
        for action in _options(command):
            takes: Dict[str, str] = {
                "flag": "",
                "file": " -r -F",
                "folder": " -x -a '(__fish_complete_directories (commandline -ct))'",
                "any": " -x",
                "choice": f" -x -a {_for_fish(' '.join(map(str, action.choices or ())))}"
            }
            names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in action.option_strings)
            lines += (f"complete -c warren -n '__warren_is {command.name}'{names}{takes[_takes(action)]} "
                      f"-d {_for_fish(_summary(action))}\n")
    return lines


def script(shell: str, of_submit: str) -> str:
    """Returns the completion script of `warren`. It begins with `of_submit`, dmlc-submit's own script, which the rest needs."""
    own = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()
    if shell == "zsh":  # the first line names the command that a file in $fpath completes
        body = of_submit.split("\n", maxsplit=1)[1].split("if [[ $funcstack[1]", maxsplit=1)[0]
        return "#compdef warren\n" + body + own
    return of_submit + own


def run(words: Sequence[str]) -> int:
    """Runs `warren --completion SHELL`; returns the exit code."""
    if len(words) != 1 or words[0] not in SHELLS:
        print("warren: expected --completion bash, zsh or fish", file=sys.stderr)
        return 2
    of_submit = subprocess.run([_native.program("dmlc-submit"), "--completion", words[0]],
                               check=True,
                               text=True,
                               stdout=subprocess.PIPE).stdout
    print(script(words[0], of_submit), end="")
    return 0
