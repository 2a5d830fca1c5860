# SPDX-License-Identifier: ISC
"""A disk that is really full: a small file system in memory, filled by others."""

import errno
import http.client
import os
import shutil
import subprocess

import pytest

from lab.config import Config
from lab.milter import CONTINUE, Milter, add_header, packet
from lab.net import LOOPBACK, free_port, wait_until
from lab.sink import Rule

TEXT = b"Subject: a test\r\n\r\n" + b"some words to fill the disk with\r\n" * 300


@pytest.fixture
def small_disk(lab):
    """Mount eight megabytes of memory as a file system, or skip the test."""
    folder = str(lab.folder("disk"))
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "sluice-test", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    lab.callback(subprocess.run, ["umount", "--lazy", folder], check=True)
    return folder


def _fill(folder):
    """Leave no room at all."""
    path = os.path.join(folder, "filler")
    with open(path, "ab", buffering=0) as stream:
        size = 1 << 20
        while size >= 1:
            try:
                while stream.write(b"x" * size) == size:
                    pass
            except OSError:
                pass
            size //= 2
    return path


def _stat(relay, name):
    for line in relay.command("stats").stdout.splitlines():
        if line.rpartition(" ")[0] == name:
            return int(line.rpartition(" ")[2])
    return 0


def _status(relay):
    host, _, port = relay.config.settings["http"].rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("GET", "/healthz")
    return connection.getresponse().status


def _try(client, recipient):
    """Send one message; return the reply that ended it."""
    for line in ("MAIL FROM:<from@sender.test>", f"RCPT TO:<{recipient}>", "DATA"):
        client.send(line)
        reply = client.read_reply()
        if reply.code >= 400:
            return reply
    client.send(TEXT + b".\r\n")
    return client.read_reply()


def _send_until_refused(relay, limit=2000):
    """Send messages one after the other; return how many were taken, and the refusal."""
    with relay.client() as client:
        client.greet()
        for number in range(limit):
            reply = _try(client, f"to{number}@dest.test")
            if reply.code != 250:
                return number, reply
    raise AssertionError("the disk was never full")


def _send_one(relay):
    with relay.client() as client:
        client.greet()
        return _try(client, "to@dest.test").code == 250


def _with_one_deferred(lab, small_disk):
    """Return a host that takes nothing until its rules are cleared, and a relay with a message for it."""
    sink = lab.sink(Rule("rcpt", "451 4.2.1 not yet"))
    config = Config(
        settings={"segment_size": "256k", "queue_minfree": "0", "spool": f"{small_disk}/spool"},
        queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"},
    ).route_all_to(sink.port)
    relay = lab.relay(config)
    relay.send(content=TEXT)
    relay.wait_event("deferred")
    return sink, relay


def test_a_full_disk_refuses_new_mail_and_delivers_what_there_is(lab, small_disk):
    sink, relay = _with_one_deferred(lab, small_disk)
    filler = _fill(small_disk)
    taken, reply = _send_until_refused(relay)
    assert reply.code == 452 and "4.3.1" in reply.text
    assert taken > 0
    wait_until(lambda: _stat(relay, "queue_disk_full") or _stat(relay, "queue_disk_failing"), 60,
               "the operator to be told")
    # What was taken is delivered, and recorded, without any room beside the reserve.
    relay.wait_event("deferred", count=taken + 1)
    sink.behaviour.rules.clear()
    relay.command("queue", "flush", "--all")
    sink.wait_messages(taken + 1, 60)
    relay.wait_event("done", count=taken + 1)
    os.unlink(filler)
    wait_until(lambda: _send_one(relay), 60, "new mail to be taken again")
    sink.wait_messages(taken + 2)
    relay.wait_event("done", count=taken + 2)
    relay.restart()
    relay.wait_event("recover", count=2)
    assert relay.command("queue", "list", "--json").stdout == ""
    assert len(sink.messages) == taken + 2


