# SPDX-License-Identifier: Apache-2.0
"""The console of web services: what it counts, compared with what clients have asked, access, and its forms."""

import contextlib
import html.parser
import json
import re
import signal

import pytest

from harness import build
from harness.content import populate
from harness.duda_websocket import WebSocket
from harness.protocol import Client
from harness.server import await_true, run, section, write_config
from harness.services import HEAD, build_old_service, build_service, needs_duda, reload, service_config, web_service
from harness.ways import WAYS
from test_concurrent import in_parallel

pytestmark = [pytest.mark.single_protocol, needs_duda]

JSON = "Accept: application/json"
CONSOLE = {"shop": {"Console": "/console/"}}
TIMES = 3000  # microseconds: what a slow handler waits at least

SHOP = HEAD + r"""
#include <stdio.h>
#include <unistd.h>
#ifndef VERSION
#define VERSION 1
#endif

static void show(duda_request_t *dr)
{
    response->printf(dr, "%s of %d", param->get(dr, "id"), VERSION);
    response->end(dr, NULL);
}

static void fail(duda_request_t *dr)
{
    response->error(dr, (int)strtol(param->get(dr, "status"), NULL, 10));
}

static void be_slow(duda_request_t *dr)
{
    usleep(3000);
    response->end(dr, NULL);
}

static void cut(duda_request_t *dr)
{
    response->abort(dr);
}

static void wait_on(duda_request_t *dr)
{
    msg->info("waits for %s", param->get(dr, "name"));
}

static void crash(duda_request_t *dr)
{
    (void)dr;
    abort();
}

static void say(duda_request_t *dr)
{
    size_t len;
    const char *text = request->body(dr, &len);
    msg->warn("%.*s", (int)len, text ? text : "");
    console->debug(dr, "%.*s", (int)len, text ? text : "");
    response->end(dr, NULL);
}

int duda_main(void)
{
    msg->info("version %d", VERSION);
    router->get("/goods/:id", show);
    router->add("PUT, DELETE", "/goods/:id", show);
    router->get("/status/:status", fail);
    router->get("/slow", be_slow);
    router->get("/cut", cut);
    router->timeout(router->get("/timeout", wait_on), 50);
    router->get("/wait/:name", wait_on);
    router->get("/crash", crash);
    router->post("/say", say);
    return 0;
}
"""


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
def start(serve_services, tmp_path, way):
    """A server with the service `shop`, whose console is at /shop/console/, for each way to ask it."""

    def make(source=SHOP, settings=None, keys=CONSOLE, **rest):
        settings = {"Workers": 2, **(settings or {})}
        return way.start(serve_services, tmp_path, {"shop": source}, settings, keys=keys, **rest)

    return make


@pytest.fixture
def plain(serve_services, tmp_path):
    def make(source=SHOP, settings=None, keys=CONSOLE, **rest):
        return WAYS["h1"].start(serve_services, tmp_path, {"shop": source}, settings, keys=keys, **rest)

    return make


def read(server, target="/shop/console/", **rest):
    """The figures of a console."""
    with server.open() as client:
        answer = client.ask(target, JSON, **rest)
    assert (answer.status, answer["Content-Type"]) == (200, "application/json"), answer
    return json.loads(answer.body)


def rows(figures):
    """Responses of the routes that have some: {"GET /goods/:id": {"2xx": 3}}."""
    return {
        f"{row['method']} {row['route']}".strip(): counts
        for row in figures["routes"]
        if (counts := {name: row[name] for name in [*CLASSES, *FAILURES] if row[name]})
    }


CLASSES = [f"{i}xx" for i in range(1, 6)]
FAILURES = ["timeout", "aborted", "client_closed"]


def await_rows(server, expected, **rest):
    """The figures, when they have these rows: a worker counts a response after it has sent it."""
    found = {}

    def is_counted():
        found.update(read(server, **rest))
        return rows(found) == expected

    with contextlib.suppress(AssertionError):
        await_true(is_counted)
    assert rows(found) == expected
    return found


