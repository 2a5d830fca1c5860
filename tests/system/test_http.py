# SPDX-License-Identifier: ISC
"""What the relay tells over HTTP: metrics, the JSON of its commands, and to whom."""

import contextlib
import http.client
import json
import re
import socket
import time
import urllib.parse

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import LOOPBACK, accepts, free_port, wait_until


def _ask(port, path, method="GET", headers=None):
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    connection.request(method, path, headers=headers or {})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


def _get(port, path):
    status, text = _ask(port, path)
    assert status == 200, text
    return text


def _metrics(port):
    lines = [line for line in _get(port, "/metrics").splitlines() if not line.startswith("#")]
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    assert len(values) == len(lines), "the same metric twice"
    return values


def _let_in(port):
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    connection.request("GET", "/events")
    reply = connection.getresponse()
    if reply.status == 200:
        return connection, reply
    assert reply.status == 503
    connection.close()
    return None


def _events(port):
    """Listen. Those who have gone are found out within seconds, when they are told the next event."""
    return wait_until(lambda: _let_in(port), 60, "a place among the listeners")


def _next_event(reply):
    name = data = None
    while (line := reply.readline().decode()) != "\n":
        assert line, "the connection was closed"
        key, _, value = line.rstrip("\n").partition(": ")
        name, data = (value, data) if key == "event" else (name, value if key == "data" else data)
    return name, data and json.loads(data)


def _event(reply, wanted):
    while True:
        name, data = _next_event(reply)
        if name == wanted:
            return data


@pytest.fixture(name="served", scope="module")
def _served(module_lab):
    """A relay with one recipient delivered, one put off, one bounced, whose bounce is put off, and one refused.

    No host is out: one that is would be tried again and again, and what is said of it with it.
    """
    port = free_port()
    config = Config(settings={"http": f"{LOOPBACK}:{port}"}, transports={"smtp": {"connection_idle_timeout": "1h"}})
    sink = module_lab.sink(Rule("rcpt", "450 4.2.0 <b>busy</b>", pattern="later|from@sender"),
                           Rule("rcpt", "550 5.1.1 unknown", pattern="never"))
    relay = module_lab.relay(config.route_all_to(sink.port))
    relay.send(recipients=["now@dest.test"])
    relay.send(recipients=["later@dest.test"])
    relay.send(recipients=["never@dest.test"])
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@b.test>", 250)
        client.command("RCPT TO:<no address at all>", 5)
    relay.wait_event("sent", to="now@dest.test")
    relay.wait_event("deferred", to="later@dest.test")
    relay.wait_event("deferred", to="from@sender.test")
    relay.http_port = port
    return relay


def test_each_metric_counts_what_happened(served):
    def at_rest():
        values = _metrics(served.http_port)
        return values['sluice_connections{side="client",state="busy"}'] == 0 and values['sluice_queue_messages{queue="deferred"}'] == 2

    wait_until(at_rest, 60, "the last delivery, and what was put off to be in the queue")
    counted = _metrics(served.http_port)
    assert counted["sluice_messages_received_total"] == 4  # and the bounce
    assert counted['sluice_deliveries_total{result="sent",transport="smtp"}'] == 1
    assert counted['sluice_deliveries_total{result="deferred",transport="smtp"}'] == 2  # the bounce too
    assert counted['sluice_deliveries_total{result="bounced",transport="smtp"}'] == 1
    assert counted['sluice_deliveries_total{result="in_doubt",transport="smtp"}'] == 0
    assert counted['sluice_rejects_total{stage="RCPT"}'] == 1
    assert counted["sluice_in_doubt_total"] == 0
    assert counted["sluice_commit_seconds_count"] >= 1
    assert 0 < counted["sluice_commit_seconds_sum"] < 60
    assert counted["sluice_commit_messages_sum"] == 4
    assert counted["sluice_commit_messages_count"] == counted["sluice_commit_seconds_count"]
    for stage in ("before_queue_manager", "in_queue", "connection_setup", "transmission"):
        assert counted[f'sluice_delivery_seconds_count{{stage="{stage}"}}'] == 4
        assert counted[f'sluice_delivery_seconds_bucket{{stage="{stage}",le="+Inf"}}'] == 4
    windows = {name: value for name, value in counted.items() if name.startswith("sluice_destination_window{")}
    assert len(windows) <= 2
    assert 'sluice_dns_queries_total{result="noerror"}' in counted


