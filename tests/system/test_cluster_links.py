# SPDX-License-Identifier: ISC
"""cluster { redis }: a Redis that is reached, and yet does not serve: it says nothing, or too late."""

import contextlib

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


@pytest.mark.parametrize("hushed", WORDS)
def test_one_that_does_not_answer_what_opens_the_link_is_away_and_tried_again(lab, redis, hushed):
    sink = lab.sink()
    with contextlib.closing(Hushed(redis.port, WORDS[hushed])) as way:
        relay = node_at(lab, way.port, sink)
        assert relay.wait_event("cluster", state="away")["reason"] == "it does not answer"
        began = way.connections
        wait_until(lambda: way.connections >= began + 4, what="two more attempts")
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
        began = way.connections
        wait_until(lambda: way.connections >= began + 4, what="two more attempts")
        way.word = None
        relay.wait_event("cluster", state="ready", count=2)
        assert states(relay) == ["ready", "away", "ready"]


def test_one_whose_answers_come_too_late_is_away_all_the_time(lab, redis):
    """It is reached in time, and each question takes longer than it may."""
    sink = lab.sink()
    with contextlib.closing(Hushed(redis.port, WORDS["nothing"], late=0.8)) as way:
        relay = node_at(lab, way.port, sink)
        relay.wait_event("cluster", state="away")
        began = way.connections
        wait_until(lambda: way.connections >= began + 6, what="three more attempts")
        relay.send()
        sink.wait_messages(1)
        assert states(relay) == ["away"]
        way.word = None
        relay.wait_event("cluster", state="ready")
        assert states(relay) == ["away", "ready"]
