"""A stand-in for a Kubernetes cluster and kubectl, for tests: API server, Job controller, garbage collector, scheduler and
kubelet are threads of the test's process; kubectl is a script that asks them over a socket. Its rules are those of
Kubernetes 1.32; what it does not have it refuses.

A container is a process in PID, mount and UTS namespaces of its own, its command being PID 1. Unlike in a cluster, all
pods share the network of the thread that makes the cluster (every pod's address is 127.0.0.1, so two pods cannot listen
at one port) and the host's file system, but for their volumes and /etc/hosts, which stands in for the cluster's DNS: no
other name is known. Images are names, with neither an entrypoint nor files; requests and limits are checked and have no
effect; nobody is authenticated."""

import base64
import copy
import datetime
import fractions
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import uuid

try:
    import yaml
except ImportError:
    yaml = None

ADDRESS = "127.0.0.1"
BATCH = "batch.kubernetes.io/"
VARIABLE = "STAND_IN_KUBERNETES"
VERSION = "v1.32.0"
LOG_PIECE = 16 * 1024  # what a container runtime takes for one piece of a line
TERMINAL = ("Succeeded", "Failed")

# kubectl: sends its words, its directory and its input, and shows what comes back: b"o" and b"e" with bytes, b"x" with a code.
CLIENT = '''\
#!{python} -IS
import json, os, signal, socket, struct, sys
for one in (signal.SIGINT, signal.SIGPIPE):
    signal.signal(one, signal.SIG_DFL)
def end(text):
    sys.stderr.write(text + "\\n")
    sys.exit(1)
words = sys.argv[1:]
wants_input = any(word in ("-f-", "-f=-", "--filename=-") for word in words) or \\
    any(pair in (("-f", "-"), ("--filename", "-")) for pair in zip(words, words[1:]))
text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if wants_input else ""
server = socket.socket(socket.AF_UNIX)
try:
    # By way of the directory: a socket's path must be short.
    directory = os.open(os.environ["{variable}"], os.O_PATH)
    server.connect("/proc/self/fd/%d/socket" % directory)
except (KeyError, OSError):
    end("The connection to the server localhost:8080 was refused - did you specify the right host or port?")
request = json.dumps(dict(words=words, cwd=os.getcwd(), text=text)).encode()
try:
    server.sendall(struct.pack("!I", len(request)) + request)
    stream = server.makefile("rb")
    while len(head := stream.read(5)) == 5:
        kind, size = struct.unpack("!cI", head)
        if kind == b"x":
            os._exit(size)
        data = stream.read(size)
        while data:
            data = data[os.write(1 if kind == b"o" else 2, data):]
except ConnectionError:
    pass
end("error: unexpected EOF")
'''

# A container's first process, and its parent, which waits for it and ends as a runtime reports the end. Says `pid N` and,
# when it comes to nothing, `error REASON TEXT`; what it says ends when the command has begun.
CONTAINER = '''\
import ctypes, errno, json, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
setting = json.load(sys.stdin)
report = int(sys.argv[1])
RDONLY, REMOUNT, BIND, MOVE, REC, PRIVATE = 1, 32, 4096, 8192, 16384, 1 << 18
NEWNS, NEWUTS, NEWPID = 0x20000, 0x4000000, 0x20000000
own = [setting["work"]]  # where directories can be made: what is under these is not the host's, or wanted there
mirrored = set()

def check(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def mount(source, target, kind=None, flags=0, data=None):
    words = [word if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    check(libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]))

def mirror(directory):
    """Covers a directory by one that has the same in it, and takes more without a trace on the host."""
    stage = setting["stage"]
    below = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    entries = list(os.scandir(directory))
    mount("none", stage, "tmpfs", 0, "mode=%o" % (os.stat(directory).st_mode & 0o7777))
    for entry in entries:
        source, target = "/proc/self/fd/%d/%s" % (below, entry.name), stage + "/" + entry.name
        try:
            if entry.is_symlink():
                os.symlink(os.readlink(source), target)
                continue
            os.mkdir(target) if entry.is_dir() else os.close(os.open(target, os.O_CREAT))
            mount(source, target, None, BIND | REC)
        except FileNotFoundError:
            pass
    os.close(below)
    if directory == "/":
        os.chroot(stage)
    else:
        mount(stage, directory, None, MOVE)
    mirrored.add(directory)

def make(path):
    path = first = os.path.realpath(path)
    if not os.path.isdir(path):
        while not os.path.lexists(os.path.dirname(first)):
            first = os.path.dirname(first)
        parent = os.path.dirname(first)
        if parent not in mirrored and not any((parent + "/").startswith(one.rstrip("/") + "/") for one in own):
            mirror(parent)
        os.makedirs(path)
        own.append(first)
    return path

def begin():
    libc.prctl(1, signal.SIGKILL)
    os.setsid()
    os.umask(0o022)
    mount("none", "/", None, REC | PRIVATE)
    for source, target, read_only in setting["mounts"]:
        target = make(target)
        mount(source, target, None, BIND)
        if read_only:
            mount("none", target, None, REMOUNT | BIND | RDONLY)
        own.append(target)
    directory = make(setting["directory"])
    for name in ("hosts", "nsswitch.conf"):
        mount(setting[name], os.path.realpath("/etc/" + name), None, BIND)
    mount("proc", "/proc", "proc")
    check(libc.sethostname(setting["hostname"].encode(), len(setting["hostname"])))
    os.chdir(directory)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for one in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(one, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])

check(libc.unshare(NEWNS | NEWUTS | NEWPID))
os.set_inheritable(report, False)
pid = os.fork()
if pid:
    os.write(report, b"pid %d\\n" % pid)
    for one in (0, 1, 2, report):
        os.close(one)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status := os.waitpid(pid, 0)[1]) else 128 + os.WTERMSIG(status))
command = setting["command"]
try:
    try:
        begin()
    except OSError as error:
        os.write(report, ("error CreateContainerError %s" % error).encode())
        os._exit(1)
    os.execvpe(command[0], command, setting["environment"])
except (OSError, ValueError) as error:
    text = getattr(error, "strerror", None) or "invalid argument: " + str(error)
    number = getattr(error, "errno", None)
    if number == errno.ENOEXEC:
        os.write(2, ("exec %s: exec format error\\n" % command[0]).encode())
        os._exit(255)
    if number in (errno.ENOENT, errno.ENOTDIR):
        text = "stat %s: %s" % (command[0], text.lower()) if "/" in command[0] else "executable file not found in $PATH"
    os.write(report, ('error StartError exec: "%s": %s' % (command[0], text[:1].lower() + text[1:])).encode())
os._exit(1)
'''


class Refused(Exception):
    """What kubectl says on stderr before it exits with 1."""


# --- What objects may consist of: the fields of each, by type.


class Map:
    def __init__(self, of):
        self.of = of


QUANTITY, BASE64, NOT_HERE = "quantity", "base64", "a field that Kubernetes has and the stand-in has not"


def _not_here(*names):
    return dict.fromkeys(names, NOT_HERE)


def _key_of(**more):
    return {"name": str, "key": str, "optional": bool, **more}


LABELS = Map(str)
META = {"name": str, "namespace": str, "labels": LABELS, "annotations": LABELS, "creationTimestamp": str,
        "ownerReferences": [{"apiVersion": str, "kind": str, "name": str, "uid": str, "controller": bool,
                             "blockOwnerDeletion": bool}],
        **_not_here("generateName", "finalizers", "uid", "resourceVersion", "generation", "managedFields", "selfLink")}
TOP = {"apiVersion": str, "kind": str, "metadata": META}
CONTAINER_FIELDS = {
    "name": str, "image": str, "imagePullPolicy": str, "command": [str], "args": [str], "workingDir": str,
    "env": [{"name": str, "value": str,
             "valueFrom": {"fieldRef": {"apiVersion": str, "fieldPath": str}, "secretKeyRef": _key_of(),
                           "configMapKeyRef": _key_of(), **_not_here("resourceFieldRef", "fileKeyRef")}}],
    "envFrom": [{"prefix": str, "secretRef": {"name": str, "optional": bool}, "configMapRef": {"name": str, "optional": bool}}],
    "resources": {"limits": Map(QUANTITY), "requests": Map(QUANTITY), "claims": NOT_HERE},
    "ports": [{"name": str, "containerPort": int, "hostPort": int, "hostIP": str, "protocol": str}],
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool,
                      **_not_here("subPath", "subPathExpr", "mountPropagation", "recursiveReadOnly")}],
    "terminationMessagePolicy": str,
    **_not_here("terminationMessagePath", "stdin", "stdinOnce", "tty", "livenessProbe", "readinessProbe", "startupProbe",
                "lifecycle", "securityContext", "resizePolicy", "restartPolicy", "volumeDevices")}
ITEMS = [{"key": str, "path": str, "mode": int}]
POD_FIELDS = {
    "containers": [CONTAINER_FIELDS], "restartPolicy": str, "hostname": str, "subdomain": str,
    "terminationGracePeriodSeconds": int, "hostNetwork": bool, "dnsPolicy": str, "nodeSelector": LABELS,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "serviceAccountName": str, "automountServiceAccountToken": bool, "enableServiceLinks": bool,
    "imagePullSecrets": [{"name": str}], "priorityClassName": str, "schedulerName": str,
    "volumes": [{"name": str, "emptyDir": {"medium": str, "sizeLimit": QUANTITY},
                 "secret": {"secretName": str, "items": ITEMS, "defaultMode": int, "optional": bool},
                 "configMap": {"name": str, "items": ITEMS, "defaultMode": int, "optional": bool},
                 **_not_here("hostPath", "persistentVolumeClaim", "projected", "downwardAPI", "nfs", "csi", "ephemeral",
                             "image", "iscsi")}],
    **_not_here("initContainers", "ephemeralContainers", "affinity", "topologySpreadConstraints", "hostPID", "hostIPC",
                "hostUsers", "shareProcessNamespace", "hostAliases", "dnsConfig", "runtimeClassName", "securityContext",
                "activeDeadlineSeconds", "nodeName", "priority", "preemptionPolicy", "readinessGates", "setHostnameAsFQDN",
                "overhead", "os", "schedulingGates", "resourceClaims", "resources", "serviceAccount")}
