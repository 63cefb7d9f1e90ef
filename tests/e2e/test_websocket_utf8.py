# SPDX-License-Identifier: Apache-2.0
"""The text of WebSockets is UTF-8: the cases of the Autobahn suite, section 6. Python's decoder, which is as strict as
RFC 3629, says what is valid."""

import pytest

from harness.websocket import CONTINUATION, RSV1, TEXT, Closed, WebSocket, cut, fragments, frame, needs_wsprobe
from harness.websocket_cases import play_all

pytestmark = [needs_wsprobe, pytest.mark.single_protocol]
KOSME = "κόσμε".encode()
EURO = "Hello-µ@ßöäüàá-UTF-8!!".encode()
BROKEN = b"\xed\xa0\x80" + b"edited"  # a surrogate


def point(number):
    """A code point in the encoding that RFC 2279 had, for surrogates and for up to 31 bits."""
    if number < 0x80:
        return bytes([number])
    count = next(n for n, top in enumerate((0x800, 0x10000, 0x200000, 0x4000000, 1 << 31), 2) if number < top)
    rest = [0x80 | (number >> 6 * at) & 63 for at in reversed(range(count - 1))]
    return bytes([(0xFF00 >> count) & 0xFF | number >> 6 * (count - 1), *rest])


PAYLOADS = {
    "6.2": [EURO, EURO * 20],
    "6.3": [KOSME + BROKEN, BROKEN, b"\xff", b"\xc0"],
    "6.5": [KOSME, b"hello\x24world", b"hello\xc2\xa2world", b"hello\xe2\x82\xacworld", b"hello\xf0\xa4\xad\xa2world"],
    "6.6": [KOSME[:n] for n in range(len(KOSME) + 1)],
    "6.7": [point(n) for n in (0, 0x80, 0x800, 0x10000)],
    "6.8": [point(n) for n in (0x200000, 0x4000000)],
    "6.9": [point(n) for n in (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)],
    "6.10": [point(n) for n in (0x1FFFFF, 0x3FFFFFF, 0x7FFFFFFF)],
    "6.11": [point(n) for n in (0xD7FF, 0xE000, 0xFFFD, 0x10FFFF, 0x110000)],
    "6.12": [b"\x80", b"\xbf"] + [b"\x80\xbf" * 4][:1] + [(b"\x80\xbf" * 4)[:n] for n in range(2, 8)],
    "6.12, all": [bytes(range(0x80, 0xC0))],
    "6.13": [b" ".join(bytes([n]) for n in range(0xC0, 0xE0)), *(bytes([n, 0x20]) for n in range(0xC0, 0x100))],
    "6.14": [b"\xc0", b"\xe0\x80", b"\xf0\x80\x80", b"\xf8\x80\x80\x80", b"\xfc\x80\x80\x80\x80", b"\xdf", b"\xef\xbf"],
    "6.15": [b"\xc0\xe0\x80\xf0\x80\x80\xf8\x80\x80\x80\xdf\xef\xbf\xf7\xbf\xbf\xfb\xbf\xbf\xbf"],
    "6.16": [b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"],
    "6.17": [b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xf8\x80\x80\x80\xaf", b"\xfc\x80\x80\x80\x80\xaf"],
    "6.18": [b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xf8\x87\xbf\xbf\xbf", b"\xfc\x83\xbf\xbf\xbf\xbf"],
    "6.19": [b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf8\x80\x80\x80\x80", b"\xfc\x80\x80\x80\x80\x80"],
    "6.20": [point(n) for n in (0xD800, 0xDB7F, 0xDB80, 0xDBFF, 0xDC00, 0xDF80, 0xDFFF)],
    "6.21": [point(a) + point(b) for a in (0xD800, 0xDB7F, 0xDB80, 0xDBFF) for b in (0xDC00, 0xDFFF)],
    "6.22": [point(plane << 16 | n) for plane in range(17) for n in (0xFFFE, 0xFFFF)],
    "6.23": [point(n) for n in (*range(0xFFF9, 0xFFFE), 0xFDD0, 0xFDEF, 0xFEFF)],
}


def is_valid(payload):
    try:
        payload.decode()
        return True
    except UnicodeDecodeError:
        return False


def make_case(payload, size):
    frames = [frame(TEXT, payload)] if size is None else fragments(TEXT, cut(payload, size))
    return (frames, [(TEXT, payload)], None) if is_valid(payload) else (frames, [], 1007)


EMPTY = {
    "6.1.1": ([frame(TEXT)], [(TEXT, b"")], None),
    "6.1.2": (fragments(TEXT, [b"", b"", b""]), [(TEXT, b"")], None),
    "6.1.3": (fragments(TEXT, [b"", b"middle", b""]), [(TEXT, b"middle")], None),
}
TABLES = {
    "6.1": EMPTY,
    **{
        section: {
            f"{payload!r} in {size or 'one'}": make_case(payload, size) for payload in payloads for size in (None, 1)
        }
        for section, payloads in PAYLOADS.items()
    },
}


@pytest.mark.parametrize("section", TABLES)
def test_sections(ws_server, section):
    play_all(ws_server, TABLES[section], None)


@pytest.mark.parametrize("section", ["6.2", "6.3", "6.6", "6.14", "6.17"])
def test_octet_by_octet(ws_server, section):
    play_all(ws_server, TABLES[section], 1)


def test_text_that_is_valid_only_as_a_whole(ws_server):
    """6.2.2: a character that is cut by fragments; 6.2.4, with pings of bytes that are no UTF-8 between."""
    ws = WebSocket(ws_server, "/ws/plain")
    for at in range(len(KOSME)):
        ws.send(frame(TEXT, KOSME[:at], fin=False) + frame(9, b"\xff\xfe") + frame(CONTINUATION, KOSME[at:]))
        assert ws.message() == (TEXT, KOSME)
    assert ws.controls == [(10, b"\xff\xfe")] * len(KOSME)
    ws.close()


def assert_fails_fast(ws):
    with pytest.raises(Closed) as closed:
        ws.message()
    assert closed.value.code == 1007
    ws.assert_end()


# What makes the text invalid is sent; what would be needed to complete the message is not.
FAST = {"6.4.1": (KOSME, b"\xf4\x90\x80\x80" + b"edited"), "6.4.2": (KOSME + b"\xf4", b"\x90")}


@pytest.mark.parametrize("pieces", FAST.values(), ids=FAST)
def test_fail_fast_in_fragments(ws_server, pieces):
    ws = WebSocket(ws_server, "/ws/plain")
    first, second = pieces
    ws.send(frame(TEXT, first, fin=False))
    ws.send(frame(CONTINUATION, second, fin=False))
    assert_fails_fast(ws)


@pytest.mark.parametrize("pieces", FAST.values(), ids=["6.4.3", "6.4.4"])
def test_fail_fast_within_a_frame(ws_server, pieces):
    ws = WebSocket(ws_server, "/ws/plain")
    first, second = pieces
    whole = frame(TEXT, first + second + b"\x80\x80edited")
    end = len(whole) - len(b"\x80\x80edited")
    for piece in (whole[: end - len(second)], whole[end - len(second) : end]):
        ws.send(piece)
    assert_fails_fast(ws)


@pytest.mark.parametrize("payload", [b"\xff", b"\xf4\x90", b"a" * 3000 + b"\xed\xa0"])
def test_fail_fast_when_compressed(ws_server, payload):
    ws = WebSocket(ws_server, extensions="permessage-deflate")
    ws.send_frame(TEXT, ws.deflate.compress(payload), fin=False, rsv=RSV1)
    assert_fails_fast(ws)


def test_binary_messages_are_not_checked(ws_server):
    ws = WebSocket(ws_server)
    for payloads in PAYLOADS.values():
        for payload in payloads:
            ws.assert_echo(payload)
    ws.close()
