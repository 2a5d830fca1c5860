# SPDX-License-Identifier: ISC
"""sender_header: whom the header may name as the author, when somebody has logged in."""

import base64
import email
import email.policy

import pytest

from lab.config import Config
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
    f"From: <@relay.test:{ME}>",
    "From: me@OWN.TEST",
    f"From: {ME}\r\nFrom: {ALSO}",
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
    f"X: y\r\nfRoM:\t{OTHER}",
]


def by_data(client, content):
    """Send it; return the reply to its end."""
    client.command(f"MAIL FROM:<{ME}>")
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
