# SPDX-License-Identifier: ISC
"""The commands: what they take, what they print, and how they end."""

import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import time

import pytest

from lab.config import Config, Raw
from lab.net import free_port, wait_until
from lab.process import Process
from lab.relay import binary
from lab.sink import Rule
from lab.smtp import Client

DONE, REFUSED, USAGE, UNREACHABLE = 0, 1, 2, 75
EX_USAGE, EX_DATAERR, EX_NOUSER, EX_IOERR, EX_CONFIG = 64, 65, 67, 74, 78
SUBCOMMANDS = "serve check config sendmail queue shape explain stats reload stop sink sim".split()
LATER = Rule("end", "450 4.2.1 come again")


def run(*words, timeout=60, **options):
    """Run the program without any relay."""
    return subprocess.run(
        [binary(), *words], capture_output=True, text=True, timeout=timeout, check=False, **options
    )


def deferring(lab, *rules, **queue):
    """Start a relay whose sink refuses for now, with retries far away."""
    sink = lab.sink(*(rules or [LATER]))
    queue = {"minimal_backoff_time": "1h", "maximal_backoff_time": "2h"} | queue
    return sink, lab.relay(Config(queue=queue).route_all_to(sink.port))


def put_off(relay, count=1, **options):
    """Send messages and wait until all are deferred; returns their ids in order."""
    for _ in range(count):
        relay.send(**options)
    relay.wait_event("deferred", count=count)
    wait_until(lambda: len(listed(relay, "--queue", "deferred")) >= count, what="the queue")
    return [message["id"] for message in listed(relay)]


def listed(relay, *words):
    """Return what queue list --json says."""
    done = relay.command("queue", "list", "--json", *words)
    assert done.returncode == DONE, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- usage


def test_without_a_command_the_commands_are_listed():
    done = run()
    assert done.returncode == USAGE
    assert all(f"  {word} " in done.stderr for word in SUBCOMMANDS)


@pytest.mark.parametrize("words", [[], *([word] for word in SUBCOMMANDS), ["queue", "list"]])
def test_help_is_printed_anywhere(words):
    done = run(*words, "--help")
    assert done.returncode == DONE
    assert done.stdout.startswith("usage: sluice") and not done.stderr


@pytest.mark.parametrize("words", [["queue"], ["serve"], ["login"]])
def test_help_is_had_of_a_command(words):
    assert run("help", *words).stdout == run(*words, "--help").stdout


@pytest.mark.parametrize(
    "line",
    [
        "frobnicate",
        "help frobnicate",
        "serve --unknown",
        "serve more",
        "check more",
        "config --unknown",
        "config --sample name",
        "stats more",
        "reload --unknown",
        "stop --drain now",
        "queue",
        "queue frobnicate",
        "queue hold",
        "queue flush",
        "queue delete",
        "queue show",
        "queue list --queue nowhere",
        "queue list --older soon",
        "sink -l nowhere",
        "sink -l 127.0.0.1:99999",
        "sink --delay soon",
        "sink --refuse x",
        "sink --refuse x=200",
        "sink more",
    ],
)
def test_wrong_usage_has_status_2(line):
    done = run(*line.split())
    assert done.returncode == USAGE
    assert done.stderr and not done.stdout


# --- check, config


def test_check_says_that_a_configuration_is_ok(lab):
    done = lab.relay(start=False).command("check")
    assert (done.returncode, done.stdout) == (DONE, "configuration ok\n")


def test_check_waits_for_no_relay_that_stands_still(lab):
    """What it would add of the conditions is no part of the question."""
    relay = lab.relay()
    relay.signal(signal.SIGSTOP)
    done = relay.command("check")
    relay.signal(signal.SIGCONT)
    assert (done.returncode, done.stdout) == (DONE, "configuration ok\n")
    assert done.stderr.endswith("/control: it does not answer\n")


@pytest.mark.parametrize(
    "text",
    [
        "nonsense = 1\n",
        'hostname = "a"\nlog_format = "runes"\n',
        "queue { minimal_backoff_time = soon }\n",
        'route "*" { transport = "missing" }\n',
        'listener "a" { tls = "required" }\n',
        'dns { dnssec = "true" }\n',
        'dns { trust_anchor = "/nowhere/root.key" }\n',
        'dns { insecure_domains = { "a b" } }\n',
        'listener "a" { address = { "127.0.0.1:2525" }\n',
    ],
)
def test_check_names_file_and_line_of_a_fault(tmp_path, text):
    path = tmp_path / "sluice.conf"
    path.write_text(text, encoding="utf-8")
    done = run("check", "-c", str(path))
    assert done.returncode == REFUSED
    assert re.match(rf"{re.escape(str(path))}:\d+: \S", done.stderr)


