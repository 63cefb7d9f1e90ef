# SPDX-License-Identifier: Apache-2.0
"""Responses of backends: right ones, ones with a fault from which a recipient may recover, and ones that it refuses.

`tests/peers/responses.py` tries them on other proxies, `test_backend_responses.py` on this server, whose result is
`wanted`.
"""

from typing import NamedTuple

HELLO = b"hello"
REFUSED = "refused"  # 502, and the connection to the backend ends
CUT = "cut"  # the head was passed on, and then the response is broken off
STOLEN = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nSTOLEN"


class Response(NamedTuple):
    """`ends`: the backend ends the connection behind it. `late`: bytes that come once the connection is used again: the
    next request must not get them."""

    sent: bytes
    wanted: object = HELLO  # its body, REFUSED or CUT
    method: str = "GET"
    status: int = 200
    ends: bool = False
    late: bytes = b""


def head(*fields, line=b"HTTP/1.1 200 OK", end=b"\r\n", body=HELLO):
    return line + end + b"".join(field + end for field in fields) + end + body


LENGTH = b"Content-Length: 5"
CODING = b"Transfer-Encoding: chunked"
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"


def line(text, wanted=HELLO, **rest):
    return Response(head(LENGTH, line=text), wanted, **rest)


def field(*fields, wanted=HELLO):
    """A response with its length, and with fields of which one is strange."""
    return Response(head(*fields, LENGTH), wanted)


def length(*fields, wanted=REFUSED, body=HELLO, **rest):
    return Response(head(*fields, body=body), wanted, **rest)


def coding(*fields, wanted=REFUSED, body=CHUNKS, **rest):
    return Response(head(*fields, body=body), wanted, **rest)


def chunks(body, wanted=HELLO, **rest):
    return Response(head(CODING, body=body), wanted, **rest)


def bodiless(status, *fields, method="GET", late=STOLEN, before=b""):
    return Response(before + head(*fields, line=b"HTTP/1.1 %d X" % status, body=b""), b"", method, status, late=late)


STATUS_LINES = {
    "a status line": line(b"HTTP/1.1 200 OK"),
    "no reason": line(b"HTTP/1.1 200"),
    "an empty reason": line(b"HTTP/1.1 200 "),
    "a reason in Latin-1": line(b"HTTP/1.1 200 Gr\xfc\xdfe"),
    "a tab in the reason": line(b"HTTP/1.1 200 O\tK"),
    "a control byte in the reason": line(b"HTTP/1.1 200 O\x01K", REFUSED),
    "a NUL in the reason": line(b"HTTP/1.1 200 O\0K", REFUSED),
    "HTTP/1.0": line(b"HTTP/1.0 200 OK"),
    "HTTP/1.2": line(b"HTTP/1.2 200 OK"),
    "HTTP/1.10": line(b"HTTP/1.10 200 OK", REFUSED),
    "HTTP/2.0": line(b"HTTP/2.0 200 OK", REFUSED),
    "HTTP/2": line(b"HTTP/2 200 OK", REFUSED),
    "http/1.1": line(b"http/1.1 200 OK", REFUSED),
    "ICY": line(b"ICY 200 OK", REFUSED),
    "no status line": Response(b"hello", REFUSED, ends=True),
    "two blanks before the status": line(b"HTTP/1.1  200 OK", REFUSED),
    "a tab before the status": line(b"HTTP/1.1\t200 OK", REFUSED),
    "a blank before the line": line(b" HTTP/1.1 200 OK", REFUSED),
    "an empty line before it": line(b"\r\nHTTP/1.1 200 OK", REFUSED),
    "status 20": line(b"HTTP/1.1 20 OK", REFUSED),
    "status 099": line(b"HTTP/1.1 099 OK", REFUSED),
    "status 600": line(b"HTTP/1.1 600 OK", status=600),
    "status 999": line(b"HTTP/1.1 999 OK", status=999),
    "status 2000": line(b"HTTP/1.1 2000 OK", REFUSED),
    "status 200OK": line(b"HTTP/1.1 200OK", REFUSED),
    "status 200.1": line(b"HTTP/1.1 200.1 OK", REFUSED),
}

