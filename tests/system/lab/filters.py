# SPDX-License-Identifier: ISC
"""Filters of other people, unpacked and not installed: OpenDKIM, rspamd, clamav-milter."""

import os
import signal
import subprocess

import pytest

from . import peers
from .net import wait_until
from .process import Process

SPAM = "YJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X"  # rspamd marks it
EICAR = r"X5O!P%@AP[4\PZX54(P^)7CC)7}$" + "EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
GTUBE = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X"

_OPENDKIM = """\
Domain sender.test
Selector s1
KeyFile {folder}/key.pem
Socket local:{folder}/socket
Mode s
Canonicalization relaxed/relaxed
Background no
UserID root
InternalHosts {folder}/hosts
Syslog no
RequireSafeKeys no
"""

_RSPAMD = """\
options {{
  filters = "regexp";
  pidfile = "{folder}/pid";
  tempdir = "{folder}";
  url_tld = "{folder}/tlds";
  enable_test_patterns = true;
  hs_cache_dir = "{folder}";
  dns {{ timeout = 1s; nameserver = ["127.0.0.1:9:1"]; }}
  control_socket = "{folder}/control mode=0600";
}}
lang_detection {{ languages = "{share}/languages"; }}
logging {{ type = "console"; level = "info"; }}
actions {{ reject = 15; add_header = 6; }}
lua = "{share}/rules/rspamd.lua";
worker "rspamd_proxy" {{
  bind_socket = "{folder}/socket mode=0666";
  milter = yes;
  timeout = 5s;
  count = 1;
  upstream "local" {{ default = yes; self_scan = yes; }}
}}
"""

_CLAMD = """\
DatabaseDirectory {folder}
LocalSocket {folder}/clamd
Foreground yes
User root
"""

_CLAMAV_MILTER = """\
MilterSocket unix:{folder}/socket
ClamdSocket unix:{folder}/clamd
Foreground yes
OnInfected Reject
RejectMsg infected: %v
AddHeader Add
User root
"""


class RealFilter:
    """One of them, at a Unix socket in a folder of its own. A test that cannot have it is skipped."""

    def __init__(self, folder, name):
        """Write what it reads, and run it: "opendkim", "rspamd" or "clamav"."""
        if os.getuid() != 0:
            pytest.skip("these filters are run as root here")
        self.folder, self.name, self.processes = str(folder), name, []
        os.chmod(self.folder, 0o755)
        self.start()

    def start(self):
        """Run it, for the first time or again."""
        if os.path.exists(os.path.join(self.folder, "socket")):
            os.unlink(os.path.join(self.folder, "socket"))
        getattr(self, f"_{self.name}")()
        self._wait_for("socket")

    def signal(self, number):
        """Send a signal to all of its processes."""
        for process in self.processes:
            process.signal(number)

    @property
    def address(self):
        """As the configuration has it."""
        return f"unix:{self.folder}/socket"

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text.format(folder=self.folder, share=os.path.join(peers.root(), "usr/share/rspamd")))
        return path

    def _run(self, *command):
        self.processes.append(Process([peers.program(command[0]), *command[1:]], os.path.join(self.folder, "out")))

    def _wait_for(self, socket):
        path = os.path.join(self.folder, socket)
        wait_until(lambda: os.path.exists(path) or not self.processes[-1].running(), 60, f"{path} to be there")
        assert self.processes[-1].running(), self.report()

    def _opendkim(self):
        key = os.path.join(self.folder, "key.pem")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        self._write("hosts", "127.0.0.1\n")
        self._run("opendkim", "-f", "-x", self._write("conf", _OPENDKIM))

    def _rspamd(self):
        share = os.path.join(peers.root(), "usr/share/rspamd")
        self._write("tlds", "test\ncom\n")  # of all that there are it would make a table for seconds
        folders = {"DBDIR": self.folder, "LOGDIR": self.folder, "RUNDIR": self.folder, "LOCAL_CONFDIR": self.folder,
                   "CONFDIR": os.path.join(peers.root(), "etc/rspamd"), "SHAREDIR": share, "PLUGINSDIR": f"{share}/plugins",
                   "RULESDIR": f"{share}/rules", "LUALIBDIR": f"{share}/lualib"}
        settings = [f"--var={name}={folder}" for name, folder in folders.items()]
        self._run("rspamd", "-f", "-i", "-c", self._write("conf", _RSPAMD), *settings)

    def _clamav(self):
        signature = f"Eicar-Test-Signature:0:*:{EICAR.encode().hex()}\n"
        self._write("test.ndb", signature)
        self._run("clamd", "-c", self._write("clamd.conf", _CLAMD))
        self._wait_for("clamd")
        self._run("clamav-milter", "-c", self._write("milter.conf", _CLAMAV_MILTER))

    def close(self):
        """Stop it."""
        for process in reversed(self.processes):
            process.signal(signal.SIGKILL)  # asked to end, they take seconds
            process.wait()
        self.processes = []

    def report(self):
        """Return the end of what it has said, for the report of a failure."""
        with open(os.path.join(self.folder, "out"), encoding="utf-8", errors="backslashreplace") as stream:
            return f"--- filter in {self.folder}\n" + "".join(stream.readlines()[-40:])
