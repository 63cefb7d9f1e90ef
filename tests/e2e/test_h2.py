# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 (RFC 9113): how connections begin, concurrent streams, flow control both ways, and priorities. That
everything else is the same on a stream, the whole suite shows: MONKEY_PROTOCOL=h2c."""

import itertools
import re
import struct

import pytest

from harness import build
from harness import frames as f
from harness.client import Client
from harness.content import FILES, HELLO, LARGE, MEDIUM, cycle
from harness.h2 import GoneAway, H2Client, code_of
from harness.messages import request
from harness.queues import await_full

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
PROBE = {"MaxBodySize": "100M"}  # of all servers with the plugin


# ── how a connection begins ──


def test_prior_knowledge(h2):
    answer = h2().ask("/hello.txt")
    assert (answer.status, answer.body) == (200, HELLO)
    assert answer["Content-Type"].startswith("text/plain")
    assert answer.length == len(HELLO) and answer["ETag"] and answer["Accept-Ranges"] == "bytes"


def test_both_protocols_on_one_listener(site):
    with Client(site.addresses[0]) as old, site.connect_h2() as new:
        for _ in range(3):
            old.assert_open()
            new.assert_open()


def test_unix_socket(serve, tmp_path):
    serve({"Listen": f"unix:{tmp_path}/socket"}).connect_h2().assert_open()


@pytest.mark.parametrize("size", [1, 3, 23, 24, 25, 100])
def test_preface_in_pieces(site, size):
    data = f.PREFACE + f.settings() + f.headers(1, f.get())
    with f.FrameConnection(site.addresses[0], greet=False) as conn:
        for at in range(0, len(data), size):
            conn.send(data[at : at + size])
        assert conn.until(f.DATA).payload == HELLO


def test_preface_that_is_none(site):
    """Its first bytes look right; what comes is GOAWAY, an answer of HTTP/1.1, or the end."""
    for end in (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"PRI * HTTP/2.1\r\n\r\n"):
        with Client(site.addresses[0]) as client:
            client.send(end + bytes(100))
            client.assert_gone()
    site.connect_h2().assert_open()


def test_settings_must_be_first(site):
    with f.FrameConnection(site.addresses[0], greet=False) as conn:
        conn.send(f.PREFACE, f.ping(), f.settings())
        assert conn.goaway_code() in (f.PROTOCOL_ERROR, None)


def test_our_settings(conn):
    frame = conn.read()
    assert frame.type == f.SETTINGS and not frame.flags
    keys = dict(struct.iter_unpack(">HI", frame.payload))
    assert 1 <= keys[f.MAX_CONCURRENT_STREAMS] <= 1000, keys
    assert keys.get(f.HEADER_TABLE_SIZE, 4096) <= 4096 and keys[f.NO_RFC7540_PRIORITIES] == 1, keys
    assert conn.until(f.SETTINGS).flags == f.ACK


def test_upgrade_is_ignored(site):
    """RFC 9113 §3.1: h2c by Upgrade is obsolete."""
    fields = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    with Client(site.addresses[0]) as client:
        answer = client.ask("/hello.txt", *fields)
        assert (answer.status, answer.body, answer["Upgrade"]) == (200, HELLO, None)
        client.assert_open()


# ── streams ──


@pytest.mark.concurrent
def test_many_streams(h2):
    client, names = h2(), [name for name in FILES if re.fullmatch(r"[a-z]+\.(txt|bin)", name)]
    streams = [(client.begin(f"/{name}"), name) for name in names * 40]
    for number, name in reversed(streams):
        assert client.response(number).body == FILES[name]


@build.needs_probe
def test_answers_overtake_each_other(probe):
    client = probe().connect_h2()
    slow, quick = client.begin("/probe/late?300"), client.begin("/probe/now")
    assert client.response(quick).body == b"at once\n" and not client.streams[slow].answer
    assert client.response(slow).body == b"late\n"


@build.needs_probe
def test_too_many_streams(probe):
    """One more than allowed is refused, or ends the connection of a client that knew (RFC 9113 §5.1.2)."""
    server = probe()
    client = server.connect_h2()
    client.ping()
    late = [client.begin("/probe/late?600") for _ in range(client.most_streams)]
    most, client.most_streams = client.most_streams, 1 << 31
    try:
        assert code_of(client, client.begin("/hello.txt")) in (f.REFUSED_STREAM, f.PROTOCOL_ERROR)
    except GoneAway as gone:
        assert gone.code == f.PROTOCOL_ERROR
        server.connect_h2().assert_open()
        return
    client.most_streams = most
    assert {client.response(number).body for number in late} == {b"late\n"}
    client.assert_open()


@build.needs_probe
def test_cancelled(probe):
    """The plugin is notified, and the others continue."""
    server = probe()
    client = server.connect_h2()
    gone, stays = client.begin("/probe/never"), client.begin("/probe/late?100")
    client.cancel(gone)
    server.wait_log("probe: done /probe/never .* aborted")
    assert client.response(stays).body == b"late\n"
    half = client.begin("/probe/stream?100000000")
    client.head(half)
    client.cancel(half)
    server.wait_log("probe: done /probe/stream .* aborted")
    client.assert_open()


@build.needs_probe
def test_client_leaves(probe):
    server = probe()
    client = server.connect_h2()
    for path in ("/probe/never", "/probe/late?5000", "/probe/ticks?1000"):
        client.begin(path)
    client.ping()
    client.reset()
    server.wait_log(r"probe: done \S+ status \d+ bytes \d+ aborted", 3)


@build.needs_probe
def test_half_closed_client_gets_its_answers(probe):
    """GOAWAY of the client ends nothing that has begun."""
    client = probe().connect_h2()
    late = client.begin("/probe/late?100")
    client.conn.send(f.goaway())
    assert client.response(late).body == b"late\n"


# ── flow control: what we send ──


def test_window_of_a_stream(h2):
    client = h2(window=1000, credit=False)
    number = client.begin("/medium.bin")
    assert client.exactly(1000) == MEDIUM[:1000]
    client.ping()
    assert len(client.streams[number].body) == 1000, "the window is closed"
    for at in (1000, 1001, 3001):
        client.grant(size := at % 1000 + 999, number)
        client.exactly(size)
    client.grant(20_000, number)
    assert client.response(number).body == MEDIUM


def test_window_of_nothing(h2):
    """The head needs no window, the body does; others do not wait for it."""
    client = h2(window=0, credit=False)
    number = client.begin("/hello.txt")
    assert client.head(number).status == 200
    client.ping()
    assert client.streams[number].body == b""
    assert client.response(client.begin("/hello.txt", method="HEAD")).length == len(HELLO)
    client.change({f.INITIAL_WINDOW_SIZE: 5})
    client.exactly(5, number)
    client.grant(8, number)
    assert client.response(number).body == HELLO


def test_window_of_the_connection(h2):
    client = h2(window=f.WINDOW_MAX, credit=False)
    number = client.begin("/large.bin")
    client.exactly(f.WINDOW)
    client.ping()
    assert len(client.streams[number].body) == f.WINDOW
    client.grant(1)
    client.exactly(1)
    client.grant(10_000_000)
    assert client.response(number).body == LARGE


def test_window_shrinks_below_zero(h2):
    """RFC 9113 §6.9.2: what was sent is owed before anything else is."""
    client = h2(window=30_000, credit=False)
    number = client.begin("/large.bin")
    client.exactly(30_000)
    client.change({f.INITIAL_WINDOW_SIZE: 10_000})
    client.grant(20_000, number)
    client.ping()
    assert len(client.streams[number].body) == 30_000, "the window is 0, not 20,000"
    client.grant(1234, number)
    client.exactly(1234)
    client.granting = True
    client.change({f.INITIAL_WINDOW_SIZE: 1_000_000})
    assert client.response(number).body == LARGE


@pytest.mark.parametrize("window", [1, 7, 100])
def test_tiny_windows_in_small_numbers(h2, window):
    client = h2(window=window, credit=False)
    number = client.begin("/hundred.bin")
    for at in range(0, 100, window):
        client.exactly(min(window, 100 - at), number)
        if at + window < 100:
            client.grant(window, number)
    assert client.response(number).body == FILES["hundred.bin"]


@pytest.mark.parametrize("size", [f.FRAME_MIN, 100_000, (1 << 24) - 1])
def test_frames_that_we_allow(h2, size):
    client = h2(values={f.MAX_FRAME_SIZE: size})
    assert client.ask("/large.bin").body == LARGE


@pytest.mark.concurrent
def test_slow_reader_on_many_streams(h2):
    client = h2(rcvbuf=4096)
    numbers = [client.begin("/large.bin" if i % 5 == 0 else "/medium.bin") for i in range(20)]
    await_full(client.conn)
    for i, number in enumerate(numbers):
        assert client.response(number).body == (LARGE if i % 5 == 0 else MEDIUM)


def test_a_blocked_stream_blocks_no_other(h2):
    client = h2(window=20_000, credit=False)
    blocked = client.begin("/large.bin")
    client.exactly(20_000)
    for _ in range(50):
        assert client.response(client.begin("/hello.txt")).body == HELLO
    assert client.streams[blocked].answer and not client.streams[blocked].ended


# ── flow control: what the client sends ──


@build.needs_probe
@pytest.mark.concurrent
@pytest.mark.parametrize("size", [0, 1, 1000, 65_535, 65_536, 3_000_000])
def test_echo(probe, size):
    client = probe().connect_h2()
    body = cycle(size)
    answer = client.ask("/probe/echo", "Content-Length: 0" if not size else "X: y", method="POST", body=body)
    assert answer.body == body
    client.assert_open()


@build.needs_probe
@pytest.mark.concurrent
def test_echoes_beside_each_other(probe):
    client = probe().connect_h2()
    bodies = [cycle(300_000 + i) for i in range(10)]
    numbers = [client.begin("/probe/echo", method="POST", body=body) for body in bodies]
    assert [client.response(number).body for number in numbers] == bodies


@build.needs_probe
def test_body_without_length_in_pieces(probe):
    client = probe().connect_h2()
    number = client.begin("/probe/collect", method="POST", end=False)
    for piece in (b"a", b"", b"bc", b"d"):
        client.more(number, piece)
    client.conn.send(f.data(number, b"padded", pad=20), f.data(number, b"", pad=255))
    client.more(number, b"!", end=True)
    assert client.response(number).body == b"abcdpadded!"


@build.needs_probe
def test_handler_holds_the_client_back(probe):
    """A paused body does not pile up in the server: no window is opened for bytes that the handler has not taken."""
    server = probe(PATIENT)
    client = server.connect_h2()
    size, before = 2_000_000, server.memory_kb()
    number = client.begin("/probe/slow", method="POST", body=b"s" * size)
    client.ping()
    assert len(client.streams[number].out) > size - 1_000_000, "most of it is still here"
    client.assert_open()
    assert client.response(number).body == b"%d\n" % size
    if build.OPTIMISED:
        assert server.memory_kb() - before < 1000


def test_unread_bodies_give_their_windows_back(h2):
    """405 is said at once; the bodies that come nevertheless do not use the connection's window up."""
    client = h2()
    for _ in range(20):
        assert client.ask("/hello.txt", method="POST", body=bytes(20_000)).status == 405
    client.assert_open()
    client.ping()
    assert client.room > 20_000


