# SPDX-License-Identifier: ISC
"""What every measurement needs: the two ends, the servers between, what they have spent."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests" / "system"))

from lab import peers  # noqa: E402
from lab.config import Config  # noqa: E402
from lab.net import LOOPBACK, accepts, wait_until  # noqa: E402
from lab.relay import Relay  # noqa: E402

IDLE_S = 0.5
TICK = os.sysconf("SC_CLK_TCK")


class Sink:
    """Postfix's smtp-sink; given a number, it ends by itself after so many messages."""

    def __init__(self, port, messages=None):
        command = [peers.program("smtp-sink")]
        command += ["-M", str(messages)] if messages else []
        command += ["-u", "nobody"] if os.getuid() == 0 else []
        self.process = subprocess.Popen(command + [f"{LOOPBACK}:{port}", "1024"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: accepts(port), 10, "smtp-sink to listen")

    def wait(self, seconds):
        """Wait until all messages have come."""
        self.process.wait(seconds)

    def _switches(self):
        return re.findall(r"ctxt_switches:\s*(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())

    def rest(self, seconds=300):
        """Wait until nothing has come for a while."""
        def idle():
            before = self._switches()
            time.sleep(IDLE_S)
            return self._switches() == before
        wait_until(idle, seconds, "all mail to have come")

    def close(self):
        """Stop it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def source(port, messages, sessions, size, seconds=600, stderr=None):
    """Send so many messages to port, each on a connection of its own, and wait for their 250."""
    subprocess.run([peers.program("smtp-source"), "-s", str(sessions), "-m", str(messages),
                    "-l", str(size), "-f", "a@bench.test", "-t", "b@bench.test",
                    f"{LOOPBACK}:{port}"], check=True, timeout=seconds, stderr=stderr)


def drive(port, sink_port, options, messages, seconds=600):
    """Send so many messages to port and return the seconds until the sink has all of them."""
    straight = port == sink_port
    sink = Sink(sink_port, None if straight else messages)
    try:
        began = time.monotonic()
        source(port, messages, options.sessions, options.size, seconds)
        if not straight:
            sink.wait(seconds)
        return time.monotonic() - began
    finally:
        sink.close()


def ticks(pid):
    """Return the processor time of one process and the children it has waited for."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(field) for field in fields[11:15])


def group_ticks(leader):
    """Return the processor time of all processes in a process group."""
    total = 0
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getpgid(int(entry.name)) == leader:
                    total += ticks(entry.name)
            except OSError:
                continue
    return total


def spent(pid, before=0.0):
    """Return the seconds of processor time of a server's process group, less those before."""
    return group_ticks(os.getpgid(pid)) / TICK - before


def make_relay(folder, sink_port, settings=None, program=None):
    """Return a relay whose next hop is the sink; it is not started. program: in place of ours."""
    folder.mkdir(exist_ok=True)
    config = Config(settings={"log_level": "info"} | (settings or {})).route_all_to(sink_port)
    config.listeners["smtp"] = {"client_connection_limit": 0}
    relay = Relay(folder, config)
    relay.program = program
    return relay


TRACE = ["strace", "-f", "-q", "-e", "trace=fsync,fdatasync,open,openat,creat"]


class Traced:
    """What a file that strace wrote says."""

    def __init__(self, path):
        """Name the file; it is read when asked for."""
        self.path = path

    def syncs(self):
        """Return how many syncs there were."""
        return len(re.findall(r" f(?:data)?sync\(", self.path.read_text()))

    def files(self):
        """Return how many files were created: the calls that another process did not cut in two,
        and both halves of the others."""
        begun, count = {}, 0
        for line in self.path.read_text().splitlines():
            pid, _, call = line.partition(" ")
            if "O_CREAT" in call:
                begun[pid] = not _NOT_OF_THE_QUEUE.search(call)
            if pid in begun and "<unfinished" not in call:
                count += begun.pop(pid) and re.search(r" = \d+$", call) is not None
        return count


_NOT_OF_THE_QUEUE = re.compile(r'(\.log|/log|lock|\.pid)"')


def attach(pid, path):
    """Attach strace to all processes of a server's group and return the tracer."""
    group = os.getpgid(pid)
    pids = [entry.name for entry in pathlib.Path("/proc").iterdir()
            if entry.name.isdigit() and _in_group(int(entry.name), group)]
    tracer = subprocess.Popen([*TRACE, "-o", path, *[w for p in pids for w in ("-p", p)]],
                              stderr=subprocess.DEVNULL)
    time.sleep(1)
    return tracer


def detach(tracer):
    """End a tracer, so that its file is complete."""
    tracer.send_signal(signal.SIGINT)
    tracer.wait(30)


def _in_group(pid, group):
    try:
        return os.getpgid(pid) == group
    except OSError:
        return False
