# SPDX-License-Identifier: ISC
"""One domain in all its spellings: what is said of it in any table or section holds for each."""

import base64
import re

import pytest

from lab.config import Config
from lab.net import wait_until

ONE = "xn--bcher-kva.test"
SPELLINGS = [ONE, "bücher.test", "BÜCHER.Test", "XN--bcher-KVA.test", "ｂｕ\u0308cher.test", "bücher．test", "bücher。test", "bücher.test."]
IN_TABLES = [ONE, "bücher.test", "Bücher.TEST", ONE + ".", "bücher.test."]


def _relay(lab, written):
    """Everything that may be said of a domain, written in one way."""
    folder = lab.folder("tables")
    sink, away = lab.sink(), lab.sink()

    def table(name, text):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o600)
        return [str(folder / name)]

    config = Config({
        "recipient_access": table("access", f"refused@{written} reject 550 5.7.1 not to him\n"),
        "tls_policy": table("policy", f"{written} required\n"),
        "sender_logins": table("logins", f"me@{written} anna\nboss@{written} bert\n"),
        "aliases": table("aliases", f"list@{written}: a@dest.test\n"),
    })
    config.route_all_to(away.port)
    config.routes[written] = {"relay": [f"[127.0.0.1]:{sink.port}"]}
    config.listeners["smtp"] = {"auth": True, "error_limit": 0}
    config.auth = {"file": table("users", "")[0], "mechanisms": ["PLAIN"], "require_tls": False}
    config.extra = 'limit "sender" { messages = "3/h"  action = "reject" }\n'
    relay = lab.relay(config)
    assert relay.command("passwd", "-f", config.auth["file"], "anna", stdin="secret\n").returncode == 0
    assert relay.command("reload").returncode == 0
    return relay


@pytest.mark.parametrize("written", IN_TABLES)
def test_what_is_said_of_a_domain_holds_for_each_spelling(lab, written):
    relay = _relay(lab, written)
    with relay.client() as client:
        client.greet()
        client.command("AUTH PLAIN " + base64.b64encode(b"\0anna\0secret").decode(), 235)
        for number, spelling in enumerate(SPELLINGS):
            client.command(f"MAIL FROM:<boss@{spelling}> SMTPUTF8", 553)
            said = client.command(f"MAIL FROM:<me@{spelling}> SMTPUTF8", 250 if number < 3 else 550)
            assert number < 3 or "Too many messages for this sender" in said.text
            client.command("RSET")
    with relay.client() as client:
        client.greet()
        for number, spelling in enumerate(SPELLINGS):
            client.command(f"MAIL FROM:<n{number}@sender.test> SMTPUTF8", 250)
            assert "not to him" in client.command(f"RCPT TO:<refused@{spelling}>", 550).text
            client.command(f"RCPT TO:<to{number}@{spelling}>", 250)
            client.command("DATA", 354)
            client.send(b"Subject: x\r\n\r\n.\r\n")
            client.expect(250)
            # The sink offers no TLS, and gets nothing: it is required; what is said stays as it was said.
            address = f"to{number}@{spelling}".lower() if spelling.isascii() else None
            event = relay.wait_event("deferred", count=number + 1)
            assert event["dsn"].startswith("4.7."), event
            assert not address or event["to"] == address
            assert "a@dest.test" in relay.command("route", f"list@{spelling}").stdout
    assert not relay.events("sent")


@pytest.mark.parametrize("written", IN_TABLES)
def test_the_host_of_a_sender_is_hidden_in_each_spelling(lab, written):
    sink = lab.sink()
    relay = lab.relay(Config({"masquerade": [f"!open.{written}", written]}).route_all_to(sink.port))
    with relay.client() as client:
        client.greet()
        for spelling in SPELLINGS:
            client.send_mail(f"me@host.{spelling}", ["a@dest.test"], mail_params=" SMTPUTF8")
            client.send_mail(f"me@open.{spelling}", ["b@dest.test"], mail_params=" SMTPUTF8")
    sent = sink.wait_messages(2 * len(SPELLINGS))
    assert {m.sender for m in sent if m.recipients == ["a@dest.test"]} == {f"me@{ONE}"}
    assert {m.sender.partition(".")[0] for m in sent if m.recipients == ["b@dest.test"]} == {"me@open"}


