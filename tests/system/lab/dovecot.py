# SPDX-License-Identifier: ISC
"""A private Dovecot, unpacked and not installed, of which only the authentication runs."""

import glob
import os
import shutil

import pytest

from . import peers
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

_CONFIGURATION = """\
base_dir = {folder}/run
state_dir = {folder}/run
libexec_dir = {root}/usr/lib/dovecot
protocols =
listen = {address}
log_path = {folder}/log
auth_verbose = yes
default_internal_user = mail
default_internal_group = mail
default_login_user = nobody
import_environment = LD_LIBRARY_PATH LD_PRELOAD PAM_WRAPPER PAM_WRAPPER_SERVICE_DIR
auth_mechanisms = {mechanisms}
disable_plaintext_auth = no
auth_failure_delay = 0
ssl = no
passdb {{
  driver = {driver}
  args = {argument}
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={folder}
}}
service auth {{
  unix_listener auth-client {{
    mode = 0666
  }}
  inet_listener {{
    address = {address}
    port = {port}
  }}
}}
"""


class Dovecot:
    """A Dovecot's auth service, with a passwd-file of its own, at a socket and at a port.

    Its rows are those of users: lines "login:{PLAIN}password" and more fields. With pam they are
    "login:password:sluice", and PAM's own library looks them up, with a module of pam_wrapper's in place of the
    machine's. It runs as root only; a test that cannot have it is skipped.
    """

    def __init__(self, folder, users, pam=False):
        """Write the configuration; start() runs the master."""
        if os.getuid() != 0:
            pytest.skip("Dovecot's master runs as root only")
        self.folder, self.port, self.process = str(folder), free_port(), None
        self.socket = os.path.join(self.folder, "run", "auth-client")
        self.config = os.path.join(self.folder, "dovecot.conf")
        shutil.chown(self.folder, "mail", "mail")
        file = os.path.join(self.folder, "users")
        self._write(self.config, _CONFIGURATION.format(
            folder=self.folder, root=peers.root(), address=LOOPBACK, port=self.port,
            driver="pam" if pam else "passwd-file", argument="sluice" if pam else file,
            mechanisms="plain login" if pam else "plain login scram-sha-1 scram-sha-256"))
        self._write(file, "".join(f"{row}\n" for row in users))
        self.environment = self._pam(file) if pam else {}

    @staticmethod
    def _write(path, text):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def _pam(self, file):
        """Describe the service to PAM, and return the environment that leads it there."""
        libraries = os.path.join(peers.root(), "usr", "lib", "*")
        module = glob.glob(os.path.join(libraries, "pam_wrapper", "pam_matrix.so"))[0]
        services = os.path.join(self.folder, "pam.d")
        os.makedirs(services)
        self._write(os.path.join(services, "sluice"), "".join(
            f"{kind} required {module} passdb={file}\n" for kind in ("auth", "account")))
        return {"PAM_WRAPPER": "1", "PAM_WRAPPER_SERVICE_DIR": services,
                "LD_PRELOAD": glob.glob(os.path.join(libraries, "libpam_wrapper.so"))[0]}

    def start(self):
        """Start the master and wait until the port answers. Returns self."""
        # The program would look for doveconf where the package would have been installed.
        command = [peers.program("doveconf"), "-f", "service=master", "-c", self.config, "-m", "master",
                   "-e", os.path.join(peers.root(), "usr", "sbin", "dovecot"), "-F", "-c", self.config]
        self.process = Process(command, os.path.join(self.folder, "out"), env=os.environ | self.environment)
        wait_until(lambda: accepts(self.port), 60, "Dovecot to answer")
        return self

    def close(self):
        """Stop it."""
        if self.process is not None:
            self.process.stop()
            self.process = None

    def report(self):
        """Return the end of its log, for the report of a failure."""
        texts = []
        for name in ("out", "log"):
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="backslashreplace") as stream:
                    texts.append("".join(stream.readlines()[-40:]))
        return f"--- Dovecot in {self.folder}\n" + "\n".join(texts)
