# SPDX-License-Identifier: ISC
"""cluster { redis }: three relays that know what each other knows, by a real Redis; and by one that is away, slow, full, or strange."""

import time

import pytest

from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.redis import Redis
from lab.sink import Sink

NAMES = ("alpha", "beta", "gamma")


def config_of(name, redis, port, smtp=None, **cluster):
    """Return the configuration of a node whose mail all goes to this port."""
    settings = {"name": name, "redis": f"{LOOPBACK}:{redis.port}", "redis_timeout": "300ms"} | cluster
    lines = "".join(f"    {key} = {value if value in ('true', 'false') else chr(34) + value + chr(34)}\n" for key, value in settings.items())
    queue = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
    config = Config(queue=queue, extra=f"cluster {{\n{lines}}}\n").route_all_to(port)
    config.transports["smtp"] = {"site_patience": "0s", "host_backoff_max": "5m"} | (smtp or {})
    return config


@pytest.fixture(name="redis")
def fixture_redis(lab):
    """A Redis that runs."""
    one = Redis(lab.folder("redis"))
    lab.callback(one.close)
    return one.start()


def wait_ready(*relays, count=1):
    """Wait until these have found Redis so often."""
    for relay in relays:
        relay.wait_event("cluster", state="ready", count=count)


def nodes_of(lab, redis, port, **settings):
    """Start three nodes."""
    relays = [lab.relay(config_of(name, redis, port, **settings)) for name in NAMES]
    wait_ready(*relays)
    return relays


def test_an_outage_is_known_by_all_and_probed_by_one(lab, redis):
    port = free_port()
    relays = nodes_of(lab, redis, port)
    relays[0].send()
    began = time.monotonic()
    relays[0].wait_event("host", state="out")
    for relay in relays[1:]:
        heard = relay.wait_event("host", state="out", timeout=2)
        assert heard["node"] == "alpha"
    assert time.monotonic() - began < 1
    for relay in relays[1:]:
        assert relay.send().code == 250
        relay.wait_event("deferred")
    # Each probe doubles the time of all: were they three, it would be 8 s after the first.
    wait_until(lambda: any(int(one["failures"]) == 3 for relay in relays for one in relay.events("host", state="out")), 10, "two probes")
    own = [one for relay in relays for one in relay.events("host", state="out") if "node" not in one.keys]
    assert sorted(int(one["failures"]) for one in own) == [1, 2, 3], own
    sink = Sink(port=port)
    lab.callback(sink.close)
    sink.wait_messages(3, 15)
    back = [relay.wait_event("host", state="back") for relay in relays]
    assert len([one for one in back if "node" not in one.keys]) == 1