LINE_ENDS = {
    "LF alone ends all lines": Response(head(LENGTH, end=b"\n")),
    "LF alone ends the status line": Response(b"HTTP/1.1 200 OK\n" + LENGTH + b"\r\n\r\nhello"),
    "LF alone ends a field": Response(b"HTTP/1.1 200 OK\r\nX: y\n" + LENGTH + b"\r\n\r\nhello"),
    "LF alone ends the head": Response(b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n\nhello"),
    "CR LF behind lines with LF": Response(b"HTTP/1.1 200 OK\n" + LENGTH + b"\n\r\nhello"),
    "LF alone, and chunks": Response(head(CODING, end=b"\n", body=CHUNKS)),
    "CR alone ends the lines": Response(head(LENGTH, end=b"\r"), REFUSED, ends=True),
    "CR alone ends a field": Response(b"HTTP/1.1 200 OK\r\nX: y\r" + LENGTH + b"\r\n\r\nhello", REFUSED),
    "CR CR LF": Response(head(b"X: y\r", LENGTH), REFUSED),
    "CR CR LF ends the head": Response(b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n\r\r\nhello", REFUSED),
}

FIELDS = {
    "a blank before the colon": field(b"X-Name : v"),
    "two blanks before the colon": field(b"X-Name  : v"),
    "a tab before the colon": field(b"X-Name\t: v"),
    "a blank before the colon of Content-Length": length(b"Content-Length : 5", wanted=HELLO),
    "a blank before the colon of Transfer-Encoding": coding(b"Transfer-Encoding : chunked", wanted=HELLO),
    "two lengths, one with a blank": length(b"Content-Length : 6", LENGTH),
    "a length and a coding with a blank": coding(b"Transfer-Encoding : chunked", LENGTH),
    "no colon": field(b"X-Name", wanted=REFUSED),
    "no name": field(b": v", wanted=REFUSED),
    "a blank as the name": field(b" : v", wanted=REFUSED),
    "no value": field(b"X-Name:"),
    "a value of blanks": field(b"X-Name: \t "),
    "a blank in the name": field(b"X Name: v", wanted=REFUSED),
    "a bracket in the name": field(b"X(Name: v", wanted=REFUSED),
    "a slash in the name": field(b"X/Name: v", wanted=REFUSED),
    "a quote in the name": field(b'"X-Name": v', wanted=REFUSED),
    "an underscore in the name": field(b"X_Name: v"),
    "Latin-1 in the name": field(b"X-N\xe4me: v", wanted=REFUSED),
    "a NUL in the name": field(b"X-N\0me: v", wanted=REFUSED),
    "a control byte in the name": field(b"X-N\x01me: v", wanted=REFUSED),
    "Latin-1 in the value": field(b"X-Name: Gr\xfc\xdfe"),
    "a NUL in the value": field(b"X-Name: a\0b", wanted=REFUSED),
    "a CR in the value": field(b"X-Name: a\rb", wanted=REFUSED),
    "a control byte in the value": field(b"X-Name: a\x01b", wanted=REFUSED),
    "DEL in the value": field(b"X-Name: a\x7fb", wanted=REFUSED),
    "a blank before the first field": field(b" X-Name: v", wanted=REFUSED),
    "a folded value": field(b"X-Name: a\r\n b", wanted=REFUSED),
    "a value folded by a tab": field(b"X-Name: a\r\n\tb", wanted=REFUSED),
    "a folded length": length(b"Content-Length:\r\n 5"),
    "a folded coding": coding(b"Transfer-Encoding:\r\n chunked"),
    "a fold of blanks, like an empty line": field(b"X-Name: a\r\n ", wanted=REFUSED),
    "90 fields": field(*(b"X-%d: v" % i for i in range(90))),
    "a field of 6 KB": field(b"X-Name: " + b"v" * 6000),
}

OTHER_FIELDS = {
    "Connection: close": field(b"Connection: close"),
    "Connection: close, keep-alive": field(b"Connection: close, keep-alive"),
    "an empty Connection": field(b"Connection:"),
    "Connection: ,": field(b"Connection: ,"),
    "Connection that names Content-Length": field(b"Connection: content-length"),
    "Keep-Alive": field(b"Keep-Alive: timeout=5"),
    "an empty Upgrade": field(b"Upgrade:"),
    "an Upgrade that nothing asked for": field(b"Upgrade: h2,h2c", b"Connection: upgrade"),
    "two Content-Type": field(b"Content-Type: text/html", b"Content-Type: text/plain"),
    "a Content-Type without a slash": field(b"Content-Type: text"),
    "two Location": field(b"Location: /a", b"Location: /b"),
    "a Location with a blank": field(b"Location: /a b"),
    "a Location in Latin-1": field(b"Location: /\xe4"),
    "a Date that is none": field(b"Date: today"),
    "two Date": field(b"Date: Thu, 01 Jan 1970 00:00:00 GMT", b"Date: Thu, 01 Jan 1970 00:00:01 GMT"),
    "a name of 300 bytes": field(b"X-" + b"n" * 300 + b": v"),
    "Trailer without chunks": field(b"Trailer: X"),
    "TE": field(b"TE: trailers"),
    "Proxy-Connection": field(b"Proxy-Connection: close"),
}

LENGTHS = {
    "no length, and the end": Response(head(), HELLO, ends=True),
    "blanks around a length": length(b"Content-Length: \t5 \t", wanted=HELLO),
    "a length 005": length(b"Content-Length: 005", wanted=HELLO),
    "the same length twice": length(LENGTH, LENGTH),
    "the same length in a list": length(b"Content-Length: 5, 5"),
    "two lengths": length(LENGTH, b"Content-Length: 6"),
    "two lengths, the other order": length(b"Content-Length: 6", LENGTH, body=b"hello!"),
    "two lengths in a list": length(b"Content-Length: 5, 6"),
    "an empty length": length(b"Content-Length:", ends=True),
    "a length +5": length(b"Content-Length: +5"),
    "a length -5": length(b"Content-Length: -5"),
    "a length 0x5": length(b"Content-Length: 0x5"),
    "a length 5.0": length(b"Content-Length: 5.0"),
    "a length 5 5": length(b"Content-Length: 5 5"),
    "a length 5;": length(b"Content-Length: 5;"),
    "a length five": length(b"Content-Length: five"),
    "a length of 2^64 + 5": length(b"Content-Length: 18446744073709551621"),
    "fewer bytes than the length": length(b"Content-Length: 9", wanted=CUT, ends=True),
    "more bytes than the length": length(LENGTH, wanted=HELLO, body=b"hello, world", ends=True),
}

CODINGS = {
    "chunks": coding(CODING, wanted=HELLO),
    "Chunked": coding(b"Transfer-Encoding: Chunked", wanted=HELLO),
    "a length and chunks": coding(LENGTH, CODING),
    "chunks and a length": coding(CODING, LENGTH),
    "chunks in HTTP/1.0": Response(head(CODING, line=b"HTTP/1.0 200 OK", body=CHUNKS), REFUSED, ends=True),
    "chunked twice": coding(CODING, CODING),
    "chunked, chunked": coding(b"Transfer-Encoding: chunked, chunked"),
    "identity": coding(b"Transfer-Encoding: identity", body=HELLO, ends=True),
    "identity and a length": coding(b"Transfer-Encoding: identity", LENGTH, body=HELLO),
    "identity, chunked": coding(b"Transfer-Encoding: identity, chunked"),
    "chunked, identity": coding(b"Transfer-Encoding: chunked, identity"),
    "gzip": coding(b"Transfer-Encoding: gzip", body=HELLO, ends=True),
    "gzip, chunked": coding(b"Transfer-Encoding: gzip, chunked"),
    "xchunked": coding(b"Transfer-Encoding: xchunked", ends=True),
    "chunked;q=1": coding(b"Transfer-Encoding: chunked;q=1", ends=True),
    '"chunked"': coding(b'Transfer-Encoding: "chunked"', ends=True),
    "an empty coding": coding(b"Transfer-Encoding:", ends=True),
    "chunked behind a comma": coding(b"Transfer-Encoding: , chunked"),
    "chunked before a comma": coding(b"Transfer-Encoding: chunked,"),
}

CHUNK_LINES = {
    "blanks behind a size": chunks(b"5   \r\nhello\r\n0  \r\n\r\n"),
    "a tab behind a size": chunks(b"5\t\r\nhello\r\n0\t\r\n\r\n"),
    "blanks behind the last size": chunks(b"5\r\nhello\r\n0   \r\n\r\n"),
    "a blank before a size": chunks(b" 5\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a text behind a size": chunks(b"5 x\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a size with zeros": chunks(b"0005\r\nhello\r\n000\r\n\r\n"),
    "a size of 20 digits": chunks(b"00000000000000000005\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a size 0x5": chunks(b"0x5\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a size +5": chunks(b"+5\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a size -5": chunks(b"-5\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a size of 2^64 + 5": chunks(b"10000000000000005\r\nhello\r\n0\r\n\r\n", REFUSED),
    "no size": chunks(b"\r\nhello\r\n0\r\n\r\n", REFUSED),
    "an extension": chunks(b"5;a\r\nhello\r\n0;b\r\n\r\n"),
    "an extension with a value": chunks(b"5;a=b\r\nhello\r\n0\r\n\r\n"),
    "a quoted extension": chunks(b'5;a="b c"\r\nhello\r\n0\r\n\r\n'),
    "blanks around an extension": chunks(b"5 ; a = b\r\nhello\r\n0\r\n\r\n"),
    "blanks behind an extension": chunks(b"5;a \r\nhello\r\n0\r\n\r\n"),
    "an empty extension": chunks(b"5;\r\nhello\r\n0\r\n\r\n"),
    "a bracket in an extension": chunks(b"5;a(\r\nhello\r\n0\r\n\r\n"),
    "a NUL in an extension": chunks(b"5;a\0\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a CR in an extension": chunks(b"5;a\rb\r\nhello\r\n0\r\n\r\n", REFUSED),
    "LF alone in an extension": chunks(b"5;a\nhello\r\n0\r\n\r\n", REFUSED),
    "LF alone behind a size": chunks(b"5\nhello\r\n0\r\n\r\n", REFUSED),
    "LF alone behind data": chunks(b"5\r\nhello\n0\r\n\r\n", REFUSED),
    "LF alone behind the last size": chunks(b"5\r\nhello\r\n0\n\r\n", REFUSED),
    "LF alone at the end": chunks(b"5\r\nhello\r\n0\r\n\n", REFUSED),
    "LF alone everywhere": chunks(b"5\nhello\n0\n\n", REFUSED),
    "CR CR LF behind a size": chunks(b"5\r\r\nhello\r\n0\r\n\r\n", REFUSED),
    "two bytes behind data": chunks(b"5\r\nhelloXX0\r\n\r\n", REFUSED),
    "more data than the size": chunks(b"5\r\nhello!\r\n0\r\n\r\n", REFUSED),
    "no last chunk": chunks(b"5\r\nhello\r\n", CUT, ends=True),
    "no empty line at the end": chunks(b"5\r\nhello\r\n0\r\n", CUT, ends=True),
    "a trailer": chunks(b"5\r\nhello\r\n0\r\nX: y\r\n\r\n"),
    "a trailer with a blank": chunks(b"5\r\nhello\r\n0\r\nX : y\r\n\r\n"),
    "a trailer ended by LF alone": chunks(b"5\r\nhello\r\n0\r\nX: y\n\r\n", REFUSED),
    "a trailer without a colon": chunks(b"5\r\nhello\r\n0\r\nX\r\n\r\n", REFUSED),
    "a folded trailer": chunks(b"5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n", REFUSED),
    "a NUL in a trailer": chunks(b"5\r\nhello\r\n0\r\nX: y\0\r\n\r\n", REFUSED),
    "a length as a trailer": chunks(b"5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n"),
}

N_STOLEN = b"Content-Length: %d" % len(STOLEN)
CHUNKED_STOLEN = b"%x\r\n%s\r\n0\r\n\r\n" % (len(STOLEN), STOLEN)
BODILESS = {
    "204": bodiless(204, late=b""),
    "204 with a length of 0": bodiless(204, b"Content-Length: 0", late=b""),
    "204 with a length, and a late body": bodiless(204, N_STOLEN),
    "204 with a coding, and a late body": bodiless(204, CODING, late=CHUNKED_STOLEN),
    "204 with a length and a coding": Response(head(N_STOLEN, CODING, line=b"HTTP/1.1 204 X", body=b""), REFUSED),
    "204 with two lengths": Response(head(LENGTH, N_STOLEN, line=b"HTTP/1.1 204 X", body=b""), REFUSED),
    "204 with a body": Response(head(LENGTH, line=b"HTTP/1.1 204 X"), b"", status=204),
    "205 with a length of 0": bodiless(205, b"Content-Length: 0", late=b""),
    "205 with a body": Response(head(LENGTH, line=b"HTTP/1.1 205 X"), b"", status=205),
    "304 with a length, and a late body": bodiless(304, N_STOLEN),
    "304 with a coding, and a late body": bodiless(304, CODING, late=CHUNKED_STOLEN),
    "304": bodiless(304, late=b""),
    "HEAD": bodiless(200, method="HEAD", late=b""),
    "HEAD with a length, and a late body": bodiless(200, N_STOLEN, method="HEAD"),
    "HEAD with a coding, and a late body": bodiless(200, CODING, method="HEAD", late=CHUNKED_STOLEN),
    "100 and 200": Response(b"HTTP/1.1 100 Continue\r\n\r\n" + head(LENGTH)),
    "103 and 200": Response(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + head(LENGTH)),
    "103 with a length, 204 and a late body": bodiless(204, before=head(N_STOLEN, line=b"HTTP/1.1 103 X", body=b"")),
    "103 with a coding, 204 and a late body": bodiless(
        204, before=head(CODING, line=b"HTTP/1.1 103 X", body=b""), late=CHUNKED_STOLEN
    ),
    "103 with a body, and 200": Response(head(LENGTH, line=b"HTTP/1.1 103 X") + head(LENGTH), REFUSED),
    "101 that nothing asked for": Response(
        head(b"Connection: upgrade", b"Upgrade: x", line=b"HTTP/1.1 101 X"), REFUSED, ends=True
    ),
    "a status of 199": Response(head(line=b"HTTP/1.1 199 X", body=b"") + head(LENGTH)),
}

RESPONSES = {
    "Status lines": STATUS_LINES,
    "Ends of lines": LINE_ENDS,
    "Fields": FIELDS,
    "Fields with a meaning": OTHER_FIELDS,
    "Lengths": LENGTHS,
    "Codings": CODINGS,
    "Chunks": CHUNK_LINES,
    "Responses without a body": BODILESS,
}
