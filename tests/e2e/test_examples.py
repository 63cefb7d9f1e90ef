# SPDX-License-Identifier: Apache-2.0
"""The example plugins, built out of tree against the installed headers, by a C11 compiler that knows nothing else."""

import gzip
import re
import select
import shutil
import socket
import subprocess
import threading

import pytest

from harness import build
from harness.backend import Backend
from harness.messages import request
from harness.server import await_true, run, section, write_config

EXAMPLES = build.TOP / "docs" / "examples" / "plugins"
PAGE = build.TOP / "docs" / "guide" / "plugins.md"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.c"))

BUILT = f"-L{build.TOP / 'build' / build.PRESET / 'lib'}"
LIBRARIES = {"echo": [BUILT, "-lmonkey-kit", "-lz"], "visitor": [BUILT, "-lmonkey-kit"]}

pytestmark = pytest.mark.skipif(build.PRESET == "small", reason="the small build opens no modules")


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    built = build.TOP / "build" / build.PRESET
    subprocess.run(["cmake", "--install", built, "--prefix", folder], check=True, capture_output=True)
    return folder / "include"


@pytest.fixture(scope="module")
def examples(headers, tmp_path_factory):
    """All of them, and the one that the guide begins with, as shared objects in one folder."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "hello.c").write_text(re.search(r"```c\n(.*?)```", PAGE.read_text(), re.S)[1])
    for source in [folder / "hello.c", *(EXAMPLES / f"{name}.c" for name in NAMES)]:
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-g", "-shared", "-fPIC", "-pthread"]
        command += [f"-I{headers}", source, "-o", folder / f"{source.stem}.so", *LIBRARIES.get(source.stem, [])]
        subprocess.run(list(map(str, command)), check=True)
    return folder


@pytest.fixture
def configure(serve, examples, tmp_path):
    """Starts a server with examples; `host` is text behind the default host's own section."""

    def make(*names, settings=None, host="", files=None, load=()):
        root = tmp_path / "root"
        root.mkdir()
        for name, content in (files or {"a.txt": b"small letters\n"}).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        loaded = ["liana", *(examples / f"{name}.so" for name in names), *load, "static"]
        texts = {
            "plugins.load": section("PLUGINS", {"Load": loaded}),
            "sites/default": section("HOST", {"DocumentRoot": root}) + host,
        }
        return serve(settings, root=root, config=texts)

    return make


def test_each_has_a_test():
    assert NAMES == ["echo", "gate", "later", "meter", "relay", "shout", "visitor"]


def test_the_smallest(configure):
    assert configure("hello").connect().ask("/hello").body == b"Hello.\n"


def test_later(configure):
    server = configure("later", settings={"HandlerTimeout": "4s"})
    client, other = server.connect(), server.connect()
    client.send(b"GET /later?100 HTTP/1.1\r\nHost: h\r\n\r\n")
    assert other.ask("/a.txt").status == 200  # meanwhile
    assert client.response().body == b"Now.\n"
    assert other.ask("/later?x").status == 400
    assert other.ask("/later?9000").status == 503  # HandlerTimeout answers for it
    gone = server.connect()
    gone.send(b"GET /later?200 HTTP/1.1\r\nHost: h\r\n\r\n")
    gone.reset()
    assert server.connect().ask("/later?250").body == b"Now.\n"


GATE = "[GATE]\n    Match /private\n    Key one\n    Key two\n[GATE]\n    Match *.key\n    Key three\n"


def test_gate(configure):
    files = {"a.txt": b"", "private/b.txt": b"secret", "private/c.key": b""}
    client = configure("gate", host=GATE, files=files).connect()
    assert client.ask("/a.txt").status == 200
    assert client.ask("/private/b.txt").status == 403
    assert client.ask("/private/b.txt", "X-Key: three").status == 403
    assert client.ask("/private/b.txt", "X-Key: one").body == b"secret"
    assert client.ask("/private/b.txt", "X-Key: two").status == 200
    assert client.ask("/private/c.key", "X-Key: two").status == 403  # both gates must open


