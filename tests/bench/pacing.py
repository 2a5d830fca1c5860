# SPDX-License-Identifier: ISC
"""Hosts that say how much they let through: buckets, refusals of everybody, what was thrown away.

sluice and Postfix side by side, each with a host of its own, with the retry times that they come with. For each: how many of the
messages had arrived when time was up, when the last of them did, how often the host refused, and how many connections it saw.
"""

import contextlib
import threading
import time

from lab.bucket import Bucket
from lab.forgetful import Forgetful
from lab.load import Load
from lab.net import free_port, wait_until
from traffic import Mailer, Sluice, senders

RATE, ROOM = 20, 20

# What the host does, how many messages, the seconds until time is up.
HOSTS = {
    "20/s, 421 4.7.28 at the end of data": (Bucket, dict(at="end", words="421 4.7.28 rate limited, try again later"), 600, 60),
    "20/s, 451 4.7.650 at MAIL": (Bucket, dict(at="mail", words="451 4.7.650 The mail server has been temporarily rate limited"), 600, 60),
    "20/s, 452 at RCPT": (Bucket, dict(at="rcpt", words="452 4.7.0 too much mail from your address, slow down"), 600, 60),
    "421 to MAIL for 5 s, then all": (Bucket, dict(at="mail", words="421 4.3.2 not now", rate=1e6, room=10**6, refuses=lambda age: age < 5), 60, 60),
    "421 to MAIL for a minute": (Bucket, dict(at="mail", words="421 4.3.2 not now", refuses=lambda age: True), 3000, 60),
    "throws away what came ahead of its answer": (Forgetful, {}, 300, 30),
}


def _one(who, folder, name):
    kind, behaviour, messages, seconds = HOSTS[name]
    with contextlib.ExitStack() as kept:
        port = free_port()
        if kind is Bucket:
            behaviour = dict(rate=RATE, room=ROOM) | behaviour
        server = kind(port, **behaviour)
        sender = Mailer(folder, to_port=port) if who == "postfix" else Sluice(folder, to_port=port)
        kept.callback(sender.close)
        kept.callback(server.close)
        server.begin()
        wait_until(lambda: server.listening, 30, "the host to listen")
        taken = (lambda: len(server.taken)) if kind is Bucket else (lambda: len(server.recipients))
        began = time.monotonic()
        Load(sender.port, messages, sessions=10).finish()
        last, count = began, 0
        while count < messages and time.monotonic() < began + seconds:
            time.sleep(0.02)
            if taken() > count:
                last, count = time.monotonic(), taken()
        refusals = len(server.refusals) if kind is Bucket else server.lost
        return count / messages, last - began, refusals, server.connections


def run(_options, folder):
    """Measure each host, all senders side by side."""
    figures = {}
    for number, name in enumerate(HOSTS):
        found, threads = {}, []
        for who in senders():
            def one(who=who, name=name, number=number):
                found[who] = _one(who, folder / f"{who}-pace-{number}", name)
            threads.append(threading.Thread(target=one))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        figures[name] = found
    return figures


def report(figures, _options):
    """Return the lines of the table."""
    lines = [f"{'the host':44}{'':10}{'arrived':>8}{'the last, s':>13}{'refused':>9}{'connections':>13}"]
    for name, found in figures.items():
        for who, (share, last, refusals, connections) in found.items():
            lines.append(f"{name:44}{who:10}{share:8.0%}{last:13.1f}{refusals:9}{connections:13}")
            name = ""
    return lines
