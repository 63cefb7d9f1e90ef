# SPDX-License-Identifier: Apache-2.0
"""HTTP/2: requests and responses on streams, their heads in HPACK (RFC 7541), what of HTTP/1 may not come along, and
what the log says."""

import json

import hpack
import pytest

from harness import build
from harness import frames as f
from harness.content import HELLO, LARGE
from harness.h2 import StreamReset, code_of
from harness.server import await_true

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2"),
]
PROBE = {"MaxBodySize": "100M"}  # of all servers with the plugin


# ── messages ──


@build.needs_probe
def test_trailers_of_a_request(probe):
    client = probe().connect_h2()
    for body in (b"", b"body"):
        number = client.begin("/probe/collect", method="POST", body=body, trailers=["X-Checksum: 1"])
        assert client.response(number).body == body
    client.assert_open()


@build.needs_probe
def test_trailers_of_answers(probe):
    """They end their streams, in whatever order those end."""
    client = probe().connect_h2()
    sizes = (0, 1, 16_384, 65_535, 65_536, 300_000, 0)
    for number, size in [(client.begin(f"/probe/trailers?{size}"), size) for size in sizes]:
        answer = client.response(number)
        assert answer.body == b"g" * size
        assert answer.trailers == [("x-first", "1"), ("x-last", str(size))]
    for number in [client.begin(f"/probe/trailer?{query}") for query in ("", "length", "empty")]:
        assert client.response(number).trailers == [("x-only", "1")]
    client.assert_open()


LENGTHS = {
    "too little": ("4", b"abc"),
    "too much": ("4", b"abcde"),
    "nothing": ("4", b""),
    "something": ("0", b"a"),
    "no number": ("x", b"abc"),
    "signed": ("+3", b"abc"),
    "two": ("3, 4", b"abc"),
}


@build.needs_probe
@pytest.mark.parametrize("case", LENGTHS)
def test_content_length_must_match(probe, case):
    """RFC 9113 §8.1.1: malformed, a stream error; the body in time to tell may have been answered with 400, and one
    that comes behind the end that was announced, with what it deserved until then."""
    length, body = LENGTHS[case]
    client = probe().connect_h2()
    number = client.begin("/probe/collect", ("content-length", length), method="POST", end=False)
    client.more(number, body, end=True)
    try:
        assert client.response(number).status in ((200, 400) if length == "0" else (400,))
    except StreamReset as reset:
        assert reset.code == f.PROTOCOL_ERROR
    client.assert_open()


def test_two_lengths(h2):
    client = h2()
    number = client.begin("/hello.txt", ("content-length", "3"), ("content-length", "4"), method="POST", end=False)
    client.more(number, b"abc", end=True)
    try:
        assert client.response(number).status == 400
    except StreamReset as reset:
        assert reset.code == f.PROTOCOL_ERROR
    client.assert_open()


@pytest.mark.parametrize("target, status", [("/hello.txt", 200), ("/nowhere", 404), ("/dir", 301)])
def test_head(h2, target, status):
    client = h2()
    number = client.begin(target, method="HEAD")
    answer = client.response(number)
    assert answer.status == status and answer.body == b"" and answer.length > 0
    client.assert_open()


@build.needs_probe
def test_no_content(probe):
    answer = probe().connect_h2().ask("/probe/nothing")
    assert answer.status == 204 and answer["Content-Length"] is None and answer.body == b""


def test_not_modified(h2):
    client = h2()
    tag = client.ask("/hello.txt")["ETag"]
    answer = client.ask("/hello.txt", f"If-None-Match: {tag}")
    assert (answer.status, answer.body, answer["ETag"]) == (304, b"", tag)
    assert client.ask("/hello.txt", f'If-Match: {tag[:-1]}x"').status == 412


def test_range(h2):
    client = h2()
    answer = client.ask("/large.bin", "Range: bytes=1000000-1999999")
    assert (answer.status, answer["Content-Range"]) == (206, "bytes 1000000-1999999/3000000")
    assert answer.body == LARGE[1_000_000:2_000_000]
    assert client.ask("/hello.txt", "Range: bytes=50-60").status == 416


ERRORS = {
    404: ("/nowhere", (), {}),
    405: ("/hello.txt", (), {"method": "POST", "body": b"x"}),
    414: ("/" + "x" * 9_000, (), {}),
    431: ("/hello.txt", ("X-Long: " + "y" * 30_000,), {}),
    501: ("/hello.txt", (), {"method": "PROPFIND"}),
}


@pytest.mark.parametrize("status", ERRORS)
def test_error(h2, status):
    target, fields, rest = ERRORS[status]
    client = h2()
    answer = client.ask(target, *fields, **rest)
    assert answer.status == status and b"<" in answer.body
    client.assert_open()


def test_too_many_fields(h2):
    client = h2()
    assert client.ask("/hello.txt", *[f"X-{i}: y" for i in range(1000)]).status == 431
    client.assert_open()


