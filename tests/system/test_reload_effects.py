# SPDX-License-Identifier: ISC
"""Settings that a reload changes, seen by what they do: the new value is in force, the former is not, and a setting
that is taken out again has its default."""

import pathlib
import re
import shutil
import ssl

import pytest

from lab.config import Config
from lab.net import wait_until
from lab.sink import Rule
from lab.smtp import Closed

GONE = object()  # the setting is taken out


class World:
    """A relay and where its mail goes; settings are given to it by sections."""

    def __init__(self, lab):
        self.lab = lab
        self.sink, self.other = lab.sink(), lab.sink()
        config = Config().route_all_to(self.sink.port)
        config.auth = {"require_tls": False, "failure_delay": "0s"}
        self.relay = lab.relay(config, start=False)
        config = self.relay.config
        config.auth["file"] = self.table("users")
        self.relay.write_config()
        self.relay.start()

    def table(self, name, *lines):
        """Beside the configuration: the sandbox lets a reload see no further."""
        path = pathlib.Path(self.relay.folder) / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(path)

    def reload(self):
        self.relay.write_config()
        done = self.relay.command("reload")
        assert done.returncode == 0 and not done.stderr, done.stderr

    def set(self, section, name, value):
        config = self.relay.config
        place = {"": config.settings, "listener": config.listeners["smtp"], "auth": config.auth,
                 "queue": config.queue, "dns": config.dns, "route": config.routes.setdefault("dest.test", {}),
                 "transport": config.transports.setdefault("smtp", {})}[section]
        if value is GONE:
            place.pop(name, None)
            config.settings.setdefault("hostname", "relay.test")
        else:
            place[name] = value
        if (name in ("from", "recipients") and value is not GONE) or (name == "discard" and value is False):
            place["relay"] = [f"[127.0.0.1]:{self.other.port if name == 'from' else self.sink.port}"]
        if section != "route" or value is GONE:
            del config.routes["dest.test"]
        self.reload()

    def ehlo(self):
        with self.relay.client() as client:
            return set(client.greet().lines[1:])

    def offers(self, keyword):
        """The line of EHLO that begins with this, or None."""
        found = [line for line in self.ehlo() if line.split()[0] == keyword]
        return found[0] if found else None

    def rcpt(self, to="to@dest.test", sender="from@sender.test", helo="client.test"):
        with self.relay.client() as client:
            client.greet(helo)
            client.send(f"MAIL FROM:<{sender}>")
            reply = client.read_reply()
            if reply.code != 250:
                return f"MAIL {reply.code}"
            client.send(f"RCPT TO:<{to}>")
            return client.read_reply().code

    def pass_on(self, content=None, sender="from@sender.test", to="to@dest.test"):
        """What the host gets of one message, in the order of recipients."""
        return self.pass_on_to([to], sender, content)[1]

    def pass_on_to(self, recipients, sender="from@sender.test", content=None):
        before = len(self.sink.messages)
        ident = self.relay.send(sender, recipients, content).lines[0].split()[-1]
        self.relay.wait_event("done", 60, id=ident)
        return ident, [one for one in self.sink.messages[before:] if one.sender]  # reports aside

    def content(self, content=None):
        return self.pass_on(content)[0].content

    def recipients(self):
        return sorted(name for one in self.pass_on() for name in one.recipients)


@pytest.fixture(name="world", scope="module")
def _world(module_lab):
    return World(module_lab)


def _has(pattern):
    return lambda world: bool(re.search(pattern, world.content(), re.S))


def _reply_to(*lines):
    """The code of the reply to the last of these lines."""
    def ask(world):
        with world.relay.client() as client:
            client.greet()
            for line in lines:
                client.send(line)
                try:
                    reply = client.read_reply()
                except Closed:
                    return "closed"
            return reply.code
    return ask


def _banner(world):
    with world.relay.client() as client:
        return client.expect(220).lines[0].split()[0]


