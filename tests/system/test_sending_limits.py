# SPDX-License-Identifier: ISC
"""How much a client or a sender may send, and what becomes of what is beyond."""

import json
import pathlib
import subprocess
import urllib.request

import pytest

from lab import sasl
from lab.behaviour import Rule
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until


def _relay(lab, limits):
    sink = lab.sink()
    config = Config(extra=limits)
    return sink, lab.relay(config.route_all_to(sink.port))


def _mail(client, sender="from@sender.test", code=250):
    return client.command(f"MAIL FROM:<{sender}>", code).lines[0]


def test_messages_and_recipients_beyond_a_limit_are_put_off_with_the_time(lab):
    sink, relay = _relay(lab, 'limit "client" { messages = "3/h" recipients = "4/h" }')
    with relay.client() as client:
        client.greet()
        _mail(client)
        for _ in range(4):
            client.command("RCPT TO:<to@dest.test>")
        # More than error_limit of them: a recipient that is to come again is no error.
        for _ in range(30):
            text = client.command("RCPT TO:<more@dest.test>", 450).lines[0]
        assert text.startswith("4.7.1 Too many recipients for this client: try again in 1")
        assert text.endswith("minutes")
        client.command("DATA", 354)
        client.send(b"\r\n.\r\n")
        client.expect(250)
        _mail(client)
        client.command("RSET")
        # Pipelined behind the wait: each has its own answer, in order.
        client.send(b"MAIL FROM:<a@sender.test>\r\nRSET\r\nMAIL FROM:<b@sender.test>\r\nRCPT TO:<to@dest.test>\r\n")
        assert [client.expect(code).code for code in (250, 250, 450, 503)] == [250, 250, 450, 503]
    with relay.client() as client:
        client.greet()
        assert _mail(client, code=450).startswith("4.7.1 Too many messages for this client: try again in 2")
    sink.wait_messages(1)
    relay.wait_event("limit", client="127.0.0.1", action="defer", limit="recipients 4/h")
    counted = relay.command("stats").stdout
    assert 'limits_total{by="client",action="defer"} 32' in counted


def test_reject_and_hold_by_sender(lab):
    sink, relay = _relay(lab, """
limit "sender" { messages = "1/h" action = "hold" }
limit "client" { messages = "4/h" action = "reject" }
""")
    for sender in ("a@sender.test", "A@sender.test", "b@sender.test"):
        relay.send(sender)
    sink.wait_messages(2)
    relay.wait_event("limit", sender="a@sender.test", action="hold")
    assert "A@sender.test" in relay.command("queue", "list", "--queue", "hold").stdout
    with relay.client() as client:
        client.greet()
        _mail(client, "")
        client.command("RSET")
        assert _mail(client, "c@sender.test", 550).startswith("5.7.1 Too many messages for this client")
    # A reload makes room at once.
    relay.config.extra = 'limit "client" { messages = "1000/s" action = "reject" }'
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send("d@sender.test")
    sink.wait_messages(3)


def test_what_is_refused_later_counts_and_what_is_refused_before_does_not(lab, tmp_path):
    (tmp_path / "recipients").write_text("no@dest.test reject\n")
    (tmp_path / "senders").write_text("banned@sender.test reject\n")
    config = Config(
        {"recipient_access": [str(tmp_path / "recipients")], "sender_access": [str(tmp_path / "senders")]},
        extra='limit "client" { messages = "2/h"  recipients = "3/h" }').route_all_to(lab.sink().port)
    config.routes["gone.test"] = {"error": "5.1.1 nobody"}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        for _ in range(3):
            _mail(client, "banned@sender.test")
            client.command("RCPT TO:<to@dest.test>", 550)
            client.command("RSET")
        _mail(client)
        for to, code in ("a@gone.test", 550), ("no@dest.test", 550), ("to@[127.0.0.1]", 5), ("to@dest.test", 250), ("to@dest.test", 450):
            client.command(f"RCPT TO:<{to}>", code)


def test_a_recipient_beyond_a_limit_that_is_not_taken_holds_nothing(lab):
    sink = lab.sink()
    config = Config(extra='limit "client" { recipients = "1/h" action = "hold" }').route_all_to(sink.port)
    config.routes["gone.test"] = {"error": "5.1.1 nobody"}
    relay = lab.relay(config)
    for first, second, held in ("a@dest.test", "b@gone.test", 0), ("c@gone.test", "d@dest.test", 1):
        with relay.client() as client:
            client.greet()
            _mail(client)
            for to in first, second:
                client.command(f"RCPT TO:<{to}>", 550 if "gone" in to else 250)
            client.command("DATA", 354)
            client.send(b"text\r\n.\r\n")
            client.expect(250)
        assert relay.command("queue", "list", "--queue", "hold", "--json").stdout.count("\n") == held
    assert [message.recipients for message in sink.wait_messages(1)] == [["a@dest.test"]]
    assert len(relay.wait_events("limit", action="hold", count=3)) == 3


