# SPDX-License-Identifier: ISC
"""sluice top on a terminal; stats and dest list, which it is made of."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios

import pytest

from lab.config import Config
from lab.net import free_port, wait_until
from lab.relay import binary
from lab.sink import Rule

LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}


class Terminal:
    """The program on a terminal of some size."""

    def __init__(self, words, rows, columns):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        self.output = ""

    def frame(self, holds, what):
        """Wait for a whole frame that holds this text, drawn from now on, and return its lines."""
        self.output = ""

        def drawn():
            while select.select([self.master], [], [], 0.1)[0]:
                self.output += os.read(self.master, 65536).decode()
            frames = self.output.split("\033[H")[1:]
            whole = [frame.split("\033[J")[0] for frame in frames if "\033[J" in frame]
            return next((frame for frame in reversed(whole) if holds in frame), None)

        text = wait_until(drawn, 30, what)
        return [line.rstrip("\r").removesuffix("\033[K") for line in text.split("\n")]

    def press(self, keys):
        """Press keys."""
        os.write(self.master, keys.encode())

    def close(self):
        """Wait for the end, and return the status."""
        try:
            while os.read(self.master, 65536):
                pass
        except OSError:
            pass
        os.close(self.master)
        return self.process.wait(60)


@pytest.fixture(name="relay")
def fixture_relay(lab):
    """A relay with a destination that is down, one that puts all off, and one that takes all."""
    taking, later = lab.sink(), lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    config = Config(queue=LATER)
    dead = free_port()
    config.transports["slow"] = {
        "like": "smtp", "destination_rate": "600/m", "destination_rate_delay": "0s",
    }
    config.transports["smtp"] = {"connection_idle_timeout": "1h"}  # a site that has no connection and no mail is forgotten soon
    for name, port in (("taking.test", taking.port), ("later.test", later.port), ("dead.test", dead)):
        config.routes[name] = {"relay": [f"[127.0.0.1]:{port}"]}
    config.routes["later.test"]["transport"] = "slow"
    relay = lab.relay(config)
    for domain in ("taking.test", "later.test", "later.test", "dead.test"):
        relay.send(recipients=[f"a@{domain}"])
    relay.wait_event("deferred", count=2)
    relay.wait_event("sent")
    relay.wait_event("host", state="out")
    relay.ports = {"taking": taking.port, "later": later.port, "dead": dead}
    return relay


def test_top_on_a_terminal(relay):
    name = {key: f"[127.0.0.1]:{port}" for key, port in relay.ports.items()}
    words = [binary(), "top", "-d", "200ms", "-c", relay.config_path]
    top = Terminal(words, 16, 130)
    lines = top.frame("what takes time", "the first screen")
    assert len(lines) <= 16 and all(len(line) <= 130 for line in lines)
    text = "\n".join(lines)
    assert lines[0].startswith("sluice ") and "takes mail" in lines[0]
    assert re.search(r"^in [\d.]+/s   sent [\d.]+/s   deferred ", text, re.M)
    assert re.search(r"^incoming \d+   active \d+   deferred \d+   hold 0   on disk \d", text, re.M)
    table = [line for line in lines if "127.0.0.1" in line[:30]]
    assert len(table) == 3 and table[0].startswith("> " + name["dead"]) and "refused" in table[0]
    assert "by worst" in lines[-1]
    top.press("n")
    lines = top.frame("by name", "another order")
    table = [line[2:].split()[0] for line in lines if "127.0.0.1" in line[:30]]
    assert table == sorted(name.values())
    top.press("\033[B")
    top.frame(f"> {table[1]}", "the choice to move")
    top.press("\n")
    lines = top.frame("Any key: back", "the one chosen")
    assert lines[0] == f"site:        {table[1]}" and len(lines) <= 16
    top.press("x")
    top.frame("what takes time", "the screen again")
    top.press("q")
    assert top.close() == 0
    small = Terminal(words + ["-n", "1"], 6, 40)
    lines = small.frame("sluice", "a small screen")
    assert len(lines) <= 6 and all(len(line) <= 40 for line in lines)
    assert small.close() == 0


def test_destinations_are_listed_worst_first_and_aligned(relay):
    def listed():
        return [line for line in relay.command("dest").stdout.splitlines()[1:] if not line.startswith("  ")]

    wait_until(lambda: "deferred=2" in listed()[1], 60, "both to be deferred")
    lines = listed()
    dead, later, taking = (f"[127.0.0.1]:{relay.ports[key]}" for key in ("dead", "later", "taking"))
    assert [line.split()[0] for line in lines] == [dead, later, taking]
    assert 'rate="600/m"' in lines[1] and "refused the connection" in lines[0]
    assert len({line.index("window=") for line in lines}) == 1
    tabs = [line.split("\t") for line in relay.command("dest", "--tabs").stdout.splitlines()]
    assert [row[0] for row in tabs] == [dead, later, taking] and {len(row) for row in tabs} == {12}
    assert [json.loads(line)["site"] for line in relay.command("dest", "--json").stdout.splitlines()][0] == dead


def test_the_rate_of_a_destination_is_its_own_whoever_has_its_name(lab, tmp_path):
    sinks = [lab.sink(Rule("rcpt", "451 4.2.1 Try later")) for _ in range(2)]
    rows = [f"{name}@sender.test relay=[127.0.0.1]:{sink.port}" for name, sink in zip("ab", sinks)]
    (tmp_path / "senders").write_text("\n".join(rows) + "\n")
    config = Config({"sender_routes": [str(tmp_path / "senders")]}, queue=LATER, transports={"smtp": {"destination_by": "recipient"}})
    relay = lab.relay(config)
    for name in "aaab":
        relay.send(f"{name}@sender.test", ["x@dest.test"])
    relay.wait_event("deferred", count=4)
    wait_until(lambda: [json.loads(line)["deferred"] for line in relay.command("dest", "--json").stdout.splitlines()] == [3, 1], 60, "both")
    keys = [line.split("\t")[11] for line in relay.command("dest", "--tabs").stdout.splitlines()]
    assert len(set(keys)) == 2 and all(str(sink.port) in key for sink, key in zip(sinks, keys)), keys
    top = Terminal([binary(), "top", "-d", "200ms", "-c", relay.config_path], 16, 130)
    top.frame("what takes time", "the first screen")
    lines = top.frame("what takes time", "one after it")
    top.press("q")
    assert top.close() == 0
    told = [line[2:].split() for line in lines if "x@dest.test" in line]
    assert [(row[5], row[6]) for row in told] == [("3", "0"), ("1", "0")], lines


def test_a_bare_number_is_seconds(relay):
    for delay in ("1", "1s", "200ms"):
        assert relay.command("top", "-d", delay, "-n", "1").returncode == 0, delay
    for delay in ("0", "0.2", "1x", "", "-1"):
        assert relay.command("top", "-d", delay, "-n", "1").returncode == 2, delay


def test_stats_without_histograms_that_are_empty(lab):
    relay = lab.relay()
    brief, whole = relay.command("stats").stdout, relay.command("stats", "--all").stdout
    assert "_bucket" not in brief and "delivery_seconds_count" in whole
    assert set(brief.splitlines()) - set(whole.splitlines()) <= {
        line for line in brief.splitlines() if line.startswith(("uptime", "queue", "connections", "dns"))
    }
    assert len(brief.splitlines()) < 60


def test_what_keeps_mail_from_being_taken_stands_on_the_screen(lab):
    relay = lab.relay(Config({"queue_minfree": "1024g"}).route_all_to(lab.sink().port))
    relay.wait_event("condition", name="disk_full", state="on")
    top = Terminal([binary(), "top", "-d", "200ms", "-c", relay.config_path], 16, 130)
    lines = top.frame("disk_full, for ", "the condition")
    assert "REFUSES NEW MAIL" in lines[0] and len(lines) <= 16
    (line,) = [line for line in lines if line.startswith("disk_full, for ")]
    assert "new mail is refused for now, with 452" in line and len(line) <= 130
    top.press("q")
    assert top.close() == 0
