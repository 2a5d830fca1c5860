# SPDX-License-Identifier: ISC
"""Fakes of the end of data, by every way into the relay and out of it: one message comes of each, or none."""

import pathlib
import re
import subprocess

import pytest

from lab import received
from lab.config import Config
from lab.net import wait_until
from lab.relay import binary
from lab.sink import Rule
from lab.smtp import stuff

FAKES = [
    b"\n.\n", b"\n.\r\n", b"\r\n.\n", b"\r.\r", b"\r.\n", b"\n.\r", b"\r.\r\n", b"\r\n.\r", b"\r\n\0.\r\n",
    b"\r\n.\0\r\n", b"\r\n.\r\r\n", b"\r\r\n.\r\r\n",
]
SECOND = b"MAIL FROM:<mallory@sender.test>\r\nRCPT TO:<second@dest.test>\r\nDATA\r\nSubject: second\r\n\r\n"
NUL = re.compile(rb"\0")


class Place:
    """A relay with listeners that refuse and mend line ends, one that defers first, and a sink."""

    def __init__(self, lab):
        certificate, key = lab.certificates.host("relay.test")
        keys = {"certificate": certificate, "key": key, "error_limit": 0}
        self.sink = lab.sink(
            Rule("end", "451 4.3.0 later", "again@sender", times=1),
            Rule("rcpt", "550 5.1.1 nobody", "nobody@dest"),
            extensions=("PIPELINING", "8BITMIME"),
        )
        config = Config(queue={"minimal_backoff_time": "1h"}).route_all_to(self.sink.port)
        config.listeners = {
            "strict": {**keys}, "smtps": {**keys, "tls": "implicit"},
            "normal": {**keys, "bare_newline": "normalise"},
        }
        self.relay = lab.relay(config)

    def all_arrived(self, count):
        """So many were taken on, and one more; check what the sink has seen of each on the wire."""
        self.relay.send(content=b"Subject: last\r\n\r\n")
        self.relay.wait_event("queued", 60, count + 1)
        self.sink.wait_messages(count + 1, timeout=60)
        assert len(self.sink.messages) == len(self.relay.events("queued")) == count + 1
        self.check_wire()

    def check_wire(self):
        """What the sink has seen has one end a message, and line ends only in pairs."""
        for transaction in self.sink.transactions:
            wire = transaction.wire
            assert not re.search(rb"\r(?!\n)|(?<!\r)\n", wire) and not NUL.search(wire)
            assert not re.search(rb"\r\n\.[^.\r]", wire) and wire.count(b"\r\n.\r\n") == 1


@pytest.fixture(name="place")
def _place(lab):
    return Place(lab)


def _begin(client, recipient="first@dest.test"):
    client.command("MAIL FROM:<from@sender.test>", 250)
    client.command(f"RCPT TO:<{recipient}>", 250)


def _body(fake):
    return b"Subject: first\r\n\r\nfirst" + fake + SECOND + b"second\r\n"


def _by_data(client, fake, code):
    _begin(client)
    client.command("DATA", 354)
    client.send(_body(fake) + b".\r\n")
    client.expect(code)
    client.command("NOOP", 250)


def _by_bdat(client, fake, code):
    _begin(client)
    body = _body(fake)
    half = len(b"Subject: first\r\n\r\nfirst") + 1  # within the fake
    for chunk, last in (body[:half], b""), (body[half:], b" LAST"):
        client.send(b"BDAT %d%s\r\n%s" % (len(chunk), last, chunk))
        reply = client.read_reply()
        if reply.code != 250:
            break
    assert str(reply.code).startswith(code)
    client.command("NOOP", 250)


def _sessions(place, *listeners):
    for listener in listeners:
        with place.relay.client(listener) as client:
            if listener == "smtps":
                client.shake_hands()
            client.greet()
            if listener != "smtps":
                client.starttls()
                client.command("EHLO client.test", 250)
            yield client


@pytest.mark.parametrize("way", [_by_data, _by_bdat])
def test_under_tls_a_fake_end_is_refused_with_its_message(place, way):
    for client in _sessions(place, "strict", "smtps"):
        for fake in FAKES:
            way(client, fake, "550")
    place.all_arrived(0)


def test_under_tls_a_fake_end_that_is_mended_ends_nothing(place):
    fakes = [fake for fake in FAKES if not NUL.search(fake)]
    for client in _sessions(place, "normal"):
        for fake in fakes:
            _by_data(client, fake, "250")
            _by_bdat(client, fake, "250")
    place.all_arrived(2 * len(fakes))
    assert sum(b"second\r\n" in message.content for message in place.sink.messages) == 2 * len(fakes)


def _sendmail(place, content):
    command = [binary(), "sendmail", "-i", "-f", "me@sender.test", "-c", place.relay.config_path, "first@dest.test"]
    return subprocess.run(command, input=content, capture_output=True, timeout=60, check=False).returncode


def test_sendmail_hands_over_one_message_or_none(place):
    taken = [_sendmail(place, _body(fake)) == 0 for fake in FAKES]
    place.all_arrived(sum(taken))


def test_the_maildrop_hands_over_one_message_or_none(place):
    place.relay.wait_event("recover")
    place.relay.stop()
    left = [_sendmail(place, _body(fake)) == 0 for fake in FAKES]
    place.relay.start()
    maildrop = pathlib.Path(place.relay.spool, "maildrop")
    wait_until(lambda: not list(maildrop.iterdir()), 60, "the maildrop to be empty")
    refused = len(list(pathlib.Path(place.relay.spool, "quarantine").iterdir()))
    place.all_arrived(sum(left) - refused)


def test_what_is_tried_again_or_returned_ends_where_it_ended(place):
    body = b"Subject: first\r\n\r\nfirst\r\n..\r\n.\r\n" + SECOND.replace(b"\r\n", b"\r\n.") + b"second\r\n"
    with place.relay.client("strict") as client:
        client.greet()
        client.send_mail("again@sender.test", ["again@dest.test"], body)
        place.relay.wait_event("deferred")
        client.send_mail("from@sender.test", ["nobody@dest.test"], body)
    assert place.relay.command("queue", "requeue", "--all").returncode == 0
    place.sink.wait_messages(2)
    place.check_wire()
    (again,) = [message for message in place.sink.messages if message.recipients == ["again@dest.test"]]
    (report,) = [message for message in place.sink.messages if message.recipients == ["from@sender.test"]]
    assert received.without(again.content) == body
    assert body in report.content
    assert stuff(body).count(b"\r\n.\r\n") == 1
