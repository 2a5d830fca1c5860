# SPDX-License-Identifier: ISC
"""Tables that a server has: Sendmail's and Postfix's socketmap, from servers honest and not."""

import contextlib
import itertools
import subprocess
import threading
import time

import pytest

from lab import sasl
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.socketmap import SocketmapServer, netstring

OK = "250 2.1.5 Recipient ok"
AWAY = "451 4.3.0 A table cannot be asked for now, try again later"


@pytest.fixture(name="server", params=["unix", "inet"])
def _server(request, lab):
    """A server, not started, on either kind of socket."""
    server = SocketmapServer(path=f"{lab.folder('map')}/socket") if request.param == "unix" else SocketmapServer(port=free_port())
    lab.callback(server.stop)
    return server


@pytest.fixture(name="honest")
def _honest(lab):
    server = SocketmapServer(path=f"{lab.folder('map')}/socket").start()
    lab.callback(server.stop)
    return server


def _relay(lab, listener=None, **settings):
    config = Config(settings={"workers": 1, "socketmap_timeout": "60s", "socketmap_cache": "0s"} | settings)
    config.listeners["smtp"] = listener or {}
    return lab.relay(config.route_all_to(lab.sink().port))


def _said(relay, sender="a@sender.test", to="b@dest.test"):
    with relay.client() as client:
        client.greet("client.test")
        client.command(f"MAIL FROM:<{sender}>", 250)
        client.send(f"RCPT TO:<{to}>")
        return client.expect("").text


def test_a_server_says_who_comes_in(lab, server):
    server.start()
    server.maps = {"senders": {"bad@sender.test": "reject 554 5.7.0 not you", "other.test": "defer", ".low.test": "flow low"},
                   "clients": {"127.0.0.9": "reject"}, "names": {"liar.test": "reject"}, "to": {"nobody@dest.test": "reject 550 5.1.1 nobody"}}
    relay = _relay(lab, sender_access=[server.table("senders")], client_access=[server.table("clients")],
                   helo_access=[server.table("names")], recipient_access=[server.table("to")])
    assert _said(relay) == OK
    assert server.asked == [("clients", LOOPBACK), ("names", "client.test"), ("names", ".test"), ("senders", "a@sender.test"),
                            ("senders", "sender.test"), ("senders", ".test"), ("to", "b@dest.test"), ("to", "dest.test"), ("to", ".test")]
    assert _said(relay, "Bad@sender.test") == "554 5.7.0 not you"
    assert _said(relay, "x@other.test") == "450 4.7.1 access denied"
    assert _said(relay, to="Nobody@dest.test") == "550 5.1.1 nobody"
    assert _said(relay, sender="") == OK and ("senders", "<>") in server.asked
    assert server.connections == 1
    relay.send("x@very.low.test")
    assert relay.wait_event("queued", **{"from": "x@very.low.test"})["flow"] == "low"


def test_postfix_asks_the_same_server_the_same(lab, honest):
    """The lab's server is what Postfix takes for one."""
    postfix = lab.postfix()
    if "socketmap" not in postfix.command("postconf", "-m"):
        pytest.skip("this Postfix has no socketmap")
    honest.maps = {"m": {"a@x.test": "reject 550 5.7.1 no", "broken": "TEMP later"}}

    assert postfix.command("postmap", "-q", "a@x.test", honest.table("m")) == "reject 550 5.7.1 no\n"
    for key in ("none", "broken"):
        with pytest.raises(subprocess.CalledProcessError):
            postfix.command("postmap", "-q", key, honest.table("m"))
    assert honest.asked == [("m", "a@x.test"), ("m", "none"), ("m", "broken")]


def test_files_and_servers_together(lab, honest, tmp_path):
    """The most specific key first, of any table; for one key the tables in their order."""
    (tmp_path / "table").write_text("both@sender.test reject 550 5.7.1 file\nsender.test reject 550 5.7.1 domain of the file\n")
    honest.maps = {"m": {"both@sender.test": "reject 550 5.7.1 server", "own@sender.test": "accept"}}
    relay = _relay(lab, sender_access=[str(tmp_path / "table"), honest.table("m")])
    assert _said(relay, "both@sender.test") == "550 5.7.1 file"
    assert _said(relay, "own@sender.test") == OK
    assert _said(relay, "x@sender.test") == "550 5.7.1 domain of the file"


