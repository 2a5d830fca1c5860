# SPDX-License-Identifier: ISC
"""MTA-STS: policies fetched from a real HTTPS host, kept, enforced, tested; and hosts that are none."""

import itertools
import json
import pathlib
import re
import shutil
import socket
import tempfile
import time

import pytest

from lab.certs import Certificates
from lab.net import wait_until
from lab.policy_host import policy
from lab.sts_world import BAD, CLEAR, GOOD, HOLE, World

def test_an_enforced_policy_says_which_hosts_and_certificates_will_do(lab):
    world = World(lab, {
        "good": "MX 10 mx.good", "bad": "MX 10 mx2.bad", "clear": "MX 10 mx.clear; ^mx A " + CLEAR,
        "stray": "MX 10 mx2.stray; MX 20 mx.stray", "none": "MX 10 mx2.none", "weak": "MX 10 mx2.weak",
        "off": "MX 10 mx2.off",
    })
    enforce = {name: policy("enforce", f"mx.{name}.test") for name in ("good", "clear", "stray", "none")}
    world.policies.answers = {f"{name}.test": text for name, text in enforce.items()} | {
        "bad.test": policy("enforce", "*.bad.test"), "weak.test": policy("testing", "mx.weak.test"),
        "off.test": policy("none")}
    relay = world.relay
    world.send("good", "stray", "weak", "off", "bad", "clear", "none")
    for name in ("good", "stray", "weak", "off"):
        world.became("sent", name)
    assert relay.wait_event("tls", site=re.compile("mx.good.test"))["verified"] == "mta-sts"
    assert {one.recipients[0] for one in world.sinks[GOOD].messages} == {"to@good.test", "to@stray.test"}
    assert {one.recipients[0] for one in world.sinks[BAD].messages} == {"to@weak.test", "to@off.test"}
    bad = world.became("deferred", "bad")
    assert bad["dsn"] == "4.7.5" and "for other.test, not for mx2.bad.test, as MTA-STS wants it" in bad["reply"]
    assert world.became("deferred", "clear")["dsn"] == "4.7.4" and not world.sinks[CLEAR].messages
    none = world.became("deferred", "none")
    assert none["dsn"] == "4.7.0" and "the MTA-STS policy of none.test has none of its mail hosts" in none["reply"]
    # It is on its way back to the queue, for a moment.
    wait_until(lambda: "MTA-STS policy of none.test" in relay.command("explain", "none.test").stdout, 60, "the queue to have it")
    tested = relay.wait_event("tls", reason=re.compile("MTA-STS, which is only tested"))
    assert "policy does not have it" in tested["reason"] and world.metric("mta_sts_testing_failures") >= 1
    assert world.metric("mta_sts_policies") == 7
    assert relay.wait_event("mta_sts", domain="good.test")["mode"] == "enforce"
    _tell(world)
    _keep_over_restarts(world)


def test_authorities_in_a_folder_vouch_for_hosts_of_policies(lab):
    folder = lab.folder("authorities")
    (folder / "README").write_text("no certificate\n", encoding="utf-8")
    (folder / "ours.pem").write_bytes(pathlib.Path(lab.certificates.ca).read_bytes())
    world = World(lab, {"good": "MX 10 mx.good", "late": "MX 10 mx.late"}, ca=f'"{folder}"')
    world.policies.answers = {f"{name}.test": policy("enforce", f"mx.{name}.test") for name in ("good", "late")}
    world.send("good")
    world.became("sent", "good")
    assert world.relay.wait_event("mta_sts", domain="good.test")["mode"] == "enforce"
    (folder / "ours.pem").unlink()
    world.send("late")  # nobody is believed any more
    assert world.relay.wait_event("mta_sts", domain="late.test")["result"] == "fetch-error"


def test_mail_for_a_relay_of_the_same_name_takes_none_past_the_policy(lab):
    """MTA-STS says nothing of relays, and what is known of them is not known of the domain."""
    world = World(lab, {"bad": "MX 10 mx2.bad"}, extra='route "corp.test" { relay = { "bad.test" } }\n')
    world.policies.answers = {"bad.test": policy("enforce", "*.bad.test")}
    world.relay.send(recipients=["to@corp.test", "to@bad.test"])
    world.became("sent", "corp")
    assert world.became("deferred", "bad")["dsn"] == "4.7.5"
    world.relay.send(recipients=["late@bad.test"])
    assert world.relay.wait_event("deferred", 60, to="late@bad.test")["dsn"] == "4.7.5"
    assert [one.recipients for one in world.sinks[BAD].messages] == [["to@corp.test"]]


