# SPDX-License-Identifier: ISC
"""sluice shape: the same table as Postfix's qshape, and what it shows in four situations."""

import json
import os
import pty
import re
import subprocess
import time

import pytest

from lab import peers
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.relay import binary
from lab.sink import Rule
from lab.smtp import Client

DONE, USAGE = 0, 2
LONG = "a-name-of-a-domain.that-is-too-long-for-the-first-column.of-a-table-of-80.example"
PATIENT = {"minimal_backoff_time": "1h", "maximal_backoff_time": "2h"}

# Sender, recipients: one batch, and one that is sent some seconds later.
EARLY = [
    ("a@one.example", ["r@dest.example", "q@dest.example", "r@other.test"]),
    ("b@one.example", ["r@in.sub.dest.example"]),
    ("", ["r@dest.example"]),
    ("", [f"r@mx{i}.sub.dest.example" for i in range(6)]),
    ("c@Two.EXAMPLE", ["R@DEST.Example", f"r@{LONG}", f"r@x.{LONG}"]),
    *((f"s@n{i}.many.test", [f"r@h{i}.farm.test"]) for i in range(7)),
]
LATE = [
    ("a@one.example", ["r@late.test", "r@dest.example"]),
    ("", ["r@late.test"]),
    *((f"s@m{i}.many.test", [f"r@{'k' * i}.deep.farm.test"]) for i in range(1, 6)),
]
BATCH_GAP = 16.0

QUESTIONS = [
    "", "-s", "-p", "-p -m 2", "-p -m 1 -s", "-s -p", "-l", "-b 3", "-b 1", "-b 14", "-l -b 5 -p",
    "-w 120", "-b 30", "-b 20 -w 100 -p -m 1",
]


def submit(port, mail):
    """Send all of it in one session."""
    with Client(LOOPBACK, port) as client:
        client.greet()
        for sender, recipients in mail:
            client.send_mail(sender, recipients)


def shape(relay, *words):
    """Return the lines of the table."""
    done = relay.command("shape", *words)
    assert done.returncode == DONE, done.stderr
    return done.stdout.splitlines()


def table(relay, *words):
    """Return the counts by name: the total, then each bucket."""
    rows = [line.split() for line in shape(relay, *words)[1:]]
    return {row[0]: [int(count) for count in row[1:]] for row in rows}


