# SPDX-License-Identifier: Apache-2.0
"""Frames of WebSockets (RFC 6455): the cases of the Autobahn suite, sections 1 to 5, 7 and 10, in tables of our own,
over plain connections, TLS and HTTP/2. Section 6 is in test_websocket_utf8.py, 9 in test_websocket_sizes.py, 12 and 13
in test_websocket_deflate.py."""

import pytest

from harness.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    close_frame,
    cut,
    fragments,
    frame,
    needs_wsprobe,
)
from harness.websocket_cases import CHOPS, play_all, play_last

pytestmark = [needs_wsprobe, pytest.mark.single_protocol]
HELLO, PIECES, RAW = b"Hello, world!", [b"fragment1", b"fragment2"], b"\0\xff\xfe\xfd\xfc\xfb\0\xff"
PROTOCOL_ERROR, INVALID_DATA, TOO_BIG = 1002, 1007, 1009


# ── cases: what is sent, what comes back, and how it ends (None: it stays open) ──


def text(payload=HELLO, **rest):
    return frame(TEXT, payload, **rest)


def ping(payload=b"", **rest):
    return frame(PING, payload, **rest)


def echoed(*payloads, opcode=TEXT):
    return [(opcode, payload) for payload in payloads]


def pongs(*payloads):
    return echoed(*payloads, opcode=PONG)


def of_sizes(opcode, byte):
    sizes = {"1": 0, "2": 125, "3": 126, "4": 127, "5": 128, "6": 65535, "7": 65536}
    return {
        f"1.{opcode}.{number}": ([frame(opcode, byte * size)], echoed(byte * size, opcode=opcode), None)
        for number, size in sizes.items()
    }


FRAMING = {**of_sizes(TEXT, b"*"), **of_sizes(BINARY, b"\xfe")}

PINGS = {
    "2.1": ([ping()], pongs(b""), None),
    "2.2": ([ping(HELLO)], pongs(HELLO), None),
    "2.3": ([ping(RAW)], pongs(RAW), None),
    "2.4, 2.6": ([ping(b"\xfe" * 125)], pongs(b"\xfe" * 125), None),
    "2.5": ([ping(b"\xfe" * 126)], [], PROTOCOL_ERROR),
    "2.7": ([frame(PONG)], [], None),
    "2.8": ([frame(PONG, b"unsolicited")], [], None),
    "2.9": ([frame(PONG, b"unsolicited"), ping(b"ping")], pongs(b"ping"), None),
    "2.10, 2.11": ([ping(b"%d" % n) for n in range(10)], pongs(*(b"%d" % n for n in range(10))), None),
    "a pong of 126 bytes": ([frame(PONG, b"a" * 126)], [], PROTOCOL_ERROR),
}

RESERVED_BITS = {
    "3.1": ([text(rsv=1)], [], PROTOCOL_ERROR),
    "3.2, 3.3": ([text(), text(rsv=2), ping()], echoed(HELLO), PROTOCOL_ERROR),
    "3.4": ([text(), text(rsv=3), ping()], echoed(HELLO), PROTOCOL_ERROR),
    "3.4, RSV1": ([text(), text(rsv=4), ping()], echoed(HELLO), PROTOCOL_ERROR),
    "3.5": ([frame(BINARY, RAW, rsv=5)], [], PROTOCOL_ERROR),
    "3.6": ([ping(HELLO, rsv=6)], [], PROTOCOL_ERROR),
    "3.7": ([close_frame(1000, rsv=7)], [], PROTOCOL_ERROR),
}

OPCODES = {
    **{f"4.1, {n}": ([frame(n)], [], PROTOCOL_ERROR) for n in (3, 4, 5, 6, 7)},
    **{f"4.2, {n}": ([frame(n)], [], PROTOCOL_ERROR) for n in (11, 12, 13, 14, 15)},
    **{
        f"4.1 and 4.2, {n}, within others": ([text(), frame(n, HELLO), ping()], echoed(HELLO), PROTOCOL_ERROR)
        for n in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)
    },
}

FIRST, SECOND = fragments(TEXT, PIECES)
MORE = frame(CONTINUATION, b"more", fin=False)
LAST = frame(CONTINUATION, b"more")
FIVE = fragments(TEXT, [b"fragment%d" % n for n in range(1, 6)])
WHOLE = b"".join(PIECES)

FRAGMENTS = {
    "5.1": ([frame(PING, PIECES[0], fin=False), frame(CONTINUATION, PIECES[1])], [], PROTOCOL_ERROR),
    "5.2": ([frame(PONG, PIECES[0], fin=False), frame(CONTINUATION, PIECES[1])], [], PROTOCOL_ERROR),
    "a fragmented close": ([frame(CLOSE, b"", fin=False), frame(CONTINUATION)], [], PROTOCOL_ERROR),
    "5.3, 5.4, 5.5": ([FIRST, SECOND], echoed(WHOLE), None),
    "5.6, 5.7, 5.8": ([FIRST, ping(b"ping"), SECOND], pongs(b"ping") + echoed(WHOLE), None),
    "5.9, 5.10, 5.11": ([LAST, text()], [], PROTOCOL_ERROR),
    "5.12, 5.13, 5.14": ([MORE, text()], [], PROTOCOL_ERROR),
    "5.15": ([FIRST, SECOND, MORE, text()], echoed(WHOLE), PROTOCOL_ERROR),
    "5.16": ([MORE, *fragments(TEXT, PIECES)] * 2, [], PROTOCOL_ERROR),
    "5.17": ([LAST, *fragments(TEXT, PIECES)] * 2, [], PROTOCOL_ERROR),
    "5.18": ([FIRST, text(PIECES[1])], [], PROTOCOL_ERROR),
    "a binary frame within": ([FIRST, frame(BINARY, PIECES[1])], [], PROTOCOL_ERROR),
    "5.19, 5.20": (
        [*FIVE[:2], ping(b"one"), *FIVE[2:4], ping(b"two"), FIVE[4]],
        pongs(b"one", b"two") + echoed(b"fragment1fragment2fragment3fragment4fragment5"),
        None,
    ),
    "10.1.1": (fragments(TEXT, cut(b"*" * 65536, 1300)), echoed(b"*" * 65536), None),
}

