# SPDX-License-Identifier: ISC
"""sluice trace: what has become of a message, and of somebody's mail, from the log and the queue."""

import gzip
import json
import lzma
import os
import re
import shutil
import subprocess
import time

import pytest

from lab import sasl
from lab.behaviour import Rule
from lab.config import Config
from lab.net import LOOPBACK, wait_until

FORMS = ["text", "json", "postfix"]


def _send(relay, sender, recipients, message_id="<one@writer.test>"):
    """Hand over a message, and return its id."""
    content = f"Message-ID: {message_id}\r\nSubject: x\r\n\r\nx\r\n".encode()
    with relay.client() as client:
        client.greet()
        return re.search(r"queued as (\S+)", client.send_mail(sender, recipients, content).text)[1]


def _relay(lab, form, *rules, login=None):
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    config.route_all_to(lab.sink(*rules).port)
    config.settings["networks"] = [f"{LOOPBACK}/32"]
    if login:
        users = lab.folder("users") / "users"
        assert sasl.passwd(users, login, "secret").returncode == 0
        config.listeners["smtp"] = {"auth": True}
        config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
    relay = lab.relay(config, log_format=form, start=False)
    return relay.start() if form == "text" else relay.start_mute()


def _stories(done):
    """Return what was told of each id: its lines without their times."""
    stories = {}
    for line in done.stdout.splitlines():
        if not line.startswith("  "):
            identity = line.split()[0]
            stories[identity] = [line]
        else:
            stories[identity].append(re.sub(r"^  (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}  )?", "", line))
    return stories


def _traffic(relay):
    """One message that arrives, one that is put off, one that fails; and a refusal."""
    ids = [
        _send(relay, "ann@writer.test", ["good@to.test", "other@to.test"]),
        _send(relay, "bob@writer.test", ["later@to.test"], "<two@writer.test>"),
        _send(relay, "ann@writer.test", ["gone@to.test"], "<three@writer.test>"),
    ]
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<ann@writer.test> SIZE=999999999", 552)
    wait_until(lambda: "451" in relay.log_text() and re.search(rf"{ids[2]}.*(removed|age)", relay.log_text()),
               60, "all mail to be tried")
    return ids


RULES = (Rule("rcpt", "451 4.2.1 come back", pattern="^later"), Rule("rcpt", "550 5.1.1 no such user", pattern="^gone"))


@pytest.mark.parametrize("form", FORMS)
def test_an_address_tells_all_of_somebodys_mail(lab, form):
    relay = _relay(lab, form, *RULES)
    first, later, failed = _traffic(relay)
    # A report goes back to the sender; both it and the mail that it is of are told.
    report = wait_until(lambda: re.search(r"report_of\W+|sender notification: ", relay.log_text()) and
                        re.findall(r"\b[0-9A-Z]{13}\b", relay.command("trace", failed, "--json").stdout), 60, "the report")
    wait_until(lambda: len(_stories(relay.command("trace", "ann@writer.test"))) == 4 and
               "delivered to <ann@writer.test>" in relay.command("trace", "ann@writer.test").stdout, 60, "the report to arrive")
    wait_until(lambda: "now: not in the queue" in _stories(relay.command("trace", first))[first], 60, "the end of the first")
    done = relay.command("trace", "Ann@Writer.test")
    assert done.returncode == 0 and not done.stderr, done
    stories = _stories(done)
    told = stories[first]
    assert told[0].startswith(f"{first}  from <ann@writer.test>  message-id <one@writer.test>"), told
    assert any(line.startswith(f"accepted from {LOOPBACK}") for line in told)
    assert any(line.startswith("delivered to <good@to.test> by ") and "250" in line for line in told)
    assert any(line.startswith("delivered to <other@to.test> by ") for line in told)
    assert told[-2:] == ["done: nobody is left to deliver it to", "now: not in the queue"]
    assert any("failed for <gone@to.test>" in line and "550 5.1.1 no such user" in line for line in stories[failed])
    assert any(line.startswith(f"report on message {failed} made") for line in stories[failed]), stories
    assert later not in stories and report
    assert any("552 5.3.4" in line for line in stories["no"]), stories
    assert _stories(relay.command("trace", "good@to.test")).keys() == {first}


