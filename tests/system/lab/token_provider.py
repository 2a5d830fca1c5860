# SPDX-License-Identifier: ISC
"""A provider of logins: an OAuth token endpoint that keeps account of what it has given out, with device codes."""

import http.server
import itertools
import json
import ssl
import threading
import time
import urllib.parse

from .net import LOOPBACK

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class TokenProvider:
    """Gives an access token for a refresh token, and for a device code once somebody has said yes.

    rotates: with each answer comes another refresh token. keeps_old: the former one is good until the next has been
    used, as some have it; else it is refused at once. In asked is each form, with its path; in wrong, those that
    were refused as invalid_grant. before_answer() is called when an answer has been decided on, before it goes out.
    """

    def __init__(self, certificate, key, rotates=True, keeps_old=False, lifetime=3600):
        """Listen at once. The first refresh token is r0."""
        self.rotates, self.keeps_old, self.lifetime = rotates, keeps_old, lifetime
        self.good, self.old = {"r0"}, {}
        self.asked, self.wrong = [], []
        self.access = set()
        self.device, self.device_says, self.device_interval = {}, ["authorization_pending"], 1
        self.before_answer = self.instead = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer((LOOPBACK, 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _handler(provider):  # pylint: disable=no-self-argument
        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self):
                """Answer it, or do what was said instead."""
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode("ascii")))
                provider.asked.append((self.path, form))
                try:
                    if provider.instead:
                        provider.instead(self)
                        return
                    status, body = provider.answer(self.path, form)
                    if provider.before_answer:
                        provider.before_answer()
                    self.reply(status, json.dumps(body).encode())
                except OSError:
                    pass  # more than it would take, or nobody is there any more

            def reply(self, status, body, *headers):
                """Send a whole answer."""
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Say nothing."""

        return Handler

    def answer(self, path, form):
        """Return status and body."""
        with self._lock:
            if path == "/device":
                return self._begin_device(form)
            if form["grant_type"] == DEVICE_GRANT:
                return self._device(form)
            return self._refresh(form["refresh_token"])

    def _tokens(self, refresh):
        access = f"access-{next(self._numbers)}"
        self.access.add(access)
        body = {"access_token": access, "token_type": "Bearer", "expires_in": self.lifetime, "scope": "mail"}
        return 200, body | ({"refresh_token": refresh} if refresh else {})

    def _refresh(self, token):
        if token not in self.good:
            self.wrong.append(token)
            return 400, {"error": "invalid_grant", "error_description": "the token has expired or was used"}
        if not self.rotates:
            return self._tokens(None)
        self.good -= self.old.pop(token, set())
        fresh = f"r{next(self._numbers)}"
        if self.keeps_old:
            self.old[fresh] = {token}
        else:
            self.good.discard(token)
        self.good.add(fresh)
        return self._tokens(fresh)

    def _begin_device(self, form):
        code = f"device-{next(self._numbers)}"
        self.device[code] = form
        return 200, {"device_code": code, "user_code": "WDJB-MJHT", "verification_uri": "https://login.test/device",
                     "expires_in": 900, "interval": self.device_interval}

    def _device(self, form):
        assert form["device_code"] in self.device
        word = self.device_says.pop(0) if len(self.device_says) > 1 else self.device_says[0]
        if word != "yes":
            return 400, {"error": word}
        fresh = f"r{next(self._numbers)}"
        self.good.add(fresh)
        return self._tokens(fresh)

    def url(self, path="/token", host="localhost"):
        """Return the address of a path."""
        return f"https://{host}:{self.port}{path}"

    def polls(self):
        """Return how often somebody asked whether a device may."""
        return sum(1 for _, form in self.asked if form.get("grant_type") == DEVICE_GRANT)

    def close(self):
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()


def slow_without_end(handler):
    """An answer of which a byte comes now and then."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while True:
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.5)
