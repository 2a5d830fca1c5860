# SPDX-License-Identifier: ISC
"""sluice node list, the page and the metrics: one row a node, whichever of the engines knows it, and with either away.

SLUICE_NATS_AWAY=1 takes NATS away, too, and waits until that is noticed: a quarter of a minute.
"""

import json
import os
import urllib.request

import pytest

from lab.config import Config
from lab.nats import Nats
from lab.net import LOOPBACK, free_port, wait_until
from lab.redis import Redis
from lab.sink import Rule

pytestmark = [pytest.mark.plain_only, pytest.mark.one_thread]

COUNTERS = ("received", "sent", "deferred", "queue_deferred", "clients", "hosts")


def _config(name, sink, redis=None, nats=None, adopt_after="0s"):
    lines = {"name": name}
    if redis:
        lines |= {"redis": f"{LOOPBACK}:{redis.port}", "redis_timeout": "300ms"}
    if nats:
        lines |= {"nats": nats.addresses, "replicate": "async", "adopt_after": adopt_after, "nats_replicas": 1}
    text = "".join(f"    {key} = {json.dumps(value)}\n" for key, value in lines.items())
    config = Config(extra=f"cluster {{\n{text}}}\n").route_all_to(sink.port)
    config.settings["http"] = f"{LOOPBACK}:{free_port()}"
    return config


@pytest.fixture(scope="module", name="world")
def fixture_world(module_lab):
    """Both engines, and nodes that know both, or one of them."""
    redis, nats = Redis(module_lab.folder("redis")), Nats(module_lab.folder("nats"), servers=1)
    module_lab.callback(redis.close)
    module_lab.callback(nats.close)
    redis.start()
    nats.start()
    sink = module_lab.sink()
    engines = {"both": (redis, nats), "by-nats": (None, nats), "by-redis": (redis, None), "too": (redis, nats)}
    relays = {name: module_lab.relay(_config(name, sink, *of)) for name, of in engines.items()}
    for name, (by_redis, by_nats) in engines.items():
        if by_nats:
            relays[name].wait_event("node", 60, state="up")
        if by_redis:
            relays[name].wait_event("cluster", state="ready")
    relays["both"].send()
    relays["too"].send()
    sink.wait_messages(2)
    return relays, redis, nats


@pytest.fixture(name="nats_and_redis")
def fixture_nats_and_redis(lab):
    """Both engines, without the nodes of other tests."""
    redis, nats = Redis(lab.folder("redis")), Nats(lab.folder("nats"), servers=1)
    lab.callback(redis.close)
    lab.callback(nats.close)
    redis.start()
    return nats.start(), redis


def _list(relay):
    """Return the objects, by name, and the lines of the table without its head and its sums."""
    said = [json.loads(line) for line in relay.command("node", "list", "--json").stdout.splitlines()]
    lines = [line.split() for line in relay.command("node", "list").stdout.splitlines()]
    assert lines[0] == ["node", "state", "version", "seen", "received", "queued", "epoch", "queue", "by"]
    assert [one["node"] for one in said] == sorted(one["node"] for one in said)
    return {one["node"]: one for one in said}, {line[0]: line for line in lines[1:]}


def _sums(relay):
    return next(line.split() for line in relay.command("node", "list").stdout.splitlines() if line.startswith("-- "))


def _page(relay, path):
    with urllib.request.urlopen(f"http://{relay.config.settings['http']}{path}", timeout=60) as reply:
        return reply.read().decode()


def test_what_both_engines_know_is_one_row(world):
    relays, _, _ = world
    relay = relays["both"]
    wait_until(lambda: sum(one["received"] or 0 for one in _list(relay)[0].values()) == 2, 60, "all nodes' counters")
    wait_until(lambda: len(_list(relay)[0]) == 4, 60, "all nodes")
    said, lines = _list(relay)
    for name in ("both", "too"):
        one = said[name]
        assert (one["state"], one["queue"], one["by"], one["epoch"], one["received"]) == ("working", "up", name, 1, 1)
        assert one["seen"] < 5 and one["silent_ms"] < 5000 and one["number"] > 0
        assert lines[name][1] == "working" and lines[name][4:] == ["1", "0", "1", "up", name]
    assert said["by-redis"]["state"] == "working" and {said["by-redis"][key] for key in ("epoch", "queue", "by", "silent_ms", "number")} == {None}
    assert lines["by-redis"][4:] == ["0", "0", "-", "-", "-"]
    assert said["by-nats"]["state"] == "up" and {said["by-nats"][key] for key in ("version", "seen", *COUNTERS)} == {None}
    assert lines["by-nats"][2] == "-" and lines["by-nats"][4:] == ["-", "-", "1", "up", "by-nats"]
    assert _sums(relay) == ["--", "4", "2", "0"]


