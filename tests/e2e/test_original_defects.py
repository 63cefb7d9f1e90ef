# SPDX-License-Identifier: Apache-2.0
"""What the original server did wrong, row by row as in the project's list of its defects. Virtual host
redirects (4), custom
error pages (5) and the other plugins (26) have no counterpart here yet."""

import random
import time

import pytest

from harness.content import FILES, HELLO, HUNDRED, LARGE, OLD_DATE
from harness.messages import CLOSE, LAST, chunked, lines, request
from harness.server import run

HOST = "Host: localhost"


def test_row_1_pipeline_with_a_chunked_post_without_slash(site):
    """Crashed or span within 15 tries."""
    data = (
        request()
        + lines("POST hello.txt HTTP/1.1", HOST, "Transfer-Encoding: chunked")
        + chunked(b"hello")
        + request()
    )
    for _ in range(50):
        assert site.statuses(data) == [200, 400]
    site.assert_healthy()


def test_row_1_random_mutations_do_not_hang(site):
    source = random.Random(26)
    seed = (
        request()
        + lines("POST /hello.txt HTTP/1.1", HOST, "Transfer-Encoding: chunked")
        + chunked(b"hello")
        + request()
    )
    for _ in range(300):
        data = bytearray(seed)
        for _ in range(source.randint(1, 3)):
            data[source.randrange(len(data))] = source.randrange(256)
        with site.connect() as client:
            client.send_all_you_can(bytes(data))
            client.shut()
            try:
                client.rest()
            except ConnectionResetError:
                pass
    before = site.cpu_seconds()
    time.sleep(0.2)
    assert site.cpu_seconds() - before < 0.1


def test_row_2_folder_without_slash(connect):
    answer = connect().ask("/dir")
    assert answer.status == 301 and answer["Location"] == "/dir/"


@pytest.mark.parametrize("name", ["file", "file.unknown", "UPPER.TXT", "page.HTML"])
def test_row_3_unknown_extension_breaks_no_head(connect, name):
    answer = connect().ask("/" + name)
    assert answer.body == FILES[name]
    assert answer["ETag"] and answer["Content-Type"]


def test_row_6_no_name_gets_the_bytes_of_another(serve):
    """Names by the hundred while the first file is still on its way."""
    files = {f"{i:x}.txt": b"%d\n" % i for i in range(400)}
    server = serve(files={**files, "first.bin": LARGE})
    stuck = server.connect(rcvbuf=4096)
    stuck.send(request("/first.bin"))
    answers = server.talk(b"".join(request("/" + name) for name in files) + LAST)
    assert [a.body for a in answers[:-1]] == list(files.values())
    assert stuck.response().body == LARGE


@pytest.mark.parametrize("target", ["/nowhere", "/noindex/", "/dir"])
def test_row_7_close_is_kept_on_errors(connect, target):
    client = connect()
    assert client.ask(target, CLOSE).closes
    client.assert_closed()


def test_row_8_unknown_method_has_the_length_that_it_says(connect):
    client = connect()
    assert client.ask(method="FROBNICATE").status == 501
    client.assert_open()


def test_row_9_version_2_gets_one_answer(site):
    assert site.statuses(lines("GET /hello.txt HTTP/2.0", HOST)) == [505]


def test_row_10_request_behind_a_post(site):
    assert site.statuses(request(method="POST", body=b"a=b") + LAST) == [405, 200]


def test_row_11_request_behind_a_chunked_post(site):
    assert site.statuses(
        lines("POST /hello.txt HTTP/1.1", HOST, "Transfer-Encoding: chunked") + chunked(b"hello") + LAST
    ) == [405, 200]


def test_row_12_length_and_coding(site):
    post = "POST /hello.txt HTTP/1.1"
    assert site.statuses(
        lines(post, HOST, "Content-Length: 5", "Transfer-Encoding: chunked") + chunked(b"") + LAST
    ) == [400]
    assert site.statuses(lines(post, HOST, "Content-Length: 5", "Content-Length: 6") + b"hello" + LAST) == [400]


def test_row_13_get_with_a_body(site):
    answers = site.talk(request(body=request("/one.txt")) + LAST)
    assert [a.body for a in answers] == [HELLO, b"last\n"]


