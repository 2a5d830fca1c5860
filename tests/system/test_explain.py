# SPDX-License-Identifier: ISC
"""sluice explain: what holds a message back, asked of the running relay."""

import datetime
import json
import re
import time

import pytest

from lab.config import Config
from lab.load import Load
from lab.net import free_port, wait_until
from lab.sink import Rule

DONE, REFUSED, USAGE = 0, 1, 2
PATIENT = {"minimal_backoff_time": "1h", "maximal_backoff_time": "2h", "backoff_jitter": "0"}
SLOW = Rule("end", delay=100)


def send(relay, *recipients):
    """Send one message, and return its id."""
    reply = relay.send(recipients=recipients or ("to@dest.test",))
    return re.search(r"\b[0-9A-Z]{13}\b", reply.text).group()


def wait_for(relay, what, *constraints):
    """Wait until these, and no others, are what binds."""
    def found():
        done = relay.command("explain", "--json", what)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return rows if sorted(row["constraint"] for row in rows) == sorted(constraints) else None
    return wait_until(found, 60, f"{what} to be explained by {constraints}")


def test_a_deferred_message_says_until_when_and_what_the_host_said(lab):
    sink = lab.sink(Rule("rcpt", "451 4.7.1 greylisted for now"))
    relay = lab.relay(Config(queue=PATIENT).route_all_to(sink.port))
    one = send(relay)
    row = wait_for(relay, one, "deferred")[0]
    assert row["id"] == one and row["recipients"] == 1
    assert 3500 < row["until"] - time.time() < 3700
    assert "greylisted for now" in row["last"] and "451" in row["says"]
    plain = relay.command("explain", one)
    assert plain.returncode == DONE
    assert re.match(rf'{one}: 1 recipient: deferred: 127\S+ said "451 ', plain.stdout)
    assert plain.stdout.count("\n") == 1 and "sluice queue flush" in plain.stdout


def test_each_reply_of_a_deferred_message_has_a_line(lab):
    sink = lab.sink(
        Rule("rcpt", "451 4.7.1 greylisted", pattern="one.test"),
        Rule("rcpt", "452 4.2.2 full", pattern="two.test"),
    )
    relay = lab.relay(Config(queue=PATIENT).route_all_to(sink.port))
    one = send(relay, "a@one.test", "b@two.test", "c@one.test", "d@fine.test")
    rows = wait_for(relay, one, "deferred", "deferred")
    assert sorted((row["recipients"], row["last"]) for row in rows) == [
        (1, "4.2.2 full"), (2, "4.7.1 greylisted")
    ]


def test_a_held_message_waits_for_the_operator(lab):
    relay = lab.relay(Config(queue=PATIENT).route_all_to(free_port()))
    one = send(relay)
    wait_for(relay, one, "deferred")
    relay.command("queue", "hold", one)
    row = wait_for(relay, one, "hold")[0]
    assert row["until"] is None and "release" in row["relief"]


def test_a_lost_reply_leaves_the_message_in_doubt(lab):
    sink = lab.sink(Rule("end", "", close=True))
    relay = lab.relay(Config(queue=PATIENT).route_all_to(sink.port))
    one = send(relay)
    assert wait_for(relay, one, "in_doubt")[0]["until"] > time.time() + 3000


def test_a_message_is_being_sent_and_others_wait_for_the_window(lab):
    sink = lab.sink(SLOW, extensions=())
    config = Config(queue=PATIENT | {"message_active_limit": 4}).route_all_to(sink.port)
    config.transports["smtp"] = {
        "initial_destination_concurrency": 1, "destination_concurrency_limit": 1,
        "pipeline_depth": 1,
    }
    relay = lab.relay(config)
    ids = [send(relay) for _ in range(6)]
    first = wait_for(relay, ids[0], "sending")[0]
    assert first["site"] == f"[127.0.0.1]:{sink.port}" and first["transport"] == "smtp"
    row = wait_for(relay, ids[3], "window")[0]
    assert (row["window"], row["limit"], row["busy"], row["ahead"]) == (1, 1, 1, 2)
    assert row["next"] == ids[1] and row["next_slots"] == 1
    assert "destination_concurrency_limit" in row["relief"]
    credit = wait_for(relay, ids[5], "credit")[0]
    assert "message_active_limit" in credit["relief"]
    site = wait_for(relay, first["site"], "window")[0]
    assert site["waiting"] == 3 and site["next"] == ids[1]
    plain = relay.command("explain", ids[3]).stdout
    assert "its window of 1 connection is full. 2 deliveries come first there. " in plain


