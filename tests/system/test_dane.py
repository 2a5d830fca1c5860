# SPDX-License-Identifier: ISC
"""What TLSA records demand of a host, and what becomes of mail for one that does not fit them.

The zones are signed by ldns and served by NSD from a root of their own; hosts have real certificates.
Postfix's posttls-finger, which asks an unbound in front of the same NSD, is the oracle.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import ssl
import subprocess

import pytest

from lab import peers
from lab.behaviour import Rule
from lab.certs import public_key
from lab.config import Config
from lab.dns import ask
from lab.net import free_port, wait_until
from lab.signed import DAY, SignedZones, Unbound, gives_up_on_many_ds

WRONG = "ab" * 32
ZONE = "dane.test"

# The hosts: what they show, and where they are.
ADDRESS = {name: f"127.0.0.{number}" for number, name in enumerate(
    ("odd", "full", "bare", "late", "clear", "broken", "two"), 11)}

NO_FIT = ("4.7.5", "does not fit its TLSA records")
NO_TLS = ("4.7.4", "does not offer STARTTLS")
BOGUS = ("4.4.3", "bogus, says DNSSEC")
NO_ANSWER = ("4.4.3", "look-up of the TLSA record of .* failed")

# A domain for each: its host, the TLSA records of that, and what becomes of mail: under which policy it is sent, or
# why it waits. "3 1 1 odd" is such a record for the certificate or key of that name.
CASES = {
    "ee-key": ("odd", ["3 1 1 odd"], "dane"),
    "ee-key-512": ("odd", ["3 1 2 odd"], "dane"),
    "ee-key-full": ("odd", ["3 1 0 odd"], "dane"),
    "ee-cert": ("odd", ["3 0 1 odd"], "dane"),
    "ee-cert-512": ("odd", ["3 0 2 odd"], "dane"),
    "ee-cert-full": ("odd", ["3 0 0 odd"], "dane"),
    "ee-wrong": ("odd", [f"3 1 1 {WRONG}"], NO_FIT),
    "ee-of-two": ("odd", [f"3 1 1 {WRONG}", "3 1 1 odd"], "dane"),
    "ta-cert": ("full", ["2 0 1 ca"], "dane"),
    "ta-key": ("full", ["2 1 1 ca"], "dane"),
    "ta-key-512": ("full", ["2 1 2 ca"], "dane"),
    "ta-cert-full": ("bare", ["2 0 0 ca"], "dane"),
    "ta-key-full": ("bare", ["2 1 0 ca"], "dane"),
    "ta-absent": ("bare", ["2 0 1 ca"], NO_FIT),
    "ta-hop": ("full", ["2 0 1 ca"], "dane"),  # the certificate names the domain, not the host
    "ta-stranger": ("full", ["2 0 1 ca"], NO_FIT),  # it names neither
    "ta-late": ("late", ["2 0 1 ca"], NO_FIT),
    "ta-and-ee": ("late", ["2 0 1 ca", "3 1 1 late"], "dane"),
    "web": ("odd", ["0 0 1 ca", "1 1 1 odd"], "required"),
    "selector": ("odd", [f"3 2 1 {WRONG}"], "required"),
    "matching": ("odd", [f"3 1 3 {WRONG}"], "required"),
    "short": ("odd", ["3 1 1 abcd", "3 1 2 " + WRONG], "required"),
    "garbage": ("odd", ["3 0 0 " + "30" * 20, "2 0 0 30820101", "3 1 0 00"], "required"),
    "large": ("odd", ["3 0 0 " + "5a" * 30000], "required"),
    "web-clear": ("clear", ["0 0 1 ca"], NO_TLS),
    "stripped": ("clear", ["3 1 1 odd"], NO_TLS),
    "broken": ("broken", ["3 1 1 odd"], ("4.7.0", "TLS not available")),
    "none": ("clear", [], "clear"),
    "none-tls": ("odd", [], "opportunistic"),
    "agile": ("odd", [f"3 1 1 {WRONG}", "3 1 2 odd"], "dane"),
    "agile-wrong": ("odd", ["3 1 1 odd", f"3 1 2 {WRONG * 2}"], NO_FIT),
    "many": ("odd", [f"3 1 1 {n:064x}" for n in range(300)] + ["3 1 1 odd"], "dane"),
}

# Where names lead elsewhere: domains of the same zone, and what becomes of their mail.
LED = {
    "alias": "dane",  # the host is an alias, with records at its end
    "alias-first": "dane",  # with records at its own name only
    "alias-out": "dane",  # to an insecure name; its own is secure
    "no-mx": "dane",  # the domain is its own host
    "hop-alias": "dane",  # the domain is an alias, and the certificate names where it leads
    "record-led": "dane",  # the record is an alias, to another zone
    "record-out": "opportunistic",  # to an insecure one
    "loose-host": "opportunistic",  # the host is insecure, whatever records it has
    "expired": NO_ANSWER,
    "silent": NO_ANSWER,
    "second": "dane",  # the first host's records are bogus, so that the other has the mail
}

# Domains of other zones.
CROWDED = BOGUS if gives_up_on_many_ds() else "dane"
OTHERS = {
    "mx.plain.test": "clear",  # MX records prove nothing: the host's own are not looked at
    "crowded.test": CROWDED,  # 500 DS records, of which one is right
    "chain.test": CROWDED,  # the host is an alias of an alias of an alias, from zone to zone, and that the last
    "keytrap.test": BOGUS,  # 501 keys of one tag
    "future.test": BOGUS,  # signed tomorrow
    "late.test": BOGUS,  # until yesterday
    "iterated.test": "clear",  # 2,500 iterations of NSEC3: that there is none is not proven, but let be
}

OUTCOMES = {f"{name}.{ZONE}": end for name, (*_, end) in CASES.items()} | {
    f"{name}.{ZONE}": end for name, end in LED.items()} | OTHERS


def _tlsa(words, files):
    """A record as it stands in a zone."""
    head, _, last = words.rpartition(" ")
    if last not in files:
        return words
    _, selector, matching = head.split()
    with open(files[last], encoding="ascii") as stream:
        data = ssl.PEM_cert_to_DER_cert(stream.read().partition("-----END")[0] + "-----END CERTIFICATE-----\n")
    if selector == "1":
        data = public_key(files[last])
    digest = {"0": lambda b: b, "1": lambda b: hashlib.sha256(b).digest(),
              "2": lambda b: hashlib.sha512(b).digest()}[matching]
    return f"{head} {digest(data).hex()}"


class World:
    """The zones, the hosts, and a relay for all."""

    def __init__(self, lab, certificates):
        self.lab = lab
        self.certificates = certificates
        self.port = free_port()
        self.names = []  # that clients have asked the host "two" for
        self.files = self._make_files()
        self.hosts = self._make_hosts()
        self.made = SignedZones(lab.folder("zones"))
        self._make_zones()
        self.anchor = self.made.anchor()
        self.nsd = lab.nsd(self.made.zones)

    def _make_files(self):
        named = [f"mx.{name}.{ZONE}" for name in CASES if name not in ("ta-hop", "ta-stranger")]
        make = self.certificates.host
        return {"ca": self.certificates.ca, "odd": make("other.test", days=-5)[0],
                "full": make(*named, f"ta-hop.{ZONE}")[0], "late": make(*named, days=-5)[0],
                "first": make("first.test")[0], "second": make("second.test")[0]}

    def context(self, name, *chain):
        """The TLS context of a server that shows these certificates."""
        path = os.path.join(self.certificates.folder, f"{name}-{len(chain)}.chain")
        with open(path, "w", encoding="ascii") as out:
            for one in (name, *chain):
                with open(self.files[one], encoding="ascii") as stream:
                    out.write(stream.read())
        return self.certificates.context_of(path, self.files[name].replace(".pem", ".key"))

    def _choose(self, connection, name, _):
        self.names.append(name)
        connection.context = self.context("second" if name == f"mx.two.{ZONE}" else "first")

    def _make_hosts(self):
        two = self.context("first")
        two.sni_callback = self._choose
        contexts = {"odd": self.context("odd"), "full": self.context("full", "ca"),
                    "bare": self.context("full"), "late": self.context("late", "ca"),
                    "clear": None, "broken": self.context("odd"), "two": two}
        rules = {"broken": [Rule("starttls", reply="454 4.7.0 TLS not available")]}
        return {name: self.lab.sink(*rules.get(name, ()), address=ADDRESS[name], port=self.port, tls=context)
                for name, context in contexts.items()}

    def records(self, owner, *records):
        """TLSA records of a host, as lines of its zone."""
        return "".join(f"_{self.port}._tcp.{owner} TLSA {_tlsa(words, self.files)}\n" for words in records)

    def _domain(self, name, host, records):
        return f"{name} MX 10 mx.{name}\nmx.{name} A {ADDRESS[host]}\n" + self.records(f"mx.{name}", *records)

    def _make_zones(self):
        made, odd, right, wrong = self.made, ADDRESS["odd"], "3 1 1 odd", f"3 1 1 {WRONG}"
        expired = made.signed(f"_tcp.mx.expired.{ZONE}", f"_{self.port} TLSA {_tlsa(right, self.files)}\n",
                              valid=(-30 * DAY, -DAY))
        silent = made.key(f"_tcp.mx.silent.{ZONE}")
        text = "".join(self._domain(name, *case[:2]) for name, case in CASES.items()) + f"""
