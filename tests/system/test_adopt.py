# SPDX-License-Identifier: ISC
"""Nodes that die, are cut off, drained and retired: their mail is another's then, and is sent once, but for what is in doubt.

SLUICE_ADOPT_ROUNDS says how often a node is killed under load: once unless told otherwise. With more an adopter dies in the
middle, too, and other tests that take long are run.
"""

import base64
import json
import os
import shutil
from collections import Counter

import pytest

from lab.config import Config
from lab.cut import Cut
from lab.load import Load
from lab.nats import Nats
from lab.net import wait_until
from lab.sink import Rule

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(600)]
ROUNDS = int(os.environ.get("SLUICE_ADOPT_ROUNDS", "1"))
ADOPT_AFTER = "10s"  # by who is busy, and away for half of it, it must not be taken for dead
RECORDS = 30000  # bytes that are written beside contents, for attempts that were under way too
LATER = {"minimal_backoff_time": "2s", "maximal_backoff_time": "2s", "queue_run_delay": "1s"}


class Nodes:
    """Relays of one cluster."""

    def __init__(self, lab, nats, sink, names, addresses=None, **settings):
        """Start one for each name; each has settings of its own for where NATS is, if so told."""
        self.lab, self.nats = lab, nats
        self.of = {}
        for name in names:
            where = (addresses or {}).get(name, nats.addresses)
            self.of[name] = lab.relay(config_of(where, sink, name, **settings))
        for relay in self.of.values():
            relay.wait_event("node", 60, state="up")

    def __getitem__(self, name):
        return self.of[name]

    def others(self, name):
        """All relays but that one."""
        return [relay for other, relay in self.of.items() if other != name]

    def events(self, state, node):
        """What all nodes have logged of one."""
        return [one for relay in self.of.values() for one in relay.events("node", state=state, node=node)]

    def wait_adopted(self, node, count=1, timeout=60):
        """Wait until a node's queue has another owner."""
        wait_until(lambda: len(self.events("adopted", node)) >= count, timeout, f"{node} to be adopted")

    def story(self, node):
        """All that the nodes have said of one."""
        said = ((one.time, who, one.keys) for who, relay in self.of.items() for one in relay.events("node", node=node))
        return "\n".join(map(str, sorted(said, key=lambda one: one[0])))

    def doubtful(self):
        """The ids of what was being sent by a node that was adopted, or was killed."""
        return {one["id"] for relay in self.of.values() for one in relay.events("recovered")}


def config_of(addresses, sink, name, **settings):
    """Return the configuration of a node."""
    lines = {
        "name": name, "nats": addresses, "replicate": "sync", "replicate_timeout": "30s", "adopt_after": ADOPT_AFTER,
    } | settings
    text = "".join(f"    {key} = {json.dumps(value)}\n" for key, value in lines.items())
    return Config(queue=LATER, extra=f"cluster {{\n{text}}}\n").route_all_to(sink.port)


@pytest.fixture(name="nats", scope="module")
def fixture_nats(module_lab):
    """Three servers, for all tests."""
    nats = Nats(module_lab.folder("nats"))
    module_lab.callback(nats.close)
    return nats.start()


def lose_disk(relay):
    """What becomes of a machine that burns."""
    relay.kill()
    shutil.rmtree(relay.spool)


def recipient(token, domain):
    """Return who a message of a load is for."""
    return f"to{token[1:]}@{domain}"


def all_once_but_in_doubt(load, domain, nodes, sink, cut=None):
    """Each message that was answered 250 has come, and none twice that was not in doubt; nothing is left but where it is cut off."""
    ids = {recipient(one, domain): ident for one, ident in load.acknowledged.items()}
    came = Counter()

    def arrived():
        came.clear()
        came.update(address for one in sink.messages for address in one.recipients)
        return ids.keys() <= came.keys()

    wait_until(arrived, 60, "all that was answered 250 to arrive")
    for name, relay in nodes.of.items():
        if name != cut and relay.running():
            wait_until(lambda one=relay: one.command("queue", "list").stdout.startswith("-- 0 "), 60, f"the queue of {name} to be empty")
    arrived()
    twice = {ids[address] for address, times in came.items() if times > 1 and address in ids}
    assert twice <= nodes.doubtful()


