# SPDX-License-Identifier: ISC
"""Recipients that the next hop is asked about before they are accepted."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import free_port, wait_until


def _relay(lab, port, route=None, tables=None, **verify):
    config = Config(settings={"recipient_access": [str(tables)]} if tables else {}).route_all_to(port)
    config.routes["*"].update(route or {})
    settings = {"timeout": "5s", **verify}
    config.extra = "verify { " + " ".join(f'{name} = "{value}"' for name, value in settings.items()) + " }"
    return lab.relay(config)


def _rcpt(client, address, code):
    return client.command(f"RCPT TO:<{address}>", code)


def _begin(client):
    client.greet()
    client.command("MAIL FROM:<from@sender.test>")


def _answers(relay):
    counted = relay.command("stats").stdout
    lines = [line.split() for line in counted.splitlines() if line.startswith("verifications_total")]
    return {name: int(value) for name, value in lines}


def test_a_real_postfix_is_asked(lab):
    postfix = lab.postfix(settings={
        "smtpd_recipient_restrictions":
            "check_recipient_access inline:{ {no@dest.test = 550 5.1.1 nobody of that name},"
            " {later@dest.test = 450 4.2.0 come again} }, permit_mynetworks, reject",
    })
    relay = _relay(lab, postfix.port, {"verify": True})
    with relay.client() as client:
        _begin(client)
        _rcpt(client, "yes@dest.test", 250)
        text = _rcpt(client, "no@dest.test", 550).lines[0]
        assert text == "5.1.1 the next host does not take this recipient"
        _rcpt(client, "later@dest.test", 250)
        _rcpt(client, "no@dest.test", 550)
        client.send(b"RCPT TO:<a@dest.test>\r\nRCPT TO:<no@dest.test>\r\nRCPT TO:<yes@dest.test>\r\nRSET\r\nNOOP\r\n")
        assert [client.read_reply().code for _ in range(5)] == [250, 550, 250, 250, 250]
    answers = _answers(relay)
    assert answers['verifications_total{result="refuses",remembered="no"}'] == 1
    assert answers['verifications_total{result="refuses",remembered="yes"}'] == 2
    assert answers['verifications_total{result="takes",remembered="no"}'] == 2
    assert answers['verifications_total{result="takes",remembered="yes"}'] == 1
    said = relay.command("verify", "yes@dest.test")
    assert said.returncode == 0 and "the next hop takes it" in said.stdout and "250 2.1.5" in said.stdout
    said = relay.command("verify", "--json", "--from", "x@sender.test", "no@dest.test")
    assert said.returncode == 1
    assert json.loads(said.stdout)["result"] == "refused" and json.loads(said.stdout)["code"] == 550
    said = relay.command("verify", "later@dest.test")
    assert said.returncode == 75 and "450" in said.stdout
    assert relay.command("verify", "nobody").returncode == 2
    # Nothing was sent, and mail goes the same way; all of it by a connection or two.
    assert not relay.events("queued")
    relay.send(recipients=["yes@dest.test"])
    relay.wait_event("sent", to="yes@dest.test")
    # Of Postfix too: "no" twice, the second time for another sender, and "later" once more for the command.
    assert len(postfix.wait_log("NOQUEUE: reject: RCPT from", 4)) == 4
    assert len(postfix.wait_log(": connect from")) <= 4


def test_a_table_says_who_is_verified(lab, tmp_path):
    sink = lab.sink(Rule("rcpt", "550 5.7.1 no", pattern="no@dest.test"), Rule("rcpt", "550 no", pattern="no@x.test"))
    table = tmp_path / "access"
    table.write_text("dest.test verify\nfine@dest.test accept\n")
    relay = _relay(lab, sink.port, tables=table)
    with relay.client() as client:
        _begin(client)
        assert _rcpt(client, "no@dest.test", 550).lines[0].startswith("5.7.1")
        _rcpt(client, "no@x.test", 250)
        _rcpt(client, "fine@dest.test", 250)
        _rcpt(client, "yes@dest.test", 250)
    asked = ["EHLO", "MAIL", "RCPT", "RSET", "MAIL", "RCPT", "RSET"]
    wait_until(lambda: [verb for one in sink.sessions for verb in one.verbs()] == asked, 60, "two questions and no more")
    assert sink.transactions == []
    assert _answers(relay)['verifications_total{result="takes",remembered="no"}'] == 1


def test_a_row_of_a_table_of_routes_says_it(lab, tmp_path):
    sink = lab.sink(Rule("rcpt", "550 5.7.1 no", pattern="no@"))
    table, canonical = tmp_path / "routes", tmp_path / "canonical"
    table.write_text(f"dest.test relay=[127.0.0.1]:{sink.port} verify\nno@dest.test relay=[127.0.0.1]:{sink.port}\n"
                     ".sub.test verify\nsection.test verify\n")
    canonical.write_text("no@alias.test no@a.sub.test\n")
    config = Config(settings={"routes": [str(table)], "canonical": [str(canonical)]}).route_all_to(sink.port)
    config.routes["section.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"]}
    config.routes[".sub.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"], "verify": True}
    relay = lab.relay(config)
    with relay.client() as client:
        _begin(client)
        for address, code in [("no@dest.test", 250), ("say-no@dest.test", 550), ("no@alias.test", 550),
                              ("no@section.test", 250), ("no@else.test", 250), ("yes@dest.test", 250)]:
            _rcpt(client, address, code)
    table.write_text("dest.test verify\n")
    relay.config.settings["sender_routes"] = [str(table)]
    relay.write_config()
    said = relay.command("reload")
    assert said.returncode == 1 and "verify is for routes of recipients" in said.stdout + said.stderr


def test_answers_are_forgotten_in_time(lab):
    sink = lab.sink(Rule("rcpt", "550 5.1.1 not yet", times=1))
    relay = _relay(lab, sink.port, {"verify": True}, negative_time="1ms", cache_limit=1)
    with relay.client() as client:
        _begin(client)
        _rcpt(client, "new@dest.test", 550)
        time.sleep(0.01)
        _rcpt(client, "new@dest.test", 250)
        _rcpt(client, "other@dest.test", 250)
        _rcpt(client, "new@dest.test", 250)
    assert _answers(relay) == {
        'verifications_total{result="refuses",remembered="no"}': 1,
        'verifications_total{result="takes",remembered="no"}': 3,
    }


@pytest.mark.parametrize("unavailable, code", [("accept", 250), ("defer", 450)])
def test_a_next_hop_that_is_away_or_silent(lab, unavailable, code):
    silent = lab.sink(Rule("rcpt", ""))
    for port in (free_port(), silent.port):
        relay = _relay(lab, port, {"verify": True}, unavailable=unavailable, timeout="300ms")
        with relay.client() as client:
            _begin(client)
            reply = _rcpt(client, "to@dest.test", code)
            assert code == 250 or reply.lines[0].startswith("4.1.1 Recipient cannot be verified now")
            # The next in line is not confused by an answer that comes late.
            client.command("RSET", 250)
        relay.stop()


def test_a_relay_that_stops_answers_no_question_any_more(lab):
    """What was asked is given back before whoever asked is: a sanitizer sees it otherwise."""
    silent = lab.sink(Rule("rcpt", ""))
    relay = _relay(lab, silent.port)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(relay.command, "verify", "to@dest.test")
        wait_until(lambda: silent.sessions and "RCPT" in silent.sessions[-1].verbs(), what="the question at the next hop")
        relay.stop()
        assert asked.result().returncode == 75


def test_many_verifications_hold_up_no_mail(lab):
    """Two thousand questions about a slow domain, and one about another, which does not wait for them."""
    slow, quick = lab.sink(latency=0.2), lab.sink()
    config = Config(routes={
        "slow.test": {"relay": [f"[127.0.0.1]:{slow.port}"], "verify": True},
        "*": {"relay": [f"[127.0.0.1]:{quick.port}"], "verify": True},
    }, extra='verify { timeout = "100ms" concurrency_limit = 4 }')
    relay = lab.relay(config)
    clients = [relay.client() for _ in range(20)]
    for client in clients:
        _begin(client)
        client.send(b"".join(b"RCPT TO:<u%d@slow.test>\r\n" % (id(client) % 100000 + i) for i in range(100)))
    with relay.client() as client:
        _begin(client)
        _rcpt(client, "to@quick.test", 250)
        answers = _answers(relay)
        assert answers.get('verifications_total{result="takes",remembered="no"}', 0) < 200
        client.command("DATA", 354)
        client.send(b"Subject: x\r\n\r\nhello\r\n.\r\n")
        client.expect(250)
    quick.wait_messages(1)
    for client in clients:
        client.close()
    # What nobody waits for any more is asked all the same, until the end.
    wait_until(lambda: relay.command("stats").returncode == 0, 60, "the relay")


def test_a_route_that_is_an_end_needs_no_question(lab):
    sink = lab.sink()
    config = Config().route_all_to(sink.port)
    config.routes["gone.test"] = {"error": "5.1.2 they moved away", "verify": True}
    config.routes["void.test"] = {"discard": True, "verify": True}
    relay = lab.relay(config)
    with relay.client() as client:
        _begin(client)
        assert _rcpt(client, "a@gone.test", 550).lines[0].startswith("5.1.2")
        _rcpt(client, "a@dest.test", 250)
    assert relay.command("verify", "a@gone.test").stdout == "a@gone.test: the next hop does not take it: they moved away\n"
    assert relay.command("verify", "a@void.test").stdout == "a@void.test: it is taken: nobody was asked, since its route discards mail\n"


def test_a_sender_in_a_domain_beyond_ascii_is_taken_by_any_host(lab):
    sink = lab.sink(extensions=("PIPELINING",))
    relay = _relay(lab, sink.port, {"verify": True}, sender="probe@bücher.test")
    with relay.client() as client:
        _begin(client)
        _rcpt(client, "a@dest.test", 250)
    assert "the next hop takes it" in relay.command("verify", "a@dest.test").stdout


def test_a_restart_in_the_midst_of_questions(lab):
    sink = lab.sink(Rule("rcpt", ""))
    relay = _relay(lab, sink.port, {"verify": True})
    clients = [relay.client() for _ in range(5)]
    for number, client in enumerate(clients):
        _begin(client)
        client.send(b"RCPT TO:<u%d@dest.test>\r\n" % number)
    wait_until(lambda: sink.connections > 0, 60, "a question")
    relay.stop()
    for client in clients:
        client.close()
