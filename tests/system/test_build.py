# SPDX-License-Identifier: ISC
"""How the program is built: what makes its faults harder to use, and whose flags count."""

import os
import platform
import re
import subprocess

import pytest

from lab.relay import REPOSITORY, binary

pytestmark = pytest.mark.plain_only


def _readelf(*options):
    return subprocess.run(["readelf", "-W", *options, binary()], capture_output=True, text=True, check=True).stdout


def _commands(*settings, environment=None):
    """Return what make would run, were nothing built."""
    done = subprocess.run(["make", "-nB", "sluice", *settings], cwd=REPOSITORY, text=True, capture_output=True,
                          check=True, env=os.environ | (environment or {}))
    lines = [line for line in done.stdout.splitlines() if re.match(r"\S*cc ", line)]
    compiling = [line for line in lines if " -c " in line]
    linking = [line for line in lines if " -c " not in line]
    assert compiling and len(linking) == 1
    return compiling, linking[0]


def test_the_program_lies_anywhere_in_memory_and_its_tables_are_read_only():
    assert re.search(r"Type:\s+DYN \(Position-Independent Executable", _readelf("-h"))
    dynamic, segments = _readelf("-d"), _readelf("-l")
    assert "BIND_NOW" in dynamic and "NOW PIE" in dynamic
    assert "TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK\s.*\sRW\s", segments)


def test_stacks_and_copies_are_watched():
    symbols = _readelf("--dyn-syms")
    assert "__stack_chk_fail" in symbols
    assert len(set(re.findall(r"__\w+_chk\b", symbols))) > 5


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines have another flag")
def test_jumps_lead_only_to_where_they_may():
    """The mark of the whole program is there only where the C library's start files have it too."""
    compiling, _ = _commands()
    assert all(" -fcf-protection " in line for line in compiling)


@pytest.mark.parametrize("flag", ["-D_FORTIFY_SOURCE=3", "-fstack-protector-strong", "-fstack-clash-protection", "-fPIE"])
def test_every_file_is_compiled_that_way(flag):
    compiling, _ = _commands()
    assert all(f" {flag} " in line for line in compiling)


@pytest.mark.parametrize("by_environment", [False, True])
def test_the_flags_of_a_package_are_honoured(by_environment):
    flags = {"CFLAGS": "-O1 -DOF_A_PACKAGE", "CPPFLAGS": "-D_FORTIFY_SOURCE=2", "LDFLAGS": "-Wl,--as-needed"}
    settings = [] if by_environment else [f"{name}={value}" for name, value in flags.items()]
    compiling, linking = _commands(*settings, environment=flags if by_environment else None)
    for line in compiling:
        assert " -O1 -DOF_A_PACKAGE " in line and " -D_FORTIFY_SOURCE=2 " in line
        assert "_FORTIFY_SOURCE=3" not in line and " -fstack-protector-strong " in line
    assert " -Wl,--as-needed " in linking and "-Wl,-z,relro" in linking


def test_the_unit_starts_it_again_whatever_happens():
    with open(os.path.join(REPOSITORY, "etc", "sluice.service"), encoding="ascii") as stream:
        unit = stream.read()
    assert "\nStartLimitIntervalSec=0\n" in unit.split("[Service]")[0]
    assert "\nRestart=always\n" in unit
