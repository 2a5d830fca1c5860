# SPDX-License-Identifier: ISC
"""Aliases that a server has: expanded at RCPT, for copies, for filters and in the maildrop, and nowhere by guess."""

import threading

import pytest

from lab import milter as m
from lab import received
from lab.config import Config
from lab.milter import Milter, packet, texts
from lab.net import wait_until
from lab.socketmap import SocketmapServer, netstring

OK = "250 2.1.5 Recipient ok"
AWAY = "451 4.3.0 A table cannot be asked for now, try again later"
LOOP = "550 5.4.6 Alias loop, or alias expands to too many addresses"


@pytest.fixture(name="server")
def _server(lab):
    server = SocketmapServer(path=f"{lab.folder('map')}/socket").start()
    lab.callback(server.stop)
    return server


def _relay(lab, server, sink, *files, start=True, extra="", listener=None, **settings):
    config = Config(settings={"workers": 1, "socketmap_timeout": "1s", "socketmap_cache": "0s", "aliases": [*files, server.table("m")]} | settings)
    config.listeners["smtp"] = listener or {}
    config.extra = extra
    return lab.relay(config.route_all_to(sink.port), start=start)


def _said(relay, *recipients, sender="a@sender.test"):
    with relay.client() as client:
        client.greet("client.test")
        client.command(f"MAIL FROM:<{sender}>", 250)
        client.send("".join(f"RCPT TO:<{to}>\r\n" for to in recipients).encode())
        return [client.read_reply().text for _ in recipients]


def _came(sink, count):
    """Who got mail, once there are so many."""
    def all_of_them():
        return sorted(one for message in sink.messages for one in message.recipients)
    wait_until(lambda: len(all_of_them()) >= count, 60, "recipients")
    assert len(all_of_them()) == count
    return all_of_them()


def test_an_alias_of_aliases_at_a_server_and_in_files(lab, server, tmp_path):
    """Sections, then tables in their order; and each address is asked about once."""
    (tmp_path / "aliases").write_text("filed@here.test: f@dest.test, served@here.test\n")
    server.maps = {"m": {"list@here.test": "a@dest.test, Inner@here.test, filed@here.test, A@dest.test", "inner@here.test": "inner@here.test, b@dest.test",
                         "served@here.test": "s@dest.test", "filed@here.test": "wrong@dest.test"}}
    sink = lab.sink()
    relay = _relay(lab, server, sink, str(tmp_path / "aliases"))
    relay.send(recipients=["List@here.test", "other@dest.test"])
    assert _came(sink, 6) == ["a@dest.test", "b@dest.test", "f@dest.test", "inner@here.test", "other@dest.test", "s@dest.test"]
    assert [key for _, key in server.asked] == ["list@here.test", "a@dest.test", "inner@here.test", "b@dest.test", "f@dest.test",
                                                "served@here.test", "s@dest.test", "other@dest.test"]
    relay.wait_event("sent", to="b@dest.test", orig_to="rfc822;List@here.test")


def test_loops_and_depth_at_a_server(lab, server):
    server.maps = {"m": {"loop@here.test": "pool@here.test", "pool@here.test": "x@dest.test, loop@here.test"}
                   | {f"d{n}@here.test": f"d{n + 1}@here.test" for n in range(30)}}
    relay = _relay(lab, server, lab.sink())
    assert _said(relay, "loop@here.test", "d0@here.test", "d11@here.test", "ok@dest.test") == [LOOP, LOOP, OK, OK]


def test_a_thousand_members_are_asked_about_and_ten_thousand_are_the_most(lab, server):
    names = [f"member-number-{n}@long.name.of.a.department.example.test" for n in range(1000)]
    server.maps = {"m": {"all@here.test": ", ".join(names)}
                   | {f"part{n}@here.test": ", ".join(f"p{n}m{k}@d.test" for k in range(1000)) for n in range(11)}
                   | {"most@here.test": ", ".join(f"part{n}@here.test" for n in range(10)), "more@here.test": ", ".join(f"part{n}@here.test" for n in range(11))}}
    sink = lab.sink()
    relay = _relay(lab, server, sink, socketmap_timeout="1m", socketmap_cache="1h")
    assert len(server.maps["m"]["all@here.test"]) > 50000
    relay.send(recipients=["all@here.test"])
    assert _came(sink, 1000) == sorted(names)
    assert len(server.asked) == 1001
    assert _said(relay, "most@here.test") == [OK]
    assert _said(relay, "more@here.test") == [LOOP]


