# SPDX-License-Identifier: ISC
"""TLS on both sides: what it costs where connections are kept, and where each message has its own.

    bench_tls source -> sluice  -> bench_tls sink
    bench_tls source -> Postfix -> bench_tls sink       where Postfix can run (as root)

In turn, several rounds, with one certificate (ECDSA P-256) for all. Postfix has what makes it faster: with kept
connections smtp_tls_connection_reuse, else its cache of sessions. And without anybody between the two ends: a relay has
their work to do once more, so that on a machine which all of them keep busy half of that rate is the most for one whose
TLS costs what theirs does.
"""

import json
import os
import statistics
import subprocess
import time

from ends import TOP, make_relay, spent
from lab.certs import Certificates
from lab.net import accepts, free_port, wait_until
from lab.postfix import Postfix

PROGRAM = TOP / "build" / "plain" / "tests" / "bench" / "bench_tls"

# What the two ends do, and what the relay is told.
CASES = {
    "kept, in clear": ((), ("clear",), {}),
    "kept": ((), (), {}),
    "each, resumed": (("each",), (), {"connection_max_messages": 1}),
    "each, not resumed": (("each",), ("fresh",), {"connection_max_messages": 1}),
}
OF_POSTFIX = {"kept": {"smtp_tls_connection_reuse": "yes", "smtp_connection_cache_destinations": "bench.test"},
              "each, resumed": {"smtp_connection_cache_on_demand": "no"}}
PATIENCE = 600


class _Sink:
    def __init__(self, port, messages, pair, words):
        self.process = subprocess.Popen([PROGRAM, "sink", str(port), str(messages), *pair, *words],
                                        stdout=subprocess.PIPE)
        wait_until(lambda: accepts(port), 10, "the sink to listen")

    def wait(self):
        """Return what it says when it has got all."""
        return json.loads(self.process.communicate(timeout=PATIENCE)[0])

    def close(self):
        """Stop it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _drive(port, sink_port, messages, pair, options, words):
    """Return the seconds until the sink has got all messages, and what it says of its connections."""
    at_source, at_both = words
    sink = _Sink(sink_port, messages, pair, at_both)
    try:
        began = time.monotonic()
        with subprocess.Popen([PROGRAM, "source", str(port), str(options.sessions), str(messages), str(options.size),
                               *at_source, *at_both], stderr=subprocess.PIPE) as source:
            if port == sink_port:
                found = sink.wait()  # and is gone: the source is not answered any more
            elif source.wait(PATIENCE) != 0:
                raise RuntimeError(source.stderr.read().decode())
            else:
                found = sink.wait()
        return time.monotonic() - began, found
    finally:
        sink.close()


def _sluice(folder, case, pair, port):
    relay = make_relay(folder, port)
    clear = "clear" in CASES[case][1]
    relay.config.listeners["smtp"] |= {"certificate": pair[0], "key": pair[1], "tls": "none" if clear else "optional"}
    relay.config.transports["smtp"] = {"tls": "none" if clear else "required"} | CASES[case][2]
    relay.write_config()
    return relay.start()


def _postfix(folder, case, pair, port):
    folder.mkdir()
    settings = {"smtpd_tls_security_level": "may", "smtpd_tls_cert_file": pair[0], "smtpd_tls_key_file": pair[1],
                "smtp_tls_security_level": "encrypt",
                "smtp_tls_session_cache_database": "btree:${data_directory}/smtp_scache",
                "smtpd_tls_session_cache_database": "btree:${data_directory}/smtpd_scache"}
    return Postfix(folder, next_hop=port, settings=settings | OF_POSTFIX[case]).start()


def _measure_ends(case, messages, pair, options):
    at_source, at_both, _ = CASES[case]
    port = free_port()
    seconds, found = _drive(port, port, messages, pair, options, (at_source, at_both))
    return {"rate": messages / seconds, "ms": 0, "connections": found["connections"], "resumed": found["resumed"]}


def _measure(server, case, ports, messages, pair, options):
    before = spent(server.process.pid)
    at_source, at_both, _ = CASES[case]
    seconds, found = _drive(server.port, ports, messages, pair, options, (at_source, at_both))
    return {"rate": messages / seconds, "ms": 1000 * spent(server.process.pid, before) / messages,
            "connections": found["connections"], "resumed": found["resumed"]}


def _start(folder, pair):
    """Return the servers by who and which case, each with the port of its sink."""
    servers = {}
    for number, case in enumerate(CASES):
        port = free_port()
        servers["sluice", case] = _sluice(folder / f"sluice-{number}", case, pair, port), port
        if case in OF_POSTFIX and os.getuid() == 0:
            port = free_port()
            servers["postfix", case] = _postfix(folder / f"postfix-{number}", case, pair, port), port
    return servers


def measure(options, folder):
    """Measure everything in turn, several rounds, and return the medians."""
    pair = Certificates(folder).host("bench.test")
    os.chmod(pair[1], 0o644)  # both run as somebody else
    servers = _start(folder, pair)
    rounds = {f"{who}, {case}": [] for who, case in servers} | {f"no relay, {case}": [] for case in CASES}
    try:
        for _ in range(options.rounds):
            for case in CASES:
                rounds[f"no relay, {case}"].append(_measure_ends(case, options.relayed, pair, options))
            for (who, case), (server, port) in servers.items():
                messages = options.postfix_messages if who == "postfix" else options.relayed
                rounds[f"{who}, {case}"].append(_measure(server, case, port, messages, pair, options))
    finally:
        for server, _ in servers.values():
            server.stop()
    median = {name: {what: statistics.median(one[what] for one in found) for what in found[0]}
              for name, found in rounds.items()}
    return {"median": median, "ratios": dict(_ratios(rounds)), "rounds": rounds}


def _ratios(rounds):
    for one, other in (("sluice, kept", "sluice, kept, in clear"), ("sluice, kept", "postfix, kept"),
                       ("sluice, each, resumed", "postfix, each, resumed"),
                       ("sluice, each, resumed", "sluice, each, not resumed"),
                       ("sluice, kept", "no relay, kept"), ("sluice, each, resumed", "no relay, each, resumed")):
        if other in rounds:
            yield f"{one} / {other}", statistics.median(
                a["rate"] / b["rate"] for a, b in zip(rounds[one], rounds[other]))


def report(figures, options):
    """Return the lines of the table."""
    lines = [f"TLS on both sides: {options.size} byte messages, {options.sessions} sessions, "
             f"median of {options.rounds} rounds",
             f"{'connections':30}{'messages/s':>12}{'ms cpu/msg':>12}{'to the sink':>13}{'resumed':>9}"]
    for name, one in figures["median"].items():
        lines.append(f"{name:30}{one['rate']:12.0f}{one['ms']:12.3f}{one['connections']:13.0f}{one['resumed']:9.0f}")
    return lines + [f"{name}: {ratio:.2f}" for name, ratio in figures["ratios"].items()]
