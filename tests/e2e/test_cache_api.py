# SPDX-License-Identifier: Apache-2.0
"""The API of the file cache: its figures and entries, what may change them, and what is loaded before requests come."""

import gzip
import json
import re
import urllib.parse

import pytest

from harness import build
from harness.caching import await_settled, make_aged_roots, needs_cache, start_cached
from harness.failing_memory import fail_each, only_sanitized
from harness.server import await_true, run, section, write_config
from test_cache import reload

pytestmark = [needs_cache, pytest.mark.single_protocol]

FILES = {
    "a.txt": b"first",
    "b.txt": b"second",
    "large.bin": b"x" * 20_000,
    "dir/index.html": b"<p>index",
    "dir/c.txt": b"third",
    "dir/deep/d.txt": b"fourth",
    "dir/.hidden": b"hidden",
    ".secret": b"hidden",
    "app.js": b"script\n" * 100,
    "app.js.gz": gzip.compress(b"script\n" * 100, mtime=0),
    "with blank.txt": b"blank",
    "list.xml": b"<urlset><url><loc>http://localhost/a.txt</loc></url><url><loc>\n/dir/c.txt </loc></url>"
    b"<url><loc>https://elsewhere.example/b.txt</loc></url></urlset>",
}
ADMIN = {"Admin": "/cache"}
needs_rules = pytest.mark.skipif(not (build.PLUGINS / "mandril.so").exists(), reason="the preset has no mandril")


@pytest.fixture(scope="module")
def aged_roots(tmp_path_factory):
    return make_aged_roots(tmp_path_factory.mktemp("aged"), FILES, count=60)


@pytest.fixture
def start(serve, aged_roots):
    def make(rule=ADMIN, mode="Revalidate 1s", **rest):
        return start_cached(serve, mode, rules=[rule], root=next(aged_roots), **rest)

    return make


def get(client, target, *fields):
    answer = client.ask(target, *fields)
    assert answer.status == 200, answer
    assert answer["Cache-Control"] == "no-store"
    return json.loads(answer.body)


def post(client, target, body=b"", *fields, status=200, kind="application/x-www-form-urlencoded", **rest):
    if isinstance(body, dict | list):
        body = urllib.parse.urlencode(body).encode()
    answer = client.ask(target, f"Content-Type: {kind}", *fields, method="POST", body=body, **rest)
    assert answer.status == status, answer
    return json.loads(answer.body)


def errors_of(answer):
    return {one["path"]: one["error"] for one in answer["errors"]}


def entries(client, **query):
    return get(client, f"/cache/entries?{urllib.parse.urlencode(query)}")["entries"]


def test_folders_that_are_watched(start):
    with start(mode="Notify 1s").connect() as client:

        def count_watched():
            assert client.ask("/dir/c.txt").status == 200
            return get(client, "/cache/stats")["watched_folders"]

        await_true(lambda: count_watched() == 3)  # the one above the root, the root, and dir


def test_figures_and_entries(start):
    server = start()
    with server.connect() as client:
        for _ in range(5):
            client.ask("/a.txt")
        client.ask("/large.bin")
        client.ask("/large.bin")
        stats = get(client, "/cache/stats")
        assert stats["hits"] == 3 and stats["kinds"]["body"]["entries"] == 1
        assert stats["kinds"]["descriptor"]["entries"] == 1 and 0 < stats["hit_ratio"] < 1
        assert stats["watched_folders"] == stats["overflows"] == 0
        found = entries(client, sort="hits")
        assert [one["path"] for one in found][0] == "/a.txt" and found[0]["hits"] == 3
        assert (found[0]["kind"], found[0]["file_bytes"]) == ("body", 5)
        assert [one["path"] for one in entries(client, sort="bytes", prefix="/l")] == ["/large.bin"]


def test_added_files_need_no_second_request(start):
    server = start()
    with server.connect() as client:
        answer = post(client, "/cache/add", [("path", "/a.txt"), ("path", "/with blank.txt"), ("path", "/dir/")])
        assert (answer["asked"], answer["kept"], answer["failed"]) == (3, 3, 0)
        before = server.count("hits")
        for path in ["/a.txt", "/with%20blank.txt", "/dir/"]:
            assert client.ask(path).status == 200
        assert server.count("hits") == before + 3
        again = post(client, "/cache/add", b"/a.txt\n# a comment\n\nhttp://localhost/b.txt?x=1\n")
        assert (again["asked"], again["kept"]) == (2, 2)
        assert post(client, "/cache/add/dir/c.txt")["kept"] == 1
        assert {one["path"] for one in entries(client)} >= {"/a.txt", "/b.txt", "/dir/c.txt", "/dir/index.html"}


