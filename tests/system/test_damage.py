# SPDX-License-Identifier: ISC
"""Whatever is damaged in the queue: it is reported, put aside, and costs no other message."""

import collections
import errno
import http.client
import json
import os
import pathlib
import shutil
import struct

import pytest

from lab import received, spool
from lab.check import check, repair
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.sink import Rule
from lab.spool import Spool, flip, identity

LATER = [f"later{number}@dest.test" for number in range(1, 7)]
LARGE = b"Subject: large\r\n\r\n" + b"a large message\r\n" * 40000


def _config(port):
    # No test waits for a second attempt but by a flush.
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    config.settings["segment_size"] = "256k"
    # Content that is found damaged on its way ends the connection, and what waits for its reply there is in doubt for an hour.
    config.transports["smtp"] = {"pipeline_depth": 1}
    return config.route_all_to(port)


def _fill(relay):
    relay.start()
    for number, recipient in enumerate(LATER[:3]):
        relay.send(recipients=[recipient, f"good{number}@dest.test"])
    relay.send(recipients=["good3@dest.test"])
    relay.send(recipients=["later-large@dest.test"], content=LARGE)
    relay.wait_event("deferred", count=4)
    relay.wait_event("sent", count=4)
    relay.restart()
    for recipient in LATER[3:]:
        relay.send(recipients=[recipient])
    relay.wait_event("deferred", count=7)
    # The checkpoint names all segments, a while after the last was made.
    named = pathlib.Path(relay.spool, "log", "checkpoint")
    segments = sorted(path.name for path in pathlib.Path(relay.spool, "log").glob("*.seg"))
    wait_until(lambda: named.exists() and all(name in named.read_text("ascii") for name in segments[:3]), 60,
               "a checkpoint")
    assert relay.stop() == 0


@pytest.fixture(name="filled", scope="module")
def _filled(module_lab):
    """The folder of a queue of seven messages, all deferred, and of one that is done."""
    sink = module_lab.sink(Rule("rcpt", "451 4.3.0 later", pattern="later"))
    relay = module_lab.relay(_config(sink.port), start=False)
    _fill(relay)
    checked = check(relay)
    assert checked.whole and checked.summary["messages"]["deferred"] == 7, checked.findings
    return relay.spool


class Case:
    """One copy of that queue, with a relay that does not run, and a sink that takes all."""

    def __init__(self, lab, filled):
        self.sink = lab.sink()
        self.relay = lab.relay(_config(self.sink.port), start=False)
        self.folder = pathlib.Path(self.relay.spool)
        shutil.copytree(filled, self.folder)
        self.spool = Spool(self.folder)
        self.large = next((self.folder / "large").iterdir())
        self.all = {identity(record.id) for segment in self.spool.segments for record in segment.records
                    if record.type == spool.REPLACEMENT}
        assert len(self.all) == 7

    def read_all(self):
        """Have a start read all segments: without a checkpoint it passes over none."""
        (self.folder / "log" / "checkpoint").unlink()

    def deliver_all_but(self, hit, whole=True):
        """Start the relay, and see each message arrive once, those hit at most once.

        The queue is whole then; unless what is damaged had not to be read.
        """
        self.relay.start()
        self.relay.wait_event("recover")
        assert self.relay.command("queue", "flush", "--all").returncode == 0
        wait_until(lambda: not self.relay.command("queue", "list", "--json").stdout, 60, "an empty queue")
        assert self.relay.stop() == 0
        counts = collections.Counter(received.identity(one.content) for one in self.sink.messages)
        assert all(count == 1 for count in counts.values()), counts
        assert self.all - hit <= set(counts) <= self.all | hit
        for one in self.sink.messages:
            if one.recipients == ["later-large@dest.test"]:
                assert received.without(one.content) == LARGE
        again = check(self.relay)
        assert again.whole or not whole, again.findings

    def logged(self, segment=None, **keys):
        """See that the relay has logged the damage."""
        if segment:
            keys["segment"] = segment.name
        assert self.relay.events("damage", **keys), self.relay.log_text()

    def kept(self, name):
        """Say whether something of that name was put aside."""
        return name in self.spool.quarantine()


@pytest.fixture(name="case")
def _case(lab, filled):
    return Case(lab, filled)


@pytest.fixture(name="other")
def _other(lab, filled):
    """Another one, for what is repaired."""
    return Case(lab, filled)


