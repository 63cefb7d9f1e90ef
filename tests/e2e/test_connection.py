# SPDX-License-Identifier: Apache-2.0
"""The life of a connection: keep-alive in both versions, pipelines, early answers, Expect, and an orderly end."""

import threading

import pytest

from harness.content import HELLO, LARGE, MEDIUM
from harness.messages import CLOSE, LAST, chunked, lines, request

HOST = "Host: localhost"


# ── keep-alive ──


def test_many_requests_on_one_connection(connect):
    client = connect()
    for _ in range(200):
        assert client.ask().body == HELLO


# version, fields, does the connection stay open?
PERSISTENCE = {
    "1.1": ("HTTP/1.1", [], True),
    "1.1 keep-alive": ("HTTP/1.1", ["Connection: keep-alive"], True),
    "1.1 close": ("HTTP/1.1", ["Connection: close"], False),
    "1.1 Close": ("HTTP/1.1", ["Connection: Close"], False),
    "1.1 close in a list": ("HTTP/1.1", ["Connection: foo, close"], False),
    "1.1 close first in a list": ("HTTP/1.1", ["Connection: close,foo"], False),
    "1.1 close among empty elements": ("HTTP/1.1", ["Connection: ,, close ,"], False),
    "1.1 close in a second field": ("HTTP/1.1", ["Connection: foo", "Connection: close"], False),
    "1.1 close beats keep-alive": ("HTTP/1.1", ["Connection: keep-alive, close"], False),
    "1.1 closed is another word": ("HTTP/1.1", ["Connection: closed"], True),
    "1.1 disclose is another word": ("HTTP/1.1", ["Connection: disclose"], True),
    "1.1 unknown options": ("HTTP/1.1", ["Connection: X-Foo, TE"], True),
    "1.1 empty": ("HTTP/1.1", ["Connection:"], True),
    "1.0": ("HTTP/1.0", [], False),
    "1.0 keep-alive": ("HTTP/1.0", ["Connection: keep-alive"], True),
    "1.0 Keep-Alive": ("HTTP/1.0", ["Connection: Keep-Alive"], True),
    "1.0 keep-alive in a list": ("HTTP/1.0", ["Connection: foo, keep-alive"], True),
    "1.0 close beats keep-alive": ("HTTP/1.0", ["Connection: keep-alive, close"], False),
    "1.0 close": ("HTTP/1.0", ["Connection: close"], False),
    "1.0 unknown option": ("HTTP/1.0", ["Connection: foo"], False),
}


@pytest.mark.parametrize("case", PERSISTENCE, ids=str)
def test_persistence(connect, case):
    version, fields, stays = PERSISTENCE[case]
    client = connect()
    answer = client.ask("/hello.txt", *fields, version=version)
    assert (answer.status, answer.body) == (200, HELLO)
    if stays:
        assert not answer.closes
        if version == "HTTP/1.0":
            assert (answer["Connection"] or "").lower() == "keep-alive"
        client.assert_open()
    else:
        if version == "HTTP/1.1":
            assert answer.closes
        client.assert_closed()


@pytest.mark.parametrize("host", ["localhost", None])
def test_http_1_0(site, host):
    (answer,) = site.talk(request(version="HTTP/1.0", host=host))
    assert (answer.status, answer.body) == (200, HELLO)
    assert answer["Transfer-Encoding"] is None


@pytest.mark.parametrize("target, status", [("/nowhere", 404), ("/dir", 301), ("/noindex/", None)])
def test_errors_keep_alive(connect, target, status):
    client = connect()
    answer = client.ask(target)
    assert answer.status == status or (status is None and answer.status in (403, 404))
    assert not answer.closes
    client.assert_open()


@pytest.mark.parametrize(
    "data",
    [
        request("/nowhere", CLOSE),
        request("/dir", CLOSE),
        request(method="POST", body=b"x") + b"",
        request("/hello.txt", CLOSE, method="FOO"),
        lines("GET / HTTP/1.1"),
    ],
    ids=range(5),
)
def test_close_is_kept_on_errors(site, data):
    with site.connect() as client:
        client.send(data)
        answer = client.response()
        if answer.closes:
            client.assert_closed()
        else:
            client.assert_open()


def test_keep_alive_off(serve):
    server = serve({"KeepAlive": "Off"})
    with server.connect() as client:
        assert client.ask().closes
        client.assert_closed()
    (answer,) = server.talk(request("/hello.txt", "Connection: keep-alive", version="HTTP/1.0"))
    assert (answer["Connection"] or "close").lower() == "close"
    assert [a.status for a in server.talk(request() * 3)] == [200]