@pytest.mark.parametrize("action", ["defer", "reject", "hold"])
def test_a_stranger_uses_up_nobodys_limit(lab, action):
    sink = lab.sink()
    config = Config(extra=f'limit "sender" {{ messages = "2/h"  recipients = "2/h"  action = "{action}" }}')
    config.settings["postmaster"] = "postmaster@dest.test"
    config.listeners = {"own": {}, "strange": {"networks": ["10.0.0.0/8"]}}
    relay = lab.relay(config.route_all_to(sink.port))
    with relay.client("strange") as stranger:
        stranger.greet()
        for to, code in ("owner@dest.test", 550), ("postmaster", 250):
            for _ in range(5):
                _mail(stranger, "boss@own.test")
                stranger.command(f"RCPT TO:<{to}>", code)
                stranger.command("RSET")
        stranger.send_mail("boss@own.test", ["postmaster"])
    with relay.client("own") as own:
        own.greet()
        own.send_mail("boss@own.test", ["b@dest.test"])
        own.send_mail("boss@own.test", ["b@dest.test"])
        own.send("MAIL FROM:<boss@own.test>")  # the limit is there, for who may send
        own.expect({"defer": 450, "reject": 550, "hold": 250}[action])
    relay.wait_event("limit", sender="boss@own.test", action=action)
    assert len(relay.events("limit")) == 1


def test_suspended_logins_are_remembered(lab):
    _, relay = _relay(lab, "")
    assert relay.command("user").stdout == ""
    assert relay.command("user", "show", "eve").returncode == 1
    assert relay.command("user", "suspend", "eve").stdout == "eve suspended, though nobody of that name was seen\n"
    assert relay.command("user", "suspend").returncode == 2
    relay.kill()
    relay.start()
    assert relay.command("user", "list").stdout == "eve suspended messages=0 recipients=0 refused=0 failures=0 yesterday=0\n"
    assert '"suspended":true' in relay.command("user", "list", "--json").stdout
    assert relay.command("user", "resume", "eve").returncode == 0
    assert relay.command("user", "resume", "eve").returncode == 1
    relay.restart()
    assert relay.command("user", "list").stdout == ""


@pytest.mark.parametrize("fault", [
    'limit "all" { messages = "1/h" }', 'limit "login" { messages = "many" }',
    'limit "login" { }\nlimit "login" { }', 'limit "login" { action = "drop" }'])
def test_faults_in_limits_are_found(lab, fault):
    relay = lab.relay(Config(extra=fault), start=False)
    found = relay.command("check")
    assert found.returncode == 1
    assert ":" in found.stderr


def _submission(lab):
    """Return a relay with two logins, and the sink behind it."""
    users = lab.folder("users") / "users"
    for login in ("ann", "bob"):
        assert sasl.passwd(users, login, "secret").returncode == 0
    config = Config({"networks": ["10.0.0.0/8"]}, listeners={"smtp": {"tls": "none", "auth": True}})
    config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"], "failure_delay": "0s"})
    config.extra = 'limit "login" { messages = "2/h" recipients = "10/h" }'
    sink = lab.sink()
    return sink, lab.relay(config.route_all_to(sink.port))


@pytest.fixture(scope="module")
def submission(module_lab):
    return _submission(module_lab)


def _login(client, login, password="secret", code=235, greet=True):
    if greet:
        client.greet()
    client.command(f"AUTH PLAIN {sasl.plain(login, password)}", code)


def test_what_a_login_sent_is_shown_and_limited(submission):
    sink, relay = submission
    with relay.client() as client:
        _login(client, "ann")
        client.send_mail("from@sender.test", ["a@dest.test", "b@dest.test"], b"To: you\r\n\r\nhello\r\n")
        content = sink.wait_messages(1)[0].content
        # RFC 6409 8: who has logged in gets what is missing.
        assert b"\nDate: " in content and b"\nMessage-ID: <" in content and b"\nFrom: <from@sender.test>" in content
        _mail(client)
        client.command("RSET")
        assert _mail(client, code=450).startswith("4.7.1 Too many messages for this login: try again in")
    with relay.client() as client:
        _login(client, "ann", "wrong", 535)
        _login(client, "nobody", "wrong", 535, greet=False)
        _login(client, "bob", greet=False)
        _mail(client)
    relay.wait_event("limit", login="ann", action="defer", limit="messages 2/h")
    line = ("ann active messages=1 recipients=2 messages_left=0 recipients_left=8 refused=1 failures=1 yesterday=0",
            "bob active messages=0 recipients=0 messages_left=1 recipients_left=10 refused=0 failures=0 yesterday=0")
    wait_until(lambda: relay.command("user").stdout.splitlines() == list(line), 60, "what was counted")
    assert "2/h" in relay.command("user", "show", "ann").stdout
    assert relay.command("user", "reset", "Ann").returncode == 0
    with relay.client() as client:
        _login(client, "ann")
        _mail(client)
    wait_until(lambda: "login_messages{login=\"bob\"}" not in relay.command("stats").stdout, 60, "the busiest logins")


