# SPDX-License-Identifier: ISC
"""A private Dovecot, unpacked and not installed, that takes mail by LMTP and knows who may log in."""

import os
import pathlib
import pwd

import pytest

from . import dovecot
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

# Of all releases; what 2.4 calls differently comes behind.
_CONFIGURATION = """\
base_dir = {run}
state_dir = {run}
log_path = {folder}/log
auth_mechanisms = plain login scram-sha-1 scram-sha-256
ssl = no
hostname = dovecot.test
postmaster_address = postmaster@dovecot.test
default_internal_user = mail
default_internal_group = mail
default_login_user = nobody
first_valid_uid = 1
service lmtp {{
  unix_listener {folder}/lmtp {{
    mode = 0666
  }}
  inet_listener lmtp {{
    {listen} = {address}
    port = {port}
  }}
}}
service auth {{
  unix_listener {folder}/auth {{
    mode = 0666
  }}
}}
service stats {{
  unix_listener stats-writer {{
    mode = 0666
  }}
}}
"""
_OLD = """\
protocols = lmtp
disable_plaintext_auth = no
mail_location = maildir:{folder}/mail/%n
passdb {{
  driver = passwd-file
  args = scheme=plain username_format=%n {folder}/users
}}
userdb {{
  driver = passwd-file
  args = username_format=%n {folder}/users
}}
mail_plugins = quota
plugin {{
  quota = maildir:User quota
  quota_rule = *:storage=10M
}}
protocol lmtp {{
  mail_plugins = quota
}}
"""
_NEW = """\
protocols = lmtp
auth_allow_cleartext = yes
mail_driver = maildir
mail_path = {folder}/mail/%{{user | username}}
passdb passwd-file {{
  passwd_file_path = {folder}/users
  default_password_scheme = plain
  auth_username_format = %{{user | username}}
}}
userdb passwd-file {{
  passwd_file_path = {folder}/users
  auth_username_format = %{{user | username}}
}}
mail_plugins {{
  quota = yes
}}
quota_storage_size = 10M
quota_storage_grace = 0
quota "User quota" {{
  quota_driver = count
}}
"""


# What makes a user's mailbox full, or one that cannot be written to: of 2.3 and 2.4.
_FIELDS = {"": ("", ""), "full": ("userdb_quota_rule=*:bytes=1", "userdb_quota_storage_size=1B"),
           "nowhere": ("userdb_mail=maildir:/proc/none", "userdb_mail_path=/proc/none")}


class MailStore:
    """A Dovecot with mailboxes for the users that are given: a name, and whether its mailbox is "full" or "nowhere".

    It listens on a Unix socket and a port. It runs as root only, and where a
    process may have mounts of its own; else the test is skipped. The folder
    must be one that other users may enter, with a short path.
    """

    def __init__(self, folder, users, password="secret"):
        """Write the configuration; start() runs it."""
        if os.getuid() != 0:
            pytest.skip("Dovecot runs as root only")
        self.folder, self.port, self.process = pathlib.Path(folder), free_port(), None
        self.socket, self.auth_socket = self.folder / "lmtp", self.folder / "auth"
        mail = pwd.getpwnam("mail")
        (self.folder / "mail").mkdir()
        os.chown(self.folder / "mail", mail.pw_uid, mail.pw_gid)
        lines = [f"{name}:{password}:{mail.pw_uid}:{mail.pw_gid}::{folder}/mail/{name}::{_FIELDS[kind][dovecot.is_new()]}\n"
                 for name, kind in users.items()]
        (self.folder / "users").write_text("".join(lines), encoding="ascii")
        text = dovecot.NEW_HEAD + _CONFIGURATION + _NEW if dovecot.is_new() else _CONFIGURATION + _OLD
        (self.folder / "dovecot.conf").write_text(text.format(
            run=self.folder / "run", folder=folder, address=LOOPBACK, port=self.port,
            listen="listen" if dovecot.is_new() else "address"), encoding="ascii")

    @property
    def relay(self):
        """The socket as a route names it."""
        return f"unix:{self.socket}"

    def start(self):
        """Start the daemon and wait until it listens. Returns self."""
        self.process = Process(dovecot.command(str(self.folder / "dovecot.conf")), str(self.folder / "output"))
        wait_until(
            lambda: accepts(self.port) or not self.process.running(), 60, "Dovecot to listen")
        dovecot.skip_without_mounts(self.process)
        assert self.process.running(), self.report()
        return self

    def close(self):
        """Stop the daemon and its children, which are in its group."""
        if self.process:
            self.process.stop()

    def mailbox(self, user):
        """Return the contents of what a user has got, with the ends of line that Dovecot keeps."""
        folder = self.folder / "mail" / user / "new"
        return [one.read_bytes() for one in sorted(folder.iterdir())] if folder.is_dir() else []

    def report(self):
        """Return output and log, for the report of a failure."""
        log = self.folder / "log"
        text = log.read_text(encoding="utf-8", errors="backslashreplace") if log.exists() else ""
        return f"--- Dovecot in {self.folder}\n{self.process.output_text()[-2000:]}{text[-3000:]}"
