# SPDX-License-Identifier: ISC
"""What next hops must prove: levels, names, chains, who else may use a connection."""

import json
import os
import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from lab import peers
from lab.behaviour import Rule
from lab.certs import Certificates
from lab.config import Config
from lab.net import free_port, wait_until

NAME = "mx.a.test"

# The words of each row: what the certificate says; what is sluice's verdict, and its reason.
FAULTS = {
    "good": None,
    "any": None,
    "other": "is for other.test, not for mx.a.test",
    "expired": "certificate has expired",
    "stranger": "not trusted",
    "deep-star": r"is for \*.test, not for mx.a.test",
    "common": "is for no name, not for mx.a.test",
    "long": "chain too long",
    "address": "is for no name, not for mx.a.test",
    "part-star": r"is for m\*.a.test, not for mx.a.test",
}


def _certificates(certificates, folder):
    stranger = Certificates(folder)
    return {
        "good": certificates.host(NAME),
        "any": certificates.host("*.a.test"),
        "other": certificates.host("other.test"),
        "expired": certificates.host(NAME, days=-5),
        "stranger": stranger.host(NAME),
        "deep-star": certificates.host("*.test"),
        "common": certificates.odd("common", NAME),
        "long": certificates.odd("long", NAME, f"DNS:{NAME}", depth=11),
        "address": certificates.odd("address", "x", "IP:127.0.0.1"),
        "part-star": certificates.odd("part-star", "x", "DNS:m*.a.test"),
    }


def _tls(certificates):
    return "tls { ca = \"%s\" }\n" % certificates.ca


@pytest.fixture(scope="module")
def faults(module_lab, certificates, tmp_path_factory):
    """A sink for each certificate, and a relay that verifies each for a domain of its name."""
    files = _certificates(certificates, tmp_path_factory.mktemp("stranger"))
    sinks = {
        name: module_lab.sink(tls=certificates.context_of(*pair)) for name, pair in files.items()
    }
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"},
                    extra=_tls(certificates))
    for name, sink in sinks.items():
        config.routes[f"{name}.test"] = {
            "relay": [f"[127.0.0.1]:{sink.port}"], "tls": f"verify:{NAME}"}
    return sinks, module_lab.relay(config)


@pytest.mark.parametrize("name", FAULTS)
def test_a_certificate_is_believed_or_mail_waits(faults, name):
    sinks, relay = faults
    relay.send(recipients=[f"x@{name}.test"])
    if FAULTS[name] is None:
        assert sinks[name].wait_messages(1)[0].tls
        event = relay.wait_event("tls", verified="matched",
                                 site=re.compile(f":{sinks[name].port} tls="))
        assert event["version"].startswith("TLSv1.") and event["cipher"]
        return
    event = relay.wait_event("deferred", to=f"x@{name}.test")
    assert event["dsn"] == "4.7.5" and re.search(FAULTS[name], event["reply"])
    assert not any("MAIL" in session.verbs() for session in sinks[name].sessions)
    event = relay.wait_event("tls", site=re.compile(f":{sinks[name].port} tls="))
    matched_chain = name in ("other", "deep-star", "common", "address", "part-star")
    assert event["verified"] == ("trusted" if matched_chain else "none")
    assert not relay.events("bounced")


def _finger(certificates, port, folder):
    done = subprocess.run(
        [os.path.join(peers.root(), "usr/sbin/posttls-finger"), "-c", "-l", "secure", "-t", "10", "-L", "summary,verbose",
         "-F", certificates.ca, f"[127.0.0.1]:{port}", NAME],
        capture_output=True, text=True, check=False, env=peers.environment() | {"MAIL_CONFIG": str(folder)})
    return done.stdout + done.stderr


def test_posttls_finger_comes_to_the_same_verdict(faults, certificates, tmp_path):
    sinks, _ = faults
    (tmp_path / "main.cf").write_text(
        "compatibility_level = 3.6\ninet_protocols = ipv4\nmail_owner = mail\nsetgid_group = daemon\n")
    for name, reason in FAULTS.items():
        said = _finger(certificates, sinks[name].port, tmp_path)
        # Postfix falls back on the common name where no other name is there.
        verified = reason is None or name == "common"
        assert ("Verified TLS connection" in said) == verified, f"{name}: {said}"


