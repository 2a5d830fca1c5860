# SPDX-License-Identifier: ISC
"""One connection of a sink: the server's side of SMTP and LMTP."""

import base64
import queue
import re
import select
import socket
import struct
import threading
import time

_PATH = re.compile(r"(?:FROM|TO):\s*<([^>]*)>\s*(.*)", re.IGNORECASE)


class _Gone(Exception):
    """The connection has ended, from either side."""


class SinkSession:
    """Reads commands and answers them, as the sink's behaviour says."""

    def __init__(self, sink, number, connection, peer):
        """Take over the connection; start() serves it."""
        self.sink = sink
        self.behaviour = sink.behaviour
        self._latency = sink.behaviour.latency  # as it was when this began: replies stay in order
        self.number = number
        self.peer = peer
        self.socket = connection
        self.commands = []
        self.unread = bytearray()
        self.tls = False
        self.user = None
        self.completed = 0
        self.early = False  # the command came before the reply in front of it was given
        self._more = False
        self.ended = threading.Event()
        self._replies = queue.Queue()
        self._writer = threading.Thread(target=self._write_late, daemon=True)
        self._forget_transaction()

    def start(self):
        """Serve the connection in a thread of its own."""
        threading.Thread(target=self._serve, name=f"sink-{self.number}", daemon=True).start()
        if self._latency:
            self._writer.start()

    def drop(self):
        """Close the connection from outside."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def verbs(self):
        """Return the verbs of the commands received, in order."""
        return [line.split(" ")[0].upper() for _, line in self.commands]

    def _forget_transaction(self):
        self.sender = None
        self.sender_params = {}
        self.recipients = []
        self.recipient_params = {}
        self.chunks = []

    # Reading and writing.

    def _serve(self):
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.behaviour.implicit_tls:
                self._shake_hands()
            self._greet()
            while True:
                self._command(self._read_line())
        except (_Gone, OSError):
            pass
        finally:
            self.ended.set()
            if self._writer.is_alive():
                self._replies.put(None)
                self._writer.join()
            self.socket.close()

    def _read_more(self):
        more = self.socket.recv(262144)
        if not more:
            raise _Gone
        self.unread += more

    def _read_until(self, mark):
        start = 0
        while (end := self.unread.find(mark, start)) < 0:
            start = max(0, len(self.unread) - len(mark))
            self._read_more()
        return self._take(end + len(mark))

    def _read_line(self):
        return self._read_until(b"\r\n")[:-2].decode("utf-8", "backslashreplace")

    def _read_bytes(self, count):
        while len(self.unread) < count:
            self._read_more()
        return self._take(count)

    def _take(self, count):
        taken = bytes(self.unread[:count])
        del self.unread[:count]
        return taken

    def _write(self, text):
        data = text.encode("utf-8") + b"\r\n"
        self._more = self._pending()
        if self._latency:
            self._replies.put((time.monotonic() + self._latency, data))
        else:
            self.socket.sendall(data)

    def _pending(self):
        """Say whether something has come that was not read yet."""
        return bool(self.unread) or bool(select.select([self.socket], [], [], 0)[0])

    def _hear_out(self):
        """Read what is still under way: a close with that unread would take our replies from the client."""
        self.socket.shutdown(socket.SHUT_WR)
        self.socket.settimeout(1.0)
        while self.socket.recv(262144):
            pass

    def _write_late(self):
        while (item := self._replies.get()) is not None:
            due, data = item
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                self.socket.sendall(data)
            except OSError:
                return

    def _choose(self, stage, address, usual):
        """Return the reply that a rule wants, or the usual one, and the rule if there is one."""
        rule = self.behaviour.rule(stage, address, self.early, self.peer)
        if rule is None:
            return usual, None
        if rule.reply is None:
            return "" if rule.close or rule.reset else usual, rule
        return rule.reply, rule

    def _give(self, reply, rule):
        """Send a reply that was chosen, with the delay or the end of the rule."""
        time.sleep(rule.delay if rule else 0)
        if rule and rule.gate:
            rule.gate.wait()
        if reply:
            self._write(reply)
        if rule and rule.reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if rule and (rule.close or rule.reset):
            raise _Gone

    def _answer(self, stage, address, usual):
        """Answer as a rule says, or as usual; return the reply given."""
        reply, rule = self._choose(stage, address, usual)
        self._give(reply, rule)
        return reply

    # Commands.

    def _greet(self):
        limit = self.behaviour.connection_limit
        if limit is not None and self.sink.connections > limit:
            self._write("421 4.7.0 too many connections")
            raise _Gone
        if self.number not in self.sink.greeted_sessions():
            self.socket.recv(1)  # until the other side gives up
            raise _Gone
        reply = self._answer("connect", self.peer, "220 sink.test ESMTP")
        if reply.startswith("421"):
            raise _Gone

    def _command(self, line):
        self.commands.append((time.monotonic(), line))
        self.early = self._more
        verb, _, rest = line.partition(" ")
        handler = getattr(self, f"_do_{verb.lower()}", None) if verb.isalpha() else None
        if handler is None:
            self._write("500 5.5.2 unknown command")
        else:
            handler(rest)

    def _do_ehlo(self, _):
        self._forget_transaction()
        lines = ["sink.test", *self.behaviour.keywords(self.tls)]
        text = [f"250-{line}" for line in lines[:-1]] + [f"250 {lines[-1]}"]
        self._answer("ehlo", self.peer, "\r\n".join(text))

    _do_lhlo = _do_ehlo

    def _do_helo(self, _):
        self._forget_transaction()
        self._answer("helo", self.peer, "250 sink.test")

    def _do_starttls(self, _):
        if not self.behaviour.tls or self.tls:
            self._write("502 5.5.1 not offered")
            return
        reply = self._answer("starttls", self.peer, "220 2.0.0 go ahead")
        if reply.startswith("220"):
            self._shake_hands()

    def _shake_hands(self):
        self.unread.clear()
        self.socket = self.behaviour.tls.wrap_socket(self.socket, server_side=True)
        self.tls = True
        self._forget_transaction()

    def _do_auth(self, rest):
        mechanism, _, initial = rest.partition(" ")
        if self.behaviour.tokens is not None and mechanism.upper() == "XOAUTH2":
            self._take_token(base64.b64decode(initial).decode("ascii"))
            return
        if self.behaviour.users is None or mechanism.upper() != "PLAIN":
            self._write("504 5.5.4 not offered")
            return
        if not initial:
            self._write("334 ")
            initial = self._read_line()
        _, name, password = base64.b64decode(initial).decode("utf-8").split("\0")
        if self.behaviour.users.get(name) == password:
            usual = "235 2.7.0 welcome"
        else:
            usual = "535 5.7.8 wrong user or password"
        if self._answer("auth", name, usual).startswith("235"):
            self.user = name

    def _take_token(self, said):
        user, token = re.fullmatch("user=(.*)\1auth=Bearer (.*)\1\1", said).groups()
        if token in self.behaviour.tokens:
            self.user = user
            self._write("235 2.7.0 welcome")
        else:
            self._write("535 5.7.8 no such token")

    def _do_mail(self, rest):
        match = _PATH.match(rest)
        limit = self.behaviour.messages_per_connection
        if not match or self.sender is not None:
            self._write("503 5.5.1 not now" if match else "501 5.5.4 bad syntax")
        elif limit is not None and self.completed >= limit:
            self._write(self.behaviour.limit_reply)
            if self.behaviour.limit_reply.startswith("421"):
                self._hear_out()
                raise _Gone
        elif self._answer("mail", match[1], "250 2.1.0 ok").startswith("2"):
            self.sender, self.sender_params = match[1], _params(match[2])

    def _do_rcpt(self, rest):
        match = _PATH.match(rest)
        if not match or self.sender is None:
            self._write("501 5.5.4 bad syntax" if not match else "503 5.5.1 MAIL first")
        elif self._answer("rcpt", match[1], "250 2.1.5 ok").startswith("2"):
            self.recipients.append(match[1])
            self.recipient_params[match[1]] = _params(match[2])

    def _do_data(self, _):
        if not self.recipients:
            self._write("554 5.5.1 no valid recipients")
            return
        if not self._answer("data", self.sender, "354 go on").startswith("3"):
            return
        # The line end before the content is put in front, so that a dot may be the first line.
        self.unread[:0] = b"\r\n"
        wire = self._read_until(b"\r\n.\r\n")
        content = wire[:-3].replace(b"\r\n.", b"\r\n")
        self._end("DATA", content[2:], wire[2:])

    def _do_bdat(self, rest):
        size, _, last = rest.partition(" ")
        chunk = self._read_bytes(int(size))
        if "CHUNKING" not in self.behaviour.extensions or not self.recipients:
            self._write("503 5.5.1 not now")
            return
        self.chunks.append(chunk)
        if last.upper() == "LAST":
            content = b"".join(self.chunks)
            self._end("BDAT", content, content)
        elif not self._answer("bdat", self.sender, "250 2.0.0 ok").startswith("2"):
            self._forget_transaction()

    def _end(self, verb, content, wire):
        asked = self.recipients if self.behaviour.lmtp else [self.sender]
        answers = [self._choose("end", address, "250 2.0.0 stored") for address in asked]
        # Stored before the reply: a client that has it may look here at once.
        self.sink.store(
            session=self.number,
            sender=self.sender,
            sender_params=self.sender_params,
            recipients=self.recipients,
            recipient_params=self.recipient_params,
            content=content,
            wire=wire,
            verb=verb,
            tls=self.tls,
            user=self.user,
            reply="\n".join(reply for reply, _ in answers),
        )
        self.completed += 1
        self._forget_transaction()
        for reply, rule in answers:
            self._give(reply, rule)

    def _do_rset(self, _):
        self._forget_transaction()
        self._answer("rset", self.peer, "250 2.0.0 ok")

    def _do_noop(self, _):
        self._answer("noop", self.peer, "250 2.0.0 ok")

    def _do_vrfy(self, _):
        self._write("252 2.1.5 try it")

    def _do_quit(self, _):
        # Set before the reply: a client that has it may connect anew, and must not count twice.
        self.ended.set()
        self._answer("quit", self.peer, "221 2.0.0 bye")
        raise _Gone


def _params(text):
    """Return the parameters of MAIL or RCPT, by their names in capitals."""
    pairs = (word.partition("=") for word in text.split())
    return {name.upper(): value for name, _, value in pairs}
