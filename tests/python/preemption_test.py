"""warren._launch.preemption, which detects notices that a machine will be taken back. A stand-in for the clouds' metadata servers responds
as the clouds' documentation describes."""
import contextlib
import http.server
import io
import os
import signal
import tempfile
import threading
import time
import unittest
import unittest.mock

from warren._launch import preemption

LIMIT_S = 30


class Metadata(http.server.BaseHTTPRequestHandler):
    """A stand-in for the metadata servers of AWS (IMDSv2, with tokens), Google Cloud and Azure. `notices`: the first path components of the
    URLs that have a notice. `asked`: the paths requested so far."""

    notices = set()
    asked = []

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        self.asked.append(self.path)
        self.answer(200 if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else 400, "TOKEN\n")

    def do_GET(self):
        self.asked.append(self.path)
        there = self.path.split("?")[0].split("/")[1] in self.notices
        if self.path.startswith("/latest"):
            there = "latest" in self.notices
            if self.headers["X-aws-ec2-metadata-token"] != "TOKEN":
                return self.answer(401, "")
            return self.answer(*((200, '{"action": "terminate", "time": "2026-11-29T08:22:00Z"}') if there else (404, "not found")))
        if self.path.startswith("/computeMetadata"):
            return self.answer(*((200, "TRUE" if there else "FALSE") if self.headers["Metadata-Flavor"] == "Google" else (403, "")))
        if self.path.startswith("/metadata"):
            events = [{"EventType": "Freeze"}, {"EventType": "Preempt"}][:2 if there else 1]
            return self.answer(200, '{"DocumentIncarnation": 1, "Events": %s}' % str(events).replace("'", '"'))
        return self.answer(500, "")

    def log_message(self, *_):
        """Suppresses the request log."""


class Preemption(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        Metadata.notices, Metadata.asked = set(), []

    def watched(self, place, then):
        """Watches a place, which must have no notice until `then` has been called. Returns the messages printed up to the notice."""
        noticed, said = threading.Event(), io.StringIO()
        with unittest.mock.patch.dict(os.environ, {"WARREN_PREEMPTION_NOTICE": place}), contextlib.redirect_stderr(said):
            watch = preemption.Watch(noticed.set, every_s=.02)
            self.assertFalse(noticed.wait(.2), said.getvalue())
            then()
            self.assertTrue(noticed.wait(LIMIT_S), said.getvalue())
            watch.stop()
        return said.getvalue()

    def test_a_file_that_appears_is_a_notice(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "notice")
            self.assertEqual(self.watched(path, lambda: open(path, "w", encoding="ascii").close()),
                             f"warren: {path} says that this machine will be taken back: this worker leaves the job\n")

    def test_each_clouds_notice_is_understood(self):
        for path in ("latest/meta-data/spot/instance-action", "computeMetadata/v1/instance/preempted", "metadata/scheduledevents?api-version=2020-07-01"):
            with self.subTest(path):
                url = f"http://127.0.0.1:{self.server.server_port}/{path}"
                said = self.watched(url, lambda name=path.split("/")[0]: Metadata.notices.add(name))
                self.assertEqual(said.count("\n"), 1, said)
        self.assertEqual(Metadata.asked.count("/latest/api/token"), 1)

    def test_a_server_that_does_not_answer_is_told_of_once(self):
        url = f"http://127.0.0.1:{self.server.server_port}/latest"
        with unittest.mock.patch.object(Metadata, "do_PUT", lambda self: self.answer(500, "")):
            said = io.StringIO()
            with unittest.mock.patch.dict(os.environ, {"WARREN_PREEMPTION_NOTICE": url}), contextlib.redirect_stderr(said):
                watch = preemption.Watch(self.fail, every_s=.01)
                end = time.monotonic() + LIMIT_S
                while len(Metadata.asked) < 5 and time.monotonic() < end:
                    time.sleep(.01)
                watch.stop()
        self.assertEqual(said.getvalue().count("\n"), 1, said.getvalue())
        self.assertIn(f"{url} does not tell whether this machine will be taken back: it answers 500; it is asked again every", said.getvalue())

    def test_an_answer_that_is_no_http_is_not_the_last_one(self):
        class Odd(Metadata):
            def do_GET(self):
                self.asked.append(self.path)
                if len(self.asked) < 3:
                    self.wfile.write(b"garbage\r\n")
                elif len(self.asked) < 6:
                    self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 50\r\n\r\nTRU")
                else:
                    self.answer(200, "TRUE" if "odd" in self.notices else '{"Events": null}')

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.watched(f"http://127.0.0.1:{server.server_port}/odd", lambda: Metadata.notices.add("odd"))

    def test_other_answers(self):
        for body in ("", "FALSE\n", "none", "0", "[]", "{}", '{"Events": []}', '{"Events": [1, {"EventType": "Reboot"}]}', "null"):
            self.assertFalse(preemption.is_notice(200, body), body)
        for body in ("TRUE", "2026-11-29T08:22:00Z", '{"action": "stop"}', '{"Events": [{"EventType": "Terminate"}]}', "soon"):
            self.assertTrue(preemption.is_notice(200, body), body)
            self.assertFalse(preemption.is_notice(404, body), body)

    def test_signals_are_named(self):
        for name, expected in (("", [15]), ("USR1", [15, signal.SIGUSR1]), ("SIGXCPU", [15, signal.SIGXCPU]), ("TERM", [15])):
            with unittest.mock.patch.dict(os.environ, {"WARREN_PREEMPTION_SIGNAL": name}):
                self.assertEqual(preemption.signals(), expected)
        for name in ("USR9", "KILL"):
            with unittest.mock.patch.dict(os.environ, {"WARREN_PREEMPTION_SIGNAL": name}), self.assertRaisesRegex(RuntimeError, f"'{name}', expected the name"):
                preemption.signals()


if __name__ == "__main__":
    unittest.main()
