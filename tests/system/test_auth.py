# SPDX-License-Identifier: ISC
"""Logging in, with the users' file behind it."""

import os
import pwd
import re
import shutil
import signal
import smtplib
import ssl
import stat
import subprocess
import termios
import time

import pytest

from lab import peers, received, sasl
from lab.config import Config
from lab.net import LOOPBACK, wait_until
from lab.proc import cpu_seconds, sanitized
from lab.relay import REPOSITORY, binary
from lab.smtp import Client, unverified_context

MECHANISMS = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-1", "PLAIN", "LOGIN"]
PASSWORD = "correct horse"
CRYPTED = "battery staple"
DELAY = 0.05


def _config(sink, certificates, users, **auth):
    certificate, key = certificates.host("relay.test", "localhost")
    tls = {"tls": "optional", "certificate": certificate, "key": key, "auth": True}
    config = Config({"networks": ["10.0.0.0/8"]}).route_all_to(sink.port)
    config.listeners = {
        "submission": dict(tls),
        "telling": tls | {"received": "login"},
        "smtps": tls | {"tls": "implicit"},
        "required": tls | {"tls": "required"},
        "none": {"tls": "none"},
    }
    settings = {"file": str(users), "failure_delay": f"{DELAY * 1000:.0f}ms", "mechanisms": MECHANISMS} | auth
    config.auth.update(settings)
    return config


@pytest.fixture(scope="module")
def sink(module_lab):
    return module_lab.sink()


@pytest.fixture(scope="module")
def users(module_lab):
    """The users' file: alice with keys for SCRAM, bob with a hash."""
    file = module_lab.folder("users") / "users"
    assert sasl.passwd(file, "alice", PASSWORD).returncode == 0
    assert sasl.passwd(file, "bob", CRYPTED, "--crypt").returncode == 0
    return file


@pytest.fixture(scope="module")
def relay(module_lab, sink, users):
    return module_lab.relay(_config(sink, module_lab.certificates, users))


@pytest.fixture(scope="module")
def open_relay(module_lab, sink, users):
    """One that also takes passwords in clear, as often as you like, and answers at once."""
    config = _config(
        sink, module_lab.certificates, users, require_tls=False, failure_limit=0, failure_delay="0s"
    )
    for listener in config.listeners.values():
        listener["error_limit"] = 0
    return module_lab.relay(config)


def _clear(relay, listener="submission"):
    client = relay.client(listener)
    client.greet()
    return client


def _secure(relay, listener="submission", context=None):
    client = _clear(relay, listener)
    client.starttls(context)
    client.command("EHLO client.test")
    return client


def _offered(reply):
    return [line[5:].split() for line in reply.lines if line.startswith("AUTH ")]


def test_it_is_offered_under_tls_and_not_before(relay):
    with relay.client("submission") as client:
        assert _offered(client.greet()) == []
        assert "5.7.11" in client.command(f"AUTH PLAIN {sasl.plain('alice', PASSWORD)}", 538).text
        client.starttls()
        assert _offered(client.command("EHLO client.test")) == [MECHANISMS]
    with relay.client("none") as client:
        assert _offered(client.greet()) == []
        client.command("AUTH PLAIN", 502)
    with relay.client("required") as client:
        assert _offered(client.greet()) == []
        client.command("AUTH PLAIN", 538)


def _try(relay, mechanism, login, password):
    with _secure(relay) as client:
        if mechanism == "PLAIN":
            return sasl.say_plain(client, login, password)
        if mechanism == "LOGIN":
            return sasl.say_login(client, login, password)
        return sasl.say_scram(client, mechanism, login, password)


@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN", "SCRAM-SHA-1", "SCRAM-SHA-256"])
def test_who_logs_in_may_relay(relay, sink, mechanism):
    with _secure(relay) as client:
        client.command("MAIL FROM:<alice@sender.test>")
        client.command("RCPT TO:<to@dest.test>", 550)
        client.command("RSET")
        say = {"PLAIN": sasl.say_plain, "LOGIN": sasl.say_login}.get(mechanism)
        if say:
            reply = say(client, "Alice", PASSWORD)
        else:
            reply = sasl.say_scram(client, mechanism, "alice", PASSWORD)
        assert reply.text.startswith("235 2.7.0 ")
        before = len(sink.messages)
        queued = client.send_mail("alice@sender.test", ["to@dest.test"])
    header = received.split(sink.wait_messages(before + 1)[-1].content)[0]
    assert " with ESMTPSA " in header and "alice" not in header.replace("alice@sender.test", "")
    event = relay.wait_event("queued", id=queued.text.split()[-1])
    assert event["user"] == "alice"
    assert relay.wait_event("auth", session=event["session"])["mechanism"] == mechanism