def test_what_is_not_added(start):
    server = start()
    with server.connect() as client:
        wanted = ["/none.txt", "/.secret", "/dir", "/../../etc/passwd", "/dir/.hidden"]
        answer = post(client, "/cache/add", [("path", path) for path in wanted])
        assert (answer["kept"], answer["failed"]) == (0, 5), answer
        text = b"http://elsewhere.example/a.txt\nno path\n/a%2Fb\n"
        errors = errors_of(post(client, "/cache/add", text, kind="text/plain"))
        assert errors["http://elsewhere.example/a.txt"] == "it is a path of another host"
        assert "neither a path" in errors["no path"] and "encoded slash" in errors["/a%2Fb"]

        def is_young():  # for three seconds, which a loaded machine may take for the call
            (server.root / "new.txt").write_bytes(b"new")
            errors = errors_of(post(client, "/cache/add", {"path": "/new.txt"}))
            return "less than three seconds" in errors.get("/new.txt", "")

        await_true(is_young)


def test_folder_and_sitemap(start):
    server = start()
    with server.connect() as client:
        answer = post(client, "/cache/add", {"directory": "/dir/"})
        assert (answer["kept"], answer["failed"]) == (3, 0), answer
        assert post(client, "/cache/add", {"directory": "/dir/"})["present"] == 3
        answer = post(client, "/cache/add", {"sitemap": "/list.xml"})
        assert (answer["asked"], answer["kept"], answer["present"]) == (3, 1, 1)
        assert errors_of(answer) == {"https://elsewhere.example/b.txt": "it is a path of another host"}
        assert post(client, "/cache/add", {"sitemap": "/none.xml"}, status=404)["error"]
        assert post(client, "/cache/add", {"directory": "/none/"}, status=404)["error"]
        assert post(client, "/cache/add", {"directory": "/.hidden/"}, status=404)["error"]


def test_reset(start):
    server = start()
    with server.connect() as client:
        post(client, "/cache/add", {"directory": "/"})
        assert post(client, "/cache/reset", {"path": "/a.txt"}) == {"removed": 1}
        assert post(client, "/cache/reset/b.txt") == {"removed": 1}
        left = {one["path"] for one in entries(client)}
        assert "/dir/c.txt" in left and not {"/a.txt", "/b.txt"} & left
        assert post(client, "/cache/reset", {"prefix": "/dir/"})["removed"] >= 3
        assert not [one for one in entries(client) if one["path"].startswith("/dir/")]
        assert post(client, "/cache/reset", {"all": "1"})["removed"] > 0
        assert entries(client) == []


@pytest.mark.parametrize(
    "call, body",
    [
        ("reset", b""),
        ("reset", b"path=/a&prefix=/b"),
        ("reset", b"all=yes"),
        ("reset", b"path=none"),
        ("reset", b"path=%zz"),
        ("add", b""),
        ("add", b"what=/a"),
        ("add", b"path=%00"),
        ("add", b"directory=/dir"),
        ("add", b"path=/a.txt&sitemap=/list.xml"),
    ],
)
def test_wrong_parameters(start_once, call, body):
    with start_once.connect() as client:
        assert post(client, f"/cache/{call}", body, status=400)["error"]


@pytest.fixture
def start_once(start):
    return start()


@pytest.mark.parametrize("query", ["sort=size", "limit=0", "limit=1001", "after=x", "prefix=a", "what=1", "after=1:x"])
def test_wrong_queries(start_once, query):
    with start_once.connect() as client:
        assert client.ask(f"/cache/entries?{query}").status == 400


