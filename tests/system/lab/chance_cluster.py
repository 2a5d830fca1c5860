# SPDX-License-Identifier: ISC
"""Nodes of one cluster to which anything is done in any order, with what was promised as in lab.chance.

Beside what happens to one relay, nodes end for good, lose their disks, are drained, adopted and frozen for longer than they may
be silent, and so do the servers of NATS and Redis. What was answered with 250 is in NATS.
"""

import contextlib
import json
import re
import shutil
import signal
import time

from .chance import DOMAINS, FLOWS, Chance
from .nats import Nats
from .net import wait_until
from .redis import Redis
from .smtp import Closed

NAMES = ("n1", "n2", "n3")


class ChanceCluster(Chance):
    """One history of a cluster."""

    def _start_relays(self, lab):
        self._redis = Redis(lab.folder("redis"))
        lab.callback(self._redis.close)
        self._redis.start()
        self._nats = Nats(lab.folder("nats"))
        lab.callback(self._nats.close)
        self._nats.start()
        relays = []
        for name in NAMES[: self.random.choice((2, 3))]:
            config = self._config()
            lines = {"name": name, "nats": self._nats.addresses, "redis": f"127.0.0.1:{self._redis.port}", "replicate": "sync",
                     "replicate_timeout": "2s", "adopt_after": "4s"}
            config.extra += "cluster {\n" + "".join(f"    {key} = {json.dumps(value)}\n" for key, value in lines.items()) + "}\n"
            relays.append(lab.relay(config))
        for relay in relays:
            relay.wait_event("node", 60, state="up")
        return relays

    @property
    def relay(self):
        """One that runs; the first where none does."""
        return self.random.choice([one for one in self.relays if one.running()] or self.relays[:1])

    def _submit(self, rng):
        """Hand nothing in at a machine that may burn with it."""

    def _acts(self):
        of_one = {self._change_way}  # which a node that ended does not hear of
        return (*((act, weight) for act, weight in super()._acts() if act not in of_one),
                (self._end_node, 1), (self._stop_node, 1), (self._burn_node, 1), (self._start_nodes, 3), (self._freeze_long, 1), (self._drain_node, 1), (self._adopt_node, 1),
                (self._end_server, 1), (self._start_servers, 2), (self._freeze_servers, 1), (self._freeze_redis, 1), (self._end_redis, 1))

    def _order(self):
        """One for all nodes, or for one."""
        if self.random.random() < 0.7:
            super()._order()
            return
        kind, one = self.random.choice((("dest", DOMAINS), ("flow", FLOWS)))
        words = (kind, self.random.choice(("suspend", "resume", "reset", "list")), self.random.choice(one), "--cluster")
        self._note(*words)
        self.relay.command(*words)

    @staticmethod
    def _let_go(relay):
        for kind, of in (("dest", DOMAINS), ("flow", FLOWS)):
            for one in of:
                wait_until(lambda words=(kind, "resume", one, "--cluster"): relay.command(*words).returncode == 0, 60, f"{kind} {one} to be resumed")
        Chance._let_go(relay)

    def _reload(self):
        for relay in self.relays:
            relay.write_config()
            self._insist(relay, "reload")

    def _replace(self):
        self._insist(self.relay, "restart")

    @staticmethod
    def _insist(relay, word):
        """Have it done by one that may be about to begin anew, as its queue is another's, or to end, drained."""
        wait_until(lambda: not relay.running() or relay.command(word).returncode == 0, 60, f"{word} to be done")

    def _end(self, relay):
        self.kills.append(time.monotonic())
        relay.kill()

    def _running(self):
        return [relay for relay in self.relays if relay.running()]

    def _one_to_end(self):
        return self.random.choice(self._running()) if len(self._running()) > 1 else None

    def _end_node(self):
        if relay := self._one_to_end():
            self._note(relay.spool)
            self._end(relay)

    def _stop_node(self):
        """Have it off in order, and adopted perhaps."""
        if relay := self._one_to_end():
            self._note(relay.spool)
            relay.stop()

    def _burn_node(self):
        """Where all have lost their folders and none has an epoch, they wait for each other until an operator starts another: so they are not to."""
        if all(relay.running() and self._is_up(relay) for relay in self.relays):
            relay = self.random.choice(self.relays)
            self._note(relay.spool)
            self._end(relay)
            shutil.rmtree(relay.spool)

    def _start_nodes(self):
        self._start_servers()
        for relay in self.relays:
            if not relay.running():
                if relay.process:
                    relay.wait_ended()  # drained
                relay.start()

    def _freeze_long(self):
        relay = self.relay
        self._note(relay.spool)
        relay.signal(signal.SIGSTOP)
        time.sleep(self.random.choice((2.5, 6)))
        relay.signal(signal.SIGCONT)

    def _drain_node(self):
        if relay := self._one_to_end():
            done = relay.command("node", "drain")
            self._note(relay.spool, done.stdout, done.stderr)
            if done.returncode == 0:
                wait_until(lambda: not relay.running(), 60, "the drained node to end")
                relay.wait_ended()

    def _adopt_node(self):
        name = self.random.choice(NAMES)
        self._note(name)
        self.relay.command("node", "adopt", name)

    def _end_server(self):
        """One at a time: NATS answers for what is kept by most of its servers, and they keep some in memory only."""
        server = self.random.choice(self._nats.servers)
        if all(one.process.running() for one in self._nats.servers):
            self._note(server.name)
            server.kill()

    def _freeze_servers(self):
        """Most of them too, where none is to catch up just now: what they have said stays so."""
        servers = self.random.sample(self._nats.servers, self.random.choice((1, 2, 3)))
        if not all(one.process.running() for one in self._nats.servers):
            return
        self._note(*(one.name for one in servers))
        for server in servers:
            server.signal(signal.SIGSTOP)
        time.sleep(self.random.choice((0.5, 3, 6)))
        for server in servers:
            server.signal(signal.SIGCONT)

    def _start_servers(self):
        for server in self._nats.servers:
            if not server.process.running():
                server.start()
        if not self._redis.process:
            self._redis.start()

    def _freeze_redis(self):
        if self._redis.process:
            self._redis.pause()
            time.sleep(self.random.choice((0.5, 3)))
            self._redis.go_on()

    def _end_redis(self):
        if self._redis.process:
            self._redis.kill()

    def settle(self):
        """Have all nodes, and let all be well."""
        self._start_nodes()
        self._calm()
        try:
            wait_until(lambda: all(self._is_up(relay) for relay in self.relays), 90, "all nodes to take mail")
        except AssertionError as late:
            raise AssertionError("\n".join([str(late), f"NATS is ready: {self._nats.ready()}", *map(self._told_by, self.relays), *self.story])) from late
        super().settle()

    def told_of(self, faults):
        """Return also what became of the nodes and of NATS."""
        return [*super().told_of(faults), *map(self._told_by, self.relays), self._nats.report()]

    @staticmethod
    def _told_by(relay):
        lines = [line for line in relay.log_text().splitlines() if re.search(" (node|replica|adopted|recover|condition|ready|restart|error|damage) ", line)]
        return "\n".join([relay.spool, relay.command("node", "list").stdout, *lines])

    @staticmethod
    def _is_up(relay):
        with contextlib.suppress(OSError, AssertionError, Closed):
            with relay.client() as client:
                client.greet()
                client.command("MAIL FROM:<>", 250)
                return True
        return False
