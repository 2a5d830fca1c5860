# SPDX-License-Identifier: ISC
"""The copy of a queue while NATS is away, full, or back without what it had acknowledged."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_adopt import row_of
from test_replica import config_of, ids_of, metric, replicated, reply_of, start_node, wait_copied, wait_taken

from lab.certs import Certificates
from lab.nats import Nats
from lab.nats_keys import Realm
from lab.net import LOOPBACK, wait_until
from lab.sink import Rule
from lab.smtp import Client

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(600)]
SOON = {"minimal_backoff_time": "2s", "maximal_backoff_time": "2s", "queue_run_delay": "1s"}


def nats_of(lab, extra=""):
    """Start one server."""
    nats = Nats(lab.folder("nats"), servers=1, extra=extra)
    lab.callback(nats.close)
    return nats.start()


def relay_of(lab, nats, sink, **settings):
    """Start a node whose mail is tried again every two seconds."""
    config = config_of(nats, sink, nats_replicas=1, **settings)
    config.queue = SOON
    return start_node(lab, config)


def later():
    """A rule of a sink that takes nothing."""
    return Rule("rcpt", "451 4.2.1 Try later")


def wait_away(relay, nats):
    """Kill NATS, and wait until a message is due that waits for it."""
    deferred = len(relay.events("deferred"))
    nats.servers[0].kill()
    relay.wait_event("replica", 60, state="away")
    wait_until(lambda: metric(relay, 'queue_messages{queue="active"}') > 0 or len(relay.events("deferred")) > deferred, 60, "a message to be due")


def test_a_message_that_is_due_while_nats_is_away_keeps_nobody_from_ending(lab):
    nats, sink = nats_of(lab), lab.sink(later())
    relay = relay_of(lab, nats, sink, adopt_after="120s")
    relay.send()
    relay.wait_event("deferred")
    wait_away(relay, nats)
    assert relay.command("restart").returncode == 0
    relay.wait_event("ready", 60, count=2)
    with relay.client() as client:
        client.greet()
        assert client.command("MAIL FROM:<a@sender.test>", 4).code == 452
    relay.stop()
    relay.wait_event("stopped")


def test_who_is_fenced_while_a_message_is_due_serves_with_452_and_ends(lab):
    nats, sink = nats_of(lab), lab.sink(later())
    relay = relay_of(lab, nats, sink, adopt_after="6s")
    relay.send()
    relay.wait_event("deferred")
    nats.servers[0].kill()
    relay.wait_event("node", 60, state="fenced")
    relay.wait_event("ready", 60, count=2)
    with relay.client() as client:
        client.greet()
        assert client.command("MAIL FROM:<a@sender.test>", 4).code == 452
    relay.stop()


def test_what_was_due_while_nats_was_away_leaves_when_it_is_back(lab):
    nats, sink = nats_of(lab), lab.sink(later())
    relay = relay_of(lab, nats, sink, adopt_after="240s")
    relay.send()
    relay.wait_event("deferred")
    wait_away(relay, nats)
    sink.behaviour.rules.clear()
    nats.servers[0].start()
    relay.wait_event("replica", 60, state="back")
    relay.wait_event("sent", 60)


def send_large(relay):
    """Offer half a megabyte; return the code of the reply to it, or of the one that refused it before."""
    with Client(LOOPBACK, relay.port) as client:
        client.greet()
        for command, code in ("MAIL FROM:<a@sender.test>", 250), ("RCPT TO:<b@dest.test>", 250), ("DATA", 354):
            client.send(command.encode() + b"\r\n")
            reply = client.read_reply()
            if reply.code != code:
                return reply.code
        client.send(b"Subject: x\r\n\r\n" + b"0123456789\r\n" * 40000 + b".\r\n")
        return client.read_reply().code


def limited_nats(lab, limit):
    """Start one server, whose stream for node1 takes so many bytes."""
    nats = nats_of(lab)
    # A limit of the stream: servers before 2.9.15 count as used what was purged by subject.
    nats.ask("$JS.API.STREAM.CREATE.sluice-node1", name="sluice-node1", subjects=["sluice.node1.0.>"], storage="file",
             num_replicas=1, max_bytes=limit, discard="new", max_msg_size=2**20)
    return nats


def spares(nats):
    """Return how many messages keep room."""
    return sum(kind == 9 for kind, *_ in nats.messages("node1"))


def description(nats):
    """Return what the stream says of who has it."""
    return nats.ask("$JS.API.STREAM.INFO.sluice-node1")["config"]["description"]


def test_a_jetstream_that_is_full_heals_when_the_queue_is_short(lab):
    nats, sink = limited_nats(lab, 24_000_000), lab.sink(later())
    config = config_of(nats, sink, nats_replicas=1, adopt_after="240s", replicate_timeout="2s")
    config.settings["segment_size"] = "1m"
    relay = start_node(lab, config)
    wait_taken(relay)
    wait_until(lambda: spares(nats) == 4, 60, "room to be kept")
    taken = 1
    while (code := send_large(relay)) == 250:
        taken += 1
        assert taken < 100
    assert code == 452
    relay.wait_event("replica", 60, state="away")
    sink.behaviour.rules.clear()
    relay.command("queue", "flush", "--all")
    sink.wait_messages(taken, 60)
    wait_until(lambda: nats.state("node1")["bytes"] < 10_000_000, 60, "what is dead to go")
    wait_until(lambda: reply_of(relay).code == 250, 60, "mail to be taken again")
    wait_until(lambda: spares(nats) == 4, 60, "room to be kept again")


def test_a_node_says_that_jetstream_may_be_off_since_its_disk_was_full(lab):
    """An older server switches JetStream off, and answers nothing more; a newer one says that there is no space."""
    folder = lab.folder("disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "sluice-test", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    lab.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
    nats = Nats(folder, servers=1)
    lab.callback(nats.close)
    nats.start()
    sink = lab.sink()
    relay = relay_of(lab, nats, sink, adopt_after="5s")
    with open(folder / "filler", "wb", buffering=0) as stream, contextlib.suppress(OSError):
        while stream.write(b"x" * 4096) == 4096:
            pass

    def is_told():
        return any(words in one.keys["reason"] for one in relay.events("node", state="waiting") for words in ("disk was full", "no space left"))

    wait_until(is_told, 120, "it to say what it may be")
    os.unlink(folder / "filler")
    nats.servers[0].kill()
    nats.start()
    wait_until(lambda: "accepting yes" in relay.command("stats").stdout, 60, "mail to be taken again")
    before = len(sink.messages)
    assert relay.send().code == 250
    sink.wait_messages(before + 1)


def test_what_is_taken_without_waiting_leaves_though_nats_is_full(lab):
    nats, sink = limited_nats(lab, 12_000_000), lab.sink(later())
    relay = start_node(lab, config_of(nats, sink, "async", nats_replicas=1, adopt_after="240s", replicate_timeout="2s"))
    wait_taken(relay)
    wait_until(lambda: spares(nats) == 4, 60, "room to be kept")
    for _ in range(40):  # in a segment that has room for more
        assert send_large(relay) == 250
    relay.wait_event("replica", 60, state="alone")
    assert description(nats).endswith(" alone=1")
    sink.behaviour.rules.clear()

    def _all_there():  # one may have been on its way to its refusal when the others were flushed
        relay.command("queue", "flush", "--all")
        return len(sink.messages) >= 41

    wait_until(_all_there, 120, "all messages at the next hop")
    relay.wait_event("replica", 120, state="back")
    wait_until(lambda: not description(nats).endswith(" alone=1"), 60, "the copy to have all")
    wait_until(lambda: spares(nats) == 4 and nats.state("node1")["bytes"] < 7_000_000, 60, "what is dead to go")


def test_many_who_come_at_once_with_more_than_the_room_that_is_kept_fill_no_stream_for_ever(lab):
    nats, sink = limited_nats(lab, 12_000_000), lab.sink(later())
    relay = start_node(lab, config_of(nats, sink, nats_replicas=1, adopt_after="240s", replicate_timeout="5s"))
    wait_taken(relay)
    wait_until(lambda: spares(nats) == 4, 60, "room to be kept")
    with ThreadPoolExecutor(50) as clients:
        codes = list(clients.map(lambda _: send_large(relay), range(50)))
    assert 452 in codes
    sink.behaviour.rules.clear()
    # An attempt that is under way is not flushed, and may have been refused by then.
    wait_until(lambda: relay.command("queue", "flush", "--all") and len(sink.messages) > codes.count(250), 120, "all to arrive")
    wait_until(lambda: reply_of(relay).code == 250, 120, "mail to be taken again")
    wait_until(lambda: spares(nats) == 4 and nats.state("node1")["bytes"] < 7_000_000, 60, "what is dead to go")


def test_a_stream_that_came_back_shorter_gets_what_it_has_lost(lab):
    nats, sink = nats_of(lab), lab.sink(later())
    relay = relay_of(lab, nats, sink, adopt_after="240s")
    server = nats.servers[0]
    relay.send()
    wait_copied(relay)
    server.kill()
    store = os.path.join(server.folder, "store")
    shutil.copytree(store, f"{store}.before")
    server.start()
    wait_taken(relay)
    for number in range(5):
        assert relay.send(recipients=[f"to{number}@dest.test"]).code == 250
    server.kill()
    shutil.rmtree(store)
    os.rename(f"{store}.before", store)
    server.start()
    relay.wait_event("replica", 60, state="shorter")
    relay.wait_event("replica", 60, state="complete", count=2)
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats) == before and len(before) == 7


def test_an_order_on_the_queue_says_whether_the_copy_has_it(lab):
    nats, sink = nats_of(lab), lab.sink(later())
    relay = start_node(lab, config_of(nats, sink, nats_replicas=1, adopt_after="0s", replicate_timeout="2s"))
    wait_taken(relay)
    relay.wait_event("deferred", 60)  # one under way is held when it is back
    (ident,) = ids_of(relay)
    wait_copied(relay)
    held = relay.command("queue", "hold", ident)
    assert (held.returncode, held.stderr) == (0, "")
    relay.kill()
    relay.start()
    relay.wait_event("replica", 60, state="complete", count=2)
    nats.servers[0].signal(signal.SIGSTOP)
    waited = relay.command("queue", "release", ident)  # for as long as NATS may take
    assert waited.returncode == 1 and "1 message released" in waited.stdout and "NATS is away, and knows nothing of this" in waited.stderr
    relay.wait_event("replica", 60, state="away")
    relay.wait_event("deferred", 60, count=2)
    deleted = relay.command("queue", "delete", "--all")
    assert deleted.returncode == 1 and "1 message deleted" in deleted.stdout and "NATS is away" in deleted.stderr
    assert relay.command("queue", "flush", "--all").returncode == 0  # nothing that anybody would undo
    nats.servers[0].signal(signal.SIGCONT)
    relay.wait_event("replica", 60, state="back")
    wait_copied(relay)
    relay.kill()
    assert replicated(lab, nats) == set()


def stream_by_hand(lab, **settings):
    """Start one server, with a stream for node1 that somebody has made."""
    nats = nats_of(lab)
    made = nats.ask("$JS.API.STREAM.CREATE.sluice-node1", **{"name": "sluice-node1", "subjects": ["sluice.node1.>"], "storage": "file"} | settings)
    assert "error" not in made
    return nats


@pytest.mark.parametrize("settings", [{"max_age": 3 * 10**9, "duplicate_window": 10**9}, {"max_msgs": 8}, {"max_msgs_per_subject": 1}, {"max_msg_size": 2000},
                                      {"max_bytes": 40 * 2**20, "discard": "old"}])
def test_limits_that_take_mail_away_are_lifted(lab, settings):
    nats, sink = stream_by_hand(lab, **settings), lab.sink(later())
    relay = relay_of(lab, nats, sink, adopt_after="0s")
    for _ in range(5):
        wait_taken(relay)
    assert relay.wait_event("replica", state="mended")
    is_now = nats.ask("$JS.API.STREAM.INFO.sluice-node1")["config"]
    kept = {"max_msgs": -1, "max_age": 0, "max_msgs_per_subject": -1, "max_bytes": settings.get("max_bytes", -1)}
    assert kept.items() <= is_now.items() and is_now["max_msg_size"] in (-1, 2**20)
    assert is_now["discard"] == ("new" if "max_bytes" in settings else "old")
    nats.ask("$JS.API.STREAM.UPDATE.sluice-node1", **is_now | {"max_msgs": 8})  # somebody insists
    relay.wait_event("replica", 60, state="mended", count=2)
    relay.wait_event("replica", 60, state="complete", count=2)
    wait_copied(relay)
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats) == before and len(before) == 5


@pytest.mark.parametrize(("settings", "why"), [({"storage": "memory"}, "kept in memory"), ({"deny_purge": True}, "denies purges")])
def test_a_stream_that_keeps_nothing_takes_none_until_it_is_removed(lab, settings, why):
    nats, sink = stream_by_hand(lab, **settings), lab.sink(later())
    relay = relay_of(lab, nats, sink, adopt_after="0s", replicate_timeout="2s")
    assert why in relay.wait_event("replica", 60, state="failed")["reason"]
    assert reply_of(relay).code == 452
    assert nats.ask("$JS.API.STREAM.DELETE.sluice-node1")["success"]
    wait_taken(relay)
    assert len(relay.events("replica", state="failed")) == 1


@pytest.mark.parametrize("verb", ["DELETE", "PURGE"])
def test_a_stream_that_somebody_has_emptied_is_made_up_though_no_mail_comes(lab, verb):
    nats, sink = nats_of(lab), lab.sink(later())
    relay = start_node(lab, config_of(nats, sink, nats_replicas=1, adopt_after="0s"))
    relay.send()
    relay.wait_event("deferred")
    relay.wait_event("replica", state="complete")
    wait_copied(relay)
    wait_until(lambda: spares(nats) == 4, 60, "room to be kept")
    assert nats.ask(f"$JS.API.STREAM.{verb}.sluice-node1")["success"]
    relay.wait_event("replica", 60, state="complete", count=2)
    wait_copied(relay)
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats) == before and len(before) == 1


def test_what_fails_as_often_as_it_is_set_up_is_told_twice_and_its_end_once(lab):
    nats = nats_of(lab, "max_payload: 2048")
    relay = relay_of(lab, nats, lab.sink(later()), replicate="async")
    relay.send(content=b"Subject: x\r\n\r\n" + b"0123456789\r\n" * 400)
    wait_until(lambda: metric(relay, "replica_failures_total") > 10, 60, "many failures")
    told = [event["state"] for event in relay.events("replica") if event["state"] in ("failed", "up")]
    assert told == ["up", "failed", "up", "failed"]
    assert "Maximum Payload" in relay.events("replica", state="failed")[0]["reason"]
    nats.servers[0].kill()
    nats.servers[0].write(nats.configure(nats.servers[0]))
    nats.servers[0].start()
    relay.wait_event("replica", 60, count=3, state="up")
    wait_copied(relay)


def rights(but=""):
    """All clients have them, but for what is denied."""
    return f"authorization {{ users: [ {{ user: all, password: none, permissions: {{ {but} }} }} ] }}\nno_auth_user: all\n"


def change_rights(nats, but=""):
    """Have the server read its file again."""
    (server,) = nats.servers
    server.write(nats.configure(server, rights(but)))
    server.signal(signal.SIGHUP)


@pytest.mark.parametrize(("but", "told"), [('subscribe: { deny: ["_INBOX.>"] }', "to subscribe to _INBOX.>"),
                                           ('publish: { deny: ["sluice.>"] }', "to publish to sluice.node1."),
                                           ('publish: { deny: ["$JS.API.STREAM.INFO.sluice-node1"] }', "to publish to $JS.API.STREAM.INFO.sluice-node1")])
def test_rights_that_are_withdrawn_are_named_and_given_back_they_serve_again(lab, but, told):
    nats, sink = nats_of(lab, rights()), lab.sink(later())
    relay = relay_of(lab, nats, sink, adopt_after="0s", replicate_timeout="2s")
    wait_taken(relay)
    for _ in range(2):
        change_rights(nats, but)
        wait_until(lambda: reply_of(relay).code == 452, 60, "what is denied to be missed")
        wait_until(lambda: any(told in event["reason"] for event in relay.events("replica", state="failed")), 60, "it to be named")
        change_rights(nats)
        wait_taken(relay)
    wait_copied(relay)
    before = ids_of(relay)
    relay.kill()
    assert replicated(lab, nats) == before


def test_a_login_that_was_refused_for_a_while_serves_again(lab):
    """The library closes a connection for good that was refused twice."""
    realm, other = Realm(lab.folder("realm")), Realm(lab.folder("other"))
    nats, sink = Nats(lab.folder("nats"), servers=1, extra=realm.extra), lab.sink(later())
    lab.callback(nats.close)
    (server,) = nats.servers
    server.start()
    relay = relay_of(lab, nats, sink, nats_credentials=realm.credentials, adopt_after="0s")
    relay.wait_event("replica", 60, state="complete")
    server.kill()
    server.write(nats.configure(server, other.extra))
    server.start()
    wait_until(lambda: any(event["reason"].startswith("connection: ") for event in relay.events("replica", state="failed")), 60, "it to be refused")
    server.kill()
    server.write(nats.configure(server, realm.extra))
    server.start()
    relay.wait_event("replica", 60, state="up", count=2)
    wait_taken(relay)


def test_a_node_that_works_says_each_time_that_it_does_not_reach_the_others(lab):
    nats, sink = nats_of(lab), lab.sink(later())
    (server,) = nats.servers
    relay = relay_of(lab, nats, sink, adopt_after="0s")
    for times in (1, 2):
        server.kill()
        wait_until(lambda count=times: len([one for one in relay.events("node", state="up") if one.level == "warning"]) == count, 60, "it to be said")
        server.start()
        renewed = int(time.time() * 1000)
        wait_until(lambda since=renewed: row_of(nats, "node1")["seen_ms"] > since, 60, "the row to be written")


def put_certificate(folder, made):
    """Have these files there, each at once; return the path of each."""
    certificate, key = made.host("localhost")
    paths = [f"{folder}/{name}" for name in ("certificate", "key", "ca")]
    for path, source in zip(paths, (certificate, key, made.ca)):
        shutil.copy(source, f"{path}.new")
        os.chmod(f"{path}.new", 0o644)
        os.rename(f"{path}.new", path)
    return paths


def test_certificates_that_were_renewed_are_shown_and_believed_when_nats_is_back(lab):
    folder = lab.folder("files")
    certificate, key, authority = put_certificate(folder, lab.certificates)
    tls = f'tls {{ cert_file: "{certificate}", key_file: "{key}", ca_file: "{authority}", verify: true }}\n'
    nats, sink = Nats(lab.folder("nats"), servers=1, extra=tls), lab.sink(later())
    lab.callback(nats.close)
    (server,) = nats.servers
    server.start()
    settings = {"nats_tls": True, "nats_ca": authority, "nats_certificate": certificate, "nats_key": key}
    relay = start_node(lab, config_of(nats, sink, nats=f"localhost:{server.port}", nats_replicas=1, adopt_after="0s", **settings))
    relay.wait_event("replica", 60, state="complete")
    put_certificate(folder, Certificates(lab.folder("others")))
    server.kill()
    server.start()
    relay.wait_event("replica", 60, state="up", count=2)
    wait_taken(relay)


@pytest.mark.parametrize("but", ['subscribe: { deny: ["_INBOX.>"] }', 'publish: { deny: ["$JS.API.STREAM.MSG.GET.KV_sluice-nodes"] }', 'publish: { deny: ["$KV.>"] }'])
def test_a_node_names_what_it_may_not_and_starts_when_it_may(lab, but):
    nats, sink = nats_of(lab, rights(but)), lab.sink(later())
    relay = lab.relay(config_of(nats, sink, nats_replicas=1, adopt_after="30s"))
    wait_until(lambda: any("does not permit" in event["reason"] for event in relay.events("node", state="waiting")), 60, "what is denied to be named")
    change_rights(nats)
    relay.wait_event("node", 60, state="up")
    wait_taken(relay)


@pytest.mark.parametrize("settings", [{"max_age": 3 * 10**9, "duplicate_window": 10**9}, {"max_msg_size": 100}])
def test_a_bucket_made_by_hand_keeps_the_row_of_a_node_that_is_gone(lab, settings):
    nats, sink = nats_of(lab), lab.sink(later())
    bucket = {"name": "KV_sluice-nodes", "subjects": ["$KV.sluice-nodes.>"], "storage": "file", "max_msgs_per_subject": 1, "discard": "new",
              "allow_rollup_hdrs": True, "deny_delete": True, "allow_direct": True}
    assert "error" not in nats.ask("$JS.API.STREAM.CREATE.KV_sluice-nodes", **bucket | settings)
    first = start_node(lab, config_of(nats, sink, nats_replicas=1, adopt_after="6s"))
    assert first.wait_event("node", reason="the bucket had limits that refuse or remove rows: they are lifted")
    second = start_node(lab, config_of(nats, sink, name="node2", nats_replicas=1, adopt_after="6s"))
    wait_taken(first)
    wait_copied(first)
    first.kill()
    second.wait_event("adopted", 60)
    assert len(second.events("adopted")) == 1 and not [event for event in second.events("node") if "again" in event["reason"]]
    is_now = nats.ask("$JS.API.STREAM.INFO.KV_sluice-nodes")["config"]
    assert is_now["max_age"] == 0 and is_now["max_msgs_per_subject"] == 1
