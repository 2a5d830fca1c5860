# SPDX-License-Identifier: ISC
"""Adoption when something is not as it should be: folders that were left, restored or cloned, disks and streams without room."""

import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_adopt import Nodes, config_of, lose_disk, row_of, take
from test_replica_trouble import rights

from lab.nats import Nats
from lab.net import accepts, wait_until
from lab.sink import Rule

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(600)]


@pytest.fixture(name="nats")
def fixture_nats(lab):
    """One server, with no nodes of other tests."""
    nats = Nats(lab.folder("nats"), servers=1)
    lab.callback(nats.close)
    return nats.start()


def nodes_of(lab, nats, sink, *names, **settings):
    """Start these nodes, which look every half second."""
    return Nodes(lab, nats, sink, names, nats_replicas=1, **{"adopt_after": "5s"} | settings)


def later():
    """A rule of a sink that takes nothing."""
    return Rule("rcpt", "451 4.2.1 Try later")


def aside(relay):
    """What a relay has put aside."""
    folder = f"{relay.spool}/adopted"
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def test_a_folder_left_by_one_adoption_is_not_the_queue_of_the_next(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "a1", "a2")
    take(nodes["a1"], 5, 0)
    lose_disk(nodes["a1"])
    nodes.wait_adopted("a1")
    # As one that was killed between its last word and the removal of the folder leaves it.
    wait_until(lambda: not os.path.exists(f"{nodes['a2'].spool}/adopted-from-a1"), 60, "the folder to go")
    left = f"{nodes['a2'].spool}/adopted-from-a1"
    os.makedirs(f"{left}/log")
    os.makedirs(f"{left}/large")
    for name, text in (("format", "sluice spool 2\n"), ("origin", "life=0000000000000001 epoch=2 end=7\n")):
        with open(f"{left}/{name}", "w", encoding="ascii") as stream:
            stream.write(text)
    nodes["a1"].start()
    nodes["a1"].wait_event("node", 60, state="up", count=2)
    ids = take(nodes["a1"], 5, 100)
    lose_disk(nodes["a1"])
    nodes.wait_adopted("a1", 2)
    adopted = {one.keys["id"] for one in nodes["a2"].events("adopted")}
    assert set(ids.values()) <= adopted
    assert nodes["a2"].wait_event("node", state="put aside").keys["folder"].startswith("adopted/adopted-from-a1")
    assert aside(nodes["a2"])


def seal_bucket(nats):
    """From now on nobody can write into the bucket of all nodes, which can be read as before."""
    config = nats.ask("$JS.API.STREAM.INFO.KV_sluice-nodes")["config"]
    assert "error" not in nats.ask("$JS.API.STREAM.UPDATE.KV_sluice-nodes", **config | {"sealed": True})


def test_a_drain_that_hands_nothing_over_says_so(lab, nats):
    gate = threading.Event()
    sink = lab.sink(Rule("end", gate=gate))
    lab.callback(gate.set)
    nodes = nodes_of(lab, nats, sink, "i1", "i2", adopt_after="0s")
    relay = nodes["i1"]
    relay.send()
    sink.wait_messages(1)  # its answer is waited for, and so the end of the relay
    with ThreadPoolExecutor() as pool:
        drain = pool.submit(relay.command, "node", "drain")
        wait_until(lambda: not accepts(relay.port), 60, "the relay to be about to end")
        seal_bucket(nats)
        gate.set()
        relay.wait_ended()
    assert drain.result().returncode == 1
    assert "keeps its queue: the others could not be told" in drain.result().stderr
    assert not relay.events("node", state="drained")


@pytest.mark.parametrize("adopt_after", ["5s", "0s"])
def test_a_bucket_that_was_lost_is_made_again_by_those_who_work(lab, nats, adopt_after):
    nodes = nodes_of(lab, nats, lab.sink(), "k1", "k2", adopt_after=adopt_after)
    assert nats.ask("$JS.API.STREAM.DELETE.KV_sluice-nodes")["success"]
    wait_until(lambda: nodes["k1"].command("node", "drain").returncode == 0, 60, "the rows of both to be there")
    nodes["k1"].wait_event("node", state="drained")
    assert not nodes.events("fenced", "k1") and not nodes.events("fenced", "k2")
    nodes["k1"].wait_ended()


