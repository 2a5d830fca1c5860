# SPDX-License-Identifier: ISC
"""What was answered 250 arrives, however often the relay is killed."""

import collections
import random
import re
import time

import pytest

from lab import received
from lab.config import Config
from lab.load import Load, token
from lab.net import longer, wait_until
from lab.sink import Rule
from lab.spool import DELIVERY, Spool


def _config(sink):
    config = Config(queue={"minimal_backoff_time": "200ms", "maximal_backoff_time": "1s"})
    config.listeners["smtp"]["client_connection_limit"] = 0
    return config.route_all_to(sink.port)


class FirstTime(Rule):
    """Holds once for each address."""

    def __post_init__(self):
        super().__post_init__()
        self.known = set()

    def take(self, stage, address, early, client):
        """Say whether the rule holds now."""
        if stage != self.stage or not re.search(self.pattern, address) or address in self.known:
            return False
        self.known.add(address)
        return True


def _kill_while_loaded(relay, load, kills):
    """Kill and restart, at moments spread over the whole load, until all of it is taken on."""
    chance = random.Random(kills)
    for number in range(1, kills + 1):
        if number < kills:
            load.wait_acknowledged(int(load.messages * (number - chance.random()) / kills))
        else:
            load.wait_acknowledged(load.messages)
        time.sleep(chance.uniform(0, 0.05))
        relay.kill()
        _start(relay, wait=number == kills)
    return load.finish(60)


def _start(relay, wait=True):
    """Start the relay and wait until it has read its queue."""
    before = len(relay.events("recover"))
    relay.start()
    if wait:
        relay.wait_event("recover", count=before + 1)


def _wait_empty(relay, timeout=60):
    def empty():
        done = relay.command("queue", "list", "--json")
        return done.returncode == 0 and not done.stdout.strip()

    wait_until(empty, timeout, "the queue to be empty")


def _check_clients(load, taken, sink):
    """What was acknowledged has come, as it was sent, and nothing has come that nobody sent."""
    arrived = collections.defaultdict(set)
    for one in sink.messages:
        number = token(one.content)
        arrived[number].add(received.identity(one.content))
        assert received.without(one.content) == load.content(int(number[1:])), "not as sent"
    lost = {key: taken[key] for key in set(taken) - set(arrived)}
    assert not lost, f"{len(lost)} of {len(taken)} messages lost: {sorted(lost.items())[:5]}"
    assert not set(arrived) - load.attempts, "what was never sent has come"
    mixed = {key: ids for key, ids in arrived.items() if ids != {taken.get(key, *ids)}}
    assert not mixed, f"under another id than the client was told: {mixed}"


def _check_log(relay, sink):
    """What the log calls sent has come. Lines not yet written at a kill may be missing in it."""
    ids = {received.identity(one.content) for one in sink.messages}
    sent = {event["id"] for event in relay.events("sent")}
    assert not sent - ids, f"logged as sent, and never seen: {sorted(sent - ids)[:5]}"
    assert not relay.events("bounced")
    assert not relay.events("damage") and not relay.events("quarantined")


def _check_duplicates(relay, sink):
    """Only what was being delivered at a kill may come twice, and the log says which that was."""
    counts = collections.Counter(received.identity(one.content) for one in sink.messages)
    twice = {identity: count for identity, count in counts.items() if count > 1}
    recovered = collections.Counter(event["id"] for event in relay.events("recovered"))
    unexplained = {one: count for one, count in twice.items() if recovered[one] < count - 1}
    assert not unexplained, f"delivered twice without a word: {unexplained}"


@pytest.mark.seconds(240)
@pytest.mark.parametrize(
    "kills, messages, sessions",
    [(6, 300, 10), pytest.param(longer(25, 100), longer(1000, 4000), 20, marks=[pytest.mark.plain_only, pytest.mark.long])],
)
def test_three_ledgers_agree_however_often_the_relay_is_killed(lab, kills, messages, sessions):
    """Small and large messages, some put off at first; clients, log and sink are compared."""
    sink = lab.sink(FirstTime("rcpt", "450 4.2.1 later", pattern=r"^to\d*[37]@"))
    relay = lab.relay(_config(sink))
    load = Load(relay.port, messages, sessions, lambda number: 600000 if number % 50 == 0 else 500)
    lab.callback(load.close)
    taken = _kill_while_loaded(relay, load, kills)
    assert len(taken) >= messages
    _wait_empty(relay)
    _check_clients(load, taken, sink)
    _check_log(relay, sink)
    _check_duplicates(relay, sink)
    deferred = {event["to"] for event in relay.events("deferred")}
    assert len(deferred) > messages / 20, "too few were put off for the test to mean anything"


def test_what_was_delivered_before_a_kill_is_not_sent_again(lab):
    sink = lab.sink()
    relay = lab.relay(_config(sink))
    load = Load(relay.port, 100, 5)
    lab.callback(load.close)
    load.finish()
    relay.wait_event("done", count=100)
    # The last verdicts are on disk with the next synced batch, which another message makes.
    relay.send(recipients=["last@dest.test"])
    relay.wait_event("done", count=101)
    for _ in range(3):
        relay.kill()
        _start(relay)
        _wait_empty(relay)
    # Of the other message the verdict may not have been written yet.
    assert sum(m.recipients != ["last@dest.test"] for m in sink.messages) == 100


def test_recipients_that_have_it_do_not_get_it_again_after_a_kill(lab):
    sink = lab.sink(Rule("rcpt", "451 4.3.0 later", pattern="slow@", times=3))
    config = _config(sink)
    config.queue["minimal_backoff_time"] = "1s"
    relay = lab.relay(config)
    relay.send(recipients=["fast@dest.test", "slow@dest.test"])
    relay.wait_event("deferred", to="slow@dest.test")
    relay.wait_event("sent", to="fast@dest.test")
    wait_until(lambda: any(record.type == DELIVERY for segment in Spool(relay.spool).segments for record in segment.records),
               what="the verdict to be in the queue's files")
    relay.kill()
    relay.start()
    relay.wait_event("sent", 60, to="slow@dest.test")
    assert [one.recipients for one in sink.messages] == [["fast@dest.test"], ["slow@dest.test"]]


def test_a_large_message_survives_a_kill(lab):
    sink = lab.sink(Rule("end", "451 4.3.0 later", times=1))
    relay = lab.relay(_config(sink))
    text = b"\r\n" + b"a large message\r\n" * 40000
    relay.send(content=text)
    relay.kill()
    relay.start()
    sink.wait_messages(1)
    assert received.without(sink.messages[0].content) == text


def test_content_in_doubt_is_delivered_again_and_the_log_says_so(lab):
    sink = lab.sink(Rule("end", close=True, times=1))
    relay = lab.relay(_config(sink))
    relay.send()
    relay.wait_event("in_doubt")
    relay.wait_event("sent")
    assert len(sink.transactions) == 2
    assert sink.transactions[0].content == sink.transactions[1].content


def test_deferred_mail_is_listed_again_after_a_kill(lab):
    sink = lab.sink(Rule("rcpt", "451 4.3.0 later"))
    config = _config(sink)
    config.queue |= {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
    relay = lab.relay(config)
    for number in range(20):
        relay.send(recipients=[f"to{number}@dest.test"])
    relay.wait_event("deferred", count=20)
    for _ in range(2):
        relay.kill()
        _start(relay)
    assert len(relay.command("queue", "list", "--json").stdout.splitlines()) == 20
