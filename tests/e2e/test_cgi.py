# SPDX-License-Identifier: Apache-2.0
"""Scripts of the plugin cgi: what they get, what becomes of what they write, and what they may not do."""

import os
import pathlib

import pytest

from harness import build
from harness.content import checksum_of_letters, receive_rest
from harness.messages import chunked, lines, request, sized
from harness.queues import await_full
from harness.scripts import (
    ENVIRONMENT,
    HELLO,
    PYTHON,
    cgi_section,
    children,
    name_of,
    starters,
    variables,
    wait_no_scripts,
    write_scripts,
)
from harness.server import await_true, run, section, write_config
from harness.services import reload
from harness.ways import WAYS

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]


SOCKETS = 3  # to the starter: one of the process, and one of each worker, once they have run a script


@pytest.fixture
def cgi(serve, tmp_path):
    """Starts a server with scripts below /cgi: cgi({"name": text}, MaxProcesses=1)."""

    def start(scripts, settings=None, *, text="", root=None, host=None, **keys):
        folder = write_scripts(tmp_path / "scripts", {"hello": HELLO, **scripts})
        server = serve(settings or {"Workers": 2}, root=root, host=host, text=cgi_section(folder, **keys) + text)
        server.scripts = folder
        server.baseline += SOCKETS
        return server

    return start


def ask(server, target, *fields, **rest):
    with server.connect() as client:
        return client.ask(target, *fields, **rest)


# ── what a script gets ──


def test_hello(cgi):
    server = cgi({})
    for _ in range(3):
        got = ask(server, "/cgi/hello")
        assert (got.status, got.body, got["Content-Type"]) == (200, b"hello\n", "text/plain")
    wait_no_scripts(server)


def test_variables(cgi):
    server = cgi({"sub/env": ENVIRONMENT})
    fields = ["X-One: 1", "X-Two: a", "X-Two: b", "Cookie: c=1", "Cookie: d=2", "Accept: */*"]
    got = ask(server, "/cgi/sub/env/a%20b/c?q=1&r=%20+", *fields)
    found, body = variables(got.body)
    port = str(server.port)
    assert found["REMOTE_PORT"].isdigit()
    expected = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_SOFTWARE": "monkey",
        "SERVER_NAME": "localhost",
        "SERVER_ADDR": "127.0.0.1",
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REQUEST_SCHEME": "http",
        "REQUEST_METHOD": "GET",
        "REQUEST_URI": "/cgi/sub/env/a%20b/c?q=1&r=%20+",
        "QUERY_STRING": "q=1&r=%20+",
        "REMOTE_ADDR": "127.0.0.1",
        "REMOTE_PORT": found["REMOTE_PORT"],
        "SCRIPT_NAME": "/cgi/sub/env",
        "SCRIPT_FILENAME": str(server.scripts / "sub/env"),
        "PATH_INFO": "/a b/c",
        "PATH_TRANSLATED": f"{server.scripts}/a b/c",
        "DOCUMENT_ROOT": str(server.scripts),
        "DOCUMENT_URI": "/cgi/sub/env/a b/c",
        "REDIRECT_STATUS": "200",
        "HTTP_HOST": "localhost",
        "HTTP_X_ONE": "1",
        "HTTP_X_TWO": "a, b",
        "HTTP_COOKIE": "c=1; d=2",
        "HTTP_ACCEPT": "*/*",
    }
    found = {name: value for name, value in found.items() if name not in ("LC_CTYPE", "PWD", "SHLVL", "_")}
    assert found == expected
    assert body == b""


def test_headers_that_are_left_out(cgi):
    """httpoxy, names that another one could be taken for, logins, and what belongs to the connection."""
    server = cgi({"env": ENVIRONMENT})
    fields = [
        "Proxy: http://evil/",
        "X_Forged: 1",
        "X.Dot: 1",
        "Authorization: Basic YTpi",
        "Connection: close, X-Named",
        "X-Named: 1",
        "TE: trailers",
        "Keep-Alive: 1",
    ]
    found, _ = variables(ask(server, "/cgi/env", *fields).body)
    assert [name for name in found if name.startswith("HTTP_")] == ["HTTP_HOST"]
    assert "AUTH_TYPE" not in found


def test_authorization_and_env(cgi):
    keys = {"Authorization": "On", "Env": ["APP mode $host", "HTTPS forced", "EMPTY $user"]}
    server = cgi({"env": ENVIRONMENT}, **keys)
    found, _ = variables(ask(server, "/cgi/env", "Authorization: Basic YTpi").body)
    assert found["HTTP_AUTHORIZATION"] == "Basic YTpi"
    assert found["APP"] == "mode localhost"
    assert found["HTTPS"] == "forced"
    assert "EMPTY" not in found


def test_no_arguments_of_the_query(cgi):
    """A query without "=" is no argument (RFC 3875 section 4.4 is a hole that scripts do not expect)."""
    server = cgi({"args": "#!/bin/sh\nprintf 'Content-Type: a/b\\n\\n%s' \"$#|$*\"\n"})
    assert ask(server, "/cgi/args?-s+--help").body == b"0|"


def test_trace(cgi):
    """A script would send cookies and logins back."""
    server = cgi({"env": ENVIRONMENT})
    got = ask(server, "/cgi/env", "Cookie: secret", method="TRACE")
    assert got.status == 405 and "TRACE" not in got["Allow"] and b"secret" not in got.body
    server.baseline -= SOCKETS


