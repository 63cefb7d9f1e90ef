# SPDX-License-Identifier: Apache-2.0
"""Where a message ends: Content-Length, Transfer-Encoding, and the smuggling classes that live between them.
Every body below holds a request for /one.txt; no server may ever answer it."""

import pytest

from harness.messages import CLOSE, LAST, chunked, lines, request, sized

pytestmark = pytest.mark.single_protocol

HOST = "Host: localhost"
SMUGGLED = request("/one.txt")


def post(*fields, body=b"", version="HTTP/1.1"):
    return lines(f"POST /hello.txt {version}", HOST, *fields) + body


def get(*fields, body=b"", version="HTTP/1.1"):
    return lines(f"GET /hello.txt {version}", HOST, *fields) + body


TE = "Transfer-Encoding: chunked"

# The body's end is known: it is skipped, and the next request is answered.
KEPT = {
    "Content-Length 0": (post("Content-Length: 0"), 405),
    "Content-Length": (post(sized(SMUGGLED), body=SMUGGLED), 405),
    "Content-Length with leading zeros": (post(f"Content-Length: 000{len(SMUGGLED)}", body=SMUGGLED), 405),
    "Content-Length within spaces": (post(f"Content-Length: \t{len(SMUGGLED)} ", body=SMUGGLED), 405),
    "no length at all": (post(), 405),
    "GET with a body": (get(sized(SMUGGLED), body=SMUGGLED), 200),
    "GET with a chunked body": (get(TE, body=chunked(SMUGGLED)), 200),
    "HTTP method PUT with a body": (request(method="PUT", body=SMUGGLED), 405),
    "unknown method with a body": (request(method="FOO", body=SMUGGLED), 501),
    "unknown method with a chunked body": (lines("FOO /hello.txt HTTP/1.1", HOST, TE) + chunked(SMUGGLED), 501),
    "missing file with a body": (request("/nowhere", method="POST", body=SMUGGLED), 405),
    "chunked": (post(TE, body=chunked(SMUGGLED)), 405),
    "chunked in capitals": (post("Transfer-Encoding: CHUNKED", body=chunked(SMUGGLED)), 405),
    "empty chunked body": (post(TE, body=b"0\r\n\r\n"), 405),
    "many chunks": (post(TE, body=chunked(*([b"x"] * 500))), 405),
    "chunk size with leading zeros": (post(TE, body=b"0005\r\nhello\r\n000\r\n\r\n"), 405),
    "chunk size in upper and lower case": (post(TE, body=b"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"), 405),
    "chunk extension": (post(TE, body=b"5;name=value\r\nhello\r\n0;last\r\n\r\n"), 405),
    "chunk extension, quoted": (post(TE, body=b'5;name="a;\\" b"\r\nhello\r\n0\r\n\r\n'), 405),
    "chunk extensions, several": (post(TE, body=b'5;a;b=c;d="e"\r\nhello\r\n0\r\n\r\n'), 405),
    "trailer": (post(TE, body=b"5\r\nhello\r\n0\r\nX-Trailer: yes\r\n\r\n"), 405),
    "trailer that looks like framing": (
        post(TE, body=b"0\r\nContent-Length: 100\r\nTransfer-Encoding: gzip\r\nHost: other\r\n\r\n"),
        405,
    ),
}

