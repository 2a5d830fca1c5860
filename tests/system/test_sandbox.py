# SPDX-License-Identifier: ISC
"""What the relay can't do once it runs, tried from inside; and what a reload still must be able to do."""

import contextlib
import ctypes
import errno
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest

from lab.config import Config
from lab.net import LOOPBACK, wait_until
from lab.orders import order, with_orders
from lab.received import split
from lab.relay import REPOSITORY, binary
from lab.sink import Rule

REFUSED, UNREACHABLE = 1, 75
SYS_LANDLOCK_CREATE_RULESET = 444
LIBC = ctypes.CDLL(None, use_errno=True)


def landlock():
    """Return the version of Landlock that this kernel offers, 0 where it has none."""
    return max(LIBC.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, 1), 0)


def seccomp():
    """Say whether this kernel filters system calls."""
    with open("/proc/self/status", encoding="ascii") as stream:
        return "Seccomp:" in stream.read()


WHOLE = landlock() >= 2 and seccomp()
needs_all = pytest.mark.skipif(not WHOLE, reason=f"the kernel's Landlock is version {landlock()}, seccomp {seccomp()}")


@pytest.fixture
def breakout(monkeypatch):
    """Have the lab run the program that also takes the order to break out."""
    monkeypatch.setenv("SLUICE_BIN", with_orders("breakout"))


def attempts(relay, outside, *only):
    """Return what came of each attempt to break out, by thread and name."""
    lines = (line.split(" ", 2) for line in order(relay, "breakout", str(outside), *only).splitlines())
    return {(thread, name): result for thread, name, result in lines}


@needs_all
@pytest.mark.skipif(os.getuid() != 0, reason="others can't do most of it anyway")
def test_nothing_gets_out(lab, breakout, tmp_path):
    sink = lab.sink()
    outside = tmp_path / "outside"
    relay = lab.relay(Config(settings={"sandbox": "required"}).route_all_to(sink.port))
    said = attempts(relay, outside)
    names = {name for thread, name in said if thread == "thread"}
    assert {"open_shadow", "execute", "packet_socket", "trace_parent"} <= names and len(names) == 13
    done = {key for key, result in said.items() if result == "done"}
    # Main asks the kernel for our addresses, maps libraries when it starts anew, tries a program
    # beside it, and in a build with a sanitizer has the leak detector's process.
    of_sanitizer = {("main", "fork"), ("main", "trace_parent")}
    assert done - of_sanitizer == {("main", "netlink_socket"), ("main", "run_beside"), ("main", "run_memory")}
    assert said["thread", "run_beside"] == "refused ENOSYS"
    assert said["main", "execute"] == "refused EACCES" and said["thread", "execute"] == "refused ENOSYS"
    assert said["main", "open_shadow"] == said["thread", "open_shadow"] == "refused EACCES"
    assert not outside.exists()
    relay.send()
    sink.wait_messages(1)


@pytest.mark.skipif(os.getuid() != 0, reason="others can't do it anyway")
def test_without_a_sandbox_the_attempts_succeed(lab, breakout, tmp_path):
    relay = lab.relay(Config(settings={"sandbox": "off"}))
    outside = tmp_path / "outside"
    for name in ("open_shadow", "write_outside", "raw_socket", "fork", "run_memory", "dump"):
        assert set(attempts(relay, outside, name).values()) == {"done"}, name
    assert outside.exists()


