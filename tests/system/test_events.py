# SPDX-License-Identifier: ISC
"""events { }: what a receiver is told, held against the log; receivers that are slow, away, refuse, and come back."""

import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import termios
import time

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.receivers import HttpReceiver, SocketReceiver
from lab.relay import REPOSITORY

KINDS = ("sent", "deferred", "bounced", "in_doubt")
LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}


def config_of(sink, to, queue=None, **settings):
    """Return a configuration that tells events to a receiver at once."""
    events = {"to": to, "delay": "20ms", "backoff_max": "100ms"} | settings
    lines = "".join(f"    {name} = {json.dumps(value) if isinstance(value, str) else value}\n" for name, value in events.items())
    return Config(queue=queue or LATER, extra=f"events {{\n{lines}}}\n").route_all_to(sink.port)


def in_log(relay):
    """Return what the log says of attempts: id, recipient, event, dsn and tries of each."""
    return sorted((kind, one["id"], one["to"], one["dsn"], int(one["tries"])) for kind in KINDS for one in relay.events(kind))


def told(events):
    """Return the same of events."""
    return sorted((one["event"], one["id"], one["to"], one["dsn"], one["tries"]) for one in events if one["event"] != "lost")


def wait_all(relay, receiver):
    """Wait until the receiver knows what the log says, and nothing twice or else."""
    wait_until(lambda: (log := in_log(relay)) and told(receiver.events) == log, 60, "all events, each once")


@pytest.fixture(name="receiver")
def fixture_receiver():
    """An HTTP receiver, which listens."""
    one = HttpReceiver().start()
    yield one
    one.close()


def counted(relay, result):
    """Return how many events the relay has counted as such."""
    return json.loads(relay.command("stats", "--json").stdout)[f'events_total{{result="{result}"}}']


