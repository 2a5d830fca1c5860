# SPDX-License-Identifier: ISC
"""Clients that are broken or hostile, in ways that a dialogue cannot express."""

import contextlib
import itertools
import os
import pathlib
import re
import resource
import select
import signal
import socket
import ssl
import subprocess
import time

import pytest

from lab.config import Config
from lab.net import free_port, wait_until
from lab.proc import cpu_seconds, descriptors, resident_kib, sanitized
from lab.relay import binary
from lab.smtp import Closed, stuff, unverified_context

ENVELOPE = ("MAIL FROM:<from@sender.test>", "RCPT TO:<to@dest.test>")
HASTE = {
    "timeout": "3s", "command_timeout": "4s", "message_timeout": "4s", "tls_timeout": "3s",
}


class Place:
    """The relay of this file, with listeners of several tempers, and the sink behind it."""

    def __init__(self, lab):
        certificate, key = lab.certificates.host("relay.test")
        keys = {"certificate": certificate, "key": key, "client_connection_limit": 0}
        # Without CHUNKING: what is said of the end of data is to be seen.
        self.sink = lab.sink(extensions=("PIPELINING", "8BITMIME", "SMTPUTF8", "DSN"))
        config = Config().route_all_to(self.sink.port)
        config.listeners = {
            "smtp": {**keys},
            "hasty": {**keys, **HASTE},
            "smtps": {**keys, **HASTE, "tls": "implicit"},
            "endless": {**keys, "timeout": "5s", "error_limit": 0, "junk_command_limit": 0},
            "normal": {**keys, "bare_newline": "normalise"},
            "few": {**keys, "client_connection_limit": 3},
        }
        config.transports["smtp"] = {"connection_idle_timeout": "200ms"}
        self.relay = lab.relay(config)
        self.marks = 0

    def deliver(self, content, listener="smtp"):
        """Send one message and return what the sink got of it, without the relay's Received."""
        before = len(self.sink.messages)
        with self.relay.client(listener) as client:
            client.greet()
            client.send_mail("from@sender.test", ["to@dest.test"], content)
        return _without_received(self.sink.wait_messages(before + 1, timeout=60)[-1].content)

    def queued(self):
        """Return how many messages the relay has taken on so far."""
        return len(self.relay.events("queued"))

    def read_log(self):
        """Wait until what was done so far is in the log, which is written behind it."""
        self.marks += 1
        self.relay.send(sender=f"mark{self.marks}@sender.test")
        self.relay.wait_event("queued", **{"from": f"mark{self.marks}@sender.test"})

    def is_idle(self):
        """Say whether all clients have gone and all mail has passed: what a test counts is its own then."""
        names = [event.name for event in self.relay.events()]
        names = names[len(names) - 1 - names[::-1].index("ready"):]  # of a relay that was started again
        pairs = (("connect", "disconnect"), ("queued", "done"))
        return all(names.count(begun) <= names.count(ended) for begun, ended in pairs)

    def still_serves(self):
        """Fail unless a message passes."""
        assert self.deliver(b"Subject: still\r\n\r\nhere\r\n").endswith(b"here\r\n")


@pytest.fixture(scope="module", name="shared")
def _shared(module_lab):
    return Place(module_lab)


@pytest.fixture(name="place")
def _place(shared):
    """Give the shared relay; one that a test has ended fails that test alone."""
    if not shared.relay.running():
        shared.relay.process = None
        shared.relay.start()
    shared.read_log()
    wait_until(shared.is_idle, 60, "what the test before has left behind to pass")
    yield shared
    assert shared.relay.running(), "the relay has ended"


def _without_received(content):
    match = re.match(rb"Received:[^\r]*\r\n(?:[ \t][^\r]*\r\n)*", content)
    assert match, content[:200]
    return content[match.end():]


def _in_mail(client, data=True):
    client.greet()
    for line in ENVELOPE:
        client.command(line, 250)
    if data:
        client.command("DATA", 354)


