# SPDX-License-Identifier: ISC
"""The smarthost of the README as it stands there, with a real rspamd; and that rspamd failing in the midst of much mail."""

import base64
import pathlib
import re
import signal
import time

import pytest

from lab.config import Config
from lab.dkim_verifiers import DkimPy
from lab.filters import GTUBE, SPAM, RealFilter
from lab.load import Load, token
from lab.net import free_port, wait_until
from test_dkim import Keys

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
MANY, SOME = 100_000, 100  # more than there is time for; so many between two ends of rspamd
CONTENT = b"From: Ann <ann@example.org>\r\nTo: b@dest.test\r\nSubject: x\r\nDate: Sun, 22 Nov 2026 12:00:00 +0000\r\n\r\nHello\r\n"


class Pasted(Config):
    """What stands in the README, behind the settings that keep a test to itself."""

    pasted = ""

    def text(self):
        """Return the configuration file."""
        own = {name: value for name, value in self.settings.items() if name not in ("hostname", "networks")}
        return "".join(f'{name} = {value}\n' if isinstance(value, int) else f'{name} = "{value}"\n' for name, value in own.items()) + self.pasted


def _example():
    text = README.read_text(encoding="utf-8").partition("## As a smarthost")[2]
    return re.search(r"```\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture(name="rspamd")
def _rspamd(lab):
    made = RealFilter(lab.folder("rspamd"), "rspamd")
    lab.callback(made.close)
    return made


def test_the_readme_s_smarthost_works(lab, rspamd, tmp_path):
    example = _example()
    assert len(example.splitlines()) <= 20
    theirs = lab.certificates.host("provider.test")
    provider = lab.own_sink("--certificate", theirs[0], "--key", theirs[1], "--login", "us@example.org:pass", "-d", str(tmp_path / "provider.mail"))
    own, keys = lab.sink(), Keys(tmp_path)
    certificate, key = lab.certificates.host("out.example.org")
    for name, text in {
            "credentials": f"[127.0.0.1]:{provider.port} us@example.org password:{tmp_path}/provider\n", "provider": "pass\n",
            "tls_policy": f"[127.0.0.1]:{provider.port} verify:provider.test\n", "users": ""}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    ports = {name: free_port() for name in ("smtp", "submission", "submissions")}
    config = Pasted(listeners={name: {"address": [f"127.0.0.1:{port}"]} for name, port in ports.items()})
    config.pasted = f'auth {{ file = "{tmp_path}/users" }}\ntls {{ ca = "{lab.certificates.ca}" }}\n' + example
    for there, here in {
            "10.0.0.2:25": f"127.0.0.1:{ports['smtp']}", "0.0.0.0:587": f"127.0.0.1:{ports['submission']}",
            "0.0.0.0:465": f"127.0.0.1:{ports['submissions']}", "/etc/sluice/out.pem": certificate, "/etc/sluice/out.key": key,
            "inet:127.0.0.1:11332": rspamd.address, "/etc/sluice/dkim/s1.pem": keys.file["r"],
            "[smtp.example.net]:587": f"[127.0.0.1]:{provider.port}", "[10.0.0.5]:25": f"[127.0.0.1]:{own.port}",
            "/etc/sluice/": f"{tmp_path}/"}.items():
        assert there in config.pasted, there
        config.pasted = config.pasted.replace(there, here)
    relay = lab.relay(config, patient=True)
    assert relay.command("passwd", "-f", str(tmp_path / "users"), "ann", stdin="secret\n").returncode == 0
    relay.command("reload")
    for listener in ports:
        with relay.client(listener) as client:
            if listener == "submissions":
                client.shake_hands()
            client.greet("client.test")
            if listener == "submission":
                client.starttls()
                client.command("EHLO client.test")
            if listener != "smtp":
                client.command("AUTH PLAIN " + base64.b64encode(b"\0ann\0secret").decode(), 235)
            client.send_mail("ann@example.org", ["b@dest.test", "c@example.org"], CONTENT + SPAM.encode() + b"\r\n")
            client.send_mail("ann@example.org", ["b@dest.test"], CONTENT + GTUBE.encode() + b"\r\n", 554)
    verifier = DkimPy({"s1._domainkey.example.org": keys.record("r")})
    got = provider.wait_messages(3, 60)
    assert all(" to=<b@dest.test> " in one and one.endswith(" tls login=us@example.org") for one in got) and len(got) == 3
    ours = own.wait_messages(6, 60)
    assert sorted(one.recipients[0] for one in ours) == ["c@example.org"] * 3 + ["journal@archive.example.org"] * 3
    stored = [path.read_bytes() for path in sorted((tmp_path / "provider.mail").glob("*.eml"))]
    assert len(stored) == 3
    for content in stored + [one.content for one in ours if one.recipients == ["c@example.org"]]:
        assert b"\r\nX-Spam: Yes\r\n" in content and content.count(b"DKIM-Signature:") == 1
        assert not verifier.broken(content)


class Spam(Load):
    """Messages that whoever has looked at them has marked."""

    def content(self, number):
        """Return the message of that number, as it is meant; not so soon that thousands come while rspamd is away."""
        time.sleep(0.01)
        return super().content(number) + SPAM.encode() + b"\r\n"


def _away(rspamd, how):
    if how == "hung":
        rspamd.signal(signal.SIGSTOP)
        time.sleep(5)
        rspamd.signal(signal.SIGCONT)
        return
    rspamd.signal(signal.SIGTERM if how == "stopped" else signal.SIGKILL)
    time.sleep(0.5)
    rspamd.close()
    rspamd.start()


@pytest.mark.plain_only
@pytest.mark.seconds(300)
def test_rspamd_stopped_hung_and_killed_in_the_midst_of_many_messages(lab, rspamd):
    sink = lab.sink()
    config = Config({"workers": 2}, listeners={"smtp": {"milters": ["rspamd"], "error_limit": 0}}).route_all_to(sink.port)
    config.extra = f'milter "rspamd" {{ address = "{rspamd.address}"  timeout = 2s }}\n'
    relay = lab.relay(config)
    load = Spam(relay.port, MANY, sessions=8)
    for how in ["stopped", "hung", "killed"]:
        load.wait_acknowledged(len(load.acknowledged) + SOME, 120)
        told = len(relay.events("milter", state="away")), len(relay.events("milter", state="ready"))
        _away(rspamd, how)
        relay.wait_event("milter", 60, count=told[0] + 1, state="away")
        relay.wait_event("milter", 60, count=told[1] + 1, state="ready")
    load.close()
    ids = load.acknowledged

    def missing():
        return {ids[one] for one in set(ids) - {token(one.content) for one in sink.messages}}

    try:
        wait_until(lambda: not missing(), 60, "all that was taken on")
    except AssertionError:
        pytest.fail(str([event for event in relay.events() if event.get("id") in missing()]))
    assert 3 * SOME <= len(sink.messages) == len(ids) < MANY
    assert all(b"\r\nX-Spam: Yes\r\n" in one.content for one in sink.messages)
