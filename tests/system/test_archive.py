# SPDX-License-Identifier: ISC
"""Copies for an archive: what is in them, whose mail has one, and that neither is ever without the other."""

import base64
import email
import email.policy
import re

import pytest

from lab.config import Config
from lab.dkim_verifiers import DkimPy
from lab.net import free_port, wait_until
from lab.sink import Rule
from lab.smtp import stuff
from test_dkim import Keys

ARCHIVE = "journal@archive.test"
CONTENT = b"From: me@own.test\r\nTo: all@dest.test\r\nSubject: hello\r\n\r\nthe text\r\n.\r\n..two\r\n"


def archive(**settings):
    """The section of the configuration."""
    rows = "".join(f"  {name} = {value}\n" for name, value in settings.items())
    return "archive {\n" + rows + "}\n"


def copies(sink, count):
    """The copies that have come, by the id of their original, once there are so many."""
    def there():
        return [one for one in sink.messages if ARCHIVE in one.recipients]
    wait_until(lambda: len(there()) >= count, 60, f"{count} copies")
    return there()


def opened(copy):
    """A copy's envelope as pairs, and the bytes of the original that is attached, as they stand in it."""
    parsed = email.message_from_bytes(copy.content, policy=email.policy.SMTP.clone(utf8=True))
    assert not parsed.defects and parsed.get_content_type() == "multipart/mixed"
    text, original = parsed.iter_parts()
    assert text.get_content_type() == "text/plain" and original.get_content_maintype() == "message"
    lines = text.get_payload(decode=True).decode().strip("\r\n").splitlines()
    mark = b"\r\n--" + parsed.get_boundary().encode()
    part = copy.content.split(mark)[2]
    assert copy.content.endswith(mark + b"--\r\n") and copy.content.count(mark) == 3
    return [tuple(line.split(": ", 1)) for line in lines], part.split(b"\r\n\r\n", 1)[1], original.get_content_type()


@pytest.fixture(name="world")
def _world(lab):
    config = Config(settings={"hostname": "relay.test"}, extra=archive(to=f'{{ "{ARCHIVE}" }}'))
    sink = lab.sink()
    return config.route_all_to(sink.port).hurried(), sink


def test_a_copy_has_the_envelope_and_the_message_as_it_was_sent_on(lab, world):
    config, sink = world
    sink.behaviour.rules.append(Rule("rcpt", "550 5.1.1 no", "never"))
    config.aliases["list@own.test"] = {"to": ["one@dest.test", "two@dest.test"]}
    config.extra += 'recipient_access = { "ACCESS" }\n'
    access = lab.folder("access") / "access"
    access.write_text("refused@dest.test reject 550 not here\n")
    config.extra = config.extra.replace("ACCESS", str(access))
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<me@own.test>")
        client.command("RCPT TO:<list@own.test>")
        client.command("RCPT TO:<hidden@dest.test>")
        client.command("RCPT TO:<refused@dest.test>", 550)
        client.command("DATA", 354)
        client.send(stuff(CONTENT))
        number = client.expect(250).text.split()[-1]
    copy = copies(sink, 1)[0]
    assert copy.sender == "" and copy.recipients == [ARCHIVE]
    pairs, original, kind = opened(copy)
    assert kind == "message/rfc822" and pairs[:2] == [("Sender", "me@own.test"), ("Recipient", "one@dest.test, Original: list@own.test")]
    assert [value.split(",")[0] for name, value in pairs if name == "Recipient"] == [
        "one@dest.test", "two@dest.test", "hidden@dest.test"]
    assert dict(pairs)["Id"] in number and dict(pairs)["Client"] == "[127.0.0.1]" and "Time" in dict(pairs)
    sent = [one for one in sink.wait_messages(2) if ARCHIVE not in one.recipients][0]
    assert original == sent.content and b"refused" not in copy.content
    assert relay.wait_event("queued", archive_of=dict(pairs)["Id"])["to"] == ARCHIVE


def test_it_is_the_same_however_the_message_came(lab, world):
    config, sink = world
    relay = lab.relay(config)
    large = CONTENT + b"a line of text, many times over\r\n" * 150000
    eight = "From: me@own.test\r\nSubject: Grüße\r\n\r\nnaïve 日本語 – ".encode() * 3 + bytes(range(128, 256)) + b"\r\n"
    with relay.client() as client:
        client.greet()
        for verb, content, options in [("DATA", large, ""), ("BDAT", large, ""), ("DATA", eight, " BODY=8BITMIME"),
                                       ("BDAT", eight, " SMTPUTF8 BODY=8BITMIME"), ("BDAT", b"From: a@b.test\r\n\r\nno end", "")]:
            to = "jürgen@dest.test" if "UTF8" in options else "to@dest.test"
            client.send(f"MAIL FROM:<me@own.test>{options}\r\nRCPT TO:<{to}>\r\n".encode())
            client.expect(250)
            client.expect(250)
            if verb == "DATA":
                client.command("DATA", 354)
                client.send(stuff(content))
            else:
                cut = len(content) // 3
                client.send(f"BDAT {cut}\r\n".encode() + content[:cut] + f"BDAT {len(content) - cut} LAST\r\n".encode() + content[cut:])
                client.expect(250)
            client.expect(250)
    relay.command("sendmail", "-i", "-f", "me@own.test", "drop@dest.test", stdin="From: me@own.test\n\nby sendmail\n")
    sent = {opened(copy)[1]: copy for copy in copies(sink, 6)}
    others = [one.content for one in sink.wait_messages(12) if ARCHIVE not in one.recipients]
    assert sorted(sent) == sorted(others)
    kinds = [opened(copy)[2] for copy in sent.values()]
    assert kinds.count("message/global") == 1 and kinds.count("message/rfc822") == 5
    assert any(("Recipient", "jürgen@dest.test") in opened(copy)[0] for copy in sent.values())


