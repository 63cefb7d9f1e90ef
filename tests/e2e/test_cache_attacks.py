# SPDX-License-Identifier: Apache-2.0
"""Attacks on the API of the file cache: pages of other sites, paths out of the root, files of other hosts, programs,
files behind rules and logins, and floods."""

import base64
import json
import os
import urllib.parse

import pytest

from harness import build
from harness.caching import await_settled, make_aged_roots, needs_cache, start_cached
from harness.client import ProtocolError
from harness.server import await_true, section

pytestmark = [needs_cache, pytest.mark.single_protocol, pytest.mark.usefixtures("clock")]

ADMIN = {"Admin": "/cache"}
SECRET = b"<?php secret ?><loc>/the-secret</loc>"
FILES = {
    "a.txt": b"first",
    "b.txt": b"second",
    ".secret": b"hidden",
    "dir/c.txt": b"third",
    "private/key.txt": b"key",
    "private/map.xml": b"<loc>/private/the-secret</loc>",
    "app.php": SECRET,
    "app.php.bak": SECRET,
    "dir/app.php": SECRET,
    "large.xml": b"<loc>/a.txt</loc>" * 1_000_000,
    "many.xml": b"<loc>/n</loc>" * 100_001,
}
FORM, TEXT, PARTS = "application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"
needs_rules = pytest.mark.skipif(not (build.PLUGINS / "mandril.so").exists(), reason="the preset has no mandril")
needs_programs = pytest.mark.skipif(not (build.MODULES / "scripts.so").exists(), reason="the preset has no modules")


@pytest.fixture(scope="module")
def aged_roots(tmp_path_factory):
    return make_aged_roots(tmp_path_factory.mktemp("aged"), FILES, count=40)


@pytest.fixture
def start(serve, aged_roots):
    def make(rule=ADMIN, **rest):
        return start_cached(serve, "Revalidate 1s", rules=[rule], root=next(aged_roots), **rest)

    return make


def post(client, target, body=b"", *fields, kind=FORM, **rest):
    if isinstance(body, dict):
        body = urllib.parse.urlencode(body).encode()
    return client.ask(target, f"Content-Type: {kind}", *fields, method="POST", body=body, **rest)


def entries(client, **rest):
    return {one["path"] for one in json.loads(client.ask("/cache/entries", **rest).body)["entries"]}


# ── pages of other sites ──


OTHER_SITES = [
    ["Origin: http://elsewhere.example", "Sec-Fetch-Site: cross-site"],
    ["Origin: http://localhost.elsewhere.example"],
    ["Origin: http://elsewhere.example/localhost"],
    ["Origin: localhost"],
    ["Origin: "],
    ["Origin: null", "Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: same-site"],
    ["Sec-Fetch-Site: "],
    ["Sec-Fetch-Site: same-origin, cross-site"],
]
CHANGES = [("reset", b"all=1"), ("reset?all=1", b""), ("reset/a.txt", b""), ("add", b"/b.txt")]


def test_pages_of_other_sites_change_nothing(start):
    """Whatever a form or a script can send without asking before."""
    with start().connect() as client:
        assert post(client, "/cache/add?path=/a.txt").status == 200
        for fields in OTHER_SITES:
            for kind in (FORM, TEXT, PARTS, ""):
                for target, body in CHANGES:
                    answer = post(client, f"/cache/{target}", body, *fields, kind=kind)
                    assert answer.status == 403, (fields, kind, target)
        assert entries(client) == {"/a.txt"}


def test_no_page_gets_leave(start):
    """A request that a browser asks for before gets no headers that allow it."""
    with start().connect() as client:
        fields = ["Origin: http://elsewhere.example", "Access-Control-Request-Method: POST"]
        answer = client.ask("/cache/reset", *fields, method="OPTIONS")
        assert answer["Access-Control-Allow-Origin"] is None
        assert client.ask("/cache/stats", fields[0])["Access-Control-Allow-Origin"] is None


@needs_rules
def test_a_rule_does_not_open_the_page_to_other_names(start):
    """A page of another site may let its name resolve to this server, and its browser may be where a rule allows it."""
    allow = section("RULES", {"Match": "/cache", "Action": "allow"})
    server = start(settings={"TrustedProxies": "127.0.0.1"}, config={"plugins/mandril/mandril.conf": allow})
    remote = "X-Forwarded-For: 192.0.2.7"
    with server.connect() as client:
        assert client.ask("/cache/stats", remote).status == 200
        assert client.ask("/cache/stats", remote, host="rebound.example").status == 404
        same = ["Origin: http://rebound.example", "Sec-Fetch-Site: same-origin", remote]
        assert post(client, "/cache/reset", b"all=1", *same, host="rebound.example").status == 405


# ── paths ──

OUTSIDE = [
    "/../../../../etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/dir/../../../../etc/passwd",
    "/link",
    "/links/passwd",
    "/.%00/etc/passwd",
    "//etc/passwd",
    "/fifo",
]