@pytest.mark.parametrize("form", FORMS)
def test_an_address_is_found_in_each_of_its_spellings(lab, form):
    """What had left the queue was neither in the log nor in the queue, but under the name that the client had used."""
    relay = _relay(lab, form)
    spellings = {
        "ann@xn--bcher-kva.test": ["ann@b\u00fccher.test", "Ann@B\u00dcCHER.test.", '"ann"@xn--Bcher-kva.test'],
        '"b.c"@to.test': ["b.c@to.test.", '"B.C"@to.test', "<b.c@to.test>"],
        "d@[IPv6:2001:DB8:0::1]": ["d@[IPv6:2001:db8::1]", "d@[ipv6:2001:0db8:0::1]"],
    }
    ids = [_send(relay, "ann@writer.test", [address], f"<{number}@writer.test>") for number, address in enumerate(spellings)]
    for identity, (address, others) in zip(ids, spellings.items()):
        wait_until(lambda identity=identity: "now: not in the queue" in relay.command("trace", identity).stdout, what="the end of it")
        for spelling in [address, *others]:
            assert _stories(relay.command("trace", spelling)).keys() == {identity}, spelling
    assert relay.command("trace", "nn@b\u00fccher.test").returncode == 1


@pytest.mark.parametrize("form", FORMS)
def test_an_id_or_a_message_id_tells_one_message_and_where_it_is(lab, form):
    relay = _relay(lab, form, *RULES)
    first, later, _ = _traffic(relay)
    for word in (later, later.lower(), "<two@writer.test>", "two@writer.test"):
        stories = _stories(relay.command("trace", word))
        assert stories.keys() == {later}
        assert any(line.startswith("put off for <later@to.test>") and "451 4.2.1 come back" in line for line in stories[later])
        assert re.match(r"now: in the queue, deferred .*next=in .*451 4.2.1 come back", stories[later][-1]), stories
    told = json.loads(relay.command("trace", later, "--json").stdout)
    assert told["id"] == later and told["from"] == "bob@writer.test" and told["message_id"] == "<two@writer.test>"
    assert [e["event"] for e in told["events"] if e["event"] in ("queued", "deferred")][-1] == "deferred"
    assert told["size"] == told["queue"]["size"] and isinstance(told["size"], int)
    assert told["queue"]["queue"] == "deferred" and told["events"][0]["time"].endswith("Z")
    assert json.loads(relay.command("trace", first, "--json").stdout)["queue"] is None
    # No relay is needed.
    relay.stop()
    assert _stories(relay.command("trace", later))[later][-1].startswith("now: in the queue, deferred ")
    gone = relay.command("trace", "nobody@nowhere.test")
    assert gone.returncode == 1 and "neither in the log nor in the queue" in gone.stderr and not gone.stdout


def test_mail_is_found_by_the_message_id_that_the_relay_gave_it(lab):
    """Whoever has the message has that of its header; the log did not."""
    sink = lab.sink(Rule("rcpt", "550 5.1.1 nobody", pattern="never"))
    relay = lab.relay(Config(listeners={"smtp": {"add_missing_headers": True}}).route_all_to(sink.port))
    relay.send("from@dest.test", ["to@dest.test"], b"Subject: one\r\n\r\nHello.\r\n")
    relay.send("from@dest.test", ["never@dest.test"], b"Message-ID: <own@sender.test>\r\n\r\nHello.\r\n")
    queued = {event["id"]: event for event in relay.wait_events("queued", count=3)}
    for message in sink.wait_messages(2):
        given, = re.findall(rb"(?im)^Message-ID: (<.*>)\r$", message.content.split(b"\r\n\r\n")[0])
        number, = [one for one, event in queued.items() if event.get("message_id") == given.decode()]
        assert relay.command("trace", given.decode()).stdout.startswith(number)
    assert "<own@sender.test>" in {event.get("message_id") for event in queued.values()}


@pytest.mark.parametrize("form", FORMS)
def test_a_login_that_looks_like_an_id_tells_its_mail(lab, form):
    login = "4915112345678"
    relay = _relay(lab, form, login=login)
    with relay.client() as client:
        client.greet()
        client.command(f"AUTH PLAIN {sasl.plain(login, 'secret')}", 235)
        identity = re.search(r"queued as (\S+)", client.send_mail("ann@writer.test", ["good@to.test"]).text)[1]
    wait_until(lambda: re.search(rf"{identity}.*(250|sent)", relay.log_text()), 60, "the mail to be sent")
    done = relay.command("trace", login)
    # The form postfix does not tell of which session a login is: there it follows by itself.
    assert done.returncode == 0 and not done.stderr and next(iter(_stories(done))) == identity, done
    assert json.loads(relay.command("trace", login, "--json").stdout.splitlines()[0])["id"] == identity
    absent = relay.command("trace", "4915112345679")
    assert absent.returncode == 1 and absent.stderr.count("neither in the log nor in the queue") == 1 and not absent.stdout


