# SPDX-License-Identifier: Apache-2.0
"""Rules and logins for the script that is the index of a folder hold for the folder, too, and in the same way."""

import re

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import populate
from harness.fastcgi import Application
from harness.metrics import scrape, status_section, total
from harness.server import section
from test_auth import ADA, FREE, basic, users  # noqa: F401

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in ("proxy", "auth", "mandril")),
        reason="this preset has no plugins proxy, auth and mandril",
    ),
]
INDEX = "Match =/dir/index.php\n"
BASIC = INDEX + "Realm index\nUsers {users}\n"
FORWARD = INDEX + "Type Forward\nTo {auth}\nCopyHeaders Remote-User\nUserHeader Remote-User\n"
WRONG = basic("ada", "wrong")
LOCAL, REMOTE = "Network 127.0.0.0/8\n", "Network 192.0.2.0/24\n"
LIMITS = {"plugins/auth/auth.conf": section("AUTH_LIMITS", FREE)}
# Sections, the fields of a request, and the status of both paths.
ROWS = {
    "nothing": ("", [], 200),
    "no login": (f"[AUTH]\n{BASIC}", [], 401),
    "a wrong login": (f"[AUTH]\n{BASIC}", [WRONG], 401),
    "a login": (f"[AUTH]\n{BASIC}", [ADA], 200),
    "another user": (f"[AUTH]\n{BASIC}Require user bob\n", [ADA], 403),
    "two sections": (f"[AUTH]\n{BASIC}[AUTH]\nMatch /\nRealm all\nUsers {{users}}\n", [ADA], 200),
    "the folder is open": (f"[AUTH]\n{BASIC}[AUTH]\nMatch /\nType Off\n", [], 401),
    "one section for both": ("[AUTH]\nMatch /dir\nUsers {users}\nRealm dir\n", [], 401),
    "one section, and a login": ("[AUTH]\nMatch /dir\nUsers {users}\nRealm dir\n", [ADA], 200),
    "only the folder": ("[AUTH]\nMatch =/dir/index.php\nType Off\n", [], 200),
    "forward, no session": (f"[AUTH]\n{FORWARD}", [], 302),
    "forward": (f"[AUTH]\n{FORWARD}", ["Cookie: session=ada"], 200),
    "forward, a forged user": (f"[AUTH]\n{FORWARD}", ["Cookie: session=ada", "Remote-User: root"], 200),
    "off, a forged user": (f"[AUTH]\n{INDEX}Type Off\nCopyHeaders Remote-User\n", ["Remote-User: root"], 200),
    "forward to nothing": (f"[AUTH]\n{INDEX}Type Forward\nTo http://127.0.0.1:1\n", [], 503),
    "deny": (f"[RULES]\n{INDEX}Action deny\n", [], 403),
    "deny with a status": (f"[RULES]\n{INDEX}Action deny 404\n", [], 404),
    "deny another address": (f"[RULES]\n{INDEX}{REMOTE}Action deny\n", [], 200),
    "deny a method": (f"[RULES]\n{INDEX}When method GET\nAction deny\n", [], 403),
    "any, neither": (f"[RULES]\n{INDEX}Action deny\n[AUTH]\n{BASIC}Satisfy any\n", [], 401),
    "any, a login": (f"[RULES]\n{INDEX}Action deny\n[AUTH]\n{BASIC}Satisfy any\n", [ADA], 200),
    "any, an address": (f"[RULES]\n{INDEX}{LOCAL}Action allow\n[AUTH]\n{BASIC}Satisfy any\n", [], 200),
    "all, an address": (f"[RULES]\n{INDEX}{LOCAL}Action allow\n[AUTH]\n{BASIC}", [], 401),
    "allowed for the folder alone": (
        f"[RULES]\nMatch =/dir/\nAction allow\n[RULES]\n{INDEX}Action deny\n[AUTH]\n{BASIC}Satisfy any\n", [], 401),
}  # fmt: skip


