# SPDX-License-Identifier: ISC
"""One address that stands for others."""

from lab.config import Config


def _config(sink):
    config = Config().route_all_to(sink.port)
    config.aliases = {
        "list@here.test": {"to": ["a@dest.test", "inner@here.test", "A@dest.test"]},
        "inner@here.test": {"to": ["inner@here.test", "b@dest.test"]},
        "loop@here.test": {"to": ["pool@here.test"]},
        "pool@here.test": {"to": ["loop@here.test"]},
    }
    return config


def _arrived(sink, count):
    messages = sink.wait_messages(1)
    recipients = sorted(one for message in messages for one in message.recipients)
    assert len(recipients) == count, recipients
    return recipients


def test_an_alias_stands_for_its_members_each_once(lab):
    sink = lab.sink()
    relay = lab.relay(_config(sink))
    relay.send(recipients=["List@here.test", "other@dest.test"])
    relay.wait_event("done")
    assert _arrived(sink, 4) == ["a@dest.test", "b@dest.test", "inner@here.test", "other@dest.test"]


def test_an_alias_that_leads_to_itself_is_refused(lab):
    relay = lab.relay(_config(lab.sink()))
    with relay.client() as client:
        client.greet()
        client.send("MAIL FROM:<from@sender.test>")
        client.expect(250)
        client.send("RCPT TO:<loop@here.test>")
        assert "5.4.6" in str(client.expect(550))


def test_a_member_keeps_what_the_sender_called_it(lab):
    sink = lab.sink()
    relay = lab.relay(_config(sink))
    relay.send(recipients=["inner@here.test"])
    relay.wait_event("sent", to="b@dest.test", orig_to="rfc822;inner@here.test")
