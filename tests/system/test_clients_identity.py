# SPDX-License-Identifier: ISC
"""Who a client is: by a proxy's word, by a certificate; and which sender a login may use."""

import hashlib
import ssl
import subprocess

import pytest

from lab import received, sasl
from lab.config import Config
from lab.milter import Milter
from lab.net import wait_until
from lab.smtp import Client, Closed, unverified_context

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
V1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 25\r\n"
V2 = SIGNATURE + b"\x21\x11\x00\x0c" + bytes([192, 0, 2, 7, 198, 51, 100, 1]) + b"\x12\x67\x00\x19"
V2_SIX = SIGNATURE + b"\x21\x21\x00\x24" + bytes.fromhex("20010db8000000000000000000000007" * 2) + b"\x12\x67\x00\x19"


@pytest.fixture(scope="module")
def sink(module_lab):
    return module_lab.sink()


@pytest.fixture(scope="module")
def relay(module_lab, sink):
    """Listeners behind proxies, for clients with certificates, and for logins."""
    folder = module_lab.folder("tables")
    users = folder / "users"
    for login in ("ann", "bob@sender.test"):
        assert sasl.passwd(users, login, "secret").returncode == 0
    known = module_lab.certificates.host("known.test")[0]
    with open(known, encoding="ascii") as stream:
        fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(stream.read())).hexdigest()
    (folder / "certificates").write_text(f"{fingerprint} ann\n")
    (folder / "senders").write_text(
        "ann@sender.test ann\nboth@sender.test ann, Bob@sender.test\nall.test *\n.shared.test bob@sender.test\n"
    )
    certificate, key = module_lab.certificates.host("relay.test")
    tls = {"certificate": certificate, "key": key, "auth": True}
    config = Config(
        {
            "networks": ["192.0.2.0/24", "2001:db8::/32"], "xclient": ["127.0.0.1"],
            "sender_logins": [str(folder / "senders")], "client_certificates": [str(folder / "certificates")],
        },
        listeners={
            "proxied": {"tls": "none", "proxy_protocol": ["127.0.0.0/8"], "proxy_timeout": "300ms"},
            "proxied-tls": tls | {"tls": "implicit", "proxy_protocol": ["true"]},
            "foreign": {"tls": "none", "proxy_protocol": ["192.0.2.1"]},
            "plain": tls | {"tls": "optional"},
            "smtps": tls | {"tls": "implicit", "client_ca": module_lab.certificates.ca},
        },
    )
    config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
    return module_lab.relay(config.route_all_to(sink.port))


def _proxied(relay, header, listener="proxied"):
    client = Client("127.0.0.1", relay.ports[listener])
    client.send(header)
    return client


def _sent(relay, sink, client, sender="from@sender.test"):
    """Send a message, and return its Received field and its log line."""
    before = len(sink.messages)
    number = client.send_mail(sender, ["to@dest.test"]).text.split()[-1]
    message = sink.wait_messages(before + 1)[-1]
    return received.split(message.content)[0], relay.wait_event("queued", id=number)


@pytest.mark.parametrize("header, address", [(V1, "192.0.2.7"), (V2, "192.0.2.7"), (V2_SIX, "2001:db8::7")])
def test_a_proxy_says_who_its_client_is(relay, sink, header, address):
    with _proxied(relay, header) as client:
        client.greet()
        field, event = _sent(relay, sink, client)
    assert event["client"] == address
    assert f"{address}])" in field


