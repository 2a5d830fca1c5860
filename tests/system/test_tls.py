# SPDX-License-Identifier: ISC
"""TLS, towards clients and towards the next hop."""

import re
import socket
import ssl

import pytest

from lab import received
from lab.config import Config
from lab.net import LOOPBACK
from lab.sink import Rule
from lab.smtp import Client, Closed


@pytest.fixture(scope="module")
def sink(module_lab):
    return module_lab.sink()


@pytest.fixture(scope="module")
def relay(module_lab, sink):
    """A relay with a listener of each kind."""
    certificate, key = module_lab.certificates.host("relay.test")
    config = Config().route_all_to(sink.port)
    config.listeners = {
        kind: {"tls": kind, "certificate": certificate, "key": key}
        for kind in ("optional", "required", "implicit")
    }
    config.listeners["none"] = {"tls": "none"}
    return module_lab.relay(config)


def _send(relay, sink, client):
    before = len(sink.messages)
    client.send_mail("from@sender.test", ["to@dest.test"])
    return received.split(sink.wait_messages(before + 1)[-1].content)[0]


def test_starttls_with_the_certificate_configured(relay, sink, certificates):
    with relay.client("optional") as client:
        assert "STARTTLS" in client.greet().lines
        client.starttls(certificates.client_context())
        assert "STARTTLS" not in client.command("EHLO client.test").lines
        assert client.socket.version() == "TLSv1.3"
        assert " with ESMTPS" in _send(relay, sink, client)


def test_tls_from_the_first_byte(relay, sink, certificates):
    client = Client(LOOPBACK, relay.ports["implicit"])
    client.socket = certificates.client_context().wrap_socket(
        client.socket, server_hostname="relay.test"
    )
    with client:
        assert "STARTTLS" not in client.greet().lines
        assert " with ESMTPS" in _send(relay, sink, client)


def test_mail_without_tls_is_taken_where_tls_is_optional(relay, sink):
    with relay.client("optional") as client:
        client.greet()
        field = _send(relay, sink, client)
    assert " with ESMTP" in field and "ESMTPS" not in field


def test_no_mail_before_tls_where_it_is_required(relay, sink):
    with relay.client("required") as client:
        client.greet()
        for line in ("MAIL FROM:<from@sender.test>", "VRFY x", "DATA"):
            assert client.command(line, 530).lines[0].startswith("5.7.0")
        client.command("NOOP", 250)
        client.starttls()
        client.command("EHLO client.test", 250)
        assert " with ESMTPS" in _send(relay, sink, client)


def test_no_starttls_where_there_is_none(relay):
    with relay.client("none") as client:
        assert "STARTTLS" not in client.greet().lines
        client.command("STARTTLS", 5)


def test_old_versions_of_tls_are_refused(relay):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with relay.client("optional") as client:
        client.greet()
        client.command("STARTTLS", 220)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            client.shake_hands(context)


def test_suites_with_cbc_are_there_for_those_who_ask_for_them(lab):
    certificate, key = lab.certificates.host("relay.test")
    own = {"certificate": certificate, "key": key}
    config = Config()
    config.listeners = {"strict": own, "lenient": own | {"tls_cbc": True}}
    relay = lab.relay(config)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE+AES:!AESGCM:!AESCCM")
    with relay.client("lenient") as client:
        client.greet()
        client.starttls(context)
        assert "GCM" not in client.socket.cipher()[0]
    with relay.client("strict") as client:
        client.greet()
        client.command("STARTTLS", 220)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            client.shake_hands(context)


def _inject(relay, before, after=b"", tail=b""):
    """Send STARTTLS with more behind it, shake hands, and return the client; or None if closed."""
    client = relay.client("optional")
    client.greet()
    client.send(before + b"STARTTLS\r\n" + after)
    try:
        reply = client.read_reply()
        if reply.code != 220:
            client.wait_closed()
            return None
        if tail:
            client.send(tail)
        client.shake_hands()
    except (Closed, OSError):
        return None
    return client


