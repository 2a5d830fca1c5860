# SPDX-License-Identifier: ISC
"""The status page in a real browser: what whoever is on call finds on it, by eye, by keyboard, by screen reader."""

import json
import os
import re
import threading
import types
import urllib.request

import pytest

from lab import peers
from lab.behaviour import Rule
from lab.browser import ENTER, ESCAPE, LEFT, TAB
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(300), pytest.mark.xdist_group("browser")]

HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
SLOW, DOWN = 12, 30  # messages


@pytest.fixture(name="browser", scope="module")
def _browser(module_lab):
    return module_lab.browser()


def _relay(lab, sink, routes=None, queue=None, extra=""):
    port = free_port()
    config = Config(settings={"http": f"{LOOPBACK}:{port}"}, queue={"minimal_backoff_time": "1h"} | (queue or {}),
                    transports={"smtp": {"site_patience": "0s", "host_backoff_max": "60s"}})
    config.routes |= routes or {}
    config.extra = extra
    relay = lab.relay(config.route_all_to(sink.port))
    return types.SimpleNamespace(relay=relay, sink=sink, url=f"http://{LOOPBACK}:{port}/", site=f"[{LOOPBACK}]:{sink.port}")


def _send(relay, *mails):
    """Each: sender and recipient; one session."""
    with relay.client() as client:
        client.greet()
        for sender, recipient in mails:
            client.send_mail(sender, [recipient])


@pytest.fixture(name="troubled", scope="module")
def _troubled(module_lab):
    """A relay with a destination that is down, one that is suspended, and one that serves and puts off."""
    gate, dead = threading.Event(), f"[{LOOPBACK}]:{free_port()}"
    sink = module_lab.sink(Rule("rcpt", f"450 4.2.0 {HOSTILE} id 4711", pattern="later"), Rule("rcpt", "452 4.2.2 mailbox full", pattern="full"),
                           Rule("end", pattern="slow@", gate=gate))
    routes = {"highvolume.test": {"relay": [dead]}, "stopped.test": {"relay": [f"[127.0.0.3]:{sink.port}"]}}
    troubled = _relay(module_lab, sink, routes)
    troubled.dead, troubled.stopped = dead, f"[127.0.0.3]:{sink.port}"
    troubled.relay.command("dest", "suspend", troubled.stopped)
    _send(troubled.relay, *[("news@shop.test", f"r{n}@highvolume.test") for n in range(DOWN)],
          *[("news@shop.test", f"later{n}@dest.test") for n in range(5)], ("a@b.test", "full@dest.test"), ("a@b.test", "x@stopped.test"))
    troubled.relay.wait_event("deferred", count=DOWN + 7, timeout=60)
    _send(troubled.relay, ("slow@b.test", "x@dest.test"))  # on its connection no other waits for its answer
    yield troubled
    gate.set()


@pytest.fixture(name="quiet", scope="module")
def _quiet_relay(module_lab):
    """A relay without trouble, until it is asked for some."""
    return _relay(module_lab, module_lab.sink(Rule("rcpt", "550 5.1.1 no such user", pattern="guessed"), Rule("rcpt", "450 4.2.0 later", pattern="forged")))


def _open(browser, url, width=1280, fresh=False):
    """The first view of that relay's page, which may be open already."""
    browser.darken(False)
    browser.resize(width)
    if fresh or browser.run("return location.origin + '/'") != url:
        browser.open("about:blank")
        browser.open(url)
        browser.console()
        wait_until(lambda: browser.text("#live") == "live", 60, "the page to be live")
    _go(browser, "#/")
    wait_until(lambda: browser.run("return document.querySelector('#overview').checkVisibility()"), 60, "the overview")


def _shows(browser, selector, text, timeout=60):
    wait_until(lambda: text in (browser.text(selector) or ""), timeout, f"{text} in {selector}")


def _go(browser, view):
    browser.run("location.hash = arguments[0]", view)


def _keep_picture(browser, name):
    """Where SLUICE_PICTURES names a folder, for people to look at."""
    folder = os.environ.get("SLUICE_PICTURES")
    if folder:
        browser.picture(os.path.join(folder, f"{name}.png"))


def _quiet(browser):
    said = browser.console()
    assert not said, said


