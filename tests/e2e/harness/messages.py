# SPDX-License-Identifier: Apache-2.0
"""Requests as bytes: well-formed ones in one call, anything else byte by byte."""

CRLF = b"\r\n"
CLOSE = "Connection: close"


def octets(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def lines(*rows):
    """A head of exactly these lines, and its empty line."""
    return b"".join(octets(row) + CRLF for row in rows) + CRLF


def request(target="/hello.txt", *fields, method="GET", version="HTTP/1.1", host="localhost", body=b""):
    """A well-formed request; host=None leaves the Host field out. A body gets its Content-Length."""
    rows = [octets(method) + b" " + octets(target) + b" " + octets(version)]
    if host is not None:
        rows.append("Host: " + host)
    if body:
        rows.append(f"Content-Length: {len(body)}")
    return lines(*rows, *fields) + body


def chunked(*chunks, trailer=b""):
    """The chunked form of these pieces."""
    return b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + b"0\r\n" + trailer + CRLF


LAST = request("/last.txt", CLOSE)
