"""kubectl's command line: its commands and their flags, names of kinds, and label selectors."""

import re

from .objects import KINDS, Refused
from .syntax import LABEL_VALUE, label_key

TEXT, FLAG = "text", "flag"
GLOBAL_FLAGS = {"--namespace": TEXT, "-n": "--namespace"}
FILE = {"--filename": TEXT, "-f": "--filename"}
SELECT = {"--selector": TEXT, "-l": "--selector", "--ignore-not-found": FLAG}
FLAGS = {
    "apply": {**FILE, "--server-side": FLAG, "--field-manager": TEXT},
    "get": {**SELECT, "--output": TEXT, "-o": "--output"},
    "logs": {"--follow": FLAG, "-f": "--follow", "--timestamps": FLAG, "--since-time": TEXT, "--container": TEXT,
             "-c": "--container"},
    "delete": {**FILE, **SELECT, "--wait": FLAG},
}


def parse(words):
    """Returns the verb, the other words, and the flags. Raises Refused if the command line is invalid or not supported."""
    known, verb, rest, given, left = GLOBAL_FLAGS, None, [], {}, list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            rest += left
            break
        if not word.startswith("-") or word == "-":
            if verb is None:
                verb = word
                if verb not in FLAGS:
                    raise Refused(f'error: the stand-in has no "{verb}"; it has {", ".join(FLAGS)}')
                known = {**GLOBAL_FLAGS, **FLAGS[verb]}
            else:
                rest.append(word)
            continue
        long = word.startswith("--")
        name, equals, value = word.partition("=") if long else (word[:2], word[2:3] == "=", word[2:].removeprefix("="))
        full = known.get(name)
        kind = known.get(full, full)
        full = full if full in known else name
        if kind is None:
            unknown = f"unknown flag: {name}" if long else f"unknown shorthand flag: '{word[1]}' in {word}"
            raise Refused(f"error: {unknown} (or the stand-in has not)\nSee 'kubectl --help' for usage.")
        if full == "--filename" and full in given:
            raise Refused("error: the stand-in reads one file only")
        if kind == FLAG and not long and value and not equals:
            left.insert(0, "-" + value)
            value = ""
        if kind == FLAG and (value or equals):
            if value.lower() not in ("true", "false", "1", "0", "t", "f"):
                raise Refused(f'error: invalid argument "{value}" for "{full}" flag: '
                              f'strconv.ParseBool: parsing "{value}": invalid syntax')
            given[full] = value.lower() in ("true", "1", "t")
        elif kind == FLAG:
            given[full] = True
        elif not equals and not value:
            if not left:
                raise Refused(f"error: flag needs an argument: {name}")
            given[full] = left.pop(0)
        else:
            given[full] = value
    if verb is None:
        raise Refused("error: a command is needed")
    return verb, rest, given


def kind_of(word):
    for kind, (_, one, many, others, _) in KINDS.items():
        if word.lower() in (one, many, *others):
            return kind
    raise Refused(f'error: the server doesn\'t have a resource type "{word}" (or the stand-in has not)')


def selector_of(text):
    """Returns a predicate on labels. Raises Refused for operators other than = and ==."""
    wanted = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([^\s!=()]+)\s*==?\s*([^\s!=()]*)\s*", part)
        if not match or not label_key(match[1]) or not LABEL_VALUE.fullmatch(match[2]):
            raise Refused(f"error: unable to parse requirement: {part!r} (or the stand-in does not know it)")
        wanted[match[1]] = match[2]
    return lambda labels: wanted.items() <= labels.items()