@needs_all
def test_every_thread_is_in_it(lab):
    relay = lab.relay(Config(settings={"sandbox": "required", "http": f"{LOOPBACK}:0"}))

    def filters():
        found = {}
        for task in os.listdir(f"/proc/{relay.process.pid}/task"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{relay.process.pid}/task/{task}/status", encoding="ascii") as stream:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in stream if ":\t" in line)
                found[status["Name"]] = int(status.get("Seccomp_filters", 0))
                assert status["Seccomp"].strip() == "2" and status["NoNewPrivs"].strip() == "1"
        return found

    def all_in():
        # Main has one filter less: it reads the configuration and starts the program anew.
        found = filters()
        least = min(found.values())
        return len(found) > 5 and all(number == least + (name in ("log", "spool", "qmgr", "dns", "http", "maildrop", "secrets", "limiter", "events", "cluster", "sts", "tlsrpt", "pool", "sync")
                                                         or name.startswith("smtp")) for name, number in found.items())

    wait_until(all_in, 60, "each thread to have begun")


@needs_all
@pytest.mark.skipif(os.getpriority(os.PRIO_PROCESS, 0) > 0, reason="all here gives way already")
def test_threads_that_compute_give_way_inside(lab):
    """Passwords and signatures; not those that mail is waiting for, whose calls block."""
    relay = lab.relay(Config(settings={"sandbox": "required"}))

    def niceness():
        found = {}
        for task in os.listdir(f"/proc/{relay.process.pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{relay.process.pid}/task/{task}/comm", encoding="ascii") as comm:
                found.setdefault(comm.read().strip(), set()).add(os.getpriority(os.PRIO_PROCESS, int(task)))
        return found

    wait_until(lambda: niceness().get("pool") == {10}, 60, "the pool to give way")
    found = niceness()
    assert found["sync"] == found["spool"] == found["qmgr"] == {0}


def _sets_of_calls():
    """Return what systemd calls each set of system calls, by name."""
    text = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout
    sets, current = {}, None
    for line in text.splitlines():
        if line.startswith("@"):
            current = sets.setdefault(line.strip(), set())
        elif line.startswith("    ") and current is not None and not line.strip().startswith("#"):
            current.add(line.strip())
    return sets


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_the_unit_allows_what_the_sandbox_needs():
    sets = _sets_of_calls()

    def expand(words):
        return {call for word in words for call in (expand(sets[word]) if word.startswith("@") else {word})}

    allowed = set()
    with open(os.path.join(REPOSITORY, "etc/sluice.service"), encoding="utf-8") as unit:
        for words in re.findall(r"^SystemCallFilter=(.*)$", unit.read(), re.M):
            if words.startswith("~"):
                allowed -= expand(words[1:].split())
            else:
                allowed |= expand(words.split())
    with open(os.path.join(REPOSITORY, "cmd/confine/syscall_table.h"), encoding="utf-8") as table:
        shipped = table.read().split("#if defined(__SANITIZE")[0]
    needed = set(re.findall(r"^\t(?:CALL|WHERE2?)\((\w+)", shipped, re.M)) & expand(["@known"])
    needed |= {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}
    assert len(needed) > 100 and needed <= allowed, needed - allowed


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter below knows this machine's numbers only")
@pytest.mark.parametrize("wanted", ["auto", "required"])
def test_a_kernel_without_landlock(lab, wanted, monkeypatch):
    """A filter from outside that refuses landlock_create_ruleset() stands in for that kernel."""
    relay = lab.relay(Config(settings={"sandbox": wanted}), start=False)
    monkeypatch.setenv("SLUICE_WRAPPER", f"/usr/bin/python3 {os.path.abspath('lab/without_syscall.py')} 444")
    if wanted == "auto":
        relay.start()
        event = relay.wait_event("sandbox")
        assert event["files"] == "open" and event["system_calls"] == "restricted" and "Landlock" in event["reason"]
        return
    with pytest.raises(AssertionError, match="ended at once"):
        relay.start()
    assert "sandbox = required: no Landlock can be had here" in relay.stderr_text()


@needs_all
def test_reload_rotation_and_restart_work_inside(lab, tmp_path):
    sink = lab.sink()
    table = tmp_path / "tables" / "aliases"
    table.parent.mkdir()
    table.write_text("list@here.test: one@dest.test\n")
    relay = lab.relay(Config(settings={"sandbox": "required", "aliases": [str(table)]}).route_all_to(sink.port))
    # A table that is replaced, and a new one beside it.
    fresh = table.with_name("fresh")
    fresh.write_text("list@here.test: two@dest.test\n")
    second = table.with_name("second")
    second.write_text("more@here.test: three@dest.test\n")
    fresh.rename(table)
    relay.config.settings["aliases"] = [str(table), str(second)]
    relay.write_config()
    os.rename(relay.log_path, relay.log_path + ".1")
    assert relay.command("reload").returncode == 0
    relay._log_read = 0
    relay.wait_event("reload", result="done")
    relay.send(recipients=("list@here.test", "more@here.test"))
    sink.wait_messages(1)
    for restarts in range(1, 4):
        assert relay.command("restart").returncode == 0
        relay.wait_event("sandbox", count=restarts, inherited="true")
        relay.send(recipients=("list@here.test",))
        sink.wait_messages(1 + restarts)
    assert {to for message in sink.messages for to in message.recipients} == {"two@dest.test", "three@dest.test"}


def test_the_queue_may_lie_behind_a_symbolic_link(lab, tmp_path):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = lab.relay(Config().route_all_to(sink.port), start=False)
    disk = tmp_path / "disk" / "queue"
    disk.parent.mkdir()
    os.symlink(disk.parent, relay.folder + "/mnt")
    os.symlink("mnt/queue", relay.spool)
    disk.mkdir()
    relay.start()
    relay.send(recipients=("small@dest.test",))
    relay.send(recipients=("large@dest.test",), content=b"Subject: large\r\n\r\n" + b"0123456789\r\n" * 60000)
    assert relay.command("sendmail", "local@dest.test", stdin="Subject: local\n\n").returncode == 0
    relay.wait_event("deferred", count=3)
    assert len(list((disk / "large").iterdir())) == 1
    relay.kill()
    assert relay.command("queue", "list").stdout.splitlines()[-1].startswith("-- 3 messages")
    assert relay.command("queue", "check").returncode == 0
    sink.behaviour.rules.clear()
    relay.start()
    assert relay.command("queue", "flush", "--all").returncode == 0
    sink.wait_messages(3)


@needs_all
def test_what_a_reload_can_not_reach_is_said(lab, tmp_path_factory):
    relay = lab.relay(Config(settings={"sandbox": "required"}))
    far = tmp_path_factory.mktemp("far") / "aliases"
    far.write_text("list@here.test: one@dest.test\n")
    relay.config.settings["aliases"] = [str(far)]
    relay.write_config()
    done = relay.command("reload")
    assert done.returncode == REFUSED
    assert f"{far}: out of the sandbox's reach; to have it opened, stop the relay and start it" in done.stderr
    relay.config.settings["aliases"] = []
    relay.config.settings["spool"] = relay.spool + "2"
    relay.write_config()
    # The client looks for the relay where the configuration says: by signal, then.
    relay.signal(signal.SIGUSR2)
    event = relay.wait_event("restart", result="refused")
    assert "the sandbox ends at the queue that there was" in event["reason"]
    assert relay.running()


@pytest.mark.skipif(os.getuid() != 0, reason="only root reads the memory of what is not dumpable")
def test_no_key_is_left_in_buffers(lab):
    certificate, key = lab.certificates.host("relay.test")
    relay = lab.relay(Config(listeners={"smtp": {"certificate": certificate, "key": key}}))
    with relay.client() as client:
        client.greet()
        client.starttls()
    assert relay.command("reload").returncode == 0
    with open(key, encoding="ascii") as stream:
        lines = [line for line in stream.read().splitlines() if line and not line.startswith("-----")]
    der = subprocess.run(["openssl", "pkey", "-in", key, "-outform", "DER"], capture_output=True, check=True).stdout
    memory = writable_memory(relay.process.pid)
    assert b"relay.test" in memory
    # PKCS 8 of a key on P-256: the number itself begins at 36; as text, and as bytes.
    for secret in (lines[1].encode(), der[36:68]):
        assert secret not in memory


def writable_memory(pid):
    """Return all that a process may have written to."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            places, rights = line.split()[:2]
            begin, end = (int(place, 16) for place in places.split("-"))
            if not rights.startswith("rw") or end - begin > 1 << 28:
                continue
            try:
                memory.seek(begin)
                found.append(memory.read(end - begin))
            except OSError as error:
                assert error.errno == errno.EIO
    return b"".join(found)


def _own_etc(tmp_path):
    """Return a folder with what a relay needs of /etc."""
    etc = tmp_path / "etc"
    etc.mkdir()
    for name in ("passwd", "group", "nsswitch.conf"):
        shutil.copy(f"/etc/{name}", etc / name)
    return etc


def _start_with_etc(relay, etc, monkeypatch):
    """Start it where the folder is /etc, which alone says the time zone."""
    script = etc.parent / "with_etc"
    script.write_text(f'#!/bin/sh\nunset TZ\nmount --bind {etc} /etc && exec "$@"\n')
    script.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("SLUICE_WRAPPER", f"unshare --mount {script}")
        relay.start()


@needs_all
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give the relay an /etc of its own")
def test_name_servers_stay_where_resolv_conf_can_not_be_read_any_more(lab, tmp_path, monkeypatch):
    nsd, sink, etc = lab.nsd({"dest.test": "@ MX 10 mx\nmx A 127.0.0.1"}), lab.sink(), _own_etc(tmp_path)
    (etc / "resolv.conf").write_text(f"nameserver {nsd.address}\n")
    config = Config(settings={"sandbox": "required"}, dns={"port": nsd.port, "allow_loopback": True})
    config.transports["smtp"] = {"port": sink.port}
    relay = lab.relay(config, start=False)
    _start_with_etc(relay, etc, monkeypatch)
    (etc / "new").write_text("nameserver 127.0.0.250\n")
    (etc / "new").rename(etc / "resolv.conf")
    assert relay.command("reload").returncode == 0
    assert "resolv.conf cannot be read" in relay.wait_event("dns")["reason"]
    relay.send()
    sink.wait_messages(1)


def _zone(hours):
    """Return a time zone so far ahead of universal time, all year: RFC 8536, version 1."""
    return b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lBB", 3600 * hours, 0, 0) + b"LAB\0"


@needs_all
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give the relay an /etc of its own")
def test_the_time_zone_is_that_of_the_last_reload(lab, tmp_path, monkeypatch):
    sink, etc = lab.sink(), _own_etc(tmp_path)
    zone = etc / "localtime"
    zone.write_bytes(_zone(3))
    os.utime(zone, (1, 1))  # the library sees a change by the second
    relay = lab.relay(Config(settings={"sandbox": "required"}).route_all_to(sink.port), start=False)
    _start_with_etc(relay, etc, monkeypatch)

    def offset():
        seen = len(sink.messages)
        relay.send()
        return split(sink.wait_messages(seen + 1)[-1].content)[0].split()[-1]

    assert offset() == "+0300"
    zone.write_bytes(_zone(5))
    os.utime(zone, (2, 2))
    assert relay.command("reload").returncode == 0
    wait_until(lambda: offset() == "+0500", 30, "a second to be over, for which the offset is kept")
    (etc / "new").write_bytes(_zone(7))
    (etc / "new").rename(zone)
    assert relay.command("reload").returncode == 0
    time.sleep(1)
    assert offset() == "+0500"  # it is another file, which the sandbox does not reach


def _installed(lab, tmp_path, monkeypatch, **settings):
    """Return a relay that was started by the name that is a link to the first of two programs, and the three."""
    link, *programs = (tmp_path / name for name in ("sluice", "1/sluice", "2/sluice"))
    for program in programs:
        program.parent.mkdir()
        shutil.copy(binary(), program)
    link.symlink_to(programs[0])
    monkeypatch.setenv("SLUICE_BIN", str(link))
    return lab.relay(Config(settings=settings)), link, *programs


def _order(relay, program, *words):
    return subprocess.run([program, *words, "-c", relay.config_path], capture_output=True, text=True, timeout=60, check=False)


def _restart(relay, program):
    return _order(relay, program, "restart")


def _relink(link, program):
    link.unlink()
    link.symlink_to(program)


def test_a_restart_runs_what_its_name_leads_to_now(lab, tmp_path, monkeypatch):
    relay, link, first, second = _installed(lab, tmp_path, monkeypatch, sandbox="off")
    assert os.readlink(f"/proc/{relay.process.pid}/exe") == str(first)
    _relink(link, second)
    assert _restart(relay, first).returncode == 0
    assert os.readlink(f"/proc/{relay.process.pid}/exe") == str(second)


def test_a_restart_without_a_program_is_refused(lab, tmp_path, monkeypatch):
    relay, link, first, second = _installed(lab, tmp_path, monkeypatch)
    first.rename(tmp_path / "away")
    done = _restart(relay, second)
    assert done.returncode == 1 and f"{link}: No such file" in done.stderr
    (tmp_path / "away").rename(first)
    first.chmod(0o644)
    done = _restart(relay, second)
    assert done.returncode == 1 and f"{link}: Permission denied" in done.stderr
    first.chmod(0o755)
    assert _restart(relay, second).returncode == 0
    relay.send()


def _half_of(program):
    program.write_bytes(program.read_bytes()[:100000])


def _empty(program):
    program.write_bytes(b"")


def _for_another_machine(program):
    content = bytearray(program.read_bytes())
    content[18:20] = b"\xf3\x00"  # e_machine: RISC-V
    program.write_bytes(content)


def _without_its_library(program):
    library, source = program.with_name("libnone.so"), program.with_suffix(".c")
    source.write_text("int none(void); int main(void) { return none(); }\n")
    library.with_suffix(".c").write_text("int none(void) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-o", library, library.with_suffix(".c")], check=True)
    subprocess.run(["gcc", "-o", program, source, library], check=True)
    library.unlink()


def _compiled(program, text):
    source = program.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["gcc", "-o", program, source], check=True)


def _that_crashes(program):
    _compiled(program, "int main(void) { __builtin_trap(); }\n")


def _that_knows_no_such_setting(program):
    _compiled(program, '#include <stdio.h>\nint main(void) { fputs("sluice.conf:1: unknown setting\\n", stderr); return 1; }\n')


BROKEN = {
    _half_of: "would not start: ",
    _empty: "would not start: Exec format error",
    _for_another_machine: "would not start: Exec format error",
    _without_its_library: "libnone.so: cannot open shared object file",
    _that_crashes: "would not start: Illegal instruction",
    _that_knows_no_such_setting: "would not start: sluice.conf:1: unknown setting",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__.strip("_"))
@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_restart_into_a_program_that_can_not_run_is_refused(lab, tmp_path, monkeypatch, broken, sandbox):
    relay, link, first, second = _installed(lab, tmp_path, monkeypatch, sandbox=sandbox)
    away = first.with_name("away")
    first.rename(away)
    shutil.copy(second, first)
    broken(first)
    done = _restart(relay, second)
    assert done.returncode == REFUSED and f"{link}: " in done.stderr and BROKEN[broken] in done.stderr, done.stderr
    assert BROKEN[broken] in relay.wait_event("restart", result="refused")["reason"]
    relay.send()
    relay.signal(signal.SIGUSR2)
    relay.wait_event("restart", result="refused", count=2)
    away.rename(first)
    assert _restart(relay, second).returncode == 0
    relay.send()


@pytest.mark.plain_only  # the thread sanitizer makes a fork() of each vfork()
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter below knows this machine's numbers only")
def test_where_no_process_can_be_had_a_restart_goes_without_the_trial(lab, monkeypatch):
    """A filter from outside that refuses vfork() stands in for a sandbox that an older version has left."""
    relay = lab.relay(start=False)
    with monkeypatch.context() as patch:
        patch.setenv("SLUICE_WRAPPER", f"/usr/bin/python3 {os.path.abspath('lab/without_syscall.py')} 58")
        relay.start()
    assert relay.command("restart").returncode == 0
    assert relay.wait_event("restart", result="not tried before")["reason"] == "Function not implemented"
    relay.wait_event("ready", count=2)
    relay.send()


def _that_hangs(program):
    _compiled(program, "#include <unistd.h>\nint main(void) { pid_t p = getppid(); while (getppid() == p) usleep(10000); }\n")


def _has_child(pid):
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
            if int(stat.read().rpartition(")")[2].split()[1]) == pid:
                return True
    return False


def test_while_a_program_is_tried_the_relay_serves_and_can_be_stopped(lab, tmp_path, monkeypatch):
    relay, _, first, second = _installed(lab, tmp_path, monkeypatch)
    first.unlink()
    _that_hangs(first)
    ordered = subprocess.Popen([second, "restart", "-c", relay.config_path], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: _has_child(relay.process.pid), 60, "the program to be tried")
    again = _restart(relay, second)
    assert again.returncode == REFUSED and "restarting" in again.stderr
    relay.send()
    assert _order(relay, second, "reload").returncode == 0
    drain = _order(relay, second, "stop", "--drain")
    assert drain.returncode == UNREACHABLE and "ask again" in drain.stderr
    assert _order(relay, second, "stop").returncode == 0
    assert relay.wait_ended() == 0
    _, said = ordered.communicate(timeout=60)
    assert ordered.returncode == REFUSED and "called off" in said


def test_who_would_start_says_so_beside_a_relay_that_runs(lab):
    relay = lab.relay()
    assert relay.command("serve", "--try").returncode == 0
    path = os.path.join(relay.spool, "format")
    with open(path, encoding="ascii") as stream:
        text = stream.read()
    with open(path, "w", encoding="ascii") as stream:
        stream.write("sluice spool 99\n")
    for words in (("serve", "--try"), ("restart",)):
        said = relay.command(*words)
        assert said.returncode == REFUSED and "this program knows" in said.stderr, said
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)
    relay.config.settings["nonsense"] = "1"
    relay.write_config()
    said = relay.command("serve", "--try")
    assert said.returncode == REFUSED and "nonsense" in said.stderr
    relay.send()


@needs_all
def test_a_restart_into_a_program_that_the_sandbox_keeps_back_is_refused(lab, tmp_path, monkeypatch):
    table = tmp_path / "table"  # whose folder, with both programs in it, may be read
    table.write_text("", encoding="ascii")
    relay, link, first, second = _installed(lab, tmp_path, monkeypatch, client_access=[str(table)])
    _relink(link, second)
    done = _restart(relay, first)
    assert done.returncode == 1 and f"{link}: out of the sandbox's reach" in done.stderr
    relay.send()
