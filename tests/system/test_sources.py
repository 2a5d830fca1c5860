# SPDX-License-Identifier: ISC
"""Sources: where connections come from, whose mail leaves from which, and what is done where one is refused or missing."""

import json
import time
import urllib.request

from lab.config import Config
from lab.net import free_port, wait_until
from lab.sink import Rule

ADDRESSES = {"a": "127.0.0.21", "b": "127.0.0.22"}
ABSENT = "192.0.2.10"  # of no machine (RFC 5737)
TENANTS = [f"tenant-{number}" for number in range(40)]  # of all of them one source has none on one day in 2^39


def _section(name, address=None, rest=""):
    return f'source "{name}" {{ address = {{ "{address or ADDRESSES[name]}" }}  helo = "out-{name}.example.org" {rest} }}\n'


class World:
    """A relay with a transport that has sources, and one sink behind it; clients name their flow."""

    def __init__(self, lab, *rules, uses="a, b", sections=None, **smtp):
        self.sink = lab.sink(*rules)
        self.http = free_port()
        config = Config(transports={"smtp": {"connection_max_messages": 1} | smtp}, queue={"minimal_backoff_time": "10m", "maximal_backoff_time": "20m"})
        config.routes["*"] = {"relay": [f"[{self.sink.address}]:{self.sink.port}"]}
        config.settings |= {"flow_header": "X-Flow", "http": f"127.0.0.1:{self.http}"}
        self.set(config, uses, sections)
        self.relay = lab.relay(config)

    @staticmethod
    def set(config, uses, sections=None):
        """Give the transport these sources."""
        config.transports["smtp"]["sources"] = uses.split(", ") if uses else []
        config.extra = sections if sections is not None else _section("a") + _section("b")

    def reload(self, uses, sections=None):
        self.set(self.relay.config, uses, sections)
        self.relay.write_config()
        done = self.relay.command("reload")
        assert done.returncode == 0, done.stderr

    def send(self, *flows):
        for flow in flows:
            self.relay.send(sender=f"{flow}@own.test", recipients=[f"{flow}@to.test"], content=f"X-Flow: {flow}\r\nSubject: one\r\n\r\nhello\r\n".encode())

    def came(self):
        """Where each message that was accepted came from: (flow, address, name in EHLO)."""
        def of(message):
            session = self.sink.sessions[message.session]
            hello = next(line for _, line in session.commands if line.startswith("EHLO"))
            return message.sender.split("@")[0], session.peer, hello.split(" ")[1]
        return [of(one) for one in self.sink.messages]

    def homes(self):
        """The source of each flow: flow -> set of addresses."""
        homes = {}
        for flow, address, _ in self.came():
            homes.setdefault(flow, set()).add(address)
        return homes

    def held(self):
        """The messages that wait for the rate of their source."""
        queued = [one["id"] for one in self.relay.events("queued")]
        return [word for word in queued if '"constraint":"source_rate"' in self.relay.command("explain", "--json", word).stdout]

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/metrics", timeout=60) as reply:
            return reply.read().decode()


def _today():
    """The day in UTC, by which a flow's source is drawn."""
    return int(time.time()) // 86400


def test_each_flow_keeps_to_one_source_whose_address_and_name_it_shows(lab):
    world, began = World(lab), _today()
    world.send(*TENANTS, *TENANTS)
    world.sink.wait_messages(2 * len(TENANTS))
    assert {(address, name) for _, address, name in world.came()} == {(ADDRESSES[one], f"out-{one}.example.org") for one in "ab"}
    homes = world.homes()
    world.relay.restart()
    world.send(*TENANTS)
    world.sink.wait_messages(3 * len(TENANTS))
    if began == _today():  # at midnight half of them move
        assert all(len(addresses) == 1 for addresses in homes.values()), homes
        assert world.homes() == homes  # nothing is remembered, and nothing moves

    sent = world.relay.events("sent")
    assert all(ADDRESSES[one["source"]] in world.homes()[one["flow"]] for one in sent)
    assert 'sluice_source_deliveries_total{result="sent",source="a"}' in world.metrics()


