# SPDX-License-Identifier: Apache-2.0
"""
Requests that try to make a proxy and its backend disagree about where a message ends, by name; data only.

A payload is sent as one stream of bytes to the proxy, whose client then ends its side. What may happen:

    REFUSED     behind the messages of `targets` the answer is 4xx or 5xx, or the connection is closed; with `late`,
                where the fault is in the body, a backend may have got the beginning of one more message, never its end
    FORWARDED   the backend gets exactly the messages of `targets`, the first of them with `body`
    EITHER      one of both: the backend gets at most the messages of `targets` (None: one message, for any target but
                SMUGGLED_TARGET), the first of them with `body` if that is not None

In each case a backend never sees a message for SMUGGLED_TARGET, nor one with a header of `absent` or a trailer of
`absent_trailers` (in lower case), nor bytes of one payload in the message of another one before or behind it.

`proxy`: only a proxy has a reason to refuse it; a server of files answers.
"""

from typing import NamedTuple

from harness.messages import chunked, lines, octets, sized

REFUSED, FORWARDED, EITHER = "refused", "forwarded", "either"
TARGET, SMUGGLED_TARGET = "/first", "/smuggled"
HOST = "Host: localhost"
TE = "Transfer-Encoding: chunked"
SMUGGLED = lines(f"GET {SMUGGLED_TARGET} HTTP/1.1", HOST)
PREFIX = lines(f"GET {SMUGGLED_TARGET} HTTP/1.1", HOST, "X: ")[:-4]  # the next request becomes a field of it
SIZE = b"%x" % len(SMUGGLED)


class Payload(NamedTuple):
    data: bytes
    may: str
    body: bytes = None
    targets: tuple = (TARGET,)
    absent: tuple = ()
    absent_trailers: tuple = ()
    late: bool = False
    proxy: bool = False


class H2Payload(NamedTuple):
    """`fields`: pairs of text as they stand in the head, pseudo fields too; `sent`: DATA frames, with the last of which
    the stream ends if there are no `trailers`."""

    fields: tuple
    may: str
    sent: tuple = ()
    body: bytes = None
    trailers: tuple = ()
    absent: tuple = ()
    absent_trailers: tuple = ()
    late: bool = False
    proxy: bool = False


def post(*fields, body=b"", version="HTTP/1.1", target=TARGET, host=HOST):
    return lines(f"POST {target} {version}", *([host] if host else []), *fields) + octets(body)


def get(*fields, body=b"", version="HTTP/1.1", target=TARGET):
    return lines(f"GET {target} {version}", HOST, *fields) + octets(body)


def refused(data, **rest):
    return Payload(data, REFUSED, targets=(), **rest)


def forwarded(data, body=b"", **rest):
    return Payload(data, FORWARDED, body, **rest)


def either(data, body=None, **rest):
    return Payload(data, EITHER, body, **rest)




# ── Content-Length and Transfer-Encoding ──