def test_the_strictest_of_transport_route_and_table_holds(lab, certificates, tmp_path):
    good = lab.sink(tls=certificates.server_context("good.test"))
    clear = lab.sink()
    table = tmp_path / "policy"
    table.write_text(
        "# domains and next hops\n"
        "weaker.test     none\n"
        "needs.test      required\n"
        f"[127.0.0.1]:{good.port}  verify:good.test\n"
        ".below.test     required\n")
    config = Config(settings={"tls_policy": [str(table)]}, extra=_tls(certificates),
                    transports={"smtp": {}, "must": {"tls": "required"}})
    config.routes["*"] = {"relay": [f"[127.0.0.1]:{clear.port}"]}
    config.routes["weaker.test"] = {"relay": [f"[127.0.0.1]:{clear.port}"], "transport": "must"}
    config.routes["by-route.test"] = {"relay": [f"[127.0.0.1]:{clear.port}"], "tls": "required"}
    config.routes["good.test"] = {"relay": [f"[127.0.0.1]:{good.port}"]}
    relay = lab.relay(config)
    to = ["x@plain.test", "x@weaker.test", "x@needs.test", "x@by-route.test", "x@a.below.test",
          "x@below.test", "x@good.test"]
    relay.send(recipients=to)
    for address in ("x@weaker.test", "x@needs.test", "x@by-route.test", "x@a.below.test"):
        event = relay.wait_event("deferred", to=address)
        assert event["dsn"] == "4.7.4" and "does not offer STARTTLS" in event["reply"]
    for address in ("x@plain.test", "x@below.test", "x@good.test"):
        relay.wait_event("sent", to=address)
    assert good.wait_messages(1)[0].tls
    sites = {event["site"] for event in relay.events("sent") + relay.events("deferred")}
    assert f"[127.0.0.1]:{clear.port}" in sites
    assert f"[127.0.0.1]:{clear.port} tls=required" in sites


@pytest.mark.parametrize("written", ["[IPv6:::ffff:127.0.0.1]:{}", "[::ffff:127.0.0.1]:{}", "[0:0::FFFF:127.0.0.1]:{}", "[IPv6:::ffff:127.0.0.1]"])
def test_a_row_is_for_its_next_hop_in_each_spelling(lab, tmp_path, written):
    sink = lab.sink()
    (tmp_path / "policy").write_text(written.format(sink.port) + "  required\n")
    config = Config(settings={"tls_policy": [str(tmp_path / "policy")]}, transports={"smtp": {"tls": "none"}})
    config.routes["*"] = {"relay": [f"[IPv6:::FFFF:127.0.0.1]:{sink.port}"]}
    relay = lab.relay(config)
    relay.send(recipients=["x@dest.test"])
    assert relay.wait_event("deferred")["dsn"] == "4.7.4"
    assert not sink.messages


@pytest.mark.parametrize("written, wanted", [("[ipv6:2001:db8::1]:25", "[2001:db8::1]:25"), ("[mx.test]:025", "[mx.test]:25")])
def test_in_cdb_a_next_hop_has_one_spelling(lab, tmp_path, written, wanted):
    subprocess.run(["cdb", "-c", "-m", str(tmp_path / "policy.cdb")], input=f"{written} required\n", check=True, text=True)
    relay = lab.relay(Config(settings={"tls_policy": [str(tmp_path / "policy.cdb")]}), start=False)
    assert f'policy.cdb:1: the key "{written}" must be {wanted}' in relay.command("check").stderr


def test_required_authenticates_nobody_and_says_so(lab, certificates):
    expired = certificates.host("other.test", days=-5)
    sink = lab.own_sink("--certificate", expired[0], "--key", expired[1])
    relay = lab.relay(Config(transports={"smtp": {"tls": "required"}}).route_all_to(sink.port))
    relay.send()
    sink.wait_messages(1)
    assert relay.wait_event("tls")["verified"] == "none"


def test_a_none_in_the_table_spares_a_host_whose_tls_is_broken(lab, tmp_path):
    sink = lab.own_sink("--starttls")
    table = tmp_path / "policy"
    table.write_text("dest.test none\n")
    relay = lab.relay(Config(settings={"tls_policy": [str(table)]}).route_all_to(sink.port))
    relay.send(recipients=["x@dest.test"])
    assert not sink.wait_messages(1)[0].endswith(" tls")
    assert not sink.commands("STARTTLS")