def test_each_attempt_is_told_with_its_reason(lab, receiver):
    sink = lab.sink(Rule("rcpt", "550 5.1.1 User unknown", pattern="gone"), Rule("rcpt", "452 4.2.2 Over quota", pattern="full"))
    relay = lab.relay(config_of(sink, receiver.url))
    relay.send(recipients=["one@dest.test", "gone@dest.test", "full@dest.test"])
    relay.wait_event("deferred")
    relay.wait_event("sent", to="from@sender.test")  # the bounce
    wait_all(relay, receiver)
    by_name = {one["to"].partition("@")[0]: one for one in receiver.events}
    sent, gone, full = by_name["one"], by_name["gone"], by_name["full"]
    assert (sent["event"], sent["final"], sent["tried"], sent["code"]) == ("sent", True, True, 250) and "reason" not in sent
    assert (gone["event"], gone["final"], gone["reason"], gone["code"]) == ("bounced", True, "invalid-recipient", 550)
    assert "User unknown" in gone["reply"] and gone["from"] == "from@sender.test" and by_name["from"]["from"] == ""
    assert (full["event"], full["final"], full["reason"], full["dsn"]) == ("deferred", False, "mailbox-full", "4.2.2")
    assert sent["site"] == full["site"] and sent["relay"].endswith(f":{sink.port}") and sent["transport"] == "smtp"
    assert len(sent["delays"]) == 4 and sent["delay"] >= 0 and sent["size"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z", sent["time"]) and sent["arrived"] <= sent["time"]
    assert len({one["event_id"] for one in receiver.events}) == 4
    assert receiver.posts[0][2]["Content-Type"] == "application/x-ndjson"
    assert counted(relay, "taken") == 4 and counted(relay, "lost") == counted(relay, "refused") == 0


def test_what_ends_without_an_attempt_says_why(lab, receiver):
    relay = lab.relay(Config(queue={"maximal_queue_lifetime": "0s"}, extra=config_of(lab.sink(), receiver.url).extra)
                      .route_all_to(free_port()))
    relay.send()
    wait_all(relay, receiver)
    wait_until(lambda: len(receiver.events) >= 2, what="the end")
    attempt, end = receiver.events[:2]
    assert (attempt["event"], attempt["final"], attempt["reason"]) == ("deferred", False, "connection")
    assert (end["event"], end["final"], end["tried"], end["reason"], end["cause"]) == ("bounced", True, False, "expired", "connection")
    assert attempt["event_id"] < end["event_id"]


def test_batches_wait_for_a_server_that_is_away_or_says_later(lab, receiver):
    receiver.close()
    relay = lab.relay(config_of(lab.sink(), receiver.url, batch=3))
    for number in range(10):
        relay.send(recipients=[f"r{number}@dest.test"])
    relay.wait_event("events", state="away")
    receiver.answers = [500, 503, 429, 302]
    receiver.headers = {"Retry-After": "0"}
    receiver.start()
    wait_all(relay, receiver)
    relay.wait_event("events", state="back")
    assert [post[:2] for post in receiver.posts] == [(500, 3), (503, 3), (429, 3), (302, 3), (200, 3), (200, 3), (200, 3), (200, 1)]
    assert len(relay.events("events", state="away")) == 1
    ids = [one["event_id"] for one in receiver.events]
    assert ids == sorted(ids)
    # It goes away with connections open, and is back: what it took is not sent again.
    receiver.close()
    relay.send(recipients=["late@dest.test"])
    relay.wait_event("events", state="away", count=2)
    receiver.start()
    wait_all(relay, receiver)


def test_what_a_server_never_takes_is_dropped_and_counted(lab, receiver):
    receiver.answers = [400, 413, 422]
    relay = lab.relay(config_of(lab.sink(), receiver.url, batch=1))
    for number in range(5):
        relay.send(recipients=[f"r{number}@dest.test"])
        relay.wait_event("sent", count=number + 1)
    wait_until(lambda: len(receiver.posts) == 5, what="all posts")
    assert len(receiver.events) == 2
    assert len(relay.events("events", state="refused")) == 3
    wait_until(lambda: counted(relay, "taken") == 2, what="the count")
    assert counted(relay, "refused") == 3


def test_what_an_answer_says_at_length_takes_nothing_from_its_status(lab, receiver):
    receiver.says = b"<p>and so on</p>" * 100_000
    receiver.answers = [500, 400]
    relay = lab.relay(config_of(lab.sink(), receiver.url, batch=1))
    for number in range(3):
        relay.send(recipients=[f"r{number}@dest.test"])
        relay.wait_event("sent", count=number + 1)
    assert relay.wait_event("events", state="away")["reason"].endswith("answers 500")
    assert relay.wait_event("events", state="refused")["reason"].endswith("answers 400")
    wait_until(lambda: len(receiver.posts) >= 4, what="all posts")
    wait_until(lambda: counted(relay, "taken") == 2, what="the count")
    assert [post[0] for post in receiver.posts] == [500, 400, 200, 200] and len(receiver.events) == 2


def test_an_answer_that_never_ends_has_its_status(lab, receiver):
    receiver.owes = 10
    receiver.answers = [500, 400]
    relay = lab.relay(config_of(lab.sink(), receiver.url, batch=1, timeout="500ms"))
    for number in range(3):
        relay.send(recipients=[f"r{number}@dest.test"])
        relay.wait_event("sent", count=number + 1)
    wait_until(lambda: counted(relay, "taken") == 2 and counted(relay, "refused") == 1, what="the count")
    assert [post[0] for post in receiver.posts] == [500, 400, 200, 200] and len(receiver.events) == 2


def test_a_server_that_is_slow_or_silent_holds_up_no_mail(lab, receiver):
    """Messages that waited for their posts, one after the other, would take two minutes to be sent."""
    receiver.wait = 3.0
    relay = lab.relay(config_of(lab.sink(), receiver.url, buffer="4k", timeout="2s"))
    for number in range(60):
        assert relay.send(recipients=[f"r{number}@dest.test"]).code == 250
    relay.wait_event("sent", count=60)
    relay.wait_event("events", state="lost")
    receiver.wait = 0.0
    relay.send(recipients=["last@dest.test"])

    def all_accounted_for():
        waiting = json.loads(relay.command("stats", "--json").stdout)["events_waiting"]
        if waiting == 0 and not any(one.get("to") == "last@dest.test" for one in receiver.events):
            relay.send(recipients=["last@dest.test"])  # the one before was lost as well
            time.sleep(0.2)
        return waiting == 0 and any(one.get("to") == "last@dest.test" for one in receiver.events)

    wait_until(all_accounted_for, 60, "room again")
    distinct = {one["event_id"]: one for one in receiver.events}  # what timed out was sent again
    gaps = sum(one["count"] for one in distinct.values() if one["event"] == "lost")
    assert gaps == counted(relay, "lost") > 0
    accounted = len(told(distinct.values())) + gaps
    wait_until(lambda: len(in_log(relay)) >= accounted, 60, "the log of all attempts")
    assert accounted == len(in_log(relay))
    relay.stop()
    assert sum(int(one["lost"]) for one in relay.events("events", state="lost")) == gaps


def test_a_restart_and_a_stop_lose_nothing(lab, receiver):
    receiver.close()
    relay = lab.relay(config_of(lab.sink(), receiver.url))
    relay.send(recipients=["before@dest.test"])
    relay.wait_event("events", state="away")
    assert relay.command("restart").returncode == 0
    relay.send(recipients=["between@dest.test"])
    relay.wait_event("sent", to="between@dest.test")
    relay.stop()
    receiver.start()
    relay.start()
    relay.send(recipients=["after@dest.test"])
    relay.wait_event("sent", to="after@dest.test")
    wait_all(relay, receiver)
    ids = [one["event_id"] for one in receiver.events]
    assert len(set(ids)) == 3 and ids == sorted(ids)
    # What was told is not kept.
    relay.stop()
    relay.start()
    relay.send(recipients=["again@dest.test"])
    wait_until(lambda: len(receiver.events) == 4, what="the fourth")
    wait_all(relay, receiver)


def test_a_stop_tells_what_has_just_come(lab, receiver):
    relay = lab.relay(config_of(lab.sink(), receiver.url, delay="1m"))
    relay.send()
    relay.wait_event("done")
    relay.stop()
    assert told(receiver.events) == in_log(relay) and len(receiver.events) == 1


def test_a_socket_has_readers_that_come_and_go(lab, tmp_path):
    receiver = SocketReceiver(tmp_path / "events.sock")
    relay = lab.relay(config_of(lab.sink(), f"unix:{receiver.path}"))
    relay.send(recipients=["r0@dest.test"])
    relay.wait_event("events", state="away")
    receiver.start()
    wait_all(relay, receiver)
    receiver.close()
    relay.send(recipients=["r1@dest.test"])
    relay.wait_event("events", state="away", count=2)
    receiver.start()
    wait_all(relay, receiver)
    receiver.close()
    assert counted(relay, "lost") == 0


def test_a_socket_that_nobody_reads_loses_events_and_no_mail(lab, tmp_path):
    receiver = SocketReceiver(tmp_path / "events.sock")
    receiver.reads = False
    receiver.start()
    relay = lab.relay(config_of(lab.sink(), f"unix:{receiver.path}", buffer="4k", timeout="100ms"))
    names = ["x" * 60 + str(number) for number in range(700)]
    with relay.client() as client:
        client.greet()
        for at in range(0, len(names), 100):
            assert client.send_mail("from@sender.test", [f"{name}@dest.test" for name in names[at:at + 100]]).code == 250
    relay.wait_event("sent", count=len(names), timeout=60)
    assert counted(relay, "lost") > 0
    receiver.close()


def test_a_file_grows_by_whole_lines_and_may_be_moved_away(lab, tmp_path):
    path = tmp_path / "events.json"
    relay = lab.relay(config_of(lab.sink(), str(path)))

    def lines(*files):
        return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]

    for turn in range(3):
        relay.send(recipients=[f"r{turn}@dest.test"])
        wait_until(lambda: any(one["to"] == f"r{turn}@dest.test" for one in lines(path)), what="the line")  # pylint: disable=W0640
        path.rename(tmp_path / f"events.json.{turn}")
    turned = [tmp_path / f"events.json.{turn}" for turn in range(3)]
    assert [len(lines(file)) for file in turned] == [1, 1, 1]
    wait_until(lambda: told(lines(*turned)) == in_log(relay), what="the same in the log")
    assert os.stat(turned[2]).st_mode & 0o777 == 0o640


