# SPDX-License-Identifier: ISC
"""Messages that were sent as a whole, and whose final reply never came."""

import json
import signal
import threading

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import wait_until
from lab.report import Report

SOON = {"minimal_backoff_time": "200ms", "maximal_backoff_time": "300ms"}


def _relay(lab, sink, **queue):
    config = Config(queue=SOON | queue).route_all_to(sink.port)
    config.routes["sender.test"] = {"relay": [f"[127.0.0.1]:{lab.sender.port}"]}
    return lab.relay(config)


def test_a_message_in_doubt_is_returned_after_so_many_retries(lab):
    lab.sender = lab.sink()
    sink = lab.sink(Rule("end", close=True))
    relay = _relay(lab, sink, in_doubt_retries=2)
    relay.send()
    relay.wait_event("bounced", timeout=60, dsn="5.4.2", tries="3")
    assert len(sink.transactions) == 3
    assert len(relay.events("in_doubt")) == 3
    report = Report(lab.sender.wait_messages(1, timeout=60)[0].content)
    assert "may have arrived" in report.notice
    assert report.recipient("to@dest.test")["status"] == "5.4.2"
    assert "in_doubt_total 3" in relay.command("stats").stdout


def test_a_message_in_doubt_may_count_as_delivered(lab):
    lab.sender = lab.sink()
    sink = lab.sink(Rule("end", close=True))
    relay = _relay(lab, sink, in_doubt_retries=1, in_doubt_action="delivered")
    relay.send()
    relay.wait_event("done", timeout=60)
    assert len(sink.transactions) == 2
    assert not relay.events("bounced")
    assert "taken as delivered" in str(relay.events("sent")[0])


@pytest.mark.parametrize("reply", ("250 2.0.0 kept\ras no. 7", "250-kept\r\n" * 599 + "250 as no. 7"), ids=("stray", "long"))
def test_consent_that_can_not_be_read_to_its_end_is_doubt(lab, reply):
    lab.sender = lab.sink()
    sink = lab.sink(Rule("end", reply), extensions=("PIPELINING",))
    relay = _relay(lab, sink, in_doubt_retries=1)
    relay.send()
    relay.wait_event("bounced", dsn="5.4.2", tries="2")
    assert len(sink.transactions) == 2
    assert "may have arrived" in Report(lab.sender.wait_messages(1)[0].content).notice


def test_retries_in_doubt_are_counted_through_crashes(lab):
    lab.sender = lab.sink()
    sink = lab.sink(Rule("end", close=True))
    relay = _relay(lab, sink, in_doubt_retries=2, minimal_backoff_time="1h",
                   maximal_backoff_time="1h")
    relay.send()
    for times in (1, 2):
        relay.wait_event("in_doubt", count=times, timeout=60)
        line = relay.command("queue", "list").stdout
        assert "may have arrived" in line
        relay.kill()
        relay.start()
        shown = json.loads(relay.command("queue", "list", "--json").stdout)
        assert shown["rcpts"][0]["in_doubt"] == times
        text = relay.command("queue", "show", shown["id"], "--envelope").stdout
        assert f"{times} in doubt" in text
        relay.command("queue", "flush", "--all")
    relay.wait_event("bounced", timeout=60)
    assert len(sink.transactions) == 3


def _ending_with_two_under_way(lab, gate):
    """One host has all of its message and answers when the gate opens, another has not answered RCPT."""
    end, rcpt = Rule("end", gate=gate), Rule("rcpt", gate=gate)
    config = Config().route_all_to(lab.sink(end).port)
    silent = lab.sink(rcpt)
    config.routes["silent.test"] = {"relay": [f"[127.0.0.1]:{silent.port}"]}
    relay = lab.relay(config)
    relay.send(recipients=["to@dest.test"])
    relay.send(recipients=["to@silent.test"])
    wait_until(lambda: end.seen and rcpt.seen, what="one message at each host")
    relay.signal(signal.SIGTERM)
    wait_until(lambda: silent.connections == 0, what="the end of the other connection")
    return relay


def test_a_stop_waits_for_the_answer_to_a_message_that_is_there(lab):
    gate = threading.Event()
    relay = _ending_with_two_under_way(lab, gate)
    gate.set()
    assert relay.wait_ended() == 0
    assert relay.events("sent", to="to@dest.test") and not relay.events("in_doubt")
    relay.start()
    relay.wait_event("sent", to="to@silent.test")
    assert len(relay.events("sent")) == 2


def test_whoever_asks_twice_does_not_want_to_wait(lab):
    gate = threading.Event()
    relay = _ending_with_two_under_way(lab, gate)
    relay.signal(signal.SIGTERM)
    late = threading.Timer(4, gate.set)  # a relay that waited would hear of it
    late.start()
    assert relay.wait_ended() == 0
    late.cancel()
    gate.set()
    assert relay.events("in_doubt", to="to@dest.test") and not relay.events("sent")
