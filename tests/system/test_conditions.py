# SPDX-License-Identifier: ISC
"""What keeps mail from being taken or sent is one list, which all that shows how the relay is doing reads."""

import json
import os
import urllib.error
import urllib.request

import pytest

from lab.config import Config
from lab.milter import TEMPFAIL, Milter, packet
from lab.net import LOOPBACK, free_port, wait_until
from lab.redis import Redis


def _http(relay, path):
    """Ask for this, and return status and text."""
    url = f"http://{relay.config.settings['http']}{path}"
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:
            return reply.status, reply.read().decode("utf-8")
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode("utf-8")


def _page(relay):
    """What the status page is told next."""
    url = f"http://{relay.config.settings['http']}/events"
    with urllib.request.urlopen(url, timeout=60) as reply:
        for line in reply:
            if line.startswith(b"data: {\"at_ms\""):
                return json.loads(line[len(b"data: "):])
    raise AssertionError("the page was told nothing")


def _rows(relay):
    """The conditions of now, as `stats --json` has them."""
    return json.loads(relay.command("stats", "--json").stdout)["conditions"]


def _names(relay):
    return [row["name"] for row in _rows(relay)]


def _metric(relay, name):
    text = _http(relay, "/metrics")[1]
    return int(text.partition(f'\nsluice_conditions{{name="{name}"}} ')[2].split()[0])


def _relay(lab, extra="", **settings):
    config = Config({"http": f"{LOOPBACK}:{free_port()}"} | settings)
    config.route_all_to(lab.sink().port)
    config.extra = extra
    return lab.relay(config)


def _filtered(lab, milter, **settings):
    words = "".join(f'  {name} = "{value}"' for name, value in settings.items())
    return _relay(lab, f'milter "one" {{ address = "{milter.address}"{words} }}\n')


@pytest.fixture(name="milter")
def _milter(lab):
    one = Milter()
    lab.callback(one.close)
    return one


def test_a_filter_that_is_away_is_told_everywhere_until_it_is_back(lab, milter):
    relay = _filtered(lab, milter)
    assert _http(relay, "/healthz") == (200, "ok\n") and _names(relay) == []
    assert _metric(relay, "filter_away") == 0
    milter.stop()
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 451)
    (row,) = _rows(relay)
    assert (row["name"], row["subject"], row["stops_mail"]) == ("filter_away", "one", True)
    assert "451" in row["effect"] and "start the filter" in row["remedy"] and row["reason"]
    status, text = _http(relay, "/healthz")
    assert status == 503 and text.startswith("not accepting mail\nfilter_away one, for ")
    assert row["effect"] in text and row["remedy"] in text
    plain = relay.command("stats").stdout
    assert "\naccepting no\ncondition filter_away one, for " in plain
    assert "\ncondition filter_away one, for " in relay.command("top", "-n", "1").stdout
    checked = relay.command("check", "--strict")
    assert checked.returncode == 0 and "the relay that runs: condition filter_away one, for " in checked.stderr
    page = _page(relay)
    assert not page["accepting"] and [one["effect"] for one in page["conditions"]] == [row["effect"]]
    assert _metric(relay, "filter_away") == 1 and "\nsluice_accepting 0\n" in _http(relay, "/metrics")[1]
    began = relay.wait_event("condition", state="on", name="filter_away", subject="one")
    assert (began["effect"], began["remedy"], began["since"]) == (row["effect"], row["remedy"], row["since"])
    milter.start()
    assert relay.wait_event("condition", state="off", name="filter_away")["since"] == row["since"]
    assert _http(relay, "/healthz") == (200, "ok\n") and _names(relay) == []
    assert "condition" not in relay.command("stats").stdout.replace("conditions{", "")
    assert "condition filter_away" not in relay.command("top", "-n", "1").stdout
    page = _page(relay)
    assert page["accepting"] and page["conditions"] == []
    assert _metric(relay, "filter_away") == 0
    assert relay.send().code == 250


