# SPDX-License-Identifier: ISC
"""A raw SMTP client, which sends exactly what a test says."""

import dataclasses
import socket
import ssl
import struct

DEFAULT_CONTENT = b"Subject: a test\r\n\r\nHello.\r\n"


class Closed(Exception):
    """The server closed the connection where a reply was expected."""


@dataclasses.dataclass
class Reply:
    """One reply: its code and the text of each line."""

    code: int
    lines: list
    raw: bytes

    @property
    def text(self):
        """The lines as they came, joined by a newline."""
        return self.raw.decode("utf-8", "backslashreplace").replace("\r\n", "\n").rstrip("\n")

    def __str__(self):
        return self.text


class Client:
    """One connection. Text is sent as a line; bytes are sent as they are."""

    def __init__(self, host, port, timeout=60.0):
        """Connect; the greeting is still to be read."""
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close the connection without a word."""
        self.socket.close()

    def reset(self):
        """Close the connection with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        """Send a line of text, or bytes exactly."""
        if isinstance(data, str):
            data = data.encode("utf-8") + b"\r\n"
        self.socket.sendall(data)

    def _read_line(self):
        while b"\n" not in self.received:
            try:
                more = self.socket.recv(65536)
            except (ConnectionResetError, BrokenPipeError) as error:
                raise Closed(f"connection reset, after {self.received!r}") from error
            if not more:
                raise Closed(f"connection closed, after {self.received!r}")
            self.received += more
        line, _, self.received = self.received.partition(b"\n")
        return line + b"\n"

    def read_reply(self):
        """Read one complete reply, of however many lines."""
        raw, lines = b"", []
        while True:
            line = self._read_line()
            raw += line
            text = line.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
            assert text[:3].isdigit() and text[3:4] in ("", " ", "-"), f"no reply: {line!r}"
            lines.append(text[4:])
            if text[3:4] != "-":
                return Reply(int(text[:3]), lines, raw)

    def expect(self, code):
        """Read a reply and check its code: 250, or 2 for any of that class."""
        reply = self.read_reply()
        assert str(reply.code).startswith(str(code)), f"expected {code}, got: {reply}"
        return reply

    def command(self, line, code=2):
        """Send a line and check the reply to it."""
        self.send(line)
        return self.expect(code)

    def greet(self, name="client.test", verb="EHLO"):
        """Read the greeting, say EHLO, and return the reply to it."""
        self.expect(220)
        return self.command(f"{verb} {name}", 250)

    def starttls(self, context=None):
        """Say STARTTLS and shake hands."""
        self.command("STARTTLS", 220)
        self.shake_hands(context)

    def shake_hands(self, context=None):
        """Begin TLS; without a context of the test's the certificate is not checked."""
        assert not self.received, f"bytes before the handshake: {self.received!r}"
        self.socket = (context or unverified_context()).wrap_socket(
            self.socket, server_hostname="relay.test"
        )

    def send_mail(self, sender, recipients, content=None, code=250, mail_params=""):
        """Send one message in lock-step and return the reply to its end."""
        self.command(f"MAIL FROM:<{sender}>{mail_params}", 250)
        for recipient in recipients:
            self.command(f"RCPT TO:<{recipient}>", 2)
        self.command("DATA", 354)
        self.send(stuff(DEFAULT_CONTENT if content is None else content))
        return self.expect(code)

    def wait_closed(self):
        """Wait until the server closes, and return what it still sent."""
        rest = self.received
        self.received = b""
        try:
            while more := self.socket.recv(65536):
                rest += more
        except (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            pass
        except TimeoutError as error:
            raise AssertionError("the server did not close the connection") from error
        return rest


def stuff(content):
    """Return the content with its dots stuffed and the end of data behind it."""
    if isinstance(content, str):
        content = content.encode("utf-8")
    if content and not content.endswith(b"\r\n"):
        content += b"\r\n"
    stuffed = content.replace(b"\r\n.", b"\r\n..")
    return (b"." if stuffed.startswith(b".") else b"") + stuffed + b".\r\n"


def unverified_context():
    """Return a client's TLS context that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