def _rows(browser, table):
    """The cells of each row of a table."""
    return browser.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((tr) => [...tr.cells].map((td) => td.innerText))", table)


def _ask(situation, path):
    """The first object that the relay answers."""
    with urllib.request.urlopen(situation.url.rstrip("/") + path.replace("[", "%5B").replace("]", "%5D"), timeout=60) as reply:
        return json.loads(reply.readline())


def _destination(troubled, site=None):
    return f"#/destination?transport=smtp&site={site or troubled.dead}"


@pytest.fixture(name="wary", scope="module")
def _wary(module_lab, certificates):
    """A relay that wants proof of three hosts: one has it, one is somebody else, one offers no TLS; and a certificate that ends soon."""
    certificate, key = certificates.host("relay.test", days=5)
    sinks = {"good": module_lab.sink(tls=certificates.server_context("good.test")), "clear": module_lab.sink(),
             "other": module_lab.sink(tls=certificates.server_context("other.test"))}
    config = Config(settings={"http": f"{LOOPBACK}:{free_port()}"}, queue={"minimal_backoff_time": "1h"},
                    transports={"smtp": {"site_patience": "0s", "host_backoff_max": "60s"}}, extra=f'tls {{ ca = "{certificates.ca}" }}\n')
    config.listeners["smtp"] |= {"certificate": certificate, "key": key}
    for name, sink in sinks.items():
        config.routes[f"{name}.test"] = {"relay": [f"[{LOOPBACK}]:{sink.port}"], "tls": "verify:good.test"}
    config.routes["open.test"] = {"relay": [f"[{LOOPBACK}]:{sinks['clear'].port}"]}
    relay = module_lab.relay(config)
    _send(relay, *[("a@b.test", f"x@{name}.test") for name in (*sinks, "open")])
    relay.wait_event("sent", count=2)
    relay.wait_event("deferred", count=2)
    return types.SimpleNamespace(relay=relay, url=f"http://{config.settings['http']}/", certificate=certificate,
                                 sites={name: f"[{LOOPBACK}]:{sink.port} tls=verify:good.test" for name, sink in sinks.items()})


# --- what there is to find: the four situations of Postfix's QSHAPE_README, and a dead destination


def test_a_healthy_relay_and_mail_that_passes_through(quiet, browser):
    _open(browser, quiet.url)
    _shows(browser, "#accepting", "accepting mail")
    assert browser.text("#situation") == "Mail flows: incoming and active are not congested, and no destination is out."
    assert browser.text("#received") == "0" and browser.text("#sent") == "0"
    quiet.relay.send()
    _shows(browser, "#received", "1")
    _shows(browser, "#sent", "1")
    _shows(browser, "#sites", "250 ")
    assert "relay.test" in browser.run("return document.title")
    browser.click("nav a:last-child")
    _shows(browser, "#shape-title", "incoming and active")
    wait_until(lambda: _rows(browser, "#shape-table"), 60, "the table")
    assert _rows(browser, "#shape-table") == [["all"] + ["0"] * 11]
    _quiet(browser)


def _read_hour(browser):
    """What a screen reader is told of the chart, where the pointer is."""
    return browser.run("return document.querySelector('#hour .plot').getAttribute('aria-valuetext')")


def test_the_hour_is_kept_by_the_relay_and_read_by_a_pointer(quiet, browser):
    _open(browser, quiet.url, fresh=True)
    quiet.relay.send()
    wait_until(lambda: "accepted" in (_read_hour(browser) or "") and " 0 a minute accepted" not in _read_hour(browser), 60, "the message in the chart")
    assert "a minute delivered" in _read_hour(browser) and re.search("[1-9]", browser.text("#hour .legend"))
    # Whoever comes later sees it too: at the first step that had it, found by the keyboard.
    _open(browser, quiet.url, fresh=True)
    wait_until(lambda: "accepted" in (_read_hour(browser) or ""), 60, "the hour")
    browser.run("document.querySelector('#hour .plot').focus()")
    browser.press(LEFT)
    wait_until(lambda: browser.run("return document.querySelectorAll('#hour .pointer circle').length") == 5, 60, "a pointer")
    assert "just now" not in browser.text("#hour > p")

    def is_reached():
        """From the latest step backwards; the hour may move on under the pointer."""
        browser.press(ESCAPE)
        return any(browser.press(LEFT) or " 0 a minute accepted" not in _read_hour(browser) for _ in range(30))

    wait_until(is_reached, 60, "the message, by the arrow keys")
    browser.press(ESCAPE)
    _shows(browser, "#hour > p", "just now")
    _quiet(browser)


