# SPDX-License-Identifier: ISC
"""Reports to the sender: who gets one, when, and what it says."""

import re
import threading

import pytest

from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.report import Report
from lab.sink import Rule
from lab.smtp import stuff

CONTENT = b"Subject: the original\r\nX-Mark: 7\r\n\r\nbody of the original\r\n"


class Office:
    """A relay between two sinks: the world, and the mailboxes of senders."""

    def __init__(self, lab, *rules, queue=None, settings=None, **behaviour):
        """The rules are the world's."""
        self.world = lab.sink(*rules, **behaviour)
        self.mailbox = lab.sink()
        config = Config(queue=queue or {}, settings=settings or {}).route_all_to(self.world.port)
        config.routes["sender.test"] = {"relay": [f"[{LOOPBACK}]:{self.mailbox.port}"]}
        self.relay = lab.relay(config)

    def send(self, *recipients, sender="from@sender.test", params="", content=CONTENT):
        """Send one message; a recipient is an address, or an address and its parameters."""
        with self.relay.client() as client:
            client.greet()
            client.command(f"MAIL FROM:<{sender}>{params}")
            for recipient in recipients:
                address, more = (recipient, "") if isinstance(recipient, str) else recipient
                client.command(f"RCPT TO:<{address}>{more}")
            client.command("DATA", 354)
            client.send(stuff(content))
            client.expect(250)

    def report(self):
        """Wait for the one report, check its envelope, and return it."""
        message = self.mailbox.wait_messages(1)[0]
        assert message.sender == ""
        return Report(message.content)

    def silence(self, expected=0):
        """Check that all work is done, and that just so many reports came."""
        relay = self.relay
        wait_until(
            lambda: len(relay.events("done")) == len(relay.events("queued")) > 0, what="the end"
        )
        assert len(self.mailbox.messages) == expected


REFUSED = Rule("rcpt", "550 5.1.1 no such user here", pattern="nobody")


def test_a_recipient_refused_is_reported_to_the_sender(lab):
    office = Office(lab, REFUSED)
    office.send("nobody@dest.test")
    report = office.report()
    assert office.mailbox.messages[0].recipients == ["from@sender.test"]
    assert report.header["To"] == "from@sender.test"
    assert "MAILER-DAEMON@relay.test" in report.header["From"]
    fields = report.recipient("nobody@dest.test")
    assert fields["action"] == "failed"
    assert fields["status"] == "5.1.1"
    assert re.fullmatch(r"smtp; ?550 (5\.1\.1 )?no such user here", fields["diagnostic-code"])
    assert re.match(r"dns; ?\S+", fields["remote-mta"])
    assert fields["last-attempt-date"]
    assert report.message["reporting-mta"].replace(" ", "") == "dns;relay.test"
    assert report.message["arrival-date"]
    assert "nobody@dest.test" in report.notice and "no such user here" in report.notice
    assert report.returned.type == "message/rfc822"
    assert report.returned.body.endswith(CONTENT)
    office.silence(1)


def test_a_message_refused_at_its_end_is_reported(lab):
    office = Office(lab, Rule("end", "554 5.7.1 we do not like it"))
    office.send("a@dest.test", "b@dest.test")
    report = office.report()
    assert len(report.recipients) == 2
    for address in ("a@dest.test", "b@dest.test"):
        assert report.recipient(address)["status"] == "5.7.1"
    office.silence(1)


def test_a_refused_sender_is_reported(lab):
    office = Office(lab, Rule("mail", "553 5.1.8 unknown sender"))
    office.send("a@dest.test")
    assert office.report().recipient("a@dest.test")["status"] == "5.1.8"
    office.silence(1)


def test_a_domain_that_does_not_exist_is_reported(lab):
    nsd = lab.nsd({"dest.test": "@ TXT \"a zone\""})
    mailbox = lab.sink()
    config = Config().resolve_with(nsd)
    config.routes["sender.test"] = {"relay": [f"[{LOOPBACK}]:{mailbox.port}"]}
    relay = lab.relay(config)
    relay.send(recipients=["to@nowhere.dest.test"])
    fields = Report(mailbox.wait_messages(1)[0].content).recipient("to@nowhere.dest.test")
    assert fields["status"] == "5.1.2"
    assert "remote-mta" not in fields


