# SPDX-License-Identifier: ISC
"""Receivers with many domains, known by the names of their mail hosts: by the records of a real name server."""

import json

from lab.config import Config
from lab.net import free_port

A, B = "127.0.0.2", "127.0.0.3"
ZONE = f"""
many MX 10 a.mx
plain MX 10 b
named MX 10 a.mx
a.mx A {A}
b A {B}
"""


class World:
    """Mail for many.dest.test and named.dest.test is for host A of the provider "big", that for plain.dest.test for host B of nobody.
    Transport smtp has one port, transport slow another: at either port somebody listens on both."""

    def __init__(self, lab, extra):
        nsd = lab.nsd({"dest.test": ZONE})
        self.ports = {"smtp": free_port(), "slow": free_port()}
        self.sinks = {(host, name): lab.sink(address=host, port=port) for host in (A, B) for name, port in self.ports.items()}
        config = Config(transports={name: {"port": port} for name, port in self.ports.items()})
        config.resolve_with(nsd)
        config.dns |= {"allow_loopback": True, "timeout": "3s", "tries": 1}
        config.routes["named.dest.test"] = {"transport": "smtp"}
        config.extra = extra
        self.relay = lab.relay(config)

    def count(self, host, transport):
        """Return how many messages came there."""
        return len(self.sinks[host, transport].messages)


def test_a_provider_chooses_the_transport(lab):
    world = World(lab, 'provider "big" { mx = { ".mx.dest.test" }  transport = "slow" }')
    for domain in "many", "plain", "named", "many":
        world.relay.send(sender="from@own.test", recipients=[f"to@{domain}.dest.test"])
    world.relay.wait_event("done", count=4)
    assert world.count(A, "slow") == 2
    assert world.count(B, "smtp") == 1
    assert world.count(A, "smtp") == 1
    assert {event["transport"] for event in world.relay.events("sent", to="to@many.dest.test")} == {"slow"}

    assert f"transport slow, of provider big" in world.relay.command("route", "to@many.dest.test").stdout
    told = json.loads(world.relay.command("route", "--json", "to@many.dest.test").stdout)
    assert told["transport"] == "slow" and told["provider"] == "big"
    assert told["next_hops"][0]["hosts"][0]["port"] == world.ports["slow"]
    told = json.loads(world.relay.command("route", "--json", "to@named.dest.test").stdout)
    assert told["transport"] == "smtp" and told["provider"] is None
    assert told["next_hops"][0]["hosts"][0]["provider"] == "big"
    assert "(slow, of big)" in world.relay.command("explain", "many.dest.test").stdout


def test_a_transport_that_is_not_there_is_said_with_its_line(lab):
    relay = World(lab, 'provider "big" { mx = { ".mx.dest.test" } }').relay
    with open(relay.config_path, "a", encoding="utf-8") as stream:
        stream.write('provider "more" {\n mx = { ".more.test" }\n transport = "none"\n}\n')
    with open(relay.config_path, encoding="utf-8") as stream:
        line = len(stream.read().splitlines()) - 1
    checked = relay.command("check")
    assert checked.returncode != 0
    assert f'{relay.config_path}:{line}: provider "more": there is no transport "none"' in checked.stderr + checked.stdout
