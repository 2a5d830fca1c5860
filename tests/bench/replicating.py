# SPDX-License-Identifier: ISC
"""What engines beside one node cost: none, the queue in NATS too, without waiting for it (async) and waiting (sync), limits shared by Redis.

    smtp-source -> sluice -> smtp-sink
                    |  |
     three nats-servers  redis-server

In turn, several rounds. The servers share the processors with all else; what they spend is shown beside it. What has limits
has one for each destination, host and client, which are never reached: each message is counted under them.
"""

import os
import shutil
import statistics
import time

from ends import drive, make_relay, source, spent
from lab.nats import Nats
from lab.net import free_port
from lab.redis import Redis

# The copy of the queue, limits, Redis.
MODES = {
    "alone": ("off", False, False), "async": ("async", False, False), "sync": ("sync", False, False),
    "limits": ("off", True, False), "limits, Redis": ("off", True, True), "limits, Redis, sync": ("sync", True, True),
}


def _node(folder, nats, redis, mode, sink_port):
    replicate, limits, shared = MODES[mode]
    name = mode.replace(", ", "-").lower()
    relay = make_relay(folder / name, sink_port)
    where = f'redis = "127.0.0.1:{redis.port}" redis_timeout = 1500ms' if shared else ""
    relay.config.extra = (f'cluster {{ name = "{name}" nats = "{nats.addresses}" replicate = "{replicate}" '
                          f'replicate_timeout = 30s {where} }}\n')
    if limits:
        relay.config.transports.setdefault("smtp", {}).update({"destination_rate": "1000000/s", "host_connection_limit": 50})
        relay.config.extra += 'limit "client" { messages = "1000000/s" }\n'
    relay.write_config()
    relay.start()
    if replicate != "off":
        relay.wait_event("replica", state="complete", timeout=30)
    if shared:
        relay.wait_event("cluster", state="ready", timeout=30)
    return relay


def _servers_spent(servers):
    return sum(spent(server.process.pid) for server in servers)


def _round(relay, nats, redis, sink_port, options):
    """Return messages a second, and milliseconds of processor time a message, of the relay and of the servers of each engine."""
    engines = (nats.servers, [redis])
    before = [spent(relay.process.pid), *map(_servers_spent, engines)]
    seconds = drive(relay.port, sink_port, options, options.relayed)
    time.sleep(1)  # what is behind is made up
    after = [spent(relay.process.pid), *map(_servers_spent, engines)]
    return options.relayed / seconds, *(1000 * (b - a) / options.relayed for a, b in zip(before, after))


def _one_after_the_other(relay, sink_port, options):
    """Return the milliseconds until a client that is alone has its 250."""
    drive(relay.port, sink_port, options, 1)
    messages = 200
    began = time.monotonic()
    source(relay.port, messages, 1, options.size)
    return 1000 * (time.monotonic() - began) / messages


def run(options, folder):
    """Measure in turn and return the figures."""
    sink_port = free_port()
    names = ("rate", "ms", "nats_ms", "redis_ms")
    rounds = {mode: {name: [] for name in names} for mode in MODES}
    relays = {}
    for name in ("nats", "redis"):
        os.makedirs(folder / name)
    nats, redis = Nats(folder / "nats"), Redis(folder / "redis")
    try:
        nats.start()
        redis.start()
        for mode in MODES:
            relays[mode] = _node(folder, nats, redis, mode, sink_port)
        for _ in range(options.rounds):
            for mode, relay in relays.items():
                for name, value in zip(names, _round(relay, nats, redis, sink_port, options)):
                    rounds[mode][name].append(value)
        alone = {mode: _one_after_the_other(relay, sink_port, options) for mode, relay in relays.items()}
    finally:
        for relay in relays.values():
            relay.stop()
        nats.close()
        redis.close()
        for name in ("nats", "redis"):
            shutil.rmtree(folder / name, ignore_errors=True)
    median = {mode: {name: statistics.median(values) for name, values in of.items()} for mode, of in rounds.items()}
    return {"median": median, "one_client_ms": alone, "rounds": rounds}


def report(figures, options):
    """Return the lines of the table."""
    lines = [f"engines beside one node, on this machine: {options.size} byte messages, {options.sessions} sessions"]
    lines.append(f"{'':20}{'messages/s':>12}{'of alone':>10}{'ms cpu/msg':>12}{'NATS':>8}{'Redis':>8}{'one client ms':>15}")
    rate = figures["median"]["alone"]["rate"]
    for mode, of in figures["median"].items():
        lines.append(f"{mode:20}{of['rate']:12.0f}{of['rate'] / rate:10.2f}{of['ms']:12.3f}{of['nats_ms']:8.3f}{of['redis_ms']:8.3f}"
                     f"{figures['one_client_ms'][mode]:15.2f}")
    return lines
