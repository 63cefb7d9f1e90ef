# SPDX-License-Identifier: Apache-2.0
"""Listings of folders: what they have, in which order, as JSON, and for which clients."""

import json
import os
import pathlib
import re
import select
import signal
import socket
import urllib.parse

import pytest

from harness import build
from harness.certificates import Authority
from harness.content import MANY, MOST, OLD, populate
from harness.messages import request
from harness.server import run, section
from harness.ways import WAYS

pytestmark = build.needs_modules

JSON = "Accept: application/json"
ODD = ["a b", "quote\"'.txt", "<script>&amp;.txt", "line\nbreak", "100%.txt", "gr\u00fc\u00dfe", "back\\slash", "#?;"]
FILES = {
    "index.html": b"home\n",
    "pub/file2.txt": b"two\n",
    "pub/file10.txt": b"ten!!\n",
    "pub/File1.txt": b"",
    "pub/sub/deep/d.txt": b"deep\n",
    "pub/refused.txt": b"refused\n",
    "pub/refused/x.txt": b"x\n",
    "pub/.secret": b"secret\n",
    "pub/.git/config": b"secret\n",
    "pub/page.php": b"<?php secret ?>\n",
    "pub/old.bak": b"bak\n",
    "pub/README": b"read <me> \xff\n",
    "odd/x": b"x",
    "indexed/index.html": b"index\n",
    "indexed/hidden.txt": b"not listed\n",
    "off/a.txt": b"a\n",
    "private.txt": b"outside\n",
}


def plugins(*more):
    names = ["liana", "tls", build.MODULES / "picky.so", *more, "static", "dirlisting"]
    return section("PLUGINS", {"Load": names})


@pytest.fixture
def root(tmp_path):
    root = populate(tmp_path / "root", FILES)
    for name in ODD:
        (root / "odd" / name).write_bytes(name.encode())
    (root / os.fsdecode(b"odd/bad\xff\xc3")).write_bytes(b"bad")
    (root / "pub" / "inside").symlink_to("file2.txt")
    (root / "pub" / "folder").symlink_to("sub")
    (root / "pub" / "outside").symlink_to("../private.txt")
    (root / "pub" / "etc").symlink_to("/etc")
    (root / "pub" / "dangling").symlink_to("none")
    (root / "pub" / "loop").symlink_to("loop")
    os.mkfifo(root / "pub" / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(root / "pub" / "sock"))
    return root


def host_text(root, *rules, host=None, extra=""):
    """The file of a host with a section [DIRLISTING] for each of `rules`."""
    own = section("HOST", {"ServerName": "localhost", "DocumentRoot": root, **(host or {})})
    return own + "".join(section("DIRLISTING", rule) for rule in rules) + extra


@pytest.fixture
def start(serve, root, tmp_path):
    def make(*rules, way=WAYS["h1"], settings=None, host=None, extra="", more=(), limits=None, root=root):
        for protocol in ("h2",) * way.h2 + ("tls",) * way.tls:
            if not build.speaks(protocol):
                pytest.skip(f"the preset {build.PRESET} has no {protocol}")
        settings = dict(settings or {})
        if way.tls:
            way.ca = Authority(tmp_path / "ca")
            extra += section("TLS", way.ca.make("localhost", "localhost").keys())
            settings["Listen"] = "127.0.0.1:0 tls"
        config = {
            "plugins.load": plugins(*more),
            "sites/default": host_text(root, *(rules or ({},)), host=host, extra=extra),
        }
        if limits:
            config["plugins/dirlisting/dirlisting.conf"] = section("DIRLISTING_LIMITS", limits)
        server = serve(settings, root=root, config=config)
        server.open = lambda **rest: way.connect(server, **rest)
        return server

    return make


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def listing(client, path, *fields):
    answer = client.ask(path, JSON, *fields)
    assert (answer.status, answer["Content-Type"]) == (200, "application/json")
    return json.loads(answer.body)


def reload(server):
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    server.baseline += 2  # of the loop that waits for old generations


def names(found):
    return [entry["name"] for entry in found["entries"]]