def test_connections_are_counted_by_state(lab):
    port = free_port()
    sink = lab.sink(latency=0)
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}"}, transports={"smtp": {"connection_idle_timeout": "60s"}})
                      .route_all_to(sink.port))

    def counts(**wanted):
        values = _metrics(port)
        found = {name: values[f'sluice_connections{{side="{name.split("_")[0]}",state="{name.split("_")[1]}"}}'] for name in wanted}
        return found == wanted

    with relay.client() as client:
        client.greet()
        wait_until(lambda: counts(server_idle=1, server_transaction=0), what="an idle client")
        client.command("MAIL FROM:<a@b.test>")
        wait_until(lambda: counts(server_idle=0, server_transaction=1), what="a transaction")
    wait_until(lambda: counts(server_idle=0, server_transaction=0, server_handshake=0), what="the client to be gone")
    relay.send()
    relay.wait_event("sent")
    wait_until(lambda: counts(client_idle=1, client_busy=0, client_connecting=0), what="an idle connection")


def test_what_name_servers_said_is_counted(lab):
    nsd, port = lab.nsd({"dest.test": "@ MX 10 mx\nmx A 127.0.0.9"}), free_port()
    config = Config(settings={"http": f"{LOOPBACK}:{port}"}, transports={"smtp": {"port": free_port()}}).resolve_with(nsd)
    relay = lab.relay(config)
    relay.send(recipients=["a@missing.dest.test"])
    relay.wait_event("bounced")
    values = _metrics(port)
    assert values['sluice_dns_queries_total{result="nxdomain"}'] >= 1
    results = sum(value for name, value in values.items() if name.startswith("sluice_dns_queries_total{"))
    assert results <= values["sluice_dns_sent_total"]


def test_what_is_in_doubt_is_counted(lab):
    port = free_port()
    sink = lab.sink(Rule("end", "", close=True, times=1))
    config = Config(settings={"http": f"{LOOPBACK}:{port}"}).route_all_to(sink.port)
    relay = lab.relay(config)
    relay.send()
    relay.wait_event("in_doubt")
    values = _metrics(port)
    assert values["sluice_in_doubt_total"] == 1
    assert values['sluice_deliveries_total{result="in_doubt",transport="smtp"}'] == 1


def test_two_hundred_sites_are_twenty_series(lab):
    port, sites = free_port(), 200
    config = Config(settings={"http": f"{LOOPBACK}:{port}"}, queue={"minimal_backoff_time": "1h"})
    sink = lab.sink(Rule("end", "451 4.3.0 later"))
    # Every address of 127/8 is ours: each is a site of its own.
    for n in range(sites):
        config.routes[f"d{n}.test"] = {"relay": [f"[127.0.1.{n + 1}]:{sink.port}"]}
    relay = lab.relay(config)
    relay.send(recipients=[f"a@d{n}.test" for n in range(sites)])
    relay.wait_event("deferred", count=sites, timeout=60)
    names = [name for name in _metrics(port) if name.startswith("sluice_destination_window{")]
    assert len(names) <= 20
    assert len(_metrics(port)) < 400


def test_answers_are_those_of_the_commands(served):
    port = served.http_port
    assert _get(port, "/api/queue") == served.command("queue", "list", "--json").stdout
    assert _get(port, "/api/shape") == served.command("shape", "--json").stdout

    def sites(text):
        # What they count down is not the same in two calls.
        return re.sub(r'"(opened_ago|tls_broken_for|when)":[\d.]+|"connections":[01]', "", text)

    assert sites(_get(port, "/api/dest")) == sites(served.command("dest", "--json").stdout)

    def counted(text):
        moves = ("uptime", "commit", "queue_bytes", "queue_live", "connections", "loop_turn")
        return {name: value for name, value in json.loads(text).items() if not name.startswith(moves)}

    assert counted(_get(port, "/api/stats")) == counted(served.command("stats", "--json").stdout)
    assert _get(port, "/api/flows") == served.command("flow", "list", "--json").stdout
    one = json.loads(_get(port, "/api/queue").splitlines()[0])["id"]
    when = re.compile(r"in \d+ s")
    said = served.command("explain", "--json", one).stdout
    assert when.sub("", _get(port, f"/api/explain?id={one}")) == when.sub("", said)


