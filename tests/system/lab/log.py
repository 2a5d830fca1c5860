# SPDX-License-Identifier: ISC
"""The relay's log, line by line, as events."""

import dataclasses
import json
import re

_FIELD = re.compile(r'([^\s=]+)=("(?:[^"\\]|\\.)*"|\S*)')
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


@dataclasses.dataclass
class Event:
    """One line of the log: its event's name and its keys with their values as text."""

    time: str
    level: str
    name: str
    keys: dict

    def __getitem__(self, key):
        return self.keys[key]

    def get(self, key, default=None):
        """Return the value of a key, or the default when the event has no such key."""
        return self.keys.get(key, default)

    def matches(self, name, wanted):
        """Say whether this is such an event and each key wanted has the value wanted.

        A value wanted is compared as text, searched for when it is a compiled pattern, and
        called with the value when it is a function.
        """
        return self.name == name and all(
            key in self.keys and _fits(self.keys[key], want) for key, want in wanted.items()
        )


def _fits(value, want):
    if isinstance(want, re.Pattern):
        return want.search(value) is not None
    if callable(want):
        return bool(want(value))
    return value == str(want)


def _unescape(match):
    text = match.group(1)
    if text[0] == "x" and len(text) == 3:
        return chr(int(text[1:], 16))
    return _CONTROL.get(text, text)


def _unquote(value):
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        return _ESCAPE.sub(_unescape, value[1:-1])
    return value


def parse_text(line):
    """Parse a line of the form TIME LEVEL EVENT key=value ...; None when it is none."""
    parts = line.split(None, 3)
    if len(parts) < 3 or "=" in parts[2]:
        return None
    rest = parts[3] if len(parts) > 3 else ""
    keys = {key: _unquote(value) for key, value in _FIELD.findall(rest)}
    return Event(parts[0], parts[1], parts[2], keys)


def _plain(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def parse_json(line):
    """Parse a line that is a JSON object; None when it is none."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict) or "event" not in fields:
        return None
    keys = {key: _plain(value) for key, value in fields.items()}
    head = (keys.pop(name, "") for name in ("time", "level", "event"))
    return Event(*head, keys)


def parse(text):
    """Return the events of a log in either format; lines that are no events are left out."""
    events = (
        parse_json(line) if line.startswith("{") else parse_text(line)
        for line in text.split("\n")
    )
    return [event for event in events if event is not None]
