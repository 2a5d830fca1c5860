# SPDX-License-Identifier: ISC
"""Recipients that are refused at RCPT, since mail for them would be returned."""

import subprocess

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import wait_until
from lab.socketmap import SocketmapServer

HOST = "127.0.0.2"


def _relay_of(sink):
    return [f"[127.0.0.1]:{sink.port}"]


def _rcpt(relay, *recipients, sender="from@sender.test", text=None):
    """Return the code that each of these recipients gets, or with text the one reply; no mail is sent."""
    with relay.client() as client:
        client.greet()
        client.command(f"MAIL FROM:<{sender}>")
        client.send("".join(f"RCPT TO:<{one}>\r\n" for one in recipients).encode())
        replies = [client.read_reply() for _ in recipients]
        if text:
            return replies[0].text
        return [reply.code for reply in replies]


def _counted(relay, name):
    for line in relay.command("stats", "--all").stdout.splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


def _waiting(relay):
    return relay.command("queue", "list", "--json").stdout


def _empty(relay):
    return _waiting(relay) == "" and not relay.events("queued")


def test_a_route_that_is_an_error_is_said_at_rcpt(lab, tmp_path):
    sink = lab.sink()
    routes, senders = tmp_path / "routes", tmp_path / "senders"
    routes.write_text("moved.test error 5.1.6 they are at new.test now\n.later.test error 4.3.0 come back\nvoid.test discard\n")
    senders.write_text("banned@sender.test error 5.7.1 not from you\n")
    config = Config({"routes": [str(routes)], "sender_routes": [str(senders)], "recipient_canonical": [str(tmp_path / "canonical")]})
    (tmp_path / "canonical").write_text("alias@dest.test x@moved.test\n")
    config.route_all_to(sink.port)
    config.routes["gone.test"] = {"error": "5.1.2 that company is gone"}
    config.routes["some.test"] = {"error": "5.7.1 not for them", "from": ["sender.test"]}
    relay = lab.relay(config)
    assert _rcpt(relay, "x@gone.test", text=True) == "550 5.1.2 that company is gone"
    assert _rcpt(relay, "x@moved.test", text=True) == "550 5.1.6 they are at new.test now"
    assert _rcpt(relay, "x@a.later.test", text=True) == "450 4.3.0 come back"
    assert _rcpt(relay, "X@MOVED.test", "alias@dest.test", "x@void.test", "x@dest.test", "x@later.test") == [550, 550, 250, 250, 250]
    # The sender's own: of sections with from, and of sender_routes, for what only "*" would take.
    assert _rcpt(relay, "x@some.test") == [550]
    assert _rcpt(relay, "x@some.test", sender="a@other.test") == [250]
    assert _rcpt(relay, "x@dest.test", sender="banned@sender.test", text=True) == "550 5.7.1 not from you"
    assert _empty(relay)
    reject = relay.wait_event("reject", to="x@gone.test")
    assert (reject["stage"], reject["code"], reject["dsn"], reject["reason"]) == ("RCPT", "550", "5.1.2", "that company is gone")
    assert _counted(relay, 'known_refusals_total{reason="route"}') == 7
    # What is taken is sent, pipelined among what is not.
    with relay.client() as client:
        client.greet()
        client.send(b"MAIL FROM:<a@sender.test>\r\nRCPT TO:<x@gone.test>\r\nRCPT TO:<x@dest.test>\r\nRCPT TO:<y@moved.test>\r\nDATA\r\n")
        assert [client.read_reply().code for _ in range(5)] == [250, 550, 250, 550, 354]
        client.send(b"\r\n.\r\n")
        client.expect(250)
    assert sink.wait_messages(1)[0].recipients == ["x@dest.test"]