def test_the_copy_of_mail_for_later_does_not_wait(lab, world):
    config, sink = world
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.send_mail("me@own.test", ["to@dest.test"], mail_params=" HOLDFOR=3600")
    assert len(copies(sink, 1)) == 1 == len(sink.messages)
    assert "not before, as its sender wants" in relay.command("queue", "list").stdout


def test_mail_left_in_the_maildrop_has_a_copy(lab, world):
    config, sink = world
    relay = lab.relay(config)
    relay.stop()
    relay.command("sendmail", "-i", "-f", "me@own.test", "drop@dest.test", stdin="From: me@own.test\n\nleft here\n")
    relay.start()
    pairs, original, _ = opened(copies(sink, 1)[0])
    assert re.fullmatch(r".+ \(uid \d+\), by sendmail", dict(pairs)["Client"]) and b"left here" in original


def test_whose_mail_is_copied_a_table_says(lab, world, tmp_path):
    config, sink = world
    table, users = tmp_path / "archive", tmp_path / "users"
    table.write_text(f"boss@own.test {ARCHIVE}\n.dest.test {ARCHIVE}\nlogin:anna {ARCHIVE}\n<> {ARCHIVE}\n")
    users.write_text("")
    users.chmod(0o600)
    config.extra = archive(tables=f'{{ "{table}" }}', sender='"archive@own.test"')
    config.listeners["smtp"] = {"auth": True}
    config.auth = {"file": str(users), "mechanisms": ["PLAIN"], "require_tls": False}
    relay = lab.relay(config)
    assert relay.command("passwd", "-f", str(users), "anna", stdin="secret\n").returncode == 0
    relay.command("reload")
    for sender, recipient in [("boss@own.test", "a@x.test"), ("Other@own.test", "b@x.test"), ("x@own.test", "c@sub.dest.test"),
                              ("", "d@x.test"), ("me@own.test", ARCHIVE)]:
        relay.send(sender, [recipient], CONTENT)
    with relay.client() as client:
        client.greet()
        client.command("AUTH PLAIN " + base64.b64encode(b"\0anna\0secret").decode(), 235)
        client.send_mail("me@own.test", ["e@x.test"], CONTENT)
    sink.wait_messages(10)
    found = [one for one in copies(sink, 4) if one.sender == "archive@own.test"]
    assert sorted(dict(opened(one)[0])["Recipient"] for one in found) == ["a@x.test", "c@sub.dest.test", "d@x.test", "e@x.test"]
    by_login = [dict(opened(one)[0]) for one in found if dict(opened(one)[0])["Recipient"] == "e@x.test"][0]
    assert by_login["Login"] == "anna" and all("Login" not in dict(opened(one)[0]) for one in found if b"e@x.test" not in one.content)
    assert len(sink.messages) == 10  # neither reports nor what goes to the archive itself


def test_a_copy_is_signed_as_ours_and_the_original_within_is_whole(lab, world, tmp_path):
    config, sink = world
    keys = Keys(tmp_path)
    config.extra += keys.section("relay.test", "r") + keys.section("own.test", "e")
    relay = lab.relay(config)
    relay.send("me@own.test", ["to@dest.test"], CONTENT + b"text\r\n" * 100000)
    copy = copies(sink, 1)[0]
    verifier = DkimPy({"r._domainkey.relay.test": keys.record("r"), "e._domainkey.own.test": keys.record("e")})
    assert copy.content.lower().startswith(b"dkim-signature:") and b"d=relay.test" in copy.content[:200]
    assert not verifier.broken(copy.content) and not verifier.broken(opened(copy)[1])
    assert relay.wait_event("queued", signed="relay.test:r")["archive_of"]


