# SPDX-License-Identifier: Apache-2.0
"""The page of a listing in Chromium: rows, order after a click, filter, colours, phones, hostile names, long lists."""

import os
import urllib.parse

import pytest

from harness import build
from harness.browser import open_browser
from harness.checked_page import COMPLAINTS, CheckedPage, brightness, checked_pages, contrast
from harness.content import MOST
from harness.listing import HOSTILE, configure, fill
from harness.server import Server
from test_browser import COLUMNS, FONTS, REFERENCE, RENEW, ROWS, CELLS_TOLERATED, count_differences
from test_listing_page import MODULE, THEMES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.single_protocol,
    pytest.mark.skipif(not MODULE.exists(), reason=f"the preset {build.PRESET} does not build dirlisting"),
]

README = b"""monkey 2.0.0

The source, its signature, and packages for Debian.

    sha256sum -c SHA256SUMS

<b>Markup</b> & "quotes" are shown as text.
"""
FILES = {
    "changes/": None,
    "packages/": None,
    "Pictures/": None,
    "README": README,
    "SHA256SUMS": b"s" * 312,
    "installation.pdf": b"p" * 912_345,
    "jungle.webm": b"v" * 3_456_789,
    "logo.svg": b"l" * 2210,
    "monkey-2.0.0.tar.gz": b"t" * 1_834_221,
    "monkey-2.0.0.tar.gz.asc": b"a" * 833,
    "part 2.txt": b"2" * 20_000,
    "part 10.txt": b"1" * 15_000,
    "server.c": b"c" * 12_001,
    "theme song.flac": b"f" * 5_100_200,
}
NAMES = [  # as they are sorted
    "changes", "packages", "Pictures", "installation.pdf", "jungle.webm", "logo.svg", "monkey-2.0.0.tar.gz",
         "monkey-2.0.0.tar.gz.asc", "part 2.txt", "part 10.txt", "README", "server.c", "SHA256SUMS", "theme song.flac"]

SHOWN = "[...document.querySelectorAll('#entries tr')].filter(row => !row.hidden).map(row => row.cells[0].textContent)"
FILTER = """(() => {
    const box = document.querySelector("#filter"), started = performance.now();
    box.value = "%s";
    box.dispatchEvent(new Event("input"));
    document.body.getBoundingClientRect();
    return performance.now() - started;
})()"""
ORDERS = "[...document.querySelectorAll('th')].map(head => head.getAttribute('aria-sort'))"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", PAGES OF LISTINGS ARE NOT SEEN") as browser:
        yield browser


class Listing(CheckedPage):
    """The page of a listing."""

    def shown(self):
        return self.js(SHOWN)


@pytest.fixture
def look(browser, serve, tmp_path):
    """Lists `files`, or what `root` has, and opens their page; what it did is checked at the end."""

    def make(files=None, keys=None, root=None, **rest):
        if root is None:
            root = tmp_path / "listed"
            fill(root, FILES if files is None else files)
        # browsers keep connections for a while, and open some that they do not use
        settings = {"DefaultMimeType": "text/plain", "KeepAlive": "Off", "Timeout": "3s"}
        server = serve(settings, root=root, config=configure(keys, root=root), **rest)
        return open_page(server)

    with checked_pages(browser, Listing) as open_page:
        yield make


# ── what is shown ──


@pytest.mark.parametrize("theme", THEMES)
def test_rows(look, theme):
    page = look(keys={"Theme": theme, "ReadMe": "README"}).open()
    assert [name.rstrip("/") for name in page.shown()] == NAMES
    assert page.js("document.compatMode") == "CSS1Compat" and page.js("document.characterSet") == "UTF-8"
    assert page.js("document.querySelector('pre').textContent").lstrip("\n") == README.decode()
    assert page.js("document.querySelectorAll('b').length") == 0, "markup in README is text"
    row = "[...document.querySelectorAll('#entries tr')].find(row => row.textContent.includes('part 2'))"
    assert page.js(f"[...{row}.cells].slice(1).map(cell => cell.textContent)") == ["20 KB", "2020-09-13 02:26"]
    assert page.js(f"{row}.cells[1].title") == "20,000 bytes"


def test_icons(look):
    """Each kind has its own picture, which is in the page itself."""
    page = look().open()
    icon = "row => getComputedStyle(row.querySelector('a'), '::before').maskImage"
    icons = page.js(f"[...document.querySelectorAll('#entries tr')].map({icon})")
    assert all(icon.startswith('url("data:image/svg+xml,') for icon in icons)
    assert len({icons[NAMES.index(name)] for name in NAMES if "." in name or name == "changes"}) == 8
    assert icons[0] == icons[1] == icons[2] != icons[3]


