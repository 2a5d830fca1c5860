# SPDX-License-Identifier: ISC
"""KeyUpdate records without end, from a client and from a host: the connection is closed, and others notice nothing."""

import contextlib
import socket
import subprocess
import threading

import pytest

from lab.config import Config
from lab.keyupdates import RECORD, KeyUpdates
from lab.net import LOOPBACK, free_port, wait_until
from lab.proc import cpu_seconds, sanitized

MANY = 100_000  # 2.7 MB; a relay that reads them all is at work for half a second, or more
WHY = "TLS: too many records that hold no data"
pytestmark = pytest.mark.skipif(sanitized(), reason="with a sanitizer processor time says little")


def _send(connection, data):
    """Send as much as the other side takes; return how many bytes these were."""
    sent = 0
    with contextlib.suppress(OSError):
        while sent < len(data):
            sent += connection.send(data[sent : sent + 65536])
    return sent


def _listens(port):
    """Look without a connection, of which the server takes one only."""
    with open("/proc/net/tcp", encoding="ascii") as sockets:
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in sockets)


def test_what_is_sent_here_are_key_updates(lab):
    """OpenSSL's own server counts them: it is that which the relay would read without a bound."""
    certificate, key = lab.certificates.host("relay.test")
    port = free_port()
    server = subprocess.Popen(
        ["openssl", "s_server", "-accept", f"{LOOPBACK}:{port}", "-cert", certificate, "-key", key, "-msg", "-naccept", "1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: _listens(port), 60, "the server to listen")
        with socket.create_connection((LOOPBACK, port), timeout=60) as connection:
            tls = KeyUpdates(connection)
            connection.sendall(tls.records(2000))
            tls.close()
        said = server.stdout.read()
    finally:
        server.kill()
        server.wait()
    assert said.count(b"<<< TLS 1.3, Handshake [length 0005], KeyUpdate") == 2000


def test_those_of_a_client_are_cut_short(lab):
    certificate, key = lab.certificates.host("relay.test")
    config = Config({"workers": 1}, listeners={"smtp": {"certificate": certificate, "key": key}})
    relay = lab.relay(config.route_all_to(lab.sink().port))
    with relay.client() as hostile, relay.client() as other:
        other.greet()
        hostile.greet()
        hostile.command("STARTTLS", 220)
        tls = KeyUpdates(hostile.socket)
        flood = tls.records(MANY)
        before = cpu_seconds(relay)
        taken = []
        sender = threading.Thread(target=lambda: taken.append(_send(hostile.socket, flood)))
        sender.start()
        other.command("NOOP", 250)
        sender.join()
        other.command("NOOP", 250)
        relay.wait_event("disconnect", reason=WHY)
        tls.close()
    assert taken[0] > 1000 * RECORD  # many more than are read: those that lay in the socket
    assert cpu_seconds(relay) - before < 0.3


class _Host:
    """A host with STARTTLS that says no more than that, then updates its keys."""

    def __init__(self, certificate, key):
        self.listener = socket.create_server((LOOPBACK, 0))
        self.port = self.listener.getsockname()[1]
        self.certificate, self.key = certificate, key
        self.ready, self.taken, self.flood = threading.Event(), [], threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        connection, _ = self.listener.accept()
        self.listener.close()
        with connection:
            connection.sendall(b"220 host.test\r\n")
            connection.recv(4096)
            connection.sendall(b"250-host.test\r\n250 STARTTLS\r\n")
            connection.recv(4096)
            connection.sendall(b"220 go\r\n")
            tls = KeyUpdates(connection, self.certificate, self.key)
            tls.hear()
            flood = tls.records(MANY)
            self.ready.set()
            self.flood.wait()
            self.taken.append(_send(connection, flood))
            tls.close()


@pytest.mark.seconds(900)
def test_those_of_a_host_are_cut_short(lab):
    certificate, key = lab.certificates.host("host.test")
    host, sink = _Host(certificate, key), lab.sink()
    config = Config({"workers": 1})
    config.routes = {"*": {"relay": [f"[{LOOPBACK}]:{sink.port}"]}, "hostile.test": {"relay": [f"[{LOOPBACK}]:{host.port}"]}}
    relay = lab.relay(config)
    relay.send(recipients=["to@hostile.test"])
    assert host.ready.wait(800), "its records to be made"
    before = cpu_seconds(relay)
    host.flood.set()
    relay.send(recipients=["to@dest.test"])
    sink.wait_messages(1)
    wait_until(lambda: host.taken, 100, "the relay to close")
    assert host.taken[0] > 1000 * RECORD
    assert cpu_seconds(relay) - before < 0.3
    relay.wait_event("deferred", to="to@hostile.test")
