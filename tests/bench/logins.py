# SPDX-License-Identifier: ISC
"""Logging in: how many a second, and how long another client's NOOP takes meanwhile.

Fifty clients connect, begin TLS, log in and leave, again and again; by SCRAM, by PLAIN with the right
password, and by PLAIN with a wrong one. Another, with a session of its own under TLS, says NOOP each
5 ms. The clients, who would be other machines, run with less priority than the relay and than that one.

And how long a wrong password takes for a login that there is, and for one that there is not, in turn, with no
delay set: the two must be the same within what the machine makes of it.
"""

import multiprocessing
import os
import statistics
import time

from ends import make_relay
from lab import sasl
from lab.certs import Certificates
from lab.net import LOOPBACK, free_port
from lab.smtp import Client, Closed

SECONDS, CLIENTS, PAUSE, GUESSES = 10, 50, 0.005, 1000
PASSWORD = "correct horse"
LOADS = ("nobody", "SCRAM-SHA-256", "PLAIN", "PLAIN, wrong")


def _secure(port):
    client = Client(LOOPBACK, port, 60)
    client.greet()
    client.starttls()
    client.command("EHLO client.test")
    return client


class _Keys(sasl.Scram):
    """SCRAM by a client that keeps its key, as RFC 5802 lets it, and spares itself the hash."""

    kept = {}

    def salted(self, salt, iterations):
        """Return what was computed for this salt."""
        key = (salt, iterations)
        if key not in self.kept:
            self.kept[key] = super().salted(salt, iterations)
        return self.kept[key]


def _log_in(client, load):
    if load == "SCRAM-SHA-256":
        return _Keys("sha256", "alice", PASSWORD).say(client, load)
    return sasl.say_plain(client, "alice", "wrong" if "wrong" in load else PASSWORD)


def _clients(port, load, until, done):
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    while time.monotonic() < until.value:
        try:
            with _secure(port) as client:
                code = _log_in(client, load).code
        except (Closed, OSError):
            continue
        with done.get_lock():
            done.value += code in (235, 535)


def _run_clients(port, load):
    """Start them, each a process."""
    until = multiprocessing.Value("d", time.monotonic() + SECONDS)
    done = multiprocessing.Value("i", 0)
    processes = [multiprocessing.Process(target=_clients, args=(port, load, until, done))
                 for _ in range(0 if load == "nobody" else CLIENTS)]
    for process in processes:
        process.start()
    return processes, done


def _listen(port):
    """Return the times that NOOPs took, in milliseconds."""
    took, end = [], time.monotonic() + SECONDS
    with _secure(port) as client:
        while time.monotonic() < end:
            began = time.perf_counter()
            client.command("NOOP", 250)
            took.append(1000 * (time.perf_counter() - began))
            time.sleep(PAUSE)
    return took


def _guess(client, mechanism, login):
    """Say a wrong password, and return the milliseconds until the answer to the last word."""
    if mechanism == "PLAIN":
        last = f"AUTH PLAIN {sasl.plain(login, 'wrong')}"
    else:
        scram = _Keys("sha256", login, "wrong")
        client.send(f"AUTH {mechanism} {scram.first()}")
        last = scram.final(sasl.decode(client.read_reply()))
    began = time.perf_counter()
    client.command(last, 535)
    return 1000 * (time.perf_counter() - began)


def _compare(port, mechanism):
    """Return the medians for a login that there is, and for one that there is not."""
    took = {"alice": [], "nobody": []}
    with _secure(port) as client:
        for _ in range(GUESSES):
            for login, times in took.items():
                times.append(_guess(client, mechanism, login))
    return [statistics.median(times) for times in took.values()]


def _prepare(folder):
    folder.mkdir()
    certificate, key = Certificates(folder).host("relay.test")
    users = folder / "users"
    assert sasl.passwd(users, "alice", PASSWORD).returncode == 0
    relay = make_relay(folder / "relay", free_port())
    relay.config.listeners["smtp"] |= {
        "tls": "optional", "certificate": certificate, "key": key, "auth": True,
        "junk_command_limit": 0, "client_connection_limit": 0, "error_limit": 0,
    }
    relay.config.auth = {"file": str(users), "failure_delay": "0s", "failure_limit": 0,
                         "mechanisms": ["SCRAM-SHA-256", "PLAIN"]}
    relay.write_config()
    return relay


def run(_options, folder):
    """Measure under each load and return the figures."""
    relay = _prepare(folder / "logins").start()
    figures = {}
    try:
        for load in LOADS:
            processes, done = _run_clients(relay.port, load)
            took = sorted(_listen(relay.port))
            for process in processes:
                process.join()
            figures[load] = {
                "logins": done.value / SECONDS, "median": statistics.median(took),
                "p99": took[len(took) * 99 // 100], "most": took[-1], "noops": len(took),
            }
        figures = {"loads": figures, "guesses": {mechanism: _compare(relay.port, mechanism)
                                                 for mechanism in ("PLAIN", "SCRAM-SHA-256")}}
    finally:
        relay.stop()
    return figures


def report(figures, _options):
    """Return the lines of the table."""
    lines = [f"logging in: {CLIENTS} clients in a loop, and another's NOOP meanwhile",
             f"  {'who logs in':16} {'logins/s':>9} {'NOOP ms: median':>16} {'p99':>7} {'most':>7}"]
    for load, row in figures["loads"].items():
        lines.append(f"  {load:16} {row['logins']:9.0f} {row['median']:16.2f} {row['p99']:7.1f} {row['most']:7.1f}")
    lines.append("  a wrong password, median ms of 1,000:  login known  unknown")
    for mechanism, (known, unknown) in figures["guesses"].items():
        lines.append(f"  {mechanism:36} {known:13.3f} {unknown:8.3f}")
    return lines
