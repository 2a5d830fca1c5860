# SPDX-License-Identifier: ISC
"""The log, as those see it who read it: pflogsumm, fail2ban, logrotate, syslogd; and none of them."""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading

import pytest

from lab import peers
from lab.behaviour import Rule
from lab.config import Config
from lab.milter import CONTINUE, DISCARD, Milter, packet
from lab.net import LOOPBACK, wait_until
from lab.relay import REPOSITORY, binary


class Traffic:
    """Sends mixed traffic, and keeps a ledger of it beside the log."""

    def __init__(self, relay):
        self.relay = relay
        self.rejected = self.accepted = self.bytes = 0
        self.by_sender = collections.Counter()
        self.bytes_of = {}
        self.recipients = collections.defaultdict(list)

    def send(self, client, number, recipients, body):
        """Hand over one message, and write down which id it got."""
        sender = f"writer{number % 7}@from{number % 3}.test"
        content = b"Subject: %d\r\n\r\n" % number + b"x" * 60 + b"\r\n" * body
        reply = client.send_mail(sender, recipients, content)
        identity = re.search(r"queued as (\S+)", reply.text)[1]
        self.accepted += 1
        self.by_sender[sender] += 1
        self.recipients[identity] = recipients

    def refuse(self, client, line, code, reset=True):
        """Say something that is refused."""
        client.command(line, code)
        self.rejected += 1
        if reset:
            client.command("RSET")

    def size_of(self):
        """The size of each message, as the queue has it: with its Received field."""
        return {event["id"]: int(event["size"]) for event in self.relay.events("queued")}


def hour_of(line, number):
    """Move a line of the log by some minutes, so that it lies within a longer time."""
    return re.sub(r"^(\w{3} [ \d]\d) \d\d:\d\d", lambda m: f"{m[1]} {9 + number // 60:02}:{number % 60:02}", line)


def report_of(path):
    """Run Debian's pflogsumm, and return its report's grand totals, and its tables by heading."""
    done = subprocess.run(
        [peers.program("pflogsumm"), "--syslog-name=sluice", "--verbose-msg-detail", path],
        capture_output=True, text=True, timeout=60, check=True,
    )
    assert not done.stderr, done.stderr
    totals = {name: (int(n), unit) for n, unit, name in
              re.findall(r"^ +(\d+)([ km]) +([a-z][^\n(]*?)(?: +\(.*)?$", done.stdout.split("Per-")[0], re.M)}
    tables = {}
    for head, body in re.findall(r"^([A-Z][^\n]+|[a-z ]+detail)\n-+\n(.*?)(?=\n\n|\Z)", done.stdout, re.M | re.S):
        tables[head.strip()] = body
    return totals, tables, done.stdout


def counted(table):
    """Return the rows "count name" of a table."""
    return {name: int(n) for n, name in re.findall(r"^ +(\d+)  +(\S+)$", table, re.M)}


def mixed_traffic(lab):
    """Return a relay with a Postfix-like log of mixed traffic, and the ledger of that."""
    rules = (Rule("rcpt", "550 5.1.1 no such user", pattern="^gone"),
             *(Rule("rcpt", "451 4.2.1 greylisted (come back)", pattern=f"^later{number}@", times=1) for number in range(60)))
    sink = lab.sink(*rules)
    config = Config(queue={"minimal_backoff_time": "1s", "maximal_backoff_time": "1s"}).route_all_to(sink.port)
    config.settings["networks"] = [f"{LOOPBACK}/32"]
    config.settings["message_size_limit"] = "200k"
    config.listeners = {"smtp": {"client_connection_limit": 4}, "strict": {"networks": ["192.0.2.0/24"], "error_limit": 4}}
    relay = lab.relay(config, log_format="postfix", start=False)
    return relay, sink


