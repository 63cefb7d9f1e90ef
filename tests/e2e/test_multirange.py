# SPDX-License-Identifier: Apache-2.0
"""Several ranges (RFC 9110 §14 and §15.3.7.2): what comes back is taken apart by a parser of our own, byte by byte, and
by Python's for e-mail."""

import email
import email.policy
import os
import re
import shutil
import subprocess

import pytest

from harness import build
from harness.content import HUGE, HUNDRED, LARGE, MARKS, OLD_DATE, make_huge
from harness.messages import CLOSE, LAST, lines, request
from harness.multipart import Multipart, boundary_of, read_multipart, take_apart
from harness.server import await_true

PARTS_MAX, SPECS_MAX = 200, 512


def ask(client, target, value, *fields):
    client.send(request(target, f"Range: {value}", *fields))
    answer = read_multipart(client)
    assert answer["Last-Modified"] == OLD_DATE
    return take_apart(answer)


def check(parts, data, spans):
    assert [(first, last) for _, first, last, _, _ in parts] == spans
    for _, first, last, size, piece in parts:
        assert size == len(data) and piece == data[first : last + 1]


def field_of(spans):
    return "bytes=" + ",".join(f"{first}-{last}" for first, last in spans)


# field: the parts of 3,000,000 bytes
END = len(LARGE) - 1
SEVERAL = {
    "bytes=0-0,-1": [(0, 0), (END, END)],
    "bytes=-1,0-0": [(END, END), (0, 0)],
    "bytes=0-99,1000-1999,500000-": [(0, 99), (1000, 1999), (500_000, END)],
    "bytes=5000-5999, 0-9": [(5000, 5999), (0, 9)],
    "Bytes=0-9 ,, 5000-5009,": [(0, 9), (5000, 5009)],
    "bytes=0-9,1000-1009,5-20,1010-1019": [(0, 20), (1000, 1019)],  # overlapping, adjacent
    "bytes=2000-2009,0-9,1990-1999": [(1990, 2009), (0, 9)],  # at the place of the first
    "bytes=0-9,89-99,5000-": [(0, 99), (5000, END)],  # 79 bytes between them cost less than a part
    "bytes=0-9,90-99": [(0, 9), (90, 99)],
    "bytes=0-9,100-109,300-309,5-305,9000-9009": [(0, 309), (9000, 9009)],
    "bytes=0-9,5000000-,-0,1000-1009": [(0, 9), (1000, 1009)],  # what cannot be satisfied is left out
    "bytes=1000-16000,50000-350000,400000-1400000": [(1000, 16_000), (50_000, 350_000), (400_000, 1_400_000)],
    "bytes=2999000-99999999999999999999,0-0": [(2_999_000, END), (0, 0)],
}

ONE = {
    "bytes=0-9,10-19": (0, 19),
    "bytes=10-19,0-9": (0, 19),
    "bytes=0-9,0-9,0-9": (0, 9),
    "bytes=0-9,5-": (0, END),
    "bytes=100-,200-": (100, END),
    "bytes=7-7,9000000-": (7, 7),
    "bytes=-0,7-7": (7, 7),
    "bytes=0-9,89-99": (0, 99),
}


@pytest.mark.parametrize("value", SEVERAL)
def test_several(connect, value):
    client = connect()
    parts = ask(client, "/large.bin", value)
    check(parts, LARGE, SEVERAL[value])
    assert {part[0] for part in parts} == {client.ask("/large.bin", method="HEAD")["Content-Type"]}
    client.assert_open()


@pytest.mark.parametrize("value", ONE)
def test_one_that_is_left_needs_no_parts(connect, value):
    first, last = ONE[value]
    answer = connect().ask("/large.bin", f"Range: {value}")
    if (first, last) == (0, END):
        assert (answer.status, answer.body) == (200, LARGE)
        return
    assert answer.status == 206 and answer["Content-Range"] == f"bytes {first}-{last}/{len(LARGE)}"
    assert answer.body == LARGE[first : last + 1] and not answer["Content-Type"].startswith("multipart")