def test_a_domain_that_is_suspended_while_its_policy_is_fetched_gets_no_mail(lab):
    world = World(lab, {"hole": "MX 10 mx.hole; ^mta-sts A " + HOLE})
    silent = lab.enter_context(socket.create_server((HOLE, world.policies.port)))
    world.send("hole")
    fetching, _ = silent.accept()
    assert world.relay.command("dest", "suspend", "hole.test").returncode == 0
    fetching.close()
    assert "the domain is suspended" in world.became("deferred", "hole")["reply"]
    assert not world.relay.events("sent")


def test_hosts_of_policies_that_do_not_answer_keep_no_other_policy_from_being_known(lab):
    """Anybody can have any number of domains whose records promise one."""
    holes = [f"hole{number}" for number in range(45)]
    world = World(lab, {name: "MX 10 mx." + name + "; ^mta-sts A " + HOLE for name in holes} | {"bad": "MX 10 mx2.bad"},
                  mta_sts_timeout="60s")
    world.policies.answers = {"bad.test": policy("enforce", "*.bad.test")}
    silent = lab.enter_context(socket.create_server((HOLE, world.policies.port), backlog=100))
    world.send(*holes)
    for _ in range(20):
        lab.enter_context(silent.accept()[0])
    world.send("bad")
    assert world.relay.wait_event("mta_sts", 40, domain="bad.test")["result"] == "fetched"
    assert world.became("deferred", "bad")["dsn"] == "4.7.5"
    assert not world.sinks[BAD].messages


def test_a_policy_holds_for_domains_that_idna_refuses(lab):
    """The DNS has them, and so has the host of the policy: without it their mail would go in clear."""
    names = ["r3---sn", "xn--i-7iq"]
    world = World(lab, {name: f"MX 10 mx.{name}; ^mx A {CLEAR}" for name in names})
    world.policies.answers = {f"{name}.test": policy("enforce", f"mx.{name}.test") for name in names}
    world.send(*names)
    for name in names:
        assert world.became("deferred", name)["dsn"] == "4.7.4"
        world.relay.wait_event("mta_sts", domain=f"{name}.test")
    assert not world.sinks[CLEAR].messages


def _tell(world):
    told = world.relay.command("tls", "stray.test")
    assert told.returncode == 0 and re.search(r"mta-sts +enforce, id 1", told.stdout), told.stdout + told.stderr
    assert re.search(r"fetched 20.*, ends 20.*in 24 h|23 h", told.stdout)
    assert re.search(r"mx2.stray.test.*not in the MTA-STS policy\n +it would get no message", told.stdout)
    assert re.search(r"mx.stray.test.*, in the MTA-STS policy(.*\n)+.*sent under TLS, to whom", told.stdout)
    told = [json.loads(line) for line in world.relay.command("tls", "--json", "stray.test").stdout.splitlines()]
    outcomes = {line["host"]: (line["outcome"], line["reason"]) for line in told}
    assert outcomes["mx2.stray.test"] == ("deferred", "it is not in the MTA-STS policy") and outcomes["mx.stray.test"][0] == "sent"
    told = world.relay.command("tls", "--json", "bad.test")
    line = json.loads(told.stdout)
    assert told.returncode == 1 and line["mta_sts"]["mode"] == "enforce" and line["mta_sts"]["mx"] == ["*.bad.test"]
    assert line["mta_sts_match"] and line["outcome"] == "deferred" and line["policy"] == "verify:mta-sts=mx2.bad.test"


def _keep_over_restarts(world):
    """Neither a restart nor a policy host that is gone lets mail go to a host with a wrong certificate."""
    world.policies.close()
    world.set_ids({})
    for end in (world.relay.stop, world.relay.kill):
        end()
        world.relay.start()
        sent, deferred = (len(world.relay.events(name, to=f"to@{domain}.test")) for name, domain in (("sent", "good"), ("deferred", "bad")))
        world.send("good", "bad")
        world.became("sent", "good", sent + 1)
        world.became("deferred", "bad", deferred + 1)
        wait_until(lambda: world.metric("mta_sts_policies") == 7, 60, "the policies kept")
    assert not [one for one in world.sinks[BAD].messages if one.recipients[0] == "to@bad.test"]


