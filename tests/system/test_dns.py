# SPDX-License-Identifier: ISC
"""Where mail goes by the records of a real name server."""

import contextlib
import socket
import threading
import time

import pytest

from lab.config import Config
from lab.net import free_port

A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"


class World:
    """A name server with one zone, dest.test, and hosts that all listen on one port."""

    def __init__(self, lab, zone, hosts=(A,), rules=None, **smtp):
        """The other keywords are settings of the transport."""
        self.lab = lab
        self.nsd = lab.nsd({"dest.test": zone})
        self.port = free_port()
        self.sinks = {}
        for host in hosts:
            self.open(host, *(rules or {}).get(host, ()))
        queue = {"minimal_backoff_time": "200ms", "maximal_backoff_time": "1s"}
        config = Config(queue=queue, transports={"smtp": {"port": self.port} | smtp})
        config.resolve_with(self.nsd)
        config.dns |= {"allow_loopback": True, "timeout": "3s", "tries": 1}
        # The bounces, which are not what is asked about here, must not need the name server.
        config.routes["sender.test"] = {"relay": [f"[{A}]:{lab.sink(address=A).port}"]}
        self.relay = lab.relay(config)

    def open(self, host, *rules):
        """Have somebody listen at this address."""
        self.sinks[host] = self.lab.sink(*rules, address=host, port=self.port)

    def count(self, host):
        """Return how many messages came to this address."""
        return len(self.sinks[host].messages)

    def send(self, *recipients, times=1):
        """Send so many messages to the recipients, on one connection."""
        with self.relay.client() as client:
            client.greet()
            for _ in range(times):
                client.send_mail("from@sender.test", recipients)

    def sends_until(self, condition):
        """Send, with pauses in which connections fall idle and close, until it is so."""
        for _ in range(40):
            before = len(self.relay.events("sent"))
            self.send("to@dest.test")
            self.relay.wait_event("sent", count=before + 1)
            if condition():
                return True
            time.sleep(0.25)
        return False

    def bounced(self, recipient, dsn):
        """Send, and check that it is bounced at once."""
        self.send(recipient)
        event = self.relay.wait_event("bounced", to=recipient)
        assert event["dsn"] == dsn, event
        assert not self.relay.events("deferred")
        assert not any(sink.sessions for sink in self.sinks.values())


HOSTS = f"\na A {A}\nb A {B}\nc A {C}"


def test_a_name_server_may_be_an_ipv4_address_in_the_disguise_of_ipv6(lab):
    """The library of the resolver takes no IPv6 address that ends as an IPv4 one: nobody was asked, and all mail waited."""
    world = World(lab, "@ MX 10 a" + HOSTS)
    world.relay.stop()
    world.relay.config.dns["server"] = [f"::ffff:{world.nsd.address}"]
    world.relay.write_config()
    world.relay.start()
    world.send("to@dest.test")
    world.sinks[A].wait_messages(1)


def test_the_most_preferred_host_gets_the_mail(lab):
    world = World(lab, "@ MX 20 b\n@ MX 10 a\n@ MX 30 c" + HOSTS, (A, B, C))
    world.send("to@dest.test", times=20)
    world.sinks[A].wait_messages(20)
    assert not world.sinks[B].sessions and not world.sinks[C].sessions


def test_the_next_host_gets_the_mail_when_the_best_is_down(lab):
    world = World(lab, "@ MX 10 a\n@ MX 20 b\n@ MX 30 c" + HOSTS, (B, C))
    world.send("to@dest.test", times=20)
    world.sinks[B].wait_messages(20)
    assert not world.sinks[C].sessions
    assert not world.relay.events("deferred")


def test_the_best_host_gets_the_mail_again_when_it_is_back(lab):
    world = World(lab, "@ MX 10 a\n@ MX 20 b" + HOSTS, (B,), connection_idle_timeout="100ms")
    world.send("to@dest.test")
    world.sinks[B].wait_messages(1)
    world.open(A)
    assert world.sends_until(lambda: world.count(A))


def test_hosts_of_equal_preference_share_the_mail(lab):
    world = World(lab, "@ MX 10 a\n@ MX 10 b" + HOSTS, (A, B), connection_max_messages=1)
    world.send("to@dest.test", times=40)
    world.relay.wait_event("sent", count=40)
    assert world.count(A) >= 5 and world.count(B) >= 5
    assert world.count(A) + world.count(B) == 40
    assert not world.relay.events("deferred")


