# SPDX-License-Identifier: Apache-2.0
"""A tab of the browser that looks at a server under test, and what it must not do."""

import contextlib

COMPLAINTS = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")


class Tab:
    """A tab that looks at a server, and must not ask another one or break the policy."""

    def __init__(self, page, server):
        self.page, self.server = page, server
        page.call("Network.setCacheDisabled", cacheDisabled=True)
        page.call("Log.enable")
        self.seen = []

    def open(self, path="/"):
        self.keep()
        self.page.navigate(self.server.url + path)
        return self

    def keep(self):
        self.page.evaluate("0")
        self.seen += self.page.events

    def js(self, expression):
        return self.page.evaluate(expression)

    def click(self, selector):
        """A click of the mouse in the middle of an element."""
        x, y = self.js(f"""(() => {{
            const element = document.querySelector({selector!r});
            element.scrollIntoView({{block: "center"}});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            self.page.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def type(self, text):
        self.page.call("Input.insertText", text=text)

    def media(self, scheme):
        self.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width, height, mobile=False):
        self.page.call(
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
                continue  # what Chromium looks for beside a text file, and what it says of the comparison of pictures
            assert event["method"] not in COMPLAINTS, event


@contextlib.contextmanager
def checked_tabs(browser, kind=Tab):
    """Yields open_tab(server, width=, height=); what each of its tabs did is checked at the end."""
    tabs = []

    def open_tab(server, **size):
        tabs.append(kind(browser.page(**size), server))
        return tabs[-1]

    yield open_tab
    for tab in tabs:
        try:
            tab.check()
        finally:
            tab.page.close()


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
