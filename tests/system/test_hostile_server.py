# SPDX-License-Identifier: ISC
"""Next hops that are broken or hostile: what becomes of the mail, the connection, the relay."""

import dataclasses
import datetime
import email
import email.policy
import re
import socket
import time

import pytest

from lab.config import Config
from lab.net import blackhole, free_port, wait_until
from lab.sink import Rule

pytestmark = pytest.mark.one_thread  # one connection, one thread: who talks is the host

STOP, LEAVE = object(), object()
OUTCOMES = ("sent", "deferred", "bounced", "in_doubt")
LINES = tuple(f"{name}_timeout" for name in (
    "greeting", "helo", "starttls", "mail", "rcpt", "data_init", "data_block", "data_done", "rset",
    "quit",
))


# Scripts.


def _said(answer):
    """Return the steps of an answer: text is a line, bytes are exact, a list is steps already."""
    if isinstance(answer, list):
        return answer
    return [("send", answer.encode("utf-8") + b"\r\n" if isinstance(answer, str) else answer)]


def talk(
    *, greeting="220 mx.test ESMTP", ehlo="250 mx.test", mail="250 ok", rcpt="250 ok",
    data="354 go on", end="250 stored", after=(("polite",),),
):
    """Return the script of a server without extensions. STOP ends it: what comes is read and never
    answered, so that the relay has to close; LEAVE: all further commands are answered."""
    script = []
    for pattern, answer in (
        (None, greeting), (r"EHLO [^\r]*\r\n", ehlo), (r"MAIL FROM:[^\r]*\r\n", mail),
        (r"RCPT TO:[^\r]*\r\n", rcpt), (r"DATA\r\n", data), (r"\r\n\.\r\n", end),
    ):
        if answer is STOP:
            return script + [("drain",)]
        if answer is LEAVE:
            return script + [("polite",)]
        script += ([("expect", pattern)] if pattern else []) + _said(answer)
    return script + list(after)


def pipelined(replies, after=(("drain",),)):
    """Return the script of a server that answers MAIL, RCPT and DATA in one go."""
    hello = talk(ehlo="250-mx.test\r\n250 PIPELINING", mail=STOP)[:-1]
    return hello + [("expect", r"DATA\r\n")] + _said(replies) + list(after)


def injected(steps):
    """Return the script of a server that offers STARTTLS and answers it so."""
    hello = talk(ehlo="250-mx.test\r\n250 STARTTLS", mail=STOP)[:-1]
    return hello + [("expect", r"STARTTLS\r\n")] + _said(steps) + [("drain",)]


# Cases: one message to one server each.


@dataclasses.dataclass
class Case:
    """What one server does, and what must come of a message for it.

    With backup there is a second next hop, which is good. Without "never" the relay may send
    what it likes; no server ever sees a pattern that is listed there.
    """

    title: str
    scripts: list
    event: tuple
    dsn: str = ""
    reply: str = ""
    never: bytes = b""
    wanted: bytes = b""
    backup: bool = False
    transport: str = "smtp"
    connections: int = 5
    mail: str = ""


NO_MAIL = rb"MAIL FROM"
NO_CONTENT = rb"Subject:"
PLAIN = talk()

FIRST = [
    Case(f"a greeting of {code} {what}", [talk(greeting=f"{code} no", ehlo=STOP)], (event,),
         never=NO_MAIL, backup=backup, dsn=dsn)
    for code in (421, 450, 554)
    for what, event, backup, dsn in (
        ("sends the mail to the next host", "sent", True, r"^2"),
        ("defers when there is no other host", "deferred", False, r"^4"),
    )
] + [
    Case("a greeting of 220 without a text is a greeting", [talk(greeting=b"220\r\n")], ("sent",)),
] + [
    Case(f"a greeting of {text!r} is none: closed and deferred",
         [talk(greeting=text.encode("ascii") + b"\r\n", ehlo=STOP)],
         ("deferred",), dsn=r"^4", never=NO_MAIL)
    for text in ("221 bye", "354 go on", "999 what", "abc", "")
] + [
    Case("a server that speaks TLS from the first byte is left",
         [[("send", b"\x16\x03\x03\x00\x02\x02\x28\x15\x03\x03\x00\x02\x02\x0a"), ("drain",)]],
         ("deferred",), dsn=r"^4", never=NO_MAIL),
    Case("a server that speaks HTTP is left",
         [[("send", b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), ("drain",)]],
         ("deferred",), dsn=r"^4", never=NO_MAIL),
    Case("a server that closes at once is left", [[("close",)]], ("deferred",), dsn=r"^4"),
    Case("a server that resets at once is left", [[("reset",)]], ("deferred",), dsn=r"^4"),
    Case("a server that closes at once costs nothing where there is another", [[("close",)]],
         ("sent",), backup=True),
]