def test_where_none_is_named_nothing_is_said_of_it(lab):
    world = World(lab, uses="")
    world.send("one")
    world.sink.wait_messages(1)
    assert world.came() == [("one", "127.0.0.1", "relay.test")]
    assert world.relay.wait_event("sent").get("source") is None
    assert "from=" not in world.relay.command("dest", "list").stdout


def test_a_flow_has_sources_of_its_own(lab):
    world = World(lab, uses="a", sections=_section("a") + _section("b") + 'flow "special" { sources = { "b" } }\n')
    world.send("special", "usual", "special", "usual")
    world.sink.wait_messages(4)
    assert world.homes() == {"special": {ADDRESSES["b"]}, "usual": {ADDRESSES["a"]}}


def test_connections_are_of_one_source(lab):
    """Ten messages of two flows over connections that are kept: none of one flow on that of the other."""
    world = World(lab, uses="a", sections=_section("a") + _section("b") + 'flow "special" { sources = { "b" } }\n', connection_max_messages=1000)
    world.send(*["special", "usual"] * 10)
    world.sink.wait_messages(20)
    assert world.homes() == {"special": {ADDRESSES["b"]}, "usual": {ADDRESSES["a"]}}
    assert len(world.sink.sessions) < 20


def test_a_tls_session_is_resumed_from_the_source_that_has_it_only(lab, certificates):
    own = _section("a") + _section("b") + 'flow "special" { sources = { "b" } }\n'
    world = World(lab, uses="a", sections=own)
    world.sink.behaviour.tls = certificates.server_context("sink.test")
    world.relay.config.settings["workers"] = 1  # who keep the sessions
    world.relay.write_config()
    world.relay.restart()
    for number, flow in enumerate(("usual", "usual", "special"), 1):
        world.send(flow)
        world.sink.wait_messages(number)
    world.relay.wait_event("tls", count=3)
    assert [one.get("resumed") for one in world.relay.events("tls")] == [None, "yes", None]


def _refused_at(stage, reply, **more):
    """Rules of a host that refuses one address, at this stage; a pattern is searched for in the client's address at connect only."""
    return Rule(stage, reply, pattern=ADDRESSES["a"].replace(".", r"\."), **more)


def _both_used(world):
    world.send(*TENANTS)
    world.sink.wait_messages(len(TENANTS))
    world.relay.wait_event("done", count=len(TENANTS))


def test_a_source_that_is_turned_away_leaves_its_mail_to_the_other(lab):
    """5xx in the greeting for one address: all mail goes from the other, and no message has an attempt more."""
    world = World(lab, _refused_at("connect", f"554 5.7.1 [{ADDRESSES['a']}] is on our list", close=True))
    _both_used(world)
    assert set().union(*world.homes().values()) == {ADDRESSES["b"]}
    refused = world.relay.wait_event("source", state="refused")
    assert refused["source"] == "a" and "on our list" in refused["reply"]
    assert not world.relay.events("deferred") and not world.relay.events("bounced")
    assert {one["tries"] for one in world.relay.events("sent")} == {"1"}
    tried = sum(1 for session in world.sink.sessions if session.peer == ADDRESSES["a"])
    assert 1 <= tried <= 5  # those that were begun together, and none since
    listed = [json.loads(line) for line in world.relay.command("dest", "list", "--json").stdout.splitlines()]
    of = {one["source"]: one for one in listed if "source" in one}
    assert of["a"]["refused_in"] > 0 and of["b"]["refused_in"] == 0
    assert "source:      a, refused" in world.relay.command("dest", "show", of["a"]["site"]).stdout
    assert 'sluice_source_refusals_total{source="a"} 1' in world.metrics()


