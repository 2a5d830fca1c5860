# SPDX-License-Identifier: ISC
"""Signing: processor time of a message with and without, beside that of OpenSSL for one signature.

Relays that sign nothing, by RSA of 2048 bits, by Ed25519, and by both, in turn; each costs a message what
it costs more than the first. `openssl speed` runs in each round too: the machine is noisy.

"Pool" is what the threads that sign have had, and its ratio is that of signing. The rest of "more" is not: a relay that signs
carries fewer messages in a time, and its other threads wake up for fewer at once.
"""

import re
import statistics
import subprocess

from by_thread import accounts
from ends import drive, make_relay, spent
from lab.net import free_port

KINDS = {"none": [], "rsa2048": ["rsa"], "ed25519": ["ed"], "both": ["rsa", "ed"]}
MESSAGES = 4000


def _make_keys(folder):
    made = {}
    for name, words in [("rsa", ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]), ("ed", ["ED25519"])]:
        made[name] = folder / f"{name}.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", *words, "-out", str(made[name])],
                       check=True, stderr=subprocess.DEVNULL)
        made[name].chmod(0o644)
    return made


def _openssl_ms(name):
    """Milliseconds of processor time of one signature, as OpenSSL itself measures."""
    words = ["openssl", "speed", "-seconds", "1", name]
    said = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return 1000 / float(re.findall(r"[\d.]+", said.strip().splitlines()[-1])[-2])


def _relays(folder, sink_port):
    keys = _make_keys(folder)
    relays = {}
    for kind, names in KINDS.items():
        relay = make_relay(folder / kind, sink_port)
        relay.config.extra = "".join(
            f'dkim "bench.test" {{ selector = "{name}"  key = "{keys[name]}" }}\n' for name in names)
        relay.write_config()
        relays[kind] = relay.start()
    return relays


def _pool_seconds(relay):
    return sum(accounts(relay.process.pid).get("pool", (0, 0))[:2])


def _measure(relay, options, sink_port):
    before, pool = spent(relay.process.pid), _pool_seconds(relay)
    seconds = drive(relay.port, sink_port, options, MESSAGES)
    return {"rate": MESSAGES / seconds, "ms": 1000 * spent(relay.process.pid, before) / MESSAGES,
            "pool": 1000 * (_pool_seconds(relay) - pool) / MESSAGES}


def run(options, folder):
    """Measure in turn and return the rounds."""
    sink_port = free_port()
    relays = _relays(folder, sink_port)
    rounds = []
    try:
        for _ in range(options.rounds):
            one = {kind: _measure(relay, options, sink_port) for kind, relay in relays.items()}
            one["openssl"] = {"rsa2048": _openssl_ms("rsa2048"), "ed25519": _openssl_ms("ed25519")}
            rounds.append(one)
    finally:
        for relay in relays.values():
            relay.stop()
    return {"rounds": rounds}


def report(figures, _options):
    """Return the lines of the table."""
    rounds = figures["rounds"]

    def middle(value):
        return statistics.median(value(one) for one in rounds)

    lines = ["signing: DKIM, processor time a message; what it costs more than none, and openssl speed's signature",
             f"  {'signed by':12} {'messages/s':>11} {'ms':>7} {'more':>7} {'openssl':>8} {'ratio':>6} {'pool':>7} {'ratio':>6}"]
    for kind, names in KINDS.items():
        rate, ms = (middle(lambda one, what=what: one[kind][what]) for what in ("rate", "ms"))
        line = f"  {kind:12} {rate:11.0f} {ms:7.3f}"
        if names:
            more = middle(lambda one: one[kind]["ms"] - one["none"]["ms"])
            own = middle(lambda one: sum(one["openssl"][{"rsa": "rsa2048", "ed": "ed25519"}[name]] for name in names))
            pool = middle(lambda one, what=kind: one[what]["pool"])
            line += f" {more:7.3f} {own:8.3f} {more / own:6.2f} {pool:7.3f} {pool / own:6.2f}"
        lines.append(line)
    return lines
