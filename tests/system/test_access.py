# SPDX-License-Identifier: ISC
"""Who may come in: tables of clients, their names, senders and recipients."""

import os
import subprocess

import pytest

from lab import milter as m
from lab.config import Config
from lab.milter import Milter, packet
from lab.net import LOOPBACK, wait_until


@pytest.fixture(name="table")
def _table(tmp_path):
    """Write a table; return its path."""
    def write(name, *lines):
        path = tmp_path / name
        text = "".join(f"{line}\n" for line in lines)
        if name.endswith(".cdb"):
            subprocess.run(["cdb", "-c", "-m", str(path)], input=text, check=True, text=True)
        else:
            (tmp_path / "new").write_text(text)
            os.rename(tmp_path / "new", path)
        return str(path)
    return write


def _relay(lab, sink, **settings):
    return lab.relay(Config(settings={"xclient": [f"{LOOPBACK}/32"], "networks": ["0.0.0.0/0", "::/0"]} | settings).route_all_to(sink.port))


def _client(relay, address="192.0.2.1", name="[UNAVAILABLE]", helo="client.test"):
    client = relay.client()
    client.greet()
    client.command(f"XCLIENT ADDR={address} NAME={name}", 220)
    client.command(f"EHLO {helo}", 250)
    return client


def _reply(client, sender="a@sender.test", to="b@dest.test"):
    """The reply to RCPT, after a MAIL that is always taken."""
    client.command("RSET", 250)
    client.command(f"MAIL FROM:<{sender}>", 250)
    client.send(f"RCPT TO:<{to}>")
    return client.expect("").text


def _said(relay, sender="a@sender.test", to="b@dest.test", **client):
    with _client(relay, **client) as c:
        return _reply(c, sender, to)


OK = "250 2.1.5 Recipient ok"


@pytest.mark.parametrize("form", ["clients", "clients.cdb"])
def test_a_client_is_known_by_its_address_its_networks_and_its_name(lab, table, form):
    relay = _relay(lab, lab.sink(), client_access=[table(
        form, "192.0.2.7 accept", "192.0.2.0/24 reject 554 5.7.0 not that office", "2001:db8::/32 defer come back",
        "bad.example.test reject", ".example.test 450 4.7.9 slowly", "mail.example.test ok", "198.51.100.9 reject 550 5.7.1 by address")])
    assert _said(relay, address="192.0.2.7") == OK
    assert _said(relay, address="192.0.2.8") == "554 5.7.0 not that office"
    assert _said(relay, address="IPV6:2001:db8::5") == "450 4.7.1 come back"
    assert _said(relay, address="198.51.100.1") == OK
    assert _said(relay, address="198.51.100.1", name="Bad.Example.Test") == "550 5.7.1 access denied"
    assert _said(relay, address="198.51.100.1", name="x.y.example.test") == "450 4.7.9 slowly"
    assert _said(relay, address="198.51.100.1", name="mail.example.test") == OK
    assert _said(relay, address="198.51.100.9", name="mail.example.test") == "550 5.7.1 by address"
    relay.wait_event("reject", stage="RCPT", code="554", reason="not that office", to="b@dest.test")


def test_who_names_itself_so_is_known_by_that(lab, table):
    relay = _relay(lab, lab.sink(), helo_access=[table(
        "names", "localhost reject", ".dynamic.test reject 554 no", "good.dynamic.test accept", "[192.0.2.1] defer")])
    assert _said(relay, helo="LOCALHOST") == "550 5.7.1 access denied"
    assert _said(relay, helo="a.b.dynamic.test") == "554 5.7.1 no"
    assert _said(relay, helo="good.dynamic.test") == OK
    assert _said(relay, helo="dynamic.test") == OK
    assert _said(relay, helo="[192.0.2.1]") == "450 4.7.1 access denied"


