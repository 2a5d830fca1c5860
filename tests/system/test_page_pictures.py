# SPDX-License-Identifier: ISC
"""The status page in four situations, wide and narrow, by day and by night: what it says, that it fits, that axe finds nothing.

With SLUICE_PICTURES naming a folder it leaves a picture of each there, for people to look at."""

import itertools
import os
import re
import threading
import types

import pytest

from lab import peers
from lab.behaviour import Rule
from lab.config import Config
from lab.milter import Milter
from lab.net import LOOPBACK, free_port, wait_until

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(300), pytest.mark.xdist_group("browser")]

STORM = 120

# What the chart draws where the relay has no hour behind it: a point every ten seconds, counted since the start.
_HOUR = """
    const done = arguments[arguments.length - 1], peak = arguments[0], now = Date.now(), n = [0, 0, 0, 0, 0], points = [];
    for (let i = 0; i <= 360; i++) {
        const wave = 6 + 3 * Math.sin(i / 23) + (i * 7919 % 13) / 5, hit = i > 250 ? peak : 0;
        points.push([now - (360 - i) * 10000, ...n.map(Math.round)]);
        [wave * 10 + hit * 10, 3, Math.max(0, wave - hit / 9) * 9.6, 6 + hit * 8, 2].forEach((more, k) => { n[k] += more; });
    }
    import('/overview.js').then((page) => {
        page.showHour({ counts: ['received', 'rejected', 'sent', 'deferred', 'bounced'], points });
        done(true);
    });"""

_FINDINGS = """
    axe.run({ resultTypes: ['violations'] }).then(
        (found) => arguments[0](found.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).join('; '))),
        (error) => arguments[0]([String(error)]))"""

_BEYOND = """
    return [...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, .unseen, .skip, thead') && e.checkVisibility()
        && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 200))"""


@pytest.fixture(name="browser", scope="module")
def _browser(module_lab):
    return module_lab.browser()


@pytest.fixture(name="quiet", scope="module")
def _quiet_relay(module_lab):
    return _relay(module_lab, module_lab.sink())


def _relay(lab, sink, extra="", queue=None, routes=None, **transport):
    config = Config(settings={"http": f"{LOOPBACK}:{free_port()}"}, queue={"minimal_backoff_time": "1h"} | (queue or {}),
                    transports={"smtp": {"site_patience": "0s", "host_backoff_max": "60s"} | transport})
    config.routes |= routes or {}
    config.extra = extra
    relay = lab.relay(config.route_all_to(sink.port))
    return types.SimpleNamespace(relay=relay, stir=lambda: None, url=f"http://{config.settings['http']}/", site=f"[{LOOPBACK}]:{sink.port}")


def _send(relay, *mails):
    """Each: sender and recipient; one session."""
    with relay.client() as client:
        client.greet()
        for sender, recipient in mails:
            client.send_mail(sender, [recipient])


def _calm(lab):
    situation = _relay(lab, lab.sink())
    _send(situation.relay, *[(f"a@team{n % 3}.test", f"r{n}@dest.test") for n in range(9)])
    situation.relay.wait_event("sent", count=9)
    situation.says = "Mail flows"
    return situation


def _congestion(lab):
    gate = threading.Event()
    lab.callback(gate.set)
    situation = _relay(lab, lab.sink(Rule("end", pattern="user@", gate=gate)), queue={"message_active_limit": 12, "in_flow_delay": "0s"},
                       extra='flow "*" { share = 100 }\n', routes={"dead.test": {"relay": [f"[{LOOPBACK}]:{free_port()}"]}})
    _send(situation.relay, *[("a@b.test", f"r{n}@dead.test") for n in range(5)])
    situation.relay.wait_event("deferred", count=5)
    _send(situation.relay, *[("user@b.test", f"r{n}@slow.test") for n in range(20)])
    situation.says = "The active queue is full"
    return situation


def _filter_away(lab):
    milter = Milter()
    lab.callback(milter.close)
    situation = _relay(lab, lab.sink(), f'milter "rspamd" {{ address = "{milter.address}" }}\n')
    assert situation.relay.send().code == 250
    milter.stop()
    with situation.relay.client() as client:
        client.greet()
        client.command("MAIL FROM:<a@sender.test>", 451)
    situation.says = "Filter away (rspamd)"
    return situation