def verify(peer):
    """As a server that decides by path, too: no client may have denied.php."""
    request = peer.request()
    found = re.search(r"session=(\w+)", request["Cookie"] or "")
    if "denied.php" in request["X-Forwarded-Uri"]:
        peer.respond(b"", status=403)
    elif found:
        peer.respond(b"", f"Remote-User: {found[1]}")
    else:
        peer.respond(b"", "Location: https://login.example/", status=302)


@pytest.fixture
def start(serve, tmp_path, users):  # noqa: F811
    made = []

    def make(text, settings=None, index="index.php", config=(), host=()):
        made.extend([Backend(answer(b"ran", "Content-Type: text/plain")), Backend(verify)])
        app, auth = (one.__enter__() for one in made)
        root = populate(tmp_path / "root", {f"dir/{index}": b"<?php secret ?>\n"})
        text = f"[PROXY]\nMatch *.php\nTo {app.url}\n" + text.replace("{users}", str(users)).replace("{auth}", auth.url)
        text = re.sub(r"^(?=\w)", "    ", text, flags=re.M)
        host = {"Indexfile": index, **dict(host)}
        server = serve(settings, root=root, host=host, text=text, config={**LIMITS, **dict(config)})
        server.app, server.auth = app, auth
        return server

    yield make
    for one in made:
        one.__exit__(None, None, None)


def describe(got, requests):
    """What a client sees, and which user the script gets."""
    fields = ("WWW-Authenticate", "Location")
    return got.status, [got[name] for name in fields], [request["Remote-User"] for request in requests]


@pytest.mark.parametrize("name", ROWS)
def test_a_folder_is_as_its_script(start, name):
    text, fields, status = ROWS[name]
    server = start(text)
    with server.connect() as client:
        seen = []
        for target in ("/dir/index.php", "/dir/"):
            before = len(server.app.requests)
            got = client.ask(target, *fields)
            assert b"secret" not in got.body
            seen.append(describe(got, server.app.requests[before:]))
    assert seen[0][0] == status
    assert seen[0] == seen[1]


def run_php(peer):
    while True:
        request = peer.request()
        head = f"Content-Type: text/plain\r\nX-User: {request.params.get('HTTP_REMOTE_USER', '')}\r\n\r\n"
        peer.respond(b"ran " + request.body, head.encode())


# How the script gets to a client that does not ask for it: the keys of the section, and the path.
SCRIPTS = {
    "index": ({}, "/dir/"),
    "tries": ({"TryFiles": "$path /dir/index.php"}, "/dir/none"),
    "tries an index": ({"TryFiles": "$path $path/index.php"}, "/dir/"),
    "PATH_INFO": ({}, "/dir/index.php/info"),
}


@pytest.mark.parametrize("how", SCRIPTS)
@pytest.mark.parametrize("name", ROWS)
def test_a_folder_is_as_its_script_of_fastcgi(start, name, how):
    """The section finds the script itself; the second time it is one that was found lately. Bodies are passed on. The
    path of the script is that of another gateway, which is taken as the measure."""
    text, fields, status = ROWS[name]
    keys, target = SCRIPTS[how]
    with Application(run_php) as php:
        server = start(section("FASTCGI", {"Match": "/dir", "To": php.to, **keys}) + text)
        with server.connect() as client:
            script = [client.ask("/dir/index.php", *fields, method=method) for method in ("GET", "POST")]
            for _ in range(2):
                assert describe(client.ask(target, *fields), []) == describe(script[0], [])
            if " GET" not in text:
                posted = client.ask(target, *fields, method="POST", body=b"body")
                assert (posted.status, posted.body == b"ran body") == (script[1].status, script[1].status == 200)
                assert status != 200 or posted["X-User"] == (server.app.requests[-1]["Remote-User"] or "")
        assert script[0].status == status


STARTER = 2  # sockets to it: of the process, and of the worker


