# SPDX-License-Identifier: ISC
"""Nodes that die, are cut off, drained and retired: their mail is another's then, and is sent once, but for what is in doubt.

SLUICE_ADOPT_ROUNDS says how often a node is killed under load, 2 times unless told otherwise.
"""

import json
import os
import shutil
import threading
from collections import Counter

import pytest

from lab.config import Config
from lab.cut import Cut
from lab.load import Load, token
from lab.nats import Nats
from lab.net import wait_until
from lab.sink import Rule
from lab.smtp import Client

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(600)]
ROUNDS = int(os.environ.get("SLUICE_ADOPT_ROUNDS", "2"))
ADOPT_AFTER = "3s"
LATER = {"minimal_backoff_time": "2s", "maximal_backoff_time": "2s", "queue_run_delay": "1s"}


class Nodes:
    """Relays of one cluster."""

    def __init__(self, lab, nats, sink, names, addresses=None):
        """Start one for each name; each has settings of its own for where NATS is, if so told."""
        self.lab, self.nats = lab, nats
        self.of = {}
        for name in names:
            where = (addresses or {}).get(name, nats.addresses)
            self.of[name] = lab.relay(config_of(where, sink, name))
        for relay in self.of.values():
            relay.wait_event("node", 30, state="up")

    def __getitem__(self, name):
        return self.of[name]

    def others(self, name):
        """All relays but that one."""
        return [relay for other, relay in self.of.items() if other != name]

    def events(self, state, node):
        """What all nodes have logged of one."""
        return [one for relay in self.of.values() for one in relay.events("node", state=state, node=node)]

    def wait_adopted(self, node, count=1, timeout=60):
        """Wait until a node's queue has another owner."""
        wait_until(lambda: len(self.events("adopted", node)) >= count, timeout, f"{node} to be adopted")

    def doubtful(self):
        """The ids of what was being sent by a node that was adopted, or was killed."""
        return {one["id"] for relay in self.of.values() for one in relay.events("recovered")}


def config_of(addresses, sink, name):
    """Return the configuration of a node."""
    lines = {
        "name": name, "nats": addresses, "replicate": "sync", "replicate_timeout": "1s", "adopt_after": ADOPT_AFTER,
    }
    text = "".join(f"    {key} = {json.dumps(value)}\n" for key, value in lines.items())
    return Config(queue=LATER, extra=f"cluster {{\n{text}}}\n").route_all_to(sink.port)


@pytest.fixture(name="nats", scope="module")
def fixture_nats(module_lab):
    """Three servers, for all tests."""
    nats = Nats(module_lab.folder("nats"))
    module_lab.callback(nats.close)
    return nats.start()


def tokens(sink):
    """How often each message has come."""
    return Counter(token(one.content) for one in sink.messages)


def lose_disk(relay):
    """What becomes of a machine that burns."""
    relay.kill()
    shutil.rmtree(relay.spool)


def once_but_in_doubt(load, nodes, sink):
    """Each message that was answered 250 has come, and none twice that was not in doubt."""
    wait_until(lambda: load.acknowledged.keys() <= tokens(sink).keys(), 60, "all that was answered 250 to arrive")
    twice = {one for one, times in tokens(sink).items() if times > 1}
    doubtful = nodes.doubtful()
    assert {load.acknowledged[one] for one in twice if one in load.acknowledged} <= doubtful


def test_a_node_that_dies_under_load_is_adopted_by_one_other(lab, nats):
    sink = lab.sink()
    names = ["a1", "a2", "a3"]
    nodes = Nodes(lab, nats, sink, names)
    for number in range(ROUNDS):
        name = names[number % 3]
        load = Load(nodes[name].port, 10**6, sessions=8, domains=(f"d{number}.test",),
                    size=lambda number: 200000 if number % 40 == 9 else 500)
        load.wait_acknowledged(150)
        lose_disk(nodes[name])
        from lab.relay import Relay
        import time as T
        t0=T.time()
        rebuilt = Relay(lab.folder("rebuilt")); nats.rebuild(name, rebuilt.spool)
        open(f"{rebuilt.spool}/format", "w").write("sluice spool 2\n")
        print("HIS", T.time()-t0, rebuilt.command("queue", "list").stdout)
        load.close()
        seen = len(nodes.events("adopting", name))
        nodes.wait_adopted(name, sum(1 for one in range(number + 1) if names[one % 3] == name))
        assert len(nodes.events("adopting", name)) == seen + 1 or seen == 1
        wanted = {f"to{one[1:]}@d{number}.test" for one in load.acknowledged}
        came = lambda: Counter(rcpt for one in sink.messages for rcpt in one.recipients)
        try:
            wait_until(lambda: wanted <= came().keys(), 20, "all that was answered 250 to arrive")
        except AssertionError:
            lost = wanted - came().keys()
            ids = {one: load.acknowledged["t" + one[2:one.index("@")]] for one in lost}
            print("LOST", ids, nats.state(name))
            import subprocess
            subprocess.run(["cp", "-a", nodes["a1"].folder, "/var/tmp/adopt-lost"])
            for one in ids.values():
                for relay in nodes.of.values():
                    for line in relay.log_text().splitlines():
                        if one in line: print(line)
            raise
        twice = {rcpt for rcpt in wanted if came()[rcpt] > 1}
        ids = {f"to{one[1:]}@d{number}.test": ident for one, ident in load.acknowledged.items()}
        assert {ids[rcpt] for rcpt in twice} <= nodes.doubtful()
        nodes[name].start()
        nodes[name].wait_event("node", 30, count=2 + number // 3, state="up")
    assert nodes["a2"].send().code == 250