JOB_FIELDS = {
    "parallelism": int, "completions": int, "completionMode": str, "backoffLimit": int, "backoffLimitPerIndex": int,
    "maxFailedIndexes": int, "activeDeadlineSeconds": int, "ttlSecondsAfterFinished": int, "podReplacementPolicy": str,
    "suspend": bool, "template": {"metadata": META, "spec": POD_FIELDS},
    "podFailurePolicy": {"rules": [{"action": str,
                                    "onExitCodes": {"containerName": str, "operator": str, "values": [int]},
                                    "onPodConditions": [{"type": str, "status": str}]}]},
    **_not_here("selector", "manualSelector", "successPolicy", "managedBy")}
SERVICE_FIELDS = {"clusterIP": str, "selector": LABELS, "publishNotReadyAddresses": bool, "type": str,
                  "ports": [{"name": str, "port": int, "targetPort": int, "protocol": str, "appProtocol": str}],
                  **_not_here("clusterIPs", "externalIPs", "externalName", "ipFamilies", "ipFamilyPolicy",
                              "sessionAffinity", "loadBalancerIP", "internalTrafficPolicy", "externalTrafficPolicy")}
DATA = {**TOP, "data": LABELS, "immutable": bool}
# Kind: the version, the name in what kubectl prints, the name in errors, other names, and the fields.
KINDS = {
    "Pod": ("v1", "pod", "pods", ("po",), None),
    "Job": ("batch/v1", "job.batch", "jobs.batch", ("job", "jobs"), {**TOP, "spec": JOB_FIELDS, "status": {}}),
    "Service": ("v1", "service", "services", ("svc",), {**TOP, "spec": SERVICE_FIELDS, "status": {}}),
    "Secret": ("v1", "secret", "secrets", (), {**DATA, "data": Map(BASE64), "stringData": LABELS, "type": str}),
    "ConfigMap": ("v1", "configmap", "configmaps", ("cm",), {**DATA, "binaryData": Map(BASE64)}),
}
NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?", re.ASCII)


