# SPDX-License-Identifier: ISC
"""Mail goes through as it came, whatever it is made of, and leaves nothing behind."""

import email
import os
import pathlib
import random
import shutil
import smtplib
import subprocess

import pytest

from lab import peers, received
from lab.config import Config
from lab.net import LOOPBACK, accepts, free_port, wait_until
from lab.process import Process
from lab.relay import binary
from lab.sink import Rule

INLINE_MAX = 512 << 10

CONTENTS = {
    "empty": b"",
    "header only": b"Subject: nothing more\r\n\r\n",
    "no header": b"\r\nbody\r\n",
    "dots": b"Subject: dots\r\n\r\n.\r\n..\r\n.x\r\n...\r\n\r\n.\r\n",
    "dot first": b".Subject: no field\r\n\r\n.\r\n",
    "many lines of dots": b"\r\n" + b".\r\n" * 30000,
    "8 bit": b"Subject: 8 bit\r\n\r\n" + bytes(range(128, 256)) + b"\r\n",
    "control characters": b"\r\n\x01\x02\x1b[2J\x7f\t\x0b\x0c\r\n",
    "neither header nor body": b"Subject: gap\r\nno field here\r\nX: y\r\n\r\nbody\r\n",
    "longest line": b"\r\n" + b"x" * 998 + b"\r\n",
    "blank lines": b"\r\n" * 500,
}


@pytest.fixture(scope="module")
def sink(module_lab):
    return module_lab.sink()


@pytest.fixture(scope="module")
def relay(module_lab, sink):
    return module_lab.relay(Config().route_all_to(sink.port))


def _transfer(relay, sink, content, **options):
    """Send one message and return what the sink has of it, without the relay's field."""
    before = len(sink.messages)
    with relay.client(timeout=60.0) as client:
        client.greet()
        client.send_mail("from@sender.test", ["to@dest.test"], content, **options)
    sink.wait_messages(before + 1, 60)
    assert len(sink.messages) == before + 1
    return received.without(sink.messages[-1].content)


def _send_chunks(relay, chunks, recipients=("to@dest.test",)):
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test> BODY=8BITMIME")
        for recipient in recipients:
            client.command(f"RCPT TO:<{recipient}>")
        for number, chunk in enumerate(chunks, 1):
            last = " LAST" if number == len(chunks) else ""
            client.send(f"BDAT {len(chunk)}{last}\r\n".encode("ascii") + chunk)
            client.expect(250)


def _files(folder):
    return {str(path) for path in pathlib.Path(folder).rglob("*") if path.is_file()}


def _large(relay):
    return _files(os.path.join(relay.spool, "large"))


def _segments(relay):
    return [path for path in _files(os.path.join(relay.spool, "log")) if path.endswith(".seg")]


@pytest.mark.parametrize("name", CONTENTS)
def test_content_arrives_byte_for_byte(relay, sink, name):
    assert _transfer(relay, sink, CONTENTS[name], mail_params=" BODY=8BITMIME") == CONTENTS[name]


@pytest.mark.parametrize("name", CONTENTS)
def test_content_arrives_byte_for_byte_at_a_sink_without_chunking(lab, name):
    sink = lab.sink(extensions=("PIPELINING", "8BITMIME"))
    relay = lab.relay(Config().route_all_to(sink.port))
    assert _transfer(relay, sink, CONTENTS[name], mail_params=" BODY=8BITMIME") == CONTENTS[name]
    assert sink.messages[0].verb == "DATA"


def test_one_field_is_added_and_says_where_the_message_came_from(relay, sink):
    _transfer(relay, sink, b"Subject: x\r\n\r\ny\r\n")
    field, _ = received.split(sink.messages[-1].content)
    assert field.startswith("Received: from client.test ")
    assert "[127.0.0.1]" in field and "by relay.test" in field and "with ESMTP" in field
    relay.wait_event("queued", id=received.identity(sink.messages[-1].content))


@pytest.mark.parametrize("extensions", [None, ("PIPELINING",)], ids=["chunks", "data"])
def test_content_around_the_size_that_gets_a_file_arrives(lab, extensions):
    sink = lab.sink(**({"extensions": extensions} if extensions else {}))
    relay = lab.relay(Config().route_all_to(sink.port))
    _transfer(relay, sink, b"\r\n")
    added = len(sink.messages[0].content) - 2
    for size in {INLINE_MAX + step - less for step in (-1, 0, 1) for less in (0, added)}:
        content = (b"x" * 78 + b"\r\n") * 8000
        content = content[:size - 2] + b"\r\n"
        if content.endswith(b"\r\r\n"):
            content = content[:-3] + b"x\r\n"
        assert len(content) == size
        assert _transfer(relay, sink, content) == content