def test_a_named_pipe_has_whole_lines_whenever_it_is_read(lab, tmp_path):
    path = tmp_path / "events.pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    relay = lab.relay(config_of(lab.sink(), str(path)))
    with relay.client() as client:
        client.greet()
        for number in range(10):
            client.send_mail("from@sender.test", [f"{number}-{name}@dest.test" for name in range(20)])
    relay.wait_event("sent", count=200)
    assert "in the middle" not in relay.wait_event("events", state="away")["reason"]
    text = b""

    def all_read():
        nonlocal text
        with contextlib.suppress(BlockingIOError):
            text += os.read(reader, 65536)
        return text.count(b"\n") >= 200

    wait_until(all_read, 60, "all lines")
    assert told([json.loads(line) for line in text.splitlines()]) == in_log(relay)
    os.close(reader)


def test_a_line_that_a_named_pipe_does_not_take_at_once_is_whole(lab, tmp_path):
    """As of a reply that is all quotes, to odd addresses, from a host among many."""
    path = tmp_path / "events.pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    sink = lab.sink(Rule("rcpt", "\r\n".join(["452-4.2.2 " + '"' * 480] * 3 + ["452 4.2.2 done"])))
    config = config_of(sink, str(path))
    config.routes["*"]["relay"] += [f"[192.0.2.{number}]:25" for number in range(1, 40)]
    relay = lab.relay(config)
    quotes, label = '\\"' * 30, "x" * 60
    with relay.client() as client:
        client.greet()
        client.command(f'MAIL FROM:<"{quotes}"@{label}.{label}.test>', 250)
        client.command(f'RCPT TO:<"{quotes}"@{label}.{label}.test> ORCPT=rfc822;{"+5C" * 150}@a.test', 250)
        client.command("DATA", 354)
        client.send(b"Subject: odd\r\n\r\n.\r\n")
        client.expect(250)
    text = b""

    def is_whole():
        nonlocal text
        with contextlib.suppress(BlockingIOError):
            text += os.read(reader, 65536)
        return text.endswith(b"\n")

    relay.wait_event("deferred")
    wait_until(lambda: fcntl.ioctl(reader, termios.FIONREAD, b"    ") == (4096).to_bytes(4, sys.byteorder), 60, "a full pipe")
    wait_until(is_whole, 60, "the line")
    assert len(text) > 4096 and told([json.loads(line) for line in text.splitlines()]) == in_log(relay)
    os.close(reader)


