# SPDX-License-Identifier: ISC
"""What a message takes of each thread: processor time, switches, and the ceiling that follows.

    bench_sessions -> sluice -> smtp-sink

Of qmgr and spool there is one thread each, whatever the number of processors: the busier one bounds the rate.
The kernel's own accounts are read before and after each run, /proc/PID/task: nothing is attached. Those are exact
in sum (schedstat); user and system are told apart by its ticks (stat).

Where every thread has its turn on the same two processors, each finds the caches as the others have left them. "apart" gives qmgr
and spool the last processor to themselves, as they have one on a larger machine; all else, load and sink too, has the others.
"""

import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

from ends import Sink, make_relay
from keeping import PAUSE_S, SESSIONS
from lab.net import free_port

AT_ONCE = (10, 50)
CASES = [(f"{n} sessions", n, False) for n in AT_ONCE] + [(f"{max(AT_ONCE)}, apart", max(AT_ONCE), True)]
SERIAL = ("qmgr", "spool")
LEAST_US = 0.05  # of a message; threads with less are told together
WHAT = ("user", "system", "switches")


def _name(task):
    """Return the name of a thread, without the number that it has among its like."""
    return re.sub(r"[-0-9]+$", "", (task / "comm").read_text().strip())


def _account(task):
    """Return what one thread has had so far: user and system seconds, switches."""
    user, system = map(int, (task / "stat").read_text().rpartition(")")[2].split()[11:13])
    seconds = int((task / "schedstat").read_text().split()[0]) / 1e9
    ticks = (user + system) or 1
    switches = sum(map(int, re.findall(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(), re.M)))
    return (seconds * user / ticks, seconds * system / ticks, switches)


def accounts(pid):
    """Return what the threads of a process have had so far, by name; those that have ended are not seen."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name, had = _name(task), _account(task)
            found[name] = tuple(map(sum, zip(found.get(name, (0, 0, 0)), had)))
    return found


def _keep_apart(relay_pid, sink_pid, apart):
    """Give the serial threads the last processor and all else the others, or all to each again."""
    every = set(range(os.cpu_count()))
    last = {max(every)} if apart else every
    rest = every - last or every
    for pid in (relay_pid, sink_pid, os.getpid()):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                serial = pid == relay_pid and _name(task) in SERIAL
                os.sched_setaffinity(int(task.name), last if serial else rest)


def _load(port, sessions, options):
    command = [SESSIONS, str(port), str(sessions), str(options.seconds), str(options.size)]
    said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    time.sleep(PAUSE_S)  # for what is still on its way out
    return said


def _per_message(before, after, messages):
    found, rest = {}, dict.fromkeys(WHAT, 0.0)
    for name, had in after.items():
        user, system, switches = (now - then for now, then in zip(had, before.get(name, (0, 0, 0))))
        one = dict(zip(WHAT, (1e6 * user / messages, 1e6 * system / messages, switches / messages)))
        if one["user"] + one["system"] >= LEAST_US:
            found[name] = one
        else:
            rest = {what: rest[what] + one[what] for what in WHAT}
    return found | {"others": rest}


def _measure(relay, sink, sessions, apart, options):
    _keep_apart(relay.process.pid, sink.process.pid, apart)
    before = accounts(relay.process.pid)
    said = _load(relay.port, sessions, options)
    found = _per_message(before, accounts(relay.process.pid), said["messages"])
    return {"rate": said["messages"] / said["seconds"], "threads": found}


def run(options, folder):
    """Measure in turn and return the medians for each."""
    sink_port = free_port()
    with contextlib.ExitStack() as ends:
        sink = Sink(sink_port)
        ends.callback(sink.close)
        relay = make_relay(folder / "sluice", sink_port, {"segment_size": "64m"}).start()
        ends.callback(relay.stop)
        _load(relay.port, max(AT_ONCE), options)  # so that segments and connections are there
        ends.callback(_keep_apart, relay.process.pid, sink.process.pid, False)
        rounds = [{case: _measure(relay, sink, n, apart, options) for case, n, apart in CASES} for _ in range(options.rounds)]
    return {"median": {case: _middle([one[case] for one in rounds]) for case in rounds[0]}, "rounds": rounds}


def _middle(rounds):
    names = [name for name in rounds[0]["threads"] if all(name in one["threads"] for one in rounds)]
    threads = {name: {what: statistics.median(one["threads"][name][what] for one in rounds) for what in WHAT}
               for name in names}
    busiest = max(threads[name]["user"] + threads[name]["system"] for name in SERIAL)
    return {"rate": statistics.median(one["rate"] for one in rounds), "threads": threads, "ceiling": 1e6 / busiest}


def report(figures, options):
    """Return the lines of the table."""
    lines = [f"by thread: {options.size} byte messages, kept connections, median of {options.rounds} rounds, "
             f"{os.cpu_count()} processors; microseconds and switches a message"]
    for case, found in figures["median"].items():
        lines.append(f"{case:14}{'user':>9}{'system':>9}{'both':>9}{'switches':>10}")
        by_time = sorted(found["threads"].items(), key=lambda one: -one[1]["user"] - one[1]["system"])
        for name, had in by_time:
            lines.append(f"  {name:12}{had['user']:9.1f}{had['system']:9.1f}{had['user'] + had['system']:9.1f}"
                         f"{had['switches']:10.3f}")
        lines.append(f"  {found['rate']:.0f} messages/s; {' and '.join(SERIAL)}, one each, bound them to {found['ceiling']:.0f}")
    return lines
