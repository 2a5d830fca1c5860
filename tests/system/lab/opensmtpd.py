# SPDX-License-Identifier: ISC
"""A private OpenSMTPD, unpacked and not installed, as a next hop of the relay."""

import os
import pathlib

import pytest

from . import peers
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

_CONFIGURATION = """\
listen on {address} port {port} hostname opensmtpd.test
action "on" relay host "smtp://{address}:{next_hop}"
match from any for any action "on"
"""

# What it insists on, its users and folders, it sees in a mount namespace of its own.
_IN_FRONT = """
set -e
mount --bind "$0/passwd" /etc/passwd
mount --bind "$0/group" /etc/group
for folder in /run /var/spool /var/lib; do mount -t tmpfs tmpfs $folder; done
mkdir -p -m 711 /var/spool/smtpd
mkdir -p -m 755 /var/lib/opensmtpd/empty
exec "$@"
"""


class OpenSmtpd:
    """An OpenSMTPD with its own limits, which passes all mail on to a port of the loopback address.

    It runs as root only, and where a process may have mounts of its own; else the test is skipped.
    """

    def __init__(self, folder, next_hop):
        """Write the configuration; start() runs it."""
        if os.getuid() != 0:
            pytest.skip("OpenSMTPD runs as root only")
        self.folder, self.port, self.process = pathlib.Path(folder), free_port(), None
        self.config = self.folder / "smtpd.conf"
        self.config.write_text(_CONFIGURATION.format(
            address=LOOPBACK, port=self.port, next_hop=next_hop), encoding="ascii")
        for name, lines in (
            ("passwd", "opensmtpd:x:{0}:{0}::/var/lib/opensmtpd/empty:/bin/false\n"
                       "opensmtpq:x:{1}:{1}::/var/lib/opensmtpd/empty:/bin/false\n"),
            ("group", "opensmtpd:x:{0}:\nopensmtpq:x:{1}:\n"),
        ):
            present = pathlib.Path("/etc", name).read_text(encoding="utf-8")
            (self.folder / name).write_text(present + lines.format(64901, 64902), encoding="utf-8")

    def start(self):
        """Start the daemon and wait until the port answers. Returns self."""
        command = ["unshare", "--mount", "sh", "-c", _IN_FRONT, str(self.folder),
                   os.path.join(peers.root(), "usr/sbin/smtpd"), "-d", "-f", str(self.config)]
        self.process = Process(command, str(self.folder / "output"), peers.environment())
        wait_until(
            lambda: accepts(self.port) or not self.process.running(), 60, "OpenSMTPD to listen")
        if not self.process.running() and "mount" in self.process.output_text():
            pytest.skip(f"no mounts of its own: {self.process.output_text()[-200:]}")
        assert self.process.running(), self.report()
        return self

    def close(self):
        """Stop the daemon and its children, which are in its group."""
        if self.process:
            self.process.stop()

    def report(self):
        """Return the tail of the log, for the report of a failure."""
        return f"--- OpenSMTPD in {self.folder}\n{self.process.output_text()[-3000:]}"
