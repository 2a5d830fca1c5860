# SPDX-License-Identifier: ISC
"""Logging in, with Dovecot behind it: a real one, and some that are none."""

import base64
import re
import threading

import pytest

from lab import received, sasl
from lab.config import Config
from lab.net import free_port

PASSWORD = "correct horse"
USERS = [
    f"alice:{{PLAIN}}{PASSWORD}",
    f"gone:{{PLAIN}}{PASSWORD}::::::nologin=y",
]
AWAY = "454 4.7.0 Temporary authentication failure, try again later"
WRONG = "535 5.7.8 Authentication failed: wrong name or password"
MECHANISMS = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN", "LOGIN", "XOAUTH2"]


def _config(where, port, **auth):
    config = Config({"networks": ["10.0.0.0/8"], "workers": 1}).route_all_to(port)
    config.listeners["smtp"] = {"auth": True, "error_limit": 0}
    settings = {"dovecot": where, "require_tls": False, "mechanisms": MECHANISMS, "timeout": "20s",
                "failure_delay": "1ms", "failure_limit": 0}
    config.auth.update(settings | auth)
    return config


@pytest.fixture(scope="module")
def sink(module_lab):
    return module_lab.sink()


@pytest.fixture(scope="module")
def dovecot(module_lab):
    return module_lab.dovecot(USERS)


@pytest.fixture(scope="module", params=["socket", "port"])
def relay(request, module_lab, sink, dovecot):
    where = dovecot.socket if request.param == "socket" else f"inet:127.0.0.1:{dovecot.port}"
    relay = module_lab.relay(_config(where, sink.port))
    relay.wait_event("dovecot", state="ready")
    return relay


def _greeted(relay):
    client = relay.client()
    client.greet()
    return client


def _plain(relay, login="alice", password=PASSWORD):
    with _greeted(relay) as client:
        return sasl.say_plain(client, login, password)


def test_what_dovecot_can_is_offered(relay):
    with relay.client() as client:
        lines = client.greet().lines
    assert "AUTH SCRAM-SHA-256 SCRAM-SHA-1 PLAIN LOGIN" in lines


@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN", "SCRAM-SHA-1", "SCRAM-SHA-256"])
def test_each_mechanism_is_passed_on(relay, mechanism):
    def say(client, login, password):
        if mechanism == "PLAIN":
            return sasl.say_plain(client, login, password)
        if mechanism == "LOGIN":
            return sasl.say_login(client, login, password)
        return sasl.say_scram(client, mechanism, login, password)

    with _greeted(relay) as client:
        assert say(client, "alice", "wrong").text == WRONG
        assert say(client, "nobody", "wrong").text == WRONG
        assert say(client, "alice", PASSWORD).code == 235
    relay.wait_event("auth", mechanism=mechanism, result="ok")
    result = [event["result"] for event in relay.events("auth", mechanism=mechanism)]
    assert result[-3:] == ["failed", "failed", "ok"]


def test_the_login_is_as_dovecot_says(relay, sink):
    before = len(sink.messages)
    with _greeted(relay) as client:
        assert sasl.say_plain(client, "Alice", PASSWORD).code == 235
        client.send_mail("a@sender.test", ["to@dest.test"])
    header = received.split(sink.wait_messages(before + 1)[-1].content)[0]
    assert " with ESMTPA " in header
    assert relay.wait_event("queued", user="alice")


def test_every_spelling_of_a_login_is_one(lab, sink):
    spellings = ["Alice", "aLICE", "\uff21lice", "ALICE"]
    script = [("send", HELLO)]
    for number, spelling in enumerate(spellings, 1):
        script += [("expect", b"AUTH\t%d\tPLAIN[^\n]*\n" % number), ("send", f"OK\t{number}\tuser={spelling}\n".encode())]
    server = lab.script([*script, ("drain",)])
    config = _config(f"inet:127.0.0.1:{server.port}", sink.port)
    owners = lab.folder("owners") / "sender_logins"
    owners.write_text("a@sender.test alice\n")
    config.settings["sender_logins"] = [str(owners)]
    config.extra += 'limit "login" { messages = "2/h" }\n'
    relay = lab.relay(config)
    relay.wait_event("dovecot", state="ready")
    for spelling, code in zip(spellings, (250, 250, 450, 550)):
        if code == 550:
            assert relay.command("user", "suspend", "alice").returncode == 0
        with _greeted(relay) as client:
            assert sasl.say_plain(client, spelling, PASSWORD).code == 235
            client.command("MAIL FROM:<a@sender.test>", code)
    relay.wait_event("auth", login="alice", count=4)


