# SPDX-License-Identifier: ISC
"""A real Postfix behind the relay, and in front of it."""

import collections

import pytest

from lab.config import Config
from lab.load import Load, token
from lab.net import LOOPBACK
from lab.smtp import Client

COUNT = 200


def _check(sink, taken):
    counts = collections.Counter(token(one.content) for one in sink.messages)
    assert set(counts) == set(taken)
    assert set(counts.values()) == {1}


@pytest.mark.seconds(180)
def test_every_message_reaches_the_next_hop_postfix_once(lab):
    sink = lab.sink()
    postfix = lab.postfix(next_hop=sink.port)
    config = Config().route_all_to(postfix.port)
    relay = lab.relay(config)
    load = Load(relay.port, COUNT, 10)
    lab.callback(load.close)
    taken = load.finish()
    relay.wait_event("done", 60, count=COUNT)
    sink.wait_messages(COUNT, 60)
    _check(sink, taken)
    assert not relay.events("bounced") and not relay.events("in_doubt")


@pytest.mark.seconds(180)
def test_postfix_relays_every_message_through_us_once(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    postfix = lab.postfix(next_hop=relay.port)
    load = Load(postfix.port, COUNT, 10, size=3000)
    lab.callback(load.close)
    taken = load.finish()
    sink.wait_messages(COUNT, 60)
    relay.wait_event("done", 60, count=COUNT)
    _check(sink, taken)
    assert "status=sent (250 2.0.0 Ok: queued as " in postfix.log()


@pytest.mark.seconds(180)
def test_postfix_relays_to_international_recipients_through_us(lab):
    """It names the original recipient in a form of its own."""
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    postfix = lab.postfix(next_hop=relay.port, settings={"smtputf8_enable": "yes"})
    with Client(LOOPBACK, postfix.port) as client:
        client.greet()
        client.send_mail("from@sender.test", ["grüße@dest.test"], mail_params=" SMTPUTF8")
    message = sink.wait_messages(1)[0]
    assert message.recipients == ["grüße@dest.test"]
    assert message.recipient_params["grüße@dest.test"]["ORCPT"] == r"utf-8;gr\x{FC}\x{DF}e@dest.test"


@pytest.mark.seconds(180)
def test_what_postfix_refuses_is_bounced_by_us(lab):
    mailbox = lab.sink()
    postfix = lab.postfix(settings={
        "smtpd_recipient_restrictions": "check_recipient_access inline:{nobody@dest.test=REJECT}",
    })
    config = Config().route_all_to(postfix.port)
    config.routes["sender.test"] = {"relay": [f"[127.0.0.1]:{mailbox.port}"]}
    relay = lab.relay(config)
    relay.send(recipients=["good@dest.test", "nobody@dest.test"])
    relay.wait_event("sent", 60, to="good@dest.test")
    relay.wait_event("bounced", 60, to="nobody@dest.test", dsn="5.7.1")
    assert mailbox.wait_messages(1)[0].sender == ""
