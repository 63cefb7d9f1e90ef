# SPDX-License-Identifier: Apache-2.0
"""What a request that is passed to a backend costs, and bodies that move without copies, from socket to socket."""

import array
import collections

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.client import Client
from harness.messages import lines, request, sized
from harness.proxies import TEXT, proxy_section
from test_budgets import ROLES, Trace

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins")

LEAST = 32768 + 4096  # a body of this length moves without copies, whatever came with its head
PIPES = 32  # of a worker


def make_body(size, seed=0):
    """No two places of it are equal."""
    return array.array("Q", range(seed << 32, (seed << 32) + size // 8 + 1)).tobytes()[:size]


@pytest.fixture
def proxy(serve):
    """A server whose default host passes requests to a backend."""

    def start(backend, keys=None, settings=None):
        return serve({"Workers": 1, **(settings or {})}, text=proxy_section(backend, keys))

    return start


def respond_sizes(peer):
    """To /N a body of N bytes."""
    while True:
        peer.respond(make_body(int(peer.request().target[1:])), TEXT)


# ── calls ──


@pytest.fixture
def count_calls(serve, tmp_path):
    """Counts the system calls that the worker makes while a client asks `rounds` times, one at a time."""

    def count(backend, rounds, ask, keys=None):
        settings = {"Workers": 1, "KeepAliveTimeout": "60s", "MaxKeepAliveRequest": 100_000}
        server = serve(settings, text=proxy_section(backend, keys))
        client = server.connect()
        for _ in range(3):
            ask(client)
        trace = Trace(server, tmp_path / "trace")
        for _ in range(rounds):
            ask(client)
        calls = collections.Counter(ROLES.get(name, name) for name, _ in trace.end())
        assert len(backend.peers) == 1
        return calls

    return count


def ask_small(client):
    assert client.ask("/").body == b"hello"


@pytest.mark.budget
def test_calls_of_a_kept_request(count_calls):
    """Six: wait, read the request, write it to the backend; wait, read the response, write it to the client. The IDs of
    255 requests, which a backend gets, are made of the random bytes of one call."""
    rounds = 200
    with Backend(answer(b"hello", TEXT)) as backend:
        calls = count_calls(backend, rounds, ask_small)
    assert calls.pop("getrandom", 0) <= 1
    often = {name: number / rounds for name, number in calls.items() if number > 3}  # the wait for the next one
    assert sum(calls.values()) <= 6 * rounds + 3, calls
    assert {name: round(number) for name, number in often.items()} == {"epoll_wait": 2, "recvfrom": 2, "sendmsg": 2}


@pytest.mark.budget
def test_calls_of_a_large_response(count_calls):
    """Its bytes are not copied: what came with the head is written once, the rest moves into a pipe and out of it."""
    size, rounds = 200 * 1024, 20

    def ask(client):
        assert client.ask(f"/{size}").body == make_body(size)

    with Backend(respond_sizes) as backend:
        calls = count_calls(backend, rounds, ask)
    assert calls["splice"] >= 2 * rounds, calls
    assert calls["sendmsg"] <= 2.2 * rounds, calls  # the request, and the head with the first bytes
    assert calls["pipe2"] == 0, calls  # it is kept
    assert not {"openat", "pwrite64", "mmap", "brk"} & set(calls), calls  # nothing waits in memory or a file


@pytest.mark.budget
def test_calls_of_a_response_that_pauses(count_calls):
    """Its first bytes are held back for those that follow, unless there are none: then one more call has them leave."""
    rounds, first, rest = 20, b"x" * 100, b"y" * 99_900

    def pause(peer):
        while True:
            peer.request()
            peer.send(lines("HTTP/1.1 200 OK", TEXT, f"Content-Length: {len(first + rest)}") + first)
            peer.wait("continue")
            peer.backend.events("continue").clear()
            peer.send(rest)

    with Backend(pause) as backend:

        def ask(client):
            client.send(request("/"))
            assert client.head().status == 200
            assert client.exactly(len(first)) == first
            backend.tell("continue")
            assert client.exactly(len(rest)) == rest

        calls = count_calls(backend, rounds, ask)
    assert calls["setsockopt"] == rounds, calls


# ── bytes ──

SIZES = (32767, 32768, LEAST - 1, LEAST, LEAST + 1, 200 * 1024, 1_000_003, 5_000_000, 13)


def test_bodies_are_exact(proxy):
    with Backend(respond_sizes) as backend:
        with proxy(backend).connect() as client:
            for size in SIZES * 2:
                assert client.ask(f"/{size}").body == make_body(size), size
        assert len(backend.peers) == 1


def test_head_of_a_large_response(proxy):
    with Backend(respond_sizes) as backend:
        with proxy(backend).connect() as client:
            for _ in range(2):
                assert client.ask("/500000", method="HEAD").length == 500_000
                assert client.ask("/300000").body == make_body(300_000)


@pytest.mark.single_protocol
def test_pipelined_responses(proxy):
    """The bytes of one do not get before those of another."""
    sizes = (300_000, 13, 100_000, 13, 70_000)
    with Backend(respond_sizes) as backend:
        with proxy(backend).connect() as client:
            client.send(b"".join(bytes(request(f"/{size}")) for size in sizes))
            for size in sizes:
                assert client.response().body == make_body(size)


@pytest.mark.parametrize("size", [1, 7, 1000, 70_000])
def test_backend_that_sends_pieces(proxy, size):
    body = make_body(3 * LEAST // 2)
    cut = len(body) - 20 * size if 20 * size < 40_000 else 1000

    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(body)) + body[:cut])
        peer.send_pieces(body[cut:], size)
        peer.request()
        peer.respond(b"next", TEXT)

    with Backend(respond) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/").body == body
            assert client.ask("/next").body == b"next"


@pytest.mark.slow
@pytest.mark.single_protocol
def test_clients_that_do_not_read(proxy):
    """Each has its own pipe, up to a number, and the others get copies: no byte reaches another client."""
    count, size = PIPES + 8, 3_000_000

    def respond(peer):
        number = int(peer.request().target[1:])
        peer.respond(make_body(size, number), TEXT)

    with Backend(respond) as backend:
        server = proxy(backend, settings={"SendTimeout": "300s"})
        clients = [Client(server.addresses[0], rcvbuf=4096) for _ in range(count)]
        for number, client in enumerate(clients):
            client.send(request(f"/{number}"))
        backend.wait_requests(count)
        with server.connect() as other:
            assert other.ask("/100").body == make_body(size, 100)
        for number, client in reversed(list(enumerate(clients))):
            assert client.response().body == make_body(size, number)
            client.close()


@pytest.mark.single_protocol
@pytest.mark.parametrize("where", [4096, 60_000, 100_000, 299_999])
def test_client_that_leaves(proxy, where):
    """What is left in its pipe is dropped with it, and the connection to the backend is closed."""
    body = make_body(3_000_000)

    def leave_one_byte(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(body)) + body[:-1])
        peer.wait_end()

    with Backend([leave_one_byte, leave_one_byte, answer(body, TEXT)]) as backend:
        server = proxy(backend)
        for end in (Client.reset, Client.close):
            client = Client(server.addresses[0], rcvbuf=4096)
            client.send(request("/"))
            client.until(b"\r\n\r\n")
            client.exactly(where)
            end(client)
            backend.wait_open(0)
        with server.connect() as client:
            assert client.ask("/").body == body