@pytest.mark.parametrize("alive", [True, False])
def test_whoever_comes_when_the_bucket_was_lost_makes_no_ids_of_others(lab, nats, alive):
    """Of those that work by their rows, which are written again; of those that are off by their streams."""
    sink = lab.sink()
    nodes = nodes_of(lab, nats, sink, "m1", "m2", adopt_after="0s")
    for name in ("m1", "m2"):
        nodes[name].wait_event("replica", state="complete")
        if not alive:
            nodes[name].kill()
    numbers = {row_of(nats, name)["number"] for name in ("m1", "m2")}
    assert nats.ask("$JS.API.STREAM.DELETE.KV_sluice-nodes")["success"]
    if alive:
        wait_until(lambda: nats.ask("$JS.API.STREAM.INFO.KV_sluice-nodes").get("state", {}).get("messages", 0) == 2, 60, "the rows of both to be there")
    nodes_of(lab, nats, sink, "m3", adopt_after="0s")
    assert len(numbers) == 2 and row_of(nats, "m3")["number"] not in numbers


def test_a_queue_that_another_may_have_is_not_changed_by_orders(lab, nats):
    relay = nodes_of(lab, nats, lab.sink(later()), "m1")["m1"]
    (ident,) = take(relay, 1, 0).values()
    relay.wait_event("deferred")
    relay.stop()
    nats.servers[0].kill()
    relay.start().wait_event("node", 60, state="waiting")
    for verb in ("hold", "flush", "requeue", "release", "bounce", "delete"):
        order = relay.command("queue", verb, ident)
        assert order.returncode == 75 and "another may have its queue" in order.stderr and not order.stdout
    assert json.loads(relay.command("queue", "list", "--json").stdout)["queue"] == "deferred"
    nats.start()
    relay.wait_event("node", 60, state="up", count=2)
    assert relay.command("queue", "delete", ident).returncode == 0


def test_queues_behind_symbolic_links_are_adopted_and_adopt(lab, nats):
    sink = lab.sink(later())
    of = {name: lab.relay(config_of(nats.addresses, sink, name, nats_replicas=1, adopt_after="5s"), start=False) for name in ("h1", "h2")}
    for relay in of.values():
        os.mkdir(relay.folder + "/disk")
        os.symlink("disk", relay.spool)
        relay.start().wait_event("node", 60, state="up")
    ids = take(of["h1"], 5, 0)
    of["h1"].kill()
    of["h2"].wait_event("node", 60, state="adopted", node="h1")
    assert {one.keys["id"] for one in of["h2"].events("adopted")} == set(ids.values())
    of["h1"].start()
    of["h1"].wait_event("node", 60, state="up", count=2)
    assert aside(of["h1"])


def test_the_row_says_with_which_epoch_a_life_began(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "b1", "b2")
    take(nodes["b1"], 3, 0)
    lose_disk(nodes["b1"])
    nodes.wait_adopted("b1")
    nodes["b1"].start()
    nodes["b1"].wait_event("node", 60, state="up", count=2)
    assert row_of(nats, "b1")["since"] == row_of(nats, "b1")["epoch"] > 1


