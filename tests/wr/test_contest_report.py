# SPDX-License-Identifier: Apache-2.0
"""The page of a contest: ranks, where ours loses, what was excluded; what is published of a run. In headless Chromium
its tables sort, its boxes hide servers, and nothing is fetched. Pictures of it are left in build/screenshots."""

import json
import lzma
import struct

import pytest
from click.testing import CliRunner
from test_report import Reader

import sample_results
from harness.browser import open_browser
from processes import TOP, run_wr
from watch_resources import WrError, report, report_data
from watch_resources.ranks import ONE, Span, rank

PICTURES = TOP / "build" / "screenshots"
SERVERS = {"monkey": 5.0, "monkey+cache": 4.0, "nginx": 8.0, "lighttpd": 3.0}
PLAN = {"contest": "small", "text": "some servers", "servers": list(SERVERS), "workloads": ["W1"], "rounds": 5}


# ── ranks ──


def test_equal_where_intervals_overlap():
    spans = {"a": ONE, "b": Span(1.1, 0.9, 1.3), "c": Span(1.5, 1.2, 1.8), "d": Span(2.5, 2, 3)}
    assert rank(spans) == {"a": 1, "b": 1, "c": 2, "d": 4}
    assert rank(spans, more_is_better=True) == {"a": 3, "b": 2, "c": 2, "d": 1}


def test_ranks_without_intervals_are_equal():
    assert set(rank({"a": ONE, "b": Span(0.1, 0, float("inf")), "c": Span(9, 0, float("inf"))}).values()) == {1}


def test_spans_are_inverted():
    assert Span(2, 1, 4).invert() == (0.5, 0.25, 1) and Span(2, 0, float("inf")).invert() == (0.5, 0, float("inf"))


# ── the page ──


def add_pairs(sample, workload, servers, clients=64, count=5):
    first, *others = servers
    for _ in range(count):
        for other in others:
            pair = [sample.add_round(workload, name, clients, servers[name]) for name in (first, other)]
            sample.add_pair(workload, *pair)


def make_sample():
    sample = sample_results.Sample(seed=7).add_head(SERVERS)
    sample.records = [each for each in sample.records if each["type"] != "workload"]
    sample.records[0]["settings"] = {"plan": PLAN}
    sample.add("workload", name="W1", text="13 bytes", variants=[])
    sample.add("workload", name="W1-wrk", text="13 bytes; by wrk", witness_of="W1")
    sample.add("workload", name="A3", text="200 KB", clients=10, steps=[100])
    add_pairs(sample, "W1", SERVERS)
    add_pairs(sample, "W1-wrk", {**SERVERS, "nginx": 3.5})
    for clients in (10, 100):
        add_pairs(sample, "A3", SERVERS, clients)
    sample.add("exclusion", server="G-WAN", workload="", kind="absent", reason="its source is not published")
    for workload in ("W1", "A3"):
        sample.add("exclusion", server="busybox", workload=workload, kind="disqualified",
                   reason="answers HEAD with a body")
        sample.add("qualification", server="nginx", workload=workload, features={"ranges": "yes", "validators": "etag"})
    sample.add("counts", server="nginx", pss_kb=5000, dirty_kb=900, binary_kb=1200, calls=6.0, connection_bytes=500,
               crowd_dirty_kb=9000, start_ms=12.5, idle_cpu_us=3.0, idle_wakeups=1.0)
    return sample


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    sample = make_sample()
    sample.path = sample.write(tmp_path_factory.mktemp("contest") / "results.jsonl")
    return sample


@pytest.fixture(scope="module")
def page(sample):
    return report.make_page(sample.path)


def rows_of(page, table):
    head, *rows = Reader(page).tables[table]
    return head, {row[0]: row for row in rows}


def test_what_loses_comes_first(page):
    """The best variant of ours counts; a server that is not better with its whole interval is not named."""
    assert Reader(page).sections[0] == "losses"
    head, *rows = Reader(page).tables["losses-table"]
    costs = [row for row in rows if row[head.index("value")].startswith("CPU")]
    assert [row[0] for row in costs] == ["W1", "A3, 10", "A3, 100"]
    for row in costs:
        assert (row[head.index("ours")], row[head.index("the best")]) == ("monkey+cache", "lighttpd")
        assert row[head.index("rank")] == 2 and row[-1] == pytest.approx(4 / 3, rel=0.05)


def test_nothing_is_lost(tmp_path):
    sample = sample_results.Sample().add_head({"monkey": 3, "nginx": 8})
    sample.records[0]["settings"] = {"plan": PLAN}
    add_pairs(sample, "W1", {"monkey": 3, "nginx": 8})
    page = report.make_page(sample.write(tmp_path / "r.jsonl"))
    assert "No server was better than monkey with its whole interval" in page and "losses-table" not in page


