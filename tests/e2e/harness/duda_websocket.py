# SPDX-License-Identifier: Apache-2.0
"""A client of WebSockets for tests of services, on the HTTP/1.1 and HTTP/2 clients. It masks, and checks frames."""

import os
import struct

from . import frames as f
from .messages import request

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY, ACCEPT = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def build_frame(opcode, payload, *, fin=True, rsv1=False):
    payload = payload.encode() if isinstance(payload, str) else payload
    key = os.urandom(4)
    n = len(payload)
    form, *values = ("!B", 0x80 | n) if n < 126 else ("!BH", 0xFE, n) if n < 65536 else ("!BQ", 0xFF, n)
    length = struct.pack(form, *values)
    masked = int.from_bytes(payload, "big") ^ int.from_bytes((key * (n // 4 + 1))[:n], "big")
    return bytes([fin << 7 | rsv1 << 6 | opcode]) + length + key + masked.to_bytes(n, "big")


def handshake_fields(*fields):
    key, version = f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13"
    return ("Connection: Upgrade", "Upgrade: websocket", key, version, *fields)


class WebSocket:
    """An open WebSocket, by `way` (harness/ways.py)."""

    def __init__(self, server, way, path, *fields, **rest):
        self.h2, self.way = way.h2, way
        self.client = server.open(**rest)
        self.number = None
        if self.h2:
            self.client.ping()
            assert self.client.theirs[f.ENABLE_CONNECT_PROTOCOL] == 1
            rows = ("Sec-WebSocket-Version: 13", *fields)
            self.number = self.client.begin(path, *rows, method="CONNECT", protocol="websocket", end=False)
            self.head = self.client.head(self.number)
            assert self.head.status == 200, self.head
        else:
            self.client.send(request(path, *handshake_fields(*fields)))
            text = self.client.until(b"\r\n\r\n").decode()
            assert text.startswith("HTTP/1.1 101 ") and f"Sec-WebSocket-Accept: {ACCEPT}" in text, text
            self.head = dict(row.split(": ", 1) for row in text.split("\r\n")[1:])

    def write(self, data):
        if self.h2:
            self.client.more(self.number, data)
        else:
            self.client.send(data)

    def exactly(self, count):
        return self.client.exactly(count, self.number) if self.h2 else self.client.exactly(count)

    def send(self, payload, opcode=None, **rest):
        self.write(build_frame(opcode or (TEXT if isinstance(payload, str) else BINARY), payload, **rest))

    def frame(self):
        """The opcode and payload of the next frame, which is a whole message."""
        first, second = self.exactly(2)
        assert first & 0xF0 == 0x80 and not second & 0x80, hex(first << 8 | second)
        n = second
        if second == 126:
            (n,) = struct.unpack("!H", self.exactly(2))
        elif second == 127:
            (n,) = struct.unpack("!Q", self.exactly(8))
        payload = self.exactly(n) if n else b""
        return first & 0x0F, payload

    def text(self):
        opcode, payload = self.frame()
        assert opcode == TEXT, (opcode, payload)
        return payload.decode()

    def echo(self, payload):
        self.send(payload)
        return self.text()

    def closed(self):
        """The code of the server's close frame, which is answered, up to the end of the stream."""
        opcode, payload = self.frame()
        assert opcode == CLOSE, (opcode, payload)
        self.answer(payload)
        return int.from_bytes(payload[:2], "big"), payload[2:].decode()

    def answer(self, payload):
        try:
            self.send(payload[:2], CLOSE)
        except OSError:
            pass  # the server has closed it already

    def close(self, code=1000):
        """Closes as a browser does, and awaits the answer."""
        self.send(struct.pack("!H", code), CLOSE)
        while (frame := self.frame())[0] != CLOSE:
            pass
        return int.from_bytes(frame[1][:2], "big")

    def reset(self):
        if self.h2:
            self.client.cancel(self.number)
        else:
            self.client.reset()
