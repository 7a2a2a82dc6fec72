"""Checks objects by the rules of each kind, with the API server's error messages."""

import base64
import json

from .objects import BATCH, contents
from .syntax import DATA_KEY, ENV_NAME, FIELD, LABEL, LABEL_VALUE, SERVICE_NAME, SUBDOMAIN, label_key, quantity


class Validation:
    """Checks a decoded object and fills in its defaults. `errors` lists the problems found."""

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
        {"Job": self.job, "Service": self.service, "Secret": self.secret}[kind](thing)

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
            self.check(label_key(key), f"{path}.labels", key,
                       "name part must consist of alphanumeric characters, '-', '_' or '.'")
            self.check(LABEL_VALUE.fullmatch(value), f"{path}.labels", value,
                       "must be empty or consist of at most 63 alphanumeric characters, '-', '_' or '.'")

    def secret(self, thing):
        texts = thing.pop("stringData", {})
        thing["data"] = {**thing.get("data", {}), **{key: base64.b64encode(value.encode()).decode()
                                                     for key, value in texts.items()}}
        thing["type"] = "Opaque"
        for key in thing["data"]:
            self.matches(DATA_KEY, key, f"data[{key}]", "a valid config key")
        if sum(map(len, contents(thing).values())) > 1 << 20:
            self.bad("data", "Too long: may not be more than 1048576 bytes")

    def service(self, thing):
        spec = thing["spec"]
        spec["type"] = "ClusterIP"
        self.one_of(["None"], spec.get("clusterIP", ""), "spec.clusterIP")  # the stand-in supports headless services only
        self.meta({"labels": spec.get("selector", {})}, "spec.selector")

    def job(self, thing):
        spec, name = thing["spec"], thing["metadata"].get("name", "")
        for field in ("parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes",
                      "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
            self.check(spec.get(field, 0) >= 0, f"spec.{field}", spec.get(field), "must be greater than or equal to 0")
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
            self.check(spec["parallelism"] <= 100000, "spec.parallelism", spec["parallelism"],
                       "must be less than or equal to 100000")
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
        if "podFailurePolicy" in spec:
            self.failure_policy(spec, [one.get("name") for one in pod.get("containers", [])])
        default = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        self.one_of([default] if default == "Failed" else ["Failed", "TerminatingOrFailed"],
                    spec.setdefault("podReplacementPolicy", default), "spec.podReplacementPolicy")

    def failure_policy(self, spec, containers):
        rules = spec["podFailurePolicy"].setdefault("rules", [])
        self.check(len(rules) <= 20, "spec.podFailurePolicy.rules", len(rules), "must have at most 20 items")
        for i, rule in enumerate(rules):
            path = f"spec.podFailurePolicy.rules[{i}]"
            self.one_of(["Count", "FailJob", "Ignore"], rule.get("action", ""), f"{path}.action")
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
                self.check(label_key(condition.get("type", "")), f"{path}.onPodConditions[{j}].type",
                           condition.get("type", ""), "name part must be non-empty")
                self.one_of(["False", "True", "Unknown"], condition.setdefault("status", "True"),
                            f"{path}.onPodConditions[{j}].status")

    def names(self, things, path):
        for i, thing in enumerate(things):
            self.matches(LABEL, thing["name"], f"{path}[{i}].name", "a lowercase RFC 1123 label")
        return [thing["name"] for thing in things]

    def pod(self, spec, path):
        self.one_of(["Never"], spec.get("restartPolicy", "Always"), f"{path}.restartPolicy")  # the stand-in restarts no containers
        for field in ("hostname", "subdomain"):
            if spec.get(field):
                self.matches(LABEL, spec[field], f"{path}.{field}", "a lowercase RFC 1123 label")
        grace = spec.setdefault("terminationGracePeriodSeconds", 30)
        self.check(grace >= 0, f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
        volumes = self.names(spec.get("volumes", []), f"{path}.volumes")
        for i, volume in enumerate(spec.get("volumes", [])):
            if not volume.get("secret", {}).get("secretName"):
                self.bad(f"{path}.volumes[{i}].secret.secretName", "Required value")
        if not self.names(spec.get("containers", []), f"{path}.containers"):
            self.bad(f"{path}.containers", "Required value")
        for i, container in enumerate(spec.get("containers", [])):
            self.container(container, f"{path}.containers[{i}]", volumes)

    def container(self, container, path, volumes):
        if not container.get("image"):
            self.bad(f"{path}.image", "Required value")
        for i, mount in enumerate(container.get("volumeMounts", [])):
            where = f"{path}.volumeMounts[{i}]"
            if mount.get("name") not in volumes:
                self.bad(f"{where}.name", f"Not found: {json.dumps(mount.get('name', ''))}")
            target = mount.get("mountPath", "")
            if not target:
                self.bad(f"{where}.mountPath", "Required value")
            self.check(":" not in target, f"{where}.mountPath", target, "must not contain ':'")
        for i, one in enumerate(container.get("env", [])):
            where, source = f"{path}.env[{i}]", one.get("valueFrom")
            secret = (source or {}).get("secretKeyRef")
            self.matches(ENV_NAME, one["name"], f"{where}.name", "a valid environment variable name")
            if source is not None:
                self.check(not one.get("value"), f"{where}.valueFrom", "", "may not be specified when `value` is not empty")
                self.check(len(source) == 1, f"{where}.valueFrom", "",
                           "must specify one of: `fieldRef`, `resourceFieldRef` or `secretKeyRef`")
                if "resourceFieldRef" in source:
                    resource = source["resourceFieldRef"].get("resource", "")
                    self.check(resource == "limits.cpu", f"{where}.valueFrom.resourceFieldRef.resource", resource,
                               "the stand-in knows limits.cpu only")
                if "fieldRef" in source:
                    field = source["fieldRef"].get("fieldPath", "")
                    self.check(FIELD.fullmatch(field), f"{where}.valueFrom.fieldRef.fieldPath", field,
                               "error converting fieldPath: field label not supported")
                elif secret is not None and not (secret.get("name") and secret.get("key")):
                    self.bad(f"{where}.valueFrom.secretKeyRef", "Required value: name and key")
        limits, requests = (container.get("resources", {}).get(name, {}) for name in ("limits", "requests"))
        for where, amounts in ((f"{path}.resources.limits", limits), (f"{path}.resources.requests", requests)):
            for name, amount in amounts.items():
                value = quantity(amount)
                if not (name in ("cpu", "memory") or "/" in name and label_key(name)):
                    self.bad(f"{where}[{name}]", f'Invalid value: "{name}": must be a standard resource for containers')
                self.check(value >= 0, f"{where}[{name}]", amount, "must be greater than or equal to 0")
                if "/" in name:
                    self.check(value.denominator == 1, f"{where}[{name}]", amount, "must be an integer")
        for name, amount in requests.items():
            if "/" in name:
                if name not in limits:
                    self.bad(f"{path}.resources.limits",
                             f"Required value: Limit must be set for non overcommitable resources ({name})")
                else:
                    self.check(quantity(amount) == quantity(limits[name]), f"{path}.resources.requests", amount,
                               f"must be equal to {name} limit of {limits[name]}")
            elif name in limits:
                self.check(quantity(amount) <= quantity(limits[name]), f"{path}.resources.requests", amount,
                           f"must be less than or equal to {name} limit of {limits[name]}")
