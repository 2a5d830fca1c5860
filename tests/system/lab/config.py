# SPDX-License-Identifier: ISC
"""Configuration files for the relay, made from Python values."""

import dataclasses


class Raw(str):
    """A value as it is to stand in the file, word for word."""


def _value(value):
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(_value(item) for item in value) + " }"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _settings(settings, indent):
    return "".join(f"{indent}{name} = {_value(value)}\n" for name, value in settings.items())


def _section(kind, title, settings):
    head = f'{kind} "{title}"' if title else kind
    return f"{head} {{\n{_settings(settings, '    ')}}}\n"


@dataclasses.dataclass
class Config:
    """What a test sets; everything else has the relay's default.

    Values are text, numbers, booleans, or lists of them. Durations and sizes are text: "5m".
    """

    settings: dict = dataclasses.field(default_factory=dict)
    listeners: dict = dataclasses.field(default_factory=lambda: {"smtp": {}})
    transports: dict = dataclasses.field(default_factory=dict)
    routes: dict = dataclasses.field(default_factory=dict)
    aliases: dict = dataclasses.field(default_factory=dict)
    queue: dict = dataclasses.field(default_factory=dict)
    dns: dict = dataclasses.field(default_factory=dict)
    auth: dict = dataclasses.field(default_factory=dict)
    extra: str = ""

    def route_all_to(self, *ports):
        """Send all mail to these ports of the loopback address, in order. Returns self."""
        self.routes["*"] = {"relay": [f"[127.0.0.1]:{port}" for port in ports]}
        return self

    def resolve_with(self, nsd):
        """Ask this name server of the lab. Returns self."""
        self.dns.update({"server": [nsd.address], "port": nsd.port})
        return self

    def hurried(self):
        """Leave failing hosts alone only briefly, and have no patience with dead sites, unless that is
        set: most tests wait for what comes of it. Returns self."""
        for settings in [self.transports.setdefault("smtp", {}), *self.transports.values()]:
            if "like" not in settings:
                settings.setdefault("site_patience", "0s")
                settings.setdefault("host_backoff_max", "200ms")
        return self

    def text(self):
        """Return the configuration file."""
        parts = [_settings(self.settings, "")]
        parts += [_section("listener", name, body) for name, body in self.listeners.items()]
        parts += [_section("transport", name, body) for name, body in self.transports.items()]
        parts += [_section("route", name, body) for name, body in self.routes.items()]
        parts += [_section("alias", name, body) for name, body in self.aliases.items()]
        parts += [_section("queue", "", self.queue)] if self.queue else []
        parts += [_section("dns", "", self.dns)] if self.dns else []
        parts += [_section("auth", "", self.auth)] if self.auth else []
        return "\n".join(parts + [self.extra])