def test_pflogsumm_adds_up_what_the_ledger_says(lab):
    relay, sink = mixed_traffic(lab)
    relay.start_mute()
    traffic = Traffic(relay)
    with relay.client() as client:
        client.greet()
        for number in range(60):
            recipients = [f"reader{k}@to{(number + k) % 4}.test" for k in range(1 + number % 5)]
            recipients += ["gone@to9.test"] if number % 10 == 3 else []
            recipients += [f"later{number}@to8.test"] if number % 6 == 1 else []
            traffic.send(client, number, recipients, 1 + 40 * (number % 9))
        traffic.refuse(client, "MAIL FROM:<big@from0.test> SIZE=9999999", 552)
        traffic.refuse(client, "MAIL FROM:<not an address>", 501)
    with relay.client("strict") as client:
        client.greet()
        client.command("MAIL FROM:<spam@from5.test>")
        for number in range(3):
            traffic.refuse(client, f"RCPT TO:<victim{number}@to0.test>", 550, reset=False)
    everyone = [who for to in traffic.recipients.values() for who in to]
    good = [who for who in everyone if not who.startswith("gone")]
    bounces = everyone.count("gone@to9.test")
    # Each bounce that was made goes to its sender by the same next hop.
    wait_until(lambda: sum(len(m.recipients) for m in sink.messages) == len(good) + bounces, 60, "all mail")
    wait_until(lambda: relay.log_text().count(": removed\n") == 60 + bounces, 60, "the end of the queue")
    relay.stop()
    text = relay.log_text()
    lines = [hour_of(line, number % 120) for number, line in enumerate(text.splitlines())]
    path = os.path.join(relay.folder, "an-hour")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")
    totals, tables, whole = report_of(path)

    sizes = {i: int(n) for i, n in re.findall(r"qmgr\[\d+\]: (\w+): from=<[^>]*>, size=(\d+)", text)}
    stored = {i: sizes[i] for i in traffic.recipients}
    assert totals["received"] == (60, " "), whole
    assert totals["delivered"] == (len(good) + bounces, " ")
    assert totals["deferred"] == (10, " ") and "(10  deferrals)" in whole
    assert totals["bounced"] == (bounces, " ")
    assert totals["rejected"] == (traffic.rejected, " ")
    assert totals["bytes received"] == (sum(stored.values()), " ")
    delivered = sum(stored[i] * len([w for w in to if w in good]) for i, to in traffic.recipients.items())
    delivered += sum(n for i, n in sizes.items() if i not in stored)
    assert totals["bytes delivered"] == ((delivered, " ") if delivered <= 512 << 10 else (delivered >> 10, "k"))
    report = json.loads(relay.command("report", "--since", "1h", "--top", "99", "--json").stdout)
    assert report["received"] == totals["received"][0] and report["received_bytes"] == totals["bytes received"][0]
    assert (report["sent"], report["bounced"]) == (totals["delivered"][0], totals["bounced"][0])
    assert (report["deferred"], report["rejected"]) == (totals["deferred"][0], totals["rejected"][0])
    assert {row["name"]: row["messages"] for row in report["senders"]} == dict(traffic.by_sender)
    assert totals["senders"][0] == len(traffic.by_sender)
    assert totals["sending hosts/domains"][0] == 3
    reports = {sender for i, sender in ((i, f"writer{n % 7}@from{n % 3}.test") for n, i in
               enumerate(traffic.recipients)) if "gone@to9.test" in traffic.recipients[i]}
    assert totals["recipients"][0] == len(set(good)) + len(reports)
    assert counted(tables["Senders by message count"]) == dict(traffic.by_sender)
    by_recipient = counted(tables["Recipients by message count"])
    assert {who: n for who, n in by_recipient.items() if who not in reports} == dict(collections.Counter(good))
    by_domain = collections.Counter(who.split("@")[1] for who in good)
    rows = {name: (int(sent), int(put_off)) for sent, put_off, name in
            re.findall(r"^ +(\d+)  +\d+[ km]  +(\d+) .* (to\S+)$", whole, re.M)}
    assert {name: sent for name, (sent, _) in rows.items() if sent} == dict(by_domain)
    assert rows["to8.test"][1] == 10
    assert "Relay access denied" in whole and "Message size exceeds fixed limit" in whole
    assert "greylisted" in whole and "no such user" in whole