def test_answers_are_remembered_for_a_while_and_failures_are_not(lab, honest):
    honest.maps = {"m": {"sender.test": "TEMP not now"}}
    relay = _relay(lab, sender_access=[honest.table("m")], socketmap_cache="1h")
    assert _said(relay) == AWAY
    honest.maps["m"]["sender.test"] = "reject 550 5.7.1 no"
    assert _said(relay) == _said(relay) == "550 5.7.1 no"
    assert [key for _, key in honest.asked] == ["a@sender.test", "sender.test", "sender.test"]
    assert relay.command("reload").returncode == 0
    honest.maps = {}
    wait_until(lambda: _said(relay) == OK, 60, "what was known to be forgotten")


def test_a_server_that_is_away_and_comes(lab, server):
    """No mail is taken without its word, and none is refused for good."""
    relay = _relay(lab, sender_access=[server.table("m")])
    assert _said(relay) == AWAY
    relay.wait_event("condition", name="socketmap_away", state="on")
    relay.wait_event("reject", code="451", dsn="4.3.0", stage="RCPT")
    assert "socketmap_away" in relay.command("stats", "--json").stdout
    server.start()
    relay.wait_event("condition", name="socketmap_away", state="off")
    wait_until(lambda: _said(relay) == OK, 60, "the server to be asked")


def test_a_connection_that_was_closed_between_two_questions_is_made_again(lab, server):
    relay = _relay(lab, sender_access=[server.start().table("m")])
    for round_ in range(1, 4):
        assert _said(relay) == OK
        assert server.connections == round_
        server.hang_up()
    server.stop()
    server.start()
    wait_until(lambda: _said(relay) == OK, 60, "the server that was started anew to be asked")


def test_a_question_that_is_lost_with_its_connection_is_asked_again(lab, honest):
    """A server that hangs up on the second question of each connection, as one that was started anew does."""
    def write(handler, text):
        handler.asked = getattr(handler, "asked", 0) + 1
        if handler.asked == 2:
            handler.connection.shutdown(2)
        else:
            handler.wfile.write(netstring(text))

    honest.mood = write
    relay = _relay(lab, sender_access=[honest.table("m")])
    assert _said(relay) == _said(relay) == OK
    assert [key for _, key in honest.asked][:3] == ["a@sender.test", "sender.test", "sender.test"]


@pytest.mark.parametrize("mood", ["hangs", "nonsense", "too much", "half", "closes", "no action", "NUL", "unasked verb"])
def test_a_server_that_is_none(lab, honest, mood):
    """Each is 451 to the client; and none holds up a session that asks nobody."""
    def write(handler, _text):
        said = {"nonsense": b"HTTP/1.1 200 OK\r\n\r\n", "too much": b"100001:OK " + b"x" * 99998 + b",", "half": b"5:OK",
                "no action": netstring("OK dance"), "NUL": netstring("OK a\0b"), "unasked verb": netstring("WELL no")}
        if mood in said:
            handler.wfile.write(said[mood])
        if mood == "closes":
            handler.connection.shutdown(2)
        if mood in ("hangs", "half"):
            honest.released.wait()

    honest.mood = write
    relay = _relay(lab, sender_access=[honest.table("m")], socketmap_timeout="300ms")
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
        client.send("RCPT TO:<b@dest.test>")
        assert client.expect("").text == AWAY
        client.command("NOOP", 250)
    honest.mood = None
    wait_until(lambda: _said(relay) == OK, 60, "the server to be asked again")
    relay.wait_event("lookup", table="sender_access")


