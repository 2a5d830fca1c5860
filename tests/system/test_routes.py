# SPDX-License-Identifier: ISC
"""Tables: where mail goes, what becomes of addresses, and what is not accepted."""

import json
import os
import subprocess

import pytest

from lab.config import Config
from lab.net import free_port, wait_until


class Tables:
    """Files of tables in a folder of their own."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        """Return the path of a file, which need not be there."""
        return os.path.join(self.folder, name)

    def text(self, name, *lines):
        """Write a text file, in the place of what was there, and return its path."""
        with open(self.path("new"), "w", encoding="utf-8") as stream:
            stream.write("".join(f"{line}\n" for line in lines))
        os.rename(self.path("new"), self.path(name))
        return self.path(name)

    def cdb(self, name, *lines):
        """Make a CDB file with Debian's cdb, and return its path."""
        subprocess.run(["cdb", "-c", "-m", self.path(name), "-"], check=True, text=True,
                       input="".join(f"{line}\n" for line in lines))
        return self.path(name)


@pytest.fixture
def tables(tmp_path):
    """A place for tables."""
    return Tables(tmp_path)


def _relay_of(sink):
    return f"relay=[127.0.0.1]:{sink.port}"


def _recipients(sink, messages=1):
    return sorted(one for m in sink.wait_messages(messages) for one in m.recipients)


def _quick(**settings):
    """A configuration whose deferred mail comes back soon."""
    return Config(settings=settings,
                  queue={"minimal_backoff_time": "100ms", "maximal_backoff_time": "200ms"})


def test_routes_come_from_text_and_cdb_the_most_specific_first(lab, tables):
    boss, domain, parent, rest = (lab.sink() for _ in range(4))
    relay = lab.relay(_quick(routes=[
        tables.text("routes", "# those of a file", f"Boss@Dest.test  {_relay_of(boss)}",
                    f"*   {_relay_of(rest)}"),
        tables.cdb("routes.cdb", f"@dest.test smtp {_relay_of(domain)}",
                   f".dest.test {_relay_of(parent)}")]))
    relay.send(recipients=["boss@dest.test", "x@dest.test", "x@a.dest.test", "x@other.test"])
    assert _recipients(boss) == ["boss@dest.test"]
    assert _recipients(domain) == ["x@dest.test"]
    assert _recipients(parent) == ["x@a.dest.test"]
    assert _recipients(rest) == ["x@other.test"]


def test_a_section_comes_before_a_table_as_specific_and_not_before_one_more_specific(lab, tables):
    section, table = lab.sink(), lab.sink()
    config = _quick(routes=[tables.text("routes", f"dest.test {_relay_of(table)}",
                                        f"x@dest.test {_relay_of(table)}")])
    config.routes["dest.test"] = {"relay": [f"[127.0.0.1]:{section.port}"]}
    relay = lab.relay(config)
    relay.send(recipients=["x@dest.test", "y@dest.test"])
    assert _recipients(section) == ["y@dest.test"]
    assert _recipients(table) == ["x@dest.test"]


def _wait_said(relay, words):
    """What is wrong with a table. Before that it may be read anew, where it was read in the moment when it was written."""
    return wait_until(lambda: [one for one in relay.events("tables") if words in one.keys["message"]], 60, words)


def test_a_table_that_changes_is_read_anew_and_one_with_a_fault_is_not(lab, tables):
    first, second = lab.sink(), lab.sink()
    path = tables.text("routes", f"* {_relay_of(first)}")
    relay = lab.relay(_quick(routes=[path]))
    relay.send()
    first.wait_messages(1)
    tables.text("routes", "", "* nobody")
    said = _wait_said(relay, "nobody")
    assert f'{path}:2: there is no transport "nobody"' in said[0].keys["message"]
    before = len(relay.events("tables"))
    relay.send()
    first.wait_messages(2)
    tables.text("routes", f"* {_relay_of(second)}")
    relay.wait_event("tables", timeout=60, count=before + 1)
    relay.send()
    second.wait_messages(1)
    assert [one.keys["message"] for one in relay.events("tables")][before:] == ["read anew"] and len(said) == 1


def test_a_cdb_file_cut_short_does_no_harm(lab, tables):
    sink = lab.sink()
    path = tables.cdb("routes.cdb", f"* {_relay_of(sink)}")
    relay = lab.relay(_quick(routes=[path]))
    os.truncate(path, 100)
    relay.send()
    sink.wait_messages(1)
    _wait_said(relay, "CDB")
    relay.send()
    sink.wait_messages(2)


