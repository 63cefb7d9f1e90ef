# SPDX-License-Identifier: Apache-2.0
"""HTTP/2: streams that are taken over (RFC 8441), how connections end, and that every wait has its end."""

import signal
import time

import pytest

from harness import build
from harness import frames as f
from harness.client import Client
from harness.content import HELLO, LARGE, cycle
from harness.h2 import GoneAway, StreamReset, code_of
from harness.secure import serve_secure
from harness.server import await_true

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2"),
]

NEVER = "60s"
PATIENT = {
    "Timeout": NEVER,
    "KeepAliveTimeout": NEVER,
    "BodyTimeout": NEVER,
    "SendTimeout": NEVER,
    "HandlerTimeout": NEVER,
    "MinBodyRate": 0,
}
needs_tls = pytest.mark.skipif(not build.speaks("tls"), reason="this build has no TLS")
PROBE = {"MaxBodySize": "100M"}  # of all servers with the plugin


# ── take-over (RFC 8441) ──


def open_tunnel(client, protocol="echo", path="/probe/upgrade"):
    client.ping()
    assert client.theirs[f.ENABLE_CONNECT_PROTOCOL] == 1
    return client.begin(path, method="CONNECT", protocol=protocol, end=False)


@build.needs_probe
def test_tunnel(probe):
    client = probe().connect_h2()
    number = open_tunnel(client)
    head = client.head(number)
    assert head.status == 200 and head["Upgrade"] is None and head.length is None
    for piece in (b"a", b"x" * 10_000, cycle(500_000)):
        client.more(number, piece)
        assert client.exactly(len(piece), number) == piece
        client.assert_open()
    client.more(number, end=True)
    assert client.response(number).status == 200


@build.needs_probe
def test_tunnel_holds_the_client_back(probe):
    """The client does not read the echo: the window of the stream stays closed, and the connection continues."""
    client = probe(PATIENT).connect_h2(window=1000, credit=False)
    number = open_tunnel(client)
    body = cycle(1_000_000)
    client.more(number, body)
    client.ping()
    assert len(client.streams[number].out) > 500_000
    client.granting = True
    client.grant(1_000_000, number)
    assert client.exactly(len(body), number) == body


@build.needs_probe
def test_tunnel_and_the_end_of_the_server(probe):
    server = probe()
    client = server.connect_h2()
    number = open_tunnel(client)
    client.more(number, b"ping")
    client.exactly(4, number)
    server.send_signal(signal.SIGTERM)
    assert client.response(number).body == b"pingbye\n"
    assert server.wait() == 0


@build.needs_probe
def test_tunnel_where_there_is_none(probe):
    client = probe().connect_h2()
    number = open_tunnel(client, path="/hello.txt")
    assert client.response(number).status in (400, 404, 405, 426, 501)
    client.assert_open()


@build.needs_probe
def test_tunnel_is_cancelled(probe):
    server = probe()
    client = server.connect_h2()
    number = open_tunnel(client)
    client.head(number)
    client.cancel(number)
    server.wait_log("probe: done /probe/upgrade")
    client.assert_open()


# ── the end of connections ──


@build.needs_probe
@pytest.mark.concurrent
def test_stop_lets_streams_finish(probe):
    server = probe({"ShutdownTimeout": "20s"})
    client = server.connect_h2()
    streams = [client.begin("/probe/late?300"), client.begin("/probe/ticks?4"), client.begin("/large.bin")]
    client.ping()
    server.send_signal(signal.SIGTERM)
    assert client.await_goaway() == f.NO_ERROR
    late, ticks, large = [client.response(number) for number in streams]
    assert late.body == b"late\n" and ticks.body == b"tick\n" * 4 and large.body == LARGE
    client.assert_closed()
    assert server.wait() == 0


def test_stop_of_idle_connections(serve):
    server = serve(PATIENT)
    clients = [server.connect_h2() for _ in range(5)]
    for client in clients:
        client.assert_open()
    server.send_signal(signal.SIGTERM)
    for client in clients:
        client.assert_closed()
    assert server.wait() == 0


