# SPDX-License-Identifier: ISC
"""Whose mail it is, and that nobody waits for what another has sent."""

import json
import os
import pathlib
import re
import statistics
import subprocess
import threading
import time

import pytest

from lab import sasl
from lab.config import Config
from lab.load import Load
from lab.net import longer, wait_until
from lab.relay import binary
from lab.sink import Rule
from lab.spool import crc32c

CONTENT = b"Subject: one\r\n%sFrom: <a@b.test>\r\n\r\nHello.\r\n"


def _content(tenant=None):
    return CONTENT % (b"X-Tenant: %s\r\n" % tenant if tenant else b"")


def _relay(lab, *rules, smtp=None, **settings):
    sink = lab.sink(*rules)
    folder = lab.folder("flows")
    (folder / "flows").write_text("login:ann news\n.shop.test shop\n127.0.0.0/8 here\n", encoding="utf-8")
    users = folder / "users"
    for login in ("ann", "bert"):
        assert sasl.passwd(users, login, "secret").returncode == 0
    config = Config({"flow_header": "X-Tenant", "flows": [str(folder / "flows")], **settings},
                    transports={"smtp": smtp or {}}).route_all_to(sink.port)
    config.listeners = {"open": {"auth": "yes"}, "strangers": {"networks": ["192.0.2.0/24"]}}
    config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
    return sink, lab.relay(config)


def _send(relay, sender, tenant=None, login=None, listener=None, to="to@dest.test"):
    with relay.client(listener) as client:
        client.greet()
        if login:
            client.command(f"AUTH PLAIN {sasl.plain(login, 'secret')}", 235)
        client.send_mail(sender, [to], _content(tenant))


def test_whose_mail_it_is_is_decided_when_it_comes(lab):
    """By the field, which is removed, the table, the login, the sender's domain: the first that there is; and every line says it."""
    sink, relay = _relay(lab, postmaster="pm@dest.test")
    wanted = [("red", dict(sender="x@a.shop.test", tenant=b"red", login="ann")), ("news", dict(sender="x@a.shop.test", login="ann")),
              ("shop", dict(sender="x@a.shop.test", login="bert")), ("here", dict(sender="x@other.test", tenant=b"no name", login="bert"))]
    for flow, sent in wanted:
        _send(relay, **sent)
        relay.wait_event("sent", flow=flow, count=1)
        assert relay.events("queued", flow=flow)
    assert "no name" in relay.events("flow", state="ignored")[0]["reason"]
    _send(relay, "x@a.shop.test", b"red", listener="strangers", to="postmaster")
    relay.wait_event("sent", flow="shop", count=2)  # a stranger names nothing
    assert len(relay.events("sent", flow="red")) == 1
    for message in sink.wait_messages(5):
        assert not re.search(rb"(?im)^X-Tenant:", message.content)
        assert b"Hello." in message.content


def test_a_flow_outlives_a_restart(lab):
    sink, relay = _relay(lab, Rule("rcpt", reply="452 4.2.2 mailbox full", times=2))
    _send(relay, "x@other.test", b"red")
    relay.wait_event("deferred", flow="red")
    relay.kill()
    relay.start()
    relay.command("queue", "flush", "--all")
    relay.wait_event("deferred", flow="red", count=2)
    relay.restart()
    relay.command("queue", "flush", "--all")
    relay.wait_event("sent", flow="red")
    assert len(sink.messages) == 1


def test_reports_are_a_flow_of_their_own(lab):
    _, relay = _relay(lab, Rule("rcpt", reply="550 5.1.1 nobody", pattern="^to@"))
    _send(relay, "x@other.test", b"red")
    relay.wait_event("bounced", flow="red")
    relay.wait_event("sent", flow="<reports>")
    assert relay.events("queued", flow="<reports>")


