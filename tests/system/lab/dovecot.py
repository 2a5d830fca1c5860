# SPDX-License-Identifier: ISC
"""A private Dovecot, unpacked and not installed, of which only the authentication runs."""

import functools
import glob
import os
import shutil
import subprocess

import pytest

from . import peers
from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

# Of all releases; what 2.4 calls differently comes behind.
_CONFIGURATION = """\
base_dir = {folder}/run
state_dir = {folder}/run
protocols =
listen = {address}
log_path = {folder}/log
auth_verbose = yes
default_internal_user = mail
default_internal_group = mail
default_login_user = nobody
auth_mechanisms = {mechanisms}
auth_failure_delay = 0
ssl = no
service auth {{
  unix_listener auth-client {{
    mode = 0666
  }}
  inet_listener auth {{
    {listen} = {address}
    port = {port}
  }}
}}
"""
_OLD = """\
import_environment = PAM_WRAPPER PAM_WRAPPER_SERVICE_DIR LD_PRELOAD
disable_plaintext_auth = no
passdb {{
  driver = {driver}
  args = {argument}
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={folder}
}}
"""
_NEW = """\
import_environment {{
  PAM_WRAPPER = %{{env:PAM_WRAPPER}}
  PAM_WRAPPER_SERVICE_DIR = %{{env:PAM_WRAPPER_SERVICE_DIR}}
  LD_PRELOAD = %{{env:LD_PRELOAD}}
}}
auth_allow_cleartext = yes
passdb {driver} {{
  {driver_setting} = {argument}
}}
userdb static {{
  fields {{
    uid = mail
    gid = mail
    home = {folder}
  }}
}}
"""
NEW_HEAD = "dovecot_config_version = 2.4.0\ndovecot_storage_version = 2.4.0\n"

# It finds its programs and modules where the package would have put them, and the users that 2.4 insists on, in a mount
# namespace of its own.
_IN_FRONT = """
set -e
mount -t overlay overlay -o lowerdir="$0:/usr" /usr
{
	cat /etc/passwd
	echo "dovecot:x:$(id -u mail):$(id -g mail)::/nonexistent:/usr/sbin/nologin"
	echo "dovenull:x:65533:65534::/nonexistent:/usr/sbin/nologin"
} >"$1.passwd"
{ cat /etc/group; echo "dovecot:x:$(id -g mail):"; } >"$1.group"
mount --bind "$1.passwd" /etc/passwd
mount --bind "$1.group" /etc/group
shift
exec "$@"
"""


@functools.cache
def is_new():
    """Whether it is 2.4 or later, whose configuration has another form."""
    said = subprocess.run([peers.program("dovecot"), "--version"], capture_output=True, text=True, check=True).stdout
    return [int(part) for part in said.split()[0].split(".")[:2]] >= [2, 4]


def command(config):
    """Return how the master is run."""
    return ["unshare", "--mount", "sh", "-c", _IN_FRONT, os.path.join(peers.root(), "usr"), config,
            "/usr/sbin/dovecot", "-F", "-c", config]


def skip_without_mounts(process):
    """Skip the test where the master could not have mounts of its own: also where this tree lies in /usr."""
    if not process.running() and "mount: " in process.output_text():
        pytest.skip(f"no mounts of its own: {process.output_text().strip()[-200:]}")


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
        text = NEW_HEAD + _CONFIGURATION + _NEW if is_new() else _CONFIGURATION + _OLD
        self._write(self.config, text.format(
            folder=self.folder, address=LOOPBACK, port=self.port, listen="listen" if is_new() else "address",
            driver="pam" if pam else "passwd-file", argument="sluice" if pam else file,
            driver_setting="service_name" if pam else "passwd_file_path",
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
        self.process = Process(command(self.config), os.path.join(self.folder, "out"), env=os.environ | self.environment)
        wait_until(lambda: accepts(self.port) or not self.process.running(), 60, "Dovecot to answer")
        skip_without_mounts(self.process)
        assert self.process.running(), self.report()
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
