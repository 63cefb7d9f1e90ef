# SPDX-License-Identifier: Apache-2.0
"""monkey shell: a program that shows and controls a running server through the socket of the plugin cheetah."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import termios
import threading
import time

import pytest

from harness import build, services
from harness.certificates import TlsClient
from harness.content import populate
from harness.h2 import H2Client
from harness.messages import request
from harness.scripts import write_scripts
from harness.secure import serve_secure
from harness.server import UNCACHED, Server, await_true, is_alive, run, section, write_config
from harness.terminal import Terminal

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cheetah.so").exists(), reason="the preset has no plugin cheetah"),
    pytest.mark.skipif(build.PROTOCOL != "http/1.1", reason="the shell's protocol is its own"),
]

RELOADED = 2  # descriptors of the control thread, which the first reload makes
PATIENT = {"KeepAliveTimeout": "60s", "BodyTimeout": "60s", "SendTimeout": "60s", "MinBodyRate": 0}


class Shell:
    """A connection to the socket: one line a request, one object a line of the answer."""

    def __init__(self, path, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def read(self):
        line = self.file.readline()
        assert line, "the server has closed the connection"
        return json.loads(line)

    def answer(self):
        """The objects of an answer: its rows, and the last one."""
        rows = []
        while not (one := self.read()).get("end"):
            rows.append(one)
        return [row for row in rows if "begin" not in row], one

    def ask(self, line):
        self.send(line)
        rows, end = self.answer()
        assert end["ok"], (line, end)
        return rows

    def answer_to(self, line):
        self.send(line)
        return self.answer()

    def refused(self, line):
        _, end = self.answer_to(line)
        assert not end["ok"], line
        return end["error"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shell.sock"


@pytest.fixture
def shown(serve, path):
    """A server with a socket for shells."""

    def start(settings=None, cheetah=None, config=None, **rest):
        conf = section("CHEETAH", {"Listen": path, **(cheetah or {})})
        config = {"plugins/cheetah/cheetah.conf": conf, **(config or {})}
        return serve({**PATIENT, **(settings or {})}, config=config, **rest)

    return start


@pytest.fixture
def shell(path):
    """Connects to the socket."""
    shells = []

    def connect(**rest):
        shells.append(Shell(path, **rest))
        return shells[-1]

    yield connect
    for one in shells:
        one.close()


def command(path, *words, **rest):
    """Runs `monkey shell` once."""
    return run("shell", "-s", path, *words, **rest)


# ── commands ──


def test_status(shown, shell):
    server = shown({"Workers": 2})
    with server.connect() as client:
        assert client.ask("/hello.txt").status == 200
        (status,) = shell().ask("status")
        assert (status["process"], status["workers"], status["worker_threads"]) == (server.pid, 2, 2)
        assert (status["connections"], status["generation"], status["state"]) == (1, 1, "serving")
        assert 0 <= status["uptime_s"] < 60 and status["workers_memory_bytes"] > 0
        assert status["listeners"] == "127.0.0.1:0"


def test_commands_of_the_original(shown, shell):
    """help, status, uptime, config, plugins, vhosts, workers, and their letters."""
    shown({"Workers": 2})
    one = shell()
    names = {row["command"] for row in one.ask("help")}
    assert names >= {"help", "status", "uptime", "config", "plugins", "vhosts", "workers", "clear", "quit", "explain"}
    for letter, name in zip("hsufgvw", ("help", "status", "uptime", "config", "plugins", "vhosts", "workers")):
        one.send(f"\\\\{letter}")
        assert one.read()["begin"] == name
        assert one.answer()[1]["ok"]
    assert [row["plugin"] for row in one.ask("plugins")][-1] == "cheetah"
    assert [row["names"] for row in one.ask("vhosts")] == ["localhost"]
    assert [row["worker"] for row in one.ask("workers")] == [0, 1]
    assert any(row["text"].startswith("    Workers                2  # ") for row in one.ask("config localhost"))
    assert "no host serves the name" in one.refused("config elsewhere.test")
    assert [row["command"] for row in one.ask("help trace")] == ["trace"]


def test_memory_and_timers(shown, shell):
    server = shown({"Workers": 1})
    with server.connect() as client:
        client.ask("/hello.txt")
        (memory,) = shell().ask("memory")
        assert memory["account_bytes"] > 0 and memory["connections"] == 1
        assert memory["limit_bytes"] == 64 * 1024 * 1024
        (timers,) = shell().ask("timers")
        assert timers["timers"] >= 1 and 0 <= timers["next_ms"] <= 60_000 and not timers["or_more"]


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("konnections", "there is no command konnections; did you mean connections?"),
        ("stat", "there is no command stat; did you mean status?"),
        ("xyzzy", "there is no command xyzzy; help lists them"),
        ('help "', "a quote is not closed"),
        ("help \\", "the line ends with a backslash"),
        ("[1]", "a line that begins with [ must be a JSON array of strings"),
        (" ".join(["x"] * 65), "the line has more than 64 words"),
        ("connections colour=red", "connections: colour=red is not understood; see help connections"),
        ("connections close x", "connections close needs the number of a connection"),
        ("trace", "trace needs the number of a connection, or peer=ADDRESS"),
        ("trace 4711", "there is no connection of this number"),
        ("log level loud", "log level takes error, warn, info or debug, or nothing"),
        ("explain GET", "explain needs a method and a URL"),
        ("explain GET nonsense", "the method or the URL is malformed"),
        ("explain GET / strange", "strange is neither a header"),
        ("top", "top is a command of the shell itself"),
    ],
)
def test_wrong_lines(shown, shell, line, sentence):
    shown()
    one = shell()
    assert sentence.removeprefix("connections: ") in one.refused(line)
    assert one.ask("uptime")  # the connection continues


def test_a_line_too_long(shown, shell):
    shown()
    one = shell()
    one.socket.sendall(b"x" * 17000)
    assert one.answer()[1]["error"] == "the line is longer than 16,384 bytes"
    assert one.file.readline() == b""


def test_blank_lines(shown, shell):
    """They have no answer, and neither delay what follows nor keep a connection whose client has left."""
    shown(cheetah={"MaxClients": 1})
    one = shell()
    one.socket.sendall(b"\n" * 100 + b" \r\n" * 1000 + b"uptime\n")
    assert one.answer()[1]["ok"]
    one.socket.sendall(b"\n" * 4000)
    one.socket.shutdown(socket.SHUT_WR)
    assert one.file.readline() == b""
    assert await_true(lambda: try_shell(shell)).ask("uptime")


def test_many_commands_at_once(shown, shell):
    """All are answered, also if the client ends its side meanwhile."""
    shown()
    one = shell()
    sender = threading.Thread(target=one.socket.sendall, args=(b"uptime\n" * 10000,))
    sender.start()
    for _ in range(10000):
        assert one.answer()[1]["ok"]
    sender.join()
    one.socket.sendall(b"uptime\n" * 500)
    one.socket.shutdown(socket.SHUT_WR)
    for _ in range(500):
        assert one.answer()[1]["ok"]
    assert one.file.readline() == b""


def test_json_request(shown, shell):
    shown()
    one = shell()
    assert [row["command"] for row in one.ask('["help", "\\u0074race"]')] == ["trace"]
    one.send("uptime\nuptime")  # two at once are answered one after the other
    assert one.answer()[1]["ok"] and one.answer()[1]["ok"]


# ── connections ──


def test_connections(shown, shell):
    server = shown({"Workers": 2})
    with server.connect() as idle, server.connect() as busy:
        idle.ask("/hello.txt")
        busy.send(request("/upload", "Content-Length: 10", method="POST") + b"abc")
        one = shell()
        rows = await_true(lambda: [r for r in one.ask("connections") if r["state"] == "read_body"])
        assert (rows[0]["method"], rows[0]["host"], rows[0]["path"]) == ("POST", "localhost", "/upload")
        (row,) = one.ask("connections state=idle")
        assert (row["peer"], row["protocol"], row["transport"]) == ("127.0.0.1", "http/1", "liana")
        assert row["port"] == idle.sock.getsockname()[1]
        assert row["received_bytes"] > 0 and row["sent_bytes"] > 100 and row["requests"] == 1
        for filters in (f"id={row['id']}", "peer=127.0.0.1 state=idle limit=1"):
            (again,) = one.ask(f"connections {filters}")
            assert again | {"age_s": 0} == row | {"age_s": 0}
        assert not one.ask("connections peer=192.0.2.1") and not one.ask("connections older=100")
        assert len(one.ask("connections listener=127.0.0.1:0")) == 2
        assert [r["id"] for r in one.ask("connections host=LOCALHOST")] == [rows[0]["id"]]
        assert one.ask(f"connections close {rows[0]['id']}")[0]["state"] == "read_body"
        assert one.refused(f"connections close {rows[0]['id']}") == "there is no connection of this number"
        busy.assert_gone()
        assert idle.ask("/hello.txt").status == 200


def test_connections_with_a_request(shown, shell):
    server = shown()
    with server.connect() as idle, server.connect() as busy:
        idle.ask("/hello.txt")
        busy.send(request("/upload", "Content-Length: 10", method="POST") + b"abc")
        one = shell()
        await_true(lambda: [row["state"] for row in one.ask("connections request=yes")] == ["read_body"])
        assert [row["state"] for row in one.ask("connections request=no")] == ["idle"]
        assert "request=maybe is not understood" in one.refused("connections request=maybe")


@pytest.fixture
def shown_secure(shown, tmp_path, site_root):
    """A server behind TLS with a socket for shells."""
    return lambda settings=None: serve_secure(shown, tmp_path, site_root, settings)


def test_connections_over_tls(shown_secure, shell):
    server = shown_secure()
    with server.connect(kind=TlsClient, context=server.ca.context()) as client:
        client.ask("/hello.txt")
        (row,) = shell().ask("connections")
        assert (row["transport"], row["state"], row["protocol"]) == ("tls", "idle", "http/1")


def test_connections_over_h2(shown, shell):
    server = shown()
    with server.connect_h2(credit=False, window=0) as client:  # which takes no byte of a body
        client.begin("/hello.txt")
        client.begin("/hello.txt?again")
        one = shell()
        (row,) = await_true(lambda: [r for r in one.ask("connections") if r["streams"] == 2])
        assert (row["protocol"], row["state"], row["path"], row["method"]) == ("h2", "streams", "/hello.txt", "GET")
        assert row["requests"] == 2 and row["host"] == "localhost"


def read_list(shell, line):
    return [row["id"] for row in shell.ask(line)]


@pytest.mark.concurrent
@pytest.mark.parametrize("workers", [1, 2])
def test_limit_of_a_list(shown, shell, workers):
    server = shown({"Workers": workers})
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            assert stack.enter_context(server.connect()).ask("/hello.txt").status == 200
        one = shell()
        for limit in (1, 5, 39, 40, 1000):
            assert len(one.ask(f"connections limit={limit}")) == min(limit, 40)


def test_list_while_connections_come_and_go(shown, shell):
    """The cursor survives the end of its connection; those that stay are listed exactly once."""
    server = shown({"Workers": 2, "Timeout": "60s"})
    with contextlib.ExitStack() as stack:
        stay = [stack.enter_context(server.connect()) for _ in range(150)]
        for client in stay:
            assert client.ask("/hello.txt").status == 200
        one = shell()
        ids = sorted(read_list(one, "connections"))
        assert len(ids) == 150
        for _ in range(10):
            leave = [server.connect() for _ in range(40)]
            for client in leave:
                client.ask("/hello.txt")
            one.send("connections")
            for client in leave:
                client.close()
            rows, end = one.answer()
            seen = [row["id"] for row in rows]
            assert end["ok"] and len(set(seen)) == len(seen) and set(seen) >= set(ids)


def test_many_connections_in_pieces(shown, shell):
    """Thousands are listed while requests are served, each of which is answered amid the list: what this process has
    not read of it is more than the socket holds."""
    many = 10000 if build.OPTIMISED else 1500
    patient = {"KeepAliveTimeout": "120s", "Timeout": "120s", "MemoryLimit": "256M", "DeferAccept": 0}
    server = shown({"Workers": 1, **patient})
    with contextlib.ExitStack() as stack:
        clients = []
        try:
            for _ in range(many):
                clients.append(stack.enter_context(server.connect(timeout=60)))
        except OSError:  # as many descriptors as there are
            stack.callback(lambda: None)
        many = len(clients) - 8
        for client in clients[many:]:
            client.close()
        with server.connect() as asking:
            one = shell(timeout=60)
            await_true(lambda: one.ask("status")[0]["connections"] >= many, 60)
            one.send("connections")
            rows = 0
            one.socket.setblocking(True)
            while not (row := one.read()).get("end"):
                rows += "id" in row
                if rows % 500 == 1:
                    assert asking.ask("/hello.txt").status == 200
            assert rows >= many


# ── counters ──


@pytest.fixture
def counting(shown, shell):
    """A server with counters, and a shell."""
    server, one = shown({"Workers": 2}), shell()
    one.send("counters")
    if one.answer()[1].get("error") == "this server has no counters":
        pytest.skip("this build has no counters")
    return server, one


def test_counters(counting):
    """They are what a client has asked for."""
    server, one = counting

    def count():
        return sum(row["value"] for row in one.ask("counters requests") if row["counter"] == "requests")

    before = count()
    for _ in range(5):
        with server.connect() as client:
            assert client.ask("/hello.txt").status == 200
    await_true(lambda: count() == before + 5)
    assert not one.ask("counters nonsense")


def test_histograms(shown, shell):
    """Their buckets are for programs: END:NUMBER, with the microseconds behind the bucket."""
    server = shown(config={"plugins/status/status.conf": section("STATUS", {"Enabled": "On"})})
    one = shell()
    with server.connect() as client:
        for _ in range(5):
            client.ask("/hello.txt")

    def read():
        return next((row for row in one.ask("counters request_duration") if row["value"] == 5), None)

    buckets = [bucket.split(":") for bucket in await_true(read)["_buckets"].split()]
    assert sum(int(number) for _, number in buckets) == 5 and all(int(end) > 0 for end, _ in buckets)


def test_top_counts_requests(counting, path):
    server, _ = counting
    top = subprocess.Popen(
        [build.binary(), "shell", "-s", path, "top", "0.2"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=build.environment(),
        text=True,
    )
    with server.connect() as client:
        while not (found := re.match(r"(\d+) requests/s, 1 connections", top.stdout.readline())) or found[1] == "0":
            assert client.ask("/hello.txt").status == 200
    top.kill()
    top.wait()


# ── traces ──


def test_trace(shown, shell):
    server = shown({"Workers": 2})
    with server.connect() as client, server.connect() as other:
        client.ask("/hello.txt")
        other.ask("/hello.txt")
        one = shell()
        port = client.sock.getsockname()[1]
        number = next(r["id"] for r in one.ask("connections") if r["port"] == port)
        one.send(f"trace {number}")
        assert one.read() == {"begin": "trace", "view": "stream"}
        now = one.read()  # the trace is on
        assert (now["id"], now["before"], now["after"], now["requests"]) == (number, "", "idle", 1)
        other.ask("/hello.txt")
        client.send(b"GET /hello")
        first = one.read()
        assert (first["id"], first["before"], first["after"]) == (number, "idle", "read_head")
        client.close()
        assert one.read()["after"] == "closed"
        one.send("")
        assert one.answer() == ([], {"end": True, "ok": True})
        assert other.ask("/hello.txt").status == 200


@pytest.mark.concurrent
@pytest.mark.parametrize("way", ["plain", "tls", "h2"])
def test_trace_a_client(shown, shown_secure, shell, way):
    """Connections that are accepted later are traced, too, in all workers."""
    server = (shown_secure if way == "tls" else shown)({"Workers": 3})
    options = {"plain": {}, "h2": {"kind": H2Client}, "tls": {"kind": TlsClient}}[way]
    if way == "tls":
        options["context"] = server.ca.context()
    one = shell()
    one.send("trace peer=127.0.0.1")
    assert one.read()["view"] == "stream"
    await_true(lambda: len(shell().ask("workers")) == 3)
    for _ in range(9):
        with server.connect(**options) as client:
            client.ask("/hello.txt")
    closed = set()
    while len(closed) < 9:
        row = one.read()
        assert row["peer"] == "127.0.0.1"
        if row["after"] == "closed":
            closed.add(row["id"])
    one.send("")
    assert one.answer()[1]["ok"]


def test_trace_has_the_time_of_day(shown, shell):
    server = shown()
    with server.connect() as client:
        client.ask("/hello.txt")
        before, one = time.time(), shell()
        one.send("trace peer=127.0.0.1")
        assert one.read()["view"] == "stream"
        row = one.read()
        assert before - 1 < row["time_unix_us"] / 1e6 < time.time() + 1 and row["time_us"] > 0


def test_a_trace_ends_with_its_shell(shown, shell):
    server = shown({"Workers": 2})
    one = shell()
    one.send("trace peer=127.0.0.1")
    one.read()
    one.close()
    other = shell()
    for _ in range(5):
        with server.connect() as client:
            client.ask("/hello.txt")
    assert other.ask("status")


# ── explain ──

RULES = """[HOST]
    ServerName localhost
    DocumentRoot {root}
