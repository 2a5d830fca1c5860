# SPDX-License-Identifier: ISC
"""Mail of a node whose clock is hours from that of who adopts it: neither too old there, nor due in hours."""

import pytest
from test_adopt import config_of
from test_replica import wait_copied

from lab.nats import Nats
from lab.net import wait_until
from lab.orders import with_orders
from lab.sink import Rule

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(600)]


@pytest.mark.parametrize(("dead", "alive"), [(2, 0), (0, 2)])
def test_ages_of_adopted_mail_are_of_the_clock_that_is_there(lab, monkeypatch, dead, alive):
    monkeypatch.setenv("SLUICE_BIN", with_orders("jumping"))
    nats = Nats(lab.folder("nats"), servers=1)
    lab.callback(nats.close)
    nats.start()
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relays = []
    for name, hours in (("a", dead), ("b", alive)):
        config = config_of(nats.addresses, sink, name, nats_replicas=1, adopt_after="6s")
        config.queue = {"minimal_backoff_time": "3s", "maximal_backoff_time": "3s", "queue_run_delay": "1s", "maximal_queue_lifetime": "1h"}
        relay = lab.relay(config, start=False)
        relay.environment["SLUICE_JUMP"] = str(hours * 3600)
        relay.start().wait_event("node", 60, state="up")
        relays.append(relay)
    first, second = relays
    first.send()
    ident = first.wait_event("deferred")["id"]
    wait_copied(first)
    rows = "$JS.API.STREAM.INFO.KV_sluice-nodes"
    seen = nats.ask(rows)["state"]["last_seq"]
    wait_until(lambda: nats.ask(rows)["state"]["last_seq"] > seen + 10, 60, "each to see some rows of the other")
    first.kill()
    second.wait_event("adopted", 60, id=ident)
    second.wait_event("deferred", 60, count=2, id=ident)  # at its times
    assert not second.events("bounced")
