# SPDX-License-Identifier: ISC
"""What orders on the queue say, and which messages they choose, as an operator types them."""

import json
import os
import pathlib
import subprocess
import threading
import time

import pytest

from lab.config import Config
from lab.net import wait_until
from lab.relay import binary
from lab.sink import Rule

DONE, REFUSED, USAGE = 0, 1, 2
LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}


def listed(relay, *words):
    """Return the queue as objects."""
    done = relay.command("queue", "list", "--json", *words)
    assert done.returncode == DONE, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def put_off(relay, mail):
    """Send pairs of sender and recipients, and wait until all are deferred. Returns the new ids."""
    before = {message["id"] for message in listed(relay)}
    for sender, recipients in mail:
        relay.send(sender=sender, recipients=recipients)
    wait_until(
        lambda: len(listed(relay, "--queue", "deferred")) >= len(mail) + len(before), what="the queue"
    )
    return [message["id"] for message in listed(relay) if message["id"] not in before]


@pytest.fixture(name="relay")
def fixture_relay(lab):
    """A relay whose sink puts everything off, until relay.sink.behaviour.rules is emptied."""
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = lab.relay(Config(queue=LATER).route_all_to(sink.port))
    relay.sink = sink
    return relay


def test_orders_say_what_was_and_why(relay):
    ids = put_off(relay, [("a@one.test", [f"to{n}@dest.test"]) for n in range(5)])
    assert relay.command("queue", "hold", ids[0]).stdout == "1 message held\n"
    done = relay.command("queue", "hold", *ids[:3], "0000000000001")
    assert done.returncode == REFUSED
    assert done.stdout == "2 messages held\n1 held already, 1 not found\n"
    assert f"{ids[0]}: held already" in done.stderr and "0000000000001: no such message" in done.stderr
    assert ids[1] not in done.stderr
    done = relay.command("queue", "hold", "--all")
    assert (done.returncode, done.stdout) == (DONE, "2 messages held\n3 held already\n")
    assert relay.command("queue", "release", ids[4]).stdout == "1 message released\n"
    wait_until(lambda: listed(relay, "--queue", "deferred"), what="it to be tried")
    done = relay.command("queue", "release", ids[4])
    assert done.returncode == REFUSED and f"{ids[4]}: not held" in done.stderr
    assert done.stdout == "0 messages released\n1 not held\n"
    done = relay.command("queue", "flush", "--all")
    assert done.stdout == "1 message flushed\n4 on hold, which release ends\n"
    relay.sink.behaviour.rules.clear()
    assert relay.command("queue", "flush", ids[0]).stdout == "1 message flushed\n"
    assert relay.command("queue", "requeue", ids[1]).stdout == "1 message requeued\n"
    assert relay.command("queue", "flush", "--queue", "hold").stdout == "2 messages flushed\n"
    relay.sink.wait_messages(4)


def test_what_is_deleted_while_it_is_tried_is_not_kept_by_a_later_order(lab):
    gate = threading.Event()
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later", gate=gate, times=1))
    relay = lab.relay(Config(queue=LATER).route_all_to(sink.port))
    relay.send()
    wait_until(lambda: any("RCPT" in session.verbs() for session in sink.sessions), what="the attempt")
    ident = listed(relay)[0]["id"]
    assert relay.command("queue", "delete", ident).stdout.startswith("1 message deleted\n")
    for verb in ("hold", "requeue", "bounce", "release", "flush"):
        done = relay.command("queue", verb, ident)
        assert done.returncode == REFUSED and f"{ident}: no such message" in done.stderr, done
        assert relay.command("queue", verb, "--all").stdout.startswith("0 messages ")
    gate.set()
    wait_until(lambda: not listed(relay), what="it to be gone")
    assert not relay.events("bounced") and not sink.messages


def test_what_is_to_be_returned_while_it_is_tried_is_returned_whatever_is_ordered_later(lab):
    gate = threading.Event()
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later", gate=gate))
    relay = lab.relay(Config(queue=LATER).route_all_to(sink.port))
    relay.send()
    wait_until(lambda: any("RCPT" in session.verbs() for session in sink.sessions), what="the attempt")
    ident = listed(relay)[0]["id"]
    for verb in ("bounce", "requeue", "hold"):
        assert relay.command("queue", verb, ident).returncode == DONE
    gate.set()
    wait_until(lambda: listed(relay, "--queue", "hold"), what="it to be on hold")
    assert not relay.events("bounced")
    assert relay.command("queue", "release", ident).returncode == DONE
    relay.wait_event("bounced", id=ident)


