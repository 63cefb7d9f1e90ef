# SPDX-License-Identifier: Apache-2.0
"""Single ranges (RFC 9110 §14). Several ranges that are worth several parts are test_multirange.py's matter."""

import pytest

from harness.content import HUNDRED, LARGE, OLD_DATE
from harness.messages import CLOSE, lines

# Range of a file of 100 bytes: the slice that comes back
SATISFIABLE = {
    "bytes=0-0": (0, 0),
    "bytes=0-49": (0, 49),
    "bytes=50-99": (50, 99),
    "bytes=99-99": (99, 99),
    "bytes=0-": (0, 99),
    "bytes=50-": (50, 99),
    "bytes=99-": (99, 99),
    "bytes=-1": (99, 99),
    "bytes=-50": (50, 99),
    "bytes=-100": (0, 99),
    "bytes=-101": (0, 99),
    "bytes=-500": (0, 99),
    "bytes=50-100": (50, 99),
    "bytes=50-120": (50, 99),
    "bytes=0-500": (0, 99),
    "bytes=0-9223372036854775806": (0, 99),
    "bytes=0-9223372036854775807": (0, 99),
    "bytes=0-99999999999999999999999999": (0, 99),
    "bytes=-99999999999999999999999999": (0, 99),
    "bytes=00050-00059": (50, 59),
    "Bytes=0-9": (0, 9),
    "bytes=0-9 ": (0, 9),
}

UNSATISFIABLE = [
    "bytes=100-",
    "bytes=100-100",
    "bytes=100-200",
    "bytes=1000-",
    "bytes=-0",
    "bytes=9223372036854775807-",
    "bytes=99999999999999999999999999-",
]

IGNORED = [
    "bytes=",
    "bytes",
    "bytes=-",
    "bytes=a-b",
    "bytes=5",
    "bytes=5-4",
    "bytes=99-0",
    "bytes=--5",
    "bytes=1-2-3",
    "bytes= ",
    "bytes=0x0-0x9",
    "bytes=+0-9",
    "bytes=0-+9",
    "bytes=0-9;x",
    "items=0-9",
    "=0-9",
    "0-9",
    "bytes 0-9",
    "bytes=0 -9",
    "",
]

# several ranges of so small a file: what is left after merging, None for the whole
SEVERAL = {
    "bytes=0-9,20-29": (0, 29),
    "bytes=0-0,-1": None,
    "bytes=0-9, 5-14": (0, 14),
    "bytes=-5,0-4": None,
    "bytes=0-49,50-99": None,
    "bytes=0-9,200-300": (0, 9),
}


def ask(connect, value, *fields, target="/hundred.bin", method="GET"):
    return connect().ask(target, f"Range: {value}", *fields, method=method)


@pytest.mark.parametrize("value", SATISFIABLE)
def test_satisfiable(connect, value):
    first, last = SATISFIABLE[value]
    answer = ask(connect, value)
    assert answer.status == 206
    assert answer["Content-Range"] == f"bytes {first}-{last}/100"
    assert answer.body == HUNDRED[first : last + 1] and answer.length == last - first + 1
    assert answer["ETag"] and answer["Last-Modified"] == OLD_DATE


@pytest.mark.parametrize("value", UNSATISFIABLE)
def test_unsatisfiable(connect, value):
    client = connect()
    answer = client.ask("/hundred.bin", f"Range: {value}")
    assert answer.status == 416
    assert answer["Content-Range"] == "bytes */100"
    client.assert_open()


@pytest.mark.parametrize("value", IGNORED)
def test_garbled_is_ignored(connect, value):
    answer = ask(connect, value)
    assert (answer.status, answer.body) == (200, HUNDRED)
    assert answer["Content-Range"] is None


@pytest.mark.parametrize("value", SEVERAL)
def test_several(connect, value):
    answer = ask(connect, value)
    first, last = SEVERAL[value] or (0, 99)
    assert answer.status == (206 if SEVERAL[value] else 200)
    assert answer["Content-Range"] == (f"bytes {first}-{last}/100" if SEVERAL[value] else None)
    assert answer.body == HUNDRED[first : last + 1]


