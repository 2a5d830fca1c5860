# SPDX-License-Identifier: ISC
"""Dialogues: what a client says and what the relay must answer, as text files.

Each line is one step; tests/README.md describes the format in full.
"""

import dataclasses
import re
import time

from .config import Config, Raw
from .net import wait_until
from .smtp import Closed

# Names that belong to a listener; all others without a dot are global.
LISTENER_SETTINGS = {
    "address", "auth", "bare_newline", "certificate", "chunking", "client_connection_limit",
    "client_rate_limit", "error_limit", "junk_limit", "key", "line_limit", "networks",
    "proxy_protocol", "recipient_limit", "timeout", "tls",
}

_ESCAPE = re.compile(r"\\(?:([rnt0\\])|x([0-9A-Fa-f]{2})|\{(\d+)\*((?:[^}\\]|\\.)*)\})")
_PLAIN = {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0", "\\": b"\\"}


@dataclasses.dataclass
class Step:
    """One line of a dialogue, with its number for the report of a failure."""

    number: int
    verb: str
    text: str


@dataclasses.dataclass
class Dialogue:
    """A file: the settings it wants, as they are written in a configuration, and its steps."""

    path: str
    settings: tuple
    steps: list

    def key(self):
        """Return what dialogues that can share a relay have in common."""
        return tuple(sorted(self.settings))


def unescape(text):
    r"""Return the bytes that a text with \r \n \t \0 \\ \xHH and \{N*text} stands for."""
    parts, place = [], 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[place:match.start()].encode("utf-8"))
        place = match.end()
        letter, code, times, repeated = match.groups()
        if letter:
            parts.append(_PLAIN[letter])
        elif code:
            parts.append(bytes([int(code, 16)]))
        else:
            parts.append(unescape(repeated) * int(times))
    return b"".join(parts) + text[place:].encode("utf-8")


def parse(path):
    """Read a dialogue from a file; a line that is no step is an error."""
    settings, steps = [], []
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream.read().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            step = _parse_line(path, number, line)
            if step.verb == "config":
                name, _, value = (part.strip() for part in step.text.partition("="))
                settings.append((name, value))
            else:
                steps.append(step)
    return Dialogue(str(path), tuple(settings), steps)


def _parse_line(path, number, line):
    for mark, verb in (("C:", "line"), ("C>", "exact"), ("S:", "reply")):
        if line.startswith(mark):
            return Step(number, verb, line[len(mark):].removeprefix(" "))
    match = re.fullmatch(r"!([a-z]+)\s*(.*)", line)
    assert match and match[1] in ACTIONS | {"config"}, f"{path}:{number}: what is {line!r}?"
    return Step(number, match[1], match[2])


def configuration(settings):
    """Return the Config with these settings, word for word, and a listener "smtp"."""
    config = Config()
    for name, value in settings:
        section, _, last = name.rpartition(".")
        if not section and name in LISTENER_SETTINGS:
            section = "listener.smtp"
        kind, _, title = section.partition(".")
        _section(config, kind, title)[last] = Raw(value)
    return config


def _section(config, kind, title):
    if not kind:
        return config.settings
    if not title:
        return {"queue": config.queue, "dns": config.dns}[kind]
    titled = {
        "listener": config.listeners,
        "transport": config.transports,
        "route": config.routes,
        "alias": config.aliases,
    }
    return titled[kind].setdefault(title, {})


class Player:
    """Plays one dialogue with a relay."""

    def __init__(self, relay):
        """Open the connection."""
        self.relay = relay
        self.queued_before = len(relay.events("queued"))
        self.client = relay.client()

    def play(self, dialogue):
        """Do each step; a failure says which line of which file."""
        try:
            for step in dialogue.steps:
                try:
                    getattr(self, f"_{step.verb}")(step.text)
                except (AssertionError, OSError, Closed, ValueError) as error:
                    place = f"{dialogue.path}:{step.number}"
                    raise AssertionError(f"{place}: {step.text!r:.200}: {error}") from error
        finally:
            self.client.close()

    def _line(self, text):
        self.client.send(unescape(text) + b"\r\n")

    def _exact(self, text):
        self.client.send(unescape(text))

    def _reply(self, pattern):
        reply = self.client.read_reply()
        assert re.match(pattern, reply.text, re.DOTALL), f"the reply was {reply.text!r:.500}"

    def _exhaust(self, text):
        times, _, line = text.partition(" ")
        for _ in range(int(times)):
            self._line(line)
            reply = self.client.read_reply()
            if reply.code == 421:
                assert reply.text.startswith("421 4.7.0"), f"the reply was {reply.text!r:.500}"
                return self._close("")
        raise AssertionError("the relay bore it all")

    def _gone(self, _):
        self.client.wait_closed()

    def _close(self, _):
        rest = self.client.wait_closed()
        assert not rest, f"before the end came {rest!r:.500}"

    def _tls(self, _):
        self.client.shake_hands()

    def _wait(self, text):
        time.sleep(float(text) / 1000)

    def _silence(self, text):
        time.sleep(float(text) / 1000)
        self.client.socket.settimeout(0.01)
        try:
            self.client.received += self.client.socket.recv(65536) or b"(closed)"
        except TimeoutError:
            pass
        self.client.socket.settimeout(60)
        assert not self.client.received, f"there came {self.client.received!r:.500}"

    def _reset(self, _):
        self.client.reset()

    def _reconnect(self, _):
        self.client.close()
        self.client = self.relay.client()

    def _queued(self, text):
        count = int(text)
        wait_until(lambda: self._count_queued() >= count, 60, f"{count} messages queued")
        assert self._count_queued() == count, f"{self._count_queued()} messages queued"

    def _count_queued(self):
        return len(self.relay.events("queued")) - self.queued_before


ACTIONS = {
    "close", "exhaust", "gone", "queued", "reconnect", "reset", "silence", "tls", "wait",
}
