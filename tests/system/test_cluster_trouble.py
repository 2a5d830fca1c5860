# SPDX-License-Identifier: ISC
"""Limits that nodes share while their Redis is in trouble: mail flows, limits hold, and all is as before when it is over.

SLUICE_TROUBLE=SECONDS has more kinds of trouble, and each last so long: from four on leases expire within it, and each node has its part.
"""

import contextlib
import json
import os
import threading
import time

import pytest

from lab import hasty, sasl
from lab.config import Config
from lab.delay import DelayProxy
from lab.load import Load
from lab.net import LOOPBACK, free_port, wait_until
from lab.redis import Redis
from lab.sink import Rule

pytestmark = [pytest.mark.plain_only, pytest.mark.xdist_group("cluster_trouble")]

NAMES = ("alpha", "beta", "gamma")
LIMIT, RATE, MESSAGES = 20, 30, 150
LONG = "SLUICE_TROUBLE" in os.environ
SECONDS = float(os.environ.get("SLUICE_TROUBLE", "2"))
TROUBLES = 10
STATES = ("away", "full", "ready")


def counted(relay):
    """Return what the relay counts."""
    return json.loads(relay.command("stats", "--json").stdout)


class Nodes:
    """Three of them, and mail under each kind of limit."""

    def __init__(self, lab, redis):
        """Start them; in the long form the way to Redis is a proxy, whose delay may be set."""
        self.redis = redis
        self.way = lab.enter_context(contextlib.closing(DelayProxy(redis.port, remember=False))) if LONG else redis
        self.few, self.even = lab.sink(Rule("end", delay=0.5), extensions=("8BITMIME",)), lab.sink()
        users = lab.folder("users") / "users"
        self.logins = [f"user{number}" for number in range(TROUBLES)]
        for login in self.logins:
            assert sasl.passwd(users, login, "secret").returncode == 0
        self.relays = [lab.relay(self._config(name, users)) for name in NAMES]
        for relay in self.relays:
            relay.wait_event("cluster", state="ready")
            wait_until(lambda one=relay: counted(one)['cluster_nodes{state="working"}'] == 3, 60, "three nodes")

    def _config(self, name, users):
        lines = f'name = "{name}"\nredis = "{LOOPBACK}:{self.way.port}"\nredis_timeout = "{600 if LONG else 1500}ms"'
        config = Config(extra=f'cluster {{\n{lines}\n}}\nlimit "login" {{ messages = "{MESSAGES}/h" }}\n')
        config.listeners["logins"] = {"tls": "none", "auth": True, "error_limit": 0, "junk_command_limit": 0}
        config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
        config.transports["smtp"] = {
            "initial_destination_concurrency": 50, "destination_concurrency_limit": 50, "host_connection_limit": LIMIT,
        }
        config.transports["even"] = {"destination_rate": f"{RATE}/s"}
        config.routes["*"] = {"relay": [f"[{LOOPBACK}]:{self.few.port}"]}
        config.routes["even.test"] = {"relay": [f"[{LOOPBACK}]:{self.even.port}"], "transport": "even"}
        return config

    def _fill(self, domain, messages):
        for load in [Load(relay.port, int(messages) // 3, sessions=5, domains=(domain,)) for relay in self.relays]:
            load.finish()

    def begin(self):
        """Let there be as many connections as there may be, and mail for the time to come."""
        self._fill("few.test", (SECONDS + 10) * 60)
        wait_until(lambda: self.few.connections == LIMIT, 60, "all connections")
        self._fill("even.test", (3 * SECONDS + 3) * RATE)

    def states(self):
        """Return how often each has said each state of Redis."""
        return [[len(relay.events("cluster", state=state)) for state in STATES] for relay in self.relays]

    def look(self, seconds):
        """Return what passes within so many seconds: messages of few, messages of even, messages of a login."""
        login = self.logins.pop()
        before, start = len(self.few.messages), time.monotonic()
        sent = hasty.passed(self.relays, login, "logins")
        time.sleep(max(0, start + seconds - time.monotonic()))
        end = time.monotonic()
        even = sum(1 for one in self.even.messages if start <= one.time < end)
        return len(self.few.messages) - before, even / (end - start), sent


@pytest.fixture(scope="module", name="nodes")
def fixture_nodes(module_lab):
    """Three nodes and a Redis."""
    redis = Redis(module_lab.folder("redis"))
    module_lab.callback(redis.close)
    return Nodes(module_lab, redis.start())


@contextlib.contextmanager
def _away(begin, end):
    begin()
    try:
        yield "away"
    finally:
        end()


def killed(nodes):
    """Kill it."""
    return _away(nodes.redis.kill, nodes.redis.start)


def paused(nodes):
    """Stop it for a while."""
    return _away(nodes.redis.pause, nodes.redis.go_on)


@contextlib.contextmanager
def slow(nodes):
    """Have each answer take 0.2 s."""
    nodes.way.one_way = 0.1
    try:
        yield None
    finally:
        nodes.way.one_way = 0.0


@contextlib.contextmanager
def full(nodes):
    """Leave it no memory."""
    nodes.redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    nodes.redis.ask("CONFIG", "SET", "maxmemory", "1")
    try:
        yield "full"
    finally:
        nodes.redis.ask("CONFIG", "SET", "maxmemory", "0")


@contextlib.contextmanager
def made_a_replica(nodes):
    """Make it a replica of nobody."""
    nodes.redis.ask("REPLICAOF", LOOPBACK, str(free_port()))
    try:
        yield "away"
    finally:
        nodes.redis.ask("REPLICAOF", "NO", "ONE")


@contextlib.contextmanager
def emptied(nodes):
    """Remove all, once a second."""
    stop = threading.Event()

    def work():
        while not stop.wait(1):
            nodes.redis.ask("FLUSHALL")

    nodes.redis.ask("FLUSHALL")
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield None
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def strange(nodes):
    """Put lists where ours are."""
    for key in nodes.redis.keys("sluice:*"):
        nodes.redis.ask("DEL", key)
        nodes.redis.ask("LPUSH", key, "what", "is", "this")
    yield None


@contextlib.contextmanager
def of_another_version(nodes):
    """Put words there that make no sense."""
    for key in nodes.redis.keys("sluice:lease:*"):
        for name, value in (("zeta", "v2 9 9 9"), ("eta", "99999999999999999999 1 99999999999999999999"), ("\x00", b"\xff" * 100), ("theta", "-1 -1 -1")):
            nodes.redis.ask("HSET", key, name, value)
    for key in nodes.redis.keys("sluice:rate:*"):
        nodes.redis.ask("SET", key, "nan")
    yield None


@contextlib.contextmanager
def scripts_forgotten(nodes):
    """Have it forget our scripts."""
    nodes.redis.ask("SCRIPT", "FLUSH")
    yield None


USUAL = [paused, emptied, strange, full, made_a_replica]
RARE = [killed, slow, of_another_version, scripts_forgotten]


def within(nodes, few, even, sent):
    """Say whether this is what may pass: something of each kind, and not what nodes would let pass that knew nothing of each other.

    That would be three times the limit. Half of what that is beyond the limit is for what is ahead or under way, which is the
    more the slower the machine is; and for connections that a node has beyond its part until they end, while the others go up
    to theirs when the leases have expired, after three seconds.
    """
    return (
        few > 0 and nodes.few.most_connections <= 2 * LIMIT and 0 < even <= 2 * RATE
        and min(sent) > 0 and sum(sent) <= 2 * MESSAGES
    )


@pytest.mark.parametrize("trouble", USUAL + (RARE if LONG else []))
def test_mail_flows_and_limits_hold(nodes, trouble):
    nodes.begin()
    before = nodes.states()
    nodes.few.most_connections = LIMIT
    with trouble(nodes) as state:
        for relay, was in zip(nodes.relays, before):
            if state:
                relay.wait_event("cluster", state=state, count=was[STATES.index(state)] + 1)
                assert counted(relay)[f"cluster_{state}"] == 1
        seen = nodes.look(SECONDS)
        assert within(nodes, *seen), (seen, nodes.few.most_connections)
    # It is over.
    for relay, was in zip(nodes.relays, before):
        if state:
            relay.wait_event("cluster", state="ready", count=was[STATES.index("ready")] + 1)
        assert [counted(relay)[f"cluster_{name}"] for name in ("away", "full")] == [0, 0]
    if trouble is not USUAL[-1] or LONG:
        wait_until(lambda: nodes.few.connections == LIMIT, 60, "all connections again")
        assert nodes.few.most_connections <= 2 * LIMIT
    more = [int(name in (state, state and "ready")) for name in STATES]
    assert nodes.states() == [[a + b for a, b in zip(was, more)] for was in before], "said once"
