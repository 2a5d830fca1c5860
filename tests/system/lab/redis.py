# SPDX-License-Identifier: ISC
"""A real Redis on loopback, which a test may kill, stop for a while, fill, or restrict."""

import os
import signal
import socket

from . import peers
from .net import LOOPBACK, free_port, wait_until
from .process import Process


class Redis:
    """A server with a port of its own, which stays over restarts; its data do not.

    Options are those of its command line: maxmemory="2mb".
    """

    def __init__(self, folder, certificate=None, **options):
        """certificate: (certificate, key, ca): TLS only, with certificates of clients."""
        self.folder = str(folder)
        self.port = free_port()
        self.output = os.path.join(self.folder, "redis.output")
        self.certificate = certificate
        self.options = options
        self.process = None

    def start(self):
        """Run it until it answers. Returns self."""
        options = {"bind": LOOPBACK, "save": "", "appendonly": "no", "dir": self.folder}
        if self.certificate:
            own, key, ca = self.certificate
            options |= {"port": "0", "tls-port": str(self.port), "tls-cert-file": own, "tls-key-file": key, "tls-ca-cert-file": ca}
        else:
            options["port"] = str(self.port)
        options |= {name.replace("_", "-"): value for name, value in self.options.items()}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self.process = Process([peers.program("redis-server"), *words], self.output, cwd=self.folder)
        wait_until(self._listens, 60, "Redis to listen")
        return self

    def _listens(self):
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1):
                return True
        except OSError:
            return False

    def ask(self, *words):
        """Carry out a command, without TLS, and return the reply as it came."""
        with socket.create_connection((LOOPBACK, self.port), timeout=60) as connection:
            connection.sendall(_command(*words))
            return connection.makefile("rb").readline().decode().rstrip("\r\n")

    def tell(self, commands):
        """Carry out these together, without TLS, whatever the replies are."""
        with socket.create_connection((LOOPBACK, self.port), timeout=60) as connection:
            connection.sendall(b"".join(_command(*words) for words in commands))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass

    def value(self, *words):
        """Carry out a command whose reply is a value, without TLS, and return that; None where there is none."""
        with socket.create_connection((LOOPBACK, self.port), timeout=60) as connection:
            connection.sendall(_command(*words))
            stream = connection.makefile("rb")
            size = int(stream.readline()[1:])
            return stream.read(size) if size >= 0 else None

    def keys(self, pattern):
        """Return the names of all keys like this, without TLS."""
        with socket.create_connection((LOOPBACK, self.port), timeout=60) as connection:
            connection.sendall(_command("KEYS", pattern))
            stream = connection.makefile("rb")
            return [stream.read(int(stream.readline()[1:]) + 2)[:-2] for _ in range(int(stream.readline()[1:]))]

    def pause(self):
        """Stop it with SIGSTOP: connections stand, and nothing is answered."""
        self.process.signal(signal.SIGSTOP)

    def go_on(self):
        """End the pause."""
        self.process.signal(signal.SIGCONT)

    def kill(self):
        """End it with SIGKILL."""
        process, self.process = self.process, None
        process.signal(signal.SIGKILL)
        process.wait()

    def close(self):
        """End it, whatever a test has left."""
        if self.process:
            self.go_on()
            self.kill()


def _command(*words):
    parts = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