def test_a_full_disk_leaves_whole_lines_and_gets_the_rest_later(lab):
    folder = lab.folder("small")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "sluice-test", folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    lab.callback(subprocess.run, ["umount", "--lazy", folder], check=True)
    path = folder / "events.json"
    (folder / "filler").write_bytes(b"x" * 50_000)
    relay = lab.relay(config_of(lab.sink(), str(path)))
    with relay.client() as client:
        client.greet()
        for number in range(10):
            client.send_mail("from@sender.test", [f"{number}-{'x' * 50}{name}@dest.test" for name in range(20)])
    relay.wait_event("sent", count=200)
    assert "No space left" in relay.wait_event("events", state="away")["reason"]
    assert path.read_text().endswith("\n")
    subprocess.run(["mount", "-o", "remount,size=4m", folder], check=True)
    wait_until(lambda: path.read_text().count("\n") == 200, 60, "all lines")
    assert told([json.loads(line) for line in path.read_text().splitlines()]) == in_log(relay)


def test_what_waits_is_lost_when_nobody_wants_it_any_more(lab, receiver):
    relay = lab.relay(config_of(lab.sink(), receiver.url))
    receiver.close()
    for number in range(3):
        relay.send(recipients=[f"r{number}@dest.test"])
    relay.wait_event("sent", count=3)
    relay.wait_event("events", state="away")
    wait_until(lambda: json.loads(relay.command("stats", "--json").stdout)["events_waiting"] == 3, what="all to wait")
    extra, relay.config.extra = relay.config.extra, ""
    relay.write_config()
    assert relay.command("reload").returncode == 0
    assert relay.wait_event("events", state="lost")["lost"] == "3"
    assert counted(relay, "lost") == 3 and json.loads(relay.command("stats", "--json").stdout)["events_waiting"] == 0
    receiver.start()
    relay.config.extra = extra
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(recipients=["last@dest.test"])
    wait_until(lambda: [one["to"] for one in receiver.events] == ["last@dest.test"], what="what came behind the reload")