def _loop(count):
    return b"Received: from a by b\r\n" * count + b"Subject: x\r\n\r\nx\r\n"


def _code_of(content):
    def ask(world):
        with world.relay.client() as client:
            client.greet()
            client.command("MAIL FROM:<from@sender.test>")
            client.command("RCPT TO:<to@dest.test>")
            client.command("DATA", 354)
            client.send(content + b".\r\n")
            reply = client.read_reply()
        if reply.code == 250:  # nobody's later than its own question
            world.relay.wait_event("done", 60, id=reply.lines[0].split()[-1])
        return reply.code
    return ask


def _rcpts(count):
    return _reply_to("MAIL FROM:<a@sender.test>", *[f"RCPT TO:<u{n}@dest.test>" for n in range(count)])


def _rows():
    """section, setting, two values or what makes them of the world, the question, its answers: to either, and by default"""
    mail = "MAIL FROM:<a@sender.test>"
    yield "", "hostname", "one.test", "two.test", _banner, ["one.test", "two.test", "relay.test"]
    yield "", "message_size_limit", "1m", "0", lambda w: w.offers("SIZE"), ["SIZE 1048576", "SIZE", "SIZE 52428800"]
    yield "", "networks", ["192.0.2.0/24"], ["127.0.0.1/32"], lambda w: w.rcpt(), [550, 250, 250]
    yield "", "hopcount_limit", 3, 6, _code_of(_loop(4)), [554, 250, 250]
    yield "", "drop_headers", ["X-One"], ["X-Two"], lambda w: [name in w.content(b"X-One: 1\r\nX-Two: 2\r\nBcc: x@y.test\r\n\r\nx\r\n") for name in (b"X-One", b"X-Two", b"Bcc")], [
        [False, True, True], [True, False, True], [True, True, False]]
    yield "", "always_bcc", "one@copy.test", "two@copy.test", lambda w: w.recipients(), [["one@copy.test", "to@dest.test"], ["to@dest.test", "two@copy.test"], ["to@dest.test"]]
    yield "", "postmaster", "one@post.test", "two@post.test", lambda w: w.pass_on(to="postmaster")[0].recipients, [["one@post.test"], ["two@post.test"], ["postmaster@relay.test"]]
    yield "", "xclient", ["127.0.0.0/8"], ["192.0.2.1"], lambda w: bool(w.offers("XCLIENT")), [True, False, False]
    yield "", "masquerade", ["sender.test"], ["other.test"], lambda w: [w.pass_on(sender=f"a@x.{d}.test")[0].sender for d in ("sender", "other")], [
        ["a@sender.test", "a@x.other.test"], ["a@x.sender.test", "a@other.test"], ["a@x.sender.test", "a@x.other.test"]]
    for name, key, value, told in [("client_access", "127.0.0.1", "reject 554 5.7.1 no", 554), ("helo_access", "client.test", "reject 553 5.7.1 no", 553),
                                   ("sender_access", "sender.test", "reject 552 5.7.1 no", 552), ("recipient_access", "dest.test", "reject 551 5.7.1 no", 551)]:
        yield "", name, (lambda w, n=name, k=key, v=value: [w.table(n, f"{k} {v}")]), (lambda w, n=name: [w.table(n + "2", {"client_access": "192.0.2.1 reject", "helo_access": "else.test reject"}.get(n, "else.test reject"))]), lambda w: w.rcpt(), [told, 250, 250]
    for name in ("sender_canonical", "canonical"):
        yield "", name, (lambda w, n=name: [w.table(n, "from@sender.test a@one.test")]), (lambda w, n=name: [w.table(n + "2", "from@sender.test a@two.test")]), lambda w: w.pass_on()[0].sender, ["a@one.test", "a@two.test", "from@sender.test"]
    for name in ("recipient_canonical", "aliases"):
        yield "", name, (lambda w, n=name: [w.table(n, "to@dest.test: a@one.test" if n == "aliases" else "to@dest.test a@one.test")]), (lambda w, n=name: [w.table(n + "2", "to@dest.test: a@two.test" if n == "aliases" else "to@dest.test a@two.test")]), lambda w: w.recipients(), [["a@one.test"], ["a@two.test"], ["to@dest.test"]]
    for name, key in (("sender_bcc", "from@sender.test"), ("recipient_bcc", "to@dest.test")):
        yield "", name, (lambda w, n=name, k=key: [w.table(n, f"{k} a@one.test")]), (lambda w, n=name, k=key: [w.table(n + "2", f"{k} a@two.test")]), lambda w: w.recipients(), [["a@one.test", "to@dest.test"], ["a@two.test", "to@dest.test"], ["to@dest.test"]]
    yield "", "routes", (lambda w: [w.table("routes", "dest.test error 5.1.2 none")]), (lambda w: [w.table("routes2", "dest.test error 4.1.2 none")]), lambda w: w.rcpt(), [550, 450, 250]
    yield "", "sender_routes", (lambda w: [w.table("sroutes", f"sender.test relay=[127.0.0.1]:{w.other.port}")]), (lambda w: [w.table("sroutes2", f"else.test relay=[127.0.0.1]:{w.other.port}")]), lambda w: bool(w.pass_on()), [False, True, True]
    yield "", "flow_header", "X-One", "X-Two", lambda w: _flow(w), ["one", "two", "sender.test"]
    yield "", "flows", (lambda w: [w.table("flows", "sender.test red")]), (lambda w: [w.table("flows2", "sender.test blue")]), lambda w: _flow(w), ["red", "blue", "sender.test"]
    yield "listener", "chunking", False, True, lambda w: bool(w.offers("CHUNKING")), [False, True, True]
    yield "listener", "recipient_limit", 2, 3, _rcpts(3), [452, 250, 250]
    yield "listener", "future_release_limit", "60s", "0s", lambda w: (w.offers("FUTURERELEASE") or "- -").split()[1], ["60", "-", "2592000"]
    yield "listener", "auth", "true", "required", lambda w: (bool(w.offers("AUTH")), _reply_to(mail)(w)), [(True, 250), (True, 530), (False, 250)]
    yield "listener", "networks", [], ["127.0.0.0/8"], lambda w: w.rcpt(), [550, 250, 250]
    yield "listener", "error_limit", 1, 2, _reply_to("BAD", "BAD"), [421, 500, 500]
    yield "listener", "bare_newline", "normalise", "reject", _code_of(b"Subject: x\r\n\r\na\nb\r\n"), [250, 550, 550]
    yield "listener", "line_limit", 3000, 1000, _code_of(b"Subject: x\r\n\r\n" + b"a" * 2500 + b"\r\n"), [250, 550, 250]
    yield "listener", "received", "hidden", "full", _has(rb"Received: from client.test"), [False, True, True]
    yield "listener", "add_missing_headers", True, False, _has(rb"\r\nMessage-ID:"), [True, False, False]
    yield "listener", "client_connection_limit", 1, 2, lambda w: _second(w), [421, 220, 220]
    yield "listener", "connection_limit", 1, 2, lambda w: _second(w), [421, 220, 220]
    yield "listener", "client_rate_limit", "1/h", "100/s", lambda w: [_first(w) for _ in range(2)][-1], [421, 220, 220]
    yield "listener", "junk_command_limit", 1, 50, lambda w: _junk(w), [False, True, True]
    yield "listener", "timeout", "100ms", "5m", lambda w: _silent(w), [True, False, False]
    yield "listener", "proxy_protocol", ["127.0.0.0/8"], ["false"], lambda w: _proxied(w), [True, False, False]
    yield "transport", "helo", "one.out.test", "two.out.test", lambda w: _hello(w), ["one.out.test", "two.out.test", "relay.test"]
    yield "transport", "source_address", "127.0.0.2", "127.0.0.3", lambda w: _peer(w), ["127.0.0.2", "127.0.0.3", "127.0.0.1"]
    yield "transport", "destination_recipient_limit", 1, 2, lambda w: _transactions(w), [3, 2, 1]
    yield "route", "error", "5.1.2 no", "4.1.2 no", lambda w: w.rcpt(), [550, 450, 250]
    yield "route", "discard", True, False, lambda w: len(w.pass_on()), [0, 1, 1]
    yield "route", "recipients", (lambda w: [w.table("who", "to@dest.test")]), (lambda w: [w.table("who2", "else@dest.test")]), lambda w: w.rcpt(), [250, 550, 250]
    yield "route", "from", ["sender.test"], ["else.test"], lambda w: len(w.pass_on()), [0, 1, 1]


