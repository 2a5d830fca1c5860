# SPDX-License-Identifier: ISC
"""What root does before it becomes the relay's user."""

import os
import pwd
import re
import shutil
import stat
import subprocess

import pytest

from lab import sasl
from lab.config import Config
from lab.net import open_folder, wait_until
from lab.relay import Relay, binary

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


@pytest.mark.parametrize("owner, mode", [("daemon", 0o755), ("root", 0o777), ("root", 0o1777)])
@pytest.mark.parametrize("end", ["", "/"])
def test_root_gives_away_no_folder_that_a_symbolic_link_leads_to(prepare, owner, mode, end):
    relay = prepare(owner, mode)
    victim = os.path.join(relay.folder, "victim")
    os.mkdir(victim, 0o755)
    spool = os.path.join(relay.folder, "logs", "spool")
    os.symlink(victim, spool)
    relay.config.settings["spool"] = spool + end
    relay.write_config()
    with pytest.raises(AssertionError, match="Permission denied"):
        relay.start()
    assert os.stat(victim).st_uid == 0 and not os.listdir(victim)


@pytest.mark.parametrize("owner, mode", [("daemon", 0o755), ("root", 0o777), ("root", 0o1777), ("root", 0o755)])
def test_a_spool_that_is_missing_is_made_and_the_user_s(prepare, owner, mode):
    relay = prepare(owner, mode)
    relay.spool = relay.config.settings["spool"] = os.path.join(relay.folder, "logs", "spool")
    relay.write_config()
    relay.start()
    assert os.stat(relay.spool).st_uid == pwd.getpwnam("daemon").pw_uid


def test_a_root_without_rights_over_files_keeps_what_was_learnt(prepare, monkeypatch):
    """As in a container: of the folder of the queue, which is the user's, it may read nothing."""
    relay = prepare("root", 0o755)
    relay.spool = relay.config.settings["spool"] = os.path.join(relay.folder, "logs", "spool")
    relay.write_config()
    monkeypatch.setenv("SLUICE_WRAPPER", "setpriv --bounding-set=-dac_override,-dac_read_search")
    relay.start()
    relay.command("user", "suspend", "thief")
    relay.stop()
    relay.start()
    assert "suspended" in relay.command("user", "list", "thief").stdout
    assert not [line for name in ("destdb", "suspended", "suppressed", "events") for line in relay.events(name)]


@pytest.mark.parametrize("mode, wanted", [(0o777, 0o775), (0o755, 0o755), (0o1777, 0o1777)])
def test_a_spool_is_no_folder_for_every_user(prepare, mode, wanted):
    relay = prepare("root", 0o755)
    relay.spool = relay.config.settings["spool"] = os.path.join(relay.folder, "logs", "spool")
    relay.write_config()
    os.mkdir(relay.spool)
    os.chmod(relay.spool, mode)
    relay.start()
    assert stat.S_IMODE(os.stat(relay.spool).st_mode) == wanted
    assert [f"every user could write to the folder of the queue, {relay.spool}; that right is taken away" == event["reason"]
            for event in relay.events("maildrop")] == ([True] if mode != wanted else [])


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_spool_of_root_s_is_given_to_the_user(prepare, mode):
    relay = prepare("root", mode)
    relay.spool = relay.config.settings["spool"] = os.path.join(relay.folder, "logs", "spool")
    relay.write_config()
    os.mkdir(relay.spool)
    relay.start()
    assert os.stat(relay.spool).st_uid == pwd.getpwnam("daemon").pw_uid


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

    def let_in():  # each thread has the new table when it comes to it
        with relay.client() as client:
            client.greet()
            return sasl.say_plain(client, "anna", "two").code == 235

    wait_until(let_in, 60, "the new password")


def _said_by_check(path):
    done = subprocess.run([binary(), "check", "-c", path], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def signing(lab):
    """Write a configuration of the user daemon that signs, in a folder that he may pass; return its path and the key's."""
    folder = lab.enter_context(open_folder("sluice-check-"))
    path, key = (os.path.join(folder, name) for name in ("sluice.conf", "key.pem"))
    def write(user):
        with open(path, "w", encoding="ascii") as stream:
            stream.write(f'hostname = "relay.example.org"\nuser = "{user}"\nspool = "{folder}/spool"\npostmaster = "p@example.org"\n'
                         f'providers = {{ }}\nlistener "smtp" {{ address = {{ "127.0.0.1:2525" }} }}\n'
                         f'dkim "example.org" {{ selector = "s" key = "{key}" }}\n')
        return path
    write("daemon")
    subprocess.run([binary(), "dkim", "keygen", "-c", path, "-o", key, "example.org", "s"], check=True, capture_output=True, timeout=60)
    return write, path, key


def test_a_new_key_is_one_that_the_relay_s_user_may_read(signing):
    _, path, key = signing
    status = os.stat(key)
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, pwd.getpwnam("daemon").pw_gid, 0o640)
    assert _said_by_check(path) == (0, "")