def test_folder_and_interpreter(cgi):
    """The working folder is the script's; an interpreter runs a file without x bit, with its arguments before it."""
    show = "import os, sys\nprint('Content-Type: a/b\\n')\nprint(os.getcwd(), sys.flags.isolated, sys.argv)\n"
    server = cgi({"sub/a.py": show}, Interpreter=f".py {PYTHON} -I")
    (server.scripts / "sub/a.py").chmod(0o644)
    got = ask(server, "/cgi/sub/a.py")
    path = server.scripts / "sub"
    assert got.body.decode() == f"{path} 1 ['{path}/a.py']\n"


def test_limits(cgi):
    server = cgi(
        {"limits": "#!/bin/sh\nprintf 'Content-Type: a/b\\n\\n'\nulimit -v; ulimit -t; ulimit -n\n"},
        Limits="memory=256M cpu=30s files=64",
    )
    assert ask(server, "/cgi/limits").body == b"262144\n30\n64\n"


# ── bodies of requests ──

COUNT = f"#!{PYTHON}\nimport os, sys\ndata = sys.stdin.buffer.read()\nprint('Content-Type: a/b\\n')\n"
COUNT += "print(os.environ.get('CONTENT_LENGTH'), len(data), data[:3], data[-3:])\n"


@pytest.mark.parametrize("spool", ["Off", "On"])
def test_bodies(cgi, spool):
    server = cgi({"count": COUNT}, SpoolRequest=spool)
    for size in (1, 10, 65536, 300_000):
        body = os.urandom(size)
        with server.connect() as client:
            client.send_in_background(lines("POST /cgi/count HTTP/1.1", "Host: a", sized(body)) + body)
            got = client.response("POST")
        assert got.body.decode() == f"{size} {size} {body[:3]} {body[-3:]}\n"
    got = ask(server, "/cgi/count", method="POST", body=b"")
    assert got.body.split()[1] == b"0"


def test_slow_uploads_hold_no_script(cgi):
    """As many as there are places, and their bodies have not come: SpoolRequest is On."""
    server = cgi({"count": COUNT}, MaxProcesses=2, Queue=0)
    with server.connect() as first, server.connect() as second:
        for client in (first, second):
            client.send(lines("POST /cgi/count HTTP/1.1", "Host: a", "Content-Length: 4") + b"ab")
        assert ask(server, "/cgi/hello").status == 200
        for client in (first, second):
            client.send(b"cd")
            assert client.response("POST").body == b"4 4 b'abc' b'bcd'\n"


def test_chunked_body_has_its_length(cgi):
    server = cgi({"count": COUNT})
    with server.connect() as client:
        client.send(lines("POST /cgi/count HTTP/1.1", "Host: a", "Transfer-Encoding: chunked"))
        client.send(chunked(b"abc", b"x" * 100_000, b"def"))
        assert client.response("POST").body.decode() == f"100006 100006 {b'abc'} {b'def'}\n"


