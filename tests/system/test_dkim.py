# SPDX-License-Identifier: ISC
"""Signatures: what other people's verifiers say of what a receiver got, who signs, and keys that are wrong."""

import base64
import itertools
import pathlib
import random
import re
import subprocess
import threading

import pytest

from lab import received
from lab.config import Config
from lab.dkim_verifiers import DkimPy, MailDkim, OpenDkim, algorithms
from lab.net import wait_until
from lab.smtp import stuff

SEED = 20261122
COUNT = 2080
LETTERS = pathlib.Path("/usr/lib/python3.11/test/test_email/data")

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
        settings = {"selector": kind, "key": self.file[kind]} | more
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
    lambda chance: base64.encodebytes(chance.randbytes(chance.choice([90000, 150000]))).decode().replace("\n", "\r\n"),
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


def letters():
    """Messages of other people, from Python's own tests: as far as they have a header."""
    found = []
    for path in sorted(LETTERS.glob("msg_*.txt")):
        content = re.sub(rb"\r\n|\r|\n", b"\r\n", path.read_bytes()).replace(b"\0", b"")
        head, blank, body = content.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        whole = all(re.match(rb"[!-9;-~]+[ \t]*:|[ \t]", line) for line in lines) and not lines[0][:1].isspace()
        if blank and whole and max(map(len, content.split(b"\r\n"))) < 2000:
            found.append((head, body))
    return found


def theirs(number, domain):
    """One of these, as if a domain of ours had written it."""
    head, body = LETTERS_READ[number % len(LETTERS_READ)]
    head = re.sub(rb"(?im)^from[ \t]*:.*(\r\n[ \t].*)*\r\n", b"", head + b"\r\n")
    return f"From: them@{domain}\r\n".encode() + head + b"\r\n" + body


LETTERS_READ = letters()


def corpus():
    """All messages, each with its domain."""
    chance = random.Random(SEED)
    domains = itertools.cycle(DOMAINS)
    return [
        (domain, theirs(number, domain) if number % 8 == 0 and LETTERS_READ else made(chance, domain, number))
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
                    getattr(self, ("by_data", "by_group", "by_chunks")[way % 3])(client, recipient, domain, content)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.error = error

    @staticmethod
    def envelope(recipient, domain, last):
        """The commands in front of the content."""
        return f"MAIL FROM:<bounce@{domain}> BODY=8BITMIME\r\nRCPT TO:<{recipient}>\r\n{last}".encode()

    def by_data(self, client, recipient, domain, content):
        """Lock-step."""
        del self
        client.send_mail(f"bounce@{domain}", [recipient], content, mail_params=" BODY=8BITMIME")

    def by_group(self, client, recipient, domain, content):
        """Commands in one group, content and end in one piece."""
        client.send(self.envelope(recipient, domain, "DATA\r\n"))
        for code in (250, 250, 354):
            client.expect(code)
        client.send(stuff(content))
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
    config = Config(settings={"networks": ["127.0.0.0/8"]}).resolve_with(nsd)
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
