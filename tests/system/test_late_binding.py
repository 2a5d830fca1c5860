# SPDX-License-Identifier: ISC
"""Hosts that take so many connections and no more, each in its own way: it must cost no message anything."""

import collections
import itertools
import json
import socket
import time

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.load import Load
from lab.net import free_port, wait_until

MESSAGES = 300
INITIAL = 5  # the window of a new site
AT_ONCE = 50  # sessions that hand it over, so that it is there before it is gone, however slow the disk


def _windows_until_done(relay, count):
    """Look at the window until so many messages are done; return what was seen, in order."""
    seen = []
    while len(relay.events("done")) < count:
        rows = map(json.loads, relay.command("dest", "list", "--json").stdout.splitlines())
        seen += [row for row in rows if "site" in row]
        time.sleep(0.1)
    return seen


def _average_busy(seen):
    """Return how many places were used, on average, while mail waited: all of them, and all of the time."""
    busy = [row["busy"] for row in seen if row["waiting"] > 0]
    return sum(busy) / len(busy)


# Fewer places than the window has at first, as many, and so many that it must grow to use them.
@pytest.mark.plain_only
@pytest.mark.parametrize(
    "kind, places",
    [("connection_limit", 3), ("connection_limit", 5), ("connection_limit", 12), ("greeting_limit", 5), ("accept_limit", 5)],
)
def test_a_limit_of_connections_costs_nothing_but_the_window(lab, kind, places):
    sink = lab.sink(Rule("end", delay=0.15 if places > INITIAL else 0.05), extensions=(), **{kind: places})
    limits = {
        "destination_concurrency_limit": 20,
        "host_connection_limit": 20,
        "greeting_timeout": "3s",
        "connect_timeout": "3s",
        "destination_recipient_limit": 1,
    }
    relay = lab.relay(Config(transports={"smtp": limits}).route_all_to(sink.port), patient=True)
    Load(relay.port, MESSAGES, sessions=AT_ONCE).finish()
    # Of the first connections one may be turned away before another is greeted: then the host is out until it is.
    seen = list(itertools.dropwhile(lambda row: row["busy"] == 0, _windows_until_done(relay, MESSAGES)))
    assert not relay.events("deferred") and not relay.events("bounced")
    assert len(sink.messages) == MESSAGES
    by_session = collections.Counter(one.session for one in sink.messages)
    busiest = by_session.most_common(places)
    assert len(busiest) == places and busiest[-1][1] > MESSAGES / places / 4, by_session
    assert max(row["busy"] for row in seen) == places
    assert places * 0.6 <= _average_busy(seen) <= places, [row["busy"] for row in seen]
    # It grows no further than what is in use and the initial window allow.
    assert places - 1 <= seen[-1]["window"] <= places + max(places, INITIAL) + 1, [row["window"] for row in seen]
    assert all(row["state"] in ("alive", "limited") for row in seen)
    shown = relay.command("dest", "show").stdout
    assert "window:" in shown and "last failure:" in shown


def test_a_black_hole_beside_a_good_host_delays_nothing_and_is_avoided(lab):
    port = free_port()
    sink = lab.sink(address="127.0.0.3", port=port)
    hole = lab.sink(address="127.0.0.2", port=port, accept_limit=0)
    nsd = lab.nsd({"dest.test": "@ MX 10 mx\nmx A 127.0.0.2\nmx A 127.0.0.3"})
    fill = [socket.socket() for _ in range(4)]
    for one in fill:  # they take up the backlog
        one.setblocking(False)
        one.connect_ex((hole.address, port))
    config = Config(transports={"smtp": {"port": port, "connection_idle_timeout": "50ms", "connect_timeout": "5m"}})
    config.resolve_with(nsd)
    config.dns |= {"allow_loopback": True}
    relay = lab.relay(config)
    for number in range(12):  # which is tried first is chance; both are soon
        relay.send()
        sink.wait_messages(number + 1)  # in a minute at most, of five that the time-out is
        wait_until(lambda: not sink.connections, what="the connection to be closed, and the next message to need one")
    assert not relay.events("deferred")
    rows = json.loads(relay.command("dest", "list", "--json").stdout.splitlines()[0])
    state = {host["address"]: host["state"] for host in rows["hosts"]}
    assert state["127.0.0.2"] == "slow"
    for one in fill:
        one.close()


def test_each_family_has_a_source_address_of_its_own(lab):
    sinks = [lab.sink(), lab.sink(address="::1")]
    settings = {"source_address": "127.0.0.7, ::1"}
    config = Config(transports={"smtp": settings})
    for sink, name in zip(sinks, ("four.test", "six.test")):
        config.routes[name] = {"relay": [f"[{sink.address}]:{sink.port}"]}
    relay = lab.relay(config)
    relay.send(recipients=["to@four.test"])
    relay.send(recipients=["to@six.test"])
    assert sinks[0].wait_messages(1) and sinks[1].wait_messages(1)
    assert [sink.sessions[0].peer for sink in sinks] == ["127.0.0.7", "::1"]
    relay.config.transports["smtp"]["source_address"] = "127.0.0.7, 127.0.0.8"
    relay.write_config()
    assert relay.command("check").returncode == 1


def _hellos(sink):
    return [line for session in sink.sessions for _, line in session.commands if line.startswith("EHLO")]


def test_a_transport_says_its_own_name(lab):
    """Others say the name of the relay; a reload changes it for the next connection."""
    sinks = {name: lab.sink() for name in ("own", "smtp")}
    config = Config(transports={"smtp": {"connection_max_messages": 1}, "own": {"like": "smtp", "helo": "out.example.org"}})
    for name, sink in sinks.items():
        config.routes[f"{name}.test"] = {"relay": [f"[{sink.address}]:{sink.port}"], "transport": name}
    relay = lab.relay(config)
    for name, sink in sinks.items():
        relay.send(recipients=[f"to@{name}.test"])
        sink.wait_messages(1)
    assert _hellos(sinks["own"]) == ["EHLO out.example.org"]
    assert _hellos(sinks["smtp"]) == ["EHLO relay.test"]
    relay.config.transports["own"]["helo"] = "[192.0.2.10]"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(recipients=["to@own.test"])
    sinks["own"].wait_messages(2)
    assert _hellos(sinks["own"])[-1] == "EHLO [192.0.2.10]"
