# SPDX-License-Identifier: ISC
"""A long queue of deferred messages: what it takes, and what it makes slower.

For each length, from the shortest to the longest, ten times longer each:

    generate    generate_queue fills the queue through the real spool
    start       the relay is started on it, with the next hop up
    cost        new mail passes, while the queue lies there: has to cost the same at any length
    kill        SIGKILL while mail comes in, then a start: times, memory
    cold        the same with the queue's files thrown out of the page cache, as after a reboot
    list        sluice queue list, to its twentieth line and to its end
    drain       flush --all, until the next hop has everything
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import threading
import time

from ends import TOP, Sink, drive, make_relay, source, spent
from lab.net import free_port, wait_until
from starting import timed_start

GENERATOR = TOP / "build" / "plain" / "tests" / "bench" / "generate_queue"
SEGMENT = 64 << 20
AN_HOUR, FOUR_HOURS = 3600, 14400
ENVELOPES = 900  # bytes of a message on disk beside its content, and something to spare
SPARE = 2 << 30
LISTED = 20


def fitting(options, folder):
    """Return how many messages, of how many bytes, there is room for; say so when it is less."""
    free = shutil.disk_usage(folder).free - SPARE
    size, messages = options.size, options.messages
    if messages * (size + ENVELOPES) > free:
        size = min(size, 500)
        messages = max(1, min(messages, free // (size + ENVELOPES)))
        print(f"{free >> 20} MB are free: {messages} messages of {size} bytes", flush=True)
    return messages, size


def lengths(shortest, longest):
    """Return the lengths of the queues."""
    found = []
    while shortest < longest:
        found.append(shortest)
        shortest *= 10
    return [*found, longest]


def generate(relay, messages, size):
    """Fill the relay's queue and return the seconds that it took."""
    began = time.monotonic()
    subprocess.run([GENERATOR, relay.spool, str(messages), str(size), str(AN_HOUR),
                    str(FOUR_HOURS), str(SEGMENT)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def memory(pid):
    """Return the resident megabytes of a process: all, what is not of a file, the most so far."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return [int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon", "VmHWM")]


def disk(folder):
    """Return the megabytes that a folder takes."""
    blocks = sum(entry.stat().st_blocks for entry in pathlib.Path(folder).rglob("*"))
    return blocks * 512 / (1 << 20)


def forget_pages(folder):
    """Throw the files of a folder out of the page cache."""
    for entry in pathlib.Path(folder).rglob("*.seg"):
        fd = os.open(entry, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def deliver_all_active(relay, sink_port):
    """Have a sink until nothing is active: that of the round before has ended, with an answer on its way, and was not there when asked again."""
    sink = Sink(sink_port)
    try:
        wait_until(lambda: active(relay) == 0, 60, "the last of the round before")
    finally:
        sink.close()


def passing(relay, sink_port, options):
    """Return messages a second and milliseconds of processor time a message of new mail."""
    deliver_all_active(relay, sink_port)
    before = spent(relay.process.pid)
    seconds = drive(relay.port, sink_port, options, options.relayed)
    return options.relayed / seconds, 1000 * spent(relay.process.pid, before) / options.relayed


def cost(relay, sink_port, folder, options):
    """Pass new mail through the relay and through one with an empty queue, in turn; return medians.

    The machine is noisy, so it is the ratio of two runs, one right behind the other, that counts.
    """
    other_sink = free_port()
    empty = make_relay(folder / "empty", other_sink, {"segment_size": str(SEGMENT)}).start()
    rounds = []
    try:
        for _ in range(options.rounds):
            rounds.append((*passing(relay, sink_port, options),
                           *passing(empty, other_sink, options)))
    finally:
        empty.stop()
    names = ("rate", "cost", "empty_rate", "empty_cost")
    figures = {name: statistics.median(column) for name, column in zip(names, zip(*rounds))}
    figures["rate_of_empty"] = statistics.median(r[0] / r[2] for r in rounds)
    figures["cost_of_empty"] = statistics.median(r[1] / r[3] for r in rounds)
    return figures


def kill_under_load(relay, options):
    """End the relay with SIGKILL while mail comes in."""
    def load():
        try:
            source(relay.port, 100 * options.relayed, options.sessions, options.size,
                   stderr=subprocess.DEVNULL)
        except subprocess.CalledProcessError:
            pass  # it is cut off
    client = threading.Thread(target=load)
    client.start()
    time.sleep(0.5)
    relay.kill()
    client.join()


def listing(relay, lines=None):
    """Return the seconds to that many lines of the list, or to its end, and how many there were."""
    began, count = time.monotonic(), 0
    command = [TOP / "sluice", "queue", "list", "-c", relay.config_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        for _ in process.stdout:
            count += 1
            if count == lines:
                break
        seconds = time.monotonic() - began
        process.stdout.close()
    return seconds, count


def waiting(relay):
    """Return how many messages are in the relay's queues."""
    stats = json.loads(relay.command("stats", "--json").stdout)
    return sum(number for name, number in stats.items() if name.startswith("queue_messages{"))


def drain(relay, sink_port):
    """Flush all; return seconds to the first of them at the sink, and messages a second."""
    before, count, first = sent(relay), waiting(relay), None
    sink = Sink(sink_port)
    try:
        began = time.monotonic()
        relay.command("queue", "flush", "--all", timeout=600)
        while waiting(relay) > 0:
            if first is None and sent(relay) > before:
                first = time.monotonic() - began
            assert time.monotonic() - began < 3600, "the queue does not drain"
            time.sleep(0.02 if first is None or count < 20000 else 0.5)
        return first, count / (time.monotonic() - began)
    finally:
        sink.close()


def active(relay):
    """Return how many messages are on their way."""
    stats = json.loads(relay.command("stats", "--json").stdout)
    return stats['queue_messages{queue="incoming"}'] + stats['queue_messages{queue="active"}']


def sent(relay):
    """Return how many recipients the relay has delivered since its start."""
    stats = json.loads(relay.command("stats", "--json").stdout)
    return stats['deliveries_total{result="sent",transport="smtp"}']


def _started(relay, sink_port):
    """Start the relay with the next hop up; return the times, and the memory once all is known."""
    sink = Sink(sink_port)
    try:
        times = timed_start(relay)
        wait_until(lambda: sent(relay) > 0, 60, "the first delivery")
        return times | {"rss": memory(relay.process.pid)[0]}
    finally:
        sink.close()


def measure(folder, messages, size, options):
    """Return the figures of a queue of this length."""
    sink_port = free_port()
    relay = make_relay(folder, sink_port, {"segment_size": str(SEGMENT)})
    row = {"messages": messages, "size": size, "generate": generate(relay, messages, size),
           "disk": disk(relay.spool)}
    try:
        row["start"] = _started(relay, sink_port)
        row["new"] = cost(relay, sink_port, folder, options)
        kill_under_load(relay, options)
        row["kill"] = _started(relay, sink_port)
        relay.kill()
        forget_pages(relay.spool)
        row["cold"] = _started(relay, sink_port)
        row["rss"], row["anon"], row["most"] = memory(relay.process.pid)
        row["list_some"], _ = listing(relay, LISTED)
        row["list"], row["listed"] = listing(relay)
        row["first"], row["drain"] = drain(relay, sink_port)
        row["rss_drained"], _, row["most_drained"] = memory(relay.process.pid)
        row["disk_drained"] = disk(relay.spool)
    finally:
        if relay.running():
            relay.stop()
    return row


def run(options, folder):
    """Measure a queue of each length in turn."""
    longest, size = fitting(options, folder)
    rows = []
    for messages in lengths(options.smallest, longest):
        place = folder / str(messages)
        rows.append(measure(place, messages, size, options))
        shutil.rmtree(place)
    return rows


TABLES = {  # a heading, then columns: title, width, format, value
    "seconds to, after SIGKILL under load": [
        ("ready", 9, ".3f", lambda r: r["kill"]["ready"]),
        ("first 250", 11, ".3f", lambda r: r["kill"]["accepted"]),
        ("first sent", 12, ".3f", lambda r: r["kill"]["delivered"]),
        ("recover", 9, ".2f", lambda r: r["kill"]["recovered"]),
        ("cold: 250", 11, ".3f", lambda r: r["cold"]["accepted"]),
        ("sent", 8, ".3f", lambda r: r["cold"]["delivered"]),
        ("recover", 9, ".2f", lambda r: r["cold"]["recovered"]),
    ],
    "megabytes": [
        ("disk", 8, ".0f", lambda r: r["disk"]),
        ("resident", 10, ".0f", lambda r: r["rss"]),
        ("anonymous", 11, ".0f", lambda r: r["anon"]),
        ("most", 6, ".0f", lambda r: r["most"]),
        ("draining", 10, ".0f", lambda r: r["most_drained"]),
        ("drained: disk", 15, ".0f", lambda r: r["disk_drained"]),
        ("resident", 10, ".0f", lambda r: r["rss_drained"]),
    ],
    "new mail meanwhile; ratios to an empty queue in the same rounds": [
        ("messages/s", 12, ".0f", lambda r: r["new"]["rate"]),
        ("ratio", 8, ".2f", lambda r: r["new"]["rate_of_empty"]),
        ("ms cpu/msg", 12, ".3f", lambda r: r["new"]["cost"]),
        ("ratio", 8, ".2f", lambda r: r["new"]["cost_of_empty"]),
    ],
    "list, in seconds; flush --all, with the next hop up": [
        ("20 lines", 10, ".3f", lambda r: r["list_some"]),
        ("all", 8, ".2f", lambda r: r["list"]),
        ("first sent", 12, ".3f", lambda r: r["first"]),
        ("messages/s", 12, ".0f", lambda r: r["drain"]),
    ],
}


def report(rows, options):
    """Return the lines of the tables."""
    lines = [f"queue: deferred messages of {rows[0]['size']} bytes; new mail of {options.size} bytes, "
             f"{options.sessions} sessions, median of {options.rounds} rounds"]
    for heading, columns in TABLES.items():
        lines += ["", heading]
        lines.append(f"{'deferred':>9}" + "".join(f"{title:>{width}}" for title, width, *_ in columns))
        for row in rows:
            lines.append(f"{row['messages']:9}" + "".join(
                f"{value(row):>{width}{form}}" for _, width, form, value in columns))
    return lines
