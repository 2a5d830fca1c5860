# SPDX-License-Identifier: ISC
"""sluice report: a day in figures. With pflogsumm it is compared in test_log.py."""

import datetime
import json
import re

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import LOOPBACK, wait_until

RULES = (
    Rule("rcpt", "452 4.2.2 mailbox full", pattern="^later"),
    Rule("rcpt", "550 5.1.1 no such user", pattern="^gone"),
)


def _send(relay, sender, *recipients):
    with relay.client() as client:
        client.greet()
        client.send_mail(sender, list(recipients), b"Subject: x\r\n\r\nx\r\n")


def _day(lab, form):
    """Return a relay that has had some mail: 3 messages of ann, 1 of bob, a report, two refusals."""
    config = Config(queue={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
    config.route_all_to(lab.sink(*RULES).port)
    config.settings["networks"] = [f"{LOOPBACK}/32"]
    relay = lab.relay(config, log_format=form, start=False)
    if form == "text":
        relay.start()
    else:
        relay.start_mute()
    _send(relay, "ann@writer.test", "one@to.test", "two@to.test")
    _send(relay, "Ann@writer.test", "later@slow.test")
    _send(relay, "ann@writer.test", "gone@to.test")
    _send(relay, "bob@writer.test", "one@To.test")
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<ann@writer.test> SIZE=999999999", 552)
        client.command("MAIL FROM:<ann@writer.test> SIZE=999999999", 552)
    wait_until(lambda: _report(relay)["sent"] == 4 and _report(relay)["deferred"] == 1, 60, "all mail to be tried")
    return relay


def _report(relay, *words):
    done = relay.command("report", "--since", "1h", "--json", *words)
    assert done.returncode == 0 and not done.stderr, done
    return json.loads(done.stdout)


def _rows(table, column):
    return {row["name"]: row[column] for row in table}


@pytest.mark.parametrize("form", ["text", "json", "postfix"])
def test_the_figures_are_those_of_the_traffic(lab, form):
    relay = _day(lab, form)
    report = _report(relay)
    assert {name: report[name] for name in ("received", "made", "deferred", "bounced", "in_doubt", "rejected")} == {
        "received": 4, "made": 1, "deferred": 1, "bounced": 1, "in_doubt": 0, "rejected": 2}
    assert report["sent"] == 4, report
    assert _rows(report["senders"], "messages") == {"ann@writer.test": 3, "bob@writer.test": 1}
    assert sum(_rows(report["senders"], "bytes").values()) == report["received_bytes"] > 100
    assert [row["name"] for row in report["senders"]] == ["ann@writer.test", "bob@writer.test"]
    assert _rows(report["destinations"], "sent") == {"to.test": 3, "writer.test": 1, "slow.test": 0}
    assert _rows(report["destinations"], "bounced")["to.test"] == 1 == _rows(report["destinations"], "deferred")["slow.test"]
    assert report["deferrals"] == [{"name": "mailbox-full", "times": 1, "example": "452 4.2.2 mailbox full"}]
    assert report["bounces"] == [{"name": "invalid-recipient", "times": 1, "example": "550 5.1.1 no such user"}]
    assert [row["times"] for row in report["refusals"]] == [2] and "552 5.3.4" in report["refusals"][0]["name"]
    assert _rows([{"name": row["domain"], "total": row["total"]} for row in report["waiting"]], "total")["slow.test"] == 1
    assert len(_report(relay, "--top", "1")["senders"]) == 1


def test_the_text_fits_into_a_mail_and_needs_no_relay(lab):
    relay = _day(lab, "text")
    relay.stop()
    done = relay.command("report", "--since", "1h")
    assert done.returncode == 0 and not done.stderr
    text = done.stdout
    assert text.startswith("Mail of relay.test\nfrom ")
    for line in ("4  messages received", "4  deliveries", "1  deferrals", "1  bounces", "2  refusals"):
        assert re.search(rf"(?m)^ +{line}$", text), text
    assert re.search(r"(?m)^ +1  mailbox-full \(452 4.2.2 mailbox full\)$", text)
    assert re.search(r"(?m)^ +slow.test +1 ", text.partition("What waits now")[2]), text
    assert relay.command("report", "--day", "2001-01-01", "--json").stdout.count('"received":0') == 1
    for words in (["--day", "yesterday", "--since", "1h"], ["--day", "never"], ["--day", "2026-02-31"], ["--since", "2026-04-31 10:00"], ["--since", "1h", "--until", "2h"], ["x"]):
        assert relay.command("report", *words).returncode == 2, words


def _of_syslogd(time):
    return time.strftime("%b %e %H:%M:%S host ")


def _of_rsyslogd(time):
    return time.isoformat(timespec="microseconds") + " host "


@pytest.mark.parametrize("stamp", [_of_syslogd, _of_rsyslogd, lambda _: ""])
def test_a_file_that_others_write_to_as_well_is_read_for_its_day(lab, stamp):
    """As mail.log of syslogd, which has hours of others before our first line; or lines without a time."""
    relay = lab.relay(Config().route_all_to(9), start=False)
    day = datetime.datetime.now().astimezone().replace(hour=3, minute=0, second=0) - datetime.timedelta(days=1)

    def line(after, text, stamp=_of_syslogd):
        return f"{stamp(day + datetime.timedelta(seconds=after))}{text}\n"

    with open(relay.log_path, "w", encoding="utf-8") as stream:
        stream.writelines(line(n, f"dovecot: imap-login: Login: user=<u{n}>", stamp) for n in range(1500))
        stream.writelines(line(1500 + n, "sluice/smtp[77]: 6C4H2TE6H7C00: to=<b@dest.test>, relay=mx.test[192.0.2.1]:25, delay=1, "
                               "delays=0/0/0/1, dsn=2.0.0, status=sent (250 ok)") for n in range(3))
    done = relay.command("report", "--day", "yesterday", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["sent"] == 3, done
    done = relay.command("trace", "--since", "yesterday", "--until", "yesterday", "b@dest.test")
    assert done.returncode == 0 and done.stdout.count("delivered to <b@dest.test>") == 3, done


def test_logins_that_failed_filters_and_logins_are_counted(lab):
    relay = _day(lab, "text")
    lines = [
        "auth session=0000000000001 client=192.0.2.1 login=eve mechanism=PLAIN result=failed failures=1",
        "auth session=0000000000001 client=192.0.2.1 login=ann mechanism=PLAIN result=ok",
        'filter id=0000000000001 milter=rspamd action=reject reason="spam"',
        'limit session=0000000000001 login=ann limit="messages 5/h" action=defer',
        "queued id=0000000000002 session=0000000000001 from=ann@writer.test nrcpt=1 size=10 user=ann",
        "in_doubt id=0000000000002 to=x@y.test dsn=4.4.2",
    ]
    stamp = relay.log_text().splitlines()[-1].split()[0]
    with open(relay.log_path, "a", encoding="utf-8") as stream:
        stream.writelines(f"{stamp} info {line}\n" for line in lines)
    report = _report(relay)
    assert report["logins_failed"] == 1 and _rows(report["failed_logins"], "times") == {"eve failed": 1}
    assert _rows(report["filters"], "times") == {"rspamd reject": 1}
    assert _rows(report["limits"], "times") == {"ann messages 5/h defer": 1}
    assert report["logins"] == [{"name": "ann", "messages": 1, "bytes": 10}] and report["in_doubt"] == 1