def _repaired(case, fault, hit=(), at_least=None, **keys):
    """Repair it, see that nothing is left to complain of, and that no message not hit is gone."""
    done = repair(case.relay)
    assert done.has(fault, left=False, **keys), done.findings
    assert done.whole and done.summary["repaired"] > 0, done.findings
    assert done.messages >= (len(case.all) - len(hit) if at_least is None else at_least)
    again = check(case.relay)
    assert again.whole and again.messages == done.messages
    for segment in Spool(case.folder).segments:
        assert not {spool.FILLER} & {record.type for record in segment.records}, "damage is left in the log"


def _synced(segment, record):
    return segment.sealed or record.end < segment.synced


@pytest.mark.parametrize("kind", range(spool.CONTENT, spool.FINISH + 1), ids=lambda kind: spool.NAMES[kind])
def test_a_flipped_bit_in_a_record_costs_at_most_its_message(case, other, kind):
    for one in (case, other):
        one.read_all()
        segment, record = one.spool.find(kind, _synced)
        flip(segment.path, record.end - 1 if not record.payload else record.offset + spool.RECORD_HEAD)
        found = check(one.relay)
        assert found.has("damaged", file=segment.name, offset=record.offset, id=_owner(record)), found.findings
    hit = {identity(record.id)}
    _repaired(other, "damaged", hit, offset=record.offset)
    assert other.kept(f"{segment.name}.{record.offset:08x}")
    case.deliver_all_but(hit)
    case.logged(segment, offset=record.offset)
    assert case.kept(f"{segment.name}.{record.offset:08x}")


def _owner(record):
    """Whose it is can be told while the head is right."""
    return identity(record.id) if record.payload else None


def test_damaged_content_in_a_segment_that_a_start_passes_over_is_never_delivered(case, other):
    for one in (case, other):
        segment, record = one.spool.find(spool.CONTENT, lambda segment, record: identity(record.id) in one.all)
        assert f"{segment.name} skip" in (one.folder / "log" / "checkpoint").read_text("ascii")
        flip(segment.path, record.offset + 100)
        found = check(one.relay)
        assert found.faults == ["damaged", "message"] and found.messages == 6
    hit = {identity(record.id)}
    _repaired(other, "message", hit, id=identity(record.id))
    case.deliver_all_but(hit, whole=False)
    assert case.relay.events("quarantined", id=identity(record.id))
    assert case.kept(f"{identity(record.id)}.content")


def test_a_torn_tail_is_cut_and_costs_nothing(case, other):
    for one in (case, other):
        one.read_all()
        segment = next(one for one in reversed(one.spool.segments) if not one.sealed and one.records)
        with open(segment.path, "r+b") as stream:
            stream.seek(segment.end)
            stream.write(b"sR\x01\0" + bytes(range(1, 100)))
        found = check(one.relay)
        assert found.faults == ["torn"] and found.has("torn", file=segment.name, offset=segment.end)
    _repaired(other, "torn", file=segment.name)
    case.deliver_all_but(set())
    assert case.relay.events("torn", segment=segment.name, offset=segment.end)
    assert not case.relay.events("damage") and not case.spool.quarantine()


@pytest.mark.parametrize("kind", [spool.SYNCED, spool.END], ids=lambda kind: spool.NAMES[kind])
def test_a_flipped_bit_in_a_mark_costs_no_message(case, other, kind):
    for one in (case, other):
        one.read_all()
        segment, record = one.spool.find(kind)
        flip(segment.path, record.offset + 9)
        assert not check(one.relay).whole
    _repaired(other, "short" if kind == spool.END else "damaged", file=segment.name)
    case.deliver_all_but(set())
    case.logged(segment)


def test_a_segment_cut_short_costs_what_is_gone(case, other):
    for one in (case, other):
        one.read_all()
        segment, record = one.spool.find(spool.CONTENT, lambda segment, record: identity(record.id) in one.all)
        hit = segment.owners(record.end) | {identity(record.id)}
        os.truncate(segment.path, record.end - 100)
        found = check(one.relay)
        assert found.has("short", file=segment.name, offset=record.end - 100), found.findings
        assert found.has("message", id=identity(record.id))
    _repaired(other, "short", hit, file=segment.name)
    case.deliver_all_but(hit)
    case.logged(segment, offset=record.end - 100, reason="the segment was cut short")
    assert case.relay.events("quarantined", id=identity(record.id))
    assert case.kept(f"{identity(record.id)}.envelope")