@pytest.mark.parametrize("text, faults", [
    ("", ["1: is empty"]),
    ('"what\\nis" = 1\n', ["1: no such option 'what?is'"]),
    ('hostname = "a.test"\nhostname = "b.test"\n', ["2: hostname is already there, in line 1"]),
    ('networks = { "10.0.0.0/8" }\nnetworks = { "127.0.0.0/8" }\n', ["2: networks is already there, in line 1"]),
    ('networks = { "10.0.0.0/8" }\nnetworks += { "127.0.0.0/8" }\nlistener "a" { address = { "127.0.0.1:2525" } }\n'
     'listener "b" { address = { "[::1]:2525", "127.0.0.1:2525" } }\n', ['4: listener "a" has 127.0.0.1:2525 already, in line 3']),
    ('hostnam = "x"\nqueue { minimal_backof_time = "1s" }\ntransport "x" { port = "soon" }\nfrobnicate = 1\n',
     ["1: no such option 'hostnam'; did you mean hostname?", "2: no such option 'minimal_backof_time'; did you mean minimal_backoff_time?",
      "4: no such option 'frobnicate'"]),
])
def test_check_tells_all_faults_and_what_was_meant(tmp_path, text, faults):
    path = tmp_path / "sluice.conf"
    path.write_text(text, encoding="utf-8")
    done = run("check", "-c", str(path))
    assert done.returncode == REFUSED
    said = done.stderr.splitlines()
    assert [line for line in said if "no such option" in line or "already" in line or "empty" in line] == [f"{path}:{fault}" for fault in faults]


def test_check_looks_at_many_logins_and_routes_within_the_time_of_a_start(tmp_path):
    """Each login was compared with all next hops, for minutes; a start by systemd, which checks first, was given up after 90 s."""
    routes, logins, secret = tmp_path / "routes", tmp_path / "logins", tmp_path / "secret"
    secret.write_text("secret\n", encoding="utf-8")
    secret.chmod(0o600)
    routes.write_text("".join(f"d{i}.test relay=[mx{i}.test]:25\n" for i in range(40000)) + "x.test relay=[relay.provider.example]:25\n", encoding="utf-8")
    hops = [f"[mx{i * 9}.test]:25" for i in range(4000)] + ["[relay.provider.exmaple]:25", "[mx12.test]:587", "[elsewhere.example]:25"]
    logins.write_text("".join(f"{hop} ann password:{secret}\n" for hop in hops), encoding="utf-8")
    path = tmp_path / "sluice.conf"
    path.write_text(f'spool = "{tmp_path}/spool"\nroutes = {{"{routes}"}}\ncredentials = {{"{logins}"}}\n', encoding="utf-8")
    done = run("check", "-c", str(path), timeout=60)
    assert done.returncode == DONE
    said = [line.partition("credentials of ")[2] for line in done.stderr.splitlines() if "no mail has this next hop" in line]
    unused = "no mail has this next hop, and none goes with this login"
    assert sorted(said) == [f"[elsewhere.example]:25: {unused}", f"[mx12.test]:587: {unused}; did you mean [mx12.test]:25?",
                            f"[relay.provider.exmaple]:25: {unused}; did you mean [relay.provider.example]:25?"]


def test_a_missing_configuration_is_a_fault(tmp_path):
    for word in ("check", "serve", "stats", "config"):
        done = run(word, "-c", str(tmp_path / "missing"))
        assert done.returncode == REFUSED and "missing" in done.stderr


def test_the_environment_names_the_configuration(lab):
    relay = lab.relay(start=False)
    done = run("config", "hostname", env=os.environ | {"SLUICE_CONF": relay.config_path})
    assert done.stdout == 'hostname = "relay.test"\n'


def test_config_prints_settings_in_force_and_defaults(lab):
    relay = lab.relay(Config(queue={"minimal_backoff_time": "7m"}), start=False)
    name = "queue.minimal_backoff_time"
    assert relay.command("config", name).stdout == f"{name} = 7m\n"
    assert relay.command("config", "-d", name).stdout == f"{name} = 5m\n"
    assert f"{name} = 7m\n" in relay.command("config").stdout
    unknown = relay.command("config", "no.such.setting")
    assert unknown.returncode == REFUSED and "no.such.setting" in unknown.stderr


def test_a_setting_is_found_in_all_sections_where_there_is_one_of_all_too(tmp_path):
    path = tmp_path / "sluice.conf"
    path.write_text('listener "in" {\n    address = { "127.0.0.1:2525" }\n    networks = { "192.0.2.0/24" }\n    suppress = 3d\n}\n', encoding="utf-8")

    def lines(*names):
        return run("config", "-c", str(path), *names).stdout.splitlines()

    assert lines("networks") == ['networks = {"127.0.0.0/8", "::1"}', 'listener.in.networks = {"192.0.2.0/24"}']
    assert lines("suppress")[:2] == ["suppress = 0s", "listener.in.suppress = 3d"]
    assert all(line.startswith("tls.") for line in lines("tls"))
    assert lines("listener.in.networks") == lines("networks")[1:]