def test_a_source_that_is_turned_away_is_not_tried_after_a_restart(lab):
    world = World(lab, _refused_at("connect", f"554 5.7.1 [{ADDRESSES['a']}] is on our list", close=True))
    _both_used(world)
    world.relay.wait_event("source", state="refused", source="a")
    world.relay.stop()
    world.relay.start()
    tried = sum(1 for session in world.sink.sessions if session.peer == ADDRESSES["a"])
    world.send(*TENANTS)
    world.sink.wait_messages(2 * len(TENANTS))
    assert sum(1 for session in world.sink.sessions if session.peer == ADDRESSES["a"]) == tried
    listed = [json.loads(line) for line in world.relay.command("dest", "list", "--json").stdout.splitlines()]
    site = next(one for one in listed if one.get("source") == "a")
    assert site["refused_in"] > 0
    # Until the operator says so; then all that is its turn goes from there again.
    world.sink.behaviour.rules.clear()
    assert world.relay.command("dest", "reset", site["site"]).returncode == 0
    world.send(*TENANTS)
    world.sink.wait_messages(3 * len(TENANTS))
    assert ADDRESSES["a"] in set().union(*world.homes().values())


def test_route_says_which_sources_it_may_be(lab):
    world = World(lab, uses="a, b=3", sections=_section("a") + _section("b")
                  + 'transport "bulk" { }\nflow "news" { sources = { "b" } transport = "bulk" }\n')

    def route(*words):
        return world.relay.command("route", *words, "to@to.test").stdout

    began = _today()
    said = route("--from", "x@own.test")
    assert "sources a, b=3 of transport smtp; flow own.test has " in said
    today = json.loads(route("--from", "x@own.test", "--json"))
    assert today["sources"] == [{"source": "a", "weight": 1}, {"source": "b", "weight": 3}]
    world.relay.send(sender="x@own.test", recipients=["x@to.test"])
    went = world.relay.wait_event("sent", flow="own.test")["source"]
    if began == _today():
        assert f"has {went} today" in said and today["source_today"] == went
    said = route("--flow", "news")
    assert "transport bulk, of flow news" in said and "sources b of flow news; flow news has b today" in said
    assert json.loads(route("--flow", "news", "--json"))["transport"] == "bulk"


def test_mail_is_chosen_by_the_site_as_it_is_listed(lab):
    world = World(lab, Rule("rcpt", "451 4.3.0 come again"), uses="a", sections=_section("a"))
    world.send("one")
    world.relay.wait_event("deferred")
    site = f"[{world.sink.address}]:{world.sink.port}"
    listed = json.loads(world.relay.command("dest", "list", "--json").stdout)["site"]
    assert listed == f"{site} from=a"
    for name in (listed, f"smtp {listed}", site):
        assert len(world.relay.command("queue", "list", "--json", "--site", name).stdout.splitlines()) == 1, name
    assert not world.relay.command("queue", "list", "--json", "--site", f"{site}1 from=a").stdout


def test_with_one_source_mail_for_who_turns_it_away_waits(lab):
    """The control of the test before: without another there is nowhere to go."""
    world = World(lab, _refused_at("connect", f"554 5.7.1 [{ADDRESSES['a']}] is on our list", close=True), uses="a", site_patience="0s")
    world.send("one")
    assert "on our list" in world.relay.wait_event("deferred")["reply"]
    assert not world.sink.messages


def test_all_that_refuse_one_address_for_good_take_mail_from_the_other(lab):
    """550 to MAIL that names the address: a bounce, were there no other."""
    world = World(lab, Rule("mail", f"550 5.7.1 Service unavailable; client [{ADDRESSES['a']}] blocked using a list", client=ADDRESSES["a"]))
    _both_used(world)
    assert set().union(*world.homes().values()) == {ADDRESSES["b"]}
    assert not world.relay.events("bounced") and not world.relay.events("deferred")


def test_where_each_is_refused_for_good_the_sender_hears_of_it(lab):
    """The control of the test before: it is not tried for ever."""
    world = World(lab, Rule("mail", "550 5.7.1 Service unavailable; client host blocked using a list"))
    world.send("one")
    assert "blocked using a list" in world.relay.wait_event("bounced")["reply"]
    assert {session.peer for session in world.sink.sessions} == set(ADDRESSES.values())


def test_a_refusal_for_now_that_names_the_address_moves_the_mail(lab):
    world = World(lab, Rule("mail", f"451 4.7.1 [{ADDRESSES['a']}] has a poor reputation, try again later", client=ADDRESSES["a"]))
    _both_used(world)
    assert set().union(*world.homes().values()) == {ADDRESSES["b"]}
    assert not world.relay.events("deferred")