@pytest.mark.parametrize("login", ["corp\\ann", "ann sales", 'ann"s'])
def test_whom_only_dovecot_can_name_is_suspended_as_anybody(lab, sink, login):
    server = lab.script([("send", HELLO)] + [step for number in range(1, 4) for step in (
        ("expect", b"AUTH\t%d\tPLAIN[^\n]*\n" % number), ("send", f"OK\t{number}\tuser={login.upper()}\n".encode()))] + [("drain",)])
    relay = lab.relay(_config(f"inet:127.0.0.1:{server.port}", sink.port))
    relay.wait_event("dovecot", state="ready")

    def sends(code):
        with _greeted(relay) as client:
            assert sasl.say_plain(client, "x", PASSWORD).code == 235
            client.command("MAIL FROM:<a@sender.test>", code)

    sends(250)
    assert relay.command("user", "suspend", login.title()).returncode == 0
    sends(550)
    assert "state:      suspended" in relay.command("user", "show", login).stdout
    assert relay.command("user", "resume", login).returncode == 0
    sends(250)


def test_tables_have_the_logins_of_a_windows_domain(lab, sink):
    server = lab.script([("send", HELLO), ("expect", b"AUTH\t1\tPLAIN[^\n]*\n"), ("send", b"OK\t1\tuser=CORP\\Ann\n"), ("drain",)])
    config = _config(f"inet:127.0.0.1:{server.port}", sink.port)
    folder = lab.folder("tables")
    for setting, row in {"sender_logins": "a@sender.test Corp\\Ann\n", "limits": "corp\\ann 2/h\n"}.items():
        (folder / setting).write_text(row)
        config.settings[setting] = [str(folder / setting)]
    relay = lab.relay(config)
    relay.wait_event("dovecot", state="ready")
    with _greeted(relay) as client:
        assert sasl.say_plain(client, "x", PASSWORD).code == 235
        client.command("MAIL FROM:<b@sender.test>", 553)
        for code in (250, 250, 450):
            client.command("MAIL FROM:<a@sender.test>", code)
            client.command("RSET")


def test_who_may_not_log_in_is_told_why_when_he_is_who_he_says(relay):
    assert _plain(relay, "gone").text.startswith("525 5.7.13 ")
    assert _plain(relay, "gone", "wrong").text == WRONG


def test_odd_words_go_no_further(relay):
    with _greeted(relay) as client:
        client.command("AUTH PLAIN A\tB", 501)
        client.command("AUTH PLAIN AGFs!", 501)
        client.command("AUTH PLAIN", 334)
        client.command("*", 501)
        client.command("AUTH PLAIN", 334)
        client.command("AA\nCONT\t1\tAA", 5)
        client.command("AUTH PLAIN " + sasl.encode("x" * 9000), 535)
        client.command("AUTH XOAUTH2 AA==", 504)
        assert sasl.say_plain(client, "alice", PASSWORD).code == 235


def test_many_at_once_are_told_apart(relay):
    clients = [_greeted(relay) for _ in range(30)]
    for number, client in enumerate(clients):
        client.send(f"AUTH PLAIN {sasl.plain('alice', PASSWORD if number % 3 else 'wrong')}")
    codes = [client.read_reply().code for client in clients]
    assert codes == [235 if number % 3 else 535 for number in range(30)]
    for client in clients:
        client.close()


def test_it_is_found_again(lab, sink):
    dovecot = lab.dovecot(USERS)
    relay = lab.relay(_config(dovecot.socket, sink.port))
    relay.wait_event("dovecot", state="ready")
    dovecot.close()
    relay.wait_event("dovecot", state="away")
    assert _plain(relay).text == AWAY
    assert "AUTH SCRAM-SHA-256 SCRAM-SHA-1 PLAIN LOGIN" in _greeted(relay).command("EHLO x").lines
    dovecot.start()
    relay.wait_event("dovecot", state="ready", count=2)
    assert _plain(relay).code == 235
    relay.wait_event("auth", result="ok")
    assert [event["result"] for event in relay.events("auth")] == ["unavailable", "ok"]


def test_pam_behind_dovecot_behind_the_relay(lab, sink):
    dovecot = lab.dovecot([f"alice:{PASSWORD}:sluice"], pam=True)
    relay = lab.relay(_config(dovecot.socket, sink.port))
    relay.wait_event("dovecot", state="ready")
    with _greeted(relay) as client:
        assert "AUTH PLAIN LOGIN" in client.command("EHLO client.test").lines
        assert sasl.say_login(client, "alice", PASSWORD).code == 235
    assert _plain(relay, "alice", "wrong").text == WRONG


