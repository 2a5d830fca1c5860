# SPDX-License-Identifier: ISC
"""cluster { redis }: a Redis that is reached, and yet does not serve: it says nothing, or too late, or that it may not."""

import contextlib
import json

import pytest

from lab.config import Config
from lab.hushed import Hushed
from lab.net import LOOPBACK, wait_until
from lab.redis import Redis

WORDS = {"nothing": b"", "the greeting": b"PING", "subscriptions": b"SUBSCRIBE", "scripts": b"EVAL"}


@pytest.fixture(name="redis")
def fixture_redis(lab):
    """A Redis that runs."""
    one = Redis(lab.folder("redis"))
    lab.callback(one.close)
    return one.start()


def node_at(lab, port, sink, **cluster):
    """Start one."""
    settings = {"name": "alpha", "redis": f"{LOOPBACK}:{port}", "redis_timeout": "500ms"} | cluster
    lines = "".join(f'{key} = "{value}"\n' for key, value in settings.items())
    config = Config(extra=f'cluster {{\n{lines}}}\nlimit "client" {{ messages = "100000/h" }}\n').route_all_to(sink.port)
    config.transports["smtp"] = {"destination_rate": "1000/s", "host_connection_limit": 20}
    return lab.relay(config)


def states(relay):
    """Return what was said of Redis."""
    return [one["state"] for one in relay.events("cluster")]


def wait_attempts(way, count):
    """Wait until so many more have been made; each takes two connections."""
    before = way.connections
    wait_until(lambda: way.connections >= before + 2 * count, what="more attempts")


@pytest.mark.parametrize("hushed", WORDS)
def test_one_that_does_not_answer_what_opens_the_link_is_away_and_tried_again(lab, redis, hushed):
    sink = lab.sink()
    with contextlib.closing(Hushed(redis.port, WORDS[hushed])) as way:
        relay = node_at(lab, way.port, sink)
        assert relay.wait_event("cluster", state="away")["reason"] == "it does not answer"
        wait_attempts(way, 2)
        relay.send()
        sink.wait_messages(1)
        way.word = None
        relay.wait_event("cluster", state="ready")
        assert states(relay) == ["away", "ready"]


def test_one_that_goes_silent_and_stays_so_when_it_is_reached_again_is_away(lab, redis):
    sink = lab.sink()
    with contextlib.closing(Hushed(redis.port)) as way:
        relay = node_at(lab, way.port, sink)
        relay.wait_event("cluster", state="ready")
        way.word = b"SUBSCRIBE"
        redis.ask("CLIENT", "KILL", "TYPE", "normal")
        relay.wait_event("cluster", state="away")
        wait_attempts(way, 2)
        way.word = None
        relay.wait_event("cluster", state="ready", count=2)
        assert states(relay) == ["ready", "away", "ready"]


def test_one_whose_answers_come_too_late_is_away_all_the_time(lab, redis):
    """It is reached in time, and each question takes longer than it may."""
    sink = lab.sink()
    with contextlib.closing(Hushed(redis.port, WORDS["nothing"], late=0.8)) as way:
        relay = node_at(lab, way.port, sink)
        relay.wait_event("cluster", state="away")
        wait_attempts(way, 3)
        relay.send()
        sink.wait_messages(1)
        assert states(relay) == ["away"]
        way.word = None
        relay.wait_event("cluster", state="ready")
        assert states(relay) == ["away", "ready"]


RIGHTS = "+@read +@write +@scripting +publish +subscribe +ping +time +type"

# Rights, keys and channels of a user who may not all that we need.
LACKS = {
    "writes": (RIGHTS.replace("+@write ", ""), "~sluice:*", "&sluice:*"),
    "reads": (RIGHTS.replace("+@read ", ""), "~sluice:*", "&sluice:*"),
    "evalsha": (RIGHTS + " -evalsha", "~sluice:*", "&sluice:*"),
    "eval": (RIGHTS + " -eval", "~sluice:*", "&sluice:*"),
    "publish": (RIGHTS.replace("+publish ", ""), "~sluice:*", "&sluice:*"),
    "subscribe": (RIGHTS.replace("+subscribe ", ""), "~sluice:*", "&sluice:*"),
    "ping": (RIGHTS.replace("+ping ", ""), "~sluice:*", "&sluice:*"),
    "keys": (RIGHTS, "~other:*", "&sluice:*"),
    "channels": (RIGHTS, "~sluice:*", "&other:*"),
}