def test_check_names_file_and_line_of_each_fault(lab, tables):
    config = Config(settings={
        "routes": [tables.text("routes", "a.test smtp", "b.test", "c.test relay=[x", "a.test slow"),
                   tables.cdb("routes.cdb", "A.test smtp")],
        "recipient_access": [tables.text("access", "x@a.test maybe")],
        "canonical": [tables.text("canonical", "a.test b.test")],
        "sender_bcc": [tables.path("missing")],
        "aliases": [tables.text("aliases", "x@a.test: y@b.test,", "   nobody")],
    })
    relay = lab.relay(config, start=False)
    checked = relay.command("check")
    assert checked.returncode == 1
    faults = {tuple(line.split(": ", 1)[0].rsplit("/", 1)[1].split(":")): line
              for line in checked.stderr.splitlines()}
    with open(relay.config_path, encoding="utf-8") as stream:
        naming = [number for number, line in enumerate(stream, 1) if "/missing" in line]
    wanted = {("routes", "2"), ("routes", "3"), ("routes", "4"), ("routes.cdb", "1"),
              ("access", "1"), ("canonical", "1"), (os.path.basename(relay.config_path), str(naming[0])), ("aliases", "2")}
    assert set(faults) == wanted, checked.stderr


def test_a_route_may_be_an_error_or_the_end(lab, tables):
    """Of who is named by an alias; who is named by the client is refused: test_door.py."""
    sink = lab.sink()
    relay = lab.relay(_quick(routes=[tables.text(
        "routes", "gone.test error 5.1.2 that company is gone", "void.test discard not wanted",
        "later.test error 4.3.0 come back", f"* {_relay_of(sink)}")], aliases=[tables.text(
            "aliases", "all@dest.test: x@gone.test, x@void.test, x@dest.test, x@later.test")]))
    relay.send(recipients=["all@dest.test"])
    relay.wait_event("bounced", to="x@gone.test", dsn="5.1.2", reply="that company is gone")
    relay.wait_event("sent", to="x@void.test", relay="none", reply="discarded: not wanted")
    relay.wait_event("deferred", to="x@later.test", dsn="4.3.0")
    relay.wait_event("deferred", to="x@later.test", count=2)
    messages = sink.wait_messages(2)
    assert sorted(m.sender for m in messages) == ["", "from@sender.test"]
    assert sorted(one for m in messages for one in m.recipients) == ["from@sender.test", "x@dest.test"]


def test_more_recipients_that_end_at_once_than_a_message_may_have_in_memory(lab, tables):
    config = _quick(routes=[tables.text("routes", "* discard")])
    config.queue |= {"message_recipient_minimum": 1, "message_recipient_limit": 1}
    relay = lab.relay(config)
    relay.send(recipients=[f"x{i}@dest.test" for i in range(50)])
    relay.wait_event("done")
    assert len(relay.events("sent")) == 50


def test_weights_share_connections(lab):
    heavy, light = lab.sink(), lab.sink()
    config = _quick()
    config.transports["smtp"] = {"connection_max_messages": 1}
    config.routes["*"] = {"relay": [f"[127.0.0.1]:{heavy.port}=9", f"[127.0.0.1]:{light.port}=1"]}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        for _ in range(100):
            client.send_mail("from@sender.test", ["to@dest.test"])
    relay.wait_event("done", count=100, timeout=60)
    assert len(heavy.messages) > len(light.messages) > 0


def test_the_other_takes_all_when_one_of_a_weighted_group_is_dead(lab):
    light, backup = lab.sink(), lab.sink()
    config = _quick()
    config.routes["*"] = {"relay": [f"[127.0.0.1]:{free_port()}=9", f"[127.0.0.1]:{light.port}=1",
                                    f"[127.0.0.1]:{backup.port}"]}
    relay = lab.relay(config)
    for _ in range(5):
        relay.send()
    light.wait_messages(5)
    assert not backup.messages


def _with_fallback(lab, fallback, zone):
    nsd = lab.nsd({"dest.test": zone})
    config = _quick()
    config.transports["smtp"] = {"port": free_port(),
                                 "fallback_relay": [f"[127.0.0.1]:{fallback.port}"]}
    config.routes["sender.test"] = {"error": "5.1.1 no bounces here"}
    config.resolve_with(nsd)
    config.dns |= {"allow_loopback": True, "timeout": "300ms", "tries": 1}
    return nsd, lab.relay(config)