two MX 10 mx.two
mx.two A {ADDRESS["two"]}
{self.records("mx.two", "3 1 1 second")}
alias MX 10 mx.alias
mx.alias CNAME end.alias
end.alias A {odd}
{self.records("end.alias", right)}{self.records("mx.alias", wrong)}
alias-first MX 10 mx.alias-first
mx.alias-first CNAME end.alias-first
end.alias-first A {odd}
{self.records("mx.alias-first", right)}
alias-out MX 10 mx.alias-out
mx.alias-out CNAME host.plain.test.
{self.records("mx.alias-out", right)}
no-mx A {odd}
{self.records("no-mx", right)}
hop-alias CNAME ta-hop
record-led MX 10 mx.record-led
mx.record-led A {odd}
_{self.port}._tcp.mx.record-led CNAME right.secure.test.
record-out MX 10 mx.record-out
mx.record-out A {odd}
_{self.port}._tcp.mx.record-out CNAME wrong.plain.test.
loose-host MX 10 host.plain.test.
expired MX 10 mx.expired
mx.expired A {odd}
_tcp.mx.expired NS ns.invalid.
{made.ds(expired)}
silent MX 10 mx.silent
mx.silent A {odd}
_tcp.mx.silent NS ns.invalid.
{made.ds(silent)}
second MX 10 mx.expired
second MX 20 mx.ee-key
"""
        dane = made.signed(ZONE, text)
        secure = made.signed("secure.test", f"right TLSA {_tlsa(right, self.files)}\nhop CNAME mx.crowded.test.\n")
        usual = f"@ MX 10 mx\nmx A {odd}\n" + self.records("mx", right)
        crowded, trap = made.signed("crowded.test", usual), made.key("keytrap.test")
        made.signed("keytrap.test", usual + made.crowd(trap, 500), key=trap)
        chain = made.signed("chain.test", "@ MX 10 mx\nmx CNAME hop.secure.test.\n")
        others = {"crowded": crowded, "keytrap": trap, "chain": chain, "future": made.signed("future.test", usual, valid=(10 * DAY, 30 * DAY)),
                  "late": made.signed("late.test", usual, valid=(-30 * DAY, -2 * DAY))}
        crowd = "\n".join(made.ds(crowded).replace(made.ds(crowded).split()[-1], f"{n:064x}") for n in range(500)) + "\n"
        iterated = made.signed("iterated.test", f"@ MX 10 mx\nmx A {ADDRESS['clear']}\n", "-n", "-t", "2500",
                               "-s", "beef")
        made.unsigned("plain.test", f"mx MX 10 mx.stripped.{ZONE}.\nhost A {odd}\nwrong TLSA {wrong}\n" +
                      self.records("host", wrong))
        top = made.signed("test", "".join(f"{name} NS ns.invalid.\n" for name in (
            "dane", "secure", "iterated", "plain", *others)) + crowd + "\n".join(
                made.ds(key) for key in (dane, secure, iterated, *others.values())))
        made.signed(".", f"test NS ns.invalid.\n{made.ds(top)}\n")

    def config(self, **transport):
        """A configuration that asks the name server of the lab, and tries everything once."""
        config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        config.resolve_with(self.nsd)
        config.dns |= {"allow_loopback": True, "trust_anchor": self.anchor, "timeout": "5s", "tries": 1}
        config.transports["smtp"] = {"port": self.port} | transport
        return config


@pytest.fixture(scope="module")
def world(module_lab, certificates):
    """The zones and hosts for all tests of this file."""
    return World(module_lab, certificates)


@pytest.fixture(scope="module")
def relay(world):
    """A relay that is asked for DANE by nobody: it does it by itself."""
    return world.lab.relay(world.config())


def _end_of(relay, address):
    ends = ("sent", "deferred", "bounced")
    return wait_until(lambda: next((event for event in relay.events() if event.name in ends
                                    and event.get("to") == address), None), 20, f"what becomes of {address}")


def _send_all(relay, domains):
    relay.send(recipients=[f"to@{domain}" for domain in domains])
    return {domain: _end_of(relay, f"to@{domain}") for domain in domains}


def _came_to(world, end):
    """What a message was sent under, or why it waits."""
    if end.name != "sent":
        return (end["dsn"], end["reply"])
    if " tls=" in end["site"]:
        return end["site"].partition(" tls=")[2].partition(":")[0]
    message = next(one for host in world.hosts.values() for one in reversed(host.messages)
                   if end["to"] in one.recipients)
    return "opportunistic" if message.tls else "clear"


def _agrees(came, wanted):
    if isinstance(wanted, tuple):
        return isinstance(came, tuple) and came[0] == wanted[0] and re.search(wanted[1], came[1])
    return came == wanted


def test_mail_goes_to_hosts_that_fit_their_records_and_to_no_others(world, relay):
    ends = _send_all(relay, OUTCOMES)
    came = {domain: _came_to(world, end) for domain, end in ends.items()}
    assert not {domain: (came[domain], OUTCOMES[domain]) for domain in OUTCOMES
                if not _agrees(came[domain], OUTCOMES[domain])}
    assert not relay.events("bounced")
    # Nothing went in clear but what may, and to nobody that was not believed.
    assert {one.recipients[0] for one in world.hosts["clear"].messages} == {
        f"to@{domain}" for domain, end in OUTCOMES.items() if end == "clear"}
    assert all((event["verified"] == "dane") == (event["policy"] == "dane") for event in relay.events("tls")
               if event.get("reason") is None)
    assert all(one.tls for name, host in world.hosts.items() if name != "clear" for one in host.messages)
    assert not world.hosts["broken"].messages and not world.hosts["late"].messages[1:]
    # The first host of the one was left out, and that is said.
    assert ends[f"second.{ZONE}"]["relay"].startswith(f"mx.ee-key.{ZONE}[")
    assert relay.events("tls", host=f"mx.expired.{ZONE}", policy="dane", verified="none")
    assert {event["tlsa"] for event in relay.events("tls", verified="dane")} >= {"3 1 1", "2 0 1", "3 0 0"}
    numbers = json.loads(relay.command("stats", "--json").stdout)
    assert numbers['tls_connections_total{side="client",result="dane"}'] >= 20
    for result in ("usable", "unusable", "none", "failed"):
        assert numbers[f'dns_tlsa_total{{result="{result}"}}'] >= 2


def test_explain_says_what_a_host_does_not_fit(relay):
    _send_all(relay, [f"ee-wrong.{ZONE}"])
    assert "does not fit its TLSA records" in relay.command("explain", f"ee-wrong.{ZONE}").stdout
    end = _send_all(relay, [f"silent.{ZONE}"])[f"silent.{ZONE}"]
    assert "look-up of the TLSA record" in relay.command("explain", end["id"]).stdout


def _finger(world, domain, resolver, folder):
    """What posttls-finger makes of a domain, with a resolv.conf of its own in front of the machine's."""
    command = [os.path.join(peers.root(), "usr/sbin/posttls-finger"), "-c", "-l", "dane", "-t", "10",
               "-L", "summary", f"{domain}:{world.port}"]
    done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"',
                           resolver, *command], capture_output=True, text=True, check=False,
                          env=peers.environment() | {"MAIL_CONFIG": str(folder)})
    return done.stdout + done.stderr


