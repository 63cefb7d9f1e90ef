# SPDX-License-Identifier: Apache-2.0
"""One test for each attack on servers of HTTP/2: what costs the client little and the server much is counted, and the
connection ends with ENHANCE_YOUR_CALM, or what it costs stays within bounds; in the meantime others are served.
Variants of an attack that end at the same counter have unit tests only: tests/unit/core/http/h2."""

import signal
import time

import pytest

from harness import build
from harness import frames as f
from harness.h2 import GoneAway, StreamReset
from harness.server import UNCACHED, await_true, section

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2"),
]

CALM = f.ENHANCE_YOUR_CALM
PATIENT = {
    "Timeout": "10m",
    "KeepAliveTimeout": "10m",
    "BodyTimeout": "60s",
    "SendTimeout": "60s",
    "HandlerTimeout": "60s",
    "MinBodyRate": 0,
    "MaxKeepAliveRequest": 0,
}
SHORT = {**PATIENT, "MemoryLimit": "1M", "DeferAccept": 0}
SESSIONS_MAX = 600  # more than there is memory for in SHORT
BATCH = 100
MOST = 20_000  # frames of one kind, within a second or two: no client needs so many
ROOM_KB = (
    64_000 if build.SANITIZED else 4_000
)  # what one attack may make the server grow by; ASan keeps what is freed


@pytest.fixture
def victim(serve):
    """A server, a client that was there before the attack, and their state behind it."""
    victims = []

    def start(settings=None, **rest):
        server = serve({**PATIENT, **(settings or {})}, **rest)
        neighbour = server.connect_h2()
        neighbour.assert_open()
        victims.append((server, neighbour, server.memory_kb()))
        return server

    yield start
    for server, neighbour, memory in victims:
        neighbour.assert_open()
        with server.connect() as client:
            client.assert_open()
        assert server.memory_kb() - memory < ROOM_KB


@pytest.fixture
def probe(victim):
    def start(settings=None, **rest):
        return victim({"MaxBodySize": "1G", **(settings or {})}, program=build.probe(), **rest)

    return start


class FrameFlood:
    """Batches of frames against one server, until it closes the connection."""

    def __init__(self, server, first=b"", values=None):
        self.conn, self.seen, self.sent = f.FrameConnection(server.addresses[0], timeout=60, values=values), [], 0
        self.conn.until(f.SETTINGS)
        self.conn.send(f.settings(ack=True), first)

    def send(self, frames_of, count=MOST):
        """`frames_of(i)` are the bytes of round i. Returns the error code of GOAWAY, None if the connection
        ends without one; a server that endures everything is a failure."""
        with self.conn:
            for start in range(0, count, BATCH):
                batch = b"".join(frames_of(i) for i in range(start, start + BATCH))
                if not self.conn.send_all_you_can(batch) or not self.look():
                    break
                self.sent += BATCH
            return self.goaway_code()

    def send_one_by_one(self, frames_of, count=MOST):
        """The same, but each round waits until the server has reset its stream."""
        with self.conn:
            for i in range(count):
                if not self.conn.send_all_you_can(frames_of(i)):
                    break
                while (frame := self.read_last()) and frame.type not in (f.RST_STREAM, f.GOAWAY):
                    pass
                if frame is None:
                    break
                self.seen.append(frame)
                if frame.type == f.GOAWAY:
                    break
                self.sent += 1
            return self.goaway_code()

    def goaway_code(self):
        while frame := self.read_last():
            self.seen.append(frame)
        codes = [int.from_bytes(frame.payload[4:8], "big") for frame in self.seen if frame.type == f.GOAWAY]
        return codes[-1] if codes else None

    def read_last(self):
        try:
            return self.conn.read()
        except ConnectionResetError:
            return None
        except TimeoutError:
            raise AssertionError(f"{self.sent} rounds are accepted; last came {self.seen[-3:]}") from None

    def look(self):
        """False once the end has been announced."""
        try:
            self.seen += self.conn.waiting()
        except ConnectionResetError:
            return False
        return not any(frame.type == f.GOAWAY for frame in self.seen)


def number(i):
    """The i-th stream."""
    return 2 * i + 1


def limits(keys):
    """Settings of [HTTP2], for `victim` and `probe`."""
    return {"config": {"plugins/static/static.conf": section("HTTP2", keys)}}


# ── each limit is the one that is configured ──

