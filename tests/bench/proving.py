# SPDX-License-Identifier: ISC
"""What DNSSEC costs: ten thousand domains with TLSA records, none of them known, and ten thousand without signatures.

    a message to each domain -> sluice -> NSD
    bench_names -> unbound -> NSD

The domains lie in a hundred signed zones, each with a mail host of its own, its address and a TLSA record. unbound validates too, and is
asked what sluice must know: MX, A, AAAA, TLSA, and TXT for MTA-STS. Nobody listens at the mail hosts, so that it ends with what is known. Meanwhile
other mail goes to a host that the configuration names.
"""

import contextlib
import json
import re
import statistics
import subprocess
import threading
import time
import urllib.request

from ends import TOP, spent
from lab import dns
from lab.config import Config
from lab.dns import Nsd
from lab.net import LOOPBACK, free_port, wait_until
from lab.relay import Relay
from lab.signed import SignedZones, Unbound
from lab.smtp import Client
from traffic import Receiver

PROGRAM = TOP / "build" / "plain" / "tests" / "bench" / "bench_names"
DOMAINS, ZONES, AT_ONCE, RECIPIENTS, PATIENCE = 10000, 100, 200, 100, 300
PAUSE = 0.05  # between messages of the other mail
ROUNDS = 2  # at most: one takes a minute
TYPES = {"MX": 15, "A": 1, "AAAA": 28, "TLSA": 52, "TXT": 16}


def _zone(number, port, tlsa=True):
    """Return the records of one zone."""
    lines = []
    for one in range(number, DOMAINS, ZONES):
        lines += [f"d{one} MX 10 mx{one}", f"mx{one} A {LOOPBACK}"]
        lines += [f"_{port}._tcp.mx{one} TLSA 3 1 1 {one:064x}"] if tlsa else []
    return "\n".join(lines) + "\n"


def _signed(folder, port):
    """Return signed zones, from the root down to the domains."""
    folder.mkdir()
    made = SignedZones(folder)
    delegations = ""
    for number in range(ZONES):
        made.signed(f"z{number}.test", _zone(number, port))
        delegations += f"z{number} NS ns.invalid.\n" + made.ds(made.keys[f"z{number}.test"]) + "\n"
    top = made.signed("test", delegations)
    made.signed(".", f"test NS ns.invalid.\n{made.ds(top)}\n")
    return made


def _unsigned(folder, rooted):
    """Return the same without signatures, and with a root that proves it, or with one that has none either."""
    folder.mkdir()
    made = SignedZones(folder)
    delegations = ""
    for number in range(ZONES):
        made.unsigned(f"z{number}.test", _zone(number, 25, tlsa=False))
        delegations += f"z{number} NS ns.invalid.\n"
    made.unsigned("test", delegations)
    (made.signed if rooted else made.unsigned)(".", "test NS ns.invalid.\n")
    return made