def test_bounces_after_a_dictionary_attack(quiet, browser):
    _send(quiet.relay, *[(f"s{n}@forged.test", f"guessed{n}@dest.test") for n in range(8)], ("me@dest.test", "one@forged.test"))
    quiet.relay.wait_event("deferred", count=9)
    _open(browser, quiet.url)
    _shows(browser, "#situation", "9 messages are deferred, which does no harm while the active queue is short")
    browser.click("#situation a:last-child")
    _shows(browser, "#shape-table", "MAILER-DAEMON")
    assert [row[:2] for row in _rows(browser, "#shape-table")] == [["all", "9"], ["MAILER-DAEMON (bounces)", "8"], ["dest.test", "1"]]
    assert browser.text("#shape-commands code") == "sluice shape -s deferred"
    browser.click("#shape-choice [value=recipient]")
    _shows(browser, "#shape-table tbody", "forged.test")
    assert [row[:2] for row in _rows(browser, "#shape-table")] == [["all", "9"], ["forged.test", "9"]]
    _quiet(browser)


def test_the_active_queue_is_full(lab, browser):
    gate = threading.Event()
    congested = _relay(lab, lab.sink(Rule("end", pattern="user@", gate=gate)), queue={"message_active_limit": SLOW, "in_flow_delay": "0s"},
                       extra='flow "*" { share = 100 }\n')
    _send(congested.relay, *[("user@b.test", f"r{n}@slow.test") for n in range(SLOW - 1)], ("user@b.test", "r@other.test"),
          *[("user@b.test", f"r{n}@slow.test") for n in range(8)])
    _open(browser, congested.url)
    _shows(browser, "#situation", "The active queue is full")
    _shows(browser, "#queue-active", str(SLOW))
    assert browser.text("#active-limit") == f"of {SLOW}" and browser.text("#queue-incoming") == "8"
    browser.click("#situation .bad a")
    _shows(browser, "#shape-table tbody", "slow.test")
    assert [row[:2] for row in _rows(browser, "#shape-table")] == [["all", str(SLOW)], ["slow.test", str(SLOW - 1)], ["other.test", "1"]]
    # By which host, and why it is slow: the domain leads to the destination.
    browser.click("#shape-table tbody a")
    _shows(browser, "#found-sites", congested.site)
    browser.click("#found-sites a")
    _shows(browser, "#site-holds", "What lets it go")
    wait_until(lambda: int(browser.text("#site-busy")) > 0, 60, "busy connections")
    _keep_picture(browser, "congested")
    gate.set()
    _quiet(browser)


def test_a_backlog_for_a_destination_that_is_down(troubled, browser):
    _open(browser, troubled.url)
    _shows(browser, "#situation", "1 destination takes no mail: dead or out.")
    _shows(browser, "#situation", "1 destination is suspended by the operator.")
    wait_until(lambda: "tried again" in _rows(browser, "#sites")[0][1], 60, "the end of an attempt")
    sites = _rows(browser, "#sites")
    assert [row[0].split()[0] for row in sites] == [troubled.dead, troubled.stopped, troubled.site]
    assert "suspended by the operator" in sites[1][1] and "alive" in sites[2][1]
    assert "Connection refused" in sites[0][2] and sites[0][4] == str(DOWN) and sites[0][6] == "–"
    _keep_picture(browser, "overview")
    _go(browser, "#/shape?queue=deferred")
    _shows(browser, "#shape-table", "highvolume.test")
    assert [row[:3] for row in _rows(browser, "#shape-table")][:2] == [["all", str(DOWN + 7)] * 1 + [str(DOWN + 7)], ["highvolume.test", str(DOWN), str(DOWN)]]
    assert browser.run("return document.querySelectorAll('#shape-table thead th').length") == 12
    _keep_picture(browser, "shape")
    _quiet(browser)