def test_stats_print_what_metrics_say(served):
    lines = served.command("stats", "--all").stdout.splitlines()
    names = {line.rpartition(" ")[0] for line in lines}
    metrics = {name.removeprefix("sluice_") for name in _metrics(served.http_port)}
    assert metrics - names == {'build_info{version="0.1"}'} and names - metrics == {"version"}


def test_lists_end_at_their_limit(served):
    port = served.http_port
    lines = _get(port, "/api/queue?limit=1").splitlines()
    assert lines == _get(port, "/api/queue").splitlines()[:1]
    for wrong in ("0", "-1", "x", "10001", "1x", "", "99999999999999999999"):
        assert _ask(port, f"/api/queue?limit={wrong}")[0] == 400, wrong
    assert _ask(port, "/api/explain")[0] == 400
    assert _ask(port, "/api/explain?id=nonsense%21")[0] == 400
    done = served.events("sent")[0]["id"]
    assert _ask(port, f"/api/explain?id={done}")[0] == 404


def _object(port, path):
    return json.loads(_get(port, path))


def test_reasons_are_told_once_and_kept_for_a_while(served):
    told = _object(served.http_port, "/api/reasons")
    assert told["messages"] == told["read"] == 2 and not told["cut"]
    (reason,) = told["reasons"]
    assert reason["messages"] == 2 and reason["code"] == 450 and "<b>busy</b>" in reason["says"]
    assert reason["domains"] == ["dest.test", "sender.test"] and reason["queue"] == "deferred"
    oldest = _object(served.http_port, f"/api/queue?id={reason['id']}")
    assert oldest["rcpts"][0]["to"] == "later@dest.test"
    # Who asks again at once, and however many, gets the same.
    assert {_object(served.http_port, "/api/reasons")["at_ms"] for _ in range(20)} == {told["at_ms"]}
    (site,) = [json.loads(line) for line in _get(served.http_port, "/api/dest").splitlines()]
    mine = _object(served.http_port, f"/api/reasons?transport=smtp&site={site['site']}")
    assert mine["messages"] == 2 and mine["reasons"][0]["text"] == reason["text"]
    assert json.loads(_get(served.http_port, f"/api/dest?name={site['site']}"))["hosts"][0]["address"] == LOOPBACK
    for nobody in ("reasons?site=x.test", "dest?name=[192.0.2.1]:25", "queue?id=00000000000G0"):
        assert _ask(served.http_port, f"/api/{nobody}")[0] == 404, nobody


def test_destinations_of_one_name_are_told_apart_by_their_key(lab, tmp_path):
    port = free_port()
    sinks = [lab.sink(Rule("rcpt", f"451 4.2.1 by {name}")) for name in "ab"]
    rows = [f"{name}@sender.test relay=[{LOOPBACK}]:{sink.port}" for name, sink in zip("ab", sinks)]
    (tmp_path / "senders").write_text("\n".join(rows) + "\n")
    config = Config({"http": f"{LOOPBACK}:{port}", "sender_routes": [str(tmp_path / "senders")]},
                    queue={"minimal_backoff_time": "1h"}, transports={"smtp": {"destination_by": "recipient"}})
    relay = lab.relay(config)
    for name in "aab":
        relay.send(f"{name}@sender.test", ["x@dest.test"])
    relay.wait_event("deferred", count=3)
    sites = wait_until(lambda: [site for site in map(json.loads, _get(port, "/api/dest").splitlines()) if site["deferred"]][1:]
                       and [json.loads(line) for line in _get(port, "/api/dest").splitlines()], 60, "both to have mail")
    assert [site["site"] for site in sites] == ["x@dest.test"] * 2 and len({site["key"] for site in sites}) == 2
    for site, name in zip(sites, "ab"):
        (says,) = {reason["text"] for reason in _object(port, "/api/reasons?" + urllib.parse.urlencode(_which(site)))["reasons"]}
        assert says == f"4.2.1 by {name}", site
    events = {site["key"]: site["deferred"] for site in _now(port)["worst"]}
    assert events == {site["key"]: site["deferred"] for site in sites}
    why = [json.loads(line) for line in _get(port, "/api/explain?site=x@dest.test").splitlines()]
    assert {row["key"] for row in why} == set(events)


def _which(site):
    return {name: site[name] for name in ("site", "transport", "key")}


def _now(port):
    connection, reply = _events(port)
    told = _event(reply, "now")
    connection.close()
    return told