def _exchange(client, data, timeout=60.0, until=None):
    """Send all of the data and read meanwhile; return what came until the close, or the pattern.

    Says as well how much of the data was taken.
    """
    client.socket.setblocking(False)
    view, received, taken = memoryview(data), bytearray(), 0
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        writers = [client.socket] if taken < len(view) else []
        readable, writable, _ = select.select([client.socket], writers, [], 0.5)
        try:
            if writable:
                taken += client.socket.send(view[taken:taken + (1 << 18)])
            if readable:
                more = client.socket.recv(1 << 18)
                if not more:
                    return bytes(received), taken
                received += more
        except BlockingIOError:
            continue
        except OSError:
            return bytes(received), taken
        if until and re.search(until, received[-200:]):
            return bytes(received), taken
    raise AssertionError(f"no end within {timeout} s, after {bytes(received[-300:])!r}")


# The end of the content.


@pytest.mark.parametrize("cuts", list(itertools.product((False, True), repeat=4)),
                         ids=lambda cuts: "".join("|" if cut else "-" for cut in cuts))
def test_the_end_of_the_content_may_be_cut_anywhere(place, cuts):
    body = b"Subject: cut\r\n\r\ntext"
    with place.relay.client() as client:
        _in_mail(client)
        client.send(body)
        piece = b""
        for byte, cut in zip(b"\r\n.\r\n", (*cuts, True)):
            piece += bytes([byte])
            if cut:
                time.sleep(0.01)
                client.send(piece)
                piece = b""
        queue_id = client.expect(250).text.split()[-1]
        client.command("NOOP", 250)
    event = place.relay.wait_event("queued", id=queue_id)
    assert event["nrcpt"] == "1"
    wait_until(lambda: any(_without_received(one.content) == body + b"\r\n"
                           for one in place.sink.messages), 60, "the message, unchanged")


