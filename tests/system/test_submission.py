# SPDX-License-Identifier: ISC
"""What a listener for submission asks of a client, and what it leaves of the client in the message."""

import email
import re

import pytest

from lab import received, sasl
from lab.config import Config
from lab.net import LOOPBACK

PASSWORD = "secret"
FIELDS = b"From: a@sender.test\r\nDate: Mon, 23 Nov 2026 12:00:00 +0000\r\nMessage-ID: <one@sender.test>\r\n"
CONTENT = (b"Return-Path: <old@sender.test>\r\n" + FIELDS + b"BCC: hidden@dest.test,\r\n\tmore@dest.test\r\n"
           b"To: b@dest.test\r\nResent-Bcc: x@dest.test\r\nContent-Length: 9\r\nX-Bcc: stays\r\n\r\nBcc: stays too\r\n")
STAYS = FIELDS + b"To: b@dest.test\r\nX-Bcc: stays\r\n\r\nBcc: stays too\r\n"


@pytest.fixture(name="sink", scope="module")
def _sink(module_lab):
    return module_lab.sink()


@pytest.fixture(name="relay", scope="module")
def _relay(module_lab, sink):
    users = module_lab.folder("users") / "users"
    assert sasl.passwd(users, "ann", PASSWORD).returncode == 0
    certificate, key = module_lab.certificates.host("relay.test", "localhost")
    tls = {"certificate": certificate, "key": key}
    config = Config({"networks": [f"{LOOPBACK}/32"]}).route_all_to(sink.port)
    config.listeners = {
        "smtp": {},
        "required": tls | {"auth": "required"},
        "hidden": tls | {"auth": True, "received": "hidden"},
        "login": tls | {"auth": "yes", "received": "login"},
        "both": tls | {"auth": True, "received_login": True},
    }
    config.auth.update({"file": str(users)})
    return module_lab.relay(config)


def _log_in(client):
    client.starttls()
    client.command("EHLO laptop.home.test", 250)
    assert sasl.say_plain(client, "ann", PASSWORD).code == 235


def _received_of(relay, sink, listener, login):
    """Send a message through a listener; return the Received field that it gets, on one line."""
    before = len(sink.messages)
    with relay.client(listener) as client:
        client.greet("laptop.home.test")
        if login:
            _log_in(client)
        client.send_mail("a@sender.test", ["b@dest.test"], CONTENT)
    content = sink.wait_messages(before + 1)[-1].content
    assert received.without(content) == STAYS
    return re.sub(r"\r\n\s+", " ", content.decode()).split("\r\n")[0]


@pytest.mark.parametrize("listener,login,tells", [
    ("smtp", False, "from laptop.home.test ([127.0.0.1]) by "), ("required", True, "from laptop.home.test ([127.0.0.1]) by "),
    ("login", True, "from relay.test by "), ("login", False, "from laptop.home.test ([127.0.0.1]) by "),
    ("both", True, "from laptop.home.test ([127.0.0.1]) by "), ("both", False, "from laptop.home.test ([127.0.0.1]) by "),
    ("hidden", True, "from relay.test by "), ("hidden", False, "from relay.test by "),
])
def test_received_says_of_the_client_what_the_listener_lets_it(relay, sink, listener, login, tells):
    field = _received_of(relay, sink, listener, login)
    assert field.startswith(f"Received: {tells}relay.test (sluice) with ESMTP{'SA' if login else ''} id ")
    assert ("(authenticated sender: ann)" in field) == (login and listener in ("login", "both")) == ("ann" in field)


def test_no_mail_without_a_login(relay):
    """Whatever network the client is in. The same client is served where a login is not asked for."""
    with relay.client("smtp") as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
    with relay.client("required") as client:
        client.greet()
        reply = client.command("MAIL FROM:<a@sender.test>", 530)
        assert reply.text == "530 5.7.0 Authentication required"
        client.command("RCPT TO:<b@dest.test>", 503)
        client.send(b"BDAT 5 LAST\r\n12345")
        client.expect(503)
        _log_in(client)
        client.command("MAIL FROM:<a@sender.test>", 250)


