# SPDX-License-Identifier: ISC
"""The command `sluice queue check`, and that it changes nothing."""

import json

from . import spool


class Checked:
    """What one run of it said."""

    def __init__(self, done):
        """Take the completed process apart; it was run with --json."""
        assert done.returncode in (0, 1), done
        self.whole = done.returncode == 0
        self.stderr = done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert lines, done
        self.findings, self.summary = lines[:-1], lines[-1]
        assert self.whole == (self.summary["faults"] == 0)

    @property
    def faults(self):
        """The faults that were found, as their names."""
        return [one["fault"] for one in self.findings if not one["left"]]

    @property
    def messages(self):
        """How many messages can be delivered."""
        return sum(self.summary["messages"].values())

    def has(self, fault, **keys):
        """Say whether there is a finding of that fault with those keys."""
        return any(
            one["fault"] == fault and all(one[key] == value for key, value in keys.items())
            for one in self.findings
        )


def check(relay):
    """Check the queue of a relay that does not run."""
    before = spool.digest(relay.spool)
    checked = Checked(relay.command("queue", "check", "--json"))
    assert spool.digest(relay.spool) == before, "the check has changed something"
    return checked


def repair(relay):
    """Repair the queue of a relay that does not run."""
    return Checked(relay.command("queue", "check", "--repair", "--json"))
