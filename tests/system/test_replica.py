# SPDX-License-Identifier: ISC
"""cluster { replicate }: what three real NATS servers have of a queue; and what becomes of mail while they are away."""

import json
import os
import random
import signal
import time

import pytest

from lab.config import Config
from lab.load import Load, token
from lab.nats import Nats
from lab.nats_keys import Realm
from lab.net import LOOPBACK, free_port, wait_until
from lab.sink import Rule
from lab.smtp import Client

LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
NODE = "node1"
SPARE = 4 * 2**20  # bytes that a stream keeps as room for the day when there is no other


@pytest.fixture(name="nats", scope="module")
def fixture_nats(module_lab):
    """Three servers, for all tests that end none of them."""
    nats = Nats(module_lab.folder("nats"))
    module_lab.callback(nats.close)
    return nats.start()


def config_of(servers, sink, replicate="sync", name=NODE, **settings):
    """Return the configuration of a node."""
    lines = {"name": name, "nats": servers.addresses, "replicate": replicate, "replicate_timeout": "5s"} | settings
    text = "".join(f"    {key} = {json.dumps(value)}\n" for key, value in lines.items())
    return Config(queue=LATER, extra=f"cluster {{\n{text}}}\n").route_all_to(sink.port)


def start_node(lab, config):
    """Start a node, and wait until it has its epoch: before, it takes no mail."""
    relay = lab.relay(config)
    relay.wait_event("node", state="up")
    return relay


def wait_copied(relay):
    """Wait until all that is written is in the stream."""
    wait_until(lambda: metric(relay, "replica_lag_bytes") == 0, 60, "all to be in the copy")


def metric(relay, name):
    """Return what the relay counts."""
    return json.loads(relay.command("stats", "--json").stdout).get(name, 0)


def ids_of(relay):
    """Return the ids of a queue, of a relay that runs or not."""
    lines = relay.command("queue", "list", "--json").stdout.splitlines()
    return {json.loads(line)["id"] for line in lines}


def replicated(lab, nats, name=NODE):
    """Start a relay whose queue is what the stream says, and return its ids: nothing of it is damaged."""
    relay = lab.relay(Config(queue=LATER).route_all_to(free_port()), start=False)
    nats.rebuild(name, relay.spool)
    with open(f"{relay.spool}/format", "w", encoding="ascii") as stream:
        stream.write("sluice spool 2\n")
    relay.start()
    relay.wait_event("recover")
    ids = ids_of(relay)
    relay.stop()
    assert not relay.events("damage")
    return ids