def test_methods(start_once):
    with start_once.connect() as client:
        for path in ["reset", "add", "reset/a.txt", "add/a.txt"]:
            answer = client.ask(f"/cache/{path}")
            assert (answer.status, answer["Allow"]) == (405, "POST, OPTIONS")
        for path in ["stats", "entries", "", "page.js"]:
            assert client.ask(f"/cache/{path}", method="POST", body=b"").status == 405
        assert client.ask("/cache").status == 303
        assert client.ask("/cachestats").status == client.ask("/cache/none").status == 404


@pytest.mark.parametrize(
    "fields, status",
    [
        ([], 200),
        (["Sec-Fetch-Site: same-origin"], 200),
        (["Sec-Fetch-Site: none"], 200),
        (["Sec-Fetch-Site: same-site"], 403),
        (["Sec-Fetch-Site: cross-site"], 403),
        (["Sec-Fetch-Site: cross-site", "X-Requested-With: x"], 403),
        (["Origin: http://elsewhere.example"], 403),
        (["Origin: null"], 403),
        (["Origin: http://elsewhere.example", "X-Requested-With: fetch"], 403),
    ],
)
def test_pages_of_other_sites(start_once, fields, status):
    with start_once.connect() as client:
        post(client, "/cache/reset", {"path": "/a.txt"}, *fields, status=status)
        post(client, "/cache/add", {"path": "/a.txt"}, *fields, status=status)


def test_limits_of_a_call(start_once):
    with start_once.connect() as client:
        text = b"/a.txt\n" * 10_001
        assert "10000" in post(client, "/cache/add", text, kind="text/plain", status=413)["error"]
        answer = client.ask("/cache/add", "Content-Type: text/plain", method="POST", body=b"/a\n" * 400_000)
        assert answer.status == 413


def test_pages_of_entries(serve):
    files = {f"f{n:03}.txt": b"%d" % n for n in range(130)}
    server = start_cached(serve, "Revalidate 1s", rules=[ADMIN], files=files)
    await_settled(server.root)
    with server.connect() as client:
        assert post(client, "/cache/add", {"directory": "/"})["kept"] == 130
        for sort in ["name", "hits", "bytes", "age"]:
            seen, after = [], None
            while after is not None or not seen:
                query = {"sort": sort, "limit": 50, "prefix": "/f", **({"after": after} if after else {})}
                answer = get(client, f"/cache/entries?{urllib.parse.urlencode(query)}")
                assert answer["total"] == 130 and len(answer["entries"]) <= 50
                seen += [one["path"] for one in answer["entries"]]
                after = answer.get("next")
                if sort == "name":
                    client.ask("/f001.txt")  # entries change meanwhile
            if sort != "age":  # ages grow between the pages
                assert sorted(seen) == [f"/{name}" for name in sorted(files)]
            if sort == "name":
                assert seen == sorted(seen)