def test_fallback_relay_takes_what_no_host_of_the_destination_takes(lab):
    fallback = lab.sink()
    _, relay = _with_fallback(lab, fallback, "@ MX 10 mx\nmx A 127.0.0.2")
    relay.send()
    assert _recipients(fallback) == ["to@dest.test"]


def test_fallback_relay_takes_what_dns_does_not_answer_and_not_what_it_denies(lab):
    fallback = lab.sink()
    nsd, relay = _with_fallback(lab, fallback, "@ MX 10 mx\nmx A 127.0.0.2\nnull MX 0 .")
    relay.send(recipients=["x@none.dest.test"])
    relay.wait_event("bounced", to="x@none.dest.test", dsn="5.1.2")
    relay.send(recipients=["x@null.dest.test"])
    relay.wait_event("bounced", to="x@null.dest.test", dsn="5.1.10")
    assert not fallback.messages
    nsd.stop()
    relay.send(recipients=["x@other.dest.test"])
    assert _recipients(fallback) == ["x@other.dest.test"]


def test_the_senders_relay_takes_what_only_the_last_route_would(lab, tables):
    own, sender, rest, section = (lab.sink() for _ in range(4))
    config = _quick(sender_routes=[tables.text("senders", f"a@sender.test {_relay_of(sender)}")])
    config.routes["dest.test"] = {"relay": [f"[127.0.0.1]:{own.port}"]}
    config.routes["some.test"] = {"relay": [f"[127.0.0.1]:{section.port}"], "from": [".test"]}
    config.routes["*"] = {"relay": [f"[127.0.0.1]:{rest.port}"]}
    relay = lab.relay(config)
    relay.send("a@sender.test", ["x@dest.test", "x@other.test"])
    relay.send("b@sender.test", ["y@dest.test", "y@other.test", "y@some.test"])
    relay.send("c@elsewhere.invalid", ["z@some.test"])
    assert _recipients(own, 2) == ["x@dest.test", "y@dest.test"]
    assert _recipients(sender) == ["x@other.test"]
    assert _recipients(section) == ["y@some.test"]
    assert _recipients(rest, 2) == ["y@other.test", "z@some.test"]


def test_what_a_senders_row_does_not_name_is_that_of_the_last_route(lab, tables):
    rest, other = lab.sink(), lab.sink()
    rows = ["a@sender.test slow", f"b@sender.test {_relay_of(other)}", "c@sender.test slow relay="]
    config = _quick(sender_routes=[tables.text("senders", *rows)])
    config.transports.update({"slow": {}, "usual": {}})
    config.routes["*"] = {"transport": "usual", "relay": [f"[127.0.0.1]:{rest.port}"]}
    relay = lab.relay(config)
    for sender in "ab":
        relay.send(f"{sender}@sender.test", [f"{sender}@dest.test"])
    assert relay.wait_event("sent", to="a@dest.test")["transport"] == "slow"
    assert relay.wait_event("sent", to="b@dest.test")["transport"] == "usual"
    assert _recipients(rest) == ["a@dest.test"]
    assert _recipients(other) == ["b@dest.test"]
    assert "by MX" in relay.command("route", "--from", "c@sender.test", "c@dest.test").stdout


def test_addresses_are_rewritten_on_the_way_in(lab, tables):
    sink = lab.sink()
    config = _quick(
        canonical=[tables.text("canonical", "@old.test @new.test")],
        sender_canonical=[tables.cdb("sender.cdb", "joe@new.test joe.doe@new.test")],
        masquerade=["!lab.dest.test", "dest.test"], masquerade_exceptions=["root"]).route_all_to(sink.port)
    relay = lab.relay(config)
    relay.send("joe@new.test", ["x@old.test"])
    relay.send("joe@host.dest.test", ["x@host.dest.test"])
    relay.send("root@host.dest.test")
    relay.send("joe@pc.lab.dest.test")
    messages = sink.wait_messages(4)
    assert sorted((m.sender, *m.recipients) for m in messages) == [
        ("joe.doe@new.test", "x@new.test"), ("joe@dest.test", "x@host.dest.test"),
        ("joe@pc.lab.dest.test", "to@dest.test"), ("root@host.dest.test", "to@dest.test")]