def _oracle(said):
    if "Verified TLS connection" in said:
        return "dane"
    return "tls" if " TLS connection established" in said else "none"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can put a file in front of resolv.conf")
def test_posttls_finger_comes_to_the_same_verdicts(world, tmp_path):
    unbound = world.lab._keep(Unbound(world.lab.folder("unbound"), world.nsd, world.anchor, ask,
                                      address="127.0.0.88", port=53))
    (tmp_path / "main.cf").write_text(
        "compatibility_level = 3.6\ninet_protocols = ipv4\nmail_owner = mail\nsetgid_group = daemon\n")
    (tmp_path / "resolv.conf").write_text(f"nameserver {unbound.address}\noptions trust-ad edns0\n")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        said = dict(zip(OUTCOMES, pool.map(
            lambda domain: _finger(world, domain, str(tmp_path / "resolv.conf"), tmp_path), OUTCOMES)))
    wanted = {domain: "dane" if end == "dane" else "tls" if end in ("required", "opportunistic") else "none"
              for domain, end in OUTCOMES.items()}
    # It looks at a hundred records only.
    differ = {domain: said[domain] for domain in OUTCOMES if domain != f"many.{ZONE}" and _oracle(said[domain]) != wanted[domain]
              and not (wanted[domain] == "none" and _oracle(said[domain]) == "tls" and
                       ("Untrusted" in said[domain] or "certificate verification failed" in said[domain]))}
    assert not differ, "\n".join(f"{domain}: {what}" for domain, what in differ.items())