def test_ranks(page):
    head, rows = rows_of(page, "ranks-cost")
    assert head == ["server", "W1", "A3, 10", "A3, 100"]
    values = {name: row[1] for name, row in rows.items() if isinstance(row[1], float)}
    assert sorted(values, key=values.get) == ["lighttpd", "monkey+cache", "monkey", "nginx"]
    assert "2 (4." in page or "2 (3.9" in page, "the rank, and the value in brackets"
    assert rows["G-WAN"][1:] == ["absent"] * 3 and rows["busybox"][1:] == ["disqualified"] * 3
    assert set(Reader(page).tables) >= {"ranks-rps", "ranks-p99", "ranks-memory"}


def test_exclusions_and_features(page):
    _, rows = rows_of(page, "exclusions")
    assert rows["busybox"][1:] == ["W1, A3", "disqualified", "answers HEAD with a body"] and rows["G-WAN"][1] == "all"
    assert rows_of(page, "qualifications")[1]["nginx"] == ["nginx", "W1, A3", "yes", "etag"]
    assert rows_of(page, "counts-table")[1]["nginx"][1] == 12.5


def test_the_second_witness(page):
    assert "The ranks of W1 and W1-wrk differ for " in page
    head, rows = rows_of(page, "witness-W1_2d_wrk")
    assert rows["nginx"][1] == 4 and rows["nginx"][3] < 4


def test_each_chart_leads_to_its_rows(page, sample):
    reader = Reader(page)
    names = set(reader.sections)
    figures = page.count("<figure ")
    assert figures == page.count(">command</a>") == page.count(">rounds</a>") > 10
    assert all(each[1:] in names for each in reader.fetched if each.startswith(("#rows-", "#commands-")))
    text = page.partition('id="rows-W1"')[2].partition("</pre>")[0]
    rounds = [each for each in sample.records if each["type"] == "round" and each["workload"] == "W1"]
    assert text.count("&quot;n&quot;: ") == len(rounds)


def test_values_of_bars_and_strips(page, sample):
    charts = Reader(page).charts
    for line in charts["split-W1-64-chart"]:
        rounds = [each for each in sample.records if each["type"] == "round" and each["workload"] == "W1"
                  and each["server"] == line["name"]]
        middle = report_data.median(each["cost_us"]["total"] for each in rounds)
        assert sum(line["x"]) == pytest.approx(middle, rel=0.02)
    for line in charts["strips-W1-64-chart"]:
        assert line["y"] == pytest.approx([0.9] * 19) and line["x"][-1] == 1.9


def test_nothing_is_fetched_and_one_script_is_permitted(page):
    reader = Reader(page)
    assert reader.tags.count("script") == 1 and "script-src 'sha256-" in page
    assert not {"link", "img", "iframe", "object"} & set(reader.tags)
    assert all(each.startswith("#") for each in reader.fetched)
    names = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(names) == len(set(names))


# ── what is published ──


def run(*arguments):
    return CliRunner().invoke(report.command, [str(each) for each in arguments])


@pytest.mark.slow
def test_publish(sample, tmp_path):
    done = run(sample.path, "--publish", tmp_path)
    place = tmp_path / "2026-11-20"
    assert (done.exit_code, done.output) == (0, f"wrote {place}\n")
    assert sorted(path.name for path in place.iterdir()) == ["README.md", "results.jsonl.xz"]
    kept = [json.loads(line) for line in lzma.open(place / "results.jsonl.xz", "rt")]
    assert [each["type"] for each in kept] == [each["type"] for each in sample.records]
    assert not any(each["samples"] or each["hdr"] for each in kept if each["type"] == "round")
    text = (place / "README.md").read_text()
    assert text.index("## Where monkey loses") < text.index("## Ranks") and "&quot;n&quot;" not in text
    done = run(sample.path, "--png", tmp_path / "charts")
    pictures = list((tmp_path / "charts").iterdir())
    assert done.exit_code == 0 and len(pictures) == len(Reader(report.make_page(sample.path)).charts)
    for path in pictures:
        data = path.read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack_from(">II", data, 16)[0] > 1000
    error = run(sample.path, "--publish", tmp_path).exception
    assert isinstance(error, WrError) and "exists: the results of a day are not replaced" in str(error)
    assert run(place / "results.jsonl.xz", "-o", tmp_path / "page.html").exit_code == 0


def test_shortened_rows_compare_alike(sample, tmp_path):
    done = run(sample.path, "--rows", tmp_path / "rows.xz")
    assert (done.exit_code, done.output) == (0, f"wrote {tmp_path / 'rows.xz'}\n")
    table = run_wr("compare", tmp_path / "rows.xz", "--markdown").stdout
    assert table and table == run_wr("compare", sample.path, "--markdown").stdout


def test_what_cannot_be_published(sample, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "torn.jsonl.xz").write_bytes(b"\xfd7zXZ\0 no more")
    undated = [{**each, "started": "yesterday"} if each["type"] == "session" else each for each in sample.records]
    (tmp_path / "undated.jsonl").write_text("".join(json.dumps(each) + "\n" for each in undated))
    for words, said in (([sample.path, "--publish", tmp_path / "file"], "cannot be written"),
                        ([tmp_path / "empty.jsonl", "--png", tmp_path / "p"], "holds no rounds"),
                        ([tmp_path / "torn.jsonl.xz", "--png", tmp_path / "p"], "cannot be read"),
                        ([tmp_path / "undated.jsonl", "--publish", tmp_path / "p"], "does not say when")):
        error = run(*words).exception
        assert isinstance(error, WrError) and said in str(error)
    assert run(sample.path, "--png", tmp_path / "p", "--markdown").exit_code == 2
    assert not (tmp_path / "p").exists()