def test_a_row_may_change_the_case_of_a_local_part_alone(lab, tables):
    sink = lab.sink()
    config = _quick(recipient_canonical=[tables.text("canonical", "anna@dest.test Anna@dest.test")])
    relay = lab.relay(config.route_all_to(sink.port))
    for number, to in enumerate(("anna@dest.test", "ANNA@dest.test", "Anna@dest.test"), 1):
        relay.send(recipients=[to])
        assert sink.wait_messages(number)[-1].recipients == ["Anna@dest.test"]


HEADER = b"From: Joe <joe@pc.old.test>\r\nTo: x@old.test,\r\n\t\"Why\" <y@other.test>\r\nSubject: joe@pc.old.test\r\n"
REWRITTEN = b"From: Joe <joe@old.test>\r\nTo: x@new.test,\r\n\t\"Why\" <y@other.test>\r\nSubject: joe@pc.old.test\r\n"


@pytest.mark.parametrize("wanted", [True, False])
def test_the_header_is_rewritten_where_that_is_wanted(lab, tables, wanted):
    sink = lab.sink()
    config = _quick(recipient_canonical=[tables.text("canonical", "@old.test @new.test")],
                    masquerade=["old.test"], rewrite_header=wanted).route_all_to(sink.port)
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.send_mail("joe@pc.old.test", ["x@old.test"], HEADER + b"\r\nTo: x@old.test\r\n")
    relay.stop()
    left = relay.command("sendmail", "-f", "joe@pc.old.test", "x@old.test",
                         stdin=(HEADER + b"\r\nTo: x@old.test\r\n").replace(b"\r\n", b"\n").decode())
    assert left.returncode == 0, left.stderr
    relay.start()
    for message in sink.wait_messages(2):
        assert (message.sender, message.recipients) == ("joe@old.test", ["x@new.test"])
        assert (REWRITTEN if wanted else HEADER) in message.content
        assert message.content.endswith(b"\r\n\r\nTo: x@old.test\r\n")


def test_rewriting_that_goes_round_in_a_circle_is_refused_for_now(lab, tables):
    config = _quick(canonical=[tables.text("c", "a@x.test b@x.test", "b@x.test a@x.test")])
    relay = lab.relay(config.route_all_to(lab.sink().port))
    with relay.client() as client:
        client.greet()
        client.send("MAIL FROM:<a@x.test>")
        assert "4.3.5" in str(client.expect(451))
        client.command("MAIL FROM:<c@x.test>")
        client.send("RCPT TO:<b@x.test>")
        assert "4.3.5" in str(client.expect(451))


def test_copies_go_to_those_who_want_them_and_nobody_is_told(lab, tables):
    sink = lab.sink()
    config = _quick(
        always_bcc="all@copy.test",
        sender_bcc=[tables.text("s", "@sender.test out@copy.test")],
        recipient_bcc=[tables.text("r", "dest.test in@copy.test")],
        aliases=[tables.cdb("aliases.cdb", "in@copy.test one@copy.test, two@copy.test")])
    relay = lab.relay(config.route_all_to(sink.port))
    relay.send(recipients=["a@dest.test", "b@dest.test"])
    relay.wait_event("done")
    assert _recipients(sink) == ["a@dest.test", "all@copy.test", "b@dest.test", "one@copy.test",
                                 "out@copy.test", "two@copy.test"]
    for message in sink.messages:
        assert b"copy.test" not in message.content
        for recipient, params in message.recipient_params.items():
            assert ("NEVER" in str(params)) == ("copy.test" in recipient), message.recipient_params


def test_access_decides_before_anything_else(lab, tables):
    sink = lab.sink()
    config = _quick(recipient_access=[tables.text(
        "access", "bad@dest.test reject 554 5.7.0 not him", "busy@dest.test defer",
        "void@dest.test DISCARD", "code@dest.test 552 full", "good.test OK", ".test.closed reject",
    )]).route_all_to(sink.port)
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        for rcpt, code, text in (("Bad@dest.test", 554, "5.7.0 not him"),
                                 ("busy@dest.test", 450, "4.7.1 access denied"),
                                 ("code@dest.test", 552, "5.7.1 full"),
                                 ("x@a.test.closed", 550, "5.7.1 access denied")):
            client.send(f"RCPT TO:<{rcpt}>")
            assert text in str(client.expect(code))
        client.command("RSET")
        client.send_mail("from@sender.test", ["void@dest.test"])
        client.send_mail("from@sender.test", ["void@dest.test", "x@good.test"])
    assert _recipients(sink) == ["x@good.test"]
    relay.wait_event("discard", reason="no recipient is left")
    relay.wait_event("reject", code="554", dsn="5.7.0", reason="not him")


