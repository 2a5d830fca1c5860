# SPDX-License-Identifier: ISC
"""Zones signed with DNSSEC, from a root of their own downwards, right and wrong."""

import base64
import ctypes
import os
import re
import struct
import subprocess
import time

from . import peers
from .dns import LOOPBACK
from .net import free_dns_port, wait_until
from .process import Process

_HEAD = """\
$ORIGIN {origin}
$TTL 60
@ SOA ns.invalid. hostmaster.invalid. {serial} 3600 600 86400 60
@ NS ns.invalid.
"""

DAY = 86400


def _origin(zone):
    return zone if zone.endswith(".") else f"{zone}."


def _with_tag(head, tag):
    """A key of 64 octets that has this tag behind this head. RFC 4034 B."""
    start = os.urandom(62)
    total = sum(struct.unpack("!33H", head + start))
    near = tag - total - (total >> 16)
    last = next(one for one in ((near - carry) & 0xFFFF for carry in range(-2, 3))
                if (total + one + ((total + one) >> 16)) & 0xFFFF == tag)
    return base64.b64encode(start + struct.pack("!H", last)).decode("ascii")


def _run(folder, *command):
    program, *arguments = command
    done = subprocess.run([peers.program(program), *arguments], cwd=folder, check=False,
                          capture_output=True, encoding="utf-8")
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


class SignedZones:
    """Texts of zones, for lab.dns.Nsd, each signed by a key of its own.

    Begin with the deepest zones: what delegates to them takes their DS records from ds().
    """

    def __init__(self, folder):
        """Keys and zones are files in the folder."""
        self.folder = str(folder)
        self.zones = {}
        self.keys = {}

    def _path(self, name):
        return os.path.join(self.folder, name)

    def key(self, zone):
        """Make a key for the zone and return the name of its files."""
        return _run(self.folder, "ldns-keygen", "-a", "ECDSAP256SHA256", "-k", "-r", "/dev/urandom",
                    _origin(zone))

    def ds(self, key):
        """Return the DS record of a key."""
        with open(self._path(f"{key}.ds"), encoding="utf-8") as stream:
            return stream.read().strip()

    def unsigned(self, zone, records):
        """Add a zone without signatures."""
        self.zones[zone] = _HEAD.format(origin=_origin(zone), serial=1) + records

    def crowd(self, key, count):
        """Return so many DNSKEY records, each with the tag of this key, and none of them its own."""
        with open(self._path(f"{key}.key"), encoding="utf-8") as stream:
            fields = stream.read().split(";")[0].split()
        flags, protocol, algorithm = (int(field) for field in fields[-4:-1])
        tag = int(key.split("+")[-1])
        head = struct.pack("!HBB", flags, protocol, algorithm)
        return "".join(f"@ DNSKEY {flags} {protocol} {algorithm} {_with_tag(head, tag)}\n"
                       for _ in range(count))

    def signed(self, zone, records, *options, valid=(-DAY, 30 * DAY), key=None, serial=1):
        """Add a zone, signed with a new key or the one given; return the key.

        valid: from when until when, in seconds from now. Options are those of ldns-signzone.
        """
        key = self.keys[zone] = key or self.key(zone)
        name = f"zone-{len(self.keys)}-of-{re.sub('[^a-z0-9]', '-', zone)}"
        begin, end = (time.strftime("%Y%m%d%H%M%S", time.gmtime(time.time() + span))
                      for span in valid)
        with open(self._path(name), "w", encoding="utf-8") as stream:
            stream.write(_HEAD.format(origin=_origin(zone), serial=serial) + records + "\n")
        _run(self.folder, "ldns-signzone", "-i", begin, "-e", end, *options, "-o", _origin(zone),
             name, key)
        with open(self._path(f"{name}.signed"), encoding="utf-8") as stream:
            self.zones[zone] = stream.read()
        return key

    def anchor(self):
        """Write the trust anchor, the DS record of the root, and return the file."""
        path = self._path("root.ds")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("; the root of the lab\n" + self.ds(self.keys["."]) + "\n")
        return path


_UNBOUND = """\
server:
    interface: {address}
    port: {port}
    do-daemonize: no
    chroot: ""
    username: ""
    directory: "{folder}"
    pidfile: "{folder}/unbound.pid"
    use-syslog: no
    logfile: ""
    trust-anchor-file: "{anchor}"
    do-not-query-localhost: no
    module-config: "validator iterator"
    local-zone: "test." nodefault
    local-zone: "invalid." nodefault
    trust-anchor-signaling: no
forward-zone:
    name: "."
    forward-addr: {nsd.address}@{nsd.port}
remote-control:
    control-enable: no
"""


def gives_up_on_many_ds():
    """Whether this libunbound calls a zone bogus where one DS record of five hundred is right. That of Debian 13 does: it
    looks at few of one tag."""
    library = ctypes.CDLL("libunbound.so.8")
    library.ub_version.restype = ctypes.c_char_p
    return [int(part) for part in library.ub_version().split(b".")[:2]] >= [1, 20]


class Unbound:
    """A validating resolver of other people, in front of an Nsd."""

    def __init__(self, folder, nsd, anchor, ask, address=LOOPBACK, port=None):
        """ask: lab.dns.ask, with which it is seen to be up."""
        self.address = address
        self.port = port or free_dns_port(address)
        path = os.path.join(str(folder), "unbound.conf")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(_UNBOUND.format(address=self.address, port=self.port, folder=folder,
                                         nsd=nsd, anchor=anchor))
        self.process = Process([peers.program("unbound"), "-d", "-c", path],
                               os.path.join(str(folder), "unbound.out"))
        wait_until(lambda: self._answers(ask) or not self.process.running(), 60, "unbound to answer")
        assert self.process.running(), self.report()

    def _answers(self, ask):
        try:
            return ask(self.address, self.port, ".", "NS", timeout=1)[0] == 0
        except OSError:
            return False

    def close(self):
        """Stop the resolver."""
        self.process.stop()

    def report(self):
        """Return what it wrote, for the report of a failure."""
        return f"--- unbound\n{self.process.output_text()[-3000:]}"