def _never_ending(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/plain")
    handler.end_headers()
    handler.wfile.write(b"version: STSv1\nmode: enforce\nmax_age: 86400\nmx: nobody.test\n")
    for _ in range(3000):  # five minutes; a test waits for one
        handler.wfile.write(b"\n")
        time.sleep(0.1)


def _gigabyte(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/plain")
    handler.send_header("Content-Length", str(1 << 30))
    handler.end_headers()
    for _ in range(1024):
        handler.wfile.write(b"mx: a.test\n" * (1 << 17))


HOSTILE = {
    # domain: what its policy host does, what the log calls it
    "gigabyte": (_gigabyte, "fetch-error", "larger than 64k"),
    "endless": (_never_ending, "fetch-error", "timed out|no answer in time"),
    "moved": (lambda handler: handler.give("", status=301, Location="https://policy.test/.well-known/mta-sts.txt"),
              "fetch-error", "it answers 301"),
    "foreign": (policy("enforce", "nobody.test"), "webpki-invalid", "subject name"),
    "html": (lambda handler: handler.give(policy("enforce", "nobody.test"), "text/html"), "policy-invalid", "its type is text/html"),
    "wordy": (lambda handler: handler.give(policy("enforce", "nobody.test"), "text/" + 60000 * "x"), "policy-invalid",
              "its type is text/x+, not text/plain"),
    "words": ("<html>", "policy-invalid", "no field"),
    "hole": (None, "fetch-error", "timed out|no answer in time"),
}


def test_policy_hosts_that_are_none_delay_mail_no_longer_than_set(lab):
    domains = {name: f"MX 10 mx2.{name}" for name in HOSTILE} | {
        "age": "MX 10 mx.age", "restless": "MX 10 mx2.restless"}
    domains["hole"] += "; ^mta-sts A " + HOLE
    world = World(lab, domains)
    silent = lab.enter_context(socket.create_server((HOLE, world.policies.port)))
    world.policies.answers = {f"{name}.test": answer for name, (answer, _, _) in HOSTILE.items()} | {
        "age.test": policy("enforce", "mx.age.test", max_age=10**12)}
    world.send(*HOSTILE, "age")
    for name, (_, result, reason) in HOSTILE.items():
        world.became("sent", name)
        event = world.relay.wait_event("mta_sts", domain=f"{name}.test")
        assert event["result"] == result and re.search(reason, event["reason"]), event
    assert world.relay.command("config", "-d", "mta_sts_timeout").stdout.split()[-1] in ("60s", "1m")
    silent.close()
    world.became("sent", "age")
    age = json.loads(world.relay.command("tls", "-n", "--json", "age.test").stdout)["mta_sts"]
    year = time.strptime(age["ends"], "%Y-%m-%dT%H:%M:%SZ").tm_year - time.strptime(age["fetched"], "%Y-%m-%dT%H:%M:%SZ").tm_year
    assert year == 1
    _not_asked_each_time(world)


def _not_asked_each_time(world):
    """An id that is another at each look is followed once in mta_sts_interval, 200 ms here."""
    world.policies.answers["restless.test"] = lambda handler: handler.send_error(503)
    began, numbers = time.monotonic(), itertools.count()
    while time.monotonic() - began < 1.5:
        world.set_ids({"restless": f"n{next(numbers)}"})
        world.send("restless")
    world.became("sent", "restless", len(world.relay.events("queued")) - 1)
    assert 1 <= world.asked("restless") <= (time.monotonic() - began) / 0.2 + 2


@pytest.mark.plain_only
def test_an_older_policy_holds_whatever_becomes_of_its_host(lab):
    world = World(lab, {name: f"MX 10 mx2.{name}" for name in HOSTILE} | {"brief": "MX 10 mx.brief"}, foreign=True)
    world.policies.answers = {f"{name}.test": policy("enforce", f"*.{name}.test") for name in HOSTILE} | {
        "brief.test": policy("enforce", "mx.brief.test", max_age=2)}
    world.send(*HOSTILE, "brief")
    for name in HOSTILE:
        assert "as MTA-STS wants it" in world.became("deferred", name)["reply"]
    silent = lab.enter_context(socket.create_server((HOLE, world.policies.port)))
    world.records["hole"] += "; ^mta-sts A " + HOLE
    world.policies.answers |= {f"{name}.test": answer for name, (answer, _, _) in HOSTILE.items()}
    world.trust(foreign=False)
    world.set_ids(dict.fromkeys(HOSTILE, "2") | {"brief": "1"})
    world.send("brief")
    for name, (_, result, _) in HOSTILE.items():
        event = world.relay.wait_event("mta_sts", 60, domain=f"{name}.test", id="2")
        assert event["result"] == result and event["mode"] == "enforce"
        world.became("deferred", name, len(world.relay.events("deferred", to=f"to@{name}.test")) + 2)
    assert not world.sinks[BAD].messages
    # And a new one counts as soon as it can be had.
    silent.close()
    world.trust(foreign=True)
    del world.records["hole"]
    world.records["hole"] = "MX 10 mx2.hole"
    world.policies.answers = {f"{name}.test": policy("none") for name in HOSTILE}
    world.set_ids(dict.fromkeys(HOSTILE, "3") | {"brief": "1"})
    world.send("brief")
    for name in HOSTILE:
        world.became("sent", name)
    # One that lasts two seconds has been fetched anew each time that mail came.
    world.became("sent", "brief", 3)
    assert world.asked("brief") >= 2


@pytest.mark.parametrize("max_age", [0, 1])
def test_a_policy_that_ends_before_its_next_look_is_fetched_again(lab, max_age):
    """Its record is known for an hour yet; without it mail would go to any host."""
    world = World(lab, {"brief": "MX 10 mx2.brief"}, mta_sts_interval="1h")
    world.policies.answers["brief.test"] = policy("enforce", "mx.brief.test", max_age=max_age)
    world.send("brief")
    world.relay.wait_events("mta_sts", 60, 2, result="fetched")
    world.became("deferred", "brief", 3)
    world.policies.answers["brief.test"] = lambda handler: handler.send_error(503)
    world.became("sent", "brief")
    # What keeps it from being fetched is remembered as ever.
    asked = world.asked("brief")
    world.relay.send(recipients=["late@brief.test"])
    world.relay.wait_event("sent", 60, to="late@brief.test")
    assert world.asked("brief") == asked


def test_what_a_domain_publishes_later_is_found(lab):
    """A look at a domain without a record, with one that is not new, or whose policy has no host yet, is not the last one."""
    nobody = "MX 10 mx2.{0}; ^mx2 A " + HOLE
    world = World(lab, {"same": "MX 10 mx2.same", "later": nobody.format("later"),
                        "unhosted": nobody.format("unhosted") + "; ^mta-sts TXT no"})
    world.policies.answers = {f"{name}.test": policy("enforce", f"*.{name}.test") for name in world.records}
    world.set_ids({"same": "1", "unhosted": "1"})
    world.send("same", "later", "unhosted")
    world.relay.wait_event("mta_sts", domain="unhosted.test", result="fetch-error")
    for name in world.records:
        world.became("deferred", name, 4)
    # Each attempt has found the record that is known.
    assert world.asked("same") == 1 and not world.relay.events("mta_sts", domain="later.test")
    world.policies.answers["same.test"] = policy("none")
    world.records["unhosted"] = nobody.format("unhosted")
    world.set_ids({"same": "2", "later": "1", "unhosted": "1"})
    world.became("sent", "same")
    for name in ("later", "unhosted"):
        world.relay.wait_event("mta_sts", domain=f"{name}.test", result="fetched")


def test_what_kept_a_policy_from_being_fetched_is_forgotten_at_a_reload(lab):
    """Mail would go past the policy for as long as the failure is remembered."""
    own = lab.enter_context(tempfile.TemporaryDirectory())
    authorities = shutil.copy(Certificates(own).ca, own + "/both.pem")
    world = World(lab, {"good": "MX 10 mx2.good"}, ca=f'"{authorities}"', mta_sts_interval="1d")
    world.policies.answers["good.test"] = policy("enforce", "mx.good.test")
    world.send("good")
    assert world.relay.wait_event("mta_sts")["result"] == "webpki-invalid"
    world.became("sent", "good")
    shutil.copy(lab.certificates.ca, authorities)
    assert world.relay.command("reload").returncode == 0
    world.relay.send(recipients=["late@good.test"])
    assert world.relay.wait_event("deferred", to="late@good.test")["dsn"] == "4.7.0"


def test_a_record_is_remembered_for_the_time_of_now(lab):
    world = World(lab, {"late": "MX 10 mx2.late"}, mta_sts_interval="1d")
    world.policies.answers["late.test"] = policy("enforce", "mx.late.test")
    world.set_ids({})
    world.send("late")
    world.became("sent", "late")
    world.set_ids({"late": "1"})
    world.relay.config.extra = world.relay.config.extra.replace("interval = 1d", "interval = 10ms")
    world.relay.write_config()
    assert world.relay.command("reload").returncode == 0
    world.send("late")
    world.relay.wait_event("mta_sts", domain="late.test", result="fetched")


def test_relays_and_those_who_have_it_off_ask_for_nothing(lab):
    world = World(lab, {"good": "MX 10 mx2.good"}, mta_sts="false")
    world.policies.answers["good.test"] = policy("enforce", "mx.good.test")
    world.send("good")
    world.became("sent", "good")
    world.relay.stop()
    world.config.extra = world.config.extra.replace("mta_sts = false", "mta_sts = true")
    world.config.routes["*"] = {"relay": ["good.test"]}
    relay = lab.relay(world.config)
    relay.send(recipients=["to@good.test"])
    relay.wait_event("sent")
    assert not world.policies.asked
