# SPDX-License-Identifier: ISC
"""cluster { redis }: three relays that know what each other knows, by a real Redis; and by one that is away, slow, full, or strange."""

import contextlib
import datetime
import itertools
import json
import os
import threading
import time
import urllib.request

import pytest

from lab.bucket import Bucket
from lab.config import Config
from lab.delay import DelayProxy
from lab.load import Load
from lab.net import LOOPBACK, free_port, wait_until
from lab.orders import order as order_of_test
from lab.orders import with_orders
from lab.redis import Redis
from lab.sink import Sink

NAMES = ("alpha", "beta", "gamma")


def config_of(name, at, port, smtp=None, **cluster):
    """Return the configuration of a node whose mail all goes to this port."""
    settings = {"name": name, "redis": f"{LOOPBACK}:{at.port}", "redis_timeout": "1500ms"} | cluster
    lines = "".join(f"    {key} = {value if value in ('true', 'false') else chr(34) + value + chr(34)}\n" for key, value in settings.items())
    queue = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
    config = Config(queue=queue, extra=f"cluster {{\n{lines}}}\n").route_all_to(port)
    config.transports["smtp"] = {"site_patience": "0s", "host_backoff_max": "5m"} | (smtp or {})
    return config


@pytest.fixture(name="redis")
def fixture_redis(lab):
    """A Redis that runs."""
    one = Redis(lab.folder("redis"))
    lab.callback(one.close)
    return one.start()


def wait_ready(*relays, count=1):
    """Wait until these have found Redis so often."""
    for relay in relays:
        relay.wait_event("cluster", state="ready", count=count)


def nodes_of(lab, redis, port, **settings):
    """Start three nodes."""
    relays = [lab.relay(config_of(name, redis, port, **settings)) for name in NAMES]
    wait_ready(*relays)
    return relays


def wait_beats(redis, *names, prefix="sluice:", count=2):
    """Wait until these nodes have written so often that they are there, and so have done what they do meanwhile."""
    for name in names:
        for _ in range(count):
            before = redis.value("HGET", f"{prefix}nodes", name)
            wait_until(lambda row=before, node=name: redis.value("HGET", f"{prefix}nodes", node) != row, what=f"a heartbeat of {name}")


def test_an_outage_is_known_by_all_and_probed_by_one(lab, redis):
    port = free_port()
    relays = nodes_of(lab, redis, port)
    relays[0].send()
    relays[0].wait_event("host", state="out")
    for relay in relays[1:]:
        assert relay.wait_event("host", state="out")["node"] == "alpha"
    for relay in relays[1:]:
        assert relay.send().code == 250
        relay.wait_event("deferred")
    wait_until(lambda: any(int(one["failures"]) == 2 for relay in relays for one in relay.events("host", state="out")), 60, "a probe")
    own = [one for relay in relays for one in relay.events("host", state="out") if "node" not in one.keys]
    assert sorted(int(one["failures"]) for one in own) == list(range(1, len(own) + 1)), own
    sink = Sink(port=port)
    lab.callback(sink.close)
    sink.wait_messages(3, 60)
    back = [relay.wait_event("host", state="back") for relay in relays]
    assert len([one for one in back if "node" not in one.keys]) == 1


def test_who_serves_a_host_does_not_believe_that_it_is_out(lab, redis):
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port, {"connection_idle_timeout": "5s"})) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    alpha.send()
    sink.wait_messages(1)
    key = f"127.0.0.1:{sink.port}/opportunistic/"
    stamp = int(time.time() * 1000)
    wrong = f"{key}\nhealth\t{stamp}\tzeta\t\taddress=127.0.0.1\tport={sink.port}\tfailures=5\tretry={stamp + 60000}\tcode=0\tdsn=4.4.1\tby=\tcalled=\twhen={stamp}\twhy=gone"
    assert redis.ask("PUBLISH", "sluice:facts", wrong) == ":2"
    beta.wait_event("host", state="out", node="zeta")
    alpha.send(recipients=["again@dest.test"])
    sink.wait_messages(2)
    assert not alpha.events("host", state="out")


def test_a_pace_that_one_was_told_is_kept_by_all(lab, redis):
    """Those for whom the host is new, too: what they know of it they have heard."""
    port = free_port()
    server = Bucket(port, at="end", words="421 4.7.28 rate limited, try again later", rate=2, room=10)
    lab.callback(server.close)
    server.begin()
    alpha, beta, gamma = nodes_of(lab, redis, port)
    beta.send()
    beta.wait_event("sent")
    Load(alpha.port, 60, sessions=10).finish()
    alpha.wait_event("pace", state="paced")
    assert "rate limited" in beta.wait_event("pace", state="paced")["reply"]
    site = beta.events("sent")[0]["site"]
    gamma.send()
    assert gamma.wait_event("pace")["reason"] == "refused"  # what was heard; by its own first refusal it would ask: nothing is taken
    order(alpha, "dest", "reset", site, "--cluster")
    for relay in (alpha, beta, gamma):
        relay.wait_event("pace", state="free", reason="forgotten")


