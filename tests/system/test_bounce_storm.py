# SPDX-License-Identifier: ISC
"""A dead domain with much mail for it, all of which comes to its end at once."""

from lab.config import Config
from lab.load import Load, token
from lab.net import free_port, wait_until
from lab.proc import resident_kib, sanitized

MESSAGES = 300 if sanitized() else 3000
SIZE = 10000  # much more than what is kept of each in memory


def test_a_report_for_each_and_memory_for_few(lab):
    sink = lab.sink()
    config = Config(settings={"content_memory_limit": "1m"},
                    queue={"maximal_queue_lifetime": "1s", "minimal_backoff_time": "200ms",
                           "maximal_backoff_time": "1s", "in_flow_delay": "0s",
                           "bounce_address_rate": ""})
    config.routes["dead.test"] = {"relay": [f"[127.0.0.1]:{free_port()}"]}
    relay = lab.relay(config.route_all_to(sink.port))
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