REPLIES = [
    Case("a reply of three digits is a reply", [talk(mail=b"553\r\n", rcpt=LEAVE)],
         ("bounced",), dsn=r"^5", reply=r"\b553\b"),
    Case("a reply of two lines without a text is a reply",
         [talk(mail=b"553-\r\n553\r\n", rcpt=LEAVE)], ("bounced",), dsn=r"^5", reply=r"\b553\b"),
    Case("a reply of a code and an enhanced code alone is a reply",
         [talk(rcpt=b"550 5.7.2\r\n", data=LEAVE)], ("bounced",), dsn=r"^5\.7\.2$"),
    Case("a reply that ends with LF alone is a reply",
         [talk(greeting=b"220 mx\n", ehlo=b"250-mx\n250 8BITMIME\n", mail=b"250 ok\n")],
         ("sent",)),
    Case("a reply of lines with different codes is out of step",
         [talk(mail=b"250-ok\r\n550 or not\r\n", rcpt=STOP)], ("deferred",), dsn=r"^4"),
    Case("a reply that begins with a blank is none",
         [talk(mail=b" 250 ok\r\n", rcpt=STOP)], ("deferred",), dsn=r"^4"),
    Case("a reply that ends with CR alone is none",
         [talk(mail=b"250 ok\r", rcpt=STOP)], ("deferred",), dsn=r"^4", transport="hasty",
         never=rb"RCPT TO"),
    Case("a reply with CR alone within is none",
         [talk(mail=b"250 o\rk\r\n", rcpt=STOP)], ("deferred",), dsn=r"^4"),
    Case("a reply with NUL is none",
         [talk(mail=b"550 5.7.1 n\0o\r\n", rcpt=STOP)], ("deferred",), dsn=r"^4"),
    Case("a reply in UTF-8 and Latin-1 is a reply, and its text is made harmless",
         [talk(mail="550 5.7.1 Grüße ".encode() + b"Gr\xfc\xdfe \x1b[31m %n%s\r\n", rcpt=LEAVE)],
         ("bounced",), dsn=r"^5\.7\.1$"),
    Case("a reply line of 513 octets is a reply",
         [talk(mail="550 5.7.1 " + "x" * 501, rcpt=LEAVE)], ("bounced",), dsn=r"^5\.7\.1$"),
    Case("a reply line of 4 KB is a reply, and is cut",
         [talk(mail="550 5.7.1 " + "x" * 4086, rcpt=LEAVE)], ("bounced",),
         reply=r"^.{3,2100}$"),
]

FLOODS = [
    Case(f"lines without end as {name} are cut off",
         [talk(**{step: [("flood", code.encode("ascii") + b"-x\r\n", 10.0), ("drain",)],
                  **{later: STOP}})],
         ("deferred",), dsn=r"^4")
    for name, step, later, code in (
        ("a greeting", "greeting", "ehlo", "220"), ("the reply to EHLO", "ehlo", "mail", "250"),
        ("the reply to MAIL", "mail", "rcpt", "250"), ("the reply to RCPT", "rcpt", "data", "550"),
        ("the reply to DATA", "data", "end", "354"),
    )
] + [
    Case("a reply line without end is cut off",
         [talk(mail=[("flood", b"250 xxxxxxxx" * 1000, 10.0), ("drain",)], rcpt=STOP)],
         ("deferred",), dsn=r"^4"),
    Case("an EHLO reply of 10,000 keywords is bounded",
         [talk(ehlo=b"250-X-KEYWORD\r\n" * 10000 + b"250 ok\r\n", mail=STOP)],
         ("deferred",), dsn=r"^4", never=NO_MAIL),
    Case("an EHLO keyword of 10 KB is bounded",
         [talk(ehlo=b"250-mx\r\n250 " + b"X" * 10240 + b"\r\n")], ("sent",)),
]

SLOW = [
    Case(f"a reply byte by byte {where} has the time of one reply",
         [talk(**{step: [("trickle", code + b" ok" * 60 + b"\r\n", 0.1), ("drain",)],
                  **{later: STOP}})],
         ("deferred",), dsn=r"^4", transport="hasty", never=never)
    for where, step, later, code, never in (
        ("as a greeting", "greeting", "ehlo", b"220", rb"EHLO"),
        ("to EHLO", "ehlo", "mail", b"250", NO_MAIL),
        ("to MAIL", "mail", "rcpt", b"250", rb"RCPT TO"),
        ("to DATA", "data", "end", b"354", NO_CONTENT),
    )
] + [
    Case("a server that accepts and is silent is left in time",
         [[("drain",)]], ("deferred",), dsn=r"^4\.4\.", transport="hasty"),
    Case("a server that accepts and is silent does not hold mail where there is another",
         [[("drain",)]], ("sent",), transport="hasty", backup=True),
]