# ── what a listing has ──


def test_entries(start, way):
    client = start({"ReadMe": "README.md README"}, way=way).open()
    found = listing(client, "/pub/")
    assert found | {"entries": None} == {
        "path": "/pub/",
        "sort": "name",
        "order": "asc",
        "sorted": True,
        "entries": None,
    }
    assert names(found) == ["sub", "File1.txt", "file2.txt", "file10.txt", "old.bak", "page.php", "README"]
    assert found["entries"][2] == {
        "name": "file2.txt",
        "type": "file",
        "bytes": 4,
        "mtime": "2020-09-13T12:26:40Z",
        "url": "/pub/file2.txt",
    }
    assert {**found["entries"][0], "mtime": ""} == {
        "name": "sub",
        "type": "folder",
        "bytes": None,
        "mtime": "",
        "url": "/pub/sub/",
    }
    page = client.ask("/pub/")
    assert (page.status, page["Content-Type"], page["Vary"]) == (200, "text/html; charset=utf-8", "Accept")
    assert b"file10.txt" in page.body and b"read &lt;me&gt;" in page.body
    assert b"secret" not in page.body and b"refused" not in page.body


def test_odd_names(start, way):
    """Each is shown as text, and its address leads to it."""
    client = start(way=way).open()
    found = listing(client, "/odd/")
    assert set(names(found)) == {*ODD, "x", "bad\ufffd\ufffd"}
    for entry in found["entries"]:
        answer = client.ask(entry["url"])
        assert (answer.status, len(answer.body)) == (200, entry["bytes"]), entry
    page = client.ask("/odd/").body
    assert b"<script>" not in page.replace(b"<script>\n", b"") or b"&lt;script&gt;" in page
    assert b"bad%FF%C3" in page