def test_too_long_for_spool(cgi):
    server = cgi({"count": COUNT}, SpoolRequest="1K")
    assert ask(server, "/cgi/count", method="POST", body=b"x" * 1025).status == 413
    with server.connect() as client:
        client.send(lines("POST /cgi/count HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + chunked(b"x" * 1025))
        assert client.response("POST").status == 413


def test_script_that_reads_nothing(cgi):
    """The response comes; the rest of the body is dropped."""
    server = cgi({})
    with server.connect() as client:
        client.send_in_background(lines("POST /cgi/hello HTTP/1.1", "Host: a", sized(b"x" * 500_000)) + b"x" * 500_000)
        got = client.response("POST")
        assert (got.status, got.body) == (200, b"hello\n")


def test_output_before_the_body_is_read(cgi):
    script = f"#!{PYTHON}\nimport sys\nsys.stdout.write('Content-Type: a/b\\n\\nfirst,')\nsys.stdout.flush()\n"
    script += "sys.stdout.write(sys.stdin.read())\n"
    server = cgi({"early": script}, SpoolRequest="Off")
    with server.connect() as client:
        client.send(lines("POST /cgi/early HTTP/1.1", "Host: a", "Content-Length: 4"))
        client.head("POST")
        client.until(b"first,")
        client.send(b"last")
        client.until(b"last")


# ── responses ──


def shell(head, body=""):
    return f"#!/bin/sh\nprintf '{head}'\n{body}\n"


def test_heads(cgi):
    server = cgi(
        {
            "status": shell("Status: 404 No\\r\\nContent-Type: a/b\\r\\nX-A: b\\r\\n\\r\\nmissing"),
            "length": shell("Content-Length: 5\\nContent-Type: a/b\\n\\nhello"),
            "created": shell("Status: 201\\nLocation: /new\\n\\n"),
            "away": shell("Location: http://other/x\\n\\n"),
            "local": shell("Location: /cgi/hello?x\\n\\n"),
            "internal": shell(
                "X-Accel-Redirect: /x\\nX-Sendfile: /etc/passwd\\nServer: x\\n"
                "Connection: X-B\\nX-B: c\\nContent-Type: a/b\\n\\n"
            ),
            "empty": shell("Status: 204\\n\\n"),
        }
    )
    got = ask(server, "/cgi/status")
    assert (got.status, got["X-A"], got.body) == (404, "b", b"missing")
    assert (ask(server, "/cgi/length").body, ask(server, "/cgi/length")["Content-Length"]) == (b"hello", "5")
    got = ask(server, "/cgi/created")
    assert (got.status, got["Location"]) == (201, "/new")
    got = ask(server, "/cgi/away")
    assert (got.status, got["Location"]) == (302, "http://other/x")
    got = ask(server, "/cgi/local")
    assert (got.status, got["Location"]) == (302, "/cgi/hello?x")
    got = ask(server, "/cgi/internal")
    assert (got["X-Accel-Redirect"], got["X-Sendfile"], got["X-B"]) == (None, None, None)
    assert "x" != got["Server"]
    assert (ask(server, "/cgi/empty").status, ask(server, "/cgi/empty").body) == (204, b"")
    got = ask(server, "/cgi/length", method="HEAD")
    assert (got.status, got["Content-Length"]) == (200, "5")
    got = ask(server, "/cgi/hello", method="HEAD")
    assert (got.status, got["Content-Length"]) == (200, None)
    wait_no_scripts(server)


# What follows the head "Content-Length: 4", and what the log says of it.
COMPLETE = {
    "ends": ("part", "", None),
    "continues": ("part", "while [ ! -e go ]; do sleep 0.05; done", None),
    "leaves a process": ("part", "sleep 1000 &", None),
    "is killed": ("part", "kill -9 $$", None),
    "writes more": ("partial", "", "written more than the 4 bytes of its Content-Length: the rest is dropped"),
    "writes more later": ("part", "sleep 0.2; printf ial", None),
    "floods": ("part", "exec head -c 20000000 /dev/zero", None),
}


@pytest.fixture(params=["h1", "h2"])
def way(request):
    if not build.speaks("h2"):
        pytest.skip(f"the preset {build.PRESET} has no HTTP/2")
    return WAYS[request.param]


@pytest.mark.parametrize("what", COMPLETE)
def test_response_of_a_length(cgi, what, way):
    """It ends with its last byte, whatever the script does then, and the connection is used again."""
    body, rest, sentence = COMPLETE[what]
    head = "Content-Type: a/b\\nContent-Length: 4\\n\\n"
    server = cgi({"sized": shell(head + body, rest)}, Timeout="10s")
    with way.connect(server, timeout=20) as client:
        for _ in range(2):
            assert client.ask("/cgi/sized").body == b"part"
        assert client.ask("/cgi/hello").body == b"hello\n"
    (server.scripts / "go").touch()
    if sentence:
        server.wait_log(sentence)


def test_response_of_no_bytes(cgi, way):
    server = cgi({"empty": shell("Content-Length: 0\\n\\n", "kill -9 $$")}, Timeout="30s")
    with way.connect(server, timeout=20) as client:
        for _ in range(2):
            assert client.ask("/cgi/empty").body == b""
    wait_no_scripts(server)


def test_response_that_is_too_short(cgi):
    server = cgi({"short": shell("Content-Type: a/b\\nContent-Length: 5\\n\\npart")})
    with server.connect() as client:
        client.send(request("/cgi/short"))
        assert client.head()["Content-Length"] == "5"
        assert client.rest() == b"part"
    server.wait_log("its output has ended before the bytes of its Content-Length: its response is cut")
    wait_no_scripts(server)


@pytest.mark.parametrize("length", ["", "Content-Length: 3000000\\n"], ids=["chunks", "length"])
def test_slow_client_of_a_script_that_continues(cgi, length):
    """The script ends in time, and does not cut a response whose output was complete before."""
    size = 3_000_000
    script = f"#!{PYTHON}\nimport os, sys, time\nprint('{length}Content-Type: a/b\\n')\n"
    script += f"sys.stdout.write('x' * {size})\n"
    script += "sys.stdout.flush()\ntime.sleep(0.5)\nos.close(1)\ntime.sleep(1000)\n"
    server = cgi({"continues": script}, BufferResponse="256K 64M", Timeout="3s")
    with server.connect(rcvbuf=4096, timeout=60) as client:
        client.send(request("/cgi/continues"))
        server.wait_log("continues: .* for 3000 ms .Timeout.: it is ended")
        wait_no_scripts(server)
        assert client.response().body == b"x" * size


def test_output_behind_a_complete_response(cgi):
    """It gives a script no more time: one that does not end would keep its place for ever."""
    endless = shell("Content-Type: a/b\\n\\n", "while echo more; do sleep 0.02; done")
    server = cgi({"endless": endless}, Timeout="5s")  # a shell takes seconds to start on a loaded machine
    assert ask(server, "/cgi/endless", method="HEAD").status == 200
    wait_no_scripts(server)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("HTTP/1.1 200 OK\\r\\nA: b\\r\\n\\r\\n", "non-parsed header script"),
        ("<html>\\n", "does not begin with header fields"),
        ("\\n", "does not begin with header fields"),
        ("A: b\\n folded\\n\\n", 'line 2 of its head, " folded": it is folded'),
        ("A: \\033[1m\\n\\n", "does not begin with header fields"),
        ("Status: 99\\n\\n", 'line 1 of its head, "Status: 99": a Status is from 200 to 599'),
        ("Transfer-Encoding: chunked\\n\\n0\\r\\n\\r\\n", "Transfer-Encoding is the server's"),
        ("A: b\\n", "ended before the head of a response was complete; it ended with status 0"),
        ("", "ended before the head of a response was complete; it ended with status 0"),
    ],
)
def test_malformed_heads(cgi, text, sentence):
    server = cgi({"bad": shell(text)})
    assert ask(server, "/cgi/bad").status == 502
    server.wait_log(sentence)
    wait_no_scripts(server)
    assert ask(server, "/cgi/hello").status == 200


