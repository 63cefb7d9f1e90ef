# SPDX-License-Identifier: Apache-2.0
"""`wr report`: the page holds the values of its file, needs nothing else, and escapes what it was given. In headless
Chromium its curves stand where the values say."""

import html.parser
import json
import math
import pathlib
import re
import sys

import pytest
from click.testing import CliRunner

import sample_results
from harness.browser import open_browser
from watch_resources import WrError, charts, report, report_data, stats
from watch_resources.report_parts import Listing, Table, escape_markdown, make_name, significant

PURE = (charts, "line_chart"), (charts, "dot_chart"), (stats, "log_interval")
SECTIONS = ["cost", "curves", "latency", "memory", "marks", "measured", "rounds"]
EVIL = '</script><img src=//evil.example/x onerror=alert(1)> "\'&| `a` $x^2$ \u202e\ud800\x00#010001 id="x" url(#y)'


@pytest.fixture(scope="module", autouse=True)
def draw_once():
    """Draws equal charts of different pages once: these functions depend on their arguments only, and matplotlib takes
    most of the time of a page. test_same_file_same_page calls them again."""
    known, functions = {}, {}

    def remember(function):
        def call(*arguments):
            key = function.__name__, repr(arguments)
            if key not in known:
                known[key] = function(*arguments)
            return known[key]
        return call

    with pytest.MonkeyPatch.context() as patch:
        for module, name in PURE:
            functions[name] = getattr(module, name)
            patch.setattr(module, name, remember(functions[name]))
        yield functions


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "results.jsonl"
    sample = sample_results.make_sample(path)
    sample.path = path
    return sample


@pytest.fixture(scope="module")
def page(sample):
    return report.make_page(sample.path)


def rounds_of(sample, workload, server, clients):
    return [each for each in sample.records if each["type"] == "round" and each["workload"] == workload
            and each["server"] == server and each["clients"] == clients]


# ── the page as text ──


