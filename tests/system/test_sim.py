# SPDX-License-Identifier: ISC
"""sluice sim: what it takes, what it prints, and how it ends."""

import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import pytest

from lab.config import Config
from lab.relay import binary

pytestmark = pytest.mark.one_thread

DONE, USAGE = 0, 2
SCENARIOS = pathlib.Path(__file__).resolve().parent.parent / "sim"
ROWS = {"nodes": ("--row", "3"), "house": ("--row", "a day")}  # of those that take minutes; all others run whole
SMALL = """
simulation { binding = "both"  retries = false }
transport "smtp" { destination_recipient_limit = 2 }
arrival "list" { recipients = {"200"}  domains = {"dest.test"} }
site "dest" { domains = {"dest.test"}  mx = {"10 mx.dest.test"} }
host "mx.dest.test" { recipient = 1s  connection_limit = 5 }
"""


def sim(*words):
    """Run sluice sim."""
    return subprocess.run([binary(), "sim", *map(str, words)], capture_output=True, text=True,
                          timeout=280, check=False)


@pytest.fixture(name="small")
def fixture_small(tmp_path):
    """Return the path of a small scenario."""
    path = tmp_path / "small.conf"
    path.write_text(SMALL)
    return path


def objects(*words):
    """Return what --json says."""
    done = sim(*words, "--json")
    assert done.returncode == DONE, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=[pytest.mark.plain_only] * (path.stem in ROWS))
                                  for path in sorted(SCENARIOS.glob("*.conf"))])
def test_a_scenario_of_the_tree_runs_and_breaks_no_rule(path):
    done = sim(path, *ROWS.get(path.stem, ()))
    assert done.returncode == DONE, done.stdout + done.stderr
    assert "FAULTS" not in done.stdout
    assert done.stderr == ""


def test_the_report_tells_of_both_bindings(small):
    done = sim(small)
    assert done.returncode == DONE, done.stderr
    early, late = done.stdout.split("late binding")
    assert re.search(r"deferred +[1-9]\d* recipients", early)
    assert re.search(r"deferred +0 recipients", late)
    assert re.search(r"recipients +200: 200 delivered, 0 failed, 0 in the queue", late)


def test_json_is_a_series_and_sums(small):
    said = objects(small)
    late = [one for one in said if one["binding"] == "late"]
    samples = [one for one in late if one["type"] == "sample"]
    assert [one["t"] for one in samples] == sorted(one["t"] for one in samples)
    assert max(one["busy"] for one in samples) == 5
    assert samples[0]["queue"] > samples[-1]["queue"]
    (total,) = [one for one in late if one["type"] == "summary"]
    assert (total["delivered"], total["deferred"], total["faults"]) == (200, 0, 0)
    (total,) = [one for one in said if one["type"] == "summary" and one["binding"] == "early"]
    assert total["deferrals"] == {"too many connections": total["deferred"]}


def test_the_same_seed_says_the_same_and_another_does_not(small):
    first, again, other = (sim(small, "--json", "--seed", seed).stdout for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_the_picture_is_one(small, tmp_path):
    picture = tmp_path / "small.svg"
    assert sim(small, "--plot", picture).returncode == DONE
    tree = xml.etree.ElementTree.parse(picture)
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"window", "busy connections", "entries waiting", "smtp mx.dest.test"} <= set(texts)
    assert len(list(tree.iter("{http://www.w3.org/2000/svg}path"))) > 20


def test_a_picture_of_flows_has_groups_sources_and_paces(tmp_path):
    picture = tmp_path / "house.svg"
    path = SCENARIOS / "house-day.conf"
    assert sim(path, "--row", "as it is", "--plot", picture).returncode == DONE
    tree = xml.etree.ElementTree.parse(picture)
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"as it is: 23063 recipients of 41 flows, 1.5 days", "shop, median", "stolen, median", "a", "b", "a shut", "flood", "block"} <= set(texts)
    assert sum(text.startswith("seconds until delivered, of what came in ") for text in texts) == 3


def _periods(report):
    """Return (delivered, in queue, median, 95 %, 99 %, longest) by row, period and flows."""
    found, row = {}, None
    for line in report.splitlines():
        row = line.split(":")[0] if line.endswith("of what came in a period") else row if line else None
        words = line.split()
        if row and line.startswith("  ") and len(words) == 8 and words[0] != "period":
            found[row, words[0], words[1]] = tuple(map(float, words[2:]))
    return found


