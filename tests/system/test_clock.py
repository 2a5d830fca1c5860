# SPDX-License-Identifier: ISC
"""Clocks that are set: nothing is too old for it, nothing due at once, and nothing sleeps for days."""

import datetime
import email.utils
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import wait_until
from lab.orders import order, with_orders

pytestmark = pytest.mark.plain_only
DAY = 86400
SOON, NOW = "send no mail once it has expired", "clients that look at this certificate send no mail"


@pytest.fixture
def late(lab, monkeypatch):
    """Return a relay whose clock can be set, with a message that its next hop puts off."""
    monkeypatch.setenv("SLUICE_BIN", with_orders("jumping"))
    lab.late = lab.sink(Rule("rcpt", "451 4.2.0 later"))
    queue = {"minimal_backoff_time": "300ms", "maximal_backoff_time": "300ms", "maximal_queue_lifetime": "1h"}
    relay = lab.relay(Config(queue=queue).hurried().route_all_to(lab.late.port))
    relay.send()
    relay.wait_event("deferred")
    return relay


def tried_again(relay, times=4):
    """Wait until the message has been tried some times more, and not been returned."""
    relay.wait_event("deferred", count=len(relay.events("deferred")) + times, timeout=60)
    assert not relay.events("bounced") and not relay.events("queued", **{"from": ""})


@pytest.mark.parametrize("days", [3650, 2, -1 / 24, -3, -3650])
def test_a_clock_that_is_set_neither_returns_nor_delays_mail(late, days):
    order(late, "jump", str(int(days * DAY)))
    event = late.wait_event("clock")
    assert abs(float(event["ahead"]) - days * DAY) < 60
    tried_again(late)
    # And the log shows the date that there is.
    assert late.command("queue", "list").stdout
    order(late, "jump", "0")
    late.wait_event("clock", count=2)
    tried_again(late)


def test_a_restart_goes_on_where_the_clock_was(late):
    order(late, "jump", str(3650 * DAY))
    late.wait_event("clock")
    late.environment["SLUICE_JUMP"] = str(3650 * DAY)
    late.restart()
    late.wait_event("clock", count=2)
    tried_again(late)
    late.kill()
    late.environment["SLUICE_JUMP"] = str(-3 * DAY)
    late.start()
    late.wait_event("clock", count=3)
    tried_again(late)


def test_a_boot_with_a_clock_that_is_years_ahead_tries_all_mail_before_any_is_returned(lab, late):
    """A machine's own clock may be wrong until a time server has put it right; a long time without power looks the same."""
    late.stop()
    lab.late.close()
    late.environment |= {"SLUICE_JUMP": str(3650 * DAY), "SLUICE_BOOT": "another"}
    sink = lab.sink(port=lab.late.port)
    late.start()
    sink.wait_messages()
    assert not late.events("bounced") and not late.events("queued", **{"from": ""})


def test_what_lapsed_before_a_boot_waits_for_its_host_to_be_reached(lab, late):
    """As where the network comes up after the relay."""
    late.stop()
    lab.late.close()
    late.environment |= {"SLUICE_JUMP": str(3650 * DAY), "SLUICE_BOOT": "another"}
    late.start()
    late.wait_event("host", state="out")
    late.wait_event("deferred", reply=re.compile("Connection refused"))
    assert not late.events("bounced") and not late.events("queued", **{"from": ""})
    lab.sink(port=lab.late.port).wait_messages()


def _apart(lab, days, *rules, extra=""):
    """Return a relay whose queue goes on by a clock that is so many days ahead of the system's, which was set; and its next hop."""
    sink = lab.sink(*rules)
    queue = {"minimal_backoff_time": "300ms", "maximal_backoff_time": "300ms", "maximal_queue_lifetime": "1h"}
    relay = lab.relay(Config(queue=queue, extra=extra).hurried().route_all_to(sink.port), start=False)
    os.makedirs(relay.spool)
    wall, up = (time.clock_gettime(clock) * 1000 for clock in (time.CLOCK_REALTIME, time.CLOCK_BOOTTIME))
    with open(os.path.join(relay.spool, "clock"), "w", encoding="utf-8") as stream:
        stream.write(f"{wall + days * DAY * 1000:.0f} {up:.0f} one\n")
    relay.environment["SLUICE_BOOT"] = "one"
    relay.start()
    relay.wait_event("clock")
    return relay, sink