def _relay(folder, nsd, port, sink_port, more):
    config = Config(settings={"http": f"{LOOPBACK}:{free_port()}"}, dns={"allow_loopback": True} | more,
                    transports={"smtp": {"port": port}, "other": {"like": "smtp"}},
                    queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    config.routes["other.test"] = {"relay": [f"[{LOOPBACK}]:{sink_port}"], "transport": "other"}
    config.listeners["smtp"] = {"client_connection_limit": 0}
    folder.mkdir()
    return Relay(folder, config.resolve_with(nsd).hurried()).start()


class _Other:
    """Mail to the host that is known, one message after the other; how long each took to come."""

    def __init__(self, port, receiver):
        self.port, self.receiver, self.took = port, receiver, []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        with Client(LOOPBACK, self.port, 60) as client:
            client.greet()
            while not self.over.wait(PAUSE):
                before, began = len(self.receiver.times), time.monotonic()
                client.send_mail("a@bench.test", ["to@other.test"], b"Subject: x\r\n\r\nHello.\r\n")
                wait_until(lambda before=before: len(self.receiver.times) > before, 60, "a message of the other mail")
                self.took.append(1000 * (self.receiver.times[before] - began))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def quantiles(self):
        """Return median and 99th percentile, in milliseconds."""
        took = sorted(self.took)
        return statistics.median(took), took[len(took) * 99 // 100]


def _metric(relay, name):
    with urllib.request.urlopen(f"http://{relay.config.settings['http']}/metrics") as answer:
        return sum(int(value) for value in re.findall(rf"^sluice_{name} (\d+)$", answer.read().decode(), re.M))


def _hand_over(relay):
    with Client(LOOPBACK, relay.port, 120) as client:
        client.greet()
        for first in range(0, DOMAINS, RECIPIENTS):
            client.send_mail("a@bench.test", [f"to@d{one}.z{one % ZONES}.test" for one in range(first, first + RECIPIENTS)])


def _resolve(relay, metric, receiver):
    """Return seconds until all are known, seconds of processor time, and how long other mail took, alone and meanwhile."""
    with _Other(relay.port, receiver) as other:
        time.sleep(60 * PAUSE)
    alone, before = other.quantiles(), spent(relay.process.pid)
    with _Other(relay.port, receiver) as other:
        began = time.monotonic()
        _hand_over(relay)
        wait_until(lambda: _metric(relay, metric) >= DOMAINS, PATIENCE, "all domains to be known")
        seconds = time.monotonic() - began
    return {"seconds": seconds, "cpu": spent(relay.process.pid, before), "alone": alone, "meanwhile": other.quantiles()}


def _by_sluice(folder, made, port, metric, receiver, **more):
    with contextlib.ExitStack() as kept:
        (folder / "nsd").mkdir(parents=True)
        nsd = Nsd(folder / "nsd", made.zones).start()
        kept.callback(nsd.close)
        relay = _relay(folder / "relay", nsd, port, receiver[0], more)
        kept.callback(relay.stop)
        return _resolve(relay, metric, receiver[1])


def _by_unbound(folder, made, port):
    questions = "".join(f"{head}{one}.z{one % ZONES}.test {TYPES[kind]}\n" for one in range(DOMAINS) for head, kind in (
        ("d", "MX"), ("mx", "A"), ("mx", "AAAA"), (f"_{port}._tcp.mx", "TLSA"), ("_mta-sts.d", "TXT")))
    with contextlib.ExitStack() as kept:
        (folder / "nsd").mkdir(parents=True)
        nsd = Nsd(folder / "nsd", made.zones).start()
        kept.callback(nsd.close)
        resolver = Unbound(folder, nsd, made.anchor(), dns.ask)
        kept.callback(resolver.close)
        before = spent(resolver.process.pid)
        done = subprocess.run([PROGRAM, resolver.address, str(resolver.port), str(AT_ONCE)], input=questions.encode(),
                              stdout=subprocess.PIPE, check=True, timeout=PATIENCE)
        said = json.loads(done.stdout)
        assert said["failed"] == 0 and said["proven"] == said["questions"] == len(TYPES) * DOMAINS, said
        return {"seconds": said["seconds"], "cpu": spent(resolver.process.pid, before)}


def measure(options, folder):
    """Measure in turn, several rounds, and return the medians."""
    port, sink_port = free_port(), free_port()
    signed = _signed(folder / "signed", port)
    plain = {"no DNSSEC": _unsigned(folder / "none", False), "a signed root": _unsigned(folder / "rooted", True)}
    receiver = Receiver(sink_port)
    rounds = []
    try:
        for number in range(min(options.rounds, ROUNDS)):
            here = folder / f"round-{number}"
            found = {"unbound": _by_unbound(here / "unbound", signed, port), "DANE": _by_sluice(
                here / "dane", signed, port, r'dns_tlsa_total\{result="usable"\}', (sink_port, receiver),
                trust_anchor=signed.anchor())}
            for name, made in plain.items():
                for dnssec in ("validate", "off"):
                    more = {"dnssec": dnssec}
                    more |= {"trust_anchor": plain["a signed root"].anchor()} if dnssec == "validate" else {}
                    found[f"{name}, {dnssec}"] = _by_sluice(
                        here / f"{name}-{dnssec}".replace(" ", "-"), made, port, 'deliveries_total{result="deferred",.*}',
                        (sink_port, receiver), **more)
            rounds.append(found)
    finally:
        receiver.close()
    return {"rounds": rounds, "ratios": dict(_ratios(rounds))}


def _ratios(rounds):
    for one, other in (("DANE", "unbound"), ("no DNSSEC, validate", "no DNSSEC, off"),
                       ("a signed root, validate", "a signed root, off")):
        yield f"{one} / {other}", statistics.median(found[one]["seconds"] / found[other]["seconds"] for found in rounds)


def report(figures, _options):
    """Return the lines of the table."""
    lines = [f"{DOMAINS} domains, none of them known; other mail meanwhile",
             f"{'domains':26}{'seconds':>9}{'cpu':>7}{'other mail ms: median':>23}{'p99':>7}{'alone':>8}{'p99':>7}"]
    for name in figures["rounds"][0]:
        runs = [found[name] for found in figures["rounds"]]
        seconds, cpu = (statistics.median(one[what] for one in runs) for what in ("seconds", "cpu"))
        cells = ""
        if "alone" in runs[0]:
            meanwhile, alone = ([statistics.median(one[what][at] for one in runs) for at in (0, 1)]
                                for what in ("meanwhile", "alone"))
            cells = f"{meanwhile[0]:23.1f}{meanwhile[1]:7.1f}{alone[0]:8.1f}{alone[1]:7.1f}"
        lines.append(f"{name:26}{seconds:9.2f}{cpu:7.2f}{cells}")
    return lines + [f"seconds, {name}: {ratio:.2f}" for name, ratio in figures["ratios"].items()]
