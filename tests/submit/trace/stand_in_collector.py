"""A stand-in for an OpenTelemetry collector, which keeps the requests that it receives, and a check of requests against the definitions of
OTLP in the package opentelemetry-proto."""

import base64
import contextlib
import http.server
import json
import socket
import ssl
import subprocess
import threading


class StandInCollector:
    """Listens on 127.0.0.1. `answers`: the status and body of each response; the last response is repeated. Status 100 stands for 100 followed
    by 200. `certificate`: a file with a certificate and its key, which makes the server use https."""

    def __init__(self, *answers, certificate=None):
        self.answers = list(answers or [(200, "{}")])
        self.requests = []  # tuples of path, headers and body
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, dict(self.headers), body))
                status, text = collector.answers.pop(0) if len(collector.answers) > 1 else collector.answers[0]
                if status == 100:
                    self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    status = 200
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                """Ignores the error: a client that does not trust the certificate closes the connection."""

        self._server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def bodies(self):
        return [json.loads(body) for _, _, body in self.requests]

    def resources(self):
        return [attributes(all["resource"]) for body in self.bodies() for all in body["resourceSpans"]]

    def spans(self):
        return [Span(span) for body in self.bodies() for all in body["resourceSpans"] for some in all["scopeSpans"] for span in some["spans"]]


class Span:
    def __init__(self, span):
        self.trace, self.id, self.parent, self.name = span["traceId"], span["spanId"], span.get("parentSpanId", ""), span["name"]
        self.begin, self.end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        self.state = span.get("traceState", "")
        self.attributes = attributes(span)
        self.events = [(event["name"], attributes(event)) for event in span.get("events", [])]
        self.error = span["status"]["message"] if span.get("status", {}).get("code") == 2 else ""

    def __repr__(self):
        return f"{self.name} {self.attributes} {self.error}"


def attributes(thing):
    """The attributes of a resource, a span or an event."""
    found = {}
    for attribute in thing["attributes"]:
        ((kind, value),) = attribute["value"].items()
        found[attribute["key"]] = int(value) if kind == "intValue" else value
    return found


def certificate_of(names, folder):
    """Creates a self-signed certificate for `names` (a subjectAltName) in `folder`. Returns the paths of the certificate and of a file with the
    certificate and its key."""
    certificate, key, both = (folder / name for name in ("certificate.pem", "key.pem", "both.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=stand-in",
                    "-addext", f"subjectAltName={names}", "-keyout", key, "-out", certificate], check=True, capture_output=True)  # fmt: skip
    both.write_bytes(certificate.read_bytes() + key.read_bytes())
    return certificate, both


@contextlib.contextmanager
def silent_server():
    """Yields the URL of a server that accepts connections but never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


_PARSE = """
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
request = json_format.Parse(sys.stdin.read(), ExportTraceServiceRequest())
for span in (span for all in request.resource_spans for some in all.scope_spans for span in some.spans):
    assert len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8), span
    assert span.kind == span.SPAN_KIND_INTERNAL and 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
print(sum(len(some.spans) for all in request.resource_spans for some in all.scope_spans))
"""


def number_of_spans(python, body):
    """Parses a request according to OTLP's own definitions; unknown fields are errors. Returns the number of spans. Raises AssertionError
    if the request or a span is invalid."""
    request = json.loads(body)
    # IDs are hexadecimal in OTLP's JSON, but base64 in protobuf's JSON.
    for span in (span for all in request["resourceSpans"] for some in all["scopeSpans"] for span in some["spans"]):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    done = subprocess.run([python, "-c", _PARSE], input=json.dumps(request), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)