def order(relay, *words):
    """Carry out a command, and return what it says."""
    done = relay.command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def suspended(relay, name):
    """Say whether the relay lists the name as suspended."""
    return any("suspended" in line and name in line for line in order(relay, "dest", "list").splitlines())


def test_a_flow_is_suspended_on_all_nodes_also_on_those_that_start_later(lab, redis):
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    gamma = lab.relay(config_of("gamma", redis, sink.port), start=False)
    wait_ready(alpha, beta)
    assert order(alpha, "flow", "suspend", "sender.test", "--cluster") == "sender.test suspended\n"
    gamma.start()
    for relay in (alpha, beta, gamma):
        relay.wait_event("flow", flow="sender.test", state="suspended")
        assert order(relay, "flow", "list").startswith("sender.test suspended ")
        relay.send("x@sender.test")
        relay.wait_event("deferred", flow="sender.test")
    assert not sink.messages
    order(beta, "flow", "suspend", "sender.test", "--for", "1h", "--cluster")
    for relay in (alpha, beta, gamma):
        wait_until(lambda: json.loads(order(relay, "flow", "show", "sender.test", "--json")).get("until"), what="its end")  # noqa: B023
    assert order(gamma, "flow", "resume", "sender.test", "--cluster") == "sender.test resumed\n"
    sink.wait_messages(3)
    redis.kill()
    alpha.wait_event("cluster", state="away")
    refused = alpha.command("flow", "suspend", "sender.test", "--cluster")
    assert refused.returncode == 1 and "nothing was done" in refused.stderr
    assert alpha.command("flow", "show", "--cluster").returncode == 2
    for command in ("dest", "user"):
        assert alpha.command(command, "list", "--cluster").returncode == 2


def test_a_flow_order_for_all_nodes_wants_a_cluster_and_so_does_their_list(lab):
    alone = lab.relay(Config())
    for words in (("suspend", "red"), ("list",), ("list", "red")):
        refused = alone.command("flow", *words, "--cluster")
        assert refused.returncode == 1 and "alone" in refused.stderr


def flows_of_all(relay, *name):
    """Ask all nodes for their flows: (rows by flow, nodes by name)."""
    rows = list(map(json.loads, order(relay, "flow", "list", *name, "--cluster", "--json").splitlines()))
    return {one["flow"]: one for one in rows if "flow" in one}, {one["node"]: one for one in rows if "node" in one}


def test_flows_are_listed_once_with_the_sums_of_all_nodes(lab, redis):
    sink = lab.sink()
    relays = nodes_of(lab, redis, sink.port)
    for relay in relays:
        relay.send("x@shared.test")
        relay.send("x@shared.test", ["a@dest.test", "b@dest.test"])
    relays[1].send("x@beta.test")
    wait_until(lambda: flows_of_all(relays[2])[0].get("shared.test", {}).get("sent") == 9, 60, "all that was sent")
    wait_until(lambda: flows_of_all(relays[2])[0].get("beta.test", {}).get("sent") == 1, 60, "what beta has sent")
    flows, nodes_asked = flows_of_all(relays[0])
    assert {name: one["answered"] for name, one in nodes_asked.items()} == dict.fromkeys(NAMES, True)
    assert sorted(flows) == ["beta.test", "shared.test"]
    shared, beta = flows["shared.test"], flows["beta.test"]
    assert (shared["nodes"], beta["nodes"]) == (list(NAMES), ["beta"])
    assert (shared["hour"]["sent"], shared["deferred"], shared["refused"], shared["messages"], shared["weight"]) == (9, 0, 0, 0, 1)
    order(relays[1], "flow", "suspend", "shared.test")
    for relay in (relays[0], relays[1]):
        relay.send("y@shared.test")
        assert flows_of_all(relay, "shared.test")[0]["shared.test"]["suspended_at"] == ["beta"]
    line = order(relays[0], "flow", "list", "--cluster").splitlines()[0]
    assert line.startswith("shared.test partly weight=1 ") and line.endswith(" nodes=3 suspended_at=beta"), line
    order(relays[0], "flow", "suspend", "shared.test", "--cluster")
    wait_until(lambda: flows_of_all(relays[0])[0]["shared.test"]["suspended"], 60, "all to have suspended it")
    assert "-- 3 of 3 nodes have answered\n" in order(relays[0], "flow", "list", "--cluster")
    nobody = relays[0].command("flow", "list", "nobody.test", "--cluster")
    assert nobody.returncode == 1 and "no mail of such a flow" in nobody.stderr


