# SPDX-License-Identifier: ISC
"""Allocations that fail, each on a message's way: what got 250 arrives, through whatever end of the relay."""

import os
import signal
import ssl

import pytest

from lab.config import Config
from lab.orders import order, with_orders
from lab.smtp import Client, Closed
from lab.net import LOOPBACK, wait_until

pytestmark = pytest.mark.plain_only

STEP = 1 if os.environ.get("SLUICE_EVERY_ALLOCATION") else 23
CONTENT = b"Subject: %s\r\n\r\n" + b"some text\r\n" * 55000


class Way:
    """One message after another through a relay, each with one allocation that fails."""

    def __init__(self, lab, relay, sink):
        """The sink keeps what arrives; tokens are the local parts of recipients."""
        self.lab, self.relay, self.sink = lab, relay, sink
        self.promised, self.ends, self.replies = set(), 0, {}

    def send(self, token):
        """Send one, over TLS; remember whether it was promised."""
        try:
            with Client(LOOPBACK, self.relay.port, timeout=60) as client:
                client.greet()
                client.starttls()
                client.command("EHLO client.test")
                reply = client.send_mail("from@sender.test", [f"{token}@dest.test"], CONTENT % token.encode())
                said = reply.text[:9]
                self.promised.add(token)
        except AssertionError as refused:
            # An alert in the place of a handshake is as good as a close.
            said = "closed" if "before the handshake" in str(refused) else str(refused).rpartition("got: ")[2][:9]
            assert said[:1] in "4c", refused
        except (Closed, OSError, ssl.SSLError):
            said = "closed"
        self.replies[said] = self.replies.get(said, 0) + 1

    def fail(self, number):
        """Let that allocation fail, counted from now."""
        try:
            return int(order(self.relay, "fail", str(number)))
        except (OSError, ValueError):  # the one before has made an end of it only now
            self.come_back(ended=True)
            return int(order(self.relay, "fail", str(number)))

    def come_back(self, ended=False):
        """If the relay has ended, see that it ended itself, and start it again."""
        if ended or not self.relay.running():
            status = self.relay.wait_ended(crash=signal.SIGABRT)
            assert status == -signal.SIGABRT, f"it ended with status {status}"
            self.ends += 1
            self.relay.start()
            self.begin()

    def begin(self):
        """Send one without a failure: what OpenSSL prepares once, in the first session, it never tries again."""
        self.fail(0)
        self.send(f"again{self.ends}")

    def arrived(self):
        """Say whether all that was promised is at the sink."""
        self.come_back()
        return self.promised <= {to.partition("@")[0] for message in self.sink.messages for to in message.recipients}


@pytest.mark.seconds(900 if STEP == 1 else 120)
def test_an_allocation_fails_at_every_step(lab, monkeypatch):
    monkeypatch.setenv("SLUICE_BIN", with_orders("failing"))
    certificate, key = lab.certificates.host("relay.test")
    sink = lab.sink(tls=lab.certificates.server_context("127.0.0.1"))
    config = Config(queue={"minimal_backoff_time": "100ms", "maximal_backoff_time": "200ms"}).hurried().route_all_to(sink.port)
    config.listeners["smtp"] = {"certificate": certificate, "key": key}
    relay = lab.relay(config)
    way = Way(lab, relay, sink)
    way.begin()
    wait_until(way.arrived, 60, "the first message")
    relay.wait_event("done")
    calls = way.fail(0)
    assert calls > 200
    for number in range(1, calls + 1, STEP):
        way.fail(number)
        way.send(f"n{number}")
        way.come_back()
    way.fail(0)
    way.send("last")
    wait_until(way.arrived, 60, "all that got 250 to arrive")
    print(f"{calls} allocations, {way.ends} ends, replies {way.replies}, {len(sink.messages)} arrived")
    assert "last" in way.promised and way.ends > 0
