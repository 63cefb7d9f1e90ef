# SPDX-License-Identifier: Apache-2.0
"""The n-th allocation of an exchange with a backend fails: the client sees it, and the next exchange is as usual."""

import pytest

from harness import build
from harness.backend import Backend, echo, echo_websocket
from harness.certificates import Authority
from harness.failing_memory import fail_each, only_sanitized
from harness.messages import chunked, lines, request
from harness.proxies import TEXT, proxy_section
from harness.server import await_true
from harness.ways import WAYS
from harness.websocket import WebSocket

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
    only_sanitized,
]
BODY, LARGE = b"x" * 40_000, b"x" * 4_000_000


def respond_in_chunks(peer):
    """The head and each chunk come in separate writes; every second connection ends with the response."""
    while True:
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, "Trailer: A", "Transfer-Encoding: chunked"))
        peer.flush()
        for _ in range(3):
            peer.send(b"%x\r\n%s\r\n" % (len(BODY), BODY))
        peer.send(b"0\r\nA: b\r\n\r\n")
        if peer.number % 2:
            return


def ask_get(client):
    return client.ask("/a?b")


def ask_upload(client):
    client.send(request("/up", "Content-Type: text/plain", f"Content-Length: {len(BODY)}", method="POST") + BODY)
    return client.response(method="POST")


def ask_large_upload(client):
    client.send_in_background(request("/", f"Content-Length: {len(LARGE)}", method="POST") + LARGE)
    return client.response(method="POST")


def ask_chunked(client):
    head = lines("POST /up HTTP/1.1", "Host: localhost", "Content-Type: text/plain", "Transfer-Encoding: chunked")
    client.send(head + chunked(BODY, BODY))
    return client.response(method="POST")


def ask_received(client):
    head = lines("POST /up HTTP/1.1", "Host: localhost", "Content-Type: text/plain", "Transfer-Encoding: chunked")
    client.send(head + chunked(*[BODY] * 10))
    return client.response(method="POST")


def ask_h2(client):
    return client.ask("/a?b", method="POST", body=BODY)


def respond_large(peer):
    while True:
        peer.request()
        try:
            peer.respond(LARGE, TEXT)
        finally:
            peer.backend.tell("sent")


def name_file(peer):
    while True:
        peer.request()
        peer.respond(b"", TEXT, "X-Accel-Redirect: /file")


def each(server, connect, ask):
    """Fails each allocation of an exchange on its own connection."""

    def exchange():
        with connect() as client:
            return ask(client).status

    assert fail_each(server, exchange) > 3


@pytest.mark.parametrize("ask", [ask_get, ask_upload, ask_chunked])
@pytest.mark.parametrize("script", [echo, respond_in_chunks])
def test_http1(serve, script, ask):
    with Backend(script) as backend:
        server = serve(text=proxy_section(backend))
        each(server, server.connect, ask)


def test_headers_of_the_connection(serve):
    """What Connection names is not passed on, also if its lines cannot be joined."""
    named = ["Connection: close, X-One", "X-One: secret", "X-Two: secret", "Connection: X-Two"]

    def respond(peer):
        peer.request()
        peer.respond(b"", TEXT, *named)

    def ask(client):
        got = client.ask("/", *named)
        assert got["X-One"] is None and got["X-Two"] is None
        return got

    with Backend(respond) as backend:
        server = serve(text=proxy_section(backend))
        each(server, server.connect, ask)
        assert backend.requests and not any(got["X-One"] or got["X-Two"] for got in backend.requests)


def test_splice(serve):
    """A body that is moved through a pipe."""
    with Backend(respond_large) as backend:
        server = serve(text=proxy_section(backend))
        each(server, server.connect, ask_get)


def test_splice_of_a_request(serve):
    with Backend(echo) as backend:
        server = serve(text=proxy_section(backend))
        each(server, server.connect, ask_large_upload)


def test_buffer(serve):
    """A client that takes the response when the backend has sent it: from memory and a file."""

    def ask_late(client):
        client.send(request("/"))
        head = client.head()
        if head.status == 200:
            assert backend.events("sent").wait(30)
            backend.events("sent").clear()
            assert client.exactly(len(LARGE)) == LARGE
        return head

    with Backend(respond_large) as backend:
        server = serve(text=proxy_section(backend, {"BufferResponse": "128K 8M"}))
        each(server, lambda: server.connect(rcvbuf=4096), ask_late)


def test_received_requests(serve):
    """Kept in memory and a file."""
    with Backend(echo) as backend:
        server = serve(text=proxy_section(backend, {"SpoolRequest": "On"}))
        each(server, server.connect, ask_received)


def test_named_files(serve, tmp_path):
    (tmp_path / "file").write_bytes(BODY)
    with Backend(name_file) as backend:
        server = serve(text=proxy_section(backend, {"SendFile": tmp_path}))
        each(server, server.connect, ask_get)


def test_requests_whose_clients_leave(serve):
    """Amid the body; the server has noticed that when the exchange is over."""
    with Backend(respond_large) as backend:
        server = serve(text=proxy_section(backend, {"OnClientLeave": "Finish", "KeepAlive": "0"}))
        most = server.descriptors()  # so the connection to the backend has ended, too

        def leave(client):
            client.send(request("/"))
            head = client.head()
            client.reset()
            await_true(lambda: server.descriptors() <= most, what="the close")
            return head

        each(server, lambda: server.connect(rcvbuf=4096), leave)


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
@pytest.mark.parametrize("script", [echo, respond_in_chunks])
def test_http2(serve, script):
    with Backend(script) as backend:
        server = serve(text=proxy_section(backend))
        each(server, server.connect_h2, ask_h2)


def test_tls(serve, tmp_path):
    """Of a backend; every second connection is a new one."""
    ca = Authority(tmp_path)
    with Backend(respond_in_chunks, tls=ca.make("localhost", "localhost", "IP:127.0.0.1")) as backend:
        server = serve(text=proxy_section(backend, {"TlsCA": ca.cert}))
        each(server, server.connect, ask_get)


def test_websocket(serve):
    with Backend(echo_websocket) as backend:
        server = serve(text=proxy_section(backend))
        server.way = WAYS["h1"]

        def exchange():
            with server.connect() as client:
                socket = WebSocket(server, client=client, do_handshake=False)
                socket.begin(*socket.handshake())
                status = socket.read_head().status
                if status == 101:
                    socket.assert_echo("hello")
                return 200 if status == 101 else status

        assert fail_each(server, exchange) > 3