def test_max_keep_alive_requests(serve):
    server = serve({"MaxKeepAliveRequest": 3})
    with server.connect() as client:
        assert [client.ask().closes for _ in range(3)] == [False, False, True]
        client.assert_closed()
    assert server.statuses(request() * 10) == [200] * 3


# ── pipelines ──


@pytest.mark.parametrize("depth", [1, 2, 3, 16, 17, 64, 129, 300, 1000])
def test_pipeline(site, depth):
    answers = site.talk(request() * (depth - 1) + LAST)
    assert [a.body for a in answers] == [HELLO] * (depth - 1) + [b"last\n"]


def test_pipeline_in_order(site):
    """Small, large, missing, redirected, empty and HEAD in one write: answers in the order of the requests."""
    cases = [
        ("/large.bin", "GET", 200),
        ("/hello.txt", "GET", 200),
        ("/nowhere", "GET", 404),
        ("/dir", "GET", 301),
        ("/medium.bin", "GET", 200),
        ("/empty.txt", "GET", 200),
        ("/large.bin", "HEAD", 200),
        ("/one.txt", "GET", 200),
    ] * 5
    data = b"".join(request(target, method=method) for target, method, _ in cases)
    answers = site.talk(data + LAST, [method for _, method, _ in cases])
    assert [a.status for a in answers] == [status for *_, status in cases] + [200]
    assert {len(a.body) for a in answers[0 : len(cases) : 8]} == {len(LARGE)}
    assert answers[0].body == LARGE and answers[4].body == MEDIUM


@pytest.mark.parametrize("split", [1, 7, 100, 1000, 4096, 5000])
def test_pipeline_in_any_pieces(connect, split):
    """Requests that straddle the reads."""
    client = connect()
    data = (
        b"".join(request("/hello.txt", f"X-Number: {i}", "X-Pad: " + "p" * (i * 37 % 500)) for i in range(30)) + LAST
    )
    for i in range(0, len(data), split):
        client.send(data[i : i + split])
    assert [a.status for a in client.responses()] == [200] * 31


def test_pipeline_of_large_files_with_a_slow_reader(site):
    """Answers wait for the reader: nothing is lost, mixed up or buffered without limit."""
    with site.connect(rcvbuf=8192) as client:
        client.send(request("/large.bin") * 8 + LAST)
        assert all(client.response().body == LARGE for _ in range(8))
        assert client.response().body == b"last\n"


def test_deep_pipeline_that_is_never_read(site):
    """The server stops reading from a client that sends requests but reads no responses."""
    with site.connect(rcvbuf=4096) as client:
        client.sock.settimeout(1.0)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += client.sock.send(request("/medium.bin") * 200)
        except TimeoutError:
            pass
    assert sent < 64 << 20
    with site.connect() as other:
        other.assert_open()


def test_nothing_after_close_is_answered(site):
    assert site.statuses(request("/hello.txt", CLOSE) + request() * 5) == [200]


def test_pipeline_with_a_bad_one(site):
    answers = site.talk(request() * 5 + lines("BAD LINE") + request() * 5)
    assert [a.status for a in answers] == [200] * 5 + [400]


# ── ends ──


def test_nothing_behind_connect_is_a_request(connect):
    """Those bytes are for the tunnel that was refused (RFC 9110 section 9.3.6)."""
    with connect() as client:
        client.send(lines("CONNECT localhost:80 HTTP/1.1", "Host: localhost") + request())
        assert client.response().status == 405
        client.assert_closed()


def test_half_closed_client_gets_its_answers(connect):
    client = connect()
    client.send(request("/large.bin") + request() * 20)
    client.shut()
    answers = client.responses()
    assert [a.status for a in answers] == [200] * 21
    assert answers[0].body == LARGE


def test_half_closed_within_a_head(connect):
    client = connect()
    client.send("GET /hello.txt HTTP/1.1\r\nHo")
    client.shut()
    assert [a.status for a in client.responses()] in ([], [400])


def test_half_closed_within_a_body(connect):
    client = connect()
    client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 100") + b"short")
    client.shut()
    assert [a.status for a in client.responses()] in ([405], [405, 400])


