# SPDX-License-Identifier: ISC
"""A server of Sendmail's and Postfix's socketmap protocol, honest or not."""

import os
import socketserver
import threading

from .net import LOOPBACK, free_port


def netstring(text):
    """Return a text as it goes over the wire."""
    data = text.encode() if isinstance(text, str) else text
    return b"%d:%s," % (len(data), data)


class SocketmapServer:
    """Answers NAME KEY with what the test has put in maps[NAME][KEY], and NOTFOUND without it.

    mood is a function of a handler and the answer, which writes what is to be written instead. Each question is
    in asked, as (name, key); connections counts those that were made.
    """

    def __init__(self, path=None, port=0):
        """Say where it listens: a Unix socket, or a port of the loopback address."""
        self.path, self.port = path, port or free_port()
        self.maps, self.asked, self.connections = {}, [], 0
        self.mood = None
        self.released = threading.Event()
        self.server, self.open = None, []

    def start(self):
        """Listen. Returns self."""
        of = self

        class Handler(socketserver.StreamRequestHandler):
            """One connection."""

            def handle(self):
                """Answer questions until there are no more."""
                of.connections += 1
                of.open.append(self.connection)
                try:
                    while (question := self.read()) is not None:
                        self.answer(question)
                except (OSError, ValueError):
                    pass

            def read(self):
                """Return a question, or None at the end."""
                digits = b""
                while (byte := self.rfile.read(1)) != b":":
                    if not byte:
                        return None
                    digits += byte
                question = self.rfile.read(int(digits))
                assert self.rfile.read(1) == b","
                return question.decode()

            def answer(self, question):
                """Write what there is of it, in the mood of the server."""
                name, _, key = question.partition(" ")
                of.asked.append((name, key))
                value = of.maps.get(name, {}).get(key)
                text = "NOTFOUND " if value is None else value if value.startswith(("TEMP ", "PERM ", "TIMEOUT ")) else f"OK {value}"
                if of.mood:
                    of.mood(self, text)
                else:
                    self.wfile.write(netstring(text))

        base = socketserver.ThreadingUnixStreamServer if self.path else socketserver.ThreadingTCPServer
        kind = type("Server", (base,), {"daemon_threads": True, "allow_reuse_address": True, "block_on_close": False})
        if self.path and os.path.exists(self.path):
            os.unlink(self.path)
        self.server = kind(self.path or (LOOPBACK, self.port), Handler)
        if self.path:
            os.chmod(self.path, 0o666)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def table(self, name):
        """Return what a configuration calls one of its maps."""
        where = f"unix:{self.path}" if self.path else f"inet:{LOOPBACK}:{self.port}"
        return f"socketmap:{where}:{name}"

    def hang_up(self):
        """Close all connections, and go on listening."""
        for connection in self.open:
            try:
                connection.shutdown(2)
            except OSError:
                pass
        self.open = []

    def stop(self):
        """Go away. Those that wait are released."""
        self.released.set()
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
        self.hang_up()
