# SPDX-License-Identifier: ISC
"""Signatures: what other people's verifiers say of what a receiver got, who signs, and keys that are wrong."""

import base64
import functools
import itertools
import pathlib
import random
import re
import subprocess
import sys
import threading

import pytest

from lab import peers
from lab.config import Config
from lab.dkim_verifiers import DkimPy, MailDkim, OpenDkim, algorithms
from lab.net import longer, wait_until
from lab.sink import Rule
from lab.smtp import stuff

SEED = 20261122
COUNT = longer(520, 2080)

# Each domain is signed in its own way: selectors by kind of key, and the canonicalization.
DOMAINS = {
    "rsa.test": (["r"], "relaxed/relaxed"),
    "ed.test": (["e"], "relaxed/relaxed"),
    "both.test": (["r", "e"], "relaxed/relaxed"),
    "simple.test": (["r", "e"], "simple/simple"),
    "header.test": (["r"], "simple/relaxed"),
    "body.test": (["r"], "relaxed/simple"),
}


class Keys:
    """Keys of each kind, made by OpenSSL, and the records that publish them."""

    def __init__(self, folder):
        self.file = {"r": str(folder / "r.pem"), "e": str(folder / "e.pem")}
        self.openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.file["r"])
        self.openssl("genpkey", "-algorithm", "ED25519", "-out", self.file["e"])

    @staticmethod
    def openssl(*words):
        """Run openssl; return what it printed."""
        return subprocess.run(["openssl", *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def record(self, kind):
        """The text of the record for a kind of key."""
        der = self.openssl("pkey", "-in", self.file[kind], "-pubout", "-outform", "DER")
        if kind == "e":
            return "v=DKIM1; k=ed25519; p=" + base64.b64encode(der[-32:]).decode()
        return "v=DKIM1; k=rsa; p=" + base64.b64encode(der).decode()

    def section(self, domain, kind, **more):
        """A section of the configuration."""
        settings = {"selector": kind, "key": self.file.get(kind)} | more
        return f'dkim "{domain}" {{ ' + "  ".join(f'{name} = "{value}"' for name, value in settings.items()) + " }\n"


def zone(domain, selectors, keys):
    """The records of a domain, in strings of 255."""
    lines = []
    for selector in selectors:
        text = keys.record(selector)
        strings = " ".join(f'"{text[at:at + 255]}"' for at in range(0, len(text), 255))
        lines.append(f"{selector}._domainkey.{domain}. TXT {strings}")
    return "\n".join(lines)


def folded(chance, text):
    """Fold a field's value wherever it has a blank, and some more."""
    return text.replace(" ", chance.choice([" ", "\r\n ", "\r\n\t", " \r\n  ", "\t\r\n\t \t"]))


BODIES = [
    lambda chance: "",
    lambda chance: "\r\n" * chance.randrange(1, 9),
    lambda chance: "a line\r\n" + "\r\n" * chance.randrange(9),
    lambda chance: "no last end",
    lambda chance: "blanks  \t inside \r\n \t \r\n\tand at the end \t\r\n   \r\n\r\n",
    lambda chance: ".\r\n..\r\n.a\r\n...\r\n" * chance.randrange(1, 4) + chance.choice(["", ".", ".."]),
    lambda chance: "x" * 998 + "\r\n" + "y" * 997 + " \r\n",
    lambda chance: "ä ö ü ß – naïve 日本語\r\n" * chance.randrange(1, 5),
    lambda chance: base64.encodebytes(chance.randbytes(chance.choice([300, 3000, 40000]))).decode().replace("\n", "\r\n"),
    lambda chance: "".join(chance.choice(["word ", " ", "\t", "\r\n", "\r\n\r\n", ".", "=\r\n", "a"]) for _ in range(400)),
    lambda chance: base64.encodebytes(chance.randbytes(chance.choice([90000, 450000]))).decode().replace("\n", "\r\n"),
]
RARE = len(BODIES) - 1  # the last is large


def made(chance, domain, number):
    """A message from a domain, from the generator's state."""
    fields = [
        ("From", f'"Someone, {number}" <someone@{domain}>'),
        ("To", ", ".join(f"Reader {n} <reader{n}@dest.test>" for n in range(chance.randrange(1, 12)))),
        ("Subject", chance.choice(["", "  leading", "plain words", "trailing  ", "Grüße 日本", "a: b; c=d", "tab\there"])),
        ("Date", "Sun, 22 Nov 2026 10:00:00 +0000"),
        ("Message-ID", f"<{number}@{domain}>"),
        ("MIME-Version", "1.0"),
        ("Content-Type", 'text/plain; charset="utf-8"'),
        ("Content-Transfer-Encoding", "8bit"),
        ("X-Other", "never signed"),
    ]
    if chance.random() < 0.2:
        fields.append(("From", f"twice@{domain}"))
    if chance.random() < 0.2:
        fields += [("Subject", "again"), ("References", " ".join(f"<{n}@x.test>" for n in range(20)))]
    if chance.random() < 0.2:
        fields += [("List-Id", "a list <list.test>"), ("Sender", "other@else.test")]
    if chance.random() < 0.2:
        del fields[3:5]
    if chance.random() < 0.3:
        chance.shuffle(fields)
    head = ""
    for name, value in fields:
        if chance.random() < 0.3:
            name = chance.choice([name.upper(), name.lower()])
        value = folded(chance, value) if chance.random() < 0.4 else value
        head += f"{name}:{chance.choice([' ', '', '  '])}{value}\r\n"
    which = chance.randrange(RARE) if chance.random() > 0.02 else RARE
    if which == 0 and chance.random() < 0.5:
        return head.encode()
    return (head + "\r\n" + BODIES[which](chance)).encode()


@functools.cache
def letters():
    """Messages of other people, from Python's own tests: as far as they have a header."""
    found = []
    folder = pathlib.Path(peers.root(), "usr/lib", f"python3.{sys.version_info.minor}", "test/test_email/data")
    for path in sorted(folder.glob("msg_*.txt")):
        content = re.sub(rb"\r\n|\r|\n", b"\r\n", path.read_bytes()).replace(b"\0", b"")
        head, blank, body = content.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        whole = all(re.match(rb"[!-9;-~]+[ \t]*:|[ \t]", line) for line in lines) and not lines[0][:1].isspace()
        if blank and whole and max(map(len, content.split(b"\r\n"))) < 2000:
            found.append((head, body))
    assert len(found) > 30
    return found


def theirs(number, domain):
    """One of these, as if a domain of ours had written it."""
    head, body = letters()[number % len(letters())]
    head = re.sub(rb"(?im)^from[ \t]*:.*(\r\n[ \t].*)*\r\n", b"", head + b"\r\n")
    return f"From: them@{domain}\r\n".encode() + head + b"\r\n" + body


def corpus():
    """All messages, each with its domain."""
    chance = random.Random(SEED)
    domains = itertools.cycle(DOMAINS)
    return [
        (domain, theirs(number, domain) if number % 8 == 0 else made(chance, domain, number))
        for number, domain in zip(range(COUNT), domains)
    ]


class Sender(threading.Thread):
    """A client that sends its share in one of the ways there are, by turns."""

    def __init__(self, relay, share):
        super().__init__(daemon=True)
        self.relay, self.share, self.error = relay, share, None

    def run(self):
        try:
            with self.relay.client() as client:
                client.greet()
                for way, (recipient, domain, content) in enumerate(self.share):
                    getattr(self, ("by_data", "by_group", "by_chunks", "by_bare_ends")[way % 4])(client, recipient, domain, content)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.error = error

    @staticmethod
    def envelope(recipient, domain, last):
        """The commands in front of the content."""
        return f"MAIL FROM:<bounce@{domain}> BODY=8BITMIME\r\nRCPT TO:<{recipient}>\r\n{last}".encode()

    def by_data(self, client, recipient, domain, content):
        """Lock-step."""
        del self
        known = " SMTPUTF8" if recipient == "to@hop0.test" else ""  # others would have mail with such a header returned
        client.send_mail(f"bounce@{domain}", [recipient], content, mail_params=f" BODY=8BITMIME{known}")

    def by_group(self, client, recipient, domain, content):
        """Commands in one group, content and end in one piece."""
        client.send(self.envelope(recipient, domain, "DATA\r\n"))
        for code in (250, 250, 354):
            client.expect(code)
        client.send(stuff(content))
        client.expect(250)

    def by_bare_ends(self, client, recipient, domain, content):
        """In one chunk, some lines ended by LF alone."""
        content = re.sub(rb"([a-z])\r\n", rb"\1\n", content)
        client.send(self.envelope(recipient, domain, f"BDAT {len(content)} LAST\r\n") + content)
        for _ in range(3):
            client.expect(250)

    def by_chunks(self, client, recipient, domain, content):
        """Two chunks, cut anywhere, all at once."""
        cut = len(content) * 2 // 3
        group = self.envelope(recipient, domain, f"BDAT {cut}\r\n") + content[:cut]
        client.send(group + f"BDAT {len(content) - cut} LAST\r\n".encode() + content[cut:])
        for _ in range(4):
            client.expect(250)


@pytest.fixture(name="place", scope="module")
def _place(module_lab, tmp_path_factory):
    """A relay that signs, next hops of three kinds, the keys in DNS, and what came of the corpus."""
    keys = Keys(tmp_path_factory.mktemp("keys"))
    nsd = module_lab.nsd({domain: zone(domain, selectors, keys) for domain, (selectors, _) in DOMAINS.items()})
    sinks = [
        module_lab.sink(),
        module_lab.sink(extensions=("PIPELINING", "8BITMIME")),
        module_lab.sink(extensions=()),
    ]
    # All that the relay itself changes: addresses, fields that are missing, ends of lines.
    table = tmp_path_factory.mktemp("tables") / "canonical"
    table.write_text("".join(f"someone@{domain} a.person.of.a.much.longer.name@{domain}\n" for domain in DOMAINS) + "reader3@dest.test r@dest.test\n")
    config = Config(settings={"networks": ["127.0.0.0/8"], "canonical": [str(table)], "rewrite_header": True}).resolve_with(nsd)
    config.listeners["smtp"] = {"add_missing_headers": True, "bare_newline": "normalise"}
    for number, sink in enumerate(sinks):
        config.routes[f"hop{number}.test"] = {"relay": [f"[127.0.0.1]:{sink.port}"]}
    for domain, (selectors, form) in DOMAINS.items():
        for selector in selectors:
            config.extra += keys.section(domain, selector, canonicalization=form)
    relay = module_lab.relay(config)
    return relay, sinks, keys, nsd


def send_all(relay, sinks, messages):
    """Send them by several clients; return what the receivers got."""
    work = [(f"to@hop{number // len(DOMAINS) % len(sinks)}.test", *one) for number, one in enumerate(messages)]
    senders = [Sender(relay, work[first::4]) for first in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(60)
        assert not sender.is_alive() and sender.error is None, sender.error
    wait_until(lambda: sum(len(sink.messages) for sink in sinks) >= len(messages), 60, "all messages to come")
    return [one.content for sink in sinks for one in sink.messages]


@pytest.mark.plain_only
@pytest.mark.long
def test_no_signature_of_thousands_is_broken(place, tmp_path):
    relay, sinks, keys, nsd = place
    messages = corpus()
    got = send_all(relay, sinks, messages)
    records = {
        f"{selector}._domainkey.{domain}": keys.record(selector)
        for domain, (selectors, _) in DOMAINS.items() for selector in selectors
    }
    wanted = sum(len(DOMAINS[domain][0]) for domain, _ in messages)
    assert sum(len(algorithms(one)) for one in got) == wanted
    assert sum(b"a.person.of.a.much.longer.name@" in one for one in got) > COUNT / 2
    perl = MailDkim(nsd)
    ours, theirs_too = DkimPy(records), OpenDkim(records, tmp_path)
    verdicts = {}
    reader = threading.Thread(target=lambda: verdicts.update(perl.broken_among(got)))
    reader.start()
    broken = {}
    for index, content in enumerate(got):
        wrong = [ours.broken(content), theirs_too.broken(content)]
        if any(wrong):
            broken[index] = wrong
    reader.join()
    theirs_too.close()
    worst = [(why, got[at][:2000]) for at, why in [*broken.items(), *verdicts.items()][:2]]
    assert not broken and not verdicts, (len(broken), len(verdicts), worst)


def message(sender, body="text\r\n", head=""):
    """A small message from an address."""
    return f"From: {sender}\r\nSubject: a message\r\n{head}\r\n{body}".encode()


@pytest.fixture(name="small")
def _small(lab, tmp_path):
    """A relay with a sink behind it, and keys; the relay is not started."""
    keys = Keys(tmp_path)
    sink = lab.sink()
    config = Config().route_all_to(sink.port)
    config.extra = keys.section("own.test", "e") + keys.section(".parent.test", "e", expire="1h")
    return config, sink, keys


def signatures_of(content):
    """The signatures of a message as their tags."""
    fields = re.findall(rb"^DKIM-Signature:((?:.*\r\n)(?:[ \t].*\r\n)*)", content, re.MULTILINE)
    return [dict(tag.strip().split("=", 1) for tag in re.sub(r"\s+", "", one.decode()).split(";")) for one in fields]


def test_who_signs_and_who_does_not(lab, small):
    config, sink, keys = small
    config.listeners["strangers"] = {"networks": ["192.0.2.0/24"]}
    config.settings["postmaster"] = "p@else.test"
    relay = lab.relay(config)
    cases = [
        ("me@own.test", "own.test"), ("ME <Me@OWN.test>", "own.test"), ('"a, b@else.test" <me@own.test>', "own.test"),
        ("me@sub.own.test", None), ("me@host.parent.test", "parent.test"), ("me@a.b.parent.test", "parent.test"),
        ("me@parent.test", None), ("me@else.test", None), ("(me@own.test) you@else.test", None),
        ("me@own.test, you@own.test", "own.test"), ("me@own.test, you@else.test", None), ("<me@own.test", None),
        ("Group: me@own.test;", "own.test"), ("undisclosed:;", None), ("me@own.test\r\nFrom: you@else.test", None),
        ("me@own.test\r\nno field at all", None), ("me@own.test\r\nX-Long: " + "\r\n x" * 400000, None),
    ]
    with relay.client() as client:
        client.greet()
        for number, (sender, _) in enumerate(cases):
            client.send_mail("x@y.test", [f"case{number}@dest.test"], message(sender))
    with relay.client("strangers") as client:
        client.greet()
        client.send_mail("x@y.test", ["postmaster"], message("me@own.test"))
    got = {one.recipients[0]: one.content for one in sink.wait_messages(len(cases) + 1)}
    for number, (sender, domain) in enumerate(cases):
        tags = signatures_of(got[f"case{number}@dest.test"])
        assert [one["d"] for one in tags] == ([domain] if domain else []), (sender[:100], tags)
        assert not domain or not DkimPy({f"e._domainkey.{domain}": keys.record("e")}).broken(got[f"case{number}@dest.test"])
    assert not signatures_of(got["p@else.test"])
    tags = signatures_of(got["case4@dest.test"])[0]
    assert int(tags["x"]) - int(tags["t"]) == 3600
    signed = [event.get("signed") for event in relay.wait_events("queued", count=len(cases) + 1)]
    assert signed.count("own.test:e") == 5 and signed.count("parent.test:e") == 2 and signed.count(None) == len(cases) - 6
    reasons = [event["reason"] for event in relay.events("dkim", result="not signed")]
    assert sorted(set(reasons)) == sorted([
        "From names others than authors of one domain", "a line of the header is no field", "the client may not relay",
        "its header is too long",
    ])
    assert len(reasons) == 5


def test_a_signature_ends_so_long_after_its_mail_may_be_sent(lab, small):
    """Else mail that its sender wants to be sent later has one that holds no more."""
    config, sink, keys = small
    config.extra = keys.section("own.test", "e", expire="3s")
    with lab.relay(config).client() as client:
        client.greet()
        client.send_mail("x@y.test", ["later@dest.test"], message("me@own.test"), mail_params=" HOLDFOR=5")
        client.send_mail("x@y.test", ["now@dest.test"], message("me@own.test"))
    got = {one.recipients[0].partition("@")[0]: one.content for one in sink.wait_messages(2)}
    lasts = {name: int(tags["x"]) - int(tags["t"]) for name, content in got.items() for tags in signatures_of(content)}
    assert lasts["now"] == 3 and lasts["later"] in (7, 8)
    assert not DkimPy({"e._domainkey.own.test": keys.record("e")}).broken(got["later"])


def test_what_was_signed_is_shown_changed(small, lab):
    config, sink, keys = small
    lab.relay(config).send(content=message("me@own.test"))
    content = sink.wait_messages()[0].content
    verifier = DkimPy({"e._domainkey.own.test": keys.record("e")})
    assert not verifier.broken(content)
    for old, new in [(b"text", b"Text"), (b"me@own", b"us@own"), (b"From:", b"From: x@own.test\r\nFrom:"),
                     (b"\r\n\r\ntext", b"\r\nTo: you@own.test\r\n\r\ntext")]:
        assert verifier.broken(content.replace(old, new, 1)), new


def start_with_login(lab, config, tmp_path, rows):
    """Return a relay at which anna may send as these rows of sender_logins say, and how she logs in."""
    users, table = tmp_path / "users", tmp_path / "sender_logins"
    table.write_text(rows)
    certificate, key = lab.certificates.host("relay.test")
    config.listeners["smtp"] = {"certificate": certificate, "key": key, "auth": True, "tls": "optional"}
    config.auth = {"file": str(users), "mechanisms": ["PLAIN"], "require_tls": False}
    config.settings["sender_logins"] = [str(table)]
    users.write_text("")
    users.chmod(0o600)
    relay = lab.relay(config)
    assert relay.command("passwd", "-f", str(users), "anna", stdin="secret\n").returncode == 0
    relay.command("reload")
    return relay, "AUTH PLAIN " + base64.b64encode(b"\0anna\0secret").decode()


def test_a_login_signs_only_as_what_it_may_send(lab, small, tmp_path):
    config, sink, _ = small
    relay, login = start_with_login(lab, config, tmp_path, "me@own.test anna\nyou@else.test anna\nother@own.test bert\n")
    with relay.client() as client:
        client.greet()
        client.command(login)
        for number, author in enumerate(["me@own.test", "other@own.test", "you@else.test"]):
            client.send_mail("me@own.test", [f"case{number}@dest.test"], message(author))
    got = {one.recipients[0]: one.content for one in sink.wait_messages(3)}
    assert [len(signatures_of(got[f"case{number}@dest.test"])) for number in range(3)] == [1, 0, 0]
    assert relay.wait_event("dkim")["reason"] == "the login anna may not send as other@own.test"


def test_our_own_domain_vouches_for_nobody_who_a_login_may_not_be(lab, small, tmp_path):
    """Its signature beside the author's was there alone where that one was refused: to receivers it is the author's then."""
    config, sink, keys = small
    config.settings |= {"dkim_also": "esp.test", "dkim_keys": [table_of_keys(tmp_path, "keys", {"esp.test": f"r {keys.file['r']}"})]}
    relay, login = start_with_login(lab, config, tmp_path, "me@esp.test anna\nme@own.test anna\n")
    wanted = {"me@esp.test": ["esp.test"], "me@own.test": ["own.test", "esp.test"], "boss@own.test": ["esp.test"], "you@else.test": ["esp.test"],
              "boss@esp.test": [], "boss@sub.esp.test": [], "you@else.test, boss@esp.test": [], "a..b@esp.test": [], "<boss@esp.test": []}
    with relay.client() as client:
        client.greet()
        client.command(login)
        for number, author in enumerate(wanted):
            client.send_mail("me@own.test", [f"case{number}@dest.test"], message(author))
    relay.send(recipients=["network@dest.test"], content=message("boss@esp.test"))
    got = {one.recipients[0]: one.content for one in sink.wait_messages(len(wanted) + 1)}
    assert {author: [one["d"] for one in signatures_of(got[f"case{number}@dest.test"])] for number, author in enumerate(wanted)} == wanted
    assert [one["d"] for one in signatures_of(got["network@dest.test"])] == ["esp.test"]
    assert any("may not send as boss@sub.esp.test" in event["reason"] for event in relay.events("dkim"))


def test_large_mail_is_signed_and_its_file_is_whole(lab, small):
    config, sink, keys = small
    relay = lab.relay(config)
    verifier = DkimPy({"e._domainkey.own.test": keys.record("e")})
    line = b"a line of text  that has some length, and blanks \t at its end  \r\n"
    with relay.client() as client:
        client.greet()
        for size in (524000, 525000, 3 << 20):
            client.send_mail("x@y.test", ["to@dest.test"], message("me@own.test") + line * (size // len(line)))
    for one in sink.wait_messages(3):
        assert len(signatures_of(one.content)) == 1 and not verifier.broken(one.content)
    assert not relay.events("damage") and not relay.events("quarantined")


def test_a_page_on_one_line_is_signed_and_passes_as_it_is(lab, small):
    config, sink, keys = small
    relay = lab.relay(config)
    verifier = DkimPy({"e._domainkey.own.test": keys.record("e")})
    page = "<p>größer als jede Zeile</p>".encode() * 14000 + b"\r\n"
    with relay.client() as client:
        client.greet()
        client.send_mail("x@y.test", ["to@dest.test"], message("me@own.test") + page + b"." + page)
    (one,) = sink.wait_messages(1)
    assert one.content.endswith(page + b"." + page)
    assert len(signatures_of(one.content)) == 1 and not verifier.broken(one.content)


def test_bounces_and_mail_of_the_maildrop_are_signed(lab, small):
    config, sink, keys = small
    sink.behaviour.rules.append(Rule("rcpt", "550 5.1.1 nobody", "nobody@"))
    config.extra += keys.section("relay.test", "r")
    relay = lab.relay(config)
    relay.send(sender="writer@dest.test", recipients=("nobody@dest.test",), content=message("me@own.test"))
    bounce = sink.wait_messages()[0]
    assert bounce.sender == "" and not DkimPy({"r._domainkey.relay.test": keys.record("r")}).broken(bounce.content)
    assert [one["d"] for one in signatures_of(bounce.content.partition(b"\r\n\r\n")[0] + b"\r\n")] == ["relay.test"]
    assert relay.wait_event("queued", signed="relay.test:r")["report_of"]
    relay.stop()
    left = relay.command("sendmail", "-i", "-f", "me@own.test", "drop@dest.test", stdin="From: me@own.test\n\nleft here\n")
    assert left.returncode == 0, left
    relay.start()
    found = [one for one in sink.wait_messages(2) if one.recipients == ["drop@dest.test"]][0]
    assert not DkimPy({"e._domainkey.own.test": keys.record("e")}).broken(found.content)
    assert relay.wait_event("queued", via="maildrop")["signed"] == "own.test:e"


def test_a_reload_with_a_bad_key_keeps_what_was(lab, small, tmp_path):
    config, sink, keys = small
    relay = lab.relay(config)
    verifier = DkimPy({"e._domainkey.own.test": keys.record("e")})
    weak = str(tmp_path / "weak.pem")
    Keys.openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:768", "-out", weak)
    (tmp_path / "none.pem").write_text("no key\n")
    for name, text in [("gone.pem", "No such file"), ("weak.pem", "less than 1024"), ("none.pem", "cannot be read")]:
        config_text = config.extra
        relay.config.extra = keys.section("own.test", "e", key=str(tmp_path / name))
        relay.write_config()
        said = relay.command("reload")
        assert said.returncode == 1 and text in said.stdout + said.stderr, said
        relay.config.extra = config_text
    relay.send(content=message("me@own.test"))
    assert not verifier.broken(sink.wait_messages()[0].content)
    relay.config.extra = keys.section("own.test", "r")
    relay.write_config()
    assert relay.command("reload").returncode == 0
    relay.send(content=message("me@own.test"))
    assert not DkimPy({"r._domainkey.own.test": keys.record("r")}).broken(sink.wait_messages(2)[1].content)


def test_check_warns_of_keys_that_all_may_read_and_of_short_ones(lab, small, tmp_path):
    config, _, keys = small
    short = tmp_path / "short.pem"
    Keys.openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024", "-out", str(short))
    short.chmod(0o644)
    config.extra = keys.section("own.test", "s", key=str(short))
    relay = lab.relay(config)
    said = relay.command("check").stderr
    assert "every user of the machine may read" in said and "a key of 1024 bits" in said
    for text, wanted in [
        ('dkim "own.test" { selector = "s" }', "absolute path"), ('dkim "own.test" { key = "/x" }', "needs a selector"),
        ('dkim "no domain" { selector = "s"  key = "/x" }', "is not a domain"),
        ('dkim "own.test" { selector = "s"  key = "/x"  headers = { "a b" } }', "name of a header field"),
        ('dkim "own.test" { selector = "s"  key = "/x"  headers = { "To", "?" } }', "\"?\" is not the name of a header field"),
        ('dkim "own.test" { selector = "s"  key = "/x" }\n' * 2, "already there, in line"),
    ]:
        relay.config.extra = text
        relay.write_config()
        faulty = relay.command("check")
        assert faulty.returncode == 1 and wanted in faulty.stderr, faulty


def test_keygen_and_check_against_the_dns(lab, tmp_path):
    nsd = lab.nsd({"own.test": ""})
    relay = lab.relay(Config().resolve_with(nsd))
    lines, files = [], {}
    for selector, kind in [("r1", "rsa2048"), ("e1", "ed25519")]:
        files[selector] = tmp_path / f"{selector}.pem"
        made = relay.command("dkim", "keygen", "Own.Test", selector, "--type", kind, "-o", str(files[selector]))
        assert made.returncode == 0 and files[selector].stat().st_mode & 0o777 == 0o600, made
        again = relay.command("dkim", "keygen", "own.test", selector, "-o", str(files[selector]))
        assert again.returncode == 1 and "exists" in again.stderr
        lines.append(made.stdout)
    relay.config.extra = "".join(
        f'dkim "own.test" {{ selector = "{one}"  key = "{path}" }}\n' for one, path in files.items()
    )
    relay.write_config()

    def check(records, *words):
        nsd.set_zone("own.test", records)
        said = relay.command("dkim", "check", *words)
        return said.returncode, said.stdout + said.stderr

    records = "".join(lines)
    assert check(records)[0] == 0, check(records)
    assert check(records, "own.test", "--json")[1].count('"result": "good"') == 2
    assert check(records, "else.test") == (1, "sluice: no section dkim or row of dkim_keys signs for else.test\n")
    text = relay.config.extra
    keys = table_of_keys(tmp_path, "keys", {"own.test": f"r1 {files['r1']}, e1 {files['e1']}"})
    relay.config.extra = f'dkim_keys = {{ "{keys}" }}\n'
    relay.write_config()
    assert check(records, "own.test", "--json")[1].count('"result": "good"') == 2
    assert check(records, "else.test")[0] == 1
    relay.config.extra = text
    relay.write_config()
    rsa, ed = records.splitlines()
    for wrong, text in [
        ("", "there is no record"), (rsa, "there is no record e1"), (f"{rsa}\n{ed.replace('p=', 'p=A')}", "cannot be read"),
        (re.sub(r"p=[^\"]*", "p=", ed), "revoked"), (ed.replace("ed25519", "rsa"), "another kind"),
        (ed.replace("k=ed", "h=sha1; k=ed"), "sha256"), (ed.replace("k=ed", "s=tlsrpt; k=ed"), "not for mail"),
        (ed.replace("DKIM1", "DKIM2"), "v=DKIM1"), (re.sub(r"p=(.)", lambda one: "p=B" if one[1] == "A" else "p=A", ed), "another key"),
        (f"{ed}\n{ed.replace('p=', 't=s; p=')}", "2 records"),
    ]:
        status, said = check(wrong)
        assert status == 1 and text in said, (text, said)
    status, said = check(f"{rsa}\n{ed.replace('k=ed', 't=y; k=ed')}")
    assert status == 0 and "tested" in said, said
    nsd.stop()
    assert relay.command("dkim", "check").returncode == 1


def table_of_keys(folder, name, rows):
    """Write a table of keys, as CDB where the name says so; return its path."""
    path = folder / name
    text = "".join(f"{domain} {value}\n" for domain, value in rows.items())
    if name.endswith(".cdb"):
        subprocess.run(["cdb", "-c", "-m", str(path)], input=text, text=True, check=True)
    else:
        path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", ["keys", "keys.cdb"])
def test_keys_of_a_table_sign_like_those_of_sections(lab, small, tmp_path, name):
    config, sink, keys = small
    r, e = keys.file["r"], keys.file["e"]
    config.settings["dkim_keys"] = [table_of_keys(tmp_path, name, {
        "one.test": f"r {r}", "two.test": f"r {r}, e {e}", ".below.test": f"e {e}", "own.test": f"r {r}", "relay.test": f"e {e}"})]
    sink.behaviour.rules.append(Rule("rcpt", "550 5.1.1 nobody", "nobody@"))
    relay = lab.relay(config)
    wanted = {"a@one.test": ["one.test:r"], "a@two.test": ["two.test:r", "two.test:e"], "a@x.y.below.test": ["below.test:e"],
              "a@below.test": [], "a@own.test": ["own.test:e"], "a@else.test": []}
    for number, sender in enumerate(wanted):
        relay.send(recipients=[f"case{number}@dest.test"], content=message(sender))
    got = {one.recipients[0]: one.content for one in sink.wait_messages(len(wanted))}
    for number, (sender, signatures) in enumerate(wanted.items()):
        content = got[f"case{number}@dest.test"]
        assert [f"{one['d']}:{one['s']}" for one in signatures_of(content)] == signatures, sender
        records = {f"{s.partition(':')[2]}._domainkey.{s.partition(':')[0]}": keys.record(s[-1]) for s in signatures}
        assert not signatures or not DkimPy(records).broken(content)
    assert relay.wait_event("queued", signed="two.test:r,two.test:e")
    relay.send(sender="writer@dest.test", recipients=("nobody@dest.test",), content=message("me@else.test"))
    assert relay.wait_event("queued", signed="relay.test:e")["report_of"]


def test_our_own_domain_signs_beside_the_author(lab, small, tmp_path):
    """All mail of who may relay, whoever wrote it; of a stranger nothing."""
    config, sink, keys = small
    config.settings |= {"dkim_keys": [table_of_keys(tmp_path, "keys", {"esp.test": f"r {keys.file['r']}"})], "dkim_also": "ESP.test",
                        "postmaster": "p@else.test"}
    config.listeners["strangers"] = {"networks": []}
    relay = lab.relay(config)
    wanted = {"a@own.test": ["own.test", "esp.test"], "a@else.test": ["esp.test"], "a@esp.test": ["esp.test"],
              "me@own.test, you@else.test": ["esp.test"]}
    for number, sender in enumerate(wanted):
        relay.send(recipients=[f"case{number}@dest.test"], content=message(sender))
    with relay.client("strangers") as client:
        client.greet()
        client.send_mail("x@y.test", ["postmaster"], message("me@else.test"))
    got = {one.recipients[0]: one.content for one in sink.wait_messages(len(wanted) + 1)}
    records = {"e._domainkey.own.test": keys.record("e"), "r._domainkey.esp.test": keys.record("r")}
    for number, (sender, domains) in enumerate(wanted.items()):
        assert [one["d"] for one in signatures_of(got[f"case{number}@dest.test"])] == domains, sender
        assert not DkimPy(records).broken(got[f"case{number}@dest.test"])
    assert not signatures_of(got["p@else.test"])


def test_mail_whose_key_cannot_be_read_waits_with_its_sender(lab, small, tmp_path):
    """It is never sent unsigned; other mail goes; and a key that has come, or has changed, is read."""
    config, sink, keys = small
    key = tmp_path / "late.pem"
    config.settings["dkim_keys"] = [table_of_keys(tmp_path, "keys", {"late.test": f"e {key}"})]
    relay = lab.relay(config)
    with relay.client() as client:
        client.greet()
        client.send_mail("a@late.test", ["b@dest.test"], message("a@late.test"), code=451)
    relay.wait_event("condition", name="dkim_key_unreadable", state="on", subject=str(key))
    assert str(key) in relay.wait_event("dkim", result="failed")["reason"]
    relay.send(content=message("me@own.test"))
    for kind in "er":
        temporary = tmp_path / "new.pem"
        temporary.write_text(pathlib.Path(keys.file[kind]).read_text())
        temporary.rename(key)
        relay.send(recipients=[f"{kind}@dest.test"], content=message("a@late.test"))
        relay.wait_event("sent", to=f"{kind}@dest.test")
        content = [one for one in sink.messages if one.recipients == [f"{kind}@dest.test"]][0].content
        assert not DkimPy({"e._domainkey.late.test": keys.record(kind)}).broken(content)
    relay.wait_event("condition", name="dkim_key_unreadable", state="off")


def test_a_key_that_no_row_names_any_more_is_no_condition(lab, small, tmp_path):
    """The row is mended, and not the file: nothing will ever read that one again."""
    config, _, keys = small
    wrong = tmp_path / "wrong.pem"
    config.settings["dkim_keys"] = [table_of_keys(tmp_path, "keys", {"late.test": f"e {wrong}"})]
    relay = lab.relay(config)

    def refuse(times):
        with relay.client() as client:
            client.greet()
            client.send_mail("a@late.test", ["b@dest.test"], message("a@late.test"), code=451)
        relay.wait_event("condition", name="dkim_key_unreadable", state="on", subject=str(wrong), count=times)

    refuse(1)
    table_of_keys(tmp_path, "keys", {"late.test": f"e {keys.file['e']}"})
    relay.wait_event("condition", name="dkim_key_unreadable", state="off", subject=str(wrong))
    before = len(relay.events("tables", message="read anew"))
    table_of_keys(tmp_path, "keys", {"late.test": f"e {wrong}"})
    relay.wait_event("tables", message="read anew", count=before + 1)
    refuse(2)
    assert relay.command("reload").returncode == 0
    relay.wait_event("condition", name="dkim_key_unreadable", state="off", count=2)


def test_rows_of_keys_that_are_none_are_errors(lab, small, tmp_path):
    config, _, keys = small
    config.settings |= {"dkim_keys": [table_of_keys(tmp_path, "keys", {
        "a.test": "s", "b.test": "s_1 /x", "c.test": "s x.pem", "d@e.test": f"s {keys.file['e']}",
        "f.test": ", ".join(f"s{n} /x" for n in range(9)), "g.test": "s /x,"})]}
    said = lab.relay(config, start=False).command("check").stderr
    for line, text in ((1, "must be SELECTOR FILE"), (2, '"s_1" is no selector'), (3, '"x.pem" is not the absolute path'),
                       (4, "not a domain"), (5, "more than 8 signatures"), (6, "must be SELECTOR FILE")):
        assert re.search(f"/keys:{line}: .*{re.escape(text)}", said), (line, said)
    config.settings |= {"dkim_also": "nobody.test", "dkim_keys": [table_of_keys(tmp_path, "keys", {"a.test": f"e {keys.file['e']}"})]}
    relay = lab.relay(config, start=False)
    with open(relay.config_path, encoding="utf-8") as file:
        line = next(number for number, text in enumerate(file, 1) if "dkim_also" in text)
    assert f':{line}: dkim_also: no section dkim, and no row of dkim_keys, signs for "nobody.test"' in relay.command("check").stderr