def qshape(postfix, *words):
    """Return the lines of qshape's table of the deferred queue."""
    return subprocess.run(
        [peers.program("qshape"), "-c", postfix.config_folder, *words, "deferred"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()


def backlogged(relay, count):
    """Wait until so many messages are deferred."""
    wait_until(
        lambda: table(relay, "-s", "deferred")["TOTAL"][0] >= count, 60, f"{count} deferred"
    )


# One Postfix for all of them.
WITH_QSHAPE = pytest.mark.xdist_group("qshape")


@pytest.fixture(name="both", scope="module")
def fixture_both(module_lab):
    """The same mail, deferred, in a Postfix and in a relay; and when each batch came."""
    closed = free_port()
    postfix = module_lab.postfix(next_hop=closed)
    relay = module_lab.relay(Config(queue=PATIENT).route_all_to(closed))
    times = []
    for batch in EARLY, LATE:
        begin = time.time()
        for port in postfix.port, relay.port:
            submit(port, batch)
        times.append((begin, time.time()))
        time.sleep(BATCH_GAP if batch is EARLY else 0)
    count = len(EARLY) + len(LATE)
    backlogged(relay, count)
    wait_until(lambda: len(os.listdir(os.path.join(postfix.queue_folder, "deferred"))) > 0, 60)
    wait_until(lambda: total(qshape(postfix, "-s")) == count, 60, "Postfix to defer everything")
    time.sleep(max(0.0, times[-1][1] + 2 - time.time()))
    return postfix, relay, times


def total(lines):
    """Return the number of all, wherever its row stands."""
    return next(int(line.split()[1]) for line in lines if line.split()[0] == "TOTAL")


def same(ours, theirs):
    """Compare cell by cell, and the layout with it; equals may stand in any order."""
    assert ours[0] == theirs[0]
    assert sorted(ours) == sorted(theirs)
    assert ours[1].split()[0] == "TOTAL"


@WITH_QSHAPE
@pytest.mark.plain_only
@pytest.mark.parametrize("words", QUESTIONS)
def test_the_table_is_that_of_qshape(both, words):
    postfix, relay, _ = both
    words = [*words.split(), "-t", "60"]
    same(shape(relay, *words, "deferred"), qshape(postfix, *words))


@WITH_QSHAPE
@pytest.mark.parametrize("words", ["", "-s", "-p", "-l -p", "-b 3", "-b 2 -l -s"])
def test_all_that_is_older_lies_in_the_last_bucket_as_in_qshape(both, words):
    postfix, relay, _ = both
    words = [*words.split(), "-t", "0.00002"]
    ours = shape(relay, *words, "deferred")
    same(ours, qshape(postfix, *words))
    assert set(ours[1].split()[2:-1]) == {"0"}


@WITH_QSHAPE
@pytest.mark.parametrize("words", ["", "-s", "-l", "-p -m 2"])
def test_mail_of_two_ages_lies_in_the_same_buckets_as_in_qshape(both, words):
    postfix, relay, ((_, old), (young, _)) = both
    while True:
        now = time.time()
        # Between both batches, and as far as can be from either.
        limit = now - (old + young) / 2
        asked = [*words.split(), "-b", "2", "-t", f"{limit / 60:.4f}"]
        theirs, ours = qshape(postfix, *asked), shape(relay, *asked, "deferred")
        if time.time() - now < BATCH_GAP / 2 - 1.5:
            break
    same(ours, theirs)
    counts = next(line.split()[2:] for line in ours if "TOTAL" in line)
    assert all(int(count) > 0 for count in counts)


@WITH_QSHAPE
def test_rows_come_by_total_and_shorter_names_first(both):
    _, relay, _ = both
    rows = [line.split() for line in shape(relay, "-p", "-m", "1", "-w", "200", "deferred")[2:]]
    keys = [(-int(row[1]), len(row[0])) for row in rows]
    assert keys == sorted(keys) and len(keys) > 10


@WITH_QSHAPE
def test_only_the_queues_that_are_named_are_counted(both):
    _, relay, _ = both
    count = len(EARLY) + len(LATE)
    assert table(relay)["TOTAL"][0] == 0
    assert table(relay, "-s", "incoming", "active")["TOTAL"][0] == 0
    assert table(relay, "-s", "incoming", "active", "deferred", "hold")["TOTAL"][0] == count
    assert table(relay, "-s", "hold")["TOTAL"][0] == 0


@WITH_QSHAPE
def test_json_is_one_object_a_line_with_the_same_numbers(both):
    _, relay, _ = both
    rows = [json.loads(line) for line in shape(relay, "--json", "-p", "-m", "2", "deferred")]
    plain = table(relay, "-p", "-m", "2", "-w", "200", "deferred")
    assert rows[0]["domain"] == "TOTAL" and len(rows) == len(plain)
    for row in rows:
        ages = row["ages"]
        assert [row["total"], *(age["count"] for age in ages)] == plain[row["domain"]]
        assert [age["below_minutes"] for age in ages] == [5 * 2**i for i in range(9)] + [None]
        assert ("subdomains" in row) == row["domain"].startswith(".")


def on_a_terminal(relay, *words, **environment):
    """Run it with a terminal as its standard output, and return what that got."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [binary(), "shape", "-c", relay.config_path, *words],
        stdout=theirs, env=os.environ | environment,
    ) as process:
        os.close(theirs)
        got = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:
                break
            if not more:
                break
            got += more
        os.close(ours)
        assert process.wait() == DONE
    return got.decode().replace("\r\n", "\n")


@WITH_QSHAPE
def test_a_terminal_gets_colour_and_the_first_twenty_lines(both):
    _, relay, _ = both
    plain = shape(relay, "-w", "200", "deferred")
    assert len(plain) > 21
    coloured = on_a_terminal(relay, "-w", "200", "deferred", NO_COLOR="")
    assert "\033[1;31m" in coloured and "\033[2m" in coloured
    assert re.sub(r"\033\[[0-9;]*m", "", coloured).splitlines() == plain[:21]
    monochrome = on_a_terminal(relay, "-w", "200", "-n", "3", "deferred", NO_COLOR="1")
    assert monochrome.splitlines() == plain[:4]
    everything = on_a_terminal(relay, "-w", "200", "-n", "0", "deferred", NO_COLOR="1")
    assert everything.splitlines() == plain
    assert "\033" not in on_a_terminal(relay, "--json", "deferred", NO_COLOR="")
    assert "\033[1;31m" in "".join(shape(relay, "--color", "deferred"))


@WITH_QSHAPE
@pytest.mark.parametrize(
    "words", ["elsewhere", "-b 0", "-b 65", "-t 0", "-t x", "-m 0", "-w 79", "-n -1", "--no", "-t"]
)
def test_wrong_words_are_refused(both, words):
    done = both[1].command("shape", *words.split())
    assert done.returncode == USAGE and "sluice:" in done.stderr and not done.stdout


def test_held_and_deleted_mail_is_counted_where_it_is(lab):
    relay = lab.relay(Config(queue=PATIENT).route_all_to(free_port()))
    submit(relay.port, [("a@x.test", [f"r@d{i}.test"]) for i in range(6)])
    backlogged(relay, 6)
    relay.command("queue", "hold", "--domain", "d1.test")
    relay.command("queue", "delete", "--domain", "d2.test")
    assert table(relay, "hold") == {"TOTAL": [1, 1, *[0] * 9], "d1.test": [1, 1, *[0] * 9]}
    assert sorted(table(relay, "deferred")) == ["TOTAL", "d0.test", "d3.test", "d4.test", "d5.test"]
    relay.restart()
    backlogged(relay, 4)
    assert sorted(table(relay, "hold")) == ["TOTAL", "d1.test"]


# --- the four situations of QSHAPE_README


def test_a_healthy_queue_is_nearly_empty(lab):
    sink = lab.sink()
    config = Config(queue=PATIENT).route_all_to(sink.port)
    config.routes["down.test"] = {"relay": [f"[127.0.0.1]:{free_port()}"]}
    relay = lab.relay(config)
    submit(relay.port, [("a@x.test", [f"r@d{i % 5}.test"]) for i in range(30)])
    submit(relay.port, [("a@x.test", ["r@down.test"])])
    sink.wait_messages(30)
    backlogged(relay, 1)
    wait_until(lambda: table(relay)["TOTAL"][0] == 0, what="an empty queue")
    assert [line.split()[0] for line in shape(relay)[1:]] == ["TOTAL"]
    assert sorted(table(relay, "deferred")) == ["TOTAL", "down.test"]


def test_bounces_of_a_dictionary_attack_fill_the_deferred_queue_and_no_other(lab):
    sink = lab.sink(
        Rule("rcpt", "550 5.1.1 no such user", pattern="@victim.test"),
        Rule("rcpt", "450 4.2.0 not today", pattern="@forged"),
    )
    relay = lab.relay(Config(queue=PATIENT).route_all_to(sink.port))
    attack = [(f"x@forged{i % 4}.test", [f"guess{i}@victim.test"]) for i in range(40)]
    submit(relay.port, attack + [("a@real.test", ["r@forged9.test"])])
    backlogged(relay, 41)
    assert table(relay)["TOTAL"][0] == 0
    senders = table(relay, "-s", "deferred")
    assert senders["MAILER-DAEMON"][0] == 40 and senders["real.test"][0] == 1
    assert list(senders)[:2] == ["TOTAL", "MAILER-DAEMON"]
    assert table(relay, "deferred") == {
        "TOTAL": [41, 41, *[0] * 9],
        **{f"forged{i}.test": [10, 10, *[0] * 9] for i in range(4)},
        "forged9.test": [1, 1, *[0] * 9],
    }


@pytest.mark.plain_only
def test_congestion_fills_the_active_queue_and_then_the_incoming_one(lab):
    sink, stuck = lab.sink(), lab.sink(Rule("end", delay=100))
    config = Config(queue=PATIENT | {"message_active_limit": 20}).route_all_to(sink.port)
    config.extra = 'flow "*" { share = 100 }\n'
    for domain in "user.forge.test", "lists.forge.test":
        config.routes[domain] = {"relay": [f"[127.0.0.1]:{stuck.port}"]}
    relay = lab.relay(config)
    submit(relay.port, [("a@x.test", ["r@user.forge.test"])] * 20)
    wait_until(lambda: table(relay, "active")["TOTAL"][0] == 20, what="a full active queue")
    submit(relay.port, [("a@x.test", ["r@user.forge.test", "r@lists.forge.test"])] * 5)
    submit(relay.port, [("a@x.test", ["r@elsewhere.test"])] * 3)
    assert table(relay, "active") == {
        "TOTAL": [20, 20, *[0] * 9], "user.forge.test": [20, 20, *[0] * 9]
    }
    assert {name: row[0] for name, row in table(relay, "incoming").items()} == {
        "TOTAL": 13, "user.forge.test": 5, "lists.forge.test": 5, "elsewhere.test": 3
    }
    why = relay.command("explain", "--json", "user.forge.test").stdout
    assert json.loads(why.splitlines()[0])["constraint"] in ("window", "sending", "connecting")
    assert {name: row[0] for name, row in table(relay, "-p", "-m", "2").items()} == {
        "TOTAL": 33, ".forge.test": 30, "user.forge.test": 25, "lists.forge.test": 5,
        "elsewhere.test": 3,
    }


def test_the_backlog_of_a_large_destination_that_is_down_is_all_deferred(lab):
    sink = lab.sink()
    config = Config(queue=PATIENT).route_all_to(sink.port)
    config.routes["highvolume.test"] = {"relay": [f"[127.0.0.1]:{free_port()}"]}
    relay = lab.relay(config)
    for _ in range(2):
        submit(relay.port, [("a@x.test", ["r@highvolume.test"])] * 25)
        submit(relay.port, [("a@x.test", ["r@fine.test"])] * 5)
        time.sleep(1.5)
    backlogged(relay, 50)
    sink.wait_messages(10)
    assert table(relay)["TOTAL"][0] == 0
    ages = table(relay, "-b", "2", "-t", "0.01", "deferred")
    assert ages == {"TOTAL": [50, 0, 50], "highvolume.test": [50, 0, 50]}