def add_links(root):
    (root / "link").symlink_to("/etc/passwd")
    (root / "links").symlink_to("/etc")
    os.mkfifo(root / "fifo")


@pytest.mark.parametrize("mode", ["Off", "Inside"])
def test_paths_out_of_the_root(serve, mode, clock):
    server = start_cached(serve, "Revalidate 1s", rules=[ADMIN], files={"a.txt": b"a"}, host={"SymLink": mode})
    add_links(server.root)
    await_settled(server.root, clock)
    with server.connect() as client:
        for path in OUTSIDE:
            quoted = urllib.parse.quote(path, safe="")
            for query in (f"path={quoted}", f"path={path}", f"sitemap={quoted}", f"directory={quoted}%2F"):
                answer = post(client, f"/cache/add?{query}")
                assert answer.status in (200, 400, 403, 404) and b"root:" not in answer.body, (query, answer)
                assert json.loads(answer.body).get("kept", 0) == 0, (query, answer)
            for target in (f"/cache/add{path}", f"/cache/reset{path}"):
                answer = post(client, target)
                assert b"root:" not in answer.body and answer.status in (200, 400, 404, 405), (target, answer)
        assert post(client, "/cache/add?directory=/").status == 200
        kept = {one for one in entries(client) if client.ask(one).status == 200}
        assert kept == {"/a.txt"}


def test_names_that_are_no_text(serve, clock):
    """Whatever a file is called, the answers are JSON, and the next page can be asked for."""
    server = start_cached(serve, "Revalidate 1s", rules=[ADMIN], files={"a.txt": b"a"})
    names = [b"\xff\xfe", b'"}]', b"<script>", b"a\nb", b"a%2Fb", b"a&b=c#d?e", b"\\", b"x" * 255]
    for name in names:
        with open(os.path.join(os.fsencode(server.root), name), "wb") as file:
            file.write(b"x")
    await_settled(server.root, clock)
    with server.connect() as client:
        assert json.loads(post(client, "/cache/add?directory=/").body)["kept"] == len(names) + 1
        seen, after = 0, ""
        while after is not None:
            query = {"sort": "name", "limit": 2, **({"after": after} if after else {})}
            answer = json.loads(client.ask(f"/cache/entries?{urllib.parse.urlencode(query)}").body)
            seen, after = seen + len(answer["entries"]), answer.get("next")
        assert seen == len(names) + 1
        for name in names:
            quoted = urllib.parse.quote(b"/" + name, safe="")
            assert json.loads(post(client, f"/cache/reset?path={quoted}").body) == {"removed": 1}, name


# ── files of others ──


def test_entries_of_other_hosts(serve, aged_roots):
    """One host can neither see, remove nor load files of another, whatever it calls them."""
    root, other = next(aged_roots), next(aged_roots)
    host = section("HOST", {"ServerName": "other.example", "DocumentRoot": other})
    config = {"sites/other": host + section("CACHE", ADMIN)}
    server = start_cached(serve, "Revalidate 1s", rules=[ADMIN], root=root, config=config)
    with server.connect() as client:
        assert json.loads(post(client, "/cache/add?path=/b.txt").body)["kept"] == 1
        for query in ["path=/b.txt", "prefix=/", "all=1", f"path={root}/b.txt", "path=/../root0/b.txt"]:
            answer = json.loads(post(client, f"/cache/reset?{query}", host="other.example").body)
            assert answer == {"removed": 0}, query
        for name in ["http://localhost/b.txt", "https://user@localhost:443/b.txt", "//localhost/b.txt"]:
            answer = json.loads(post(client, "/cache/add", name.encode(), kind=TEXT, host="other.example").body)
            assert (answer["kept"], answer["failed"]) == (0, 1), (name, answer)
        assert entries(client, host="other.example") <= {"/localhost/b.txt"}  # a name that is not there
        assert entries(client) == {"/b.txt"}


@needs_programs
@pytest.mark.parametrize("mode", ["Off", "On"])
def test_programs_are_never_kept(start, mode):
    """Not by a list, a folder, a sitemap or Warm; nor is a part of one in an answer."""
    names = ["liana", "cache", "static", "status", build.MODULES / "scripts.so"]
    config = {"plugins.load": section("PLUGINS", {"Load": names})}
    text = section("SCRIPTS", {"Split": ".php"})
    server = start({**ADMIN, "Warm": "/"}, host={"SymLink": mode}, config=config, text=text)
    server.wait_log("cache: Warm has kept")
    with server.connect() as client:
        for name in ["/app.php", "/app.php.bak", "/dir/app.php"]:
            answer = post(client, f"/cache/add?path={name}")
            assert json.loads(answer.body)["kept"] == 0, answer
            answer = post(client, f"/cache/add?sitemap={name}")
            assert answer.status in (403, 404) and b"the-secret" not in answer.body, answer
        for folder in ["/", "/dir/", "/app.php/"]:
            post(client, f"/cache/add?directory={folder}")
        assert not {one for one in entries(client) if "php" in one}
        for name in ["/app.php", "/app.php.bak", "/dir/app.php"]:
            assert client.ask(name).status == 404


