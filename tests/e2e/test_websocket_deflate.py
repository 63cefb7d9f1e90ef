# SPDX-License-Identifier: Apache-2.0
"""Compressed messages of WebSockets (RFC 7692): the cases of the Autobahn suite, sections 12 and 13, and what is wrong.
zlib of Python and the package wsproto are the other side."""

import functools
import json
import random
import zlib

import pytest

from harness.websocket import (
    BINARY,
    CONTINUATION,
    PING,
    RSV1,
    TEXT,
    Closed,
    WebSocket,
    cut,
    fragments,
    frame,
    needs_wsprobe,
)

pytestmark = [needs_wsprobe, pytest.mark.single_protocol]
SIZES = (16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072)
WHOLE_SIZES = 5  # of the sizes, with several messages each


@functools.cache
def corpus(kind):
    """256 KB of text, of markup or of noise, as in Autobahn's section 12."""
    dice = random.Random(kind)
    if kind == "noise":
        return dice.randbytes(1 << 18)
    if kind == "json":
        rows = [{"number": n, "name": f"user {dice.randrange(1000)}", "value": dice.random()} for n in range(6000)]
        return json.dumps(rows).encode()[: 1 << 18]
    words = ["lorem", "ipsum", "dolor", "sit", "amet", "schön", "κόσμε", "€", "𝄞"]
    return " ".join(dice.choice(words) for _ in range(60_000)).encode()[: 1 << 18]


def sample(kind, size, at=0):
    """A part of it; text stays whole."""
    start = at * 977 % (1 << 16)
    data = corpus(kind)[start : start + size]
    return data if kind == "noise" else data.decode("utf-8", "ignore").encode()


def client_offer(server_no_context=False, server_bits=0, plain=""):
    params = ["permessage-deflate", "client_no_context_takeover", "client_max_window_bits"]
    params += ["server_no_context_takeover"] * server_no_context
    params += [f"server_max_window_bits={server_bits}"] * bool(server_bits)
    return "; ".join(params)


OFFERS = {
    "12": "permessage-deflate; client_max_window_bits",
    "all parameters": "permessage-deflate; client_no_context_takeover; server_no_context_takeover; "
    "server_max_window_bits=15; client_max_window_bits=14",
    "13.1": client_offer(),
    "13.2": client_offer(True),
    "13.3": client_offer(False, 9),
    "13.4": client_offer(False, 15),
    "13.5": client_offer(True, 9),
    "13.6": client_offer(True, 15),
    "13.7": [client_offer(True, 9), client_offer(True), client_offer()],
}


@pytest.mark.parametrize("path", ["/ws/echo", "/ws/context"])
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_sections_12_and_13(ws_server, offer, path):
    """All sizes and kinds, whole and in fragments, on one WebSocket: with context, each message follows others."""
    ws = WebSocket(ws_server, path, extensions=offer)
    assert ws.deflate
    compressed = 0
    for kind in ("text", "json", "noise"):
        opcode = BINARY if kind == "noise" else TEXT
        for size in SIZES:
            for at in range(4 if size < SIZES[WHOLE_SIZES] else 1):
                data = sample(kind, size, at)
                assert ws.echo(data, opcode, size=None if at % 2 else 1300) == data
                compressed += ws.packed
    assert compressed > 20
    ws.close()


@pytest.mark.parametrize("bits", range(9, 16))
def test_windows_of_the_server(ws_server, bits):
    """Python's zlib complains if a reference reaches farther than the window."""
    ws = WebSocket(ws_server, "/ws/context", extensions=f"permessage-deflate; server_max_window_bits={bits}")
    assert ws.deflate.bits["server"] <= bits
    for kind in ("text", "json"):
        ws.assert_echo(sample(kind, 60_000))
    ws.close()


@pytest.mark.parametrize("level", [0, 1, 9])
def test_levels_of_the_client(ws_server, level):
    ws = WebSocket(ws_server, "/ws/context", extensions="permessage-deflate")
    ws.deflate.level = level
    for kind in ("text", "noise"):
        ws.assert_echo(sample(kind, 50_000), opcode=BINARY)
    ws.close()


