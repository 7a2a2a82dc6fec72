"""The ownership of an object's fields by managers, by the rules of server-side apply."""

import base64
import json

from .objects import NAMED, elements

# The fields that identify an object have no owner.
NOBODYS = (".apiVersion", ".kind", ".metadata.name", ".metadata.namespace")


def fields_of(value, path=""):
    """The leaf fields of a value, by path."""
    if isinstance(value, dict):
        parts = [(one, f"{path}.{name}") for name, one in value.items()]
    elif isinstance(value, list) and path.rpartition(".")[2] in NAMED:
        parts = elements(value, path)
    else:
        return {} if path in NOBODYS else {path: value}
    return {name: one for part, where in parts for name, one in fields_of(part, where).items()}


def conflict(wanted, there, owners, manager):
    """The API server's error message if other managers own fields with a different value, otherwise None."""
    found = {other: [path for path, value in wanted.items() if path in paths and (path, value) not in there.items()]
             for other, paths in sorted(owners.items()) if other != manager}
    found = {other: paths for other, paths in found.items() if paths}
    count = sum(map(len, found.values()))
    if count < 2:
        return next((f"1 conflict: conflict with {json.dumps(other)}: {path}" for other, [path] in found.items()), None)
    lines = [line for other, paths in found.items()
             for line in (f"conflicts with {json.dumps(other)}:", *(f"- {path}" for path in paths))]
    return f"{count} conflicts: " + "\n".join(lines)


def changes(wanted, there, owners, manager):
    """The paths of the fields that the apply would change or remove."""
    texts = {path.replace(".data", ".stringData", 1): base64.b64decode(value).decode("utf-8", "replace")
             for path, value in there.items() if path.startswith(".data.")}
    known = {**there, **texts}.items()
    return [path for path, value in wanted.items() if (path, value) not in known] + sorted(
        owners.get(manager, set()) - set(wanted))
