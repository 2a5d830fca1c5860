# SPDX-License-Identifier: ISC
"""What make install leaves, and what sluice check and top say."""

import os
import re
import shutil
import socket
import subprocess

import pytest

from lab.config import Config
from lab.net import wait_until
from lab.relay import REPOSITORY, binary

EXPOSURE_MOST = 2.0  # of systemd-analyze security, 0 to 10

pytestmark = pytest.mark.plain_only


def install(folder, *words):
    """Run make install into a folder, and return what it said. The program is not linked anew: others run it meanwhile."""
    done = subprocess.run(["make", "-s", "-o", "sluice", "install", f"DESTDIR={folder}", "PREFIX=/usr", *words],
                          cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installation_is_complete_and_runs(lab):
    top = lab.folder("installed")
    install(top)
    for name in ("usr/sbin/sluice", "usr/share/man/man8/sluice.8", "usr/share/man/man5/sluice.conf.5",
                 "usr/share/bash-completion/completions/sluice", "usr/share/zsh/site-functions/_sluice",
                 "usr/share/man/man7/sluice-postfix.7", "usr/share/man/man7/sluice-congestion.7", "usr/lib/sysusers.d/sluice.conf",
                 "usr/lib/tmpfiles.d/sluice.conf",
                 "lib/systemd/system/sluice.socket", "etc/logrotate.d/sluice", "etc/sluice/sluice.conf", "etc/sluice/providers.conf",
                 "usr/share/sluice/grafana/sluice.json", "usr/share/sluice/prometheus/sluice.rules.yml"):
        assert (top / name).is_file(), name
    unit = (top / "lib/systemd/system/sluice.service").read_text()
    assert "ExecStart=/usr/sbin/sluice serve" in unit and "/usr/local" not in unit
    assert os.readlink(top / "usr/sbin/sendmail") == os.readlink(top / "usr/bin/mailq") == "/usr/sbin/sluice"
    assert os.readlink(top / "usr/bin/newaliases") == "/usr/sbin/sluice"
    config = str(top / "etc/sluice/sluice.conf")
    done = subprocess.run([top / "usr/sbin/sluice", "check", "-c", config], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and done.stdout == "configuration ok\n"


def test_an_installation_keeps_what_is_another_s(lab):
    top = lab.folder("installed")
    for name in ("usr/sbin/sendmail", "etc/sluice/sluice.conf", "etc/logrotate.d/sluice"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("another's")
    said = install(top)
    assert "/usr/sbin/sendmail is another program's, and stays" in said
    for name in ("usr/sbin/sendmail", "etc/sluice/sluice.conf", "etc/logrotate.d/sluice"):
        assert (top / name).read_text() == "another's", name
    install(top, "LINKS=force")
    assert os.readlink(top / "usr/sbin/sendmail") == "/usr/sbin/sluice"
    assert (top / "usr/sbin/sendmail.before-sluice").read_text() == "another's"
    assert install(top, "LINKS=force") == ""


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_the_unit_is_valid_and_well_closed(lab):
    folder = lab.folder("units")
    for name in ("sluice.service", "sluice.socket"):
        text = open(os.path.join(REPOSITORY, "etc", name), encoding="utf-8").read()
        (folder / name).write_text(text.replace("/usr/local/sbin/sluice", binary()))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *map(str, folder.iterdir())],
                          capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in done.stderr.splitlines() if "sluice" in line]
    assert not said, done.stderr
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", folder / "sluice.service"],
                          capture_output=True, text=True, timeout=60, check=False)
    level = re.search(r"Overall exposure level for sluice.service: ([\d.]+)", done.stdout)
    assert level and float(level[1]) <= EXPOSURE_MOST, done.stdout + done.stderr


# --- the package