HELLO = b"VERSION\t1\t2\nMECH\tPLAIN\tplaintext\nMECH\tLOGIN\nMECH\tXOAUTH2\nSPID\t1\nCUID\t1\nCOOKIE\t00\nDONE\n"
ASKED = b"AUTH\t1\tPLAIN[^\n]*\n"

# What the first connection is played, and what a client that logs in by PLAIN is told then.
FALSE = {
    "says nothing": ([("drain",)], AWAY),
    "is something else": ([("send", b"220 mail.test ESMTP\r\n"), ("drain",)], AWAY),
    "has another version": ([("send", HELLO.replace(b"VERSION\t1", b"VERSION\t2")), ("drain",)], AWAY),
    "says no end of a line": ([("flood", b"x" * 1000, 2)], AWAY),
    "says a NUL": ([("send", b"VERSION\0\n"), ("drain",)], AWAY),
    "closes at once": ([("close",)], AWAY),
    "does not answer": ([("send", HELLO), ("drain",)], AWAY),
    "closes when it is asked": ([("send", HELLO), ("expect", ASKED), ("close",)], AWAY),
    "resets when it is asked": ([("send", HELLO), ("expect", ASKED), ("reset",)], AWAY),
    "answers another": ([("send", HELLO), ("expect", ASKED), ("send", b"OK\t2\tuser=alice\n"), ("drain",)], AWAY),
    "answers with no number": ([("send", HELLO), ("expect", ASKED), ("send", b"OK\tx\tuser=alice\nOK\n"),
                                ("drain",)], AWAY),
    "names nobody": ([("send", HELLO), ("expect", ASKED), ("send", b"OK\t1\n"), ("drain",)], AWAY),
    "names him with a line's end": ([("send", HELLO), ("expect", ASKED), ("send", b"OK\t1\tuser=a\x01nb\n"),
                                     ("drain",)], AWAY),
    "has a trouble of its own": ([("send", HELLO), ("expect", ASKED), ("send", b"FAIL\t1\ttemp\n"),
                                  ("drain",)], AWAY),
    "has it in new words": ([("send", HELLO), ("expect", ASKED), ("send", b"FAIL\t1\tcode=temp_fail\n"),
                             ("drain",)], AWAY),
    "challenges with no base64": ([("send", HELLO), ("expect", ASKED), ("send", b"CONT\t1\tx y\n"),
                                   ("drain",)], AWAY),
    "answers twice": ([("send", HELLO), ("expect", ASKED),
                       ("send", b"FAIL\t1\tuser=alice\nOK\t1\tuser=alice\n"), ("drain",)], WRONG),
    "answers before it is asked": ([("send", HELLO + b"OK\t1\tuser=mallory\n"), ("expect", ASKED),
                                    ("send", b"FAIL\t1\n"), ("drain",)], WRONG),
    "knows of a disabled login": ([("send", HELLO), ("expect", ASKED),
                                   ("send", b"FAIL\t1\tuser=alice\tuser_disabled\n"), ("drain",)], WRONG),
    "knows of an old password": ([("send", HELLO), ("expect", ASKED),
                                  ("send", b"FAIL\t1\tuser=alice\tcode=pass_expired\n"), ("drain",)],
                                 "535 5.7.8 Your password has expired: change it, then try again"),
    "speaks of later versions": ([("send", HELLO.replace(b"DONE", b"NEWS\t1\nDONE")), ("expect", ASKED),
                                  ("send", b"HINT\t1\nOK\t1\tuser=alice\tnew=1\n"), ("drain",)],
                                 "235 2.7.0 Authentication successful"),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_dovecot_that(lab, name):
    script, told = FALSE[name]
    server = lab.script(script, [("send", HELLO), ("drain",)])
    relay = lab.relay(_config(f"inet:127.0.0.1:{server.port}", 9, timeout="2s"))
    assert _plain(relay).text == told
    with _greeted(relay) as client:
        client.command("NOOP", 250)


def test_an_answer_that_came_with_the_greeting_is_nobodys(lab):
    """Also where a client has asked before the greeting came."""
    gate = threading.Event()
    early = [("await", gate), ("send", HELLO + b"OK\t1\tuser=mallory\n"), ("expect", ASKED), ("send", b"FAIL\t1\n"), ("drain",)]
    server = lab.script(early, [("send", HELLO), ("drain",)])
    relay = lab.relay(_config(f"inet:127.0.0.1:{server.port}", 9))
    with _greeted(relay) as client:
        client.send(b"AUTH PLAIN AGFsaWNlAHdyb25n\r\n")
        with _greeted(relay) as other:  # by the same worker, behind it
            other.command("NOOP", 250)
        gate.set()
        assert client.expect(535).text == WRONG


def test_an_answer_that_comes_late_is_nobodys(lab):
    late = [("send", HELLO), ("expect", ASKED), ("expect", b"CANCEL\t1\n"), ("send", b"OK\t1\tuser=alice\n"),
            ("expect", b"AUTH\t2\t[^\n]*\n"), ("send", b"FAIL\t2\n"), ("drain",)]
    server = lab.script(late)
    relay = lab.relay(_config(f"inet:127.0.0.1:{server.port}", 9, timeout="2s"))
    with _greeted(relay) as client:
        assert sasl.say_plain(client, "alice", PASSWORD).text == AWAY
        assert sasl.say_plain(client, "alice", PASSWORD).text == WRONG
    assert not server.failures


def test_a_client_that_goes_takes_its_question_back(lab):
    script = [("send", HELLO), ("expect", ASKED), ("expect", b"CANCEL\t1\n"),
              ("expect", b"AUTH\t2\tLOGIN[^\n]*\n"), ("send", b"CONT\t2\tVXNlcm5hbWU6\n"),
              ("expect", b"CANCEL\t2\n"), ("drain",)]
    server = lab.script(script)
    relay = lab.relay(_config(f"inet:127.0.0.1:{server.port}", 9))
    relay.wait_event("dovecot", state="ready")
    client = _greeted(relay)
    client.send(f"AUTH PLAIN {sasl.plain('alice', PASSWORD)}")
    client.reset()
    relay.wait_event("disconnect")
    client = _greeted(relay)
    client.command("AUTH LOGIN", 334)
    client.reset()
    relay.wait_event("disconnect", count=2)
    relay.stop()
    server.close()
    assert not [failure for play in server.plays for failure in [play.failure] if failure]


def test_tokens_are_passed_on_whole(lab):
    token = base64.b64encode(b"user=alice\x01auth=Bearer " + b"x" * 6000 + b"\x01\x01").decode()
    complaint = base64.b64encode(b'{"status":"401"}')
    script = [("send", HELLO), ("expect", b"AUTH\t1\tXOAUTH2\t[^\n]*resp=" + re.escape(token.encode()) + b"\n"),
              ("send", b"CONT\t1\t" + complaint + b"\n"), ("expect", b"CONT\t1\t\n"), ("send", b"FAIL\t1\n"),
              ("expect", b"AUTH\t2\tXOAUTH2\t[^\n]*resp=" + re.escape(token.encode()) + b"\n"),
              ("send", b"OK\t2\tuser=alice\n"), ("drain",)]
    server = lab.script(script)
    relay = lab.relay(_config(f"inet:127.0.0.1:{server.port}", 9))
    relay.wait_event("dovecot", state="ready")
    with _greeted(relay) as client:
        assert sasl.decode(client.command(f"AUTH XOAUTH2 {token}", 334)) == b'{"status":"401"}'
        client.command("", 535)
        client.command(f"AUTH XOAUTH2 {token}", 235)
    assert not server.failures


def test_nobody_listens_there(lab):
    relay = lab.relay(_config(f"inet:127.0.0.1:{free_port()}", 9))
    relay.wait_event("dovecot", state="away")
    assert _plain(relay).text == AWAY
    relay.config.auth["dovecot"] = "/nowhere/at/all"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    assert _plain(relay).text == AWAY
    assert relay.command("stop").returncode == 0
    relay.wait_ended()


@pytest.mark.parametrize("auth, text", [
    ({"dovecot": "run/auth"}, "is not the absolute path of a socket, nor inet:HOST:PORT"),
    ({"dovecot": "inet:localhost"}, "is not the absolute path of a socket, nor inet:HOST:PORT"),
    ({"dovecot": "/" + "x" * 200}, "is not the absolute path of a socket, nor inet:HOST:PORT"),
    ({"dovecot": "/run/auth", "file": "/etc/sluice/users"}, "file and dovecot exclude each other"),
])
def test_check_refuses(lab, auth, text):
    relay = lab.relay(_config("", 9, **auth), start=False)
    done = relay.command("check")
    assert done.returncode == 1 and text in done.stderr
