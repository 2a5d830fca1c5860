# SPDX-License-Identifier: ISC
"""Filters that people have: OpenDKIM signs, rspamd and clamav-milter refuse, and all three in a row."""

import base64
import hashlib
import re
import subprocess

import pytest

from lab import milter as m
from lab.config import Config
from lab.filters import EICAR, GTUBE, RealFilter
from lab.milter import Milter

NAMES = "rspamd", "clamav", "opendkim"
CONTENT = b"From: <a@sender.test>\r\nTo: <b@dest.test>\r\nSubject:  one\r\nDate: Sun, 22 Nov 2026 12:00:00 +0000\r\nMessage-ID: <1@sender.test>\r\n\r\nHello  there.\r\n"


@pytest.fixture(scope="module")
def filters(module_lab):
    made = {}
    for name in NAMES:
        made[name] = RealFilter(module_lab.folder(name), name)
        module_lab.callback(made[name].close)
    return made


@pytest.fixture(scope="module")
def sink(module_lab):
    return module_lab.sink()


@pytest.fixture(scope="module")
def relay(module_lab, sink, filters):
    config = Config({"workers": 1}).route_all_to(sink.port)
    config.listeners = {name: {"milters": [name]} for name in NAMES} | {"all": {"milters": list(NAMES)}}
    config.extra = "".join(f'milter "{name}" {{ address = "{one.address}" }}\n' for name, one in filters.items())
    return module_lab.relay(config)


def _send(relay, listener, content=CONTENT, code=250):
    with relay.client(listener) as client:
        client.greet()
        return client.send_mail("a@sender.test", ["b@dest.test"], content, code)


def _passed(relay, sink, listener, content=CONTENT):
    before = len(sink.messages)
    _send(relay, listener, content)
    return sink.wait_messages(before + 1)[-1].content


def _relaxed(field):
    name, _, value = field.partition(b":")
    return name.lower().strip() + b":" + re.sub(rb"[ \t]+", b" ", value.replace(b"\r\n", b"")).strip() + b"\r\n"


def _verify(content, folder):
    """Verify a relaxed/relaxed rsa-sha256 signature with openssl, the fields taken from the bottom."""
    header, body = content.split(b"\r\n\r\n", 1)
    fields = re.findall(rb"[^\r\n][^\r\n]*(?:\r\n[ \t][^\r\n]*)*", header)
    signature = next(one for one in fields if one.lower().startswith(b"dkim-signature:"))
    tags = dict(re.findall(r"(\w+)=([^;]*)", re.sub(r"\s", "", signature.decode().partition(":")[2])))
    lines = [re.sub(rb"[ \t]+", b" ", line).rstrip(b" ") + b"\r\n" for line in body.rstrip(b"\r\n").split(b"\r\n")]
    assert base64.b64encode(hashlib.sha256(b"".join(lines)).digest()).decode() == tags["bh"]
    rest, signed = [one for one in fields if one is not signature], b""
    for name in tags["h"].lower().split(":"):
        at = next((n for n in reversed(range(len(rest))) if rest[n].lower().startswith(name.encode() + b":")), None)
        signed += b"" if at is None else _relaxed(rest.pop(at))
    signed += _relaxed(re.sub(rb"(\bb=)[^;]*", rb"\1", signature)).rstrip(b"\r\n")
    (folder / "signed").write_bytes(signed)
    (folder / "signature").write_bytes(base64.b64decode(tags["b"]))
    return subprocess.run(["openssl", "dgst", "-sha256", "-prverify", folder / "key.pem", "-signature", folder / "signature",
                           folder / "signed"], capture_output=True, check=False).stdout == b"Verified OK\n"


def test_opendkim_signs_what_is_sent(relay, sink, filters, tmp_path):
    (tmp_path / "key.pem").write_bytes(open(f"{filters['opendkim'].folder}/key.pem", "rb").read())
    for _ in range(2):
        assert _verify(_passed(relay, sink, "opendkim"), tmp_path)
    large = CONTENT + b"a line of a large body \r\n" * 30000
    assert _verify(_passed(relay, sink, "opendkim", large), tmp_path)


def test_rspamd_refuses_its_test_message(relay, sink):
    assert _send(relay, "rspamd", CONTENT + GTUBE.encode() + b"\r\n", 554).text.startswith("554 5.7.1 ")
    assert b"Hello" in _passed(relay, sink, "rspamd")
    assert relay.wait_event("filter", milter="rspamd", action="reject")


def test_clamav_refuses_its_test_file(relay, sink):
    attached = CONTENT + b"\r\n" + base64.b64encode(b"x")
    assert "infected: Eicar" in _send(relay, "clamav", CONTENT + EICAR.encode() + b"\r\n", 550).text
    assert b"X-Virus-Status: Clean" in _passed(relay, sink, "clamav", attached)


def test_our_own_signature_comes_after_all_filters(module_lab, sink, tmp_path):
    milter = Milter()
    milter.behave({"E": m.replace_body(b"another body\r\n") + m.add_header("Reply-To", "<r@sender.test>") + m.packet(m.CONTINUE)})
    subprocess.run(["openssl", "genrsa", "-out", tmp_path / "key.pem", "2048"], check=True, capture_output=True)
    config = Config({"workers": 1}).route_all_to(sink.port)
    config.listeners["smtp"] = {"milters": ["one"]}
    config.extra = f'milter "one" {{ address = "{milter.address}" }}\n' \
                   f'dkim "sender.test" {{ selector = "s"  key = "{tmp_path}/key.pem" }}\n'
    relay = module_lab.relay(config)
    for content in CONTENT, CONTENT + b"a line of a large body \r\n" * 30000:
        signed = _passed(relay, sink, None, content)
        assert signed.endswith(b"\r\n\r\nanother body\r\n") and b"reply-to" in signed.lower().split(b"h=")[1].split(b";")[0]
        assert _verify(signed, tmp_path)
    relay.stop()
    milter.close()


def test_all_three_in_a_row(relay, sink, tmp_path, filters):
    (tmp_path / "key.pem").write_bytes(open(f"{filters['opendkim'].folder}/key.pem", "rb").read())
    assert _send(relay, "all", CONTENT + EICAR.encode() + b"\r\n", 550)
    assert _send(relay, "all", CONTENT + GTUBE.encode() + b"\r\n", 554)
    content = _passed(relay, sink, "all")
    assert b"X-Virus-Status: Clean" in content
    assert _verify(content, tmp_path)