def test_a_message_held_on_its_way_in_waits_for_the_operator_also_after_a_crash(lab, tables):
    sink = lab.sink()
    config = _quick(recipient_access=[tables.text("access", "dest.test hold")])
    relay = lab.relay(config.route_all_to(sink.port))
    relay.send()
    relay.send(recipients=["x@other.test"])
    assert _recipients(sink) == ["x@other.test"]
    relay.kill()
    relay.start()

    def queues():
        listed = relay.command("queue", "list", "--json").stdout.splitlines()
        return [json.loads(line)["queue"] for line in listed]

    # What was delivered may come again, where the crash came before its verdict was on the disk.
    wait_until(lambda: queues() == ["hold"], 60, "the message to be held")
    assert relay.command("queue", "release", "--all").returncode == 0
    wait_until(lambda: set(_recipients(sink)) == {"to@dest.test", "x@other.test"}, 60, "both")


def test_route_tells_of_each_action(lab, tables):
    config = _quick(recipient_access=[tables.text("access", "a@x.test flow news", "b@x.test verify", "c@x.test dunno")])
    relay = lab.relay(config.route_all_to(1), start=False)
    for who, said in (("a", "flow news"), ("b", "verify"), ("c", "accept")):
        assert f"access     {said}, by recipient_access, " in relay.command("route", f"{who}@x.test").stdout


def test_route_ends_with_1_for_what_is_refused_or_dropped(lab, tables):
    config = _quick(
        recipient_bcc=[tables.text("bcc", "copied.test archive@drop.test")],
        aliases=[tables.text("aliases", "both@dest.test: x@dest.test, x@drop.test")],
        recipient_access=[tables.text("access", "refused@dest.test reject 550 5.7.1 no", "dropped@dest.test discard")],
        routes=[tables.text("routes", "err.test error 5.7.1 not here", "drop.test discard")])
    config.routes["list.test"] = {"relay": ["[127.0.0.1]:9"], "recipients": [tables.text("recipients", "known@list.test ok")]}
    relay = lab.relay(config.route_all_to(9), start=False)
    for status, address in ((0, "x@dest.test"), (0, "known@list.test"), (0, "x@copied.test"), (1, "unknown@list.test"), (1, "x@err.test"),
                            (1, "x@drop.test"), (1, "refused@dest.test"), (1, "dropped@dest.test"), (1, "both@dest.test")):
        for words in (("route",), ("route", "--json")):
            done = relay.command(*words, address)
            assert done.returncode == status and done.stdout, (address, done)
    assert relay.command("route", "x@err.test", "x@dest.test").returncode == 1


def test_route_tells_what_would_happen_and_why(lab, tables):
    nsd = lab.nsd({"dest.test": "@ MX 20 backup\n@ MX 10 mx\nmx A 127.0.0.2\nbackup A 127.0.0.3"})
    config = _quick(
        canonical=[tables.text("canonical", "", "@old.test @new.test")],
        aliases=[tables.text("aliases", "x@new.test: y@dest.test, z@gone.test")],
        routes=[tables.text("routes", "# none", "gone.test error 5.1.2 no more")])
    config.resolve_with(nsd)
    config.dns["allow_loopback"] = True
    relay = lab.relay(config, start=False)
    told = relay.command("route", "--json", "X@old.test")
    assert told.returncode == 1, told.stderr  # for the second that it stands for
    first, second = (json.loads(line) for line in told.stdout.splitlines())
    assert first["recipient_rewriting"][0]["line"] == 2
    assert first["alias"]["file"] == tables.path("aliases")
    assert (first["recipient"], first["transport"], first["tls"]) == ("y@dest.test", "smtp", "opportunistic")
    hosts = [(h["preference"], h["name"], h["address"]) for h in first["next_hops"][0]["hosts"]]
    assert hosts == [(10, "mx.dest.test", "127.0.0.2"), (20, "backup.dest.test", "127.0.0.3")]
    assert (second["action"], second["dsn"], second["file"], second["line"]) == (
        "error", "5.1.2", tables.path("routes"), 2)
    text = relay.command("route", "--from", "a@b.test", "x@old.test").stdout
    assert "host   mx.dest.test [127.0.0.2]:25, preference 10" in text
    assert f"{tables.path('routes')}:2" in text
    assert relay.command("route", "nobody").returncode == 1
