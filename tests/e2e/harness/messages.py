# SPDX-License-Identifier: Apache-2.0
"""Requests as bytes: well-formed ones in one call, anything else byte by byte."""

from typing import NamedTuple

CRLF = b"\r\n"
CLOSE = "Connection: close"


def octets(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def lines(*rows):
    """A head of exactly these lines, and its empty line."""
    return b"".join(octets(row) + CRLF for row in rows) + CRLF


class Message(NamedTuple):
    """What a well-formed request says, whatever carries it."""

    target: str
    fields: tuple
    method: str
    version: str
    host: str
    body: bytes


class Requests(bytes):
    """Well-formed requests in HTTP/1.1, one behind the other; `messages` says the same for other protocols. With
    anything else before or behind they are mere bytes."""

    def __new__(cls, data, messages):
        self = super().__new__(cls, data)
        self.messages = messages
        return self

    def __add__(self, other):
        if isinstance(other, Requests):
            return Requests(bytes(self) + bytes(other), self.messages + other.messages)
        return bytes(self) + other if other else self

    def __radd__(self, other):
        return other + bytes(self) if other else self

    def __mul__(self, count):
        return Requests(bytes(self) * count, self.messages * count)

    __rmul__ = __mul__


def request(target="/hello.txt", *fields, method="GET", version="HTTP/1.1", host="localhost", body=b""):
    """A well-formed request; host=None leaves the Host field out. A body gets its Content-Length."""
    rows = [octets(method) + b" " + octets(target) + b" " + octets(version)]
    if host is not None:
        rows.append("Host: " + host)
    if body:
        rows.append(f"Content-Length: {len(body)}")
    return Requests(lines(*rows, *fields) + body, (Message(target, fields, method, version, host, body),))


def sized(data):
    return f"Content-Length: {len(data)}"


def chunked(*chunks, trailer=b""):
    """The chunked form of these pieces."""
    return b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + b"0\r\n" + trailer + CRLF


LAST = request("/last.txt", CLOSE)