def test_a_folder_from_a_backup_waits_for_an_order(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "c1", adopt_after="0s")
    relay = nodes["c1"]
    relay.send()
    wait_until(lambda: "beat=1" in open(f"{relay.spool}/node", encoding="ascii").read(), 60, "what was sent to be noted")  # noqa: SIM115
    relay.stop()
    backup = lab.folder("backup") / "queue"
    shutil.copytree(relay.spool, backup, symlinks=True)
    relay.process = None
    relay.start()
    relay.wait_event("node", 60, state="up", count=2)
    ids = take(relay, 3, 0)
    lose_disk(relay)
    shutil.copytree(backup, relay.spool, symlinks=True)
    relay.start()
    told = relay.wait_event("node", 60, state="waiting")
    assert "from a backup" in told.keys["reason"]
    with relay.client() as client:
        client.greet()
        assert client.command("MAIL FROM:<a@sender.test>", 4).code == 452
    wait_until(lambda: '"queue":"doubt"' in relay.command("node", "list", "--json").stdout, 60, "the list of nodes to say so")
    # The copy has what the folder has not: another may take it.
    nodes.of["c2"] = lab.relay(config_of(nats.addresses, sink, "c2", nats_replicas=1, adopt_after="0s"))
    nodes["c2"].wait_event("node", 60, state="up")
    wait_until(lambda: nodes["c2"].command("node", "adopt", "c1").returncode == 0, 60, "it to be adopted")
    nodes.wait_adopted("c1")
    assert set(ids.values()) <= {one.keys["id"] for one in nodes["c2"].events("adopted")}
    relay.wait_event("node", 60, state="put aside")
    relay.wait_event("node", 60, state="up", count=3)


def test_a_backup_of_the_same_start_is_told_apart_and_may_be_insisted_on(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "d1", adopt_after="0s")
    relay = nodes["d1"]
    first = relay.send().text.split()[-1]
    node = f"{relay.spool}/node"

    def beat():
        with open(node, encoding="ascii") as stream:
            return int(stream.read().split("beat=")[1].split()[0])

    wait_until(lambda: beat() >= 1, 60, "what was sent to be noted")
    backup = lab.folder("backup") / "queue"
    shutil.copytree(relay.spool, backup, symlinks=True, ignore=shutil.ignore_patterns("control"))
    copied = beat()
    take(relay, 3, 0)
    wait_until(lambda: beat() > copied, 60, "what was sent since to be noted")
    wait_until(lambda: nats.messages("d1")[-1][0] in (8, 9), 60, "the stream to have that")
    lose_disk(relay)
    shutil.copytree(backup, relay.spool, symlinks=True)
    relay.start()
    relay.wait_event("node", 60, state="waiting")
    assert relay.command("node", "adopt", "d1").returncode == 0
    relay.wait_event("node", 60, state="up", count=2)
    assert first in relay.command("queue", "list").stdout
    assert relay.send().code == 250


def test_a_row_that_was_not_written_by_an_adopter_puts_nothing_aside(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "e1")
    relay = nodes["e1"]
    take(relay, 3, 0)
    row = row_of(nats, "e1")
    nats.ask("$KV.sluice-nodes.e1", **row | {"epoch": row["epoch"] + 1})  # as a copy of it on another machine does
    relay.wait_event("node", 60, state="fenced")
    relay.wait_event("node", 60, state="waiting")
    assert "-- 3 " in relay.command("queue", "list").stdout
    assert not aside(relay)
    assert relay.command("node", "adopt", "e1").returncode == 0
    relay.wait_event("node", 60, state="up", count=2)
    assert relay.send().code == 250


def test_who_has_no_room_leaves_it_to_others(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "f1", "f2")
    ids = take(nodes["f1"], 3, 0)
    lots = "1000g"
    nodes["f2"].stop()
    nodes["f2"].config.settings["queue_minfree"] = lots
    nodes["f2"].write_config()
    nodes["f2"].process = None
    nodes["f2"].start()
    nodes["f2"].wait_event("node", 60, state="up", count=2)
    lose_disk(nodes["f1"])
    nodes["f2"].wait_event("node", 60, state="left", node="f1")
    refused = nodes["f2"].command("node", "adopt", "f1")
    assert refused.returncode == 1 and "no room" in refused.stderr
    assert row_of(nats, "f1")["state"] == "up"
    nodes.of["f3"] = lab.relay(config_of(nats.addresses, sink, "f3", nats_replicas=1, adopt_after="5s"))
    nodes.wait_adopted("f1")
    assert set(ids.values()) <= {one.keys["id"] for one in nodes["f3"].events("adopted")}


