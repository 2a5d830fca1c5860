# SPDX-License-Identifier: ISC
"""Connections: a long way, a dead host of two, many small sites, a host that says 421.

sluice and Postfix in the same rounds. What waits for round trips and replies runs side by side;
what is bound by the machine runs alone.
"""

import statistics

import faraway
import neighbours

BUDGETS = {"chunking_1": 150, "pipelining_1": 9}
FEWER = 2  # rounds of what takes long
NAMES = {"chunking": "CHUNKING, PIPELINING", "pipelining": "PIPELINING", "neither": "neither",
         "postfix": "both; Postfix sends"}


def run(options, folder):
    """Measure in rounds and return a list of figures for each."""
    rounds = {"far": [], "pairs": [], "sites": [], "crowds": []}
    nsd = neighbours.start_nsd(folder / "nsd")
    try:
        for number in range(options.rounds):
            here = folder / f"round-{number}"
            here.mkdir()
            rounds["far"].append(faraway.measure(here, options.size))
            if number < FEWER:
                rounds["pairs"].append(neighbours.pairs(here, nsd, options.size))
                rounds["sites"].append(neighbours.sites(here, nsd, options.size))
                rounds["crowds"].append(neighbours.crowds(here, options.size))
    finally:
        nsd.close()
    return {"median": {part: _middle(found) for part, found in rounds.items()}, "rounds": rounds}


def _middle(rounds):
    """Return the median of each figure, or of each of several together."""
    def one(values):
        if isinstance(values[0], tuple):
            return [statistics.median(column) for column in zip(*values)]
        return statistics.median(values)
    return {name: one([figures[name] for figures in rounds]) for name in rounds[0]}


def _far(far):
    yield f"{'the receiver has':22}{'one connection':>16}{'budget':>8}{faraway.CONNECTIONS:>8} of them"
    for way, name in NAMES.items():
        if f"{way}_1" in far:
            budget = BUDGETS.get(f"{way}_1", "")
            many = far[f"{way}_{faraway.CONNECTIONS}"]
            yield f"{name:22}{far[f'{way}_1']:16.1f}{budget:>8}{many:16.0f}"
    if "postfix_1" in far:
        for which in (1, faraway.CONNECTIONS):
            ratio = far[f"chunking_{which}"] / far[f"postfix_{which}"]
            yield f"sluice with CHUNKING / Postfix, {which}: {ratio:.0f}"


def _pairs(pairs):
    yield f"{'two hosts, the second':24}{'messages/s':>12}{'of both alive':>15}{'deferred':>10}"
    for name, (rate, deferred) in pairs.items():
        share = rate / pairs[f"{name.split(',')[0]}, alive"][0]
        yield f"{name:24}{rate:12.0f}{share:15.2f}{deferred:10.0f}"


def _sites(sites):
    yield f"{'many sites, 3 hosts':24}{'domains':>12}{'messages/s':>15}{'connections':>13}"
    for who, (rate, connections) in sites.items():
        yield f"{who:24}{neighbours.DOMAINS[who]:12}{rate:15.0f}{connections:13.0f}"


def _crowds(crowds):
    most = neighbours.PLACES / (4 * neighbours.REPLY_MS / 1000)
    yield f"{f'421 above {neighbours.PLACES}':10}{'messages/s':>12}{'of most':>9}{'busy':>6}" \
          f"{'deferred, of':>14}{neighbours.CROWD:4}{'turned away':>13}"
    for who, (rate, deferred, away, busy) in crowds.items():
        yield f"{who:10}{rate:12.1f}{rate / most:9.2f}{busy:6.2f}{deferred:18.0f}{away:13.0f}"


def report(figures, options):
    """Return the lines of the tables."""
    middle = figures["median"]
    return [f"connections: {options.size} byte messages, messages/s, median of {options.rounds} rounds",
            "", f"{faraway.ROUND_TRIP_MS} ms round trip", *_far(middle["far"]),
            "", *_pairs(middle["pairs"]), "", *_sites(middle["sites"]), "", *_crowds(middle["crowds"])]
