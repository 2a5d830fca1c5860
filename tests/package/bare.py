# SPDX-License-Identifier: ISC
"""A bare Debian, of this machine's release, in a folder: with processes and a loopback of its own, and no systemd at work."""

import os
import pathlib
import platform
import shutil
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SUITE = platform.freedesktop_os_release()["VERSION_CODENAME"]


def make(folder):
    """Lay out a bare root in the folder."""
    subprocess.run([TOP / "tests" / "bare", SUITE, folder], check=True, timeout=900)


class Bare:
    """A root in which programs run as in a container: begun with start(), ended with close()."""

    def __init__(self, folder):
        """Take a folder with a root in it."""
        self.root = pathlib.Path(folder)
        self._holder = None

    def start(self):
        """Make the namespaces. Returns self."""
        script = 'mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && ip link set lo up && echo up && exec sleep infinity'
        self._holder = subprocess.Popen(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script,
                                         self.root], stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout.readline() == "up\n"
        return self

    def _inside(self):
        children = pathlib.Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text(encoding="ascii")
        return ["nsenter", "--net", "--mount", "--pid", "-t", children.split()[0], "chroot", str(self.root)]

    def run(self, *command, text="", user=None, env=None, check=True):
        """Run a program in the root, to its end; returns what subprocess.run() does."""
        words = [*self._inside(), *(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []), *command]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"} | (env or {})
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=120, check=False, env=environment)
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def start_program(self, *command, output):
        """Run a program in the root beside others, its output in a file of the root."""
        with open(self.root / output, "ab") as sink:
            return subprocess.Popen([*self._inside(), *command], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)

    def close(self):
        """End all that runs in it."""
        if self._holder:
            self._holder.kill()
            self._holder.wait()
            self._holder.stdout.close()
            self._holder = None


def with_network(root, *command):
    """Run a program in the root that is to reach the network, such as apt."""
    for name in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy("/" + name, root / name)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    environment |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    done = subprocess.run(["chroot", root, *command], capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