def test_each_250_is_in_the_stream(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = start_node(lab, config_of(nats, sink, name="each"))
    load = Load(relay.port, 200, sessions=10, size=lambda number: 600000 if number % 50 == 7 else 500)
    load.wait_acknowledged(200)
    relay.kill()
    load.close()
    assert set(load.acknowledged.values()) <= replicated(lab, nats, "each")


def test_async_clients_wait_for_nothing(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = start_node(lab, config_of(nats, sink, "async", "behind", replicate_timeout="10s", adopt_after="240s"))
    for server in nats.servers:
        server.signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        for number in range(20):
            relay.send(recipients=[f"to{number}@dest.test"])
        assert time.monotonic() - began < 100, "each has waited for the copy"
        relay.wait_event("replica", state="away")
        assert metric(relay, "replica_lag_bytes") > 5000
        assert metric(relay, "replica_away") == 1
    finally:
        for server in nats.servers:
            server.signal(signal.SIGCONT)
    relay.wait_event("replica", state="back", timeout=60)
    wait_copied(relay)
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats, "behind") == before


def reply_of(relay):
    """Return the reply to MAIL, where that is refused, or to the end of the data."""
    with Client(LOOPBACK, relay.port) as client:
        client.greet()
        client.send(b"MAIL FROM:<a@sender.test>\r\n")
        reply = client.read_reply()
        if reply.code == 250:
            client.command("RCPT TO:<b@dest.test>")
            client.command("DATA", 354)
            client.send(b"Subject: x\r\n\r\nx\r\n.\r\n")
            reply = client.read_reply()
        return reply


def wait_taken(relay):
    """Wait until a message is taken, and so the stream is there."""
    wait_until(lambda: reply_of(relay).code == 250, 60, "a message to be taken")


def test_sync_mail_is_refused_while_it_is_away_and_deliveries_go_on(lab, nats):
    rule = Rule("rcpt", "451 4.2.1 Try later")
    sink = lab.sink(rule)
    relay = start_node(lab, config_of(nats, sink, adopt_after="0s", name="refusing", replicate_timeout="15s"))  # as long as an end waits for the copy
    wait_taken(relay)
    relay.wait_event("deferred")
    before, backs = ids_of(relay), len(relay.events("replica", state="back"))
    for server in nats.servers:
        server.signal(signal.SIGSTOP)
    try:
        reply = reply_of(relay)
        assert reply.code == 452 and "4.3.1 Queue cannot be replicated" in reply.text
        # From then on nobody has to send a message to be told.
        with relay.client() as client:
            client.greet()
            client.command("MAIL FROM:<a@sender.test>", 452)
        on = relay.wait_event("condition", name="nats_away", state="on")
        stats = relay.command("stats").stdout
        assert "452" in on["effect"] and "\naccepting no\n" in stats and "\ncondition nats_away, for " in stats
        assert ids_of(relay) == before
        sink.behaviour.rules.clear()
        relay.command("queue", "flush", "--all")
        relay.wait_event("sent", timeout=60)
    finally:
        for server in nats.servers:
            server.signal(signal.SIGCONT)
    relay.wait_event("replica", state="back", timeout=60, count=backs + 1)
    wait_taken(relay)  # the queue's thread is told then
    relay.wait_event("condition", name="nats_away", state="off")
    wait_until(lambda: not ids_of(relay), 60, "the queue to be empty")
    wait_copied(relay)
    relay.stop()
    assert replicated(lab, nats, "refusing") == set()


def test_degraded_mail_is_taken_while_it_is_away_and_made_up_after(lab):
    nats = Nats(lab.folder("nats"), servers=1)
    lab.callback(nats.close)
    nats.start()
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = start_node(lab, config_of(nats, sink, degrade=True, nats_replicas=1, replicate_timeout="10s", adopt_after="240s"))
    relay.send()
    began = time.monotonic()
    nats.servers[0].kill()
    relay.send()
    assert time.monotonic() - began > 9.5
    began = time.monotonic()
    for _ in range(20):
        relay.send()
    assert time.monotonic() - began < 100, "each has waited for the copy"
    assert "\naccepting yes\ncondition nats_away, for " in relay.command("stats").stdout
    nats.servers[0].start()
    relay.wait_event("replica", state="back", timeout=60)
    wait_copied(relay)
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats) == before
    assert len(before) == 22


def test_a_stream_that_was_lost_is_made_again(lab):
    nats = Nats(lab.folder("nats"), servers=1)
    lab.callback(nats.close)
    nats.start()
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = start_node(lab, config_of(nats, sink, nats_replicas=1))
    for _ in range(5):
        relay.send(content=b"Subject: large\r\n\r\n" + b"0123456789\r\n" * 50000)
    relay.restart()
    relay.wait_event("node", state="up", count=2)
    relay.send()
    relay.wait_event("replica", state="complete", count=2)
    nats.wipe()
    nats.start()
    relay.wait_event("replica", state="complete", count=3, timeout=60)
    wait_taken(relay)
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats) == before and len(before) == 7


def test_the_stream_is_about_as_large_as_the_queue(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later", pattern="later"))
    config = config_of(nats, sink, name="small")
    config.settings["segment_size"] = "1m"
    relay = start_node(lab, config)
    wait_taken(relay)
    relay.send(recipients=["later@dest.test"])
    load = Load(relay.port, 2000, sessions=10, size=8000)
    load.finish()
    relay.wait_event("sent", count=2000, timeout=60)
    wait_until(lambda: metric(relay, "queue_messages{queue=\"active\"}") == 0, 60, "the queue to be empty")
    assert metric(relay, "replica_bytes_total") > 16_000_000
    wait_until(lambda: nats.state("small")["bytes"] < 3_500_000 + SPARE, 60, "the stream to shrink")
    wait_copied(relay)
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats, "small") == before and len(before) == 1
    # Its content lies in a segment that a start passes over.
    relay.start()
    relay.wait_event("replica", state="complete", count=2, timeout=60)
    relay.kill()
    assert replicated(lab, nats, "small") == before