@pytest.mark.parametrize(
    "after",
    [b"EHLO injected\r\n", b"RSET\r\nNOOP\r\n", b"EHL", b"NOOP\r\n" * 10000],
    ids=["command", "commands", "half a command", "64 kilobytes"],
)
def test_what_is_sent_in_plain_behind_starttls_is_never_answered(relay, after):
    client = _inject(relay, b"", after)
    if client is None:
        return
    with client:
        client.socket.settimeout(0.3)
        with pytest.raises((socket.timeout, Closed, ssl.SSLError)):
            client.read_reply()
            pytest.fail("a command sent in plain was answered in TLS")
        client.socket.settimeout(60)
        try:
            client.send("MAIL FROM:<from@sender.test>")
            assert client.read_reply().code == 503
        except (Closed, OSError):
            pass


def test_what_was_said_before_tls_is_forgotten(relay):
    with relay.client("optional") as client:
        client.greet()
        client.starttls()
        assert client.command("MAIL FROM:<from@sender.test>", 503).lines[0].startswith("5.5.1")
        client.command("EHLO client.test")
        client.command("RCPT TO:<to@dest.test>", 503)


def test_plain_text_after_tls_ends_the_session(relay):
    with relay.client("optional") as client:
        client.greet()
        client.starttls()
        client.command("EHLO client.test")
        client.command("MAIL FROM:<from@sender.test>")
        client.command("RCPT TO:<to@dest.test>")
        client.command("DATA", 354)
        client.send(b"Subject: half\r\n")
        plain = client.socket.unwrap()
        before = len(relay.events("queued"))
        try:
            plain.sendall(b"rest\r\n.\r\nNOOP\r\n")
            plain.settimeout(60)
            assert b"250" not in plain.recv(1000)
        except OSError:
            pass
        plain.close()
    assert len(relay.events("queued")) == before


def test_a_client_that_never_shakes_hands_is_let_go(lab):
    certificate, key = lab.certificates.host("relay.test")
    config = Config(listeners={"smtp": {
        "tls": "implicit", "certificate": certificate, "key": key, "tls_timeout": "300ms"}})
    relay = lab.relay(config)
    with relay.client() as client:
        client.wait_closed()


# Towards the next hop.


def _outbound(lab, policy, *rules, **behaviour):
    sink = lab.sink(*rules, **behaviour)
    config = Config(transports={"smtp": {"tls": policy}},
                    queue={"minimal_backoff_time": "200ms", "maximal_backoff_time": "1s"})
    return sink, lab.relay(config.route_all_to(sink.port))


@pytest.mark.parametrize("tls", ["opportunistic", "required"])
def test_tls_is_used_where_it_is_offered(lab, certificates, tls):
    sink, relay = _outbound(lab, tls, tls=certificates.server_context("sink.test"))
    relay.send()
    message = sink.wait_messages(1)[0]
    assert message.tls
    assert sink.sessions[0].verbs()[:4] == ["EHLO", "STARTTLS", "EHLO", "MAIL"]


def test_a_certificate_of_nobody_will_do_where_tls_is_opportunistic(lab, certificates):
    context = certificates.server_context("other.test", days=-5)
    sink, relay = _outbound(lab, "opportunistic", tls=context)
    relay.send()
    assert sink.wait_messages(1)[0].tls


def test_no_tls_where_it_is_switched_off(lab, certificates):
    sink, relay = _outbound(lab, "none", tls=certificates.server_context("sink.test"))
    relay.send()
    assert not sink.wait_messages(1)[0].tls


def test_mail_waits_where_tls_is_required_and_not_offered(lab):
    sink, relay = _outbound(lab, "required")
    relay.send()
    relay.wait_event("deferred", dsn=re.compile(r"^4\.7\."))
    assert not any("MAIL" in session.verbs() for session in sink.sessions)