def test_a_route_may_know_its_recipients(lab, tmp_path):
    sink = lab.sink()
    text, other, cdb = tmp_path / "valid", tmp_path / "other", tmp_path / "valid.cdb"
    text.write_text("# who there is\nAnna@dest.test\nbert@dest.test   OK\n@all.dest.test\n\n\"odd one\"@dest.test x\n")
    other.write_text("carl@other.test\n")
    subprocess.run(["cdb", "-c", "-m", str(cdb), "-"], check=True, text=True, input="dora@dest.test x\n")
    config = Config({"recipient_canonical": [str(tmp_path / "canonical")]}).route_all_to(sink.port)
    (tmp_path / "canonical").write_text("old@dest.test anna@dest.test\nlost@dest.test nobody@dest.test\n")
    relay_of = {"relay": _relay_of(sink)}
    config.routes["dest.test"] = relay_of | {"recipients": [str(text), str(cdb)]}
    config.routes["all.dest.test"] = relay_of | {"recipients": [str(text)]}
    config.routes["other.test"] = relay_of | {"recipients": [str(other)]}
    config.aliases["team@dest.test"] = {"to": ["anna@dest.test"]}
    relay = lab.relay(config)
    assert _rcpt(relay, "nobody@dest.test", text=True) == "550 5.1.1 User unknown"
    assert _rcpt(relay, "anna@dest.test", "ANNA@Dest.Test", "bert@dest.test", "dora@dest.test", '"odd one"@dest.test') == [250] * 5
    assert _rcpt(relay, "x@all.dest.test", "carl@other.test", "x@free.test") == [250] * 3
    told = relay.command("route", "nobody@dest.test").stdout
    assert "  refused  550 5.1.1 User unknown: in none of its recipients\n" in told
    for one in ("anna@dest.test", "team@dest.test", "x@free.test"):
        assert "refused" not in relay.command("route", one).stdout
    # The tables of one route say nothing of another; what is asked about is what the recipient becomes.
    assert _rcpt(relay, "anna@other.test", "carl@dest.test", "lost@dest.test") == [550] * 3
    assert _rcpt(relay, "old@dest.test", "team@dest.test") == [250] * 2
    assert _counted(relay, 'known_refusals_total{reason="recipients"}') == 4
    # A file that changes is read by itself.
    text.write_text("nobody@dest.test\n")
    wait_until(lambda: _rcpt(relay, "nobody@dest.test", "anna@dest.test", "dora@dest.test") == [250, 550, 250], 60, "the new table")
    # One with a fault keeps what was.
    text.write_text("nobody@dest.test\nnobody@dest.test\n")
    relay.wait_event("condition", name="tables_stale", state="on")
    assert _rcpt(relay, "nobody@dest.test", "anna@dest.test") == [250, 550]
    # At reload the routes and files themselves.
    config = relay.config
    config.routes["dest.test"].pop("recipients")
    config.routes["gone.test"] = {"error": "5.1.2 gone", "recipients": [str(other)]}
    text.write_text("@all.dest.test\n")
    relay.write_config()
    said = relay.command("reload")
    assert said.returncode == 1 and "of an error nobody is a recipient" in said.stderr
    config.routes.pop("gone.test")
    relay.write_config()
    assert relay.command("reload").returncode == 0
    assert _rcpt(relay, "anyone@dest.test", "x@all.dest.test", "anna@other.test") == [250, 250, 550]
    assert _empty(relay)


@pytest.fixture(name="named")
def fixture_named(lab):
    """A relay that looks names up, and has sent mail to a domain that takes none and to one that is not there."""
    nsd = lab.nsd({"null.test": "@ MX 0 .", "dest.test": f"@ MX 10 a\na A {HOST}", "relayed.test": "@ MX 0 ."})
    sink = lab.sink(address=HOST)
    config = Config(transports={"smtp": {"port": sink.port}}).resolve_with(nsd)
    config.dns |= {"allow_loopback": True, "dnssec": "off"}
    config.routes["sender.test"] = {"relay": [f"[{HOST}]:{sink.port}"]}
    relay = lab.relay(config)
    assert _rcpt(relay, "x@null.test", "x@gone.dest.test", "x@dest.test") == [250] * 3
    assert _counted(relay, "dns_sent_total") == 0
    relay.send(recipients=["x@null.test", "x@gone.dest.test", "x@dest.test"])
    relay.wait_event("bounced", to="x@null.test", dsn="5.1.10")
    relay.wait_event("bounced", to="x@gone.dest.test", dsn="5.1.2")
    relay.wait_event("sent", to="x@dest.test")
    return relay, nsd, sink