@pytest.mark.parametrize("days", [-10, 10])
def test_another_boot_takes_no_change_of_the_clock_for_time_that_has_passed(lab, days):
    """Mail came by a wrong date, as where the machine's own clock had stood; that was put right, and the machine boots again."""
    relay, _ = _apart(lab, days, Rule("rcpt", "451 4.2.0 later"))
    relay.send()
    relay.wait_event("deferred")
    relay.stop()
    relay.environment["SLUICE_BOOT"] = "another"
    relay.start()
    relay.wait_event("clock", count=2)
    tried_again(relay)


@pytest.mark.parametrize("days", [-10, 10])
def test_a_report_has_the_systems_dates(lab, days):
    relay, sink = _apart(lab, days, Rule("rcpt", "550 5.7.1 no", pattern="bad@"))
    relay.send(recipients=["bad@dest.test"])
    report = sink.wait_messages()[0].content.decode()
    dates = re.findall(r"^(?:Date|Arrival-Date|Last-Attempt-Date): (.*)\r$", report, re.MULTILINE)
    assert len(dates) == 3
    now = datetime.datetime.now(datetime.timezone.utc)
    assert all(abs(email.utils.parsedate_to_datetime(date) - now) < datetime.timedelta(days=1) for date in dates), dates


@pytest.mark.parametrize("days", [-10, 10])
def test_commands_show_the_systems_dates(lab, days):
    relay, _ = _apart(lab, days, Rule("rcpt", "451 4.2.0 later"))
    relay.send()
    identity = relay.wait_event("deferred")["id"]
    shown = relay.command("queue", "show", identity, "--envelope").stdout
    dates = re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [-+]\d{4})", shown)
    row = json.loads(relay.command("queue", "list", "--json").stdout.splitlines()[0])
    times = [row["arrived"], row["due"]] + [datetime.datetime.strptime(date, "%Y-%m-%d %H:%M:%S %z").timestamp() for date in dates]
    assert len(times) >= 3 and all(abs(moment - time.time()) < DAY for moment in times), (times, shown)


@pytest.mark.parametrize("days", [-10, 10])
def test_objects_of_commands_have_the_systems_dates(lab, days):
    """The text of both had them already: a failure of today was ten days old, and mail for later was to go ten days ago."""
    relay, sink = _apart(lab, days)
    sink.close()
    relay.send()
    relay.wait_event("host", state="out")
    site, *_ = (json.loads(line) for line in relay.command("dest", "list", "--json").stdout.splitlines())
    with relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["later@dest.test"], mail_params=" HOLDFOR=3600")
    (later,) = (json.loads(line) for line in relay.command("queue", "list", "--to", "later@dest.test", "--json").stdout.splitlines())
    assert later["not_before"] == later["due"]
    assert all(abs(moment - time.time()) < DAY for moment in (site["last_failure"]["when"], later["not_before"])), (site, later)


@pytest.mark.parametrize("days", [-10, 10])
def test_commands_beside_a_stopped_relay_have_the_clocks_of_one_that_runs(lab, days):
    """They took the system's clock for the queue's: mail of today was of ten days ago."""
    relay, sink = _apart(lab, days, Rule("rcpt", "451 4.2.0 later", times=1))
    relay.send()
    identity = relay.wait_event("deferred")["id"]
    relay.command("queue", "hold", identity)
    relay.stop()
    row = json.loads(relay.command("queue", "list", "--json").stdout.splitlines()[0])
    *_, summary = (json.loads(line) for line in relay.command("queue", "check", "--json").stdout.splitlines())
    shown = relay.command("queue", "show", identity, "--envelope").stdout
    dates = re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [-+]\d{4})", shown)
    times = [row["arrived"], summary["oldest"]["arrived"]]
    times += [datetime.datetime.strptime(date, "%Y-%m-%d %H:%M:%S %z").timestamp() for date in dates]
    assert len(times) >= 3 and all(abs(moment - time.time()) < DAY for moment in times), (times, shown)
    relay.command("sendmail", "to@dest.test", stdin="Subject: x\n\nx\n")
    shape = json.loads(relay.command("shape", "maildrop", "--json").stdout.splitlines()[0])
    assert shape["total"] == 1 and shape["ages"][0]["count"] == 1, shape
    relay.command("queue", "release", identity)
    relay.start()
    sink.wait_messages(2)