CLASSIC = {
    "CL.TE": refused(post("Content-Length: 4", TE, body=b"0\r\n\r\n" + SMUGGLED)),
    "CL.TE, the length covers the smuggled request": refused(
        post(sized(b"0\r\n\r\n" + SMUGGLED), TE, body=b"0\r\n\r\n" + SMUGGLED)
    ),
    "CL.TE, a prefix for the next request": refused(
        post(sized(b"0\r\n\r\n" + PREFIX), TE, body=b"0\r\n\r\n" + PREFIX) + get(target="/next")
    ),
    "TE.CL": refused(post(TE, "Content-Length: 4", body=SIZE + b"\r\n" + SMUGGLED + b"\r\n0\r\n\r\n")),
    "TE.CL, length 0": refused(post(TE, "Content-Length: 0", body=chunked(SMUGGLED))),
    "TE.CL, both right": refused(post(TE, "Content-Length: 15", body=b"5\r\nhello\r\n0\r\n\r\n")),
    "CL.TE with GET": refused(get("Content-Length: 4", TE, body=b"0\r\n\r\n" + SMUGGLED)),
    "CL.TE, closes": refused(post("Content-Length: 4", TE, "Connection: close", body=b"0\r\n\r\n" + SMUGGLED)),
    "TE in HTTP/1.0": refused(post(TE, body=chunked(SMUGGLED), version="HTTP/1.0")),
    "TE and CL in HTTP/1.0": refused(post(TE, sized(SMUGGLED), body=SMUGGLED, version="HTTP/1.0")),
    "TE in HTTP/1.0, keep-alive": refused(
        post(TE, "Connection: keep-alive", body=chunked(b"x") + SMUGGLED, version="HTTP/1.0")
    ),
    "TE.0, GET with a chunked body": forwarded(get(TE, body=chunked(SMUGGLED)), SMUGGLED),
    "TE.0, OPTIONS with a chunked body": forwarded(
        lines(f"OPTIONS {TARGET} HTTP/1.1", HOST, TE) + chunked(SMUGGLED), SMUGGLED
    ),
    "CL.0, POST": forwarded(post(sized(SMUGGLED), body=SMUGGLED), SMUGGLED),
    "CL.0, GET": forwarded(get(sized(SMUGGLED), body=SMUGGLED), SMUGGLED),
    "CL.0, HEAD": forwarded(lines(f"HEAD {TARGET} HTTP/1.1", HOST, sized(SMUGGLED)) + SMUGGLED, SMUGGLED),
    "CL.0, DELETE": forwarded(lines(f"DELETE {TARGET} HTTP/1.1", HOST, sized(SMUGGLED)) + SMUGGLED, SMUGGLED),
    "CL.0, a prefix as the body": forwarded(post(sized(PREFIX), body=PREFIX), PREFIX),
    "CL.0, closes": forwarded(post(sized(SMUGGLED), "Connection: close", body=SMUGGLED), SMUGGLED),
    "0.CL, a body of no length": Payload(
        post(body=b"x=1\r\n" + SMUGGLED), REFUSED, b""
    ),  # the message without a body, then garbage
    "0.CL, length 0 and a body": Payload(post("Content-Length: 0", body=b"x=1\r\n" + SMUGGLED), REFUSED, b""),
    "a chunked body": forwarded(post(TE, body=chunked(SMUGGLED)), SMUGGLED),
    "a chunked body of many pieces": forwarded(post(TE, body=chunked(*[b"%c" % c for c in SMUGGLED])), SMUGGLED),
    "an empty chunked body": forwarded(post(TE, body=b"0\r\n\r\n")),
    "a chunked body, then garbage": Payload(post(TE, body=chunked(b"a") + b"\0" * 20 + b"\r\n\r\n"), REFUSED, b"a"),
    "a body that is too short": refused(post("Content-Length: 5000", body=SMUGGLED), late=True),
    "chunks that do not end": refused(post(TE, body=SIZE + b"\r\n" + SMUGGLED + b"\r\n"), late=True),
}

