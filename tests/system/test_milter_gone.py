# SPDX-License-Identifier: ISC
"""Filters that answer when the client has gone: each answer, at each step, costs nobody else anything."""

import contextlib
import itertools
import socket
import threading

import pytest

from lab import milter as m
from lab.config import Config
from lab.milter import Milter, packet, texts
from lab.net import LOOPBACK

CONTENT = b"From: <a@sender.test>\r\nSubject: x\r\n\r\nHello.\r\n"
NUMBERS = itertools.count()
DELETE = packet(b"-", texts("<b@dest.test>"))

# What is said at the end of the content, and the event that says what has become of the message.
VERDICTS = {
    "continue": (packet(m.CONTINUE), "queued"),
    "accept": (packet(m.ACCEPT), "queued"),
    "reject": (packet(m.REJECT), "reject"),
    "tempfail": (packet(m.TEMPFAIL), "reject"),
    "reply": (m.reply("550 5.7.1 no"), "reject"),
    "421": (m.reply("421 4.7.0 go away"), "reject"),
    "discard": (packet(m.DISCARD), "discard"),
    "quarantine": (packet(b"q", texts("odd")) + packet(m.CONTINUE), "queued"),
    "another body": (m.replace_body(b"Other.\r\n") + packet(m.CONTINUE), "queued"),
    "another field": (m.add_header("X-New", "1") + packet(m.CONTINUE), "queued"),
    "another sender": (packet(b"e", texts("<c@sender.test>")) + packet(m.CONTINUE), "queued"),
    "another recipient": (packet(b"+", texts("<c@dest.test>")) + packet(m.CONTINUE), "queued"),
    "no recipient": (DELETE + packet(m.CONTINUE), "discard"),
    "no recipient, accept": (DELETE + packet(m.ACCEPT), "discard"),
    "no recipient, held": (packet(b"q", texts("odd")) + DELETE + packet(m.CONTINUE), "discard"),
    "no recipient, reject": (DELETE + packet(m.REJECT), "reject"),
    "shutdown": (packet(m.SHUTDOWN), "reject"),
    "gives up": (packet(m.GIVES_UP), "reject"),
    "nonsense": (packet(b"?"), "reject"),
}
EARLIER = {
    letter + " " + name: (letter, answer)
    for letter in "CHMRT"
    for name, answer in [
        ("continue", packet(m.CONTINUE)),
        ("accept", packet(m.ACCEPT)),
        ("reject", packet(m.REJECT)),
        ("tempfail", packet(m.TEMPFAIL)),
        ("discard", packet(m.DISCARD)),
        ("421", m.reply("421 4.7.0 go away")),
    ]
}


@pytest.fixture(scope="module")
def milter(module_lab):
    one = Milter()
    module_lab.callback(one.close)
    return one


@pytest.fixture(scope="module")
def relay(module_lab, milter):
    config = Config({"workers": 1}).route_all_to(module_lab.sink().port)
    config.listeners = {"smtp": {"milters": ["slow"]}, "none": {"milters": []}}
    config.extra = f'milter "slow" {{ address = "{milter.address}"  timeout = 60s }}\n'
    return module_lab.relay(config)


def _answers_when_told(answer):
    """Return an answer that waits, what says that it was asked for, and what lets it go."""
    asked, may = threading.Event(), threading.Event()

    def wait(_conversation, _data):
        asked.set()
        assert may.wait(30)
        return answer

    return wait, asked, may


def _say(client, until):
    """Say what leads to that step, and stop where the filter is asked."""
    if until == "C":
        return
    client.expect(220)
    for letter, line in ("H", "EHLO client.test"), ("M", "MAIL FROM:<a@sender.test>"), ("R", "RCPT TO:<b@dest.test>"), ("T", "DATA"):
        client.send(line)
        if letter == until:
            return
        client.read_reply()
    client.send(CONTENT + b".\r\n")


