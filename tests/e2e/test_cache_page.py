# SPDX-License-Identifier: Apache-2.0
"""The page of the file cache in Chromium: figures move, files are loaded and removed after a question, phones."""

import pytest

from harness import build
from harness.browser import open_browser
from harness.caching import await_settled, needs_cache, start_cached
from harness.checked_page import brightness, checked_pages, contrast
from harness.server import await_true

pytestmark = [needs_cache, pytest.mark.browser, pytest.mark.single_protocol]

PICTURES = build.TOP / "build" / "screenshots"
FILES = {"a.txt": b"a" * 1000, "<img src=x onerror=document.title='broken'>": b"x"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", THE PAGE OF THE CACHE IS NOT SEEN") as browser:
        yield browser


@pytest.fixture
def look(browser, serve):
    def make(width=1024, height=1000, scheme="light"):
        settings = {"KeepAliveTimeout": "5s"}  # the browser keeps connections when its page is closed
        server = start_cached(serve, "Revalidate 1s", settings, rules=[{"Admin": "/cache"}], files=FILES)
        await_settled(server.root)
        with server.connect() as client:
            assert client.ask("/cache/add?directory=/", method="POST", body=b"").status == 200
            for _ in range(5):
                client.ask("/a.txt")
        page = open_page(server, width=width, height=height)
        page.media(scheme)
        page.open("/cache/")
        await_true(lambda: page.js("cachePage.events >= 2 && cachePage.lists >= 1"), 20, "events and a list")
        return page

    with checked_pages(browser) as open_page:
        yield make


def paths(page):
    return page.js("[...document.querySelectorAll('#hottest td:first-child')].map(cell => cell.textContent)")


def test_figures(look):
    page = look()
    assert paths(page)[0] == "/a.txt" and len(paths(page)) >= 2
    assert float(page.js("document.querySelector('#ratio').dataset.value")) > 0
    assert page.js("document.title") == "File cache"


def test_changes(look):
    page = look()
    page.js("document.querySelector('#path').value = '/a.txt'")
    page.click("#reset")
    assert page.js("document.querySelector('#confirm').open")
    page.click("#confirm button[value=no]")
    await_true(lambda: not page.js("document.querySelector('#confirm').open"), 20, "the end of the question")
    assert "/a.txt" in paths(page)
    page.click("#reset")
    page.click("#yes")
    await_true(lambda: page.js("cachePage.result") == "1 removed", 20, "the removal")
    await_true(lambda: "/a.txt" not in paths(page), 20, "a list without it")
    page.click("#add")
    await_true(lambda: page.js("cachePage.result") == "1 loaded", 20, "the file")


def test_keyboard(look):
    """All of it works without a mouse: Enter in the field loads, the dialog begins at Cancel, Escape leaves it."""
    page = look()
    page.js("document.querySelector('#path').focus()")
    page.type("/a.txt")
    press(page, "Enter")
    await_true(lambda: page.js("cachePage.result") == "1 loaded", 20, "the file")
    press(page, "Tab")
    press(page, "Tab")
    assert page.js("document.activeElement.id") == "reset"
    press(page, "Enter")
    assert page.js("document.querySelector('#confirm').open && document.activeElement.value") == "no"
    press(page, "Escape")
    await_true(lambda: not page.js("document.querySelector('#confirm').open"), 20, "the end of the question")
    assert page.js("cachePage.result") == "1 loaded" and page.js("document.activeElement.id") == "reset"
    press(page, "Enter")
    press(page, "Tab")
    press(page, "Enter")
    await_true(lambda: page.js("cachePage.result") == "1 removed", 20, "the removal")


KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, "")}


def press(page, key):
    """A key with its code: Chromium does with it what the focused element does by default."""
    code, text = KEYS[key]
    for kind in ("keyDown", "keyUp"):
        more = {"text": text} if text and kind == "keyDown" else {}
        page.cdp.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)


def test_errors_are_shown(look):
    page = look()
    page.js("document.querySelector('#path').value = '/none'")
    page.click("#add")
    await_true(lambda: page.js("cachePage.result") == "/none: there is no such file", 20, "the error")
    assert page.js("document.querySelector('#result').classList.contains('failed')")


SIZES = [("wide", 1280, "light"), ("dark", 1024, "dark"), ("phone", 360, "light")]


@pytest.mark.parametrize("name, width, scheme", SIZES)
def test_pictures(look, name, width, scheme):
    page = look(width=width, scheme=scheme)
    if width < 500:
        page.resize(width, 1400, mobile=True)
    back = page.js("getComputedStyle(document.body).backgroundColor")
    assert (brightness(back) < 80) == (scheme == "dark")
    text = page.js("getComputedStyle(document.body).color")
    assert contrast([text, back]) > 7
    assert page.js("document.documentElement.scrollWidth <= window.innerWidth")
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"cache-{name}.png").write_bytes(page.cdp.screenshot())
