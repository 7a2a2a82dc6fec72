"""Traces of whole jobs, which dmlc-submit sends to a stand-in for an OpenTelemetry collector."""

import json
import os
import pathlib
import shutil
import signal
import sys
import time
import unittest

import stand_in_collector
from stand_in_collector import StandInCollector, silent_server
from submit_case import LIMIT_S, SubmitCase, python, python_with
from warren_testing import BIN, wait_for

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
PACKAGE = {"PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent)}
WATCHED_WORKER = SOURCE / "tests/submit/monitor/watched_worker.py"
ELASTIC_WORKER = pathlib.Path(__file__).with_name("elastic_worker.py")
#: A program that prints evaluations as XGBoost does. Worker 1 fails in the first attempt.
TRAINS = """
import os, sys
task, attempt = os.environ['DMLC_TASK_ID'], os.environ['DMLC_NUM_ATTEMPT']
print('traceparent', attempt, os.environ.get('TRACEPARENT'), os.environ.get('TRACESTATE'), flush=True)
if task == '0':
    for i in range(3):
        print(f'[{i}]\\ttrain-rmse:{1 / (i + 1)}\\teval-auc:nan', flush=True)
if task == '1' and attempt == '0':
    sys.exit(3)
if task == '0' and attempt == '0':
    import time
    time.sleep(600)
"""
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Traced(SubmitCase):
    def environment(self, extra=None):
        found = super().environment({"XDG_STATE_HOME": str(self.directory / "state"), **(extra or {})})
        # Leaves out the trace settings of the user who runs the test.
        return {name: value for name, value in found.items()
                if os.fsdecode(name) in (extra or {}) or not name.startswith((b"OTEL_", b"TRACEPARENT", b"TRACESTATE"))}  # fmt: skip

    def traced(self, url, *words, environment=None, exit_code=0):
        return self.submit(*words, environment={"OTEL_EXPORTER_OTLP_ENDPOINT": url, **(environment or {})}, exit_code=exit_code)

    def one(self, spans, name, **wanted):
        """The only span with this name and these attributes, which are given by the last component of their names."""
        found = [span for span in spans if span.name == name and wanted.items() <= {k.rpartition(".")[2]: v for k, v in span.attributes.items()}.items()]
        self.assertEqual(len(found), 1, (name, wanted, spans))
        return found[0]


class Jobs(Traced):
    def test_a_job_of_two_attempts(self):
        with StandInCollector() as collector:
            began = time.time_ns()
            job = self.traced(collector.url, "--num-workers", 2, "--max-restarts", 1, "--jobname", "nightly", *python(TRAINS),
                              environment={"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b", "OTEL_RESOURCE_ATTRIBUTES": "team=x",
                                           "TRACEPARENT": PARENT, "TRACESTATE": "vendor=1"})  # fmt: skip
            ended = time.time_ns()
        self.assertIn(f"traces: {collector.url}/v1/traces (trace {PARENT[3:35]})", job.err)
        spans = collector.spans()
        root = self.one(spans, "nightly")
        self.assertEqual({span.trace for span in spans}, {PARENT[3:35]})
        self.assertEqual({span.state for span in spans}, {"vendor=1"})
        self.assertEqual(root.parent, PARENT[36:52])
        self.assertLessEqual({"warren.cluster": "local", "warren.workers": 2, "warren.attempts": 2, "process.exit.code": 0}.items(), root.attributes.items())
        self.assertEqual(root.error, "")
        for span in spans:
            self.assertTrue(began <= root.begin <= span.begin <= span.end <= root.end <= ended, span)
        first, second = (self.one(spans, "attempt", attempt=number) for number in (1, 2))
        self.assertEqual((first.parent, second.parent), (root.id, root.id))
        self.assertRegex(first.error, r"^worker 1 \(.*\) exited with code 3")
        self.assertLessEqual({"warren.lost.process": "worker 1", "warren.lost.exit_code": 3}.items(), first.attributes.items())
        self.assertEqual([(name, lost["warren.lost.process"]) for name, lost in first.events], [("process lost", "worker 1")])
        self.assertEqual(second.error, "")
        self.assertLessEqual(first.end, second.begin)
        for attempt in (first, second):
            self.assertEqual(len([span for span in spans if span.name == "start" and span.parent == attempt.id]), 1)
        rounds = [span for span in spans if span.name == "round" and span.parent == second.id]
        self.assertEqual([span.attributes["warren.round"] for span in rounds], [0, 1, 2])
        self.assertEqual(rounds[1].attributes["warren.metric.train-rmse"], 0.5)
        # With these variables, programs can make their own spans children of their attempt's span.
        said = {tuple(line.split(" ")[-4:]) for line in job.out.splitlines() if "traceparent" in line}
        self.assertEqual(said, {("traceparent", str(i), f"00-{root.trace}-{span.id}-01", "vendor=1") for i, span in enumerate((first, second))})
        path, headers, _ = collector.requests[0]
        self.assertEqual((path, headers["Content-Type"], headers["api-key"]), ("/v1/traces", "application/json", "a b"))
        self.assertEqual(collector.resources()[0], {"service.name": "dmlc-submit", "team": "x"})

    @unittest.skipIf(os.environ.get("WARREN_SANITIZE"), "its workers load librabit into Python")
    def test_an_elastic_job_that_loses_a_worker(self):
        with StandInCollector() as collector:
            self.traced(collector.url, "--num-workers", "2:3", sys.executable, ELASTIC_WORKER,
                        environment=PACKAGE)  # fmt: skip
        spans = collector.spans()
        attempt = self.one(spans, "attempt")
        first, second = (self.one(spans, "generation", generation=number) for number in (1, 2))
        self.assertEqual((first.parent, second.parent), (attempt.id, attempt.id))
        self.assertRegex(first.error, r"^worker 1 \(rank \d, host .*\) was killed by signal 9 \(SIGKILL\)$")
        self.assertLessEqual({"warren.lost.process": "worker 1", "warren.lost.signal": "SIGKILL", "warren.workers": 3}.items(), first.attributes.items())
        self.assertEqual(second.error, "")
        self.assertIn("was lost", second.attributes["warren.begin"])
        self.assertEqual(attempt.error, "")
        for number, generation in ((1, first), (2, second)):
            self.assertEqual(self.one(spans, "round", round=number).parent, generation.id)
        joins = [span for span in spans if span.name == "join"]
        self.assertEqual([join.attributes["warren.again"] for join in joins], [False, True])
        self.assertTrue(first.end <= joins[1].begin <= second.begin <= joins[1].end, spans)

    def test_the_requests_are_as_opentelemetry_defines_them(self):
        environment = python_with("opentelemetry-proto")
        with StandInCollector() as collector:
            self.traced(collector.url, "--num-workers", 2, "--max-restarts", 1, *python(TRAINS))
        numbers = [stand_in_collector.number_of_spans(environment, body) for _, _, body in collector.requests]
        self.assertEqual(sum(numbers), len(collector.spans()))
        self.assertGreaterEqual(sum(numbers), 8)

    def test_a_job_that_fails_says_why_and_with_which_code(self):
        with StandInCollector() as collector:
            self.traced(collector.url, "--num-workers", 1, *python("raise SystemExit(7)"), exit_code=7)
        root = self.one(collector.spans(), pathlib.Path(sys.executable).name)
        self.assertEqual(root.parent, "")
        self.assertIn("exited with code 7", root.error)
        self.assertEqual(root.attributes["process.exit.code"], 7)

    def test_many_rounds_come_in_batches(self):
        with StandInCollector() as collector:
            self.traced(collector.url, "--num-workers", 1, *python("for i in range(2000): print(f'[{i}]\\ta-b:{i}')"))
        rounds = [span.attributes["warren.round"] for span in collector.spans() if span.name == "round"]
        self.assertEqual(rounds, list(range(2000)))
        self.assertGreaterEqual(len(collector.requests), 4)

    def test_of_too_many_rounds_some_are_left_out_and_the_job_is_not(self):
        with StandInCollector() as collector:
            job = self.traced(collector.url, "--num-workers", 1, "--jobname", "many", *python(
                "print('\\n'.join(f'[{i}]\\ttrain-rmse:{1 / (i + 1)}' for i in range(20000)))"))
        self.assertIn("more than 16384 spans wait to be sent; rounds are left out", job.err)
        spans = collector.spans()
        root = self.one(spans, "many")
        self.assertEqual(self.one(spans, "attempt").parent, root.id)

    def test_an_interim_answer_is_not_the_answer(self):
        with StandInCollector((100, "{}")) as collector:
            job = self.traced(collector.url, "--num-workers", 1, "true")
        self.assertNotIn("lost", job.err)

    def test_words_of_a_collector_are_short_and_printable(self):
        said = json.dumps({"partialSuccess": {"rejectedSpans": "1", "errorMessage": "\x1b[31mred\n" + "x" * 900_000}})
        with StandInCollector((200, said)) as collector:
            job = self.traced(collector.url, "--num-workers", 1, "true")
        self.assertIn(r"1 span rejected: \x1b[31mred xxx", job.err)
        self.assertLess(len(job.err), 2000)

    @unittest.skipIf(os.environ.get("WARREN_SANITIZE"), "its workers load librabit into Python")
    def test_rounds_that_workers_report(self):
        with StandInCollector() as collector:
            self.traced(collector.url, "--num-workers", 2, "--hang-timeout", 0, sys.executable, WATCHED_WORKER, "rounds", 3, "0.01",
                        environment=PACKAGE)  # fmt: skip
        rounds = [span.attributes for span in collector.spans() if span.name == "round"]
        self.assertLessEqual({"warren.round": 3, "warren.rounds": 3, "warren.metric.rmse": 0.25}.items(), rounds[-1].items())

    def test_a_variable_of_the_user_is_kept(self):
        with StandInCollector() as collector:
            job = self.traced(collector.url, "--num-workers", 1, "--env", "TRACEPARENT=mine", "sh", "-c", "echo $TRACEPARENT")
        self.assertIn("mine", job.out)

    def test_without_an_endpoint_nothing_changes(self):
        job = self.submit("--num-workers", 1, "sh", "-c", "echo =$TRACEPARENT=", environment={"TRACEPARENT": PARENT})
        self.assertIn(f"={PARENT}=", job.out)
        self.assertNotIn("trace", job.err)


class Failures(Traced):
    def check(self, job, url, *words):
        """Checks that the job has given a single warning, which contains the URL for traces and these words."""
        warnings = [line for line in job.err.splitlines() if "warning: " in line]
        self.assertEqual(len(warnings), 1, job.err)
        for word in (f"{url}/v1/traces", *words):
            self.assertIn(word, warnings[0])

    def test_an_endpoint_that_refuses_connections(self):
        with silent_server() as url:
            pass
        # After the end of the job, a refused connection is not tried again. A second try would come a second later, after this limit.
        job = self.traced(url, "--num-workers", 2, "true", environment={"OTEL_BSP_EXPORT_TIMEOUT": "900"})
        self.check(job, url, "Connection refused")

    def test_a_collector_that_rejects(self):
        for status, text, words in ((404, "", "HTTP status 404"),
                                    (200, '{"partialSuccess":{"rejectedSpans":"4","errorMessage":"too old"}}', "4 spans rejected: too old")):  # fmt: skip
            with self.subTest(status), StandInCollector((status, text)) as collector:
                self.check(self.traced(collector.url, "--num-workers", 1, "true"), collector.url, words)
                self.assertEqual(len(collector.requests), 1)

    def test_a_collector_that_is_busy_is_asked_again_once(self):
        with StandInCollector((503, ""), (200, "")) as collector:
            job = self.traced(collector.url, "--num-workers", 1, "true")
        self.assertNotIn("warning", job.err)
        self.assertEqual(len(collector.requests), 2)
        self.assertEqual(collector.requests[0][2], collector.requests[1][2])
        with StandInCollector((503, "")) as collector:
            self.check(self.traced(collector.url, "--num-workers", 1, "true"), collector.url, "HTTP status 503")
        self.assertEqual(len(collector.requests), 2)

    def test_a_collector_that_never_answers_delays_the_end_by_a_bounded_time(self):
        with silent_server() as url:
            began = time.monotonic()
            job = self.traced(url, "--num-workers", 1, "true", environment={"OTEL_BSP_EXPORT_TIMEOUT": "700"})
            took = time.monotonic() - began
            self.check(job, url, "within 0.7 s after the end of the job")
            self.assertGreater(took, 0.7)
            # Without the bound, the wait would last for the request's own limit, 10 s. (Starting and ending a job may take seconds on a
            # busy machine.)
            self.assertLess(took, 9)

    def test_a_request_has_a_limit_of_its_own(self):
        with silent_server() as url:
            job = self.traced(url, "--num-workers", 1, "true", environment={"OTEL_EXPORTER_OTLP_TIMEOUT": "100", "OTEL_BSP_EXPORT_TIMEOUT": "60000"})
            self.check(job, url, "no answer within 0.1 s")

    def test_a_job_that_is_interrupted_waits_less(self):
        with silent_server() as url:
            job = self.start("--num-workers", 1, *python("print('runs', flush=True); import time; time.sleep(600)"),
                             environment={"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_EXPORT_TIMEOUT": "60000"})  # fmt: skip
            self.wait_for_text(job.stdout, "runs")
            job.send_signal(signal.SIGINT)
            _, err = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 130)
        self.assertIn("within 0.5 s after the end of the job", err.decode())

    def test_a_signal_ends_the_wait_for_the_collector(self):
        with silent_server() as url:
            job = self.start("--num-workers", 1, "true", environment={"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_TIMEOUT": "600000",
                                                                     "OTEL_BSP_EXPORT_TIMEOUT": "600000"})  # fmt: skip
            records = self.directory / "state/warren/jobs"
            wait_for(lambda: any("exit_code" in file.read_text() for file in records.glob("*.json")), LIMIT_S, "the end of the job")
            job.send_signal(signal.SIGINT)
            job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 0, "the job had succeeded")

    def test_a_protocol_that_is_not_spoken_is_said_once(self):
        job = self.traced("http://127.0.0.1:4317", "--num-workers", 1, "sh", "-c", "echo =$TRACEPARENT=", environment={"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
        self.assertEqual(job.err.count("no traces are sent: OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'"), 1)
        self.assertIn("==", job.out)


@unittest.skipUnless(shutil.which("openssl"), "no openssl, which makes certificates")
class Https(Traced):
    def job(self, url, authorities):
        return self.traced(url, "--num-workers", 1, "true", environment={"OTEL_EXPORTER_OTLP_CERTIFICATE": str(authorities)} if authorities else {})

    def test_a_collector_with_a_trusted_certificate(self):
        certificate, both = stand_in_collector.certificate_of("IP:127.0.0.1,DNS:localhost", self.directory)
        with StandInCollector(certificate=both) as collector:
            for url in (collector.url, collector.url.replace("127.0.0.1", "localhost")):
                with self.subTest(url):
                    job = self.job(url, certificate)
                    self.assertNotIn("warning", job.err)
        self.assertEqual([span.name for span in collector.spans()], 2 * ["start", "attempt", "true"])

    def test_a_collector_that_is_not_trusted_gets_nothing(self):
        for names, trusts in (("IP:127.0.0.1", False), ("DNS:elsewhere", True)):
            with self.subTest(names):
                certificate, both = stand_in_collector.certificate_of(names, self.directory)
                with StandInCollector(certificate=both) as collector:
                    job = self.job(collector.url, certificate if trusts else None)
                self.assertRegex(job.err, "warning: spans of the job are lost, .*: " + collector.url + "/v1/traces: certificate verify failed: "
                                 + ("IP address mismatch" if trusts else "self-signed certificate"))  # fmt: skip
                self.assertEqual(collector.requests, [])

    def test_authorities_that_cannot_be_read(self):
        job = self.job("https://127.0.0.1:4318", self.file("none.pem"))
        self.assertIn("warning: no traces are sent to https://127.0.0.1:4318/v1/traces: cannot read the certificates", job.err)
        self.assertIn("none.pem", job.err)


if __name__ == "__main__":
    unittest.main()