@pytest.mark.parametrize(
    "text",
    [
        "X-Name : v\\r\\nContent-Type: a/b\\r\\nContent-Length\\t : 5",
        "X-Name: v\\nContent-Type : a/b\\nContent-Length: 5",
    ],
)
def test_heads_with_one_meaning(cgi, text):
    got = ask(cgi({"bad": shell(text + "\\n\\nhello")}), "/cgi/bad")
    assert (got.status, got["X-Name"], got.body) == (200, "v", b"hello")


def test_garbage_without_end(cgi):
    bad = "#!/bin/sh\nexec cat /dev/zero\n"
    server = cgi({"bad": bad, "long": "#!/bin/sh\nwhile :; do echo A: bbbbbbbbbbbbb; done\n"})
    assert ask(server, "/cgi/bad").status == 502
    assert ask(server, "/cgi/long").status == 502
    server.wait_log("longer than MaxResponseHead")
    wait_no_scripts(server)


def test_errors_are_logged_by_lines(cgi):
    errors = "printf 'one\\ntwo\\033[1m\\nthree' >&2"
    server = cgi({"err": f"#!/bin/sh\n{errors}\nprintf 'Content-Type: a/b\\n\\n'\nexit 3\n"})
    assert ask(server, "/cgi/err").status == 200
    for text in ("one", r"two\\x1b\[1m", "three"):
        server.wait_log(f"cgi: .*/err: {text}")


def test_killed_script_cuts_the_response(cgi):
    server = cgi({"dies": "#!/bin/sh\nprintf 'Content-Type: a/b\\n\\npart'\nkill -9 $$\n"})
    with server.connect() as client:
        client.send(request("/cgi/dies"))
        client.head()
        assert b"0\r\n\r\n" not in client.rest()
    server.wait_log("was killed by signal 9.*its response is cut")


# ── which file ──


def test_what_is_no_script(cgi):
    server = cgi({".hidden": HELLO, "sub/x": HELLO, "cgi": HELLO})
    (server.scripts / "plain").write_text("text")
    (server.scripts / "noexec").write_text("text")
    (server.scripts / "out").symlink_to("/bin/true")
    statuses = {
        "/cgi": 404,
        "/cgi/": 404,
        "/cgi/missing": 404,
        "/cgi/sub": 404,
        "/cgi/sub/": 404,
        "/cgi/cgi": 200,
        "/cgi/.hidden": 404,
        "/cgi/out": 404,
        "/cgi/hello%00": 404,
        "/cgi/plain": 403,
        "/cgi/..;/hello": 404,
        "/cgi/%2e%2e/cgi/hello": 200,
        "/cgi/hello/../hello": 200,
        "/cgi/HELLO": 404,
        "/cgi/hello.": 404,
    }
    for target, status in statuses.items():
        assert ask(server, target).status in (status, 400 if status == 404 else status), target
    server.wait_log("may not execute it: set its x bit")


def test_bad_interpreter_line(cgi):
    server = cgi({"bad": "#!/missing/python\n", "none": "no format at all\n"})
    assert ask(server, "/cgi/bad").status == 500
    server.wait_log("cannot be executed: No such file or directory \\(the program that its first line names")
    assert ask(server, "/cgi/none").status == 500
    server.wait_log("cannot be executed: Exec format error")


def test_below_document_root(serve, tmp_path):
    root = write_scripts(tmp_path / "root", {"a.cgi": HELLO, "sub/b.cgi": ENVIRONMENT})
    (root / "page.txt").write_bytes(b"page")
    server = serve({"Workers": 2}, root=root, text=cgi_section(None, Match="~\\.cgi(/|$)"))
    server.baseline += SOCKETS
    assert ask(server, "/a.cgi").body == b"hello\n"
    assert ask(server, "/page.txt").body == b"page"
    found, _ = variables(ask(server, "/sub/b.cgi/x/y").body)
    assert (found["SCRIPT_NAME"], found["PATH_INFO"]) == ("/sub/b.cgi", "/x/y")
    assert found["DOCUMENT_ROOT"] == str(root)
    assert ask(server, "/missing.cgi").status == 404


def test_one_script_for_all_paths(serve, tmp_path):
    folder = write_scripts(tmp_path / "scripts", {"env": ENVIRONMENT})
    text = cgi_section(None, Match="/app", Script=folder / "env")
    server = serve({"Workers": 2}, text=text)
    server.baseline += SOCKETS
    for target, info in [("/app", None), ("/app/", "/"), ("/app/a/b.c", "/a/b.c")]:
        found, _ = variables(ask(server, target).body)
        assert (found["SCRIPT_NAME"], found.get("PATH_INFO")) == ("/app", info)
        assert found["SCRIPT_FILENAME"] == str(folder / "env")
    assert ask(server, "/application").status == 404


def test_sources_are_never_sent(serve, tmp_path):
    """Not under another path, nor their copies."""
    root = write_scripts(tmp_path / "root", {"scripts/a.py": HELLO, "b.py": HELLO})
    for name in ("scripts/a.py.bak", "scripts/a.py~", "scripts/a.py.gz", "b.py.old"):
        (root / name).write_text(HELLO)
    (root / "link.txt").symlink_to("b.py")
    text = cgi_section(root / "scripts", Interpreter=f".py {PYTHON}")
    server = serve({}, root=root, text=text)
    for target in ("/scripts/a.py", "/scripts/a.py.bak", "/scripts/a.py~", "/scripts/a.py.gz", "/b.py", "/b.py.old",
                   "/b.PY", "/link.txt"):
        got = ask(server, target)
        assert got.status in (403, 404) and b"printf" not in got.body, target