def test_held_mail_gets_its_lifetime_again(relay):
    (ident,) = put_off(relay, [("a@one.test", ["to@dest.test"])])
    assert relay.command("queue", "hold", ident).returncode == DONE
    (held,) = listed(relay, "--queue", "hold")
    assert relay.command("queue", "release", ident).stdout == "1 message released\n"
    relay.wait_event("deferred", count=2)
    wait_until(lambda: listed(relay, "--queue", "deferred"), what="it to be put off")
    assert listed(relay)[0]["arrived"] == held["arrived"]
    assert relay.command("queue", "hold", ident).returncode == DONE
    assert relay.command("queue", "release", "--fresh", ident).stdout == "1 message released\n"
    relay.wait_event("deferred", count=3)
    wait_until(lambda: listed(relay, "--queue", "deferred"), what="it to be put off")
    (fresh,) = listed(relay)
    assert fresh["arrived"] > held["arrived"] and fresh["rcpts"][0]["tries"] == 3
    relay.kill()
    relay.start()
    assert listed(relay)[0]["arrived"] == fresh["arrived"]


def test_patterns_sites_and_ids_from_standard_input_choose(relay):
    mail = [
        ("news@shop.example", ["x@dest.test"]),
        ("anna@shop.example", ["y@mx.dest.test"]),
        ("news@other.example", ["z@other.test"]),
        ("", ["x@other.test", "y@dest.test"]),
    ]
    ids = put_off(relay, mail)

    def chosen(*words):
        return [ids.index(message["id"]) for message in listed(relay, *words)]

    assert chosen("--from", "*@shop.example") == [0, 1]
    assert chosen("--from", "news@*") == [0, 2]
    assert chosen("--from", "news@*", "--from", "<>") == [0, 2, 3]
    assert chosen("--domain", ".dest.test") == [0, 1, 3]
    assert chosen("--domain", "dest.test", "--to", "x@*") == [0]
    assert chosen("--from", ".example", "--domain", "other.test", "--domain", "mx.*") == [1, 2]
    site = f"[127.0.0.1]:{relay.sink.port}"
    assert chosen("--site", site) == chosen("--site", f"smtp {site}") == [0, 1, 2, 3]
    assert chosen("--site", "elsewhere") == []
    done = relay.command("queue", "hold", "-", stdin=f"{ids[1]} deferred\n\n{ids[2]}\n-- 2 messages\n")
    assert done.stdout == "2 messages held\n" and chosen("--queue", "hold") == [1, 2]
    assert chosen("--site", site, "--queue", "hold") == [1, 2]
    done = relay.command("queue", "flush", "-", stdin=f"{ids[0]} sent\n{ids[0].lower()} sent\n{ids[3]}\n{ids[0]}\n")
    assert done.stdout == "2 messages flushed\n"
    wait_until(lambda: chosen("--queue", "deferred") == [0, 3], what="the end of their attempts")
    assert sorted(chosen(ids[2], ids[1], ids[2])) == [1, 2]
    done = relay.command("queue", "delete", "-", stdin="")
    assert done.returncode == REFUSED and "no ids" in done.stderr
    lines = relay.command("queue", "list", "--from", "anna@*").stdout
    assert relay.command("queue", "delete", "-", stdin=lines).stdout == "1 message deleted\n"

    def shape(*words):
        lines = relay.command("shape", "--json", *words).stdout.splitlines()
        rows = [json.loads(line) for line in lines]
        return {row["domain"]: row["total"] for row in rows}

    queues = ("deferred", "hold")
    assert shape("--from", "news@*", *queues) == {"TOTAL": 2, "dest.test": 1, "other.test": 1}
    assert shape("--from", ".example", *queues) == shape("--from", "news@*", *queues)
    assert shape("-s", "--from", "<>", "--from", "news@sh*", *queues) == {
        "TOTAL": 2, "MAILER-DAEMON": 1, "shop.example": 1,
    }
    drawn = relay.command("shape", "-N", "1", "--redraw", *queues).stdout.split("\033[H\033[J")
    totals = [int(table.splitlines()[1].split()[1]) for table in drawn[1:]]
    assert totals == [1, 2, 4] and relay.command("shape", *queues).stdout == drawn[-1]
    assert relay.command("shape", "-N", "1", *queues).stdout == drawn[-1]


def test_the_shape_of_the_maildrop(relay):
    relay.stop()
    text = "Subject: left\n\nhello\n"
    words = ["sendmail", "-f", "anna@shop.example", "a@dest.test,b@dest.test,c@other.test"]
    assert relay.command(*words, stdin=text).returncode == DONE
    relay.start()
    folder = os.path.join(relay.spool, "maildrop")
    wait_until(lambda: len(listed(relay, "--queue", "deferred")) == 1, what="it to be taken")
    assert "TOTAL" in relay.command("shape", "maildrop").stdout
    with open(os.path.join(folder, ".being-written"), "w", encoding="utf-8") as left:
        left.write("sluice maildrop 1 0 0\nfrom a@b\nto c@d\n\n")
    lines = relay.command("shape", "--json", "maildrop").stdout.splitlines()
    assert [json.loads(line)["total"] for line in lines] == [0]
    os.rename(folder, f"{folder}-away")
    done = relay.command("shape", "maildrop")
    assert done.returncode == REFUSED and "the maildrop cannot be read: No such file or directory" in done.stderr
    os.rename(f"{folder}-away", folder)


