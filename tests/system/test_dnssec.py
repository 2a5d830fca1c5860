# SPDX-License-Identifier: ISC
"""What DNSSEC says of names, and what becomes of the mail for them.

The zones are signed by ldns and served by NSD, in a chain from a root of their own. Unbound, in front
of the same NSD, is the oracle: each verdict must be its verdict.
"""

import json
import socket
import struct
import threading

import pytest

from lab.config import Config
from lab.dns import TYPES, ask
from lab.net import LOOPBACK, free_dns_port, free_port, wait_until
from lab.signed import DAY, SignedZones, Unbound, gives_up_on_many_ds

HOST = "127.0.0.2"
_DO = b"\0\0\x29\x04\xd0\0\0\x80\0\0\0"

MAIL = f"@ MX 10 mx\nmx A {HOST}\nmx AAAA ::ffff:{HOST}\n"

# Every domain, and what is to be said of its MX records, or their absence.
CROWDED = "bogus" if gives_up_on_many_ds() else "secure"
VERDICTS = {
    "secure.test": "secure",
    "deep.secure.test": "secure",  # a zone below a zone
    "nomx.secure.test": "secure",  # NSEC: no such type
    "missing.secure.test": "secure",  # NSEC: no such name
    "any.wild.secure.test": "secure",  # a wildcard
    "nomx.any.wild.secure.test": "secure",
    "alias.secure.test": "secure",  # CNAME to a secure name, in the zone and in another
    "across.secure.test": "secure",
    "any.deputy.secure.test": "secure",  # DNAME
    "hop.secure.test": "insecure",  # CNAME to an insecure name
    "loose.secure.test": "insecure",  # an insecure delegation within
    "nsec3.test": "secure",
    "nomx.nsec3.test": "secure",
    "missing.nsec3.test": "secure",
    "any.wild.nsec3.test": "secure",
    "optout.test": "secure",
    "loose.optout.test": "insecure",
    "plain.test": "insecure",
    "missing.plain.test": "insecure",
    "back.plain.test": "insecure",  # CNAME from an insecure name to a secure one
    "nods.test": "insecure",  # signed, but the parent has no DS record
    "crowded.test": CROWDED,  # 500 DS records, of which one is right
    "keytrap.test": "bogus",  # 501 keys of one tag: more work than is done for a question
    "iterated.test": "secure",  # 2,500 iterations of NSEC3, where no denial is needed
    "nomx.iterated.test": "insecure",
    "expired.test": "bogus",
    "future.test": "bogus",
    "wrongkey.test": "bogus",
    "stripped.test": "bogus",  # a DS record, and no signatures: a downgrade
    "forged.test": "bogus",  # a record that was changed after it was signed
    "missing.forged.test": "bogus",  # a denial that was changed
    "bad.secure.test": "bogus",  # CNAME to a bogus name
    "nowhere.stripped.test": "bogus",
}


def _make_zones(folder):
    made = SignedZones(folder)
    deep = made.signed("deep.secure.test", MAIL)
    made.unsigned("loose.secure.test", MAIL)
    secure = made.signed("secure.test", MAIL + f"""
nomx A {HOST}
*.wild MX 10 mx
*.wild A {HOST}
alias CNAME secure.test.
across CNAME nsec3.test.
deputy DNAME wild.nsec3.test.
hop CNAME plain.test.
bad CNAME expired.test.
deep NS ns.invalid.
loose NS ns.invalid.
{made.ds(deep)}
_25._tcp.mx TLSA 3 1 1 {"ab" * 32}
""")
    nsec3 = made.signed("nsec3.test", MAIL + f"nomx A {HOST}\n*.wild MX 10 mx\n", "-n", "-t", "5", "-s", "beef")
    made.unsigned("loose.optout.test", MAIL)
    optout = made.signed("optout.test", MAIL + "loose NS ns.invalid.\n", "-n", "-p", "-t", "1")
    made.unsigned("plain.test", MAIL + "back CNAME secure.test.\n")
    made.signed("nods.test", MAIL)
    crowded = made.signed("crowded.test", MAIL)
    iterated = made.signed("iterated.test", MAIL + f"nomx A {HOST}\n", "-n", "-t", "2500", "-s", "beef")
    expired = made.signed("expired.test", MAIL, valid=(-30 * DAY, -2 * DAY))  # no validator forgives more than one
    future = made.signed("future.test", MAIL, valid=(10 * DAY, 30 * DAY))
    made.signed("wrongkey.test", MAIL)
    wrong = made.key("wrongkey.test")
    made.unsigned("stripped.test", MAIL)
    stripped = made.key("stripped.test")
    forged = made.signed("forged.test", MAIL)
    text = made.zones["forged.test"]
    made.zones["forged.test"] = text.replace("10 mx.forged.test.", "10 evil.forged.test.").replace(
        "NS SOA MX RRSIG NSEC", "NS SOA MX TXT RRSIG NSEC")
    key = made.key("keytrap.test")
    trap = made.signed("keytrap.test", MAIL + made.crowd(key, 500), key=key)
    right = made.ds(crowded)
    crowd = "\n".join(right.replace(right.split()[-1], f"{n:064x}") for n in range(500))
    delegations = "".join(f"{name} NS ns.invalid.\n" for name in (
        "secure", "nsec3", "optout", "plain", "nods", "crowded", "iterated", "expired", "future",
        "wrongkey", "stripped", "forged", "keytrap"))
    top = made.signed("test", delegations + crowd + "\n" + "\n".join(made.ds(key) for key in (
        secure, nsec3, optout, crowded, iterated, expired, future, wrong, stripped, forged, trap)))
    made.signed(".", f"test NS ns.invalid.\n{made.ds(top)}\n")
    return made


