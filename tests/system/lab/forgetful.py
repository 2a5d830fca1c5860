# SPDX-License-Identifier: ISC
"""A receiver that throws away what has come ahead of its answer to a message."""

import asyncio

from .moody import Moody


class Forgetful(Moody):
    """It announces PIPELINING, and has read on when it answers the end of a message: what it has then is gone.

    recipients are those of the messages that it took; lost counts how often it threw something away.
    """

    def __init__(self, port, **mood):
        super().__init__(port, **mood)
        self.recipients, self.lost = [], 0

    async def _answer_message(self, reader, writer, to):
        await asyncio.sleep(0.02)  # what goes with the end of the message has come
        waiting = reader._buffer  # asyncio has no other way
        self.lost += bool(waiting)
        waiting.clear()
        self.recipients += to
        await self._say(writer, "250 2.0.0 taken")

    async def _talk(self, reader, writer):
        await self._say(writer, "220 forgetful.test ESMTP")
        to = []
        while line := (await reader.readline()).decode(errors="replace"):
            verb = line[:4].upper()
            if verb == "EHLO":
                await self._say(writer, "250-forgetful.test\r\n250-PIPELINING\r\n250-ENHANCEDSTATUSCODES\r\n250 8BITMIME")
            elif verb == "DATA":
                await self._say(writer, "354 go on")
                await reader.readuntil(b"\r\n.\r\n")
                await self._answer_message(reader, writer, to)
            elif verb == "QUIT":
                await self._say(writer, "221 2.0.0 bye")
                return
            else:
                if verb == "RCPT":
                    to.append(line.split("<")[1].split(">")[0])
                elif verb in ("MAIL", "RSET"):
                    to = []
                await self._say(writer, "250 2.0.0 ok")
