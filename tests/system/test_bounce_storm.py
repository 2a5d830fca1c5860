# SPDX-License-Identifier: ISC
"""A dead domain with much mail for it, all of which comes to its end at once."""

import re
from collections import Counter

from lab.config import Config
from lab.load import Load, token
from lab.net import free_port, wait_until
from lab.proc import resident_kib, sanitized

MESSAGES = 300 if sanitized() else 3000
STOPPED_MESSAGES = 500 if sanitized() else 2000
STOPS = 5
SIZE = 10000  # much more than what is kept of each in memory

_MESSAGE_ID = re.compile(rb"^Message-ID: (\S+)", re.MULTILINE)


def _relay_before_a_dead_host(lab, sink, lifetime="1s"):
    config = Config(settings={"content_memory_limit": "1m"},
                    queue={"maximal_queue_lifetime": lifetime, "minimal_backoff_time": "200ms",
                           "maximal_backoff_time": "1s", "in_flow_delay": "0s",
                           "bounce_address_rate": ""})
    config.routes["dead.test"] = {"relay": [f"[127.0.0.1]:{free_port()}"]}
    return lab.relay(config.route_all_to(sink.port))


def test_a_report_for_each_and_memory_for_few(lab):
    sink = lab.sink()
    relay = _relay_before_a_dead_host(lab, sink)
    relay.send(recipients=["first@alive.test"])
    sink.wait_messages(1)
    before = highest = resident_kib(relay)
    load = Load(relay.port, MESSAGES, sessions=20, size=SIZE, domains=("dead.test",))
    load.wait_acknowledged(MESSAGES)

    def all_reported():
        nonlocal highest
        highest = max(highest, resident_kib(relay))
        return len(sink.messages) > MESSAGES

    wait_until(all_reported, 90, "a report for each")
    reports = [message for message in sink.messages if message.sender == ""]
    assert {token(report.content) for report in reports} == set(load.finish())
    assert len(reports) == MESSAGES
    if not sanitized():
        assert highest - before < MESSAGES * SIZE / 1024
    relay.send(recipients=["last@alive.test"])
    relay.wait_event("sent", 60, to="last@alive.test")


def test_a_stop_in_the_middle_repeats_no_report(lab):
    """What it was about ends with it, though nothing but the queue runs by the time that the report is safe."""
    sink = lab.sink()
    relay = _relay_before_a_dead_host(lab, sink, "5s")  # so that all is there before the first report
    load = Load(relay.port, STOPPED_MESSAGES, sessions=60, domains=("dead.test",))
    load.wait_acknowledged(STOPPED_MESSAGES)

    def all_ended():
        done = relay.command("queue", "list", "--json")
        return done.returncode == 0 and not done.stdout

    for _ in range(STOPS):
        reported = len(sink.messages)
        wait_until(lambda: len(sink.messages) > reported or all_ended(), 60, "a report, or that there is none left")
        relay.restart()
    wait_until(all_ended, 90, "an empty queue")
    # One that was being delivered at a stop may come twice, as any mail may.
    reports = {(_MESSAGE_ID.search(message.content)[1], token(message.content)) for message in sink.messages}
    assert Counter(about for _, about in reports) == Counter(set(load.finish()))
