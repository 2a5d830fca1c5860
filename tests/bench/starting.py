# SPDX-License-Identifier: ISC
"""A start with a stopwatch: from the start of the process to what matters to others.

    ready       the relay says so in its log
    accepted    the first 250 to the end of a new message, by a client that tries every millisecond
    recovered   it says `recover` in its log: the whole queue is known
    delivered   the first `sent` in its log
"""

import threading
import time

import ends  # noqa: F401  (knows where the lab is)
from lab.process import Process
from lab.relay import binary
from lab.smtp import Client, Closed

EVENTS = {"ready": b" info ready ", "recovered": b" info recover ", "delivered": b" info sent "}
PATIENCE = 600  # seconds


class _Log:
    """What is appended to a log file from now on."""

    def __init__(self, path):
        open(path, "ab").close()
        self.stream = open(path, "rb")
        self.stream.seek(0, 2)
        self.tail = b""
        self.seen = {}

    def look(self, seconds):
        """Note which events have come, and what they said."""
        self.tail += self.stream.read()
        lines = self.tail.split(b"\n")
        self.tail = lines.pop()
        for line in lines:
            for name, word in EVENTS.items():
                if name not in self.seen and word in line:
                    self.seen[name] = seconds, line.decode()

    def close(self):
        self.stream.close()


def _first_accepted(port, began, found):
    while time.monotonic() - began < PATIENCE:
        try:
            with Client("127.0.0.1", port) as client:
                client.greet()
                client.send_mail("a@bench.test", ["b@bench.test"])
            found["accepted"] = time.monotonic() - began
            return
        except (OSError, Closed, AssertionError):
            time.sleep(0.001)


def timed_start(relay):
    """Start the relay and return the seconds to each event; its own word for `recover` too."""
    log, found = _Log(relay.log_path), {}
    began = time.monotonic()
    relay.process = Process([binary(), "serve", "-c", relay.config_path], relay.stderr_path,
                            cwd=relay.folder)
    client = threading.Thread(target=_first_accepted, args=(relay.port, began, found))
    client.start()
    while len(log.seen) < len(EVENTS) and time.monotonic() - began < PATIENCE:
        assert relay.process.running(), relay.report()
        log.look(time.monotonic() - began)
        time.sleep(0.001)
    client.join()
    log.close()
    found |= {name: seconds for name, (seconds, _) in log.seen.items()}
    found["said"] = log.seen["recovered"][1].partition(" recover ")[2]
    return found