def test_the_story_begins_with_the_session(lab):
    relay = _relay(lab, "text")
    identity = _send(relay, "ann@writer.test", ["good@to.test"])
    relay.wait_event("queued", id=identity)
    told = _stories(relay.command("trace", identity))[identity]
    assert told[1] == f"{LOOPBACK} connects", told


def test_a_message_that_is_gone_is_to_be_traced(lab):
    relay = _relay(lab, "text")
    identity = _send(relay, "ann@writer.test", ["good@to.test"])
    relay.wait_event("done")
    shown = relay.command("queue", "show", identity)
    assert shown.returncode == 1 and f"sluice trace {identity}" in shown.stderr
    assert "delivered to <good@to.test>" in relay.command("trace", identity).stdout


def _days(relay, names):
    """Make rotated logs, each with one message of one day, the oldest last; return the ids by name."""
    with open(relay.log_path, encoding="utf-8") as stream:
        lines = stream.read().splitlines(keepends=True)
    ids = {}
    now = time.time()
    for back, name in enumerate(names, 1):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now - back * 86400))
        old = next(line.split("id=")[1].split()[0] for line in lines if " queued " in line)
        # An id is a time; this one is so many days before.
        number = _number(old) - (back * 86400 * 10**6 << 12)
        ids[name] = _text(number)
        text = "".join(re.sub(r"^\S+", stamp, line).replace(old, ids[name]) for line in lines).encode()
        pack = {"gz": gzip.compress, "xz": lzma.compress}.get(name.rpartition(".")[2], lambda data: data)
        if name.endswith(".zst"):
            pack = lambda data: subprocess.run(["zstd", "-cq"], input=data, capture_output=True, check=True).stdout
        half = len(text) // 2
        path = os.path.join(relay.folder, name)
        with open(path, "wb") as stream:
            # Compressed in two parts, as gzip may be.
            stream.write(pack(text[:half]) + pack(text[half:]))
        os.utime(path, (now - back * 86400, now - back * 86400))
    return ids


ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _number(text):
    return sum(ALPHABET.index(c) << 5 * i for i, c in enumerate(reversed(text)))


def _text(number):
    return "".join(ALPHABET[number >> 5 * i & 31] for i in range(12, -1, -1))


@pytest.mark.parametrize("names", [
    ["log.1", "log.2.gz", "log.3.xz"],
    ["log-20261122", "log-20261121.gz", "log-20261120-1795132800.gz"],
    ["log.1.gz", "log.10.gz", "log.2.zst"],
])
def test_rotated_and_compressed_logs_are_read_in_the_order_of_time(lab, names):
    if any(name.endswith(".zst") for name in names) and not shutil.which("zstd"):
        pytest.skip("there is no zstd")
    relay = _relay(lab, "text")
    newest = _send(relay, "ann@writer.test", ["good@to.test"])
    relay.wait_event("done")
    relay.stop()
    ids = _days(relay, names)
    for stray in ("log.old", "log.1.swp", "logs.1", "log-x.gz", "log.1.gz.part"):
        shutil.copy(relay.log_path, os.path.join(relay.folder, stray))
    done = relay.command("trace", "ann@writer.test")
    assert done.returncode == 0 and not done.stderr
    oldest_first = [ids[name] for name in reversed(names)] + [newest]
    assert list(_stories(done)) == oldest_first
    assert all("done: nobody is left to deliver it to" in story for story in _stories(done).values())
    for name in names:
        assert "delivered to" in relay.command("trace", ids[name]).stdout
    day = time.strftime("%Y-%m-%d", time.localtime(time.time() - 86400))
    assert list(_stories(relay.command("trace", "ann@writer.test", "--since", day, "--until", day))) == [ids[names[0]]]
    assert list(_stories(relay.command("trace", "ann@writer.test", "--since", "36h"))) == [ids[names[0]], newest]
    assert newest not in _stories(relay.command("trace", "ann@writer.test", "--until", "yesterday"))
    assert list(_stories(relay.command("trace", "ann@writer.test", "--last", "2"))) == [ids[names[0]], newest]


def test_a_damaged_log_is_said_and_the_others_are_read(lab):
    relay = _relay(lab, "text")
    newest = _send(relay, "ann@writer.test", ["good@to.test"])
    relay.wait_event("done")
    relay.stop()
    _days(relay, ["log.1.gz"])
    path = os.path.join(relay.folder, "log.1.gz")
    with open(path, "r+b") as stream:
        stream.truncate(os.path.getsize(path) - 40)
    done = relay.command("trace", "ann@writer.test")
    assert done.returncode == 1 and "log.1.gz: it breaks off" in done.stderr
    assert newest in _stories(done)