def test_folders(look):
    """Into a folder by its link, and back by the parent's and by the breadcrumbs."""
    page = look()
    fill(page.server.root / "Pictures", {"a & b/": None})
    page.open().click("a[href='Pictures/']")
    page.cdp.wait("Page.loadEventFired")
    page.click("#entries a")
    page.cdp.wait("Page.loadEventFired")
    assert page.js("location.pathname") == "/Pictures/a%20%26%20b/"
    assert page.js("document.querySelector('.nothing').textContent") == "This folder is empty."
    assert page.js("document.querySelector('[aria-current]').textContent") == "a & b"
    page.click(".up a")
    page.cdp.wait("Page.loadEventFired")
    assert page.js("location.pathname") == "/Pictures/"
    page.click("nav a")
    page.cdp.wait("Page.loadEventFired")
    assert page.js("location.pathname") == "/" and not page.js("document.querySelector('.up')")


def test_hostile_names(look):
    """A click on each of them arrives at the bytes of its file."""
    files = {name: b"content of %d" % n for n, name in enumerate(HOSTILE)}
    page = look(files)
    for n in range(len(HOSTILE)):
        page.open()
        assert page.js("document.querySelectorAll('#entries a').length") == len(HOSTILE)
        link = f"document.querySelectorAll('#entries a')[{n}]"
        href = page.js(f"{link}.getAttribute('href')")
        page.js(f"{link}.id = 'this'")
        page.click("#this")
        page.cdp.wait("Page.loadEventFired")
        name = urllib.parse.unquote_to_bytes(href)
        assert page.js("document.body.textContent") == files[name].decode()
        assert page.js("location.href") == f"{page.server.url}/{href}"


# ── order and filter ──


def by(key, names=NAMES, reverse=False):
    """Folders first, then files by a key; equal ones by name."""
    folders = [name for name in names if f"{name}/" in FILES]
    files = [name for name in names if name in FILES]
    return folders + sorted(files, key=key, reverse=reverse)


def test_order_after_a_click(look):
    """Columns are sorted in the page, without another request, and the address remembers it."""
    page = look().open()
    assert page.js(ORDERS) == ["ascending", "none", "none"]
    page.cdp.events.clear()
    page.click("th:nth-child(2) a")
    assert page.shown() == by(lambda name: -len(FILES[name])) and page.js(ORDERS) == ["none", "descending", "none"]
    page.click("th:nth-child(2) a")
    assert page.shown() == by(lambda name: len(FILES[name])) and page.js(ORDERS) == ["none", "ascending", "none"]
    assert page.js("location.search") == "?sort=size&order=asc"
    page.click("th:nth-child(1) a")
    assert page.shown() == NAMES
    page.click("th:nth-child(1) a")
    assert page.shown() == NAMES[2::-1] + NAMES[:2:-1]
    assert not [e for e in page.cdp.events if e["method"] == "Network.requestWillBeSent"]
    page.click("th:nth-child(3) a")
    newest = list(FILES)  # each is an hour older than the one before
    assert page.shown() == [name.rstrip("/") for name in newest]
    again = page.shown()
    page.open(page.js("location.pathname + location.search"))
    assert page.shown() == again and page.js(ORDERS) == ["none", "none", "descending"]


def test_server_and_browser_agree(look):
    """The order after clicks is that of the server's links."""
    page = look()
    for key, column in (("name", 1), ("size", 2), ("date", 3)):
        for order in ("asc", "desc"):
            page.open(f"/?sort={key}&order={order}")
            sorted_by_server = page.shown()
            page.open("/?sort=date&order=asc" if key != "date" else "/?sort=name&order=desc")
            for _ in range(2):
                page.click(f"th:nth-child({column}) a")
                if page.js("location.search") == f"?sort={key}&order={order}":
                    assert page.shown() == sorted_by_server
                    break
            else:
                pytest.fail(f"{key} {order} was not reached by two clicks")


@pytest.mark.parametrize("theme", THEMES)
def test_filter(look, theme):
    page = look(keys={"Theme": theme}).open()
    page.click("#filter")
    page.type("PART")
    assert page.shown() == ["part 2.txt", "part 10.txt"]
    page.js(FILTER % "")
    assert [name.rstrip("/") for name in page.shown()] == NAMES
    page.js(FILTER % "no such thing")
    assert page.shown() == []