@pytest.mark.plain_only
def test_forty_megabytes_arrive_and_leave_no_file(lab, tmp_path):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    blob = random.Random(1).randbytes(29 << 20)
    path = tmp_path / "blob.bin"
    path.write_bytes(blob)
    _swaks(relay, "--to", "to@dest.test", "--attach-type", "application/octet-stream",
           "--attach", f"@{path}")
    sink.wait_messages(1, 60)
    message = email.message_from_bytes(sink.messages[0].content)
    assert message.get_payload()[1].get_payload(decode=True) == blob
    wait_until(lambda: not _large(relay), what="the large file to go")


def _swaks(relay, *options):
    command = ["swaks", "--server", f"{LOOPBACK}:{relay.port}", "--from", "from@sender.test",
               "--helo", "client.test", "--timeout", "60", "--silent", "2", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("swaks"), reason="swaks is not installed")
def test_swaks_sends_an_attachment_to_several_recipients(relay, sink, tmp_path):
    before = len(sink.messages)
    path = tmp_path / "page.txt"
    path.write_bytes(b".\n..\nplain text\n" * 100)
    _swaks(relay, "--to", "a@dest.test,b@dest.test", "--header", "Subject: from swaks",
           "--attach", f"@{path}")
    sink.wait_messages(before + 1)
    arrived = sink.messages[-1]
    assert sorted(arrived.recipients) == ["a@dest.test", "b@dest.test"]
    message = email.message_from_bytes(arrived.content)
    assert message["Subject"] == "from swaks"
    assert message.get_payload()[1].get_payload(decode=True) == path.read_bytes()


def test_smtplib_sends_a_message(relay, sink):
    before = len(sink.messages)
    text = "Subject: from Python\r\n\r\n.dot\r\nGrüße\r\n".encode("utf-8")
    with smtplib.SMTP(LOOPBACK, relay.port) as client:
        refused = client.sendmail("from@sender.test", ["a@dest.test", "b@dest.test"], text)
    assert refused == {}
    sink.wait_messages(before + 1)
    assert received.without(sink.messages[-1].content) == text


