# SPDX-License-Identifier: Apache-2.0
"""The Python package of bindings/python: its examples, with the library that was installed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest

from harness import build, embed
from harness.content import populate
from harness.embed import Program
from harness.protocol import Client, request
from harness.scripts import ENVIRONMENT, variables, write_scripts
from harness.server import await_true, section

cffi = pytest.importorskip("cffi", reason="cffi is not installed")

PACKAGE = build.TOP / "bindings" / "python"
PYTHON = sys.executable

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET in ("small", "tsan"), reason="no library, or one that Python cannot load"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    library = next(embed.install(tmp_path_factory.mktemp("prefix")).rglob("libmonkey.so"))
    variables = {"LIBMONKEY": str(library), "PYTHONPATH": str(PACKAGE)}
    if build.PRESET == "asan":  # must be loaded before Python, whose own memory is not freed at its end
        asan = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        variables["LD_PRELOAD"] = asan.stdout.strip()
        variables["ASAN_OPTIONS"] = build.environment()["ASAN_OPTIONS"] + ":detect_leaks=0"
    return variables


def test_functions(environment, tmp_path):
    root = populate(tmp_path / "root", {"a.txt": b"embedded\n"})
    program = Program(PYTHON, PACKAGE / "examples" / "hello.py", root, env=environment)
    assert program.ask().body == b"Hello, you!\n"
    assert program.ask("/hello/%C3%A4").body == "Hello, ä!\n".encode()
    assert program.ask("/hello/%FF").body == b"Hello, \xff!\n"  # a path that is not UTF-8, sent back as it came
    assert program.ask("/a.txt").body == b"embedded\n"
    assert program.ask("/notes/1", method="PUT", body=b"x" * 30_000).status == 201
    assert program.ask("/notes/1").body == b"x" * 30_000
    assert program.ask("/notes/2").status == 500  # a KeyError
    assert program.ask("/notes/1", method="DELETE").status == 405
    assert program.ask("/stop", method="POST").body == b"the end\n"
    program.end()


def test_wsgi(environment):
    with Program(PYTHON, PACKAGE / "examples" / "wsgi_hello.py", env=environment) as program:
        answer = program.ask("/a/b%20c?d=e%20f")
        assert (answer.status, answer.body, answer["X-Application"]) == (200, b"/a/b c?d=e%20f\n", "hello")
        assert program.ask("/").body == b"/?\n"
        assert program.ask("/", method="POST", body=b"a body\n").body == b"a body\n"


CHECKER = """
import sys
from wsgiref.validate import validator
from monkey.wsgi import make_server

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["REQUEST_METHOD"].encode()]

server = make_server(validator(application), "[SERVER]\\n    Listen 127.0.0.1:0\\n")
server.start()
print(f"http://127.0.0.1:{server.port}/", flush=True)
for _ in range(int(sys.argv[1])):
    server.run_once(30000)
