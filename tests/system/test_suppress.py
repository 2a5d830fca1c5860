# SPDX-License-Identifier: ISC
"""Recipients that a host has called unknown are refused at RCPT, for as long as the operator says."""

import json
import time

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import wait_until


def _relay(lab, sink, suppress="30d"):
    config = Config({"suppress": suppress}).route_all_to(sink.port)
    config.routes["sender.test"] = {"discard": True}
    return lab.relay(config)


def _rcpt(relay, *recipients):
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        client.send("".join(f"RCPT TO:<{one}>\r\n" for one in recipients).encode())
        return [client.read_reply().text for _ in recipients]


def _codes(relay, *recipients):
    return [int(text[:3]) for text in _rcpt(relay, *recipients)]


def _listed(relay, *words):
    return [json.loads(line) for line in relay.command("suppress", "list", "--json", *words).stdout.splitlines()]


def _bounce(relay, *recipients):
    relay.send(recipients=list(recipients))
    for one in recipients:
        relay.wait_event("bounced", to=one)


@pytest.fixture(name="sink")
def fixture_sink(lab):
    return lab.sink(Rule("rcpt", "550 5.1.1 no such user", pattern="^(dead|Late)"), Rule("rcpt", "550 5.7.1 not from you", pattern="^policy"),
                    Rule("rcpt", "550 no such user", pattern="^bare"), Rule("rcpt", "450 4.1.1 come again", pattern="^soft"),
                    Rule("end", "550 5.1.1 no", pattern="nobody@", times=1))


def test_whom_a_host_does_not_know_is_refused_from_then_on(lab, sink):
    relay = _relay(lab, sink)
    assert _codes(relay, "dead@dest.test") == [250]
    _bounce(relay, "dead@dest.test", "policy@dest.test", "bare@dest.test")
    relay.send(recipients=["soft@dest.test"])
    relay.wait_event("deferred", to="soft@dest.test")
    (row,) = _listed(relay)
    day = time.strftime("%Y-%m-%d", time.localtime(row["since"]))
    assert _rcpt(relay, "dead@dest.test") == [f"550 5.1.1 User unknown there since {day}"]
    # No other: of another name, another domain, refused by a rule, for now, or in words alone.
    assert _codes(relay, "DEAD@dest.TEST", "dea@dest.test", "dead@other.test", "policy@dest.test", "bare@dest.test", "soft@dest.test") == [550] + [250] * 5
    said = relay.wait_event("suppress", to="dead@dest.test")
    assert said["state"] == "added" and "no such user" in said["reply"]
    assert relay.wait_event("reject", to="dead@dest.test")["reason"].startswith("User unknown there since 20")
    assert 'known_refusals_total{reason="suppressed"} 2' in " ".join(relay.command("stats", "--all").stdout.split())
    assert row["address"] == "dead@dest.test" and "127.0.0.1" in row["host"] and 29 * 86400 < row["until"] - row["since"] <= 30 * 86400
    text = relay.command("suppress").stdout
    assert text.startswith("dead@dest.test since 20") and ", until 20" in text


def test_the_operator_adds_and_forgets(lab, sink):
    relay = _relay(lab, sink)
    assert relay.command("suppress", "list").stdout == ""
    for one in ("a@dest.test", "B@Dest.Test", "c@other.test"):
        done = relay.command("suppress", "add", one)
        assert done.returncode == 0 and done.stdout == f"{one} added\n"
    assert _codes(relay, "a@dest.test", "b@dest.test", "c@other.test", "d@dest.test") == [550, 550, 550, 250]
    assert [one["address"] for one in _listed(relay, "@dest.test")] == ["a@dest.test", "b@dest.test"]
    assert [one["host"] for one in _listed(relay, "b@dest.test")] == [""]
    assert relay.command("suppress", "list", "d@dest.test").returncode == 1
    assert relay.command("suppress", "forget", "d@dest.test").returncode == 1
    done = relay.command("suppress", "forget", "--json", "a@dest.test")
    assert done.returncode == 0 and json.loads(done.stdout) == {"address": "a@dest.test", "state": "forgotten", "recipients": 1}
    assert _codes(relay, "a@dest.test", "b@dest.test") == [250, 550]
    assert relay.command("suppress", "forget", "@Other.test").stdout == "@Other.test forgotten: 1 recipient\n"
    assert _codes(relay, "c@other.test") == [250]
    for words in (["add"], ["add", "nobody"], ["add", "@dest.test"], ["forget"], ["list", "a", "b"], ["add", "a@b.test", "c@d.test"]):
        assert relay.command("suppress", *words).returncode == 2, words
    for state in ("added", "forgotten"):
        assert relay.wait_event("suppress", to="a@dest.test", state=state)
    relay.stop()
    assert relay.command("suppress", "list").returncode == 75


