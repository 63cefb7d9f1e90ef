# SPDX-License-Identifier: Apache-2.0
"""TryFiles: names in place of a path; single-page applications, names without their suffix, a status at the end."""

import pytest

from harness.server import run, write_config
from test_config import problems

FILES = {
    "index.html": b"<p>application",
    "index.html.gz": b"gzip of application",
    "app.js": b"script",
    "about.html": b"<p>about",
    "docs/index.html": b"<p>docs",
    "docs/a.txt": b"a",
    "empty/x/y": b"",
    "gone.txt": b"gone",
    ".html": b"hidden",
    ".git/config": b"hidden",
}
SINGLE_PAGE = "$path /index.html"
CLEAN = "$path $path.html $path/ =404"

CASES = [
    (SINGLE_PAGE, "/", 200, b"<p>application", "text/html"),
    (SINGLE_PAGE, "/app.js", 200, b"script", "text/javascript"),
    (SINGLE_PAGE, "/users/42?tab=1", 200, b"<p>application", "text/html"),
    (SINGLE_PAGE, "/users/42/", 200, b"<p>application", "text/html"),
    (SINGLE_PAGE, "/docs", 200, b"<p>application", "text/html"),
    (SINGLE_PAGE, "/docs/", 200, b"<p>docs", "text/html"),
    (SINGLE_PAGE, "/app.js/x", 200, b"<p>application", "text/html"),
    (SINGLE_PAGE, "/.git/config", 404, None, None),
    (SINGLE_PAGE, "/%2e%2e/%2e%2e/etc/passwd", 200, b"<p>application", "text/html"),
    (CLEAN, "/about", 200, b"<p>about", "text/html"),
    (CLEAN, "/about.html", 200, b"<p>about", "text/html"),
    (CLEAN, "/about/", 404, None, None),
    (CLEAN, "/docs", 301, None, None),
    (CLEAN, "/docs/", 200, b"<p>docs", "text/html"),
    (CLEAN, "/empty", 404, None, None),
    (CLEAN, "/empty/", 404, None, None),
    (CLEAN, "/nowhere", 404, None, None),
    ("$path =410", "/nowhere", 410, None, None),
    ("$path =503", "/app.js", 200, b"script", "text/javascript"),
    ("/gone.txt", "/app.js", 200, b"gone", "text/plain"),
    ("/docs$path /docs/", "/a.txt", 200, b"a", "text/plain"),
    ("/docs$path /docs/", "/b.txt", 200, b"<p>docs", "text/html"),
    ("$path $path.html", "/nowhere", 404, None, None),
]


@pytest.mark.parametrize("tries, path, status, body, kind", CASES)
def test_names(serve, tries, path, status, body, kind):
    client = serve(files=FILES, host={"TryFiles": tries}).connect()
    for method in ("GET", "GET", "HEAD"):
        answer = client.ask(path, method=method)
        assert answer.status == status
        if body is not None:
            assert answer["Content-Type"].startswith(kind)
            assert answer.length == len(body) and answer.body in (body, b"")
            assert (answer.body == body) == (method == "GET")


def test_directory_keeps_its_query(serve):
    answer = serve(files=FILES, host={"TryFiles": CLEAN}).connect().ask("/docs?a=b")
    assert (answer.status, answer["Location"]) == (301, "/docs/?a=b")


def test_other_methods(serve):
    client = serve(files=FILES, host={"TryFiles": SINGLE_PAGE}).connect()
    answer = client.ask("/users", method="POST", body=b"x")
    assert (answer.status, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert client.ask("/users", method="OPTIONS").status == 204


def test_conditions_and_ranges(serve):
    client = serve(files=FILES, host={"TryFiles": SINGLE_PAGE}).connect()
    tag = client.ask("/")["ETag"]
    assert client.ask("/users", f"If-None-Match: {tag}").status == 304
    part = client.ask("/users", "Range: bytes=3-5", f"If-Range: {tag}")
    assert (part.status, part.body) == (206, b"app")


def test_variants(serve):
    client = serve(files=FILES, host={"TryFiles": SINGLE_PAGE, "Precompressed": "gzip"}).connect()
    answer = client.ask("/users", "Accept-Encoding: gzip")
    assert (answer["Content-Encoding"], answer.body) == ("gzip", b"gzip of application")
    assert answer["Content-Type"].startswith("text/html") and answer["Vary"] == "Accept-Encoding"


def test_links_are_held_to_the_same_rules(serve):
    server = serve(files=FILES, host={"TryFiles": "$path /link =404"})
    (server.root / "link").symlink_to("/etc/passwd")
    assert server.connect().ask("/users").status == 404


MISTAKES = {
    "index.html": "index.html",
    "$uri /index.html": "$uri",
    "/a$uri": "/a$uri",
    "$path$path": "$path$path",
    "=404 /index.html": "=404",
    "$path =200": "=200",
    "$path =4040": "=4040",
    "$path =": '"="',
    "=404": "=404",
    '""': '""',
}


@pytest.mark.parametrize("value", MISTAKES)
def test_mistakes(tmp_path, site_root, value):
    result = run("-c", write_config(tmp_path / "conf", site_root, host={"TryFiles": value}), "-t")
    (problem,) = problems(result)
    row = f"    TryFiles {value}"
    assert result.returncode != 0 and problem[:2] == ("default", 4)
    assert problem[2] == row.index(MISTAKES[value].strip('"')) + 1 if value != '""' else problem[2] == 14
    assert MISTAKES[value] in problem[3]
