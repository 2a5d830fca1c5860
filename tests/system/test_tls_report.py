# SPDX-License-Identifier: ISC
"""Reports on TLS: what is counted, over a restart and over midnight, and who gets what."""

import datetime
import email
import gzip
import json
import pathlib
import re
import time

import pytest

from lab.behaviour import Rule
from lab.certs import Certificates
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.orders import order, with_orders
from lab.policy_host import policy
from lab.signed import DAY, SignedZones
from lab.sts_world import BAD, CLEAR, GOOD, World

pytestmark = pytest.mark.plain_only
RESULT_TYPES = {
    "starttls-not-supported", "certificate-host-mismatch", "certificate-expired", "certificate-not-trusted",
    "validation-failure", "tlsa-invalid", "dnssec-invalid", "dane-required", "sts-policy-fetch-error",
    "sts-policy-invalid", "sts-webpki-invalid"}
TEXT = {"result-type", "sending-mta-ip", "receiving-mx-hostname", "receiving-ip", "failure-reason-code"}


def _moment(text):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
    return time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def _checked(content):
    """Hold a report against RFC 8460 4.4, and return its policies by type."""
    report = json.loads(gzip.decompress(content))
    assert set(report) == {"organization-name", "date-range", "contact-info", "report-id", "policies"}
    begin, end = (_moment(report["date-range"][f"{which}-datetime"]) for which in ("start", "end"))
    assert begin[3:6] == (0, 0, 0) and end[3:6] == (23, 59, 59) and begin[:3] == end[:3]
    assert report["organization-name"] == "The Lab" and report["contact-info"] == "help@lab.test"
    for one in report["policies"]:
        assert set(one) <= {"policy", "summary", "failure-details"}
        assert set(one["policy"]) <= {"policy-type", "policy-string", "policy-domain", "mx-host"}
        assert one["policy"]["policy-type"] in ("tlsa", "sts", "no-policy-found")
        assert set(one["summary"]) == {"total-successful-session-count", "total-failure-session-count"}
        details = one.get("failure-details", [])
        assert one["summary"]["total-failure-session-count"] == sum(detail["failed-session-count"] for detail in details)
        for detail in details:
            assert detail["result-type"] in RESULT_TYPES and detail["failed-session-count"] > 0
            assert set(detail) <= TEXT | {"failed-session-count"} and all(isinstance(detail[key], str) for key in set(detail) & TEXT)
    return report, {one["policy"]["policy-type"]: one for one in report["policies"]}


def _mailed(message, domain):
    """Hold the mail against RFC 8460 5.3, and return the report in it."""
    assert message.sender == "reports@lab.test" and message.recipients == [f"tls@{domain}"]
    mail = email.message_from_bytes(message.content)
    assert mail.get_content_type() == "multipart/report" and mail.get_param("report-type") == "tlsrpt"
    assert mail["TLS-Report-Domain"] == domain and mail["TLS-Report-Submitter"] == "relay.lab.test"
    subject = re.sub(r"\s+", " ", mail["Subject"])
    assert re.fullmatch(rf"Report Domain: {domain} Submitter: relay\.lab\.test Report-ID: <\S+@\S+>", subject)
    assert "reports@lab.test" in mail["From"] and mail["Date"] and mail["Message-ID"]
    text, report = mail.get_payload()
    assert text.get_content_type() == "text/plain" and report.get_content_type() == "application/tlsrpt+gzip"
    assert re.fullmatch(rf"relay\.lab\.test!{domain}!\d+!\d+\.json\.gz", report.get_filename())
    return report.get_payload(decode=True)


@pytest.fixture(name="world")
def _world(lab, monkeypatch):
    monkeypatch.setenv("SLUICE_BIN", with_orders("jumping"))
    rua = '^_smtp._tls TXT "v=TLSRPTv1;rua=mailto:tls@{0}.test{1}"'
    domains = {
        "good": "MX 10 mx.good; " + rua.format("good", ",https://mta-sts.good.test:PORT/report"),
        "bad": "MX 10 mx2.bad; " + rua.format("bad", ""),
        "clear": "MX 10 mx.clear; ^mx A " + CLEAR + "; " + rua.format("clear", ""),
        "lost": "MX 10 mx.lost; " + rua.format("lost", ""),
        "quiet": "MX 10 mx2.quiet",
    }
    world = World(lab, domains, extra='tls_report { enabled = true from = "reports@lab.test" organization = "The Lab"'
                  ' contact = "help@lab.test" }\n')
    world.policies.answers = {"good.test": policy("enforce", "mx.good.test", "*.b.test"),
                              "bad.test": policy("enforce", "mx2.bad.test")}
    world.set_ids(dict.fromkeys(("good", "bad", "lost"), "1"))
    return world


