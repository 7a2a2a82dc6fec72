"""The metrics and the page of a job over HTTP. A real Prometheus reads the metrics if it is installed."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse

from warren_testing import BIN

LIMIT_S = 60
MAX_CONNECTIONS = 64  # WebServer::kMaxConnections
PROMETHEUS = shutil.which("prometheus")


class Served:
    """A server of a synthetic job, and requests to it."""

    def __init__(self, *arguments, state_home=os.devnull):
        """`state_home`: XDG_STATE_HOME of the server, the folder that contains the history of jobs."""
        self.process = subprocess.Popen([str(BIN / "serve-synthetic-job"), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "XDG_STATE_HOME": str(state_home)})
        metrics, page = (self.process.stdout.readline().strip() for _ in range(2))
        self.port = urllib.parse.urlparse(metrics).port
        self.token = page.partition("token=")[2]
        self.cookie = {"Cookie": f"warren-{self.port}={self.token}"}

    def get(self, target, headers=None, method="GET", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        connection.request(method, target, body, headers or {})
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def json(self, target):
        return json.loads(self.get(target, self.cookie).text)

    def events(self):
        """Yields the page's events as (name, data)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        connection.request("GET", "/events", headers=self.cookie)
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        with contextlib.closing(answer):
            name = ""
            for line in answer:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)

    def end(self):
        """Ends the job. Returns the seconds that the server takes to exit."""
        self.process.stdin.close()
        began = time.monotonic()
        self.process.wait(LIMIT_S)
        return time.monotonic() - began

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


JOB = "20261127T010203Z-4242"


def keep_job(state_home, name="rate-0.3", **fields):
    """Writes the files that dmlc-submit keeps of a finished job: its record, with `fields` replaced, its evaluations and its page."""
    folder = pathlib.Path(state_home, "warren", "jobs")
    folder.mkdir(parents=True)
    page = pathlib.Path(state_home, "job.html")
    page.write_text("<h1>the kept page</h1><script>fetch('../cancel', {method: 'POST'})</script>", encoding="ascii")
    record = {"format": 1, "name": name, "command": ["python", "train.py"], "directory": "/", "host": "h", "pid": 4242, "boot": "b",
              "cluster": "local", "workers": 3, "began": "2026-11-27T01:02:03Z", "seconds": 12.5, "exit_code": 0, "how": "succeeded",
              "story": "", "failed_by": None, "restarts": 0, "page": str(page), **fields}
    (folder / f"{JOB}.json").write_text(json.dumps(record), encoding="ascii")
    (folder / f"{JOB}.evaluations.json").write_text('{"evaluations": [[1, 0.5, {"train-rmse": 0.9}], [2, 1.0, {"train-rmse": 0.7}]]}', encoding="ascii")


