# SPDX-License-Identifier: Apache-2.0
"""A raw client for WebSockets (RFC 6455) with permessage-deflate (RFC 7692), over HTTP/1.1 and HTTP/2 (RFC 8441), in
the clear and by TLS. It sends any frame, right or wrong, and reads strictly: what the RFCs forbid a server is an
error."""

import base64
import contextlib
import hashlib
import os
import socket
import re
import struct
import zlib
from typing import NamedTuple

from . import build, frames
from .client import ProtocolError, Response, insist
from .h2 import StreamReset
from .messages import octets, request
from .server import Server, section, write_config
from .ways import WAYS

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
RSV1, RSV2, RSV3 = 4, 2, 1
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
KEY = b"\x37\xfa\x21\x3d"
TAIL = b"\0\0\xff\xff"
OFFER = "permessage-deflate; client_max_window_bits"
PARAMS = {f"{side}_{what}" for side in ("server", "client") for what in ("no_context_takeover", "max_window_bits")}
OWN_CODES = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014}

# ── frames as bytes ──


def mask(data, key):
    if not any(key) or not data:
        return bytes(data)
    count = len(data)
    pattern = (key * (count // 4 + 1))[:count]
    return (int.from_bytes(data, "little") ^ int.from_bytes(pattern, "little")).to_bytes(count, "little")


def frame(opcode, payload=b"", *, fin=True, rsv=0, key=KEY, length=None, form=None):
    """Any frame. `key` None: not masked; `length` may lie; `form`: how many bytes the length has, if not the fewest."""
    payload = octets(payload)
    size = len(payload) if length is None else length
    if form is None:
        form = 0 if size < 126 else 2 if size < 1 << 16 else 8
    seven = {0: size, 2: 126, 8: 127}[form]
    head = bytes([(fin << 7) | (rsv << 4) | opcode, ((key is not None) << 7) | seven])
    head += size.to_bytes(form, "big") if form else b""
    return head + (payload if key is None else key + mask(payload, key))


def close_frame(code=None, reason=b"", **rest):
    return frame(CLOSE, b"" if code is None else struct.pack(">H", code) + octets(reason), **rest)


def fragments(opcode, pieces, **rest):
    """The frames of one message."""
    last = len(pieces) - 1
    return [
        frame(CONTINUATION if at else opcode, piece, fin=at == last, rsv=0 if at else rest.get("rsv", 0))
        for at, piece in enumerate(pieces)
    ]


def cut(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)] or [b""]


# ── what comes ──


class Frame(NamedTuple):
    opcode: int
    payload: bytes
    fin: bool = True
    rsv: int = 0


class Closed(Exception):
    """The server's close frame has come instead of a message; `code` is None without one."""

    def __init__(self, code, reason):
        super().__init__(f"closed with {code} {reason!r}")
        self.code, self.reason = code, reason


class Ended(ProtocolError):
    """The stream has ended without a close frame."""


class Deflate:
    """permessage-deflate as it was agreed on: `answer` is the response's Sec-WebSocket-Extensions."""

    def __init__(self, offer, answer, level=6):
        name, *params = [part.strip() for part in answer.split(";")]
        insist(name == "permessage-deflate", f"an extension that was not offered: {answer}")
        self.params = dict(param.partition("=")[::2] for param in params)
        insist(len(self.params) == len(params) and not set(self.params) - PARAMS, f"parameters {answer}")
        insist("client_max_window_bits" not in self.params or "client_max_window_bits" in offer, f"{offer}: {answer}")
        self.level = level
        self.bits = {side: self.read_bits(side) for side in ("server", "client")}
        self.takeover = {side: f"{side}_no_context_takeover" not in self.params for side in ("server", "client")}
        self.deflater = self.inflater = None

    def read_bits(self, side):
        bits = self.params.get(f"{side}_max_window_bits", "15")
        insist(re.fullmatch("[89]|1[0-5]", bits), f"window bits {bits!r}")
        return int(bits)

    def compress(self, data):
        if self.deflater is None or not self.takeover["client"]:
            self.deflater = zlib.compressobj(self.level, zlib.DEFLATED, -max(9, self.bits["client"]))
        out = self.deflater.compress(data) + self.deflater.flush(zlib.Z_SYNC_FLUSH)
        assert out.endswith(TAIL)
        return out[:-4]

    def decompress(self, data):
        if self.inflater is None or not self.takeover["server"]:
            self.inflater = zlib.decompressobj(-self.bits["server"])
        out = self.inflater.decompress(data + TAIL)
        insist(not self.inflater.unused_data and not self.inflater.unconsumed_tail, "bytes behind a last block")
        return out


class WebSocket:
    """A WebSocket of a client: a connection of HTTP/1.1, or a stream of HTTP/2.

    `extensions` is the offer; `fields` are further header lines. Without `do_handshake` only the connection is made,
    and begin() sends a handshake of the test's liking. `early` is sent together with the handshake.
    """

    def __init__(
        self, server, path="/ws/echo", *, extensions=None, fields=(), early=b"", do_handshake=True, client=None, **rest
    ):
        self.way, self.path, self.offer = server.way, path, extensions
        self.client = client or server.open(**rest)
        self.number, self.deflate, self.ended = None, None, False
        self.controls, self.under_way, self.kind, self.packed = [], [], None, False
        self.answers_pings = False
        if do_handshake:
            self.begin(*self.handshake(), *fields, early=early)
            self.accept()

    # ── the handshake ──

    def handshake(self, key=None):
        """The header lines of a handshake that is right."""
        self.key = key or base64.b64encode(os.urandom(16)).decode()
        rows = ["Sec-WebSocket-Version: 13"]
        if not self.way.h2:
            rows += ["Connection: Upgrade", "Upgrade: websocket", f"Sec-WebSocket-Key: {self.key}"]
        if self.offer:
            rows += [f"Sec-WebSocket-Extensions: {each}" for each in octets_list(self.offer)]
        return rows

    def begin(self, *fields, early=b"", **pseudo):
        if not self.way.h2:
            self.client.send(request(self.path, *fields) + early)
            return
        self.client.ping()
        insist(self.client.theirs.get(frames.ENABLE_CONNECT_PROTOCOL) == 1, "no extended CONNECT")
        pseudo = {"method": "CONNECT", "protocol": "websocket", **pseudo}
        self.number = self.client.begin(self.path, *fields, end=False, **pseudo)
        if early:
            self.send(early)

    def read_head(self):
        """The response to the handshake, whatever it is; its body if it was refused."""
        if self.way.h2:
            head = self.client.head(self.number)
            head.type_is_owed = head.status != 200  # what follows is no content
            return head if head.status == 200 else self.client.response(self.number)
        head = Response(self.client.until(b"\r\n\r\n"), "GET")
        if head.status == 101:
            return head
        insist(not head.interim, f"{head}")
        head.body = self.client.exactly(head.length or 0)
        return head

    def accept(self):
        self.head = head = self.read_head()
        insist(head.status == (200 if self.way.h2 else 101), f"the handshake was refused: {head} {head.body!r}")
        insist(head["Content-Length"] is None and head["Transfer-Encoding"] is None, f"{head}")
        if not self.way.h2:
            accept = base64.b64encode(hashlib.sha1((self.key + GUID).encode()).digest()).decode()
            insist(head["Sec-WebSocket-Accept"] == accept, f"{head}")
            insist(head["Upgrade"].lower() == "websocket" and head["Connection"].lower() == "upgrade", f"{head}")
        else:
            insist(head["Sec-WebSocket-Accept"] is None, f"{head}")
        answer = head["Sec-WebSocket-Extensions"]
        if answer:
            insist(self.offer, f"an extension that was not offered: {answer}")
            self.deflate = Deflate(", ".join(octets_list(self.offer)), answer)

    @property
    def protocol(self):
        return self.head["Sec-WebSocket-Protocol"]

    # ── sending ──

    def send(self, data):
        if self.way.h2:
            self.client.more(self.number, data)
        else:
            self.client.send(data)

    def send_all_you_can(self, data):
        """Sends although the server may end it meanwhile."""
        with contextlib.suppress(OSError):
            self.send(data)

    def send_frame(self, opcode, payload=b"", **rest):
        self.send(frame(opcode, payload, **rest))

    def send_message(self, payload, opcode=None, *, size=None, pack=True, **rest):
        """A message, compressed if that was agreed on, in frames of `size` bytes."""
        opcode = opcode or (TEXT if isinstance(payload, str) else BINARY)
        payload, packs = payload.encode() if isinstance(payload, str) else payload, pack and self.deflate is not None
        if packs:
            payload = self.deflate.compress(payload)
        pieces = [payload] if size is None else cut(payload, size)
        if len(pieces) == 1:
            self.send_frame(opcode, payload, rsv=RSV1 * packs, **rest)
        else:
            self.send(b"".join(fragments(opcode, pieces, rsv=RSV1 * packs)))

    def shut(self):
        """Ends the client's side of the stream."""
        if self.way.h2:
            self.client.more(self.number, end=True)
        else:
            self.client.shut()

    def send_last(self, data):
        """The client's last bytes: its end comes with them, in one segment if that is possible."""
        if self.way.h2:
            self.client.more(self.number, data, end=True)
        else:
            self.client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            self.send_all_you_can(data)
            with contextlib.suppress(OSError):  # over TLS without close_notify, as a client that is killed
                socket.socket.shutdown(self.client.sock, socket.SHUT_WR)

    def reset(self):
        if self.way.h2:
            self.client.cancel(self.number)
        else:
            self.client.reset()

    def drop(self):
        """Ends the connection without a word."""
        self.client.close()

    # ── receiving ──

    def exactly(self, count):
        try:
            return self.client.exactly(count, self.number) if self.way.h2 else self.client.exactly(count)
        except (ProtocolError, OSError) as error:
            raise Ended(f"the stream has ended: {error}") from None

    def read(self):
        """The next frame."""
        first, second = self.exactly(2)
        fin, rsv, opcode, size = bool(first & 128), (first >> 4) & 7, first & 15, second & 127
        insist(opcode in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG), f"opcode {opcode}")
        insist(not second & 128, "a masked frame")
        insist(rsv == 0 or rsv == RSV1 and self.deflate and opcode in (TEXT, BINARY), f"reserved bits {rsv}")
        insist(opcode < 8 or fin and size < 126, f"a control frame of {size} bytes")
        if size > 125:
            size, least = int.from_bytes(self.exactly({126: 2, 127: 8}[size]), "big"), {126: 126, 127: 1 << 16}[size]
            insist(least <= size < 1 << 63, f"a length of {size} in a longer form")
        return Frame(opcode, self.exactly(size), fin, rsv)

    def message(self):
        """The next message: (opcode, payload). Pings and pongs before it are kept in `controls`."""
        while True:
            got = self.read()
            if got.opcode == CLOSE:
                raise Closed(*parse_close(got.payload))
            if got.opcode in (PING, PONG):
                self.controls.append((got.opcode, got.payload))
                if got.opcode == PING and self.answers_pings:
                    self.send_frame(PONG, got.payload)
                continue
            insist((got.opcode == CONTINUATION) == bool(self.under_way), f"out of order: {got}")
            if not self.under_way:
                self.kind, self.packed = got.opcode, got.rsv == RSV1
            self.under_way.append(got.payload)
            if got.fin:
                return self.complete()

    def complete(self):
        data, self.under_way = b"".join(self.under_way), []
        if self.packed:
            data = self.deflate.decompress(data)
        if self.kind == TEXT:
            data.decode()
        return self.kind, data

    def control(self, opcode):
        """The payload of the next frame, which must be of this kind."""
        got = self.read()
        assert got.opcode == opcode, f"expected opcode {opcode}: {got}"
        return got.payload

    def echo(self, payload, opcode=None, **rest):
        """Sends a message and reads its echo."""
        self.send_message(payload, opcode, **rest)
        return self.message()[1]

    def assert_echo(self, payload="hello", **rest):
        wanted = payload.encode() if isinstance(payload, str) else payload
        got = self.echo(payload, **rest)
        assert got == wanted, f"{len(got)} bytes, {got[:60]!r}"

    def closing(self):
        """The server's close frame: its code, None without one, and the reason. Messages before it are passed over."""
        while True:
            try:
                self.message()
            except Closed as closed:
                return closed.code, closed.reason

    def assert_end(self):
        """The server sends nothing more, and ends the stream in an orderly way."""
        if self.way.h2:
            taken = self.client.streams[self.number].taken
            left = self.client.response(self.number).body[taken:]
        else:
            left = self.client.rest()
        assert left == b"", f"unexpected bytes before the end: {left[:100]!r}"
        self.ended = True

    def assert_cut(self):
        """The server ends the stream without a close frame."""
        try:
            while True:
                got = self.read()
                assert got.opcode != CLOSE, f"{got}"
        except (Ended, StreamReset):
            pass

    def close(self, code=1000, reason=b""):
        """The closing handshake, begun by the client."""
        self.send(close_frame(code, reason))
        assert self.closing() == (code, b"")
        self.assert_end()


