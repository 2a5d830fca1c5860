# SPDX-License-Identifier: ISC
"""sluice sendmail while the relay is away: what it leaves is sent once, whatever happens meanwhile."""

import collections
import contextlib
import errno
import fcntl
import os
import pathlib
import pwd
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from lab import milter as m
from lab import received
from lab.config import Config, Raw
from lab.milter import Milter, packet
from lab.net import open_folder, wait_until
from lab.process import Process
from lab.relay import Relay, binary
from lab.sink import Rule

DONE, EX_DATAERR, EX_NOUSER, EX_TEMPFAIL = 0, 65, 67, 75
TEXT = "Subject: a test\n\nHello.\n"
SECONDS_TO_HANG = 250  # at most
SANITIZED = "build/" in os.environ.get("SLUICE_BIN", "")


def setting_out(lab, *rules, start=True, **settings):
    """A sink, and a relay that has run once, so that there is a maildrop."""
    sink = lab.sink(*rules)
    config = Config(settings=settings, queue={"minimal_backoff_time": "200ms"})
    relay = lab.relay(config.route_all_to(sink.port))
    relay.wait_event("recover")
    if not start:
        relay.stop()
    return relay, sink


def submit(relay, *words, text=TEXT, status=DONE):
    """Run sendmail and return what it says on standard error."""
    done = relay.command("sendmail", *(words or ["you@dest.test"]), stdin=text)
    assert done.returncode == status, done
    assert bool(done.stderr) == (status != DONE), done
    return done.stderr


def folder(relay, name):
    """The names in a folder of the queue."""
    return sorted(os.listdir(os.path.join(relay.spool, name)))


def dropped(relay):
    """Leave one message; return the path of its file."""
    before = set(folder(relay, "maildrop"))
    submit(relay, "-f", "me@sender.test", "you@dest.test")
    (name,) = set(folder(relay, "maildrop")) - before
    return pathlib.Path(relay.spool, "maildrop", name)


def start(relay):
    """Start the relay, and wait until it has read its queue."""
    before = len(relay.events("recover"))
    relay.start()
    relay.wait_event("recover", count=before + 1)


def subjects(sink):
    """How often each Subject came."""
    lines = (one.content.split(b"\r\nSubject: ")[1].split(b"\r\n")[0] for one in sink.messages)
    return collections.Counter(line.decode() for line in lines)


def settle(relay, sink, count):
    """Wait until all is sent and nothing is under way any more."""
    sink.wait_messages(count, 60)
    wait_until(lambda: not folder(relay, "maildrop") and not folder(relay, "taken"), 60, "a void")
    wait_until(lambda: not relay.command("queue", "list", "--json").stdout, 60, "an empty queue")


def test_what_is_left_while_the_relay_is_down_is_sent_when_it_starts(lab):
    relay, sink = setting_out(lab, start=False)
    submit(relay, "-f", "me@sender.test", "-N", "success,delay", "-R", "hdrs", "-V", "id+1",
           "a@dest.test", "B@Dest.Test", text="Subject: kept\n\n.one\n\ntwo \xe9\n")
    assert len(folder(relay, "maildrop")) == 1
    relay.start()
    (got,) = sink.wait_messages(1)
    assert (got.sender, got.recipients) == ("me@sender.test", ["a@dest.test", "B@dest.test"])
    assert (got.sender_params["RET"], got.sender_params["ENVID"]) == ("HDRS", "id+2B1")
    assert got.sender_params["BODY"] == "8BITMIME"
    assert got.recipient_params["a@dest.test"]["NOTIFY"] == "SUCCESS,DELAY"
    header, body = received.without(got.content).split(b"\r\n\r\n", 1)
    assert body == ".one\r\n\r\ntwo \xe9\r\n".encode()
    assert all(name in header for name in (b"Date: ", b"Message-ID: ", b"From: "))
    field, _ = received.split(got.content)
    assert f"by relay.test (sluice, from uid {os.getuid()})" in field
    queued = relay.wait_event("queued")
    assert queued["user"] == pwd.getpwuid(os.getuid()).pw_name and queued["via"] == "maildrop"
    assert queued["id"] == received.identity(got.content) and queued["from"] == "me@sender.test"
    settle(relay, sink, 1)
    assert not folder(relay, "quarantine")