def test_early_error_is_not_lost_to_a_reset(serve):
    """The client is still sending when the server has answered and wants to close: the answer arrives whole."""
    server = serve({"MaxDiscardSize": "16K", "LingerTimeout": "1m"})
    for _ in range(10):
        with server.connect() as client:
            client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 4000000"))
            for _ in range(16):
                client.send(b"x" * 50_000)
            answer = client.response()
            assert answer.status in (405, 413) and answer.closes
            client.shut()
            client.assert_closed()


def test_head_too_large_is_answered_before_the_reset(serve):
    server = serve({"LingerTimeout": "1m"})
    for size in (20_000, 100_000, 400_000):
        with server.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"v" * size + b"\r\n\r\n")
            assert client.response().status == 431
            client.shut()
            client.assert_closed()


def test_linger_is_bounded(serve):
    """A client that neither reads the answer nor goes away loses its connection after LingerTimeout."""
    server = serve({"LingerTimeout": "200ms"})
    client = server.connect()
    client.send(lines("GET / HTTP/1.1"))
    assert client.response().status == 400
    client.assert_closed()


def test_lingering_is_no_free_upload(serve):
    """Sending on and on behind an error ends too."""
    server = serve({"LingerTimeout": "300ms", "MaxDiscardSize": "16K"})
    client = server.connect()
    client.send(lines("GET / HTTP/1.1"))
    ended = threading.Event()

    def flood():
        while client.send_all_you_can(b"x" * 65_536):
            pass
        ended.set()

    thread = threading.Thread(target=flood)
    thread.start()
    assert ended.wait(60)
    thread.join()


# ── Expect ──


def expecting(method="POST", *fields, target="/hello.txt", version="HTTP/1.1"):
    return lines(f"{method} {target} {version}", HOST, "Expect: 100-continue", *fields)


def test_expect_answered_finally(connect):
    """The file handler refuses a POST without asking for its body. The declared length still rules the connection."""
    client = connect()
    client.send(expecting("POST", "Content-Length: 5"))
    answer = client.response()
    assert answer.status == 405
    if answer.closes:
        client.shut()
        client.assert_closed()
    else:
        client.send(b"hello")
        client.assert_open()


def test_expect_desync(site):
    """Expect-based desync: a body that is sent although the answer came first is not a request."""
    smuggled = request("/one.txt")
    answers = site.talk(expecting("POST", f"Content-Length: {len(smuggled)}") + smuggled + LAST)
    assert all(a.body != b"1" for a in answers)
    assert [a.status for a in answers if not a.interim][:1] == [405]
    answers = site.talk(expecting("GET", f"Content-Length: {len(smuggled)}") + smuggled + LAST)
    assert all(a.body != b"1" for a in answers)


def test_expect_with_get_and_body(connect):
    client = connect()
    client.send(expecting("GET", "Content-Length: 5"))
    answer = client.response()
    assert (answer.status, answer.body) == (200, HELLO)
    if not answer.closes:
        client.send(b"hello")
        client.assert_open()


def test_expect_with_a_body_on_its_heels(connect):
    """A client need not wait."""
    client = connect()
    client.send(expecting("POST", "Content-Length: 5") + b"hello")
    answer = client.response()
    assert answer.status == 405
    if not answer.closes:
        client.assert_open()


def test_expect_chunked(connect):
    client = connect()
    client.send(expecting("POST", "Transfer-Encoding: chunked"))
    answer = client.response()
    assert answer.status == 405
    if not answer.closes:
        client.send(chunked(b"hello"))
        client.assert_open()


def test_expect_without_a_body(site):
    answers = site.talk(expecting("GET") + LAST)
    assert [a.status for a in answers if not a.interim] == [200, 200]


def test_expect_in_http_1_0_is_ignored(site):
    """RFC 9110 §10.1.1: a server must ignore it in HTTP/1.0."""
    answers = site.talk(expecting("GET", version="HTTP/1.0"))
    assert [a.status for a in answers] == [200]


@pytest.mark.parametrize("value", ["foo", "100-continue, foo", "100", "200-ok", "100-continue=1", ""])
def test_expect_unknown(site, value):
    answers = site.talk(lines("GET /hello.txt HTTP/1.1", HOST, f"Expect: {value}") + LAST)
    assert answers[0].status == (417 if value else 200) or (value == "" and answers[0].status == 417)


def test_expect_page_does_not_reflect(site):
    """The field's value must not come back as HTML (a class of defects of old servers)."""
    answer = site.talk(lines("GET / HTTP/1.1", HOST, "Expect: <script>alert(1)</script>", CLOSE))[0]
    assert answer.status == 417 and b"<script>" not in answer.body
