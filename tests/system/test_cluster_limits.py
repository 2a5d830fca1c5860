# SPDX-License-Identifier: ISC
"""Limits that three nodes share by a real Redis: connections to a host, a rate, what a login may send; with it and without."""

import json
import time

import pytest

from lab import hasty, sasl
from lab.config import Config
from lab.load import Load
from lab.net import LOOPBACK, wait_until
from lab.redis import Redis
from lab.sink import Rule

NAMES = ("alpha", "beta", "gamma")
LIMIT = 20


def _config(name, redis, sink, **smtp):
    lines = f'name = "{name}"\nredis = "{LOOPBACK}:{redis.port}"\nredis_timeout = "1500ms"'
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
        number = f'cluster_nodes{{state="working"}} {len(relays)}'
        wait_until(lambda one=relay, all_of_them=number: all_of_them in one.command("stats").stdout, 60, "all nodes")


def _nodes(lab, redis, sink, **smtp):
    relays = [lab.relay(_config(name, redis, sink, **smtp)) for name in NAMES]
    _know_each_other(*relays)
    return relays


def _fill(relays, messages):
    """Give each so much mail."""
    for load in [Load(relay.port, messages, sessions=5) for relay in relays]:
        load.wait_acknowledged(messages)
        load.close()


def _has(relay):
    """Return how many connections a relay has to its hosts."""
    rows = map(json.loads, relay.command("dest", "list", "--json").stdout.splitlines())
    return sum(host["connections"] for row in rows for host in row.get("hosts", []))