def test_what_was_left_is_told_of_with_the_queue_on_disk(lab):
    """An empty list, while the mail of this machine waited, said that there was none."""
    relay, _ = setting_out(lab)
    relay.stop()
    offline = relay.command("queue", "list")
    assert "maildrop" not in offline.stderr, offline.stderr
    for count, said in ((1, "1 more waits in the maildrop"), (2, "2 more wait in the maildrop")):
        submit(relay, "a@dest.test", "b@dest.test")
        for words in (["queue", "list"], ["shape"], ["queue", "hold", "--all"]):
            done = relay.command(*words)
            assert done.returncode == DONE and said in done.stderr, done.stderr
    assert relay.command("queue", "list").stdout == offline.stdout


def test_a_relay_that_can_not_be_reached_takes_what_is_left_while_it_runs(lab):
    relay, sink = setting_out(lab)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with open(relay.config_path, encoding="utf-8") as stream:
        elsewhere = stream.read().replace(f":{relay.port}", f":{port}")
    path = os.path.join(relay.folder, "elsewhere.conf")
    pathlib.Path(path).write_text(elsewhere, encoding="utf-8")
    for number in range(3):
        done = subprocess.run([binary(), "sendmail", "-c", path, "you@dest.test"], check=False,
                              input=f"Subject: {number}\n\n", text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (DONE, "")
    settle(relay, sink, 3)
    assert set(subjects(sink).values()) == {1}


def test_a_large_message_and_many_recipients_go_through_the_maildrop(lab):
    relay, sink = setting_out(lab, start=False)
    names = [f"r{number}@dest.test" for number in range(300)]
    text = "Subject: large\n\n" + "x" * 70 + "\n" + "all of it\n" * 40000
    submit(relay, *names, text=text)
    start(relay)
    wait_until(lambda: sum(len(one.recipients) for one in sink.messages) == 300, 60, "them all")
    body = sink.messages[0].content.split(b"\r\n\r\n", 1)[1]
    assert body == text.split("\n\n", 1)[1].replace("\n", "\r\n").encode()
    settle(relay, sink, 1)
    wait_until(lambda: not folder(relay, "large"), what="the large file to go")


@pytest.mark.parametrize("running", [False, True])
def test_three_hundred_recipients_on_one_line_are_folded(lab, running):
    relay, sink = setting_out(lab, start=running)
    names = [f"recipient{number}@dest.test" for number in range(300)]
    page = "<p>a page</p>" * 5000
    submit(relay, "-t", text=f"Subject: one line\nTo: {', '.join(names)}\n\n{page}\n")
    if not running:
        start(relay)
    wait_until(lambda: sorted(to for one in sink.messages for to in one.recipients) == sorted(names), 60, "them all")
    header, body = sink.messages[0].content.split(b"\r\n\r\n", 1)
    assert max(len(line) for line in header.split(b"\r\n")) <= 998
    assert b"\r\nTo: " + ", ".join(names).encode() + b"\r\n" in header.replace(b"\r\n ", b" ") + b"\r\n"
    assert body == page.encode() + b"\r\n"


def test_aliases_hold_for_what_was_left(lab):
    relay, sink = setting_out(lab, start=False)
    relay.config.aliases["all@dest.test"] = {"to": ["a@dest.test", "b@dest.test"]}
    relay.write_config()
    submit(relay, "all@dest.test")
    relay.start()
    assert sink.wait_messages(1)[0].recipients == ["a@dest.test", "b@dest.test"]


# --- kill -9


def killed_while_taking(lab, kills, each, large_every, seed):
    """Leave messages and kill the relay, at some moment of the taking, again and again."""
    chance = random.Random(seed)
    relay, sink = setting_out(lab, start=False)
    sent = 0
    for number in range(kills):
        for _ in range(each):
            filling = "x" * 70 + "\n"
            filling *= 2500 if sent % large_every == 0 else 1
            submit(relay, text=f"Subject: {sent}\n\n{filling}")
            sent += 1
        relay.start()
        # From before recovery has ended, through claiming and storing, to sending.
        time.sleep(chance.uniform(0, 0.02) if number % 2 else chance.uniform(0, 0.1))
        relay.kill()
    start(relay)
    settle(relay, sink, sent)
    return relay, sink, sent


def check_ledger(relay, sink, sent):
    counts = subjects(sink)
    assert set(counts) == {str(number) for number in range(sent)}, "lost"
    # What was on its way to the sink at a kill may come twice, and the log has named it.
    named = collections.Counter(event["id"] for event in relay.events("recovered"))
    ids = collections.Counter(received.identity(one.content) for one in sink.messages)
    assert len(ids) == sent, "stored twice"
    assert all(named[one] >= count - 1 for one, count in ids.items()), "sent twice without a word"
    assert not folder(relay, "quarantine") and not relay.events("quarantined")


def test_what_was_left_is_sent_once_though_the_relay_is_killed_while_it_takes_it(lab):
    check_ledger(*killed_while_taking(lab, 4 if SANITIZED else 30, 4, 9, 1))


def wait_for_the_end(relay):
    """Wait until no process has the queue: those killed may linger."""
    with open(os.path.join(relay.spool, "lock"), "rb") as lock:
        def free():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        wait_until(free, what="the relay to be gone")


def killed_at(relay, call, nth):
    """Run the relay and kill it when a thread of it makes that system call for the nth time.

    Say whether that has come to be before all was taken.
    """
    wrapper = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}"]
    wrapper += ["-e", f"inject={call}:signal=SIGKILL:when={nth}"]
    command = [*wrapper, binary(), "serve", "-c", relay.config_path]
    process = Process(command, relay.stderr_path)

    def idle():
        return not folder(relay, "maildrop") and not folder(relay, "taken")

    deadline = time.monotonic() + 60
    while process.running() and not idle() and time.monotonic() < deadline:
        time.sleep(0.01)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.1)
    killed = not process.running()
    process.signal(signal.SIGKILL)
    process.wait()
    wait_for_the_end(relay)
    return killed


