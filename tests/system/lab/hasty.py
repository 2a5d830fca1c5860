# SPDX-License-Identifier: ISC
"""Clients that begin a hundred and more messages a second, and count those that they may."""

import threading
import time

from . import sasl


class Hasty:
    """One of them."""

    def __init__(self, relay, login=None, listener=None):
        """Connect, and log in where there is a login."""
        self.passed = 0
        self._client = relay.client(listener).__enter__()
        self._client.greet()
        if login:
            self._client.command(f"AUTH PLAIN {sasl.plain(login, 'secret')}", 235)

    def run(self, seconds):
        """Go on for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._client.send(b"MAIL FROM:<from@sender.test>\r\nRSET\r\n")
            self.passed += self._client.read_reply().code == 250
            self._client.expect(250)
            time.sleep(0.005)

    def close(self):
        """Be gone."""
        self._client.__exit__(None, None, None)


class Caller:
    """A client that connects again and again, and counts how often it was greeted."""

    def __init__(self, relay, listener):
        """Nothing yet."""
        self.passed = 0
        self._relay, self._listener = relay, listener

    def run(self, seconds):
        """Go on for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self._relay.client(self._listener) as client:
                self.passed += client.read_reply().code == 220
            time.sleep(0.005)

    def close(self):
        """It is gone."""


def _run(clients, seconds):
    threads = [threading.Thread(target=client.run, args=(seconds,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    return [client.passed for client in clients]


def greeted(relays, listener, seconds):
    """Return how often each node welcomes one client."""
    return _run([Caller(relay, listener) for relay in relays], seconds)


def passed(relays, login, seconds, listener=None):
    """Return how many messages may pass at each node."""
    return _run([Hasty(relay, login, listener) for relay in relays], seconds)