def test_one_message_passes_thousands_of_another_sender(lab):
    """A next hop of 100 a second has thousands to take; who sends one now and then waits for a few of them, not for all."""
    flood = longer(1000, 4000)
    sink, relay = _relay(lab, Rule("end", delay=0.05, pattern=""), flows=[],
                         smtp={"destination_concurrency_limit": 5, "initial_destination_concurrency": 5})
    Load(relay.port, flood, sessions=50).finish()  # faster than the next hop, however slow the disk
    between, waited = [], []
    for number in range(longer(10, 30)):
        began, before = time.monotonic(), len(sink.messages)
        assert before < flood - 200, "the flood must last for as long as this looks"
        relay.send(sender="boss@other.test", recipients=[f"one{number}@dest.test"])
        queued = len(sink.messages)
        wait_until(lambda: any(f"one{number}@dest.test" in one.recipients for one in sink.messages[before:]), what="the one")
        waited.append(time.monotonic() - began)
        seen = sink.messages
        place = next(i for i, one in enumerate(seen) if f"one{number}@dest.test" in one.recipients)
        between.append(place - queued)
    print(f"between: {between}; median {statistics.median(waited):.3f} s, worst {max(waited):.3f} s")
    assert max(between) < 40, between
    wait_until(lambda: len(sink.messages) == flood + len(between), timeout=120, what="all of the flood")


def _waiting(relay, *words):
    return sorted(one["user"] for one in map(json.loads, relay.command("queue", "list", "--json", *words).stdout.splitlines()))


def test_a_stolen_password_is_answered_by_two_commands(lab):
    """The login is shut, and what it has sent is held, whatever its senders, after a restart too; others' mail goes on."""
    sink, relay = _relay(lab, Rule("rcpt", reply="451 4.3.0 come again", pattern="^later@"), flows=[])
    for sender, login in (("x@one.test", "ann"), ("y@two.test", "ann"), ("z@one.test", "bert")):
        _send(relay, sender, login=login, to="later@dest.test")
    relay.wait_event("deferred", count=3)
    relay.kill()
    relay.start()
    # What the disk did not have yet is tried once more, and until then waits as what was put off does.
    relay.wait_event("recover", count=2)
    relay.wait_event("deferred", count=3 + len(relay.events("recovered")))
    wait_until(lambda: _waiting(relay, "--queue", "deferred") == ["ann", "ann", "bert"], what="all of it to have been put off")
    assert relay.command("user", "suspend", "ann").returncode == 0
    assert relay.command("queue", "hold", "--login", "ann").stdout == "2 messages held\n"
    _send(relay, "z@one.test", login="bert")
    relay.wait_event("sent", flow="bert", user="bert", client="127.0.0.1")
    assert _waiting(relay, "--login", "ann") == _waiting(relay, "--queue", "hold", "--client", "127.0.0.0/8", "--flow", "ann") == ["ann", "ann"]
    assert _waiting(relay, "--queue", "deferred") == ["bert"]
    assert _waiting(relay, "--client", "192.0.2.1") == _waiting(relay, "--flow", "cora") == []
    shown = relay.command("queue", "show", relay.events("queued", user="ann")[0]["id"], "--envelope").stdout
    assert "\nflow:    ann\nuser:    ann\nclient:  127.0.0.1\n" in shown
    with relay.client() as client:
        client.greet()
        client.command(f"AUTH PLAIN {sasl.plain('ann', 'secret')}", 235)
        client.command("MAIL FROM:<x@one.test>", 550)
    relay.stop()
    done = relay.command("queue", "delete", "--login", "ann")  # by its queue on disk
    assert done.stdout == "2 messages deleted\n", done.stderr
    relay.start()
    assert _waiting(relay) == ["bert"]
    assert len(sink.messages) == 1


def _flow(relay, name):
    return json.loads(relay.command("flow", "show", name, "--json").stdout)


