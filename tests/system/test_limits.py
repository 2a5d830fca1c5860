# SPDX-License-Identifier: ISC
"""What clients may not exceed, and what becomes of the others meanwhile."""

import contextlib
import os
import re
import resource
import socket
import subprocess
import time
import urllib.request

import pytest

from lab import received
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until
from lab.proc import descriptors
from lab.relay import binary
from lab.smtp import Client, Closed


def _relay(lab, listener=None, **settings):
    config = Config(settings=settings, listeners={"smtp": listener or {}})
    sink = lab.sink()
    return sink, lab.relay(config.route_all_to(sink.port))


def _begin(client, params="", greet=True):
    if greet:
        client.greet()
    client.command(f"MAIL FROM:<from@sender.test>{params}")
    client.command("RCPT TO:<to@dest.test>")


def test_recipients_beyond_the_limit_are_told_to_come_later(lab):
    sink, relay = _relay(lab, {"recipient_limit": 100})
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        for number in range(100):
            client.command(f"RCPT TO:<r{number}@dest.test>")
        for _ in range(3):
            assert client.command("RCPT TO:<more@dest.test>", 452).lines[0].startswith("4.5.3")
        client.command("DATA", 354)
        client.send(b"\r\n.\r\n")
        client.expect(250)
    relay.wait_event("done")
    assert sum(len(one.recipients) for one in sink.messages) == 100