AGREED = {
    "permessage-deflate": {},
    "permessage-deflate; client_max_window_bits": {},
    "permessage-deflate; client_max_window_bits=10": {},
    'permessage-deflate; client_max_window_bits="10"': {},
    "permessage-deflate; server_max_window_bits=10": {"server_max_window_bits": "10"},
    "permessage-deflate; server_no_context_takeover": {"server_no_context_takeover": ""},
    "permessage-deflate; client_no_context_takeover": {"client_no_context_takeover": ""},
    "x-unknown, permessage-deflate": {},
    "permessage-deflate; unknown, permessage-deflate; server_max_window_bits=11": {"server_max_window_bits": "11"},
}


@pytest.mark.parametrize("offer", AGREED)
def test_offers_that_are_accepted(ws_server, offer):
    ws = WebSocket(ws_server, "/ws/context", extensions=offer)
    assert ws.deflate
    for name, value in AGREED[offer].items():
        assert ws.deflate.params[name] == value
    ws.assert_echo(sample("text", 5000))
    ws.assert_echo(sample("text", 5000, 1))
    ws.close()


REFUSED_OFFERS = (
    "x-webkit-deflate-frame",
    "permessage-deflate; unknown",
    "permessage-deflate; server_max_window_bits",
    "permessage-deflate; server_max_window_bits=7",
    "permessage-deflate; server_max_window_bits=16",
    "permessage-deflate; server_max_window_bits=010",
    "permessage-deflate; client_max_window_bits=16",
    "permessage-deflate; client_max_window_bits=x",
    "permessage-deflate; server_no_context_takeover=1",
    "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
    "permessage-bzip2",
)


@pytest.mark.parametrize("offer", REFUSED_OFFERS)
def test_offers_that_are_declined(ws_server, offer):
    """The WebSocket is opened without compression, and RSV1 is an error then."""
    ws = WebSocket(ws_server, extensions=offer)
    assert ws.deflate is None
    ws.assert_echo("x" * 1000)
    ws.send_frame(TEXT, b"hello", rsv=RSV1)
    assert ws.closing()[0] == 1002


def test_where_it_is_off(ws_server):
    ws = WebSocket(ws_server, "/ws/plain", extensions="permessage-deflate")
    assert ws.deflate is None
    ws.close()


def open_deflate(server, path="/ws/echo"):
    return WebSocket(server, path, extensions="permessage-deflate")


def test_messages_that_are_not_compressed(ws_server):
    """RFC 7692 §6: each message is compressed or not; those between do not change the window."""
    for path in ("/ws/echo", "/ws/context"):
        ws = open_deflate(ws_server, path)
        for at in range(10):
            ws.assert_echo(sample("json", 3000, at), pack=at % 3 != 1)
        ws.close()


def test_control_frames_within_a_compressed_message(ws_server):
    ws = open_deflate(ws_server)
    data = sample("text", 20_000)
    frames = fragments(TEXT, cut(ws.deflate.compress(data), 700), rsv=RSV1)
    ws.send(b"".join(each + frame(PING, b"%d" % n) for n, each in enumerate(frames)))
    assert ws.message() == (TEXT, data)
    assert ws.controls == [(10, b"%d" % n) for n in range(len(frames) - 1)]
    ws.close()


def deflated(data, *, last=False, block=None, bits=15):
    """DEFLATE by other means: `last`: with BFINAL; `block`: with blocks of that many bytes."""
    z = zlib.compressobj(6, zlib.DEFLATED, -bits)
    if block:
        return b"".join(z.compress(piece) + z.flush(zlib.Z_FULL_FLUSH) for piece in cut(data, block))[:-4]
    out = z.compress(data)
    return out + (z.flush(zlib.Z_FINISH) if last else z.flush(zlib.Z_SYNC_FLUSH)[:-4])


