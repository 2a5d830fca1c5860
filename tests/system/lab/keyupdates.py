# SPDX-License-Identifier: ISC
"""A side of TLS 1.3 that updates its keys as often as a test wants, with OpenSSL's own library."""

import ctypes
import ctypes.util

RECORD = 27  # bytes of a record with a KeyUpdate: 5 before it, 5, the type, and 16 behind it
_PENDING, _FILE_PEM, _WANT_READ = 10, 1, 2
_ssl = ctypes.CDLL(ctypes.util.find_library("ssl"))
_crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
for _library, _names in (
    (_ssl, ("TLS_client_method", "TLS_server_method", "SSL_CTX_new", "SSL_new")),
    (_crypto, ("BIO_new", "BIO_s_mem")),
):
    for _name in _names:
        getattr(_library, _name).restype = ctypes.c_void_p
_crypto.BIO_ctrl.restype = ctypes.c_long


def _pointer(value):
    assert value, "OpenSSL gave nothing"
    return ctypes.c_void_p(value)


class KeyUpdates:
    """TLS over a socket: shake hands, say something, and make records that update keys. A server has a certificate."""

    def __init__(self, socket, certificate=None, key=None):
        """Shake hands."""
        self.socket = socket
        method = _ssl.TLS_server_method() if certificate else _ssl.TLS_client_method()
        self.context = _pointer(_ssl.SSL_CTX_new(_pointer(method)))
        if certificate:
            assert _ssl.SSL_CTX_use_certificate_chain_file(self.context, str(certificate).encode()) == 1
            assert _ssl.SSL_CTX_use_PrivateKey_file(self.context, str(key).encode(), _FILE_PEM) == 1
        self.ssl = _pointer(_ssl.SSL_new(self.context))
        memory = _pointer(_crypto.BIO_s_mem())
        self.came, self.goes = (_pointer(_crypto.BIO_new(memory)) for _ in range(2))
        _ssl.SSL_set_bio(self.ssl, self.came, self.goes)
        (_ssl.SSL_set_accept_state if certificate else _ssl.SSL_set_connect_state)(self.ssl)
        self._until_done(_ssl.SSL_do_handshake)

    def close(self):
        """Forget all of it; the socket stays."""
        _ssl.SSL_free(self.ssl)
        _ssl.SSL_CTX_free(self.context)

    def _made(self):
        pending = _crypto.BIO_ctrl(self.goes, _PENDING, ctypes.c_long(0), None)
        made = ctypes.create_string_buffer(pending)
        assert not pending or _crypto.BIO_read(self.goes, made, pending) == pending
        return made.raw

    def _until_done(self, call, *arguments):
        while True:
            result = call(self.ssl, *arguments)
            self.socket.sendall(self._made())
            if result > 0:
                return result
            assert _ssl.SSL_get_error(self.ssl, result) == _WANT_READ, "TLS failed"
            more = self.socket.recv(65536)
            assert more, "the other side closed"
            _crypto.BIO_write(self.came, more, len(more))

    def say(self, data):
        """Send bytes under TLS."""
        self._until_done(_ssl.SSL_write, data, len(data))

    def hear(self):
        """Read some bytes under TLS."""
        room = ctypes.create_string_buffer(16384)
        return room.raw[: self._until_done(_ssl.SSL_read, room, 16384)]

    def records(self, count):
        """So many updates, one record each, to be sent when the test likes."""
        for _ in range(count):
            assert _ssl.SSL_key_update(self.ssl, 0) == 1 and _ssl.SSL_do_handshake(self.ssl) == 1
        made = self._made()
        assert len(made) == count * RECORD
        return made