def test_a_suspended_flow_waits_and_no_other(lab):
    """Its mail is taken and waits, after a restart too, and explain says why; another's goes on; resumed, it is sent at once."""
    sink, relay = _relay(lab, flows=[])
    assert relay.command("flow", "resume", "red").returncode == 1
    assert relay.command("flow", "suspend", "red").stdout == "red suspended\n"
    _send(relay, "x@other.test", b"red")
    message = relay.wait_event("deferred", flow="red")["id"]
    assert "the flow is suspended by the operator" in relay.events("deferred", id=message)[0]["reply"]
    relay.kill()
    relay.start()
    assert relay.command("flow", "list").stdout.startswith("red suspended weight=1 ")
    relay.command("queue", "flush", "--all")
    relay.wait_event("deferred", flow="red", count=2)
    assert "flow is suspended by the operator" in relay.command("explain", message).stdout
    assert relay.command("dest", "list").stdout.count("suspended") == 0
    _send(relay, "x@other.test", b"blue")
    relay.wait_event("sent", flow="blue")
    assert not relay.events("sent", flow="red")
    assert relay.command("flow", "resume", "red").stdout == "red resumed\n"
    relay.wait_event("sent", flow="red")
    wait_until(lambda: _flow(relay, "red")["sent"] == 1 and _flow(relay, "red")["messages"] == 0, what="red is done")
    assert relay.command("flow", "reset", "red").stdout == "red reset\n"
    assert relay.command("flow", "show", "red").returncode == 1
    assert len(sink.messages) == 2
    assert [event["state"] for event in relay.events("flow", flow="red")] == ["suspended", "suspended", "resumed"]


def test_shape_dest_and_explain_tell_of_one_flow(lab):
    gate = threading.Event()
    sinks = {name: lab.sink(Rule("mail", gate=gate)) for name in ("one", "two")}
    config = Config(queue={"minimal_backoff_time": "1h"})
    for name, sink in sinks.items():
        config.routes[f"{name}.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"]}
    relay = lab.relay(config)
    try:
        for sender, to in (("red", ["x@one.test"]), ("red", ["y@one.test"]), ("blue", ["x@two.test", "y@two.test"])):
            relay.send(f"a@{sender}.test", to)
        ids = {event["flow"]: event["id"] for event in relay.wait_events("queued", count=3)}

        def total(*words):
            return json.loads(relay.command("shape", "active", "incoming", "--json", *words).stdout.splitlines()[0])["total"]

        def lines(*words, status=0):
            done = relay.command(*words)
            assert done.returncode == status, (words, done)
            return done.stdout.splitlines()

        wait_until(lambda: all(sink.connections for sink in sinks.values()) and len(lines("queue", "list", "--queue", "active", "--json")) == 3,
                   what="all to be worked on")
        assert total() == 4 and total("--flow", "RED.test") == total("--flow=blue.test") == 2
        assert total("--flow", "red.test", "--flow", "blue.test") == 4 and total("--flow", "nobody") == 0
        assert total("--flow", "red.test", "--from", "*@blue.test") == 0
        for flow, own, other in (("red.test", "one", "two"), ("BLUE.TEST", "two", "one")):
            for verb in ("list", "show"):
                said = "\n".join(lines("dest", verb, "--flow", flow))
                assert f":{sinks[own].port}" in said and f":{sinks[other].port}" not in said
            lines("dest", "list", f"{other}.test", "--flow", flow, status=1)
            assert lines("dest", "list", f"{own}.test", f"--flow={flow}")
            for words in ([], [f"{own}.test"]):
                said = lines("explain", "--flow", flow, *words)
                assert len(said) == 1 and said[0].startswith(f"flow {flow}: 2 recipients for ")
            lines("explain", f"{other}.test", "--flow", flow, status=1)
            lines("explain", ids[flow.lower()], "--flow", "nobody", status=1)
            row, = map(json.loads, lines("explain", "--json", ids[flow.lower()], "--flow", flow))
            assert row["id"] == ids[flow.lower()]
        lines("dest", "list", "--flow", "nobody", status=1)
        lines("explain", "--flow", "nobody", status=1)
        for words in (["dest", "suspend", "one.test", "--flow", "red.test"], ["flow", "list", "--flow", "red.test"], ["dest", "--flow", ""],
                      ["user", "list", "--flow", "red.test"], ["explain", "--flow", ""], ["explain"]):
            lines(*words, status=2)
        lines("flow", "suspend", "red.test")
        said = [json.loads(line) for line in lines("explain", "--json", "--flow", "red.test")]
        assert said[0]["constraint"] == "suspended" and "sluice flow resume" in said[0]["relief"]
    finally:
        gate.set()
    relay.wait_events("sent", flow="blue.test", count=2)


