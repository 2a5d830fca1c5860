# SPDX-License-Identifier: ISC
"""Destinations as they are: that hiccup, are slow, serve few connections, are silent.

sluice and Postfix side by side, with the retry times that they come with. For each: how many of the
messages had arrived when time was up, and how long these took on average.
"""

import concurrent.futures
import contextlib
import statistics
import threading
import time

from lab.moody import Moody
from lab.net import LOOPBACK, free_port
from lab.smtp import Client, stuff
from traffic import Mailer, Sluice, senders

# What the destination does, how many messages at what rate, the seconds until time is up.
MOODS = {
    "421 for its first 0.5 s": (dict(turned_away=lambda age, serving: age < 0.5), 100, 50, 20),
    "refuses for its first 0.5 s": (dict(listens=lambda age: age >= 0.5), 100, 50, 20),
    "one connection, 421 beyond; 20 at once, then 3": (
        dict(turned_away=lambda age, serving: serving >= 1, reply_delay=0.05), "20+3", 0, 20),
    "works 1 s on each; 3/s": (dict(work=1.0), 60, 3, 25),
    "works 1 s on each; 8/s": (dict(work=1.0), 160, 8, 25),
    "out for 5 of every 20 s; 2/s": (dict(listens=lambda age: age % 20 >= 5), 60, 2, 45),
}


def _hand_over(port, number):
    content = f"Subject: {number}\r\nX-Sent: {time.monotonic()}\r\n\r\nbody\r\n"
    with Client(LOOPBACK, port, 60) as client:
        client.greet()
        client.send("MAIL FROM:<a@bench.test>\r\nRCPT TO:<b@bench.test>\r\nDATA")
        for code in (250, 250, 354):
            client.expect(code)
        client.send(stuff(content.encode()))
        client.expect(250)


def _send(port, messages, rate):
    """Hand over messages at a rate, each when its time has come, whatever became of the others."""
    count, pauses = (23, [0.0] * 20 + [2.0] * 3) if messages == "20+3" else (messages, None)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        began = time.monotonic()
        for number in range(count):
            due = began + (pauses[number] if pauses else number / rate)
            time.sleep(max(0.0, due - time.monotonic()))
            pool.submit(_hand_over, port, number)
    return count


def _one(who, folder, mood):
    behaviour, messages, rate, seconds = MOODS[mood]
    with contextlib.ExitStack() as kept:
        port = free_port()
        server = Moody(port, **behaviour)
        sender = Mailer(folder, to_port=port) if who == "postfix" else Sluice(folder, to_port=port)
        kept.callback(sender.close)
        server.begin()
        kept.callback(server.close)
        count = _send(sender.port, messages, rate)
        until = server.began + seconds
        while len(server.delays) < count and time.monotonic() < until:
            time.sleep(0.05)
        mean = statistics.mean(server.delays) if server.delays else float("nan")
        return len(server.delays) / count, mean, sender.deferred(), server.connections


def run(_options, folder):
    """Measure each mood, all senders side by side."""
    figures = {}
    for number, mood in enumerate(MOODS):
        found, threads = {}, []
        for who in senders():
            def one(who=who, mood=mood, number=number):
                found[who] = _one(who, folder / f"{who}-mood-{number}", mood)
            threads.append(threading.Thread(target=one))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        figures[mood] = found
    return figures


def report(figures, _options):
    """Return the lines of the table."""
    lines = [f"{'the destination':48}{'':10}{'arrived':>8}{'mean s':>8}{'deferred':>10}{'connections':>13}"]
    for mood, found in figures.items():
        for who, (share, mean, deferred, connections) in found.items():
            lines.append(f"{mood:48}{who:10}{share:8.0%}{mean:8.2f}{deferred:10}{connections:13}")
            mood = ""
    return lines
