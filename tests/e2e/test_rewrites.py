# SPDX-License-Identifier: Apache-2.0
"""Internal rewrites and conditions: what other sections see, what clients cannot reach, loops, mistakes, reloads."""

import signal
import threading

import pytest

from harness.messages import request
from harness.server import Server, run, section
from harness.ways import WAYS

FILES = {
    "new/index.html": b"new\n",
    "new/a b.txt": b"blank\n",
    "item.txt": b"item\n",
    "de/x.txt": b"deutsch\n",
    "x.txt": b"english\n",
    "bots.txt": b"bots\n",
    "pub/a.txt": b"public\n",
    "secret.txt": b"secret\n",
    "form.txt": b"form\n",
    "app.html": b"app\n",
}

RULES = """
[REWRITE]
    Match       /old
    To          /new

[REWRITE]
    Match       ~^/item/([^/]+)$
    To          /item.txt?id=$1

[REWRITE]
    Match       =/x.txt
    To          /de/x.txt
    When        query lang =de =at

[REWRITE]
    Match       /robots
    To          /bots.txt
    When        header User-Agent ~*bot
    When        !header X-Human
    KeepPath    Off

[REWRITE]
    Match       =/form
    To          /form.txt
    When        method GET HEAD

[REWRITE]
    Match       ~^/f/(.*)$
    To          /pub/$1

[REWRITE]
    Match       ~^/g(.*)g$
    To          /pub/$1/secret.txt

[REWRITE]
    Match       =/first
    To          /second

[REWRITE]
    Match       =/second
    To          /item.txt

[REWRITE]
    Match       =/stop
    To          /second
    Last        On

[REWRITE]
    Match       /app
    To          /app.html
    KeepPath    Off
    KeepQuery   Off

[REWRITE]
    Match       ~^/grow
    To          /grow$0

[REWRITE]
    Match       =/away
    To          /sent/away

[REDIRECT]
    Match       /sent
    To          https://example.org/
    Status      302

[REDIRECT]
    Match       =/once
    To          https://example.org/once
    When        !query once
    Status      307

[HEADERS]
    Match       /new
    Set         X-Section new

[HEADERS]
    Match       /old
    Set         X-Section old
"""


@pytest.fixture
def rules(host_conf):
    return lambda text: host_conf(text, FILES)


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
def client(serve, tmp_path, way):
    """A client of a server with RULES, which logs each request and its path to `server.log_file`."""
    log = tmp_path / "access.log"

    def start(sources, settings, text=""):
        text += RULES + section("LOGGER", {"AccessLog": log, "Format": '"$request|$path|$query|$status"'})
        root = tmp_path / "server0" / "root"
        host = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
        return serve(settings, files=FILES, config={"sites/default": host + text})

    server = way.start(start, tmp_path, {})
    client = server.open()
    client.server, client.log_file = server, log
    yield client
    client.close()
    if not server.stopping:
        server.stop()


@pytest.mark.parametrize(
    "target, fields, method, status, body",
    [
        ("/old/", (), "GET", 200, None),  # the index of the folder, not a redirect that shows it
        ("/old", (), "GET", 301, None),
        ("/old/a%20b.txt", (), "GET", 200, b"blank\n"),
        ("/%6fld//./a%20b.txt?x", (), "GET", 200, b"blank\n"),
        ("/older", (), "GET", 404, None),
        ("/item/7", (), "GET", 200, b"item\n"),
        ("/item/7%3f%26%0d%0aX:y%00", (), "GET", 400, None),
        ("/item/7%3f%26%0d%0aX:y", (), "GET", 200, b"item\n"),
        ("/x.txt", (), "GET", 200, b"english\n"),
        ("/x.txt?lang=de", (), "GET", 200, b"deutsch\n"),
        ("/x.txt?a&l%61ng=a%74", (), "GET", 200, b"deutsch\n"),
        ("/x.txt?lang=fr", (), "GET", 200, b"english\n"),
        ("/robots/x", ("User-Agent: GoodBot/1",), "GET", 200, b"bots\n"),
        ("/robots/x", ("User-Agent: GoodBot/1", "X-Human: yes"), "GET", 404, None),
        ("/robots/x", ("User-Agent: curl",), "GET", 404, None),
        ("/form", (), "GET", 200, b"form\n"),
        ("/form", (), "POST", 405, None),
        ("/f/a.txt", (), "GET", 200, b"public\n"),
        ("/first", (), "GET", 200, b"item\n"),
        ("/stop", (), "GET", 404, None),
        ("/app/any/thing?x=1", (), "GET", 200, b"app\n"),
    ],
)
def test_rules(client, target, fields, method, status, body):
    answer = client.ask(target, *fields, method=method)
    assert answer.status == status and (body is None or answer.body == body)