EARLY = [
    Case("replies before anything was asked are no delivery",
         [[("send", b"220 x\r\n250 ok\r\n250 ok\r\n250 ok\r\n354\r\n250 ok\r\n"), ("drain",)]],
         ("deferred",), dsn=r"^4", never=NO_MAIL),
    Case("a reply too many to EHLO is no delivery",
         [talk(ehlo=b"250 mx\r\n250 ok\r\n", mail=STOP)], ("deferred",), never=rb"RCPT TO"),
    Case("a reply too many to MAIL is no delivery",
         [talk(mail=b"250 ok\r\n250 ok\r\n", rcpt=STOP)], ("deferred",), never=NO_CONTENT),
    Case("a reply too many to RCPT is no delivery",
         [talk(rcpt=b"250 ok\r\n354 go\r\n250 ok\r\n", data=STOP)], ("deferred",),
         never=NO_CONTENT),
    Case("a reply to the content before it was sent is no delivery",
         [talk(data=b"354 go\r\n250 stored\r\n", end=STOP)], ("deferred", "in_doubt")),
    Case("pipelined: a reply too many is no delivery, and the next connection goes step by step",
         [pipelined(b"250 ok\r\n250 ok\r\n354 go\r\n250 stored\r\n"),
          talk(ehlo="250-mx.test\r\n250 PIPELINING", end="250 2.6.0 stored now")],
         ("sent",), dsn=r"^2\.6\.0$"),
    Case("pipelined: replies out of order are no delivery, and the next connection goes step by step",
         [pipelined(b"250 ok\r\n354 go\r\n250 ok\r\n"),
          talk(ehlo="250-mx.test\r\n250 PIPELINING", mail="451 4.3.0 later", rcpt=LEAVE)],
         ("deferred",), dsn=r"^4\.3\.0$", never=NO_CONTENT, connections=8),  # it asks at the pace
    Case("BDAT refused as a command by a server that announced it is followed by DATA",
         [talk(ehlo="250-mx.test\r\n250 CHUNKING", mail=STOP)[:-1] + [
             ("expect", r"MAIL FROM:[^\r]*\r\n"), ("send", b"250 ok\r\n"),
             ("expect", r"RCPT TO:[^\r]*\r\n"), ("send", b"250 ok\r\n"),
             ("expect", r"BDAT \d+ LAST\r\n"), ("send", b"502 5.5.1 what\r\n"), ("drain",)],
          talk(ehlo="250-mx.test\r\n250 CHUNKING")],
         ("sent",), dsn=r"^2"),
    Case("pipelined: a reply too few is no delivery",
         [pipelined(b"250 ok\r\n250 ok\r\n")], ("deferred",), dsn=r"^4", never=NO_CONTENT,
         transport="hasty"),
    Case("pipelined: a close after too few replies is no delivery",
         [pipelined(b"250 ok\r\n250 ok\r\n", after=())], ("deferred",), dsn=r"^4",
         never=NO_CONTENT),
]

REFUSALS = [
    Case("pipelined: when DATA is accepted without a recipient a lone dot follows",
         [pipelined(b"250 ok\r\n550 5.1.1 nobody\r\n354 go on\r\n",
                    [("expect", rb"^\.\r\n"), ("send", b"250 2.0.0 stored\r\n"), ("polite",)])],
         ("bounced",), dsn=r"^5\.1\.1$", never=NO_CONTENT),
    Case("MAIL refused for good, then closed: the refusal counts",
         [talk(mail="550 5.7.1 go away", rcpt=STOP)[:-1]], ("bounced",),
         dsn=r"^5\.7\.1$"),
    Case("pipelined: MAIL refused for good, then closed: the refusal counts",
         [pipelined("550 5.7.1 go away", after=())], ("bounced",), dsn=r"^5\.7\.1$"),
    Case("pipelined: RCPT refused for good, then closed: the refusal counts",
         [pipelined(b"250 ok\r\n554 5.7.1 go away\r\n", after=())], ("bounced",),
         dsn=r"^5\.7\.1$"),
    Case("a reply of 251 to RCPT is yes", [talk(rcpt="251 will forward")], ("sent",)),
    Case("a reply of 252 to RCPT is yes", [talk(rcpt="252 will try")], ("sent",)),
    Case("a reply of 354 to RCPT is out of step", [talk(rcpt="354 go on", data=STOP)],
         ("deferred",), dsn=r"^4", never=NO_CONTENT),
    Case("a reply of 250 to DATA is out of step", [talk(data="250 ok", end=STOP)],
         ("deferred",), dsn=r"^4", never=NO_CONTENT),
    Case("MAIL refused for now defers", [talk(mail="451 4.3.0 later", rcpt=LEAVE)],
         ("deferred",), dsn=r"^4\.3\.0$"),
    Case("DATA refused for good bounces", [talk(data="554 5.7.1 no", end=LEAVE)],
         ("bounced",), dsn=r"^5\.7\.1$", never=NO_CONTENT),
] + [
    Case(f"a reply of 421 to {step.upper()} defers and ends the connection",
         [talk(**{step: "421 4.3.2 closing", later: STOP})], ("deferred",), dsn=r"^4",
         never=NO_CONTENT)
    for step, later in (("ehlo", "mail"), ("mail", "rcpt"), ("rcpt", "data"), ("data", "end"))
] + [
    Case("pipelined: 421 in the midst defers and ends the connection",
         [pipelined(b"250 ok\r\n421 4.3.2 closing\r\n")], ("deferred",), dsn=r"^4",
         never=NO_CONTENT),
    Case("421 to MAIL sends the mail to the next host",
         [talk(mail="421 4.3.2 closing", rcpt=STOP)], ("sent",), backup=True),
    Case("a server that closes in the midst of a transaction defers",
         [talk(rcpt=[("close",)], data=STOP)[:-1]], ("deferred",), dsn=r"^4"),
]

