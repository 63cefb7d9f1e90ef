# SPDX-License-Identifier: Apache-2.0
"""The plugin proxy between backends and clients that are broken or hostile."""

import contextlib
import signal
import subprocess
import sys
import threading

import pytest

from harness import build
from harness.backend import Backend, answer, replay, stay_silent
from harness.certificates import Authority
from harness.client import Client, ProtocolError
from harness.few_descriptors import fail_each_descriptor_of_new
from harness.h2 import H2Client
from harness.messages import CLOSE, chunked, lines, request, sized
from harness.proxies import TEXT, proxy_section
from harness.server import send_signal
from harness.services import reload

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]
needs_tls = pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls")
needs_h2 = pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
MEGABYTE = 1 << 20
OK = lines("HTTP/1.1 200 OK", TEXT, sized(b"hello")) + b"hello"


@pytest.fixture
def proxy(serve):
    """A server whose default host passes requests to a backend."""

    def start(backend, keys=None, settings=None, **rest):
        return serve({"Workers": 1, "MinBodyRate": 0, **(settings or {})}, text=proxy_section(backend, keys), **rest)

    return start


def freeze(server):
    """The server sees all that happens until thaw() in one turn."""
    send_signal(server.process, signal.SIGSTOP)


def thaw(server):
    server.process.send_signal(signal.SIGCONT)


def check(server, backend_answers=b"hello"):
    with server.connect() as client:
        assert client.ask("/check").body == backend_answers


# ── backends that end ──


PARTS = {
    "before the head": b"",
    "in the head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "behind the head": lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 100000"),
    "in the body": lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 100000") + b"x" * 50000,
    "in a chunk": lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked") + b"fff\r\nhello",
    "behind a chunk": lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n",
}


@pytest.mark.parametrize("end", ["close", "reset", "half_close"])
@pytest.mark.parametrize("part", PARTS)
def test_killed_amid_an_upload(proxy, part, end):
    """The client gets 502, or sees that the response is cut."""

    def die(peer):
        peer.head()
        if peer.last.target == "/check":
            peer.respond(b"hello", TEXT)
            return
        peer.exactly(1000)
        peer.send(PARTS[part])
        if end == "reset":
            peer.flush()
            peer.reset()
        elif end == "half_close":
            peer.half_close()
            peer.wait_end()

    with Backend(die) as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.send(lines("POST / HTTP/1.1", "Host: a", f"Content-Length: {MEGABYTE}") + b"x" * 5000)
            with pytest.raises((ProtocolError, ConnectionError)):
                assert client.response("POST").status == 502
                raise ConnectionError
        check(server)


STARTS_AN_ANSWER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
client, _ = listener.accept()
client.recv(1000)
client.sendall(bytes.fromhex(sys.argv[1]))
print("sent", flush=True)
client.recv(1)
sys.stdin.read()
"""


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("part", PARTS)
def test_a_process_that_is_killed(proxy, part, method):
    """With SIGKILL: the kernel ends its connection, with a reset if bytes of an upload are unread."""
    command = [sys.executable, "-c", STARTS_AN_ANSWER, PARTS[part].hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            server = proxy(None, {"To": f"http://127.0.0.1:{int(process.stdout.readline())}"})
            with server.connect() as client:
                upload = f"Content-Length: {MEGABYTE}" if method == "POST" else "A: b"
                client.send(request("/", upload, method=method) + b"x" * 5000 * (method == "POST"))
                assert process.stdout.readline() == "sent\n"
                process.kill()
                with pytest.raises((ProtocolError, ConnectionError)):
                    assert client.response(method).status == 502
                    raise ConnectionError
            with server.connect() as client:
                assert client.ask("/").status == 502
        finally:
            process.kill()


ANSWERS_AND_IDLES = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
client, _ = listener.accept()
client.recv(1000)
client.sendall(bytes.fromhex(sys.argv[1]))
sys.stdin.read()
"""


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "at once"])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("again", [True, False], ids=["another process", "none"])
def test_a_process_that_is_killed_with_an_idle_connection(proxy, again, method, seen):
    """The next request goes to the process that listens then; a POST may have been sent to the dead one, and is not
    repeated. The end of the connection comes before the request, or both are there in one turn."""
    command = [sys.executable, "-c", ANSWERS_AND_IDLES, OK.hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline())
        server = proxy(None, {"To": f"http://127.0.0.1:{port}"})
        with contextlib.ExitStack() as stack, server.connect() as client:
            stack.callback(process.kill)
            assert client.ask("/1").body == b"hello"
            if not seen:
                freeze(server)
            process.kill()
            process.wait()
            other = stack.enter_context(Backend(serve_all, port=port)) if again else None
            client.send(request("/2", method=method, body=b"x" * 10 if method == "POST" else b""))
            if not seen:
                thaw(server)
            got = client.response(method)
            assert got.status in {("GET", True): (200,), ("POST", True): (200, 502)}.get((method, again), (502,))
            assert len(other.requests if again else []) == (got.status == 200)
            assert client.ask("/3").status == (200 if again else 502)