@pytest.mark.parametrize("listener, words", [
    ("proxied", "--proxy-version 1 --proxy-family TCP4"),
    ("proxied", "--proxy-version 2 --proxy-family AF_INET --proxy-protocol STREAM --proxy-command PROXY"),
    ("plain", "--xclient-addr 192.0.2.7 --xclient-name host.sender.test --xclient-helo helo.test"),
])
def test_swaks_speaks_for_a_client(relay, sink, listener, words):
    words = words.split()
    if "--proxy-version" in words:
        words += ["--proxy-source", "192.0.2.7", "--proxy-source-port", "4711",
                  "--proxy-dest", "198.51.100.1", "--proxy-dest-port", "25"]
    before = len(sink.messages)
    done = subprocess.run(
        ["swaks", "--server", "127.0.0.1", "--port", str(relay.ports[listener]), "--from", "from@sender.test",
         "--to", "to@dest.test", *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[192.0.2.7])" in received.split(sink.wait_messages(before + 1)[-1].content)[0]


def test_what_is_not_the_headers_stays_for_tls(relay, sink):
    with _proxied(relay, b"", "proxied-tls") as client:
        for byte in V2:
            client.send(bytes([byte]))
        client.shake_hands(unverified_context())
        client.greet()
        assert _sent(relay, sink, client)[1]["client"] == "192.0.2.7"


def test_a_proxy_may_speak_for_itself(relay):
    for header in (b"PROXY UNKNOWN\r\n", SIGNATURE + b"\x20\x00\x00\x00"):
        with _proxied(relay, header) as client:
            client.greet()
            client.command("MAIL FROM:<a@sender.test>")
            client.command("RCPT TO:<to@dest.test>", 550)


@pytest.mark.parametrize("header, listener, reason", [
    (b"EHLO client.test\r\n", "proxied", "malformed PROXY header"),
    (b"PROXY TCP4 1.2.3.4\r\n", "proxied", "malformed PROXY header"),
    (SIGNATURE + b"\x31", "proxied", "no PROXY header in time"),
    (SIGNATURE + b"\x31\x11\x00\x0c", "proxied", "malformed PROXY header"),
    (b"", "proxied", "no PROXY header in time"),
    (V1, "foreign", "not one of the proxies of this listener"),
])
def test_who_says_it_wrongly_or_late_or_is_no_proxy_is_closed(relay, header, listener, reason):
    seen = len(relay.events("reject", stage="PROXY", reason=reason))
    with _proxied(relay, b"", listener) as client:
        try:
            client.send(header)
            assert client.wait_closed() == b""
        except (ConnectionError, Closed):
            pass
    relay.wait_event("reject", count=seen + 1, stage="PROXY", reason=reason)


def test_a_proxy_header_is_nothing_to_a_listener_without_proxies(relay):
    with Client("127.0.0.1", relay.ports["plain"]) as client:
        client.greet()
        client.command(V1.decode().strip(), 500)


def test_xclient(relay, sink):
    with relay.client("plain") as client:
        assert "XCLIENT NAME ADDR PORT PROTO HELO LOGIN DESTADDR DESTPORT" in client.greet().lines
        client.command("XCLIENT NAME=host+2Esender.test ADDR=192.0.2.9 PORT=77 DESTADDR=198.51.100.1 DESTPORT=25", 220)
        client.command("MAIL FROM:<a@sender.test>", 503)
        client.command("EHLO helo.test")
        field, event = _sent(relay, sink, client)
        assert "from helo.test (host.sender.test [192.0.2.9])" in field
        assert event["client"] == "192.0.2.9"
    with relay.client("plain") as client:
        client.greet()
        client.command("XCLIENT ADDR=IPV6:2001:db8::5 NAME=[UNAVAILABLE] HELO=other.test PROTO=SMTP LOGIN=Ann", 220)
        field, event = _sent(relay, sink, client, "ann@sender.test")
        assert "from other.test ([IPv6:2001:db8::5])" in field and "with SMTP " in field
        assert event["user"] == "ann"
    with relay.client("plain") as client:
        client.greet()
        # Nobody knows who that is: not the proxy itself.
        client.command("XCLIENT ADDR=[UNAVAILABLE] LOGIN=[UNAVAILABLE]", 220)
        client.command("EHLO client.test")
        client.command("MAIL FROM:<a@sender.test>")
        client.command("RCPT TO:<to@dest.test>", 550)
    with relay.client("plain") as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>")
        client.command("XCLIENT ADDR=192.0.2.9", 503)
    event = relay.wait_event("xclient", port=77)
    assert event["proxy"] == "127.0.0.1" and event["destination"] == "198.51.100.1"


@pytest.mark.parametrize("words, code", [
    ("", 501), ("ADDR", 501), ("ADDR=nobody", 501), ("ADDR=1.2.3.4 ADDR=1.2.3.4", 501), ("COLOUR=red", 501),
    ("PORT=70000", 501), ("NAME=a+00b", 501), ("HELO=a+0D+0Ab", 501), ("PROTO=UUCP", 501), ("LOGIN=a+0Ab", 501),
])
def test_xclient_that_is_wrong_changes_nothing(relay, words, code):
    with relay.client("plain") as client:
        client.greet()
        client.command(f"XCLIENT {words}".strip(), code)
        client.command("MAIL FROM:<a@sender.test>")


def test_a_client_with_too_many_connections_gets_no_other_by_xclient(lab):
    config = Config({"networks": ["127.0.0.0/8"], "xclient": ["127.0.0.1"]}, listeners={"smtp": {"client_connection_limit": 2}})
    relay = lab.relay(config.route_all_to(lab.sink().port))
    clients = []
    for code in (220, 220, 421):
        clients.append(relay.client())
        clients[-1].greet()
        clients[-1].command("XCLIENT ADDR=192.0.2.9", code)
    clients.pop().close()
    clients.pop().close()

    def has_room():
        with relay.client() as client:
            client.greet()
            client.send("XCLIENT ADDR=192.0.2.9")
            return client.read_reply().code == 220

    wait_until(has_room, 60, "a place among the two")
    clients.pop().close()


def test_clients_of_a_network_of_ipv6_share_their_limit(lab):
    config = Config({"networks": ["127.0.0.0/8", "2001:db8::/32"], "xclient": ["127.0.0.1"]}, extra='limit "client" { messages = "1/h" }\n')
    relay = lab.relay(config.route_all_to(lab.sink().port))
    for address, code in (("2001:db8::1", 250), ("2001:db8::2", 450), ("2001:db8:0:1::2", 250)):
        with relay.client() as client:
            client.greet()
            client.command(f"XCLIENT ADDR=IPV6:{address}", 220)
            client.command("EHLO client.test", 250)
            if code == 250:
                client.send_mail("a@sender.test", ["to@dest.test"])
            else:
                client.command("MAIL FROM:<a@sender.test>", code)


def test_xclient_of_strangers_is_not_offered(relay):
    with _proxied(relay, V1) as client:
        assert not any(line.startswith("XCLIENT") for line in client.greet().lines)
        client.command("XCLIENT ADDR=127.0.0.1", 502)


@pytest.mark.parametrize("address", ["203.0.113.9", "IPV6:2001:db9::1", "[UNAVAILABLE]", "[TEMPUNAVAIL]"])
def test_whom_a_proxy_has_named_may_not_say_xclient(relay, address):
    """The proxy hands on what its client says, byte for byte."""
    with relay.client("plain") as client:
        client.greet()
        client.command(f"XCLIENT ADDR={address} LOGIN=[UNAVAILABLE]", 220)
        assert not any(line.startswith("XCLIENT") for line in client.command("EHLO client.test").lines)
        client.command("XCLIENT ADDR=192.0.2.1 LOGIN=ann", 502)
        client.command("XCLIENT LOGIN=ann", 502)
        client.command("MAIL FROM:<ann@sender.test>")
        client.command("RCPT TO:<to@dest.test>", 550)


def test_a_proxy_may_name_another_proxy(relay):
    with relay.client("plain") as client:
        client.greet()
        for words in ("NAME=proxy.test", "ADDR=127.0.0.1", "ADDR=192.0.2.9"):
            client.command(f"XCLIENT {words}", 220)
        client.command("XCLIENT ADDR=127.0.0.1", 502)


@pytest.mark.parametrize("words", ["ADDR=203.0.113.9", "ADDR=127.0.0.1", "HELO=other.test"])
@pytest.mark.parametrize("by", ["AUTH", "LOGIN"])
def test_a_login_ends_with_its_client(relay, by, words):
    with relay.client("plain") as client:
        client.greet()
        if by == "AUTH":
            assert sasl.say_plain(client, "ann", "secret").code == 235
        else:
            client.command("XCLIENT LOGIN=ann", 220)
        client.command(f"XCLIENT {words}", 220)
        assert any(line.startswith("AUTH ") for line in client.command("EHLO client.test").lines)
        client.command("MAIL FROM:<ann@sender.test>")
        client.command("RCPT TO:<to@dest.test>", 550)


def test_a_listener_gets_another_name_while_a_connection_owes_its_proxy_header(lab):
    listener = {"tls": "none", "proxy_protocol": ["127.0.0.0/8"], "proxy_timeout": "60s"}
    relay = lab.relay(Config({"workers": 1, "hostname": "old.test"}, listeners={"first": listener}))
    port = relay.ports["first"]

    def greeting():
        with Client("127.0.0.1", port) as client:
            client.send(V1)
            return client.expect(220).text

    with Client("127.0.0.1", port) as client:
        assert "old.test" in greeting()  # the worker takes connections in turn: it has the one before
        relay.config.settings["hostname"] = "new.test"
        relay.config.listeners = {"second": relay.config.listeners["first"]}
        relay.write_config()
        assert relay.command("reload").returncode == 0
        wait_until(lambda: "new.test" in greeting(), 60, "the worker to know the listener by its new name")
        client.send(V1)
        assert "new.test" in client.expect(220).text
    assert relay.running()


def _logged_in(relay, login):
    client = relay.client("plain")
    client.greet()
    assert sasl.say_plain(client, login, "secret").code == 235
    return client


def test_a_login_may_use_its_senders_only(relay):
    def tried(login, sender):
        with _logged_in(relay, login) as client:
            client.send(f"MAIL FROM:<{sender}>")
            return client.read_reply().text[:9]

    refused, taken = "553 5.7.1", "250 2.1.0"
    assert tried("ann", "ann@sender.test") == taken
    assert tried("ann", "ANN@Sender.test") == taken
    assert tried("ann", "both@sender.test") == taken
    assert tried("bob@sender.test", "both@sender.test") == taken
    assert tried("bob@sender.test", "ann@sender.test") == refused
    assert tried("bob@sender.test", "x@sub.shared.test") == taken
    assert tried("ann", "x@sub.shared.test") == refused
    assert tried("ann", "x@all.test") == taken
    assert tried("ann", "x@nobody.test") == refused
    assert tried("ann", "") == taken


def test_another_sender_may_be_rewritten_or_allowed(relay, sink):
    relay.config.settings["sender_mismatch"] = "rewrite"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    with _logged_in(relay, "bob@sender.test") as client:
        assert _sent(relay, sink, client, "boss@elsewhere.test")[1]["from"] == "bob@sender.test"
    with _logged_in(relay, "ann") as client:
        assert _sent(relay, sink, client, "boss@elsewhere.test")[1]["from"] == "ann@relay.test"
    relay.config.settings["sender_mismatch"] = "allow"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    with _logged_in(relay, "ann") as client:
        assert _sent(relay, sink, client, "boss@elsewhere.test")[1]["from"] == "boss@elsewhere.test"


def _with_certificate(relay, pair, listener):
    context = unverified_context()
    if pair:
        context.load_cert_chain(*pair)
    client = relay.client(listener)
    if listener == "smtps":
        client.shake_hands(context)
        reply = client.greet()
    else:
        client.greet()
        client.starttls(context)
        reply = client.command("EHLO client.test")
    return client, any(line.startswith("AUTH ") for line in reply.lines)


def _self_signed(folder):
    pair = folder / "self.pem", folder / "self.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
         "/CN=ann", "-keyout", str(pair[1]), "-out", str(pair[0])], check=True, capture_output=True)
    return pair


