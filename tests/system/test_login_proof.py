# SPDX-License-Identifier: ISC
"""No password and no token goes to a host that has not proven who it is, unless the row of credentials says so."""

import os

import pytest

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


def _host(lab, who="the next hop"):
    """A host that lets ann in, with a certificate of our authority, for one name or another; or with one of his own."""
    words = ["--starttls", "--login", "ann:Hush-1"]
    names = {"the next hop": f"IP:{LOOPBACK}", "another name": "DNS:mx.provider.test"}
    if who in names:
        certificate, key = lab.certificates.odd(who.replace(" ", "-"), "host", names[who])
        words += ["--certificate", certificate, "--key", key]
    return lab.own_sink(*words)


def test_the_next_hop_itself_gets_the_login_without_any_policy(lab):
    """The control: the same host with a certificate that names it, by our authority."""
    sink = _host(lab)
    relay = _relay(lab, sink)
    relay.send()
    sink.wait_messages()
    assert len(sink.commands("AUTH")) == 1 and relay.wait_event("tls")["verified"] == "matched"
    assert "unauthenticated" not in relay.command("check").stderr


@pytest.mark.parametrize("who", ("another authority", "another name"))
@pytest.mark.parametrize("policy", ("", "required", "opportunistic"))
def test_a_man_in_the_middle_gets_no_auth_and_the_mail_waits(lab, who, policy):
    sink = _host(lab, who)
    relay = _relay(lab, sink, policy=policy)
    relay.send()
    deferred = relay.wait_event("deferred")
    assert deferred["dsn"] == "4.7.5" and "no login is sent without proof" in deferred["reply"], deferred
    assert "no login is sent without proof" in relay.command("explain", deferred["id"]).stdout
    wait_until(lambda: len(sink.commands("STARTTLS")) >= 3, 60, "further tries")
    assert not sink.commands("AUTH") and not sink.messages() and not relay.events("bounced")
    tried = relay.command("login", f"[{LOOPBACK}]:{sink.port}", "--test")
    assert tried.returncode == 75 and "no login is sent without proof" in tried.stdout and not sink.commands("AUTH")


def test_a_row_may_waive_it_and_check_says_so(lab):
    sink = _host(lab, "another authority")
    relay = _relay(lab, sink, row="unauthenticated")
    relay.send()
    sink.wait_messages()
    assert len(sink.commands("AUTH")) == 1
    assert "the password of ann goes under TLS to whoever answers: unauthenticated" in relay.command("check").stderr


def test_what_a_policy_names_is_proof(lab):
    sink = _host(lab, "another name")
    relay = _relay(lab, sink, policy="verify:mx.provider.test")
    relay.send()
    sink.wait_messages()
    assert len(sink.commands("AUTH")) == 1


def test_a_waived_row_still_wants_tls(lab):
    sink = lab.own_sink("--login", "ann:Hush-1")
    relay = _relay(lab, sink, row="unauthenticated")
    relay.send()
    assert relay.wait_event("deferred")["dsn"] == "4.7.4"
    assert not sink.commands("AUTH")
