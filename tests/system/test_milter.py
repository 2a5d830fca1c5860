# SPDX-License-Identifier: ISC
"""Filters: what they are told, what they may change, and what becomes of mail when they are no good."""

import itertools
import os
import struct
import threading
import time

import pytest

from lab import milter as m
from lab import received
from lab.config import Config
from lab.milter import Milter, packet, texts
from lab.net import wait_until
from lab.proc import cpu_seconds, sanitized
from lab.smtp import stuff

CONTENT = b"From: <a@sender.test>\r\nTo: <b@dest.test>\r\nSubject: one\r\n two\r\nX-Same: 1\r\nX-Same: 2\r\n\r\nHello.\r\n.dot\r\n"
REJECTED = "550 5.7.1 Command rejected"
LATER = "451 4.7.1 Service unavailable - try again later"
ACTIONS = ["tempfail", "accept", "reject", "quarantine"]


def _section(name, address, **settings):
    rows = {"address": f'"{address}"', "timeout": "3s"} | settings
    return f'milter "{name}" {{\n' + "".join(f"  {key} = {value}\n" for key, value in rows.items()) + "}\n"


@pytest.fixture(scope="module")
def sink(module_lab):
    return module_lab.sink()


@pytest.fixture(scope="module")
def filters(module_lab):
    one, two = Milter(), Milter(path=f"{module_lab.folder('milter')}/socket")
    module_lab.callback(one.close)
    module_lab.callback(two.close)
    return one, two


@pytest.fixture(scope="module")
def relay(module_lab, sink, filters):
    """Listeners called after what becomes of mail when the first filter is no good; "two" has a second behind it.

    Whoever asks until a filter is back is refused more often than a client may be.
    """
    config = Config({"workers": 1, "log_level": "debug", "http": ""}).route_all_to(sink.port)
    milters = {name: [name] for name in ACTIONS} | {"two": ["tempfail", "second"], "none": []}
    config.listeners = {name: {"milters": of, "error_limit": 0} for name, of in milters.items()}
    sections = [_section(name, filters[0].address, default_action=f'"{name}"') for name in ACTIONS]
    config.extra = "".join(sections) + _section("second", filters[1].address)
    return module_lab.relay(config)


@pytest.fixture(name="one")
def _one(relay, filters):
    for milter in filters:
        milter.behave()
    for listener in ("two", "reject"):  # the others don't say whether they were asked
        with relay.client(listener) as client:
            client.greet()
            wait_until(lambda c=client: _takes_mail(c), 60, "the filters to be asked again")
    for milter in filters:
        milter.behave()
    return filters[0]


@pytest.fixture(name="two")
def _two(filters, one):
    assert one
    return filters[1]


def _send(relay, listener="tempfail", content=CONTENT, code=250, recipients=("b@dest.test",), params=""):
    with relay.client(listener) as client:
        client.greet()
        return client.send_mail("a@sender.test", recipients, content, code, params)


def _passed(relay, sink, listener="tempfail", content=CONTENT, **options):
    """Send a message; return the transaction that comes of it."""
    before = len(sink.messages)
    _send(relay, listener, content, **options)
    return sink.wait_messages(before + 1)[-1]


def _held(relay):
    """Take the one message on hold out of the queue, and return what was held."""
    def ids():
        return [line.split()[0] for line in relay.command("queue", "list", "--queue", "hold").stdout.splitlines() if "sender.test" in line]
    wait_until(lambda: len(ids()) == 1, 60, "a message to be held")
    (held,) = ids()
    text = relay.command("queue", "show", held).stdout
    relay.command("queue", "delete", held)
    return text


def test_a_filter_is_told_all_in_its_order(relay, sink, one):
    message = _passed(relay, sink, params=" SIZE=99 BODY=8BITMIME RET=HDRS ENVID=x")
    assert received.without(message.content) == CONTENT
    said = one.conversations[0]
    assert said.letters().rstrip(b"KQ") == b"CHMRTLLLLLNBE"
    assert said.all(b"C")[0].startswith(b"unknown\x004") and said.all(b"C")[0].endswith(b"127.0.0.1\0")
    assert said.all(b"H") == [b"client.test\0"]
    assert said.all(b"M") == [texts("<a@sender.test>", "SIZE=99", "BODY=8BITMIME", "RET=HDRS", "ENVID=x")]
    assert said.all(b"R") == [texts("<b@dest.test>")]
    assert said.all(b"L")[2] == texts("Subject", "one\n two")
    assert said.all(b"B") == [b"Hello.\r\n.dot\r\n"]
    assert said.macros[b"C"][b"j"] == b"relay.test"
    assert said.macros[b"C"][b"{daemon_name}"] == b"tempfail"
    assert said.macros[b"C"][b"{client_addr}"] == b"127.0.0.1"
    assert said.macros[b"M"][b"{mail_addr}"] == b"a@sender.test"
    assert said.macros[b"R"][b"{rcpt_addr}"] == b"b@dest.test"
    relay.wait_event("queued", id=said.macros[b"E"][b"i"].decode())
    assert b"{tls_version}" not in said.macros.get(b"H", {})


def test_a_connection_serves_one_client_after_the_other(relay, sink, one):
    """Who comes before the filter has answered that it is free again has another connection."""
    def serve_another():
        _passed(relay, sink)
        return one.conversations[0].letters().count(b"C") == 3

    wait_until(serve_another, 60, "a connection to serve three")
    assert one.conversations[0].letters().count(b"K") >= 2


def test_it_is_told_only_what_it_wants(relay, sink, one):
    one.behave(steps=m.NOTHING_WANTED)
    _passed(relay, sink)
    assert one.conversations[0].letters()[:1] == b"E"


def test_what_it_does_not_answer_is_not_waited_for(relay, sink, one):
    silent = {letter: b"" for letter in "CHMRTLNB"}
    one.behave(silent, steps=m.NO_ANSWERS)
    large = CONTENT + b"line of a large body\r\n" * 40000
    assert received.without(_passed(relay, sink, content=large).content) == large
    body = b"".join(one.conversations[0].all(b"B"))
    assert body == large.split(b"\r\n\r\n", 1)[1]
    assert max(map(len, one.conversations[0].all(b"B"))) == 65535


