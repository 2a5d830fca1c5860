# SPDX-License-Identifier: ISC
"""Messages with many recipients: a mailing list's, and those for many next hops.

    one message to 100,000 recipients of 10,000 domains, found by DNS, on three hosts; Postfix gets a tenth
    meanwhile a message to one recipient, handed over when a tenth of the list's has come
    messages to one recipient at each of 100 next hops, one after the other

Receivers are sluice sinks, which tell of each message when it has come; the hundred next hops are
addresses of the loopback network that one of them listens on.
"""

import contextlib
import pathlib
import statistics
import time

from lab.net import LOOPBACK, free_port, wait_until
from lab.smtp import Client
from neighbours import HOSTS, start_nsd
from traffic import Mailer, Receiver, Sluice, content_of, hand_over, senders

LIST = {"sluice": (100_000, 10_000), "postfix": (10_000, 1_000)}  # recipients, domains
AT_ONCE = 500  # RCPT in one piece
HOPS, HOP_MESSAGES = 100, 20
SINGLE = "single@d0.bench.test"
PATIENCE = 300


def _hand_over_list(port, recipients, size):
    """Hand over one message to all of them; return when its content was sent, and when it was taken."""
    with Client(LOOPBACK, port, PATIENCE) as client:
        client.greet()
        client.send("MAIL FROM:<a@bench.test>")
        client.expect(250)
        for at in range(0, len(recipients), AT_ONCE):
            some = recipients[at:at + AT_ONCE]
            client.send("\r\n".join(f"RCPT TO:<{one}>" for one in some))
            for _ in some:
                client.expect(250)
        client.send("DATA")
        client.expect(354)
        sent = time.monotonic()
        client.send(content_of(size))
        client.expect(250)
        return sent, time.monotonic()


def _make(who, folder, nsd, port):
    most = LIST[who][0]
    if who == "postfix":
        more = {"smtp_tcp_port": port, "smtpd_recipient_limit": most}
        return Mailer(folder, more, nsd=nsd)
    return Sluice(folder, {"port": port}, nsd=nsd, listener={"recipient_limit": most})


def _memory(sender, which):
    """Return what a relay has resident (VmRSS), or had at most (VmHWM), in megabytes."""
    text = pathlib.Path(f"/proc/{sender.relay.process.pid}/status").read_text()
    return int(text.partition(f"{which}:")[2].split()[0]) / 1024


def _came(receivers):
    return sum(one.recipients for one in receivers)


def _beside(sender, receiver, size):
    """Hand over a message to one, and return the seconds until it came."""
    receiver.seen, began = None, time.monotonic()
    hand_over(sender.port, [SINGLE], size, 1)
    wait_until(lambda: receiver.seen, PATIENCE, "the single message")
    return receiver.seen - began


def _list(who, folder, nsd, size):
    """Return what one message to a whole list takes, and the message beside it."""
    count, domains = LIST[who]
    recipients = [f"r{n}@d{n % domains}.bench.test" for n in range(count)]
    with contextlib.ExitStack() as kept:
        port = free_port()
        receivers = [Receiver(port, address=address, watched=SINGLE.encode()) for address in HOSTS]
        for one in receivers:
            kept.callback(one.close)
        sender = _make(who, folder, nsd, port)
        kept.callback(sender.close)
        found = {"alone": _beside(sender, receivers[0], size)}
        before = _memory(sender, "VmRSS") if who == "sluice" else 0
        began = time.monotonic()
        sent, taken = _hand_over_list(sender.port, recipients, size)
        wait_until(lambda: _came(receivers) >= count / 10, PATIENCE, "a tenth of the list")
        found["beside"] = _beside(sender, receivers[0], size)
        wait_until(lambda: _came(receivers) >= count, PATIENCE, "the list")
        last = max(at for one in receivers for at in one.times)
        found |= {"taking": taken - began, "last": last - sent, "rate": count / (last - sent),
                  "transactions": sum(len(one.times) for one in receivers)}
        if who == "sluice":
            found["megabytes"] = _memory(sender, "VmHWM") - before
    return found


def _hops(folder, size):
    """Return deliveries a second of messages to a hundred next hops each: the first, which finds no
    connection, and the median of those that follow it."""
    routes = {f"d{n}.bench.test": {"relay": [f"[127.0.9.{n + 1}]:{{port}}"]} for n in range(HOPS)}
    recipients = [f"b@{name}" for name in routes]
    with contextlib.ExitStack() as kept:
        port = free_port(address="0.0.0.0")
        receiver = Receiver(port, address="0.0.0.0")
        kept.callback(receiver.close)
        for one in routes.values():
            one["relay"] = [hop.format(port=port) for hop in one["relay"]]
        sender = Sluice(folder, routes=routes)
        kept.callback(sender.close)
        took = []
        for number in range(1, HOP_MESSAGES + 1):
            sent, _ = _hand_over_list(sender.port, recipients, size)
            wait_until(lambda number=number: receiver.recipients >= number * HOPS, PATIENCE, "all hops")
            took.append(receiver.times[-1] - sent)
    return {"first": HOPS / took[0], "next": HOPS / statistics.median(took[1:])}


def run(options, folder):
    """Measure and return the figures of each."""
    nsd = start_nsd(folder / "nsd")
    try:
        figures = {who: _list(who, folder / who, nsd, options.size) for who in senders()}
    finally:
        nsd.stop()
    return figures | {"hops": _hops(folder / "hops", options.size)}


def report(figures, options):
    """Return the lines of the table."""
    lines = [f"one message of {options.size} bytes to a list",
             f"{'':10}{'recipients':>12}{'domains':>10}{'taken in s':>12}{'last after':>12}{'a second':>10}"
             f"{'transactions':>14}{'MB more':>9}{'single s':>10}{'alone':>8}"]
    for who in LIST:
        if who in figures:
            one = figures[who]
            more = f"{one['megabytes']:.0f}" if "megabytes" in one else "-"
            lines.append(f"{who:10}{LIST[who][0]:12}{LIST[who][1]:10}{one['taking']:12.2f}{one['last']:12.2f}"
                         f"{one['rate']:10.0f}{one['transactions']:14}{more:>9}"
                         f"{one['beside']:10.3f}{one['alone']:8.3f}")
    hops = figures["hops"]
    return lines + ["", f"one message to one recipient at each of {HOPS} next hops, deliveries a second",
                    f"without a connection {hops['first']:8.0f}", f"those that follow    {hops['next']:8.0f}"]