@pytest.mark.parametrize("mood", ["hangs", "too much", "nonsense", "gone", "TEMP", "half", "no alias", "no address"])
def test_a_server_that_is_none(lab, server, mood):
    """451 for whomever it is asked about, and nobody unexpanded; and it is asked again when it is well."""
    def write(handler, _text):
        said = {"too much": b"100001:OK " + b"x" * 99998 + b",", "nonsense": b"HTTP/1.1 200 OK\r\n\r\n", "half": b"5:OK", "TEMP": netstring("TEMP no directory"),
                "no alias": netstring("OK "), "no address": netstring("OK a@dest.test, b@dest.test>SIZE")}
        handler.wfile.write(said.get(mood, b""))
        if mood == "gone":
            handler.connection.shutdown(2)
        elif mood in ("hangs", "half"):
            server.released.wait()

    server.mood = write
    sink = lab.sink()
    relay = _relay(lab, server, sink, socketmap_timeout="300ms")
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
        client.send("RCPT TO:<list@here.test>")
        assert client.expect("").text == AWAY
        client.command("NOOP", 250)
    relay.wait_event("lookup", table="aliases", key="list@here.test")
    server.maps = {"m": {"list@here.test": "c@dest.test"}}
    server.mood = None
    wait_until(lambda: _said(relay, "list@here.test") == [OK], 60, "the server to be asked again")
    relay.send(recipients=["list@here.test"])
    assert _came(sink, 1) == ["c@dest.test"]


def test_a_server_that_goes_in_the_middle_of_a_list(lab, server):
    """Those who answered before count for nothing: the list is expanded as a whole, or not."""
    server.maps = {"m": {"list@here.test": ", ".join(f"m{n}@dest.test" for n in range(5)), "m3@dest.test": "TEMP no"}}
    sink = lab.sink()
    relay = _relay(lab, server, sink)
    assert _said(relay, "list@here.test", "m1@dest.test") == [AWAY, OK]
    del server.maps["m"]["m3@dest.test"]
    relay.send(recipients=["list@here.test"])
    assert _came(sink, 5) == [f"m{n}@dest.test" for n in range(5)]


def test_answers_twice_and_late_are_nobodys(lab, server):
    gate = threading.Event()
    server.maps = {"m": {"list@here.test": "c@dest.test"}}
    server.mood = lambda handler, text: handler.wfile.write(netstring(text) + netstring("OK wrong@dest.test"))
    sink = lab.sink()
    relay = _relay(lab, server, sink, socketmap_timeout="300ms")
    assert _said(relay, "list@here.test", "x@dest.test") == [OK, OK]
    server.mood = lambda handler, text: (gate.wait(), handler.wfile.write(netstring("OK wrong@dest.test")))
    assert _said(relay, "x@dest.test") == [AWAY]
    server.mood = None
    gate.set()
    wait_until(lambda: _said(relay, "x@dest.test") == [OK], 60, "the server to be asked again")
    relay.send(recipients=["list@here.test", "x@dest.test"])
    assert _came(sink, 2) == ["c@dest.test", "x@dest.test"]


def test_a_client_that_goes_and_others_that_do_not_wait(lab, server):
    server.mood = lambda handler, text: (server.released.wait(), handler.wfile.write(netstring(text)))
    relay = _relay(lab, server, lab.sink(), socketmap_timeout="60s")
    with relay.client() as waiting, relay.client() as other:
        for client in (waiting, other):
            client.greet()
        waiting.command("MAIL FROM:<a@sender.test>", 250)
        waiting.send("RCPT TO:<list@here.test>")
        wait_until(lambda: server.asked, 60, "the question")
        for _ in range(20):
            other.command("NOOP", 250)
        waiting.reset()
        relay.wait_event("disconnect", reason="read: Connection reset by peer")
    server.mood = None
    server.released.set()
    assert _said(relay, "b@dest.test") == [OK]