def assert_sums(figures):
    """The service's own figures are the sums of those of its routes, and each response with a time was measured."""
    for name in ["responses", *CLASSES, *FAILURES]:
        assert figures[name] == sum(row[name] for row in figures["routes"]), name
    for row in [figures, *figures["routes"]]:
        assert row["responses"] == sum(row[name] for name in CLASSES)
        assert row["duration_us"]["count"] == row["responses"]


# ── counts ──


def test_each_request_is_counted(start):
    server = start()
    assert rows(read(server)) == {}
    with server.open() as client:
        for i in range(7):
            assert client.ask(f"/shop/goods/{i}").status == 200
        assert client.ask("/shop/goods/1", method="DELETE").status == 200
        assert client.ask("/shop/goods/1", method="HEAD").status == 200
        for status in (404, 404, 410, 500, 503):
            assert client.ask(f"/shop/status/{status}").status == status
        assert client.ask("/shop/nothing").status == 404
        assert client.ask("/shop/goods/1", method="POST").status == 405
        assert client.ask("/shop/timeout").status == 503
    expected = {
        "GET /goods/:id": {"2xx": 8},
        "PUT, DELETE /goods/:id": {"2xx": 1},
        "GET /status/:status": {"4xx": 3, "5xx": 2},
        "GET /timeout": {"5xx": 1, "timeout": 1},
        "none": {"4xx": 2},
    }
    figures = await_rows(server, expected)
    assert (figures["service"], figures["host"], figures["url"]) == ("shop", "localhost", "/shop")
    assert (figures["active"], figures["crashes"]) == (0, 0)
    assert_sums(figures)


@pytest.mark.concurrent
def test_counts_of_many_clients(start):
    """Several workers count the same, and nothing gets lost."""
    server, clients, rounds = start(settings={"Workers": 3}), 6, 30

    def ask(number):
        with server.open() as client:
            for i in range(rounds):
                assert client.ask(f"/shop/goods/{number}-{i}").status == 200
                assert client.ask("/shop/status/404").status == 404

    in_parallel(clients, ask)
    expected = {"GET /goods/:id": {"2xx": clients * rounds}, "GET /status/:status": {"4xx": clients * rounds}}
    figures = await_rows(server, expected)
    assert_sums(figures)


def test_counts_last_over_reloads_and_swaps(start):
    server = start()
    for version in range(1, 5):
        with server.open() as client:
            for _ in range(10):
                assert client.ask("/shop/goods/x").body == b"x of %d" % version
        reload(server)  # of an unchanged service
        with server.open() as client:
            assert client.ask("/shop/goods/x").status == 200
        build_service(server.services, "shop", f"#define VERSION {version + 1}\n" + SHOP)
        reload(server)
    figures = await_rows(server, {"GET /goods/:id": {"2xx": 4 * 11}})
    assert [line["text"] for line in figures["messages"]] == [f"version {n}" for n in range(1, 6)]


def test_durations(plain):
    server = plain()
    with server.open() as client:
        for _ in range(20):
            client.ask("/shop/slow")
        client.ask("/shop/goods/1")
    figures = read(server)
    slow = next(row for row in figures["routes"] if row["route"] == "/slow")["duration_us"]
    assert slow["count"] == 20 and slow["sum"] >= 20 * TIMES
    assert TIMES <= slow["p50"] <= slow["p90"] <= slow["p99"]
    assert slow["p50"] <= 1.25 * slow["sum"] or build.SANITIZED
    assert figures["duration_us"]["count"] == 21 and figures["duration_us"]["sum"] >= slow["sum"]