def test_defaults_are_also_those_of_sections_of_which_there_is_none(lab):
    """It was said that no setting is named so, although the manual has its default."""
    relay = lab.relay(start=False)

    def defaults(*names):
        return relay.command("config", "-d", *names).stdout.splitlines()

    assert defaults("milter.timeout", "source.rate") == ["milter.timeout = 30s", 'source.rate = ""']
    assert {"auth.timeout = 10s", "milter.timeout = 30s"} < set(defaults("timeout"))
    assert defaults("limit") == ['limit.messages = ""', 'limit.recipients = ""', 'limit.action = "defer"']
    assert all(line.startswith("transport.smtp.") for line in defaults("transport"))
    assert len(defaults()) == run("config", "--manual").stdout.count("\n.It Ic ")
    for words in (["-d", "milter.nothing"], ["milter.timeout"]):
        assert relay.command("config", *words).returncode == REFUSED


def test_the_sample_is_a_configuration(tmp_path):
    path = tmp_path / "sample.conf"
    path.write_text(run("config", "--sample").stdout, encoding="utf-8")
    assert run("check", "-c", str(path)).stdout == "configuration ok\n"
    assert ".It" in run("config", "--manual").stdout


# --- serve, stop, reload


def test_clients_say_when_the_relay_is_out_of_reach(lab):
    relay = lab.relay(start=False)
    for words in (["stats"], ["queue", "list"], ["reload"], ["stop"]):
        done = relay.command(*words)
        assert done.returncode == UNREACHABLE and "reached" in done.stderr


def test_a_second_relay_on_the_same_spool_is_refused(lab):
    relay = lab.relay()
    other = lab.relay(Config(settings={"spool": relay.spool}), start=False)
    done = other.command("serve")
    assert done.returncode == REFUSED and relay.spool in done.stderr
    assert relay.command("stats").returncode == DONE


def test_an_address_in_use_is_named(lab):
    relay = lab.relay()
    other = lab.relay(Config(listeners={"a": {"address": [f"127.0.0.1:{relay.port}"]}}), start=False)
    done = other.command("serve")
    assert done.returncode == REFUSED and str(relay.port) in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root has a user to drop to")
def test_a_user_that_is_not_there_is_named(lab):
    relay = lab.relay(Config(settings={"user": "no-such-user"}), start=False)
    done = relay.command("serve")
    assert done.returncode == REFUSED and 'user = "no-such-user"' in done.stderr


def _has_default_user():
    try:
        pwd.getpwnam("sluice")
    except KeyError:
        return False
    return True


@pytest.mark.skipif(os.getuid() != 0 or _has_default_user(), reason="only root without that user")
def test_root_stays_root_with_a_warning_where_the_default_user_is_missing(lab):
    relay = lab.relay(Config(settings={"user": "sluice"}))
    relay.send()
    assert "running_as_root" in relay.log_text() + relay.stderr_text()


@pytest.mark.skipif(os.getuid() != 0, reason="only root has a user to drop to")
def test_root_becomes_the_user(lab, tmp_path):
    os.chmod(tmp_path, 0o755)
    for parent in list(tmp_path.parents)[:-2]:
        os.chmod(parent, 0o755)
    sink = lab.sink()
    settings = {"user": "nobody", "spool": str(tmp_path / "spool")}
    relay = lab.relay(Config(settings=settings).route_all_to(sink.port), start=False)
    os.chmod(relay.folder, 0o755)
    os.chmod(os.path.dirname(relay.folder), 0o755)
    relay.start()
    with open(f"/proc/{relay.process.pid}/status", encoding="utf-8") as status:
        uids = next(line for line in status if line.startswith("Uid:")).split()[1:]
    assert "0" not in uids
    relay.send()
    sink.wait_messages(1)
    assert relay.command("stats").returncode == DONE
    assert relay.command("stop").returncode == DONE
    assert relay.wait_ended() == DONE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_relay_though_a_client_idles(lab, number):
    """The client would be let go after five minutes."""
    relay = lab.relay()
    with relay.client() as idle:
        idle.greet()
        relay.signal(number)
        assert relay.wait_ended() == DONE
    assert relay.events("stopped")


def test_stop_returns_when_the_relay_has_stopped(lab):
    _, relay = deferring(lab)
    put_off(relay)
    done = relay.command("stop")
    assert (done.returncode, done.stdout, done.stderr) == (DONE, "", "")
    assert relay.events("stopped")
    assert not os.path.exists(os.path.join(relay.spool, "control"))
    assert relay.wait_ended() == DONE
    relay.start()
    wait_until(lambda: len(listed(relay)) == 1, what="the message after the restart")


def test_reload_changes_a_limit(lab):
    relay = lab.relay(Config(settings={"message_size_limit": "1m"}))
    relay.config.settings["message_size_limit"] = "2m"
    relay.write_config()
    assert relay.command("reload").returncode == DONE
    with relay.client() as client:
        assert f"SIZE {2 << 20}" in client.greet().text


