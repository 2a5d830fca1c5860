# SPDX-License-Identifier: ISC
"""Filters: mail that passes none, one that wants the end of each body only, and one that wants everything.

    smtp-source -> sluice -> smtp-sink
                    |  ^
                 null_milter

In turn, several rounds. The filter has a process of its own, on the same processors.
"""

import statistics
import subprocess

from ends import TOP, drive, make_relay, spent
from lab.net import LOOPBACK, accepts, free_port, wait_until

NULL_MILTER = TOP / "build" / "plain" / "tests" / "bench" / "null_milter"
FILTERS = {"none": None, "null": [], "all": ["all"]}


def _filtered(folder, name, sink_port, port):
    relay = make_relay(folder / name, sink_port)
    if FILTERS[name] is not None:
        relay.config.listeners["smtp"]["milters"] = [name]
        relay.config.extra = f'milter "{name}" {{ address = "inet:{LOOPBACK}:{port}" }}\n'
        relay.write_config()
    return relay.start()


def _start_filter(name, port):
    if FILTERS[name] is None:
        return []
    process = subprocess.Popen([NULL_MILTER, str(port), *FILTERS[name]])
    wait_until(lambda: accepts(port), 10, "the filter to listen")
    return [process]


def run(options, folder):
    """Measure in turn and return the figures."""
    sink_port = free_port()
    rounds = {f"{name}{unit}": [] for name in FILTERS for unit in ("", "_ms")}
    relays, filters = {}, []
    try:
        for name in FILTERS:
            port = free_port()
            filters += _start_filter(name, port)
            relays[name] = _filtered(folder, name, sink_port, port)
        for _ in range(options.rounds):
            for name, relay in relays.items():
                before = spent(relay.process.pid)
                seconds = drive(relay.port, sink_port, options, options.relayed)
                rounds[name].append(options.relayed / seconds)
                rounds[f"{name}_ms"].append(1000 * spent(relay.process.pid, before) / options.relayed)
    finally:
        for relay in relays.values():
            relay.stop()
        for process in filters:
            process.terminate()
            process.wait()
    middle = {name: statistics.median(values) for name, values in rounds.items()}
    for name in ("null", "all"):
        middle[f"{name}_of_none"] = statistics.median(a / b for a, b in zip(rounds[name], rounds["none"]))
    return {"median": middle, "rounds": rounds}


def report(figures, options):
    """Return the lines of the table."""
    middle = figures["median"]
    lines = [f"one filter: {options.size} byte messages, {options.sessions} sessions"]
    lines.append(f"{'':32}{'messages/s':>12}{'of none':>10}{'ms cpu/msg':>12}")
    names = {"none": "none", "null": "wants the end of bodies", "all": "wants everything"}
    for name, text in names.items():
        share = f"{middle.get(f'{name}_of_none', 1):10.2f}"
        lines.append(f"{text:32}{middle[name]:12.0f}{share}{middle[f'{name}_ms']:12.3f}")
    return lines