def stored(data):
    return b"".join(b"\0" + len(p).to_bytes(2, "little") + (len(p) ^ 0xFFFF).to_bytes(2, "little") + p
                    for p in cut(data, 60_000)) + b"\0"  # fmt: skip


DATA = b"hello, hello, " * 300
FORMS = {
    "RFC 7692, 7.2.3.1": (bytes.fromhex("f248cdc9c90700"), b"Hello"),
    "7.2.3.3, a block that is not compressed": (bytes.fromhex("000500faff48656c6c6f00"), b"Hello"),
    "7.2.3.4, a last block": (bytes.fromhex("f348cdc9c9070000"), b"Hello"),
    "7.2.3.5, two blocks": (bytes.fromhex("f248050000 00ffff cac9c90700"), b"Hello"),
    "7.2.3.6, an empty message": (b"\0", b""),
    "an empty payload": (b"", b""),
    "a last block only": (deflated(DATA, last=True), DATA),
    "many blocks": (deflated(DATA, block=100), DATA),
    "stored blocks": (stored(DATA * 40), DATA * 40),
    "a small window": (deflated(DATA, bits=9), DATA),
    "a byte of each value": (deflated(bytes(range(256))), bytes(range(256))),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [None, 1, 5])
def test_forms(ws_server, form, size):
    packed, data = FORMS[form]
    if size and len(packed) > 2000:
        size += 1000
    ws = open_deflate(ws_server)
    for _ in range(2):
        ws.send(b"".join(fragments(BINARY, cut(packed, size) if size else [packed], rsv=RSV1)))
        assert ws.message() == (BINARY, data)
    ws.close()


WRONG = {
    "a reserved block": (b"\x06\x00\x00", 1007),
    "noise": (b"\xff\xff\xff\xff\xff\xff", 1007),
    "a reference before the beginning": (bytes.fromhex("030500") + b"\x12\x34", 1007),
    "a cut message": (deflated(DATA)[:-3], 1007),
    "a stored block that is cut": (b"\0\x05\0\xfa\xffHel", 1007),
    "a stored block with a wrong length": (b"\0\x05\0\xfb\xffHello\0", 1007),
}


@pytest.mark.parametrize("form", WRONG)
def test_what_is_wrong(ws_server, form):
    packed, code = WRONG[form]
    for size in (None, 1):
        ws = open_deflate(ws_server)
        ws.send_all_you_can(b"".join(fragments(BINARY, cut(packed, size) if size else [packed], rsv=RSV1)))
        assert ws.closing()[0] == code
        ws.assert_end()


@pytest.mark.parametrize(
    "frames",
    [
        [frame(TEXT, b"a", fin=False), frame(CONTINUATION, b"b", rsv=RSV1)],
        [frame(PING, b"a", rsv=RSV1)],
        [frame(CONTINUATION, b"a", rsv=RSV1)],
        [frame(TEXT, b"\0", rsv=RSV1 | 2)],
    ],
)
def test_rsv1_where_it_may_not_be(ws_server, frames):
    ws = open_deflate(ws_server)
    ws.send_all_you_can(b"".join(frames))
    assert ws.closing()[0] == 1002
    ws.assert_end()


def test_references_to_earlier_messages(ws_server):
    """The client keeps its context where the server lets it: the second message is short."""
    ws = open_deflate(ws_server, "/ws/context")
    assert ws.deflate.takeover == {"client": True, "server": True}
    data = sample("noise", 5000)
    sizes = []
    for _ in range(3):
        ws.send_message(data)
        got = ws.read()
        sizes.append(len(got.payload))
        assert got.rsv == RSV1 and ws.deflate.decompress(got.payload) == data
    assert sizes[0] > 5000 > 500 > sizes[1]
    ws.close()


def test_no_references_without_context(ws_server):
    """Whatever the client forgets between two messages does not matter."""
    ws = WebSocket(ws_server, "/ws/context", extensions=client_offer(True))
    assert ws.deflate.takeover == {"client": False, "server": False}
    for at in range(5):
        ws.assert_echo(sample("json", 4000))
    ws.close()