class World:
    """The zones, who serves them, and who judges them."""

    def __init__(self, lab):
        self.lab = lab
        self.made = _make_zones(lab.folder("zones"))
        self.anchor = self.made.anchor()
        self.nsd = lab.nsd(self.made.zones)

    def config(self, **dns):
        """A configuration that asks the name server of the lab."""
        config = Config().resolve_with(self.nsd)
        config.dns |= {"allow_loopback": True, "trust_anchor": self.anchor, "timeout": "2s",
                       "tries": 1} | dns
        return config


@pytest.fixture(scope="module")
def world(module_lab):
    """The zones for all tests of this file: signing them takes a while."""
    return World(module_lab)


def _routes(relay, *domains):
    """Ask sluice route for each domain; return the next hops by domain."""
    found = {}
    for domain in domains:
        done = relay.command("route", "--json", f"to@{domain}")
        found[domain] = json.loads(done.stdout.splitlines()[0])["next_hops"][0]
    return found


def _oracle(unbound, domain):
    """What unbound says of the domain's MX records: by AD, and by SERVFAIL."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        query.settimeout(60)
        query.connect((unbound.address, unbound.port))
        name = b"".join(bytes([len(one)]) + one.encode() for one in domain.split("."))
        query.send(struct.pack("!HHHHHH", 7, 0x0120, 1, 0, 0, 1) + name + b"\0" +
                   struct.pack("!HH", TYPES["MX"], 1) + _DO)
        flags = struct.unpack_from("!H", query.recv(65535), 2)[0]
    if flags & 15 == 2:
        return "bogus"
    return "secure" if flags & 0x20 else "insecure"


def test_every_verdict_is_that_of_unbound(world):
    unbound = world.lab._keep(Unbound(world.lab.folder("unbound"), world.nsd, world.anchor, ask))
    relay = world.lab.relay(world.config(), start=False)
    found = _routes(relay, *VERDICTS)
    said = {domain: hop["dnssec"] for domain, hop in found.items()}
    assert said == VERDICTS
    assert {domain: _oracle(unbound, domain) for domain in VERDICTS} == VERDICTS


def _send_all(relay, *domains):
    """Send a message to each domain, and return what became of each."""
    for domain in domains:
        relay.send(recipients=(f"to@{domain}",))
    ends = ("sent", "deferred", "bounced")
    return {domain: wait_until(lambda to=f"to@{domain}": next(
        (event for event in relay.events() if event.name in ends and event.get("to") == to), None),
        20, f"what becomes of mail for {domain}") for domain in domains}


def _number(relay, name):
    """One number of sluice stats."""
    return json.loads(relay.command("stats", "--json").stdout)[name]


def test_mail_for_what_is_bogus_waits_and_all_other_is_delivered(world):
    port = free_port()
    world.lab.sink(address=HOST, port=port)
    config = world.config()
    config.transports["smtp"] = {"port": port}
    relay = world.lab.relay(config)
    good = ["secure.test", "any.wild.nsec3.test", "hop.secure.test", "plain.test", "back.plain.test"]
    bad = ["expired.test", "stripped.test", "bad.secure.test", "missing.forged.test"]
    came = _send_all(relay, *good, *bad, "missing.secure.test", "missing.plain.test")
    assert {one: event.name for one, event in came.items()} == (
        dict.fromkeys(good, "sent") | dict.fromkeys(bad, "deferred") |
        {"missing.secure.test": "bounced", "missing.plain.test": "bounced"})
    for one in bad:
        assert came[one]["dsn"] == "4.4.3" and "bogus, says DNSSEC: " in came[one]["reply"]
    assert "expired" in came["expired.test"]["reply"]
    # Not only found out, but also said and counted.
    assert len(relay.events("dnssec", validated="yes")) == 1
    assert _number(relay, "dns_dnssec_validating") == 1
    assert _number(relay, 'dns_answers_total{dnssec="bogus"}') >= len(bad)
    # And from within the sandbox once more.
    assert relay.command("reload").returncode == 0
    came = _send_all(relay, "crowded.test", "future.test")
    assert [event.name for event in came.values()] == ["deferred" if CROWDED == "bogus" else "sent", "deferred"]
    assert len(relay.events("dnssec", validated="yes")) == 2


def test_without_dnssec_nothing_is_bogus(world):
    relay = world.lab.relay(world.config(dnssec="off"), start=False)
    assert all(hop["dnssec"] == "indeterminate" and hop["hosts"]
               for hop in _routes(relay, "secure.test", "expired.test").values())


def test_domains_can_be_left_out(world):
    relay = world.lab.relay(world.config(insecure_domains=["stripped.test", "expired.test"]), start=False)
    found = _routes(relay, "stripped.test", "expired.test", "wrongkey.test")
    assert [hop["dnssec"] for hop in found.values()] == ["insecure", "insecure", "bogus"]


def test_a_resolver_of_this_machine_is_trusted(world):
    unbound = world.lab._keep(Unbound(world.lab.folder("unbound"), world.nsd, world.anchor, ask))
    relay = world.lab.relay(world.config(dnssec="trust", server=[unbound.address], port=unbound.port),
                            start=False)
    found = _routes(relay, "secure.test", "nomx.nsec3.test", "plain.test", "expired.test")
    assert [hop["dnssec"] for hop in found.values()] == ["secure", "secure", "indeterminate",
                                                         "indeterminate"]
    assert found["expired.test"]["failure"].startswith("look-up of the mail hosts")


class Middlebox:
    """Hands questions on to a name server by UDP, and drops what it does not understand."""

    def __init__(self, server, drops):
        """drops: "EDNS", questions that have it; or "DO", that bit of them."""
        self.address, self.port = LOOPBACK, free_dns_port(LOOPBACK)
        self.drops = drops
        self.questions = []
        self._server = server
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((self.address, self.port))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while True:
            packet, client = self._socket.recvfrom(65535)
            if not packet:
                return
            edns = packet[11] > 0
            end = packet.index(b"\0", 12)
            self.questions.append((packet[12:end], edns))
            if edns and self.drops == "EDNS":
                continue
            if edns:
                flags = end + 5 + 7  # behind type and class of the question; name, type, size and version of the OPT record
                packet = packet[:flags] + b"\0\0" + packet[flags + 2:]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as onward:
                onward.settimeout(60)
                onward.connect((self._server.address, self._server.port))
                onward.send(packet)
                self._socket.sendto(onward.recv(65535), client)

    def close(self):
        """End the thread."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (self.address, self.port))
        self._thread.join()
        self._socket.close()