def test_a_body_that_ends_with_the_connection(proxy):
    body = b"x" * 300_000
    with Backend(replay(lines("HTTP/1.1 200 OK", TEXT) + body, end="half_close")) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/").body == body


def test_half_closed_at_once(proxy):
    """A backend that has said all at once, and then reads."""

    def half_close(peer):
        peer.request()
        peer.send(OK)
        peer.half_close()
        peer.wait_end()

    with Backend(half_close) as backend:
        with proxy(backend).connect() as client:
            for _ in range(3):
                assert client.ask("/").body == b"hello"
        assert len(backend.peers) == 3


# ── slow ones ──


@pytest.mark.parametrize("what", ["status line", "field", "interim responses"])
def test_a_head_without_end(proxy, what):
    """Bytes that come do not extend ResponseTimeout."""
    first, piece = {"status line": (b"HTTP/1.1 200 ", b"x"), "field": (b"HTTP/1.1 200 OK\r\nA: ", b"x"),
                    "interim responses": (b"", b"HTTP/1.1 1")}[what]  # fmt: skip

    def drip(peer):
        peer.request()
        peer.send(first)
        while peer.sock.fileno() >= 0:
            peer.send(piece)
            peer.flush()
            piece_wait.wait(0.05)

    piece_wait = threading.Event()
    with Backend(drip) as backend:
        with proxy(backend, {"ResponseTimeout": "200ms"}).connect() as client:
            assert client.ask("/").status in (502, 504)


BODIES = {
    "length": ("Content-Length: 12", lambda byte: byte, b""),
    "chunked": ("Transfer-Encoding: chunked", lambda byte: b"1\r\n" + byte + b"\r\n", b"0\r\n\r\n"),
}


def drip(framing, pause, end):
    """Sends a body byte by byte with pauses; stops before its `end`, and waits."""
    field, piece, last = BODIES[framing]

    def script(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, field))
        for byte in b"hello, world"[:end]:
            peer.backend.events("never").wait(pause)
            peer.send(piece(bytes([byte])))
        peer.send(last if end is None else b"")
        peer.wait_end()

    return script


@pytest.mark.parametrize("framing", BODIES)
def test_a_body_that_drips(proxy, framing):
    """Each byte begins ReadTimeout again: all pauses together are longer."""
    with Backend(drip(framing, 0.2, None)) as backend:
        with proxy(backend, {"ReadTimeout": "2s"}).connect() as client:
            assert client.ask("/").body == b"hello, world"


@pytest.mark.parametrize("framing", BODIES)
def test_a_body_that_stops_dripping(proxy, framing):
    """The client has what has come, and sees that it is not all."""
    with Backend(drip(framing, 0.02, 5)) as backend:
        server = proxy(backend, {"ReadTimeout": "300ms"})
        with server.connect() as client:
            client.send(request("/"))
            assert client.head().status == 200
            rest = client.rest()
            assert bytes(each for each in rest if each in b"hello, world") == b"hello"
            assert not rest.endswith(b"0\r\n\r\n")
        server.wait_log("it takes too long")
        backend.wait_open(0)


