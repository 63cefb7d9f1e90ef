# SPDX-License-Identifier: Apache-2.0
"""A page of a server under test in the browser, and what it must not do."""

import contextlib

COMPLAINTS = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")


class CheckedPage:
    """A page that must not ask another server or break the policy; `cdp` is its session of the DevTools protocol."""

    def __init__(self, cdp, server):
        self.cdp, self.server = cdp, server
        cdp.call("Network.setCacheDisabled", cacheDisabled=True)
        cdp.call("Log.enable")
        self.seen = []

    def open(self, path="/"):
        self.keep()
        self.cdp.navigate(self.server.url + path)
        return self

    def keep(self):
        self.cdp.evaluate("0")
        self.seen += self.cdp.events

    def js(self, expression):
        return self.cdp.evaluate(expression)

    def click(self, selector):
        """A click of the mouse in the middle of an element."""
        x, y = self.js(f"""(() => {{
            const element = document.querySelector({selector!r});
            element.scrollIntoView({{block: "center"}});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.cdp.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            self.cdp.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def type(self, text):
        self.cdp.call("Input.insertText", text=text)

    def media(self, scheme):
        self.cdp.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width, height, mobile=False):
        self.cdp.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )

    def check(self):
        self.keep()
        for event in self.seen:
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                assert url.startswith((f"{self.server.url}/", "data:")), f"a request to another host: {url}"
            entry = event["params"].get("entry", {})
            if entry.get("url", "").endswith("/favicon.ico") or entry.get("source") == "rendering":
                continue  # what Chromium looks for besides a text file, and what it says of the comparison of pictures
            assert event["method"] not in COMPLAINTS, event


@contextlib.contextmanager
def checked_pages(browser, kind=CheckedPage):
    """Yields open_page(server, width=, height=); what each of its pages did is checked at the end."""
    pages = []

    def open_page(server, **size):
        pages.append(kind(browser.page(**size), server))
        return pages[-1]

    yield open_page
    for page in pages:
        try:
            page.check()
        finally:
            page.cdp.close()


# ── colours, as getComputedStyle() has them: "rgb(1, 2, 3)" ──


def brightness(color):
    """0 to 255."""
    return sum(map(int, color.removeprefix("rgb(").rstrip(")").split(","))) / 3


def contrast(colors):
    """The contrast ratio of two colours, as WCAG 2 defines it."""

    def luminance(color):
        parts = [int(part) / 255 for part in color.removeprefix("rgb(").rstrip(")").split(",")]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    dark, light = sorted(map(luminance, colors))
    return (light + 0.05) / (dark + 0.05)
