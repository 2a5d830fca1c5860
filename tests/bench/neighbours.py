# SPDX-License-Identifier: ISC
"""Next hops that are not one good host: one of two dead, ten thousand domains, one that says 421.

Names are those of a real name server, NSD, on port 53 of a loopback address of its own, since
Postfix knows no other port. Receivers are sluice sinks, which hold each reply back for a while where
it is the receiver's pace that counts, and not the machine's.
"""

import contextlib
import os
import time

from ends import source
from lab.dns import Nsd
from lab.net import blackhole, free_port, wait_until
from traffic import Mailer, Receiver, Sluice, hand_over, senders, side_by_side, steady

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
PATIENCE = 100

# One of two dead. Each reply takes 50 ms; what a black hole does to a rate shows in so many seconds.
PAIR = {"sluice": 1000, "postfix": 300}
PAIR_WORDS = ["--no-chunking", "--delay", "50"]
PAIR_SECONDS = 6
SECOND = ("alive", "refuses", "black hole")

# Many sites.
DOMAINS = {"sluice": 10000, "postfix": 1000}

# The third table of the scheduler's document: a host that serves five at once. No pipelining, so
# that a message holds its connection for four replies, and no place can be busy twice.
PLACES, CROWD, REPLY_MS = 5, 400, 20


def _make(who, folder, **where):
    port = where.pop("port", None)
    if who == "postfix":
        return Mailer(folder, {"smtp_tcp_port": port} if port else None, **where)
    return Sluice(folder, {"port": port} if port else None, **where)


def _zone():
    hosts = "".join(f"mx{n} A {address}\n" for n, address in enumerate(HOSTS))
    sites = "".join(f"d{n} MX 10 mx{n % len(HOSTS)}\n" for n in range(DOMAINS["sluice"]))
    return f"@ MX 10 mx0\n@ MX 10 mx1\n{hosts}{sites}"


def start_nsd(folder):
    """Start a name server on a loopback address that is this process's own; at port 53, for Postfix."""
    folder.mkdir()
    pid = os.getpid()
    address = f"127.{64 + (pid >> 16) % 64}.{pid >> 8 & 255}.{pid & 255}"
    return Nsd(folder, {"bench.test": _zone()}, address,
               port=53 if "postfix" in senders() else None).start()


def _pair(who, folder, nsd, size, second):
    """Return messages a second and how many were put off; the second host is alive, refuses, or is
    a black hole."""
    with contextlib.ExitStack() as kept:
        port = kept.enter_context(blackhole(HOSTS[1])) if second == "black hole" else free_port()
        alive = HOSTS[:2] if second == "alive" else HOSTS[:1]
        receivers = [Receiver(port, *PAIR_WORDS, address=address) for address in alive]
        for one in receivers:
            kept.callback(one.close)
        sender = _make(who, folder, nsd=nsd, port=port)
        kept.callback(sender.close)
        began = time.monotonic()
        source(sender.port, PAIR[who], 20, size)
        _wait_pair(receivers, sender, PAIR[who], began + PAIR_SECONDS)
        times = [at for one in receivers for at in one.times]
        return steady(times), sender.deferred()


def _wait_pair(receivers, sender, messages, until):
    """Wait until all have come or were put off, or the time is over."""
    while time.monotonic() < until:
        if sum(len(one.times) for one in receivers) + sender.deferred() >= messages:
            return
        time.sleep(0.1)


def pairs(folder, nsd, size):
    """Return rate and number put off, by sender and what the second host does."""
    figures = {}
    for second in SECOND:
        def one(who, second=second):
            return _pair(who, folder / f"{who}-{second.split()[0]}", nsd, size, second)
        found = side_by_side({who: lambda who=who: one(who) for who in senders()})
        figures |= {f"{who}, {second}": pair for who, pair in found.items()}
    return figures


def _sites(who, folder, nsd, size):
    """Return messages a second, from the first handed over until the last has come, and the
    connections opened."""
    with contextlib.ExitStack() as kept:
        port = free_port()
        receivers = [Receiver(port, address=address) for address in HOSTS]
        for one in receivers:
            kept.callback(one.close)
        sender = _make(who, folder, nsd=nsd, port=port)
        kept.callback(sender.close)
        count = DOMAINS[who]
        began = time.monotonic()
        hand_over(sender.port, [f"to@d{n}.bench.test" for n in range(count)], size)
        wait_until(lambda: sum(len(one.times) for one in receivers) >= count, PATIENCE, "all to come")
        ended = max(at for one in receivers for at in one.times)
    return count / (ended - began), sum(one.connections for one in receivers)


def sites(folder, nsd, size):
    """Return rate and connections by sender."""
    return {who: _sites(who, folder / f"{who}-sites", nsd, size) for who in senders()}


def _crowded(who, folder, size):
    """Return messages a second, how many were put off, how many connections were turned away, and
    how many places were busy on average."""
    with contextlib.ExitStack() as kept:
        port = free_port()
        receiver = Receiver(port, "--no-chunking", "--no-pipelining", "--delay", str(REPLY_MS),
                            "--limit", str(PLACES))
        kept.callback(receiver.close)
        sender = _make(who, folder, to_port=port)
        kept.callback(sender.close)
        source(sender.port, CROWD, 20, size)
        wait_until(lambda: len(receiver.times) + sender.deferred() >= CROWD, PATIENCE,
                   "every message to be tried")
        seconds = receiver.times[-1] - receiver.times[0]
        busy = sender.transmitting() / seconds
        deferred = sender.deferred()
    return len(receiver.times) / seconds, deferred, receiver.turned_away, busy


def crowds(folder, size):
    """Return what _crowded() found by sender."""
    return side_by_side({who: lambda who=who: _crowded(who, folder / f"{who}-crowd", size)
                         for who in senders()})