def test_a_dead_destination_is_opened_and_the_commands_are_right(troubled, browser):
    _open(browser, troubled.url)
    _shows(browser, "#sites", troubled.dead)
    browser.click("#sites a")
    _shows(browser, "#site-name", troubled.dead)
    _shows(browser, "#site-state", "tried again")
    _shows(browser, "#site-holds", "What lets it go")
    _shows(browser, "#site-reasons", "refused the connection")
    assert _rows(browser, "#site-reasons")[0][1:3] == ["deferred", str(DOWN)]
    _shows(browser, "#hosts", "out, tried again")
    assert browser.text("#site-deferred") == str(DOWN)
    wait_until(lambda: "put off" in browser.text("#site-hour .legend") and "not reached" in browser.text("#site-hour .legend"), 60, "the hour")
    hour = _ask(troubled, f"/api/dest?name={troubled.dead}")["past"]
    assert hour["counts"] == ["sent", "deferred", "bounced", "unreached"] and hour["step"] == 30
    assert sum(step[1] for step in hour["steps"]) == DOWN and sum(step[3] for step in hour["steps"]) > 0
    _shows(browser, "#site-unreached", "came to nothing")
    _keep_picture(browser, "destination")
    commands = browser.run("return [...document.querySelectorAll('#site-commands code')].map((code) => code.textContent)")
    assert commands[0] == f"sluice dest suspend '{troubled.dead}'"
    told = {}
    for command in commands:
        words = command.replace("'", "").split()[1:]
        if words[1] in ("show", "list") or words[0] == "explain":
            told[words[0] + " " + words[1]] = troubled.relay.command(*words)
    assert len(told) == 3 and all(done.returncode == 0 for done in told.values())
    assert len(told["queue list"].stdout.splitlines()) == DOWN + 1
    assert troubled.relay.command("dest", "suspend", troubled.dead).returncode == 0
    _shows(browser, "#site-state", "suspended by the operator")
    _shows(browser, "#site-commands", f"sluice dest resume '{troubled.dead}'")
    assert troubled.relay.command("dest", "resume", troubled.dead).returncode == 0
    _quiet(browser)


def test_destinations_of_one_name_have_a_row_and_a_view_each(lab, browser, tmp_path):
    sinks = [lab.sink(Rule("rcpt", "451 4.2.1 later")) for _ in range(2)]
    (tmp_path / "senders").write_text("".join(f"{name}@sender.test relay=[{LOOPBACK}]:{sink.port}\n" for name, sink in zip("ab", sinks)))
    port = free_port()
    config = Config({"http": f"{LOOPBACK}:{port}", "sender_routes": [str(tmp_path / "senders")]},
                    queue={"minimal_backoff_time": "1h"}, transports={"smtp": {"destination_by": "recipient"}})
    relay = lab.relay(config)
    _send(relay, *[(f"{name}@sender.test", "x@dest.test") for name in "aab"])
    _open(browser, f"http://{LOOPBACK}:{port}/")
    wait_until(lambda: [row[4] for row in _rows(browser, "#sites")] == ["2", "1"], 60, "a row each")
    for n, (deferred, sink) in enumerate(zip("21", sinks)):
        _go(browser, "#/")
        browser.run("document.querySelectorAll('#sites tbody tr')[arguments[0]].querySelector('a').click()", n)
        _shows(browser, "#hosts", f"port {sink.port}")
        _shows(browser, "#site-deferred", deferred)
    _quiet(browser)


def test_each_reason_is_there_once_with_its_oldest_message(troubled, browser):
    _open(browser, troubled.url)
    _shows(browser, "#reasons", "mailbox full")
    _shows(browser, "#reasons", "is being sent")
    rows = _rows(browser, "#reasons")
    assert [row[0].count("refused the connection") for row in rows].count(1) == 1
    assert len([row for row in rows if "4.2.0" in row[0]]) == 1 and len(rows) == 5
    assert "refused the connection" in rows[0][0] and rows[0][2].endswith(str(DOWN)) and rows[0][4] == "highvolume.test"
    browser.click("#reasons a[title^=Message]")
    _shows(browser, "#message-said", "From news@shop.test")
    _shows(browser, "#message-why", "What lets it go")
    _shows(browser, "#recipients", "r0@highvolume.test")
    _quiet(browser)


