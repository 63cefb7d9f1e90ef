# SPDX-License-Identifier: Apache-2.0
"""
Paths with a slash within a segment (`%2F`), and what EncodedSlash makes of them: one key for all plugins that pass
requests on or run scripts. With Decode rules see the slash, with Keep they do not.
"""

import re

import pytest

from harness import build
from harness.backend import Backend, echo
from harness.content import populate
from harness.fastcgi import Application, answer, fastcgi_section
from harness.proxies import proxy_section
from harness.scripts import ENVIRONMENT, cgi_section, variables, write_scripts
from harness.server import section

NEEDED = [build.PLUGINS / f"{name}.so" for name in ("proxy", "cgi", "fastcgi")]
pytestmark = pytest.mark.skipif(not all(each.exists() for each in NEEDED), reason="this preset has no plugins")

GUARD = section("RULES", {"Match": "/cgi/app/private", "Action": "deny"})


def answer_scgi(peer):
    peer.request_scgi()
    peer.send(b"Content-Type: text/plain\r\n\r\nhello")


class Cgi:
    """Scripts in a folder: what follows the script is PATH_INFO."""

    def __init__(self, folder):
        write_scripts(folder, {"app": ENVIRONMENT})
        self.text = lambda keys: cgi_section(folder, **keys)
        self.more = 2  # sockets of the starter

    def info(self, got):
        found = variables(got.body)[0]
        return found.get("SCRIPT_NAME", "") + found.get("PATH_INFO", "")


class Script(Cgi):
    """One script for all paths."""

    def __init__(self, folder):
        write_scripts(folder, {"app": ENVIRONMENT})
        self.text = lambda keys: section("CGI", {"Match": "/cgi", "Script": folder / "app", **keys})
        self.more = 2


class Gateway:
    def __init__(self, name, script):
        self.application = Application(script)
        self.text = lambda keys: fastcgi_section(self.application, name, Match="/cgi", Split="Off", **keys)
        self.more = 0

    def info(self, got):
        found = self.application.requests[-1].params
        return found["SCRIPT_NAME"] + found["PATH_INFO"]


class Proxy:
    def __init__(self):
        self.backend = Backend(echo)
        self.text = lambda keys: proxy_section(self.backend, {"Match": "/cgi", **keys})
        self.more = 0

    def info(self, got):
        return self.backend.requests[-1].target.partition("?")[0]


KINDS = {
    "cgi": Cgi,
    "script": Script,
    "fastcgi": lambda _: Gateway("FASTCGI", answer()),
    "scgi": lambda _: Gateway("SCGI", answer_scgi),
    "proxy": lambda _: Proxy(),
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path):
    made = KINDS[request.param](tmp_path / "scripts")
    yield made
    for server in (getattr(made, "application", None), getattr(made, "backend", None)):
        if server:
            server.__exit__(None, None, None)


ROWS = [
    # EncodedSlash, path, and the path that the application sees (None: 404, 403: a rule)
    (None, "/cgi/app/servers/localhost%2Fdb", None),
    ("Refuse", "/cgi/app/a%2Fb", None),
    ("Keep", "/cgi/app/servers/localhost%2Fdb", "/cgi/app/servers/localhost%2Fdb"),
    ("Keep", "/cgi/app/a%2fb/c", "/cgi/app/a%2Fb/c"),
    ("Keep", "/cgi/app/private%2Fx", "/cgi/app/private%2Fx"),
    ("Decode", "/cgi/app/servers/localhost%2Fdb", "/cgi/app/servers/localhost/db"),
    ("Decode", "/cgi/app%2Fa", "/cgi/app/a"),
    ("Decode", "/cgi/app/a%2F%2fb", "/cgi/app/a/b"),
    ("Decode", "/cgi/app/private%2Fx", 403),
    ("Decode", "/cgi/app/a%2F..%2Fprivate", None),
    ("Decode", "/cgi/app/a%2F%2e%2e/b", None),
    ("Decode", "/cgi/app/a%252Fb%2Fc", None),
    ("Decode", "/cgi%2Fapp/a", None),  # not below the path of the section
    ("Keep", "/cgi/app/..%2Fa", None),
    ("Keep", "/other%2Fa", None),
]


@pytest.mark.parametrize("value", [None, "Refuse", "Keep", "Decode"])
def test_encoded_slashes(serve, kind, value):
    text = GUARD + kind.text({"EncodedSlash": value} if value else {})
    server = serve({"Workers": 1}, text=text)
    server.baseline += kind.more
    with server.connect() as client:
        for _, path, wanted in [row for row in ROWS if row[0] == value]:
            got = client.ask(path)
            assert got.status == (200 if isinstance(wanted, str) else wanted or 404), path
            if isinstance(wanted, str):
                assert kind.info(got) == wanted


