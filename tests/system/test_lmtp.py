# SPDX-License-Identifier: ISC
"""LMTP to a real Dovecot and to scripted hosts, over TCP and Unix sockets."""

import json
import re
import threading

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.mailstore import MailStore
from lab.net import open_folder, wait_until
from lab.report import Report
from lab.report import Report

STORE = {"store": {"like": "smtp", "protocol": "lmtp"}}
USERS = {"ann": "", "bob": "", "full": "full", "bad": "nowhere"}
LHLO = "250-host.test\r\n250-PIPELINING\r\n250 ENHANCEDSTATUSCODES\r\n"
MANY = 60


def _mailstore(lab):
    store = MailStore(lab.enter_context(open_folder("sluice-")), USERS)
    lab.callback(store.close)
    return store.start()


def _config(*relays, **queue):
    return Config(transports={"smtp": {}} | STORE, queue=queue,
                  routes={"store.test": {"transport": "store", "relay": list(relays)}})


def _to(*names):
    return [f"{name}@store.test" for name in names]


def _sent(relay, names):
    return {one["to"].partition("@")[0] for one in relay.events("sent")} >= set(names)


def _check_partial(relay, mailbox, peer):
    relay.send(recipients=_to("ann", "full", "bad", "nobody"))
    sent = relay.wait_event("sent", to="ann@store.test")
    assert (sent["dsn"], sent["relay"]) == ("2.0.0", peer)
    assert relay.wait_event("deferred", to="bad@store.test")["dsn"] == "4.2.0"
    assert relay.wait_event("bounced", to="full@store.test")["dsn"] == "5.2.2"
    assert relay.wait_event("bounced", to="nobody@store.test")["dsn"] == "5.1.1"
    report = Report(mailbox.wait_messages(1)[0].content)
    assert report.recipient("full@store.test")["status"] == "5.2.2"
    assert report.recipient("nobody@store.test")["status"] == "5.1.1"
    assert len(report.recipients) == 2


def _check_names(relay, peer):
    """The same spelling everywhere."""
    assert relay.events("sent")[0]["site"] == peer
    assert f"\n  {peer} " in relay.command("dest", "list").stdout
    shown = json.loads(relay.command("dest", "show", peer, "--json").stdout.splitlines()[0])
    assert shown["hosts"][0]["address"] == peer
    routed = relay.command("route", "ann@store.test").stdout
    assert f"next hop {peer}\n" in routed and f"host   {peer}," in routed
    assert relay.command("dest", "suspend", peer).returncode == 0
    relay.send(recipients=_to("ann"))
    waiting = relay.wait_event("deferred", to="ann@store.test")
    assert "suspended by the operator" in waiting["reply"] and waiting["site"] == peer
    assert peer in relay.command("explain", peer).stdout
    relay.command("dest", "resume", peer)
    wait_until(lambda: len(relay.events("sent", to="ann@store.test")) == 2, 60, "resumed mail")


def test_dovecot_answers_for_each_recipient(lab):
    store, mailbox = _mailstore(lab), lab.sink()
    config = _config(store.relay)
    config.routes["sender.test"] = {"relay": [f"[127.0.0.1]:{mailbox.port}"]}
    relay = lab.relay(config)
    _check_partial(relay, mailbox, store.relay)
    _check_names(relay, store.relay)
    relay.restart()
    assert relay.command("dest", "show", store.relay).returncode == 0
    assert len(store.mailbox("ann")) == 2


@pytest.mark.parametrize("way", ("socket", "port"))
def test_messages_in_flight_arrive_once_each(lab, way):
    store = _mailstore(lab)
    config = _config(store.relay if way == "socket" else f"[127.0.0.1]:{store.port}")
    config.transports["smtp"]["destination_concurrency_limit"] = 2
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        for number in range(MANY):
            client.send_mail("from@sender.test", _to("ann", "bob"), f"Subject: {number}\r\n\r\nx\r\n".encode())
    relay.wait_event("done", 60, count=MANY)
    assert len(relay.events("sent")) == 2 * MANY and not relay.events("in_doubt") + relay.events("deferred")
    for user in ("ann", "bob"):
        subjects = {one.partition(b"Subject: ")[2].partition(b"\n")[0] for one in store.mailbox(user)}
        assert subjects == {str(number).encode() for number in range(MANY)} and len(store.mailbox(user)) == MANY