def test_search_finds_senders_and_recipients(served):
    port = served.http_port
    for words, found in (("later@dest.test", 1), ("LATER@dest.test", 1), ("from@sender.test", 2), ("sender.test", 2), ("dest.test", 1), ("x@dest.test", 0)):
        told = _object(port, f"/api/search?q={words}")
        assert told["found"] == len(told["messages"]) == found and told["words"] == words, told
    assert told["read"] == 1 and not told["cut"]
    assert _object(port, "/api/search?q=dest.test")["sites"][0]["transport"] == "smtp"
    for question, found in (("queue=deferred", 2), ("queue=active", 0), ("flow=sender.test", 1), ("flow=other.test", 0), ("login=ann", 0),
                            ("queue=deferred&q=later@dest.test", 1)):
        told = _object(port, f"/api/search?{question}")
        assert told["found"] == len(told["messages"]) == found and told["next"] is None and bool(told["reasons"]) == (found > 0), question
    first = _object(port, "/api/search?queue=deferred")["messages"]
    assert _object(port, f"/api/search?queue=deferred&after={first[0]['id']}")["messages"] == first[1:]
    assert _ask(port, "/api/search?site=unknown.test")[0] == 404
    for wrong in ("", "?q=", "?q=x@", "?queue=none", "?queue=active&after=x!"):
        assert _ask(port, f"/api/search{wrong}")[0] == 400, wrong


def test_mail_for_a_domain_is_found_and_explained_in_every_spelling(lab):
    port = free_port()
    config = Config(settings={"http": f"{LOOPBACK}:{port}"}, queue={"minimal_backoff_time": "1h"})
    relay = lab.relay(config.route_all_to(lab.sink(Rule("rcpt", "451 4.3.0 come again")).port))
    with relay.client() as client:
        client.greet()
        client.send_mail("me@sender.test", ["x@bücher.test"], mail_params=" SMTPUTF8")
        client.send_mail("me@sender.test", ["y@xn--bcher-kva.test"])
        client.send_mail("me@sender.test", ["x@bucher.test"])
    wait_until(lambda: json.loads(relay.command("stats", "--json").stdout)['queue_messages{queue="deferred"}'] == 3, 60, "all to be put off")
    for domain in ("bücher.test", "BÜCHER.Test", "XN--bcher-kva.test"):
        assert f"{domain}: 2 messages for 2 recipients are deferred" in relay.command("explain", domain).stdout
        for words, found in ((domain, 2), (f"x@{domain}", 1), (f"Y@{domain}", 1), (f"z@{domain}", 0)):
            told = _object(port, f"/api/search?q={urllib.parse.quote(words)}")
            assert told["found"] == len(told["messages"]) == found, told


def test_the_shape_of_any_queue_and_of_its_senders(served):
    port = served.http_port
    for query, words in (("queue=deferred", ["deferred"]), ("queue=deferred&by=sender", ["-s", "deferred"]),
                         ("queue=incoming,active,hold,maildrop&by=recipient", ["incoming", "active", "hold", "maildrop"])):
        assert _get(port, f"/api/shape?{query}") == served.command("shape", "--json", *words).stdout
    assert len(_get(port, "/api/shape?queue=deferred&limit=1").splitlines()) == 2
    for wrong in ("queue=x", "queue=defer", "queue=,", "queue=deferred,x", "by=x", "limit=0"):
        assert _ask(port, f"/api/shape?{wrong}")[0] == 400, wrong


def test_a_long_queue_is_told_in_pages(lab):
    port, messages = free_port(), 1030
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}"}, queue={"minimal_backoff_time": "1h"}).route_all_to(free_port()))
    with relay.client() as client:
        client.greet()
        for n in range(messages):
            client.send_mail("a@b.test", [f"r{n}@dest.test"])
    def list_settled():
        stats = json.loads(relay.command("stats", "--json").stdout)
        return stats['queue_messages{queue="deferred"}'] == messages
    wait_until(list_settled, 60, "all to be put off")
    listed = relay.command("queue", "list", "--json").stdout.splitlines()
    assert len(listed) == messages
    assert _get(port, "/api/queue").splitlines() == listed[:1000]
    assert _get(port, "/api/queue?limit=10000").splitlines() == listed
    assert _get(port, "/api/queue?limit=501").splitlines() == listed[:501]


def test_health_is_good_while_mail_is_taken(served):
    assert _ask(served.http_port, "/healthz") == (200, "ok\n")