@pytest.mark.plain_only
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_a_kill_at_each_system_call_of_the_taking_costs_nothing_and_doubles_nothing(lab):
    relay, sink = setting_out(lab, start=False)
    sent = killed = 0
    for call, times in {"renameat": (1, 2, 3), "unlinkat": (2, 3), "fsync": (3, 4),
                        "fdatasync": (2, 3), "pwritev": (2, 3)}.items():
        for nth in times:
            for size in (1, 1, 100000):
                submit(relay, text=f"Subject: {sent}\n\n" + "x\n" * size)
                sent += 1
            killed += killed_at(relay, call, nth)
    assert killed >= 8
    start(relay)
    settle(relay, sink, sent)
    check_ledger(relay, sink, sent)


@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_the_queue_has_already_is_not_taken_twice(lab, again):
    """The crash between the store and the removal of the file, made by hand."""
    relay, sink = setting_out(lab, start=False)
    path = dropped(relay)
    copy = pathlib.Path(relay.folder, "copy")
    shutil.copy(path, copy)
    later = Rule("rcpt", "451 4.3.0 later")
    sink.behaviour.rules.append(later)
    start(relay)
    relay.wait_event("deferred")
    identity = relay.wait_event("queued")["id"]
    relay.kill()
    shutil.copy(copy, os.path.join(relay.spool, "taken", identity))
    start(relay)
    assert not folder(relay, "taken")
    if again:
        relay.kill()
        start(relay)
    sink.behaviour.rules.remove(later)
    settle(relay, sink, 1)
    assert len(sink.messages) == 1 and len(relay.events("queued")) == 1


# --- what is no message


def put_away(relay, count=1):
    """Wait until so many files are in quarantine, and return the last event of it."""
    event = relay.wait_event("quarantined", count=count)
    assert len(folder(relay, "quarantine")) == count
    return event