LINKS = {"SymLink": "Inside"}


def swap(link, target):
    """Has a symbolic link name another folder, in one step."""
    new = link.parent / "new"
    new.symlink_to(target)
    new.rename(link)


def ask_for_files(server, target):
    found, _ = variables(ask(server, target).body)
    return found["SCRIPT_FILENAME"], found["DOCUMENT_ROOT"]


def test_release_of_a_document_root(serve, tmp_path):
    """Scripts, and what is never sent, are those of the folder that a link names now."""
    for release in "12":
        folder = write_scripts(tmp_path / release, {"cgi-bin/env": ENVIRONMENT})
        (folder / "notes.txt").symlink_to("cgi-bin/env")
    current = tmp_path / "current"
    current.symlink_to("1")
    server = serve({"Workers": 2}, root=current, host=LINKS, text=cgi_section(None, Match="/cgi-bin"))
    server.baseline += SOCKETS
    for release in "12":
        wanted = (str(tmp_path / release / "cgi-bin/env"), str(tmp_path / release))
        await_true(lambda: ask_for_files(server, "/cgi-bin/env") == wanted, what="the release")
        assert ask(server, "/notes.txt").status in (403, 404)
        swap(current, "2")


def test_release_of_a_root(serve, tmp_path):
    """The same for Root, whose releases are files of the host until they are in use."""
    root = tmp_path / "root"
    for release in "12":
        write_scripts(root / release, {"env": ENVIRONMENT})
    (root / "notes.txt").symlink_to("2/env")
    current = root / "current"
    current.symlink_to("1")
    server = serve({"Workers": 2}, root=root, host=LINKS, text=cgi_section(current))
    server.baseline += SOCKETS
    assert ask_for_files(server, "/cgi/env") == (str(root / "1/env"), str(root / "1"))
    assert ask(server, "/2/env").status == 200
    assert ask(server, "/notes.txt").status == 200
    swap(current, "2")
    assert ask_for_files(server, "/cgi/env") == (str(root / "2/env"), str(root / "2"))
    await_true(lambda: ask(server, "/notes.txt").status in (403, 404), what="the file of the new release")
    assert ask(server, "/2/env").status in (403, 404)


# ── limits ──

SLEEP = "#!/bin/sh\nprintf 'Content-Type: a/b\\n\\n'\necho $$\nexec sleep 1000\n"


@pytest.mark.concurrent
def test_queue(cgi):
    """MaxProcesses of all workers together; a place goes to the request that has waited longest."""
    server = cgi({"sleep": SLEEP}, MaxProcesses=2, Queue=1, QueueTimeout="120s")
    first = [server.connect() for _ in range(2)]
    for client in first:
        client.send(request("/cgi/sleep"))
        client.head()
    with server.connect() as one, server.connect() as other:
        for client in (one, other):
            client.send(request("/cgi/hello"))
        server.wait_log("2 scripts of /cgi run \\(MaxProcesses\\) and 1 requests wait")
        first[0].reset()
        assert sorted(client.response().status for client in (one, other)) == [200, 503]
    first[1].reset()
    wait_no_scripts(server)


def test_queue_timeout(cgi):
    server = cgi({"sleep": SLEEP}, MaxProcesses=1, QueueTimeout="50ms")
    with server.connect() as client:
        client.send(request("/cgi/sleep"))
        client.head()
        assert ask(server, "/cgi/hello").status == 503
    wait_no_scripts(server)
    await_true(lambda: ask(server, "/cgi/hello").status == 200, what="the place")


def test_client_that_leaves_the_queue(cgi):
    server = cgi({"sleep": SLEEP}, MaxProcesses=1, QueueTimeout="120s")
    with server.connect() as client:
        client.send(request("/cgi/sleep"))
        client.head()
        for _ in range(20):
            with server.connect() as waiting:
                waiting.send(request("/cgi/hello"))
                waiting.reset()
        client.reset()
    assert ask(server, "/cgi/hello").status == 200


@pytest.mark.parametrize("ignores", ["", "trap '' TERM"], ids=["term", "kill"])
def test_timeout(cgi, ignores):
    server = cgi({"slow": f"#!/bin/sh\n{ignores}\nsleep 1000 & while :; do sleep 1000; done\n"}, Timeout="200ms")
    assert ask(server, "/cgi/slow").status == 504
    server.wait_log("neither output nor input for 200 ms .Timeout.: it is ended")
    wait_no_scripts(server)


def test_timeout_in_the_body(cgi):
    server = cgi({"sleep": SLEEP}, Timeout="2s")
    with server.connect() as client:
        client.send(request("/cgi/sleep"))
        client.head()
        assert b"0\r\n\r\n" not in client.rest()
    wait_no_scripts(server)


def test_client_that_leaves(cgi):
    server = cgi({"sleep": SLEEP, "fork": "#!/bin/sh\nsleep 1000 &\nprintf 'Content-Type: a/b\\n\\n'\nwait\n"})
    for target in ("/cgi/sleep", "/cgi/fork"):
        with server.connect() as client:
            client.send(request(target))
            client.head()
        wait_no_scripts(server)


def test_script_that_closes_its_output(cgi):
    """The response ends then; the script continues to its end."""
    script = "#!/bin/sh\nprintf 'Content-Type: a/b\\n\\ndone'\nexec >&- 2>&-\n"
    script += "while [ ! -e go ]; do sleep 0.05; done\ntouch end\n"
    server = cgi({"early": script})
    assert ask(server, "/cgi/early").body == b"done"
    assert not (server.scripts / "end").exists()
    (server.scripts / "go").touch()
    await_true((server.scripts / "end").exists, what="the end of the script")
    wait_no_scripts(server)


