# SPDX-License-Identifier: ISC
"""Signals while mail is coming in and going out: nothing that was answered 250 is lost, and nothing is returned."""

import os
import signal
import threading
import time

from lab.config import Config
from lab.load import Load, token
from lab.net import wait_until

MESSAGES = 300
SHORT = "3s"


def _setting_out(lab, timeout="5m"):
    sink = lab.sink(latency=0.002)
    config = Config(queue={"minimal_backoff_time": "100ms", "maximal_backoff_time": "200ms"})
    config.listeners["smtp"] = {name: timeout for name in ("timeout", "command_timeout", "message_timeout")}
    config.transports["smtp"] = {f"{name}_timeout": timeout for name in (
        "connect", "greeting", "helo", "mail", "rcpt", "data_init", "data_block", "data_done", "rset")}
    return lab.relay(config.route_all_to(sink.port)), sink


def _all_arrive(relay, sink, load):
    """What was answered 250 comes, and nothing comes twice but what the log says was in doubt."""
    acknowledged = load.finish()
    wanted = set(acknowledged)

    def tokens():
        return [token(message.content) for message in list(sink.messages)]

    deadline = time.monotonic() + 60
    while not wanted <= set(tokens()):
        assert time.monotonic() < deadline, sorted(wanted - set(tokens()))[:5]
        time.sleep(0.02)
    came = tokens()
    doubts = len(relay.events("in_doubt"))
    assert len(came) - len(set(came)) <= doubts
    assert not relay.events("bounced") and not relay.events("quarantined")


def test_hangups_under_load_disturb_no_message(lab):
    relay, sink = _setting_out(lab)
    load = Load(relay.port, MESSAGES)
    for part in range(1, 7):
        load.wait_acknowledged(part * MESSAGES // 8)
        relay.signal(signal.SIGHUP)
    _all_arrive(relay, sink, load)
    assert not load.refused


def test_a_term_under_load_loses_nothing_that_was_taken(lab):
    relay, sink = _setting_out(lab)
    load = Load(relay.port, MESSAGES)
    for part in range(1, 4):
        load.wait_acknowledged(part * MESSAGES // 5)
        assert relay.stop() == 0
        relay.start()
    _all_arrive(relay, sink, load)


def test_a_stop_for_longer_than_every_timeout_returns_nothing(lab):
    relay, sink = _setting_out(lab, SHORT)
    load = Load(relay.port, MESSAGES)
    load.wait_acknowledged(MESSAGES // 4)
    relay.signal(signal.SIGSTOP)
    time.sleep(4)
    relay.signal(signal.SIGCONT)
    _all_arrive(relay, sink, load)


def test_a_hangup_while_the_settings_are_read_waits_for_the_start(lab):
    """A pipe in the place of the file says when it is read, and how long."""
    relay, _ = _setting_out(lab)
    assert relay.stop() == 0
    aside = relay.config_path + ".aside"
    os.rename(relay.config_path, aside)
    os.mkfifo(relay.config_path)

    def hang_up_and_write():
        with open(relay.config_path, "w", encoding="utf-8") as pipe, open(aside, encoding="utf-8") as settings:
            wait_until(relay.running, 60, "its process to be known")
            relay.signal(signal.SIGHUP)
            os.rename(aside, relay.config_path)
            pipe.write(settings.read())

    writer = threading.Thread(target=hang_up_and_write)
    writer.start()
    relay.start()
    writer.join()
    relay.wait_event("reload", result="done")