@build.needs_probe
def test_cancelled_bodies_give_their_windows_back(probe):
    client = probe(PATIENT).connect_h2()
    for _ in range(20):
        number = client.begin("/probe/slow", method="POST", body=bytes(20_000), end=False)
        client.ping()
        client.cancel(number)
    body = cycle(300_000)
    assert client.ask("/probe/echo", method="POST", body=body).body == body


@build.needs_probe
@pytest.mark.parametrize("size, status", [(32 * 1024, 200), (32 * 1024 + 1, 413), (200_000, 413)])
@pytest.mark.parametrize("has_length", [True, False])
def test_collected_up_to_the_limit(probe, size, status, has_length):
    client = probe({"MaxRequestSize": 32}).connect_h2()
    number = client.begin("/probe/collect", *[f"Content-Length: {size}"] * has_length, method="POST", end=False)
    client.more(number, b"c" * size, end=True)
    assert client.response(number).status == status
    client.assert_open()


@build.needs_probe
def test_body_over_the_limit_of_all_bodies(probe):
    client = probe({"MaxBodySize": "100K"}).connect_h2()
    number = client.begin("/probe/echo", "Content-Length: 102401", method="POST", end=False)
    assert client.response(number).status == 413
    client.assert_open()


# ── priorities (RFC 9218) ──