def _quantity(text):
    match = NUMBER.fullmatch(text)
    if not match:
        return None
    number, binary, decimal, exponent = match.groups()
    value = fractions.Fraction(number)
    if binary:
        return None if binary == "KI" else value * 1024 ** ("KMGTPE".index(binary[0]) + 1)
    power = {"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}.get(decimal, 0) * 3
    return value * fractions.Fraction(10) ** (int(exponent) if exponent else power)


def _decode(value, fields, path, kind, unknown):
    """The value as the API server reads it, strictly: nulls are none, and every field is known and of its type."""
    found = next(name for types, name in [((bool,), "bool"), ((int, float), "number"), ((str,), "string"), ((list,), "array"),
                                          ((dict,), "object")] if isinstance(value, types))

    def expect(wanted, go):
        if found not in wanted:
            raise ValueError(f"json: cannot unmarshal {found} into Go struct field {kind}.{path} of type {go}")

    if fields == NOT_HERE:
        raise ValueError(f'the stand-in does not have the field "{path}"')
    if fields is str:
        expect(("string",), "string")
    elif fields is bool:
        expect(("bool",), "bool")
    elif fields is int:
        expect(("number",), "int32")
        if isinstance(value, float) or not -2**31 <= value < 2**31:
            raise ValueError(f"json: cannot unmarshal number {value} into Go struct field {kind}.{path} of type int32")
    elif fields == QUANTITY:
        expect(("number", "string"), "resource.Quantity")
        value = str(value)
        if _quantity(value) is None:
            raise ValueError("quantities must match the regular expression "
                             "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    elif fields == BASE64:
        expect(("string",), "[]uint8")
        try:
            base64.b64decode(re.sub("[\r\n]", "", value).encode(), validate=True)
        except ValueError:
            raise ValueError(f"illegal base64 data at input byte {len(re.match('[A-Za-z0-9+/]*', value)[0])}") from None
    elif isinstance(fields, Map):
        expect(("object",), "map[string]string")
        value = {key: "" if one is None else _decode(one, fields.of, f"{path}.{key}", kind, unknown)
                 for key, one in value.items()}
    elif isinstance(fields, list):
        expect(("array",), "slice")
        value = [_decode({} if one is None else one, fields[0], f"{path}[{i}]", kind, unknown) for i, one in enumerate(value)]
    else:
        expect(("object",), "struct")
        lead = f"{path}." if path else ""
        unknown += [f'unknown field "{lead}{name}"' for name in value if name not in fields]
        value = {name: _decode(one, fields[name], lead + name, kind, unknown)
                 for name, one in value.items() if name in fields and one is not None}
    return value


LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
DATA_KEY = re.compile(r"(?!\.{1,2}\Z)(?!\.\.)[-._a-zA-Z0-9]{1,253}")
ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
FIELD = re.compile(r"metadata\.(name|namespace|uid)|metadata\.(labels|annotations)\['([^']*)'\]|"
                   r"status\.(podIPs?|hostIPs?)|spec\.(nodeName|serviceAccountName)")


def _label_key(key):
    lead, slash, name = key.rpartition("/")
    return bool(name and LABEL_VALUE.fullmatch(name) and (not slash or SUBDOMAIN.fullmatch(lead)))


class Validation:
    """What the API server finds wrong with a decoded object, whose defaults it fills in."""

    def __init__(self, kind, thing):
        self.errors = []
        self.meta(thing["metadata"], "metadata")
        name = thing["metadata"].get("name", "")
        pattern, what = (SERVICE_NAME, "a DNS-1035 label") if kind == "Service" else (
            SUBDOMAIN, "a lowercase RFC 1123 subdomain")
        if not name:
            self.bad("metadata.name", "Required value: name or generateName is required")
        else:
            self.matches(pattern, name, "metadata.name", what)
        if kind in ("Job", "Service") and "spec" not in thing:
            thing["spec"] = {}
        {"Job": self.job, "Service": self.service}.get(kind, self.data)(thing)

    def bad(self, path, text):
        self.errors.append(f"{path}: {text}")

    def check(self, good, path, value, text):
        if not good:
            self.bad(path, f"Invalid value: {json.dumps(value)}: {text}")

    def matches(self, pattern, value, path, what):
        self.check(pattern.fullmatch(value), path, value, f"{what} must match '{pattern.pattern}'")

    def one_of(self, values, value, path):
        if value not in values:
            self.bad(path, f"Unsupported value: {json.dumps(value)}: supported values: "
                           + ", ".join(f'"{one}"' for one in values))

    def meta(self, meta, path):
        for key, value in meta.get("labels", {}).items():
            self.check(_label_key(key), f"{path}.labels", key,
                       "name part must consist of alphanumeric characters, '-', '_' or '.'")
            self.check(LABEL_VALUE.fullmatch(value), f"{path}.labels", value,
                       "must be empty or consist of at most 63 alphanumeric characters, '-', '_' or '.'")
        annotations = meta.get("annotations", {})
        for key in annotations:
            self.check(_label_key(key.lower()), f"{path}.annotations", key,
                       "name part must consist of alphanumeric characters, '-', '_' or '.'")
        if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > 256 * 1024:
            self.bad(f"{path}.annotations", "Too long: may not be more than 262144 bytes")

    def data(self, thing):
        kind = thing["kind"]
        if kind == "Secret":
            texts = thing.pop("stringData", {})
            thing["data"] = {**thing.get("data", {}), **{key: base64.b64encode(value.encode()).decode()
                                                         for key, value in texts.items()}}
            self.one_of(["Opaque"], thing.setdefault("type", "Opaque"), "type")
        for key in [*thing.get("data", {}), *thing.get("binaryData", {})]:
            self.matches(DATA_KEY, key, f"data[{key}]", "a valid config key")
        if sum(map(len, contents(thing).values())) > 1 << 20:
            self.bad("data" if kind == "Secret" else "[]", "Too long: may not be more than 1048576 bytes")

    def service(self, thing):
        spec = thing["spec"]
        self.one_of(["ClusterIP"], spec.setdefault("type", "ClusterIP"), "spec.type")
        self.one_of(["None"], spec.get("clusterIP", ""), "spec.clusterIP")  # the stand-in has headless services only
        names = [port.get("name", "") for port in spec.get("ports", [])]
        for i, port in enumerate(spec.get("ports", [])):
            self.check(0 < port.get("port", 0) < 65536, f"spec.ports[{i}].port", port.get("port", 0),
                       "must be between 1 and 65535")
            if len(names) > 1 and not names[i]:
                self.bad(f"spec.ports[{i}].name", "Required value")
            if names[i]:
                self.matches(LABEL, names[i], f"spec.ports[{i}].name", "a DNS-1123 label")
                self.check(names.count(names[i]) == 1, f"spec.ports[{i}].name", names[i], "Duplicate value")
        self.meta({"labels": spec.get("selector", {})}, "spec.selector")

    def job(self, thing):
        spec, name = thing["spec"], thing["metadata"].get("name", "")
        for field in ("parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes",
                      "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
            self.check(spec.get(field, 0) >= 0, f"spec.{field}", spec.get(field), "must be greater than or equal to 0")
        if spec.get("suspend"):
            self.bad("spec.suspend", "the stand-in does not suspend jobs")
        if "parallelism" not in spec and "completions" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        mode = spec.setdefault("completionMode", "NonIndexed")
        self.one_of(["NonIndexed", "Indexed"], mode, "spec.completionMode")
        per_index = "backoffLimitPerIndex" in spec
        spec.setdefault("backoffLimit", 2**31 - 1 if per_index else 6)
        if mode == "Indexed":
            if "completions" not in spec:
                self.bad("spec.completions", "Required value: when completion mode is Indexed")
            elif spec["completions"] > 0:
                last = f"{name}-{spec['completions'] - 1}"
                self.check(LABEL.fullmatch(last), "metadata.name", name,
                           f'will not able to create pod with invalid DNS label "{last}"')
            if spec["parallelism"] > 100000:
                self.check(False, "spec.parallelism", spec["parallelism"], "must be less than or equal to 100000")
            if "maxFailedIndexes" in spec and not per_index:
                self.bad("spec.backoffLimitPerIndex", "Required value: when maxFailedIndexes is specified")
            self.check(spec.get("maxFailedIndexes", 0) <= spec.get("completions", 0), "spec.maxFailedIndexes",
                       spec.get("maxFailedIndexes"), "must be less than or equal to completions")
        else:
            for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
                self.check(field not in spec, f"spec.{field}", spec.get(field), "requires indexed completion mode")
        template = spec.setdefault("template", {})
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        for key in labels:
            if key in ("controller-uid", "job-name", BATCH + "controller-uid", BATCH + "job-name"):
                self.check(False, f"spec.template.metadata.labels[{key}]", labels[key], "is the Job controller's")
        self.check(LABEL_VALUE.fullmatch(name), "spec.template.labels", name, "must be no more than 63 characters")
        self.meta(template["metadata"], "spec.template.metadata")
        pod = template.setdefault("spec", {})
        self.pod(pod, "spec.template.spec")
        policy = pod.get("restartPolicy", "Always")
        if policy == "Always":
            self.bad("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"')
        if policy == "OnFailure" and (per_index or "podFailurePolicy" in spec):
            field = "podFailurePolicy" if "podFailurePolicy" in spec else "backoffLimitPerIndex"
            self.check(False, "spec.template.spec.restartPolicy", policy,
                       f'only "Never" is supported when {field} is specified')
        if "podFailurePolicy" in spec:
            self.failure_policy(spec, [one.get("name") for one in pod.get("containers", [])], per_index)
        default = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        self.one_of([default] if default == "Failed" else ["Failed", "TerminatingOrFailed"],
                    spec.setdefault("podReplacementPolicy", default), "spec.podReplacementPolicy")

    def failure_policy(self, spec, containers, per_index):
        rules = spec["podFailurePolicy"].setdefault("rules", [])
        self.check(len(rules) <= 20, "spec.podFailurePolicy.rules", len(rules), "must have at most 20 items")
        for i, rule in enumerate(rules):
            path = f"spec.podFailurePolicy.rules[{i}]"
            self.one_of(["Count", "FailIndex", "FailJob", "Ignore"], rule.get("action", ""), f"{path}.action")
            if rule.get("action") == "FailIndex":
                self.check(per_index, f"{path}.action", "FailIndex", "requires the backoffLimitPerIndex to be set")
            codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
            self.check(bool(codes is not None) != bool(conditions), path, rule,
                       "exactly one of onExitCodes and onPodConditions is required")
            if codes is not None:
                values, path = codes.get("values", []), f"{path}.onExitCodes"
                self.one_of(["In", "NotIn"], codes.get("operator", ""), f"{path}.operator")
                self.check(1 <= len(values) <= 255, f"{path}.values", len(values), "must have from 1 to 255 items")
                self.check(values == sorted(values), f"{path}.values", values, "must be ordered")
                self.check(len(values) == len(set(values)), f"{path}.values", values, "must be unique")
                self.check(0 not in values or codes.get("operator") != "In", f"{path}.values", 0,
                           "must not be 0 for the In operator")
                if "containerName" in codes:
                    self.check(codes["containerName"] in containers, f"{path}.containerName", codes["containerName"],
                               "must be one of the container or initContainer names in the pod template")
            for j, condition in enumerate(conditions or []):
                self.check(_label_key(condition.get("type", "")), f"{path}.onPodConditions[{j}].type",
                           condition.get("type", ""),
                           "name part must be non-empty")
                self.one_of(["False", "True", "Unknown"], condition.setdefault("status", "True"),
                            f"{path}.onPodConditions[{j}].status")

    def names(self, things, path, what):
        if not things and what == "container":
            self.bad(path, "Required value")
        seen = [thing.get("name", "") for thing in things]
        for i, name in enumerate(seen):
            if not name:
                self.bad(f"{path}[{i}].name", "Required value")
            else:
                self.matches(LABEL, name, f"{path}[{i}].name", "a lowercase RFC 1123 label")
                if name in seen[:i]:
                    self.bad(f"{path}[{i}].name", f'Duplicate value: "{name}"')
        return seen

    def pod(self, spec, path):
        self.one_of(["Always", "Never", "OnFailure"], spec.get("restartPolicy", "Always"), f"{path}.restartPolicy")
        for field in ("hostname", "subdomain"):
            if spec.get(field):
                self.matches(LABEL, spec[field], f"{path}.{field}", "a lowercase RFC 1123 label")
        grace = spec.setdefault("terminationGracePeriodSeconds", 30)
        self.check(grace >= 0, f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
        volumes = self.names(spec.get("volumes", []), f"{path}.volumes", "volume")
        for i, volume in enumerate(spec.get("volumes", [])):
            sources = [name for name in ("emptyDir", "secret", "configMap") if name in volume]
            where = f"{path}.volumes[{i}]"
            if len(sources) != 1:
                self.bad(where, "Forbidden: may not specify more than 1 volume type" if sources else
                         "Required value: must specify a volume type")
            elif sources != ["emptyDir"]:
                source, where = volume[sources[0]], f"{where}.{sources[0]}"
                name = "secretName" if "secret" in volume else "name"
                if not source.get(name):
                    self.bad(f"{where}.{name}", "Required value")
                modes = [source.setdefault("defaultMode", 0o644), *(item.get("mode", 0) for item in source.get("items", []))]
                self.check(all(0 <= mode <= 0o777 for mode in modes), f"{where}.defaultMode", modes,
                           "must be a number between 0 and 0777 (octal), both inclusive")
                for item in source.get("items", []):
                    inside = item.get("path", "")
                    self.check(item.get("key") and inside and inside[0] != "/" and ".." not in inside.split("/"),
                               f"{where}.items", item, "must have a key and a relative path without '..'")
        self.names(spec.get("containers", []), f"{path}.containers", "container")
        for i, container in enumerate(spec.get("containers", [])):
            self.container(container, f"{path}.containers[{i}]", volumes)

    def container(self, container, path, volumes):
        if not container.get("image"):
            self.bad(f"{path}.image", "Required value")
        self.one_of(["Always", "IfNotPresent", "Never"], container.get("imagePullPolicy", "Always"), f"{path}.imagePullPolicy")
        self.one_of(["File", "FallbackToLogsOnError"], container.setdefault("terminationMessagePolicy", "File"),
                    f"{path}.terminationMessagePolicy")
        seen = []
        for i, mount in enumerate(container.get("volumeMounts", [])):
            where = f"{path}.volumeMounts[{i}]"
            if mount.get("name") not in volumes:
                self.bad(f"{where}.name", f"Not found: {json.dumps(mount.get('name', ''))}")
            target = mount.get("mountPath", "")
            if not target:
                self.bad(f"{where}.mountPath", "Required value")
            self.check(target not in seen, f"{where}.mountPath", target, "must be unique")
            self.check(":" not in target, f"{where}.mountPath", target, "must not contain ':'")
            seen.append(target)
        for i, one in enumerate(container.get("env", [])):
            where, source = f"{path}.env[{i}]", one.get("valueFrom")
            self.matches(ENV_NAME, one.get("name", ""), f"{where}.name", "a valid environment variable name")
            if source is not None:
                self.check(not one.get("value"), f"{where}.valueFrom", "", "may not be specified when `value` is not empty")
                self.check(len(source) == 1, f"{where}.valueFrom", "",
                           "must specify one of: `fieldRef`, `configMapKeyRef` or `secretKeyRef`")
                if "fieldRef" in source:
                    field = source["fieldRef"].get("fieldPath", "")
                    self.check(FIELD.fullmatch(field), f"{where}.valueFrom.fieldRef.fieldPath", field,
                               "error converting fieldPath: field label not supported")
                for name in ("secretKeyRef", "configMapKeyRef"):
                    if name in source and not (source[name].get("name") and source[name].get("key")):
                        self.bad(f"{where}.valueFrom.{name}", "Required value: name and key")
        for i, one in enumerate(container.get("envFrom", [])):
            self.check(len({"secretRef", "configMapRef"} & set(one)) == 1, f"{path}.envFrom[{i}]", "",
                       "must specify one of: `configMapRef` or `secretRef`")
        limits, requests = (container.get("resources", {}).get(name, {}) for name in ("limits", "requests"))
        for where, amounts in ((f"{path}.resources.limits", limits), (f"{path}.resources.requests", requests)):
            for name, amount in amounts.items():
                value = _quantity(amount)
                if not (name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-")
                        or "/" in name and _label_key(name)):
                    self.bad(f"{where}[{name}]", f'Invalid value: "{name}": must be a standard resource for containers')
                self.check(value >= 0, f"{where}[{name}]", amount, "must be greater than or equal to 0")
                if "/" in name:
                    self.check(value.denominator == 1, f"{where}[{name}]", amount, "must be an integer")
        for name, amount in requests.items():
            if "/" in name or name.startswith("hugepages-"):
                if name not in limits:
                    self.bad(f"{path}.resources.limits",
                             f"Required value: Limit must be set for non overcommitable resources ({name})")
                else:
                    self.check(_quantity(amount) == _quantity(limits[name]), f"{path}.resources.requests", amount,
                               f"must be equal to {name} limit of {limits[name]}")
            elif name in limits:
                self.check(_quantity(amount) <= _quantity(limits[name]), f"{path}.resources.requests", amount,
                           f"must be less than or equal to {name} limit of {limits[name]}")


def contents(thing):
    """What a Secret or ConfigMap contains, as bytes."""
    data = {key: base64.b64decode(value) if thing["kind"] == "Secret" else value.encode()
            for key, value in thing.get("data", {}).items()}
    return {**data, **{key: base64.b64decode(value) for key, value in thing.get("binaryData", {}).items()}}


def _documents(text, source):
    """The objects in what `kubectl create -f` reads: a stream of JSON if it begins with {, of YAML else."""
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
    """YAML as kubectl reads it: no dates and no numbers of base 60, but 1e3 is a number and y a boolean."""
    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # libyaml's rules are those of kubectl's reader
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


def expand(text, values):
    """$(NAME) and $$ as in a container's command and environment; what is not known stays as it is."""
    return re.sub(r"\$(?:\$|\(([^)]*)\))", lambda match: "$" if match[0] == "$$" else values.get(match[1], match[0]), text)


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


# --- The kubelet.


class Log:
    """What a container has written: pieces of lines, each with its time in nanoseconds."""

    def __init__(self):
        self.changed = threading.Condition()
        self.pieces = []
        self.ended = False
        self.rest = {}

    def add(self, stream, data):
        """Takes what was read from a pipe; nothing is its end."""
        now, pieces = time.time_ns(), []
        lines = (self.rest.pop(stream, b"") + data).split(b"\n")
        for i, line in enumerate(lines):
            last = i == len(lines) - 1
            while len(line) > LOG_PIECE:
                pieces.append((now, line[:LOG_PIECE]))
                line = line[LOG_PIECE:]
            if not last:
                pieces.append((now, line + b"\n"))
            elif data:
                self.rest[stream] = line
            elif line:
                pieces.append((now, line))
        self.pieces += pieces
        with self.changed:
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def tail(self):
        return b"".join(b"".join(data for _, data in self.pieces).splitlines(True)[-80:])[-2048:].decode("utf-8", "replace")


class Waiting(Exception):
    """Why a container cannot be started yet: reason and message."""


class Container:
    """One container of a pod, and the thread that starts it, reads what it writes and starts it again."""

    def __init__(self, pod, spec):
        self.pod, self.spec, self.name = pod, spec, spec["name"]
        self.log = None
        self.pidfd = None
        self.state = {"waiting": {"reason": "ContainerCreating"}}
        self.last_state = {}
        self.restarts = 0
        self.oom = False
        self.final = False

    def status(self):
        running = "running" in self.state
        return {"name": self.name, "image": self.spec["image"], "imageID": "", "state": self.state, "started": running,
                "lastState": self.last_state, "restartCount": self.restarts, "ready": running}

    def signal(self, number):
        if self.pidfd is not None:
            try:
                signal.pidfd_send_signal(self.pidfd, number)
            except ProcessLookupError:
                pass

    def live(self):
        pod, cluster = self.pod, self.pod.cluster
        pulls = 0
        while not pod.ending():
            try:
                if self.spec["image"] in cluster.images_missing:
                    pulls += 1
                    image = self.spec["image"]
                    if pulls % 2:
                        raise Waiting("ErrImagePull", f'failed to pull and unpack image "{image}": not found')
                    raise Waiting("ImagePullBackOff", f'Back-off pulling image "{image}"')
                with cluster.changed:
                    setting = self._setting()
                ended = self._run(setting)
            except Waiting as waiting:
                self._now({"waiting": {"reason": waiting.args[0], "message": waiting.args[1]}})
                cluster.sleep(0.2, pod.ending)
                continue
            cluster.sleep(cluster.end_delay_s, lambda: False)
            again = ended["exitCode"] != 0 and pod.object["spec"]["restartPolicy"] == "OnFailure" and not pod.ending()
            with cluster.changed:
                self.final = not again
                self._now({"terminated": ended})
            if not again:
                return
            with cluster.changed:
                self.last_state = self.state
                self._now({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}})
            cluster.sleep(cluster.backoff_s * 2 ** min(self.restarts, 5), pod.ending)
            self.restarts += 1
        with cluster.changed:
            self.final = True
            if "waiting" in self.state and pod.scheduled:
                self._now(self.last_state or {"terminated": {
                    "exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None,
                                          "finishedAt": None, "message": "The container could not be located when the pod "
                                                                         "was terminated"}})

    def _now(self, state):
        with self.pod.cluster.changed:
            self.state = state
            self.pod.update()

    def _data(self, kind, name, optional=False):
        thing = self.pod.cluster.find(kind, self.pod.namespace, name)
        if thing is None and not optional:
            raise Waiting("CreateContainerConfigError", f'{KINDS[kind][1]} "{name}" not found')
        return thing and contents(thing)

    def _environment(self):
        values = {}
        for source in self.spec.get("envFrom", []):
            kind, reference = ("Secret", source["secretRef"]) if "secretRef" in source else (
                "ConfigMap", source["configMapRef"])
            found = self._data(kind, reference.get("name", ""), reference.get("optional")) or {}
            values.update((source.get("prefix", "") + key, value.decode("utf-8", "surrogateescape"))
                          for key, value in found.items() if ENV_NAME.fullmatch(source.get("prefix", "") + key))
        service = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
                   "KUBERNETES_SERVICE_PORT_HTTPS": "443", "KUBERNETES_PORT": "tcp://10.96.0.1:443"}
        for one in self.spec.get("env", []):
            source, value = one.get("valueFrom", {}), expand(one.get("value", ""), {**service, **values})
            if "fieldRef" in source:
                value = self.pod.field(source["fieldRef"]["fieldPath"])
            for name, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
                if name in source:
                    found = self._data(kind, source[name]["name"], source[name].get("optional")) or {}
                    found = found.get(source[name]["key"])
                    if found is None and not source[name].get("optional"):
                        raise Waiting("CreateContainerConfigError", f"couldn't find key {source[name]['key']} in {kind} "
                                                                    f"{self.pod.namespace}/{source[name]['name']}")
                    value = None if found is None else found.decode("utf-8", "surrogateescape")
            if value is not None:
                values[one["name"]] = value
        return {**service, **values}

    def _setting(self):
        pod, cluster = self.pod, self.pod.cluster
        values = self._environment()
        if not self.spec.get("command"):
            raise Waiting("CreateContainerError", "failed to generate container spec: no command specified")
        command = [expand(word, values) for word in [*self.spec["command"], *self.spec.get("args", [])]]
        try:
            for text in [*command, *values, *values.values()]:
                text.encode()
        except UnicodeEncodeError:
            raise Waiting("CreateContainerError", "rpc error: code = Internal desc = grpc: error while marshaling: "
                                                  "string field contains invalid UTF-8") from None
        read_only = {volume["name"] for volume in pod.object["spec"].get("volumes", []) if "emptyDir" not in volume}
        mounts = [[str(pod.directory / "volumes" / one["name"]), os.path.join("/", one["mountPath"]),
                   one["name"] in read_only or one.get("readOnly", False)] for one in self.spec.get("volumeMounts", [])]
        directory = self.spec.get("workingDir") or str(cluster.work)
        for path in [target for _, target, _ in mounts] + [directory]:
            cluster.note_directory(path)
        values = {"PATH": cluster.image_path, "HOSTNAME": pod.hostname,
                  "HOME": "/root", **values}
        return {"command": command, "environment": values, "mounts": sorted(mounts, key=lambda one: len(one[1])),
                "directory": directory, "work": os.path.realpath(cluster.work), "hostname": pod.hostname,
                "hosts": str(pod.hosts), "nsswitch.conf": str(cluster.directory / "nsswitch.conf"), "stage": str(cluster.stage)}

    def _run(self, setting):
        """Until its end; returns what is known of that."""
        cluster = self.pod.cluster
        self.log, self.oom = Log(), False
        said, says = os.pipe()
        with open(said, "rb") as report:
            try:
                process = subprocess.Popen([sys.executable, "-IS", "-X", "utf8", cluster.directory / "container.py", str(says)],
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           pass_fds=[says], env={}, cwd="/", start_new_session=True)
            finally:
                os.close(says)
            with process:
                try:
                    process.stdin.write(json.dumps(setting).encode())
                    process.stdin.close()
                except BrokenPipeError:
                    pass
                said = report.read().decode("utf-8", "replace")
                error = said.partition("error ")[2].partition(" ")
                if not said:
                    raise Waiting("CreateContainerError", process.stderr.read().decode("utf-8", "replace"))
                started = _now()
                with cluster.changed:
                    try:
                        self.pidfd = os.pidfd_open(int(re.search(r"pid (\d+)", said)[1]))
                    except ProcessLookupError:
                        pass
                    if not error[0]:
                        self._now({"running": {"startedAt": started}})
                    if self.pod.ending():
                        self.signal(signal.SIGKILL if cluster.closing or self.pod.failed else signal.SIGTERM)
                pipes = [process.stdout, process.stderr]
                while pipes:
                    for pipe in select.select(pipes, [], [])[0]:
                        data = os.read(pipe.fileno(), 1 << 16)
                        self.log.add(pipe, data)
                        if not data:
                            pipes.remove(pipe)
                code = process.wait() if process.wait() >= 0 else 128 - process.returncode
        with cluster.changed:
            if self.pidfd is not None:
                os.close(self.pidfd)
                self.pidfd = None
        self.log.end()
        if error[0] == "CreateContainerError":
            raise Waiting(error[0], error[2])
        if error[0]:
            message = ("failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
                       f"failed: unable to start container process: error during container init: {error[2]}")
            return {"exitCode": 128, "reason": error[0], "message": message, "startedAt": "1970-01-01T00:00:00Z",
                    "finishedAt": _now()}
        ended = {"exitCode": code, "reason": "OOMKilled" if self.oom else "Error" if code else "Completed",
                 "startedAt": started, "finishedAt": _now()}
        if code and self.spec["terminationMessagePolicy"] == "FallbackToLogsOnError":
            ended["message"] = self.log.tail()
        return ended


class Pod:
    """A pod's life, in a thread; `object` is what the API server has of it."""

    def __init__(self, cluster, thing):
        self.cluster, self.object, self.namespace = cluster, thing, thing["metadata"]["namespace"]
        self.name, self.uid = thing["metadata"]["name"], thing["metadata"]["uid"]
        self.hostname = (thing["spec"].get("hostname") or self.name)[:63].rstrip("-.")
        self.directory = cluster.directory / "pods" / self.uid
        self.hosts = self.directory / "hosts"
        self.containers = [Container(self, spec) for spec in thing["spec"]["containers"]]
        self.scheduled = self.over = False
        self.address = self.failed = self.kill_at = None
        self.conditions = {}
        self.update()
        cluster.thread(self._live)

    def ending(self):
        return self.cluster.closing or self.failed is not None or self.kill_at is not None

    def field(self, path):
        _, part, key, address, spec = FIELD.fullmatch(path).groups()
        if part:
            return self.object["metadata"].get(part, {}).get(key, "")
        return ADDRESS if address else {"nodeName": "stand-in", "serviceAccountName": "default"}[spec] if spec else (
            self.object["metadata"][path.partition(".")[2]])

    def update(self):
        """Tells the API server."""
        spec, states = self.object["spec"], [container.state for container in self.containers]
        codes = [state["terminated"]["exitCode"] for state in states if "terminated" in state]
        if all(container.final for container in self.containers):
            phase = "Failed" if any(codes) or self.failed or len(codes) < len(states) else "Succeeded"
        else:
            begun = [container.state.get("waiting") is None or container.last_state for container in self.containers]
            phase = "Running" if all(begun) else "Pending"
        ready = phase == "Running" and all("running" in state for state in states)
        conditions = {"PodScheduled": {"status": "True"}} if self.scheduled else {
            "PodScheduled": {"status": "False", "reason": "Unschedulable",
                             "message": "0/3 nodes are available: 3 Insufficient cpu."}} if self.cluster.unschedulable else {}
        if self.scheduled:
            reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
            why = {} if ready else {"reason": reason}
            conditions.update({"Initialized": {"status": "True"}, "ContainersReady": {"status": str(ready), **why},
                               "Ready": {"status": str(ready), **why}})
        conditions.update(self.conditions)
        before = {(one["type"], one["status"]): one["lastTransitionTime"]
                  for one in self.object["status"].get("conditions", [])}
        status = {"phase": phase, "conditions": [
            {"type": kind, "lastProbeTime": None, "lastTransitionTime": before.get((kind, rest["status"]), _now()), **rest}
            for kind, rest in conditions.items()]}
        if self.scheduled:
            spec["nodeName"] = "stand-in"
            status.update(hostIP=ADDRESS, startTime=self.object["status"].get("startTime", _now()),
                          containerStatuses=[container.status() for container in self.containers])
        if self.address:
            status.update(podIP=self.address, podIPs=[{"ip": self.address}])
        if self.failed:
            status.update(reason=self.failed[0], message=self.failed[1])
        self.object["status"] = status
        self.cluster.touch()

    def fail(self, reason, message):
        self.failed = (reason, message)
        by = "TerminationByKubelet" if reason == "Evicted" else "DeletionByPodGC"
        self.conditions["DisruptionTarget"] = {"status": "True", "reason": by, "message": message}
        for container in self.containers:
            container.signal(signal.SIGKILL)
        self.update()

    def delete(self, grace, force):
        """SIGTERM, and SIGKILL when its time is over; a shorter time may be given later."""
        meta, first = self.object["metadata"], self.kill_at is None
        kill_at = time.monotonic() + grace
        if not first and kill_at >= self.kill_at and not force:
            return
        self.kill_at = kill_at
        meta.update(deletionTimestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + grace)),
                    deletionGracePeriodSeconds=grace)
        if self.over or force or not self.scheduled:
            self.cluster.forget_pod(self)
        if first and not self.over:
            self.cluster.thread(self._terminate)
        self.cluster.touch()

    def _terminate(self):
        cluster = self.cluster
        with cluster.changed:
            for container in self.containers:
                container.signal(signal.SIGTERM)
            while not self.over and not cluster.closing and (left := self.kill_at - time.monotonic()) > 0:
                cluster.changed.wait(left)
            for container in self.containers:
                container.signal(signal.SIGKILL)

    def _live(self):
        cluster = self.cluster
        try:
            while cluster.unschedulable and not self.ending():
                cluster.sleep(0.2, self.ending)
            with cluster.changed:
                if not self.ending():
                    self.scheduled = True
                    self.update()
            cluster.sleep(cluster.start_delay_s, self.ending)
            while not self.ending() and not self._make_volumes():
                cluster.sleep(0.2, self.ending)
            with cluster.changed:
                if not self.ending():
                    self.address = ADDRESS
                    cluster.write_hosts()
                    self.update()
            threads = [cluster.thread(container.live) for container in self.containers]
            for thread in threads:
                thread.join()
        finally:
            with cluster.changed:
                self.over = True
                self.update()
                if self.kill_at is not None:
                    cluster.forget_pod(self)

    def _make_volumes(self):
        """Whether all are there: a pod waits for its secrets, and says only ContainerCreating."""
        cluster = self.cluster
        with cluster.changed:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.hosts.touch()
            for volume in self.object["spec"].get("volumes", []):
                place = self.directory / "volumes" / volume["name"]
                place.mkdir(parents=True, exist_ok=True)
                place.chmod(0o777 if "emptyDir" in volume else 0o755)
                if "emptyDir" in volume:
                    continue
                kind, source = ("Secret", volume["secret"]) if "secret" in volume else ("ConfigMap", volume["configMap"])
                thing = cluster.find(kind, self.namespace, source.get("secretName") or source.get("name"))
                if thing is None and not source.get("optional"):
                    return False
                data = contents(thing) if thing else {}
                items = source.get("items") if "items" in source else [{"key": key, "path": key} for key in data]
                if not source.get("optional") and any(item["key"] not in data for item in items):
                    return False
                real = place / "..2000_01_01_00_00_00.0"
                for item in items:
                    if item["key"] in data:
                        path, first = real / item["path"], item["path"].split("/")[0]
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(data[item["key"]])
                        path.chmod(item.get("mode", source["defaultMode"]))
                        if not (place / first).is_symlink():
                            (place / first).symlink_to(f"..data/{first}")
                if not (place / "..data").is_symlink():
                    (place / "..data").symlink_to(real.name)
        return True


# --- The Job controller.


class Job:
    """What the controller knows of a Job besides its object."""

    def __init__(self, cluster, thing):
        self.cluster, self.object, self.spec = cluster, thing, thing["spec"]
        self.began = time.monotonic()
        self.counted, self.succeeded, self.failed_indexes = set(), set(), set()  # uids; indexes or uids; indexes
        self.failed = self.in_a_row = 0
        self.failures, self.ignored = {}, {}  # by index, when limited per index
        self.start_at = {}  # by index, or None
        self.verdict = None  # condition, reason, message
        self.ended = None
        thing["status"] = {"startTime": _now()}

    indexed = property(lambda self: self.spec["completionMode"] == "Indexed")

    def pods(self):
        uid = self.object["metadata"]["uid"]
        return [pod for pod in self.cluster.pods.values()
                if pod.object["metadata"]["ownerReferences"][0]["uid"] == uid
                and self.cluster.find("Pod", pod.namespace, pod.name) is pod.object]

    def index(self, pod):
        text = pod.object["metadata"].get("annotations", {}).get(BATCH + "job-completion-index")
        return None if text is None else int(text)

    def count(self, pod):
        """Counts what has come to its end, each pod once."""
        phase = pod.object["status"]["phase"]
        gone = phase not in TERMINAL and pod.kill_at is not None and self.spec["podReplacementPolicy"] != "Failed"
        if pod.uid in self.counted or not (phase in TERMINAL or gone):
            return
        self.counted.add(pod.uid)
        index = self.index(pod)
        if phase == "Succeeded":
            self.succeeded.add(index if self.indexed else pod.uid)
            self.in_a_row = 0
            return
        action, text = self._policy(pod) if phase == "Failed" else ("Count", "")
        per_index = "backoffLimitPerIndex" in self.spec
        key = index if per_index else None
        self.in_a_row += 1
        if action == "Ignore":
            self.ignored[index] = self.ignored.get(index, 0) + 1
        else:
            self.failed += 1
            before = self.failures.get(index, 0)
            if per_index and (action == "FailIndex" or before >= self.spec["backoffLimitPerIndex"]):
                self.failed_indexes.add(index)
            self.failures[index] = before + 1
        if action == "FailJob" and not self.verdict:
            self.verdict = ("Failed", "PodFailurePolicy", text)
        times = self.failures.get(index, 0) + self.ignored.get(index, 0) if per_index else self.in_a_row
        self.start_at[key] = time.monotonic() + self.cluster.backoff_s * min(2 ** (times - 1), 36)

    def _policy(self, pod):
        status = pod.object["status"]
        for i, rule in enumerate(self.spec.get("podFailurePolicy", {}).get("rules", [])):
            if "onExitCodes" in rule:
                codes = rule["onExitCodes"]
                for one in status.get("containerStatuses", []):
                    code = one["state"].get("terminated", {}).get("exitCode", 0)
                    if (code and codes.get("containerName", one["name"]) == one["name"]
                            and (code in codes["values"]) == (codes["operator"] == "In")):
                        return rule["action"], (f"Container {one['name']} for pod {pod.namespace}/{pod.name} failed with exit "
                                                f"code {code} matching {rule['action']} rule at index {i}")
            for wanted in rule.get("onPodConditions", []):
                if any(one["type"] == wanted["type"] and one["status"] == wanted["status"] for one in status["conditions"]):
                    return rule["action"], (f"Pod {pod.namespace}/{pod.name} has condition {wanted['type']} matching "
                                            f"{rule['action']} rule at index {i}")
        return "Count", ""

    def _judge(self, running):
        spec, done, completions = self.spec, len(self.succeeded), self.spec.get("completions")
        restarts = sum(container.restarts for pod in running for container in pod.containers)
        on_failure = spec["template"]["spec"]["restartPolicy"] == "OnFailure"
        if self.failed > spec["backoffLimit"] or on_failure and restarts >= max(spec["backoffLimit"], 1):
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if "activeDeadlineSeconds" in spec and time.monotonic() >= self.began + spec["activeDeadlineSeconds"]:
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        if len(self.failed_indexes) > spec.get("maxFailedIndexes", 2**31):
            return "Failed", "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        if self.failed_indexes and done + len(self.failed_indexes) >= completions:
            return "Failed", "FailedIndexes", "Job has failed indexes"
        if done >= completions if completions is not None else done and not running:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def sync(self):
        """Does what is to be done now; returns in how many seconds there may be more to do, None for never."""
        cluster, now, pods = self.cluster, time.monotonic(), self.pods()
        for pod in pods:
            self.count(pod)
        delays = []
        if self.ended is None:
            unfinished = [pod for pod in pods if pod.object["status"]["phase"] not in TERMINAL]
            active = [pod for pod in unfinished if pod.kill_at is None]
            self.verdict = self.verdict or self._judge(active)
            if self.verdict:
                self._condition("FailureTarget" if self.verdict[0] == "Failed" else "SuccessCriteriaMet")
                for pod in active:
                    cluster.delete_pod(pod)
                active = []
                unfinished = [pod for pod in self.pods() if pod.object["status"]["phase"] not in TERMINAL]
                if not unfinished:
                    self._condition(self.verdict[0])
                    self.ended = now
            else:
                delays += self._start_more(active, unfinished, now)
                if "activeDeadlineSeconds" in self.spec:
                    delays.append(self.began + self.spec["activeDeadlineSeconds"] - now)
            self._say(unfinished)
        if self.ended is not None and "ttlSecondsAfterFinished" in self.spec:
            delays.append(self.ended + self.spec["ttlSecondsAfterFinished"] - now)
            if delays[-1] <= 0:
                cluster.forget(self.object)
                return None
        return min(delays, default=None)

    def _condition(self, kind):
        conditions = self.object["status"].setdefault("conditions", [])
        if not any(one["type"] == kind for one in conditions):
            conditions.append({"type": kind, "status": "True", "reason": self.verdict[1], "message": self.verdict[2],
                               "lastProbeTime": _now(), "lastTransitionTime": _now()})
            if kind == "Complete":
                self.object["status"]["completionTime"] = _now()

    def _say(self, unfinished):
        """The status; what is 0 is left out, but for `ready` and `terminating`."""
        active = [pod for pod in self.pods() if pod.kill_at is None and pod.object["status"]["phase"] not in TERMINAL]
        numbers = {"active": len(active), "succeeded": len(self.succeeded), "failed": self.failed}
        if self.indexed:
            numbers["completedIndexes"] = _intervals(self.succeeded)
            if "backoffLimitPerIndex" in self.spec:
                numbers["failedIndexes"] = _intervals(self.failed_indexes)
        status = self.object["status"]
        for name, value in numbers.items():
            status.pop(name, None)
            if value:
                status[name] = value
        status["ready"] = sum(pod.object["status"]["phase"] == "Running" for pod in active)
        status["terminating"] = sum(pod.kill_at is not None for pod in unfinished)

    def _start_more(self, active, unfinished, now):
        spec, delays = self.spec, []
        present = unfinished if spec["podReplacementPolicy"] == "Failed" else active
        completions = spec.get("completions")
        if self.indexed:
            taken = {self.index(pod) for pod in present} | self.succeeded | self.failed_indexes
            free = [index for index in range(completions) if index not in taken]
        else:
            if completions is None:
                wanted = 0 if self.succeeded else spec["parallelism"]
            else:
                wanted = completions - len(self.succeeded)
            free = [None] * max(0, wanted - len(present))
        for index in free[:max(0, spec["parallelism"] - len(present))]:
            wait = self.start_at.get(index if "backoffLimitPerIndex" in spec else None, 0) - now
            if wait > 0:
                delays.append(wait)
            else:
                self._start(index)
        return delays

    def _start(self, index):
        meta, template = self.object["metadata"], copy.deepcopy(self.spec["template"])
        thing = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"], "status": {}}
        lead, base = meta["name"], "-" if index is None else f"-{index}-"
        if index is not None:
            text, key = str(index), BATCH + "job-completion-index"
            thing["metadata"].setdefault("annotations", {})[key] = thing["metadata"]["labels"][key] = text
            if "backoffLimitPerIndex" in self.spec:
                thing["metadata"]["annotations"][BATCH + "job-index-failure-count"] = str(self.failures.get(index, 0))
                if self.ignored.get(index):
                    thing["metadata"]["annotations"][BATCH + "job-index-ignored-failure-count"] = str(self.ignored[index])
            template["spec"]["hostname"] = f"{lead}-{index}"
            for container in template["spec"]["containers"]:
                env = container.setdefault("env", [])
                if all(one["name"] != "JOB_COMPLETION_INDEX" for one in env):
                    env.append({"name": "JOB_COMPLETION_INDEX",
                                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{key}']"}}})
        name = lead[:58 - len(base)] + base + "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
        thing["metadata"].update(name=name, namespace=meta["namespace"], ownerReferences=[
            {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True,
             "blockOwnerDeletion": True}])
        self.cluster.add(thing)


def _intervals(indexes):
    parts = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
                    for first, last in parts)


# --- The API server, and kubectl.

TEXT, FLAG = "text", "flag"
GLOBAL_FLAGS = {"--namespace": TEXT, "-n": "--namespace"}
FILE = {"--filename": TEXT, "-f": "--filename"}
SELECT = {"--selector": TEXT, "-l": "--selector", "--ignore-not-found": FLAG}
OUTPUT = {"--output": TEXT, "-o": "--output"}
FLAGS = {
    "create": {**FILE, **OUTPUT, "--dry-run": TEXT},
    "get": {**SELECT, **OUTPUT},
    "logs": {"--follow": FLAG, "-f": "--follow", "--timestamps": FLAG, "--since-time": TEXT, "--container": TEXT,
             "-c": "--container"},
    "delete": {**FILE, **SELECT, "--wait": FLAG, "--grace-period": TEXT, "--cascade": TEXT, "--force": FLAG, "--now": FLAG,
               "--timeout": TEXT},
    "version": {**OUTPUT, "--client": FLAG},
    "config": {},
}
NOT_HERE_FLAGS = set("--context --kubeconfig --cluster --user --server --token --as --request-timeout --all-namespaces -A "
                     "--watch "
                     "-w --field-selector --all --tail --since --previous -p --prefix --all-containers --limit-bytes "
                     "--max-log-requests --ignore-errors --pod-running-timeout --validate --save-config --edit --raw "
                     "--kustomize "
                     "-k --recursive -R --sort-by --template --show-labels -L --no-headers -v --v --insecure-skip-tls-verify "
                     "--chunk-size --output-watch-events --watch-only --interactive -i".split())


def _parse(words):
    """The verb, its other words, and its flags."""
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
            if name in NOT_HERE_FLAGS:
                raise Refused(f"error: the stand-in's kubectl has no {name} here")
            raise Refused((f"error: unknown flag: {name}" if long else f"error: unknown shorthand flag: '{word[1]}' in {word}")
                          + "\nSee 'kubectl --help' for usage.")
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
            if not left and full != "--dry-run":
                raise Refused(f"error: flag needs an argument: {name}")
            given[full] = "unchanged" if full == "--dry-run" else left.pop(0)
        else:
            given[full] = value
    if verb is None:
        raise Refused("error: a command is needed")
    return verb, rest, given


def _kind(word):
    for kind, (_, one, many, others, _) in KINDS.items():
        if word.lower() in (one, many, *others):
            return kind
    raise Refused(f'error: the server doesn\'t have a resource type "{word}" (or the stand-in has not)')


def _selector(text):
    """A function of labels."""
    checks = []
    for part in re.split(r",(?![^(]*\))", text):
        match = re.fullmatch(r"\s*(!?)\s*([^\s!=()]+)\s*(?:(==|=|!=)\s*([^\s!=()]*)|\s(in|notin)\s*\(([^()]*)\))?\s*", part)
        values = {match[4]} if match and match[3] else {one.strip() for one in (match and match[6] or "").split(",")}
        if (not match or not _label_key(match[2]) or match[1] and (match[3] or match[5])
                or not all(map(LABEL_VALUE.fullmatch, values))):
            raise Refused(f"error: unable to parse requirement: {part!r}")
        key, negative = match[2], bool(match[1]) or match[3] == "!=" or match[5] == "notin"
        any_value = not match[3] and not match[5]
        checks.append(lambda labels, key=key, negative=negative, values=values, any_value=any_value:
                      (key in labels and (any_value or labels[key] in values)) != negative)
    return lambda labels: all(check(labels) for check in checks)


class StandInKubernetes:
    """`directory` takes its own files; `work` is the working directory of every image. Between tests may be changed: `work`;
    `image_path`, the PATH of every image; `images_missing`, images that cannot be pulled; `unschedulable`, whether no node has room for a new pod;
    `start_delay_s`, how long a pod is in ContainerCreating; `end_delay_s`, how long it takes until `get` tells of a
    container's end; `backoff_s`, the first delay of a new try (a cluster's is 10 s); and `namespaces`, those there are."""

    def __init__(self, directory, work):
        self.directory, self.work = pathlib.Path(directory).resolve(), pathlib.Path(work)
        self.images_missing, self.unschedulable, self.namespaces = set(), False, {"default"}
        self.image_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.start_delay_s, self.end_delay_s, self.backoff_s = 0.05, 0.0, 0.3
        self.changed = threading.Condition(threading.RLock())
        self.store, self.pods, self.jobs = {}, {}, {}  # by namespace, kind and name; by uid
        self.closing = self.dirty = False
        self.streams, self.connections, self.threads, self.made = set(), set(), [], []
        self.version = 0
        self.stage = self.directory / "stage"
        (self.directory / "bin").mkdir(parents=True, exist_ok=True)
        self.stage.mkdir(exist_ok=True)
        self.kubectl = self.directory / "bin" / "kubectl"
        self.kubectl.write_text(CLIENT.format(python=sys.executable, variable=VARIABLE))
        self.kubectl.chmod(0o755)
        (self.directory / "container.py").write_text(CONTAINER)
        (self.directory / "nsswitch.conf").write_text("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
        self.listener = socket.socket(socket.AF_UNIX)
        place = os.open(self.directory, os.O_PATH)
        try:
            self.listener.bind(f"/proc/self/fd/{place}/socket")
        finally:
            os.close(place)
        self.listener.listen(128)
        self.thread(self._accept)
        self.thread(self._control)

    def environment(self):
        """What kubectl needs, on top of the usual environment."""
        return {"PATH": f"{self.directory / 'bin'}:{os.environ.get('PATH', os.defpath)}", VARIABLE: str(self.directory)}

    def run(self, *words, **settings):
        """kubectl: subprocess.run with the cluster's environment."""
        environment = {**os.environ, **self.environment(), **settings.pop("env", {})}
        return subprocess.run([self.kubectl, *map(str, words)], env=environment, check=False, **settings)

    def close(self):
        """Ends all, also what is running."""
        with self.changed:
            if self.closing:
                return
            self.closing = True
            for pod in self.pods.values():
                for container in pod.containers:
                    container.signal(signal.SIGKILL)
            connections = list(self.connections)
            self.changed.notify_all()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.break_logs()
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        while True:
            with self.changed:
                thread = self.threads.pop() if self.threads else None
            if not thread:
                break
            thread.join()
        self.listener.close()
        (self.directory / "socket").unlink(missing_ok=True)
        shutil.rmtree(self.directory / "pods", ignore_errors=True)
        for path in reversed(self.made):
            try:
                path.rmdir()
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def objects(self, kind=None):
        """What is stored, in all namespaces, as Kind/name."""
        with self.changed:
            return sorted(f"{one}/{name}" for _, one, name in self.store if kind in (None, one))

    def fail_pod(self, pod, reason="Evicted"):
        """As when its node is short of memory or lost: its containers are killed, it fails and stays."""
        with self.changed:
            short = "The node was low on resource: memory."
            self._pod(pod).fail(reason, short if reason == "Evicted" else "The node is not there.")

    def kill_container(self, pod, oom=True):
        with self.changed:
            container = self._pod(pod).containers[0]
            container.oom = oom
            container.signal(signal.SIGKILL)

    def break_logs(self):
        """Ends every `kubectl logs -f` with exit code 0, as a load balancer does that closes what was idle."""
        with self.changed:
            streams = list(self.streams)
        for log, over in streams:
            with log.changed:
                over.set()
                log.changed.notify_all()

    # What pods and jobs need.

    def thread(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        with self.changed:
            self.threads = [one for one in self.threads if one.is_alive()] + [thread]
            thread.start()
        return thread

    def touch(self):
        with self.changed:
            self.dirty = True
            self.changed.notify_all()

    def sleep(self, seconds, until):
        with self.changed:
            self.changed.wait_for(lambda: self.closing or until(), seconds)

    def find(self, kind, namespace, name):
        return self.store.get((namespace, kind, name))

    def add(self, thing):
        meta, kind = thing["metadata"], thing["kind"]
        self.version += 1
        meta.update(uid=str(uuid.uuid4()), creationTimestamp=_now(), resourceVersion=str(self.version))
        if kind == "Job":
            mine = {"controller-uid": meta["uid"], "job-name": meta["name"]}
            mine.update({BATCH + key: value for key, value in mine.items()})
            thing["spec"]["template"]["metadata"]["labels"].update(mine)
            meta.setdefault("labels", dict(thing["spec"]["template"]["metadata"]["labels"]))
            thing["spec"].update(selector={"matchLabels": {BATCH + "controller-uid": meta["uid"]}}, suspend=False)
            self.jobs[meta["uid"]] = Job(self, thing)
        self.store[meta["namespace"], kind, meta["name"]] = thing
        if kind == "Pod":
            self.pods[meta["uid"]] = Pod(self, thing)
        self.touch()

    def forget(self, thing):
        meta = thing["metadata"]
        self.store.pop((meta["namespace"], thing["kind"], meta["name"]), None)
        self.jobs.pop(meta["uid"], None)
        self.touch()

    def delete_pod(self, pod, grace=None, force=False):
        pod.delete(pod.object["spec"]["terminationGracePeriodSeconds"] if grace is None else grace, force)

    def forget_pod(self, pod):
        """It is no more; the Job controller counts it before."""
        if pod.object["status"]["phase"] not in TERMINAL:
            pod.object["status"]["phase"] = "Failed"
        job = self.jobs.get(pod.object["metadata"]["ownerReferences"][0]["uid"])
        if job:
            job.count(pod)
        self.forget(pod.object)
        if pod.over:
            self.pods.pop(pod.uid, None)
            shutil.rmtree(pod.directory, ignore_errors=True)

    def note_directory(self, path):
        """Remembers what a container's start will make in the working directory, to be removed at the end."""
        path, work, new = pathlib.Path(os.path.realpath(path)), pathlib.Path(os.path.realpath(self.work)), []
        while path.is_relative_to(work) and not path.exists():
            new.insert(0, path)
            path = path.parent
        self.made += [path for path in new if path not in self.made]

    def write_hosts(self):
        """Each pod's /etc/hosts: itself, and what the cluster's DNS would tell it. In place: it is mounted."""
        records = []  # namespace, name of the service, host name or None
        for (namespace, kind, name), service in self.store.items():
            selector = service.get("spec", {}).get("selector", {})
            if kind != "Service" or not selector:
                continue
            for pod in self.pods.values():
                status, labels = pod.object["status"], pod.object["metadata"].get("labels", {})
                ready = pod.kill_at is None and any(
                    one["type"] == "Ready" and one["status"] == "True" for one in status["conditions"])
                if (pod.namespace == namespace and selector.items() <= labels.items() and pod.address
                        and status["phase"] not in TERMINAL and (ready or service["spec"].get("publishNotReadyAddresses"))):
                    records.append((namespace, name, None))
                    if pod.object["spec"].get("subdomain") == name and pod.object["spec"].get("hostname"):
                        records.append((namespace, name, pod.hostname))
        for pod in self.pods.values():
            lines = [f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{ADDRESS} {pod.hostname}\n"]
            subdomain = pod.object["spec"].get("subdomain")
            if subdomain:
                lines.append(f"{ADDRESS} {pod.hostname}.{subdomain}.{pod.namespace}.svc.cluster.local\n")
            for namespace, service, host in dict.fromkeys(records):
                short = f"{host}.{service}" if host else service
                names = [f"{short}.{namespace}{end}" for end in (".svc.cluster.local", ".svc", "")]
                lines.append(f"{ADDRESS} {' '.join(names + [short] * (namespace == pod.namespace))}\n")
            data = "".join(lines).encode()
            if pod.hosts.exists() and pod.hosts.read_bytes() != data:
                with open(pod.hosts, "r+b", buffering=0) as file:
                    file.write(data)
                    file.truncate()

    def _pod(self, name):
        for pod in self.pods.values():
            if pod.name == name:
                return pod
        raise KeyError(f"no pod {name}")

    def _control(self):
        """The Job controller, the garbage collector and the DNS, whenever something has changed."""
        with self.changed:
            while not self.closing:
                self.dirty = False
                delays = [delay for job in list(self.jobs.values()) if (delay := job.sync()) is not None]
                uids = {thing["metadata"]["uid"] for thing in self.store.values()}
                for thing in list(self.store.values()):
                    owners = thing["metadata"].get("ownerReferences")
                    if owners and not any(owner.get("uid") in uids for owner in owners):
                        pod = self.pods.get(thing["metadata"]["uid"])
                        if not pod:
                            self.forget(thing)
                        elif pod.kill_at is None:
                            self.delete_pod(pod)
                self.write_hosts()
                self.changed.wait_for(lambda: self.dirty or self.closing, max(0, min(delays)) if delays else None)

    # kubectl.

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                if self.closing:
                    connection.close()
                    return
                self.connections.add(connection)
                self.thread(self._serve, connection)

    def _serve(self, connection):
        def send(kind, data):
            connection.sendall(struct.pack("!cI", kind, len(data)) + data)

        try:
            with connection, connection.makefile("rb") as stream:
                request = json.loads(stream.read(struct.unpack("!I", stream.read(4))[0]))
                call = Kubectl(self, request, connection, send)
                try:
                    code = call.run()
                except OSError:
                    raise
                except Exception:  # a test must see it
                    code = 1
                    call.err(f"error: the stand-in broke: {traceback.format_exc()}")
                connection.sendall(struct.pack("!cI", b"x", code))
                connection.shutdown(socket.SHUT_RDWR)
        except (OSError, struct.error):
            pass
        finally:
            with self.changed:
                self.connections.discard(connection)


class Kubectl:
    """One run of kubectl."""

    def __init__(self, cluster, request, connection, send):
        self.cluster, self.request, self.connection, self.send = cluster, request, connection, send
        self.failed = False

    def out(self, text):
        self.send(b"o", text if isinstance(text, bytes) else text.encode())

    def err(self, text):
        self.send(b"e", (text + "\n").encode("utf-8", "replace"))

    def run(self):
        try:
            verb, self.words, self.flags = _parse(self.request["words"])
            self.namespace = self.flags.get("--namespace") or "default"
            getattr(self, verb)()
        except Refused as refused:
            self.complain(refused)
        return int(self.failed)

    def complain(self, text):
        self.failed = True
        self.err(str(text))

    def version(self):
        version = {"major": "1", "minor": "32", "gitVersion": VERSION, "platform": "linux/amd64"}
        found = {"clientVersion": version, "kustomizeVersion": "v5.5.0"}
        if not self.flags.get("--client"):
            found["serverVersion"] = version
        if self.flags.get("--output") == "json":
            self.out(json.dumps(found, indent=2) + "\n")
        elif "--output" in self.flags:
            raise Refused("error: the stand-in has no such output format")
        else:
            self.out(f"Client Version: {VERSION}\nKustomize Version: v5.5.0\n")
            self.out("" if self.flags.get("--client") else f"Server Version: {VERSION}\n")

    def config(self):
        if self.words != ["current-context"]:
            raise Refused("error: of `config` the stand-in has `current-context` only")
        self.out("stand-in\n")

    def _files(self):
        """The objects of the file, with where they are from."""
        name = self.flags["--filename"]
        if name == "-":
            source, text = "STDIN", self.request["text"]
        else:
            source = name
            try:
                text = pathlib.Path(self.request["cwd"], name).read_bytes().decode("utf-8", "surrogateescape")
            except FileNotFoundError:
                raise Refused(f'error: the path "{name}" does not exist') from None
            except OSError as error:
                raise Refused(f"error: the stand-in reads one file only: {error}") from None
        for thing in _documents(text, source):
            for key, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
                if not isinstance(thing, dict) or not isinstance(thing.get(key), str):
                    raise Refused(f"error: unable to decode \"{source}\": Object '{name}' is missing in "
                                  f"'{json.dumps(thing)[:200]}'")
            for one in thing.get("items") or [] if thing["kind"] == "List" else [thing]:
                yield source, one

    def create(self):
        if "--filename" not in self.flags or self.words:
            raise Refused("error: must specify one of -f and -k" if not self.words else
                          f"error: the stand-in creates with -f only, not: {' '.join(self.words)}")
        dry, output = self.flags.get("--dry-run", "none"), self.flags.get("--output")
        if dry not in ("none", "client", "server"):
            raise Refused(f'error: Invalid dry-run value ({dry}). Must be "none", "server", or "client".')
        if output not in (None, "name", "json"):
            raise Refused("error: the stand-in has no such output format")
        count = 0
        for source, thing in self._files():
            count += 1
            try:
                thing = self._create(source, thing, dry)
            except Refused as refused:
                self.complain(refused)
                continue
            name = f"{KINDS[thing['kind']][1]}/{thing['metadata']['name']}"
            note = {"none": "", "client": " (dry run)", "server": " (server dry run)"}[dry]
            self.out({None: f"{name} created{note}", "name": name}.get(output) or json.dumps(thing, indent=4))
            self.out("\n")
        if not count:
            raise Refused("error: no objects passed to create")

    def _create(self, source, thing, dry):
        kind, version = thing["kind"], thing["apiVersion"]
        meta = thing.get("metadata") if isinstance(thing.get("metadata"), dict) else {}
        if kind not in KINDS or KINDS[kind][0] != version:
            raise Refused(f'error: resource mapping not found for name: "{meta.get("name", "")}" '
                          f'namespace: "" from "{source}": '
                          f'no matches for kind "{kind}" in version "{version}" (or the stand-in has not)')
        if kind == "Pod":
            raise Refused("error: the stand-in does not create Pods that are no Job's")
        wanted = meta.get("namespace")
        if wanted and "--namespace" in self.flags and wanted != self.namespace:
            raise Refused(f'error: the namespace from the provided object "{wanted}" does not match the namespace '
                          f'"{self.namespace}". You must pass \'--namespace={wanted}\' to perform this operation.')
        unknown, many, lead = [], KINDS[kind][2], f'error when creating "{source}": '
        cannot = (f'Error from server (BadRequest): {lead}{kind} in version "{version.rpartition("/")[2]}" cannot be handled '
                  f"as a {kind}: ")
        try:
            thing = _decode(thing, KINDS[kind][4], "", kind, unknown)
        except ValueError as error:
            raise Refused(cannot + str(error)) from None
        if unknown:
            raise Refused(cannot + "strict decoding error: " + ", ".join(unknown))
        namespace = thing.setdefault("metadata", {}).setdefault("namespace", wanted or self.namespace)
        if dry == "client":
            thing["metadata"].setdefault("name", "")
            return thing
        if namespace not in self.cluster.namespaces:
            raise Refused(f'Error from server (NotFound): {lead}namespaces "{namespace}" not found')
        name = thing["metadata"].get("name", "")
        errors = Validation(kind, thing).errors
        if errors:
            text = errors[0] if len(errors) == 1 else "".join(f"\n* {one}" for one in errors)
            raise Refused(f'The {kind} "{name}" is invalid: {text}')
        if len(json.dumps(thing)) > 3 << 19:
            raise Refused(f"Error from server: {lead}etcdserver: request is too large")
        with self.cluster.changed:
            if self.cluster.find(kind, namespace, name):
                raise Refused(f'Error from server (AlreadyExists): {lead}{many} "{name}" already exists')
            if dry == "none":
                self.cluster.add(thing)
            return copy.deepcopy(thing)

    def _selected(self, what):
        """The objects that words, selector or file name; complains of what is not there. And whether it is one by name."""
        cluster, words, selector = self.cluster, list(self.words), self.flags.get("--selector")
        wanted, missing = [], []
        if "--filename" in self.flags:
            if words or selector is not None:
                raise Refused("error: when paths, URLs, or stdin is provided as input, you may not specify resource arguments "
                              "as well")
            wanted = [(_kind(thing["kind"].lower()), (thing.get("metadata") or {}).get("namespace") or self.namespace,
                       (thing.get("metadata") or {}).get("name")) for _, thing in self._files()]
        elif not words:
            raise Refused("error: You must specify the type of resource to get." if what == "get" else
                          "error: You must provide one or more resources by argument or filename.")
        elif "/" in words[0]:
            if any(word.count("/") != 1 for word in words) or selector is not None:
                raise Refused("error: there is no need to specify a resource type as a separate argument when passing "
                              "arguments in resource/name form")
            wanted = [(_kind(word.split("/")[0]), self.namespace, word.split("/")[1]) for word in words]
        else:
            kinds, names = [_kind(word) for word in words[0].split(",")], words[1:]
            if names and selector is not None:
                raise Refused("error: name cannot be provided when a selector is specified")
            if not names and selector is None and what == "delete":
                raise Refused("error: resource(s) were provided, but no name was specified")
            wanted = [(kind, self.namespace, name) for kind in kinds for name in names]
            if not names:
                fits = _selector(selector) if selector else lambda labels: True
                with cluster.changed:
                    return [thing for kind in dict.fromkeys(kinds)
                            for (namespace, one, _), thing in sorted(cluster.store.items(), key=lambda item: item[0])
                            if one == kind and namespace == self.namespace and fits(thing["metadata"].get("labels", {}))], False
        found = []
        with cluster.changed:
            for kind, namespace, name in wanted:
                thing = cluster.find(kind, namespace, name)
                if thing:
                    found.append(thing)
                elif not self.flags.get("--ignore-not-found"):
                    missing.append(f'Error from server (NotFound): {KINDS[kind][2]} "{name}" not found')
        for text in missing:
            self.complain(text)
        return found, len(wanted) == 1

    def get(self):
        output = self.flags.get("--output")
        if output not in ("json", "name"):
            raise Refused("error: the stand-in's `get` needs -o json or -o name")
        with self.cluster.changed:
            found, single = self._selected("get")
            found = copy.deepcopy(found)
        if output == "name":
            self.out("".join(f"{KINDS[thing['kind']][1]}/{thing['metadata']['name']}\n" for thing in found))
        elif found or not single:
            self.out(json.dumps(found[0] if single else {"apiVersion": "v1", "items": found, "kind": "List",
                                                         "metadata": {"resourceVersion": ""}}, indent=4) + "\n")

    def delete(self):
        cluster, flags = self.cluster, self.flags
        if flags.get("--cascade", "background") != "background":
            raise Refused("error: the stand-in deletes with --cascade=background only")
        try:
            grace = 1 if flags.get("--now") else int(flags.get("--grace-period", -1))
            seconds = re.fullmatch(r"(\d+)(s|m|h|)", flags.get("--timeout", "0"))
            limit = int(seconds[1]) * {"s": 1, "m": 60, "h": 3600, "": 1}[seconds[2]]
        except (ValueError, TypeError):
            raise Refused("error: invalid argument for --grace-period or --timeout") from None
        if flags.get("--force"):
            grace = 0
            self.err("Warning: Immediate deletion does not wait for confirmation that the running resource has been "
                     "terminated. The resource may continue to run on the cluster indefinitely.")
        elif grace == 0:
            grace = 1  # as kubectl does without --force
        with cluster.changed:
            found, _ = self._selected("delete")
            for thing in found:
                pod = cluster.pods.get(thing["metadata"]["uid"])
                if pod:
                    cluster.delete_pod(pod, None if grace < 0 else grace, flags.get("--force", False))
                else:
                    cluster.forget(thing)
        for thing in found:
            self.out(f'{KINDS[thing["kind"]][1]} "{thing["metadata"]["name"]}" deleted\n')
        if not found and "--selector" in flags:
            self.err("No resources found")
        if flags.get("--wait", True) and found:
            over = threading.Event()
            self._watch(cluster.changed, over)
            uids = {thing["metadata"]["uid"] for thing in found}
            with cluster.changed:
                cluster.changed.wait_for(lambda: over.is_set() or cluster.closing or not any(
                    thing["metadata"]["uid"] in uids for thing in cluster.store.values()), limit or None)
                left = [thing for thing in cluster.store.values() if thing["metadata"]["uid"] in uids]
            for thing in left:
                self.complain(f"error: timed out waiting for the condition on {KINDS[thing['kind']][2]}/"
                              f"{thing['metadata']['name']}")

    def logs(self):
        cluster, flags = self.cluster, self.flags
        if len(self.words) not in (1, 2) or "--container" in flags and len(self.words) == 2:
            raise Refused("error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required "
                          "argument for the logs command")
        name = self.words[0].removeprefix("pod/").removeprefix("pods/")
        if "/" in name:
            raise Refused("error: the stand-in has logs of pods only")
        since = 0
        if "--since-time" in flags:
            match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?(Z|[+-]\d\d:\d\d)", flags["--since-time"])
            if not match:
                raise Refused(f'error: parsing time "{flags["--since-time"]}" as "2006-01-02T15:04:05Z07:00": cannot parse it')
            zone = "+00:00" if match[2] == "Z" else match[2]
            since = int(datetime.datetime.fromisoformat(match[1] + zone).timestamp()) * 10**9
        with cluster.changed:
            thing = cluster.find("Pod", self.namespace, name)
            if not thing:
                raise Refused(f'Error from server (NotFound): pods "{name}" not found')
            pod = cluster.pods[thing["metadata"]["uid"]]
            wanted = flags.get("--container") or self.words[1:2] and self.words[1]
            names = [container.name for container in pod.containers]
            if wanted and wanted not in names:
                raise Refused(f"Error from server (BadRequest): container {wanted} is not valid for pod {name}")
            if not wanted and len(names) > 1:
                self.err(f'Defaulted container "{names[0]}" out of: {", ".join(names)}')
            if not pod.scheduled:
                return  # the API server knows no node to ask, and says nothing
            container = pod.containers[names.index(wanted or names[0])]
            waiting = container.state.get("waiting")
            if waiting and not container.last_state or container.log is None:
                reason = waiting["reason"] if waiting else "ContainerCreating"
                why = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}
                if not waiting:
                    raise Refused(f'Error from server (BadRequest): container "{container.name}" in pod "{name}" is terminated')
                raise Refused(f'Error from server (BadRequest): container "{container.name}" in pod "{name}" is waiting '
                              f"to start: {why.get(reason, reason)}")
            log, over = container.log, threading.Event()
            cluster.streams.add((log, over))
        try:
            self._stream(log, over, since)
        finally:
            with cluster.changed:
                cluster.streams.discard((log, over))

    def _stream(self, log, over, since):
        follow, stamps = self.flags.get("--follow"), self.flags.get("--timestamps")
        if follow:
            self._watch(log.changed, over)
        position, at_line_start, stop = 0, True, None if follow else len(log.pieces)
        while True:
            with log.changed:
                if follow:
                    log.changed.wait_for(lambda: over.is_set() or log.ended or len(log.pieces) > position)
                end, pieces = log.ended or not follow, log.pieces[position:stop or position + 4096]
            if over.is_set():
                return
            position += len(pieces)
            text = []
            for when, data in pieces:
                if when >= since:
                    if stamps and at_line_start:
                        text.append(time.strftime(f"%Y-%m-%dT%H:%M:%S.{when % 10**9:09}Z ",
                                                  time.gmtime(when // 10**9)).encode())
                    text.append(data)
                    at_line_start = data.endswith(b"\n")
            if text:
                self.out(b"".join(text))
            elif not pieces and end:
                return

    def _watch(self, condition, over):
        """Sets `over` when kubectl is no more."""
        def watch():
            try:
                self.connection.recv(1)
            except OSError:
                pass
            with condition:
                over.set()
                condition.notify_all()

        self.cluster.thread(watch)


def why_not():
    """The reason why there can be no stand-in here; None when there can."""
    if os.geteuid() != 0:
        return "containers are started as root"
    if yaml is None:
        return "no yaml for Python here (Debian: python3-yaml)"
    if not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "--uts", "--pid", "--fork", "true"],
                                                     capture_output=True, check=False).returncode != 0:
        return "no namespaces can be made here (unshare --mount --uts --pid --fork)"
    return None
