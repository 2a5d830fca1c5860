# SPDX-License-Identifier: ISC
"""Real NATS servers with JetStream, and what a node has replicated to them."""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import time

from . import peers, spool
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

BEGIN, LOG, MARKS, LARGE, LARGE_END, COMPLETE, CHECKPOINT = range(1, 8)
HEAD = struct.Struct("<4sB3xQQQQQLL4xL")
GARBAGE_AT, GARBAGE = 3, b"\1"


class Server:
    """One nats-server; its store stays when it is killed."""

    def __init__(self, folder, name, address=LOOPBACK, port=None):
        """Choose its ports; write() is next, and start() runs it."""
        self.name, self.address = name, address
        self.folder = os.path.join(folder, name)
        self.port, self.inner = port or free_port(), free_port()
        self.process = None
        os.makedirs(self.folder)

    def write(self, text):
        """Write its configuration."""
        with open(os.path.join(self.folder, "conf"), "w", encoding="utf-8") as stream:
            stream.write(text)

    def start(self):
        """Run it until it listens."""
        self.process = Process([peers.program("nats-server"), "-c", f"{self.folder}/conf"], f"{self.folder}/output")
        wait_until(lambda: accepts(self.port, self.address) or not self.process.running(), 60, "nats-server to listen")
        assert self.process.running(), self.process.output_text()

    def signal(self, number):
        """Send it a signal."""
        self.process.signal(number)

    def kill(self):
        """End it at once."""
        self.process.signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        """End it, paused or not."""
        if self.process:
            self.process.signal(signal.SIGCONT)
            self.process.stop()