def test_two_sites_of_one_message_are_explained_each_by_itself(lab):
    slow, mute = lab.sink(SLOW), lab.sink(Rule("connect", delay=100))
    config = Config(queue=PATIENT).route_all_to(slow.port)
    config.routes["mute.test"] = {"relay": [f"[127.0.0.1]:{mute.port}"]}
    relay = lab.relay(config)
    one = send(relay, "a@slow.test", "b@mute.test", "c@mute.test")
    rows = wait_for(relay, one, "sending", "connecting")
    connecting = next(row for row in rows if row["constraint"] == "connecting")
    assert connecting["recipients"] == 2 and connecting["connecting"] == 1
    assert connecting["site"] == f"[127.0.0.1]:{mute.port}"


@pytest.mark.plain_only
def test_a_dead_site_says_when_it_is_tried_again(lab):
    port = free_port()
    config = Config(queue=PATIENT).route_all_to(port)
    config.transports["smtp"] = {"initial_destination_concurrency": 1}
    relay = lab.relay(config, patient=True)
    send(relay)
    relay.wait_event("host", state="out", failures="4")

    def explained():
        """What is said, and the last failure, with none in between."""
        before = relay.events("host", state="out")
        row = wait_for(relay, f"[127.0.0.1]:{port}", "dead")[0]
        text = relay.command("explain", f"[127.0.0.1]:{port}").stdout
        after = relay.events("host", state="out")
        return (row, text, after[-1]) if len(before) == len(after) and ", in " in text else None

    row, text, last = wait_until(explained, what="an explanation between two failures")
    longest = 2 ** (int(last["failures"]) - 1)
    failed = datetime.datetime.fromisoformat(last.time.replace("Z", "+00:00")).timestamp()
    assert longest / 2 - 1 < row["until"] - failed < longest + 1
    assert "refused" in row["last"] and row["window"] == 0
    assert re.search(
        r"\]:\d+ refused the connection\..* again \d{4}-\d\d-\d\d [\d:]{8} [+-]\d{4}, in \d+(\.\d+)? s\. ", text)


def test_what_is_not_there_is_refused(lab):
    relay = lab.relay(Config().route_all_to(lab.sink().port))
    for what in "0123456789ABC", "nowhere":
        done = relay.command("explain", what)
        assert done.returncode == REFUSED and what in done.stderr and not done.stdout
    done = relay.command("explain", "nowhere.test")
    assert done.returncode == 0 and done.stdout == "nowhere.test: no mail waits for it, and none is on its way there\n"
    for words in [], ["a", "b"], ["--no"]:
        assert relay.command("explain", *words).returncode == USAGE


