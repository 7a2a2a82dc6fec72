"""A stand-in for the HTTPS endpoint of Kubeflow Trainer's controller (KEP-2779), with a self-signed certificate."""

import http.server
import json
import pathlib
import ssl
import subprocess
import threading

TOKEN = "a-token"
PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/boost/status"


class Controller:
    """Serves until `close` is called. `statuses`: the accepted status updates. `refused`: the number of requests answered with an error."""

    def __init__(self, folder, refuses=False):
        self.statuses, self.refused = [], 0
        key, certificate = pathlib.Path(folder, "key.pem"), pathlib.Path(folder, "ca.crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        token = pathlib.Path(folder, "token")
        token.write_text(f"{TOKEN}\n", encoding="utf-8")
        controller = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.endswith("/moved"):
                    self.send_response(302)
                    self.send_header("Location", PATH)
                    self.end_headers()
                    return
                is_ours = self.path == PATH and self.headers["Authorization"] == f"Bearer {TOKEN}"
                if refuses or not is_ours or self.headers["Content-Type"] != "application/json":
                    controller.refused += 1
                    self.answer(403, {"kind": "Status", "message": "Forbidden", "code": 403})
                    return
                controller.statuses.append(json.loads(body)["trainerStatus"])
                self.answer(200, json.loads(body))

            def do_GET(self):
                controller.refused += 1  # a redirect was followed, which would expose the token
                self.answer(403, {})

            def answer(self, code, value):
                text = json.dumps(value).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.environment = {"KUBEFLOW_TRAINER_SERVER_URL": f"https://localhost:{self._server.server_port}{PATH}",
                            "KUBEFLOW_TRAINER_SERVER_CA_CERT": str(certificate), "KUBEFLOW_TRAINER_SERVER_TOKEN": str(token)}

    def close(self):
        self._server.shutdown()
        self._server.server_close()
