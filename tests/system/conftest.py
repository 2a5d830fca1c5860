# SPDX-License-Identifier: ISC
"""Fixtures: everything that a test starts is stopped, by its id, when the test is over."""

import contextlib
import os
import shutil
import signal
import sys
import zlib

import pytest

# Compiled tests lie with what else is made: to compile them takes each worker six seconds.
sys.dont_write_bytecode = False
sys.pycache_prefix = os.path.join(os.path.dirname(__file__), "..", "..", "build", "pycache")

# pylint: disable=wrong-import-position
from lab.browser import Browser  # noqa: E402
from lab.certs import Certificates  # noqa: E402
from lab.config import Config  # noqa: E402
from lab.dns import Nsd  # noqa: E402
from lab.dovecot import Dovecot  # noqa: E402
from lab.net import open_folder  # noqa: E402
from lab.own_sink import OwnSink  # noqa: E402
from lab.postfix import Postfix  # noqa: E402
from lab.prometheus import Prometheus  # noqa: E402
from lab.relay import Relay  # noqa: E402
from lab.scripted import ScriptedServer  # noqa: E402
from lab.sink import Sink  # noqa: E402

SECONDS_A_TEST = 300

_reporters = []


class Lab(contextlib.ExitStack):
    """Starts the pieces of the lab, and closes them in the reverse order."""

    def __init__(self, tmp_path_factory, certificates):
        super().__init__()
        self._folders = tmp_path_factory
        self.certificates = certificates

    def folder(self, name):
        """Make a folder of the lab's own, which goes with it: spools are large, and disks small."""
        folder = self._folders.mktemp(name)
        self.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _keep(self, piece):
        if hasattr(piece, "report"):
            _reporters.append(piece)
            self.callback(_reporters.remove, piece)
        self.callback(piece.close)
        return piece

    def relay(self, config=None, start=True, patient=False, **options):
        """Make a relay of lab.relay, started unless told otherwise.

        It is in a hurry with hosts that fail, unless it is to be as patient as by default.
        """
        config = config or Config()
        if not patient:
            config.hurried()
        relay = self._keep(Relay(self.folder("relay"), config, **options))
        return relay.start() if start else relay

    def sink(self, *rules, **behaviour):
        """Start a receiver of lab.sink."""
        return self._keep(Sink(*rules, **behaviour))

    def own_sink(self, *words, **options):
        """Start a receiver of lab.own_sink: the program's."""
        return self._keep(OwnSink(self.folder("sink"), *words, **options))

    def script(self, *scripts, **options):
        """Start a server of lab.scripted."""
        return self._keep(ScriptedServer(*scripts, **options))

    def nsd(self, zones, **options):
        """Start a name server of lab.dns."""
        return self._keep(Nsd(self.folder("nsd"), zones, **options)).start()

    def prometheus(self, target, rules):
        """Start a Prometheus that fetches from this port, or skip the test."""
        return self._keep(Prometheus(self.folder("prometheus"), target, rules)).start()

    def browser(self):
        """Start a browser, or skip the test."""
        return self._keep(Browser(self.folder("browser"))).start()

    def dovecot(self, users, **options):
        """Start a Dovecot of lab.dovecot, or skip the test."""
        folder = self.enter_context(open_folder("sluice-dovecot-"))
        return self._keep(Dovecot(folder, users, **options)).start()

    def postfix(self, next_hop=None, settings=None, **options):
        """Start a Postfix of lab.postfix, or skip the test."""
        folder = self.enter_context(open_folder("sluice-postfix-"))
        return self._keep(Postfix(folder, next_hop, settings, **options)).start()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A certificate authority for the whole run."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def lab(tmp_path_factory, certificates):
    """A lab for one test."""
    with Lab(tmp_path_factory, certificates) as one:
        yield one


@pytest.fixture(scope="module")
def module_lab(tmp_path_factory, certificates):
    """A lab for all tests of a file."""
    with Lab(tmp_path_factory, certificates) as one:
        yield one


def pytest_collection_modifyitems(config, items):
    """Leave out all but one part of the tests, where SLUICE_PART says which of how many is wanted (0/3): chosen by their names."""
    part = os.environ.get("SLUICE_PART")
    if part is None:
        return
    number, parts = map(int, part.split("/"))
    wanted = [item for item in items if zlib.crc32(item.nodeid.split("@")[0].encode()) % parts == number]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(wanted)])
    items[:] = wanted


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Show the logs of what still runs when a test fails."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for piece in _reporters:
            with contextlib.suppress(OSError):
                report.sections.append(("lab", piece.report()))


def _too_long(*_):
    raise AssertionError(f"the test took more than {SECONDS_A_TEST} seconds")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Fail a test that hangs. The mark "seconds" gives a test another limit."""
    mark = item.get_closest_marker("seconds")
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(mark.args[0] if mark else SECONDS_A_TEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
