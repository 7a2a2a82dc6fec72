"""Reads the objects in a file as kubectl does."""

import json
import re

from .objects import Refused

try:
    import yaml
except ImportError:
    yaml = None


def documents(text, source):
    """Yields the objects in a file's text as `kubectl -f` does: JSON if it begins with {, otherwise YAML. Raises Refused for malformed text."""
    def fail(error):
        return Refused(f"error: error parsing {source}: {error}")

    if text.lstrip().startswith("{"):
        position, decoder = 0, json.JSONDecoder()
        while position < len(text):
            match = re.compile(r"\s*").match(text, position)
            if match.end() == len(text):
                return
            try:
                thing, position = decoder.raw_decode(text, match.end())
            except ValueError:
                raise fail(f"json: offset {match.end()}: invalid character {text[match.end()]!r} looking for beginning of "
                           "value") from None
            yield _plain(thing)
        return
    for part in re.split(r"^---[ \t\r]*$", text, flags=re.MULTILINE):
        try:
            thing = _plain(yaml.load(part, _yaml_loader()))
        except (yaml.YAMLError, ValueError) as error:
            raise fail(f"error converting YAML to JSON: yaml: {' '.join(str(error).split())}") from None
        if thing is not None:
            yield thing


def _yaml_loader():
    """Returns a loader that reads YAML as kubectl does: without dates and base-60 numbers, but with 1e3 as a number and y as a boolean."""
    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # kubectl's reader follows libyaml's rules
        yaml_implicit_resolvers = {}

    core = "tag:yaml.org,2002:"
    for tag, pattern, first in [
            ("bool", r"y|Y|n|N|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
            ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
            ("int", r"[-+]?0b[01_]+|[-+]?0x[\da-fA-F_]+|[-+]?0o?[0-7_]*|[-+]?[1-9][\d_]*", "-+0123456789"),
            ("float", r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+.0123456789"),
            ("merge", "<<", "<")]:
        Loader.add_implicit_resolver(core + tag, re.compile(f"^(?:{pattern})$"), list(first))
    Loader.add_constructor(core + "float", lambda loader, node: float(node.value.replace("_", "")))
    Loader.add_constructor(core + "bool", lambda loader, node: node.value[0] in "yYtT" or node.value in ("on", "On", "ON"))
    return Loader


def _plain(value):
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return re.sub("[\ud800-\udfff]", "\ufffd", text) if isinstance(text, str) else text