def test_a_relay_starts_on_a_full_disk_and_delivers_what_there_is(lab, small_disk):
    sink, relay = _with_one_deferred(lab, small_disk)
    for starts in range(2, 5):  # the reserve is not used up by starts
        filler = _fill(small_disk)
        assert relay.command("restart").returncode == 0
        relay.wait_event("recover", count=starts)  # it makes segments that are not written any more as small as they are
    _fill(small_disk)
    with relay.client() as client:
        client.greet()
        assert _try(client, "to@dest.test").code == 452
    sink.behaviour.rules.clear()
    assert relay.command("queue", "flush", "--all").returncode == 0
    relay.wait_event("done")
    os.unlink(filler)
    wait_until(lambda: _send_one(relay), 60, "new mail to be taken again")
    relay.wait_event("done", count=2)
    assert len(sink.messages) == 2


def test_a_restart_is_refused_where_the_next_could_not_write(lab):
    """A disk that became read-only is no reason to end: what runs still has the queue, and says what is wrong."""
    relay = lab.relay(Config().route_all_to(lab.sink().port))
    for words in (["--bind", relay.spool, relay.spool], ["-o", "remount,bind,ro", relay.spool]):
        done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        if words[0] == "--bind":
            lab.callback(subprocess.run, ["umount", "--lazy", relay.spool], check=False)
    refused = relay.command("restart")
    assert refused.returncode == 1 and "Read-only file system" in refused.stderr
    relay.wait_event("restart", result="refused")
    assert relay.send().code == 250
    subprocess.run(["umount", relay.spool], check=True)
    assert relay.command("restart").returncode == 0
    assert relay.send().code == 250


@pytest.fixture
def freezable_disk(lab):
    """Mount a file system that can be frozen, or skip the test. What freezes it ends that, too, before the relay is to end."""
    folder, image = str(lab.folder("disk")), str(lab.folder("image") / "image")
    with open(image, "wb") as stream:
        stream.truncate(64 << 20)
    for words in (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, folder]):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    lab.callback(subprocess.run, ["umount", "--lazy", folder], check=True)
    return folder


def test_a_disk_that_does_not_answer_is_told_until_it_does(lab, freezable_disk):
    config = Config({"segment_size": "256k", "spool": f"{freezable_disk}/spool", "http": f"{LOOPBACK}:{free_port()}"})
    relay = lab.relay(config.route_all_to(lab.sink().port))
    relay.send()
    relay.wait_event("done")
    with relay.client(timeout=120) as client:
        client.greet()
        subprocess.run(["fsfreeze", "--freeze", freezable_disk], check=True)
        try:
            for line, code in (("MAIL FROM:<from@sender.test>", 250), ("RCPT TO:<to@dest.test>", 250), ("DATA", 354)):
                client.command(line, code)
            client.send(TEXT + b".\r\n")
            relay.wait_event("condition", 60, name="disk_stands", state="on")
            assert _status(relay) == 503
        finally:
            subprocess.run(["fsfreeze", "--unfreeze", freezable_disk], check=True)
        client.expect(250)
    relay.wait_event("condition", 60, name="disk_stands", state="off")
    relay.wait_event("done", count=2)
    wait_until(lambda: _status(relay) == 200, 60, "it to be well again")


def test_a_login_that_is_suspended_on_a_full_disk_stays_so_when_there_is_room(lab, small_disk):
    relay = lab.relay(Config({"segment_size": "256k", "spool": f"{small_disk}/spool"}))
    relay.wait_event("recover")
    filler = _fill(small_disk)
    for verb in ("suspend", "resume", "suspend"):
        order = relay.command("user", verb, "eve")
        assert order.returncode == 1 and order.stdout.startswith(f"eve {verb}") and "would undo this" in order.stderr
    os.unlink(filler)
    wait_until(lambda: os.path.exists(f"{small_disk}/spool/suspended"), 60, "it to be written")
    relay.kill()
    relay.start()
    assert "eve suspended" in relay.command("user", "list").stdout
    assert relay.command("user", "resume", "eve").returncode == 0