def test_a_message_announced_as_too_large_is_refused_at_once(lab):
    _, relay = _relay(lab, message_size_limit="100k")
    with relay.client() as client:
        assert f"SIZE {100 << 10}" in client.greet().lines
        reply = client.command(f"MAIL FROM:<from@sender.test> SIZE={(100 << 10) + 1}", 552)
        assert reply.lines[0].startswith("5.3.4")
        client.command(f"MAIL FROM:<from@sender.test> SIZE={100 << 10}", 250)


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("way", ["DATA", "BDAT"])
def test_the_size_is_counted_to_the_byte(lab, way, over):
    _, relay = _relay(lab, message_size_limit="300k")
    content = (b"." * 62 + b"\r\n") * ((300 << 10) // 64) + b"."[:over]
    content = content[:-1 - over] + b"." * over + b"\n"
    content = content[:-2 - over] + b"." * over + b"\r\n"
    assert len(content) == (300 << 10) + over
    code = 552 if over else 250
    with relay.client() as client:
        _begin(client)
        if way == "DATA":
            client.command("DATA", 354)
            client.send(content.replace(b"\r\n.", b"\r\n..").join([b".", b".\r\n"]))
        else:
            client.send(b"BDAT %d LAST\r\n" % len(content) + content)
        reply = client.expect(code)
        assert not over or reply.lines[0].startswith("5.3.4")
        client.command("RCPT TO:<to@dest.test>", 503)
        _begin(client, greet=False)


def test_a_client_with_too_many_connections_is_turned_away(lab):
    _, relay = _relay(lab, {"client_connection_limit": 3})
    clients = [relay.client() for _ in range(3)]
    for client in clients:
        client.greet()
    with relay.client() as client:
        assert client.expect(421).lines[0].startswith("4.7.0")
        client.wait_closed()
    clients.pop().close()

    def served():
        with relay.client() as client:
            return client.read_reply().code == 220

    wait_until(served, what="a place to be free again")
    for client in clients:
        client.command("NOOP")
        client.close()


def test_other_addresses_are_served_while_one_has_too_many_connections(lab):
    six = free_port()
    _, relay = _relay(lab, {"client_connection_limit": 1, "address": [f"{LOOPBACK}:{free_port()}", f"[::1]:{six}"]})
    import socket  # pylint: disable=import-outside-toplevel

    with relay.client() as first:
        first.greet()
        with socket.create_connection(("::1", six), 60) as other:
            assert other.recv(100).startswith(b"220")


def test_all_of_127_is_one_client(lab):
    _, relay = _relay(lab, {"client_connection_limit": 1})
    import socket  # pylint: disable=import-outside-toplevel

    with relay.client() as first:
        first.greet()
        with socket.create_connection((LOOPBACK, relay.port), 60, ("127.200.0.9", 0)) as other:
            assert other.recv(100).startswith(b"421 4.7.0")


def test_a_client_that_connects_too_often_is_turned_away(lab):
    _, relay = _relay(lab, {"client_rate_limit": "5/h"})
    codes = []
    for _ in range(10):
        with relay.client() as client:
            codes.append(client.read_reply().code)
    assert codes[:5] == [220] * 5
    assert codes[5:] == [421] * 5


def test_connections_beyond_the_limit_of_a_listener_are_turned_away(lab):
    _, relay = _relay(lab, {"connection_limit": 2, "client_connection_limit": 0})
    clients = [relay.client() for _ in range(2)]
    for client in clients:
        client.greet()
    with relay.client() as client:
        assert client.expect(421).lines[0].startswith("4.3.2")
    for client in clients:
        client.close()


@pytest.mark.parametrize("stage", ["greeting", "mail", "data", "bdat"])
def test_a_silent_client_is_let_go(lab, stage):
    """The default time-out is five minutes, of which the client waits one."""
    _, relay = _relay(lab, {"timeout": "2s"})
    began = time.monotonic()
    with relay.client() as client:
        client.greet()
        if stage in ("data", "bdat"):
            _begin(client, greet=False)
            client.send(b"DATA\r\n" if stage == "data" else b"BDAT 100\r\nhalf")
            if stage == "data":
                client.expect(354)
                client.send(b"Subject: half\r\n")
        assert client.expect(421).lines[0].startswith("4.4.2")
        assert client.wait_closed() == b""
    assert time.monotonic() - began > 1.9
    assert not relay.events("queued")


def _drip(client, piece):
    """Send a piece again and again until the relay has had enough of it; none is so late that it is silence."""
    end = time.monotonic() + 60
    client.socket.settimeout(0.05)
    with pytest.raises((AssertionError, OSError)):
        while time.monotonic() < end:
            client.send(piece)
            with contextlib.suppress(TimeoutError):
                got = client.socket.recv(100)
                assert not got.startswith(b"421") and got


def test_a_command_that_comes_byte_by_byte_has_a_time_limit(lab):
    _, relay = _relay(lab, {"timeout": "5m", "command_timeout": "2s"})
    with relay.client() as client:
        client.greet()
        _drip(client, b"N")


def test_content_that_comes_byte_by_byte_has_a_time_limit(lab):
    _, relay = _relay(lab, {"timeout": "5m", "message_timeout": "2s"})
    with relay.client() as client:
        _begin(client)
        client.command("DATA", 354)
        _drip(client, b"x\r\n")
    assert not relay.events("queued")


def test_a_client_that_does_not_read_its_replies_is_let_go(lab):
    _, relay = _relay(lab, {"timeout": "2s", "error_limit": 0, "junk_command_limit": 0})
    with relay.client() as client:
        client.greet()
        with pytest.raises(ConnectionError):
            for _ in range(2000):
                client.send(b"HELP\r\n" * 5000)
    relay.send()


def test_a_client_with_too_many_errors_is_turned_away(lab):
    _, relay = _relay(lab, {"error_limit": 3})
    with relay.client() as client:
        client.greet()
        codes = []
        try:
            for _ in range(6):
                client.send("RUBBISH")
                codes.append(client.read_reply().code)
        except (Closed, OSError):
            pass
    assert codes in ([500, 500, 421], [500, 500, 500, 421])


def test_a_message_that_goes_in_circles_is_refused(lab):
    _, relay = _relay(lab)
    field = b"Received: from a by b; Mon, 1 Jan 2024 00:00:00 +0000\r\n"
    with relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["to@dest.test"], field * 49 + b"\r\nx\r\n")
        reply = client.send_mail(
            "from@sender.test", ["to@dest.test"], field * 50 + b"\r\nx\r\n", code=554
        )
        assert reply.lines[0].startswith("5.4.6")
        client.send_mail("from@sender.test", ["to@dest.test"],
                         field.upper().replace(b":", b" :", 1) + field.lower() * 49 + b"\r\nx\r\n",
                         code=554)
        client.send_mail("from@sender.test", ["to@dest.test"],
                         b"Subject: x\r\n\r\n" + field * 60)


