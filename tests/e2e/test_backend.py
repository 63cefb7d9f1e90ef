# SPDX-License-Identifier: Apache-2.0
"""The backends of the tests of proxies (harness/backend.py) do what their scripts say."""

import contextlib
import http.client
import socket
import ssl

import pytest
from harness.backend import (
    Backend,
    MalformedRequest,
    answer,
    echo,
    echo_websocket,
    never_read,
    replay,
    reset_at_once,
    stay_silent,
)
from harness.certificates import Authority
from harness.client import Client
from harness.messages import chunked, lines, request
from harness.websocket import CLOSE, TEXT, frame

pytestmark = pytest.mark.single_protocol
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
POST = lines("POST /a?b HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked")


def dial(backend):
    host, port = backend.address.split(":")
    return Client((host, int(port)))


def ask(backend, data=request("/")):
    """Everything that the backend sends in answer to these bytes, until it closes."""
    with dial(backend) as client:
        client.send(data)
        return client.rest()


def test_a_head_in_pieces_and_a_reset():
    pauses = []

    def script(peer):
        peer.request()
        peer.send_pieces(HEAD[:20], between=pauses.append)
        peer.reset()

    with Backend(script) as backend, dial(backend) as client:
        client.send(request("/"))
        assert client.exactly(20) == HEAD[:20]
        with pytest.raises(ConnectionResetError):
            client.sock.recv(1)
        assert pauses == list(range(1, 20))


def test_a_reset_while_the_script_waits():
    """The client gets the reset, whatever socket has the descriptor then."""
    with Backend(answer()) as backend, contextlib.ExitStack() as others:
        for number in range(20):
            client = others.enter_context(dial(backend))
            client.send(request("/"))
            client.until(b"hello")
            backend.peers[number].reset()
            for other in socket.socketpair():
                others.enter_context(other)
            with pytest.raises(OSError):
                client.sock.sendall(request("/"))
                client.sock.recv(1)
        backend.wait_open(0)


def test_requests_are_recorded_and_counted():
    with Backend(answer()) as backend:
        host, port = backend.address.split(":")
        for count in (1, 2):
            client = http.client.HTTPConnection(host, int(port))
            for _ in range(count):
                client.request("POST", "/x", body=b"body", headers={"X-Name": "value"})
                assert client.getresponse().read() == b"hello"
            client.close()
            backend.wait_open(0)
        assert [len(peer.requests) for peer in backend.peers] == [1, 2]
        assert (backend.accepted, backend.open, backend.open_max) == (2, 0, 1)
        got = backend.wait_requests(3)[-1]
        assert (got.method, got.target, got["x-name"], got.body) == ("POST", "/x", "value", b"body")
        assert backend.peers[0].raw == got.raw


def test_connections_that_are_open_at_once():
    with Backend(stay_silent) as backend:
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(dial(backend))
            backend.wait_open(3)
        backend.wait_open(0)
        assert backend.open_max == 3


def test_chunks_and_trailers_both_ways():
    with Backend(answer(chunks=[b"a", b"bc"], trailer=b"Sum: 3\r\n", count=1)) as backend:
        reply = ask(backend, POST + chunked(b"one", b"two", trailer=b"Check: 1\r\n"))
        assert reply.endswith(b"\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\nSum: 3\r\n\r\n")
        (got,) = backend.requests
        assert got.body == b"onetwo" and got.trailers == [("Check", "1")]
        assert got.raw == POST + chunked(b"one", b"two", trailer=b"Check: 1\r\n")


def test_interim_responses_and_an_echo():
    def script(peer):
        assert peer.head()["Expect"] == "100-continue"
        peer.interim(103, "Link: </a>; rel=preload")
        peer.interim(100)
        peer.respond(peer.body())

    with Backend([script, echo]) as backend:
        with dial(backend) as client:
            client.send(lines("PUT / HTTP/1.1", "Host: h", "Expect: 100-continue", "Content-Length: 2"))
            assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 103 ")
            assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
            client.send(b"ab")
            assert client.rest().endswith(b"\r\n\r\nab")
        with dial(backend) as client:
            client.send(request("/e", method="POST", body=b"xyz") * 2)
            for _ in range(2):
                assert b"Echo: POST /e\r\n" in client.until(b"\r\n\r\n")
                assert client.exactly(3) == b"xyz"