# ── in a browser ──


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def show(browser, page, tmp_path):
    """Opens the page, which asks for nothing else and complains of nothing."""
    opened = []

    def open_page(width=1280, scheme="light"):
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        view = browser.page(width, 1000)
        opened.append(view)
        view.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        view.call("Log.enable")
        view.navigate(f"file://{path}")
        view.evaluate("0")
        methods = [each["method"] for each in view.events]
        assert methods.count("Network.requestWillBeSent") == 1
        assert not {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"} & set(methods)
        return view

    yield open_page
    for view in opened:
        view.close()


COLUMN = """[...document.getElementById("ranks-cost").tBodies[0].rows].map(row => row.cells[%d].textContent)"""
CLICK = """document.querySelectorAll("#ranks-cost thead button")[%d].click()"""


@pytest.mark.slow
def test_tables_sort(show):
    """By value, downwards at the second click, and what has no value comes last; then by name."""
    view = show()
    view.evaluate(CLICK % 1)
    upwards = view.evaluate(COLUMN % 0)
    assert upwards[:4] == ["lighttpd", "monkey+cache", "monkey", "nginx"] and set(upwards[4:]) == {"G-WAN", "busybox"}
    assert view.evaluate('document.querySelector("#ranks-cost th:nth-child(2)").ariaSort') == "ascending"
    view.evaluate(CLICK % 1)
    assert view.evaluate(COLUMN % 0)[:4] == upwards[:4][::-1]
    view.evaluate(CLICK % 0)
    assert view.evaluate(COLUMN % 0) == sorted(upwards, key=str.lower)


VISIBLE = """[...document.querySelectorAll("#%s tbody tr")].filter(row => row.checkVisibility()).map(row => row.cells[0]
    .textContent)"""
SHOWN = """[...document.querySelectorAll('[id^="curves-A3-cost-series-"]')].map(part =>
    getComputedStyle(part).display != "none")"""


@pytest.mark.slow
def test_servers_are_filtered(show):
    """In tables, charts and legends; and they come back."""
    view = show()
    assert view.evaluate('document.getElementById("filter").checkVisibility()')
    click = """[...document.querySelectorAll("#filter label")].find(label =>
        label.textContent.trim() == "nginx").click()"""
    assert view.evaluate(SHOWN) == [True] * 4
    view.evaluate(click)
    for table in ("ranks-cost", "cost-W1-table"):
        names = view.evaluate(VISIBLE % table)
        assert "nginx" not in names and {"monkey", "lighttpd"} <= set(names)
    assert view.evaluate(SHOWN) == [name != "nginx" for name in SERVERS]
    legend = """[...document.querySelectorAll("#curves-A3-cost .legend li")].filter(item =>
        item.checkVisibility()).length"""
    assert view.evaluate(legend) == 3
    view.evaluate(click)
    assert view.evaluate(SHOWN) == [True] * 4 and "nginx" in view.evaluate(VISIBLE % "ranks-cost")


@pytest.mark.slow
@pytest.mark.parametrize("width, scheme, name", [(1280, "light", "light"), (1280, "dark", "dark"),
                                                 (360, "light", "phone")])
def test_fits_and_is_drawn(show, width, scheme, name):
    """One of the two pictures of each chart is as wide as the page; no text of it is too small."""
    view = show(width, scheme)
    assert view.evaluate("document.documentElement.scrollWidth") == width
    drawn = view.evaluate("""[...document.querySelectorAll("figure")].map(figure =>
        [...figure.querySelectorAll("svg.chart")].filter(chart => chart.checkVisibility())
        .map(chart => chart.getBoundingClientRect().width))""")
    assert drawn and all(len(each) == 1 for each in drawn)
    page_width = view.evaluate('document.querySelector("main").clientWidth')
    assert all(each[0] >= 0.85 * page_width for each in drawn)
    smallest = view.evaluate("""Math.min(...[...document.querySelectorAll("svg.chart text")].filter(text =>
        text.checkVisibility()).map(text => {
            const {a, b} = text.getScreenCTM();
            return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
        }))""")
    assert smallest > 7
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"contest-{name}.png").write_bytes(view.screenshot())


@pytest.mark.slow
def test_print(show):
    """On paper there are no boxes, and tables are whole."""
    view = show()
    view.call("Emulation.setEmulatedMedia", media="print")
    assert not view.evaluate('document.getElementById("filter").checkVisibility()')
    assert view.evaluate("""[...document.querySelectorAll(".scroll")].every(each => getComputedStyle(each).overflowX ==
        "visible")""")
    assert view.evaluate("""[...document.querySelectorAll("figure")].every(figure =>
        [...figure.querySelectorAll("svg.chart")].filter(chart => chart.checkVisibility()).length == 1)""")