def last_of_goaways(frames):
    """The last stream that each of them names."""
    return [frame.number for frame in frames if frame.type == f.GOAWAY]


@pytest.mark.parametrize("over", ["clear", pytest.param("tls", marks=needs_tls)])
def test_stop_does_not_wait_for_the_silent(serve, site_root, tmp_path, over):
    """Connections without a request that do not answer the PING have the grace period, not their whole timeout."""
    settings = {**PATIENT, "ShutdownTimeout": "60s", "DeferAccept": 0}
    server = serve(settings) if over == "clear" else serve_secure(serve, tmp_path, site_root, settings)
    context = None if over == "clear" else server.ca.context()
    with f.FrameConnection(server.addresses[0], context=context) as conn:
        conn.sync()
        server.send_signal(signal.SIGTERM)
        conn.until(f.GOAWAY)
        conn.send(f.ping(b"no ACK!!"), f.settings())
        assert last_of_goaways(conn.frames()) == [0]
        assert server.wait() == 0


@build.needs_probe
def test_stop_does_not_wait_for_answered_clients(probe):
    server = probe({**PATIENT, "ShutdownTimeout": "60s"})
    with f.FrameConnection(server.addresses[0]) as conn:
        conn.send(f.headers(1, f.get("/probe/late?300")))
        conn.sync()
        server.send_signal(signal.SIGTERM)
        assert conn.until(f.DATA).payload == b"late\n"
        assert last_of_goaways(conn.frames())[-1:] == [1]
        assert server.wait() == 0


@needs_tls
def test_clear_text_at_a_port_of_tls(serve, site_root, tmp_path):
    """The answer is of the protocol that the client began with, and the end as well: it need not answer any PING."""
    server = serve_secure(serve, tmp_path, site_root, PATIENT)
    with f.FrameConnection(server.addresses[0]) as conn:
        conn.send(f.headers(1, f.get()))
        frames = conn.frames()
    assert b"This port is for HTTPS" in b"".join(frame.payload for frame in frames if frame.type == f.DATA)
    assert last_of_goaways(frames) == [f.WINDOW_MAX, 1]


@build.needs_probe
@pytest.mark.concurrent
def test_reload_lets_streams_finish(probe):
    """The old generation's connections get GOAWAY; no request that had begun is lost."""
    server = probe(PATIENT)
    client = server.connect_h2()
    late = client.begin("/probe/late?300")
    client.ping()
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    server.connect_h2().assert_open()
    assert client.response(late).body == b"late\n"
    assert client.await_goaway() == f.NO_ERROR
    client.assert_closed()
    server.baseline = 1 << 20  # what a first reload opens stays open


def test_drain_without_an_end(serve):
    """ShutdownTimeout is for clients that do not read."""
    server = serve({**PATIENT, "ShutdownTimeout": "500ms"})
    client = server.connect_h2(window=1, credit=False)
    number = client.begin("/large.bin")
    client.head(number)
    server.send_signal(signal.SIGTERM)
    client.assert_gone()
    assert server.wait() == 0


def test_max_requests(serve):
    client = serve({"MaxKeepAliveRequest": 3}).connect_h2()
    assert [client.ask().status for _ in range(3)] == [200] * 3
    client.assert_closed()
    assert client.goaway[0] >= 5


def test_max_requests_at_once(serve):
    """Those above the limit are not answered and not lost: GOAWAY names the last that counts."""
    client = serve({"MaxKeepAliveRequest": 3}).connect_h2()
    numbers = [client.begin() for _ in range(10)]
    done = 0
    for number in numbers:
        try:
            assert client.response(number).body == HELLO
            done += 1
        except (StreamReset, GoneAway):
            assert client.goaway and number > client.goaway[0] or client.streams[number].code == f.REFUSED_STREAM
    assert done >= 3


def test_idle_connection_ends(serve):
    server = serve({**PATIENT, "KeepAliveTimeout": "1s"})
    client = server.connect_h2()
    client.assert_open()
    client.assert_closed()