@pytest.fixture
def interpreter(tmp_path):
    """Runs any script: it tells the user that the script gets."""
    path = tmp_path / "interpreter"
    path.write_text("#!/bin/sh\nprintf 'Content-Type: text/plain\\nX-User: %s\\n\\nran ' \"$HTTP_REMOTE_USER\"\ncat\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ROWS)
def test_a_path_info_is_as_its_script_of_cgi(start, interpreter, name):
    text, fields, status = ROWS[name]
    server = start(section("CGI", {"Match": "/dir", "Interpreter": f".php {interpreter}"}) + text)
    server.baseline += STARTER
    with server.connect() as client:
        script = client.ask("/dir/index.php", *fields)
        for _ in range(2):
            assert describe(client.ask("/dir/index.php/info", *fields), []) == describe(script, [])
        if " GET" not in text:
            posted = client.ask("/dir/index.php/info", *fields, method="POST", body=b"body")
            assert (posted.status, posted.body == b"ran body") == (status, status == 200)
            assert status != 200 or posted["X-User"] == (server.app.requests[-1]["Remote-User"] or "")
    assert script.status == status


@pytest.mark.parametrize("match, status", [("=/dir/index.php", 403), ("=/dir/index.php/info", 403), ("=/info", 200)])
def test_a_redirect_with_a_path_info(serve, tmp_path, match, status):
    """A script names the script of another path, with what follows it."""
    scripts = {"a.cgi": b"#!/bin/sh\necho Location: /dir/index.php/info\necho\n",
               "index.php": b"#!/bin/sh\necho Content-Type: text/plain\necho\necho ran $PATH_INFO\n"}  # fmt: skip
    root = populate(tmp_path / "root", {f"dir/{name}": text for name, text in scripts.items()})
    for name in scripts:
        (root / "dir" / name).chmod(0o755)
    server = serve(root=root, text=section("CGI", {"Match": "/dir", "LocalRedirect": "On"}) + deny(match))
    server.baseline += STARTER
    with server.connect() as client:
        got = client.ask("/dir/a.cgi")
    assert (got.status, got.body == b"ran /info\n") == (status, status == 200)
    assert ("the client may not have" in server.log) == (status == 403)


@pytest.mark.parametrize("match, count", [("=/dir/index.php", 1), ("=/other", 2)])
def test_counted_once(serve, interpreter, tmp_path, match, count):
    """A script that a login was asked for is one request; one that a rule denies is none."""
    root = populate(tmp_path / "root", {"dir/index.php": b""})
    text = section("CGI", {"Match": "/dir", "Interpreter": f".php {interpreter}"}) + deny(match)
    server = serve(root=root, text=text, config={"plugins/status/status.conf": status_section()})
    server.baseline += STARTER * (count == 2)
    with server.connect() as client:
        for path in ("/dir/index.php/info", "/dir/none"):
            client.ask(path)
        assert total(scrape(client), "monkey_cgi_requests_total") == count


# How the file gets to a client that does not ask for it: the keys of the host, and the path.
FILES = {
    "index": ({}, "/dir/"),
    "tries": ({"TryFiles": "$path /dir/index.html"}, "/other"),
    "tries an index": ({"TryFiles": "$path /dir/"}, "/other"),
    "tries its own index": ({"TryFiles": "$path/ =404"}, "/dir/"),
}


@pytest.mark.parametrize("how", FILES)
@pytest.mark.parametrize("name", ROWS)
def test_a_folder_is_as_its_file(start, name, how):
    """Files as scripts: rules and logins hold for the path of the file that is sent."""
    text, fields, status = ROWS[name]
    host, target = FILES[how]
    server = start(text.replace("index.php", "index.html"), index="index.html", host=host)
    with server.connect() as client:
        got = client.ask(target, *fields)
        if "TryFiles" not in host:
            assert describe(got, []) == describe(client.ask("/dir/index.html", *fields), [])
        assert got.status == status
        assert (b"secret" in got.body) == (status == 200)
        head = client.ask(target, *fields, method="HEAD")
        assert (head.status, head["Content-Length"]) == (status, got["Content-Length"])
        if status == 200:
            cached = client.ask(target, *fields, f"If-None-Match: {got['ETag']}")
            assert cached.status == 304
    assert not server.app.requests


def deny(path):
    return section("RULES", {"Match": path, "Action": "deny"})


@pytest.mark.parametrize("match, target, status", [
    ("=/a/index.html", "/a/", 403),
    ("=/dir/index.html", "/a/", 200),
    ("=/a/second.html", "/a/", 200),
    ("=/a/sub/second.html", "/a/sub/", 403),
    ("=/a/sub/index.html", "/a/sub/", 200),
    ("=/a/index.html.gz", "/a/", 200),
    ("/dir", "/", 200),
])  # fmt: skip
def test_files_of_an_alias(serve, tmp_path, match, target, status):
    """The path is that of the host, below the alias; of a variant it is that of the file."""
    root = populate(tmp_path / "root", {"index.html": b"root", "dir/index.html": b"a"})
    populate(root, {"dir/index.html.gz": b"zz", "dir/sub/second.html": b"b"})
    host = {"Indexfile": "index.html second.html", "Precompressed": "gzip"}
    text = section("ALIAS", {"Match": "/a", "To": root / "dir"}) + deny(match)
    server = serve(root=root, host=host, text=text)
    with server.connect() as client:
        assert [client.ask(target, "Accept-Encoding: gzip").status for _ in range(2)] == [status] * 2


def test_a_delay_for_a_file(start):
    """The request waits once, and continues with the file."""
    server = start(section("RULES", {"Match": "=/dir/index.html", "Action": "delay 20ms"}), index="index.html")
    with server.connect() as client:
        assert b"secret" in client.ask("/dir/").body
        assert client.ask("/dir/", method="POST").status == 405


def test_kept_answers_are_of_the_file(start):
    match = "[AUTH]\nMatch =/dir/index.html\nType Forward\nTo {auth}\nForwardCache 60s\n"
    server = start(match, index="index.html")
    with server.connect() as client:
        for path in ("/dir/", "/dir/index.html", "/dir/?a"):
            assert client.ask(path, "Cookie: session=ada").status == 200
    uris = [uri for _, uri, _ in get_questions(server)]
    assert uris == ["/dir/index.html", "/dir/index.html?a"]


def get_questions(server):
    """Of each question the method, the URI, and the URI of the URL."""
    questions = server.auth.requests
    uris = [re.sub("https?://[^/]+", "", one["X-Original-URL"]) for one in questions]
    return [(one["X-Forwarded-Method"], one["X-Forwarded-Uri"], uri) for one, uri in zip(questions, uris)]


@pytest.mark.parametrize("match", ["/dir", "=/dir/index.php"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_forward_is_asked_about_both_paths(start, match, method):
    """The server may decide by path, method and query: the question about the script has those that are run."""
    server = start(f"[AUTH]\nMatch {match}\nType Forward\nTo {{auth}}\nCopyHeaders Remote-User\n")
    with server.connect() as client:
        assert client.ask("/dir/?a=b", "Cookie: session=ada", method=method).status == 200
    asked = [(method, "/dir/?a=b", "/dir/?a=b"), (method, "/dir/index.php?a=b", "/dir/index.php?a=b")]
    assert get_questions(server) == asked[match != "/dir" :]


def test_a_server_that_denies_the_script(start):
    server = start("[AUTH]\nMatch /dir\nType Forward\nTo {auth}\nForwardCache 60s\n", index="denied.php")
    with server.connect() as client:
        for path in ("/dir/", "/dir/", "/dir/denied.php"):
            assert client.ask(path, "Cookie: session=ada").status == 403
    assert not server.app.requests


def test_kept_answers_are_of_one_path(start):
    server = start("[AUTH]\nMatch /dir\nType Forward\nTo {auth}\nForwardCache 60s\n")
    with server.connect() as client:
        for path in ("/dir/", "/dir/index.php", "/dir/", "/dir/?a"):
            assert client.ask(path, "Cookie: session=ada").status == 200
    uris = [uri for _, uri, _ in get_questions(server)]
    assert uris == ["/dir/", "/dir/index.php", "/dir/?a", "/dir/index.php?a"]


@pytest.mark.parametrize("match", ["/dir", "=/dir/", "=/dir/index.php"])
def test_questions_have_the_headers_of_the_client(start, match):
    """The answer about the folder sets or removes what the client has sent; the question about the script has it."""
    forward = "Type Forward\nTo {auth}\nCopyHeaders Authorization Remote-User X-Key\nForwardCacheBy Cookie X-Key\n"
    text = f"[AUTH]\nMatch {match}\n{forward}" + ("[AUTH]\nMatch /dir\n" + forward) * (match != "/dir")
    server = start(text.replace("ForwardCacheBy Cookie", "ForwardCacheBy Cookie Authorization"))
    fields = ["Cookie: session=ada", ADA, "X-Key: 1", "Remote-User: root", "X_Key: 2"]
    with server.connect() as client:
        assert client.ask("/dir/", *fields).status == 200
    for name in ("Cookie", "Authorization", "X-Key", "X_Key", "Remote-User"):
        first, second = (one[name] for one in server.auth.requests)
        assert first == second
        assert (first is None) == (name == "Remote-User")
    (request,) = server.app.requests
    assert [request[name] for name in ("Remote-User", "Authorization", "X-Key", "X_Key")] == ["ada", None, None, None]


BOB = "Realm bob\nUsers {users}\nRequire user bob\nSatisfy any\n"
VIA = f"""[AUTH]
Match =/via/via/a.txt
Realm ada
Users {{users}}
[AUTH]
Match /
{BOB}[RULES]
Match ={{denied}}
Action deny
[RULES]
Match *a.txt
Action allow
"""


@build.needs_modules
@pytest.mark.parametrize("denied, status, body", [("/a.txt", 403, None), ("/b/team.txt", 200, b"ada no -")])
def test_a_user_of_another_section(start, denied, status, body):
    """A login of one section is none of the next ones, also after two internal redirects."""
    names = ("liana", "mandril", "auth", f"{build.MODULES}/doorman.so", "proxy", "static")
    load = {"plugins.load": section("PLUGINS", {"Load": names})}
    server = start(VIA.replace("{denied}", denied), config=load)
    with server.connect() as client:
        got = client.ask("/via/via/a.txt?user", ADA)
    assert (got.status, got.body if body else None) == (status, body)


def test_one_limit_counts_once(start):
    server = start("[CLIENT_LIMITS]\nMatch /dir\nRate 2/h\n")
    with server.connect() as client:
        assert [client.ask("/dir/").status for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("match", ["/dir", "=/dir/index.html"])
def test_limit_of_a_file(start, match):
    server = start(section("CLIENT_LIMITS", {"Match": match, "Rate": "2/h"}), index="index.html")
    with server.connect() as client:
        assert [client.ask("/dir/").status for _ in range(3)] == [200, 200, 429]


def test_the_limits_of_a_folder_and_of_its_file(start):
    """The fields tell of the section that leaves fewer requests, in whatever order they are asked."""
    sections = [{"Match": "=/dir/", "Rate": "3/h"}, {"Match": "=/dir/index.html", "Rate": "1000/h"}]
    server = start("".join(section("CLIENT_LIMITS", one) for one in sections), index="index.html")
    with server.connect() as client:
        assert ";q=3;" in client.ask("/dir/")["RateLimit-Policy"]


def test_a_dry_run_is_logged_once(start):
    server = start("[RULES]\nDryRun On\nAction deny\n", index="index.html")
    with server.connect() as client:
        assert client.ask("/dir/").status == client.ask("/dir/").status == 200
    server.wait_log("2 so far")
    assert not [line for line in server.lines if "3 so far" in line]


def test_limit_of_a_script(start):
    server = start("[CLIENT_LIMITS]\n" + INDEX + "Rate 2/h\n")
    with server.connect() as client:
        assert [client.ask("/dir/").status for _ in range(3)] == [200, 200, 429]