def test_nothing_else_is_there_and_nothing_can_be_changed(served):
    port = served.http_port
    for path in ("/etc/passwd", "/api", "/page.html", "/../page.js", "//", "/metrics/"):
        assert _ask(port, path)[0] == 404, path
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert _ask(port, "/metrics", method)[0] == 405, method
    assert _ask(port, "/metrics", "HEAD") == (200, "")
    assert _ask(port, "/api/queue", "HEAD") == (200, "")


def test_what_stands_for_other_bytes_leads_to_nothing_else(served):
    """The library ended a name at a byte of 0, and took a slash that stands for one for a part of the path."""
    port = served.http_port
    for path in ("/api/stats%00", "/api/stats%00/x", "/%00", "/page.js%00.css", "/healthz%00", "/api%2Fstats", "/api%2fstats", "/api/stats%", "/api/stats%2", "/api/stats%3F"):
        assert _ask(port, path)[0] == 404, path
    assert _ask(port, "/%61pi/s%74ats")[0] == 200  # of letters both spellings are the same
    assert _ask(port, "/api/queue?limit=1%00")[0] == 400
    assert _ask(port, "/api/dest?name=a%2Fb%")[0] == 404
    assert _ask(port, "/api/search?q=%64est.test") == _ask(port, "/api/search?q=dest.test")


def test_the_head_of_events_is_no_more_than_that(served):
    """Two requests of one connection: the second reply begins where the first has ended."""
    request = "{} HTTP/1.1\r\nHost: localhost\r\n{}\r\n"
    with socket.create_connection((LOOPBACK, served.http_port), timeout=60) as client:
        client.sendall((request.format("HEAD /events", "") + request.format("GET /healthz", "Connection: close\r\n")).encode())
        replies = b"".join(iter(lambda: client.recv(65536), b"")).split(b"\r\n\r\n")
    assert [reply[:15] for reply in replies] == [b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK", b"ok\n"]


def test_only_our_own_names_are_answered(served):
    port = served.http_port
    for host in ("localhost", f"localhost:{port}", "127.0.0.1", "[::1]:8025", "relay.test", "RELAY.test:80"):
        assert _ask(port, "/healthz", headers={"Host": host})[0] == 200, host
    for host in ("evil.test", "evil.test:8025", "127.0.0.1.evil.test", "relay.test.evil.test", "[::1].evil.test"):
        for path in ("/", "/metrics", "/api/queue", "/events", "/nothing"):
            assert _ask(port, path, headers={"Host": host})[0] == 403, host


def test_a_target_with_its_host_is_answered_by_that_host(served):
    """As a proxy's client asks. It was a path that is not there; and Host does not count then."""
    said = "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n"
    for target, host, status in (
        ("http://localhost/healthz", "localhost", 200), ("HTTP://relay.test:8025/healthz", "evil.test", 200), ("http://[::1]", "x", 200),
        ("http://localhost/api/queue?limit=x", "localhost", 400), ("http://evil.test/healthz", "localhost", 403),
        ("http:///healthz", "localhost", 403), ("http://localhost/nothing", "localhost", 404), ("/http://localhost/healthz", "localhost", 404),
    ):
        with socket.create_connection((LOOPBACK, served.http_port), timeout=60) as client:
            client.sendall(said.format(target, host).encode())
            assert int(client.makefile("rb").readline().split()[1]) == status, (target, host)


def test_without_a_hostname_the_name_of_the_machine_is_ours(lab):
    port = free_port()
    lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}", "hostname": ""}))
    name = socket.gethostname()
    assert _ask(port, "/healthz", headers={"Host": name})[0] == 200
    assert _ask(port, "/healthz", headers={"Host": f"{name}.evil.test"})[0] == 403
    connection, reply = _events(port)
    assert _event(reply, "now")["hostname"] == name
    connection.close()


def test_browsers_are_told_to_be_careful(served):
    for path in ("/", "/page.js", "/page.css", "/icon.svg", "/metrics", "/api/queue", "/nothing"):
        connection = http.client.HTTPConnection(LOOPBACK, served.http_port, timeout=60)
        connection.request("GET", path)
        reply = connection.getresponse()
        reply.read()
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Cache-Control"] == "no-store"
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert reply.headers["Access-Control-Allow-Origin"] is None
        connection.close()