def test_a_client_that_sends_byte_by_byte(proxy):
    body = bytes(range(200))

    def take(peer):
        while True:
            peer.respond(peer.request().body, TEXT)

    with Backend(take) as backend:
        with proxy(backend).connect() as client:
            client.send(lines("POST / HTTP/1.1", "Host: a", sized(body)))
            for at in range(len(body)):
                client.send(body[at : at + 1])
            assert client.response("POST").body == body


def test_timeouts_of_the_backend_are_not_the_clients(serve):
    """A client that takes its time is not cut by a ReadTimeout that began while the backend was waited for."""
    rest = b"y" * 8_000_000

    def respond(peer):
        if peer.head().target == "/silent":
            peer.wait_end()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, f"Content-Length: {len(rest) + 5}") + b"hello")
        peer.wait("waits")
        peer.send(rest)

    with Backend(respond) as backend:
        silent = proxy_section(backend, {"Match": "/silent", "ResponseTimeout": "1500ms"})
        slow = proxy_section(backend, {"ReadTimeout": "4s"})
        server = serve({"Workers": 1, "SendBuffer": "64K", "KeepAliveTimeout": "60s"}, text=silent + slow)
        with server.connect(rcvbuf=65536) as slow, server.connect() as other:
            slow.send(request("/"))
            assert slow.head().status == 200 and slow.exactly(5) == b"hello"
            backend.tell("waits")
            for _ in range(3):  # together they take longer than ReadTimeout
                assert other.ask("/silent").status == 504
            assert slow.exactly(len(rest)) == rest


# ── no descriptors ──


def ask_for(body):
    def exchange(client):
        got = client.ask("/")
        assert got.status != 200 or got.body == body
        return got.status

    return exchange


@pytest.mark.parametrize("scheme", ["http", pytest.param("https", marks=needs_tls)])
def test_each_descriptor_fails_once(proxy, tmp_path, scheme):
    """The connection, and the pipe of a large body: without the pipe it is copied, as a body with TLS is."""
    body = b"x" * MEGABYTE
    tls = Authority(tmp_path).make("localhost", "localhost") if scheme == "https" else None
    keys = {"KeepAlive": 0, **({"TlsVerify": "Off"} if tls else {})}
    with Backend(answer(body, TEXT), tls=tls) as backend:
        assert fail_each_descriptor_of_new(lambda: proxy(backend, keys), ask_for(body), 4) == 1


def test_each_descriptor_of_a_named_file_fails_once(proxy, tmp_path):
    """The connection, the folder, and the file that the backend names."""
    (tmp_path / "a").write_bytes(b"file")
    with Backend(answer(b"", TEXT, "X-Accel-Redirect: /a")) as backend:
        keys = {"KeepAlive": 0, "SendFile": tmp_path}
        assert fail_each_descriptor_of_new(lambda: proxy(backend, keys), ask_for(b"file"), 4) == 3


# ── large ones ──


HEADS = [(31_000, "32K", 200), (32_690, "32K", 200), (40_000, "32K", 502), (40_000, "60K", 200), (61_350, "60K", 200)]
HEADS += [(61_440, "60K", 502), (70_000, "60K", 502)]


@pytest.mark.parametrize("size, most, status", HEADS)
def test_long_heads(proxy, size, most, status):
    """With the server's own lines the longest is longer than the buffer for output, which is 32 KB."""
    value = "x" * size
    data = lines("HTTP/1.1 200 OK", TEXT, f"A: {value}", sized(b"hello")) + b"hello"

    def respond(peer):
        while True:
            target = peer.request().target
            peer.send(data if target == "/" else OK)

    with Backend(respond) as backend:
        server = proxy(backend, {"MaxResponseHead": most})
        with server.connect() as client:
            for _ in range(2):
                got = client.ask("/")
                assert (got.status, got["A"]) == (status, value if status == 200 else None)
                assert status != 200 or got.body == b"hello"
        check(server)


