# SPDX-License-Identifier: ISC
"""The relay under test, as a process."""

import copy
import os
import pwd
import shlex
import signal
import subprocess
import sys

from . import log
from .config import Config
from .net import LOOPBACK, free_port, wait_until
from .process import Process, sanitizer_report
from .smtp import Client

REPOSITORY = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))

# Run a program with these descriptors as systemd would pass them.
_AS_SYSTEMD = """
import os, sys
numbers = [int(number) for number in sys.argv[1].split(",")]
given = [os.dup2(number, 100 + at) for at, number in enumerate(numbers)]
for number in numbers:
    os.close(number)
for at, number in enumerate(given):
    os.dup2(number, 3 + at)
    os.close(number)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(given)))
os.execv(sys.argv[2], sys.argv[2:])
"""
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)


def binary():
    """Return the path of the program under test."""
    path = os.path.abspath(os.environ.get("SLUICE_BIN") or os.path.join(REPOSITORY, "sluice"))
    assert os.access(path, os.X_OK), f"{path} is not there: run make first, or set SLUICE_BIN"
    return path


class Relay:
    """A relay with a folder, a spool and a port of its own, which stay over restarts.

    It is started with the sockets, as systemd does it, and with the environment added to ours.

    SLUICE_BIN names another program to test, SLUICE_WRAPPER a command to run it under. The
    rest of the environment, and so any sanitizer's options, is passed on.
    """

    def __init__(self, folder, config=None, log_format="text"):
        """Write the configuration into the folder; start() runs the relay."""
        self.folder = str(folder)
        self.spool = os.path.join(self.folder, "spool")
        self.log_path = os.path.join(self.folder, "log")
        self.config_path = os.path.join(self.folder, "sluice.conf")
        self.stderr_path = os.path.join(self.folder, "stderr")
        self.config = copy.deepcopy(config) if config else Config()
        self.program = None  # in place of the one under test
        self.ports = {}
        self.sockets = []
        self.environment = {}
        self.process = None
        self._events = []
        self._log_read = 0
        self._fill_in(log_format)
        self.write_config()

    def _fill_in(self, log_format):
        defaults = {
            "hostname": "relay.test",
            "spool": self.spool,
            "segment_size": "4m",
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "log": self.log_path,
            "log_format": log_format,
            "workers": 2,
            "http": "",
        }
        self.config.settings = defaults | self.config.settings
        for name, listener in self.config.listeners.items():
            listener.setdefault("address", [f"{LOOPBACK}:{free_port()}"])
            self.ports[name] = int(listener["address"][0].rpartition(":")[2])

    @property
    def port(self):
        """The port of the first listener."""
        return next(iter(self.ports.values()))

    def write_config(self):
        """Write the configuration again, after a test has changed it: never half of it is there."""
        fresh = f"{self.config_path}.new"
        with open(fresh, "w", encoding="utf-8") as stream:
            stream.write(self.config.text())
        os.replace(fresh, self.config_path)

    def start(self, timeout=60.0, ready=None):
        """Run the relay and wait until it says that it is ready, or ready() does where the log can't be read. Returns self."""
        assert not self.running(), "the relay runs already"
        before = len(self.events("ready"))
        ready = ready or (lambda: len(self.events("ready")) > before)
        wrapper = shlex.split(os.environ.get("SLUICE_WRAPPER", ""))
        command = [*wrapper, self.program or binary(), "serve", "-c", self.config_path]
        descriptors = [socket.fileno() for socket in self.sockets]
        if descriptors:
            command = [sys.executable, "-c", _AS_SYSTEMD, ",".join(map(str, descriptors)), *command]
        self.process = Process(
            command, self.stderr_path, env=os.environ | self.environment, cwd=self.folder, descriptors=descriptors
        )
        wait_until(
            lambda: ready() or not self.running(),
            timeout,
            "the relay to be ready",
        )
        if not self.running():
            self.process = None
            raise AssertionError(f"the relay ended at once:\n{self.report()}")
        return self

    def running(self):
        """Say whether the process runs."""
        return self.process is not None and self.process.running()

    def signal(self, number):
        """Send a signal to the relay."""
        self.process.signal(number)

    def kill(self):
        """End the relay as a crash would, with SIGKILL."""
        process, self.process = self.process, None
        process.signal(signal.SIGKILL)
        process.wait()
        self.check_sanitizers()

    def stop(self, timeout=60.0):
        """End the relay with SIGTERM, unless it has ended, and return its exit status."""
        process, self.process = self.process, None
        return self._check_end(process.stop(timeout))

    def restart(self):
        """Stop the relay, and start it again on the same spool and ports."""
        self.stop()
        return self.start()

    def close(self):
        """End the relay unless a test has; complain if it had crashed or does not end well."""
        if self.process is not None:
            crashed = not self.process.running()
            status = self.stop()
            assert not crashed, f"the relay had ended by itself, with status {status}"
            assert status in (0, -signal.SIGTERM), f"the relay ended with status {status}"

    def check_sanitizers(self):
        """Fail when a sanitizer reported something."""
        report = sanitizer_report(self.stderr_text())
        assert not report, f"a sanitizer complains:\n{report[:8000]}"

    def wait_ended(self, timeout=60.0, crash=None):
        """Wait until the relay ends for a reason of the test's, which may be that signal, and return its status."""
        process, self.process = self.process, None
        return self._check_end(process.wait(timeout), crash)

    def _check_end(self, status, crash=None):
        """Fail when it has crashed; return the status. A sanitizer says more."""
        self.check_sanitizers()
        assert -status == crash or -status not in CRASHES, f"the relay crashed, with status {status}"
        return status

    def log_text(self, start=0):
        """Return the log as it stands, from an offset in bytes."""
        return _read(self.log_path, start)

    def stderr_text(self):
        """Return what the relay has written to its standard error, over all its starts."""
        return _read(self.stderr_path)

    def events(self, name=None, /, **keys):
        """Return the events logged so far, or those of that name with those keys."""
        fresh = self.log_text(self._log_read)
        fresh = fresh[: fresh.rfind("\n") + 1]
        self._log_read += len(fresh.encode("utf-8", "surrogateescape"))
        self._events += log.parse(fresh)
        return [event for event in self._events if name is None or event.matches(name, keys)]

    def wait_event(self, name, /, timeout=60.0, count=1, **keys):
        """Wait until count such events are logged, and return the last of them."""
        return self.wait_events(name, timeout, count, **keys)[-1]

    def wait_events(self, name, /, timeout=60.0, count=1, **keys):
        """Wait until count such events are logged, and return all that are: a thread's lines come when it rests."""
        wanted = " ".join([name, *(f"{key}={value}" for key, value in keys.items())])
        return wait_until(
            lambda: self._at_least(count, name, keys), timeout, f"{count} of event: {wanted}"
        )

    def _at_least(self, count, name, keys):
        found = self.events(name, **keys)
        return found if len(found) >= count else None

    def start_mute(self):
        """Run the relay, whose log is of another form than ours, and wait until it is ready. Returns self."""
        return self.start(ready=lambda: "ready" in self.log_text())

    def command(self, *words, stdin=None, timeout=60.0):
        """Run a subcommand, such as "queue", "list", and return the completed process."""
        return subprocess.run(
            [self.program or binary(), *words, "-c", self.config_path],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def client(self, listener=None, timeout=60.0):
        """Connect to a listener, by default the first."""
        return Client(LOOPBACK, self.ports[listener] if listener else self.port, timeout)

    def send(self, sender="from@sender.test", recipients=("to@dest.test",), content=None):
        """Hand one message to the relay by SMTP and return the reply to its end."""
        with self.client() as client:
            client.greet()
            return client.send_mail(sender, recipients, content)

    def report(self, lines=60):
        """Return the tail of the log and of standard error, for the report of a failure."""
        tail = "\n".join(self.log_text().splitlines()[-lines:])
        errors = self.stderr_text()[-4000:]
        text = f"--- log of {self.folder}\n{tail}\n--- standard error\n{errors}"
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _read(path, start=0):
    try:
        with open(path, "rb") as stream:
            stream.seek(start)
            return stream.read().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