def test_each_engine_alone_lists_what_it_knows(world):
    relays, _, _ = world
    wait_until(lambda: len(_list(relays["by-nats"])[0]) == 3, 60, "all that NATS knows")
    said, lines = _list(relays["by-nats"])
    assert sorted(said) == ["both", "by-nats", "too"]
    assert all(line[2] == line[4] == line[5] == "-" and line[7] == "up" for name, line in lines.items() if name in said)
    assert _sums(relays["by-nats"]) == ["--", "3", "-", "-"]
    wait_until(lambda: len(_list(relays["by-redis"])[0]) == 3, 60, "all that Redis knows")
    said, lines = _list(relays["by-redis"])
    assert sorted(said) == ["both", "by-redis", "too"]
    assert all(line[6:] == ["-", "-", "-"] for name, line in lines.items() if name in said)


def _said_of_nodes(lines):
    """Return what is known of each node, but for how long ago it was heard of."""
    rows = map(json.loads, lines)
    return {row["node"]: [row[key] for key in ("state", "version", "epoch", "queue", "by", "number", "received")] for row in rows}


def test_the_page_and_the_metrics_say_the_same(world):
    relays, _, _ = world
    for relay in (relays["both"], relays["by-nats"]):
        page = lambda one=relay: _said_of_nodes(_page(one, "/api/nodes").splitlines())
        listed = lambda one=relay: _said_of_nodes(one.command("node", "list", "--json").stdout.splitlines())
        wait_until(lambda: len(listed()) > 2 and page() == listed(), 60, "the page to say what the list does")
        wait_until(lambda one=relay: 'sluice_cluster_queues{state="up"} 3' in _page(one, "/metrics"), 60, "all queues to be counted")
    assert 'sluice_cluster_nodes{state="working"} 3' in _page(relays["both"], "/metrics")


def test_mail_that_another_node_has_adopted_is_counted_there_only(lab, nats_and_redis):
    nats, redis = nats_and_redis
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    of = {name: lab.relay(_config(name, sink, redis, nats, "5s")) for name in ("a", "b")}
    for relay in of.values():
        relay.wait_event("node", 60, state="up")
    of["a"].send()
    of["a"].wait_event("deferred")
    wait_until(lambda: _list(of["b"])[0]["a"]["queue_deferred"] == 1, 60, "the mail to be counted")
    assert of["a"].command("node", "drain").returncode == 0
    of["a"].wait_ended()
    wait_until(lambda: _list(of["b"])[0]["b"]["queue_deferred"] == 1 and _list(of["b"])[0]["a"]["queue"] == "adopted", 60, "it to be adopted")
    assert _list(of["b"])[0]["a"]["queue_deferred"] is None and _sums(of["b"])[-1] == "1"
    wait_until(lambda: 'sluice_cluster_sum{counter="queue_deferred"} 1\n' in _page(of["b"], "/metrics"), 60, "the sum")


def test_with_redis_away_nats_is_listed(world):
    relays, redis, _ = world
    relay = relays["both"]
    redis.kill()
    try:
        relay.wait_event("cluster", state="away")
        wait_until(lambda: _list(relay)[0].get("too", {"version": ""})["version"] is None, 60, "Redis to be missed")
        said, lines = _list(relay)
        assert sorted(said) == ["both", "by-nats", "too"]
        assert said["both"]["received"] == 1 and said["too"]["received"] is None and said["too"]["queue"] == "up"
        assert "Redis" in lines
    finally:
        redis.start()
    wait_until(lambda: len(_list(relay)[0]) == 4, 60, "Redis to be back")


@pytest.mark.skipif("SLUICE_NATS_AWAY" not in os.environ, reason="SLUICE_NATS_AWAY is not set")
def test_with_nats_away_what_it_said_last_is_listed(world):
    relays, _, nats = world
    relay = relays["both"]
    nats.servers[0].kill()
    try:
        for one, names in ((relay, ["both", "by-nats", "by-redis", "too"]), (relays["by-nats"], ["both", "by-nats", "too"])):
            wait_until(lambda: "NATS" in _list(one)[1], 60, "NATS to be missed")  # noqa: B023
            said, _ = _list(one)
            assert sorted(said) == names and said["too"]["queue"] == "up", "as it said last"
        assert _list(relay)[0]["too"]["state"] == "working"
    finally:
        nats.start()
    wait_until(lambda: "NATS" not in _list(relays["by-nats"])[1], 60, "NATS to be back")


def test_a_node_that_waits_for_nats_is_listed(lab):
    """The list was empty, as if there were no cluster."""
    sink, nats = lab.sink(), Nats(lab.folder("nats"), servers=1)
    lab.callback(nats.close)
    relay = lab.relay(_config("alpha", sink, nats=nats), start=False)
    relay.start(ready=lambda: relay.command("node", "list").returncode == 0)
    said, lines = _list(relay)
    assert (said["alpha"]["state"], said["alpha"]["queue"], said["alpha"]["by"]) == ("waiting", "waiting", "-")
    assert "NATS" in lines and _sums(relay)[1] == "1"
    nats.start()
    wait_until(lambda: _list(relay)[0]["alpha"]["state"] == "up", 60, "its own epoch")
