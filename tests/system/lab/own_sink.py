# SPDX-License-Identifier: ISC
"""The program's own receiver, sluice sink, with the options that a test gives it."""

import os
import re

from .net import LOOPBACK, free_port, wait_until
from .process import Process
from .relay import binary


class OwnSink:
    """One that listens, with all that it has printed."""

    def __init__(self, folder, *words, port=None):
        """Start it, and wait until it listens."""
        self.port = port or free_port()
        self.folder = str(folder)
        command = [binary(), "sink", "-v", "-l", f"{LOOPBACK}:{self.port}", *words]
        self.process = Process(command, os.path.join(self.folder, "sink.out"))
        wait_until(lambda: f"listening on {LOOPBACK}:{self.port}" in self.text() or not self.process.running(), what="the sink")
        assert self.process.running(), self.text()

    def text(self):
        """Return what it has printed."""
        return self.process.output_text()

    def commands(self, verb):
        """Return the commands of this verb, each line without its line end."""
        return re.findall(rf"^command ({verb}(?: .*)?)$", self.text(), re.MULTILINE | re.IGNORECASE)

    def messages(self):
        """Return the lines that tell of messages."""
        return re.findall(r"^message .*$", self.text(), re.MULTILINE)

    def wait_messages(self, count=1, timeout=60.0):
        """Wait until so many have come, and return their lines."""
        wait_until(lambda: len(self.messages()) >= count, timeout, f"{count} messages in the sink")
        return self.messages()

    def fingerprint(self):
        """Return the SHA-256 of the public key that it shows."""
        return re.search(r"sha256=([0-9a-f]{64})", self.text())[1]

    def report(self):
        """Return what it has printed, for a test that has failed."""
        return f"--- sluice sink on port {self.port}\n{self.text()}"

    def close(self):
        """Stop it; it has ended well."""
        if self.process.running():
            assert self.process.stop() == 0