class Reader(html.parser.HTMLParser):
    """Tables by their id, as rows of texts and values; the data of charts; all attributes that could fetch."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.charts, self.fetched, self.tags, self.sections, self.values = {}, {}, [], [], [], []
        self.rows = self.cell = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.fetched += [attrs[key] for key in ("src", "href", "xlink:href", "srcset", "data") if key in attrs]
        if tag == "section":
            self.sections.append(attrs["id"])
        elif tag == "figure":
            self.charts[attrs["id"]] = json.loads(attrs["data-series"])
        elif tag == "table":
            self.rows = self.tables[attrs["id"]] = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.cell = float(attrs["data-value"]) if "data-value" in attrs else ""
            self.rows[-1].append(self.cell)

    def handle_data(self, text):
        if isinstance(self.cell, str):
            self.cell += text
            self.rows[-1][-1] = self.cell

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None


def test_structure(page):
    """A later page builds on the names of sections, tables and charts."""
    reader = Reader(page)
    assert [name for name in reader.sections if "-" not in name] == SECTIONS
    assert "cost-W1" in reader.sections and "curves-W3" in reader.sections
    assert set(reader.charts) == {"cost-W1-chart", "latency-W1-chart", "latency-W3-chart", "memory-W1-chart",
                                  "memory-W3-chart", "curves-W3-rps", "curves-W3-cost", "curves-W3-memory",
                                  "curves-W3-p99"}
    assert set(reader.tables) >= {"cost-W1-table", "curves-W3-table", "rounds-table", "marks-table", "session-1"}


def test_nothing_is_fetched(page):
    reader = Reader(page)
    assert all(each.startswith("#") for each in reader.fetched), reader.fetched
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    assert "default-src 'none'" in page and "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_identifiers_are_unique_and_references_lead_somewhere(page):
    names = re.findall(r'\sid="([^"]*)"', page)
    assert len(names) == len(set(names))
    wanted = set(re.findall(r'(?:href="#|url\(#)([^")]*)', page))
    wanted |= {name for each in re.findall(r'aria-labelledby="([^"]*)"', page) for name in each.split()}
    assert wanted and wanted <= set(names)


def test_same_file_same_page(sample, page, draw_once, monkeypatch):
    for module, name in PURE:
        monkeypatch.setattr(module, name, draw_once[name])
    assert report.make_page(sample.path) == page


def test_values_of_curves(sample, page):
    """Points are those of the file, unrounded; disturbed rounds are crosses, limits of the generator are open."""
    reader = Reader(page)
    for chart, keys in (("rps", ("rps",)), ("cost", ("cost_us", "total")), ("memory", ("memory_kb", "pss_max")),
                        ("p99", ("latency_us", "p99"))):
        lines = reader.charts[f"curves-W3-{chart}"]
        assert [line["name"] for line in lines] == list(sample_results.SERVERS)
        for line in lines:
            assert line["x"] == list(sample_results.CLIENTS)
            for clients, y in zip(line["x"], line["y"]):
                value = rounds_of(sample, "W3", line["name"], clients)[0]
                for key in keys:
                    value = value[key]
                assert y == value
            assert line["open"] == [line["name"] == "monkey" and x == 10 for x in line["x"]]
            assert len(line["crosses"]) == (line["name"] == "nginx")


def test_cost_is_sorted_with_ratios(sample, page):
    reader = Reader(page)
    head, *rows = reader.tables["cost-W1-table"]
    costs = [row[head.index("CPU µs")] for row in rows]
    assert costs == sorted(costs)
    ratios = {row[0]: row[head.index("ratio")] for row in rows}
    cells = next([row[head.index(name)] for name in ("interval of the ratio", "of a second run")]
                 for row in rows if row[0] == "nginx")
    (low, high), (lowest, highest) = ([float(value) for value in text.split(" (")[0].split(" to ")] for text in cells)
    assert lowest <= low <= ratios["nginx"] <= high <= highest and (lowest, highest) != (low, high)
    assert ratios["monkey"] == "1" and ratios["nginx"] == pytest.approx(4.6 / 7.8, rel=0.05)
    assert ratios["limit-memory (limit)"] == pytest.approx(4.6 / 2.9, rel=0.08)
    nginx = next(row for row in rows if row[0] == "nginx")
    assert nginx[head.index("marks")] == "disturbed, repeated"
    assert nginx[head.index("CPU µs")] == pytest.approx(7.8, rel=0.05), "the disturbed round does not count"
    chart = next(each for each in reader.charts["cost-W1-chart"] if each["name"] == "nginx")
    assert chart["low"][-1] < chart["x"][-1] < chart["high"][-1] and len(chart["crosses"]) == 1


def test_reads_from_disks(tmp_path, page):
    """A column of its own, where there are any."""
    sample = sample_results.Sample().add_head({"nginx": 7, "monkey": 5})
    for server, read in (("nginx", 65_536_000), ("monkey", 0)):
        for _ in range(3):
            sample.add_round("W1", server, 64, 7, io={"read_bytes": read, "write_bytes": 0})
    head, *rows = Reader(report.make_page(sample.write(tmp_path / "r.jsonl"))).tables["cost-W1-table"]
    assert {row[0]: row[head.index("from disks, MB")] for row in rows} == {"nginx": 65.536, "monkey": 0}
    assert "from disks, MB" not in Reader(page).tables["cost-W1-table"][0]


def test_no_empty_sections(page):
    assert not re.search(r"</h\d>\s*</section>", page)


def test_legends(page):
    """The names of the lines, each with the colour of its line, and the same mark in all charts."""
    marks, checked = {}, 0
    for figure in re.findall(r"<figure.*?</figure>", page, re.S):
        legend = re.search(r'<ul class="legend">.*?</ul>', figure)
        if not legend:
            continue
        series = [line["name"] for lines in Reader(figure).charts.values() for line in lines]
        items = re.findall(r'<li data-server="([^"]*)">(<svg.*?</svg>) (.*?)</li>', legend[0])
        assert [name for name, _, _ in items] == [name for _, _, name in items] == series
        for name, mark, _ in items:
            assert marks.setdefault(name, mark) == mark
            color = re.search(r"var\(--s\d\)", mark)[0]
            assert color in figure.replace(legend[0], ""), f"{name} is not drawn"
        checked += 1
    assert checked and len(set(marks.values())) == len(marks)


def test_all_rounds_are_listed(sample, page):
    head, *rows = Reader(page).tables["rounds-table"]
    rounds = [each for each in sample.records if each["type"] == "round"]
    assert [row[head.index("CPU µs")] for row in rows] == [each["cost_us"]["total"] for each in rounds]
    assert [row[head.index("marks")] for row in rows] == [", ".join(each["marks"]) for each in rounds]


def test_what_was_measured(page):
    for part in ("AMD EPYC", "6.18.0", "reno", "net.core.somaxconn = 4096", "wr compare --rounds 7 -o results.jsonl",
                 "bin/nginx -c conf", "# nginx\nworkers 1;\n", "wr-load -c 64 http://127.0.0.1:2001/small"):
        assert part in page, part


def test_memory_over_time(sample, page):
    for line in Reader(page).charts["memory-W3-chart"]:
        rounds = rounds_of(sample, "W3", line["name"], 1000)
        assert line["y"] == [row[2] for row in rounds[0]["samples"]] and line["x"][-1] == 1.9


# ── histograms ──


@pytest.mark.parametrize("compressed", [True, False])
def test_histogram(compressed):
    values = [0, 1, 2047, 2048, 4097, 100_000, 100_000, 3_600_000_000] + [77] * 1_000_000
    counts = report_data.decode_histogram(sample_results.encode_histogram(values, compressed))
    assert sum(counts.values()) == len(values) and counts[77] == 1_000_000
    for value in set(values):
        assert any(value <= known <= value * 1.001 + 1 for known in counts), value


def test_histogram_of_wr_load():
    """60 answers that it counted, with its own percentiles."""
    counts = report_data.decode_histogram(
        "HISTFAAAADF4nJNpmSzMwMAAwiDADKUZQcR/ILD/ABFQjONgYWJnYmBiZTJmWsvC1K7GBAD1Cwi/")
    assert counts == {17: 47, 18: 4, 19: 2, 20: 1, 25: 1, 27: 1, 31: 1, 58: 1, 338: 1, 3503: 1}


@pytest.mark.parametrize("wrong", ["", "?", "AAAA", "A" * 400, "HISTEwAAAAM="])
def test_no_histogram(wrong):
    with pytest.raises(ValueError):
        report_data.decode_histogram(wrong)


def test_percentiles_of_the_curve(sample):
    """At 1 / (1 - p) stands the percentile, which counters keep with three digits."""
    rounds = [each for each in report_data.read(sample.path).rounds if each.workload == "W3"][:1]
    xs, ys = report_data.latency_curve(rounds)
    for name in ("p50", "p90", "p99", "p99.9"):
        wanted = 1 / (1 - float(name[1:]) / 100)
        x, y = max((x, y) for x, y in zip(xs, ys) if x <= wanted * 1.0001)
        assert y == pytest.approx(rounds[0].record["latency_us"][name], rel=0.05), name
    assert ys[-1] == pytest.approx(40_000, rel=0.001) and xs == sorted(xs) and ys == sorted(ys)


def test_percentiles_without_a_histogram(tmp_path):
    sample = sample_results.Sample().add_head()
    sample.add_round("W1", "nginx", 64, 7, hdr=None)
    line, = Reader(report.make_page(sample.write(tmp_path / "r.jsonl"))).charts["latency-W1-chart"]
    assert line["y"] == [sample.records[-1]["latency_us"][name] for name in report_data.PERCENTILES]
    assert line["x"] == pytest.approx([2, 4, 10, 100, 1000, 10_000])


# ── files with less in them ──


@pytest.mark.parametrize("text", ["", "\n\n", "[]\n1\nnull\n", '{"type": "session"}\n', '{"type": "later"}\n'])
def test_no_rounds(tmp_path, text):
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    assert "The file holds no rounds" in report.make_page(path)
    assert "The file holds no rounds" in report.make_markdown(path)


def test_cut_file(sample, tmp_path):
    """A crash amid a write: what stands before it is shown, and that it was cut."""
    data = sample.path.read_bytes()
    path = tmp_path / "r.jsonl"
    path.write_bytes(data[: len(data) // 2])
    page = report.make_page(path)
    assert "cannot be read, so that nothing from there on is shown" in page and "cost-W1-chart" in page
    path.write_bytes(b'{"type": "round"}\n\xff\xfe\n')
    assert "Line 2 cannot be read" in report.make_page(path)


# Those that is_number() refuses are on one page, since they reach no chart: its data are JSON without NaN and infinity.
NO_NUMBERS = ["", "x", None, True, [], {}, [[]], {"": None}, math.nan, math.inf]
ODD = [NO_NUMBERS, [0], [-1], [1e308]]


@pytest.mark.parametrize("odd", [*(pytest.param(odd, marks=pytest.mark.slow) for odd in ODD[:3]), ODD[3]], ids=repr)
def test_values_of_other_types(tmp_path, odd):
    """Each key of each record in turn; the page is made, with what can be read."""
    sample = sample_results.Sample().add_head({"monkey": 1, "nginx": 2})
    sample.add_pairs(2, {"monkey": 1, "nginx": 2})
    lines = [json.dumps(record) for record in sample.records]
    for record in [*sample.records[:5], sample.records[6], sample.records[7]]:
        for key in record:
            lines += [json.dumps({**record, key: value}) for value in odd]
            if isinstance(record[key], dict):
                lines += [json.dumps({**record, key: {**record[key], each: value}})
                          for each in record[key] for value in odd]
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(lines) + "\n")
    reader = Reader(report.make_page(path))
    assert "cost-W1-chart" in reader.charts or "curves-W1-cost" in reader.charts
    report.make_markdown(path)


@pytest.mark.parametrize("missing", [
    "cost_us", "hdr",
    *(pytest.param(key, marks=pytest.mark.slow) for key in "latency_us memory_kb samples rps generator marks".split()),
])
def test_records_without_a_key(tmp_path, missing):
    sample = sample_results.Sample().add_head()
    sample.add_pairs(1)
    sample.add_curves()
    for record in sample.records:
        record.pop(missing, None)
    page = report.make_page(sample.write(tmp_path / "r.jsonl"))
    assert 'id="rounds-table"' in page
    sections = Reader(page).sections
    assert ("memory" in sections) == (missing != "samples") and ("cost" in sections) == (missing != "cost_us")


def test_rounds_that_are_all_disturbed(tmp_path):
    """They count, since there are no others, and say so."""
    sample = sample_results.Sample().add_head({"nginx": 7})
    for _ in range(3):
        sample.add_round("W1", "nginx", 64, 7, ["disturbed"])
    reader = Reader(report.make_page(sample.write(tmp_path / "r.jsonl")))
    head, row = reader.tables["cost-W1-table"]
    assert row[head.index("rounds")] == 3 and row[head.index("marks")] == "disturbed"


def test_pairs_that_are_all_disturbed(tmp_path):
    sample = sample_results.Sample().add_head({"a": 5, "b": 10})
    sample.add_pairs(5, {"a": 5, "b": 10})
    for record in sample.records:
        if record["type"] == "round":
            record["marks"] = ["disturbed"]
    found = report.data.ratio(report.data.read(sample.write(tmp_path / "r.jsonl")), "W1", "a", "b")
    assert found.count == 5 and found.value == pytest.approx(0.5, rel=0.1)


def test_no_difference_seen(tmp_path):
    sample = sample_results.Sample(seed=3).add_head({"a": 5, "b": 5})
    sample.add_pairs(9, {"a": 5, "b": 5})
    page = report.make_page(sample.write(tmp_path / "r.jsonl"))
    assert "(no difference seen)" in page


def test_everything_is_escaped(tmp_path):
    sample = sample_results.Sample()
    sample.add_head({EVIL: 5})
    sample.records[0].update({"command": [EVIL, "a b"], "machine": {EVIL: EVIL, "sysctls": {EVIL: EVIL}}, "wr": EVIL})
    sample.records[1].update({"config": {EVIL: EVIL}, "version": EVIL})
    sample.add("workload", name=EVIL, text=EVIL, **{"x" + EVIL: EVIL})
    for clients in (10, 20):
        sample.add_round(EVIL, EVIL, clients, 5, [EVIL])
        sample.add_round("W1", EVIL, 64, 5, [EVIL])
    path = sample.write(tmp_path / "<b>r&.jsonl")
    page = report.make_page(path)
    page.encode()
    reader = Reader(page)
    assert not {"img", "script", "b"} & set(reader.tags) and "\x00" not in page and "<b>r&" not in page
    assert all(each.startswith("#") for each in reader.fetched)
    names = re.findall(r'\sid="([^"]*)"', page)
    assert len(names) == len(set(names))
    assert any(line["name"].startswith("</script>") for each in reader.charts.values() for line in each)
    assert "<img" not in re.sub(r"(?ms)^(`{3,})$.*?^\1$", "", report.make_markdown(path))


@pytest.mark.slow
def test_many_servers(tmp_path):
    """More than there are colours; each has a line or mark of its own."""
    servers = {f"server {number}": 5 + number for number in range(20)}
    sample = sample_results.Sample().add_head(servers)
    sample.add_pairs(1, servers)
    sample.add_curves(servers)
    reader = Reader(report.make_page(sample.write(tmp_path / "r.jsonl")))
    assert len(reader.charts["curves-W3-rps"]) == 20


# ── parts ──


def test_names_of_different_words_differ():
    assert len({make_name("a", word) for word in ("W1", "W-1", "W_1", "W 1", "W.1", "W_2d_1")}) == 6


@pytest.mark.parametrize("value, text", [(0, "0"), (0.01234, "0.0123"), (4.567, "4.57"), (12.34, "12.3"),
                                         (99.96, "100"), (123.4, "123"), (1234567, "1,234,567")])
def test_significant(value, text):
    assert significant(value) == text


def test_markdown_of_a_table():
    table = Table("t", "A | B", ["a", "b"], [["x|y\nz", None], ["<i>", "`"]])
    head, line, *rows = table.to_markdown().split("\n")[2:]
    assert [head, line] == ["| a | b |", "| --- | --- |"] and rows == [r"| x\|y z |  |", r"| &lt;i&gt; | \` |"]
    assert Listing("t", "```\n").to_markdown().endswith("\n````\n```\n````")
    assert escape_markdown("a*b_c") == r"a\*b\_c"


def luminance(color):
    if len(color) == 4:
        color = "#" + "".join(2 * digit for digit in color[1:])
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_contrast():
    """WCAG 2: 3 to 1 for lines, 4.5 to 1 for text, in both schemes."""
    css = (pathlib.Path(report.__file__).with_name("report.css")).read_text()
    for scheme in re.findall(r":root \{(.*?)\}", css, re.S):
        colors = dict(re.findall(r"--(\w+): (#\w+)", scheme))
        page = luminance(colors["page"])
        for name, color in colors.items():
            if name not in ("page", "grid", "shade"):
                low, high = sorted((page, luminance(color)))
                wanted = 3 if re.match(r"s\d", name) else 4.5
                assert (high + 0.05) / (low + 0.05) >= wanted, (name, color)


# ── the command ──


def run(*arguments):
    return CliRunner().invoke(report.command, [str(each) for each in arguments])


def test_command(sample, page, tmp_path):
    output = tmp_path / "page.html"
    done = run(sample.path, "-o", output)
    assert done.exit_code == 0 and output.read_text() == page
    assert done.output == f"wrote {output}\n" and list(tmp_path.iterdir()) == [output]
    assert run(sample.path, "--markdown").output.startswith("# wr report: results.jsonl\n")
    assert run(sample.path, "--markdown", "-o", output).exit_code == 2


def test_output_beside_the_file(sample):
    assert run(sample.path).exit_code == 0
    assert sample.path.with_suffix(".html").exists()


def test_command_with_wrong_files(sample, tmp_path):
    for arguments, said in (([tmp_path / "no"], "No such file"), ([tmp_path], "Is a directory"),
                            ([sample.path, "-o", sample.path], "is the file of results itself"),
                            ([sample.path, "-o", tmp_path / "no" / "p.html"], "cannot be written")):
        error = run(*arguments).exception
        assert isinstance(error, WrError) and said in str(error)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(sample, monkeypatch):
    monkeypatch.delitem(sys.modules, "watch_resources.charts", raising=False)
    monkeypatch.setattr(sys.modules["watch_resources"], "charts", None, raising=False)
    monkeypatch.delattr(sys.modules["watch_resources"], "charts")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(WrError, match="python3-matplotlib"):
        report.make_page(sample.path)
    assert report.make_markdown(sample.path)


# ── in a browser ──


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page; what it asks for and complains of is in `asked` and `said` of what it returns."""
    browser_pages = []

    def open_page(text, width=1024, scheme="light"):
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        browser_page = browser.page(width, 800)
        browser_pages.append(browser_page)
        browser_page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser_page.call("Log.enable")
        browser_page.navigate(f"file://{path}")
        browser_page.evaluate("0")
        browser_page.asked = [each["params"]["request"]["url"] for each in browser_page.events
                              if each["method"] == "Network.requestWillBeSent"]
        complaints = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        browser_page.said = [each for each in browser_page.events if each["method"] in complaints]
        assert browser_page.asked == [f"file://{path}"] and browser_page.said == []
        return browser_page

    yield open_page
    for browser_page in browser_pages:
        browser_page.close()