def test_a_message_that_is_gone_is_not_there_though_its_destination_is(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    gone = send(relay)
    relay.wait_event("done", id=gone)
    assert relay.command("explain", "dest.test").returncode == 0
    done = relay.command("explain", gone)
    assert done.returncode == REFUSED and gone in done.stderr and not done.stdout


def _away(lab):
    """A relay whose only destination is down, with a message that waits in the queue for it."""
    port = free_port()
    relay = lab.relay(Config(queue=PATIENT).route_all_to(port))
    one = send(relay)
    relay.wait_event("deferred", id=one)
    return relay, one, f"[127.0.0.1]:{port}", port


def test_parked_mail_says_that_the_return_of_its_host_lets_it_go(lab):
    relay, one, site, port = _away(lab)
    row = wait_for(relay, one, "deferred")[0]
    assert row["waits_for"] == site and 3500 < row["until"] - time.time() < 3700
    said = relay.command("explain", one).stdout
    assert f"deferred until {site} answers again: " in said and "refused the connection" in said
    assert "What lets it go: the answer of one of its hosts, which are tried from time to time; that time; sluice queue flush" in said
    lab.sink(port=port).wait_messages(1)


def test_mail_for_a_suspended_destination_names_that_and_is_resumed(lab):
    relay, one, site, port = _away(lab)
    relay.command("dest", "suspend", site)
    row = wait_for(relay, one, "suspended")[0]
    assert row["waits_for"] == site
    said = relay.command("explain", one).stdout
    assert f"deferred, for {site} is suspended by the operator" in said and "What lets it go: sluice dest resume\n" in said
    assert "1 message waits in the queue until it is resumed" in relay.command("explain", site).stdout
    sink = lab.sink(port=port)
    relay.command("dest", "resume", site)
    sink.wait_messages(1)


def test_mail_whose_only_host_is_suspended_is_let_go_by_resume_alone(lab):
    """Both answers promised that the host is tried from time to time, and that a flush helps."""
    sink = lab.sink()
    relay = lab.relay(Config(queue=PATIENT).route_all_to(sink.port))
    site, lets_go = f"[127.0.0.1]:{sink.port}", "What lets it go: sluice dest resume '127.0.0.1', or the time that was said\n"
    relay.command("dest", "suspend", "127.0.0.1")
    one = send(relay)
    relay.wait_event("deferred", id=one)
    assert wait_for(relay, one, "suspended")[0]["waits_for"] == site
    said = relay.command("explain", one).stdout
    assert f"deferred, for all hosts of {site} are suspended by the operator. It is looked at again " in said and lets_go in said
    assert lets_go in relay.command("explain", site).stdout
    assert "resumed" in relay.command("dest", "resume", "127.0.0.1").stdout
    sink.wait_messages(1)


def test_mail_for_a_suspended_domain_names_that_and_is_resumed(lab):
    sink = lab.sink()
    relay = lab.relay(Config(queue=PATIENT).route_all_to(sink.port))
    relay.command("dest", "suspend", "dest.test", "--for", "10m")
    one = send(relay)
    relay.wait_event("deferred", id=one)
    row = wait_for(relay, one, "suspended")[0]
    assert row["waits_for"] == "dest.test" and 500 < row["until"] - time.time() < 601
    said = relay.command("explain", one).stdout
    assert "deferred, for dest.test is suspended by the operator. It is looked at again " in said
    assert said.endswith("What lets it go: sluice dest resume, or the end of the suspension\n")
    relay.command("dest", "resume", "dest.test")
    sink.wait_messages(1)


@pytest.mark.plain_only
def test_mail_of_a_suspended_flow_names_what_resumes_it(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.command("flow", "suspend", "sender.test")
    send(relay, "to@dest.test")
    relay.wait_event("deferred")
    said = relay.command("explain", relay.wait_event("queued")["id"]).stdout
    assert "for its flow is suspended by the operator" in said and said.endswith("What lets it go: sluice flow resume 'sender.test'\n")
    wait_until(lambda: "sluice flow resume" in relay.command("explain", "dest.test").stdout, 60, "all to be counted")
    assert "dest resume" not in relay.command("explain", "dest.test").stdout
    relay.command("flow", "resume", "sender.test")
    sink.wait_messages(1)


def test_all_mail_that_waits_for_a_domain_is_counted(lab):
    relay = lab.relay(Config(queue=PATIENT).route_all_to(free_port()))
    relay.command("dest", "suspend", "dest.test")
    Load(relay.port, 2100, sessions=50).finish()
    relay.wait_event("deferred", count=2100)
    wait_until(lambda: "dest.test: 2100 messages for 2100 recipients are deferred: " in relay.command("explain", "dest.test").stdout,
               60, "all to be counted")


def test_mail_that_the_scheduler_has_no_room_for_says_so(lab):
    slow = lab.own_sink("--delay", "120000")
    relay = lab.relay(Config(queue=PATIENT | {"message_active_limit": 2}).route_all_to(slow.port))
    with relay.client() as client:
        client.greet()
        for number in range(5):
            client.send_mail("from@sender.test", [f"to{number}@dest.test"])
    wait_until(lambda: "dest.test: 3 messages for 3 recipients are incoming" in relay.command("explain", "dest.test").stdout, 60, "all to be counted")
    said = next(line for line in relay.command("explain", "dest.test").stdout.splitlines() if "incoming" in line)
    assert said.endswith("for the scheduler has all the messages it may have. What lets them go: messages that are done; message_active_limit")


def test_mail_of_a_host_that_refuses_our_login_says_how_to_try_it(lab, tmp_path):
    sink = lab.own_sink("--starttls", "--login", "us:right")
    secret, table = tmp_path / "secret", tmp_path / "credentials"
    secret.write_text("wrong\n")
    hop = f"[127.0.0.1]:{sink.port}"
    table.write_text(f"{hop} us password:{secret} unauthenticated\n")
    config = Config(settings={"credentials": [str(table)]}, transports={"smtp": {"site_patience": "300ms"}})
    relay = lab.relay(config.route_all_to(sink.port))
    send(relay, "to@dest.test")
    relay.wait_event("login", result="refused")
    relay.wait_event("deferred")
    said = relay.command("explain", relay.wait_event("queued")["id"]).stdout
    assert 'said "535 5.7.8 ' in said and "4.7.8" not in said
    assert f"sluice login --test '{hop}'" in said and f"sluice dest reset '{hop}'" in said
    assert f"sluice login --test '{hop}'" in relay.command("explain", "dest.test").stdout
    assert "4.7.8" not in relay.command("dest").stdout + relay.command("queue", "list").stdout
    assert relay.command("login", "--test", hop).returncode == 1
    secret.write_text("right\n")
    assert relay.command("login", "--test", hop).returncode == 0
    assert relay.command("dest", "reset", hop).returncode == 0
    relay.wait_event("sent")
