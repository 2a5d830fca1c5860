# SPDX-License-Identifier: ISC
"""Memory that much mail has taken goes back to the system when the mail rests."""

import threading

import pytest

from lab import proc
from lab.config import Config
from lab.load import Load
from lab.net import wait_until
from lab.sink import Rule

MESSAGES, SIZE, WORTH_KIB = 3000, 10_000, 20_000


@pytest.mark.plain_only
def test_what_waiting_mail_took_while_it_was_worked_on_goes_back(lab):
    """3,000 messages wait in memory for the greeting of their next hop, and on the disk alone once that was a refusal."""
    gate = threading.Event()
    sink = lab.sink(Rule("connect", "421 4.3.2 not now", gate=gate, close=True))
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "2h"}, transports={"smtp": {"site_patience": "0s"}})
    config.route_all_to(sink.port)
    relay = lab.relay(config)
    before = proc.resident_kib(relay)
    Load(relay.port, MESSAGES, size=SIZE).finish()
    assert proc.resident_kib(relay) > before + WORTH_KIB  # or there is nothing to give back
    gate.set()
    relay.wait_event("deferred", 60, count=MESSAGES)
    wait_until(lambda: proc.resident_kib(relay) < before + WORTH_KIB / 2, 60, "memory to be given back")