POINTS = """[...document.querySelectorAll(`[id^="${%s}-series-"] path`)].map(path => {
    const numbers = path.getAttribute("d").match(/-?[\\d.]+/g).map(Number), points = [];
    for (let at = 0; at < numbers.length; at += 2) points.push([numbers[at], numbers[at + 1]]);
    return [getComputedStyle(path).stroke, path.getBoundingClientRect().width, points];
})"""


def assert_on_a_scale(places, values):
    """The places are a + b * value for one a and b; matplotlib writes six digits."""
    low, high = min(range(len(values)), key=values.__getitem__), max(range(len(values)), key=values.__getitem__)
    slope = (places[high] - places[low]) / (values[high] - values[low])
    for place, value in zip(places, values):
        assert place == pytest.approx(places[low] + slope * (value - values[low]), abs=0.01)
    return slope


@pytest.mark.slow
@pytest.mark.parametrize("scheme, color", [("light", "rgb(0, 96, 168)"), ("dark", "rgb(108, 182, 255)")])
def test_curves_have_the_values(page, show, scheme, color):
    """The lines of all servers stand on one scale of clients and one of values."""
    browser_page, charts = show(page, scheme=scheme), Reader(page).charts
    for name in ("rps", "cost", "memory", "p99"):
        lines = browser_page.evaluate(POINTS % f'"curves-W3-{name}"')
        data = charts[f"curves-W3-{name}"]
        assert len(lines) == len(data) == 4 and lines[0][0] == color and all(width > 100 for _, width, _ in lines)
        points = [point for _, _, line in lines for point in line]
        assert_on_a_scale([x for x, _ in points], [math.log(x) for line in data for x in line["x"]])
        assert assert_on_a_scale([y for _, y in points], [y for line in data for y in line["y"]]) < 0