def test_dane_only_wants_records_and_none_and_verify_do_without(world, tmp_path):
    table = tmp_path / "policy"
    table.write_text("".join(f"{name}.{ZONE} {policy}\n" for name, policy in (
        ("ee-key", "dane-only"), ("none-tls", "dane-only"), ("web", "dane-only"), ("expired", "none"),
        ("stripped", "none"), ("ee-wrong", "verify:other.test"))) + f"[{ADDRESS['odd']}] dane-only\n")
    config = world.config()
    config.settings["tls_policy"] = [str(table)]
    config.routes["literal.test"] = {"relay": [f"[{ADDRESS['odd']}]"]}
    config.routes["right.test"] = {"relay": [f"[mx.ee-key.{ZONE}]"], "tls": "dane-only"}
    config.routes["wrong.test"] = {"relay": [f"[mx.ee-of-two.{ZONE}]", f"[mx.ee-wrong.{ZONE}]"]}
    config.routes["also-wrong.test"] = {"relay": [f"[mx.ee-wrong.{ZONE}]"]}
    relay = world.lab.relay(config)
    ends = _send_all(relay, [f"{name}.{ZONE}" for name in (
        "ee-key", "none-tls", "web", "expired", "stripped", "ee-wrong")] + ["literal.test"])
    assert _came_to(world, ends[f"ee-key.{ZONE}"]) == "dane"
    for name, words in (("none-tls", "has no TLSA records"), ("web", "no TLSA record of .* can be used")):
        assert _agrees(_came_to(world, ends[f"{name}.{ZONE}"]), ("4.7.5", words))
    assert _agrees(_came_to(world, ends["literal.test"]), ("4.7.5", "has no TLSA records"))
    # Relays of the configuration have records as well.
    ends |= _send_all(relay, ["right.test", "wrong.test", "also-wrong.test"])
    assert _came_to(world, ends["right.test"]) == _came_to(world, ends["wrong.test"]) == "dane"
    assert _agrees(_came_to(world, ends["also-wrong.test"]), NO_FIT)
    # The operator can spare a host, and say who else must be proven.
    assert ends[f"expired.{ZONE}"].name == ends[f"stripped.{ZONE}"].name == "sent"
    assert _agrees(_came_to(world, ends[f"ee-wrong.{ZONE}"]), ("4.7.5", "not trusted"))