def test_a_listener_with_no_networks_serves_nobody_without_a_login(lab):
    """Who is in the global networks relays through a listener that names none of its own, and through no other."""
    sink = lab.sink()
    users = lab.folder("users") / "users"
    assert sasl.passwd(users, "ann", PASSWORD).returncode == 0
    certificate, key = lab.certificates.host("relay.test", "localhost")
    config = Config({"networks": [f"{LOOPBACK}/32"]}).route_all_to(sink.port)
    config.listeners = {"smtp": {}, "none": {"networks": [], "auth": True, "certificate": certificate, "key": key}}
    config.auth.update({"file": str(users)})
    relay = lab.relay(config)
    with relay.client("smtp") as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
        client.command("RCPT TO:<b@dest.test>", 250)
    with relay.client("none") as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
        assert client.command("RCPT TO:<b@dest.test>", 550).text.startswith("550 5.7.1")
        client.command("RSET", 250)
        _log_in(client)
        client.command("MAIL FROM:<a@sender.test>", 250)
        client.command("RCPT TO:<b@dest.test>", 250)
    shown = relay.command("config", "listener.smtp.networks", "listener.none.networks").stdout
    assert f'listener.smtp.networks = {{"{LOOPBACK}/32"}}' in shown and "listener.none.networks = {}" in shown


def test_the_operator_says_which_fields_go(lab):
    sink = lab.sink()
    relay = lab.relay(Config({"drop_headers": ["x-internal"]}).route_all_to(sink.port))
    relay.send(content=b"Bcc: b@dest.test\r\nX-Internal: host7\r\n\r\ntext\r\n")
    assert received.without(sink.wait_messages(1)[0].content) == b"Bcc: b@dest.test\r\n\r\ntext\r\n"
    for faulty in ("Bcc :", "Received"):
        relay.config.settings["drop_headers"] = [faulty]
        relay.write_config()
        said = relay.command("reload")
        assert said.returncode == 1 and "drop_headers: " in said.stdout + said.stderr
    relay.config.settings["drop_headers"] = []
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(content=CONTENT)
    assert received.without(sink.wait_messages(2)[1].content) == CONTENT


def test_a_field_that_goes_is_missing(lab):
    """What the relay then adds is its own, of mail that is to have such a field."""
    sink = lab.sink()
    config = Config({"drop_headers": ["date", "Message-ID", "From"]}, listeners={"smtp": {"add_missing_headers": True}})
    relay = lab.relay(config.route_all_to(sink.port))
    relay.send(content=b"From: a@inside.test\r\nDate: then\r\nMessage-ID:\r\n <x@inside.test>\r\nSubject: x\r\n\r\ntext\r\n")
    got = email.message_from_bytes(sink.wait_messages(1)[0].content)
    for name in ("Date", "Message-ID", "From"):
        assert len(got.get_all(name)) == 1, name
    assert got["From"] == "<from@sender.test>" and got["Date"] != "then" and "inside.test" not in got["Message-ID"]
    assert relay.wait_event("queued")["message_id"] == "<x@inside.test>"


def test_what_goes_is_not_signed(lab, tmp_path):
    """Nor do filters see it: a signature over Bcc would be broken as soon as it is gone."""
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port), start=False)
    key = tmp_path / "key.pem"
    assert relay.command("dkim", "keygen", "sender.test", "s", "-o", str(key)).returncode == 0
    relay.config.extra = f'dkim "sender.test" {{ selector = "s"  key = "{key}"  headers = {{ "From", "Bcc" }} }}\n'
    relay.write_config()
    relay.start()
    relay.send(content=CONTENT)
    content = sink.wait_messages(1)[0].content
    assert b"DKIM-Signature: " in content and b"\r\nBCC:" not in content
    assert content.endswith(STAYS)


@pytest.mark.parametrize("listener", ["smtp", "hidden"])
def test_a_loop_is_found_whatever_is_said_of_the_client(relay, listener):
    with relay.client(listener) as client:
        client.greet()
        client.send_mail("a@sender.test", ["b@dest.test"], b"Received: by x.test; now\r\n" * 49 + b"\r\n")
        reply = client.send_mail("a@sender.test", ["b@dest.test"], b"Received: by x.test; now\r\n" * 50 + b"\r\n", code=554)
        assert reply.text.startswith("554 5.4.6")


def test_fields_go_from_mail_of_the_maildrop_too(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    for running in (True, False):
        if not running:
            relay.stop()
        said = relay.command("sendmail", "-f", "a@sender.test", "b@dest.test", stdin=CONTENT.decode().replace("\r\n", "\n"))
        assert said.returncode == 0, said.stderr
    relay.start()
    for message in sink.wait_messages(2):
        assert message.content.endswith(STAYS) and b"Return-Path" not in message.content
