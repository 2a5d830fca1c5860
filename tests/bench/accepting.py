# SPDX-License-Identifier: ISC
"""Accepting mail while the next hop is down: every message is stored, tried, put off.

sluice and Postfix in turn, several rounds, each with a port as its next hop that refuses
connections. A round ends with the last 250. Syncs and files are counted in runs of their own,
under strace, which go on until the load has ended and not until all of it has been put off.
"""

import json
import statistics
import time

from ends import make_relay, source, spent
from lab.net import free_port
from relaying import start_postfix, trace_postfix, trace_sluice


def _measure(port, pid, options, messages):
    before, began = spent(pid), time.monotonic()
    source(port, messages, options.sessions, options.size)
    seconds = time.monotonic() - began
    return messages / seconds, 1000 * spent(pid, before) / messages


def _counted(relay, messages):
    """Return what the relay itself has counted: syncs and files a message."""
    stats = json.loads(relay.command("stats", "--json").stdout)
    return stats["commits_total"] / messages, stats["files_created_total"] / messages


def run(options, folder):
    """Measure in turn and return a list of figures for each."""
    down = free_port()
    names = ("sluice", "sluice_ms", "postfix", "postfix_ms")
    rounds = {name: [] for name in names}
    relay = make_relay(folder / "sluice", down).start()
    postfix = start_postfix(folder / "postfix", down)
    try:
        for _ in range(options.rounds):
            rate, cost = _measure(relay.port, relay.process.pid, options, options.relayed)
            rounds["sluice"].append(rate)
            rounds["sluice_ms"].append(cost)
            if postfix:
                rate, cost = _measure(postfix.port, postfix.process.pid, options,
                                      options.postfix_messages)
                rounds["postfix"].append(rate)
                rounds["postfix_ms"].append(cost)
        counted = _counted(relay, options.relayed * options.rounds)
        rounds |= {"sluice_syncs_counted": [counted[0]], "sluice_files_counted": [counted[1]]}
        rounds |= _traced(options, folder, postfix, down)
    finally:
        relay.stop()
        if postfix:
            postfix.stop()
    return {"median": _middle(rounds), "rounds": rounds}


def _traced(options, folder, postfix, down):
    syncs, files = trace_sluice(folder, down, options.relayed, lambda port: source(
        port, options.relayed, options.sessions, options.size))
    found = {"sluice_syncs": [syncs], "sluice_files": [files]}
    if postfix:
        syncs, files = trace_postfix(folder, postfix, options.postfix_messages, lambda port: source(
            port, options.postfix_messages, options.sessions, options.size))
        found |= {"postfix_syncs": [syncs], "postfix_files": [files]}
    return found


def _middle(rounds):
    middle = {name: statistics.median(values) for name, values in rounds.items() if values}
    if rounds["postfix"]:
        middle["sluice_of_postfix"] = statistics.median(
            a / b for a, b in zip(rounds["sluice"], rounds["postfix"]))
    return middle


def report(figures, options):
    """Return the lines of the table."""
    middle = figures["median"]
    lines = [f"accepting, next hop down: {options.size} byte messages, {options.sessions} sessions"]
    lines.append(f"{'':16}{'messages/s':>12}{'ms cpu/msg':>12}{'syncs/msg':>12}{'files/msg':>12}")
    for who in ("sluice", "postfix"):
        if who in middle:
            lines.append(f"{who:16}{middle[who]:12.0f}{middle[f'{who}_ms']:12.3f}"
                         f"{middle[f'{who}_syncs']:12.3f}{middle[f'{who}_files']:12.4f}")
    lines.append(f"{'  not traced':16}{'':24}{middle['sluice_syncs_counted']:12.3f}"
                 f"{middle['sluice_files_counted']:12.4f}")
    if "sluice_of_postfix" in middle:
        lines.append(f"sluice / Postfix: {middle['sluice_of_postfix']:.1f}")
    return lines
