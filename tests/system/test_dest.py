# SPDX-License-Identifier: ISC
"""The destination database as the operator sees it, and what outlives the process."""

import json
import re
import pathlib
import threading

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import blackhole, free_port, wait_until

SOON = {"minimal_backoff_time": "300ms", "maximal_backoff_time": "400ms"}


KEPT = {"connection_idle_timeout": "1h"}  # a site that has no connection and no mail is forgotten soon


def _relay(lab, port, **settings):
    config = Config(queue=settings.pop("queue", SOON), transports={"smtp": KEPT | settings})
    return lab.relay(config.route_all_to(port))


def _sites(relay):
    out = relay.command("dest", "list", "--json").stdout
    return {row["site"]: row for row in map(json.loads, out.splitlines()) if "site" in row}


def test_a_site_is_listed_with_its_hosts(lab):
    sink = lab.sink()
    relay = _relay(lab, sink.port)
    relay.send()
    sink.wait_messages(1)
    name = f"[127.0.0.1]:{sink.port}"
    site = _sites(relay)[name]
    assert site["state"] == "alive" and site["window"] >= 5
    assert site["hosts"][0]["address"] == "127.0.0.1"
    assert site["hosts"][0]["state"] in ("active", "idle", "closed")
    line = relay.command("dest").stdout.splitlines()
    assert re.match(r"SITE +TRANSPORT +STATE +CONNECTIONS, MAIL, \(LAST FAILURE\)$", line[0])
    assert line[1].startswith(name + " transport=smtp alive window=")
    assert line[0].index("TRANSPORT") == line[1].index("transport=") and line[0].index("STATE") == line[1].index("alive")
    assert line[2].startswith(f"  127.0.0.1[127.0.0.1]:{sink.port} ")
    shown = relay.command("dest", "show", name).stdout
    assert "window:" in shown and "connections:" in shown
    assert "host:" in relay.command("dest", "show", "127.0.0.1").stdout


def test_what_is_not_known_is_not_found(lab):
    relay = _relay(lab, free_port())
    for verb in ("show", "list", "resume", "reset"):
        assert relay.command("dest", verb, "nobody.test").returncode == 1
    for verb in ("suspend", "resume", "reset"):
        assert relay.command("dest", verb).returncode == 2
    assert relay.command("dest", "turn").returncode == 1
    assert relay.command("dest", "--help").returncode == 0
    relay.stop()
    assert relay.command("dest").returncode == 75


def test_what_can_be_no_destination_is_not_said_to_be_suspended(lab):
    """Its mail would go on; a name that may come up, such as that of a site with a login, is taken beforehand."""
    sink = lab.sink()
    relay = _relay(lab, sink.port)
    for name in ("*", ".dest.test", "@dest.test", "to@dest.test", "<dest.test>"):
        for verb in ("suspend", "reset"):
            done = relay.command("dest", verb, name)
            assert (done.returncode, done.stdout) == (2, "") and f"{name} is no site, no host and no domain" in done.stderr
    for name in ("[127.0.0.1]:587 as to@dest.test", "unix:/run/to@dest/lmtp", "[192.0.2.1]:25", "other.test"):
        assert relay.command("dest", "suspend", name).stdout == f"{name} suspended\n"
        assert relay.command("dest", "resume", name).returncode == 0
    relay.send(recipients=["to@dest.test"])
    sink.wait_messages(1)


def test_nothing_is_delivered_to_a_suspended_site_until_it_is_resumed(lab):
    sink = lab.sink()
    relay = _relay(lab, sink.port)
    name = f"[127.0.0.1]:{sink.port}"
    relay.send()
    sink.wait_messages(1)
    assert relay.command("dest", "suspend", name).returncode == 0
    wait_until(lambda: sink.connections == 0)
    relay.send()
    relay.wait_event("deferred", dsn="4.3.2")
    assert "suspended" in relay.command("queue", "list").stdout
    assert _sites(relay)[name]["state"] == "suspended"
    relay.restart()
    assert f"suspended: {name}" in relay.command("dest").stdout
    relay.wait_event("deferred", count=3, dsn="4.3.2")
    relay.kill()
    relay.start()
    relay.wait_event("deferred", count=5, dsn="4.3.2")
    assert len(sink.messages) == 1
    assert relay.command("dest", "resume", name).returncode == 0
    sink.wait_messages(2)
    assert "suspended" not in relay.command("dest").stdout


