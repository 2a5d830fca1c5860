# SPDX-License-Identifier: ISC
"""Mail that is to be delivered by a time (RFC 2852), or before other mail (RFC 6710)."""

import json

from lab.behaviour import EVERYTHING
from lab.config import Config
from lab.net import free_port
from lab.sink import Rule

TIMED = EVERYTHING + ("DELIVERBY 2",)
LATER = Rule("rcpt", reply="451 4.2.0 not now", pattern="^later@")


def _relay(lab, *rules, extensions=TIMED, listeners=None, **queue):
    sink = lab.sink(*rules, extensions=extensions)
    queue = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h", **queue}
    config = Config(queue=queue).route_all_to(sink.port)
    config.listeners |= listeners or {}
    return sink, lab.relay(config)


def _send(relay, by, to="to@dest.test", sender="from@own.test", listener=None):
    with relay.client(listener) as client:
        client.greet()
        client.send_mail(sender, [to], mail_params=f" {by}")


def _report(sink, sender="from@own.test"):
    return next(one for one in sink.wait_messages(1) if one.recipients == [sender] and one.sender == "")


def test_what_is_left_of_the_time_is_passed_on(lab):
    sink, relay = _relay(lab)
    for by in ("BY=600;R", "by=600;NT", "BY=-5;N"):
        _send(relay, by)
    messages = [one for one in sink.wait_messages(4) if one.sender]  # and a report of where NT has gone
    seen = sorted(one.sender_params["BY"].split(";") for one in messages)
    assert sorted(mode for _, mode in seen) == ["N", "NT", "R"]
    left = {mode: int(seconds) for seconds, mode in seen}
    assert left["N"] <= -5
    assert 300 < left["R"] <= 600 and 300 < left["NT"] <= 600


def test_mail_that_is_not_delivered_by_its_time_is_returned(lab):
    sink, relay = _relay(lab, LATER)
    _send(relay, "BY=2;R", "later@dest.test")
    bounced = relay.wait_event("bounced")
    assert bounced["dsn"] == "5.4.7"
    report = _report(sink)
    assert b"Status: 5.4.7" in report.content and b"Deliver-By-Date: " in report.content
    assert b"Action: failed" in report.content


def test_a_time_outlives_a_restart(lab):
    sink, relay = _relay(lab, LATER)
    _send(relay, "BY=12;R", "later@dest.test")
    relay.wait_event("deferred")
    shown = json.loads(relay.command("queue", "list", "--json").stdout.splitlines()[0])
    assert shown["by_mode"] == "return" and 10 < shown["by"] - shown["arrived"] < 14
    assert shown["due"] <= shown["by"] + 0.001
    assert "by:      " in relay.command("queue", "show", shown["id"], "--envelope").stdout
    relay.kill()
    relay.start()
    assert relay.wait_event("bounced")["dsn"] == "5.4.7"
    assert b"Status: 5.4.7" in _report(sink).content


def test_a_sender_who_wants_to_be_told_is_and_the_mail_is_tried_on(lab):
    sink, relay = _relay(lab, Rule("rcpt", reply="451 4.2.0 not now", pattern="^later@", times=2))
    _send(relay, "BY=1;N", "later@dest.test")
    relay.wait_event("deferred")
    report = _report(sink)
    assert b"Action: delayed" in report.content
    assert not relay.events("bounced")
    relay.command("queue", "flush", "--all")
    relay.command("queue", "flush", "--all")
    relay.wait_event("deferred", count=2)
    assert len([one for one in sink.messages if one.sender == ""]) == 1


def test_a_host_that_does_not_know_of_times(lab):
    """What is to be returned by a time is not handed to it; of other mail its sender is told that it has gone there."""
    sink, relay = _relay(lab, extensions=EVERYTHING)
    _send(relay, "BY=600;R")
    bounced = relay.wait_event("bounced")
    assert bounced["dsn"] == "5.4.7" and "DELIVERBY" in bounced["reply"]
    assert b"Status: 5.4.7" in _report(sink).content
    _send(relay, "BY=600;N", sender="told@own.test")
    relay.wait_event("sent", to="to@dest.test")
    relay.wait_event("sent", to="told@own.test")
    report = next(one for one in sink.messages if one.recipients == ["told@own.test"])
    assert b"Action: relayed" in report.content
    assert "BY" not in next(one for one in sink.messages if one.sender == "told@own.test").sender_params