def test_who_does_not_prove_what_the_policy_wants_and_what_expires(wary, browser):
    _open(browser, wary.url)
    _shows(browser, "#situation", "Mail waits for TLS: 2 destinations do not prove what the policy wants.")
    _shows(browser, "#situation", "send no mail once it has expired. To do: renew the certificate")
    shares = {row[0]: row[1:] for row in _rows(browser, "#tls")}
    assert shares["proven as our policy wants"] == ["1", "50.0 %"] and shares["in clear"] == ["1", "50.0 %"]
    assert shares["proven by DANE"] == ["0", "0.0 %"]
    _shows(browser, "#tls-line", "did not prove who they are")
    _shows(browser, "#tls-line", "offered no TLS where it must be")
    rows = {row[0]: row for row in _rows(browser, "#unproven")}
    assert set(rows) == {f"{wary.sites[name]} smtp" for name in ("other", "clear")}
    assert "does not offer STARTTLS" in rows[f"{wary.sites['clear']} smtp"][1] and rows[f"{wary.sites['clear']} smtp"][3] == "1"
    assert _rows(browser, "#certificates") == [[wary.certificate, "expires in 4 days"]]
    browser.run("document.querySelector('#tls-title').scrollIntoView()")
    _keep_picture(browser, "tls")
    browser.run(_axe())
    assert browser.run_async(_FINDINGS, {"resultTypes": ["violations"]}) == []
    _quiet(browser)


def test_search_by_id_address_and_domain(troubled, browser):
    _open(browser, troubled.url)
    for words, found in (("later3@dest.test", 1), ("news@shop.test", DOWN + 5), ("dest.test", 7), ("@highvolume.test", DOWN), ("nobody@else.test", 0)):
        browser.run("document.querySelector('#words').value = arguments[0]", words)
        browser.click("#search button")
        _shows(browser, "#search-title", words)
        _shows(browser, "#search-said", f"{found} message")
        assert len(_rows(browser, "#found")) == found
    _go(browser, "#/search?q=highvolume.test")
    _shows(browser, "#found-sites", troubled.dead)
    ident = browser.text("#found a")
    browser.run("document.querySelector('#words').value = arguments[0]", ident.lower())
    browser.click("#search button")
    _shows(browser, "#message-title", f"Message {ident}")
    _shows(browser, "#recipients", "@highvolume.test")
    _go(browser, "#/message?id=" + "0" * 12 + "1")
    _shows(browser, "#message-said", "not in the queue")


def test_what_peers_say_is_text(troubled, browser):
    _open(browser, troubled.url)
    _shows(browser, "#reasons", HOSTILE)
    _go(browser, _destination(troubled, troubled.site))
    _shows(browser, "#site-reasons", HOSTILE)
    _go(browser, "#/search?q=later1@dest.test")
    _shows(browser, "#found", HOSTILE)
    _go(browser, "#/destination?transport=x&site=" + HOSTILE.replace("=", "%3D"))
    _shows(browser, "#site-name", HOSTILE)
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    assert browser.run("return document.title").startswith(HOSTILE)
    _shows(browser, "#site-failed", "not known")


# --- for everybody


VIEWS = {"overview": "", "shape": "#/shape?queue=maildrop,incoming,active,deferred,hold", "destination": None,
         "search": "#/search?q=dest.test", "message": "#/message?id="}
FULL = {"overview": "#reasons a", "shape": "#shape-table tbody a", "destination": "#site-reasons td", "search": "#found a", "message": "#recipients td"}


def _open_view(browser, troubled, name):
    view = VIEWS[name] if name != "destination" else _destination(troubled, troubled.site)
    if name == "message":
        view += troubled.relay.events("queued")[-1]["id"]
    _go(browser, view)
    wait_until(lambda: browser.run("return document.querySelector(arguments[0])?.checkVisibility()", FULL[name]), 60, f"the view {name}")


def _axe():
    path = os.path.join(peers.FOLDER, "npm/node_modules/axe-core/axe.min.js")
    if not os.path.exists(path):
        pytest.skip(f"no axe-core: {peers.why_no_npm()}")
    with open(path, encoding="utf-8") as stream:
        return stream.read()


