# SPDX-License-Identifier: Apache-2.0
"""A host's own pages for errors: files below the document root, or short texts."""

import pytest

from harness.messages import request
from harness.server import Server, run

PAGE = b"<!doctype html><title>Lost</title><h1>Lost</h1>\n"
FILES = {
    "errors/404.html": PAGE,
    "errors/big.html": b"x" * 70_000,
    "errors/empty.html": b"",
    "errors/403.json": b"{}\n",
    "a.txt": b"a\n",
    "folder/x": b"",
}
PAGES = """
[ERROR_PAGES]
    404 /errors/404.html
    405 "Only reading here."
    416 /errors/empty.html
"""


@pytest.fixture
def conf(host_conf):
    return lambda text: host_conf(text, FILES)


@pytest.fixture
def client(conf):
    server = Server("-c", conf(PAGES))
    client = server.connect()
    yield client
    client.close()
    server.stop()


def test_file(client):
    for _ in range(3):  # whether the name is in the cache or not
        answer = client.ask("/missing")
        assert (answer.status, answer.body) == (404, PAGE)
        assert answer["Content-Type"] == "text/html; charset=utf-8"
        assert answer["ETag"] is None and answer["Last-Modified"] is None


def test_text_keeps_the_fields(client):
    answer = client.ask("/a.txt", method="POST")
    assert (answer.status, answer.body) == (405, b"Only reading here.")
    assert answer["Content-Type"] == "text/plain; charset=utf-8" and "GET" in answer["Allow"]


def test_text_that_is_html(conf):
    server = Server("-c", conf('[ERROR_PAGES]\n    404 "<h1>What?</h1>"\n'))
    with server.connect() as client:
        answer = client.ask("/missing")
        assert (answer.status, answer.body) == (404, b"<h1>What?</h1>")
        assert answer["Content-Type"] == "text/html; charset=utf-8"
    server.stop()


def test_empty_page(client):
    answer = client.ask("/a.txt", "Range: bytes=5-")
    assert (answer.status, answer.length, answer["Content-Range"]) == (416, 0, "bytes */2")


def test_head_and_pipeline(client):
    client.send(request("/missing", method="HEAD") + request("/a.txt") + request("/missing"))
    answer = client.response("HEAD")
    assert (answer.status, answer.length, answer.body) == (404, len(PAGE), b"")
    assert client.response().body == b"a\n"
    assert client.response().body == PAGE


def test_other_errors_keep_the_servers_page(client):
    assert b"<title>501" in client.ask("/", method="BREW").body
    client.send(b"nonsense\r\n\r\n")
    assert client.response().status == 400


def test_page_is_also_a_file(client):
    answer = client.ask("/errors/404.html")
    assert (answer.status, answer.body) == (200, PAGE)


@pytest.mark.parametrize(
    "line, message",
    [
        ("404 /errors/missing.html", "No such file"),
        ("404 /errors", "cannot read"),
        ("404 /errors/big.html", "too large"),
        ("404 /../../etc/hostname", "cannot read"),
        ("200 /errors/404.html", "not a status"),
        ('403 "Not you."', "default:6:5: error: the status 403 has a page already"),
        ("4xx /errors/404.html", "not a status"),
    ],
)
def test_mistakes(conf, line, message):
    result = run("-c", conf(f"[ERROR_PAGES]\n    403 /errors/403.json\n    {line}\n"), "-t")
    assert result.returncode == 1 and message.lower() in result.stderr.lower()
    assert line in result.stderr, "the line itself is shown"


@pytest.mark.single_protocol
@pytest.mark.parametrize("status", [414, 431])
def test_pages_that_no_client_gets(conf, status):
    """A request whose head is too long has no host: a warning says so, and the server's page is sent."""
    folder = conf(f'[ERROR_PAGES]\n    404 "Lost."\n    {status} "Too much."\n')
    result = run("-c", folder, "-t")
    assert result.returncode == 0 and result.stderr.count("warning:") == 1
    assert "default:6:5: warning: a request whose head is too long has no host" in result.stderr
    server = Server("-c", folder)
    with server.connect() as client:
        fields = [f"X-{i}: y" for i in range(1000)] if status == 431 else []
        client.send_all_you_can(request("/" + 100_000 * "a" if status == 414 else "/", *fields))
        answer = client.response()
        assert answer.status == status and f"<title>{status}".encode() in answer.body
    server.stop()