def test_process_left_behind(cgi):
    """It holds the output of the script, so that the response has not ended: until its time is over."""
    server = cgi({"leaves": "#!/bin/sh\nprintf 'Content-Type: a/b\\n\\n'\nsleep 1000 &\n"}, Timeout="2s")
    with server.connect() as client:
        client.send(request("/cgi/leaves"))
        client.head()
        client.rest()
    wait_no_scripts(server)


def test_large_output_and_slow_client(cgi):
    """A client that takes nothing holds no script, as far as BufferResponse goes."""
    size = 3_000_000
    script = f"#!{PYTHON}\nimport sys\nprint('Content-Type: a/b\\n')\nsys.stdout.write('x' * {size})\n"
    server = cgi({"large": script}, BufferResponse="256K 64M", MaxProcesses=1)
    with server.connect(rcvbuf=4096) as client:
        client.send(request("/cgi/large"))
        wait_no_scripts(server)
        assert ask(server, "/cgi/hello").status == 200
        assert client.response().body == b"x" * size


@pytest.mark.parametrize("megabytes", [64, pytest.param(1024, marks=pytest.mark.slow)])
@pytest.mark.parametrize("buffer", ["256K 64M", "Off"])
def test_output_of_any_length(cgi, megabytes, buffer):
    """It comes whole, and the server does not keep it."""
    script = f"#!{PYTHON}\nimport sys\nsys.stdout.write('Content-Type: a/b\\n\\n')\n"
    script += f"for n in range({megabytes}):\n    sys.stdout.write(chr(97 + n % 26) * (1 << 20))\n"
    server = cgi({"large": script}, BufferResponse=buffer)
    assert ask(server, "/cgi/hello").status == 200
    before = server.memory_kb()
    with server.connect(timeout=120) as client:
        client.send(b"GET /cgi/large HTTP/1.0\r\nHost: a\r\n\r\n")
        client.until(b"\r\n\r\n")
        length, checksum = receive_rest(client)
    grown = server.memory_kb() - before
    assert (length, checksum) == (megabytes << 20, checksum_of_letters(megabytes))
    assert grown < 32_000 or build.SANITIZED
    wait_no_scripts(server)


def test_output_waits_for_the_client(cgi, clock):
    """Without a buffer the script waits; it is not late, as the client is."""
    size = 3_000_000
    script = f"#!{PYTHON}\nimport sys\nprint('Content-Type: a/b\\n')\nsys.stdout.write('x' * {size})\n"
    server = cgi({"large": script}, BufferResponse="Off", Timeout="4s")
    with server.connect(rcvbuf=4096) as client:
        client.send(request("/cgi/large"))
        client.head()
        await_full(client)
        clock.advance(4.5)
        assert client.chunks()[0] == b"x" * size


# ── local redirects ──


def test_local_redirects(cgi):
    server = cgi(
        {
            "env": ENVIRONMENT,
            "to_env": shell("Location: /cgi/env/info?a=b\\n\\n"),
            "to_file": shell("Location: /hello.txt\\n\\n"),
            "loop": shell("Location: /cgi/loop\\n\\n"),
            "bad": shell("Location: /cgi/../x\\n\\n"),
            "nul": shell("Location: /a%%00b\\n\\n"),
            "missing": shell("Location: /missing\\n\\n"),
            "status": shell("Status: 303\\nLocation: /cgi/env\\n\\n"),
        },
        LocalRedirect="On",
    )
    found, body = variables(ask(server, "/cgi/to_env?x", method="POST", body=b"data").body)
    assert (found["REQUEST_METHOD"], found["QUERY_STRING"], found["PATH_INFO"]) == ("GET", "a=b", "/info")
    assert (found["SCRIPT_NAME"], found["REQUEST_URI"]) == ("/cgi/env", "/cgi/env/info?a=b")
    assert "CONTENT_LENGTH" not in found and body == b""
    assert ask(server, "/cgi/to_file").body == ask(server, "/hello.txt").body
    assert ask(server, "/cgi/loop").status == 502
    server.wait_log("is not followed: there were five before")
    assert ask(server, "/cgi/bad").status == 502
    assert ask(server, "/cgi/nul").status == 502
    assert ask(server, "/cgi/missing").status == 404
    assert ask(server, "/cgi/status").status == 303
    wait_no_scripts(server)


# The index of a folder, what a rule denies, and the answer: a body, or a status and a line of the log.
FOLDERS = [
    ("index.cgi", None, "index.cgi /app/index.cgi a=b"),
    ("index.html", None, "page"),
    ("other.txt", None, (404, None)),
    ("index.php", None, (502, "another plugin runs a program for that path")),
    ("index.cgi", "=/app/index.cgi", (403, "the client may not have that path")),
    ("index.html", "=/app/index.html", (403, "the client may not have that path")),
    ("index.html", "=/app/", (403, "the client may not have that path")),
]


