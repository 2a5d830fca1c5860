# SPDX-License-Identifier: ISC
"""The lab itself: its servers and clients, tried on each other without the relay."""

import contextlib
import re
import smtplib
import socket
import subprocess

import pytest

from lab import dialogue, log, peers
from lab.config import Config
from lab.net import wait_until
from lab.dns import ask
from lab.process import sanitizer_report
from lab.scripted import ScriptedServer
from lab.sink import Rule
from lab.smtp import Client, Closed, stuff


def _connect(server, timeout=60.0):
    return Client(server.address, server.port, timeout)


def _source(sink, *options):
    """Send mail into a sink with Postfix's load generator."""
    command = [peers.program("smtp-source"), *options, f"127.0.0.1:{sink.port}"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


# The sink.


def test_sink_counts_what_smtp_source_sends(lab):
    sink = lab.sink()
    _source(sink, "-c", "-s", "5", "-m", "50", "-l", "2000", "-f", "a@b.test", "-t", "c@d.test")
    assert len(sink.wait_messages(50)) == 50
    assert {message.sender for message in sink.messages} == {"a@b.test"}
    assert sink.most_connections <= 5


@pytest.mark.parametrize(
    "content",
    [b"", b".\r\n", b"..\r\n.x\r\n", b"a\r\n.\r\nb\r\n", b"line.\r\n" * 20000, b"bare\nlf\r.\r\n"],
    ids=["empty", "dot", "dots", "inner", "long", "bare"],
)
def test_sink_gives_back_the_content_that_was_stuffed(lab, content):
    sink = lab.sink()
    with _connect(sink) as client:
        client.greet()
        client.send_mail("a@b.test", ["c@d.test"], content)
    message = sink.messages[0]
    assert message.content == content
    assert message.wire == stuff(content)


def test_sink_takes_chunks_and_parameters(lab):
    sink = lab.sink(size=1000)
    with _connect(sink) as client:
        assert "SIZE 1000" in client.greet().lines
        client.send(
            b"MAIL FROM:<a@b.test> SIZE=9 BODY=8BITMIME\r\nRCPT TO:<c@d.test> NOTIFY=NEVER\r\n"
            b"BDAT 4\r\nab\r\nBDAT 5 LAST\r\n.\r\nc."
        )
        for _ in range(4):
            client.expect(250)
    message = sink.messages[0]
    assert (message.content, message.verb) == (b"ab\r\n.\r\nc.", "BDAT")
    assert message.sender_params == {"SIZE": "9", "BODY": "8BITMIME"}
    assert message.recipient_params == {"c@d.test": {"NOTIFY": "NEVER"}}


def test_sink_refuses_by_rules(lab):
    sink = lab.sink(
        Rule("rcpt", "450 4.2.1 later", pattern="^slow@"),
        Rule("rcpt", "550 5.1.1 nobody", pattern="^gone@"),
        Rule("end", "451 4.3.0 once", times=1),
    )
    with _connect(sink) as client:
        client.greet()
        client.command("MAIL FROM:<a@b.test>")
        client.command("RCPT TO:<slow@d.test>", 450)
        client.command("RCPT TO:<gone@d.test>", 550)
        client.command("RSET")
        client.send_mail("a@b.test", ["good@d.test"], code=451)
        client.send_mail("a@b.test", ["good@d.test"])
    assert [one.accepted for one in sink.transactions] == [False, True]


def test_sink_closes_after_the_end_without_a_reply(lab):
    sink = lab.sink(Rule("end", close=True))
    with _connect(sink) as client:
        client.greet()
        with pytest.raises(Closed):
            client.send_mail("a@b.test", ["c@d.test"])
    assert sink.transactions[0].reply == "" and not sink.messages


def test_sink_limits_connections_and_messages(lab):
    sink = lab.sink(connection_limit=1, messages_per_connection=1)
    with _connect(sink) as first, _connect(sink) as second:
        first.greet()
        second.expect(421)
        second.wait_closed()
        first.send_mail("a@b.test", ["c@d.test"])
        first.command("MAIL FROM:<a@b.test>", 421)
        first.wait_closed()


def test_sink_answers_each_recipient_of_lmtp(lab):
    sink = lab.sink(Rule("end", "452 4.2.2 full", pattern="^full@"), lmtp=True)
    with _connect(sink) as client:
        client.greet(verb="LHLO")
        client.send_mail("a@b.test", ["good@d.test", "full@d.test"])
        client.expect(452)
    assert sink.messages[0].recipients == ["good@d.test", "full@d.test"]


def test_sink_speaks_tls_and_checks_passwords(lab):
    certificates = lab.certificates
    sink = lab.sink(tls=certificates.server_context("relay.test"), users={"me": "secret"})
    with _connect(sink) as client:
        assert "STARTTLS" in client.greet().lines
        client.starttls(certificates.client_context())
        assert "STARTTLS" not in client.command("EHLO client.test").lines
        client.command("AUTH PLAIN AG1lAHdyb25n", 535)
        client.command("AUTH PLAIN AG1lAHNlY3JldA==", 235)
        client.send_mail("a@b.test", ["c@d.test"])
    assert sink.messages[0].tls and sink.messages[0].user == "me"


def test_sink_delays_replies_but_reads_on(lab):
    sink = lab.sink(latency=0.2)
    with _connect(sink) as client:
        client.greet()
        client.send(b"NOOP\r\n" * 20 + b"QUIT\r\n")
        for _ in range(20):
            client.expect(250)
        client.expect(221)
    times = [time for time, line in sink.sessions[0].commands if line == "NOOP"]
    assert times[-1] - times[0] < 0.2


# The scripted server.


def test_script_is_played_in_order(lab):
    server = lab.script(
        [("send", b"220 x\r\n"), ("expect", "EHLO .*\r\n"), ("send", b"421 no\r\n"), ("close",)],
        [("send", b"554 never\r\n"), ("nothing", 0.1), ("drain",)],
    )
    with _connect(server) as client:
        client.expect(220)
        client.command("EHLO me", 421)
        client.wait_closed()
    with _connect(server) as client:
        client.expect(554)
    assert server.wait_played(2)[0].received == b"EHLO me\r\n"


def test_script_tells_what_failed():
    with ScriptedServer([("expect", "MAIL")]) as server:
        _connect(server).close()
        with pytest.raises(AssertionError, match="the peer closed"):
            server.wait_played()


# Names.


def test_nsd_serves_the_zones_of_a_test(lab):
    nsd = lab.nsd({"dest.test": "@ MX 10 mx\nmx A 127.0.0.2", "null.test": "@ MX 0 ."})
    code, answers = ask(nsd.address, nsd.port, "dest.test", "MX")
    assert code == 0 and answers[0][1].startswith(b"\0\x0a")
    assert ask(nsd.address, nsd.port, "mx.dest.test", "A") == (0, [(1, b"\x7f\0\0\2")])
    assert ask(nsd.address, nsd.port, "nothing.dest.test", "A") == (3, [])
    assert ask(nsd.address, nsd.port, "null.test", "MX")[1][0][1] == b"\0\0\0"


def test_nsd_takes_new_records_and_comes_back(lab):
    nsd = lab.nsd({"dest.test": "@ A 127.0.0.2"})
    nsd.set_zone("dest.test", "@ A 127.0.0.3")
    new = [(1, b"\x7f\0\0\3")]
    wait_until(lambda: ask(nsd.address, nsd.port, "dest.test", "A")[1] == new, 60, "the new zone")
    nsd.stop()
    with pytest.raises(OSError):
        ask(nsd.address, nsd.port, "dest.test", "A", timeout=0.1)
    nsd.start()
    assert ask(nsd.address, nsd.port, "dest.test", "A")[1] == [(1, b"\x7f\0\0\3")]


# Postfix.


def test_postfix_relays_from_smtplib_to_a_sink(lab):
    sink = lab.sink()
    postfix = lab.postfix(next_hop=sink.port)
    with smtplib.SMTP("127.0.0.1", postfix.port) as client:
        client.sendmail("a@b.test", ["c@d.test"], b"Subject: hello\r\n\r\n.dot\r\n")
    assert sink.wait_messages()[0].content.endswith(b"\r\n\r\n.dot\r\n")
    postfix.wait_log(r"status=sent \(250 ")
    assert "Mail queue is empty" in postfix.command("postqueue", "-p")


def test_postfix_without_a_next_hop_takes_all_mail(lab):
    postfix = lab.postfix()
    with smtplib.SMTP("127.0.0.1", postfix.port) as client:
        for _ in range(3):
            client.sendmail("a@b.test", ["c@d.test"], b"Subject: hello\r\n\r\nx\r\n")
    postfix.wait_log(r"relay=none, .*status=sent", count=3)


# Logs and configurations.


def test_log_lines_of_both_formats_are_the_same_event():
    text = r'2026-01-02T03:04:05.678Z info sent id=a1 reply="250 \"ok\" a\\b\n" to=<x=y@z> empty='
    line = (
        '{"time": "2026-01-02T03:04:05.678Z", "level": "info", "event": "sent", "id": "a1",'
        ' "reply": "250 \\"ok\\" a\\\\b\\n", "to": "<x=y@z>", "empty": ""}'
    )
    first, second = log.parse(f"{text}\nnonsense\n{line}\n")
    assert first == second
    assert first["reply"] == '250 "ok" a\\b\n'
    assert first.matches("sent", {"id": "a1", "to": re.compile("@z"), "empty": lambda v: not v})
    assert not first.matches("sent", {"missing": "x"})


def test_a_configuration_is_written_in_its_syntax():
    config = Config(settings={"hostname": "a.test", "workers": 2}).route_all_to(25, 26)
    config.listeners["smtp"] = {"auth": True, "address": ["127.0.0.1:1"]}
    assert config.text().split() == (
        'hostname = "a.test" workers = 2'
        ' listener "smtp" { auth = true address = { "127.0.0.1:1" } }'
        ' route "*" { relay = { "[127.0.0.1]:25", "[127.0.0.1]:26" } }'
    ).split()


def test_sanitizer_reports_are_found():
    assert sanitizer_report("noise\nx.c:1: runtime error: overflow").startswith("x.c:1: runtime")
    assert sanitizer_report("all is well") == ""


# Dialogues.


class _SinkAsRelay:
    """As much of a relay as a dialogue's player asks for."""

    def __init__(self, sink):
        self.sink = sink

    def events(self, _):
        """Return one event a message."""
        return self.sink.messages

    def client(self):
        """Connect."""
        return _connect(self.sink)


def _play(lab, tmp_path, text):
    path = tmp_path / "one.dlg"
    path.write_text(text, encoding="utf-8")
    one = dialogue.parse(path)
    sink = lab.sink(tls=lab.certificates.server_context("relay.test"))
    dialogue.Player(_SinkAsRelay(sink)).play(one)
    return one, sink


def test_a_dialogue_is_played(lab, tmp_path):
    one, sink = _play(lab, tmp_path, r"""# A comment.
!config chunking = false
!config queue.minimal_backoff_time = 1s
S: 220 .*ESMTP
C: EHLO \{3*ab}\x2etest
S: 250-.*\n250-PIPELINING\n.*STARTTLS
C> NO
C> OP\r\n
S: 250 2\.0\.0
C: STARTTLS
S: 220
!tls
C: MAIL FROM:<a@b.test>
S: 250
C: RCPT TO:<c@d.test>
S: 250
C: DATA
S: 354
C: x
C: .
S: 250
!queued 1
!silence 10
C: QUIT
S: 221
!close
!reconnect
S: 220
""")
    assert sink.messages[0].content == b"x\r\n" and sink.messages[0].tls
    assert sink.sessions[0].commands[0][1] == "EHLO ababab.test"
    config = dialogue.configuration(one.settings)
    assert config.listeners == {"smtp": {"chunking": "false"}}
    assert config.queue == {"minimal_backoff_time": "1s"}


def test_a_dialogue_that_goes_wrong_names_its_line(lab, tmp_path):
    with pytest.raises(AssertionError, match=r"one\.dlg:2: '500'.*220 sink"):
        _play(lab, tmp_path, "# The next line cannot be right.\nS: 500\n")
    with pytest.raises(AssertionError, match=r"one\.dlg:1: what is"):
        _play(lab, tmp_path, "!nonsense\n")


def test_nothing_of_the_lab_listens_after_its_test(lab):
    sink = lab.sink()
    sink.close()
    with contextlib.closing(socket.socket()) as probe:
        assert probe.connect_ex((sink.address, sink.port)) != 0
