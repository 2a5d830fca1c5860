# SPDX-License-Identifier: ISC
"""No password and no token goes to a host that has not proven who it is, unless the row of credentials says so."""

import os
import pathlib

import pytest

from lab.config import Config
from lab.net import LOOPBACK, wait_until


def _relay(lab, sink, row="", policy="", transports=None, **options):
    folder = lab.folder("login")
    files = {"secret": "Hush-1\n", "credentials": f"[{LOOPBACK}]:{sink.port} ann password:{folder}/secret {row}\n",
             "policy": f"[{LOOPBACK}]:{sink.port} {policy}\n" if policy else ""}
    for name, text in files.items():
        with open(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as stream:
            stream.write(text)
    config = Config(settings={"credentials": [f"{folder}/credentials"], "tls_policy": [f"{folder}/policy"]},
                    transports=transports or {}).route_all_to(sink.port)
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


@pytest.mark.parametrize("what", ("login", "policy"))
def test_mail_that_waits_goes_on_the_terms_of_the_tables_now(lab, what):
    """The first is sent by the login of before, in clear, and the second waits behind a rate, with a connection open."""
    sink = lab.own_sink("--login", "ann:Hush-1", "--login", "bob:Hush-1")
    relay = _relay(lab, sink, row="clear", transports={"smtp": {"destination_rate": "1/h"}})
    for _ in range(2):
        relay.send()
    assert sink.wait_messages()[0].endswith(" login=ann")
    relay.wait_event("sent")
    name, old, new = {"login": ("credentials", " ann ", " bob "), "policy": ("tls_policy", "", f"[{LOOPBACK}]:{sink.port} required\n")}[what]
    path = pathlib.Path(relay.config.settings[name][0])
    path.write_text(path.read_text(encoding="ascii").replace(old, new, 1), encoding="ascii")
    relay.config.transports["smtp"] = {}
    relay.write_config()
    assert relay.command("reload").returncode == 0
    if what == "login":
        assert sink.wait_messages(2)[1].endswith(" login=bob")
        return
    wait_until(lambda: "does not offer STARTTLS" in relay.command("explain", "dest.test").stdout, what="the policy to be in force")
    assert len(sink.messages()) == 1
