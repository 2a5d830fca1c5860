# SPDX-License-Identifier: ISC
"""The scheduler by itself (bench_scheduler.c): entries a second, by scenario and recipients queued."""

import pathlib
import re
import subprocess

PROGRAM = (pathlib.Path(__file__).resolve().parent.parent.parent
           / "build" / "plain" / "tests" / "bench" / "bench_scheduler")


def run(_options, _folder):
    """Run the program, whose own table goes to standard output."""
    figures = {}
    with subprocess.Popen([PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            found = re.match(r"(.+?)\s+(\d+)\s+\d+ ns\s+(\d+)/s$", line)
            if found:
                figures[f"{found[1]}: {found[2]}"] = int(found[3])
    if process.returncode != 0:
        raise SystemExit("bench_scheduler failed")
    return figures


def report(figures, _options):
    """Say the worst of it."""
    worst = min(figures, key=figures.get)
    return [f"scheduler alone: at least {figures[worst]} entries a second ({worst} queued)"]
