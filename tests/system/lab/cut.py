# SPDX-License-Identifier: ISC
"""A cable that can be cut: TCP proxies to some ports, which pass nothing while it is."""

import contextlib
import selectors
import socket
import threading

from .net import LOOPBACK


class Cut:
    """One port here for each of those ports."""

    def __init__(self, ports):
        """Listen at once, uncut."""
        self.whole = True
        self._pairs = []
        self._lock = threading.Lock()
        self._listeners = []
        for port in ports:
            listener = socket.create_server((LOOPBACK, 0), backlog=64)
            self._listeners.append(listener)
            threading.Thread(target=self._accept, args=(listener, port), daemon=True).start()

    @property
    def addresses(self):
        """What a relay's setting says of them."""
        return ",".join(f"{LOOPBACK}:{one.getsockname()[1]}" for one in self._listeners)

    def _accept(self, listener, port):
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with self._lock:
                    pair = self._connect(client, port)
                if pair:
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _connect(self, client, port):
        pair = None
        if self.whole:
            with contextlib.suppress(OSError):
                pair = client, socket.create_connection((LOOPBACK, port))
                self._pairs.append(pair)
        if not pair:
            client.close()
        return pair

    @staticmethod
    def _pass(client, server):
        other = {client: server, server: client}
        with selectors.DefaultSelector() as ready, contextlib.suppress(OSError, ValueError):
            for one in other:
                ready.register(one, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(1 << 16)
                    if not data:
                        raise OSError
                    other[key.fileobj].sendall(data)
        for one in other:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def cut(self):
        """From now on nothing passes."""
        with self._lock:
            self.whole = False
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for one in pair:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def mend(self):
        """It is whole again."""
        self.whole = True

    def close(self):
        """End all of it."""
        self.cut()
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