def test_requests_without_an_end(plain):
    """One that waits is in progress; clients that leave, and responses that the service cuts, are no responses."""
    server = plain()
    client = server.open()
    client.send("GET /shop/wait/me HTTP/1.1\r\nHost: localhost\r\n\r\n")
    server.wait_log("waits for me")
    assert read(server)["active"] == 1
    client.reset()
    await_true(lambda: read(server)["active"] == 0)
    with server.open() as client, pytest.raises((AssertionError, OSError)):
        client.ask("/shop/cut")
    await_rows(server, {"GET /wait/:name": {"client_closed": 1}, "GET /cut": {"aborted": 1}})


def test_a_swap_that_cuts_requests(plain):
    server = plain(settings={"ShutdownTimeout": "100ms"})
    client = server.open()
    client.send("GET /shop/wait/on HTTP/1.1\r\nHost: localhost\r\n\r\n")
    server.wait_log("waits for on")
    build_service(server.services, "shop", "#define VERSION 2\n" + SHOP)
    reload(server)
    await_true(lambda: rows(read(server)) == {"GET /wait/:name": {"aborted": 1}})
    client.close()


@pytest.mark.skipif(build.SANITIZED, reason="sanitizers have handlers of their own")
def test_crashes_are_counted(plain):
    """The next process of the supervisor continues with the counts."""
    server = plain(settings={"Supervisor": "On"})
    with server.open() as client:
        client.ask("/shop/goods/1")
        client.send("GET /shop/crash HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.wait_log('the service "shop" has crashed: SIGABRT')
    await_true(lambda: server.connect().ask("/shop/goods/1").status == 200, 60)
    figures = read(server)
    assert figures["crashes"] == 1 and figures["active"] == 0
    assert rows(figures) == {"GET /goods/:id": {"2xx": 2}}
    server.stop()


MANY = HEAD + r"""
static void answer(duda_request_t *dr)
{
    response->end(dr, NULL);
}

int duda_main(void)
{
    static char patterns[100][32];
    for (int i = 0; i < 100; i++) {
        __builtin_snprintf(patterns[i], sizeof(patterns[i]), "/route%d", i);
        router->get(patterns[i], answer);
    }
    return 0;
}
"""


def test_routes_above_the_limit_share_a_row(plain):
    server = plain(MANY)
    with server.open() as client:
        for i in range(100):
            for _ in range(1 + i % 2):
                client.ask(f"/shop/route{i}")
    figures = read(server)
    names = [row["route"] for row in figures["routes"]]
    assert names == [*(f"/route{i}" for i in range(64)), "other", "none"]
    assert rows(figures)["other"] == {"2xx": 36 + 18} and rows(figures)["GET /route63"] == {"2xx": 2}
    assert_sums(figures)


def test_services_and_hosts_are_counted_apart(plain, tmp_path, site_root):
    other = section("HOST", {"ServerName": "other.example", "DocumentRoot": site_root})
    other += web_service("shop", Console="/c") + web_service("two", File=tmp_path / "services/shop.duda", Console="/c")
    server = plain(files={"sites/other": other})
    with server.open() as client:
        for host, name, n in [("localhost", "shop", 1), ("other.example", "shop", 2), ("other.example", "two", 3)]:
            for _ in range(n):
                client.ask(f"/{name}/goods/1", host=host)
    assert read(server)["2xx"] == 1
    assert read(server, "/shop/c/", host="other.example")["2xx"] == 2
    assert read(server, "/two/c/", host="other.example")["2xx"] == 3


# ── messages ──

HOSTILE = ['<script>alert(1)</script>"\'&', "</table></style><!--", "\x1b[31mred\x07\r\nsecond: line"]
HOSTILE += ["\u2028ä€😀", "\ufffd"]


def say(server, data):
    with server.open() as client:
        assert client.ask("/shop/say", method="POST", body=data).status == 200


def test_messages(start):
    server = start()
    say(server, b"hello")
    figures = read(server)
    texts = [(line["kind"], line["text"]) for line in figures["messages"]]
    assert texts[:2] == [("info", "version 1"), ("warn", "hello")]
    assert texts[2][0] == "debug" and re.fullmatch(r"\[POST /shop/say\] \[shop\.c:\d+\] hello", texts[2][1])
    with server.open() as client:
        answer = client.ask("/shop/console/messages")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    lines = answer.body.decode().splitlines()
    assert [line.split()[1] for line in lines] == ["info", "warn", "debug"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", line) for line in lines)


def test_the_last_messages_are_kept(plain):
    """200 lines of 500 bytes, of whole characters."""
    server = plain()
    with server.open() as client:
        for i in range(150):
            client.ask("/shop/say", method="POST", body=f"{i} ".encode() + "ä".encode() * 700)
    figures = read(server)
    assert len(figures["messages"]) == 200 and figures["messages_in_all"] == 301
    assert [line["text"].split()[0] for line in figures["messages"][::2]] == [str(i) for i in range(50, 150)]
    lengths = [len(line["text"].encode()) for line in figures["messages"]]
    assert max(lengths) <= 500 and min(lengths) >= 499


def clean(text):
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)


class Page(html.parser.HTMLParser):
    """What a browser would see of a page: its elements, what it would load, and its tables."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.sources, self.tables, self.cell = [], [], {}, None
        self.table = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        names = dict(attributes)
        self.sources += [names[name] for name in ("src", "href", "data", "action", "style", "onclick") if name in names]
        if tag == "table":
            self.table = self.tables[names["id"]] = []
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.table[-1].append("")

    def handle_data(self, data):
        if self.table and self.table[-1]:
            self.table[-1][-1] += data

    def handle_endtag(self, tag):
        self.table = None if tag == "table" else self.table


@pytest.mark.parametrize(
    "accept, is_json",
    [
        (None, False),
        ("*/*", False),
        ("application/json", True),
        ("application/json, text/plain, */*", True),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
        ("text/html, application/json", False),
        ("text/html;q=0.5, application/json", True),
        ("application/json;q=0", False),
    ],
)
def test_format(start, accept, is_json):
    with start().open() as client:
        answer = client.ask("/shop/console/", *([f"Accept: {accept}"] if accept else []))
    assert (answer["Content-Type"] == "application/json") == is_json
    assert answer["Vary"] == "Accept"


def test_messages_are_escaped(start):
    server = start()
    for text in HOSTILE:
        say(server, text.encode())
    say(server, b"\xff\xfe<b>\xc3")
    with server.open() as client:
        answer = client.ask("/shop/console/", "Accept: text/html,application/json;q=0.9")
    assert answer["Content-Type"] == "text/html; charset=utf-8"
    page = Page(answer.body.decode())
    assert "script" not in page.elements and "b" not in page.elements
    warned = [row[2].rstrip("\n") for row in reversed(page.tables["messages"]) if row[1] == "warn"]
    assert warned == [clean(text) for text in HOSTILE] + ["\ufffd\ufffd<b>\ufffd"]
    texts = [line["text"] for line in read(server)["messages"] if line["kind"] == "warn"]
    assert texts == warned


ODD = HEAD + r"""
static void answer(duda_request_t *dr)
{
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/<script>\"&'\\/:a", answer) && router->get("/\xff\xfe", answer) ? 0 : -1;
}
"""


def test_routes_are_escaped(plain):
    server = plain(ODD)
    with server.open() as client:
        page = Page(client.ask("/shop/console/").body.decode())
        lines = client.ask("/shop/console/map").body.decode().splitlines()
    names = [row[0] for row in page.tables["routes"][1:]]
    assert names == ["GET /<script>\"&'\\/:a", "GET /\ufffd\ufffd", "none"]
    assert "script" not in page.elements
    assert [row["route"] for row in read(server)["routes"]] == ["/<script>\"&'\\/:a", "/\ufffd\ufffd", "none"]
    assert lines == names[:2]


# ── the page ──


def test_the_page(start):
    """It needs nothing from elsewhere, reloads itself until the user stops it, and shows the figures."""
    server = start()
    with server.open() as client:
        for _ in range(3):
            client.ask("/shop/goods/1")
        redirect = client.ask("/shop/console")
        assert (redirect.status, redirect["Location"]) == (301, "/shop/console/")
        answer = client.ask("/shop/console/")
        stopped = client.ask("/shop/console/?stop").body.decode()
        head = client.ask("/shop/console/", method="HEAD")
        refused = client.ask("/shop/console/", method="POST")
    assert (head.status, head.body, refused.status, refused["Allow"]) == (200, b"", 405, "GET, HEAD")
    text = answer.body.decode()
    page = Page(text)
    assert page.sources == ["?stop", "messages"] and not re.search(r"https?:|//|@import|url\(", text)
    assert "http-equiv=refresh" in text and "http-equiv=refresh" not in stopped
    assert answer["Cache-Control"] == "no-store" and "default-src 'none'" in answer["Content-Security-Policy"]
    assert "prefers-color-scheme:dark" in text and "width=device-width" in text
    assert page.tables["routes"][1][:4] == ["GET /goods/:id", "0", "3", "0"]
    memory = dict(page.tables["memory"])
    assert memory["copy of the file"].endswith("B\n") and len(memory) >= 4


def test_memory(plain):
    server = plain()
    figures = read(server)["memory_bytes"]
    path = server.services / "shop.duda"
    assert figures["copy"] == path.stat().st_size
    assert figures["mapped"] >= figures["resident"] >= figures["private"] > 0
    assert figures["settings"] > 0 and figures["requests"] == 0
    with server.open() as client:
        client.ask("/shop/goods/1")
    assert read(server)["memory_bytes"]["requests"] > 0


# ── access ──


def test_off_by_default(plain):
    server = plain(keys={})
    with server.open() as client:
        for target in ("/shop/console", "/shop/console/", "/shop/console/messages", "/shop/console/map"):
            assert client.ask(target).status == 404


def test_a_reload_enables_and_disables_it(plain):
    """Without a new instance of the service, which has counted before."""
    server = plain(keys={})
    with server.open() as client:
        client.ask("/shop/goods/1")
    site = server.conf / "sites" / "default"
    text = site.read_text()
    site.write_text(text + "    Console /console\n")
    reload(server)
    assert rows(read(server)) == {"GET /goods/:id": {"2xx": 1}}
    assert len(re.findall("version 1", server.log)) == 1
    site.write_text(text)
    reload(server)
    with server.open() as client:
        assert client.ask("/shop/console/").status == 404


@pytest.mark.parametrize(
    "allowed, field, status",
    [
        (None, None, 200),
        ("192.0.2.0/24", None, 403),
        ("127.0.0.1", None, 200),
        ("::/0 0.0.0.0/0", None, 200),
        (None, "X-Forwarded-For: 127.0.0.1", 403),
        (None, "Forwarded: for=127.0.0.1", 403),
    ],
)
def test_clients(plain, allowed, field, status):
    server = plain(keys={"shop": {"Console": "/console", **({"ConsoleAllow": allowed} if allowed else {})}})
    with server.open() as client:
        for target in ("/shop/console", "/shop/console/", "/shop/console/messages", "/shop/console/map"):
            expected = 301 if status == 200 and target.endswith("console") else status
            assert client.ask(target, *([field] if field else [])).status == expected


def test_names_of_the_host(plain):
    """A page of another site whose name leads to this machine gets nothing."""
    server = plain(host={"ServerName": "shop.example *.shop.example"})
    names = ["shop.example", "a.shop.example", "localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8080", "192.0.2.1"]
    with server.open() as client:
        for name in names:
            assert client.ask("/shop/console/", host=name).status == 200, name
        for name in ("evil.example", "127.0.0.1.evil.example", "xshop.example", "localhost.evil.example"):
            assert client.ask("/shop/console/", host=name).status == 403, name
            assert client.ask("/shop/goods/1", host=name).status == 200


def test_clients_behind_a_proxy(plain):
    server = plain(settings={"TrustedProxies": "127.0.0.1"})
    with server.open() as client:
        assert client.ask("/shop/console/", "X-Forwarded-For: 198.51.100.7").status == 403
        assert client.ask("/shop/console/", "X-Forwarded-For: 127.0.0.1").status == 200


@pytest.mark.skipif(not (build.PLUGINS / "mandril.so").exists(), reason=f"{build.PRESET} has no plugin mandril")
def test_rules_by_path_apply(plain):
    server = plain(text=section("RULES", {"Match": "/shop/console/", "Action": "deny"}))
    with server.open() as client:
        assert client.ask("/shop/console/").status == 403
        assert client.ask("/shop/goods/1").status == 200


WRONG = ["console", "/", "//", "/a//b", "/../x", "/a/./b", "/a?b", "/a%20b", "/" + "a" * 255]


@pytest.mark.parametrize("path", WRONG, ids=range(len(WRONG)))
def test_wrong_paths(tmp_path, site_root, path):
    build_service(tmp_path / "services", "shop", SHOP)
    files = service_config(tmp_path / "services", {"shop": {"Console": path}}, site_root)
    result = run("-c", write_config(tmp_path / "conf", site_root, files=files), "-t")
    assert result.returncode == 1
    sentence = r'default:6:\d+: error: ".*("|\.\.\.) cannot be the path of a console: it '
    assert re.search(sentence, result.stderr), result.stderr


def test_a_root_service_and_files(plain, tmp_path):
    """The console comes before the routes, and before files of its name."""
    pages = populate(tmp_path / "html", {"console/index.html": b"a file", "console/more.txt": b"more"})
    server = plain(keys={"shop": {"Root": "On", "Console": "/console", "DocumentRoot": pages}})
    with server.open() as client:
        client.ask("/goods/1")
        assert client.ask("/console/more.txt").body == b"more"
    assert rows(read(server, "/console/")) == {"GET /goods/:id": {"2xx": 1}}


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="no plugin dirlisting")
def test_listings_leave_it_out(plain, tmp_path):
    pages = populate(tmp_path / "html", {"console/index.html": b"a file", "free.txt": b"free"})
    keys = {"shop": {"Console": "/console", "DocumentRoot": pages}}
    server = plain(keys=keys, text=section("DIRLISTING", {}))
    with server.open() as client:
        listed = client.ask("/shop/", JSON).body.decode()
    assert [entry["name"] for entry in json.loads(listed)["entries"]] == ["free.txt"]


# ── the original API ──

DASHBOARD = r"""
#include "webservice.h"

