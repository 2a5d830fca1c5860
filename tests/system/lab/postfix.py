# SPDX-License-Identifier: ISC
"""A private Postfix, unpacked and not installed, as a neighbour of the relay."""

import grp
import os
import pwd
import re
import subprocess

import pytest

from . import peers
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

_QUEUE_FOLDERS = {
    "active": 0o700, "bounce": 0o700, "corrupt": 0o700, "defer": 0o700, "deferred": 0o700,
    "flush": 0o700, "hold": 0o700, "incoming": 0o700, "private": 0o700, "saved": 0o700,
    "trace": 0o700, "maildrop": 0o730, "public": 0o710, "pid": 0o755,
}
_ROOT_OWNED = ("pid",)

# Name, type, private, chroot, wake-up, process limit, and the program where it has another name.
_SERVICES = """\
{address}:{port} inet n - n - - smtpd
pickup    unix n - n 60  1 pickup
cleanup   unix n - n -   0 cleanup
qmgr      unix n - n 300 1 qmgr
tlsmgr    unix - - n 1000? 1 tlsmgr
tlsproxy  unix - - n -   0 tlsproxy
rewrite   unix - - n -   - trivial-rewrite
bounce    unix - - n -   0 bounce
defer     unix - - n -   0 bounce
trace     unix - - n -   0 bounce
verify    unix - - n -   1 verify
flush     unix n - n 1000? 0 flush
proxymap  unix - - n -   - proxymap
proxywrite unix - - n -  1 proxymap
smtp      unix - - n -   {processes} smtp
relay     unix - - n -   - smtp
lmtp      unix - - n -   - lmtp
showq     unix n - n -   - showq
error     unix - - n -   - error
retry     unix - - n -   - error
discard   unix - - n -   - discard
anvil     unix - - n -   1 anvil
scache    unix - - n -   1 scache
postlog   unix-dgram n - n - 1 postlogd
"""


class Postfix:
    """A Postfix with a configuration, queue and port of its own.

    With next_hop, a port of the loopback address, all mail goes there; without it all mail is
    accepted and thrown away. With resolver it asks the name server at port 53 of that address, by a
    resolv.conf that no other process sees. It has so many processes that deliver by SMTP, or Postfix's default.
    Postfix runs as root only; a test that cannot have it is skipped.
    The folder must be one that other users may enter.
    """

    def __init__(self, folder, next_hop=None, settings=None, processes="-", resolver=None):
        """Write the configuration; start() runs the master."""
        self.folder = str(folder)
        self.port = free_port()
        self.log_path = os.path.join(self.folder, "mail.log")
        self.config_folder = os.path.join(self.folder, "etc")
        self.queue_folder = os.path.join(self.folder, "queue")
        self.data_folder = os.path.join(self.folder, "data")
        self.resolver = resolver
        self.process = None
        self._choose_users()
        self.environment = peers.environment()
        self._make_folders()
        self._write(self._main(next_hop) | (settings or {}), processes)

    def _choose_users(self):
        if os.getuid() != 0:
            pytest.skip("Postfix's master runs as root only")
        try:
            self.owner, self.group = pwd.getpwnam("mail"), grp.getgrnam("daemon")
        except KeyError as missing:
            pytest.skip(f"no account for Postfix to run as: {missing}")

    def _make_folders(self):
        for path in (self.config_folder, self.queue_folder, self.data_folder):
            os.makedirs(path, 0o755, exist_ok=True)
        os.chown(self.data_folder, self.owner.pw_uid, self.owner.pw_gid)
        for name, mode in _QUEUE_FOLDERS.items():
            path = os.path.join(self.queue_folder, name)
            os.makedirs(path, exist_ok=True)
            if name not in _ROOT_OWNED:
                group = self.group.gr_gid if mode & 0o070 else 0
                os.chown(path, self.owner.pw_uid, group)
            os.chmod(path, mode)

    def _main(self, next_hop):
        unpacked = peers.root()
        return {
            "compatibility_level": "3.6",
            "mail_owner": self.owner.pw_name,
            "setgid_group": self.group.gr_name,
            "queue_directory": self.queue_folder,
            "data_directory": self.data_folder,
            "command_directory": f"{unpacked}/usr/sbin",
            "daemon_directory": f"{unpacked}/usr/lib/postfix/sbin",
            "shlib_directory": f"{unpacked}/usr/lib/postfix",
            "import_environment": "LD_LIBRARY_PATH MAIL_CONFIG TZ LANG=C",
            "maillog_file": self.log_path,
            "maillog_file_prefixes": self.folder,
            "myhostname": "postfix.test",
            "mydestination": "",
            "mynetworks": "127.0.0.0/8",
            "inet_interfaces": LOOPBACK,
            "inet_protocols": "ipv4",
            "smtpd_peername_lookup": "no",
            "smtpd_relay_restrictions": "permit_mynetworks, reject",
            "smtpd_client_connection_count_limit": "0",
            "alias_maps": "",
            "local_recipient_maps": "",
            "default_transport": "smtp" if next_hop else "discard",
            "relayhost": f"[{LOOPBACK}]:{next_hop}" if next_hop else "",
        }

    def _write(self, settings, processes):
        with open(os.path.join(self.config_folder, "main.cf"), "w", encoding="utf-8") as stream:
            stream.writelines(f"{name} = {value}\n" for name, value in settings.items())
        with open(os.path.join(self.config_folder, "master.cf"), "w", encoding="utf-8") as stream:
            stream.write(_SERVICES.format(
                address=LOOPBACK, port=self.port, processes=processes
            ))

    def start(self):
        """Start the master process and wait until the port answers. Returns self."""
        master = os.path.join(peers.root(), "usr/lib/postfix/sbin/master")
        command = [*self._in_front(), master, "-c", self.config_folder, "-d"]
        environment = self.environment | {"MAIL_CONFIG": self.config_folder}
        self.process = Process(command, os.path.join(self.folder, "output"), environment)
        wait_until(
            lambda: accepts(self.port) or not self.process.running(), 60, "Postfix to listen"
        )
        assert self.process.running(), self.report()
        return self

    def _in_front(self):
        if not self.resolver:
            return []
        path = os.path.join(self.folder, "resolv.conf")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(f"nameserver {self.resolver}\n")
        return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', path]

    def stop(self):
        """Stop the master and its children, which are in its group."""
        self.process.stop()

    def close(self):
        """Stop the master if it runs."""
        if self.process:
            self.stop()

    def command(self, name, *words):
        """Run a Postfix command, such as "postqueue", "-p", and return its output."""
        return subprocess.run(
            [peers.program(name), "-c", self.config_folder, *words],
            capture_output=True, text=True, check=True,
        ).stdout

    def log(self):
        """Return the log so far."""
        if not os.path.exists(self.log_path):
            return ""
        with open(self.log_path, encoding="utf-8", errors="backslashreplace") as stream:
            return stream.read()

    def wait_log(self, pattern, count=1, timeout=60.0):
        """Wait until a pattern is in the log count times, and return all that matches."""
        wait_until(
            lambda: len(re.findall(pattern, self.log())) >= count, timeout, f"{pattern} in the log"
        )
        return re.findall(pattern, self.log())

    def report(self):
        """Return the tail of the log, for the report of a failure."""
        output = self.process.output_text()[-2000:] if self.process else ""
        text = output + self.log()[-4000:]
        return f"--- Postfix in {self.folder}\n{text}"