MALFORMED_HEAD = f.get("/hello.txt", ("connection", "close"))
POST = f.get("/hello.txt", method="POST")
UPLOAD = f.headers(101, POST, end=False)
FLOODS = {  # bytes sent before, and the frames of a round
    "MaxResets": (b"", lambda i: f.headers(number(i), f.get("/large.bin")) + f.rst_stream(number(i))),
    "MaxStreamErrors": (b"", lambda i: f.headers(number(i), MALFORMED_HEAD)),
    "MaxSettings": (b"", lambda i: f.settings()),
    "MaxPings": (b"", lambda i: f.ping()),
    "MaxEmptyFrames": (UPLOAD, lambda i: f.data(101)),
    "MaxEmptyFrames, HEADERS": (
        b"",
        lambda i: f.headers(number(i), b"", end=False, whole=False) + f.continuation(number(i), POST, whole=True),
    ),
    "MaxEmptyFrames, CONTINUATION": (
        b"",
        lambda i: f.headers(number(i), f.get(), whole=False) + f.continuation(number(i), whole=True),
    ),
    "MaxPriorities": (b"", lambda i: f.priority(number(i), 0)),
    "MaxWindowUpdates": (b"", lambda i: f.window_update(0, 255)),
}


@pytest.mark.parametrize("key", FLOODS)
def test_each_limit_is_the_one_that_is_configured(victim, key):
    """As many as it says are endured, and one more is too many."""
    first, flood = FLOODS[key]
    most = 4 - (key == "MaxSettings")  # the preface has one
    conn = f.FrameConnection(victim(**limits({key.split(",")[0]: 4})).addresses[0], values={f.INITIAL_WINDOW_SIZE: 100})
    with conn:
        conn.send(f.settings(ack=True), first, *[flood(i) for i in range(most)])
        conn.send(f.headers(1001, f.get()))
        conn.until(f.DATA, lambda frame: frame.stream == 1001)
        conn.send(flood(501) if not first else flood(0))
        assert conn.goaway_code() == CALM


@build.needs_probe
def test_so_many_streams_at_once(probe):
    """Those above the limit are refused as long as the client may not know it; each of them is a fault."""
    server, head = probe(**limits({"MaxConcurrentStreams": 3, "MaxStreamErrors": 4})), f.get("/probe/never")
    with f.FrameConnection(server.addresses[0]) as conn:
        greeting = conn.until(f.SETTINGS)
        assert greeting.payload[:6] == bytes([0, f.MAX_CONCURRENT_STREAMS, 0, 0, 0, 3])
        conn.send(*[f.headers(number(i), head) for i in range(3 + 4)])
        refused = [conn.until(f.RST_STREAM) for _ in range(4)]
        assert [(frame.stream, frame.number) for frame in refused] == [
            (number(i), f.REFUSED_STREAM) for i in range(3, 7)
        ]
        conn.send(f.headers(number(7), head))
        assert conn.goaway_code() == CALM


def head_in_pieces(stream, continuations):
    """A request in HEADERS and so many CONTINUATION frames."""
    block = f.get()
    pieces = [block[i : i + 1] for i in range(continuations)] + [block[continuations:]]
    more = [f.continuation(stream, piece, whole=i == continuations) for i, piece in enumerate(pieces)]
    return b"".join([f.headers(stream, pieces[0], whole=continuations == 0), *more[1:]])


def ask_in_pieces(conn, stream, continuations):
    conn.send(head_in_pieces(stream, continuations))
    conn.until(f.DATA, lambda frame: frame.stream == stream)


@pytest.mark.parametrize("most", [0, 3, 12])
def test_so_many_continuations_of_one_head(victim, most):
    """However many heads there are."""
    with f.FrameConnection(victim(**limits({"MaxContinuations": most})).addresses[0]) as conn:
        for i in range(3):
            ask_in_pieces(conn, number(i), most)
        conn.send(head_in_pieces(7, most + 1))
        assert conn.goaway_code() == CALM


# ── what is logged ──


def test_the_end_is_logged(victim):
    """The peer, the limit, and what to do about an honest client; but one line for all that come at once."""
    server = victim(**limits({"MaxPings": 10, "MaxContinuations": 1}))
    for _ in range(5):
        assert FrameFlood(server).send(lambda i: f.ping()) == CALM
    assert FrameFlood(server, f.headers(1, f.get(), whole=False)).send(lambda i: f.continuation(1)) == CALM
    server.wait_log(
        r"warn +HTTP/2 connection closed: more than 10 PING frames within 10 s "
        r"\(MaxPings of \[HTTP2\]: raise it if this is an honest client\), "
        r"peer: 127\.0\.0\.1, listener: 127\.0\.0\.1:0$"
    )
    server.wait_log(r"more than 1 CONTINUATION frames of one head \(MaxContinuations of ")