def test_several_recipients_share_one_report_and_the_others_have_the_message(lab):
    office = Office(lab, REFUSED)
    office.send("good@dest.test", "nobody1@dest.test", "nobody2@dest.test", "fine@dest.test")
    report = office.report()
    addresses = {fields["final-recipient"].partition(";")[2].strip() for fields in report.recipients}
    assert addresses == {"nobody1@dest.test", "nobody2@dest.test"}
    assert office.world.messages[0].recipients == ["good@dest.test", "fine@dest.test"]
    office.silence(1)


@pytest.mark.parametrize(
    "notify, expected",
    [("", 1), (" NOTIFY=NEVER", 0), (" NOTIFY=FAILURE", 1), (" NOTIFY=SUCCESS", 0),
     (" NOTIFY=DELAY", 0), (" NOTIFY=SUCCESS,FAILURE,DELAY", 1)],
)
def test_a_failure_is_reported_only_to_who_wants_to_know(lab, notify, expected):
    office = Office(lab, REFUSED)
    office.send(("nobody@dest.test", notify))
    office.silence(expected)
    office.relay.wait_event("bounced")


def test_success_is_asked_of_a_host_that_can_report_it(lab):
    office = Office(lab)
    office.send(("a@dest.test", " NOTIFY=SUCCESS ORCPT=rfc822;old+2Bname@dest.test"),
                params=" RET=HDRS ENVID=an+2Bid")
    message = office.world.wait_messages(1)[0]
    assert message.sender_params["RET"] == "HDRS"
    assert message.sender_params["ENVID"] == "an+2Bid"
    assert message.recipient_params["a@dest.test"]["NOTIFY"] == "SUCCESS"
    assert message.recipient_params["a@dest.test"]["ORCPT"] == "rfc822;old+2Bname@dest.test"
    office.silence(0)


def test_success_is_reported_as_relayed_where_the_host_reports_nothing(lab):
    office = Office(lab, extensions=("PIPELINING",))
    office.send(("a@dest.test", " NOTIFY=SUCCESS"), "b@dest.test",
                ("c@dest.test", " NOTIFY=FAILURE"))
    report = office.report()
    assert len(report.recipients) == 1
    fields = report.recipient("a@dest.test")
    assert fields["action"] == "relayed" and fields["status"].startswith("2.")
    assert report.returned.type == "text/rfc822-headers"
    office.silence(1)


def test_what_the_host_confirms_itself_is_not_reported_after_a_restart(lab):
    gate = threading.Event()
    office = Office(lab)
    slow, other = lab.sink(Rule("rcpt", gate=gate, times=1)), lab.sink(extensions=("PIPELINING",))
    office.relay.config.routes["slow.test"] = {"relay": [f"[{LOOPBACK}]:{slow.port}"]}
    office.relay.config.routes["other.test"] = {"relay": [f"[{LOOPBACK}]:{other.port}"]}
    office.relay.write_config()
    assert office.relay.command("reload").returncode == 0
    office.send(("a@dest.test", " NOTIFY=SUCCESS"), ("b@other.test", " NOTIFY=SUCCESS"), "to@slow.test")
    office.relay.wait_event("sent", to="a@dest.test")
    office.relay.wait_event("sent", to="b@other.test")
    office.relay.stop()
    gate.set()
    office.relay.start()
    report = office.report()
    assert [fields["final-recipient"] for fields in report.recipients] == ["rfc822;b@other.test"]
    assert report.recipients[0]["action"] == "relayed"
    wait_until(lambda: len(office.relay.events("done")) == 2, what="the end")  # its, and that of the report
    assert len(office.mailbox.messages) == 1


def test_only_the_header_is_returned_when_the_sender_wants_no_more(lab):
    office = Office(lab, REFUSED)
    office.send("nobody@dest.test", params=" RET=HDRS")
    report = office.report()
    assert report.returned.type == "text/rfc822-headers"
    assert b"X-Mark: 7" in report.returned.body
    assert b"body of the original" not in report.content


def test_only_the_header_of_a_large_message_is_returned(lab):
    office = Office(lab, REFUSED)
    office.send("nobody@dest.test", content=CONTENT + b"body of the original\r\n" * 30000)
    report = office.report()
    assert report.returned.type == "text/rfc822-headers"
    assert len(report.content) < 10000
    assert b"X-Mark: 7" in report.returned.body


def test_envelope_id_and_original_recipient_are_given_back(lab):
    office = Office(lab, REFUSED)
    office.send(("nobody@dest.test", " ORCPT=rfc822;first+2Bchoice@dest.test"),
                params=" ENVID=QQ+2B314+3D1")
    report = office.report()
    assert report.message["original-envelope-id"] == "QQ+314=1"
    original = report.recipient("nobody@dest.test")["original-recipient"]
    assert re.fullmatch(r"rfc822; ?first\+choice@dest\.test", original)