CODINGS = {
    "chunked twice": [TE, TE],
    "chunked twice in a list": ["Transfer-Encoding: chunked, chunked"],
    "chunked, then gzip": ["Transfer-Encoding: chunked, gzip"],
    "chunked, then gzip in two fields": [TE, "Transfer-Encoding: gzip"],
    "gzip, then chunked": ["Transfer-Encoding: gzip, chunked"],
    "identity, then chunked": ["Transfer-Encoding: identity, chunked"],
    "chunked, then identity": ["Transfer-Encoding: chunked, identity"],
    "chunked, then identity in two fields": [TE, "Transfer-Encoding: identity"],
    "identity": ["Transfer-Encoding: identity"],
    "gzip": ["Transfer-Encoding: gzip"],
    "xchunked": ["Transfer-Encoding: xchunked"],
    "chunkedx": ["Transfer-Encoding: chunkedx"],
    "chunk": ["Transfer-Encoding: chunk"],
    "quoted": ['Transfer-Encoding: "chunked"'],
    "in single quotes": ["Transfer-Encoding: 'chunked'"],
    "with a parameter": ["Transfer-Encoding: chunked;q=1"],
    "with a semicolon": ["Transfer-Encoding: chunked;"],
    "empty": ["Transfer-Encoding:"],
    "a space": ["Transfer-Encoding: "],
    "empty, then chunked": ["Transfer-Encoding:", TE],
    "a comma before it": ["Transfer-Encoding: ,chunked"],
    "a comma behind it": ["Transfer-Encoding: chunked,"],
    "space before the colon": ["Transfer-Encoding : chunked"],
    "tab before the colon": ["Transfer-Encoding\t: chunked"],
    "space before the name": [" Transfer-Encoding: chunked"],
    "tab before the name": ["\tTransfer-Encoding: chunked"],
    "folded with a space": ["Transfer-Encoding:", " chunked"],
    "folded with a tab": ["Transfer-Encoding:", "\tchunked"],
    "folded into the field before": ["X: y", " Transfer-Encoding: chunked"],
    "vertical tab": ["Transfer-Encoding: \x0bchunked"],
    "form feed": ["Transfer-Encoding: \x0cchunked"],
    "vertical tab behind it": ["Transfer-Encoding: chunked\x0b"],
    "NUL behind it": ["Transfer-Encoding: chunked\0"],
    "NUL in the name": ["Transfer-\0Encoding: chunked"],
    "no-break space": ["Transfer-Encoding: \xa0chunked"],
    "0xff in the name": ["Transfer\xff-Encoding: chunked"],
    "behind a bare LF": ["X: y\nTransfer-Encoding: chunked"],
    "behind a bare CR": ["X: y\rTransfer-Encoding: chunked"],
    "behind LF CR": ["X: y\n\rTransfer-Encoding: chunked"],
    "with a bare CR": ["Transfer-Encoding: chunked\r"],
    "with a bare LF": ["Transfer-Encoding: \nchunked"],
    "without a colon": ["Transfer-Encoding chunked"],
    "equals sign": ["Transfer-Encoding= chunked"],
    "two colons": ["Transfer-Encoding:: chunked"],
    "a word behind it": ["Transfer-Encoding: chunked chunked"],
    "list with a tab": ["Transfer-Encoding: chunked\t,\tchunked"],
}
CODINGS = {f"TE.TE, {name}": refused(post(*rows, body=chunked(SMUGGLED))) for name, rows in CODINGS.items()}
LENGTH_AND_CODING = {
    f"TE.CL, {name}": refused(post(sized(SMUGGLED), row, body=SMUGGLED))
    for name, row in {
        "capitals": "TRANSFER-ENCODING: CHUNKED",
        "xchunked": "Transfer-Encoding: xchunked",
        "identity": "Transfer-Encoding: identity",
        "empty": "Transfer-Encoding:",
        "space before the colon": "Transfer-Encoding : chunked",
        "vertical tab": "Transfer-Encoding: \x0bchunked",
        "folded": "Transfer-Encoding:\r\n chunked",
        "bare LF": "X: y\nTransfer-Encoding: chunked",
    }.items()
}

LENGTHS = {
    "two different": ["Content-Length: 5", f"Content-Length: {5 + len(SMUGGLED)}"],
    "two different, 0 first": ["Content-Length: 0", "Content-Length: 5"],
    "the same twice": ["Content-Length: 5", "Content-Length: 5"],
    "a list of different ones": ["Content-Length: 5, 6"],
    "a list of the same": ["Content-Length: 5, 5"],
    "empty": ["Content-Length:"],
    "empty, then a number": ["Content-Length:", "Content-Length: 5"],
    "a comma": ["Content-Length: 5,"],
    "negative": ["Content-Length: -5"],
    "a minus and 0": ["Content-Length: -0"],
    "a plus": ["Content-Length: +5"],
    "hexadecimal": ["Content-Length: 0x5"],
    "a letter behind it": ["Content-Length: 5a"],
    "an underscore": ["Content-Length: 0_5"],
    "an inner space": ["Content-Length: 0 5"],
    "a fraction": ["Content-Length: 5.0"],
    "an exponent": ["Content-Length: 5e0"],
    "quoted": ['Content-Length: "5"'],
    "a semicolon": ["Content-Length: 5;"],
    "Arabic digits": [b"Content-Length: \xd9\xa5"],
    "a NUL": ["Content-Length: 5\0"],
    "a vertical tab": ["Content-Length: \x0b5"],
    "a bare CR": ["Content-Length: 5\r"],
    "2^32 + 5": ["Content-Length: 4294967301"],
    "2^63": ["Content-Length: 9223372036854775808"],
    "2^64 + 5": ["Content-Length: 18446744073709551621"],
    "400 digits": ["Content-Length: " + "9" * 400],
    "space before the colon": ["Content-Length : 5"],
    "space before the name": [" Content-Length: 5"],
    "folded": ["Content-Length:", " 5"],
    "a digit in the next line": ["Content-Length: 5", " 0"],
    "behind a bare LF": ["X: y\nContent-Length: 5"],
    "behind a bare CR": ["X: y\rContent-Length: 5"],
    "behind an empty name": [": x", "Content-Length: 5"],
    "without a colon": ["Content-Length 5"],
}
LENGTHS = {f"length, {name}": refused(post(*rows, body=b"hello" + SMUGGLED)) for name, rows in LENGTHS.items()}
LENGTHS["length, 2^32 + 5"] = LENGTHS["length, 2^32 + 5"]._replace(late=True)
LENGTHS |= {
    "length, zeros before it": either(post("Content-Length: 00005", body=b"hello"), b"hello"),
    "length, spaces around it": forwarded(post("Content-Length: \t 5 \t", body=b"hello"), b"hello"),
    "length, in capitals": forwarded(post("CONTENT-LENGTH: 5", body=b"hello"), b"hello"),
}

