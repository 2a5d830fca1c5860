# SPDX-License-Identifier: ISC
"""Certificates, made anew for each run of the tests."""

import hashlib
import os
import ssl
import subprocess
import time

_AUTHORITY = """\
[ca]
default_ca = lab
[lab]
database = {database}
new_certs_dir = {folder}
default_md = sha256
rand_serial = yes
policy = any
[any]
commonName = supplied
"""


DAY = 86400

# Python 3.13 believes no authority that does not say what its key is for.
_AUTHORITY_MAY = "critical,keyCertSign,cRLSign,digitalSignature"


def _openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


class Certificates:
    """A certificate authority and what it signs, as PEM files in a folder."""

    def __init__(self, folder):
        """Make the authority."""
        self.folder = str(folder)
        self.ca, self.ca_key = self._paths("ca")
        self._make_key(self.ca_key)
        _openssl(
            "req", "-x509", "-new", "-key", self.ca_key, "-out", self.ca,
            "-days", "30", "-subj", "/CN=lab authority", "-addext", f"keyUsage = {_AUTHORITY_MAY}",
        )

    def _paths(self, name):
        return [os.path.join(self.folder, f"{name}.{kind}") for kind in ("pem", "key")]

    @staticmethod
    def _make_key(path, rsa=False):
        kind = ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"] if rsa else [
            "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
        _openssl("genpkey", "-algorithm", *kind, "-out", path)

    def host(self, *names, days=30):
        """Return (certificate, key) for the host names; the same names get the same files.

        With negative days the certificate expired that long ago.
        """
        stem = f"{names[0].replace('*', 'any')}-{len(names)}-{days}"
        certificate, key = self._paths(stem)
        if not os.path.exists(certificate):
            self._sign(names, days, certificate, key)
        return certificate, key

    def _sign(self, names, days, certificate, key):
        request, extensions = f"{certificate}.csr", f"{certificate}.ext"
        self._make_key(key)
        _openssl("req", "-new", "-key", key, "-out", request, "-subj", f"/CN={names[0]}")
        with open(extensions, "w", encoding="utf-8") as stream:
            stream.write("subjectAltName = " + ", ".join(f"DNS:{name}" for name in names))
        if days < 0:
            self._sign_for(request, extensions, certificate, (days - 30) * DAY, days * DAY)
            return
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.ca_key,
            "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", certificate,
        )

    def brief(self, name, seconds, begin=-60):
        """Return (certificate, key) of a host, good for so many seconds from now, and from when on."""
        certificate, key = self._paths(f"{name}-brief-{time.monotonic_ns()}")
        request, extensions = f"{certificate}.csr", f"{certificate}.ext"
        self._make_key(key)
        _openssl("req", "-new", "-key", key, "-out", request, "-subj", f"/CN={name}")
        with open(extensions, "w", encoding="utf-8") as stream:
            stream.write(f"subjectAltName = DNS:{name}")
        self._sign_for(request, extensions, certificate, begin, seconds)
        return certificate, key

    def _sign_for(self, request, extensions, certificate, begin_s, end_s):
        """Only "openssl ca" signs for any span of time, here in seconds from now, and it wants a database."""
        config, database = f"{request}.cnf", f"{request}.db"
        with open(config, "w", encoding="utf-8") as stream:
            stream.write(_AUTHORITY.format(folder=self.folder, database=database))
        with open(database, "w", encoding="utf-8"):
            pass
        begin, end = (
            time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
            for seconds in (begin_s, end_s)
        )
        _openssl(
            "ca", "-batch", "-notext", "-config", config, "-cert", self.ca, "-keyfile",
            self.ca_key, "-in", request, "-out", certificate, "-extfile", extensions,
            "-startdate", begin, "-enddate", end,
        )

    def odd(self, stem, common_name, alternative="", depth=0, rsa=False):
        """Return (certificate with its chain, key) of a host with these words for a subjectAltName, or
        none, signed through so many authorities between it and ours."""
        signer, chain = (self.ca, self.ca_key), ""
        for level in range(depth):
            below = self._paths(f"{stem}-{level}")
            self._sign_as(signer, f"{stem} {level}", f"basicConstraints = critical,CA:TRUE\nkeyUsage = {_AUTHORITY_MAY}", *below)
            with open(below[0], encoding="ascii") as stream:
                chain = stream.read() + chain
            signer = below
        certificate, key = self._paths(stem)
        extension = f"subjectAltName = {alternative}" if alternative else ""
        self._sign_as(signer, common_name, extension, certificate, key, rsa)
        with open(certificate, "a", encoding="ascii") as stream:
            stream.write(chain)
        return certificate, key

    def _sign_as(self, signer, common_name, extension, certificate, key, rsa=False):
        request, extensions = f"{certificate}.csr", f"{certificate}.ext"
        self._make_key(key, rsa)
        _openssl("req", "-new", "-key", key, "-out", request, "-subj", f"/CN={common_name}")
        with open(extensions, "w", encoding="utf-8") as stream:
            stream.write(extension)
        _openssl(
            "x509", "-req", "-in", request, "-CA", signer[0], "-CAkey", signer[1],
            "-CAcreateserial", "-days", "30", "-extfile", extensions, "-out", certificate,
        )

    def ocsp(self, certificate, days=1):
        """Write what an OCSP server would say of a certificate beside it, and return the path."""
        question, answer = f"{certificate}.req", f"{certificate}.ocsp"
        index = os.path.join(self.folder, "index")
        with open(index, "w", encoding="ascii"):
            pass
        _openssl("ocsp", "-issuer", self.ca, "-cert", certificate, "-reqout", question)
        _openssl("ocsp", "-index", index, "-CA", self.ca, "-rsigner", self.ca, "-rkey", self.ca_key,
                 "-reqin", question, "-respout", answer, "-ndays", str(days))
        return answer

    @staticmethod
    def context_of(certificate, key):
        """Return the TLS context of a server with these files."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    @staticmethod
    def fingerprint(certificate, key=False):
        """Return the SHA-256 of a certificate, or of its public key, in hexadecimal digits."""
        with open(certificate, encoding="ascii") as stream:
            der = ssl.PEM_cert_to_DER_cert(stream.read())
        return hashlib.sha256(public_key(certificate) if key else der).hexdigest()

    def server_context(self, *names, days=30):
        """Return the TLS context of a server that has these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.host(*names, days=days))
        return context

    def client_context(self):
        """Return the TLS context of a client that trusts this authority alone."""
        return ssl.create_default_context(cafile=self.ca)

    def tlsa(self, certificate, selector="1"):
        """Return the data of a TLSA record 3 1 1 (or 3 0 1) for a certificate."""
        with open(certificate, encoding="ascii") as stream:
            der = ssl.PEM_cert_to_DER_cert(stream.read())
        if selector == "1":
            der = public_key(certificate)
        digest = subprocess.run(
            ["openssl", "dgst", "-sha256", "-r"], input=der, capture_output=True, check=True
        )
        return f"3 {selector} 1 {digest.stdout.split()[0].decode('ascii')}"


def public_key(certificate):
    """Return the public key of a certificate, as DER."""
    pem = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-pubkey"],
        capture_output=True, check=True,
    ).stdout
    return subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "DER"],
        input=pem, capture_output=True, check=True,
    ).stdout