@pytest.mark.long
@pytest.mark.plain_only
@pytest.mark.seconds(1500)
@pytest.mark.skipif("SLUICE_LONG" not in os.environ, reason="a month takes minutes; make check has the day of test_house.c")
def test_a_month_of_a_mailing_house():
    """Whoever behaves waits neither for the stolen login nor for the receiver that blocks an address; what it would be without, test_house.c holds of a day."""
    run = subprocess.run([binary(), "sim", SCENARIOS / "house.conf", "--row", "as it is"], capture_output=True, text=True, timeout=1400, check=False)
    assert run.returncode == DONE, run
    found = _periods(run.stdout)
    for flows in ("shop", "agency"):
        assert found["as it is", "flood", flows][3] < 2 and found["as it is", "block", flows][3] < 2, found
    assert found["as it is", "flood", "stolen"][3] > 300, "the control: it waits for itself"


def test_the_report_shows_the_rates_that_were_kept():
    report = sim(SCENARIOS / "rates.conf").stdout
    for name, rate, gap in (("tens", 10.0, 0.1), ("fraction", 0.4, 2.5), ("pause", 0.417, 2.4)):
        found = re.search(rf" ([\d.]+) +([\d.]+)  {name} mx\.{name}\.test", report)
        assert float(found[1]) == pytest.approx(rate, rel=0.01)
        assert float(found[2]) >= gap
    sites = {one["site"]: one for one in objects(SCENARIOS / "rates.conf") if one["type"] == "site"}
    assert sites["minute mx.minute.test"]["begun"] == 20
    assert sites["minute mx.minute.test"]["gap_least"] >= 60


def test_the_report_shows_how_much_was_in_memory():
    report = sim(SCENARIOS / "recipient-limits.conf").stdout
    found = re.search(r"in memory +(\d+) messages and (\d+) recipients at most", report)
    assert int(found[1]) <= 50
    assert 1000 <= int(found[2]) <= 1700


def test_a_picture_is_of_one_row(tmp_path):
    path, picture = SCENARIOS / "too-many.conf", tmp_path / "row.svg"
    assert sim(path, "--plot", picture).returncode == USAGE
    assert sim(path, "--plot", picture, "--row", "1/N").returncode == DONE
    assert "1/N, late binding" in picture.read_text()
    assert sim(path, "--row", "1/M").returncode == USAGE


def test_faults_of_a_scenario_have_file_and_line(small):
    small.write_text(SMALL + "\nhost \"other\" {\n\tconnect = soon\n}\n")
    done = sim(small)
    assert done.returncode == USAGE
    assert done.stdout == ""
    assert f"{small}:9: connect must be a duration" in done.stderr
    done = sim(small.with_name("nothing.conf"))
    assert done.returncode == USAGE
    assert "nothing.conf:1: can't be read" in done.stderr


def test_a_random_scenario_can_be_shown_and_run_as_a_file(tmp_path):
    shown = sim("--random", "--seed", 9, "--show")
    assert shown.returncode == DONE
    path = tmp_path / "nine.conf"
    path.write_text(shown.stdout)
    assert objects(path, "--seed", 9) == objects("--random", "--seed", 9)


def test_wrong_usage_is_said():
    assert sim("--help").returncode == DONE
    for words in ([], ["a", "b"], ["--random", "a"], ["--seed", "x", "a"], ["--show", "a"]):
        done = sim(*words)
        assert done.returncode == USAGE
        assert "usage: sluice sim" in done.stderr


def test_the_log_of_a_relay_is_a_trace(lab, tmp_path):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port), log_format="json")
    for _ in range(3):
        relay.send()
    sink.wait_messages(3)
    relay.wait_event("done", count=3)
    relay.stop()
    path = tmp_path / "trace.conf"
    path.write_text(f"""
arrival "yesterday" {{ trace = "{relay.log_path}" }}
site "all" {{ domains = {{"*"}}  mx = {{"10 anywhere"}} }}
host "anywhere" {{ }}
""")
    done = sim(path)
    assert done.returncode == DONE, done.stderr
    assert "messages       3: 3 done" in done.stdout