def test_totals_are_logged_at_the_end(serve):
    began = time.monotonic()
    server = serve({**PATIENT, "Workers": 1}, **limits({"MaxPings": 10, "MaxSettings": 10}))
    for _ in range(5):
        assert FrameFlood(server).send(lambda i: f.ping()) == CALM
    for _ in range(2):
        assert FrameFlood(server).send(lambda i: f.settings()) == CALM
    server.stop()
    server.wait_log("HTTP/2 connections closed by this worker: 2 for MaxSettings, 5 for MaxPings")
    lines = sum("(MaxPings of" in line for line in server.lines)
    assert 1 <= lines <= 1 + (time.monotonic() - began) // 10, "one in ten seconds"


# ── resets ──


@pytest.mark.parametrize("target", ["/hello.txt", "/large.bin"])
def test_rapid_reset(victim, target):
    """CVE-2023-44487: a request and its cancellation, again and again, never more than one at once."""
    head = f.get(target)
    flood = FrameFlood(victim())
    assert flood.send(lambda i: f.headers(number(i), head) + f.rst_stream(number(i))) == CALM


@build.needs_probe
def test_rapid_reset_of_work(probe):
    """What a handler has begun for such a stream ends with it."""
    server, head = probe(), f.get("/probe/never")
    assert FrameFlood(server).send(lambda i: f.headers(number(i), head) + f.rst_stream(number(i))) == CALM
    server.wait_log("probe: done /probe/never .* aborted")


def test_some_resets_are_no_attack(victim):
    """A reader that turns pages quickly."""
    client = victim().connect_h2()
    for _ in range(30):
        stream = client.begin("/large.bin")
        client.exactly(1000, stream)
        client.cancel(stream)
    client.assert_open()


PROVOCATIONS = {
    "window overflow": (CALM, lambda n: f.window_update(n, f.WINDOW_MAX)),
    "RST_STREAM of a wrong size": (f.FRAME_SIZE_ERROR, lambda n: f.frame(f.RST_STREAM, 0, n, b"\0\0")),
}


@build.needs_probe
@pytest.mark.parametrize("case", PROVOCATIONS)
def test_made_you_reset(probe, case):
    """CVE-2025-8671: the server resets the streams itself, which must count as well; or the connection ends at once."""
    server, head, (code, provoke) = probe(), f.get("/probe/never"), PROVOCATIONS[case]
    flood = FrameFlood(server)
    assert flood.send_one_by_one(lambda i: f.headers(number(i), head) + provoke(number(i))) == code
    assert flood.sent <= 101, "MaxStreamErrors, and the last one"
    server.wait_log("probe: done /probe/never")
    assert all("aborted" in line for line in server.lines if "probe: done /probe/never" in line)


