# SPDX-License-Identifier: ISC
"""A queue that others may have is begun by its own node only: what a start under another name, or without replication, does."""

import json
import os
from collections import Counter

import pytest
from test_adopt import config_of, lose_disk, row_of, take
from test_adopt_trouble import later, nodes_of

from lab.nats import Nats
from lab.net import wait_until

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(600)]
REFUSED, UNREACHABLE = 1, 75


@pytest.fixture(name="nats")
def fixture_nats(lab):
    """One server, with no nodes of other tests."""
    nats = Nats(lab.folder("nats"), servers=1)
    lab.callback(nats.close)
    return nats.start()


def deferred(relay, count):
    """Wait until each of so many messages was tried."""
    wait_until(lambda: len({one["id"] for one in relay.events("deferred")}) >= count, 60, "all to be tried")


def came(sink):
    """How often each recipient was served."""
    return Counter(address for one in sink.messages for address in one.recipients)


def configure(relay, extra):
    """Change what its configuration says of the cluster."""
    relay.config.extra = extra
    relay.write_config()


def cluster(nats, sink, name, **settings):
    """Return the section of a node."""
    return config_of(nats.addresses, sink, name, nats_replicas=1, **{"adopt_after": "5s"} | settings).extra


def refused(relay, *words):
    """A start is refused, and says why with these words; a check warns of that."""
    start = relay.command("serve")
    assert start.returncode == REFUSED
    checked = relay.command("check", "--strict")
    assert checked.returncode == REFUSED and "will not start" in checked.stderr
    for word in words:
        assert word in start.stderr and word in checked.stderr


def leave(relay):
    """Have it leave the others, and go on alone."""
    relay.stop()
    assert relay.command("node", "leave").returncode == 0
    configure(relay, "")
    relay.start()


def empty(relay):
    """Wait until nothing is in its queue."""
    wait_until(lambda: relay.command("queue", "list").stdout.startswith("-- 0 "), 60, "its queue to be empty")


def drain(relay):
    """Have another node take its queue, and wait for its end."""
    wait_until(lambda: relay.command("node", "drain").returncode == 0, 60, "it to be drained")
    relay.wait_ended()


def test_a_queue_gets_another_name_only_when_it_was_drained(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "a1", "a2")
    relay = nodes["a1"]
    taken = take(relay, 3, 0)
    deferred(relay, 3)
    relay.stop()
    configure(relay, cluster(nats, sink, "other"))
    refused(relay, f"{relay.spool}/node", '"a1"', '"other"', "sluice node drain")
    configure(relay, cluster(nats, sink, "a1"))
    relay.start()
    relay.wait_event("node", 60, state="up", count=2)
    drain(relay)
    nodes.wait_adopted("a1")
    configure(relay, cluster(nats, sink, "other"))
    relay.start()
    assert "handed over" in relay.wait_event("node", state="put aside").keys["reason"]
    relay.wait_event("node", 60, state="up", node="other")
    assert relay.command("queue", "list").stdout.startswith("-- 0 ")
    sink.behaviour.rules.clear()
    empty(nodes["a2"])
    assert came(sink) == Counter(taken.keys())


def test_another_hostname_is_another_name(lab, nats):
    sink = lab.sink(later())
    relay = lab.relay(config_of(nats.addresses, sink, "", nats_replicas=1, adopt_after="5s"))
    relay.wait_event("node", 60, state="up")
    relay.stop()
    before = relay.config.settings["hostname"]
    relay.config.settings["hostname"] = "moved.test"
    relay.write_config()
    refused(relay, f'"{before}"', '"moved.test"')


def test_a_restart_under_another_name_is_refused_while_the_relay_still_serves(lab, nats):
    relay = nodes_of(lab, nats, lab.sink(), "r1")["r1"]
    configure(relay, cluster(nats, lab.sink(), "other"))
    restart = relay.command("restart")
    assert restart.returncode == REFUSED and '"other"' in restart.stderr
    assert relay.send().code == 250


def test_a_node_that_was_drained_begins_empty_without_replication(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "b1", "b2")
    relay = nodes["b1"]
    taken = take(relay, 3, 0)
    deferred(relay, 3)
    drain(relay)
    configure(relay, "")
    relay.start()
    assert relay.command("queue", "list").stdout.startswith("-- 0 ")
    assert os.listdir(f"{relay.spool}/adopted")
    sink.behaviour.rules.clear()
    nodes.wait_adopted("b1")
    empty(nodes["b2"])
    assert came(sink) == Counter(taken.keys())
    assert relay.send().code == 250


def test_replication_is_switched_off_by_an_order_and_on_again(lab, nats):
    sink = lab.sink(later())
    relay = nodes_of(lab, nats, sink, "c1", adopt_after="0s")["c1"]
    taken = take(relay, 2, 0)
    assert "running" in relay.command("node", "leave").stderr
    relay.stop()
    configure(relay, "")
    refused(relay, '"c1"', "sluice node leave")
    assert relay.command("node", "leave").returncode == 0
    assert relay.command("check", "--strict").returncode == 0
    assert relay.command("queue", "hold", next(iter(taken.values()))).returncode == 0
    relay.start()
    taken |= take(relay, 2, 100)
    relay.stop()
    configure(relay, cluster(nats, sink, "other", adopt_after="0s"))
    refused(relay, '"c1"', '"other"')
    configure(relay, cluster(nats, sink, "c1", adopt_after="0s"))
    relay.start()
    relay.wait_event("node", 60, state="up", count=2)
    assert "-- 4 " in relay.command("queue", "list").stdout
    assert not relay.events("node", state="put aside")
    relay.stop()
    configure(relay, "")
    refused(relay, '"c1"')  # once more a node's