def test_dane_can_be_off_but_where_it_is_asked_for(world, tmp_path):
    table = tmp_path / "policy"
    table.write_text(f"ee-of-two.{ZONE} dane\n")
    config = world.config()
    config.settings["tls_policy"] = [str(table)]
    config.extra = "tls { dane = false }\n"
    relay = world.lab.relay(config)
    ends = _send_all(relay, [f"{name}.{ZONE}" for name in ("ee-of-two", "stripped", "ee-key", "expired")])
    came = {name.partition(".")[0]: _came_to(world, end) for name, end in ends.items()}
    assert came == {"ee-of-two": "dane", "stripped": "clear", "ee-key": "opportunistic",
                    "expired": "opportunistic"}


def test_records_prove_a_host_to_which_a_login_goes(world, tmp_path):
    """Whether it is proven is seen by what lacks then: the hosts offer no AUTH."""
    domains = [f"{name}.{ZONE}" for name in ("ee-key", "ta-cert", "ee-wrong", "none-tls", "web")]
    (tmp_path / "secret").write_text("x\n")
    (tmp_path / "credentials").write_text("".join(f"{domain} ann password:{tmp_path}/secret\n" for domain in domains))
    config = world.config()
    config.settings["credentials"] = [str(tmp_path / "credentials")]
    ends = _send_all(world.lab.relay(config), domains)
    assert all(end.name == "deferred" for end in ends.values())
    came = {name.partition(".")[0]: (end["dsn"], re.search("no way to log in|no login is sent without|does not fit", end["reply"])[0])
            for name, end in ends.items()}
    assert came == {"ee-key": ("4.7.4", "no way to log in"), "ta-cert": ("4.7.4", "no way to log in"), "ee-wrong": ("4.7.5", "does not fit"),
                    "none-tls": ("4.7.5", "no login is sent without"), "web": ("4.7.5", "no login is sent without")}