def test_what_the_cache_knows_of_a_domain_is_said_at_rcpt(named):
    relay, nsd, sink = named
    assert _rcpt(relay, "y@null.test", text=True) == "556 5.1.10 null.test does not accept mail (null MX)"
    assert _rcpt(relay, "y@gone.dest.test", text=True) == "550 5.1.2 the domain gone.dest.test does not exist"
    assert _rcpt(relay, "y@NULL.test", "y@gone.DEST.test", "y@dest.test") == [556, 550, 250]
    assert _counted(relay, 'known_refusals_total{reason="domain"}') == 4
    # Nobody is asked: of others it knows nothing, and is as quick without a name server.
    nsd.stop()
    sent = _counted(relay, "dns_sent_total")
    assert _rcpt(relay, "y@null.test", "y@new.dest.test", "y@unknown.test") == [556, 250, 250]
    assert _counted(relay, "dns_sent_total") == sent
    # With the cache it goes.
    relay.command("reload")
    wait_until(lambda: _rcpt(relay, "y@null.test", "y@gone.dest.test") == [250, 250], 60, "the cache to be empty")
    assert len(sink.wait_messages(2)) == 2  # one, and the report


def test_mail_that_goes_another_way_is_not_judged_by_its_domain(named):
    relay, _, sink = named
    relay.config.routes["null.test"] = {"relay": [f"[{HOST}]:{sink.port}"]}
    relay.config.dns["negative_ttl"] = "1h"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(recipients=["x@gone.dest.test"])  # the cache was emptied
    relay.wait_event("bounced", to="x@gone.dest.test", count=2)
    assert _rcpt(relay, "y@null.test", "y@gone.dest.test") == [250, 550]


ATTACK = 10000


def _attack(relay, batches=20):
    """Try recipients from the null sender, as many as there are, and end each message that has some; return the codes."""
    codes = []
    names = [f"user{n}@dest.test" for n in range(ATTACK)]
    size = ATTACK // batches
    with relay.client() as client:
        client.greet()
        for first in range(0, ATTACK, size):
            client.send(b"MAIL FROM:<>\r\n")
            client.expect(250)
            client.send("".join(f"RCPT TO:<{name}>\r\n" for name in names[first:first + size]).encode())
            now = [client.read_reply().code for _ in range(size)]
            if 250 in now:
                client.command("DATA", 354)
                client.send(b"Subject: hello\r\n\r\n.\r\n")
            else:
                client.send(b"RSET\r\n")
            client.expect(250)
            codes += now
    return codes


@pytest.mark.parametrize("known", ["file", "server", None])
def test_a_dictionary_attack_from_the_null_sender(lab, tmp_path, known):
    """Where the recipients are known the queue stays empty. The same without: all of it lies there, and goes to the host,
    which refuses it, so that the postmaster has a report of each."""
    table = tmp_path / "valid"
    table.write_text("user77@dest.test\n")
    sink = lab.sink(Rule("rcpt", "550 5.1.1 who is that?", pattern="^user(?!77@)"))
    config = Config({"postmaster": "postmaster@here.test"}).route_all_to(sink.port)
    config.listeners["smtp"] = {"error_limit": 0}
    server = SocketmapServer(path=f"{lab.folder('map')}/socket").start()
    lab.callback(server.stop)
    server.maps = {"m": {"user77@dest.test": "x"}}
    tables = {"file": {"recipients": [str(table)]}, "server": {"recipients": [server.table("m")]}, None: {}}
    config.routes["dest.test"] = {"relay": _relay_of(sink)} | tables[known]
    relay = lab.relay(config)
    codes = _attack(relay)
    if known:
        assert codes.count(550) == ATTACK - 1 and codes[77] == 250
        sink.wait_messages(1)
        wait_until(lambda: _waiting(relay) == "", 60, "an empty queue")
        assert len(relay.wait_events("queued")) == 1 and sink.messages[0].recipients == ["user77@dest.test"]
        assert _counted(relay, 'known_refusals_total{reason="recipients"}') == ATTACK - 1
    else:
        assert codes == [250] * ATTACK
        wait_until(lambda: relay.events("bounced"), 60, "the first report")
