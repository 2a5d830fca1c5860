# SPDX-License-Identifier: ISC
"""sender_header: whom the header may name as the author, when somebody has logged in."""

import base64
import contextlib
import email
import email.policy
import email.utils
import random
import re
import subprocess

import pytest

from lab.config import Config
from lab.net import longer
from lab.smtp import stuff

ME, ALSO, OTHER = "me@own.test", "also@own.test", "boss@own.test"

GOOD = [
    f"From: {ME}",
    f"FROM: <{ME}>",
    f"From:{ME}",
    f"From : {ME}",
    f'From: "{OTHER}" <{ME}>',  # a display name is anybody's to choose
    f"From: {ME} ({OTHER})",
    f"From: (a (nested) comment {OTHER}) Me (again) <{ME}> (and again)",
    f"From: =?utf-8?q?boss=40own=2Etest?= <{ME}>",
    f'From: "A \\"quoted\\" <{OTHER}> name" <{ME}>',
    f"From:\r\n Me\r\n\t<{ME}>",
    f"From: Me\r\n <\r\n {ME}\r\n >",
    f"From: {ME}, Also <{ALSO}>\r\nSender: {ME}",
    f"From: us: {ME}, {ALSO};",
    f"From: Dr. Me <{ME}>",
    "From: me@OWN.TEST",
    f"From: \"me\"@own.test",
    f"From: {ME}\r\nReply-To: {OTHER}",
    f"From: {ME}\r\nno field at all\r\nFrom: {OTHER}",  # an empty line is put behind the header
]
BAD = [
    f"From: {OTHER}",
    f"from: {OTHER}",
    f"From : {OTHER}",
    f"From:{OTHER}",
    f"From: {ME}\r\nFrom: {OTHER}",
    f"From: {OTHER}\r\nFrom: {ME}",
    f"From: {ME}, {OTHER}",
    f"From: {OTHER}, {ME}",
    f"From: {ME}\r\nSender: {OTHER}",
    f"Sender: {OTHER}\r\nFrom: {ME}",
    f"From: {ME} <{OTHER}>",
    f'From: "{ME}" <{OTHER}>',
    f"From: ({ME}) {OTHER}",
    f"From: {OTHER} ({ME})",
    f"From:\r\n {OTHER}",
    f"From:\r\n boss\r\n @own.test",
    "From: boss(comment)@(comment)own.test",
    "From: \"boss\"@own.test",
    "From: boss @ own . test",
    f"From: us: {ME}, {OTHER};",
    f"From: {OTHER}:;",
    "From: undisclosed:;",
    "From:",
    "From: boss",
    f"From: <@{ME}:{OTHER}>",
    f"From: <{ME}",
    f"From: {ME} {OTHER}",
    f"From: {ME}; {OTHER}",
    f"From: {ME},\r\n\t{OTHER}",
    f"From: <{OTHER}> <{ME}>",
    "From: =?utf-8?q?boss=40own=2Etest?=",
    "From: BOSS@OWN.TEST",
    "From: bö@own.test",
    f"From: {ME}\r\nDate: Sun, 22 Nov 2026 10:00:00 +0000\r\nMessage-ID: <a@own.test>\r\nno field\r\nFrom: {OTHER}",
    f"From: {OTHER} <{ME}>",
    f"From: {OTHER}: {ME}",
    f"From: {OTHER}: {ME};",
    f'From: "{OTHER}": {ME};',
    f"From: ({OTHER}) us: {ME};",
    f"From: x:{OTHER}<{ME}>",
    f"From: x:{OTHER}<{ME}>;",
    f"From: {ME}\r\nFrom: {ALSO}",
    f"From: <@relay.test:{ME}>",
    f"From: {ME},",
    f"From: ,{ME}",
    f"From: me @own.test",
    f"From: {ME}\r\n \r\n Me",
    f"From: Me <{ME}>\r\nSender: {ME}\r\nSender: {ALSO}",
    "From: " + ", ".join([ME] * 101),
    f"X: y\r\nfRoM:\t{OTHER}",
]


