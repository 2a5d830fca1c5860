# SPDX-License-Identifier: ISC
"""Orders on the queue of a relay that does not run."""

import fcntl
import json
import os
import shutil
import time

from lab.check import check
from lab.config import Config
from lab.net import wait_until
from lab.sink import Rule

DONE, REFUSED, UNREACHABLE = 0, 1, 75
LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
WAITING = "waiting for another process"
OFFLINE = "sluice: the relay does not run; this is its queue on disk\n"


def listed(relay, *words):
    """Return the queue as objects."""
    lines = relay.command("queue", "list", "--json", *words).stdout.splitlines()
    return [json.loads(line) for line in lines]


def contents(folder):
    """Return name, size and time of change of every file in a folder."""
    return sorted(
        (path, os.stat(path).st_size, os.stat(path).st_mtime_ns)
        for top, _, names in os.walk(folder)
        for path in (os.path.join(top, name) for name in names)
        if not path.endswith("/control")
    )


def test_the_queue_of_a_relay_that_was_killed(lab):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = lab.relay(Config(queue=LATER).route_all_to(sink.port))
    large = b"Subject: large\r\n\r\n" + b"0123456789\r\n" * 50000
    for number in range(4):
        content = large if number == 3 else f"Subject: no {number}\r\n\r\nhello\r\n".encode()
        relay.send(recipients=[f"to{number}@dest{number}.test"], content=content)
    relay.wait_event("deferred", count=4)
    wait_until(lambda: len(listed(relay, "--queue", "deferred")) == 4, what="the queue")
    online = listed(relay)
    ids = [message["id"] for message in online]
    relay.command("queue", "hold", ids[0])
    asked = [["queue", "list"], ["queue", "show", ids[3]], ["shape", "deferred", "hold"]]
    answers = [relay.command(*words).stdout for words in asked]
    relay.kill()

    before = contents(relay.spool)
    for words, answer in zip(asked, answers):
        done = relay.command(*words)
        assert (done.returncode, done.stderr) == (DONE, OFFLINE)
        assert done.stdout.splitlines()[-1] == answer.splitlines()[-1]
        assert done.stdout.count("\n") == answer.count("\n")
    assert [m["id"] for m in listed(relay, "--domain", ".dest2.test")] == [ids[2]]
    site = f"[127.0.0.1]:{sink.port}"
    assert len(listed(relay, "--site", site)) == 4
    assert [m["queue"] for m in listed(relay)] == ["hold", "deferred", "deferred", "deferred"]
    assert relay.command("queue", "show", "0000000000001").returncode == REFUSED
    assert contents(relay.spool) == before

    copy = relay.spool + ".copy"
    shutil.copytree(relay.spool, copy, ignore=shutil.ignore_patterns("control", "lock"))
    spool = relay.spool
    relay.config.settings["spool"] = copy
    relay.write_config()
    assert [m["id"] for m in listed(relay)] == ids
    os.unlink(os.path.join(copy, "format"))
    assert [m["id"] for m in listed(relay)] == ids
    relay.config.settings["spool"] = spool
    relay.write_config()

    assert relay.command("queue", "flush", ids[1]).returncode == UNREACHABLE
    done = relay.command("queue", "hold", ids[1], ids[0])
    assert done.returncode == REFUSED and done.stdout == "1 message held\n1 held already\n"
    assert relay.command("queue", "delete", ids[2]).stdout == "1 message deleted\n"
    assert relay.command("queue", "release", ids[0]).stdout == "1 message released\n"
    assert [m["queue"] for m in listed(relay)] == ["deferred", "hold", "deferred"]
    assert check(relay).whole
    sink.behaviour.rules.clear()
    relay.start()
    assert sink.wait_messages(1)[0].recipients == ["to0@dest0.test"]
    wait_until(lambda: [m["id"] for m in listed(relay)] == [ids[1], ids[3]], what="the rest")
    assert [m["queue"] for m in listed(relay)] == ["hold", "deferred"]


def test_the_lock_decides(lab):
    """A relay that has its queue and cannot be reached is not passed by."""
    relay = lab.relay()
    os.unlink(os.path.join(relay.spool, "control"))
    for words in (["queue", "list"], ["queue", "delete", "--all"], ["shape"]):
        done = relay.command(*words)
        assert done.returncode == UNREACHABLE and not done.stdout
        assert "has this queue" in done.stderr


def test_what_was_being_delivered_is_named_and_kept(lab):
    sink = lab.sink(Rule("end", "250 2.0.0 ok", delay=30))
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.send()
    wait_until(lambda: listed(relay, "--queue", "active"), what="it to be active")
    (message,) = listed(relay)
    relay.kill()
    assert [m["queue"] for m in listed(relay)] == ["active"]
    done = relay.command("queue", "hold", "--all")
    assert done.stdout == "1 message held\n" and message["id"] in done.stderr
    assert [m["queue"] for m in listed(relay)] == ["hold"]
    began = time.time()
    assert listed(relay)[0]["arrived"] < began


def starts_behind_an_order(relay, begin):
    """Have the queue, as an order has, while a relay begins; let go of it when the relay waits for it."""
    with open(os.path.join(relay.spool, "lock"), "r+b") as lock:

        def waits():
            if WAITING in relay.stderr_text():
                fcntl.flock(lock, fcntl.LOCK_UN)
                return len(relay.events("ready")) == 2
            return False

        fcntl.flock(lock, fcntl.LOCK_EX)
        begin(waits)


def test_a_start_waits_for_an_order_that_has_the_queue(lab):
    relay = lab.relay()
    relay.stop()
    starts_behind_an_order(relay, lambda waits: relay.start(ready=waits))
    relay.send()


def test_a_second_relay_on_a_queue_is_refused_at_once(lab):
    relay = lab.relay()
    second = relay.command("serve")
    assert second.returncode == REFUSED
    assert "another process has this queue" in second.stderr
    assert WAITING not in second.stderr