def give_rights(redis, rights, keys="~sluice:*", channels="&sluice:*"):
    """Let the user mail have these, and no others."""
    assert redis.ask("ACL", "SETUSER", "mail", "on", ">right", "resetkeys", "resetchannels", "-@all", keys, channels, *rights.split()) == "+OK"


@pytest.fixture(name="password")
def fixture_password(tmp_path):
    """The file of one."""
    path = tmp_path / "password"
    path.write_text("right\n")
    return str(path)


@pytest.mark.parametrize("lack", LACKS)
def test_a_user_without_a_right_has_redis_away_in_its_words_and_once(lab, redis, password, lack):
    sink = lab.sink()
    give_rights(redis, *LACKS[lack])
    with contextlib.closing(Hushed(redis.port)) as way:
        relay = node_at(lab, way.port, sink, redis_timeout="1500ms", redis_user="mail", redis_password=password)
        assert relay.wait_event("cluster", state="away")["reason"].startswith("NOPERM ")
        relay.send()
        sink.wait_messages(1)
        wait_attempts(way, 3)
        assert states(relay) == ["away"]
        give_rights(redis, RIGHTS)
        relay.wait_event("cluster", state="ready")
        assert states(relay) == ["away", "ready"]


@pytest.mark.parametrize("lack", ["writes", "publish"])
def test_a_right_that_is_taken_away_is_missed_and_so_is_what_it_was_for(lab, redis, password, lack):
    sink = lab.sink()
    give_rights(redis, RIGHTS)
    with contextlib.closing(Hushed(redis.port)) as way:
        relay = node_at(lab, way.port, sink, redis_timeout="1500ms", redis_user="mail", redis_password=password)
        relay.wait_event("cluster", state="ready")
        give_rights(redis, *LACKS[lack])
        relay.send()
        sink.wait_messages(1)
        away = relay.wait_event("cluster", state="away")
        assert "can't run this command" in away["reason"] or "no permissions" in away["reason"]
        wait_attempts(way, 3)
        relay.send()
        sink.wait_messages(2)
        assert states(relay) == ["ready", "away"]
        give_rights(redis, RIGHTS)
        relay.wait_event("cluster", state="ready", count=2)
        assert states(relay) == ["ready", "away", "ready"]


def refused(relay):
    """Return how many commands Redis has refused."""
    return json.loads(relay.command("stats", "--json").stdout)['cluster_commands_total{result="refused"}']


def _be_full_once(relay, redis):
    """Have Redis refuse something, and take something again."""
    before = refused(relay)
    redis.ask("CONFIG", "SET", "maxmemory", "1")
    wait_until(lambda: refused(relay) > before, what="a refusal")
    beat = redis.value("HGET", "sluice:nodes", "alpha")
    redis.ask("CONFIG", "SET", "maxmemory", "0")
    wait_until(lambda: redis.value("HGET", "sluice:nodes", "alpha") != beat, what="a heartbeat")


def _said_at_the_edge(relay, redis):
    """Return what the relay says while Redis is full now and then, until it has taken all for some time."""
    known = len(states(relay))
    for _ in range(3):
        _be_full_once(relay, redis)
    wait_until(lambda: len(states(relay)) > known and states(relay)[-1] == "ready", 60, "all to be well")
    return states(relay)[known:]


def test_one_at_the_edge_of_its_memory_is_full_once(lab, redis):
    """It takes some writes, and refuses others. Where this test is so slow that all is well in between, that is said, too: then once more."""
    sink = lab.sink()
    relay = node_at(lab, redis.port, sink, redis_timeout="1500ms")
    relay.wait_event("cluster", state="ready")
    redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert any(_said_at_the_edge(relay, redis) == ["full", "ready"] for _ in range(5))
