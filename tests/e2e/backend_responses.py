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
    "status 000": line(b"HTTP/1.1 000 OK", REFUSED),
    "status +200": line(b"HTTP/1.1 +200 OK", REFUSED),
    "status 2e2": line(b"HTTP/1.1 2e2 OK", REFUSED),
    "status 299": line(b"HTTP/1.1 299 OK", status=299),
    "no blank before the status": line(b"HTTP/1.1200 OK", REFUSED),
    "no status": line(b"HTTP/1.1 OK", REFUSED),
    "a blank behind the reason": line(b"HTTP/1.1 200 OK  "),
    "a reason of 1000 bytes": line(b"HTTP/1.1 200 " + b"r" * 1000),
    "DEL in the reason": line(b"HTTP/1.1 200 O\x7fK", REFUSED),
    "HTTP/0.9": line(b"HTTP/0.9 200 OK", REFUSED),
    "HTTP/01.1": line(b"HTTP/01.1 200 OK", REFUSED),
    "HTTP/1": line(b"HTTP/1 200 OK", REFUSED),
    "HTTPS/1.1": line(b"HTTPS/1.1 200 OK", REFUSED),
    "RTSP/1.0": line(b"RTSP/1.0 200 OK", REFUSED),
    "LF alone before it": line(b"\nHTTP/1.1 200 OK", REFUSED),
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
    "200 fields": field(*(b"X-%d: v" % i for i in range(200)), wanted=REFUSED),
    "a field of 40 KB": field(b"X-Name: " + b"v" * 40000, wanted=REFUSED),
    "UTF-8 in the value": field(b"X-Name: Gr\xc3\xbc\xc3\x9fe"),
    "a tab in the value": field(b"X-Name: a\tb"),
    "a colon in the value": field(b"X-Name: a:b"),
    "two colons": field(b"X-Name:: v"),
    "ESC in the value": field(b"X-Name: \x1b[31mv", wanted=REFUSED),
    "a dot in the name": field(b"X.Name: v"),
    "marks in the name": field(b"X!#$%&'*+^`|~: v"),
    "square brackets in the name": field(b"X[0]: v", wanted=REFUSED),
    "an at sign in the name": field(b"X@Name: v", wanted=REFUSED),
    "an equals sign in the name": field(b"X=Name: v", wanted=REFUSED),
    "a comma in the name": field(b"X,Name: v", wanted=REFUSED),
    "a DEL in the name": field(b"X\x7fName: v", wanted=REFUSED),
    "a second status line": field(b"HTTP/1.1 200 OK", wanted=REFUSED),
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
    "Connection: Close": field(b"Connection: Close"),
    "two Connection": field(b"Connection: keep-alive", b"Connection: close"),
    "Connection that names Transfer-Encoding": coding(b"Connection: transfer-encoding", CODING, wanted=HELLO),
    "Connection that names Content-Type": field(b"Connection: content-type", b"Content-Type: text/plain"),
    "Connection that is no token": field(b"Connection: (close)"),
    "Keep-Alive: timeout=0": field(b"Keep-Alive: timeout=0"),
    "an empty Content-Type": field(b"Content-Type:"),
    "an empty Content-Encoding": field(b"Content-Encoding:"),
    "Content-Encoding: utf-8": field(b"Content-Encoding: utf-8"),
    "Content-Encoding: none": field(b"Content-Encoding: none"),
    "Content-Range and 200": field(b"Content-Range: bytes 0-4/5"),
    "206 without a Content-Range": Response(head(LENGTH, line=b"HTTP/1.1 206 X"), status=206),
    "401 without a WWW-Authenticate": Response(head(LENGTH, line=b"HTTP/1.1 401 X"), status=401),
    "407": Response(head(LENGTH, b"Proxy-Authenticate: Basic", line=b"HTTP/1.1 407 X"), status=407),
    "an empty Location": Response(head(LENGTH, b"Location:", line=b"HTTP/1.1 302 X"), status=302),
    "302 without a Location": Response(head(LENGTH, line=b"HTTP/1.1 302 X"), status=302),
    "an empty Date": field(b"Date:"),
    "a Date of 1969": field(b"Date: Wed, 31 Dec 1969 23:59:59 GMT"),
    "a Last-Modified that is none": field(b"Last-Modified: never"),
    "an Expires of -1": field(b"Expires: -1"),
    "an ETag without quotes": field(b"ETag: 5"),
    "a Set-Cookie without a name": field(b"Set-Cookie: =v", b"Set-Cookie:", b"Set-Cookie: ;;"),
    "Set-Cookie in Latin-1": field(b"Set-Cookie: a=\xe4"),
    "Status": field(b"Status: 404 Not Found"),
    "Host": field(b"Host: other.example"),
    "two Server": field(b"Server: a", b"Server: b"),
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
    "a length in HTTP/1.0": Response(head(LENGTH, line=b"HTTP/1.0 200 OK"), ends=True),
    "no length in HTTP/1.0, and the end": Response(head(line=b"HTTP/1.0 200 OK"), ends=True),
    "no length, keep-alive, and the end": Response(head(b"Connection: keep-alive"), ends=True),
    "the same length three times": length(LENGTH, LENGTH, LENGTH),
    "the same length, 5 and 05": length(LENGTH, b"Content-Length: 05"),
    "a length and an empty one": length(LENGTH, b"Content-Length:"),
    "a length 5,": length(b"Content-Length: 5,"),
    "a length ,5": length(b"Content-Length: ,5"),
    'a length "5"': length(b'Content-Length: "5"'),
    "a length 5e0": length(b"Content-Length: 5e0"),
    "a length 5 with a NUL": length(b"Content-Length: 5\0"),
    "a length in Arabic digits": length("Content-Length: \u0665".encode()),
    "a length of 30 zeros and 5": length(b"Content-Length: " + b"0" * 30 + b"5", wanted=HELLO),
    "a length of 2^63": length(b"Content-Length: 9223372036854775808"),
    "a length of 0, and a body": length(b"Content-Length: 0", wanted=b""),
    "no bytes of the length": length(LENGTH, wanted=CUT, body=b"", ends=True),
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
    "CHUNKED": coding(b"Transfer-Encoding: CHUNKED", wanted=HELLO),
    "blanks around chunked": coding(b"Transfer-Encoding: \t chunked \t", wanted=HELLO),
    "TRANSFER-ENCODING": coding(b"TRANSFER-ENCODING: chunked", wanted=HELLO),
    "Transfer_Encoding": Response(head(b"Transfer_Encoding: chunked", LENGTH)),
    "chunked with a vertical tab": coding(b"Transfer-Encoding: \x0bchunked"),
    "chunked with a NUL": coding(b"Transfer-Encoding: chunked\0"),
    "chunked gzip": coding(b"Transfer-Encoding: chunked gzip"),
    "chunked and gzip in two lines": coding(CODING, b"Transfer-Encoding: gzip"),
    "an empty coding and chunks": coding(b"Transfer-Encoding:", CODING),
    "chunks, and an empty length": coding(CODING, b"Content-Length:"),
    "chunks, and Content-Encoding: gzip": coding(b"Content-Encoding: x-other", CODING, wanted=HELLO),
    "no chunks, but the end": coding(CODING, body=b"", wanted=CUT, ends=True),
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
    "a size in capitals": chunks(b"A\r\nhellohello\r\n0\r\n\r\n", b"hellohello"),
    "chunks of one byte": chunks(b"".join(b"1\r\n%c\r\n" % c for c in HELLO) + b"0\r\n\r\n"),
    "a size of 16 zeros and 5": chunks(b"00000000000000005\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a size of 2^63": chunks(b"8000000000000000\r\nhello\r\n0\r\n\r\n", CUT, ends=True),
    "a last size -0": chunks(b"5\r\nhello\r\n-0\r\n\r\n", REFUSED),
    "a size 5h": chunks(b"5h\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a quoted extension with a semicolon": chunks(b'5;a=";x"\r\nhello\r\n0\r\n\r\n'),
    "a quoted extension that does not end": chunks(b'5;a="b\r\nhello\r\n0\r\n\r\n'),
    "a quoted extension that ends with a backslash": chunks(b'5;a="b\\\r\nhello\r\n0\r\n\r\n'),
    "a text behind a quoted extension": chunks(b'5;a="b"c\r\nhello\r\n0\r\n\r\n'),
    "a quote in an extension": chunks(b'5;a"b\r\nhello\r\n0\r\n\r\n'),
    "an extension of two words": chunks(b'5;a b\r\nhello\r\n0\r\n\r\n'),
    "an extension without a name": chunks(b'5;=b\r\nhello\r\n0\r\n\r\n'),
    "Latin-1 in an extension": chunks(b"5;a=\xe4\r\nhello\r\n0\r\n\r\n"),
    "an extension of 900 bytes": chunks(b"5;" + b"a" * 900 + b"\r\nhello\r\n0\r\n\r\n"),
    "an extension of 9 KB": chunks(b"5;" + b"a" * 9000 + b"\r\nhello\r\n0\r\n\r\n", CUT),
    "an empty line behind data": chunks(b"5\r\nhello\r\n\r\n0\r\n\r\n", REFUSED),
    "two last chunks": chunks(b"5\r\nhello\r\n0\r\n\r\n0\r\n\r\n"),
    "bytes behind the last chunk": chunks(b"5\r\nhello\r\n0\r\n\r\n" + STOLEN),
    "less data than the size": chunks(b"9\r\nhello\r\n0\r\n\r\n", REFUSED),
    "a coding as a trailer": chunks(b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "a cookie as a trailer": chunks(b"5\r\nhello\r\n0\r\nSet-Cookie: a=b\r\n\r\n"),
    "a trailer without a name": chunks(b"5\r\nhello\r\n0\r\n: y\r\n\r\n", REFUSED),
    "a trailer with a bracket in the name": chunks(b"5\r\nhello\r\n0\r\nX(: y\r\n\r\n", REFUSED),
    "a trailer that is a status line": chunks(b"5\r\nhello\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n", REFUSED),
    "100 trailers": chunks(
        b"5\r\nhello\r\n0\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(100)) + b"\r\n", REFUSED
    ),
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
    "204 with chunks": Response(head(CODING, line=b"HTTP/1.1 204 X", body=CHUNKS), b"", status=204),
    "204 with a body and no length": Response(head(line=b"HTTP/1.1 204 X"), b"", status=204),
    "205 with chunks": Response(head(CODING, line=b"HTTP/1.1 205 X", body=CHUNKS), b"", status=205),
    "205 without a length, and the end": Response(head(line=b"HTTP/1.1 205 X"), b"", status=205, ends=True),
    "304 with a body": Response(head(LENGTH, line=b"HTTP/1.1 304 X"), b"", status=304),
    "304 with chunks": Response(head(CODING, line=b"HTTP/1.1 304 X", body=CHUNKS), b"", status=304),
    "304 with two lengths": Response(head(LENGTH, N_STOLEN, line=b"HTTP/1.1 304 X", body=b""), REFUSED),
    "304 with a length and a coding": Response(head(LENGTH, CODING, line=b"HTTP/1.1 304 X", body=b""), REFUSED),
    "HEAD with a body": Response(head(LENGTH), b"", "HEAD"),
    "HEAD with chunks": Response(head(CODING, body=CHUNKS), b"", "HEAD"),
    "HEAD with two lengths": Response(head(LENGTH, N_STOLEN, body=b""), REFUSED, "HEAD"),
    "HEAD and 404 with a body": Response(head(LENGTH, line=b"HTTP/1.1 404 X"), b"", "HEAD", 404),
    "HEAD and 103": Response(head(line=b"HTTP/1.1 103 X", body=b"") + head(LENGTH, body=b""), b"", "HEAD"),
    "102 and 200": Response(head(line=b"HTTP/1.1 102 X", body=b"") + head(LENGTH)),
    "100, 103, 103 and 404": Response(
        b"".join(head(line=b"HTTP/1.1 %d X" % status, body=b"") for status in (100, 103, 103))
        + head(LENGTH, line=b"HTTP/1.1 404 X"), status=404,
    ),
    "16 times 103, and 200": Response(head(line=b"HTTP/1.1 103 X", body=b"") * 16 + head(LENGTH)),
    "17 times 103, and 200": Response(head(line=b"HTTP/1.1 103 X", body=b"") * 17 + head(LENGTH), REFUSED),
    "100 of HTTP/1.0, and 200": Response(head(line=b"HTTP/1.0 100 X", body=b"") + head(LENGTH)),
    "100 with chunks, and 200": Response(head(CODING, line=b"HTTP/1.1 100 X", body=CHUNKS) + head(LENGTH), REFUSED),
    "100 with two lengths, and 200": Response(
        head(LENGTH, N_STOLEN, line=b"HTTP/1.1 100 X", body=b"") + head(LENGTH), REFUSED
    ),
    "103, and the end": Response(head(line=b"HTTP/1.1 103 X", body=b""), REFUSED, ends=True),
    "101 without an Upgrade": Response(head(line=b"HTTP/1.1 101 X"), REFUSED, ends=True),
    "426": bodiless(426, b"Upgrade: TLS/1.0", b"Connection: upgrade", b"Content-Length: 0", late=b""),
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