@needs_rules
@pytest.mark.parametrize("keys", [{"Action": "deny 403"}, {"Network": "192.0.2.0/24", "Action": "deny 403"}])
def test_files_behind_rules(start, keys):
    """A file that is kept is for those clients only that may GET it, and the names in a sitemap, too."""
    rules = section("RULES", {"Match": "/private", **keys})
    rules += section("RULES", {"Match": "/cache", "Action": "allow"})
    server = start(settings={"TrustedProxies": "127.0.0.1"}, config={"plugins/mandril/mandril.conf": rules})
    client_address = "X-Forwarded-For: 192.0.2.7"
    with server.connect() as client:
        assert json.loads(post(client, "/cache/add?path=/private/key.txt", b"", client_address).body)["kept"] == 1
        for query in ["sitemap=/private/map.xml", "directory=/private/"]:
            answer = post(client, f"/cache/add?{query}", b"", client_address)
            assert answer.status == 403 and b"the-secret" not in answer.body, answer
        for _ in range(3):
            assert client.ask("/private/key.txt", client_address).status == 403
        allowed = 403 if "Network" not in keys else 200
        assert client.ask("/private/key.txt").status == allowed


@pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="the preset has no plugin auth")
def test_files_behind_logins(start, tmp_path):
    users = tmp_path / "users"
    users.write_text("ada:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n")
    users.chmod(0o600)
    text = section("AUTH", {"Match": "/private", "Users": users})
    server = start({**ADMIN, "Warm": "/"}, text=text)
    server.wait_log("cache: Warm has kept")
    with server.connect() as client:
        for _ in range(3):
            assert client.ask("/private/key.txt").status == 401
        assert post(client, "/cache/add?sitemap=/private/map.xml").status == 403
        login = "Authorization: Basic " + base64.b64encode(b"ada:passw0rd").decode()
        assert client.ask("/private/key.txt", login).body == b"key"


# ── floods ──


def test_floods_of_adds(start):
    """As many as are allowed run, others are told to come again; files are served meanwhile, and nothing is left."""
    server = start()
    head = f"POST /cache/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TEXT}\r\nContent-Length: %d\r\n\r\n"
    body = b"/a.txt\n/none\n" * 1000
    flood = [server.connect() for _ in range(30)]
    for at, client in enumerate(flood):
        send = client.send if at < 4 else client.send_in_background
        send((head % len(body)).encode() + body)
    with server.connect() as client:
        for _ in range(20):
            assert client.ask("/b.txt").body == b"second"
    for client in flood[20:]:
        client.reset()
    statuses = [client.response("POST").status for client in flood[:20]]
    assert set(statuses) <= {200, 503} and 200 in statuses, statuses
    for client in flood[:20]:
        client.close()

    def is_idle():
        with server.connect() as client:
            return post(client, "/cache/add?path=/a.txt").status == 200

    await_true(is_idle, 60, "an add")


@pytest.mark.slow
def test_lists_that_are_too_long(start):
    server = start()
    with server.connect(timeout=60) as client:
        answer = post(client, "/cache/add?sitemap=/large.xml")
        assert answer.status == 413 and b"larger than 16 MB" in answer.body
        answer = json.loads(post(client, "/cache/add?sitemap=/many.xml").body)
        assert (answer["asked"], answer["more"], len(answer["errors"])) == (100_000, True, 1000)
        assert answer["errors_omitted"] == 99_000
    with server.connect() as client:
        head = b"POST /cache/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000000\r\n\r\n"
        client.send_in_background(head + b"/a.txt\n" * 10_000_000)
        assert client.response("POST").status == 413
    with server.connect() as client:
        assert client.ask("/a.txt").status == 200


def test_heads_of_parameters(start):
    """Thousands of parameters, and values that are as long as they may be."""
    with start().connect(timeout=60) as client:
        body = b"&".join([b"path=/a.txt"] * 10_000)
        assert json.loads(post(client, "/cache/add", body).body)["kept"] == 10_000
        assert post(client, "/cache/add", body + b"&path=/a.txt").status == 413
        assert post(client, "/cache/reset", b"path=/" + b"%61" * 4094).status == 200
        assert post(client, "/cache/reset", b"path=/" + b"a" * 4096).status == 400
        assert post(client, "/cache/reset", b"&" * 100_000).status == 400
        assert post(client, "/cache/reset", b"=").status == 400
        with pytest.raises((ProtocolError, OSError, AssertionError)):
            assert post(client, "/cache/reset/" + "a" * 100_000).status == 200