@pytest.mark.parametrize(
    "line, says, usage",
    [
        ("queue hold --bogus", "there is no option --bogus", "usage: sluice queue hold "),
        ("queue release --older", "--older wants a value", "usage: sluice queue release "),
        ("queue list --json=1", "--json takes no value", "usage: sluice queue list "),
        ("shape -b", "-b wants a value", "usage: sluice shape "),
        ("dest suspend", "name a site or a host", "usage: sluice dest suspend"),
        ("stats --bogus", "there is no option --bogus", "usage: sluice stats "),
        ("explain -q x", "there is no option -q", "usage: sluice explain "),
    ],
)
def test_what_is_wrong_is_named_with_the_usage_of_that_command(line, says, usage):
    done = subprocess.run([binary(), *line.split()], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == USAGE and says in done.stderr and f"\n{usage}" in done.stderr


def test_a_setting_is_told_where_it_belongs(tmp_path):
    path = tmp_path / "sluice.conf"

    def check(text):
        path.write_text(text, encoding="utf-8")
        return subprocess.run(
            [binary(), "check", "-c", str(path)], capture_output=True, text=True, check=False, timeout=60
        ).stderr

    assert f"{path}:1: " in check("minimal_backoff_time = 5m\n")
    assert "it belongs in queue { }" in check("minimal_backoff_time = 5m\n")
    assert 'in listener "..." { }, or in transport "..." { }' in check("connection_limit = 5\n")
    assert f"{path}:2: " in check('queue {\nhostname = "a"\n}\n')
    assert "outside of all sections" in check('queue {\nhostname = "a"\n}\n')
    path.write_text("# what it is without a file\n", encoding="utf-8")
    found = subprocess.run(
        [binary(), "config", "-c", str(path), "port", "minimal_backoff_time"],
        capture_output=True, text=True, check=False, timeout=60,
    )
    assert found.stdout == "transport.smtp.port = 25\ndns.port = 53\nqueue.minimal_backoff_time = 5m\n"


def test_queue_bytes_count_what_is_there(relay):
    def counted(name):
        return json.loads(relay.command("stats", "--json").stdout)[name]

    relay.send(content=b"Subject: large\r\n\r\n" + b"0123456789\r\n" * 50000)
    put_off(relay, [("a@one.test", ["to@dest.test"])])
    wait_until(lambda: counted("queue_live_bytes") > 600000, what="the large message to be counted")
    assert counted("queue_bytes") >= counted("queue_live_bytes")
    relay.kill()
    relay.start()
    wait_until(lambda: counted("queue_live_bytes") > 600000, what="it to be counted again")
    relay.command("queue", "delete", "--all")
    wait_until(lambda: counted("queue_live_bytes") < 100000, what="it to be gone")


@pytest.mark.parametrize("command, what, name", [("dest", "destination", "later.test"), ("flow", "flow", "shop.test"), ("user", "login", "ann")])
def test_an_order_says_with_json_what_it_has_done(relay, command, what, name):
    def ordered(*words):
        done = relay.command(command, *words, "--json")
        assert done.returncode == DONE, done.stderr
        return json.loads(done.stdout)
    assert ordered("suspend", name) == {what: name, "state": "suspended", "until": None}
    assert ordered("resume", name) == {what: name, "state": "resumed", "until": None}
    if command != "user":
        assert ordered("suspend", name, "--for", "1h")["until"] > time.time()
    done = relay.command(command, "resume", "nobody.test", "--json")
    assert (done.returncode, done.stdout) == (REFUSED, "")


@pytest.mark.parametrize(
    "file, order, listing, name",
    [
        ("destdb", ("dest", "suspend", "later.test"), ("dest", "list"), "later.test"),
        ("destdb", ("flow", "suspend", "shop.test"), ("flow", "list"), "shop.test"),
        ("suppressed", ("suppress", "add", "dead@later.test"), ("suppress", "list"), "dead@later.test"),
        ("suspended", ("user", "suspend", "ann"), ("user", "list"), "ann"),
    ],
    ids=["dest", "flow", "suppress", "user"],
)
def test_an_order_that_no_file_has_yet_says_so(lab, file, order, listing, name):
    """A restart undoes it; the relay goes on trying until the file takes it."""
    config = Config()
    config.settings["suppress"] = "1d"
    relay = lab.relay(config)
    in_its_way = pathlib.Path(relay.spool, f"{file}.new")
    in_its_way.mkdir()
    done = relay.command(*order)
    assert done.returncode == REFUSED and name in done.stdout, done
    assert "takes no file now: a restart before it does would undo this" in done.stderr
    assert name in relay.command(*listing).stdout
    in_its_way.rmdir()
    wait_until(lambda: name in _kept(relay, file), 60, "the file")
    assert relay.command(*order).returncode == DONE
    relay.kill()
    relay.start()
    assert name in relay.command(*listing).stdout


def _kept(relay, file):
    path = pathlib.Path(relay.spool, file)
    return path.read_text("utf-8") if path.exists() else ""