def test_it_is_kept_over_restarts_and_kills(lab, sink):
    relay = _relay(lab, sink)
    _bounce(relay, "dead@dest.test")
    relay.restart()
    assert _codes(relay, "dead@dest.test", "x@dest.test") == [550, 250]
    assert relay.command("suppress", "add", "by-hand@dest.test").returncode == 0
    before = _listed(relay)
    relay.kill()
    relay.start()
    assert _codes(relay, "dead@dest.test", "by-hand@dest.test") == [550, 550]
    assert _listed(relay) == before
    assert relay.command("suppress", "forget", "dead@dest.test").returncode == 0
    relay.kill()
    relay.start()
    assert _codes(relay, "dead@dest.test", "by-hand@dest.test") == [250, 550]


def test_mail_that_is_taken_there_forgets_it(lab, sink):
    """Mail that was in the queue already, here held, still goes."""
    relay = _relay(lab, sink)
    assert relay.command("dest", "suspend", f"[127.0.0.1]:{sink.port}").returncode == 0
    relay.send(recipients=["alive@dest.test"])
    assert relay.command("queue", "hold", "--all").returncode == 0
    relay.command("dest", "resume", f"[127.0.0.1]:{sink.port}")
    assert relay.command("suppress", "add", "alive@dest.test").returncode == 0
    assert _codes(relay, "alive@dest.test") == [550]
    assert relay.command("queue", "release", "--all").returncode == 0
    relay.wait_event("suppress", to="alive@dest.test", state="forgotten")
    assert _codes(relay, "alive@dest.test") == [250]


def test_it_ends_in_time_and_is_off_by_default(lab, sink):
    relay = _relay(lab, sink, suppress="1h")
    _bounce(relay, "dead@dest.test")
    assert _codes(relay, "dead@dest.test") == [550]
    relay.config.settings["suppress"] = "1ms"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    wait_until(lambda: _codes(relay, "dead@dest.test") == [250], 60, "the end of it")
    relay.config.settings.pop("suppress")
    relay.write_config()
    assert relay.command("reload").returncode == 0
    _bounce(relay, "Late@dest.test")
    assert _codes(relay, "Late@dest.test") == [250]
    assert relay.command("suppress", "list").stdout == ""
    said = relay.command("suppress", "add", "x@dest.test")
    assert said.returncode == 1 and "suppress is 0s" in said.stderr


def test_a_list_with_many_dead_recipients_reaches_the_others(lab, sink, tmp_path):
    """They are no errors of the client's: error_limit is 20. Recipients that the configuration does not know are."""
    valid = tmp_path / "valid"
    valid.write_text("anna@known.test\n")
    config = Config({"suppress": "1h"}).route_all_to(sink.port)
    config.routes["known.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"], "recipients": [str(valid)]}
    relay = lab.relay(config)
    for number in range(30):
        assert relay.command("suppress", "add", f"gone{number}@dest.test").returncode == 0
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        client.send("".join(f"RCPT TO:<gone{number}@dest.test>\r\n" for number in range(30)).encode())
        assert [client.read_reply().code for _ in range(30)] == [550] * 30
        client.command("RCPT TO:<last@dest.test>")
        client.command("DATA", 354)
        client.send(b"\r\n.\r\n")
        client.expect(250)
        client.command("MAIL FROM:<from@sender.test>")
        client.send("".join(f"RCPT TO:<guess{number}@known.test>\r\n" for number in range(21)).encode())
        assert [client.read_reply().code for _ in range(21)] == [550] * 20 + [421]
    assert sink.wait_messages(1)[0].recipients == ["last@dest.test"]


def test_a_flow_and_a_listener_may_have_their_own(lab, sink):
    """What one has made known is told to those that want to know."""
    config = Config({"suppress": "0s"}, listeners={"smtp": {}, "news": {"suppress": "30d"}}).route_all_to(sink.port)
    config.routes["sender.test"] = {"discard": True}
    config.extra = 'flow "bulk.test" { suppress = 10d }\nflow "brief.test" { suppress = 1ms }\n'
    relay = lab.relay(config)
    _bounce(relay, "dead@dest.test")
    (row,) = _listed(relay)
    assert 29 * 86400 < row["until"] - row["last"] <= 30 * 86400

    def code(sender, **listener):
        with relay.client(**listener) as client:
            client.greet()
            client.command(f"MAIL FROM:<from@{sender}>")
            return client.command("RCPT TO:<dead@dest.test>", "").code

    assert [code(sender) for sender in ("sender.test", "bulk.test", "brief.test")] == [250, 550, 250]
    assert [code(sender, listener="news") for sender in ("sender.test", "bulk.test", "brief.test")] == [550, 550, 250]