def by_data(client, content, sender=ME):
    """Send it; return the reply to its end."""
    client.command(f"MAIL FROM:<{sender}>")
    client.command("RCPT TO:<to@dest.test>")
    client.command("DATA", 354)
    client.send(stuff(content))
    return client.read_reply()


def by_chunks(client, content):
    """The same, pipelined, in two chunks."""
    cut = len(content) // 2
    client.send(f"MAIL FROM:<{ME}>\r\nRCPT TO:<to@dest.test>\r\nBDAT {cut}\r\n".encode() + content[:cut]
                + f"BDAT {len(content) - cut} LAST\r\n".encode() + content[cut:])
    for _ in range(3):
        client.expect(250)
    return client.read_reply()


@pytest.fixture(name="world")
def _world(lab, tmp_path):
    users, table = tmp_path / "users", tmp_path / "sender_logins"
    table.write_text(f"{ME} anna\n{ALSO} anna bert\n{OTHER} bert\n")
    users.write_text("")
    users.chmod(0o600)
    sink = lab.sink()
    config = Config(settings={"sender_logins": [str(table)], "sender_header": "reject"}, listeners={"smtp": {"auth": True}},
                    auth={"file": str(users), "mechanisms": ["PLAIN"], "require_tls": False})
    config.listeners["smtp"]["error_limit"] = 0
    relay = lab.relay(config.route_all_to(sink.port))
    assert relay.command("passwd", "-f", str(users), "anna", stdin="secret\n").returncode == 0
    assert relay.command("reload").returncode == 0
    return relay, sink


def logged_in(client):
    """Greet, and log in."""
    client.greet()
    client.command("AUTH PLAIN " + base64.b64encode(b"\0anna\0secret").decode(), 235)


def test_a_reply_has_lines_of_512_bytes_at_most_whatever_is_in_it(world):
    relay, _ = world
    login = "l" * 255
    users = relay.config.auth["file"]
    assert relay.command("passwd", "-f", users, login, stdin="secret\n").returncode == 0
    assert relay.command("reload").returncode == 0
    with relay.client() as client:
        client.greet()
        client.command("AUTH PLAIN " + base64.b64encode(b"\0" + login.encode() + b"\0secret").decode(), 235)
        client.send(b"MAIL FROM:<>\r\nRCPT TO:<to@dest.test>\r\nDATA\r\n")
        for code in (250, 250, 354):
            client.expect(code)
        client.send(b"Sender: " + b"a" * 300 + b"@b.test\r\nSubject: x\r\n\r\nx\r\n.\r\n")
        said = client.expect(550).text
    assert "may not send as" in said and all(len(line) <= 510 for line in said.split("\n")), said


@pytest.mark.parametrize("send", [by_data, by_chunks])
def test_a_login_is_the_author_it_names_or_is_refused(world, send):
    relay, sink = world
    large = b"text\r\n" * 100000
    with relay.client() as client:
        logged_in(client)
        for body in (b"text\r\n", large):
            for header in GOOD if body is not large else GOOD[:2]:
                said = send(client, header.encode() + b"\r\nSubject: x\r\n\r\n" + body)
                assert said.code == 250, (header, said)
            for header in BAD if body is not large else BAD[:2]:
                said = send(client, header.encode() + b"\r\nSubject: x\r\n\r\n" + body)
                assert said.code == 550 and "5.7.1" in str(said), (header, said)
    got = sink.wait_messages(len(GOOD) + 2)
    assert len(got) == len(GOOD) + 2
    for one in got:
        for author in email.message_from_bytes(one.content, policy=email.policy.default).get_all("From", []):
            assert {str(address.addr_spec).lower() for address in author.addresses} <= {ME, ALSO}
    told = relay.wait_event("reject", count=len(BAD) + 2) and relay.events("reject")
    assert len(told) == len(BAD) + 2 and "The login anna may not send as boss@own.test, which is in From" in told[0]["reason"]


