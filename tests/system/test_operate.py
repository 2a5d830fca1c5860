# SPDX-License-Identifier: ISC
"""Starting, stopping and changing a relay that is in use; without systemd, but as systemd does it."""

import contextlib
import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.load import Load
from lab.net import LOOPBACK, accepts, free_port, wait_until
from lab.proc import descriptors
from lab.relay import binary
from lab.smtp import Client, Closed

REFUSED, UNREACHABLE = 1, 75


def listening(port, family=socket.AF_INET, address=LOOPBACK, both=False):
    """Return a socket that listens, as systemd opens one."""
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not both)
    one.bind((address, port))
    one.listen(100)
    return one


def greet(port, address=LOOPBACK):
    """Connect, and return the client once it was greeted."""
    client = Client(address, port, timeout=60)
    client.greet()
    return client


# --- sockets that it is given


def test_a_socket_of_systemd_is_served_by_every_worker(lab):
    relay = lab.relay(start=False)
    relay.config.settings["workers"] = 3
    relay.write_config()
    with listening(relay.port) as held:
        relay.sockets = [held]
        relay.start()
        for _ in range(20):
            greet(relay.port).close()
        relay.wait_event("disconnect", count=20)
        relay.stop()
        # While there is no relay, clients wait.
        late = Client(LOOPBACK, relay.port, timeout=60)
        relay.start()
        late.greet()
        late.close()


def test_a_socket_that_no_listener_wants_is_said_and_closed(lab):
    relay = lab.relay(start=False)
    other = free_port()
    with listening(other) as held:
        relay.sockets = [held]
        relay.start()
    relay.wait_event("socket_unused", port=other)
    assert not accepts(other)
    greet(relay.port).close()


def test_a_socket_of_both_families_shows_ipv4_clients_as_what_they_are(lab):
    relay = lab.relay(start=False)
    relay.config.listeners["smtp"]["address"] = [f"0.0.0.0:{relay.port}"]
    relay.config.settings["networks"] = [f"{LOOPBACK}/32"]
    relay.config.route_all_to(lab.sink().port)
    relay.write_config()
    with listening(relay.port, socket.AF_INET6, "::", both=True) as held:
        relay.sockets = [held]
        relay.start()
        assert relay.send().code == 250
    relay.wait_event("queued", client=LOOPBACK)


# --- telling systemd


def test_systemd_is_told_of_each_step(lab):
    relay = lab.relay(start=False)
    place = os.path.join(relay.folder, "notify")
    told = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(place)
        manager.settimeout(60)
        relay.environment["NOTIFY_SOCKET"] = place
        relay.start()

        def until(word):
            while not told or word not in told[-1]:
                told.append(manager.recv(4096).decode("utf-8"))

        until("READY=1")
        assert f"127.0.0.1:{relay.port}" in told[-1]
        assert relay.command("reload").returncode == 0
        until("RELOADING=1")
        until("READY=1")
        (name,), former = relay.ports, relay.port
        relay.ports[name] = free_port()
        relay.config.listeners[name] = {"address": [f"{LOOPBACK}:{relay.port}"]}
        relay.write_config()
        assert relay.command("reload").returncode == 0
        until("RELOADING=1")
        until("READY=1")
        assert f"listening on {LOOPBACK}:{relay.port}" in told[-1] and f":{former}" not in told[-1]
        assert relay.command("restart").returncode == 0
        until("restarting")
        until("READY=1")
        assert not any("STOPPING" in line for line in told)
        relay.stop()
        until("STOPPING=1")


# --- reload


def _who_listens(port):
    """Return "smtp" or "http", by who answers; else None."""
    try:
        with socket.create_connection((LOOPBACK, port), 60) as one:
            one.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return "http" if one.recv(4) == b"HTTP" else "smtp"  # which greets, or complains
    except OSError:
        return None


def _move(relay, http, **listeners):
    """Reload with listeners and the page at these addresses, and return what the reload says."""
    relay.config.settings["http"] = http
    relay.config.listeners = {name: {"address": [address]} for name, address in listeners.items()}
    relay.write_config()
    return relay.command("reload")


