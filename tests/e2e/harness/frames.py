# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frames (RFC 9113 §4 and §6) as bytes, right ones and wrong ones, and a connection that carries
nothing else: what the attacks are made of, and what harness/h2.py stands on."""

import select
import socket
import ssl
import struct
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
PRIORITY_UPDATE = 16  # RFC 9218 §7.1
NAMES = "DATA HEADERS PRIORITY RST_STREAM SETTINGS PUSH_PROMISE PING GOAWAY WINDOW_UPDATE CONTINUATION".split()

END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 32

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)
ENABLE_CONNECT_PROTOCOL, NO_RFC7540_PRIORITIES = 8, 9

(
    NO_ERROR,
    PROTOCOL_ERROR,
    INTERNAL_ERROR,
    FLOW_CONTROL_ERROR,
    SETTINGS_TIMEOUT,
    STREAM_CLOSED,
    FRAME_SIZE_ERROR,
    REFUSED_STREAM,
    CANCEL,
    COMPRESSION_ERROR,
    CONNECT_ERROR,
    ENHANCE_YOUR_CALM,
    INADEQUATE_SECURITY,
    HTTP_1_1_REQUIRED,
) = range(14)

WINDOW = 65535  # of a connection, and of a stream until SETTINGS say otherwise
WINDOW_MAX = (1 << 31) - 1
FRAME_MIN = 16384  # the smallest limit that RFC 9113 allows


class Frame(NamedTuple):
    """A frame that came: its payload is without padding and priority."""

    type: int
    flags: int
    stream: int
    payload: bytes
    length: int  # as it counts for flow control

    def __repr__(self):
        name = NAMES[self.type] if self.type < len(NAMES) else f"type {self.type}"
        return f"<{name} flags {self.flags:#x} stream {self.stream}, {self.length} bytes: {self.payload[:40]!r}>"

    @property
    def number(self):
        """The first 32 bits: an error code, or an increment."""
        return struct.unpack(">I", self.payload[:4])[0]


# ── frames as bytes ──


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """Any frame; `length` may lie."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def padded(payload, pad):
    return (0, payload) if pad is None else (PADDED, bytes([pad]) + payload + bytes(pad))


def data(stream, payload=b"", *, end=False, pad=None):
    flags, payload = padded(payload, pad)
    return frame(DATA, flags | (END_STREAM if end else 0), stream, payload)


def headers(stream, block, *, end=True, whole=True, pad=None, priority=None):
    """`block` is HPACK; `priority` (depends on, weight) is that of RFC 7540; without `whole` it continues in
    CONTINUATION."""
    flags = (END_STREAM if end else 0) | (END_HEADERS if whole else 0)
    if priority is not None:
        flags, block = flags | PRIORITIZED, struct.pack(">IB", *priority) + block
    more, block = padded(block, pad)
    return frame(HEADERS, flags | more, stream, block)


def continuation(stream, block=b"", *, whole=False):
    return frame(CONTINUATION, END_HEADERS if whole else 0, stream, block)


def priority(stream, depends=0, weight=15):
    return frame(PRIORITY, 0, stream, struct.pack(">IB", depends, weight))


def priority_update(stream, value):
    return frame(PRIORITY_UPDATE, 0, 0, struct.pack(">I", stream) + value.encode())


def rst_stream(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def settings(values=None, *, ack=False):
    rows = values.items() if isinstance(values, dict) else values or ()
    return frame(SETTINGS, ACK if ack else 0, 0, b"".join(struct.pack(">HI", key, value) for key, value in rows))


def ping(payload=b"\0" * 8, *, ack=False):
    return frame(PING, ACK if ack else 0, 0, payload)


def goaway(last=0, code=NO_ERROR, text=b""):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code) + text)


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


def literal(name, value):
    """A field of HPACK without table and Huffman code (RFC 7541 §6.2.2): it may be as wrong as one likes."""
    return b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value


def integer(value, bits, first=0):
    """RFC 7541 §5.1."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = bytearray([first | most]), value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def block(*fields):
    """Pairs of text, as they stand, in HPACK without any state."""
    return b"".join(literal(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields)


def get(path="/hello.txt", *fields, method="GET"):
    """The head of a well-formed request; `fields` are pairs."""
    return block((":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path), *fields)


# ── a connection ──


def dial(address, timeout, rcvbuf=None, context=None, name="localhost", first=b""):
    """A connected socket; with `context` (an ssl.SSLContext) over TLS, where `h2` must be what both agree on. `first`
    is sent before anything else."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.settimeout(timeout)
    if rcvbuf:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    sock.connect(address)
    if family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(first)
    if context is None:
        return sock
    context.set_alpn_protocols(["h2"])
    sock = context.wrap_socket(sock, server_hostname=name)
    assert sock.selected_alpn_protocol() == "h2", sock.selected_alpn_protocol()
    return sock


