# SPDX-License-Identifier: Apache-2.0
"""Every wait has its own end. Upper bounds are generous, for loaded machines; lower bounds are exact."""

import time

import pytest

from harness.messages import chunked, lines, request
from harness.server import await_true

pytestmark = pytest.mark.single_protocol

HOST = "Host: localhost"
NEVER = "60s"
PATIENT = {
    "Timeout": NEVER,
    "KeepAliveTimeout": NEVER,
    "BodyTimeout": NEVER,
    "SendTimeout": NEVER,
    "LingerTimeout": "200ms",
}
SOON = 30.0


class Stopwatch:
    """Asserts that its block took at least `least` and at most SOON seconds."""

    def __init__(self, least):
        self.least = least

    def __enter__(self):
        self.start = time.monotonic()

    def __exit__(self, kind, *_):
        if kind is None:
            took = time.monotonic() - self.start
            assert self.least <= took <= SOON, f"took {took:.3f} s, expected {self.least} to {SOON}"


def test_incomplete_head(serve):
    server = serve({**PATIENT, "Timeout": "300ms"})
    with Stopwatch(0.25):
        client = server.connect()
        client.send("GET /hello.txt HTTP/1.1\r\nHo")
        answer = client.response()
    assert answer.status == 408 and answer.closes
    client.assert_closed()


def test_incomplete_request_line(serve):
    server = serve({**PATIENT, "Timeout": "300ms"})
    with Stopwatch(0.25):
        client = server.connect()
        client.send("G")
        assert client.response().status == 408
    client.assert_closed()


def test_slowloris_cannot_extend_its_time(serve):
    """The limit is for the whole head: a byte now and then buys nothing."""
    server = serve({**PATIENT, "Timeout": "500ms"})
    with Stopwatch(0.4):
        client = server.connect()
        client.sock.settimeout(0.02)
        client.send("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n")
        while True:
            try:
                assert client.fill()
                break
            except TimeoutError:
                client.send("X: y\r\n")
    client.sock.settimeout(10)
    assert client.response().status == 408


def test_second_head_has_its_own_time(serve, clock):
    """A connection that is older than Timeout is not cut while it works."""
    server = serve({**PATIENT, "Timeout": "2s"})
    client = server.connect()
    for _ in range(30):
        data = request()
        client.send(data[:20])
        client.send(data[20:])
        assert client.response().status == 200
        clock.advance(0.1)
    client.send("GET /hello.txt HTTP/1.1\r\n")
    clock.advance(1.5)
    client.assert_quiet()
    clock.advance(1)
    assert client.response().status == 408


def test_idle_keep_alive_ends_silently(serve):
    server = serve({**PATIENT, "KeepAliveTimeout": "300ms"})
    client = server.connect()
    with Stopwatch(0.2):
        assert client.ask().status == 200
        client.assert_closed()


def test_keep_alive_time_starts_anew(serve, clock):
    server = serve({**PATIENT, "KeepAliveTimeout": "2s"})
    client = server.connect()
    for _ in range(6):
        assert client.ask().status == 200
        clock.advance(0.5)
    with Stopwatch(1.9):
        client.assert_open()
        client.assert_closed()


def test_begun_head_counts_as_head(serve):
    """The first byte of the next request ends the idle time and starts the head's."""
    server = serve({**PATIENT, "KeepAliveTimeout": "1s", "Timeout": "2500ms"})
    client = server.connect()
    assert client.ask().status == 200
    with Stopwatch(2.3):
        client.send("GET /hello.txt HT")
        assert client.response().status == 408


def test_silent_connection_ends_silently(serve):
    """There is no request, so there is no response."""
    server = serve({**PATIENT, "Timeout": "300ms", "KeepAliveTimeout": "300ms", "DeferAccept": 0})
    with Stopwatch(0.2):
        client = server.connect()
        client.assert_closed()