MODES = ["Off", "Inside", "On"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dotfiles", ["Off", "On"])
@pytest.mark.parametrize("key", [(), ("X-Key: 1",)])
def test_only_what_single_requests_get(start, root, mode, dotfiles, key):
    """A name is in the listing if, and only if, a request for it finds something."""
    client = start(host={"SymLink": mode, "DotFiles": dotfiles}).open()
    shown = {entry["name"]: entry for entry in listing(client, "/pub/", *key)["entries"]}
    for name in os.listdir(root / "pub"):
        answer = client.ask("/pub/" + urllib.parse.quote(name), *key)
        if name in shown and shown[name]["type"] == "folder":
            assert answer.status == 301, name
            assert client.ask(shown[name]["url"], *key).status == 200, name
        else:
            assert (answer.status == 200) == (name in shown), name
            assert answer.status != 200 or len(answer.body) == shown[name]["bytes"], name


def test_handlers_of_content(start):
    """A path that a plugin answers is not the file of that name."""
    client = start(extra=section("HANDLERS", {"Match": "*.php hello"}), more=[build.MODULES / "hello.so"]).open()
    assert "page.php" not in names(listing(client, "/pub/"))


def test_hidden(start):
    client = start({"Hidden": ["*.bak /pub/sub/", "=/pub/page.php"]}).open()
    assert names(listing(client, "/pub/")) == ["File1.txt", "file2.txt", "file10.txt", "README"]
    assert client.ask("/pub/old.bak").status == 200


def test_unreadable_files(start, root):
    if os.geteuid() == 0:
        pytest.skip("root may read all files")
    (root / "pub" / "file2.txt").chmod(0)
    (root / "pub" / "sub").chmod(0)
    shown = names(listing(start().open(), "/pub/"))
    assert "file2.txt" not in shown and "sub" not in shown


def test_aliases_and_users(start, tmp_path):
    other = populate(tmp_path / "other", {"in/a.txt": b"a", ".dot": b"x"})
    client = start(extra=section("ALIAS", {"Match": "/pub/alias", "To": other})).open()
    assert names(listing(client, "/pub/alias/")) == ["in"]
    assert listing(client, "/pub/alias/in/")["entries"][0]["url"] == "/pub/alias/in/a.txt"


# ── which folders ──


def test_which_folders(start):
    client = start({"Match": "/off", "Enabled": "Off"}, {"Match": "/"}).open()
    assert client.ask("/off/").status == 404
    assert client.ask("/off/a.txt").status == 200
    assert client.ask("/indexed/").body == b"index\n"
    assert client.ask("/none/").status == 404
    assert client.ask("/pub/.git/").status == 404
    assert client.ask("/pub/refused/").status == 403
    assert client.ask("/pub")["Location"] == "/pub/"
    assert client.ask("/pub/", method="POST").status == 405
    assert client.ask("/pub/file2.txt/").status == 404


def test_folders_that_are_not_listed(start, root):
    """They are in no listing, unless they have an index."""
    populate(root / "pub", {"indexed/index.html": b"index"})
    (root / "pub" / "off").mkdir()
    client = start({"Match": "/pub/indexed", "Enabled": "Off"}, {"Match": "/pub/off", "Enabled": "Off"}, {}).open()
    shown = names(listing(client, "/pub/"))
    assert "indexed" in shown and "off" not in shown
    assert (client.ask("/pub/indexed/").status, client.ask("/pub/off/").status) == (200, 404)


def test_hosts_without_a_section(serve, root):
    config = {"plugins.load": plugins(), "sites/default": host_text(root)}
    assert serve(root=root, config=config).connect().ask("/pub/").status == 404


def test_defaults_for_all_hosts(serve, root):
    """A section in monkey.conf holds for every host, behind those of the host."""
    config = {
        "plugins.load": plugins(),
        "sites/default": host_text(root, {"Match": "/off", "Enabled": "Off"}),
        "plugins/dirlisting/dirlisting.conf": "",
    }
    server = serve(root=root, config=config)
    (server.conf / "monkey.conf").write_text((server.conf / "monkey.conf").read_text() + section("DIRLISTING", {}))
    reload(server)
    with server.connect() as client:
        assert client.ask("/off/").status == 404
        assert client.ask("/pub/").status == 200


# ── the choice of the client ──


@pytest.mark.parametrize(
    "value, kind",
    [
        (None, "text/html; charset=utf-8"),
        ("*/*", "text/html; charset=utf-8"),
        ("application/json;q=0.5, text/html", "text/html; charset=utf-8"),
        ("application/json, text/html;q=0.5", "application/json"),
        ("application/*", "application/json"),
        ("image/png", "text/html; charset=utf-8"),
    ],
)
def test_negotiation(start, value, kind):
    answer = start().open().ask("/pub/", *([f"Accept: {value}"] if value else []))
    assert (answer["Content-Type"], answer["Vary"]) == (kind, "Accept")


ORDERS = {
    "": ["sub", "File1.txt", "file2.txt", "file10.txt", "old.bak", "page.php", "README"],
    "?order=desc": ["sub", "README", "page.php", "old.bak", "file10.txt", "file2.txt", "File1.txt"],
    "?sort=size": ["sub", "File1.txt", "file2.txt", "old.bak", "file10.txt", "README", "page.php"],
    "?sort=size&order=desc": ["sub", "page.php", "README", "file10.txt", "file2.txt", "old.bak", "File1.txt"],
    "?sort=date&order=desc": ["sub", "README", "File1.txt", "file2.txt", "file10.txt", "old.bak", "page.php"],
    "?sort=nonsense&x=%00": ["sub", "File1.txt", "file2.txt", "file10.txt", "old.bak", "page.php", "README"],
}


@pytest.mark.parametrize("query", ORDERS)
def test_orders(start, root, query):
    os.utime(root / "pub" / "README", (OLD + 5, OLD + 5))
    assert names(listing(start().open(), "/pub/" + query)) == ORDERS[query]


def test_order_of_the_section(start):
    client = start({"Sort": "size", "Order": "desc"}).open()
    assert names(listing(client, "/pub/")) == ORDERS["?sort=size&order=desc"]
    assert names(listing(client, "/pub/?sort=name&order=asc")) == ORDERS[""]


def test_conditions(start, root, way):
    client = start(way=way).open()
    first = client.ask("/pub/", JSON)
    again = client.ask("/pub/", JSON, f"If-None-Match: {first['ETag']}")
    assert (again.status, again["ETag"], again["Vary"], again.body) == (304, first["ETag"], "Accept", b"")
    assert client.ask("/pub/", JSON, f'If-None-Match: "x", {first["ETag"]}').status == 304
    assert client.ask("/pub/", f"If-None-Match: {first['ETag']}").status == 200, "another format"
    assert client.ask("/pub/?order=desc", JSON, f"If-None-Match: {first['ETag']}").status == 200
    assert client.ask("/pub/", JSON, "X-Key: 1", f"If-None-Match: {first['ETag']}").status == 200
    (root / "pub" / "file2.txt").write_bytes(b"other\n")
    assert client.ask("/pub/", JSON, f"If-None-Match: {first['ETag']}").status == 200
    assert first["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "value, status",
    [("*", 200), ('"x"', 412), ("{tag}", 412), ('"x", *', 200), ("", 412)],
)
def test_if_match(start, root, way, value, status):
    """Entity tags of listings are weak and never match strongly (RFC 9110 section 13.1.1)."""
    client = start({"Archives": "tar"}, way=way).open()
    tag = client.ask("/pub/", JSON)["ETag"]
    assert tag.startswith('W/"')
    field = "If-Match: " + value.format(tag=tag)
    for path in ("/pub/", "/pub/?archive=tar"):
        assert client.ask(path, JSON, field).status == status
        answer = client.ask(path, JSON, field, f"If-None-Match: {tag}")
        assert answer.status == (412 if status == 412 else 200 if "archive" in path else 304)
    assert client.ask("/nowhere/", field).status == 404


def test_head(start, way):
    client = start(way=way).open()
    for fields in ((), (JSON,)):
        get, head = client.ask("/pub/", *fields), client.ask("/pub/", *fields, method="HEAD")
        assert (head.status, head.body) == (200, b"")
        assert [row for row in head.fields if row[0].lower() != "date"] == [
            row for row in get.fields if row[0].lower() != "date"
        ]


def test_readme(start, root):
    client = start({"ReadMe": "refused.txt README"}).open()
    assert b"read &lt;me&gt;" not in client.ask("/pub/").body, "the first one is not for this client"
    (root / "pub" / "refused.txt").unlink()
    assert b"read &lt;me&gt;" in client.ask("/pub/").body
    (root / "pub" / "README").write_bytes(b"x" * 200_000)
    assert 64 * 1024 <= client.ask("/pub/").body.count(b"x") < 70_000


# ── large folders ──


@pytest.mark.parametrize("count", [MANY, pytest.param(MOST, marks=pytest.mark.slow)])
def test_many_entries(start, make_many_root, count):
    """Others on the same worker are answered before the listing begins, and while it is sent."""
    server = start(root=make_many_root(count), settings={"MaxKeepAliveRequest": 1000000, "HandlerTimeout": "60s"})
    client = ask_meanwhile(server, 3, "/many/", JSON)
    head = client.head()
    server.connect().assert_open()
    body, _ = client.chunks()
    found = json.loads(body)
    assert head.status == 200 and found["sorted"]
    assert names(found) == [f"file-{n}.txt" for n in range(count)]


def ask_meanwhile(server, least, target, *fields):
    """Asks until so many requests of another client of the same worker are answered before the response begins: this
    process may be the one that a loaded machine does not run. Returns the client whose response has begun."""
    for _ in range(10):
        client, other = server.connect(timeout=60), server.connect()
        client.send(request(target, *fields))
        answers = 0
        while not select.select([client.sock], [], [], 0)[0]:
            other.assert_open()
            answers += 1
        if answers >= least:
            return client
        client.close()
    raise AssertionError(f"{answers} requests were answered")


@pytest.mark.concurrent
def test_costly_rules(start, root):
    """A turn of the worker ends after some milliseconds: 200 checks take a second, in as many turns. The client may be
    slower than the server."""
    populate(root, {"hello.txt": b"Hello, world\n", **{f"costly/{n}": b"" for n in range(200)}})
    server = start(settings={"MaxKeepAliveRequest": 1000000})
    client = ask_meanwhile(server, 20, "/costly/", JSON)
    assert len(json.loads(client.response().body)["entries"]) == 200


def test_more_than_max_listing(start, many_root, way):
    """Unsorted, and complete."""
    settings = {"HandlerTimeout": "60s", "KeepAliveTimeout": "5m"}
    server = start({"MaxListing": "1M"}, root=many_root, way=way, settings=settings)
    client = server.open(timeout=60)
    found = listing(client, "/many/")
    assert not found["sorted"]
    assert sorted(names(found)) == sorted(f"file-{n}.txt" for n in range(MANY))
    page = client.ask("/many/")
    assert page["ETag"] is None
    assert page.body.count(b".txt</a>") == MANY


@pytest.mark.concurrent
def test_memory_of_all_listings(start, many_root):
    """Above the limit a listing is sent in batches, and gives its share back at the end."""
    server = start(root=many_root, limits={"Memory": "1M"}, settings={"HandlerTimeout": "60s"})
    for _ in range(2):
        with server.connect(timeout=60) as client:
            found = listing(client, "/many/")
            assert not found["sorted"] and len(found["entries"]) == MANY
    assert listing(server.connect(), "/")["sorted"]


@pytest.mark.parametrize("rule", [{}, {"MaxListing": "64K"}], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("taken", [0, 1, 5_000, 500_000])
def test_clients_that_leave(start, many_root, way, rule, taken):
    """The rest is cancelled; settle() finds a descriptor that is left, ASan the memory."""
    server = start(rule, root=many_root, way=way, settings={"HandlerTimeout": "60s"})
    client = server.open(timeout=60)
    if way.h2:
        client.begin("/many/", "accept: application/json")
    else:
        client.send(request("/many/", JSON))
    if taken:
        client.head()
        if way.h2:
            client.exactly(taken)
        else:
            client.fill(taken)
    client.reset()
    server.settle()


@pytest.mark.concurrent
def test_a_reload_amid_a_listing(start, many_root):
    server = start({"MaxListing": "64K"}, root=many_root, settings={"HandlerTimeout": "60s"})
    client = server.connect(timeout=60, rcvbuf=4096)
    client.send(request("/many/", JSON))
    client.head()
    reload(server)
    body, _ = client.chunks()
    assert len(json.loads(body)["entries"]) == MANY


# ── the configuration ──


@pytest.mark.parametrize(
    "rule, message",
    [
        ({"Archives": "tar zip"}, r'"Archives" takes tar, tar.gz and tar.zst, each once at most, not "zip"'),
        ({"Archives": "tar tar"}, r'"Archives" takes .*not "tar"'),
        ({"ReadMe": "../README"}, r'"ReadMe" takes names of files in the folder'),
        ({"MaxListing": "1K"}, "MaxListing"),
        ({"Hidden": "*.bak ~("}, "regular expression"),
    ],
)
def test_mistakes(tmp_path, root, rule, message):
    conf = tmp_path / "conf"
    (conf / "sites").mkdir(parents=True)
    (conf / "monkey.conf").write_text(section("SERVER", {"Listen": "127.0.0.1:0"}))
    (conf / "sites" / "default").write_text(host_text(root, rule))
    result = run("-t", "-c", conf)
    assert result.returncode != 0
    assert re.search(message, result.stdout + result.stderr), result.stderr


def test_rules_that_never_match(tmp_path, root):
    conf = tmp_path / "conf"
    (conf / "sites").mkdir(parents=True)
    (conf / "monkey.conf").write_text(section("SERVER", {"Listen": "127.0.0.1:0"}))
    (conf / "sites" / "default").write_text(host_text(root, {"Match": "/"}, {"Match": "/pub"}))
    assert run("-t", "-c", conf).returncode != 0


def test_libarchive_is_opened_when_it_is_used(start):
    def has_library(server):
        return "libarchive" in pathlib.Path(f"/proc/{server.pid}/maps").read_text()

    assert not has_library(start())
    assert has_library(start({"Archives": "tar"}))