def test_copies_to_aliases_of_a_server(lab, server, tmp_path):
    """always_bcc and sender_bcc are asked about when the content has come; 451 then. recipient_bcc at RCPT."""
    (tmp_path / "of_sender").write_text("boss@sender.test watchers@here.test\n")
    (tmp_path / "of_recipient").write_text("sold@dest.test sales@here.test\n")
    server.maps = {"m": {"watchers@here.test": "w1@dest.test, w2@dest.test", "sales@here.test": "s1@dest.test, s2@dest.test", "all@here.test": "j@dest.test"}}
    sink = lab.sink()
    relay = _relay(lab, server, sink, always_bcc="all@here.test", sender_bcc=[str(tmp_path / "of_sender")], recipient_bcc=[str(tmp_path / "of_recipient")])
    relay.send("boss@sender.test", ["sold@dest.test"])
    assert _came(sink, 6) == ["j@dest.test", "s1@dest.test", "s2@dest.test", "sold@dest.test", "w1@dest.test", "w2@dest.test"]
    server.maps["m"]["sales@here.test"] = "TEMP no"
    assert _said(relay, "sold@dest.test", "x@dest.test") == [AWAY, OK]
    server.maps["m"]["all@here.test"] = "TEMP no"
    with relay.client() as client:
        client.greet()
        assert client.send_mail("a@sender.test", ["x@dest.test"], b"Subject: x\r\n\r\n", 451).text == AWAY
    assert relay.command("queue", "list", "--json").stdout == ""


def test_who_is_an_alias_is_known_before_the_next_hop_is_asked(lab, server):
    """A recipient that a route refuses, and that is an alias, is one."""
    server.maps = {"m": {"list@gone.test": "c@dest.test"}}
    sink = lab.sink()
    relay = _relay(lab, server, sink, start=False)
    relay.config.routes["gone.test"] = {"error": "5.1.2 gone"}
    relay.write_config()
    relay.start()
    assert _said(relay, "list@gone.test", "x@gone.test") == [OK, "550 5.1.2 gone"]


def test_postmaster_may_be_an_alias_of_a_server(lab, server):
    server.maps = {"m": {"postmaster": "pm@dest.test"}}
    sink = lab.sink()
    relay = _relay(lab, server, sink, listener={"networks": ["192.0.2.0/24"]})
    relay.send(recipients=["postmaster"])
    assert _came(sink, 1) == ["pm@dest.test"]
    server.maps = {}
    relay.send(recipients=["postmaster"])
    assert _came(sink, 2) == ["pm@dest.test", "postmaster@relay.test"]
    assert _said(relay, "x@dest.test") == ["550 5.7.1 Relay access denied"]
    server.maps = {"m": {"postmaster": "TEMP no"}}
    assert _said(relay, "postmaster") == [AWAY]


def _milter(lab, **settings):
    one = Milter()
    lab.callback(one.close)
    rows = {"address": f'"{one.address}"', "timeout": '"60s"', "default_action": '"accept"'} | settings
    return one, 'milter "one" {\n' + "".join(f"  {key} = {value}\n" for key, value in rows.items()) + "}\n"


ADDS = {"E": packet(b"+", texts("<list@here.test>")) + packet(b"-", texts("<b@dest.test>")) + packet(m.CONTINUE)}


def test_a_filter_adds_an_alias_of_a_server(lab, server):
    """Expanded, or the message is refused for now, whatever the filter's default_action says."""
    server.maps = {"m": {"list@here.test": "c@dest.test, inner@here.test", "inner@here.test": "d@dest.test"}}
    one, extra = _milter(lab)
    sink = lab.sink()
    relay = _relay(lab, server, sink, extra=extra)
    one.behave(ADDS)
    relay.send(recipients=["b@dest.test"])
    assert _came(sink, 2) == ["c@dest.test", "d@dest.test"]
    server.maps["m"]["inner@here.test"] = "TEMP no"
    with relay.client() as client:
        client.greet()
        assert client.send_mail("a@sender.test", ["b@dest.test"], b"Subject: x\r\n\r\n", 451).text == AWAY
    server.mood = lambda handler, text: (server.released.wait(), handler.wfile.write(netstring(text)))
    with relay.client() as client:
        one.behave({"E": ADDS["E"]})
        client.greet()
        before = len(server.asked)
        client.send(b"MAIL FROM:<a@sender.test>\r\n")
        client.expect(250)
        client.reset()
        wait_until(lambda: len(server.asked) == before, 60, "nothing to be asked")
    assert relay.running()
    assert relay.command("queue", "list", "--json").stdout == ""