def test_macros_are_those_it_asks_for(relay, sink, one):
    one.behave(macros=[(2, "{mail_host}"), (3, "{rcpt_mailer},i j")])
    _passed(relay, sink)
    assert one.conversations[0].macros[b"M"] == {b"{mail_host}": b"sender.test"}
    assert set(one.conversations[0].macros[b"R"]) == {b"{rcpt_mailer}", b"j"}


def test_all_that_can_be_changed(relay, sink, one):
    one.behave({"E": m.add_header("X-Last", "behind\n all") + m.insert_header(0, "X-First", "before all")
                     + m.insert_header(2, "X-Third", "behind Received") + m.change_header(2, "x-same", "changed")
                     + m.change_header(1, "Subject", "") + m.change_header(9, "X-New", "added")
                     + packet(m.PROGRESS) + m.replace_body(b"another\nbody\r\nof three")
                     + packet(b"e", texts("<new@sender.test>", "RET=FULL ENVID=y")) + packet(b"-", texts("<b@dest.test>"))
                     + packet(b"+", texts("c@dest.test")) + packet(b"2", texts("<d@dest.test>", "NOTIFY=NEVER"))
                     + packet(m.CONTINUE)})
    message = _passed(relay, sink)
    header, body = message.content.split(b"\r\n\r\n", 1)
    lines = header.split(b"\r\n")
    assert lines[0] == b"X-First: before all"
    assert lines[1].startswith(b"Received: ")
    assert lines[lines.index(b"X-Third: behind Received") + 1] == b"From: <a@sender.test>"
    assert b"Subject" not in header
    assert lines[-5:] == [b"X-Same: 1", b"x-same: changed", b"X-Last: behind", b" all", b"X-New: added"]
    assert body == b"another\r\nbody\r\nof three" or body == b"another\r\nbody\r\nof three\r\n"
    assert message.sender == "new@sender.test"
    assert sorted(message.recipients) == ["c@dest.test", "d@dest.test"]
    relay.wait_event("filter", action="change", reason="header, sender, recipients, body")


@pytest.mark.parametrize("value, field", [("x\n", b"x"), ("x\r\n\r\n", b"x"), ("x\n \n y", b"x\r\n y"), ("\n x\n\t", b"\r\n x"), ("x\n\n y\n ", b"x\r\n y")])
def test_lines_of_a_field_that_have_nothing_in_them_are_left_out(relay, sink, one, value, field):
    one.behave({"E": m.add_header("X-Odd", value) + m.change_header(1, "Subject", value) + packet(m.CONTINUE)})
    content = received.without(_passed(relay, sink).content)
    rest = CONTENT.replace(b"Subject: one\r\n two", b"Subject: " + field)
    assert content == rest.replace(b"\r\n\r\n", b"\r\nX-Odd: " + field + b"\r\n\r\n")


