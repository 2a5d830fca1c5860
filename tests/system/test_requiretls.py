# SPDX-License-Identifier: ISC
"""Mail that may only go where TLS is proven, all the way, and mail that does not need it (RFC 8689)."""

import email
import email.policy
import json
import pathlib
import re
import ssl

import pytest

from lab.behaviour import EVERYTHING
from lab.certs import Certificates
from lab.config import Config
from lab.net import free_port
from lab.signed import SignedZones

HOST = "127.0.0.1"
OFFERING = (*EVERYTHING, "REQUIRETLS")
SECRET = b"Subject: known\r\nTLS-Required: No\r\n\r\nsecret words\r\n"
WAIVED = b"Subject: x\r\nTLS-Required:  no \r\n\r\nHello.\r\n"


def _config(certificates, **queue):
    certificate, key = certificates.host("relay.test")
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"} | queue,
                    extra=f'tls {{ ca = "{certificates.ca}" }}\n')
    config.listeners["smtp"] |= {"certificate": certificate, "key": key}
    return config


@pytest.fixture(scope="module", name="proof")
def _proof(certificates):
    """The TLS context of a host that proves to be the address that it is called."""
    return certificates.context_of(*certificates.odd("address-of-lab", "x", f"IP:{HOST}"))


def _send(relay, to, parameters=" REQUIRETLS", content=SECRET):
    with relay.client() as client:
        client.greet()
        client.starttls()
        client.command("EHLO client.test")
        client.send_mail("from@sender.test", [to], content, mail_params=parameters)


def test_it_is_announced_and_taken_under_tls_only(lab, certificates):
    relay = lab.relay(_config(certificates).route_all_to(lab.sink().port))
    with relay.client() as client:
        assert "REQUIRETLS" not in client.greet().lines
        assert "5.5.4" in client.command("MAIL FROM:<a@b.test> REQUIRETLS", 555).text
        client.starttls()
        assert "REQUIRETLS" in client.command("EHLO client.test").lines
        client.command("MAIL FROM:<a@b.test> REQUIRETLS=yes", 501)
        client.command("MAIL FROM:<a@b.test> REQUIRETLS REQUIRETLS", 501)
        client.command("MAIL FROM:<a@b.test> requiretls", 250)


def test_it_is_handed_on_to_who_proves_it_and_returned_by_who_does_not(lab, certificates, proof):
    """Four relays; the last two together: the first of them can't, the second can."""
    sinks = {"good": lab.sink(tls=proof, extensions=OFFERING), "simple": lab.sink(tls=proof),
             "clear": lab.sink(extensions=OFFERING),
             "stranger": lab.sink(tls=certificates.server_context("other.test"), extensions=OFFERING)}
    sender = lab.sink(tls=proof, extensions=OFFERING)
    config = _config(certificates)
    for name, sink in sinks.items():
        config.routes[f"{name}.test"] = {"relay": [f"[{HOST}]:{sink.port}"]}
    config.routes["both.test"] = {"relay": [f"[{HOST}]:{sinks[one].port}" for one in ("simple", "good")]}
    config.routes["sender.test"] = {"relay": [f"[{HOST}]:{sender.port}"]}
    relay = lab.relay(config)
    for name in ("good", "simple", "clear", "stranger", "both"):
        _send(relay, f"to@{name}.test")
    came = sinks["good"].wait_messages(2)
    assert {one.recipients[0] for one in came} == {"to@good.test", "to@both.test"}
    assert all("REQUIRETLS" in one.sender_params and one.tls for one in came)
    assert relay.wait_event("sent", to="to@good.test")["site"].endswith(" requiretls")
    for name, dsn in (("simple", "5.7.30"), ("clear", "5.7.10"), ("stranger", "5.7.10")):
        event = relay.wait_event("bounced", to=f"to@{name}.test")
        assert event["dsn"] == dsn and "REQUIRETLS was asked for" in event["reply"]
    assert not any(sinks[name].messages for name in ("simple", "clear", "stranger"))
    # The report hides as much as the message did.
    for report in sender.wait_messages(3):
        assert "REQUIRETLS" in report.sender_params and report.sender == ""
        assert b"Subject: known" in report.content and b"secret words" not in report.content
    # All other mail goes there as ever.
    for name in ("simple", "clear", "stranger"):
        relay.send(recipients=[f"other@{name}.test"])
        assert sinks[name].wait_messages(1)[0].recipients == [f"other@{name}.test"]
        assert "REQUIRETLS" not in sinks[name].messages[0].sender_params


def test_a_wish_outlives_a_restart(lab, certificates, proof):
    port = free_port()
    relay = lab.relay(_config(certificates, minimal_backoff_time="200ms", maximal_backoff_time="500ms")
                      .route_all_to(port))
    _send(relay, "to@dest.test")
    event = relay.wait_event("deferred", to="to@dest.test")
    assert "tls:     REQUIRETLS" in relay.command("queue", "show", event["id"]).stdout
    assert json.loads(relay.command("queue", "list", "--json").stdout)["tls"] == "REQUIRETLS"
    relay.restart()
    sink = lab.sink(tls=proof, extensions=OFFERING, port=port)
    assert "REQUIRETLS" in sink.wait_messages(1)[0].sender_params


