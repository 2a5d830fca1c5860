# SPDX-License-Identifier: ISC
"""What a sink announces and how it misbehaves, as data."""

import dataclasses
import re
import ssl
import threading
from typing import Optional

EVERYTHING = ("PIPELINING", "CHUNKING", "8BITMIME", "SMTPUTF8", "DSN", "ENHANCEDSTATUSCODES")


@dataclasses.dataclass
class Rule:
    """One departure from good behaviour.

    The stage is connect, ehlo, helo, starttls, auth, mail, rcpt, data, bdat, end, rset, noop or quit.
    The pattern is searched for in the address concerned: the client's at connect, the sender's
    from MAIL on, the recipient's at RCPT, and with LMTP at the end too. A client is its whole
    address, and the rule is for what comes from there only.
    A reply of None means the usual one; "" means no reply at all. With "close" the connection
    is closed after the reply, with "reset" by RST. With a gate the reply waits until that is set.
    The rule is passed over "after" times, then holds "times" times. An early one holds for commands
    only that came before the reply to what was in front of them.
    """

    stage: str
    reply: Optional[str] = None
    pattern: str = ""
    client: Optional[str] = None
    after: int = 0
    times: Optional[int] = None
    delay: float = 0.0
    gate: Optional[threading.Event] = None
    close: bool = False
    reset: bool = False
    early: bool = False

    def __post_init__(self):
        self.seen = 0

    def take(self, stage, address, early, client):
        """Say whether the rule holds now, and count that it was asked."""
        if stage != self.stage or not re.search(self.pattern, address):
            return False
        if self.client and self.client != client:
            return False
        if self.early and not early:
            return False
        self.seen += 1
        turn = self.seen - self.after
        return turn > 0 and (self.times is None or turn <= self.times)


@dataclasses.dataclass
class Behaviour:
    """All that a sink can be told to do.

    Latency is a delay of every reply that does not hold up reading: a long line, simulated.
    """

    extensions: tuple = EVERYTHING
    size: Optional[int] = None
    tls: Optional[ssl.SSLContext] = None
    implicit_tls: bool = False
    users: Optional[dict] = None
    tokens: Optional[set] = None  # of XOAUTH2, whoever the user is
    lmtp: bool = False
    latency: float = 0.0
    connection_limit: Optional[int] = None
    greeting_limit: Optional[int] = None  # beyond so many at once: accepted, and never greeted
    accept_limit: Optional[int] = None  # beyond so many at once: left in a backlog of one
    messages_per_connection: Optional[int] = None
    limit_reply: str = "421 4.7.0 enough for one connection"  # to what is beyond that
    rules: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self._lock = threading.Lock()

    def rule(self, stage, address="", early=False, client=""):
        """Return the first rule that holds at this stage for this address of this client, or None."""
        with self._lock:
            taken = [rule for rule in self.rules if rule.take(stage, address, early, client)]
        return taken[0] if taken else None

    def keywords(self, tls_active):
        """Return the lines that answer EHLO, after the first."""
        lines = list(self.extensions)
        if self.size is not None:
            lines.append(f"SIZE {self.size}")
        if self.tls and not tls_active:
            lines.append("STARTTLS")
        if self.users is not None:
            lines.append("AUTH PLAIN")
        if self.tokens is not None:
            lines.append("AUTH XOAUTH2")
        return lines