def test_other_sessions_of_the_thread_go_on_while_a_server_hangs(lab, honest):
    honest.mood = lambda handler, text: (honest.released.wait(), handler.wfile.write(netstring(text)))
    relay = _relay(lab, recipient_access=[honest.table("m")], socketmap_timeout="60s")
    with relay.client() as waiting, relay.client() as other:
        waiting.greet()
        waiting.command("MAIL FROM:<a@sender.test>", 250)
        waiting.send("RCPT TO:<b@dest.test>")
        wait_until(lambda: honest.asked, 60, "the question")
        other.greet()
        for _ in range(20):
            other.command("NOOP", 250)
        honest.released.set()
        assert waiting.expect("").text == OK


def test_a_late_answer_is_nobodys(lab, honest):
    """It comes on a connection that was left: the next question gets its own."""
    gate = threading.Event()

    def late(handler, _text):
        gate.wait()
        handler.wfile.write(netstring("OK reject 550 5.7.1 late"))

    honest.mood = late
    relay = _relay(lab, sender_access=[honest.table("m")], socketmap_timeout="200ms")
    assert _said(relay) == AWAY
    honest.mood = None
    gate.set()
    wait_until(lambda: _said(relay) == OK, 60, "the next answer")
    assert _said(relay) in (OK, AWAY)  # so little time has any answer here


def test_a_server_that_answers_twice_is_believed_once(lab, honest):
    honest.maps = {"m": {"bad@sender.test": "reject 550 5.7.1 no"}}
    honest.mood = lambda handler, text: handler.wfile.write(netstring(text) + netstring("OK reject 550 5.7.1 second"))
    relay = _relay(lab, sender_access=[honest.table("m")])
    assert _said(relay, "bad@sender.test") == "550 5.7.1 no"
    for _ in range(3):
        assert _said(relay) == OK
    assert relay.running()


def test_a_client_that_goes_while_a_server_is_asked(lab, honest):
    honest.mood = lambda handler, text: (honest.released.wait(), handler.wfile.write(netstring(text)))
    relay = _relay(lab, sender_access=[honest.table("m")], socketmap_timeout="60s")
    with relay.client() as client:
        client.greet()
        client.send("MAIL FROM:<a@sender.test>")
        wait_until(lambda: honest.asked, 60, "the question")
        client.reset()
        relay.wait_event("disconnect", reason="read: Connection reset by peer")
    honest.mood = None
    honest.released.set()
    assert _said(relay) == OK


@pytest.mark.parametrize("table", ["sender_access", "aliases"])
def test_nobody_waits_for_the_questions_of_clients_that_have_gone(lab, honest, table):
    """Four are asked, as many as there are connections; of those behind them only who is still there."""
    honest.mood = lambda handler, text: (honest.released.wait(), handler.wfile.write(netstring(text)))
    relay = _relay(lab, **{table: [honest.table("m")]})

    def ask(stack, who):
        client = stack.enter_context(relay.client())
        client.greet()
        if table == "aliases":
            client.command("MAIL FROM:<>", 250)
        client.send(f"RCPT TO:<{who}@own.test>" if table == "aliases" else f"MAIL FROM:<{who}@own.test>")
        return client

    with contextlib.ExitStack() as stack:
        for number in range(4):
            ask(stack, f"asked{number}")
        wait_until(lambda: len(honest.asked) == 4, 60, "four questions")
        for client in [ask(stack, f"gone{number}") for number in range(20)]:
            with relay.client() as behind:
                behind.greet()  # its worker has seen what was sent before
            client.reset()
        relay.wait_event("disconnect", reason="read: Connection reset by peer", count=20)
        there = ask(stack, "there")
        honest.released.set()
        there.expect(250)
    assert not [key for _, key in honest.asked if key.startswith("gone")]


def _asking(stack, relay, who):
    """Let a new client name this sender, and return it when its worker has seen that."""
    client = stack.enter_context(relay.client())
    client.greet()
    client.send(f"MAIL FROM:<{who}@own.test>")
    with relay.client() as behind:
        behind.greet()
    return client