@pytest.mark.parametrize("count", [100, 125, 126, 127, 128, 129])
def test_many_headers(proxy, count):
    """Of a response; a further one is 502, as the text of the plugin says."""
    fields = [TEXT, sized(b"hello")] + [f"A{n}: b" for n in range(count - 2)]

    def respond(peer):
        while True:
            target = peer.request().target
            peer.send(lines("HTTP/1.1 200 OK", *fields) + b"hello" if target == "/" else OK)

    with Backend(respond) as backend:
        server = proxy(backend)
        with server.connect() as client:
            got = client.ask("/")
            assert got.status == (502 if count > 128 else 200)
            assert count > 128 or [name for name, _ in got.fields].count(f"A{count - 3}") == 1
        check(server)


@pytest.mark.parametrize("count", [16, 17])
def test_many_interim_responses(proxy, count):
    def respond(peer):
        while True:
            target = peer.request().target
            peer.send((lines("HTTP/1.1 102 Processing") * count if target == "/" else b"") + OK)

    with Backend(respond) as backend:
        server = proxy(backend)
        with server.connect() as client:
            assert client.ask("/").status == (502 if count > 16 else 200)
        check(server)


def test_long_heads_for_a_slow_client(proxy):
    """Each may stop the connection in its middle, with others behind it."""
    value, count = "x" * 60_000, 50
    with Backend(answer(b"hello", TEXT, f"A: {value}")) as backend:
        server = proxy(backend, {"MaxResponseHead": "60K"}, {"SendBuffer": "16K", "MaxKeepAliveRequest": 0})
        with server.connect(rcvbuf=8192) as client:
            client.send(request("/") * count)
            backend.wait_requests(1)
            for _ in range(count):
                got = client.response()
                assert (got.status, got["A"], got.body) == (200, value, b"hello")


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_a_thousand_interim_responses(proxy, status):
    data = lines(f"HTTP/1.1 {status} Some", "Link: </a>") * 1000 + OK
    with Backend(replay(data, end="wait")) as backend:
        with proxy(backend, {"EarlyHints": "All"}).connect() as client:
            got = client.ask("/")
    assert (got.status, got["Proxy-Status"]) == (502, "monkey; error=http_protocol_error")


def test_a_malformed_chunk_at_once(proxy):
    """The head has not left yet: the client gets 502 rather than a cut."""
    data = lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked") + b"5\r\nhello\r\nxyz\r\n"
    with Backend(replay(data, end="wait")) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/").status == 502


def test_memory_of_an_upload(proxy):
    """A backend that does not read stops the client."""

    size = 50 * MEGABYTE

    def take_later(peer):
        peer.head()
        peer.wait("read")
        left = size - len(peer.buffer)
        while left:
            left -= len(peer.sock.recv(min(left, MEGABYTE)))
        peer.respond(b"hello", TEXT)

    with Backend(take_later, rcvbuf=65536) as backend:
        server = proxy(backend)
        with server.connect() as client:
            before = server.memory_kb()
            client.send_in_background(lines("POST / HTTP/1.1", "Host: a", f"Content-Length: {size}") + b"x" * size)
            backend.wait_accepted(1)
            assert not backend.events("read").wait(0.5)
            assert server.memory_kb() - before < 4000
            backend.tell("read")
            assert client.response("POST").body == b"hello"


# ── bytes behind a response ──


@pytest.mark.parametrize("excess", [OK, b"\r\n", b"x"])
def test_excess_behind_a_full_buffer(proxy, tmp_path, excess):
    """Bytes that stay in the socket, because those before them have filled the buffer, belong to no request."""
    room = 65536
    head = lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 65000")
    head = lines("HTTP/1.1 200 OK", TEXT, "A: " + "x" * (room - 65000 - len(head) - 5), "Content-Length: 65000")
    assert len(head) + 65000 == room

    def respond(peer):
        peer.request()
        if peer.number == 0:
            peer.wait("frozen")
            peer.send(head + b"y" * 65000 + excess)
            peer.backend.tell("sent")
            peer.wait_end()
        peer.respond(b"right", TEXT)

    with Backend(respond, path=tmp_path / "app.sock") as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.send(request("/1"))
            backend.wait_requests(1)
            freeze(server)
            backend.tell("frozen")
            assert backend.events("sent").wait(30)
            thaw(server)
            assert client.response().body == b"y" * 65000
            assert client.ask("/2").body == b"right"
        assert len(backend.peers) == 2


