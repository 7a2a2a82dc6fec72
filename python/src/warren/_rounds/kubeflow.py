"""Reports the progress of a Kubeflow TrainJob, as KEP-2779 describes it (kubeflow/trainer, docs/proposals/2779-trainjob-progress): with the
feature gate TrainJobStatus, the controller names an HTTPS endpoint, its certificate authority and a token in the environment of the pods.

A thread sends the newest status, at most one every 5 seconds, as the documentation of Kubeflow Trainer recommends; only the last status of
a training run is sent immediately. Training never waits for this, and never fails because of it."""
import atexit
import datetime
import functools
import json
import math
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from typing import Any, Dict, Mapping, Optional, Tuple

from warren._rounds.sinks import say

_URL, _CA_FILE, _TOKEN_FILE = "KUBEFLOW_TRAINER_SERVER_URL", "KUBEFLOW_TRAINER_SERVER_CA_CERT", "KUBEFLOW_TRAINER_SERVER_TOKEN"
_INTERVAL_S = 5.0
#: The time limit for a request.
_TIMEOUT_S = 5.0
#: The maximum time that a process waits at exit for the last status to be sent.
_LAST_S = 3.0
#: The limits of the controller (pkg/apis/trainer/v1alpha1/trainjob_types.go): metrics, and characters of a name or a value.
_MOST_METRICS, _MOST_CHARACTERS = 256, 64
_MOST_SECONDS = 2**31 - 1


def status(number: int, of: Optional[int], metrics: Mapping[str, float], rounds: int, seconds: float, now: datetime.datetime) -> Dict[str, Any]:
    """Returns the body of a report of round `number` out of `of`. The last `rounds` rounds took `seconds`, from which the remaining time is
    estimated."""
    found: Dict[str, Any] = {}
    if of is not None and of > 0:
        found["progressPercentage"] = max(0, min(100, 100 * number // of))
        if rounds > 0 or number >= of:
            found["estimatedRemainingSeconds"] = min(_MOST_SECONDS, math.ceil(seconds / max(1, rounds) * max(0, of - number)))
    shown: Dict[str, Any] = {"round": number, **({} if of is None else {"rounds": of}), **metrics}
    found["metrics"] = [{"name": name[:_MOST_CHARACTERS], "value": f"{value:.9g}"} for name, value in list(shown.items())[:_MOST_METRICS] if name]
    found["lastUpdatedTime"] = now.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"trainerStatus": found}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, because the token must not be sent to any server but the controller."""

    def redirect_request(self, *_: Any) -> None:
        """Makes a redirect an error."""


class Poster:
    """Sends statuses in a separate thread. Thread-safe."""

    def __init__(self, url: str, ca_file: str, token_file: str) -> None:
        self._url, self._ca_file, self._token_file, self._process = url, ca_file, token_file, os.getpid()
        self._changed = threading.Condition()
        self._newest: Optional[Dict[str, Any]] = None  # the next status to send
        self._is_last = self._is_sending = self._has_failed = False
        self._first: Optional[Tuple[float, int]] = None  # the time and the number of the training's first report
        threading.Thread(target=self._send_all, name="warren-kubeflow", daemon=True).start()
        atexit.register(self._wait_for_last)

    def begin(self) -> None:
        """Declares that the next report is the first one of a training run."""
        self._first = None

    def report(self, number: int, of: Optional[int], metrics: Mapping[str, float]) -> None:
        """Replaces the status that will be sent next. The last status of a training run is sent immediately."""
        self._first = self._first or (time.monotonic(), number)
        begin, first = self._first
        found = status(number, of, metrics, number - first, time.monotonic() - begin, datetime.datetime.now(datetime.timezone.utc))
        with self._changed:
            self._newest, self._is_last = found, of is not None and number >= of
            self._changed.notify_all()

    def _send_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._newest is not None)
                body, self._newest, self._is_sending = self._newest, None, True
            self._send(body)
            with self._changed:
                self._is_sending = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._newest is not None and self._is_last, _INTERVAL_S)

    def _send(self, body: Any) -> None:
        try:
            if not self._url.startswith("https://"):
                raise ValueError("its address is not https, and the token would be readable on the way")
            with open(self._token_file, encoding="utf-8") as file:  # Kubernetes replaces it from time to time
                token = file.read().strip()
            if not token.isascii() or not token.isprintable() or " " in token:  # the header's own error would contain the token
                raise ValueError(f"the token in {self._token_file} ({_TOKEN_FILE}) is not a single word of ASCII characters")
            request = urllib.request.Request(self._url, json.dumps(body).encode(), method="POST",
                                             headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            context = ssl.create_default_context(cafile=self._ca_file or None)
            with urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context)).open(request, timeout=_TIMEOUT_S):
                pass
        except Exception as error:  # pylint: disable=broad-except  # a report must not end the training
            if not self._has_failed:
                self._has_failed = True
                say(f"the progress of this TrainJob could not be reported to {self._url} ({_URL}): {_words(error)}; the training continues, and "
                    "later reports are tried without another message")

    def _wait_for_last(self) -> None:
        if os.getpid() != self._process:  # a forked process, which does not have the thread
            return
        with self._changed:
            self._is_last = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._newest is None and not self._is_sending, _LAST_S)


def _words(error: Exception) -> str:
    """Describes an error, with the controller's message if there is one."""
    if isinstance(error, urllib.error.HTTPError):
        try:
            said = json.loads(error.read(4096)).get("message", "")
        except Exception:  # pylint: disable=broad-except  # the server may answer anything
            said = ""
        return f"HTTP {error.code}, {said or error.reason}"
    return str(error)


def poster() -> Optional[Poster]:
    """Returns the poster of this process; None outside of a TrainJob whose controller accepts reports."""
    url = os.environ.get(_URL)
    return _made(os.getpid(), url, os.environ.get(_CA_FILE, ""), os.environ.get(_TOKEN_FILE, "")) if url else None


@functools.lru_cache(maxsize=None)
def _made(process: int, url: str, ca_file: str, token_file: str) -> Poster:
    """Makes one poster for each process, because a forked process does not have the thread."""
    del process
    return Poster(url, ca_file, token_file)
