# SPDX-License-Identifier: ISC
"""A private Haraka, unpacked and not installed, as a neighbour of the relay."""

import os
import pathlib
import shutil

import pytest

from . import peers
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

_ACCEPT = """\
exports.hook_lookup_rdns = (next) => next(OK, 'localhost')
exports.hook_connect = (next, connection) => { connection.set('relaying', true); next() }
exports.hook_rcpt = (next) => next(OK)
exports.hook_get_mx = (next) => next(OK, { priority: 0, exchange: '%s', port: %d })
"""

FORWARD, OUTBOUND = "smtp_forward", "outbound"


class Haraka:
    """A Haraka that passes all mail on to a port of the loopback address, in one of its two ways.

    smtp_forward asks the next hop before it answers; outbound has a queue of its own.
    """

    def __init__(self, folder, next_hop, way):
        """Write the configuration; start() runs it."""
        self.program = peers.program("haraka")
        if not os.path.exists(self.program):
            pytest.skip(f"no Haraka: {peers.why_no_npm()}")
        self.folder, self.port, self.process = pathlib.Path(folder), free_port(), None
        shutil.copytree(os.path.join(peers.FOLDER, "npm/node_modules/haraka/config"),
                        self.folder / "config")
        for name in ("plugins", "queue"):
            (self.folder / name).mkdir()
        files = {
            "plugins/accept.js": _ACCEPT % (LOOPBACK, next_hop),
            "config/plugins": "accept\n" + ("queue/smtp_forward\n" if way == FORWARD else ""),
            "config/smtp.ini": f"listen={LOOPBACK}:{self.port}\nnodes=0\n",
            "config/smtp_forward.ini":
                f"host={LOOPBACK}\nport={next_hop}\nenable_outbound=true\n",
            "config/outbound.ini": "local_mx_ok=true\nenable_tls=false\n",
            "config/host_list": "",
            "config/me": "haraka.test\n",
        }
        for name, text in files.items():
            (self.folder / name).write_text(text, encoding="ascii")

    def start(self):
        """Start it and wait until the port answers. Returns self."""
        self.process = Process([self.program, "-c", str(self.folder)], str(self.folder / "output"))
        wait_until(
            lambda: accepts(self.port) or not self.process.running(), 60, "Haraka to listen")
        assert self.process.running(), self.report()
        return self

    def log(self):
        """Return what it has logged so far."""
        return self.process.output_text()

    def close(self):
        """Stop it."""
        if self.process:
            self.process.stop()

    def report(self):
        """Return the tail of the log, for the report of a failure."""
        return f"--- Haraka in {self.folder}\n{self.log()[-3000:]}"