def test_one_dead_host_of_two_defers_nothing(lab):
    world = World(lab, "@ MX 10 a\n@ MX 10 b" + HOSTS, (B,))
    world.send("to@dest.test", times=100)
    world.sinks[B].wait_messages(100)
    assert not world.relay.events("deferred")


def test_a_dead_address_of_a_host_defers_nothing(lab):
    world = World(lab, f"@ MX 10 m\nm A {A}\nm A {B}", (B,))
    world.send("to@dest.test", times=30)
    world.sinks[B].wait_messages(30)
    assert not world.relay.events("deferred")


def test_a_domain_without_an_mx_record_is_its_own_host(lab):
    world = World(lab, f"@ A {A}")
    world.send("to@dest.test")
    assert world.sinks[A].wait_messages(1)[0].recipients == ["to@dest.test"]


def test_a_domain_that_takes_no_mail_is_bounced_at_once(lab):
    World(lab, f"@ MX 0 .\n@ A {A}").bounced("to@dest.test", "5.1.10")


def test_a_domain_that_does_not_exist_is_bounced_at_once(lab):
    World(lab, f"@ A {A}").bounced("to@nowhere.dest.test", "5.1.2")


def test_a_domain_without_address_is_bounced_at_once(lab):
    World(lab, "@ TXT \"no address\"").bounced("to@dest.test", "5.4.4")


def test_a_domain_whose_hosts_have_no_address_is_bounced_at_once(lab):
    World(lab, "@ MX 10 missing\n@ MX 20 gone").bounced("to@dest.test", "5.4.4")


def test_mail_for_which_we_are_the_best_host_is_bounced_at_once(lab):
    World(lab, f"@ MX 10 relay.test.\n@ MX 20 b\nb A {B}", (B,)).bounced("to@dest.test", "5.4.6")


def test_only_hosts_better_than_ourselves_get_the_mail(lab):
    world = World(lab, "@ MX 10 a\n@ MX 20 relay.test.\n@ MX 30 c" + HOSTS, (C,))
    world.send("to@dest.test")
    world.relay.wait_event("deferred", dsn="4.4.1")
    world.open(A)
    world.sinks[A].wait_messages(1)
    assert not world.sinks[C].sessions


def test_an_alias_of_a_domain_leads_to_its_hosts(lab):
    world = World(lab, "other CNAME third\nthird CNAME real\nreal MX 10 a" + HOSTS)
    world.send("to@other.dest.test")
    assert world.sinks[A].wait_messages(1)[0].recipients == ["to@other.dest.test"]


def test_an_alias_as_mail_host_is_followed(lab):
    world = World(lab, "@ MX 10 m\nm CNAME a" + HOSTS)
    world.send("to@dest.test")
    world.sinks[A].wait_messages(1)


def test_an_alias_that_leads_to_itself_is_not_bounced(lab):
    world = World(lab, "one CNAME two\ntwo CNAME one" + HOSTS)
    world.send("to@one.dest.test")
    world.relay.wait_event("deferred", dsn="4.4.3")


def test_mail_waits_for_a_name_server_that_is_down(lab):
    world = World(lab, "@ MX 10 a" + HOSTS)
    world.nsd.stop()
    world.send("to@dest.test", times=5)
    world.relay.wait_event("deferred", count=5, dsn="4.4.3")
    world.nsd.start()
    world.sinks[A].wait_messages(5, 60)
    assert not world.relay.events("bounced")


def test_a_name_server_that_is_back_is_asked_before_the_backoff_time_is_over(lab):
    nsd = lab.nsd({"dest.test": "@ MX 10 a" + HOSTS})
    nsd.stop()
    port = free_port()
    sink = lab.sink(address=A, port=port)
    config = Config(transports={"smtp": {"port": port}}).resolve_with(nsd)
    config.dns |= {"allow_loopback": True, "timeout": "500ms", "tries": 1}
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.send_mail("from@sender.test", ["to@dest.test"])
    relay.wait_event("deferred", dsn="4.4.3")
    nsd.start()
    # minimal_backoff_time is five minutes, as by default.
    sink.wait_messages(1, 60)