def restart_of_package(relay):
    """Run what the package does after an upgrade, with this relay's configuration."""
    with open(os.path.join(REPOSITORY, "etc", "debian", "sluice.postinst"), encoding="ascii") as stream:
        function = re.search(r"(?ms)^restart\(\) \{$.*?^\}$", stream.read())[0]
    script = f'set -e\n{function}\nrestart\necho "goes on"\n'
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120, check=False,
                          env=os.environ | {"SLUICE_CONF": relay.config_path, "PATH": f"{os.path.dirname(binary())}:{os.environ['PATH']}"})


def test_the_package_restarts_what_runs_and_is_silent_where_nothing_does(lab):
    relay = lab.relay()
    assert restart_of_package(relay).stdout == "goes on\n"
    relay.wait_event("ready", count=2)
    with open(relay.config_path, "a", encoding="utf-8") as stream:
        stream.write("no_such_setting = 1\n")
    done = restart_of_package(relay)
    assert done.returncode == 0 and "no_such_setting" in done.stderr and "what ran before goes on" in done.stderr
    relay.write_config()
    relay.stop()
    done = restart_of_package(relay)
    assert done.returncode == 0 and done.stdout == "goes on\n" and not done.stderr, done


# --- sluice check


def warnings_of(lab, change):
    """Change a configuration that is good, and return what check says of it."""
    relay = lab.relay(Config().route_all_to(9), start=False)
    change(relay)
    relay.write_config()
    done = relay.command("check")
    strict = relay.command("check", "--strict")
    assert done.returncode == 0 and done.stdout == "configuration ok\n", done.stderr
    assert strict.returncode == (1 if done.stderr else 0) and strict.stderr == done.stderr
    return re.findall(r"(?m)^[^:]*(?::\d+)?: warning: (.*)$", done.stderr)


def make_key(relay, certificates):
    """Give the listener a key that everybody may read."""
    certificate, private = certificates.host("relay.test")
    key = os.path.join(relay.folder, "key.pem")
    shutil.copy(private, key)
    os.chmod(key, 0o644)
    relay.config.listeners["smtp"] |= {"certificate": str(certificate), "key": key}


@pytest.mark.parametrize("change, word", [
    (lambda relay: None, None),
    (lambda relay: relay.config.settings.update(networks=["0.0.0.0/0"]), "networks has 0.0.0.0/0"),
    (lambda relay: relay.config.settings.update(networks=["10.0.0.0/8", "::/0"]), "networks has ::/0"),
    (lambda relay: relay.config.settings.update(networks=["10.0.0.0/8", "fc00::/7", "192.0.2.0/24"]), None),
    (lambda relay: relay.config.listeners["smtp"].update(networks=["128.0.0.0/1"]), "networks has 128.0.0.0/1"),
    (lambda relay: relay.config.settings.update(hostname="relay"), "no dot"),
    (lambda relay: relay.config.settings.update(queue_minfree="0"), "queue_minfree is 0"),
    (lambda relay: relay.config.settings.update(queue_minfree="1000000m"), "less room than queue_minfree"),
    (lambda relay: relay.config.settings.update(log="/nowhere/at/all"), "there is no folder /nowhere/at"),
    (lambda relay: relay.config.settings.update(log="/etc"), "log /etc is a folder"),
    (lambda relay: setattr(relay.config, "extra", 'events { to = "/etc" }\n'), "events /etc is a folder"),
    (lambda relay: setattr(relay.config, "extra", 'events { to = "http://127.0.0.1:1/" token = "/nowhere" }\n'), "events: /nowhere: No such file"),
    (lambda relay: setattr(relay.config, "extra", 'cluster { name = "n" redis = "127.0.0.1:1" redis_password = "/nowhere" }\n'), "cluster: /nowhere: No such file"),
    (lambda relay: setattr(relay.config, "extra", 'events { to = "/nowhere/at/all" }\n'), "events /nowhere/at/all: there is no folder"),
    (lambda relay: relay.config.settings.update(spool="/etc/hostname"), "spool /etc/hostname is no folder"),
    (lambda relay: relay.config.settings.update(spool="/etc/hostname/queue"), "spool /etc/hostname/queue is no folder"),
    (lambda relay: relay.config.settings.update(log="syslog:/nowhere/log"), "no syslogd at /nowhere/log"),
    (lambda relay: relay.config.listeners["smtp"].update(address=["0.0.0.0:2525"]), "no certificate"),
    (lambda relay: relay.config.listeners["smtp"].update(address=["0.0.0.0:2525"], tls="none", proxy_protocol=["true"]),
     "believes whoever reaches it"),
    (lambda relay: relay.config.listeners["smtp"].update(address=["0.0.0.0:2525"], tls="none", proxy_protocol=["10.0.0.1"]),
     None),
    (lambda relay: relay.config.route_all_to(relay.port), "leads to this relay itself"),
    (lambda relay: relay.config.routes.update({"*": {"relay": [f"[127.0.0.1]:{relay.port}=2", "[127.0.0.2]:25=1"]}}), "leads to this relay itself"),
    (lambda relay: relay.config.listeners["smtp"].update(connection_limit=1000000), "descriptors"),
    (lambda relay: relay.config.routes.clear(), "postmaster@relay.test has no alias and no route"),
    (lambda relay: relay.config.routes.update({"relay.test": {"transport": "smtp"}}), "perhaps nobody reads"),
    (lambda relay: (relay.config.routes.clear(), relay.config.settings.update(postmaster="x@y.test")), None),
    (lambda relay: (relay.config.routes.clear(), relay.config.aliases.update(postmaster={"to": ["x@y.test"]})), None),
    (lambda relay: (relay.config.routes.clear(),
                    relay.config.aliases.update({"postmaster@relay.test": {"to": ["x@y.test"]}})), None),
])
def test_check_warns_of_what_is_dangerous(lab, change, word):
    said = warnings_of(lab, change)
    assert len(said) == (1 if word else 0) and all(word in line for line in said), said


