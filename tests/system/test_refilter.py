# SPDX-License-Identifier: ISC
"""Held mail passes the filters again when the operator wants it so: what comes of it, and what stays as it was."""

import base64
import json
import re
import socket
import subprocess
import threading
import time

import pytest

from lab import milter as m
from lab.config import Config
from lab.dkim_verifiers import DkimPy, algorithms
from lab.milter import Milter, packet, texts
from lab.net import wait_until
from lab.sink import Rule

DONE, REFUSED, UNREACHABLE = 0, 1, 75
HOLD = packet(b"q", texts("looks odd")) + packet(m.CONTINUE)
MARK = m.add_header("X-Seen", "yes") + packet(m.CONTINUE)
CONTENT = b"From: <a@sender.test>\r\nSubject: one\r\n\r\nHello.\r\n"


def _keys(folder):
    """A key of each kind with its record: how to make it, its name, and what the record says of it."""
    sections, records = "", {}
    for name, words in (("rsa", ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]), ("ed25519", ["-algorithm", "ED25519"])):
        path = f"{folder}/{name}.pem"
        subprocess.run(["openssl", "genpkey", *words, "-out", path], check=True, capture_output=True)
        der = subprocess.run(["openssl", "pkey", "-in", path, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
        key = base64.b64encode(der if name == "rsa" else der[-32:]).decode()
        records[f"{name}._domainkey.sender.test"] = f"v=DKIM1; k={name}; p={key}"
        sections += f'dkim "sender.test" {{ selector = "{name}"  key = "{path}"  expire = 30d }}\n'
    return sections, records


class World:
    """A relay that signs for sender.test, whose one listener asks the first of two filters."""

    def __init__(self, lab, timeout="60s", in_rows=False):
        self.one, self.two = Milter(), Milter()
        lab.callback(self.one.close)
        lab.callback(self.two.close)
        self.sink = lab.sink()
        folder = lab.folder("keys")
        sections, self.records = _keys(folder)
        config = Config({"workers": 1}, queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}).route_all_to(self.sink.port)
        if in_rows:
            with open(f"{folder}/rows", "w", encoding="ascii") as rows:
                rows.write(f"sender.test rsa {folder}/rsa.pem, ed25519 {folder}/ed25519.pem\n")
            sections, config.settings["dkim_keys"] = "", [f"{folder}/rows"]
        config.listeners = {"asks": {"milters": ["one"]}, "free": {"milters": []}}
        filters = (("one", self.one, "accept"), ("two", self.two, "reject"))
        config.extra = sections + "".join(
            f'milter "{name}" {{ address = "{milter.address}"  timeout = {timeout}  default_action = "{action}" }}\n'
            for name, milter, action in filters)
        self.relay = lab.relay(config)

    def listed(self, *words):
        """The queue, as objects."""
        return [json.loads(line) for line in self.relay.command("queue", "list", "--json", *words).stdout.splitlines()]

    def held(self):
        """The ids of what is on hold."""
        return [message["id"] for message in self.listed("--queue", "hold")]

    def hold(self, content=CONTENT, count=1, **mail):
        """Have the first filter hold messages; return their ids."""
        before = self.held()
        self.one.behave({"E": HOLD})
        with self.relay.client("asks") as client:
            client.greet()
            for _ in range(count):
                client.send_mail(
                    mail.get("sender", "a@sender.test"), mail.get("recipients", ["b@dest.test"]), content, mail_params=mail.get("params", "")
                )
        self.one.behave()
        self.two.behave()
        return [one for one in self.held() if one not in before]

    def refilter(self, *words):
        """Release by way of the filters."""
        return self.relay.command("queue", "release", "--refilter", *words)

    def outcome(self, ident):
        """What the log says came of it."""
        return self.relay.wait_event("refiltered", id=ident)


@pytest.fixture(scope="module")
def world(module_lab):
    return World(module_lab)


@pytest.fixture(autouse=True)
def _tidy(world):
    yield
    world.sink.behaviour.rules.clear()
    world.relay.command("queue", "delete", "--all")
    wait_until(lambda: not world.listed(), what="the queue to be empty")


def test_what_passes_is_released_as_it_is(world):
    (ident,) = world.hold()
    before, shown = len(world.sink.messages), world.relay.command("queue", "show", ident, "--headers", "--body").stdout
    done = world.refilter(ident)
    assert (done.returncode, done.stdout, done.stderr) == (DONE, "1 message released\n", "")
    message = world.sink.wait_messages(before + 1)[-1]
    assert message.content.decode().replace("\r\n", "\n") == shown
    assert world.outcome(ident)["result"] == "passed"
    wait_until(lambda: not world.listed(), what="the queue to be empty")
    assert [one.conversations[0].all(b"H")[0] for one in (world.one, world.two)] == [b"relay.test\0"] * 2
    said = world.two.conversations[0]
    assert said.all(b"C")[0].startswith(b"localhost\x004") and said.all(b"R") == [texts("<b@dest.test>")]
    assert said.macros[b"E"][b"i"].decode() == ident
    assert not [field for field in said.all(b"L") if field.startswith(b"Received\0")]


def test_what_rows_had_signed_is_signed_again(lab):
    world = World(lab, in_rows=True)
    (ident,) = world.hold()
    world.two.behave({"E": m.change_header(1, "Subject", "two") + packet(m.CONTINUE)})
    assert world.refilter(ident).returncode == DONE
    content = world.sink.wait_messages(1)[0].content
    assert b"Subject: two\r\n" in content and sorted(algorithms(content)) == [b"ed25519", b"rsa"]
    assert not DkimPy(world.records).broken(content)


def test_what_filters_change_takes_its_place_and_is_signed_again(world):
    (ident,) = world.hold()
    (was,) = world.listed()
    world.two.behave({"E": m.change_header(1, "Subject", "two") + MARK})
    before = len(world.sink.messages)
    done = world.refilter(ident)
    new = world.outcome(ident)["as"]
    assert (done.returncode, done.stdout) == (DONE, f"{ident}: changed by filters, and released as {new}\n1 message released\n")
    message = world.sink.wait_messages(before + 1)[-1]
    assert b"Subject: two\r\n" in message.content and b"X-Seen: yes\r\n" in message.content
    assert sorted(algorithms(message.content)) == [b"ed25519", b"rsa"]
    assert not DkimPy(world.records).broken(message.content)
    assert world.relay.wait_event("queued", id=new, refilter_of=ident)["signed"]
    wait_until(lambda: not world.listed(), what="the queue to be empty")
    assert was["id"] == ident != new


def test_what_was_for_later_still_is(world):
    """Whether filters have changed it or not."""
    (same, other) = world.hold(count=2, params=" HOLDFOR=3600")
    times = {one["not_before"] for one in world.listed()}
    assert world.refilter(same).returncode == DONE
    world.two.behave({"E": m.change_header(1, "Subject", "two") + MARK})
    assert world.refilter(other).returncode == DONE
    new = world.outcome(other)["as"]
    listed = world.listed()
    assert {one["id"] for one in listed} == {same, new}
    assert {one["queue"] for one in listed} == {"deferred"}
    assert {one["not_before"] for one in listed} == {one["due"] for one in listed} == times
    assert world.relay.command("queue", "show", new, "--headers").stdout.count("DKIM-Signature:") == 2  # those before are gone


@pytest.mark.parametrize("forged", [False, True])
def test_what_we_had_not_signed_is_not_signed(world, forged):
    """A client may put any signature in front of its mail; where it is none of ours, nothing becomes one."""
    (ident,) = world.hold()
    shown = world.relay.command("queue", "show", ident, "--headers").stdout.replace("\n", "\r\n").encode()
    field = re.search(rb"DKIM-Signature:.*?\r\n(?=\S)", shown, re.S).group(0)
    world.relay.command("queue", "delete", ident)
    ours = re.sub(rb"b=[^;]*\r\n$", b"b=AAAA\r\n", field, flags=re.S)
    content = CONTENT.replace(b"a@sender.test", b"a@other.test")
    (ident,) = world.hold((ours if forged else b"") + content)
    world.two.behave({"E": m.change_header(1, "From", "<a@sender.test>") + MARK})
    before = len(world.sink.messages)
    assert world.refilter(ident).returncode == DONE
    assert len(algorithms(world.sink.wait_messages(before + 1)[-1].content)) == forged


def test_the_body_of_a_large_message(world):
    (ident,) = world.hold(CONTENT + b"a line of it\r\n" * 100000)
    new = b"0123456789abcdef" * 64 + b"\r\n"
    world.one.behave({"E": m.replace_body(new * 300) + packet(m.CONTINUE)})
    before = len(world.sink.messages)
    assert world.refilter(ident).returncode == DONE
    content = world.sink.wait_messages(before + 1)[-1].content
    assert content.split(b"\r\n\r\n", 1)[1] == new * 300 == b"".join(world.two.conversations[0].all(b"B"))
    assert not DkimPy(world.records).broken(content)
    (ident,) = world.hold(CONTENT + b"a line of it\r\n" * 100000)
    assert world.refilter(ident).stdout == "1 message released\n"
    assert world.sink.wait_messages(before + 2)[-1].content.endswith(b"a line of it\r\n" * 100000)


NO = {
    "refused": ({"E": m.reply("550 5.7.9 No such mail")}, "two says 550 5.7.9 No such mail"),
    "a recipient refused": ({"R": packet(m.REJECT)}, "two says 550 5.7.1 Command rejected"),
    "later": ({"B": packet(m.TEMPFAIL)}, "two says 451 4.7.1 Service unavailable - try again later"),
    "held": ({"E": MARK[:-5] + HOLD}, "two wants it held: looks odd"),
    "hung": ({"E": b""}, "two says 451 4.7.1 Service unavailable - try again later"),
}


@pytest.mark.parametrize("how", NO)
def test_what_a_filter_does_not_let_through_stays_on_hold(request, lab, how):
    world = World(lab, timeout="3s") if how == "hung" else request.getfixturevalue("world")
    answers, says = NO[how]
    (ident,) = world.hold()
    was, shown = world.listed(), world.relay.command("queue", "show", ident, "--headers", "--body").stdout
    world.two.behave(answers)
    done = world.refilter(ident)
    assert (done.returncode, done.stderr) == (REFUSED, f"sluice: {ident}: still on hold: {says}\n")
    assert done.stdout == "0 messages released\n1 still on hold\n"
    assert world.outcome(ident)["result"] == "held"
    assert world.listed() == was and world.relay.command("queue", "show", ident, "--headers", "--body").stdout == shown
    world.two.behave()
    assert world.refilter(ident).stdout == "1 message released\n"


def test_a_filter_that_is_away_has_not_let_it_through(world):
    """Whatever its default_action says: that of the first one is to accept."""
    (ident,) = world.hold()
    world.one.stop()
    done = world.refilter(ident)
    world.one.start()
    assert done.stderr == f"sluice: {ident}: still on hold: one says 451 4.7.1 Service unavailable - try again later\n"
    assert world.held() == [ident]
    world.relay.command("queue", "delete", ident)

    def asks():
        (ident,) = world.hold(b"X-Again: 1\r\n" + CONTENT) or [None]
        return ident

    wait_until(asks, 60, "the filter to be asked again")


def test_a_filter_that_another_thread_finds_well_is_asked_at_once(world):
    """The one that had failed would have left it alone for the longer the more often it failed."""
    (ident,) = world.hold()
    world.one.stop()
    failed = "it could not be reached just now"
    begun = time.monotonic()
    while time.monotonic() - begun < 4:  # 0.1 s, 0.2, ... 1.6, and most of 3.2
        assert world.refilter(ident).returncode == REFUSED
        time.sleep(0.05)
    world.one.start()
    (second,) = world.hold()
    assert world.refilter(second).stdout == "1 message released\n"
    assert world.outcome(second)
    assert world.relay.events("filter", milter="one", id=ident, reason=failed)
    assert not world.relay.events("filter", milter="one", id=second, reason=failed)


@pytest.mark.parametrize("how", ["discarded", "nobody left"])
def test_what_filters_want_dropped_is_deleted(world, how):
    (ident,) = world.hold()
    world.two.behave({"E": packet(m.DISCARD) if how == "discarded" else packet(b"-", texts("b@dest.test")) + packet(m.CONTINUE)})
    before = len(world.sink.messages)
    done = world.refilter(ident)
    says = "two wants it discarded" if how == "discarded" else "filters have left no recipient"
    assert (done.stdout, done.stderr) == ("0 messages released\n1 deleted, as filters want it\n", f"sluice: {ident}: deleted: {says}\n")
    assert done.returncode == DONE and not world.listed() and len(world.sink.messages) == before


def test_recipients_that_are_done_are_left_out(world):
    world.sink.behaviour.rules.append(Rule("rcpt", "451 4.2.1 Later", pattern="late"))
    before = len(world.sink.messages)
    with world.relay.client("free") as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test> RET=HDRS ENVID=x")
        client.command("RCPT TO:<now@dest.test>")
        client.command("RCPT TO:<late@dest.test> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;first@dest.test")
        client.command("DATA", 354)
        client.send(CONTENT + b".\r\n")
        client.expect(250)
    wait_until(lambda: world.listed("--queue", "deferred"), what="it to be put off")
    world.sink.behaviour.rules.clear()
    (was,) = world.listed()
    world.relay.command("queue", "hold", was["id"])
    world.two.behave({"E": MARK})
    world.sink.behaviour.rules.append(Rule("rcpt", "451 4.2.1 Later", times=1))
    assert world.refilter(was["id"]).returncode == DONE
    assert world.two.conversations[0].all(b"R") == [texts("<late@dest.test>")]
    new = world.outcome(was["id"])["as"]
    wait_until(lambda: world.listed("--queue", "deferred"), what="it to be put off")
    (now,) = world.listed()
    assert (now["id"], now["arrived"], [one["to"] for one in now["rcpts"]]) == (new, was["arrived"], ["late@dest.test"])
    world.relay.command("queue", "flush", new)
    message = world.sink.wait_messages(before + 2)[-1]
    assert message.recipients == ["late@dest.test"]
    assert (message.sender_params["RET"], message.sender_params["ENVID"]) == ("HDRS", "x")
    (params,) = message.recipient_params.values()
    assert params == {"NOTIFY": "SUCCESS,FAILURE", "ORCPT": "rfc822;first@dest.test"}


def test_all_of_many_a_few_at_a_time(world):
    ids = world.hold(count=60)
    assert len(ids) == 60
    under_way, most, lock, full = [0], [0], threading.Lock(), threading.Event()

    def answer(_conversation, _data):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            if most[0] == 20:
                full.set()
        full.wait(30)
        time.sleep(0.02)  # one more would come meanwhile
        with lock:
            under_way[0] -= 1
        return MARK

    world.two.behave({"E": answer})
    before = len(world.sink.messages)
    done = world.refilter("--all")
    assert done.returncode == DONE and done.stdout.endswith("\n60 messages released\n")
    messages = world.sink.wait_messages(before + 60)[before:]
    assert all(message.content.count(b"X-Seen: yes\r\n") == 1 for message in messages)
    assert most[0] == 20
    wait_until(lambda: not world.listed(), what="the queue to be empty")


def test_which_messages(world):
    first, second = world.hold(sender="x@sender.test")[0], world.hold(sender="y@sender.test")[0]
    done = world.refilter("--from", "x@*")
    assert done.stdout == "1 message released\n" and world.held() == [second]
    world.relay.wait_event("done", id=first)
    done = world.refilter(first, second)
    assert (done.returncode, done.stderr) == (REFUSED, f"sluice: {first}: no such message in the queue\n")
    assert done.stdout == "1 message released\n1 not found\n"
    wait_until(lambda: not world.listed(), what="the queue to be empty")
    world.sink.behaviour.rules.append(Rule("rcpt", "451 4.2.1 Later"))
    world.relay.send(sender="a@sender.test")
    wait_until(lambda: world.listed("--queue", "deferred"), what="it to be put off")
    (waits,) = world.listed()
    assert world.refilter(waits["id"]).stderr == f"sluice: {waits['id']}: not held\n"
    assert world.refilter("--all").stdout == "0 messages released\n"


def test_an_operator_who_leaves_and_one_who_deletes_meanwhile(world):
    gate = threading.Event()

    def wait(_conversation, _data):
        gate.wait(30)
        return MARK

    ids = world.hold(count=30)
    world.two.behave({"E": wait})
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(f"{world.relay.spool}/control")
        control.sendall(b"".join(b"=" + word.encode() + b"\0" for word in ["queue", "release", "--refilter", "--all"]) + b"\0")
        world.two.wait_said(b"E")
    deleted = world.relay.command("queue", "delete", ids[0])
    assert deleted.stdout == "1 message deleted\n"
    gate.set()
    wait_until(lambda: len(world.relay.events("refiltered")) >= 1 and all(
        world.relay.events("refiltered", id=one) for one in ids[1:2]), what="those under way to come to an end")
    assert world.relay.wait_event("refiltered", id=ids[0])["result"] == "held"
    wait_until(lambda: 0 < len(world.held()) < 30 and not world.listed("--queue", "active"), what="the queue to be quiet")
    assert ids[0] not in world.held()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_relay_ends_while_filters_look(lab, how):
    world = World(lab)
    ids = world.hold(CONTENT + b"a line of it\r\n" * 50000, count=3)
    world.two.behave({"E": b""})
    order = threading.Thread(target=world.refilter, args=["--all"])
    order.start()
    world.two.wait_said(b"E")
    world.relay.stop() if how == "stop" else world.relay.kill()
    order.join()
    done = world.relay.command("queue", "release", "--refilter", "--all")
    assert done.returncode == UNREACHABLE and "no filter asked" in done.stderr
    world.two.behave()
    world.relay.start()
    wait_until(lambda: world.held() == ids, what="them to be there")
    assert world.refilter("--all").stdout == "3 messages released\n"
    world.sink.wait_messages(3)


def test_a_drain_lets_nobody_wait(lab):
    world = World(lab)
    (ident,) = world.hold()
    world.two.behave({"E": b""})
    said = []
    order = threading.Thread(target=lambda: said.append(world.refilter(ident)))
    order.start()
    world.two.wait_said(b"E")
    assert world.relay.command("stop", "--drain").returncode == DONE
    order.join()
    assert said[0].returncode == REFUSED and "the relay is stopping" in said[0].stderr
    world.relay.wait_ended()


def test_what_it_is_not_for(lab):
    relay = lab.relay(Config({"workers": 1}))
    done = relay.command("queue", "release", "--refilter", "--all")
    assert (done.returncode, done.stderr) == (REFUSED, "sluice: no filter is configured, which --refilter would ask\n")
    assert "--refilter belongs to release" in relay.command("queue", "flush", "--refilter", "--all").stderr
