# SPDX-License-Identifier: ISC
"""Hosts whose certificates are larger than anybody needs: what they cost is bounded, and mail goes all the same."""

import base64
import math
import ssl
import subprocess

import pytest

from lab.config import Config
from lab.proc import cpu_seconds, resident_kib, sanitized

PRIMES = (2**11213 - 1, 2**9689 - 1)  # together more bits than OpenSSL reckons with: 16384


def _number(value):
    return _tagged(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _tagged(tag, data):
    length = len(data).to_bytes((len(data).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + data


def _huge_key():
    """An RSA key that nobody had to wait for, as PEM."""
    p, q = PRIMES
    d = pow(65537, -1, math.lcm(p - 1, q - 1))
    numbers = (0, p * q, 65537, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))
    der = _tagged(0x30, b"".join(_number(value) for value in numbers))
    text = base64.encodebytes(der).decode("ascii")
    return f"-----BEGIN RSA PRIVATE KEY-----\n{text}-----END RSA PRIVATE KEY-----\n"


def _chain(lab, folder, count):
    certificate, key = lab.certificates.host("mx.test")
    path = folder / "chain.pem"
    with open(certificate, encoding="ascii") as leaf, open(lab.certificates.ca, encoding="ascii") as issuer:
        path.write_text(leaf.read() + issuer.read() * count, encoding="ascii")
    return path, key


def _huge(_, folder):
    key, certificate = folder / "huge.key", folder / "huge.pem"
    key.write_text(_huge_key(), encoding="ascii")
    subprocess.run(["openssl", "req", "-x509", "-new", "-key", key, "-out", certificate, "-subj", "/CN=mx.test"],
                   check=True, capture_output=True)
    return certificate, key


@pytest.mark.parametrize("make, good", [
    pytest.param(lambda *where: _chain(*where, 100), True, id="a hundred"),
    pytest.param(lambda *where: _chain(*where, 3000), False, id="a megabyte"),
    pytest.param(_huge, False, id="twenty thousand bits", marks=pytest.mark.plain_only),
])
def test_a_host_with_it_costs_little_and_gets_what_policy_allows(lab, make, good):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*make(lab, lab.folder("keys")))
    sink = lab.sink(tls=context)
    config = Config()
    for domain, tls in ("strict.test", "required"), ("easy.test", "opportunistic"):
        config.transports[domain] = {"tls": tls}
        config.routes[domain] = {"relay": [f"[127.0.0.1]:{sink.port}"], "transport": domain}
    relay = lab.relay(config)
    memory, time = resident_kib(relay), cpu_seconds(relay)
    relay.send(recipients=["to@easy.test"])
    relay.send(recipients=["to@strict.test"])
    relay.wait_event("sent", 60, to="to@easy.test")
    verdict = relay.wait_event("sent" if good else "deferred", 60, to="to@strict.test")
    assert good or verdict["dsn"].startswith("4.7.")
    assert cpu_seconds(relay) - time < (10 if sanitized() else 2)
    if not sanitized():
        assert resident_kib(relay) - memory < 20_000
