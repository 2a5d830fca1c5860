# SPDX-License-Identifier: ISC
"""A relay to which anything is done in any order, and what each of its messages was promised.

Clients send side by side, hosts and a filter change how they behave, an operator gives orders, settings change, and the
relay is stopped, replaced, frozen and killed. What there is differs, too: extensions, limits and TLS of the hosts, a second
host, LMTP, an alias, flows, sources, a filter, a transport that sends nothing in clear. Somebody looks at its page all the time, and
often leaves before it is there. Routes change, and what comes to a host
is to be led there by them. All of it follows from a seed, but for what runs side by side.
"""

import collections
import contextlib
import dataclasses
import datetime
import email
import os
import random
import re
import signal
import socket
import threading
import time

from . import milter
from .behaviour import EVERYTHING, Rule
from .config import Config
from .milter import Milter, packet, texts
from .net import LOOPBACK, free_port, wait_until
from .report import Report
from .smtp import Closed, stuff

DOMAINS = ("a.test", "b.test", "c.test")
NEVER = threading.Event()
UNKNOWN = Rule("rcpt", reply="550 5.1.1 nobody of that name", pattern="^no")
TAKES_BEHIND_421 = (Rule("rset", reply="421 4.3.2 not now", times=4),)
MOODS = (
    (),
    (Rule("rcpt", reply="451 4.2.0 not now"),),
    (Rule("mail", reply="451 4.2.0 not now"),),
    (Rule("end", reply="451 4.3.0 not now"),),
    (Rule("end", reply="554 5.6.0 not this", pattern="^odd"),),
    (Rule("end", close=True),),
    (Rule("end", reset=True, times=3),),
    (Rule("end", delay=0.3),),
    (Rule("end", reply="421 4.3.2 going down", close=True, times=5),),
    (Rule("data", close=True, times=5),),
    (Rule("data", reply="451 4.3.0 not now", times=5),),
    (Rule("mail", close=True, after=3),),
    (Rule("rcpt", reply="452 4.5.3 enough of them", after=2, times=6), Rule("rcpt", delay=0.05)),
    (Rule("connect", reply="421 4.3.2 not now"),),
    (Rule("connect", reply="554 5.7.1 not you", times=3),),
    (Rule("ehlo", reply="421 4.3.2 not now", times=4),),
    TAKES_BEHIND_421,
    (Rule("starttls", reply="454 4.7.0 not now"),),
    (Rule("starttls", close=True, times=3),),
    (Rule("end", reply="451 4.3.0 not now", pattern="[13579]@"),),
    (Rule("mail", reply="503 5.5.1 wait for your turn", early=True),),
    (Rule("rcpt", reply="503 5.5.1 wait for your turn", early=True), Rule("data", reply="503 5.5.1 wait for your turn", early=True)),
    (Rule("rcpt", reply="421 4.7.0 too fast", after=2, times=4, close=True),),
    (Rule("bdat", reply="421 4.3.2 going down", close=True, after=1, times=3),),
    (Rule("bdat", reply="502 5.5.2 what is that", times=2),),
    (Rule("end", reply="250 2.0.0 taken", close=True, after=2, times=4),),
    (Rule("end", reply="451 4.7.1 too many messages, slow down", after=3, times=8),),
    (Rule("connect", delay=0.4), Rule("connect", close=True, after=2, times=4)),
    (Rule("quit", close=True), Rule("rset", delay=0.2)),
    (Rule("end", reply="550", pattern="^odd"), Rule("rcpt", reply="550", after=3, times=3)),
    (Rule("ehlo", reply="502 5.5.1 never heard of it"),),
)
# In worlds whose relay waits for no answer as long as it does by default.
SILENT = (
    *((Rule(stage, gate=NEVER),) for stage in ("connect", "ehlo", "mail", "rcpt", "rset", "quit")),
    *((Rule(stage, gate=NEVER, times=4),) for stage in ("data", "bdat", "end", "starttls")),
    (Rule("rcpt", gate=NEVER, pattern="1@"), Rule("mail", delay=0.1)),
    (Rule("end", gate=NEVER, after=2, times=4), Rule("rset", gate=NEVER)),
)
WAITED = ("greeting", "helo", "starttls", "mail", "rcpt", "data_init", "data_block", "data_done", "rset", "quit")
LIMITS = (
    ("connection_limit", (None, 1, 3)),
    ("messages_per_connection", (None, 1, 4)),
    ("limit_reply", ("421 4.7.0 enough for one connection", "450 4.7.0 enough for one connection", "421 4.7.1 too many messages, slow down")),
    ("size", (None, None, 200000)),
    ("latency", (0.0, 0.0, 0.03)),
)
SILENT_LIMITS = (("greeting_limit", (None, 1, 3)),)
UNEVEN = 4  # doublings: so much more often than others some acts come in every other history
FEW = 4  # moods of hosts, settings, in those
# What each domain's host can do, and a filter does.
EXTENSIONS = (EVERYTHING, EVERYTHING, EVERYTHING, tuple(one for one in EVERYTHING if one != "CHUNKING"), ("PIPELINING",), ())
FILTERS = (
    {},
    {},
    {"M": packet(milter.TEMPFAIL)},
    {"R": milter.reply("450 4.7.1 not now")},
    {"E": packet(milter.REJECT)},
    {"E": packet(milter.TEMPFAIL)},
    {"E": packet(milter.GIVES_UP)},
    {"E": packet(b"q", texts("looks odd")) + packet(milter.CONTINUE)},
    {"E": milter.add_header("X-One", "1") + packet(milter.CONTINUE)},
    {"E": packet(b"+", texts("to40@b.test")) + packet(milter.ACCEPT)},
    {"E": milter.add_header("X-One", "1") + packet(milter.GIVES_UP)},
    {"E": None},
    {"B": b"\0\0\0\0"},
)
LIST = "list@list.test"
MEMBERS = ("to30@a.test", "to31@b.test", "to32@b.test", "no33@c.test")
# Settings that may change while it runs: where they stand, and what they may be.
SETTINGS = (
    ("transport", "destination_concurrency_limit", (1, 3, 20)),
    ("transport", "destination_recipient_limit", (1, 2, 50)),
    ("transport", "connection_max_messages", (1, 2, 1000)),
    ("transport", "connection_limit", (1, 4, 100)),
    ("transport", "pipeline_depth", (1, 2, 16)),
    ("transport", "pace", (True, False)),
    ("transport", "destination_by", ("site", "domain", "recipient")),
    ("queue", "message_active_limit", (20, 20000)),
    ("queue", "maximal_queue_lifetime", ("2s", "5d", "5d")),
    ("queue", "maximal_backoff_time", ("300ms", "1s")),
    ("queue", "delay_warning_time", ("0s", "1s")),
    ("queue", "message_recipient_limit", (30, 20000)),
    ("queue", "in_flow_delay", ("0s", "1s")),
    ("transport", "recipient_limit", (20, 20000)),
    ("transport", "refill_limit", (1, 100)),
    ("transport", "destination_rate", ("", "5/s", "50/s")),
    ("transport", "destination_rate_delay", ("0s", "0s", "50ms")),
    ("transport", "connection_idle_timeout", ("100ms", "5s")),
    ("transport", "host_connection_limit", (1, 20)),
    ("transport", "sources", ((), ("a",), ("a", "b=3"))),
    ("settings", "queue_minfree", ("16m", "16m", "1024g")),
    ("settings", "suppress", ("0s", "2s")),
    ("settings", "content_memory_limit", ("1m", "128m")),
)
# What is asked of reports, and by which of these a report of an action may come. "" is "FAILURE,DELAY".
NOTIFY = ("", "", "", "NEVER", "SUCCESS", "FAILURE", "DELAY", "SUCCESS,FAILURE", "SUCCESS,FAILURE,DELAY")
ASKED = {"failed": "FAILURE", "delayed": "DELAY", "relayed": "SUCCESS", "delivered": "SUCCESS", "expanded": "SUCCESS"}
EIGHT_BIT = "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n"
BEYOND_ASCII = " gr\u00fc\u00df"
FLOWS = ("bulk", "news")
# What its page shows, and what is no part of it.
LOOKS = ("/", "/metrics", "/healthz", "/events", "/nothing", *(f"/api/{what}" for what in (
    "stats", "queue", "queue?limit=5", "shape", "dest", "dest?name=a.test", "explain", "explain?site=a.test", "reasons", "search?q=a.test", "nodes", "flows")))
