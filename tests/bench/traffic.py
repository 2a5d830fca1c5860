# SPDX-License-Identifier: ISC
"""What the measurements of connections share: receivers that say when each message came, senders."""

import concurrent.futures
import functools
import os
import re
import signal
import subprocess
import threading
import time

from ends import TOP
from lab.config import Config
from lab.net import LOOPBACK, accepts, wait_until
from lab.postfix import Postfix
from lab.relay import Relay, binary
from lab.smtp import Client, stuff

DELAY_LINE = TOP / "build" / "plain" / "tests" / "bench" / "delay_line"
_TOTAL = re.compile(rb"(\d+) connections \(at most \d+ at once, (\d+) turned away\)")


class Receiver:
    """A sluice sink, and the times at which messages came."""

    def __init__(self, port, *words, address=LOOPBACK, watched=b"<nobody>"):
        """Start it with these options and wait until it listens. Mail to who is watched is not counted."""
        self.times, self.connections, self.turned_away = [], None, None
        self.recipients, self.watched, self.seen = 0, watched, None
        self.process = subprocess.Popen([binary(), "sink", "-l", f"{address}:{port}", *words],
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline().startswith(b"listening")
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith(b"message ") and self.watched in line:
                self.seen = time.monotonic()
            elif line.startswith(b"message "):
                self.times.append(time.monotonic())
                self.recipients += line.count(b"@") - 1
            elif found := _TOTAL.search(line):
                self.connections, self.turned_away = int(found[1]), int(found[2])

    def wait(self, messages, seconds):
        """Wait until so many messages have come."""
        wait_until(lambda: len(self.times) >= messages, seconds, f"{messages} messages at the sink")

    def close(self):
        """End it; afterwards the totals are known."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
            self.reader.join(30)
            self.process.stdout.close()


class Line:
    """delay_line: a long way to a port; nothing passes before open()."""

    def __init__(self, port, to_port, one_way_ms):
        self.process = subprocess.Popen([DELAY_LINE, str(port), str(to_port), str(one_way_ms),
                                         "held"])
        wait_until(lambda: accepts(port), 10, "the delay line to listen")

    def open(self):
        """Let pass what waits, and what comes."""
        self.process.send_signal(signal.SIGUSR1)

    def close(self):
        """End it."""
        self.process.terminate()
        self.process.wait(30)


def steady(times, begin=0.1, end=1.0):
    """Return messages a second between two parts of all that came, in the order of their coming.

    None, if next to nothing came."""
    times = sorted(times)
    first, last = int(len(times) * begin), int(len(times) * end) - 1
    if last <= first:
        return 0.0
    return (last - first) / (times[last] - times[first])


class Sluice:
    """A relay as a sender: what it has put off, and how long its transactions took."""

    def __init__(self, folder, transport=None, nsd=None, to_port=None, listener=None, routes=None):
        """Start it, with the next hop at a port, or found by DNS."""
        folder.mkdir()
        config = Config(transports={"smtp": transport or {}})
        config.listeners["smtp"] = {"client_connection_limit": 0} | (listener or {})
        if nsd:
            config.resolve_with(nsd)
            config.dns["allow_loopback"] = True
        elif routes:
            config.routes.update(routes)
        else:
            config.route_all_to(to_port)
        self.relay = Relay(folder, config)
        self.port = self.relay.start().port

    def deferred(self):
        """Return how many messages were put off at least once."""
        return len({event["id"] for event in self.relay.events("deferred")})

    def transmitting(self):
        """Return the seconds that all transactions took together."""
        return sum(float(event["delays"].split("/")[3]) for event in self.relay.events("sent"))

    def close(self):
        """Stop it."""
        self.relay.stop()


class Mailer:
    """The same of Postfix."""

    def __init__(self, folder, settings=None, nsd=None, to_port=None):
        """Start it, with the next hop at a port, or found by DNS."""
        folder.mkdir()
        more = {"local_header_rewrite_clients": "", "smtpd_client_message_rate_limit": "0"}
        if nsd:
            more["default_transport"] = "smtp"
        self.postfix = Postfix(folder, to_port, more | (settings or {}), resolver=nsd and nsd.address)
        self.port = self.postfix.start().port

    def _delivered(self, status):
        return re.findall(rf" (\w+): to=<.*delays=\S+/(\S+), .*status={status}", self.postfix.log())

    def deferred(self):
        """Return how many messages were put off at least once."""
        return len({name for name, _ in self._delivered("deferred")})

    def transmitting(self):
        """Return the seconds that all transactions took together."""
        return sum(float(seconds) for _, seconds in self._delivered("sent"))

    def close(self):
        """Stop it."""
        self.postfix.stop()


@functools.cache
def senders():
    """Return who can run here: Postfix wants root, and a resolv.conf of its own."""
    may_mount = os.getuid() == 0 and subprocess.run(
        ["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    return ("sluice", "postfix") if may_mount else ("sluice",)


def content_of(size):
    """Return the content of a message of so many bytes, with its dot."""
    return stuff(b"Subject: bench\r\n\r\n" + (b"x" * 76 + b"\r\n") * (size // 78))


def _session(port, recipients, size):
    content = content_of(size)
    with Client(LOOPBACK, port, 120) as client:
        client.greet()
        for one in recipients:
            client.send(f"MAIL FROM:<a@bench.test>\r\nRCPT TO:<{one}>\r\nDATA")
            for code in (250, 250, 354):
                client.expect(code)
            client.send(content)
            client.expect(250)


def hand_over(port, recipients, size, sessions=20):
    """Hand over a message to each of the recipients, from several sessions side by side."""
    side_by_side({at: lambda at=at: _session(port, recipients[at::sessions], size)
                  for at in range(sessions)})


def side_by_side(functions):
    """Run functions, each in a thread, and return what each returned; they mostly wait."""
    with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
        begun = {name: pool.submit(function) for name, function in functions.items()}
        return {name: future.result() for name, future in begun.items()}