@pytest.mark.parametrize("parameters", [" REQUIRETLS", ""])
def test_a_host_with_a_new_certificate_is_asked_for_it_where_a_session_holds_the_old_one(lab, certificates, parameters):
    """The old one is good no more, as after its last day; what goes by REQUIRETLS would be returned for it."""
    old = Certificates(lab.folder("old"))
    trusted = lab.folder("trusted") / "ca.pem"
    trusted.write_bytes(b"".join(pathlib.Path(one.ca).read_bytes() for one in (old, certificates)))
    context = certificates.context_of(*old.host("mx.test"))
    sink = lab.sink(tls=context, extensions=OFFERING)
    config = _config(certificates)
    config.extra = f'tls {{ ca = "{trusted}" }}\n'
    config.routes["dest.test"] = {"relay": [f"[{HOST}]:{sink.port}"], "tls": "verify:mx.test"}
    config.transports["smtp"] = {"connection_max_messages": 1}
    relay = lab.relay(config)
    for count in (1, 2):
        _send(relay, "to@dest.test", parameters)
        relay.wait_event("sent", count=count)
    assert relay.wait_event("tls", count=2, policy=re.compile("verify"))["resumed"] == "yes"
    context.load_cert_chain(*certificates.host("mx.test"))
    trusted.write_bytes(pathlib.Path(certificates.ca).read_bytes())
    assert relay.command("reload").returncode == 0
    _send(relay, "to@dest.test", parameters)
    relay.wait_event("sent", count=3)
    shaken = relay.wait_events("tls", count=3, policy=re.compile("verify"))
    assert len(shaken) == 3 and shaken[-1]["verified"] == "matched" and shaken[-1].get("resumed") is None
    assert not relay.events("bounced") and not relay.events("host", state="out")


def test_who_is_meant_is_told_by_dnssec_or_dane(lab, certificates):
    """Hosts with names of their own: named by secure MX records, by others, by themselves, proven by TLSA."""
    port = free_port()
    pair = certificates.host("mx.signed.test", "plain-a.test")
    sink = lab.sink(tls=certificates.context_of(*pair), extensions=OFFERING, port=port)
    odd = certificates.host("other.test", days=-5)
    by_records = lab.sink(tls=certificates.context_of(*odd), extensions=OFFERING, address="127.0.0.21", port=port)
    made = SignedZones(lab.folder("zones"))
    key = made.signed("signed.test", f"""@ MX 10 mx
mx A {HOST}
dane MX 10 mx.dane
mx.dane A 127.0.0.21
_{port}._tcp.mx.dane TLSA {certificates.tlsa(odd[0])}
wrong MX 10 mx.wrong
mx.wrong A 127.0.0.21
_{port}._tcp.mx.wrong TLSA 3 1 1 {"00" * 32}
""")
    made.unsigned("plain-mx.test", "@ MX 10 mx.signed.test.\n")
    made.unsigned("plain-a.test", f"@ A {HOST}\n")
    top = made.signed("test", "signed NS ns.invalid.\nplain-mx NS ns.invalid.\nplain-a NS ns.invalid.\n" + made.ds(key))
    made.signed(".", f"test NS ns.invalid.\n{made.ds(top)}\n")
    config = _config(certificates).resolve_with(lab.nsd(made.zones))
    config.dns |= {"allow_loopback": True, "trust_anchor": made.anchor()}
    config.transports["smtp"] = {"port": port}
    relay = lab.relay(config)
    for domain in ("signed.test", "dane.signed.test", "plain-a.test"):
        _send(relay, f"to@{domain}")
        relay.wait_event("sent", to=f"to@{domain}")
    assert len(sink.messages) == 2 and len(by_records.messages) == 1
    assert all("REQUIRETLS" in one.sender_params for one in sink.messages + by_records.messages)
    _send(relay, "to@plain-mx.test")
    event = relay.wait_event("bounced", to="to@plain-mx.test")
    assert event["dsn"] == "5.7.10" and "nothing proves that mx.signed.test is a mail host" in event["reply"]
    _send(relay, "to@wrong.signed.test")
    assert relay.wait_event("bounced", to="to@wrong.signed.test")["dsn"] == "5.7.10"
    # What the recipient's domain demands can be waived, by him who sends it, for a message.
    _send(relay, "usual@wrong.signed.test", "", b"Subject: x\r\n\r\nHello.\r\n")
    assert relay.wait_event("deferred", to="usual@wrong.signed.test")["dsn"] == "4.7.5"
    _send(relay, "waived@wrong.signed.test", "", WAIVED)
    relay.wait_event("sent", to="waived@wrong.signed.test")
    assert b"TLS-Required:  no" in by_records.messages[-1].content


