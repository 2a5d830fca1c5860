# SPDX-License-Identifier: ISC
"""A receiver that lets so many messages through in a time, and says so in its own words to the others."""

import time

from .moody import Moody

AT = {"mail": "MAIL", "rcpt": "RCPT", "end": "the end of data"}


class Bucket(Moody):
    """A token bucket: `rate` messages a second, `room` of them at once; beyond it the stage `at` is refused with `words`.

    A refusal of 421 closes the connection. taken and refusals are times since begin(), transactions what MAIL was said for.
    refuses(age) says whether all is refused, whatever the bucket has.
    """

    def __init__(self, port, rate=20.0, room=20, at="end", words="421 4.7.28 rate limited", refuses=None, greylists=None, most=0, chunking=True, **mood):
        """greylists(age, sender, recipient): words to refuse this recipient with, or None; most: messages on a connection, which it then closes."""
        super().__init__(port, **mood)
        assert at in AT
        self.rate, self.room, self.at, self.words = rate, room, at, words
        self.refuses = refuses or (lambda age: False)
        self.greylists = greylists or (lambda age, sender, recipient: None)
        self.chunking, self.most = chunking, most
        self.tokens, self.filled = float(room), None
        self.taken, self.refusals, self.transactions = [], [], 0
        self.recipients = []

    def _has_token(self):
        now = time.monotonic()
        if self.filled is not None:
            self.tokens = min(float(self.room), self.tokens + (now - self.filled) * self.rate)
        self.filled = now
        return self.tokens >= 1 and not self.refuses(self.age())

    async def _refuse(self, writer, words=None):
        self.refusals.append(self.age())
        await self._say(writer, words or self.words)
        return (words or self.words).startswith("421")

    async def _content(self, reader, writer, line):
        if line[:4].upper() == "BDAT":
            return await reader.readexactly(int(line.split()[1]))
        await self._say(writer, "354 go on")
        return await reader.readuntil(b"\r\n.\r\n")

    async def _end(self, reader, writer, line, envelope):
        """True: the connection is closed."""
        if line[:4].upper() != "BDAT" and not envelope["to"]:
            await self._say(writer, "503 5.5.1 no recipients")
            return False
        await self._content(reader, writer, line)
        if not envelope["to"]:
            await self._say(writer, "503 5.5.1 no recipients")
            return False
        if not self._has_token():
            return await self._refuse(writer)
        self.tokens -= 1
        self.taken.append(self.age())
        self.recipients += envelope["to"]
        await self._say(writer, "250 2.0.0 taken")
        return False

    async def _envelope(self, writer, line, envelope):
        """True: the connection is closed."""
        verb = line[:4].upper()
        if verb == "MAIL":
            envelope["from"], envelope["to"] = line.split("<")[1].split(">")[0], []
            self.transactions += 1
            envelope["open"] = False
        elif not envelope.get("open"):
            await self._say(writer, "503 5.5.1 no MAIL")
            return False
        if verb[:4].lower() == self.at and not self._has_token():
            return await self._refuse(writer)
        envelope["open"] = True
        if verb == "RCPT":
            to = line.split("<")[1].split(">")[0]
            words = self.greylists(self.age(), envelope["from"], to)
            if words:
                return await self._refuse(writer, words)
            envelope["to"].append(to)
        await self._say(writer, "250 2.0.0 ok")
        return False

    async def _talk(self, reader, writer):
        await self._say(writer, "220 bucket.test ESMTP")
        envelope, closed, before = {}, False, 0
        while not closed and (line := (await reader.readline()).decode(errors="replace")):
            verb = line[:4].upper()
            if verb == "EHLO":
                await self._say(writer, "250-bucket.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n"
                                + ("250 CHUNKING" if self.chunking else "250 SIZE"))
            elif verb in ("MAIL", "RCPT"):
                closed = await self._envelope(writer, line, envelope)
            elif verb in ("DATA", "BDAT"):
                taken = len(self.taken)
                closed = await self._end(reader, writer, line, envelope)
                before += len(self.taken) > taken
                closed = closed or (self.most and before >= self.most)
                envelope = {}
            elif verb == "QUIT":
                await self._say(writer, "221 2.0.0 bye")
                return
            else:
                envelope = {}
                await self._say(writer, "250 2.0.0 ok")