ENDS = [
    Case(f"{text!r} to the end of the content: {event}", [talk(end=text, after=after)], (event,),
         dsn=dsn)
    for text, event, dsn, after in (
        ("250", "sent", r"^2", (("polite",),)),
        ("421 4.3.2 closing", "deferred", r"^4\.3\.2$", (("drain",),)),
        ("451 4.3.0 later", "deferred", r"^4\.3\.0$", (("polite",),)),
        ("550 5.7.1 spam", "bounced", r"^5\.7\.1$", (("polite",),)),
        ("354 more", "deferred", r"^4", (("drain",),)),
        ("hello there", "deferred", r"^4", (("drain",),)),
    )
] + [
    Case(f"QUIT answered by {what} changes nothing: the mail is sent",
         [talk(after=(("expect", r"QUIT\r\n"), *steps))], ("sent",), connections=1)
    for what, steps in (
        ("nothing", [("drain",)]), ("500", [("send", b"500 what\r\n"), ("drain",)]),
        ("a reset", [("reset",)]), ("garbage", [("send", b"\0\xff\r\n"), ("drain",)]),
    )
]

ABILITIES = [
    Case("EHLO refused for good is followed by HELO",
         [talk(ehlo=[("send", b"502 what\r\n"), ("expect", r"HELO [^\r]*\r\n"),
                     ("send", b"250 mx\r\n")])], ("sent",), never=rb"MAIL FROM:<[^>]*> \S"),
    Case("EHLO refused for now defers", [talk(ehlo="451 4.3.0 later", mail=STOP)],
         ("deferred",), dsn=r"^4", never=rb"HELO|MAIL FROM"),
    Case("a message above the SIZE announced is not sent at all",
         [talk(ehlo="250-mx\r\n250 SIZE 20", mail=LEAVE)],
         ("bounced",), dsn=r"^5\.3\.4$", never=NO_MAIL),
    Case("SIZE 0 is no limit", [talk(ehlo="250-mx\r\n250 SIZE 0")], ("sent",)),
    Case("SIZE without a number is no limit", [talk(ehlo="250-mx\r\n250 SIZE")], ("sent",)),
    Case("SIZE with garbage is no limit", [talk(ehlo="250-mx\r\n250 SIZE -1x")], ("sent",)),
    Case("a message of eight bits passes to a server without 8BITMIME, which is not told",
         [talk()], ("sent",), mail=" BODY=8BITMIME", never=rb"BODY="),
    Case("a server without STARTTLS gets the mail where TLS is only wished for",
         [talk()], ("sent",)),
    Case("a server without STARTTLS gets no mail where TLS is required",
         [talk(mail=STOP)], ("deferred",), dsn=r"^4\.7\.", never=NO_MAIL, transport="strict"),
]

STARTTLS_FAILURES = (
    ("refused for now", injected("454 4.7.0 later")),
    ("refused for good", injected("502 5.5.1 what")),
    ("answered by garbage", injected(b"\0\x01\x02nonsense\r\n")),
    ("answered by a close", injected([])[:-1] + [("close",)]),
    ("followed by a failed handshake", injected(b"220 go\r\n")[:-1]
     + [("expect", rb"\x16\x03"), ("send", b"\x15\x03\x03\x00\x02\x02\x28"), ("drain",)]),
)
INJECTION = b"220 go\r\n250-x\r\n250 AUTH\r\n"

TLS = [
    Case(f"STARTTLS {what} is followed by a connection without, where TLS is only wished for",
         [script, talk(ehlo="250-mx\r\n250 STARTTLS")], ("sent",))
    for what, script in STARTTLS_FAILURES
] + [
    Case(f"STARTTLS {what} defers where TLS is required",
         [script], ("deferred",), dsn=r"^4\.", never=NO_MAIL, transport="strict")
    for what, script in STARTTLS_FAILURES
] + [
    Case("replies put in behind the reply to STARTTLS end the connection",
         [injected(INJECTION)], ("deferred",), dsn=r"^4", never=rb"MAIL FROM|\x16\x03"),
    Case("replies put in behind the reply to STARTTLS end the connection where TLS is required",
         [injected(INJECTION)], ("deferred",), dsn=r"^4", never=rb"MAIL FROM|\x16\x03",
         transport="strict"),
]

CASES = [
    *FIRST, *REPLIES, *FLOODS, *SLOW, *EARLY, *REFUSALS, *ENDS, *ABILITIES, *TLS,
]


@dataclasses.dataclass
class Place:
    """The relay that all cases share, its good neighbour, and the servers of the cases."""

    relay: object
    sink: object
    servers: list


def _transports(**more):
    """Return transports that wait for a slow test, for little, and for TLS; one refusal is enough."""
    patient = {**dict.fromkeys(LINES, "20s"), "quit_timeout": "500ms"}
    usual = {**patient, "connection_idle_timeout": "100ms", "pace_retries": 0, **more}
    hasty = {**usual, **dict.fromkeys(LINES, "3s"), "connect_timeout": "3s"}
    return {"smtp": usual, "hasty": hasty, "strict": {**usual, "tls": "required"}}