def test_without_dnssec_there_is_no_dane(world):
    config = world.config()
    config.dns["dnssec"] = "off"
    relay = world.lab.relay(config)
    ends = _send_all(relay, [f"stripped.{ZONE}", f"expired.{ZONE}"])
    assert [_came_to(world, end) for end in ends.values()] == ["clear", "opportunistic"]


def test_a_trusted_resolver_says_what_is_secure(world):
    unbound = world.lab._keep(Unbound(world.lab.folder("trusted"), world.nsd, world.anchor, ask))
    config = world.config()
    config.dns |= {"dnssec": "trust", "server": [unbound.address], "port": unbound.port}
    relay = world.lab.relay(config)
    names = ("ee-key", "ee-wrong", "none", "expired", "loose-host")
    ends = _send_all(relay, [f"{name}.{ZONE}" for name in names])
    assert all(_agrees(_came_to(world, ends[f"{name}.{ZONE}"]), OUTCOMES[f"{name}.{ZONE}"]) for name in names)


def test_the_host_is_asked_for_its_tlsa_base_domain(world, relay):
    world.names.clear()
    end = _send_all(relay, [f"two.{ZONE}"])[f"two.{ZONE}"]
    assert _came_to(world, end) == "dane" and set(world.names) == {f"mx.two.{ZONE}"}
    _send_all(relay, [f"alias.{ZONE}"])
    assert relay.wait_event("tls", host=re.compile(rf"mx\.alias\.{ZONE}"))["verified"] == "dane"


