# SPDX-License-Identifier: ISC
"""The Received field that the relay puts in front of a message."""

import re


def split(content):
    """Return the first header field, unfolded, as text, and the bytes behind it."""
    end = 0
    while True:
        end = content.index(b"\r\n", end) + 2
        if content[end:end + 1] not in (b" ", b"\t"):
            break
    field = content[:end]
    assert field.lower().startswith(b"received:"), f"no Received field in front: {field!r:.200}"
    return " ".join(field.decode("utf-8", "backslashreplace").split()), content[end:]


def without(content):
    """Return the content as it was before the relay put its field in front."""
    return split(content)[1]


def identity(content):
    """Return the id that the relay gave to the message."""
    field, _ = split(content)
    match = re.search(r"\bid ([^\s;]+)", field)
    assert match, f"no id in {field}"
    return match[1]