[REWRITE]
    Match =/old.txt
    To /hello.txt
[REDIRECT]
    Match /moved
    To https://example.org/new
    Status 308
[RULES]
    Name secret
    Match /secret
    Action deny 403
[RULES]
    Name office
    Match /office
    Network 192.0.2.0/24
    Action deny 403
[CLIENT_LIMITS]
    Name slow
    Match /slow
    Rate 10/s
[AUTH]
    Match /login
    Type Basic
    Realm staff
    Users ../users
[HEADERS]
    Set X-Test yes
[LIMITS]
    Match /slow
    MaxBodySize 4K
[MAINTENANCE]
    Match /broken
    FlagFile {flag}
[LOGGER]
    AccessLog {flag}.log
[CORS]
    Match /api
    Origins https://app.example.org
[COMPRESS]
    Match /hello.txt
[DIRLISTING]
    Match /sub
[RESPOND]
    Match /gone
    When method GET
    Status 410
    Text gone
"""


@pytest.fixture
def explained(shown, shell, site_root, tmp_path):
    flag = tmp_path / "flag"
    flag.touch()
    users = "ada:$apr1$aaaaaaaa$hbGCGMnYVWzGlvLUoDPnr0\n"
    files = {"sites/default": RULES.format(root=site_root, flag=flag), "users": users}
    server = shown(config=files)
    server.baseline += 1  # the access log, which a thread opens
    one = shell()

    def ask(line):
        return one.ask(f"explain {line}")

    ask.server = server
    return ask


def find(rows, plugin, effect):
    return [row for row in rows if row["plugin"] == plugin and row["effect"] == effect]


@pytest.mark.parametrize(
    "line, plugin, effect, what, line_number",
    [
        ("GET /moved/x", "redirect", "answers", "[REDIRECT] with 308 to https://example.org/new", 7),
        ("GET /old.txt", "redirect", "note", "[REWRITE] makes the path /hello.txt", 4),
        ("GET /secret/x", "mandril", "answers", '[RULES] "secret": deny 403', 11),
        ("GET /office client=192.0.2.7", "mandril", "answers", '[RULES] "office": deny 403', 15),
        ("GET /office", "mandril", "maybe", '[RULES] "office": deny 403', 15),
        ("GET /slow", "mandril", "maybe", '[CLIENT_LIMITS] "slow": 429 above 10 requests in 1 s', 20),
        ("GET /login", "auth", "answers", '[AUTH] "staff" asks for a name and a password', 24),
        ('GET /login "Authorization: Basic YTpi"', "auth", "maybe", "asks for a name and a password", 24),
        ("GET /", "headers", "note", "[HEADERS] sets X-Test: yes", 29),
        ("GET /broken", "maintenance", "answers", "[MAINTENANCE]: 503 while", 34),
        ("GET /", "logger", "note", "[LOGGER] writes a line to the access log", 37),
        ('GET /api "Origin: https://app.example.org"', "cors", "note", "[CORS] allows the origin", 39),
        ('GET /api "Origin: https://evil.test"', "cors", "note", "[CORS] does not allow the origin", 39),
        (
            'OPTIONS /api "Origin: https://app.example.org" "Access-Control-Request-Method: GET"',
            "cors",
            "answers",
            "[CORS] answers the preflight request of https://app.example.org with 204",
            39,
        ),
        (
            'OPTIONS /api "Origin: https://APP.example.org" "Access-Control-Request-Method: GET"',
            "cors",
            "answers",
            "with 403: it does not allow this origin",
            39,
        ),
        ('GET /api "Origin: https://APP.example.org"', "cors", "note", "[CORS] does not allow the origin", 39),
        ('GET /hello.txt "Accept-Encoding: br"', "compress", "maybe", "[COMPRESS] compresses the response", 42),
        ("GET /hello.txt", "compress", "note", "the request has no Accept-Encoding", 42),
        ("GET /sub/", "dirlisting", "maybe", "[DIRLISTING] lists the folder", 44),
        ("GET /gone/x", "respond", "answers", "[RESPOND] answers with 410 and its Text", 46),
        ("POST /hello.txt", "static", "answers", "405", None),
        ("GET /.hidden", "static", "answers", "404: hidden", None),
    ],
)
def test_explain(explained, line, plugin, effect, what, line_number):
    rows = [row for row in find(explained(line), plugin, effect) if what in row["what"]]
    assert rows, explained(line)
    assert line_number is None or rows[0]["place"].endswith(f"sites/default:{line_number}"), rows[0]


def test_explain_limits_host_and_file(explained, site_root):
    rows = explained("GET http://localhost/slow")
    (limits,) = [row for row in rows if row["phase"] == "limits"]
    assert "[LIMITS] holds: MaxBodySize 4096 bytes" in limits["what"] and limits["place"].endswith(":31")
    (host,) = [row for row in rows if row["phase"] == "host"]
    assert host["what"] == "the host localhost serves the name localhost"
    (file,) = [row for row in explained("GET /old.txt") if row["phase"] == "file"]
    size = (site_root / "hello.txt").stat().st_size
    assert file["what"] == f"the file {site_root.resolve()}/hello.txt with {size} bytes"
    (file,) = [row for row in explained("GET /nothing") if row["phase"] == "file"]
    assert "there is no file" in file["what"]
    assert not [row for row in explained("GET /secret") if row["phase"] in ("content", "file")]


GATEWAY = """[HOST]
    ServerName localhost
    DocumentRoot {root}
    SymLink {mode}
    Indexfile index.php index.html
    {tries}
{section}
"""
PHP = "[FASTCGI]\n    To 127.0.0.1:1\n"
WORDPRESS = PHP + "    TryFiles $path $path/index.php /index.php\n"


@pytest.mark.parametrize("target, mode, tries, text, what", [
    ("/page.txt", "Off", "", WORDPRESS, "the file {root}/page.txt with 5 bytes"),
    ("/a/post", "Off", "", WORDPRESS, 'the script {root}/index.php is run as /index.php, with the PATH_INFO ""'),
    ("/sub/x.php/y", "Off", "", WORDPRESS, 'script {root}/sub/x.php is run as /sub/x.php, with the PATH_INFO "/y"'),
    ("/sub/", "Off", "", WORDPRESS, "the script {root}/sub/index.php is run as /sub/index.php"),
    ("/sub", "Off", "", WORDPRESS, "a redirect to the path with a slash, for the script of the folder"),
    ("/link.php", "On", "", WORDPRESS, "the script {root}/sub/x.php is run as /link.php"),
    ("/link.php", "Off", "", PHP, "404: there is no script for the path"),
    ("/none.php", "Off", "", PHP, "404: there is no script for the path"),
    ("/none", "Off", "", PHP + "    TryFiles $path =410\n", "410: there is no script for the path"),
    ("/", "Off", "", PHP + "    Match *.php\n", "the index is a program: the plugin that takes /index.php runs it"),
    ("/link.txt", "On", "", "", "the file {root}/page.txt with 5 bytes"),
    ("/link.txt", "Off", "", "", "404: {root}/link.txt is a link to page.txt, which SymLink Off does not follow"),
    ("/folder/a.txt", "Off", "", "", "404: {root}/folder is a link to sub, which SymLink Off does not follow"),
    ("/out.txt", "Inside", "", "", "404: {root}/out.txt is a link to /etc/passwd, which SymLink Inside does not"),
    ("/dangling", "On", "", "", "404: {root}/dangling is a link to nowhere, where there is nothing"),
    ("/none", "Off", "TryFiles $path /page.txt", "", "the file {root}/page.txt with 5 bytes"),
    ("/page", "Off", "TryFiles $path $path.txt =404", "", "the file {root}/page.txt with 5 bytes"),
    ("/none", "Off", "TryFiles $path =404", "", "404: no name of TryFiles is there"),
    ("/deep", "Off", "", "", "a redirect to the path with a slash"),
    ("/deep/", "Off", "", "", "the folder {root}/deep has no index"),
])  # fmt: skip
def test_explain_what_is_on_the_disk(shown, shell, tmp_path, target, mode, tries, text, what):
    """Links, and TryFiles of hosts and gateways, are followed to what is sent or run."""
    if text and not (build.PLUGINS / "fastcgi.so").exists():
        pytest.skip(f"the preset {build.PRESET} has no fastcgi")
    names = ("index.php", "sub/index.php", "sub/x.php", "sub/a.txt", "deep/a")
    root = populate(tmp_path / "www", {"page.txt": b"page\n", **dict.fromkeys(names, b"")})
    links = {"link.txt": "page.txt", "link.php": "sub/x.php", "folder": "sub", "dangling": "nowhere"}
    for name, to in {**links, "out.txt": "/etc/passwd"}.items():
        (root / name).symlink_to(to)
    shown(config={"sites/default": GATEWAY.format(root=root, mode=mode, tries=tries, section=text)})
    (file,) = [row for row in shell().ask(f"explain GET {target}") if row["phase"] == "file"]
    assert what.format(root=root) in file["what"]


CGI = """[CGI]
    Match *.cgi
    Interpreter .py /bin/sh