def _user(relay, login):
    return json.loads(relay.command("user", "show", login, "--json").stdout)


def test_wrong_passwords_are_shown_of_who_has_logged_in_and_sent_nothing(lab):
    _, relay = _submission(lab)
    with relay.client() as client:
        _login(client, "ann")
    with relay.client() as client:
        _login(client, "ann", "wrong", 535)
        _login(client, "nobody", "wrong", 535, greet=False)
    line = "ann active messages=0 recipients=0 messages_left=2 recipients_left=10 refused=0 failures=1 yesterday=0\n"
    wait_until(lambda: relay.command("user").stdout == line, 60, "the failure")


def test_what_a_login_sent_is_known_after_a_restart(submission):
    """Also after one that nobody was asked about, up to what was written ten seconds before; a damaged file costs what was in it, no more."""
    _, relay = submission
    relay.command("user", "reset", "bob")
    with relay.client() as client:
        _login(client, "bob")
        _mail(client)
        client.command("RSET")
        client.send_mail("x@one.test", ["b@dest.test"])
    wait_until(lambda: _user(relay, "bob")["recipients"] == 1, what="it was counted")
    kept = pathlib.Path(relay.spool) / "logins"
    wait_until(lambda: kept.exists() and b" 1 1 0 0 " in kept.read_bytes(), 60, "it was written")
    relay.kill()
    relay.start()
    bob = _user(relay, "bob")
    assert (bob["messages"], bob["recipients"], bob["refused"], bob["yesterday"]["messages"]) == (1, 1, 0, 0)
    with relay.client() as client:
        _login(client, "bob")
        client.send_mail("x@one.test", ["b@dest.test", "c@dest.test"])
    relay.restart()
    assert (_user(relay, "bob")["messages"], _user(relay, "bob")["recipients"]) == (2, 3)
    assert "today 2 messages, 3 recipients; yesterday 0 messages" in relay.command("user", "show", "bob").stdout
    assert _user(relay, "bob")["queued"] == 0
    relay.command("flow", "suspend", "bob")
    with relay.client() as client:
        relay.command("user", "reset", "bob")
        _login(client, "bob")
        client.send_mail("x@one.test", ["b@dest.test"])
    wait_until(lambda: _user(relay, "bob")["queued"] == 1, what="it is in the queue")
    assert "\nqueue:      1 messages\n" in relay.command("user", "show", "bob").stdout
    relay.command("queue", "delete", "--login", "bob")
    relay.command("flow", "resume", "bob")
    relay.stop()
    kept.write_bytes(kept.read_bytes().replace(b"bob", b"bab"))
    relay.start()
    assert relay.command("user", "show", "bob").returncode == 1
    assert "logins.bad" in relay.wait_event("logins")["reason"]


def test_a_suspended_login_sends_nothing_even_in_a_session_that_is_open(submission):
    _, relay = submission
    with relay.client() as client:
        _login(client, "bob")
        assert relay.command("user", "suspend", "bbo").stdout == "bbo suspended, though nobody of that name was seen, or is in the users' file\n"
        assert relay.command("user", "suspend", "bob").stdout == "bob suspended\n"
        assert _mail(client, code=550).startswith("5.7.13 This login is suspended")
        assert relay.command("user", "resume", "bob").returncode == 0
        assert relay.command("user", "reset", "bob").returncode == 0
        _mail(client)


