# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven by its DevTools protocol over two pipes: JSON messages that end with a NUL.

browser ── command {id, method, params} ──► 3   chromium
        ◄── result {id} or event {method} ─── 4
"""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time

import pytest

from .orphans import MARK

NAME = "chromium"
CALL_SECONDS = 30
OPTIONS = [
    "--headless=new",
    "--no-sandbox",  # as root there is none, and only our own pages are visited
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    # no connections except to the server under test
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    # the same picture on every machine
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--hide-scrollbars",
    "--lang=en-US",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
]


class BrowserError(Exception):
    """The browser did not start, ended, or did not do what was asked."""


class Browser:
    """One process with a fresh profile below `folder`; its pages are those that tests open."""

    def __init__(self, folder):
        if not shutil.which(NAME):
            raise BrowserError(f"{NAME} is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        self.last_id, self.buffer, self.pages = 0, b"", {}
        self.log = open(folder / "log", "w+b")
        theirs_in, self.output = os.pipe()
        self.input, theirs_out = os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs_in, theirs_out)]

        def place_pipes():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        # everything else of ours is closed by exec
        self.process = subprocess.Popen(
            [NAME, *OPTIONS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            env={
                **{name: os.environ[name] for name in ("PATH", MARK) if name in os.environ},
                **{"HOME": str(folder), "LC_ALL": "C.UTF-8", "TMPDIR": str(folder)},
            },
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            close_fds=False,
            preexec_fn=place_pipes,
            start_new_session=True,
        )
        for fd in (theirs_in, theirs_out, *ends):
            os.close(fd)
        try:
            self.version = self.call("Browser.getVersion")["product"]
        except BaseException:
            self.kill()
            raise

    # ── messages ──

    def call(self, method, session=None, **params):
        """Sends a command and waits for its result; events that come before it are kept by their pages."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        with contextlib.suppress(BrokenPipeError):
            os.write(self.output, json.dumps(message).encode() + b"\0")
        while (reply := self.receive(method)).get("id") != self.last_id:
            self.keep(reply)
        if "error" in reply:
            raise BrowserError(f"{method}: {reply['error']}")
        return reply["result"]

    def keep(self, event):
        page = self.pages.get(event.get("sessionId"))
        if page and "method" in event:
            page.events.append(event)

    def receive(self, what):
        deadline = time.monotonic() + CALL_SECONDS
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.input], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.input, 1 << 20) if ready else b""
            if not data:
                raise BrowserError(f"no answer to {what}; {NAME} wrote:\n{self.written()}")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def written(self):
        self.log.seek(0)
        return self.log.read()[-2000:].decode("utf-8", "replace")

    # ── life ──

    def page(self, width=1024, height=768, user=None):
        """A page for a new user, or for that of another page: it has the cookies and the connections."""
        return Page(self, width, height, user.context if user else None)

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(60)
        except (BrowserError, subprocess.TimeoutExpired):
            pass
        self.kill()

    def kill(self):
        """Ends whatever is left of the session that it was started in."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for fd in (self.input, self.output):
            os.close(fd)
        self.log.close()


class Page:
    """A page of fixed size with a light color scheme. `events` holds the events that no call has waited for yet."""

    def __init__(self, browser, width, height, context):
        self.browser, self.events = browser, []
        self.context = context or browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def wait(self, method, condition=lambda params: True):
        """The next event of that name, among those that have come and those that will."""
        seen = 0
        while True:
            for at in range(seen, len(self.events)):
                event = self.events[at]
                if event["method"] == method and condition(event["params"]):
                    del self.events[at]
                    return event["params"]
            seen = len(self.events)
            self.browser.keep(self.browser.receive(method))

    def navigate(self, url):
        """Goes there and waits until everything that the page is made of has been loaded."""
        self.events.clear()
        failure = self.call("Page.navigate", url=url).get("errorText")
        if failure:
            raise BrowserError(f"{url}: {failure}")
        self.wait("Page.loadEventFired")

    def answers(self):
        """The head of each answer since the last navigation, in their order: url, status, headers, mimeType ..."""
        self.evaluate("0")  # all events that were on their way have come
        return [e["params"]["response"] for e in self.events if e["method"] == "Network.responseReceived"]

    def evaluate(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        reply = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            raise BrowserError(f"{expression}: {details.get('exception', details)}")
        return reply["result"].get("value")

    def screenshot(self):
        """What the page looks like, as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self):
        """And those of the same user, with all connections: one that has asked nothing would stay open."""
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)
        del self.browser.pages[self.session]


@contextlib.contextmanager
def open_browser(folder, consequence=""):
    """A browser for a fixture or test, which is skipped where there is none: `consequence` says what is not shown."""
    try:
        browser = Browser(folder)
    except BrowserError as error:
        pytest.skip(f"NO BROWSER{consequence}: {error}")
    try:
        yield browser
    finally:
        browser.close()
