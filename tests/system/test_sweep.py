# SPDX-License-Identifier: ISC
"""Next hops that each dislike one thing, and mean well: nothing is returned or put off by any of them.

One relay sends to all of them at once, on one connection to each. They greet when it has taken on all, so
that there is always more to send.
"""

import collections
import threading

import pytest

from lab.behaviour import EVERYTHING
from lab.config import Config
from lab.sink import Rule
from lab.smtp import Client, stuff

ONE_CONNECTION = {"smtp": {"host_connection_limit": 1, "connection_limit": 0}}
NO_CHUNKS = tuple(name for name in EVERYTHING if name != "CHUNKING")

REFUSALS = ("450 4.3.2 later", "451 later", "452 4.5.0 no", "500 5.5.2 what", "501 what",
            "502 5.5.1 what", "503 5.5.1 bad sequence", "504 what", "554 5.5.0 no", "554 no")
AHEAD = {  # what is refused when it comes ahead of its turn, and what the host announces
    "MAIL": ("mail", NO_CHUNKS), "RCPT": ("rcpt", NO_CHUNKS), "DATA": ("data", NO_CHUNKS),
    "MAIL behind a chunk": ("mail", EVERYTHING), "RCPT behind a chunk": ("rcpt", EVERYTHING),
    "RSET behind a chunk": ("rset", EVERYTHING), "a chunk": ("end", EVERYTHING),
}
DOUBT = {  # who says so to a chunk may have read it as commands; to RSET, may have meant the chunk
    "a chunk": ("500", "502"), "RSET behind a chunk": ("450", "451", "452", "554"),
}
SLOW_END = Rule("end", delay=0.003)  # so that something rides behind it


def _send(relay, domains, count):
    with Client("127.0.0.1", relay.port, 30.0) as client:
        client.greet()
        for number in range(count):
            for domain in domains:
                client.command("MAIL FROM:<from@sender.test>", 250)
                client.command(f"RCPT TO:<a{number}@{domain}>", 250)
                client.command(f"RCPT TO:<b{number}@{domain}>", 250)
                client.command("DATA", 354)
                client.send(stuff(f"Subject: {number}\r\n\r\ncaf\xe9\r\n".encode("latin-1")))
                client.expect(250)


def _sweep(lab, sinks, count=12, transports=None):
    """Send so many messages of two recipients to each sink; check that each has them once."""
    config = Config(transports=transports or ONE_CONNECTION)
    domains = {f"d{number}.test": what for number, what in enumerate(sinks)}
    for domain, what in domains.items():
        config.routes[domain] = {"relay": [f"[127.0.0.1]:{sinks[what].port}"]}
    gate = threading.Event()
    for sink in sinks.values():
        sink.behaviour.rules.append(Rule("connect", gate=gate))
    relay = lab.relay(config)
    _send(relay, domains, count)
    gate.set()
    relay.wait_event("done", 60, count=count * len(sinks))
    spoiled = [(event.name, domains.get(event["to"].split("@")[1]), event["reply"])
               for name in ("bounced", "deferred", "in_doubt") for event in relay.events(name)]
    assert not spoiled
    for domain, what in domains.items():
        came = collections.Counter(one for sent in sinks[what].messages for one in sent.recipients)
        assert came == {f"{who}{n}@{domain}": 1 for who in "ab" for n in range(count)}, what
    return relay