def test_a_refused_source_is_tried_again(lab):
    gone = Rule("connect", "554 5.7.1 poor reputation", pattern=ADDRESSES["a"].replace(".", r"\."), close=True)
    world = World(lab, gone)
    world.relay.config.queue |= {"minimal_backoff_time": "1s", "maximal_backoff_time": "2s"}
    world.reload("a, b")
    _both_used(world)
    world.sink.behaviour.rules.clear()
    seen = []

    def is_back():
        seen.append(1)
        world.send(*TENANTS)
        world.sink.wait_messages(len(TENANTS) * (1 + len(seen)))
        return world.relay.events("source", state="back", source="a")

    wait_until(is_back, what="the source to be used again")
    assert set().union(*world.homes().values()) == set(ADDRESSES.values())


def test_an_address_that_the_machine_lacks_is_said_once_and_hurts_nobody(lab):
    world = World(lab, sections=_section("a", ABSENT) + _section("b"))
    _both_used(world)
    world.send(*TENANTS)
    world.sink.wait_messages(2 * len(TENANTS))
    assert set().union(*world.homes().values()) == {ADDRESSES["b"]}
    missing = world.relay.events("source", state="missing")
    assert [one["address"] for one in missing] == [ABSENT]
    assert not world.relay.events("deferred") and not world.relay.events("host", state="out")
    rows = [json.loads(line) for line in world.relay.command("dest", "list", "--json").stdout.splitlines()]
    assert all(host["failures"] == 0 for row in rows for host in row.get("hosts", []))
    checked = world.relay.command("check")
    assert checked.returncode == 0 and f'source "a": this machine does not have {ABSENT}' in checked.stderr


def test_with_no_other_mail_waits_until_the_address_is_there(lab):
    world = World(lab, uses="a", sections=_section("a", ABSENT), site_patience="0s")
    world.send("one")
    late = world.relay.wait_event("deferred")
    assert late["reply"] == f"this machine lacks {ABSENT}, the address of source a" and late["tries"] == "0"
    world.reload("a", _section("a"))
    world.relay.command("queue", "flush", "--all")
    world.sink.wait_messages(1)
    assert world.homes() == {"one": {ADDRESSES["a"]}}
    assert not world.relay.events("bounced")


def test_mail_that_waits_follows_a_reload(lab):
    """A source that is removed keeps none of it; nor does one that has come take what has another."""
    world = World(lab, uses="a", sections=_section("a") + _section("b"))
    world.relay.command("dest", "suspend", "127.0.0.1")
    world.reload("a", _section("a", rest='rate = "1/h"') + _section("b"))
    world.send("first")
    world.relay.command("dest", "resume", "127.0.0.1")
    world.relay.command("queue", "flush", "--all")
    world.sink.wait_messages(1)
    world.send("second", "third")
    wait_until(lambda: len(world.held()) == 2, what="two messages to wait for the rate")
    world.reload("b", _section("b"))
    world.sink.wait_messages(3)
    homes = world.homes()
    assert homes["second"] == homes["third"] == {ADDRESSES["b"]}
    assert not world.relay.events("deferred", to="third@to.test")


def test_a_source_has_a_rate_over_all_that_leaves_from_it(lab):
    world = World(lab, sections=_section("a", rest='rate = "1/h"') + _section("b"), uses="a")
    world.send("one", "two", "three")
    world.sink.wait_messages(1)
    wait_until(lambda: len(world.held()) == 2, what="two messages to wait for the rate")
    assert len(world.sink.messages) == 1
    assert "the rate of its source" in world.relay.command("explain", world.held()[0]).stdout
    world.reload("a", _section("a") + _section("b"))
    world.sink.wait_messages(3)


def test_what_does_not_fit_together_is_said_with_its_line(lab):
    relay = World(lab).relay
    with open(relay.config_path, "a", encoding="utf-8") as stream:
        stream.write('transport "more" {\n sources = { "a" }\n source_address = "127.0.0.9"\n}\n')
    with open(relay.config_path, encoding="utf-8") as stream:
        line = len(stream.read().splitlines()) - 2
    checked = relay.command("check")
    assert checked.returncode != 0
    assert f"{relay.config_path}:{line}: " in checked.stderr + checked.stdout