def test_a_delay_is_reported_once(lab):
    office = Office(
        lab, Rule("rcpt", "451 4.3.0 later", pattern="slow", times=6),
        queue={"minimal_backoff_time": "200ms", "maximal_backoff_time": "300ms",
               "delay_warning_time": "300ms"},
    )
    office.send("slow@dest.test", "good@dest.test")
    report = office.report()
    fields = report.recipient("slow@dest.test")
    assert len(report.recipients) == 1
    assert fields["action"] == "delayed" and fields["status"] == "4.3.0"
    assert fields["will-retry-until"]
    assert report.returned.type == "text/rfc822-headers"
    office.relay.wait_event("sent", to="slow@dest.test")
    office.silence(1)


@pytest.mark.parametrize("notify", [" NOTIFY=NEVER", " NOTIFY=FAILURE"])
def test_a_delay_is_not_reported_to_who_does_not_want_to_know(lab, notify):
    office = Office(
        lab, Rule("rcpt", "451 4.3.0 later", times=5),
        queue={"minimal_backoff_time": "100ms", "maximal_backoff_time": "200ms",
               "delay_warning_time": "100ms"},
    )
    office.send(("slow@dest.test", notify))
    office.relay.wait_event("sent", to="slow@dest.test")
    office.silence(0)


def test_what_can_not_be_delivered_in_its_lifetime_is_returned(lab):
    mailbox = lab.sink()
    config = Config(queue={"minimal_backoff_time": "200ms", "maximal_backoff_time": "300ms",
                           "maximal_queue_lifetime": "1s"}).route_all_to(free_port())
    config.routes["sender.test"] = {"relay": [f"[{LOOPBACK}]:{mailbox.port}"]}
    relay = lab.relay(config)
    relay.send(content=CONTENT)
    relay.wait_event("deferred", count=2)
    relay.wait_event("bounced", dsn="4.4.7")
    report = Report(mailbox.wait_messages(1)[0].content)
    fields = report.recipient("to@dest.test")
    assert fields["action"] == "failed" and fields["status"] == "4.4.7"
    assert "refused" in fields["diagnostic-code"].lower()
    assert report.returned.body.endswith(CONTENT)


def test_a_bounce_that_can_not_be_delivered_ends_there(lab):
    office = Office(lab, REFUSED)
    office.mailbox.behaviour.rules.append(Rule("rcpt", "550 5.1.1 unknown"))
    office.send("nobody@dest.test")
    discarded = office.relay.wait_event("discarded")
    assert discarded["to"] == "from@sender.test"
    assert discarded["reason"].endswith("there is no sender to tell: 5.1.1 unknown")
    office.silence(0)
    assert len(office.relay.events("queued")) == 2
    assert not office.relay.command("queue", "list", "--json").stdout.strip()


def test_mail_from_nobody_is_not_bounced(lab):
    office = Office(lab, REFUSED)
    office.send("nobody@dest.test", sender="")
    office.relay.wait_event("discarded")
    office.silence(0)
    assert len(office.relay.events("queued")) == 1


def test_the_postmaster_gets_a_bounce_that_can_not_be_delivered(lab):
    office = Office(lab, REFUSED, settings={"postmaster": "post@sender.test"})
    office.mailbox.behaviour.rules.append(Rule("rcpt", "550 5.1.1 unknown", pattern="from@"))
    office.send("nobody@dest.test")
    message = office.mailbox.wait_messages(1)[0]
    assert (message.sender, message.recipients) == ("", ["post@sender.test"])
    report = Report(message.content)
    assert report.recipient("from@sender.test")["status"] == "5.1.1"
    assert b"nobody@dest.test" in report.returned.body
    office.silence(1)


def test_what_the_postmaster_can_not_get_ends_there(lab):
    office = Office(lab, REFUSED, settings={"postmaster": "post@sender.test"})
    office.mailbox.behaviour.rules.append(Rule("rcpt", "550 5.1.1 unknown"))
    office.send("nobody@dest.test")
    office.relay.wait_event("discarded")
    office.silence(0)
    assert len(office.relay.events("queued")) == 3