@pytest.mark.parametrize("end", ["close", "reset", "half_close", "wait"])
def test_ends_of_responses(end):
    with Backend(replay(HEAD + b"he", size=7, end=end)) as backend, dial(backend) as client:
        client.send(request("/"))
        assert client.exactly(len(HEAD) + 2) == HEAD + b"he"
        if end == "reset":
            with pytest.raises(ConnectionResetError):
                client.sock.recv(1)
        elif end != "wait":
            assert client.sock.recv(1) == b""


def test_what_does_not_answer():
    with Backend(reset_at_once) as backend, pytest.raises(ConnectionResetError), dial(backend) as client:
        client.sock.recv(1)
    with Backend(never_read, rcvbuf=4096) as backend, dial(backend) as client:
        client.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.sock.sendall(b"x" * (8 << 20))
        backend.tell("end")
        backend.wait_open(0)
    with Backend(answer(), accepts=False) as backend:
        backend.fill_backlog()
        with pytest.raises(TimeoutError):
            socket.create_connection(backend.listener.getsockname(), timeout=0.2)
    with Backend(answer(count=1)) as backend:
        port = backend.listener.getsockname()[1]
        backend.refuse()
        with pytest.raises(ConnectionRefusedError):
            dial(backend)
        with Backend(answer(count=1), port=port) as again:
            assert ask(again).endswith(b"hello")


def test_connections_wait_until_they_are_accepted():
    with Backend(answer(count=1), accepts=False) as backend, dial(backend) as client:
        client.send(request("/"))
        assert backend.accepted == 0
        backend.start()
        assert client.rest().endswith(b"hello")


def test_unix_sockets(tmp_path):
    with Backend(replay(HEAD + b"hello", size=1), path=tmp_path / "app.sock") as backend:
        assert backend.url == f"unix:{tmp_path}/app.sock"
        with Client(backend.address) as client:
            client.send_in_background(request("/"))
            assert client.rest() == HEAD + b"hello"


def test_tls(tmp_path):
    ca = Authority(tmp_path / "ca")
    trusting = ssl.create_default_context(cafile=ca.cert)
    trusting.set_alpn_protocols(["http/1.1"])
    names = []

    def script(peer):
        names.append((peer.server_name, peer.sock.selected_alpn_protocol()))
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")

    with Backend(script, tls=ca.make("app", "localhost"), alpn=["http/1.1"]) as backend:
        host, port = backend.address.split(":")
        with socket.create_connection((host, int(port))) as plain:
            with trusting.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as client:
                client.sendall(request("/"))
                reply = b"".join(iter(lambda: client.recv(100), b""))  # a missing close_notify is an error
        assert reply.endswith(b"until the end") and names == [("localhost", "http/1.1")]
        with socket.create_connection((host, int(port))) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            backend.wait_until(lambda: backend.failed_handshakes, "a handshake that fails")


def test_websockets():
    with Backend(echo_websocket) as backend, dial(backend) as client:
        client.send(lines("GET / HTTP/1.1", "Host: h", "Sec-WebSocket-Key: x"))
        assert b" 101 " in client.until(b"\r\n\r\n")
        for size in (3, 300, 70_000):
            message = frame(TEXT, b"x" * size, key=None)
            client.send(frame(TEXT, b"x" * size))
            assert client.exactly(len(message)) == message
        client.send(frame(CLOSE, b"\x03\xe8"))
        assert client.rest() == frame(CLOSE, b"\x03\xe8", key=None)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        b"GET /\r\n\r\n",
        POST[:-2] + b"Content-Length: 3\r\n\r\n0\r\n\r\n",
        POST + b"0x1\r\na\r\n0\r\n\r\n",
        POST + b"1\r\nabc0\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
    ],
)
def test_malformed_requests_fail_the_test(data):
    with pytest.raises(MalformedRequest), Backend(answer()) as backend:
        ask(backend, data)
        backend.wait_requests(1)