def test_who_asks_what_is_asked_already_waits_for_that_answer(lab, honest):
    """A hundred sessions at once that have one question take no longer than one."""
    honest.mood = lambda handler, text: (honest.released.wait(), handler.wfile.write(netstring(text)))
    relay = _relay(lab, sender_access=[honest.table("m")])
    with contextlib.ExitStack() as stack:
        clients = [_asking(stack, relay, "same") for _ in range(30)]
        honest.released.set()
        for client in clients:
            client.expect(250)
    assert [key for _, key in honest.asked].count("same@own.test") == 1


def test_a_question_is_asked_while_anybody_waits_for_it(lab, honest):
    """Who asked it first goes, while it waits behind others; and who asks after a reload has an answer from after that."""
    honest.mood = lambda handler, text: (honest.released.wait(), handler.wfile.write(netstring(text)))
    relay = _relay(lab, sender_access=[honest.table("m")])
    with contextlib.ExitStack() as stack:
        asked = [_asking(stack, relay, "old"), *(_asking(stack, relay, number) for number in range(3))]
        wait_until(lambda: len(honest.asked) == 4, 60, "four questions")
        first, second, alone = (_asking(stack, relay, who) for who in ("both", "both", "gone"))
        first.reset()
        alone.reset()
        relay.wait_event("disconnect", reason="read: Connection reset by peer", count=2)
        assert relay.command("reload").returncode == 0
        later = _asking(stack, relay, "old")
        honest.released.set()
        for client in [*asked, second, later]:
            client.expect(250)
    keys = [key for _, key in honest.asked]
    assert keys.count("both@own.test") == 1 and keys.count("gone@own.test") == 0 and keys.count("old@own.test") == 2


def test_a_server_that_is_asked_more_than_it_can_answer_answers_what_it_can(lab, honest):
    """Some 40 a second, of 120 who have three questions each, and begin again: each would wait for nine seconds, and may for one."""
    honest.mood = lambda handler, text: (time.sleep(0.1), handler.wfile.write(netstring(text)))
    relay = _relay(lab, {"error_limit": 0, "junk_command_limit": 0}, sender_access=[honest.table("m")], socketmap_timeout="1s")
    said, enough = [], threading.Event()

    def ask_on(number):
        with relay.client() as client:
            client.greet()
            for turn in itertools.count():
                if enough.is_set():
                    return
                client.command(f"MAIL FROM:<a@{number}x{turn}.test>", 250)
                client.send("RCPT TO:<b@dest.test>")
                said.append(client.expect("").text)
                client.command("RSET", 250)

    threads = [threading.Thread(target=ask_on, args=[number]) for number in range(120)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: said.count(OK) >= 20, 60, "20 of them to have all three answers")
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert set(said) == {OK, AWAY}


def test_a_server_says_whose_a_sender_is(lab, honest):
    users = lab.folder("users") / "users"
    assert sasl.passwd(users, "ann", "secret").returncode == 0
    honest.maps = {"owners": {"ann@sender.test": "ann, bert", "boss@sender.test": "boss"}}
    config = Config(settings={"workers": 1, "socketmap_cache": "0s", "sender_logins": [honest.table("owners")], "networks": ["10.0.0.0/8"]},
                    listeners={"smtp": {"auth": True}}).route_all_to(lab.sink().port)
    config.auth.update({"file": str(users), "require_tls": False})
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        assert sasl.say_plain(client, "ann", "secret").code == 235
        client.command("MAIL FROM:<ann@sender.test>", 250)
        client.command("RSET", 250)
        client.command("MAIL FROM:<>", 250)
        client.command("RSET", 250)
        client.command("MAIL FROM:<boss@sender.test>", 553)
        honest.stop()
        client.command("MAIL FROM:<ann@sender.test>", 451)


