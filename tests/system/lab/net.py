# SPDX-License-Identifier: ISC
"""Ports, folders and waiting, for everything in the lab."""

import contextlib
import functools
import itertools
import os
import shutil
import socket
import tempfile
import time

LOOPBACK = "127.0.0.1"


def longer(brief, long):
    """How much a test with the mark "long" does: in make check, or where SLUICE_LONG is set."""
    return long if os.environ.get("SLUICE_LONG") else brief


# Tests run side by side, and so do whole suites on one machine: each process has ports of its own,
# below those that the system gives to clients, and none comes twice in a short while.
_BLOCKS, _PORTS_EACH, _PORT_FIRST = 32, 700, 10240
_numbers = itertools.count(os.getpid() * 37)


@functools.cache
def _claim_ports():
    """Return the ports of a block that no other process has, and the socket that claims it.

    The socket has an abstract name, which reaches as far as ports do: in one network namespace.
    """
    for block in range(_BLOCKS):
        claim = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            claim.bind(f"\0sluice-tests-ports-{block}")
            first = _PORT_FIRST + block * _PORTS_EACH
            return range(first, first + _PORTS_EACH), claim
        claim.close()
    raise AssertionError(f"{_BLOCKS} processes have all the ports that are for tests")


def free_port(kind=socket.SOCK_STREAM, address=LOOPBACK):
    """Return a port of the loopback address that nobody uses at the moment."""
    ports, _ = _claim_ports()
    while True:
        port = ports[next(_numbers) % len(ports)]
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, kind) as probe:
            probe.bind((address, port))
            return port


def free_dns_port(address=LOOPBACK):
    """Return a port that is free for UDP and for TCP."""
    while True:
        port = free_port(socket.SOCK_DGRAM, address)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((address, port))
            return port


def wait_until(condition, timeout=60.0, what="the condition"):
    """Poll until condition() is true and return its value; fail after timeout seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {timeout:g} s in vain for {what}")
        time.sleep(0.01)


def accepts(port, address=LOOPBACK):
    """Say whether somebody accepts TCP connections at the port."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def open_folder(prefix):
    """Make a temporary folder that other users may enter, and remove it in the end."""
    path = tempfile.mkdtemp(prefix=prefix)
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def blackhole(address=LOOPBACK, port=0):
    """Give a port whose queue of connections is full: a SYN that comes there is not answered."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.ExitStack() as kept:
        listener = kept.enter_context(
            socket.create_server((address, port), family=family, backlog=0)
        )
        for _ in range(4):
            filler = kept.enter_context(socket.socket(family))
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        time.sleep(0.05)
        yield listener.getsockname()[1]
