# SPDX-License-Identifier: ISC
"""Domains with MTA-STS: their name server, policy host and mail hosts, and a relay that sends to them."""

import re
import zlib

from .config import Config
from .net import LOOPBACK, free_port
from .policy_host import PolicyHost

# The domains of a test are a.test, b.test ... with the mail hosts mx.a.test and mx2.a.test. Addresses tell
# which certificate a mail host has, and whether it knows TLS.
GOOD, BAD, CLEAR, HOLE = "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.9"
TIMEOUT_MS = 5000


class World:
    """Name server, policy host, mail hosts, and a relay."""

    def __init__(self, lab, domains, foreign=False, extra="", **settings):
        """The domains are names with a text each: further records, in terms of the domain's own labels."""
        self.lab, self.records = lab, dict(domains)
        names = [f"{host}.{name}.test" for name in domains for host in ("mx", "mx2")]
        self.policies = PolicyHost()
        self.trust(foreign)
        lab.callback(self.policies.close)
        self.nsd = lab.nsd({"test": self._zone({name: "1" for name in domains})})
        self.port = free_port()
        self.sinks = {
            GOOD: lab.sink(address=GOOD, port=self.port, tls=lab.certificates.server_context(f"mail-{zlib.crc32(' '.join(names).encode())}.test", *names)),
            BAD: lab.sink(address=BAD, port=self.port, tls=lab.certificates.server_context("other.test")),
            CLEAR: lab.sink(address=CLEAR, port=self.port),
        }
        config = Config(queue={"minimal_backoff_time": "300ms", "maximal_backoff_time": "300ms"},
                        transports={"smtp": {"port": self.port, "connection_idle_timeout": "50ms"}})
        config.settings["hostname"] = "relay.lab.test"
        config.resolve_with(self.nsd)
        config.dns |= {"allow_loopback": True, "timeout": "5s", "tries": 1, "maximal_ttl": "50ms", "negative_ttl": "50ms"}
        tls = {"ca": f'"{lab.certificates.ca}"', "mta_sts_port": self.policies.port,
               "mta_sts_timeout": f"{TIMEOUT_MS}ms", "mta_sts_interval": "200ms"} | settings
        config.extra = "tls {\n" + "".join(f"    {name} = {value}\n" for name, value in tls.items()) + "}\n" + extra
        self.config = config
        self.relay = lab.relay(config)

    def trust(self, foreign):
        """Give the policy host a certificate for all domains, or all but "foreign"."""
        names = [f"mta-sts.{name}.test" for name in self.records if foreign or name != "foreign"]
        # The same number of other names, behind the same first one, would get the same certificate.
        own = f"policies-{zlib.crc32(' '.join(names).encode())}.test"
        self.policies.context.load_cert_chain(*self.lab.certificates.host(own, *names))

    def _zone(self, ids):
        lines = [f"{name} {record}" for name, text in self.records.items() for record in text.replace("PORT", str(self.policies.port)).split("; ")]
        hosts = {"mx": GOOD, "mx2": BAD}
        for name, text in self.records.items():
            lines += [f"{host}.{name} A {address}" for host, address in hosts.items() if f"^{host} " not in text]
            if "^mta-sts " not in text:
                lines += [f"mta-sts.{name} A {LOOPBACK}"]
            if name in ids:
                lines += [f'_mta-sts.{name} TXT "v=STSv1; id={ids[name]};"']
        return "\n".join(re.sub(r"^([\w-]+) \^(\S+) ", r"\2.\1 ", line) for line in lines)

    def set_ids(self, ids):
        """Have these domains, and no others, a record with this id."""
        self.nsd.set_zone("test", self._zone(ids))

    def send(self, *names):
        """Send to these domains."""
        self.relay.send(recipients=[f"to@{name}.test" for name in names])

    def became(self, event, name, count=1):
        """Wait until this has become of mail for the domain."""
        return self.relay.wait_event(event, 60, count, to=f"to@{name}.test")

    def asked(self, name):
        """Return how often the policy of a domain was fetched."""
        return self.policies.asked.count(f"{name}.test")

    def metric(self, name):
        """Return the value of a metric, all labels added up."""
        text = self.relay.command("stats", "--all").stdout
        return sum(float(value) for value in re.findall(rf"^\S*{name}\S*\s+([0-9.]+)", text, re.M))
