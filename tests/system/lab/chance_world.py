# SPDX-License-Identifier: ISC
"""A relay whose next hops are found by names, in a world that changes: what each domain demanded is kept to.

Beside what happens in lab.chance, domains change their mail hosts, TLSA records and MTA-STS policies, some are null, empty or bogus
for a while, and a table says for which of them TLS is required. Some mail has REQUIRETLS. A host must not be given what none of the demands
of that time allow: nothing in clear where TLS is demanded, and nothing to hosts that are not among the domain's, or do not prove
what they must.
"""

import dataclasses
import os
import time

from .behaviour import EVERYTHING
from .chance import DOMAINS, LIST, UNKNOWN, Chance
from .net import LOOPBACK, free_port
from .policy_host import PolicyHost, policy
from .signed import DAY, SignedZones

# Hosts of each domain, by the last part of their addresses: two have a certificate of their names, the third one has another.
HOSTS = (0, 1, 2)
NAMED = (0, 1)
RECORDS = ("none", "none", "own", "both", "wrong")
WRONG = f"3 1 1 {'00' * 32}"
LATE_S = 30  # as long as an answer may be used, twice for MTA-STS, and what is on its way then to a slow host
REST_S = 12  # between two changes in the DNS
SLOW = ("transport", "destination_rate", ("", "1/s", "2/s"))  # what waits sees several of them


@dataclasses.dataclass
class Zone:
    """What a domain publishes, and what we demand of it."""

    hosts: tuple = NAMED  # in order of preference
    records: tuple = ("none",) * len(HOSTS)  # TLSA
    mode: str = "none"  # of its MTA-STS policy; "": it has none
    named: tuple = NAMED  # hosts in that
    state: str = "well"  # or null, empty, bogus
    required: bool = False  # TLS, by our table

    def allows(self, number, tls, known):
        """Say whether this host may have got mail, under TLS or in clear, where the MTA-STS policy of that zone was known."""
        if self.state != "well" or number not in self.hosts or (self.required and not tls):
            return False
        if self.records[number] != "none":
            return tls and self.records[number] != "wrong"
        return known.mode != "enforce" or (tls and number in known.named and number in NAMED)


