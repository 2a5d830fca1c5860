# SPDX-License-Identifier: ISC
"""Programs that are the relay with orders of a test's on its control socket."""

import os
import socket
import struct

import pytest

from .relay import REPOSITORY, binary


def with_orders(name):
    """Return the path of such a program, built as the one under test is."""
    plain = os.path.samefile(os.path.dirname(binary()), REPOSITORY)
    folder = os.path.join(REPOSITORY, "build/plain") if plain else os.path.dirname(binary())
    path = os.path.join(folder, "tests/system", name)
    if not os.path.exists(path):
        pytest.skip(f"{path} was not built")
    return path


def order(relay, *words):
    """Send an order to the control socket of a relay; return what it says."""
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(60)
        control.connect(os.path.join(relay.spool, "control"))
        control.sendall(b"".join(b"=" + word.encode() + b"\0" for word in words) + b"\0")
        answer = b"".join(iter(lambda: control.recv(65536), b""))
    text = b""
    while answer:
        length, = struct.unpack(">I", answer[:4])
        text += answer[4 : 4 + (length & 0x7FFFFFFF)]
        answer = answer[4 + (length & 0x7FFFFFFF) :]
        if length == 0:
            break
    return text.decode()