def test_shout(configure):
    big = b"abcdefgh" * 100_000
    client = configure("shout", files={"a.txt": b"small letters\n", "big.txt": big, "p.html": b"<p>html"}).connect()
    answer = client.ask("/a.txt")
    assert answer.body == b"SMALL LETTERS\n" and answer["Content-Length"] == "14" and answer["ETag"] is None
    assert client.ask("/big.txt").body == big.upper()
    assert client.ask("/p.html").body == b"<p>html"
    for ranges in ("0-4", "0-1,5-6", "100-"):
        whole = client.ask("/a.txt", f"Range: bytes={ranges}")
        assert (whole.status, whole.body, whole["Accept-Ranges"]) == (200, b"SMALL LETTERS\n", None)
    assert client.ask("/p.html", "Range: bytes=0-2").status == 206
    assert client.ask("/a.txt", method="HEAD")["Content-Length"] == "14"


def test_shout_gets_no_codings(configure):
    """Neither of a precompressed variant nor of a backend, which is asked for the whole text only."""
    zipped = gzip.compress(b"small letters\n")
    files = {"a.txt": b"small letters\n", "a.txt.gz": zipped, "p.css": b"p {}", "p.css.gz": gzip.compress(b"p {}")}
    accepts = ("Accept-Encoding: gzip", "Range: bytes=0-2", 'If-Range: "x"')

    def respond(peer):
        while True:
            got = peer.request()
            encoded = ["Content-Encoding: gzip"] if got["Accept-Encoding"] or got.target.endswith("/gz.txt") else []
            peer.respond(zipped if encoded else b"small letters\n", "Content-Type: text/plain", *encoded)

    with Backend(respond) as backend:
        host = "    Precompressed gzip\n" + section("PROXY", {"Match": "/app", "To": backend.url})
        with configure("shout", host=host, files=files, load=["proxy"]).connect() as client:
            assert client.ask("/p.css", accepts[0])["Content-Encoding"] == "gzip"
            got = client.ask("/a.txt", *accepts)
            assert (got.status, got.body, got["Content-Encoding"]) == (200, b"SMALL LETTERS\n", None)
            assert client.ask("/app/a.txt", *accepts).body == b"SMALL LETTERS\n"
            assert client.ask("/app/gz.txt", *accepts).body == zipped  # it is told of the coding, and leaves it alone
            assert client.ask("/app/p.css", *accepts).body == zipped
        text, _, style = backend.requests
        assert [text[name] for name in ("Accept-Encoding", "Range", "If-Range")] == [None] * 3
        assert [style[name] for name in ("Accept-Encoding", "Range", "If-Range")] == ["gzip", "bytes=0-2", '"x"']


def test_meter(configure):
    files = {"a.txt": b"x" * 1000, "big": b"y" * 3_000_000}
    server = configure("meter", settings={"Listen": "127.0.0.1:0 meter"}, files=files)
    with server.connect() as client:
        assert len(client.ask("/a.txt").body) == 1000
        assert len(client.ask("/big").body) == 3_000_000
    ((counted),) = server.wait_log(r"meter: (\d+) bytes in, (\d+) bytes out")
    assert int(counted[1]) > 50 and int(counted[2]) > 3_001_000


# ── visitor ──


def test_visitor(configure):
    client = configure("visitor").connect()
    first = client.ask("/visitor")
    rest = "; Max-Age=31536000; Path=/visitor; HttpOnly; SameSite=Lax"
    visitor, ident = re.fullmatch(r"(visitor=([0-9a-f]{32}))" + re.escape(rest), first["Set-Cookie"]).groups()
    assert first.body == b"Welcome"
    again = client.ask("/visitor", f"Cookie: {visitor}")
    assert again.body == b"You are " + ident.encode() and again["Set-Cookie"] is None
    other = client.ask("/visitor")
    assert other.body == b"Welcome" and ident not in other["Set-Cookie"]
    removed = client.ask("/visitor", f"Cookie: {visitor}", method="DELETE")
    gone = "; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/visitor; HttpOnly; SameSite=Lax"
    assert removed["Set-Cookie"] == "visitor=" + gone