# Sections, the path, and the Location or the path that the backend gets.
MOVES = {
    "a rest": ("[REDIRECT]\nMatch /p/old\nTo /p/new\n", "/p/old/a%2Fb%20c", "/p/new/a%2Fb%20c"),
    "a rest in small letters": ("[REDIRECT]\nMatch /p/old\nTo /p/new\n", "/p/old/a%2fb", "/p/new/a%2fb"),
    "a normalized rest": ("[REDIRECT]\nMatch /p/old\nTo /p/new\n", "/p//old/a%2fb", "/p/new/a%2Fb"),
    "a capture": ("[REDIRECT]\nMatch ~^/p/old/(.*)$\nTo /p/new/$1\n", "/p/old/a%2Fb%25", "/p/new/a%2Fb%25"),
    "a capture in a query": ("[REDIRECT]\nMatch ~^/p/old/(.*)$\nTo /p/new?q=$1\n", "/p/old/a%2F%26b",
                             "/p/new?q=a%2F%26b"),
    "a rewrite": ("[REWRITE]\nMatch /p/old\nTo /p/new\n", "/p/old/a%2fb%20c", "/p/new/a%2Fb%20c"),
    "a capture of a rewrite": ("[REWRITE]\nMatch ~^/p/old/(.*)$\nTo /p/new/$1\n", "/p/old/a%2Fb", "/p/new/a%2Fb"),
    "rewritten to a dot": ("[REWRITE]\nMatch ~^/p/old/(.*)$\nTo /p/..$1\n", "/p/old/%2Fb", 404),
    "rewritten elsewhere": ("[REWRITE]\nMatch /p/old\nTo /other\n", "/p/old/a%2Fb", 404),
    "rewritten without it": ("[REWRITE]\nMatch /p/old\nTo /p/new\nKeepPath Off\n", "/p/old/a%2Fb", "/p/new"),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_redirects_and_rewrites(serve, tmp_path, name):
    """A slash that is kept stays encoded."""
    text, target, wanted = MOVES[name]
    text = re.sub(r"^(?=\w)", "    ", text, flags=re.M)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a%2Fb").write_text("a file with the name of the text")
    with Backend(echo) as backend:
        server = serve(root=tmp_path, text=text + proxy_section(backend, {"Match": "/p", "EncodedSlash": "Keep"}))
        with server.connect() as client:
            got = client.ask(target)
        seen = got["Location"] or got.status if got.status != 200 else backend.requests[-1].target
    assert seen == wanted


@pytest.mark.parametrize("host, text, status, location", [
    ({}, "", 404, None),
    ({"Redirect": "https://www.example.org"}, "", 301, "https://www.example.org/pkg/@a%2Fb%20"),
    ({}, "[REDIRECT]\n    Match /\n    To https://example.org/x\n", 301, "https://example.org/x/pkg/@a%2Fb%20"),
    ({}, "[RULES]\n    Match /pkg\n    Action deny\n", 403, None),
    ({}, "[RULES]\n    Match /pkg/@a/\n    Action deny\n", 404, None),
    ({}, "[REWRITE]\n    Match /pkg\n    To /a.txt\n    KeepPath Off\n", 200, None),
    ({}, "[REWRITE]\n    Match /pkg\n    To /\n", 404, None),
    ({"TryFiles": "$path /a.txt"}, "", 200, None),
    ({"TryFiles": "$path /a.txt"}, "[PROXY]\n    Match /pkg\n    To http://127.0.0.1:1\n", 404, None),
    ({"TryFiles": "$path /a.txt"}, "[PROXY]\n    Match /pk\n    To http://127.0.0.1:1\n", 200, None),
    ({"TryFiles": "$path /a.txt"}, "[PROXY]\n    To http://127.0.0.1:1\n[HANDLERS]\n    Match / static\n", 200, None),
    ({"TryFiles": "$path =404"}, "", 404, None),
    ({"TryFiles": "$path =410"}, "", 404, None),
    ({"TryFiles": "$path $path.html"}, "", 404, None),
    ({"TryFiles": "$path /a.txt"}, "[RULES]\n    Match /a.txt\n    Action deny\n", 403, None),
    ({"TryFiles": "$path /a.txt"}, "[ALIAS]\n    Match /pkg\n    To ROOT/pkg\n", 404, None),
])  # fmt: skip
def test_without_content_that_accepts_it(serve, tmp_path, host, text, status, location):
    """Rules and redirects hold for the path; a file with the name of the text has another one."""
    names = ("a.txt", "@a%2Fb ", "pkg/@a%2Fb ")
    root = populate(tmp_path / "root", {name: name.encode() for name in names})
    server = serve(root=root, host=host, text=text.replace("ROOT", str(root)))
    with server.connect() as client:
        got = client.ask("/pkg/@a%2Fb%20")
        assert (got.status, got["Location"], got.body == b"a.txt") == (status, location, status == 200)
        assert client.ask("/pkg/@a%2Fb%20", method="POST").status in {404, 405, status}
        if not (host or text):
            assert client.ask("/pkg/@a%252Fb%20").status == 200


def test_headers_of_the_last_name(serve, tmp_path):
    """They go by the path of the client, as for paths without such a slash."""
    text = section("HEADERS", {"Match": "/a", "Set": "X-A 1"})
    text += section("HEADERS", {"Match": "/i.html", "Set": "X-I 1"})
    root = populate(tmp_path / "root", {"i.html": b"hello"})
    with serve(root=root, host={"TryFiles": "$path /i.html"}, text=text).connect() as client:
        for path in ("/a/b", "/a/b%2Fc"):
            got = client.ask(path)
            assert (got.body, got["X-A"], got["X-I"]) == (b"hello", "1", None)
            assert got["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("value, method, status", [
    ("Keep", "GET", 200),
    ("Keep", "POST", 200),
    ("Keep", "PROPFIND", 200),
    ("Decode", "GET", 404),
    ("Refuse", "POST", 404),
    ("Refuse", "PROPFIND", 501),
])  # fmt: skip
def test_front_controller(serve, tmp_path, value, method, status):
    """The program at the end of TryFiles gets the path if its section keeps the slash."""
    root = populate(tmp_path / "root", {"index.php": b"<?php", "x%2Fy": b"a file with the name of the text"})
    with Application(answer()) as application:
        text = fastcgi_section(application, Match="*.php", EncodedSlash=value)
        server = serve(root=root, host={"TryFiles": "$path /index.php"}, text=text)
        with server.connect() as client:
            assert client.ask("/x%2Fy?q=1", method=method).status == status
        if status == 200:
            params = application.requests[-1].params
            assert (params["SCRIPT_NAME"], params["REQUEST_URI"]) == ("/index.php", "/x%2Fy?q=1")