def test_pings_do_not_keep_it_alive(serve):
    server = serve({**PATIENT, "KeepAliveTimeout": "500ms"})
    client = server.connect_h2()
    client.assert_open()
    end = time.monotonic() + 60
    with pytest.raises((GoneAway, ConnectionError)):
        while time.monotonic() < end:
            client.ping()
            time.sleep(0.1)
    assert client.goaway[1] in (f.NO_ERROR, f.ENHANCE_YOUR_CALM)


def test_running_streams_keep_it_alive(serve, clock):
    server = serve({**PATIENT, "KeepAliveTimeout": "1s", "Timeout": "1s"})
    client = server.connect_h2(window=1000, credit=False)
    number = client.begin("/large.bin")
    for _ in range(5):
        client.exactly(1000, number)
        clock.advance(0.3)
        client.grant(1000, number)
    assert client.response(client.begin("/one.txt")).body == b"1"


def test_silent_connection_ends(serve):
    settings = {**PATIENT, "Timeout": "300ms", "KeepAliveTimeout": "300ms", "DeferAccept": 0}
    server = serve(settings)
    for data in (b"", b"PRI", f.PREFACE, f.PREFACE + f.settings(), f.PREFACE + f.settings() + b"\0\0"):
        with Client(server.addresses[0]) as client:
            client.send(data)
            client.assert_gone()


# ── every wait has its end ──


def test_slow_head(serve):
    """A head that continues in CONTINUATION, which does not come."""
    server = serve({**PATIENT, "Timeout": "300ms"})
    with f.FrameConnection(server.addresses[0]) as conn:
        conn.send(f.headers(1, f.get()[:10], whole=False))
        frames = conn.frames()
        assert not any(frame.type == f.DATA and HELLO in frame.payload for frame in frames)


def test_slow_head_cannot_extend_its_time(serve):
    server = serve({**PATIENT, "Timeout": "500ms"})
    with f.FrameConnection(server.addresses[0]) as conn:
        conn.send(f.headers(1, f.get(), whole=False))
        end = time.monotonic() + 60
        while conn.send_all_you_can(f.continuation(1, f.literal(b"x", b"y"))):
            assert time.monotonic() < end, "a field now and then keeps a head open"
            time.sleep(0.05)


@build.needs_probe
def test_slow_body(probe):
    """The stream ends, with 408 or without; its neighbours do not."""
    client = probe({**PATIENT, "BodyTimeout": "300ms"}).connect_h2()
    other = client.begin("/probe/late?800")
    number = client.begin("/probe/collect", method="POST", body=b"abc", end=False)
    try:
        assert client.response(number).status == 408
    except StreamReset as reset:
        assert reset.code != f.PROTOCOL_ERROR
    assert client.response(other).body == b"late\n"
    client.assert_open()


@build.needs_probe
def test_slow_handler(probe):
    server = probe({**PATIENT, "HandlerTimeout": "300ms"})
    client = server.connect_h2()
    number = client.begin("/probe/never")
    assert client.response(number).status == 503
    server.wait_log(r"plugin probe: no answer within HandlerTimeout \(localhost/probe/never\)")
    client.assert_open()


def test_slow_reader_is_given_up(serve):
    """SendTimeout: a window that stays closed costs a stream and its file, no more."""
    server = serve({**PATIENT, "SendTimeout": "400ms"})
    client = server.connect_h2(window=1000, credit=False)
    client.assert_open()
    files = server.descriptors()
    number = client.begin("/large.bin")
    client.exactly(1000, number)
    assert code_of(client, number) in (f.CANCEL, f.FLOW_CONTROL_ERROR, f.INTERNAL_ERROR, f.ENHANCE_YOUR_CALM)
    await_true(lambda: server.descriptors() <= files, what="the end of the file")
    client.assert_open()


def test_reader_that_stops(serve):
    """SendTimeout, when nothing is read at all."""
    server = serve({**PATIENT, "SendTimeout": "2s"})
    idle = server.descriptors()
    client = server.connect_h2(rcvbuf=4096, window=f.WINDOW_MAX)
    client.grant(f.WINDOW_MAX - f.WINDOW)
    for _ in range(4):
        client.begin("/large.bin")
    client.head()
    await_true(lambda: server.descriptors() <= idle, what="the end of the connection")
    client.assert_gone()
