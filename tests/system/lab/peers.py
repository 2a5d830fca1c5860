# SPDX-License-Identifier: ISC
"""The servers of other people that tests/peers downloads."""

import functools
import os
import shlex
import subprocess

import pytest

from .relay import REPOSITORY

FOLDER = os.path.join(REPOSITORY, "build", "peers")


@functools.cache
def fetch():
    """Download the peers, unless they are there; skip the test where that is impossible."""
    script = os.path.join(REPOSITORY, "tests", "peers")
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"the peers cannot be downloaded: {done.stderr.strip()[-300:]}")


def program(name):
    """Return the path of the wrapper that runs a peer's program."""
    fetch()
    return os.path.join(FOLDER, "bin", name)


def why_no_npm():
    """Say why what comes from npm's registry is not there."""
    path = os.path.join(FOLDER, "npm.missing")
    if not os.path.exists(path):
        return "nobody knows why"
    with open(path, encoding="utf-8", errors="backslashreplace") as stream:
        return stream.read().strip()[-300:]


def root():
    """Return the folder that the packages are unpacked in."""
    fetch()
    return os.path.join(FOLDER, "root")


def environment():
    """Return the environment in which the peers find their libraries."""
    fetch()
    dump = f'. {shlex.quote(os.path.join(FOLDER, "env"))} && env -0'
    output = subprocess.run(["sh", "-c", dump], capture_output=True, check=True).stdout
    pairs = (item.partition("=") for item in output.decode("utf-8").split("\0") if item)
    return {name: value for name, _, value in pairs}