@pytest.mark.parametrize("value, info", [("Keep", "/x%2Fy z"), ("Decode", "/x/y z"), ("Refuse", None)])
def test_local_redirects(serve, tmp_path, value, info):
    """The path of a script's redirect is as that of a request."""
    move = "#!/bin/sh\nprintf 'Location: /cgi/app/x%%2fy%%20z?q=1\\n\\n'\n"
    folder = write_scripts(tmp_path / "scripts", {"app": ENVIRONMENT, "move": move})
    server = serve(text=cgi_section(folder, LocalRedirect="On", EncodedSlash=value))
    server.baseline += 2
    with server.connect() as client:
        got = client.ask("/cgi/move")
    assert got.status == (200 if info else 502)
    if info:
        found = variables(got.body)[0]
        assert (found["PATH_INFO"], found["QUERY_STRING"]) == (info, "q=1")


@pytest.mark.parametrize("name", ["FASTCGI", "SCGI"])
def test_connection_of_scripts(serve, name):
    """What Connection of a response names belongs to the connection, as in one of CGI or of a proxy."""
    head = (b"Content-Type: text/plain\r\nConnection: close, X-Named\r\nX-Named: 1\r\nConnection: x-other\r\n"
            b"X-Other: 2\r\nX-Passed: 3\r\n\r\n")  # fmt: skip

    def respond_scgi(peer):
        peer.request_scgi()
        peer.send(head + b"hello")

    with Application(answer(head=head) if name == "FASTCGI" else respond_scgi) as application:
        with serve(text=fastcgi_section(application, name, Match="/x", Split="Off")).connect() as client:
            got = client.ask("/x", "Connection: keep-alive, X-Mine", "Connection: X-Too", "X-Mine: 1", "X-Too: 2")
        params = application.requests[0].params
    assert (got.body, got["X-Passed"], got["X-Named"], got["X-Other"]) == (b"hello", "3", None, None)
    assert not {"HTTP_X_MINE", "HTTP_X_TOO"} & set(params)
