# SPDX-License-Identifier: ISC
"""An OAuth token endpoint over HTTPS, which answers as it is told."""

import http.server
import json
import ssl
import threading
import urllib.parse

from .net import LOOPBACK


class TokenEndpoint:
    """Answers each path with what the test has put in answers: a status and a body.

    A body that is a dictionary goes out as JSON. What was asked is in forms, by path.
    """

    def __init__(self, certificate, key):
        """Listen at once."""
        self.answers, self.forms = {}, {}
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self):
                """Note the form, and answer."""
                form = self.rfile.read(int(self.headers["Content-Length"])).decode("ascii")
                endpoint.forms.setdefault(self.path, []).append(dict(urllib.parse.parse_qsl(form)))
                status, body = endpoint.answers[self.path]
                body = json.dumps(body).encode("ascii") if isinstance(body, dict) else body
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # more than it would take

            def log_message(self, *_):
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path, host="localhost"):
        """Return the address of a path."""
        return f"https://{host}:{self.port}{path}"

    def close(self):
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()