def _flow(world):
    ident, _ = world.pass_on_to(["to@dest.test"], content=b"X-One: one\r\nX-Two: two\r\n\r\nx\r\n")
    return world.relay.wait_event("queued", id=ident)["flow"]


def _first(world):
    with world.relay.client() as client:
        return client.read_reply().code


def _second(world):
    with world.relay.client() as one:
        one.expect(220)
        return _first(world)


def _junk(world):
    with world.relay.client() as client:
        client.greet()
        for _ in range(25):
            client.send("NOOP")
        try:
            return all(client.read_reply().code == 250 for _ in range(25))
        except Closed:
            return False


def _silent(world):
    with world.relay.client(timeout=1) as client:
        client.greet()
        try:
            return client.read_reply().code == 421
        except TimeoutError:
            return False


def _proxied(world):
    with world.relay.client() as client:
        client.send("PROXY TCP4 192.0.2.7 192.0.2.8 99 25")
        return client.read_reply().code == 220 and client.command("NOOP", "") .code == 250


def _session(world):
    one = world.pass_on()[0]
    return world.sink.sessions[one.session]


def _hello(world):
    return next(line for _, line in _session(world).commands if line.startswith("EHLO")).split()[1]


def _peer(world):
    return _session(world).peer


def _transactions(world):
    return len(world.pass_on_to([f"u{n}@dest.test" for n in range(3)])[1])