class ChanceWorld(Chance):
    """One history of such a relay."""

    def _special(self):
        return None, None

    def _hosts(self, lab, domain):
        if not hasattr(self, "_port"):
            self._port = free_port()
        names = [f"mx{number}.{domain}" for number in NAMED]
        pairs = [lab.certificates.host(*names), lab.certificates.host(*names), lab.certificates.host(f"odd.{domain}")]
        first = 10 + 10 * DOMAINS.index(domain)
        return [lab.sink(UNKNOWN, address=f"127.0.0.{first + number}", port=self._port, tls=lab.certificates.context_of(*pairs[number]),
                         extensions=(*self.random.choice((EVERYTHING, EVERYTHING, ("PIPELINING", "DSN"))), "REQUIRETLS")) for number in HOSTS]

    def _start_relays(self, lab):
        self._certificates = lab.certificates
        self._timeouts["port"] = self._port
        self._settings = (*self._settings, SLOW)
        self.policies = PolicyHost()
        self.policies.context.load_cert_chain(*lab.certificates.host("policies.test", *(f"mta-sts.{domain}" for domain in DOMAINS)))
        lab.callback(self.policies.close)
        self._table = os.path.join(lab.folder("table"), "policy")
        self._serial = 1
        self.zones = {domain: [(0, 0, Zone())] for domain in DOMAINS}  # from when, until when that before may have been served
        self._made = SignedZones(lab.folder("zones"))
        self._keys = {domain: self._made.key(domain) for domain in DOMAINS}
        for domain in DOMAINS:
            self._sign(domain, Zone())
        top = self._made.signed("test", "".join(f"{domain[0]} NS ns.invalid.\n{self._made.ds(key)}\n" for domain, key in self._keys.items()))
        self._made.signed(".", f"test NS ns.invalid.\n{self._made.ds(top)}\n")
        self._nsd = lab.nsd(self._made.zones)
        self._write_table()
        self._changed = time.monotonic()
        return super()._start_relays(lab)

    def _config(self):
        config = super()._config()
        config.routes = {"sender.test": config.routes["sender.test"]}
        config.transports = {"smtp": dict(self._timeouts), "second": {"like": "smtp"}}
        config.settings["tls_policy"] = [self._table]
        config.resolve_with(self._nsd)
        config.dns |= {"allow_loopback": True, "trust_anchor": self._made.anchor(), "timeout": "2s", "tries": 1, "maximal_ttl": "50ms", "negative_ttl": "50ms"}
        certificate, key = self._certificates.host("relay.test")
        config.listeners["smtp"] |= {"certificate": certificate, "key": key}
        config.extra += (f'tls {{\n  ca = "{self._certificates.ca}"\n  mta_sts_port = {self.policies.port}\n  mta_sts_timeout = 5s\n'
                         '  mta_sts_interval = 100ms\n}\ntls_report {\n  enabled = true\n}\n')
        return config

    def _sign(self, domain, zone):
        self._serial += 1
        lines = {"well": [f"@ MX {10 * (at + 1)} mx{number}" for at, number in enumerate(zone.hosts)], "null": ["@ MX 0 ."]}.get(zone.state, [])
        if zone.state == "bogus":
            lines = ["@ MX 10 mx0"]
        for number, host in zip(HOSTS, self.hosts[domain]):
            own = self._certificates.tlsa(self._certificates.host(f"mx0.{domain}", f"mx1.{domain}")[0] if number in NAMED else
                                          self._certificates.host(f"odd.{domain}")[0])
            data = {"none": [], "own": [own], "both": [WRONG, own], "wrong": [WRONG]}[zone.records[number]]
            lines += [f"mx{number} A {host.address}", *(f"_{self._port}._tcp.mx{number} TLSA {one}" for one in data)]
        lines.append(f"mta-sts A {LOOPBACK}")
        if zone.mode:
            self.policies.answers[domain] = policy(zone.mode, *(f"mx{number}.{domain}" for number in zone.named))
            lines.append(f'_mta-sts TXT "v=STSv1; id={self._serial};"')
        valid = (-2 * DAY, -DAY) if zone.state == "bogus" else (-DAY, 30 * DAY)
        self._made.signed(domain, "\n".join(lines), key=self._keys[domain], serial=self._serial, valid=valid)

    def _write_table(self):
        with open(self._table, "w", encoding="utf-8") as stream:
            stream.writelines(f"{domain} required\n" for domain in DOMAINS if self.zones[domain][-1][2].required)

    # Clients.

    def _greet(self, client):
        super()._greet(client)
        client.starttls()
        client.command("EHLO client.test", 250)

    def _mail(self, rng):
        mail = super()._mail(rng)
        if mail.sender and rng.random() < 0.15:  # whose reports would need hosts that prove themselves, too
            mail.parameters, mail.recipients = " REQUIRETLS", dict.fromkeys((to for to in mail.recipients if to != LIST), "NEVER") or {"to1@a.test": "NEVER"}
        return mail

    def _submit(self, rng):
        """Hand in nothing that asks for what the command can't."""

    # What else happens.

    def _acts(self):
        return (*((act, weight) for act, weight in super()._acts() if act != self._change_way), (self._change_zone, 12), (self._change_table, 3), (self._wait, 20))

    def _wait(self):
        time.sleep(1)

    def _change_zone(self):
        """One after the other: what holds while many change at once nobody could tell."""
        if time.monotonic() - self._changed < REST_S:
            return
        domain = self.random.choice(DOMAINS)
        self._publish(domain, self._any_zone(self.zones[domain][-1][2].required))

    def _any_zone(self, required):
        hosts = tuple(self.random.sample(HOSTS, self.random.choice((1, 2, 3))))
        return Zone(hosts=hosts, records=tuple(self.random.choice(RECORDS) for _ in HOSTS), mode=self.random.choice(("", "none", "testing", "enforce", "enforce")),
                    named=tuple(self.random.sample(HOSTS, self.random.choice((1, 2, 3)))),
                    state=self.random.choice(("well",) * 8 + ("null", "empty", "bogus")), required=required)

    def _publish(self, domain, zone):
        self._note(domain, zone)
        begun = time.monotonic()
        self._sign(domain, zone)
        self._nsd.set_zone(domain, self._made.zones[domain])
        self._changed = time.monotonic()
        self.zones[domain].append((begun, self._changed, zone))

    def _change_table(self):
        domain = self.random.choice(DOMAINS)
        zone = dataclasses.replace(self.zones[domain][-1][2], required=not self.zones[domain][-1][2].required)
        self._note(domain, "required" if zone.required else "not required")
        begun = time.monotonic()
        self.zones[domain].append((begun, float("inf"), zone))
        self._write_table()
        self._reload()
        self.zones[domain][-1] = (begun, time.monotonic(), zone)

    def _zones_at(self, domain, at):
        """Return what the domain may have been when mail came at that time."""
        changes = self.zones[domain]
        ends = [done for _, done, _ in changes[1:]] + [float("inf")]
        return [zone for (begun, _, zone), end in zip(changes, ends) if begun <= at <= end + LATE_S]

    def misled(self, host, one):
        """Yield what is wrong with a message that has come to a host: a policy holds until a newer one is fetched (RFC 8461, 5.1)."""
        number = int(host.address.rpartition(".")[2]) % 10
        for domain in sorted({to.partition("@")[2] for to in one.recipients}):
            zones = self._zones_at(domain, one.time)
            if host not in self.hosts[domain] or not any(zone.allows(number, one.tls, known) for zone in zones for known in zones):
                yield f"mail for {domain} came to {host.address}, TLS {one.tls}, at {one.time:.1f}, by {zones}: {one.content[:300]}"
        if "REQUIRETLS" in one.sender_params and not one.tls:
            yield f"in clear: {one.content[:300]}"

    def settle(self):
        """Let all domains be well, for all mail."""
        for domain in DOMAINS:
            self._publish(domain, Zone(records=("own",) * len(HOSTS)))
        self._write_table()
        super().settle()