@pytest.mark.parametrize(("suspended", "resumed"), [("other.test.", "Other.test"), ("OTHER.test", "other.test.")])
def test_a_flow_is_one_in_all_its_spellings(lab, suspended, resumed):
    """What waited for one that was suspended with a final dot was not due when it was resumed, and waited for its time."""
    _, relay = _relay(lab, flows=[])
    relay.command("flow", "suspend", suspended)
    _send(relay, "x@other.test")
    message = relay.wait_event("deferred", flow="other.test")["id"]
    for name in (suspended, resumed, "other.test"):
        assert relay.command("queue", "list", "--flow", name).stdout.startswith(f"{message} ")
    assert relay.command("flow", "resume", resumed).returncode == 0
    relay.wait_event("sent", id=message)


def test_until_when_a_flow_is_suspended_is_local_time(lab):
    """As all times that commands print for people; list had UTC, and show the local time beside it."""
    relay = lab.relay()
    assert relay.command("flow", "suspend", "red", "--for", "1h").returncode == 0
    (row,) = relay.command("flow", "list").stdout.splitlines()
    assert re.search(r' until="\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [-+]\d{4}"$', row), row


def test_behind_two_dashes_is_a_name(lab):
    """As with every other command; two dashes were an option that there is not."""
    environment = os.environ | {"SLUICE_CONF": lab.relay().config_path}

    def done(*words):
        return subprocess.run([binary(), *words], env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert done("flow", "suspend", "--for", "1h", "--", "-odd").returncode == 0
    assert done("dest", "--", "list").returncode == 0
    (flow,) = (json.loads(line) for line in done("flow", "show", "--json", "--", "-odd").stdout.splitlines())
    assert flow["flow"] == "-odd" and flow["suspended"]
    assert done("flow", "resume", "-odd").returncode == 2


def test_what_can_be_no_flow_is_not_said_to_be_suspended(lab):
    """A section flow "*" is about all of them: whoever suspends it must not believe that all mail waits."""
    relay = lab.relay()
    for name in ("*", "@sender.test"):
        done = relay.command("flow", "suspend", name)
        assert (done.returncode, done.stdout) == (2, "") and f"{name} is no flow" in done.stderr
    for name in ("sender.test", "<>", "<reports>", "ann@sender.test", "*.sender.test"):
        assert relay.command("flow", "suspend", name).returncode == 0


def test_what_became_of_a_flow_is_known_after_a_restart(lab):
    _, relay = _relay(lab, flows=[])
    _send(relay, "x@other.test", b"red")
    relay.wait_event("sent", flow="red")
    kept = pathlib.Path(relay.spool) / "flows"
    wait_until(lambda: kept.exists() and b" red\n" in kept.read_bytes(), 60, "it was written")
    relay.kill()
    relay.start()
    assert (_flow(relay, "red")["sent"], _flow(relay, "red")["hour"]["sent"]) == (1, 1)
    _send(relay, "x@other.test", b"red")
    relay.wait_event("sent", flow="red", count=2)
    relay.restart()
    red = _flow(relay, "red")
    assert (red["sent"], red["hour"]["sent"], red["refused"], red["yesterday"]["sent"]) == (2, 2, 0, 0)
    assert " sent=2 deferred=0 refused=0 sent_hour=2 deferred_hour=0 refused_hour=0" in relay.command("flow", "list").stdout


def test_what_waits_in_memory_leaves_when_its_flow_is_suspended(lab):
    """And it does so by itself when the time is over that the operator has said."""
    sink, relay = _relay(lab, Rule("end", delay=1.5, pattern=""), flows=[], smtp={"destination_concurrency_limit": 1})
    for _ in range(8):
        _send(relay, "x@other.test", b"red")
    wait_until(lambda: _flow(relay, "red")["sending"] > 0, what="red on its way")
    relay.command("flow", "suspend", "red", "--for", "365d")
    wait_until(lambda: _flow(relay, "red")["messages"] == 0, what="red gone from memory")
    sent = _flow(relay, "red")["sent"]
    assert sent < 8, "the next hop is too fast for this test"
    _send(relay, "x@other.test", b"blue")
    relay.wait_event("sent", flow="blue")
    assert _flow(relay, "red")["sent"] == sent
    relay.command("flow", "suspend", "red", "--for", "1s")
    relay.wait_event("flow", flow="red", state="resumed")
    relay.wait_event("sent", flow="red", count=8)
    assert len(sink.messages) == 9


def _end_in_the_past(relay):
    """What is suspended for some time, by the file that says so, has ended while the relay was away."""
    path = pathlib.Path(relay.spool, "destdb")
    text, changed = re.subn(rb"\buntil=[1-9]\d+", b"until=1", path.read_bytes())
    assert changed == 1
    text = text[:text.rindex(b"crc ")]
    path.write_bytes(text + b"crc %08X\n" % crc32c(text))


@pytest.mark.parametrize("words, event", [(("flow", "suspend", "red"), "flow"), (("dest", "suspend", "dest.test"), "site")])
def test_what_waits_for_a_suspension_that_ends_while_the_relay_is_down_is_sent_at_the_start(lab, words, event):
    _, relay = _relay(lab, flows=[])
    relay.config.queue["minimal_backoff_time"] = "1h"
    relay.write_config()
    relay.command("reload")
    assert relay.command(*words, "--for", "1h").returncode == 0
    _send(relay, "x@other.test", b"red")
    wait_until(lambda: _in_queue(relay, "deferred") == 1, what="it to be put off")
    relay.stop()
    _end_in_the_past(relay)
    relay.start()
    assert relay.wait_event(event, state="resumed")["reason"] == "its time was over before this start"
    relay.wait_event("sent", flow="red")
    relay.restart()
    assert len(relay.events(event, state="resumed")) == 1


def _in_queue(relay, queue):
    return len(relay.command("queue", "list", "--queue", queue, "--json").stdout.splitlines())


def _flooded(lab, share):
    """Twenty may be in work, and a host keeps all that one sender has in it; one more of it waits."""
    gate, sink = threading.Event(), lab.sink()
    stuck = lab.sink(Rule("end", pattern="", gate=gate))
    config = Config({"flow_header": "X-Tenant"}, queue={"message_active_limit": 20, "in_flow_delay": "10s"}).route_all_to(sink.port)
    config.routes["stuck.test"] = {"relay": [f"[127.0.0.1]:{stuck.port}"]}
    config.extra = f'flow "*" {{ share = "{share}%" }}\n'
    relay = lab.relay(config)
    held = 20 * share // 100
    for number in range(held + 1):
        _send(relay, "x@other.test", b"red", to=f"r{number}@stuck.test")
    wait_until(lambda: (_in_queue(relay, "active"), _in_queue(relay, "incoming")) == (held, 1), what="a flow at its share")
    return gate, stuck, relay


def test_a_flood_leaves_room_for_the_next_sender(lab):
    """Nine tenths of the active queue are all that one flow may fill: another's mail goes on, and only the flood's clients are slowed down."""
    gate, stuck, relay = _flooded(lab, 90)
    with relay.client(timeout=60) as flood:
        flood.greet()
        flood.command("MAIL FROM:<x@other.test>")
        flood.command("RCPT TO:<late@stuck.test>")
        flood.command("DATA", 354)
        flood.send(_content(b"red") + b".\r\n")
        _send(relay, "y@other.test", b"blue")
        relay.wait_event("sent", flow="blue")
        assert len(relay.events("queued", flow="red")) == 19, "the flood was not slowed down"
        gate.set()
        flood.expect(250)
    stuck.wait_messages(20)


def test_without_a_share_a_flood_leaves_no_room(lab):
    gate, stuck, relay = _flooded(lab, 100)
    _send(relay, "y@other.test", b"blue")
    wait_until(lambda: _in_queue(relay, "incoming") == 2, what="the other sender's message, which waits")
    assert not relay.events("sent")
    gate.set()
    relay.wait_event("sent", flow="blue")
    stuck.wait_messages(21)