class WatchingTest(unittest.TestCase):
    def serve(self, *arguments, **settings):
        served = Served(*arguments, **settings)
        self.addCleanup(served.close)
        return served

    def test_metrics_are_for_anybody_and_in_their_format(self):
        answer = self.serve("--at", "20").get("/metrics")
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"))
        self.assertIn('warren_workers{state="running"} 8\n', answer.text)
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("no prometheus_client, whose parser is strict: apt-get install python3-prometheus-client")
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}
        self.assertEqual(families["warren_collective_bytes"].unit, "bytes")
        self.assertEqual(len(families["warren_worker_cpu_seconds"].samples), 8)

    def test_the_page_is_behind_a_token_that_becomes_a_cookie(self):
        served = self.serve()
        for target in ("/", "/page.js", "/events", "/logs", "/?token=", f"/?token={served.token[:-1]}", f"/logs?token={served.token}"):
            self.assertEqual(served.get(target).status, 401, target)
        wrong = {"Cookie": f"warren-{served.port}={'0' * 32}"}
        self.assertEqual(served.get("/events", wrong).status, 401)
        opened = served.get(f"/?token={served.token}")
        self.assertEqual((opened.status, opened.headers["Location"]), (303, "./"))
        self.assertEqual(opened.headers["Set-Cookie"], f"warren-{served.port}={served.token}; HttpOnly; SameSite=Lax; Path=/")
        page = served.get("/", served.cookie)
        self.assertEqual(page.status, 200)
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        self.assertEqual((page.headers["Cache-Control"], page.headers["X-Content-Type-Options"]), ("no-store", "nosniff"))
        self.assertNotIn(served.token, page.text)

    def test_a_path_with_the_token_needs_no_cookie_and_may_be_shown_in_a_frame(self):
        served = self.serve()
        page = served.get(f"/in/{served.token}/", {"Sec-Fetch-Site": "cross-site"})
        self.assertEqual((page.status, page.headers["Set-Cookie"]), (200, None))
        self.assertIn("frame-ancestors *", page.headers["Content-Security-Policy"])
        self.assertIn("frame-ancestors 'none'", served.get("/", served.cookie).headers["Content-Security-Policy"])
        for target in ("page.js", "page.css", "logs"):
            self.assertEqual(served.get(f"/in/{served.token}/{target}").status, 200, target)
            self.assertEqual(served.get(f"/in/{served.token[:-1]}/{target}").status, 401, target)
        self.assertEqual(served.get(f"/in/{served.token}/logs", {"Sec-Fetch-Site": "cross-site"}).status, 403)
        self.assertEqual(served.get(f"/in/{served.token}/", {"Host": "evil.example"}).status, 403)

    def test_a_page_of_another_name_that_leads_here_gets_nothing(self):
        served = self.serve()
        for target in ("/metrics", "/"):
            self.assertEqual(served.get(target, {**served.cookie, "Host": "evil.example"}).status, 403)
        self.assertEqual(served.get("/", {**served.cookie, "Host": "localhost:1"}).status, 200)

    def test_only_its_own_page_may_ask_for_the_job(self):
        served = self.serve("--at", "20")
        for target in ("/logs", "/events"):
            for site in ("cross-site", "same-site"):
                self.assertEqual(served.get(target, {**served.cookie, "Sec-Fetch-Site": site}).status, 403)
        self.assertEqual(served.get("/logs", {**served.cookie, "Sec-Fetch-Site": "same-origin"}).status, 200)
        self.assertEqual(served.get("/", {**served.cookie, "Sec-Fetch-Site": "cross-site"}).status, 200, "a link leads to the page")

    def test_only_whole_and_small_requests_are_understood(self):
        served = self.serve()
        for method in ("POST", "PUT", "DELETE"):
            self.assertEqual(served.get("/", served.cookie, method).status, 405, method)
        self.assertEqual(served.get("/none", served.cookie).status, 404)
        head = served.get("/", served.cookie, "HEAD")
        self.assertEqual((head.status, head.text), (200, ""))
        with socket.create_connection(("127.0.0.1", served.port), LIMIT_S) as raw:
            with contextlib.suppress(ConnectionError):
                raw.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
                self.assertEqual(raw.recv(100), b"")
        self.assertEqual(served.get("/metrics").status, 200)

    def test_events_begin_with_the_whole_state_and_go_on_with_changes(self):
        events = self.serve("--at", "20").events()
        name, state = next(events)
        self.assertEqual((name, len(state["workers"])), ("state", 8))
        name, change = next(events)
        self.assertEqual(name, "change")
        self.assertGreater(change["job"]["seconds"], state["job"]["seconds"])
        self.assertNotIn("name", change["job"])
        events.close()

    def test_at_the_end_pages_get_the_last_state_and_the_program_is_not_held_up(self):
        served = self.serve("--at", "20")
        events = served.events()
        next(events)
        # One client requests nothing, and one reads nothing.
        with socket.create_connection(("127.0.0.1", served.port)), socket.create_connection(("127.0.0.1", served.port)) as deaf:
            deaf.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\nCookie: {served.cookie['Cookie']}\r\n\r\n".encode())
            served.end()
        rest = list(events)
        self.assertEqual(rest[-1][0], "end")
        self.assertTrue(rest[-1][1]["lines"])
        self.assertTrue(rest[-2][1]["job"]["over"])
        self.assertEqual(served.process.returncode, 0)

    def test_a_reader_that_is_slow_gets_the_newest_state_next(self):
        served = self.serve("--workers", "1000", "--at", "20")
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", served.port))
            slow.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\nCookie: {served.cookie['Cookie']}\r\n\r\n".encode())
            others = served.events()
            seen = [next(others)[1]["job"]["seconds"] for _ in range(4)]  # another reader still gets each change
            slow.settimeout(LIMIT_S)
            stream = slow.makefile("rb")
            ages = []
            while len(ages) < 2:
                line = stream.readline()
                if line.startswith(b"data: "):
                    ages.append(json.loads(line[6:])["job"]["seconds"])
            stream.close()
            others.close()
        self.assertLess(ages[0], seen[2])
        self.assertGreaterEqual(ages[1], seen[3])

    def silent(self, served, count, sent=b""):
        """Opens `count` connections, which send `sent` and nothing more."""
        many = [socket.create_connection(("127.0.0.1", served.port), LIMIT_S) for _ in range(count)]
        for one in many:
            self.addCleanup(one.close)
            one.sendall(sent)
        return many

    def test_connections_that_say_nothing_keep_nobody_out(self):
        served = self.serve()
        events = served.events()
        next(events)
        for sent in (b"", b"GET /metrics HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            many = self.silent(served, 2 * MAX_CONNECTIONS, sent)
            with self.subTest(sent=sent):
                self.assertEqual(served.get("/metrics").status, 200)
                self.assertEqual(served.get("/", served.cookie).status, 200)
                many[0].settimeout(LIMIT_S)
                with contextlib.suppress(ConnectionError):  # the connection that had been silent for longest was closed to make room
                    while many[0].recv(1 << 16):
                        pass
        self.assertEqual(next(events)[0], "change", "whoever reads the page stays")

    def test_readers_of_the_page_are_not_closed_for_one_more(self):
        served = self.serve()
        readers = [served.events() for _ in range(MAX_CONNECTIONS)]
        for reader in readers:
            next(reader)
        with socket.create_connection(("127.0.0.1", served.port), LIMIT_S) as refused, contextlib.suppress(ConnectionError):
            self.assertEqual(refused.recv(1), b"")
        readers.pop().close()
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                if served.get("/metrics").status == 200:
                    return
        self.fail("no connection is served any more")

    def test_logs_are_by_worker_and_searched(self):
        served = self.serve("--at", "20")
        lines = served.json("/logs?worker=1&contains=%3Cimg")["lines"]
        self.assertEqual({line[1] for line in lines}, {1})
        self.assertIn("onerror", lines[0][3])
        self.assertEqual(served.json("/logs?worker=99")["lines"], [])
        self.assertEqual(len(served.json("/logs?limit=7")["lines"]), 7)

    def view_cookie(self, served):
        token = served.json("/jobs")["view_token"]
        self.assertNotIn(token, ("", served.token))
        return {"Cookie": f"warren-{served.port}={token}"}

    def test_whoever_has_the_page_s_own_address_may_cancel_and_take_stacks(self):
        served = self.serve()
        self.assertEqual(served.get("/cancel", served.cookie).status, 404, "GET changes nothing")
        self.assertEqual(served.get("/stack?worker=1", served.cookie, "POST").status, 202)
        self.assertEqual(served.get("/stack?worker=99", served.cookie, "POST").status, 409)
        self.assertEqual(served.get("/stack", served.cookie, "POST").status, 409)
        same = {"Origin": f"http://127.0.0.1:{served.port}"}
        self.assertEqual(served.get("/cancel", {**served.cookie, **same}, "POST").status, 202)
        self.assertEqual(served.get(f"/in/{served.token}/cancel", {"Sec-Fetch-Site": "same-origin", "Origin": "https://proxy"}, "POST").status, 202)
        served.end()
        self.assertEqual(served.process.stdout.read().splitlines(), ["stack 1", "cancel", "cancel"])

    def test_nobody_else_may(self):
        served = self.serve()
        view = self.view_cookie(served)
        self.assertEqual(served.get("/cancel", method="POST").status, 401)
        for headers in ({"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "none"}, {"Origin": "null"},
                        {"Origin": f"http://127.0.0.1:{served.port + 1}"}, {"Origin": "http://evil.example"}):
            self.assertEqual(served.get("/cancel", {**served.cookie, **headers}, "POST").status, 403, headers)
        for target in ("/cancel", "/stack?worker=1"):
            self.assertEqual(served.get(target, view, "POST").status, 403, target)
        for target in ("/jobs", f"/jobs/{JOB}/page", f"/jobs/{JOB}/evaluations"):
            self.assertEqual(served.get(target, view).status, 403, target)
        for target in ("/", "/logs", "/usage"):
            self.assertEqual(served.get(target, view).status, 200, target)
        served.end()
        self.assertEqual(served.process.stdout.read(), "")

    def test_a_request_with_a_body_is_refused_and_changes_nothing(self):
        served = self.serve()
        for body in (b"why=now", b"x" * 100_000, iter([b"in", b"pieces"])):
            answer = served.get("/cancel", served.cookie, "POST", body)
            self.assertEqual((answer.status, answer.getheader("Connection")), (413, "close"))
            self.assertIn("no body", answer.text)
        self.assertEqual(served.get("/", served.cookie).status, 200)
        served.end()
        self.assertEqual(served.process.stdout.read(), "")

    def test_the_user_s_other_jobs_are_listed_with_their_pages_and_evaluations(self):
        with tempfile.TemporaryDirectory(prefix="warren-state-") as state:
            keep_job(state)
            served = self.serve(state_home=state)
            listed = served.json("/jobs")["jobs"]
            self.assertEqual([(one["id"], one["held"], one["curves"], json.loads(one["record"])["name"]) for one in listed],
                             [(JOB, False, True, "rate-0.3")])
            self.assertEqual(served.json(f"/jobs/{JOB}/evaluations")["evaluations"][1][2], {"train-rmse": 0.7})
            page = served.get(f"/jobs/{JOB}/page", {**served.cookie, "Sec-Fetch-Site": "cross-site"})
            self.assertEqual((page.status, page.text[:22]), (200, "<h1>the kept page</h1>"))
            self.assertIn("sandbox allow-scripts;", page.headers["Content-Security-Policy"])
            for other in ("20261127T010203Z-1", "..", f"../jobs/{JOB}", "%2e%2e", f"{JOB}.evaluations"):
                for what in ("page", "evaluations"):
                    self.assertEqual(served.get(f"/jobs/{other}/{what}", served.cookie).status, 404, other)

    def test_a_record_that_names_what_is_no_file_gives_no_page(self):
        for page in ("/etc/shadow" if os.getuid() else "/proc/self/mem", "/dev/zero", "/", ""):
            with tempfile.TemporaryDirectory(prefix="warren-state-") as state, self.subTest(page=page):
                keep_job(state, page=page)
                served = self.serve(state_home=state)
                self.assertEqual(served.get(f"/jobs/{JOB}/page", served.cookie).status, 404)
                served.close()

    def test_cores_and_memory_are_kept_for_each_worker(self):
        served = self.serve("--at", "1000", "--speed", "0")
        usage = served.json("/usage")
        self.assertEqual((len(usage["cores"]), len(usage["mib"])), (8, 8))
        self.assertLessEqual(len(usage["seconds"]), 240)
        self.assertEqual(usage["seconds"], sorted(set(usage["seconds"])))
        self.assertEqual({len(one) for one in usage["cores"] + usage["mib"]}, {len(usage["seconds"])})
        self.assertEqual(usage["seconds"][0], 0)
        self.assertGreater(usage["seconds"][-1], 900)

    @unittest.skipUnless(PROMETHEUS, "no Prometheus; apt-get install prometheus")
    def test_a_real_prometheus_scrapes_it(self):
        served = self.serve("--at", "20")
        with tempfile.TemporaryDirectory(prefix="warren-prometheus-") as folder, socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            taken.close()
            pathlib.Path(folder, "prometheus.yml").write_text(
                "global: {scrape_interval: 1s}\nscrape_configs:\n"
                f"  - job_name: warren\n    static_configs: [{{targets: ['127.0.0.1:{served.port}']}}]\n", encoding="ascii")
            process = subprocess.Popen(
                [PROMETHEUS, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.assertEqual(self.query(port, 'warren_workers{state="running"}')[0]["value"][1], "8")
                traffic = self.query(port, 'sum by (algorithm) (warren_collective_bytes_total{rank="3"})')
                self.assertEqual({one["metric"]["algorithm"] for one in traffic}, {"ring", "tree"})
                # Prometheus has data for every query in the dashboard file.
                for expression in grafana_expressions():
                    self.query(port, expression)
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def query(self, port, expression):
        """Waits until Prometheus has a result for the expression. Returns the result."""
        end = time.monotonic() + LIMIT_S
        found = None
        while time.monotonic() < end:
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
                connection.request("GET", f"/api/v1/query?query={urllib.parse.quote(expression)}")
                response = connection.getresponse()
                answer = response.read()
                connection.close()
                if response.status == http.HTTPStatus.SERVICE_UNAVAILABLE:  # still starting
                    raise ConnectionError(answer)
                found = json.loads(answer)
                self.assertEqual(found["status"], "success", f"{expression}: {found}")
                if found["data"]["result"]:
                    return found["data"]["result"]
            time.sleep(0.2)
        self.fail(f"{expression}: {found}")


def grafana_expressions():
    """The Prometheus queries in docs/grafana.json, with their variables filled in."""
    board = json.loads((pathlib.Path(os.environ["WARREN_SOURCE"]) / "docs/grafana.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield re.sub(r"\$__rate_interval", "10s", target["expr"]).replace("$instance", ".*")


if __name__ == "__main__":
    unittest.main()