class Race:
    """A connection whose window is used up; then streams begin, and what is granted shows which stream goes first."""

    def __init__(self, client):
        self.client, filler = client, client.begin("/large.bin")
        client.exactly(f.WINDOW, filler)
        client.cancel(filler)
        client.forget(filler)

    def begin(self, target, *fields):
        return self.client.begin(target, *fields)

    def run(self, count):
        """The streams of the next bytes, in their order: each as often as it had DATA."""
        client = self.client
        client.ping()
        before, seen = client.credit, len(client.arrivals)
        assert before == 0
        client.grant(count)
        client.settle(lambda: client.credit == 0, f"{count} bytes")
        return [number for number, size in client.arrivals[seen:] if size]


@pytest.fixture
def race(h2):
    return Race(h2(window=1_000_000, credit=False))


def test_urgent_ones_first(race):
    late, normal, soon = (
        race.begin("/medium.bin", *fields) for fields in (("Priority: u=6",), (), ("Priority: u=1",))
    )
    order = race.run(55_000)
    assert [number for number, _ in itertools.groupby(order)] == [soon, normal, late]


def test_one_after_the_other(race):
    """Without `i`, a stream is of use when it is whole."""
    numbers = [race.begin("/medium.bin") for _ in range(3)]
    assert [number for number, _ in itertools.groupby(race.run(60_000))] == numbers