def _conversation(*after):
    return [("send", b"220 host.test LMTP\r\n"), ("expect", rb"LHLO [^\r]*\r\n"), ("send", LHLO.encode()),
            ("expect", rb"DATA\r\n"), ("send", b"250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n354 go\r\n"),
            ("expect", rb"\r\n\.\r\n"), *after]


def test_a_close_between_the_replies_leaves_the_others_in_doubt(lab):
    host = lab.script(_conversation(("send", b"250 2.0.0 kept\r\n"), ("close",)), [("close",)])
    relay = lab.relay(_config(f"[127.0.0.1]:{host.port}"))
    relay.send(recipients=_to("ann", "bob"))
    assert relay.wait_event("in_doubt")["to"] == "bob@store.test"
    assert relay.wait_event("sent")["to"] == "ann@store.test"


def test_a_socket_that_is_not_there_is_backed_off_and_smtp_goes_over_it_too(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    path = f"{folder}/smtp"
    config = Config(routes={"*": {"relay": [f"unix:{path}"]}}, queue={"minimal_backoff_time": "100ms"})
    config.transports["smtp"] = {"tls": "required"}
    relay = lab.relay(config)
    relay.send()
    reply = relay.wait_event("deferred")["reply"]
    assert reply.startswith(f"connect to unix:{path}: ") and "No such file" in reply
    assert relay.wait_event("host", state="out")["host"] == f"unix:{path}"
    lab.script([("send", b"220 x\r\n"), ("expect", rb"EHLO [^\r]*\r\n"), ("send", b"250-x\r\n250 STARTTLS\r\n"),
                ("expect", rb"MAIL [^\r]*\r\n"), ("send", b"250 ok\r\n"), ("expect", rb"RCPT [^\r]*\r\n"),
                ("send", b"250 ok\r\n"), ("expect", rb"DATA\r\n"), ("send", b"354 go\r\n"),
                ("expect", rb"\r\n\.\r\n"), ("send", b"250 2.0.0 kept\r\n"), ("drain",)], path=path)
    relay.command("queue", "flush", "--all")
    assert relay.wait_event("sent", 60)["relay"] == f"unix:{path}"


def _send_asking_for_success(relay, *others):
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>", 250)
        client.command("RCPT TO:<ann@store.test> NOTIFY=SUCCESS", 250)
        for to in others:
            client.command(f"RCPT TO:<{to}>", 250)
        client.command("DATA", 354)
        client.send(b"Subject: x\r\n\r\n.\r\n")
        client.expect(250)


@pytest.mark.parametrize("extensions", [("PIPELINING",), ("PIPELINING", "DSN")])
def test_success_is_delivery_unless_the_host_reports_it(lab, extensions):
    host, mailbox = lab.sink(lmtp=True, extensions=extensions), lab.sink()
    config = _config(f"[127.0.0.1]:{host.port}")
    config.routes["sender.test"] = {"relay": [f"[127.0.0.1]:{mailbox.port}"]}
    relay = lab.relay(config)
    _send_asking_for_success(relay)
    relay.wait_event("done")
    if "DSN" in extensions:
        assert not relay.events("queued", report_of=re.compile("."))
        return
    message = mailbox.wait_messages(1)[0]
    assert Report(message.content).recipient("ann@store.test")["action"] == "delivered"
    assert b"Subject: Mail delivered" in message.content and b"has been delivered to" in message.content


def test_success_is_delivery_also_when_its_report_comes_after_a_restart(lab):
    gate = threading.Event()
    host, mailbox = lab.sink(lmtp=True, extensions=("PIPELINING",)), lab.sink()
    slow = lab.sink(Rule("rcpt", gate=gate, times=1))
    config = _config(f"[127.0.0.1]:{host.port}")
    config.routes["sender.test"] = {"relay": [f"[127.0.0.1]:{mailbox.port}"]}
    config.routes["slow.test"] = {"relay": [f"[127.0.0.1]:{slow.port}"]}
    relay = lab.relay(config)
    _send_asking_for_success(relay, "to@slow.test")
    relay.wait_event("sent", to="ann@store.test")
    relay.stop()
    gate.set()
    relay.start()
    assert Report(mailbox.wait_messages(1)[0].content).recipient("ann@store.test")["action"] == "delivered"
