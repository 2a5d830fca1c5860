# SPDX-License-Identifier: ISC
"""Logins at a provider whose refresh tokens come anew with each answer: over restarts, kills, and whatever it says."""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess

import pytest

from lab.config import Config
from lab.net import LOOPBACK, open_folder, wait_until
from lab.relay import binary
from lab.smtp import Closed
from lab.token_provider import TokenProvider, slow_without_end


class World:
    """A provider, a host that takes mail with its tokens, and a relay between."""

    def __init__(self, lab, rotates=True, keeps_old=False, refresh="refresh_token = r0\n", start=True, folder=None):
        self.lab = lab
        self.provider = TokenProvider(*lab.certificates.host("localhost"), rotates=rotates, keeps_old=keeps_old)
        lab.callback(self.provider.close)
        self.host = lab.sink(tls=lab.certificates.server_context("mail.test"), tokens=self.provider.access)
        self.folder = folder or lab.folder("login")
        self.file = os.path.join(self.folder, "ann.oauth")
        authority = shutil.copy(lab.certificates.ca, self.folder)
        self.text = (f"endpoint = {self.provider.url()}\ndevice_endpoint = {self.provider.url('/device')}\n"
                     f"client_id = me\nscope = mail offline\nca = {authority}\n")
        self.write(refresh)
        self.hop = f"[{LOOPBACK}]:{self.host.port}"
        for name, row in (("credentials", f"{self.hop} ann refresh:{self.file}\n"), ("tls_policy", f"{self.hop} verify:mail.test\n")):
            with open(os.path.join(self.folder, name), "w", encoding="ascii") as stream:
                stream.write(row)
        config = Config(settings={"credentials": [f"{self.folder}/credentials"], "tls_policy": [f"{self.folder}/tls_policy"]})
        config.route_all_to(self.host.port)
        config.extra += f'tls {{ ca = "{lab.certificates.ca}" }}\n'
        self.relay = lab.relay(config, start=start)
        self.number = 0

    def write(self, refresh):
        """Write the operator's file."""
        with open(os.open(self.file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="ascii") as stream:
            stream.write(self.text + refresh)

    def deliver(self):
        """Send one message, and see it arrive."""
        self.number += 1
        self.relay.send(recipients=[f"to{self.number}@dest.test"])
        self.host.wait_messages(self.number)

    @property
    def kept(self):
        """The path of what is kept, or None."""
        tokens = os.path.join(self.relay.spool, "tokens")
        names = os.listdir(tokens) if os.path.isdir(tokens) else []
        return os.path.join(tokens, *names) if names else None

    def kept_tokens(self):
        """What is kept: newest, and the one before it or None."""
        with open(self.kept, encoding="ascii") as stream:
            text = stream.read()
        before = re.search(r"^before (.*)$", text, re.MULTILINE)
        return re.search(r"^token (.*)$", text, re.MULTILINE)[1], before and before[1]


@pytest.mark.seconds(600)
def test_sixty_days_with_a_restart_each(lab):
    world = World(lab)
    for _ in range(60):
        world.deliver()
        world.relay.restart()
    world.deliver()
    assert not world.provider.wrong and not world.relay.events("login") and not world.relay.events("bounced")
    assert len(world.provider.asked) == 61
    mode = [stat.S_IMODE(os.stat(path).st_mode) for path in (world.kept, os.path.dirname(world.kept))]
    assert mode == [0o600, 0o700]
    text = world.relay.log_text() + world.relay.stderr_text()
    assert not any(token in text for token in world.provider.access) and "r0" not in text.split()


def test_a_provider_that_gives_none_anew(lab):
    world = World(lab, rotates=False)
    world.deliver()
    world.relay.restart()
    world.deliver()
    assert [form["refresh_token"] for _, form in world.provider.asked] == ["r0", "r0"] and not world.kept


@pytest.mark.parametrize("keeps_old", (True, False))
def test_a_kill_between_answer_and_write(lab, keeps_old):
    """Who has rotated already has done so; what the relay has is not lost by it."""
    world = World(lab, keeps_old=keeps_old)
    world.deliver()
    (newest, before), killed = world.kept_tokens(), []
    assert before == "r0"

    def kill():
        if not killed:
            killed.append("begun")
            world.relay.kill()
            killed.append("done")  # and waited for: until then the queue is that process's

    world.provider.before_answer = kill
    world.relay.restart()
    with contextlib.suppress(Closed):  # the kill may come before the 250, but not before the message is kept
        world.relay.send(recipients=["x@dest.test"])
    wait_until(lambda: "done" in killed, 60, "the kill")
    assert world.kept_tokens() == (newest, "r0")  # as it was
    world.provider.before_answer = None
    world.relay.start()
    if keeps_old:
        world.host.wait_messages(2)
        assert world.kept_tokens()[1] == newest
    else:
        # That provider's way: nobody has what it has just given out. Both are tried, and the mail waits for the operator.
        assert "invalid_grant" in world.relay.wait_event("login", result="no_token")["reason"]
        assert {newest, "r0"} <= set(world.provider.wrong)
        world.provider.good.add("by-hand")
        world.write("refresh_token = by-hand\n")
        world.relay.wait_event("login", result="ok", timeout=90)
        world.relay.command("dest", "reset", LOOPBACK)
        world.host.wait_messages(2)
        assert world.kept_tokens()[1] == "by-hand"


def test_a_kill_right_before_the_rename(lab, monkeypatch):
    """A file that was written in full and not yet renamed is none: the former one is tried."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    world = World(lab, keeps_old=True, start=False)
    os.makedirs(os.path.join(world.relay.spool, "tokens"), mode=0o700)
    monkeypatch.setenv("SLUICE_WRAPPER", f"strace -f -qq -o {world.folder}/trace -P {world.relay.spool}/tokens "
                                         "-e trace=renameat -e inject=renameat:signal=SIGKILL:when=1")
    world.relay.start()
    with contextlib.suppress(Closed):
        world.relay.send(recipients=["x@dest.test"])
    wait_until(lambda: not world.relay.running(), 60, "the kill")
    world.relay.kill()
    assert world.provider.asked and (world.kept or "").endswith(".new")
    monkeypatch.delenv("SLUICE_WRAPPER")
    world.relay.start()
    world.host.wait_messages(1)
    assert not world.provider.wrong and not world.kept.endswith(".new")


def test_the_one_before_is_tried_until_the_newest_has_worked(lab):
    world = World(lab)
    world.deliver()
    newest, _ = world.kept_tokens()
    world.relay.stop()
    world.provider.good = {"r0"}  # the provider has lost its last day
    world.relay.start()
    world.deliver()
    assert world.provider.wrong == [newest] and world.kept_tokens()[1] == "r0" and not world.relay.events("login")


def test_a_newer_file_of_the_operator_wins(lab):
    world = World(lab)
    world.deliver()
    world.relay.stop()
    world.provider.good |= {"by-hand"}
    world.write("refresh_token = by-hand\n")
    world.relay.start()
    world.deliver()
    assert world.provider.asked[-1][1]["refresh_token"] == "by-hand" and world.kept_tokens()[1] == "by-hand"
    # What has nothing to do with the grant brings no old token back.
    world.relay.stop()
    world.text = world.text.replace("scope = mail offline", "scope = mail")
    world.write("# by hand\nrefresh_token = by-hand\n")
    world.relay.start()
    world.deliver()
    assert not world.provider.wrong


def test_a_token_that_can_not_be_written_is_a_condition_and_mail_goes_on(lab):
    world = World(lab)
    world.relay.stop()
    blocked = os.path.join(world.relay.spool, "tokens")
    with open(blocked, "w", encoding="ascii"):
        pass  # a file where the folder should be: nothing can be written, by root neither
    world.relay.start()
    world.deliver()
    assert world.relay.wait_event("condition", name="token_unsaved", subject=world.file)["state"] == "on"
    assert "token_unsaved" in world.relay.command("stats").stdout
    os.unlink(blocked)
    wait_until(lambda: world.relay.events("condition", name="token_unsaved", state="off"), 60, "another try")
    newest, _ = world.kept_tokens()
    assert newest in world.provider.good
    world.relay.kill()
    world.relay.start()
    world.deliver()
    assert not world.provider.wrong


def test_a_file_that_is_damaged_is_said_and_the_operator_s_is_tried(lab):
    world = World(lab)
    world.deliver()
    world.relay.stop()
    world.provider.good = {"r0"}
    with open(world.kept, "r+b") as stream:
        stream.seek(30)
        stream.write(b"\0")
    world.relay.start()
    world.deliver()
    assert "is damaged" in world.relay.wait_event("condition", name="token_unsaved", state="on")["reason"]
    assert world.provider.asked[-1][1]["refresh_token"] == "r0"


HOSTILE = {
    "huge": (lambda handler: handler.reply(200, b"x" * 10_000_000), "larger than 64k"),
    "endless json": (lambda handler: handler.reply(200, b"[" * 60_000), "no JSON"),
    "not json": (lambda handler: handler.reply(200, b"<html>hello"), "no JSON"),
    "redirect": (lambda handler: handler.reply(302, b"", ("Location", "https://localhost:1/")), "302"),
    "a lie": (lambda handler: handler.reply(200, b'{"access_token": "x", "refresh_token": "a\\nb"}'), "refresh_token that is none"),
    "silence": (lambda handler: handler.connection.close(), ""),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_answers_lose_no_login(lab, how):
    world = World(lab)
    world.deliver()
    kept = world.kept_tokens()
    world.relay.stop()
    world.provider.instead, why = HOSTILE[how]
    world.relay.start()
    world.relay.send(recipients=["x@dest.test"])
    assert why in world.relay.wait_event("login", result="no_token")["reason"]
    assert world.kept_tokens() == kept
    world.provider.instead = None
    world.relay.wait_event("login", result="ok", timeout=90)
    world.relay.command("dest", "reset", LOOPBACK)
    world.host.wait_messages(2)
    assert not world.provider.wrong


def test_a_slow_answer_ends(lab):
    world = World(lab)
    world.deliver()
    world.relay.stop()
    world.provider.instead = slow_without_end
    world.relay.start()
    world.relay.send(recipients=["x@dest.test"])
    world.relay.wait_event("login", result="no_token", timeout=90)
    world.provider.instead = None
    world.relay.signal(signal.SIGTERM)
    world.relay.wait_ended()


def _login(world, *words):
    """Run sluice login, up to its end."""
    return world.relay.command("login", world.hop, *words)


def test_a_token_by_device_code_is_the_relay_s(lab):
    world = World(lab, refresh="")
    world.provider.device_says = ["authorization_pending", "slow_down", "authorization_pending", "yes"]
    done = _login(world)
    assert done.returncode == 0, done.stderr
    assert "https://login.test/device" in done.stdout and "WDJB-MJHT" in done.stdout and world.kept in done.stdout
    assert world.provider.polls() == 4
    begun = [form for path, form in world.provider.asked if path == "/device"]
    assert begun == [{"client_id": "me", "scope": "mail offline"}]
    newest, before = world.kept_tokens()
    assert newest in world.provider.good and not before and newest not in done.stdout + done.stderr
    world.deliver()
    assert world.kept_tokens()[1] == newest
    tried = _login(world, "--test")
    assert tried.returncode == 0 and "logged in, under TLS" in tried.stdout, tried
    world.relay.restart()
    world.deliver()
    assert not world.provider.wrong


def test_a_relay_that_waits_for_a_token_takes_the_new_one(lab):
    world = World(lab, refresh="refresh_token = old\n")
    world.relay.send(recipients=["x@dest.test"])
    assert "invalid_grant" in world.relay.wait_event("login", result="no_token")["reason"]
    world.provider.device_says = ["yes"]
    assert _login(world).returncode == 0
    world.host.wait_messages(1)
    assert world.relay.wait_event("login", result="ok")


@pytest.mark.parametrize("word,said", (
    ("access_denied", "the login was denied"), ("authorization_declined", "the login was denied"),
    ("expired_token", "the code has expired"), ("invalid_client", "invalid_client")))
def test_a_device_that_may_not_changes_nothing(lab, word, said):
    world = World(lab)
    world.deliver()
    kept = world.kept_tokens()
    world.provider.device_says = ["authorization_pending", word]
    done = _login(world)
    assert done.returncode == 1 and said in done.stderr and world.kept_tokens() == kept


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM))
def test_ctrl_c_changes_nothing(lab, number):
    world = World(lab)
    login = subprocess.Popen([binary(), "login", "-c", world.relay.config_path, world.hop], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: world.provider.polls() >= 1 or login.poll() is not None, 60, "a poll")
    login.send_signal(number)
    _, said = login.communicate(timeout=60)
    assert login.returncode == 1 and b"nothing is changed" in said and not world.kept


@pytest.mark.parametrize("how", [*HOSTILE, "escape"])
def test_hostile_answers_to_the_device(lab, how):
    world = World(lab)
    if how == "escape":
        body = b'{"device_code": "x", "user_code": "\\u001b]0;owned\\u0007", "verification_uri": "https://login.test"}'
        world.provider.instead = lambda handler: handler.reply(200, body)
    else:
        world.provider.instead = HOSTILE[how][0]
    done = _login(world)
    assert done.returncode == 1 and done.stderr and "\x1b" not in done.stdout + done.stderr and not world.kept


def test_what_login_can_not_do_is_said(lab):
    world = World(lab)
    world.text = world.text.replace("device_endpoint", "# device")
    world.write("refresh_token = r0\n")
    assert "no device_endpoint" in _login(world).stderr
    with open(f"{world.folder}/credentials", "w", encoding="ascii") as stream:
        stream.write(f"{world.hop} ann password:{world.file}\n")
    done = _login(world)
    assert done.returncode == 1 and "--test" in done.stderr
    assert world.relay.command("login", "[192.0.2.1]").returncode == 1


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_what_root_has_got_is_the_relay_s_to_read(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    world = World(lab, refresh="", start=False, folder=folder)
    world.relay.spool = os.path.join(folder, "spool")
    world.relay.config.settings |= {"user": "nobody", "spool": world.relay.spool}
    world.relay.write_config()
    os.mkdir(world.relay.spool)
    for path in (world.relay.spool, world.file):
        shutil.chown(path, "nobody")
    world.provider.device_says = ["yes"]
    done = _login(world)
    assert done.returncode == 0, done.stderr
    assert {os.stat(path).st_uid for path in (world.kept, os.path.dirname(world.kept))} == {os.stat(world.relay.spool).st_uid}
    assert os.stat(world.relay.spool).st_uid != 0


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_who_can_not_keep_a_token_asks_for_none(lab):
    """It would be ended by the one that is lost."""
    folder = lab.enter_context(open_folder("sluice-"))
    world = World(lab, start=False, folder=folder)
    world.relay.spool = os.path.join(folder, "spool")
    world.relay.config.settings |= {"user": "nobody", "spool": world.relay.spool}
    world.relay.write_config()
    os.makedirs(os.path.join(world.relay.spool, "tokens"), mode=0o755)
    shutil.chown(world.file, "nobody")
    for words in ((), ("--test",)):
        done = _login(world, *words)
        assert done.returncode == 1 and "could not be kept" in done.stderr, done
    assert not world.provider.asked
    shutil.chown(os.path.join(world.relay.spool, "tokens"), "nobody")  # the control
    assert _login(world, "--test").returncode == 0 and len(world.provider.asked) == 1