# Uncertain: one answer, and the connection ends before anything behind it is read as a request.
REFUSED = {
    # CL.TE, TE.CL and the same in HTTP/1.0
    "chunked in a list with empty elements": (post("Transfer-Encoding: , chunked ,", body=chunked(SMUGGLED)), 400),
    "CL.TE": (post("Content-Length: 4", TE, body=b"0\r\n\r\n" + SMUGGLED), 400),
    "TE.CL": (post(TE, "Content-Length: 4", body=b"5c\r\n" + SMUGGLED), 400),
    "CL 0 with TE": (post("Content-Length: 0", TE, body=chunked(b"x")), 400),
    "GET with CL and TE": (get("Content-Length: 0", TE, body=chunked(SMUGGLED)), 400),
    "TE in HTTP/1.0": (post(TE, body=chunked(SMUGGLED), version="HTTP/1.0"), 400),
    "TE in HTTP/1.0 with keep-alive": (
        post(TE, "Connection: keep-alive", body=chunked(SMUGGLED), version="HTTP/1.0"),
        400,
    ),
    # TE.TE: several or obfuscated codings
    "TE.TE, chunked twice": (post(TE, TE, body=chunked(SMUGGLED)), 400),
    "TE.TE, chunked twice in a list": (post("Transfer-Encoding: chunked, chunked", body=chunked(SMUGGLED)), 400),
    "TE.TE, chunked not last": (post("Transfer-Encoding: chunked, gzip", body=chunked(SMUGGLED)), 400),
    "TE.TE, chunked not last in two fields": (post(TE, "Transfer-Encoding: gzip", body=chunked(SMUGGLED)), 400),
    "TE.TE, identity after chunked": (post(TE, "Transfer-Encoding: identity", body=chunked(SMUGGLED)), 400),
    "TE.TE, space before the colon": (post("Transfer-Encoding : chunked", body=chunked(SMUGGLED)), 400),
    "TE.TE, folded": (post("Transfer-Encoding:", " chunked", body=chunked(SMUGGLED)), 400),
    "TE.TE, vertical tab": (post(b"Transfer-Encoding: \x0bchunked", body=chunked(SMUGGLED)), 400),
    "TE.TE, NUL": (post(b"Transfer-Encoding: chunked\0", body=chunked(SMUGGLED)), 400),
    "TE.TE, behind a bare LF": (post(b"X: y\nTransfer-Encoding: chunked", body=chunked(SMUGGLED)), 400),
    "TE.TE, behind a bare CR": (post(b"X: y\rTransfer-Encoding: chunked", body=chunked(SMUGGLED)), 400),
    "TE.0, empty coding with Content-Length": (post("Transfer-Encoding:", sized(SMUGGLED), body=SMUGGLED), 400),
    "unknown coding": (post("Transfer-Encoding: xchunked", body=chunked(SMUGGLED)), 501),
    "gzip alone": (post("Transfer-Encoding: gzip", body=SMUGGLED), 501),
    "identity": (post("Transfer-Encoding: identity", body=SMUGGLED), 501),
    "unknown coding before chunked": (post("Transfer-Encoding: foo, chunked", body=chunked(SMUGGLED)), 501),
    # Content-Length
    "two different lengths": (post("Content-Length: 4", "Content-Length: 5", body=b"12345" + SMUGGLED), 400),
    "the same length twice": (post("Content-Length: 5", "Content-Length: 5", body=b"12345" + SMUGGLED), 400),
    "list of different lengths": (post("Content-Length: 4, 5", body=b"12345" + SMUGGLED), 400),
    "list of the same length": (post("Content-Length: 5, 5", body=b"12345" + SMUGGLED), 400),
    "Content-Length empty": (post("Content-Length:", body=SMUGGLED), 400),
    "Content-Length negative": (post("Content-Length: -1", body=SMUGGLED), 400),
    "Content-Length with a plus": (post("Content-Length: +5", body=b"12345"), 400),
    "Content-Length hexadecimal": (post("Content-Length: 0x5", body=b"12345"), 400),
    "Content-Length with a letter": (post("Content-Length: 5a", body=b"12345"), 400),
    "Content-Length with an inner space": (post("Content-Length: 1 0", body=b"1234567890"), 400),
    "Content-Length with a fraction": (post("Content-Length: 5.0", body=b"12345"), 400),
    "Content-Length quoted": (post('Content-Length: "5"', body=b"12345"), 400),
    "Content-Length of 2^63": (post("Content-Length: 9223372036854775808", body=SMUGGLED), 400),
    "Content-Length of 2^64": (post("Content-Length: 18446744073709551616", body=SMUGGLED), 400),
    "Content-Length of 2^64 + 5": (post("Content-Length: 18446744073709551621", body=b"12345"), 400),
    "Content-Length of 400 digits": (post("Content-Length: " + "9" * 400, body=SMUGGLED), 400),
    "Content-Length with a space before the colon": (post("Content-Length : 5", body=b"12345"), 400),
    "empty field name drops Content-Length": (post(": x", sized(SMUGGLED), body=SMUGGLED), 400),
}

# The head is good, the chunks are not: whatever was answered, nothing behind them is served.
BAD_CHUNKS = {
    "size empty": b"\r\nhello\r\n0\r\n\r\n",
    "size is no number": b"xyz\r\nhello\r\n0\r\n\r\n",
    "size negative": b"-5\r\nhello\r\n0\r\n\r\n",
    "size with a plus": b"+5\r\nhello\r\n0\r\n\r\n",
    "size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size with a leading space": b" 5\r\nhello\r\n0\r\n\r\n",
    "size of 2^64": b"10000000000000000\r\nhello\r\n0\r\n\r\n",
    "size overflows to 5": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "size of a hundred digits": b"0" * 80 + b"f" * 20 + b"\r\nhello\r\n0\r\n\r\n",
    "size ended by LF": b"5\nhello\r\n0\r\n\r\n",
    "size ended by CR": b"5\rhello\r\n0\r\n\r\n",
    "size underscored": b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n",
    "data too short": b"6\r\nhello\r\n0\r\n\r\n",
    "data too long": b"4\r\nhello\r\n0\r\n\r\n",
    "data without CRLF": b"5\r\nhello0\r\n\r\n",
    "data ended by LF": b"5\r\nhello\n0\r\n\r\n",
    "data ended by two bytes (the funky chunk)": b"5\r\nhelloXX0\r\n\r\n",
    "extension with a bare LF (TERM.EXT)": b"5;\nhello\r\n0\r\n\r\n",
    "extension with a bare CR": b"5;a=\rb\r\nhello\r\n0\r\n\r\n",
    "extension with a NUL": b"5;a=\0\r\nhello\r\n0\r\n\r\n",
    "extension without end": b"5;" + b"x" * 20_000 + b"\r\nhello\r\n0\r\n\r\n",
    "trailer folded": b"0\r\nX: y\r\n z\r\n\r\n",
    "trailer without a colon": b"0\r\nnonsense\r\n\r\n",
    "trailer with a space before the colon": b"0\r\nX : y\r\n\r\n",
    "trailer with a bare LF": b"0\r\nX: y\nZ: z\r\n\r\n",
    "trailer with a NUL": b"0\r\nX: \0\r\n\r\n",
    "trailer too large": b"0\r\n" + b"".join(b"X%d: %s\r\n" % (i, b"v" * 1000) for i in range(40)) + b"\r\n",
    "trailers too many": b"0\r\n" + b"".join(b"X%d: v\r\n" % i for i in range(500)) + b"\r\n",
    "last chunk ended by LF": b"0\n\n",
    "last chunk with LF in the end": b"0\r\n\n",
}


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_body_is_skipped(site, case):
    data, status = KEPT[case]
    answers = site.talk(data + LAST)
    assert [a.status for a in answers] == [status, 200]
    assert answers[1].body == b"last\n"


