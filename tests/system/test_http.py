# SPDX-License-Identifier: ISC
"""What the relay tells over HTTP."""

import http.client
import json

import pytest

from lab.config import Config
from lab.net import LOOPBACK, free_port


@pytest.fixture(name="served")
def _served(lab):
    port = free_port()
    sink = lab.sink()
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}"}).route_all_to(sink.port))
    relay.send()
    relay.wait_event("done")
    return port


def _ask(port, path, method="GET"):
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    connection.request(method, path)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


def test_metrics_count_what_was_sent(served):
    status, text = _ask(served, "/metrics")
    assert status == 200
    assert "# TYPE sluice_messages_received_total counter" in text
    assert 'sluice_deliveries_total{result="sent"} 1\n' in text
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


def test_stats_are_one_object(served):
    status, text = _ask(served, "/api/stats")
    assert status == 200 and json.loads(text)["messages_received_total"] == 1


def test_health_is_good_while_mail_is_taken(served):
    assert _ask(served, "/healthz") == (200, "ok\n")


def test_nothing_else_is_there_and_nothing_can_be_changed(served):
    assert _ask(served, "/etc/passwd")[0] == 404
    assert _ask(served, "/metrics", "POST")[0] == 405
