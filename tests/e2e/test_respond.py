# SPDX-License-Identifier: Apache-2.0
"""Fixed answers: which request gets which one, and what is in it."""

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.messages import request
from harness.server import run, section
from harness.services import reload
from harness.ways import WAYS
from test_config import problems

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "respond.so").exists(), reason="this preset has no plugin respond")

PLAIN = "text/plain; charset=utf-8"
FILES = {"index.html": b"site\n", "a/x.txt": b"x\n"}
HOST = section("HOST", {"ServerName": "localhost"})


def respond(**keys):
    return section("RESPOND", keys)


@pytest.fixture
def pages(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "app.json").write_bytes(b'{"app": 1}\n')
    (folder / "empty.html").touch()
    return folder


# ── statuses, headers and bodies ──

ANSWERS = {
    # keys; status, body (None: the server's page), type, further headers
    "nothing": ({}, 200, b"", None, {}),
    "text": ({"Text": '"a  b"'}, 200, b"a  b", PLAIN, {}),
    "empty text": ({"Text": '""', "Status": 404}, 404, b"", PLAIN, {}),
    "markup": ({"Text": '"<p>"', "Header": "Content-Type text/html"}, 200, b"<p>", "text/html", {}),
    "backslashes": ({"Text": r'"a\n \"b\" \\"'}, 200, rb'a\n "b" ' + b"\\", PLAIN, {}),
    "error": ({"Status": 418}, 418, None, "text/html; charset=utf-8", {}),
    "error with headers": (
        {"Status": 503, "Header": ["Retry-After 30", "Cache-Control no-store"]}, 503, None, "text/html; charset=utf-8",
        {"Retry-After": "30", "Cache-Control": "no-store"},
    ),
    "error with a text": ({"Status": 410, "Text": "gone"}, 410, b"gone", PLAIN, {}),
    "redirect": ({"Status": 302, "Header": "Location /new"}, 302, b"", None, {"Location": "/new"}),
    "no content": ({"Status": 204, "Header": "X-A b, c"}, 204, b"", None, {"X-A": "b, c"}),
    "reset content": ({"Status": 205}, 205, b"", None, {}),
    "file": ({"File": "{pages}/app.json"}, 200, b'{"app": 1}\n', "application/json", {"Accept-Ranges": "bytes"}),
    "file of another type": (
        {"File": "{pages}/app.json", "Header": "content-type text/x-a"}, 200, b'{"app": 1}\n', "text/x-a", {},
    ),
    "file with an error": ({"File": "{pages}/app.json", "Status": 500}, 500, b'{"app": 1}\n', "application/json", {}),
    "empty file": ({"File": "{pages}/empty.html", "Status": 599}, 599, b"", "text/html; charset=utf-8", {}),
    "relative file": ({"File": "../../../pages/empty.html"}, 200, b"", "text/html; charset=utf-8", {}),
}


def check_answer(got, method, status, body, kind, headers):
    assert got.status == status
    if method == "HEAD":
        assert got.body == b""
    elif body is None:
        assert str(status).encode() in got.body
    else:
        assert got.body == body
    assert got["Content-Type"] == kind
    assert {name: got[name] for name in headers} == headers


@pytest.mark.parametrize("name", WAYS)
def test_answers(serve, tmp_path, pages, name):
    """All methods get them, with a body or without; the connection is kept."""
    way, text = WAYS[name], ""
    for number, (keys, *_) in enumerate(ANSWERS.values()):
        text += respond(Match=f"=/{number}", **keys).replace("{pages}", str(pages))
    begin = lambda _, settings, text="": serve(settings, config={"sites/default": HOST + text})
    server = way.start(begin, tmp_path, None, text=text)
    with server.open() as client:
        for number, (_, *expected) in enumerate(ANSWERS.values()):
            for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "BREW"):
                body = b"x" * 1000 if method == "POST" else b""
                check_answer(client.ask(f"/{number}", method=method, body=body), method, *expected)
        assert client.ask("/else").status == 404


def test_several_headers_of_one_name(serve):
    with serve(text=respond(Header=["Link </a>", "Link </b>", 'X-Empty ""'])).connect() as client:
        got = client.ask("/")
        assert [value for name, value in got.fields if name == "Link"] == ["</a>", "</b>"]
        assert got["X-Empty"] == ""


