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


def passed(relays, login, seconds, listener=None):
    """Return how many messages may pass at each node."""
    clients = [Hasty(relay, login, listener) for relay in relays]
    threads = [threading.Thread(target=client.run, args=(seconds,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    return [client.passed for client in clients]