def test_what_is_left_in_the_maildrop_can_waive_it(lab, certificates):
    relay = lab.relay(_config(certificates).route_all_to(free_port()))
    relay.wait_event("recover")
    relay.stop()
    assert relay.command("sendmail", "you@dest.test", stdin=WAIVED.decode()).returncode == 0
    relay.start()
    event = relay.wait_event("deferred", to="you@dest.test")
    assert "tls:     TLS-Required: No" in relay.command("queue", "show", event["id"]).stdout


def test_what_the_operator_demands_is_not_waived_and_a_report_is(lab, certificates):
    sink, sender = lab.sink(), lab.sink()
    config = _config(certificates, minimal_backoff_time="200ms", maximal_queue_lifetime="1s", queue_run_delay="1s")
    config.routes["dest.test"] = {"relay": [f"[{HOST}]:{sink.port}"], "tls": "required"}
    config.routes["sender.test"] = {"relay": [f"[{HOST}]:{sender.port}"]}
    relay = lab.relay(config)
    _send(relay, "to@dest.test", "", WAIVED)
    assert relay.wait_event("bounced", to="to@dest.test")["dsn"] == "4.4.7"
    report = sender.wait_messages(1)[0]
    assert email.message_from_bytes(report.content, policy=email.policy.default)["TLS-Required"] == "No"
    assert not sink.messages


def _breaking(lab, answer, *after):
    """Return the port of a host that offers STARTTLS and answers it so."""
    return lab.script([("send", b"220 mx.test ESMTP\r\n"), ("expect", rb"EHLO .*\r\n"),
                       ("send", b"250-mx.test\r\n250-REQUIRETLS\r\n250 STARTTLS\r\n"),
                       ("expect", rb"STARTTLS\r\n"), ("send", answer), *after, ("drain",)]).port


def test_hosts_whose_starttls_is_broken(lab, certificates, proof):
    """What will be so the next time is said at once, when all hosts have been tried; what may be chance is tried again."""
    ancient = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ancient.load_cert_chain(*certificates.host("mx.test"))
    ancient.set_ciphers("DEFAULT@SECLEVEL=0")
    ancient.minimum_version = ancient.maximum_version = ssl.TLSVersion.TLSv1_1
    good = lab.sink(tls=proof, extensions=OFFERING)
    lasting = {"refusing": _breaking(lab, b"502 5.5.1 not today\r\n"),
               "garbled": _breaking(lab, b"220 go\r\n", ("sleep", 0.1), ("send", b"250 what TLS?\r\n" * 10)),
               "ancient": lab.sink(tls=ancient, extensions=OFFERING).port}
    passing = {"busy": _breaking(lab, b"454 4.7.0 no keys just now\r\n"),
               "hanging": _breaking(lab, b"220 go\r\n", ("expect", b"."), ("close",)),
               "resetting": _breaking(lab, b"220 go\r\n", ("expect", b"."), ("reset",))}
    config = _config(certificates, maximal_queue_lifetime="1h")
    for name, port in (lasting | passing).items():
        config.routes[f"{name}.test"] = {"relay": [f"[{HOST}]:{port}"]}
    for name, port in {"rescued": good.port, "hopeful": free_port(), "hopeless": lasting["garbled"]}.items():
        config.routes[f"{name}.test"] = {"relay": [f"[{HOST}]:{one}" for one in (lasting["ancient"], port)]}
    relay = lab.relay(config)
    expected = {**dict.fromkeys([*lasting, "hopeless"], ("bounced", "5.7.10")),
                "busy": ("deferred", "4.7.0"), "hanging": ("deferred", "4.7.5"), "resetting": ("deferred", "4.7.5"),
                "hopeful": ("deferred", None), "rescued": ("sent", "2.0.0")}
    for name in expected:
        _send(relay, f"to@{name}.test")
    for name, (end, dsn) in expected.items():
        event = relay.wait_event(end, to=f"to@{name}.test")
        assert dsn in (None, event["dsn"]), event
    assert "not today" in relay.events("bounced", to="to@refusing.test")[0]["reply"]
    assert "can't begin TLS" in relay.events("bounced", to="to@garbled.test")[0]["reply"]


def test_the_copy_for_an_archive_wants_what_the_message_wants(lab, certificates, proof):
    sink, clear = lab.sink(tls=proof, extensions=OFFERING), lab.sink()
    config = _config(certificates).route_all_to(sink.port)
    config.extra += 'archive { to = { "good@archive.test", "clear@archive.test" } }\n'
    config.routes["clear@archive.test"] = {"relay": [f"[{HOST}]:{clear.port}"]}
    relay = lab.relay(config)
    _send(relay, "to@dest.test")
    assert relay.wait_event("deferred", to="clear@archive.test")["reply"].startswith("REQUIRETLS was asked for")
    relay.wait_event("sent", to="good@archive.test")
    relay.wait_event("sent", to="to@dest.test")
    assert all("REQUIRETLS" in one.sender_params for one in sink.transactions) and not clear.messages
