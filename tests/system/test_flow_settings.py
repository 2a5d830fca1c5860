# SPDX-License-Identifier: ISC
"""What is said of a flow: how much of it goes in a time, how long it lives, which transport carries it."""

import json
import pathlib
import time

from lab.config import Config
from lab.net import wait_until
from lab.sink import Rule


def _relay(lab, extra, *rules, transports=None, **queue):
    sink = lab.sink(*rules)
    config = Config(transports=transports or {"smtp": {}}, queue=queue, extra=extra).route_all_to(sink.port)
    return sink, lab.relay(config)


def _change(relay, old, new):
    path = pathlib.Path(relay.config_path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert relay.command("reload").returncode == 0


def test_a_flow_beyond_its_rate_waits_and_others_go_on(lab):
    sink, relay = _relay(lab, 'flow "slow.test" { rate = "1/h" }')
    for _ in range(4):
        relay.send(sender="x@slow.test", recipients=["to@dest.test"])
    relay.wait_event("sent", flow="slow.test")
    for _ in range(5):
        relay.send(sender="x@quick.test", recipients=["to@dest.test"])
    relay.wait_event("sent", flow="quick.test", count=5)
    assert len(relay.events("sent", flow="slow.test")) == 1
    waiting = json.loads(relay.command("queue", "list", "--flow", "slow.test", "--json").stdout.splitlines()[0])
    told = relay.command("explain", waiting["id"]).stdout
    assert "the rate of its flow: the next delivery to any destination is not due" in told
    shown = json.loads(relay.command("flow", "show", "slow.test", "--json").stdout)
    assert shown["rate"] == "1/h" and shown["due"] > 0
    assert "1/h" in relay.command("flow", "show", "slow.test").stdout
    _change(relay, '"1/h"', '""')
    relay.wait_event("sent", flow="slow.test", count=4)
    assert len(sink.messages) == 9


def test_deliveries_of_a_flow_are_evenly_spaced_over_all_destinations(lab):
    """Each begins no earlier than its time: of 15 the last 14 intervals behind the first, however slow all of it is."""
    sink, relay = _relay(lab, 'flow "even.test" { rate = "10/s" }', transports={"smtp": {"destination_by": "domain"}})
    began = time.monotonic()
    for number in range(15):
        relay.send(sender="x@even.test", recipients=[f"to@d{number % 5}.test"])
    relay.wait_event("sent", flow="even.test", count=15)
    assert time.monotonic() - began > 1.39
    assert len(sink.messages) == 15


def test_mail_of_a_flow_expires_after_its_lifetime(lab):
    sink, relay = _relay(lab, 'flow "short.test" { lifetime = 1500ms }', Rule("rcpt", reply="451 4.2.0 not now", pattern="^later@"),
                         minimal_backoff_time="1h", maximal_backoff_time="1h")
    relay.send(sender="x@short.test", recipients=["later@dest.test"])
    relay.send(sender="x@other.test", recipients=["later@dest.test"])
    relay.wait_event("deferred", count=2)
    bounced = relay.wait_event("bounced", flow="short.test")
    assert bounced["dsn"] == "5.4.7" and "lifetime of its flow" in bounced["reply"]
    assert float(bounced["delay"]) >= 1.4
    wait_until(lambda: sink.messages, what="the report")
    report = sink.messages[0]
    assert report.sender == "" and report.recipients == ["x@short.test"]
    assert b"Status: 5.4.7" in report.content
    assert not relay.events("bounced", flow="other.test")


def test_mail_that_never_had_its_turn_expires_too_also_after_a_restart(lab):
    _, relay = _relay(lab, 'flow "short.test" { lifetime = 3s rate = "1/h" }')
    for _ in range(2):
        relay.send(sender="x@short.test", recipients=["to@dest.test"])
    relay.wait_event("sent", flow="short.test")
    assert relay.wait_event("bounced", flow="short.test")["dsn"] == "5.4.7"
    relay.wait_event("sent", flow="<reports>")
    _change(relay, '"1/h"', '"1/d"')
    relay.send(sender="x@short.test", recipients=["to@dest.test"])
    relay.send(sender="x@short.test", recipients=["to@dest.test"])
    relay.kill()
    relay.start()
    relay.wait_event("bounced", flow="short.test", count=2)


def test_a_flow_has_a_transport(lab):
    sink, relay = _relay(lab, 'flow "bulk.test" { transport = "bulk" }', transports={"smtp": {}, "bulk": {"like": "smtp"}, "own": {"like": "smtp"}})
    relay.send(sender="x@bulk.test", recipients=["to@dest.test"])
    assert relay.wait_event("sent", flow="bulk.test")["transport"] == "bulk"
    relay.send(sender="x@other.test", recipients=["to@dest.test"])
    assert relay.wait_event("sent", flow="other.test")["transport"] == "smtp"
    _change(relay, '"bulk" }', '"own" }')
    relay.send(sender="x@bulk.test", recipients=["to@dest.test"])
    assert relay.wait_event("sent", flow="bulk.test", count=2)["transport"] == "own"
    assert len(sink.messages) == 3


def test_mail_of_a_flow_is_found_by_the_site_of_its_transport(lab):
    """The site was looked for by the transport of the route, and what a filter chose by the names of dest list was nothing."""
    sink, relay = _relay(lab, 'flow "bulk.test" { transport = "bulk" }', Rule("rcpt", reply="451 4.2.0 not now", pattern="^later@"),
                         transports={"smtp": {}, "bulk": {"like": "smtp", "destination_by": "domain"}})
    for sender in ("x@bulk.test", "x@other.test"):
        relay.send(sender=sender, recipients=["later@dest.test"])
    ids = {event["flow"]: event["id"] for event in relay.wait_events("deferred", count=2)}
    relays = f"[127.0.0.1]:{sink.port}"

    def chosen(site):
        return [json.loads(line)["id"] for line in relay.command("queue", "list", "--json", "--site", site).stdout.splitlines()]

    for name in (f"dest.test by {relays}", f"bulk dest.test by {relays}"):
        assert chosen(name) == [ids["bulk.test"]]
    assert chosen(relays) == chosen(f"smtp {relays}") == [ids["other.test"]]
    listed = [tuple(line.split("\t")[:2]) for line in relay.command("dest", "list", "--tabs", "dest.test").stdout.splitlines()]
    assert sorted(listed) == sorted([(f"dest.test by {relays}", "bulk"), (relays, "smtp")])


def test_a_transport_that_is_none_is_said_with_its_line(lab):
    _, relay = _relay(lab, 'flow "bulk.test" { transport = "smtp" }')
    with open(relay.config_path, "a", encoding="utf-8") as stream:
        stream.write('flow "more.test" {\n weight = 2\n transport = "none"\n}\n')
    line = len(pathlib.Path(relay.config_path).read_text(encoding="utf-8").splitlines()) - 1
    checked = relay.command("check")
    assert checked.returncode != 0
    assert f'{relay.config_path}:{line}: flow "more.test": there is no transport "none"' in checked.stderr + checked.stdout
