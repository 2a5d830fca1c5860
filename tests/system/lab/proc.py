# SPDX-License-Identifier: ISC
"""What /proc says about the relay: descriptors, memory, processor time."""

import os

import pytest

from .relay import binary


def sanitized():
    """Say whether the program under test has a sanitizer built in, so that memory says little."""
    with open(binary(), "rb") as stream:
        text = stream.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def _pid(relay):
    if os.environ.get("SLUICE_WRAPPER"):
        pytest.skip("under a wrapper the process id is not the relay's")
    return relay.process.pid


def descriptors(relay):
    """Return how many descriptors the relay has open."""
    return len(os.listdir(f"/proc/{_pid(relay)}/fd"))


def resident_kib(relay):
    """Return the relay's resident memory in KiB."""
    with open(f"/proc/{_pid(relay)}/status", encoding="ascii") as stream:
        line = next(line for line in stream if line.startswith("VmRSS:"))
    return int(line.split()[1])


def cpu_seconds(relay):
    """Return the processor time that the relay has used, in seconds."""
    with open(f"/proc/{_pid(relay)}/stat", encoding="ascii") as stream:
        fields = stream.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