@pytest.mark.parametrize("index, denied, answer", FOLDERS)
def test_local_redirect_to_a_folder(cgi, tmp_path, index, denied, answer):
    """Its index is sent or run, as for a request for the folder; rules hold for both paths."""
    if not all((build.PLUGINS / f"{name}.so").exists() for name in ("mandril", "fastcgi")):
        pytest.skip("this preset has no plugins mandril and fastcgi")
    script = shell("Content-Type: text/plain\\n\\n", 'echo "index.cgi $SCRIPT_NAME $QUERY_STRING"')
    root = write_scripts(tmp_path / "root", {f"app/{index}": script})
    if not index.endswith(".cgi"):
        (root / "app" / index).write_text("page")
    text = section("CGI", {"Match": "*.cgi", "LocalRedirect": "On"})
    text += section("FASTCGI", {"Match": "*.php", "To": "127.0.0.1:1"})
    text += section("RULES", {"Match": denied, "Action": "deny"}) if denied else ""
    host = {"Indexfile": "index.cgi index.html index.php"}
    server = cgi({"away": shell("Location: /app/?a=b\\n\\n")}, text=text, root=root, host=host, LocalRedirect="On")
    got = ask(server, "/cgi/away?x", method="POST", body=b"data")
    if isinstance(answer, str):
        assert (got.status, got.body.decode().strip()) == (200, answer)
    else:
        assert got.status == answer[0]
        assert not answer[1] or server.wait_log(f"is not followed: {answer[1]}")
    wait_no_scripts(server)


OTHER_PLUGINS = [
    ("proxy", "PROXY", {"Match": "/x", "To": "http://127.0.0.1:1"}, "the plugin proxy responds to /x, and only to"),
    ("fastcgi", "SCGI", {"Match": "/x", "To": "127.0.0.1:1"}, "the plugin fastcgi responds to /x, and only to"),
    ("fastcgi", "FASTCGI", {"Match": "*.php", "To": "127.0.0.1:1"}, "another plugin runs a program for that path"),
]


@pytest.mark.parametrize("plugin, name, keys, reason", OTHER_PLUGINS)
def test_local_redirect_to_another_plugin(cgi, plugin, name, keys, reason):
    """It is not followed, and the log says why."""
    if not (build.PLUGINS / f"{plugin}.so").exists():
        pytest.skip(f"this preset has no plugin {plugin}")
    path = "/a.php" if name == "FASTCGI" else "/x"
    server = cgi({"away": shell(f"Location: {path}\\n\\n")}, text=section(name, keys), LocalRedirect="On")
    assert ask(server, "/cgi/away").status == 502
    server.wait_log(f"is not followed: {reason}")


@pytest.mark.parametrize("path", ["/hello.txt", "/cgi/hello"])
def test_local_redirect_to_what_the_client_may_not_have(cgi, path):
    if not (build.PLUGINS / "mandril.so").exists():
        pytest.skip("this preset has no plugin mandril")
    text = section("RULES", {"Match": path, "Action": "deny"})
    server = cgi({"away": shell(f"Location: {path}\\n\\n")}, text=text, LocalRedirect="On")
    assert ask(server, "/cgi/away").status == 403
    server.wait_log("is not followed: the client may not have that path,")


# ── the server ──


CONNECTION_REQUESTS = 500  # fewer than MaxKeepAliveRequest


def count_starts(server, count, targets=("/cgi/hello",)):
    for at in range(0, count, CONNECTION_REQUESTS):
        with server.connect() as client:
            for n in range(at, min(count, at + CONNECTION_REQUESTS)):
                assert client.ask(targets[n % len(targets)]).status == 200


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_nothing_is_left(cgi, count):
    """No zombie, process or descriptor, and one starter."""
    server = cgi({})
    count_starts(server, 20)
    before = server.descriptors()
    count_starts(server, count)
    wait_no_scripts(server)
    await_true(lambda: server.descriptors() <= before + 1, what="the descriptors")  # one of another worker
    assert len(starters(server)) == 1


def test_reload(cgi):
    """A script runs on over a reload, and counts for the new configuration."""
    server = cgi({"sleep": SLEEP}, MaxProcesses=1, QueueTimeout="50ms")
    with server.connect() as client:
        client.send(request("/cgi/sleep"))
        client.head()
        starter = starters(server)
        reload(server)
        client.until(b"\n")
        assert ask(server, "/cgi/hello").status == 503
        assert starters(server) == starter
    wait_no_scripts(server)
    await_true(lambda: ask(server, "/cgi/hello").status == 200, what="the place")


def test_starter_that_is_killed(cgi):
    """It is reaped when it ends, not only when another one is needed."""
    server = cgi({})
    assert ask(server, "/cgi/hello").status == 200
    (starter,) = starters(server)
    os.kill(starter, 9)
    await_true(lambda: not children(server.pid), what="the end of the starter, which is no zombie")
    await_true(lambda: ask(server, "/cgi/hello").status == 200, what="another starter")
    assert starters(server) != [starter]


@pytest.mark.concurrent
def test_reload_with_more_processes(cgi):
    """Requests that wait get the new places at once, although no script ends."""
    server = cgi({"sleep": SLEEP}, MaxProcesses=1, QueueTimeout="60s")
    with server.connect() as first, server.connect() as second, server.connect() as third:
        first.send(request("/cgi/sleep"))
        first.head()
        for client in (second, third):
            client.send(request("/cgi/sleep"))
        host = pathlib.Path(server.conf) / "sites/default"
        host.write_text(host.read_text().replace("MaxProcesses 1", "MaxProcesses 3"))
        reload(server)
        assert second.head().status == third.head().status == 200


def test_scripts_of_a_starter_that_is_killed(cgi):
    """They end with it, and their responses are cut: none runs unobserved."""
    server = cgi({"sleep": SLEEP})
    with server.connect() as client:
        client.send(request("/cgi/sleep"))
        client.head()
        (starter,) = starters(server)
        processes = children(starter)
        assert processes
        os.kill(starter, 9)
        client.assert_gone()
    await_true(lambda: not [pid for pid in processes if os.path.exists(f"/proc/{pid}")], what="the ends")
    server.wait_log("was killed with the process that starts others: its response is cut")


