# SPDX-License-Identifier: ISC
"""Logging in at next hops: at a Postfix with Dovecot's users, at an Exim, with tokens; and what refuses."""

import base64
import json
import os
import re
import shutil
import ssl

import pytest

from lab import sasl
from lab.config import Config
from lab.exim import Exim
from lab.mailstore import MailStore
from lab.net import LOOPBACK, free_port, open_folder, wait_until
from lab.token_endpoint import TokenEndpoint

SUBMISSION = {
    "smtpd_sasl_auth_enable": "yes", "smtpd_sasl_type": "dovecot", "smtpd_tls_security_level": "may",
    "smtpd_tls_auth_only": "yes", "mynetworks": "192.0.2.1/32",
    "smtpd_relay_restrictions": "permit_sasl_authenticated, reject",
}
EXIM = """\
begin authenticators
plain:
  driver = plaintext
  public_name = {name}
  server_prompts = {prompts}
  server_condition = ${{if and{{{{eq{{{login}}}{{ann}}}}{{eq{{{password}}}{{secret}}}}}}}}
  server_advertise_condition = ${{if def:tls_in_cipher}}
"""


def _config(folder, hops, credentials, **settings):
    """All mail to a domain HOP.test goes to a port. The rows of the table are written with [HOP] for it.

    Who the hosts are is no question here: see test_login_proof.py.
    """
    table = os.path.join(folder, "credentials")
    credentials = re.sub(r"^(\[.*(?<! clear))$", r"\1 unauthenticated", credentials, flags=re.MULTILINE)
    for name, port in hops.items():
        credentials = credentials.replace(f"[{name}]", f"[{LOOPBACK}]:{port}")
    with open(table, "w", encoding="ascii") as stream:
        stream.write(credentials)
    config = Config(settings={"credentials": [table]} | settings)
    for name, port in hops.items():
        config.routes[f"{name}.test"] = {"relay": [f"[{LOOPBACK}]:{port}"]}
    return config


def _secret(folder, name, text):
    path = os.path.join(folder, name)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="ascii") as stream:
        stream.write(text)
    return path


def _context(lab):
    return lab.certificates.server_context("localhost")


def _secured(lab, auth, *after):
    """A script: up to EHLO under TLS, which offers these mechanisms."""
    return [("send", b"220 x\r\n"), ("expect", rb"EHLO [^\r]*\r\n"), ("send", b"250-x\r\n250 STARTTLS\r\n"),
            ("expect", rb"STARTTLS\r\n"), ("send", b"220 go\r\n"), ("starttls", _context(lab)),
            ("expect", rb"EHLO [^\r]*\r\n"), ("send", f"250-x\r\n250 AUTH {auth}\r\n".encode()), *after]


def _lines(*pairs):
    """Steps: each expected line, and the answer to it."""
    return [step for line, answer in pairs for step in (("expect", line + rb"\r\n"), ("send", answer + b"\r\n"))]


TAKEN = _lines((rb"MAIL [^\r]*", b"250 ok"), (rb"RCPT [^\r]*", b"250 ok"), (b"DATA", b"354 go"), (rb"\r\n\.", b"250 kept"))