server.serve()
"""


def test_wsgi_as_the_standard_says(environment, tmp_path):
    (tmp_path / "checker.py").write_text(CHECKER)
    program = Program(PYTHON, tmp_path / "checker.py", "1", env=environment)
    try:
        assert program.ask("/x?y").body == b"GET"
    finally:
        program.process.kill()
        program.process.communicate()


def run_python(environment, text):
    variables = {**build.environment(), **environment}
    return subprocess.run([PYTHON, "-c", text], env=variables, capture_output=True, text=True, timeout=120)


def test_errors_have_sentences(environment):
    text = "from monkey import Server\nServer('[SERVER]\\n    Timeouts 5s\\n').start()\n"
    run = run_python(environment, text)
    assert 'MonkeyError: [Errno 22] text:2:5: unknown key "Timeouts"' in run.stderr
    run = run_python(environment, "from monkey import Server\nServer().handle('GET', 'a')(print)\n")
    assert "adds no handler: it does not begin with" in run.stderr


def test_the_package_can_be_built(environment, tmp_path):
    """By what pip calls; the wheel has all that the package needs."""
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source)
    code = "import sys\nfrom setuptools import build_meta\nprint(build_meta.build_wheel(sys.argv[1]))\n"
    run = subprocess.run([PYTHON, "-c", code, tmp_path], cwd=source, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with zipfile.ZipFile(tmp_path / run.stdout.splitlines()[-1]) as wheel:
        wheel.extractall(tmp_path / "site")
    run = run_python({**environment, "PYTHONPATH": str(tmp_path / "site")}, "import monkey; print(monkey.__file__)")
    assert run.stdout == f"{tmp_path / 'site' / 'monkey' / '__init__.py'}\n", run.stderr


@pytest.mark.slow
def test_the_package_can_be_installed(environment, tmp_path):
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    variables = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", PACKAGE, source], check=True)
    run = subprocess.run([*command, f"--target={tmp_path / 'site'}", source], env=variables, capture_output=True)
    assert run.returncode == 0, run.stderr
    run = run_python({**environment, "PYTHONPATH": str(tmp_path / "site")}, "import monkey; print(monkey.__file__)")
    assert run.stdout == f"{tmp_path / 'site' / 'monkey' / '__init__.py'}\n", run.stderr


# ── failures ──

PROGRAMS = build.TOP / "tests" / "embed" / "python"
FAILING = ["raises", "number", "none", "list", "pair", "number-in-tuple", "text-status", "bad-status", "type",
           "header-not-latin-1", "name-not-latin-1", "header-of-two-lines", "header-number", "close"]  # fmt: skip


def start_program(environment, *words, **variables):
    return Program(PYTHON, PROGRAMS / words[0], *words[1:], env={**environment, **variables})


def test_functions_that_fail(environment):
    """At once: HandlerTimeout is an hour."""
    with start_program(environment, "failures.py", "serve") as program:
        for name in FAILING:
            assert (name, program.ask(f"/{name}").status) == (name, 500)
        for name in ("bytearray", "memoryview"):
            assert program.ask(f"/{name}").body == b"fine"
        assert program.ask("/status").status == 200  # of a plugin
        assert program.ask("/stop").body == b"stopped"


@pytest.mark.parametrize("loop", ["serve", "run_once"])
@pytest.mark.parametrize("name, ended", [("exit", 3), ("interrupt", None), ("generator-exit", 1), ("stop", 0)])
def test_ends_of_the_program(environment, loop, name, ended):
    """What Python ends a program with does, and the client has its response before."""
    program = start_program(environment, "failures.py", loop)
    assert program.ask(f"/{name}").status == (200 if name == "stop" else 500)
    program.process.communicate(timeout=60)
    if name == "interrupt":  # serve() ends by Ctrl-C
        ended = 0 if loop == "serve" else -signal.SIGINT
    assert program.process.returncode == ended


def test_interrupt_from_outside(environment):
    program = start_program(environment, "failures.py", "serve")
    assert program.ask("/bytearray").body == b"fine"
    program.process.send_signal(signal.SIGINT)
    program.process.communicate(timeout=60)
    assert program.process.returncode == 0


def test_kept_request(environment):
    """It shows nothing, least of all what another client has sent."""
    with start_program(environment, "failures.py", "serve") as program:
        assert program.ask("/keep", "X-Secret: one").body == b"kept"
        lines = program.ask("/kept", "X-Secret: two").body.decode().splitlines()
        assert len(lines) == 8
        assert all(line.endswith(": the request has ended: its function has returned") for line in lines), lines
        program.ask("/stop")


STOPS = """
import threading
from monkey import Server
def start():
    server = Server("[SERVER]\\n    Listen 127.0.0.1:0\\n")
    server.start()
    return server
def stop_in_thread(server):
    thread = threading.Thread(target=lambda: (server.stop(), print("stopped", server.running)))
    thread.start()
    return thread
server = start()
server.stop()
print(server.running)
server.stop()
server.start()
server.close()
server = start()
thread = stop_in_thread(server)
server.serve()
thread.join()
server = start()
thread = stop_in_thread(server)
while server.running:
    server.run_once(10)