@pytest.mark.parametrize(
    "spoil, reason",
    [
        (lambda data: data[:-1], "not complete"),
        (lambda data: data + b"x", "not complete"),
        (lambda data: data.replace(b"Hello", b"hello"), "damaged"),
        (lambda data: data[:20], "begin"),
        (lambda data: b"", "begin"),
        (lambda data: b"\0" * len(data), "begin"),
        (lambda data: b"sluice maildrop 1 ffffffff 18446744073709551615\n", "begin"),
        (lambda data: b"sluice maildrop 1 00000000 0\n", "damaged"),
        (lambda data: None, "name"),
    ],
)
def test_a_torn_or_foreign_file_is_put_aside_and_holds_up_nothing(lab, spoil, reason):
    relay, sink = setting_out(lab, start=False)
    path = dropped(relay)
    data = spoil(path.read_bytes())
    if data is None:
        path.rename(path.with_name("letter.txt"))
    else:
        path.write_bytes(data)
    submit(relay, text="Subject: good\n\n")
    relay.start()
    assert reason in put_away(relay)["reason"]
    settle(relay, sink, 1)
    assert set(subjects(sink)) == {"good"}


def test_only_regular_files_with_one_name_are_taken(lab):
    relay, sink = setting_out(lab, start=False)
    drop = pathlib.Path(relay.spool, "maildrop")
    names = [f"0{number:012d}" for number in range(1, 6)]
    secret = pathlib.Path(relay.folder, "secret")
    secret.write_text("secret")
    (drop / names[0]).symlink_to(secret)
    os.mkfifo(drop / names[1])
    (drop / names[2]).mkdir()
    os.link(dropped(relay), pathlib.Path(relay.folder, "other"))
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(drop / names[3]))
    submit(relay, text="Subject: good\n\n")
    relay.start()
    put_away(relay, 5)
    reasons = collections.Counter(event["reason"] for event in relay.events("quarantined"))
    assert reasons["not a regular file"] == 4 and secret.read_text() == "secret"
    settle(relay, sink, 1)
    assert set(subjects(sink)) == {"good"}


def test_an_envelope_that_smuggles_is_refused(lab):
    relay, sink = setting_out(lab, start=False)
    path = dropped(relay)
    crc = load_crc()
    heads = [
        "from a@b.test\nto c@d.test> SIZE=1\n\n", "from a@b.test\nto c@d.test\r\n\n",
        "from a@b.test\n\n", "to c@d.test\n\n", "from \nfrom \nto c@d.test\n\n",
        "from \nnotify SOMETIMES\nto c@d.test\n\n", "from \nenvid a b\nto c@d.test\n\n",
        "from \nto c@[127.0.0.1]\n\n", "from \nret ALL\nto c@d.test\n\n", "from \nto c@d.test\n",
        "from \nmore x\nto c@d.test\n\n", "from a\0b@c.test\nto c@d.test\n\n",
    ]
    path.unlink()
    for number, head in enumerate(heads):
        data = head.encode() + b"Subject: bad\r\n\r\n"
        first = b"sluice maildrop 1 %08x %d\n" % (crc(data), len(data))
        path.with_name(f"0{number:012d}").write_bytes(first + data)
    data = b"from \nto c@d.test\n\nSubject: good\r\n\r\n"
    path.write_bytes(b"sluice maildrop 1 %08x %d\n" % (crc(data), len(data)) + data)
    relay.start()
    put_away(relay, len(heads))
    settle(relay, sink, 1)
    assert set(subjects(sink)) == {"good"}


def load_crc():
    """CRC32C, bit by bit."""
    def crc(data):
        value = 0xFFFFFFFF
        for byte in data:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        return value ^ 0xFFFFFFFF

    assert crc(b"123456789") == 0xE3069283
    return crc


def test_an_unfinished_file_is_not_taken_and_is_removed_when_it_is_old(lab):
    relay, sink = setting_out(lab, start=False)
    path = dropped(relay)
    young, old = path.with_name(".0000000000001"), path.with_name(".0000000000002")
    shutil.copy(path, young)
    path.rename(old)
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    start(relay)
    wait_until(lambda: not old.exists(), what="the old file to go")
    submit(relay, text="Subject: good\n\n")
    sink.wait_messages(1)
    assert folder(relay, "maildrop") == [young.name] and not folder(relay, "quarantine")
    assert set(subjects(sink)) == {"good"}


# --- limits, and no room


