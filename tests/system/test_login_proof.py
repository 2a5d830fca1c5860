# SPDX-License-Identifier: ISC
"""No password and no token goes to a host that has not proven who it is, unless the row of credentials says so."""

import os

import pytest

from lab.certs import Certificates
from lab.config import Config
from lab.net import LOOPBACK, wait_until


def _relay(lab, sink, row="", policy="", **options):
    folder = lab.folder("login")
    files = {"secret": "Hush-1\n", "credentials": f"[{LOOPBACK}]:{sink.port} ann password:{folder}/secret {row}\n",
             "policy": f"[{LOOPBACK}]:{sink.port} {policy}\n" if policy else ""}
    for name, text in files.items():
        with open(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as stream:
            stream.write(text)
    config = Config(settings={"credentials": [f"{folder}/credentials"], "tls_policy": [f"{folder}/policy"]}).route_all_to(sink.port)
    config.extra += f'tls {{ ca = "{lab.certificates.ca}" }}\n'
    return lab.relay(config, **options)


def _host(lab, certificates, alternative=f"IP:{LOOPBACK}"):
    """A host that takes any login, with a certificate of an authority: ours, or his own."""
    paths = certificates.odd(f"h{alternative[-1]}", "host", alternative)
    return lab.sink(tls=certificates.server_context_of(*paths), users={"ann": "Hush-1"})


def _logins(sink):
    return [line for session in sink.sessions for _, line in session.commands if line.upper().startswith("AUTH")]


def test_the_next_hop_itself_gets_the_login_without_any_policy(lab):
    """The control: the same host with a certificate that names it, by our authority."""
    sink = _host(lab, lab.certificates)
    relay = _relay(lab, sink)
    relay.send()
    sink.wait_messages()
    assert len(_logins(sink)) == 1 and relay.wait_event("tls")["verified"] == "matched"
    assert "unauthenticated" not in relay.command("check").stderr


@pytest.mark.parametrize("who", ("another authority", "another name"))
@pytest.mark.parametrize("policy", ("", "required", "opportunistic"))
def test_a_man_in_the_middle_gets_no_auth_and_the_mail_waits(lab, who, policy):
    sink = _host(lab, Certificates(lab.folder("mallory"))) if who == "another authority" else _host(lab, lab.certificates, "DNS:mallory.test")
    relay = _relay(lab, sink, policy=policy)
    relay.send()
    deferred = relay.wait_event("deferred")
    assert deferred["dsn"] == "4.7.5" and "no login is sent without proof" in deferred["reply"], deferred
    assert "no login is sent without proof" in relay.command("explain", deferred["id"]).stdout
    wait_until(lambda: len(sink.sessions) >= 3, 60, "further tries")
    assert not _logins(sink) and not sink.messages and not relay.events("bounced")
    tried = relay.command("login", f"[{LOOPBACK}]:{sink.port}", "--test")
    assert tried.returncode == 75 and "no login is sent without proof" in tried.stdout and not _logins(sink)


def test_a_row_may_waive_it_and_check_says_so(lab):
    sink = _host(lab, Certificates(lab.folder("mallory")))
    relay = _relay(lab, sink, row="unauthenticated")
    relay.send()
    sink.wait_messages()
    assert len(_logins(sink)) == 1
    assert "the password of ann goes under TLS to whoever answers: unauthenticated" in relay.command("check").stderr


def test_what_a_policy_names_is_proof(lab):
    sink = _host(lab, lab.certificates, "DNS:mx.provider.test")
    relay = _relay(lab, sink, policy="verify:mx.provider.test")
    relay.send()
    sink.wait_messages()
    assert len(_logins(sink)) == 1


def test_a_waived_row_still_wants_tls(lab):
    sink = lab.sink(users={"ann": "Hush-1"})
    relay = _relay(lab, sink, row="unauthenticated")
    relay.send()
    assert relay.wait_event("deferred")["dsn"] == "4.7.4"
    assert not _logins(sink)