def _leave(relay, milter, step, answer):
    """Be gone when the filter gives that answer at that step; return the session that it was."""
    wait, asked, may = _answers_when_told(answer)
    milter.behave({step: wait})
    before = len(relay.events("connect"))
    client = relay.client("smtp")
    session = relay.wait_event("connect", count=before + 1)["session"]
    _say(client, step)
    assert asked.wait(10), "the filter was not asked"
    client.reset()
    relay.wait_event("disconnect", session=session)
    may.set()
    return session


def _still_serves(relay, process):
    sender = f"n{next(NUMBERS)}@sender.test"
    with relay.client("none") as client:
        client.greet()
        client.send_mail(sender, ["b@dest.test"])
    relay.wait_event("queued", **{"from": sender})
    assert relay.process is process and relay.running()


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_verdict_on_the_message_of_a_client_that_has_gone(relay, milter, verdict):
    answer, event = VERDICTS[verdict]
    process = relay.process
    session = _leave(relay, milter, "E", answer)
    relay.wait_event(event, session=session)
    for other in {"queued", "reject", "discard"} - {event}:
        assert not relay.events(other, session=session)
    _still_serves(relay, process)


@pytest.mark.parametrize("step", EARLIER)
def test_an_answer_at_any_step_to_a_client_that_has_gone(relay, milter, step):
    letter, answer = EARLIER[step]
    process = relay.process
    session = _leave(relay, milter, letter, answer)
    _still_serves(relay, process)
    assert not relay.events("queued", session=session)


def _sends_all(connection, data):
    with contextlib.suppress(OSError):
        connection.sendall(data)


def test_a_client_that_reads_nothing_is_closed_though_its_session_waits(lab):
    """That it reads nothing is found while a filter is asked: each group of commands ends with a question to that."""
    milter = Milter()
    lab.callback(milter.close)
    config = Config({"workers": 1}).route_all_to(lab.sink().port)
    config.listeners = {"smtp": {"milters": ["asked"], "timeout": "1s", "command_timeout": "1s", "message_timeout": "1s",
                                 "error_limit": 0, "junk_command_limit": 0}}
    config.extra = f'milter "asked" {{ address = "{milter.address}"  timeout = 120s }}\n'
    relay = lab.relay(config)
    group = b"VRFY x\r\n" * 60 + b"MAIL FROM:<a@sender.test>\r\nRSET\r\n"
    with socket.socket() as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        mute.connect((LOOPBACK, relay.port))
        assert mute.recv(4096).startswith(b"220 ")
        mute.sendall(b"EHLO client.test\r\n")
        assert mute.recv(4096).startswith(b"250-")
        sender = threading.Thread(target=_sends_all, args=[mute, group * 20000], daemon=True)
        sender.start()
        relay.wait_event("disconnect", timeout=60, reason="timed out")
        sender.join()
    assert len(milter.conversations[0].all(b"M")) > 20


def test_a_client_that_reads_is_not_closed_while_its_session_waits(lab):
    """For longer than it may be silent itself."""
    gate = threading.Event()
    milter = Milter()
    milter.behave({"M": lambda *_: gate.wait(30) and packet(m.CONTINUE)})
    lab.callback(milter.close)
    lab.callback(gate.set)
    config = Config({"workers": 1}).route_all_to(lab.sink().port)
    config.listeners = {"smtp": {"milters": ["slow"], "timeout": "300ms"}, "none": {"milters": [], "timeout": "300ms"}}
    config.extra = f'milter "slow" {{ address = "{milter.address}"  timeout = 60s }}\n'
    relay = lab.relay(config)
    with relay.client("smtp") as client:
        client.greet()
        client.send("MAIL FROM:<a@sender.test>")
        for _ in range(3):  # each as long as the deadline
            with relay.client("none") as silent:
                silent.expect(220)
                silent.expect(421)
        gate.set()
        client.expect(250)
