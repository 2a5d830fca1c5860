# SPDX-License-Identifier: ISC
"""A server that plays a fixed script, for peers that no honest server resembles."""

import re
import socket
import struct
import threading
import time

from .net import LOOPBACK, wait_until


class ScriptedServer:
    """Plays the first script to the first connection, and so on; the last one to all others.

    A script is a list of steps:
      ("send", bytes)           send exactly this
      ("flood", bytes, seconds) send this again and again, until the peer closes or time is up
      ("trickle", bytes, pause) send this byte by byte, until the peer closes
      ("expect", pattern)       read until the pattern is found, and take all up to its end
      ("nothing", seconds)      fail when the peer sends anything within that time
      ("sleep", seconds)
      ("await", event)          until the test sets it
      ("starttls", context)     shake hands as the server
      ("bridge", port)          pass all on to this port and back, until either closes
      ("drain",)                read until the peer closes
      ("polite",)               answer each further line with 250, QUIT with 221
      ("close",)                close; so does the end of the script
      ("reset",)                close with RST
    """

    def __init__(self, *scripts, address=LOOPBACK, path=None, timeout=60.0):
        """Listen and play at once, with a path on a Unix socket. The timeout is for each read."""
        self.scripts = scripts
        self.timeout = timeout
        self.plays = []
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            self.listener.listen(128)
        else:
            self.listener = socket.create_server((address, 0), backlog=128)
            self.address, self.port = self.listener.getsockname()[:2]
        threading.Thread(target=self._accept, name="script", daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            script = self.scripts[min(len(self.plays), len(self.scripts) - 1)]
            play = Play(script, connection, self.timeout)
            self.plays.append(play)
            threading.Thread(target=play.run, daemon=True).start()

    @property
    def failures(self):
        """What went otherwise than the scripts say, as text."""
        return [play.failure for play in self.plays if play.failure]

    def wait_played(self, count=1, timeout=60.0):
        """Wait until so many connections are over, check them, and return their plays."""
        wait_until(
            lambda: sum(play.over.is_set() for play in self.plays) >= count,
            timeout,
            f"{count} connections to be over",
        )
        assert not self.failures, self.failures
        return self.plays

    def close(self):
        """Stop listening and drop the connections that are left."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for play in self.plays:
            play.drop()


class Play:
    """One connection, what came over it, and what failed."""

    def __init__(self, script, connection, timeout):
        """Take over the connection."""
        self.script = script
        self.socket = connection
        self.socket.settimeout(timeout)
        self.timeout = timeout
        self.received = b""
        self.sent = 0
        self.failure = ""
        self.over = threading.Event()
        self._unread = b""

    def run(self):
        """Play the script."""
        try:
            for verb, *arguments in self.script:
                getattr(self, f"_{verb}")(*arguments)
        except (OSError, AssertionError) as error:
            self.failure = f"at {verb} {arguments!r:.200}: {error!r}, after {self.received!r:.500}"
        finally:
            self.socket.close()
            self.over.set()

    def drop(self):
        """Close the connection from outside."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _read(self):
        more = self.socket.recv(65536)
        self.received += more
        self._unread += more
        return more

    def _send(self, data):
        self.socket.sendall(data)
        self.sent += len(data)

    def _flood(self, data, seconds):
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                self._send(data)
        except OSError:
            pass

    def _trickle(self, data, pause):
        try:
            for byte in data:
                self._send(bytes([byte]))
                time.sleep(pause)
        except OSError:
            pass

    def _expect(self, pattern):
        if isinstance(pattern, str):
            pattern = pattern.encode("utf-8")
        while not (match := re.search(pattern, self._unread)):
            assert self._read(), "the peer closed"
        self._unread = self._unread[match.end():]

    def _nothing(self, seconds):
        assert not self._unread, f"unexpected: {self._unread!r}"
        self.socket.settimeout(seconds)
        try:
            more = self._read()
            assert not more, f"unexpected: {more!r}"
        except TimeoutError:
            pass
        self.socket.settimeout(self.timeout)

    def _await(self, event):
        assert event.wait(self.timeout), "the test did not go on"

    def _sleep(self, seconds):
        time.sleep(seconds)

    def _starttls(self, context):
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def _bridge(self, port):
        with socket.create_connection((LOOPBACK, port), self.timeout) as other:
            threading.Thread(target=self._copy, args=(other, self.socket), daemon=True).start()
            self._copy(self.socket, other)

    @staticmethod
    def _copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _drain(self):
        try:
            while self._read():
                pass
        except ConnectionResetError:
            pass

    def _polite(self):
        try:
            while True:
                line, mark, rest = self._unread.partition(b"\r\n")
                if mark:
                    self._unread = rest
                    self._send(b"221 bye\r\n" if line == b"QUIT" else b"250 ok\r\n")
                elif not self._read():
                    return
        except (ConnectionResetError, BrokenPipeError):
            pass

    def _close(self):
        self.socket.close()

    def _reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
