# SPDX-License-Identifier: ISC
"""What it costs to have the queue in NATS too: alone, without waiting for it (async), and waiting (sync).

    smtp-source -> sluice -> smtp-sink
                     |
                  three nats-servers

In turn, several rounds. The servers share the processors with all else; what they spend is shown beside it.
"""

import os
import shutil
import statistics
import time

from ends import drive, make_relay, source, spent
from lab.nats import Nats
from lab.net import free_port

MODES = {"alone": "off", "async": "async", "sync": "sync"}


def _node(folder, nats, mode, sink_port):
    relay = make_relay(folder / mode, sink_port)
    relay.config.extra = (f'cluster {{ name = "{mode}" nats = "{nats.addresses}" replicate = "{MODES[mode]}" '
                          'replicate_timeout = 30s }\n')
    relay.write_config()
    relay.start()
    if MODES[mode] != "off":
        relay.wait_event("replica", state="complete", timeout=30)
    return relay


def _servers_spent(nats, before=0.0):
    return sum(spent(server.process.pid) for server in nats.servers) - before


def _round(relay, nats, sink_port, options):
    """Return messages a second, and milliseconds of processor time a message, of the relay and of the servers."""
    before, servers_before = spent(relay.process.pid), _servers_spent(nats)
    seconds = drive(relay.port, sink_port, options, options.relayed)
    time.sleep(1)  # what is behind is made up
    return (options.relayed / seconds, 1000 * spent(relay.process.pid, before) / options.relayed,
            1000 * _servers_spent(nats, servers_before) / options.relayed)


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
    rounds = {mode: {"rate": [], "ms": [], "servers_ms": []} for mode in MODES}
    relays = {}
    os.makedirs(folder / "nats")
    nats = Nats(folder / "nats")
    try:
        nats.start()
        for mode in MODES:
            relays[mode] = _node(folder, nats, mode, sink_port)
        for _ in range(options.rounds):
            for mode, relay in relays.items():
                for name, value in zip(("rate", "ms", "servers_ms"), _round(relay, nats, sink_port, options)):
                    rounds[mode][name].append(value)
        alone = {mode: _one_after_the_other(relay, sink_port, options) for mode, relay in relays.items()}
    finally:
        for relay in relays.values():
            relay.stop()
        nats.close()
        shutil.rmtree(folder / "nats", ignore_errors=True)
    median = {mode: {name: statistics.median(values) for name, values in of.items()} for mode, of in rounds.items()}
    return {"median": median, "one_client_ms": alone, "rounds": rounds}


def report(figures, options):
    """Return the lines of the table."""
    lines = [f"the queue in NATS too, three servers on this machine: {options.size} byte messages, {options.sessions} sessions"]
    lines.append(f"{'':10}{'messages/s':>12}{'of alone':>10}{'ms cpu/msg':>12}{'NATS ms/msg':>13}{'one client ms':>15}")
    rate = figures["median"]["alone"]["rate"]
    for mode, of in figures["median"].items():
        lines.append(f"{mode:10}{of['rate']:12.0f}{of['rate'] / rate:10.2f}{of['ms']:12.3f}{of['servers_ms']:13.3f}"
                     f"{figures['one_client_ms'][mode]:15.2f}")
    return lines