[CGI]
    Match /below
    Root {root}/scripts
[CGI]
    Match /one
    Script {root}/scripts/run
"""


@pytest.mark.parametrize("target, what", [
    ("GET /a.cgi", "the script {root}/a.cgi"),
    ("POST /a.cgi", "the script {root}/a.cgi"),
    ("GET /a.cgi/c.cgi", "the script {root}/a.cgi, with PATH_INFO /c.cgi"),
    ("GET /a.py/c.cgi", "the script {root}/a.py, run by /bin/sh, with PATH_INFO /c.cgi"),
    ("GET /no.cgi", "404: there is no script: No such file or directory"),
    ("GET /~ada/a.cgi", "404: there is no script: No such file or directory"),
    ("GET /plain.cgi", "403: the server's user may not execute the script {root}/plain.cgi"),
    ("GET /below/run/x", "the script {root}/scripts/run, with PATH_INFO /x"),
    ("GET /below", "404: there is no script: Is a directory"),
    ("GET /below/none", "404: there is no script: No such file or directory"),
    ("GET /one/x", "the script {root}/scripts/run, with PATH_INFO /x"),
    ("GET /folder/", "the index is a program: the plugin that takes /folder/index.cgi runs it"),
])  # fmt: skip
def test_explain_names_the_script(shown, shell, tmp_path, target, what):
    if not (build.PLUGINS / "cgi.so").exists():
        pytest.skip(f"the preset {build.PRESET} has no cgi")
    root = populate(tmp_path / "www", dict.fromkeys(("plain.cgi", "a.py"), b""))
    write_scripts(root, dict.fromkeys(("a.cgi", "scripts/run", "folder/index.cgi"), "#!/bin/sh\n"))
    host = section("HOST", {"ServerName": "localhost", "DocumentRoot": root, "Indexfile": "index.cgi"})
    shown(config={"sites/default": host + CGI.format(root=root)})
    (file,) = [row for row in shell().ask(f"explain {target}") if row["phase"] == "file"]
    assert (file["what"], file["plugin"]) == (what.format(root=root), "static" if "index" in what else "cgi")


def test_explain_a_listener(shown_secure, shell):
    server = shown_secure()
    rows = shell().ask(f"explain GET https://localhost:{server.port}/hello.txt")
    assert rows[0]["what"] == "Listen 127.0.0.1:0, by the transport tls"


def test_explain_handlers_and_probes(shown, shell, site_root):
    """What monkey.conf says for all hosts, with its file and line."""
    host = section("HOST", {"ServerName": "localhost", "DocumentRoot": site_root})
    files = {
        "sites/default": host + section("HANDLERS", {"Match": ["/a static", "/b static"]}),
        "plugins/health/health.conf": section("HEALTH", {"LivenessPath": "/healthz"}),
    }
    shown(config=files)
    one = shell()
    (handler,) = [row for row in one.ask("explain GET /b/x") if row["phase"] == "handler"]
    assert handler["what"] == "only the plugin static is asked for the content"
    assert handler["place"].endswith("sites/default:6")
    (probe,) = find(one.ask("explain GET /healthz"), "health", "answers")
    assert probe["what"] == "[HEALTH] answers the liveness check" and probe["place"].endswith("health.conf:1")


SERVICE = (
    services.HEAD
    + """