@pytest.mark.parametrize("size", [4096, 8192, 16384, 32768, 65536, 131072])
def test_the_end_of_the_content_around_the_size_of_a_buffer(place, size):
    with place.relay.client() as client:
        client.greet()
        for offset in range(-8, 9):
            head = f"Subject: at {size} {offset}\r\n\r\n".encode("ascii")
            lines = b"x" * 62 + b"\r\n"
            body = head + lines * (size // 64)
            body = body[:size + offset - 5].rstrip(b"\r\n")
            body += b"y" * (size + offset - 5 - len(body)) + b"\r\n"
            before = len(place.sink.messages)
            client.send_mail("from@sender.test", ["to@dest.test"], body)
            got = place.sink.wait_messages(before + 1, timeout=60)[-1]
            assert _without_received(got.content) == body


@pytest.mark.parametrize("body", [
    b"..\r\n..x\r\n...\r\n", b".\r\n", b".From: x\r\n\r\n.\r\n.\r\n", b"a\r\n\r\n.b\r\n..\r\n",
], ids=["dots", "one", "first", "more"])
def test_dots_are_stuffed_and_unstuffed(place, body):
    assert place.deliver(b"Subject: dots\r\n\r\n" + body) == b"Subject: dots\r\n\r\n" + body
    assert place.deliver(body) == body


FAKE_ENDS = (
    b"\n.\n", b"\n.\r\n", b"\r\n.\n", b"\r.\r", b"\r.\n", b"\n.\r", b"\r.\r\n", b"\r\n.\r",
    b"\r\n.\r\r\n", b"\r\r\n.\r\r\n",
)


@pytest.mark.parametrize("end", FAKE_ENDS, ids=repr)
def test_no_fake_end_is_passed_on_to_the_next_host(place, end):
    commands = b"MAIL FROM:<x@y.test>\r\nRCPT TO:<z@y.test>\r\nDATA\r\nsecond"
    before = len(place.sink.transactions)
    with place.relay.client("normal") as client:
        _in_mail(client)
        client.send(b"Subject: fake\r\n\r\nfirst" + end + commands + b"\r\n.\r\n")
        client.expect(250)
        client.command("NOOP", 250)
    place.sink.wait_messages(before + 1)
    wire = place.sink.transactions[-1].wire
    assert not re.search(rb"\r(?!\n)|(?<!\r)\n", wire)
    assert not re.search(rb"\r\n\.[^.\r]", wire) and wire.count(b"\r\n.\r\n") == 1
    assert len(place.sink.transactions) == before + 1


@pytest.mark.parametrize("length, accepted", [(998, True), (999, True), (2047, True), (999998, True),
                                              (999999, False), (1 << 20, False)])
def test_a_long_line_passes_unchanged_or_is_refused(place, length, accepted):
    content = b"Subject: long\r\n\r\n" + b"x" * length + b"\r\n"
    if accepted:
        assert place.deliver(content) == content
        return
    with place.relay.client() as client:
        client.greet()
        reply = client.send_mail("a@b.test", ["to@dest.test"], content, code=550)
        assert reply.text.startswith("550 5.6.0")


# What comes too early.


def _stands_still(pid):
    stats = [path.read_text() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def test_bytes_before_the_greeting_are_no_mail(place):
    before = place.queued()
    place.relay.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: _stands_still(place.relay.process.pid), what="all threads to stand still")
        client = place.relay.client()
        client.send(b"EHLO early.test\r\n")
    finally:
        place.relay.signal(signal.SIGCONT)
    with client:
        said = client.wait_closed()
    assert re.match(rb"(554 5\.5\.0|[45]21 )", said), said
    assert place.queued() == before


def test_content_before_354_is_no_mail(place):
    before = place.queued()
    with place.relay.client() as client:
        _in_mail(client, data=False)
        client.send(b"DATA\r\nSubject: early\r\n\r\nMAIL FROM:<x@y.test>\r\n.\r\nQUIT\r\n")
        assert client.read_reply().text.startswith("554 5.5.0")
        assert client.wait_closed() == b""
    assert place.queued() == before


@pytest.mark.parametrize("tail", [b"NOOP\r\n", b"NOOP\r\n" * 11000, b"NO"],
                         ids=["a command", "64 KB", "half a command"])
def test_plain_text_behind_starttls_is_never_answered(place, tail):
    with place.relay.client() as client:
        client.greet()
        with contextlib.suppress(OSError):
            client.send(b"STARTTLS\r\n" + tail)
        reply = client.read_reply()
        if reply.code != 220:
            assert reply.text.startswith("554 5.5.0")
            assert client.wait_closed() == b""
            return
        with contextlib.suppress(OSError, ssl.SSLError, AssertionError, Closed):
            client.shake_hands()
            client.send(b"OP\r\n")
            assert client.read_reply().code >= 500
            return
    place.still_serves()


@pytest.mark.parametrize("tail", [b"", b"NOOP\r\n", b"NOOP\r\n" * 11000, b"NO"],
                         ids=["nothing", "a command", "64 KB", "half a command"])
def test_plain_text_between_the_reply_and_the_handshake_is_never_answered(place, tail):
    """What came with STARTTLS is refused above; this comes when 220 has been said. Without it the same client is served."""
    begun = len(place.relay.events("tls"))
    with place.relay.client() as client:
        client.greet()
        client.command("STARTTLS", 220)
        with contextlib.suppress(OSError):
            client.send(tail)
        if not tail:
            client.shake_hands()
            client.command("EHLO client.test", 250)
            return
        said = b""
        with contextlib.suppress(OSError, Closed, ValueError):  # ssl.SSLError is an OSError
            client.shake_hands()
            client.send(b"OP\r\n")
            said = client.wait_closed()
        assert not said
    place.still_serves()
    assert len(place.relay.events("tls")) == begun


# TLS.


class _BareTls:
    """TLS over a socket of which the test keeps hold."""

    def __init__(self, client, version=ssl.TLSVersion.TLSv1_3):
        self.socket = client.socket
        self.came, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = unverified_context()
        context.maximum_version = version
        self.tls = context.wrap_bio(self.came, self.goes)
        self._until_done(self.tls.do_handshake)

    def flush(self):
        """Send what TLS wants sent."""
        if self.goes.pending:
            self.socket.sendall(self.goes.read())

    def _until_done(self, call, *arguments):
        while True:
            try:
                result = call(*arguments)
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                more = self.socket.recv(65536)
                assert more, "the relay closed"
                self.came.write(more)

    def ask(self, line, code):
        """Send a line under TLS and check the code of the reply."""
        self.send(line + b"\r\n")
        self.hear(code)

    def hear(self, code):
        """Read a reply and check its code."""
        reply = b""
        while not re.search(rb"^\d{3} [^\n]*\n", reply, re.MULTILINE):
            reply += self._until_done(self.tls.read, 65536)
        assert reply.startswith(code), reply

    def send(self, data):
        """Send bytes under TLS."""
        self._until_done(self.tls.write, data)

    def close_notify(self):
        """Say that TLS ends here."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.flush()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("listener", ["smtp", "smtps"])
@pytest.mark.parametrize("verb", ["DATA", "BDAT", "command"])
def test_plain_text_after_the_end_of_tls_is_never_read(place, verb, listener, version):
    before, sessions = place.queued(), len(place.relay.events("disconnect"))
    with place.relay.client(listener) as client:
        if listener == "smtp":
            client.greet()
            client.command("STARTTLS", 220)
        tls = _BareTls(client, version)
        if listener == "smtps":
            tls.hear(b"220")
        tls.ask(b"EHLO client.test", b"250")
        for line in ENVELOPE:
            tls.ask(line.encode("ascii"), b"250")
        if verb == "DATA":
            tls.ask(b"DATA", b"354")
            tls.send(b"Subject: x\r\n\r\nsecret\r\n")
        elif verb == "BDAT":
            tls.send(b"BDAT 100 LAST\r\nSubject: x\r\n\r\n")
        tls.close_notify()
        with contextlib.suppress(OSError):
            client.send(b"injected\r\n.\r\n" + b"x" * 100 + b"\r\nNOOP\r\nMAIL FROM:<x@y.test>\r\n")
        said = client.wait_closed()
    assert not re.search(rb"^(250|503|500) ", said, re.MULTILINE), said
    place.relay.wait_event("disconnect", count=sessions + 1)
    assert place.queued() == before


def _weak(maximum, ciphers):
    context = unverified_context()
    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = maximum
    return context


@pytest.mark.parametrize("maximum, ciphers", [
    (ssl.TLSVersion.TLSv1, "ALL"), (ssl.TLSVersion.TLSv1_1, "ALL"),
    (ssl.TLSVersion.TLSv1_2, "aNULL"), (ssl.TLSVersion.TLSv1_2, "eNULL"),
], ids=["TLS 1.0", "TLS 1.1", "anonymous", "no encryption"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_weak_tls_is_refused(place, maximum, ciphers):
    context = _weak(maximum, ciphers)
    with place.relay.client() as client:
        client.greet()
        client.command("STARTTLS", 220)
        with pytest.raises((ssl.SSLError, ConnectionError), match="(?i)alert|eof|reset") as caught:
            client.shake_hands(context)
    assert "NO_PROTOCOLS" not in str(caught.value)
    place.still_serves()


def test_a_stalled_handshake_ends_at_its_time(place):
    with place.relay.client("smtps") as client:
        with pytest.raises(ConnectionError):  # within the 21 seconds that all of it takes
            for byte in b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200):
                client.send(bytes([byte]))
                time.sleep(0.1)
    place.still_serves()


def _s_client(place, *options, stdin):
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{place.relay.port}", "-starttls",
               "smtp", *options]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_renegotiation_is_refused(place):
    said = _s_client(place, "-tls1_2", stdin=b"R\n")
    assert b"RENEGOTIATING" in said
    assert re.search(rb"(?i)no.renegotiation|unexpected eof|errno|alert|Connection reset", said)
    place.still_serves()


@pytest.mark.parametrize("hello", [
    bytes.fromhex("1603010200010001fc0303") + bytes(507),
    b"\x03\x00\x00\x2b\x26\xe0\x00\x00\x00\x00\x00Cookie: mstshash=hello\r\n\x01\x00\x08\x00",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT relay.test:25 HTTP/1.1\r\n\r\n",
], ids=["TLS", "RDP", "HTTP 2", "CONNECT"])
def test_other_protocols_are_turned_away(place, hello):
    with place.relay.client("hasty") as client:
        client.expect(220)
        client.send(hello + b"\r\n" * 2)
        assert not re.search(rb"^2", client.wait_closed(), re.MULTILINE)


@pytest.mark.parametrize("line", [
    "XCLIENT ADDR=10.0.0.1", "XFORWARD NAME=x", "PROXY TCP4 10.0.0.1 10.0.0.2 1 25", "ETRN x.test",
])
def test_what_only_trusted_proxies_say_is_refused(place, line):
    with place.relay.client() as client:
        client.greet()
        client.command(line, 5)


# Too much, too slow.


def test_a_hundred_thousand_noops_are_too_many(place):
    with place.relay.client() as client:
        client.greet()
        said, _ = _exchange(client, b"NOOP\r\n" * 100_000)
    lines = said.split(b"\r\n")
    assert b"421 4.7.0" in said and len(lines) < 1000
    place.still_serves()


def test_a_hundred_thousand_recipients_do_not_fill_the_memory(place):
    count = 100_000
    lines = b"".join(b"RCPT TO:<to%d@dest.test>\r\n" % number for number in range(count))
    with place.relay.client("endless") as client:
        _in_mail(client, data=False)
        memory = resident_kib(place.relay)
        said, _ = _exchange(client, lines + b"RSET\r\nQUIT\r\n", until=rb"\n221 ", timeout=60)
        if not sanitized():
            assert resident_kib(place.relay) - memory < 30_000
    assert said.count(b"\r\n250 2.1.5") + said.startswith(b"250 2.1.5") == 999
    assert said.count(b"452 4.5.3") == count - 999


def test_a_hundred_recipients_pass(place):
    before = len(place.sink.messages)
    with place.relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", [f"to{number}@dest.test" for number in range(100)])
    wait_until(
        lambda: sum(len(one.recipients) for one in place.sink.messages[before:]) == 100, 60,
        "a hundred recipients",
    )


@pytest.mark.parametrize("start", [b"", b"EHLO ", b"MAIL FROM:<"], ids=["bare", "EHLO", "MAIL"])
def test_a_command_without_end_is_cut_off(place, start):
    memory = resident_kib(place.relay)
    with place.relay.client() as client:
        client.greet()
        said, taken = _exchange(client, start + b"x" * (64 << 20))
    assert taken < 32 << 20, f"{taken} bytes were taken"
    assert not said or said.startswith((b"500", b"421", b"521")), said
    if not sanitized():
        assert resident_kib(place.relay) - memory < 10_000


def _tiny_chunks(place, count):
    body = b"Subject: chunks\r\n\r\n" + b"0123456789abcde\r\n" * (count // 16)
    chunks = b"".join(b"BDAT 1\r\n%c" % byte for byte in body[:count])
    last = b"BDAT %d LAST\r\n%s" % (len(body) - count, body[count:])
    memory, before = resident_kib(place.relay), len(place.sink.messages)
    with place.relay.client() as client:
        _in_mail(client, data=False)
        said, _ = _exchange(client, chunks + last + b"QUIT\r\n", until=rb"\n221 ", timeout=120)
    assert said.count(b"\r\n250 ") + 1 == count + 1
    got = place.sink.wait_messages(before + 1, timeout=60)[-1]
    assert _without_received(got.content) == body
    if not sanitized():
        assert resident_kib(place.relay) - memory < 10_000


def test_ten_thousand_tiny_chunks_are_one_message(place):
    _tiny_chunks(place, 10_000)


@pytest.mark.plain_only
def test_a_million_tiny_chunks_are_one_message(place):
    _tiny_chunks(place, 1_000_000)


MALFORMED = {
    "one field of 1 MB": b"X-Long: a\r\n" + b" folded folded folded folded folded\r\n" * 28_000
                         + b"\r\nbody\r\n",
    "100,000 fields": b"".join(b"X-Field-%d: x\r\n" % number for number in range(100_000))
                      + b"\r\nbody\r\n",
    "no colon": b"Subject: x\r\nthis is no field\r\nTo: y\r\n\r\nbody\r\n",
    "blank first": b" Subject: x\r\nFrom: a@b.test\r\n\r\nbody\r\n",
    "twice From": b"From: a@b.test\r\nFrom: c@d.test\r\n\r\nbody\r\n",
    "no header": b"\r\nbody\r\n",
    "no body": b"Subject: x\r\n",
    "colon alone": b": x\r\n\r\nbody\r\n",
    "eight bits": "Subject: grüße\r\n\r\nbody\r\n".encode("latin-1"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_header_passes_unchanged(place, name):
    memory = resident_kib(place.relay)
    before = len(place.sink.messages)
    place.deliver(MALFORMED[name])
    got = place.sink.messages[before].content
    assert got.startswith(b"Received: ") and got.endswith(b"\r\n" + MALFORMED[name])
    if not sanitized():
        assert resident_kib(place.relay) - memory < 40_000


def test_nul_in_a_header_is_refused(place):
    with place.relay.client() as client:
        client.greet()
        client.send_mail("a@b.test", ["to@dest.test"], b"Subject: \0\r\n\r\nx\r\n", code=550)


def test_received_fields_are_counted_in_the_header_only(place):
    field = b"rEcEiVeD: from a by b;\r\n (folded)\r\n"
    content = b"Subject: x\r\n\r\n" + field * 200
    assert place.deliver(content) == content
    with place.relay.client() as client:
        client.greet()
        reply = client.send_mail("a@b.test", ["to@dest.test"], field * 60 + b"\r\nx\r\n", code=554)
        assert reply.text.startswith("554 5.4.6")


def _drip(client, data, pause):
    """Send byte by byte until the relay closes, which it has to do before all is sent; return what it said."""
    said = b""
    client.socket.settimeout(pause)
    for byte in data:
        try:
            client.send(bytes([byte]))
            more = client.socket.recv(65536)
            if not more:
                return said
            said += more
        except TimeoutError:
            continue
        except OSError:
            return said
    raise AssertionError(f"the relay bore it all, and said {said!r}")


def test_slow_clients_are_closed_and_hold_nobody_up(place):
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(place.relay.client("hasty")) for _ in range(200)]
        place.still_serves()
        for client in idle:
            client.expect(220)
            said = client.wait_closed()
            assert said.startswith(b"421 4.4.2"), said
    place.still_serves()


@pytest.mark.parametrize("where", ["command", "header", "body", "chunk"])
def test_a_client_that_sends_byte_by_byte_is_closed_in_time(place, where):
    before = place.queued()
    with place.relay.client("hasty") as client:
        if where == "command":
            client.greet()
            data = b"EHLO " + b"x" * 200
        elif where == "chunk":
            _in_mail(client, data=False)
            client.send(b"BDAT 1000 LAST\r\n")
            data = b"x" * 200
        else:
            _in_mail(client)
            data = b"Subject: " + (b"x" * 200 if where == "header" else b"x\r\n\r\n" + b"x" * 200)
        said = _drip(client, data, 0.1)
    assert not said or b"421 4.4.2" in said, said
    assert place.queued() == before


def test_a_client_that_never_reads_is_closed(place):
    memory = resident_kib(place.relay)
    with socket.socket() as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        mute.connect(("127.0.0.1", place.relay.ports["endless"]))
        mute.settimeout(60)
        commands, began = b"EHLO client.test\r\n" + b"VRFY someone\r\n" * 20_000, time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() - began < 60:
                mute.sendall(commands)
    if not sanitized():
        assert resident_kib(place.relay) - memory < 20_000
    place.still_serves()


def test_too_many_connections_of_one_client_are_refused(place):
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(place.relay.client("few")) for _ in range(4)]
        said = sorted(client.read_reply().text for client in clients)
        assert [text[:3] for text in said] == ["220", "220", "220", "421"]
        assert said[3].startswith("421 4.7.0")
        place.still_serves()

    def served_again():
        with place.relay.client("few") as client:
            return client.read_reply().code == 220

    wait_until(served_again, 60, "room for this client again")


def test_who_does_not_close_after_the_end_has_his_connections_still(place):
    """Sent away for what they said, the clients keep their ends open; ours waits for them a while."""
    before = descriptors(place.relay)
    with contextlib.ExitStack() as stack:
        said = []
        for _ in range(40):
            client = stack.enter_context(place.relay.client("few"))
            reply = client.read_reply()
            said.append(reply.code)
            if reply.code == 220:
                client.send(b"GET / HTTP/1.1\r\n")
                client.expect(521)
        assert said.count(220) == 3 and said.count(421) == 37
        assert descriptors(place.relay) <= before + 8  # not the 37
    place.still_serves()


def test_no_descriptors_left_is_no_spin_and_no_end(lab):
    sink = lab.sink()
    config = Config().route_all_to(sink.port)
    config.listeners["smtp"] = {"client_connection_limit": 0}
    relay = lab.relay(config)
    relay.send()
    sink.wait_messages()
    usual, most = resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE)
    limit = descriptors(relay) + 20
    resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE, (limit, most))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(relay.client()) for _ in range(120)]
        unheard, said = list(clients), []

        def somebody_is_refused():
            readable, _, _ = select.select([client.socket for client in unheard], [], [], 0)
            heard = [client for client in unheard if client.socket in readable]
            unheard[:] = [client for client in unheard if client not in heard]
            said.extend(client.read_reply() for client in heard)
            return any(reply.text.startswith("421 4.3.2") for reply in said)

        wait_until(somebody_is_refused, what="a client to be told that there is no room")
        assert sum(reply.code == 220 for reply in said) <= 25  # some were open for a moment
        before = cpu_seconds(relay)
        time.sleep(1.0)
        assert cpu_seconds(relay) - before < 0.4, "the relay spins"
    resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE, (usual, most))

    def accepted():
        with contextlib.suppress(AssertionError, Closed, OSError):
            return relay.send(content=b"Subject: again\r\n\r\nx\r\n")
        return None

    wait_until(accepted, 60, "mail to be taken again")
    sink.wait_messages(2, timeout=60)


# Gone.


def _points(client):
    """Go from one point of the protocol to the next; at each the client may end."""
    yield "before the greeting"
    client.expect(220)
    yield "after the greeting"
    client.send(b"EH")
    yield "in a command"
    client.send(b"LO client.test\r\n")
    yield "before the reply to EHLO"
    client.expect(250)
    client.command(ENVELOPE[0])
    yield "after MAIL"
    client.command(ENVELOPE[1])
    yield "after RCPT"
    client.command("DATA", 354)
    yield "after DATA"
    client.send(b"Subject: x\r\n\r\nhal")
    yield "in the body"
    client.send(b"x" * 300_000 + b"\r\n")
    yield "in a large body"
    client.send(b"\r\n.\r")
    yield "before the last byte"


def _tls_points(client):
    client.greet()
    client.send("STARTTLS")
    yield "before the reply to STARTTLS"
    client.expect(220)
    yield "before the handshake"
    client.send(bytes.fromhex("1603010200010001fc0303"))
    yield "in the handshake"


def _chunk_points(client):
    _in_mail(client, data=False)
    client.send(b"BDAT 10\r\n01234")
    yield "in a chunk"
    client.send(b"56789BDAT 4 LAST\r\nx\r\n")
    yield "before the last byte of a chunk"


def _secure_points(client):
    client.greet()
    client.starttls()
    yield "after the handshake"
    client.command("EHLO client.test")
    for line in ENVELOPE:
        client.command(line)
    client.command("DATA", 354)
    client.send(b"Subject: x\r\n\r\nhal")
    yield "in the body under TLS"


WAYS = (_points, _tls_points, _chunk_points, _secure_points)


def _end_at_every_point(relay, reset):
    """Wait, too, until the relay has seen the end of each."""
    before, count = len(relay.events("disconnect")), 0
    for way in WAYS:
        point = 0
        while True:
            client = relay.client()
            count += 1
            steps = way(client)
            reached = [name for name, _ in zip(steps, range(point + 1))]
            if len(reached) <= point:
                client.close()
                break
            (client.reset if reset else client.close)()
            point += 1
    relay.wait_event("disconnect", count=before + count)


@pytest.mark.parametrize("reset", [False, True], ids=["close", "reset"])
def test_clients_that_end_anywhere_leave_nothing_behind(place, reset):
    before = place.queued() + 1
    place.still_serves()
    place.relay.wait_event("queued", count=before)  # what is logged is written a moment later
    wait_until(place.is_idle, what="its client to be gone")
    _end_at_every_point(place.relay, reset)
    open_before, memory = descriptors(place.relay), resident_kib(place.relay)
    for _ in range(10):
        _end_at_every_point(place.relay, reset)
    wait_until(lambda: descriptors(place.relay) <= open_before, 60, "descriptors to be closed")
    if not sanitized():
        assert resident_kib(place.relay) - memory < 10_000
    assert place.queued() == before
    place.still_serves()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_message_is_kept_when_the_client_goes_after_the_dot(place, how):
    mark, before = f"gone-{how}".encode("ascii"), place.queued()
    client = place.relay.client()
    _in_mail(client)
    client.send(stuff(b"Subject: " + mark + b"\r\n\r\nx\r\n"))
    if how == "close":
        client.close()
    else:
        place.relay.wait_event("queued", count=before + 1)
        client.reset()
    wait_until(lambda: any(mark in one.content for one in place.sink.messages), 60, "the message")


# What ends up elsewhere.


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_that_a_client_says_makes_a_line_in_the_log(lab, form):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port), log_format=form)
    words = ["%n%s%x", "\x1b[31m", "a\tb", 'x" event="sent', "grüße", "a\x7fb", "\\n\\r", "]["]
    for word in words:
        with relay.client() as client, contextlib.suppress(Closed, AssertionError):
            client.expect(220)
            client.send(f"EHLO {word}")
            client.read_reply()
            client.command("EHLO client.test")
            client.send(f'MAIL FROM:<"{word}"@sender.test>')
            client.read_reply()
            client.send(f'RCPT TO:<"{word}"@dest.test> ORCPT=rfc822;{word}')
            client.read_reply()
            client.send(f'RCPT TO:<"{word}"@dest.test>')
            client.read_reply()
            client.send("DATA")
            if client.read_reply().code == 354:
                client.send(stuff(f"Subject: {word}\r\nMessage-ID: <{word}>\r\n\r\nx\r\n"))
                client.read_reply()
    relay.send(recipients=["last@dest.test"])
    relay.wait_event("sent", to=re.compile("last@dest.test"))
    text = relay.log_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text), "the log has control characters"
    lines = text.splitlines()
    assert len(relay.events()) == len(lines), "a line that is no event"
    assert all("event" not in event.keys for event in relay.events())


def test_nothing_is_ever_executed(lab, monkeypatch, tmp_path):
    trace = tmp_path / "trace"
    strace = ["strace", "-f", "-qq", "-e", "trace=execve,execveat", "-o", str(trace)]
    with contextlib.suppress(OSError):
        probe = subprocess.run([*strace, "true"], capture_output=True, check=False)
    if not trace.exists() or probe.returncode != 0:
        pytest.skip("strace does not run here")
    monkeypatch.setenv("SLUICE_WRAPPER", " ".join(strace))
    leaks = os.environ.get("ASAN_OPTIONS", "")
    monkeypatch.setenv("ASAN_OPTIONS", f"{leaks}:detect_leaks=0")
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    senders = (";sleep 66;", "$(id)@x.test", "`id`@x.test", "|/bin/id", '"|/bin/id"@x.test',
               "a@b.test")
    recipients = ("${run{/bin/id}}@dest.test", '"|/bin/sh -c id"@dest.test', "$(id)@dest.test",
                  "`id`@dest.test", "/etc/passwd@dest.test", ":include:/etc/passwd@dest.test")
    for sender in senders:
        with relay.client() as client:
            client.greet()
            client.send(f"MAIL FROM:<{sender}>")
            if client.read_reply().code != 250:
                continue
            for recipient in (*recipients, "to@dest.test"):
                client.send(f"RCPT TO:<{recipient}>")
                client.read_reply()
            client.command("DATA", 354)
            client.send(stuff(b"Subject: ${run{/bin/id}}\r\n\r\n`id`\r\n"))
            client.expect(250)
    sink.wait_messages(timeout=60)
    relay.stop()
    calls = trace.read_text(encoding="utf-8").splitlines()
    assert [line for line in calls if "exec" in line and binary() not in line] == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("where", ["one", "other"])
def test_a_session_of_one_listener_is_not_resumed_at_another(lab, where, version):
    """At its own it is: that is how one knows that it could be."""
    certificate, key = lab.certificates.host("relay.test")
    keys = {"certificate": certificate, "key": key, "tls": "implicit"}
    config = Config().route_all_to(free_port())
    config.listeners = {"one": keys, "other": {**keys, "networks": ["10.0.0.0/8"]}}
    relay = lab.relay(config)
    context = unverified_context()
    context.maximum_version = version
    with relay.client("one") as first:
        first.shake_hands(context)
        first.expect(220)
        session = first.socket.session
        assert session.has_ticket
    with relay.client(where) as second:
        second.socket = context.wrap_socket(
            second.socket, server_hostname="relay.test", session=session
        )
        second.expect(220)
        assert second.socket.session_reused == (where == "one")
