# SPDX-License-Identifier: ISC
"""A filter: the other side of the milter protocol, written from its description and not from the relay's code."""

import os
import socket
import struct
import threading
import time

from .net import LOOPBACK, free_port, wait_until

# What a filter may change (SMFIF_), and what it need not be told, or does not answer (SMFIP_).
ADD_HEADERS, CHANGE_BODY, ADD_RCPT, DELETE_RCPT, CHANGE_HEADERS, QUARANTINE, CHANGE_FROM, ADD_RCPT_ARGS, MACROS = (1 << bit for bit in range(9))
ALL_ACTIONS = 0x1FF
SKIP, LEADING_SPACE = 0x400, 0x100000
NOTHING_WANTED = 0x37F  # but the end of the body
NO_ANSWERS = 0x80 | 0xFF000
NO_BODY = 0x10

CONTINUE, ACCEPT, REJECT, TEMPFAIL, DISCARD, SHUTDOWN, PROGRESS, SKIPPED, GIVES_UP = b"c", b"a", b"r", b"t", b"d", b"4", b"p", b"s", b"f"
NO_REPLY_TO = b"DAKQ"


def packet(command, data=b""):
    """One packet: its length, a letter, and what belongs to it."""
    return struct.pack(">I", len(data) + 1) + command + data


def texts(*words):
    """Texts, each with its NUL."""
    return b"".join((word if isinstance(word, bytes) else word.encode()) + b"\0" for word in words)


def add_header(name, value):
    """Put a field behind the header."""
    return packet(b"h", texts(name, value))


def insert_header(index, name, value):
    """Put a field in at that place."""
    return packet(b"i", struct.pack(">I", index) + texts(name, value))


def change_header(index, name, value):
    """Change the index-th of that name; an empty value deletes it."""
    return packet(b"m", struct.pack(">I", index) + texts(name, value))


def reply(text):
    """A reply of the filter's own."""
    return packet(b"y", texts(text))


def replace_body(body):
    """The whole of another body, in pieces."""
    return b"".join(packet(b"b", body[at : at + 65535]) for at in range(0, len(body), 65535))


class Conversation:
    """One connection: what was said on it, as (letter, data), with the macros that came before each letter."""

    def __init__(self, server, connection):
        self.server = server
        self.connection = connection
        self.said = []
        self.macros = {}
        self.skips = False
        self.begun = False

    def letters(self):
        """What was said, without macros and negotiations, as one word."""
        return b"".join(letter for letter, _ in self.said if letter != b"O")

    def all(self, letter):
        """The data of each packet of that letter."""
        return [data for said, data in self.said if said == letter]

    def _read(self, length):
        data = b""
        while len(data) < length:
            more = self.connection.recv(min(length - len(data), 1 << 20))
            if not more:
                raise EOFError
            data += more
        return data

    def _packet(self):
        length = struct.unpack(">I", self._read(4))[0]
        letter = self._read(1)
        return letter, self._read(length - 1)

    def run(self):
        """Serve until the relay closes."""
        try:
            while True:
                letter, data = self._packet()
                if letter == b"D":
                    pairs = data[1:].split(b"\0")
                    self.macros.setdefault(data[:1], {}).update(zip(pairs[0::2], pairs[1::2]))
                    continue
                if letter not in b"OQ" and not self.begun:
                    self.begun = True
                    self.server.conversations.append(self)
                self.said.append((letter, data))
                if letter == b"Q":
                    break
                answer = self.server.answer(self, letter, data)
                if answer:
                    self.connection.sendall(answer)
        except (EOFError, OSError):
            pass
        finally:
            self.connection.close()


class Milter:
    """Listens at a port, or at a path, and answers each packet as `answers` says.

    `answers` maps letters to bytes, or to a function of the conversation and the data that returns bytes; None or b"" is
    no answer. Without an entry the answer is "continue". To O, the negotiation, the answer is as the other arguments
    say unless it has an entry. A connection that only negotiates, as when a relay looks whether the filter is there, is no
    conversation.
    """

    def __init__(self, path=None, actions=ALL_ACTIONS, steps=0, version=6, macros=(), port=0):
        self.actions, self.steps, self.version, self.macros = actions, steps, version, macros
        self.answers = {}
        self.conversations = []
        self.connections = []
        self.path = path
        self.port = port or free_port()  # nobody else gets it while this is stopped
        self.listener = None
        self.start()

    @property
    def address(self):
        """As the configuration has it."""
        return f"unix:{self.path}" if self.path else f"inet:{LOOPBACK}:{self.port}"

    def start(self):
        """Listen, where it did before."""
        if self.path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            self.listener.listen(128)
        else:
            self.listener = socket.create_server((LOOPBACK, self.port), backlog=256)
        threading.Thread(target=self._accept, args=[self.listener], name="milter", daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            conversation = Conversation(self, connection)
            self.connections.append(connection)
            threading.Thread(target=conversation.run, daemon=True).start()

    def answer(self, conversation, letter, data):
        """What this packet is answered with."""
        known = letter in self.answers
        if not known and letter == b"O":
            lists = b"".join(struct.pack(">I", stage) + texts(names) for stage, names in self.macros)
            return packet(b"O", struct.pack(">III", self.version, self.actions, self.steps) + lists)
        if not known and letter in NO_REPLY_TO:
            return b""
        answer = self.answers.get(letter, packet(CONTINUE))
        return answer(conversation, data) if callable(answer) else answer

    def behave(self, answers=None, **settings):
        """Behave so from now on, on new connections too. What was said is forgotten."""
        self.actions, self.steps, self.version, self.macros = ALL_ACTIONS, 0, 6, ()
        self.__dict__.update(settings)
        self.answers = {key.encode(): value for key, value in (answers or {}).items()}
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.conversations, self.connections = [], []

    def wait_said(self, letter, count=1, timeout=60.0):
        """Wait until so many packets of that letter have come; return the first conversation with one."""
        wait_until(lambda: sum(len(one.all(letter)) for one in list(self.conversations)) >= count, timeout, f"{letter} to be said")
        return next(one for one in self.conversations if one.all(letter))

    def stop(self):
        """Listen no more, and drop all connections."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        if self.path:
            os.unlink(self.path)
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    close = stop


def slowly(seconds, answer):
    """Answer after a while."""

    def wait(_conversation, _data):
        time.sleep(seconds)
        return answer

    return wait