def test_incremental_ones_in_turn(race):
    first, second = race.begin("/large.bin", "Priority: i"), race.begin("/large.bin", "Priority: u=3, i")
    order = race.run(400_000)
    assert len(list(itertools.groupby(order))) >= 6, "they take turns"
    assert abs(order.count(first) - order.count(second)) <= 4


def test_priority_update(race):
    """The frame changes the order of what runs already."""
    first, second = race.begin("/medium.bin", "Priority: u=2"), race.begin("/medium.bin", "Priority: u=4")
    race.client.conn.send(f.priority_update(second, "u=0"))
    assert [number for number, _ in itertools.groupby(race.run(40_000))] == [second, first]


def test_priority_of_an_idle_stream(race):
    """It may come before its stream."""
    client = race.client
    client.conn.send(f.priority_update(client.last + 4, "u=0"))
    first, second = race.begin("/medium.bin"), race.begin("/medium.bin")
    assert set(race.run(40_000)) == {first, second}
    assert client.response(first).body == client.response(second).body == MEDIUM


@pytest.mark.parametrize("value", ["u=9", "u=-1", "u=x", "i=2", "\xff", "u=3,,", "u=" + "1" * 1000, ""])
def test_unreadable_priorities(h2, value):
    """RFC 9218 §4: ignored."""
    client = h2()
    assert client.ask("/hello.txt", ("priority", value)).body == HELLO
    client.conn.send(f.priority_update(client.last, value))
    client.assert_open()


@pytest.mark.parametrize("payload", [b"", b"\0\0\0", b"\0\0\0\0u=1"])
def test_malformed_priority_update(conn, payload):
    conn.send(f.frame(f.PRIORITY_UPDATE, 0, 0, payload))
    assert conn.goaway_code() in (f.FRAME_SIZE_ERROR, f.PROTOCOL_ERROR)


# ── the same for all workers ──


@pytest.mark.concurrent
def test_several_workers(serve):
    server = serve({"Workers": 4})
    for _ in range(5):
        clients = [H2Client(server.addresses[0]) for _ in range(8)]
        for client in clients:
            for target in ("/hello.txt", "/large.bin", "/medium.bin", "/nowhere"):
                client.begin(target)
        for client in clients:
            assert [answer.status for answer in client.responses()] == [200, 200, 200, 404]
            client.close()


def test_http_1_is_what_it_was(site):
    """A request whose first bytes are those of the preface."""
    with Client(site.addresses[0]) as client:
        client.send(request(method="PRIX"))
        assert client.response().status == 501
