# SPDX-License-Identifier: ISC
"""A client that logs in: by the book, or as a test wants it."""

import base64
import hashlib
import hmac
import os
import subprocess

from .relay import binary


def encode(text):
    """Return bytes or text in base64."""
    data = text.encode("utf-8") if isinstance(text, str) else text
    return base64.b64encode(data).decode("ascii")


def decode(reply):
    """Return the bytes of a 334."""
    assert reply.code == 334, f"no challenge: {reply}"
    return base64.b64decode(reply.lines[0], validate=True)


def plain(login, password, authzid=""):
    """Return the message of PLAIN, in base64."""
    return encode(f"{authzid}\0{login}\0{password}")


def say_plain(client, login, password):
    """Log in by PLAIN, and return the reply."""
    client.send(f"AUTH PLAIN {plain(login, password)}")
    return client.read_reply()


def say_login(client, login, password):
    """Log in by LOGIN, and return the reply."""
    assert decode(client.command("AUTH LOGIN", 334)) == b"Username:"
    assert decode(client.command(encode(login), 334)) == b"Password:"
    client.send(encode(password))
    return client.read_reply()


class Scram:
    """One exchange of SCRAM, of which each word may be another than it should be."""

    def __init__(self, hash_name, login, password, binding=None, header=None, nonce=None):
        """Prepare it. binding: (name, bytes) of a channel; header: the GS2 header, without its comma."""
        self.hash_name, self.login, self.password = hash_name, login, password
        self.nonce = nonce or encode(os.urandom(18))
        self.header = header or (f"p={binding[0]}," if binding else "n,")
        self.bound = binding[1] if binding else b""
        self.salt = self.iterations = None
        self.bare = f"n={login},r={self.nonce}"

    def first(self):
        """Return the client's first message, in base64."""
        return encode(f"{self.header},{self.bare}")

    def _hmac(self, key, text):
        return hmac.new(key, text.encode(), self.hash_name).digest()

    def salted(self, salt, iterations):
        """Return the salted password."""
        return hashlib.pbkdf2_hmac(self.hash_name, self.password.encode(), salt, iterations)

    def final(self, challenge):
        """Return the client's final message, in base64."""
        server = challenge.decode()
        words = dict(word.split("=", 1) for word in server.split(","))
        assert words["r"].startswith(self.nonce) and words["r"] != self.nonce
        self.salt, self.iterations = words["s"], int(words["i"])
        bound = encode(f"{self.header},".encode() + self.bound)
        without_proof = f"c={bound},r={words['r']}"
        message = f"{self.bare},{server},{without_proof}"
        salted = self.salted(base64.b64decode(self.salt), self.iterations)
        client_key = self._hmac(salted, "Client Key")
        signature = self._hmac(hashlib.new(self.hash_name, client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature))
        self.server_signature = self._hmac(self._hmac(salted, "Server Key"), message)
        return encode(f"{without_proof},p={encode(proof)}")

    def say(self, client, mechanism):
        """Do all of it, and return the last reply."""
        client.send(f"AUTH {mechanism} {self.first()}")
        reply = client.read_reply()
        if reply.code != 334:
            return reply
        client.send(self.final(decode(reply)))
        reply = client.read_reply()
        if reply.code != 334:
            return reply
        assert decode(reply) == b"v=" + encode(self.server_signature).encode()
        client.send("")
        return client.read_reply()


def say_scram(client, mechanism, login, password, binding=None):
    """Log in by SCRAM, and return the reply."""
    hash_name = "sha256" if "256" in mechanism else "sha1"
    return Scram(hash_name, login, password, binding).say(client, mechanism)


def passwd(file, login, password=None, *options):
    """Write the users' file with the program's own command."""
    words = [binary(), "passwd", "-f", str(file), *options, login]
    return subprocess.run(
        words, input=(password or "") + "\n", capture_output=True, text=True, timeout=60, check=False
    )