def test_one_reload_moves_listeners_and_the_page_to_where_others_were(lab):
    """The page was refused a port that a listener left with the same reload."""
    a, b, c = (free_port() for _ in range(3))
    first, second, third = (f"{LOOPBACK}:{port}" for port in (a, b, c))
    config = Config(listeners={"x": {"address": [first]}, "y": {"address": [second]}}, settings={"http": third})
    relay = lab.relay(config)
    for http, listeners, who in (
        (third, {"x": second, "y": first}, ("smtp", "smtp", "http")),
        (first, {"x": second}, ("http", "smtp", None)),
        (first, {"x": second, "y": third}, ("http", "smtp", "smtp")),
        (third, {"x": second, "y": first}, ("smtp", "smtp", "http")),
        (f"0.0.0.0:{b}", {"y": first}, ("smtp", "http", None)),
    ):
        done = _move(relay, http, **listeners)
        assert done.returncode == 0, (http, listeners, done.stderr)
        assert tuple(map(_who_listens, (a, b, c))) == who, (http, listeners)


def test_one_reload_widens_and_narrows_an_address(lab):
    """127.0.0.1 and 0.0.0.0 of one port exclude each other: the former stays where the latter cannot be had with the rest."""
    port = free_port()
    relay = lab.relay(Config(listeners={"x": {"address": [f"{LOOPBACK}:{port}"]}}))
    for address in ("0.0.0.0", LOOPBACK):
        assert _move(relay, "", x=f"{address}:{port}").returncode == 0, relay.log_text()
        assert _who_listens(port) == "smtp"
    with listening(free_port()) as held:
        for http, others in (("", {"y": f"{LOOPBACK}:{held.getsockname()[1]}"}), (f"{LOOPBACK}:{held.getsockname()[1]}", {})):
            assert _move(relay, http, x=f"0.0.0.0:{port}", **others).returncode == 1
            with relay.client("x") as client:
                assert client.read_reply().code == 220


def test_a_reload_opens_closes_and_keeps_listeners(lab):
    sink = lab.sink()
    config = Config(listeners={"stays": {}, "goes": {}, "renamed": {}}).route_all_to(sink.port)
    relay = lab.relay(config)
    staying, going = relay.client("stays"), relay.client("goes")
    staying.greet()
    going.greet()
    fresh = free_port()
    listeners = relay.config.listeners
    gone = relay.ports["goes"]
    del listeners["goes"]
    listeners["another name"] = listeners.pop("renamed")
    listeners["stays"]["address"].append(f"{LOOPBACK}:{fresh}")
    relay.write_config()
    done = relay.command("reload")
    assert done.returncode == 0 and not done.stderr
    wait_until(lambda: not accepts(gone), what="the listener to go")
    for port in (relay.ports["stays"], relay.ports["renamed"], fresh):
        greet(port).close()
    # Sessions go on, also those of a listener that has gone.
    for client in (staying, going):
        client.send_mail("a@sender.test", ["b@dest.test"])
        client.close()
    sink.wait_messages(2)


def test_a_reload_that_can_not_listen_changes_nothing(lab):
    relay = lab.relay()
    fresh = free_port()
    before = descriptors(relay)
    with listening(0) as other:
        taken = other.getsockname()[1]
        relay.config.listeners["smtp"]["address"] = [f"{LOOPBACK}:{fresh}", f"{LOOPBACK}:{taken}"]
        relay.write_config()
        done = relay.command("reload")
    assert done.returncode == REFUSED and str(taken) in done.stderr
    assert not accepts(fresh)
    greet(relay.port).close()
    wait_until(lambda: descriptors(relay) <= before, what="sockets to be closed")