_FINDINGS = """
    axe.run(arguments[0]).then((found) => arguments[1](found.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).join('; '))),
                   (error) => arguments[1]([String(error)]))"""


@pytest.mark.parametrize("width,dark", [(1280, False), (320, True)])
def test_axe_finds_nothing_on_any_view(troubled, browser, width, dark):
    axe = _axe()
    _open(browser, troubled.url, width=width)
    browser.darken(dark)
    browser.run(axe)
    for name in VIEWS:
        _open_view(browser, troubled, name)
        found = browser.run_async(_FINDINGS, {"resultTypes": ["violations"]})
        assert not found, f"{name}: {found}"
        # At 320 pixels, 400 % of 1280, nothing is wider than the window but the table of the shape.
        beyond = browser.run("""
            return [...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, .unseen, .skip, thead') && e.checkVisibility()
                && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 200))""")
        assert not beyond and browser.run("return document.documentElement.scrollWidth <= innerWidth"), f"{name}: {beyond}"
        _keep_picture(browser, f"{name}-{width}{'-dark' if dark else ''}")


def _focus(browser):
    return browser.run("const e = document.activeElement; return e.id || e.textContent.trim() || e.tagName")


def test_all_of_it_by_keyboard(troubled, browser):
    _open(browser, troubled.url, fresh=True)
    _shows(browser, "#sites", troubled.dead)
    seen = []
    while troubled.dead not in seen:
        browser.press(TAB)
        seen.append(_focus(browser))
        assert len(seen) < 40, seen
    assert seen[0] == "Skip to the content" and "words" in seen
    browser.press(ENTER)
    _shows(browser, "#site-name", troubled.dead)
    assert _focus(browser) == "site-name"
    assert browser.run("return document.title").startswith(troubled.dead)
    _shows(browser, "#site-commands", "suspend")
    while _focus(browser) != "Copy":
        browser.press(TAB)
    browser.press(ENTER)
    wait_until(lambda: browser.text("#news") in (f"Copied: sluice dest suspend '{troubled.dead}'", f"Selected: sluice dest suspend '{troubled.dead}'"), 60, "the copy")
    browser.run("history.back()")
    wait_until(lambda: browser.run("return document.querySelector('#overview').checkVisibility()"), 60, "the overview")
    browser.run("document.querySelector('#words').focus()")
    browser.press(*"later1@dest.test", ENTER)
    _shows(browser, "#search-said", "1 message")
    assert _focus(browser) == "search-title"


def test_the_focus_stays_and_nobody_is_talked_to_without_need(troubled, browser):
    _open(browser, troubled.url)
    _shows(browser, "#reasons", "mailbox full")
    browser.run("""
        document.querySelector('#sites tbody tr:last-child a').focus();
        document.activeElement.mark = true;
        window.told = [];
        window.changes = 0;
        for (const live of document.querySelectorAll('[role=status], [role=alert], [role=log], [aria-live], output'))
            new MutationObserver(() => told.push(live.textContent)).observe(live, { childList: true, characterData: true, subtree: true });
        new MutationObserver((all) => changes += all.length).observe(document.querySelector('main'), { childList: true, characterData: true, subtree: true });""")
    # The one that has the focus comes to the head of the table.
    troubled.relay.command("dest", "suspend", troubled.site)
    wait_until(lambda: sum("suspended" in row[1] for row in _rows(browser, "#sites")) == 2, 60, "another state")
    _send(troubled.relay, *[("a@b.test", f"x{n}@dest.test") for n in range(40)])
    wait_until(lambda: _rows(browser, "#sites")[1][0].startswith(troubled.site), 60, "another order")
    wait_until(lambda: browser.run("return changes") > 5, what="changes")
    assert browser.run("return document.activeElement.mark") is True
    told = browser.run("return told")
    assert len(told) <= 1, told
    troubled.relay.command("dest", "resume", troubled.site)


def test_the_page_comes_back_to_life_after_a_restart(quiet, browser):
    _open(browser, quiet.url)
    quiet.relay.stop()
    _shows(browser, "#live", "not live")
    assert "does not answer" in browser.text("#news")
    quiet.relay.start()
    wait_until(lambda: browser.text("#live") == "live", 60, "the page to be live again")
    quiet.relay.send()
    _shows(browser, "#sent", "1")