def _config(**queue):
    slow = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
    # Small ClientHellos: what comes of a large one that fails is in test_tls_groups.py.
    return Config(transports=_transports(), queue={**slow, **queue}, extra='tls { groups = { "X25519", "P-256" } }\n')


def _hop(port, address="127.0.0.1"):
    return f"[{address}]:{port}"


@pytest.fixture(scope="module", name="shared")
def _shared(module_lab):
    sink = module_lab.sink()
    servers = [module_lab.script(*case.scripts, timeout=25.0) for case in CASES]
    config = _config().route_all_to(sink.port)
    for number, (case, server) in enumerate(zip(CASES, servers)):
        hops = [_hop(server.port)] + ([_hop(sink.port)] if case.backup else [])
        config.routes[f"c{number}.test"] = {"relay": hops, "transport": case.transport}
    relay = module_lab.relay(config)
    return Place(relay, sink, servers)


@pytest.fixture(name="place")
def _place(shared):
    """Give the shared relay; one that a case has ended fails that case alone."""
    if not shared.relay.running():
        shared.relay.process = None
        shared.relay.start()
    yield shared
    assert shared.relay.running(), "the relay has ended"


def _about(relay, address):
    to = re.compile(rf"(^|<){re.escape(address)}(>|$)")
    return [
        event for event in relay.events()
        if event.name in OUTCOMES and to.search(event.get("to", ""))
    ]


def _outcome(relay, address, timeout=60.0):
    """Wait for the first word on a recipient, and return it."""
    return wait_until(
        lambda: _about(relay, address), timeout, f"what becomes of {address}"
    )[0]


def _age(event):
    """Seconds since it was logged."""
    return time.time() - datetime.datetime.fromisoformat(event.time).timestamp()


def _still_delivers(place):
    before = len(place.sink.messages)
    place.relay.send(recipients=["good@good.test"])
    place.sink.wait_messages(before + 1, timeout=60)


def _no_controls_in_the_log(relay):
    text = relay.log_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text), "the log has control characters"


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.title for case in CASES])
def test_server(place, number):
    case, server = CASES[number], place.servers[number]
    address = f"to@c{number}.test"
    with place.relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", [address], mail_params=case.mail)
    event = _outcome(place.relay, address)
    assert event.name in case.event, event
    assert re.search(case.dsn, event["dsn"]), event
    assert re.search(case.reply, event["reply"]), event
    time.sleep(0.1)
    plays = server.wait_played(len(server.plays), timeout=60)
    received = b"\n--\n".join(play.received for play in plays)
    assert not (case.never and re.search(case.never, received)), received
    about = _about(place.relay, address)
    # What was put off is tried once more after a fifth of a second, and again: in a slow test that is under way, or was.
    tries = len(about) + (event.name == "deferred" and _age(about[-1]) > 0.15)
    assert len(plays) <= case.connections * tries, f"{len(plays)} connections in {tries} tries"
    assert all(play.sent < 8 << 20 for play in plays), "the flood was taken"
    assert all(one.name == event.name for one in about) and (len(about) == 1 or event.name == "deferred"), about
    _still_delivers(place)
    _no_controls_in_the_log(place.relay)


# What needs more than one message, or another server than a script.


def _send(relay, *recipients, content=None, sender="from@sender.test"):
    relay.send(sender, recipients, content)


def _names(relay, address):
    return [event.name for event in _about(relay, address)]


def test_recipients_refused_one_by_one_have_their_own_verdicts(lab):
    sink = lab.sink(
        Rule("rcpt", "450 4.2.1 later", pattern="^slow@"),
        Rule("rcpt", "550 5.1.1 nobody", pattern="^gone@"),
    )
    relay = lab.relay(_config().route_all_to(sink.port))
    addresses = ["good@dest.test", "slow@dest.test", "gone@dest.test", "fine@dest.test"]
    _send(relay, *addresses, sender="")
    events = [_outcome(relay, address) for address in addresses]
    assert [event.name for event in events] == ["sent", "deferred", "bounced", "sent"]
    assert [event["dsn"] for event in events][1:3] == ["4.2.1", "5.1.1"]
    assert sink.wait_messages()[0].recipients == ["good@dest.test", "fine@dest.test"]


def test_when_no_recipient_was_accepted_each_keeps_its_code(lab):
    script = pipelined(
        b"250 ok\r\n450 4.2.1 later\r\n550 5.1.1 nobody\r\n354 go on\r\n",
        [("expect", rb"^\.\r\n"), ("send", b"250 stored\r\n"), ("polite",)],
    )
    server = lab.script(script)
    relay = lab.relay(_config().route_all_to(server.port))
    _send(relay, "slow@dest.test", "gone@dest.test", sender="")
    assert _outcome(relay, "slow@dest.test").matches("deferred", {"dsn": "4.2.1"})
    assert _outcome(relay, "gone@dest.test").matches("bounced", {"dsn": "5.1.1"})
    assert b"Subject" not in server.wait_played()[0].received