def test_a_final_dot_hides_nobody(lab, table):
    relay = _relay(lab, lab.sink(), helo_access=[table("names", "localhost reject", ".dynamic.test reject 554 no", "dotted.test. defer")],
                   client_access=[table("clients", ".bad.test reject 554 5.7.0 not from there")])
    assert _said(relay, helo="localhost.") == "550 5.7.1 access denied"
    assert _said(relay, helo="a.b.dynamic.test.") == "554 5.7.1 no"
    assert _said(relay, helo="dotted.test") == "450 4.7.1 access denied"
    assert _said(relay, name="mail.bad.test.") == "554 5.7.0 not from there"


def test_a_row_is_for_each_spelling_of_its_address(lab, table):
    relay = _relay(lab, lab.sink(), recipient_access=[table(
        "recipients", '"anna"@dest.test reject 550 5.7.1 quoted', '"b\\ c"@dest.test reject 550 5.7.1 blank',
        "dora@dest.test. reject 550 5.7.1 dotted", ".parent.test. reject 550 5.7.1 parent")])
    for quoted in ("anna", '"anna"', '"a\\nna"'):
        assert _said(relay, to=f"{quoted}@dest.test") == "550 5.7.1 quoted"
    assert _said(relay, to='"b c"@dest.test') == "550 5.7.1 blank"
    for domain in ("dest.test", "dest.test."):
        assert _said(relay, to=f"dora@{domain}") == "550 5.7.1 dotted"
    assert _said(relay, to="x@a.parent.test") == "550 5.7.1 parent"


def test_a_domain_may_be_an_address(lab, table):
    relay = _relay(lab, lab.sink(), recipient_access=[table("recipients", "anna@[192.0.2.1] accept", "[192.0.2.1] reject 550 5.7.1 none of its users",
                                                            "anna@[IPv6:2001:db8::1] reject 550 5.7.1 not by the other one")])
    assert _said(relay, to="anna@[192.0.2.1]") == OK
    assert _said(relay, to="bert@[192.0.2.1]") == "550 5.7.1 none of its users"
    assert _said(relay, to="anna@[IPv6:2001:DB8::1]") == "550 5.7.1 not by the other one"


def test_a_cdb_file_has_keys_as_they_are_looked_for(lab, table):
    relay = _relay(lab, lab.sink())
    for key, wanted in (("a@dest.test.", "a@dest.test"), ("dest.test.", "dest.test"), ('"a"@dest.test', "a@dest.test")):
        keys = table("keys.cdb", f"{key} reject")
        relay.config.settings["recipient_access"] = [keys]
        relay.write_config()
        said = relay.command("check")
        assert said.returncode == 1
        assert f'keys.cdb:1: the key "{key}" must be {wanted}' in said.stdout + said.stderr


def test_a_sender_is_known_as_the_client_gives_it(lab, table):
    relay = _relay(lab, lab.sink(), sender_access=[table(
        "senders", "<> reject 550 5.7.1 no reports", "bad@sender.test reject", "other.test defer", ".other.test reject",
        "* accept")], canonical=[table("canonical", "old@sender.test bad@sender.test")])
    assert _said(relay, sender="") == "550 5.7.1 no reports"
    assert _said(relay, sender="Bad@Sender.Test") == "550 5.7.1 access denied"
    assert _said(relay, sender="old@sender.test") == OK
    assert _said(relay, sender="x@other.test") == "450 4.7.1 access denied"
    assert _said(relay, sender="x@a.other.test") == "550 5.7.1 access denied"


def test_the_first_that_refuses_counts_and_accept_ends_its_own_table_only(lab, table):
    relay = _relay(
        lab, lab.sink(), client_access=[table("c", "192.0.2.1 accept", "192.0.2.2 reject 550 5.7.1 client")],
        helo_access=[table("h", "bad.test reject 550 5.7.1 name")], sender_access=[table("s", "sender.test reject 550 5.7.1 sender")],
        recipient_access=[table("r", "dest.test reject 550 5.7.1 recipient")])
    assert _said(relay, address="192.0.2.2", helo="bad.test") == "550 5.7.1 client"
    assert _said(relay, helo="bad.test") == "550 5.7.1 name"
    assert _said(relay) == "550 5.7.1 sender"
    assert _said(relay, sender="x@y.test") == "550 5.7.1 recipient"
    assert _said(relay, sender="x@y.test", to="x@z.test") == OK