def test_room_is_what_the_last_reload_leaves(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "r1", "r2")
    ids = take(nodes["r1"], 3, 0)
    relay = nodes["r2"]
    usual = relay.config.settings.get("queue_minfree", "16m")
    for room in ("1000g", usual):
        relay.config.settings["queue_minfree"] = room
        relay.write_config()
        assert relay.command("reload").returncode == 0
        if room != usual:
            lose_disk(nodes["r1"])
            relay.wait_event("node", 60, state="left", node="r1")
    nodes.wait_adopted("r1")
    assert set(ids.values()) <= {one.keys["id"] for one in relay.events("adopted")}


def test_what_can_not_be_taken_is_given_back(lab, nats):
    hangs = Rule("rcpt", "")
    sink = lab.sink(hangs)
    nodes = nodes_of(lab, nats, sink, "g1", "g2")
    ids = take(nodes["g1"], 3, 0)
    wait_until(lambda: hangs.seen > 0, 30, "one to be under way")
    shutil.rmtree(f"{nodes['g2'].spool}/log")  # its disk has room, and its queue takes nothing
    lose_disk(nodes["g1"])
    nodes["g2"].wait_event("node", 60, state="adopting", node="g1")
    nodes.of["g3"] = lab.relay(config_of(nats.addresses, sink, "g3", nats_replicas=1, adopt_after="5s"))
    nodes["g2"].wait_event("node", 60, state="given back", node="g1")
    named = [one.keys["id"] for one in nodes["g2"].events("recovered", node="g1")]
    assert named and len(named) == len(set(named))  # at the first of the attempts
    wait_until(lambda: nodes["g3"].events("node", state="adopted", node="g1"), 60, "another to adopt it")
    assert set(ids.values()) == {one.keys["id"] for one in nodes["g3"].events("adopted")}
    assert nodes["g2"].command("queue", "list").stdout.startswith("-- 0 ")


@pytest.mark.parametrize("what", ["CONSUMER.DURABLE.CREATE", "CONSUMER.MSG.NEXT", "STREAM.UPDATE"])
def test_who_may_not_read_what_it_is_to_adopt_says_what_is_not_permitted(lab, what):
    nats = Nats(lab.folder("nats"), servers=1, extra=rights(f'publish: {{ deny: ["$JS.API.{what}.sluice-n1", "$JS.API.{what}.sluice-n1.>"] }}'))
    lab.callback(nats.close)
    nodes = nodes_of(lab, nats.start(), lab.sink(later()), "n1", "n2")
    take(nodes["n1"], 1, 0)
    nodes["n1"].kill()
    wait_until(lambda: any(f"does not permit to publish to $JS.API.{what}.sluice-n1" in one["reason"] for one in nodes.events("adopting", "n1")), 60, "it to be named")


def test_who_loses_a_queue_while_it_is_taken_keeps_nothing_of_it_and_adopts_others(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "h1", "h2", "h3")
    taken = take(nodes["h1"], 3, 0)
    other = take(nodes["h3"], 3, 100)
    lose_disk(nodes["h1"])
    wait_until(lambda: row_of(nats, "h1")["state"] == "adopting", 60, "one to write its name")
    name = row_of(nats, "h1")["by"]
    survivor, dies = nodes[name], {"h2": "h3", "h3": "h2"}[name]
    survivor.wait_event("adopted", 60, id=next(iter(taken.values())))
    row = row_of(nats, "h1")
    nats.ask("$KV.sluice-nodes.h1", **row | {"by": "another", "epoch": row["epoch"] + 1})
    own = len(other) if name == "h3" else 0
    wait_until(lambda: f"-- {own} " in survivor.command("queue", "list").stdout, 60, "what was taken to go")
    lose_disk(nodes[dies])
    nodes.wait_adopted(dies)
    assert not nodes.events("adopted", "h1")