PIECES = [ME, ALSO, OTHER, "me", "boss", "own.test", "@", "<", ">", "<", ">", ",", ":", ";", ".", "(", ")", '"', "\\", "[", "]", " ", "\t",
          "\r\n ", "=?utf-8?q?boss=40own=2Etest?=", "us:", f"<{ME}>", f"<{OTHER}>", f'"{OTHER}"', f"({OTHER})", "[127.0.0.1]", "%", "!", "'", "=", "\xe9"]
PERL = r"""
use MIME::Base64; use Mail::Address; $| = 1;
while (<STDIN>) { print join("\t", map { $_->address // "" } Mail::Address->parse(decode_base64($_))), "\n"; }
"""


def _some_value(dice):
    """Good parts and bad ones: half of them one that is good, with pieces put in or taken away."""
    if dice.random() < 0.5:
        return "".join(dice.choice(PIECES) for _ in range(dice.randint(1, 8)))
    value = dice.choice([one for one in GOOD if one.startswith("From:")]).split(":", 1)[1].split("\r\nSender")[0].split("\r\nReply")[0].split("\r\nno")[0]
    for _ in range(dice.randint(1, 3)):
        at = dice.randint(0, len(value))
        value = value[:at] + dice.choice(PIECES) + value[at + dice.choice([0, 0, 0, 1, 2]):]
    return value


def _readers(perl, value):
    """Yield whom each of three readers takes for the authors."""
    unfolded = value.replace("\r\n", "")
    with contextlib.suppress(AttributeError, IndexError):  # some values it can't read at all
        field = email.policy.default.header_factory("From", unfolded)
        yield "headerregistry", [address.addr_spec for address in field.addresses]
    yield "utils", [address for _, address in email.utils.getaddresses([unfolded])]
    perl.stdin.write(base64.b64encode(unfolded.encode("latin-1")) + b"\n")
    perl.stdin.flush()
    found = perl.stdout.readline().decode("latin-1").rstrip("\n").split("\t")
    yield "Mail::Address", [re.sub("^[^@:]*:", "", one) for one in found]  # it takes a group's name for a part of the address


@pytest.mark.long
def test_no_other_reader_sees_an_author_that_was_not_checked(world):
    relay, _ = world
    values, dice, passed, wrong = longer(1500, 6000), random.Random(155), 0, []
    with subprocess.Popen(["perl", "-e", PERL], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as perl, relay.client() as client:
        logged_in(client)
        for _ in range(values):
            value = _some_value(dice)
            said = by_data(client, f"From:{value}\r\nSubject: x\r\n\r\ntext\r\n".encode("latin-1"))
            if said.code != 250:
                assert said.code == 550, said
                continue
            passed += 1
            for reader, authors in _readers(perl, value):
                if not {author.lower().replace('"me"', "me") for author in authors if author} <= {ME, ALSO}:
                    wrong.append((reader, value, authors))
        perl.stdin.close()
    assert not wrong, wrong[:20]
    assert passed > values / 30  # it does not refuse them all


def test_who_has_not_logged_in_is_not_asked(world):
    relay, sink = world
    relay.send(ME, ["to@dest.test"], b"From: boss@own.test\r\n\r\ntext\r\n")
    assert b"boss" in sink.wait_messages(1)[0].content
    with relay.client() as client:
        logged_in(client)
        said = by_data(client, b"Subject: no author\r\n\r\ntext\r\n")
        assert said.code == 250
        assert by_data(client, b"X: " + b"a" * 900 + b"\r\n" + (b"Y: " + b"b" * 900 + b"\r\n") * 1300 + b"\r\ntext\r\n").code == 552
    assert f"From: <{ME}>".encode() in sink.wait_messages(2)[1].content


@pytest.mark.parametrize("header, code", [
    ("Subject: no author", 550), (f"Sender: {ME}", 550), (f"From: {OTHER}", 550), (f"From: {ME}", 250), ("no field at all", 550)])
def test_what_has_no_sender_has_an_author(world, header, code):
    """None can be added for want of a sender."""
    relay, _ = world
    with relay.client() as client:
        logged_in(client)
        said = by_data(client, header.encode() + b"\r\n\r\ntext\r\n", "")
    assert said.code == code, said