@pytest.mark.parametrize(
    "case", [name for name in KEPT if "chunk" in name or "trailer" in name or "body" in name], ids=str
)
def test_body_is_skipped_byte_by_byte(site, case):
    data, status = KEPT[case]
    with site.connect() as client:
        for i in range(len(data)):
            client.send(data[i : i + 1])
        client.send(LAST)
        assert [a.status for a in client.responses()] == [status, 200]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(site, case):
    data, status = REFUSED[case]
    answers = site.talk(data + SMUGGLED + LAST)
    assert [a.status for a in answers] == [status]
    assert answers[0].closes


@pytest.mark.parametrize("case", BAD_CHUNKS, ids=str)
def test_bad_chunks_end_the_connection(site, case):
    """The file handler answers before it has seen the body: 405, or 400 where the whole request arrived at once."""
    answers = site.talk(post(TE, body=BAD_CHUNKS[case]) + SMUGGLED + SMUGGLED + LAST)
    assert [a.status for a in answers] in ([400], [405], [405, 400], [413], [431], [405, 431])
    assert all(a.body != b"1" and a.body != b"last\n" for a in answers)


def test_largest_chunk_is_waited_for(connect):
    """2^63 is a valid size, and no negative one: all that follows is its data, until the client gives up."""
    client = connect()
    client.send(post(TE, body=b"8000000000000000\r\nhello\r\n0\r\n\r\n") + SMUGGLED)
    client.shut()
    assert [a.status for a in client.responses()] in ([400], [405], [413], [405, 413])


def test_refused_request_behind_a_good_one(site):
    """The good answer is not lost to the error behind it."""
    answers = site.talk(request() + post("Content-Length: 4", TE, body=b"0\r\n\r\n") + LAST)
    assert [a.status for a in answers] == [200, 400]


def test_cl_0_body_is_never_a_request(connect):
    """CL.0: the body arrives late and looks like a request."""
    client = connect()
    client.send(post(sized(SMUGGLED)))
    assert client.response().status == 405
    client.send(SMUGGLED)
    client.send(LAST)
    assert [a.body for a in client.responses()] == [b"last\n"]


def test_0_cl_early_answer_then_body(connect):
    """0.CL: an answer given before the body must not turn the body into a request."""
    client = connect()
    body = request("/one.txt", "X: " + "y" * 3000) * 3
    client.send(get(sized(body)))
    assert client.response().status == 200
    for i in range(0, len(body), 1000):
        client.send(body[i : i + 1000])
    client.send(LAST)
    assert [a.body for a in client.responses()] == [b"last\n"]


def test_body_too_large_to_skip(serve):
    """More than MaxDiscardSize is not read away: the answer says close."""
    server = serve({"MaxDiscardSize": "64K"})
    with server.connect() as client:
        client.send(post("Content-Length: 65000", body=b"x" * 65_000))
        answer = client.response()
        assert answer.status == 405 and not answer.closes
        client.assert_open()
        client.send(post("Content-Length: 10000000"))
        answer = client.response()
        assert answer.status in (405, 413) and answer.closes


def test_chunked_body_too_large_to_skip(serve):
    """A chunked body shows its size only on the way; the connection then just ends."""
    server = serve({"MaxDiscardSize": "64K"})
    with server.connect() as client:
        client.send(post(TE))
        assert client.response().status == 405
        for _ in range(400):
            if not client.send_all_you_can(b"4000\r\n" + b"x" * 0x4000 + b"\r\n"):
                break
        client.assert_gone()


def test_body_larger_than_allowed(serve):
    server = serve({"MaxBodySize": "100K"})
    answer = server.talk(post("Content-Length: 102401"))[0]
    assert answer.status == 413 and answer.closes
    assert server.statuses(post("Content-Length: 102400", CLOSE)) == [405]


def test_pipeline_of_bodies(site):
    """Bodies of both kinds between requests, in one write."""
    data = b"".join(
        request(method="POST", body=SMUGGLED) + get() + post(TE, body=chunked(SMUGGLED)) for _ in range(20)
    )
    assert site.statuses(data + LAST) == [405, 200, 405] * 20 + [200]
