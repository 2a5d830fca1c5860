# SPDX-License-Identifier: ISC
"""A sluice that is built without its cluster: one machine, and no library for more."""

import os
import subprocess

import pytest

from lab.config import Config
from lab.relay import REPOSITORY

ABSENT = "this sluice was built without its cluster"

ALONE = os.path.join(REPOSITORY, "build", "plain-alone", "sluice")

pytestmark = [pytest.mark.long, pytest.mark.plain_only,
              pytest.mark.skipif("SLUICE_LONG" not in os.environ, reason="it is built in make check-long")]


@pytest.fixture
def alone():
    assert os.path.exists(ALONE), "make CLUSTER=no comes first"
    return ALONE


def _run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_says_so_and_needs_none_of_these_libraries(alone):
    assert _run(alone, "--version").stdout.endswith(", without its cluster\n")
    libraries = _run("readelf", "-d", alone).stdout
    assert "libcares" in libraries and "hiredis" not in libraries and "nats" not in libraries


@pytest.mark.parametrize("setting", ['redis = "127.0.0.1:6379"', 'nats = "127.0.0.1:4222"', "replicate = async"])
def test_a_configuration_with_other_machines_is_a_fault(alone, tmp_path, setting):
    conf = tmp_path / "sluice.conf"
    conf.write_text(f'hostname = "a.test"\nlistener "smtp" {{ address = {{ "127.0.0.1:2525" }} }}\ncluster {{\n  {setting}\n}}\n')
    checked = _run(alone, "check", "-c", conf)
    assert checked.returncode == 1
    assert checked.stdout + checked.stderr == f"{conf}:4: cluster: {setting.split()[0]}: {ABSENT}\n"


def test_a_scenario_with_nodes_is_a_fault_and_one_without_runs(alone):
    scenarios = os.path.join(REPOSITORY, "tests", "sim")
    many = _run(alone, "sim", f"{scenarios}/nodes.conf")
    assert many.returncode == 2 and f": nodes: {ABSENT}\n" in many.stderr + many.stdout
    assert _run(alone, "sim", f"{scenarios}/five-connections.conf").returncode == 0


def test_mail_goes_through_and_orders_to_nodes_are_refused(alone, lab, monkeypatch):
    monkeypatch.setenv("SLUICE_BIN", alone)
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.send()
    relay.wait_event("sent")
    for order in (["node", "list"], ["node", "drain"]):
        refused = relay.command(*order)
        assert refused.returncode != 0 and ABSENT in refused.stderr
    refused = relay.command("dest", "suspend", "dest.test", "--cluster")
    assert refused.returncode != 0 and f"--cluster: {ABSENT}" in refused.stderr