def test_a_resumed_session_and_an_idle_connection_must_fit_as_well(world):
    """A host whose records change while its connections and sessions are kept; and a domain that proves nothing."""
    made = SignedZones(world.lab.folder("moving"))
    name, address = "moving.test", "127.0.0.20"
    sink = world.lab.sink(address=address, port=world.port, tls=world.context("odd"))
    key = made.key(name)

    def zone(serial, *records):
        made.signed(name, f"@ MX 10 mx\nmx A {address}\n" + world.records("mx", *records), key=key, serial=serial)
        return made.zones[name]

    zone(1, "3 1 1 odd")
    made.unsigned("lax.test", f"@ MX 10 mx.{name}.\n")
    top = made.signed("test", f"moving NS ns.invalid.\nlax NS ns.invalid.\n{made.ds(key)}\n")
    made.signed(".", f"test NS ns.invalid.\n{made.ds(top)}\n")
    nsd = world.lab.nsd(made.zones)
    config = world.config(connection_idle_timeout="1m", connection_max_messages=2)
    config.resolve_with(nsd)
    config.dns |= {"allow_loopback": True, "trust_anchor": made.anchor()}
    relay = world.lab.relay(config)
    # One that proves nothing, and one that does, at the same address: a connection each.
    for to in ("a@lax.test", "a@moving.test", "b@lax.test", "b@moving.test"):
        relay.send(recipients=[to])
        assert _end_of(relay, to).name == "sent"
    assert len(sink.sessions) == 2
    for to in ("c@lax.test", "c@moving.test"):
        relay.send(recipients=[to])
        assert _end_of(relay, to).name == "sent"
    resumed = relay.wait_event("tls", policy="dane", resumed="yes")
    assert resumed["verified"] == "dane"
    sites = {event["to"]: event["site"] for event in relay.events("sent")}
    assert (sites["c@lax.test"], sites["c@moving.test"]) == ("mx.moving.test", "mx.moving.test tls=dane")
    # Other records: what was proven to those of before proves nothing.
    nsd.set_zone(name, zone(2, f"3 1 1 {WRONG}"))
    assert relay.command("reload").returncode == 0
    addresses = (f"{number}@moving.test" for number in range(100))

    def waits():
        to = next(addresses)
        relay.send(recipients=[to])
        return _agrees(_came_to(world, _end_of(relay, to)), NO_FIT)

    wait_until(waits, 60, "the new records to count")


def _told(relay, *words):
    done = relay.command("tls", "--json", *words)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_sluice_tls_shows_records_their_use_and_the_verdict(world):
    relay = world.lab.relay(world.config(), start=False)
    status, (host,) = _told(relay, f"ta-and-ee.{ZONE}")
    assert status == 0 and host["outcome"] == "sent"
    assert (host["verified"], host["fits"], host["tlsa_base"]) == ("dane", "3 1 1", f"mx.ta-and-ee.{ZONE}")
    assert [(one["use"], one["usable"]) for one in host["tlsa"]] == [
        ("a chain to this certificate", True), ("its key", True)]
    status, (host,) = _told(relay, f"ee-wrong.{ZONE}")
    assert status == 1 and "does not fit" in host["reason"] and host["outcome"] == "deferred"
    status, (host,) = _told(relay, f"web.{ZONE}")
    assert status == 0 and [one["use"] for one in host["tlsa"]] == ["not for mail", "not for mail"]
    status, hosts = _told(relay, f"second.{ZONE}")
    assert status == 0 and [host["outcome"] for host in hosts] == ["deferred", "sent"]
    assert "bogus" in hosts[0]["tlsa_failure"] and "chain" not in hosts[0]
    text = relay.command("tls", f"ee-key.{ZONE}", f"expired.{ZONE}", "mx.plain.test").stdout
    for words in ("verified: dane, by TLSA 3 1 1", f"of _{world.port}._tcp.mx.ee-key.{ZONE}, DNSSEC secure",
                  "a message would be deferred, 4.4.3: look-up of the TLSA record",
                  "TLSA     none that counts: the MX records are not secure"):
        assert words in text, text