@pytest.mark.parametrize("starts", [True, False])
def test_a_row_that_the_bucket_has_lost_is_written_again_as_the_stream_has_it(lab, nats, starts):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "k1", "k2")
    taken = take(nodes["k1"], 3, 0)
    before = row_of(nats, "k1")
    nodes["k1"].kill()
    nodes.wait_adopted("k1")
    nats.ask("$KV.sluice-nodes.k1", **before)
    if starts:
        nodes["k1"].start()
        nodes["k1"].wait_event("node", 60, state="put aside")
        nodes["k1"].wait_event("node", 60, state="up", count=2)
        assert not nodes["k1"].events("adopted")
        assert nodes["k1"].command("queue", "list").stdout.startswith("-- 0 ")
    else:
        wait_until(lambda: row_of(nats, "k1")["state"] == "adopted", 60, "its row to be written again")
    nodes["k2"].wait_event("node", 60, reason="its messages are in this node's queue")
    assert len(nodes["k2"].events("adopted")) == len(taken)
    assert f"-- {len(taken)} " in nodes["k2"].command("queue", "list").stdout


def test_nodes_that_have_all_lost_their_disks_begin_anew_when_one_of_another_name_comes(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "m1", "m2")
    ids = take(nodes["m1"], 3, 0) | take(nodes["m2"], 3, 100)
    for relay in nodes.of.values():
        lose_disk(relay)
    for relay in nodes.of.values():
        relay.start()
        told = relay.wait_event("node", 60, state="waiting")
        assert "under another name" in told.keys["reason"]
        with relay.client() as client:
            client.greet()
            assert client.command("MAIL FROM:<a@sender.test>", 4).code == 452
    nodes.of["m3"] = lab.relay(config_of(nats.addresses, sink, "m3", nats_replicas=1, adopt_after="5s"))
    for name in ("m1", "m2"):
        nodes.wait_adopted(name)
        nodes[name].wait_event("node", 60, state="up", count=2)
    assert {one.keys["id"] for one in nodes["m3"].events("adopted")} == set(ids.values())
    assert nodes["m1"].send().code == 250


def test_nodes_look_soon_however_long_they_wait_for_the_dead(lab, nats):
    sink = lab.sink(later())
    nodes = nodes_of(lab, nats, sink, "j1", "j2", adopt_after="1d")
    relay = nodes["j1"]
    relay.stop()
    nats.servers[0].kill()
    relay.start()
    relay.wait_event("node", 60, state="waiting")
    nats.start()
    relay.wait_event("node", 60, state="up", count=2)
    ids = take(relay, 3, 0)
    wait_until(lambda: relay.command("node", "drain").returncode == 0, 60, "it to be drained")
    nodes.wait_adopted("j1")
    assert set(ids.values()) <= {one.keys["id"] for one in nodes["j2"].events("adopted")}
    relay.wait_ended()


def lose_stream(nats, node):
    """Lose the whole copy of its queue."""
    assert nats.ask(f"$JS.API.STREAM.DELETE.sluice-{node}")["success"]


def lose_beginning(nats, node):
    """As servers that are killed lose it, before the first has been written to their disks: the rest says nothing then."""
    assert nats.ask(f"$JS.API.STREAM.PURGE.sluice-{node}", filter=f"sluice.{node}.*.state")["purged"] > 0


@pytest.mark.parametrize("node, lose, reason, state", [("l", lose_stream, "no copy", "up"), ("h", lose_beginning, "has lost the beginning", "drained")])
def test_a_queue_whose_copy_is_lost_is_left_to_its_node(lab, nats, node, lose, reason, state):
    sink = lab.sink(later())
    name = f"{node}1"
    nodes = nodes_of(lab, nats, sink, name, f"{node}2")
    relay, other = nodes[name], nodes[f"{node}2"]
    ids = take(relay, 3, 0)
    relay.kill()
    lose(nats, name)
    told = other.wait_event("node", 45, state="left", node=name)  # and not after ten times adopt_after
    assert reason in told.keys["reason"] and row_of(nats, name)["state"] == state
    relay.start()
    relay.wait_event("node", 60, state="up", count=2)
    listed = relay.command("queue", "list").stdout
    assert all(one in listed for one in ids.values()) and not aside(relay)
    # Where its disk is gone, too, somebody must say so.
    relay.wait_event("replica", 60, state="complete", count=2)
    lose_disk(relay)
    lose(nats, name)
    other.wait_event("node", 60, state="left", node=name, count=2)
    assert other.command("node", "adopt", name).returncode == 0
    nodes.wait_adopted(name)
    relay.start()
    relay.wait_event("node", 60, state="up", count=3)
