# SPDX-License-Identifier: ISC
"""A TCP proxy whose connections stand, and bring answers late or never."""

import contextlib
import queue
import socket
import threading
import time

from .net import LOOPBACK


class Hushed:
    """Listens on a port of its own, and passes each connection on to another.

    From the first command on that has this word (b"" is any) a connection's answers are dropped, or come so many seconds late.
    None: all of them pass. It holds for what is asked from now on.
    """

    def __init__(self, to_port, word=None, late=None):
        """Listen at once."""
        self.to_port, self.word, self.late = to_port, word, late
        self.connections = 0
        self._sockets = []
        self._listener = socket.create_server((LOOPBACK, 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = socket.create_connection((LOOPBACK, self.to_port))
                self._sockets += [client, server]
                hushed = threading.Event()
                threading.Thread(target=self._ask, args=(client, server, hushed), daemon=True).start()
                threading.Thread(target=self._answer, args=(client, server, hushed), daemon=True).start()

    def _ask(self, client, server, hushed):
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if self.word is not None and self.word in data:
                    hushed.set()
                server.sendall(data)
        self._end(client, server)

    def _answer(self, client, server, hushed):
        waiting = queue.SimpleQueue()
        threading.Thread(target=self._write, args=(waiting, client), daemon=True).start()
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if not hushed.is_set():
                    waiting.put((0.0, data))
                elif self.late is not None:
                    waiting.put((time.monotonic() + self.late, data))
        waiting.put((0.0, b""))

    def _write(self, waiting, client):
        with contextlib.suppress(OSError):
            while True:
                due, data = waiting.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    break
                client.sendall(data)
        self._end(client)

    @staticmethod
    def _end(*sockets):
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Stop listening, and drop the connections that are left."""
        self._end(self._listener, *self._sockets)
        for one in [self._listener, *self._sockets]:
            one.close()