def test_slow_body(serve):
    """An unread body that does not come: 405 was said, the rest is waited for no longer than BodyTimeout."""
    server = serve({**PATIENT, "BodyTimeout": "300ms"})
    client = server.connect()
    with Stopwatch(0.2):
        client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 100") + b"abc")
        assert client.response().status == 405
        assert [a.status for a in client.responses()] in ([], [408])


def test_slow_chunked_body(serve):
    server = serve({**PATIENT, "BodyTimeout": "300ms"})
    client = server.connect()
    with Stopwatch(0.2):
        client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Transfer-Encoding: chunked") + b"5\r\nhel")
        assert client.response().status == 405
        assert [a.status for a in client.responses()] in ([], [408])


def test_dripping_body(serve):
    """R-U-Dead-Yet: a byte now and then is below MinBodyRate, which counts after the first five seconds."""
    server = serve({**PATIENT, "BodyTimeout": "400ms", "MinBodyRate": 1000})
    client = server.connect()
    client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 10000"))
    assert client.response().status == 405
    client.sock.settimeout(0.05)
    end = time.monotonic() + 5 + SOON
    while client.send_all_you_can(b"x"):
        try:
            if not client.fill():
                break
        except TimeoutError:
            assert time.monotonic() < end, "a body of 20 bytes per second was let live"
        except ConnectionResetError:
            break


def test_body_in_time(serve, clock):
    """A body that keeps the rate is read to its end, though it takes longer than BodyTimeout."""
    server = serve({**PATIENT, "BodyTimeout": "3s", "MinBodyRate": 100})
    client = server.connect()
    client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 12000") + b"x" * 1000)  # for ten seconds
    assert client.response().status == 405
    for _ in range(11):
        clock.advance(0.4)
        client.send(b"x" * 1000)
    client.assert_open()


def test_reader_that_stops(serve):
    """SendTimeout: a client that does not take its answer loses the connection and its file."""
    server = serve({**PATIENT, "SendTimeout": "400ms"})
    idle = server.descriptors()
    with Stopwatch(0.25):
        client = server.connect(rcvbuf=4096)
        client.send(request("/large.bin") * 4)
        assert client.head().status == 200
        await_true(lambda: server.descriptors() <= idle, SOON, "the end of the connection")
    client.assert_gone()


def test_slow_reader_is_served(serve):
    """SendTimeout is about progress: a slow reader that makes progress gets everything."""
    server = serve({**PATIENT, "SendTimeout": "2s"})
    client = server.connect(rcvbuf=16_384)
    client.send(request("/large.bin"))
    head = client.head()
    left, start = head.length - len(client.buffer), time.monotonic()
    while left:
        piece = client.sock.recv(min(left, 65_536))
        assert piece
        left -= len(piece)
        time.sleep(max(0, min(0.02, start + 3 - time.monotonic())))
    assert left == 0


def test_waiting_costs_nothing(serve):
    """Two hundred slow clients: others are served at once, and the process sleeps."""
    server = serve({**PATIENT, "KeepAliveTimeout": NEVER})
    slow = [server.connect() for _ in range(200)]
    for client in slow:
        client.send("GET /hello.txt HTTP/1.1\r\nX: ")
    with server.connect() as quick:
        for _ in range(20):
            assert quick.ask().status == 200
    server.await_idle()


@pytest.mark.parametrize("body", [b"", chunked(b"x" * 100)], ids=["no body", "chunked"])
def test_timers_do_not_fire_late(serve, clock, body):
    """A request in time is not met by the timer of the one before it."""
    server = serve(dict.fromkeys(("Timeout", "KeepAliveTimeout", "BodyTimeout", "SendTimeout"), "2500ms"))
    client = server.connect()
    fields = ["Transfer-Encoding: chunked"] if body else []
    for _ in range(7):
        client.send(lines("GET /hello.txt HTTP/1.1", HOST, *fields) + body)
        assert client.response().status == 200
        clock.advance(0.5)