def test_a_certificate_is_a_login(module_lab, relay, sink):
    known = module_lab.certificates.host("known.test")
    signed = module_lab.certificates.host("device.test")
    expired = module_lab.certificates.host("old.test", days=-1)
    forged = _self_signed(module_lab.folder("forged"))
    mailer = module_lab.certificates.odd("mailer", "somebody", "DNS:mailer.test,email:Mailer@Sender.test,email:two@sender.test")
    for listener, pair, login in (
        ("plain", known, "ann"), ("smtps", known, "ann"), ("smtps", signed, "device.test"),
        ("smtps", mailer, "mailer@sender.test"), ("plain", signed, None), ("smtps", expired, None), ("smtps", forged, None), ("smtps", None, None),
    ):
        client, asked = _with_certificate(relay, pair, listener)
        with client:
            # A stranger may still log in by a password.
            assert asked == (login is None)
            if login:
                client.command("AUTH PLAIN", 503)
                field, event = _sent(relay, sink, client, "x@all.test")
                assert event["user"] == login and " with ESMTPSA " in field
            else:
                client.command("MAIL FROM:<x@all.test>")
                client.command("RCPT TO:<to@dest.test>", 550)
    assert relay.wait_event("auth", mechanism="CERTIFICATE", login="ann")["result"] == "ok"