def test_sighup_reloads_and_opens_the_log_anew(lab):
    relay = lab.relay(Config(settings={"message_size_limit": "1m"}))
    relay.config.settings["message_size_limit"] = "2m"
    relay.write_config()
    os.rename(relay.log_path, relay.log_path + ".1")
    relay.signal(signal.SIGHUP)
    wait_until(lambda: "result=done" in relay.log_text(), what="the reload in the new log")
    with relay.client() as client:
        assert f"SIZE {2 << 20}" in client.greet().text


def test_reload_keeps_what_there_is_when_there_is_a_fault(lab):
    relay = lab.relay(Config(settings={"message_size_limit": "1m"}))
    relay.config.settings["message_size_limit"] = "2m"
    relay.config.settings["log_format"] = "runes"
    relay.write_config()
    done = relay.command("reload")
    assert done.returncode == REFUSED and re.search(r"sluice.conf:\d+: ", done.stderr)
    relay.signal(signal.SIGHUP)
    wait_until(lambda: "log_format" in relay.log_text(), what="the fault in the log")
    with relay.client() as client:
        assert f"SIZE {1 << 20}" in client.greet().text


def test_a_spool_that_the_file_names_now_holds_from_the_next_start(lab):
    """No command finds the relay by such a file, and says so; a signal does, and all stays where the queue is."""
    relay = lab.relay()
    former, later = relay.spool, relay.spool + "2"
    relay.config.settings["spool"] = later
    relay.write_config()
    for command in ("reload", "restart", "stop"):
        done = relay.command(command)
        assert done.returncode == UNREACHABLE
        assert f"{later}/control" in done.stderr and f"started when {relay.config_path} had another spool" in done.stderr
    relay.signal(signal.SIGHUP)
    relay.wait_event("reload", result="done")
    assert f'{former}\\" becomes' in relay.log_text()
    relay.config.settings["spool"] = former
    relay.write_config()
    done = relay.command("shape", "maildrop")
    assert done.returncode == DONE and not done.stderr
    assert relay.stop() == 0 and not os.path.exists(later)


def test_reload_names_what_waits_for_a_restart(lab):
    relay = lab.relay()
    runs = relay.config.settings["workers"]
    relay.config.settings["workers"] = 3
    relay.write_config()
    done = relay.command("reload")
    assert done.returncode == DONE and "workers" in done.stderr
    wait_until(lambda: "workers" in relay.log_text(), what="the warning in the log")
    # As long as it waits, it is named; taken back, nothing waits.
    assert "becomes 3" in relay.command("reload").stderr
    relay.config.settings["workers"] = runs
    relay.write_config()
    done = relay.command("reload")
    assert done.returncode == DONE and not done.stderr


def test_stats_count(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    relay.send()
    relay.wait_event("sent")
    lines = relay.command("stats").stdout.splitlines()
    assert "messages_received_total 1" in lines and "accepting yes" in lines
    counted = json.loads(relay.command("stats", "--json").stdout)
    assert counted["messages_received_total"] == 1 and counted["accepting"] is True
    assert counted['deliveries_total{result="sent",transport="smtp"}'] == 1


def test_output_that_finds_no_room_is_said(lab):
    """As that of queue show to a file, of a message that is deleted then."""
    _, relay = deferring(lab)
    (one,) = put_off(relay, content=b"Subject: long\r\n\r\n" + b"a line of it\r\n" * 20000)
    path = os.path.join(relay.folder, "main.cf")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("myhostname = a.example.org\n" + "".join(f"setting_{n} = none\n" for n in range(1000)))
    config = ["-c", relay.config_path]
    with open("/dev/full", "wb") as full:
        for words in (["queue", "show", one, *config], ["config", *config], ["import-postfix", path], ["check", *config],
                      ["--version"], ["help"], ["serve", "--help"], ["queue", "--help"], ["help", "trace"]):
            done = subprocess.run([binary(), *words], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
            assert done.returncode == REFUSED and b"sluice: standard output takes not all" in done.stderr, words
        done = subprocess.run([binary(), "queue", "delete", one, *config], stdout=full, timeout=60, check=False)
        assert done.returncode == REFUSED and not listed(relay)


def test_what_is_told_goes_to_no_socket_where_an_output_is_closed(lab):
    """The connection to the relay would be the standard error, or output, itself."""
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))

    def closed(number, *words):
        line = f'exec "$@" {number}&-'
        return subprocess.run(["sh", "-c", line, "sh", binary(), *words, "-c", relay.config_path], input=b"Subject: x\n\n",
                              timeout=60, check=False, capture_output=True)

    assert closed("2>", "sendmail", "-v", "b@dest.test").returncode == DONE
    sink.wait_messages(1)
    assert closed("1>", "stats").returncode == REFUSED
    assert closed("0<", "sendmail", "b@dest.test").returncode == EX_IOERR
    assert not relay.events("reject")


