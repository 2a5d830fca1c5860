# SPDX-License-Identifier: ISC
"""A TCP proxy that delays what passes, both ways, and remembers it; the bandwidth is not limited."""

import contextlib
import queue
import re
import socket
import threading
import time

from .net import LOOPBACK

_TAIL = 100  # longest text that a pattern of in_flight() matches


class DelayProxy:
    """Listens on a port of its own, and passes each connection on to another.

    With held, what comes from the clients waits until open() is called. Threads sleep, because
    they wake more punctually than an event loop does.
    """

    def __init__(self, to_port, one_way=0.0, held=False, remember=True):
        """Listen at once; one_way is in seconds."""
        self.to_port, self.one_way, self.remember = to_port, one_way, remember
        self.passed = []  # (connection, from the client, bytes), in the order of their coming
        self.connections = 0
        self._sockets = []
        self._gate = threading.Event()
        if not held:
            self._gate.set()
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
                self._sockets.append(client)
                self._start(self._serve, self.connections, client)
                self.connections += 1

    def _serve(self, number, client):
        self._gate.wait()
        time.sleep(2 * self.one_way)  # SYN and its answer
        try:
            server = socket.create_connection((LOOPBACK, self.to_port))
        except OSError:
            client.close()
            return
        self._sockets.append(server)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start(self._pass, number, True, client, server)
        self._start(self._pass, number, False, server, client)

    def _pass(self, number, by_client, source, target):
        waiting = queue.SimpleQueue()
        self._start(self._write, waiting, target)
        data = b"-"
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            if self.remember:
                self.passed.append((number, by_client, data))
            waiting.put((time.monotonic() + self.one_way, data))

    @staticmethod
    def _write(waiting, target):
        with contextlib.suppress(OSError):
            while True:
                due, data = waiting.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)

    def open(self):
        """Let pass what was held."""
        self._gate.set()

    def in_flight(self, asked, answered):
        """Return the most commands on one connection that had passed without their replies."""
        most, state = 0, {}
        for number, by_client, data in list(self.passed):
            open_now, tails = state.get(number, (0, {True: b"", False: b""}))
            text, before = tails[by_client] + data, len(tails[by_client])
            found = sum(1 for one in re.finditer(asked if by_client else answered, text)
                        if one.end() > before)
            tails[by_client] = text[-_TAIL:]
            open_now += found if by_client else -found
            state[number] = (open_now, tails)
            most = max(most, open_now)
        return most

    def close(self):
        """Stop listening, and drop the connections that are left."""
        self._gate.set()
        for one in [self.listener, *self._sockets]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
