# SPDX-License-Identifier: Apache-2.0
"""What handlers can do that files never do: read bodies, answer late, in pieces, or not at all. The plugin
tests/plugins/probe is built into a separate server for this."""

import itertools

import pytest

from harness import build
from harness.messages import chunked, request
from harness.queues import await_full

pytestmark = build.needs_probe

TE = "Transfer-Encoding: chunked"


def post(path, *fields, body=b"", length=True):
    if length and TE not in fields:
        fields += (f"Content-Length: {len(body)}",)
    return request(path, *fields, method="POST") + body


# ── bodies ──


@pytest.mark.concurrent
@pytest.mark.parametrize("size", [0, 1, 1000, 16384, 70_000, 3_000_000])
def test_echo(probe, size):
    """A body in pieces, answered in pieces; more than any buffer holds, so that both sides must wait."""
    body = bytes(itertools.islice(itertools.cycle(range(251)), size))
    client = probe({"MaxBodySize": "10M"}).connect()
    pieces = [piece for piece in (body[: size // 3], body[size // 3 :]) if piece]
    for fields, sent in (((), body), ((TE,), chunked(*pieces))):
        client.send_in_background(post("/probe/echo", *fields, body=sent))
        assert client.response().body == body
    client.assert_open()


def test_body_byte_by_byte(probe):
    client = probe().connect()
    for byte in post("/probe/collect", TE, body=b"3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nT: u\r\n\r\n"):
        client.send(bytes([byte]))
    assert client.response().body == b"abcd"
    client.assert_open()


@pytest.mark.parametrize("size, status", [(0, 200), (32 * 1024, 200), (32 * 1024 + 1, 413), (200_000, 413)])
@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_collected_up_to_the_limit(probe, size, status, coding):
    """MaxRequestSize: 32 means kilobytes."""
    body = b"c" * size
    client = probe({"MaxRequestSize": 32}).connect()
    if coding == "chunked":
        client.send_all_you_can(post("/probe/collect", TE, body=chunked(body) if size else b"0\r\n\r\n"))
    else:
        client.send_all_you_can(post("/probe/collect", body=body))
    answer = client.response()
    assert answer.status == status
    assert status != 200 or answer.body == body


def test_body_over_the_limit_of_all_bodies(probe):
    server = probe({"MaxBodySize": "100K"})
    client = server.connect()
    client.send_all_you_can(post("/probe/echo", "Content-Length: 102401", length=False))
    assert client.response().status == 413
    client = server.connect()
    client.send_all_you_can(post("/probe/slow", TE, body=b"19001\r\n"))
    assert client.response().status == 413


def test_pipelined_bodies(probe):
    """Each body ends where it says, whichever handler reads it."""
    client = probe().connect()
    client.send(
        post("/probe/collect", body=b"one")
        + post("/probe/now", body=b"unread")
        + post("/probe/collect", TE, body=chunked(b"tw", b"o"))
        + request("/probe/now")
    )
    assert [client.response().body for _ in range(4)] == [b"one", b"at once\n", b"two", b"at once\n"]


def test_handler_holds_the_client_back(probe):
    """A paused body does not pile up in the server: the client's own TCP stops it, and all of it arrives."""
    server = probe({"MaxBodySize": "100M", "MinBodyRate": 0})
    client = server.connect()
    size = 1_000_000
    client.send_in_background(post("/probe/slow", body=b"s" * size))
    before = server.memory_kb()
    assert client.response().body == b"%d\n" % size
    if build.OPTIMISED:
        assert server.memory_kb() - before < 500


# ── Expect ──


def test_invited_when_the_handler_reads(probe):
    client = probe().connect()
    client.send(post("/probe/collect", "Expect: 100-continue", "Content-Length: 4", length=False))
    assert client.interim().status == 100
    client.send(b"body")
    assert client.response().body == b"body"
    client.assert_open()


def test_not_invited_when_the_body_is_there(probe):
    client = probe().connect()
    client.send(post("/probe/collect", "Expect: 100-continue", body=b"body"))
    assert client.response().body == b"body"


def test_not_invited_without_a_reader(probe):
    """A final answer; whether the body still comes is not certain, so the connection ends."""
    client = probe().connect()
    client.send(post("/probe/now", "Expect: 100-continue", "Content-Length: 4", length=False))
    answer = client.response()
    assert answer.status == 200 and answer.closes
    client.assert_closed()


def test_too_large_is_said_before_the_body(probe):
    client = probe({"MaxRequestSize": "1K"}).connect()
    client.send(post("/probe/collect", "Expect: 100-continue", "Content-Length: 5000", length=False))
    assert client.response().status == 413


# ── late answers ──


@pytest.mark.concurrent
def test_late_answers_keep_their_order(probe):
    client = probe().connect()
    client.send(request("/probe/late?80") + request("/probe/late?1") + request("/probe/now"))
    assert [client.response().body for _ in range(3)] == [b"late\n", b"late\n", b"at once\n"]
    client.assert_open()


def test_no_answer_is_answered(probe):
    server = probe({"HandlerTimeout": "300ms"})
    client = server.connect()
    client.send(request("/probe/never"))
    answer = client.response()
    assert answer.status == 503 and answer.closes
    client.assert_closed()
    server.wait_log(r"plugin probe: no answer within HandlerTimeout \(localhost/probe/never\)")


def test_quiet_answer_is_cut(probe):
    """It has begun, so that there can be no 503: the end of the connection says that the body is incomplete."""
    server = probe({"HandlerTimeout": "300ms"})
    client = server.connect()
    client.send(request("/probe/quiet"))
    assert client.head().status == 200
    assert client.rest() == b"6\r\nbegun\n\r\n"
    client.assert_closed()
    server.wait_log(r"plugin probe: no answer within HandlerTimeout \(localhost/probe/quiet\)")
    server.wait_log(r"probe: done \S+ status 200 bytes 6 aborted")


def test_half_an_answer_is_none(probe):
    """Of a plugin that declines the request: the client does not see it, and the log names the plugin."""
    server = probe()
    with server.connect() as client:
        answer = client.ask("/probe/half")
        assert answer.status == 500 and b"half" not in answer.body
        assert client.ask("/probe/now").status == 200
    server.wait_log(r"plugin probe: Protocol error \(localhost/probe/half\)")


def test_answer_in_pieces_may_take_its_time(probe):
    """Each piece starts the limit anew; a tick comes every 100 ms."""
    client = probe({"HandlerTimeout": "2s"}).connect()
    client.send(request("/probe/ticks?30"))
    assert client.response().body == b"tick\n" * 30


@pytest.mark.parametrize("path", ["/probe/late?50000", "/probe/never", "/probe/ticks?1000", "/probe/stream?100000000"])
def test_client_leaves_meanwhile(probe, path):
    """The exchange ends with its client, and the plugin is notified."""
    server = probe()
    client = server.connect()
    client.send(request(path))
    if "ticks" in path or "stream" in path:
        client.head()
    else:
        server.connect().assert_open()
    client.reset()
    server.wait_log(r"probe: done \S+ status 200 bytes \d+ aborted")


def test_half_closed_client_gets_its_answer(probe):
    client = probe().connect()
    client.send(request("/probe/late?100"))
    client.shut()
    assert client.response().body == b"late\n"
    client.assert_closed()


def test_late_answer_is_awaited_by_a_stop(probe):
    server = probe({"ShutdownTimeout": "30s"})
    client = server.connect()
    client.send(request("/probe/late?3000"))
    server.connect().assert_open()
    server.send_signal(15)
    answer = client.response()
    assert answer.body == b"late\n" and answer.closes
    assert server.wait() == 0


# ── answers in pieces ──


@pytest.mark.parametrize("size", [0, 1, 5000, 40_000, 2_000_000])
def test_generated(probe, size):
    server = probe()
    client = server.connect()
    client.send(request(f"/probe/stream?{size}"))
    answer = client.response()
    assert answer["Transfer-Encoding"] == "chunked" and answer.body == b"g" * size
    client.assert_open()
    with server.connect() as old:
        old.send(request(f"/probe/stream?{size}", version="HTTP/1.0"))
        answer = old.response()
        assert answer["Transfer-Encoding"] is None and answer.body == b"g" * size


def test_generated_for_a_slow_reader(probe):
    client = probe().connect(rcvbuf=4096)
    client.send(request("/probe/stream?3000000") + request("/probe/now"))
    await_full(client)
    assert len(client.response().body) == 3_000_000
    assert client.response().body == b"at once\n"


@pytest.mark.parametrize("size", [0, 10, 100_000])
def test_trailers(probe, size):
    """What is said before the body, and what its generator says at its end."""
    client = probe().connect()
    for _ in range(2):
        answer = client.ask(f"/probe/trailers?{size}")
        assert answer.body == b"g" * size
        assert [(name.lower(), value) for name, value in answer.trailers] == [("x-first", "1"), ("x-last", str(size))]
    assert client.ask("/probe/trailers", method="HEAD").trailers == []
    client.assert_open()


@pytest.mark.parametrize("query, body", [("", b"whole\n"), ("empty", b""), ("length", b"whole\n")])
def test_trailer_of_a_whole_body(probe, query, body):
    """It needs a body in chunks on HTTP/1: an announced length leaves none."""
    client = probe().connect()
    for _ in range(2):
        answer = client.ask(f"/probe/trailer?{query}")
        assert answer.body == body
        assert len(answer.trailers) == (build.PROTOCOL == "h2c" or query != "length")
    client.assert_open()


@pytest.mark.single_protocol
def test_no_trailers_in_http_1_0(probe):
    answer = probe().connect().ask("/probe/trailers?5", version="HTTP/1.0")
    assert (answer.body, answer.trailers, answer["Transfer-Encoding"]) == (b"ggggg", [], None)


@pytest.mark.parametrize("path", ["/probe/stream", "/probe/now", "/probe/nothing"])
def test_head_has_no_body(probe, path):
    client = probe().connect()
    client.send(request(path, method="HEAD") + request("/probe/now"))
    assert client.response("HEAD").body == b""
    assert client.response().body == b"at once\n"


def test_no_content_has_no_body(probe):
    client = probe().connect()
    client.send(request("/probe/nothing") + request("/probe/now"))
    answer = client.response()
    assert answer.status == 204 and answer["Content-Length"] is None and answer["Transfer-Encoding"] is None
    assert client.response().body == b"at once\n"


@pytest.mark.parametrize("path", ["/probe/broken", "/probe/promise"])
def test_incomplete_answers_are_cut(probe, path):
    client = probe().connect()
    client.send(request(path) + request("/probe/now"))
    client.head()
    left = client.rest()
    assert b"at once" not in left and not left.endswith(b"0\r\n\r\n")


# ── hooks ──


def test_no_line_is_injected(probe):
    answer = probe().connect().ask("/probe/inject")
    assert answer.body == b"refused\n" and answer["Injected"] is None


def test_every_hook_has_its_say(probe):
    server = probe()
    client = server.connect()
    assert client.ask("/probe/refused").status == 403
    assert client.ask("/probe/error").status == 500
    server.wait_log("plugin probe: Input/output error")
    answer = client.ask("/hello.txt")
    assert answer.status == 200 and answer["X-Probe-Saw"] == "response"
    server.wait_log(rf"probe: done /hello.txt status 200 bytes {len(answer.body)}$")


def test_fields_of_a_malformed_request(probe):
    """Hooks see what could be read, and nothing else."""
    client = probe().connect()
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header\r\n\r\n")
    assert client.response().status == 400


def test_a_plugin_may_decline_late(probe):
    """The next one is asked, as if it had declined at once."""
    client = probe().connect()
    assert client.ask("/hello.txt").status == 200
    assert client.ask("/hello.txt", method="POST").status == 405


def test_extension_methods_reach_plugins(probe):
    client = probe().connect()
    assert client.ask("/probe/now", method="PROPFIND").body == b"at once\n"
    assert client.ask("/nowhere", method="PROPFIND").status == 501


def test_the_servers_own_fields(probe):
    answer = probe().connect().ask("/probe/claim")
    assert answer.body == b"refused\n" and answer.length == 8


def test_collected_without_a_limit(probe):
    client = probe({"MaxBodySize": "1M"}).connect()
    client.send(post("/probe/all", body=b"whole"))
    assert client.response().body == b"whole"


def test_a_handler_may_end_the_connection(probe):
    client = probe().connect()
    answer = client.ask("/probe/bye")
    assert answer.closes and answer.body == b"bye\n"
    client.assert_closed()