def test_conditions_and_ranges_of_a_file(serve, pages):
    """As of files below DocumentRoot, if the status is 200."""
    keys = {"File": pages / "app.json", "Header": "Cache-Control no-cache"}
    text = respond(Match="=/ok", **keys) + respond(Match="=/broken", Status=500, **keys)
    with serve(text=text).connect() as client:
        tag = client.ask("/ok")["ETag"]
        got = client.ask("/ok", f"If-None-Match: {tag}")
        assert (got.status, got.body, got["Cache-Control"]) == (304, b"", "no-cache")
        got = client.ask("/ok", "Range: bytes=2-4")
        assert (got.status, got.body, got["Content-Range"]) == (206, b"app", "bytes 2-4/11")
        assert client.ask("/ok", 'If-Match: "x"').status == 412
        assert client.ask("/ok", f"If-None-Match: {tag}", method="POST", body=b"x").status == 200
        got = client.ask("/broken", "Range: bytes=2-4", "If-None-Match: *")
        assert (got.status, got.body, got["ETag"]) == (500, b'{"app": 1}\n', None)


@pytest.mark.parametrize("waits", [False, True], ids=["cached", "waiting"])
def test_a_file_changes(serve, tmp_path, pages, waits):
    """Each request opens it, if need be on a disk thread: the kernel never resolves a link of /proc without waiting."""
    path = "/proc/self/cwd/pages/app.json" if waits else pages / "app.json"
    server = serve(text=respond(File=path), cwd=tmp_path)
    with server.connect() as client:
        for status in (200, 200):
            assert client.ask("/").body == b'{"app": 1}\n'
        (pages / "next").write_bytes(b"new")
        (pages / "next").rename(pages / "app.json")
        assert client.ask("/").body == b"new"
        (pages / "app.json").unlink()
        assert client.ask("/").status == 404
        server.wait_log(rf"respond: cannot send the file {path}: No such file or directory, .* host: ")
        (pages / "app.json").mkdir()
        assert client.ask("/").status == 404
        (pages / "app.json").rmdir()
        (pages / "app.json").write_bytes(b"back")
        assert client.ask("/").body == b"back"


def test_a_client_leaves_while_its_file_is_opened(serve, tmp_path, pages):
    server = serve(text=respond(File="/proc/self/cwd/pages/app.json"), cwd=tmp_path)
    for _ in range(20):
        client = server.connect()
        client.send(request("/"))
        client.close()
    with server.connect() as client:
        assert client.ask("/").status == 200


# ── which request gets which answer ──


def test_the_first_section_that_fits(serve):
    text = (
        respond(Match="/a", When=["method GET", "query v =1"], Text="one")
        + respond(Match="/a", When="header X-Two", Text="two")
        + respond(Match="*.txt", Text="three")
        + respond(Match="~^/[0-9]+$", Text="four")
    )
    with serve(files=FILES, text=text).connect() as client:
        ask = lambda *args, **rest: client.ask(*args, **rest).body
        assert ask("/a/x.txt?v=1") == b"one"
        assert ask("/a/x.txt?v=1", "X-Two: yes", method="PUT") == b"two"
        assert ask("/a/x.txt") == b"three"
        assert ask("/12") == b"four"
        assert ask("/") == b"site\n"
        assert client.ask("/a/").status == 404


def test_paths_as_they_are_compared(serve):
    """Decoded and normalized, also with encoded slashes, of which files have none."""
    with serve(files=FILES, text=respond(Match="/api", Text="yes")).connect() as client:
        for target in ("/api", "/%61pi/", "/x/../api/y", "/api/a%2Fb"):
            assert client.ask(target).body == b"yes", target
        for target in ("/apis", "/a%2Fapi"):
            assert client.ask(target).status == 404, target


def test_requests_without_a_path(serve):
    with serve(files=FILES, text=respond(Text="yes")).connect() as client:
        client.send(request("*", method="OPTIONS") + request("example.org:443", method="CONNECT"))
        assert [client.response(method).status for method in ("OPTIONS", "CONNECT")] == [204, 405]


def test_for_all_hosts(serve):
    """A host's own sections come first; one without a document root needs none."""
    monkey = section("SERVER", {"Listen": "127.0.0.1:0"})
    monkey += respond(Match="/both", Text="all") + respond(Match="/rest", Text="rest")
    own = section("HOST", {"ServerName": "own.test"}) + respond(Match="/both/own", Text="own")
    with serve(config={"monkey.conf": monkey, "sites/default": HOST, "sites/own": own}).connect() as client:
        ask = lambda path, host: client.ask(path, host=host).body
        assert ask("/both/own", "localhost") == b"all" and ask("/both/own", "own.test") == b"own"
        assert ask("/both/x", "own.test") == b"all" and ask("/rest", "own.test") == b"rest"
        assert client.ask("/").status == 404