def test_a_stranger_whom_a_table_accepts_relays_nothing(lab, table):
    everything = table("all", "192.0.2.1 accept", "* accept")
    relay = _relay(lab, lab.sink(), networks=["10.0.0.0/8"], client_access=[everything], sender_access=[table("s", "* accept")])
    assert _said(relay).startswith("550 5.7.1 Relay access denied")
    assert _said(relay, address="10.0.0.1") == OK


def test_mail_is_held_dropped_or_of_a_flow(lab, table):
    sink = lab.sink()
    relay = _relay(
        lab, sink, client_access=[table("c", "192.0.2.0/24 flow office")], helo_access=[table("h", "gone.test discard")],
        sender_access=[table("s", "held@sender.test hold", "news.test flow news")], recipient_access=[table("r", "dest.test flow late")])
    for client, sender in (({}, "a@news.test"), ({"address": "198.51.100.1"}, "b@news.test"),
                           ({"address": "198.51.100.1"}, "c@x.test"), ({"address": "198.51.100.1"}, "held@sender.test"),
                           ({"helo": "gone.test"}, "never@x.test")):
        with _client(relay, **client) as c:
            c.send_mail(sender, ["b@dest.test"])
    flows = {e["from"]: e["flow"] for e in (relay.wait_event("queued", **{"from": f}) for f in (
        "a@news.test", "b@news.test", "c@x.test", "held@sender.test"))}
    assert flows == {"a@news.test": "office", "b@news.test": "news", "c@x.test": "late", "held@sender.test": "late"}
    relay.wait_event("discard", reason="helo_access", to="b@dest.test")
    assert sorted(m.sender for m in sink.wait_messages(3)) == ["a@news.test", "b@news.test", "c@x.test"]
    assert "held@sender.test" in relay.command("queue", "list", "--queue", "hold").stdout


@pytest.mark.parametrize("by", ["sender_access", "recipient_access"])
def test_recipients_that_are_thrown_away_count_among_those_a_message_may_have(lab, table, by):
    sink, row = lab.sink(), {"sender_access": "never@x.test discard", "recipient_access": "gone.test discard"}[by]
    config = Config(settings={by: [table("t", row)]}).route_all_to(sink.port)
    config.listeners["smtp"]["recipient_limit"] = 3
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<never@x.test>", 250)
        for i in range(3):
            client.command(f"RCPT TO:<{i}@gone.test>", 250)
        client.command("RCPT TO:<4@gone.test>", 452)
        client.command("RCPT TO:<5@dest.test>", 452)
        client.command("DATA", 354)
        client.send(b"text\r\n.\r\n")
        client.expect(250)
    relay.wait_event("discard", reason="no recipient is left")
    assert len(relay.events("discard", reason=by)) == 3
    assert not sink.messages


@pytest.mark.parametrize("by", ["sender_access", "filter"])
def test_a_client_whose_mail_is_thrown_away_is_served_as_long_as_any_other(lab, table, by):
    """It is not to know: RSET between messages, of which a message that was taken makes amends, costs it no more."""
    sink, one = lab.sink(), Milter()
    settings = {by: [table("t", "never@x.test discard")]} if by == "sender_access" else {}
    config = Config(settings=settings).route_all_to(sink.port)
    config.listeners["smtp"] |= {"junk_command_limit": 2, "error_limit": 2}
    lab.callback(one.close)
    if by == "filter":
        one.behave({"E": packet(m.DISCARD)})
        config.extra = f'milter "one" {{ address = "{one.address}" }}\n'
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        for _ in range(8):
            client.send_mail("never@x.test", ["b@dest.test"])
            client.command("RSET", 250)
    assert len(relay.events("queued")) == 0 and not sink.messages