static void show(duda_request_t *dr) { response->end(dr, NULL); }
int duda_main(void) { router->get("/users/:id", show); return 0; }
"""
)


@services.needs_duda
@pytest.mark.parametrize(
    "line, what",
    [
        ("GET /demo/users/7", "the service demo, by the route /users/:id"),
        ("POST /demo/users/7", "the service demo has no route for the method: it answers 404 or 405"),
        ("GET /demo/nothing", "the service demo has no route for the path: it answers 404 or 405"),
    ],
)
def test_explain_a_service(serve, path, shell, tmp_path, site_root, line, what):
    folder = tmp_path / "services"
    folder.mkdir()
    services.build_service(folder, "demo", SERVICE)
    cheetah = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
    serve(config=services.service_config(folder, ["demo"], site_root, files=cheetah))
    (found,) = find(shell().ask(f"explain {line}"), "duda", "answers")
    assert found["what"] == what and found["place"].split("/")[-1].startswith("default:")


def test_rules(explained, shell, path):
    """Their decisions are counted; explaining is none."""
    explained("GET /secret")
    one = Shell(path)
    assert [(row["hits"], row["rule"]) for row in one.ask("rules")] == [
        (0, '[RULES] "secret": deny 403'),
        (0, '[RULES] "office": deny 403'),
        (0, '[CLIENT_LIMITS] "slow"'),
    ]
    with explained.server.connect() as client:
        for _ in range(3):
            assert client.ask("/secret").status == 403
        for _ in range(30):
            client.ask("/slow")
    (row,) = one.ask("rules secret")
    assert row["hits"] == 3 and row["host"] == "localhost" and row["place"].endswith("sites/default:11")
    assert one.ask("rules slow")[0]["hits"] > 0
    one.close()


def test_long_answers_are_cut(shown, shell, site_root):
    """What cannot be sent in pieces has a limit, and says so; the connection continues."""
    host = section("HOST", {"ServerName": "localhost", "DocumentRoot": site_root})
    rules = "".join(f"[HEADERS]\n    Add X-{i} {'v' * 850}\n" for i in range(1050))
    shown(config={"sites/default": host + rules})
    one = shell(timeout=60)
    for line in ("explain GET /", "config localhost"):
        rows = one.ask(line)
        assert any("too long" in row.get("warning", "") for row in rows), line
        assert sum(len(json.dumps(row)) for row in rows) < 1100 * 1024
    assert one.ask("uptime")


def test_explain_agrees_with_requests(explained, shell, path):
    """What is explained happens; and explaining counts nothing and sends nothing."""
    one = Shell(path)
    before = one.ask("status")[0]["connections"]
    for _ in range(50):
        explained("GET /slow")
    assert one.ask("status")[0]["connections"] == before
    one.close()


# ── commands ──


def test_reload(shown, shell, tmp_path):
    server = shown({"Workers": 2})
    one = shell()
    server.baseline += RELOADED
    assert one.ask("reload")[-1]["text"] == "the new configuration is in use (generation 2)"
    assert [row["generation"] for row in one.ask("workers")] == [2, 2]
    conf = next(tmp_path.glob("server*/conf/sites/default"), None) or next(tmp_path.glob("**/sites/default"))
    before = conf.read_text()
    conf.write_text(before + "    Nonsense 1\n")
    one.send("reload")
    rows, end = one.answer()
    assert end["error"] == "the new configuration cannot be used, the old one stays"
    assert any("Nonsense" in row["text"] for row in rows)
    conf.write_text(before)
    with server.connect() as client:
        assert client.ask("/hello.txt").status == 200
        assert one.ask("reload")


@pytest.mark.concurrent
def test_commands_during_reloads(shown, shell):
    """Workers come and go while all of them are asked; the shell stays connected."""
    server = shown({"Workers": 4})
    server.baseline += RELOADED
    one, other = shell(), shell()
    for i in range(6):
        other.send("reload")
        for line in ("workers", "connections", "memory", "config", "explain GET /hello.txt", "trace 99"):
            one.send(line)
            rows, end = one.answer()
            assert end["ok"] or "no connection" in end["error"] or "reload" in end["error"], (line, end)
        assert other.answer()[1]["ok"], i
    with server.connect() as client:
        assert client.ask("/hello.txt").status == 200


def test_log_level(shown, shell):
    server = shown()
    one = shell()
    assert one.ask("log level") == [{"log_level": "info"}]
    assert one.ask("log level debug") == [{"log_level": "debug"}]
    with server.connect() as client:
        client.ask("/hello.txt")
    server.wait_log(r"debug connection \d+: new to idle")
    assert one.ask("log level warn") == [{"log_level": "warn"}]


def test_reopen(shown, shell, tmp_path):
    log = tmp_path / "error.log"
    server = shown({"ErrorLog": log}, wait=False)
    await_true(lambda: log.exists() and "serves with" in log.read_text(), 60)
    server.baseline = server.descriptors()
    log.rename(tmp_path / "error.log.1")
    assert shell().ask("reopen")
    await_true(log.exists)
    assert server.alive


def test_drain(shown, shell):
    server = shown({"ShutdownTimeout": "5s"})
    with server.connect() as client:
        client.ask("/hello.txt")
        assert "stops" in shell().ask("drain")[0]["text"]
        server.stopping = True
        assert server.wait() == 0


# ── bad input ──


def test_a_second_server(shown, path, tmp_path, site_root):
    """The path of a server that lives is named; that of a dead one is taken over."""
    first = shown()
    conf = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
    folder = write_config(tmp_path / "second", site_root, files=conf)
    done = run("-c", folder)
    assert done.returncode != 0
    assert f"another server (process {first.pid}) uses the socket {path}" in done.stderr
    assert run("-t", "-c", folder).returncode == 0  # a check does not touch it
    with Shell(path) as one:
        assert one.ask("uptime")
    first.kill()
    first.finished = True
    second = Server("-c", folder)
    with Shell(path) as one:
        assert one.ask("status")[0]["process"] == second.pid
    second.stop()
    assert not path.exists()


def test_a_path_that_is_no_socket(path, tmp_path, site_root):
    path.write_text("precious")
    conf = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
    done = run("-c", write_config(tmp_path / "conf", site_root, files=conf))
    assert done.returncode != 0 and f"{path} exists, and is not a socket" in done.stderr
    assert path.read_text() == "precious"


def test_what_is_at_the_new_path(shown, path):
    """The socket of a process that has died is replaced; anything else is left alone, and refused."""
    server = shown()
    server.baseline += RELOADED
    new = path.with_name("other.sock")
    new.write_text("precious")
    (server.conf / "plugins" / "cheetah" / "cheetah.conf").write_text(section("CHEETAH", {"Listen": new}))
    server.send_signal(signal.SIGHUP)
    server.wait_log(f"{re.escape(str(new))} exists, and is not a socket")
    assert new.read_text() == "precious"
    with Shell(path) as one:  # the old configuration stays
        assert one.ask("uptime")
    new.unlink()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(new))
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    with Shell(new) as one:
        assert one.ask("uptime")


def test_mode_of_the_socket(shown, path):
    shown()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_another_user(shown, open_folder):
    """The mode keeps others out; and so does the server, if the mode does not."""
    path = open_folder / "shell.sock"
    server = shown(cheetah={"Listen": path})
    script = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.settimeout(60); "
        f"s.connect('{path}'); print(s.makefile().readline())"
    )
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script]
    done = subprocess.run(as_nobody, capture_output=True, text=True, timeout=120)
    assert "PermissionError" in done.stderr, done
    path.chmod(0o666)
    done = subprocess.run(as_nobody, capture_output=True, text=True, timeout=120)
    assert "your user may not control this server (AllowedUsers)" in done.stdout, done
    server.wait_log(r"shell: refusing the shell of process \d+: user 65534")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_allowed_users(shown, open_folder):
    path = open_folder / "shell.sock"
    shown(cheetah={"AllowedUsers": "nobody", "Listen": path})
    path.chmod(0o666)
    script = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.settimeout(60); "
        f"s.connect('{path}'); s.sendall(b'uptime\\n'); print(s.makefile().readline())"
    )
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script]
    done = subprocess.run(as_nobody, capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout)["begin"] == "uptime"


def test_a_shell_that_stops_reading(shown, shell):
    """Its answer is held back, then its connection is closed; the server does not wait, and its memory stays."""
    server = shown({"Workers": 1}, cheetah={"Timeout": "300ms"})
    lazy = shell()
    lazy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with contextlib.suppress(BrokenPipeError):  # on a busy machine it is closed before all is sent
        for _ in range(100):
            lazy.send("config\nhelp\nplugins")
    with server.connect() as client:
        assert client.ask("/hello.txt").status == 200
    server.wait_log("shell: the shell of process .* does not read its answer: its connection is closed")
    assert shell().ask("status")[0]["workers_memory_bytes"] < 1024 * 1024


def test_too_many_shells(shown, shell):
    shown(cheetah={"MaxClients": 2})
    first, second = shell(), shell()
    assert first.ask("uptime") and second.ask("uptime")
    assert shell().answer()[1]["error"] == "too many shells are connected (MaxClients)"
    second.close()
    await_true(lambda: first.ask("uptime"))
    third = await_true(lambda: try_shell(shell))
    assert third.ask("uptime")


def try_shell(shell):
    """A shell that was accepted, or None."""
    one = shell()
    one.send("uptime")
    first = one.read()
    if first.get("end"):
        return None
    one.answer()
    return one


@build.needs_modules
def test_a_worker_that_does_not_answer(shown, shell, path):
    """It is named, and the others answer all the same."""
    server = shown({"Workers": 2}, config={"plugins/stall/stall.conf": ""})
    thread = min(server.find_threads("monkey: w1"))  # one that it has started has its name until it runs
    one = shell()
    assert len(one.ask("workers")) == 2
    # a thread that is stopped answers nothing: gdb is not needed, a traced thread stops alone
    with stopped_thread(thread):
        one.send("workers")
        rows, end = one.answer()
    assert end["ok"]
    assert [row["worker"] for row in rows if "worker" in row] == [0]
    assert {"warning": "worker 1 does not answer"} in rows
    assert len(one.ask("workers")) == 2


@contextlib.contextmanager
def stopped_thread(thread):
    """Stops one thread by ptrace(2), which also has it continue when the tracer ends."""
    script = (
        "import ctypes, sys, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.ptrace.argtypes = [ctypes.c_long] + [ctypes.c_void_p] * 3\n"
        "tid = int(sys.argv[1])\n"
        "if libc.ptrace(0x4206, tid, None, None) < 0 or libc.ptrace(0x4207, tid, None, None) < 0:\n"  # SEIZE, INTERRUPT
        "    print('refused', flush=True); sys.exit()\n"
        "os.waitpid(tid, 0x40000000)\n"  # __WALL
        "print('stopped', flush=True); sys.stdin.readline()\n"
    )
    tracer = subprocess.Popen(
        ["/usr/bin/python3", "-c", script, str(thread)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        if tracer.stdout.readline().strip() != "stopped":
            pytest.skip("this machine allows no ptrace(2)")
        yield
    finally:
        tracer.communicate("\n", timeout=60)


# ── the program ──


def test_one_shot(shown, path):
    server = shown()
    done = command(path, "status")
    assert done.returncode == 0 and re.search(rf"^process +{server.pid}$", done.stdout, re.M)
    assert "\033" not in done.stdout
    done = command(path, "status", "--json")
    assert json.loads(done.stdout)["process"] == server.pid
    done = command(path, "--json", "workers")
    assert json.loads(done.stdout)["worker"] == 0
    done = command(path, "workers")
    assert done.stdout.splitlines()[0].split()[:3] == ["WORKER", "CONNECTIONS", "STATE"]
    with server.connect() as client:
        client.ask("/hello.txt")
        done = command(path, "connections", "sort=age", "state=idle")
        assert done.returncode == 0 and "127.0.0.1" in done.stdout
        done = command(path, "explain", "GET", "/hello.txt", "X-Name: a value")
        assert done.returncode == 0 and "hello.txt" in done.stdout


def test_socket_of_the_environment(shown, path):
    server = shown()
    done = run("shell", "status", "--json", env={**build.environment(), "MONKEY_SHELL_SOCKET": str(path)})
    assert json.loads(done.stdout)["process"] == server.pid


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_a_socket_of_another_user(open_folder):
    """The shell does not talk to what another user has put where it looks; unless it is told to."""
    folder = open_folder
    path = folder / "monkey-shell.sock"
    script = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); "
        f"s.bind('{path}'); os.chmod('{path}', 0o666); s.listen(); print('on', flush=True); sys.stdin.read()"
    )
    folder.chmod(0o777)
    as_daemon = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups", "/usr/bin/python3", "-c", script]
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", build.for_others()]
    shell = build.for_others().parents[1] / "lib" / "monkey" / "monkey-shell"
    if not shell.exists():
        shutil.copy(build.PLUGINS / "monkey-shell", shell)
    with subprocess.Popen(as_daemon, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "on\n"
        env = {**build.environment(), "XDG_RUNTIME_DIR": str(folder)}
        done = subprocess.run([*as_nobody, "shell", "status"], capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 2 and "It belongs to a server of another user" in done.stderr, done
        other.communicate("")


def test_exit_codes(shown, path, tmp_path):
    shown()
    done = command(path, "konnections")
    assert (done.returncode, done.stdout) == (1, "") and "did you mean connections?" in done.stderr
    done = command(tmp_path / "nothing.sock", "status")
    assert done.returncode == 2 and "cannot connect to" in done.stderr and "[CHEETAH]" in done.stderr
    assert command(path, "--colour").returncode == 2
    assert command(path, "--help").returncode == 0


def test_commands_from_a_pipe(shown, path):
    shown()
    done = command(path, input="uptime\nhelp trace\n")
    assert done.returncode == 0 and "uptime" in done.stdout and "trace" in done.stdout
    done = command(path, input="nonsense\nuptime\n")
    assert done.returncode == 1 and "uptime" not in done.stdout


def test_a_folder_of_that_name(tmp_path):
    """The word is a command; the folder has a slash."""
    (tmp_path / "shell").mkdir()
    (tmp_path / "shell" / "a.txt").write_text("a file")
    done = run("shell", "-s", tmp_path / "x.sock", "status", cwd=tmp_path)
    assert done.returncode == 2 and "cannot connect" in done.stderr
    server = Server("-p", "0", "-l", "127.0.0.1", "./shell", cwd=tmp_path)
    with server.connect() as client:
        assert client.ask("/a.txt").body == b"a file"
    server.stop()


@pytest.mark.parametrize(
    "target, shown_as, as_json",
    [("/%1b%5b31m", "/\\x1b[31m", "/\\u001b[31m"), ("/%c2%9b31m", "/\\x9b31m", "/\\u009b31m")],
    ids=["C0", "C1"],
)
def test_escape_sequences_of_clients(shown, path, target, shown_as, as_json):
    """What a client sends reaches no terminal as it is."""
    server = shown()
    with server.connect() as client:
        client.send(request(target, "Content-Length: 10", method="POST"))
        done = await_true(lambda: (d := command(path, "connections", "state=read_body")).stdout and d)
        assert "\033" not in done.stdout and "\x9b" not in done.stdout and shown_as in done.stdout
        done = command(path, "--json", "connections", "state=read_body")
        assert "\033" not in done.stdout and "\x9b" not in done.stdout and as_json in done.stdout


@pytest.fixture
def terminal(path, tmp_path):
    """Opens monkey shell with these words on a pseudo terminal; `home` is the folder of its history."""
    with contextlib.ExitStack() as stack:

        def start(*words, columns=80, rows=24, home=tmp_path, **env):
            env = {**os.environ, **build.environment(), "TERM": "xterm", "LC_ALL": "C.UTF-8", **env}
            argv = [build.binary(), "shell", "-s", path, *words]
            return stack.enter_context(Terminal(argv, {**env, "XDG_STATE_HOME": str(home)}, columns, rows))

        yield start


def test_terminal(shown, terminal, path):
    """Editing, completion, colours, history; the end by Control-D."""
    server = shown()
    with server.connect() as client:
        client.ask("/hello.txt")
        terminal = terminal()
        terminal.wait("monkey> ")
        terminal.type("upt\t")
        terminal.wait("ime")
        terminal.type("\r")
        terminal.wait(r"\033\[1muptime\033\[0m +\d+ s")
        terminal.wait("monkey> ")
        terminal.type("hlep\b\b\belp trace\r")  # backspace edits
        terminal.wait(r"COMMAND.*\n.*trace")
        terminal.wait("monkey> ")
        number = json.loads(command(path, "connections", "--json").stdout)["id"]
        terminal.type("trace \t\t")  # several are possible: they are listed
        terminal.wait(rf"\b{number}\b")
        terminal.type("\x15nonsense\r")
        terminal.wait("there is no command nonsense")
        terminal.wait("monkey> ")
        terminal.type("\x1b[A\r")  # the line before
        terminal.wait("there is no command nonsense")
        terminal.wait("monkey> ")
        assert terminal.end("quit\r") == 0


def test_history(shown, terminal, tmp_path):
    shown()
    home = tmp_path / "state"
    home.mkdir()
    first = terminal(home=home)
    first.wait("monkey> ")
    first.type("plugins\r")
    first.wait("cheetah")
    first.wait("monkey> ")
    assert first.end("\x04") == 0
    history = home / "monkey" / "shell_history"
    assert "plugins" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600 and history.parent.stat().st_mode & 0o777 == 0o700
    second = terminal(home=home)
    second.wait("monkey> ")
    second.type("\x1b[A\r")
    second.wait("SUMMARY")


def ask_hostile(path, answers, *words):
    """What the shell prints of answers that a server sends as they are, without escapes."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve():
            client = listener.accept()[0]
            with client, client.makefile("rb") as lines:
                lines.readline()
                for answer in answers:
                    client.sendall(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
                lines.readline()

        thread = threading.Thread(target=serve)
        thread.start()
        done = command(path, *words)
        thread.join(30)
    return done


def test_errors_of_a_hostile_server(path):
    """What a terminal would obey is shown, not sent."""
    done = ask_hostile(path, [{"end": True, "ok": False, "error": "\x9b31m\x7f\x1b[31m\u202e"}], "status")
    assert done.returncode == 1 and done.stderr == "\\x9b31m\\x7f\\x1b[31m\\u{202e}\n"


def test_json_of_a_hostile_server(path):
    """The same for --json; it stays JSON."""
    row = {"path": "\x9b31m\x7f\u202e é"}
    done = ask_hostile(path, [row, {"end": True, "ok": True}], "connections", "--json")
    assert done.stdout == '{"path": "\\u009b31m\\u007f\\u202e é"}\n' and json.loads(done.stdout) == row


# ── for people: tables and the live view on a terminal ──

HOSTILE = "/%1b%5b31m%0a%c2%9b31m%e2%80%ae"  # escape sequences, a new line, CSI in one character, right to left
HARMLESS = "/\\x1b[31m\\x0a\\x9b31m\\u{202e}"


@pytest.fixture
def watched(shown, site_root):
    """A server with two hosts that measures durations, and a client whose request is under way on the second one."""
    other = section("HOST", {"ServerName": "www.example.org", "DocumentRoot": site_root})
    config = {"sites/other": other, "plugins/status/status.conf": section("STATUS", {"Enabled": "On"})}
    server = shown({"Workers": 2}, config=config)
    with server.connect() as client:
        client.send(request(HOSTILE, "Content-Length: 10", method="POST", host="www.example.org"))
        yield server


def ask_until(server, terminal, holds):
    """Asks for a file in a loop, until the screen is as wanted."""
    with server.connect() as client:

        def ask(screen):
            assert client.ask("/hello.txt").status == 200
            return holds(screen)

        return terminal.wait_screen(ask)


def is_restored(terminal):
    modes = terminal.screen.modes
    flags = termios.tcgetattr(terminal.fd)[3]
    edits = flags & termios.ICANON and flags & termios.ECHO and flags & termios.ISIG
    return edits and modes == {"wraps": True, "cursor": True, "alternate": False}


def end_of(terminal, text=""):
    """Ends it, and returns its code with what it wrote behind the last screen."""
    code = terminal.end(text)
    shown, _, behind = terminal.seen.rpartition("\x1b[?1049l")
    terminal.screen.feed(shown + "\x1b[?1049l")
    assert is_restored(terminal)
    return code, behind


@pytest.mark.parametrize("columns, rows", [(80, 24), (132, 40), (40, 20)])
def test_top_on_a_terminal(watched, terminal, columns, rows):
    """Rates, latency, hosts and paths; what a client has sent is escaped. The harness checks that all lines fit."""
    top = terminal("top", "0.2", columns=columns, rows=rows)
    row = ask_until(watched, top, lambda screen: re.search(r"^ localhost +[1-9].*100%", screen.text(), re.M))
    screen = top.screen
    assert screen.modes == {"wraps": False, "cursor": False, "alternate": True}
    assert re.search(r"^ Requests +[\d.,]+/s", screen.text(), re.M)
    assert re.search(r"^ Sent +[\d.]+ K?B/s", screen.text(), re.M)
    assert screen.lines()[-1].startswith(" q ends")
    if columns >= 80:
        assert re.search(r"^ Latency +p50 [\d.]+ ms +p99 [\d.]+ ms$", screen.text(), re.M)
        assert re.search(r"^ Errors +0.0%  2xx 100.0%$", screen.text(), re.M)
        assert re.search(r"^ Connections +2  .*read_body 1", screen.text(), re.M)
        assert re.search(r"[\d.]+ K?B +[\d.]+ ms +[\d.]+ ms  █+ ", row[0])
        top.wait_screen(lambda screen: " POST    www.example.org" in screen.text() and HARMLESS[:20] in screen.text())
    if columns >= 132:
        assert HARMLESS in screen.text()
    assert end_of(top, "q") == (0, "")


def test_top_within_the_shell(watched, terminal):
    one = terminal()
    one.wait("monkey> ")
    one.type("top 0.2\r")
    one.wait(r"(?s)Requests.*q ends")
    one.type("q")
    one.wait("monkey> ")
    one.type("uptime\r")
    one.wait(r"uptime\033\[0m +\d+ s")
    assert one.end("quit\r") == 0


@pytest.mark.parametrize("key", ["q", "\r", "\x03", "\x04"])
def test_keys_that_end_top(watched, terminal, key):
    top = terminal("top")
    top.wait_screen(lambda screen: "q ends" in screen.text())
    assert end_of(top, key) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_signals_that_end_top(watched, terminal, number):
    top = terminal("top")
    top.wait_screen(lambda screen: "q ends" in screen.text())
    os.kill(top.pid, number)
    assert end_of(top) == (-number, "")


def test_top_of_a_server_that_stops(shown, terminal):
    server = shown()
    top = terminal("top", "0.2")
    top.wait_screen(lambda screen: "q ends" in screen.text())
    server.stop()
    code, said = end_of(top)
    assert code == 2 and "the connection to the server is lost" in said


def test_top_of_a_server_that_does_not_answer(shown, terminal):
    """The screen tells it, and keys work."""
    server = shown()
    top = terminal("top", "0.2")
    top.wait_screen(lambda screen: "q ends" in screen.text())
    server.send_signal(signal.SIGSTOP)
    try:
        top.wait_screen(lambda screen: "NO ANSWER FOR" in screen.text())
        code, said = end_of(top, "q")
    finally:
        server.send_signal(signal.SIGCONT)
    assert code == 2 and "the server does not answer" in said


@build.needs_modules
def test_top_with_a_worker_that_does_not_answer(shown, terminal):
    """It is named, and the figures of the others are shown."""
    server = shown({"Workers": 2}, config={"plugins/stall/stall.conf": ""})
    thread = min(server.find_threads("monkey: w1"))  # one that it has started has its name until it runs
    top = terminal("top", "0.2")
    top.wait_screen(lambda screen: re.search(r"^ Workers +2", screen.text(), re.M))
    with stopped_thread(thread):
        top.wait_screen(lambda screen: screen.lines()[-1].endswith("worker 1 does not answer"))
        assert re.search(r"^ Workers +1", top.screen.text(), re.M) and "NO ANSWER" not in top.screen.text()
    top.wait_screen(lambda screen: re.search(r"^ Workers +2", screen.text(), re.M))
    assert end_of(top, "q") == (0, "")


def test_top_fits_another_size(watched, terminal):
    top = terminal("top", "3600")
    top.wait_screen(lambda screen: "q ends" in screen.lines()[23])
    for columns, rows in ((132, 40), (50, 10)):
        top.resize(columns, rows)
        top.wait_screen(lambda screen, last=rows - 1: "q ends" in screen.lines()[last])
    assert end_of(top, "q") == (0, "")


def test_top_without_colours(watched, terminal):
    top = terminal("top", "0.2", NO_COLOR="1")
    ask_until(watched, top, lambda screen: re.search(r"^ localhost +[1-9]", screen.text(), re.M))
    assert not any(style for row in top.screen.cells for _, style in row)
    assert end_of(top, "q") == (0, "")


def test_top_in_ascii(watched, terminal):
    top = terminal("top", "0.2", LC_ALL="C")
    row = ask_until(watched, top, lambda screen: re.search(r"^ localhost +[1-9].*100%", screen.text(), re.M))
    assert "  |||||||| 100%" in row[0] and top.screen.text().isascii()


def test_top_on_a_simple_terminal(watched, terminal):
    """One that knows no escape sequences gets lines."""
    top = terminal("top", "0.2", TERM="dumb")
    for _ in range(3):
        top.wait(r"\d+ requests/s, \d+ connections, \d+ requests under way, sent [\d.]+ K?B/s, received .*serving\r\n")
    assert "\x1b" not in top.seen
    os.write(top.fd, b"\n")
    assert top.end() == 0


def test_top_for_programs(watched, path):
    argv = [build.binary(), "shell", "-s", path, "--json", "top", "0.2"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=build.environment()) as top:
        with watched.connect() as client:
            while (row := json.loads(top.stdout.readline()))["requests_per_s"] == 0:
                client.ask("/hello.txt")
        top.kill()
    assert row["connections"] == 2 and row["p99_us"] >= row["p50_us"] > 0 and row["sent_bytes_per_s"] > 0


def test_connections_on_a_terminal(watched, terminal, path):
    """Units, colours, the width of the terminal; elsewhere the whole table."""
    with watched.connect() as client:
        client.ask("/hello.txt")
        whole = command(path, "connections").stdout
        assert HARMLESS in whole and "TRANSPORT" in whole and re.search(r" \d+s ", whole)
        for columns in (80, 132):
            one = terminal("connections", columns=columns)
            assert one.end() == 0
            lines = re.sub(r"\x1b\[\d+m", "", one.seen).splitlines()
            assert len(lines) == 3 and max(map(len, lines)) <= columns and "TRANSPORT" not in lines[0]
            assert re.search(r"\x1b\[36mread_body\x1b\[0m +\d+ s .* POST +www.example.org +/\\x1b\[31m", one.seen)
            assert re.search(r"\x1b\[2midle\x1b\[0m +\d+ s .*\d B", one.seen)
        plain = terminal("connections", NO_COLOR="1")
        assert plain.end() == 0 and "\x1b" not in plain.seen and "read_body" in plain.seen


def test_trace_in_local_time(watched, terminal):
    """For people in local time."""
    people = terminal("trace", "peer=127.0.0.1", TZ="UTC")
    people.wait(r"TIME +ID +WORKER +PEER +BEFORE +AFTER")
    clock = people.wait(r"(\d\d):(\d\d):(\d\d)\.\d{3} .*read_body")
    seconds = sum(int(n) * unit for n, unit in zip(clock.groups(), (3600, 60, 1)))
    assert (time.time() - seconds) % 86400 < 60
    with watched.connect() as client:
        client.ask("/hello.txt")
        people.wait(r"\d\d\.\d{3} .*\x1b\[2midle")
    os.write(people.fd, b"\n")
    assert people.end() == 0


# ── reloads of the section itself, upgrades ──


def test_the_path_changes(shown, shell, path, tmp_path):
    server = shown()
    one = shell()
    assert one.ask("uptime")
    server.baseline += RELOADED
    conf = next(tmp_path.glob("**/cheetah.conf"))
    other = tmp_path / "other.sock"
    conf.write_text(section("CHEETAH", {"Listen": other}))
    one.send("reload")
    assert one.answer()[1]["ok"]  # the shell that is connected continues
    with Shell(other) as two:
        assert two.ask("status")[0]["generation"] == 2
    await_true(lambda: not path.exists())
    assert one.ask("uptime") and server.alive


def process_of(path):
    """The process that answers at the socket."""
    with Shell(path) as one:
        return one.ask("status")[0]["process"]


def process_after(path, before):
    """The process that has taken the place of another; None as long as that one answers, or ends with the shell."""
    with contextlib.suppress(ConnectionError, AssertionError):
        now = process_of(path)
        return now if now != before else None


def upgrade(server):
    """The process that serves instead."""
    server.send_signal(signal.SIGUSR2)
    return int(server.wait_log(r"upgrade: process (\d+) serves")[-1][1])


def end(pid):
    os.kill(pid, signal.SIGTERM)
    await_true(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 60, "the end")


@pytest.mark.parametrize("place", ["nothing", "a dead socket"])
def test_an_upgrade_where_the_path_is_gone(shown, path, place):
    """The next process opens it again."""
    server = shown()
    path.unlink()
    if place == "a dead socket":
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    now = upgrade(server)
    try:
        assert await_true(lambda: process_after(path, None), 30) == now
        await_true(lambda: not server.alive, 60, "the end of the former process")
        assert process_of(path) == now
    finally:
        end(now)
    server.wait()  # its log ends with the last process that has it
    assert not path.exists()


def test_an_upgrade_where_the_path_is_of_another_server(shown, path):
    """It fails, and takes nothing away; the other server keeps the path to its end."""
    server = shown()
    path.unlink()
    other = shown()
    server.send_signal(signal.SIGUSR2)
    server.wait_log(rf"another server \(process {other.pid}\) uses the socket")
    server.wait_log("keeps serving")
    assert process_of(path) == other.pid
    server.stop()
    assert process_of(path) == other.pid


@pytest.mark.parametrize("user", [None, "nobody"])
@pytest.mark.parametrize("kind", ["foreground", "background", "supervised"])
def test_upgrades(open_folder, kind, user):
    """The socket is passed on, also by a user that could not open it again; one that fails takes nothing away."""
    if user and os.geteuid() != 0:
        pytest.skip("needs root")
    place, pid_file, log = open_folder / "run", open_folder / "run" / "pid", open_folder / "error.log"
    place.mkdir(mode=0o755)
    path = place / "shell.sock"
    settings = {"PidFile": pid_file, "ErrorLog": log, "User": user, "Workers": 17}  # and as many sockets of Listen
    settings["Supervisor"] = "On" if kind == "supervised" else "Off"
    conf = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
    folder = write_config(open_folder / "conf", open_folder, settings, files=conf)
    main = subprocess.Popen(
        [build.for_others(), "-c", folder, *(["-D"] if kind == "background" else [])],
        env=build.environment(),
        stderr=subprocess.DEVNULL,
    )
    if kind == "background":
        assert main.wait(60) == 0
    await_true(path.exists, 60)
    now = await_true(lambda: process_after(path, None), 60)
    try:
        text = (folder / "sites" / "default").read_text()
        (folder / "sites" / "default").write_text(text + "    Nonsense 1\n")
        os.kill(main.pid if kind == "supervised" else now, signal.SIGUSR2)
        await_true(lambda: "keeps serving" in log.read_text(), 60)
        assert process_of(path) == now
        (folder / "sites" / "default").write_text(text)
        for _ in range(2):
            before = now
            os.kill(main.pid if kind == "supervised" else before, signal.SIGUSR2)
            now = await_true(lambda was=before: process_after(path, was), 60)
            await_true(lambda was=before: not is_alive(was), 60, log.read_text())
            assert process_of(path) == now
    finally:
        os.kill(main.pid if kind == "supervised" else now, signal.SIGTERM)
        await_true(lambda: not is_alive(now), 60)
        if kind != "background":
            main.wait(60)
    with pytest.raises(ConnectionRefusedError if user else FileNotFoundError):
        Shell(path)


def test_under_a_supervisor(path, tmp_path, site_root):
    """The socket of a server that was killed is taken over by the next one; reload, upgrade and drain work."""
    conf = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
    user = {"User": "nobody"} if os.geteuid() == 0 else {}
    folder = write_config(tmp_path / "conf", site_root, user, files=conf)
    server = Server("-c", folder, "--supervise")
    serves = r"supervisor: process (\d+) serves"
    first = int(server.wait_log(serves)[0][1])
    assert process_of(path) == first
    os.kill(first, signal.SIGKILL)
    second = int(server.wait_log(serves, 2)[1][1])
    assert process_of(path) == second
    server.send_signal(signal.SIGUSR2)
    third = int(server.wait_log(serves, 3)[2][1])
    await_true(lambda: not is_alive(second))
    assert process_of(path) == third
    with Shell(path) as one:
        assert one.ask("drain")
    server.stopping = True
    assert server.wait() == 0


# ── rights that a reload takes away ──

NOBODY = 65534
CONNECT = """
import socket, sys
shell = socket.socket(socket.AF_UNIX)
shell.connect(sys.argv[1])
socket.send_fds(socket.socket(fileno=int(sys.argv[2])), [b"."], [shell.fileno()])
"""


class PassedShell(Shell):
    """A shell that another user has connected."""

    def __init__(self, path, uid):
        here, there = socket.socketpair()
        with here, there:
            subprocess.run(
                ["/usr/bin/python3", "-c", CONNECT, path, str(there.fileno())],
                pass_fds=[there.fileno()],
                user=uid,
                group=uid,
                extra_groups=[],
                cwd="/",
                timeout=120,
                check=True,
            )
            fd = socket.recv_fds(here, 1, 1)[1][0]
        self.socket = socket.socket(fileno=fd)
        self.socket.settimeout(60)
        self.file = self.socket.makefile("rb")

    def expelled(self):
        """The sentence that it gets last."""
        rows, end = self.answer()
        assert not end["ok"] and self.file.read() == b"", (rows, end)
        return end["error"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_reload_takes_the_right_away(shown, open_folder):
    """Shells of a user that is not allowed any more end with a sentence, also amid a command; others continue."""
    path = open_folder / "shell.sock"
    server = shown({"Workers": 2}, cheetah={"AllowedUsers": "nobody", "Listen": path})
    server.baseline += RELOADED
    path.chmod(0o666)
    with (
        PassedShell(path, NOBODY) as idle,
        PassedShell(path, NOBODY) as tracing,
        PassedShell(path, NOBODY) as reloading,
        PassedShell(path, 0) as root,
    ):
        assert idle.ask("uptime") and root.ask("uptime")
        tracing.send("trace peer=192.0.2.1")
        assert tracing.read()["begin"] == "trace"
        conf = server.conf / "plugins" / "cheetah" / "cheetah.conf"
        before = conf.read_text()
        conf.write_text(before.replace("nobody", "no-such-user"))
        assert "no-such-user" in str(reloading.answer_to("reload"))
        assert idle.ask("uptime"), "a refused configuration takes nothing away"
        conf.write_text(before.replace("AllowedUsers", "#"))
        reloading.send("reload")
        for one in (reloading, idle, tracing):
            assert one.expelled() == "your user may not control this server (AllowedUsers)"
        assert root.ask("uptime")
        with PassedShell(path, NOBODY) as late:
            assert late.expelled() == "your user may not control this server (AllowedUsers)"
    server.wait_log(r"shell: closing the shell of process \d+, user 65534", 3)


def test_a_reload_removes_the_plugin(shown, shell, path):
    """While a response of the old generation continues: its shells end, and its socket may be opened again."""
    server = shown({"Workers": 2, "ShutdownTimeout": "60s"}, files={"big.bin": b"x" * (32 << 20), "hello.txt": b"x"})
    server.baseline += RELOADED
    conf, load = server.conf / "plugins" / "cheetah" / "cheetah.conf", server.conf / "plugins.load"
    before = conf.read_text()
    with server.connect(rcvbuf=4096) as slow:
        slow.send(request("/big.bin"))
        assert slow.head().status == 200
        one, other = shell(), shell()
        assert one.ask("uptime")
        other.send("trace peer=192.0.2.1")
        assert other.read()["begin"] == "trace"
        conf.unlink()
        load.write_text(section("PLUGINS", {"Load": "liana"}) + "    Load static\n")
        server.send_signal(signal.SIGHUP)
        for each in (one, other):
            rows, end = each.answer()
            assert end["error"] == "the server's configuration does not permit shells any more (plugins.load)", rows
            assert each.file.read() == b""
        await_true(lambda: not path.exists())
        conf.write_text(before)
        load.unlink()
        server.send_signal(signal.SIGHUP)
        await_true(lambda: path.exists() and process_after(path, None))
        with Shell(path) as late:
            assert any(row["older_generations"] for row in late.ask("workers")), "the old one is still there"
        moved = path.with_name("moved.sock")
        conf.write_text(before.replace(str(path), str(moved)))
        late = shell()
        assert late.ask("reload") and late.ask("uptime")
        await_true(lambda: moved.exists() and not path.exists())
        slow.close()
        server.wait_log("the configuration before the last reload is not in use any more", 2)
        with Shell(moved) as late:
            assert late.ask("uptime")


@build.needs_modules
def test_a_reload_adds_the_plugin(serve, path, tmp_path):
    """A shell that connects before the new configuration is in use waits for it."""
    server = serve({"Workers": 2}, env={"SLOW_UNTIL": str(tmp_path / "go")})
    server.baseline += RELOADED + 3  # the socket, and what wakes each worker
    folder = server.conf / "plugins" / "cheetah"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cheetah.conf").write_text(section("CHEETAH", {"Listen": path}))
    plugins = ["liana", "cheetah", build.MODULES / "slow.so", "static"]
    (server.conf / "plugins.load").write_text(section("PLUGINS", {"Load": plugins}))
    server.send_signal(signal.SIGHUP)
    server.wait_log("slow: a worker starts")
    with Shell(path) as early:
        early.send("uptime")
        (tmp_path / "go").touch()
        assert early.answer()[1]["ok"]


@pytest.mark.budget
def test_idle_costs_no_system_call(shown, tmp_path):
    """Loaded but unused: as many system calls for a request as without the plugin."""
    assert shutil.which("strace")
    counts = []
    for cheetah in (True, False):
        server = shown({"Workers": 1}, config=UNCACHED) if cheetah else Server("-c", bare_config(tmp_path))
        counts.append(count_calls(server, tmp_path / f"trace{cheetah}"))
        if not cheetah:
            server.stop()
    assert counts[0] == counts[1], counts


def bare_config(tmp_path):
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    (root / "hello.txt").write_bytes(b"hello")
    return write_config(tmp_path / "bare", root, {"Workers": 1}, files=UNCACHED)


def count_calls(server, out):
    """System calls of the server for 100 requests on one connection."""
    with server.connect() as client:
        client.ask("/hello.txt")
        tracer = subprocess.Popen(
            ["strace", "-f", "-p", str(server.pid), "-o", str(out)], stderr=subprocess.PIPE, text=True
        )
        tracer.stderr.readline()
        for _ in range(100):
            assert client.ask("/hello.txt").status == 200
        tracer.send_signal(signal.SIGINT)
        tracer.wait(60)
    lines = out.read_text().splitlines()
    return len([line for line in lines if re.search(r"\d+ (\w+)\(", line) and "epoll_wait" not in line]) // 100