def test_a_filter_that_is_away_is_told_before_there_is_mail(lab, milter):
    milter.stop()
    relay = _filtered(lab, milter)
    wait_until(lambda: _names(relay) == ["filter_away"], 60, "the filter to be missed")
    milter.start()
    wait_until(lambda: _names(relay) == [], 60, "the filter to be seen")


@pytest.mark.parametrize("action, says, status", [
    ("accept", "without having passed", 200), ("quarantine", "on hold", 200), ("reject", "550", 503),
])
def test_what_is_said_is_what_becomes_of_mail(lab, milter, action, says, status):
    relay = _filtered(lab, milter, default_action=action)
    milter.stop()
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 550 if action == "reject" else 250)
    (row,) = _rows(relay)
    assert says in row["effect"]
    assert _http(relay, "/healthz")[0] == status


def test_a_filter_that_is_no_more_in_the_configuration_is_no_condition(lab, milter):
    milter.stop()
    relay = _filtered(lab, milter)
    wait_until(lambda: _names(relay) == ["filter_away"], 60, "the filter to be missed")
    relay.config.extra = ""
    relay.write_config()
    relay.command("reload")
    assert _names(relay) == []


def test_a_filter_that_no_mail_passes_any_more_is_no_condition(lab, milter):
    """Nobody looks whether it is back, and only mail on hold may yet be shown to it."""
    milter.stop()
    relay = _filtered(lab, milter)
    wait_until(lambda: _names(relay) == ["filter_away"], 60, "the filter to be missed")
    relay.config.listeners["smtp"]["milters"] = []
    relay.config.settings["sender_access"] = [f"{relay.folder}/hold"]
    with open(f"{relay.folder}/hold", "w", encoding="ascii") as table:
        table.write("from@sender.test hold\n")
    relay.write_config()
    relay.command("reload")
    assert _names(relay) == [] and _http(relay, "/healthz")[0] == 200
    relay.send()
    held = relay.wait_event("queued")["id"]
    assert relay.command("queue", "release", "--refilter", held).returncode == 1
    assert _names(relay) == [] and _http(relay, "/healthz")[0] == 200


def test_what_was_wrong_with_a_filter_is_not_wrong_with_that_at_another_address(lab, milter):
    """It was at work when it failed, so that an answer alone would not do."""
    other = Milter()
    lab.callback(other.close)
    milter.behave({"M": packet(b"!")})
    relay = _filtered(lab, milter)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 451)
    wait_until(lambda: _names(relay) == ["filter_away"], 60, "the filter to be missed")
    relay.config.extra = relay.config.extra.replace(milter.address, other.address)
    relay.write_config()
    relay.command("reload")
    assert _names(relay) == [] and _http(relay, "/healthz")[0] == 200


@pytest.mark.parametrize("how", ["stop", "restart"])
def test_what_is_on_when_the_relay_ends_is_off_in_its_log(lab, milter, how):
    milter.stop()
    relay = _filtered(lab, milter)
    relay.wait_event("condition", name="filter_away", state="on")
    milter.start()
    assert relay.command(how).returncode == 0
    if how == "stop":
        assert relay.wait_ended() == 0
    relay.wait_event("stopped")
    assert [event["state"] for event in relay.events("condition", name="filter_away")] == ["on", "off"]


def _milter_rows(relay):
    done = relay.command("milter", "--json")
    return {row["milter"]: row for row in map(json.loads, done.stdout.splitlines())}


