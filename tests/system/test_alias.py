# SPDX-License-Identifier: ISC
"""One address that stands for others."""

import pytest

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


def test_a_member_keeps_what_the_sender_called_it_beyond_ascii(lab):
    """As RFC 6533 writes it for hosts that know no SMTPUTF8."""
    sink = lab.sink(extensions=("DSN",))
    config = _config(sink)
    config.aliases["grüße+neu@here.test"] = {"to": ["b@dest.test"]}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["grüße+neu@here.test"], mail_params=" SMTPUTF8")
    params = sink.wait_messages(1)[0].recipient_params["b@dest.test"]
    assert params["ORCPT"] == r"utf-8;gr\x{FC}\x{DF}e\x{2B}neu@here.test"


def test_who_is_named_twice_gets_one_copy(lab, tmp_path):
    sink = lab.sink()
    config = _config(sink)
    (tmp_path / "canonical").write_text("old@dest.test new@dest.test\n")
    config.settings["recipient_canonical"] = [str(tmp_path / "canonical")]
    relay = lab.relay(config)
    relay.send(recipients=["list@here.test", "b@dest.test", "inner@here.test", "a@DEST.test", "old@dest.test", "new@dest.test", "A@dest.test"])
    assert _arrived(sink, 5) == ["A@dest.test", "a@dest.test", "b@dest.test", "inner@here.test", "new@dest.test"]
    assert relay.wait_event("queued")["nrcpt"] == "5"
    done = relay.command("sendmail", "-t", stdin="From: a@sender.test\nTo: b@dest.test\nCc: b@dest.test, inner@here.test\n\ntext\n")
    assert done.returncode == 0, done.stderr
    relay.wait_event("done", count=2)
    assert sorted(one for message in sink.wait_messages(2)[1:] for one in message.recipients) == ["b@dest.test", "inner@here.test"]


def _table(folder, name, *lines):
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return [str(folder / name)]


def test_members_and_copies_are_kept_as_an_envelope_keeps_addresses(lab, tmp_path):
    sink = lab.sink()
    config = _config(sink)
    config.aliases = {"c@here.test": {"to": ["C@DEST.test.", '"c"@dest.test']}}
    config.settings |= {"always_bcc": "All@Dest.Test.", "recipient_bcc": _table(tmp_path, "copies", "a@here.test Of@Dest.Test."),
                        "aliases": _table(tmp_path, "aliases", 'a@here.test: a@dest.test, a@DEST.Test., "a"@dest.test', 'b@here.test: "b, b"@dest.test')}
    relay = lab.relay(config)
    relay.send(recipients=["a@here.test", "b@here.test", "c@here.test"])
    relay.wait_event("done")
    assert _arrived(sink, 5) == ['"b, b"@dest.test', "All@dest.test", "C@dest.test", "Of@dest.test", "a@dest.test"]


@pytest.mark.parametrize("member", ["<b@dest.test>", "b@", "a@b@dest.test", "@dest.test", "b@dest.test:25", "b", '"b@dest.test'])
def test_a_member_that_is_no_address_is_an_error_with_its_line(lab, tmp_path, member):
    relay = lab.relay(_config(lab.sink()))
    relay.config.settings["aliases"] = _table(tmp_path, "aliases", "good@here.test: a@dest.test", f"other@here.test: a@dest.test, {member}")
    relay.write_config()
    assert f'aliases:2: "{member}" is not an address' in relay.command("check").stderr
    relay.config.settings["aliases"] = []
    relay.config.aliases["list@here.test"]["to"].append(member)
    relay.write_config()
    assert f'"{member}" is not an address' in relay.command("check").stderr


@pytest.mark.parametrize("key", ["a@b@", "a@b@here.test", "@here.test", "a@here..test", "anna"])
def test_an_alias_that_no_address_can_be_is_an_error_with_its_line(lab, tmp_path, key):
    relay = lab.relay(_config(lab.sink()))
    relay.config.settings["aliases"] = _table(tmp_path, "aliases", f"{key}: a@dest.test")
    relay.write_config()
    assert f'aliases:1: "{key.lstrip("@")}" is not an address' in relay.command("check").stderr


def test_a_recipient_that_is_named_again_counts(lab):
    config = _config(lab.sink())
    config.listeners = {"smtp": {"recipient_limit": 4}}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        for to, code in ("inner@here.test", 250), ("b@dest.test", 250), ("B@dest.test", 250), ("b@dest.test", 452):
            client.command(f"RCPT TO:<{to}>", code)
