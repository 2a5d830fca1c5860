# SPDX-License-Identifier: ISC
"""Destinations as they are, and the relay as it comes: hosts that hiccup, are slow, serve few, say nothing.

What these moods cost beside a real Postfix is measured by `make bench`.
"""

import threading
import time

from lab.config import Config
from lab.moody import Moody
from lab.net import free_port, wait_until


def _send(relay, count, rate=0.0):
    """Hand over messages, at most so many a second, each with the time at which that was."""
    began = time.monotonic()
    for number in range(count):
        if rate:
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
        content = f"Subject: {number}\r\nX-Sent: {time.monotonic()}\r\n\r\nbody\r\n".encode()
        relay.send(recipients=[f"to{number}@dest.test"], content=content)


def _moody(lab, **mood):
    port = free_port()
    server = Moody(port, **mood)
    lab.callback(server.close)
    return server, lab.relay(Config().route_all_to(port), patient=True)


def _all_came(server, relay, count):
    """None had to wait for its next round, which would be in five minutes."""
    wait_until(lambda: len(server.delays) == count, what=f"{count} messages")
    assert not relay.events("deferred")


def test_a_host_that_turns_all_away_at_first(lab):
    server, relay = _moody(lab, turned_away=lambda age, serving: age < 0.5)
    server.begin()
    _send(relay, 30, rate=20)
    _all_came(server, relay, 30)


def test_a_host_that_refuses_at_first(lab):
    server, relay = _moody(lab, listens=lambda age: age >= 0.5)
    server.begin()
    _send(relay, 30, rate=20)
    _all_came(server, relay, 30)


def test_a_host_that_serves_one_connection(lab):
    server, relay = _moody(lab, turned_away=lambda age, serving: serving >= 1, reply_delay=0.02)
    server.begin()
    _send(relay, 20)
    _all_came(server, relay, 20)


def test_a_host_that_works_long_on_each_gets_them_side_by_side(lab):
    server, relay = _moody(lab, work=3.0)
    server.begin()
    _send(relay, 12)
    _all_came(server, relay, 12)
    assert server.most_busy >= 3


def test_a_host_that_blinks(lab):
    out = threading.Event()
    server, relay = _moody(lab, listens=lambda age: not out.is_set())
    server.begin()
    _send(relay, 4)
    _all_came(server, relay, 4)
    out.set()
    wait_until(lambda: not server.listening, what="its going out")
    _send(relay, 12, rate=8)
    relay.wait_event("host", state="out")
    out.clear()
    _send(relay, 4)
    _all_came(server, relay, 20)


def test_mail_that_waited_in_the_queue_goes_when_the_host_is_back(lab):
    port = free_port()
    config = Config(transports={"smtp": {"site_patience": "500ms"}}).route_all_to(port)
    relay = lab.relay(config, patient=True)
    _send(relay, 5)
    relay.wait_event("deferred", count=5, tries="0")
    server = Moody(port).begin()  # five minutes before any of them is due
    lab.callback(server.close)
    wait_until(lambda: len(server.delays) == 5, 60, "what was parked")
    assert len(relay.events("deferred")) == 5


def test_silent_hosts_hold_up_nobody(lab):
    config = Config(transports={"smtp": {"connection_limit": 40}})
    silent = [Moody(free_port(), silent=True).begin() for _ in range(25)]
    good = Moody(free_port())
    for one in [*silent, good]:
        lab.callback(one.close)
    for number, one in enumerate(silent):
        config.routes[f"silent{number}.test"] = {"relay": [f"[127.0.0.1]:{one.port}"]}
    config.routes["good.test"] = {"relay": [f"[127.0.0.1]:{good.port}"]}
    relay = lab.relay(config, patient=True)
    threads = [threading.Thread(target=relay.send, kwargs={"recipients": [f"{name}@silent{number}.test"]})
               for number in range(25) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: sum(one.connections for one in silent) >= 40, what="all connections in use")
    good.begin()
    relay.send(recipients=["to@good.test"],
               content=f"Subject: x\r\nX-Sent: {time.monotonic()}\r\n\r\nbody\r\n".encode())
    wait_until(lambda: good.delays, 60, "the healthy host's mail")  # the silent ones have five minutes for their greetings


def test_silent_hosts_do_not_keep_another_from_being_tried_again(lab):
    config = Config(transports={"smtp": {"connection_limit": 8}})
    silent = [Moody(free_port(), silent=True).begin() for _ in range(8)]
    brief = Moody(free_port(), turned_away=lambda age, serving: age < 0.5)
    for one in [*silent, brief]:
        lab.callback(one.close)
    for number, one in enumerate(silent):
        config.routes[f"silent{number}.test"] = {"relay": [f"[127.0.0.1]:{one.port}"]}
    config.routes["brief.test"] = {"relay": [f"[127.0.0.1]:{brief.port}"]}
    relay = lab.relay(config, patient=True)
    for number in range(8):
        relay.send(recipients=[f"to@silent{number}.test"])
    wait_until(lambda: sum(one.connections for one in silent) >= 4, what="half of the connections in use")
    brief.begin()
    relay.send(recipients=["to@brief.test"],
               content=f"Subject: x\r\nX-Sent: {time.monotonic()}\r\n\r\nbody\r\n".encode())
    wait_until(lambda: brief.delays, 60, "the mail of who was away for half a second")