def test_row_14_chunk_extension_and_trailer(site):
    post = lines("POST /hello.txt HTTP/1.1", HOST, "Transfer-Encoding: chunked")
    assert site.statuses(post + b"5;a=b\r\nhello\r\n0;c\r\nX-Trailer: y\r\n\r\n" + LAST) == [405, 200]


@pytest.mark.parametrize(
    "value, status, first, last",
    [
        ("bytes=50-120", 206, 50, 99),
        ("bytes=0-500", 206, 0, 99),
        ("bytes=-500", 206, 0, 99),
        ("bytes=100-", 416, 0, 0),
        ("lines=1-2", 200, 0, 99),
    ],
)
def test_row_15_ranges(connect, value, status, first, last):
    client = connect()
    answer = client.ask("/hundred.bin", f"Range: {value}")
    assert answer.status == status
    if status == 416:
        assert answer["Content-Range"] == "bytes */100"
    else:
        assert answer.body == HUNDRED[first : last + 1]
    client.assert_open()


def test_row_15_several_ranges_are_not_the_first_only(connect):
    assert connect().ask("/hundred.bin", "Range: bytes=0-1,50-51").body != HUNDRED[:2]


def test_row_16_empty_file(connect):
    answer = connect().ask("/empty.txt")
    assert (answer.status, answer.length, answer.body) == (200, 0, b"")


def test_row_17_dots_inside_a_name(connect):
    assert connect().ask("/a..b.txt").body == FILES["a..b.txt"]


def test_row_18_nul_does_not_cut_the_path(site):
    assert site.statuses(request("/hello.txt%00.html", CLOSE)) == [400]


def test_row_19_host_is_ipv6(connect):
    assert connect().ask(host="[::1]").status == 200


def test_row_20_absolute_form_leading_line_and_asterisk(connect):
    client = connect()
    assert client.ask("http://localhost/hello.txt").body == HELLO
    client.send(b"\r\n" + request())
    assert client.response().body == HELLO
    assert client.ask("*", method="OPTIONS").status in (200, 204)


def test_row_21_expect_is_answered_at_once(connect):
    client = connect()
    client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 5", "Expect: 100-continue"))
    start = time.monotonic()
    assert client.response().status == 405
    assert time.monotonic() - start < 25  # BodyTimeout is 30 s


def test_row_22_connection_options(connect):
    client = connect()
    assert (
        client.ask("/hello.txt", "Connection: keep-alive", version="HTTP/1.0")["Connection"].lower() == "keep-alive"
    )
    client.assert_open()
    assert client.ask("/hello.txt", "Connection: foo, close").closes
    client.assert_closed()


@pytest.mark.parametrize("field", ["X-Fold: a\r\n Content-Length: 5", "Content-Length : 5"])
def test_row_23_folds_and_spaces(site, field):
    assert site.statuses(lines("GET /hello.txt HTTP/1.1", HOST, field) + LAST) == [400]


def test_row_24_conditions(connect):
    client = connect()
    tag = client.ask()["ETag"]
    assert client.ask("/hello.txt", f"If-None-Match: {tag}").status == 304
    assert client.ask("/hello.txt", "Range: bytes=0-1", 'If-Range: "other"').status == 200
    assert client.ask("/hello.txt", "If-Modified-Since: Sunday, 13-Sep-20 12:26:40 GMT").status == 304
    assert client.ask("/hello.txt", f"If-Modified-Since: {OLD_DATE}", method="HEAD").status == 304


def test_row_25_linked_folder(serve):
    server = serve({"SymLink": "Off"}, files={"real/a.txt": b"x"})
    (server.root / "linked").symlink_to("real")
    assert server.connect().ask("/linked/a.txt").status in (403, 404)


# ── from the description of its behaviour ──


def test_active_connection_outlives_the_timeout(serve, clock):
    """Was cut after Timeout seconds of its life, though it was never idle."""
    server = serve({"Timeout": "3s", "KeepAliveTimeout": "60s"})
    client = server.connect()
    for _ in range(18):
        client.assert_open()
        clock.advance(0.5)


def test_pipeline_of_a_thousand_is_answered_to_its_end(site):
    assert len(site.talk(request() * 999 + LAST)) == 1000


def test_method_post_on_a_file_is_not_get(connect):
    assert connect().ask(method="POST", body=b"x").status == 405


def test_port_99999_is_refused():
    assert run("-o", ".", "-p", "99999").returncode == 2