class Nats:
    """So many servers, which are one cluster."""

    def __init__(self, folder, servers=3, extra=""):
        """Make their configurations; start() runs them."""
        self.servers = [Server(str(folder), f"n{number}") for number in range(servers)]
        for server in self.servers:
            server.write(self.configure(server, extra))

    def configure(self, server, extra=""):
        """Return its configuration."""
        text = f"""
            server_name: {server.name}
            listen: "{LOOPBACK}:{server.port}"
            jetstream {{ store_dir: "{server.folder}/store", max_mem: 16MB, max_file: 2GB }}
            {extra}
        """
        if len(self.servers) > 1:
            routes = ", ".join(f'"nats://{LOOPBACK}:{one.inner}"' for one in self.servers)
            text += f'cluster {{ name: lab, no_advertise: true, listen: "{LOOPBACK}:{server.inner}", routes: [ {routes} ] }}\n'
        return text

    @property
    def addresses(self):
        """What a relay's setting says of them."""
        return ",".join(f"{server.address}:{server.port}" for server in self.servers)

    def start(self):
        """Run them until they have a leader. Returns self."""
        for server in self.servers:
            server.start()
        try:
            self._wait_ready()
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.report()}") from None
        return self

    def _wait_ready(self):
        """Wait until they are one cluster.

        Three servers of 2.10.27, Debian 13's, that begin for the first time do not see all of each other in one of
        twenty cases, for as long as one waits: what an operator does then is to start them again, one by one.
        """
        for server in self.servers:
            with contextlib.suppress(AssertionError):
                wait_until(self.ready, 12, "JetStream to be ready")
                return
            server.kill()
            server.start()
        wait_until(self.ready, 60, "JetStream to be ready")

    def ready(self):
        """Say whether JetStream answers, and has a place for as many copies as there are servers."""
        try:
            with self._talk(timeout=3) as talk:  # while there is no leader nobody answers
                wanted = {"name": "probe", "subjects": ["probe"], "num_replicas": len(self.servers)}
                made = talk.ask("$JS.API.STREAM.CREATE.probe", wanted)
                return "error" not in made and "error" not in talk.ask("$JS.API.STREAM.DELETE.probe", {})
        except OSError:
            return False

    def wipe(self):
        """End all of them, and remove what they have stored."""
        for server in self.servers:
            server.kill()
            shutil.rmtree(f"{server.folder}/store")

    def close(self):
        """End all of them."""
        for server in self.servers:
            server.close()

    def report(self):
        """What they have written, for a test that failed."""
        return "\n".join(server.process.output_text()[-1500:] for server in self.servers if server.process)

    def _talk(self, timeout=60):
        for server in self.servers:
            if server.process and server.process.running():
                try:
                    return Talk(server, timeout)
                except OSError:
                    continue
        raise OSError("no server")

    def ask(self, subject, **request):
        """Ask JetStream; return what it answers."""
        with self._talk() as talk:
            return talk.ask(subject, request)

    def state(self, node):
        """Return what is known of the stream of a node: messages, bytes, ...; or None."""
        answer = self.ask(f"$JS.API.STREAM.INFO.sluice-{node}")
        return answer.get("state")

    def messages(self, node):
        """Return all messages of a node's stream: (type, epoch, of, offset, size, payload)."""
        found, at = [], 1
        until = time.monotonic() + 60
        with self._talk() as talk:
            while True:
                answer = talk.ask(f"$JS.API.STREAM.MSG.GET.sluice-{node}", {"seq": at, "next_by_subj": ">"})
                code = answer.get("error", {}).get("code")
                if code == 503 and time.monotonic() < until:
                    time.sleep(0.2)  # it is choosing a leader
                    continue
                if code:
                    assert code == 404, answer
                    return found
                at = answer["message"]["seq"] + 1
                data = base64.b64decode(answer["message"]["data"])
                magic, kind, epoch, _, of, offset, size, length, *_ = HEAD.unpack_from(data)
                assert magic == b"sRP1" and len(data) == HEAD.size + length
                found.append((kind, epoch, of, offset, size, data[HEAD.size:]))

    def rebuild(self, node, folder):
        """Write the queue that the stream holds into a folder, as format.h says."""
        for name in ("log", "large"):
            os.makedirs(os.path.join(folder, name))
        messages = self.messages(node)
        whole = max((epoch for kind, epoch, *_ in messages if kind in (COMPLETE, CHECKPOINT)), default=0)
        first = {epoch: of for kind, epoch, of, *_ in messages if kind == BEGIN}
        for kind, epoch, of, offset, size, payload in messages:
            counts = epoch == whole or (epoch > whole and (kind in (LARGE, LARGE_END) or of >= first[epoch]))
            if counts:
                self._apply(folder, kind, of, offset, size, payload)

    @staticmethod
    def _apply(folder, kind, of, offset, size, payload):
        if kind in (COMPLETE, CHECKPOINT) and payload:
            with open(os.path.join(folder, "log", "checkpoint"), "wb") as stream:
                stream.write(payload)
        elif kind == LOG:
            with _open(os.path.join(folder, "log", f"{of:016x}.seg")) as stream:
                os.pwrite(stream.fileno(), payload, offset)
                os.truncate(stream.fileno(), size)
        elif kind == LARGE:
            with _open(os.path.join(folder, "large", spool.identity(of))) as stream:
                os.pwrite(stream.fileno(), payload, offset)
        elif kind == MARKS:
            with _open(os.path.join(folder, "log", f"{of:016x}.seg")) as stream:
                for (at,) in struct.iter_unpack("<L", payload):
                    os.pwrite(stream.fileno(), GARBAGE, at + GARBAGE_AT)


def _open(path):
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")


class Talk:
    """As much of a client as a test needs."""

    def __init__(self, server, timeout):
        """Connect."""
        self.socket = socket.create_connection((server.address, server.port), timeout)
        self.stream = self.socket.makefile("rb")
        assert self.stream.readline().startswith(b"INFO ")
        self.socket.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB answers.* 1\r\n')
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def ask(self, subject, request):
        """Send a request; return the object that comes back."""
        self.count += 1
        body = json.dumps(request).encode() if request else b""
        self.socket.sendall(f"PUB {subject} answers.{os.getpid()}x{self.count} {len(body)}\r\n".encode() + body + b"\r\n")
        while True:
            words = self.stream.readline().split()
            if not words:
                raise OSError("the server has closed")
            if words[0] == b"PING":
                self.socket.sendall(b"PONG\r\n")
            if words[0] == b"HMSG":
                self.stream.read(int(words[-1]) + 2)
                return {"error": {"code": 503, "description": "nobody answers"}}
            if words[0] == b"MSG":
                return json.loads(self.stream.read(int(words[-1]) + 2))


