# SPDX-License-Identifier: ISC
"""A long way: messages a second on one connection, and on up to twenty.

    sluice, Postfix -> delay_line, one way 50 ms -> sluice sink

The receiver announces CHUNKING and PIPELINING, PIPELINING only, or neither. The mail waits in the
queue before the way opens. The rate is that of what comes after the first tenth, at the sink: a
host has to prove good before it gets many messages in flight, which takes five round trips. On
twenty connections it is also that before the last tenth, when some of them have no more to do.
"""

import contextlib

from ends import source
from lab.net import free_port
from traffic import Line, Mailer, Receiver, Sluice, senders, side_by_side, steady

ROUND_TRIP_MS = 100
CONNECTIONS = 20
WAYS = {
    "chunking": [],
    "pipelining": ["--no-chunking"],
    "neither": ["--no-chunking", "--no-pipelining"],
    "postfix": [],
}
# Messages on one connection, and on twenty: five to seven seconds.
MESSAGES = {"chunking": (1000, 6000), "pipelining": (50, 900), "neither": (14, 240), "postfix": (20, 340)}
PATIENCE = 120


def _sender(way, folder, port, connections):
    if way == "postfix":
        return Mailer(folder, {"smtp_destination_concurrency_limit": connections,
                               "initial_destination_concurrency": connections}, to_port=port)
    transport = {"host_connection_limit": connections}
    if connections == 1:
        transport |= {"connection_max_messages": 0, "connection_max_age": "0s"}
    return Sluice(folder, transport, to_port=port)


def _measure(way, folder, connections, size):
    messages = MESSAGES[way][connections > 1]
    with contextlib.ExitStack() as kept:
        sink_port, line_port = free_port(), free_port()
        receiver = Receiver(sink_port, *WAYS[way])
        kept.callback(receiver.close)
        line = Line(line_port, sink_port, ROUND_TRIP_MS / 2)
        kept.callback(line.close)
        sender = _sender(way, folder, line_port, connections)
        kept.callback(sender.close)
        source(sender.port, messages, 20, size)
        line.open()
        receiver.wait(messages, PATIENCE)
    # One was to see that the line listens. Postfix ends a connection now and then.
    assert connections > 1 or way == "postfix" or receiver.connections == 2, "not one connection"
    return steady(receiver.times, 0.1, 1.0 if connections == 1 else 0.9)


def measure(folder, size):
    """Return messages a second by way and number of connections."""
    ways = [way for way in WAYS if way != "postfix" or way in senders()]
    figures = {}
    for connections in (1, CONNECTIONS):
        def one(way, connections=connections):
            return _measure(way, folder / f"{way}-{connections}", connections, size)
        # Those that only wait run together; twenty connections with CHUNKING have the machine.
        alone = ["chunking"] if connections > 1 else []
        rates = {way: one(way) for way in alone}
        rates |= side_by_side({way: lambda way=way: one(way) for way in ways if way not in alone})
        figures |= {f"{way}_{connections}": rate for way, rate in rates.items()}
    return figures
