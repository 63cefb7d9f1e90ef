# SPDX-License-Identifier: Apache-2.0
"""The console of a web service in Chromium: it shows what was asked and loads itself again, on any screen."""

import pytest

from harness.browser import open_browser
from harness.checked_page import brightness, checked_pages, contrast
from harness.services import needs_duda
from harness.ways import WAYS
from test_duda_console import CONSOLE, HOSTILE, SHOP, clean, say

pytestmark = [needs_duda, pytest.mark.browser, pytest.mark.single_protocol]

RESPONSES = "document.querySelector('dd').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", CONSOLES ARE NOT SEEN") as browser:
        yield browser


@pytest.fixture
def page(browser, serve_services, tmp_path):
    """The page of the console of the service `shop`; what it did is checked at the end."""
    settings = {"KeepAlive": "Off", "Timeout": "3s"}  # browsers keep connections, and open some that they do not use
    server = WAYS["h1"].start(serve_services, tmp_path, {"shop": SHOP}, settings, keys=CONSOLE)
    with checked_pages(browser) as open_page:
        yield open_page(server)


def ask(page, count):
    for _ in range(count):
        with page.server.open() as client:
            assert client.ask("/shop/goods/1").status == 200


def test_it_loads_itself_again(page):
    ask(page, 3)
    page.open("/shop/console/")
    assert page.js(RESPONSES) == "3"
    ask(page, 4)
    page.cdp.wait("Page.loadEventFired")
    while (shown := page.js(RESPONSES)) != "7":  # it has loaded itself amid the requests
        assert shown in "3456"
        page.cdp.wait("Page.loadEventFired")
    page.click("h1 + p a")
    page.cdp.wait("Page.loadEventFired")
    while page.js("location.search") != "?stop":
        page.cdp.wait("Page.loadEventFired")
    assert not page.js("document.querySelector('meta[http-equiv]')")


def test_hostile_messages_are_text(page):
    for text in HOSTILE:
        say(page.server, text.encode())
    page.open("/shop/console/?stop")
    shown = page.js("[...document.querySelectorAll('#messages tr')].map(row => [...row.cells].map(c => c.innerText))")
    warned = [cells[2].rstrip() for cells in reversed(shown) if cells[1] == "warn"]
    assert warned == [clean(text).rstrip() for text in HOSTILE]
    assert page.js("document.querySelectorAll('script, img, b').length") == 0
    assert page.js("document.characterSet + document.compatMode") == "UTF-8CSS1Compat"


@pytest.mark.parametrize("width", [320, 390, 1024])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screens(page, width, scheme):
    """A phone needs no scrolling to the side, except within tables; text has a contrast of 4.5 at least (WCAG 2)."""
    ask(page, 1)
    say(page.server, b"a message " * 60)
    with page.server.open() as client:
        client.ask("/shop/status/500")
    page.resize(width, 800, mobile=width < 1000)
    page.media(scheme)
    page.open("/shop/console/?stop")
    assert page.js("document.documentElement.scrollWidth") <= width
    style = "selector => getComputedStyle(document.querySelector(selector))"
    paper = page.js(f"({style})('body').backgroundColor")
    assert (brightness(paper) < 40) == (scheme == "dark")
    for selector in ("h1", "p", "dt", "dd", "td.n", "td.none", "td.bad", "td.text", "a"):
        text = page.js(f"({style})({selector!r}).color")
        assert contrast((text, paper)) >= 4.5, f"{selector}: {text} on {paper}"
