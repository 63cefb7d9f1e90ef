# SPDX-License-Identifier: Apache-2.0
"""The live page of the plugin status in Chromium: lines move with the load, numbers agree with /status, phones."""

import threading

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.browser import open_browser
from harness.checked_page import checked_pages
from harness.groups import GROUPS, group
from harness.metrics import needs_status, status_of, status_section
from harness.proxies import TEXT
from harness.server import await_true, section

pytestmark = [needs_status, pytest.mark.browser, pytest.mark.single_protocol]

FILES = {"a.txt": b"a" * 1000, "<img src=x onerror=document.title='broken'>": b"x"}
CHARTS = ["requests", "latency", "connections", "bytes", "errors", "aborted", "memory", "workers"]
PICTURES = build.TOP / "build" / "screenshots"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", THE LIVE PAGE IS NOT SEEN") as browser:
        yield browser


@pytest.fixture
def look(browser, serve):
    """Opens the live page of a server; what it did is checked at the end."""

    def make(width=1024, height=1400, settings=None, scheme="light", **keys):
        config = {"plugins/status/status.conf": status_section(**{"Paths": "On", **keys})}
        server = serve({"Workers": 2, "KeepAliveTimeout": "60s", **(settings or {})}, files=FILES, config=config)
        page = open_page(server, width=width, height=height)
        page.media(scheme)
        return page.open("/status/")

    with checked_pages(browser) as open_page:
        yield make


def await_events(page, n):
    await_true(lambda: page.js("statusPage.events") >= n, 60, f"{n} events")


def value(page, name):
    return float(page.js(f"document.querySelector('#{name}').dataset.value"))


def last(page, chart):
    """The newest values of a chart, by the names of its lines."""
    return page.js(f"statusPage.charts.{chart}.last")


class Load:
    """A client that asks, up to 200 times in a second, until the end."""

    def __init__(self, server, path="/a.txt"):
        self.server, self.path, self.ends, self.count = server, path, threading.Event(), 0

    def run(self):
        while not self.ends.is_set():
            with self.server.connect() as client:
                for _ in range(500):  # less than MaxKeepAliveRequest
                    self.count += client.ask(self.path).status == 200
                    if self.ends.wait(0.005):
                        break

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join(60)


def test_lines_move_with_the_load(look):
    """All charts have lines; requests, bytes and latency are zero or unknown before the load, and with it not."""
    page = look()
    await_events(page, 3)
    await_true(lambda: last(page, "requests")["all"] < 5, 60, "a low line")
    with Load(page.server) as load:
        await_true(lambda: last(page, "requests")["all"] > 20, 60, "a line that rises")
        await_true(lambda: last(page, "bytes")["sent"] > 20_000, 60, "bytes")
        await_true(lambda: last(page, "latency")["p99"] > 0, 60, "a percentile")
        await_true(lambda: max(last(page, "workers").values()) > 20, 60, "a line of a worker")
        await_true(lambda: last(page, "connections")["all"] >= 2, 60, "connections")
        await_true(lambda: value(page, "rate") > 20 and value(page, "memory") > 1e6, 60, "values")
    assert load.count > 20
    await_true(lambda: last(page, "requests")["all"] < 5, 60, "a line that falls")
    drawn = page.js("[...document.querySelectorAll('.chart')].map(chart => chart.querySelectorAll('canvas').length)")
    assert drawn == [2] * len(CHARTS)
    ink = """[...document.querySelectorAll('.chart canvas:first-of-type')].map(canvas =>
        canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte))"""
    assert all(page.js(ink))


def test_numbers_agree(look):
    """Tiles and tables show what /status says."""
    page = look()
    with page.server.connect() as client:
        for _ in range(50):
            client.ask("/a.txt?secret")
        client.ask("/nothing")
        client.ask("/%3Cimg%20src=x%20onerror=document.title='broken'%3E")
        shown = page.js("statusPage.events")
        await_events(page, shown + 2)
        tiles = {name: value(page, name) for name in ("requests", "errors", "generation")}
        totals = page.js("statusPage.last.totals")
        # last: the page's next event counts this question, which has not ended when it is answered
        status = status_of(client)
    assert tiles["requests"] == status["totals"]["requests"]
    assert tiles["errors"] == status["totals"]["status"]["5xx"] == 0
    assert tiles["generation"] == status["generation"] == 1
    assert {name: totals[name] for name in ("status", "sent_body_bytes")} == {
        name: status["totals"][name] for name in ("status", "sent_body_bytes")
    }
    rows = page.js("[...document.querySelectorAll('#busiest tr')].map(row => [...row.cells].map(c => c.textContent))")
    assert rows[1][:2] == ["/a.txt", "50"]
    assert [row["path"] for row in status["paths"]["busiest"]][:1] == ["/a.txt"]
    assert "/<img src=x onerror=document.title='broken'>" in {row[0] for row in rows}, "shown as text"
    assert page.js("document.title") == "Server status" and page.js("document.images.length") == 0
    assert "secret" not in page.js("document.body.textContent")
    hosts = page.js("[...document.querySelectorAll('#hosts tr')].map(row => [...row.cells].map(c => c.textContent))")
    assert hosts[1][0] == "localhost" and hosts[1][2] == "1"
    assert page.js("document.querySelectorAll('#workers tr').length") == 3