def test_a_missing_segment_is_missed(case, other):
    for one in (case, other):
        segment, _ = one.spool.find(spool.CONTENT, lambda segment, record: identity(record.id) in one.all)
        hit = segment.owners()
        os.unlink(segment.path)
        found = check(one.relay)
        assert found.has("missing", file=segment.name) and found.has("message"), found.findings
    _repaired(other, "missing", hit, file=segment.name)
    case.deliver_all_but(hit)
    case.logged(segment, reason="the segment is missing")


def test_foreign_files_are_put_aside(case, other):
    for one in (case, other):
        for name in ("log/notes.txt", "large/notes.txt", f"large/{one.large.name.lower()}"):
            (one.folder / name).write_text(name, encoding="ascii")
        found = check(one.relay)
        assert found.faults == ["foreign"] * 3
        assert found.has("foreign", folder="log", file="notes.txt")
        assert found.has("foreign", folder="large", file="notes.txt")
    _repaired(other, "foreign")
    case.deliver_all_but(set())
    case.logged(file="notes.txt", reason="not a file of this queue")
    for one in (case, other):
        kept = [(one.folder / "quarantine" / name).read_text("ascii") for name in one.spool.quarantine()]
        assert sorted(kept) == sorted(["log/notes.txt", "large/notes.txt", f"large/{one.large.name.lower()}"])


def test_a_large_message_without_its_file_is_put_aside(case, other):
    for one in (case, other):
        one.large.unlink()
        found = check(one.relay)
        assert found.faults == ["message"] and found.messages == 6
        assert found.has("message", id=one.large.name, reason="the file of its content is missing")
    _repaired(other, "message", {case.large.name})
    case.deliver_all_but({case.large.name})
    assert case.relay.events("quarantined", id=case.large.name)
    assert case.kept(f"{case.large.name}.envelope") and other.kept(f"{case.large.name}.envelope")


