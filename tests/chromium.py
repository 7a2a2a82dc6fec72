"""Headless Chromium for tests, driven over a pipe with the DevTools protocol. Needs no port and only Python's standard library."""

import base64
import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any, Dict, Iterator, List, Optional

PROGRAM = shutil.which("chromium")
LIMIT_S = 60


class Page:
    """One tab. `complaints`: errors and warnings in its console, uncaught exceptions, and failed loads. `requests`: the requested URLs."""

    def __init__(self, browser: "Browser", session: str, target: str) -> None:
        self.browser = browser
        self.session = session
        self.target = target
        self.complaints: List[str] = []
        self.requests: List[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def take(self, method: str, parameters: Dict[str, Any]) -> None:
        """Handles an event of this tab: records the complaint or request that it reports, if any."""
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([value.get("value") for value in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)
        del self.browser.pages[self.session]

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str, limit_s: float = LIMIT_S) -> None:
        """Waits until the JavaScript expression is true. Raises AssertionError after `limit_s` seconds."""
        end = time.monotonic() + limit_s
        while True:
            if self.value(f"Boolean({expression})"):
                return
            if time.monotonic() > end:
                raise AssertionError(f"never true: {expression}; complaints: {self.complaints}")
            time.sleep(0.1)

    def press(self, key: str, text: Optional[str] = None) -> None:
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        common = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **({"text": text} if text else {}), **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def resize(self, width: int, height: int, dark: bool = False, scale: float = 1, phone: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path: pathlib.Path, whole: bool = False) -> None:
        """Saves a screenshot of the visible part, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))


class Browser:
    def __init__(self, folder: str) -> None:
        assert PROGRAM, "no Chromium found; apt-get install chromium"
        there, self.out = os.pipe()
        self.incoming, back = os.pipe()
        # With --remote-debugging-pipe, Chromium reads from descriptor 3 and writes to 4.
        command = f'exec "$0" "$@" 3<&{there} 4>&{back}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={folder}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(there, back))
        os.close(there)
        os.close(back)
        self.calls = 0
        self.received = b""
        self.pages: Dict[str, Page] = {}

    def receive(self) -> Dict[str, Any]:
        while b"\0" not in self.received:
            if not select.select([self.incoming], [], [], LIMIT_S)[0]:
                raise AssertionError("Chromium does not respond")
            piece = os.read(self.incoming, 1 << 20)
            if not piece:
                raise AssertionError("Chromium has ended")
            self.received += piece
        message, _, self.received = self.received.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]

    def call(self, method: str, session: Optional[str] = None, **parameters: Any) -> Dict[str, Any]:
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        end = time.monotonic() + LIMIT_S
        while True:
            answer = self.receive()
            if time.monotonic() > end:  # receive() does not time out while events arrive
                raise AssertionError(f"Chromium does not answer {method} {parameters}")
            if answer.get("id") == self.calls:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]  # type: ignore[no-any-return]
            page = self.pages.get(answer.get("sessionId", ""))
            if page and "method" in answer:
                page.take(answer["method"], answer["params"])

    def new_page(self) -> Page:
        # A separate browser context for each page, so that pages do not share cookies.
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, target)
        return page

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.incoming)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(prefix="warren-chromium-", ignore_cleanup_errors=True) as folder:
        started = Browser(folder)
        try:
            yield started
        finally:
            started.close()
