# SPDX-License-Identifier: ISC
"""The recipes of sluice-congestion(7): each is followed as it is printed, and does what it says.

Configuration and commands are read from the page. Only what a laboratory cannot have is put in other
words: addresses of hosts, paths, ages of mail, and settings of a section that the test has as well.
"""

import itertools
import json
import os
import re
import subprocess
import threading
import time

import pytest

from lab.config import Config
from lab.load import Load
from lab.moody import Moody
from lab.net import free_port, wait_until
from lab.relay import REPOSITORY, binary
from lab.sink import Rule

pytestmark = [pytest.mark.plain_only, pytest.mark.xdist_group("recipes")]

PATIENT = {"minimal_backoff_time": "1h", "maximal_backoff_time": "2h"}
HOSTS = {name: f"127.0.0.{number}" for number, name in enumerate(
    ("partner", "ordinary", "fragile", "slow", "measured", "gentle", "net", "org", "own"), 10)}
ZONE = "\n".join(f"{name} A {address}" for name, address in HOSTS.items()
                 if name not in ("net", "org", "own"))


def _page():
    with open(os.path.join(REPOSITORY, "etc/sluice-congestion.7"), encoding="utf-8") as stream:
        return stream.read()


def _recipe(title):
    """Return the configuration and the lines of commands and tables below that heading."""
    text = re.search(rf"\.Ss {re.escape(title)}\n(.*?)\n\.S[sh] ", _page(), re.S)[1]
    return "".join(re.findall(r"\.Bd -literal[^\n]*\n(.*?)\.Ed", text, re.S)), re.findall(r"(?m)^\.Dl (.*)$", text)


def _run(relay, line, **words):
    """Run a command as the page has it; the keywords are other words for some of it."""
    command = line.split()
    assert command[0] == "sluice"
    done = relay.command(*[words.get(word, word) for word in command[1:]])
    assert done.returncode == 0, line + done.stderr
    return done.stdout