def test_a_message_that_comes_back_to_us_is_stopped(lab):
    """All routes lead to the relay itself: the message goes round until it has hopped enough."""
    config = Config(settings={"hopcount_limit": 10})
    relay = lab.relay(config, start=False)
    relay.config.route_all_to(relay.port)
    relay.write_config()
    relay.start()
    relay.send(sender="")
    relay.wait_event("bounced", 60, dsn="5.4.6")
    assert len(relay.events("queued")) <= 11


def test_no_mail_is_taken_without_room_and_it_is_again_after_a_reload(lab):
    sink, relay = _relay(lab, queue_minfree="1024g")
    with relay.client() as client:
        client.greet()
        reply = client.command("MAIL FROM:<from@sender.test>", 452)
        assert reply.lines[0].startswith("4.3.1")
    relay.config.settings["queue_minfree"] = "1m"
    relay.write_config()
    assert relay.command("reload").returncode == 0

    def accepted():
        with relay.client() as client:
            client.greet()
            client.send("MAIL FROM:<from@sender.test>")
            return client.read_reply().code == 250

    wait_until(accepted, what="mail to be taken again")
    relay.send()
    sink.wait_messages(1)


def _resident(relay):
    with open(f"/proc/{relay.process.pid}/status", encoding="ascii") as stream:
        for line in stream:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


@pytest.mark.plain_only
def test_two_thousand_idle_clients_take_little_memory_and_others_are_served(lab):
    sink, relay = _relay(lab, {"client_connection_limit": 0})
    relay.send()
    sink.wait_messages(1)
    before = _resident(relay)
    clients = []
    try:
        for _ in range(2000):
            clients.append(Client(LOOPBACK, relay.port))
        for client in clients:
            client.greet()
        grown = _resident(relay) - before
        assert grown < 2000 * (40 << 10), f"{grown >> 20} MB more"
        relay.send()
        sink.wait_messages(2)
        clients[-1].command("NOOP")
    finally:
        for client in clients:
            client.close()
    with relay.client() as client:
        client.greet()


