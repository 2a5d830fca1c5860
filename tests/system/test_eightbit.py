# SPDX-License-Identifier: ISC
"""8-bit content for hosts that do not offer 8BITMIME: converted part by part, or sent as it is."""

import email
import email.policy
import random

import pytest

from lab import received
from lab.config import Config
from lab.sink import Rule

TEXTS = ["Grüße\r\n", "ä" * 400 + "\r\n", "a = b\t \r\n.\r\n..ü\r\nFrom here\r\n", "日本語 " * 30 + " \r\nno end", "plain\r\n", ""]


LONG = "Grüße und  = mehr " * 60 + "\r\n"


def part(chance, depth=0):
    """A part of a message, its header first: text, bytes, a multipart or a message."""
    kind = chance.choice(["text", "text", "bytes", "multipart", "message"] if depth < 3 else ["text", "bytes"])
    encoding = chance.choice(["Content-Transfer-Encoding: 8bit\r\n", "content-transfer-encoding:  8BIT (yes)\r\n"])
    if kind == "text":
        return f"Content-Type: text/plain;\r\n\tcharset=utf-8\r\n{encoding}\r\n" + "".join(chance.choices(TEXTS, k=3))
    if kind == "bytes":
        return f"{encoding}Content-Type: application/x-own\r\n\r\n" + "".join(chance.choices(TEXTS, k=9))
    if kind == "message":
        return f"Content-Type: message/rfc822\r\n{encoding}\r\nSubject: within\r\n" + part(chance, depth + 1)
    mark = f"=_{chance.randrange(10**9)} {depth}"
    inner = "".join(f"--{mark}\r\n{part(chance, depth + 1)}\r\n" for _ in range(chance.randrange(1, 4)))
    return f'{encoding}Content-Type: multipart/mixed; boundary="{mark}"\r\n\r\npreamble\r\n{inner}--{mark}--\r\nepilogue\r\n'


def leaves(content):
    """What the parts of a message hold, decoded: the type, and the bytes with the last end of line left out."""
    message = email.message_from_bytes(content, policy=email.policy.compat32)
    found = []
    for one in message.walk():
        if not one.is_multipart():
            payload = one.get_payload(decode=True).replace(b"\r\n", b"\n")
            found.append((one.get_content_type(), payload[:-1] if payload.endswith(b"\n") else payload))
    return found


def send(relay, contents):
    """Send them declared as 8-bit."""
    with relay.client() as client:
        client.greet()
        for number, content in enumerate(contents):
            client.send_mail("a@sender.test", [f"{number}@dest.test"], content, mail_params=" BODY=8BITMIME")


@pytest.mark.parametrize("extensions", [("PIPELINING",), ("PIPELINING", "CHUNKING", "SIZE")], ids=["data", "chunking"])
def test_parts_are_converted_and_mean_what_they_meant(lab, extensions):
    sink = lab.sink(extensions=extensions)
    relay = lab.relay(Config().route_all_to(sink.port))
    chance = random.Random(117)
    contents = [f"MIME-Version: 1.0\r\nSubject: {n}\r\n{part(chance)}".encode() for n in range(150)]
    contents.append(f"MIME-Version: 1.0\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{LONG * 500}".encode())
    send(relay, contents)
    got = {one.recipients[0]: one for one in sink.wait_messages(len(contents))}
    for number, content in enumerate(contents):
        arrived = got[f"{number}@dest.test"]
        if content.isascii():
            assert received.without(arrived.content) == content
            continue
        assert arrived.content.isascii() and arrived.verb == "DATA", arrived.content[:2000]
        assert "BODY" not in arrived.sender_params and "SIZE" not in arrived.sender_params
        assert max(map(len, arrived.content.split(b"\r\n"))) <= 78 + 20
        assert leaves(received.without(arrived.content)) == leaves(content), (content, arrived.content)


def test_what_is_signed_or_no_mime_or_not_wanted_goes_as_it_is(lab):
    sink = lab.sink(extensions=())
    config = Config().route_all_to(sink.port)
    config.transports["plain"] = {"convert_8bit": False}
    config.routes["plain.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"], "transport": "plain"}
    relay = lab.relay(config)
    mime = "MIME-Version: 1.0\r\nContent-Transfer-Encoding: 8bit\r\n"
    contents = [f"{mime}DKIM-Signature: v=1\r\n\r\nGrüße\r\n", "Subject: x\r\n\r\nGrüße\r\n",
                f"{mime}Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\nGrüße\r\n--b--\r\n"]
    send(relay, [one.encode() for one in contents])
    relay.send(recipients=("3@plain.test",), content=f"{mime}\r\nGrüße\r\n".encode())
    got = {one.recipients[0]: received.without(one.content) for one in sink.wait_messages(4)}
    assert [got[f"{number}@dest.test"].decode() for number in range(3)] == contents
    assert got["3@plain.test"].decode() == f"{mime}\r\nGrüße\r\n"


def test_a_message_is_converted_anew_when_it_is_tried_again(lab):
    sink = lab.sink(Rule("end", "451 4.3.0 later", times=2), extensions=("PIPELINING",))
    config = Config(queue={"minimal_backoff_time": "50ms", "queue_run_delay": "50ms"}).route_all_to(sink.port)
    content = "MIME-Version: 1.0\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße\r\n".encode()
    send(lab.relay(config), [content])
    assert leaves(received.without(sink.wait_messages()[0].content)) == leaves(content)