def test_a_node_that_does_not_answer_is_named(lab, redis):
    sink = lab.sink()
    alpha, beta, gamma = nodes_of(lab, redis, sink.port)
    for relay in (alpha, beta, gamma):
        relay.send("x@shared.test")
        relay.wait_event("sent")
    wait_until(lambda: flows_of_all(alpha)[0].get("shared.test", {}).get("sent") == 3, 60, "all that was sent")
    gamma.kill()
    # Until it is missed it is waited for.
    flows, asked = flows_of_all(alpha)
    assert {name: one["answered"] for name, one in asked.items()} == {"alpha": True, "beta": True, "gamma": False}
    assert (flows["shared.test"]["sent"], flows["shared.test"]["nodes"]) == (2, ["alpha", "beta"])
    wait_until(lambda: flows_of_all(alpha)[1]["gamma"]["state"] == "gone", 60, "gamma to be missed")
    said = order(beta, "flow", "list", "--cluster")
    assert "-- 2 of 3 nodes have answered\ngamma has not answered: gone, seen " in said
    redis.kill()
    alpha.wait_event("cluster", state="away")
    refused = alpha.command("flow", "list", "--cluster")
    assert refused.returncode == 1 and "no node was asked: Redis is away" in refused.stderr and not refused.stdout


def test_what_a_node_knows_of_many_flows_comes_in_pieces(lab, redis):
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    senders = [f"x@{number:03d}.{'long.' * 12}test" for number in range(400)]
    with beta.client() as client:
        client.greet()
        for sender in senders:
            client.command(f"MAIL FROM:<{sender}>")
            client.command("RCPT TO:<a@dest.test>")
            client.command("DATA", 354)
            client.command("Subject: one\r\n\r\n.")
    sink.wait_messages(len(senders), 60)
    wait_until(lambda: sum(one["sent"] for one in flows_of_all(alpha)[0].values()) == len(senders), 60, "all flows of beta")
    assert len(flows_of_all(alpha)[0]) == len(senders)


def test_strange_answers_and_questions_do_no_harm(lab, redis):
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    beta.send("x@shared.test")
    for payload in ("", "\t", "\t\t\t\n\n", "zeta", b"zeta\tx\tflow\x00", "zeta\ttoken\twhat", "ze\x1bta\ttoken\tflow", "zeta\t" + "t" * 100 + "\tflow"):
        for channel in ("asked", "told:alpha", "told:beta"):
            for _ in range(3):
                redis.ask("PUBLISH", f"sluice:{channel}", payload)
    wait_until(lambda: "shared.test" in flows_of_all(alpha)[0], 60, "what beta has sent")
    assert sorted(flows_of_all(beta)[1]) == ["alpha", "beta"]


def test_an_order_holds_on_all_nodes_also_on_those_that_start_later(lab, redis):
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    gamma = lab.relay(config_of("gamma", redis, sink.port), start=False)
    wait_ready(alpha, beta)
    site = f"[127.0.0.1]:{sink.port}"
    assert order(alpha, "dest", "suspend", site, "--cluster") == f"{site} suspended\n"
    order(alpha, "user", "suspend", "someone", "--cluster")
    gamma.start()
    for relay in (alpha, beta, gamma):
        relay.wait_event("site", state="suspended")
        wait_until(lambda: '"suspended":true' in relay.command("user", "list", "--json").stdout, what="the login")  # noqa: B023
        relay.send()
        relay.wait_event("deferred", dsn="4.3.2")
    # One that is told only here stays here, over a restart too.
    order(beta, "dest", "suspend", "here.test")
    gamma.stop()
    order(beta, "dest", "resume", site, "--cluster")
    gamma.start()
    gamma.wait_event("site", state="resumed")
    gamma.send()
    sink.wait_messages(3)
    beta.restart()
    wait_ready(beta, count=2)
    order(alpha, "dest", "reset", site, "--cluster")
    names = {relay: [one["site"] for one in relay.events("site", state="suspended") if "window" not in one.keys] for relay in (alpha, beta, gamma)}
    assert names == {alpha: [site], beta: [site, "here.test", "here.test"], gamma: [site, site]}