def test_fail2ban_finds_who_is_refused(lab):
    relay, _ = mixed_traffic(lab)
    relay.start_mute()
    with relay.client("strict") as client:
        client.greet()
        client.command("MAIL FROM:<spam@from5.test>")
        for number in range(4):
            client.command(f"RCPT TO:<victim{number}@to0.test>", 550)
        client.command("RCPT TO:<more@to0.test>", 4)
    with relay.client() as client:
        client.greet()
        client.send_mail("a@from.test", ["b@to.test"])
    relay.stop()
    rules = lab.folder("fail2ban") / "fail2ban"
    shutil.copytree(os.path.join(peers.root(), "etc", "fail2ban"), rules)
    shutil.copy(os.path.join(REPOSITORY, "etc", "fail2ban", "sluice.conf"), rules / "filter.d" / "sluice.conf")
    done = subprocess.run(
        [peers.program("fail2ban-regex"), "-c", str(rules), "--print-all-matched", relay.log_path, "sluice"],
        capture_output=True, text=True, timeout=60, check=False,
    )
    section = done.stdout.partition("Matched line(s):")[2].partition("`-")[0]
    matched = [line for line in section.splitlines() if line.startswith("|  ")]
    assert len(matched) == 5, done.stdout + done.stderr
    assert sum("Relay access denied" in line for line in matched) == 4
    assert sum("too many errors after RCPT" in line for line in matched) == 1


def test_pflogsumm_counts_what_is_thrown_away_and_what_is_held(lab):
    """Lines of ours that began with its word for that were counted as well, and it complained of each."""
    sink, filter_ = lab.sink(), lab.enter_context(contextlib.closing(Milter()))
    table = lab.folder("tables") / "access"
    table.write_text("void@to.test discard\nhold@to.test hold\n", encoding="ascii")
    config = Config(settings={"recipient_access": [str(table)]}).route_all_to(sink.port)
    config.extra = f'milter "choosy" {{ address = "{filter_.address}" }}'
    filter_.behave({"E": lambda conversation, _: packet(DISCARD if b"odd" in conversation.all(b"M")[-1] else CONTINUE)})
    relay = lab.relay(config, log_format="postfix", start=False)
    relay.start_mute()
    for sender, recipients in (
        ("a@from.test", ["void@to.test", "b@to.test"]), ("a@from.test", ["void@to.test", "void@to.test"]),
        ("a@from.test", ["hold@to.test"]), ("odd@from.test", ["c@to.test"]),
    ):
        relay.send(sender, recipients)
    sink.wait_messages(1)
    held = json.loads(relay.command("queue", "list", "--json").stdout)["id"]
    told = relay.command("trace", held).stdout
    relay.stop()
    totals, _, whole = report_of(relay.log_path)
    assert (totals["received"][0], totals["delivered"][0], totals["rejected"][0]) == (2, 1, 0), whole
    assert totals["discarded"][0] == 4 and totals["held"][0] == 1, whole
    assert told.count("accepted from") == 1 and "put on hold" in told
    thrown = relay.command("trace", "odd@from.test").stdout
    assert "accepted and thrown away: milter choosy" in thrown, thrown
    thrown = relay.command("trace", "a@from.test").stdout
    assert thrown.count("accepted and thrown away: no recipient is left") == 1
    assert "accepted and thrown away for <void@to.test>: recipient_access" in thrown, thrown


@pytest.mark.parametrize("form", ["text", "json"])
def test_each_line_is_an_event(lab, form):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port), log_format=form)
    relay.send()
    relay.wait_event("sent", dsn="2.0.0")
    relay.stop()
    lines = relay.log_text().splitlines()
    names = [json.loads(line)["event"] if form == "json" else line.split()[2] for line in lines]
    assert names[-1] == "stopped" and {"ready", "connect", "queued", "sent", "done"} <= set(names)