@pytest.mark.parametrize("setting", ["certificate", "key", "client_ca", "ca", "client_key", "dkim", "trust_anchor", "aliases", "flows", "users"])
def test_no_named_pipe_is_waited_for(lab, setting):
    """check, and a reload of the relay, waited until somebody wrote to it."""
    certificate, key = lab.certificates.host("relay.test")
    relay = lab.relay(Config().route_all_to(9))
    pipe = os.path.join(relay.folder, "pipe")
    os.mkfifo(pipe)
    config, listener = relay.config, relay.config.listeners["smtp"]
    tls = {"tls": "optional", "certificate": certificate, "key": key}
    if setting in ("certificate", "key", "client_ca"):
        listener |= tls | {setting: pipe}
    elif setting == "client_key":
        config.transports["smtp"] = {"client_certificate": certificate, "client_key": pipe}
    elif setting == "users":
        config.auth, listener["auth"] = {"file": pipe}, True
    elif setting in ("aliases", "flows"):
        config.settings[setting] = [pipe]
    else:
        config.extra = {"ca": f'tls {{ ca = "{pipe}" }}', "dkim": f'dkim "a.test" {{ selector = "s" key = "{pipe}" }}',
                        "trust_anchor": f'dns {{ trust_anchor = "{pipe}" }}'}[setting]
    if setting == "trust_anchor":
        config.dns = {}
    relay.write_config()
    for command in ("check", "reload"):
        done = relay.command(command)
        assert done.returncode == REFUSED and pipe in done.stderr, (command, done.stderr)
    assert relay.send().code == 250