@pytest.mark.parametrize("drops, reason", [("EDNS", "without"), ("DO", "hands on no signatures")])
def test_a_resolver_that_drops_dnssec_is_found_out_once(world, drops, reason):
    box = world.lab._keep(Middlebox(world.nsd, drops))
    port = free_port()
    world.lab.sink(address=HOST, port=port)
    config = world.config(server=[box.address], port=box.port, timeout="900ms")
    config.transports["smtp"] = {"port": port}
    relay = world.lab.relay(config)
    came = _send_all(relay, "plain.test", "secure.test", "loose.optout.test")
    assert all(event.name == "sent" for event in came.values())
    said = relay.events("dnssec", validated="no")
    assert len(said) == 1 and reason in said[0]["reason"]
    of_mail = [edns for name, edns in box.questions if name]
    assert of_mail and all(edns == (drops == "DO") for edns in of_mail)
    assert _number(relay, "dns_dnssec_validating") == 0


def test_mail_waits_for_a_validating_name_server_that_is_down(world):
    nsd = world.lab.nsd(world.made.zones)
    port = free_port()
    sink = world.lab.sink(address=HOST, port=port)
    config = world.config(port=nsd.port, timeout="300ms")
    config.transports["smtp"] = {"port": port}
    config.queue = {"minimal_backoff_time": "200ms", "maximal_backoff_time": "500ms"}
    relay = world.lab.relay(config)
    assert _send_all(relay, "secure.test")["secure.test"].name == "sent"
    nsd.stop()
    domains = ["nsec3.test", "plain.test", "any.wild.secure.test", "expired.test"]
    came = _send_all(relay, *domains)
    assert all(event.name == "deferred" and event["dsn"] == "4.4.3" for event in came.values())
    nsd.start()
    sink.wait_messages(4, 60)
    # What is bogus stays where it is.
    assert not relay.events("sent", to="to@expired.test") and not relay.events("bounced")