def test_filter_says_what_it_found(look):
    page = look().open()
    summary = "document.querySelector('.summary').textContent"
    assert page.js(summary) == "3 folders, 11 files, 11 MB"
    page.press("/")
    assert page.js("document.activeElement.id") == "filter"
    page.type("tar monkey")
    assert page.shown() == ["monkey-2.0.0.tar.gz", "monkey-2.0.0.tar.gz.asc"] and page.js(summary) == "2 of 14 entries"
    page.click("th:nth-child(2) a")
    assert page.shown() == ["monkey-2.0.0.tar.gz", "monkey-2.0.0.tar.gz.asc"]
    page.js("document.querySelector('#filter').focus()")
    page.type(" no such thing")
    assert page.shown() == [] and page.js("getComputedStyle(document.querySelector('#nothing')).display") == "block"
    page.press("Escape")
    assert len(page.shown()) == len(NAMES) and page.js(summary) == "3 folders, 11 files, 11 MB"


def test_keys(look):
    """Arrows move through the list; Enter in the box opens the only match."""
    page = look().open()
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert page.js("document.activeElement.textContent") == "packages"
    page.press("ArrowUp")
    page.press("ArrowUp")
    assert page.js("document.activeElement.id") == "filter"
    page.type("sha256")
    page.press("Enter")
    page.cdp.wait("Page.loadEventFired")
    assert page.js("location.pathname") == "/SHA256SUMS"


# ── without script, dark, on a phone ──


