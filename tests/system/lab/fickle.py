# SPDX-License-Identifier: ISC
"""Receivers that take mail in chunks and lose count, replies, connections or patience, from a seed.

What they take on is in their ledger, whatever they say of it. By its address a sender or recipient
says what honest hosts would think of it: "bad" is refused for good; a sender that begins with
"plain" has good recipients only. Only its replies are tampered with, since no client can tell whom
a refusal was meant for that came in another's place. Content of "plain" itself is always taken.
"""

import asyncio
import contextlib
import random
import re
import socket
import struct
import threading

from .net import LOOPBACK

_ADDRESS = re.compile(rb":<([^>]*)>")
_TOKEN = re.compile(rb"^X-Token: (\S+)\r$", re.MULTILINE)

# Faults of a reply: at a certain reply this happens to it.
REPLY_FAULTS = ("twice", "never", "late", "garbage", "354", "220")
# Faults at a command: before it is done, or after it is done and instead of its reply.
COMMAND_FAULTS = (
    "421", "close", "reset", "close_after", "reset_after", "silent_after", "early", "no_bdat",
    "bdat_once", "enough", "enough_close",
)
FAULTS = REPLY_FAULTS + COMMAND_FAULTS


class Over(Exception):
    """The connection ends here."""


class Session:
    """One connection, with at most one fault."""

    def __init__(self, host, number, reader, writer):
        """Draw what will go wrong."""
        self.host, self.reader, self.writer = host, reader, writer
        self.chance = random.Random(f"{host.seed} {number}")
        faulty = number < self.chance.choice((1, 1, 2, 3))
        self.fault = self.chance.choice(FAULTS) if faulty else None
        self.at = self.chance.randrange(1, 70)
        self.kind_to_nobody = self.chance.random() < 0.3
        self.moody = faulty and self.fault not in REPLY_FAULTS and self.chance.random() < 0.3
        self.count = self.messages = 0
        self.held = None
        self.silent = False
        self.sender, self.recipients = None, []
        self.about = None  # the sender of the transaction that replies are about

    def strike(self, *faults):
        """Say whether one of these faults happens now: once, when its time has come."""
        if self.fault not in faults or self.count < self.at:
            return False
        self.host.struck.append(self.fault)
        self.fault = None
        return True

    def put(self, text):
        """Send a line, unless nothing is said any more."""
        if not self.silent:
            self.writer.write(text.encode("ascii") + b"\r\n")

    def reply(self, text):
        """Send a reply, or what becomes of it."""
        held, self.held = self.held, None
        if self.plain() and self.fault in REPLY_FAULTS and self.count >= self.at:
            fault = self.fault
            self.strike(fault)
            if fault == "twice":
                self.put(text)
            elif fault == "never":
                return
            elif fault == "late":
                self.held = text
                return
            else:
                text = {"garbage": "what?", "354": "354 go on", "220": "220 hello"}[fault]
        self.put(text)
        if held:
            self.put(held)

    def plain(self):
        """Say whether the transaction is one whose replies may be tampered with."""
        return self.about is not None and self.about.startswith("plain")

    def in_a_mood(self):
        """Say whether something is refused for now."""
        return self.moody and not self.plain() and self.chance.random() < 0.05

    def end(self, reset=False):
        """Close the connection."""
        if reset:
            raw = self.writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.writer.transport.abort()
        raise Over

    async def run(self):
        """Greet, and serve until the end."""
        await self.host.fickle.opened.wait()
        self.put("220 fickle.test ESMTP")
        with contextlib.suppress(Over, OSError, asyncio.IncompleteReadError, ValueError):
            while line := await self.reader.readline():
                await self.command(line)
                await self.writer.drain()
        self.writer.close()

    async def command(self, line):
        """Do one command."""
        self.count += 1
        verb = line[:4].upper().strip()
        if self.strike("421"):
            self.put("421 4.3.2 going away")
            self.end()
        if self.strike("close"):
            self.end()
        if self.strike("reset"):
            self.end(True)
        handler = getattr(self, f"on_{verb.decode('ascii', 'replace').lower()}", None)
        if not handler:
            self.reply("500 5.5.2 what")
            return
        text = await handler(line)
        self.after(verb)
        self.reply(text)

    def after(self, verb):
        """Let what happens instead of a reply happen; and a limit of messages."""
        if self.strike("close_after"):
            self.end()
        if self.strike("reset_after"):
            self.end(True)
        if self.strike("silent_after"):
            self.silent = True
        if verb == b"RSET" and self.strike("enough"):
            self.put("421 4.3.2 enough")
            self.end()
        if verb == b"RSET" and self.strike("enough_close"):
            self.end()

    async def on_ehlo(self, _):
        """EHLO"""
        return ("250-fickle.test\r\n250-PIPELINING\r\n250-CHUNKING\r\n250-8BITMIME\r\n"
                "250 ENHANCEDSTATUSCODES")

    async def on_quit(self, _):
        """QUIT"""
        self.put("221 2.0.0 bye")
        self.end()

    async def on_rset(self, _):
        """RSET"""
        self.sender, self.recipients = None, []
        return "250 2.0.0 reset"

    async def on_mail(self, line):
        """MAIL; as many hosts do, a second one is refused and leaves the first."""
        if self.sender is not None:
            return "503 5.5.1 nested MAIL"
        self.about = _ADDRESS.search(line)[1].decode("ascii")
        if self.about.startswith("bad"):
            return "550 5.7.1 not you"
        if self.in_a_mood():
            return "451 4.3.0 not now"
        self.sender, self.recipients = self.about, []
        return "250 2.1.0 ok"

    async def on_rcpt(self, line):
        """RCPT"""
        if self.sender is None:
            return "503 5.5.1 MAIL first"
        recipient = _ADDRESS.search(line)[1].decode("ascii")
        if recipient.startswith("bad"):
            return "550 5.1.1 nobody"
        if self.in_a_mood():
            return "450 4.2.1 not now"
        self.recipients.append(recipient)
        return "250 2.1.5 ok"

    def take(self, content):
        """Take a message on, or refuse it; the transaction is over."""
        recipients, self.sender, self.recipients = self.recipients, None, []
        if b"\r\nX-Refuse: " in content:
            return "554 5.7.1 not this"
        if self.in_a_mood():
            return "452 4.3.1 no room"
        token = _TOKEN.search(content)[1].decode("ascii")
        self.host.fickle.store(token, recipients, content)
        self.messages += 1
        return "250 2.0.0 kept"

    async def on_bdat(self, line):
        """BDAT n LAST"""
        if self.strike("no_bdat"):
            self.fault, self.at = "no_bdat", 0
            return self.chance.choice(("500 5.5.2 what", "502 5.5.1 what"))
        size = int(line.split()[1])
        early = self.recipients and self.about.startswith("plain@") and self.strike("early")
        if early:
            self.put("250 2.0.0 kept")
            await self.writer.drain()
        content = await self.reader.readexactly(size)
        if not self.recipients:
            kind = self.kind_to_nobody and self.sender is not None
            return "250 2.0.0 kept" if kind else "503 5.5.1 no recipients"
        if self.strike("bdat_once"):
            self.sender, self.recipients = None, []
            return "503 5.5.1 what"
        text = self.take(content)
        self.host.chunks += 1
        if early:
            self.end()
        return text

    async def on_data(self, _):
        """DATA, always done well."""
        if not self.recipients:
            return "503 5.5.1 no recipients"
        self.fault = None
        self.put("354 go on")
        await self.writer.drain()
        content = b""
        while not content.endswith(b"\r\n.\r\n"):
            line = await self.reader.readline()
            if not line:
                self.end()
            content += line
        return self.take(content[:-3].replace(b"\r\n.", b"\r\n"))


