# SPDX-License-Identifier: ISC
"""One process of the lab: started in a group of its own, stopped by its id."""

import contextlib
import os
import signal
import subprocess

from .net import wait_until

SANITIZER_REPORTS = (
    "ERROR: AddressSanitizer",
    "ERROR: LeakSanitizer",
    "WARNING: ThreadSanitizer",
    "runtime error:",
)


class Process:
    """A child process whose output goes to a file."""

    def __init__(self, command, output, env=None, cwd=None, descriptors=()):
        """Start the command with standard output and error appended to the file output.

        The descriptors stay open in it, under their numbers.
        """
        self.output = output
        with open(output, "ab") as sink:
            self.child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=env,
                cwd=cwd,
                start_new_session=True,
                pass_fds=descriptors,
            )

    @property
    def pid(self):
        """The process id, which is also the id of its group."""
        return self.child.pid

    def running(self):
        """Say whether the process still runs."""
        return self.child.poll() is None

    def signal(self, number):
        """Send a signal to the process and to the children in its group."""
        if self.running():
            os.killpg(self.pid, number)

    def wait(self, timeout=60.0):
        """Wait for the end and return the exit status; negative is a signal's number."""
        return self.child.wait(timeout)

    def stop(self, timeout=60.0):
        """Ask the process to end, insist after the timeout, and return the exit status."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            return self.wait(timeout)

    def end_group(self):
        """Kill what is left of the group after stop(), and return when nothing of it runs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        wait_until(lambda: not any(self._runs(entry) for entry in os.listdir("/proc") if entry.isdigit()), 60, "the group to end")

    def _runs(self, pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
                state, _, group = stream.read().rpartition(") ")[2].split()[:3]
        except OSError:
            return False  # ended since
        return int(group) == self.pid and state not in "ZX"

    def output_text(self):
        """Return what the process has written so far."""
        with open(self.output, "rb") as stream:
            return stream.read().decode("utf-8", "backslashreplace")


def sanitizer_report(text):
    """Return the text from the line on in which a sanitizer's report begins, or ""."""
    starts = [text.find(mark) for mark in SANITIZER_REPORTS if mark in text]
    return text[text.rfind("\n", 0, min(starts)) + 1:] if starts else ""
