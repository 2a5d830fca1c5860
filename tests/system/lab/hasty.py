# SPDX-License-Identifier: ISC
"""Clients that begin a hundred and more messages a second, and count those that they may."""

import threading
import time

from . import sasl


REFUSALS = 20


class Hasty:
    """One of them."""

    def __init__(self, relay, login=None, listener=None):
        """Connect, and log in where there is a login."""
        self.passed = 0
        self._client = relay.client(listener).__enter__()
        self._client.greet()
        if login:
            self._client.command(f"AUTH PLAIN {sasl.plain(login, 'secret')}", 235)

    def try_one(self):
        """Begin a message, and say whether that was allowed."""
        self._client.send(b"MAIL FROM:<from@sender.test>\r\nRSET\r\n")
        code = self._client.read_reply().code
        self._client.expect(250)
        return code == 250

    def close(self):
        """Be gone."""
        self._client.__exit__(None, None, None)


class Caller:
    """A client that connects again and again, and counts how often it was greeted."""

    def __init__(self, relay, listener):
        """Nothing yet."""
        self.passed = 0
        self._relay, self._listener = relay, listener

    def try_one(self):
        """Connect, and say whether the greeting was one."""
        with self._relay.client(self._listener) as client:
            return client.read_reply().code == 220

    def close(self):
        """It is gone."""


def _go_on(client):
    """Until it was refused REFUSALS times running: then its limit is reached."""
    refused = 0
    while refused < REFUSALS:
        passed = client.try_one()
        client.passed += passed
        refused = 0 if passed else refused + 1
        time.sleep(0.005)


def _run(clients):
    threads = [threading.Thread(target=_go_on, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    return [client.passed for client in clients]


def greeted(relays, listener):
    """Return how often each node welcomes one client."""
    return _run([Caller(relay, listener) for relay in relays])


def passed(relays, login, listener=None):
    """Return how many messages may pass at each node."""
    return _run([Hasty(relay, login, listener) for relay in relays])