@pytest.mark.parametrize("days", [-10, 10])
def test_events_have_the_systems_dates(lab, tmp_path, days):
    """They said that mail had come ten days before, or after, it was tried."""
    path = tmp_path / "events.json"
    relay, _ = _apart(lab, days, extra=f'events {{ to = "{path}"  delay = 20ms }}\n')
    relay.send()
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), what="the event")
    event = json.loads(path.read_text().splitlines()[0])
    for key in ("time", "arrived"):
        assert abs(datetime.datetime.fromisoformat(event[key].replace("Z", "+00:00")).timestamp() - time.time()) < DAY, event


def _stapled(relay):
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{relay.port}", "-starttls", "smtp", "-status"]
    done = subprocess.run(command, input="QUIT\n", capture_output=True, text=True, timeout=60, check=False)
    return "OCSP Response Status: successful" in done.stdout


def _warned(relay):
    """What the relay warns of, as it stands: that the certificate expires, or has expired; or None."""
    text = " ".join(relay.command("stats").stdout.split())
    return next((effect for effect in (SOON, NOW) if effect in text), None)


@pytest.mark.parametrize("begun", [0, -3650])
def test_certificates_go_by_the_date_whatever_the_queue_goes_by(lab, certificates, monkeypatch, begun):
    """Others judge them by the date; also where the clock was wrong when the queue began, and has been put right."""
    monkeypatch.setenv("SLUICE_BIN", with_orders("jumping"))
    certificate, key = certificates.odd(f"clock{begun}", "relay.test", "DNS:relay.test")  # for 30 days
    certificates.ocsp(certificate, days=5)
    late = lab.sink(Rule("rcpt", "451 4.2.0 later"))
    config = Config().hurried().route_all_to(late.port)
    config.listeners = {"smtp": {"certificate": certificate, "key": key}}
    relay = lab.relay(config, start=False)
    relay.environment["SLUICE_JUMP"] = str(begun * DAY)
    relay.start()
    relay.send()
    relay.wait_event("deferred")
    for day, warned, stapled in ((1, None, True), (7, None, False), (20, SOON, False), (40, NOW, False), (0, None, True)):
        order(relay, "jump", str(day * DAY))
        wait_until(lambda want=(warned, stapled): (_warned(relay), _stapled(relay)) == want, 60, f"what holds on day {day}")
    assert not relay.events("bounced")


def _put(pair, places):
    for here, there in zip(pair, places):
        shutil.copy(here, f"{there}.new")
        os.rename(f"{there}.new", there)


def test_a_certificate_that_is_not_valid_yet_takes_a_good_ones_place_once_it_is(lab, certificates, monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_BIN", with_orders("jumping"))
    places = certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    _put(certificates.host("relay.test"), places)
    config = Config()
    config.listeners = {"smtp": {"certificate": certificate, "key": key}}
    relay = lab.relay(config)
    _put(certificates.brief("relay.test", 60 * DAY, begin=3 * DAY), places)
    relay.wait_event("condition", name="certificate_refused", state="on")
    relay.wait_event("condition", name="certificate_expiry", state="on", effect=re.compile("until it is valid"))
    assert not relay.events("certificate", message="read anew")
    order(relay, "jump", str(4 * DAY))
    relay.wait_event("certificate", message="read anew")
    relay.wait_event("condition", name="certificate_refused", state="off")
    relay.wait_event("condition", name="certificate_expiry", state="off")


@pytest.mark.parametrize("days", [3650, -3])
def test_the_log_says_by_its_own_date_how_long_a_host_is_left_alone(lab, late, days):
    order(late, "jump", str(days * DAY))
    late.wait_event("clock")
    lab.late.close()
    out = late.wait_event("host", state="out")
    said, until = (datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (out.time, out["until"]))
    assert abs((until - said).total_seconds()) < 600
