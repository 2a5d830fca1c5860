# SPDX-License-Identifier: ISC
"""Whose turn it is at a next hop with one slot: the relay's order, and a real Postfix's."""

import dataclasses
import itertools
import json
import threading
import time

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import LOOPBACK, wait_until
from lab.smtp import Client

ONE_SLOT = {
    "connection_limit": 1,
    "host_connection_limit": 1,
    "pipeline_depth": 1,
    "connection_max_messages": 0,
    "destination_recipient_limit": 1,
}
NO_LOAN = {"delivery_slot_discount": 0, "delivery_slot_loan": 0}


@dataclasses.dataclass
class Mix:
    """Messages of these sizes, all queued before the first delivery begins.

    Some may come later: when so many deliveries have begun, the last of which is under way. All
    have waited for so many seconds when their turn is decided: enough that the moment at which
    each came, or a whole second that passed in between, changes no order of age over size.
    """

    sizes: list
    settings: dict
    order: str
    begun: int = 0
    later: list = dataclasses.field(default_factory=list)
    wait: float = 0.5


# What the queue manager's document says, or follows from it; "3x2" are two slots of message 3.
MIXES = {
    "document": Mix(
        [10, 2, 2], {"delivery_slot_cost": 2} | NO_LOAN, "1x4 2x2 1x4 3x2 1x2"
    ),
    "discount": Mix(
        [10, 2, 2],
        {"delivery_slot_cost": 2, "delivery_slot_discount": 50, "delivery_slot_loan": 0},
        "1x2 2x2 1x4 3x2 1x4",
    ),
    "three-sizes": Mix(
        [20, 5, 3], {"delivery_slot_cost": 3} | NO_LOAN, "1x9 3x3 1x11 2x5", wait=3.0
    ),
    "too-small-to-give": Mix(
        [4, 1, 1, 1, 1], {"delivery_slot_cost": 2} | NO_LOAN, "1x4 2x1 3x1 4x1 5x1"
    ),
    "small-and-giving": Mix(
        [4, 1, 1, 1, 1],
        {"delivery_slot_cost": 2, "minimum_delivery_slots": 1} | NO_LOAN,
        "1x2 2x1 1x2 3x1 4x1 5x1",
    ),
    "past-who-slipped-past": Mix(
        [100, 20],
        {"delivery_slot_cost": 2, "minimum_delivery_slots": 1} | NO_LOAN,
        "1x40 2x10 5x1 3x2 2x2 4x3 2x8 1x60",
        begun=50,
        later=[2, 3, 1],
        wait=3.0,
    ),
    "nothing-saved": Mix(
        [100],
        NO_LOAN,
        "1x20 2x1 3x1 4x1 5x1 1x5 6x1 1x5 7x1 1x70",
        begun=20,
        later=[1] * 6,
    ),
    "singles-past-bulk": Mix(
        [1000],
        {},
        "1x100 " + " ".join(f"{number}x1" for number in range(2, 22)) + " 1x900",
        begun=100,
        later=[1] * 20,
    ),
}


def _runs(senders):
    return " ".join(f"{name}x{len(list(run))}" for name, run in itertools.groupby(senders))


def _play(mix, sink, gates, submit):
    """Have a mix delivered behind a plug, a message that holds the slot; return the order."""
    numbers = itertools.count(1)
    submit("plug@sender.test", 1)
    sink.wait_messages(1, 60)
    for size in mix.sizes:
        submit(f"{next(numbers)}@sender.test", size)
    time.sleep(mix.wait)  # Also, the next hop of the last one may still be looked up.
    gates[0].set()
    if mix.later:
        sink.wait_messages(1 + mix.begun, 60)
        for size in mix.later:
            submit(f"{next(numbers)}@sender.test", size)
        time.sleep(mix.wait)
    gates[1].set()
    got = sink.wait_messages(1 + sum(mix.sizes) + sum(mix.later), 200)
    assert len(got) == 1 + sum(mix.sizes) + sum(mix.later)
    return _runs(one.sender.partition("@")[0] for one in got[1:])


def _sink(lab, mix):
    """Start a sink that holds its reply to the plug, and to the last before others come."""
    gates = [threading.Event(), threading.Event()]
    for gate in gates:
        lab.callback(gate.set)
    rules = [Rule("end", gate=gates[0], times=1)]
    if mix.later:
        rules.append(Rule("end", gate=gates[1], after=mix.begun, times=1))
    return lab.sink(*rules), gates


def _recipients(count):
    return [f"to{number}@dest.test" for number in range(count)]


def _order_of_the_relay(lab, mix):
    sink, gates = _sink(lab, mix)
    config = Config(transports={"smtp": ONE_SLOT | mix.settings}).route_all_to(sink.port)
    relay = lab.relay(config)

    submitted = itertools.count(1)

    def come():
        """How many the scheduler has got: earlier ones may be done meanwhile."""
        active = json.loads(relay.command("stats", "--json").stdout)['queue_messages{queue="active"}']
        return active + len(relay.events("done"))

    def submit(sender, count):
        relay.send(sender, _recipients(count))
        number = next(submitted)
        wait_until(lambda: come() >= number, what="the scheduler to have it")

    order = _play(mix, sink, gates, submit)
    relay.close()
    return order


def _order_of_postfix(lab, mix):
    sink, gates = _sink(lab, mix)
    settings = {f"default_{name}": value for name, value in mix.settings.items()}
    settings["default_destination_recipient_limit"] = 1
    postfix = lab.postfix(next_hop=sink.port, settings=settings, processes=1)

    def submit(sender, count):
        with Client(LOOPBACK, postfix.port, 30) as client:
            client.greet()
            client.send_mail(sender, _recipients(count))
        postfix.wait_log(rf"from=<{sender}>, .*queue active", timeout=60)

    return _play(mix, sink, gates, submit)


@pytest.mark.parametrize("name", MIXES)
def test_few_slip_past_many_as_the_document_says(lab, name):
    assert _order_of_the_relay(lab, MIXES[name]) == MIXES[name].order


@pytest.mark.plain_only
@pytest.mark.seconds(480)
@pytest.mark.parametrize("name", MIXES)
def test_the_order_is_that_of_a_real_postfix(lab, name):
    assert _order_of_the_relay(lab, MIXES[name]) == _order_of_postfix(lab, MIXES[name])
