# SPDX-License-Identifier: ISC
"""Completion in bash and zsh, held against what --help says."""

import os
import re
import shutil
import subprocess

import pytest

from lab.config import Config
from lab.net import wait_until
from lab.relay import REPOSITORY, binary
from lab.sink import Rule

BASH = """
source "$COMPLETION"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_sluice
printf '%s\\n' "${COMPREPLY[@]}"
"""

# What the shell's own machinery would call is made to print what it is given.
ZSH = """
compadd() { shift; print -l -- "$@" }
_files() { print -- FILES }
words=("$@") CURRENT=$#
source "$COMPLETION"
"""


def complete(shell, relay, *words):
    """Return what is offered for these words, of which the last is being typed."""
    folder = os.path.join(relay.folder, "bin")
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(folder, "sluice")):
        os.symlink(binary(), os.path.join(folder, "sluice"))
    script, name = {"bash": (BASH, "sluice.bash"), "zsh": (ZSH, "_sluice")}[shell]
    environment = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SLUICE_CONF": relay.config_path,
        "COMPLETION": os.path.join(REPOSITORY, "etc/completion", name),
    }
    options = ["--norc"] if shell == "bash" else ["-f"]
    done = subprocess.run(
        [shell, *options, "-c", script, shell, "sluice", *words],
        env=environment, cwd=relay.folder, capture_output=True, text=True, timeout=60, check=False,
    )
    assert not done.stderr, done.stderr
    word = words[-1]
    return {line for line in done.stdout.splitlines() if line.startswith(word)}


def text_of(*words):
    """Return what the program prints."""
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.fixture(name="relay", scope="module")
def fixture_relay(module_lab):
    """A relay with a message in its queue, and one on hold."""
    sink = module_lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    queue = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
    relay = module_lab.relay(Config(queue=queue).route_all_to(sink.port))
    relay.send()
    relay.send()
    relay.wait_event("deferred", count=2)
    relay.ids = [line.split()[0] for line in relay.command("queue", "list").stdout.splitlines()[:2]]
    wait_until(lambda: relay.command("queue", "hold", relay.ids[0]).stdout.startswith("1 "), what="it to be held")
    relay.site = f"[127.0.0.1]:{sink.port}"
    return relay


@pytest.mark.parametrize(
    "shell",
    ["bash", pytest.param("zsh", marks=pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh"))],
)
def test_what_help_says_is_completed(relay, shell):
    def offered(*words):
        return complete(shell, relay, *words)

    commands = set(re.findall(r"(?m)^  ([a-z][a-z-]*) ", text_of("--help")))
    assert len(commands) > 15 and offered("") >= commands | {"--help", "--version"}
    for command in sorted(commands):
        options = set(re.findall(r"--[a-z][a-z-]+", text_of(command, "--help")))
        assert offered(command, "--") == options | {"--config", "--help"}, command
    assert "--version" in text_of("--help")
    named = re.search(r"(?m)^  queue +(\S+)$", text_of("--help"))[1]
    assert set(named.split("|")) == offered("queue", "")
    verbs = {"list", "show", "flush", "hold", "release", "requeue", "delete", "bounce", "check"}
    assert offered("queue", "") == verbs and offered("queue", "re") == {"release", "requeue"}
    assert offered("dest", "") == {"list", "show", "suspend", "resume", "reset"}
    assert offered("queue", "list", "--queue", "") == {"incoming", "active", "deferred", "hold"}
    assert offered("shape", "m") == {"maildrop"}
    assert offered("queue", "list", "--site", "") == offered("dest", "show", "") == {relay.site}
    assert offered("explain", "") == {relay.site, *relay.ids}
    assert offered("trace", "") == set(relay.ids)
    assert offered("queue", "delete", "") == set(relay.ids)
    assert offered("queue", "release", "") == {relay.ids[0]}
    assert "queue.minimal_backoff_time" in offered("config", "queue.")


def test_help_and_the_manual_name_the_same_options():
    told = set()
    for name in ("sluice.8", "sluice-sim.5"):
        with open(os.path.join(REPOSITORY, "etc", name), encoding="utf-8") as page:
            told |= set(re.findall(r"-([a-z][a-z-]+)", page.read()))
    for command in re.findall(r"(?m)^  ([a-z][a-z-]*) ", text_of("--help")):
        options = set(re.findall(r"--([a-z][a-z-]+)", text_of(command, "--help")))
        assert options <= told | {"help", "config"}, command
