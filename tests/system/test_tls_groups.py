# SPDX-License-Identifier: ISC
"""Groups of the key exchange: ours as a server and as a client; hosts on which a large ClientHello comes to grief."""

import json
import ssl
import subprocess

import pytest

from lab.config import Config
from lab.narrow import SEGMENT, NarrowProxy
from lab.net import LOOPBACK, accepts, free_port, wait_until
from lab.proc import cpu_seconds, sanitized

HYBRID = "X25519MLKEM768"
LISTED = ("no group that OpenSSL here knows", "there already")


def _section(*groups):
    return "tls { groups = { %s } }\n" % ", ".join(f'"{group}"' for group in groups)


# --- As a server

@pytest.fixture(scope="module")
def listening(module_lab):
    """Relays with the default groups, and with such as an operator may name."""
    certificate, key = module_lab.certificates.host("relay.test")
    listeners = lambda: {"smtp": {"certificate": certificate, "key": key}}
    return {name: module_lab.relay(Config(listeners=listeners(), extra=extra))
            for name, extra in (("default", ""), ("ffdhe", _section("P-384", "ffdhe2048")))}


def _shakes(relay, group):
    """Whether openssl comes to an agreement with the relay, when it has this group alone."""
    done = subprocess.run(
        ["openssl", "s_client", "-starttls", "smtp", "-connect", f"{LOOPBACK}:{relay.port}", "-tls1_3", "-groups", group],
        input="QUIT\r\n", capture_output=True, text=True, check=False, timeout=60)
    said = done.stdout + done.stderr
    refused = "handshake failure" in said
    assert refused != (" Temp Key: " in said), said
    return not refused


def test_no_client_gets_a_group_that_is_not_named(listening):
    default, named = listening["default"], listening["ffdhe"]
    for group in ("X25519", "P-256", "P-384"):
        assert _shakes(default, group)
    for group in ("ffdhe8192", "ffdhe2048", "P-521"):
        assert not _shakes(default, group)
    assert _shakes(named, "ffdhe2048") and _shakes(named, "P-384")
    assert not _shakes(named, "X25519") and not _shakes(named, "ffdhe8192")
    assert [event["group"] for event in default.wait_events("tls", count=3)] == ["x25519", "secp256r1", "secp384r1"]
    assert {event["group"] for event in named.wait_events("tls", count=2)} == {"ffdhe2048", "secp384r1"}


@pytest.mark.skipif(sanitized(), reason="with a sanitizer processor time says little")
def test_a_client_with_the_dearest_group_alone_costs_little(listening):
    relay = listening["default"]
    before = cpu_seconds(relay)
    for _ in range(10):
        assert not _shakes(relay, "ffdhe8192")
    assert cpu_seconds(relay) - before < 0.5  # ten handshakes with it take more than a second


def test_groups_are_checked_and_reloaded(lab):
    certificate, key = lab.certificates.host("relay.test")
    relay = lab.relay(Config(listeners={"smtp": {"certificate": certificate, "key": key}}))
    config = relay.config
    assert _shakes(relay, "X25519")
    for groups in (("X25519", "X25518"), ("X25519", "P-256", "P-256")):
        config.extra = _section(*groups)
        relay.write_config()
        line = config.text().splitlines().index(config.extra.strip()) + 1
        for order in ("check", "reload"):
            done = relay.command(order)
            said = done.stdout + done.stderr
            assert done.returncode == 1 and f":{line}: " in said and any(one in said for one in LISTED), said
    assert _shakes(relay, "X25519")
    config.extra = _section("P-384")
    relay.write_config()
    assert relay.command("reload").returncode == 0
    assert _shakes(relay, "P-384") and not _shakes(relay, "X25519")


# --- As a client

