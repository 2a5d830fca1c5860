# SPDX-License-Identifier: ISC
"""Every file of tests/dialogue, played against the relay."""

import os
import pathlib

import pytest

from lab import dialogue
from lab.relay import REPOSITORY

FILES = pathlib.Path(os.path.join(REPOSITORY, "tests", "dialogue"))
DIALOGUES = sorted(
    (dialogue.parse(path) for path in FILES.rglob("*.dlg")),
    key=lambda one: (one.key(), one.path),
)


def _configuration(settings, certificates, next_hop):
    """Make the configuration that a dialogue wants, with a next hop, and keys where it has TLS."""
    config = dialogue.configuration(settings)
    config.routes.setdefault("*", {"relay": [f"[127.0.0.1]:{next_hop}"]})
    listener = config.listeners["smtp"]
    if "tls" in listener and "certificate" not in listener:
        listener["certificate"], listener["key"] = certificates.host("relay.test")
    return config


@pytest.fixture(scope="module")
def relays(module_lab):
    """Return a function that gives the relay for a dialogue, the same for equal settings."""
    sink = module_lab.sink()
    running = {}

    def relay_for(one):
        relay = running.get(one.key())
        if relay is None or not relay.running():
            config = _configuration(one.settings, module_lab.certificates, sink.port)
            relay = running[one.key()] = module_lab.relay(config)
        return relay

    return relay_for


def _name(one):
    return str(pathlib.Path(one.path).relative_to(FILES).with_suffix(""))


@pytest.mark.parametrize("one", DIALOGUES, ids=_name)
def test_dialogue(relays, one):
    """The relay answers as the file says, and survives it."""
    relay = relays(one)
    dialogue.Player(relay).play(one)
    assert relay.running(), "the relay has ended"