def test_a_host_that_takes_longer_than_is_left_gets_none_of_it(lab):
    _, relay = _relay(lab, extensions=EVERYTHING + ("DELIVERBY 300",))
    _send(relay, "BY=200;R")
    assert relay.wait_event("bounced")["dsn"] == "5.4.7"
    _send(relay, "BY=900;R")
    relay.wait_event("sent", to="to@dest.test")


def test_each_host_that_mail_has_passed_is_told_where_that_is_wanted(lab):
    sink, relay = _relay(lab)
    _send(relay, "BY=600;RT")
    relay.wait_event("sent", to="to@dest.test")
    relay.wait_event("sent", to="from@own.test")
    assert any(b"Action: relayed" in one.content for one in sink.messages)


def test_strangers_are_not_offered_it(lab):
    _, relay = _relay(lab, listeners={"strangers": {"networks": ["192.0.2.0/24"]}})
    with relay.client("strangers") as client:
        assert "DELIVERBY" not in str(client.greet())
        client.command("MAIL FROM:<x@own.test> BY=60;R", 555)


def test_mail_for_mailboxes_needs_no_host_that_knows_of_times(lab):
    sink = lab.sink(lmtp=True)
    config = Config(transports={"smtp": {"protocol": "lmtp"}}).route_all_to(sink.port)
    relay = lab.relay(config)
    _send(relay, "BY=60;R")
    relay.wait_event("sent")


def test_mail_to_nowhere_is_returned_in_time_though_its_site_is_dead(lab):
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}).route_all_to(free_port())
    relay = lab.relay(config)
    _send(relay, "BY=2;R")
    assert relay.wait_event("bounced", to="to@dest.test")["dsn"] == "5.4.7"


def test_a_priority_is_kept_through_a_restart_and_passed_on(lab):
    sink, relay = _relay(lab, extensions=EVERYTHING + ("MT-PRIORITY MIXER",))
    assert relay.command("dest", "suspend", "dest.test").returncode == 0
    for priority in (0, -4, 9, 3):
        _send(relay, f"MT-PRIORITY={priority}")
    relay.wait_event("deferred", count=4)
    told = sorted(json.loads(line).get("priority", 0) for line in relay.command("queue", "list", "--json").stdout.splitlines())
    assert told == [-4, 0, 3, 9]
    relay.kill()
    relay.start()
    assert relay.command("dest", "resume", "dest.test").returncode == 0
    messages = sink.wait_messages(4)
    assert sorted(int(one.sender_params.get("MT-PRIORITY", 0)) for one in messages) == [-4, 0, 3, 9]


def test_a_priority_is_not_given_to_a_host_that_does_not_announce_it(lab):
    sink, relay = _relay(lab)
    _send(relay, "MT-PRIORITY=5")
    assert "MT-PRIORITY" not in sink.wait_messages(1)[0].sender_params


def test_a_header_gives_a_priority_where_none_was_said(lab):
    sink, relay = _relay(lab, extensions=EVERYTHING + ("MT-PRIORITY MIXER",))
    bulk = b"From: from@own.test\r\nPrecedence: bulk\r\n\r\ntext\r\n"
    with relay.client() as client:
        client.greet()
        client.send_mail("header@own.test", ["to@dest.test"], bulk)
        client.send_mail("said@own.test", ["to@dest.test"], bulk, mail_params=" MT-PRIORITY=2")
        client.send_mail("usual@own.test", ["to@dest.test"], bulk, mail_params=" MT-PRIORITY=0")
    urgent = "From: from@own.test\nPriority: urgent\n\ntext\n"
    assert relay.command("sendmail", "-f", "command@own.test", "to@dest.test", stdin=urgent).returncode == 0
    sink.wait_messages(4)
    relay.stop()
    assert relay.command("sendmail", "-f", "left@own.test", "to@dest.test", stdin=urgent).returncode == 0
    relay.start()
    told = {one.sender.partition("@")[0]: one.sender_params.get("MT-PRIORITY") for one in sink.wait_messages(5)}
    assert told == {"header": "-4", "said": "2", "usual": None, "command": "4", "left": "4"}