def _flood(lab):
    gate = threading.Event()
    lab.callback(gate.set)
    situation = _relay(lab, lab.sink(Rule("end", pattern="news@", gate=gate)))
    _send(situation.relay, *[(f"a@team{n}.test", f"r{n}@dest.test") for n in range(3)])
    situation.relay.wait_event("sent", count=3)
    _send(situation.relay, *[("news@shop.test", f"r{n}@dest.test") for n in range(120)])
    situation.says = "One sender has most of the mail"
    return situation


def _storm(lab):
    situation = _relay(lab, lab.sink(Rule("rcpt", "450 4.2.0 greylisted, come again")), pace=False)
    _send(situation.relay, *[("list@shop.test", f"r{n}@dest.test") for n in range(STORM)])
    rounds = itertools.count(1)

    def put_off_again():
        situation.relay.wait_event("deferred", count=STORM * next(rounds))
        situation.relay.command("queue", "flush", "--all")

    situation.stir = put_off_again  # what was put off long ago is no storm
    situation.says = "recipients were put off within"
    return situation


SITUATIONS = {"calm": (_calm, 0), "congestion": (_congestion, 30), "filter-away": (_filter_away, 0), "flood": (_flood, 60),
              "storm": (_storm, 90)}


def _axe():
    path = os.path.join(peers.FOLDER, "npm/node_modules/axe-core/axe.min.js")
    if not os.path.exists(path):
        pytest.skip(f"no axe-core: {peers.why_no_npm()}")
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def _shows(browser, selector, text, stir=lambda: None):
    """Wait until that is there, and stir what the page looks at meanwhile."""
    wait_until(lambda: stir() or text in (browser.text(selector) or ""), 60, f"{text} in {selector}")


def _keep_picture(browser, name):
    folder = os.environ.get("SLUICE_PICTURES")
    if folder:
        browser.picture(os.path.join(folder, f"{name}.png"))


def _looks_well(browser, name):
    """At both widths, in both colours."""
    for width in (1400, 500):
        browser.resize(width, 900)
        for dark in (False, True):
            browser.darken(dark)
            found = browser.run_async(_FINDINGS)
            beyond = browser.run(_BEYOND)
            _keep_picture(browser, f"{name}-{width}{'-dark' if dark else ''}")
            assert not found, f"{name} {width}: {found}"
            assert not beyond and browser.run("return document.documentElement.scrollWidth <= innerWidth"), f"{name} {width}: {beyond}"


def _rows(browser, table):
    """The cells of each row of a table."""
    return browser.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((tr) => [...tr.cells].map((td) => td.innerText))", table)


def _open(browser, situation):
    browser.darken(False)
    browser.resize(1400, 900)
    browser.open("about:blank")
    browser.open(situation.url)
    browser.console()
    _shows(browser, "#live", "live")


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_is_said_and_fits_wide_and_narrow_by_day_and_by_night(lab, browser, name):
    make, peak = SITUATIONS[name]
    situation = make(lab)
    _open(browser, situation)
    _shows(browser, "#situation", situation.says, situation.stir)
    browser.run_async(_HOUR, peak)
    browser.run(_axe())
    _looks_well(browser, name)
    said = browser.console()
    assert not said, said


def test_a_storm_turns_its_row_and_its_mail_is_found_page_by_page(lab, browser):
    situation = _storm(lab)
    _open(browser, situation)
    _shows(browser, "#sites .troubled .trouble", situation.says, situation.stir)
    assert "Mail flows" not in browser.text("#situation") and "no harm" not in browser.text("#situation")

    def all_is_found():
        """Some of it may be tried in that moment."""
        browser.open("about:blank")
        browser.open(situation.url)
        wait_until(lambda: [row[4:5] for row in _rows(browser, "#sites")] == [[str(STORM)]], 60, "all of it to wait again")
        assert re.search(r"\d (s|min)$", _rows(browser, "#sites")[0][5])
        browser.click("#sites tbody tr td:nth-child(5) a")
        _shows(browser, "#search-title", f"Mail in deferred, for {situation.site}")
        _shows(browser, "#found-reasons", "greylisted")
        return _rows(browser, "#found-reasons")[0][1:3] == ["deferred", str(STORM)]

    wait_until(all_is_found, 60, "all of it to be found")
    seen = []
    for left in (STORM, STORM - 50, STORM - 100):
        wait_until(lambda: len(_rows(browser, "#found")) == min(50, left) and _rows(browser, "#found")[0][0] not in seen, 60, "the next page")
        seen += [row[0] for row in _rows(browser, "#found")]
        if left > 50:
            browser.click("#found-pages span:last-child a")
    assert len(set(seen)) == STORM and seen == sorted(seen)
    assert browser.text("#found-pages").strip() == "the oldest"


