# SPDX-License-Identifier: ISC
"""Several addresses of one host, and hosts of lesser preference: no message waits for a dead one while another lives.

Who must not wait would wait for a minute: no busy machine takes a message at once for one that has waited.
"""

import contextlib
import json
import threading
import time

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import blackhole, free_port, wait_until

BOTH = "@ MX 10 mx\nmx AAAA ::1\nmx A 127.0.0.2"
WITH_BACKUP = "@ MX 10 best\n@ MX 20 backup\nbest A 127.0.0.2\nbackup A 127.0.0.3"
DELAY = 3.0  # of those who wait
LONG = 60.0  # of those who must not; they have half of it


def _relay(lab, port, zone, queue=None, **settings):
    """Start a relay that sends to the hosts of the zone, and closes a connection that idles."""
    transport = {"port": port, "connection_idle_timeout": "50ms"} | settings
    config = Config(transports={"smtp": transport}, queue=queue or {})
    config.resolve_with(lab.nsd({"dest.test": zone}))
    config.dns |= {"allow_loopback": True}
    return lab.relay(config)


def _hosts(relay):
    """Return the hosts of the only site by address, also when the idle site is forgotten."""
    rows = map(json.loads, relay.command("dest", "list", "--json").stdout.splitlines())
    return {host["address"]: host for row in rows for host in row.get("hosts", [row])}


def _set(relay, **settings):
    """Have other settings from now on."""
    relay.config.transports["smtp"] |= settings
    relay.write_config()
    assert relay.command("reload").returncode == 0


def _send(relay, idle=True):
    """Send one message, wait until it is delivered, and return how long it waited for a connection.

    Unless idle is false, wait for that connection to be closed too.
    """
    before = len(relay.events("sent"))
    relay.send()
    event = relay.wait_event("sent", count=before + 1, timeout=60)
    if idle:
        wait_until(lambda: not any(host["ready"] for host in _hosts(relay).values()), what="an idle relay")
    assert not relay.events("deferred")
    _, queued, connecting, _ = map(float, event["delays"].split("/"))
    return queued + connecting


def test_ipv6_is_tried_first_when_both_families_answer(lab):
    port = free_port()
    six, four = (lab.sink(address=address, port=port) for address in ("::1", "127.0.0.2"))
    relay = _relay(lab, port, BOTH, connection_attempt_delay=f"{LONG:g}s")
    for number in range(6):
        _send(relay)
        assert len(six.messages) == number + 1 and not four.messages
        assert relay.command("dest", "reset", "mx.dest.test").returncode == 0  # both are unused again


@pytest.mark.parametrize("setting", ["250ms", "2s"])
def test_a_black_holed_ipv6_costs_one_message_the_attempt_delay(lab, setting):
    port = free_port()
    sink = lab.sink(address="127.0.0.2", port=port)
    settings = {"connect_timeout": "60s"} | ({} if setting == "250ms" else {"connection_attempt_delay": setting})
    with blackhole("::1", port):
        relay = _relay(lab, port, BOTH, **settings)
        waited = _send(relay)
    assert len(sink.messages) == 1
    delay = 2.0 if setting == "2s" else 0.25
    assert delay - 0.05 < waited < 30  # the time-out is a minute


def test_the_next_messages_go_straight_to_the_family_that_answers(lab):
    port = free_port()
    sink = lab.sink(address="127.0.0.2", port=port)
    with blackhole("::1", port):
        relay = _relay(lab, port, BOTH, connection_attempt_delay=f"{DELAY:g}s", connect_timeout="5m")
        assert _send(relay) >= DELAY - 0.05
        _set(relay, connection_attempt_delay=f"{LONG:g}s")
        for number in range(3):
            assert _send(relay) < LONG / 2
            assert len(sink.sessions) == number + 2  # each on a connection of its own
        hosts = _hosts(relay)
    assert hosts["::1"]["state"] == "slow" and hosts["::1"]["connections"] == 1


def test_a_refusing_ipv6_costs_nothing(lab):
    port = free_port()
    sink = lab.sink(address="127.0.0.2", port=port)
    relay = _relay(lab, port, BOTH, connection_attempt_delay=f"{LONG:g}s")
    for number in range(3):
        assert _send(relay) < LONG / 2
        assert len(sink.messages) == number + 1
    assert _hosts(relay)["::1"]["state"] in ("out", "retry") and _hosts(relay)["::1"]["failures"] >= 1