def octets_list(values):
    return [values] if isinstance(values, str) else list(values)


def parse_close(payload):
    """RFC 6455 §7.4 and §5.5.1."""
    if not payload:
        return None, b""
    insist(len(payload) >= 2, f"a close frame of {len(payload)} byte")
    code = struct.unpack(">H", payload[:2])[0]
    insist(code in OWN_CODES or 3000 <= code < 5000, f"closed with {code}")
    payload[2:].decode()
    return code, payload[2:]


# ── the server with the plugin `wsprobe` ──

LOAD = f"[PLUGINS]\n    Load liana\n    {{}}Load {build.MODULES / 'wsprobe.so'}\n    Load static\n"
needs_wsprobe = build.needs_modules


def start_wsprobe(serve, way, folder, root, settings=None, **rest):
    """Has `serve` (the fixture, or one like it) start a server; server.open() makes connections in this way."""

    def begin(_, settings, text="", **more):
        site = section("HOST", {"ServerName": "localhost", "DocumentRoot": root}) + text
        load = LOAD.format("Load tls\n    " * way.tls)
        return serve(settings, config={"plugins.load": load, "sites/default": site}, **more)

    server = way.start(begin, folder, None, {"Workers": 1, **(settings or {})}, **rest)
    server.way = way
    return server


@contextlib.contextmanager
def run_wsprobe(way, folder, root, settings=None):
    """A server that several tests share."""
    servers = []

    def serve(settings, config):
        servers.append(Server("-c", write_config(folder / "conf", root, settings, files=config)))
        return servers[0]

    try:
        yield start_wsprobe(serve, WAYS[way], folder, root, settings)
        servers[0].stop()
    finally:
        for server in servers:
            server.kill()