def test_a_node_that_dies_under_load_is_adopted_by_one_other(lab, nats):
    sink = lab.sink()
    names = ["a1", "a2", "a3"]
    nodes = Nodes(lab, nats, sink, names)
    for number in range(ROUNDS):
        name, domain = names[number % 3], f"d{number}.test"
        load = Load(nodes[name].port, 10**6, 8, lambda one: 600000 if one % 80 == 9 else 500, [domain])
        load.wait_acknowledged(150)
        lose_disk(nodes[name])
        load.close()
        times = number // 3 + 1
        nodes.wait_adopted(name, times)
        assert len(nodes.events("adopting", name)) == times, nodes.story(name)
        all_once_but_in_doubt(load, domain, nodes, sink)
        nodes[name].start()
        nodes[name].wait_event("node", 60, count=times + 1, state="up")
    assert "n1" not in nodes["a2"].command("node", "list").stdout
    assert "a1" in nodes["a2"].command("node", "list").stdout


@pytest.mark.skipif(ROUNDS < 2, reason="it takes a quarter of a minute")
def test_an_adopter_that_dies_in_the_middle_is_adopted_with_what_it_was_taking(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    nodes = Nodes(lab, nats, sink, ["b1", "b2", "b3"])
    load = Load(nodes["b1"].port, 300, sessions=10, domains=["b.test"])
    load.finish()
    wait_until(lambda: len(nodes["b1"].events("deferred")) >= 300, 60, "all to be tried")
    lose_disk(nodes["b1"])
    wait_until(lambda: any(one.events("adopted") for one in nodes.others("b1")), 60, "the adoption to begin")
    first = next(name for name in ("b2", "b3") if nodes[name].events("adopted"))
    lose_disk(nodes[first])
    nodes.wait_adopted(first)
    nodes.wait_adopted("b1")
    sink.behaviour.rules.clear()
    all_once_but_in_doubt(load, "b.test", nodes, sink)
    assert len(sink.messages) <= 300 + len(nodes.doubtful())


def row_of(nats, node):
    """Return what the bucket says of a node."""
    answer = nats.ask("$JS.API.STREAM.MSG.GET.KV_sluice-nodes", last_by_subj=f"$KV.sluice-nodes.{node}")
    return json.loads(base64.b64decode(answer["message"]["data"]))


@pytest.mark.skipif(ROUNDS < 2, reason="it takes a quarter of a minute")
def test_of_two_that_were_granted_the_same_revision_the_later_one_adopts(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    nodes = Nodes(lab, nats, sink, ["i1", "i2", "i3"])
    load = Load(nodes["i1"].port, 50, sessions=5, domains=["i.test"])
    load.finish()
    lose_disk(nodes["i1"])
    wait_until(lambda: row_of(nats, "i1")["state"] == "adopting", 60, "one to write its name")
    row = row_of(nats, "i1")
    later = {"i2": "i3", "i3": "i2"}[row["by"]]
    nats.ask("$KV.sluice-nodes.i1", **row | {"by": later})  # as it is when the engine lets both pass
    nodes.wait_adopted("i1")
    assert nodes[later].events("node", state="adopted", node="i1")
    assert not nodes[row["by"]].events("node", state="adopting", node="i1"), nodes.story("i1")
    sink.behaviour.rules.clear()
    all_once_but_in_doubt(load, "i.test", nodes, sink)


def test_an_adopter_that_is_killed_goes_on_where_it_was(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    nodes = Nodes(lab, nats, sink, ["e1", "e2"])
    load = Load(nodes["e1"].port, 300, sessions=10, domains=["e.test"])
    load.finish()
    wait_until(lambda: len(nodes["e1"].events("deferred")) >= 300, 60, "all to be tried")
    lose_disk(nodes["e1"])
    nodes["e2"].wait_event("adopted", 60)
    nodes["e2"].kill()
    sink.behaviour.rules.clear()
    nodes["e2"].start()
    nodes.wait_adopted("e1")
    all_once_but_in_doubt(load, "e.test", nodes, sink)
    assert len(sink.messages) <= 300 + len(nodes.doubtful())


def test_a_node_that_was_cut_off_sends_nothing_that_another_sends(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later", pattern="[13579]@"))
    cable = Cut([server.port for server in nats.servers])
    lab.callback(cable.close)
    nodes = Nodes(lab, nats, sink, ["c1", "c2", "c3"], {"c1": cable.addresses}, replicate_timeout="1s", adopt_after="3s")
    load = Load(nodes["c1"].port, 10**6, sessions=8, domains=["c.test"])
    load.wait_acknowledged(150)
    cable.cut()
    nodes["c1"].wait_event("node", 60, state="fenced")
    load.close()
    sink.behaviour.rules.clear()  # It could send what waits, with its next hop there, and so can who adopts it.
    nodes.wait_adopted("c1")
    all_once_but_in_doubt(load, "c.test", nodes, sink, cut="c1")
    with nodes["c1"].client() as client:
        client.greet()
        assert client.command("MAIL FROM:<a@sender.test>", 4).code == 452
    cable.mend()
    nodes["c1"].wait_event("node", 60, state="put aside")
    nodes["c1"].wait_event("node", 60, count=2, state="up")

    def waits_no_more():
        # On a machine that is slow for seconds it may have waited in between, too.
        told = [event["state"] for event in nodes["c1"].events("condition", name="node_waits")]
        return len(told) > 1 and told == ["on", "off"] * (len(told) // 2)

    wait_until(waits_no_more, 60, "it to wait no more, and to have said so")
    all_once_but_in_doubt(load, "c.test", nodes, sink)
    assert nodes["c1"].command("queue", "list").stdout.startswith("-- 0 ")
    assert os.listdir(f"{nodes['c1'].spool}/adopted")
    before = len(sink.messages)
    assert nodes["c1"].send().code == 250
    wait_until(lambda: len(sink.messages) == before + 1, 60, "its new mail")


def lag_of(relay):
    """How many bytes its copy has not, as it says."""
    return json.loads(relay.command("stats", "--json").stdout).get("replica_lag_bytes", 0)


def take(relay, count, first):
    """Have it take messages, each of a kilobyte; return their ids by their recipients."""
    addresses = [f"to{first + number}@dest.test" for number in range(count)]
    return {one: relay.send(recipients=[one], content=b"x" * 1000 + b"\r\n").text.split()[-1] for one in addresses}


def burn(nodes, name, sink):
    """Lose the machine with the disk. Returns who gets mail from its adopter, and the ids of that."""
    adopter = nodes.others(name)[0]
    lose_disk(nodes[name])
    nodes.wait_adopted(name)
    told = adopter.wait_event("node", state="adopted", node=name)
    assert told.keys["damaged"] == "0"
    sink.behaviour.rules.clear()
    wait_until(lambda: adopter.command("queue", "list").stdout.startswith("-- 0 "), 60, "its queue to be empty")
    ids = {one.keys["id"] for one in adopter.events("adopted")}
    assert told.keys["messages"] == str(len(ids))
    return Counter(address for one in sink.messages for address in one.recipients), ids


def test_async_loses_with_its_disk_what_it_said_was_behind(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    cable = Cut([server.port for server in nats.servers])
    lab.callback(cable.close)
    nodes = Nodes(lab, nats, sink, ["f1", "f2"], {"f1": cable.addresses}, replicate="async")
    there = take(nodes["f1"], 10, 0)
    wait_until(lambda: lag_of(nodes["f1"]) == 0, 60, "all of it to be in the copy")
    cable.cut()
    behind = take(nodes["f1"], 5, 100)
    assert 5 * 1000 < lag_of(nodes["f1"]) < 5 * 1000 + RECORDS
    came, ids = burn(nodes, "f1", sink)
    assert ids == set(there.values()) and not ids & set(behind.values())
    assert came == Counter(there.keys())


@pytest.mark.skipif(ROUNDS < 2, reason="it takes a quarter of a minute")
def test_what_was_taken_alone_is_made_up_or_lost_as_was_said(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    cable = Cut([server.port for server in nats.servers])
    lab.callback(cable.close)
    nodes = Nodes(lab, nats, sink, ["g1", "g2"], {"g1": cable.addresses}, degrade=True, replicate_timeout="100ms", adopt_after="6s")
    there = take(nodes["g1"], 5, 0)
    cable.cut()
    there |= take(nodes["g1"], 5, 100)
    away = nodes["g1"].wait_event("replica", state="away")
    assert int(away.keys["missing"]) > 1000
    cable.mend()
    nodes["g1"].wait_event("replica", 60, state="back")
    wait_until(lambda: lag_of(nodes["g1"]) == 0, 60, "what was taken alone to be made up")
    assert not nodes["g1"].events("node", state="fenced")
    cable.cut()
    alone = take(nodes["g1"], 3, 200)
    nodes["g1"].wait_event("replica", count=2, state="away")
    assert 3 * 1000 < lag_of(nodes["g1"]) < 3 * 1000 + RECORDS
    came, ids = burn(nodes, "g1", sink)
    assert ids == set(there.values()) and not ids & set(alone.values())
    assert came == Counter(there.keys())


def test_a_drained_node_goes_when_its_copy_is_whole(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    nodes = Nodes(lab, nats, sink, ["h2"])
    relay = lab.relay(Config(queue=LATER).route_all_to(sink.port))
    load = Load(relay.port, 50, sessions=5, size=600000, domains=["h.test"])
    load.finish()
    relay.stop()
    relay.config.extra = config_of(nats.addresses, sink, "h1").extra
    relay.write_config()
    nodes.of["h1"] = relay.start()
    relay.wait_event("node", 60, state="up")
    orders = []

    def drained():
        orders.append(relay.command("node", "drain"))
        return orders[-1].returncode == 0

    wait_until(drained, 60, "all of its queue to be in the copy")
    assert all("not whole yet" in one.stderr for one in orders[:-1])
    nodes.wait_adopted("h1")
    sink.behaviour.rules.clear()
    all_once_but_in_doubt(load, "h.test", nodes, sink)
    relay.wait_ended()


def test_a_drained_node_hands_over_its_queue_and_can_be_retired(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    nodes = Nodes(lab, nats, sink, ["d1", "d2"])
    load = Load(nodes["d1"].port, 50, sessions=5, domains=["d.test"])
    load.finish()
    assert nodes["d2"].command("node", "retire", "d1").returncode == 1
    assert nodes["d2"].command("node", "adopt", "d1").returncode == 1
    wait_until(lambda: len(nodes["d1"].events("deferred")) >= 50, 60, "all to be tried")
    assert nodes["d1"].command("node", "drain").returncode == 0
    nodes.wait_adopted("d1")
    assert nodes["d2"].command("node", "drain").returncode == 1
    sink.behaviour.rules.clear()
    all_once_but_in_doubt(load, "d.test", nodes, sink)
    assert nodes["d2"].command("node", "retire", "d1").returncode == 0
    assert nats.state("d1")["messages"] == 0  # what is left says that the name is retired, for an hour
    nodes["d1"].wait_ended()
    nodes["d1"].process = None
    nodes["d1"].start()
    assert "is retired" in nodes["d1"].wait_event("node", 60, state="waiting").keys["reason"]
    assert nodes["d2"].send().code == 250