def test_limits_hold_on_both_ways(lab):
    relay, sink = setting_out(lab, start=False, message_size_limit="200k")
    relay.config.listeners["smtp"]["line_limit"] = 2048
    relay.write_config()
    submit(relay, text="Subject: x\n\n" + "y\n" * 200000, status=EX_DATAERR)
    assert "line" in submit(relay, text="Subject: x\n\n" + "y" * 5000, status=EX_DATAERR)
    assert "loop" in submit(relay, text="Received: x\n" * 60 + "\n", status=EX_DATAERR)
    assert "leads back" in submit(relay, "a@[127.0.0.1]", status=EX_NOUSER)
    submit(relay, "a@dest.test", "b@dest.test")
    submit(relay, text="Subject: good\n\n")
    submit(relay, text="Subject: x\n\n" + "y\n" * 60000)
    relay.config.settings["message_size_limit"] = "100k"
    relay.config.listeners["smtp"]["recipient_limit"] = 1
    relay.write_config()
    relay.start()
    assert put_away(relay)["reason"] == "Message size exceeds fixed limit"
    settle(relay, sink, 2)
    assert set(subjects(sink)) == {"a test", "good"}


@pytest.mark.parametrize("running", [True, False])
def test_a_message_to_five_thousand_goes_out_whole(lab, running):
    relay, sink = setting_out(lab, start=running)
    everybody = [f"r{n}@dest.test" for n in range(5000)]
    submit(relay, "-t", text="Subject: all\nBcc: " + ",\n ".join(everybody) + "\n\nHello.\n")
    if not running:
        relay.start()
    settle(relay, sink, 100)
    assert collections.Counter(name for one in sink.messages for name in one.recipients) == collections.Counter(everybody)
    assert relay.wait_event("queued")["nrcpt"] == "5000" and len(relay.events("queued")) == 1


def cost(relay, count):
    """Leave a message to so many, each named twice; return what of the processor's time that took."""
    everybody = [f"r{n}@dest.test" for n in range(count)] * 2
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    submit(relay, "-t", text="Subject: all\nBcc: " + ",\n ".join(everybody) + "\n\nHello.\n")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def test_each_of_many_recipients_costs_as_much_as_each_of_few(lab):
    relay, _ = setting_out(lab, start=False)
    few, many = cost(relay, 8000), cost(relay, 64000)
    assert many < 24 * few, (few, many)  # eight times as much; 64 times, if each is compared with all
    assert [one.read_bytes().count(b"\nto ") for one in sorted(pathlib.Path(relay.spool, "maildrop").iterdir())] == [8000, 64000]


def test_who_may_not_relay_by_smtp_may_not_by_the_maildrop(lab):
    relay, _ = setting_out(lab, start=False, networks=Raw('{ "192.0.2.0/24" }'))
    assert "Relay access denied" in submit(relay, status=EX_NOUSER)
    assert not folder(relay, "maildrop")


def _with_access(lab, name, *rows):
    path = lab.folder("tables") / name
    path.write_text("".join(f"{row}\n" for row in rows))
    return [str(path)]


def test_tables_of_access_hold_for_what_was_left(lab):
    """What a listener would refuse does not come in because the relay was down for a moment."""
    relay, sink = setting_out(
        lab, start=False,
        recipient_access=_with_access(lab, "recipients", "no@dest.test 550 5.7.9 not you", "later@dest.test 450 4.7.9 not yet",
                                      "held@dest.test hold", "gone@dest.test discard", "vip@dest.test flow vip"),
        sender_access=_with_access(lab, "senders", "bad@sender.test reject", "void@sender.test discard"))
    for sender, *to in [("a", "no", "you"), ("a", "later"), ("a", "held"), ("a", "gone", "one"), ("a", "gone"), ("a", "vip"),
                        ("bad", "you"), ("void", "you")]:
        submit(relay, "-f", f"{sender}@sender.test", *(f"{name}@dest.test" for name in to))
    start(relay)
    wait_until(lambda: not folder(relay, "maildrop") and len(relay.events("queued")) == 3, 60, "what may be sent")
    relay.wait_event("discard", reason="no recipient is left", count=2)
    assert relay.wait_event("discard", to="you@dest.test")["reason"] == "sender_access"
    assert len(relay.events("discard", to="gone@dest.test", reason="recipient_access")) == 2
    assert {one["reason"] for one in relay.wait_event("quarantined", count=2) and relay.events("quarantined")} == {
        "550 5.7.9 not you", "550 5.7.1 access denied"}
    assert relay.wait_event("maildrop")["reason"] == "450 4.7.9 not yet" and folder(relay, "taken")
    assert relay.wait_event("queued", flow="vip")
    wait_until(lambda: len(sink.messages) == 2, 60, "the mail of those who may have it")
    assert sorted(one.recipients[0] for one in sink.messages) == ["one@dest.test", "vip@dest.test"]
    assert "held@dest.test" in relay.command("queue", "list", "--queue", "hold").stdout
    pathlib.Path(relay.config.settings["recipient_access"][0]).write_text("other@dest.test accept\n")
    assert "later@dest.test" in relay.wait_event("sent", to="later@dest.test")["to"]