# ── by path, and for all hosts ──

BY_PATH = """
[ERROR_PAGES]
    Match /api
    404   "no such thing"

[ERROR_PAGES]
    404   /errors/404.html
"""

FOR_ALL = """
[ERROR_PAGES]
    Match *.json
    404   /errors/403.json
    405   "Only reading."

[ERROR_PAGES]
    404   "Nothing here."
"""


def append(folder, name, text):
    with open(folder / name, "a") as file:
        file.write(text)


def test_first_section_that_matches(conf):
    folder = conf(BY_PATH)
    append(folder, "monkey.conf", FOR_ALL.replace("Match *.json", "Match /other"))
    server = Server("-c", folder)
    with server.connect() as client:
        assert client.ask("/api/x").body == b"no such thing"
        assert client.ask("/x").body == client.ask("/other").body == PAGE
        assert b"<title>405" in client.ask("/api", method="POST").body, "sections are used as a whole"
        assert b"<title>405" in client.ask("/other", method="POST").body
        assert b"<title>400" in client.ask("/%zz").body
    server.stop()


def test_for_all_hosts(conf, tmp_path):
    """A file is each host's own; a host without it is served all the same, and a warning names its document root."""
    folder, other = conf(""), tmp_path / "other"
    other.mkdir()
    append(folder, "monkey.conf", FOR_ALL)
    own = f"[HOST]\n    ServerName {{}}.test\n    DocumentRoot {other}\n"
    append(folder, "sites/bare", own.format("bare"))
    append(folder, "sites/own", own.format("own") + "[ERROR_PAGES]\n    404 own\n    400 bad\n")
    result = run("-c", folder, "-t")
    assert result.returncode == 0 and result.stderr.count("warning:") == 1  # the two have the same root
    assert "monkey.conf:7:5: warning: cannot read the page /errors/403.json" in result.stderr
    assert f"below the document root {other}: No such file" in result.stderr
    server = Server("-c", folder)
    with server.connect() as client:

        def ask(host, path, method="GET"):
            client.send(request(path, host=host, method=method))
            return client.response(method).body

        assert ask("localhost", "/x.json") == b"{}\n" and ask("localhost", "/x") == b"Nothing here."
        assert ask("localhost", "/x.json", "POST") == b"Only reading."
        assert b"<title>404" in ask("bare.test", "/x.json") and ask("bare.test", "/x") == b"Nothing here."
        assert ask("own.test", "/x.json") == ask("own.test", "/x") == b"own"
        assert ask("own.test", "/%zz") == b"bad"
    server.stop()


def test_mistakes_in_monkey_conf(conf, tmp_path):
    """Each is reported once, though two hosts have it."""
    folder = conf("")
    append(folder, "sites/second", f"[HOST]\n    ServerName second.test\n    DocumentRoot {tmp_path}\n")
    rows = "    200 x\n    404 a\n    404 b\n"
    append(folder, "monkey.conf", f"[ERROR_PAGES]\n{rows}[ERROR_PAGES]\n    Match /x\n    500 c\n")
    result = run("-c", folder, "-t")
    assert result.returncode == 1 and result.stderr.count("error:") == 3
    for line, text in ((5, "not a status"), (7, "has a page already"), (9, "can never match")):
        assert any(f"monkey.conf:{line}:" in row and text in row for row in result.stderr.splitlines()), result.stderr


def test_costly_pattern(conf):
    server = Server("-c", conf("[ERROR_PAGES]\n    Match ~^/(a+)+$\n    404 x\n[ERROR_PAGES]\n    404 y\n"))
    with server.connect() as client:
        assert client.ask("/aaa").body == b"x" and client.ask("/b").body == b"y"
        assert b"<title>404" in client.ask("/" + 3000 * "a" + "!").body
    server.stop()