def test_every_message_of_smtp_source_arrives_once(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    subprocess.run(
        [peers.program("smtp-source"), "-c", "-s", "10", "-m", "300", "-l", "3000", "-N",
         "-f", "a@b.test", "-t", "c@d.test", f"{LOOPBACK}:{relay.port}"],
        check=True, capture_output=True, timeout=60,
    )
    sink.wait_messages(300, 60)
    relay.wait_event("done", count=300)
    ids = {received.identity(one.content) for one in sink.messages}
    assert len(ids) == len(sink.messages) == 300


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_chunks_are_put_together(relay, sink, cut):
    text = b"Subject: chunks\r\n\r\n" + b".\r\n..\r\n\xc3\xbc line\r\n" * (cut * 4)
    chunks = [text[at:at + cut] for at in range(0, min(len(text), cut * 40), cut)]
    text = b"".join(chunks)
    if not text.endswith(b"\r\n"):
        chunks.append(b"\r\n" if not text.endswith(b"\r") else b"\n")
    text = b"".join(chunks)
    before = len(sink.messages)
    _send_chunks(relay, [*chunks, b""])
    sink.wait_messages(before + 1)
    assert received.without(sink.messages[-1].content) == text


UNFINISHED = {
    "a word": b"Subject: x\r\n\r\nlast",
    "a dot": b"Subject: x\r\n\r\na\r\n.",
    "a field": b"Subject: x",
    "no field": b"what",
    "a long line": b"\r\n" + b"x" * 998,
    "many lines": b"\r\n" + b"line\r\n" * 40000 + b".",
}


@pytest.mark.parametrize("text", UNFINISHED.values(), ids=UNFINISHED)
def test_chunks_without_a_last_crlf_go_on_as_they_came(lab, relay, sink, text):
    before = len(sink.messages)
    _send_chunks(relay, [text])
    assert received.without(sink.wait_messages(before + 1)[-1].content) == text
    by_data = lab.sink(extensions=("PIPELINING",))
    _send_chunks(lab.relay(Config().route_all_to(by_data.port)), [text[:5], text[5:]])
    assert received.without(by_data.wait_messages(1)[0].content) == text + b"\r\n"


def test_fields_that_are_added_to_an_unfinished_header_are_lines_of_their_own(lab, sink):
    config = Config().route_all_to(sink.port)
    config.listeners = {"submission": {"add_missing_headers": True}}
    before = len(sink.messages)
    _send_chunks(lab.relay(config), [b"Subject: x"])
    content = received.without(sink.wait_messages(before + 1)[-1].content)
    assert content.startswith(b"Subject: x\r\nDate: ") and content.endswith(b"From: <from@sender.test>\r\n")


def test_a_bounce_of_content_without_a_last_crlf_is_whole(lab):
    sink = lab.sink(Rule("rcpt", "550 5.1.1 no such user", pattern="to@dest.test"))
    _send_chunks(lab.relay(Config().route_all_to(sink.port)), [b"Subject: x\r\n\r\nlast"])
    report = email.message_from_bytes(sink.wait_messages(1)[0].content)
    assert report.get_payload()[2].get_payload()[0].get_payload() == "last"


def test_a_large_message_in_chunks_arrives(relay, sink):
    text = b"Subject: large\r\n\r\n" + b".line of a large message\r\n" * 40000
    before = len(sink.messages)
    _send_chunks(relay, [text[:100000], text[100000:500000], text[500000:]])
    sink.wait_messages(before + 1)
    assert received.without(sink.messages[-1].content) == text


def test_five_hundred_recipients_go_in_transactions_of_fifty(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    recipients = [f"r{number}@dest.test" for number in range(500)]
    relay.send(recipients=recipients)
    relay.wait_event("done")
    assert all(len(one.recipients) <= 50 for one in sink.messages)
    assert len(sink.messages) == 10
    assert sorted(sum((one.recipients for one in sink.messages), [])) == sorted(recipients)
    assert len({one.content for one in sink.messages}) == 1


@pytest.mark.parametrize("options", [(), ("--no-chunking",), ("--no-pipelining", "--no-chunking")],
                         ids=["chunks", "data", "lock-step"])
def test_our_own_sink_stores_what_was_sent(lab, tmp_path, options):
    port, folder = free_port(), tmp_path / "mail"
    folder.mkdir()
    command = [binary(), "sink", "-l", f"{LOOPBACK}:{port}", "-d", str(folder), "-q", *options]
    sink = Process(command, str(tmp_path / "output"))
    lab.callback(sink.stop)
    wait_until(lambda: accepts(port), what="the sink to listen")
    relay = lab.relay(Config().route_all_to(port))
    contents = [*CONTENTS.values(), b"\r\n" + b".large\r\n" * 80000]
    with relay.client() as client:
        client.greet()
        for content in contents:
            client.send_mail("from@sender.test", ["a@dest.test", "b@dest.test"], content,
                             mail_params=" BODY=8BITMIME")
    relay.wait_event("done", 60, count=len(contents))
    stored = [received.without(path.read_bytes()) for path in folder.glob("*.eml")]
    assert sorted(stored) == sorted(contents)
    for path in folder.glob("*.env"):
        lines = [line.split()[:2] for line in path.read_text().splitlines()]
        assert lines == [["from", "from@sender.test"], ["to", "a@dest.test"], ["to", "b@dest.test"]]
    assert sink.stop() == 0
    assert str(len(contents)) in sink.output_text()


def test_international_addresses_go_to_a_host_that_takes_them(relay, sink):
    before = len(sink.messages)
    with relay.client() as client:
        assert "SMTPUTF8" in client.greet().lines
        client.send_mail("jürgen@sender.test", ["用户@dest.test"],
                         "Subject: Grüße\r\n\r\nja\r\n".encode("utf-8"),
                         mail_params=" SMTPUTF8 BODY=8BITMIME")
    arrived = sink.wait_messages(before + 1)[-1]
    assert (arrived.sender, arrived.recipients) == ("jürgen@sender.test", ["用户@dest.test"])
    assert "SMTPUTF8" in arrived.sender_params


def test_international_addresses_never_go_to_a_host_that_does_not_take_them(lab):
    sink = lab.sink(extensions=("PIPELINING", "CHUNKING", "8BITMIME"))
    mailbox = lab.sink()
    config = Config().route_all_to(sink.port)
    config.routes["sender.test"] = {"relay": [f"[{LOOPBACK}]:{mailbox.port}"]}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["用户@dest.test"], mail_params=" SMTPUTF8")
    bounced = relay.wait_event("bounced", dsn="5.6.7")
    assert all(float(delay) < 60 for delay in bounced["delays"].split("/")), bounced["delays"]
    assert mailbox.wait_messages(1)[0].sender == ""
    assert not sink.transactions
    assert not any("RCPT" in session.verbs() for session in sink.sessions)


def test_an_international_address_keeps_the_mail_from_nobody_else(lab):
    sink = lab.sink(extensions=("PIPELINING", "8BITMIME"))
    relay = lab.relay(Config().route_all_to(sink.port))
    with relay.client() as client:
        client.greet()
        client.send_mail("", ["a@dest.test", "用户@dest.test", "b@dest.test"], mail_params=" SMTPUTF8")
    assert relay.wait_event("bounced", dsn="5.6.7")["to"] == "用户@dest.test"
    relay.wait_event("sent", count=2)
    taken = [to for one in sink.wait_messages(1) for to in one.recipients]
    assert sorted(taken) == ["a@dest.test", "b@dest.test"]


def test_mail_without_anything_international_needs_no_host_that_takes_it(lab):
    sink = lab.sink(extensions=("PIPELINING", "8BITMIME"))
    relay = lab.relay(Config().route_all_to(sink.port))
    bodies = {"body": "Subject: plain\r\n\r\nGrüße\r\n", "large": "Subject: plain\r\n\r\n" + "Grüße\r\n" * 40000,
              "header": "Subject: Grüße\r\n\r\nplain\r\n"}
    with relay.client() as client:
        client.greet()
        for name, content in bodies.items():
            client.send_mail("", [f"{name}@dest.test"], content.encode("utf-8"), mail_params=" SMTPUTF8 BODY=8BITMIME")
    assert relay.wait_event("bounced", dsn="5.6.9")["to"] == "header@dest.test"
    assert sorted(one.recipients[0] for one in sink.wait_messages(2)) == ["body@dest.test", "large@dest.test"]


def test_small_messages_get_no_files(lab):
    sink = lab.sink(Rule("rcpt", "451 4.3.0 later"))
    relay = lab.relay(Config().route_all_to(sink.port))
    before = _files(relay.spool)
    with relay.client() as client:
        client.greet()
        for _ in range(50):
            client.send_mail("from@sender.test", ["to@dest.test"])
    relay.wait_event("deferred", count=50)
    # A segment of the lane where they wait, the checkpoint, spare segments: far from one for each.
    assert len(_files(relay.spool)) <= len(before) + 10


def test_a_large_message_has_a_file_until_it_is_delivered(lab):
    sink = lab.sink(Rule("end", "451 4.3.0 later"))
    relay = lab.relay(Config(queue={"minimal_backoff_time": "200ms"}).route_all_to(sink.port))
    text = b"\r\n" + b"a large message\r\n" * 40000
    relay.send(content=text)
    relay.wait_event("deferred")
    assert len(_large(relay)) == 1
    sink.behaviour.rules.clear()
    sink.wait_messages(1)
    assert received.without(sink.messages[0].content) == text
    wait_until(lambda: not _large(relay), what="the large file to go")


def test_a_large_message_that_is_refused_or_given_up_leaves_no_file(relay):
    text = b"\r\n" + b"a large message\r\n" * 40000
    with relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["to@dest.test"], text + b"bare\nLF\r\n", code=550)
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        client.command("RCPT TO:<to@dest.test>")
        client.command("DATA", 354)
        client.send(text)
        wait_until(lambda: _large(relay), what="the content to reach the disk")
    wait_until(lambda: not _large(relay), what="the large file to go")


