# SPDX-License-Identifier: ISC
"""Receivers with many domains, known by the names of their mail hosts: by the records of a real name server."""

import json
import urllib.request

from lab.config import Config
from lab.net import free_port, wait_until

A, B = "127.0.0.2", "127.0.0.3"
ZONE = f"""
many MX 10 a.mx
more MX 10 a.mx
plain MX 10 b
named MX 10 a.mx
a.mx A {A}
b A {B}
"""


class World:
    """Mail for many.dest.test, more.dest.test and named.dest.test is for host A of the provider "big", that for plain.dest.test for host B of nobody.
    Transport smtp has one port, transport slow another: at either port somebody listens on both."""

    def __init__(self, lab, extra):
        nsd = lab.nsd({"dest.test": ZONE})
        self.ports = {"smtp": free_port(), "slow": free_port()}
        self.sinks = {(host, name): lab.sink(address=host, port=port) for host in (A, B) for name, port in self.ports.items()}
        # A site that has no connection and no mail is forgotten soon.
        config = Config(transports={name: {"port": port, "connection_idle_timeout": "1h"} for name, port in self.ports.items()})
        config.resolve_with(nsd)
        config.dns |= {"allow_loopback": True, "timeout": "3s", "tries": 1}
        config.routes["named.dest.test"] = {"transport": "smtp"}
        self.http = free_port()
        config.settings["http"] = f"127.0.0.1:{self.http}"
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

    assert "transport slow, of provider big" in world.relay.command("route", "to@many.dest.test").stdout
    told = json.loads(world.relay.command("route", "--json", "to@many.dest.test").stdout)
    assert told["transport"] == "slow" and told["provider"] == "big"
    assert told["next_hops"][0]["hosts"][0]["port"] == world.ports["slow"]
    told = json.loads(world.relay.command("route", "--json", "to@named.dest.test").stdout)
    assert told["transport"] == "smtp" and told["provider"] is None
    assert told["next_hops"][0]["hosts"][0]["provider"] == "big"


def test_route_asks_again_for_each_member_of_an_alias(lab):
    """Each of them whose provider wants another transport has other hosts there, or the same at another port."""
    world = World(lab, """provider "big" { mx = { ".mx.dest.test" }  transport = "slow" }
        alias "team@own.test" { to = { "a@many.dest.test", "b@plain.dest.test", "c@more.dest.test" } }""")
    said = world.relay.command("route", "team@own.test").stdout
    assert said.count("transport slow, of provider big") == 2, said
    assert said.count(f"[{A}]:{world.ports['slow']}") == 2, said


def test_explain_names_the_transport_that_a_provider_has_chosen(lab):
    """Right after its mail: where a domain's mail goes by its MX is known for a while."""
    world = World(lab, 'provider "big" { mx = { ".mx.dest.test" }  transport = "slow" }')
    world.relay.send(sender="from@own.test", recipients=["to@many.dest.test"])
    world.relay.wait_event("done")
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


def _sites(relay, *words):
    return {one["site"]: one for one in map(json.loads, relay.command("dest", "list", "--json", *words).stdout.splitlines()) if "site" in one}


def test_destinations_of_a_provider_are_listed_suspended_and_reset_together(lab):
    world = World(lab, 'provider "big" { mx = { ".mx.dest.test" } }')
    relay = world.relay
    for domain in "many", "plain":
        relay.send(sender="from@own.test", recipients=[f"to@{domain}.dest.test"])
    relay.wait_event("done", count=2)
    assert [one["provider"] for one in _sites(relay, "--provider", "big").values()] == ["big"]
    assert len(_sites(relay)) == 2
    assert "provider:    big" in relay.command("dest", "show", "--provider", "big").stdout
    said = relay.command("dest", "list", "--provider", "small")
    assert said.returncode != 0 and "there is no such provider" in said.stderr
    assert relay.command("dest", "suspend", "--provider", "big", "a.mx.dest.test").returncode != 0

    said = relay.command("dest", "suspend", "--provider", "big", "--for", "1h").stdout
    assert said.startswith("provider big suspended until "), said
    relay.send(sender="from@own.test", recipients=["to@many.dest.test"])
    relay.wait_event("deferred", to="to@many.dest.test")
    assert "suspended: provider big until " in relay.command("dest").stdout
    relay.restart()
    assert "suspended: provider big until " in relay.command("dest").stdout
    assert relay.command("dest", "resume", "--provider", "big").stdout == "provider big resumed\n"
    relay.command("queue", "flush", "--all")
    wait_until(lambda: world.count(A, "smtp") == 2, what="the mail that waited")
    assert relay.command("dest", "reset", "--provider", "big").stdout == "provider big reset\n"
    with urllib.request.urlopen(f"http://127.0.0.1:{world.http}/metrics", timeout=60) as reply:
        metrics = reply.read().decode()
    assert 'sluice_provider_deliveries_total{result="sent",provider="big"} 1' in metrics, metrics


def test_a_suspension_ends_by_itself(lab):
    relay = World(lab, "").relay
    said = relay.command("dest", "suspend", "plain.dest.test", "--for", "12s").stdout
    assert said.startswith("plain.dest.test suspended until "), said
    relay.send(sender="from@own.test", recipients=["to@plain.dest.test"])
    held = relay.wait_event("deferred", to="to@plain.dest.test")
    assert "suspended by the operator until 2" in held["reply"]
    assert "suspended" in relay.command("explain", "plain.dest.test").stdout
    resumed = relay.wait_event("site", state="resumed")
    assert resumed["reason"] == "its time is over"
    relay.wait_event("sent", to="to@plain.dest.test")
    assert "suspended:" not in relay.command("dest").stdout
    for wrong in "0s", "5", "-1h", "400d", "soon":
        assert relay.command("dest", "suspend", "plain.dest.test", "--for", wrong).returncode == 2, wrong
    assert relay.command("dest", "resume", "plain.dest.test", "--for", "1h").returncode == 2
    assert relay.command("user", "suspend", "someone", "--for", "1h").returncode == 2
