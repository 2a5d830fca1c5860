# SPDX-License-Identifier: ISC
"""The metrics as Prometheus sees them, and the dashboard and the alerts that use them."""

import json
import os
import re
import urllib.request

import pytest

from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.prometheus import check
from lab.relay import REPOSITORY
from lab.sink import Rule

RULES = os.path.join(REPOSITORY, "etc", "prometheus", "sluice.rules.yml")
DASHBOARD = os.path.join(REPOSITORY, "etc", "grafana", "sluice.json")


def _metrics(port):
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=60) as reply:
        return reply.read().decode()


@pytest.fixture(name="watched")
def _watched(lab):
    port = free_port()
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}"}).route_all_to(lab.sink().port))
    relay.send(recipients=["a@dest.test", "b@dest.test"])
    relay.wait_event("done")
    return port


def _expressions():
    """Return all that the dashboard and the alerts ask for."""
    with open(DASHBOARD, encoding="utf-8") as stream:
        dashboard = json.load(stream)
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    found += [variable["query"] for variable in dashboard["templating"]["list"]]
    with open(RULES, encoding="utf-8") as stream:
        return found + [stream.read()]


def test_promtool_finds_no_fault(watched):
    status, said = check("metrics", text=_metrics(watched))
    assert status == 0 and not said.strip(), said
    status, said = check("rules", RULES)
    assert status == 0 and "SUCCESS: 24 rules found" in said, said


def test_each_condition_has_its_alert_but_a_drain(watched):
    names = set(re.findall(r'^sluice_conditions\{name="(\w+)"\}', _metrics(watched), re.M))
    # Alerts of their own: SluiceMilterAway, SluiceCertificateExpires. A drain was ordered.
    otherwise = {"filter_away", "certificate_expiry", "draining"}
    with open(RULES, encoding="utf-8") as stream:
        asked = set(re.search(r'sluice_conditions\{name=~"([\w|]+)"\}', stream.read()).group(1).split("|"))
    assert asked | otherwise == names and not asked & otherwise


def test_dashboard_and_alerts_name_what_there_is(watched):
    text = _metrics(watched)
    # A family that counts nothing yet has no series.
    series = set(re.findall(r"^(sluice_\w+)", text, re.M)) | set(re.findall(r"^# TYPE (sluice_\w+)", text, re.M))
    labels = dict.fromkeys(series, frozenset())
    for name, inside in re.findall(r"^(sluice_\w+)\{(.*)\} ", text, re.M):
        labels[name] |= set(re.findall(r'(?:^|,)(\w+)="', inside))
    named = 0
    for expression in _expressions():
        for name in re.findall(r"\bsluice_\w+", expression):
            assert name in series, f"{name} in {expression}"
            named += 1
        for name, inside in re.findall(r"(sluice_\w+)\{([^}]*)\}", expression):
            used = set(re.findall(r"(\w+)[=!]~?\"", inside)) - {"instance"}
            assert used <= labels[name], f"{name} has no such label: {expression}"
    assert named > 40


def test_the_manual_names_each_metric_with_its_labels(watched):
    with open(os.path.join(REPOSITORY, "etc", "sluice.8"), encoding="utf-8") as page:
        lines = re.findall(r"^\.It Sy (\w+)( Ns Brq .*)?$", page.read().split(".Ss Metrics")[1].split(".Sh ")[0], re.M)
    told = {name: set(labels.removeprefix(" Ns Brq ").split(",")) for name, labels in lines}
    there = {}
    for name, inside in re.findall(r"^sluice_(\w+)\{(.*)\} ", _metrics(watched), re.M):
        name = re.sub(r"(_seconds|_messages)_(bucket|sum|count)$", r"\1", name)
        there.setdefault(name, set()).update(re.findall(r'(?:^|,)(\w+)="', inside))
    with open(os.path.join(REPOSITORY, "base", "metrics.h"), encoding="utf-8") as header:
        for name, *labels in re.findall(r'F\(\w+, "(\w+)", "(\w+)", (?:"(\w+)"|NULL)', header.read()):
            there[name] = set(labels) - {""}
    there = {name: labels - {"le"} for name, labels in there.items() if labels - {"le"}}
    assert len(there) > 30 and {name: told.get(name) for name in there} == there


