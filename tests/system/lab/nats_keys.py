# SPDX-License-Identifier: ISC
"""Operators, accounts and users of NATS, as `nsc` makes them: keys, and what one says of the other."""

import base64
import binascii
import json
import os
import time

from nacl.signing import SigningKey

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0, 20 << 3, 18 << 3
NO_LIMITS = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage",
                           "disk_storage", "streams", "consumer"), -1) | {"wildcards": True}


def _text(raw):
    with_sum = raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(with_sum).decode().rstrip("=")


def _part(value):
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


class Key:
    """A key of an operator, account or user."""

    def __init__(self, kind):
        """Make one."""
        self.kind = kind
        self.key = SigningKey.generate()

    @property
    def public(self):
        """Its name."""
        return _text(bytes([self.kind]) + bytes(self.key.verify_key))

    @property
    def seed(self):
        """What must stay secret."""
        return _text(bytes([SEED | self.kind >> 5, (self.kind & 31) << 3]) + bytes(self.key))

    def says(self, subject, claims):
        """Return a token by which this one vouches for another."""
        head = _part(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        body = _part(json.dumps({"iat": int(time.time()), "iss": self.public, "sub": subject.public, "jti": "lab",
                                 "name": "lab", "nats": claims | {"version": 2}}).encode())
        return f"{head}.{body}.{_part(self.key.sign(f'{head}.{body}'.encode()).signature)}"


class Realm:
    """An operator with an account that may use JetStream, and a user of that in a credentials file."""

    def __init__(self, folder):
        """Make all of them."""
        operator, system, account, user = Key(OPERATOR), Key(ACCOUNT), Key(ACCOUNT), Key(USER)
        limits = {system: NO_LIMITS | {"mem_storage": 0, "disk_storage": 0}, account: NO_LIMITS}
        accounts = "\n".join(f"{one.public}: {operator.says(one, {'type': 'account', 'limits': limits[one]})}" for one in limits)
        self.extra = (f'operator: {operator.says(operator, {"type": "operator"})}\n'
                      f"system_account: {system.public}\nresolver: MEMORY\nresolver_preload {{\n{accounts}\n}}\n")
        token = account.says(user, {"type": "user", "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1})
        self.credentials = os.path.join(folder, "user.creds")
        with open(self.credentials, "w", encoding="ascii") as stream:
            stream.write(f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
                         f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")
