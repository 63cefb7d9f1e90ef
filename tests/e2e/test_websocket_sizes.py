# SPDX-License-Identifier: Apache-2.0
"""Long and many messages of WebSockets: the cases of the Autobahn suite, section 9, with fewer of the long ones, and
limits."""

import pytest

from harness.content import cycle
from harness.websocket import BINARY, PONG, TEXT, WebSocket, close_frame, cut, fragments, frame, needs_wsprobe

pytestmark = [needs_wsprobe, pytest.mark.single_protocol]
KB, MB = 1024, 1024 * 1024


def sizes_of(server):
    """HTTP/2 of the harness is slow."""
    return (64 * KB, 256 * KB, MB) if server.way.h2 else (64 * KB, 256 * KB, MB, 4 * MB, 16 * MB)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_long_messages(ws_server, opcode):
    """9.1 and 9.2."""
    ws = WebSocket(ws_server, "/ws/plain")
    for size in sizes_of(ws_server):
        data = b"*" * size if opcode == TEXT else cycle(size)
        ws.send(frame(opcode, data))
        assert ws.message() == (opcode, data)
    ws.close()


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
@pytest.mark.parametrize("piece", [64, 256, KB, 4 * KB, 16 * KB, 64 * KB, 256 * KB])
def test_long_messages_in_fragments(ws_server, opcode, piece):
    """9.3 and 9.4."""
    size = min(MB, piece * 4096)
    data = b"*" * size if opcode == TEXT else cycle(size)
    ws = WebSocket(ws_server, "/ws/plain")
    ws.send(b"".join(fragments(opcode, cut(data, piece))))
    assert ws.message() == (opcode, data)
    ws.close()


@pytest.mark.parametrize("piece", [64, 512, 2 * KB])
def test_long_messages_in_small_writes(ws_server, piece):
    """9.5 and 9.6."""
    data = cycle(piece * 1024 if piece < 2 * KB else MB)
    ws = WebSocket(ws_server, "/ws/plain")
    for part in cut(frame(BINARY, data), piece):
        ws.send(part)
    assert ws.message() == (BINARY, data)
    ws.close()


@pytest.mark.parametrize("size", [0, 16, 64, 256, 1024, 4096])
def test_thousand_messages(ws_server, size):
    """9.7 and 9.8; a hundred are under way at a time."""
    ws = WebSocket(ws_server, "/ws/plain")
    for turn in range(10):
        messages = [(b"%08d" % (turn * 100 + n) * (size // 8 + 1))[:size] for n in range(100)]
        ws.send(b"".join(frame(TEXT if n % 2 else BINARY, data) for n, data in enumerate(messages)))
        assert [ws.message()[1] for _ in messages] == messages
    ws.close()


# ── limits: /ws/small takes messages of 1,000 bytes, in frames of 500 ──


@pytest.mark.parametrize("extensions", [None, "permessage-deflate"])
def test_messages_up_to_the_limit(ws_server, extensions):
    ws = WebSocket(ws_server, "/ws/small", extensions=extensions)
    for pieces in ([b"a" * 500], [b"a" * 500] * 2, [b"a"] * 1000, [b"", b"a" * 500, b"a" * 500, b""]):
        data = b"".join(pieces)
        ws.send(b"".join(fragments(TEXT, pieces)))
        assert ws.message() == (TEXT, data)
        ws.assert_echo(data, size=500)
    ws.close()


@pytest.mark.parametrize(
    "pieces",
    [[b"a" * 501], [b"a" * 500, b"a" * 501], [b"a" * 500, b"a" * 500, b"a"], [b"a" * 500, b"a" * 499, b"", b"aa"]],
)
def test_messages_beyond_the_limit(ws_server, pieces):
    ws = WebSocket(ws_server, "/ws/small")
    ws.send_all_you_can(b"".join(fragments(TEXT, pieces)))
    assert ws.closing()[0] == 1009
    ws.assert_end()


def test_the_limit_holds_before_the_message_has_come(ws_server):
    ws = WebSocket(ws_server, "/ws/small")
    ws.send(frame(TEXT, b"", length=501, key=None)[:1] + b"\xfe" + (501).to_bytes(2, "big"))
    assert ws.closing()[0] == 1009
    ws.assert_end()


def test_a_close_frame_reaches_a_client_that_continues_sending(ws_server):
    """What the server has not read would otherwise reset the connection, and with it the close frame."""
    ws = WebSocket(ws_server, "/ws/small")
    ws.send_all_you_can(frame(TEXT, b"a" * 501) + frame(BINARY, bytes(200_000)))
    assert ws.closing()[0] == 1009
    ws.assert_end()


def test_pings_between_long_messages(ws_server):
    """Control frames are answered while a message is under way, and echoes do not starve them."""
    ws = WebSocket(ws_server, "/ws/plain")
    data = cycle(300_000)
    for at, piece in enumerate(fragments(BINARY, cut(data, 50_000))):
        ws.send(piece + frame(9, b"%d" % at))
        if at < 5:
            assert ws.control(PONG) == b"%d" % at
    assert ws.message() == (BINARY, data)
    assert ws.control(PONG) == b"5"
    ws.send(close_frame(1000))
    assert ws.closing() == (1000, b"")