def test_a_number_is_one_in_each_line_of_json(lab):
    """Of a report it was a text: whoever adds up recipients by nrcpt met both."""
    sink = lab.sink(Rule("rcpt", "550 5.1.1 nobody", pattern="never"))
    relay = lab.relay(Config().route_all_to(sink.port), log_format="json")
    relay.send(recipients=["never@dest.test", "to@dest.test"])
    relay.wait_event("done", count=2)
    kinds = {}
    for line in map(json.loads, relay.log_text().splitlines()):
        for key, value in line.items():
            kinds.setdefault((line["event"], key), set()).add(type(value))
    assert kinds["queued", "nrcpt"] == kinds["queued", "size"] == {int}
    assert not [name for name, of in kinds.items() if str in of and len(of) > 1]


def test_a_line_that_a_kill_has_torn_stays_a_line_of_its_own(lab):
    relay = lab.relay()
    relay.kill()
    with open(relay.log_path, "ab") as stream:
        stream.write(b"2026-01-01T00:00:00.000Z info connect sess")
    relay.start()
    assert re.search(r"connect sess\n\d{4}-", relay.log_text())


def test_a_log_that_nobody_reads_holds_up_no_mail(lab):
    sink = lab.sink()
    relay = lab.relay(Config(settings={"log_level": "debug", "http": f"{LOOPBACK}:0"}).route_all_to(sink.port),
                      start=False)
    relay.config.settings["http"] = ""
    os.mkfifo(relay.log_path)
    relay.write_config()
    reader = os.open(relay.log_path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        start_unseen(relay)
        with relay.client() as client:
            client.greet()
            for number in range(300):
                client.send_mail("from@sender.test", [f"to{k}.{number}@dest.test" for k in range(3)])
        wait_until(lambda: len(sink.messages) == 300, 60, "mail to go on")
        assert relay.command("stats").returncode == 0
    finally:
        os.close(reader)
    process, relay.process = relay.process, None
    assert process.stop(20) == 0


def start_unseen(relay):
    """Start a relay whose log can't be read as a file, and wait until its socket answers."""
    relay.log_text = lambda start=0: ""
    relay.start(ready=lambda: relay.command("stats").returncode == 0)


def dropped(relay):
    """Return how many lines were dropped."""
    return int(re.search(r"^log_dropped_total (\d+)$", relay.command("stats").stdout, re.M)[1])


def test_a_full_disk_costs_lines_that_are_counted_and_told(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port), start=False)
    relay.config.settings["log"] = place = os.path.join(relay.folder, "place")
    relay.write_config()
    os.symlink("/dev/full", place)
    start_unseen(relay)
    del relay.log_text
    relay.send()
    sink.wait_messages(1)
    lost = wait_until(lambda: dropped(relay) >= 5 and dropped(relay), what="lines that find no room")
    os.remove(place)
    os.symlink(relay.log_path, place)
    assert relay.command("reload").returncode == 0
    relay.send()
    told = int(relay.wait_event("log_dropped")["lines"])
    assert lost <= told == dropped(relay)


def test_the_log_goes_to_syslog(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port), start=False)
    place = os.path.join(relay.folder, "syslog")
    relay.config.settings |= {"log": f"syslog:{place}", "log_format": "postfix"}
    relay.write_config()
    lines = []
    first = listen(place, lines)
    start_unseen(relay)
    relay.send()
    wait_until(lambda: any(": removed" in line for line in lines), what="the lines of a message")
    assert any(re.match(r"<22>\w{3} [ \d]\d [\d:]{8} sluice/smtp\[\d+\]: \w+: to=<to@dest.test>, ", line)
               for line in lines)
    assert any(re.match(r"<22>.{15} sluice/master\[\d+\]: ready", line) for line in lines)
    # A syslogd that is started anew is found again; lines meanwhile are counted.
    os.remove(place)
    first.shutdown(socket.SHUT_RDWR)
    before = dropped(relay)
    relay.send()
    wait_until(lambda: dropped(relay) > before, what="lines that nobody takes")
    again = []
    second = listen(place, again)
    wait_until(lambda: relay.send() and any("log_dropped" in line for line in again), 60, "the second syslogd")
    second.shutdown(socket.SHUT_RDWR)


