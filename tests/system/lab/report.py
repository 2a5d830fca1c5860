# SPDX-License-Identifier: ISC
"""Reports to the sender, as RFC 3464 has them, taken apart."""

import email
import email.policy
import re


class Report:
    """A bounce: its header, its notice, its fields, and what it returns of the original.

    The fields of the message are in "message", those of each recipient in "recipients". Every
    line is checked to be no longer than RFC 5322 allows, and to end as it should.
    """

    def __init__(self, content):
        """Parse; what is no report at all fails here."""
        _check_lines(content)
        self.content = content
        self.header = email.message_from_bytes(content, policy=email.policy.default)
        assert not self.header.defects, self.header.defects
        assert self.header.get_content_type() == "multipart/report"
        assert self.header.get_param("report-type") == "delivery-status"
        assert self.header["Auto-Submitted"] == "auto-replied"
        assert self.header["Date"] and self.header["Message-ID"] and self.header["From"]
        pieces = _pieces(content, self.header.get_boundary())
        assert len(pieces) == 3, f"{len(pieces)} parts"
        notice, status, self.returned = (Part(piece) for piece in pieces)
        assert notice.type == "text/plain"
        assert status.type in ("message/delivery-status", "message/global-delivery-status")
        self.notice = notice.body.decode("utf-8")
        blocks = [_fields(block) for block in re.split(rb"\r\n\r\n+", status.body) if block.strip()]
        self.message, self.recipients = blocks[0], blocks[1:]

    def recipient(self, address):
        """Return the fields of the one recipient with this address."""
        found = [
            fields for fields in self.recipients
            if fields["final-recipient"].partition(";")[2].strip() == address
        ]
        assert len(found) == 1, f"{address} among {self.recipients}"
        return found[0]


class Part:
    """One part: its type and its body as bytes."""

    def __init__(self, piece):
        """Split header and body."""
        header, _, self.body = piece.partition(b"\r\n\r\n")
        self.type = _fields(header)["content-type"].partition(";")[0].strip()


def _check_lines(content):
    assert content.endswith(b"\r\n")
    for line in content.split(b"\r\n"):
        assert len(line) <= 998, f"a line of {len(line)} bytes"
        assert not set(line) & {0, 10, 13}, f"a stray CR, LF or NUL in {line!r:.200}"


def _pieces(content, boundary):
    """Return what lies between the boundaries, without preamble and epilogue."""
    mark = b"\r\n--" + boundary.encode("ascii")
    pieces = content.split(mark)
    assert pieces[-1].startswith(b"--"), "no end"
    return [piece.removeprefix(b"\r\n") for piece in pieces[1:-1]]


def _fields(block):
    """Return the fields of a header by their names in lower case, unfolded."""
    text = re.sub(r"\r\n[ \t]+", " ", block.decode("utf-8")).strip("\r\n")
    pairs = [line.partition(":") for line in text.split("\r\n") if line]
    assert all(colon for _, colon, _ in pairs), f"no field: {text!r}"
    names = [name.lower() for name, _, _ in pairs]
    assert len(set(names)) == len(names), f"a field twice: {names}"
    return {name.lower(): value.strip() for name, _, value in pairs}
