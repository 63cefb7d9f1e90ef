# SPDX-License-Identifier: Apache-2.0
"""The console of a web service in Chromium: it shows what was asked and loads itself again, on any screen."""

import pytest

from harness.browser import open_browser
from harness.services import needs_duda
from harness.tab import brightness, checked_tabs, contrast
from harness.ways import WAYS
from test_duda_console import CONSOLE, HOSTILE, SHOP, clean, say

pytestmark = [needs_duda, pytest.mark.single_protocol]

RESPONSES = "document.querySelector('dd').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", CONSOLES ARE NOT SEEN") as browser:
        yield browser


@pytest.fixture
def tab(browser, serve_services, tmp_path):
    """A tab that looks at the console of the service `shop`; what it did is checked at the end."""
    settings = {"KeepAlive": "Off", "Timeout": "3s"}  # browsers keep connections, and open some that they do not use
    server = WAYS["h1"].start(serve_services, tmp_path, {"shop": SHOP}, settings, keys=CONSOLE)
    with checked_tabs(browser) as open_tab:
        yield open_tab(server)


def ask(tab, count):
    for _ in range(count):
        with tab.server.open() as client:
            assert client.ask("/shop/goods/1").status == 200


def test_it_loads_itself_again(tab):
    ask(tab, 3)
    tab.open("/shop/console/")
    assert tab.js(RESPONSES) == "3"
    ask(tab, 4)
    tab.page.wait("Page.loadEventFired")
    assert tab.js(RESPONSES) == "7"
    tab.click("h1 + p a")
    tab.page.wait("Page.loadEventFired")
    assert tab.js("location.search") == "?stop" and not tab.js("document.querySelector('meta[http-equiv]')")


def test_hostile_messages_are_text(tab):
    for text in HOSTILE:
        say(tab.server, text.encode())
    tab.open("/shop/console/?stop")
    shown = tab.js("[...document.querySelectorAll('#messages tr')].map(row => [...row.cells].map(c => c.innerText))")
    warned = [cells[2].rstrip() for cells in reversed(shown) if cells[1] == "warn"]
    assert warned == [clean(text).rstrip() for text in HOSTILE]
    assert tab.js("document.querySelectorAll('script, img, b').length") == 0
    assert tab.js("document.characterSet + document.compatMode") == "UTF-8CSS1Compat"


@pytest.mark.parametrize("width", [320, 390, 1024])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screens(tab, width, scheme):
    """A phone needs no scrolling to the side, except within tables; text has a contrast of 4.5 at least (WCAG 2)."""
    ask(tab, 1)
    say(tab.server, b"a message " * 60)
    with tab.server.open() as client:
        client.ask("/shop/status/500")
    tab.resize(width, 800, mobile=width < 1000)
    tab.media(scheme)
    tab.open("/shop/console/?stop")
    assert tab.js("document.documentElement.scrollWidth") <= width
    style = "selector => getComputedStyle(document.querySelector(selector))"
    paper = tab.js(f"({style})('body').backgroundColor")
    assert (brightness(paper) < 40) == (scheme == "dark")
    for selector in ("h1", "p", "dt", "dd", "td.n", "td.none", "td.bad", "td.text", "a"):
        text = tab.js(f"({style})({selector!r}).color")
        assert contrast((text, paper)) >= 4.5, f"{selector}: {text} on {paper}"