def test_the_filters_are_listed_with_what_they_answer(lab, milter):
    other = Milter()
    lab.callback(other.close)
    relay = _filtered(lab, milter)
    relay.config.listeners["smtp"]["milters"] = ["one"]
    relay.config.extra += f'milter "two" {{ address = "{other.address}"  default_action = "accept" }}\n'
    relay.write_config()
    relay.command("reload")
    assert relay.send().code == 250
    milter.answers = {b"R": packet(TEMPFAIL)}
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 250)
        client.command("RCPT TO:<b@dest.test>", 451)
    rows = _milter_rows(relay)
    one, two = rows["one"], rows["two"]
    assert (one["state"], two["state"], one["address"]) == ("ready", "unused", milter.address)
    assert one["answers"]["tempfail"] == 1 and one["answers"]["continue"] >= 5 and two["answers"] == {}
    assert 0 < one["mean_us"] <= one["longest_us"] and two["default_action"] == "accept"
    listed = relay.command("milter").stdout.splitlines()
    assert listed[0].startswith("FILTER") and listed[1].split()[:2] == ["one", "ready"] and len(listed) == 3
    assert relay.command("milter", "list", "two").stdout.splitlines()[1].split()[:2] == ["two", "unused"]
    milter.stop()
    shown = relay.command("milter", "show", "one").stdout
    assert shown.startswith(f"one at {milter.address}: away\n  tried now: connect: Connection refused\n")
    assert "while it is away: mail that is to pass this filter is refused for now, with 451" in shown
    assert 'mail that passes it: listener "smtp"\n' in shown and " 1 tempfail" in shown
    relay.wait_event("condition", name="filter_away", state="on")
    assert "\n  away since " in relay.command("milter", "show", "one").stdout
    milter.start()
    relay.wait_event("condition", name="filter_away", state="off")
    assert _milter_rows(relay)["one"]["state"] == "ready"


def test_a_filter_that_negotiates_and_fails_each_message_is_failing(lab, milter):
    relay = _filtered(lab, milter)
    milter.answers = {b"M": packet(b"?")}
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 451)
    tries = len(milter.connections)
    wait_until(lambda: len(milter.connections) > tries + 1, 60, "it to be tried twice more")
    assert _milter_rows(relay)["one"]["state"] == "failing" and _names(relay) == ["filter_away"]
    milter.answers = {}
    assert relay.send().code == 250
    assert _milter_rows(relay)["one"]["state"] == "ready" and _names(relay) == []


def test_a_filter_that_is_not_there_is_refused(lab, milter):
    relay = _filtered(lab, milter)
    refused = relay.command("milter", "show", "never")
    assert refused.returncode == 1 and "never: there is no such filter" in refused.stderr
    assert relay.command("milter", "list", "one", "two").returncode == 2


def test_redis_away_is_told_and_mail_goes_on(lab):
    redis = Redis(lab.folder("redis"))
    lab.callback(redis.close)
    redis.start()
    relay = _relay(lab, f'cluster {{ name = "a"  redis = "{LOOPBACK}:{redis.port}" }}\n')
    relay.wait_event("cluster", state="ready")
    assert _names(relay) == []
    redis.kill()
    relay.wait_event("condition", state="on", name="redis_away")
    assert _names(relay) == ["redis_away"]
    status, text = _http(relay, "/healthz")
    assert status == 200 and text.startswith("ok\nredis_away, for ")
    assert relay.send().code == 250
    redis.start()
    relay.wait_event("condition", state="off", name="redis_away")
    assert _names(relay) == []


def test_a_table_with_a_fault_is_told_until_it_is_mended(lab):
    table = os.path.join(lab.folder("tables"), "access")
    with open(table, "w", encoding="ascii") as file:
        file.write("never@dest.test reject\n")
    relay = _relay(lab, recipient_access=[table])
    with open(table, "a", encoding="ascii") as file:
        file.write("other@dest.test nonsense\n")
    relay.wait_event("condition", state="on", name="tables_stale")
    (row,) = _rows(relay)
    assert row["subject"] == f"recipient_access {table}" and row["reason"].startswith("line 2: ")
    with open(table, "w", encoding="ascii") as file:
        file.write("never@dest.test reject\n")
    relay.wait_event("condition", state="off", name="tables_stale")
    assert _names(relay) == []


def test_a_full_disk_is_told(lab):
    relay = _relay(lab, queue_minfree="1024g")
    wait_until(lambda: _names(relay) == ["disk_full"], 60, "the disk to be found full")
    assert _http(relay, "/healthz")[0] == 503
    relay.config.settings["queue_minfree"] = "1m"
    relay.write_config()
    relay.command("reload")
    wait_until(lambda: _names(relay) == [], 60, "room")
    assert _http(relay, "/healthz") == (200, "ok\n")