@pytest.mark.parametrize("length", [65536, 300000])
def test_a_body_may_be_replaced_by_one_packet(relay, sink, one, length):
    """As rspamd has it, and Postfix takes it."""
    body = (b"y" * 62 + b"\r\n") * (length // 64)
    one.behave({"E": packet(b"b", body) + packet(m.CONTINUE)})
    assert _passed(relay, sink).content.endswith(b"\r\n\r\n" + body)


def test_a_large_body_is_replaced_by_another(relay, sink, one, two):
    new = b"0123456789abcdef" * 64 + b"\r\n"
    one.behave({"E": m.replace_body(new * 1500) + packet(m.CONTINUE)})
    message = _passed(relay, sink, "two", CONTENT + b"x" * 70 + b"\r\n" * 20000)
    assert message.content.split(b"\r\n\r\n", 1)[1] == new * 1500
    assert b"".join(two.conversations[0].all(b"B")) == new * 1500


def test_two_that_undo_each_other(relay, sink, one, two):
    one.behave({"E": m.add_header("X-One", "1") + m.replace_body(b"first\r\n") + packet(b"+", texts("c@dest.test"))
                     + packet(b"e", texts("one@sender.test")) + packet(m.CONTINUE)})
    two.behave({"E": m.change_header(1, "X-One", "") + m.replace_body(b"second\r\n") + packet(b"-", texts("c@dest.test"))
                     + packet(b"e", texts("a@sender.test")) + packet(m.ACCEPT)})
    message = _passed(relay, sink, "two")
    assert received.without(message.content).split(b"\r\n\r\n") == [CONTENT.split(b"\r\n\r\n")[0], b"second\r\n"]
    assert (message.sender, message.recipients) == ("a@sender.test", ["b@dest.test"])
    assert texts("X-One", "1") in two.conversations[0].all(b"L")
    assert two.conversations[0].all(b"B") == [b"first\r\n"]


def test_a_message_is_held(relay, sink, one):
    one.behave({"E": packet(b"q", texts("looks odd")) + packet(m.CONTINUE)})
    before = len(sink.messages)
    _send(relay)
    assert "Hello." in _held(relay)
    assert relay.wait_event("filter", action="quarantine")["reason"] == "looks odd"
    assert len(sink.messages) == before


@pytest.mark.parametrize("letter", "MTLNBE")
def test_a_message_is_discarded(relay, sink, one, letter):
    before = len(sink.messages)
    one.behave({letter: packet(m.DISCARD)})
    assert _send(relay).code == 250
    assert relay.wait_event("discard", reason="milter tempfail")
    assert len(sink.messages) == before


def test_a_filter_may_want_a_sender_beyond_ascii(relay, sink, one):
    """If it says so: the client has not asked for SMTPUTF8."""
    to_joerg = packet(b"e", texts("<jörg@sender.test>", "RET=HDRS SMTPUTF8"))
    one.behave({"E": to_joerg + packet(m.CONTINUE)})
    assert _passed(relay, sink).sender == "jörg@sender.test"
    one.behave({"E": packet(b"e", texts("<jörg@sender.test>", "RET=HDRS")) + packet(m.CONTINUE)})
    _send(relay, code=451)


def test_a_sender_that_is_changed_may_keep_its_parameters(relay, one):
    """As filters hand back what they were told. REQUIRETLS holds, too: the sink has no TLS."""
    one.behave({"E": packet(b"e", texts("<other@sender.test>", "SIZE=99 BODY=8BITMIME REQUIRETLS RET=HDRS")) + packet(m.CONTINUE)})
    _send(relay)
    assert relay.wait_event("bounced", to="b@dest.test")["reply"].startswith("REQUIRETLS was asked for")
    one.behave({"E": packet(b"e", texts("<other@sender.test>", "REQUIRETLS=yes")) + packet(m.CONTINUE)})
    _send(relay, code=451)


WORDS = " word" * 100  # a line has 512 bytes at most: RFC 5321 4.5.3.1.5

ANSWERS = {
    "reject": (packet(m.REJECT), REJECTED),
    "tempfail": (packet(m.TEMPFAIL), LATER),
    "reply": (m.reply("554 5.7.0 not %%that"), "554 5.7.0 not %that"),
    "lines": (m.reply("451-4.2.0 one\r\n451 4.2.0 two"), "451-4.2.0 one\n451 4.2.0 two"),
    "long": (m.reply(f"554 5.7.0{WORDS}{WORDS[:-45]}"), f"554-5.7.0{WORDS} \n554 5.7.0{WORDS[:-45]}"),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("letter", "HMRTLNBE")
def test_a_refusal_at_each_stage(relay, sink, one, letter, answer):
    told, expected = ANSWERS[answer]
    before = len(sink.messages)
    one.behave({letter: told})
    commands = {"H": "EHLO c.test", "M": "MAIL FROM:<a@sender.test>", "R": "RCPT TO:<b@dest.test>", "T": "DATA"}
    with relay.client("tempfail") as client:
        client.expect(220)
        for stage, line in commands.items():
            refused = stage == letter
            reply = client.command(line, int(expected[:3]) if refused else 354 if stage == "T" else 250)
            if refused:
                assert reply.text == expected
                break
        else:
            client.send(b"Subject: x\r\n\r\nbody\r\n.\r\n")
            assert client.expect(int(expected[:3])).text == expected
        one.answers = {}
        if letter == "H":
            client.command("EHLO c.test")
        client.command("RSET")
        client.send_mail("a@sender.test", ["b@dest.test"])
    sink.wait_messages(before + 1)


def test_a_client_is_refused_at_its_connection(relay, one):
    one.behave({"C": packet(m.REJECT)})
    with relay.client("tempfail") as client:
        assert client.expect(554).text == "554 5.7.1 Command rejected"
        assert client.wait_closed() == b""
    one.behave({"C": m.reply("450 4.7.1 grey")})
    with relay.client("tempfail") as client:
        assert client.expect(421).text == "421 4.7.1 grey"
        assert client.wait_closed() == b""


def test_a_filter_can_end_a_session(relay, one):
    for letter in "HMRTE":
        one.behave({letter: packet(m.SHUTDOWN)})
        with relay.client("tempfail") as client:
            client.expect(220)
            client.send(b"EHLO c.test\r\nMAIL FROM:<a@sender.test>\r\nRCPT TO:<b@dest.test>\r\nDATA\r\n")
            if letter == "E":
                assert [client.read_reply().code for _ in range(4)] == [250, 250, 250, 354]
                client.send(b"x\r\n.\r\n")
            assert b"\r\n421 4.7.0 " in b"\r\n" + client.wait_closed()


def test_one_that_accepts_is_asked_no_more(relay, sink, one):
    for letter, said in {"C": b"C", "H": b"CH", "M": b"CHM", "R": b"CHMR", "L": b"CHMRTL", "B": b"CHMRTLLLLLNB"}.items():
        one.behave({letter: packet(m.ACCEPT)})
        _passed(relay, sink)
        assert one.conversations[0].letters().rstrip(b"KQ") == said


def test_the_rest_of_a_body_may_be_skipped(relay, sink, one):
    one.behave({"B": packet(m.SKIPPED)}, steps=m.SKIP)
    large = CONTENT + b"line of a large body\r\n" * 30000
    assert received.without(_passed(relay, sink, content=large).content) == large
    assert one.conversations[0].letters().count(b"B") == 1


def test_unknown_commands_are_told(relay, one):
    one.behave({"U": m.reply("550 5.5.1 no such thing")})
    with relay.client("tempfail") as client:
        client.greet()
        assert client.command("FROB a b", 550).text == "550 5.5.1 no such thing"
    assert one.conversations[0].all(b"U") == [b"FROB a b\0"]


def test_a_transaction_that_ends_is_aborted(relay, sink, one):
    with relay.client("tempfail") as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>")
        client.command("RCPT TO:<b@dest.test>")
        client.command("RSET")
        client.send_mail("a@sender.test", ["b@dest.test"])
    assert one.wait_said(b"A").letters().startswith(b"CHMRAMRT")
    sink.wait_messages(1)


def test_content_in_chunks_passes_too(relay, sink, one):
    before = len(sink.messages)
    with relay.client("tempfail") as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>")
        client.command("RCPT TO:<b@dest.test>")
        client.socket.sendall(b"BDAT %d LAST\r\n" % len(CONTENT) + CONTENT)
        client.expect(250)
    assert received.without(sink.wait_messages(before + 1)[-1].content) == CONTENT
    assert one.conversations[0].letters().startswith(b"CHMRTLLLLLNBE")


def _gone(_conversation, _data):
    raise EOFError


HOSTILE = {
    "a length of 4 GB": b"\xff\xff\xff\xffc",
    "a length of nothing": bytes(4) + b"c",
    "half a packet, then nothing": b"\0\0\0\x0ac",
    "half a packet, then gone": _gone,
    "silence": b"",
    "an answer twice": packet(m.CONTINUE) * 2,
    "what is no answer": packet(b"Z", b"x"),
    "an answer that is too long": packet(m.CONTINUE, b"x"),
    "a reply that is none": m.reply("250 2.0.0 fine"),
    "a reply of another class": m.reply("550 4.7.1 later"),
    "a reply without end": packet(b"y", b"550 5.7.1 no"),
    "a reply of two codes": m.reply("550-5.7.1 no\r\n551 5.7.1 no"),
    "a reply with another behind it": m.reply("550 5.7.1 no\r\n250 2.0.0 yes"),
    "patience without end": packet(m.PROGRESS),
    "it gives up": packet(m.GIVES_UP),
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a negotiation": packet(b"O", struct.pack(">III", 6, 0, 0)),
}

HOSTILE_AT_THE_END = {
    "a field with another injected": m.add_header("X", "a\r\nBcc: <x@x.test>") + packet(m.CONTINUE),
    "a field that ends the header": m.add_header("X", "a\n\nbody") + packet(m.CONTINUE),
    "a field with a bare CR": m.add_header("X", "a\rb") + packet(m.CONTINUE),
    "a name that is none": m.add_header("X: y\r\nZ", "a") + packet(m.CONTINUE),
    "a body with a NUL": packet(b"b", b"a\0b") + packet(m.CONTINUE),
    "a change cut short": packet(b"m", b"\0\0") + packet(m.CONTINUE),
    "a change without end": packet(b"h", b"X\0y") + packet(m.CONTINUE),
    "a sender that is none": packet(b"e", texts("<a@b\r\nRCPT TO:<x@x.test>>")) + packet(m.CONTINUE),
    "parameters that are none": packet(b"e", texts("<a@b.test>", "FOO=BAR")) + packet(m.CONTINUE),
    "a recipient that is none": packet(b"+", texts("x y")) + packet(m.CONTINUE),
    "too many header fields": m.add_header("X", "y") * 20000 + packet(m.CONTINUE),
    "too much header": m.add_header("X", "y" * 60000) * 30 + packet(m.CONTINUE),
    "a change and silence": m.add_header("X", "y"),
    "skipping what is no body": packet(m.SKIPPED),
}


def _takes_mail(client):
    client.send("MAIL FROM:<a@sender.test>")
    return client.read_reply().code == 250


def _is_refused_and_then_goes_on(relay, sink, one, letter):
    """The filter is no good from that packet on. No message passes it but where that is wanted."""
    wait_until(lambda: not relay.command("queue", "list", "--json", "--queue", "active").stdout, 60, "the end of what passed before")
    before = len(sink.messages)
    with relay.client("tempfail") as client:
        client.expect(220)
        client.send(b"EHLO c.test\r\nMAIL FROM:<a@sender.test>\r\nRCPT TO:<b@dest.test>\r\nDATA\r\n")
        replies = [client.read_reply() for _ in range(4)]
        if replies[3].code == 354:
            client.send(b"Subject: x\r\n\r\nbody\r\n.\r\n")
            replies.append(client.read_reply())
        assert LATER in [reply.text for reply in replies], replies
        one.behave()
        client.command("RSET")
        wait_until(lambda: _takes_mail(client), 60, "the filter to be asked again")
        client.command("RSET")
        client.send_mail("a@sender.test", ["b@dest.test"])
    assert len(sink.wait_messages(before + 1)) == before + 1, letter


@pytest.mark.parametrize("what", HOSTILE)
def test_a_filter_that_makes_no_sense(relay, sink, one, what):
    """At each moment. What takes long is tried at two of them."""
    slow = "half a packet, then nothing", "silence", "patience without end"
    for letter in "OE" if what in slow else "OMRTLNBE":
        if what == "a negotiation" and letter == "O":
            continue
        one.behave({letter: HOSTILE[what]})
        _is_refused_and_then_goes_on(relay, sink, one, letter)


@pytest.mark.parametrize("what", HOSTILE_AT_THE_END)
def test_changes_that_can_not_be(relay, sink, one, what):
    one.behave({"E": HOSTILE_AT_THE_END[what]})
    _is_refused_and_then_goes_on(relay, sink, one, "E")


@pytest.mark.parametrize("letter", "MRTLNB")
def test_changes_at_another_time(relay, sink, one, letter):
    one.behave({letter: m.add_header("X", "y") + packet(m.CONTINUE)})
    _is_refused_and_then_goes_on(relay, sink, one, letter)


@pytest.mark.parametrize("change, action", [
    (m.add_header("X", "y"), m.ADD_HEADERS), (m.insert_header(0, "X", "y"), m.ADD_HEADERS),
    (m.change_header(1, "X", "y"), m.CHANGE_HEADERS), (m.replace_body(b"x"), m.CHANGE_BODY),
    (packet(b"e", texts("<x@x.test>")), m.CHANGE_FROM), (packet(b"+", texts("<x@x.test>")), m.ADD_RCPT),
    (packet(b"2", texts("<x@x.test>")), m.ADD_RCPT_ARGS), (packet(b"-", texts("<b@dest.test>")), m.DELETE_RCPT),
    (packet(b"q", texts("x")), m.QUARANTINE)])
def test_changes_beyond_what_was_negotiated(relay, sink, one, change, action):
    one.behave({"E": change + packet(m.CONTINUE)}, actions=m.ALL_ACTIONS & ~action)
    _is_refused_and_then_goes_on(relay, sink, one, "E")


@pytest.mark.parametrize("version", [0, 1, 7, 0xFFFFFFFF])
def test_another_version_of_the_protocol(relay, sink, one, version):
    one.behave(version=version)
    _is_refused_and_then_goes_on(relay, sink, one, "O")


@pytest.mark.parametrize("version, said", [(2, b"CHMRLLLLLNBEQ"), (3, b"CHUMRLLLLLNBEQ")])
def test_an_old_version_is_told_what_it_knows(relay, sink, one, version, said):
    """Unknown commands are of version 3, and DATA is of version 4: a filter that is older would end the connection."""
    one.behave({"T": _gone, "U": _gone} if version < 3 else {"T": _gone}, version=version, actions=0x3F, steps=0)
    before = len(sink.messages)
    with relay.client("tempfail") as client:
        client.greet()
        client.command("FROB", 500)
        client.send_mail("a@sender.test", ["b@dest.test"], CONTENT, 250)
    sink.wait_messages(before + 1)
    assert one.wait_said(b"Q").letters() == said


@pytest.mark.parametrize("body", [m.replace_body(b"x" * 65000 + b"\r\n") * 100, packet(b"b", (b"x" * 65000 + b"\r\n") * 100)], ids=["packets", "one"])
def test_a_body_without_end_is_no_good(module_lab, sink, one, body):
    config = Config({"workers": 1, "message_size_limit": "4m"}).route_all_to(sink.port)
    config.listeners["smtp"] = {"milters": ["one"]}
    config.extra = _section("one", one.address, timeout="60s")
    one.behave({"E": body + packet(m.CONTINUE)})
    relay = module_lab.relay(config)
    with relay.client() as client:
        client.greet()
        assert client.send_mail("a@sender.test", ["b@dest.test"], CONTENT, 451).text == LATER
    assert relay.wait_event("milter", state="away", reason="the body it wants is too large")
    relay.stop()


@pytest.mark.parametrize("listener, code", [("tempfail", 451), ("accept", 250), ("reject", 550), ("quarantine", 250)])
@pytest.mark.parametrize("how", ["down", "hung", "cut off"])
def test_mail_is_treated_as_said_when_the_filter_is_no_good(relay, sink, one, listener, code, how):
    before = len(sink.messages)
    one.behave({"down": {"O": _gone}, "hung": {"M": b""}, "cut off": {"E": _gone}}[how])
    with relay.client(listener) as client:
        client.greet()
        if how == "cut off" or code == 250:
            client.send_mail("a@sender.test", ["b@dest.test"], CONTENT, code)
        else:
            client.command("MAIL FROM:<a@sender.test>", code)
    if listener == "quarantine":
        assert "Hello." in _held(relay)
    if listener == "accept":
        assert received.without(sink.wait_messages(before + 1)[-1].content) == CONTENT
    assert relay.wait_event("filter", milter=listener, action=listener)
    assert len(sink.messages) == before + (listener == "accept")


def test_an_outage_is_told_once(module_lab, sink):
    milter = Milter()
    config = Config({"workers": 2}).route_all_to(sink.port)
    config.listeners["smtp"] = {"milters": ["one"]}
    config.extra = _section("one", milter.address)
    relay = module_lab.relay(config)
    milter.stop()
    for _ in range(10):
        with relay.client() as client:
            client.greet()
            client.command("MAIL FROM:<a@sender.test>", 451)
    milter.start()

    def through():
        with relay.client() as client:
            client.greet()
            if not _takes_mail(client):
                return False
            client.command("RCPT TO:<b@dest.test>")
            client.command("DATA", 354)
            client.send(b"x\r\n.\r\n")
            return client.read_reply().code == 250

    wait_until(through, 60, "the filter to be asked again")
    wait_until(lambda: len(relay.events("milter")) == 2, 60, "its end to be told")
    assert [event["state"] for event in relay.events("milter")] == ["away", "ready"]
    relay.stop()
    milter.close()


def test_hundreds_at_once_none_lost_and_none_unfiltered(relay, sink, one, two):
    """The filter is stopped and started in the midst of many messages: as often as some have passed and then others were refused."""
    one.behave({"E": m.slowly(0.01, m.add_header("X-Seen", "one") + packet(m.CONTINUE))})
    two.behave({"E": m.add_header("X-Seen", "two") + packet(m.CONTINUE)})
    accepted, refused, doubtful = [], [], []

    def send_one(sender):
        with relay.client("two") as client:
            client.greet()
            client.send(f"MAIL FROM:<{sender}>\r\nRCPT TO:<b@dest.test>\r\nDATA\r\n".encode())
            if [client.read_reply().code for _ in range(3)] != [250, 250, 354]:
                return False
            client.send(b"Subject: x\r\n\r\nx\r\n.\r\n")
            return client.read_reply().code == 250

    def work(number):
        tries = itertools.count()
        while not over.is_set():
            sender = f"m{number}-{next(tries)}@many.test"
            try:
                (accepted if send_one(sender) else refused).append(sender)
            except (OSError, AssertionError) as error:
                doubtful.append(error)
            time.sleep(0.02)

    over = threading.Event()
    threads = [threading.Thread(target=work, args=[number]) for number in range(24)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            passed = len(accepted)
            wait_until(lambda some=passed: len(accepted) >= some + 10, what="messages to pass")
            one.stop()
            turned = len(refused)
            wait_until(lambda some=turned: len(refused) > some, what="one to be refused")
            one.start()
        passed = len(accepted)
        wait_until(lambda: len(accepted) > passed, what="one more to pass")
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not doubtful

    def came():
        return [message for message in sink.messages if message.sender.endswith("@many.test")]

    wait_until(lambda: len(came()) >= len(accepted), what="all that was accepted")
    wait_until(lambda: not relay.command("queue", "list", "--json").stdout, what="the queue to be empty")
    assert sorted(message.sender for message in came()) == sorted(accepted)
    for message in came():
        assert message.content.count(b"X-Seen: one\r\nX-Seen: two\r\n") == 1


@pytest.fixture(name="dropping")
def _dropping(lab, one):
    """A relay whose maildrop's mail passes the filter, and who leaves mail there; both not running."""
    sink = lab.sink()
    config = Config({"workers": 1}).route_all_to(sink.port)
    config.listeners["smtp"] = {"tls": "none"}
    config.extra = _section("one", one.address, local="true")
    relay = lab.relay(config)
    relay.wait_event("recover")
    relay.stop()
    return relay, sink


def _leave(relay, *recipients):
    done = relay.command("sendmail", "-f", "a@sender.test", *recipients, stdin="Subject: dropped\n\nHello.\n")
    assert done.returncode == 0, done


def test_mail_of_the_maildrop_passes_filters_that_are_local(dropping, one):
    relay, sink = dropping
    one.behave({"E": m.add_header("X-Seen", "yes") + packet(m.CONTINUE)})
    _leave(relay, "b@dest.test", "c@dest.test")
    relay.start()
    message = sink.wait_messages(1)[0]
    assert b"\r\nX-Seen: yes\r\n" in message.content
    said = one.conversations[0]
    assert said.letters().rstrip(b"KQ") == b"CHMRRTLLLLNBE"
    assert said.all(b"C")[0].startswith(b"localhost\x004") and said.all(b"H") == [b"relay.test\0"]
    assert said.all(b"R") == [texts("<b@dest.test>"), texts("<c@dest.test>")]
    assert said.macros[b"E"][b"i"].decode() == relay.wait_event("queued")["id"]


@pytest.mark.parametrize("how", ["away", "never", "dropped", "nobody left"])
def test_mail_of_the_maildrop_that_a_filter_does_not_let_through(dropping, one, how):
    relay, sink = dropping
    answers = {"away": {"O": _gone}, "never": {"E": packet(m.REJECT)},
               "dropped": {"B": packet(m.DISCARD)}, "nobody left": {"E": packet(b"-", texts("b@dest.test")) + packet(m.CONTINUE)}}
    one.behave(answers[how])
    _leave(relay, "b@dest.test")
    relay.start()
    taken = f"{relay.spool}/taken"
    if how == "away":
        relay.wait_event("filter", milter="one", action="tempfail")
        assert len(os.listdir(taken)) == 1
        one.behave()
        _leave(relay, "other@dest.test")
        assert len(sink.wait_messages(2)) == 2
    elif how == "never":
        assert relay.wait_event("quarantined", reason="550 5.7.1 Command rejected")
    else:
        assert relay.wait_event("discard")
    wait_until(lambda: not os.listdir(taken), 60, "the maildrop to be empty")
    relay.stop()
    assert len(sink.messages) == (2 if how == "away" else 0)


def test_a_filter_that_serves_one_client_a_connection(lab, sink, one):
    """As those made with Sendmail's library: after QUIT_NC they say nothing, which nobody waits the time-out for."""
    config = Config({"workers": 1}).route_all_to(sink.port)
    config.listeners["tempfail"] = {"milters": ["one"]}
    config.extra = _section("one", one.address, timeout="60s")
    one.behave({"O": lambda said, _: None if said.all(b"K") else packet(b"O", struct.pack(">III", 6, m.ALL_ACTIONS, 0))})
    relay = lab.relay(config)
    begun = time.monotonic()
    for _ in range(3):
        _passed(relay, sink)
    assert time.monotonic() - begun < 30
    assert [said.letters().count(b"C") for said in one.conversations if said.all(b"C")] == [1, 1, 1], "beside the look of the start"


def test_patience_without_end_has_one(module_lab, sink, one):
    config = Config({"workers": 1}).route_all_to(sink.port)
    config.listeners["smtp"] = {"milters": ["one"]}
    config.extra = _section("one", one.address, timeout="1s")
    left = threading.Event()

    def ask_for_patience(said, _data):
        """Go on until the relay has left; the test waits for its answer for a minute, no longer."""
        try:
            while True:
                said.connection.sendall(packet(m.PROGRESS))
                time.sleep(0.02)
        finally:
            left.set()

    one.behave({"E": ask_for_patience})
    relay = module_lab.relay(config)
    with relay.client() as client:
        client.greet()
        begun = time.monotonic()
        assert client.send_mail("a@sender.test", ["b@dest.test"], CONTENT, 451).text == LATER
        assert time.monotonic() - begun > 1.9
    assert left.wait(60)
    relay.stop()


def test_a_client_that_goes_leaves_nothing_behind(relay, sink, one):
    """At each moment, while the filter is asked: no message comes of it, but where all of it was there."""
    before, ended = len(sink.messages), len(relay.events("disconnect"))
    for letter, said in {"C": b"", "H": b"EHLO c.test\r\n", "M": b"EHLO c.test\r\nMAIL FROM:<a@gone.test>\r\n",
                         "R": b"EHLO c.test\r\nMAIL FROM:<a@gone.test>\r\nRCPT TO:<b@dest.test>\r\n"}.items():
        one.behave({letter: m.slowly(0.1, packet(m.CONTINUE))})
        client = relay.client("tempfail")
        if said:
            client.expect(220)
        client.send(said)
        one.wait_said(letter.encode())
        client.reset()
        ended += 1
        relay.wait_event("disconnect", count=ended)
    one.behave()
    _passed(relay, sink)
    assert len(sink.messages) == before + 1
    assert not [line for line in relay.log_text().splitlines() if "a@gone.test" in line and " queued " in line]


def test_a_header_that_is_too_long_to_be_filtered(relay, one):
    assert one
    content = b"".join(b"X-%d: %s\r\n" % (n, b"x" * 900) for n in range(1300)) + b"\r\nbody\r\n"
    assert _send(relay, content=content, code=552).text.startswith("552 5.3.4 ")


BAD = [
    ('milter "a" { address = "/run/x" }', 'milter "a": "/run/x" is not inet:ADDRESS:PORT, nor unix:/SOCKET'),
    ('milter "a" { address = "inet:mail.test:1" }', "is not inet:ADDRESS:PORT"),
    ('milter "a" { address = "inet:127.0.0.1:0" }', "is not inet:ADDRESS:PORT"),
    ('milter "a" { address = "unix:run/x" }', "is not inet:ADDRESS:PORT"),
    ('milter "a" { }', "is not inet:ADDRESS:PORT"),
    ('milter "a" { address = "inet:[::1]:9" }\nmilter "a" { address = "inet:localhost:9" }', 'milter "a" is already there'),
    ('listener "x" { address = { "127.0.0.1:9" }  milters = { "b" } }', 'there is no milter "b"'),
]


@pytest.mark.parametrize("text, says", BAD)
def test_what_check_says(lab, text, says):
    config = Config()
    config.extra = text + "\n"
    done = lab.relay(config, start=False).command("check")
    assert done.returncode == 1 and says in done.stderr, done


def test_check_warns_of_a_filter_that_nobody_names(lab):
    config = Config()
    config.listeners["smtp"] = {"milters": []}
    config.extra = _section("idle", "unix:/run/idle")
    done = lab.relay(config, start=False).command("check")
    assert done.returncode == 0 and 'milter "idle": no mail passes it' in done.stderr


def test_a_reload_takes_other_filters(module_lab, sink, one, two):
    config = Config({"workers": 1}).route_all_to(sink.port)
    config.extra = _section("one", one.address) + _section("two", two.address)
    one.behave({"E": m.add_header("X-First", "one") + packet(m.CONTINUE)})
    two.behave({"E": m.add_header("X-Seen", "two") + packet(m.CONTINUE)})
    relay = module_lab.relay(config)
    content = _passed(relay, sink, None).content
    assert b"X-First: one" in content and b"X-Seen: two" in content, "all pass all filters where nothing is said"
    relay.config.listeners["smtp"]["milters"] = ["two"]
    relay.write_config()
    assert relay.command("reload").returncode == 0
    content = _passed(relay, sink, None).content
    assert b"X-First: one" not in content and b"X-Seen: two" in content
    relay.stop()


@pytest.mark.skipif(sanitized(), reason="with a sanitizer processor time says little")
def test_ten_thousand_fields_are_taken_away_one_by_one(relay, sink, one):
    """From the last, which is looked for the longest: in a list this takes a worker seconds."""
    count, fields = 9_999, 165_000  # and one change more, which are all that a filter may ask for, in a megabyte
    header = b"F: 1\r\n" * fields
    asked = b"".join(m.change_header(fields - number, "F", "") for number in range(count))
    one.behave({"E": asked + m.add_header("X-New", "1") + packet(m.CONTINUE)}, steps=m.NOTHING_WANTED)
    before = cpu_seconds(relay)
    got = _passed(relay, sink, content=header + CONTENT)
    wanted = b"F: 1\r\n" * (fields - count) + CONTENT.replace(b"\r\n\r\n", b"\r\nX-New: 1\r\n\r\n", 1)
    assert received.without(got.content) == wanted
    assert cpu_seconds(relay) - before < 2


def _recipients(kind, *names):
    return b"".join(packet(kind, texts(f"<{name}@dest.test>")) for name in names)


def test_recipients_come_and_go_in_the_order_that_is_asked_for(relay, sink, one):
    asked = [
        _recipients(b"-", "b"), _recipients(b"+", "b"),  # taken away, and put back
        _recipients(b"+", "c"), _recipients(b"-", "C"),  # put there, and taken away
        _recipients(b"+", "d"), _recipients(b"-", "d"), _recipients(b"+", "D"),
        _recipients(b"-", "e", "nobody"), _recipients(b"+", "f"), _recipients(b"-", "g"),
    ]
    one.behave({"E": b"".join(asked) + packet(m.CONTINUE)}, steps=m.NOTHING_WANTED)
    message = _passed(relay, sink, recipients=("a@dest.test", "b@dest.test", "e@dest.test", "G@dest.test", "h@dest.test"))
    assert sorted(name.split("@")[0].lower() for name in message.recipients) == ["a", "b", "d", "f", "h"]


def test_a_copy_stays_as_long_as_anybody_is_left(lab, one):
    """Of recipients who share a copy the first has it, and it is not theirs alone."""
    rows = lab.folder("tables") / "copies"
    rows.write_text("a@dest.test copy@dest.test\nb@dest.test copy@dest.test\n")
    sink = lab.sink()
    config = Config({"workers": 1, "recipient_bcc": [str(rows)]}).route_all_to(sink.port)
    config.extra = _section("one", one.address)
    relay = lab.relay(config)
    for number, (asked, left) in enumerate([
        (_recipients(b"-", "a"), ["b", "copy"]),
        (_recipients(b"-", "a", "b") + _recipients(b"+", "c"), ["c", "copy"]),
        (_recipients(b"-", "copy"), ["a", "b"]),
    ]):
        one.behave({"E": asked + packet(m.CONTINUE)}, steps=m.NOTHING_WANTED)
        relay.send(recipients=["a@dest.test", "b@dest.test"])
        relay.wait_event("done", count=number + 1)
        assert sorted(name.split("@")[0] for name in sink.messages[number].recipients) == left
    one.behave({"E": _recipients(b"-", "b", "a") + packet(m.CONTINUE)}, steps=m.NOTHING_WANTED)
    relay.send(recipients=["a@dest.test", "b@dest.test"])
    relay.wait_event("discard", reason="no recipient is left")
    # Who is named, too, is no copy alone.
    relay.send(recipients=["a@dest.test", "b@dest.test", "copy@dest.test"])
    assert sink.wait_messages(4)[3].recipients == ["copy@dest.test"]


@pytest.mark.parametrize("verb", ["DATA", "BDAT"])
def test_of_a_message_that_nobody_gets_filters_are_told_no_content(lab, one, verb):
    """Sendmail's library knows no DATA without RCPT, and does not answer it."""
    rows = lab.folder("tables") / "access"
    rows.write_text("gone@dest.test discard\n")
    sink = lab.sink()
    config = Config({"workers": 1, "recipient_access": [str(rows)]}).route_all_to(sink.port)
    config.extra = _section("one", one.address)
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>")
        client.command("RCPT TO:<gone@dest.test>")
        if verb == "DATA":
            client.command("DATA", 354)
            client.send(stuff(CONTENT))
        else:
            client.send(b"BDAT %d LAST\r\n" % len(CONTENT) + CONTENT)
        client.expect(250)
        relay.wait_event("discard", reason="no recipient is left")
        client.send_mail("a@sender.test", ["gone@dest.test", "b@dest.test"])
    assert sink.wait_messages(1)[0].recipients == ["b@dest.test"]
    assert one.conversations[-1].letters().startswith(b"CHMAMRTLNBE")


ONE, BOTH = ["x@dest.test", "y@dest.test"], ["x@dest.test", "y@dest.test", "z@dest.test"]


@pytest.mark.parametrize("changes, recipients, left", [
    # Who is there already is not added.
    ((b"+x",), ["x@dest.test"], ["x@dest.test"]),
    ((b"+sales",), ["x@dest.test"], ONE),
    ((b"+staff",), ["sales@own.test"], BOTH),
    # Who goes by one name stays by the other.
    ((b"-sales",), ["sales@own.test", "staff@own.test"], ["y@dest.test", "z@dest.test"]),
    ((b"-staff",), ["sales@own.test", "staff@own.test"], ONE),
    ((b"-sales", b"-staff"), ["sales@own.test", "staff@own.test", "a@dest.test"], ["a@dest.test"]),
    ((b"-sales",), ["sales@own.test", "y@dest.test"], ["y@dest.test"]),
    ((b"-sales",), ["y@dest.test", "sales@own.test"], ["y@dest.test"]),
    # By its own name it goes, however often it was named.
    ((b"-y",), ["y@dest.test", "sales@own.test", "y@dest.test", "staff@own.test"], ["x@dest.test", "z@dest.test"]),
    ((b"-x",), ["x@dest.test", "x@dest.test", "a@dest.test"], ["a@dest.test"]),
    # In turn, and for the filter behind.
    ((b"+staff", b"-staff"), ["sales@own.test"], ONE),
    ((b"+y", b"-sales"), ["sales@own.test"], ["y@dest.test"]),
    ((b"-sales", b"+staff"), ["sales@own.test"], ["y@dest.test", "z@dest.test"]),
    ((b"+staff", b"then", b"-sales"), ["sales@own.test"], ["y@dest.test", "z@dest.test"]),
    ((b"-x", b"then", b"-sales"), ["sales@own.test", "staff@own.test"], ["y@dest.test", "z@dest.test"]),
    ((b"-x", b"then", b"-staff"), ["x@dest.test", "sales@own.test", "staff@own.test"], ["y@dest.test"]),
])
def test_who_is_named_twice_is_there_once_and_goes_if_both_names_do(naming, changes, recipients, left):
    relay, sink, filters = naming
    cut = changes.index(b"then") if b"then" in changes else len(changes)
    for milter, own in zip(filters, (changes[:cut], changes[cut + 1:])):
        asked = b"".join(packet(one[:1], texts(f"<{_full(one[1:].decode())}>")) for one in own)
        milter.behave({"E": asked + packet(m.CONTINUE)})
    before = len(sink.messages)
    relay.send(recipients=recipients)
    assert sorted(sink.wait_messages(before + 1)[-1].recipients) == left
    assert len(sink.messages) == before + 1


@pytest.mark.parametrize("change, asked, left", [
    # A filter that says nothing of reports wants none that the sender does not want.
    (packet(b"+", texts("<x@dest.test>")), "NEVER", "NEVER"),
    (packet(b"2", texts("<x@dest.test>", "")), "NEVER", "NEVER"),
    (packet(b"+", texts("<sales@own.test>")), "NEVER", "NEVER"),
    (packet(b"+", texts("<x@dest.test>")), "SUCCESS", "SUCCESS"),
    # What it says is added to what the sender wants.
    (packet(b"2", texts("<x@dest.test>", "NOTIFY=FAILURE")), "NEVER", "FAILURE"),
    (packet(b"2", texts("<x@dest.test>", "NOTIFY=NEVER")), "SUCCESS", "SUCCESS"),
])
def test_a_filter_that_adds_who_is_there_leaves_what_the_sender_is_told(naming, change, asked, left):
    relay, sink, filters = naming
    filters[0].behave({"E": change + packet(m.CONTINUE)})
    filters[1].behave()
    before = len(sink.messages)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
        client.command(f"RCPT TO:<x@dest.test> NOTIFY={asked}", 250)
        client.command("DATA", 354)
        client.send(stuff(CONTENT))
        client.expect(250)
    (message,) = sink.wait_messages(before + 1)[before:]
    assert message.recipient_params["x@dest.test"]["NOTIFY"] == left


def _full(name):
    return name + ("@own.test" if name[0] == "s" else "@dest.test")


@pytest.fixture(name="naming", scope="module")
def _naming(module_lab):
    """A relay with two aliases that have a member in common, and two filters."""
    filters, sink = [Milter(), Milter()], module_lab.sink()
    for milter in filters:
        module_lab.callback(milter.close)
    config = Config({"workers": 1}).route_all_to(sink.port)
    config.aliases = {"sales@own.test": {"to": ["x@dest.test", "y@dest.test"]}, "staff@own.test": {"to": ["y@dest.test", "z@dest.test"]}}
    config.extra = "".join(_section(name, milter.address) for name, milter in zip(("one", "two"), filters))
    return module_lab.relay(config), sink, filters


@pytest.mark.skipif(sanitized(), reason="with a sanitizer processor time says little")
def test_five_thousand_recipients_are_taken_away_one_by_one(relay, sink, one):
    """Each looked for in a list, this takes a worker 210 ms; as it is, 10 or 20."""
    names = [f"{'recipient' * 5}{number}" for number in range(5000)]
    one.behave({"E": _recipients(b"+", *names) + _recipients(b"-", *names[:-1]) + packet(m.CONTINUE)}, steps=m.NOTHING_WANTED)
    before = cpu_seconds(relay)
    message = _passed(relay, sink)
    assert len(message.recipients) == 2
    assert cpu_seconds(relay) - before < 0.1
