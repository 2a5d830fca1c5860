# SPDX-License-Identifier: ISC
"""An SMTP receiver that stores what it gets and misbehaves as it is told."""

import dataclasses
import socket
import threading
import time
from typing import Optional

from .behaviour import Behaviour, Rule
from .net import LOOPBACK, free_port, wait_until
from .sink_session import SinkSession

__all__ = ["Behaviour", "Rule", "Sink", "Transaction"]

ESTABLISHED = 1  # of the states in TCP_INFO


@dataclasses.dataclass
class Transaction:
    """One message that came to its end.

    The content is what was meant, with the dots un-stuffed; the wire is what came, up to and
    with the end of data. The reply is the one given, a line for each recipient with LMTP.
    """

    session: int
    sender: str
    sender_params: dict
    recipients: list
    recipient_params: dict
    content: bytes
    wire: bytes
    verb: str
    tls: bool
    user: Optional[str]
    reply: str
    time: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def accepted(self):
        """Whether the sink took it on (with LMTP: for at least one recipient)."""
        return "2" in (line[:1] for line in self.reply.splitlines())


def _is_open(session):
    """Return whether its client has not closed it, as TCP knows, which the thread that serves it may not have seen yet."""
    if session.ended.is_set():
        return False
    try:
        return session.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED
    except OSError:
        return False


class Sink:
    """A server on a port of its own; one thread a connection.

    Sessions keep their commands, in order, as (time, line).
    """

    def __init__(self, *rules, address=LOOPBACK, port=0, **behaviour):
        """Listen and serve at once. Keywords are those of Behaviour."""
        self.behaviour = Behaviour(rules=list(rules), **behaviour)
        self.transactions = []
        self.sessions = []
        self.most_connections = 0
        self._lock = threading.Lock()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        port = port or (free_port(address=address) if family == socket.AF_INET else 0)
        self.listener = socket.create_server((address, port), family=family, backlog=512 if self.behaviour.accept_limit is None else 1)
        self.address, self.port = self.listener.getsockname()[:2]
        threading.Thread(target=self._accept, name="sink", daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _may_accept(self):
        limit = self.behaviour.accept_limit
        return limit is None or self.connections < limit

    def greeted_sessions(self):
        """The open sessions that are within the limit, by their numbers."""
        with self._lock:
            numbers = [one.number for one in self.sessions if not one.ended.is_set()]
        return numbers[:self.behaviour.greeting_limit]

    def _accept(self):
        while True:
            while not self._may_accept():
                time.sleep(0.005)
            try:
                connection, peer = self.listener.accept()
            except OSError:
                return
            with self._lock:
                session = SinkSession(self, len(self.sessions), connection, peer[0])
                self.sessions.append(session)
                self.most_connections = max(self.most_connections, self._open_count())
            session.start()

    def _open_count(self):
        return sum(1 for session in self.sessions if _is_open(session))

    @property
    def connections(self):
        """How many connections are open now."""
        with self._lock:
            return self._open_count()

    def store(self, **fields):
        """Keep a transaction that has come to its end; called by the sessions."""
        with self._lock:
            self.transactions.append(Transaction(**fields))

    @property
    def messages(self):
        """The transactions that the sink has answered with 2xx."""
        with self._lock:
            return [one for one in self.transactions if one.accepted]

    def wait_messages(self, count=1, timeout=60.0):
        """Wait until so many messages were accepted, and return all of them."""
        wait_until(lambda: len(self.messages) >= count, timeout, f"{count} messages in the sink")
        return self.messages

    def close(self):
        """Stop listening, and drop the connections that are left."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for session in list(self.sessions):
            session.drop()
