# SPDX-License-Identifier: ISC
"""A reader of the queue's files, written from spool/README.md alone: it shares nothing with the program."""

import dataclasses
import os
import stat
import struct

CONTENT, ENVELOPE, START, DELIVERY, REPLACEMENT, FINISH, SYNCED, END, FILLER = range(1, 10)
NAMES = ("", "content", "envelope", "start", "delivery", "replacement", "finish", "synced", "end", "filler")

SEGMENT_HEAD = 64
HEADS = (0, 4096)
BEGIN = 8192
RECORD_HEAD = 24
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _make_table()


def crc32c(data, before=0):
    """Return the CRC32C of the bytes, continued from that of the bytes before."""
    crc = before ^ 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def identity(number):
    """Return an id as text."""
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(60, -1, -5))


@dataclasses.dataclass
class Record:
    """One record, and where it lies."""

    offset: int
    size: int
    type: int
    garbage: bool
    id: int
    payload: bytes

    @property
    def end(self):
        """Where the next one begins."""
        return self.offset + self.size


class Segment:
    """One file of the log, read up to the first record that is not right."""

    def __init__(self, path):
        """Read it all; a head that is not right is an AssertionError."""
        self.path = path
        self.name = os.path.basename(path)
        with open(path, "rb") as stream:
            self.data = stream.read()
        head = self.data[:SEGMENT_HEAD]
        assert head == self.data[HEADS[1]:HEADS[1] + SEGMENT_HEAD], "the heads differ"
        magic, self.version, self.lane, self.seq, _, _, self.first, _, self.size, _, self.seed = struct.unpack(
            "<8sIIQQQIIQII", head
        )
        assert magic == b"sluiceS\n" and self.version == 2
        assert self.seed == crc32c(head[:60]) and self.name == f"{self.seq:016x}.seg"
        self.records = []
        offset = BEGIN
        while (record := self._record(offset)) is not None:
            self.records.append(record)
            offset = record.end
        self.end = offset

    def _record(self, offset):
        head = self.data[offset:offset + RECORD_HEAD]
        if len(head) < RECORD_HEAD or head[:2] != b"sR":
            return None
        kind, flags, length, number, sum_of_payload, sum_of_head = struct.unpack("<BBIQII", head[2:])
        payload = self.data[offset + RECORD_HEAD:offset + RECORD_HEAD + length]
        if sum_of_head != crc32c(head[:3] + b"\0" + head[4:20], self.seed):
            return None
        if len(payload) < length or sum_of_payload != crc32c(payload):
            return None
        size = (RECORD_HEAD + length + 7) // 8 * 8
        return Record(offset, size, kind, bool(flags & 1), number, payload)

    @property
    def synced(self):
        """Up to where its records say that it was on stable storage."""
        return max((struct.unpack("<Q", one.payload)[0] for one in self.records if one.type == SYNCED), default=0)

    @property
    def sealed(self):
        """Whether its last record says that nothing follows."""
        return bool(self.records) and self.records[-1].type == END

    def owners(self, begin=0):
        """Return the ids, as text, of the messages with records from that offset on."""
        return {identity(one.id) for one in self.records if one.offset >= begin and one.id}


class Spool:
    """A queue's folder."""

    def __init__(self, folder):
        """Read its segments, in order."""
        self.folder = str(folder)
        self.log = os.path.join(self.folder, "log")
        self.large = os.path.join(self.folder, "large")
        names = sorted(name for name in os.listdir(self.log) if name.endswith(".seg"))
        self.segments = [Segment(os.path.join(self.log, name)) for name in names]

    def find(self, kind, among=lambda segment, record: True):
        """Return a segment and a record of that type in it, the first of those that are fit."""
        for segment in self.segments:
            for record in segment.records:
                if record.type == kind and among(segment, record):
                    return segment, record
        raise AssertionError(f"no such record of type {NAMES[kind]}")

    def quarantine(self):
        """Return the names of what was put aside."""
        return sorted(os.listdir(os.path.join(self.folder, "quarantine")))


def flip(path, offset, bit=2):
    """Flip one bit of a file."""
    with open(path, "r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ bit]))


def digest(folder):
    """Return all that can be seen of the files in a folder, to compare."""
    seen = {}
    for where, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(where, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as stream:
                    content = stream.read()
            seen[os.path.relpath(path, folder)] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content)
    return seen
