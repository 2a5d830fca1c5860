# SPDX-License-Identifier: ISC
"""Receivers of the relay's events: an HTTP server and a Unix socket, which can be slow, refuse, and go away."""

import contextlib
import http.server
import json
import os
import socket
import ssl
import threading
import time

from .net import LOOPBACK, free_port


class HttpReceiver:
    """Takes POSTs; keeps the events of those that it answers with 200."""

    def __init__(self, certificate=None, key=None):
        """Listen nowhere yet: start() does, under TLS where there is a certificate."""
        self._certificate, self._key = certificate, key
        self.port = free_port()
        self.events = []
        self.posts = []  # (status, number of events, headers)
        self.answers = []  # statuses for the next requests; 200 when there is none
        self.headers = {}  # of answers that are not 200
        self.says = b""  # behind the head of each answer
        self.owes = 0  # bytes that are announced there, and never come
        self.wait = 0.0
        self.open = []  # connections
        self._server = None

    @property
    def url(self):
        """Where to post to."""
        return f"{'https' if self._certificate else 'http'}://{LOOPBACK}:{self.port}/mail/events"

    def start(self):
        """Listen. Returns self."""
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                receiver.open.append(self.connection)

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.take(body, dict(self.headers))
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in receiver.headers.items() if status != 200 else ():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(receiver.says) + receiver.owes))
                    self.end_headers()
                    self.wfile.write(receiver.says)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self._server = http.server.ThreadingHTTPServer((LOOPBACK, self.port), Handler)
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate, self._key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def take(self, body, headers):
        """Judge one request, and keep what is in it; returns the status."""
        time.sleep(self.wait)
        lines = body.decode("utf-8").splitlines()
        assert body.endswith(b"\n") and lines
        status = self.answers.pop(0) if self.answers else 200
        self.posts.append((status, len(lines), headers))
        if status == 200:
            self.events += [json.loads(line) for line in lines]
        return status

    def close(self):
        """Be away, and end what is open."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        while self.open:
            with contextlib.suppress(OSError):
                self.open.pop().shutdown(socket.SHUT_RDWR)


class SocketReceiver:
    """Reads lines from whoever connects to a Unix socket."""

    def __init__(self, path):
        """Listen nowhere yet: start() does."""
        self.path = str(path)
        self.events = []
        self.reads = True
        self._listening = None
        self._open = []

    def start(self):
        """Listen. Returns self."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self.path)
        self._listening.listen(5)
        threading.Thread(target=self._serve, args=(self._listening,), daemon=True).start()
        return self

    def _serve(self, listening):
        with contextlib.suppress(OSError):
            while True:
                one, _ = listening.accept()
                self._open.append(one)
                threading.Thread(target=self._read, args=(one,), daemon=True).start()

    def _read(self, one):
        with contextlib.suppress(OSError), one.makefile("rb") as stream:
            while True:
                while not self.reads:
                    time.sleep(0.01)
                line = stream.readline()
                if not line.endswith(b"\n"):
                    break
                self.events.append(json.loads(line))

    def close(self):
        """Be away, and end what is open."""
        if self._listening:
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            self._listening = None
        while self._open:
            with contextlib.suppress(OSError):
                self._open[-1].shutdown(socket.SHUT_RDWR)
            self._open.pop().close()