DUDA_REGISTER("old", "an old service");

void cb_root(duda_request_t *dr)
{
    console->debug(dr, "asked");
    response->http_status(dr, 200);
    response->print(dr, "root", 4);
    response->end(dr, NULL);
}

void cb_number(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

int duda_main()
{
    router->root(cb_root);
    router->map("/numbers/:n", cb_number);
    console->dashboard("/board/");
    return 0;
}
"""


@pytest.fixture
def old(serve_services, tmp_path):
    def make(**keys):
        build_old_service(tmp_path / "services", "old", DASHBOARD, number=2)
        server = WAYS["h1"].start(serve_services, tmp_path, {}, text=web_service("old", **keys), files={
            "plugins/duda/duda.conf": section("DUDA", {"ServicesRoot": tmp_path / "services"})})
        return server

    return make


def test_a_dashboard_of_the_original(old):
    server = old()
    with server.open() as client:
        assert client.ask("/old/").body == b"root"
        assert client.ask("/old/numbers/7").status == 200
        assert client.ask("/old/board").status == 301
        assert client.ask("/old/console/").status == 404
        assert client.ask("/old/board/map").body == b"ANY /\nANY /numbers/:n\n"
    figures = read(server, "/old/board/")
    assert rows(figures) == {"ANY /": {"2xx": 1}, "ANY /numbers/:n": {"2xx": 1}, "none": {"4xx": 1}}
    assert [line["kind"] for line in figures["messages"]] == ["debug"]


def test_a_dashboard_that_the_operator_forbids(old):
    server = old(Console="Off")
    with server.open() as client:
        assert client.ask("/old/board/").status == 404


def test_urls_of_level_1(old):
    server = old(Console="/console")
    with server.open() as client:
        client.ask("/old/")
        assert b" debug " in client.ask("/old/console/messages").body
        assert client.ask("/old/console/map").status == client.ask("/old/board/map").status == 200


# ── packages ──


@pytest.mark.single_protocol
@pytest.mark.skipif(not (build.PLUGINS / "packages/websocket.dpkg").exists(), reason="no package websocket")
def test_websockets(serve_services, tmp_path, way):
    source = (build.TOP / "docs/examples/services/12-wschat/wschat.c").read_text()
    build_old_service(tmp_path / "services", "wschat", source)
    files = {"plugins/duda/duda.conf": section("DUDA", {"ServicesRoot": tmp_path / "services"})}
    text = web_service("wschat", Console="/console")
    server = way.start(serve_services, tmp_path, {}, {"Workers": 2}, text=text, files=files)

    def figures():
        packages = read(server, "/wschat/console/")["packages"]
        return {name.removeprefix("websocket_"): n for name, n in packages.items()}

    names = ["channels", "connections", "received_messages", "sent_messages", "broadcasts"]
    assert figures() == dict.fromkeys(names, 0)
    sockets = [WebSocket(server, way, "/wschat/handshake/") for _ in range(3)]
    await_true(lambda: figures()["connections"] == 3)
    sockets[0].send("hello")
    assert [socket.text() for socket in sockets[1:]] == ["hello"] * 2
    await_true(lambda: (figures()["received_messages"], figures()["broadcasts"]) == (1, 1))
    for socket in sockets:
        socket.client.close()
    await_true(lambda: figures()["connections"] == figures()["channels"] == 0)


# ── under load ──


@pytest.mark.concurrent
def test_a_console_that_is_asked_all_the_time(plain):
    """While several workers count and write messages, and the service is swapped."""
    server, clients, rounds = plain(settings={"Workers": 3}), 3, 40

    def ask(number):
        with server.open() as client:
            for i in range(rounds):
                assert client.ask(f"/shop/goods/{i}").status == 200
                assert client.ask("/shop/say", method="POST", body=b"%d" % number).status == 200

    def watch():
        for _ in range(rounds):
            figures = read(server)
            assert len(figures["messages"]) <= 200

    def swap():
        for version in range(3):
            build_service(server.services, "shop", f"#define VERSION {version + 2}\n" + SHOP)
            reload(server)

    def work(number):
        (watch if number == clients else swap if number > clients else lambda: ask(number))()

    in_parallel(clients + 2, work)
    expected = {"GET /goods/:id": {"2xx": clients * rounds}, "POST /say": {"2xx": clients * rounds}}
    figures = await_rows(server, expected)
    assert figures["messages_in_all"] == 4 + 2 * clients * rounds


def test_clients_that_leave_the_console(plain):
    server = plain()
    for _ in range(20):
        with Client(server.addresses[0]) as client:
            client.send("GET /shop/console/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert read(server)["active"] == 0


def test_a_stop_while_the_console_is_written(plain):
    server = plain()
    client = server.open()
    client.send("GET /shop/console/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    server.send_signal(signal.SIGTERM)
    server.process.wait(60)
    server.finished = True
    assert server.process.returncode == 0