VALID_CODES = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 3000, 3999, 4000, 4999)
WRONG_CODES = (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535)
LONG = b"*" * (256 * 1024)

CLOSING = {
    "7.1.1": ([text(), close_frame(1000)], echoed(HELLO), 1000),
    "7.1.2": ([close_frame(1000), close_frame(1000)], [], 1000),
    "7.1.3": ([close_frame(1000), ping()], [], 1000),
    "7.1.4": ([close_frame(1000), text()], [], 1000),
    "7.1.5": ([FIRST, close_frame(1000), SECOND], [], 1000),
    "7.1.6": ([text(LONG), text(), close_frame(1000), ping()], echoed(LONG, HELLO), 1000),
    "7.3.1": ([close_frame()], [], "no code"),
    "7.3.2": ([frame(CLOSE, b"\3")], [], PROTOCOL_ERROR),
    "7.3.3": ([close_frame(1000)], [], 1000),
    "7.3.4": ([close_frame(1000, HELLO)], [], 1000),
    "7.3.5": ([close_frame(1000, b"*" * 123)], [], 1000),
    "7.3.6": ([close_frame(1000, b"*" * 124)], [], PROTOCOL_ERROR),
    "7.5.1": ([close_frame(1000, b"\xce\xba\xed\xa0\x80edited")], [], INVALID_DATA),
    "a reason that is cut in a character": ([close_frame(1000, b"\xe2\x82")], [], INVALID_DATA),
    **{f"7.7, {code}": ([close_frame(code)], [], code) for code in VALID_CODES},
    **{f"7.9 and 7.13, {code}": ([close_frame(code)], [], PROTOCOL_ERROR) for code in WRONG_CODES},
}

WRONG_FRAMES = {
    "not masked": ([text(key=None)], [], PROTOCOL_ERROR),
    "not masked, a ping": ([ping(key=None)], [], PROTOCOL_ERROR),
    "not masked, a close": ([close_frame(1000, key=None)], [], PROTOCOL_ERROR),
    "not masked, within": ([FIRST, frame(CONTINUATION, b"", key=None)], [], PROTOCOL_ERROR),
    "125 in two bytes": ([text(b"*" * 125, form=2)], [], PROTOCOL_ERROR),
    "125 in eight bytes": ([text(b"*" * 125, form=8)], [], PROTOCOL_ERROR),
    "65535 in eight bytes": ([text(b"*" * 65535, form=8)], [], PROTOCOL_ERROR),
    "a ping of 5 in two bytes": ([ping(b"*" * 5, form=2)], [], PROTOCOL_ERROR),
    "64 bits": ([text(b"", length=1 << 63)], [], PROTOCOL_ERROR),
    "63 bits": ([text(b"", length=(1 << 63) - 1)], [], TOO_BIG),
    "a byte more than the limit": ([text(b"", length=(64 << 20) + 1)], [], TOO_BIG),
    "the key 0": ([text(key=b"\0\0\0\0")], echoed(HELLO), None),
    "keys of zeros and ones": ([text(key=b"\0\xff\0\xff"), text(key=b"\xff" * 4)], echoed(HELLO, HELLO), None),
}

TABLES = {
    "1": FRAMING,
    "2": PINGS,
    "3": RESERVED_BITS,
    "4": OPCODES,
    "5 and 10": FRAGMENTS,
    "7": CLOSING,
    "wrong frames": WRONG_FRAMES,
}
@pytest.mark.parametrize("size", CHOPS)
@pytest.mark.parametrize("section", TABLES)
def test_sections(ws_server, section, size):
    play_all(ws_server, TABLES[section], CHOPS[size])


# ── a client that ends its side with its last frame ──

LAST = [text(b"one"), ping(b"two"), *fragments(TEXT, [b"th", b"ree"]), text(b"four")]
ANSWERS = [(TEXT, b"one"), (PONG, b"two"), None, (TEXT, b"three"), (TEXT, b"four")]


def cut_at(length):
    """The case of so many bytes: the answers to the frames that they have as a whole."""
    data, ends = b"".join(LAST)[:length], [len(b"".join(LAST[: n + 1])) for n in range(len(LAST))]
    return [data], [answer for end, answer in zip(ends, ANSWERS) if end <= length and answer], None


CUTS = {f"{n} bytes": cut_at(n) for n in range(len(b"".join(LAST)) + 1)}


@pytest.mark.parametrize("section", TABLES)
def test_sections_at_the_end(ws_server, section):
    play_all(ws_server, TABLES[section], None, play_last)


def test_end_at_each_byte(ws_server):
    play_all(ws_server, CUTS, None, play_last)
