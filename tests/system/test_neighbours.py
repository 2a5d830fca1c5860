# SPDX-License-Identifier: ISC
"""Other people's servers with their own settings: all mail arrives, none is returned or put off."""

import collections
import smtplib

import pytest

from lab.config import Config
from lab.exim import Exim
from lab.haraka import FORWARD, OUTBOUND, Haraka
from lab.load import Load, token
from lab.net import LOOPBACK, open_folder, wait_until
from lab.opensmtpd import OpenSmtpd

COUNT = 200


def _haraka(lab, next_hop, way):
    haraka = Haraka(lab.enter_context(open_folder("sluice-haraka-")), next_hop, way)
    lab.callback(haraka.close)
    return haraka.start()


def _check_all_sent(relay, count, timeout=100):
    relay.wait_event("done", timeout, count=count)
    assert len(relay.events("sent")) == count
    assert not relay.events("bounced") and not relay.events("deferred") and not relay.events("in_doubt")


def _check_once(sink, tokens, timeout=60):
    sink.wait_messages(len(tokens), timeout)
    counts = collections.Counter(token(one.content) for one in sink.messages)
    assert set(counts) == set(tokens) and set(counts.values()) == {1}


@pytest.mark.parametrize("way", (FORWARD, OUTBOUND))
@pytest.mark.seconds(240)
def test_haraka_as_next_hop(lab, way):
    sink = lab.sink()
    haraka = _haraka(lab, sink.port, way)
    relay = lab.relay(Config().route_all_to(haraka.port))
    load = Load(relay.port, COUNT)
    load.finish()
    _check_all_sent(relay, COUNT)
    _check_once(sink, load.acknowledged)
    hosts = [one for one in relay.events("host") if "mode" in one.keys]
    assert [one["mode"] for one in hosts] == ["apart"] * len(hosts) and len(hosts) <= 1
    shown = relay.command("dest", "show", LOOPBACK).stdout
    assert not hosts or "apart" in shown


@pytest.mark.plain_only
@pytest.mark.parametrize("way", (FORWARD, OUTBOUND))
@pytest.mark.seconds(240)
def test_haraka_as_client(lab, way):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    haraka = _haraka(lab, relay.port, way)
    for first in range(0, COUNT, 50):
        with smtplib.SMTP(LOOPBACK, haraka.port, timeout=60) as client:
            for number in range(first, first + 50):
                text = f"Subject: {number}\r\nX-Token: t{number}\r\n\r\nx\r\n"
                client.sendmail("from@sender.test", ["to@dest.test"], text)
    _check_all_sent(relay, COUNT)
    _check_once(sink, {f"t{number}" for number in range(COUNT)})


@pytest.mark.plain_only
@pytest.mark.seconds(300)
def test_opensmtpd_and_its_limit_of_messages_a_connection(lab):
    sink = lab.sink()
    folder = lab.enter_context(open_folder("sluice-opensmtpd-"))
    opensmtpd = OpenSmtpd(folder, sink.port)
    lab.callback(opensmtpd.close)
    opensmtpd.start()
    relay = lab.relay(Config().route_all_to(opensmtpd.port))
    Load(relay.port, 4000, sessions=20).finish(120)
    _check_all_sent(relay, 4000, 200)
    assert {one["messages"] for one in relay.events("host", state="limited")} == {"100"}
    assert "messages:    100 on one connection" in relay.command("dest", "show", LOOPBACK).stdout
    wait_until(lambda: len(sink.messages) > 0, 60, "OpenSMTPD to pass mail on")


def test_exim_that_refuses_all_of_a_message_for_one_recipient_too_many(lab):
    exim = Exim(lab.enter_context(open_folder("sluice-exim-")),
                settings="recipients_max = 3\nrecipients_max_reject = true\n")
    lab.callback(exim.close)
    exim.start()
    relay = lab.relay(Config().route_all_to(exim.port))
    relay.send(recipients=[f"{number}@dest.test" for number in range(20)])
    relay.wait_event("done")
    assert len(relay.events("sent")) == 20
    assert not relay.events("bounced") and not relay.events("deferred")