def test_a_domain_that_is_suspended_on_a_full_disk_stays_so_when_there_is_room(lab, small_disk):
    relay = lab.relay(Config({"segment_size": "256k", "spool": f"{small_disk}/spool"}))
    relay.wait_event("recover")
    filler = _fill(small_disk)
    said = relay.command("dest", "suspend", "dest.test")
    assert said.returncode == 1 and "a restart before it does would undo this" in said.stderr
    relay.wait_event("destdb")
    os.unlink(filler)
    wait_until(lambda: os.path.exists(f"{small_disk}/spool/destdb"), 60, "it to be written")
    relay.kill()
    relay.start()
    assert "suspended: dest.test" in relay.command("dest").stdout


def test_a_message_that_filters_change_finds_no_room(lab, small_disk):
    """There is room for what came, and none for what is made of it."""
    milter, sink = Milter(), lab.sink()
    lab.callback(milter.close)
    milter.behave({"E": add_header("X-Seen", "1") + packet(CONTINUE)})
    config = Config({"workers": 1, "segment_size": "256k", "queue_minfree": "0", "spool": f"{small_disk}/spool"}).route_all_to(sink.port)
    config.extra = f'milter "one" {{ address = "{milter.address}" }}\n'
    relay = lab.relay(config)
    relay.wait_event("recover")
    room = os.statvfs(small_disk)
    line = b"some words to fill the disk with\r\n"
    large = b"Subject: large\r\n\r\n" + line * (room.f_bavail * room.f_frsize * 2 // 3 // len(line))
    with relay.client() as client:
        client.greet()
        assert "4.3.1" in client.send_mail("from@sender.test", ["to@dest.test"], large, 452).text
        client.send_mail("from@sender.test", ["to@dest.test"], TEXT, 250)
    assert relay.wait_event("not_stored")["error"] == os.strerror(errno.ENOSPC)
    relay.wait_event("done")


@pytest.mark.parametrize("last", ["LAST", ""])
def test_why_a_chunk_finds_no_room_is_said(lab, monkeypatch, last):
    """Be it the last of its message or one of many, the reply is to it."""
    monkeypatch.setenv("SLUICE_WRAPPER", f"prlimit --fsize={2 << 20} --")
    relay = lab.relay(Config({"segment_size": "256k"}).route_all_to(free_port()))
    large = b"Subject: large\r\n\r\n" + b"some words to fill a file with\r\n" * 100000
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>", 250)
        client.command("RCPT TO:<to@dest.test>", 250)
        client.send(f"BDAT {len(large)} {last}\r\n".encode() + large)
        assert "4.3.1" in client.expect(452).text
    assert relay.wait_event("not_stored")["error"] == os.strerror(errno.EFBIG)
    assert len(relay.events("not_stored")) == 1


def test_why_the_content_of_a_message_finds_no_room_is_said(lab, monkeypatch):
    """A limit of the relay's on files is no fault of the disk: only the log can say why others are taken."""
    monkeypatch.setenv("SLUICE_WRAPPER", f"prlimit --fsize={2 << 20} --")
    relay = lab.relay(Config({"segment_size": "256k"}).route_all_to(free_port()))
    large = b"Subject: large\r\n\r\n" + b"some words to fill a file with\r\n" * 100000
    with relay.client() as client:
        client.greet()
        assert "4.3.1" in client.send_mail("from@sender.test", ["to@dest.test"], large, 452).text
        client.send_mail("from@sender.test", ["to@dest.test"], TEXT, 250)
    assert relay.wait_event("not_stored")["error"] == os.strerror(errno.EFBIG)
    assert len(relay.events("not_stored")) == 1


def test_a_queue_that_was_removed_takes_no_mail(lab):
    """Its files took all that was written to them, and were gone with the relay."""
    relay = lab.relay(Config().route_all_to(free_port()))
    assert relay.send().code == 250
    log = os.path.join(relay.spool, "log")
    while os.path.exists(log):  # the relay makes spare files there meanwhile
        shutil.rmtree(log, ignore_errors=True)
    event = relay.wait_event("condition", name="disk_failing", state="on")
    assert event["reason"] == os.strerror(errno.ENOENT)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 452)