@pytest.mark.parametrize("section, name, one, two, asks, answers", [pytest.param(*row, id=f"{row[0]}.{row[1]}".lstrip(".")) for row in _rows()])
def test_what_is_set_holds_from_the_reload_on_and_what_was_set_no_longer(world, section, name, one, two, asks, answers):
    try:
        for value, answer in zip((one, two, GONE), answers):
            world.set(section, name, value(world) if callable(value) else value)
            if answer is not None:
                assert asks(world) == answer, value
    finally:
        world.set(section, name, GONE)


def test_an_open_session_keeps_its_listener_and_has_tables_and_limits_of_now(world):
    with world.relay.client() as client:
        assert "SIZE 52428800" in client.greet().lines
        world.set("listener", "recipient_limit", 1)
        world.set("", "message_size_limit", "1m")
        world.set("", "recipient_access", [world.table("closed", "closed@dest.test reject 551 5.7.1 no")])
        world.set("", "always_bcc", "all@copy.test")
        assert "SIZE 52428800" in client.command("EHLO client.test", 250).lines
        client.command("MAIL FROM:<from@sender.test>", 250)
        client.command("RCPT TO:<closed@dest.test>", 551)
        client.command("RCPT TO:<a@dest.test>", 250)
        client.command("RCPT TO:<b@dest.test>", 250)
        client.command("DATA", 354)
        client.send(b"Subject: x\r\n\r\nx\r\n.\r\n")
        ident = client.expect(250).lines[0].split()[-1]
    world.relay.wait_event("done", 60, id=ident)
    assert sorted(event["to"] for event in world.relay.events("sent", id=ident)) == ["a@dest.test", "all@copy.test", "b@dest.test"]
    for section, name in (("listener", "recipient_limit"), ("", "message_size_limit"), ("", "recipient_access"), ("", "always_bcc")):
        world.set(section, name, GONE)