def test_who_owns_the_sender_by_a_servers_word_is_signed_as_that(lab, honest, tmp_path):
    """What a server alone knows of an address that is only in From is not asked."""
    users, key, sink = lab.folder("users") / "users", tmp_path / "key.pem", lab.sink()
    assert sasl.passwd(users, "ann", "secret").returncode == 0
    honest.maps = {"owners": {"ann@sender.test": "ann", "two@sender.test": "ann"}}
    config = Config(settings={"sender_logins": [honest.table("owners")]}, listeners={"smtp": {"auth": True}}).route_all_to(sink.port)
    config.auth.update({"file": str(users), "require_tls": False})
    relay = lab.relay(config, start=False)
    assert relay.command("dkim", "keygen", "sender.test", "s", "-o", str(key)).returncode == 0
    relay.config.extra = f'dkim "sender.test" {{ selector = "s"  key = "{key}" }}\n'
    relay.write_config()
    relay.start()
    for author in ("ann", "two"):
        with relay.client() as client:
            client.greet()
            assert sasl.say_plain(client, "ann", "secret").code == 235
            client.send_mail("ann@sender.test", ["b@dest.test"], f"From: {author}@sender.test\r\n\r\ntext\r\n".encode())
    own, other = sorted(sink.wait_messages(2), key=lambda m: b"From: two@" in m.content)
    assert b"DKIM-Signature: " in own.content and b"DKIM-Signature: " not in other.content


def test_a_table_that_no_server_may_have_is_an_error(lab, honest, tmp_path):
    relay = lab.relay(Config(settings={
        "routes": [honest.table("m")], "canonical": [honest.table("m")], "dkim_keys": [honest.table("m")], "sender_logins": [honest.table("m")], "sender_header": "reject",
        "client_access": ["socketmap:inet:maps.example.org:9000:m", "socketmap:unix:m", f"socketmap:unix:{tmp_path}/x:"]}), start=False)
    said = relay.command("check").stderr
    assert said.count("a socketmap is not for this table: ") == 3 and "name files" in said and "routes: " in said and "canonical: " in said
    assert said.count("is not socketmap:unix:/PATH:NAME") == 3
    assert "sender_header = reject needs files in sender_logins" in said


def _rcpt_texts(relay, *recipients, sender="a@sender.test"):
    with relay.client() as client:
        client.greet("client.test")
        client.command(f"MAIL FROM:<{sender}>", 250)
        client.send("".join(f"RCPT TO:<{to}>\r\n" for to in recipients).encode())
        return [client.read_reply().text for _ in recipients]


def _relay_of_recipients(lab, tables, **settings):
    sink = lab.sink()
    config = Config(settings={"workers": 1, "socketmap_timeout": "60s", "socketmap_cache": "0s"} | settings).route_all_to(sink.port)
    config.routes["dest.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"], "recipients": tables}
    return lab.relay(config)


def test_a_server_knows_the_recipients_of_a_route(lab, honest, tmp_path):
    """Files are looked at first, and who is in them is asked of nobody."""
    (tmp_path / "valid").write_text("filed@dest.test\n")
    honest.maps = {"m": {"served@dest.test": "x"}, "other": {"nobody@dest.test": "x"}}
    relay = _relay_of_recipients(lab, [str(tmp_path / "valid"), honest.table("m")])
    assert _rcpt_texts(relay, "filed@dest.test", "Served@Dest.test", "nobody@dest.test", "x@free.test") == [
        OK, OK, "550 5.1.1 User unknown", OK]
    assert honest.asked == [("m", "served@dest.test"), ("m", "nobody@dest.test"), ("m", "dest.test"), ("m", ".test")]
    assert 'known_refusals_total{reason="recipients"} 1' in " ".join(relay.command("stats", "--all").stdout.split())
    # Nobody is asked here: what it would say is not known.
    assert "refused" not in relay.command("route", "nobody@dest.test").stdout
    relay.send(recipients=["served@dest.test"])
    relay.wait_event("sent", to="served@dest.test")