# ── chunks ──

CHUNKS = {
    "size empty": b"\r\nhello\r\n0\r\n\r\n",
    "size is no number": b"xyz\r\nhello\r\n0\r\n\r\n",
    "size negative": b"-5\r\nhello\r\n0\r\n\r\n",
    "size with a plus": b"+5\r\nhello\r\n0\r\n\r\n",
    "size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size with an underscore": b"0_5\r\nhello\r\n0\r\n\r\n",
    "size with a space before it": b" 5\r\nhello\r\n0\r\n\r\n",
    "size with a NUL": b"5\0\r\nhello\r\n0\r\n\r\n",
    "size of 2^64": b"10000000000000000\r\nhello\r\n0\r\n\r\n",
    "size of 2^64 + 5": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "size of 2^64 + 5 behind zeros": b"000000010000000000000005\r\nhello\r\n0\r\n\r\n",
    "size of a hundred digits": b"0" * 80 + b"f" * 20 + b"\r\nhello\r\n0\r\n\r\n",
    "size ended by LF": b"5\nhello\r\n0\r\n\r\n",
    "size ended by CR": b"5\rhello\r\n0\r\n\r\n",
    "size ended by CR CR LF": b"5\r\r\nhello\r\n0\r\n\r\n",
    "data too short": b"6\r\nhello\r\n0\r\n\r\n",
    "data too long": b"4\r\nhello\r\n0\r\n\r\n",
    "data without CRLF": b"5\r\nhello0\r\n\r\n",
    "data ended by LF": b"5\r\nhello\n0\r\n\r\n",
    "data ended by CR": b"5\r\nhello\r0\r\n\r\n",
    "data ended by two other bytes": b"5\r\nhelloXX0\r\n\r\n",
    "data ended by an empty line more": b"5\r\nhello\r\n\r\n0\r\n\r\n",
    "extension ended by LF": b"5;\nhello\r\n0\r\n\r\n",
    "extension with a bare CR": b"5;a=\rb\r\nhello\r\n0\r\n\r\n",
    "extension with an LF in quotes": b'5;a="\n"\r\nhello\r\n0\r\n\r\n',
    "extension with CRLF in quotes": b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n',
    "extension with a NUL": b"5;a=\0\r\nhello\r\n0\r\n\r\n",
    "extension of 20,000 bytes": b"5;" + b"x" * 20_000 + b"\r\nhello\r\n0\r\n\r\n",
    "extension that hides a chunk (EXT.TERM)": b"5;a\nxx\r\n" + SIZE + b"\r\n0\r\n\r\n",
    "last chunk ended by LF": b"0\n\n",
    "last chunk, then LF": b"0\r\n\n",
    "trailer folded": b"0\r\nX: y\r\n z\r\n\r\n",
    "trailer without a colon": b"0\r\nnonsense\r\n\r\n",
    "trailer with a space before the colon": b"0\r\nX : y\r\n\r\n",
    "trailer with a bare LF": b"0\r\nX: y\nZ: z\r\n\r\n",
    "trailer with a bare CR": b"0\r\nX: y\rZ: z\r\n\r\n",
    "trailer with a NUL": b"0\r\nX: \0\r\n\r\n",
    "trailer that is a request": b"0\r\n" + SMUGGLED,
    "trailers too many": b"0\r\n" + b"".join(b"X%d: v\r\n" % i for i in range(500)) + b"\r\n",
}
CHUNKS = {f"chunks, {name}": refused(post(TE, body=body + SMUGGLED), late=True) for name, body in CHUNKS.items()}
CHUNKS |= {
    f"chunks, {name}": forwarded(post(TE, body=body), b"hello")
    for name, body in {
        "zeros before a size": b"0005\r\nhello\r\n000\r\n\r\n",
        "an extension": b"5;name=value\r\nhello\r\n0;last\r\n\r\n",
        "an extension in quotes": b'5;name="a;\\" b"\r\nhello\r\n0\r\n\r\n',
        "an extension that looks like a size": b"5;\tff\r\nhello\r\n0\r\n\r\n",
        "a trailer": b"5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n",
    }.items()
}
CHUNKS |= {
    f"chunks, trailer {name}": either(
        post(TE, body=b"5\r\nhello\r\n0\r\n%s: %s\r\n\r\n" % (octets(name), value)),
        b"hello",
        absent_trailers=(name.lower(),),
    )
    for name, value in (
        ("Content-Length", b"100"),
        ("Content_Length", b"100"),
        ("Transfer-Encoding", b"gzip"),
        ("Host", b"other"),
        ("Connection", b"close"),
        ("Trailer", b"X"),
        ("TE", b"trailers"),
        ("Upgrade", b"h2c"),
        ("X-Forwarded-For", b"1.2.3.4"),
        ("Authorization", b"Basic eDp5"),
        ("Set-Cookie", b"a=b"),
    )
}

