# SPDX-License-Identifier: ISC
"""The HTTPS host of MTA-STS policies, honest or not."""

import contextlib
import http.server
import ssl
import threading

from .net import LOOPBACK


def policy(mode, *hosts, max_age=86400):
    """Return the text of a policy."""
    return f"version: STSv1\nmode: {mode}\nmax_age: {max_age}\n" + "".join(f"mx: {host}\n" for host in hosts)


class PolicyHost:
    """Serves https://mta-sts.DOMAIN/.well-known/mta-sts.txt for many domains.

    What each domain answers is in answers, by its name: a text; or a function, which is given the
    request's handler. Who was asked is in asked, in order. It takes reports, too: posted.
    """

    def __init__(self):
        """Listen at once; the certificate is the context's to load."""
        self.answers, self.asked = {}, []
        self.posted, self.post_status = [], 201
        self.post_says = b""  # behind the head of the answer to a report
        host = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""

            def do_GET(self):
                """Note who is asked, and answer."""
                name = self.headers["Host"].partition(":")[0]
                assert name.startswith("mta-sts.") and self.path == "/.well-known/mta-sts.txt", self.path
                domain = name.removeprefix("mta-sts.")
                host.asked.append(domain)
                answer = host.answers.get(domain, lambda handler: handler.send_error(404))
                try:
                    answer(self) if callable(answer) else self.give(answer)
                except OSError:
                    pass  # more than it would take

            def do_POST(self):
                """Keep what is posted: who was asked, its type and its bytes."""
                content = self.rfile.read(int(self.headers["Content-Length"]))
                host.posted.append((self.headers["Host"].partition(":")[0], self.headers["Content-Type"], content))
                self.send_response(host.post_status)
                self.send_header("Content-Length", str(len(host.post_says)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(host.post_says)

            def give(self, text, kind="text/plain", status=200, **headers):
                """Answer with this text."""
                self.send_response(status)
                for field, value in ({"Content-Type": kind, "Content-Length": str(len(text))} | headers).items():
                    self.send_header(field, value)
                self.end_headers()
                self.wfile.write(text.encode("ascii"))

            def log_message(self, *_):
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.server.daemon_threads = True
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.socket = self.context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()