@pytest.mark.parametrize("mood", ["hangs", "too much", "twice", "late", "gone", "TEMP"])
def test_recipients_of_a_server_that_is_none(lab, honest, mood):
    """451 for whom no file knows, never 550; and it is asked again when it is well."""
    gate = threading.Event()

    def write(handler, text):
        if mood == "hangs":
            honest.released.wait()
        elif mood == "too much":
            handler.wfile.write(b"100001:OK " + b"x" * 99998 + b",")
        elif mood == "twice":
            handler.wfile.write(netstring(text) + netstring("OK second"))
        elif mood == "late":
            gate.wait()
            handler.wfile.write(netstring("OK late"))
        elif mood == "gone":
            handler.connection.shutdown(2)
        else:
            handler.wfile.write(netstring("TEMP no directory"))

    honest.maps = {"m": {"served@dest.test": "x"}}
    honest.mood = write
    relay = _relay_of_recipients(lab, [honest.table("m")], socketmap_timeout="300ms" if mood in ("hangs", "late") else "60s")
    wanted = "550 5.1.1 User unknown" if mood == "twice" else AWAY
    assert _rcpt_texts(relay, "nobody@dest.test") == [wanted]
    honest.mood = None
    gate.set()
    wait_until(lambda: _rcpt_texts(relay, "served@dest.test", "nobody@dest.test") == [OK, "550 5.1.1 User unknown"], 60, "the server to be asked again")
    assert relay.running()


def test_a_reload_concludes_nothing_for_a_session_that_waits_for_recipients(lab, honest, tmp_path):
    """The tables that qmgr knew of are gone with a reload: nothing is concluded from that."""
    (tmp_path / "valid").write_text("other@dest.test\n")
    honest.mood = lambda handler, text: (honest.released.wait(), handler.wfile.write(netstring(text)))
    relay = _relay_of_recipients(lab, [honest.table("m"), str(tmp_path / "valid")], socketmap_timeout="60s")
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
        client.send("RCPT TO:<served@dest.test>")
        wait_until(lambda: honest.asked, 60, "the question")
        (tmp_path / "valid").write_text("served@dest.test\n")
        relay.config.routes["dest.test"]["recipients"] = [str(tmp_path / "valid")]
        relay.write_config()
        assert relay.command("reload").returncode == 0
        assert client.expect("").text == AWAY
        client.command("RCPT TO:<served@dest.test>", 250)


def _submission(lab, **settings):
    users, sink = lab.folder("users") / "users", lab.sink()
    for login in ("ann", "bert"):
        assert sasl.passwd(users, login, "secret").returncode == 0
    config = Config(settings={"workers": 1, "socketmap_timeout": "60s", "socketmap_cache": "0s"} | settings,
                    listeners={"smtp": {"auth": True}}).route_all_to(sink.port)
    config.auth.update({"file": str(users), "require_tls": False})
    return lab.relay(config)


def _login(client, login):
    client.greet()
    assert sasl.say_plain(client, login, "secret").code == 235


def test_a_server_names_flows(lab, honest, tmp_path):
    """The same order as of files: the login, the sender, the client; a field goes before."""
    (tmp_path / "flows").write_text("b@sender.test from_file\n* rest\n")
    honest.maps = {"f": {"login:ann": "of_ann", "a@sender.test": "of_sender", "sender.test": "of_domain", "127.0.0.1": "of_client"}}
    relay = _submission(lab, flows=[str(tmp_path / "flows"), honest.table("f")], flow_header="X-Flow")
    for sender, flow in (("a@sender.test", "of_sender"), ("b@sender.test", "from_file"), ("c@sender.test", "of_domain"), ("d@other.test", "rest")):
        relay.send(sender)
        assert relay.wait_event("queued", **{"from": sender})["flow"] == flow
    relay.send("")
    assert relay.wait_event("queued", **{"from": ""})["flow"] == "of_client"
    with relay.client() as client:
        _login(client, "ann")
        client.send_mail("e@sender.test", ["b@dest.test"], b"Subject: x\r\n\r\nx\r\n")
        client.send_mail("f@sender.test", ["b@dest.test"], b"X-Flow: said\r\n\r\nx\r\n")
    assert relay.wait_event("queued", **{"from": "e@sender.test"})["flow"] == "of_ann"
    assert relay.wait_event("queued", **{"from": "f@sender.test"})["flow"] == "said"


