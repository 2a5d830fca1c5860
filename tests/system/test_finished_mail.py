# SPDX-License-Identifier: ISC
"""Mail that was put off and then delivered stays gone for whoever reads the log, and however much of it."""

import json
import pathlib
import shutil

import pytest

from lab.check import check, repair
from lab.config import Config
from lab.net import wait_until
from lab.sink import Rule

PUT_OFF, PASSING = 5, 100
CONTENT = b"Subject: passes\r\n\r\n" + b"0123456789abcdef\r\n" * 300
STAYS = b"Subject: stays\r\n\r\n" + b"0123456789abcdef\r\n" * 9000  # more than half of a segment: nothing moves out of it


def _listed(relay):
    lines = relay.command("queue", "list", "--json").stdout.splitlines()
    return [json.loads(line)["id"] for line in lines]


def _config(port):
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    config.settings["segment_size"] = "256k"
    return config.route_all_to(port)


def _pass(relay, sent):
    """Have mail pass until the log has moved on; so many were delivered by then."""
    for number in range(PASSING):
        relay.send(recipients=[f"passes{number}@dest.test"], content=CONTENT)
    relay.wait_event("sent", count=sent + PASSING)


@pytest.fixture(name="worn", scope="module")
def _worn(module_lab):
    """The folder of a queue with one message, whose log no longer says of others why they are done; it was killed."""
    sink = module_lab.sink(Rule("rcpt", "451 4.3.0 later", pattern="stays"),
                           Rule("rcpt", "451 4.3.0 later", pattern="later"))
    relay = module_lab.relay(_config(sink.port))
    relay.send(recipients=["stays@dest.test"], content=STAYS)
    for number in range(PUT_OFF):
        relay.send(recipients=[f"later{number}@dest.test"])
    relay.wait_event("deferred", count=PUT_OFF + 1)
    _pass(relay, 0)
    sink.behaviour.rules.pop()
    relay.command("queue", "flush", "--all")
    relay.wait_event("sent", count=PASSING + PUT_OFF)
    _pass(relay, PASSING + PUT_OFF)
    log = pathlib.Path(relay.spool, "log")
    wait_until(lambda: len(list(log.glob("*.seg"))) <= 4 and "skip" in (log / "checkpoint").read_text("ascii"), 60,
               "segments that have gone")
    wait_until(lambda: len(_listed(relay)) == 1, 60, "the last to be recorded as done")
    relay.kill()
    return relay.spool


@pytest.fixture(name="relay")
def _relay(lab, worn):
    """A relay that does not run, with a copy of that queue, and a sink that takes all."""
    relay = lab.relay(_config(lab.sink().port), start=False)
    shutil.copytree(worn, relay.spool, ignore=shutil.ignore_patterns("control"))
    return relay


def _damage(path):
    path.write_bytes(path.read_bytes().replace(b"skip", b"sKip"))


@pytest.mark.parametrize("spoil", [None, pathlib.Path.unlink, _damage], ids=["whole", "without a checkpoint", "damaged"])
def test_nothing_that_is_done_comes_back(relay, spoil):
    log = pathlib.Path(relay.spool, "log")
    if spoil:
        spoil(log / "checkpoint")
    listed = _listed(relay)
    assert len(listed) == 1
    assert check(relay).messages == 1
    (log / "foreign").touch()  # a reason to repair
    assert repair(relay).messages == 1
    assert _listed(relay) == listed
    relay.start()
    relay.wait_event("recover", messages="1")
    relay.command("queue", "flush", "--all")
    wait_until(lambda: not _listed(relay), 60, "an empty queue")
    assert relay.stop() == 0
    assert [event["to"] for event in relay.events("sent")] == ["stays@dest.test"]