@pytest.mark.parametrize("most", [10, 24, 48, 64, 79])
def test_who_may_open_too_few_files_to_start_is_told_so(lab, most):
    relay = lab.relay(start=False)
    done = subprocess.run(["prlimit", f"--nofile={most}", binary(), "serve", "-c", relay.config_path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and f"may have only {most} file descriptors" in done.stderr, done


@pytest.mark.plain_only
def test_who_has_no_memory_for_its_threads_is_told_so(lab):
    relay = lab.relay(start=False)
    room = ["prlimit", f"--stack={1 << 30}", f"--as={3 << 30}"]  # a thread's stack is as large as the first one's may be: three have no room
    done = subprocess.run([*room, binary(), "serve", "-c", relay.config_path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "no thread for" in done.stderr and "ulimit" in done.stderr, done


@pytest.mark.plain_only
def test_more_memory_for_mail_than_the_process_may_have_is_said(lab, monkeypatch):
    monkeypatch.setenv("SLUICE_WRAPPER", f"prlimit --data={4 << 30} --")
    relay = lab.relay(Config(settings={"content_memory_limit": "5000m"}))
    said = relay.wait_event("memory")["reason"]
    assert re.search("5256 MB .* 4096 MB .ulimit -d", said), said
    relay.config.settings["content_memory_limit"] = "100m"
    relay.write_config()
    assert "MB" not in relay.command("reload").stderr
    relay.config.settings["content_memory_limit"] = "6000m"
    relay.write_config()
    reload = relay.command("reload")
    assert reload.returncode == 0 and "6256 MB" in reload.stdout + reload.stderr


def test_a_limit_on_the_size_of_files_refuses_mail_while_it_is_too_low(lab):
    relay = lab.relay(Config(settings={"segment_size": "256k"}).route_all_to(lab.sink().port))
    relay.send()
    relay.wait_event("done")
    usual = resource.prlimit(relay.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(relay.process.pid, resource.RLIMIT_FSIZE, (1 << 10, usual[1]))  # less than any file has that is written to
    with relay.client() as client:
        client.greet()
        for line in ("MAIL FROM:<from@sender.test>", "RCPT TO:<to@dest.test>", "DATA", "Subject: a test\r\n\r\n."):
            client.send(line)
            code = client.read_reply().code
            if code >= 400:  # what the relay writes by itself may have failed before
                break
        assert code == 452
    wait_until(lambda: "File too large" in relay.command("stats").stdout, 60, "the disk to be told as failing, and why")
    resource.prlimit(relay.process.pid, resource.RLIMIT_FSIZE, usual)
    wait_until(lambda: "accepting yes" in relay.command("stats").stdout, 60, "mail to be taken again")
    assert relay.send().code == 250


@pytest.mark.parametrize("words, most", [(("sink",), 5), (("queue", "list"), 7)])
def test_a_command_without_descriptors_for_its_loop_says_so(lab, words, most):
    relay = lab.relay()
    relay.stop()
    options = ["-l", f"{LOOPBACK}:{free_port()}"] if words == ("sink",) else ["-c", relay.config_path]
    done = subprocess.run(["prlimit", f"--nofile={most}", binary(), *words, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode > 0 and "file descriptors" in done.stderr, done


@pytest.mark.plain_only
def test_open_files_run_out_and_the_relay_goes_on(lab):
    """With no descriptor left the relay neither spins nor dies, and serves again afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    sink, relay = _relay(lab, {"client_connection_limit": 0})
    resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE, (100, hard))
    clients = [Client(LOOPBACK, relay.port) for _ in range(150)]
    time.sleep(0.3)
    used = _processor_time(relay)
    time.sleep(1)
    assert _processor_time(relay) - used < 0.5, "the relay spins"
    for client in clients:
        client.close()

    def served():
        try:
            with relay.client(timeout=10) as client:
                client.greet()
                return True
        except (AssertionError, OSError, Closed):
            return False

    wait_until(served, what="the relay to serve again")
    relay.send()
    sink.wait_messages(1)


def _processor_time(relay):
    with open(f"/proc/{relay.process.pid}/stat", encoding="ascii") as stream:
        fields = stream.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.plain_only
@pytest.mark.parametrize("bare_newline, code", [("reject", 550), ("normalise", 250)])
@pytest.mark.parametrize("byte", [b"\r", b"\n", b"\0"], ids=["CR", "LF", "NUL"])
def test_bytes_that_are_no_text_cost_no_more_than_ten_times_as_much(lab, bare_newline, code, byte):
    """Where line ends are made of them, the message is twice as large. Counted is the relay's processor time."""
    size = 50 << 20
    config = Config(settings={"message_size_limit": "200m"}, routes={"*": {"discard": True}})
    config.listeners["smtp"] = {"bare_newline": bare_newline, "line_limit": 1000000}
    relay = lab.relay(config)

    def seconds(content, code):
        with relay.client(timeout=60.0) as client:
            _begin(client)
            client.command("DATA", 354)
            before = _processor_time(relay)
            client.send(content + b"\r\n.\r\n")
            client.expect(code)
            return _processor_time(relay) - before

    text = min(seconds((b"x" * 70 + b"\r\n") * (size // 72), 250) for _ in range(2))
    assert seconds(byte * size, 550 if byte == b"\0" else code) < 10 * text + 0.2


def test_recipients_of_all_sessions_together_have_so_much_memory(lab):
    sink, relay = _relay(lab, session_memory_limit="1m")
    lines = b"".join(b"RCPT TO:<%s%d@dest.test>\r\n" % (b"x" * 50, number) for number in range(900))
    with contextlib.ExitStack() as stack:
        codes = []
        for _ in range(20):
            client = stack.enter_context(relay.client(timeout=60.0))
            client.greet()
            reply = client.command("MAIL FROM:<from@sender.test>", "2" if len(codes) < 3 else "")
            codes.append(reply.code)
            if reply.code == 250:
                client.send(lines)
                codes += [client.read_reply().code for _ in range(900)]
        assert set(codes) == {250, 452} and 4000 < codes.count(250) < 12000
        with relay.client() as client:
            client.greet()
            assert client.command("MAIL FROM:<>", 452).lines[0].startswith("4.3.1")
    wait_until(lambda: relay.send().code == 250, 60, "memory for another message")
    sink.wait_messages(1)


def test_content_goes_to_files_where_there_is_no_memory_for_it(lab):
    sink, relay = _relay(lab, session_memory_limit="500k")
    content = b"Subject: %d\r\n\r\n" + b"not large\r\n" * 9000
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(relay.client(timeout=60.0)) for _ in range(20)]
        for client in clients:
            _begin(client)
            client.command("DATA", 354)
        for number, client in enumerate(clients):
            client.send(content % number)
        wait_until(lambda: os.listdir(os.path.join(relay.spool, "large")), 60, "content in files")
        for client in clients:
            client.send(b".\r\n")
            client.expect(250)
    sink.wait_messages(20)
    assert {received.without(one.content) for one in sink.messages} == {content % number for number in range(20)}


def test_descriptors_are_shared_and_running_out_is_no_end(lab):
    """Clients have all that they can get; hosts, commands and the page have what is kept for them."""
    sink = lab.sink()
    config = Config(settings={"descriptor_limit": 128, "http": f"{LOOPBACK}:{free_port()}"}).route_all_to(sink.port)
    config.listeners["smtp"] = {"client_connection_limit": 0}
    relay = lab.relay(config)
    first = relay.client()
    first.greet()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(LOOPBACK, relay.port, timeout=60)) for _ in range(150)]
        relay.wait_event("reject", stage="CONNECT", code="421", dsn="4.3.2")
        used = _processor_time(relay)
        time.sleep(1)
        assert _processor_time(relay) - used < 0.5, "the relay spins"
        assert 10 < descriptors(relay) <= 128
        # Who is in sends, and it is delivered; a large message is told to come later.
        assert first.send_mail("from@sender.test", ["to@dest.test"]).code == 250
        sink.wait_messages(1)
        assert relay.command("stats").returncode == 0
        url = f"http://{relay.config.settings['http']}/healthz"
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200
        for client in clients:
            client.close()
    first.close()
    wait_until(lambda: descriptors(relay) < 100, what="the clients to be gone")
    relay.send()
    sink.wait_messages(2)


def test_large_messages_wait_for_descriptors(lab):
    """Each needs a file while it comes and until it is delivered; some get one."""
    sink = lab.sink()
    config = Config(settings={"descriptor_limit": 1}).route_all_to(sink.port)  # there are always some
    config.listeners["smtp"] = {"client_connection_limit": 0}
    relay = lab.relay(config)
    large = b"Subject: large\r\n\r\n" + b"x" * 70 + b"\r\n" + (b"y" * 70 + b"\r\n") * 8000
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(18):
            client = stack.enter_context(Client(LOOPBACK, relay.port, timeout=60))
            client.greet()
            clients.append(client)
        codes = []
        for client in clients:
            client.command("MAIL FROM:<from@sender.test>")
            client.command("RCPT TO:<to@dest.test>")
            client.command("DATA", 354)
            client.send(large)
        for client in clients:
            client.send(b".\r\n")
            codes.append(client.read_reply().text[:9])
            client.close()
        assert "452 4.3.1" in codes and "250 2.0.0" in codes, codes
    sink.wait_messages(codes.count("250 2.0.0"))
    relay.send()
    sink.wait_messages(codes.count("250 2.0.0") + 1)


def test_what_the_system_refuses_is_waited_for(lab):
    """No descriptor at all: orders and the page wait without a spin, and no host is blamed."""
    sink = lab.sink()
    relay = lab.relay(Config(settings={"http": f"{LOOPBACK}:{free_port()}"}).route_all_to(sink.port))
    address = (LOOPBACK, int(relay.config.settings["http"].rpartition(":")[2]))
    with relay.client(timeout=60) as client, socket.socket(socket.AF_UNIX) as control:
        client.greet()
        usual, most = resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE, (descriptors(relay), most))
        control.connect(os.path.join(relay.spool, "control"))
        with socket.create_connection(address, timeout=60):
            assert client.send_mail("from@sender.test", ["to@dest.test"]).code == 250
            used = _processor_time(relay)
            time.sleep(1)
            assert _processor_time(relay) - used < 0.5, "the relay spins"
        resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE, (usual, most))
        sink.wait_messages(1)
    assert not relay.events("deferred") and not relay.events("host", state="out")
    assert relay.command("stats").returncode == 0