@pytest.mark.parametrize("row, asked", [("TEMP no", 2), ("c@dest.test, none", 1)], ids=["once-it-answers", "at-once"])
@pytest.mark.parametrize("change", [
    packet(b"q", texts("the first is to be held")) + m.add_header("X-Of-First", "1"), m.replace_body(b"Body for the first.\r\n"),
], ids=["fields", "body"])
def test_what_a_filter_wanted_of_a_refused_message_is_not_done_to_the_next(lab, server, change, row, asked):
    server.maps = {"m": {"list@here.test": row}}
    one, extra = _milter(lab)
    sink = lab.sink()
    relay = _relay(lab, server, sink, extra=extra, socketmap_cache="1h")
    first, last = ADDS["E"].removesuffix(packet(m.CONTINUE)) + change, m.replace_body(b"Another.\r\n") + m.add_header("X-Of-Last", "3")
    one.behave({"E": lambda told, _data: (first if len(told.all(b"E")) < 3 else last) + packet(m.CONTINUE)})
    with relay.client() as client:
        client.greet()
        for code in (451, 451, 250):
            if code == 250:
                assert [key for _, key in server.asked].count("list@here.test") == asked
                server.maps["m"]["list@here.test"] = "c@dest.test, d@dest.test"
            client.send_mail("a@sender.test", ["e@dest.test"], b"Subject: x\r\n\r\nOwn.\r\n", code)
    assert _came(sink, 1) == ["e@dest.test"]
    assert received.without(sink.messages[0].content) == b"Subject: x\r\nX-Of-Last: 3\r\n\r\nAnother.\r\n"
    assert [event["action"] for event in relay.wait_events("filter")] == ["change"]


def _dropped(lab, server, sink, **settings):
    """A relay that is stopped, and mail for a list in its maildrop."""
    relay = _relay(lab, server, sink, **settings)
    relay.wait_event("recover")
    relay.stop()
    done = relay.command("sendmail", "-f", "me@sender.test", "list@here.test", "you@dest.test", stdin="Subject: dropped\n\nHello.\n")
    assert done.returncode == 0, done
    return relay


def test_mail_of_the_maildrop_waits_for_a_server_and_is_never_sent_unexpanded(lab, server):
    server.maps = {"m": {"list@here.test": "TEMP no"}}
    sink = lab.sink()
    relay = _dropped(lab, server, sink, socketmap_timeout="200ms")
    relay.start()
    relay.wait_event("lookup", table="aliases", key="list@here.test", count=2)
    assert not sink.messages and not relay.events("queued")
    server.maps["m"] = {"list@here.test": "c@dest.test, inner@here.test", "inner@here.test": "d@dest.test"}
    assert _came(sink, 3) == ["c@dest.test", "d@dest.test", "you@dest.test"]
    wait_until(lambda: relay.wait_event("queued")["via"] == "maildrop", 60, "it to be queued")
    assert len(relay.events("queued")) == 1


def test_the_maildrop_is_left_while_a_server_is_asked(lab, server):
    """A relay that ends meanwhile has the mail at its next start."""
    server.maps = {"m": {"list@here.test": "c@dest.test"}}
    server.mood = lambda handler, text: (server.released.wait(), handler.wfile.write(netstring(text)))
    sink = lab.sink()
    relay = _dropped(lab, server, sink, socketmap_timeout="60s")
    relay.start()
    wait_until(lambda: server.asked, 60, "the question")
    assert relay.stop() == 0
    server.mood = None
    server.released.set()
    relay.start()
    assert _came(sink, 2) == ["c@dest.test", "you@dest.test"]