@pytest.mark.parametrize("mood", ["hangs", "too much", "gone", "no flow"])
def test_flows_of_a_server_that_is_none(lab, honest, mood):
    """No message gets a flow by guess."""
    def write(handler, _text):
        if mood == "hangs":
            honest.released.wait()
        elif mood == "too much":
            handler.wfile.write(b"100001:OK " + b"x" * 99998 + b",")
        elif mood == "gone":
            handler.connection.shutdown(2)
        else:
            handler.wfile.write(netstring("OK no such name!"))

    honest.mood = write
    relay = _relay(lab, flows=[honest.table("f")], socketmap_timeout="300ms")
    assert _said(relay) == AWAY
    relay.wait_event("lookup", table="flows")
    honest.mood = None
    wait_until(lambda: _said(relay) == OK, 60, "the server to be asked again")


def test_a_server_has_the_limits_of_logins(lab, honest):
    honest.maps = {"l": {"ann": "2/h"}}
    relay = _submission(lab, limits=[honest.table("l")])

    def mail(login):
        with relay.client() as client:
            _login(client, login)
            return client.command("MAIL FROM:<x@sender.test>", "").code

    assert [mail("ann") for _ in range(3)] == [250, 250, 450]
    assert [mail("bert") for _ in range(3)] == [250] * 3
    shown = relay.command("user", "list", "--json").stdout
    assert '"ann"' in shown
    honest.maps = {"l": {"ann": "0/h", "bert": "many"}}
    assert mail("ann") == 250
    assert mail("bert") == 451
    relay.wait_event("lookup", table="limits", key="bert")
    honest.maps = {}
    assert [mail("ann") for _ in range(4)] == [250] * 4
    honest.stop()
    assert mail("ann") == 451
    relay.wait_event("reject", code="451", dsn="4.3.0", stage="MAIL")


def test_a_server_has_limits_of_recipients(lab, honest):
    honest.maps = {"l": {"ann": "0/h 2/h"}}
    relay = _submission(lab, limits=[honest.table("l")])
    with relay.client() as client:
        _login(client, "ann")
        client.command("MAIL FROM:<x@sender.test>", 250)
        assert [client.command(f"RCPT TO:<{i}@dest.test>", "").code for i in range(3)] == [250, 250, 450]


@pytest.mark.parametrize("table", ["recipients", "flows", "limits"])
def test_a_client_that_goes_while_it_is_asked_for_any_of_these(lab, honest, table):
    """And a relay that stops meanwhile waits for nobody."""
    honest.mood = lambda handler, text: (honest.released.wait(), handler.wfile.write(netstring(text)))
    users, sink = lab.folder("users") / "users", lab.sink()
    assert sasl.passwd(users, "ann", "secret").returncode == 0
    named = {} if table == "recipients" else {table: [honest.table("m")]}
    config = Config(settings={"workers": 1, "socketmap_timeout": "60s", "socketmap_cache": "0s"} | named,
                    listeners={"smtp": {"auth": True}}).route_all_to(sink.port)
    config.auth.update({"file": str(users), "require_tls": False})
    if table == "recipients":
        config.routes["dest.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"], "recipients": [honest.table("m")]}
    relay = lab.relay(config)

    def ask(client):
        _login(client, "ann")
        client.send(b"MAIL FROM:<a@sender.test>\r\nRCPT TO:<b@dest.test>\r\n")
        wait_until(lambda: honest.asked, 60, "the question, for whoever has it")
        with relay.client() as behind:
            behind.greet()

    for _ in range(2):
        with relay.client() as client:
            ask(client)
            client.reset()
    wait_until(lambda: len(relay.events("disconnect", reason="read: Connection reset by peer")) == 2, 60, "both to be gone")
    with relay.client() as client:
        ask(client)
        relay.stop()
    assert len(honest.asked) == 1
    honest.released.set()
    honest.mood = None
    relay.start()
    assert _said(relay) == ("550 5.1.1 User unknown" if table == "recipients" else OK)
