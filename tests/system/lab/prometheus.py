# SPDX-License-Identifier: ISC
"""A real Prometheus, and its tool that checks metrics and rules."""

import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from . import peers
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process


def check(*words, text=None):
    """Run promtool check; return its status and what it says."""
    done = subprocess.run([peers.program("promtool"), "check", *words], input=text,
                          capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


class Prometheus:
    """Fetches the metrics at a port of the loopback address four times a second."""

    def __init__(self, folder, target, rules):
        """Write its configuration, with a file of rules."""
        self.folder = str(folder)
        self.port = free_port()
        self.config = os.path.join(self.folder, "prometheus.yml")
        self.output = os.path.join(self.folder, "output")
        self.process = None
        with open(self.config, "w", encoding="utf-8") as stream:
            json.dump({
                "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms", "evaluation_interval": "250ms"},
                "rule_files": [rules],
                "scrape_configs": [{"job_name": "sluice", "static_configs": [{"targets": [f"{LOOPBACK}:{target}"]}]}],
            }, stream)

    def start(self):
        """Run it until it answers. Returns self."""
        program = peers.program("prometheus")
        self.process = Process([program, f"--config.file={self.config}", f"--web.listen-address={LOOPBACK}:{self.port}",
                                f"--storage.tsdb.path={self.folder}/data"], self.output, cwd=self.folder)
        wait_until(lambda: accepts(self.port), 60, "Prometheus to listen")
        wait_until(lambda: self.ask("query", query="1"), 60, "Prometheus to be ready")
        return self

    def ask(self, path, **arguments):
        """Return the data of an answer of its API, or None while it is not ready."""
        url = f"http://{LOOPBACK}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            assert error.code == 503, error
            return None

    def value(self, expression):
        """Return the value of an expression with one series, or None."""
        data = self.ask("query", query=expression)
        return float(data["result"][0]["value"][1]) if data and data["result"] else None

    def close(self):
        """Stop it."""
        if self.process:
            self.process.stop()

    def report(self):
        """Return the end of what it says."""
        return self.process.output_text()[-3000:] if self.process else ""