def test_a_host_is_chosen(look):
    page = look()
    await_events(page, 2)
    page.js("""(() => {
        const select = document.querySelector("#host");
        select.value = "localhost";
        select.dispatchEvent(new Event("change"));
    })()""")
    await_events(page, page.js("statusPage.events") + 2)
    assert set(last(page, "requests")) == {"all", "localhost"}
    assert value(page, "requests") > 0


def test_a_reload_and_an_end(look):
    """The page connects again to the next generation, and says when the server does not answer."""
    page = look()
    await_events(page, 2)
    page.server.baseline += 2
    page.server.send_signal(1)
    await_true(lambda: value(page, "generation") == 2, 60, "the next generation")
    page.server.stop()
    await_true(lambda: page.js("document.querySelector('#state').className") == "lost", 60, "a word about it")
    page.seen.clear()
    page.cdp.events.clear()  # refused connections are what the test is about


def test_rows_are_full(look):
    """No tile and no chart is alone in a row, on screens of all widths."""
    page = look()
    await_events(page, 2)
    count = """id => [document.getElementById(id).childElementCount,
        getComputedStyle(document.getElementById(id)).gridTemplateColumns.split(" ").length]"""
    for width in (375, 600, 800, 1024, 1440, 1920):
        page.resize(width, 1000)
        for name in ("tiles", "charts"):
            items, columns = page.js(f"({count})('{name}')")
            assert items % columns == 0, (width, name, items, columns)
        assert page.js("document.documentElement.scrollWidth <= innerWidth"), width


def test_plain_words(look):
    """Times of less than a millisecond, and what counters are called."""
    page = look(settings={"Timeout": "60s"})
    await_events(page, 2)
    assert page.js("[0, 0.042, 0.9996, 3.5, 250, 2500].map(formatMs)") == [
        "0 ms",
        "42 µs",
        "1000 µs",
        "3.50 ms",
        "250 ms",
        "2.50 s",
    ]
    with page.server.connect() as client:
        client.send("GET / HTTP/1.1\r\nHost: a")
        await_true(lambda: "headers of a request" in last(page, "connections"), 60, "the state of a connection")
        client.send("\r\nHost: b\r\n\r\n")
        assert client.response().status == 400
    rows = "[...document.querySelectorAll('#refused td')].map(cell => cell.textContent)"
    await_true(lambda: page.js(rows) == ["rejected: malformed", "1"], 60, "a row")


def read_rows(page, table, *columns):
    """The texts of some cells of each row."""
    rows = page.js(f"[...document.querySelectorAll('#{table} tr')].map(row => [...row.cells].map(c => c.textContent))")
    return [[row[at] for at in columns] for row in rows[1:]]


def test_servers_of_groups(browser, serve):
    """A row for the group and one for each server, with what became of the requests; seen on a phone, too."""
    with Backend(answer(b"hello", TEXT)) as one, Backend(answer(b"no", TEXT, status=503, reason="Busy")) as two:
        keys = {"Balance": "RoundRobin", "EjectAfter": 4, "EjectTime": "5m"}
        config = {"plugins/status/status.conf": status_section(), GROUPS: group([one, two], **keys)}
        server = serve({"Workers": 1}, text=section("PROXY", {"Match": "/app", "To": "http://app"}), config=config)
        with checked_pages(browser) as open_page, server.connect() as client:
            page = open_page(server, width=1024, height=2200).open("/status/")
            assert sorted(client.ask("/app").status for _ in range(8)) == [200] * 4 + [503] * 4
            expected = [
                ["app", one.address, "up", "4", "0"],
                ["app", two.address, "ejected", "4", "4"],
                ["app", "all", "", "0", "0"],
            ]
            await_true(lambda: sorted(read_rows(page, "servers", 0, 1, 2, 3, 5)) == sorted(expected), 60, "the servers")
            names = {f"http://app {each.address}" for each in (one, two)}
            assert names <= {name for name, in read_rows(page, "backends", 1)}
            PICTURES.mkdir(parents=True, exist_ok=True)
            (PICTURES / "status-servers.png").write_bytes(page.cdp.screenshot())
            page.resize(375, 1800, mobile=True)
            assert page.js("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"


@pytest.mark.parametrize(
    "name, width, scheme",
    [
        pytest.param("light", 1024, "light", marks=pytest.mark.slow),
        pytest.param("dark", 1024, "dark", marks=pytest.mark.slow),
        ("phone", 375, "dark"),
    ],
)
def test_screenshot(look, name, width, scheme):
    """Figures change, so that pictures are kept to be seen; what is compared: nothing overflows, colours, columns."""
    page = look(width=width, scheme=scheme)
    if width < 500:
        page.resize(width, 1400, mobile=True)
    with Load(page.server):
        await_events(page, 6)
        png = page.cdp.screenshot()
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"status-{name}.png").write_bytes(png)
    assert page.js("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    columns = page.js("getComputedStyle(document.querySelector('#charts')).gridTemplateColumns.split(' ').length")
    assert columns == (1 if width < 500 else 2)
    back = page.js("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(245, 246, 248)" if scheme == "light" else "rgb(20, 23, 27)")