thread.join()
server.close()
"""


def test_stop(environment):
    """It waits for the end of the server, also in another thread than that of serve() or run_once()."""
    run = run_python(environment, STOPS)
    assert run.stdout == "False\nstopped False\nstopped False\n", run.stderr


@pytest.mark.parametrize("call", [
    "Server('[SERVER]\\n    Listen 127.0.0.1:0\\0\\n[STATUS]\\n')", "Server('', '/srv\\0/www')",
    "Server().handle('GET\\0', '/a')", "Server().handle('GET', '/a\\0b')",
])  # fmt: skip
def test_a_nul_is_an_error(environment, call):
    run = run_python(environment, f"from monkey import Server\n{call}\n")
    assert re.search(r"^ValueError: .* contains a NUL$", run.stderr, re.M), run.stderr


# ── WSGI ──


@pytest.fixture
def pieces(environment, tmp_path):
    program = start_program(environment, "pieces.py", tmp_path)
    yield program
    if program.process.poll() is None:
        program.process.send_signal(signal.SIGINT)
    program.process.communicate(timeout=60)


@pytest.mark.parametrize("path, status, body, length", [
    ("/list", 200, b"abc", "3"), ("/tuple", 200, b"a", "1"), ("/generator", 200, b"abc", None),
    ("/empty", 200, b"", "0"),
    ("/empty-generator", 200, b"", "0"), ("/length", 200, b"ab", "2"),
    ("/no-more", 200, b"ab", "2"), ("/late", 203, b"late", None),
    ("/replaced", 502, b"replaced", "8"), ("/written", 200, b"written,yielded", None),
])  # fmt: skip
def test_wsgi_responses(pieces, path, status, body, length):
    response = pieces.ask(path)
    assert (response.status, response.body, response["Content-Length"]) == (status, body, length)
    head = pieces.ask(path, method="HEAD")
    assert (head.status, head.body) == (status, b"")
    assert head["Content-Length"] in (length, None)


def test_wsgi_large_pieces(pieces):
    assert pieces.ask("/large").body == b"y" * 3_000_000 + b"z"


@pytest.mark.parametrize("path", ["/text", "/number", "/numbers", "/no-start", "/two-starts", "/bad-status",
                                  "/bad-length", "/bad-header", "/too-long", "/fails"])  # fmt: skip
def test_wsgi_applications_that_fail(pieces, path):
    assert pieces.ask(path).status == 500
    assert pieces.ask("/list").body == b"abc"


def test_wsgi_length_that_is_not_reached(pieces):
    """The response is cut."""
    with Client(pieces.address) as client:
        client.send(request("/too-short"))
        assert client.head().status == 200
        assert client.rest() == b"a"
    assert pieces.ask("/too-short", method="HEAD").status == 200
    assert pieces.ask("/list").body == b"abc"


@pytest.mark.parametrize("path, ends", [("/fails-late", False), ("/exit-late", True), ("/exit", True)])
def test_wsgi_failure_after_the_head(pieces, path, ends):
    with Client(pieces.address) as client:
        client.send(request(path))
        if path == "/exit":
            assert client.head().status == 500
        else:
            client.head()
            assert not client.rest().endswith(b"0\r\n\r\n")  # it is cut
    if ends:
        pieces.process.communicate(timeout=60)
        assert pieces.process.returncode == 3
    else:
        assert pieces.ask("/list").body == b"abc"


def test_wsgi_pieces_are_sent_as_they_are_made(pieces, tmp_path):
    with Client(pieces.address) as client:
        client.send(request("/between"))
        client.head()
        client.until(b"first,")
        (tmp_path / "go").touch()
        client.until(b"last")


def test_wsgi_waits_for_a_client_that_does_not_read(pieces):
    """It makes no more pieces than sockets take, serves others, and closes the iterable when the client leaves."""

    def counts():
        return json.loads(pieces.ask("/counts").body)

    def has_stopped():
        before = counts()["made"]
        return before and counts()["made"] == before

    with Client(pieces.address) as client:
        client.send(request("/endless"))
        client.head()
        await_true(has_stopped, what="the end of the pieces")
        assert counts()["made"] < 10_000 and counts()["closed"] == 0
    await_true(lambda: counts()["closed"] == 1, what="the end of the response")


# What the variables of PEP 3333 and of RFC 3875 depend on: raw requests.
REQUESTS = {
    "plain": "GET /environment?a=b%20c HTTP/1.1\r\nHost: Example.org:8080\r\n",
    "no-query": "GET /environment HTTP/1.1\r\nHost: h\r\n",
    "http-1.0-without-host": "GET /environment HTTP/1.0\r\n",
    "absolute": "GET http://other.example:81/environment?q HTTP/1.1\r\nHost: h\r\n",
    "underscore": "GET /environment HTTP/1.1\r\nHost: h\r\nX_Auth_User: admin\r\n",
    "both": "GET /environment HTTP/1.1\r\nHost: h\r\nX-Auth-User: joe\r\nX_Auth_User: admin\r\nX-AUTH-USER: jim\r\n",
    "odd-names": "GET /environment HTTP/1.1\r\nHost: h\r\nX.A: b\r\nX!B: c\r\nX-1: d\r\n",
    "cookies": "GET /environment HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\nCookie: b=2\r\n",
    "lists": "GET /environment HTTP/1.1\r\nHost: h\r\nAccept: a/b\r\nAccept: c/d\r\nVia: 1.1 x\r\n",
    "proxy": "GET /environment HTTP/1.1\r\nHost: h\r\nProxy: http://evil\r\nProxy-Authorization: x\r\n",
    "connection": "GET /environment HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
                  "Keep-Alive: 5\r\nTE: trailers\r\n",
    "body": "POST /environment HTTP/1.1\r\nHost: h\r\nContent-Type: a/b\r\nContent-Length: 3\r\n",
    "empty-body": "POST /environment HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n",
    "chunks": "POST /environment HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n",
    "latin-1": "GET /environment HTTP/1.1\r\nHost: h\r\nX-A: \xe4\r\n",
    "range": "GET /environment HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\nAccept-Encoding: gzip\r\n",
    "expect": "POST /environment HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n",
}  # fmt: skip
BODIES = {"body": b"abc", "expect": b"abc", "chunks": b"3\r\nabc\r\n0\r\n\r\n"}
# those of files, of ports, and of the one program
OF_SCRIPTS = {"SCRIPT_FILENAME", "SCRIPT_NAME", "PATH_INFO", "DOCUMENT_ROOT", "DOCUMENT_URI", "PATH_TRANSLATED",
              "REDIRECT_STATUS", "SERVER_PORT", "REMOTE_PORT", "PWD", "SHLVL", "_", "LC_CTYPE", "OLDPWD"}  # fmt: skip


def ask_raw(address, name):
    with Client(address) as client:
        client.send(REQUESTS[name].encode("latin-1") + b"\r\n" + BODIES.get(name, b""))
        return client.response()


@pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins")
def test_wsgi_environment_is_that_of_cgi(pieces, serve, tmp_path):
    """The same variables with the same values as a script gets, for each request."""
    folder = write_scripts(tmp_path / "scripts", {"environment": ENVIRONMENT})
    server = serve(text=section("CGI", {"Match": "/environment", "Script": folder / "environment"}))
    server.baseline += 2
    for name in REQUESTS:
        script, body = variables(ask_raw(server.addresses[0], name).body)
        found = json.loads(ask_raw(pieces.address, name).body)
        assert found.pop("body").encode("latin-1") == body, name
        assert found["PATH_INFO"] == "/environment" and found["SCRIPT_NAME"] == ""
        assert found["wsgi.url_scheme"] == "http"
        plain = {key: value for key, value in found.items() if key not in OF_SCRIPTS and "." not in key}
        script = {key: value.encode("utf-8", "surrogateescape").decode("latin-1")
                  for key, value in script.items() if key not in OF_SCRIPTS}  # fmt: skip
        assert plain == script, name


def test_wsgi_environment_of_clients(environment, tmp_path):
    program = start_program(environment, "pieces.py", tmp_path)
    with Client(program.address) as client:
        found = json.loads(client.ask("/environment").body)
        port = client.sock.getsockname()[1]
    assert found["REMOTE_ADDR"] == "127.0.0.1" and found["REMOTE_PORT"] == str(port)
    assert found["SERVER_PORT"] == str(program.address[1]) and found["SERVER_NAME"]
    program.process.send_signal(signal.SIGINT)
    program.process.communicate(timeout=60)
