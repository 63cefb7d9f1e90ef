# SPDX-License-Identifier: Apache-2.0
"""`explain` of the shell says what happens to a request for a folder, or for a path that TryFiles leads elsewhere: the
rules and logins of the file's own path hold, too. Each row asks both, explain and the server."""

import re

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import populate
from harness.fastcgi import Application
from harness.fastcgi import answer as answer_fastcgi
from harness.scripts import HELLO, cgi_section, write_scripts
from harness.server import section
from test_auth import ADA, users  # noqa: F401
from test_shell import path, shell, shown  # noqa: F401

PLUGINS = ("cheetah", "mandril", "auth", "proxy", "fastcgi", "cgi")
pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in PLUGINS), reason="this preset has no plugins"
    ),
]

FILES = ("index.html", "dir/index.html", "dir/a.txt", "php/index.php", "php/x.php", "run/index.php", "run/x.php")
HERE, ELSEWHERE = "Network 127.0.0.0/8", "Network 192.0.2.0/24"


def rule(match, *lines, action="deny 403"):
    return "\n    ".join(["[RULES]", f"Match {match}", *lines, f"Action {action}"]) + "\n"


def login(match, *lines):
    return "\n    ".join(["[AUTH]", f"Match {match}", "Realm staff", "Users {users}", *lines]) + "\n"


INDEX, SCRIPT, RUN, CGI = "=/dir/index.html", "=/php/index.php", "=/run/index.php", "=/cgi/a"
SPA = {"TryFiles": "$path /dir/index.html"}
FOLDERS = {"TryFiles": "$path $path/ =404"}
ROWS = {  # sections, keys of the host, the target, the status, and that after a login
    "no rule": ("", {}, "/dir/", 200, 200),
    "the index": (rule(INDEX), {}, "/dir/", 403, 403),
    "the index itself": (rule(INDEX), {}, "/dir/index.html", 403, 403),
    "another file": (rule(INDEX), {}, "/dir/a.txt", 200, 200),
    "another folder": (rule(INDEX), {}, "/", 200, 200),
    "by an end": (rule("*.html"), {}, "/dir/", 403, 403),
    "by a pattern": (rule("~ind[a-z]x"), {}, "/dir/", 403, 403),
    "a status": (rule(INDEX, action="deny 404"), {}, "/dir/", 404, 404),
    "clients": (rule(INDEX, HERE), {}, "/dir/", 403, 403),
    "other clients": (rule(INDEX, ELSEWHERE), {}, "/dir/", 200, 200),
    "a method": (rule(INDEX, "When method GET"), {}, "/dir/", 403, 403),
    "another method": (rule(INDEX, "When method POST"), {}, "/dir/", 200, 200),
    "a dry run": (rule(INDEX, "DryRun On"), {}, "/dir/", 200, 200),
    "an allowed folder": (rule("=/dir/", action="allow") + rule(INDEX), {}, "/dir/", 403, 403),
    "an allowed index": (rule(INDEX, action="allow") + rule("/dir"), {}, "/dir/", 403, 403),
    "both allowed": (rule("/dir", action="allow") + rule("/"), {}, "/dir/", 200, 200),
    "the folder": (rule("=/dir/"), {}, "/dir/", 403, 403),
    "a login for the index": (login(INDEX), {}, "/dir/", 401, 200),
    "a login for the folder": (login("=/dir/"), {}, "/dir/", 401, 200),
    "a login for both": (login("/dir"), {}, "/dir/", 401, 200),
    "a rule and a login": (rule(INDEX) + login(INDEX), {}, "/dir/", 403, 403),
    "a rule or a login": (rule(INDEX) + login(INDEX, "Satisfy any"), {}, "/dir/", 401, 200),
    "tries": (rule(INDEX), SPA, "/none", 403, 403),
    "tries, and finds": (rule(INDEX), SPA, "/dir/a.txt", 200, 200),
    "tries a folder": (rule(INDEX), FOLDERS, "/dir/", 403, 403),
    "tries a folder without a slash": (rule(INDEX), FOLDERS, "/dir", 301, 301),
    "tries nothing": (rule(INDEX), FOLDERS, "/none", 404, 404),
    "tries, a login": (login(INDEX), SPA, "/none", 401, 200),
    "a program": (rule(SCRIPT), {}, "/php/", 403, 403),
    "a program, a login": (login(SCRIPT), {}, "/php/", 401, 200),
    "tries a program": (rule(SCRIPT), {"TryFiles": "$path /php/index.php"}, "/none", 403, 403),
    "tries a program, a login": (login(SCRIPT), {"TryFiles": "$path /php/index.php"}, "/none", 401, 200),
    "another program": (rule("=/php/x.php"), {}, "/php/", 200, 200),
    "FastCGI": (rule(RUN), {}, "/run/", 403, 403),
    "FastCGI, the script": (rule(RUN), {}, "/run/index.php", 403, 403),
    "FastCGI, a login": (login(RUN), {}, "/run/", 401, 200),
    "FastCGI, tries": (rule(RUN), {}, "/run/none", 403, 403),
    "FastCGI, tries and another path": (rule("=/run/index.phpx"), {}, "/run/index.phpy", 200, 200),
    "FastCGI, tries and a path that begins so": (rule(RUN), {}, "/run/index.phpy", 403, 403),
    "FastCGI, tries, a login": (login("*.php"), {}, "/run/none", 401, 200),
    "FastCGI, PATH_INFO": (rule(RUN), {}, "/run/index.php/x", 403, 403),
    "FastCGI, PATH_INFO, a login": (login("*.php"), {}, "/run/index.php/x", 401, 200),
    "FastCGI, PATH_INFO, another one": (rule("=/run/x.php"), {}, "/run/index.php/x", 200, 200),
    "FastCGI, another one": (rule("=/run/x.php"), {}, "/run/", 200, 200),
    "CGI": (rule(CGI), {}, "/cgi/a", 403, 403),
    "CGI, PATH_INFO": (rule(CGI), {}, "/cgi/a/x", 403, 403),
    "CGI, PATH_INFO, a login": (login(CGI), {}, "/cgi/a/x", 401, 200),
    "CGI, PATH_INFO, another one": (rule("=/cgi/b"), {}, "/cgi/a/x", 200, 200),
    "without a slash": (rule(INDEX), {}, "/dir", 301, 301),
}


