# SPDX-License-Identifier: ISC
"""Mail to <postmaster> without a domain, which RFC 5321 4.5.1 has everybody take."""

import pytest

from lab.config import Config


def _relay(lab, sink, **aliases):
    """A relay where we are a stranger."""
    config = Config(settings={"networks": ["192.0.2.0/24"]}).route_all_to(sink.port)
    config.aliases = {name: {"to": to} for name, to in aliases.items()}
    return lab.relay(config)


def _send(relay, recipients, sender="mallory@victim.test"):
    with relay.client(timeout=60.0) as client:
        client.greet()
        client.command(f"MAIL FROM:<{sender}>", 250)
        for recipient in recipients:
            client.command(f"RCPT TO:{recipient}", 250)
        client.command("DATA", 354)
        client.send(b"Subject: help\r\n\r\n.\r\n")
        client.expect(250)


@pytest.mark.parametrize("name", ["Postmaster", "postmaster", "POSTMASTER"])
def test_a_stranger_reaches_the_postmaster_at_our_hostname(lab, name):
    sink = lab.sink()
    relay = _relay(lab, sink)
    _send(relay, [f"<{name}>"])
    assert sink.wait_messages(1)[0].recipients == ["postmaster@relay.test"]
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<>")
        client.command("RCPT TO:<postmaster@relay.test>", 550)


@pytest.mark.parametrize("name", ["postmaster", "postmaster@relay.test"])
def test_an_alias_says_who_that_is(lab, name):
    sink = lab.sink()
    _send(_relay(lab, sink, **{name: ["a@admins.test", "b@admins.test"]}), ["<postmaster>"])
    assert sorted(sink.wait_messages(1)[0].recipients) == ["a@admins.test", "b@admins.test"]


def test_a_thousand_times_the_postmaster_is_once(lab):
    sink = lab.sink()
    relay = _relay(lab, sink)
    _send(relay, ["<Postmaster> NOTIFY=SUCCESS"] * 1000)
    assert sink.wait_messages(1)[0].recipients == ["postmaster@relay.test"]
    assert relay.wait_event("queued")["nrcpt"] == "1"
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<>")
        for _ in range(1000):
            client.command("RCPT TO:<postmaster>", 250)
        client.command("RCPT TO:<postmaster>", 452)


@pytest.mark.parametrize("notify", ["SUCCESS", "SUCCESS,FAILURE"])
def test_success_is_not_reported_to_whom_a_stranger_names(lab, notify):
    sink = lab.sink(extensions=())
    relay = _relay(lab, sink)
    _send(relay, [f"<postmaster> NOTIFY={notify}"])
    relay.wait_event("done")
    assert not relay.events("queued", **{"from": ""})
    assert sink.messages[0].sender == "mallory@victim.test" and len(sink.messages) == 1


@pytest.mark.parametrize("address", ["anna", "anna@", "@admins.test", "anna b@admins.test"])
def test_a_postmaster_that_is_no_address_is_an_error(lab, address):
    relay = lab.relay(Config())
    relay.config.settings["postmaster"] = address
    relay.write_config()
    assert f'postmaster "{address}" is not an address' in relay.command("check").stderr