def test_there_is_at_most_one_extra_attempt(lab):
    port = free_port()
    with contextlib.ExitStack() as stack:
        for address in ("::1", "127.0.0.2", "127.0.0.4"):
            stack.enter_context(blackhole(address, port))
        relay = _relay(lab, port, BOTH + "\nmx A 127.0.0.4", connection_attempt_delay="50ms", connect_timeout="5m")
        relay.send()
        slow = lambda: sum(host["state"] == "slow" for host in _hosts(relay).values())
        wait_until(lambda: relay.events("queued") and slow() == 2, what="two slow attempts")
        end = time.monotonic() + 1  # twenty times the delay
        while time.monotonic() < end:
            assert sum(host["connections"] for host in _hosts(relay).values()) == 2


@pytest.mark.parametrize("source", ["127.0.0.7", "::1", "127.0.0.7, ::1", "::1,127.0.0.7"])
def test_a_source_address_is_for_its_family_only(lab, source):
    port = free_port()
    six = lab.sink(address="::1", port=port)
    relay = _relay(lab, port, BOTH, source_address=source)
    _send(relay)
    assert six.sessions[0].peer == "::1"
    six.close()
    four = lab.sink(address="127.0.0.2", port=port)
    _send(relay)
    assert four.sessions[0].peer == ("127.0.0.7" if "127.0.0.7" in source else "127.0.0.1")


def test_a_black_holed_host_costs_one_message_the_backup_delay(lab):
    port = free_port()
    backup = lab.sink(address="127.0.0.3", port=port)
    with blackhole("127.0.0.2", port):
        relay = _relay(lab, port, WITH_BACKUP, backup_attempt_delay=f"{DELAY:g}s", connect_timeout="5m")
        assert DELAY - 0.05 <= _send(relay) < 60
        _set(relay, backup_attempt_delay=f"{LONG:g}s")
        for number in range(3):
            assert _send(relay) < LONG / 2
            assert len(backup.sessions) == number + 2
        assert _hosts(relay)["127.0.0.2"]["connections"] == 1


@pytest.mark.plain_only
def test_a_dead_host_of_two_costs_nothing_after_its_first_failure_and_is_used_when_it_is_back(lab):
    port = free_port()
    queue = {"minimal_backoff_time": "500ms"}
    backup = lab.sink(address="127.0.0.3", port=port)
    settings = {"connect_timeout": "6s", "backup_attempt_delay": f"{DELAY:g}s"}
    with blackhole("127.0.0.2", port):
        relay = _relay(lab, port, WITH_BACKUP, queue, **settings)
        assert _send(relay) >= DELAY - 0.05
        _set(relay, backup_attempt_delay=f"{LONG:g}s")
        best = lambda: _hosts(relay)["127.0.0.2"]
        wait_until(lambda: best()["failures"] == 1, 60, "the first failure")
        wait_until(lambda: best()["state"] != "out", 60, "its time to be retried")
        for failures in range(1, 3):
            assert best()["connections"] == 0
            assert _send(relay) < LONG / 2
            wait_until(lambda: best()["failures"] == failures + 1, 60, "another failure")  # it is tried beside the backup
            wait_until(lambda: best()["state"] != "out", 60, "its time to be retried")
    assert len(backup.messages) == 3
    good = lab.sink(address="127.0.0.2", port=port)
    end = time.monotonic() + 60
    while not good.messages:
        assert time.monotonic() < end and _send(relay) < LONG / 2
    seen = len(backup.messages)
    assert _send(relay) < LONG / 2
    assert len(backup.messages) == seen and best()["failures"] == 0


def test_the_order_is_kept_strictly_where_backup_attempt_delay_is_0(lab):
    port = free_port()
    lab.sink(address="127.0.0.3", port=port)
    settings = {"connect_timeout": "2s", "backup_attempt_delay": "0s"}
    with blackhole("127.0.0.2", port):
        relay = _relay(lab, port, WITH_BACKUP, **settings)
        assert _send(relay) >= 1.95


def test_mail_that_comes_before_a_host_has_answered_quit_goes_over_another_connection(lab):
    """Of two connections one has carried all there was, and the other nothing; then both have idled."""
    first, greeted, answered = threading.Event(), threading.Event(), threading.Event()
    for event in (first, greeted, answered):
        lab.callback(event.set)
    greets, leaves = Rule("connect", gate=greeted, after=1, times=1), Rule("quit", gate=answered)
    sink = lab.sink(Rule("end", gate=first, times=1), greets, leaves)
    transport = {"connection_idle_timeout": "200ms", "quit_timeout": "1h", "pipeline_depth": 1}
    relay = lab.relay(Config(transports={"smtp": transport}).route_all_to(sink.port))
    relay.send()
    relay.wait_event("queued")
    relay.send()
    wait_until(lambda: greets.seen > 1, what="a second connection")
    first.set()
    relay.wait_event("sent", count=2)
    greeted.set()
    wait_until(lambda: leaves.seen >= 2, what="both to be closed")
    relay.send()
    relay.wait_event("sent", count=3)
    assert not relay.events("deferred")