def test_a_large_file_of_the_wrong_size_is_put_aside(case):
    os.truncate(case.large, len(LARGE) // 2)
    found = check(case.relay)
    assert found.faults == ["message"]
    assert found.has("message", id=case.large.name, reason="the file of its content is of the wrong size")
    case.deliver_all_but({case.large.name})
    assert case.kept(case.large.name)


def test_a_large_file_that_can_not_be_opened_is_told_and_sent_once_it_can(case):
    """As where it has become somebody else's; here it is a symbolic link, which even root does not follow."""
    away = case.folder.parent / "away"
    case.large.rename(away)
    case.large.symlink_to(away)
    case.relay.start()
    assert case.relay.command("queue", "flush", "--all").returncode == 0
    case.relay.wait_event("content_unreadable", id=case.large.name, reason=os.strerror(errno.ELOOP))
    away.replace(case.large)
    assert case.relay.command("queue", "flush", "--all").returncode == 0
    wait_until(lambda: not case.relay.command("queue", "list", "--json").stdout, 60, "an empty queue")
    sent = [one.content for one in case.sink.messages if one.recipients == ["later-large@dest.test"]]
    assert [received.without(content) for content in sent] == [LARGE]


def test_a_large_file_with_one_byte_changed_is_found_and_put_aside(case, other):
    for one in (case, other):
        flip(one.large, len(LARGE) // 2)
        found = check(one.relay)
        assert found.faults == ["message"]
        assert found.has("message", id=one.large.name, reason="the file of its content is damaged")
    _repaired(other, "message", {case.large.name})
    case.deliver_all_but({case.large.name})
    assert case.kept(case.large.name) and case.kept(f"{case.large.name}.envelope")
    assert case.relay.events("quarantined", id=case.large.name, reason="its content is damaged")


def _refused(case, *words):
    """The output and the complaint of a command that has not all that it was asked for."""
    done = case.relay.command(*words)
    assert done.returncode == 1, (words, done)
    return done.stdout, done.stderr


def _asked_by_http(port, path):
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    connection.request("GET", path)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


def _let_http_tell(port, one):
    """See that who asks by HTTP is told of the one that is not among the others, and why not."""
    for limit in ("", "?limit=10000"):
        status, said = _asked_by_http(port, f"/api/queue{limit}")
        *rows, last = [json.loads(line) for line in said.splitlines()]
        assert status == 200 and len(rows) == 6 and all("id" in row for row in rows)
        assert last == {"unread": 1, "error": "it is damaged"}
    for path in ("queue", "explain"):
        status, said = _asked_by_http(port, f"/api/{path}?id={one}")
        assert status == 500 and "cannot be read from the queue: it is damaged" in said, (path, status, said)


def test_what_can_not_be_read_is_told_apart_from_what_is_gone(case):
    """It is there, and no command says that it is not, or that a part of it is all."""
    port = free_port()
    case.relay.config.settings["http"] = f"{LOOPBACK}:{port}"
    case.relay.write_config()
    case.relay.start()
    case.relay.wait_event("recover")
    _, record = case.spool.find(spool.REPLACEMENT, lambda _, one: identity(one.id) != case.large.name)
    one = identity(record.id)
    for segment in case.spool.segments:
        for other in segment.records:
            if other.id == record.id and other.type in (spool.ENVELOPE, spool.REPLACEMENT):
                flip(segment.path, other.offset + spool.RECORD_HEAD)
    assert case.relay.command("queue", "show", case.large.name).stdout.count("a large message") == 40000
    case.large.unlink()
    for words in (("queue", "show", one), ("queue", "show", "--envelope", one), ("queue", "list", one), ("explain", one)):
        said, complaint = _refused(case, *words)
        assert not [line for line in said.splitlines() if one in line]
        assert f"{one}: cannot be read from the queue: it is damaged" in complaint
        assert "no such message" not in complaint
    assert "left" in _refused(case, "queue", "hold", one)[1]
    said, complaint = _refused(case, "queue", "list")
    assert said.endswith("-- 6 messages, " + said.rpartition(", ")[2])
    assert "1 other message in the queue cannot be read: it is damaged" in complaint
    assert len(_refused(case, "queue", "list", "--json")[0].splitlines()) == 6
    assert case.relay.command("user", "suspend", "bob").returncode == 0
    shape = ("shape", "--flow", "sender.test", "incoming", "active", "deferred", "hold")
    for words in (("explain", "dest.test"), ("user", "show", "bob"), shape):
        said, complaint = _refused(case, *words)
        assert said and "1 other message in the queue cannot be read: it is damaged" in complaint, words
    said, complaint = _refused(case, "queue", "show", case.large.name)
    assert "later-large@dest.test" in said and "the content cannot be read: No such file or directory" in complaint
    assert case.relay.command("queue", "show", "--envelope", case.large.name).returncode == 0
    assert "no such message" in _refused(case, "queue", "show", "0" * 12 + "1")[1]
    _let_http_tell(port, one)


@pytest.mark.parametrize("extensions", [None, ("PIPELINING",)], ids=["chunks", "data"])
@pytest.mark.parametrize("place", ["first", "last"])
def test_no_host_gets_a_large_message_that_was_damaged_meanwhile(lab, extensions, place):
    sink = lab.sink(Rule("rcpt", "451 4.3.0 later", pattern="later"), **({"extensions": extensions} if extensions else {}))
    relay = lab.relay(_config(sink.port))
    relay.send(recipients=["later@dest.test", "good@dest.test"], content=LARGE)
    relay.wait_event("sent", to="good@dest.test")
    relay.wait_event("deferred", to="later@dest.test")
    wait_until(lambda: relay.command("queue", "list", "--json").stdout.count("deferred"), 60, "the end of the round")
    file = next(pathlib.Path(relay.spool, "large").iterdir())
    flip(file, 0 if place == "first" else os.path.getsize(file) - 1)
    sink.behaviour.rules = []
    assert relay.command("queue", "flush", "--all").returncode == 0
    relay.wait_event("quarantined", id=file.name)
    assert len(sink.messages) == 1 and not file.exists()
    assert pathlib.Path(relay.spool, "quarantine", file.name).exists()
    relay.send(recipients=["after@dest.test"])
    sink.wait_messages(2)
    assert not relay.command("queue", "list", "--json").stdout


def test_no_report_returns_a_message_whose_file_was_damaged_meanwhile(lab):
    """Whole messages in reports are small, but where memory is short they have files, too."""
    sink = lab.sink(Rule("rcpt", "451 4.3.0 later", pattern="later"))
    config = _config(sink.port)
    config.queue["bounce_size_limit"] = "100k"
    config.settings["session_memory_limit"] = "60k"
    relay = lab.relay(config)
    content = LARGE[:90_002]
    for to in ("later-whole@dest.test", "later-damaged@dest.test"):
        relay.send(recipients=[to], content=content)
        queue_id = relay.wait_event("deferred", to=to)["id"]
        wait_until(lambda: "deferred" in relay.command("queue", "list", "--json").stdout, 60, "the end of the round")
        if "damaged" in to:
            flip(pathlib.Path(relay.spool, "large", queue_id), len(content) // 2)
        assert relay.command("queue", "bounce", queue_id).returncode == 0
        report = sink.wait_messages(2 if "damaged" in to else 1)[-1].content
        assert (report.count(b"a large message") > 5000) == ("damaged" not in to)
    assert b"cannot be read from the queue" in report


def test_a_large_file_without_a_message_is_kept_by_a_repair(case):
    orphan = case.large.with_name("0" * 12 + "1")
    orphan.write_text("whose?", encoding="ascii")
    found = check(case.relay)
    assert found.faults == ["orphan"] and found.has("orphan", file=orphan.name)
    _repaired(case, "orphan")
    assert case.kept(orphan.name) and not orphan.exists()


def test_a_damaged_checkpoint_is_done_without(case, other):
    for one in (case, other):
        flip(one.folder / "log" / "checkpoint", 30)
        assert check(one.relay).faults == ["checkpoint"]
    _repaired(other, "checkpoint")
    case.deliver_all_but(set())
    case.logged(file="checkpoint")
    assert case.kept("checkpoint") and other.kept("checkpoint")


def test_one_damaged_head_is_no_loss(case):
    segment, _ = case.spool.find(spool.CONTENT)
    flip(segment.path, 20)
    found = check(case.relay)
    assert found.faults == ["head"] and found.has("head", file=segment.name) and found.messages == 7
    _repaired(case, "head")
    case.deliver_all_but(set())


def test_a_segment_with_both_heads_damaged_is_put_aside(case, other):
    for one in (case, other):
        segment, _ = one.spool.find(spool.CONTENT, lambda segment, record: identity(record.id) in one.all)
        hit = segment.owners()
        for head in spool.HEADS:
            flip(segment.path, head + 20)
        found = check(one.relay)
        assert found.has("head", file=segment.name) and not found.has("missing"), found.findings
    _repaired(other, "head", hit, file=segment.name)
    case.deliver_all_but(hit)
    case.logged(segment, reason=lambda text: text.startswith("its head is damaged"))
    assert not case.relay.events("damage", segment=segment.name, reason="the segment is missing")
    assert case.kept(segment.name) and other.kept(segment.name)


def test_a_queue_in_use_is_not_checked(case):
    case.relay.start()
    for words in (("queue", "check"), ("queue", "check", "--repair")):
        done = case.relay.command(*words)
        assert done.returncode == 1 and "a relay has this queue" in done.stderr and not done.stdout


def test_what_the_check_says_can_be_read(case):
    segment, record = case.spool.find(spool.CONTENT, lambda segment, record: identity(record.id) in case.all)
    flip(segment.path, record.offset + spool.RECORD_HEAD)
    done = case.relay.command("queue", "check")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines[0] == (
        f"log/{segment.name}:{record.offset}: damaged, {record.size} bytes, message {identity(record.id)}"
    )
    assert lines[1].startswith("log/") and f"message {identity(record.id)}" in lines[1]
    assert lines[-3].startswith("6 messages: 0 incoming, 0 active, 6 deferred, 0 hold; 6 recipients left")
    assert lines[-1] == "2 faults"
    done = case.relay.command("queue", "check", "--repair")
    assert done.returncode == 0 and done.stdout.splitlines()[-2:] == ["2 faults put aside in quarantine/",
                                                                      "0 faults left"]
    assert "damage" in done.stderr and segment.name in done.stderr


def test_the_reader_agrees_with_the_vectors_of_rfc_3720():
    assert spool.crc32c(b"123456789") == 0xE3069283
    assert spool.crc32c(b"\0" * 32) == 0x8A9136AA
    assert struct.pack("<I", spool.crc32c(b"6789", spool.crc32c(b"12345"))) == bytes.fromhex("839206e3")