# ── kept connections that end at the moment of reuse ──


def end_at_the_second(peer):
    """The first connection ends when it gets the head of its second request; others serve all."""
    peer.request()
    peer.respond(b"hello", TEXT)
    peer.head()
    if peer.number == 0:
        peer.backend.tell("has head")
        peer.wait("end")
        peer.reset()
        peer.backend.tell("ended")
        return
    peer.body()
    peer.respond(peer.last.body or b"none", TEXT)


def serve_all(peer):
    while True:
        peer.respond(peer.request().body or b"none", TEXT)


def test_a_body_that_comes_while_it_is_sent_again(proxy):
    """It is not lost between two connections."""
    with Backend([end_at_the_second, serve_all]) as backend:
        server = proxy(backend)
        with server.connect() as client:
            assert client.ask("/1").body == b"hello"
            client.send(lines("PUT /2 HTTP/1.1", "Host: a", sized(b"0123456789")))
            assert backend.events("has head").wait(30)
            freeze(server)
            backend.tell("end")
            assert backend.events("ended").wait(30)
            client.send(b"0123456789")
            thaw(server)
            assert client.response("PUT").body == b"0123456789"
        assert [each.target for each in backend.requests] == ["/1", "/2"]


@pytest.mark.parametrize("fields, data", [(["Transfer-Encoding: chunked"], chunked()), (["Content-Length: 0"], b"")])
def test_an_empty_body_is_sent_again(proxy, fields, data):
    with Backend([end_at_the_second, serve_all]) as backend:
        backend.tell("end")
        with proxy(backend).connect() as client:
            assert client.ask("/1").body == b"hello"
            client.send(lines("PUT /2 HTTP/1.1", "Host: a", *fields) + data)
            assert client.response("PUT").body == b"none"
        assert [each.target for each in backend.requests] == ["/1", "/2"]