def test_a_flow_leads_to_its_mail(lab, browser):
    situation = _flood(lab)
    _open(browser, situation)
    _shows(browser, "#flows .troubled", "shop.test")
    browser.click("#flows .troubled td a")
    _shows(browser, "#search-title", "Mail in active, of the flow shop.test")
    _shows(browser, "#search-said", "The oldest 50 messages")
    assert {row[3] for row in _rows(browser, "#found")} == {"news@shop.test"}
    assert browser.text("#search-commands code") == "sluice queue list --queue active --flow shop.test"
    assert len(situation.relay.command(*browser.text("#search-commands code").split()[1:]).stdout.splitlines()) == STORM + 1


def test_who_is_kept_from_sending_is_shown(lab, browser):
    situation = _relay(lab, lab.sink(), 'limit "sender" { messages = "2/h" }\n')
    with situation.relay.client() as client:
        client.greet()
        for _ in range(2):
            client.send_mail("much@b.test", ["x@dest.test"])
        client.command("MAIL FROM:<much@b.test>", 450)
    assert situation.relay.command("user", "suspend", "mallory").returncode == 0
    _open(browser, situation)
    wait_until(lambda: len(_rows(browser, "#kept")) == 2, 60, "both")
    login, sender = _rows(browser, "#kept")
    assert login[0] == "mallory login" and login[1] == "suspended by the operator"
    assert sender[0] == "much@b.test sender" and sender[1] == "at its limit" and sender[2].startswith("0 left of 2") and sender[4] == "1"
    _shows(browser, "#situation", "1 login is suspended by the operator")
    assert situation.relay.command("user", "resume", "mallory").returncode == 0
    wait_until(lambda: [row[0] for row in _rows(browser, "#kept")] == ["much@b.test sender"], 60, "it to be gone")


# Figures of a destination, and what is to be said of them.
_TROUBLES = [
    ({"waiting": 5782, "sent_lately": 240, "lately_ms": 30000}, "5,782 wait, and it takes 8.0 a second: that is 12 min for all of them."),
    ({"deferred": 15000, "deferred_lately": 15000, "lately_ms": 30000}, "15,000 recipients were put off within 30 s, and 0 delivered."),
    ({"state": "dead", "deferred": 15000, "deferred_lately": 15000, "lately_ms": 30000}, "15,000 recipients were put off within 30 s, and 0 delivered."),
    ({"waiting": 12, "lately_ms": 40000}, "12 deliveries wait, and nothing was delivered in the last 40 s."),
    ({"waiting": 12, "lately_ms": 2000}, ""),
    ({"waiting": 200, "sent_lately": 900, "lately_ms": 30000}, ""),
    ({"deferred": 2, "age": 7300000}, "The oldest waits for 2 h, though it takes mail."),
    ({"state": "out", "deferred": 2, "age": 7300000}, ""),
    ({}, ""),
]


def test_a_figure_that_hides_trouble_says_it(quiet, browser):
    _open(browser, quiet)
    for figures, words in _TROUBLES:
        site = {"state": "alive", "waiting": 0, "deferred": 0, "sent_lately": 0, "deferred_lately": 0, "lately_ms": 0} | figures
        told = browser.run_async("""
            const [site, done] = arguments;
            import('/trouble.js').then((page) => done(page.siteTrouble(site, site.age ? 1e12 - site.age : null, 1e12)))""", site)
        assert told == words, figures