HOSTILE = {
    "8 bit": "550 5.7.1 \u00fc\u20ac \u7528\u6237",
    "very long": "550 5.7.1 " + "word " * 180,
    "one long word": "550 5.7.1 " + "x" * 900,
    "many lines": "\r\n".join(["550-5.7.1 line of many"] * 40 + ["550 5.7.1 the last"]),
    "no text": "550",
    "controls": "550 5.7.1 \x1b[2J\x07\t%n%s",
    "looks like a boundary": "550 5.7.1 --=_report--",
    "field": "550 5.7.1 x\tX-Evil: 1",
    "empty lines": "550-\r\n550-\r\n550 5.7.1 end",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_reply_breaks_the_report_or_the_log(lab, name):
    office = Office(lab, Rule("rcpt", HOSTILE[name]))
    office.send("nobody@dest.test")
    report = office.report()
    fields = report.recipient("nobody@dest.test")
    assert fields["status"].startswith("5.")
    assert set(fields) <= {"final-recipient", "action", "status", "remote-mta", "diagnostic-code",
                           "last-attempt-date"}
    assert "\x1b" not in report.content.decode("utf-8")
    assert report.returned.body.endswith(CONTENT)
    text = office.relay.log_text()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    office.silence(1)


def test_bytes_that_are_no_text_do_not_break_the_report(lab):
    steps = [("send", b"220 x\r\n"), ("expect", "EHLO.*\r\n"), ("send", b"250 x\r\n"),
             ("expect", "MAIL.*\r\n"), ("send", b"550 5.7.1 \xff\xfe\x80 latin \xe9\r\n"), ("drain",)]
    world, mailbox = lab.script(steps), lab.sink()
    config = Config().route_all_to(world.port)
    config.routes["sender.test"] = {"relay": [f"[{LOOPBACK}]:{mailbox.port}"]}
    lab.relay(config).send(content=CONTENT)
    report = Report(mailbox.wait_messages(1)[0].content)
    assert report.recipient("to@dest.test")["status"] == "5.7.1"


def test_an_international_recipient_is_reported_in_the_form_of_rfc_6533(lab):
    office = Office(lab, Rule("rcpt", "550 5.1.1 unknown"))
    with office.relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["用户@dest.test"], CONTENT, mail_params=" SMTPUTF8")
    report = office.report()
    assert len(report.recipients) == 1
    assert report.recipients[0]["final-recipient"].replace(" ", "") == "utf-8;用户@dest.test"


def test_an_international_original_recipient_is_passed_on_and_given_back(lab):
    office = Office(lab, REFUSED)
    with office.relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test> SMTPUTF8")
        for to in ("to", "nobody"):
            client.send(f"RCPT TO:<{to}@dest.test> ORCPT=utf-8;用户+2B@dest.test\r\n".encode())
            client.expect(250)
        client.command("RCPT TO:<a@dest.test> ORCPT=utf-8;a@x=", 501)
        client.command("DATA", 354)
        client.send(stuff(CONTENT))
        client.expect(250)
    report = office.report()
    assert report.recipients[0]["original-recipient"] == r"utf-8;\x{7528}\x{6237}+@dest.test"
    params = office.world.messages[0].recipient_params["to@dest.test"]
    assert params["ORCPT"] == r"utf-8;\x{7528}\x{6237}+2B@dest.test"


def test_mail_that_is_not_international_may_have_had_such_a_recipient(lab):
    office = Office(lab, extensions=("DSN",))
    with office.relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        client.send("RCPT TO:<to@dest.test> ORCPT=utf-8;用户@dest.test\r\n".encode())
        client.expect(250)
        client.command("DATA", 354)
        client.send(stuff(CONTENT))
        client.expect(250)
    params = office.world.wait_messages(1)[0].recipient_params["to@dest.test"]
    assert params["ORCPT"] == r"utf-8;\x{7528}\x{6237}@dest.test"


def test_reports_beyond_the_rate_wait_and_none_is_lost(lab):
    sink = lab.sink(REFUSED)
    queue = {"minimal_backoff_time": "100ms", "maximal_backoff_time": "100ms", "bounce_address_rate": "2/m"}
    relay = lab.relay(Config(queue=queue).hurried().route_all_to(sink.port))
    for number in range(5):
        relay.send(sender="Victim@sender.test" if number else "victim@sender.test",
                   recipients=[f"nobody{number}@dest.test"])
    relay.send(sender="other@sender.test", recipients=["nobody@dest.test"])
    event = relay.wait_event("bounces_wait")
    assert event["to"].lower() == "victim@sender.test" and "bounce_address_rate" in event["reason"]
    sink.wait_messages(3)
    relay.wait_event("done", count=6)  # three reports, and what they are about
    to = sorted(message.recipients[0].lower() for message in sink.messages)
    assert to == ["other@sender.test", "victim@sender.test", "victim@sender.test"]
    assert len(relay.command("queue", "list", "--json").stdout.splitlines()) == 3
    relay.config.queue["bounce_address_rate"] = ""
    relay.write_config()
    assert relay.command("reload").returncode == 0
    assert relay.command("queue", "flush", "--all").returncode == 0
    sink.wait_messages(6)
    relay.wait_event("done", count=12)
    about = [Report(message.content).recipients[0]["final-recipient"] for message in sink.messages]
    assert len(set(about)) == 6


