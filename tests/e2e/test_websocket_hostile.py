# SPDX-License-Identifier: Apache-2.0
"""WebSockets whose clients vanish, read slowly, flood, or do not answer; and storms of random frames."""

import contextlib
import random
import threading

import pytest

from harness.content import cycle
from harness.messages import request
from harness.server import await_true
from harness.ways import WAYS
from harness.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Closed,
    Ended,
    WebSocket,
    close_frame,
    cut,
    fragments,
    frame,
    needs_wsprobe,
    start_wsprobe,
)

pytestmark = [needs_wsprobe, pytest.mark.single_protocol]
MB = 1 << 20


@pytest.fixture
def start(serve, tmp_path, site_root):
    def begin(way="h1", settings=None):
        return start_wsprobe(serve, WAYS[way], tmp_path, site_root, settings)

    return begin


def count_log(server, text):
    return server.log.count(text)


def await_closed(server):
    """Each WebSocket that was opened has been closed; some were closed before that."""
    await_true(lambda: count_log(server, "wsprobe: open") <= count_log(server, "wsprobe: closed"), 30, "all are closed")


# ── vanishing ──

WORDS = b"".join(
    [
        frame(TEXT, b"hello"),
        *fragments(TEXT, [b"a" * 10, b"b" * 130, "€".encode()]),
        frame(PING, b"are you there"),
        frame(BINARY, b"x" * 70_000)[:40],
    ]
)


@pytest.mark.parametrize("kind", ["reset", "close"])
@pytest.mark.parametrize("way", ["h1", "h1-tls"])
def test_clients_that_vanish_at_every_byte(start, way, kind):
    server = start(way)
    ws = WebSocket(server, do_handshake=False)
    data = bytes(request("/ws/echo", *ws.handshake())) + WORDS
    for n in range(0, len(data) + 1, 1 if way == "h1" else 7):
        client = server.open()
        client.send(data[:n])
        client.reset() if kind == "reset" else client.close()
    await_closed(server)
    WebSocket(server).assert_echo()


@pytest.mark.parametrize("kind", ["reset", "drop", "shut"])
@pytest.mark.parametrize("way", WAYS)
def test_clients_that_vanish_within_frames(start, way, kind):
    """In each state of an open WebSocket; "shut" ends only the client's side."""
    if kind == "shut" and way == "h1-tls":
        pytest.skip("TLS ends both sides")
    server = start(way)
    for n in range(0, len(WORDS) + 1, 3):
        ws = WebSocket(server)
        ws.send(WORDS[:n])
        if kind == "shut":
            ws.shut()
            ws.assert_cut()
            ws.drop()
        else:
            getattr(ws, kind)()
            ws.client.close()
    await_closed(server)
    assert "closed 1006" in server.log
    WebSocket(server).assert_echo()


@pytest.mark.parametrize("way", WAYS)
def test_clients_that_vanish_while_compressed_messages_come(start, way):
    server = start(way)
    for n in range(0, 400, 9):
        ws = WebSocket(server, "/ws/context", extensions="permessage-deflate")
        packed = ws.deflate.compress(cycle(2000))
        out = b"".join(fragments(BINARY, cut(packed, 100), rsv=4))
        ws.assert_echo(b"before")
        ws.send(out[:n])
        ws.reset() if n % 2 else ws.drop()
        ws.client.close()
    await_closed(server)


CLOSES = {
    "after our close frame": lambda ws: (ws.send_message("close 4000 bye"), ws.closing()),
    "after its own": lambda ws: ws.send(close_frame(1000)),
    "within its own": lambda ws: ws.send(close_frame(1000, b"reason")[:5]),
    "after an error": lambda ws: ws.send(frame(3)),
    "after abort()": lambda ws: (ws.send_message("abort"), ws.assert_cut()),
}


@pytest.mark.parametrize("moment", CLOSES)
@pytest.mark.parametrize("way", WAYS)
def test_clients_that_vanish_while_it_closes(start, way, moment):
    server = start(way)
    for kind in ("reset", "drop"):
        ws = WebSocket(server, "/ws/obey")
        CLOSES[moment](ws)
        with contextlib.suppress(OSError):
            getattr(ws, kind)()
        ws.client.close()
    await_closed(server)
    WebSocket(server).assert_echo()


# ── closing ──


@pytest.mark.parametrize("way", WAYS)
def test_the_server_closes(start, way):
    server = start(way)
    ws = WebSocket(server, "/ws/obey")
    ws.send_message("close 4000 until then")
    assert ws.closing() == (4000, b"until then")
    ws.send(frame(TEXT, b"too late") + close_frame(4000))
    ws.assert_end()
    server.wait_log('wsprobe: closed 4000 "until then"')


@pytest.mark.parametrize("way", WAYS)
def test_a_close_that_is_not_answered(start, way):
    """The stream ends after close_ms, even if the client continues sending."""
    ws = WebSocket(start(way), "/ws/obey")
    ws.send_message("close")
    assert ws.closing() == (None, b"")
    ws.send_all_you_can(frame(TEXT, b"what else") * 100)
    ws.assert_cut()