def test_stop(cgi):
    """The end of the server ends its scripts, also those that ignore SIGTERM."""
    script = "#!/bin/sh\ntrap '' TERM\nprintf 'Content-Type: a/b\\n\\n'\nwhile :; do sleep 1000; done\n"
    server = cgi({"stubborn": script}, {"Workers": 2, "ShutdownTimeout": "100ms"})
    with server.connect() as client:
        client.send(request("/cgi/stubborn"))
        client.head()
        processes = children(server.pid)
        assert len(processes) >= 2
        server.stop()
    await_true(lambda: not [pid for pid in processes if os.path.exists(f"/proc/{pid}")], what="the ends")


def test_killed_server(cgi):
    """Nothing of it is left, however it ends."""
    server = cgi({"sleep": SLEEP})
    with server.connect() as client:
        client.send(request("/cgi/sleep"))
        client.head()
        processes = children(server.pid)
        server.kill()
        server.wait()
    await_true(lambda: not [pid for pid in processes if os.path.exists(f"/proc/{pid}")], what="the ends")


def test_upgrade(chain, tmp_path):
    """The old process and its starter stay until their last script has ended; then nothing of them is left."""
    wait = "while [ ! -e go ]; do sleep 0.05; done"
    script = f"#!/bin/sh\nprintf 'Content-Type: a/b\\n\\nfirst,'\n{wait}\nprintf last\n"
    folder = write_scripts(tmp_path / "scripts", {"hello": HELLO, "slow": script})
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path / "root"}) + cgi_section(folder)
    one = chain(modules=("cgi.so",), files={"sites/default": text})
    with one.server.connect() as client:
        client.send(request("/cgi/slow"))
        client.until(b"first,")
        processes = children(one.pids[0])
        one.upgrade()
        assert ask(one.server, "/cgi/hello").body == b"hello\n"
        (folder / "go").touch()
        assert b"last" in client.rest()
    one.await_old()
    await_true(lambda: "monkey: starter" not in map(name_of, processes), what="the end of the starter")


def test_scripts_of_users(serve, tmp_path):
    """They do not run unless a section says so."""
    root = write_scripts(tmp_path / "root", {"~joe/a.cgi": HELLO})
    text = cgi_section(None, Match="~\\.cgi$")
    server = serve({"Workers": 2}, root=root, text=text)
    assert ask(server, "/~joe/a.cgi").status == 404
    server = serve({"Workers": 2}, root=root, text=text.replace("Match", "UserScripts On\n    Match"))
    server.baseline += SOCKETS
    assert ask(server, "/~joe/a.cgi").body == b"hello\n"


# ── the configuration ──


@pytest.mark.parametrize(
    "keys, sentence",
    [
        ({"Root": "/missing"}, "cannot use the folder /missing: No such file"),
        ({"Match": "*.cgi"}, "Root replaces the path of Match, which must be a path"),
        ({"Script": "/bin/true"}, "a section has Root or Script, not both"),
        ({"Interpreter": ".py /missing"}, "/missing is no program that can be run"),
        ({"Interpreter": ".py /etc/passwd"}, "/etc/passwd is no program that can be run: it is not executable"),
        ({"Interpreter": "py /bin/sh"}, "it takes an extension, a program"),
        ({"Interpreter": ".py python3"}, "the program is an absolute path"),
        ({"Interpreter": [".py /bin/sh", ".py /bin/sh"]}, "a line before this one has the same extension"),
        ({"Interpreter": ".py /etc"}, "/etc is no program that can be run: it is a folder"),
        ({"Root": "/"}, "every file of the machine would be a script"),
        ({"Root": "/usr/.."}, "every file of the machine would be a script"),
        ({"Limits": "memory=256"}, "is no limit"),
        ({"Limits": "memory=256M cpu=1s memory=1G"}, "memory is set twice"),
        ({"Env": "A-B c"}, "it takes a name"),
        ({"Env": "A $nono"}, "requests have no variable"),
        ({"MaxProcesses": 0}, "MaxProcesses"),
        ({"ScriptAlias": "/x"}, "Match /cgi-bin"),
    ],
)
def test_mistakes(tmp_path, keys, sentence):
    folder = write_scripts(tmp_path / "scripts", {"a": HELLO})
    write_config(tmp_path / "conf", tmp_path, text=cgi_section(folder, **keys))
    done = run("-t", "-c", tmp_path / "conf")
    assert done.returncode == 1 and sentence in done.stderr, done.stderr
    assert "sites/default:" in done.stderr


@pytest.mark.skipif(not build.can_mount(), reason="NOT TESTED: processes have no mounts of their own")
def test_a_spool_folder_that_cannot_be_written(tmp_path, site_root):
    """SpoolRequest is On without a line: a warning says what does not work."""
    wrapper = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none /var/tmp && exec "$0" "$@"']
    folder = write_scripts(tmp_path / "scripts", {"hello": HELLO})
    for keys, warned in (({}, True), ({"SpoolRequest": "1M"}, True), ({"SpoolRequest": "Off"}, False)):
        write_config(tmp_path / "conf", site_root, text=cgi_section(folder, **keys))
        got = run(*wrapper[1:], build.binary(), "-c", tmp_path / "conf", "--test", program=wrapper[0])
        assert got.returncode == 0, got.stderr
        assert ('wait in files of "/var/tmp", which cannot be written' in got.stderr) == warned
