# SPDX-License-Identifier: ISC
"""A queue on disk that was written on one kind of machine is the same on the other. One of them is emulated."""

import json
import pathlib
import re
import subprocess

import pytest

from lab.check import check
from lab.config import Config
from lab.net import wait_until
from lab.relay import REPOSITORY, binary
from lab.sink import Rule
from lab.spool import digest

HERE, ARM64 = (str(pathlib.Path(REPOSITORY) / path) for path in ("sluice", "tests/arm64/sluice"))
LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "8h"}
SECONDS_TO_START = 60
SPAN = rb"(?<=\+0000, )(in )?[0-9.]+ \w+( ago)?(?=\n)"

# All bytes, those of the upper half above all: a char is signed on one of the machines.
BYTES = b"Subject: bytes\r\n\r\n" + bytes(byte for byte in range(1, 256) if byte not in b"\r\n") + b"\r\n"
# A file of its own, from 512 KiB on.
LARGE = b"Subject: large\r\n\r\n" + b"0123456789\r\n" * 60000
# More than a segment, so that there are several, and a checkpoint.
MANY, FILLING = 12, b"Subject: filling\r\n\r\n" + b"abcdefghij\r\n" * 6000


def give(relay):
    """Hand in what is to be kept: small, large, of any bytes, to many, in UTF-8; and much to be delivered."""
    relay.send()
    relay.send(recipients=["to@large.test"], content=LARGE)
    relay.send(sender="", recipients=[f"to{number}@many.test" for number in range(40)], content=BYTES)
    with relay.client() as client:
        client.greet()
        client.send_mail("jörg@sender.test", ["søren@names.test"], BYTES, mail_params=" SMTPUTF8 BODY=8BITMIME")
    for _ in range(MANY):
        relay.send(recipients=["to@taken.test", "to@later.test"], content=FILLING)


def listed(relay):
    """Return the messages of the queue, each an object."""
    return [json.loads(line) for line in relay.command("queue", "list", "--json").stdout.splitlines()]


def said_by(relay, words):
    """Return what a command says, but for how long ago that was: a message of any bytes is no text."""
    done = subprocess.run([binary(), *words, "-c", relay.config_path], capture_output=True, timeout=120, check=False)
    return words, done.returncode, re.sub(SPAN, b"TIME", done.stdout)


def answers(relay):
    """Return what the commands say of a queue that no relay has, to the byte."""
    asked = [["queue", "list", "--json"], ["queue", "check", "--json"], ["shape", "--json", "deferred", "hold"]]
    asked += [["queue", "show", message["id"]] for message in listed(relay)]
    return [said_by(relay, words) for words in asked]


def answers_of(machine, relay, monkeypatch):
    """Return what the commands of that machine say, which must change nothing."""
    monkeypatch.setenv("SLUICE_BIN", machine)
    before = digest(relay.spool)
    said = answers(relay)
    assert digest(relay.spool) == before
    return said


def passed_on(sink):
    """Return what a sink has taken: for each recipient the sender, and the content below our own field."""
    return {
        recipient: (one.sender, one.content[one.content.index(b"Subject:"):])
        for one in sink.transactions if one.accepted for recipient in one.recipients
    }


@pytest.mark.seconds(600)
@pytest.mark.parametrize("writer, reader", [(HERE, ARM64), (ARM64, HERE)], ids=["read-on-arm64", "written-on-arm64"])
def test_a_queue_is_the_same_on_another_machine(lab, monkeypatch, writer, reader):
    monkeypatch.setenv("SLUICE_BIN", writer)
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later", pattern="^(?!.*taken)"))
    config = Config(settings={"segment_size": "256k"}, queue=LATER).route_all_to(sink.port)
    relay = lab.relay(config, start=False).start(SECONDS_TO_START)
    give(relay)
    wait_until(lambda: len(sink.transactions) == MANY, what="deliveries")
    wait_until(lambda: {one["queue"] for one in listed(relay)} == {"deferred"}, SECONDS_TO_START, what="all to be put off")
    held, released = (one["id"] for one in listed(relay)[:2])
    assert relay.command("queue", "hold", held, released).returncode == 0
    relay.stop()

    on_writer = answers_of(writer, relay, monkeypatch)
    assert answers_of(reader, relay, monkeypatch) == on_writer
    whole = check(relay)
    assert whole.whole and whole.messages == 4 + MANY
    assert sorted(one["queue"] for one in listed(relay)) == ["deferred"] * (2 + MANY) + ["hold"] * 2

    # The other machine writes to it without a relay, and then as one.
    assert relay.command("queue", "release", released).returncode == 0
    sink.behaviour.rules.clear()
    relay.start(SECONDS_TO_START)
    relay.send(recipients=["to@new.test"], content=BYTES)
    assert relay.command("queue", "flush", "--all").returncode == 0
    wait_until(lambda: [one["id"] for one in listed(relay)] == [held], SECONDS_TO_START, what="all but what is held to go")
    relay.stop()
    got = passed_on(sink)
    assert got["to@large.test"] == ("from@sender.test", LARGE)
    assert got["søren@names.test"] == ("jörg@sender.test", BYTES)
    assert {got[f"to{number}@many.test"] for number in range(40)} == {("", BYTES)}
    assert got["to@taken.test"] == got["to@later.test"] == ("from@sender.test", FILLING)
    assert got["to@new.test"] == ("from@sender.test", BYTES)

    assert answers_of(writer, relay, monkeypatch) == answers_of(reader, relay, monkeypatch)
    assert [(one["id"], one["queue"]) for one in listed(relay)] == [(held, "hold")]