def test_a_restart_sends_what_is_there_and_forgets_what_was(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = start_node(lab, config_of(nats, sink, name="again"))
    wait_taken(relay)
    for number in range(3):
        relay.send(content=b"Subject: large\r\n\r\n" + b"0123456789\r\n" * 50000)
        relay.wait_event("replica", state="complete", count=number + 1)
        relay.kill()
        relay.start()
        relay.wait_event("replica", state="complete", count=number + 2)
    wait_until(lambda: {epoch for _, epoch, *_ in nats.messages("again")} == {4}, 60, "older epochs to go")
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats, "again") == before and len(before) == 4


@pytest.mark.parametrize("leads", [False, pytest.param(True, marks=pytest.mark.skipif(
    not os.environ.get("SLUICE_REPLICA_LEADER"), reason="NATS takes ten seconds to choose another leader; SLUICE_REPLICA_LEADER has it tried"))])
def test_one_server_of_three_dies_under_load(lab, nats, leads):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    name = f"bereft-{leads}"
    relay = start_node(lab, config_of(nats, sink, name=name, replicate_timeout="30s", adopt_after="240s"))
    load = Load(relay.port, 1500, sessions=10, size=2000)
    load.wait_acknowledged(300)
    leader = nats.ask(f"$JS.API.STREAM.INFO.sluice-{name}")["cluster"]["leader"]
    dead = next(server for server in nats.servers if (server.name == leader) == leads)
    dead.kill()
    load.finish(60)
    assert not load.refused
    before = ids_of(relay)
    relay.kill()
    load.close()
    assert set(load.acknowledged.values()) <= replicated(lab, nats, name) <= before
    dead.start()


@pytest.mark.plain_only  # The library reads and writes a connection in two threads, which OpenSSL does not promise to bear.
def test_tls_and_credentials(lab):
    certificate, key = lab.certificates.host("localhost")
    realm = Realm(lab.folder("realm"))
    tls = f'tls {{ cert_file: "{certificate}", key_file: "{key}", ca_file: "{lab.certificates.ca}", verify: true }}\n'
    nats = Nats(lab.folder("nats"), servers=1, extra=realm.extra + tls)
    lab.callback(nats.close)
    nats.servers[0].start()
    sink = lab.sink()
    known = {"nats": f"localhost:{nats.servers[0].port}", "nats_replicas": 1, "nats_tls": True, "nats_ca": lab.certificates.ca,
             "nats_certificate": certificate, "nats_key": key, "nats_credentials": realm.credentials}
    relay = start_node(lab, config_of(nats, sink, **known))
    wait_taken(relay)
    relay.wait_event("replica", state="complete")
    for lacks in ("nats_credentials", "nats_tls"):
        settings = {name: value for name, value in known.items() if name != lacks}
        other = lab.relay(config_of(nats, sink, name="other", **settings))
        other.wait_event("node", state="waiting")
        assert reply_of(other).code == 452
        other.stop()
    other = lab.relay(config_of(nats, sink, name="other", **known | {"nats": f"127.0.0.1:{nats.servers[0].port}"}))
    other.wait_event("node", state="waiting")
    assert not other.events("replica", state="up")


@pytest.mark.skipif(not os.environ.get("SLUICE_REPLICA_KILLS"), reason="SLUICE_REPLICA_KILLS is how often a node is to be killed")
@pytest.mark.seconds(3600)
def test_killed_again_and_again_under_load(lab, nats):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later", pattern="[02468]@"))
    config = config_of(nats, sink, name="killed", replicate_timeout="30s")
    config.queue = {"minimal_backoff_time": "300ms", "maximal_backoff_time": "2s", "queue_run_delay": "200ms"}
    config.settings["segment_size"] = "256k"
    relay = start_node(lab, config)
    chance = random.Random(os.environ["SLUICE_REPLICA_KILLS"])
    acknowledged = {}
    for kill in range(int(os.environ["SLUICE_REPLICA_KILLS"])):
        load = Load(relay.port, 100000, sessions=8, size=lambda number: 600000 if number % 97 == 5 else 300 + number % 7 * 3000,
                    first=kill * 1000000)
        load.wait_acknowledged(50)
        time.sleep(chance.uniform(0, 2))
        relay.kill()
        load.close()
        acknowledged |= load.acknowledged
        arrived = {token(one.content) for one in list(sink.transactions) if one.accepted}
        there = replicated(lab, nats, "killed")
        assert {ident for one, ident in acknowledged.items() if one not in arrived} <= there
        # What was delivered twice: no more than was under way.
        assert len({ident for one, ident in acknowledged.items() if one in arrived} & there) <= 100
        relay.start()