def test_an_archive_that_refuses_is_asked_again_and_what_it_never_takes_is_held(lab, world):
    config, sink = world
    rule = Rule("rcpt", "550 5.2.1 not today", "journal", times=2)
    sink.behaviour.rules.append(rule)
    config.queue = {"minimal_backoff_time": "100ms", "maximal_backoff_time": "200ms", "bounce_queue_lifetime": "2s"}
    relay = lab.relay(config)
    relay.send("me@own.test", ["to@dest.test"], CONTENT)
    copies(sink, 1)
    assert rule.seen >= 3 and relay.wait_event("deferred", to=ARCHIVE)["dsn"] == "5.2.1"
    rule.times = None
    relay.send("me@own.test", ["to@dest.test"], CONTENT)
    held = relay.wait_event("archive", result="held", timeout=60)["id"]
    assert all(one.sender == "me@own.test" or ARCHIVE in one.recipients for one in sink.messages)
    wait_until(lambda: held in relay.command("queue", "list", "--queue", "hold").stdout, 60, "the copy on hold")
    relay.kill()
    relay.start()
    rule.reply = None
    assert held in relay.command("queue", "list", "--queue", "hold").stdout
    assert relay.command("queue", "release", held).returncode == 0
    assert len(copies(sink, 2)) == 2


def test_a_crash_leaves_no_message_without_its_copy(lab, world):
    config, sink = world
    relay = lab.relay(config)
    sink.behaviour.rules.append(Rule("mail", "451 4.3.0 later"))
    large = CONTENT + b"text\r\n" * 100000
    answered = 0
    for round_number in range(4):
        with relay.client() as client:
            client.greet()
            for number in range(8):
                client.send_mail("me@own.test", [f"to{round_number}{number}@dest.test"], large if number % 4 == 3 else CONTENT)
                answered += 1
            client.command("MAIL FROM:<me@own.test>")
            client.command("RCPT TO:<last@dest.test>")
            client.command("DATA", 354)
            client.send(stuff(large))
            relay.kill()
        relay.start()
    sink.behaviour.rules.clear()
    relay.command("queue", "flush", "--all")
    sink.wait_messages(2 * answered, timeout=60)
    wait_until(lambda: not relay.command("queue", "list", "--json").stdout.strip(), 60, "an empty queue")
    originals = {one.content for one in sink.messages if ARCHIVE not in one.recipients}
    copied = {opened(one)[1] for one in sink.messages if ARCHIVE in one.recipients}
    assert len(originals) >= answered and originals <= copied


@pytest.mark.parametrize("settings, says", [
    ({"to": '{ "nobody" }'}, 'archive: to "nobody" is not an address'),
    ({"sender": '"grüße@own.test"'}, "is not an address"),
    ({"tables": '{ "TABLE" }'}, "table:2: \"nowhere\" is not an address"),
])
def test_what_check_says(lab, tmp_path, settings, says):
    table = tmp_path / "table"
    table.write_text(f"login:anna {ARCHIVE}\nx@own.test nowhere\n")
    section = archive(**settings).replace("TABLE", str(table))
    said = lab.relay(Config(extra=section), start=False).command("check")
    assert said.returncode == 1 and says in said.stdout + said.stderr, said


def test_two_relays_that_archive_through_each_other_copy_each_message_once(lab):
    """A copy that the other relay has made of a copy of ours is known again; what a client forges is not."""
    sink, ports = lab.sink(), {name: free_port() for name in "ab"}
    relays = {}
    for name, other in ("ab", "ba"):
        config = Config(settings={"hostname": f"{name}.test"}, extra=archive(to=f'{{ "journal@{name}.test" }}'))
        config.listeners["smtp"] = {"address": [f"127.0.0.1:{ports[name]}"]}
        config.route_all_to(sink.port).routes[f"{name}.test"] = {"relay": [f"[127.0.0.1]:{ports[other]}"]}
        relays[name] = lab.relay(config.hurried())
    relays["a"].send(sender="me@own.test", recipients=["x@dest.test"])
    sink.wait_messages(3)
    for name in "ab":
        wait_until(lambda one=relays[name]: not one.command("queue", "list", "--json").stdout, what="the queue to be empty")
    assert sorted(one.recipients[0] for one in sink.messages) == ["journal@a.test", "journal@b.test", "x@dest.test"]
    assert relays["a"].wait_event("archive", result="not copied", to="journal@a.test")
    copy = next(one for one in sink.messages if one.recipients == ["journal@b.test"])
    fields = re.findall(rb"^Sluice-Archived: .*\r\n(?:\t.*\r\n)*", copy.content.partition(b"\r\n\r\n")[0], re.M)
    assert len(fields) == 2
    forged = fields[0][:17] + fields[1][17:30] + fields[0][30:] + fields[1][:17] + fields[0][17:30] + fields[1][30:] + CONTENT
    relays["a"].send(sender="me@own.test", recipients=["y@dest.test"], content=forged)
    sink.wait_messages(6)
    assert sorted(one.recipients[0] for one in sink.messages[3:]) == ["journal@a.test", "journal@b.test", "y@dest.test"]
    relays["a"].wait_event("archive", result="not copied", count=2)
    assert len(relays["a"].events("archive", result="not copied")) == 2
