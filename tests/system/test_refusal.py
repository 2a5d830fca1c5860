# SPDX-License-Identifier: ISC
"""Hosts that greet with 5xx, or answer EHLO and HELO so: what becomes of the mail when all do."""

import pytest

from lab.config import Config
from lab.net import free_port
from lab.report import Report
from lab.sink import Rule

GREETING, HELLO = Rule("connect", "554 5.7.1 go away", close=True), Rule("ehlo", "550 5.7.1 not you")
BOUNCE = {"smtp": {"greeting_5xx": "bounce"}}
TALK = "all hosts refuse to talk: 554 5.7.1 go away"


def _rules(how):
    return [GREETING] if how == "greeting" else [HELLO, Rule("helo", "554 5.7.1 go away")]


def _bouncing(lab, *ports):
    mailbox = lab.sink()
    config = Config(transports=BOUNCE).route_all_to(*ports)
    config.routes["sender.test"] = {"relay": [f"[127.0.0.1]:{mailbox.port}"]}
    return lab.relay(config), mailbox


@pytest.mark.parametrize("how", ("greeting", "hello"))
def test_when_all_hosts_refuse_to_talk_the_mail_waits(lab, how):
    ports = [lab.sink(*_rules(how)).port for _ in range(2)]
    relay = lab.relay(Config().route_all_to(*ports))
    relay.send()
    deferred = relay.wait_event("deferred")
    assert deferred["reply"] == TALK and deferred["dsn"] == "4.7.1"
    assert TALK in relay.command("explain", deferred["id"]).stdout
    assert not relay.events("bounced")


@pytest.mark.parametrize("how", ("greeting", "hello"))
def test_it_is_returned_where_that_is_wanted(lab, how):
    relay, mailbox = _bouncing(lab, *(lab.sink(*_rules(how)).port for _ in range(2)))
    relay.send()
    assert relay.wait_event("bounced")["dsn"] == "5.7.1"
    report = Report(mailbox.wait_messages(1)[0].content)
    assert TALK in report.recipient("to@dest.test")["diagnostic-code"]


def test_one_host_that_only_can_not_be_reached_is_hope(lab):
    relay, _ = _bouncing(lab, lab.sink(*_rules("greeting")).port, free_port())
    relay.send()
    relay.wait_event("deferred")
    assert not relay.events("bounced")


def test_a_greeting_of_4xx_is_no_refusal(lab):
    relay, _ = _bouncing(lab, lab.sink(Rule("connect", "450 4.7.1 later", close=True)).port)
    relay.send()
    relay.wait_event("deferred")
    assert not relay.events("bounced")


def test_a_host_that_talks_gets_the_mail(lab):
    sink = lab.sink()
    relay, _ = _bouncing(lab, lab.sink(*_rules("greeting")).port, sink.port)
    relay.send()
    sink.wait_messages(1)
    assert not relay.events("bounced") and not relay.events("deferred")