BROKEN = {
    "454": Rule("starttls", "454 4.7.0 not now"),
    "502": Rule("starttls", "502 5.5.1 what?"),
    "closes": Rule("starttls", "", close=True),
    "closes after 220": Rule("starttls", "220 go ahead", close=True),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_tls_falls_back_to_plain_where_it_is_opportunistic(lab, certificates, name):
    rule = BROKEN[name]
    rule.seen = 0
    sink, relay = _outbound(lab, "opportunistic", rule,
                            tls=certificates.server_context("sink.test"))
    relay.send()
    assert not sink.wait_messages(1)[0].tls
    assert not relay.events("deferred") and not relay.events("bounced")


@pytest.mark.parametrize("stage, refusal", [("mail", "530 5.7.0 Must issue a STARTTLS command first"), ("rcpt", "550 5.7.10 Encryption needed")])
def test_a_host_that_takes_no_mail_without_tls_gets_it_when_its_tls_works_again(lab, certificates, stage, refusal):
    """All mail for it was returned, for an hour after its STARTTLS had failed once."""
    rules = [Rule("starttls", "454 4.7.0 TLS not available due to temporary reason", times=2), Rule(stage, refusal, times=2)]
    sink, relay = _outbound(lab, "opportunistic", *rules, tls=certificates.server_context("sink.test"))
    relay.send()
    assert sink.wait_messages(1)[0].tls
    assert [rule.seen for rule in rules] == [3, 3] and not relay.events("bounced")


@pytest.mark.parametrize("tls", ["opportunistic", "none"])
def test_a_refusal_for_want_of_a_login_returns_mail_where_no_tls_has_failed(lab, certificates, tls):
    offered = certificates.server_context("sink.test") if tls == "none" else None
    _, relay = _outbound(lab, tls, Rule("mail", "530 5.7.0 Authentication required"), tls=offered)
    relay.send()
    relay.wait_event("bounced", dsn="5.7.0")


@pytest.mark.parametrize("name", BROKEN)
def test_broken_tls_defers_where_it_is_required(lab, certificates, name):
    rule = BROKEN[name]
    rule.seen = 0
    sink, relay = _outbound(lab, "required", rule, tls=certificates.server_context("sink.test"))
    relay.send()
    relay.wait_event("deferred", dsn=re.compile(r"^4\."))
    assert not any("MAIL" in session.verbs() for session in sink.sessions)


@pytest.mark.parametrize("tls", ["opportunistic", "required"])
def test_replies_sent_in_plain_behind_the_220_are_not_believed(lab, tls):
    steps = [
        ("send", b"220 sink.test\r\n"), ("expect", "EHLO.*\r\n"),
        ("send", b"250-sink.test\r\n250 STARTTLS\r\n"), ("expect", "STARTTLS\r\n"),
        ("send", b"220 go\r\n250-injected\r\n250 AUTH PLAIN\r\n250 ok\r\n250 ok\r\n354 ok\r\n250 ok\r\n"),
        ("drain",),
    ]
    server = lab.script(steps)
    config = Config(transports={"smtp": {"tls": tls}}).route_all_to(server.port)
    relay = lab.relay(config)
    relay.send()
    relay.wait_event("deferred")
    assert not relay.events("sent")
    assert all(b"MAIL" not in play.received for play in server.plays)


def _tls_counted(relay):
    """Return what has come of TLS to next hops, but for what has not: of each kind, how often."""
    counted = re.findall(r'tls_connections_total\{side="client",result="([a-z-]+)"\}\s+([1-9][0-9]*)', relay.command("stats", "--all").stdout)
    return dict(counted)


@pytest.mark.parametrize("answer", ("454 TLS not available", "454 4.7.0 TLS not available due to local problem"))
def test_a_host_that_refuses_starttls_where_mail_waits_for_it_is_said(lab, answer):
    host = lab.script([("send", b"220 mx.test\r\n"), ("expect", rb"EHLO .*\r\n"), ("send", b"250-mx.test\r\n250 STARTTLS\r\n"),
                       ("expect", rb"STARTTLS\r\n"), ("send", answer.encode() + b"\r\n"), ("drain",)])
    relay = lab.relay(Config(transports={"smtp": {"tls": "required"}}).route_all_to(host.port))
    relay.send()
    relay.wait_event("deferred")
    event = relay.wait_event("tls")
    assert event["verified"] == "none" and "TLS not available" in event["reason"]
    assert list(_tls_counted(relay)) == ["missing"]


def test_a_host_without_a_way_to_log_in_lacks_no_tls(lab):
    sink = lab.own_sink("--starttls")
    folder = lab.folder("login")
    for name, text in {"secret": "Hush-1\n", "credentials": f"[{LOOPBACK}]:{sink.port} ann password:{folder}/secret unauthenticated\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    relay = lab.relay(Config(settings={"credentials": [f"{folder}/credentials"]}).route_all_to(sink.port))
    relay.send()
    assert "no way to log in" in relay.wait_event("deferred")["reply"]
    assert list(_tls_counted(relay)) == ["unverified"]
    assert {event.level for event in relay.events("tls")} == {"info"}
