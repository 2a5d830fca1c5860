# SPDX-License-Identifier: ISC
"""A receiver with moods: it turns away, refuses, thinks, is out; and knows how long each message took."""

import asyncio
import random
import threading
import time

from .net import LOOPBACK, wait_until


class Moody:
    """An SMTP server on a thread of its own.

    Times are seconds since begin(). turned_away(age, serving) says whether a connection gets 421;
    listens(age) whether any is taken at all, those that are open end when it says no, and listening
    says what has become of that; part of connections that are accepted are closed at once. Each reply
    takes reply_delay, each message work beside it. silent: it takes connections and says nothing.
    """

    def __init__(self, port, turned_away=None, listens=None, dropped=0.0, reply_delay=0.0, work=0.0,
                 silent=False, address=LOOPBACK):
        """Listen as soon as it is begun and listens() says so."""
        self.port, self.address = port, address
        self.turned_away = turned_away or (lambda age, serving: False)
        self.listens = listens or (lambda age: True)
        self.dropped, self.reply_delay, self.work, self.silent = dropped, reply_delay, work, silent
        self.delays, self.connections, self.refused = [], 0, []
        self.serving, self.began = 0, None
        self.busy, self.most_busy, self.busy_seconds, self.busy_since = 0, 0, 0.0, None
        self.chance = random.Random(1)
        self.writers = set()
        self.listening = False
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def begin(self):
        """Its time begins now; who listens from the beginning does when this returns."""
        self.began = time.monotonic()
        at_once = self.listens(0)
        self.thread.start()
        if at_once:
            wait_until(lambda: self.listening, what="the receiver to listen")
        return self

    def age(self):
        """Return the seconds since then."""
        return time.monotonic() - self.began

    def close(self):
        """Stop, and drop what is open."""
        if self.began is not None:
            self.loop.call_soon_threadsafe(self._stop.set)
            self.thread.join(60)

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._main())

    async def _main(self):
        self._stop = asyncio.Event()
        server = None
        while not self._stop.is_set():
            wanted = self.listens(self.age())
            if wanted and server is None:
                server = await asyncio.start_server(self._serve, self.address, self.port, backlog=512,
                                                    reuse_address=True)
                self.listening = True
            elif not wanted and server is not None:
                server.close()
                server = None
                for writer in list(self.writers):
                    writer.transport.abort()
                self.listening = False
            await asyncio.sleep(0.01)
        if server:
            server.close()
        for writer in list(self.writers):
            writer.transport.abort()
        talks = asyncio.all_tasks() - {asyncio.current_task()}
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    async def _say(self, writer, text):
        if self.reply_delay:
            await asyncio.sleep(self.reply_delay)
        writer.write(text.encode() + b"\r\n")
        await writer.drain()

    async def _serve(self, reader, writer):
        self.connections += 1
        self.writers.add(writer)
        try:
            if self.silent:
                await reader.read(1)
            elif self.chance.random() < self.dropped:
                self.refused.append(self.age())
            elif self.turned_away(self.age(), self.serving):
                self.refused.append(self.age())
                await self._say(writer, "421 4.3.2 too many connections")
            else:
                self.serving += 1
                try:
                    await self._talk(reader, writer)
                finally:
                    self.serving -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    def _count_busy(self, n):
        now = time.monotonic()
        if self.busy_since is not None:
            self.busy_seconds += self.busy * (now - self.busy_since)
        self.busy_since = now
        self.busy += n
        self.most_busy = max(self.most_busy, self.busy)

    async def _talk(self, reader, writer):
        await self._say(writer, "220 moody.test ESMTP")
        while line := (await reader.readline()).decode(errors="replace"):
            verb = line[:4].upper()
            if verb == "EHLO":
                await self._say(writer, "250-moody.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n"
                                        "250-ENHANCEDSTATUSCODES\r\n250 CHUNKING")
            elif verb in ("DATA", "BDAT"):
                self._count_busy(1)
                try:
                    await self._take(reader, writer, line)
                finally:
                    self._count_busy(-1)
            elif verb == "QUIT":
                await self._say(writer, "221 2.0.0 bye")
                return
            else:
                await self._say(writer, "250 2.0.0 ok")

    async def _take(self, reader, writer, line):
        if line[:4].upper() == "BDAT":
            content = await reader.readexactly(int(line.split()[1]))
        else:
            await self._say(writer, "354 go on")
            content = await reader.readuntil(b"\r\n.\r\n")
        if self.work:
            await asyncio.sleep(self.work)
        for field in content.split(b"\r\n"):
            if field.lower().startswith(b"x-sent: "):
                self.delays.append(time.monotonic() - float(field.split()[1]))
        await self._say(writer, "250 2.0.0 taken")