def test_a_configuration_may_come_from_a_shells_pipe(lab):
    relay = lab.relay(start=False)
    with open(relay.config_path, encoding="utf-8") as stream:
        done = subprocess.run([binary(), "check", "-c", "/dev/stdin"], input=stream.read(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == DONE, done.stderr


# --- queue


def test_an_empty_queue_is_listed(lab):
    relay = lab.relay()
    assert relay.command("queue", "list").stdout == "-- 0 messages, 0 KB\n"
    assert relay.command("queue", "list", "--json").stdout == ""


def test_list_says_why_a_message_waits(lab):
    _, relay = deferring(lab)
    (one,) = put_off(relay, recipients=["a@dest.test", "b@dest.test"])
    lines = relay.command("queue", "list").stdout.splitlines()
    assert len(lines) == 2 and lines[1].startswith("-- 1 message, ")
    assert lines[0].startswith(f"{one} deferred ")
    for part in ("from=<from@sender.test>", "<a@dest.test>", " 2/2 ", "450 4.2.1 come again"):
        assert part in lines[0]
    (message,) = listed(relay)
    assert (message["queue"], message["from"]) == ("deferred", "from@sender.test")
    assert message["size"] > 0 and message["arrived"] <= time.time() < message["due"]
    first = message["rcpts"][0]
    assert (first["to"], first["status"], first["code"]) == ("a@dest.test", "deferred", 450)
    assert (first["dsn"], first["tries"]) == ("4.2.1", 1) and "come again" in first["reason"]


def test_mailq_and_sendmail_are_names_of_the_program(lab, tmp_path):
    relay = lab.relay()
    for name, words in (("mailq", []), ("sendmail", ["-bp"])):
        os.symlink(binary(), tmp_path / name)
        done = subprocess.run(
            [str(tmp_path / name), *words, "-c", relay.config_path],
            capture_output=True, text=True, timeout=60, check=False,
        )
        assert (done.returncode, done.stdout) == (DONE, "-- 0 messages, 0 KB\n"), done.stderr


def test_filters_choose(lab):
    _, relay = deferring(lab)
    put_off(relay, sender="a@one.test", recipients=["x@dest.test"])
    put_off(relay, sender="", recipients=["y@other.test"])

    def senders(*words):
        return sorted(message["from"] for message in listed(relay, *words))

    assert senders("--from", "a@one.test") == ["a@one.test"]
    assert senders("--from", "<a@ONE.test>") == senders("--to", "<x@*>") == ["a@one.test"]
    counted = relay.command("shape", "deferred", "--from", "<a@one.test>").stdout.split("\n")[1]
    assert counted.split()[:2] == ["TOTAL", "1"], counted
    assert senders("--from", "") == senders("--from", "<>") == [""]
    assert senders("--domain", "other.test") == [""]
    assert senders("--to", "x@dest.test") == ["a@one.test"]
    assert senders("--to", "nobody@dest.test") == []
    assert senders("--reason", "COME again") == ["", "a@one.test"]
    assert senders("--queue", "active") == senders("--older", "1h") == []
    assert senders("--queue", "deferred", "--older", "0") == ["", "a@one.test"]


def test_an_empty_reason_chooses_nothing(lab):
    """A variable of the shell that is not set would delete all mail that was put off."""
    _, relay = deferring(lab)
    put_off(relay)
    for verb in ("list", "hold", "bounce", "delete"):
        done = relay.command("queue", verb, "--reason", "")
        assert (done.returncode, done.stdout) == (2, "") and "--reason is empty" in done.stderr
    assert len(listed(relay)) == 1


def test_ids_choose(lab):
    _, relay = deferring(lab)
    ids = put_off(relay, count=3)
    assert [message["id"] for message in listed(relay, ids[2], ids[0])] == [ids[2], ids[0]]
    done = relay.command("queue", "list", ids[0], "0000000000001")
    assert done.returncode == REFUSED and "0000000000001" in done.stderr and ids[0] in done.stdout


def test_a_long_queue_is_listed_in_order(lab):
    _, relay = deferring(lab)
    with relay.client() as client:
        client.greet()
        for _ in range(1203):
            client.send_mail("from@sender.test", ["to@dest.test"])
    ids = [message["id"] for message in listed(relay)]
    assert len(ids) == len(set(ids)) == 1203 and ids == sorted(ids)
    assert relay.command("queue", "list").stdout.splitlines()[-1].startswith("-- 1203 messages, ")


def test_show_prints_envelope_headers_and_body(lab):
    _, relay = deferring(lab)
    (one,) = put_off(relay, content=b"Subject: seen\r\n\r\nbody one\r\n\r\nbody two\r\n")
    whole = relay.command("queue", "show", one).stdout
    envelope = relay.command("queue", "show", one, "--envelope").stdout
    headers = relay.command("queue", "show", one, "--headers").stdout
    body = relay.command("queue", "show", one, "--body").stdout
    assert body == "body one\n\nbody two\n"
    assert headers.startswith("Received: ") and headers.endswith("Subject: seen\n")
    assert one in envelope and "to@dest.test" in envelope and "come again" in envelope
    assert whole.endswith(f"\n\n{headers}\n{body}") and "to@dest.test" in whole
    shown = json.loads(relay.command("queue", "show", one, "--json").stdout)
    assert shown["id"] == one


def test_show_sends_a_large_message_whole(lab):
    _, relay = deferring(lab)
    content = b"Subject: large\r\n\r\n" + b"0123456789abcdef" * 4 + b"\r\n"
    content += b"x" * 70 + b"\r\n"
    body = (b"y" * 98 + b"\r\n") * 30000
    (one,) = put_off(relay, content=content + body)
    shown = relay.command("queue", "show", one, "--body").stdout
    assert shown.endswith("y" * 98 + "\n") and len(shown) == 65 + 71 + 99 * 30000


@pytest.mark.parametrize("word", ["show", "flush", "delete"])
@pytest.mark.parametrize("name", ["0000000000001", "nonsense"])
def test_a_message_that_is_not_there_is_refused(lab, word, name):
    done = lab.relay().command("queue", word, name)
    assert done.returncode == REFUSED and name in done.stderr


def test_flush_tries_again_at_once(lab):
    sink, relay = deferring(lab, Rule("end", "450 4.2.1 come again", times=3))
    ids = put_off(relay, count=3)
    done = relay.command("queue", "flush", ids[0])
    assert (done.returncode, done.stdout) == (DONE, "1 message flushed\n")
    assert len(sink.wait_messages(1)) == 1
    wait_until(lambda: [message["id"] for message in listed(relay)] == ids[1:], what="the others")
    done = relay.command("queue", "flush", "--domain", "dest.test")
    assert (done.returncode, done.stdout) == (DONE, "2 messages flushed\n")
    sink.wait_messages(3)
    wait_until(lambda: not listed(relay), what="the end of the queue")
    assert relay.command("queue", "flush", "--all").stdout == "0 messages flushed\n"


def test_flush_all_tries_all_again(lab):
    sink, relay = deferring(lab, Rule("end", "450 4.2.1 come again", times=3))
    put_off(relay, count=3)
    assert relay.command("queue", "flush", "--all").stdout == "3 messages flushed\n"
    sink.wait_messages(3)


def test_delete_removes(lab):
    sink, relay = deferring(lab)
    ids = put_off(relay, count=4)
    assert relay.command("queue", "delete", ids[1]).stdout == "1 message deleted\n"
    assert [message["id"] for message in listed(relay)] == [ids[0], ids[2], ids[3]]
    done = relay.command("queue", "delete", ids[1], ids[2])
    assert done.returncode == REFUSED and ids[1] in done.stderr
    assert done.stdout == "1 message deleted\n1 not found\n"
    done = relay.command("queue", "delete", "--from", "from@sender.test", "--older", "0")
    assert done.stdout == "2 messages deleted\n"
    relay.restart()
    assert not listed(relay) and not sink.messages


def test_delete_all_removes_all(lab):
    _, relay = deferring(lab)
    put_off(relay, count=3)
    assert relay.command("queue", "delete", "--all").stdout == "3 messages deleted\n"
    assert not listed(relay)


# --- sendmail


def submit(relay, *words, text="Subject: a test\n\nHello.\n"):
    """Run sendmail."""
    return relay.command("sendmail", *words, stdin=text)


def delivered(lab, *words, text="Subject: a test\n\nHello.\n"):
    """Submit by sendmail and return what the sink got."""
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    done = submit(relay, *words, text=text)
    assert (done.returncode, done.stdout, done.stderr) == (DONE, "", "")
    return sink.wait_messages(1)[0]


def test_sendmail_submits_with_what_is_missing(lab):
    got = delivered(lab, "-f", "me@sender.test", "-F", "My Name", "you@dest.test")
    header, body = got.content.split(b"\r\n\r\n", 1)
    assert (got.sender, got.recipients) == ("me@sender.test", ["you@dest.test"])
    assert body == b"Hello.\r\n"
    assert b'\r\nFrom: "My Name" <me@sender.test>\r\n' in header
    assert len(re.findall(rb"(?m)^(?:Date|Message-ID|From): ", header)) == 3


def test_sendmail_t_takes_recipients_from_the_header_and_drops_bcc(lab):
    text = (
        'To: "Last, First" <a@dest.test>,\n b@dest.test (a (nested) comment)\n'
        "Cc: friends: c@dest.test, <d@dest.test>;\n"
        "Bcc: secret@dest.test,\n hidden@dest.test\nFrom: me@sender.test\n\nHello.\n"
    )
    got = delivered(lab, "-t", "-f", "me@sender.test", "e@dest.test", text=text)
    names = ["e", "a", "b", "c", "d", "secret", "hidden"]
    assert got.recipients == [f"{name}@dest.test" for name in names]
    assert b"Cc: friends: c@dest.test" in got.content
    assert b"secret" not in got.content.split(b"To: ")[1] and b"hidden" not in got.content


@pytest.mark.parametrize("words, body", [([], b"a\r\n"), (["-i"], b"a\r\n.\r\nb\r\n"),
                                         (["-oi"], b"a\r\n.\r\nb\r\n")])
def test_sendmail_and_a_dot_on_its_own_line(lab, words, body):
    got = delivered(lab, *words, "you@dest.test", text="Subject: x\n\na\n.\nb\n")
    assert got.content.endswith(b"\r\n\r\n" + body)


def test_sendmail_passes_dsn_parameters(lab):
    got = delivered(
        lab, "-f", "<>", "-N", "success,delay", "-R", "hdrs", "-V", "id+1", "-oem", "you@dest.test"
    )
    assert got.sender == ""
    assert got.recipient_params["you@dest.test"]["NOTIFY"] == "SUCCESS,DELAY"
    assert (got.sender_params["RET"], got.sender_params["ENVID"]) == ("HDRS", "id+2B1")


def test_sendmail_without_chunking_stuffs_dots(lab):
    sink = lab.sink()
    config = Config(listeners={"smtp": {"chunking": False}}).route_all_to(sink.port)
    text = "Subject: x\n\n.a\n..\nb\n.\n"
    assert submit(lab.relay(config), "-i", "you@dest.test", text=text).returncode == DONE
    assert sink.wait_messages(1)[0].content.endswith(b"\r\n\r\n.a\r\n..\r\nb\r\n.\r\n")


def test_sendmail_completes_local_names(lab):
    got = delivered(lab, "-f", "root", "postmaster")
    assert (got.sender, got.recipients) == ("root@relay.test", ["postmaster@relay.test"])


@pytest.mark.parametrize(
    "words, text, status",
    [
        ([], "x\n", EX_USAGE),
        (["-t"], "Subject: none\n\nx\n", EX_USAGE),
        (["-bx"], "", EX_USAGE),
        (["-ox"], "", EX_USAGE),
        (["-N", "sometimes", "a@dest.test"], "", EX_USAGE),
        (["-Z"], "", EX_USAGE),
        (["-t"], "To: <open@dest.test\n\nx\n", EX_DATAERR),
        (["-t"], "To: a@b@dest.test\n\nx\n", EX_DATAERR),
        (["-f", "a b@sender.test", "you@dest.test"], "x\n", EX_DATAERR),
    ],
)
def test_sendmail_refuses_what_can_not_be_sent(lab, words, text, status):
    done = submit(lab.relay(start=False), *words, text=text)
    assert done.returncode == status and done.stderr


def test_sendmail_says_what_the_relay_refuses(lab):
    settings = {"networks": Raw('{ "192.0.2.0/24" }'), "message_size_limit": "100k"}
    done = submit(lab.relay(Config(settings=settings)), "you@dest.test")
    assert done.returncode == EX_NOUSER and "you@dest.test: 5" in done.stderr
    text = "Subject: large\n\n" + "x" * 70 * 2000
    assert submit(lab.relay(Config(settings=settings)), "a@b.test", text=text).returncode == EX_DATAERR


def test_sendmail_has_a_status_for_a_relay_out_of_reach(lab):
    relay = lab.relay(start=False)
    assert submit(relay, "you@dest.test").returncode == UNREACHABLE
    with open(relay.config_path, "a", encoding="utf-8") as stream:
        stream.write("nonsense = 1\n")
    assert submit(relay, "you@dest.test").returncode == EX_CONFIG


def test_sendmail_is_no_victim_of_a_fault_in_the_configuration(lab):
    """Programs that send mail seldom look at the status: the relay that runs takes it from its maildrop."""
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    with open(relay.config_path, "a", encoding="utf-8") as stream:
        stream.write("nonsense = 1\n")
    done = submit(relay, "you@dest.test")
    assert done.returncode == DONE and "nonsense" in done.stderr
    assert sink.wait_messages(1)[0].recipients == ["you@dest.test"]


# --- sink


def start_sink(folder, *words):
    """Start sluice sink on a free port and return the process and the port."""
    port = free_port()
    command = [binary(), "sink", "-l", f"127.0.0.1:{port}", *words]
    sink = Process(command, str(folder / "sink.out"))
    wait_until(lambda: f"listening on 127.0.0.1:{port}" in sink.output_text(), what="the sink")
    return sink, port


@pytest.mark.parametrize("chunking", [True, False])
def test_the_sink_stores_byte_for_byte(lab, tmp_path, chunking):
    sink, port = start_sink(tmp_path, "-d", str(tmp_path / "mail"),
                            *([] if chunking else ["--no-chunking"]))
    relay = lab.relay(Config().route_all_to(port))
    relay.send(recipients=["a@dest.test", "b@dest.test"], content=b"S: x\r\n\r\n.a\r\n..\r\n")
    relay.wait_event("sent")
    assert (tmp_path / "mail" / "1.eml").read_bytes().endswith(b"S: x\r\n\r\n.a\r\n..\r\n")
    lines = (tmp_path / "mail" / "1.env").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == [
        "from from@sender.test", "to a@dest.test", "to b@dest.test"
    ]
    assert sink.stop() == DONE
    output = sink.output_text()
    assert "message 1 from=<from@sender.test> to=<a@dest.test>,<b@dest.test> size=" in output
    assert "-- 1 messages, 2 recipients, " in output


def test_the_sink_refuses_as_told(lab, tmp_path):
    sink, port = start_sink(tmp_path, "--refuse", "busy@*=451", "--refuse", "end:never*=554",
                            "--refuse", "mail:bad@*=550")
    relay = lab.relay(Config(queue={"minimal_backoff_time": "1h"}).route_all_to(port))
    relay.send(sender="", recipients=["busy@dest.test", "fine@dest.test"])
    relay.wait_event("deferred", to="busy@dest.test", dsn="4.0.0")
    relay.wait_event("sent", to="fine@dest.test")
    relay.send(sender="", recipients=["never@dest.test"])
    relay.wait_event("bounced", to="never@dest.test", dsn="5.0.0")
    relay.send(sender="bad@sender.test", recipients=["fine@dest.test"])
    relay.wait_event("bounced", to="fine@dest.test", dsn="5.0.0")
    assert sink.stop() == DONE


def test_the_sink_ends_after_its_count(lab, tmp_path):
    sink, port = start_sink(tmp_path, "--count", "2", "-v", "--delay", "20")
    relay = lab.relay(Config().route_all_to(port))
    relay.send()
    relay.send()
    assert sink.wait() == DONE
    relay.wait_event("sent", count=2)
    assert "command MAIL FROM:<from@sender.test>" in sink.output_text()


def test_the_sink_turns_away_above_its_limit(tmp_path):
    sink, port = start_sink(tmp_path, "--limit", "1")
    with Client("127.0.0.1", port) as first, Client("127.0.0.1", port) as second:
        first.greet()
        second.expect(421)
        assert second.wait_closed() == b""
        first.command("NOOP")
        first.command("QUIT", 221)
    assert sink.stop() == DONE


def test_the_sink_says_that_its_port_is_taken(lab):
    taken = lab.sink()
    done = run("sink", "-l", f"127.0.0.1:{taken.port}")
    assert done.returncode == REFUSED and str(taken.port) in done.stderr


def test_the_sink_delays_replies_without_holding_up_reading(tmp_path):
    """Twenty replies, each delayed by itself, would take forty seconds."""
    sink, port = start_sink(tmp_path, "--delay", "2000")
    with Client("127.0.0.1", port) as client:
        client.greet()
        began = time.monotonic()
        client.send(b"NOOP\r\n" * 20)
        for _ in range(20):
            client.expect(250)
        assert 1.9 < time.monotonic() - began < 20
    assert sink.stop() == DONE


@pytest.mark.plain_only  # a sanitizer reads /proc
def test_a_jail_without_proc_is_enough(lab, monkeypatch):
    """The relay starts in one, commands reach it from there, and a restart finds its program."""
    jail = "unshare --mount sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh"
    if subprocess.run([*shlex.split(jail), "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    monkeypatch.setenv("SLUICE_WRAPPER", jail)
    relay = lab.relay(Config().route_all_to(lab.sink().port))
    for words in (["stats"], ["restart"], ["reload"]):
        done = subprocess.run([*shlex.split(jail), binary(), *words, "-c", relay.config_path], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == DONE, done.stderr
    relay.send()
    relay.wait_event("done")
