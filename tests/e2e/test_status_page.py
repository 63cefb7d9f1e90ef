# SPDX-License-Identifier: Apache-2.0
"""The live page of the plugin status in Chromium: lines move with the load, numbers agree with /status, phones."""

import threading

import pytest

from harness import build
from harness.browser import open_browser
from harness.metrics import needs_status, status_of, status_section
from harness.server import await_true
from harness.tab import checked_tabs

pytestmark = [needs_status, pytest.mark.single_protocol]

FILES = {"a.txt": b"a" * 1000, "<img src=x onerror=document.title='broken'>": b"x"}
CHARTS = ["requests", "latency", "connections", "bytes", "errors", "memory", "workers"]
PICTURES = build.TOP / "build" / "screenshots"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", THE LIVE PAGE IS NOT SEEN") as browser:
        yield browser


@pytest.fixture
def look(browser, serve):
    """Opens the live page of a server; what the tab did is checked at the end."""

    def make(width=1024, height=1400, settings=None, scheme="light", **keys):
        config = {"plugins/status/status.conf": status_section(**{"Paths": "On", **keys})}
        server = serve({"Workers": 2, **(settings or {})}, files=FILES, config=config)
        tab = open_tab(server, width=width, height=height)
        tab.media(scheme)
        return tab.open("/status/")

    with checked_tabs(browser) as open_tab:
        yield make


def await_events(tab, n):
    await_true(lambda: tab.js("statusPage.events") >= n, 20, f"{n} events")


def value(tab, name):
    return float(tab.js(f"document.querySelector('#{name}').dataset.value"))


def last(tab, chart):
    """The newest values of a chart, by the names of its lines."""
    return tab.js(f"statusPage.charts.{chart}.last")


class Load:
    """A client that asks until the end."""

    def __init__(self, server, path="/a.txt"):
        self.server, self.path, self.ends, self.count = server, path, threading.Event(), 0

    def run(self):
        while not self.ends.is_set():
            with self.server.connect() as client:
                for _ in range(500):  # less than MaxKeepAliveRequest
                    self.count += client.ask(self.path).status == 200
                    if self.ends.is_set():
                        break

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join(30)


def test_lines_move_with_the_load(look):
    """All charts have lines; requests, bytes and latency are zero or unknown before the load, and with it not."""
    tab = look()
    await_events(tab, 3)
    assert last(tab, "requests")["all"] < 5
    with Load(tab.server) as load:
        await_true(lambda: last(tab, "requests")["all"] > 20, 20, "a line that rises")
        await_true(lambda: last(tab, "bytes")["sent"] > 20_000, 20, "bytes")
        await_true(lambda: last(tab, "latency")["p99"] > 0, 20, "a percentile")
        assert max(last(tab, "workers").values()) > 20
        assert last(tab, "connections")["all"] >= 2
        assert value(tab, "rate") > 20 and value(tab, "memory") > 1e6
    assert load.count > 20
    await_true(lambda: last(tab, "requests")["all"] < 5, 20, "a line that falls")
    drawn = tab.js("[...document.querySelectorAll('.chart')].map(chart => chart.querySelectorAll('canvas').length)")
    assert drawn == [2] * len(CHARTS)
    ink = """[...document.querySelectorAll('.chart canvas:first-of-type')].map(canvas =>
        canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte))"""
    assert all(tab.js(ink))


def test_numbers_agree(look):
    """Tiles and tables show what /status says."""
    tab = look()
    with tab.server.connect() as client:
        for _ in range(50):
            client.ask("/a.txt?secret")
        client.ask("/nothing")
        client.ask("/%3Cimg%20src=x%20onerror=document.title='broken'%3E")
        shown = tab.js("statusPage.events")
        await_events(tab, shown + 2)
        status = status_of(client)
    # the question itself has not ended when it is answered
    assert value(tab, "requests") == status["totals"]["requests"]
    assert value(tab, "errors") == status["totals"]["status"]["5xx"] == 0
    assert value(tab, "generation") == status["generation"] == 1
    assert tab.js("statusPage.last.totals.status") == status["totals"]["status"]
    assert tab.js("statusPage.last.totals.sent_body_bytes") == status["totals"]["sent_body_bytes"]
    rows = tab.js("[...document.querySelectorAll('#busiest tr')].map(row => [...row.cells].map(c => c.textContent))")
    assert rows[1][:2] == ["/a.txt", "50"]
    assert [row["path"] for row in status["paths"]["busiest"]][:1] == ["/a.txt"]
    assert "/<img src=x onerror=document.title='broken'>" in {row[0] for row in rows}, "shown as text"
    assert tab.js("document.title") == "Server status" and tab.js("document.images.length") == 0
    assert "secret" not in tab.js("document.body.textContent")
    hosts = tab.js("[...document.querySelectorAll('#hosts tr')].map(row => [...row.cells].map(c => c.textContent))")
    assert hosts[1][0] == "localhost" and hosts[1][2] == "1"
    assert tab.js("document.querySelectorAll('#workers tr').length") == 3


def test_a_host_is_chosen(look):
    tab = look()
    await_events(tab, 2)
    tab.js("""(() => {
        const select = document.querySelector("#host");
        select.value = "localhost";
        select.dispatchEvent(new Event("change"));
    })()""")
    await_events(tab, tab.js("statusPage.events") + 2)
    assert set(last(tab, "requests")) == {"all", "localhost"}
    assert value(tab, "requests") > 0


def test_a_reload_and_an_end(look):
    """The page connects again to the next generation, and says when the server does not answer."""
    tab = look()
    await_events(tab, 2)
    tab.server.baseline += 2
    tab.server.send_signal(1)
    await_true(lambda: value(tab, "generation") == 2, 20, "the next generation")
    tab.server.stop()
    await_true(lambda: tab.js("document.querySelector('#state').className") == "lost", 20, "a word about it")
    tab.seen.clear()
    tab.page.events.clear()  # refused connections are what the test is about


@pytest.mark.parametrize(
    "name, width, scheme", [("light", 1024, "light"), ("dark", 1024, "dark"), ("phone", 375, "dark")]
)
def test_screenshot(look, name, width, scheme):
    """Figures change, so that pictures are kept to be seen; what is compared: nothing overflows, colours, columns."""
    tab = look(width=width, scheme=scheme)
    if width < 500:
        tab.resize(width, 1400, mobile=True)
    with Load(tab.server):
        await_events(tab, 6)
        png = tab.page.screenshot()
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"status-{name}.png").write_bytes(png)
    assert tab.js("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    columns = tab.js("getComputedStyle(document.querySelector('#charts')).gridTemplateColumns.split(' ').length")
    assert columns == (1 if width < 500 else 2)
    back = tab.js("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(245, 246, 248)" if scheme == "light" else "rgb(20, 23, 27)")