@pytest.fixture
def start(shown, shell, tmp_path, users):  # noqa: F811
    made = [Backend(answer(b"ran", "Content-Type: text/plain")), Application(answer_fastcgi(b"ran"))]
    app, php = (one.__enter__() for one in made)
    root = populate(tmp_path / "root", dict.fromkeys(FILES, b"<?php secret ?>\n"))

    scripts = write_scripts(tmp_path / "scripts", {"a": HELLO})

    def run(text, keys):
        host = {"ServerName": "localhost", "DocumentRoot": root, "Indexfile": "index.html index.php", **keys}
        tries = "$path $path/index.php /run/index.php"
        sections = section("FASTCGI", {"Match": "/run", "To": php.to, "TryFiles": tries})
        sections += section("PROXY", {"Match": "/php/*.php", "To": app.url})
        sections += cgi_section(scripts)
        text = section("HOST", host) + sections + text.replace("{users}", str(users))
        server = shown(config={"sites/default": text})
        server.baseline += 2 * ("/cgi/" in text)  # sockets to the starter, once a script runs
        return server, shell()

    yield run
    for one in made:
        one.__exit__(None, None, None)


def tell_statuses(rows):
    """What explain leaves possible."""
    ends = [row["what"] for row in rows if row["effect"] == "answers" and row["plugin"] in ("mandril", "auth")]
    if ends:
        return {int(ends[0].split("deny ")[1][:3])} if "deny" in ends[0] else {401}
    maybe = {401 for row in rows if row["effect"] == "maybe" and row["plugin"] == "auth"}
    (file,) = [row["what"] for row in rows if row["phase"] == "file"]
    return maybe | ({301} if "redirect" in file else {404} if "404" in file else {200})


@pytest.mark.parametrize("name", ROWS)
def test_explain_and_the_server_agree(start, name):
    text, keys, target, *statuses = ROWS[name]
    server, one = start(text, keys)
    for fields, status in zip(((), (ADA,)), statuses):
        words = " ".join(f'"{field}"' for field in fields)
        rows = one.ask(f"explain GET http://localhost{target} client=127.0.0.1 {words}")
        with server.connect() as client:
            assert client.ask(target, *fields).status == status
        assert status in tell_statuses(rows), rows
        with server.connect() as client:  # what was found before is kept for a second
            assert client.ask(target, *fields).status == status
        assert status in (200, 401) or len(tell_statuses(rows)) == 1, rows


def limit(match, size):
    return section("LIMITS", {"Match": match, "MaxBodySize": size})


@pytest.mark.parametrize("text, target, sizes", [
    (limit(INDEX, "1K"), "/dir/index.html", [1024]),
    (limit(INDEX, "1K"), "/dir/", [None, 1024]),
    (limit(INDEX, "1K") + limit("/dir", "2K"), "/dir/", [2048, 1024]),
    (limit(INDEX, "4K") + limit("=/dir/", "2K"), "/dir/", [2048, 4096]),
    (limit("/dir", "1K"), "/dir/", [1024, 1024]),
    (limit("=/dir/a.txt", "1K"), "/dir/", [None]),
    (limit(RUN, "1K"), "/run/", [None, 1024]),
])  # fmt: skip
def test_limits_of_both_paths(start, text, target, sizes):
    """The section for the path of the index holds next; None: the limits of the host."""
    _, one = start(text, {})
    rows = [row["what"] for row in one.ask(f"explain GET http://localhost{target}") if row["phase"] == "limits"]
    seen = [re.search(r"\[LIMITS\] holds: MaxBodySize (\d+)", row) for row in rows]
    assert [found and int(found[1]) for found in seen] == sizes, rows
    assert ["lower MaxBodySize" in row for row in rows] == [False, True][: len(rows)]
