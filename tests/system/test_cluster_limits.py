# SPDX-License-Identifier: ISC
"""Limits that three nodes share by a real Redis: connections to a host, a rate, what a login may send; with it and without."""

import time

import pytest

from lab import hasty, sasl
from lab.config import Config
from lab.load import Load
from lab.net import LOOPBACK, wait_until
from lab.redis import Redis

NAMES = ("alpha", "beta", "gamma")
LIMIT = 20


def _config(name, redis, sink, **smtp):
    lines = f'name = "{name}"\nredis = "{LOOPBACK}:{redis.port}"\nredis_timeout = "300ms"'
    config = Config(extra=f"cluster {{\n{lines}\n}}\n").route_all_to(sink.port)
    config.transports["smtp"] = {
        "initial_destination_concurrency": 50, "destination_concurrency_limit": 50, "host_connection_limit": LIMIT,
    } | smtp
    return config


@pytest.fixture(name="redis")
def fixture_redis(lab):
    """A Redis that runs."""
    one = Redis(lab.folder("redis"))
    lab.callback(one.close)
    return one.start()


def _know_each_other(*relays):
    for relay in relays:
        relay.wait_event("cluster", state="ready")
        wait_until(lambda one=relay: 'cluster_nodes{state="working"} 3' in one.command("stats").stdout, 60, "three nodes")


def _nodes(lab, redis, sink, **smtp):
    relays = [lab.relay(_config(name, redis, sink, **smtp)) for name in NAMES]
    _know_each_other(*relays)
    return relays


def _fill(relays, messages):
    """Give each so much mail."""
    for load in [Load(relay.port, messages, sessions=5) for relay in relays]:
        load.wait_acknowledged(messages)
        load.close()


def _connections(sink, seconds):
    """Return how many connections there were on average, looking often."""
    seen = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen.append(sink.connections)
        time.sleep(0.01)
    return sum(seen) / len(seen)


@pytest.mark.plain_only
def test_connections_to_a_host_with_a_limit_are_shared(lab, redis):
    sink = lab.sink(latency=0.1, extensions=("8BITMIME",))
    alpha, beta, gamma = _nodes(lab, redis, sink)
    _fill([alpha], 250)
    wait_until(lambda: sink.connections == LIMIT, 60, "one node to have all")
    _fill([beta, gamma], 220)
    time.sleep(1.5)
    assert _connections(sink, 1) > 0.95 * LIMIT
    # Each has its part without Redis, and what it had in it again.
    redis.kill()
    for relay in (alpha, beta, gamma):
        relay.wait_event("cluster", state="away")
    before = len(sink.messages)
    wait_until(lambda: sink.connections == 18, 60, "each node to have its part")
    assert 0.95 * 18 < _connections(sink, 0.3) <= 18
    assert len(sink.messages) > before + 50
    redis.start()
    for relay in (alpha, beta, gamma):
        relay.wait_event("cluster", state="ready", count=2)
    wait_until(lambda: sink.connections == LIMIT, 60, "all that may be")
    # Its leases expire, and others have them.
    gamma.kill()
    wait_until(lambda: sink.connections < LIMIT - 3, 60, "the connections of the dead to be gone")
    wait_until(lambda: sink.connections == LIMIT, 60, "others to have its connections")
    assert sink.most_connections <= LIMIT


def _began(sink, since, until):
    return sum(1 for one in sink.messages if since <= one.time < until)


@pytest.mark.plain_only
def test_a_rate_is_that_of_all_nodes_together(lab, redis):
    sink = lab.sink()
    relays = _nodes(lab, redis, sink, destination_rate="100/s")
    _fill(relays, 400)
    start = time.monotonic()
    time.sleep(2)
    assert 190 <= _began(sink, start, start + 2) <= 210
    redis.kill()
    time.sleep(0.3)
    start = time.monotonic()
    time.sleep(2)
    assert 190 <= _began(sink, start, start + 2) <= 210
    redis.start()
    for relay in relays:
        relay.wait_event("cluster", state="ready", count=2)
    time.sleep(0.3)
    start = time.monotonic()
    time.sleep(2)
    assert 190 <= _began(sink, start, start + 2) <= 210


def test_what_a_login_and_a_client_may_send_they_may_send_to_all_together(lab, redis):
    sink = lab.sink()
    users = lab.folder("users") / "users"
    for login in ("ann", "bob", "joe"):
        assert sasl.passwd(users, login, "secret").returncode == 0
    relays = []
    for name in NAMES:
        config = _config(name, redis, sink)
        config.settings["networks"] = ["10.0.0.0/8"]
        config.listeners = {"smtp": {"tls": "none", "auth": True, "error_limit": 0, "junk_command_limit": 0}}
        for one in ("calls", "more"):
            config.listeners[one] = {"client_rate_limit": "90/h"}
        config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
        config.extra += 'limit "login" { messages = "300/h" }\n'
        relays.append(lab.relay(config))
    _know_each_other(*relays)
    passed = hasty.passed(relays, "ann", 1.5)
    assert 300 <= sum(passed) <= 315, passed
    assert min(passed) > 0
    greeted = hasty.greeted(relays, "calls", 0.5)
    assert 90 <= sum(greeted) <= 95, greeted
    assert min(greeted) > 0
    # Reset on one, known by all.
    assert relays[0].command("user", "reset", "ann").returncode == 0
    passed = hasty.passed(relays, "ann", 2.5)
    assert 300 <= sum(passed) <= 315, passed
    redis.kill()
    for relay in relays:
        relay.wait_event("cluster", state="away")
    assert hasty.passed(relays, "bob", 2) == [100, 100, 100]
    assert hasty.greeted(relays, "more", 0.5) == [30, 30, 30]
    redis.start()
    for relay in relays:
        relay.wait_event("cluster", state="ready", count=2)
    # What passed meanwhile counts.
    assert sum(hasty.passed(relays, "bob", 0.5)) <= 15
    passed = hasty.passed(relays, "joe", 1.5)
    assert 300 <= sum(passed) <= 315, passed