IDENT = "0123456789abcdef" * 2


@pytest.mark.parametrize("fields", [
    [f"visitor={IDENT}"],
    [f"a=1; visitor={IDENT};b=2"],
    ["a=1", f"visitor={IDENT}", "b=2"],  # RFC 9113 section 8.2.3
    ["a=1; b=2", f"visitor={IDENT}; c=3"],
    [f"visitor={IDENT}", "visitor=" + "f" * 32],  # the first counts
    [f'Visitor=x; visitors=y; a="visitor"; visitor = {IDENT}'],
])
def test_cookies_of_requests(configure, fields):
    client = configure("visitor").connect()
    answer = client.ask("/visitor", *(f"Cookie: {field}" for field in fields))
    assert answer.body == b"You are " + IDENT.encode()


@pytest.mark.parametrize("field", [
    "", "visitor", "visitor=", f'visitor="{IDENT}"', f"VISITOR={IDENT}", f"x=visitor={IDENT}", f"visitor={IDENT}0",
    f"visitor={IDENT},b=2", f"__Host-visitor={IDENT}", "visitor=%00", "=" * 4000, ";" * 4000,
])
def test_no_cookie_of_that_name(configure, field):
    """What is no id is replaced by one."""
    answer = configure("visitor").connect().ask("/visitor", f"Cookie: {field}")
    assert answer.body == b"Welcome" and answer["Set-Cookie"].startswith("visitor=")


# ── echo ──


def open_websocket(server, path):
    client = server.connect()
    client.send(
        f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    head = client.until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ") and b"\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
    return client


def test_echo(configure):
    server = configure("echo", settings={"Workers": 2})
    one, two, three = (open_websocket(server, path) for path in ("/echo", "/all", "/all"))
    one.send(b"\x81\x85\0\0\0\0hello\x82\x83\0\0\0\0bin")
    assert one.exactly(12) == b"\x81\x05hello\x82\x03bin"
    three.send(b"\x81\x83\0\0\0\0all")
    for client in (two, three):
        assert client.exactly(5) == b"\x81\x03all"
    one.send(b"\x88\x82\0\0\0\0\x03\xe8")
    assert one.exactly(4) == b"\x88\x02\x03\xe8"
    assert one.rest() == b""  # it got no message of the others
    assert server.connect().ask("/echo").status == 400
    assert server.connect().ask("/a.txt").body == b"small letters\n"


# ── relay ──


@pytest.fixture
def backend():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        yield listener


@pytest.fixture
def relay(configure, backend):
    """A server that asks the backend."""
    port = backend.getsockname()[1]
    return configure("relay", settings={"Workers": 1}, host=f"[RELAY]\n    Backend 127.0.0.1:{port}\n")


def take(backend):
    """The next connection to the backend, and its question."""
    sock, _ = backend.accept()
    sock.settimeout(60)
    question = b""
    while not question.endswith(b"\n"):
        question += sock.recv(100)
    return sock, question


def test_relay(relay, backend):
    client, other = relay.connect(), relay.connect()
    client.send(request("/relay/what%20time"))
    sock, question = take(backend)
    assert question == b"what time\n"
    assert other.ask("/a.txt").status == 200  # meanwhile
    with sock:
        sock.sendall(b"12:")
        assert client.head().status == 200
        sock.sendall(b"00\n")
    assert client.chunks()[0] == b"12:00\n"
    assert client.ask("/relay/x", method="POST")["Allow"] == "GET"
    assert client.ask("/elsewhere").status == 404


def test_relay_waits_for_a_slow_client(relay, backend):
    client = relay.connect(rcvbuf=4096)
    client.send(request("/relay/all"))
    sock, _ = take(backend)
    text = bytes(range(256)) * 8_000
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)  # the kernel would make it larger
        sender = threading.Thread(target=lambda: (sock.sendall(text), sock.shutdown(socket.SHUT_WR)))
        sender.start()
        await_true(lambda: not select.select([], [sock], [], 0)[1], 60, "all buffers are full")
        assert client.response().body == text
        sender.join()


