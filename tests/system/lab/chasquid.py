# SPDX-License-Identifier: ISC
"""A private chasquid, unpacked and not installed, as a next hop of the relay."""

import os
import pathlib
import subprocess

import pytest

from . import peers
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

_CONFIGURATION = """\
hostname: "chasquid.test"
smtp_address: "{address}:{port}"
data_dir: "{folder}/data"
mail_delivery_agent_bin: "/bin/true"
mail_log_path: "{folder}/mail.log"
"""


class Chasquid:
    """A chasquid that takes all mail for dest.test, and drops it. Where it could not be downloaded, the test is skipped."""

    def __init__(self, folder):
        """Write the configuration; start() runs it."""
        self.program = os.path.join(peers.root(), "usr/bin/chasquid")
        if not os.path.exists(self.program):
            pytest.skip("there is no chasquid")
        self.folder, self.port, self.process = pathlib.Path(folder), free_port(), None
        certs, domain = self.folder / "conf/certs/chasquid.test", self.folder / "conf/domains/dest.test"
        for one in certs, domain, self.folder / "conf/hooks", self.folder / "data":
            one.mkdir(parents=True)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=chasquid.test",
                        "-keyout", str(certs / "privkey.pem"), "-out", str(certs / "fullchain.pem")], check=True, capture_output=True)
        (domain / "aliases").write_text("*: | /bin/true\n", encoding="ascii")
        (self.folder / "conf/chasquid.conf").write_text(_CONFIGURATION.format(address=LOOPBACK, port=self.port, folder=self.folder), encoding="ascii")

    def start(self):
        """Start it and wait until the port answers. Returns self."""
        self.process = Process([self.program, f"--config_dir={self.folder}/conf"], str(self.folder / "output"), peers.environment())
        wait_until(lambda: accepts(self.port) or not self.process.running(), 60, "chasquid to listen")
        assert self.process.running(), self.report()
        return self

    def close(self):
        """Stop it."""
        if self.process:
            self.process.stop()

    def report(self):
        """Return the tail of the log, for the report of a failure."""
        return f"--- chasquid in {self.folder}\n{self.process.output_text()[-3000:]}"