def test_an_order_whose_effect_could_not_be_kept_is_carried_out_again(lab, redis):
    alpha, beta = [lab.relay(config_of(name, redis, free_port())) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    order(alpha, "dest", "suspend", "before.test", "--cluster")
    wait_suspended(beta, "before.test")
    in_the_way = f"{beta.spool}/destdb.new"
    os.mkdir(in_the_way)
    order(alpha, "dest", "suspend", "some.test", "--cluster")
    wait_suspended(beta, "some.test")
    beta.wait_event("destdb")
    wait_beats(redis, "beta")
    beta.kill()
    os.rmdir(in_the_way)
    beta.start()
    wait_ready(beta, count=2)
    beta.wait_event("site", 60, site="some.test", state="suspended", count=2)


@contextlib.contextmanager
def told_all_the_time(redis, commands):
    """Have Redis carry out what this returns for a number, for each number, as fast as it can."""
    stop = threading.Event()

    def tell():
        for number in itertools.count(1):
            if stop.is_set():
                return
            redis.tell(commands(number))

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("what", ["orders", "questions"])
def test_a_relay_ends_whatever_other_nodes_want_of_it_meanwhile(lab, redis, what):
    of = {"orders": lambda n: [("HSET", "sluice:orders", "id", "a" * 32, "last", str(n), f"dest n{n % 50}.test", f"{n}\tsuspend\tx"), ("PUBLISH", "sluice:news", str(n))],
          "questions": lambda n: [("PUBLISH", "sluice:asked", f"x\t{n:016x}\tflow list")]}
    alpha = lab.relay(config_of("alpha", redis, free_port()))
    for times in range(1, 4):
        wait_ready(alpha, count=times)
        with told_all_the_time(redis, lambda n: of[what](n) * 5):
            wait_beats(redis, "alpha", count=1)
            alpha.stop()
        alpha.start()


def test_a_suspension_with_an_end_ends_on_all_nodes(lab, redis):
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    gamma = lab.relay(config_of("gamma", redis, sink.port), start=False)
    wait_ready(alpha, beta)
    said = order(alpha, "dest", "suspend", "some.test", "--for", "4s", "--cluster")
    assert said.startswith("some.test suspended until "), said
    until = {relay: relay.wait_event("site", state="suspended")["until"] for relay in (alpha, beta)}
    assert until[alpha] == until[beta]
    for relay in (alpha, beta):
        assert relay.wait_event("site", state="resumed")["reason"] == "its time is over"
        assert not suspended(relay, "some.test")
    order(alpha, "dest", "suspend", "other.test", "--cluster")
    gamma.start()
    wait_suspended(gamma, "other.test")
    assert not suspended(gamma, "some.test")  # that is over


def wait_suspended(relay, name):
    """Wait until the relay has suspended this."""
    relay.wait_event("site", 60, site=name, state="suspended")


@pytest.mark.plain_only
def test_an_end_is_the_same_moment_on_a_node_whose_queue_goes_by_another_clock(lab, redis, monkeypatch):
    """That clock goes on as it was when the system's is mended, while there is mail."""
    monkeypatch.setenv("SLUICE_BIN", with_orders("jumping"))
    port = free_port()
    alpha, beta = [lab.relay(config_of(name, redis, port), start=False) for name in NAMES[:2]]
    alpha.environment["SLUICE_JUMP"] = "-7200"
    wait_ready(alpha.start(), beta.start())
    alpha.send()
    alpha.wait_event("deferred")
    order_of_test(alpha, "jump", "0")
    alpha.wait_event("clock")
    for by, name in ((alpha, "one.test"), (beta, "two.test")):
        order(by, "dest", "suspend", name, "--for", "1h", "--cluster")
        for relay in (alpha, beta):
            wait_until(lambda: suspended(relay, name), 60, f"{name} to be suspended")  # noqa: B023
        ends = [relay.wait_event("site", site=name, state="suspended")["until"] for relay in (alpha, beta)]
        moments = [datetime.datetime.fromisoformat(one.replace("Z", "+00:00")).timestamp() for one in ends]
        assert abs(moments[0] - moments[1]) <= 2, ends  # whole seconds of either


def test_a_reset_leaves_a_suspension_to_nodes_that_start_later(lab, redis):
    port = free_port()
    alpha, later = [lab.relay(config_of(name, redis, port), start=False) for name in NAMES[:2]]
    wait_ready(alpha.start())
    for verb in ("suspend", "reset"):
        order(alpha, "user", verb, "someone", "--cluster")
        order(alpha, "dest", verb, "some.test", "--cluster")
        order(alpha, "flow", verb, "bulk", "--cluster")
    order(alpha, "user", "suspend", "nobody", "--cluster")
    order(alpha, "user", "resume", "nobody", "--cluster")
    order(alpha, "user", "reset", "nobody", "--cluster")
    later.start()
    for relay in (alpha, later):
        wait_suspended(relay, "some.test")
        relay.wait_event("flow", flow="bulk", state="suspended")
        wait_until(lambda: '"suspended":true' in relay.command("user", "show", "someone", "--json").stdout, what="the login")  # noqa: B023
        assert '"suspended":true' not in relay.command("user", "show", "nobody", "--json").stdout


def test_an_order_whose_number_was_given_before_is_carried_out_by_all(lab, redis):
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    order(alpha, "dest", "suspend", "one.test", "--cluster")
    marks = redis.value("HGET", "sluice:orders", "marks")
    order(alpha, "dest", "suspend", "two.test", "--cluster")
    for relay in (alpha, beta):
        wait_suspended(relay, "two.test")
    # It comes back without its last write.
    redis.ask("HDEL", "sluice:orders", "dest two.test")
    redis.ask("HSET", "sluice:orders", "last", "1", "marks", marks)
    order(alpha, "dest", "suspend", "three.test", "--cluster")
    assert redis.value("HGET", "sluice:orders", "last") == b"2"
    for relay in (alpha, beta):
        wait_suspended(relay, "three.test")
        relay.wait_event("cluster", state="lost")


def test_orders_that_redis_has_lost_are_missed_when_it_is_back(lab, redis):
    """And not at the next order only, which may be weeks later: nodes that start meanwhile know of none."""
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    order(alpha, "dest", "suspend", "one.test", "--cluster")
    for relay in (alpha, beta):
        wait_suspended(relay, "one.test")
    for again in (1, 2):
        redis.kill()
        redis.start()
        wait_ready(alpha, beta, count=1 + again)
        for relay in (alpha, beta):
            relay.wait_event("cluster", state="lost")
    assert [len(relay.events("cluster", state="lost")) for relay in (alpha, beta)] == [1, 1]  # nothing was there to be lost again
    order(beta, "dest", "suspend", "two.test", "--cluster")
    wait_suspended(alpha, "two.test")
    beta.restart()
    wait_ready(beta, count=4)
    assert not beta.events("cluster", state="lost")[1:]


def test_orders_in_whose_place_another_program_has_put_something_are_missed(lab, redis):
    sink = lab.sink()
    alpha = lab.relay(config_of("alpha", redis, sink.port))
    wait_ready(alpha)
    order(alpha, "dest", "suspend", "one.test", "--cluster")
    wait_suspended(alpha, "one.test")
    redis.ask("DEL", "sluice:orders")
    redis.ask("LPUSH", "sluice:orders", "something")
    alpha.restart()
    alpha.wait_event("cluster", state="lost")


def test_what_is_lost_under_a_standing_connection_is_told_again_and_missed(lab, redis):
    port = free_port()
    alpha, beta = [lab.relay(config_of(name, redis, port)) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    alpha.send()
    alpha.wait_event("host", state="out")
    order(alpha, "dest", "suspend", "one.test", "--cluster")
    wait_suspended(beta, "one.test")
    wait_beats(redis, "alpha", "beta")
    assert redis.ask("FLUSHALL") == "+OK"
    for relay in (alpha, beta):
        relay.wait_event("cluster", state="lost")
    wait_until(lambda: redis.keys("sluice:host:*"), what="the host that is out")
    wait_beats(redis, "alpha", "beta")
    assert [len(relay.events("cluster", state="lost")) for relay in (alpha, beta)] == [1, 1]
    assert not alpha.events("cluster", state="away")


def nodes(relay):
    """Return what `sluice node list` says, by name."""
    done = relay.command("node", "list", "--json")
    return {one["node"]: one for one in map(json.loads, done.stdout.splitlines())}


def metrics(relay):
    """Return what the relay counts."""
    return json.loads(order(relay, "stats", "--json"))


def test_any_node_knows_who_is_there_and_what_all_have_done(lab, redis):
    sink = lab.sink()
    relays = nodes_of(lab, redis, sink.port)
    for relay in relays:
        relay.send()
    sink.wait_messages(3)
    wait_until(lambda: sum(one["sent"] for one in nodes(relays[1]).values()) == 3, what="all nodes' counters")
    assert sorted(nodes(relays[2])) == sorted(NAMES)
    assert all(one["state"] == "working" and one["seen"] < 5 for one in nodes(relays[0]).values())
    wait_until(lambda: metrics(relays[0])['cluster_sum{counter="received"}'] == 3, what="the sum")
    relays[2].kill()
    wait_until(lambda: nodes(relays[0])["gamma"]["state"] == "gone", 60, "gamma to be missed")
    assert metrics(relays[0])['cluster_nodes{state="gone"}'] == 1
    assert "gone" in order(relays[0], "node", "list")


def test_mail_flows_while_redis_is_away_or_stands_still(lab, redis):
    sink = lab.sink()
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    sent = 0
    for times, (leave, come) in enumerate(((redis.kill, redis.start), (redis.pause, redis.go_on)), start=1):
        leave()
        for relay in (alpha, beta):
            relay.wait_event("cluster", state="away", count=times)
            relay.send()
            sent += 1
            sink.wait_messages(sent)
            assert metrics(relay)["cluster_away"] == 1
            done = relay.command("dest", "suspend", "elsewhere.test", "--cluster")
            assert done.returncode == 1 and "Redis is away" in done.stderr
        come()
        wait_ready(alpha, beta, count=times + 1)
    for relay in (alpha, beta):
        assert len(relay.events("cluster", state="away")) == 2, "said once each"
        assert metrics(relay)["cluster_away"] == 0


def test_a_slow_redis_slows_no_mail(lab, redis):
    """Were Redis waited for, no message could be there sooner than an answer, however quick the machine is."""
    sink = lab.sink()
    one_way = 0.1
    with contextlib.closing(DelayProxy(redis.port, one_way=one_way)) as proxy:
        alpha, beta = [lab.relay(config_of(name, proxy, sink.port)) for name in NAMES[:2]]
        wait_ready(alpha, beta)
        took, number = 60.0, 0
        while took >= 2 * one_way:
            assert number < 200, f"no message was there sooner than in {took} s"
            began = time.monotonic()
            (alpha, beta)[number % 2].send()
            number += 1
            sink.wait_messages(number)
            took = min(took, time.monotonic() - began)
        order(alpha, "dest", "suspend", "some.test", "--cluster")
        beta.wait_event("site", state="suspended")
        assert not alpha.events("cluster", state="away")


def test_a_name_is_looked_up_and_one_that_two_nodes_have_is_said(lab, redis):
    sink = lab.sink()
    nsd = lab.nsd({"example.test": "redis A 127.0.0.1"})
    twins = [lab.relay(config_of("alpha", redis, sink.port, redis=f"redis.example.test:{redis.port}").resolve_with(nsd)) for _ in range(2)]
    wait_ready(*twins)
    for relay in twins:
        relay.wait_event("cluster", state="twice")


def test_a_probe_needs_no_redis(lab, redis):
    port = free_port()
    alpha = lab.relay(config_of("alpha", redis, port))
    wait_ready(alpha)
    redis.pause()
    alpha.send()
    alpha.wait_event("host", state="out", count=2)
    sink = Sink(port=port)
    lab.callback(sink.close)
    sink.wait_messages(1)


@pytest.mark.plain_only
def test_a_node_whose_clock_is_ahead_says_so_once_and_is_not_believed(lab, redis, monkeypatch):
    """What it tells would be newer than all that others see until their clocks are there."""
    monkeypatch.setenv("SLUICE_BIN", with_orders("jumping"))
    ports = [free_port() for _ in range(3)]
    alpha, beta = [lab.relay(config_of(name, redis, ports[0]), start=False) for name in NAMES[:2]]
    for relay in (alpha, beta):
        relay.config.routes = {f"host{number}.test": {"relay": [f"[{LOOPBACK}]:{port}"]} for number, port in enumerate(ports)}
        relay.write_config()
    alpha.environment["SLUICE_JUMP"] = "600"
    wait_ready(alpha.start(), beta.start())
    alpha.send(recipients=["to@host0.test", "to@host1.test"])
    alpha.wait_event("host", state="out", count=2)
    assert "ahead of Redis'" in alpha.wait_event("cluster", state="ahead")["reason"]
    # What beta sees counts for both, though by the clock of alpha it is old.
    beta.send(recipients=["to@host2.test"])
    alpha.wait_event("host", state="out", node="beta")
    assert not beta.events("host", state="out", node="alpha")
    order_of_test(alpha, "jump", "0")
    alpha.wait_event("cluster", state="ready", count=2)
    beta.wait_event("host", state="out", node="alpha")
    assert len(alpha.events("cluster", state="ahead")) == 1


def test_a_redis_without_memory_is_said_once_and_facts_are_heard_all_the_same(lab, redis):
    port = free_port()
    alpha, beta = [lab.relay(config_of(name, redis, port)) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    redis.ask("CONFIG", "SET", "maxmemory", "1")
    alpha.wait_event("cluster", state="full")
    alpha.send()
    beta.wait_event("host", state="out", node="alpha", timeout=60)
    assert metrics(alpha)["cluster_full"] == 1
    redis.ask("CONFIG", "SET", "maxmemory", "0")
    alpha.wait_event("cluster", state="ready", count=2)
    wait_beats(redis, "alpha")
    assert len(alpha.events("cluster", state="full")) == 1


def test_strange_data_in_redis_does_no_harm(lab, redis):
    sink = lab.sink()
    key = f"127.0.0.1:{sink.port}/opportunistic/"
    for name in ("nodes", "orders", f"host:{key}"):
        redis.ask("SET", f"sluice:{name}", "a string")
    redis.ask("HSET", "sluice:host:one", "key", "one", "health", "no stamp", "speed", "1\tx\t\tr=-5", "later", "9")
    redis.ask("HSET", "sluice:host:two", "key", "192.0.2.1:25/none/", "health", b"\xff\x00\t\t\t", "limit", "99999999999999\ty\t\tlimit=1")
    redis.ask("HSET", "sluice:host:three", "no", "key")
    redis.ask("LPUSH", "sluice:host:four", "a", "b")
    alpha, beta = [lab.relay(config_of(name, redis, sink.port)) for name in NAMES[:2]]
    wait_ready(alpha, beta)
    for payload in ("", "\n\n\n", "key", b"key\nhealth\t\x00", "key\nhealth\t1\t\t", "x" * 100000, f"{key}\nhealth\t{int(time.time() * 1000)}\tz\t\tfailures=-1\tretry=x"):
        for channel in ("facts", "news"):
            redis.ask("PUBLISH", f"sluice:{channel}", payload)
    alpha.send()
    beta.send()
    sink.wait_messages(2)
    wait_until(lambda: sorted(nodes(beta)) == ["alpha", "beta"], what="the nodes")
    order(alpha, "dest", "suspend", "some.test", "--cluster")
    beta.wait_event("site", state="suspended")
    for field in ("dest bad.test\nsite=bad.test", "dest \x1bbad.test", "dest ", "what bad.test", "dest"):
        redis.ask("HSET", "sluice:orders", field, "50\tsuspend\tx")
    redis.ask("HSET", "sluice:orders", "dest bad.test", "50\tdestroy\tx", "dest also-bad.test", "x")
    redis.ask("HSET", "sluice:nodes", "\x1b[2J", "1\tstate=working", "\x9b2J", f"{int(time.time() * 1000)}\tstate=working", "delta", "state=working", "epsilon", "x\t")
    order(alpha, "dest", "suspend", "other.test", "--cluster")
    wait_until(lambda: [one["site"] for one in beta.events("site", state="suspended")] == ["some.test", "other.test"], what="these and no other")
    wait_beats(redis, "beta", count=4)
    assert order(beta, "node", "list").isascii() and "\x1b" not in order(beta, "node", "list")
    assert not alpha.events("cluster", state="away")


def test_numbers_in_redis_that_nobody_has_overflow_nothing(lab, redis):
    most, least = 2**63 - 1, -(2**63)
    sink = lab.sink()
    host = f"127.0.0.1:{sink.port}/opportunistic/"
    redis.ask("HSET", f"sluice:host:{host}", "key", host, "doubts:x", str(most), "doubts:y", str(most), "doubts:z", str(least))
    redis.ask("HSET", "sluice:orders", "id", "0" * 32, "last", "52", "marks", "",
              "dest late.test", f"51\tsuspend\tx\t{most}", "dest early.test", f"52\tsuspend\tx\t{least}")
    for name, seen in (("delta", int(time.time() * 1000)), ("epsilon", most), ("zeta", least)):
        redis.ask("HSET", "sluice:nodes", name, f"{seen}\tstate=working\tqueue_active={most}\tqueue_hold={most}\tsent={least}")
    alpha = lab.relay(config_of("alpha", redis, sink.port))
    wait_ready(alpha)
    redis.ask("PUBLISH", "sluice:facts", f"{host}\ndoubts\t{most}")
    alpha.wait_event("site", state="suspended", site="late.test")
    alpha.send(recipients=["to@late.test"])
    assert " until 9999-12-31" in alpha.wait_event("deferred", to="to@late.test")["reply"]
    alpha.send(recipients=["to@early.test"])
    sink.wait_messages(1)
    wait_until(lambda: "delta" in nodes(alpha), what="the nodes")
    assert all(0 <= one["queue_active"] <= 10**15 and one["sent"] < 10**15 for one in nodes(alpha).values())
    assert int(order(alpha, "node", "list").splitlines()[-1].split()[-1]) in range(4 * 10**15, 4 * 10**15 + 3)  # those of alpha come in meanwhile


def test_tls_and_an_access_list(lab, certificates, tmp_path):
    own, key = certificates.odd("redis", "redis", f"IP:{LOOPBACK}")
    acl = tmp_path / "users.acl"
    acl.write_text("user default off\nuser mail on >right ~mail:* &mail:* +@read +@write +@scripting +publish +subscribe +ping +time +type\n")
    password = tmp_path / "password"
    password.write_text("wrong\n")
    redis = Redis(lab.folder("redis"), certificate=(own, key, certificates.ca), aclfile=str(acl))
    lab.callback(redis.close)
    redis.start()
    sink = lab.sink()
    settings = {
        "redis_tls": "true", "redis_ca": certificates.ca, "redis_certificate": own, "redis_key": key,
        "redis_user": "mail", "redis_password": str(password), "redis_prefix": "mail:",
    }
    config = config_of("alpha", redis, sink.port, {"destination_rate": "1000/s"}, **settings)
    config.extra += 'limit "client" { messages = "1000/s" }\n'
    alpha = lab.relay(config)
    assert "WRONGPASS" in alpha.wait_event("cluster", state="away")["reason"]
    password.write_text("right\n")
    wait_ready(alpha)
    wait_until(lambda: "alpha" in nodes(alpha) and nodes(alpha)["alpha"]["seen"] < 5, what="the heartbeat")
    alpha.send()
    sink.wait_messages(1)
    assert metrics(alpha)['cluster_commands_total{result="refused"}'] == 0
    stranger = lab.relay(config_of("beta", redis, sink.port, **settings | {"redis_ca": "/etc/ssl/certs/ca-certificates.crt"}))
    stranger.wait_event("cluster", state="away")
    assert not stranger.events("cluster", state="ready")


def test_clusters_with_prefixes_of_their_own_share_nothing(lab, redis):
    sink = lab.sink()
    ours, theirs = [lab.relay(config_of("alpha", redis, sink.port, {"destination_rate": "1000/s"}, redis_prefix=prefix)) for prefix in ("ours:", "theirs/")]
    wait_ready(ours, theirs)
    order(ours, "dest", "suspend", "some.test", "--cluster")
    for relay in (ours, theirs):
        relay.send()
    sink.wait_messages(2)
    order(theirs, "dest", "suspend", "other.test", "--cluster")
    theirs.wait_event("site", state="suspended")
    for prefix in ("ours:", "theirs/"):
        wait_beats(redis, "alpha", prefix=prefix)
    assert [[one["site"] for one in relay.events("site", state="suspended")] for relay in (ours, theirs)] == [["some.test"], ["other.test"]]
    keys = {key.decode() for key in redis.keys("*")}
    assert all(key.startswith(("ours:", "theirs/")) for key in keys), keys
    assert {"ours:nodes", "theirs/nodes", "ours:since", "theirs/since", "ours:orders", "theirs/orders"} <= keys
    assert not ours.events("cluster", state="twice") + theirs.events("cluster", state="twice")


def test_clusters_in_databases_of_their_own_share_nothing(lab, redis):
    port = free_port()
    ours, theirs = [lab.relay(config_of(name, redis, port, redis_database=number)) for name, number in (("alpha", "3"), ("beta", "0"))]
    comrade = lab.relay(config_of("gamma", redis, port, redis_database="3"))
    wait_ready(ours, theirs, comrade)
    ours.send()
    order(ours, "dest", "suspend", "some.test", "--cluster")
    assert comrade.wait_event("host", state="out")["node"] == "alpha"
    comrade.wait_event("site", state="suspended")
    order(theirs, "dest", "suspend", "other.test", "--cluster")
    theirs.wait_event("site", state="suspended")
    assert [[one["site"] for one in relay.events("site", state="suspended")] for relay in (comrade, theirs)] == [["some.test"], ["other.test"]]
    assert not theirs.events("host", state="out")
    assert "1 of 1 nodes" in theirs.command("flow", "list", "--cluster").stdout


def test_a_prefix_with_characters_of_patterns_means_itself(lab, redis):
    port = free_port()
    known, later = [config_of(name, redis, port, redis_prefix=r"mail[12]\\*:") for name in ("alpha", "beta")]
    first = lab.relay(known)
    wait_ready(first)
    first.send()
    first.wait_event("host", state="out")
    wait_until(lambda: redis.keys(r"mail\[12\]\\\*:host:*"), 60, "what is known of the host")
    first.stop()
    assert lab.relay(later).wait_event("host", state="out", timeout=20)["node"] == "alpha"


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"redis": "127.0.0.1"}, "is not HOST:PORT"),
        ({"redis_tls": True, "redis_ca": ""}, "needs a redis_ca"),
        ({"redis_key": "/a/key"}, "go together"),
        ({"redis_user": "mail"}, "needs a redis_password"),
        ({"redis_password": "secret"}, "not an absolute path"),
        ({"name": "two words"}, "has blanks"),
    ],
)
def test_what_check_finds_wrong(lab, settings, fault):
    lines = "".join(f"    {name} = {json.dumps(value)}\n" for name, value in ({"redis": "127.0.0.1:6379"} | settings).items())
    relay = lab.relay(Config(extra=f"cluster {{\n{lines}}}\n"), start=False)
    done = relay.command("check")
    assert done.returncode == 1
    assert fault in done.stderr + done.stdout