def test_too_many_recipients_go_into_a_transaction_of_their_own_now(lab):
    sink = lab.sink(Rule("rcpt", "452 4.5.3 too many", after=3, times=2))
    relay = lab.relay(_config().route_all_to(sink.port))
    addresses = [f"to{number}@dest.test" for number in range(5)]
    _send(relay, *addresses)
    assert [_outcome(relay, address).name for address in addresses] == ["sent"] * 5
    assert sorted(len(message.recipients) for message in sink.messages) == [2, 3]
    assert not relay.events("deferred")


def test_a_close_after_the_dot_is_in_doubt_and_tried_again(lab):
    sink = lab.sink(Rule("end", close=True, times=1))
    config = _config(minimal_backoff_time="200ms", maximal_backoff_time="400ms")
    relay = lab.relay(config.route_all_to(sink.port))
    _send(relay, "to@dest.test")
    relay.wait_event("in_doubt", timeout=60)
    relay.wait_event("sent", timeout=60)
    assert _names(relay, "to@dest.test") == ["in_doubt", "sent"]
    assert [one.accepted for one in sink.transactions] == [False, True]
    assert sink.transactions[0].content == sink.transactions[1].content
    assert not relay.events("bounced")


def test_no_reply_to_the_dot_in_time_is_in_doubt(lab):
    server = lab.script(talk(end=STOP), talk())
    config = _config(minimal_backoff_time="200ms", maximal_backoff_time="400ms")
    config.transports["smtp"]["data_done_timeout"] = "3s"
    relay = lab.relay(config.route_all_to(server.port))
    _send(relay, "to@dest.test")
    relay.wait_event("sent", timeout=60)
    assert _names(relay, "to@dest.test") == ["in_doubt", "sent"]


