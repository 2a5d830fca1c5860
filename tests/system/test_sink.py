# SPDX-License-Identifier: ISC
"""sluice sink plays a host: TLS, logins and moods, tried by the relay and by hand."""

import base64
import os
import resource
import subprocess
import threading
import time

import pytest

from lab.config import Config
from lab.net import LOOPBACK, wait_until
from lab.proc import cpu_seconds
from lab.relay import binary
from lab.sasl import Scram, say_plain
from lab.smtp import Client


def _greeted(sink, ehlo="client.test"):
    client = Client(LOOPBACK, sink.port)
    client.greet(ehlo)
    return client


def _secured(sink):
    client = _greeted(sink)
    client.starttls()
    client.command("EHLO client.test")
    return client


def _relay(lab, sink, rows=None, policy="", transport=None, **queue):
    folder = lab.folder("login")
    hop = f"[{LOOPBACK}]:{sink.port}"
    for name, text in {"secret": "pass\n", "credentials": f"{hop} {rows.format(folder)}\n" if rows else "",
                       "policy": f"{hop} {policy}\n" if policy else ""}.items():
        with open(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as stream:
            stream.write(text)
    config = Config(settings={"credentials": [f"{folder}/credentials"], "tls_policy": [f"{folder}/policy"]}).route_all_to(sink.port)
    config.transports["smtp"] = transport or {}
    config.queue |= queue
    return lab.relay(config)


def test_a_login_under_its_own_certificate_that_the_policy_knows(lab):
    sink = lab.own_sink("--starttls", "--login", "us@example.org:pass", "--name", "mx.sink.test")
    relay = _relay(lab, sink, "us@example.org password:{}/secret", f"verify:sha256={sink.fingerprint()}")
    relay.send()
    assert sink.wait_messages()[0].endswith(" tls login=us@example.org")
    assert relay.wait_event("tls")["verified"] == "matched"
    assert sink.commands("AUTH") == ["AUTH SCRAM-SHA-256"]  # and no word of what follows


def test_another_certificate_than_the_policy_knows_gets_no_mail(lab):
    sink = lab.own_sink("--starttls")
    relay = _relay(lab, sink, policy="verify:sha256=" + "0" * 64)
    relay.send()
    assert relay.wait_event("deferred")["dsn"] == "4.7.5" and not sink.messages()


def test_each_mechanism_lets_in_who_has_the_password(lab):
    sink = lab.own_sink("--starttls", "--login", "ann:secret", "--login", "bob:other:word")
    for login, password in (("ann", "secret"), ("bob", "other:word"), ("ann", "wrong"), ("eve", "secret"), ("an", "n:secret")):
        good = password in ("secret", "other:word") and login in ("ann", "bob")
        for say in (say_plain, say_scram, _say_login):
            with _secured(sink) as client:
                assert say(client, login, password).code == (235 if good else 535), (say, login, password)
                client.command("MAIL FROM:<a@b.test>", 250 if good else 530)


def say_scram(client, login, password):
    """Log in by SCRAM-SHA-256, with the server's proof checked."""
    return Scram("sha256", login, password).say(client, "SCRAM-SHA-256")


def _say_login(client, login, password):
    client.command("AUTH LOGIN", 334)
    client.command(_base64(login), 334)
    client.send(_base64(password))
    return client.read_reply()


def _base64(text):
    return base64.b64encode(text.encode()).decode()


def test_auth_has_its_place(lab):
    sink = lab.own_sink("--starttls", "--login", "ann:secret")
    with _greeted(sink) as client:
        client.command("AUTH PLAIN AGFubgBzZWNyZXQ=", 538)
        client.command("MAIL FROM:<a@b.test>", 530)
    with _secured(sink) as client:
        client.command("STARTTLS", 503)
        client.command("AUTH CRAM-MD5", 504)
        client.command("AUTH PLAIN", 334)
        client.command("*", 501)
        client.command("AUTH PLAIN !!!", 535)
        client.command("AUTH PLAIN", 334)
        client.command("AGFubgBzZWNyZXQ=", 235)
        client.command("AUTH PLAIN AGFubgBzZWNyZXQ=", 503)
    plain = lab.own_sink()
    with _greeted(plain) as client:
        client.command("STARTTLS", 502)
        client.command("AUTH PLAIN AGFubgBzZWNyZXQ=", 503)


def test_what_comes_in_clear_behind_starttls_is_forgotten(lab):
    sink = lab.own_sink("--starttls", "--delay", "20")
    with _greeted(sink) as client:
        client.send(b"STARTTLS\r\nMAIL FROM:<injected@b.test>\r\n")
        client.expect(220)
        client.shake_hands()
        client.command("EHLO client.test")
        client.command("MAIL FROM:<a@b.test>", 250)
    assert not [line for line in sink.commands("MAIL") if "injected" in line]


def test_greylisting_lets_mail_pass_after_its_time(lab):
    sink = lab.own_sink("--greylist", "1s")
    relay = _relay(lab, sink, minimal_backoff_time="500ms", maximal_backoff_time="1s", queue_run_delay="500ms")
    relay.send(recipients=["a@dest.test"])
    deferred = relay.wait_event("deferred", to="a@dest.test")
    assert deferred["dsn"] == "4.7.1" and "Greylisted" in deferred["reply"]
    relay.wait_event("sent", to="a@dest.test")
    relay.send(recipients=["A@dest.test"])  # the same pair is known
    relay.wait_event("sent", to="A@dest.test")
    with _greeted(sink) as client:
        client.command("MAIL FROM:<from@sender.test>", 250)
        client.command("RCPT TO:<a@dest.test>", 250)
        client.command("RCPT TO:<new@dest.test>", 450)


def test_421_after_so_many_messages_of_a_connection(lab):
    sink = lab.own_sink("--per-connection", "3")
    relay = _relay(lab, sink, transport={"destination_concurrency_limit": 1})
    for number in range(10):
        relay.send(recipients=[f"to{number}@dest.test"])
    relay.wait_event("sent", count=10)
    assert not relay.events("bounced") and len(sink.wait_messages(10)) == 10


def test_the_null_sender_can_be_refused(lab):
    sink = lab.own_sink("--refuse", "mail:<>=550", "--refuse", "<No@dest.test>=551", "--refuse", "*@[IPv6:*=552")
    with _greeted(sink) as client:
        client.command("MAIL FROM:<>", 550)
        client.command("MAIL FROM:<a@from.test>", 250)
        client.command("RCPT TO:<no@dest.test>", 551)
        client.command("RCPT TO:<no@[IPv6:::1]>", 552)
        client.command("RCPT TO:<yes@dest.test>", 250)


@pytest.mark.parametrize("stage,code", (("mail", 421), ("mail", 451), ("rcpt", 452), ("end", 451)))
def test_a_rate_has_its_reply_at_its_stage(lab, stage, code):
    sink = lab.own_sink("--rate", f"2/h={stage}:{code}")
    for _ in range(2):
        with _greeted(sink) as client:
            client.send_mail("a@b.test", ["c@d.test"], b"S: x\r\n\r\nx\r\n")
    with _greeted(sink) as client:
        client.command("MAIL FROM:<a@b.test>", code if stage == "mail" else 250)
        if stage != "mail":
            client.command("RCPT TO:<c@d.test>", code if stage == "rcpt" else 250)
        if stage == "end":
            client.command("DATA", 354)
            client.send(b"S: x\r\n\r\nx\r\n.\r\n")
            client.expect(code)
        if code == 421:
            assert client.wait_closed() == b""
    assert len(sink.messages()) == 2


def test_mail_beyond_a_rate_waits_and_arrives(lab):
    sink = lab.own_sink("--rate", "5/s=mail:421")
    relay = _relay(lab, sink)
    for number in range(15):
        relay.send(recipients=[f"to{number}@dest.test"])
    relay.wait_event("sent", count=15, timeout=120)
    assert not relay.events("bounced")


def test_its_tlsa_record_is_dane_s(lab):
    sink = lab.own_sink("--tlsa", "--name", "mx.sink.test")
    record = f"_{sink.port}._tcp.mx.sink.test. IN TLSA 3 1 1 {sink.fingerprint()}"
    assert record in sink.text()
    assert _fits(sink, sink.fingerprint()) and not _fits(sink, "0" * 64)


def _fits(sink, digest):
    """Say whether OpenSSL finds that the certificate, which nobody has signed, fits such a record."""
    shown = subprocess.run(["openssl", "s_client", "-starttls", "smtp", "-connect", f"{LOOPBACK}:{sink.port}", "-dane_tlsa_domain",
                            "mx.sink.test", "-dane_tlsa_rrdata", f"3 1 1 {digest}"],
                           input=b"QUIT\r\n", capture_output=True, timeout=60, check=False).stdout
    return b"Verify return code: 0 (ok)" in shown


def test_a_certificate_of_a_file_is_shown(lab):
    certificate, key = lab.certificates.host("mx.file.test")
    sink = lab.own_sink("--certificate", certificate, "--key", key)
    assert sink.fingerprint() == lab.certificates.tlsa(certificate).split()[-1].lower()


@pytest.mark.parametrize("words", (
    ["--certificate", "x"], ["--rate", "x"], ["--rate", "1/s=600"], ["--rate", "1/s=data:451"], ["--login", "ann"], ["--login", ":x"],
    ["--greylist", "5"], ["--name", "a b"], ["--per-connection", "0"], ["--refuse", "data:x@dest.test=550"]))
def test_what_makes_no_sense_is_said(words):
    done = subprocess.run([binary(), "sink", *words], capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr


def test_a_certificate_that_can_not_be_read_is_said(tmp_path):
    done = subprocess.run([binary(), "sink", "-l", f"{LOOPBACK}:1", "--certificate", str(tmp_path / "x"), "--key", str(tmp_path / "y")],
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 1 and str(tmp_path / "x").encode() in done.stderr


def test_commands_whose_replies_are_longer_are_all_answered(lab):
    sink = lab.own_sink()
    lines = 20000
    with _greeted(sink) as client:
        sender = threading.Thread(target=client.send, args=(b"\n" * lines,), daemon=True)
        sender.start()
        assert {client.read_reply().code for _ in range(lines)} == {500}
        sender.join()


def _descriptors(sink):
    return len(os.listdir(f"/proc/{sink.process.pid}/fd"))


def test_without_descriptors_clients_wait_and_cost_nothing(lab):
    sink = lab.own_sink()
    used = _descriptors(sink)
    usual, most = resource.prlimit(sink.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(sink.process.pid, resource.RLIMIT_NOFILE, (used + 2, most))
    clients = [Client(LOOPBACK, sink.port) for _ in range(4)]
    wait_until(lambda: "accept: Too many open files" in sink.text(), what="the sink at its end")
    before, counted = cpu_seconds(sink), time.monotonic()
    clients[0].read_reply()
    time.sleep(2)
    assert cpu_seconds(sink) - before < (time.monotonic() - counted) / 10
    assert sink.text().count("accept: Too many open files") == 1
    resource.prlimit(sink.process.pid, resource.RLIMIT_NOFILE, (usual, most))
    assert [client.read_reply().code for client in clients[1:]] == [220] * 3


def test_it_takes_no_more_messages_than_it_is_to_end_after(lab):
    sink = lab.own_sink("--count", "2", "--delay", "3000")  # so long it goes on after the second
    envelope = b"MAIL FROM:<a@b.test>\r\nRCPT TO:<c@d.test>\r\n"
    with Client(LOOPBACK, sink.port) as late, Client(LOOPBACK, sink.port) as client:
        late.send(b"EHLO late.test\r\n" + envelope + b"DATA\r\n")
        wait_until(lambda: sink.commands("DATA"), what="a transaction")
        client.send(b"EHLO client.test\r\n" + (envelope + b"BDAT 3 LAST\r\nx\r\n") * 2 + envelope)
        sink.wait_messages(2)
        late.send(b"x\r\n.\r\n")
        assert [late.read_reply().code for _ in range(6)] == [220, 250, 250, 250, 354, 421]
        assert [client.read_reply().code for _ in range(9)] == [220] + [250] * 7 + [421]
    assert sink.process.wait() == 0
    assert len(sink.messages()) == 2 and "-- 2 messages, 2 recipients" in sink.text()


def test_who_is_turned_away_does_not_count_for_the_limit(lab):
    sink = lab.own_sink("--limit", "1", "--delay", "2000")
    served = Client(LOOPBACK, sink.port)
    served.expect(220)
    before = _descriptors(sink)
    with Client(LOOPBACK, sink.port):  # who has to wait for its 421
        wait_until(lambda: _descriptors(sink) == before + 1, what="the one that is turned away")
        served.close()
        wait_until(lambda: _descriptors(sink) == before, what="the end of the one that was served")
        with Client(LOOPBACK, sink.port) as client:
            client.expect(220)
    sink.close()
    assert "3 connections (at most 1 at once, 1 turned away)" in sink.text()
