# SPDX-License-Identifier: ISC
"""A private Exim, unpacked and not installed, as a next hop of the relay."""

import os
import re
import shutil

import pytest

from . import peers
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

_CONFIGURATION = """\
daemon_smtp_ports = {port}
local_interfaces = {address}
primary_hostname = exim.test
spool_directory = {folder}/spool
log_file_path = {folder}/%slog
pid_file_path = {folder}/pid
exim_user = mail
exim_group = mail
never_users =
deliver_drop_privilege
keep_environment =
timezone =
hosts_treat_as_local =
host_lookup =
rfc1413_hosts =
chunking_advertise_hosts = *
pipelining_advertise_hosts = *
{tls}queue_only = false
smtp_accept_queue_per_connection = 0
smtp_accept_max_per_connection = 0
log_selector = +smtp_connection +received_recipients +pid
message_size_limit = 100M
{settings}acl_smtp_rcpt = {rcpt}
acl_smtp_data = accept
begin acl
rcpt:
  deny local_parts = bad
  accept
known:
  deny !authenticated = *
       message = Log in first
  accept
begin routers
all:
  driver = accept
  transport = files
begin transports
files:
  driver = appendfile
  directory = {folder}/mail
  create_directory
  directory_file = $message_exim_id
  message_prefix =
  message_suffix =
  user = mail
  group = mail
  mode = 0644
  no_mode_fail_narrower
  envelope_to_add = false
  delivery_date_add = false
  return_path_add = false
begin retry
* * F,1h,1m
{authenticators}"""


class Exim:
    """An Exim with a configuration, queue and port of its own, which keeps what it gets in files.

    The recipient "bad" is refused. Exim runs as root only; a test that cannot have it is skipped.
    """

    def __init__(self, folder, certificate=None, key=None, authenticators="", settings=""):
        """Write the configuration; start() runs the daemon.

        With a certificate it offers TLS. With authenticators, as its configuration has them, only who
        has logged in may send. The settings are further lines of its main section.
        """
        if os.getuid() != 0:
            pytest.skip("Exim delivers as root only")
        self.folder, self.port, self.process = str(folder), free_port(), None
        self.config = os.path.join(self.folder, "exim.conf")
        for name in ("spool", "mail"):
            os.makedirs(os.path.join(self.folder, name))
            shutil.chown(os.path.join(self.folder, name), "mail", "mail")
        shutil.chown(self.folder, "mail", "mail")
        tls = "tls_advertise_hosts =\n"
        if certificate:
            tls = "tls_advertise_hosts = *\n" + self._own("tls_certificate", certificate) + self._own("tls_privatekey", key)
        with open(self.config, "w", encoding="utf-8") as stream:
            stream.write(_CONFIGURATION.format(
                port=self.port, address=LOOPBACK, folder=self.folder, tls=tls, authenticators=authenticators, settings=settings,
                rcpt="known" if authenticators else "rcpt"))

    def _own(self, setting, path):
        """Exim reads such files as its own user, who need not get to where they lie."""
        copy = shutil.copy(path, os.path.join(self.folder, setting))
        shutil.chown(copy, "mail", "mail")
        return f"{setting} = {copy}\n"

    def start(self):
        """Start the daemon and wait until the port answers. Returns self."""
        command = [peers.program("exim4"), "-C", self.config, "-bdf"]
        self.process = Process(command, os.path.join(self.folder, "output"))
        wait_until(lambda: accepts(self.port) or not self.process.running(), 60, "Exim to listen")
        assert self.process.running(), self.report()
        return self

    def close(self):
        """Stop the daemon, and deliveries of its group that outlive it: they would make the folder again to log in it."""
        if self.process:
            self.process.stop()
            self.process.end_group()

    def log(self):
        """Return the main log so far."""
        return self._read("mainlog")

    def _read(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="backslashreplace") as stream:
            return stream.read()

    def messages(self):
        """Return the contents of what was delivered, with LF ends of line, as Exim keeps it."""
        folder = os.path.join(self.folder, "mail")
        contents = []
        for name in sorted(os.listdir(folder)):
            if re.fullmatch(r"\w+-\w+-\w+", name):
                with open(os.path.join(folder, name), "rb") as stream:
                    contents.append(stream.read())
        return contents

    def report(self):
        """Return the tails of output and logs, for the report of a failure."""
        logs = "".join(self._read(name)[-3000:] for name in ("mainlog", "paniclog", "rejectlog"))
        return f"--- Exim in {self.folder}\n{self.process.output_text()[-2000:]}{logs}"
