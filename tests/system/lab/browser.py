# SPDX-License-Identifier: ISC
"""A Chromium without a screen, driven by chromedriver: WebDriver over HTTP, in plain Python."""

import base64
import json
import os
import shutil
import urllib.error
import urllib.request

import pytest

from .net import LOOPBACK, accepts, free_port, wait_until
from .process import Process

_ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
              "--disable-background-networking", "--disable-component-update", "--disable-sync",
              "--disable-dev-shm-usage", "--hide-scrollbars")


TAB, ENTER, ESCAPE, LEFT = "\ue004", "\ue007", "\ue00c", "\ue012"


class Browser:
    """One window."""

    def __init__(self, folder):
        """Nothing is started yet; the profile will lie in the folder."""
        self.folder = str(folder)
        self.port = free_port()
        self.process = None
        self.session = None

    def start(self):
        """Open the window. Returns self."""
        driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
        if not driver or not chromium:
            pytest.skip("chromium or chromium-driver is not installed")
        self.process = Process([driver, f"--port={self.port}", "--allowed-ips="], os.path.join(self.folder, "output"),
                               env=os.environ | {"HOME": self.folder})
        wait_until(lambda: accepts(self.port), 60, "chromedriver to listen")
        options = {"binary": chromium, "args": [*_ARGUMENTS, f"--user-data-dir={self.folder}/profile"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        return self

    def _call(self, method, path, body=None):
        url = f"http://{LOOPBACK}:{self.port}/session"
        if self.session:
            url += f"/{self.session}{path}"
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()[:1000]}") from error

    def open(self, url):
        """Go to a page and wait until it is loaded."""
        self._call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """Run the body of a function in the page, and return what it returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """The same of one that calls its last argument with what is to be returned."""
        return self._call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def press(self, *keys):
        """Press keys one after the other, wherever the focus is; TAB, ENTER and the like are below."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, selector):
        """Return the text of the first element that the selector finds, or None."""
        return self.run("const e = document.querySelector(arguments[0]); return e && e.innerText", selector)

    def click(self, selector):
        """Click as a person would: what covers the element gets the click."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{next(iter(found.values()))}/click")

    def tell(self, command, **parameters):
        """Give an order of the DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height=800):
        """Be a screen of this size."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def darken(self, dark=True):
        """Prefer dark colours."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.tell("Emulation.setEmulatedMedia", features=features)

    def console(self):
        """Return what was written to the console since the last call."""
        return self._call("POST", "/se/log", {"type": "browser"})

    def picture(self, path):
        """Keep what the window shows, whole, as PNG."""
        shown = self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(shown["data"]))

    def close(self):
        """Close the window, and end the driver."""
        if self.session:
            self._call("DELETE", "")
        if self.process:
            self.process.stop()

    def report(self):
        """Return the end of what the driver says."""
        return self.process.output_text()[-3000:] if self.process else ""