# ── bombs ──


def bomb(size):
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"".join(z.compress(bytes(1 << 20)) for _ in range(size >> 20)) + z.flush(zlib.Z_SYNC_FLUSH)[:-4]


@pytest.mark.parametrize("path, size", [("/ws/small", 400), ("/ws/context", None), ("/ws/context", 400)])
def test_bombs(ws_server, path, size):
    """A message of 80 MB in 80 KB ends at the limit, with memory to match."""
    before = ws_server.memory_kb("VmHWM")
    ws = open_deflate(ws_server, path)
    packed = bomb(80 << 20)
    ws.send_all_you_can(b"".join(fragments(BINARY, cut(packed, size) if size else [packed], rsv=RSV1)))
    assert ws.closing()[0] == 1009
    ws.assert_end()
    assert ws_server.memory_kb("VmHWM") - before < 40_000


# ── wsproto ──


@pytest.mark.parametrize("path", ["/ws/echo", "/ws/context", "/ws/plain"])
@pytest.mark.parametrize("seed", range(3))
def test_wsproto(ws_server, path, seed):
    """A storm of messages, fragments and pings of another implementation."""
    wsproto = pytest.importorskip("wsproto")
    from wsproto.connection import Connection, ConnectionType
    from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
    from wsproto.extensions import PerMessageDeflate

    extension = PerMessageDeflate()
    offer = extension.offer()
    ws = WebSocket(ws_server, path, extensions=f"permessage-deflate; {offer}" if offer is not True else None)
    extensions = []
    if ws.deflate:
        extension.finalize(ws.head["Sec-WebSocket-Extensions"])
        extensions = [extension]
    peer, dice = Connection(ConnectionType.CLIENT, extensions), random.Random(f"{path} {seed}")
    sent, pings, got, ponged, parts = [], [], [], [], []
    for at in range(60):
        kind, size = dice.choice(["text", "json", "noise"]), dice.choice([0, 1, 60, 125, 126, 1000, 5000, 70_000])
        data = sample(kind, size, at)
        make = (lambda part: BytesMessage(data=part)) if kind == "noise" else None
        pieces = cut(data, dice.choice([7, 100, 3000, 1 << 20])) if len(data) < 7000 else [data]
        if make is None:
            text = data.decode()
            pieces = [text[: len(text) // 2], text[len(text) // 2 :]] if dice.random() < 0.5 else [text]
        out = b""
        for number, piece in enumerate(pieces):
            whole = number == len(pieces) - 1
            event = BytesMessage(piece, message_finished=whole) if make else TextMessage(piece, message_finished=whole)
            out += peer.send(event)
            if dice.random() < 0.1:
                pings.append(b"%d" % at)
                out += peer.send(Ping(pings[-1]))
        sent.append(data)
        ws.send(out)
        while len(got) < len(sent):
            peer.receive_data(receive(ws))
            for event in peer.events():
                if isinstance(event, Pong):
                    ponged.append(bytes(event.payload))
                    continue
                parts.append(event.data.encode() if isinstance(event, TextMessage) else bytes(event.data))
                if event.message_finished:
                    got.append(b"".join(parts))
                    parts.clear()
        assert got[-1] == data
    ws.send(peer.send(CloseConnection(code=1000, reason="bye")))
    closes = []
    while not closes:
        peer.receive_data(receive(ws))
        for event in peer.events():
            assert isinstance(event, (Pong, CloseConnection)), event
            if isinstance(event, Pong):
                ponged.append(bytes(event.payload))
            else:
                closes.append(event.code)
    assert closes == [1000] and ponged == pings
    assert wsproto.__version__


def receive(ws):
    """What has come, at least a byte."""
    if ws.way.h2:
        stream = ws.client.streams[ws.number]
        return ws.exactly(1) + ws.exactly(len(stream.body) - stream.taken)
    assert ws.client.buffer or ws.client.fill()
    return ws.exactly(len(ws.client.buffer))