def post_many(proxy, script, count, threads=10):
    """The statuses of so many POSTs, by their number; the backend has each of 200 once, and none twice."""
    statuses = {}

    def post(first):
        with Client(server.addresses[0]) as client:
            for number in range(first, count, threads):
                statuses[number] = client.ask(f"/{number}", method="POST", body=b"x" * (number % 3000)).status

    with Backend(script) as backend:
        server = proxy(backend)
        workers = [threading.Thread(target=post, args=[first]) for first in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        done = [int(each.target[1:]) for each in backend.requests]
    assert len(statuses) == count and len(done) == len(set(done)), "lost, or twice"
    assert set(done) >= {number for number, status in statuses.items() if status == 200}
    return statuses


def reset_when_idle(peer):
    peer.request()
    peer.respond(b"hello", TEXT)
    peer.flush()
    peer.reset()


def serve_some_and_reset(peer):
    for _ in range(peer.number % 4 + 1):
        peer.request()
        peer.respond(b"hello", TEXT)
    peer.head()
    peer.reset()


def serve_while_fresh(peer):
    """Longer than the second for which an idle connection may take a POST."""
    peer.sock.settimeout(2)
    try:
        while True:
            peer.request()
            peer.respond(b"hello", TEXT)
    except AssertionError:  # idle for two seconds
        pass


COUNTS = [300, pytest.param(10_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("script", [reset_when_idle, serve_some_and_reset])
def test_posts_are_not_repeated(proxy, script, count):
    assert set(post_many(proxy, script, count).values()) <= {200, 502}


@pytest.mark.parametrize("count", COUNTS)
def test_posts_are_not_lost(proxy, count):
    assert set(post_many(proxy, serve_while_fresh, count).values()) == {200}


# ── HTTP/2 ──


@needs_h2
def test_early_response_over_http2(proxy):
    """The stream ends, and the connection serves others."""

    def refuse(peer):
        if peer.head().method == "POST":
            peer.send(lines("HTTP/1.1 413 Too Large", TEXT, sized(b"no")) + b"no")
            peer.wait_end()
        peer.body()
        peer.respond(b"hello", TEXT)

    with Backend(refuse) as backend:
        server = proxy(backend)
        with server.connect(kind=H2Client) as client:
            number = client.begin("/", method="POST", body=b"x" * 10_000, end=False)
            got = client.response(number)
            assert (got.status, got.body) == (413, b"no")
            assert client.ask("/").body == b"hello"


@needs_h2
def test_streams_that_are_reset(proxy):
    """Their connections to the backend end, and no other stream notices."""
    with Backend(lambda peer: stay_silent(peer) if peer.head().target == "/silent" else serve_rest(peer)) as backend:
        server = proxy(backend)
        with server.connect(kind=H2Client) as client:
            for _ in range(20):
                number = client.begin("/silent", method="POST", body=b"x" * 1000, end=False)
                backend.wait_until(lambda: backend.open >= 1, "a connection")
                client.cancel(number)
                backend.wait_open(0)
            assert client.ask("/").body == b"hello"


def serve_rest(peer):
    peer.body()
    peer.respond(b"hello", TEXT)


# ── reloads ──


def test_reloads_amid_exchanges(proxy):
    """Sections that change, go and come again: what was begun is ended as it was begun."""

    def respond(peer):
        while True:
            if peer.head().target.startswith("/half"):
                peer.send(lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 10") + b"hello")
                peer.body()
                peer.send(b"hello")
            else:
                peer.body()
                peer.respond(b"hello", TEXT)

    with Backend(respond) as backend:
        server = proxy(backend)
        site = server.conf / "sites" / "default"
        with_section = site.read_text()
        without = with_section.replace(proxy_section(backend), "")
        changed = [with_section + "    KeepAlive 1\n", without, with_section, with_section + "    Deadline 1h\n"]
        head = lines("POST /half HTTP/1.1", "Host: a", "Content-Length: 10", CLOSE)
        for turn in range(20):
            with server.connect() as client:
                client.send(head + b"x" * 5)
                assert client.head("POST").status == 200 and client.exactly(5) == b"hello"
                site.write_text(changed[turn % 4])
                reload(server)
                client.send(b"x" * 5)
                assert client.exactly(5) == b"hello"
            with server.connect() as client:
                assert client.ask("/x").status == (404 if turn % 4 == 1 else 200)
            if turn % 4 == 1:
                site.write_text(with_section)
                reload(server)


# ── descriptors ──


def test_few_descriptors(proxy):
    """Idle connections to a backend end when clients need their descriptors."""

    def answer_all_at_once(peer):
        peer.request()
        peer.wait("all")
        peer.respond(b"hello", TEXT)
        peer.wait_end()

    settings = {"Timeout": "60s", "KeepAliveTimeout": "60s"}
    with Backend([answer_all_at_once] * 12 + [serve_all]) as backend:
        server = proxy(backend, {"KeepAliveTimeout": "60s"}, settings, nofile=96)
        clients = [server.connect() for _ in range(12)]
        for client in clients:
            client.send(request("/"))
        backend.wait_requests(12)
        backend.tell("all")
        assert {client.response().body for client in clients} == {b"hello"}
        assert backend.open == 12
        for _ in range(100):
            server.connect().send(b"G")
        backend.wait_open(0)
        server.drop_clients()
        check(server, b"none")


# ── memory ──


@pytest.mark.budget
def test_memory_of_requests_that_wait(proxy):
    """With their connections to client and backend, of which the kernel's part does not count."""
    count = 400  # each has descriptors in this process, too
    with Backend(stay_silent) as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.send(request("/first"))
            backend.wait_accepted(1)
        backend.wait_open(0)
        before = server.memory_kb()
        for _ in range(count):
            server.connect().send(request("/"))
        backend.wait_accepted(count + 1)
        each = (server.memory_kb() - before) * 1024 / count
        print(f"{each:.0f} bytes for a request in flight")
        assert each <= 4096
        server.drop_clients()
        backend.wait_open(0)
