# SPDX-License-Identifier: ISC
"""The set-up for three machines in sluice(8), as it is printed but for addresses and folders."""

import contextlib
import json
import os
import re

import pytest

from lab.config import Config
from lab.nats import Nats, Server
from lab.net import free_port, wait_until
from lab.redis import Redis
from lab.relay import REPOSITORY

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(200)]
MACHINES = (1, 2, 3)


def _printed():
    """Return the configurations of NATS and of the relay."""
    with open(os.path.join(REPOSITORY, "etc/sluice.8"), encoding="utf-8") as stream:
        part = stream.read().split(".Ss A cluster of three machines")[1].split(".Ss Orders")[0]
    return re.findall(r"\.Bd -literal[^\n]*\n(.*?)\.Ed", part, re.S)


def _here(text, ports):
    for (address, port), (other, free) in ports.items():
        text = text.replace(f"{address}:{port}", f"{other}:{free}")
    return text


class _AsPrinted(Nats):
    """Servers of NATS as the manual has them."""

    def __init__(self, folder, text, ports):
        self.servers = []
        for machine in MACHINES:
            server = Server(str(folder), f"nats{machine}", *ports[f"10.0.0.{machine}", 4222])
            own = text.replace("nats1", server.name).replace('listen: "10.0.0.1', f'listen: "10.0.0.{machine}')
            server.write(_here(own, ports).replace("/var/lib/nats", f"{server.folder}/store"))
            self.servers.append(server)


def _in_touch(relay):
    return len(relay.events("replica", state="away")) == len(relay.events("replica", state="back"))


def test_three_machines_as_the_manual_has_them(lab):
    nats_text, relay_text = _printed()
    sink = lab.sink()
    ports = {(f"10.0.0.{machine}", port): (f"127.0.0.1{machine}", free_port()) for machine in MACHINES for port in (4222, 6222)}
    with contextlib.ExitStack() as stack:
        redis = Redis(lab.folder("redis"))
        stack.callback(redis.close)
        redis.start()
        ports["10.0.0.1", 6379] = ("127.0.0.1", redis.port)
        nats = _AsPrinted(lab.folder("nats"), nats_text, ports)
        stack.callback(nats.close)
        nats.start()
        relays = []
        for machine in MACHINES:
            config = Config().route_all_to(sink.port)
            text = _here(relay_text.replace("out1", f"out{machine}").replace("relay1", f"relay{machine}"), ports)
            config.settings["hostname"] = re.search(r'^hostname = "(.*)"$', text, re.M)[1]
            config.extra = re.sub(r"^hostname.*\n", "", text, flags=re.M)  # the lab writes it in its own place
            relays.append(lab.relay(config))
        for relay in relays:
            relay.wait_event("replica", 60, state="complete")
            wait_until(lambda one=relay: _in_touch(one), 60, "the copy to be kept")
        for relay in relays:
            relay.send()
        sink.wait_messages(len(relays))
        names = {f"relay{machine}" for machine in MACHINES}

        def known():
            return {json.loads(line)["node"] for line in relays[2].command("node", "list", "--json").stdout.splitlines()}

        wait_until(lambda: known() == names, 60, "all to be named")
        for relay in relays:
            relay.stop()
