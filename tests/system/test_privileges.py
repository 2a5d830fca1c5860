# SPDX-License-Identifier: ISC
"""What root does before it becomes the relay's user."""

import os
import pwd
import stat

import pytest

from lab import sasl
from lab.config import Config
from lab.net import open_folder
from lab.relay import Relay

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root has a user to drop to")


@pytest.fixture
def prepare(lab):
    """Make a relay of the user daemon whose log lies in a folder of that owner and mode."""
    def make(owner, mode):
        path = lab.enter_context(open_folder("sluice-log-"))
        logs = os.path.join(path, "logs")
        os.mkdir(logs)
        os.chown(logs, pwd.getpwnam(owner).pw_uid, 0)
        os.chmod(logs, mode)
        relay = Relay(path, Config(settings={"user": "daemon", "log": os.path.join(logs, "log")}))
        relay.log_path = os.path.join(logs, "log")
        lab.callback(relay.close)
        return relay
    return make


@pytest.mark.parametrize("owner, mode", [("daemon", 0o755), ("root", 0o777), ("root", 0o1777), ("root", 0o755)])
@pytest.mark.parametrize("there", [True, False])
def test_root_writes_to_no_file_that_a_symbolic_link_leads_to(prepare, owner, mode, there):
    relay = prepare(owner, mode)
    victim = os.path.join(relay.folder, "victim")
    if there:
        with open(victim, "w", encoding="ascii") as stream:
            stream.write("root's own\n")
        os.chmod(victim, 0o600)
    os.symlink(victim, relay.log_path)
    with pytest.raises(AssertionError, match="Permission denied"):
        relay.start()
    if there:
        status = os.stat(victim)
        assert (status.st_uid, stat.S_IMODE(status.st_mode), status.st_size) == (0, 0o600, 11)
    else:
        assert not os.path.exists(victim)


@pytest.mark.parametrize("owner, mode", [("daemon", 0o755), ("root", 0o777)])
def test_a_log_in_a_folder_of_the_user_is_the_user_s(prepare, owner, mode):
    relay = prepare(owner, mode).start()
    assert os.stat(relay.log_path).st_uid == pwd.getpwnam("daemon").pw_uid
    assert relay.events("ready")


def test_a_log_in_a_folder_of_root_is_given_to_the_user(prepare):
    relay = prepare("root", 0o755).start()
    assert os.stat(relay.log_path).st_uid == pwd.getpwnam("daemon").pw_uid
    assert relay.events("ready")


def test_a_symbolic_link_is_followed_as_the_user(prepare):
    relay = prepare("root", 0o755)
    real = os.path.join(relay.folder, "real")
    with open(real, "w", encoding="ascii"):
        os.chown(real, pwd.getpwnam("daemon").pw_uid, 0)
    os.symlink(real, relay.log_path)
    relay.start()
    assert os.path.getsize(real) > 0


def test_the_users_file_is_the_user_s_and_is_read_anew_by_him(prepare):
    relay = prepare("root", 0o755)
    file = os.path.join(relay.folder, "users")
    relay.config.listeners["smtp"]["auth"] = True
    relay.config.auth = {"file": file, "require_tls": False}
    relay.write_config()
    assert relay.command("passwd", "anna", stdin="one\n").returncode == 0
    status = os.stat(file)
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (pwd.getpwnam("daemon").pw_uid, 0o600)
    relay.start()
    before = len(relay.events("tables"))
    assert relay.command("passwd", "anna", stdin="two\n").returncode == 0
    assert "read anew" in relay.wait_event("tables", count=before + 1)["message"]
    with relay.client() as client:
        client.greet()
        assert sasl.say_plain(client, "anna", "two").code == 235
