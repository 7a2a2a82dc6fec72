"""Detects a notice that this process is about to be ended, or its machine reclaimed: a signal, a file that appears, or the response of a
URL."""
import http.client
import json
import os
import signal
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, List, Optional, Tuple

#: The interval at which a file or URL is checked. AWS recommends 5 s, and gives two minutes' notice; Google Cloud and Azure give 30 s.
EVERY_S = 5.0
_LIMIT_S = 2.0
#: The headers that Azure and Google Cloud require in a request. Other servers ignore them.
_HEADERS = {"Metadata": "true", "Metadata-Flavor": "Google"}
_AWS_TOKEN = "X-aws-ec2-metadata-token"
#: Responses of a URL that mean that there is no notice.
_NO = ("", "0", "false", "no", "none", "null")
#: The kinds of Azure's scheduled events that end the machine.
_ENDS = ("Preempt", "Terminate")


def signals() -> List[int]:
    """The signals that request this process to end: SIGTERM, and the one named by WARREN_PREEMPTION_SIGNAL. Raises RuntimeError if the
    variable does not name a signal that can be handled."""
    name = os.environ.get("WARREN_PREEMPTION_SIGNAL", "")
    if not name:
        return [signal.SIGTERM]
    try:
        found = signal.Signals["SIG" + name.replace("SIG", "", 1)]
        if found in (signal.SIGKILL, signal.SIGSTOP):
            raise KeyError
        return list(dict.fromkeys((signal.SIGTERM, found)))
    except KeyError:
        raise RuntimeError(f"WARREN_PREEMPTION_SIGNAL is {name!r}, expected the name of a signal, such as USR1") from None


def is_notice(status: int, body: str) -> bool:
    """Whether a URL's response is a notice. Supports AWS's spot/instance-action (404 until there is one), Google Cloud's instance/preempted
    (FALSE, TRUE), Azure's scheduledevents (a list of events), and any other URL with similar responses."""
    if status != 200:
        return False
    text = body.strip()
    try:
        found = json.loads(text)
    except ValueError:
        return text.lower() not in _NO
    if isinstance(found, dict) and "Events" in found:
        events = found["Events"] if isinstance(found["Events"], list) else []
        return any(one.get("EventType") in _ENDS for one in events if isinstance(one, dict))
    return bool(found)


class EndRequest:
    """Whether this worker of an elastic job has received a notice that it must end. Between `begin` and `close`, the worker may postpone
    its end: while `may_wait` is true, a notice only sets `is_there`, and the worker leaves its generation with the others; otherwise the
    notice raises SystemExit. Signals are handled only if `begin` is called in the main thread."""

    #: The exit status of a process that has ended because of SIGTERM, as shells give it.
    STATUS = 128 + signal.SIGTERM

    def __init__(self) -> None:
        self.is_there = self.may_wait = False
        self._handlers: Dict[int, Any] = {}
        self._watch: Optional[Watch] = None

    def begin(self) -> None:
        """Starts listening for notices. Raises the errors of `signals`."""
        numbers = signals()
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._take) for number in numbers}
        self._watch = Watch(lambda: os.kill(os.getpid(), signal.SIGTERM))

    def _take(self, *_: Any) -> None:
        if not self.may_wait:
            raise SystemExit(self.STATUS)
        self.is_there = True

    def close(self) -> None:
        """Stops listening, and restores the program's signal handlers."""
        self.may_wait = False
        if self._watch is not None:
            self._watch.stop()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}


class Watch:
    """A thread that checks the file or URL in WARREN_PREEMPTION_NOTICE, if it is set, and calls `on_notice` once there is a notice."""

    def __init__(self, on_notice: Callable[[], None], every_s: Optional[float] = None) -> None:
        self._place, self._on_notice = os.environ.get("WARREN_PREEMPTION_NOTICE", ""), on_notice
        self._every_s = EVERY_S if every_s is None else every_s
        self._stops = threading.Event()
        self._headers = _HEADERS
        self._has_failed = False
        if self._place:
            threading.Thread(target=self._look, name="warren-preemption", daemon=True).start()

    def stop(self) -> None:
        """Makes the thread end soon; does not wait for it."""
        self._stops.set()

    def _look(self) -> None:
        while not self._stops.is_set():
            if self._is_there() and not self._stops.is_set():
                _say(f"{self._place} says that this machine will be taken back: this worker leaves the job")
                self._on_notice()
                return
            self._stops.wait(self._every_s)

    def _is_there(self) -> bool:
        if not self._place.startswith(("http://", "https://")):
            return os.path.exists(self._place)
        try:
            found = is_notice(*self._answer())
        except (OSError, ValueError, http.client.HTTPException) as error:
            if not self._has_failed:
                _say(f"{self._place} does not tell whether this machine will be taken back: {error or type(error).__name__}; it is asked again every "
                     f"{self._every_s:g} s")
            self._has_failed = True
            return False
        self._has_failed = False
        return found

    def _answer(self) -> Tuple[int, str]:
        status, body = _ask(self._place, self._headers)
        if status == 401:  # AWS: a token is needed, or the previous token has expired
            place = urllib.parse.urljoin(self._place, "/latest/api/token")
            status, token = _ask(place, {f"{_AWS_TOKEN}-ttl-seconds": "21600"}, "PUT")
            if status == 200:
                self._headers = {**_HEADERS, _AWS_TOKEN: token.strip()}
                status, body = _ask(self._place, self._headers)
        if status not in (200, 404):
            raise OSError(f"it answers {status}")
        return status, body


def _ask(url: str, headers: Dict[str, str], method: str = "GET") -> Tuple[int, str]:
    """Returns the status and the body of the response; the body is empty for an error status. Ignores proxies: a metadata server can only
    be reached directly."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers, method=method), timeout=_LIMIT_S) as response:
            return response.status, response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def _say(words: str) -> None:
    print(f"warren: {words}", file=sys.stderr, flush=True)