def _set_clock(relay, ahead):
    order(relay, "jump", str(ahead))
    relay.environment["SLUICE_JUMP"] = str(ahead)

    def shows():  # it looks once a second, and has nothing to say where its queue is empty
        with relay.client() as client:
            client.greet()
        times = [one.time.replace("Z", "+00:00") for one in relay.events("disconnect")]
        return times and abs(datetime.datetime.fromisoformat(times[-1]).timestamp() - time.time() - ahead) < 600

    wait_until(shows, 60, "the relay to see the clock")


def _reports_to(world, address, name):
    return [one for one in world.sinks[address].messages if one.recipients == [f"tls@{name}.test"]]


def test_a_day_is_counted_over_a_restart_and_reported_after_midnight(world):
    relay = world.relay
    noon = int(-time.time() % DAY) + DAY // 2
    _set_clock(relay, noon)
    world.send("good", "bad", "clear", "lost", "quiet")
    for name in ("good", "clear", "lost", "quiet"):
        world.became("sent", name)
    world.became("deferred", "bad")
    relay.restart()
    world.send("good")
    world.became("sent", "good", 2)
    time.sleep(1.5)
    assert not world.policies.posted and not _reports_to(world, GOOD, "good")
    relay.command("queue", "delete", "--all")
    # More than four hours after the day's end: now at the latest.
    _set_clock(relay, noon + DAY // 2 + 5 * 3600)
    wait_until(lambda: _reports_to(world, BAD, "bad") and _reports_to(world, CLEAR, "clear")
               and _reports_to(world, GOOD, "good") and _reports_to(world, GOOD, "lost") and world.policies.posted, 60, "the reports")
    _check_all(world)
    # Each once, and nobody else.
    time.sleep(1.5)
    assert len(world.policies.posted) == 1
    assert all(len(_reports_to(world, address, name)) == 1
               for address, name in ((GOOD, "good"), (BAD, "bad"), (CLEAR, "clear"), (GOOD, "lost")))
    assert not _reports_to(world, BAD, "quiet")
    assert len(relay.events("tls_report", result="sent")) == 5 and not relay.events("tls_report", result="failed")


def _check_all(world):
    host, kind, content = world.policies.posted[0]
    assert (host, kind) == ("mta-sts.good.test", "application/tlsrpt+gzip")
    mailed = _mailed(_reports_to(world, GOOD, "good")[0], "good.test")
    assert gzip.decompress(mailed) == gzip.decompress(content)
    good = _checked(content)[1]["sts"]
    assert good["policy"] == {"policy-type": "sts", "policy-domain": "good.test", "mx-host": ["mx.good.test", "*.b.test"],
                              "policy-string": ["version: STSv1", "mode: enforce", "max_age: 86400", "mx: mx.good.test", "mx: *.b.test"]}
    assert good["summary"] == {"total-successful-session-count": 2, "total-failure-session-count": 0}
    bad = _checked(_mailed(_reports_to(world, BAD, "bad")[0], "bad.test"))[1]["sts"]
    assert bad["summary"]["total-successful-session-count"] == 0
    detail, = bad["failure-details"]
    assert detail["result-type"] == "certificate-host-mismatch" and detail["receiving-ip"] == BAD
    assert detail["receiving-mx-hostname"] == "mx2.bad.test" and "other.test" in detail["failure-reason-code"]
    assert detail["sending-mta-ip"].startswith("127.")
    clear = _checked(_mailed(_reports_to(world, CLEAR, "clear")[0], "clear.test"))[1]["no-policy-found"]
    assert clear["failure-details"][0]["result-type"] == "starttls-not-supported"
    lost = _checked(_mailed(_reports_to(world, GOOD, "lost")[0], "lost.test"))[1]["no-policy-found"]
    assert lost["summary"]["total-successful-session-count"] == 1
    assert lost["failure-details"][0]["result-type"] == "sts-policy-fetch-error"


@pytest.mark.parametrize("says", [b"", b"<p>and so on</p>" * 20_000], ids=["nothing", "much"])
def test_what_can_not_be_handed_over_is_tried_again(world, says):
    world.policies.post_says = says
    relay, noon = world.relay, int(-time.time() % DAY) + DAY // 2
    world.policies.post_status = 503
    _set_clock(relay, noon)
    world.send("good")
    world.became("sent", "good")
    after = noon + DAY // 2 + 5 * 3600
    _set_clock(relay, after)
    failed = relay.wait_event("tls_report", 60, result="failed")
    assert failed["reason"] == "it answers 503"
    relay.wait_event("tls_report", 60, result="sent", to="tls@good.test")
    world.policies.post_status = 200
    relay.restart()
    relay.wait_event("tls_report", 60, result="sent", to=re.compile("^https:"))
    assert len(_reports_to(world, GOOD, "good")) == 1
    # It is forgotten when all have it.
    relay.restart()
    _set_clock(relay, after + 7200)
    time.sleep(1.5)
    assert len(relay.events("tls_report", result="sent")) == 2


def test_a_record_in_another_order_at_the_next_attempt_leaves_nobody_out(world):
    relay, noon = world.relay, int(-time.time() % DAY) + DAY // 2
    world.policies.post_status = 503
    _set_clock(relay, noon)
    world.send("good")
    world.became("sent", "good")
    _set_clock(relay, noon + DAY // 2 + 5 * 3600)
    relay.wait_event("tls_report", 60, result="failed")
    relay.wait_event("tls_report", 60, result="sent", to="tls@good.test")
    first, last = re.search("rua=(.*),(.*)\"", world.records["good"]).groups()
    world.records["good"] = world.records["good"].replace(f"{first},{last}", f"{last},{first}")
    world.set_ids({"good": "1"})
    world.policies.post_status = 200
    relay.restart()
    relay.wait_event("tls_report", 60, result="sent", to=re.compile("^https:"))
    assert len(relay.events("tls_report", result="sent")) == 2
    assert len(_reports_to(world, GOOD, "good")) == 1


def test_a_domain_is_counted_by_its_name_in_the_dns(lab):
    """In another spelling nobody could be asked who wants the report, and a restart would forget it."""
    world = World(lab, {"xn--bcher-kva": "MX 10 mx.xn--bcher-kva"}, extra="tls_report { enabled = true }\n")
    with world.relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["to@B\u00dcCHER.test"], mail_params=" SMTPUTF8")
    world.relay.wait_event("sent")
    world.relay.stop()
    with open(f"{world.relay.spool}/tlsrpt", encoding="utf-8") as stream:
        assert re.findall(r"^report \d+ (\S+) 0$", stream.read(), re.M) == ["xn--bcher-kva.test"]


def test_what_was_counted_is_forgotten_when_it_is_switched_off(lab):
    world = World(lab, {"good": "MX 10 mx.good"}, extra="tls_report { enabled = true }\n")
    relay = world.relay
    reports = []
    for switched in ("true", "false"):
        relay.config.extra = re.sub("enabled = [a-z]+", f"enabled = {switched}", relay.config.extra)
        relay.write_config()
        assert relay.command("reload").returncode == 0
        if switched == "true":
            world.send("good")
            world.became("sent", "good")
        relay.stop()
        with open(f"{relay.spool}/tlsrpt", encoding="utf-8") as stream:
            reports.append(re.findall(r"^report .*", stream.read(), re.M))
        relay.config.extra = relay.config.extra.replace("enabled = false", "enabled = true")
        relay.write_config()
        relay.start()
    assert len(reports[0]) == 1 and not reports[1]


def _counted(relay):
    """Stop the relay; return how many connections succeeded, how many failed, by what it leaves of them."""
    relay.stop()
    with open(f"{relay.spool}/tlsrpt", encoding="utf-8") as stream:
        return [int(number) for number in re.search(r"^policy sts (\d+) (\d+)$", stream.read(), re.M).groups()]


@pytest.mark.parametrize("renewed", [True, False], ids=["renewed", "the same"])
def test_a_certificate_that_only_a_session_holds_is_not_told_to_a_domain_that_tests(lab, certificates, renewed):
    """The old one is good no more, as after its last day. A host that has it still fails each time, and is told so."""
    old = Certificates(lab.folder("old"))
    trusted = lab.folder("trusted") / "ca.pem"
    trusted.write_bytes(b"".join(pathlib.Path(one.ca).read_bytes() for one in (old, certificates)))
    world = World(lab, {"weak": "MX 10 mx.weak"}, ca=f'"{trusted}"', extra="tls_report { enabled = true }\n")
    world.policies.answers = {"weak.test": policy("testing", "mx.weak.test")}
    context = world.sinks[GOOD].behaviour.tls = certificates.context_of(*old.host("mx.weak.test"))
    relay = world.relay
    relay.config.settings["workers"] = 1  # who keep the sessions
    relay.config.transports["smtp"]["connection_max_messages"] = 1
    relay.write_config()
    relay.restart()

    def send(count):
        for number in range(count, count + 2):
            world.send("weak")
            world.became("sent", "weak", number)

    send(1)
    assert relay.wait_event("tls", count=2)["resumed"] == "yes"
    if renewed:
        context.load_cert_chain(*certificates.host("mx.weak.test"))
    trusted.write_bytes(pathlib.Path(certificates.ca).read_bytes())
    assert relay.command("reload").returncode == 0
    send(3)
    send(5)
    shaken = wait_until(lambda: [one for one in relay.events("tls") if one.level == "info"][5:] and relay.events("tls"), what="six handshakes")
    assert [one.get("resumed") for one in shaken if one.level == "info"][2:4] == ["yes", None]
    assert sum(1 for one in shaken if "only tested" in one.get("reason", "")) == (0 if renewed else 3)
    assert _counted(relay) == ([5, 0] if renewed else [2, 3])


@pytest.mark.parametrize("mode", [None, "testing", "enforce"])
@pytest.mark.parametrize(("rule", "failure"), [
    (Rule("starttls", "454 4.7.0 not now"), "starttls-not-supported"), (Rule("starttls", "502 5.5.1 what?"), "starttls-not-supported"),
    (Rule("starttls", "220 go ahead", close=True), "validation-failure")], ids=["454", "502", "closes"])
def test_a_host_that_refuses_starttls_does_not_support_it(lab, mode, rule, failure):
    world = World(lab, {"good": "MX 10 mx.good"}, extra="tls_report { enabled = true }\n")
    world.policies.answers = {"good.test": policy(mode, "mx.good.test")} if mode else {}
    world.set_ids({"good": "1"} if mode else {})
    world.sinks[GOOD].behaviour.rules = [rule]
    world.send("good")
    world.became("deferred" if mode == "enforce" else "sent", "good")
    world.relay.stop()
    with open(f"{world.relay.spool}/tlsrpt", encoding="utf-8") as stream:
        text = stream.read()
    assert set(re.findall(r"^detail (\S+) .*mx\.good\.test", text, re.M)) == {failure}, text


# Domains with DANE: the host of each, its TLSA records ("own" is for the host's certificate, "ca" for the authority's), and
# how the report calls what came of it.
OTHER_KEY = f"3 1 1 {'ab' * 32}"
OF_DANE = {
    "fits": ("odd", ["own"], None),
    "wrong": ("odd", [OTHER_KEY], "validation-failure"),
    "late": ("late", ["ca"], "certificate-expired"),
    "named": ("other", ["ca"], "certificate-host-mismatch"),
    "clear": ("clear", ["own"], "starttls-not-supported"),
    "useless": ("odd", ["0 0 1 " + "ab" * 32, "3 1 1 abcd"], "tlsa-invalid"),
    "bogus": ("odd", ["own"], "dnssec-invalid"),
    "demanded": ("odd", [], "dane-required"),
}
AT = {name: f"127.0.0.{number}" for number, name in enumerate(("odd", "late", "other", "clear"), 41)}


def _dane_hosts(lab, certificates, port):
    """Return the certificates of the hosts, which listen."""
    names = [f"mx.{name}.test" for name in OF_DANE]
    files = {"odd": certificates.host("odd.test", days=-5), "late": certificates.host("mx.late.test", *names, days=-5),
             "other": certificates.host("other.test"), "clear": certificates.host("odd.test", days=-5)}
    for name, address in AT.items():
        context = None
        if name != "clear":
            chain = lab.folder(f"chain-{name}") / "chain.pem"
            chain.write_text("".join(open(path, encoding="ascii").read() for path in (files[name][0], certificates.ca)))
            context = certificates.context_of(str(chain), files[name][1])
        lab.sink(address=address, port=port, tls=context)
    return files


def _dane_zones(lab, certificates, files, port):
    """A signed zone for each domain, below a root of its own; the signatures of one have expired where its TLSA records are."""
    made, delegations = SignedZones(lab.folder("dane-zones")), ""
    authority = "2 0 1 " + certificates.fingerprint(certificates.ca)
    for name, (host, records, _) in OF_DANE.items():
        known = {"own": certificates.tlsa(files[host][0]), "ca": authority}
        tlsa = "".join(f"_{port} TLSA {known.get(one, one)}\n" for one in records)
        valid = (-30 * DAY, -DAY) if name == "bogus" else (-DAY, 30 * DAY)
        below = made.signed(f"_tcp.mx.{name}.test", tlsa, valid=valid)
        key = made.signed(f"{name}.test", f"""@ MX 10 mx
mx A {AT[host]}
_smtp._tls TXT "v=TLSRPTv1;rua=mailto:tls@{name}.reports.test"
_tcp.mx NS ns.invalid.
{made.ds(below)}
""")
        delegations += f"{name} NS ns.invalid.\n{made.ds(key)}\n"
    top = made.signed("test", delegations)
    made.signed(".", f"test NS ns.invalid.\n{made.ds(top)}\n")
    return made


def test_each_way_in_which_dane_fails_is_told_to_the_domain(lab, certificates, monkeypatch):
    monkeypatch.setenv("SLUICE_BIN", with_orders("jumping"))
    port, inbox = free_port(), lab.sink()
    files = _dane_hosts(lab, certificates, port)
    made = _dane_zones(lab, certificates, files, port)
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}, transports={"smtp": {"port": port}},
                    extra=f'tls {{ ca = "{certificates.ca}" mta_sts = false }}\n'
                    'tls_report { enabled = true from = "reports@lab.test" organization = "The Lab" contact = "help@lab.test" }\n')
    config.routes[".reports.test"] = {"relay": [f"[{LOOPBACK}]:{inbox.port}"]}
    config.routes["demanded.test"] = {"tls": "dane-only"}
    config.settings["hostname"] = "relay.lab.test"
    config.resolve_with(lab.nsd(made.zones))
    config.dns |= {"allow_loopback": True, "trust_anchor": made.anchor(), "tries": 1}
    relay = lab.relay(config)
    noon = int(-time.time() % DAY) + DAY // 2
    _set_clock(relay, noon)
    relay.send(recipients=[f"to@{name}.test" for name in OF_DANE])
    for name, (*_, failure) in OF_DANE.items():
        relay.wait_event("sent" if failure in (None, "tlsa-invalid") else "deferred", 60, to=f"to@{name}.test")
    time.sleep(1.5)
    relay.restart()  # what was counted is kept
    relay.command("queue", "delete", "--all")
    _set_clock(relay, noon + DAY // 2 + 5 * 3600)
    reports = {one.recipients[0].partition("@")[2].partition(".")[0]: one for one in inbox.wait_messages(len(OF_DANE), 60)}
    for name, (host, records, failure) in OF_DANE.items():
        mail = email.message_from_bytes(reports[name].content)
        policies = _checked(mail.get_payload()[1].get_payload(decode=True))[1]
        assert list(policies) == ["tlsa"], name
        told = policies["tlsa"]
        assert told["policy"]["policy-domain"] == f"{name}.test"
        assert (told["summary"]["total-successful-session-count"] == 1) == (failure is None), name
        assert {one["result-type"] for one in told.get("failure-details", [])} == ({failure} if failure else set()), name
        if failure in ("dnssec-invalid", "dane-required"):
            continue  # nobody was connected to
        assert len(told["policy"]["policy-string"]) == len(records)
        for detail in told.get("failure-details", []):
            assert detail["receiving-mx-hostname"] == f"mx.{name}.test" and detail["receiving-ip"] == AT[host]
