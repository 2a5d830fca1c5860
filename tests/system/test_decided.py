# SPDX-License-Identifier: ISC
"""Cases in which something had to be decided: bindings, PROXY headers that are owed, recipients that go in a circle."""

import contextlib
import socket
import ssl

import pytest

from lab import milter as m
from lab.config import Config
from lab.milter import Milter, packet, texts
from lab.net import LOOPBACK
from lab.smtp import unverified_context

NO_EXTENDED_MASTER_SECRET = 1  # SSL_OP_NO_EXTENDED_MASTER_SECRET, of OpenSSL 3


@pytest.mark.parametrize("extended", [True, False], ids=["extended", "old"])
def test_a_login_is_bound_to_tls_only_where_no_other_connection_can_be_the_same(lab, extended):
    certificate, key = lab.certificates.host("relay.test")
    users = lab.folder("users") / "users"
    users.write_text("")
    users.chmod(0o600)
    config = Config(auth={"file": str(users)}, listeners={"smtp": {"certificate": certificate, "key": key, "auth": True}})
    relay = lab.relay(config.route_all_to(9))
    context = unverified_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not extended:
        context.options |= NO_EXTENDED_MASTER_SECRET
    with relay.client() as client:
        client.greet()
        client.starttls(context)
        offered = [line.split() for line in client.command("EHLO client.test", 250).lines if line.startswith("AUTH ")]
        assert ("SCRAM-SHA-256-PLUS" in offered[0]) == extended
        assert "SCRAM-SHA-256" in offered[0]


def test_a_recipient_of_a_filter_that_goes_in_a_circle_is_said(lab):
    milter, sink = Milter(), lab.sink()
    lab.callback(milter.close)
    milter.behave({"E": packet(b"+", texts("<one@own.test>")) + packet(m.CONTINUE)})
    config = Config(aliases={"one@own.test": {"to": ["two@own.test"]}, "two@own.test": {"to": ["one@own.test"]}})
    config.listeners = {"smtp": {"milters": ["adds"]}}
    config.extra = f'milter "adds" {{ address = "{milter.address}" }}\n'
    relay = lab.relay(config.route_all_to(sink.port))
    relay.send()
    event = relay.wait_event("filter", to="one@own.test")
    assert event.level == "error" and "Alias loop" in event["reason"]
    assert sink.wait_messages(1)[0].recipients == ["to@dest.test"]


def test_sendmail_speaks_to_no_listener_that_wants_a_proxy_header(lab):
    sink = lab.sink()
    config = Config()
    config.listeners = {"proxied": {"proxy_protocol": ["127.0.0.0/8"]}, "smtp": {}}
    relay = lab.relay(config.route_all_to(sink.port))
    done = relay.command("sendmail", "to@dest.test", stdin="Subject: x\n\ntext\n")
    assert done.returncode == 0, done.stderr
    sink.wait_messages(1)
    assert not relay.events("reject", stage="PROXY")


def test_connections_that_owe_a_proxy_header_are_counted(lab):
    """With the least that there is to share, 32, clients have 24; those beyond are closed, and there is room again."""
    config = Config({"workers": 1, "descriptor_limit": 1})
    config.listeners = {"proxied": {"proxy_protocol": ["127.0.0.0/8"], "proxy_timeout": "60s", "client_connection_limit": 0}}
    relay = lab.relay(config.route_all_to(lab.sink().port))
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection((LOOPBACK, relay.port)))
        relay.wait_event("reject", count=16, stage="PROXY", reason="too many connections")
    relay.wait_event("reject", count=24, stage="PROXY", reason="the proxy closed before its PROXY header ended")
    with relay.client() as client:
        client.send("PROXY TCP4 127.0.0.9 127.0.0.1 1000 25")
        client.greet()
    assert relay.wait_event("connect")["client"] == "127.0.0.9"