def test_listeners_come_and_go_under_load(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    load = Load(relay.port, messages=300, sessions=6)
    extra = [f"{LOOPBACK}:{free_port()}" for _ in range(3)]
    for number in range(12):
        chosen = [address for at, address in enumerate(extra) if (number + at) % 2]
        relay.config.listeners["smtp"]["address"] = [f"{LOOPBACK}:{relay.port}", *chosen]
        relay.write_config()
        assert relay.command("reload").returncode == 0
    load.finish()
    sink.wait_messages(300, timeout=60)
    assert len(sink.messages) == 300 and not load.refused


# --- restart


def test_no_client_is_refused_while_the_relay_is_restarted(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.config.settings["workers"] = 2
    pid, stop, failures, served = relay.process.pid, threading.Event(), [], []

    def connect():
        while not stop.is_set():
            try:
                with Client(LOOPBACK, relay.port, timeout=60) as client:
                    client.greet()
                    served.append(client.command("QUIT", 221))
            except Closed:
                served.append("closed")  # a 421: it had begun before the end
            except AssertionError as error:
                if "421" not in str(error):
                    failures.append(error)
            except OSError as error:
                failures.append(error)
            time.sleep(0.005)

    threads = [threading.Thread(target=connect, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for workers in (1, 3, 2):
        relay.config.settings["workers"] = workers
        relay.write_config()
        before = len(served)
        done = relay.command("restart", timeout=60)
        assert done.returncode == 0 and not done.stderr, done.stderr
        wait_until(lambda seen=before: len(served) > seen + 20, 60, "clients to be served")
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert relay.process.running() and relay.process.pid == pid
    relay.wait_event("ready", count=4)
    assert len(relay.events("restart")) == 3
    relay.send()
    sink.wait_messages(1)


def test_a_restart_by_signal_loses_nothing_under_load(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    load = Load(relay.port, messages=400, sessions=8)
    for count in range(2, 4):
        relay.process.signal(signal.SIGUSR2)
        relay.wait_event("ready", timeout=60, count=count)
    load.finish()
    wait_until(lambda: len(sink.messages) >= 400, 60, "all mail")
    # Sessions under way are asked to come again; nobody is turned away at the door.
    assert all("421 4.3.2" in str(why) for why in load.refused)


@pytest.mark.parametrize("fault", [
    'host_name = "x"',
    "message_size_limit = many",
    'networks = { "127.0.0.0/8"',
    'transport "slow" {',
    'route "example.org" { transport = "none" }',
    'http = "127.0.0.1:0',
    "= {",
])
@pytest.mark.parametrize("first", [True, False])
def test_a_fault_in_the_file_hides_no_relay_that_runs(lab, fault, first):
    relay = lab.relay()
    with open(relay.config_path, encoding="utf-8") as stream:
        text = stream.read()
    with open(relay.config_path, "w", encoding="utf-8") as stream:
        stream.write(f"{fault}\n{text}" if first else f"{text}{fault}\n")
    says = relay.command("check")
    assert says.returncode == 1
    fault = says.stderr.splitlines()[0]
    for words, answer in (
        (("stats",), "accepting yes"), (("queue", "list"), "-- 0 messages"), (("top", "-n", "1"), "accepting"),
        (("dest",), ""), (("flow",), ""), (("user",), ""), (("milter",), ""), (("shape",), "T"),
        (("suppress",), ""), (("explain", "none.test"), ""), (("trace", "nobody@none.test"), ""), (("report",), "Mail of relay.test"),
    ):
        said = relay.command(*words)
        assert fault in said.stderr and "warning: with this neither reload nor start" in said.stderr, words
        assert "reached" not in said.stderr and said.returncode < 75 and answer in said.stdout, (words, said)
    for words in (("reload",), ("restart",), ("route", "a@b.test"), ("config",)):
        said = relay.command(*words)
        assert said.returncode == 1 and fault in said.stderr and "warning" not in said.stderr, words
    assert relay.command("stop").returncode == 0
    assert relay.wait_ended() == 0


def run_sluice(*words, program=None):
    """Run the program, with no relay of the lab."""
    return subprocess.run([program or binary(), *words], capture_output=True, text=True, timeout=60, check=False)


def test_no_other_relay_is_asked_where_a_fault_hides_which(tmp_path):
    path = tmp_path / "sluice.conf"
    path.write_text(f'/* spool = "{tmp_path}/here"\n')
    said = run_sluice("stats", "-c", str(path))
    assert said.returncode == 1 and said.stderr == f"{path}:1: unterminated comment\n"
    path.write_text(f'spool = "{tmp_path}/here\n')
    said = run_sluice("stats", "-c", str(path))
    assert said.returncode == 1 and said.stderr == f"{path}:1: unterminated string\n"
    path.write_text(f'x = 1\nspool = "{tmp_path}/here"\n')
    said = run_sluice("queue", "list", "-c", str(path))
    assert said.returncode == 75 and f"reached at {tmp_path}/here/control" in said.stderr


def test_a_restart_with_a_fault_in_the_configuration_is_refused(lab):
    relay = lab.relay()
    with open(relay.config_path, "a", encoding="utf-8") as stream:
        stream.write("nonsense = 1\n")
    relay.process.signal(signal.SIGUSR2)
    relay.wait_event("reload", result="kept the old settings")
    assert relay.command("restart").returncode == REFUSED
    greet(relay.port).close()
    assert len(relay.events("ready")) == 1


# --- the end


def test_a_drain_delivers_what_is_at_work_and_leaves_what_is_deferred(lab):
    sink = lab.sink(Rule("rcpt", "451 4.2.1 later", pattern="^later"), latency=0.2)
    queue = {"minimal_backoff_time": "1s", "maximal_backoff_time": "1s"}
    config = Config(queue=queue, transports={"smtp": {"connection_limit": 1, "pipeline_depth": 1}})
    relay = lab.relay(config.route_all_to(sink.port))
    relay.send(recipients=["later@dest.test"])
    relay.wait_event("deferred")
    with relay.client() as client:
        client.greet()
        for _ in range(10):
            client.send_mail("a@sender.test", ["b@dest.test"])
        assert relay.command("stop", "--drain").returncode == 0
    assert relay.wait_ended() == 0
    assert sum(len(m.recipients) for m in sink.messages) == 10
    assert not accepts(relay.port)
    assert relay.events("drain", result="done")
    relay.start()
    assert "later@dest.test" in relay.command("queue", "list").stdout


def test_a_drain_ends_in_time_and_keeps_what_is_left(lab):
    sink = lab.sink(Rule("end", delay=60))
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.send()
    wait_until(lambda: "queue_messages{queue=\"active\"} 1" in relay.command("stats").stdout, what="work")
    done = relay.command("stop", "--drain", "--timeout", "500ms")
    assert done.returncode == 0 and "out of time" in done.stderr
    assert relay.wait_ended() == 0
    assert relay.events("drain", result="out of time")


def restarting(lab, order=None):
    """Return a relay on its way to its successor: for five seconds it waits for a host that has a message and does not answer it."""
    sink = lab.sink(Rule("end", delay=60, times=1))
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.send()
    sink.wait_messages(1)  # its answer is waited for; else the successor would be who waits
    if order:
        order(relay)
    else:
        relay.process.signal(signal.SIGUSR2)
    relay.wait_event("restart")
    return relay


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_a_stop_during_a_restart_stops_the_relay(lab, how):
    relay = restarting(lab)
    if how == "stop":
        assert relay.command("stop").returncode == 0
    else:
        relay.process.signal(signal.SIGTERM)
    assert relay.wait_ended() == 0
    assert not accepts(relay.port)


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_who_ordered_a_restart_that_is_called_off_is_told_so(lab, how):
    ordered = []

    def order(relay):
        ordered.append(subprocess.Popen([binary(), "restart", "-c", relay.config_path], stderr=subprocess.PIPE, text=True))

    relay = restarting(lab, order)
    if how == "stop":
        assert relay.command("stop").returncode == 0
    else:
        relay.process.signal(signal.SIGTERM)
    assert relay.wait_ended() == 0
    _, said = ordered[0].communicate(timeout=30)  # who was not told waits for a minute
    assert ordered[0].returncode == REFUSED and "called off" in said


def test_a_drain_during_a_restart_is_to_be_asked_for_again(lab):
    relay = restarting(lab)
    done = relay.command("stop", "--drain")
    if done.returncode == UNREACHABLE:
        relay.wait_event("ready", count=2)
        relay.command("stop", "--drain")
    assert relay.wait_ended() == 0  # where the first came late, it was the successor's


def test_a_program_that_was_replaced_since_it_was_tried_is_not_executed(lab, tmp_path, monkeypatch):
    program, whole, ordered = tmp_path / "sluice", binary(), []
    shutil.copy(whole, program)
    monkeypatch.setenv("SLUICE_BIN", str(program))

    def order(relay):
        ordered.append(subprocess.Popen([whole, "restart", "-c", relay.config_path], stderr=subprocess.PIPE, text=True))

    relay = restarting(lab, order)
    program.rename(tmp_path / "away")
    program.write_bytes(b"half of a program")
    program.chmod(0o755)
    relay.wait_event("ready", count=2)
    _, said = ordered[0].communicate(timeout=60)
    assert ordered[0].returncode == REFUSED and "replaced after it had been tried" in said
    assert "replaced after" in relay.events("restart", result="refused")[0]["reason"]
    assert pathlib.Path(f"/proc/{relay.process.pid}/comm").read_text() == "sluice\n"
    relay.send()
    # The name is still known, and what it leads to is tried.
    done = run_sluice("restart", "-c", relay.config_path, program=whole)
    assert done.returncode == REFUSED and f"{program}: would not start: Exec format error" in done.stderr
    shutil.copy(whole, tmp_path / "new")
    (tmp_path / "new").rename(program)
    assert run_sluice("restart", "-c", relay.config_path).returncode == 0
    assert os.readlink(f"/proc/{relay.process.pid}/exe") == str(program)
    relay.send()


def threads_of(pid):
    """Return the names of its threads; one that ends meanwhile is none any more."""
    names = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names.add((task / "comm").read_text().strip())
    return names


def test_a_signal_behind_the_loop_of_a_restart_stops_the_relay(lab):
    with listening(0) as receiver:
        sink = lab.sink()
        config = Config().route_all_to(sink.port)
        config.extra = f'events {{ to = "http://{LOOPBACK}:{receiver.getsockname()[1]}/" delay = "10ms" }}\n'
        relay = lab.relay(config)
        relay.send()
        held, _ = receiver.accept()  # and not answered: the relay's end waits for a second
        with held:
            relay.process.signal(signal.SIGUSR2)
            relay.wait_event("restart")
            wait_until(lambda: "smtpd" not in threads_of(relay.process.pid), what="its loop to have ended")
            relay.process.signal(signal.SIGTERM)
            assert relay.wait_ended() == 0
    assert not accepts(relay.port)


def test_a_drain_is_seen_and_no_reload_opens_the_door_again(lab):
    sink = lab.sink(Rule("end", delay=60))
    config = Config().route_all_to(sink.port)
    config.settings["http"] = f"{LOOPBACK}:{free_port()}"
    relay = lab.relay(config)
    relay.send()
    wait_until(lambda: "queue_messages{queue=\"active\"} 1" in relay.command("stats").stdout, what="work")
    drain = threading.Thread(target=relay.command, args=("stop", "--drain"), daemon=True)
    drain.start()
    relay.wait_event("drain")
    again = relay.command("reload")
    assert again.returncode == REFUSED and "stopping" in again.stderr
    assert not accepts(relay.port)
    stats = relay.command("stats").stdout
    assert "accepting no" in stats and "draining" in stats
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://{config.settings['http']}/healthz", timeout=60)
    assert relay.command("shape", "maildrop").returncode == 0
    assert relay.command("stop").returncode == 0
    assert relay.wait_ended() == 0
    drain.join(60)


def test_a_stop_ends_a_drain(lab):
    sink = lab.sink(Rule("end", delay=60))
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.send()
    wait_until(lambda: "queue_messages{queue=\"active\"} 1" in relay.command("stats").stdout, what="work")
    drain = threading.Thread(target=relay.command, args=("stop", "--drain"), daemon=True)
    drain.start()
    relay.wait_event("drain")
    assert relay.command("stop").returncode == 0
    assert relay.wait_ended() == 0
    drain.join(60)
    assert not drain.is_alive()


@pytest.mark.parametrize("ends, status", [(True, 0), (False, 75)])
def test_a_stop_has_come_true_where_the_relay_has_ended_without_an_answer(lab, ends, status):
    """Of two at once one was told that the relay cannot be reached: with the second it waits for nobody, and may answer nobody."""
    relay = lab.relay(start=False)
    os.makedirs(relay.spool, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{relay.spool}/control")
        server.listen()
        with subprocess.Popen([binary(), "stop", "-c", relay.config_path], stderr=subprocess.PIPE, text=True) as stop:
            connection, _ = server.accept()
            assert connection.recv(4096).startswith(b"=stop")
            if ends:
                server.close()
            connection.close()
            said = stop.communicate(timeout=60)[1]
        assert stop.returncode == status and ("it broke off its answer" in said) == (not ends)


def test_what_takes_long_says_on_a_terminal_how_far_it_is(lab):
    sink = lab.sink(Rule("end", delay=60))
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.send()
    wait_until(lambda: "queue_messages{queue=\"active\"} 1" in relay.command("stats").stdout, what="work")
    leader, terminal = pty.openpty()
    command = [binary(), "stop", "--drain", "--timeout", "2500ms", "-c", relay.config_path]
    with subprocess.Popen(command, stderr=terminal) as stop:
        assert stop.wait(60) == 0
    os.close(terminal)
    said = os.read(leader, 65536).decode("utf-8")
    os.close(leader)
    assert "\r\x1b[K1 messages are being worked on, 0 deferred" in said
    assert said.rstrip().endswith("\r\x1b[Ksluice: out of time, with 1 messages still being worked on; "
                                  "they stay in the queue")
    assert relay.wait_ended() == 0


@pytest.mark.parametrize("words", [["--timeout", "1s"], ["--drain", "--timeout", "soon"], ["now"]])
def test_stop_wants_its_words_right(lab, words):
    done = lab.relay(start=False).command("stop", *words)
    assert done.returncode == 2 and done.stderr


def test_the_drain_of_no_relay_says_so(lab):
    assert lab.relay(start=False).command("stop", "--drain").returncode == UNREACHABLE


def test_a_control_socket_that_was_removed_is_there_again_at_a_signal(lab):
    relay = lab.relay()
    path = pathlib.Path(relay.spool) / "control"
    before = path.stat()
    path.unlink()
    assert relay.command("stats").returncode == 75
    relay.process.signal(signal.SIGHUP)
    wait_until(lambda: relay.command("stats").returncode == 0, 60, "the relay to be reached")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    # One that is there stays, with all who have just connected to it.
    assert relay.command("reload").returncode == 0 and path.stat().st_ino == after.st_ino