@pytest.mark.parametrize("written", IN_TABLES)
def test_a_route_is_for_its_senders_in_each_spelling(lab, written):
    sink, away = lab.sink(), lab.sink()
    config = Config().route_all_to(away.port)
    config.routes["dest.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"], "from": [f"me@{written}", f".{written}"]}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        for spelling in SPELLINGS:
            for sender in ("me@", "you@below."):
                client.send_mail(f"{sender}{spelling}", ["a@dest.test"], mail_params=" SMTPUTF8")
    sink.wait_messages(2 * len(SPELLINGS))
    assert not away.messages


def _send_to_each(relay, recipient):
    for spelling in SPELLINGS:
        with relay.client() as client:
            client.greet()
            client.send_mail("me@sender.test", [f"{recipient}@{spelling}"], mail_params=" SMTPUTF8")


@pytest.mark.parametrize("written", IN_TABLES)
def test_a_domain_is_suspended_and_resumed_in_each_spelling(lab, written):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    assert relay.command("dest", "suspend", written).returncode == 0
    _send_to_each(relay, "before")
    relay.wait_event("deferred", count=len(SPELLINGS), reply=re.compile("domain is suspended"))
    assert relay.command("dest", "resume", "BÜCHER.test").returncode == 0
    sink.wait_messages(len(SPELLINGS))
    assert relay.command("dest", "suspend", ONE).returncode == 0
    assert relay.command("dest", "suspend", written).returncode == 0
    assert relay.command("dest", "list").stdout.count("suspended: ") == 1
    _send_to_each(relay, "again")
    relay.wait_event("deferred", count=2 * len(SPELLINGS))
    assert len(sink.messages) == len(SPELLINGS)


@pytest.mark.parametrize("domain", ["r3---sn.test", "xn--i-7iq.test", "r3---sn.bücher.test"])
def test_a_domain_that_idna_refuses_has_its_policy(lab, domain):
    folder, sink = lab.folder("tables"), lab.sink()
    (folder / "policy").write_text(f"{domain} required\n", encoding="utf-8")
    config = Config({"tls_policy": [str(folder / "policy")]})
    relay = lab.relay(config.route_all_to(sink.port))
    with relay.client() as client:
        client.greet()
        client.send_mail("a@sender.test", [f"b@{domain}"], mail_params=" SMTPUTF8")
    assert relay.wait_event("deferred")["dsn"].startswith("4.7.")
    assert not sink.messages


@pytest.mark.parametrize("written", [ONE, "BÜCHER.test", "bücher．test", f"{ONE}.", "bücher.test."])
def test_a_next_hop_and_names_of_ours_are_taken_in_each_spelling(lab, written):
    sink = lab.sink()
    config = Config({"hostname": written}, transports={"smtp": {"helo": written, "port": sink.port}})
    config.routes["*"] = {"relay": [f"[{written}]:{sink.port}"]}
    config.routes["by-mx.test"] = {"relay": [written]}
    config.resolve_with(lab.nsd({ONE: "@ MX 10 @\n@ A 127.0.0.2"}))
    config.dns |= {"allow_loopback": True, "insecure_domains": [written]}
    relay = lab.relay(config)
    other = lab.sink(address="127.0.0.2", port=sink.port)
    with relay.client() as client:
        assert client.greet().lines[0] == ONE
        client.send_mail("a@sender.test", ["b@dest.test"])
        client.send_mail("a@sender.test", ["b@by-mx.test"])
    other.wait_messages(2)
    assert {line for session in other.sessions for _, line in session.commands if line.startswith("EHLO")} == {f"EHLO {ONE}"}
    assert {event["site"] for event in relay.wait_events("sent", count=2)} == {f"[{ONE}]:{sink.port}", ONE}