def test_what_others_see(client):
    """Redirects and headers go by the new path; the log has the line of the client, and the new path as $path."""
    assert client.ask("/old/a%20b.txt?c")["X-Section"] == "new"
    assert client.ask("/new/")["X-Section"] == "new"
    answer = client.ask("/away")
    assert (answer.status, answer["Location"]) == (302, "https://example.org/away")
    assert client.ask("/once?a").status == 307
    assert client.ask("/once?once").status == 404
    client.ask("/item/7%26x=1?b=2")
    client.close()
    client.server.stop()
    rows = client.log_file.read_text().splitlines()
    assert rows[0].startswith("GET\\x20/old/a%20b.txt?c\\x20HTTP/") and rows[0].endswith("|/new/a\\x20b.txt|c|200")
    assert rows[-1].startswith("GET\\x20/item/7%26x=1?b=2\\x20")
    assert rows[-1].endswith("|/item.txt|id=7%26x%3D1&b=2|200")


ACCESS = """
[REWRITE]
    Match       =/in
    To          /secret.txt

[REWRITE]
    Match       /old
    To          /new

[REWRITE]
    Match       =/upload
    To          /form.txt

[RULES]
    Match       =/secret.txt
    Action      deny 403

[RULES]
    Match       /old
    Action      deny 403

[LIMITS]
    Match       =/upload
    MaxBodySize 1B

[LIMITS]
    Match       =/form.txt
    MaxBodySize 100B
"""


def test_access_and_limits_of_the_new_path(rules):
    """A rewrite is no way around a rule or a limit, and those of the old path do not hold."""
    server = Server("-c", rules(ACCESS))
    with server.connect() as client:
        assert client.ask("/secret.txt").status == 403
        assert client.ask("/in").status == 403
        assert client.ask("/%69n?x").status == 403
        assert client.ask("/old/a%20b.txt").body == b"blank\n"
        client.send(request("/upload", "Content-Length: 100", method="POST") + 100 * b"x")
        assert client.response("POST").status == 405
    with server.connect() as client:
        client.send(request("/upload", "Content-Length: 101", method="POST") + 101 * b"x")
        assert client.response("POST").status == 413
    server.stop()


@pytest.mark.parametrize(
    "target",
    [
        "/f/..%2fsecret.txt",
        "/f/%252e%252e/secret.txt",
        "/f/..%5csecret.txt",
        "/g..g",
        "/g.g",
        "/g%2e%2eg",
        "/g/..g",
        "/g/../..g",
        "/ga/..g",
        "/g%2e.%00g",
        "/g%252e.g",
    ],
)
def test_captures_do_not_leave_their_folder(client, target):
    answer = client.ask(target)
    assert answer.status in (400, 404), answer.body
    assert client.ask("/f/a.txt").body == b"public\n"


def test_rewrites_without_end_are_cut(client):
    """The static check cannot know the paths of an expression."""
    for _ in range(20):
        assert client.ask("/grow/x").status == 500
        assert client.ask("/first").status == 200
    rules, names = r"by the rules of .*sites/default:\d+", r"peer: 127\.0\.0\.1, listener: .*, host: "
    client.server.wait_log(rf"rewritten more than 10 times, {rules}, {names}")
    assert client.server.log.count("rewritten more than") == 1


def test_long_paths(client):
    """What captures make must be within the limits of mk_request_rewrite() and of captures."""
    assert client.ask("/f/" + 4000 * "a").status == 404
    answer = client.ask("/item/" + 2500 * "%21")
    assert answer.status == 200
    assert client.ask("/first").status == 200


@pytest.mark.parametrize(
    "text",
    [
        "[REWRITE]\n    Match =/a\n    To /a\n",
        "[REWRITE]\n    Match /a\n    To /a/b\n",
        "[REWRITE]\n    Match /\n    To /index.html\n    KeepPath Off\n",
        "[REWRITE]\n    Match =/a\n    To /b\n[REWRITE]\n    Match =/b\n    To /a\n",
        "[REWRITE]\n    Match *.php\n    To /index.php\n",
        "[REWRITE]\n    Match /a/**\n    To /a/x\n",
        "[REWRITE]\n    Match ~^/x\n    To /x\n",
        "[REWRITE]\n    Match =/a\n    To /b/1\n[REWRITE]\n    Match ~^/b/(.)\n    To /c/$1\n"
        "[REWRITE]\n    Match /c\n    To /b\n",
        "[REWRITE]\n    Match /\n    To /de\n    When query lang =de\n",
        "[REWRITE]\n    Match /\n    To /m\n    When header User-Agent ~Mobile\n",
        "[REWRITE]\n    Match /a\n    To /a%61\n[REWRITE]\n    Match =/aa\n    To /a\n",
    ],
)
def test_loops(rules, text):
    result = run("-c", rules(text), "-t")
    assert result.returncode == 1 and "this rewrite never ends" in result.stderr, result.stderr
    assert "sites/default:" in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        "[REWRITE]\n    Match =/a\n    To /b\n[REWRITE]\n    Match =/b\n    To /c\n",
        "[REWRITE]\n    Match /\n    To /index.html\n    KeepPath Off\n    Last On\n",
        "[REWRITE]\n    Match =/a\n    To /b\n[REWRITE]\n    Match =/b\n    To /a\n    Last On\n",
        "[REWRITE]\n    Match /\n    To /de?lang=x\n    KeepQuery Off\n    When query lang =de\n",
        "[REWRITE]\n    Match =/a\n    To /b\n    When query x\n"
        "[REWRITE]\n    Match =/b\n    To /a\n    When query y\n",
        "[REWRITE]\n    Match ~^/(.*)$\n    To /x/$1\n",
        "[REWRITE]\n    Match /a\n    To /b\n[REDIRECT]\n    Match /b\n    To /c\n",
    ],
)
def test_no_loops(rules, text):
    result = run("-c", rules(text), "-t")
    assert result.returncode == 0, result.stderr


