# SPDX-License-Identifier: ISC
"""Many sessions that hand over messages with tokens, and remember which were taken on."""

import re
import threading
import time

from .net import LOOPBACK, wait_until
from .smtp import Client, Closed, stuff

_TOKEN = re.compile(rb"^X-Token: (\S+)\r$", re.MULTILINE)


def token(content):
    """Return the token of a message that a load has sent."""
    return _TOKEN.search(content)[1].decode("ascii")


class Load:
    """Sends until so many messages were answered 250; each attempt has a token of its own.

    A session that loses its connection, or is told 421 or 4xx, connects again.
    """

    def __init__(self, port, messages, sessions=10, size=200, domains=("dest.test",), first=0):
        """Start at once. The size is one for all, or a function of a message's number, which begins with the first."""
        self.port = port
        self.messages = messages
        self.domains = domains
        self.size = size if callable(size) else lambda _: size
        self.acknowledged = {}
        self.refused = []
        self._tried = self._first = first
        self._stopped = False
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._session, daemon=True) for _ in range(sessions)
        ]
        self._begun = 0
        for thread in self._threads:
            thread.start()

    def _take(self):
        """Return the number of the next attempt, or None when all that is wanted is under way."""
        with self._lock:
            if self._stopped or len(self.acknowledged) + self._begun >= self.messages:
                return None
            self._begun += 1
            self._tried += 1
            return self._tried - 1

    def _session(self):
        client = None
        while not self._over():
            number = self._take()
            if number is None:
                time.sleep(0.01)
                continue
            try:
                client = client or self._connect()
                self._send(client, number)
            except (Closed, OSError, AssertionError) as failure:
                self.refused.append(str(failure))
                client = client.close() if client else None
                time.sleep(0.02)
            finally:
                with self._lock:
                    self._begun -= 1
        if client:
            client.close()

    def _over(self):
        return self._stopped or len(self.acknowledged) >= self.messages

    def _connect(self):
        client = Client(LOOPBACK, self.port, 20.0)
        try:
            client.greet()
        except BaseException:
            client.close()
            raise
        return client

    @property
    def attempts(self):
        """The tokens of all that was tried so far, taken on or not."""
        with self._lock:
            return {f"t{number}" for number in range(self._first, self._tried)}

    def content(self, number):
        """Return the message of that number, as it is meant."""
        line = b"x" * 70 + b"\r\n"
        head = f"Subject: load\r\nX-Token: t{number}\r\n\r\n".encode("ascii")
        return head + line * max(1, self.size(number) // len(line))

    def _send(self, client, number):
        domain = self.domains[number % len(self.domains)]
        envelope = f"MAIL FROM:<from@sender.test>\r\nRCPT TO:<to{number}@{domain}>\r\nDATA\r\n"
        content = self.content(number)
        client.send(envelope.encode("ascii"))
        client.expect(250)
        client.expect(250)
        client.expect(354)
        client.send(stuff(content))
        reply = client.expect(250)
        with self._lock:
            self.acknowledged[f"t{number}"] = reply.lines[0].split()[-1]

    def wait_acknowledged(self, count, timeout=60.0):
        """Wait until so many messages were answered 250."""
        wait_until(
            lambda: len(self.acknowledged) >= count,
            timeout,
            f"{count} messages to be taken on ({self.refused[-3:]})",
        )

    def finish(self, timeout=60.0):
        """Wait until all were answered 250; return their ids by their tokens."""
        self.wait_acknowledged(self.messages, timeout)
        for thread in self._threads:
            thread.join(timeout)
        return self.acknowledged

    def close(self):
        """End the sessions."""
        self._stopped = True
        for thread in self._threads:
            thread.join(60)
