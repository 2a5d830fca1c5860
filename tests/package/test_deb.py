# SPDX-License-Identifier: ISC
"""The Debian package in a bare Debian: installed, used, upgraded, removed and purged. No systemd runs there."""

import shutil
import subprocess
import threading
import time

import pytest

from bare import TOP, Bare, make, with_network

BUILT = TOP / "build" / "deb"
NEWER = "1:9.9"
NOBODY = 65534
SETTINGS = {'#log = "stderr"': 'log = "/var/log/sluice.log"', 'route "*" {': 'route "*" {\n\trelay = { "[127.0.0.1]:2526" }'}


def newer_package(folder):
    """Return the package again, as a later version."""
    package = next(BUILT.glob("sluice_*.deb"))
    tree = folder / "newer"
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN" / "control"
    lines = control.read_text(encoding="utf-8").splitlines(keepends=True)
    control.write_text("".join(f"Version: {NEWER}\n" if line.startswith("Version:") else line for line in lines), encoding="utf-8")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, folder / "newer.deb"], check=True, stdout=subprocess.DEVNULL)
    return folder / "newer.deb"


@pytest.fixture(name="bare", scope="module")
def fixture_bare(tmp_path_factory):
    """A bare root with the package installed by apt, and swaks; in it a sink, and no relay yet."""
    folder = tmp_path_factory.mktemp("bare")
    root = folder / "root"
    root.mkdir()
    make(root)
    shutil.copy(next(BUILT.glob("sluice_*.deb")), root / "tmp" / "sluice.deb")
    shutil.copy(newer_package(folder), root / "tmp" / "newer.deb")
    with_network(root, "apt-get", "update")
    said = with_network(root, "apt-get", "install", "-y", "--no-install-recommends", "/tmp/sluice.deb", "swaks")
    assert "rror" not in said, said
    one = Bare(root).start()
    one.start_program("sluice", "sink", "-l", "127.0.0.1:2526", "-d", "/tmp/received", output="tmp/sink.log")
    yield one
    one.close()
    shutil.rmtree(folder, ignore_errors=True)


def installed(bare):
    """Return state and version as dpkg tells them."""
    return bare.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Version}", "sluice", check=False).stdout


def wait_until(condition, what, seconds=20):
    """Wait for something that comes by itself."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.05)


def received(bare):
    """Return what the sink has, by message."""
    folder = bare.root / "tmp" / "received"
    return [path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.eml"))] if folder.is_dir() else []


def relay_runs(bare):
    return bare.run("sluice", "stats", check=False).returncode == 0


def start_relay(bare):
    bare.start_program("sluice", "serve", output="tmp/relay.log")
    wait_until(lambda: relay_runs(bare), "the relay")


def test_a_bare_machine_has_all_of_it(bare):
    for name in ("usr/sbin/sluice", "usr/sbin/sendmail", "usr/lib/sendmail", "usr/bin/mailq", "usr/bin/newaliases", "etc/sluice/sluice.conf", "etc/sluice/providers.conf",
                 "etc/logrotate.d/sluice", "etc/fail2ban/filter.d/sluice.conf", "etc/fail2ban/filter.d/sluice-auth.conf",
                 "lib/systemd/system/sluice.service", "usr/lib/sysusers.d/sluice.conf", "usr/lib/tmpfiles.d/sluice.conf",
                 "usr/share/bash-completion/completions/sluice", "usr/share/zsh/vendor-completions/_sluice",
                 "usr/share/doc/sluice/examples/grafana/sluice.json", "usr/share/doc/sluice/examples/prometheus/sluice.rules.yml",
                 "usr/share/doc/sluice/changelog.gz"):
        assert bare.run("test", "-f", "/" + name, check=False).returncode == 0, name
    contents = subprocess.run(["dpkg-deb", "-c", next(BUILT.glob("sluice_*.deb"))], check=True, capture_output=True, text=True).stdout
    for page in ("man8/sluice.8", "man8/sendmail.8", "man1/mailq.1", "man1/newaliases.1", "man5/sluice.conf.5"):
        assert f"/usr/share/man/{page}.gz" in contents, page
    assert "sluice:x:" in bare.run("getent", "passwd", "sluice").stdout
    assert bare.run("stat", "-c", "%U %G %a", "/var/spool/sluice").stdout == "sluice sluice 751\n"
    assert bare.run("sluice", "check").stdout == "configuration ok\n"
    assert "mail-transport-agent" in bare.run("dpkg-query", "-W", "-f", "${Provides} ${Conflicts} ${Replaces}", "sluice").stdout
    assert bare.run("cat", "/etc/sluice/sluice.conf").stdout.count('\taddress = {"127.0.0.1:25"}') == 1


def test_no_upgrade_puts_debian_s_package_of_this_name_in_its_place(bare):
    said = with_network(bare.root, "apt-cache", "policy", "sluice")
    ours = installed(bare).split()[1]
    assert f"Installed: {ours}\n" in said and f"Candidate: {ours}\n" in said, said


def test_users_send_before_and_after_the_start(bare):
    conf = bare.root / "etc/sluice/sluice.conf"
    text = conf.read_text(encoding="utf-8")
    for before, after in SETTINGS.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    conf.write_text(text, encoding="utf-8")
    start_relay(bare)
    bare.run("/usr/sbin/sendmail", "-t", user=NOBODY, text="To: one@dest.test\nSubject: first\n\nhello\n")
    done = bare.run("swaks", "-s", "127.0.0.1:25", "-f", "ann@dest.test", "-t", "two@dest.test", "-h", "here.test",
                    "--header", "Subject: second")
    assert "<-  250 2.0.0" in done.stdout
    wait_until(lambda: len(received(bare)) == 2, "two messages")
    bare.run("sluice", "stop")
    bare.run("/usr/lib/sendmail", "three@dest.test", user=NOBODY, text="Subject: third\n\nhello\n")
    assert len(received(bare)) == 2
    start_relay(bare)
    wait_until(lambda: len(received(bare)) == 3, "what was left in the maildrop")
    assert all(any(f"Subject: {word}" in text for text in received(bare)) for word in ("first", "second", "third"))
    assert bare.run("newaliases").stdout == ""


class Knocking(threading.Thread):
    """A client in the machine that connects and sends again and again: inside the network of the root."""

    SCRIPT = """
