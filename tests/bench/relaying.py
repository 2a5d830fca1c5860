# SPDX-License-Identifier: ISC
"""Relaying: straight, through sluice with and without its sandbox, through an earlier one, through Postfix, in turn.

    smtp-source -> smtp-sink            what the two ends can do by themselves
    smtp-source -> sluice  -> smtp-sink
    smtp-source -> Postfix -> smtp-sink where Postfix can run (as root)

Several rounds; the median of a round's ratio counts, since the machine is noisy. Syncs and files
are counted in runs of their own, under strace.
"""

import os
import statistics

from ends import Traced, TRACE, attach, detach, drive, make_relay, spent
from lab.net import free_port
from lab.postfix import Postfix


def _measure(port, pid, options, messages, sink_port):
    """Return messages a second and milliseconds of processor time a message."""
    before = spent(pid)
    seconds = drive(port, sink_port, options, messages)
    return messages / seconds, 1000 * spent(pid, before) / messages


def trace_sluice(folder, sink_port, messages, load):
    """Run a relay of its own under strace; return its syncs and files a message."""
    trace = Traced(folder / "sluice.strace")
    os.environ["SLUICE_WRAPPER"] = " ".join([*TRACE, "--seccomp-bpf", "-o", str(trace.path)])
    try:
        relay = make_relay(folder / "traced", sink_port).start()
    finally:
        del os.environ["SLUICE_WRAPPER"]
    load(relay.port)
    relay.stop()
    return trace.syncs() / messages, trace.files() / messages


def trace_postfix(folder, postfix, messages, load):
    """Attach strace to a running Postfix; return its syncs and files a message."""
    trace = Traced(folder / "postfix.strace")
    tracer = attach(postfix.process.pid, trace.path)
    load(postfix.port)
    detach(tracer)
    return trace.syncs() / messages, trace.files() / messages


def start_postfix(folder, next_hop):
    """Start Postfix, or return None where it can't run."""
    if os.getuid() != 0:
        return None
    folder.mkdir()
    return Postfix(folder, next_hop=next_hop).start()


def _rounds(options, relays, postfix, ports):
    names = ["sluice", "bare", "earlier", "postfix"]
    rounds = {"direct": []} | {f"{name}{of}": [] for name in names for of in ("", "_ms")}
    sink_port, postfix_sink = ports
    for number in range(options.rounds):
        seconds = drive(sink_port, sink_port, options, options.relayed)
        rounds["direct"].append(options.relayed / seconds)
        # Who comes first finds the machine in another state than who comes next.
        for name, one in list(relays.items())[:: -1 if number % 2 else 1]:
            rate, milliseconds = _measure(one.port, one.process.pid, options, options.relayed, sink_port)
            rounds[name].append(rate)
            rounds[f"{name}_ms"].append(milliseconds)
        if postfix:
            rate, milliseconds = _measure(postfix.port, postfix.process.pid, options,
                                          options.postfix_messages, postfix_sink)
            rounds["postfix"].append(rate)
            rounds["postfix_ms"].append(milliseconds)
    return rounds


def run(options, folder):
    """Measure everything in turn and return a list of figures for each."""
    ports = free_port(), free_port()
    relays = {"sluice": make_relay(folder / "sluice", ports[0]).start(),
              "bare": make_relay(folder / "bare", ports[0], {"sandbox": "off"}).start()}
    if options.earlier:
        relays["earlier"] = make_relay(folder / "earlier", ports[0], program=options.earlier).start()
    postfix = start_postfix(folder / "postfix", ports[1])
    fewer = options.postfix_messages
    try:
        rounds = _rounds(options, relays, postfix, ports)
        syncs, files = trace_sluice(folder, ports[0], options.relayed, lambda port: drive(
            port, ports[0], options, options.relayed))
        rounds |= {"sluice_syncs": [syncs], "sluice_files": [files]}
        if postfix:
            syncs, files = trace_postfix(folder, postfix, fewer, lambda port: drive(
                port, ports[1], options, fewer))
            rounds |= {"postfix_syncs": [syncs], "postfix_files": [files]}
    finally:
        for relay in relays.values():
            relay.stop()
        if postfix:
            postfix.stop()
    return {"median": _middle(rounds), "rounds": rounds}


def _middle(rounds):
    middle = {name: statistics.median(values) for name, values in rounds.items() if values}
    middle["sluice_of_direct"] = statistics.median(
        a / b for a, b in zip(rounds["sluice"], rounds["direct"]))
    middle["sandbox_cost"] = statistics.median(
        a / b for a, b in zip(rounds["sluice_ms"], rounds["bare_ms"]))
    if rounds["earlier"]:
        middle["sluice_of_earlier"] = statistics.median(
            a / b for a, b in zip(rounds["sluice"], rounds["earlier"]))
    if rounds["postfix"]:
        middle["sluice_of_postfix"] = statistics.median(
            a / b for a, b in zip(rounds["sluice"], rounds["postfix"]))
    return middle


def report(figures, options):
    """Return the lines of the table."""
    middle = figures["median"]
    lines = [f"relaying: {options.size} byte messages, {options.sessions} sessions, "
             f"median of {options.rounds} rounds"]
    lines.append(f"{'':10}{'messages/s':>12}{'ms cpu/msg':>12}{'syncs/msg':>12}{'files/msg':>12}")
    for who in ("direct", "sluice", "bare", "earlier", "postfix"):
        if who in middle:
            cells = (middle.get(f"{who}_{what}") for what in ("ms", "syncs", "files"))
            lines.append(f"{who:10}{middle[who]:12.0f}" + "".join(
                f"{cell:12.3f}" if cell is not None else f"{'':12}" for cell in cells))
    lines.append(f"sluice / direct:  {middle['sluice_of_direct']:.2f}")
    lines.append(f"processor time with / without the sandbox (bare): {middle['sandbox_cost']:.3f}")
    if "sluice_of_earlier" in middle:
        lines.append(f"sluice / earlier: {middle['sluice_of_earlier']:.2f}")
    if "sluice_of_postfix" in middle:
        lines.append(f"sluice / Postfix: {middle['sluice_of_postfix']:.1f}")
    return lines