@pytest.mark.parametrize("way", WAYS)
def test_abort(start, way):
    server = start(way)
    ws = WebSocket(server, "/ws/obey")
    ws.send_message("abort")
    ws.assert_cut()
    server.wait_log('wsprobe: closed 1006 ""')


# ── pings ──


@pytest.mark.parametrize("way", WAYS)
def test_pings_that_are_answered(start, way):
    ws = WebSocket(start(way), "/ws/alive")
    for _ in range(4):
        payload = ws.control(PING)
        ws.send_frame(PONG, payload)
    ws.assert_echo()
    ws.close()


@pytest.mark.parametrize("way", WAYS)
def test_pings_that_are_not_answered(start, way):
    server = start(way)
    ws = WebSocket(server, "/ws/alive")
    ws.control(PING)
    ws.assert_cut()
    server.wait_log("wsprobe: closed 1006")


def test_the_service_sends_a_ping(start):
    server = start()
    ws = WebSocket(server, "/ws/obey")
    ws.send_message("ping")
    assert ws.control(PING) == b"are you there"
    ws.send_frame(PONG, b"are you there")
    server.wait_log('wsprobe: pong "are you there"')
    ws.close()


# ── slow readers ──


def slow(way):
    return {"window": 1000, "credit": False} if WAYS[way].h2 else {"rcvbuf": 4096}


@pytest.mark.parametrize("way", WAYS)
def test_a_service_that_produces_waits_for_its_readers(start, way):
    """Thirty readers that do not read, of messages without end; others are served, and memory is bounded."""
    server = start(way)
    before = server.memory_kb()
    readers = [WebSocket(server, "/ws/flood", **slow(way)) for _ in range(30)]
    others = [WebSocket(server) for _ in range(3)]
    for n in range(50):
        for ws in others:
            ws.assert_echo(f"message {n}")
    fast = WebSocket(server, "/ws/flood")
    for _ in range(2000):
        assert len(fast.message()[1]) == 1024
    assert server.memory_kb() - before < 60_000
    for ws in [*readers, fast, *others]:
        ws.drop()
    server.wait_log("wsprobe: closed", len(readers) + 1)