def test_where_there_is_no_maildrop_sendmail_says_so(lab):
    relay = lab.relay(start=False)
    text = submit(relay, status=EX_TEMPFAIL)
    assert "cannot be reached" in text and f"{relay.spool}/maildrop: No such file" in text


def test_no_room_leaves_nothing_half_written(lab):
    relay, _ = setting_out(lab, start=False)
    large = "Subject: x\n\n" + "y\n" * 60000
    limited = ["prlimit", "--fsize=20000", binary(), "sendmail", "-c", relay.config_path, "a@b.test"]
    done = subprocess.run(limited, input=large, text=True, capture_output=True, check=False)
    assert done.returncode == EX_TEMPFAIL and "File too large" in done.stderr
    assert not folder(relay, "maildrop")
    relay.config.settings["queue_minfree"] = "1024000m"
    relay.write_config()
    assert "there is no room" in submit(relay, status=EX_TEMPFAIL)
    assert not folder(relay, "maildrop")


def test_a_queue_without_room_leaves_the_message_for_later(lab):
    relay, sink = setting_out(lab, start=False)
    submit(relay)
    relay.config.settings["queue_minfree"] = "1024000m"
    relay.write_config()
    start(relay)
    time.sleep(0.5)
    assert not relay.events("queued") and not sink.messages
    relay.config.settings["queue_minfree"] = "0"
    relay.write_config()
    assert relay.command("reload").returncode == DONE
    settle(relay, sink, 1)


def _by_maildrop_alone(lab, **settings):
    """A sink, and a relay that local mail reaches by the maildrop only, also while it runs."""
    sink = lab.sink()
    certificate, key = lab.certificates.host("relay.test")
    config = Config(settings=settings, listeners={"smtp": {"tls": "required", "certificate": certificate, "key": key}})
    return config.route_all_to(sink.port), sink


def test_a_key_that_can_not_be_read_holds_up_no_others_mail(lab):
    """Each attempt fails until somebody sees to it, and none of it is a fault of the queue."""
    keys = lab.folder("keys")
    (keys / "table").write_text(f"sender.test s1 {keys / 's1.pem'}\n")
    config, sink = _by_maildrop_alone(lab, dkim_keys=[str(keys / "table")])
    relay = lab.relay(config)
    began = time.monotonic()
    submit(relay, "-f", "me@sender.test", "you@dest.test", text="Subject: unsigned\nFrom: me@sender.test\n\n")
    relay.wait_event("dkim", result="failed")
    for count, name in enumerate(("one", "two"), 1):
        submit(relay, "-f", "me@other.test", "you@dest.test", text=f"Subject: {name}\n\n")
        sink.wait_messages(count)
    assert subjects(sink) == {"one": 1, "two": 1}
    # Put off for five seconds each time, not tried with each of the others.
    assert len(relay.events("dkim", result="failed")) <= 1 + (time.monotonic() - began) / 5
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(keys / "s1.pem")], check=True)
    settle(relay, sink, 3)
    assert subjects(sink)["unsigned"] == 1