def test_the_mail_of_a_suspended_login_is_held_however_its_name_is_written(lab):
    """What is to be done where a password was stolen: the login has one spelling in the queue, and any on the command line."""
    users, http = lab.folder("users") / "users", free_port()
    assert sasl.passwd(users, "ann", "secret").returncode == 0
    config = Config({"http": f"{LOOPBACK}:{http}"}, queue={"minimal_backoff_time": "1h"}, listeners={"smtp": {"auth": True}})
    config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
    relay = lab.relay(config.route_all_to(lab.sink(Rule("rcpt", "451 4.3.0 come again")).port))
    with relay.client() as client:
        _login(client, "Ann")
        client.send_mail("ann@sender.test", ["to@dest.test"])
    relay.wait_event("deferred")
    assert relay.command("user", "suspend", "ANN").stdout == "ann suspended\n"
    for login, found in (("ann", 1), ("Ann", 1), ("anna", 0)):
        assert len(relay.command("queue", "list", "--json", "--login", login).stdout.splitlines()) == found
        with urllib.request.urlopen(f"http://{LOOPBACK}:{http}/api/search?login={login}", timeout=60) as reply:
            assert json.loads(reply.read())["found"] == found, login
    assert relay.command("queue", "hold", "--login", "Ann").stdout == "1 message held\n"


def _by_login(lab, rows, extra=""):
    folder = lab.folder("limits")
    users, table = folder / "users", folder / "limits"
    for login in ("ann", "bob", "erp"):
        assert sasl.passwd(users, login, "secret").returncode == 0
    table.write_text(rows, encoding="utf-8")
    sink = lab.sink()
    config = Config({"limits": [str(table)]}, extra=extra).route_all_to(sink.port)
    config.listeners = {"open": {"auth": "yes"}}
    config.auth.update({"file": str(users), "require_tls": False, "mechanisms": ["PLAIN"]})
    return table, lab.relay(config)


def _send_as(relay, login, times, code=250):
    with relay.client() as client:
        client.greet()
        client.command(f"AUTH PLAIN {sasl.plain(login, 'secret')}", 235)
        for _ in range(times):
            _mail(client)
            client.command("RSET")
        return _mail(client, code=code)


def test_each_login_has_the_limit_that_a_table_says(lab):
    table, relay = _by_login(lab, "ann 2/h 3/h\nerp 5/h\n", 'limit "login" { messages = "1/h" recipients = "9/h" action = "reject" }')
    assert "Too many messages for this login" in _send_as(relay, "ann", 2, 550)
    assert "Too many messages for this login" in _send_as(relay, "bob", 1, 550)
    shown = relay.command("user", "show", "ann").stdout
    assert '"2/h"' in shown and '"3/h"' in shown
    assert '"5/h"' in relay.command("user", "show", "erp").stdout and '"9/h"' in relay.command("user", "show", "erp").stdout
    table.write_text("erp 4/h\n", encoding="utf-8")
    assert relay.command("reload").returncode == 0
    assert "Too many messages for this login" in _send_as(relay, "erp", 4, 550)
    assert '"1/h"' in relay.command("user", "show", "ann").stdout


def test_a_table_of_limits_without_a_section_puts_off_and_may_be_cdb(lab):
    table, relay = _by_login(lab, "ann 1/h\n")
    assert _send_as(relay, "ann", 1, 450).startswith("4.7.1 Too many messages for this login: try again in")
    _send_as(relay, "bob", 5)
    shown = relay.command("user", "show", "ann").stdout
    assert '"1/h"' in shown
    made = table.with_suffix(".cdb")
    subprocess.run(["cdb", "-c", "-m", made, "-"], check=True, text=True, input="bob 2/h\n")
    path = pathlib.Path(relay.config_path)
    path.write_text(path.read_text(encoding="utf-8").replace(f'"{table}"', f'"{made}"'), encoding="utf-8")
    assert relay.command("reload").returncode == 0
    assert '"2/h"' in relay.command("user", "show", "bob").stdout
    _send_as(relay, "ann", 3)
    _send_as(relay, "bob", 0)


def test_a_bad_row_of_limits_is_said_with_its_line_and_changes_nothing(lab):
    table, relay = _by_login(lab, "ann 1/h\n")
    for row, why in (("bob many", "must be a rate"), ("bob", ""), ("bob 1/h 2/h 3/h", "more than a rate")):
        table.write_text(f"ann 5/h\n{row}\n", encoding="utf-8")
        checked = relay.command("check")
        assert checked.returncode != 0 and f"{table}:2: " in checked.stderr + checked.stdout and why in checked.stderr + checked.stdout
        assert relay.command("reload").returncode != 0
    _send_as(relay, "ann", 1, 450)
    assert '"1/h"' in relay.command("user", "show", "ann").stdout
    table.write_text("ann 5/h\nBob 1/h\n", encoding="utf-8")
    assert relay.command("check").returncode == 0  # keys are compared in lower case


def test_the_limit_of_a_login_that_was_not_seen_is_shown(lab):
    _, relay = _by_login(lab, "ann 1/h\n")
    assert '"1/h"' in relay.command("user", "show", "ann").stdout
    assert relay.command("user", "show", "bob").returncode == 1
