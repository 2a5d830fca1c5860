# SPDX-License-Identifier: ISC
"""Orders on the queue: hold, release, requeue, bounce; and what a message tells of its past."""

import contextlib
import json
import os
import pty
import re
import subprocess
import threading

from lab.config import Config
from lab.net import wait_until
from lab.relay import binary
from lab.sink import Rule

REFUSED = 1
LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}


def deferring(lab, **queue):
    """Start a relay whose next hop puts every recipient off until sink.behaviour.rules is emptied."""
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    config = Config(queue=LATER | queue).route_all_to(sink.port)
    return sink, lab.relay(config)


def put_off(relay, count=1):
    """Send messages, and wait until each has been put off. Returns their ids, in order."""
    for number in range(count):
        relay.send(recipients=[f"to{number}@dest.test"])
    relay.wait_event("deferred", count=count)
    wait_until(lambda: len(listed(relay, "--queue", "deferred")) == count, 60, "all to wait")
    return [message["id"] for message in listed(relay)]


def listed(relay, *words):
    """Return the queue as objects."""
    lines = relay.command("queue", "list", "--json", *words).stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_what_is_held_is_not_tried_until_it_is_released(lab):
    sink, relay = deferring(lab, minimal_backoff_time="300ms", maximal_backoff_time="300ms")
    relay.send()
    relay.wait_event("deferred")
    ident = listed(relay)[0]["id"]
    assert relay.command("queue", "hold", ident).returncode == 0
    wait_until(lambda: listed(relay, "--queue", "hold"), 60, "it to be held")
    sink.behaviour.rules.clear()
    tries = listed(relay)[0]["tries"]
    relay.kill()
    relay.start()
    assert listed(relay, "--queue", "hold")[0]["id"] == ident
    assert relay.command("queue", "flush", "--all").stdout.startswith("0 messages flushed\n")
    assert relay.command("queue", "hold", ident).returncode == REFUSED
    assert listed(relay)[0]["tries"] == tries and not sink.messages
    assert relay.command("queue", "release", ident).stdout == "1 message released\n"
    sink.wait_messages(1)
    relay.wait_event("done")
    assert not listed(relay)


def on_a_terminal(relay, *words):
    """Run a command with a terminal as its standard output, and return what that got."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([binary(), *words, "-c", relay.config_path], stdout=theirs) as process:
        os.close(theirs)
        got = b""
        with contextlib.suppress(OSError):  # it is over
            while more := os.read(ours, 65536):
                got += more
        os.close(ours)
        assert process.wait(60) == 0
    return got.replace(b"\r\n", b"\n")


def test_a_message_shown_on_a_terminal_orders_it_nothing(lab):
    """Neither by ESC nor by CSI of one byte, be it UTF-8 or of a terminal of 8 bits; what is no order is shown."""
    _, relay = deferring(lab)
    said = b"a\tb \x1b[2J \xc2\x9b2J \x9b2J \x7f \xe4 \xc3\xa4 \xe2\x82\xac \xf0\x9f\x93\xa7"
    relay.send(content=b"Subject: x\r\n\r\n" + said + b"\r\n")
    ident = listed(relay)[0]["id"]
    shown = on_a_terminal(relay, "queue", "show", ident, "--body")
    assert shown == b"a\tb ?[2J ??2J ?2J ? ? \xc3\xa4 \xe2\x82\xac \xf0\x9f\x93\xa7\n"
    plain = subprocess.run([binary(), "queue", "show", ident, "--body", "-c", relay.config_path], capture_output=True, timeout=60, check=True)
    assert plain.stdout == said + b"\n"


def test_all_can_be_held_and_released(lab):
    sink, relay = deferring(lab)
    put_off(relay, count=5)
    assert relay.command("queue", "hold", "--to", "to3@dest.test").stdout == "1 message held\n"
    assert relay.command("queue", "hold", "--all").stdout == "4 messages held\n1 held already\n"
    sink.behaviour.rules.clear()
    assert relay.command("queue", "release", "--all").stdout == "5 messages released\n"
    sink.wait_messages(5)


def test_a_message_is_returned_to_its_sender_on_order(lab):
    sink, relay = deferring(lab)
    ident = put_off(relay)[0]
    sink.behaviour.rules.clear()
    assert relay.command("queue", "bounce", ident).stdout == "1 message bounced\n"
    bounce = sink.wait_messages(1)[0]
    assert bounce.sender == "" and bounce.recipients == ["from@sender.test"]
    text = " ".join(bounce.content.decode().split())
    assert "returned by the postmaster" in text and "Try later" in text
    relay.wait_event("done", count=2)
    assert not listed(relay)


def test_requeue_follows_the_routes_that_hold_now(lab):
    _, relay = deferring(lab)
    ident = put_off(relay)[0]
    other = lab.sink()
    relay.config.route_all_to(other.port)
    relay.write_config()
    assert relay.command("reload").returncode == 0
    assert relay.command("queue", "requeue", ident).stdout == "1 message requeued\n"
    other.wait_messages(1)


def test_a_message_being_sent_is_deleted_after_its_verdict(lab):
    gate = threading.Event()
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later", gate=gate))
    relay = lab.relay(Config(queue=LATER).route_all_to(sink.port))
    relay.send()
    wait_until(lambda: sink.sessions, 60, "the delivery to begin")
    wait_until(lambda: listed(relay, "--queue", "active"), 60, "it to be active")
    ident = listed(relay)[0]["id"]
    done = relay.command("queue", "delete", ident)
    assert "1 message deleted\n" in done.stdout
    assert "1 of them when what is under way has ended" in done.stdout
    gate.set()
    relay.wait_event("deferred")
    wait_until(lambda: not listed(relay), 60, "it to be gone")


def _history(relay, ident):
    return json.loads(relay.command("queue", "show", ident, "--json").stdout)["history"]


def test_a_message_tells_its_whole_history(lab):
    sink, relay = deferring(lab)
    ident = put_off(relay)[0]
    for number in range(2, 6):
        sink.behaviour.rules[0] = Rule("rcpt", f"451 4.2.{number} Not at attempt {number}")
        relay.command("queue", "flush", ident)
        relay.wait_event("deferred", count=number)
        wait_until(lambda n=number: listed(relay)[0]["tries"] == n, 60, "the round to end")
    wait_until(lambda: len(_history(relay, ident)) == 5, what="the last round to be in the queue's files")
    relay.kill()
    relay.start()
    text = relay.command("queue", "show", ident, "--envelope").stdout
    rounds = re.findall(r"^round (\d+): \d{4}-\d\d-\d\d .* <to0@dest.test> deferred: .*451 (.*)$", text, re.M)
    assert [int(number) for number, _ in rounds] == [1, 2, 3, 4, 5]
    assert rounds[0][1] == "4.2.1 Try later" and rounds[4][1] == "4.2.5 Not at attempt 5"
    assert [entry["dsn"] for entry in _history(relay, ident)] == [f"4.2.{n}" for n in range(1, 6)]