@pytest.mark.parametrize(
    "reply, event", [("552 5.3.4 too big", "bounced"), ("452 4.3.1 full", "deferred")]
)
def test_a_refusal_during_the_content_is_noticed(lab, reply, event):
    size = 24 << 20
    server = lab.script(
        talk(data=[("send", b"354 go on\r\n"), ("expect", "x{1000}"),
                   ("send", reply.encode("ascii") + b"\r\n"), ("sleep", 5.0), ("drain",)],
             end=STOP)[:-1],
        timeout=25.0,
    )
    relay = lab.relay(_config().route_all_to(server.port))
    lines = (b"x" * 1000 + b"\r\n") * (size // 1002)
    _send(relay, "to@dest.test", content=b"Subject: big\r\n\r\n" + lines)
    first = _outcome(relay, "to@dest.test", timeout=60)
    assert first.matches(event, {"dsn": reply[4:9]}), first
    assert len(server.wait_played(timeout=60)[0].received) < size


@pytest.mark.parametrize("last", [b"421 4.4.2 idle\r\n", b"250 ok\r\n", b""],
                         ids=["421", "250", "nothing"])
def test_a_connection_that_ended_while_idle_is_not_used_again(lab, last):
    ending = [("sleep", 0.2), ("send", last), ("close",)]
    server = lab.script(talk(after=ending), talk())
    config = _config()
    config.transports["smtp"]["connection_idle_timeout"] = "20s"
    relay = lab.relay(config.route_all_to(server.port))
    _send(relay, "first@dest.test")
    _outcome(relay, "first@dest.test")
    wait_until(lambda: server.plays[0].over.is_set(), 60, "the first connection to end")
    wait_until(lambda: "connections=1" not in relay.command("dest").stdout, what="the relay to know")
    _send(relay, "second@dest.test")
    assert _outcome(relay, "second@dest.test").matches("sent", {"tries": "1"})
    assert len(server.plays) == 2 and not relay.events("deferred")


def test_words_while_idle_end_a_connection_that_stays_open(lab):
    server = lab.script(talk(after=[("sleep", 0.2), ("send", b"421 4.4.2 idle\r\n"), ("drain",)]),
                        talk())
    config = _config()
    config.transports["smtp"]["connection_idle_timeout"] = "20s"
    relay = lab.relay(config.route_all_to(server.port))
    _send(relay, "first@dest.test")
    server.wait_played()
    assert b"MAIL" not in server.plays[0].received.partition(b"\r\n.\r\n")[2]
    _send(relay, "second@dest.test")
    assert _outcome(relay, "second@dest.test").name == "sent"


@pytest.mark.parametrize("kind", ["421", "close"])
def test_a_limit_of_messages_for_a_connection_costs_no_mail(lab, kind):
    if kind == "421":
        server = lab.own_sink("--per-connection", "2")
    else:
        server = lab.script(talk(after=[("close",)]))
    config = _config()
    config.transports["smtp"]["connection_idle_timeout"] = "5s"
    relay = lab.relay(config.route_all_to(server.port))
    addresses = [f"to{number}@dest.test" for number in range(8)]
    for address in addresses:
        _send(relay, address)
    assert [_outcome(relay, address).name for address in addresses] == ["sent"] * 8
    relay.wait_event("sent", count=8)
    count = len(server.commands("EHLO") if kind == "421" else server.plays)
    assert count <= 20, f"{count} connections for 8 messages"
    assert not relay.events("deferred")


def test_an_aborted_transaction_is_reset_before_the_next(lab):
    sink = lab.sink(
        Rule("rcpt", "550 5.1.1 nobody", pattern="^gone@"),
        Rule("data", "451 4.3.0 not now", pattern="^later@"),
        extensions=(),
    )
    config = _config()
    config.transports["smtp"].update(
        {"connection_idle_timeout": "5s", "destination_concurrency_limit": 1,
         "initial_destination_concurrency": 1}
    )
    relay = lab.relay(config.route_all_to(sink.port))
    for number in range(4):
        _send(relay, f"gone@n{number}.test", sender="")
        _send(relay, f"to@n{number}.test", sender="later@sender.test")
        _send(relay, f"to@n{number}.test", sender="")
    sink.wait_messages(4, timeout=60)
    for session in sink.sessions:
        verbs = session.verbs()
        for place, verb in enumerate(verbs):
            if verb == "MAIL" and "MAIL" in verbs[:place]:
                last = len(verbs[:place]) - 1 - verbs[:place][::-1].index("MAIL")
                between = verbs[last + 1:place]
                assert "RSET" in between or "DATA" in between, verbs
    assert not [one for one in sink.transactions if one.sender == "later@sender.test"]


def test_an_address_beyond_ascii_is_not_sent_to_a_server_that_does_not_know_it(lab):
    sink = lab.sink(extensions=("PIPELINING", "8BITMIME"))
    relay = lab.relay(_config().route_all_to(sink.port))
    with relay.client() as client:
        client.greet()
        client.send_mail("", ["grüße@dest.test"], mail_params=" SMTPUTF8")
    event = relay.wait_event("bounced", timeout=60)
    assert event["dsn"] == "5.6.7", event
    lines = [line for session in sink.sessions for _, line in session.commands]
    assert not any("\xfc" in line or "MAIL" in line for line in lines), lines


def test_what_a_lesser_host_can_not_do_waits_for_a_better_one(lab):
    """One that has served before; of one that never has, nobody knows that it could."""
    able, unable = {"extensions": ("8BITMIME", "SMTPUTF8"), "size": 100000}, {"extensions": ("8BITMIME",), "size": 5000}
    port, never = free_port(), free_port()
    first, second = lab.sink(port=port, **able), lab.sink(**unable)
    config = Config(queue={"minimal_backoff_time": "200ms", "maximal_backoff_time": "300ms"}).route_all_to(port, second.port)
    config.routes["never.test"] = {"relay": [_hop(never), _hop(second.port)]}
    relay = lab.relay(config)
    relay.send(recipients=["usual@dest.test"])
    relay.wait_event("sent", to="usual@dest.test")
    first.close()
    wanting = {"grüße@dest.test": ("4.6.7", " SMTPUTF8", None), "large@dest.test": ("4.3.4", "", b"Subject: x\r\n\r\n" + b"x" * 70 + b"\r\n" * 5000)}
    for to, (dsn, parameters, content) in wanting.items():
        with relay.client() as client:
            client.greet()
            client.send_mail("", [to], content, mail_params=parameters)
        relay.wait_event("deferred", to=to, dsn=dsn)
        with relay.client() as client:
            client.greet()
            client.send_mail("", [to.replace("dest", "never")], content, mail_params=parameters)
        relay.wait_event("bounced", to=to.replace("dest", "never"), dsn="5" + dsn[1:])
    relay.send(recipients=["other@dest.test"])
    second.wait_messages(1)
    lab.sink(port=port, **able).wait_messages(2)
    assert [one.recipients for one in second.messages] == [["other@dest.test"]]
    assert not [one for one in relay.events("bounced") if "dest.test" in one["to"]]


def test_what_was_announced_before_tls_is_forgotten(lab):
    context = lab.certificates.server_context("mx.test")
    before = injected([("send", b"220 go\r\n"), ("starttls", context)])[:-1]
    before[2] = ("send", b"250-mx\r\n250-PIPELINING\r\n250-SIZE 20\r\n250-DSN\r\n250 STARTTLS\r\n")
    inside = talk(mail=[("nothing", 0.3), ("send", b"250 ok\r\n")])[1:]
    server = lab.script(before + inside)
    relay = lab.relay(_config().route_all_to(server.port))
    _send(relay, "to@dest.test")
    assert _outcome(relay, "to@dest.test").name == "sent"
    received = server.wait_played()[0].received
    assert received.count(b"EHLO") == 2 and b"SIZE=" not in received


def _closed_port():
    return free_port()


def _tries(lab, hops, **transport):
    """Send one message through these hops and then the good one; return how long it took."""
    sink = lab.sink()
    config = _config()
    config.transports["smtp"].update(transport)
    config.routes["*"] = {"relay": [*hops, _hop(sink.port)]}
    relay = lab.relay(config)
    began = time.monotonic()
    _send(relay, "to@dest.test")
    sink.wait_messages(timeout=60)
    assert not relay.events("deferred")
    return time.monotonic() - began


def test_a_host_that_answers_no_syn_is_left_after_the_connect_timeout(lab):
    with blackhole() as port:
        assert _tries(lab, [_hop(port)], connect_timeout="500ms") < 15


def test_a_host_that_refuses_is_left_at_once(lab):
    assert _tries(lab, [_hop(_closed_port())]) < 15


def test_a_broken_ipv6_does_not_delay_mail(lab):
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    assert _tries(lab, [_hop(_closed_port(), "::1")]) < 15


def test_hosts_that_can_not_be_reached_defer(lab):
    with blackhole() as port:
        config = _config()
        config.transports["smtp"]["connect_timeout"] = "300ms"
        relay = lab.relay(config.route_all_to(port, _closed_port()))
        _send(relay, "to@dest.test")
        event = _outcome(relay, "to@dest.test")
    assert event.matches("deferred", {"dsn": re.compile(r"^4\.4\.")}), event


def _pass_by(lab, tarpit, domains, tried, **limits):
    """Send to so many domains of a tarpit, and, when it was tried so often, to another host, which has to get its mail."""
    sink = lab.sink()
    config = _config()
    config.transports["smtp"].update({"destination_by": "domain"} | limits)
    config.routes["*"] = {"relay": [_hop(tarpit.port)]}
    config.routes["good.test"] = {"relay": [_hop(sink.port)]}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        for number in range(domains):
            client.send_mail("", [f"to@d{number}.test"])
        wait_until(lambda: len(tarpit.plays) >= tried, 60, "the tarpit to be tried")
        client.send_mail("", ["to@good.test"])
    sink.wait_messages(timeout=60)


def test_a_tarpit_does_not_hold_other_mail(lab):
    tarpit = lab.script(talk(mail=[("drain",)], rcpt=STOP)[:-1], timeout=300.0)
    _pass_by(lab, tarpit, 300, 1, host_connection_limit=5, connection_limit=20, mail_timeout="5m")
    assert len(tarpit.plays) <= 5
    tarpit.close()


def test_tarpits_that_stutter_hold_no_other_mail(lab):
    """A byte now and then is no sign that a host will be ready."""
    stutterer = lab.script([("trickle", b"220-" + b"x" * 2000, 0.2)], timeout=600.0)
    _pass_by(lab, stutterer, 10, 10, connection_limit=10, greeting_timeout="5m")


@pytest.mark.parametrize("where", ["mail", "rcpt"])
def test_tarpits_that_have_all_connections_hold_no_other_mail(lab, where):
    """They take connections and fall silent where their time is five minutes: each has several, and all together each one."""
    silent = talk(**{where: STOP})
    tarpits = [lab.script(silent, timeout=600.0) for _ in range(5)]
    sink = lab.sink()
    config = _config()
    config.transports["smtp"].update(
        {"destination_by": "domain", "connection_limit": 15, "mail_timeout": "5m", "rcpt_timeout": "5m"}
    )
    for number, tarpit in enumerate(tarpits):
        config.routes[f"tar{number}.test"] = {"relay": [_hop(tarpit.port)]}
    for number in range(3):
        config.routes[f"good{number}.test"] = {"relay": [_hop(sink.port)]}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        for number in range(len(tarpits)):
            for _ in range(5):
                client.send_mail("", [f"to@tar{number}.test"])
        wait_until(lambda: sum(len(tarpit.plays) for tarpit in tarpits) >= 15, 60,
                   "the tarpits to have all connections")
        for number in range(3):
            client.send_mail("", [f"to@good{number}.test"])
    sink.wait_messages(3, timeout=60)
    assert all(tarpit.plays for tarpit in tarpits)
    assert not relay.events("bounced") and not relay.events("in_doubt")


def test_a_bounce_holds_what_a_hostile_server_said_made_harmless(lab):
    said = b"550-5.7.1 one \xfc\x1b[31m\r\n" + b"550-5.7.1 " + b"y" * 900 + b"\r\n" \
        + b"550-5.7.1 X-Evil: 1\r\n550 5.7.1 Subject: evil %n%s\r\n"
    server = lab.script(talk(rcpt=said, data=LEAVE))
    sink = lab.sink()
    config = _config().route_all_to(server.port)
    config.routes["sender.test"] = {"relay": [_hop(sink.port)]}
    relay = lab.relay(config)
    _send(relay, "to@dest.test")
    bounce = sink.wait_messages(timeout=60)[0]
    assert bounce.sender == "" and bounce.recipients == ["from@sender.test"]
    report = email.message_from_bytes(bounce.content, policy=email.policy.default)
    assert report.get_content_type() == "multipart/report"
    assert report["X-Evil"] is None and "evil" not in report["Subject"]
    status = next(part for part in report.walk()
                  if part.get_content_type() == "message/delivery-status")
    fields = status.get_payload()[1]
    assert fields["Action"] == "failed" and fields["Status"] == "5.7.1"
    assert fields["X-Evil"] is None
    assert not re.search(rb"[^\t\r\n\x20-\x7e]", bounce.content.split(b"Subject: a test")[0])
    assert max(map(len, bounce.content.split(b"\r\n"))) <= 998
    _no_controls_in_the_log(relay)
