# SPDX-License-Identifier: ISC
"""sendmail's and Postfix's habits: the same words do what people and programs expect of them."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from lab import peers
from lab.config import Config
from lab.net import LOOPBACK, open_folder, wait_until
from lab.relay import binary
from lab.sink import Rule
from lab.smtp import Client

DONE, REFUSED, EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_TEMPFAIL, EX_CONFIG = 0, 1, 64, 65, 69, 75, 78
LATER = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}


def listed(relay, *words):
    """Return the queue as objects."""
    lines = relay.command("queue", "list", "--json", *words).stdout.splitlines()
    return [json.loads(line) for line in lines]


def sendmail(relay, *words, stdin=""):
    """Run sendmail."""
    return subprocess.run(
        [binary(), "sendmail", "-c", relay.config_path, *words],
        input=stdin, capture_output=True, text=True, timeout=60, check=False,
    )


@pytest.fixture(name="relay")
def fixture_relay(lab):
    """A relay whose sink puts everything off, until relay.sink.behaviour.rules is emptied."""
    sink = lab.sink(Rule("rcpt", "451 4.2.1 Try later"))
    relay = lab.relay(Config(queue=LATER).route_all_to(sink.port))
    relay.sink, relay.certificates = sink, lab.certificates
    return relay


def test_minus_q_tries_what_is_meant(relay, tmp_path):
    for sender, to in (("anna@one.test", "x@a.test"), ("bert@two.test", "y@b.test"), ("carl@two.test", "z@a.test")):
        relay.send(sender=sender, recipients=[to])
    wait_until(lambda: len(listed(relay, "--queue", "deferred")) == 3, what="the queue")
    ids = [message["id"] for message in listed(relay)]
    mailq = str(tmp_path / "mailq")
    os.symlink(binary(), mailq)

    def by_mailq(*words):
        done = subprocess.run(
            [mailq, *words, "-c", relay.config_path], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == DONE, done.stderr
        return done.stdout

    assert [line.split()[0] for line in by_mailq("-qRa.test").splitlines()[:-1]] == [ids[0], ids[2]]
    assert sendmail(relay, "-bp", "-qStwo").stdout.count("from=<") == 2
    assert ids[1] in by_mailq("-qI" + ids[1])
    assert sendmail(relay, "-qI" + ids[0]).stdout == "1 message flushed\n"
    assert sendmail(relay, "-qSbert").stdout == "1 message flushed\n"
    relay.wait_event("deferred", count=5)
    wait_until(lambda: len(listed(relay, "--queue", "deferred")) == 3, what="them to be put off")
    relay.sink.behaviour.rules.clear()
    assert sendmail(relay, "-qRb.test").stdout == "1 message flushed\n"
    relay.sink.wait_messages(1)
    assert by_mailq("-q") == "2 messages flushed\n"
    relay.sink.wait_messages(3)
    wrong = sendmail(relay, "-q30m")
    assert wrong.returncode == EX_USAGE and "queue_run_delay" in wrong.stderr


def test_commands_of_sendmail_end_with_statuses_of_sysexits(relay, tmp_path):
    """As scripts that call it expect; a few ended with those of sluice."""
    nothing = relay.command("queue", "delete", "--all")
    assert nothing.returncode == DONE
    for words, status in (
        (["-bp"], DONE),
        (["-q"], DONE),
        (["-qI0000000000000000"], EX_UNAVAILABLE),
        (["-bv", "c@d..test"], EX_DATAERR),
        (["-bv", "c@d.test"], DONE),
    ):
        done = sendmail(relay, *words)
        assert done.returncode == status, (words, done)
    lost = str(tmp_path / "none.conf")
    for word in ("-bp", "-q"):
        done = subprocess.run([binary(), "sendmail", word, "-c", lost], capture_output=True, timeout=60, check=False)
        assert done.returncode == EX_CONFIG, (word, done)
    relay.stop()
    assert sendmail(relay, "-q").returncode == EX_TEMPFAIL


def test_a_session_on_standard_input(relay):
    relay.sink.behaviour.rules.clear()
    dialogue = "EHLO here\nMAIL FROM:<a@b.test>\nRCPT TO:<c@d.test>\nDATA\nSubject: lf\n\nhello\n.\nQUIT\n"
    for stdin in (dialogue, dialogue.replace("\n", "\r\n")):
        done = sendmail(relay, "-bs", stdin=stdin)
        codes = [line[:3] for line in done.stdout.splitlines() if line[3:4] == " "]
        assert (done.returncode, codes) == (DONE, ["220", "250", "250", "250", "354", "250", "221"])
    assert all(b"hello\r\n" in message.content for message in relay.sink.wait_messages(2))
    certificate, key = relay.certificates.host("relay.test")
    relay.config.listeners["smtp"] |= {"tls": "optional", "certificate": certificate, "key": key}
    relay.write_config()
    relay.stop()
    relay.start()
    with relay.client() as client:
        assert "STARTTLS" in str(client.greet())
    done = sendmail(relay, "-bs", stdin="EHLO here\nQUIT\n")
    offers = done.stdout.splitlines()
    assert not any("STARTTLS" in line for line in offers) and "250-SIZE" in done.stdout
    assert [line[3] for line in offers[1:]] == ["-"] * (len(offers) - 3) + [" ", " "]
    relay.stop()
    done = sendmail(relay, "-bs", stdin="QUIT\r\n")
    assert done.returncode == EX_TEMPFAIL and done.stdout.startswith("421 4.3.2 ")


def test_options_of_submission(relay):
    relay.sink.behaviour.rules.clear()
    done = sendmail(relay, "-v", "-G", "-f", "a@b.test", "c@d.test", stdin="Subject: x\nBcc: y@z.test\n\nhello\n")
    assert done.returncode == DONE
    assert ">>> MAIL FROM:<a@b.test>" in done.stderr and "<<< 250 2.1.5" in done.stderr
    content = relay.sink.wait_messages(1)[0].content
    assert b"Date:" not in content and b"Message-ID:" not in content and b"Bcc" not in content
    done = sendmail(relay, "-h", "50", "-L", "cron", "c@d.test", stdin="Subject: x\n\n")
    assert done.returncode == EX_DATAERR and done.stderr.startswith("cron: too many hops: 50")
    assert sendmail(relay, "-h", "49", "c@d.test", stdin="Received: by x\n\n").returncode == EX_DATAERR
    assert sendmail(relay, "-h", "5", "c@d.test", stdin="Subject: x\n\n").returncode == DONE
    done = sendmail(relay, "-bv", "c@d.test")
    assert done.returncode == DONE and "c@d.test" in done.stdout and str(relay.sink.port) in done.stdout
    done = sendmail(relay, "-bv", "-f", "me", "root", "<c@d.test>")
    assert done.returncode == DONE and "<me@relay.test>" in done.stdout
    assert "to         <root@relay.test>" in done.stdout and "to         <c@d.test>" in done.stdout
    assert sendmail(relay, "-bi").returncode == DONE
    for option in (["-V", ""], ["-V", "x" * 101], ["-V", "\u00e4"], ["-N", "never,"], ["-N", "delay,,failure"]):
        assert sendmail(relay, *option, "c@d.test", stdin="Subject: x\n\n").returncode == EX_USAGE
    assert sendmail(relay, "-V", "+" * 100, "-N", "delay,failure", "c@d.test", stdin="Subject: x\n\n").returncode == DONE
    wrong = sendmail(relay, "-Z", "c@d.test")
    assert wrong.returncode == EX_USAGE and "there is no option -Z" in wrong.stderr


def test_what_postfix_passes_over_is_passed_over(relay, tmp_path):
    """A program that says one of these had its mail refused, with its usage."""
    options = ["-U", "-m", "-Am", "-Ac", "-e", "m", "-em", "-O", "DeliveryMode=b", "-ODeliveryMode=b", "-oo", "-o8", "-oQ/x", "-X", "/x"]
    done = sendmail(relay, *options, "-t", stdin="To: c@d.test\n\n.\nx\n")
    assert (done.returncode, done.stderr) == (DONE, "")
    (message,) = listed(relay)
    assert "x" not in relay.command("queue", "show", "--body", message["id"]).stdout
    done = sendmail(relay, "-I")
    assert (done.returncode, done.stdout) == (DONE, "")
    mailq = str(tmp_path / "mailq")
    os.symlink(binary(), mailq)
    for option in ("-v", "-Ac", "-Am"):
        done = subprocess.run([mailq, option, "-c", relay.config_path], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (DONE, "") and message["id"] in done.stdout
    assert sendmail(relay, "-bd").returncode == EX_USAGE


def test_newaliases_says_what_is_wrong_with_the_tables(lab, tmp_path):
    table = tmp_path / "aliases"
    relay = lab.relay(Config({"aliases": [str(table)]}), start=False)
    newaliases = tmp_path / "newaliases"
    newaliases.symlink_to(binary())
    for text, status in (("root@dest.test: ann@dest.test\n", DONE), ("root@dest.test: not an address\n", EX_CONFIG)):
        table.write_text(text)
        done = subprocess.run([newaliases, "-q"], capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ | {"SLUICE_CONF": relay.config_path})
        assert done.returncode == status and not done.stdout
        assert (str(table) in done.stderr) == (status == EX_CONFIG)


# --- import-postfix

SMARTHOST = """\
# a host that hands all its mail to another
myhostname = web1.example.org
mydomain = example.org
mynetworks = 127.0.0.0/8 [::1]/128,
    192.0.2.0/24