def listen(path, lines):
    """Take datagrams at a socket, as syslogd does, until the socket is shut down."""
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind(path)

    def take():
        while True:
            data = receiver.recv(65536)
            if not data:
                receiver.close()
                return
            lines.append(data.decode("utf-8"))

    threading.Thread(target=take, daemon=True).start()
    return receiver


def test_a_reload_moves_the_log_and_changes_its_form(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    other = os.path.join(relay.folder, "other")
    relay.config.settings |= {"log": other, "log_format": "json"}
    relay.write_config()
    done = relay.command("reload")
    assert done.returncode == 0 and "next start" not in done.stderr
    relay.log_path = other
    relay._log_read = 0  # pylint: disable=protected-access
    relay.send()
    relay.wait_event("sent")
    relay.config.settings["log"] = "/nowhere/at/all"
    relay.write_config()
    done = relay.command("reload")
    assert done.returncode == 1 and "/nowhere/at/all" in done.stderr
    relay.send()
    relay.wait_event("sent", count=2)


def rotate(relay, program=None):
    """Run logrotate with the rules that we install, but for the places of the log and of the program, or with another program."""
    wrapper = os.path.join(relay.folder, "wrapper")
    with open(os.path.join(REPOSITORY, "etc", "sluice.logrotate"), encoding="ascii") as stream:
        rules = stream.read()
    rules = rules.replace("/var/log/sluice.log", relay.log_path)
    rules = re.sub(r"(?m)^\tsu .*\n|^\tcreate .*\n", "", rules)
    assert rules.count("/usr/local/sbin/sluice ") == 1
    rules = rules.replace("/usr/local/sbin/sluice ", f"{program or wrapper} ")
    path = os.path.join(relay.folder, "rules")
    for name, text in ((path, rules), (wrapper, f'#!/bin/sh\nexec {binary()} "$@" -c {relay.config_path}\n')):
        with open(name, "w", encoding="ascii") as stream:
            stream.write(text)
    os.chmod(path, 0o644)
    os.chmod(wrapper, 0o755)
    os.chmod(relay.folder, 0o755)
    relay._log_read = 0  # pylint: disable=protected-access
    return subprocess.run(["logrotate", "-f", "-s", os.path.join(relay.folder, "state"), path],
                          capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(not shutil.which("logrotate"), reason="logrotate is not installed")
def test_logrotate_turns_the_log_as_the_file_we_install_says(lab):
    relay = lab.relay()
    done = rotate(relay)
    assert done.returncode == 0 and not done.stderr, done.stderr
    relay.wait_event("reload", result="done")
    with open(relay.log_path + ".1", encoding="utf-8") as stream:
        old = stream.read()
    assert " ready " in old and "reload" not in old


@pytest.mark.skipif(not shutil.which("logrotate"), reason="logrotate is not installed")
def test_logrotate_turns_the_log_of_a_relay_that_does_not_run(lab):
    relay = lab.relay()
    relay.stop()
    done = rotate(relay)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert not os.path.exists(relay.log_path) and os.path.exists(relay.log_path + ".1")


@pytest.mark.skipif(not shutil.which("logrotate"), reason="logrotate is not installed")
def test_logrotate_turns_the_log_of_a_program_that_was_removed(lab):
    """Rules and log stay until the package is purged, and cron sent a mail about them."""
    relay = lab.relay()
    relay.stop()
    done = rotate(relay, os.path.join(relay.folder, "removed"))
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert os.path.exists(relay.log_path + ".1")


@pytest.mark.skipif(not shutil.which("logrotate"), reason="logrotate is not installed")
def test_logrotate_says_what_keeps_the_relay_from_reloading(lab):
    relay = lab.relay()
    with open(relay.config_path, "a", encoding="utf-8") as stream:
        stream.write("no_such_setting = 1\n")
    done = rotate(relay)
    assert done.returncode != 0 and "no_such_setting" in done.stderr, done
    relay.send()
    relay.wait_event("queued")  # in the new file


def test_what_takes_long_is_said_with_its_thread_until_nobody_asks(lab):
    relay = lab.relay(Config(settings={"log_slow": "1ms"}).route_all_to(lab.sink().port))

    def said():
        """Some turn, or commit, takes longer than that, sooner or later."""
        relay.send(content=b"Subject: large\r\n\r\n" + b"0123456789\r\n" * 80000)
        return relay.events("slow")

    event = wait_until(said, what="something slow")[0]
    assert event["thread"] and event["what"] in ("turn", "commit") and float(event["seconds"]) >= 0.001
    assert 'loop_turn_seconds_count{thread="spool"}' in relay.command("stats", "--all").stdout
    relay.config.settings["log_slow"] = "0s"
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.wait_event("reload")
    before = len(relay.events("slow"))
    for _ in range(5):
        said()
    assert len(relay.events("slow")) <= before + len({one["thread"] for one in relay.events("slow")})  # turns that were under way


def test_a_reload_says_that_the_log_can_not_be_opened_anew(lab):
    """The old file is written on, which may be gone: who has rotated it must hear that."""
    relay = lab.relay()
    old = f"{relay.log_path}.1"
    os.rename(relay.log_path, old)
    os.mkdir(relay.log_path)
    said = relay.command("reload")
    assert said.returncode == 0 and f"can't open the log {relay.log_path}: Is a directory; what was open before is written on" in said.stdout + said.stderr

    def told_in_the_old():
        with open(old, encoding="utf-8") as stream:
            return "Is a directory" in stream.read()

    wait_until(told_in_the_old, what="the reason in the file that is written on")
    os.rmdir(relay.log_path)
    said = relay.command("reload")
    assert said.returncode == 0 and "can't" not in said.stdout + said.stderr
    wait_until(lambda: "result=done" in relay.log_text(), 60, "the log in its new file")


def _logged():
    """Return the keys of each event that the sources name, with all of their calls."""
    logged = collections.defaultdict(set)
    for path in pathlib.Path(REPOSITORY).glob("*/**/*.c"):
        if path.relative_to(REPOSITORY).parts[0] in ("build", "tests"):
            continue
        for call in re.findall(r"\blog_(?:event|hold)\((.*?),\s*NULL\);", path.read_text(encoding="utf-8"), re.S):
            # Commas in a text, or in a call within, end no argument.
            call = re.sub(r'"\s+"', "", call)
            call = re.sub(r'"([^"\\]|\\.)*"', lambda text: text[0].replace(",", ""), call)
            while (plain := re.sub(r"\([^()]*\)", "", call)) != call:
                call = plain
            words = [word.strip() for word in call.split(",")]
            if len(words) > 1 and re.fullmatch(r'"[\w-]+"', words[1]):
                logged[words[1].strip('"')].update(word.strip('"') for word in words[2::2] if re.fullmatch(r'"[\w-]+"', word))
    return logged


def test_the_manual_names_each_event_and_its_keys():
    with open(os.path.join(REPOSITORY, "etc", "sluice.8"), encoding="utf-8") as page:
        table = page.read().split(".Sh LOG")[1].split(".El")[0]
    rows = {name: text for names, text in re.findall(r"^\.It (.+?) Ta ?(.*)$", table, re.M) for name in names.split(", ")}
    logged = _logged()
    assert len(logged) > 60
    missing = {event: {key for key in keys if not re.search(rf"(?<![\w-]){key}(?![\w-])", rows.get(event, ""))} for event, keys in logged.items()}
    assert not {event: keys for event, keys in missing.items() if keys or event not in rows}