# ── names, Connection, Upgrade, Expect ──

NAMES = {
    "Content_Length": (["Content_Length: 100"], "content_length"),
    "Transfer_Encoding": (["Transfer_Encoding: chunked"], "transfer_encoding"),
    "transfer_encoding in small letters": (["transfer_encoding: chunked"], "transfer_encoding"),
    "Transfer_Encoding with chunked": (["Transfer_Encoding: identity"], "transfer_encoding"),
    "X_Forwarded_For": (["X_Forwarded_For: 1.2.3.4"], "x_forwarded_for"),
    "X-Forwarded_For": (["X-Forwarded_For: 1.2.3.4"], "x-forwarded_for"),
    "Keep-Alive": (["Connection: keep-alive", "Keep-Alive: timeout=5"], "keep-alive"),
    "Proxy-Connection": (["Proxy-Connection: keep-alive"], "proxy-connection"),
    "a header that Connection names": (["Connection: X-Secret", "X-Secret: 1"], "x-secret"),
    "several that Connection names": (["Connection: close, X-A", "Connection: X-B", "X-A: 1", "X-B: 1"], "x-b"),
    "Upgrade h2c": (["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"], "upgrade"),
    "HTTP2-Settings": (["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"], "http2-settings"),
    "Upgrade h2c without Connection": (["Upgrade: h2c"], "upgrade"),
    "Upgrade h2c behind websocket": (["Connection: Upgrade", "Upgrade: websocket, h2c"], "http2-settings"),
    "Upgrade TLS": (["Connection: Upgrade", "Upgrade: TLS/1.2"], "upgrade"),
    "Upgrade of an unknown protocol": (["Connection: Upgrade", "Upgrade: foo/1"], "upgrade"),
}
NAMES = {
    f"name, {name}": either(post(*rows, sized(SMUGGLED), body=SMUGGLED), SMUGGLED, absent=(key,))
    for name, (rows, key) in NAMES.items()
}
NAMES |= {
    f"Connection names {key}": refused(post(f"Connection: {key}", *rows, body=body), proxy=True)
    for key, rows, body in (
        ("Content-Length", [sized(SMUGGLED)], SMUGGLED),
        ("content-length, close", [sized(SMUGGLED)], SMUGGLED),
        ("Transfer-Encoding", [TE], chunked(SMUGGLED)),
        ("Host", [], b""),
        ("keep-alive, Host", [], b""),
        ("X-Forwarded-For", [], b""),
    )
}
NAMES |= {
    f"name, {name}": refused(post(row, "Content-Length: 0") + SMUGGLED)
    for name, row in {
        "empty": ": value",
        "with a space": "X Y: value",
        "with a tab": "X\tY: value",
        "with a NUL": "X\0: value",
        "with a slash": "X/Y: value",
        "with a quote": 'X"Y: value',
        "in parentheses": "(X): value",
        "with 0x80": "X\x80: value",
        "a line without a colon": "nonsense",
        "a value with a NUL": "X: a\0b",
        "a value with DEL": "X: a\x7fb",
        "a value with a bare LF": "X: a\nY: b",
        "a value with a bare CR": "X: a\rY: b",
        "folded": "X: a\r\n b",
    }.items()
}
NAMES |= {
    "Expect, body at once": forwarded(post("Expect: 100-continue", sized(SMUGGLED), body=SMUGGLED), SMUGGLED),
    "Expect, chunks at once": forwarded(post("Expect: 100-continue", TE, body=chunked(SMUGGLED)), SMUGGLED),
    "Expect without a body": either(get("Expect: 100-continue"), b""),
    "Expect with length 0": either(post("Expect: 100-continue", "Content-Length: 0"), b""),
    "Expect of something else": refused(post("Expect: 200-ok", sized(SMUGGLED), body=SMUGGLED)),
    "Expect of two": refused(post("Expect: 100-continue, x", sized(SMUGGLED), body=SMUGGLED)),
    "Expect twice": either(post(*["Expect: 100-continue"] * 2, sized(SMUGGLED), body=SMUGGLED), SMUGGLED),
    "Expect with letters behind it": refused(post("Expect: 100-continuex", sized(SMUGGLED), body=SMUGGLED)),
    "Expect in HTTP/1.0": either(
        post("Expect: 100-continue", sized(SMUGGLED), body=SMUGGLED, version="HTTP/1.0"), SMUGGLED
    ),
}