# --- connections that are kept


def _kept(lab, sink, **transport):
    """A relay that has an idle connection to the sink, and keeps it for longer than a test takes."""
    relay = lab.relay(Config(transports={"smtp": {"connection_idle_timeout": "5m", **transport}}).route_all_to(sink.port))
    relay.send()
    relay.wait_event("sent")
    assert sink.connections == 1
    return relay


def _change(relay, **settings):
    relay.config.transports["smtp"] |= settings
    relay.write_config()
    assert relay.command("reload").returncode == 0


def test_a_kept_connection_ends_after_its_time_of_now(lab):
    sink = lab.sink()
    relay = _kept(lab, sink)
    _change(relay, connection_idle_timeout="50ms")
    wait_until(lambda: sink.connections == 0, 60, "the connection to end")
    assert sink.sessions[0].verbs()[-1] == "QUIT"


def test_8bit_content_is_converted_as_the_settings_are_now(lab):
    content = b"Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\xc3\xa4\r\n"
    sink = lab.sink(extensions=("PIPELINING",))
    relay = _kept(lab, sink)
    for count, (convert, seen) in enumerate([(False, b"\xc3\xa4"), (True, b"=C3=A4")], 2):
        _change(relay, convert_8bit=convert)
        with relay.client() as client:
            client.greet()
            client.send_mail("from@sender.test", ["to@dest.test"], content, mail_params=" BODY=8BITMIME")
        relay.wait_event("sent", count=count)
        assert seen in sink.messages[-1].content


def test_mail_goes_by_the_protocol_of_now_to_the_same_host(lab):
    sink = lab.sink()
    relay = _kept(lab, sink)
    sink.behaviour.lmtp = True
    _change(relay, protocol="lmtp")
    relay.send()
    sink.wait_messages(2)
    assert sink.sessions[sink.messages[-1].session].verbs()[0] == "LHLO"


def test_a_host_that_hangs_has_the_time_of_now(lab):
    """Mail waits for its greeting, or for its reply; the one goes on at once, the other comes to its end there."""
    sink = lab.sink(Rule("connect", "", times=1))
    relay = lab.relay(Config(transports={"smtp": {}}).route_all_to(sink.port))
    relay.send()
    wait_until(lambda: sink.sessions, 60, "a connection")
    _change(relay, greeting_timeout="299s")
    sink.wait_messages(1)


def test_a_host_sees_the_client_certificate_of_now_where_it_resumes_a_session_too(lab):
    """The tickets that it gave hold the certificate of before, and it would ask for no other."""
    first, second = (lab.certificates.host(name) for name in ("first.test", "second.test"))
    context = lab.certificates.server_context("host.test")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(lab.certificates.ca)
    sink = lab.sink(tls=context)
    relay = lab.relay(Config(), start=False)
    own = [str(pathlib.Path(relay.folder) / name) for name in ("cert.pem", "key.pem")]
    relay.config.transports["smtp"] = {"tls": "required", "client_certificate": own[0], "client_key": own[1]}
    relay.config.route_all_to(sink.port)
    relay.write_config()

    def shown(pair, count):
        for source, to in zip(pair, own):
            shutil.copy(source, to)
        if relay.running():
            assert relay.command("reload").returncode == 0
        else:
            relay.start()
        relay.send()
        relay.wait_event("sent", count=count)
        session = sink.sessions[sink.messages[-1].session]
        (((_, name),),) = session.socket.getpeercert()["subject"]
        session.drop()
        session.ended.wait(60)
        return name

    # Of two connections in a row the second resumes what the first began.
    assert [shown(first, count) for count in (1, 2, 3)] == ["first.test"] * 3
    assert relay.events("tls", resumed="yes")
    assert shown(second, 4) == "second.test"