def test_check_warns_of_a_route_to_the_machines_own_name(lab):
    def change(relay):
        relay.config.settings["hostname"] = ""
        relay.config.routes["*"] = {"relay": [f"{socket.gethostname()}:{relay.port}"]}

    assert any("leads to this relay itself" in line for line in warnings_of(lab, change))


def test_check_warns_of_a_key_that_everybody_may_read(lab):
    said = warnings_of(lab, lambda relay: make_key(relay, lab.certificates))
    assert len(said) == 1 and "every user of the machine" in said[0]


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="there is no file system in memory")
def test_check_warns_of_a_queue_in_memory(lab):
    said = warnings_of(lab, lambda relay: relay.config.settings.update(spool="/dev/shm/sluice/not/there"))
    assert any("is in memory" in line for line in said)


# --- sluice top


def test_top_shows_counters_with_rates(lab):
    sink = lab.sink()
    relay = lab.relay(Config().route_all_to(sink.port))
    top = subprocess.Popen([binary(), "top", "-d", "1s", "-n", "4", "-c", relay.config_path],
                           stdout=subprocess.PIPE, text=True)
    with relay.client() as client:
        client.greet()
        wait_until(lambda: client.send_mail("a@sender.test", ["b@dest.test"]) and top.poll() is not None,
                   60, "the end of top")
    assert top.returncode == 0
    looks = top.stdout.read().split("\n\n")
    top.stdout.close()
    found = [re.search(r"(?m)^messages_received_total +(\d+)(?: +([\d.]+)/s)?$", look) for look in looks[:4]]
    counts, rates = [int(one[1]) for one in found], [float(one[2] or 0) for one in found]
    assert counts[3] > counts[0] and rates[0] == 0
    assert [rate > 0 for rate in rates[1:]] == [after > before for before, after in zip(counts, counts[1:])]
    assert "queue_messages{queue=\"active\"}" in looks[0] and "/s" not in looks[0]


def test_top_ends_when_the_relay_is_out_of_reach(lab):
    assert lab.relay(start=False).command("top", "-n", "1").returncode == 75
