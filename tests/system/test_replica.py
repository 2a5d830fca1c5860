# SPDX-License-Identifier: ISC
"""cluster { replicate }: what three real NATS servers have of a queue; and what becomes of mail while they are away."""

import json
import signal
import time

import pytest

from lab.config import Config
from lab.load import Load
from lab.nats import Nats
from lab.net import wait_until
from lab.relay import Relay
from lab.sink import Rule
from lab.smtp import Client

LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
NODE = "node1"


@pytest.fixture(name="nats", scope="module")
def fixture_nats(module_lab):
    """Three servers, for all tests that end none of them."""
    nats = Nats(module_lab.folder("nats"))
    module_lab.callback(nats.close)
    return nats.start()


def config_of(nats, sink, replicate="sync", name=NODE, **settings):
    """Return the configuration of a node."""
    lines = {"name": name, "nats": nats.addresses, "replicate": replicate, "replicate_timeout": "1s"} | settings
    text = "".join(f"    {key} = {json.dumps(value)}\n" for key, value in lines.items())
    return Config(queue=LATER, extra=f"cluster {{\n{text}}}\n").route_all_to(sink.port)


def metric(relay, name):
    """Return what the relay counts."""
    return json.loads(relay.command("stats", "--json").stdout).get(name, 0)


def ids_of(relay):
    """Return the ids of a queue, of a relay that runs or not."""
    lines = relay.command("queue", "list", "--json").stdout.splitlines()
    return {json.loads(line)["id"] for line in lines}


def replicated(lab, nats, name=NODE):
    """Return a relay that does not run, whose queue is what the stream says."""
    relay = Relay(lab.folder("rebuilt"))
    nats.rebuild(name, relay.spool)
    with open(f"{relay.spool}/format", "w", encoding="ascii") as stream:
        stream.write("sluice spool 2\n")
    return relay


def test_each_250_is_in_the_stream(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = lab.relay(config_of(nats, sink, name="each"))
    load = Load(relay.port, 200, sessions=10, size=lambda number: 300000 if number % 50 == 7 else 500)
    load.wait_acknowledged(200)
    relay.kill()
    load.close()
    rebuilt = replicated(lab, nats, "each")
    assert set(load.acknowledged.values()) <= ids_of(rebuilt)
    done = rebuilt.command("queue", "check")
    assert done.returncode == 0, done.stdout