@pytest.mark.parametrize("what", AHEAD)
def test_refusals_ahead_of_their_turn(lab, what):
    stage, extensions = AHEAD[what]
    sinks = {reply: lab.sink(Rule(stage, reply, early=True), SLOW_END, extensions=extensions)
             for reply in REFUSALS if reply[:3] not in DOUBT.get(what, ())}
    relay = _sweep(lab, sinks)
    struck = sum(sink.behaviour.rules[0].seen > 0 for sink in sinks.values())
    modes = [one["mode"] for one in relay.events("host") if "mode" in one.keys]
    assert struck > len(sinks) // 2
    assert "full" not in modes and (what.startswith("RSET") or len(modes) >= struck // 2)


def test_a_refusal_and_a_close_ahead_of_their_turn(lab):
    sinks = {
        f"{stage}: {reply}": lab.sink(
            Rule(stage, reply, early=True, close=True), SLOW_END, extensions=NO_CHUNKS)
        for stage in ("mail", "rcpt", "data")
        for reply in ("503 5.5.1 bad sequence", "521 5.5.1 protocol error", "554 no", "451 later")
    }
    sinks["mail: 421"] = lab.sink(
        Rule("mail", "421 4.5.0 no", early=True, close=True), SLOW_END, extensions=NO_CHUNKS)
    _sweep(lab, sinks)


@pytest.mark.parametrize("reply", ("421 4.7.0 enough", "452 4.5.3 enough", "450 enough"))
def test_limits_of_messages_a_connection(lab, reply):
    sinks = {
        f"{limit}, {len(extensions)}": lab.sink(
            messages_per_connection=limit, limit_reply=reply, extensions=extensions)
        for limit in (1, 2, 5, 100) for extensions in (EVERYTHING, NO_CHUNKS, ())
    }
    _sweep(lab, sinks, 25)


def test_a_limit_of_a_hundred_messages_a_connection(lab):
    sinks = {"chunks": lab.sink(messages_per_connection=100, limit_reply="452 4.5.3 enough"),
             "data": lab.sink(messages_per_connection=100, limit_reply="452 4.5.3 enough",
                              extensions=NO_CHUNKS)}
    relay = _sweep(lab, sinks, 250)
    assert {one["messages"] for one in relay.events("host", state="limited")} == {"100"}


def test_limits_that_are_announced(lab):
    sinks = {text: lab.sink(extensions=EVERYTHING + (f"LIMITS {text}",), **behaviour)
             for text, behaviour in (
                 ("RCPTMAX=1", {}), ("RCPTDOMAINMAX=1", {}),
                 ("MAILMAX=3", {"messages_per_connection": 3}),
                 ("RCPTMAX=1 MAILMAX=5", {"messages_per_connection": 5}))}
    relay = _sweep(lab, sinks)
    assert max(len(one.recipients) for one in sinks["RCPTMAX=1"].messages) == 1
    assert not relay.events("host", state="limited")  # nothing had to be found out
    for text, most in (("MAILMAX=3", 3), ("RCPTMAX=1 MAILMAX=5", 5)):
        verbs = [session.verbs().count("MAIL") for session in sinks[text].sessions]
        assert max(verbs) == most


def test_extensions_missing_or_refused(lab):
    sinks = {
        f"no {missing}": lab.sink(extensions=tuple(one for one in EVERYTHING if one != missing))
        for missing in EVERYTHING
    }
    sinks["nothing"] = lab.sink(extensions=())
    sinks["EHLO refused"] = lab.sink(Rule("ehlo", "502 5.5.1 what"))
    for reply in (one for one in REFUSALS if one.startswith("50")):
        sinks[f"BDAT: {reply}"] = lab.sink(Rule("end", reply, times=1), SLOW_END)
    context = lab.certificates.server_context("mx.test")
    for reply in REFUSALS:
        sinks[f"STARTTLS: {reply}"] = lab.sink(Rule("starttls", reply), tls=context)
    _sweep(lab, sinks, 5)


def test_any_first_digit_of_consent(lab):
    sinks = {}
    for code in (300, 350, 351, 352, 353, 355, 399):
        sinks[f"DATA: {code}"] = lab.sink(Rule("data", f"{code} go on"), extensions=NO_CHUNKS)
    for stage in ("mail", "rcpt", "end", "rset"):
        for code in (200, 255, 299):
            sinks[f"{stage}: {code}"] = lab.sink(Rule(stage, f"{code} ok"))
    _sweep(lab, sinks, 4)
