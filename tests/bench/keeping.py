# SPDX-License-Identifier: ISC
"""Clients that keep their connection: messages a second, and how long each message takes.

    bench_sessions -> sluice  -> smtp-sink
    bench_sessions -> Postfix -> smtp-sink      where Postfix can run (as root)
    bench_sessions -> earlier -> smtp-sink      another sluice, where one is named

In turn, for different numbers of sessions; then large messages, and what they cost the small ones
beside them; and what as many processes cost these that do nothing but compute, since no more than that can be the
disk's or the relay's. A message takes from its MAIL to the 250 behind its content.

With one session each message has a sync of its own: what that takes the disk alone is measured beside it, in a file that is
written already, as a segment is.
"""

import contextlib
import json
import os
import statistics
import subprocess
import time

from ends import Sink, TOP, make_relay
from lab.net import free_port
from relaying import start_postfix

SESSIONS = TOP / "build" / "plain" / "tests" / "bench" / "bench_sessions"
AT_ONCE = (1, 10, 50, 200, 500)
POSTFIX_AT_ONCE = (1, 10, 50)  # it serves a hundred at most, as it comes
SIZES = (100_000, 200_000, 600_000, 2_000_000)
FEW, LARGE, LARGE_AT_ONCE, PAUSE_S = 10, 2_000_000, 4, 0.5
SEGMENT, DISK = 64 << 20, "the disk"
SETTINGS = {"segment_size": "64m"}
COMPUTING = 6  # so many threads of the relay, its client and its sink are busy with large content


def _start(port, sessions, seconds, size):
    return subprocess.Popen([SESSIONS, str(port), str(sessions), str(seconds), str(size)],
                            stdout=subprocess.PIPE)


def _finish(process):
    said = json.loads(process.communicate(timeout=600)[0])
    assert process.returncode == 0 and said["messages"] > 0
    return {"rate": said["messages"] / said["seconds"], "p50": said["p50"] / 1000, "p99": said["p99"] / 1000}


def _measure(port, sessions, seconds, size):
    return _finish(_start(port, sessions, seconds, size))


def _beside_large(port, seconds, size):
    large = _start(port, LARGE_AT_ONCE, seconds + 2 * PAUSE_S, LARGE)
    try:
        time.sleep(PAUSE_S)
        return _measure(port, FEW, seconds, size)
    finally:
        _finish(large)


def _beside_computing(port, seconds, size):
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(COMPUTING)]
    try:
        return _measure(port, FEW, seconds, size)
    finally:
        for one in busy:
            one.kill()
            one.wait()


def _sync_alone(path, seconds, size):
    """Write a message's bytes and have them on the disk, one after the other."""
    took, at, bytes_of_one = [], 0, os.urandom(size)
    with open(path, "wb", buffering=0) as file:
        file.write(bytes(SEGMENT))
        os.fsync(file.fileno())
        began = now = time.monotonic()
        while now - began < seconds:
            os.pwrite(file.fileno(), bytes_of_one, at)
            os.fdatasync(file.fileno())
            before, now = now, time.monotonic()
            took.append(1000 * (now - before))
            at = (at + size) % (SEGMENT - size)
    path.unlink()
    took.sort()
    return {"rate": len(took) / (now - began), "p50": took[len(took) // 2], "p99": took[len(took) * 99 // 100]}


def _cases(port, options, at_once, everything):
    for n in at_once:
        yield f"{n}", _measure(port, n, options.seconds, options.size)
    if everything:
        for size in SIZES:
            yield f"of {size}", _measure(port, FEW, options.seconds, size)
        yield "beside large", _beside_large(port, options.seconds, options.size)
        yield "beside computing", _beside_computing(port, options.seconds, options.size)


def _round(port, sink, options, at_once, everything):
    """Measure each case when what came before has gone out: else that would slow it down, and a long queue by in_flow_delay."""
    found = {}
    for case, figures in _cases(port, options, at_once, everything):
        found[case] = figures
        sink.rest()
    return found


def run(options, folder):
    """Measure in turn and return the medians for each."""
    sink_port = free_port()
    with contextlib.ExitStack() as ends:
        sink = Sink(sink_port)
        ends.callback(sink.close)
        relay = make_relay(folder / "sluice", sink_port, SETTINGS).start()
        ends.callback(relay.stop)
        earlier = options.earlier and make_relay(folder / "earlier", sink_port, SETTINGS, options.earlier).start()
        if earlier:
            ends.callback(earlier.stop)
        postfix = start_postfix(folder / "postfix", sink_port)
        if postfix:
            ends.callback(postfix.stop)
        rounds = {"sluice": [], "earlier": [], "postfix": []}
        for _ in range(options.rounds):
            disk = _sync_alone(folder / "synced", options.seconds, options.size)
            rounds["sluice"].append(_round(relay.port, sink, options, AT_ONCE, True) | {DISK: disk})
            if earlier:
                rounds["earlier"].append(_round(earlier.port, sink, options, AT_ONCE, False))
            if postfix:
                rounds["postfix"].append(_round(postfix.port, sink, options, POSTFIX_AT_ONCE, False))
    return {"median": {who: _middle(found) for who, found in rounds.items() if found}, "rounds": rounds}


def _middle(rounds):
    return {case: {what: statistics.median(one[case][what] for one in rounds) for what in values}
            for case, values in rounds[0].items()}


def report(figures, options):
    """Return the lines of the table."""
    middle = figures["median"]
    lines = [f"kept connections: {options.size} byte messages, median of {options.rounds} rounds",
             f"{'sessions':14}{'messages/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'Postfix':>12}{'p50 ms':>9}{'p99 ms':>9}"]
    for n in map(str, AT_ONCE):
        lines.append(f"{n:14}" + "".join(_cells(middle[who].get(n)) for who in ("sluice", "postfix") if who in middle))
    lines.append(f"{'disk alone':14}{_cells(middle['sluice'][DISK])}")
    if "earlier" in middle:
        lines += [f"{n + ', earlier':14}{_cells(middle['earlier'][n])}" for n in map(str, AT_ONCE)]
    lines += ["", f"{'large, 10':14}{'messages/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'MB/s':>12}"]
    for size in SIZES:
        found = middle["sluice"][f"of {size}"]
        lines.append(f"{size:<14}{_cells(found)}{found['rate'] * size / 1e6:12.0f}")
    lines.append(f"{options.size} bytes, beside {LARGE_AT_ONCE} sessions of {LARGE}, and beside {COMPUTING} processes that compute:")
    lines += [f"{FEW:<14}{_cells(middle['sluice'][f'beside {who}'])}" for who in ("large", "computing")]
    return lines


def _cells(found):
    return f"{found['rate']:12.0f}{found['p50']:9.2f}{found['p99']:9.2f}" if found else ""