MALFORMED = {
    "field of a connection": f.get("/hello.txt", ("connection", "close")),
    "upper case": f.get("/hello.txt", ("X", "y")),
    "no path": f.block((":method", "GET"), (":scheme", "http")),
    "length without a body": f.get("/hello.txt", ("content-length", "5")),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_requests_count(victim, case):
    """Each is a stream error, which costs a reset."""
    assert FrameFlood(victim()).send_one_by_one(lambda i: f.headers(number(i), MALFORMED[case])) == CALM


# ── floods ──


def test_continuation_flood(victim):
    """CVE-2024-27316: a head without an end."""
    server = victim()
    flood = FrameFlood(server, f.headers(1, f.get(), whole=False))
    piece = f.literal(b"x-flood", b"y" * 100)
    assert flood.send(lambda i: f.continuation(1, piece), 100_000) == CALM


def test_empty_continuations(victim):
    """The same without a single byte."""
    flood = FrameFlood(victim(), f.headers(1, f.get(), whole=False))
    assert flood.send(lambda i: f.continuation(1)) == CALM


def test_settings_flood(victim):
    """CVE-2019-9515: each wants an ACK."""
    assert FrameFlood(victim()).send(lambda i: f.settings()) == CALM


def test_ping_flood(victim):
    """CVE-2019-9512."""
    assert FrameFlood(victim()).send(lambda i: f.ping()) == CALM


@pytest.mark.parametrize("piece", [f.ping(), f.settings()], ids=["PING", "SETTINGS"])
def test_floods_of_a_client_that_does_not_read(victim, piece):
    """The answers pile up, but not without an end."""
    server = victim()
    with f.FrameConnection(server.addresses[0], timeout=2, rcvbuf=4096) as conn:
        for _ in range(2000):
            if not conn.send_all_you_can(piece * 1000):
                break
        conn.sock.settimeout(60)
        conn.frames()  # up to the end of the connection


@build.needs_probe
def test_empty_data_flood(probe):
    """CVE-2019-9518: frames without content cost no window."""
    flood = FrameFlood(probe(), f.headers(1, f.get("/probe/slow", method="POST"), end=False))
    assert flood.send(lambda i: f.data(1)) == CALM


@pytest.mark.parametrize("kind", ["idle", "running", "update"])
def test_priority_flood(victim, kind):
    """CVE-2019-9513: the order of streams is turned over and over."""
    frames_of = {
        "idle": lambda i: f.priority(number(i), number(i + 1)),
        "running": lambda i: f.priority(1, number(i + 1)),
        "update": lambda i: f.priority_update(1, f"u={i % 8}"),
    }[kind]
    assert FrameFlood(victim(), f.headers(1, f.get("/large.bin"))).send(frames_of) in (CALM, f.PROTOCOL_ERROR)


# ── tables and windows ──


def test_hpack_bomb(victim):
    """CVE-2016-6581: a field of 4,000 bytes in the table, and a head of references to it: one byte each."""
    field = b"\x40" + f.integer(6, 7) + b"x-bomb" + f.integer(3900, 7) + b"b" * 3900
    with f.FrameConnection(victim().addresses[0], timeout=60) as conn:
        conn.send(f.headers(1, f.get() + field))
        assert conn.until(f.DATA).payload == b"Hello, world\n", "one of them is no attack"
        conn.send(f.headers(3, f.get() + b"\xbe" * 16_000))
        assert conn.goaway_code() == CALM


def test_hpack_bomb_of_cookies(victim):
    """Crumbs are put together again: in all no more than a head may have."""
    with f.FrameConnection(victim().addresses[0], timeout=60) as conn:
        crumb = b"\x40" + f.integer(6, 7) + b"cookie" + f.integer(1, 7) + b"c"
        conn.send(f.headers(1, f.get() + crumb), f.headers(3, f.get() + b"\xbe" * 16_000))
        bodies = {}
        while len(bodies) < 2:
            frame = conn.until(f.DATA)
            bodies[frame.stream] = frame.payload
        assert bodies[1] == b"Hello, world\n"
        assert b"431" in bodies[3], "Request Header Fields Too Large"


def test_windows_of_a_byte(victim):
    """CVE-2019-9511: a large file, byte by byte."""
    flood = FrameFlood(victim(), f.headers(1, f.get("/large.bin")), {f.INITIAL_WINDOW_SIZE: 1})
    assert flood.send(lambda i: f.window_update(1, 1)) == CALM
    sent = [frame for frame in flood.seen if frame.type == f.DATA]
    assert len(sent) <= MOST


def test_useless_windows(victim):
    """For a connection with open windows."""
    assert FrameFlood(victim()).send(lambda i: f.window_update(0, 256)) == CALM


def test_windows_that_are_given_back(victim):
    """The smallest updates that are none too small, to the stream and to the connection, for each byte of an answer."""
    with f.FrameConnection(victim().addresses[0]) as conn:
        conn.send(f.headers(1, f.get("/large.bin")))
        while not (frame := conn.until(f.DATA)).flags & f.END_STREAM:
            conn.send((f.window_update(0, 256) + f.window_update(1, 256)) * (frame.length // 256))
        conn.sync()


# ── patience ──


def test_slow_reading_on_many_streams(victim):
    """CVE-2019-9517: all windows are open, but the client does not read. The server holds little."""
    server = victim()
    before, clients = server.memory_kb(), []
    for _ in range(10):
        conn = f.FrameConnection(server.addresses[0], rcvbuf=4096, values={f.INITIAL_WINDOW_SIZE: f.WINDOW_MAX})
        conn.send(f.window_update(0, f.WINDOW_MAX - f.WINDOW))
        conn.send(*[f.headers(number(i), f.get("/large.bin")) for i in range(90)])
        clients.append(conn)
    for client in [server.connect_h2(), server.connect_h2()]:
        assert client.ask("/large.bin").status == 200
    assert server.memory_kb() - before < ROOM_KB, "3 MB for each of 900 streams would be 2,700 MB"
    for conn in clients:
        conn.reset()


UNREAD = r"HTTP/2 response aborted: more than 400 ms .*\(SendTimeout of \[SERVER\].*, peer: 127\.0\.0\.1"


def test_closed_windows_on_many_streams(victim):
    """Each has its SendTimeout; all of them are reset, counted, and logged in a line."""
    server, count = victim({"SendTimeout": "400ms"}), 90
    server.baseline += 2  # what a first reload opens stays open
    with f.FrameConnection(server.addresses[0], values={f.INITIAL_WINDOW_SIZE: 0}) as conn:
        conn.send(*[f.headers(number(i), f.get("/large.bin")) for i in range(count)])
        reset = {conn.until(f.RST_STREAM).stream for _ in range(count)}
        assert reset == {number(i) for i in range(count)}
        server.wait_log(UNREAD)
        conn.send(f.headers(number(count), f.get(method="HEAD")))
        assert conn.until(f.HEADERS).stream == number(count), "the connection lives"
    server.connect_h2().assert_open()
    server.send_signal(signal.SIGHUP)
    server.wait_log(rf"HTTP/2 requests refused or aborted by this worker: {count} for SendTimeout$")
    assert len(server.wait_log(UNREAD)) == 1


def test_streams_of_clients_that_take_nothing(victim):
    """The windows are open, but nothing is read: the connection ends, and its streams are counted."""
    server = victim({"SendTimeout": "400ms"})
    with f.FrameConnection(server.addresses[0], rcvbuf=4096, values={f.INITIAL_WINDOW_SIZE: f.WINDOW_MAX}) as conn:
        conn.send(f.window_update(0, f.WINDOW_MAX - f.WINDOW))
        conn.send(*[f.headers(number(i), f.get("/large.bin")) for i in range(20)])
        server.wait_log(UNREAD)


@pytest.mark.parametrize("acknowledged", [False, True], ids=["not acknowledged", "acknowledged"])
def test_more_streams_than_there_may_be(victim, acknowledged):
    """MaxConcurrentStreams: excess ones are refused; a client that has acknowledged the limit is disconnected."""
    server = victim(**limits({"MaxConcurrentStreams": 20}))
    with f.FrameConnection(server.addresses[0], values={f.INITIAL_WINDOW_SIZE: 0}) as conn:
        conn.send(f.settings(ack=True) if acknowledged else b"")
        conn.send(*[f.headers(number(i), f.get("/large.bin")) for i in range(25)])
        if acknowledged:
            assert conn.goaway_code() == f.PROTOCOL_ERROR
            server.wait_log(
                r"HTTP/2 connection closed: more than 20 concurrent requests \(MaxConcurrentStreams of \["
            )
        else:
            refused = [conn.until(f.RST_STREAM) for _ in range(5)]
            assert {(frame.stream, frame.number) for frame in refused} == {
                (number(i), f.REFUSED_STREAM) for i in range(20, 25)
            }
            server.wait_log(r"HTTP/2 request refused: more than 20 concurrent requests \(MaxConcurrentStreams of \[")
            conn.sync()


@build.needs_probe
def test_slow_reading_of_generated_answers(probe):
    """The same where answers come from a handler."""
    server = probe()
    client = server.connect_h2(window=100, credit=False)
    before = server.memory_kb()
    for _ in range(client.most_streams - 10):
        client.begin("/probe/stream?100000000")
    client.ping()
    server.connect_h2().assert_open()
    assert server.memory_kb() - before < ROOM_KB


def test_bodies_that_are_not_read(victim):
    """Uploads to whatever does not want them, all windows used up, none of them ended."""
    server = victim()
    client = server.connect_h2()
    for _ in range(200):
        stream = client.begin("/hello.txt", method="POST", body=bytes(100_000), end=False)
        try:
            assert client.response(stream).status in (405, 413)
        except StreamReset:
            pass
        except GoneAway as gone:
            assert gone.code in (CALM, f.NO_ERROR)
            break
        client.cancel(stream)


@build.needs_probe
def test_bodies_that_handlers_do_not_take(probe):
    """Each stream may send as much as its window; the connection no more than its own."""
    server = probe()
    client = server.connect_h2()
    before = server.memory_kb()
    streams = [client.begin("/probe/never", method="POST", body=bytes(200_000), end=False) for _ in range(50)]
    client.ping()
    assert sum(len(client.streams[stream].out) for stream in streams) > 5_000_000, "most of it is still here"
    assert server.memory_kb() - before < ROOM_KB


@build.needs_probe
def test_thousands_of_idle_streams(probe):
    """On 40 connections, each with as many as it may have: they wait for a handler, at the cost of little."""
    server = probe()
    before, clients = server.memory_kb(), []
    for _ in range(40):
        client = server.connect_h2()
        client.ping()
        for _ in range(min(100, client.most_streams)):
            client.begin("/probe/never")
        client.ping()
        clients.append(client)
    with server.connect_h2() as other:
        other.assert_open()
    streams = sum(len(client.streams) for client in clients)
    assert (server.memory_kb() - before) / streams < (40 if build.SANITIZED else 12), "kilobytes for a stream"
    for client in clients:
        client.reset()
    server.wait_log("probe: done /probe/never .* aborted")  # of so many lines some may be lost
    await_true(lambda: server.descriptors() <= server.baseline + 2, 60, "the end of all connections")


def test_streams_that_wait_for_their_bodies(victim):
    """Slow POST on many streams: each has its BodyTimeout, all of them are answered or reset."""
    client = victim({"BodyTimeout": "300ms"}).connect_h2()
    streams = [client.begin("/hello.txt", "Content-Length: 100", method="POST", end=False) for _ in range(50)]
    for stream in streams:
        try:
            assert client.response(stream).status in (405, 408)
        except StreamReset as reset:
            assert reset.code != f.PROTOCOL_ERROR
    client.assert_open()


def test_files_that_are_not_taken(serve):
    """Each stream holds a file: two connections use all descriptors, and no other is accepted until they are closed."""
    server = serve(PATIENT, config=UNCACHED, nofile=128)
    slow_clients = []
    for _ in range(2):
        slow_client = f.FrameConnection(server.addresses[0], timeout=60, values={f.INITIAL_WINDOW_SIZE: 0})
        slow_client.send(b"".join(f.headers(number(i), f.get("/large.bin")) for i in range(100)))
        slow_client.sync()
        slow_clients.append(slow_client)
    with server.connect() as client:
        assert client.ask("/large.bin").status == 200
    server.wait_log(
        "HTTP/2 connection closed: more than 8 stalled requests while there is no room for new connections"
    )
    for slow_client in slow_clients:
        slow_client.close()


def test_idle_connections_give_way(serve):
    """When memory runs short, idle connections get GOAWAY, new ones are served, and HTTP/1 connections stay."""
    server = serve(SHORT)
    silent = [server.connect_h2() for _ in range(10)]
    for session in silent:
        session.assert_open()
    with server.connect() as cheap:
        cheap.assert_open()
        crowd = []
        while not any(session.conn.waiting() for session in silent):
            crowd += hold(server, 1)
            assert len(crowd) < SESSIONS_MAX, "nobody gives way"
        cheap.assert_open()
        for _ in range(100):
            crowd += hold(server, 1)
    for session in silent[1:]:
        assert session.await_goaway() == f.NO_ERROR


def hold(server, count):
    """Sessions that take memory, and have asked for nothing so far."""
    sessions = [server.connect_h2() for _ in range(count)]
    for session in sessions:
        session.ping()
    return sessions


def test_idle_sessions_are_given_up_when_memory_runs_short(serve):
    """By a GOAWAY after the last response, so that the client reconnects, before connections have to be aborted."""
    server = serve(SHORT)
    client, waiting = server.connect_h2(), []
    with pytest.raises(GoneAway) as gone:
        for _ in range(SESSIONS_MAX):
            client.assert_open()
            waiting += hold(server, 1)
    assert gone.value.code == f.NO_ERROR
    assert client.goaway[0] == client.last - 2, "the last one that was answered"
    assert len(waiting) > 5, "memory was not short yet"
    for session in waiting:
        session.ping()  # these are not idle, but new
    for session in waiting[5:]:
        session.close()
    await_true(lambda: server.descriptors() <= server.baseline + 6)
    with server.connect_h2() as client:
        for session in [client, *waiting[:5]] * 2:
            session.assert_open()
            session.ping()
            assert session.goaway is None, "memory is not short any more"


def test_sessions_that_were_given_up_hold_nothing(serve):
    """Their clients stay connected, and other clients are not affected."""
    server = serve(SHORT)
    early = hold(server, 5)
    late = []
    for _ in range(SESSIONS_MAX):
        late.append(server.connect_h2())
        late[-1].assert_open()
    assert late[0].await_goaway() == f.NO_ERROR
    for client in early:
        client.assert_open()