@build.needs_probe
def test_expectation(probe):
    """No client waits for 100 over HTTP/2 for long, and nothing depends on it."""
    client = probe().connect_h2()
    number = client.begin("/probe/collect", "Expect: 100-continue", method="POST", body=b"body")
    stream = client.streams[number]
    assert client.response(number).body == b"body"
    assert [interim.status for interim in stream.interims] in ([], [100])


@build.needs_probe
@pytest.mark.parametrize("path", ["/probe/broken", "/probe/promise"])
def test_incomplete_answers_are_reset(probe, path):
    """A client cannot take a truncated response for a complete one, and the other streams continue."""
    client = probe().connect_h2()
    other, cut = client.begin("/probe/late?100"), client.begin(path)
    assert code_of(client, cut) != f.NO_ERROR
    assert client.response(other).body == b"late\n"
    client.assert_open()


@build.needs_probe
def test_quiet_answer_is_reset(probe):
    client = probe({"HandlerTimeout": "300ms"}).connect_h2()
    assert code_of(client, client.begin("/probe/quiet")) != f.NO_ERROR
    assert client.ask("/probe/now").body == b"at once\n"


@build.needs_probe
@pytest.mark.parametrize("size", [0, 1, 5000, 2_000_000])
def test_generated(probe, size):
    client = probe().connect_h2()
    answer = client.ask(f"/probe/stream?{size}")
    assert answer.body == b"g" * size and answer["Transfer-Encoding"] is None


@build.needs_probe
def test_a_handler_may_end_the_connection(probe):
    client = probe().connect_h2()
    other, last = client.begin("/probe/late?100"), client.begin("/probe/bye")
    assert client.response(last).body == b"bye\n"
    assert client.response(other).body == b"late\n"
    client.assert_closed()


# ── HPACK ──


@pytest.mark.parametrize("sizes", [[0], [65_536], [0, 4096], [100, 1000, 50]])
def test_table_of_responses(h2, sizes):
    """The client says how large it may be; the decoder here insists on that."""
    client = h2()
    for size in sizes:
        client.assert_open()
        client.change({f.HEADER_TABLE_SIZE: size})
        client.ping()
        for _ in range(3):
            client.assert_open()


def test_table_of_requests(h2):
    """Its size changes between heads; references into it stay right."""
    client = h2()
    for size in (4096, 0, 200, 4096, 64):
        client.encoder.header_table_size = size
        for i in range(5):
            assert client.ask("/hundred.bin", f"Range: bytes={i}-{i}", "X-Kept: for ever").body == bytes([i])


BAD_HPACK = {
    "table larger than allowed": b"\x3f\xe2\x1f",
    "index of nothing": b"\xff\xff\x00",
    "index 0": b"\x80",
    "endless integer": b"\xff" + b"\xff" * 20,
    "cut off": b"\x00\x05ab",
    "padding of Huffman code": b"\x00\x81\xff\x81\x00",
}


@pytest.mark.parametrize("case", BAD_HPACK)
def test_bad_hpack(conn, site, case):
    conn.send(f.headers(1, f.get() + BAD_HPACK[case]))
    assert conn.goaway_code() == f.COMPRESSION_ERROR
    site.connect_h2().assert_open()


# ── what may not come along ──

MALFORMED = {
    "connection": [("connection", "close")],
    "keep-alive": [("keep-alive", "timeout=5")],
    "proxy-connection": [("proxy-connection", "keep-alive")],
    "transfer-encoding": [("transfer-encoding", "chunked")],
    "upgrade": [("upgrade", "h2c")],
    "te gzip": [("te", "gzip")],
    "te trailers and more": [("te", "trailers, gzip")],
    "upper case": [("X-Upper", "y")],
    "one upper letter": [("x-uppeR", "y")],
    "empty name": [("", "y")],
    "blank in a name": [("x y", "z")],
    "colon in a name": [("x:y", "z")],
    "line end in a name": [("x\r\ny", "z")],
    "line end in a value": [("x", "y\r\nInjected: z")],
    "line feed in a value": [("x", "y\nz")],
    "carriage return in a value": [("x", "y\rz")],
    "NUL in a value": [("x", "y\0z")],
    "blank before a value": [("x", " y")],
    "tab behind a value": [("x", "y\t")],
    "status": [(":status", "200")],
    "unknown pseudo field": [(":unknown", "y")],
    "pseudo field behind others": [("x", "y"), (":path", "/hello.txt")],
    "second path": [(":path", "/one.txt")],
    "second method": [(":method", "GET")],
    "second scheme": [(":scheme", "http")],
    "second authority": [(":authority", "localhost")],
    "protocol without CONNECT": [(":protocol", "websocket")],
}


