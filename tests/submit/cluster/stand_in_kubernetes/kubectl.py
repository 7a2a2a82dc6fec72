"""The server side of kubectl's commands."""

import copy
import datetime
import json
import pathlib
import re
import threading
import time

from .command_line import kind_of, parse, selector_of
from .documents import documents
from .objects import KINDS, Refused, decode
from .ownership import changes, conflict, fields_of
from .validation import Validation


def _name(thing):
    return f"{KINDS[thing['kind']][1]}/{thing['metadata']['name']}"


def _list(things):
    return {"apiVersion": "v1", "items": things, "kind": "List", "metadata": {"resourceVersion": ""}}


def _json(thing):
    return json.dumps(thing, indent=4) + "\n"


class Kubectl:
    """One invocation of kubectl."""

    def __init__(self, cluster, request, connection, send):
        self.cluster, self.request, self.connection, self.send = cluster, request, connection, send
        self.failed = False

    def out(self, text):
        self.send(b"o", text if isinstance(text, bytes) else text.encode())

    def err(self, text):
        self.send(b"e", (text + "\n").encode("utf-8", "replace"))

    def run(self):
        try:
            verb, self.words, self.flags = parse(self.request["words"])
            self.namespace = self.flags.get("--namespace") or "default"
            getattr(self, verb)()
        except Refused as refused:
            self.complain(refused)
        return int(self.failed)

    def complain(self, text):
        self.failed = True
        self.err(str(text))

    def _files(self):
        """Yields each object in the file, as (source, object). Raises Refused if the file cannot be read or decoded."""
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
        for thing in documents(text, source):
            for key, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
                if not isinstance(thing, dict) or not isinstance(thing.get(key), str):
                    raise Refused(f"error: unable to decode \"{source}\": Object '{name}' is missing in "
                                  f"'{json.dumps(thing)[:200]}'")
            yield source, thing

    def apply(self):
        if self.words:
            raise Refused(f"error: Unexpected args: [{' '.join(self.words)}]\nSee 'kubectl apply -h' for help and examples")
        if "--filename" not in self.flags:
            raise Refused("error: must specify one of -f and -k")
        if not self.flags.get("--server-side"):
            raise Refused("error: the stand-in applies with --server-side only")
        count = 0
        for source, thing in self._files():
            count += 1
            try:
                self._apply(source, thing)
                self.out(f"{_name(thing)} serverside-applied\n")
            except Refused as refused:
                self.complain(refused)
        if not count:
            raise Refused("error: no objects passed to apply")

    def _apply(self, source, thing):
        kind, version, cluster = thing["kind"], thing["apiVersion"], self.cluster
        meta = thing.get("metadata") if isinstance(thing.get("metadata"), dict) else {}
        if kind not in KINDS or KINDS[kind][0] != version:
            raise Refused(f'error: resource mapping not found for name: "{meta.get("name", "")}" '
                          f'namespace: "" from "{source}": no matches for kind "{kind}" in version "{version}" '
                          "(or the stand-in has not)")
        if kind == "Pod":
            raise Refused("error: the stand-in does not apply Pods that are no Job's")
        wanted = meta.get("namespace")
        if wanted and "--namespace" in self.flags and wanted != self.namespace:
            raise Refused(f'error: the namespace from the provided object "{wanted}" does not match the namespace '
                          f'"{self.namespace}". You must pass \'--namespace={wanted}\' to perform this operation.')
        namespace, name, errors = wanted or self.namespace, meta.get("name", ""), []
        which = f"({namespace}/{name}; {version if '/' in version else '/' + version}, Kind={kind})"
        try:
            thing = decode(thing, KINDS[kind][4], "", errors)
        except ValueError as error:
            raise Refused(f"Error from server: failed to convert new object {which} to proper version: {error}") from None
        if errors:
            text = errors[0] if len(errors) == 1 else "".join(f"\n  {one}" for one in ["errors:", *errors]).strip()
            raise Refused(f"Error from server: failed to create typed patch object {which}: {text}")
        if namespace not in cluster.namespaces:
            raise Refused(f'Error from server (NotFound): namespaces "{namespace}" not found')
        fields, manager = fields_of(thing), self.flags.get("--field-manager") or "kubectl"
        thing.setdefault("metadata", {}).setdefault("namespace", namespace)
        with cluster.changed:
            there = cluster.find(kind, namespace, name)
            if there:
                self._check_nothing_changes(fields, there, manager)
            else:
                self._check(kind, thing)
                cluster.add(thing)
                there = thing
            cluster.managers.setdefault(there["metadata"]["uid"], {})[manager] = set(fields)

    def _check_nothing_changes(self, fields, there, manager):
        owners, now = self.cluster.managers[there["metadata"]["uid"]], fields_of(there)
        text = conflict(fields, now, owners, manager)
        if text:
            raise Refused(f"error: Apply failed with {text}\n"
                          "Please review the fields above--they currently have other managers. Here\n"
                          "are the ways you can resolve this warning:")
        if found := changes(fields, now, owners, manager):
            raise Refused(f"error: the stand-in does not change what there is: {_name(there)}: {', '.join(found)}")

    def _check(self, kind, thing):
        errors = Validation(kind, thing).errors
        if errors:
            text = errors[0] if len(errors) == 1 else "".join(f"\n* {one}" for one in errors)
            raise Refused(f'The {kind} "{thing["metadata"].get("name", "")}" is invalid: {text}')
        if len(json.dumps(thing)) > 3 << 19:
            raise Refused("Error from server: etcdserver: request is too large")

    def _selected(self, what):
        """Returns the objects selected by words, selector or file, and whether exactly one was requested by name. Reports names that do not
        exist, unless --ignore-not-found is given. Raises Refused for invalid combinations."""
        cluster, words, selector = self.cluster, list(self.words), self.flags.get("--selector")
        wanted, missing = [], []
        if "--filename" in self.flags:
            if words or selector is not None:
                raise Refused("error: when paths, URLs, or stdin is provided as input, you may not specify resource arguments "
                              "as well")
            wanted = [(kind_of(thing["kind"].lower()), (thing.get("metadata") or {}).get("namespace") or self.namespace,
                       (thing.get("metadata") or {}).get("name")) for _, thing in self._files()]
        elif not words:
            raise Refused("error: You must specify the type of resource to get." if what == "get" else
                          "error: You must provide one or more resources by argument or filename.")
        elif "/" in words[0]:
            if any(word.count("/") != 1 for word in words) or selector is not None:
                raise Refused("error: there is no need to specify a resource type as a separate argument when passing "
                              "arguments in resource/name form")
            wanted = [(kind_of(word.split("/")[0]), self.namespace, word.split("/")[1]) for word in words]
        else:
            kinds, names = [kind_of(word) for word in words[0].split(",")], words[1:]
            if names and selector is not None:
                raise Refused("error: name cannot be provided when a selector is specified")
            if not names and selector is None and what == "delete":
                raise Refused("error: resource(s) were provided, but no name was specified")
            wanted = [(kind, self.namespace, name) for kind in kinds for name in names]
            if not names:
                fits = selector_of(selector) if selector else lambda labels: True
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
        if output not in ("json", "name", None):
            raise Refused("error: the stand-in's `get` knows -o json, -o name, and a table for people")
        with self.cluster.changed:
            found, single = self._selected("get")
            found = copy.deepcopy(found)
        if output == "name":
            self.out("".join(f"{_name(thing)}\n" for thing in found))
        elif output is None:
            self.out("".join(f"{_name(thing)}   {thing.get('status', {}).get('phase', '')}\n" for thing in found))
        elif found or not single:
            self.out(_json(found[0] if single else _list(found)))

    def delete(self):
        cluster, flags = self.cluster, self.flags
        with cluster.changed:
            found, _ = self._selected("delete")
            for thing in found:
                pod = cluster.pods.get(thing["metadata"]["uid"])
                if pod:
                    pod.delete()
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
                    thing["metadata"]["uid"] in uids for thing in cluster.store.values()))

    def logs(self):
        cluster, flags = self.cluster, self.flags
        if len(self.words) != 1 or "/" in self.words[0]:
            raise Refused("error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required "
                          "argument for the logs command (and the stand-in has logs of a POD only)")
        name = self.words[0]
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
            wanted = flags.get("--container")
            names = [container.name for container in pod.containers]
            if wanted and wanted not in names:
                raise Refused(f"Error from server (BadRequest): container {wanted} is not valid for pod {name}")
            if not wanted and len(names) > 1:
                self.err(f'Defaulted container "{names[0]}" out of: {", ".join(names)}')
            if not pod.scheduled:
                return  # the pod has no node yet, and the API server returns nothing
            container = pod.containers[names.index(wanted or names[0])]
            waiting = container.state.get("waiting")
            if waiting or container.log is None:
                why = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}
                state = f"waiting to start: {why.get(waiting['reason'], waiting['reason'])}" if waiting else "terminated"
                raise Refused(f'Error from server (BadRequest): container "{container.name}" in pod "{name}" is {state}')
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
        """Sets `over` and notifies `condition` when kubectl exits."""
        def watch():
            try:
                self.connection.recv(1)
            except OSError:
                pass
            with condition:
                over.set()
                condition.notify_all()

        self.cluster.thread(watch)