def test_a_reload_changes_receiver_and_what_is_told(lab, receiver, tmp_path):
    token = tmp_path / "token"
    token.write_text("first-secret\n")
    sink = lab.sink(Rule("rcpt", "550 5.7.1 Blocked by Spamhaus", pattern="no"))
    path = tmp_path / "events.json"
    relay = lab.relay(config_of(sink, str(path), token=str(token)))
    relay.send(recipients=["one@dest.test"])
    wait_until(lambda: path.exists() and path.read_text().count("\n") == 1, what="the line in the file")
    relay.config.extra = config_of(sink, receiver.url, token=str(token)).extra.replace("events {", 'events {\n    only = {"bounced"}')
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(sender="", recipients=["two@dest.test", "no@dest.test"])
    wait_until(lambda: receiver.events, what="the bounce")
    relay.wait_event("sent", to="two@dest.test")
    token.write_text("second-secret\n")
    relay.send(sender="", recipients=["no@dest.test"])
    wait_until(lambda: len(receiver.events) == 2, what="the second")
    assert [(one["event"], one["reason"]) for one in receiver.events] == [("bounced", "reputation")] * 2
    assert [post[2]["Authorization"] for post in receiver.posts] == ["Bearer first-secret", "Bearer second-secret"]
    assert "secret" not in relay.log_text() and path.read_text().count("\n") == 1
    relay.config.extra = ""
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(sender="", recipients=["no@dest.test"])
    relay.wait_event("bounced", count=3)
    relay.stop()  # and tell what is to be told
    assert len(receiver.events) == 2


def test_the_manual_names_each_reason():
    with open(os.path.join(REPOSITORY, "base", "reason.h"), encoding="utf-8") as stream:
        words = re.findall(r'\tR\(\w+, "([a-z-]+)"', stream.read())
    with open(os.path.join(REPOSITORY, "etc", "sluice.8"), encoding="utf-8") as stream:
        manual = stream.read().partition(".Sh EVENTS")[2].partition(".Sh HTTP")[0]
    assert len(words) > 20 and [word for word in words if f".It {word} Ta " not in manual] == []


def test_check_says_what_is_wrong(lab):
    relay = lab.relay(Config(extra='events {\n  to = "ftp://x"\n  only = {"sent", "gone"}\n  token = "here"\n}\n'), start=False)
    said = relay.command("check").stderr + relay.command("check").stdout
    assert 'to "ftp://x" is not an absolute path' in said and '"gone" is none of' in said and 'token "here"' in said


def test_a_server_under_tls_must_be_who_it_is(lab):
    certificate, key = lab.certificates.host("localhost")
    receiver = HttpReceiver(certificate=certificate, key=key).start()
    config = config_of(lab.sink(), receiver.url.replace(LOOPBACK, "localhost"))
    relay = lab.relay(config)
    relay.send()
    assert "certificate" in relay.wait_event("events", state="away")["reason"]
    relay.config.extra += f'tls {{ ca = "{lab.certificates.ca}" }}\n'
    relay.write_config()
    relay.wait_event("sent")
    relay.stop()  # the sandbox ends at the authorities that there were
    relay.start()
    wait_all(relay, receiver)
    receiver.close()