def test_postfix_with_dovecots_users(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    store = MailStore(folder, {"ann": "", "bob": ""})
    lab.callback(store.close)
    store.start()
    certificate, key = lab.certificates.host("localhost")
    postfix = lab.postfix(settings=SUBMISSION | {
        "smtpd_sasl_path": str(store.auth_socket), "smtpd_tls_cert_file": certificate, "smtpd_tls_key_file": key})
    secret = _secret(folder, "secret", "secret\n")
    config = _config(folder, {"out": postfix.port}, (
        f"# as whom\n[out]  ann@a.test  ann  password:{secret}\n[out]  b.test  bob  password:{secret}\n"))
    relay = lab.relay(config)
    for sender in ("ann@a.test", "x@b.test", "nobody@c.test", "ann@a.test"):
        relay.send(sender, ["to@out.test"])
    relay.wait_event("sent", 60, count=3)
    assert "Access denied" in relay.wait_event("bounced", to="to@out.test")["reply"]
    hop = f"[{LOOPBACK}]:{postfix.port}"
    assert {one["site"] for one in relay.events("sent")} == {f"{hop} as ann", f"{hop} as bob"}
    log = postfix.log()
    assert log.count("sasl_method=SCRAM-SHA-256, sasl_username=ann") == 2
    assert log.count("sasl_method=SCRAM-SHA-256, sasl_username=bob") == 1
    listed = relay.command("dest", "list").stdout
    assert listed.count("login=ann") == 1 and listed.count("login=bob") == 1


@pytest.mark.parametrize("mechanism", ("PLAIN", "LOGIN"))
def test_exim_by_plain_and_login(lab, mechanism):
    folder = lab.enter_context(open_folder("sluice-"))
    certificate, key = lab.certificates.host("localhost")
    plain = mechanism == "PLAIN"
    exim = Exim(lab.enter_context(open_folder("sluice-exim-")), certificate, key, EXIM.format(
        name=mechanism, prompts=":" if plain else "Username:: : Password::",
        login="$auth2" if plain else "$auth1", password="$auth3" if plain else "$auth2"))
    lab.callback(exim.close)
    exim.start()
    relay = lab.relay(_config(folder, {"out": exim.port}, f"[out] ann password:{_secret(folder, 's', 'secret')}\n"))
    relay.send(recipients=["to@out.test"])
    relay.wait_event("sent", 60)
    assert "A=plain:ann" in exim.log() or "A=plain" in exim.log()


@pytest.mark.parametrize("version", ("1.2", "1.3"))
def test_a_login_is_bound_to_its_connection(lab, version, monkeypatch):
    """By tls-unique or tls-exporter, also where the session is resumed."""
    folder = lab.folder("bound")
    assert sasl.passwd(folder / "users", "ann", "secret").returncode == 0
    certificate, key = lab.certificates.host("localhost")
    config = Config(listeners={"smtp": {"tls": "optional", "certificate": certificate, "key": key, "auth": True}})
    config.auth["file"] = str(folder / "users")
    (folder / "openssl.cnf").write_text(
        f"openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = old\n[old]\nMaxProtocol = TLSv{version}\n")
    with monkeypatch.context() as patch:
        patch.setenv("OPENSSL_CONF", str(folder / "openssl.cnf"))
        host = lab.relay(config.route_all_to(lab.sink().port))
    config = _config(folder, {"out": host.port}, f"[out] ann password:{_secret(folder, 'secret', 'secret')}\n")
    config.transports["smtp"] = {"connection_idle_timeout": "0s"}
    relay = lab.relay(config)
    for number in range(2):
        relay.send(recipients=["to@out.test"])
        relay.wait_event("sent", count=number + 1)
        event = host.wait_event("auth", count=number + 1)
        assert (event["mechanism"], event["result"]) == ("SCRAM-SHA-256-PLUS", "ok")
    assert [one["version"] for one in host.wait_events("tls", count=2)] == [f"TLSv{version}"] * 2
    assert host.events("tls")[1]["resumed"] == "yes"


def test_a_refused_login_keeps_the_mail_with_one_warning(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    refusal = [("expect", rb"AUTH PLAIN [^\r]*\r\n"), ("send", b"535 5.7.8 wrong password, ask Joe\r\n"), ("drain",)]
    welcome = [("expect", rb"AUTH PLAIN [^\r]*\r\n"), ("send", b"235 2.7.0 hello\r\n"), *TAKEN, *TAKEN, *TAKEN, ("drain",)]
    host = lab.script(_secured(lab, "PLAIN", *refusal), _secured(lab, "PLAIN", *welcome))
    secret = _secret(folder, "secret", "Hush-1")
    config = _config(folder, {"out": host.port}, f"[out] ann password:{secret}\n")
    config.transports["smtp"] = {"host_backoff_max": "1h", "site_patience": "0s", "destination_concurrency_limit": 1}
    relay = lab.relay(config)
    for _ in range(3):
        relay.send(recipients=["to@out.test"])
    deferred = relay.wait_event("deferred", 60, count=3)
    assert deferred["dsn"] == "4.7.8" and "535 5.7.8 wrong password, ask Joe" in deferred["reply"]
    warning, = relay.events("login")
    assert warning["login"] == "ann" and warning["reply"] == "535 5.7.8 wrong password, ask Joe"
    assert not relay.events("bounced") and len(host.plays) == 1
    assert "ask Joe" in relay.command("explain", f"[{LOOPBACK}]:{host.port}").stdout
    assert "ask Joe" in relay.command("explain", deferred["id"]).stdout
    _secret(folder, "secret", "Hush-2")
    relay.command("dest", "reset", LOOPBACK)
    relay.wait_event("sent", 60, count=3)
    said = [base64.b64decode(play.received.partition(b"AUTH PLAIN ")[2].partition(b"\r")[0]) for play in host.plays]
    assert said[:2] == [b"\0ann\0Hush-1", b"\0ann\0Hush-2"]
    text = relay.log_text() + relay.stderr_text()
    assert "Hush" not in text and base64.b64encode(b"\0ann\0Hush-1").decode() not in text


def test_what_is_not_possible_is_said(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    secret = _secret(folder, "secret", "secret")
    clear = lab.script([("send", b"220 x\r\n"), ("expect", rb"EHLO [^\r]*\r\n"), ("send", b"250-x\r\n250 AUTH PLAIN\r\n"), ("drain",)])
    later = lab.script(_secured(lab, "PLAIN", ("expect", rb"AUTH [^\r]*\r\n"), ("send", b"454 4.7.0 come back\r\n"), ("drain",)))
    insecure = lab.script([*clear.scripts[0][:3], ("expect", rb"AUTH [^\r]*\r\n"), ("send", b"235 ok\r\n"), *TAKEN, ("drain",)])
    gone = os.path.join(folder, "gone")
    relay = lab.relay(_config(
        folder, {"clear": clear.port, "later": later.port, "insecure": insecure.port, "gone": 1},
        f"[clear] ann password:{secret}\n[later] ann password:{secret}\n[insecure] ann password:{secret} clear\n"
        f"[gone] ann password:{gone}\n"))
    relay.send(recipients=[f"to@{name}.test" for name in ("clear", "later", "insecure", "gone")])
    assert "STARTTLS" in relay.wait_event("deferred", to="to@clear.test")["reply"]
    assert relay.wait_event("deferred", to="to@later.test")["reply"].endswith("454 4.7.0 come back")
    assert f"no password for ann: {gone}: No such file" in relay.wait_event("deferred", to="to@gone.test")["reply"]
    assert relay.wait_event("condition", name="secret_unreadable", subject=gone)["state"] == "on"
    assert f"condition secret_unreadable {gone}, for " in relay.command("stats").stdout
    warned = relay.command("check").stderr
    assert f"{gone}: No such file or directory: mail for the next hop that wants this login waits" in warned
    for text in ("", "\nsecret\n"):
        with open(gone, "w", encoding="utf-8") as stream:
            stream.write(text)
        assert f"{gone} is empty: mail for the next hop that wants this login waits" in relay.command("check").stderr
    relay.wait_event("sent", to="to@insecure.test")
    assert b"AUTH" not in clear.plays[0].received
    assert len(relay.events("login", result="refused")) <= 1


HELLO = [("send", b"220 x\r\n"), ("expect", rb"EHLO [^\r]*\r\n"), ("send", b"250-x\r\n250 AUTH PLAIN\r\n")]
AUTH = ("expect", rb"AUTH PLAIN ([^\r]*)\r\n")


def _tried(relay, name, *words):
    """Try the login of a next hop: the exit status, and what was said of the host."""
    done = relay.command("login", "test", relay.hops[name], *words)
    assert "Hush" not in done.stdout + done.stderr
    return done.returncode, done.stdout.partition("\n")[2] or done.stderr


def test_a_login_is_tried_without_a_message(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    secret = _secret(folder, "secret", "Hush-1\n")
    echo = base64.b64encode(b"\0ann\0Hush-1")
    scripts = {
        "good": _secured(lab, "PLAIN", AUTH, ("send", b"235 2.7.0 welcome\r\n"), ("expect", rb"QUIT\r\n"), ("send", b"221 x\r\n"), ("close",)),
        "wrong": _secured(lab, "PLAIN", AUTH, ("send", b"535 5.7.8 ask Joe\r\n"), ("drain",)),
        "later": _secured(lab, "PLAIN", AUTH, ("send", b"454 4.7.0 come back\r\n"), ("drain",)),
        "clear": [*HELLO, ("drain",)],
        "insecure": [*HELLO, AUTH, ("send", b"235 ok\r\n"), ("drain",)],
        "echo": _secured(lab, "PLAIN", AUTH, ("send", b"535 5.7.8 not " + echo + b"\r\n"), ("drain",)),
        "parrot": _secured(lab, "PLAIN", AUTH, ("send", b"535 5.7.8 ann has not Hush-1\r\n"), ("drain",)),
        "strange": _secured(lab, "GSSAPI", ("drain",)),
        "verified": _secured(lab, "PLAIN", ("drain",)),
    }
    hosts = {name: lab.script(script) for name, script in scripts.items()}
    ports = {name: host.port for name, host in hosts.items()} | {"closed": free_port(), "nobody": free_port(), "gone": free_port()}
    rows = "".join(f"[{name}] ann password:{secret}{' clear' if name == 'insecure' else ''}\n"
                   for name in ports if name not in ("nobody", "gone"))
    policy = _secret(folder, "policy", f"[{LOOPBACK}]:{ports['verified']} verify:other.test\n")
    config = _config(folder, ports, rows + f"[gone] ann password:{folder}/gone\n", tls_policy=[policy])
    relay = lab.relay(config, start=False)
    relay.hops = {name: f"[{LOOPBACK}]:{port}" for name, port in ports.items()}
    said = {name: _tried(relay, name) for name in ports}
    assert said["good"][0] == 0 and said["good"][1].endswith(": logged in, under TLS\n"), said["good"]
    play = hosts["good"].plays[0].received
    assert base64.b64decode(play.partition(b"AUTH PLAIN ")[2].partition(b"\r")[0]) == b"\0ann\0Hush-1"
    assert play.rstrip().endswith(b"QUIT") and b"MAIL" not in play
    assert said["insecure"] == (0, said["insecure"][1]) and "logged in, without TLS" in said["insecure"][1]
    assert said["wrong"][0] == 1 and "refused: 535 5.7.8 ask Joe" in said["wrong"][1]
    assert said["later"][0] == 75 and "not possible now: 454 4.7.0 come back" in said["later"][1]
    assert said["clear"][0] == 75 and "STARTTLS" in said["clear"][1] and b"AUTH" not in hosts["clear"].plays[0].received
    for name in ("echo", "parrot"):
        assert said[name][0] == 1 and "the password in it" in said[name][1] and echo.decode() not in said[name][1]
    assert said["strange"][0] == 1 and "no way to log in with a password" in said["strange"][1]
    assert said["verified"][0] == 75 and b"AUTH" not in hosts["verified"].plays[0].received, said["verified"]
    assert said["closed"][0] == 75 and "refused" in said["closed"][1]
    assert said["nobody"][0] == 1 and "no row" in said["nobody"][1]
    assert said["gone"][0] == 75 and "No such file" in said["gone"][1]
    for words in (["test"], [], ["x", "y"], ["test", "a", "b"]):
        assert relay.command("login", *words).returncode == 2


def _url(endpoint, name):
    return "https://localhost:1/away" if name == "away" else endpoint.url("/" + name)


def test_tokens_from_files_and_from_an_endpoint(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    endpoint = TokenEndpoint(*lab.certificates.host("localhost"))
    lab.callback(endpoint.close)
    endpoint.answers = {
        "/good": (200, {"access_token": "first", "expires_in": 3600, "refresh_token": "turned"}),
        "/app": (200, {"access_token": "app-token"}), "/brief": (200, {"access_token": "brief", "expires_in": 0}),
        "/refuses": (401, {"error": "invalid_client"}),
        "/large": (200, b"{" * 10_000_000), "/text": (200, b"<html>"),
    }
    authority = shutil.copy(lab.certificates.ca, folder)
    sources = {}
    for name in ("good", "app", "brief", "refuses", "large", "text", "away"):
        refresh = "" if name == "app" else "refresh_token = a token&more\n"
        sources[name] = _secret(folder, name, (
            f"# how\nendpoint = {_url(endpoint, name)}\nclient_id = me\nclient_secret = se=cret\n{refresh}"
            f"ca = {authority}\n"))
    token = _secret(folder, "token", "from-a-file\n")

    def host(mechanism, secret):
        text = f"user=ann\1auth=Bearer {secret}\1\1" if mechanism == "XOAUTH2" else f"n,a=ann,\1auth=Bearer {secret}\1\1"
        line = f"AUTH {mechanism} {base64.b64encode(text.encode()).decode()}".encode()
        return lab.script(_secured(lab, f"PLAIN {mechanism}", *_lines((line.replace(b"+", rb"\+"), b"235 ok")), *TAKEN, ("close",)))

    hosts = {"file": host("XOAUTH2", "from-a-file"), "good": host("OAUTHBEARER", "first"), "app": host("XOAUTH2", "app-token"),
             "brief": host("XOAUTH2", "brief")}
    ports = {name: one.port for name, one in hosts.items()} | {"refuses": 2, "large": 3, "text": 4, "away": 5}
    relay = lab.relay(_config(folder, ports, "".join(
        f"[{name}] ann {'token:' + token if name == 'file' else 'refresh:' + sources[name]}\n" for name in ports)))
    relay.send(recipients=[f"to@{name}.test" for name in ports])
    for name in hosts:
        relay.wait_event("sent", 60, to=f"to@{name}.test")
    for name, why in (("refuses", "it answers 401 invalid_client"), ("large", "larger than 64k"), ("text", "no JSON"), ("away", "connect")):
        deferred = relay.wait_event("deferred", 60, to=f"to@{name}.test")
        assert deferred["dsn"] == "4.7.0" and f"no token for ann: {_url(endpoint, name)}: " in deferred["reply"]
        assert why in deferred["reply"]
    assert endpoint.forms["/good"] == [{"grant_type": "refresh_token", "refresh_token": "a token&more",
                                        "client_id": "me", "client_secret": "se=cret"}]
    assert endpoint.forms["/app"][0]["grant_type"] == "client_credentials"
    # One that has expired when it comes serves for a moment all the same, or each connection would ask for one.
    relay.send(recipients=["again@brief.test"])
    relay.wait_event("sent", 60, to="again@brief.test")
    assert len(hosts["brief"].plays) == 2 and len(endpoint.forms["/brief"]) == 1
    _no_storm(relay, endpoint)


def _no_storm(relay, endpoint):
    """Hosts are probed every 200 ms; the endpoint is not asked that often, and there is one warning."""
    relay.send(recipients=[f"to{number}@refuses.test" for number in range(3)])
    wait_until(lambda: len(endpoint.forms["/refuses"]) >= 2, 60, "a second try")
    assert len(endpoint.forms["/refuses"]) <= 3
    assert len([one for one in relay.events("login", result="no_token") if "/refuses" in one["reason"]]) == 1


def test_a_client_certificate_is_shown(lab):
    certificate, key = lab.certificates.host("relay.test")
    context = _context(lab)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(lab.certificates.ca)
    host = lab.script([("send", b"220 x\r\n"), ("expect", rb"EHLO [^\r]*\r\n"), ("send", b"250-x\r\n250 STARTTLS\r\n"),
                       ("expect", rb"STARTTLS\r\n"), ("send", b"220 go\r\n"), ("starttls", context),
                       ("expect", rb"EHLO [^\r]*\r\n"), ("send", b"250 x\r\n"), *TAKEN, ("drain",)])
    config = Config().route_all_to(host.port)
    config.transports["smtp"] = {"tls": "required", "client_certificate": certificate, "client_key": key}
    relay = lab.relay(config)
    relay.send()
    relay.wait_event("sent", 60)  # after a handshake that asks for a certificate of that authority


def _sites_of_one_more(relay):
    """Return the sites of that name behind one more message to each: those that idle are forgotten soon."""
    before = len(relay.events("sent"))
    relay.send(recipients=["again@other.test", "again@ours.test"])
    relay.wait_event("sent", 60, before + 2)
    return [json.loads(line)["site"] for line in relay.command("dest", "list", "--json", "hub.test").stdout.splitlines()]


def test_a_domain_whose_mail_host_is_called_as_a_relay_has_nothing_to_do_with_its_login(lab):
    """Anybody may have an MX record that names our relay."""
    folder, port = lab.enter_context(open_folder("sluice-")), free_port()
    named = lab.sink(address="127.0.0.2", port=port)
    hub = lab.sink(address="127.0.0.3", port=port, users={"us": "secret"}, tls=lab.certificates.server_context("mx.hub.test"))
    nsd = lab.nsd({"test": "other MX 10 hub\nhub A 127.0.0.2\nhub MX 10 mx.hub\nmx.hub A 127.0.0.3"})
    secret = _secret(folder, "secret", "secret\n")
    table = _secret(folder, "credentials", f"hub.test us password:{secret} unauthenticated\n")
    config = Config(settings={"credentials": [table]}, transports={"smtp": {"port": port, "connection_idle_timeout": "50ms"}})
    config.resolve_with(nsd).dns |= {"allow_loopback": True}
    config.routes["ours.test"] = {"relay": ["hub.test"]}
    relay = lab.relay(config)
    turns = ["1@ours.test", "1@other.test", "2@ours.test", "2@other.test"]
    for to in turns:
        relay.send(recipients=[to])
        relay.wait_event("sent", 60, to=to)
    relay.send(recipients=["3@other.test", "3@ours.test"])
    relay.wait_event("done", 60, len(turns) + 1)
    assert {event["site"] for event in relay.events("sent")} == {"hub.test"}
    assert [(one.recipients, one.user) for one in hub.messages] == [([f"{n}@ours.test"], "us") for n in (1, 2, 3)]
    assert [(one.recipients, one.user) for one in named.messages] == [([f"{n}@other.test"], None) for n in (1, 2, 3)]
    wait_until(lambda: _sites_of_one_more(relay) == ["hub.test", "hub.test"], 60, "both to be told apart before they are forgotten")
    relay.command("dest", "suspend", "hub.test")
    relay.send(recipients=["4@other.test", "4@ours.test"])
    relay.wait_event("deferred", 60, 2, reply=re.compile("suspended by the operator"))


def test_check_warns_of_secrets_that_others_may_read(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    secret = _secret(folder, "secret", "secret")
    os.chmod(secret, 0o644)
    relay = lab.relay(_config(folder, {"out": 25}, f"[out] ann password:{secret}\n"), start=False)
    checked = relay.command("check")
    assert checked.returncode == 0 and f"every user of the machine may read {secret}" in checked.stderr
    with open(os.path.join(folder, "credentials"), "a", encoding="ascii") as stream:
        stream.write("host.test ann secret\n")
    checked = relay.command("check")
    assert checked.returncode == 1 and "/credentials:2: must be " in checked.stderr