def test_a_hash_is_good_for_plain_passwords_only(relay):
    assert _try(relay, "PLAIN", "bob", CRYPTED).code == 235
    assert _try(relay, "LOGIN", "bob", CRYPTED).code == 235
    assert _try(relay, "SCRAM-SHA-256", "bob", CRYPTED).code == 535


def test_received_names_the_login_where_that_is_wanted(relay, sink):
    before = len(sink.messages)
    with _secure(relay, "telling") as client:
        sasl.say_plain(client, "alice", PASSWORD)
        client.send_mail("a@sender.test", ["to@dest.test"])
    header = received.split(sink.wait_messages(before + 1)[-1].content)[0]
    assert "(authenticated sender: alice)" in header and LOOPBACK not in header


def test_scram_is_bound_to_the_channel(relay):
    context = _tls_1_2()
    with _secure(relay, context=context) as client:
        bound = client.socket.get_channel_binding("tls-unique")
        assert sasl.say_scram(client, "SCRAM-SHA-256-PLUS", "alice", PASSWORD, ("tls-unique", bound)).code == 235
    with _secure(relay, context=context) as client:
        forged = ("tls-unique", b"x" * 12)
        assert sasl.say_scram(client, "SCRAM-SHA-256-PLUS", "alice", PASSWORD, forged).code == 535


def _tls_1_2():
    """A client's, of TLS 1.2, which is the last that has tls-unique."""
    context = unverified_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_names_and_wrong_passwords_read_the_same(open_relay, mechanism):
    if mechanism.endswith("-PLUS"):
        pytest.skip("tried by gsasl")
    wrong = _try(open_relay, mechanism, "alice", "wrong")
    unknown = _try(open_relay, mechanism, "nobody", "wrong")
    assert wrong.text == unknown.text == "535 5.7.8 Authentication failed: wrong name or password"
    assert open_relay.wait_event("auth", login="nobody", mechanism=mechanism)["result"] == "failed"


def _cost(relay, attempt, times=60):
    """Processor time of the relay for so many attempts in one session."""
    with _clear(relay) as client:
        before = cpu_seconds(relay)
        for _ in range(times):
            attempt(client)
        return cpu_seconds(relay) - before


@pytest.mark.skipif(sanitized(), reason="with a sanitizer processor time says little")
def test_unknown_names_cost_what_wrong_passwords_do(open_relay):
    """As those of one of the rows that there are; what is refused without a look at a password shows that it would be seen."""
    known = [_cost(open_relay, lambda client, login=login: sasl.say_plain(client, login, "wrong")) for login in ("alice", "bob")]
    unknown = [_cost(open_relay, lambda client, login=login: sasl.say_plain(client, login, "wrong")) for login in ("nobody", "mallory")]
    refused = _cost(open_relay, lambda client: client.command("AUTH PLAIN !", 501))
    assert refused < min(known) / 4
    assert min(known) / 2 < min(unknown) and max(unknown) < max(known) * 2, (known, unknown)


def test_keys_that_nobody_has_look_like_any(open_relay):
    def ask(login):
        with _clear(open_relay) as client:
            scram = sasl.Scram("sha256", login, "x")
            assert scram.say(client, "SCRAM-SHA-256").code == 535
            return scram.salt, scram.iterations

    assert ask("nobody") == ask("nobody") != ask("somebody")
    assert [len(ask(name)[0]) for name in ("alice", "bob", "nobody")] == [24] * 3
    assert {ask(name)[1] for name in ("alice", "bob", "nobody")} == {10000}


def test_failures_cost_time_and_end_the_session(relay):
    with _secure(relay) as client:
        begun = time.monotonic()
        assert sasl.say_plain(client, "mallory", "1").code == 535
        first = time.monotonic() - begun
        assert sasl.say_plain(client, "mallory", "2").code == 535
        second = time.monotonic() - begun - first
        assert sasl.say_plain(client, "mallory", "3").text == "421 4.7.0 Too many failed logins"
        client.wait_closed()
        third = time.monotonic() - begun - first - second
    slack = 0.01  # timers count from when the loop woke up
    assert first >= DELAY - slack and second >= 2 * DELAY - slack and third >= 4 * DELAY - slack
    counted = [int(event["failures"]) for event in relay.wait_events("auth", login="mallory", count=3)]
    assert counted == sorted(counted) and len(set(counted)) == 3


