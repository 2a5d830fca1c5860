# SPDX-License-Identifier: ISC
"""A queue of an earlier format is taken over as it is; one of a later format is refused."""

import collections
import os
import pathlib
import tarfile

import pytest

from lab.check import check
from lab.config import Config
from lab.net import wait_until
from lab.sink import Rule

FORMAT_1 = pathlib.Path(__file__).parent / "data" / "spool-format-1.tar.xz"
LEFT_BY_A_CRASH = {"torn", "orphan"}  # the next start removes them
WAITING = {f"later{number}@y.test": f"a{number}@x.test" for number in (1, 2, 3, 6)}


def _make(lab, *rules):
    """Make a relay that does not run yet, on the queue of format 1, and a sink for its mail."""
    sink = lab.sink(*rules)
    config = Config(queue={"maximal_queue_lifetime": "36500d"}).route_all_to(sink.port)  # its mail is of one day in 2026
    relay = lab.relay(config, start=False)
    with tarfile.open(FORMAT_1) as archive:
        archive.extractall(relay.folder)
    for where, folders, files in os.walk(relay.spool):
        for name in folders + files:
            os.chown(os.path.join(where, name), os.getuid(), os.getgid())
    return relay, sink


def _format(relay):
    return pathlib.Path(relay.spool, "format").read_text(encoding="ascii")


def test_a_queue_of_format_1_can_be_checked_as_it_is(lab):
    relay, _ = _make(lab)
    checked = check(relay)
    assert checked.whole and checked.summary["format"] == 1
    assert checked.summary["messages"] == {"incoming": 0, "active": 0, "deferred": 5, "hold": 0}
    assert checked.summary["recipients"] == 5
    assert _format(relay) == "sluice spool 1\n"


def test_a_queue_of_format_1_is_converted_and_each_message_delivered_once(lab):
    relay, sink = _make(lab)
    large = next(pathlib.Path(relay.spool, "large").iterdir()).read_bytes()
    relay.start()
    relay.wait_event("converted", **{"from": "1", "to": "2"})
    assert relay.command("queue", "flush", "--all").returncode == 0
    wait_until(lambda: not relay.command("queue", "list", "--json").stdout, 60, "the queue to be empty")
    assert relay.stop() == 0
    arrived = {one.recipients[0]: one for one in sink.messages}
    counts = collections.Counter(name for one in sink.messages for name in one.recipients)
    assert counts == collections.Counter([*WAITING, "later4@y.test"])
    assert not relay.events("damage") and not relay.events("quarantined")
    for recipient, sender in WAITING.items():
        one = arrived[recipient]
        assert one.sender == sender
        assert f"\r\nFrom: {sender}\r\n".encode() in one.content
        assert f"\r\nTo: {recipient}\r\n".encode() in one.content
    assert b"\r\nSubject: half done\r\n" in arrived["later4@y.test"].content
    assert arrived["later6@y.test"].content == large
    assert _format(relay) == "sluice spool 2\n"
    checked = check(relay)
    assert checked.whole and checked.summary["format"] == 2 and checked.messages == 0


def test_segments_of_both_formats_are_read_after_a_kill(lab):
    relay, _ = _make(lab, Rule("rcpt", "451 4.3.0 later", pattern="later[123]"))
    relay.start()
    assert relay.command("queue", "flush", "--all").returncode == 0
    relay.wait_event("done", count=2)
    relay.wait_event("deferred", count=3)
    relay.wait_event("recover")
    relay.kill()
    checked = check(relay)
    assert set(checked.faults) <= LEFT_BY_A_CRASH, checked.findings
    assert checked.summary["format"] == 2 and checked.messages in (3, 4, 5)
    relay.start()
    relay.wait_event("recover", count=2)
    assert not relay.events("damage") and not relay.events("quarantined")
    assert len(relay.command("queue", "list", "--json").stdout.splitlines()) >= 3


def test_a_queue_of_a_later_format_is_refused_and_left_alone(lab):
    relay, _ = _make(lab)
    pathlib.Path(relay.spool, "format").write_text("sluice spool 3\n", encoding="ascii")
    with pytest.raises(AssertionError, match="this queue is of format 3; this program knows 1 to 2"):
        relay.start()
    for words in (("queue", "check"), ("queue", "check", "--repair")):
        done = relay.command(*words)
        assert done.returncode == 1 and "this queue is of format 3" in done.stderr
    assert _format(relay) == "sluice spool 3\n"


@pytest.mark.parametrize("line", ("sluise spool 2\n", "sluice spool 2.5\n", "sluice spool \n"))
def test_a_damaged_format_is_called_so_and_left_alone(lab, line):
    relay, _ = _make(lab)
    pathlib.Path(relay.spool, "format").write_text(line, encoding="ascii")
    with pytest.raises(AssertionError, match='format: it is damaged, or no queue\'s: the line is "sluice spool 2"'):
        relay.start()
    done = relay.command("queue", "check")
    assert done.returncode == 1 and "it is damaged" in done.stderr
    assert _format(relay) == line
