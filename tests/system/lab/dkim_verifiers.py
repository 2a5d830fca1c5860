# SPDX-License-Identifier: ISC
"""Other people's verifiers of DKIM signatures: dkimpy, OpenDKIM's library, Mail::DKIM."""

import ctypes
import os
import struct
import subprocess

import dkim

# opendkim/dkim.h, libopendkim 2.11
_SET, _QUERY_METHOD, _QUERY_INFO, _BY_FILE = 1, 6, 7, 1
_OK, _PASSED, _BODY_MATCHES = 0, 0x04, 0


def algorithms(content):
    """The algorithms of a message's signatures, in the order of the fields."""
    head = content.partition(b"\r\n\r\n")[0].replace(b"\r\n\t", b" ").split(b"\r\n")
    return [b"ed25519" if b"a=ed25519" in line else b"rsa" for line in head if line.startswith(b"DKIM-Signature:")]


class DkimPy:
    """python3-dkim, which verifies both algorithms."""

    def __init__(self, records):
        """The records are texts by name."""
        self.records = {name.rstrip("."): text for name, text in records.items()}

    def _look_up(self, name, timeout=60):
        del timeout
        return self.records[name.decode().rstrip(".")].encode()

    def broken(self, content):
        """Say what is wrong with a message's signatures, or nothing."""
        wrong = []
        for index in range(len(algorithms(content))):
            try:
                if not dkim.DKIM(content).verify(idx=index, dnsfunc=self._look_up):
                    wrong.append(f"signature {index} does not hold")
            except dkim.DKIMException as error:
                wrong.append(f"signature {index}: {error!r}")
        return "; ".join(wrong)


class OpenDkim:
    """The library of OpenDKIM, with keys from a file."""

    def __init__(self, records, folder):
        """The records are texts by name; the folder is for their file."""
        path = os.path.join(folder, "opendkim-keys")
        with open(path, "w", encoding="ascii") as stream:
            stream.writelines(f"{name.rstrip('.')} {text}\n" for name, text in records.items())
        self.library = ctypes.CDLL("libopendkim.so.11")
        for name in ("dkim_init", "dkim_verify"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(self.library.dkim_init(None, None))
        method, file = ctypes.c_int(_BY_FILE), ctypes.create_string_buffer(path.encode(), 1024)
        self._set(_QUERY_METHOD, ctypes.byref(method), ctypes.sizeof(method))
        self._set(_QUERY_INFO, file, ctypes.sizeof(file))

    def _set(self, option, value, size):
        status = self.library.dkim_options(self.handle, _SET, option, value, ctypes.c_size_t(size))
        assert status == _OK, f"dkim_options({option}): {status}"

    def broken(self, content):
        """Say what is wrong with a message's signatures, or nothing."""
        status = ctypes.c_int()
        one = ctypes.c_void_p(self.library.dkim_verify(self.handle, b"id", None, ctypes.byref(status)))
        assert one, f"dkim_verify: {status.value}"
        try:
            return self._judge(one, content)
        finally:
            self.library.dkim_free(one)

    def _judge(self, one, content):
        for piece in (content, None):
            status = self.library.dkim_chunk(one, piece, ctypes.c_size_t(len(piece or b"")))
            if status != _OK:
                return f"dkim_chunk: {status}"
        self.library.dkim_eom(one, None)
        count, signatures = ctypes.c_int(), ctypes.POINTER(ctypes.c_void_p)()
        self.library.dkim_getsiglist(one, ctypes.byref(signatures), ctypes.byref(count))
        wrong = [] if count.value == len(algorithms(content)) else [f"it sees {count.value} signatures"]
        for index in range(count.value):
            signature = ctypes.c_void_p(signatures[index])
            flags, body = self.library.dkim_sig_getflags(signature), self.library.dkim_sig_getbh(signature)
            if not flags & _PASSED or body != _BODY_MATCHES:
                error = self.library.dkim_sig_geterror(signature)
                wrong.append(f"signature {index}: flags {flags:#x}, body {body}, error {error}")
        return "; ".join(wrong)

    def close(self):
        """Free what the library holds."""
        self.library.dkim_close(self.handle)


class MailDkim:
    """Perl's Mail::DKIM, which asks a name server; Debian's knows no Ed25519."""

    SCRIPT = os.path.join(os.path.dirname(__file__), "mail_dkim.pl")

    def __init__(self, nsd):
        """The name server has the keys."""
        self.process = subprocess.Popen(
            ["perl", self.SCRIPT, nsd.address, str(nsd.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def broken_among(self, contents):
        """Give it all of them; return what is wrong by index."""
        said, _ = self.process.communicate(b"".join(struct.pack(">I", len(one)) + one for one in contents), timeout=100)
        lines = said.decode("utf-8", "replace").splitlines()
        assert len(lines) == len(contents), f"{len(lines)} verdicts on {len(contents)} messages: {lines[-1:]}"
        return {index: line for index, line in enumerate(lines) if self._wrong(contents[index], line)}

    @staticmethod
    def _wrong(content, line):
        wanted = ["pass" if one == b"rsa" else None for one in algorithms(content)]
        got = line.split(" ") if line else []
        return len(got) != len(wanted) or any(need and need != have for need, have in zip(wanted, got))