SOURCES = {"a": "127.0.0.2", "b": "127.0.0.3"}
UNLOGGED_S = 0.5  # the log may be so far behind on a busy machine
LATE_S = 8  # what was on its way at a reload may come so much later: a pipeline of it, to a slow host
BASE = {"minimal_backoff_time": "200ms", "maximal_backoff_time": "300ms", "queue_run_delay": "1s", "in_doubt_retries": 30, "bounce_address_rate": "60000/m"}


class Chance:
    """One history."""

    def __init__(self, lab, seed):
        """Start the hosts and the relay."""
        self.random = random.Random(seed)
        self._uneven = random.Random(f"{seed} uneven") if self.random.random() < 0.5 else None
        waited = self.random.choice((None, "1s", "7s"))
        self._timeouts = {f"{stage}_timeout": waited for stage in WAITED} if waited else {}
        self._limits = LIMITS + SILENT_LIMITS if waited else LIMITS
        self._moods, self._settings = self._some(MOODS + SILENT if waited else MOODS), self._some(SETTINGS)
        self.store, self.secure = self._special()
        self.hosts = {domain: self._hosts(lab, domain) for domain in DOMAINS}
        self.plain = [domain for domain in DOMAINS if domain not in (self.store, self.secure)]  # whose route may change
        self.ways = {domain: [(0, {host.port for host in hosts})] for domain, hosts in self.hosts.items()}  # since when, to whom
        self.filter = Milter() if self.random.random() < 0.5 else None
        if self.filter:
            lab.callback(self.filter.stop)
        self.sender = lab.sink()
        self.relays = self._start_relays(lab)
        self.promised = {}  # what had its 250: tag, recipients
        self.sent = {}  # what clients have tried to send: tag, _Mail
        self.ids = []
        self.deleted = set()  # ids that the operator wanted so
        self.kills = []  # when
        self.bounces = []  # when the operator had some returned
        self.story = []  # what was done, and when
        self._number = 0
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._clients = [threading.Thread(target=self._send_all, args=(random.Random(f"{seed} {number}"),), daemon=True) for number in range(3)]
        self._clients.append(threading.Thread(target=self._look_at_all, args=(random.Random(f"{seed} looks"),), daemon=True))

    def _start_relays(self, lab):
        return [lab.relay(self._config())]

    @property
    def relay(self):
        """The relay that is next to be talked to."""
        return self.relays[0]

    def _some(self, of):
        return self._uneven.sample(of, FEW) if self._uneven else of

    def _often(self, weight):
        return weight << self._uneven.randrange(UNEVEN) if self._uneven else weight

    def _special(self):
        """Return whose host speaks LMTP, and who gets nothing in clear."""
        store = self.random.choice((None, None, *DOMAINS))
        return store, self.random.choice((None, None, *(domain for domain in DOMAINS if domain != store)))

    def _hosts(self, lab, domain):
        return [self._host(lab, domain) for _ in range(self.random.choice((1, 1, 2)))]

    def _host(self, lab, domain):
        tls = lab.certificates.server_context(domain) if self.random.random() < 0.3 or domain == self.secure else None
        return lab.sink(UNKNOWN, extensions=self.random.choice(EXTENSIONS), tls=tls, lmtp=domain == self.store)

    def _config(self):
        config = Config(settings={"postmaster": "root@sender.test", "flow_header": "X-Flow", "http": f"{LOOPBACK}:{free_port()}"}, queue=dict(BASE))
        config.transports = {"smtp": dict(self._timeouts), "store": {"like": "smtp", "protocol": "lmtp"}, "secure": {"like": "smtp", "tls": "required"},
                             "second": {"like": "smtp"}}
        for domain, hosts in [*self.hosts.items(), ("sender.test", [self.sender])]:
            transport = {"transport": "store"} if domain == self.store else {"transport": "secure"} if domain == self.secure else {}
            config.routes[domain] = {"relay": [f"[127.0.0.1]:{host.port}" for host in hosts], **transport}
        config.aliases[LIST] = {"to": MEMBERS}
        config.extra = 'flow "bulk" {\n  share = 50%\n  rate = "40/s"\n}\nflow "news" {\n  weight = 3\n}\n'
        config.extra += "".join(f'source "{name}" {{\n  address = {{ "{address}" }}\n}}\n' for name, address in SOURCES.items())
        if self.filter:
            action = self.random.choice(("tempfail", "accept", "quarantine"))
            config.extra += f'milter "one" {{\n  address = "{self.filter.address}"\n  timeout = 1s\n  default_action = "{action}"\n}}\n'
        return config

    # Clients.

    def _look_at_all(self, rng):
        while not self._ending.wait(0.05):
            with contextlib.suppress(OSError):
                self._look_at(rng, rng.choice(self.relays).config.settings["http"].rpartition(":")[2])

    def _look_at(self, rng, port):
        """Read the beginning of something, or all of it; no answer is half one."""
        most = rng.choice((0, 1, 1000, 1 << 30))
        with socket.create_connection((LOOPBACK, int(port)), timeout=1) as reader:
            reader.sendall(f"GET {rng.choice(LOOKS)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            seen = b""
            while len(seen) < most and (more := reader.recv(65536)):
                seen += more

    def _send_all(self, rng):
        while not self._ending.is_set():
            with contextlib.suppress(OSError, Closed, AssertionError):
                if rng.random() < 0.1:
                    self._submit(rng)
                else:
                    with self.relay.client() as client:
                        self._greet(client)
                        for _ in range(rng.choice((1, 1, 3))):
                            self._send(client, rng)
            time.sleep(rng.choice((0, 0.02, 0.1)))

    def _greet(self, client):
        client.greet()

    def _mail(self, rng):
        """Return a message that was never sent before."""
        with self._lock:
            self._number += 1
            tag = f"m{self._number}"
        sender = rng.choice(("from@sender.test", "from@sender.test", "odd@sender.test", ""))
        names = rng.sample(range(20), rng.choice((1, 1, 2, 6)))
        recipients = {f"{rng.choice(('to', 'to', 'to', 'no'))}{name}@{rng.choice(DOMAINS)}": rng.choice(NOTIFY) for name in names}
        if rng.random() < 0.1:
            recipients[LIST] = ""
        lines = rng.choice((1, 1, 1, 20, 4000, 10000))
        flow = rng.choice(("", "", "X-Flow: bulk\r\n", "X-Flow: news\r\n"))
        eight_bit = rng.random() < 0.2
        mail = _Mail(
            tag=tag, sender=sender, recipients=recipients, eight_bit=eight_bit, whole=rng.random() < 0.5, priority=rng.choice((0, 0, 4, -4)),
            header=f"Message-ID: <{tag}@chance.test>\r\nSubject: {tag}\r\n{flow}{EIGHT_BIT if eight_bit else ''}\r\n",
            body=f"{tag} {'x' * 60}{BEYOND_ASCII if eight_bit else ''}\r\n" * lines)
        self.sent[tag] = mail
        return mail

    def _promise(self, mail):
        self.promised[mail.tag] = [member for to in mail.recipients for member in (MEMBERS if to == LIST else (to,))]

    def _keep(self, mail, reply):
        self._promise(mail)
        mail.id = re.search(r"queued as (\S+)", reply.text)[1]
        self.ids.append(mail.id)

    def _send(self, client, rng):
        mail = self._mail(rng)
        way = rng.choice(("data", "data", "bdat", "pipelined", "broken"))
        if way == "data":
            for line in mail.commands():
                client.command(line, 250)
            client.command("DATA", 354)
            client.send(stuff(mail.content))
            self._keep(mail, client.expect(250))
            return
        head = "".join(f"{line}\r\n" for line in mail.commands())
        if way == "bdat":
            body = mail.content
            half = len(body) // 2
            client.send(f"{head}BDAT {half}\r\n".encode() + body[:half] + f"BDAT {len(body) - half} LAST\r\n".encode() + body[half:])
        else:
            client.send(f"{head}DATA\r\n".encode())
        for _ in range(len(mail.recipients) + 2):
            reply = client.read_reply()
            assert reply.code in (250, 354)
        if way == "broken":
            client.send(mail.content[: len(mail.content) // 2])
            client.reset()
            raise Closed
        if way == "pipelined":
            client.send(stuff(mail.content))
        self._keep(mail, client.expect(250))

    def _submit(self, rng):
        mail = self._mail(rng)
        mail.recipients = dict.fromkeys(mail.recipients, "")
        mail.submitted = True
        content = mail.content.decode().replace("\r\n", "\n")
        if self.relay.command("sendmail", "-f", mail.sender or "<>", *mail.recipients, stdin=content).returncode == 0:
            self._promise(mail)

    # What else happens.

    def _acts(self):
        """Return what may happen, and how often it does."""
        return ((self._change_host, 8), (self._change_limit, 4), (self._order, 8), (self._change_settings, 4), (self._change_way, 3), (self._stop, 1),
                (self._freeze, 1), (self._kill, 1), (self._replace, 1), *([(self._change_filter, 3)] if self.filter else []))

    def play(self, steps):
        """Let so many things happen."""
        acts = self._acts()
        weights = [self._often(weight) for _, weight in acts]
        for client in self._clients:
            client.start()
        try:
            for _ in range(steps):
                act = self.random.choices([act for act, _ in acts], weights)[0]
                self._note(act.__name__.strip("_"))
                act()
                time.sleep(self.random.choice((0, 0.05, 0.2)))
        finally:  # else they would go on in the next
            self._ending.set()
            for client in self._clients:
                client.join()

    def _note(self, *words):
        now = datetime.datetime.now(datetime.timezone.utc)
        self.story.append(f"{now:%H:%M:%S.%f} {' '.join(map(str, words))}")

    def _change_host(self):
        domain, mood = self.random.choice(DOMAINS), self.random.choice(self._moods)
        host = self.random.choice(self.hosts[domain])
        self._note(domain, host.port, mood)
        if domain == self.store and mood is TAKES_BEHIND_421:
            return  # there its 421 is taken at its word: decision 0174
        host.behaviour.rules = [UNKNOWN, *(Rule(**{name: getattr(rule, name) for name in rule.__dataclass_fields__}) for rule in mood)]

    def _change_limit(self):
        host, (name, values) = self.random.choice(self.hosts[self.random.choice(DOMAINS)]), self.random.choice(self._limits)
        value = self.random.choice(values)
        self._note(host.port, name, value)
        setattr(host.behaviour, name, value)

    def _change_filter(self):
        answers = self.random.choice(FILTERS)
        self._note(answers)
        self.filter.behave(answers)

    def _order(self):
        domain, flow = self.random.choice(DOMAINS), self.random.choice(FLOWS)
        one = self.random.choice(self.ids[-30:]) if self.ids else "1"
        words = self.random.choice((
            ("queue", "flush", "--all"), ("queue", "flush", "--domain", domain), ("queue", "hold", one), ("queue", "hold", "--domain", domain),
            ("queue", "release", "--all"), ("queue", "release", "--domain", domain, "--fresh"), ("queue", "requeue", one), ("queue", "bounce", one),
            ("queue", "delete", one), ("queue", "requeue", "--all"), ("queue", "list"), ("queue", "show", one),
            ("dest", "suspend", domain), ("dest", "resume", domain), ("dest", "reset", domain), ("dest", "list"), ("explain", one), ("shape",), ("verify", f"to1@{domain}"), ("queue", "release", "--all", "--refilter"),
            ("dest", "suspend", domain, "--for", "1s"), ("flow", "suspend", flow), ("flow", "resume", flow), ("flow", "suspend", flow, "--for", "1s"),
            ("queue", "hold", "--flow", flow), ("queue", "release", "--flow", flow), ("queue", "bounce", "--reason", "not now")))
        if words[1:2] == ("delete",):
            self.deleted.add(one)
        self._note(*words)
        self.relay.command(*words)
        if words[1:2] == ("bounce",):
            self.bounces.append(time.monotonic())

    def _change_settings(self):
        kind, name, values = self.random.choice(self._settings)
        value = self.random.choice(values)
        self._note(name, value)
        for config in (relay.config for relay in self.relays):
            at = {"transport": config.transports["smtp"], "queue": config.queue, "settings": config.settings}[kind]
            at[name] = value
        self._reload()

    def _change_way(self):
        """Have the mail of a domain go to the hosts of another, or of its own, by one transport or the other."""
        domain, hosts = self.random.choice(self.plain), self.hosts[self.random.choice(self.plain)]
        relays = self.random.sample(hosts, self.random.randint(1, len(hosts)))
        way = {"relay": [f"[127.0.0.1]:{host.port}" for host in relays], **self.random.choice(({}, {"transport": "second"}))}
        self._note(way)
        for relay in self.relays:
            relay.config.routes[domain] = way
        self._reload()
        self.ways[domain].append((time.monotonic(), {host.port for host in relays}))

    def leads_to(self, domain, at):
        """Return the ports to which the domain's mail might begin to go at that time."""
        before = [ports for since, ports in self.ways[domain] if since <= at - LATE_S]
        return set().union(before[-1], *(ports for since, ports in self.ways[domain] if at - LATE_S < since))

    def misled(self, host, one):
        """Yield what is wrong with the way that a message has come."""
        for domain in {recipient.partition("@")[2] for recipient in one.recipients}:
            if host.port not in self.leads_to(domain, one.time):
                yield f"mail for {domain} came to {host.port} at {one.time:.1f}, after {self.ways[domain]}: {one.content[:300]}"
            if domain == self.secure and not one.tls:
                yield f"in clear: {one.content[:200]}"

    def _reload(self):
        for relay in self.relays:
            relay.write_config()
        for relay in self.relays:
            done = relay.command("reload") if relay.running() else None
            assert not done or done.returncode == 0 or not relay.running(), done.stderr

    def _stop(self):
        relay = self.relay
        status = relay.stop()
        assert status == 0, f"it ended with status {status}"
        relay.start()

    def _freeze(self):
        relay = self.relay
        relay.signal(signal.SIGSTOP)
        time.sleep(self.random.choice((0.1, 1.5)))
        relay.signal(signal.SIGCONT)

    def _kill(self):
        relay = self.relay
        self.kills.append(time.monotonic())
        relay.kill()
        relay.start()

    def _replace(self):
        relay = self.relay
        done = relay.command("restart")
        assert done.returncode == 0, done.stderr

    # The end.

    def settle(self):
        """Let all be well, and wait until nothing is left in the queue."""
        for host in self.all_hosts():
            host.behaviour.rules = [UNKNOWN]
            for name, values in self._limits:
                setattr(host.behaviour, name, values[0])
        self._calm()
        for relay in self.relays:
            self._let_go(relay)
        left = []
        try:
            wait_until(lambda: self._is_empty(left), 120, "an empty queue")
        except AssertionError as late:
            shown = [left[-1][:3000], *(relay.command("dest", "list").stdout for relay in self.relays), *self.story]
            raise AssertionError("\n".join([str(late), *shown])) from late

    def _calm(self):
        if self.filter:
            self.filter.behave()
        for config in (relay.config for relay in self.relays):
            for name in (name for kind, name, _ in SETTINGS if kind == "settings"):
                config.settings.pop(name, None)
            config.queue = dict(BASE)
            config.transports["smtp"] = {"site_patience": "0s", "host_backoff_max": "200ms", **self._timeouts}
        self._reload()

    @staticmethod
    def _let_go(relay):
        for domain in DOMAINS:
            relay.command("dest", "resume", domain)
            relay.command("dest", "reset", domain)
        for flow in FLOWS:
            relay.command("flow", "resume", flow)
        relay.command("queue", "release", "--all")

    def all_hosts(self):
        return [host for hosts in self.hosts.values() for host in hosts]

    def _is_empty(self, left):
        for relay in self.relays:
            relay.command("queue", "flush", "--all")
        time.sleep(0.3)
        left.append("".join(relay.command("queue", "list", "--json").stdout for relay in self.relays))
        dropped = [name for relay in self.relays for folder in ("maildrop", "taken") for name in os.listdir(os.path.join(relay.spool, folder))]
        return left[-1] == "" and not dropped

    def faults(self):
        """Return what was promised and not kept, in words."""
        return list(_Ledger(self).faults())

    def told_of(self, faults):
        """Return the lines of the log that name a message of these."""
        ids = set(re.findall(r"\b[0-9A-Z]{13}\b", " ".join(faults)))
        return [line for relay in self.relays for line in relay.log_text().splitlines() if any(one in line for one in ids)]


@dataclasses.dataclass
class _Mail:
    """What a client sends: recipients with the reports that are asked of each."""

    tag: str
    sender: str
    recipients: dict
    header: str
    body: str
    eight_bit: bool
    whole: bool  # is to come back with a report
    priority: int = 0
    parameters: str = ""  # of MAIL, in front of others
    submitted: bool = False  # by the command, which asks nothing of reports
    id: str = ""  # as the reply said; its line of the log is gone with a relay that was killed

    @property
    def content(self):
        return (self.header + self.body).encode()

    def commands(self):
        """Return the commands up to its content."""
        body = " BODY=8BITMIME" if self.eight_bit else ""
        priority = f" MT-PRIORITY={self.priority}" if self.priority else ""
        yield f"MAIL FROM:<{self.sender}>{self.parameters}{body}{priority} ENVID={self.tag} RET={'FULL' if self.whole else 'HDRS'}"
        for to, notify in self.recipients.items():
            yield f"RCPT TO:<{to}>" + (f" NOTIFY={notify}" if notify else "")

    def asks(self, to, action):
        """Say whether a report of that was asked for; the postmaster hears of all that nobody else is told."""
        if not self.sender:
            return action == "failed"
        notify = self.recipients.get(to, "") or "FAILURE,DELAY"
        return ASKED[action] in notify.split(",")


class _Ledger:
    """What the log and the hosts say of each message.

    Whoever lost the connection to a relay that ended has sent a message once more: then it has two ids.
    """

    def __init__(self, history):
        self.history = history
        events = [event for relay in history.relays for event in relay.events()]
        self.ids_of = {}
        for event in events:
            if event.name == "queued" and "@chance.test" in event.get("message_id", ""):
                self._has(re.sub("@.*|<", "", event["message_id"]), event["id"])
            elif event.name == "queued" and event.get("refilter_of"):  # what a filter has changed since goes on under another
                for ids in self.ids_of.values():
                    if event["refilter_of"] in ids:
                        ids.add(event["id"])
        for mail in history.sent.values():
            if mail.id:
                self._has(mail.tag, mail.id)
        self.deleted = history.deleted | {event["id"] for event in events if event.name == "done" and event.get("reason") == "deleted"}
        self.doubts = collections.Counter((event["id"], event.get("to")) for event in events if event.name in ("in_doubt", "recovered"))
        self.bounced = {(event["id"], event["to"]) for event in events if event.name in ("bounced", "discarded")}
        self.sent = {(event["id"], event["to"]) for event in events if event.name == "sent"}
        self.arrived, self.unlogged = collections.Counter(), collections.Counter()
        self.handed_on = set()  # with what was asked of reports
        self.wrong = []
        for host in history.all_hosts():
            for one in host.transactions:
                self._take_message(one)
                self.wrong += history.misled(host, one)
        self.refused_unlogged = set(self._refused_before_a_kill())
        self.bounced_unlogged = any(0 <= kill - time_ < UNLOGGED_S for kill in history.kills for time_ in history.bounces)
        self.reported = set()
        for one in history.sender.messages:
            self._take_report(one)

    def _refused_before_a_kill(self):
        """Yield the recipients whose end only a line of the log tells, where no report is asked for, and that may be gone."""
        for host in self.history.all_hosts():
            for time_, line in (command for session in host.sessions for command in session.commands):
                refused = re.match(r"RCPT TO:<(no[^>]*)>", line)
                if refused and any(0 <= kill - time_ < UNLOGGED_S for kill in self.history.kills):
                    yield refused[1]

    def _has(self, tag, id_):
        self.ids_of.setdefault(tag, set()).add(id_)

    def _take_message(self, one):
        replies = one.reply.split("\n")  # one for each recipient with LMTP; "" where the connection broke instead
        of_all = replies if len(replies) > 1 else replies * len(one.recipients)
        tag = re.search(rb"Message-ID: <(\w+)@", one.content)[1].decode()
        self._compare(self.history.sent[tag], one)
        taken = [to for to, reply in zip(one.recipients, of_all) if reply[:1] not in ("4", "5")]
        if not taken:
            return
        id_ = re.search(rb"\bid (\w+)", one.content)[1].decode()
        self._has(tag, id_)  # the last lines of the log are gone with a relay that was killed
        keys = [(id_, recipient) for recipient in taken]
        self.arrived.update(keys)
        self.handed_on.update((tag, recipient) for recipient in taken if "NOTIFY" in one.recipient_params[recipient])
        if any(0 <= kill - one.time < UNLOGGED_S for kill in self.history.kills):
            self.unlogged.update(keys)

    def _compare(self, mail, one):
        """Note where what came is not what was sent."""
        came = email.message_from_bytes(one.content).get_payload(decode=True)
        if came.replace(b"\r\n", b"\n") != mail.body.encode().replace(b"\r\n", b"\n"):
            self.wrong.append(f"{mail.tag} came with another content: {one.content[:2000]}")
        if one.sender != mail.sender:
            self.wrong.append(f"{mail.tag} came from {one.sender}")
        if one.sender_params.get("ENVID", mail.tag) != mail.tag:
            self.wrong.append(f"{mail.tag} came with {one.sender_params}")
        for to, params in one.recipient_params.items():
            asked = mail.recipients.get(to)
            if asked and set(params.get("NOTIFY", asked).split(",")) != set(asked.split(",")):
                self.wrong.append(f"{mail.tag} {to} came with {params}, {asked} was asked")

    def _take_report(self, one):
        content = one.content
        report = Report(content)
        tag = re.search(rb"Message-ID: <(\w+)@chance", report.returned.body)
        if not tag:
            self.wrong.append(f"a report of nothing: {content[:2000]}")
            return
        mail = self.history.sent[tag[1].decode()]
        if not mail.submitted and report.message.get("original-envelope-id") != mail.tag:
            self.wrong.append(f"{mail.tag} was reported as {report.message}")
        for recipient in report.recipients:
            to = recipient["final-recipient"].partition(";")[2].strip()
            self.reported.add((mail.tag, to, recipient["action"]))
            if to in mail.recipients and not mail.asks(to, recipient["action"]):
                self.wrong.append(f"{mail.tag} {to} was reported as {recipient['action']}, asked was {mail.recipients[to] or 'nothing'} {mail.sender!r} {one.recipients}")

    def _in_doubt(self, id_, recipient):
        return self.doubts[id_, None] + self.doubts[id_, recipient]

    def faults(self):
        """Yield what is wrong."""
        yield from self.wrong
        for tag, recipients in self.history.promised.items():
            for recipient in recipients:
                yield from self._judge(self.history.sent[tag], recipient)
        for (id_, recipient), times in self.arrived.items():
            if times > 1 + self._in_doubt(id_, recipient) + self.unlogged[id_, recipient]:
                yield f"{id_} {recipient} came {times} times, in doubt {self._in_doubt(id_, recipient)}"

    def _judge(self, mail, recipient):
        ids = self.ids_of.get(mail.tag, set())
        came = any((id_, recipient) in self.arrived for id_ in ids)
        returned = (mail.tag, recipient, "failed") in self.reported
        gone = any(id_ in self.deleted for id_ in ids)
        failed = any((id_, recipient) in self.bounced for id_ in ids)
        untold = (recipient in self.refused_unlogged or self.bounced_unlogged) and not mail.asks(recipient, "failed")
        if not came and not returned and not gone and not failed and not untold:
            yield f"{mail.tag} {ids} {recipient} is lost, asked was {mail.recipients.get(recipient)!r}"
        if failed and not came and not returned and not gone and mail.asks(recipient, "failed"):
            yield f"{mail.tag} {ids} {recipient} failed, and nobody was told"
        if came and returned and len(ids) == 1 and not any(self._in_doubt(id_, recipient) for id_ in ids):
            yield f"{mail.tag} {ids} {recipient} came, and was returned"
        relayed = any((mail.tag, recipient, action) in self.reported for action in ("relayed", "delivered"))
        sent = any((id_, recipient) in self.sent for id_ in ids)
        if sent and not gone and not relayed and mail.asks(recipient, "relayed") and (mail.tag, recipient) not in self.handed_on:
            yield f"{mail.tag} {ids} {recipient} was handed on, and nobody was told"
