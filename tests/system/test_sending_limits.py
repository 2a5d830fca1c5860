# SPDX-License-Identifier: ISC
"""How much a client or a sender may send, and what becomes of what is beyond."""

import pytest

from lab import received
from lab.config import Config


def _relay(lab, limits):
    sink = lab.sink()
    config = Config(extra=limits)
    return sink, lab.relay(config.route_all_to(sink.port))


def _mail(client, sender="from@sender.test", code=250):
    return client.command(f"MAIL FROM:<{sender}>", code).lines[0]


def test_messages_and_recipients_beyond_a_limit_are_put_off_with_the_time(lab):
    sink, relay = _relay(lab, 'limit "client" { messages = "3/h" recipients = "4/h" }')
    with relay.client() as client:
        client.greet()
        _mail(client)
        for _ in range(4):
            client.command("RCPT TO:<to@dest.test>")
        # More than error_limit of them: a recipient that is to come again is no error.
        for _ in range(30):
            text = client.command("RCPT TO:<more@dest.test>", 450).lines[0]
        assert text.startswith("4.7.1 too many recipients of this client: try again in 1")
        assert text.endswith("minutes")
        client.command("DATA", 354)
        client.send(b"\r\n.\r\n")
        client.expect(250)
        _mail(client)
        client.command("RSET")
        # Pipelined behind the wait: each has its own answer, in order.
        client.send(b"MAIL FROM:<a@sender.test>\r\nRSET\r\nMAIL FROM:<b@sender.test>\r\nRCPT TO:<to@dest.test>\r\n")
        assert [client.expect(code).code for code in (250, 250, 450, 503)] == [250, 250, 450, 503]
    with relay.client() as client:
        client.greet()
        assert _mail(client, code=450).startswith("4.7.1 too many messages of this client: try again in 2")
    sink.wait_messages(1)
    relay.wait_event("limit", client="127.0.0.1", action="defer", limit="recipients 4/h")
    counted = relay.command("stats").stdout
    assert 'limits_total{by="client",action="defer"} 32' in counted


def test_reject_and_hold_by_sender(lab):
    sink, relay = _relay(lab, """
limit "sender" { messages = "1/h" action = "hold" }
limit "client" { messages = "4/h" action = "reject" }
""")
    for sender in ("a@sender.test", "A@sender.test", "b@sender.test"):
        relay.send(sender)
    sink.wait_messages(2)
    relay.wait_event("limit", sender="a@sender.test", action="hold")
    assert "A@sender.test" in relay.command("queue", "list", "--queue", "hold").stdout
    with relay.client() as client:
        client.greet()
        _mail(client, "")
        client.command("RSET")
        assert _mail(client, "c@sender.test", 550).startswith("5.7.1 too many messages of this client")
    # A reload makes room at once.
    relay.config.extra = 'limit "client" { messages = "1000/s" action = "reject" }'
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send("d@sender.test")
    sink.wait_messages(3)


def test_suspended_logins_are_remembered(lab):
    _, relay = _relay(lab, "")
    assert relay.command("user").stdout == ""
    assert relay.command("user", "show", "eve").returncode == 1
    assert relay.command("user", "suspend", "eve").stdout == "eve suspended\n"
    assert relay.command("user", "suspend").returncode == 2
    relay.kill()
    relay.start()
    assert relay.command("user", "list").stdout == "eve suspended messages=0 recipients=0 refused=0 failures=0\n"
    assert '"suspended":true' in relay.command("user", "list", "--json").stdout
    assert relay.command("user", "resume", "eve").returncode == 0
    assert relay.command("user", "resume", "eve").returncode == 1
    relay.restart()
    assert relay.command("user", "list").stdout == ""


@pytest.mark.parametrize("fault", [
    'limit "all" { messages = "1/h" }', 'limit "login" { messages = "many" }',
    'limit "login" { }\nlimit "login" { }', 'limit "login" { action = "drop" }'])
def test_faults_in_limits_are_found(lab, fault):
    relay = lab.relay(Config(extra=fault), start=False)
    found = relay.command("check")
    assert found.returncode == 1
    assert ":" in found.stderr