@pytest.mark.parametrize("how", ["route", "filter"])
def test_what_a_row_says_of_a_recipient_that_is_not_taken_holds_for_no_message(lab, table, how):
    sink, one = lab.sink(), Milter()
    lab.callback(one.close)
    one.behave({"R": lambda _, data: packet(m.REJECT if b"gone" in data and how == "filter" else m.CONTINUE)})
    config = Config(settings={"recipient_access": [table("r", "held.gone.test hold", "named.gone.test flow vip", "held.test hold", "named.test flow vip")]})
    config.extra = f'milter "one" {{ address = "{one.address}" }}\n'
    config.route_all_to(sink.port)
    if how == "route":
        config.routes[".gone.test"] = {"error": "5.1.1 nobody"}
    relay = lab.relay(config)
    flows = []
    for recipients in (["held.gone.test", "x.test"], ["named.gone.test", "x.test"], ["held.gone.test", "named.test"], ["named.gone.test", "held.test"]):
        with relay.client() as client:
            client.greet()
            client.command("MAIL FROM:<a@sender.test>")
            for name in recipients:
                client.command(f"RCPT TO:<b@{name}>", 550 if "gone" in name else 250)
            client.command("DATA", 354)
            client.send(b"text\r\n.\r\n")
            flows.append(relay.wait_event("queued", id=client.expect(250).text.split()[-1])["flow"])
    assert flows == ["sender.test", "sender.test", "vip", "sender.test"]
    assert sorted(message.recipients for message in sink.wait_messages(3)) == [["b@named.test"], ["b@x.test"], ["b@x.test"]]
    assert relay.command("queue", "list", "--queue", "hold", "--json").stdout.count("\n") == 1


def test_a_table_that_changes_is_read_again(lab, table):
    path = table("c", "192.0.2.9 reject")
    relay = _relay(lab, lab.sink(), client_access=[path])
    assert _said(relay) == OK
    table("c", "192.0.2.1 reject 550 5.7.1 now")
    wait_until(lambda: _said(relay) == "550 5.7.1 now", 60, "the table to be read")


def test_what_is_no_row_is_an_error_with_its_line(lab, table):
    relay = lab.relay(Config(settings={
        "client_access": [table("c", "192.0.2.1 accept", "192.0.2.9/32 reject", "a@b.test reject", "x.test verify")],
        "helo_access": [table("h", "# none", "bad.test maybe", "x.test reject 250 hello")],
        "sender_access": [table("s", "x.test flow", "y.test flow two words", "z.test verify")]}), start=False)
    lines = relay.command("check").stderr.splitlines()
    for name, line, text in (
            ("c", 2, "this network is to be written 192.0.2.9"), ("c", 3, '"a@b.test" is not a name'), ("c", 4, "verify is for recipients"),
            ("h", 2, "must be accept, reject, defer, hold, discard, verify, flow NAME, or a code and a text"),
            ("h", 3, "the code of a refusal is 400 to 599"), ("s", 1, "flow needs the name of one"),
            ("s", 2, "flow needs the name of one"), ("s", 3, "verify is for recipients")):
        assert any(f"/{name}:{line}: " in one and text in one for one in lines), (name, line, lines)


def test_the_beginning_of_an_address_is_no_name_of_a_client(lab, table):
    """Postfix has 192.168 for the network; here it was a name that no client has, and the row held for nobody."""
    rows = {"192.168 reject": "192.168.0.0/16", "10. reject": "10.0.0.0/8", "198.51.100 hold": "198.51.100.0/24", "192.0.2.300 reject": None,
            "777 reject": None, "10.in-addr.test reject": "", "*  accept": ""}
    relay = lab.relay(Config(settings={
        "client_access": [table("c", *rows)], "flows": [table("f", "192.168 office", "192.0.2.1 office")]}), start=False)
    lines = relay.command("check").stderr.splitlines()
    for number, (row, network) in enumerate(rows.items(), 1):
        said = next((one for one in lines if f"/c:{number}: " in one), "")
        assert ("is no whole address" in said) == (network != ""), (row, said)
        assert said.endswith(f": a network is written {network}") == bool(network), (row, said)
    assert any("/f:1: " in one and "192.168.0.0/16" in one for one in lines) and not any("/f:2: " in one for one in lines)