def test_refusals_are_counted_from_zero(lab):
    """A counter that comes up with its first refusal hides that from increase()."""
    port = free_port()
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}"}))
    before = dict(re.findall(r'^sluice_rejects_total\{stage="(\w+)"\} (\d+)$', _metrics(port), re.M))
    stages = ("CONNECT", "PROXY", "COMMAND", "EHLO", "HELO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "BDAT")
    assert before == dict.fromkeys(stages, "0")
    with relay.client() as client:
        client.greet()
        client.command("RCPT TO:<a@b.test>", 503)
    relay.wait_event("reject")
    assert 'sluice_rejects_total{stage="RCPT"} 1' in _metrics(port)
    assert "rejects_total" not in relay.command("stats").stdout.replace('rejects_total{stage="RCPT"} 1', "")


def test_every_family_of_the_contract_is_there(watched):
    types = dict(re.findall(r"^# TYPE sluice_(\w+) (\w+)$", _metrics(watched), re.M))
    wanted = {
        "messages_received_total": "counter", "deliveries_total": "counter", "queue_messages": "gauge",
        "connections": "gauge", "commit_seconds": "histogram", "commit_messages": "histogram",
        "delivery_seconds": "histogram", "destination_window": "gauge", "rejects_total": "counter",
        "in_doubt_total": "counter", "dns_queries_total": "counter",
    }
    assert {name: types.get(name) for name in wanted} == wanted


def test_the_fifty_busiest_flows_are_told(lab):
    """Who has most being worked on comes first, then who has sent most today; others have no series."""
    port, sink = free_port(), lab.sink(Rule("rcpt", "550 5.1.1 unknown", pattern="never"))
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}"}, extra='flow "late.test" { rate = "1/h" }\n').route_all_to(sink.port))
    relay.send("a@late.test", ["now@dest.test"])
    relay.wait_event("sent", flow="late.test")
    for _ in range(2):
        relay.send("a@late.test", ["waits@dest.test"])
    relay.send("a@most.test", ["a@dest.test", "b@dest.test", "never@dest.test"])
    for n in range(52):
        relay.send(f"a@f{n}.test", ["to@dest.test"])
    relay.wait_events("sent", count=55)

    def told():
        return dict(re.findall(r"^sluice_(flow_\S+) (\d+)$", _metrics(port), re.M))

    wanted = {'flow_messages{flow="late.test"}': "2", 'flow_recipients{result="sent",flow="late.test"}': "1",
              'flow_recipients{result="deferred",flow="late.test"}': "0", 'flow_messages{flow="most.test"}': "0",
              'flow_recipients{result="sent",flow="most.test"}': "2", 'flow_recipients{result="refused",flow="most.test"}': "1",
              'flow_recipients{result="sent",flow="<reports>"}': "1"}
    wait_until(lambda: wanted.items() <= told().items() and len(told()) == 50 * 4, what="the flows to be told")
    assert json.loads(relay.command("stats", "--json").stdout)['flow_messages{flow="late.test"}'] == 2
    assert not re.search("flow_(messages|recipients)", relay.command("stats").stdout)


@pytest.mark.seconds(240)
def test_a_real_prometheus_fetches_and_answers(lab, watched):
    prometheus = lab.prometheus(watched, RULES)
    wait_until(lambda: prometheus.value("sluice_messages_received_total") == 1, 60, "the counter in Prometheus")
    assert prometheus.value('sluice_deliveries_total{result="sent",transport="smtp"}') == 2
    assert prometheus.value('up{job="sluice"}') == 1
    assert prometheus.value('sluice_delivery_seconds_count{stage="transmission"}') == 2
    target = prometheus.ask("targets")["activeTargets"][0]
    assert target["health"] == "up" and target["lastError"] == ""
    # What the dashboard asks is answered: no fault in any of its expressions.
    for expression in _expressions()[:-1]:
        if expression.startswith(("label_values", "prometheus")):
            continue
        asked = expression.replace("$__rate_interval", "1m").replace("$instance", ".*")
        assert prometheus.ask("query", query=asked) is not None, asked
    rules = prometheus.ask("rules")["groups"][0]["rules"]
    wait_until(lambda: all(rule["health"] == "ok" for rule in prometheus.ask("rules")["groups"][0]["rules"]), 60,
               "all alerts to be looked at")
    assert len(rules) == 24


@pytest.mark.seconds(240)
def test_an_alert_goes_off_when_the_relay_is_down(lab):
    prometheus = lab.prometheus(free_port(), RULES)

    def pending():
        alerts = prometheus.ask("alerts")["alerts"]
        return [alert for alert in alerts if alert["labels"]["alertname"] == "SluiceDown"]

    assert wait_until(pending, 60, "the alert")[0]["labels"]["severity"] == "critical"
