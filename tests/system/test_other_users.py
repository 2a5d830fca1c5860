# SPDX-License-Identifier: ISC
"""What users may do who can read neither the keys nor the tables of the relay."""

import os
import pwd
import shutil
import subprocess

import pytest

from lab.config import Config
from lab.net import open_folder
from lab.relay import Relay, binary

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def relay(lab):
    """A relay of the user daemon, whose key root only can read, with a program that all can execute."""
    path = lab.enter_context(open_folder("sluice-users-"))
    certificate, key = lab.certificates.host("relay.test")
    for name, source in (("cert.pem", certificate), ("key.pem", key), ("sluice", binary())):
        shutil.copy(source, os.path.join(path, name))
    with open(os.path.join(path, "aliases"), "w", encoding="ascii") as stream:
        stream.write("list@relay.test: to@dest.test\n")
    daemon = pwd.getpwnam("daemon")
    os.chmod(os.path.join(path, "key.pem"), 0o600)
    os.chmod(os.path.join(path, "aliases"), 0o640)
    os.chown(os.path.join(path, "aliases"), 0, daemon.pw_gid)
    sink = lab.sink()
    config = Config(settings={"user": "daemon", "log": "stderr", "aliases": [os.path.join(path, "aliases")]})
    config.route_all_to(sink.port)
    config.listeners["smtp"] = {"tls": "required", "certificate": f"{path}/cert.pem", "key": f"{path}/key.pem"}
    one = Relay(path, config)
    one.log_path = one.stderr_path
    one.sluice = os.path.join(path, "sluice")
    lab.callback(one.close)
    return one.start()


def run_as(user, relay, *words, text=None):
    entry = pwd.getpwnam(user)
    command = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups",
               relay.sluice, *words, "-c", relay.config_path]
    # A sanitizer's list of suppressions may lie where only root can read it.
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False,
                          env={**os.environ, "TSAN_OPTIONS": ""})


@pytest.mark.parametrize("words", [("queue", "list"), ("stats",), ("shape",), ("config", "hostname"),
                                   ("queue", "flush", "--all"), ("dest",)])
def test_only_serve_check_and_reload_read_keys(relay, words):
    done = run_as("daemon", relay, *words)
    assert (done.returncode, done.stderr) == (0, "")


def test_who_can_read_no_key_leaves_mail(relay):
    done = run_as("nobody", relay, "sendmail", "list@relay.test", text="Subject: hello\n\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert relay.wait_event("queued", user="nobody")


@pytest.mark.parametrize("words", [("check",), ("reload",)])
def test_check_and_reload_say_that_a_key_can_not_be_read(relay, words):
    done = run_as("daemon", relay, *words)
    assert done.returncode == 1 and "key.pem: Permission denied" in done.stderr
    assert not relay.events("reload")


def test_a_route_is_told_to_who_can_read_the_tables(relay):
    done = run_as("daemon", relay, "route", "list@relay.test")
    assert done.returncode == 0 and "to@dest.test" in done.stdout
    assert "aliases" in run_as("nobody", relay, "route", "list@relay.test").stderr


def test_who_can_not_read_the_queue_is_told_so(relay):
    """A machine alone heard of another node, and that a message was not there."""
    relay.stop()
    held = run_as("nobody", relay, "queue", "hold", "--all")
    assert held.returncode == 75 and "node: Permission denied" in held.stderr and "another node" not in held.stderr
    traced = run_as("nobody", relay, "trace", "to@dest.test", "--log", "/dev/null")
    assert traced.returncode == 1 and "nor in the queue, which can't be read" in traced.stderr