def test_order_of_plugins(serve, tmp_path):
    """After redirects, rules, logins and preflights; before backends and files, but for an [ALIAS] in its prefix."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more/m.txt").write_bytes(b"more\n")
    (tmp_path / "users").write_text("ada:$apr1$aaaaaaaa$hbGCGMnYVWzGlvLUoDPnr0\n")
    (tmp_path / "users").chmod(0o600)
    with Backend(answer(b"backend", "Content-Type: text/plain")) as backend:
        text = (
            section("REDIRECT", {"Match": "=/a/moved", "To": "/x"})
            + section("RULES", {"Match": "/a/denied", "Action": "deny"})
            + section("AUTH", {"Match": "/a/login", "Users": tmp_path / "users"})
            + section("CORS", {"Match": "/a", "Origins": "https://x.test"})
            + section("ALIAS", {"Match": "/a/more", "To": tmp_path / "more"})
            + section("PROXY", {"Match": "/app", "To": backend.url})
            + respond(Match="/app/fixed", Text="yes")
            + respond(Match="/a", Text="yes")
        )
        with serve(files=FILES, text=text).connect() as client:
            statuses = {path: client.ask(f"/a/{path}").status for path in ("moved", "denied", "login", "x.txt")}
            assert statuses == {"moved": 301, "denied": 403, "login": 401, "x.txt": 200}
            origin = "Origin: https://x.test"
            got = client.ask("/a/b", origin, "Access-Control-Request-Method: GET", method="OPTIONS")
            assert (got.status, got.body) == (204, b"")
            got = client.ask("/a/b", origin)
            assert (got.body, got["Access-Control-Allow-Origin"]) == (b"yes", "https://x.test")
            assert client.ask("/a/x.txt").body == client.ask("/app/fixed/x").body == b"yes"
            assert client.ask("/app/x").body == b"backend"
            assert client.ask("/a/more/m.txt").body == b"more\n"


def test_handlers(serve):
    text = section("HANDLERS", {"Match": ["/a static", "/b respond"]}) + respond(Match="/", Text="yes")
    with serve(files=FILES, text=text).connect() as client:
        assert client.ask("/a/x.txt").body == b"x\n"
        assert client.ask("/b").body == client.ask("/c").body == b"yes"


def test_pages_and_headers_of_others(serve):
    text = (
        section("ERROR_PAGES", {"404": '"<p>lost"', "410": '"<p>gone"'})
        + section("HEADERS", {"Set": "X-All yes", "OnErrors": "On"})
        + respond(Match="/lost", Status=404, Header="X-Own yes")
        + respond(Match="/gone", Status=410, Text="own")
    )
    with serve(text=text).connect() as client:
        lost, gone = client.ask("/lost"), client.ask("/gone")
        assert (lost.status, lost.body, lost["X-Own"], lost["X-All"]) == (404, b"<p>lost", "yes", "yes")
        assert (gone.status, gone.body, gone["X-All"]) == (410, b"own", "yes")


def test_index_of_a_listing(serve):
    """What has an answer is no file of that name."""
    text = section("DIRLISTING", {"Enabled": "On"}) + respond(Match="=/a/x.txt", Text="yes")
    with serve(files={**FILES, "a/y.txt": b"y"}, text=text).connect() as client:
        page = client.ask("/a/").body
        assert b"y.txt" in page and b"x.txt" not in page


def test_a_reload_changes_the_answer(serve):
    server = serve(text=respond(Text="one"))
    site = server.conf / "sites/default"
    with server.connect() as client:
        assert client.ask("/").body == b"one"
        site.write_text(site.read_text().replace("one", "two"))
        reload(server)
        assert client.ask("/").body == b"two"
        site.write_text(site.read_text().replace("Text two", "File none"))
        reload(server, accepted=False)
        assert client.ask("/").body == b"two"


# ── mistakes ──

BOTH = '"Text" and "File" are both the body: write one of them'
NO_BODY = 'a response with the status {} has no body: leave "{}" out'
RESERVED = '"Header": only the server sets this header'
MISTAKES = [
    # the rows of a section; where the only problem is, and what
    ("Status 199", "5:12: error: "),
    ("Status 101", "5:12: error: "),
    ("Status 600", "5:12: error: "),
    ("Text a\nFile ../a.txt", f"6:10: error: {BOTH}"),
    ("Status 204\nText a", f"6:10: error: {NO_BODY.format(204, 'Text')}"),
    ('Status 205\nText ""', f"6:10: error: {NO_BODY.format(205, 'Text')}"),
    ("File ../a.txt\nStatus 304", f"5:10: error: {NO_BODY.format(304, 'File')}"),
    ("File none.txt", '5:10: error: "File": the file cannot be read: No such file or directory'),
    ("File .\nHeader Content-Type a/b", '5:10: error: "File": the file is not a regular file'),
    ("File /dev/null", '5:10: error: "File": the file is not a regular file'),
    ("Header X-A: b", '5:12: error: "Header": a blank separates name and value, not a colon: write "Header X-A b"'),
    ("Header X-A", '5:12: error: "Header": a header needs a name and a value'),
    ("Header Content-Length 3", f"5:12: error: {RESERVED}"),
    ("Header transfer-encoding chunked", f"5:12: error: {RESERVED}"),
    ("Header Connection close", f"5:12: error: {RESERVED}"),
    (
        "Text a\nHeader Content-Type a/b\nHeader content-type a/c",
        '7:12: error: "Header": a line before this one has the Content-Type',
    ),
    ("Match a/b", "5:11: error: "),
    ("When path /x", "5:10: error: "),
    ("Match /a\n[RESPOND]\nMatch /a/b", "7:11: error: "),
    ("Header Content-Type a/b", '5:12: warning: Content-Type has no effect without "Text" or "File", whose type it is'),
    (
        "Header X-A b\nText a\nStatus 204\nHeader Content-Type a/b",
        f"6:10: error: {NO_BODY.format(204, 'Text')}",
    ),
    (
        "Header X-A b\nHeader Content-Type a/b",
        '6:12: warning: Content-Type has no effect without "Text" or "File", whose type it is',
    ),
    ("File ../a.txt\nHeader etag \"a\"", '6:12: error: "etag" is that of the file: only the server sets it'),
    ("File ../a.txt\nHeader Last-Modified x", '6:12: error: "Last-Modified" is that of the file: only'),
    ("Status 206\nText a", "5:12: error: 206 answers a request for a range"),
    ("\n".join(["Header X a"] * 33), '37:12: error: "Header": a section has at most 32 headers with 8192 bytes'),
    ("\n".join(["Header X " + "a" * 3000] * 3), '7:12: error: "Header": a section has at most 32 headers with 8192'),
    ("Status 301", '5:12: warning: a response with the status 301 needs a line "Header Location"'),
    ("Status 401\nText no", '5:12: warning: a response with the status 401 needs a line "Header WWW-Authenticate"'),
    ("Status 405\nHeader Allow GET\nHeader X-A 'b'", "7:12: warning: quotes are double: 'b' is sent with"),
    ("Header X-A b $host", '5:12: warning: headers of responses have no variables: "$host" is sent as it is'),
    ("Header X-A 'b'", "5:12: warning: quotes are double: 'b' is sent with its single ones"),
    ("Text it is $host", '5:10: warning: a text has no variables: "$host" is sent as it is'),
]


@pytest.mark.parametrize("rows, problem", MISTAKES, ids=[problem[:60] for _, problem in MISTAKES])
def test_mistakes(host_conf, rows, problem):
    text = "".join(f"{'' if row[0] == '[' else '    '}{row}\n" for row in rows.split("\n"))
    folder = host_conf("[RESPOND]\n" + text, FILES)
    (folder / "a.txt").touch()
    result = run("-c", folder, "-t")
    assert len(problems(result)) == 1 and f"sites/default:{problem}" in result.stderr, result.stderr
    assert result.returncode == (" error: " in problem)


def test_sections_that_no_request_gets_to(host_conf):
    text = respond(Match="/app") + section("PROXY", {"Match": "/app/x", "To": "http://127.0.0.1:1"})
    text += respond(Match="/part", When="method GET") + section("CGI", {"Match": "/part", "Root": "/"})
    result = run("-c", host_conf(text, FILES), "-t")
    (problem,) = [each for each in problems(result) if "no request gets here" in each[3]]
    assert "the plugin respond comes before proxy" in problem[3]