def assert_malformed(conn, block, site):
    """RFC 9113 §8.1.1: a stream error, or 400; nothing is served, and the connection continues."""
    conn.send(f.headers(1, block))
    answer = next(frame for frame in iter(conn.read, None) if frame.stream == 1)
    if answer.type == f.RST_STREAM:
        assert answer.number == f.PROTOCOL_ERROR
    else:
        assert is_refusal(answer), answer
    assert all(HELLO not in frame.payload for frame in conn.sync())
    site.connect_h2().assert_open()


def is_refusal(frame):
    """The status stands first, and is 4xx or 501."""
    name, value = hpack.Decoder().decode(frame.payload, raw=True)[0]
    return frame.type == f.HEADERS and bytes(name) == b":status" and bytes(value)[:1] in (b"4", b"5")


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_fields(conn, site, case):
    assert_malformed(conn, f.get("/hello.txt", *MALFORMED[case]), site)


PSEUDO = {":method": "GET", ":scheme": "http", ":authority": "localhost", ":path": "/hello.txt"}


def pseudo(**changes):
    rows = {**PSEUDO, **{f":{name}": value for name, value in changes.items()}}
    return f.block(*[(name, value) for name, value in rows.items() if value is not None])


REFUSED = {
    "no method": {"method": None},
    "no scheme": {"scheme": None},
    "no path": {"path": None},
    "empty path": {"path": ""},
    "path without slash": {"path": "hello.txt"},
    "blank in the path": {"path": "/hello.txt HTTP/1.1"},
    "line end in the path": {"path": "/hello.txt\r\nX: y"},
    "empty method": {"method": ""},
    "method with a blank": {"method": "GET /one.txt HTTP/1.1\r\nX:"},
    "line end in the authority": {"authority": "localhost\r\nX: y"},
    "user in the authority": {"authority": "user@localhost"},
    "path in the authority": {"authority": "localhost/one.txt"},
    "empty authority": {"authority": ""},
    "neither authority nor host": {"authority": None},
    "star for GET": {"path": "*"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_request_line(conn, site, case):
    assert_malformed(conn, pseudo(**REFUSED[case]), site)


def test_authority_and_host_differ(conn, site):
    """RFC 9113 §8.3.1: a component that uses one of them must not see another site than one that uses the other."""
    assert_malformed(conn, f.get("/hello.txt", ("host", "other.example")), site)


def test_host_alone_or_the_same(h2):
    client = h2()
    for fields, authority in (((("host", "localhost"),), None), ((("host", "localhost"),), "localhost")):
        assert client.ask("/hello.txt", *fields, authority=authority).body == HELLO


def test_fields_that_may_come(h2):
    client = h2()
    assert client.ask("/hello.txt", ("te", "trailers"), ("x", ""), ("cookie", "a=1"), ("cookie", "b=2")).body == HELLO
    assert client.ask("/hello.txt", ("x", "\xe4\xf6")).status == 200


def test_malformed_trailers(h2):
    for row in ((":path", "/one.txt"), ("X-Upper", "y"), ("connection", "close")):
        client = h2()
        number = client.begin("/hello.txt", method="POST", body=b"x", end=False)
        client.more(number, end=True, trailers=[row])
        try:
            assert client.response(number).status in (400, 405)
        except StreamReset as reset:
            assert reset.code == f.PROTOCOL_ERROR
        client.assert_open()


def test_connect_is_refused(h2):
    client = h2()
    try:
        number = client.begin(method="CONNECT", path=None, scheme=None, authority="example.org:443", end=False)
        assert client.response(number).status in (400, 405, 501)
    except StreamReset:
        pass
    client.assert_open()


# ── what the log says ──

LOGGER = build.PLUGINS / "logger.so"


@pytest.mark.skipif(not LOGGER.exists(), reason=f"the preset {build.PRESET} has no logger")
def test_log(serve, tmp_path, site_root):
    """Each stream has its line, which says the same as one of HTTP/1.1."""
    log = tmp_path / "log"
    site = f"[HOST]\n    ServerName localhost\n    DocumentRoot {site_root}\n"
    server = serve(
        config={
            "sites/default": f"{site}[LOGGER]\n    AccessLog {log}\n    Format json\n",
            "plugins.load": "[PLUGINS]\n    Load liana\n    Load logger\n    Load static\n",
        }
    )
    client = server.connect_h2()
    client.ask("/hello.txt?q", "Referer: there", "User-Agent: h2 test")
    client.ask("/nowhere", method="HEAD")
    await_true(lambda: log.exists() and log.read_text().count("\n") == 2, what="two lines")
    first, second = map(json.loads, log.read_text().splitlines())
    assert first["protocol"] == second["protocol"] == "HTTP/2.0"
    assert (first["method"], first["target"], first["host"]) == ("GET", "/hello.txt?q", "localhost")
    assert (first["status"], first["body_bytes_out"]) == (200, len(HELLO))
    assert (first["referer"], first["agent"]) == ("there", "h2 test")
    assert (second["method"], second["status"], second["body_bytes_out"]) == ("HEAD", 404, 0)
