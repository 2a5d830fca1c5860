# SPDX-License-Identifier: ISC
"""A node with a long queue starts, dies, and is adopted by one with a queue as long; what new mail notices of it.

    start      a node sends its queue once more: until all of it is in NATS
    adopt      the other is killed and its disk deleted: until its messages are in the adopter's queue
    new mail   one client, a message at a time: how long until its 250, meanwhile and in quiet

Everything shares one disk and the processors: two relays and three nats-servers, which write each byte once more each.
"""

import multiprocessing
import shutil
import time

from ends import make_relay, spent
from lab.nats import Nats
from lab.net import free_port, wait_until
from lab.smtp import Client, Closed
from queueing import generate, memory

ADOPT_AFTER_S = 10
PATIENCE = 3600  # seconds
NAMES = ("dies", "adopts")


def _send(port, ends, result):
    seconds, refused = [], 0
    while not ends.wait(0.02):
        began = time.monotonic()
        try:
            with Client("127.0.0.1", port, 60) as client:
                client.greet()
                client.send_mail("a@bench.test", ["b@bench.test"])
            seconds.append(time.monotonic() - began)
        except (OSError, Closed, AssertionError):
            refused += 1
    of = sorted(seconds) or [0]
    result.send({"median_ms": 1000 * of[len(of) // 2], "p99_ms": 1000 * of[len(of) * 99 // 100], "longest_ms": 1000 * of[-1],
                 "refused": refused})


class _Client:
    """Sends a message after the other until it is told to end: a process, since who reads a long log here takes its time."""

    def __init__(self, port):
        self.ends = multiprocessing.Event()
        self.result, result = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=_send, args=(port, self.ends, result), daemon=True)
        self.process.start()

    def end(self):
        """Return the median and the longest in milliseconds, and how many were refused."""
        self.ends.set()
        return self.result.recv()


def _quiet(relay):
    client = _Client(relay.port)
    time.sleep(2)
    return client.end()


def _start(relay):
    began = time.monotonic()
    relay.start()
    client = _Client(relay.port)
    relay.wait_event("replica", PATIENCE, state="complete")
    return {"seconds": time.monotonic() - began, "mail": client.end()}


def _adopt(relays):
    other = relays["adopts"]
    relays["dies"].kill()
    shutil.rmtree(relays["dies"].spool)
    other.wait_event("node", 60, state="adopting", node="dies")
    before, began = spent(other.process.pid), time.monotonic()
    client = _Client(other.port)
    told = other.wait_event("node", PATIENCE, state="adopted", node="dies")
    return {"seconds": time.monotonic() - began, "cpu": spent(other.process.pid, before), "messages": int(told.keys["messages"]),
            "memory": memory(other.process.pid), "mail": client.end()}


def _measure(relays, options, figures):
    for name, relay in relays.items():
        generate(relay, figures["length"], options.size)
        figures["start", name] = _start(relay)
    figures["before"] = memory(relays["adopts"].process.pid)
    figures["quiet"] = _quiet(relays["adopts"])
    figures["adopt"] = _adopt(relays)
    wait_until(lambda: not relays["adopts"].events("node", state="fenced"), 1, "the adopter to have stayed up")


def run(options, folder):
    """Measure and return the figures."""
    (folder / "nats").mkdir()
    nats = Nats(folder / "nats")
    figures = {"length": max(options.smallest, min(100000, options.messages // 10))}
    relays = {}
    try:
        nats.start()
        for name in NAMES:
            relays[name] = make_relay(folder / name, free_port(), {"segment_size": "64m"})
            relays[name].config.extra = (f'cluster {{ name = "{name}" nats = "{nats.addresses}" replicate = "sync" '
                                         f'replicate_timeout = 30s adopt_after = {ADOPT_AFTER_S}s }}\n')
            relays[name].write_config()
        _measure(relays, options, figures)
    finally:
        for relay in relays.values():
            if relay.running():
                relay.stop()
        nats.close()
    return {" ".join(name) if isinstance(name, tuple) else name: value for name, value in figures.items()}


def _mail(of):
    return f"{of['median_ms']:10.1f}{of['p99_ms']:10.1f}{of['longest_ms']:10.1f}{of['refused']:9}"


def report(figures, options):
    """Return the lines of the table."""
    lines = [f"two nodes with {figures['length']} messages of {options.size} bytes each, three servers of NATS on this machine",
             f"{'':22}{'seconds':>9}{'new mail ms':>14}{'p99':>6}{'longest':>10}{'refused':>9}"]
    lines.append(f"{'in quiet':22}{'':>9}    {_mail(figures['quiet'])}")
    for name in ("start dies", "start adopts", "adopt"):
        lines.append(f"{name:22}{figures[name]['seconds']:9.1f}    {_mail(figures[name]['mail'])}")
    adopt = figures["adopt"]
    lines.append(f"adopted {adopt['messages']}: {adopt['cpu']:.1f} s of processor time; resident {figures['before'][0]:.0f} MB before, "
                 f"{adopt['memory'][0]:.0f} after, {adopt['memory'][2]:.0f} at most")
    return lines