class Host:
    """One of the receivers."""

    def __init__(self, fickle, seed):
        """The seed decides all that goes wrong here."""
        self.fickle, self.seed = fickle, seed
        self.connections = self.chunks = 0
        self.struck = []
        self.port = None

    async def listen(self):
        """Listen on a port of its own."""
        server = await asyncio.start_server(self.serve, LOOPBACK, 0, limit=1 << 20)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def serve(self, reader, writer):
        """Serve one connection."""
        number, self.connections = self.connections, self.connections + 1
        await Session(self, number, reader, writer).run()


class Fickle:
    """So many receivers in a thread; they greet nobody before open() is called."""

    def __init__(self, seed, hosts):
        """Listen at once."""
        self.hosts = [Host(self, f"{seed} {number}") for number in range(hosts)]
        self.ledger = {}
        self._loop = asyncio.new_event_loop()
        self._servers = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fickle", daemon=True)
        self._thread.start()
        self._ready.wait(60)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _listen(self):
        self.opened = asyncio.Event()
        self._servers = [await host.listen() for host in self.hosts]

    def store(self, token, recipients, content):
        """Write into the ledger; called by the sessions."""
        for recipient in recipients:
            self.ledger.setdefault((token, recipient), []).append(content)

    def open(self):
        """Greet those who wait, and all who come."""
        self._loop.call_soon_threadsafe(self.opened.set)

    def _close(self):
        for server in self._servers:
            server.close()
        self._loop.stop()

    def close(self):
        """Stop."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._close)
            self._thread.join(60)