def test_a_log_on_standard_input_and_times_that_are_none(lab):
    relay = _relay(lab, "text")
    identity = _send(relay, "ann@writer.test", ["good@to.test"])
    relay.wait_event("done")
    log = relay.log_text()
    relay.config.settings["log"] = "stderr"
    relay.write_config()
    without = relay.command("trace", "ann@writer.test")
    assert without.returncode == 1 and "--log" in without.stderr
    assert identity in _stories(relay.command("trace", "ann@writer.test", "--log", "-", stdin=log))
    assert identity in _stories(relay.command("trace", "ann@writer.test", "--log", relay.log_path))
    # By its name a pipe can be read once, too.
    assert identity in _stories(relay.command("trace", "ann@writer.test", "--log", "/dev/stdin", stdin=log))
    for words in (["x@y.test", "--since", "tomorrow"], ["x@y.test", "--since", ""], [], ["a@b.c", "d@e.f"], [""]):
        assert relay.command("trace", *words).returncode == 2, words


def test_a_log_that_is_a_pipe_is_left_to_who_reads_it(lab):
    relay = _relay(lab, "text")
    identity = _send(relay, "ann@writer.test", ["good@to.test"])
    relay.wait_event("done")
    assert relay.stop() == 0
    pipe = os.path.join(relay.folder, "pipe")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    os.write(reader, b"a line of the relay\n")
    # As rotation might have left it, if that were one.
    os.mkfifo(relay.log_path + ".1")
    assert identity in _stories(relay.command("trace", "ann@writer.test"))
    relay.config.settings["log"] = pipe
    relay.write_config()
    for words in (["trace", "ann@writer.test"], ["report"]):
        done = relay.command(*words)
        assert done.returncode == 1 and f"can't read {pipe}: it is a pipe" in done.stderr, done
    assert os.read(reader, 100) == b"a line of the relay\n"
    os.close(reader)


def test_what_a_peer_said_is_tamed(lab):
    relay = _relay(lab, "text", Rule("rcpt", "550 5.1.1 \x1b[2J gone", pattern="^gone"))
    identity = _send(relay, "ann@writer.test", ["gone@to.test"])
    relay.wait_event("bounced")
    told = wait_until(lambda: relay.command("trace", identity).stdout, 60, "the story")
    assert "failed for <gone@to.test>" in told and "\x1b" not in told


def test_a_login_that_a_message_came_of_is_told_once(lab):
    relay = _relay(lab, "text")
    log = (
        "2026-11-25T23:27:55.001Z info connect session=6C4H2TE5W7C00 client=192.0.2.7\n"
        "2026-11-25T23:27:55.002Z info auth session=6C4H2TE5W7C00 client=192.0.2.7 login=ann mechanism=PLAIN result=ok\n"
        "2026-11-25T23:27:55.003Z info queued id=6C4H2TE6H7C00 session=6C4H2TE5W7C00 client=192.0.2.7 from=ann@example.org nrcpt=1 size=4 user=ann\n"
        "2026-11-25T23:28:55.001Z info connect session=6C4H2W8R47C00 client=192.0.2.7\n"
        "2026-11-25T23:28:55.002Z info auth session=6C4H2W8R47C00 client=192.0.2.7 login=ann mechanism=PLAIN result=ok\n"
    )
    said = relay.command("trace", "--log", "-", "ann", stdin=log).stdout
    story, _, loose = said.partition("no message came of these:\n")
    assert story.count("login ann by PLAIN: ok") == 1 and loose.count("login ann by PLAIN: ok") == 1
    assert ":28:55" in loose


@pytest.mark.parametrize("login", ["ann", "ann@writer.test"])
def test_mail_of_a_login_that_the_log_has_no_more_is_found_in_the_queue(lab, login):
    """It was said to be neither in the log nor in the queue, where nobody had looked."""
    relay = _relay(lab, "text", Rule("rcpt", "451 4.2.0 not now"), login=login)
    with relay.client() as client:
        client.greet()
        client.command(f"AUTH PLAIN {sasl.plain(login, 'secret')}", 235)
        client.send_mail("other@writer.test", ["later@to.test"])
    identity = relay.wait_event("deferred")["id"]
    wait_until(lambda: relay.command("queue", "list", "--queue", "deferred", "--login", login).stdout.startswith(identity), what="it to wait")
    os.truncate(relay.log_path, 0)
    for words in ((login,), (login.upper(), "--json")):
        done = relay.command("trace", *words)
        assert done.returncode == 0 and identity in done.stdout and "later@to.test" in done.stdout, done
    assert relay.command("trace", "nobody").returncode == 1