use strict; use IO::Socket::INET; $| = 1;
my ($sent, $refused) = (0, 0);
until (-e '/tmp/enough') {
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1:25', Timeout => 20);
	if (!$s) { $refused++; next }
	my $say = sub { print $s "$_[0]\\r\\n" if length $_[0]; my $l = <$s> // ''; $l };
	my $greeting = $say->('');
	$refused++ unless $greeting =~ /^220/;
	my $good = $say->('HELO here.test') =~ /^250/ && $say->('MAIL FROM:<ann@dest.test>') =~ /^250/
		&& $say->('RCPT TO:<many@dest.test>') =~ /^250/ && $say->('DATA') =~ /^354/
		&& $say->("Subject: knock $sent\\r\\n\\r\\nhello\\r\\n.") =~ /^250/;
	$sent++ if $good;
	close $s;
	select undef, undef, undef, 0.01;
}
print "$sent $refused\\n";
"""

    def __init__(self, bare):
        super().__init__()
        self._bare = bare
        self.sent = self.refused = 0

    def run(self):
        said = self._bare.run("perl", "-e", self.SCRIPT).stdout
        self.sent, self.refused = map(int, said.split())

    def enough(self):
        """End it, and wait for that."""
        (self._bare.root / "tmp" / "enough").touch()
        self.join()


def test_an_upgrade_refuses_nobody_and_is_the_new_program(bare):
    before = bare.run("pidof", "sluice").stdout
    started = (bare.root / "var/log/sluice.log").read_text(encoding="utf-8").count("info ready ")
    knocking = Knocking(bare)
    knocking.start()
    time.sleep(0.5)
    bare.run("dpkg", "-i", "/tmp/newer.deb")
    time.sleep(0.5)
    knocking.enough()
    assert installed(bare) == f"ii  {NEWER}"
    assert (knocking.refused, knocking.sent > 5) == (0, True)
    log = (bare.root / "var/log/sluice.log").read_text(encoding="utf-8")
    assert log.count("info ready ") == started + 1 and log.count("info restart") == 1
    assert bare.run("pidof", "sluice").stdout == before
    pids = before.split()
    programs = [bare.run("readlink", f"/proc/{pid}/exe").stdout.strip() for pid in pids]
    # The sink is the program that was installed first; the relay is not.
    assert sorted(programs) == ["/usr/sbin/sluice", "/usr/sbin/sluice (deleted)"]
    assert 'relay = { "[127.0.0.1]:2526" }' in bare.run("cat", "/etc/sluice/sluice.conf").stdout
    wait_until(lambda: len(received(bare)) == 3 + knocking.sent, "all that was taken")


def test_a_fault_in_the_configuration_leaves_what_runs(bare):
    conf = bare.root / "etc/sluice/sluice.conf"
    good = conf.read_text(encoding="utf-8")
    conf.write_text(good + "no_such_setting = 1\n", encoding="utf-8")
    done = bare.run("dpkg", "-i", "/tmp/newer.deb")
    assert "no_such_setting" in done.stderr and "goes on" in done.stderr
    conf.write_text(good, encoding="utf-8")
    assert relay_runs(bare) and installed(bare) == f"ii  {NEWER}"


def test_a_removal_ends_it_and_keeps_queue_and_configuration(bare):
    assert "deliver" not in bare.run("dpkg", "-r", "sluice").stderr
    assert bare.run("pidof", "sluice", check=False).stdout.count(" ") == 0  # the sink
    assert (bare.root / "etc/sluice/sluice.conf").exists() and (bare.root / "var/spool/sluice").is_dir()
    assert not (bare.root / "usr/sbin/sendmail").is_symlink()


def test_a_removal_ends_what_listens_for_it_first():
    """Nothing is a systemd here: the order is what is looked at."""
    package = next(BUILT.glob("sluice_*.deb"))
    script = subprocess.run(["dpkg-deb", "-I", package, "prerm"], check=True, capture_output=True, text=True).stdout
    assert script.index("stop sluice.socket") < script.index("stop 'sluice.service'"), script


def test_a_removal_says_how_much_mail_waits(bare):
    bare.run("dpkg", "-i", "/tmp/newer.deb")
    start_relay(bare)
    bare.run("sluice", "dest", "suspend", "[127.0.0.1]:2526")
    bare.run("/usr/sbin/sendmail", "one@dest.test", user=NOBODY, text="Subject: queued\n\nhello\n")
    bare.run("sluice", "stop")
    bare.run("/usr/sbin/sendmail", "two@dest.test", user=NOBODY, text="Subject: left\n\nhello\n")
    assert "messages that nobody delivers now: 2. The queue stays." in bare.run("dpkg", "-r", "sluice").stderr


def test_purging_keeps_the_queue_unless_told_otherwise(bare):
    done = bare.run("dpkg", "-P", "sluice")
    assert "the queue stays" in done.stderr
    assert (bare.root / "var/spool/sluice").is_dir() and not (bare.root / "etc/sluice/sluice.conf").exists()
    assert not list((bare.root / "var/log").glob("sluice.log*"))
    bare.run("dpkg", "-i", "/tmp/sluice.deb")
    bare.run("debconf-set-selections", text="sluice sluice/purge-queue boolean true\n")
    bare.run("dpkg", "-P", "sluice")
    assert not (bare.root / "var/spool/sluice").exists()
    assert bare.run("dpkg-query", "-W", "sluice", check=False).returncode != 0


@pytest.mark.parametrize("command", ["mkdir /srv/away && ln -s /srv/away /var/spool/sluice", "mkdir /var/spool/sluice && mount -t tmpfs away /var/spool/sluice"])
def test_purging_removes_a_queue_that_is_elsewhere(bare, command):
    bare.run("sh", "-c", command)
    bare.run("dpkg", "-i", "/tmp/sluice.deb")
    bare.run("sh", "-c", "mkdir -p /var/spool/sluice/log && touch /var/spool/sluice/log/1.seg")
    bare.run("debconf-set-selections", text="sluice sluice/purge-queue boolean true\n")
    bare.run("dpkg", "-P", "sluice")
    assert bare.run("dpkg-query", "-W", "sluice", check=False).returncode != 0
    assert bare.run("sh", "-c", "ls -A /var/spool/sluice /srv/away", check=False).stdout.replace("/srv/away:", "").split() in ([], ["/var/spool/sluice:"])


def test_another_mail_server_takes_its_place():
    package = next(BUILT.glob("sluice_*.deb"))
    for field in ("Conflicts", "Replaces", "Provides"):
        said = subprocess.run(["dpkg-deb", "-f", package, field], check=True, capture_output=True, text=True).stdout
        assert said.strip() == "mail-transport-agent"
