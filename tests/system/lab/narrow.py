# SPDX-License-Identifier: ISC
"""A TCP proxy in front of an SMTP server on which a large ClientHello comes to grief, as on some middleboxes."""

import contextlib
import socket
import struct
import threading

from .net import LOOPBACK

_HEAD = 5  # bytes of a TLS record before its content
SEGMENT = 1400  # bytes that pass


class NarrowProxy:
    """Listens on a port of its own, and passes each connection on to another.

    What a client sends behind STARTTLS is a ClientHello. One of more than `room` bytes is never answered, or with
    resets the connection is reset. `hellos` has the sizes of all that came, in their order, and `clear` how
    many connections sent MAIL without TLS.
    """

    def __init__(self, to_port, room=SEGMENT, resets=False):
        """Listen at once."""
        self.to_port, self.room, self.resets = to_port, room, resets
        self.hellos = []
        self.clear = 0
        self._sockets = []
        self.listener = socket.create_server((LOOPBACK, 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self._start(self._accept)

    @staticmethod
    def _start(function, *arguments):
        threading.Thread(target=function, args=arguments, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection((LOOPBACK, self.to_port))
                self._sockets += [client, server]
                self._start(self._copy, server, client)
                self._start(self._serve, client, server)

    def _serve(self, client, server):
        with contextlib.suppress(OSError):
            if self._pass_commands(client, server) and self._pass_hello(client, server):
                self._copy(client, server)
        for one in (client, server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _pass_commands(self, client, server):
        """Pass lines on, up to STARTTLS; or else to the end."""
        line = b""
        while not line.upper().startswith(b"STARTTLS"):
            line = self._line(client)
            if not line:
                return False
            self.clear += line.upper().startswith(b"MAIL")
            server.sendall(line)
        return True

    @staticmethod
    def _line(client):
        line = b""
        while not line.endswith(b"\n"):
            byte = client.recv(1)
            if not byte:
                return b""
            line += byte
        return line

    def _pass_hello(self, client, server):
        head = client.recv(_HEAD, socket.MSG_WAITALL)
        if len(head) < _HEAD:
            return False
        record = head + client.recv(int.from_bytes(head[3:], "big"), socket.MSG_WAITALL)
        self.hellos.append(len(record))
        if len(record) <= self.room:
            server.sendall(record)
            return True
        if self.resets:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        else:
            client.recv(1)  # until it has had enough
        return False

    @staticmethod
    def _copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self):
        """Stop listening, and drop the connections that are left."""
        for one in [self.listener, *self._sockets]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