def test_the_page_wants_nothing_from_elsewhere(served):
    pages = ("/", "/page.js", "/overview.js", "/destination.js")
    scripts = sorted(set(re.findall(r'"(/\w+\.js)"', "".join(_get(served.http_port, path) for path in pages))))
    assert len(scripts) == 8
    texts = [_get(served.http_port, path) for path in ("/", "/page.css", *scripts)]
    for text in texts:
        addresses = re.findall(r"https?:[^\s\"')]+|url\([^)]*\)|@import", text)
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", "".join(texts[2:]))
    assert not re.search(r"\son\w+=|\sstyle=|<script>|<style", texts[0])


def test_listeners_hear_each_second(served):
    connection, reply = _events(served.http_port)
    assert reply.headers["Content-Type"] == "text/event-stream"
    hour = _event(reply, "hour")
    assert hour["counts"] == ["received", "rejected", "sent", "deferred", "bounced"] and len(hour["points"][0]) == 6
    first, second = _event(reply, "now"), _event(reply, "now")
    assert 500 < second["at_ms"] - first["at_ms"] < 20000
    assert first["hostname"] == "relay.test" and first["sent"] == 1 and first["bounced"] == 1
    assert first["queue"]["deferred"] == 2 and first["active_limit"] == 20000
    connection.close()
    (site,) = [site for site in first["worst"] if site["last"] is not None]
    assert site["state"] == "alive" and site["deferred"] == 2 and site["waiting"] == 0


def test_listeners_are_few_and_leave_nothing_behind(served):
    for _ in range(3):
        all_of_them = [_events(served.http_port) for _ in range(16)]
        assert _ask(served.http_port, "/events")[0] == 503
        for connection, reply in all_of_them:
            reply.close()
            connection.close()


def test_a_listener_that_reads_nothing_holds_up_nobody(served):
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    deaf.connect((LOOPBACK, served.http_port))
    deaf.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    connection, reply = _events(served.http_port)
    for _ in range(4):
        _event(reply, "now")
    assert _ask(served.http_port, "/healthz")[0] == 200
    connection.close()
    deaf.close()


def test_the_end_waits_for_no_listener(lab):
    port = free_port()
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}"}))
    listeners = [_events(port) for _ in range(5)]
    for _, reply in listeners:
        _event(reply, "now")
    assert relay.stop() == 0
    for connection, reply in listeners:
        with contextlib.suppress(http.client.IncompleteRead, ConnectionResetError):
            reply.read()  # to its end, which has come
        connection.close()


def test_a_reload_moves_the_address_and_the_name(lab):
    first, second = free_port(), free_port()
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{first}"}))
    connection, reply = _events(first)
    _event(reply, "now")
    relay.config.settings |= {"http": f"{LOOPBACK}:{second}", "hostname": "other.test"}
    relay.write_config()
    assert relay.command("reload").returncode == 0
    connection.close()
    assert not accepts(first)
    assert _ask(second, "/healthz", headers={"Host": "other.test"})[0] == 200
    assert _ask(second, "/healthz", headers={"Host": "relay.test"})[0] == 403
    # All addresses, the same port: the old socket is closed first.
    relay.config.settings["http"] = f"0.0.0.0:{second}"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    assert _ask(second, "/healthz")[0] == 200
    with socket.create_server((LOOPBACK, 0)) as taken:
        relay.config.settings["http"] = f"{LOOPBACK}:{taken.getsockname()[1]}"
        relay.write_config()
        assert relay.command("reload").returncode == 1
    assert _ask(second, "/healthz")[0] == 200
    relay.config.settings["http"] = ""
    relay.write_config()
    assert relay.command("reload").returncode == 0
    assert not accepts(second)


# --- clients that are slow


def _trickle(clients, data):
    """Send each one byte, and return those that are still there."""
    left = []
    for client in clients:
        try:
            client.send(data)
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if not client.recv(100):
                    continue
            left.append(client)
        except OSError:
            continue
        finally:
            client.setblocking(True)
    return left


@pytest.mark.plain_only
def test_slow_clients_keep_nobody_out_and_end_in_time(lab):
    port = free_port()
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{port}"}))
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((LOOPBACK, port), 60)) for _ in range(64)]
        for client in slow:
            client.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        for _ in range(20):
            assert _get(port, "/healthz") == "ok\n"
        assert relay.running()
        began = time.monotonic()
        while slow and time.monotonic() - began < 60:
            slow = _trickle(slow, b"x")
            time.sleep(0.5)
        assert not slow
    assert _get(port, "/healthz") == "ok\n"