class FrameConnection:
    """Frames go out as bytes and come in as `Frame`; no frame is answered automatically. Fails at a frame of the
    wrong size or on the wrong stream (see `check_frame`)."""

    def __init__(self, address, timeout=30.0, rcvbuf=None, context=None, greet=True, values=None, first=b"",
                 name="localhost"):  # fmt: skip
        self.sock, self.buffer = dial(address, timeout, rcvbuf, context, name, first), b""
        self.frame_max = FRAME_MIN
        if greet:
            self.send(PREFACE + settings(values))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, *pieces):
        self.sock.sendall(b"".join(pieces))

    def send_all_you_can(self, *pieces):
        """Sends although the server may leave early, or stop reading; true if everything left."""
        try:
            self.send(*pieces)
            return True
        except (BrokenPipeError, ConnectionResetError, TimeoutError, ssl.SSLError):
            return False

    def fill(self):
        piece = self.sock.recv(262144)
        self.buffer += piece
        return bool(piece)

    def read(self):
        """The next frame; None at the end of the connection."""
        while len(self.buffer) < 9 or len(self.buffer) < 9 + self.size():
            if not self.fill():
                assert not self.buffer, f"closed within a frame: {self.buffer[:60]!r}"
                return None
        size, kind, flags, stream = self.size(), *struct.unpack(">BBI", self.buffer[3:9])
        payload, self.buffer = self.buffer[9 : 9 + size], self.buffer[9 + size :]
        check_frame(size, kind, flags, stream, self.frame_max)
        return Frame(kind, flags, stream, strip(kind, flags, payload), size)

    def size(self):
        return int.from_bytes(self.buffer[:3], "big")

    def waiting(self):
        """The frames that have come already."""
        found = []
        while (
            len(self.buffer) >= 9 and len(self.buffer) >= 9 + self.size() or select.select([self.sock], [], [], 0)[0]
        ):
            frame = self.read()
            if frame is None:
                break
            found.append(frame)
        return found

    def until(self, kind, where=lambda frame: True):
        """The next frame of that type; those before it are passed over."""
        while frame := self.read():
            if frame.type == kind and where(frame):
                return frame
        raise AssertionError(f"closed before {NAMES[kind]}")

    def frames(self):
        """All that come until the server ends the connection, by FIN or by RST."""
        found = []
        try:
            while frame := self.read():
                found.append(frame)
        except ConnectionResetError:
            pass
        return found

    def goaway_code(self):
        """The error code of the GOAWAY with which the server ends the connection; None if it says nothing."""
        codes = [struct.unpack(">I", f.payload[4:8])[0] for f in self.frames() if f.type == GOAWAY]
        return codes[-1] if codes else None

    def sync(self):
        """A PING and its answer: whatever was sent before has been seen. Returns the frames that came before it."""
        self.send(ping(b"in sync?"))
        found = []
        while frame := self.read():
            if (frame.type, frame.flags & ACK, frame.payload) == (PING, ACK, b"in sync?"):
                return found
            found.append(frame)
        raise AssertionError(f"closed instead of an answer to PING: {found}")


FIXED_SIZES = {PRIORITY: 5, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}
OF_STREAMS = {DATA, HEADERS, PRIORITY, RST_STREAM, PUSH_PROMISE, CONTINUATION}
OF_CONNECTIONS = {SETTINGS, PING, GOAWAY}


def check_frame(size, kind, flags, stream, most):
    """RFC 9113 §4.1, §4.2, and the sizes and streams of §6."""
    text = f"type {kind}, {size} bytes, flags {flags:#x}, stream {stream:#x}"
    assert size <= most, f"larger than SETTINGS_MAX_FRAME_SIZE: {text}"
    assert stream >> 31 == 0, f"reserved bit is set: {text}"
    assert kind not in OF_STREAMS or stream, f"needs a stream: {text}"
    assert kind not in OF_CONNECTIONS or not stream, f"may not have a stream: {text}"
    assert size == FIXED_SIZES.get(kind, size), f"wrong size: {text}"
    assert kind != SETTINGS or size % 6 == 0 and not (flags & ACK and size), f"malformed SETTINGS: {text}"
    assert kind != GOAWAY or size >= 8, f"short GOAWAY: {text}"


def strip(kind, flags, payload):
    if kind in (DATA, HEADERS) and flags & PADDED:
        assert payload and payload[0] < len(payload), "padding is larger than its frame"
        payload = payload[1 : len(payload) - payload[0]]
    if kind == HEADERS and flags & PRIORITIZED:
        payload = payload[5:]
    return payload