@pytest.mark.plain_only
def test_connections_to_a_host_with_a_limit_are_shared(lab, redis):
    """Each delivery takes a second, so that there is mail for all connections to the end."""
    sink = lab.sink(Rule("end", delay=1), extensions=("8BITMIME",))
    alpha, beta, gamma = nodes = _nodes(lab, redis, sink)
    _fill([alpha], 500)
    wait_until(lambda: sink.connections == LIMIT, what="one node to have all")
    _fill([beta, gamma], 500)
    wait_until(lambda: all(_has(one) >= LIMIT // 3 for one in nodes), what="each node to have its part")
    wait_until(lambda: sink.connections == LIMIT, what="all that may be")
    # Each has its part without Redis, and what it had in it again.
    redis.kill()
    for relay in nodes:
        relay.wait_event("cluster", state="away")
    wait_until(lambda: sink.connections == 18, what="each node to have its part")
    assert sink.most_connections <= LIMIT
    sink.most_connections = 0
    sink.wait_messages(len(sink.messages) + 50)
    assert sink.most_connections <= 18
    redis.start()
    for relay in nodes:
        relay.wait_event("cluster", state="ready", count=2)
    wait_until(lambda: sink.connections == LIMIT, what="all that may be")
    # Its leases expire, and others have them.
    gamma.kill()
    wait_until(lambda: sink.connections < LIMIT - 3, what="the connections of the dead to be gone")
    wait_until(lambda: sink.connections == LIMIT, what="others to have its connections")
    assert sink.most_connections <= LIMIT


def _has_rate(sink, rate):
    """Fail unless mail comes at about this rate: three times it would be too much, and a third of it too little."""
    start, count = time.monotonic(), 8 * rate
    sink.wait_messages(len(sink.messages) + count)
    assert count / rate / 2 < time.monotonic() - start < 2 * count / rate


@pytest.mark.plain_only
def test_a_rate_is_that_of_all_nodes_together(lab, redis):
    """A rate that each node had for itself would be three times as much, and one divided in vain a third."""
    sink = lab.sink()
    relays = _nodes(lab, redis, sink, destination_rate="20/s")
    _fill(relays, 300)
    _has_rate(sink, 20)
    redis.kill()
    for relay in relays:
        relay.wait_event("cluster", state="away")
    _has_rate(sink, 20)
    redis.start()
    for relay in relays:
        relay.wait_event("cluster", state="ready", count=2)
    _has_rate(sink, 20)


def _seconds_for(sink, relays, messages):
    """Return the time from before so much mail is given to each until all of it is there."""
    began, before = time.monotonic(), len(sink.messages)
    for relay in relays:
        for _ in range(messages):
            relay.send(sender="x@even.test", recipients=["to@dest.test"])
    sink.wait_messages(before + messages * len(relays))
    return time.monotonic() - began


def test_the_rate_of_a_flow_is_that_of_all_nodes_together(lab, redis):
    """Nothing is sent before its time, however slow all of it is: a rate that each node had for itself would need half as long."""
    sink = lab.sink()
    relays = []
    for name in NAMES[:2]:
        config = _config(name, redis, sink)
        config.extra += 'flow "even.test" { rate = "20/s" }\n'
        relays.append(lab.relay(config))
    _know_each_other(*relays)
    # The last of 80 is due after 79 intervals of 50 ms, and may be 50 ms early.
    assert _seconds_for(sink, relays, 40) > 3.89
    redis.kill()
    for relay in relays:
        relay.wait_event("cluster", state="away")
    # Each has half of it, and what it has still: two at most, and two ahead.
    assert _seconds_for(sink, relays, 20) > 1.5
    redis.start()
    for relay in relays:
        relay.wait_event("cluster", state="ready", count=2)
    # Meanwhile nothing was taken from what all have.
    assert _seconds_for(sink, relays, 30) > 2.5
    for relay in relays:
        relay.wait_event("sent", flow="even.test", count=90)


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
            config.listeners[one] = {"client_rate_limit": "90/d"}
        config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
        config.extra += 'limit "login" { messages = "300/d" }\n'
        relays.append(lab.relay(config))
    _know_each_other(*relays)
    # Beyond the limit may pass what passes while an answer is under way, more on a busy machine. Each on its own would let pass
    # three times as much.
    passed = hasty.passed(relays, "ann")
    assert 300 <= sum(passed) < 800, passed
    assert min(passed) > 0
    greeted = hasty.greeted(relays, "calls")
    assert 90 <= sum(greeted) < 240, greeted
    assert min(greeted) > 0
    # Reset on one, known by all.
    assert relays[0].command("user", "reset", "ann").returncode == 0
    passed = hasty.passed(relays, "ann")
    assert 300 <= sum(passed) < 800, passed
    redis.kill()
    for relay in relays:
        relay.wait_event("cluster", state="away")
    assert hasty.passed(relays, "bob") == [100, 100, 100]
    assert hasty.greeted(relays, "more") == [30, 30, 30]
    redis.start()
    for relay in relays:
        relay.wait_event("cluster", state="ready", count=2)
    # What passed meanwhile counts, as soon as it was told: it is not three hundred once more.
    assert sum(hasty.passed(relays, "bob")) < 250
    passed = hasty.passed(relays, "joe")
    assert 300 <= sum(passed) < 800, passed


def test_what_a_login_has_sent_is_known_to_a_redis_that_comes_back_with_older_data(lab, redis):
    sink = lab.sink()
    users = lab.folder("users") / "users"
    assert sasl.passwd(users, "user", "secret").returncode == 0
    config = _config("alpha", redis, sink)
    config.extra += 'limit "login" { messages = "30/h" }\n'
    config.listeners["logins"] = {"tls": "none", "auth": True, "error_limit": 0, "junk_command_limit": 0}
    config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
    alpha = lab.relay(config)
    alpha.wait_event("cluster", state="ready")
    wait_until(lambda: redis.value("HGET", "sluice:nodes", "alpha"), what="a heartbeat")
    assert redis.ask("SAVE") == "+OK"
    assert hasty.passed([alpha], "user", "logins") == [30]
    for _ in range(3):  # so that it is told, and answered
        before = redis.value("HGET", "sluice:nodes", "alpha")
        wait_until(lambda row=before: redis.value("HGET", "sluice:nodes", "alpha") != row, what="a heartbeat")
    redis.kill()
    redis.start()
    alpha.wait_event("cluster", state="ready", count=2)
    assert hasty.passed([alpha], "user", "logins") == [0]