def test_events(start):
    server = start()
    with server.connect() as client:
        client.send(b"GET /cache/stats HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        data = b""
        while data.count(b"data: {") < 2:
            data += client.sock.recv(65536)
        assert b"Content-Type: text/event-stream" in data and b'"hit_ratio":' in data


def test_reload_amid_adds_and_events(start):
    server = start()
    with server.connect() as watcher, server.connect() as client:
        watcher.send(b"GET /cache/stats HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        data = watcher.sock.recv(65536)
        for number in range(1, 4):
            body = b"/a.txt\n/dir/c.txt\n" * 2000
            answer = post(client, "/cache/add", body, kind="text/plain")
            assert answer["kept"] == answer["asked"] == 4000
            reload(server, number)
        while not data.endswith(b"\r\n0\r\n\r\n"):  # the stream has ended
            data += watcher.sock.recv(65536)


def test_other_hosts(serve, aged_roots):
    root, other = next(aged_roots), next(aged_roots)
    host = section("HOST", {"ServerName": "other.example", "DocumentRoot": other})
    config = {"sites/other": host + section("CACHE", ADMIN)}
    server = start_cached(serve, "Revalidate 1s", rules=[ADMIN], root=root, config=config)
    with server.connect() as client:
        post(client, "/cache/add", {"path": "/b.txt"})
        answer = client.ask("/cache/entries", host="other.example")
        assert answer.status == 200 and json.loads(answer.body)["entries"] == []
        post(client, "/cache/reset", {"all": 1}, host="other.example")
        assert [one["path"] for one in entries(client)] == ["/b.txt"]


@needs_rules
def test_access(start):
    trusted = {"TrustedProxies": "127.0.0.1"}
    server = start(settings=trusted)
    with server.connect() as client:
        assert client.ask("/cache/stats", "X-Forwarded-For: 192.0.2.7").status == 404
        assert client.ask("/cache/stats", host="rebound.example").status == 404
        assert client.ask("/cache/stats").status == 200
        server.wait_log("cache: Admin /cache is not shown to this client")
    rules = section("RULES", {"Match": "/cache", "Network": "192.0.2.0/24", "Action": "allow"})
    rules += section("RULES", {"Match": "/cache", "Action": "deny 403"})
    server = start(settings=trusted, config={"plugins/mandril/mandril.conf": rules})
    with server.connect() as client:
        assert client.ask("/cache/stats", "X-Forwarded-For: 192.0.2.7").status == 200
        assert client.ask("/cache/stats", "X-Forwarded-For: 198.51.100.7").status == 403


def check(tmp_path, site_root, rule, settings=None):
    """What --test says of a host with this section."""
    folder = write_config(tmp_path / "conf", site_root, settings, text=section("CACHE", rule))
    result = run("-c", folder, "--test")
    return result.returncode, result.stdout + result.stderr


def test_a_public_page_without_a_rule(tmp_path, site_root):
    code, text = check(tmp_path, site_root, ADMIN, {"Listen": "0.0.0.0:0"})
    assert code == 0 and "Action allow" in text, text
    code, text = check(tmp_path, site_root, ADMIN)
    assert code == 0 and "Action allow" not in text, text


@needs_rules
def test_the_line_that_the_warning_names(tmp_path, site_root):
    """With it there is no warning any more."""
    rule = section("RULES", {"Match": "/cache", "Network": "10.0.0.0/8", "Action": "allow"})
    folder = write_config(tmp_path / "conf", site_root, {"Listen": "0.0.0.0:0"}, text=section("CACHE", ADMIN) + rule)
    result = run("-c", folder, "--test")
    assert result.returncode == 0 and "Admin" not in result.stdout + result.stderr


# ── Warm ──


def await_warm(server, result):
    server.wait_log(re.escape(f"cache: Warm has {result}, host: localhost"))


def test_warm_folder(start):
    server = start({**ADMIN, "Warm": "/dir/"})
    await_warm(server, "kept 3 files (0 KB); 0 were there, 0 failed")
    with server.connect() as client:
        assert [client.ask(path).body for path in ["/dir/c.txt", "/dir/deep/d.txt"]] == [b"third", b"fourth"]
        assert server.count("hits") == 2 and server.count("misses") == 0
        reload(server)
        await_warm(server, "kept 0 files (0 KB); 3 were there, 0 failed")


def test_warm_list(start, tmp_path):
    (tmp_path / "list").write_bytes(b"/a.txt\n/none.txt\n/.secret\n")
    server = start({**ADMIN, "Warm": tmp_path / "list"})
    await_warm(server, "kept 1 files (0 KB); 0 were there, 2 failed: /none.txt: there is no such file")


def test_wrong_warm(tmp_path, site_root):
    (tmp_path / "list").write_bytes(b"/a\n" * 10_000_000)
    code, text = check(tmp_path, site_root, {"Warm": tmp_path / "list"})
    assert code == 1 and "is too long" in text, text
    code, text = check(tmp_path, site_root, {"Warm": tmp_path / "none"})
    assert code == 1 and "cannot read the list of paths" in text, text


def test_sections_that_are_no_rules(start):
    server = start({"Match": "/b.txt", "Files": "Off"}, keys={"Admin": "/cache"})
    with server.connect() as client:
        errors = errors_of(post(client, "/cache/add", [("path", "/a.txt"), ("path", "/b.txt")]))
        assert errors == {"/b.txt": "Files Off: it is not cached"}


# ── memory ──


@only_sanitized
@pytest.mark.parametrize("call", ["entries", "add", "reset"])
def test_memory(start, call):
    server = start()

    def exchange():
        with server.connect() as client:
            if call == "entries":
                return client.ask("/cache/entries").status
            return client.ask(f"/cache/{call}?path=/a.txt", method="POST", body=b"").status

    assert fail_each(server, exchange) > 1