def test_filters_are_not_told_that_a_certificate_has_said_a_password(lab):
    """Who had logged in before STARTTLS has not done so behind it: RFC 3207 4.2."""
    one, folder = Milter(), lab.folder("filtered")
    lab.callback(one.close)
    assert sasl.passwd(folder / "users", "bob", "secret").returncode == 0
    certificate, key = lab.certificates.host("relay.test")
    config = Config(listeners={"plain": {
        "tls": "optional", "certificate": certificate, "key": key, "auth": True, "client_ca": lab.certificates.ca}})
    config.auth.update({"file": str(folder / "users"), "require_tls": False, "mechanisms": ["PLAIN"]})
    config.extra = f'milter "one" {{ address = "{one.address}" }}\n'
    relay = lab.relay(config.route_all_to(lab.sink().port))
    context = unverified_context()
    context.load_cert_chain(*lab.certificates.host("device.test"))
    with Client("127.0.0.1", relay.ports["plain"]) as client:
        client.greet()
        assert sasl.say_plain(client, "bob", "secret").code == 235
        client.starttls(context)
        client.command("EHLO client.test", 250)
        client.command("MAIL FROM:<a@sender.test>", 250)
    (said,) = one.conversations
    assert said.macros[b"M"][b"{auth_authen}"] == b"device.test"
    assert b"{auth_type}" not in said.macros[b"M"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_certificate_that_ends_is_no_login_in_a_resumed_session(module_lab, relay, version):
    context = unverified_context()
    context.maximum_version = version
    context.load_cert_chain(*module_lab.certificates.brief("brief.test", 5))
    session = None

    def logs_in():
        """Resume the last session; only a stranger is asked for a password."""
        nonlocal session
        with relay.client("smtps") as client:
            client.socket = context.wrap_socket(client.socket, server_hostname="relay.test", session=session)
            asked = any(line.startswith("AUTH ") for line in client.greet().lines)
            resumed, session = client.socket.session_reused, client.socket.session
            return resumed, not asked

    assert logs_in() == (False, True)
    assert logs_in() == (True, True)
    wait_until(lambda: logs_in() == (True, False), 60, "the certificate to be none that counts")


@pytest.mark.parametrize("listener, said", [
    ({"proxy_protocol": ["somewhere"]}, "not a network"),
    ({"client_ca": "/etc/none.pem"}, "client_ca needs TLS"),
])
def test_faults_in_these_settings_are_found(lab, listener, said):
    found = lab.relay(Config(listeners={"smtp": listener}), start=False).command("check")
    assert found.returncode == 1 and said in found.stderr