def test_a_filter_that_hangs_on_a_message_holds_up_no_others_mail(lab):
    """That one waits for its timeout, and is asked about again, for as long as it lies there."""
    released, one = threading.Event(), Milter()
    lab.callback(one.close)
    lab.callback(released.set)

    def think(_conversation, data):
        if b"poison" in data:
            released.wait(SECONDS_TO_HANG)
        return packet(m.CONTINUE)

    one.behave({"L": think})
    config, sink = _by_maildrop_alone(lab)
    config.extra = f'milter "one" {{ address = "{one.address}"  timeout = 1h  local = true }}\n'
    relay = lab.relay(config)
    submit(relay, text="Subject: poison\n\n")
    wait_until(lambda: any(b"poison" in data for said in one.conversations for data in said.all(b"L")), 60, "the filter to hang")
    for count, name in enumerate(("one", "two"), 1):
        submit(relay, text=f"Subject: {name}\n\n")
        sink.wait_messages(count)
    assert subjects(sink) == {"one": 1, "two": 1}
    released.set()
    settle(relay, sink, 3)
    assert subjects(sink)["poison"] == 1


def test_content_that_can_not_be_written_holds_up_no_others_mail(lab, monkeypatch):
    """A limit of the relay's on files is one on large messages alone."""
    monkeypatch.setenv("SLUICE_WRAPPER", f"prlimit --fsize={2 << 20} --")
    config, sink = _by_maildrop_alone(lab, segment_size="256k")
    relay = lab.relay(config)
    submit(relay, text="Subject: large\n\n" + "some words to fill a file with\n" * 100000)
    assert relay.wait_event("maildrop")["reason"] == f"its content cannot be written: {os.strerror(errno.EFBIG)}"
    for count, name in enumerate(("one", "two"), 1):
        submit(relay, text=f"Subject: {name}\n\n")
        sink.wait_messages(count)
    assert subjects(sink) == {"one": 1, "two": 1}
    assert len(relay.events("maildrop")) == 1


# --- other users


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("relay_user", ["root", "daemon"])
def test_any_user_can_leave_mail_and_nobody_can_see_that_of_others(lab, relay_user):
    path = lab.enter_context(open_folder("sluice-maildrop-"))
    sluice = shutil.copy(binary(), os.path.join(path, "sluice"))
    sink = lab.sink()
    config = Config(settings={"user": relay_user, "log": "stderr"}).route_all_to(sink.port)
    relay = Relay(path, config)
    relay.log_path = relay.stderr_path
    lab.callback(relay.close)
    relay.start()
    relay.wait_event("recover")
    assert relay.stop() == 0
    mode = stat.S_IMODE(os.stat(os.path.join(relay.spool, "maildrop")).st_mode)
    assert mode == 0o3733

    def as_user(user, *words, text=None):
        entry = pwd.getpwnam(user)
        command = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}",
                   "--clear-groups", *words]
        # A sanitizer's list of suppressions may lie where only root can read it.
        return subprocess.run(command, input=text, text=True, capture_output=True, check=False,
                              env={**os.environ, "TSAN_OPTIONS": ""})

    def leave(user):
        return as_user(user, sluice, "sendmail", "-c", relay.config_path, "you@dest.test",
                       text=f"Subject: {user}\n\n")

    for user in ("nobody", "bin", "root"):
        done = leave(user)
        assert (done.returncode, done.stderr) == (DONE, ""), done
    for name in folder(relay, "maildrop"):
        file = os.path.join(relay.spool, "maildrop", name)
        status = os.stat(file)
        assert stat.S_IMODE(status.st_mode) == 0o640
        assert status.st_gid == pwd.getpwnam(relay_user).pw_gid
        other = "sys"
        for words in (["cat", file], ["rm", "-f", file], ["mv", file, file + "x"],
                      ["ls", os.path.dirname(file)], ["ls", relay.spool],
                      ["ls", os.path.join(relay.spool, "taken")]):
            done = as_user(other, *words)
            assert done.returncode != 0 and "denied" in done.stderr or "permitted" in done.stderr
    relay.start()
    settle(relay, sink, 3)
    assert subjects(sink) == {"nobody": 1, "bin": 1, "root": 1}
    relay.wait_event("queued", count=3)
    assert {event["user"] for event in relay.events("queued")} == {"nobody", "bin", "root"}