@pytest.mark.parametrize("way", WAYS)
def test_echoes_that_are_not_read(start, way):
    """A service that pauses: the client is stopped by flow control, and all echoes come at last, in order."""
    server = start(way)
    before = server.memory_kb()
    ws = WebSocket(server, "/ws/patient")
    count, size = (300, 8000) if WAYS[way].tls or WAYS[way].h2 else (3000, 8000)
    messages = b"".join(frame(BINARY, b"%08d" % n * (size // 8)) for n in range(count))
    if WAYS[way].h2:
        ws.send(messages)
    elif WAYS[way].tls:
        ws.client.sock.settimeout(30)
        ws.send(messages)
    else:
        ws.client.send_in_background(messages)
    for n in range(count):
        assert ws.message() == (BINARY, b"%08d" % n * (size // 8))
    assert server.memory_kb() - before < 40_000
    ws.close()


@pytest.mark.parametrize("way", ["h1", "h2"])
def test_a_slow_reader_of_broadcasts_is_closed(start, way):
    """Others get everything."""
    server = start(way)
    lazy = WebSocket(server, "/ws/shout", **slow(way))
    lazy.assert_echo("I am here")
    eager = WebSocket(server, "/ws/shout")
    data = cycle(60_000)
    for n in range(120):
        eager.send_frame(BINARY, b"%04d" % n + data)
        assert eager.message() == (BINARY, b"%04d" % n + data)
    server.wait_log('wsprobe: closed 1008 "reads too slowly"')
    eager.close()


@pytest.mark.parametrize("way", ["h1", "h2"])
def test_a_slow_reader_may_lose_broadcasts_instead(start, way):
    """It stays open, gets whole messages in order, and again all of them when it reads."""
    server = start(way)
    lazy = WebSocket(server, "/ws/drop", **slow(way))
    eager = WebSocket(server, "/ws/shout")
    lazy.send_message("I am here")
    assert lazy.message()[1] == eager.message()[1] == b"I am here"
    data = cycle(30_000)
    for n in range(300):
        eager.send_frame(BINARY, b"%04d" % n + data)
        assert eager.message() == (BINARY, b"%04d" % n + data)
    if WAYS[way].h2:
        lazy.client.granting = True
        lazy.client.grant(1 << 20)
        lazy.client.grant(1 << 20, lazy.number)
    numbers = []

    def read_up_to(last):
        while not numbers or numbers[-1] != last:
            _, got = lazy.message()
            assert got[4:] == data
            numbers.append(int(got[:4]))

    number = 1000
    while not numbers or numbers[-1] < 1000:  # the first of these may still be dropped
        eager.send_frame(BINARY, b"%04d" % number + data)
        eager.message()
        _, got = lazy.message()
        numbers.append(int(got[:4]))
        number += 1
    read_up_to(number - 1) if numbers[-1] != number - 1 else None
    assert numbers == sorted(set(numbers)) and len(numbers) < 300
    lazy.close()
    eager.close()


def test_pongs_that_are_not_read(start):
    """A flood of pings by a client that reads nothing does not fill the memory."""
    server = start()
    before = server.memory_kb()
    ws = WebSocket(server, "/ws/patient", rcvbuf=4096)
    for _ in range(30):
        ws.send(frame(PING, b"x" * 125) * 8000)
    assert server.memory_kb() - before < 40_000
    ws.drop()
    await_closed(server)


# ── storms ──


class Storm:
    """Random frames, right ones, and what their echo must be."""

    def __init__(self, seed, ws):
        self.dice, self.ws, self.sent, self.pings = random.Random(seed), ws, [], []

    def make_message(self):
        dice, size = self.dice, self.dice.choice([0, 1, 5, 125, 126, 300, 4096, 65_535, 65_536, 90_000])
        if dice.random() < 0.5:
            text = "".join(dice.choice("aé€𝄞 ") for _ in range(size // 3)).encode()
            return TEXT, text
        return BINARY, dice.randbytes(size)

    def make_frames(self):
        opcode, data = self.make_message()
        self.sent.append((opcode, data))
        packs = self.ws.deflate is not None and self.dice.random() < 0.7
        payload = self.ws.deflate.compress(data) if packs else data
        pieces = cut(payload, self.dice.choice([1 << 20, 5000, max(1, len(payload) // 7)]))
        frames = fragments(opcode, pieces, rsv=4 * packs)
        for at in range(len(frames)):
            if self.dice.random() < 0.2:
                self.pings.append(b"%d" % len(self.pings))
                frames[at] += frame(PING, self.pings[-1])
            if self.dice.random() < 0.1:
                frames[at] += frame(PONG, b"unasked")
        return b"".join(frames)

    def send(self, data):
        size = self.dice.choice([len(data) + 1, 1400, 70_000])
        for piece in cut(data, size):
            self.ws.send(piece)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("path", ["/ws/echo", "/ws/context"])
def test_storms(ws_server, path, seed):
    ws = WebSocket(ws_server, path, extensions=[None, "permessage-deflate", "permessage-deflate"][seed])
    storm = Storm(f"{path} {seed}", ws)
    for _ in range(40):
        before = len(storm.sent)
        storm.send(b"".join(storm.make_frames() for _ in range(storm.dice.randrange(1, 4))))
        for wanted in storm.sent[before:]:
            assert ws.message() == wanted
    ws.send(close_frame(1000))
    assert ws.closing()[0] == 1000
    assert ws.controls == [(PONG, payload) for payload in storm.pings]


@pytest.mark.parametrize("seed", range(40))
def test_noise(ws_server, seed):
    """Frames in which a byte is changed, and noise: the server answers, or closes for a reason, and continues."""
    dice = random.Random(seed)
    ws = WebSocket(ws_server, "/ws/small", extensions="permessage-deflate" if seed % 2 else None)
    storm = Storm(seed, ws)
    data = bytearray(b"".join(frame(*storm.make_message()[:1], b"a" * dice.randrange(300)) for _ in range(10)))
    for _ in range(dice.randrange(1, 4)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    if seed % 5 == 0:
        data = dice.randbytes(400)
    ws.send_all_you_can(bytes(data) + close_frame(1000))
    ws.shut() if not ws_server.way.tls or ws_server.way.h2 else None
    code = None
    with contextlib.suppress(Ended, UnicodeDecodeError):
        code, _ = ws.closing()
    assert code in (None, 1000, 1002, 1007, 1009)
    ws.drop()
    WebSocket(ws_server).assert_echo()


def test_many_at_once(ws_server):
    """Clients of all kinds at the same time, in threads."""
    failures = []

    def work(seed):
        try:
            dice = random.Random(seed)
            for _ in range(5):
                ws = WebSocket(ws_server, dice.choice(["/ws/echo", "/ws/context"]), extensions="permessage-deflate")
                for _ in range(dice.randrange(6)):
                    ws.assert_echo(dice.randbytes(dice.choice([1, 100, 20_000])))
                dice.choice([ws.close, ws.drop, ws.reset])()
                ws.client.close()
        except (AssertionError, OSError, Closed) as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures, failures


def test_a_stream_of_continuations(ws_server):
    """Empty fragments cost nothing to make; the message has an end nevertheless."""
    ws = WebSocket(ws_server)
    ws.send(frame(TEXT, b"a", fin=False) + frame(CONTINUATION, b"", fin=False) * 20_000 + frame(CONTINUATION, b"b"))
    assert ws.message() == (TEXT, b"ab")
    ws.send(frame(CLOSE))
    assert ws.closing() == (None, b"")
