# SPDX-License-Identifier: ISC
"""The status page in a real browser: live, readable on a phone and in the dark, deaf to what mail says."""

import os
import threading

import pytest

from lab.behaviour import Rule
from lab.config import Config
from lab.net import LOOPBACK, free_port, wait_until

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(300), pytest.mark.xdist_group("browser")]

HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"


@pytest.fixture(name="browser", scope="module")
def _browser(module_lab):
    return module_lab.browser()


class Watched:
    """A relay, its page, and a next hop that keeps one message until its gate is opened."""

    def __init__(self, lab):
        self.port, self.gate = free_port(), threading.Event()
        self.sink = lab.sink(Rule("rcpt", f"450 4.2.0 {HOSTILE}", pattern="later"),
                             Rule("end", pattern="slow@", gate=self.gate))
        config = Config(settings={"http": f"{LOOPBACK}:{self.port}"}, queue={"minimal_backoff_time": "1h"})
        self.relay = lab.relay(config.route_all_to(self.sink.port))
        self.url = f"http://{LOOPBACK}:{self.port}/"


@pytest.fixture(name="watched")
def _watched(lab, browser):
    watched = Watched(lab)
    browser.darken(False)
    browser.resize(1280)
    browser.open(watched.url)
    browser.console()
    yield watched
    watched.gate.set()
    browser.open("about:blank")


def _shows(browser, selector, text, timeout=60):
    wait_until(lambda: text in (browser.text(selector) or ""), timeout, f"{text} in {selector}")


def _keep_picture(browser, name):
    """Where SLUICE_PICTURES names a folder, for people to look at."""
    folder = os.environ.get("SLUICE_PICTURES")
    if folder:
        browser.picture(os.path.join(folder, f"{name}.png"))


def _quiet(browser):
    said = browser.console()
    assert not said, said


def test_a_message_shows_on_the_page_that_is_open(watched, browser):
    _shows(browser, "#live", "live")
    _shows(browser, "#accepting", "accepting mail")
    assert browser.text("#received") == "0" and browser.text("#sent") == "0"
    watched.relay.send()
    _shows(browser, "#received", "1")
    _shows(browser, "#sent", "1")
    watched.relay.send(recipients=["later@dest.test"])
    _shows(browser, "#queue-deferred", "1")
    _shows(browser, "#queued", "1")
    _shows(browser, "#sites", "450 4.2.0")
    _shows(browser, "#slow", "later@dest.test")
    _shows(browser, "#shape", "dest.test")
    _shows(browser, "#commit", "≤")
    assert browser.run("return document.querySelector('#spark-in path:last-child').getAttribute('d').length") > 0
    assert browser.run("return document.querySelectorAll('#shape-past i').length") >= 10
    assert "relay.test" in browser.run("return document.title")
    _keep_picture(browser, "light")
    _quiet(browser)


def test_what_peers_say_is_text(watched, browser):
    watched.relay.send(recipients=["later@dest.test"])
    _shows(browser, "#slow", HOSTILE)
    _shows(browser, "#sites", HOSTILE)
    browser.click("#slow button")
    _shows(browser, "#why-text", HOSTILE)
    assert browser.run("return document.querySelectorAll('main img, main script, dialog img, dialog script').length") == 0
    assert "owned" not in browser.run("return document.title")
    _quiet(browser)


def test_a_click_explains_a_message_and_a_site(watched, browser):
    watched.relay.send(sender="slow@sender.test")
    _shows(browser, "#slow", "slow@sender.test")
    browser.click("#slow button")
    _shows(browser, "#why-text", "is being sent")
    assert browser.text("#why-title").startswith("Message ")
    browser.click("#why button")
    assert browser.run("return document.querySelector('#why').open") is False
    browser.click("#sites button")
    _shows(browser, "#why-text", f"[{LOOPBACK}]:{watched.sink.port}")
    _shows(browser, "#why-text", "is being sent")
    _keep_picture(browser, "explained")
    browser.click("#why button")
    watched.gate.set()
    _shows(browser, "#sent", "1")
    _quiet(browser)


@pytest.mark.parametrize("width", [320, 360, 700, 1280])
def test_nothing_is_wider_than_the_window(watched, browser, width):
    long_name = "x" * 60 + "." + "y" * 60 + ".test"
    watched.relay.send(sender="s" * 60 + "@" + long_name, recipients=["later@" + long_name])
    browser.resize(width)
    _shows(browser, "#slow", "later@")
    _shows(browser, "#shape", "yyy")
    _shows(browser, "#sites", "onerror")
    shown, wide = browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide == width and shown <= wide
    browser.click("#slow button")
    _shows(browser, "#why-text", "deferred")
    assert browser.run("const d = document.querySelector('#why').getBoundingClientRect(); return d.left >= 0 && d.right <= innerWidth")
    _keep_picture(browser, f"wide-{width}")
    _quiet(browser)


def _luminance(browser, selector, what):
    colour = browser.run("return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, what)
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1:-1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_it_can_be_read_in_the_dark_and_by_day(watched, browser, dark):
    watched.relay.send(recipients=["later@dest.test"])
    browser.darken(dark)
    _shows(browser, "#slow", "later@dest.test")
    _shows(browser, "#sites", "alive")
    back = _luminance(browser, ".card", "backgroundColor")
    assert (back < 0.1) == dark
    for selector in (".card h2", ".dim", ".figure", "#sites td", "#sites .alive", "#sites .failed", ".link", "#shape td"):
        text = _luminance(browser, selector, "color")
        contrast = (max(text, back) + 0.05) / (min(text, back) + 0.05)
        assert contrast >= 4.5, f"{selector}: {contrast:.1f}"
    _keep_picture(browser, "dark" if dark else "day")
    _quiet(browser)


def test_what_has_no_text_has_a_name(watched, browser):
    watched.relay.send(recipients=["later@dest.test"])
    _shows(browser, "#slow", "later@dest.test")
    nameless = browser.run("""
        return [...document.querySelectorAll('button, a, [role=img], [role=region], section, dialog, table th')]
            .filter((e) => !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby') && !e.textContent.trim())
            .map((e) => e.outerHTML)""")
    assert not nameless, nameless
    _quiet(browser)


def test_the_page_comes_back_to_life_after_a_restart(watched, browser):
    _shows(browser, "#live", "live")
    watched.relay.stop()
    _shows(browser, "#live", "not live")
    watched.relay.start()
    wait_until(lambda: browser.text("#live") == "live", 60, "the page to be live again")
    watched.relay.send()
    _shows(browser, "#sent", "1")