@pytest.mark.parametrize("value", ["bytes=3000000-,4000000-", "bytes=-0,-0", "bytes=9000000-9000001,-0"])
def test_none_that_can_be_satisfied(connect, value):
    client = connect()
    answer = client.ask("/large.bin", f"Range: {value}")
    assert answer.status == 416 and answer["Content-Range"] == f"bytes */{len(LARGE)}"
    client.assert_open()


@pytest.mark.parametrize(
    "value",
    ["bytes=0-1,x", "bytes=0-1,5-4", "bytes=0-1;5-6", "bytes=0-1,-", "bytes=0-1 5000-5001", "lines=0-1,900-901"],
)
def test_one_garbled_range_spoils_all(connect, value):
    answer = connect().ask("/large.bin", f"Range: {value}")
    assert (answer.status, answer.body) == (200, LARGE)


def test_as_many_parts_as_allowed(connect):
    client = connect()
    spans = [(i * 10_000, i * 10_000 + 10 * i) for i in range(PARTS_MAX)]
    check(ask(client, "/large.bin", field_of(spans)), LARGE, spans)
    spans.append((2_900_000, 2_900_001))
    answer = client.ask("/large.bin", "Range: " + field_of(spans))
    assert (answer.status, answer.body) == (200, LARGE)


def test_as_many_ranges_as_allowed(connect):
    """Many that come to four; one more is too much, even if it adds nothing."""
    client = connect()
    spans = [(j * 100_000 + i * 50, j * 100_000 + i * 50 + 9) for i in range(SPECS_MAX // 4) for j in range(4)]
    merged = [(j * 100_000, j * 100_000 + 50 * SPECS_MAX // 4 - 41) for j in range(4)]
    check(ask(client, "/large.bin", field_of(spans)), LARGE, merged)
    answer = client.ask("/large.bin", "Range: " + field_of(spans + [spans[0]]))
    assert (answer.status, answer.body) == (200, LARGE)


@pytest.mark.parametrize("count", [2, 17, 64, 200, 201, 512, 513, 800])
@pytest.mark.parametrize("form", ["{0}-", "{0}-1048575", "0-{0}", "-{0}", "{0}-{0},5-"])
def test_floods_are_no_amplifier(connect, count, form):
    """However many ranges are asked for, at most the file comes."""
    client = connect()
    value = "bytes=" + ",".join(form.format(i + 1) for i in range(count))
    client.send(request("/large.bin", f"Range: {value}"))
    head = client.until(b"\r\n\r\n")
    length = int(re.search(rb"Content-Length: (\d+)", head)[1])
    assert length <= len(LARGE)
    assert len(client.exactly(length)) == length
    client.assert_open()


@pytest.mark.parametrize("count", [17, 20, 64, 127, PARTS_MAX])
def test_ranges_of_programs_for_deltas(connect, count):
    """zsync asks for 20 ranges at once, and zchunk for 127."""
    spans = [(i * 2000, i * 2000 + 9) for i in range(count)]
    check(ask(connect(), "/large.bin", field_of(spans)), LARGE, spans)


def test_a_body_of_frames_is_no_amplifier(connect):
    """Two hundred parts of a byte cost a body of some 30 KB, and none larger than the file."""
    field = field_of([(i * 90, i * 90) for i in range(PARTS_MAX)])
    client = connect()
    client.send(request("/large.bin", f"Range: {field}"))
    assert len(read_multipart(client).body) < 40_000
    answer = client.ask("/hundred.bin", f"Range: {field}")
    assert len(answer.body) <= len(HUNDRED)


def test_flood_of_overlapping_ranges(serve):
    """1,500 ranges of 1 MiB each, a few bytes apart."""
    server = serve({"MaxRequestSize": "64K"}, files={"f.bin": LARGE})
    value = ",".join(f"{i}-{i + (1 << 20)}" for i in range(1500))
    answer = server.talk(lines("GET /f.bin HTTP/1.1", "Host: localhost", f"Range: bytes={value}", CLOSE))[0]
    assert answer.status in (200, 431) and len(answer.body) <= len(LARGE)


def test_parts_that_do_not_pay(connect):
    """The frames would make it larger than the file."""
    for value in ("bytes=0-0,-1", "bytes=0-4,95-99"):
        answer = connect().ask("/hundred.bin", f"Range: {value}")
        assert (answer.status, answer.body) == (200, HUNDRED)


def test_boundaries_differ(connect):
    client, seen = connect(), set()
    for _ in range(50):
        client.send(request("/large.bin", "Range: bytes=0-0,5000-5000"))
        seen.add(boundary_of(read_multipart(client)))
    assert len(seen) == 50


def test_read_by_the_parser_for_mail(connect):
    client, spans = connect(), [(10, 99), (70_000, 79_999), (500_000, 500_000)]
    client.send(request("/large.bin", "Range: " + field_of(spans)))
    answer = read_multipart(client)
    whole = b"Content-Type: " + answer["Content-Type"].encode() + b"\r\n\r\n" + answer.body
    message = email.message_from_bytes(whole, policy=email.policy.HTTP)
    assert message.is_multipart() and not message.defects and not message.epilogue
    assert [part["Content-Range"] for part in message.get_payload()] == [f"bytes {a}-{b}/3000000" for a, b in spans]


# ── with other fields and methods ──


def test_head_has_no_ranges(connect):
    answer = connect().ask("/large.bin", "Range: bytes=0-0,5000-5000", method="HEAD")
    assert (answer.status, answer.length) == (200, len(LARGE))


def test_if_range(connect):
    client = connect()
    tag = client.ask("/large.bin", method="HEAD")["ETag"]
    for value in (tag, OLD_DATE):
        parts = ask(client, "/large.bin", "bytes=0-0,5000-5000", f"If-Range: {value}")
        check(parts, LARGE, [(0, 0), (5000, 5000)])
    for value in ('"other"', "W/" + tag, "Sun, 13 Sep 2020 12:26:41 GMT"):
        answer = client.ask("/large.bin", "Range: bytes=0-0,5000-5000", f"If-Range: {value}")
        assert (answer.status, answer.body) == (200, LARGE)


def test_conditions_come_first(connect):
    client = connect()
    tag = client.ask("/large.bin", method="HEAD")["ETag"]
    assert client.ask("/large.bin", "Range: bytes=0-0,5000-5000", f"If-None-Match: {tag}").status == 304
    assert client.ask("/large.bin", "Range: bytes=0-0,5000-5000", 'If-Match: "other"').status == 412


def test_http_1_0(site):
    with site.connect() as client:
        client.send(lines("GET /large.bin HTTP/1.0", "Range: bytes=0-0,5000-5000"))
        check(take_apart(read_multipart(client)), LARGE, [(0, 0), (5000, 5000)])
        client.assert_closed()


def test_resume_off(serve):
    answer = serve({"Resume": "Off"}).connect().ask("/large.bin", "Range: bytes=0-0,5000-5000")
    assert (answer.status, answer.body) == (200, LARGE)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl(site, tmp_path):
    """curl writes the body as it comes."""
    command = ["curl", "-sS", "--max-time", "60", "--noproxy", "*", "-D", tmp_path / "head", "-o", tmp_path / "body"]
    subprocess.run([*command, "-r", "0-99,200000-299999,-5", f"{site.url}/large.bin"], check=True, timeout=120)
    answer = Multipart((tmp_path / "head").read_bytes().removesuffix(b"\r\n\r\n"), "GET")
    answer.body = (tmp_path / "body").read_bytes()
    assert len(answer.body) == answer.length
    check(take_apart(answer), LARGE, [(0, 99), (200_000, 299_999), (END - 4, END)])


# ── on the way ──

MANY = [(i * 14_000, i * 14_000 + (12_000 if i % 3 else 900)) for i in reversed(range(PARTS_MAX))]


def test_slow_reader(site):
    with site.connect(rcvbuf=4096) as client:
        check(ask(client, "/large.bin", field_of(MANY)), LARGE, MANY)
        client.assert_open()


def test_in_a_pipeline(site):
    """Behind and before other answers, through a small window."""
    with site.connect(rcvbuf=8192) as client:
        client.send((request("/large.bin", "Range: " + field_of(MANY)) + request("/hello.txt")) * 10 + LAST)
        for _ in range(10):
            check(take_apart(read_multipart(client)), LARGE, MANY)
            assert client.response().body == b"Hello, world\n"
        assert client.response().body == b"last\n"


def test_one_descriptor_for_all_parts(serve):
    server = serve()
    stuck = [server.connect(rcvbuf=4096) for _ in range(20)]
    for client in stuck:
        client.send(request("/large.bin", "Range: " + field_of(MANY)))
        client.until(b"\r\n\r\n")
    assert server.descriptors() <= server.baseline + 2 * len(stuck) + 2
    for client in stuck:
        client.close()
    await_true(lambda: server.descriptors() <= server.baseline, 30, "the end of the downloads")


def test_clients_that_leave_in_the_middle(serve):
    server = serve()
    for taken in (0, 1, 500, 20_000, 150_000, 400_000, 1_000_000):
        for leave in ("close", "reset"):
            client = server.connect(rcvbuf=4096)
            client.send(request("/large.bin", "Range: " + field_of(MANY)))
            client.until(b"\r\n\r\n")
            client.exactly(taken)
            getattr(client, leave)()
    await_true(lambda: server.descriptors() <= server.baseline, 30, "the end of the downloads")
    server.connect().assert_open()


def test_memory_is_bounded(serve):
    """A hundred stuck responses, each with the texts and the entries of the queue for 200 parts: some 82 KB."""
    server = serve()
    with server.connect() as client:
        ask(client, "/large.bin", field_of(MANY))
    before = server.memory_kb()
    stuck = [server.connect(rcvbuf=4096) for _ in range(100)]
    for client in stuck:
        client.send(request("/large.bin", "Range: " + field_of(MANY)))
        client.until(b"\r\n\r\n")
    assert server.memory_kb() - before < (20_000 if build.SANITIZED else 9_600)


def test_larger_than_4_gib(serve):
    """The ranges straddle 2 and 4 GiB."""
    server = serve(files={})
    make_huge(server.root / "huge.bin")
    client = server.connect()
    parts = ask(client, "/huge.bin", field_of([(at, at + len(text) - 1) for at, text in MARKS.items()]))
    assert [(first, piece) for _, first, _, _, piece in parts] == list(MARKS.items())
    assert {part[3] for part in parts} == {HUGE}
    spans = [(2**32 - 100_000, 2**32 + 99_999), (2**31 - 300_000, 2**31 + 299_999)]
    pieces = [part[4] for part in ask(client, "/huge.bin", field_of(spans))]
    assert pieces[0] == bytes(99_997) + b"across" + bytes(99_997)
    assert pieces[1] == bytes(299_998) + b"2GiB" + bytes(299_998)
    client.send(request("/huge.bin", "Range: bytes=4294967296-,10-4000000000"))
    head = Multipart(client.until(b"\r\n\r\n"), "GET")
    assert head.length > HUGE - 2**32 + 4_000_000_000 - 10
    client.close()


def test_shrunk_while_sent(serve):
    """What was promised cannot come any more: a close, and nothing that fills the gap."""
    server = serve({"LingerTimeout": "300ms"}, files={"f.bin": LARGE * 8})
    spans = [(0, 9), (10_000_000, 20_000_000), (22_000_000, 22_000_009)]
    client = server.connect(rcvbuf=4096)
    client.send(request("/f.bin", "Range: " + field_of(spans)))
    head = Multipart(client.until(b"\r\n\r\n"), "GET")
    os.truncate(server.root / "f.bin", 1 << 20)
    assert len(client.rest()) < head.length