@pytest.mark.parametrize("theme", THEMES)
def test_without_script(look, theme):
    """Everything but the filter is there; the headings are links that sort."""
    page = look(keys={"Theme": theme})
    page.cdp.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open()
    assert [name.rstrip("/") for name in page.shown()] == NAMES
    assert not page.js("document.querySelector('#filter').checkVisibility()")
    page.click("th:nth-child(2) a")
    page.cdp.wait("Page.loadEventFired")
    assert page.js("location.search") == "?sort=size&order=desc"
    assert [name.rstrip("/") for name in page.shown()] == by(lambda name: -len(FILES[name]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours(look, scheme):
    """Dark where that is preferred; text has a contrast of 4.5 at least (WCAG 2 level AA)."""
    page = look()
    page.media(scheme)
    page.open()
    color = "selector => getComputedStyle(document.querySelector(selector))"
    paper = page.js(f"({color})('body').backgroundColor")
    card = page.js(f"({color})('.card').backgroundColor")
    assert (brightness(paper) < 40) == (brightness(card) < 50) == (scheme == "dark")
    for selector, behind in (("h1", paper), (".summary", paper), ("td a", card), ("td + td", card), ("th a", card)):
        text = page.js(f"({color})({selector!r}).color")
        assert contrast((text, behind)) >= 4.5, f"{selector}: {text} on {behind}"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [320, 375])
def test_phone(look, width, theme):
    """Nothing is wider than the screen, whatever the names are; rows can be hit with a thumb."""
    long = {"w" * 200 + ".txt": b"", "two words " * 20 + ".txt": b"x", **FILES}
    page = look(long, {"Theme": theme, "ReadMe": "README", "Archives": "tar tar.gz"})
    page.resize(width, 700, mobile=True)
    for path in ("/", "/Pictures/"):
        page.open(path)
        assert page.js("document.documentElement.scrollWidth") <= width
        inside = f"node => node.getBoundingClientRect().right <= {width} && node.getBoundingClientRect().left >= 0"
        assert page.js(f"[...document.querySelectorAll('td a, th a, input, h1, pre')].every({inside})")
    page.open()
    if theme == "default":
        heights = "[...document.querySelectorAll('td a')].map(a => a.getBoundingClientRect().height)"
        assert min(page.js(heights)) >= 30
        assert page.js("document.querySelector('td time').checkVisibility()"), "dates are shown, too"


def test_accessibility(look):
    """What a screen reader gets: the tree has the table, its columns and orders, and labels."""
    page = look()
    fill(page.server.root / "Pictures", {"x.png": b""})
    page.cdp.call("Accessibility.enable")
    for width in (1024, 375):
        page.resize(width, 700)
        page.open("/Pictures/")
        nodes = page.cdp.call("Accessibility.getFullAXTree")["nodes"]
        found = {(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")}
        assert {
            ("table", "Index of /Pictures/"),
            ("heading", "Pictures"),
            ("navigation", "Path"),
            ("searchbox", "Filter by name"),
            ("link", "x.png"),
            ("link", "Parent folder"),
        } <= found, found
        assert "row" in {role for role, _ in found} and "columnheader" in {role for role, _ in found}
    page.cdp.call("Accessibility.disable")


# ── long lists ──


def test_unsorted(look):
    """What the server cannot sort, the browser does."""
    files = {f"file number {n:04}.txt": b"" for n in range(1200)}
    page = look(files, {"MaxListing": "64K"}).open()
    assert "too large to be sorted" in page.js("document.querySelector('.note').textContent")
    assert page.js("document.querySelector('.summary').textContent") == "1,200 entries"
    assert len(page.shown()) == 1200 and page.shown() != sorted(files)
    page.click("th:nth-child(1) a")
    assert page.shown() == sorted(files)
    page.click("th:nth-child(1) a")
    assert page.shown() == sorted(files, reverse=True)


@pytest.mark.parametrize("count, part", [(6000, "999"), pytest.param(MOST, "9999", marks=pytest.mark.slow)])
def test_many_entries(look, make_many_root, count, part):
    """All of them are there: a part is shown, the rest as the page is scrolled; filter and order stay quick."""
    page = look(keys={"MaxListing": "64M"}, root=make_many_root(count)).open("/many/")
    assert page.js("document.querySelector('.summary').textContent").startswith(f"{count:,} files")
    shown = page.js("document.querySelectorAll('#entries tr').length")
    assert 1000 <= shown <= 3000
    assert page.shown()[:3] == ["file-0.txt", "file-1.txt", "file-2.txt"]
    took = page.js(FILTER % part)
    wanted = [f"file-{n}.txt" for n in range(count) if part in str(n)]
    assert page.shown() == wanted
    assert page.js("document.querySelector('.summary').textContent") == f"{len(wanted)} of {count:,} entries"
    assert took < 20_000  # ms; a filter that looks at all rows for each row takes minutes
    page.press("Escape")
    page.js("document.querySelector('th a').click()")
    assert page.shown()[0] == f"file-{count - 1}.txt"
    page.js("""new Promise(done => {
        const rows = document.querySelector("#entries").rows;
        const step = () => {
            window.scrollTo(0, document.documentElement.scrollHeight);
            rows.length >= 5000 ? done() : setTimeout(step, 10);
        };
        step();
    })""")
    assert page.shown()[4999] == f"file-{count - 5000}.txt"


# ── what it looks like ──

PICTURES = {
    "light": (1024, 768, "light"),
    "dark": (1024, 768, "dark"),
    "phone": (375, 768, "light"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_screenshot(look, name):
    """Compared with a reference, cell by cell, as the tour of the sample site."""
    width, height, scheme = PICTURES[name]
    page = look(keys={"ReadMe": "README", "Archives": "tar.gz"})
    page.resize(width, height)
    page.media(scheme)
    page.open()
    page.cdp.call("Page.setBypassCSP", enabled=True)
    page.open()
    page.js(FONTS)
    page.js("document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(done)))")
    png = page.cdp.screenshot()
    reference = REFERENCE.with_name(f"listing-{name}.png")
    if os.environ.get(RENEW):
        reference.write_bytes(png)
    differences = count_differences(page.cdp, png, reference.read_bytes())
    if differences > CELLS_TOLERATED:
        new = build.TOP / "build" / "screenshots" / reference.name
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(png)
        pytest.fail(f"{differences} of {COLUMNS * ROWS} cells look different from {reference}; how it looks now: {new}")


# ── over TLS ──


@pytest.mark.skipif(not build.speaks("tls") or not build.speaks("h2"), reason="NOT TESTED: no TLS or no HTTP/2")
def test_one_shot_over_https(browser, tmp_path):
    """`monkey DIR --list --https`: the browser takes HTTP/2, and the policy holds there, too."""
    fill(tmp_path / "listed", {**FILES, "README.md": README})
    server = Server("-o", tmp_path / "listed", "--list", "--https", "-l", "127.0.0.1:0")
    page = browser.page()
    page.call("Log.enable")
    page.call("Security.setIgnoreCertificateErrors", ignore=True)
    try:
        page.navigate(f"https://127.0.0.1:{server.port}/")
        assert page.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol") == "h2"
        assert page.evaluate(SHOWN) == [*NAMES[:10], "README", "README.md", *NAMES[11:]]
        page.evaluate("document.querySelector('th:nth-child(2) a').click()")
        assert page.evaluate(SHOWN)[3] == "theme song.flac"
        assert page.evaluate("document.querySelector('pre').textContent").lstrip("\n") == README.decode()
        assert not [e for e in page.events if e["method"] in COMPLAINTS]
    finally:
        page.close()
        server.stop()