@pytest.mark.parametrize("where, mode", [("key", 0o600), ("key", 0o644), ("configuration", 0o600), ("folder", 0o700)])
def test_check_sees_as_the_relay_s_user_and_its_advice_mends_it(signing, where, mode):
    _, path, key = signing
    closed = {"key": key, "configuration": path, "folder": os.path.dirname(key)}[where]
    os.chown(closed, 0, 0)
    os.chmod(closed, mode)
    status, said = _said_by_check(path)
    assert status == 0 and ("every user of the machine may read" if mode == 0o644 else 'the relay\'s user "daemon" may not read') in said
    command = re.search(r"\((ch.*)\)$", said, re.M).group(1)
    subprocess.run(command, shell=True, check=True, timeout=60)
    assert _said_by_check(path) == (0, "")
    tried = subprocess.run(["cat", key, path], user="daemon", group="daemon", extra_groups=[], capture_output=True, timeout=60, check=False)
    assert tried.returncode == 0
    other = subprocess.run(["cat", key], user="nobody", group="nogroup", extra_groups=[], capture_output=True, timeout=60, check=False)
    assert other.returncode != 0


@pytest.mark.parametrize("linked", [False, True])
def test_check_says_that_a_queue_is_somebody_else_s(signing, linked):
    """As one that was put back from another machine's backup, or is on another disk."""
    _, path, _ = signing
    spool = os.path.join(os.path.dirname(path), "spool")
    if linked:
        os.mkdir(spool + ".there")
        os.symlink(spool + ".there", spool)
    os.makedirs(os.path.join(spool, "log"), exist_ok=True)
    status, said = _said_by_check(path)
    first = spool if linked else os.path.join(spool, "log")
    command = f"chown -R daemon: {spool}/"
    assert status == 0 and said.count("\n") == 1, said
    assert f'the relay\'s user "daemon" may not read and write {first} ({command})' in said
    subprocess.run(command, shell=True, check=True, timeout=60)
    assert _said_by_check(path) == (0, "")


@pytest.mark.parametrize("there", [False, True])
def test_check_says_that_the_relay_s_user_may_not_write_the_log(signing, there):
    """Root makes it at a start; a relay that systemd starts is the user from the beginning."""
    _, path, _ = signing
    folder = os.path.join(os.path.dirname(path), "logs")
    log = os.path.join(folder, "log")
    os.mkdir(folder, 0o755)
    if there:
        open(log, "w", encoding="ascii").close()
    with open(path, "a", encoding="ascii") as stream:
        stream.write(f'log = "{log}"\n')
    status, said = _said_by_check(path)
    assert status == 0 and said.count("\n") == 1 and f'the relay\'s user "daemon" may not write {log}, ' in said, said
    subprocess.run(re.search(r"\((.*)\)$", said, re.M).group(1), shell=True, check=True, timeout=60)
    assert _said_by_check(path) == (0, "")


@pytest.fixture
def trusting(signing, lab):
    """Write the same relay with a secret of each kind that others than hosts and clients ask for; return its path and their files."""
    _, path, key = signing
    folder = os.path.dirname(path)
    secrets = {name: os.path.join(folder, name) for name in ("token", "password", "redis-key", "nats-key", "credentials", "row")}
    certificate, of_cluster = lab.certificates.host("relay.test")
    for name, file in secrets.items():
        shutil.copy(key if name == "row" else of_cluster, file)
    public = shutil.copy(certificate, os.path.join(folder, "certificate"))
    os.chmod(public, 0o644)
    table = os.path.join(folder, "rows")
    with open(table, "w", encoding="ascii") as stream:
        stream.write(f"example.net s {secrets['row']}\n")
    with open(path, "a", encoding="ascii") as stream:
        stream.write(f'''dkim_keys = {{ "{table}" }}
events {{ to = "{folder}/events" token = "{secrets['token']}" }}
cluster {{ name = "n" redis = "127.0.0.1:6379" redis_password = "{secrets['password']}" redis_tls = true
  redis_certificate = "{public}" redis_key = "{secrets['redis-key']}" nats = "127.0.0.1:4222" replicate = "async" nats_tls = true
  nats_certificate = "{public}" nats_key = "{secrets['nats-key']}" nats_credentials = "{secrets['credentials']}" }}
''')
    return path, secrets


@pytest.mark.parametrize("mode, wanted", [(0o644, "every user of the machine may read"), (0o600, "the relay's user \"daemon\" may not read")])
def test_check_names_each_secret_that_too_many_or_too_few_may_read(trusting, mode, wanted):
    path, secrets = trusting
    for file in secrets.values():
        os.chown(file, 0, 0)
        os.chmod(file, mode)
    status, said = _said_by_check(path)
    assert status == 0
    for file in secrets.values():
        assert re.search(f": {wanted} {re.escape(file)} ", said), (file, said)
    for command in re.findall(r"\((ch.*)\)$", said, re.M):
        subprocess.run(command, shell=True, check=True, timeout=60)
    assert _said_by_check(path) == (0, "")


def test_check_refuses_a_user_who_is_not_there(signing):
    write, path, _ = signing
    write("nosuchuser")
    status, said = _said_by_check(path)
    with open(path, encoding="utf-8") as file:
        line = next(number for number, text in enumerate(file, 1) if "nosuchuser" in text)
    assert status == 1 and f'{path}:{line}: user = "nosuchuser": there is no such user' in said