def _server(lab, groups):
    """The port of a TLS server with these groups alone. It says nothing by itself."""
    certificate, key = lab.certificates.host("mx.test")
    port = free_port()
    process = subprocess.Popen(
        ["openssl", "s_server", "-accept", f"{LOOPBACK}:{port}", "-cert", certificate, "-key", key, "-quiet", "-tls1_3",
         "-groups", groups], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lab.callback(process.wait)
    lab.callback(process.kill)
    wait_until(lambda: accepts(port), what="the TLS server")
    return port


def _host(lab, groups):
    """A mail host whose TLS has these groups alone."""
    return lab.script([("send", b"220 host\r\n"), ("expect", "EHLO.*\r\n"), ("send", b"250-host\r\n250 STARTTLS\r\n"),
                       ("expect", "STARTTLS\r\n"), ("send", b"220 go\r\n"), ("bridge", _server(lab, groups))], timeout=60)


@pytest.mark.parametrize("groups, group", [
    ("ffdhe8192:ffdhe2048", None), ("P-521", None), ("P-384", "secp384r1"), ("X25519", "x25519")])
def test_no_host_gets_a_group_that_is_not_named(lab, groups, group):
    host = _host(lab, groups)
    config = Config(transports={"smtp": {"tls": "required"}})
    relay = lab.relay(config.route_all_to(host.port))
    relay.send()
    if group:
        assert relay.wait_event("tls", version="TLSv1.3")["group"] == group
    else:
        assert "handshake failure" in relay.wait_event("deferred", dsn="4.7.5")["reply"]
        assert not relay.events("tls", version="TLSv1.3")


# --- Hosts that choke

def _narrow(lab, room=SEGMENT, resets=False, context=None):
    """A sink behind a way on which more is lost, and the proxy that loses it."""
    sink = lab.sink(tls=context or lab.certificates.server_context("mx.test"))
    proxy = NarrowProxy(sink.port, room, resets)
    lab.callback(proxy.close)
    return sink, proxy


def _relay(lab, proxy, extra="", **settings):
    """One that sends each message over a connection of its own."""
    config = Config(extra=extra)
    config.transports["smtp"] = {"connection_max_messages": 1, "starttls_timeout": "3s", **settings}
    return lab.relay(config.route_all_to(proxy.port))


def _need_hybrid(lab):
    done = lab.relay(Config(extra=_section(HYBRID)), start=False).command("check")
    if done.returncode != 0:
        pytest.skip(f"OpenSSL before 3.5 has no {HYBRID}, and no other group makes a ClientHello large")


def _passes(relay, sink, hellos, proxy):
    """Send one more message; then so many ClientHellos have come, and nothing in the clear."""
    count = len(sink.messages) + 1
    relay.send()
    assert all(one.tls for one in sink.wait_messages(count, timeout=60))
    assert [size > SEGMENT for size in proxy.hellos] == hellos
    assert proxy.clear == 0


def _knows(relay, known):
    """Whether the relay says that the host gets a small ClientHello."""
    row = json.loads(relay.command("dest", "show", "--json").stdout)
    host = row.get("hosts", [row])[0]  # alone, once the idle site is forgotten
    assert ("small hello" in host["mode"]) == known and (host["classical_for"] > 86000) == known
    assert ("classical groups" in relay.command("dest", "show").stdout) == known


@pytest.mark.parametrize("resets", [False, True], ids=["hangs", "resets"])
@pytest.mark.parametrize("tls", ["opportunistic", "required"])
def test_a_host_that_chokes_on_a_hybrid_gets_classical_groups_for_a_day(lab, tls, resets):
    _need_hybrid(lab)
    sink, proxy = _narrow(lab, resets=resets)
    relay = _relay(lab, proxy, tls=tls)
    _passes(relay, sink, [True, False], proxy)
    assert relay.wait_event("tls", version="TLSv1.3")["group"] == "x25519"
    assert "after a ClientHello of 1" in relay.wait_event("host", mode="small hello")["reason"]
    _knows(relay, True)
    _passes(relay, sink, [True, False, False], proxy)
    relay.restart()
    _passes(relay, sink, [True, False, False, False], proxy)
    assert not relay.events("deferred")
    relay.command("dest", "reset", "--all")


def test_a_host_that_takes_a_hybrid_gets_it(lab):
    _need_hybrid(lab)
    sink, proxy = _narrow(lab, room=1 << 16)
    relay = _relay(lab, proxy)
    _passes(relay, sink, [True], proxy)
    assert relay.wait_event("tls", version="TLSv1.3")["group"] in ("x25519", HYBRID)
    _knows(relay, False)
    certificate, key = lab.certificates.host("relay.test")
    other = lab.relay(Config(listeners={"smtp": {"certificate": certificate, "key": key}}).route_all_to(sink.port))
    relay = lab.relay(Config().route_all_to(other.port))
    relay.send()
    assert relay.wait_event("tls")["group"] == other.wait_event("tls")["group"] == HYBRID


def test_a_host_gets_no_classical_groups_where_none_are_named(lab):
    _need_hybrid(lab)
    sink, proxy = _narrow(lab, resets=True)
    relay = _relay(lab, proxy, extra=_section(HYBRID), tls="required")
    relay.send()
    relay.wait_event("deferred", dsn="4.7.5")
    assert not sink.messages and min(proxy.hellos) > SEGMENT
    _knows(relay, False)


@pytest.mark.parametrize("resets", [False, True], ids=["hangs", "resets"])
def test_a_host_that_chokes_on_a_ticket_gets_none(lab, resets):
    """A ticket has the certificate of the client in it, and that of this one is large."""
    names = [f"relay-{number:03}.with-a-long-name.test" for number in range(80)]
    certificate, key = lab.certificates.host(*names)
    context = lab.certificates.server_context("mx.test")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(lab.certificates.ca)
    sink, proxy = _narrow(lab, resets=resets, context=context)
    relay = _relay(lab, proxy, _section("X25519"), client_certificate=certificate, client_key=key)
    _passes(relay, sink, [False], proxy)
    _knows(relay, False)
    _passes(relay, sink, [False, True, False], proxy)
    _knows(relay, True)
    _passes(relay, sink, [False, True, False, False], proxy)
    assert not relay.events("deferred") and not relay.events("tls", resumed="yes")


def test_a_host_that_breaks_whatever_comes_is_no_such_host(lab):
    sink, proxy = _narrow(lab, room=0, resets=True)
    relay = _relay(lab, proxy)
    relay.send()
    assert not sink.wait_messages(1)[0].tls
    assert proxy.clear == 1 and proxy.hellos[-1] < SEGMENT and len(proxy.hellos) <= 2
    _knows(relay, False)
    required = _relay(lab, proxy, tls="required")
    required.send()
    required.wait_event("deferred", dsn="4.7.5")
    assert len(sink.messages) == 1 and proxy.clear == 1
    _knows(required, False)


def test_what_sluice_tls_shows(lab):
    sink, proxy = _narrow(lab, resets=True)
    relay = _relay(lab, proxy, _section("P-384"), tls="required")
    show = lambda *words: relay.command("tls", *words, f"[{LOOPBACK}]:{proxy.port}").stdout
    assert "secp384r1" in show()
    assert json.loads(show("--json"))["group"] == "secp384r1"
    _need_hybrid(lab)
    relay.config.extra = ""
    relay.write_config()
    assert "x25519 (a large ClientHello was not answered)" in show()
    assert json.loads(show("--json"))["small_hello"]
    assert sink.messages == []