def test_fingerprints_of_certificate_and_key_need_no_authority(lab, certificates):
    pair = certificates.host("pinned.test")
    sink = lab.sink(tls=certificates.context_of(*pair))
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    prints = {"cert.test": certificates.fingerprint(pair[0]).upper(),
              "key.test": certificates.fingerprint(pair[0], key=True),
              "other.test": "00" * 32}
    for domain, digits in prints.items():
        config.routes[domain] = {"relay": [f"[127.0.0.1]:{sink.port}"],
                                 "tls": f"verify:sha256={digits}"}
    relay = lab.relay(config)
    relay.send(recipients=[f"x@{domain}" for domain in prints])
    relay.wait_event("sent", to="x@cert.test")
    relay.wait_event("sent", to="x@key.test")
    event = relay.wait_event("deferred", to="x@other.test")
    assert event["dsn"] == "4.7.5" and certificates.fingerprint(pair[0]) in event["reply"]


def _wait_idle(relay):
    """Wait until each connection is free: only then may the next message have it."""
    def idle():
        rows = map(json.loads, relay.command("dest", "list", "--json").stdout.splitlines())
        hosts = [host for row in rows for host in row.get("hosts", [])]
        return hosts and all(host["connections"] == host["ready"] for host in hosts)

    wait_until(idle, what="idle connections")


def _with_mail(sink):
    return [session for session in sink.sessions if "MAIL" in session.verbs()]


def test_a_connection_serves_only_those_whose_policy_and_name_it_meets(lab, certificates):
    """Three domains by MX at one host, which has a certificate for one of them."""
    sink = lab.sink(tls=certificates.server_context("mail.a.test", "a.test"))
    zone = "@ MX 10 mx.provider.test."
    nsd = lab.nsd({"a.test": zone, "b.test": zone, "c.test": zone,
                   "provider.test": "mx A 127.0.0.1"})
    config = Config(extra=_tls(certificates), dns={"allow_loopback": True},
                    queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"},
                    transports={"smtp": {"port": sink.port, "connection_idle_timeout": "1m"}})
    config.routes["a.test"] = {"tls": "verify"}
    config.routes["b.test"] = {"tls": "verify"}
    relay = lab.relay(config.resolve_with(nsd))
    relay.send(recipients=["x@c.test"])
    relay.wait_event("sent", to="x@c.test")
    relay.send(recipients=["x@b.test"])
    event = relay.wait_event("deferred", to="x@b.test")
    assert "not for b.test,.b.test" in event["reply"]
    assert event["site"] == "mx.provider.test tls=verify:b.test,.b.test"
    relay.send(recipients=["x@a.test"])
    relay.wait_event("sent", to="x@a.test")
    # The host that did not do for b.test is tried again in between, and then there are more.
    assert len(sink.sessions) >= 3 and len(_with_mail(sink)) == 2
    _wait_idle(relay)
    relay.send(recipients=["y@c.test"])
    relay.wait_event("sent", to="y@c.test")
    _wait_idle(relay)
    relay.send(recipients=["y@a.test"])
    relay.wait_event("sent", to="y@a.test")
    assert len(_with_mail(sink)) == 2  # idle ones served those that they met
    assert len(sink.messages) == 4
    # The host serves all the same: what one identity lacks is not held against the others.
    hosts = [json.loads(line) for line in relay.command("dest", "list", "--json").stdout.splitlines()]
    assert any(host["site"] == "mx.provider.test" and host["state"] == "alive" for host in hosts)
    says = relay.command("explain", "mx.provider.test tls=verify:b.test,.b.test").stdout
    assert "not for b.test,.b.test" in says


def test_a_resumed_session_is_verified_anew(lab, certificates):
    sink = lab.sink(tls=certificates.server_context(NAME))
    config = Config(extra=_tls(certificates), transports={
        "smtp": {"tls": f"verify:{NAME}", "connection_max_messages": 1}})
    relay = lab.relay(config.route_all_to(sink.port))
    for count in (1, 2, 3):
        relay.send()
        sink.wait_messages(count)
    wait_until(lambda: len(relay.events("tls")) >= 3, 60, "three handshakes")
    assert all(event["verified"] == "matched" for event in relay.events("tls"))
    assert any(event.get("resumed") == "yes" for event in relay.events("tls"))


