"""The fields of each kind of object with their types, and decoding objects as the API server does for an apply."""

import base64
import json
import re
import time

from .syntax import quantity

BATCH = "batch.kubernetes.io/"
TERMINAL = ("Succeeded", "Failed")


class Refused(Exception):
    """Raised for a request that kubectl rejects by printing this message to stderr and exiting with 1."""


class Map:
    def __init__(self, of):
        self.of = of


QUANTITY, BASE64 = "quantity", "base64"
LABELS = Map(str)
META = {"name": str, "namespace": str, "labels": LABELS, "annotations": LABELS}
TOP = {"apiVersion": str, "kind": str, "metadata": META}
CONTAINER_FIELDS = {
    "name": str, "image": str, "command": [str],
    "env": [{"name": str, "value": str,
             "valueFrom": {"fieldRef": {"apiVersion": str, "fieldPath": str}, "secretKeyRef": {"name": str, "key": str},
                           "resourceFieldRef": {"resource": str}}}],
    "resources": {"limits": Map(QUANTITY), "requests": Map(QUANTITY)},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}]}
POD_FIELDS = {
    "containers": [CONTAINER_FIELDS], "restartPolicy": str, "hostname": str, "subdomain": str,
    "terminationGracePeriodSeconds": int, "enableServiceLinks": bool, "volumes": [{"name": str, "secret": {"secretName": str}}]}
JOB_FIELDS = {
    "parallelism": int, "completions": int, "completionMode": str, "backoffLimit": int, "backoffLimitPerIndex": int,
    "maxFailedIndexes": int, "activeDeadlineSeconds": int, "ttlSecondsAfterFinished": int, "podReplacementPolicy": str,
    "template": {"metadata": META, "spec": POD_FIELDS},
    "podFailurePolicy": {"rules": [{"action": str,
                                    "onExitCodes": {"containerName": str, "operator": str, "values": [int]},
                                    "onPodConditions": [{"type": str, "status": str}]}]}}
SERVICE_FIELDS = {"clusterIP": str, "selector": LABELS, "publishNotReadyAddresses": bool}
# By kind: version, name in kubectl's output, name in errors, other names, and fields.
KINDS = {
    "Pod": ("v1", "pod", "pods", ("po",), None),
    "Job": ("batch/v1", "job.batch", "jobs.batch", ("job", "jobs"), {**TOP, "spec": JOB_FIELDS}),
    "Service": ("v1", "service", "services", ("svc",), {**TOP, "spec": SERVICE_FIELDS}),
    "Secret": ("v1", "secret", "secrets", (), {**TOP, "data": Map(BASE64), "stringData": LABELS}),
}
# For each list whose elements are identified by a key: the list's name and that key. The API server treats other lists as a whole.
NAMED = {"containers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath"}
TYPES = {str: (str, "string"), BASE64: (str, "string"), bool: (bool, "boolean"), int: ((int, float), "numeric (int or float)"),
         QUANTITY: ((int, float, str), "string"), Map: (dict, "map"), dict: (dict, "map"), list: (list, "list")}


def elements(things, path):
    """Yields the elements of a list with their paths."""
    key = NAMED.get(path.rpartition(".")[2])
    for i, one in enumerate(things):
        named = key and isinstance(one, dict) and isinstance(one.get(key), str)
        yield one, f"{path}[{key}={json.dumps(one[key])}]" if named else f"{path}[{i}]"


def decode(value, fields, path, errors):
    """Returns the value as the API server decodes it, without nulls. Adds unknown fields, wrong types, and missing or duplicate keys to
    `errors`. Raises ValueError for malformed values."""
    types, name = TYPES[type(fields) if isinstance(fields, (Map, dict, list)) else fields]
    if not isinstance(value, types) or isinstance(value, bool) and fields is not bool:
        errors.append(f"{path}: expected {name}, got &value.valueUnstructured{{Value:{value}}}")
    elif fields is int:
        if isinstance(value, float) or not -2**31 <= value < 2**31:
            raise ValueError(f"json: cannot unmarshal number {value} into Go struct field {path[1:]} of type int32")
    elif fields == QUANTITY:
        value = str(value)
        if quantity(value) is None:
            raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    elif fields == BASE64:
        try:
            base64.b64decode(re.sub("[\r\n]", "", value).encode(), validate=True)
        except ValueError:
            raise ValueError(f"illegal base64 data at input byte {len(re.match('[A-Za-z0-9+/]*', value)[0])}") from None
    elif isinstance(fields, Map):
        value = {key: "" if one is None else decode(one, fields.of, f"{path}.{key}", errors) for key, one in value.items()}
    elif isinstance(fields, list):
        key, parts = NAMED.get(path.rpartition(".")[2]), list(elements(value, path))
        if key:
            errors += [f'{path}: element {i}: associative list with keys has an element that omits key field "{key}" '
                       "(and doesn't have default value)" for i, (_, part) in enumerate(parts) if part == f"{path}[{i}]"]
            names = [part for _, part in parts]
            errors += [f"{path}: duplicate entries for key {part.removeprefix(path)}"
                       for part in dict.fromkeys(names) if names.count(part) > 1]
        value = [decode({} if one is None else one, fields[0], part, errors) for one, part in parts]
    elif isinstance(fields, dict):
        errors += [f"{path}.{name}: field not declared in schema (or the stand-in has not)" for name in value if name not in fields]
        value = {name: decode(one, fields[name], f"{path}.{name}", errors)
                 for name, one in value.items() if name in fields and one is not None}
    return value


def contents(secret):
    """The contents of a Secret, as bytes by key."""
    return {key: base64.b64decode(value) for key, value in secret.get("data", {}).items()}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