def test_relay_without_a_backend(relay, backend):
    backend.close()
    assert relay.connect().ask("/relay/x").status == 502
    relay.wait_log("relay: cannot connect to the backend: Connection refused")


def test_relay_checks_its_backend(configure, examples, tmp_path):
    conf = write_config(
        tmp_path / "conf",
        tmp_path,
        files={"plugins.load": section("PLUGINS", {"Load": ["liana", examples / "relay.so", "static"]})},
    )
    with open(conf / "sites" / "default", "a") as file:
        file.write("[RELAY]\n    Backend localhost\n")
    assert 'default:5:13: error: "Backend": the port is missing' in run("-c", conf, "-t").stderr


def test_relay_when_the_client_leaves(relay, backend):
    """While the backend answers: its connection is closed."""
    client = relay.connect()
    client.send(request("/relay/x"))
    sock, _ = take(backend)
    client.reset()
    with sock:
        assert sock.recv(1) == b""


def pass_turns(client):
    """When it returns, the worker has ended the turn of what came before, with its tasks."""
    for _ in range(2):
        assert client.ask("/a.txt").status == 200


def test_relay_when_the_client_leaves_a_dial(relay, backend):
    """Without mk_dial_cancel() the dial would call back with memory of an exchange that is over."""
    backend.listen(0)  # the kernel accepts one more connection, and drops further SYNs
    client, other, here = relay.connect(), relay.connect(), relay.connect()
    with socket.create_connection(backend.getsockname()):
        client.send(request("/relay/gone"))
        pass_turns(other)
        client.reset()
        pass_turns(other)
        here.send(request("/relay/here"))
        pass_turns(other)
    question = b""
    while not question:  # those that were made before have sent nothing
        sock, _ = backend.accept()
        with sock:
            sock.settimeout(60)
            question = sock.recv(100)
            assert question in (b"", b"here\n")
            if question:
                sock.sendall(b"yes")
    assert here.response().body == b"yes"
    relay.stop()


# ── C++ ──

GREET = build.TOP / "tests" / "plugins" / "cpp" / "greet.cpp"
CPP = {  # g++ complains about members that a designated initializer leaves out; there is no library of C++ in clang-14
    "clang++-14": ["-nostdlib++"],
    "g++": ["-Wno-missing-field-initializers"],
}


@pytest.mark.parametrize("compiler", [name for name in CPP if shutil.which(name)])
def test_a_plugin_in_cpp(configure, headers, examples, compiler):
    command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-shared", "-fPIC"]
    command += [*CPP[compiler], f"-I{headers}", GREET, "-o", examples / "greet.so"]
    subprocess.run(list(map(str, command)), check=True)
    server = configure("greet", settings={"Workers": 1}, host="[GREET]\n    Greeting good day\n")
    with server.connect() as client:
        assert client.ask("/greet").body == b"good day"
        assert client.ask("/greet?loud").body == b"GOOD DAY"
        assert client.ask("/a.txt").status == 200
    server.stop()
    assert "greet: 2 greetings" in server.log


def test_all_headers_are_for_cpp():
    included = set(re.findall(r"<monkey/([\w/]+\.h)>", GREET.read_text()))
    assert included == set(build.PUBLIC_HEADERS)


def test_the_pages_name_them():
    """The guide shows how each is built and loaded."""
    for name in NAMES:
        assert re.search(rf"examples/plugins/{name}\.c", PAGE.read_text()), name
