# SPDX-License-Identifier: ISC
"""The scheduler's settings, through the real program: order, rate, and the brake on senders."""

import json
import threading
import time

from lab.behaviour import Rule
from lab.config import Config
from lab.net import wait_until

SLOW = {"connection_limit": 1, "pipeline_depth": 1, "destination_recipient_limit": 1}


def _relay(lab, sink, transport=None, **queue):
    config = Config(transports={"smtp": transport or {}}, queue=queue)
    return lab.relay(config.route_all_to(sink.port))


def _wait_queued(relay, queue, count):
    """Wait until so many messages are in a queue."""
    name = f'queue_messages{{queue="{queue}"}}'
    wait_until(lambda: json.loads(relay.command("stats", "--json").stdout)[name] == count, what=f"{count} in {queue}")


def test_single_messages_slip_past_a_bulk_message(lab):
    gate = threading.Event()
    sink = lab.sink(Rule("end", gate=gate, after=20, times=1))
    relay = _relay(lab, sink, SLOW)
    bulk = [f"r{number}@dest.test" for number in range(150)]
    relay.send("bulk@sender.test", bulk)
    sink.wait_messages(20, timeout=60)
    for number in range(5):
        relay.send(f"single{number}@sender.test")
    _wait_queued(relay, "active", 6)
    gate.set()
    relay.wait_event("done", count=6, timeout=100)
    order = [one.sender for one in sink.messages]
    assert len(order) == 155
    last_single = max(i for i, sender in enumerate(order) if sender.startswith("single"))
    assert last_single < 150


def test_deliveries_keep_to_the_rate_of_a_destination(lab):
    sink = lab.sink()
    relay = _relay(lab, sink, {"destination_rate": "5/s"})
    began = time.monotonic()
    for number in range(6):
        relay.send(f"from{number}@sender.test")
    sink.wait_messages(6, timeout=60)
    assert time.monotonic() - began >= 0.99


def test_deliveries_keep_the_delay_of_a_destination(lab):
    sink = lab.sink()
    relay = _relay(lab, sink, {"destination_rate_delay": "300ms"})
    began = time.monotonic()
    for number in range(4):
        relay.send(f"from{number}@sender.test")
    sink.wait_messages(4, timeout=60)
    assert time.monotonic() - began >= 0.89
    assert sink.connections <= 4


def test_senders_are_slowed_down_while_the_scheduler_is_behind(lab):
    gate = threading.Event()
    sink = lab.sink(Rule("end", gate=gate, times=1))
    relay = _relay(lab, sink, message_active_limit=1, in_flow_delay="1500ms")
    relay.send("first@sender.test")
    relay.send("waits@sender.test")
    _wait_queued(relay, "incoming", 1)
    began = time.monotonic()
    relay.send("slowed@sender.test")
    assert time.monotonic() - began >= 1.4
    gate.set()
    relay.wait_event("done", count=3, timeout=60)
    relay.config.queue["in_flow_delay"] = "10s"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    began = time.monotonic()
    for number in range(1, 11):
        relay.send("again@sender.test")
        relay.wait_event("done", count=3 + number)
    assert time.monotonic() - began < 50, "each was slowed down"
    sink.wait_messages(13, timeout=60)


def _bring(client):
    """Bring a message from who is slowed down, and don't wait for its answer."""
    client.greet()
    client.command("MAIL FROM:<slowed@sender.test>")
    client.command("RCPT TO:<to@dest.test>")
    client.command("DATA", 354)
    client.send(b"Subject: x\r\n\r\nx\r\n.\r\n")


def test_a_sender_that_is_slowed_down_goes_on_when_the_queue_has_caught_up(lab):
    """Else all clients of a busy relay stand still at once, for as long as it takes, and soon its deliveries do."""
    gate = threading.Event()
    sink = lab.sink(Rule("end", gate=gate))
    relay = _relay(lab, sink, message_active_limit=1, in_flow_delay="10s")
    began = time.monotonic()
    for number in range(6):
        relay.send("first@sender.test")
        relay.send("waits@sender.test")
        _wait_queued(relay, "incoming", 1)
        with relay.client(timeout=60) as client:
            _bring(client)
            gate.set()
            client.expect(250)
        relay.wait_event("done", count=3 * (number + 1), timeout=60)
        gate.clear()
    assert time.monotonic() - began < 50, "each waited for the whole delay"


def test_a_sender_that_is_slowed_down_is_answered_at_the_stop(lab):
    sink = lab.sink(Rule("end", delay=300, times=1))
    relay = _relay(lab, sink, message_active_limit=1, in_flow_delay="10s")
    relay.send("first@sender.test")
    relay.send("waits@sender.test")
    _wait_queued(relay, "incoming", 1)
    with relay.client(timeout=60) as client:
        _bring(client)
        _wait_queued(relay, "incoming", 2)
        relay.stop()
        client.expect(250)


def test_the_steps_of_a_window_are_logged(lab):
    sink = lab.sink()
    relay = _relay(lab, sink, {"destination_concurrency_feedback_debug": True})
    relay.send()
    event = relay.wait_event("site", state="success")
    assert "window" in str(event)