def test_a_client_that_goes_during_the_delay_is_let_go(relay):
    before = len(relay.events("disconnect"))
    client = _secure(relay)
    client.send(f"AUTH PLAIN {sasl.plain('gone', 'x')}")
    client.reset()
    relay.wait_event("disconnect", count=before + 1)
    assert _try(relay, "PLAIN", "alice", PASSWORD).code == 235


ODD = {
    "no argument": ("AUTH", 501),
    "no such mechanism": ("AUTH CRAM-MD5", 504),
    "one that only Dovecot could judge": ("AUTH XOAUTH2 eA==", 504),
    "bound to a channel that is none": ("AUTH SCRAM-SHA-256-PLUS", 504),
    "4n+1 characters": ("AUTH PLAIN AGFsaWNlA", 501),
    "4n+2 characters": ("AUTH PLAIN AGFsaWNlAA", 501),
    "4n+3 characters": ("AUTH PLAIN AGFsaWNlAGE", 501),
    "padding in the middle": ("AUTH PLAIN AG==AGFs", 501),
    "other characters": ("AUTH PLAIN AGFs!WNl", 501),
    "two words": ("AUTH PLAIN AGFs AGFs", 501),
    "no NUL": (f"AUTH PLAIN {sasl.encode('alice')}", 501),
    "one NUL": (f"AUTH PLAIN {sasl.encode(chr(0) + 'alice')}", 501),
    "a NUL too many": (f"AUTH PLAIN {sasl.plain('alice', PASSWORD + chr(0))}", 501),
    "for another": (f"AUTH PLAIN {sasl.plain('alice', PASSWORD, 'bob')}", 535),
    "for himself": (f"AUTH PLAIN {sasl.plain('alice', PASSWORD, 'alice')}", 235),
    "no password": (f"AUTH PLAIN {sasl.plain('alice', '')}", 535),
    "no name": (f"AUTH PLAIN {sasl.plain('', PASSWORD)}", 535),
    "a name that is none": (f"AUTH PLAIN {sasl.plain('a b*', PASSWORD)}", 535),
    "the name of nobody": (f"AUTH PLAIN {sasl.plain('*', PASSWORD)}", 535),
    "no UTF-8": (f"AUTH PLAIN {sasl.encode(bytes([0, 255, 254, 0, 255]))}", 535),
    "SCRAM without a nonce": (f"AUTH SCRAM-SHA-256 {sasl.encode('n,,n=alice')}", 501),
    "SCRAM bound without -PLUS": (f"AUTH SCRAM-SHA-256 {sasl.encode('p=tls-unique,,n=alice,r=x')}", 5),
    "lower case": (f"auth plain {sasl.plain('alice', PASSWORD)}", 235),
    "a long one": (f"AUTH PLAIN {'A' * (12288 - 13)}", 501),
    "too long a one": (f"AUTH PLAIN {'A' * (12288 - 12)}", 500),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_commands(open_relay, name):
    line, code = ODD[name]
    with _clear(open_relay) as client:
        client.command(line, code)
        client.command("NOOP", 250)


def test_odd_answers(open_relay):
    with _clear(open_relay) as client:
        client.command("AUTH PLAIN", 334)
        assert "cancelled" in client.command("*", 501).text
        client.command("AUTH PLAIN =", 334)
        client.command("QUIT", 501)
        client.command("AUTH LOGIN", 334)
        client.command("A" * 12286, 501)
        client.command("AUTH LOGIN", 334)
        assert "5.5.6" in client.command("A" * 12287, 500).text
        client.command("AUTH LOGIN " + sasl.encode("alice"), 334)
        client.command(sasl.encode(PASSWORD), 235)
        client.command("AUTH PLAIN", 503)
        client.command("EHLO again")
        client.command("AUTH PLAIN", 503)


def test_a_listener_that_requires_tls_takes_no_password_before(open_relay):
    with open_relay.client("required") as client:
        assert _offered(client.greet()) == []
        client.command("AUTH PLAIN", 538)


def test_as_thunderbird_says_it(relay):
    """What it sends, word for word, and in its order."""
    with relay.client("submission") as client:
        client.expect(220)
        client.command("EHLO [192.168.1.23]")
        client.starttls()
        assert _offered(client.command("EHLO [192.168.1.23]")) == [MECHANISMS]
        client.command(f"AUTH PLAIN {sasl.plain('alice', PASSWORD)}", 235)
        client.command("MAIL FROM:<alice@sender.test> BODY=8BITMIME SIZE=351")
        client.command("RCPT TO:<to@dest.test>")
        client.command("DATA", 354)
        client.send(b"Message-ID: <x@sender.test>\r\nFrom: Alice <alice@sender.test>\r\n\r\n\r\n.\r\n")
        client.expect(250)
        client.command("QUIT", 221)


def test_auth_has_its_place(open_relay):
    with open_relay.client("submission") as client:
        client.expect(220)
        client.command("AUTH PLAIN", 503)
        client.command("HELO client.test")
        client.command("AUTH PLAIN", 503)
        client.command("EHLO client.test")
        client.command("MAIL FROM:<a@sender.test>")
        client.command("AUTH PLAIN", 503)


def test_scram_played_falsely(open_relay):
    with _clear(open_relay) as client:
        scram = sasl.Scram("sha256", "alice", PASSWORD)
        client.send(f"AUTH SCRAM-SHA-256 {scram.first()}")
        final = scram.final(sasl.decode(client.read_reply()))
        client.command(final, 334)
        client.command(final, 501)  # where nothing is left to be said
        client.command(f"AUTH SCRAM-SHA-256 {scram.first()}", 334)
        client.command(final, 5)  # of another exchange
        client.command(f"AUTH SCRAM-SHA-256 {scram.first()}", 334)
        client.command("", 5)
    with _secure(open_relay) as client:
        downgraded = sasl.Scram("sha256", "alice", PASSWORD, header="y,")
        assert downgraded.say(client, "SCRAM-SHA-256").code == 535
    with _clear(open_relay) as client:
        honest = sasl.Scram("sha256", "alice", PASSWORD, header="y,")
        assert honest.say(client, "SCRAM-SHA-256").code == 235


def test_what_was_proven_in_clear_is_forgotten_under_tls(open_relay):
    with _clear(open_relay) as client:
        assert sasl.say_plain(client, "alice", PASSWORD).code == 235
        client.starttls()
        client.command("EHLO client.test")
        client.command("MAIL FROM:<a@sender.test>")
        client.command("RCPT TO:<to@dest.test>", 550)
        client.command("RSET")
        assert sasl.say_plain(client, "alice", PASSWORD).code == 235


def test_commands_behind_auth_wait_for_it(open_relay):
    with _clear(open_relay) as client:
        lines = [
            f"AUTH PLAIN {sasl.plain('alice', PASSWORD)}",
            "MAIL FROM:<a@sender.test> AUTH=a+2Bb@sender.test",
            "RCPT TO:<to@dest.test>",
            "RSET",
            "MAIL FROM:<a@sender.test> AUTH=<>",
            "RSET",
            "MAIL FROM:<a@sender.test> AUTH=a+0Db",
            "MAIL FROM:<a@sender.test> AUTH=nobody",
            "NOOP",
        ]
        client.send("".join(line + "\r\n" for line in lines).encode())
        assert [client.read_reply().code for _ in lines] == [235, 250, 250, 250, 250, 250, 501, 501, 250]
    with _clear(open_relay, "none") as client:
        client.command("MAIL FROM:<a@sender.test> AUTH=<>", 555)


def test_the_users_file_is_read_anew(lab, sink):
    file = lab.folder("users") / "users"
    assert "added" in sasl.passwd(file, "eve", "one").stdout
    os.utime(file, (0, 0))  # long enough ago to be read once
    config = _config(sink, lab.certificates, file, failure_limit=0, failure_delay="0s")
    relay = lab.relay(config)
    assert _try(relay, "PLAIN", "eve", "one").code == 235
    before = len(relay.events("tables"))
    assert "changed" in sasl.passwd(file, "eve", "two").stdout
    os.utime(file, (1, 1))  # long enough ago
    relay.wait_event("tables", count=before + 1)
    assert _try(relay, "PLAIN", "eve", "one").code == 535
    assert _try(relay, "SCRAM-SHA-1", "eve", "two").code == 235
    file.write_text(file.read_text() + "oops secret-in-clear\n")
    os.utime(file, (2, 2))
    fault = relay.wait_event("tables", count=before + 2)
    assert "SCRAM" in fault["message"] and "secret-in-clear" not in relay.log_text()
    assert _try(relay, "PLAIN", "eve", "two").code == 235


def test_no_password_is_logged(relay):
    _try(relay, "PLAIN", "alice", PASSWORD)
    _try(relay, "LOGIN", "alice", "a wrong secret")
    text = relay.log_text()
    for secret in (PASSWORD, "a wrong secret", sasl.plain("alice", PASSWORD), sasl.encode("a wrong secret")):
        assert secret not in text


CLIENTS = {
    "swaks PLAIN": "swaks --tls --auth PLAIN",
    "swaks LOGIN": "swaks --tls --auth LOGIN",
    "swaks of its own choice": "swaks --tls --auth",
    "swaks, implicit": "swaks --tls-on-connect --auth PLAIN",
}


def _swaks(relay, words, password):
    implicit = "--tls-on-connect" in words
    return subprocess.run(
        [*words, "--server", f"{LOOPBACK}:{relay.ports['smtps' if implicit else 'submission']}",
         "--auth-user", "alice", "--auth-password", password,
         "--from", "a@sender.test", "--to", "to@dest.test", "--timeout", "20"],
        capture_output=True, text=True, timeout=60, check=False,
    )


@pytest.mark.parametrize("name", CLIENTS)
def test_swaks(relay, name):
    done = _swaks(relay, CLIENTS[name].split(), PASSWORD)
    assert done.returncode == 0, done.stdout
    assert "235 2.7.0" in done.stdout


def test_swaks_with_a_wrong_password(open_relay):
    done = _swaks(open_relay, ["swaks", "--tls", "--auth", "PLAIN"], "wrong")
    assert done.returncode == 28 and "535 5.7.8" in done.stdout


def test_smtplib(relay):
    with smtplib.SMTP(LOOPBACK, relay.ports["submission"]) as client:
        client.starttls()
        client.login("alice", PASSWORD)
        assert client.sendmail("a@sender.test", ["to@dest.test"], "Subject: x\r\n\r\n") == {}
    with smtplib.SMTP(LOOPBACK, relay.ports["submission"]) as client:
        client.starttls()
        with pytest.raises(smtplib.SMTPAuthenticationError):
            client.login("alice", "wrong")


@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN"])
def test_curl(relay, tmp_path, mechanism):
    mail = tmp_path / "mail"
    mail.write_text("Subject: by curl\r\n\r\n")
    done = subprocess.run(
        ["curl", "-sS", "--ssl-reqd", "--insecure", "--login-options", f"AUTH={mechanism}",
         "--user", f"alice:{PASSWORD}", "--mail-from", "a@sender.test", "--mail-rcpt", "to@dest.test",
         "-T", mail, f"smtp://{LOOPBACK}:{relay.ports['submission']}"],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert done.returncode == 0, done.stderr
    relay.wait_event("auth", mechanism=mechanism, result="ok")


@pytest.mark.parametrize("mechanism", ["plain", "login", "scram-sha-1", "scram-sha-256"])
def test_msmtp(relay, tmp_path, mechanism):
    """Who could bind to TLS, says so, and does not, was led away from the -PLUS that is offered (RFC 5802 6): a newer msmtp
    must use it."""
    can = subprocess.run(["msmtp", "--version"], capture_output=True, text=True, check=True).stdout.split()
    mechanism += "-plus" if f"{mechanism}-plus" in can else ""
    done = subprocess.run(
        ["msmtp", "--file=/dev/null", f"--host={LOOPBACK}", f"--port={relay.ports['submission']}", "--tls=on",
         "--tls-certcheck=off", f"--auth={mechanism}", "--user=alice", f"--passwordeval=echo {PASSWORD}",
         "--from=a@sender.test", "to@dest.test"],
        input="Subject: by msmtp\n\n", capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_gsasl(relay, module_lab, mechanism):
    """Its -PLUS is bound by tls-exporter, of TLS 1.3."""
    def run(password):
        plus = [] if mechanism.endswith("-PLUS") else ["--no-cb"]
        return subprocess.run(
            ["gsasl", "--smtp", "localhost", str(relay.ports["submission"]), f"--mechanism={mechanism}",
             f"--x509-ca-file={module_lab.certificates.ca}", "-a", "alice", "-z", "", "-p", password, *plus],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )

    done = run(PASSWORD)
    assert done.returncode == 0, done.stdout + done.stderr
    if mechanism.endswith("-PLUS"):
        assert "535 5.7.8" in run("wrong").stdout


def test_postfix_as_a_client(relay, sink, lab):
    folder = lab.folder("sasl")
    passwords = folder / "passwords"
    next_hop = f"[{LOOPBACK}]:{relay.ports['submission']}"
    passwords.write_text(f"{next_hop} alice:{PASSWORD}\n")
    settings = {
        "smtp_sasl_auth_enable": "yes",
        "smtp_sasl_password_maps": f"texthash:{passwords}",
        "smtp_sasl_security_options": "noanonymous",
        "smtp_sasl_mechanism_filter": "plain, login",
        "smtp_tls_security_level": "encrypt",
        "relayhost": next_hop,
    }
    postfix = lab.postfix(next_hop=relay.ports["submission"], settings=settings)
    before = len(sink.messages)
    with Client(LOOPBACK, postfix.port) as client:
        client.greet()
        client.send_mail("a@sender.test", ["to@dest.test"])
    sink.wait_messages(before + 1)
    relay.wait_event("queued", user="alice")


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
def test_passwd_gives_the_relay_what_root_alone_may_read(lab):
    folder = lab.folder("users")
    conf, file = folder / "sluice.conf", folder / "users"
    conf.write_text(f'user = "nobody"\nspool = "{folder}/spool"\nauth {{ file = "{file}" }}\n')
    file.write_text("# ours\n")
    file.chmod(0o600)
    assert sasl.passwd(file, "anna", "one", "-c", str(conf)).returncode == 0
    assert file.stat().st_uid == pwd.getpwnam("nobody").pw_uid
    os.chown(file, 0, 1)
    file.chmod(0o640)
    assert sasl.passwd(file, "anna", "two", "-c", str(conf)).returncode == 0
    assert (file.stat().st_uid, file.stat().st_gid) == (0, 1)


def test_passwd_keeps_the_file_whole(lab):
    folder = lab.folder("users")
    file = folder / "users"
    assert sasl.passwd(file, "Anna", "one").stdout == f"{file}: anna added\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text(file.read_text() + "# a remark\n\nberta $y$j9T$x$\n\tgoes on\n")
    file.chmod(0o644)
    assert sasl.passwd(file, "anna", "two").stdout == f"{file}: anna changed\n"
    lines = file.read_text().splitlines()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [line.split(" ")[0] for line in lines] == ["#", "*", "anna", "#", "", "berta", "\tgoes"]
    link = folder / "link"
    link.symlink_to(file)
    assert "deleted" in sasl.passwd(link, "berta", None, "-d").stdout
    file.write_bytes(b"\xef\xbb\xbfdora $y$j9T$x$\n" + file.read_bytes())
    assert sasl.passwd(file, "dora", "one").stdout == f"{file}: dora changed\n" and file.read_bytes().startswith(b"dora ")
    assert link.is_symlink() and "berta" not in file.read_text() and "goes on" not in file.read_text()
    assert sorted(os.listdir(folder)) == ["link", "users"]
    before = file.read_text()
    for login, password, words in [
        ("a b", "x", []), ("#a", "x", []), ("", "x", []), ("carla", "", []), ("carla", "x" * 1001, []),
        ("carla", "x\0y", []), ("carla", None, ["-d"]), ("carla", "x\x01", ["--crypt"]),
    ]:
        done = sasl.passwd(file, login, password, *words)
        assert done.returncode == 1 and done.stderr.startswith("sluice: "), done
    assert sasl.passwd(folder / "not" / "there", "anna", "x").returncode == 1
    assert sasl.passwd(file, "anna", "x", "--iterations", "5").returncode == 2
    assert file.read_text() == before


def test_passwd_that_is_broken_off_leaves_a_terminal_that_shows_what_is_typed(lab):
    master, terminal = os.openpty()

    def shows():
        return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)

    words = [binary(), "passwd", "-f", str(lab.folder("users") / "users"), "anna"]
    try:
        with subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal) as process:
            wait_until(lambda: not shows(), what="the question")
            process.send_signal(signal.SIGTERM)  # which nobody who started us has ignored
            assert process.wait(60) == -signal.SIGTERM
        assert shows()
    finally:
        os.close(master)
        os.close(terminal)


def test_check_says_what_is_dangerous(lab, users):
    relay = lab.relay(Config().route_all_to(9), start=False)

    def said(listener, auth):
        relay.config.listeners["smtp"] = {"address": [f"{LOOPBACK}:{relay.port}"]} | listener
        relay.config.auth = {"file": str(users)} | auth
        relay.write_config()
        done = relay.command("check")
        return done.returncode, re.sub(r"(?m)^[^:]*:", "", done.stderr)

    certificate, key = lab.certificates.host("relay.test")
    tls = {"certificate": certificate, "key": key, "auth": True}
    assert said(tls, {}) == (0, "")
    assert "nobody can log in" in said({"auth": True}, {})[1]
    assert "takes passwords without TLS" in said(tls, {"require_tls": False})[1]
    assert said(tls | {"tls": "required"}, {"require_tls": False}) == (0, "")
    users.chmod(0o604)
    assert "every user of the machine may read" in said(tls, {})[1]
    users.chmod(0o600)
    assert 'no mechanism "CRAM-MD5"' in said(tls, {"mechanisms": ["CRAM-MD5"]})[1]
    code, text = said(tls, {"file": str(users) + ".not"})
    assert code == 1 and "can't be read" in text


def _guessed_at(lab, sink, users, form):
    """Return the log, in this form, of a relay at which four passwords were guessed and one was right."""
    config = _config(sink, lab.certificates, users, failure_delay="0s", failure_limit=0)
    relay = lab.relay(config, log_format=form, start=False)
    if form == "postfix":  # which the lab can't read
        relay.start_mute()
    else:
        relay.start()
    assert _try(relay, "PLAIN", "alice", PASSWORD).code == 235
    _try(relay, "PLAIN", "alice", "wrong")
    _try(relay, "SCRAM-SHA-256", "x", "wrong")
    _try(relay, "LOGIN", 'client=192.0.2.1 result="failed"[192.0.2.2]', "wrong")
    _try(relay, "PLAIN", '"client":"192.0.2.1","result":"failed"', "wrong")
    relay.stop()
    return relay.log_text()


def _by_syslogd(line):
    """Return a line of ours as syslogd's file has it that got it without its time, unless it is of Postfix's form."""
    stamp = time.strftime("%b %e %H:%M:%S")
    return line if " sluice/" in line else f"{stamp} host sluice[7]: {re.sub('^[-0-9T:.]+Z ', '', line)}"


def _by_journal(line):
    """Return a line of our standard error as fail2ban has it from the journal."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S')} host sluice[7]: {line}"


def _found_by_fail2ban(lab, log, rule):
    """Return what fail2ban-regex prints of a log with one of our filters."""
    rules = lab.folder("fail2ban") / "rules"
    if not rules.exists():
        shutil.copytree(os.path.join(peers.root(), "etc", "fail2ban"), rules)
        for name in ("sluice", "sluice-auth"):
            shutil.copy(os.path.join(REPOSITORY, "etc", "fail2ban", f"{name}.conf"), rules / "filter.d")
    return subprocess.run(
        [peers.program("fail2ban-regex"), "-c", str(rules), "-o", "ip", str(log), rule],
        capture_output=True, text=True, timeout=60, check=False,
    )


def test_fail2ban_finds_who_guesses(lab, sink, users):
    """In a file of ours, in one of syslogd's and in the journal, in each form."""
    log = lab.folder("fail2ban") / "log"
    forms = {form: _guessed_at(lab, sink, users, form) for form in ("text", "json", "postfix")}
    log.write_text("".join(forms.values()))
    done = _found_by_fail2ban(lab, log, "sluice-auth")
    assert done.stdout.split() == [LOOPBACK] * 12, done.stdout + done.stderr + log.read_text()
    for way, kind in ((_by_syslogd, "file"), (_by_journal, "journal")):
        for form, text in forms.items():
            log.write_text("".join(map(way, text.splitlines(keepends=True))))
            done = _found_by_fail2ban(lab, log, f"sluice-auth[logtype={kind}]")
            assert done.stdout.split() == [LOOPBACK] * 4, (kind, form, done.stdout + done.stderr + log.read_text())


def test_fail2ban_takes_no_other_programs_word(lab):
    log = lab.folder("fail2ban") / "log"
    said = "info auth session=a client=192.0.2.1 mechanism=PLAIN result=failed"
    lines = (f"host sshd[7]: {said}", f"host sluice[7]: info queued from=<{said}>", f"host sluice[7]: {said} {said}")
    log.write_text("".join(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {line}\n" for line in lines))
    for kind in ("file", "journal"):
        done = _found_by_fail2ban(lab, log, f"sluice-auth[logtype={kind}]")
        assert done.stdout.split() == ["192.0.2.1"], (kind, done.stdout + done.stderr)


def test_fail2ban_takes_no_word_of_a_remote_host_for_smtpds(lab):
    """A policy host, whose media type is cited, says the words of a failed login, with somebody else's address."""
    log = lab.folder("fail2ban") / "log"
    said = "SASL PLAIN authentication failed: wrong name or password, sasl_username=x"
    stamp = time.strftime("%b %e %H:%M:%S")
    lines = [f"{stamp} host sluice/relay[7]: warning: mta_sts domain=bad.test reason=its type is [192.0.2.66]: {said}",
             f"{stamp} host sluice/smtpd[7]: warning: unknown[192.0.2.1]: {said} [192.0.2.66]: {said}"]
    for kind, way in (("file", str), ("journal", _by_journal)):
        log.write_text("".join(way(line + "\n") for line in lines))
        for rule in ("sluice-auth[", "sluice[mode=auth,", "sluice[mode=aggressive,"):
            done = _found_by_fail2ban(lab, log, f"{rule}logtype={kind}]")
            assert done.stdout.split() == ["192.0.2.1"], (kind, rule, done.stdout + done.stderr)


def test_fail2ban_finds_refusals_in_the_journal(lab):
    log = lab.folder("fail2ban") / "log"
    relay = lab.relay(Config({"networks": ["10.0.0.0/8"]}).route_all_to(9), log_format="postfix", start=False)
    relay.start_mute()
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<spam@from.test>", 250)
        client.command("RCPT TO:<victim@to.test>", 550)
    relay.stop()
    log.write_text("".join(map(_by_journal, relay.log_text().splitlines(keepends=True))))
    done = _found_by_fail2ban(lab, log, "sluice[logtype=journal]")
    assert done.stdout.split() == [LOOPBACK], done.stdout + done.stderr + log.read_text()


@pytest.mark.parametrize("name", ["sluice", "sluice-auth"])
def test_fail2ban_reads_the_journal_of_our_unit(name):
    with open(os.path.join(REPOSITORY, "etc", "fail2ban", f"{name}.conf"), encoding="ascii") as stream:
        assert stream.read().partition("[Init]\n")[2].strip() == "journalmatch = _SYSTEMD_UNIT=sluice.service"


def _finds(pid, secrets):
    """Say which of these a process has in memory that it can write to."""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights, *_ = line.split()
            begin, end = (int(number, 16) for number in place.split("-"))
            if rights.startswith("rw"):
                memory.seek(begin)
                try:
                    content = memory.read(end - begin)
                except OSError:  # it was given back in between
                    continue
                found |= {secret for secret in secrets if secret in content}
    return found


@pytest.mark.plain_only
@pytest.mark.skipif(os.getuid() != 0, reason="only root may look into a process")
@pytest.mark.parametrize("secure", [True, False])
def test_no_password_stays_in_memory(open_relay, secure):
    secrets = [secret[8:].encode() for secret in (PASSWORD, CRYPTED)]
    secrets += [sasl.encode(secret)[:-4].encode() for secret in (PASSWORD, CRYPTED)]
    secrets.append(sasl.plain("alice", PASSWORD)[12:].encode())
    with (_secure if secure else _clear)(open_relay) as client:
        assert sasl.say_plain(client, "alice", PASSWORD).code == 235
    with (_secure if secure else _clear)(open_relay) as client:
        assert sasl.say_login(client, "bob", CRYPTED).code == 235
        # The answer may be here before what it was made from is wiped.
        wait_until(lambda: not _finds(open_relay.process.pid, secrets), 60, "memory without passwords")
        client.send("x" * 3000 + "no secret")  # to see that one would be seen
        wait_until(lambda: _finds(open_relay.process.pid, [b"xxno secret"]), 60, "what is there")
