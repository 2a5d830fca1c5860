# SPDX-License-Identifier: ISC
"""Mail that is to be sent later, as its sender wants (RFC 4865)."""

import datetime
import json
import time

from lab.behaviour import EVERYTHING
from lab.config import Config
from lab.sink import Rule

LATER = Rule("rcpt", reply="451 4.2.0 not now", pattern="^later@")


def _relay(lab, *rules, listeners=None, **queue):
    sink = lab.sink(*rules, extensions=EVERYTHING + ("DELIVERBY 1", "FUTURERELEASE 86400 2030-01-01T00:00:00Z"))
    queue = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h", **queue}
    config = Config(queue=queue).route_all_to(sink.port)
    config.listeners |= listeners or {}
    return sink, lab.relay(config)


def _send(relay, params, to="to@dest.test", sender="from@own.test"):
    with relay.client() as client:
        client.greet()
        client.send_mail(sender, [to], mail_params=f" {params}")


def _listed(relay):
    return [json.loads(line) for line in relay.command("queue", "list", "--json").stdout.splitlines()]


def test_mail_waits_for_its_time_through_a_restart_and_is_sent_then(lab):
    sink, relay = _relay(lab)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=8)
    _send(relay, f"HOLDUNTIL={until:%Y-%m-%dT%H:%M:%SZ}")
    held = _listed(relay)[0]
    assert held["queue"] == "deferred" and held["tries"] == 0
    assert held["due"] == held["not_before"]
    assert abs(held["not_before"] - until.timestamp()) < 2
    logged = datetime.datetime.fromisoformat(relay.wait_event("queued")["not_before"].replace("Z", "+00:00"))
    assert abs(logged - until) < datetime.timedelta(seconds=3)
    relay.kill()
    relay.start()
    _send(relay, "", to="other@dest.test")
    messages = {one.recipients[0]: one for one in sink.wait_messages(2)}
    assert not messages["to@dest.test"].sender_params.keys() & {"HOLDFOR", "HOLDUNTIL"}
    sent = relay.wait_event("sent", to="to@dest.test")
    assert time.time() >= held["not_before"] - 0.001
    assert float(sent["delay"]) < 6  # it counts from its time


def test_a_lifetime_begins_when_mail_is_released(lab):
    sink, relay = _relay(lab, LATER, maximal_queue_lifetime="4s")
    _send(relay, "HOLDFOR=6", "later@dest.test")
    held = _listed(relay)[0]
    assert relay.wait_event("deferred")["dsn"] == "4.2.0"
    bounced = relay.wait_event("bounced")
    assert bounced["dsn"] == "4.4.7"
    assert time.time() >= held["arrived"] + 6 + 3
    report = next(one for one in sink.wait_messages(1) if one.sender == "")
    assert b"Future-Release-Request: for;6\r\n" in report.content


def test_a_time_to_deliver_by_counts_from_its_release(lab):
    sink, relay = _relay(lab)
    _send(relay, "BY=600;R HOLDFOR=3")
    seconds, mode = sink.wait_messages(1)[0].sender_params["BY"].split(";")
    assert mode == "R" and 590 <= int(seconds) <= 600


def test_the_operator_is_told_and_lets_it_go_by_name_only(lab):
    sink, relay = _relay(lab)
    _send(relay, "HOLDFOR=3600")
    held = _listed(relay)[0]
    assert "(not before, as its sender wants)" in relay.command("queue", "list").stdout
    assert "release: " in relay.command("queue", "show", held["id"], "--envelope").stdout
    told = relay.command("explain", held["id"]).stdout
    assert "as its sender wants" in told and "sluice queue release" in told
    told = relay.command("explain", "dest.test").stdout
    assert "1 message for 1 recipient is not to be sent yet, as the sender wants" in told
    flushed = relay.command("queue", "flush", "--all")
    assert "0 messages" in flushed.stdout and "1 to be sent at a time that its sender has set" in flushed.stdout
    relay.command("queue", "hold", held["id"])
    assert relay.command("queue", "release", "--all").returncode == 0
    assert _listed(relay)[0]["due"] == held["due"]
    assert relay.command("queue", "release", held["id"]).returncode == 0
    assert sink.wait_messages(1)[0].recipients == ["to@dest.test"]


def test_a_listener_may_have_less_or_none_of_it(lab):
    """Less than a second is none: FUTURERELEASE 0 is no form of it (RFC 4865 3)."""
    listeners = {
        "none": {"future_release_limit": "0s"},
        "shorter": {"future_release_limit": "999ms"},
        "second": {"future_release_limit": "1s"},
        "short": {"future_release_limit": "1h"},
        "strangers": {"networks": ["192.0.2.0/24"]},
    }
    _, relay = _relay(lab, listeners=listeners)
    for name in ("none", "shorter", "strangers"):
        with relay.client(name) as client:
            assert "FUTURERELEASE" not in str(client.greet())
            client.command("MAIL FROM:<x@own.test> HOLDFOR=60", 555)
    with relay.client("second") as client:
        assert "FUTURERELEASE 1 20" in str(client.greet())
        client.command("MAIL FROM:<x@own.test> HOLDFOR=1", 250)
    with relay.client("short") as client:
        assert "FUTURERELEASE 3600 20" in str(client.greet())
        client.command("MAIL FROM:<x@own.test> HOLDFOR=3601", 501)
        client.command("MAIL FROM:<x@own.test> HOLDFOR=3600", 250)