@pytest.mark.plain_only
@pytest.mark.xdist_group("browser")
def test_the_page_shows_all_nodes(lab, redis):
    sink = lab.sink()
    config = config_of("alpha", redis, sink.port)
    port = free_port()
    config.settings["http"] = f"{LOOPBACK}:{port}"
    alpha, beta = lab.relay(config), lab.relay(config_of("beta", redis, sink.port))
    wait_ready(alpha, beta)
    beta.send()
    sink.wait_messages(1)
    browser = lab.browser()
    browser.open(f"http://{LOOPBACK}:{port}/")
    wait_until(lambda: browser.text("#cluster-received") == "1" and "beta" in browser.text("#nodes"), 60, "the nodes on the page")
    assert not browser.console()
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/api/nodes", timeout=60) as reply:
        assert [json.loads(line)["node"] for line in reply.read().splitlines()] == ["alpha", "beta"]
    redis.pause()
    wait_until(lambda: "Redis is away" in browser.text("#cluster"), 60, "the page to say so")


@pytest.mark.parametrize(("at", "warned"), [("192.0.2.1:6379", True), ("127.0.0.1:6379", False)])
def test_check_warns_of_a_password_in_clear(lab, at, warned):
    relay = lab.relay(Config(extra=f'cluster {{ redis = "{at}" redis_password = "/a/file" }}\n'), start=False)
    done = relay.command("check")
    assert done.returncode == 0
    assert ("in clear" in done.stderr) == warned