def test_redirects_that_are_rewritten_back(rules):
    text = "[REWRITE]\n    Match =/a\n    To /b\n[REDIRECT]\n    Match =/b\n    To /a\n"
    result = run("-c", rules(text), "-t")
    assert result.returncode == 1 and "this redirect never ends" in result.stderr, result.stderr


@pytest.mark.parametrize(
    "line, column, phrase",
    [
        ("To https://example.org/", 8, "a path of this host"),
        ("To /a/../b", 11, "no segment"),
        ("To /a#b", 10, "browsers keep fragments"),
        ("To /a/$1", 8, "Match is not a regular expression"),
        ("When path /x", 10, "a condition is: method"),
        ("When method get", 17, "capitals"),
        ("When query", 10, "a name is missing"),
        ("When query lang de", 21, "a value is =text"),
        ("When header User-Agent ~(", 29, "missing closing parenthesis"),
        ("When !header Cookie !=x", 25, "in front"),
        ("Last Maybe", 10, "On"),
    ],
)
def test_mistakes(rules, line, column, phrase):
    text = "[REWRITE]\n    Match =/a\n    " + ("" if line.startswith("To") else "To /b\n    ") + line + "\n"
    result = run("-c", rules(text), "-t")
    row = 6 if line.startswith("To") else 7
    assert result.returncode == 1 and phrase in result.stderr, result.stderr
    assert f"sites/default:{row}:{column}: error:" in result.stderr, result.stderr


@pytest.mark.parametrize("kind", ["REWRITE", "REDIRECT"])
def test_a_condition_leaves_later_rules_their_turn(rules, kind):
    first, later = f"[{kind}]\n    Match /a\n    To /1\n", f"[{kind}]\n    Match /a/b\n    To /2\n"
    result = run("-c", rules(first + later), "-t")
    assert result.returncode == 1 and "can never match" in result.stderr
    result = run("-c", rules(first + "    When query x\n" + later), "-t")
    assert result.returncode == 0, result.stderr
    result = run("-c", rules(first + later + "    When query x\n"), "-t")
    assert result.returncode == 1 and "can never match" in result.stderr


def test_conditions_that_cost_too_much(rules):
    """It is not known whether the rule is to hide the path."""
    server = Server("-c", rules("[REWRITE]\n    Match /\n    To /new\n    When header X ~^(a+)+$\n    Last On\n"))
    with server.connect() as client:
        assert client.ask("/x.txt", "X: " + 1000 * "a" + "!").status == 500
        assert client.ask("/x.txt", "X: b").body == b"english\n"
        assert client.ask("/a%20b.txt", "X: aa").body == b"blank\n"
    server.stop()


def test_a_reload_amid_requests(rules):
    """Each request is answered by the rules of one configuration, whole."""
    text = "[REWRITE]\n    Match =/q\n    To /%s\n[REWRITE]\n    Match =/r\n    To /q\n"
    folder = rules(text % "x.txt")
    site = folder / "sites" / "default"
    before = site.read_text()
    server = Server("-c", folder)
    bodies, over = set(), threading.Event()

    def ask():
        with server.connect() as client:
            while not over.is_set():
                answer = client.ask("/r")
                assert answer.status == 200
                bodies.add(answer.body)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    with server.connect() as client:
        for name in ["item.txt", "x.txt"] * 5:
            site.write_text(before.replace("/x.txt", f"/{name}"))
            server.send_signal(signal.SIGHUP)
            while client.ask("/r").body != FILES[name]:
                assert server.alive
    over.set()
    for thread in threads:
        thread.join()
    assert bodies == {FILES["x.txt"], FILES["item.txt"]}
    server.stop()