def test_word_of_what_was_sent_waits_for_the_rate_and_is_not_lost(lab):
    queue = {"minimal_backoff_time": "100ms", "maximal_backoff_time": "100ms", "bounce_address_rate": "1/h"}
    office = Office(lab, queue=queue, extensions=("PIPELINING",))
    for number in range(3):
        office.send((f"a{number}@dest.test", " NOTIFY=SUCCESS"))
    office.relay.wait_event("sent", count=3, to=re.compile("dest.test"))
    office.mailbox.wait_messages(1)
    office.relay.wait_event("done", count=2)  # one report, and what it is about
    assert len(office.relay.command("queue", "list", "--json").stdout.splitlines()) == 2
    office.relay.config.queue["bounce_address_rate"] = ""
    office.relay.write_config()
    assert office.relay.command("reload").returncode == 0
    assert office.relay.command("queue", "flush", "--all").returncode == 0
    office.mailbox.wait_messages(3)
    office.relay.wait_event("done", count=6)
    reports = [Report(message.content).recipients[0] for message in office.mailbox.messages]
    assert sorted(fields["final-recipient"] for fields in reports) == [f"rfc822;a{number}@dest.test" for number in range(3)]
    assert {fields["action"] for fields in reports} == {"relayed"}
    assert len(office.world.messages) == 3


def test_mail_that_waits_for_its_turn_is_told_of_and_returned_in_time(lab):
    office = Office(lab, queue={"delay_warning_time": "1s", "maximal_queue_lifetime": "3s"})
    office.relay.config.extra += 'flow "sender.test" { rate = "1/h" }\n'
    office.relay.write_config()
    assert office.relay.command("reload").returncode == 0
    office.send("first@dest.test")
    office.relay.wait_event("sent", to="first@dest.test")
    office.send("second@dest.test")
    assert office.relay.wait_event("bounced", to="second@dest.test")["dsn"] == "4.4.7"
    delayed, failed = [Report(message.content).recipients[0] for message in office.mailbox.wait_messages(2)]
    assert delayed["action"] == "delayed" and delayed["status"] == "4.4.7"
    assert "not tried yet" in delayed["diagnostic-code"] and delayed["will-retry-until"]
    assert failed["action"] == "failed" and failed["status"] == "4.4.7"
    assert [message.recipients for message in office.world.messages] == [["first@dest.test"]]


def crowded(lab, messages, **queue):
    """An office whose world takes nothing for now, one at a time, with more mail for it than the active queue has places."""
    office, gate = Office.__new__(Office), threading.Event()
    lab.callback(gate.set)
    office.world, office.mailbox = lab.sink(Rule("end", gate=gate)), lab.sink()
    config = Config(queue={"message_active_limit": 20, "in_flow_delay": "0s", "minimal_backoff_time": "1h", "maximal_backoff_time": "1h"} | queue,
                    transports={"one": {"like": "smtp", "destination_concurrency_limit": 1, "pipeline_depth": 1}})
    config.route_all_to(office.world.port)
    config.routes["dest.test"] = {"transport": "one", "relay": [f"[{LOOPBACK}]:{office.world.port}"]}
    config.routes["sender.test"] = {"relay": [f"[{LOOPBACK}]:{office.mailbox.port}"]}
    office.relay = lab.relay(config)
    for number in range(messages):
        office.send(f"r{number}@dest.test")
    return office


def test_mail_that_waits_for_a_place_is_told_of_in_time(lab):
    """Those that have one are told of, and make room for others: not one backoff later."""
    office = crowded(lab, 60, delay_warning_time="4s")
    office.mailbox.wait_messages(59, 40)  # the world has one of them


def test_mail_that_waits_for_a_place_is_returned_in_time(lab):
    """As long as others wait for places: of three rounds of them two. The last have theirs, and wait for one more attempt."""
    office = crowded(lab, 60, maximal_queue_lifetime="4s")
    office.relay.wait_event("bounced", count=40)