@pytest.mark.slow
def test_percentiles_have_the_values(page, show):
    lines = show(page).evaluate(POINTS % '"latency-W1-chart"')
    data = Reader(page).charts["latency-W1-chart"]
    points = [point for _, _, line in lines for point in line]
    assert_on_a_scale([x for x, _ in points], [math.log(x) for line in data for x in line["x"]])
    assert_on_a_scale([y for _, y in points], [math.log(y) for line in data for y in line["y"]])


@pytest.mark.slow
def test_intervals_have_the_values(page, show):
    browser_page, data = show(page), Reader(page).charts["cost-W1-chart"]
    path = 'document.querySelector("#cost-W1-chart-interval-%d path").getAttribute("d")'
    bars = [browser_page.evaluate(path % row) for row in range(len(data))]
    places = [float(x) for bar in bars for x in re.findall(r"[ML] ([\d.]+)", bar)]
    assert_on_a_scale(places, [value for line in data for value in (line["low"][-1], line["high"][-1])])


@pytest.mark.slow
def test_fits_a_phone(page, show):
    browser_page = show(page, width=360)
    assert browser_page.evaluate("document.documentElement.scrollWidth") == 360
    assert browser_page.evaluate("""[...document.querySelectorAll("svg.chart")].every(
        chart => chart.getBoundingClientRect().right <= 360)""")
    assert browser_page.evaluate("""Math.min(...[...document.querySelectorAll("svg.chart text")].map(text => {
        const {a, b} = text.getScreenCTM();
        return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
    }))""") > 7


@pytest.mark.slow
def test_charts_have_names(page, show):
    """What a screen reader says; every chart has a table next to it."""
    browser_page = show(page)
    assert browser_page.evaluate("""[...document.querySelectorAll("svg.chart")].every(chart =>
        chart.getAttribute("role") == "img" && chart.getAttribute("aria-labelledby").split(" ").every(
            id => document.getElementById(id).textContent.length >= 10))""")
    assert browser_page.evaluate("""[...document.querySelectorAll("figure")].every(
        figure => figure.closest("section").querySelector("table"))""")


@pytest.mark.slow
def test_evil_names_do_nothing(tmp_path, show):
    sample = sample_results.Sample().add_head({EVIL: 5})
    for clients in (10, 20):
        sample.add_round(EVIL, EVIL, clients, 5, [EVIL])
    browser_page = show(report.make_page(sample.write(tmp_path / "r.jsonl")), width=360)
    assert browser_page.evaluate("document.images.length + document.scripts.length") == 0
    assert browser_page.evaluate("document.documentElement.scrollWidth") == 360
