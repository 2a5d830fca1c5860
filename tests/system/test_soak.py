# SPDX-License-Identifier: ISC
"""The same day over and over, with times so short that a day is a second: nothing is left of it.

SLUICE_SOAK_DAYS=60 takes 20 s with the address sanitizer, 1,000 more than nine minutes: a day is as long as the log is.
"""

import contextlib
import http.client
import os

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.proc import descriptors, resident_kib, sanitized
from lab.smtp import Closed

DAYS = int(os.environ.get("SLUICE_SOAK_DAYS", "6"))
GROWTH_KIB = 8000  # the allocator's, and what is remembered of hosts


def _threads(relay):
    return len(os.listdir(f"/proc/{relay.process.pid}/task"))


def _broken_off(relay):
    for last in ("EHLO client.test", "MAIL FROM:<a@b.test>", "RCPT TO:<to@dest.test>", "DATA", "Subject: half"):
        with contextlib.suppress(Closed, AssertionError), relay.client() as client:
            client.greet()
            for line in ("MAIL FROM:<a@b.test>", "RCPT TO:<to@dest.test>", "DATA", "Subject: half"):
                client.send(f"{line}\r\n".encode())
                if line == last:
                    break


def _mail(relay, day):
    with relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["to@dest.test", "never@dest.test"])
        client.send_mail("from@sender.test", [f"sometimes{day}@dest.test"])
        client.send_mail("from@sender.test", [f"to@d{day % 50}.test"])
        client.send_mail("from@sender.test", ["to@dest.test"], content="x" * 70 + "\r\n" + ("y" * 70 + "\r\n") * 3000)


def _operator(relay, port):
    for words in (("queue", "list"), ("shape",), ("dest", "list"), ("stats",), ("reload",), ("queue", "flush", "--all")):
        assert relay.command(*words).returncode == 0
    for path in ("/", "/metrics", "/api/queue", "/nowhere"):
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
        connection.request("GET", path)
        connection.getresponse().read()
        connection.close()


def _is_empty(relay):
    return relay.command("queue", "list", "--json").stdout == ""


@pytest.mark.seconds(300 + 5 * DAYS)
def test_nothing_grows(lab):
    port = free_port()
    sink = lab.sink(Rule("rcpt", "550 5.1.1 unknown", pattern="never"),
                    *(Rule("rcpt", "450 4.2.0 later", pattern=f"sometimes{day}@", times=3) for day in range(DAYS)))
    config = Config(settings={"http": f"{LOOPBACK}:{port}"},
                    transports={"smtp": {"connection_idle_timeout": "50ms", "connection_max_age": "300ms"}},
                    queue={"minimal_backoff_time": "50ms", "maximal_backoff_time": "100ms", "queue_run_delay": "50ms"})
    relay = lab.relay(config.route_all_to(sink.port))
    found = []
    for day in range(DAYS):
        _broken_off(relay)
        _mail(relay, day)
        _operator(relay, port)
        wait_until(lambda: _is_empty(relay), 60, "the end of the day")
        found.append((descriptors(relay), _threads(relay), resident_kib(relay)))
    noon = found[len(found) // 2]
    wait_until(lambda: descriptors(relay) <= noon[0], 60, "descriptors to be closed")
    assert found[-1][1] == noon[1], found
    assert sanitized() or found[-1][2] - noon[2] < GROWTH_KIB, found