def test_overlapping_ranges_are_no_amplifier(site):
    """1,500 ranges of a large file cost at most the file (the Apache range class)."""
    value = "Range: bytes=" + ",".join(f"{i}-" for i in range(1500))
    answer = site.talk(lines("GET /large.bin HTTP/1.1", "Host: localhost", value, CLOSE))[0]
    assert answer.status in (200, 416, 431)
    assert len(answer.body) <= len(LARGE)


def test_range_twice_is_ignored_or_refused(site):
    answer = site.talk(
        lines("GET /hundred.bin HTTP/1.1", "Host: localhost", "Range: bytes=0-9", "Range: bytes=20-29", CLOSE)
    )[0]
    assert answer.status in (200, 400)


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS"])
def test_only_get_has_ranges(connect, method):
    answer = ask(connect, "bytes=0-9", method=method)
    assert answer.status not in (206, 416)
    if method == "HEAD":
        assert answer.length == 100


def test_accept_ranges_is_announced(connect):
    assert connect().ask("/hundred.bin")["Accept-Ranges"] == "bytes"


def test_empty_file_has_no_range(connect):
    client = connect()
    answer = client.ask("/empty.txt", "Range: bytes=0-")
    assert answer.status in (200, 416)
    if answer.status == 416:
        assert answer["Content-Range"] == "bytes */0"
    client.assert_open()


@pytest.mark.parametrize(
    "first, last",
    [(0, 0), (1, 65_535), (65_535, 65_537), (262_143, 262_145), (1_000_000, 2_999_999), (2_999_999, 2_999_999)],
)
def test_slices_of_a_large_file(connect, first, last):
    answer = ask(connect, f"bytes={first}-{last}", target="/large.bin")
    assert answer.status == 206 and answer.body == LARGE[first : last + 1]


def test_ranges_in_a_pipeline(site):
    data = b"".join(
        lines("GET /large.bin HTTP/1.1", "Host: localhost", f"Range: bytes={i * 1000}-{i * 1000 + 999}")
        for i in range(50)
    )
    answers = site.talk(data + lines("GET / HTTP/1.1", "Host: localhost", CLOSE))
    assert b"".join(a.body for a in answers[:-1]) == LARGE[:50_000]


def test_resume_off(serve):
    server = serve({"Resume": "Off"})
    answer = server.connect().ask("/hundred.bin", "Range: bytes=0-9")
    assert (answer.status, answer.body) == (200, HUNDRED)
    assert answer["Accept-Ranges"] in (None, "none")


# ── If-Range (RFC 9110 §13.1.5): a strong match or the whole file ──


def test_if_range(connect):
    client = connect()
    tag = client.ask("/hundred.bin")["ETag"]
    assert not tag.startswith("W/")

    def status(value):
        return client.ask("/hundred.bin", "Range: bytes=0-9", f"If-Range: {value}").status

    assert status(tag) == 206
    assert status(OLD_DATE) == 206
    assert status('"other"') == 200
    assert status("W/" + tag) == 200
    assert status("Sun, 13 Sep 2020 12:26:41 GMT") == 200
    assert status("Sun, 13 Sep 2020 12:26:39 GMT") == 200
    assert status("nonsense") == 200
    assert status(f"{tag}, {tag}") == 200


def test_if_range_hides_an_unsatisfiable_range(connect):
    """The range counts only if the validator matches."""
    client = connect()
    assert client.ask("/hundred.bin", "Range: bytes=500-", 'If-Range: "other"').status == 200
    assert client.ask("/hundred.bin", "Range: bytes=500-").status == 416


def test_if_range_without_range(connect):
    assert connect().ask("/hundred.bin", 'If-Range: "other"').status == 200


def test_weak_tag_does_not_match(serve):
    """A file younger than two seconds has a weak tag, which is no base for a range."""
    server = serve(files={"new.bin": HUNDRED})
    (server.root / "new.bin").write_bytes(HUNDRED)
    client = server.connect()
    tag = client.ask("/new.bin")["ETag"]
    assert tag.startswith("W/")
    assert client.ask("/new.bin", "Range: bytes=0-9", f"If-Range: {tag}").status == 200
