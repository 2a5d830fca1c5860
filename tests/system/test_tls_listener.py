# SPDX-License-Identifier: ISC
"""Certificates of listeners: several by name and kind, changed under way, stapled, growing old."""

import os
import re
import shutil
import ssl
import subprocess
import urllib.request

import pytest

from lab.config import Config
from lab.net import free_port, wait_until
from lab.relay import binary


def _ask(port, *words):
    """What openssl says of the handshake."""
    done = subprocess.run(
        ["openssl", "s_client", "-starttls", "smtp", "-connect", f"127.0.0.1:{port}", *words],
        input="QUIT\r\n", capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


def _who(said):
    return re.search(r"subject=CN ?= ?(\S+)", said).group(1)


@pytest.fixture(scope="module")
def several(module_lab, certificates):
    """A relay with certificates for three names; the first has both kinds of key."""
    ocsp = certificates.odd("one-ec", "one-ec", "DNS:one.test")
    certificates.ocsp(ocsp[0])
    pairs = [certificates.odd("one-rsa", "one-rsa", "DNS:one.test", rsa=True), ocsp,
             certificates.odd("two", "two", "DNS:two.test, DNS:*.two.test"),
             certificates.odd("three", "three", "DNS:three.test")]
    config = Config()
    config.listeners = {"smtp": {"certificate": [pair[0] for pair in pairs],
                                 "key": [pair[1] for pair in pairs]}}
    relay = module_lab.relay(config)
    with relay.client() as client:
        return relay, client.socket.getpeername()[1]


def test_the_certificate_is_that_of_the_name_asked_for(several):
    relay, port = several
    for name, subject in {"two.test": "two", "x.two.test": "two", "three.test": "three"}.items():
        assert _who(_ask(port, "-servername", name)) == subject
    for name in ("one.test", "nobody.test"):
        assert _who(_ask(port, "-servername", name)) in ("one-ec", "one-rsa")
    assert _who(_ask(port, "-noservername")) in ("one-ec", "one-rsa")
    event = relay.wait_event("tls")
    assert event["session"] and event["version"] == "TLSv1.3" and event["verified"] == "none"


def test_of_equal_names_there_is_one_for_each_kind_of_key(several):
    _, port = several
    for words, subject in ((["-cipher", "aRSA"], "one-rsa"), (["-cipher", "aECDSA"], "one-ec")):
        assert _who(_ask(port, "-servername", "one.test", "-tls1_2", *words)) == subject
    assert _who(_ask(port, "-sigalgs", "RSA-PSS+SHA256")) == "one-rsa"
    assert _who(_ask(port, "-sigalgs", "ECDSA+SHA256")) == "one-ec"


def test_an_ocsp_answer_is_stapled_to_its_own_certificate(several):
    _, port = several
    said = _ask(port, "-servername", "one.test", "-status", "-sigalgs", "ECDSA+SHA256")
    assert "OCSP Response Status: successful" in said
    said = _ask(port, "-servername", "one.test", "-status", "-sigalgs", "RSA-PSS+SHA256")
    assert "OCSP response: no response sent" in said


def _stapled(port):
    return "OCSP Response Status: successful" in _ask(port, "-status")


def test_the_ocsp_answer_of_the_certificate_before_is_not_stapled(lab, certificates, tmp_path):
    """Who renews a certificate may leave it there."""
    before, after = (certificates.odd(f"renewed-{which}", which, "DNS:relay.test") for which in ("before", "after"))
    certificate, key, ocsp = (str(tmp_path / name) for name in ("cert.pem", "cert.key", "cert.pem.ocsp"))
    for there, here in ((before[0], certificate), (before[1], key), (certificates.ocsp(before[0]), ocsp)):
        shutil.copy(there, here)
    config = Config()
    config.listeners = {"smtp": {"certificate": certificate, "key": key}}
    relay = lab.relay(config)
    assert _who(_ask(relay.port)) == "before" and _stapled(relay.port)
    assert "another certificate" not in relay.command("check").stderr
    shutil.copy(after[0], certificate)
    shutil.copy(after[1], key)
    wait_until(lambda: _who(_ask(relay.port)) == "after", 60, "the new certificate")
    assert not _stapled(relay.port)
    assert "cert.pem.ocsp is the answer for another certificate" in relay.command("check").stderr
    shutil.copy(certificates.ocsp(after[0]), ocsp)
    wait_until(lambda: _stapled(relay.port), 60, "the new answer")


def _context():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def test_tickets_are_given_unless_they_are_switched_off(lab, certificates):
    certificate, key = certificates.host("relay.test")
    own = {"certificate": certificate, "key": key}
    config = Config()
    config.listeners = {"with": own, "without": own | {"tls_session_tickets": False}}
    relay = lab.relay(config)
    for name in ("with", "without"):
        with relay.client(name) as client:
            client.greet()
            client.starttls(_context())
            session = client.socket.session
            assert session.has_ticket == (name == "with")


def _serial(relay):
    with relay.client() as client:
        client.greet()
        client.starttls(_context())
        return client.socket.getpeercert(binary_form=True)


def _expiry(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
        text = page.read().decode("utf-8")
    return [float(one) for one in
            re.findall(r"^sluice_certificate_expiry_seconds\{.*\} (\S+)$", text, re.M)]


def test_files_that_change_are_read_anew_and_age_is_watched(lab, certificates, tmp_path):
    young, old = certificates.host("relay.test"), certificates.host("relay.test", days=5)
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    shutil.copy(old[0], certificate)
    shutil.copy(old[1], key)
    port = free_port()
    config = Config(settings={"http": f"127.0.0.1:{port}"})
    config.listeners = {"smtp": {"certificate": certificate, "key": key}}
    relay = lab.relay(config)
    assert "expires in 4 days" in relay.command("check").stderr
    assert relay.command("check", "--strict").returncode == 1
    assert relay.wait_event("certificate", file=certificate)["reason"] == "it expires soon"
    assert relay.wait_event("condition", name="certificate_expiry", subject=certificate)["state"] == "on"
    (left,) = _expiry(port)
    assert 4 * 86400 < left <= 5 * 86400
    before = _serial(relay)
    # Until the key comes too, they do not fit, and the old ones stay.
    shutil.copy(young[0], certificate)
    relay.wait_event("certificate", message=re.compile("what there was before stays"))
    assert _serial(relay) == before
    relay.wait_event("condition", name="certificate_refused", state="on")
    shutil.copy(young[1], key)
    relay.wait_event("certificate", message="read anew")
    relay.wait_event("condition", name="certificate_refused", state="off")
    wait_until(lambda: _serial(relay) != before, 60, "the new certificate")
    wait_until(lambda: _expiry(port)[0] > 28 * 86400, 60, "the new age")
    relay.wait_event("condition", name="certificate_expiry", state="off")


def test_an_expired_certificate_takes_no_good_ones_place(lab, certificates, tmp_path):
    good, expired = certificates.host("relay.test"), certificates.host("relay.test", days=-2)
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    def put(pair):
        for there, here in zip(pair, (certificate, key)):
            shutil.copy(there, here + ".new")
            os.rename(here + ".new", here)
    put(good)
    config = Config()
    config.listeners = {"smtp": {"certificate": certificate, "key": key}}
    relay = lab.relay(config)
    before = _serial(relay)
    put(expired)
    said = relay.wait_event("certificate", message=re.compile("has expired, and the one in use has not.*before stays"))
    assert said.level == "error" and _serial(relay) == before
    reload = relay.command("reload")
    assert reload.returncode == 1 and "has expired" in reload.stderr and _serial(relay) == before
    relay.stop()
    relay.start()
    after = _serial(relay)
    assert after != before
    # What is no worse than what there is may come.
    put(certificates.host("relay.test", days=-3))
    relay.wait_event("certificate", message="read anew")


def test_nor_does_one_that_is_not_valid_yet(lab, certificates, tmp_path):
    """Clients that look at it would send no mail until then, and had been sending it with the one before."""
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    config = Config()
    config.listeners = {"smtp": {"certificate": certificate, "key": key}}
    for there, here in zip(certificates.host("relay.test"), (certificate, key)):
        shutil.copy(there, here)
    relay = lab.relay(config)
    before = _serial(relay)
    for there, here in zip(certificates.brief("relay.test", 60 * 86400, begin=3 * 86400), (certificate, key)):
        shutil.copy(there, here + ".new")
        os.rename(here + ".new", here)
    said = relay.wait_event("certificate", message=re.compile("is not valid yet, and the one in use is.*before stays"))
    assert said.level == "error" and _serial(relay) == before
    assert f"{certificate} is not valid before " in relay.command("check").stderr
    assert "is not valid yet" in relay.command("reload").stderr and _serial(relay) == before


def test_what_does_not_go_together_is_said(lab, certificates, tmp_path):
    pair = certificates.host("relay.test")
    config = Config()
    config.listeners = {"smtp": {"certificate": [pair[0], pair[0]], "key": pair[1]}}
    said = lab.relay(config, start=False).command("check").stderr
    assert "as many keys as certificates: 1 and 2" in said
    copy = tmp_path / "cert.pem"
    shutil.copy(pair[0], copy)
    (tmp_path / "cert.pem.ocsp").write_text("rubbish")
    config.listeners = {"smtp": {"certificate": str(copy), "key": pair[1]}}
    said = lab.relay(config, start=False).command("check").stderr
    assert "cert.pem.ocsp: it cannot be read, or is no answer" in said


def test_nobody_is_asked_for_the_passphrase_of_a_key(lab, certificates, tmp_path):
    """Who starts the relay at a terminal would be, and it would wait there; else whatever is in standard input was taken for it."""
    certificate, key = certificates.host("relay.test")
    locked = str(tmp_path / "locked.pem")
    subprocess.run(["openssl", "pkey", "-in", key, "-aes128", "-passout", "pass:secret", "-out", locked], check=True)
    config = Config()
    config.listeners = {"smtp": {"certificate": certificate, "key": locked}}
    relay = lab.relay(config, start=False)
    # Without a terminal.
    said = subprocess.run([binary(), "check", "-c", relay.config_path], input="secret\n", capture_output=True, text=True,
                          check=False, timeout=60, start_new_session=True)
    assert said.returncode == 1 and said.stderr.endswith(f": key {locked}: it is locked by a passphrase, which nobody is asked for\n")
    assert "Enter" not in said.stdout + said.stderr
