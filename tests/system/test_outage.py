# SPDX-License-Identifier: ISC
"""The next hop is away, or the relay is: mail waits and then goes."""

import signal
import time

import pytest

from lab.config import Config
from lab.load import Load
from lab.net import LOOPBACK, free_port, wait_until
from lab.sink import Rule

BACKOFF = {"minimal_backoff_time": "200ms", "maximal_backoff_time": "1s"}


def _listed(relay, *words):
    done = relay.command("queue", "list", "--json", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _load(lab, relay, messages):
    load = Load(relay.port, messages, 5)
    lab.callback(load.close)
    load.finish()


def test_mail_waits_for_a_host_that_is_down_and_goes_when_it_is_back(lab):
    port = free_port()
    few = {"destination_concurrency_limit": 5, "connection_idle_timeout": "5m"}
    config = Config(queue=dict(BACKOFF), transports={"smtp": few}).route_all_to(port)
    relay = lab.relay(config)
    _load(lab, relay, 50)
    event = relay.wait_event("deferred", count=50, dsn="4.4.1")
    assert "refused" in event["reply"].lower()
    assert len(_listed(relay)) == 50
    assert len(relay.command("queue", "list").stdout.splitlines()) >= 50
    sink = lab.sink(port=port)
    sink.wait_messages(50, 60)
    relay.wait_event("done", count=50)
    assert len(sink.messages) == 50
    # However late each message comes: no connection ends, so none is opened beyond the window.
    assert len(sink.sessions) <= 5, "a connection for every few messages"
    assert not _listed(relay)


def test_queue_list_names_the_message_its_recipient_and_why_it_waits(lab):
    relay = lab.relay(Config().route_all_to(free_port()))
    relay.send("from@sender.test", ["waits@dest.test"])
    identity = relay.wait_event("deferred")["id"]
    wait_until(lambda: "refused" in relay.command("queue", "list").stdout.lower(), what="a reason")
    text = relay.command("queue", "list").stdout
    assert identity in text and "from@sender.test" in text and "waits@dest.test" in text
    shown = relay.command("queue", "show", identity)
    assert shown.returncode == 0 and "Subject: a test" in shown.stdout


def test_deferred_mail_survives_restarts(lab):
    port = free_port()
    relay = lab.relay(Config(queue=dict(BACKOFF)).route_all_to(port))
    _load(lab, relay, 30)
    relay.wait_event("deferred", count=30)
    for _ in range(2):
        assert relay.stop() == 0
        relay.start()
    sink = lab.sink(port=port)
    sink.wait_messages(30, 60)
    relay.wait_event("done", count=30)
    assert len(sink.messages) == 30


def test_the_backoff_is_kept_while_the_host_is_down(lab):
    sink = lab.sink(Rule("connect", "421 4.3.2 later"))
    relay = lab.relay(Config(queue=dict(BACKOFF)).route_all_to(sink.port))
    _load(lab, relay, 20)
    relay.wait_event("deferred", count=20)
    before, began = len(sink.sessions), time.monotonic()
    time.sleep(1.5)
    wait_until(lambda: len(sink.sessions) > before, what="another try")
    assert len(sink.sessions) - before <= 20 + 27 * (time.monotonic() - began)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_relay_ends_while_mail_comes_and_goes_and_loses_nothing(lab, number):
    """It waits for no delivery that is under way: each would last five minutes."""
    sink = lab.sink(Rule("mail", delay=300))
    relay = lab.relay(Config(queue=dict(BACKOFF)).route_all_to(sink.port))
    load = Load(relay.port, 200, 10)
    lab.callback(load.close)
    load.wait_acknowledged(150)
    wait_until(lambda: any("MAIL" in one.verbs() for one in sink.sessions), what="a delivery")
    relay.signal(number)
    assert relay.wait_ended() == 0
    sink.behaviour.rules.clear()
    recovered = len(relay.events("recover"))
    relay.start()
    taken = load.finish()
    relay.wait_event("recover", count=recovered + 1)
    wait_until(lambda: not _listed(relay), 60, "the queue to be empty")
    got = {one.recipients[0].split("@")[0].removeprefix("to") for one in sink.messages}
    assert not {key.removeprefix("t") for key in taken} - got


@pytest.mark.parametrize("how", ["signal", "command"])
def test_a_reload_changes_a_route(lab, how):
    old, new = lab.sink(), lab.sink()
    relay = lab.relay(Config().route_all_to(old.port))
    relay.send()
    old.wait_messages(1)
    relay.config.route_all_to(new.port)
    relay.write_config()
    if how == "signal":
        relay.signal(signal.SIGHUP)
    else:
        assert relay.command("reload").returncode == 0
    for _ in range(100):
        relay.send()
        time.sleep(0.05)
        if new.messages:
            break
    relay.wait_event("done", count=len(relay.events("queued")))
    count = len(old.messages)
    relay.send()
    wait_until(lambda: len(new.messages) + len(old.messages) == len(relay.events("queued")))
    assert len(old.messages) == count


def test_a_reload_moves_mail_that_waits_to_the_new_route(lab):
    sink = lab.sink()
    relay = lab.relay(Config(queue=dict(BACKOFF)).route_all_to(free_port()))
    relay.send()
    relay.wait_event("deferred")
    relay.config.route_all_to(sink.port)
    relay.write_config()
    assert relay.command("reload").returncode == 0
    sink.wait_messages(1)


def test_a_reload_of_a_wrong_configuration_keeps_the_old_settings(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.config.extra = "no_such_setting = 1\n"
    relay.write_config()
    done = relay.command("reload")
    assert done.returncode == 1
    assert f"{relay.config_path}:" in done.stdout + done.stderr
    relay.send()
    sink.wait_messages(1)


def test_queue_flush_does_not_wait_for_the_backoff(lab):
    sink = lab.sink(Rule("rcpt", "451 4.3.0 later", pattern="^first"))
    queue = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
    relay = lab.relay(Config(queue=queue).route_all_to(sink.port))
    relay.send(recipients=["first@dest.test"])
    identity = relay.wait_event("deferred")["id"]
    relay.send(recipients=["second@dest.test"])
    assert [one.recipients for one in sink.wait_messages(1)] == [["second@dest.test"]]
    sink.behaviour.rules.clear()
    assert relay.command("queue", "flush", identity).returncode == 0
    sink.wait_messages(2)


def test_queue_delete_takes_a_message_away(lab):
    relay = lab.relay(Config().route_all_to(free_port()))
    relay.send()
    identity = relay.wait_event("deferred")["id"]
    assert relay.command("queue", "delete", identity).returncode == 0
    wait_until(lambda: not _listed(relay), what="the queue to be empty")
    assert relay.command("queue", "delete", identity).returncode == 1


def test_a_next_hop_in_second_place_takes_over(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(free_port(), sink.port))
    _load(lab, relay, 20)
    sink.wait_messages(20)
    assert relay.wait_event("sent")["relay"].endswith(f"[{LOOPBACK}]:{sink.port}")
    assert not relay.events("deferred")