# ── the request line, Host, several messages ──

LINES = {
    "line, a target with a space": refused(post(target="/first /x") + SMUGGLED),
    "line, a target with a tab": refused(post(target="/first\t/x") + SMUGGLED),
    "line, a target with a NUL": refused(post(target="/first\0") + SMUGGLED),
    "line, a target with a bare LF": refused(post(target="/first\n/x") + SMUGGLED),
    "line, a target with a bare CR": refused(post(target="/first\r/x") + SMUGGLED),
    "line, a target without a slash": refused(post(target="first") + SMUGGLED),
    "line, two spaces": refused(lines("GET  /first HTTP/1.1", HOST) + SMUGGLED),
    "line, a tab": refused(lines("GET\t/first HTTP/1.1", HOST) + SMUGGLED),
    "line, a space before it": refused(lines(" GET /first HTTP/1.1", HOST) + SMUGGLED),
    "line, a space behind it": refused(lines("GET /first HTTP/1.1 ", HOST) + SMUGGLED),
    "line, ended by LF": refused(b"GET /first HTTP/1.1\nHost: localhost\r\n\r\n" + SMUGGLED),
    "line, all ended by LF": refused(b"GET /first HTTP/1.1\nHost: localhost\n\n" + SMUGGLED),
    "line, HTTP/0.9": refused(b"GET /first\r\n\r\n" + SMUGGLED),
    "line, HTTP/1.2": either(get(version="HTTP/1.2"), b""),
    "line, HTTP/2.0": refused(get(version="HTTP/2.0") + SMUGGLED),
    "line, HTTP/1.1 with a digit more": refused(get(version="HTTP/1.10") + SMUGGLED),
    "line, http in small letters": refused(get(version="http/1.1") + SMUGGLED),
    "line, a preface of HTTP/2 behind a request": Payload(
        get() + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" + SMUGGLED, REFUSED, b""
    ),
    "line, a CRLF that is encoded": either(
        get(target="/first%20HTTP/1.1%0d%0aHost:%20x%0d%0a%0d%0aGET%20/smuggled"), b"", targets=None
    ),
    "line, an encoded NUL": either(get(target="/first%00/smuggled"), b"", targets=None),
    "line, empty lines before it": either(b"\r\n\r\n" + get(), b""),
    "line, CONNECT": refused(lines("CONNECT localhost:80 HTTP/1.1", HOST) + SMUGGLED, proxy=True),
    "line, an absolute URI": either(get(target="http://localhost/first"), b""),
    "line, an absolute URI of another host": either(get(target="http://other/first"), b""),
    "line, an absolute URI with a user": either(get(target="http://localhost@other/first"), b""),
    "line, an absolute URI of another scheme": either(get(target="gopher://localhost/first"), b""),
    "line, an absolute URI without a host": refused(get(target="http:///first") + SMUGGLED),
    "line, a fragment": refused(get(target="/first#/x") + SMUGGLED),
    "Host, none": refused(lines("GET /first HTTP/1.1") + SMUGGLED),
    "Host, two": refused(get("Host: other") + SMUGGLED),
    "Host, the same twice": refused(get(HOST) + SMUGGLED),
    "Host, a list": refused(post(host="Host: localhost, other") + SMUGGLED),
    "Host, with a path": refused(post(host="Host: localhost/x") + SMUGGLED),
    "Host, with a user": refused(post(host="Host: x@localhost") + SMUGGLED),
    "Host, with a space": refused(post(host="Host: localhost x") + SMUGGLED),
    "Host, with a port that is none": refused(post(host="Host: localhost:80x") + SMUGGLED),
    "Host, folded": refused(post(host="Host:\r\n localhost") + SMUGGLED),
    "two requests": forwarded(get() + get(target="/second"), targets=(TARGET, "/second")),
    "two requests with bodies": forwarded(
        post(sized(SMUGGLED), body=SMUGGLED) + post(TE, target="/second", body=chunked(SMUGGLED)),
        SMUGGLED,
        targets=(TARGET, "/second"),
    ),
    "two requests, the first closes": Payload(get("Connection: close") + SMUGGLED, FORWARDED, b""),
    "two requests, the first in HTTP/1.0": Payload(get(version="HTTP/1.0") + SMUGGLED, FORWARDED, b""),
    "two requests, the second is refused": Payload(
        get() + post("Content-Length: 4", TE, target="/second", body=b"0\r\n\r\n" + SMUGGLED), REFUSED, b""
    ),
    "ten requests": forwarded(
        b"".join(get(target=f"/r{i}") for i in range(10)), targets=tuple(f"/r{i}" for i in range(10))
    ),
    "a body with CRLF behind it": either(
        post(sized(b"x=1"), body=b"x=1\r\n") + get(target="/second"), b"x=1", targets=(TARGET, "/second")
    ),
}