@pytest.mark.parametrize("written", ["[::1]", "[IPv6:0:0::1]", "[0:0:0:0:0:0:0:1]", "[ipv6:::0001]"])
def test_a_relay_is_one_site_in_each_spelling_of_its_address(lab, written):
    sink = lab.sink(address="::1")
    folder = lab.folder("tables")
    (folder / "routes").write_text(f"row.test relay={written}:{sink.port}\n", encoding="utf-8")
    config = Config({"routes": [str(folder / "routes")]})
    config.routes["section.test"] = {"relay": [f"[::1]:{sink.port}"]}
    relay = lab.relay(config)
    for domain in ("row.test", "section.test"):
        relay.send(recipients=[f"a@{domain}"])
    assert {event["site"] for event in relay.wait_events("sent", count=2)} == {f"[::1]:{sink.port}"}


LITERALS = ["[IPv6:2001:db8::1]", "[ipv6:2001:DB8:0::1]", "[IPv6:2001:0db8:0:0:0:0:0:1]"]


@pytest.mark.parametrize("written", LITERALS)
def test_what_is_said_of_an_address_holds_for_each_spelling(lab, written):
    sink, away, folder = lab.sink(), lab.sink(), lab.folder("tables")
    (folder / "access").write_text(f"refused@{written} reject 550 5.7.1 not to him\n", encoding="utf-8")
    config = Config({"recipient_access": [str(folder / "access")]}).route_all_to(away.port)
    config.routes[written] = {"relay": [f"[127.0.0.1]:{sink.port}"]}
    config.listeners["smtp"] = {"error_limit": 0}
    config.extra = 'limit "sender" { messages = "3/h"  action = "reject" }\n'
    relay = lab.relay(config)
    assert relay.command("dest", "suspend", written).returncode == 0
    with relay.client() as client:
        client.greet()
        for number, spelling in enumerate([*LITERALS, LITERALS[0]]):
            client.command(f"MAIL FROM:<me@{spelling}>", 250 if number < 3 else 550)
            if number < 3:
                assert "not to him" in client.command(f"RCPT TO:<refused@{spelling}>", 550).text
                client.command(f"RCPT TO:<to{number}@{spelling}>", 250)
                client.command("DATA", 354)
                client.send(b"Subject: x\r\n\r\n.\r\n")
                client.expect(250)
    relay.wait_event("deferred", count=3, reply=re.compile("domain is suspended"))
    assert relay.command("dest", "resume", LITERALS[1]).returncode == 0
    sink.wait_messages(3)
    assert not away.messages


@pytest.mark.parametrize("written", [*LITERALS, "2001:DB8:0::1", "[2001:db8::1]", "[2001:DB8:0::1]:25"])
def test_a_row_for_an_address_holds_for_each_spelling_of_a_next_hop(lab, written):
    folder = lab.folder("tables")
    for name, row in (("policy", "verify"), ("logins", "from@sender.test us password:/etc/pass"), ("routes", "")):
        text = f"{written} {row}\n" if row else "row.test relay=[2001:DB8::0:1]:025\n"
        (folder / name).write_text(text, encoding="utf-8")
    config = Config({name: [str(folder / file)] for name, file in (("tls_policy", "policy"), ("credentials", "logins"), ("routes", "routes"))})
    relay = lab.relay(config)
    for spelling in LITERALS:
        assert "tls verify:2001:db8::1\n" in relay.command("route", f"a@{spelling}").stdout
        assert "* tls_policy verify" in relay.command("tls", f"a@{spelling}").stdout
    relay.send(recipients=["a@row.test"])
    site = "[2001:db8::1]:25 as us tls=verify:2001:db8::1 "
    wait_until(lambda: site in relay.command("dest", "list").stdout, what="the site of the next hop")


def test_a_host_is_suspended_by_each_spelling_of_its_address(lab):
    sink = lab.sink(address="::1")
    config = Config()
    config.routes["*"] = {"relay": [f"[::1]:{sink.port}"]}
    relay = lab.relay(config)
    relay.send()
    relay.wait_event("sent")
    for spelling in ("0:0::1", f"[0:0::1]:{sink.port}"):
        assert relay.command("dest", "suspend", spelling).returncode == 0
        assert "suspended" in relay.command("dest", "show", f"[::1]:{sink.port}").stdout, spelling
        assert relay.command("dest", "resume", "::1" if spelling == "0:0::1" else f"[::1]:{sink.port}").returncode == 0