@pytest.mark.parametrize("what", ["site", "host"])
@pytest.mark.parametrize("how", ["resumed", "over"])
def test_mail_that_a_suspension_kept_comes_at_its_end_though_the_relay_was_restarted(lab, what, how):
    """And nothing else: what its host has put off waits for its own time."""
    sink = lab.sink(Rule("rcpt", "451 4.7.1 greylisted", pattern="^later"))
    relay = _relay(lab, sink.port, queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    relay.send(recipients=["later@dest.test"])
    relay.wait_event("deferred", dsn="4.7.1")
    name = f"[127.0.0.1]:{sink.port}" if what == "site" else "127.0.0.1"
    relay.command("dest", "suspend", name, *(["--for", "4s"] if how == "over" else []))
    for _ in range(3):
        relay.send()
    relay.wait_event("deferred", count=3, dsn="4.3.2")
    assert len(sink.messages) == 0
    relay.restart()
    if how == "resumed":
        assert relay.command("dest", "resume", name).returncode == 0
    sink.wait_messages(3)
    assert len(relay.events("deferred", dsn="4.7.1")) == 1


def test_a_suspended_host_is_passed_over(lab):
    port = free_port()
    sinks = [lab.sink(address=address, port=port) for address in ("127.0.0.2", "127.0.0.3")]
    config = Config(queue=SOON)
    config.routes["*"] = {"relay": [f"[127.0.0.2]:{port}", f"[127.0.0.3]:{port}"]}
    relay = lab.relay(config)
    relay.send()
    sinks[0].wait_messages(1)
    assert relay.command("dest", "suspend", f"127.0.0.2:{port}").returncode == 0
    relay.send()
    sinks[1].wait_messages(1)
    assert relay.command("dest", "suspend", "127.0.0.3").returncode == 0
    relay.send()
    relay.wait_event("deferred", dsn="4.3.2")
    assert relay.command("dest", "resume", "127.0.0.2").returncode == 0
    sinks[0].wait_messages(2)


def test_a_dead_host_is_remembered_through_a_restart_and_a_reset_forgets_it(lab):
    port = free_port()
    relay = _relay(lab, port, queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    relay.send()
    relay.wait_event("deferred")
    relay.restart()
    text = relay.command("dest").stdout
    assert re.search("(out for|retry)", text) and re.search("failures=[1-9]", text) and "refused" in text
    assert relay.command("dest", "reset", f"127.0.0.1:{port}").returncode == 0
    assert "refused" not in relay.command("dest").stdout
    sink = lab.sink(port=port)
    relay.send()
    sink.wait_messages(1)
    host = _sites(relay)[f"[127.0.0.1]:{port}"]["hosts"][0]
    assert host["failures"] == 0 and host["last_failure"] is None


def test_a_damaged_file_is_put_aside_and_hosts_are_tried_anew(lab):
    port = free_port()
    relay = _relay(lab, port, queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    relay.send()
    relay.wait_event("deferred")
    relay.stop()
    file = pathlib.Path(relay.spool) / "destdb"
    good = file.read_bytes()
    file.write_bytes(good.replace(b"failures=", b"failures-"))
    sink = lab.sink(port=port)
    relay.start()
    relay.wait_event("destdb")
    assert file.with_suffix(".bad").exists()
    relay.send()
    sink.wait_messages(1)


def test_broken_tls_is_not_tried_again_soon(lab):
    context = lab.certificates.server_context("sink.test")
    sink = lab.sink(Rule("starttls", "454 4.7.0 not now"), tls=context)
    relay = _relay(lab, sink.port, connection_idle_timeout="100ms")
    relay.send()
    sink.wait_messages(1)
    relay.restart()
    relay.send()
    sink.wait_messages(2)
    tried = [session for session in sink.sessions if "STARTTLS" in session.verbs()]
    assert len(tried) == 1
    assert "broken" in relay.command("dest", "show").stdout


def test_the_operator_is_told_what_is_known_of_a_host(lab):
    refusing = free_port()
    busy = lab.sink(Rule("connect", "421 4.3.2 too busy"))
    doubtful = lab.sink(Rule("end", "", close=True))
    config = Config(transports={"smtp": {"connect_timeout": "1s", "connection_attempt_delay": "50ms"}})
    with blackhole() as hole:
        for name, port in (("refused", refusing), ("busy", busy.port), ("doubt", doubtful.port), ("hole", hole)):
            config.routes[f"{name}.test"] = {"relay": [f"[127.0.0.1]:{port}"]}
        relay = lab.relay(config)
        for name in config.routes:
            relay.send(recipients=[f"to@{name}"])
        relay.wait_event("deferred", count=3)
        relay.wait_event("in_doubt")
        show = lambda port: relay.command("dest", "show", f"127.0.0.1:{port}").stdout
        host = lambda port: json.loads(relay.command("dest", "show", "--json", f"127.0.0.1:{port}").stdout)
        wait_until(lambda: "no answer in time" in show(hole))
        assert "slow:        to connect" in show(hole) and host(hole)["slow_for"] > 500
    assert host(refusing)["last_failure"]["code"] is None
    assert "refused the connection" in show(refusing) and re.search("state:       (out|retry)", show(refusing))
    assert "said 421 4.3.2 too busy" in show(busy.port) and host(busy.port)["last_failure"]["code"] == 421
    assert "in doubt:    1" in show(doubtful.port) and host(doubtful.port)["in_doubt"] == 1
    assert host(busy.port)["in_doubt"] == 0 and host(busy.port)["failures"] >= 1


def test_the_depth_that_a_host_has_earned_outlives_a_restart_until_it_is_reset(lab):
    sink = lab.sink()
    relay = _relay(lab, sink.port)
    with relay.client() as client:
        client.greet()
        for number in range(10):
            client.send_mail(f"from{number}@sender.test", ["to@dest.test"])
    sink.wait_messages(10)
    relay.wait_event("done", count=10)
    name = f"[127.0.0.1]:{sink.port}"
    earned = _sites(relay)[name]["hosts"][0]["depth"]
    assert earned > 1
    relay.restart()
    rows = map(json.loads, relay.command("dest", "list", "127.0.0.1", "--json").stdout.splitlines())
    assert [row["depth"] for row in rows if "host" in row] == [earned]
    assert relay.command("dest", "reset", "127.0.0.1").returncode == 0
    said = relay.command("dest", "show", "127.0.0.1")
    assert "pipeline:    1 deep" in said.stdout or "no such site, host or domain" in said.stderr  # of whom nothing is known is forgotten


def test_a_domain_is_suspended_before_there_is_any_mail_and_resumed(lab):
    sink = lab.sink()
    relay = _relay(lab, sink.port)
    done = relay.command("dest", "suspend", "later.test")
    assert (done.returncode, done.stdout) == (0, "later.test suspended\n")
    assert relay.wait_event("site", state="suspended")["site"] == "later.test"
    relay.send(recipients=["to@later.test"])
    relay.send(recipients=["to@now.test"])
    assert sink.wait_messages(1)[0].recipients == ["to@now.test"]
    relay.wait_event("deferred")
    held = relay.events("deferred")[0]
    assert held["to"] == "to@later.test" and held["tries"] == "0" and "suspended by the operator" in held["reply"]
    relay.restart()
    relay.send(recipients=["other@later.test"])
    relay.wait_event("deferred", count=2)
    assert relay.command("dest", "resume", "later.test").returncode == 0
    assert relay.wait_event("site", state="resumed")["site"] == "later.test"
    assert {one.recipients[0] for one in sink.wait_messages(3)} == {"to@now.test", "to@later.test", "other@later.test"}


def test_a_domain_that_is_resumed_while_the_message_is_with_another_host_gets_it_behind_that(lab):
    gate = threading.Event()
    slow, fast = lab.sink(Rule("end", gate=gate)), lab.sink()
    lab.callback(gate.set)
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    config.routes["slow.test"] = {"relay": [f"[127.0.0.1]:{slow.port}"]}
    relay = lab.relay(config.route_all_to(fast.port))
    assert relay.command("dest", "suspend", "held.test").returncode == 0
    relay.send(recipients=["a@held.test", "b@slow.test"])
    relay.wait_event("deferred", to="a@held.test")
    slow.wait_messages(1)
    assert relay.command("dest", "resume", "held.test").returncode == 0
    gate.set()
    assert fast.wait_messages(1)[0].recipients == ["a@held.test"]


@pytest.mark.plain_only
def test_a_site_is_known_as_long_as_mail_waits_for_it(lab):
    port = free_port()
    relay = _relay(lab, port, queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    relay.send()
    relay.wait_event("deferred", tries="0")
    name = f"[127.0.0.1]:{port}"
    wait_until(lambda: _sites(relay)[name]["parked"] == 1)
    assert _sites(relay)[name]["state"] in ("out", "dead") and _sites(relay)[name]["deferred"] == 1
    said = relay.command("explain", "dest.test").stdout
    assert "dest.test: 1 message for 1 recipient is deferred: " in said and "refused the connection. " in said
    sink = lab.sink(port=port)
    sink.wait_messages(1)
    wait_until(lambda: _sites(relay)[name]["deferred"] == 0)
    assert [event["state"] for event in relay.events("site")][-1] == "alive"


def test_domains_with_names_of_their_own_on_one_address_share_its_connections(lab):
    sink = lab.sink(address="127.0.0.2")
    nsd = lab.nsd({name: "@ MX 10 mx\nmx A 127.0.0.2" for name in ("a.test", "b.test")})
    config = Config(transports={"smtp": {"port": sink.port}}).resolve_with(nsd)
    config.dns["allow_loopback"] = True
    relay = lab.relay(config)
    for number, name in enumerate(("a.test", "b.test", "a.test")):
        relay.send(recipients=[f"to@{name}"])
        relay.wait_event("sent", count=number + 1)
    assert len({one.session for one in sink.wait_messages(3)}) == 1
    relay.wait_event("sent", count=3)
    assert [event["relay"].partition("[")[0] for event in relay.events("sent")] == ["mx.a.test", "mx.b.test", "mx.a.test"]


def test_a_list_names_the_domains_of_each_site(lab):
    """Also of many; of a site by relays those whose mail was seen to go there."""
    sink = lab.sink(address="127.0.0.2")
    names = [f"d{number}.test" for number in range(7)]
    nsd = lab.nsd({"hosts.test": "mx A 127.0.0.2"} | {name: "@ MX 10 mx.hosts.test." for name in names})
    config = Config(transports={"smtp": KEPT | {"port": sink.port}}).resolve_with(nsd)
    config.dns["allow_loopback"] = True
    config.routes[".fixed.test"] = {"relay": [f"[127.0.0.2]:{sink.port}"]}
    relay = lab.relay(config)
    relay.send(recipients=[f"to@{name}" for name in names[:2]] + [f"to@{name}.fixed.test" for name in "abcdefg"])
    relay.wait_event("sent", count=9)
    # Which domains have an MX site is known for a while after their mail.
    sites, listed = _sites(relay), relay.command("dest").stdout
    assert sorted(sites["mx.hosts.test"]["domains"]) == names[:2]
    said = re.search(r"(?m)^mx.hosts.test .* domains=(\S+)", listed)
    assert sorted(said[1].split(",")) == names[:2]
    fixed = f"[127.0.0.2]:{sink.port}"
    assert sorted(sites[fixed]["domains"]) == [f"{name}.fixed.test" for name in "abcdefg"]
    assert relay.command("dest", fixed).stdout == relay.command("dest", "list", fixed).stdout != ""
    assert "it is one of list, show" in relay.command("dest", "suspnd", fixed).stderr
    said = next(line for line in relay.command("dest").stdout.splitlines() if line.startswith(fixed))
    assert ".fixed.test,...(7)" in said
    assert len(re.search(r"(?m)^domains: +(.*)", relay.command("dest", "show", fixed).stdout)[1].split(", ")) == 7
    relay.send(recipients=[f"to@{name}" for name in names])
    relay.wait_event("sent", count=16)
    said = re.search(r"(?m)^mx.hosts.test .* domains=(\S+)", relay.command("dest").stdout)[1].split(",")
    assert len(said) == 6 and said[-1] == "...(7)" and set(said[:5]) < set(names)
    assert sorted(_sites(relay)["mx.hosts.test"]["domains"]) == names


def test_a_domain_that_is_suspended_sends_nothing_more(lab):
    """What has its place already, and waits for a connection, goes back to the queue; another domain of the same site goes on."""
    sink = lab.sink()
    config = Config(transports={"smtp": {"destination_rate": "1/h"}}).route_all_to(sink.port)
    relay = lab.relay(config)
    for name in ("one", "two", "three"):
        relay.send(recipients=[f"{name}@dest.test"])
    relay.send(recipients=["four@other.test"])
    sink.wait_messages(1)
    assert not relay.command("dest", "list").stdout.count("suspended")
    assert json.loads(relay.command("dest", "list", "--json", "dest.test").stdout)["waiting"] == 3
    relay.command("dest", "suspend", "dest.test")
    relay.wait_event("deferred", count=2, reply=re.compile("domain is suspended"))
    said = [json.loads(line)["constraint"] for line in relay.command("explain", "--json", "dest.test").stdout.splitlines()]
    assert "suspended" in said, said
    assert json.loads(relay.command("dest", "list", "--json", "dest.test").stdout)["waiting"] == 1
    assert len(sink.transactions) == 1


def _set(relay, **settings):
    relay.config.transports["smtp"] |= settings
    relay.write_config()
    assert relay.command("reload").returncode == 0


def test_a_lower_host_backoff_max_holds_for_a_host_that_is_out(lab):
    port = free_port()
    config = Config(transports={"smtp": {"site_patience": "10m", "host_backoff_max": "5m"}}).route_all_to(port)
    relay = lab.relay(config)
    relay.send()
    relay.wait_event("host", state="out", failures="5")  # for 16 s
    sink = lab.sink(port=port)
    _set(relay, host_backoff_max="1s")
    sink.wait_messages(1, timeout=12)


@pytest.mark.parametrize("where", ["transport", "hostname", "source"])
def test_a_new_name_in_ehlo_is_that_of_the_next_message(lab, where):
    sink = lab.sink()

    def say(config, name):
        config.settings["hostname"] = name if where == "hostname" else "relay.test"
        config.transports["smtp"] = {"connection_idle_timeout": "5m"}
        config.extra = ""
        if where == "transport":
            config.transports["smtp"]["helo"] = name
        elif where == "source":
            config.transports["smtp"]["sources"] = ["a"]
            config.extra = f'source "a" {{ address = {{ "127.0.0.1" }}  helo = "{name}" }}\n'
        return config

    relay = lab.relay(say(Config().route_all_to(sink.port), "one.test"))
    for number, name in enumerate(("one.test", "two.test", "two.test"), 1):
        if name == "two.test":
            say(relay.config, name)
            relay.write_config()
            assert relay.command("reload").returncode == 0
        relay.send()
        sink.wait_messages(number)
    said = [line for session in sink.sessions for _, line in session.commands if line.startswith("EHLO")]
    assert said == ["EHLO one.test", "EHLO two.test"]


@pytest.mark.parametrize("said", ["554 no service for you", "450 4.3.2 not at night", "554 5.7.1 [x] not wanted"])
def test_events_of_hosts_and_sites_cite_the_whole_reply(lab, said):
    """With its code, as events of deliveries do: 450 and 554 are told apart by nothing else."""
    sink = lab.sink(Rule("connect", said))
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.send()
    for event, state in (("host", "out"), ("site", re.compile("out|dead"))):
        reason = relay.wait_event(event, state=state)["reason"]
        assert said in reason and reason.count(said[:4]) == 1, reason