def test_what_was_taken_alone_is_not_put_aside_with_what_others_have(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "d1", "d2")
    relay = nodes["d1"]
    leave(relay)
    taken = take(relay, 2, 0)
    nodes.wait_adopted("d1")
    relay.stop()
    configure(relay, cluster(nats, sink, "d1"))
    relay.start()
    relay.wait_event("node", 60, state="up", count=2)
    assert row_of(nats, "d1")["since"] == row_of(nats, "d1")["epoch"]  # a life of its own
    assert not relay.events("node", state="put aside")
    sink.behaviour.rules.clear()
    empty(relay)
    assert came(sink) == Counter(taken.keys())


def test_a_start_under_the_name_of_a_living_node_puts_nothing_aside(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "e1", "e2", adopt_after="0s")
    relay = nodes["e2"]
    take(relay, 2, 0)
    relay.stop()
    configure(relay, cluster(nats, sink, "e1", adopt_after="0s"))
    refused(relay, '"e2"', '"e1"')
    configure(relay, cluster(nats, sink, "e2", adopt_after="0s"))
    relay.start()
    relay.wait_event("node", 60, state="up", count=2)
    assert "-- 2 " in relay.command("queue", "list").stdout
    assert not os.path.exists(f"{relay.spool}/adopted")


def test_an_adoption_is_ended_by_a_start_with_replication_only(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "f1", "f2")
    relay = nodes["f2"]
    taken = take(nodes["f1"], 2, 0)
    lose_disk(nodes["f1"])
    relay.wait_event("adopted", 60, count=2)
    relay.kill()
    assert os.path.exists(f"{relay.spool}/adopting")
    configure(relay, "")
    refused(relay, f"{relay.spool}/adopting", '"f1"')
    assert relay.command("node", "leave").returncode == REFUSED
    configure(relay, cluster(nats, sink, "f2"))
    relay.start()
    nodes.wait_adopted("f1")
    sink.behaviour.rules.clear()
    empty(relay)
    assert came(sink).keys() == taken.keys()


def test_orders_on_a_stopped_node_say_that_another_may_have_its_queue(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "g1", "g2")
    relay = nodes["g1"]
    taken = take(relay, 3, 0)
    deferred(relay, 3)
    relay.stop()
    for verb in ("delete", "hold", "bounce"):
        order = relay.command("queue", verb, "--all")
        assert order.returncode == UNREACHABLE and "another node may have this queue" in order.stderr
    listed = relay.command("queue", "list")
    assert listed.returncode == 0 and "-- 3 " in listed.stdout and "another node may have this queue" in listed.stderr
    nodes.wait_adopted("g1")
    sink.behaviour.rules.clear()
    empty(nodes["g2"])
    assert came(sink) == Counter(taken.keys())


def test_the_queue_of_a_name_that_was_retired_meanwhile_is_put_aside(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "h1", "h2")
    relay = nodes["h1"]
    taken = take(relay, 3, 0)
    relay.kill()
    nodes.wait_adopted("h1")
    retire = nodes["h2"].command("node", "retire", "h1")
    assert retire.returncode == 0
    listed = nodes["h2"].command("node", "list", "--json").stdout.splitlines()
    assert json.loads(listed[0])["queue"] == "retired"
    again = nodes["h2"].command("node", "retire", "h1")
    assert again.returncode == REFUSED and "it is retired already" in again.stderr
    relay.start()
    assert "is retired" in relay.wait_event("node", 60, state="waiting").keys["reason"]
    assert relay.command("queue", "list").stdout.startswith("-- 0 ") and os.listdir(f"{relay.spool}/adopted")
    drained = relay.command("node", "drain")
    assert drained.returncode == REFUSED and "is retired" in drained.stderr
    relay.stop()
    configure(relay, cluster(nats, sink, "h3"))
    relay.start()
    relay.wait_event("node", 60, state="up", node="h3")
    sink.behaviour.rules.clear()
    empty(nodes["h2"])
    assert came(sink) == Counter(taken.keys())


def test_who_had_left_takes_its_queue_to_another_name_when_the_old_one_is_retired(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "j1", "j2")
    relay = nodes["j1"]
    leave(relay)
    taken = take(relay, 2, 0)
    relay.stop()
    nodes.wait_adopted("j1")
    assert nodes["j2"].command("node", "retire", "j1").returncode == 0
    configure(relay, cluster(nats, sink, "j1"))
    relay.start()
    assert "is retired" in relay.wait_event("node", 60, state="waiting").keys["reason"]
    relay.stop()
    again = relay.command("node", "leave")
    assert again.returncode == REFUSED and "this machine's alone" in again.stderr
    configure(relay, cluster(nats, sink, "j3"))
    relay.start()
    relay.wait_event("node", 60, state="up", node="j3")
    assert "-- 2 " in relay.command("queue", "list").stdout and not relay.events("node", state="put aside")
    sink.behaviour.rules.clear()
    empty(relay)
    assert came(sink) == Counter(taken.keys())


def test_a_node_that_can_not_note_its_next_epoch_waits_until_it_can(lab, nats):
    relay = nodes_of(lab, nats, lab.sink(), "i1", adopt_after="60s")["i1"]
    relay.stop()
    os.mkdir(f"{relay.spool}/node.new")  # as on a full disk
    relay.start()
    assert f"{relay.spool}/node: " in relay.wait_event("node", 60, state="waiting").keys["reason"]
    os.rmdir(f"{relay.spool}/node.new")
    relay.wait_event("node", 60, state="up", count=2)
    assert relay.send().code == 250