def _rows(relay, *words):
    done = relay.command(*words, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _send(relay, recipient, count=1, sender="from@sender.test"):
    with relay.client() as client:
        client.greet()
        for _ in range(count):
            content = f"Subject: x\r\nX-Sent: {time.monotonic()}\r\n\r\nbody\r\n".encode()
            client.send_mail(sender, [recipient], content)


def _rcpt(relay, recipient):
    """Return the reply to a recipient."""
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        return client.command(f"RCPT TO:<{recipient}>", "")


class World:
    """A name server with the page's domains, their hosts, and a relay with all recipes that name a transport."""

    def __init__(self, lab):
        """Pass every connection to the same port of different addresses."""
        self.lab, self.port = lab, free_port()
        nsd = lab.nsd({"example": ZONE, "example.net": f"@ A {HOSTS['net']}"})
        self.sinks = {name: self._sink(name) for name in HOSTS if name not in ("fragile", "org")}
        self.table = lab.folder("tables") / "recipients"
        self.access([])
        config = Config(queue=dict(PATIENT), transports={"smtp": {"port": self.port}}).resolve_with(nsd)
        config.dns |= {"allow_loopback": True}
        for title in ("Refuse recipients that do not exist", "Give a large destination its own transport",
                      "Serve your own hosts faster", "A host that fails in bursts",
                      "A host that wants mail slowly", "A window that swings"):
            config.extra += _recipe(title)[0]
        for theirs, ours in (("/etc/sluice/recipients", str(self.table)),
                             ("10.0.0.5]:25", f"{HOSTS['org']}]:{self.port}"),
                             ("10.0.0.6]:25", f"{HOSTS['own']}]:{self.port}")):
            assert theirs in config.extra
            config.extra = config.extra.replace(theirs, ours)
        self.relay = lab.relay(config, patient=True)

    def _sink(self, name):
        rules = [Rule("end", delay=0.3)] if name in ("partner", "ordinary") else []
        return self.lab.sink(*rules, address=HOSTS[name], port=self.port)

    def access(self, lines):
        """Write the table of recipients."""
        self.table.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def refused(self, recipient):
        """Wait until the recipient is refused, and return the reply."""
        replies = []

        def is_refused():
            replies.append(_rcpt(self.relay, recipient))
            return replies[-1].code >= 400

        wait_until(is_refused, 60, f"{recipient} to be refused")
        return replies[-1].text


@pytest.fixture(name="world", scope="module")
def _world(module_lab):
    return World(module_lab)


def test_each_piece_is_a_configuration_and_each_line_a_command(tmp_path):
    blocks = re.findall(r"\.Bd -literal[^\n]*\n(.*?)\.Ed", _page(), re.S)
    lines = re.findall(r"(?m)^\.Dl (.*)$", _page())
    assert len(blocks) == 12 and len(lines) == 11
    (tmp_path / "recipients").write_text("".join(f"{line}\n" for line in lines if not line.startswith("sluice ")), encoding="utf-8")
    path = tmp_path / "sluice.conf"
    for block in blocks:
        path.write_text(block.replace("/etc/sluice/", f"{tmp_path}/"), encoding="utf-8")
        done = subprocess.run([binary(), "check", "-c", path], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "configuration ok\n", block + done.stderr


# --- what is wrong


def test_the_situations_are_told_apart_by_shape_dest_and_explain(lab):
    slow, down = lab.sink(Rule("end", delay=100), address=HOSTS["slow"]), free_port()
    sink = lab.sink(Rule("rcpt", "550 5.1.1 no such user", pattern="guess"), Rule("rcpt", "450 4.2.0 come later", pattern="forged"))
    config = Config(queue=PATIENT | {"message_active_limit": 20}).route_all_to(sink.port)
    config.extra = 'flow "*" { share = 100 }\n'
    config.routes["slow.test"] = {"relay": [f"[{slow.address}]:{slow.port}"]}
    config.routes["down.test"] = {"relay": [f"[127.0.0.1]:{down}"]}
    relay = lab.relay(config)

    def shape(*words):
        return {row["domain"]: row["total"] for row in _rows(relay, "shape", *words)}

    def site(port):
        return next(row for row in _rows(relay, "dest", "list") if row["site"].endswith(f":{port}"))

    _send(relay, "to@fine.test", 5)
    sink.wait_messages(5)
    wait_until(lambda: shape() == {"TOTAL": 0}, what="a healthy queue")
    assert shape("deferred") == {"TOTAL": 0} and site(sink.port)["state"] == "alive"

    _send(relay, "guess@fine.test", 8, sender="x@forged.test")
    relay.wait_event("deferred", count=8)
    wait_until(lambda: shape("-s", "deferred") == {"TOTAL": 8, "MAILER-DAEMON": 8}, what="reports that wait")
    assert shape("deferred")["forged.test"] == 8 and shape() == {"TOTAL": 0}
    assert "come later" in relay.command("explain", "forged.test").stdout

    _send(relay, "to@down.test", 8)
    wait_until(lambda: shape("deferred").get("down.test") == 8, what="a backlog")
    row = site(down)
    assert row["state"] in ("out", "dead") and "refused" in json.dumps(row)
    assert "refused" in relay.command("explain", "down.test").stdout

    _send(relay, "to@slow.test", 20)
    wait_until(lambda: shape("active").get("slow.test", 0) >= 20, what="a full active queue")
    _send(relay, "to@slow.test", 3)
    assert shape("incoming") == {"TOTAL": 3, "slow.test": 3}
    row = site(slow.port)
    assert row["state"] == "alive" and row["waiting"] > 0, row
    why = _rows(relay, "explain", "slow.test")[0]
    assert why["constraint"] in ("window", "sending", "connecting"), why


# --- what helps


def test_recipients_that_do_not_exist_are_refused_and_no_report_is_written(world):
    world.access(_recipe("Refuse recipients that do not exist")[1])
    assert world.refused("nobody@example.org") == "550 5.1.1 No such user"
    assert not world.relay.events("bounced")
    world.access([])


def test_mail_for_one_destination_is_put_off_and_comes_when_it_is_resumed(world):
    suspend, resume, line = _recipe("Put off mail for one destination")[1]
    _run(world.relay, suspend)
    _send(world.relay, "to@example.net", 3)
    event = world.relay.wait_event("deferred", count=3, to="to@example.net")
    assert event["dsn"] == "4.3.2" and event["tries"] == "0"
    world.access([line])
    assert world.refused("new@example.net") == "450 4.3.2 Try again in an hour"
    assert _rcpt(world.relay, "to@partner.example").code == 250
    _run(world.relay, resume)
    world.sinks["net"].wait_messages(3)


def test_nothing_is_accepted_for_a_while(world):
    world.access(_recipe("Accept nothing for a while")[1])
    assert world.refused("to@partner.example") == "450 4.3.2 Too much mail is waiting, try again in an hour"
    world.access([])
    wait_until(lambda: _rcpt(world.relay, "to@partner.example").code == 250, 60, "the door to open")


def test_a_large_destination_has_more_connections_than_others(world):
    for name in "partner", "ordinary":
        Load(world.relay.port, 250, sessions=50, domains=(f"{name}.example",)).finish()
    for name in "partner", "ordinary":
        world.sinks[name].wait_messages(250, 60)
    assert 20 < world.sinks["partner"].most_connections <= 50
    assert world.sinks["ordinary"].most_connections <= 20


def test_a_silent_host_of_our_own_is_given_up_soon(world):
    silent = Moody(world.port, silent=True, address=HOSTS["org"]).begin()
    world.lab.callback(silent.close)
    _send(world.relay, "to@example.org")
    world.sinks["own"].wait_messages(1, 60)
    world.relay.wait_event("host", timeout=60, host=re.compile(re.escape(HOSTS["org"])), state="out")


def test_a_host_that_fails_in_bursts_is_not_declared_dead(world):
    numbers = itertools.count()
    server = Moody(world.port, turned_away=lambda age, serving: next(numbers) % 8 < 3, address=HOSTS["fragile"])
    world.lab.callback(server.close)
    server.begin()
    for _ in range(30):
        _send(world.relay, "to@fragile.example")
        time.sleep(0.1)
    wait_until(lambda: len(server.delays) == 30, 60, "all of its mail")
    assert server.refused and not world.relay.events("site", state="dead")
    assert not world.relay.events("deferred", to="to@fragile.example")


def test_mail_goes_slowly_where_that_is_wanted(world):
    for name, count in ("slow", 4), ("measured", 3):
        _send(world.relay, f"to@{name}.example", count)
    for name, count, gap in ("slow", 4, 1), ("measured", 3, 2):
        world.sinks[name].wait_messages(count, 60)
        times = [message.time for message in world.sinks[name].messages]
        assert times[-1] - times[0] > (count - 1) * gap / 2, times  # each may be late, and the next in time


def test_a_window_takes_small_steps_and_says_so(world):
    _send(world.relay, "to@gentle.example", 40)
    world.sinks["gentle"].wait_messages(40, 60)
    wait_until(lambda: len(world.relay.events("sent", to="to@gentle.example")) == 40)
    widths = [int(event["window"]) for event in world.relay.events("site", site="gentle.example", state="success")]
    assert widths and max(widths) < 15, widths


def test_mail_waits_for_a_destination_that_is_down_and_needs_no_command(lab):
    port = free_port()
    relay = lab.relay(Config(queue=PATIENT).route_all_to(port), patient=True)
    _send(relay, "to@dest.test", 5)
    relay.wait_event("host", state="out")
    sink = lab.sink(port=port)
    sink.wait_messages(5, 60)


def test_reports_are_given_up_sooner_than_other_mail(lab):
    sink = lab.sink(Rule("rcpt", "550 5.1.1 no", pattern="guess"), Rule("rcpt", "450 4.2.0 later", pattern="forged"))
    config = Config().route_all_to(sink.port)
    block = _recipe("Give up reports sooner")[0]
    config.extra = block.replace("1d", "1s").replace("{", "{ minimal_backoff_time = 1s  maximal_backoff_time = 1s ")
    relay = lab.relay(config)
    _send(relay, "guess@dest.test", sender="x@forged.test")
    _send(relay, "to@forged.test")
    relay.wait_event("discarded", timeout=60)
    assert [row["from"] for row in _rows(relay, "queue", "list")] == ["from@sender.test"]


@pytest.fixture(name="backlog")
def _backlog(lab):
    """A relay with mail that waits for two domains, which are fine by now."""
    sinks = {host: lab.sink(Rule("rcpt", "450 4.2.0 later", times=count), address=host, port=port)
             for port in [free_port()] for host, count in ((HOSTS["net"], 4), (HOSTS["org"], 2))}
    port = next(iter(sinks.values())).port
    nsd = lab.nsd({"example.net": f"@ A {HOSTS['net']}", "example.org": f"@ MX 10 mx\nmx A {HOSTS['org']}"})
    config = Config(queue=PATIENT, transports={"smtp": {"port": port}}).resolve_with(nsd)
    config.dns |= {"allow_loopback": True}
    relay = lab.relay(config)
    _send(relay, "to@example.net", 2, sender="news@shop.example")
    _send(relay, "to@example.net", 2)
    _send(relay, "to@example.org", 2)
    relay.wait_event("deferred", count=6)
    return relay, sinks[HOSTS["net"]], sinks[HOSTS["org"]]


def test_a_backlog_is_put_aside_and_released_in_portions(backlog):
    relay, net, _ = backlog
    hold, release = _recipe("Put a backlog aside")[1]
    assert _run(relay, hold, **{"1h": "0"}) == "4 messages held\n"
    _send(relay, "new@example.net")
    net.wait_messages(1)
    assert _run(relay, release) == "2 messages released\n"
    net.wait_messages(3)
    assert len(_rows(relay, "queue", "list", "--queue", "hold")) == 2


def test_mail_that_was_held_for_long_is_new_again(backlog):
    relay, net, org = backlog
    fresh, requeue = _recipe("Release old mail from hold")[1]
    relay.command("queue", "hold", "--domain", "example.net")
    before = min(row["arrived"] for row in _rows(relay, "queue", "list"))
    net.behaviour.rules.append(Rule("rcpt", "450 4.2.0 later"))
    time.sleep(1.1)
    assert _run(relay, fresh, **{"4d": "0"}).startswith("4 messages released\n")
    relay.wait_event("deferred", count=10)
    assert min(row["arrived"] for row in _rows(relay, "queue", "list", "--domain", "example.net")) > before + 1
    assert _run(relay, requeue) == "2 messages requeued\n"
    org.wait_messages(2)


@pytest.mark.parametrize("number", [0, 1])
def test_only_what_can_be_delivered_is_flushed(backlog, number):
    relay, net, org = backlog
    assert _run(relay, _recipe("Flush only what can be delivered")[1][number]) == "2 messages flushed\n"
    org.wait_messages(2)
    assert not net.messages and len(_rows(relay, "queue", "list")) == 4


def test_many_senders_are_slowed_down(lab):
    stuck = lab.sink(Rule("end", delay=100))
    config = Config().route_all_to(stuck.port)
    config.extra = _recipe("Slow down many senders")[0].replace("{", "{ message_active_limit = 2 ")
    relay = lab.relay(config)
    _send(relay, "to@dest.test", 3)
    wait_until(lambda: json.loads(relay.command("stats", "--json").stdout)['queue_messages{queue="incoming"}'] == 1, what="one too many")
    client = threading.Thread(target=_send, args=(relay, "to@dest.test"), daemon=True)
    client.start()
    client.join(2.5)
    assert client.is_alive()  # by default it would be gone after a second


# --- what takes hours, or hundreds of hosts: the scheduler under a virtual clock


def _sim(tmp_path, recipe, scenario):
    path = tmp_path / "scenario.conf"
    path.write_text(recipe + scenario, encoding="utf-8")
    done = subprocess.run([binary(), "sim", path, "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return rows, next(row for row in rows if row["type"] == "summary")


def test_more_connections_drain_more_where_hosts_are_slow(tmp_path):
    scenario = "".join(
        f'arrival "a{n}" {{ messages = 40  rate = "1000/s"  domains = {{"d{n}.test"}} }}\n'
        f'site "s{n}" {{ domains = {{"d{n}.test"}}  mx = {{"10 mx{n}.test"}} }}\n'
        f'host "mx{n}.test" {{ transaction = 20s }}\n' for n in range(1, 41))
    _, few = _sim(tmp_path, "", scenario)
    _, more = _sim(tmp_path, _recipe("Allow more connections")[0], scenario)
    assert few["delivered"] == more["delivered"] == 1600
    assert more["seconds"] < 0.6 * few["seconds"]  # of the virtual clock


def test_old_mail_is_tried_less_often(tmp_path):
    scenario = """
arrival "a" { messages = 50  rate = "1/s"  domains = {"dest.test"} }
site "dest" { domains = {"dest.test"}  mx = {"10 mx.dest.test"} }
host "mx.dest.test" { deferred = "100%" }
"""
    _, often = _sim(tmp_path, "", scenario)
    _, seldom = _sim(tmp_path, _recipe("Try old mail less often")[0], scenario)
    assert seldom["transactions"] < 0.5 * often["transactions"]


def test_other_mail_waits_less_behind_messages_with_many_recipients(tmp_path):
    scenario = """
arrival "single" { messages = 20  start = 5s  distribution = "poisson"  rate = "2/s"  domains = {"single.test"} }
site "single" { domains = {"single.test"}  mx = {"10 mx.single.test"} }
host "mx.single.test" { transaction = 100ms }
""" + "".join(f"""
arrival "news{n}" {{ messages = 1  rate = "1/s"  recipients = {{"80"}}  domains = {{"d#.h{n}.test"}} }}
site "s{n}" {{ domains = {{".h{n}.test"}}  own_names = true  mx = {{"10 mx{n}.test"}} }}
host "mx{n}.test" {{ transaction = 5s }}
""" for n in range(1, 8))
    waits = []
    for recipe in "", _recipe("Messages with very many recipients")[0]:
        rows, _ = _sim(tmp_path, recipe, scenario)
        waits.append(next(row["mean"] for row in rows if row["type"] == "waiting" and row.get("recipients") == "1"))
    assert waits[1] < 0.5 * waits[0], waits