@pytest.mark.parametrize("name", [NAME, "other.test"])
def test_a_session_that_is_resumed_under_another_policy_must_meet_that(lab, certificates, name):
    """It was begun when nobody was verified, with a host that has one name: with that it goes on, with another not."""
    sink = lab.sink(tls=certificates.server_context(NAME))
    config = Config(extra=_tls(certificates), transports={"smtp": {"connection_max_messages": 1}},
                    queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    relay = lab.relay(config.route_all_to(sink.port))
    for count in (1, 2):
        relay.send()
        sink.wait_messages(count)
    relay.wait_event("tls", resumed="yes")
    relay.config.transports["smtp"]["tls"] = f"verify:{name}"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(recipients=["after@dest.test"])
    if name == NAME:
        relay.wait_event("sent", to="after@dest.test")
        assert relay.events("tls")[-1]["verified"] == "matched"
    else:
        assert relay.wait_event("deferred", to="after@dest.test")["dsn"] == "4.7.5"
        assert len(sink.messages) == 2


def test_a_real_postfix_is_verified(lab, certificates):
    certificate, key = certificates.host("postfix.test")
    postfix = lab.postfix(settings={
        "smtpd_tls_security_level": "may", "smtpd_tls_cert_file": certificate,
        "smtpd_tls_key_file": key})
    config = Config(extra=_tls(certificates),
                    queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    relay_to = {"relay": [f"[127.0.0.1]:{postfix.port}"]}
    config.routes["good.test"] = {**relay_to, "tls": "verify:postfix.test"}
    config.routes["bad.test"] = {**relay_to, "tls": "verify:other.test"}
    relay = lab.relay(config)
    relay.send(recipients=["x@good.test", "x@bad.test"])
    relay.wait_event("sent", to="x@good.test")
    assert relay.wait_event("deferred", to="x@bad.test")["dsn"] == "4.7.5"


def test_what_is_wrong_with_a_policy_is_said_with_its_line(lab, tmp_path):
    table = tmp_path / "policy"
    table.write_text("a.test  dane:b.test\nb.test strict\nuser@c.test none\nd.test verify:sha256=12\n")
    config = Config(settings={"tls_policy": [str(table)]},
                    dns={"dnssec": "off"}, transports={"smtp": {"tls": "dane-only"}},
                    extra='tls { ca = "/nowhere/ca.pem" minimum = "1.1" }')
    relay = lab.relay(config, start=False)
    said = relay.command("check").stderr
    for words in ("dane-only wants DNSSEC", "nowhere/ca.pem", "minimum"):
        assert words in said
    config = Config(settings={"tls_policy": [str(table)]})
    said = lab.relay(config, start=False).command("check").stderr
    for line, words in enumerate(("must be none", "must be none", "is not a domain",
                                  "64 hexadecimal digits"), 1):
        assert re.search(f"policy:{line}: .*{words}", said), said
    table.write_text("a.test  dane\n")
    config = Config(settings={"tls_policy": [str(table)]}, dns={"dnssec": "off"})
    done = lab.relay(config, start=False).command("check")
    assert done.returncode == 0 and "tls_policy of a.test: dane wants DNSSEC" in done.stderr + done.stdout


def _told(relay, *words):
    """Run sluice tls; return its exit status and its objects."""
    done = relay.command("tls", "--json", *words)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_sluice_tls_tells_policy_host_certificate_and_outcome(lab, certificates, tmp_path):
    pair = certificates.host("mx.dest.test", "dest.test")
    tls, clear = lab.sink(tls=certificates.context_of(*pair)), lab.sink()
    table = tmp_path / "policy"
    table.write_text("# one\ndest.test verify\nother.test verify\nclear.test required\n")
    zone = "@ MX 10 mx.dest.test."
    nsd = lab.nsd({"dest.test": f"{zone}\nmx A 127.0.0.1", "other.test": zone, "open.test": zone})
    config = Config(settings={"tls_policy": [str(table)]}, extra=_tls(certificates),
                    transports={"smtp": {"port": tls.port}}, dns={"allow_loopback": True})
    config.routes["clear.test"] = {"relay": [f"[127.0.0.1]:{clear.port}"]}
    relay = lab.relay(config.resolve_with(nsd), start=False)
    status, (host,) = _told(relay, "dest.test")
    assert status == 0 and host["outcome"] == "sent" and host["verified"] == "matched"
    assert (host["policy"], host["by"], host["file"], host["line"]) == (
        "verify:dest.test,.dest.test", "tls_policy", str(table), 2)
    assert (host["host"], host["address"], host["port"]) == ("mx.dest.test", "127.0.0.1", tls.port)
    assert host["version"] == "TLSv1.3" and host["starttls"] is True
    (leaf,) = host["chain"]
    assert leaf["sha256"] == certificates.fingerprint(pair[0]) and 28 <= leaf["days"] <= 30
    assert "DNS:dest.test" in leaf["names"] and "lab authority" in leaf["issuer"]
    status, (host,) = _told(relay, "somebody@other.test")
    assert status == 1 and host["outcome"] == "deferred" and host["verified"] == "trusted"
    assert "not for other.test" in host["reason"]
    # Nobody is asked there, but what would come of it is told.
    status, (host,) = _told(relay, "open.test")
    assert status == 0 and host["policy"] == "opportunistic" and host["verified"] == "trusted"
    status, (host,) = _told(relay, f"[127.0.0.1]:{clear.port}", )
    assert status == 0 and host["says"] == "sent in clear: STARTTLS is not offered"
    status, (host,) = _told(relay, "clear.test")
    assert status == 1 and host["outcome"] == "deferred" and "4.7.4" in host["says"]
    status, (host,) = _told(relay, "-n", "dest.test")
    assert status == 0 and "chain" not in host
    status, (host,) = _told(relay, "nowhere.dest.test")
    assert status == 1 and host["failure"]
    text = relay.command("tls", "dest.test").stdout
    assert f"* tls_policy verify, {table}:2" in text
    assert "a message would be sent under TLS, to whom it is meant for" in text
    assert relay.command("tls", "not a domain").returncode == 1
    assert relay.command("tls").returncode == 2


@pytest.mark.parametrize(("demand", "status", "says"), [("opportunistic", 0, "sent in clear: STARTTLS is not offered"),
                                                        ("required", 1, "deferred, 4.7.4: STARTTLS is not offered")])
def test_sluice_tls_greets_a_host_that_knows_no_ehlo_as_mail_does(lab, demand, status, says):
    """It said of each that it cannot be talked to, while mail went there."""
    sink = lab.sink(Rule("ehlo", "502 5.5.1 what is that?"))
    relay = lab.relay(Config(transports={"smtp": {"tls": demand}}).route_all_to(sink.port))
    ended, (host,) = _told(relay, "dest.test")
    assert (ended, host["says"], host["starttls"]) == (status, says, False)
    relay.send()
    assert relay.wait_event("sent" if status == 0 else "deferred")["dsn"] == ("2.0.0" if status == 0 else "4.7.4")


@pytest.mark.parametrize("of", ["transport", "source"])
def test_sluice_tls_connects_from_where_mail_does(lab, certificates, of):
    """The host wants nothing from another address: the command said that mail would be deferred."""
    sink = lab.sink(Rule("connect", "554 5.7.1 not from you", pattern=r"^127\.0\.0\.1$", close=True),
                    tls=certificates.server_context("mx.test"))
    config = Config()
    if of == "transport":
        config.transports["smtp"] = {"source_address": "127.0.0.21", "helo": "out.example.org"}
    else:
        config.transports["smtp"] = {"sources": ["six", "a"]}
        config.extra = ('source "six" { address = { "::1" }  helo = "six.example.org" }\n'
                        'source "a" { address = { "127.0.0.21" }  helo = "out.example.org" }\n')
    relay = lab.relay(config.route_all_to(sink.port), start=False)
    status, (host,) = _told(relay, "dest.test")
    assert status == 0 and host["outcome"] == "sent"
    assert [(session.peer, next(line for _, line in session.commands)) for session in sink.sessions] == [("127.0.0.21", "EHLO out.example.org")]


def test_authorities_behind_one_that_cannot_be_read_are_trusted(lab, certificates, tmp_path):
    """The first such ended the reading of the file: mail to hosts of all that follow was deferred, and nothing said why."""
    stranger = Path(Certificates(tmp_path).ca).read_text()
    lines = stranger.splitlines()
    broken = [*lines[:5], "MIIB////", lines[-1]]
    ca = tmp_path / "bundle.pem"
    ca.write_text("\n".join([stranger, *broken, "", Path(certificates.ca).read_text()]))
    sink = lab.sink(tls=certificates.context_of(*certificates.host("mx.a.test")))
    config = Config(extra=f'tls {{ ca = "{ca}" }}\n')
    relay = lab.relay(config, start=False)
    _, (told,) = _told(relay, f"[127.0.0.1]:{sink.port}")
    assert told["verified"] == "trusted" and "not for 127.0.0.1" in told["reason"]
    said = relay.command("check")
    assert said.returncode == 0 and f"tls {{ ca }}: a certificate in {ca} cannot be read, and nobody is trusted for it" in said.stderr


def test_an_authority_that_is_swallowed_by_the_one_before_is_said(lab, certificates, tmp_path):
    """As where the last line of a certificate was lost: what follows it counts as its rest."""
    own = Path(certificates.ca).read_text()
    ca = tmp_path / "bundle.pem"
    relay = lab.relay(Config(extra=f'tls {{ ca = "{ca}" }}\n'), start=False)
    for text, said in ((own + own, False), ("\n".join(own.splitlines()[:-1]) + "\n" + own, True)):
        ca.write_text(text)
        assert (f"a certificate in {ca} cannot be read" in relay.command("check").stderr) == said


def test_sluice_tls_knows_the_transport_and_route_of_a_next_hop_however_that_is_written(lab, tmp_path):
    """A weight, another spelling or a row of a table made it the hop of nobody: it had the default policy, and so a login was tried."""
    rows = tmp_path / "routes"
    rows.write_text("row.test careful relay=[127.0.0.5]:2525=2,[127.0.0.6]:2525\n", encoding="utf-8")
    config = Config(settings={"routes": [str(rows)]},
                    transports={"careful": {"tls": "required", "fallback_relay": ["[127.0.0.9]:2525"]}})
    config.routes["section.test"] = {"relay": ["[127.0.0.2]:2525=3", "[Relay.Test]:2525"], "transport": "careful", "tls": "verify"}
    relay = lab.relay(config, start=False)
    for hop, transport, policy in [("[127.0.0.2]:2525", "careful", "verify:127.0.0.2"), ("[relay.test]:2525", "careful", "verify:relay.test,.relay.test"),
                                   ("[RELAY.test]:2525", "careful", "verify:relay.test,.relay.test"), ("[127.0.0.5]:2525", "careful", "required"),
                                   ("[127.0.0.9]:2525", "careful", "required"), ("[127.0.0.2]:25", "smtp", "opportunistic")]:
        _, (told,) = _told(relay, "-n", hop)
        assert (told["transport"], told["policy"]) == (transport, policy), hop


def test_what_was_proven_to_authorities_of_yesterday_is_proven_no_more(lab, certificates, tmp_path):
    sink = lab.sink(tls=certificates.server_context(NAME))
    config = Config(extra=_tls(certificates), transports={
        "smtp": {"tls": f"verify:{NAME}", "connection_idle_timeout": "1m"}},
        queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}).route_all_to(sink.port)
    relay = lab.relay(config)
    for count in (1, 2):
        relay.send()
        relay.wait_event("sent", count=count)  # when the sink has it the connection is not idle yet
    assert len(sink.sessions) == 1
    # Beside the other: the sandbox lets a reload see no further.
    other = shutil.copy(Certificates(tmp_path).ca, os.path.join(certificates.folder, "other-ca.pem"))
    relay.config.extra = f'tls {{ ca = "{other}" }}\n'
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(recipients=["x@late.test"])
    assert relay.wait_event("deferred", to="x@late.test")["dsn"] == "4.7.5"


def test_who_names_the_host_of_another_as_its_own_leaves_no_name_there(lab):
    """The host ends the handshake at the name that evil.test gives it, so that this one's mail goes in clear, and no other's."""
    address, port, names = "127.0.0.2", free_port(), []
    context = lab.certificates.server_context("mx.good.test")

    def choose(_connection, name, _context):
        names.append(name)
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME if "evil" in name else None

    context.sni_callback = choose
    nsd = lab.nsd({"test": "".join(f"{name} MX 10 mx.{name}\nmx.{name} A {address}\n" for name in ("good", "evil"))})
    sink = lab.sink(address=address, port=port, tls=context)
    config = Config(transports={"smtp": {"port": port, "connection_idle_timeout": "1m"}}).resolve_with(nsd)
    config.dns["allow_loopback"] = True
    relay = lab.relay(config)
    for number in range(3):
        for domain in ("evil", "good"):
            relay.send(recipients=[f"{number}@{domain}.test"])
            sent = relay.wait_event("sent", to=f"{number}@{domain}.test")
            assert (sent["site"], sent["relay"]) == (f"mx.{domain}.test", f"mx.{domain}.test[{address}]:{port}")
    assert {(one.recipients[0][2:], one.tls) for one in sink.messages} == {("evil.test", False), ("good.test", True)}
    assert set(names) == {"mx.evil.test", "mx.good.test"}
    for words in (("dest", "show", "mx.good.test"), ("explain", "good.test")):
        assert "good" in (told := relay.command(*words).stdout) and "evil" not in told