@pytest.mark.single_protocol
@pytest.mark.parametrize("end", ["close", "reset", "half_close"])
@pytest.mark.parametrize("where", [0, 1, 4095, 4096, 4097, 16384, 65536, LEAST, 150_000, 299_999])
def test_backend_that_ends(proxy, where, end):
    """The client gets what the backend has sent, to the last byte, and sees that the rest is missing."""
    body = make_body(300_000)

    def cut(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(body)) + body[:where])
        peer.flush()
        if end == "reset":
            peer.wait("read")
            peer.reset()
        elif end == "half_close":
            peer.half_close()
            peer.wait_end()

    with Backend(cut) as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.send(request("/"))
            assert b"200 OK" in client.until(b"\r\n\r\n")
            assert client.exactly(where) == body[:where]
            backend.tell("read")
            assert client.rest() == b""
        backend.wait_open(0)


@pytest.mark.single_protocol
@pytest.mark.parametrize("size", [20_000, 700_000])
def test_backend_that_ends_before_a_slow_client_reads(proxy, size):
    """What waits here for the client comes before the cut."""
    body = make_body(size)

    def cut(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(body + b"x")) + body)
        peer.flush()
        peer.half_close()
        peer.wait_end()
        peer.backend.tell("ended")

    with Backend(cut) as backend:
        server = proxy(backend)
        with Client(server.addresses[0], rcvbuf=4096) as client:
            client.send(request("/"))
            assert backend.events("ended").wait(30)
            assert b"200 OK" in client.until(b"\r\n\r\n")
            assert client.rest() == body


@pytest.mark.single_protocol
def test_end_with_the_last_bytes(proxy):
    """A backend that closes behind the last byte has sent all of them, also to a client that reads slowly."""
    body = make_body(2_000_000)

    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(body)) + body)

    with Backend(respond) as backend:
        server = proxy(backend)
        for rcvbuf in (None, 4096):
            client = Client(server.addresses[0], rcvbuf=rcvbuf)
            client.send(request("/"))
            assert client.response().body == body
            client.close()


def test_bytes_behind_a_body(proxy):
    """They belong to no response, and end the connection."""
    body = make_body(200_000)

    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(body)) + body + b"HTTP/1.1 200 OK\r\n\r\n")
        peer.wait_end()

    with Backend(respond) as backend:
        with proxy(backend).connect() as client:
            for _ in range(2):
                assert client.ask("/").body == body
        assert len(backend.peers) == 2