def test_segments_go_when_all_in_them_is_delivered(lab):
    sink = lab.sink()
    relay = lab.relay(Config(settings={"segment_size": "256k"}).route_all_to(sink.port))
    text = b"\r\n" + b"twenty thousand bytes in all\r\n" * 700
    with relay.client() as client:
        client.greet()
        for _ in range(100):
            client.send_mail("from@sender.test", ["to@dest.test"], text)
    sink.wait_messages(100, 60)
    wait_until(lambda: len(_segments(relay)) <= 2, what="the segments to go")
    names = {os.path.basename(path) for path in _segments(relay)}
    assert not any(name.endswith("1.seg") and name.strip("0") == "1.seg" for name in names)


def test_mail_that_waits_does_not_keep_the_segments_of_what_is_delivered(lab):
    sink = lab.sink(Rule("rcpt", "451 4.3.0 later", pattern="stuck@"))
    relay = lab.relay(Config(settings={"segment_size": "256k"}).route_all_to(sink.port))
    text = b"\r\n" + b"twenty thousand bytes in all\r\n" * 700
    with relay.client() as client:
        client.greet()
        for number in range(100):
            address = "stuck@dest.test" if number % 50 == 0 else "to@dest.test"
            client.send_mail("from@sender.test", [address], text)
    relay.wait_event("deferred", count=2)
    sink.wait_messages(98, 60)
    # Of ten, those of the two messages, one for their retries, and the last.
    wait_until(lambda: len(_segments(relay)) <= 4, what="the segments to go")
    assert len(relay.command("queue", "list", "--json").stdout.splitlines()) == 2
