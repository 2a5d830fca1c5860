# SPDX-License-Identifier: ISC
"""Beside the figures of the last release, on the same machine: what has changed by more than a tenth.

    tests/bench/run --release    keeps all figures of this run as those of a release
    tests/bench/run              ends with what is another now, if they are there and of this machine

One run of a busy machine says little of its rates: the load is told for both, and the ratios to others
that were measured in the same rounds stand in the same list.
"""

import json
import os
import re
import statistics
import subprocess
from pathlib import Path

from lab.relay import binary

KEPT = Path(__file__).parent / "release.json"
SHARE = 0.1
LITTLE = 1e-6  # what was as good as nothing has no share


def machine():
    """Return what makes figures those of the same machine."""
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"processors": os.cpu_count(), "model": model[1] if model else None, "gigabytes": round(memory / 2**30)}


def about():
    """Return what figures are kept with: of which program and machine, and how busy that was."""
    version = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"version": version, "machine": machine(), "load": os.getloadavg()[0]}


def flat(figures, path=""):
    """Yield the name and value of each figure; of rounds and other lists the medians."""
    if isinstance(figures, dict):
        for name, value in figures.items():
            if not (name == "rounds" and "median" in figures):
                deeper = path if name in ("median", "rounds") else f"{path}, {name}" if path else name
                yield from flat(value, deeper)
    elif isinstance(figures, (list, tuple)):
        yield from _of_list(list(figures), path)
    elif isinstance(figures, (int, float)) and not isinstance(figures, bool):
        yield path, figures


def _of_list(values, path):
    if values and all(isinstance(one, dict) and "messages" in one for one in values):
        for one in values:
            rest = {name: value for name, value in one.items() if name != "messages"}
            yield from flat(rest, f"{path}, {one['messages']} messages")
        return
    found = {}
    for one in values:
        for name, value in flat(one, path):
            found.setdefault(name, []).append(value)
    yield from ((name, statistics.median(several)) for name, several in found.items())


def changes(before, now):
    """Return name, value before and value now of what differs by more than a tenth, the most first."""
    old = dict(flat(before))
    both = [(name, old[name], value) for name, value in flat(now) if name in old and abs(old[name]) > LITTLE]
    moved = [one for one in both if abs(one[2] / one[1] - 1) > SHARE]
    return sorted(moved, key=lambda one: -abs(one[2] / one[1] - 1)), len(both)


def keep(figures):
    """Keep figures as those of a release."""
    KEPT.write_text(json.dumps(figures, indent=1))


def report(figures):
    """Return the lines of the comparison: none where no release was measured."""
    if not KEPT.exists():
        return []
    before = json.loads(KEPT.read_text())
    then, now = before.pop("about"), {name: value for name, value in figures.items() if name != "about"}
    title = f"beside {then['version']}"
    if then["machine"] != figures["about"]["machine"]:
        return [f"{title}: measured on another machine, not compared"]
    moved, compared = changes(before, now)
    lines = [f"{title}: {len(moved)} of {compared} figures differ by more than a tenth "
             f"(load {then['load']:.1f} then, {figures['about']['load']:.1f} now)"]
    return lines + [f"{name:70}{old:12.4g} -> {new:<10.4g}{100 * (new / old - 1):+6.0f} %" for name, old, new in moved]