def test_a_filter_adds_an_alias_to_mail_of_the_maildrop_and_to_held_mail(lab, server):
    server.maps = {"m": {"list@here.test": "TEMP no"}}
    one, extra = _milter(lab, local="true")
    sink = lab.sink()
    config = Config(settings={"workers": 1, "socketmap_cache": "0s", "aliases": [server.table("m")]}, listeners={"smtp": {"milters": []}})
    config.extra = extra
    relay = lab.relay(config.route_all_to(sink.port))
    relay.wait_event("recover")
    relay.stop()
    assert relay.command("sendmail", "-f", "me@sender.test", "b@dest.test", stdin="Subject: dropped\n\nHello.\n").returncode == 0
    one.behave(ADDS)
    relay.start()
    relay.wait_event("lookup", table="aliases", key="list@here.test", count=2)
    assert not relay.events("queued")
    server.maps["m"]["list@here.test"] = "c@dest.test, d@dest.test"
    assert _came(sink, 2) == ["c@dest.test", "d@dest.test"]
    # One on hold passes it again.
    (ident,) = _hold(relay)
    server.maps["m"]["list@here.test"] = "TEMP no"
    assert relay.command("queue", "release", "--refilter", ident).returncode != 0
    assert "4.3.0" in relay.wait_event("refiltered", id=ident, result="held")["reason"]
    server.maps["m"]["list@here.test"] = "e@dest.test"
    assert relay.command("queue", "release", "--refilter", ident).returncode == 0
    assert _came(sink, 3) == ["c@dest.test", "d@dest.test", "e@dest.test"]


def _hold(relay):
    relay.config.settings["sender_access"] = [f"{relay.folder}/access"]
    with open(f"{relay.folder}/access", "w", encoding="ascii") as access:
        access.write("held@sender.test hold\n")
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send("held@sender.test", ["b@dest.test"])
    return [relay.wait_event("queued", **{"from": "held@sender.test"})["id"]]


def test_what_is_looked_at_without_a_session_asks_nobody(lab, server):
    """check finds nothing wrong, and route says what files say."""
    server.maps = {"m": {"list@here.test": "c@dest.test"}}
    relay = _relay(lab, server, lab.sink())
    checked = relay.command("check")
    assert checked.returncode == 0 and "socketmap" not in checked.stderr and "postmaster" not in checked.stderr, checked
    assert "c@dest.test" not in relay.command("route", "list@here.test").stdout
    assert not server.asked


@pytest.mark.parametrize("who", ["copy", "copy behind stages", "filter"])
@pytest.mark.parametrize("ends", ["relay", "client"])
def test_who_ends_while_a_server_is_asked_behind_the_data(lab, server, who, ends):
    """A relay that ends loses nothing it has said it has; a client that goes has its mail sent, as with filters."""
    server.maps = {"m": {"all@here.test": "j@dest.test", "list@here.test": "c@dest.test"}}
    one, extra = _milter(lab) if who == "filter" else (None, "")
    if one:
        one.behave(ADDS)
    if who == "copy behind stages":
        extra = 'archive { to = { "kept@dest.test" } }\n'
    sink = lab.sink()
    relay = _relay(lab, server, sink, extra=extra, socketmap_timeout="60s", **({} if one else {"always_bcc": "all@here.test"}))
    key = "list@here.test" if one else "all@here.test"
    server.mood = lambda handler, text: ((key in server.asked[-1] or None) and server.released.wait(), handler.wfile.write(netstring(text)))
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
        client.command("RCPT TO:<b@dest.test>", 250)
        client.command("DATA", 354)
        client.send(b"Subject: x\r\n\r\n.\r\n")
        wait_until(lambda: ("m", key) in server.asked, 60, "the question")
        if ends == "relay":
            assert relay.stop() == 0
            server.released.set()
            return
        client.reset()
        relay.wait_event("disconnect", reason="read: Connection reset by peer")
    server.released.set()
    if who == "filter":
        assert _came(sink, 1) == ["c@dest.test"]
    elif who == "copy":
        assert _came(sink, 2) == ["b@dest.test", "j@dest.test"]
    else:
        assert _came(sink, 3) == ["b@dest.test", "j@dest.test", "kept@dest.test"]