inet_interfaces = loopback-only
relayhost = [mail.$mydomain]:587
smtp_tls_security_level = encrypt
smtp_sasl_auth_enable = yes
default_destination_concurrency_limit = 10
smtp_destination_concurrency_limit = 7
initial_destination_concurrency = 2
maximal_queue_lifetime = 3
delay_warning_time = 4
minimal_backoff_time = 10m
default_destination_concurrency_negative_feedback = 1/sqrt(concurrency)
sender_canonical_maps = hash:/etc/postfix/sender_canonical
recipient_canonical_maps = pcre:/etc/postfix/rewrite
smtpd_timeout = ${stress?{10}:{300}}s
mydestination = $myhostname, localhost
bounce_queue_lifetime = 1w
this line is none
"""


def convert(path):
    """Run import-postfix on a file, and return what it wrote and what it left out."""
    done = subprocess.run(
        [binary(), "import-postfix", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == DONE, done.stderr
    left = {line.split(": ")[1].split(" = ")[0]: line for line in done.stderr.splitlines()}
    return done.stdout, left


def test_a_folder_is_no_main_cf(tmp_path):
    """Postfix's own tools take the folder; the configuration of an empty file would look like an answer."""
    (tmp_path / "main.cf").write_text(SMARTHOST)
    done = subprocess.run([binary(), "import-postfix", str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != DONE and not done.stdout
    assert done.stderr == f"sluice: {tmp_path}: Is a directory\n"


def settings_of(path, text):
    """Return what the configuration comes to, and that nothing is wrong in it."""
    path.write_text(text, encoding="utf-8")
    words = [binary(), "check", "-c", str(path)]
    assert subprocess.run(words, capture_output=True, check=False, timeout=60).stdout == b"configuration ok\n"
    words = [binary(), "config", "-c", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return dict(line.split(" = ", 1) for line in done.stdout.splitlines())


def test_what_there_is_for_client_certificates_and_policy_servers_is_said(tmp_path):
    path = tmp_path / "main.cf"
    path.write_text("smtp_tls_cert_file = /etc/postfix/client.pem\nsmtp_tls_key_file = /etc/postfix/client.key\n"
                    "smtpd_tls_ask_ccert = yes\nsmtpd_tls_CAfile = /etc/ca.pem\nanvil_rate_time_unit = 60s\n", encoding="utf-8")
    (tmp_path / "master.cf").write_text("policy unix - n n - 0 spawn user=nobody argv=/usr/bin/x\n", encoding="utf-8")
    text, left = convert(path)
    assert 'client_certificate = "/etc/postfix/client.pem"' in text and 'client_key = "/etc/postfix/client.key"' in text
    assert "client_ca" in left["smtpd_tls_ask_ccert"] and "client_ca" in left["smtpd_tls_CAfile"]
    assert "client_rate_limit" in left["anvil_rate_time_unit"] and "socketmap:" in left["service policy"]


def test_a_smarthosts_main_cf_becomes_a_configuration(tmp_path):
    path = tmp_path / "main.cf"
    path.write_text(SMARTHOST, encoding="utf-8")
    text, left = convert(path)
    (tmp_path / "sender_canonical").write_text("", encoding="utf-8")
    assert '"/etc/postfix/sender_canonical"' in text
    text = text.replace("/etc/postfix/sender_canonical", str(tmp_path / "sender_canonical"))
    settings = settings_of(tmp_path / "sluice.conf", text)
    for name, value in {
        "hostname": '"web1.example.org"',
        "networks": '{"127.0.0.0/8", "::1/128", "192.0.2.0/24"}',
        "listener.smtp.address": '{"127.0.0.1:25", "[::1]:25"}',
        "listener.smtp.client_connection_limit": "50",
        "route.*.relay": '{"[mail.example.org]:587"}',
        "transport.smtp.tls": '"required"',
        "transport.smtp.destination_concurrency_limit": "7",
        "transport.smtp.initial_destination_concurrency": "2",
        "transport.smtp.destination_concurrency_negative_feedback": '"1/sqrt(concurrency)"',
        "queue.maximal_queue_lifetime": "3d",
        "queue.bounce_queue_lifetime": "7d",
        "queue.delay_warning_time": "4h",
        "queue.minimal_backoff_time": "10m",
        "message_size_limit": "10000k",
    }.items():
        assert settings[name] == value
    assert "expression" in left["smtpd_timeout"] and f"{path}:19: " in left["smtpd_timeout"]
    assert "see credentials" in left["smtp_sasl_auth_enable"] and "pcre" in left["recipient_canonical_maps"]
    assert "mailboxes" in left["mydestination"]
    assert "another setting" in left["default_destination_concurrency_limit"]
    assert any("1 line is not" in line for line in left.values())


def test_a_certificate_with_its_key_in_one_file_and_ports_by_name_are_taken_over(lab, tmp_path):
    """Without smtpd_tls_key_file the key is in the certificate's file."""
    certificate, key = lab.certificates.host("a.example.org")
    both = tmp_path / "both.pem"
    both.write_text(pathlib.Path(certificate).read_text(encoding="ascii") + pathlib.Path(key).read_text(encoding="ascii"), encoding="ascii")
    path = tmp_path / "main.cf"
    path.write_text(f"myhostname = a.example.org\nsmtpd_tls_cert_file = {both}\nsmtp_tls_cert_file = {both}\nsmtp_tls_security_level = may\n"
                    "smtpd_tls_security_level = may\nrelayhost = [a.example]:submission\n"
                    "smtp_fallback_relay = [b.example]:submissions, c.example:smtp [d.example]:26\n", encoding="utf-8")
    text, left = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert settings["listener.smtp.certificate"] == settings["listener.smtp.key"] == f'{{"{both}"}}'
    assert settings["transport.smtp.client_certificate"] == settings["transport.smtp.client_key"] == f'"{both}"'
    assert settings["route.*.relay"] == '{"[a.example]:587"}'
    assert settings["transport.smtp.fallback_relay"] == '{"[b.example]:465", "c.example:25", "[d.example]:26"}'
    assert not left
    path.write_text("myhostname = a.example.org\nsmtp_fallback_relay = [b.example]:uucp\n", encoding="utf-8")
    text, left = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert settings["transport.smtp.fallback_relay"] == "{}" and settings["listener.smtp.key"] == "{}"
    assert "[b.example]:uucp is no next hop" in left["smtp_fallback_relay"]


def test_what_is_empty_in_main_cf_stays_so(tmp_path):
    """Without networks nobody may relay; and a certificate that is none has no key."""
    path = tmp_path / "main.cf"
    path.write_text("myhostname = a.example.org\nmynetworks =\nsmtpd_tls_cert_file =\nsmtpd_tls_key_file =\nmessage_drop_headers =\n"
                    "relayhost =\ninet_interfaces = 127.0.0.1\n", encoding="utf-8")
    text, left = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert settings["networks"] == settings["drop_headers"] == settings["route.*.relay"] == "{}"
    assert settings["listener.smtp.certificate"] == settings["listener.smtp.key"] == "{}"
    assert not left


def test_networks_of_a_file_may_relay(tmp_path):
    """All of mynetworks was left out for it, and who had relayed was refused."""
    networks, path = tmp_path / "networks", tmp_path / "main.cf"
    networks.write_text("# ours\n192.0.2.0/24, [2001:db8::]/32\n  # theirs\n\n198.51.100.7\r\n", encoding="utf-8")
    path.write_text(f"myhostname = a.example.org\nmynetworks = 127.0.0.0/8 $config\nconfig = {networks}, 203.0.113.0/24\n", encoding="utf-8")
    text, left = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert settings["networks"] == '{"127.0.0.0/8", "192.0.2.0/24", "2001:db8::/32", "198.51.100.7", "203.0.113.0/24"}'
    assert "mynetworks" not in left
    networks.write_text("192.0.2.0/24\nhash:/etc/postfix/more\n", encoding="utf-8")
    assert "hash:/etc/postfix/more is not a network" in convert(path)[1]["mynetworks"]
    networks.unlink()
    assert f"{networks}: No such file" in convert(path)[1]["mynetworks"]


MASTER = """\
smtp      inet  n       -       y       -       -       smtpd
  -o content_filter=scan:[127.0.0.1]:10024
submission inet n       -       y       -       -       smtpd
  -o smtpd_tls_security_level=encrypt
  -o smtpd_sasl_auth_enable=yes
slow      unix  -       -       y       -       5       smtp
relay     unix  -       -       y       -       -       smtp
        -o syslog_name=${multi_instance_name?{$multi_instance_name}:{postfix}}/$service_name
archive   unix  -       n       n       -       -       pipe
  flags=R user=archive argv=/usr/bin/archive
"""


def test_what_is_left_out_stands_behind_the_configuration_with_what_takes_its_place(tmp_path):
    (tmp_path / "main.cf").write_text(
        "myhostname = a.example.org\nsmtpd_sender_login_maps = hash:/x\nsmtp_sasl_password_maps = hash:/x\nsmtp_tls_policy_maps = hash:/x\n"
        "smtpd_sasl_path = private/auth\nsmtpd_sasl_auth_enable = yes\nrelay_clientcerts = hash:/x\nsmtpd_client_message_rate_limit = 9\n"
        "masquerade_domains = example.org\n", encoding="utf-8")
    (tmp_path / "master.cf").write_text(MASTER, encoding="utf-8")
    text, left = convert(tmp_path / "main.cf")
    settings_of(tmp_path / "sluice.conf", text)
    for name, ours in {"smtpd_sender_login_maps": "sender_logins", "smtp_sasl_password_maps": "credentials", "smtp_tls_policy_maps": "tls_policy",
                       "smtpd_sasl_path": "dovecot", "smtpd_sasl_auth_enable": "auth", "relay_clientcerts": "client_certificates",
                       "smtpd_client_message_rate_limit": "limit", "masquerade_domains": "rewrite_header"}.items():
        assert f"see {ours}" in left[name] or ours in left[name], name
        assert f"# {left[name]}" in text.splitlines()
    said = [line for line in text.splitlines() if line.startswith("# master.cf:")]
    assert [int(line.split(":")[1]) for line in said] == [2, 3, 4, 6, 9]
    assert "listener" in said[1] and "transport" in said[3] and "LMTP" in said[4]


def test_no_option_of_a_service_is_lost_without_a_word(tmp_path):
    """Options may stand behind the command, too, and the services that every installation has may have some."""
    (tmp_path / "main.cf").write_text("myhostname = a.example.org\n", encoding="utf-8")
    master = {
        "smtp inet n - y - - smtpd -o smtpd_client_restrictions=permit_mynetworks,reject": "smtp",
        "smtpd pass - - y - - smtpd": None,
        "  -o smtpd_tls_auth_only=yes": "smtpd",
        "smtp unix - - y - - smtp": None,
        " -osmtp_bind_address=192.0.2.77": "smtp",
        " -o smtp_helo_name=x": None,  # said once
        "relay unix - - y - - smtp -o syslog_name=postfix/relay": None,
        "cleanup unix n - y - 0 cleanup": None,
        "# -o begins=in_the_first_column": None,
        "  # -o is=a_comment": None,
        "\t-o header_checks=regexp:/x": "cleanup",
        "uucp unix - n n - - pipe flags=F user=uucp argv=uux -r -o its=own": None,
        "showq unix n - y - - showq": None,
        "  -v -o { show_user_unknown_table_name = no }": "showq",
    }
    (tmp_path / "master.cf").write_text("\n".join(master) + "\n", encoding="utf-8")
    text, _ = convert(tmp_path / "main.cf")
    said = [line.removeprefix("# master.cf:").split(": left out")[0] for line in text.splitlines() if line.startswith("# master.cf:")]
    assert said == [f"{number}: the options of {name}" for number, name in enumerate(master.values(), 1) if name]


RESTRICTIONS = """\
mynetworks = 127.0.0.0/8
maps = hash:{folder}
smtpd_client_restrictions = check_client_access $maps/clients, permit_mynetworks, reject_rbl_client list.test,
    check_client_access $maps/later check_client_access cidr:{folder}/nets
smtpd_helo_restrictions = check_helo_access socketmap:unix:/run/map:names, reject_invalid_helo_hostname
smtpd_sender_restrictions = warn_if_reject check_sender_access hash:/warned
    check_sender_access ldap:/etc/ldap.cf, check_sender_access
smtpd_relay_restrictions = permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination
smtpd_recipient_restrictions = check_recipient_access $maps/clients { check_policy_service unix:private/policy, timeout=10s } greylist
    reject_unverified_recipient check_recipient_access $maps/clients reject
smtpd_data_restrictions = ${x?{permit}}
"""


def test_restrictions_become_tables_of_access_and_notes(tmp_path):
    path = tmp_path / "main.cf"
    path.write_text(RESTRICTIONS.replace("{folder}", str(tmp_path)), encoding="utf-8")
    for name in ("clients", "later"):
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "nets").write_text("192.0.2.0/24 REJECT\n2001:db8::/32 OK\n", encoding="utf-8")
    text, _ = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert settings["client_access"] == f'{{"{tmp_path}/clients", "{tmp_path}/later", "{tmp_path}/nets"}}'
    assert settings["helo_access"] == '{"socketmap:unix:/run/map:names"}' and settings["sender_access"] == "{}"
    assert settings["recipient_access"] == f'{{"{tmp_path}/clients"}}'
    said = [line.split(": ", 1)[1] for line in text.splitlines() if "_restrictions: " in line]
    wanted = ["reject_rbl_client list.test: a filter asks", "check_client_access hash:TMP/later: here it counts for own networks",
              "check_client_access cidr:TMP/nets: the smallest network", "check_client_access cidr:TMP/nets: here it counts", "warn_if_reject: nothing",
              "check_sender_access ldap:/etc/ldap.cf: ldap:/etc/ldap.cf is a kind of table", "check_sender_access: there is nothing behind it",
              "check_policy_service unix:private/policy: a filter", "greylist: there is no such restriction", "reject_unverified_recipient: write verify",
              "reject: whoever has come so far", "${x?{permit}}: it is an expression"]
    assert len(said) == len(wanted), said
    for line, begins in zip(said, wanted):
        assert line.split(": ", 1)[1].startswith(begins.replace("TMP", str(tmp_path))), line


def test_postfixs_own_main_cf_becomes_a_configuration(tmp_path):
    folder = os.path.join(peers.root(), "usr/share/postfix")
    path = os.path.join(folder, "main.cf.dist")
    with open(path, encoding="utf-8") as stream:
        said = dict(line.rstrip().split(" = ", 1) for line in stream if re.match(r"[a-z0-9_]+ = .", line))
    text, left = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    # The releases' files differ in what they name.
    assert settings["networks"] == ('{"127.0.0.0/8"}' if said.get("mynetworks") == "127.0.0.0/8" else '{"127.0.0.0/8", "::1"}')
    assert settings["listener.smtp.address"] == ('{"0.0.0.0:25"}' if said.get("inet_protocols") != "all" else '{"0.0.0.0:25", "[::]:25"}')
    assert "smtpd_banner" in left or "daemon_directory" in left
    assert "mynetworks" not in left
    text, left = convert(os.path.join(folder, "main.cf.debian"))
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert settings["listener.smtp.address"] == '{"0.0.0.0:25", "[::]:25"}' and "biff" in left


def test_what_means_something_else_here_is_said(tmp_path):
    path = tmp_path / "main.cf"
    path.write_text("smtp_tls_security_level = verify\nsmtpd_milters = inet:127.0.0.1:11332\n"
                    "virtual_transport = lmtp:unix:private/dovecot\nmilter_default_action = accept\n", encoding="utf-8")
    text, left = convert(path)
    # MX hosts' certificates do not name the domain, so that all mail would be deferred.
    assert settings_of(tmp_path / "sluice.conf", text)["transport.smtp.tls"] == '"required"'
    assert "taken over as tls = required" in left["smtp_tls_security_level"]
    assert 'milter "NAME"' in left["smtpd_milters"] and "lmtp" in left["virtual_transport"]
    assert "default_action" in left["milter_default_action"]


@pytest.mark.parametrize(("line", "name", "value"), [
    ("always_bcc = root", "always_bcc", '"root@a.example.org"'),
    ("always_bcc = root\nmyorigin = $mydomain", "always_bcc", '"root@example.org"'),
    ("always_bcc = root\nmyorigin = /etc/mailname", "always_bcc", '"root@a.example.org"'),
    ("always_bcc = a@b.test, c@b.test", "always_bcc", '""'),
    ("smtp_tls_security_level = MAY", "transport.smtp.tls", '"opportunistic"'),
    ("smtp_tls_security_level = half-dane", "transport.smtp.tls", '"opportunistic"'),
    ("smtp_tls_security_level = dane-only", "transport.smtp.tls", '"dane-only"'),
    ("smtpd_tls_security_level = Maybe", "listener.smtp.tls", '"optional"'),
    ("smtp_enforce_tls = YES", "transport.smtp.tls", '"required"'),
    ("masquerade_domains = /etc/postfix/masks", "masquerade", "{}"),
    ("masquerade_domains = a..example.org", "masquerade", "{}"),
    ("masquerade_exceptions = hash:/x", "masquerade_exceptions", "{}"),
    ("masquerade_exceptions = root root@example.org", "masquerade_exceptions", "{}"),
    ("message_drop_headers = bcc, received", "drop_headers", '{"Bcc", "Resent-Bcc", "Return-Path", "Content-Length"}'),
    ("initial_destination_concurrency = 50", "transport.smtp.initial_destination_concurrency", "5"),
    ("smtp_helo_name = two names", "transport.smtp.helo", '""'),
    ("smtp_bind_address = eth0", "transport.smtp.source_address", '""'),
    ("inet_interfaces = 999.1.1.1", "listener.smtp.address", '{"127.0.0.1:2525"}'),
    ("maillog_file =", "log", '"syslog"'),
    ("maillog_file = /dev/stdout", "log", '"stderr"'),
])
def test_what_is_written_is_a_configuration_whatever_main_cf_says(tmp_path, line, name, value):
    """What check refuses, or the relay can't begin with, is left out, or put right."""
    path = tmp_path / "main.cf"
    path.write_text(f"myhostname = a.example.org\n{line}\n", encoding="utf-8")
    text, left = convert(path)
    conf = tmp_path / "sluice.conf"
    conf.write_text(text, encoding="utf-8")
    assert settings_of(conf, text)[name] == value
    checked = subprocess.run([binary(), "check", "-c", str(conf)], capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == DONE, checked.stderr
    word = line.split(" =")[0]
    same = ("root", "MAY", "dane-only", "maillog_file =")
    assert (word in left) != line.split("\n")[0].endswith(same), left


def test_the_addresses_beside_a_name_are_listened_at(tmp_path):
    """All of inet_interfaces was left out for a name in it, and the relay listened where nobody looked."""
    path = tmp_path / "main.cf"
    path.write_text("myhostname = a.example.org\ninet_protocols = ipv4\ninet_interfaces = $myhostname, localhost, 127.0.0.1 192.0.2.7\n", encoding="utf-8")
    text, left = convert(path)
    assert settings_of(tmp_path / "sluice.conf", text)["listener.smtp.address"] == '{"127.0.0.1:25", "192.0.2.7:25"}'
    assert "left out in part: a.example.org is a name" in left["inet_interfaces"]


def test_a_name_that_nobody_sets_is_noted(tmp_path):
    path = tmp_path / "main.cf"
    path.write_text("name = a\nmyhostname = $name.example.org\nsmtp_helo_name = x$missing.${name}$other\nrelayhost = [mail.$mydomain]\n", encoding="utf-8")
    text, left = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert settings["transport.smtp.helo"] == '"x.a"' and "main.cf does not say what this is: $missing $other;" in left["smtp_helo_name"]
    # The domain is the one of this name, not of the machine that reads it.
    assert settings["route.*.relay"] == '{"[mail.example.org]"}' and "myhostname" not in left


def test_tables_by_proxymap_are_those_that_it_reads(tmp_path):
    path = tmp_path / "main.cf"
    path.write_text(f"myhostname = a.example.org\ncanonical_maps = proxy:hash:{tmp_path}/names proxy:{tmp_path}/more\n"
                    f"smtpd_client_restrictions = check_client_access proxy:cidr:{tmp_path}/nets, check_client_access proxy:hash:{tmp_path}/clients\n"
                    "sender_canonical_maps = proxy:mysql:/etc/postfix/sql.cf\ndefer_transports = smtp\n", encoding="utf-8")
    for name in ("names", "more", "nets", "clients"):
        (tmp_path / name).write_text("", encoding="utf-8")
    text, left = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert settings["canonical"] == f'{{"{tmp_path}/names", "{tmp_path}/more"}}'
    assert settings["client_access"] == f'{{"{tmp_path}/nets", "{tmp_path}/clients"}}'
    assert "mysql:/etc/postfix/sql.cf is a kind of table" in left["sender_canonical_maps"]
    assert "dest suspend" in left["defer_transports"]


@pytest.mark.parametrize(("said", "maximal", "noted"), [
    ("minimal_backoff_time = 2h", "2h", True),  # Postfix's default of the other is below that
    ("minimal_backoff_time = 2000\nmaximal_backoff_time = ${low}\nlow = 1000s", "2000s", True),
    ("minimal_backoff_time = 10m\nmaximal_backoff_time = 1h", "1h", False),
    ("maximal_backoff_time = 1h", "1h", False),
])
def test_the_longest_wait_is_no_shorter_than_the_shortest(tmp_path, said, maximal, noted):
    """Postfix takes the shortest then; check refused what was written."""
    path = tmp_path / "main.cf"
    path.write_text(f"myhostname = a.example.org\n{said}\n", encoding="utf-8")
    text, left = convert(path)
    written = re.search(r"maximal_backoff_time = (\w+)", text.partition("# What")[0])
    settings_of(tmp_path / "sluice.conf", text)
    assert written[1] == maximal and ("minimal_backoff_time" in left) == noted


OWN_TABLES = {
    "canonical": "ann@own.test ann.a@own.test\n@old.test @new.test\n",
    "sender": "low@own.test high@own.test\n",
    "recipient": "gone@dest.test there@dest.test\n@sub.dest.test @dest.test\n",
    "sender_bcc": "bcc@own.test copy@archive.test\n",
    "recipient_bcc": "watched@dest.test copy@archive.test\n",
    "senders": "bad@own.test REJECT 5.7.9 no thanks\nevil.test 450 4.7.1 later\n",
    "recipients": "closed@dest.test 550 5.1.1 closed\ndropped@dest.test DISCARD\n",
}
OWN_MAIL = [
    ("ann@own.test", ["to@dest.test"]), ("a@old.test", ["to@old.test"]), ("low@own.test", ["gone@dest.test"]), ("Ann@Own.Test", ["GONE@dest.test"]),
    ("bcc@own.test", ["watched@dest.test", "to@dest.test"]), ("h@host.mask.test", ["h@host.mask.test"]), ("root@host.mask.test", ["to@dest.test"]),
    ("x@mask.test", ["x@host.not.mask.test"]), ("x@host.not.mask.test", ["to@dest.test"]), ("x@own.test", ["q@sub.dest.test", "r@dest.test"]),
    ("bad@own.test", ["to@dest.test"]), ("x@evil.test", ["to@dest.test"]), ("x@own.test", ["closed@dest.test", "to@dest.test"]),
    ("x@own.test", ["dropped@dest.test"]), ("", ["ann@own.test"]), ("last@own.test", ["last@dest.test"]),
]


def _give_own_mail(port):
    for number, (sender, recipients) in enumerate(OWN_MAIL):
        with Client(LOOPBACK, port) as client:
            client.greet()
            client.command(f"MAIL FROM:<{sender}>", "")
            taken = [client.command(f"RCPT TO:<{to}>", "").code == 250 for to in recipients]
            if any(taken):
                client.command("DATA", 354)
                client.command(f"Subject: {number}\r\n\r\n.", 250)


def _taken_own_mail(sink):
    """Return senders and recipients by the number of the message; a host may get it in pieces."""
    taken = {}
    for one in list(sink.messages):
        number = int(re.search(rb"Subject: (\d+)", one.content)[1])
        taken.setdefault(number, set()).update((one.sender, to) for to in one.recipients)
    return taken


@pytest.mark.seconds(180)
def test_mail_arrives_as_with_the_postfix_whose_main_cf_it_was(lab):
    folder = lab.enter_context(open_folder("sluice-"))
    for name, text in OWN_TABLES.items():
        pathlib.Path(folder, name).write_text(text, encoding="utf-8")
    theirs, ours = lab.sink(), lab.sink()
    postfix = lab.postfix(next_hop=theirs.port, settings={
        "maps": f"texthash:{folder}", "canonical_maps": "$maps/canonical", "sender_canonical_maps": "${maps}/sender",
        "recipient_canonical_maps": "$(maps)/recipient", "sender_bcc_maps": "$maps/sender_bcc", "recipient_bcc_maps": "$maps/recipient_bcc",
        "masquerade_domains": "!not.mask.test mask.test", "masquerade_exceptions": "root", "always_bcc": "all@archive.test",
        "smtpd_recipient_restrictions": "check_sender_access $maps/senders,\n  # who is gone\n  check_recipient_access $maps/recipients",
    })
    text, _ = convert(os.path.join(postfix.config_folder, "main.cf"))
    relay = lab.relay(start=False)
    text = re.sub(r"address = {.*}", f'address = {{"{LOOPBACK}:{relay.port}"}}', text.replace(f":{theirs.port}\"", f":{ours.port}\""))
    text = re.sub(r"(?m)^log = .*$", f'log = "{relay.log_path}"', text)
    with open(relay.config_path, "w", encoding="utf-8") as stream:
        stream.write(f'spool = "{relay.spool}"\nuser = "root"\nhttp = ""\n{text}')
    relay.start()
    _give_own_mail(postfix.port)
    _give_own_mail(relay.port)
    postfix.wait_log(": removed", count=13)
    wait_until(lambda: len(_taken_own_mail(theirs)) == 13, 60, "Postfix's mail")
    relay.wait_event("done", 60, count=13)
    assert _taken_own_mail(ours) == _taken_own_mail(theirs)


def test_what_holds_for_others_here_is_said(tmp_path):
    path = tmp_path / "main.cf"
    begin = "myhostname = a.example.org\n"
    path.write_text(begin + "inet_interfaces = 192.0.2.7\nsmtp_bind_address6 = 2001:db8::7\nsmtp_generic_maps = hash:/g\n"
                    "default_transport = smtp\nrecipient_canonical_maps = ${default_database_type}:/canonical\n", encoding="utf-8")
    text, left = convert(path)
    assert 'recipient_canonical = {"/canonical"}' in text
    assert "source_address" in left["smtp_bind_address6"] and "sender_canonical" in left["smtp_generic_maps"] and "route" in left["default_transport"]
    assert "keys of tables are whole" in text and "connects from there" not in text
    for interfaces, said in (("192.0.2.7", True), ("2001:db8::7", True), ("127.0.0.1", False), ("all", False), ("192.0.2.7, 127.0.0.1", False)):
        path.write_text(f"{begin}inet_interfaces = {interfaces}\n", encoding="utf-8")
        text, _ = convert(path)
        assert ("inet_interfaces: Postfix connects from there" in text) == said and "keys of tables" not in text


@pytest.mark.parametrize(("main", "tls"), [
    ("", ["none", "none"]),
    ("smtp_use_tls = yes", ["opportunistic", "none"]),
    ("smtp_use_tls = no\nsmtpd_use_tls = no", ["none", "none"]),
    ("smtp_enforce_tls = no\nsmtp_use_tls = $x\nx = yes", ["opportunistic", "none"]),
    ("smtp_enforce_tls = yes\nsmtp_use_tls = no", ["required", "none"]),
    ("smtp_tls_security_level = none\nsmtp_use_tls = yes", ["none", "none"]),
    ("smtp_tls_security_level = encrypt\nsmtp_use_tls = no", ["required", "none"]),
    ("smtp_tls_security_level = ${x?{may}}", ["opportunistic", "none"]),
    ("smtp_tls_security_level = fingerprint", ["verify", "none"]),
    ("smtpd_use_tls = yes", ["none", "optional"]),
    ("smtpd_use_tls = yes\nsmtpd_tls_security_level = none", ["none", "none"]),
])
def test_tls_is_what_main_cf_says_in_its_older_ways_too(tmp_path, main, tls):
    """Mail that Postfix encrypts must not go in clear for that its setting has an old name."""
    path = tmp_path / "main.cf"
    path.write_text(f"myhostname = a.example.org\n{main}\n", encoding="utf-8")
    text, left = convert(path)
    settings = settings_of(tmp_path / "sluice.conf", text)
    assert [settings["transport.smtp.tls"], settings["listener.smtp.tls"]] == [f'"{word}"' for word in tls]
    assert not any("no such setting" in line for name, line in left.items() if "tls" in name)


def test_the_page_about_postfix_names_each_setting(tmp_path):
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(top, "etc/sluice-postfix.7"), encoding="utf-8") as page:
        told = {line.split()[1] for line in page if line.startswith(".It ") and line.strip() != ".It"}
    with open(os.path.join(top, "cmd/local/postfix_settings.h"), encoding="utf-8") as header:
        table = header.read().split("#define POSTFIX_LEFT_OUT")[0]
    names = [part.split('"')[1] for part in table.split("X(")[3:]]
    assert len(names) > 60 and set(names) <= told
    path = tmp_path / "main.cf"
    path.write_text("".join(f"{name} = 1\n" for name in names), encoding="utf-8")
    _, left = convert(path)
    assert not [name for name, line in left.items() if "no such setting" in line]
