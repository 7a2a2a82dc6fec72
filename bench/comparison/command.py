"""What the command lines of the benchmarks have in common."""

import os
import shlex
import sys

#: Options that do not change what is measured.
HIDDEN_OPTIONS = ("--bin", "--build", "--json", "--output", "--picture")
#: Options whose values are paths of this machine, and what stands for a path.
PATH_OPTIONS = {"--parameters": "FILE", "--ps-lite": "FOLDER", "--python": "PYTHON", "--wheels": "FOLDER"}


def listed(kind):
    """The type of an option that is a comma-separated list of `kind`."""
    return lambda text: [kind(word) for word in text.split(",")]


def shown_command() -> str:
    """The command that repeats this run, without paths of this machine."""
    words = iter(sys.argv[1:])
    shown = [f"bench/{os.path.basename(sys.argv[0])}"]
    for word in words:
        option, is_one_word, _ = word.partition("=")
        if option not in (*HIDDEN_OPTIONS, *PATH_OPTIONS):
            shown.append(word)
            continue
        if not is_one_word:
            next(words, None)
        if option in PATH_OPTIONS:
            shown += [option, PATH_OPTIONS[option]]
    return shlex.join(shown)


def publish(text, path):
    """Prints a report, and writes it to the file `path`, if that is not None."""
    print(text)
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
