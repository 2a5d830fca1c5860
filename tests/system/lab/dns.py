# SPDX-License-Identifier: ISC
"""A real authoritative name server, NSD, for the zones of a test."""

import os
import pathlib
import random
import re
import signal
import socket
import struct
import time

from . import peers
from .net import LOOPBACK, free_dns_port, wait_until
from .process import Process

ASK_AGAIN_S = 5
TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "MX": 15, "TXT": 16, "AAAA": 28, "TLSA": 52}

_CONFIGURATION = """\
server:
    ip-address: {address}@{port}
    server-count: 1
    username: ""
    chroot: ""
    zonesdir: "{folder}"
    database: ""
    pidfile: "{folder}/nsd.pid"
    zonelistfile: "{folder}/zone.list"
    xfrdfile: "{folder}/xfrd.state"
    logfile: "{folder}/nsd.log"
    hide-version: yes
    rrl-ratelimit: 0
    verbosity: 1
remote-control:
    control-enable: no
"""

_HEAD = """\
$ORIGIN {origin}
$TTL 60
@ SOA ns.invalid. hostmaster.invalid. {serial} 3600 600 86400 60
@ NS ns.invalid.
"""


class Nsd:
    """A name server on a loopback address and a port of its own.

    Zones are texts by name. A text without an SOA record gets $ORIGIN, $TTL, SOA and NS in
    front, so that a test can say just {"dest.test": "@ MX 10 mx\\nmx A 127.0.0.2"}.
    """

    def __init__(self, folder, zones, address=LOOPBACK, port=None):
        """Write the zones; start() runs the server."""
        self.folder = str(folder)
        self.address = address
        self.port = port or free_dns_port(address)
        self.zones = dict(zones)
        self.serial = 1
        self.process = None
        self._write()

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _write(self):
        text = _CONFIGURATION.format(address=self.address, port=self.port, folder=self.folder)
        for number, (zone, records) in enumerate(self.zones.items()):
            text += f'zone:\n    name: "{zone}"\n    zonefile: "zone-{number}"\n'
            if not re.search(r"\bSOA\b", records):
                origin = zone if zone.endswith(".") else f"{zone}."
                records = _HEAD.format(origin=origin, serial=self.serial) + records
            with open(self._path(f"zone-{number}"), "w", encoding="utf-8") as stream:
                stream.write(records + "\n")
        with open(self._path("nsd.conf"), "w", encoding="utf-8") as stream:
            stream.write(text)

    def start(self):
        """Start the server and wait until it answers. Returns self.

        Its port was its own before; a resolver's socket may have come to it since, for as long as a question takes.
        """
        wait_until(self._port_is_free, 60, f"UDP port {self.port} to be free")
        command = [peers.program("nsd"), "-d", "-c", self._path("nsd.conf")]
        self.process = Process(command, self._path("nsd.out"), cwd=self.folder)
        zone = next(iter(self.zones))
        wait_until(lambda: self._serial(zone) or not self.process.running(), 60, "NSD to answer")
        assert self.process.running(), self.report()
        return self

    def _port_is_free(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
            try:
                trial.bind((self.address, self.port))
            except OSError:
                return False
            return True

    def _serial(self, zone):
        try:
            code, answers = ask(self.address, self.port, zone, "SOA", timeout=1)
        except OSError:
            return None
        return answers[0][1] if code == 0 and answers else None

    def _servers(self):
        """Return the processes that answer: those of NSD's that have no children. They change with each reload."""
        return _leaves(self.process.pid) - {self.process.pid}

    def set_zone(self, zone, records):
        """Replace the records of a zone that the server has, and wait until nobody answers with the old ones."""
        assert zone in self.zones, f"{zone} is no zone of this server"
        self.zones[zone] = records
        self.serial += 1
        wait_until(lambda: len(self._servers()) == 1, 60, "NSD to be at rest")
        before = self._serial(zone)
        self._write()
        asked = 0.0

        def is_reloaded():
            # A signal that comes while a reload before comes to its end may be lost: it is asked again.
            nonlocal asked
            if self._only_one_answers(zone, before):
                return True
            if time.monotonic() - asked > ASK_AGAIN_S:
                asked = time.monotonic()
                self.process.signal(signal.SIGHUP)
            return False

        wait_until(is_reloaded, 60, "NSD to reload")

    def _only_one_answers(self, zone, before):
        """Tell whether one process is there, and has other records: that of before answers beside the new one for a
        moment. Which one it is says nothing, since a reload that a signal before has begun may read these files, too."""
        servers = self._servers()
        return len(servers) == 1 and self._serial(zone) not in (None, before) and self._servers() == servers

    def stop(self):
        """Stop the server; the port stays the same for start()."""
        self.process.stop()

    def close(self):
        """Stop the server if it runs."""
        if self.process:
            self.stop()

    def report(self):
        """Return what the server wrote, for the report of a failure."""
        text = self.process.output_text() if self.process else ""
        if os.path.exists(self._path("nsd.log")):
            with open(self._path("nsd.log"), encoding="utf-8") as stream:
                text += stream.read()
        return f"--- NSD in {self.folder}\n{text[-3000:]}"


def _leaves(pid):
    """Return the processes below this one that have no children; itself, if it has none."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return set()  # it has just ended
    return set().union(*(_leaves(int(child)) for child in children)) if children else {pid}


def ask(address, port, name, kind, timeout=10.0):
    """Ask one question by UDP; return the code and the answers as (type, raw data)."""
    number = random.randrange(65536)
    labels = [label.encode("ascii") for label in name.rstrip(".").split(".") if label]
    question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    question += struct.pack("!HH", TYPES[kind], 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        query.settimeout(timeout)
        query.connect((address, port))
        query.send(struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + question)
        packet = query.recv(65535)
    identifier, flags, _, count, _, _ = struct.unpack_from("!HHHHHH", packet)
    assert identifier == number, "an answer to another question"
    return flags & 15, _answers(packet, 12 + len(question), count)


def _answers(packet, place, count):
    answers = []
    for _ in range(count):
        while 0 < packet[place] < 192:
            place += 1 + packet[place]
        place += 2 if packet[place] else 1
        kind, _, _, length = struct.unpack_from("!HHIH", packet, place)
        place += 10
        answers.append((kind, packet[place:place + length]))
        place += length
    return answers