PAYLOADS = {**CLASSIC, **CODINGS, **LENGTH_AND_CODING, **LENGTHS, **CHUNKS, **NAMES, **LINES}

# ── HTTP/2, which becomes HTTP/1.1 ──


def head(*fields, method="POST", path=TARGET, authority="localhost", scheme="http"):
    pseudo = ((":method", method), (":scheme", scheme), (":authority", authority), (":path", path))
    return tuple(pair for pair in pseudo if pair[1] is not None) + fields


def h2_refused(*fields, sent=(b"hello",), trailers=(), late=False, **rest):
    return H2Payload(head(*fields, **rest), REFUSED, sent, trailers=trailers, late=late or bool(trailers))


INJECTED = "a\r\nHost: localhost\r\n\r\nGET /smuggled HTTP/1.1\r\nX: "
H2_PAYLOADS = {
    "a body": H2Payload(head(), FORWARDED, (SMUGGLED,), SMUGGLED),
    "a body in pieces": H2Payload(head(), FORWARDED, tuple(b"%c" % c for c in SMUGGLED), SMUGGLED),
    "a body of its length": H2Payload(
        head(("content-length", str(len(SMUGGLED)))), FORWARDED, (SMUGGLED,), SMUGGLED
    ),
    "a body that looks like chunks": H2Payload(head(), FORWARDED, (b"0\r\n\r\n" + SMUGGLED,), b"0\r\n\r\n" + SMUGGLED),
    "GET with a body": H2Payload(head(method="GET"), FORWARDED, (SMUGGLED,), SMUGGLED),
    "no body": H2Payload(head(), FORWARDED, (), b""),
    # the backend may have answered the empty message before its fault comes
    "H2.CL, 0": H2Payload(head(("content-length", "0")), EITHER, (SMUGGLED,), b"", late=True),
    "H2.CL, too little": h2_refused(("content-length", "4"), sent=(b"abcd" + SMUGGLED,), late=True),
    "H2.CL, too much": h2_refused(("content-length", "5000"), sent=(SMUGGLED,), late=True),
    "H2.CL, two": h2_refused(("content-length", "5"), ("content-length", "6")),
    "H2.CL, a list": h2_refused(("content-length", "5, 5")),
    "H2.CL, a plus": h2_refused(("content-length", "+5")),
    "H2.CL, with CRLF": h2_refused(("content-length", "5\r\nX: y")),
    "H2.TE": h2_refused(("transfer-encoding", "chunked"), sent=(b"0\r\n\r\n" + SMUGGLED,)),
    "H2.TE, identity": h2_refused(("transfer-encoding", "identity")),
    "H2.TE, in capitals": h2_refused(("Transfer-Encoding", "chunked"), sent=(b"0\r\n\r\n" + SMUGGLED,)),
    "H2.TE, in a value": h2_refused(("x", "y\r\ntransfer-encoding: chunked"), sent=(b"0\r\n\r\n" + SMUGGLED,)),
    "H2.TE, in a name": h2_refused(("x: y\r\ntransfer-encoding", "chunked"), sent=(b"0\r\n\r\n" + SMUGGLED,)),
    "H2.TE, in a name with a space": h2_refused(("transfer-encoding ", "chunked"), sent=(b"0\r\n\r\n" + SMUGGLED,)),
    "H2.TE, with an underscore": H2Payload(
        head(("transfer_encoding", "chunked")), EITHER, (SMUGGLED,), SMUGGLED, absent=("transfer_encoding",)
    ),
    "connection": h2_refused(("connection", "close")),
    "connection names a length": h2_refused(("connection", "content-length"), ("content-length", "5")),
    "upgrade": h2_refused(("upgrade", "h2c")),
    "keep-alive": h2_refused(("keep-alive", "timeout=5")),
    "proxy-connection": h2_refused(("proxy-connection", "close")),
    "te gzip": h2_refused(("te", "gzip")),
    "te trailers": H2Payload(head(("te", "trailers")), FORWARDED, (b"hello",), b"hello"),
    "value with LF": h2_refused(("x", "a\nb: c")),
    "value with CR": h2_refused(("x", "a\rb")),
    "value with CRLF and a request": h2_refused(("x", INJECTED)),
    "value with a NUL": h2_refused(("x", "a\0b")),
    "name with a colon": h2_refused(("x:y", "z")),
    "name with a space": h2_refused(("x y", "z")),
    "name with CRLF": h2_refused(("x\r\nhost", "other")),
    "name with a NUL": h2_refused(("x\0", "z")),
    "name in capitals": h2_refused(("X-Name", "z")),
    "name empty": h2_refused(("", "z")),
    "name with 0x80": h2_refused(("x\x80", "z")),
    "method with a space": h2_refused(method="GET /smuggled HTTP/1.1"),
    "method with CRLF": h2_refused(method="GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\nPOST"),
    "method empty": h2_refused(method=""),
    "method none": h2_refused(method=None),
    "path with a space": h2_refused(path="/first HTTP/1.1"),
    "path with CRLF": h2_refused(path="/first HTTP/1.1\r\nHost: localhost\r\n\r\nGET /smuggled"),
    "path with LF": h2_refused(path="/first\nx"),
    "path with a NUL": h2_refused(path="/first\0"),
    "path with a tab": h2_refused(path="/first\tx"),
    "path without a slash": h2_refused(path="first"),
    "path empty": h2_refused(path=""),
    "path none": h2_refused(path=None),
    "path twice": h2_refused((":path", "/smuggled")),
    "path with a fragment": H2Payload(head(path="/first#x"), EITHER, (b"hello",), b"hello"),
    "path that is an absolute URI": h2_refused(path="http://other/smuggled"),
    "scheme with CRLF": h2_refused(scheme="http://localhost/smuggled HTTP/1.1\r\nX: "),
    "scheme that is a URI": H2Payload(head(scheme="http://localhost/smuggled?"), EITHER, (b"hello",), b"hello"),
    "authority with CRLF": h2_refused(authority="localhost\r\nX: y"),
    "authority with a space": h2_refused(authority="localhost x"),
    "authority with a path": h2_refused(authority="localhost/smuggled"),
    "authority with a user": h2_refused(authority="x@localhost"),
    "authority and another host": h2_refused(("host", "other")),
    "two hosts": h2_refused(("host", "localhost"), ("host", "other")),
    "an unknown pseudo field": h2_refused((":x", "y")),
    "a pseudo field of responses": h2_refused((":status", "200")),
    "a pseudo field behind a field": H2Payload((*head()[:3], ("x", "y"), (":path", TARGET)), REFUSED, (b"hello",)),
    "CONNECT": H2Payload(((":method", "CONNECT"), (":authority", "localhost:80")), REFUSED, (SMUGGLED,), proxy=True),
    "trailer": H2Payload(head(), FORWARDED, (b"hello",), b"hello", (("x-sum", "5"),)),
    "trailer content-length": H2Payload(
        head(), EITHER, (b"hello",), b"hello", (("content-length", "100"),), absent_trailers=("content-length",)
    ),
    "trailer transfer-encoding": h2_refused(trailers=(("transfer-encoding", "chunked"),)),
    "trailer with CRLF": h2_refused(trailers=(("x", INJECTED),)),
    "trailer with a pseudo field": h2_refused(trailers=((":path", "/smuggled"),)),
    "expect": H2Payload(head(("expect", "100-continue")), FORWARDED, (SMUGGLED,), SMUGGLED),
    "cookies in pieces": H2Payload(head(("cookie", "a=1"), ("cookie", "b=2")), FORWARDED, (b"hello",), b"hello"),
}