def test_a_name_server_that_refuses_is_a_reason_to_wait(lab):
    world = World(lab, "@ MX 10 a" + HOSTS)
    world.send("to@elsewhere.test")
    world.relay.wait_event("deferred", dsn="4.4.3")


def test_domains_with_the_same_hosts_share_connections(lab):
    zone = "one MX 10 a\none MX 20 b\ntwo MX 5 a\ntwo MX 30 b" + HOSTS
    world = World(lab, zone, destination_concurrency_limit=1, initial_destination_concurrency=1)
    for _ in range(5):
        world.send("to@one.dest.test")
        world.send("to@two.dest.test")
    world.sinks[A].wait_messages(10)
    assert len(world.sinks[A].sessions) == 1
    assert len({event["site"] for event in world.relay.wait_events("sent", count=10)}) == 1


def test_recipients_of_two_domains_never_share_a_transaction(lab):
    world = World(lab, "one MX 10 a\ntwo MX 10 a" + HOSTS)
    world.send("x@one.dest.test", "x@two.dest.test", "y@one.dest.test")
    messages = world.sinks[A].wait_messages(2)
    assert sorted(one.recipients for one in messages) == [
        ["x@one.dest.test", "y@one.dest.test"], ["x@two.dest.test"],
    ]


def test_a_name_server_may_have_an_ipv6_address(lab):
    """A postman at [::1] carries to the name server what comes there."""
    nsd = lab.nsd({"dest.test": "@ MX 10 mx\nmx A 127.0.0.2\n"})
    sink = lab.sink(address=A)
    config = Config(transports={"smtp": {"port": sink.port}}).resolve_with(nsd)
    config.dns |= {"server": ["::1"], "allow_loopback": True}
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as postbox:
        postbox.bind(("::1", nsd.port))

        def carry():
            with contextlib.suppress(OSError):
                while True:
                    question, asker = postbox.recvfrom(65535)
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as postman:
                        postman.sendto(question, (nsd.address, nsd.port))
                        postbox.sendto(postman.recv(65535), asker)

        threading.Thread(target=carry, daemon=True).start()
        relay = lab.relay(config)
        relay.send()
        sink.wait_messages(1)
        relay.stop()


def test_a_changed_record_is_seen_when_the_old_one_has_expired(lab):
    world = World(lab, "@ 1 MX 10 a" + HOSTS, (A, B), connection_idle_timeout="100ms")
    world.send("to@dest.test")
    world.sinks[A].wait_messages(1)
    world.nsd.set_zone("dest.test", "@ 1 MX 10 b" + HOSTS)
    assert world.sends_until(lambda: world.count(B))


@pytest.mark.parametrize("address", ["127.0.0.1", "IPv6:::1", "0.0.0.0", "127.1"])
def test_an_address_of_this_machine_is_no_destination(lab, address):
    relay = lab.relay(Config())
    with relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<from@sender.test>")
        client.send(f"RCPT TO:<to@[{address}]>")
        if client.read_reply().code != 250:
            return
        client.command("DATA", 354)
        client.send(b"\r\n.\r\n")
        client.expect(250)
    event = relay.wait_event("bounced")
    assert event["dsn"] in ("5.4.6", "5.1.2", "5.4.4")


@pytest.mark.parametrize("address", ["A 10.0.0.1", "A 192.168.0.1", "A 203.0.113.1", "AAAA fd00::1",
                                     "AAAA 64:ff9b::10.0.0.1", "AAAA 2002:a00:1::1"])
def test_mail_hosts_in_private_networks_are_not_used(lab, address):
    nsd = lab.nsd({"dest.test": f"@ MX 10 a\na {address}"})
    config = Config().resolve_with(nsd)
    config.dns["allow_private"] = ["10.9.0.0/16"]
    relay = lab.relay(config)
    relay.send()
    event = relay.wait_event("bounced", dsn="5.4.4")
    assert "private addresses" in event["reply"] and event["relay"] == "none"


def test_mail_hosts_with_addresses_of_this_machine_are_not_used(lab):
    nsd = lab.nsd({"dest.test": "@ MX 10 a" + HOSTS})
    relay = lab.relay(Config().resolve_with(nsd))
    relay.send()
    relay.wait_event("bounced", dsn="5.4.6")
